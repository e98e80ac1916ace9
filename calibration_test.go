package quantmf

// Benchmarks of what thresholds decide, for bench/calibrate, which runs them with each
// threshold at several values.

import (
	"math"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
)

// BenchmarkPower times a cold row where max|s Y|, the exponent that decides how its
// kernel is built (maxPower), is what the name says, and the building alone. The metric "error/u" is the
// largest difference of T from the softmax of the potentials, written out, in units of
// the roundoff of T's range.
func BenchmarkPower(b *testing.B) {
	const n, m = 256, 16
	x, w, q, _ := benchRow(n, m)
	for _, exponent := range []float64{20, 50, 100, 149, 200, 300, 500} {
		b.Run(itoa(int(exponent)), func(b *testing.B) {
			var r row
			r.resize(n, m)
			r.setTargets(nil)
			r.setWeights(nil, w)
			t := make([]float64, r.np)
			for range b.N {
				r.setSamples(x, SquashNone)
				r.setEpsilon(1)
				r.setEpsilon(r.steep * r.edge / exponent)
				r.solve(1e-9, 3000, nil)
				r.quantile(t, q)
			}
			const builds = 50
			start := time.Now()
			for range builds {
				r.build(r.e, 0, r.np)
			}
			b.ReportMetric(float64(time.Since(start))/builds, "build-ns")
			worst := 0.0
			for i := range n {
				top, z, sum := math.Inf(-1), 0.0, 0.0
				for j, y := range r.cy {
					top = max(top, r.h[j]+r.s[i]*y)
				}
				for j, y := range r.cy {
					e := math.Exp(r.h[j] + r.s[i]*y - top)
					z += e
					sum += e * (q[j] - q[0])
				}
				worst = max(worst, math.Abs(t[i]-q[0]-sum/z))
			}
			b.ReportMetric(worst/(q[m-1]-q[0])/unit, "error/u")
		})
	}
}

// BenchmarkGram times the Gram matrix of a row from its 2m-1 moments and, metric
// "triangle-ns", from the whole triangle.
func BenchmarkGram(b *testing.B) {
	const n = 256
	for _, m := range []int{2, 3, 4, 8, 16, 32, 64} {
		b.Run("m="+itoa(m), func(b *testing.B) {
			x, w, _, _ := benchRow(n, m)
			var r row
			r.resize(n, m)
			r.setTargets(nil)
			r.setWeights(nil, w)
			r.setSamples(x, SquashNone)
			r.setEpsilon(0.01)
			r.solve(1e-9, 3000, nil)
			var times [2]time.Duration
			for range b.N {
				for i := range times {
					start := time.Now()
					for range 20 {
						none := func(int, int, []float64) {}
						if i == 1 {
							r.triangles(r.gram, r.c, none)
							continue
						}
						r.moments(r.mu, none)
						r.expanded = false
						r.expand()
					}
					times[i] += time.Since(start)
				}
			}
			b.ReportMetric(float64(times[0])/float64(20*b.N), "moments-ns")
			b.ReportMetric(float64(times[1])/float64(20*b.N), "triangle-ns")
		})
	}
}

// BenchmarkAbreast times a row as a fit visits it, as many abreast as there may be, or
// as the name says.
func BenchmarkAbreast(b *testing.B) {
	for _, c := range []struct{ n, m, rows int }{{80, 8, 8}, {256, 16, 8}, {500, 16, 8}, {1000, 16, 8}, {1000, 32, 8}, {2000, 16, 8}, {4000, 16, 8},
		{256, 8, 2}, {256, 16, 2}, {256, 8, 3}, {256, 16, 3}, {256, 8, 4}, {256, 16, 4}} {
		name := itoa(c.n) + "x" + itoa(c.m)
		if c.rows < kernel.Lanes {
			name += ",rows=" + itoa(c.rows)
		}
		b.Run(name, func(b *testing.B) { benchWarm(b, c.n, c.m, min(c.rows, rowsAbreast(c.n, c.m)), 0.01) })
	}
}

// BenchmarkWide times rows of few samples and many levels as a fit visits them.
func BenchmarkWide(b *testing.B) {
	for _, m := range []int{24, 32, 48, 64, 96, 120} {
		b.Run("32x"+itoa(m), func(b *testing.B) { benchWarm(b, 32, m, rowsAbreast(32, m), 0.1) })
	}
}

// BenchmarkRowsAbreast times a row of SoftQuantileRows, 64 together, on one worker.
func BenchmarkRowsAbreast(b *testing.B) {
	for _, c := range []struct{ n, m int }{{80, 8}, {256, 8}, {256, 16}, {500, 16}, {1000, 8}, {1000, 16}} {
		b.Run(itoa(c.n)+"x"+itoa(c.m), func(b *testing.B) {
			const d = 64
			src := random.Split(2, 2)
			x, q := NewMat(d, c.n), NewMat(1, c.m)
			for i := range x.Data {
				x.Data[i] = normal(&src)
			}
			for j := range q.Data {
				q.Data[j] = float64(j)
			}
			for k := 0; k < b.N; k += d {
				if _, err := SoftQuantileRows(x, q, WithWorkers(1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPasses solves random rows of every kind: sizes, ε, spread, clusters and
// ties of samples, and weights far from even.
func BenchmarkPasses(b *testing.B) {
	const problems = 1000
	src := random.Split(31, 0)
	type problem struct {
		row  row
		x, w []float64
		eps  float64
	}
	all := make([]problem, problems)
	for k := range all {
		p := &all[k]
		p.x, p.w = make([]float64, 1+src.IntN(256)), make([]float64, 2<<src.IntN(5))
		p.eps = []float64{1e-1, 1e-2, 1e-3, 1e-4}[src.IntN(4)]
		kind, uneven := src.IntN(5), []float64{0, 0.5, 2, 4}[src.IntN(4)]
		for i := range p.x {
			switch z := normal(&src); kind {
			case 0:
				p.x[i] = src.Float64()
			case 1:
				p.x[i] = 1 / (1 + math.Exp(-1.8*z))
			case 2:
				p.x[i] = float64(src.IntN(4)) / 4
			case 3:
				p.x[i] = float64(src.IntN(2)) + 1e-3*z
			case 4:
				p.x[i] = math.Exp(3 * z)
			}
		}
		for j := range p.w {
			p.w[j] = math.Exp(uneven * normal(&src))
		}
		p.row.resize(len(p.x), len(p.w))
		p.row.setTargets(nil)
		p.row.setWeights(nil, p.w)
	}
	b.ResetTimer()
	passes, worst := 0, 0
	for range b.N {
		passes, worst = 0, 0
		for k := range all {
			p := &all[k]
			r := &p.row
			r.setSamples(p.x, SquashNone)
			r.setEpsilon(p.eps)
			out := r.solve(1e-9, 3000, nil)
			if !out.converged {
				b.Fatalf("problem %d: not converged", k)
			}
			passes += out.passes
			worst = max(worst, out.passes)
		}
	}
	b.ReportMetric(float64(passes)/problems, "passes")
	b.ReportMetric(float64(worst), "most")
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/problems, "ns/row")
}
