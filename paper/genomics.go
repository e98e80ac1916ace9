// This file has the experiments on genomics (paper §4 and its annex). A matrix has several kinds of
// measurements of one cancer, stacked. docs/measurements/defaults.md and bqmf.md have unseen cells of such.
package main

import (
	"fmt"
	"strings"

	"github.com/quantmf/quantmf"
)

type genomicsResult struct {
	Seeds   int
	Cancers []cancerFit
}

type cancerFit struct {
	Set, Blocks       string
	Features, Samples int
	Bands             []band
}

const (
	slow16  = "QMF, paper's settings, m = 16, rate 0.001"
	rate16  = "QMF, paper's settings, m = 16, rate 0.01"
	rate8   = "QMF, paper's settings, m = 8, rate 0.01"
	closely = "QMF, no shrinkage"
)

func genomicsWays(s *session) []way {
	epochs := pick(s, 1000, 100)
	paper := func(levels int, rate float64) []quantmf.FitOption {
		return append(qmfOf(levels, 64, rate), quantmf.WithPenalty(0.001))
	}
	free := quantmf.WithShrinkage(0)
	return []way{
		{"NMF", quantmf.MethodNMF, epochs, updates},
		{slow16, quantmf.MethodQMF, epochs, paper(16, 0.001)},
		{rate16, quantmf.MethodQMF, epochs, paper(16, 0.01)},
		{rate8, quantmf.MethodQMF, epochs, paper(8, 0.01)},
		{closely, quantmf.MethodQMF, pick(s, 100, 50), []quantmf.FitOption{free}},
		{qmfqKL, quantmf.MethodQMFQ, pick(s, 100, 20),
			[]quantmf.FitOption{free, quantmf.WithProjection(quantmf.KLUpdates(20))}},
	}
}

func genomics(s *session) (any, error) {
	r := &genomicsResult{Seeds: pick(s, 3, 1)}
	for _, set := range cancerSets {
		x, err := set.matrix(s.data)
		if err != nil {
			return nil, err
		}
		c := cancerFit{Set: set.folder, Blocks: strings.Join(set.blocks, " + "), Features: x.Rows,
			Samples: x.Cols}
		for _, w := range genomicsWays(s) {
			b, err := bandOf(s, set.folder, w, 10, r.Seeds, func(uint64) quantmf.Mat { return x })
			if err != nil {
				return nil, err
			}
			c.Bands = append(c.Bands, b)
		}
		r.Cancers = append(r.Cancers, c)
	}
	return r, nil
}

func genomicsPage(w *writer, res genomicsResult) error {
	looks := map[string]line{"NMF": {color: black, dash: 3}, slow16: {color: orange, dash: 2},
		rate16: {color: sky, dash: 1}, closely: {color: blue}, qmfqKL: {color: vermillion}}
	var charts []*chart
	for _, c := range res.Cancers {
		p := lossChart(fmt.Sprintf("%s, %d × %d", c.Set, c.Features, c.Samples), epochAxis)
		for _, name := range []string{"NMF", slow16, rate16, closely, qmfqKL} {
			l := find(c.Bands, name).overEpochs(looks[name])
			l.name = strings.Replace(name, "paper's settings, m = 16", "paper's", 1)
			p.add(l)
		}
		charts = append(charts, p)
	}
	charts[0].legend = "top right"
	if err := w.figure("genomics-epochs", 8, 7, charts[:3], charts[3:]); err != nil {
		return err
	}
	rows := [][]string{{"loss at the end (epochs)"}}
	for _, c := range res.Cancers {
		rows[0] = append(rows[0], strings.TrimPrefix(c.Set, "tcga-"))
	}
	for i, b := range res.Cancers[0].Bands {
		if b.Name == qmfqKL {
			continue
		}
		row := []string{fmt.Sprintf("%s (%d)", strings.Replace(b.Name, "paper's settings", "paper's", 1),
			b.epochs())}
		for _, c := range res.Cancers {
			row = append(row, g(c.Bands[i].last()))
		}
		rows = append(rows, row)
	}
	w.table("genomics", rows)
	// below counts the sets in which a fit after so many epochs is below NMF, at the same epoch or at its
	// end.
	below := func(name string, epochs int, ofNMF func(band) float64) (sets int) {
		for _, c := range res.Cancers {
			if find(c.Bands, name).at(epochs) < ofNMF(find(c.Bands, "NMF")) {
				sets++
			}
		}
		return sets
	}
	at := func(epochs int) func(band) float64 { return func(b band) float64 { return b.at(epochs) } }
	end := res.Cancers[0].Bands[0].epochs()
	own := find(res.Cancers[0].Bands, closely)
	w.claim("QMF is below NMF after about 100 iterations (genomics)",
		"after 100 and %d in %d and %d of %d sets at the paper's rate of 0.001, in %d and %d at 0.01; by "+
			"our steps "+
			"after %d in %d, below NMF after %d", end, below(slow16, 100, at(100)),
		below(slow16, end, at(end)), len(res.Cancers), below(rate16, 100, at(100)),
		below(rate16, end, at(end)),
		own.epochs(), below(closely, own.epochs(), band.last), end)
	return nil
}
