package main

// This file checks what "quantmf fit" says first: which share it says is predicted of unseen cells, and the
// method that -method auto takes.

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/gonum/stat"
)

// takenByAuto are the methods among which auto chooses.
var takenByAuto = []string{"NMF", "QMF", "BQMF"}

// first hides tenths of the cells from all of -method auto, the cells that it hides itself included. For each
// set and for ranks 10 and 0 it prints the share of these tenths that was said to be predicted, and that
// which is, each with its standard error; in how many of the tenths the two agree within two standard errors
// of their difference; and by how much the methods taken predict the tenths worse than the best: that of all
// tenths of the table, and, where chance has more say, that of each.
func first() {
	if *rows == 0 {
		*rows = 300
	}
	table := [][]string{{"set, k", "said, %", "true, %", "agree", "taken", "best", "regret, %",
		"regret of each tenth, %"}}
	regrets, ofTenths := map[int][]float64{}, map[int][]float64{}
	agreed, all := 0, 0
	for _, set := range sets {
		x := read(set)
		for _, k := range []int{10, 0} {
			var said, stdErr, ofTenth []float64
			truth := map[string]quantmf.Prediction{}
			taken, best, agree := map[string]int{}, map[string]int{}, 0
			for mask := range *draws {
				box, method, tried := firstBox(x, k, quantmf.Masks{Repeats: 1, Seed: 7, First: mask})
				for name, p := range tried {
					truth[name] = truth[name].Join(p)
				}
				auto := tried["auto"]
				share, off := auto.Explained()
				said, stdErr = append(said, 100*box.Predicted), append(stdErr, 100*box.StdErr)
				if math.Abs(box.Predicted-share) <= 2*math.Hypot(box.StdErr, off) {
					agree++
				}
				least, worse := regretOf(tried)
				taken[method]++
				best[least]++
				ofTenth = append(ofTenth, worse)
			}
			agreed, all = agreed+agree, all+*draws
			_, regret := regretOf(truth)
			regrets[k], ofTenths[k] = append(regrets[k], regret), slices.Concat(ofTenths[k], ofTenth)
			share, off := truth["auto"].Explained()
			table = append(table, []string{fmt.Sprintf("%s, %d", set, k),
				fmt.Sprintf("%.1f ± %.1f", stat.Mean(said, nil), stat.Mean(stdErr, nil)),
				fmt.Sprintf("%.1f ± %.1f", 100*share, 100*off), fmt.Sprintf("%d of %d", agree, *draws),
				counts(taken), counts(best), fmt.Sprintf("%.2f", regret),
				fmt.Sprintf("%.2f", stat.Mean(ofTenth, nil))})
		}
	}
	fmt.Println(report.Table(table))
	for _, k := range []int{10, 0} {
		fmt.Printf("k = %d: regret on average: %.2f %%, of each tenth %.2f %%\n", k,
			stat.Mean(regrets[k], nil), stat.Mean(ofTenths[k], nil))
	}
	fmt.Printf("shares that agree: %d of %d\n", agreed, all)
}

// regretOf returns the method that predicts best, and by how many per cent auto is worse.
func regretOf(tried map[string]quantmf.Prediction) (least string, regret float64) {
	for _, name := range takenByAuto {
		if p, has := tried[name]; has && (least == "" || p.Mean < tried[least].Mean) {
			least = name
		}
	}
	worse, _ := tried["auto"].Worse(tried[least])
	return least, max(0, 100*worse)
}

// counts lists how often each method came.
func counts(of map[string]int) (s string) {
	for _, name := range takenByAuto {
		if of[name] > 0 {
			s += fmt.Sprintf(" %s %d", name, of[name])
		}
	}
	return s
}

// firstBox returns what auto says where masks hide cells from it, the method that it takes, and how well it,
// as "auto", and each of the methods predict these cells. The fits are those of a table that lacks them: the
// options of HeldOut would let a fit end as if the table were whole, but not those by which auto chooses.
func firstBox(x quantmf.Mat, k int, masks quantmf.Masks) (said account.Unseen, taken string,
	tried map[string]quantmf.Prediction) {
	ctx := context.Background()
	opts := []quantmf.FitOption{quantmf.WithMissingValues()}
	if slices.Min(x.Data) < 0 {
		opts = append(opts, quantmf.WithLoss(quantmf.Frobenius))
	}
	tried = map[string]quantmf.Prediction{}
	try := func(name string, fit func(x quantmf.Rows) (quantmf.Model, error)) {
		p, err := quantmf.HeldOut(ctx, x, func(_ context.Context, x quantmf.Rows, _ int,
			_ ...quantmf.FitOption) (quantmf.Model, error) {
			return fit(x)
		}, []quantmf.Trial{{Rank: k, Options: opts[1:]}}, masks)
		check(err)
		tried[name] = p[0]
	}
	try("auto", func(x quantmf.Rows) (quantmf.Model, error) {
		candidates, err := quantmf.Candidates(x, k, opts...)
		check(err)
		choice, err := quantmf.Choose(ctx, x, candidates, nil)
		check(err)
		said, taken = account.Tried(choice, choice.Best, true), candidates[choice.Best].Method.String()
		return choice.Fit(ctx, x)
	})
	candidates, err := quantmf.Candidates(x, k, opts...)
	check(err)
	for _, c := range candidates {
		try(c.Method.String(), func(x quantmf.Rows) (quantmf.Model, error) {
			return quantmf.Fit(ctx, c.Method, x, c.Rank, opts...)
		})
	}
	return said, taken, tried
}
