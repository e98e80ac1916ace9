// This file has the larger synthetic problem with noise (paper §4 and its annex): 500 × 256, rank 10.
package main

import (
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/drawn"
)

type largerResult struct {
	Repeats int
	Bands   []band
}

// qmfOf returns the paper's settings of QMF with other levels, batches and rates.
func qmfOf(levels, batch int, rate float64) []quantmf.FitOption {
	return paperFit(levels, quantmf.WithBatch(batch), quantmf.WithLearningRate(rate))
}

const (
	oursAll    = "ours, all rows"
	ours256    = "ours, batches of 256"
	ours64     = "ours, batches of 64"
	ours16     = "ours, batches of 16"
	ours16Up   = "ours, batches of 16, rate 1"
	oursM4     = "ours, m = 4"
	oursM8     = "ours, m = 8"
	qmfqFew    = "ours, 5 updates"
	largerAll  = "all rows, rate 0.01"
	larger256  = "batches of 256, rate 0.01"
	larger64   = "batches of 64, rate 0.01"
	larger16   = "batches of 16, rate 0.01"
	fastAll    = "all rows, rate 0.1"
	fast64     = "batches of 64, rate 0.1"
	fast16     = "batches of 16, rate 0.1"
	larger64m4 = "batches of 64, m = 4"
	larger64m8 = "batches of 64, m = 8"
)

func largerWays(s *session) []way {
	epochs, inner, most := pick(s, 1000, 300), pick(s, 300, 20), pick(s, 300, 100)
	many := pick(s, 100, 50)
	ours := func(more ...quantmf.FitOption) []quantmf.FitOption {
		return ours(append([]quantmf.FitOption{quantmf.WithLevels(16)}, more...)...)
	}
	return []way{
		{"NMF", quantmf.MethodNMF, epochs, updates},
		{largerAll, quantmf.MethodQMF, epochs, qmfOf(16, 500, 0.01)},
		{larger256, quantmf.MethodQMF, epochs, qmfOf(16, 256, 0.01)},
		{larger64, quantmf.MethodQMF, epochs, qmfOf(16, 64, 0.01)},
		{larger16, quantmf.MethodQMF, epochs, qmfOf(16, 16, 0.01)},
		{fastAll, quantmf.MethodQMF, epochs, qmfOf(16, 500, 0.1)},
		{fast64, quantmf.MethodQMF, epochs, qmfOf(16, 64, 0.1)},
		{fast16, quantmf.MethodQMF, epochs, qmfOf(16, 16, 0.1)},
		{larger64m4, quantmf.MethodQMF, epochs, qmfOf(4, 64, 0.01)},
		{larger64m8, quantmf.MethodQMF, epochs, qmfOf(8, 64, 0.01)},
		{"QMF", quantmf.MethodQMF, most, ours()},
		{oursAll, quantmf.MethodQMF, most, ours(quantmf.WithBatch(500))},
		{ours256, quantmf.MethodQMF, most, ours(quantmf.WithBatch(256))},
		{ours64, quantmf.MethodQMF, most, ours(quantmf.WithBatch(64))},
		{ours16, quantmf.MethodQMF, most, ours(quantmf.WithBatch(16))},
		{ours16Up, quantmf.MethodQMF, most, ours(quantmf.WithBatch(16), quantmf.WithLearningRate(1))},
		{oursM4, quantmf.MethodQMF, most, ours(quantmf.WithLevels(4))},
		{oursM8, quantmf.MethodQMF, most, ours(quantmf.WithLevels(8))},
		{"QMFQ, 10 updates", quantmf.MethodQMFQ, inner, paperQMFQ(16, quantmf.KLUpdates(10))},
		{"QMFQ, " + strconv.Itoa(many) + " updates", quantmf.MethodQMFQ, inner,
			paperQMFQ(16, quantmf.KLUpdates(many))},
		{qmfqKL, quantmf.MethodQMFQ, inner, ours(quantmf.WithProjection(quantmf.KLUpdates(20)))},
		{qmfqFew, quantmf.MethodQMFQ, inner, ours(quantmf.WithProjection(quantmf.KLUpdates(5)))},
	}
}

