package quantmf

// Benchmarks. Ratios are taken within one benchmark, so that the machine's speed
// cancels.

import (
	"math"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// rowSettings are the rows that are timed.
var rowSettings = []struct {
	name string
	n, m int
	eps  float64
}{{"80x8,eps=1e-2", 80, 8, 1e-2}, {"256x16,eps=1e-1", 256, 16, 1e-1}, {"256x16,eps=1e-2", 256, 16, 1e-2},
	{"256x16,eps=1e-3", 256, 16, 1e-3}, {"500x16,eps=1e-2", 500, 16, 1e-2}}

// benchRow is a row of n samples on [0,1] with m weights and quantiles.
func benchRow(n, m int) (x, b, q, z []float64) {
	r := random.Split(21, n*m)
	x, z = make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], z[i] = r.Float64(), Normal(&r)
	}
	b, q = make([]float64, m), make([]float64, m)
	last := 0.0
	for j := range b {
		b[j] = 0.5 + r.Float64()
		last += r.Float64()
		q[j] = last
	}
	return x, b, q, z
}

// practice is the usual way to the same numbers (math.Exp, logarithmic domain, ε
// falling from 0.1 by 0.95 an iteration, stopped at a relative column error of
// 1e-2): the forward alone.
func practice(x, b []float64, eps float64, f, g []float64) int {
	n, m := len(x), len(b)
	clear(f)
	for l := 1; l <= 2000; l++ {
		e := max(0.1*math.Pow(0.95, float64(l)), eps)
		for j := range g {
			y := float64(j) / float64(m-1)
			top := math.Inf(-1)
			for i, v := range x {
				top = max(top, f[i]-(v-y)*(v-y))
			}
			s := 0.0
			for i, v := range x {
				s += math.Exp((f[i] - (v-y)*(v-y) - top) / e)
			}
			g[j] = e*math.Log(b[j]) - top - e*math.Log(s)
		}
		for i, v := range x {
			top := math.Inf(-1)
			for j := range g {
				y := float64(j) / float64(m-1)
				top = max(top, g[j]-(v-y)*(v-y))
			}
			s := 0.0
			for j := range g {
				y := float64(j) / float64(m-1)
				s += math.Exp((g[j] - (v-y)*(v-y) - top) / e)
			}
			f[i] = -e*math.Log(float64(n)) - top - e*math.Log(s)
		}
		if e > eps || l%5 != 0 {
			continue
		}
		worst := 0.0
		for j := range g {
			y := float64(j) / float64(m-1)
			c := 0.0
			for i, v := range x {
				c += math.Exp((f[i] + g[j] - (v-y)*(v-y)) / e)
			}
			worst = max(worst, math.Abs(c-b[j])/b[j])
		}
		if worst < 1e-2 {
			return l
		}
	}
	return 2000
}

// BenchmarkRow times one row, forward to 1e-9 and gradients: "cold" with the
// workspace there (sorting, T, and its gradients in x, b, q), "public" through
// Solve, Quantile and QuantileVJP (allocation, potentials, and the gradients in
// a, y, ε besides). The metric "x/practice" is how many times longer twice the
// forward of [practice] takes: its reverse mode costs what its forward does.
func BenchmarkRow(b *testing.B) {
	for _, c := range rowSettings {
		x, w, q, z := benchRow(c.n, c.m)
		wn := make([]float64, c.m)
		transport.Normalise(wn, w)
		f, g := make([]float64, c.n), make([]float64, c.m)
		ratio := func(b *testing.B) {
			ours := b.Elapsed() / time.Duration(b.N)
			const runs = 20
			start := time.Now()
			for range runs {
				practice(x, wn, c.eps, f, g)
			}
			b.ReportMetric(2*float64(time.Since(start))/runs/float64(ours), "x/practice")
		}
		b.Run(c.name+"/cold", func(b *testing.B) {
			var r transport.Row
			r.Resize(c.n, c.m)
			np := kernel.Pad(c.n)
			t, zeta, dx, dq := make([]float64, np), make([]float64, np), make([]float64, c.n),
				make([]float64, c.m)
			copy(zeta, z)
			for range b.N {
				r.Load(transport.Problem{X: x, B: w, Squash: transport.None, Epsilon: c.eps})
				if !r.Solve(1e-9, 3000, nil).Converged {
					b.Fatal("not converged")
				}
				r.Average(t, q)
				r.Order(t, q)
				r.Adjoint(transport.Cotangent{Z: zeta, Q: q})
				r.GradX(dx)
				r.GradQ(dq)
			}
			ratio(b)
		})
		b.Run(c.name+"/public", func(b *testing.B) {
			opts := []Option{WithEpsilon(c.eps), WithTargetWeights(w), WithSquash(SquashNone)}
			for range b.N {
				t := Solved(b, x, opts...)
				OK(b, ErrorOf(t.Quantile(q)))
				OK(b, ErrorOf(t.QuantileVJP(q, z)))
			}
			ratio(b)
		})
	}
}

