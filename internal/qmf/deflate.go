package qmf

// This file holds the deflating maps T' of a QMFQ while they are fitted.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
)

// deflation is T' during a fit: Y = T'(X), and its adjoint. X is a constant, so T' takes
// gradients in F' and R' alone. Between forward and adjoint only the potentials of the
// plans are kept; the adjoint recomputes the plans in one pass.
type deflation struct {
	mapRows
	np      int                    // numbers of a padded row
	y, ybar []float64              // d × np: Y, 0 in hidden cells, and the gradient at Y
	h       []float64              // d × m, potentials
	solved  []transport.Potentials // of each row, H being a view of h; H nil: not solved yet
	ends    []transport.Outcome    // of each row's last solve
}

// newDeflation makes T' for the cells of T, in the same workspaces.
func newDeflation(t *inflation) *deflation {
	mean := divergence.Tiny // the largest of the means of rows
	for _, v := range t.Average {
		mean = max(mean, v)
	}
	a, d, np, m := t.pool.Memory, t.cells.D, kernel.Pad(t.cells.N), t.Levels
	f := &deflation{
		mapRows: mapRows{Settings: t.Settings, cells: t.cells, pool: t.pool, spaces: t.spaces,
			Maps: newMaps(a, d, m, true, false, nil)},
		np: np, y: a.Floats(d, np), ybar: a.Floats(d, np), h: a.Floats(d, m),
		solved: pool.Make[transport.Potentials](a, d), ends: pool.Make[transport.Outcome](a, d),
	}
	scale := elem.Log(mean)
	f.Shortest, f.Longest = min(0, scale)-farthestDeflated, max(0, scale)+farthestDeflated
	if t.Squash == transport.None { // T transports the projection of T'(X) as it is
		f.Longest = elem.Log(limit.Point / float64(m))
	}
	return f
}

func (f *deflation) rowOf(v []float64, i int) []float64 { return v[i*f.M : (i+1)*f.M] }
func (f *deflation) rowY(v []float64, i int) []float64  { return v[i*f.np : (i+1)*f.np] }

// load loads the transport of row i of X, its hidden cells left out, onto b'_i.
func (f *deflation) load(v *rowSpace, i int) {
	f.read(v, i)
	f.mapRows.load(v, v.x, i)
}

// deflate fills row i of Y with T'_i(X_i), 0 in hidden cells.
func (f *deflation) deflate(v *rowSpace, i int) {
	f.load(v, i)
	f.Quantiles(v.q, i)
	v.row.Want(v.t, v.q)
	f.ends[i] = v.row.Solve(f.Tolerance, f.MaxIterations, &f.Warm[i])
	copy(f.rowOf(f.h, i), v.row.Potentials().H)
	f.solvedAt(v, i)
	y := f.rowY(f.y, i)[:f.cells.N]
	copy(y, v.t)
	for j, o := range v.observed {
		if !o {
			y[j] = 0
		}
	}
}

// solvedAt notes the potentials of row i, whose transport the workspace holds: H is the row of h that
// later solves overwrite. Center and squash depend on x alone.
func (f *deflation) solvedAt(v *rowSpace, i int) {
	f.solved[i] = v.row.Potentials()
	f.solved[i].H = f.rowOf(f.h, i)
}

// back makes the steps of F'_i and R'_i from Ȳ_i.
func (f *deflation) back(v *rowSpace, i int) {
	f.load(v, i)
	v.row.Return(f.rowOf(f.h, i))
	f.Quantiles(v.q, i)
	clear(v.z)
	copy(v.z[:f.cells.N], f.rowY(f.ybar, i))
	v.row.Adjoint(transport.Cotangent{Z: v.z, Q: v.q})
	v.row.GradLogits(v.den)
	f.StepF(i, v.den, f.at)
	v.row.GradQ(v.den)
	f.StepR(i, v.den, 1, f.at)
}

// calibrate fits the increments of q'_i by EM steps at the plan of X_i onto even weights, so that
// T'_i(X_i) is near row i of the product of the given factors.
func (f *deflation) calibrate(v *rowSpace, i int, to *factors) {
	r := v.row
	f.load(v, i)
	r.Solve(f.Tolerance, f.MaxIterations, &f.Warm[i])
	goal := f.rowY(f.y, i) // scratch: Y is not in use yet
	to.reconstruct(goal, i)
	sees := func(j int) bool { return v.observed == nil || v.observed[j] }
	weight := func(j int) float64 {
		if v.weights == nil {
			return 1
		}
		return v.weights[j]
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for j, w := range goal[:to.n] {
		if sees(j) {
			lo, hi = min(lo, w), max(hi, w)
		}
	}
	inc := f.Increments(i)
	for l := range inc {
		inc[l] = (hi - lo) / float64(f.M)
	}
	inc[0] = max(lo, FloorStart*hi)
	low := unitDeflation * hi
	for l := range inc {
		inc[l] = max(inc[l], low)
	}
	num, den := v.num, v.den
	clear(v.z)
	for j := range v.z[:to.n] {
		if sees(j) {
			v.z[j] = weight(j)
		}
	}
	r.Columns(den, v.z)
	r.Tails(den)
	for range calibration {
		f.Quantiles(v.q, i)
		r.Average(v.t, v.q)
		for j := range v.z[:to.n] {
			if sees(j) {
				v.z[j] = weight(j) * (goal[j] / max(v.t[j], low))
			}
		}
		r.Columns(num, v.z)
		r.Tails(num)
		for l, tail := range num {
			// an unconverged plan may leave levels empty
			inc[l] = max(inc[l]*divergence.KL.Step(tail, den[l]), low)
		}
	}
	for l, d := range inc {
		f.R[i*f.M+l] = elem.Log(d)
	}
	f.FromR(i)
	clear(goal)
}
