package kernel

import (
	"fmt"
	"github.com/quantmf/quantmf/internal/random"
	"testing"
)

func BenchmarkTmp(b *testing.B) {
	for _, n := range []int{256, 2048, 4096, 20000} {
		const k = 16
		r := random.Split(1, 1)
		v, acc := make([]float64, n*k), make([]float64, n*k)
		for i := range v {
			v[i] = r.Float64()
		}
		var runs [][]uint32
		for range 100 {
			runs = append(runs, someOf(&r, n, min(n/20, 205)))
		}
		if n == 256 {
			for i := range runs {
				runs[i] = someOf(&r, n, 200)
			}
		}
		u, g := v[:k], make([]float64, k)
		w := make([]float64, 256)
		x := make([]float64, 256)
		for i := range x {
			x[i] = 1
		}
		for name, f := range map[string]func(c []uint32){
			"combine": func(c []uint32) { CombineAt(w, u, v, c) },
			"dots":    func(c []uint32) { DotsAt(g, v, x, c) },
			"acc":     func(c []uint32) { AccumulateAt(acc, u, x, c) },
			"ratio":   func(c []uint32) { Ratio(w[:len(c)], x[:len(c)], w[:len(c)], 1e-100) },
			"log":     func(c []uint32) { LogSumRows(w[:len(c)&^7], x[:len(c)&^7], 8, 1) },
		} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				total := 0
				for i := range b.N {
					c := runs[i%100]
					f(c)
					total += len(c)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(total), "ns/cell")
			})
		}
	}
}
