package main

// This file holds when "quantmf fit" makes the fits of package account, from which values are hidden: under
// -method auto before that of all values, else after it.

import (
	"context"
	"errors"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/settings"
)

// compared are the further fits of a method that was told.
func (f *fitFlags) compared(negative bool) []quantmf.Candidate {
	return account.Beside(quantmf.Candidate{Method: settings.Method(f.method), Rank: f.rank,
		Options: f.options.List(settings.NotTried...)}, f.options.Shared(), negative)
}

// hiddenFootprint is the most that is alive in the further fits, in bytes. That of -method auto is part of
// what its fit takes.
func (f *fitFlags) hiddenFootprint(matrix quantmf.Rows) (float64, error) {
	if f.compare == "none" || f.method == "auto" {
		return 0, nil
	}
	need, err := quantmf.MemoryOfChoice(matrix, f.compared(false))
	if bad := new(quantmf.OptionError); errors.As(err, &bad) {
		return 0, nil // such a fit takes no hidden values
	}
	return float64(need), err
}

// chooseMethod settles -method auto. It leaves out what there is no choice between, and what cannot be tried.
func (r *result) chooseMethod(ctx context.Context, tell *cli.Progress) error {
	candidates, err := quantmf.Candidates(r.table.Rows(), r.rank, r.fitFlags.options.List()...)
	if err != nil {
		return cli.Explain(err, r.table)
	}
	first := candidates[0]
	if len(candidates) > 1 && r.compare != "none" {
		if err := r.tryHidden(ctx, tell, candidates); err != nil {
			return err
		}
		if r.choice != nil {
			first = candidates[r.choice.Best]
		}
	}
	r.method, r.rank = strings.ToLower(first.Method.String()), first.Rank
	return nil
}

// tryHidden makes the further fits. An interrupt, or a matrix or a method of which no value can be hidden,
// leaves the choice out.
func (r *result) tryHidden(ctx context.Context, tell *cli.Progress, candidates []quantmf.Candidate) error {
	var names []string
	for _, c := range candidates {
		names = append(names, c.Method.String())
	}
	tell.Begin(strings.Join(names, ", ") + " without hidden values")
	choice, err := account.Try(ctx, r.table.Rows(), candidates,
		func(done, all int) error { return tell.Count(done, all, "fits") })
	if ctx.Err() != nil {
		return nil
	}
	if err == nil && choice == nil {
		r.untried = account.Untried
	}
	r.choice = choice
	return cli.Explain(err, r.table)
}

// unseen finds out how well the model predicts values that it has not seen.
func (r *result) unseen(ctx context.Context, tell *cli.Progress) error {
	var values account.Values
	negative := false
	err := r.table.EachRow(func(_ int, row []float64) {
		values.Add(row)
		for _, v := range row {
			negative = negative || v < 0
		}
	})
	if err != nil || r.compare == "none" {
		return cli.Explain(err, r.table)
	}
	r.m.Made.Warnings = append(r.m.Made.Warnings, values.Remarks(r.goodness, r.m.Features)...)
	auto, own := r.choice != nil, 0
	if auto {
		own = r.choice.Best
	} else if r.untried == "" {
		if err := r.tryHidden(ctx, tell, r.compared(negative)); err != nil {
			return err
		}
	}
	if r.choice == nil {
		return nil
	}
	if !negative && values.Skewed() && !r.in.Log1p && ctx.Err() == nil {
		if err := r.tryLogarithm(ctx, tell, own); err != nil {
			return err
		}
	}
	r.m.Unseen = account.Tried(r.choice, own, auto)
	r.m.Unseen.Fitted = values.Explained(r.goodness)
	return nil
}

// tryLogarithm finds out whether the method that was taken predicts the same hidden values better from
// log(1+x), of a matrix of skewed amounts. Where such a fit cannot be made nothing is said.
func (r *result) tryLogarithm(ctx context.Context, tell *cli.Progress, own int) error {
	logged := r.choice.Candidates[own]
	logged.Log1p = true
	tell.Begin(logged.Method.String() + " of log(1+x) without hidden values")
	choice, err := quantmf.Choose(ctx, r.table.Rows(), []quantmf.Candidate{logged},
		func(done, all int) error { return tell.Count(done, all, "fits") })
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, new(*quantmf.OptionError)), errors.As(err, new(*quantmf.DataError)):
		return nil
	case err != nil:
		return cli.Explain(err, r.table)
	}
	if words := account.Logarithm(choice.Trials[0].Worse(r.choice.Trials[own])); words != "" {
		r.m.Made.Warnings = append(r.m.Made.Warnings, words)
	}
	return nil
}
