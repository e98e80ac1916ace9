package nmf

// This file holds the problem of one column in a half of Newton's method (newton.go): k unknowns with
// bounds, the Hessian that all columns share but for their diagonals,
//
//	g·s + sᵀHs/2 with B_j + s >= 0,   H = S C S,
//
// sweeps of coordinate descent towards its least, and the length of the step along the direction that they
// find.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
)

// metric is the Hessian that the columns of a half share: C, ones on its diagonal, where
// each has a diagonal of its own, or all of it.
type metric struct {
	c, diag, inverse []float64 // k × k; k: the diagonal before C was scaled; k: 1/C_aa
	floor            []float64 // k: what entries are not let fall below
	total            float64   // Σ W
}

// strip is some columns of B, k rows of n numbers: B itself, the gradient (where the metric is exact less
// that of the metric), the diagonal of the Hessian and, of solve, the direction; how low the sweeps may go;
// the mean of W in each column by that in all of them, the slope along the direction and the longest step.
type strip struct {
	n                     int
	b, g, h, p            []float64
	low, r, root          []float64
	weight, slope, limits []float64
}

// stripColumns is how many columns of V go through the sweeps together.
const stripColumns = 32

func (s *strip) cut(k, n int) {
	s.n = n
	for _, v := range []*[]float64{&s.b, &s.g, &s.h, &s.p, &s.low, &s.r, &s.root} {
		*v = (*v)[:k*n]
	}
}

// fill makes the metric from its lower triangle in h, which the sums of the factors make
// one of the total given. square is the weight of a penalty of the squares.
func (m *metric) fill(exact bool, total, square float64) {
	k := len(m.diag)
	m.total = total
	for a := range k {
		m.c[a*k+a] += square
		m.diag[a] = m.c[a*k+a]
	}
	for a := range k {
		for b := range a {
			v := m.c[a*k+b]
			if !exact {
				v /= float64(math.Sqrt(max(m.diag[a], divergence.LeastSum)) * math.Sqrt(max(m.diag[b],
					divergence.LeastSum)))
			}
			m.c[a*k+b], m.c[b*k+a] = v, v
		}
		if !exact {
			m.c[a*k+a] = 1 + ridge
		}
		// where the other factor is 0, 0 if there is a penalty
		m.inverse[a] = 1 / max(m.c[a*k+a], divergence.LeastSum)
	}
}

// held is the gradient of what does not move: whatever else there is, nothing goes up against it.
const held = 1e150

// hold keeps the first so many rows of B where they are: they cannot go down either.
func (s *strip) hold(rows int) {
	clear(s.b[:rows*s.n])
	for j := range s.g[:rows*s.n] {
		s.g[j] = held
	}
}

// solve fills p with the direction of every column, and the slope along it and the longest step.
func (m *metric) solve(s *strip) {
	n := s.n
	for a, low := range m.floor {
		if low == 0 {
			continue
		}
		row := s.b[a*n : (a+1)*n]
		for j, b := range row {
			row[j] = stepped(b, -low)
		}
	}
	for a, d := range m.diag {
		row, weight := s.h[a*n:(a+1)*n], s.weight[:n]
		low := float64(leastShare * d)
		for j, w := range weight {
			if least := float64(low * w); row[j] < least {
				row[j] = least
			}
		}
	}
	kernel.Metric(s.low, s.r, s.root, s.b, s.g, s.h, divergence.LeastSum)
	clear(s.p)
	kernel.Bounded(s.p, s.low, s.r, m.c, m.inverse, newtonSweeps)
	kernel.Direction(s.p, s.slope[:n], s.limits[:n], s.b, s.g, s.root, longestStep)
}

// weigh returns what the shared Hessian is multiplied by in a column whose W sums to sum,
// a share of its cells being visible, one of count columns.
func (m *metric) weigh(loss divergence.Loss, sum, share float64, count int) float64 {
	if loss == divergence.Frobenius {
		return share
	}
	return share * (m.total / max(sum, float64(m.total*1e-12)/float64(count), divergence.LeastSum))
}

// stepLength is the step along a direction of that slope: the root of the bound in newton.go ("A step"), of
// which c2 and c3 are the sums and rho is ρ, and at most most.
func stepLength(slope, c2, c3, rho, most float64) float64 {
	if !(slope < 0) {
		return 0
	}
	// (c3 - ρ c2) t² + b t + slope = 0
	b := c2 - float64(slope*rho)
	if !(b > 0) {
		return most
	}
	over := float64((c3-float64(rho*c2))/b) * (slope / b)
	t := 2 * (-slope / b) / (1 + math.Sqrt(max(1-float64(4*over), 0)))
	if !(t < most) {
		t = most
	}
	if t-t != 0 {
		return 0
	}
	return t
}

// stepped is an entry b after a step, 0 where nothing but rounding is left of it: that would
// bound the steps of the next epochs.
func stepped(b, by float64) float64 {
	if to := b + by; to > float64(1e-12*b) {
		return to
	}
	return 0
}

// inner is Σ a b.
func inner(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += float64(v * b[i])
	}
	return s
}

// lowest sets what the entries of components with these sums over count are not let fall
// below.
func (f *Newton) lowest(sums []float64, count int) {
	for c, v := range sums {
		f.metric.floor[c] = 0
		if f.Loss == divergence.KL && f.Partial && !f.Whole {
			f.metric.floor[c] = float64(leastEntry*v) / float64(count)
		}
	}
}
