// Package wide has float64 with a larger range, for products of weights whose ratios leave its own.
package wide

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
)

// Number is the positive number f·2^(512 e), f in [2^-256, 2^256): float64 with a larger
// range. Operations round as those of float64 do.
type Number struct {
	f float64
	e int
}

// Of returns a positive number.
func Of(v float64) Number { return Number{v, 0}.normal() }

// normal brings f into its range.
func (w Number) normal() Number {
	switch {
	case w.f >= 0x1p256:
		return Number{w.f * 0x1p-512, w.e + 1}
	case w.f < 0x1p-256:
		return Number{w.f * 0x1p512, w.e - 1}
	}
	return w
}

// Times, Over and Plus are w·v, w/v and w+v.
func (w Number) Times(v Number) Number { return Number{w.f * v.f, w.e + v.e}.normal() }
func (w Number) Over(v Number) Number  { return Number{w.f / v.f, w.e - v.e}.normal() }

func (w Number) Plus(v Number) Number {
	if w.e < v.e {
		w, v = v, w
	}
	switch w.e - v.e {
	case 0:
		return Number{w.f + v.f, w.e}.normal()
	case 1:
		return Number{w.f + float64(v.f*0x1p-512), w.e}.normal()
	}
	return w // by more than 2^512
}

// Float returns w, 0 or +Inf where it is out of range.
func (w Number) Float() float64 {
	switch {
	case w.e > 1:
		return math.Inf(1)
	case w.e < -3:
		return 0
	}
	return math.Ldexp(w.f, 512*w.e)
}

// Exp returns e^v, with v clamped to ±farthest: a weight beyond that is too small or too
// large to change any sum. It never falls as v rises: [elem.Exp] does not, products with a
// constant do not, and where one more factor e^±piece is split off, the result with it and
// without it is the same number.
func Exp(v float64) Number {
	const piece, farthest = 512, 1 << 14
	v = min(max(v, -farthest), farthest)
	w, step := Number{1, 0}, math.Copysign(piece, v)
	if math.Abs(v) >= piece {
		by := Number{elem.Exp(step), 0}.normal()
		for math.Abs(v) >= piece {
			v -= step
			w = w.Times(by)
		}
	}
	return w.Times(Number{elem.Exp(v), 0}.normal())
}
