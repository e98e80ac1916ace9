package quantmf

// This file times the operators by the number of samples, for bench/operators.py, and the scores of each
// sample beside one score of all.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkSoftRank times soft ranks of n samples as they are by default, forward, and with the gradient of
// one loss, by one worker.
func BenchmarkSoftRank(b *testing.B) {
	for _, n := range []int{80, 256, 1000, 5000, 100000, 1000000} {
		src := rand.New(rand.NewPCG(1, uint64(n)))
		x, z := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], z[i] = src.NormFloat64(), src.NormFloat64()
		}
		rows := Mat{Rows: 1, Cols: n, Data: x, Stride: n}
		back := Mat{Rows: 1, Cols: n, Data: z, Stride: n}
		b.Run(fmt.Sprintf("forward,%d", n), func(b *testing.B) {
			for range b.N {
				OK(b, ErrorOf(SoftRankRows(rows, WithWorkers(1))))
			}
		})
		b.Run(fmt.Sprintf("gradient,%d", n), func(b *testing.B) {
			for range b.N {
				OK(b, ErrorOf(SoftRankRowsVJP(rows, back, WithWorkers(1))))
			}
		})
	}
}

// BenchmarkScores times Scores of 50 new samples over Score of the same, in turns: x/Score is the ratio.
func BenchmarkScores(b *testing.B) {
	ctx, x := context.Background(), NewMat(200, 150)
	src := rand.New(rand.NewPCG(2, 3))
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, float64(1+i%7)*(1+float64((i*j)%11))*src.ExpFloat64())
		}
	}
	old, fresh := x, x
	old.Cols = 100
	fresh.Data, fresh.Cols = x.Data[100:], 50
	for method := range MethodBQMF + 1 {
		m := Must(Fit(ctx, method, old, 8, WithEpochs(3)))(b)
		b.Run(method.String(), func(b *testing.B) {
			var each, all time.Duration
			for range b.N {
				begin := time.Now()
				OK(b, ErrorOf(m.Scores(ctx, fresh)))
				each += time.Since(begin)
				begin = time.Now()
				OK(b, ErrorOf(m.Score(ctx, fresh)))
				all += time.Since(begin)
			}
			b.ReportMetric(float64(each)/float64(all), "x/Score")
		})
	}
}
