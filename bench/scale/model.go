//go:build linux

package main

// This file holds the formulas of the time of an epoch: sums of a few terms, whose factors are fitted to the
// measured times.

import "math"

// term is a number that the time of an epoch grows with.
type term struct {
	name string
	of   func(w work, nonzero float64) float64
}

func cells(w work, _ float64) float64 { return float64(w.d) * float64(w.n) }

// terms returns the terms of the formula of a kind of fits.
func terms(kind string) []term {
	dn := term{"d n", cells}
	dnk := term{"d n k", func(w work, nonzero float64) float64 { return cells(w, nonzero) * float64(w.k) }}
	each := term{"nonzero", func(_ work, nonzero float64) float64 { return nonzero }}
	eachK := term{"nonzero k", func(w work, nonzero float64) float64 { return nonzero * float64(w.k) }}
	sums := term{"n (k + 6)", func(w work, _ float64) float64 { return float64(w.n) * float64(w.k+6) }}
	// All rows read the same n numbers for each component. The larger n is, the fewer of them stay in the
	// caches.
	wide := func(w work) float64 { return math.Log2(1 + float64(w.n)/8000) }
	dnWide := term{"d n log₂(1 + n/8000)",
		func(w work, nonzero float64) float64 { return cells(w, nonzero) * wide(w) }}
	eachWide := term{"nonzero k log₂(1 + n/8000)",
		func(w work, nonzero float64) float64 { return nonzero * float64(w.k) * wide(w) }}
	switch kind {
	case "qmf":
		// A row of 4096 samples or more is solved by points, so that its levels cost no more with more
		// samples.
		levels := term{"d min(n, 4096) m",
			func(w work, _ float64) float64 { return float64(w.d) * min(float64(w.n), 4096) * float64(w.m) }}
		return []term{dn, dnWide, levels,
			{"d n k (k + 3)", func(w work,
				nonzero float64) float64 {
				return cells(w, nonzero) * float64(w.k*(w.k+3))
			}}}
	case "nmf-sparse", "nmf-sparse-updates":
		return []term{each, eachK, eachWide, sums}
	}
	return []term{dn, dnk, dnWide}
}

// fitted is a formula: its factors in seconds, and the largest ratio between a measured time and the formula.
type fitted struct {
	terms   []term
	factors []float64
	off     float64
}

func (f *fitted) at(w work, nonzero float64) (s float64) {
	for i, t := range f.terms {
		s += f.factors[i] * t.of(w, nonzero)
	}
	return s
}

// startTerms returns the terms of the time before the first epoch of a QMF: short fits of up to 512 rows and
// 2¹⁹ cells, and the factors and maps of all rows.
func startTerms() []term {
	tried := func(w work, _ float64) float64 { return min(float64(min(w.d, 512))*float64(w.n), 1<<19) }
	return []term{{"min(d n, 512 n, 2¹⁹)", tried},
		{"min(d n, 512 n, 2¹⁹) k",
			func(w work, nonzero float64) float64 { return tried(w, nonzero) * float64(w.k) }},
		{"d n", cells}, {"d n k",
			func(w work, nonzero float64) float64 { return cells(w, nonzero) * float64(w.k) }}}
}

// fit finds the non-negative factors that minimise the sum of squared relative errors: of all subsets of the
// terms whose least squares leave no factor negative, it takes the best.
func fit(all []term, works []work, nonzero, seconds []float64) *fitted {
	best, least := &fitted{terms: all, factors: make([]float64, len(all))}, math.Inf(1)
	for choice := 1; choice < 1<<len(all); choice++ {
		var some []int
		for i := range all {
			if choice>>i&1 == 1 {
				some = append(some, i)
			}
		}
		a, b := make([][]float64, len(some)), make([]float64, len(some))
		for p, i := range some {
			a[p] = make([]float64, len(some))
			for q, j := range some {
				for r, w := range works {
					a[p][q] += all[i].of(w, nonzero[r]) * all[j].of(w, nonzero[r]) / seconds[r] / seconds[r]
				}
			}
			for r, w := range works {
				b[p] += all[i].of(w, nonzero[r]) / seconds[r]
			}
		}
		x, ok := solve(a, b)
		f := &fitted{terms: all, factors: make([]float64, len(all)), off: 1}
		for p, i := range some {
			ok = ok && x[p] >= 0
			if ok {
				f.factors[i] = x[p]
			}
		}
		if !ok {
			continue
		}
		sum := 0.0
		for r, w := range works {
			ratio := f.at(w, nonzero[r]) / seconds[r]
			sum += (ratio - 1) * (ratio - 1)
			f.off = max(f.off, ratio, 1/ratio)
		}
		if sum < least {
			best, least = f, sum
		}
	}
	return best
}

// solve solves a x = b, where a is positive definite.
func solve(a [][]float64, b []float64) ([]float64, bool) {
	n := len(b)
	for i := range n {
		if !(a[i][i] > 0) {
			return nil, false
		}
		for r := i + 1; r < n; r++ {
			f := a[r][i] / a[i][i]
			for c := i; c < n; c++ {
				a[r][c] -= f * a[i][c]
			}
			b[r] -= f * b[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		for c := i + 1; c < n; c++ {
			b[i] -= a[i][c] * b[c]
		}
		b[i] /= a[i][i]
	}
	return b, true
}
