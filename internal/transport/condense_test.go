package transport

// Tests of condensed rows: their sums against those over all samples, and what follows from them.

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// manySamples are those of a heavy tail with x, counts that are mostly zero. Some samples are equal, and some
// bins have one.
func manySamples(src *random.Source, n int) (w, x []float64) {
	w, x = make([]float64, kernel.Pad(n)), make([]float64, kernel.Pad(n))
	for i := range n {
		w[i] = math.Exp(Normal(src))
		if i%5 == 0 {
			w[i] = math.Round(w[i])
		}
		if src.IntN(4) == 0 {
			x[i] = float64(src.IntN(9))
		}
	}
	return w, x
}

// condensedCase is one problem of 5000 samples and its q.
func condensedCase(src *random.Source, m int, hidden bool) (p Problem, x, q []float64) {
	const n = 5000
	w, x := manySamples(src, n)
	p = Problem{X: w[:n], Logits: make([]float64, m), Squash: LogisticUnit, Epsilon: 0.02}
	for j := range p.Logits {
		p.Logits[j] = Normal(src)
	}
	q = rising(src, m)
	if hidden {
		p.Observed = make([]bool, n)
		for i := range p.Observed {
			if p.Observed[i] = src.IntN(3) > 0; !p.Observed[i] {
				x[i] = 0
			}
		}
	}
	return p, x, q
}

// TestCondensed: of a row that the points have solved, column sums, sums of ratios and the adjoint are those
// of loops over the samples at its potentials: they differ by less than the bound, and where levels are as
// near as by default by much less.
func TestCondensed(t *testing.T) {
	src := random.Split(91, 0)
	for trial := range 8 {
		p, x, q := condensedCase(&src, []int{8, 3, 20}[trial%3], trial%2 == 1)
		n, m, seen := len(p.X), len(q), 0
		r := NewRow(nil, n, m)
		r.Load(p)
		state := NewWarm(nil, 1, m)[0]
		for visit := range 2 { // with no state, then from that of the first
			r.Load(p)
			out := r.Solve(3e-5, 100, &state)
			if !r.condensed.ready || r.sums && !Invariants || !out.Converged || !state.Valid ||
				out.Error > 3e-5 {
				t.Fatalf("visit %d is not solved by points: %+v", visit, out)
			}
		}
		const low = 1e-9
		back := Cotangent{Z: make([]float64, kernel.Pad(n)), Q: q}
		sums, ratios, ts := make([]float64, m), make([]float64, m), make([]float64, n)
		pairs := make([][]float64, m)
		for j := range pairs {
			pairs[j] = make([]float64, m)
		}
		const by, unit = 0.7, 1.25
		logits, plan := make([]float64, m), make([]float64, m)
		for i := range n {
			if p.Observed != nil && !p.Observed[i] {
				continue
			}
			seen++
			top, z, at := math.Inf(-1), 0.0, 0.0
			for j, y := range r.cy {
				logits[j] = r.h[j] + r.s[i]*y
				top = max(top, logits[j])
			}
			for j, l := range logits {
				plan[j] = math.Exp(l - top)
				z += plan[j]
			}
			for j := range plan {
				plan[j] /= z
				at += plan[j] * q[j]
			}
			ts[i] = at
			back.Z[i] = by * (1 - unit*x[i]/max(at, low))
			for j, v := range plan {
				sums[j] += v
				ratios[j] += v * x[i] / max(at, low)
				for k, u := range plan {
					pairs[j][k] += back.Z[i] * v * u
				}
			}
		}
		near := func(what string, got, want, size, error float64) {
			t.Helper()
			Near(t, got, want, error*size, "trial %d, m=%d: %s", trial, m, what)
		}
		typical := 3e-8 // of the bound of 5e-6
		for j, s := range sums {
			near("a column sum", r.c[j], s/float64(seen), s/float64(seen), min(typical, r.condensed.bound))
			near("a column sum", r.c[j], r.b[j], r.b[j], 2e-9)
		}
		got := make([]float64, m)
		r.ObservedColumns(got, nil, float64(seen))
		for j, s := range sums {
			near("a sum over the observed", got[j]*r.w[j], s, s, typical)
		}
		r.Gather(x, false)
		r.RatioColumns(got, q, 0, low)
		for j, s := range ratios {
			near("a sum of ratios", got[j]*r.w[j], s, s, typical)
		}
		at := make([]float64, kernel.Pad(n))
		r.Average(at, q)
		for i, v := range ts {
			if v > 0 {
				near("T", at[i], v, v, 1e-12)
			}
		}
		r.Adjoint(back)
		size := 0.0
		for j := range pairs {
			size += sums[j] + unit*ratios[j]
		}
		for j := range pairs {
			for k, v := range pairs[j] {
				near("N", r.pairs[j*r.mp+k], v, size/float64(m*m), 1e-12)
			}
		}
		// With the Gram matrix of the samples in place of that of the points the gradient is the same.
		gradient, want := make([]float64, n), make([]float64, n)
		r.GradX(gradient)
		r.pass(r.h)
		r.Adjoint(back)
		r.GradX(want)
		NearAll(t, gradient, want, 1e-7*LargestOf(want), "trial %d, m=%d: a gradient", trial, m)
	}
}

