// This file compares fits by the paper's settings on matrices for which losses of the published code are
// known, and measures the effect of each difference between these settings and the defaults.
package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/data"
	"github.com/quantmf/quantmf/paper/internal/drawn"
)

type settingsResult struct {
	Seeds, QMFQSeeds, DepartureSeeds int
	Matrices                         []settingsMatrix
}

type settingsMatrix struct {
	Name       string
	Published  []band // each of one run; empty without data
	Ours       []band
	Departures []band // from the paper's settings of QMF, one at a time
}

func settings(s *session) (any, error) {
	r := &settingsResult{Seeds: pick(s, 8, 2), QMFQSeeds: pick(s, 8, 4), DepartureSeeds: pick(s, 3, 2)}
	long, short := pick(s, 1000, 300), pick(s, 300, 100)
	fits := []way{
		{"NMF", quantmf.MethodNMF, long, updates},
		{qmfPaper, quantmf.MethodQMF, long, paperQMF(quantmf.WithPenalty(0.01))},
		{"QMF", quantmf.MethodQMF, short, ours()},
		{qmfqPaper, quantmf.MethodQMFQ, long, paperQMFQ(8, quantmf.FrobeniusUpdates(100))},
		{qmfqKL, quantmf.MethodQMFQ, short, ours(quantmf.WithProjection(quantmf.KLUpdates(20)))},
	}
	var departures []way
	for _, d := range []struct {
		name string
		opts []quantmf.FitOption
	}{
		{"paper's settings", paperQMF()},
		{"penalty 0.01, as in the published code", paperQMF(quantmf.WithPenalty(0.01))},
		{"SquashArctan", paperQMF(quantmf.WithSquash(quantmf.SquashArctan))},
		{"SquashLogisticUnit", paperQMF(quantmf.WithSquash(quantmf.SquashLogisticUnit))},
		{"ε = 0.02", paperQMF(quantmf.WithEpsilon(0.02))},
		{"free ends", paperQMF(quantmf.WithEnds(quantmf.EndsFree))},
		{"rate 0.06, cosine",
			paperQMF(quantmf.WithLearningRate(0.06), quantmf.WithSchedule(quantmf.ScheduleCosine))},
		{"batches of 32", paperQMF(quantmf.WithBatch(32))},
		{"StartScores (then Gauss–Newton)",
			paperQMF(quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0))},
		{"our defaults without shrinkage", []quantmf.FitOption{quantmf.WithShrinkage(0)}},
	} {
		departures = append(departures, way{d.name, quantmf.MethodQMF, long, d.opts})
	}
	var published map[string]any // by matrix, and remarks
	if err := s.data.JSON("toy/official.json", &published); err != nil && !errors.Is(err, data.ErrMissing) {
		return nil, err
	}
	for i, name := range []string{"toy-std1", "toy-std2"} {
		m := settingsMatrix{Name: name}
		fits := slices.Clone(fits)
		x, err := s.data.Table("toy/" + name)
		switch {
		case err == nil:
			for _, model := range []string{"NMF (Frobenius updates)", "QMF", "QMFQ"} {
				m.Published = append(m.Published, publishedCurve(published[name], model))
			}
			u, v := publishedFactors(160, 80, 8)
			fits = append(fits, way{qmfqDrawn, quantmf.MethodQMFQ, long,
				append(paperQMFQ(8, quantmf.FrobeniusUpdates(100)), quantmf.WithInit(u, v))})
		case errors.Is(err, data.ErrMissing):
			x = drawn.New(160, 80, 8, float64(i+1), 0, 1).X
			m.Name += ", another draw"
		default:
			return nil, err
		}
		bands := func(fits []way, seeds func(w way) int) (all []band, err error) {
			for _, w := range fits {
				b, err := bandOf(s, m.Name, w, 8, seeds(w), func(uint64) quantmf.Mat { return x })
				if err != nil {
					return nil, err
				}
				all = append(all, b)
			}
			return all, nil
		}
		if m.Ours, err = bands(fits, func(w way) int {
			switch {
			case w.Name == qmfqDrawn:
				return 1 // nothing in these fits is random
			case w.Method == quantmf.MethodQMFQ:
				return r.QMFQSeeds
			}
			return r.Seeds
		}); err != nil {
			return nil, err
		}
		if i == 0 { // departures on one matrix
			m.Departures, err = bands(departures, func(way) int { return r.DepartureSeeds })
			if err != nil {
				return nil, err
			}
		}
		r.Matrices = append(r.Matrices, m)
	}
	return r, nil
}

// publishedCurve reads the losses of a model of a matrix at the epochs that are its keys.
func publishedCurve(of any, model string) band {
	b := band{Name: model}
	models, _ := of.(map[string]any)
	losses, _ := models[model].(map[string]any)
	at := map[int]float64{}
	for key, v := range losses {
		if e, err := strconv.Atoi(key); err == nil {
			at[e], _ = v.(float64)
			b.Epoch = append(b.Epoch, e)
		}
	}
	slices.Sort(b.Epoch)
	for _, e := range b.Epoch {
		b.Median = append(b.Median, at[e])
	}
	return b
}

func settingsPage(w *writer, res settingsResult) error {
	var charts []*chart
	rows := [][]string{{"after 1000 epochs", "published code", "here (range)", "largest ratio at an epoch",
		"our steps (epochs)"}}
	for _, m := range res.Matrices {
		c := lossChart(m.Name, epochAxis)
		if len(charts) == 0 {
			c.legend = "top right"
		}
		for _, name := range models {
			c.add(find(m.Ours, name).overEpochs(looks[name]))
		}
		b := find(m.Ours, qmfqDrawn)
		c.add(band{Name: "QMFQ, published draw", Epoch: b.Epoch,
			Median: b.Median}.overEpochs(line{color: purple, dash: 3}))
		for i, b := range m.Published {
			look := []line{{color: black}, {color: sky, dash: 1}, {color: orange, dash: 2}}[i]
			look.noLine = true
			c.add(band{Name: b.Name + ", published code", Epoch: b.Epoch, Median: b.Median}.overEpochs(look))
		}
		charts = append(charts, c)
		if len(m.Published) == 0 {
			continue
		}
		for _, of := range []struct {
			published         int
			same, ours, where string
		}{{1, qmfPaper, "QMF", "QMF"}, {2, qmfqDrawn, qmfqKL, "QMFQ"}} {
			theirs := m.Published[of.published]
			same := find(m.Ours, of.same)
			own := find(m.Ours, of.ours)
			last := len(same.Epoch) - 1
			rows = append(rows, []string{m.Name + ": " + of.where, g(theirs.last()),
				fmt.Sprintf("%s (%s–%s)", g(same.last()), g(same.Low[last]), g(same.High[last])),
				fmt.Sprintf("%.3f", farthest(same, theirs)),
				fmt.Sprintf("%s (%d)", g(own.last()), own.epochs())})
		}
	}
	w.table("settings", rows)
	rows = [][]string{{"departure, loss after", "100", "1000"}}
	for _, b := range res.Matrices[0].Departures {
		rows = append(rows, []string{b.Name, cell(b.at(100)), cell(b.at(1000))})
	}
	w.table("departures", rows)
	return w.figure("settings", 12, 10, charts)
}

// farthest returns the largest ratio of medians at one epoch.
func farthest(a, b band) float64 {
	most := 1.0
	for i, e := range a.Epoch {
		if t := b.at(e); !math.IsNaN(t) {
			most = max(most, a.Median[i]/t, t/a.Median[i])
		}
	}
	return most
}
