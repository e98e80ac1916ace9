package main

// This file compares batches of FitQMF by unseen cells and time.

import (
	"context"
	"flag"
	"fmt"
	"math"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/cells"
)

// assays is the table in mixed units of the README, in testdata.
const assays = "laml-assays"

// batches fits QMF with batches of several numbers of rows, with a tenth of the cells hidden from every
// fit. It prints the divergence of the hidden cells less that with the default batch under the same
// mask and seed, in per cent of the latter, and the processor time as a share of that of the default. A
// number of rows with a cross takes the start and the shrinkage that the trials chose for the default batch.
func batches() {
	ctx := context.Background()
	type way struct {
		name  string
		rows  int
		fixed bool
	}
	ways := []way{{"32", 32, false}, {"64", 64, false}, {"128", 128, false}, {"all", math.MaxInt32, false},
		{"64 †", 64, true}, {"128 †", 128, true}, {"all †", math.MaxInt32, true}}
	fmt.Print("| set | k | 32 rows | λ of 32, all |")
	for _, w := range ways[1:] {
		fmt.Printf(" %s |", w.name)
	}
	fmt.Print(" time |\n|---|---|---|---|")
	for range ways {
		fmt.Print("---|")
	}
	fmt.Println()
	all, times := make([][]float64, len(ways)), make([]float64, len(ways))
	if flag.NArg() < 2 {
		sets = append([]string{assays}, sets...)
	}
	for _, set := range sets {
		var x quantmf.Mat
		if set == assays {
			x = readIn("../../testdata", set)
		} else {
			x = read(set)
		}
		over, spent := make([][]float64, len(ways)), make([]float64, len(ways))
		for _, k := range []int{2, 5, 8} {
			less := make([][]float64, len(ways))
			var at []float64
			lambdas := ""
			for draw := range *draws {
				holes := cells.Hide(x, uint64(draw))
				var first *quantmf.QMF
				base := 0.0
				for i, w := range ways {
					opts := []quantmf.FitOption{quantmf.WithMissingValues(),
						quantmf.WithSeed(uint64(draw + 1)), quantmf.WithBatch(min(w.rows, x.Rows)),
						quantmf.WithWorkers(1)}
					if w.fixed {
						opts = append(opts, quantmf.WithStart(first.Start),
							quantmf.WithShrinkage(first.Shrinkage))
					}
					began := cpuTime()
					m, err := quantmf.FitQMF(ctx, holes, k, opts...)
					check(err)
					spent[i] += (cpuTime() - began).Seconds()
					h, _ := split(x, holes, m.Reconstruct())
					if i == 0 {
						first, base = m, h
						at = append(at, h)
						lambdas += fmt.Sprint(m.Shrinkage)
					}
					if w.name == "all" {
						lambdas += fmt.Sprint("/", m.Shrinkage, " ")
					}
					less[i] = append(less[i], 100*(h-base)/base)
				}
			}
			fmt.Printf("| %s | %d | %.4g ± %.2g | %s|", set, k, mean(at), deviation(at), lambdas)
			for i := range ways {
				over[i] = append(over[i], less[i]...)
				all[i] = append(all[i], less[i]...)
				if i > 0 {
					fmt.Printf(" %+.1f ± %.1f |", mean(less[i]), standardError(less[i]))
				}
			}
			fmt.Println(" |")
		}
		fmt.Printf("| %s | | | |", set)
		for i := range ways {
			times[i] += math.Log(spent[i] / spent[0])
			if i > 0 {
				fmt.Printf(" %+.1f ± %.1f |", mean(over[i]), standardError(over[i]))
			}
		}
		for i := range ways[:4] {
			fmt.Printf(" %.2f", spent[i]/spent[0])
		}
		fmt.Println(" |")
	}
	fmt.Print("| all | | | |")
	for i := range ways[1:] {
		fmt.Printf(" %+.1f ± %.1f |", mean(all[i+1]), standardError(all[i+1]))
	}
	for _, t := range times[:4] {
		fmt.Printf(" %.2f", math.Exp(t/float64(len(sets))))
	}
	fmt.Println(" |")
}

func standardError(v []float64) float64 { return deviation(v) / math.Sqrt(float64(len(v))) }
