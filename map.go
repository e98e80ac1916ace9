package quantmf

// This file holds T as a function (paper §2.2, Definition 2.1): a solved transport maps every x, not only the
// samples that it was solved for. internal/place/curve.go has its formula.

import (
	"github.com/quantmf/quantmf/internal/place"
)

// Map is a fitted increasing function T, from the units of x to those of q. For a row of equal samples it is
// constant, with slope 0, unless [SquashNone] was given or it has a line
// ([WithLine]); so is the zero Map, at 0. It is not changed by its
// methods and may be used by several goroutines at once.
type Map struct{ of place.Curve }

// Map returns the function that [Transport.Quantile] takes at the samples, for
// any x. It agrees with Quantile to rounding, at ε = 0 to the bit. Errors are those of
// Quantile. Cost: m divisions, at ε = 0 those of Quantile.
func (t *Transport) Map(q []float64) (*Map, error) {
	if err := t.checkQ(q); err != nil {
		return nil, err
	}
	if t.hard != nil {
		return &Map{place.Staircase(t.hard, q)}, nil
	}
	r := t.row()
	defer workspaces.Put(r)
	return &Map{place.NewCurve(r.Potentials(), q, r.Targets(), r.Epsilon())}, nil
}

// At returns T(x), non-decreasing in x and, but for the line of a model, in [q_1,q_m]; NaN at NaN,
// and the limits of T at ±Inf, which are infinite where there is a line. A value beyond the range of
// float64 is the largest of its sign. Cost: m exponentials and 2m divisions; at ε = 0 two binary
// searches.
func (f *Map) At(x float64) float64 { return f.of.At(x) }

// Slope returns dT/dx >= 0: (2/ε) Cov_M(q, y) dx̃/dx, and the slope of the line of a model; 0 at ε = 0,
// and at ±Inf that of the line. Cost: that of At, and m²/2 divisions.
func (f *Map) Slope(x float64) float64 { return f.of.Slope(x) }

// Invert returns an x with T(x) = v, to the rounding of either; where T has a plateau at
// v, some x on it. A v outside the values that T takes, or a T of a single value, is a
// [*DataError] with Row = Col = -1. At ε = 0 so is a v that T jumps over; the x returned
// with that error is where T jumps. Cost: at most 200 times that of At and Slope, beside
// the search of a range that has v; at ε = 0 some ten binary searches.
func (f *Map) Invert(v float64) (float64, error) {
	x, problem := f.of.Invert(v)
	if problem != "" {
		return x, &DataError{Row: -1, Col: -1, Value: v, Problem: problem}
	}
	return x, nil
}
