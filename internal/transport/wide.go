package transport

// This file holds float64 with a larger range, for products of weights whose ratios leave its own.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
)

// Wide is the positive number f·2^(512 e), f in [2^-256, 2^256): float64 with a larger
// range. Operations round as those of float64 do.
type Wide struct {
	f float64
	e int
}

// WideOf returns a positive number.
func WideOf(v float64) Wide { return Wide{v, 0}.normal() }

// normal brings f into its range.
func (w Wide) normal() Wide {
	switch {
	case w.f >= 0x1p256:
		return Wide{w.f * 0x1p-512, w.e + 1}
	case w.f < 0x1p-256:
		return Wide{w.f * 0x1p512, w.e - 1}
	}
	return w
}

// Times, Over and Plus are w·v, w/v and w+v.
func (w Wide) Times(v Wide) Wide { return Wide{w.f * v.f, w.e + v.e}.normal() }
func (w Wide) Over(v Wide) Wide  { return Wide{w.f / v.f, w.e - v.e}.normal() }

func (w Wide) Plus(v Wide) Wide {
	if w.e < v.e {
		w, v = v, w
	}
	switch w.e - v.e {
	case 0:
		return Wide{w.f + v.f, w.e}.normal()
	case 1:
		return Wide{w.f + float64(v.f*0x1p-512), w.e}.normal()
	}
	return w // by more than 2^512
}

// Float returns w, 0 or +Inf where it is out of range.
func (w Wide) Float() float64 {
	switch {
	case w.e > 1:
		return math.Inf(1)
	case w.e < -3:
		return 0
	}
	return math.Ldexp(w.f, 512*w.e)
}

// WideExp returns e^v, with v clamped to ±farthest: a weight beyond that is too small or too
// large to change any sum. It never falls as v rises: [elem.Exp] does not, products with a
// constant do not, and where one more factor e^±piece is split off, the result with it and
// without it is the same number.
func WideExp(v float64) Wide {
	const piece, farthest = 512, 1 << 14
	v = min(max(v, -farthest), farthest)
	w, step := Wide{1, 0}, math.Copysign(piece, v)
	if math.Abs(v) >= piece {
		by := WideOf(elem.Exp(step))
		for math.Abs(v) >= piece {
			v -= step
			w = w.Times(by)
		}
	}
	return w.Times(WideOf(elem.Exp(v)))
}
