// Package survival holds the survival analysis that the experiments need: Cox's
// proportional hazards model, the Kaplan-Meier estimate, the log-rank test and
// corrections for several tests. Results agree with the R package survival, its
// rule for ending Newton's iterations included (survival_test.go).
package survival

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Ties says how deaths at one time enter the partial likelihood.
type Ties string

const (
	Efron   Ties = "efron"   // an average over the possible orders of the deaths: R's default
	Breslow Ties = "breslow" // each death has the whole risk set
	Exact   Ties = "exact"   // conditional on the number of deaths at each time
)

// Test is a statistic that has a χ² distribution under the null hypothesis.
type Test struct {
	Statistic float64
	Freedom   int
	P         float64
}

// Cox is a fitted proportional hazards model: the hazard of a sample with covariates x
// is that of the baseline times exp(Σ Coef_c x_c).
type Cox struct {
	Coef, SE    []float64
	Z, P        []float64   // Coef/SE, and its two-sided normal p-value
	Var         [][]float64 // covariance of Coef: the inverse of the observed information
	LogLikNull  float64     // partial log likelihood at Coef = 0
	LogLik      float64
	LR, Wald    Test // of Coef = 0
	Score       Test
	Concordance float64 // share of comparable pairs that the model orders correctly, ties counting half
	N, Events   int
	Iterations  int
	// Converged is false where the iterations ended at their limit. The likelihood then
	// usually has no maximum, a coefficient is infinite, and Z and P have no meaning.
	Converged bool
}

// FitCox fits the model to n samples by Newton's method. time has n numbers, event is
// true for a death and false for a censored sample, x has n rows of p covariates. The
// iterations end as those of R do: when the log likelihood has changed by at most 1e-9 of
// its value, or after 20 iterations.
func FitCox(time []float64, event []bool, x [][]float64, ties Ties) (*Cox, error) {
	n := len(time)
	if n == 0 || len(event) != n || len(x) != n {
		return nil, errors.New("survival: times, events and covariates differ in number")
	}
	p := len(x[0])
	deaths := 0
	for _, e := range event {
		if e {
			deaths++
		}
	}
	if deaths == 0 {
		return nil, errors.New("survival: no event")
	}
	// Covariates are centred and scaled. The latest samples come first, so that risk sets grow from sample to
	// sample.
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case time[i] > time[j]:
			return -1
		case time[i] < time[j]:
			return 1
		}
		return 0
	})
	scale := make([]float64, p)
	s := &sample{p: p, ties: ties}
	for _, i := range order {
		s.time = append(s.time, time[i])
		s.event = append(s.event, event[i])
		s.x = append(s.x, slices.Clone(x[i]))
	}
	for c := range p {
		mean, size := 0.0, 0.0
		for i := range n {
			mean += s.x[i][c] / float64(n)
		}
		for i := range n {
			s.x[i][c] -= mean
			size += math.Abs(s.x[i][c]) / float64(n)
		}
		if !(size > 1e-12*math.Abs(mean)) || math.IsInf(size, 0) {
			return nil, fmt.Errorf("survival: covariate %d is constant or not finite", c)
		}
		scale[c] = size
		for i := range n {
			s.x[i][c] /= size
		}
	}

	m := &Cox{N: n, Events: deaths}
	beta := make([]float64, p)
	at := s.likelihood(beta)
	m.LogLikNull = at.value
	step, err := solve(at.information, at.score)
	if err != nil {
		return nil, err
	}
	m.Score = chi2(dot(step, at.score), p)
	next := add(beta, step)
	halving := false
	for m.Iterations = 1; m.Iterations <= 20; m.Iterations++ {
		to := s.likelihood(next)
		finite := !math.IsNaN(to.value) && !math.IsInf(to.value, 0)
		if finite && !halving && math.Abs(1-at.value/to.value) <= 1e-9 {
			at, beta, m.Converged = to, next, true
			break
		}
		if !finite || to.value < at.value {
			halving = true
			half := make([]float64, p)
			for c := range half {
				half[c] = (next[c] + beta[c]) / 2
			}
			next = half
			continue
		}
		halving = false
		at, beta = to, next
		if step, err = solve(at.information, at.score); err != nil {
			return nil, err
		}
		next = add(beta, step)
	}
	m.Iterations = min(m.Iterations, 20)
	m.LogLik = at.value
	inverse, err := invert(at.information)
	if err != nil {
		return nil, err
	}
	risk := make([]float64, n)
	for i := range n {
		risk[i] = dot(s.x[i], beta)
	}
	m.Concordance = concordance(s.time, s.event, risk)
	m.Var = make([][]float64, p)
	m.Coef, m.SE, m.Z, m.P = make([]float64, p), make([]float64, p), make([]float64, p), make([]float64, p)
	for c := range p {
		m.Var[c] = make([]float64, p)
		for e := range p {
			m.Var[c][e] = inverse[c][e] / scale[c] / scale[e]
		}
		m.Coef[c] = beta[c] / scale[c]
		m.SE[c] = math.Sqrt(m.Var[c][c])
		m.Z[c] = m.Coef[c] / m.SE[c]
		m.P[c] = math.Erfc(math.Abs(m.Z[c]) / math.Sqrt2)
	}
	m.LR = chi2(2*(m.LogLik-m.LogLikNull), p)
	w := 0.0
	for c := range p {
		for e := range p {
			w += beta[c] * at.information[c][e] * beta[e]
		}
	}
	m.Wald = chi2(w, p)
	return m, nil
}