// TestCondensedExactly: where the tolerance is below the bound, or no state is given, the solution is that of
// all samples.
func TestCondensedExactly(t *testing.T) {
	src := random.Split(92, 0)
	for trial := range 4 {
		p, _, q := condensedCase(&src, 8, trial%2 == 1)
		n, m := len(p.X), len(q)
		r, state := NewRow(nil, n, m), NewWarm(nil, 1, m)[0]
		ws := &state
		if trial > 1 {
			ws = nil
		}
		r.Load(p)
		out := r.Solve(1e-12, 100, ws)
		if !r.condensed.ready || !r.sums || !out.Converged {
			t.Fatalf("%+v", out)
		}
		if out.Passes > 3 {
			t.Errorf("%d passes over all samples", out.Passes)
		}
		sums := make([]float64, m)
		r.EachSample(func(i int, plan []float64) {
			for j, v := range plan {
				sums[j] += r.a[i] * v
			}
		})
		for j, s := range sums {
			Near(t, s, r.b[j], 3e-12*r.b[j], "column %d", j)
		}
	}
}

// TestCondensedThenEvaluated: a row that was condensed, and is then at given potentials for other samples,
// has the sums over these, though ε is too small for points.
func TestCondensedThenEvaluated(t *testing.T) {
	src := random.Split(94, 0)
	p, x, q := condensedCase(&src, 8, false)
	n, m := len(p.X), len(q)
	r := NewRow(nil, n, m)
	r.Load(p)
	if r.Solve(3e-5, 100, nil); !r.condensed.ready {
		t.Fatal("the row is not condensed")
	}
	at := r.Potentials()
	at.H = make([]float64, m)
	for j := range at.H {
		at.H[j] = Normal(&src)
	}
	other, _ := manySamples(&src, n)
	r.Evaluate(other[:n], at, 1e-3)
	checkRatios(t, r, x, q, 1e-12)
}

// TestCondensedFar: where the potentials range so far that E is lifted, the points have other reference
// potentials than the samples, from which a step has moved the row. Sums of ratios over the points are in the
// units of the row all the same.
func TestCondensedFar(t *testing.T) {
	const n, m = 5000, 8
	src := random.Split(98, 0)
	p := Problem{X: make([]float64, n), Logits: make([]float64, m), Squash: LogisticUnit, Epsilon: 0.0058}
	q, x := make([]float64, m), make([]float64, kernel.Pad(n))
	for i := range n {
		p.X[i], x[i] = math.Exp(3*Normal(&src)), src.Float64()
	}
	for j := range q {
		q[j] = float64(1 + j)
	}
	r := NewRow(nil, n, m)
	r.Load(p)
	if out := r.Solve(1e-5, 100, nil); !r.condensed.ready || r.form != lifted || !out.Converged {
		t.Fatalf("valid %v, form %v, %+v", r.condensed.ready, r.form, out)
	}
	for j := range r.h { // a step
		r.h[j] += Normal(&src)
	}
	r.pass(r.h)
	checkRatios(t, r, x, q, r.condensed.bound)
	if slices.Equal(r.gathered.w, r.w) {
		t.Fatal("the points have the units of the row")
	}
}

