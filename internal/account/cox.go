package account

// This file holds Cox's proportional hazards model: the hazard of a sample with covariates x is that of the
// baseline times exp(Σ β_c x_c). With θ = exp(x·β), Newton's method finds the β of the largest
//
//	Σ over times of d deaths  (Σ_dead x·β - Σ_{r<d} log(Σ_risk θ - r/d Σ_dead θ)),
//
// Efron's partial likelihood, R's default. It agrees with the R package survival, whose rule ends the
// iterations.

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf/internal/elem"
)

// Cox is a fitted proportional hazards model.
type Cox struct {
	Coef   []float64
	StdErr []float64
	P      []float64 // the two-sided normal p-value of each coefficient over its standard error
	LR     float64   // p-value of the likelihood ratio of all coefficients against none
	// Converged is false where the iterations ended at their limit. The likelihood then usually has no
	// maximum, a coefficient is infinite, and P has no meaning.
	Converged bool
}

// FitCox fits the model to n samples. time has n numbers, event is true for a death and false for a censored
// sample, x has n rows of p covariates. The iterations end as those of R do: when the log likelihood has
// changed by at most 1e-9 of its value, or after 20 iterations.
func FitCox(time []float64, event []bool, x [][]float64) (*Cox, error) {
	s, scale, err := newCohort(time, event, x)
	if err != nil {
		return nil, err
	}
	p := len(scale)
	beta, next := make([]float64, p), make([]float64, p)
	at := s.likelihood(beta)
	null := at.value
	step, err := at.newton()
	if err != nil {
		return nil, err
	}
	copy(next, step)
	m, halving := &Cox{}, false
	for range 20 {
		to := s.likelihood(next)
		finite := to.value-to.value == 0
		if finite && !halving && math.Abs(1-at.value/to.value) <= 1e-9 {
			at, beta, m.Converged = to, next, true
			break
		}
		halving = !finite || to.value < at.value
		if !halving {
			at, beta = to, slices.Clone(next)
			if step, err = at.newton(); err != nil {
				return nil, err
			}
		}
		for c := range next {
			if halving {
				next[c] = (next[c] + beta[c]) / 2
			} else {
				next[c] = beta[c] + step[c]
			}
		}
	}
	if err := at.factor(); err != nil {
		return nil, err
	}
	unit := make([]float64, p)
	for c := range p {
		clear(unit)
		unit[c] = 1
		deviation := math.Sqrt(at.solve(unit)[c])
		m.Coef = append(m.Coef, beta[c]/scale[c])
		m.StdErr = append(m.StdErr, deviation/scale[c])
		m.P = append(m.P, normal(beta[c]/deviation))
	}
	m.LR = chiSquared(2*(at.value-null), p)
	return m, nil
}

// cohort holds the data, latest times first, so that risk sets grow from sample to sample. Covariates are
// centred and scaled.
type cohort struct {
	time  []float64
	event []bool
	x     [][]float64
}

func newCohort(time []float64, event []bool, x [][]float64) (s *cohort, scale []float64, err error) {
	n := len(time)
	if n == 0 || len(event) != n || len(x) != n {
		return nil, nil, errors.New("survival: times, events and covariates differ in number")
	}
	if !slices.Contains(event, true) {
		return nil, nil, errors.New("no event")
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(time[j], time[i]) })
	s = new(cohort)
	for _, i := range order {
		s.time, s.event = append(s.time, time[i]), append(s.event, event[i])
		s.x = append(s.x, slices.Clone(x[i]))
	}
	for c := range x[0] {
		mean, size := 0.0, 0.0
		for i, row := range s.x {
			mean += (row[c] - mean) / float64(i+1)
		}
		for i, row := range s.x {
			row[c] -= mean
			size += (math.Abs(row[c]) - size) / float64(i+1)
		}
		if !(size > 1e-12*math.Abs(mean)) || math.IsInf(size, 0) {
			return nil, nil, errors.New("covariate " + strconv.Itoa(c) + " is constant or not finite")
		}
		scale = append(scale, size)
		for _, row := range s.x {
			row[c] /= size
		}
	}
	return s, scale, nil
}

