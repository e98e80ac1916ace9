package main

// This file compares the updates of NMF by unseen cells and by classes.

import (
	"context"
	"fmt"
	"slices"

	"github.com/quantmf/quantmf"
)

// newtonAt are the epochs of Newton's method whose divergence is printed beside that of its best epoch.
var newtonAt = []int{8, 10, 12, 15, 20, 30, 60}

// updates holds a tenth of the cells out of fits by either method, which have the same start and the
// same mask. It prints the divergence of the hidden cells under multiplicative updates at the best of 600
// epochs. The other columns are differences from it under the same mask, in per cent: after 200 updates, and
// under Newton's method at the best of 60 epochs and after the epochs of newtonAt.
func updates() {
	ctx := context.Background()
	fmt.Print("| set | k | multiplicative, best | after 200 | Newton, best |")
	for _, e := range newtonAt {
		fmt.Printf(" after %d |", e)
	}
	fmt.Print("\n|---|---|---|---|---|")
	for range newtonAt {
		fmt.Print("---|")
	}
	fmt.Println()
	all := make([][]float64, 2+len(newtonAt))
	row := func(set, k, first string, v [][]float64) {
		fmt.Printf("| %s | %s | %s |", set, k, first)
		for _, d := range v {
			fmt.Printf(" %+.2f ± %.2f |", mean(d), deviation(d))
		}
		fmt.Println()
	}
	for _, set := range sets {
		x := read(set)
		for _, k := range []int{3, 8, 12} {
			less := make([][]float64, len(all))
			var best, at, ours []float64
			for draw := range *draws {
				fit := func(u quantmf.Updates, epochs int) []float64 {
					m, err := quantmf.FitNMF(ctx, x, k, quantmf.WithUpdates(u), quantmf.WithEpochs(epochs),
						quantmf.WithValidation(0.1), quantmf.WithSeed(uint64(draw+1)))
					check(err)
					return m.Validation
				}
				m, n := fit(quantmf.UpdatesMultiplicative, 600), fit(quantmf.UpdatesNewton, 60)
				low := slices.Min(m)
				best, at = append(best, low), append(at, float64(slices.Index(m, low)))
				ours = append(ours, float64(slices.Index(n, slices.Min(n))))
				for i, v := range append([]float64{m[200], slices.Min(n)}, pick(n, newtonAt)...) {
					less[i] = append(less[i], 100*(v-low)/low)
				}
			}
			for i := range all {
				all[i] = append(all[i], less[i]...)
			}
			row(set, fmt.Sprint(k), fmt.Sprintf("%.4g at %.0f, Newton at %.0f", mean(best), mean(at),
				mean(ours)), less)
		}
	}
	row("all", "", "", all)
	fmt.Println("\n| golub, 1500 and 5000 features | mean | deviation | lowest |\n|---|---|---|---|")
	for _, some := range []int{1500, 0} {
		*rows = some
		x := read("golub-leukemia/exp")
		class := classes()
		for _, c := range []struct {
			updates quantmf.Updates
			epochs  int
		}{{quantmf.UpdatesMultiplicative, 200}, {quantmf.UpdatesNewton, 10}, {quantmf.UpdatesNewton, 20},
			{quantmf.UpdatesNewton, 60}} {
			var got []float64
			for s := range 20 {
				m, err := quantmf.FitNMF(ctx, x, 3, quantmf.WithSeed(uint64(s+1)),
					quantmf.WithUpdates(c.updates), quantmf.WithEpochs(c.epochs))
				check(err)
				got = append(got, agreement(cluster(profiles(m.V), 3), class))
			}
			fmt.Printf("| %d, %v, %d | %.3f | %.3f | %.3f |\n", x.Rows, c.updates, c.epochs, mean(got),
				deviation(got), slices.Min(got))
		}
	}
}

func pick(v []float64, at []int) (some []float64) {
	for _, i := range at {
		some = append(some, v[i])
	}
	return some
}