// BenchmarkWarmRow times a row as a fit visits it: warm start, T and its gradients in x, b and q.
func BenchmarkWarmRow(b *testing.B) {
	for _, c := range rowSettings {
		b.Run(c.name, func(b *testing.B) { benchWarm(b, c.n, c.m, c.eps) })
	}
}

// benchWarm visits a row whose samples move by 0.003 or so between visits.
func benchWarm(b *testing.B, n, m int, eps float64) {
	x, w, q, z := benchRow(n, m)
	r, np, state := transport.NewRow(nil, n, m), kernel.Pad(n), transport.NewWarm(nil, 1, m)[0]
	t, zeta, dx, dq := make([]float64, np), make([]float64, np), make([]float64, n), make([]float64, m)
	copy(zeta, z)
	src := random.Split(1, 1)
	near := make([][]float64, 64)
	for k := range near {
		near[k] = append([]float64(nil), x...)
		for i := range near[k] {
			near[k][i] += 0.003 * Normal(&src)
		}
	}
	passes := 0
	visit := func(k int) {
		r.Load(transport.Problem{X: near[k%64], B: w, Squash: transport.None, Epsilon: eps})
		r.Want(t, q)
		passes += r.Solve(1e-9, 3000, &state).Passes
		r.Adjoint(transport.Cotangent{Z: zeta, Q: q})
		r.GradX(dx)
		r.GradQ(dq)
	}
	visit(0)
	passes = 0
	b.ReportAllocs()
	b.ResetTimer()
	for k := range b.N {
		visit(k)
	}
	b.ReportMetric(float64(passes)/float64(b.N), "passes/op")
}

// BenchmarkEpoch times epochs of fits with one worker. The metric "allocs/epoch"
// is what an epoch after the first allocates, "cpu-ns/epoch" the time of the processor.
func BenchmarkEpoch(b *testing.B) {
	paper := func(opts ...FitOption) []FitOption { // its start and step: Adam alone, all rows at once
		return append(opts, WithStart(StartUniform), WithEnds(EndsPinned), WithEpsilon(0.01),
			WithLearningRate(0.01), WithSchedule(ScheduleConstant))
	}
	lined := func(line float64) []FitOption { // the defaults, nothing left to a choice
		return []FitOption{WithLevels(16), WithStart(StartScores), WithShrinkage(20), WithLine(line)}
	}
	textbook := []FitOption{WithUpdates(UpdatesMultiplicative)} // what others have
	for _, c := range []struct {
		name    string
		d, n, k int
		opts    []FitOption
		method  Method
	}{
		{"NMF,500x256x10", 500, 256, 10, textbook, MethodNMF},
		{"NMF,500x256x1", 500, 256, 1, textbook, MethodNMF},
		{"NMF,500x256x3", 500, 256, 3, textbook, MethodNMF},
		{"NMF,500x256x5", 500, 256, 5, textbook, MethodNMF},
		{"NMF,500x256x32", 500, 256, 32, textbook, MethodNMF},
		{"NMF,500x256x64", 500, 256, 64, textbook, MethodNMF},
		{"NMF,6000x304x10", 6000, 304, 10, textbook, MethodNMF},
		{"NMF,2000x2000x20", 2000, 2000, 20, textbook, MethodNMF},
		{"QMF,500x256x10,m=16", 500, 256, 10, paper(WithLevels(16), WithBatch(500)), MethodQMF},
		{"QMF,500x256x10,m=16,noline", 500, 256, 10, lined(0), MethodQMF},
		{"QMF,500x256x10,m=16,line", 500, 256, 10, lined(0.5), MethodQMF},
		{"QMF,50x20000x10,m=16,noline", 50, 20000, 10, lined(0), MethodQMF},
		{"QMF,50x20000x10,m=16,line", 50, 20000, 10, lined(0.5), MethodQMF},
		{"QMFQ,160x80x8,m=8,100updates", 160, 80, 8, paper(WithLevels(8), WithProjection(KLUpdates(100))),
			MethodQMFQ},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := random.Split(22, c.d)
			x := Drawn(c.d, c.n, func() float64 { return math.Exp(Normal(&r)) })
			// The first epoch has the checks and the start with it, and is left out.
			var began, spent time.Duration
			Fitted(b, By(c.method), x, c.k,
				append(c.opts, WithEpochs(b.N+1), WithWorkers(1), WithProgress(func(p Progress) error {
					switch p.Epoch {
					case 1:
						began = cpuTime()
						b.ResetTimer()
					case b.N + 1:
						b.StopTimer()
						spent = cpuTime() - began
					}
					return nil
				}))...)
			const epochs = 5
			var first, last runtime.MemStats
			Fitted(b, By(c.method), x, c.k,
				append(c.opts, WithEpochs(epochs), WithWorkers(1), WithProgress(func(p Progress) error {
					switch p.Epoch {
					case 1:
						runtime.ReadMemStats(&first)
					case epochs:
						runtime.ReadMemStats(&last)
					}
					return nil
				}))...)
			b.ReportMetric(float64(last.Mallocs-first.Mallocs)/(epochs-1), "allocs/epoch")
			b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/epoch")
		})
	}
}

