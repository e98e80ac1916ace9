package pool

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestDo(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, workers := range []int{0, 1, 2, 7} {
		p := New(workers, 100)
		for _, n := range []int{0, 1, 2, 100} {
			hits := make([]int, n)
			p.Do(n, func(w, i int) {
				if w < 0 || w >= p.Workers() {
					t.Errorf("worker %d of %d", w, p.Workers())
				}
				hits[i]++
			})
			for i, h := range hits {
				if h != 1 {
					t.Errorf("%d workers: piece %d of %d ran %d times", workers, i, n, h)
				}
			}
		}
		p.Close()
	}
	for i := 0; runtime.NumGoroutine() > before; i++ { // those that ended may still need a turn
		if i == 100000 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
	if w := New(7, 3); w.Workers() != 3 {
		t.Errorf("%d workers, want at most 3", w.Workers())
	} else {
		w.Close()
	}
}

// TestRounds: thousands of short loops, with pauses in which workers fall
// asleep, each piece once a round.
func TestRounds(t *testing.T) {
	p := New(4, 100)
	defer p.Close()
	const n = 9
	var hits [n]int
	for round := range 20000 {
		p.Do(n, func(_, i int) { hits[i]++ })
		if round%1000 == 0 {
			time.Sleep(time.Millisecond)
		}
		for i, h := range hits {
			if h != round+1 {
				t.Fatalf("round %d: piece %d ran %d times", round, i, h)
			}
		}
	}
	piece := func(_, i int) { hits[i]++ }
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the lists that channels wait in
	if a := testing.AllocsPerRun(100, func() { p.Do(n, piece) }); a > 0 {
		t.Errorf("%v allocations a loop", a)
	}
}

// TestBind: a pool that is bound to a context begins no piece once it has ended, and all
// of them when it is bound no more.
func TestBind(t *testing.T) {
	for _, workers := range []int{1, 3} {
		p := New(workers, 100)
		ctx, cancel := context.WithCancel(context.Background())
		p.Bind(ctx)
		var done atomic.Int32
		p.Do(100, func(_, _ int) { done.Add(1) })
		if p.Err() != nil || done.Load() != 100 {
			t.Errorf("%d workers: %d pieces, %v", workers, done.Load(), p.Err())
		}
		done.Store(0)
		p.Do(1000, func(_, _ int) {
			switch n := done.Add(1); {
			case n == 10:
				cancel()
			case n > 10: // begun before the end, however long cancel takes
				<-ctx.Done()
			}
		})
		if n := int(done.Load()); p.Err() == nil || n < 10 || n >= 10+workers {
			t.Errorf("%d workers: %d pieces after the end, %v", workers, n, p.Err())
		}
		p.Bind(context.Background())
		done.Store(0)
		p.Do(100, func(_, _ int) { done.Add(1) })
		if p.Err() != nil || done.Load() != 100 {
			t.Errorf("%d workers, bound no more: %d pieces, %v", workers, done.Load(), p.Err())
		}
		p.Close()
	}
}

// TestPanic: a panic in a piece goes on in Do, whoever took the piece, and the pool goes on.
func TestPanic(t *testing.T) {
	p := New(4, 100)
	defer p.Close()
	for at := range 100 {
		var running atomic.Int64
		func() {
			defer func() {
				f, is := recover().(*Fault)
				if !is || f.Value != at || !strings.Contains(f.Error(), "pool_test.go") {
					t.Errorf("piece %d: %v", at, f)
				}
				if n := running.Load(); n != 0 {
					t.Errorf("piece %d: %d other pieces still run", at, n)
				}
			}()
			p.Do(100, func(_, i int) {
				running.Add(1)
				defer running.Add(-1)
				if i == at {
					panic(i)
				}
				runtime.Gosched()
			})
		}()
	}
	var ran atomic.Int64
	func() {
		defer func() { recover() }()
		p.Do(1000, func(_, i int) {
			if i == 0 {
				// until others have joined
				for began := time.Now(); ran.Load() < 5 && time.Since(began) < time.Second; {
					runtime.Gosched()
				}
				panic(i)
			}
			ran.Add(1)
			time.Sleep(100 * time.Microsecond)
		})
	}()
	if n := ran.Load(); n > 900 {
		t.Errorf("%d pieces ran after a panic in the first", n)
	}
	var hits [100]int
	p.Do(100, func(_, i int) { hits[i]++ })
	for i, h := range hits {
		if h != 1 {
			t.Errorf("piece %d ran %d times", i, h)
		}
	}
	within := errors.New("within")
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, within) {
			t.Error(err)
		}
	}()
	p.Do(100, func(_, i int) {
		q := New(2, 2)
		defer q.Close()
		q.Do(2, func(_, j int) { panic(within) })
	})
}

// TestExit: runtime.Goexit in a piece ends the goroutine of Do, whoever took the piece, and no worker is
// left.
func TestExit(t *testing.T) {
	for at := range 50 {
		returned := false
		var running atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p := New(4, 100)
			defer p.Close()
			p.Do(50, func(_, i int) {
				running.Add(1)
				defer running.Add(-1)
				if i == at {
					runtime.Goexit()
				}
				runtime.Gosched()
			})
			returned = true
		}()
		<-ended
		if returned || running.Load() != 0 {
			t.Errorf("piece %d: Do returned: %v; %d pieces still run", at, returned, running.Load())
		}
	}
}

// TestFail: after an error of a piece no further piece begins, whatever the pool is bound to, and the first
// error stays.
func TestFail(t *testing.T) {
	for _, workers := range []int{1, 3} {
		p := New(workers, 100)
		first := errors.New("first")
		var done atomic.Int32
		p.Do(1000, func(_, i int) {
			if done.Add(1) >= 10 {
				p.Fail(first)
			}
		})
		if n := int(done.Load()); n < 10 || n >= 10+workers {
			t.Errorf("%d workers: %d pieces", workers, n)
		}
		p.Fail(errors.New("second"))
		p.Bind(context.Background())
		p.Do(100, func(_, _ int) { t.Error("a piece after the failure") })
		if p.Err() != first || p.Failed() != first {
			t.Errorf("%d workers: %v, %v", workers, p.Err(), p.Failed())
		}
		p.Close()
	}
}