func larger(s *session) (any, error) {
	r := &largerResult{Repeats: pick(s, 8, 2)}
	for _, w := range largerWays(s) {
		b, err := bandOf(s, "larger", w, 10, r.Repeats,
			func(seed uint64) quantmf.Mat { return drawn.New(500, 256, 10, 1, 10, seed).X })
		if err != nil {
			return nil, err
		}
		r.Bands = append(r.Bands, b)
	}
	return r, nil
}

func largerPage(w *writer, res largerResult) error {
	by := map[string]band{}
	var inner []string // QMFQ at the paper's settings, with fewer and with more updates
	for _, b := range res.Bands {
		by[b.Name] = b
		if strings.HasPrefix(b.Name, "QMFQ, ") && b.Name != qmfqKL {
			inner = append(inner, b.Name)
		}
	}
	// panel draws the bands of some names, each under a label, above NMF.
	panel := func(title, legend string, names, labels []string, styles ...line) *chart {
		c := lossChart(title, epochAxis)
		c.legend = legend
		c.add(by["NMF"].overEpochs(line{color: black, dash: 3}))
		for i, name := range names {
			l := by[name].overEpochs(styles[i])
			l.name = labels[i]
			c.add(l)
		}
		return c
	}
	a, b, c, d, e := line{color: sky, dash: 1}, line{color: green, dash: 2}, line{color: blue},
		line{color: orange, dash: 1}, line{color: vermillion, dash: 2}
	const left, right = "bottom left", "top right"
	steps := panel("our steps, sizes of batches and rates", right,
		[]string{oursAll, ours256, "QMF", ours16, ours16Up},
		[]string{"all rows", "batches of 256", "batches of 32 (default)", "batches of 16",
			"batches of 16, rate 1"}, a, b, c, d, e)
	levels := panel("our steps, levels, and inner updates of QMFQ", right,
		[]string{oursM4, oursM8, "QMF", qmfqFew, qmfqKL},
		[]string{"QMF, m = 4", "QMF, m = 8", "QMF, m = 16", "QMFQ, 5 updates (default)", "QMFQ, 20 updates"},
		a, b, c, d, e)
	steps.yRange, levels.yRange = [2]float64{0.15, 2000}, [2]float64{0.15, 2000}
	err := w.figure("larger", 12, 8,
		[]*chart{panel("paper's settings, rate 0.01", left,
			[]string{largerAll, larger256, larger64, larger16},
			[]string{"all rows", "batches of 256", "batches of 64", "batches of 16"}, a, b, c, d),
			panel("paper's settings, rate 0.1", left, []string{fastAll, fast64, fast16},
				[]string{"all rows", "batches of 64", "batches of 16"}, a, c, d)},
		[]*chart{panel("paper's settings, batches of 64, levels", left,
			[]string{larger64m4, larger64m8, larger64}, []string{"m = 4", "m = 8", "m = 16"}, a, b, c),
			panel("paper's settings, inner updates of QMFQ", left, inner, inner, a, c)},
		[]*chart{steps, levels})
	if err != nil {
		return err
	}
	end := func(name string) string { return cell(by[name].last()) }
	rows := [][]string{{"loss, batches of", "rate 0.01: after 30", "at the end", "rate 0.1", "ours: after 10",
		"at the end"}}
	for _, of := range [][]string{{"all rows", largerAll, fastAll, oursAll},
		{"64", larger64, fast64, ours64}, {"16", larger16, fast16, ours16}} {
		rows = append(rows, []string{of[0], cell(by[of[1]].at(30)), end(of[1]), end(of[2]),
			cell(by[of[3]].at(10)), end(of[3])})
	}
	w.table("larger", rows)
	w.claim("QMF and QMFQ far below NMF (larger)", "NMF %s; QMF %s, QMFQ %s; by our steps %s and %s",
		end("NMF"), end(larger64), end(inner[len(inner)-1]), end("QMF"), end(qmfqKL))
	w.claim("m = 4 is worse than 8, and 16 no better than 8 (larger)",
		"m = 4, 8, 16 end at %s, %s, %s; by our steps %s, %s, %s", end(larger64m4), end(larger64m8),
		end(larger64), end(oursM4), end(oursM8), end("QMF"))
	return nil
}
