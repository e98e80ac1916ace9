// This file has the toy problem (paper §4, figures of the loss and of the learnt quantiles): 160 × 80,
// rank 8, 8 levels.
package main

import (
	"fmt"
	"slices"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/drawn"
	"github.com/quantmf/quantmf/paper/internal/report"
)

type toyResult struct {
	Seeds    int
	Problems []toyProblem
	Features []toyFeature // some features of the first seed with gaps of deviation 1
}

type toyProblem struct {
	Gap      float64
	Bands    []band
	Recovery map[string]drawn.Recovery // means over seeds
}

// toyFeature has quantile functions of one feature at n levels: the true one, those of the
// fitted rows, and that of the row T'(x).
type toyFeature struct {
	Feature                   int
	True, QMF, QMFQ, Deflated []float64
}

const (
	qmfPaper  = "QMF, paper's settings"
	qmfqPaper = "QMFQ, paper's settings"
	qmfqKL    = "QMFQ, KL"
	qmfqDrawn = "QMFQ, paper's settings, published draw"
)

func toyWays(s *session) []way {
	long, short, most := pick(s, 1000, 300), pick(s, 300, 100), pick(s, 300, 30)
	by := func(p quantmf.Projection) []quantmf.FitOption { return ours(quantmf.WithProjection(p)) }
	return []way{
		{"NMF", quantmf.MethodNMF, long, updates},
		{qmfPaper, quantmf.MethodQMF, long, paperQMF()},
		{"QMF", quantmf.MethodQMF, short, ours()},
		{qmfqPaper, quantmf.MethodQMFQ, most, paperQMFQ(8, quantmf.KLUpdates(100))},
		{qmfqKL, quantmf.MethodQMFQ, most, by(quantmf.KLUpdates(20))},
		{"QMFQ, SVD", quantmf.MethodQMFQ, most, by(quantmf.TruncatedSVD())},
	}
}

func toy(s *session) (any, error) {
	r := &toyResult{Seeds: pick(s, 8, 2)}
	for _, gap := range []float64{1, 2} {
		p := toyProblem{Gap: gap, Recovery: map[string]drawn.Recovery{}}
		for _, w := range toyWays(s) {
			type one struct {
				Trace    trace
				Recovery drawn.Recovery
				Features []toyFeature
			}
			key := fmt.Sprintf("gap %g, %s, %d epochs, seed", gap, w.Name, w.Epochs)
			all, err := repeat(s, key, r.Seeds, func(seed int) (o one, err error) {
				truth := drawn.New(160, 80, 8, gap, 0, uint64(seed))
				m, t, err := w.fit(s, truth.X, 8, uint64(seed))
				if err != nil {
					return o, err
				}
				u, v := m.Factors()
				o.Trace, o.Recovery = t, truth.Recovered(m.Reconstruct(), u, v)
				if seed == 1 && gap == 1 {
					o.Features, err = learnt(truth, m)
				}
				return o, err
			})
			if err != nil {
				return nil, err
			}
			var traces []trace
			var mean drawn.Recovery
			for _, o := range all {
				traces = append(traces, o.Trace)
				mean.Quantile += o.Recovery.Quantile / float64(r.Seeds)
				mean.Order += o.Recovery.Order / float64(r.Seeds)
				mean.Components += o.Recovery.Components / float64(r.Seeds)
			}
			p.Bands = append(p.Bands, newBand(w.Name, traces))
			p.Recovery[w.Name] = mean
			switch {
			case gap == 1 && w.Name == "QMF":
				r.Features = all[0].Features
			case gap == 1 && w.Name == qmfqKL:
				for i, f := range all[0].Features {
					r.Features[i].QMFQ, r.Features[i].Deflated = f.QMFQ, f.Deflated
				}
			}
		}
		r.Problems = append(r.Problems, p)
	}
	return r, nil
}