// likelihood is the partial log likelihood at one β with its derivatives. information is p × p and has its
// lower triangle, of which factor makes the Cholesky factor.
type likelihood struct {
	value       float64
	score       []float64
	information []float64
}

// factor replaces the information by its Cholesky factor.
func (l *likelihood) factor() error {
	p, a := len(l.score), l.information
	for c := range p {
		own := a[c*p+c]
		for r := c; r < p; r++ {
			sum := a[r*p+c]
			for t := range c {
				sum -= float64(a[r*p+t] * a[c*p+t])
			}
			if r > c {
				a[r*p+c] = sum / a[c*p+c]
				continue
			}
			if !(sum > 1e-13*own) || math.IsInf(sum, 0) {
				return errors.New("a covariate is a combination of the others, or says nothing")
			}
			a[c*p+c] = math.Sqrt(sum)
		}
	}
	return nil
}

// solve divides by the information, after factor.
func (l *likelihood) solve(by []float64) []float64 {
	p, a, x := len(by), l.information, slices.Clone(by)
	for c := range p {
		for t := range c {
			x[c] -= float64(a[c*p+t] * x[t])
		}
		x[c] /= a[c*p+c]
	}
	for c := p - 1; c >= 0; c-- {
		for t := c + 1; t < p; t++ {
			x[c] -= float64(a[t*p+c] * x[t])
		}
		x[c] /= a[c*p+c]
	}
	return x
}

// newton returns the step to the maximum of the quadratic model. It takes a copy of the information.
func (l *likelihood) newton() ([]float64, error) {
	of := likelihood{score: l.score, information: slices.Clone(l.information)}
	if err := of.factor(); err != nil {
		return nil, err
	}
	return of.solve(l.score), nil
}

// moments are Σ θ, Σ θ x and the lower triangle of Σ θ x xᵀ over a set of samples.
type moments struct {
	s0     float64
	s1, s2 []float64
}

func newMoments(p int) *moments { return &moments{s1: make([]float64, p), s2: make([]float64, p*p)} }

func (m *moments) add(theta float64, x []float64) {
	m.s0 += theta
	for c, v := range x {
		v = float64(v * theta)
		m.s1[c] += v
		for e, w := range x[:c+1] {
			m.s2[c*len(x)+e] += float64(v * w)
		}
	}
}

// likelihood adds, time by time, what the first comment of this file has.
func (s *cohort) likelihood(beta []float64) *likelihood {
	p := len(beta)
	l := &likelihood{score: make([]float64, p), information: make([]float64, p*p)}
	risk, mean := newMoments(p), make([]float64, p)
	for i := 0; i < len(s.time); {
		dead, deaths := newMoments(p), 0
		from := s.time[i]
		for ; i < len(s.time) && s.time[i] == from; i++ {
			x, eta := s.x[i], 0.0
			for c, v := range x {
				eta += float64(v * beta[c])
			}
			theta := elem.Exp(eta)
			risk.add(theta, x)
			if s.event[i] {
				deaths++
				dead.add(theta, x)
				l.value += eta
				for c, v := range x {
					l.score[c] += v
				}
			}
		}
		for r := range deaths {
			share := float64(r) / float64(deaths)
			s0 := risk.s0 - float64(share*dead.s0)
			l.value -= elem.Log(s0)
			for c := range p {
				mean[c] = (risk.s1[c] - float64(share*dead.s1[c])) / s0
				l.score[c] -= mean[c]
				for e := range c + 1 {
					second := (risk.s2[c*p+e] - float64(share*dead.s2[c*p+e])) / s0
					l.information[c*p+e] += second - float64(mean[c]*mean[e])
				}
			}
		}
	}
	return l
}
