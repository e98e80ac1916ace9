// Package unit has the units in which a matrix is fitted. Sums of powers of x overflow or underflow where the
// unit of x is far from 1, so a fit works on
//
//	x'_ij = (x_ij - shift_i) 2^{-e_i},
//
// and converts its model to the units of x at the end. Multiplication by 2^{-e_i} is
// exact, and e_i is even, so that 2^{e_i/2} is exact, too. Where the largest |x| lies
// within 2^±100 and x is not negative, x' is x itself.
//
// # Scale
//
// Every e_i is the exponent e that brings the largest |x| to [1,4); the loss of x is
// then 2^{βe} times that of x'. An NMF has no other exponent. The maps of QMF and QMFQ
// are free to give every row a scale of its own. So a row that lies more than 2^100
// below the largest gets a smaller e_i, which brings it to 2^-100 of the largest. Its
// loss in x' is weighted by 2^{β(e_i-e)}.
//
// # Shift
//
// Under Frobenius those maps are free to give every row an offset, too. Where x has a
// negative value the shift of a row is its lowest visible value: x' is not negative,
// starts and floors are relative to the range of the row, and q_1 alone may be of either
// sign (internal/monotone).
package unit

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
)

// Units are the units of one matrix. Shift is nil where all are 0, Each and Weight where all
// rows have the exponent All.
type Units struct {
	Signed bool      // rows are taken about their lowest value
	Shift  []float64 // of each row
	All    int       // e
	Each   []int     // e_i
	Weight []float64 // 2^{β(e_i-e)}
}

// Of returns the units for rows of the given largest values, without a shift.
func Of(l divergence.Loss, top []float64, byRow bool) (u Units) {
	whole := slices.Max(top)
	u.All = divergence.ExponentOf(whole)
	if !byRow {
		return u
	}
	_, floor := math.Frexp(math.Ldexp(whole, -u.All))
	floor = (floor-1)&^1 - divergence.Ordinary
	for i, t := range top {
		_, e := math.Frexp(math.Ldexp(t, -u.All))
		e = (e - 1) &^ 1
		if t == 0 || e >= floor {
			continue
		}
		if u.Each == nil {
			u.Each, u.Weight = make([]int, len(top)), make([]float64, len(top))
			for h := range u.Each {
				u.Each[h], u.Weight[h] = u.All, 1
			}
		}
		u.Each[i] = u.All + e - floor
		u.Weight[i] = l.Unit(e - floor)
	}
	return u
}

// Plain tells whether x' is x.
func (u *Units) Plain() bool { return !u.Signed && u.All == 0 && u.Each == nil }

// Exponent returns e_i, and Offset the shift of row i.
func (u *Units) Exponent(i int) int {
	if u.Each == nil {
		return u.All
	}
	return u.Each[i]
}

func (u *Units) Offset(i int) float64 {
	if u.Shift == nil {
		return 0
	}
	return u.Shift[i]
}

// LossWeight returns the weight of the loss of row i of x' in that of the matrix.
func (u *Units) LossWeight(i int) float64 {
	if u.Weight == nil {
		return 1
	}
	return u.Weight[i]
}

// Bring makes row i of x' of that of x.
func (u *Units) Bring(row []float64, i int) {
	e, offset := u.Exponent(i), u.Offset(i)
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
	e, offset := u.Exponent(i), u.Offset(i)
	for j, v := range row {
		row[j] = math.Ldexp(v, e) + offset
	}
}

// Root returns 2^{e/2}, the unit of the factors of an NMF.
func (u *Units) Root() float64 { return math.Ldexp(1, u.All/2) }

// Losses brings losses of x' to those of x.
func (u *Units) Losses(l divergence.Loss, v []float64) {
	if u.All == 0 {
		return
	}
	unit := l.Unit(u.All)
	for i := range v {
		v[i] *= unit
	}
}

// Pick returns the units of some of the rows.
func (u *Units) Pick(rows []int) Units {
	p := Units{Signed: u.Signed, All: u.All}
	for _, i := range rows {
		if u.Shift != nil {
			p.Shift = append(p.Shift, u.Shift[i])
		}
		if u.Each != nil {
			p.Each, p.Weight = append(p.Each, u.Each[i]), append(p.Weight, u.Weight[i])
		}
	}
	return p
}
