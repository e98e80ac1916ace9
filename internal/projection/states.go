package projection

// This file holds the states of the factors that the way back needs: which are kept, and
// which are made anew.

import "math"

// state is U_t and V_t with the sums that the denominators of updates are made of.
type state struct {
	u, v []float64 // d × k, k × np
	// for V_t+1: Uᵀ1 under KL, UᵀU under Frobenius; the denominator itself where cells are hidden
	sumU []float64
	sumV []float64 // for U_t: V1 under KL, VVᵀ under Frobenius; empty where cells are hidden
}

// states are the states 0 to updates, of which every c-th is kept, c the spacing, and the
// others are there for one stretch at a time. Stretch s is the states between sc and
// (s+1)c, without these two.
type states struct {
	updates int     // ≥ 1
	spacing int     // c, from 1 to updates
	kept    []state // states 0, c, 2c, ... below updates
	between []state // c-1 states: a stretch
	last    state   // state updates
	stretch int     // the number of the one in between; below 0: none
}

// newStates makes room for states as newState makes them.
func newStates(updates, spacing int, newState func() state) states {
	s := states{updates: updates, spacing: spacing, stretch: -1, last: newState(),
		kept: make([]state, (updates+spacing-1)/spacing), between: make([]state, spacing-1)}
	for i := range s.kept {
		s.kept[i] = newState()
	}
	for i := range s.between {
		s.between[i] = newState()
	}
	return s
}

// at returns state t, which is kept or in the stretch that is there. While a stretch is
// made, its states are there in turn.
func (s *states) at(t int) *state {
	switch {
	case t == s.updates:
		return &s.last
	case t%s.spacing == 0:
		return &s.kept[t/s.spacing]
	}
	return &s.between[t%s.spacing-1]
}

// spacing returns c for the given number of updates and of numbers in a state.
func spacing(updates int, size float64) int {
	if float64(updates)*size <= mostStates {
		return updates
	}
	c := int(math.Sqrt(float64(updates)))
	if c*c < updates {
		c++
	}
	return c
}