// sample holds the data, latest times first.
type sample struct {
	time  []float64
	event []bool
	x     [][]float64
	p     int
	ties  Ties
}

// likelihood is the partial log likelihood at one beta with its derivatives.
type likelihood struct {
	value       float64
	score       []float64
	information [][]float64
}

// moments are Σ θ, Σ θ x and Σ θ x xᵀ over a set of samples, θ = exp(x·β).
type moments struct {
	s0 float64
	s1 []float64
	s2 [][]float64
}

func newMoments(p int) *moments {
	return &moments{s1: make([]float64, p), s2: square(p)}
}

func (m *moments) add(theta float64, x []float64) {
	m.s0 += theta
	for c, v := range x {
		m.s1[c] += theta * v
		for e := range c + 1 {
			m.s2[c][e] += theta * v * x[e]
		}
	}
}

func (s *sample) likelihood(beta []float64) likelihood {
	l := likelihood{score: make([]float64, s.p), information: square(s.p)}
	risk := newMoments(s.p)
	var theta []float64
	for i := 0; i < len(s.time); {
		dead, deaths := newMoments(s.p), 0
		end := i
		for ; end < len(s.time) && s.time[end] == s.time[i]; end++ {
			eta := dot(s.x[end], beta)
			t := math.Exp(eta)
			theta = append(theta, t)
			risk.add(t, s.x[end])
			if s.event[end] {
				deaths++
				dead.add(t, s.x[end])
				l.value += eta
				for c, v := range s.x[end] {
					l.score[c] += v
				}
			}
		}
		switch {
		case deaths == 0:
		case s.ties == Exact && deaths > 1:
			l.exact(theta, s.x[:end], deaths)
		default:
			for r := range deaths {
				share := 0.0
				if s.ties == Efron {
					share = float64(r) / float64(deaths)
				}
				l.subtract(risk, dead, share)
			}
		}
		i = end
	}
	for c := range s.p {
		for e := range c {
			l.information[e][c] = l.information[c][e]
		}
	}
	return l
}

// subtract subtracts log(Σ_risk θ - share Σ_dead θ) and its derivatives.
func (l *likelihood) subtract(risk, dead *moments, share float64) {
	s0 := risk.s0 - share*dead.s0
	l.value -= math.Log(s0)
	mean := make([]float64, len(l.score))
	for c := range mean {
		mean[c] = (risk.s1[c] - share*dead.s1[c]) / s0
		l.score[c] -= mean[c]
		for e := range c + 1 {
			l.information[c][e] += (risk.s2[c][e]-share*dead.s2[c][e])/s0 - mean[c]*mean[e]
		}
	}
}