// BenchmarkCalls times each public call on 256 samples and 16 levels at ε = 0.01.
// The metric "x/reference" is how many times longer Algorithm 1 takes for the
// forward alone, run to the same column error of 1e-9 (sinkhorn.go).
func BenchmarkCalls(b *testing.B) {
	const n, m = 256, 16
	x, w, q, z := benchRow(n, m)
	opts := []Option{WithTargetWeights(w), WithSquash(SquashNone)}
	iterations := 100
	for ; ; iterations += 100 {
		t := Solved(b, x, append(opts, WithIterations(iterations))...)
		if t.MarginalError <= 1e-9 {
			break
		}
	}
	reference := math.Inf(1)
	for range 3 {
		start := time.Now()
		Solve(x, append(opts, WithIterations(iterations))...)
		reference = min(reference, float64(time.Since(start)))
	}
	t := Solved(b, x, opts...)
	f, _ := t.Map(q)
	rows, levels, zs := NewMat(64, n), Mat{Rows: 1, Cols: m, Data: q, Stride: m}, NewMat(64, n)
	for i := range rows.Rows {
		copy(rows.Row(i), x)
		copy(zs.Row(i), z)
	}
	one := append(opts, WithWorkers(1))
	for _, c := range []struct {
		name string
		per  int
		call func() error
	}{
		{"Solve", 1, func() error { return ErrorOf(Solve(x, opts...)) }},
		{"SoftQuantile", 1, func() error { return ErrorOf(SoftQuantile(x, q, opts...)) }},
		{"SoftRank", 1, func() error { return ErrorOf(SoftRank(x, opts...)) }},
		{"SoftSort", 1, func() error { return ErrorOf(SoftSort(x, opts...)) }},
		{"SoftQuantiles,3levels", 1,
			func() error { return ErrorOf(SoftQuantiles(x, []float64{0.25, 0.5, 0.75})) }},
		{"SoftTopK,5", 1, func() error { return ErrorOf(SoftTopK(x, 5)) }},
		{"SoftQuantileRows", 64,
			func() error { return ErrorOf(SoftQuantileRows(rows, levels, one...)) }},
		{"SoftQuantileRowsVJP", 64,
			func() error { _, _, _, err := SoftQuantileRowsVJP(rows, levels, zs, one...); return err }},
		{"Rank", 1, func() error { t.Rank(); return nil }},
		{"Sort", 1, func() error { t.Sort(); return nil }},
		{"Quantile", 1, func() error { return ErrorOf(t.Quantile(q)) }},
		{"RankVJP", 1, func() error { return ErrorOf(t.RankVJP(z)) }},
		{"SortVJP", 1, func() error { return ErrorOf(t.SortVJP(z[:m])) }},
		{"QuantileVJP", 1, func() error { return ErrorOf(t.QuantileVJP(q, z)) }},
		{"QuantileJVP", 1, func() error { return ErrorOf(t.QuantileJVP(q, Gradient{X: z})) }},
		{"Map.At", 1, func() error { f.At(0.3); return nil }},
		{"Map.Slope", 1, func() error { f.Slope(0.3); return nil }},
		{"Map.Invert", 1, func() error { return ErrorOf(f.Invert(5)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				OK(b, c.call())
			}
			row := float64(b.Elapsed()) / float64(b.N) / float64(c.per)
			b.ReportMetric(row/1000, "µs/row")
			b.ReportMetric(reference/row, "x/reference")
		})
	}
}

// BenchmarkLarge times rows of many samples, squashed: solved anew with T and
// gradients, and as a fit visits them; ns a sample and level tell whether time grows
// as they do.
func BenchmarkLarge(b *testing.B) {
	for _, c := range []struct {
		n, m int
		eps  float64
	}{{1000, 16, 1e-2}, {3000, 16, 1e-2}, {10000, 16, 1e-2}, {30000, 16, 1e-2}, {100000, 16, 1e-2},
		{100000, 16, 1e-3}, {5000, 32, 1e-2}, {5000, 32, 1e-3}} {
		x, w, q, z := benchRow(c.n, c.m)
		var r transport.Row
		r.Resize(c.n, c.m)
		t, zeta, dx := make([]float64, kernel.Pad(c.n)), make([]float64, kernel.Pad(c.n)),
			make([]float64, c.n)
		copy(zeta, z)
		st := transport.NewWarm(nil, 1, c.m)[0]
		for _, warm := range []*transport.Warm{nil, &st} {
			name := strconv.Itoa(c.n) + "x" + strconv.Itoa(c.m) + ",eps=" +
				strconv.FormatFloat(c.eps, 'g', -1, 64) + "/cold"
			if warm != nil {
				name = name[:len(name)-4] + "warm"
			}
			b.Run(name, func(b *testing.B) {
				passes := 0
				for b.Loop() {
					r.Load(transport.Problem{X: x, B: w, Epsilon: c.eps})
					passes = r.Solve(1e-9, 3000, warm).Passes
					r.Average(t, q)
					if warm == nil {
						r.Order(t, q)
					}
					r.Adjoint(transport.Cotangent{Z: zeta, Q: q})
					r.GradX(dx)
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(c.n*c.m), "ns/cell")
				b.ReportMetric(float64(passes), "passes")
			})
		}
	}
}
