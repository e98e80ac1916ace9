package transport

// This file tests that a row whose Done is closed makes next to no passes.

import (
	"math"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestEnded(t *testing.T) {
	done := make(chan struct{})
	x := make([]float64, 400)
	for i := range x {
		x[i] = math.Sin(float64(i * i))
	}
	for _, eps := range []float64{1e-1, 1e-2, 1e-4} {
		p := Problem{X: x, Epsilon: eps, Done: done}
		r := NewRow(nil, len(x), len(x))
		r.Load(p)
		whole := r.Solve(1e-9, 3000, nil)
		closed := make(chan struct{})
		close(closed)
		p.Done = closed
		r.Load(p)
		out := r.Solve(1e-9, 3000, nil)
		out = r.Polish(nil, nil, out, 3000)
		if out.Converged || out.Passes > 2 || whole.Passes < 3 || !whole.Converged {
			t.Errorf("ε = %g: %+v, when it is not ended %+v", eps, out, whole)
		}
		p.Done = nil
		r.Load(p)
		Equal(t, r.Solve(1e-9, 3000, nil), whole, "ε = %g, after an end", eps)
	}
}
