package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/cells"
)

// qmfq compares projections, rates and numbers of epochs of FitQMFQ on the sets (at most 300 features of
// each) and on the paper's toy problem. For each setting it prints the loss of the fitted cells, the mean
// divergence of a hidden tenth of the cells, and the processor time of a fit to all cells as a share of that
// of the first setting. Last it prints the scores of new columns.
func qmfq() {
	if *rows == 0 {
		*rows = 300
	}
	tables := sets
	if flag.NArg() < 2 {
		tables = append([]string{"toy"}, sets...)
	}
	problem := func(set string) (quantmf.Mat, int) {
		if set == "toy" {
			return toy(), 8
		}
		return read(set), 10
	}
	ctx := context.Background()
	type way struct {
		name   string
		hidden bool // whether the projection allows missing cells
		opts   []quantmf.FitOption
	}
	free, updates := quantmf.WithShrinkage(0),
		func(n int) quantmf.FitOption { return quantmf.WithProjection(quantmf.KLUpdates(n)) }
	ways := []way{
		{"defaults: KLUpdates(5), rate 0.1, 100 epochs", true, nil},
		{"KLUpdates(2)", true, []quantmf.FitOption{updates(2)}},
		{"KLUpdates(20)", true, []quantmf.FitOption{updates(20)}},
		{"KLUpdates(100)", true, []quantmf.FitOption{updates(100)}},
		{"FrobeniusUpdates(5)", true,
			[]quantmf.FitOption{quantmf.WithProjection(quantmf.FrobeniusUpdates(5))}},
		{"TruncatedSVD", false, []quantmf.FitOption{quantmf.WithProjection(quantmf.TruncatedSVD())}},
		{"no shrinkage", true, []quantmf.FitOption{free}},
		{"no shrinkage, KLUpdates(20): the defaults before", true, []quantmf.FitOption{free, updates(20)}},
		{"rate 0.05", true, []quantmf.FitOption{quantmf.WithLearningRate(0.05)}},
		{"rate 0.2", true, []quantmf.FitOption{quantmf.WithLearningRate(0.2)}},
		{"30 epochs", true, []quantmf.FitOption{quantmf.WithEpochs(30)}},
		{"validation share 0.1", true, []quantmf.FitOption{quantmf.WithValidation(0.1)}},
	}
	newColumns := []way{ways[0], ways[5]}
	if *some != "" {
		names := strings.Split(*some, ";")
		ways = slices.DeleteFunc(ways, func(w way) bool { return !slices.Contains(names, w.name) })
	}
	fmt.Print("| |")
	for _, set := range tables {
		fmt.Printf(" %s, fitted | %s, hidden | time |", set, set)
	}
	fmt.Print("\n|---|")
	for range tables {
		fmt.Print("---|---|---|")
	}
	fmt.Println()
	first := map[string]float64{}
	for _, w := range ways {
		fmt.Printf("| %s |", w.name)
		for _, set := range tables {
			x, k := problem(set)
			began := cpuTime()
			m, err := quantmf.FitQMFQ(ctx, x, k, append(slices.Clone(w.opts), quantmf.WithWorkers(1))...)
			check(err)
			spent := (cpuTime() - began).Seconds()
			if first[set] == 0 {
				first[set] = spent
			}
			loss, err := m.Loss(x)
			check(err)
			fmt.Printf(" %.4g |", loss)
			if !w.hidden {
				fmt.Printf(" | %.2f |", spent/first[set])
				continue
			}
			var hidden []float64
			for draw := range *draws {
				holes := cells.Hide(x, uint64(draw))
				m, err := quantmf.FitQMFQ(ctx, holes, k,
					append(slices.Clone(w.opts), quantmf.WithMissingValues(),
						quantmf.WithSeed(uint64(draw+1)))...)
				check(err)
				h, _ := split(x, holes, m.Reconstruct())
				hidden = append(hidden, h)
			}
			fmt.Printf(" %.4g ± %.2g | %.2f |", mean(hidden), deviation(hidden), spent/first[set])
		}
		fmt.Println()
	}
	if *some != "" {
		return
	}
	fmt.Print("\n| score over the loss of what was fitted |")
	for _, set := range tables {
		fmt.Printf(" %s |", set)
	}
	fmt.Print("\n|---|")
	for range tables {
		fmt.Print("---|")
	}
	fmt.Println()
	for _, w := range newColumns {
		var lines [2]string
		for _, set := range tables {
			x, k := problem(set)
			fitted, unseen := columns(x, false), columns(x, true)
			m, err := quantmf.FitQMFQ(ctx, fitted, k, w.opts...)
			check(err)
			loss, err := m.Loss(fitted)
			check(err)
			for i, y := range []quantmf.Mat{fitted, unseen} {
				score, err := m.Score(ctx, y)
				check(err)
				lines[i] += fmt.Sprintf(" %.3g |", score/loss)
			}
		}
		fmt.Printf("| %s: columns of the fit |%s\n| %s: unseen columns |%s\n", w.name, lines[0], w.name,
			lines[1])
	}
}

// columns returns every fourth column, or the others.
func columns(x quantmf.Mat, fourth bool) quantmf.Mat {
	y := quantmf.NewMat(x.Rows, x.Cols)
	n := 0
	for j := range x.Cols {
		if (j%4 == 3) != fourth {
			continue
		}
		for i := range x.Rows {
			y.Set(i, n, x.At(i, j))
		}
		n++
	}
	y.Cols = n
	return y.Clone()
}

// toy draws the paper's synthetic problem, 160 × 80 of rank 8: U* is Poisson(2), columns of V* are
// Dirichlet(1/2), and each row of U*V* is mapped by its ranks onto cumsum(exp(N(0,1))).
func toy() quantmf.Mat {
	const d, n, k = 160, 80, 8
	r := rand.New(rand.NewPCG(77, 1))
	u, v, x := quantmf.NewMat(d, k), quantmf.NewMat(k, n), quantmf.NewMat(d, n)
	for i := range u.Data {
		p, l := 1.0, math.Exp(-2)
		for p *= r.Float64(); p > l; p *= r.Float64() {
			u.Data[i]++
		}
	}
	for j := range n {
		sum := 0.0
		for c := range k { // Gamma(1/2) is half a squared normal
			z := r.NormFloat64()
			v.Set(c, j, z*z)
			sum += z * z
		}
		for c := range k {
			v.Set(c, j, v.At(c, j)/sum)
		}
	}
	for i := range d {
		w, order := make([]float64, n), make([]int, n)
		for j := range w {
			order[j] = j
			for c := range k {
				w[j] += u.At(i, c) * v.At(c, j)
			}
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case w[a] < w[b]:
				return -1
			case w[a] > w[b]:
				return 1
			}
			return 0
		})
		q := 0.0
		for _, j := range order {
			q += math.Exp(r.NormFloat64())
			x.Set(i, j, q)
		}
	}
	return x
}
