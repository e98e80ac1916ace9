package quantmf_test

import (
	"context"
	"fmt"
	"math"

	"github.com/quantmf/quantmf"
)

// Ranks that have a gradient; at ε = 0 they are the ranks themselves.
func ExampleSoftRank() {
	x := []float64{3, 1, 2, 10}
	soft, _ := quantmf.SoftRank(x, quantmf.WithEpsilon(0.1))
	hard, _ := quantmf.SoftRank(x, quantmf.WithEpsilon(0))
	fmt.Printf("%.2f\n%v\n", soft, hard)
	// Output:
	// [2.51 1.62 1.99 3.89]
	// [3 1 2 4]
}

func ExampleSoftSort() {
	s, _ := quantmf.SoftSort([]float64{3, 1, 2, 10}, quantmf.WithEpsilon(0.1))
	fmt.Printf("%.2f\n", s)
	// Output:
	// [1.60 1.99 3.21 9.20]
}

// Quantile normalisation: the values of x are moved to those of a standard
// distribution, here given by five of its quantiles.
func ExampleSoftQuantile() {
	t, _ := quantmf.SoftQuantile([]float64{10, 1000, 20, 50, 5000, 30}, []float64{-1.3, -0.5, 0, 0.5, 1.3},
		quantmf.WithEpsilon(0.001))
	fmt.Printf("%.2f\n", t)
	// Output:
	// [-1.02 0.66 -0.72 0.14 1.30 -0.36]
}

// The gradient of a loss of soft ranks, here their squared distance from wanted
// ones.
func ExampleTransport_RankVJP() {
	x := []float64{0.3, 0.1, 0.2}
	t, _ := quantmf.Solve(x, quantmf.WithEpsilon(0.1))
	want := []float64{1, 2, 3}
	z := make([]float64, len(x))
	for i, r := range t.Rank() {
		z[i] = 2 * (r - want[i])
	}
	g, _ := t.RankVJP(z)
	fmt.Printf("%.1f\n", g.X)
	// Output:
	// [6.9 6.9 -13.8]
}

// A fitted map takes values that it has not seen, and back.
func ExampleTransport_Map() {
	t, _ := quantmf.Solve([]float64{1, 2, 3, 4}, quantmf.WithLevels(3), quantmf.WithEpsilon(0.2))
	f, _ := t.Map([]float64{0, 10, 100})
	v := f.At(2.5)
	x, _ := f.Invert(v)
	fmt.Printf("T(2.5) = %.2f, slope %.2f, back at %.2f\n", v, f.Slope(2.5), x)
	// Output:
	// T(2.5) = 28.25, slope 46.27, back at 2.50
}

// Rows that are bent versions of one factor: QMF learns the bends.
func ExampleFitQMF() {
	x := quantmf.NewMat(3, 40)
	for j := range x.Cols {
		v := float64(j+1) / 40
		x.Set(0, j, v)
		x.Set(1, j, math.Exp(5*v))
		x.Set(2, j, 1000*math.Sqrt(v))
	}
	ctx := context.Background()
	nmf, _ := quantmf.FitNMF(ctx, x, 1)
	qmf, err := quantmf.FitQMF(ctx, x, 1, quantmf.WithEpochs(100))
	if err != nil {
		fmt.Println(err)
		return
	}
	a, _ := nmf.Loss(x)
	b, _ := qmf.Loss(x)
	fmt.Printf("loss per entry: NMF %.0f, QMF %.0e\n", a, b)
	// Output:
	// loss per entry: NMF 4, QMF 3e-05
}

// Several quantiles at once, in any order.
func ExampleSoftQuantiles() {
	x := []float64{9, 1, 5, 3, 7}
	soft, _ := quantmf.SoftQuantiles(x, []float64{0.5, 0.9}, quantmf.WithEpsilon(0.01))
	hard, _ := quantmf.SoftQuantiles(x, []float64{0.5, 0.9}, quantmf.WithEpsilon(0))
	fmt.Printf("%.2f\n%v\n", soft, hard)
	// Output:
	// [5.00 8.98]
	// [5 9]
}

