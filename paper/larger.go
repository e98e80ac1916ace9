// This file has the larger synthetic problem with noise (paper §4 and its annex): 500 × 256, rank 10.
package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

type largerResult struct {
	Repeats int
	Bands   []band
}

// qmfOf returns the paper's settings of QMF with other levels, batches and rates.
func qmfOf(levels, batch int, rate float64) []quantmf.FitOption {
	return append(paperQMF(levels), quantmf.WithBatch(batch), quantmf.WithLearningRate(rate))
}

const (
	oursAll    = "ours, all rows"
	ours256    = "ours, batches of 256"
	ours64     = "ours, batches of 64"
	ours16     = "ours, batches of 16"
	oursAllUp  = "ours, all rows, rate 1"
	ours16Up   = "ours, batches of 16, rate 1"
	oursM4     = "ours, m = 4"
	oursM8     = "ours, m = 8"
	qmfqFew    = "ours, 5 updates"
	qmfqMany   = "ours, 50 updates"
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
		return append([]quantmf.FitOption{quantmf.WithEpsilon(0.01), quantmf.WithLevels(16),
			quantmf.WithShrinkage(0)}, more...)
	}
	return []way{
		{"NMF", quantmf.MethodNMF, epochs,
			[]quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)}},
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
		{oursAllUp, quantmf.MethodQMF, most, ours(quantmf.WithBatch(500), quantmf.WithLearningRate(1))},
		{ours16Up, quantmf.MethodQMF, most, ours(quantmf.WithBatch(16), quantmf.WithLearningRate(1))},
		{oursM4, quantmf.MethodQMF, most, ours(quantmf.WithLevels(4))},
		{oursM8, quantmf.MethodQMF, most, ours(quantmf.WithLevels(8))},
		{"QMFQ, 10 updates", quantmf.MethodQMFQ, inner, paperQMFQ(16, quantmf.KLUpdates(10))},
		{"QMFQ, " + strconv.Itoa(many) + " updates", quantmf.MethodQMFQ, inner,
			paperQMFQ(16, quantmf.KLUpdates(many))},
		{qmfqKL, quantmf.MethodQMFQ, inner, ours(quantmf.WithProjection(quantmf.KLUpdates(20)))},
		{qmfqFew, quantmf.MethodQMFQ, inner, ours(quantmf.WithProjection(quantmf.KLUpdates(5)))},
		{qmfqMany, quantmf.MethodQMFQ, inner, ours(quantmf.WithProjection(quantmf.KLUpdates(50)))},
	}
}

func largerRepeats(s *session) int { return pick(s, 8, 2) }

