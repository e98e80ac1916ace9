package main

// This file compares clusters of samples with known classes.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// labels prints the adjusted Rand index of golub's three classes with k-means on the sample profiles of three
// components, over seeds.
func labels() {
	x := read("golub-leukemia/exp")
	class := classes()
	rows := [][]string{{fmt.Sprintf("golub, %d seeds", *draws), "mean", "deviation", "lowest"}}
	by := func(method quantmf.Method, opts ...quantmf.FitOption) func(uint64) quantmf.Mat {
		return func(seed uint64) quantmf.Mat {
			m, err := quantmf.Fit(context.Background(), method, x, 3, append(opts, quantmf.WithSeed(seed))...)
			check(err)
			_, v := m.Factors()
			return v
		}
	}
	for _, c := range []struct {
		name string
		fit  func(seed uint64) quantmf.Mat
	}{
		{"NMF", by(quantmf.MethodNMF)},
		{"QMF", by(quantmf.MethodQMF)},
		{"QMF, StartScores", by(quantmf.MethodQMF, quantmf.WithStart(quantmf.StartScores))},
		{"QMF, StartNMF", by(quantmf.MethodQMF, quantmf.WithStart(quantmf.StartNMF))},
	} {
		var got []float64
		for s := range *draws {
			got = append(got, agreement(cluster(profiles(c.fit(uint64(s+1))), 3), class))
		}
		mean, deviation := stat.MeanStdDev(got, nil)
		rows = append(rows, []string{c.name, fmt.Sprintf("%.3f", mean), fmt.Sprintf("%.3f", deviation),
			fmt.Sprintf("%.3f", slices.Min(got))})
	}
	fmt.Println(report.Table(rows))
}

// classes are those of the patients of golub-leukemia.
func classes() (class []int) {
	text, err := os.ReadFile(filepath.Join(*data, "golub-leukemia/labels.tsv"))
	check(err)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		switch f := strings.Split(line, "\t"); {
		case f[1] == "AML":
			class = append(class, 0)
		case strings.HasPrefix(f[2], "T"):
			class = append(class, 1)
		default:
			class = append(class, 2)
		}
	}
	return class
}

// profiles returns the columns of v. Every component is first brought to mean 1, then every column
// to sum 1.
func profiles(v quantmf.Mat) [][]float64 {
	p := make([][]float64, v.Cols)
	for j := range p {
		p[j] = make([]float64, v.Rows)
		sum := 0.0
		for c := range v.Rows {
			p[j][c] = v.At(c, j) / stat.Mean(v.Row(c), nil)
			sum += p[j][c]
		}
		for c := range p[j] {
			p[j][c] /= sum
		}
	}
	return p
}

// cluster is k-means, the best of 50 starts by k-means++.
func cluster(p [][]float64, k int) []int {
	r := rand.New(rand.NewPCG(1, 1))
	distance := func(a, b []float64) float64 { d := floats.Distance(a, b, 2); return d * d }
	lowest := math.Inf(1)
	var best []int
	for range 50 {
		centers := [][]float64{p[r.IntN(len(p))]}
		for len(centers) < k {
			weight, total := make([]float64, len(p)), 0.0
			for i, x := range p {
				w := math.Inf(1)
				for _, c := range centers {
					w = min(w, distance(x, c))
				}
				weight[i] = w
				total += w
			}
			at, pick := r.Float64()*total, len(p)-1
			for i, w := range weight {
				if at -= w; at <= 0 {
					pick = i
					break
				}
			}
			centers = append(centers, p[pick])
		}
		in, cost := make([]int, len(p)), 0.0
		for range 100 {
			cost = 0
			for i, x := range p {
				d := math.Inf(1)
				for c, y := range centers {
					if e := distance(x, y); e < d {
						d, in[i] = e, c
					}
				}
				cost += d
			}
			for c := range centers {
				sum, n := make([]float64, len(p[0])), 0.0
				for i, x := range p {
					if in[i] == c {
						n++
						floats.Add(sum, x)
					}
				}
				if n > 0 {
					floats.Scale(1/n, sum)
					centers[c] = sum
				}
			}
		}
		if cost < lowest {
			lowest, best = cost, slices.Clone(in)
		}
	}
	return best
}

// agreement returns the adjusted Rand index (Hubert and Arabie 1985).
func agreement(a, b []int) float64 {
	pairs := func(n float64) float64 { return n * (n - 1) / 2 }
	both, inA, inB := map[[2]int]float64{}, map[int]float64{}, map[int]float64{}
	for i := range a {
		both[[2]int{a[i], b[i]}]++
		inA[a[i]]++
		inB[b[i]]++
	}
	s, sa, sb := 0.0, 0.0, 0.0
	for _, n := range both {
		s += pairs(n)
	}
	for _, n := range inA {
		sa += pairs(n)
	}
	for _, n := range inB {
		sb += pairs(n)
	}
	expected := sa * sb / pairs(float64(len(a)))
	return (s - expected) / ((sa+sb)/2 - expected)
}