// TestTooSharpForPoints: where the bound of the points is too large, a row is solved without them.
func TestTooSharpForPoints(t *testing.T) {
	src := random.Split(95, 0)
	p, _, q := condensedCase(&src, 20, false)
	for _, epsilon := range []float64{0.005, 0.002} {
		p.Epsilon = epsilon
		r, state := NewRow(nil, len(p.X), len(q)), NewWarm(nil, 1, len(q))[0]
		r.Load(p)
		out := r.Solve(3e-5, 100, &state)
		if !r.blurred() || r.condensed.ready || !out.Converged {
			t.Fatalf("ε = %v: blurred %v, points %v, %+v", epsilon, r.blurred(), r.condensed.ready,
				out)
		}
	}
}

// TestRowIsCounted: the arena of a row has counted all that the row makes, its points included, whether it
// makes it or only counts; a solve makes nothing more.
func TestRowIsCounted(t *testing.T) {
	src := random.Split(96, 0)
	for _, m := range []int{3, 8, 40} {
		p, _, q := condensedCase(&src, m, false)
		p.Epsilon = 0.1
		for _, n := range []int{100, len(p.X)} {
			of := p
			of.X = of.X[:n]
			a, dry := pool.NewArena(), pool.DryArena()
			var before, made, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := NewRow(a, n, len(q))
			runtime.ReadMemStats(&made)
			NewRow(dry, n, len(q))
			took, said := float64(made.TotalAlloc-before.TotalAlloc), a.Most()
			if took > said+8192 || took < 0.85*said || dry.Most() != said {
				t.Errorf("%d samples, %d levels: %v bytes, counted %v, by a dry arena %v", n, m, took, said,
					dry.Most())
			}
			more := uint64(math.MaxUint64) // of several times, since the runtime makes some now and then
			for range 4 {
				runtime.ReadMemStats(&made)
				r.Load(of)
				r.Solve(1e-9, 100, nil)
				runtime.ReadMemStats(&after)
				more = min(more, after.TotalAlloc-made.TotalAlloc)
			}
			if more > 1024 {
				t.Errorf("%d samples, %d levels: a solve makes %d bytes", n, m, more)
			}
			Equal(t, r.condensed.quadrature != nil, n >= condensedFrom, "%d samples: points", n)
		}
	}
}

// TestPoints: the points of a bin have the moments of its samples up to the third, positive weights, and
// places within the bin.
func TestPoints(t *testing.T) {
	src := random.Split(93, 0)
	p, x, q := condensedCase(&src, 8, false)
	r := NewRow(nil, len(p.X), len(q))
	r.Load(p)
	if !r.condense() {
		t.Fatal("the row is not condensed")
	}
	bins := r.bins()
	first, scale := bins.First, bins.Scale
	for which, f := range []*dual{r.condensed.quadrature, r.condensed.weighed} {
		v := r.a
		if which == 1 {
			v = x
			r.bin(x[:r.n])
			r.setQuadrature(f, 1)
		}
		var want, got [condensedBins][4]float64
		add := func(to *[condensedBins][4]float64, at, v float64) {
			bin := min(int((at-first)*scale), condensedBins-1)
			for k := range 4 {
				to[bin][k] += v * math.Pow((at-first)*scale-float64(bin)-0.5, float64(k))
			}
		}
		for i, at := range r.cx[:r.n] {
			add(&want, at, v[i])
		}
		for i, at := range f.cx[:f.n] {
			if !(f.a[i] > 0) {
				t.Fatalf("a point has the weight %v", f.a[i])
			}
			add(&got, at, f.a[i])
		}
		for p := range want {
			for k := range 4 {
				Near(t, got[p][k], want[p][k], 1e-9*want[p][0], "moment %d of bin %d", k, p)
			}
		}
		if f.n > 2*condensedBins || f.n < 100 {
			t.Fatalf("%d points", f.n)
		}
	}
}

