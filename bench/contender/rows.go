package main

// This file answers problems of one row with all that the package says of them, and times rows.

import (
	"errors"
	"time"

	"github.com/quantmf/quantmf"
)

// row is a problem of one row. What is null is left at the package's default.
type row struct {
	X, A, B, Y, Q []float64
	Eps           *float64
	Squash        string  // "none" or, by default, "logistic"
	Tolerance     float64 // 0: the default
	MaxIterations int
	Strict        bool
	ZT, ZS        []float64 // cotangents of T and S; no gradients where null
	Plan          bool      // whether the plan is wanted
	Levels        []float64 // soft quantiles at these levels, in place of all else
}

type answer struct {
	T, R, S       []float64
	Plan          [][]float64 `json:",omitempty"`
	Quantiles     []float64   `json:",omitempty"`
	GradT, GradS  *quantmf.Gradient
	Iterations    int
	MarginalError float64
	Converged     bool
	Error         string
}

func (p *row) solve() (a answer, err error) {
	var opts []quantmf.Option
	if p.Eps != nil {
		opts = append(opts, quantmf.WithEpsilon(*p.Eps))
	}
	if p.A != nil {
		opts = append(opts, quantmf.WithWeights(p.A))
	}
	if p.B != nil {
		opts = append(opts, quantmf.WithTargetWeights(p.B))
	}
	if p.Y != nil {
		opts = append(opts, quantmf.WithTargets(p.Y))
	}
	if p.Squash == "none" {
		opts = append(opts, quantmf.WithSquash(quantmf.SquashNone))
	}
	if p.Tolerance > 0 {
		opts = append(opts, quantmf.WithTolerance(p.Tolerance))
	}
	if p.MaxIterations > 0 {
		opts = append(opts, quantmf.WithMaxIterations(p.MaxIterations))
	}
	if p.Strict {
		opts = append(opts, quantmf.WithStrict())
	}
	if p.Levels != nil {
		a.Quantiles, err = quantmf.SoftQuantiles(p.X, p.Levels, opts...)
		return a, err
	}
	t, err := quantmf.Solve(p.X, opts...)
	if err != nil {
		return a, err
	}
	a.R, a.S = t.Rank(), t.Sort()
	a.Iterations, a.MarginalError, a.Converged = t.Iterations, t.MarginalError, t.Converged
	if p.Plan {
		plan := t.Plan()
		for i := range plan.Rows {
			a.Plan = append(a.Plan, plan.Row(i))
		}
	}
	if p.Q != nil {
		if a.T, err = t.Quantile(p.Q); err != nil {
			return a, err
		}
		if p.ZT != nil {
			if a.GradT, err = t.QuantileVJP(p.Q, p.ZT); err != nil {
				return a, err
			}
		}
	}
	if p.ZS != nil {
		if a.GradS, err = t.SortVJP(p.ZS); err != nil {
			return a, err
		}
	}
	return a, nil
}

// kind names the type of an error.
func kind(err error) string {
	var option *quantmf.OptionError
	var data *quantmf.DataError
	var shape *quantmf.ShapeError
	var convergence *quantmf.ConvergenceError
	switch {
	case errors.As(err, &option):
		return "OptionError"
	case errors.As(err, &data):
		return "DataError"
	case errors.As(err, &shape):
		return "ShapeError"
	case errors.As(err, &convergence):
		return "ConvergenceError"
	}
	return "error"
}

func answers(rows []row) []answer {
	all := make([]answer, len(rows))
	for i := range rows {
		a, err := rows[i].solve()
		if err != nil {
			a = answer{Error: kind(err) + ": " + err.Error()}
		}
		all[i] = a
	}
	return all
}

// timeRows returns the seconds of a row that is solved from nothing by Solve, Quantile and QuantileVJP, the
// mean over calls of so many seconds in all. QuantileVJP computes the gradients in all arguments.
func timeRows(rows []row, seconds float64) (float64, error) {
	calls, began := 0, time.Now()
	for calls == 0 || time.Since(began).Seconds() < seconds {
		for i := range rows {
			p := &rows[i]
			t, err := quantmf.Solve(p.X, quantmf.WithEpsilon(*p.Eps), quantmf.WithTargetWeights(p.B),
				quantmf.WithSquash(quantmf.SquashNone))
			if err == nil {
				_, err = t.Quantile(p.Q)
			}
			if err == nil {
				_, err = t.QuantileVJP(p.Q, p.ZT)
			}
			if err != nil {
				return 0, err
			}
			calls++
		}
	}
	return time.Since(began).Seconds() / float64(calls), nil
}
