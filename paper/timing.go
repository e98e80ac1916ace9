// This file measures the time and memory of transposed Jacobians (paper §2.4 and its figure), and how far
// each gradient is from that of the converged transport, which the paper leaves out.
package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

type timingResult struct {
	Levels  int
	Epsilon float64
	Methods []timed
}

// timed has one value for each n. Bytes are those that a call allocates when there is no workspace to
// use again. Errors are relative, in the Euclidean norm.
type timed struct {
	Name           string
	N, Iterations  []int
	Seconds, Bytes []float64
	ErrorX, ErrorB []float64
}

const (
	newtonName    = "Newton to 1e-9, implicit (ours)"
	tightImplicit = "Sinkhorn to 1e-3, implicit"
	tightUnrolled = "Sinkhorn to 1e-3, unrolled"
	looseImplicit = "Sinkhorn to 1e-2, implicit"
	looseUnrolled = "Sinkhorn to 1e-2, unrolled"
)

func timing(s *session) (any, error) {
	const m, eps = 10, 0.01
	r := &timingResult{Levels: m, Epsilon: eps}
	long := pick(s, time.Second, 100*time.Millisecond)
	for _, name := range []string{newtonName, looseImplicit, looseUnrolled, tightImplicit, tightUnrolled} {
		r.Methods = append(r.Methods, timed{Name: name})
	}
	for _, n := range []int{100, 316, 1000, 3162, 10000, 31623, 100000} {
		p := drawRow(n, m, eps)
		truth, err := p.implicit(quantmf.WithTolerance(1e-13))
		if err != nil {
			return nil, err
		}
		loose, err := p.reach(1e-2)
		if err != nil {
			return nil, err
		}
		tight, err := p.reach(1e-3)
		if err != nil {
			return nil, err
		}
		fixed := func(l int) func() (*quantmf.Gradient, error) {
			return func() (*quantmf.Gradient, error) { return p.implicit(quantmf.WithIterations(l)) }
		}
		unrolled := func(l int) func() (*quantmf.Gradient, error) {
			return func() (*quantmf.Gradient, error) {
				if _, err := p.solve(quantmf.WithIterations(l)); err != nil { // the forward
					return nil, err
				}
				return p.unrolled(l), nil
			}
		}
		for i, w := range []struct {
			l    int
			call func() (*quantmf.Gradient, error)
		}{
			{0, func() (*quantmf.Gradient, error) { return p.implicit() }},
			{loose, fixed(loose)}, {loose, unrolled(loose)}, {tight, fixed(tight)}, {tight, unrolled(tight)},
		} {
			if err := r.Methods[i].measure(n, w.l, long, truth, w.call); err != nil {
				return nil, err
			}
		}
		s.say("n = %d: %d iterations to 1e-2, %d to 1e-3", n, loose, tight)
	}
	return r, nil
}

// row is a row of n normal samples, squashed, and cotangents z of its quantile map onto q.
type row struct {
	x, q, z []float64
	eps     float64
}

func drawRow(n, m int, eps float64) *row {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	p := &row{make([]float64, n), make([]float64, m), make([]float64, n), eps}
	for i := range p.x {
		p.x[i], p.z[i] = r.NormFloat64(), r.NormFloat64()
	}
	mean, deviation := stat.PopMeanStdDev(p.x, nil)
	for i, v := range p.x {
		p.x[i] = 1 / (1 + math.Exp(-(v-mean)/deviation*math.Pi/math.Sqrt(3)))
	}
	for j := range p.q {
		p.q[j] = r.ExpFloat64()
	}
	floats.CumSum(p.q, p.q)
	return p
}

func (p *row) solve(more ...quantmf.Option) (*quantmf.Transport, error) {
	return quantmf.Solve(p.x, append(more, quantmf.WithLevels(len(p.q)), quantmf.WithEpsilon(p.eps),
		quantmf.WithSquash(quantmf.SquashNone), quantmf.WithWorkers(1))...)
}

func (p *row) implicit(more ...quantmf.Option) (*quantmf.Gradient, error) {
	t, err := p.solve(more...)
	if err != nil {
		return nil, err
	}
	return t.QuantileVJP(p.q, p.z)
}

func (p *row) unrolled(l int) *quantmf.Gradient {
	m := len(p.q)
	u := &unrolling{x: p.x, eps: p.eps, l: l, b: make([]float64, m), y: make([]float64, m)}
	floats.AddConst(1/float64(m), u.b)
	floats.Span(u.y, 0, 1)
	return u.gradient(p.q, p.z)
}