func larger(s *session) (any, error) {
	r := &largerResult{Repeats: largerRepeats(s)}
	for _, w := range largerWays(s) {
		traces := make([]trace, r.Repeats)
		err := s.each(r.Repeats, func(i int) (err error) {
			key := fmt.Sprintf("%s, %d epochs, repeat %d", w.Name, w.Epochs, i+1)
			traces[i], err = cached(s, key, func() (trace, error) {
				_, _, t, err := w.fit(s, problem(500, 256, 10, 1, 10, uint64(i+1)).X, 10, uint64(i+1))
				return t, err
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		r.Bands = append(r.Bands, bandOf(w.Name, traces))
	}
	return r, nil
}

func largerPage(w *writer) error {
	w.p("## Larger, with noise\n")
	r, has, err := read[largerResult]("larger")
	if err != nil || !has {
		w.p("Not run.\n")
		return err
	}
	res := r.Result
	w.made(r.Header, fmt.Sprintf("%d repeats, each another matrix", res.Repeats))
	w.p("d = 500, n = 256, k = 10, gaps of deviation 1, and max(10 N, 0) added after the quantile map, as " +
		"the paper says (its code adds it nowhere). m = 16 unless said. What the paper")
	w.p("says of batches, rates and inner updates concerns Adam: fits by their batch and rate alone, and "+
		"\"QMFQ\" by its updates alone, have the paper's settings. \"QMF\", \"%s\" and \"ours\" are", qmfqKL)
	w.p("FitQMF and FitQMFQ at their defaults with ε = 0.01, m = 16 and without shrinkage: steps by Gauss " +
		"and Newton's method, batches of 32, a rate of 0.2 (of the levels' weights alone), 20 updates.\n")
	by := map[string]band{}
	for _, b := range res.Bands {
		by[b.Name] = b
	}
	var inner []string // QMFQ at the paper's settings, with fewer and with more updates
	for _, b := range res.Bands {
		if strings.HasPrefix(b.Name, "QMFQ, ") && b.Name != qmfqKL {
			inner = append(inner, b.Name)
		}
	}
	err = w.picture("larger",
		"Loss against epochs: above and in the middle with the paper's settings, by size of batches, "+
			"learning rate, levels and inner updates; below the same by our steps. Bands are the range of "+
			"the repeats.", func() error {
			// panel draws the bands of some names, each under a label.
			panel := func(title string, names, labels []string, styles ...line) *chart {
				c := &chart{title: title, x: epochAxis, y: "loss (KL per entry)", logX: true, logY: true,
					legend: "bottom left"}
				for i, name := range append([]string{"NMF"}, names...) {
					if b, has := by[name]; has {
						l := b.overEpochs(append([]line{{color: black, dash: 3}}, styles...)[i])
						l.name = append([]string{"NMF"}, labels...)[i]
						c.add(l)
					}
				}
				return c
			}
			a, b, c, d, e := line{color: sky, dash: 1}, line{color: green, dash: 2}, line{color: blue},
				line{color: orange, dash: 1}, line{color: vermillion, dash: 2}
			left := panel("our steps, sizes of batches and rates",
				[]string{oursAll, ours256, "QMF", ours16, ours16Up},
				[]string{"all rows", "batches of 256", "batches of 32 (default)", "batches of 16",
					"batches of 16, rate 1"}, a, b, c, d, e)
			right := panel("our steps, levels, and inner updates of QMFQ",
				[]string{oursM4, oursM8, "QMF", qmfqFew, qmfqKL},
				[]string{"QMF, m = 4", "QMF, m = 8", "QMF, m = 16", "QMFQ, 5 updates (default)",
					"QMFQ, 20 updates"}, a, b, c, d, e)
			for _, p := range []*chart{left, right} {
				p.legend, p.yRange = "top right", [2]float64{0.15, 2000}
			}
			return figure("larger", 12, 8,
				[]*chart{panel("paper's settings, rate 0.01",
					[]string{largerAll, larger256, larger64, larger16},
					[]string{"all rows", "batches of 256", "batches of 64", "batches of 16"}, a, b, c, d),
					panel("paper's settings, rate 0.1", []string{fastAll, fast64, fast16},
						[]string{"all rows", "batches of 64", "batches of 16"}, a, c, d)},
				[]*chart{panel("paper's settings, batches of 64, levels",
					[]string{larger64m4, larger64m8, larger64}, []string{"m = 4", "m = 8", "m = 16"}, a, b,
					c),
					panel("paper's settings, inner updates of QMFQ", inner, inner, a, c)},
				[]*chart{left, right})
		})
	if err != nil {
		return err
	}
	at := []int{10, 30, 100, 300, 1000}
	rows := [][]string{{"median loss after epochs", "10", "30", "100", "300", "1000", "at the end",
		"range there", "seconds an epoch"}}
	for _, b := range res.Bands {
		row := []string{b.Name}
		for _, e := range at {
			row = append(row, cell(b.at(e)))
		}
		last := len(b.Epoch) - 1
		rows = append(rows, append(row, fmt.Sprintf("%s after %d", g(b.last()), b.Epoch[last]),
			fmt.Sprintf("%s–%s", g(b.Low[last]), g(b.High[last])),
			g((b.Second[last]-b.Second[0])/float64(b.Epoch[last]))))
	}
	w.table(rows)
	end := func(name string) float64 { return by[name].last() }
	epochs := func(name string) int {
		if e := by[name].Epoch; len(e) > 0 {
			return e[len(e)-1]
		}
		return 0
	}
	// judge says whether a claim holds with the paper's steps and with ours.
	judge := func(of, comes, says, ours, saysOurs string) {
		w.claim(of+" (larger)", "%s With our steps: %s [Larger](#larger-with-noise)", comes, ours)
		w.p("- *%s*: %s. **%s** Our steps: %s. **%s**", of, says, comes, saysOurs,
			strings.ToUpper(ours[:1])+ours[1:])
	}
	far := func(names ...string) string {
		worst := 0.0
		for _, name := range names {
			worst = max(worst, end(name))
		}
		return verdict(worst < end("NMF")/2,
			fmt.Sprintf("it holds, by a factor of %.0f at least.", end("NMF")/worst),
			verdict(worst < end("NMF"), fmt.Sprintf("below, by a factor of %.1f at least.", end("NMF")/worst),
				"it does not hold at this length."))
	}
	capital := func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
	papers := []string{larger64}
	if len(inner) > 0 {
		papers = append(papers, inner[len(inner)-1])
	}
	q := papers[len(papers)-1]
	judge("QMF and QMFQ far below NMF",
		capital(far(papers[0]))+
			verdict(q == papers[0], "", fmt.Sprintf(" Of QMFQ after %d epochs: %s", epochs(q), far(q))),
		fmt.Sprintf("NMF ends at %s after %d epochs, QMF with batches of 64 at %s after %d, %s at %s "+
			"after %d", g(end("NMF")), epochs("NMF"), g(end(larger64)), epochs(larger64), q, g(end(q)),
			epochs(q)),
		far("QMF", qmfqKL),
		fmt.Sprintf("QMF ends at %s after %d epochs, QMFQ at %s after %d", g(end("QMF")), epochs("QMF"),
			g(end(qmfqKL)), epochs(qmfqKL)))
	// sizes compares losses with small and large batches, early on and at the end.
	sizes := func(early int, names ...string) (comes, says string) {
		fast, above := true, true
		var first, last []string
		for i, name := range names {
			if i > 0 {
				fast = fast && by[names[i-1]].at(early) < by[name].at(early)
				above = above && end(names[i-1]) > end(name)
			}
			first, last = append(first, g(by[name].at(early))), append(last, g(end(name)))
		}
		list := func(v []string) string { return strings.Join(v[:len(v)-1], ", ") + " and " + v[len(v)-1] }
		highest := true
		for _, name := range names[1:] {
			highest = highest && end(names[0]) > end(name)
		}
		spread := func(at func(band) float64) float64 {
			least, most := math.Inf(1), 0.0
			for _, name := range names {
				least, most = min(least, at(by[name])), max(most, at(by[name]))
			}
			return most / least
		}
		earlySpread, lateSpread := spread(func(b band) float64 { return b.at(early) }), spread(band.last)
		says = fmt.Sprintf("batches of 16, 64, 256 and all rows are at %s after %d epochs, at %s after %d",
			list(first), early, list(last), epochs(names[0]))
		if earlySpread < 1.05 && lateSpread < 1.05 {
			return fmt.Sprintf("sizes of batches make a difference of %.0f %% early on and of %.0f %% at "+
				"the end.", 100*(earlySpread-1), 100*(lateSpread-1)), says
		}
		comes = verdict(fast, "the smaller, the faster early on; ",
			"not the smaller, the faster early on; ") +
			verdict(above, "the smaller, the higher at the end.",
				verdict(highest, "the smallest end highest, the others not in order.",
					"the smallest do not end highest."))
		return comes, says
	}
	comes, says := sizes(30, larger16, larger64, larger256, largerAll)
	ours, saysOurs := sizes(10, ours16, ours64, ours256, oursAll)
	judge("Small batches are fast early and end higher", capital(comes), says, ours, saysOurs)
	levels := func(four, eight, sixteen string) (comes, says string) {
		m4, m8, m16 := end(four), end(eight), end(sixteen)
		comes = verdict(m4 > 1.05*m8,
			verdict(m8 < 1.05*m16, "it holds.",
				fmt.Sprintf("m = 4 is worse, but 16 ends %.0f %% below 8.", 100*(1-m16/m8))),
			"m = 4 is not worse.")
		return comes, fmt.Sprintf("m = 4, 8 and 16 end at %s, %s and %s", g(m4), g(m8), g(m16))
	}
	comes, says = levels(larger64m4, larger64m8, larger64)
	ours, saysOurs = levels(oursM4, oursM8, "QMF")
	judge("m = 4 is worse than 8, and 16 no better than 8", capital(comes), says, ours, saysOurs)
	judge("A rate of 0.1 hurts small batches",
		verdict(end(fast16) > end(larger16),
			verdict(end(fast64) > end(larger64), "It holds for 16 and 64", "It holds for 16, not for 64"),
			"It does not hold")+verdict(end(fastAll) < end(largerAll), "; all rows gain.",
			"; all rows lose, too."),
		fmt.Sprintf("at 0.1 instead of 0.01 the loss ends at %s instead of %s with batches of 16, at %s "+
			"instead of %s with 64, at %s instead of %s with all rows", g(end(fast16)), g(end(larger16)),
			g(end(fast64)), g(end(larger64)), g(end(fastAll)), g(end(largerAll))),
		fmt.Sprintf("five times the rate changes the end by %+.0f %% with batches of 16, by %+.0f %% with "+
			"all rows.", 100*(end(ours16Up)/end(ours16)-1), 100*(end(oursAllUp)/end(oursAll)-1)),
		fmt.Sprintf("Adam steps the levels' weights alone; at 1 instead of 0.2 the loss ends at %s instead "+
			"of %s with batches of 16, at %s instead of %s with all rows", g(end(ours16Up)), g(end(ours16)),
			g(end(oursAllUp)), g(end(oursAll))))
	if len(inner) == 2 {
		w.p("- Inner updates, of which the paper shows curves: after %d epochs %s are at %s and %s at %s. "+
			"Our QMFQ, whose projections start from the factors of a QMF, is at %s with 5, at %s with 20 "+
			"and at %s with 50 after %d.",
			epochs(inner[0]), inner[0], g(end(inner[0])), strings.TrimPrefix(inner[1], "QMFQ, "),
			g(end(inner[1])), g(end(qmfqFew)), g(end(qmfqKL)), g(end(qmfqMany)), epochs(qmfqKL))
	}
	w.p("")
	return nil
}
