package pool

import (
	"runtime"
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
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 1000 {
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
