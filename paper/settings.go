// This file compares fits by the paper's settings on matrices for which losses of the published code are
// known, and measures the effect of each difference between these settings and the defaults.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/data"
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
	long := pick(s, 1000, 300)
	arctan := append(paperQMF(8), quantmf.WithSquash(quantmf.SquashArctan))
	paper := paperQMF(8)
	with := func(opts ...quantmf.FitOption) []quantmf.FitOption {
		return append(slices.Clone(paper),
			opts...)
	}
	ours := []way{
		{"NMF", quantmf.MethodNMF, long,
			[]quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)}},
		{"NMF, Newton", quantmf.MethodNMF, 100, nil},
		{qmfPaper, quantmf.MethodQMF, long, append(slices.Clone(paper), quantmf.WithPenalty(0.01))},
		{"QMF", quantmf.MethodQMF, pick(s, 300, 100),
			[]quantmf.FitOption{quantmf.WithEpsilon(0.01), quantmf.WithShrinkage(0)}},
		{qmfqPaper, quantmf.MethodQMFQ, long, paperQMFQ(8, quantmf.FrobeniusUpdates(100))},
		{qmfqKL, quantmf.MethodQMFQ, pick(s, 300, 100),
			[]quantmf.FitOption{quantmf.WithEpsilon(0.01), quantmf.WithShrinkage(0),
				quantmf.WithProjection(quantmf.KLUpdates(20))}},
	}
	epochs := pick(s, 1000, 300)
	departures := []way{
		{"paper's settings", quantmf.MethodQMF, epochs, paper},
		{"penalty 0.01, as in the published code", quantmf.MethodQMF, epochs,
			with(quantmf.WithPenalty(0.01))},
		{"SquashArctan", quantmf.MethodQMF, epochs, arctan},
		{"SquashLogisticUnit", quantmf.MethodQMF, epochs,
			with(quantmf.WithSquash(quantmf.SquashLogisticUnit))},
		{"ε = 0.02", quantmf.MethodQMF, epochs, with(quantmf.WithEpsilon(0.02))},
		{"free ends", quantmf.MethodQMF, epochs, with(quantmf.WithEnds(quantmf.EndsFree))},
		{"rate 0.06, cosine", quantmf.MethodQMF, epochs,
			with(quantmf.WithLearningRate(0.06), quantmf.WithSchedule(quantmf.ScheduleCosine))},
		{"batches of 32", quantmf.MethodQMF, epochs, with(quantmf.WithBatch(32))},
		{"start from normal scores, quantiles by EM, factors by Gauss and Newton", quantmf.MethodQMF, epochs,
			with(quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0))},
		{"our defaults without shrinkage", quantmf.MethodQMF, epochs,
			[]quantmf.FitOption{quantmf.WithShrinkage(0)}},
	}
	var published map[string]map[string]any
	err := s.data.JSON("toy/official.json", &published0{&published})
	if err != nil && !data.IsMissing(err) {
		return nil, err
	}
	for gap, name := range map[float64]string{1: "toy-std1", 2: "toy-std2"} {
		m := settingsMatrix{Name: name}
		t, err := s.data.Table("toy/" + name)
		var x quantmf.Mat
		switch {
		case err == nil:
			x = t.X
			for _, model := range []string{"NMF (Frobenius updates)", "QMF", "QMFQ"} {
				m.Published = append(m.Published, publishedCurve(published[name], model))
			}
		case data.IsMissing(err):
			x = problem(160, 80, 8, gap, 0, 1).X
			m.Name += ", another draw"
		default:
			return nil, err
		}
		fits := slices.Clone(ours)
		if len(m.Published) > 0 {
			u, v := publishedFactors(160, 80, 8)
			fits = append(fits, way{qmfqDrawn, quantmf.MethodQMFQ, long,
				append(paperQMFQ(8, quantmf.FrobeniusUpdates(100)), quantmf.WithInit(u, v))})
		}
		own := len(fits)
		if gap == 1 { // departures on one matrix
			fits = append(fits, departures...)
		}
		for i, w := range fits {
			seeds := r.Seeds
			switch {
			case w.Name == qmfqDrawn:
				seeds = 1 // nothing in these fits is random
			case w.Method == quantmf.MethodQMFQ:
				seeds = r.QMFQSeeds
			case i >= own:
				seeds = r.DepartureSeeds
			}
			traces := make([]trace, seeds)
			err := s.each(seeds, func(seed int) (err error) {
				key := fmt.Sprintf("%s, %s, %d epochs, seed %d", m.Name, w.Name, w.Epochs, seed+1)
				traces[seed], err = cached(s, key, func() (trace, error) {
					_, _, t, err := w.fit(s, x, 8, uint64(seed+1))
					return t, err
				})
				return err
			})
			if err != nil {
				return nil, err
			}
			if b := bandOf(w.Name, traces); i < own {
				m.Ours = append(m.Ours, b)
			} else {
				m.Departures = append(m.Departures, b)
			}
		}
		r.Matrices = append(r.Matrices, m)
	}
	slices.SortFunc(r.Matrices, func(a, b settingsMatrix) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return r, nil
}