// The loss of least-quantile regression: the median of the absolute residuals,
// with its gradient.
func ExampleQuantileWeights() {
	residuals := []float64{0.1, -0.4, 2.5, 0.2, -0.3}
	size := make([]float64, len(residuals))
	for i, r := range residuals {
		size[i] = math.Abs(r)
	}
	b, at, _ := quantmf.QuantileWeights([]float64{0.5}, 0.2)
	t, _ := quantmf.Solve(size, quantmf.WithTargetWeights(b), quantmf.WithEpsilon(0.03))
	z := make([]float64, len(b))
	z[at[0]] = 1
	g, _ := t.SortVJP(z)
	fmt.Printf("median %.2f, gradient %.1f\n", t.Sort()[at[0]], g.X)
	// Output:
	// median 0.28, gradient [-0.0 0.1 -0.0 0.2 0.7]
}

// The k largest values, the largest first.
func ExampleSoftTopK() {
	top, _ := quantmf.SoftTopK([]float64{3, 8, 1, 9, 4}, 2, quantmf.WithEpsilon(0.01))
	fmt.Printf("%.2f\n", top)
	// Output:
	// [8.95 8.05]
}

// A mask of the k largest of n samples: in [0,1], of sum k.
func ExampleSoftQuantile_topKMask() {
	x := []float64{3, 8, 1, 9, 4}
	mask, _ := quantmf.SoftQuantile(x, []float64{0, 1},
		quantmf.WithTargetWeights([]float64{3, 2}), quantmf.WithEpsilon(0.3))
	fmt.Printf("%.2f\n", mask)
	// Output:
	// [0.08 0.84 0.03 0.89 0.16]
}

// Ranks of mean exactly (n+1)/2, whatever the number of levels.
func ExampleWithMidpointRanks() {
	x := []float64{3, 1, 2, 10}
	r, _ := quantmf.SoftRank(x, quantmf.WithLevels(2), quantmf.WithMidpointRanks(), quantmf.WithEpsilon(0))
	fmt.Println(r)
	// Output:
	// [3.5 1.5 1.5 3.5]
}

// The mean of the three largest, with its gradient.
func ExampleTopKWeights() {
	x := []float64{3, 8, 1, 9, 4}
	b, _ := quantmf.TopKWeights(len(x), 3)
	t, _ := quantmf.Solve(x, quantmf.WithTargetWeights(b), quantmf.WithEpsilon(0.03))
	s := t.Sort()
	z := []float64{0, 1. / 3, 1. / 3, 1. / 3} // the first target collects the rest
	g, _ := t.SortVJP(z)
	fmt.Printf("%.2f, gradient %.2f\n", (s[1]+s[2]+s[3])/3, g.X)
	// Output:
	// 6.92, gradient [0.01 0.32 -0.01 0.32 0.35]
}

// The ranks of ott-jax, from 0 to n-1: its squash, and quantile values from 0 to n-1 whatever
// the number of levels.
func ExampleTransport_Quantile_ranks() {
	x := []float64{3, 1, 2, 10}
	const levels = 6
	t, _ := quantmf.Solve(x, quantmf.WithLevels(levels), quantmf.WithSquash(quantmf.SquashLogisticUnit),
		quantmf.WithEpsilon(0.01))
	q := make([]float64, levels)
	for j := range q {
		q[j] = float64(j*(len(x)-1)) / (levels - 1)
	}
	r, _ := t.Quantile(q)
	fmt.Printf("%.4f\n", r)
	// Output:
	// [1.9099 0.2556 1.0346 2.8000]
}

// The quantiles of numpy and R by their default rule, here at 0.1, 0.5 and 0.9.
func ExampleSoftQuantiles_numpy() {
	x := []float64{9, 1, 5, 3, 7, 20}
	n := float64(len(x))
	levels := []float64{0.1, 0.5, 0.9}
	for i, p := range levels {
		levels[i] = (p*(n-1) + 0.5) / n
	}
	v, _ := quantmf.SoftQuantiles(x, levels, quantmf.WithEpsilon(0))
	fmt.Printf("%.4g\n", v)
	// Output:
	// [2 6 14.5]
}