// exact subtracts log e_d(θ) and its derivatives. e_d is the sum over all sets of d samples at
// risk of the products of their θ. It is computed by a recurrence: e_d of a set is e_d without its
// last sample, plus the θ of that sample times e_{d-1} without it.
func (l *likelihood) exact(theta []float64, x [][]float64, d int) {
	p := len(l.score)
	// e_d is homogeneous of degree d, so it is computed of θ/top, which does not overflow
	top := slices.Max(theta)
	sums := make([]*moments, d+1)
	for j := range sums {
		sums[j] = newMoments(p)
	}
	sums[0].s0 = 1
	for i, t := range theta {
		t /= top
		for j := min(d, i+1); j >= 1; j-- {
			to, from := sums[j], sums[j-1]
			// f' = f + t g with t_c = t x_c: (t g)_c = t (g_c + x_c g), and so on.
			for c := range p {
				for e := range c + 1 {
					to.s2[c][e] += t * (from.s2[c][e] + x[i][c]*from.s1[e] + x[i][e]*from.s1[c] +
						x[i][c]*x[i][e]*from.s0)
				}
			}
			for c := range p {
				to.s1[c] += t * (from.s1[c] + x[i][c]*from.s0)
			}
			to.s0 += t * from.s0
		}
	}
	l.value -= float64(d) * math.Log(top)
	l.subtract(sums[d], newMoments(p), 0)
}

// concordance returns Harrell's concordance of risk with time. A pair counts if the sample with the
// shorter time died, or if one died and the other was censored at the same time.
func concordance(time []float64, event []bool, risk []float64) float64 {
	right, all := 0.0, 0.0
	for i := range time {
		if !event[i] {
			continue
		}
		for j := range time {
			if time[j] < time[i] || time[j] == time[i] && (event[j] || i == j) {
				continue
			}
			all++
			switch {
			case math.Abs(risk[i]-risk[j]) <= 1e-12*max(math.Abs(risk[i]), math.Abs(risk[j])):
				right += 0.5
			case risk[i] > risk[j]:
				right++
			}
		}
	}
	return right / all
}

// chi2 returns the test of a statistic that has a χ² distribution.
func chi2(statistic float64, freedom int) Test {
	p := 1.0
	if statistic > 0 {
		p = mathext.GammaIncRegComp(float64(freedom)/2, statistic/2)
	}
	return Test{statistic, freedom, p}
}

func square(p int) [][]float64 {
	m := make([][]float64, p)
	for c := range m {
		m[c] = make([]float64, p)
	}
	return m
}

func dot(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func add(a, b []float64) []float64 {
	s := slices.Clone(a)
	for i := range s {
		s[i] += b[i]
	}
	return s
}

// factor returns the Cholesky factor of a symmetric matrix.
func factor(a [][]float64) ([][]float64, error) {
	l := square(len(a))
	for i := range a {
		for j := range i + 1 {
			v := a[i][j] - dot(l[i][:j], l[j][:j])
			if i > j {
				l[i][j] = v / l[j][j]
				continue
			}
			if !(v > 1e-12*a[i][i]) {
				return nil, fmt.Errorf("survival: covariate %d is a combination of those before it, or "+
					"says nothing", i)
			}
			l[i][i] = math.Sqrt(v)
		}
	}
	return l, nil
}

func solve(a [][]float64, b []float64) ([]float64, error) {
	l, err := factor(a)
	if err != nil {
		return nil, err
	}
	x := slices.Clone(b)
	for i := range x {
		x[i] = (x[i] - dot(l[i][:i], x[:i])) / l[i][i]
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := i + 1; j < len(x); j++ {
			x[i] -= l[j][i] * x[j]
		}
		x[i] /= l[i][i]
	}
	return x, nil
}

func invert(a [][]float64) ([][]float64, error) {
	inverse := square(len(a))
	for c := range a {
		unit := make([]float64, len(a))
		unit[c] = 1
		column, err := solve(a, unit)
		if err != nil {
			return nil, err
		}
		for e := range column {
			inverse[e][c] = column[e]
		}
	}
	return inverse, nil
}
