package quantmf

// This file holds the units in which a fit sees x, and the way back from them. Sums
// of powers of x leave the range of numbers where its unit is far from 1, so a fit
// works on
//
//	x'_ij = (x_ij - shift_i) 2^{-e_i},
//
// and hands its model over in the units of x. A power of two is exact, and even
// exponents keep the roots of it exact. All of it is 0, and x' is x itself, where the
// largest |x| lies within 2^±100 and x is not negative.
//
// # Scale
//
// All rows have the exponent e of the largest of them, which comes to [1,4); the loss
// of x is then 2^{βe} times that of x'. An NMF has no other. The maps of QMF and QMFQ
// are free to give every row a scale of its own, so a row that lies more than 2^100
// below the largest is raised to there, and its loss counts 2^{β(e_i-e)} times what it
// is of x'.
//
// # Shift
//
// Under Frobenius those maps are free to give every row an offset, too. Where x has a
// negative value a row is taken about its lowest visible one: x' is not negative, all
// starts and floors are relative to what a row spreads, and q_1 alone may be of either
// sign (qmf.go).

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
)

// ordinary is the binary exponent within which a largest value is left as it is, and
// how far below the largest row another one may lie.
const ordinary = 100

// exponentOf returns 0 for 0 and for what is within 2^±ordinary, else the even e that
// brings top 2^-e to [1,4).
func exponentOf(top float64) int {
	if top == 0 || top >= 0x1p-100 && top <= 0x1p100 {
		return 0
	}
	_, e := math.Frexp(top)
	return (e - 1) &^ 1
}

// units are those of one matrix. Slices are nil where all of their entries say nothing.
type units struct {
	signed bool      // rows are taken about their lowest value
	shift  []float64 // of each row
	all    int       // e
	each   []int     // e_i
	weight []float64 // 2^{β(e_i-e)}
}

// unitsOf returns the units for rows of the given largest values, without a shift.
func unitsOf(l Loss, top []float64, byRow bool) (u units) {
	whole := slices.Max(top)
	u.all = exponentOf(whole)
	if !byRow {
		return u
	}
	_, floor := math.Frexp(math.Ldexp(whole, -u.all))
	floor = (floor-1)&^1 - ordinary
	for i, t := range top {
		_, e := math.Frexp(math.Ldexp(t, -u.all))
		e = (e - 1) &^ 1
		if t == 0 || e >= floor {
			continue
		}
		if u.each == nil {
			u.each, u.weight = make([]int, len(top)), make([]float64, len(top))
			for h := range u.each {
				u.each[h], u.weight[h] = u.all, 1
			}
		}
		u.each[i] = u.all + e - floor
		u.weight[i] = l.unit(e - floor)
	}
	return u
}

// plain tells whether x' is x.
func (u *units) plain() bool { return !u.signed && u.all == 0 && u.each == nil }

// exponent returns e_i, and offset what row i is taken about.
func (u *units) exponent(i int) int {
	if u.each == nil {
		return u.all
	}
	return u.each[i]
}

func (u *units) offset(i int) float64 {
	if u.shift == nil {
		return 0
	}
	return u.shift[i]
}

// share returns what the loss of row i of x' counts in that of the matrix.
func (u *units) share(i int) float64 {
	if u.weight == nil {
		return 1
	}
	return u.weight[i]
}

// inward returns x', a copy where it is not x itself.
func (u *units) inward(x Mat) Mat {
	if u.plain() {
		return x
	}
	y := NewMat(x.Rows, x.Cols)
	for i := range y.Rows {
		row, e, offset := y.Row(i), u.exponent(i), u.offset(i)
		for j, v := range x.Row(i) {
			row[j] = math.Ldexp(v-offset, -e)
		}
	}
	return y
}

// outward brings rows of values of x' to the units of x.
func (u *units) outward(m Mat) {
	if u.plain() {
		return
	}
	for i := range m.Rows {
		row, e, offset := m.Row(i), u.exponent(i), u.offset(i)
		for j, v := range row {
			row[j] = math.Ldexp(v, e) + offset
		}
	}
}

// root returns 2^{e/2}, the unit of the factors of an NMF.
func (u *units) root() float64 { return math.Ldexp(1, u.all/2) }

// enter brings the options that are in the units of x to those of x'.
func (c *config) enter(u *units) {
	if u.all == 0 {
		return
	}
	unit := c.loss.unit(u.all)
	if c.penalty > 0 {
		grows := 1.0
		if !c.maps { // with the factors
			grows = u.root()
		}
		c.penalty = min(c.penalty*grows/unit, mostPenalty)
	}
	if tell := c.progress; tell != nil {
		c.progress = func(p Progress) error {
			p.Loss *= unit
			return tell(p)
		}
	}
}

// losses brings losses of x' to those of x.
func (u *units) losses(l Loss, v []float64) {
	if u.all == 0 {
		return
	}
	unit := l.unit(u.all)
	for i := range v {
		v[i] *= unit
	}
}

// pick returns the units of some of the rows.
func (u *units) pick(rows []int) units {
	p := units{signed: u.signed, all: u.all}
	for _, i := range rows {
		if u.shift != nil {
			p.shift = append(p.shift, u.shift[i])
		}
		if u.each != nil {
			p.each, p.weight = append(p.each, u.each[i]), append(p.weight, u.weight[i])
		}
	}
	return p
}

// unit returns 2^{βe}: how the loss grows where x and t do by 2^e.
func (l Loss) unit(e int) float64 {
	if p := float64(l) * float64(e); p == math.Trunc(p) {
		return math.Ldexp(1, int(p))
	}
	return elem.Exp(float64(float64(l)*float64(e)) * math.Ln2)
}

// enter makes the cells those of x', for a fit under the loss whose maps give every
// row a scale of its own, and an offset where x is signed; or of neither.
func (s *cells) enter(l Loss, maps bool) {
	low, top := make([]float64, s.x.Rows), make([]float64, s.x.Rows)
	signed := false
	for i := range low {
		low[i] = math.Inf(1)
		for _, v := range s.x.Row(i) {
			if v == v {
				low[i] = min(low[i], v)
			}
		}
		signed = signed || low[i] < 0
	}
	for i := range top { // held-out cells too: none of them may overflow
		for _, v := range s.full.Row(i) {
			if signed {
				v -= low[i]
			}
			if v == v {
				top[i] = max(top[i], math.Abs(v))
			}
		}
	}
	s.units = unitsOf(l, top, maps)
	if signed {
		s.signed, s.shift = true, low
	}
	same := s.held == nil
	s.x = s.units.inward(s.x)
	if s.full = s.units.inward(s.full); same {
		s.full = s.x
	}
}

// divergence returns Δ(x,t) in whatever units the two are. t is kept from 0 as value
// has it, in their units; under Frobenius nothing is divided by, and it may be
// negative.
func (l Loss) divergence(x, t float64) float64 {
	if l == Frobenius {
		return l.value(x, t, math.Inf(-1))
	}
	top := max(x, t)
	if top == 0 && l > 0 {
		return 0
	}
	if !distant(top) {
		return l.value(x, t, l.least())
	}
	e := exponentOf(top)
	return l.value(math.Ldexp(x, -e), math.Ldexp(t, -e), l.least()) * l.unit(e)
}

// distant tells whether values up to top are too far from 1 to be taken as they are.
func distant(top float64) bool { return top != 0 && !(top >= 0x1p-200 && top <= 0x1p200) }