// TestPointsOfClusters: where the samples of a bin lie near each other, and the third moment has lost its
// digits, the points have the mean and the variance of the samples, and lie in the bin, all the same.
func TestPointsOfClusters(t *testing.T) {
	src := random.Split(99, 0)
	p, _, q := condensedCase(&src, 8, false)
	r := NewRow(nil, len(p.X), len(q))
	r.Load(p)
	if !r.condense() {
		t.Fatal("the row is not condensed")
	}
	bins, f := r.bins(), r.condensed.quadrature
	for range 1000 {
		const bin = 100
		near := math.Pow(10, -5+4*src.Float64()) // how far the samples are from an edge
		mean := (0.5 - near*(0.2+src.Float64())) * float64(src.IntN(2)*2-1)
		variance := near * near * (0.1 + src.Float64()) / 6
		if variance < 2e-10 { // one point is enough
			continue
		}
		clear(r.condensed.sums)
		third := mean*(3*variance+mean*mean) + 1e-14*Normal(&src)
		copy(r.condensed.sums[4*bin:], []float64{1, mean, variance + mean*mean, third})
		r.setQuadrature(f, 1)
		got := [3]float64{}
		for i, x := range f.cx[:f.n] {
			at := (x-bins.First)*bins.Scale - bin - 0.5
			if !(f.a[i] > 0 && math.Abs(at) <= 0.5+1e-12) {
				t.Fatalf("a point of weight %v at %v", f.a[i], at)
			}
			got[0] += f.a[i]
			got[1] += f.a[i] * at
			got[2] += f.a[i] * at * at
		}
		NearAll(t, got[:], r.condensed.sums[4*bin:4*bin+3], 1e-12,
			"of samples about %v of variance %v moment",
			mean, variance)
	}
}

// TestPointsOfOddRows: the error that a solve by points reports bounds that of the samples in rows of few
// distinct values, of two clusters, with one value far out, with neighbours in the last place, and of the
// smallest and largest numbers.
func TestPointsOfOddRows(t *testing.T) {
	const n, m = 5000, 8
	src := random.Split(97, 0)
	for at, c := range []struct {
		name string
		x    func(i int) float64
	}{
		{"three values", func(i int) float64 { return float64(i % 3) }},
		{"one of another value", func(i int) float64 { return float64(min(i, 1)) }},
		{"two clusters", func(i int) float64 { return float64(i%2)*1e6 + Normal(&src) }},
		{"clusters of ties", func(i int) float64 { return float64(i%2)*100 + float64(i%5)*0x1p-40 }},
		{"one far out", func(i int) float64 { return Normal(&src) + []float64{0, 1e12}[(n-i)/n] }},
		{"neighbours in the last place",
			func(i int) float64 { return 1 + float64(i%7) + float64(i%5)*0x1p-50 }},
		{"1 and the next 20", func(i int) float64 { return 1 + float64(i%20)*0x1p-52 }},
		{"1e-280", func(i int) float64 { return 1e-280 * Normal(&src) }},
		{"1e300", func(i int) float64 { return 1e300 * Normal(&src) }},
		{"all powers of 10", func(i int) float64 { return math.Pow(10, float64(i%600)-300) }},
		{"an offset of 1e9", func(i int) float64 { return 1e9 + Normal(&src) }},
		{"heavy tails", func(i int) float64 { return math.Exp(20 * Normal(&src)) }},
		{"even", func(i int) float64 { return float64(i) }},
	} {
		p := Problem{X: make([]float64, n), Logits: make([]float64, m),
			Squash: []Kind{Logistic, LogisticUnit}[at%2], Epsilon: 0.02}
		for i := range p.X {
			p.X[i] = c.x(i)
		}
		for j := range p.Logits {
			p.Logits[j] = Normal(&src)
		}
		r, state := NewRow(nil, n, m), NewWarm(nil, 1, m)[0]
		r.Load(p)
		out := r.Solve(1e-3, 100, &state)
		if !r.condensed.ready || r.sums && !Invariants {
			t.Fatalf("%s: not solved by points", c.name)
		}
		sums := make([]float64, m)
		r.EachSample(func(_ int, plan []float64) {
			for j, share := range plan {
				sums[j] += share / n
			}
		})
		for j, b := range r.b {
			Near(t, sums[j], b, (out.Error+1e-12)*b, "%s: level %d", c.name, j)
		}
	}
}