// learnt returns the quantile functions of the first three features.
func learnt(truth drawn.Problem, m quantmf.Model) ([]toyFeature, error) {
	fit := m.Reconstruct()
	var out []toyFeature
	for i := range 3 {
		f := toyFeature{Feature: i + 1, True: report.RoundAll(truth.Q.Row(i), 4)}
		row := report.RoundAll(slices.Sorted(slices.Values(fit.Row(i))), 4)
		switch m := m.(type) {
		case *quantmf.QMF:
			f.QMF = row
		case *quantmf.QMFQ:
			f.QMFQ = row
			deflate, err := m.Deflate(i)
			if err != nil {
				return nil, err
			}
			for _, v := range truth.Q.Row(i) {
				f.Deflated = append(f.Deflated, report.Round(deflate.At(v), 4))
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// models are those whose losses are drawn.
var models = []string{"NMF", qmfPaper, "QMF", qmfqPaper, qmfqKL}

// looks are the colours and dashes of the models, the same in all figures.
var looks = map[string]line{
	"NMF":     {color: black, dash: 3},
	qmfPaper:  {color: sky, dash: 1},
	"QMF":     {color: blue},
	qmfqPaper: {color: orange, dash: 1},
	qmfqKL:    {color: vermillion},
}

func toyPage(w *writer, res toyResult) error {
	var rows [][]*chart
	for _, p := range res.Problems {
		title := fmt.Sprintf("gaps of deviation σ = %g", p.Gap)
		a, b := lossChart(title, epochAxis), lossChart(title, "seconds on one core")
		if p.Gap == 1 {
			b.legend = "bottom left"
		}
		for _, name := range models {
			l := find(p.Bands, name)
			a.add(l.overEpochs(looks[name]))
			b.add(l.overSeconds(looks[name]))
		}
		rows = append(rows, []*chart{a, b})
	}
	if err := w.figure("toy-loss", 12, 8, rows...); err != nil {
		return err
	}
	var above, under []*chart
	for _, f := range res.Features {
		levels := make([]float64, len(f.True))
		for j := range levels {
			levels[j] = (float64(j) + 0.5) / float64(len(levels))
		}
		a := &chart{title: fmt.Sprintf("feature %d", f.Feature), x: "level (share of samples below)",
			y: "value of x"}
		if f.Feature == 1 {
			a.legend = "top left"
		}
		a.add(line{name: "true q", x: levels, y: f.True, color: black, dash: 3},
			line{name: "QMF", x: levels, y: f.QMF, color: blue},
			line{name: "QMFQ", x: levels, y: f.QMFQ, color: vermillion, dash: 1})
		b := &chart{title: fmt.Sprintf("feature %d, deflated", f.Feature),
			x: "level (share of samples below)", y: "T'(x), scale of UV"}
		b.add(line{x: levels, y: f.Deflated, color: vermillion, dash: 1})
		above, under = append(above, a), append(under, b)
	}
	if err := w.figure("toy-quantiles", 8, 6.5, above, under); err != nil {
		return err
	}
	one, two := res.Problems[0], res.Problems[1]
	table := [][]string{{"(epochs)", "loss, σ = 1", "loss, σ = 2", "order", "components"}}
	for i, b := range one.Bands {
		x := one.Recovery[b.Name]
		table = append(table, []string{fmt.Sprintf("%s (%d)", b.Name, b.epochs()),
			fmt.Sprintf("%s (%s–%s)", g(b.last()), g(slices.Min(b.Final)), g(slices.Max(b.Final))),
			g(two.Bands[i].last()), fmt.Sprintf("%.3f", x.Order), fmt.Sprintf("%.3f", x.Components)})
	}
	w.table("toy", table)
	end := func(name string) string { return g(find(one.Bands, name).last()) }
	w.claim("NMF saturates, QMF and QMFQ reconstruct almost perfectly (toy)", "losses %s; %s and %s",
		end("NMF"), end("QMF"), end(qmfqKL))
	w.claim("the learnt quantile functions match the true ones (toy)",
		"correlation %.4f; NMF, too, has %.3f", one.Recovery["QMF"].Quantile, one.Recovery["NMF"].Quantile)
	return nil
}
