// Command spearman trains a linear score for the rank correlation itself: soft ranks have a gradient, so that
// Spearman's correlation is a loss like any other. The outcome has a bent scale and outliers, which mislead
// least squares and do not move ranks.
package main

import (
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/quantmf/quantmf"
)

const inputs = 8

// sampled returns n samples, inputs in columns, and their outcome.
func sampled(n int, src *rand.Rand) (x quantmf.Mat, y []float64) {
	x, y = quantmf.NewMat(n, inputs), make([]float64, n)
	for i := range y {
		signal := 0.0
		for c := range inputs {
			x.Set(i, c, src.NormFloat64())
			signal += x.At(i, c) * float64(c-3) / 4
		}
		y[i] = math.Exp(1.5*signal + 0.5*src.NormFloat64())
		if src.IntN(20) == 0 { // a broken instrument
			y[i] *= 1e4
		}
	}
	return x, y
}

func times(x quantmf.Mat, w []float64) []float64 {
	out := make([]float64, x.Rows)
	for i := range out {
		for c, v := range x.Row(i) {
			out[i] += v * w[c]
		}
	}
	return out
}

// spearman returns the correlation of the ranks of two vectors, exact ones at ε = 0.
func spearman(a, b []float64, opts ...quantmf.Option) (float64, error) {
	ra, err := quantmf.SoftRank(a, opts...)
	if err != nil {
		return 0, err
	}
	rb, err := quantmf.SoftRank(b, opts...)
	if err != nil {
		return 0, err
	}
	mid := float64(len(a)+1) / 2
	aa, bb, ab := 0.0, 0.0, 0.0
	for i := range ra {
		aa += (ra[i] - mid) * (ra[i] - mid)
		bb += (rb[i] - mid) * (rb[i] - mid)
		ab += (ra[i] - mid) * (rb[i] - mid)
	}
	return ab / math.Sqrt(aa*bb), nil
}

// train returns the weights of which the scores' soft ranks go best with the ranks of y, by gradient ascent.
func train(x quantmf.Mat, y []float64) ([]float64, error) {
	ranks, err := quantmf.SoftRank(y, quantmf.WithEpsilon(0))
	if err != nil {
		return nil, err
	}
	n := float64(len(y))
	for i := range ranks { // the gradient of Σ (rank_i - mean) softrank_i in the soft ranks
		ranks[i] -= (n + 1) / 2
	}
	w := unit(make([]float64, inputs), 1)
	for step := range 100 {
		t, err := quantmf.Solve(times(x, w))
		if err != nil {
			return nil, err
		}
		g, err := t.RankVJP(ranks)
		if err != nil {
			return nil, err
		}
		along := make([]float64, inputs)
		for i, d := range g.X {
			for c, v := range x.Row(i) {
				along[c] += d * v
			}
		}
		for c, d := range unit(along, 0) { // ever shorter steps; ranks do not depend on the length of w
			w[c] += 3 * d / float64(step+10)
		}
		unit(w, 0)
	}
	return w, nil
}

// unit brings w, with a number added to each entry, to the length 1.
func unit(w []float64, add float64) []float64 {
	length := 0.0
	for c := range w {
		w[c] += add
		length += w[c] * w[c]
	}
	for c := range w {
		w[c] /= math.Sqrt(length)
	}
	return w
}

// leastSquares returns the weights of least squared errors, for inputs of mean 0, by coordinates in turn.
func leastSquares(x quantmf.Mat, y []float64) []float64 {
	w, rest, mean := make([]float64, inputs), make([]float64, len(y)), 0.0
	for _, v := range y {
		mean += v / float64(len(y))
	}
	for i, v := range y {
		rest[i] = v - mean
	}
	for range 100 {
		for c := range w {
			xx, xr := 0.0, 0.0
			for i, r := range rest {
				xx += x.At(i, c) * x.At(i, c)
				xr += x.At(i, c) * r
			}
			w[c] += xr / xx
			for i := range rest {
				rest[i] -= xr / xx * x.At(i, c)
			}
		}
	}
	return w
}

// run returns the rank correlations of the outcome of new samples with both scores.
func run(out io.Writer) (byRanks, bySquares float64, err error) {
	src := rand.New(rand.NewPCG(1, 5))
	x, y := sampled(300, src)
	z, truth := sampled(2000, src)
	w, err := train(x, y)
	if err != nil {
		return 0, 0, err
	}
	if byRanks, err = spearman(times(z, w), truth, quantmf.WithEpsilon(0)); err != nil {
		return 0, 0, err
	}
	bySquares, err = spearman(times(z, leastSquares(x, y)), truth, quantmf.WithEpsilon(0))
	fmt.Fprintf(out, "rank correlation with the outcome of new samples: %.3f trained for ranks, %.3f by "+
		"least squares\n",
		byRanks, bySquares)
	return byRanks, bySquares, err
}

func main() {
	if _, _, err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
