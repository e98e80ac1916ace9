package projection

// This file holds how many numbers a projector holds.

import "math"

// Numbers returns about how many numbers a projector of [New] holds, in double precision:
// sizes may be beyond what any memory holds. The rows that its workers have at hand are
// left out. hidden says that there are hidden cells.
func Numbers(kind Kind, updates int, d, n, k float64, hidden bool) float64 {
	if kind == SVD {
		return product(2, min(d, n), d+n) + product(20, k, d+n)
	}
	state, shares := product(d+n, k), product(pieces, k, n)
	if hidden {
		state += product(n, k)
		shares *= 2
	}
	states := float64(updates) + 1
	if product(float64(updates), state) > mostStates {
		states = product(2, math.Ceil(math.Sqrt(float64(updates))))
	}
	return product(states, state) + shares + product(2, d+2*n, k)
}

// product is the product of some sizes, which no sum is fused with.
func product(of ...float64) float64 {
	p := 1.0
	for _, v := range of {
		p *= v
	}
	return p
}
