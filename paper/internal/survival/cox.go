// Package survival holds the survival analysis that the experiments need: Cox's proportional hazards model
// and Bonferroni's correction. Results agree with the R package survival, its rule for ending Newton's
// iterations included (survival_test.go).
package survival

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Cox is a fitted proportional hazards model: the hazard of a sample with covariates x is that of the
// baseline times exp(Σ Coef_c x_c).
type Cox struct {
	Coef, P []float64 // P: the two-sided normal p-value of each coefficient over its standard error
	LR      float64   // p-value of the likelihood ratio of all coefficients against none
	// Converged is false where the iterations ended at their limit. The likelihood then usually has no
	// maximum, a coefficient is infinite, and P has no meaning.
	Converged bool
}

// FitCox fits the model to n samples by Newton's method on Efron's partial likelihood, R's default. time has
// n numbers, event is true for a death and false for a censored sample, x has n rows of p covariates. The
// iterations end as those of R do: when the log likelihood has changed by at most 1e-9 of its value, or after
// 20 iterations.
func FitCox(time []float64, event []bool, x [][]float64) (*Cox, error) {
	s, scale, err := newSample(time, event, x)
	if err != nil {
		return nil, err
	}
	p := len(scale)
	beta := make([]float64, p)
	at := s.likelihood(beta)
	null := at.value
	step, err := at.newton()
	if err != nil {
		return nil, err
	}
	m := &Cox{Coef: make([]float64, p), P: make([]float64, p)}
	next := floats.AddTo(make([]float64, p), beta, step)
	halving := false
	for range 20 {
		to := s.likelihood(next)
		finite := !math.IsNaN(to.value) && !math.IsInf(to.value, 0)
		if finite && !halving && math.Abs(1-at.value/to.value) <= 1e-9 {
			at, beta, m.Converged = to, next, true
			break
		}
		if halving = !finite || to.value < at.value; halving {
			next = slices.Clone(next)
			floats.Add(next, beta)
			floats.Scale(0.5, next)
			continue
		}
		at, beta = to, next
		if step, err = at.newton(); err != nil {
			return nil, err
		}
		next = floats.AddTo(make([]float64, p), beta, step)
	}
	c, err := at.factor()
	if err != nil {
		return nil, err
	}
	var variance mat.SymDense
	if err := c.InverseTo(&variance); err != nil {
		return nil, err
	}
	for c := range p {
		m.Coef[c] = beta[c] / scale[c]
		m.P[c] = math.Erfc(math.Abs(beta[c]) / math.Sqrt(2*variance.At(c, c)))
	}
	m.LR = distuv.ChiSquared{K: float64(p)}.Survival(2 * (at.value - null))
	return m, nil
}

// sample holds the data, latest times first, so that risk sets grow from sample to sample. Covariates are
// centred and scaled.
type sample struct {
	time  []float64
	event []bool
	x     [][]float64
}

func newSample(time []float64, event []bool, x [][]float64) (s *sample, scale []float64, err error) {
	n := len(time)
	if n == 0 || len(event) != n || len(x) != n {
		return nil, nil, errors.New("survival: times, events and covariates differ in number")
	}
	if !slices.Contains(event, true) {
		return nil, nil, errors.New("survival: no event")
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(time[j], time[i]) })
	s = new(sample)
	for _, i := range order {
		s.time, s.event = append(s.time, time[i]), append(s.event, event[i])
		s.x = append(s.x, slices.Clone(x[i]))
	}
	column := make([]float64, n)
	for c := range x[0] {
		for i := range n {
			column[i] = s.x[i][c]
		}
		mean := stat.Mean(column, nil)
		floats.AddConst(-mean, column)
		size := floats.Norm(column, 1) / float64(n)
		if !(size > 1e-12*math.Abs(mean)) || math.IsInf(size, 0) {
			return nil, nil, fmt.Errorf("survival: covariate %d is constant or not finite", c)
		}
		scale = append(scale, size)
		for i := range n {
			s.x[i][c] = column[i] / size
		}
	}
	return s, scale, nil
}

// likelihood is the partial log likelihood at one beta with its derivatives.
type likelihood struct {
	value       float64
	score       *mat.VecDense
	information *mat.SymDense
}

// factor returns the Cholesky factor of the information.
func (l *likelihood) factor() (*mat.Cholesky, error) {
	var c mat.Cholesky
	if !c.Factorize(l.information) || !(c.Cond() < 1e13) {
		return nil, errors.New("survival: a covariate is a combination of the others, or says nothing")
	}
	return &c, nil
}

// newton returns the step to the maximum of the quadratic model.
func (l *likelihood) newton() ([]float64, error) {
	c, err := l.factor()
	if err != nil {
		return nil, err
	}
	var step mat.VecDense
	err = c.SolveVecTo(&step, l.score)
	return step.RawVector().Data, err
}

// moments are Σ θ, Σ θ x and Σ θ x xᵀ over a set of samples, θ = exp(x·β).
type moments struct {
	s0 float64
	s1 *mat.VecDense
	s2 *mat.SymDense
}

func newMoments(p int) *moments {
	return &moments{s1: mat.NewVecDense(p, nil), s2: mat.NewSymDense(p, nil)}
}

func (m *moments) add(theta float64, x *mat.VecDense) {
	m.s0 += theta
	m.s1.AddScaledVec(m.s1, theta, x)
	m.s2.SymRankOne(m.s2, theta, x)
}

// likelihood adds, for each time of d deaths, Σ x·β of the dead less Σ_{r<d} log(Σ_risk θ - r/d Σ_dead θ),
// and the derivatives.
func (s *sample) likelihood(beta []float64) likelihood {
	p := len(beta)
	l := likelihood{score: mat.NewVecDense(p, nil), information: mat.NewSymDense(p, nil)}
	risk, mean := newMoments(p), mat.NewVecDense(p, nil)
	for i := 0; i < len(s.time); {
		dead, deaths := newMoments(p), 0
		from := s.time[i]
		for ; i < len(s.time) && s.time[i] == from; i++ {
			eta, x := floats.Dot(s.x[i], beta), mat.NewVecDense(p, s.x[i])
			risk.add(math.Exp(eta), x)
			if s.event[i] {
				deaths++
				dead.add(math.Exp(eta), x)
				l.value += eta
				l.score.AddVec(l.score, x)
			}
		}
		for r := range deaths {
			share := float64(r) / float64(deaths)
			s0 := risk.s0 - share*dead.s0
			l.value -= math.Log(s0)
			mean.AddScaledVec(risk.s1, -share, dead.s1)
			mean.ScaleVec(1/s0, mean)
			l.score.SubVec(l.score, mean)
			for c := range p {
				for e := c; e < p; e++ {
					second := (risk.s2.At(c, e) - share*dead.s2.At(c, e)) / s0
					l.information.SetSym(c, e, l.information.At(c, e)+second-mean.AtVec(c)*mean.AtVec(e))
				}
			}
		}
	}
	return l
}

// Bonferroni returns the p-values times their number, at most 1. If those below 0.05 are taken as findings,
// the chance of any false finding is at most 0.05.
func Bonferroni(p []float64) []float64 {
	adjusted := make([]float64, len(p))
	for i := range p {
		adjusted[i] = min(1, p[i]*float64(len(p)))
	}
	return adjusted
}
