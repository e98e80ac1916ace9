package transport

// A benchmark of the ways to build E, for bench/calibrate, which
// runs them with each threshold at several values.

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// benchRow is a row of n samples on [0,1] with m weights and quantiles.
func benchRow(n, m int) (x, b, q, z []float64) {
	r := random.Split(21, n*m)
	x, z = make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], z[i] = r.Float64(), Normal(&r)
	}
	b = make([]float64, m)
	for j := range b {
		b[j] = 0.5 + r.Float64()
	}
	return x, b, rising(&r, m), z
}

// rising are m levels from 0 to 1 apart.
func rising(src *random.Source, m int) (q []float64) {
	last := 0.0
	for range m {
		last += src.Float64()
		q = append(q, last)
	}
	return q
}

// BenchmarkPower times a cold row where max|s Y|, the exponent that decides how its
// kernel is built (maxPower), is what the name says, and the building alone. The metric "error/u" is the
// largest difference of T from the softmax of the potentials, written out, in units of
// the roundoff of T's range.
func BenchmarkPower(b *testing.B) {
	const n, m = 256, 16
	x, w, q, _ := benchRow(n, m)
	for _, exponent := range []float64{20, 50, 100, 149, 200, 300, 500} {
		b.Run(strconv.Itoa(int(exponent)), func(b *testing.B) {
			var r Row
			r.Resize(n, m)
			t := make([]float64, n)
			p := Problem{X: x, B: w, Squash: None, Epsilon: 1}
			r.Load(p)
			p.Epsilon = r.steep * r.edge / exponent
			for range b.N {
				r.Load(p)
				r.Solve(1e-9, 3000, nil)
				r.Quantile(t, q)
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
