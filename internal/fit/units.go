package fit

// This file has the units in which a matrix is fitted. Sums of powers of x overflow or underflow where the
// unit of x is far from 1, so a fit works on
//
//	x'_ij = (x_ij - shift_i) 2^{-e},
//
// and converts its model to the units of x at the end. Multiplication by 2^{-e} is
// exact, and e is even, so that 2^{e/2} is exact, too. Where the largest |x| lies
// within 2^±100 and x is not negative, x' is x itself. Otherwise e brings the largest |x| to [1,4);
// the loss of x is then 2^{βe} times that of x'.
//
// Under Frobenius the maps of QMF and QMFQ are free to give every row an offset. Where x has a
// negative value the shift of a row is its lowest visible value: x' is not negative,
// starts and floors are relative to the range of the row, and q_1 alone may be of either
// sign (internal/qmf).

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
)

// Units are the units of one matrix.
type Units struct {
	Signed bool      // rows are taken about their lowest value
	Shift  []float64 // of each row; nil: all are 0
	All    int       // e
}

// UnitsOf returns the units of rows the largest value of which is top, without a shift.
func UnitsOf(top float64) Units { return Units{All: divergence.ExponentOf(top)} }

// Plain tells whether x' is x.
func (u *Units) Plain() bool { return !u.Signed && u.All == 0 }

// Offset returns the shift of row i.
func (u *Units) Offset(i int) float64 {
	if u.Shift == nil {
		return 0
	}
	return u.Shift[i]
}

// Bring makes row i of x' of that of x.
func (u *Units) Bring(row []float64, i int) {
	e, offset := u.All, u.Offset(i)
	if e < -farthest || e > farthest {
		for j, v := range row {
			row[j] = math.Ldexp(v-offset, -e)
		}
		return
	}
	by := math.Ldexp(1, -e) // what is multiplied by it is rounded as by Ldexp
	for j, v := range row {
		row[j] = float64((v - offset) * by)
	}
}

// farthest is a magnitude of exponents e for which 2^-e is a normal number.
const farthest = 1000

// Outward brings a row of values of x' to the units of x.
func (u *Units) Outward(row []float64, i int) {
	e, offset := u.All, u.Offset(i)
	for j, v := range row {
		row[j] = math.Ldexp(v, e) + offset
	}
}

// Root returns 2^{e/2}, the unit of the factors of an NMF.
func (u *Units) Root() float64 { return math.Ldexp(1, u.All/2) }

// Losses brings losses of x' to those of x, at most the largest number: a start far above large x may have a
// loss beyond it.
func (u *Units) Losses(l divergence.Loss, v []float64) {
	if u.All == 0 {
		return
	}
	unit := l.Unit(u.All)
	for i := range v {
		v[i] = min(v[i]*unit, math.MaxFloat64)
	}
}

// Divergence returns the divergence of a cell x from t, both in the units of x, in those of x'.
func (u *Units) Divergence(l divergence.Loss, x, t float64) float64 {
	if u.All == 0 {
		return l.Divergence(x, t)
	}
	return l.Divergence(math.Ldexp(x, -u.All), math.Ldexp(t, -u.All))
}

// Pick returns the units of some of the rows.
func (u *Units) Pick(rows []int) Units {
	p := Units{Signed: u.Signed, All: u.All}
	for _, i := range rows {
		if u.Shift != nil {
			p.Shift = append(p.Shift, u.Shift[i])
		}
	}
	return p
}