// reach returns the fewest iterations that bring the columns of the plan within a tolerance, found by
// doubling and then by bisection.
func (p *row) reach(tolerance float64) (int, error) {
	var fault error
	reached := func(l int) bool {
		t, err := p.solve(quantmf.WithIterations(l))
		fault = errors.Join(fault, err)
		return err != nil || t.MarginalError <= tolerance
	}
	high := 1
	for !reached(high) {
		high *= 2
	}
	low := high / 2
	return low + 1 + sort.Search(high-low-1, func(i int) bool { return reached(low + 1 + i) }), fault
}

// measure appends the bytes of a call, the time of the fastest of repeated calls, and its errors.
func (t *timed) measure(n, iterations int, long time.Duration, truth *quantmf.Gradient,
	call func() (*quantmf.Gradient, error)) error {
	runtime.GC() // twice: the second collection frees the workspaces that calls keep for the next
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	grad, err := call()
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	least := math.Inf(1)
	for began := time.Now(); time.Since(began) < long || math.IsInf(least, 1); {
		start := time.Now()
		if _, err := call(); err != nil {
			return err
		}
		least = min(least, time.Since(start).Seconds())
	}
	t.N, t.Iterations = append(t.N, n), append(t.Iterations, iterations)
	t.Seconds = append(t.Seconds, report.Round(least, 3))
	t.Bytes = append(t.Bytes, report.Round(float64(after.TotalAlloc-before.TotalAlloc), 3))
	t.ErrorX = append(t.ErrorX, distance(grad.X, truth.X))
	t.ErrorB = append(t.ErrorB, distance(grad.B, truth.B))
	return nil
}

// distance returns |a-b|/|b|.
func distance(a, b []float64) float64 {
	return report.Round(floats.Distance(a, b, 2)/floats.Norm(b, 2), 2)
}

var timingLooks = map[string]line{
	newtonName:    {color: blue},
	looseImplicit: {color: orange, dash: 1},
	looseUnrolled: {color: vermillion, dash: 3},
	tightImplicit: {color: green, dash: 1},
	tightUnrolled: {color: purple, dash: 3},
}

func timingPage(w *writer, res timingResult) error {
	a := &chart{title: "time", x: "samples n", y: "seconds", log: true, legend: "top left",
		yRange: [2]float64{5e-6, 50}}
	b := &chart{title: "memory", x: "samples n", y: "MB allocated", log: true}
	c := &chart{title: "error of the gradient in x", x: "samples n", y: "relative error", log: true}
	by := map[string]timed{}
	last := len(res.Methods[0].N) - 1
	rows := [][]string{{fmt.Sprintf("n = %d", res.Methods[0].N[last]), "iterations", "ms", "MB", "error in x",
		"in b"}}
	for _, t := range res.Methods {
		by[t.Name] = t
		rows = append(rows, []string{t.Name, fmt.Sprint(t.Iterations[last]), g(1e3 * t.Seconds[last]),
			g(t.Bytes[last] / 1e6), g(t.ErrorX[last]), g(t.ErrorB[last])})
		l := timingLooks[t.Name]
		l.name, l.points = t.Name, true
		megabytes := slices.Clone(t.Bytes)
		floats.Scale(1e-6, megabytes)
		for _, n := range t.N {
			l.x = append(l.x, float64(n))
		}
		for to, y := range map[*chart][]float64{a: t.Seconds, b: megabytes, c: t.ErrorX} {
			l.y = y
			to.add(l)
		}
	}
	w.table("timing", rows)
	ratio := func(a, b []float64) string {
		r := floats.DivTo(make([]float64, len(a)), a, b)
		return fmt.Sprintf("%.3g to %.3g", floats.Min(r), floats.Max(r))
	}
	w.claim("implicit gradients take half the time of unrolled ones, and far less memory",
		"%s of the time; unrolled ones take %s times the memory",
		ratio(by[tightImplicit].Seconds, by[tightUnrolled].Seconds),
		ratio(by[tightUnrolled].Bytes, by[tightImplicit].Bytes))
	w.claim("(nothing on errors of gradients)",
		"to 1e-2 up to %.0f %% in b, unrolled %.0f %%; Newton's method takes 1/%s of the time",
		100*floats.Max(by[looseImplicit].ErrorB), 100*floats.Max(by[looseUnrolled].ErrorB),
		strings.ReplaceAll(ratio(by[looseImplicit].Seconds, by[newtonName].Seconds), " to ", " to 1/"))
	return w.figure("timing", 8, 8, []*chart{a, b, c})
}