// published0 reads the objects of official.json and skips its remarks.
type published0 struct{ to *map[string]map[string]any }

func (p *published0) UnmarshalJSON(text []byte) error {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*p.to = map[string]map[string]any{}
	for name, v := range all {
		if m, is := v.(map[string]any); is {
			(*p.to)[name] = m
		}
	}
	return nil
}

// publishedCurve reads the losses of a model at the epochs that are its keys.
func publishedCurve(of map[string]any, model string) band {
	b := band{Name: model}
	losses, _ := of[model].(map[string]any)
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

func settingsPage(w *writer) error {
	w.p("## The paper's own settings\n")
	r, has, err := read[settingsResult]("settings")
	if err != nil || !has {
		w.p("Not run.\n")
		return err
	}
	res := r.Result
	w.made(r.Header, fmt.Sprintf("seeds: %d, of QMFQ %d, of departures %d", res.Seeds, res.QMFQSeeds,
		res.DepartureSeeds))
	w.p("The toy again, on two matrices on which the published code was run (once; NMF by Frobenius " +
		"updates there, by KL updates here, and QMFQ by 100 Frobenius updates a")
	w.p("projection in both). Its QMF has a penalty of 0.01, and so has \"%s\" here. \"QMF\" and \"%s\" "+
		"are our defaults with ε = 0.01, without shrinkage, by 20 updates a projection; their rates "+
		"fall to 0", qmfPaper, qmfqKL)
	w.p("over the whole fit, so that a shorter fit would be lower at its end than these are on the way. Of " +
		"the paper's settings medians of the seeds are given, and their range.")
	w.p("[qmf.md](../docs/measurements/qmf.md) has the epochs and seconds that FitQMF takes to the " +
		"published losses.\n")
	shown := "Losses of our fits, with the paper's settings and at our defaults (lines, bands over seeds)."
	if len(res.Matrices) > 0 && len(res.Matrices[0].Published) > 0 {
		shown = "Losses of our fits, with the paper's settings and at our defaults (lines, bands over " +
			"seeds), and those of the published code on the same matrices (marks). The dotted line through " +
			"the squares is our QMFQ from the factors that the published code draws."
	}
	err = w.picture("settings", shown, func() error {
		var row []*chart
		for _, m := range res.Matrices {
			c := &chart{title: m.Name, x: epochAxis, y: "loss (KL per entry)", logX: true, logY: true}
			if len(row) == 0 {
				c.legend = "top right"
			}
			for _, name := range []string{"NMF", qmfPaper, "QMF", qmfqPaper, qmfqKL} {
				if b, has := find(m.Ours, name); has {
					c.add(b.overEpochs(looks[name]))
				}
			}
			if b, has := find(m.Ours, qmfqDrawn); has {
				l := band{Name: "QMFQ, published draw", Epoch: b.Epoch,
					Median: b.Median}.overEpochs(line{color: purple, dash: 3})
				c.add(l)
			}
			for i, b := range m.Published {
				look := []line{{color: black}, {color: sky, dash: 1}, {color: orange, dash: 2}}[i]
				look.noLine = true
				c.add(band{Name: b.Name + ", published code", Epoch: b.Epoch,
					Median: b.Median}.overEpochs(look))
			}
			row = append(row, c)
		}
		return figure("settings", 12, 10, row)
	})
	if err != nil {
		return err
	}
	at := []int{0, 10, 30, 100, 300, 1000}
	head := []string{""}
	for _, e := range at {
		head = append(head, fmt.Sprint(e))
	}
	for _, m := range res.Matrices {
		head[0] = m.Name + ": loss after epochs"
		rows := [][]string{head}
		line := func(name string, b band) {
			row := []string{name}
			for _, e := range at {
				row = append(row, cell(b.at(e)))
				if i := slices.Index(b.Epoch, e); (name == qmfPaper || name == qmfqPaper) && i >= 0 &&
					b.Low != nil {
					row[len(row)-1] += fmt.Sprintf(" (%s–%s)", g(b.Low[i]), g(b.High[i]))
				}
			}
			rows = append(rows, row)
		}
		for _, b := range m.Published {
			line(b.Name+", published code", b)
		}
		for _, b := range m.Ours {
			line(b.Name, b)
		}
		w.table(rows)
		if len(m.Published) < 3 {
			continue
		}
		for i, pair := range [][2]string{{"NMF", "NMF"}, {qmfPaper, "QMF"}, {qmfqPaper, "QMFQ"}} {
			theirs := m.Published[i]
			same, _ := find(m.Ours, pair[0])
			defaults, _ := find(m.Ours,
				map[string]string{"NMF": "NMF, Newton", "QMF": "QMF", "QMFQ": qmfqKL}[pair[1]])
			if pair[1] != "NMF" {
				fromMedian, outside, farthest := 0.0, 0.0, 0
				for i, e := range same.Epoch {
					if t := theirs.at(e); !math.IsNaN(t) {
						if d := math.Abs(math.Log(same.Median[i] / t)); d > fromMedian {
							fromMedian, farthest = d, i
						}
						outside = max(outside, math.Log(same.Low[i]/t), math.Log(t/same.High[i]))
					}
				}
				fromMedian, outside = math.Exp(fromMedian), 100*math.Expm1(outside)
				near := fromMedian <= 1.1
				seeds := verdict(outside <= 0, "inside the range of our seeds",
					fmt.Sprintf("outside the range of our seeds by %.0f %% at most", outside))
				drawn, has := find(m.Ours, qmfqDrawn)
				curve := ""
				if pair[1] == "QMF" || !has {
					curve = fmt.Sprintf("With the paper's settings its curve is %s.", seeds)
					w.p("- %s, the paper's settings: at equal epochs our median of %d seeds is within a "+
						"factor of %.2f of their curve, farthest after %d epochs, where ours range from %s "+
						"to %s. Their curve is %s. %s", pair[1], len(same.Final), fromMedian,
						same.Epoch[farthest], g(same.Low[farthest]), g(same.High[farthest]), seeds,
						verdict(near || outside <= 0, "It is the same method.",
							"That is more than 10 % off."))
				} else {
					off, count := 0.0, 0
					for i, e := range drawn.Epoch {
						if t := theirs.at(e); !math.IsNaN(t) {
							off, count = max(off, math.Abs(drawn.Median[i]/t-1)), count+1
						}
					}
					at := len(same.Epoch) - 1
					w.p("- QMFQ, the paper's settings: all projections of a fit start from the same random " +
						"factors, and nothing else is random. The published code draws them by seed 0, " +
						"uniform on")
					w.p("  [0.01, 1.01). From these very factors, drawn again here, our losses are within "+
						"%s %% of theirs at each of the %d epochs at which theirs are known. %s", g(100*off),
						count,
						verdict(off <= 0.1, "It is the same method.", "That is more than 10 %."))
					w.p("  Over %d draws of ours, exp of uniform numbers on [-1/2, 1/2], the loss after %d "+
						"epochs ranges from %s to %s. Their curve is within a factor of %.2f of our "+
						"median, and %s: %s", len(same.Final), same.Epoch[at],
						g(same.Low[at]), g(same.High[at]), fromMedian, seeds,
						verdict(near, "their draw is an ordinary one.",
							"the draw makes the difference, not the method."))
					curve = fmt.Sprintf("With the paper's settings, from the factors that it draws, our "+
						"losses are within %s %% of its at each epoch.", g(100*off))
				}
				w.claim(fmt.Sprintf("The published code's losses of %s on %s", pair[1], m.Name),
					"%s With our steps the loss is %s after %d epochs, theirs %s after %d. "+
						"[Settings](#the-papers-own-settings)", curve,
					g(defaults.last()), defaults.Epoch[len(defaults.Epoch)-1],
					g(theirs.at(theirs.Epoch[len(theirs.Epoch)-1])), theirs.Epoch[len(theirs.Epoch)-1])
			}
			last := theirs.Epoch[len(theirs.Epoch)-1]
			end := defaults.Epoch[len(defaults.Epoch)-1]
			w.p("- %s, our defaults: %s after %d epochs; the published code has %s after %d. %s",
				map[string]string{"NMF": "NMF by Newton's method", "QMF": "QMF", "QMFQ": "QMFQ"}[pair[1]],
				g(defaults.last()), end, g(theirs.at(last)), last,
				verdict(defaults.last() <= theirs.at(last), "Ours is lower.",
					fmt.Sprintf("Ours is %.0f %% higher.", 100*(defaults.last()/theirs.at(last)-1))))
		}
		w.p("")
	}
	for _, m := range res.Matrices {
		if len(m.Departures) == 0 {
			continue
		}
		w.p("**One departure at a time** from the paper's settings of QMF, on %s:\n", m.Name)
		rows := [][]string{head}
		head[0] = "departure"
		for _, b := range m.Departures {
			row := []string{b.Name}
			for _, e := range at {
				row = append(row, cell(b.at(e)))
			}
			rows = append(rows, row)
		}
		w.table(rows)
		first := m.Departures[0]
		var best, second band
		for _, b := range m.Departures[1 : len(m.Departures)-1] {
			if best.Median == nil || b.at(100) < best.at(100) {
				best, second = b, best
			} else if second.Median == nil || b.at(100) < second.at(100) {
				second = b
			}
		}
		w.p("After 100 epochs the paper's settings are at %s. Of single departures \"%s\" brings most "+
			"(%s), then \"%s\" (%s).\n", g(first.at(100)), best.Name, g(best.at(100)), second.Name,
			g(second.at(100)))
	}
	return nil
}
