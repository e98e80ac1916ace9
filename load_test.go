package quantmf

// This file tests load: many fits at once, many calls through one model, and that goroutines
// and memory come back. QUANTMF_LONG makes it 64 fits and 10,000 calls; under the race
// detector that takes minutes.

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestLoad: 64 fits at once of every kind, and 10,000 transforms through one model from 64
// goroutines, return what one alone returns; then no goroutine is left, and they leave no memory
// behind.
func TestLoad(t *testing.T) {
	fits, calls := Draws(64, 8, 8), Draws(10000, 200, 200)
	ctx := context.Background()
	x, _ := Bent(20, 24, 2, 0, 7)
	fit := func(method int) (Model, error) {
		opts := [4][]FitOption{MethodQMF: {WithEpochs(5)}, MethodQMFQ: {WithEpochs(3)}}[method]
		return Fit(ctx, Method(method), x, [...]int{3, 3, 2, 0}[method], opts...)
	}
	var want [4][]byte
	var models [4]Model
	for i := range models {
		models[i] = Must(fit(i))(t)
		want[i] = FileOf(t, models[i])
	}
	// Single samples: what a service is asked for.
	var single [4][24]uint64
	column := func(j int) Mat {
		c := NewMat(x.Rows, 1)
		for i := range x.Rows {
			c.Set(i, 0, x.At(i, j))
		}
		return c
	}
	for k, m := range models {
		for j := range 24 {
			single[k][j] = fingerprint(Answer(t, m.Transform, column(j)))
		}
	}
	load := func() {
		var wait sync.WaitGroup
		for i := range fits {
			wait.Go(func() {
				m, err := fit(i % 4)
				if err != nil {
					t.Error(err)
					return
				}
				if b, _ := m.MarshalBinary(); string(b) != string(want[i%4]) {
					t.Errorf("fit %d is another", i)
				}
			})
		}
		wait.Wait()
		for worker := range 64 {
			wait.Go(func() {
				for call := worker; call < calls; call += 64 {
					k, j := call%4, call%24
					v, err := models[k].Transform(ctx, column(j))
					if err != nil || fingerprint(v) != single[k][j] {
						t.Errorf("call %d is another: %v", call, err)
						return
					}
				}
			})
		}
		wait.Wait()
	}
	held := func() int {
		runtime.GC()
		runtime.GC() // pools keep what they have for one collection
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int(s.HeapAlloc)
	}
	// The first load also makes what Go keeps for later, such as a record of each goroutine that
	// there was at once. What the calls leave behind is there anew after each load.
	goroutines := runtime.NumGoroutine()
	least, at := math.MaxInt, held()
	for range 3 {
		load()
		AllEnd(t, goroutines)
		before := at
		at = held()
		if least = min(least, at-before); least < 1<<17 {
			break
		}
	}
	if least >= 1<<17 {
		t.Errorf("each load leaves %d bytes or more", least)
	}
	runtime.KeepAlive(models)
}

// TestTransformTime: placing the samples of a fit takes .28 of the processor time of the fit of an NMF,
// .54 to .58 of a QMF, whose choice is made on at most 2^16 cells (.43 where it was on 2^19), .1 of the
// others or less, each the least of four to twelve by turns; the bounds allow for noise. Some calls go
// together: what threads on other processors use is counted at ticks, which are as long as a call.
func TestTransformTime(t *testing.T) {
	if !Long {
		t.Skip("a measurement: set QUANTMF_LONG")
	}
	x, _ := Bent(400, 221, 4, 0, 9)
	for _, c := range []struct {
		method         Method
		rank           int
		most           float64
		fits, placings int // that go together
	}{{MethodNMF, 10, 0.35, 12, 40}, {MethodQMF, 10, 0.65, 1, 3}, {MethodQMFQ, 10, 0.13, 1, 3},
		{MethodBQMF, 0, 0.1, 1, 20}} {
		fit, place := time.Duration(1<<62), time.Duration(1<<62)
		for turn := 0; turn < 4 || turn < 12 && place.Seconds() > c.most*fit.Seconds(); turn++ {
			var m Model
			began := cpuTime()
			for range c.fits {
				m = Fitted(t, By(c.method), x, c.rank)
			}
			fit = min(fit, (cpuTime()-began)/time.Duration(c.fits))
			began = cpuTime()
			for range c.placings {
				Answer(t, m.Transform, x)
			}
			place = min(place, (cpuTime()-began)/time.Duration(c.placings))
		}
		share := place.Seconds() / fit.Seconds()
		t.Logf("%v of 400×221: fit %v, Transform %v, %.2f of it", c.method, fit, place, share)
		if share > c.most {
			t.Errorf("%v: Transform takes %.2f of the fit, more than %v", c.method, share, c.most)
		}
	}
}
