// The paper's own settings on matrices for which losses of the published code are known,
// and what each departure of this package's defaults brings.
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
	Seeds, QMFQSeeds int
	Matrices         []settingsMatrix
}

type settingsMatrix struct {
	Name       string
	Published  []band // of one run each, empty without data
	Ours       []band
	Departures []band // from the paper's settings of QMF, one at a time
}

func settings(s *session) (any, error) {
	r := &settingsResult{Seeds: pick(s, 8, 2), QMFQSeeds: pick(s, 8, 4)}
	long := pick(s, 1000, 300)
	arctan := append(paperQMF(8), quantmf.WithSquash(quantmf.SquashArctan))
	paper := paperQMF(8)
	with := func(opts ...quantmf.FitOption) []quantmf.FitOption { return append(slices.Clone(paper), opts...) }
	ours := []way{
		{"NMF", quantmf.MethodNMF, long, []quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)}},
		{"NMF, Newton", quantmf.MethodNMF, 100, nil},
		{qmfPaper, quantmf.MethodQMF, long, append(slices.Clone(paper), quantmf.WithPenalty(0.01))},
		{"QMF", quantmf.MethodQMF, pick(s, 300, 100), []quantmf.FitOption{quantmf.WithEpsilon(0.01), quantmf.WithShrinkage(0)}},
		{qmfqPaper, quantmf.MethodQMFQ, long, paperQMFQ(8, quantmf.FrobeniusUpdates(100))},
		{qmfqKL, quantmf.MethodQMFQ, pick(s, 300, 100), []quantmf.FitOption{quantmf.WithEpsilon(0.01)}},
	}
	epochs := pick(s, 1000, 300)
	departures := []way{
		{"paper's settings", quantmf.MethodQMF, epochs, paper},
		{"penalty 0.01, as in the published code", quantmf.MethodQMF, epochs, with(quantmf.WithPenalty(0.01))},
		{"SquashArctan", quantmf.MethodQMF, epochs, arctan},
		{"SquashLogisticUnit", quantmf.MethodQMF, epochs, with(quantmf.WithSquash(quantmf.SquashLogisticUnit))},
		{"ε = 0.02", quantmf.MethodQMF, epochs, with(quantmf.WithEpsilon(0.02))},
		{"free ends", quantmf.MethodQMF, epochs, with(quantmf.WithEnds(quantmf.EndsFree))},
		{"rate 0.06, cosine", quantmf.MethodQMF, epochs, with(quantmf.WithLearningRate(0.06), quantmf.WithSchedule(quantmf.ScheduleCosine))},
		{"batches of 32", quantmf.MethodQMF, epochs, with(quantmf.WithBatch(32))},
		{"start from normal scores, quantiles by EM, factors by Gauss and Newton", quantmf.MethodQMF, epochs, with(quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0))},
		{"our defaults without shrinkage", quantmf.MethodQMF, epochs, []quantmf.FitOption{quantmf.WithShrinkage(0)}},
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
			fits = append(fits, way{qmfqDrawn, quantmf.MethodQMFQ, long, append(paperQMFQ(8, quantmf.FrobeniusUpdates(100)), quantmf.WithInit(u, v))})
		}
		own := len(fits)
		if gap == 1 { // departures on one matrix
			fits = append(fits, departures...)
		}
		for i, w := range fits {
			seeds := r.Seeds
			switch {
			case w.Name == qmfqDrawn:
				seeds = 1 // nothing is left to chance
			case w.Method == quantmf.MethodQMFQ:
				seeds = r.QMFQSeeds
			}
			traces := make([]trace, seeds)
			err := s.abreast(seeds, func(seed int) (err error) {
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

// published0 takes the objects of official.json and leaves its remarks.
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
	w.made(r.Header, fmt.Sprintf("%d seeds, of QMFQ %d", res.Seeds, res.QMFQSeeds))
	w.p("The toy again, on two matrices on which the published code was run (once; NMF by Frobenius updates there, by KL updates here, and QMFQ by 100 Frobenius updates a")
	w.p("projection in both). Its QMF has a penalty of 0.01, and so has \"%s\" here.\n", qmfPaper)
	err = w.picture("settings", "Our losses with the paper's settings (lines, bands over seeds) and those of the published code on the same matrices (marks).", func() error {
		var row []*chart
		for _, m := range res.Matrices {
			c := &chart{title: m.Name, x: "epochs", y: "loss (KL per entry)", logX: true, logY: true}
			if len(row) == 0 {
				c.legend = "top right"
			}
			for _, name := range []string{"NMF", qmfPaper, "QMF", qmfqPaper, qmfqKL} {
				if b, has := find(m.Ours, name); has {
					c.add(b.overEpochs(looks[name]))
				}
			}
			for i, b := range m.Published {
				look := []line{{color: black}, {color: sky, dash: 1}, {color: orange, dash: 2}}[i]
				look.noLine = true
				c.add(band{Name: b.Name + ", published code", Epoch: b.Epoch, Median: b.Median}.overEpochs(look))
			}
			row = append(row, c)
		}
		return figure("settings", 13, 10, row)
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
			defaults, _ := find(m.Ours, map[string]string{"NMF": "NMF, Newton", "QMF": "QMF", "QMFQ": qmfqKL}[pair[1]])
			if pair[1] != "NMF" {
				fromMedian, outside := 0.0, 0.0
				for i, e := range same.Epoch {
					if t := theirs.at(e); !math.IsNaN(t) {
						fromMedian = max(fromMedian, math.Abs(math.Log(same.Median[i]/t)))
						outside = max(outside, math.Log(same.Low[i]/t), math.Log(t/same.High[i]))
					}
				}
				outside = 100 * math.Expm1(outside)
				w.p("- %s, the paper's settings: at equal epochs our median is within a factor of %.2f of their curve, and their curve is %s. %s", pair[1], math.Exp(fromMedian),
					verdict(outside <= 0, "within the range of our seeds", fmt.Sprintf("outside the range of our seeds by %.0f %% at most", outside)),
					verdict(outside <= 10, "It is the same method.", "It is more than 10 % off."))
				w.claim(fmt.Sprintf("The published code's losses of %s on %s", pair[1], m.Name), "With the paper's settings %s. At our defaults %s after %d epochs, theirs %s after %d. [Settings](#the-papers-own-settings)",
					verdict(outside <= 0, "they are within the range of our seeds", fmt.Sprintf("they are within %.0f %% of the range of our seeds", outside)),
					g(defaults.last()), defaults.Epoch[len(defaults.Epoch)-1], g(theirs.at(theirs.Epoch[len(theirs.Epoch)-1])), theirs.Epoch[len(theirs.Epoch)-1])
				if pair[1] == "QMFQ" && math.Exp(fromMedian) > 1.1 {
					at := len(same.Epoch) - 1
					w.p("  Seeds differ widely, from %s to %s after %d epochs, since all projections of a fit start from the same random factors; the published curve is one run.", g(same.Low[at]), g(same.High[at]), same.Epoch[at])
				}
			}
			last := theirs.Epoch[len(theirs.Epoch)-1]
			end := defaults.Epoch[len(defaults.Epoch)-1]
			w.p("- %s, our defaults: %s after %d epochs; the published code has %s after %d. %s", map[string]string{"NMF": "NMF by Newton's method", "QMF": "QMF", "QMFQ": "QMFQ"}[pair[1]], g(defaults.last()), end, g(theirs.at(last)), last,
				verdict(defaults.last() <= theirs.at(last), "Ours is lower.", fmt.Sprintf("Ours is %.0f %% higher.", 100*(defaults.last()/theirs.at(last)-1))))
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
		w.p("After 100 epochs the paper's settings are at %s. Of single departures \"%s\" brings most (%s), then \"%s\" (%s).\n", g(first.at(100)), best.Name, g(best.at(100)), second.Name, g(second.at(100)))
	}
	return nil
}
