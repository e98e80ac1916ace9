package main

// This file writes the tables of docs/measurements/bqmf.md and draws its picture, from results/peers.json and from nothing else.

import (
	"encoding/json"
	"fmt"
	"image/color"
	"log"
	"math"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	pageFile    = "../../docs/measurements/bqmf.md"
	pictureFile = "../../docs/measurements/bqmf.png"
	pageBegins  = "<!-- From here on go run . peers of paper/study writes. -->\n"
	pageEnds    = "<!-- To here. -->\n"
)

func readPeers() (*peerResults, error) {
	text, err := os.ReadFile(peerFile)
	if err != nil {
		return nil, err
	}
	r := new(peerResults)
	return r, json.Unmarshal(text, r)
}

func writePeersPage(r *peerResults) {
	page, err := os.ReadFile(pageFile)
	check(err)
	head, rest, begins := strings.Cut(string(page), pageBegins)
	_, tail, ends := strings.Cut(rest, pageEnds)
	if !begins || !ends {
		log.Fatalf("%s has no place for the figures", pageFile)
	}
	check(os.WriteFile(pageFile, []byte(head+pageBegins+peersText(r)+pageEnds+tail), 0o644))
	check(drawPeers(r))
}

// singles are the methods that FitBQMF is compared with one by one.
var singles = slices.Concat(external, []string{"NMF", "QMF"})

// averages are the averages of predictions of this package's other models.
var averages = []string{"NMF, mean of ranks", "NMF, mean of seeds", "QMF, mean of ranks", "QMF, mean of seeds"}

func (t *peerResult) of() peerTable {
	return peerTables[slices.IndexFunc(peerTables, func(p peerTable) bool { return p.key == t.Key })]
}

// method returns the results of a method on a table, nil if there are none.
func (t *peerResult) method(name string) *methodResult {
	for i := range t.Methods {
		if t.Methods[i].Name == name {
			return &t.Methods[i]
		}
	}
	return nil
}

// A measure is a measure of the predictions of a method; least says that smaller values are better.
type measure struct {
	of    func(m *methodResult) []float64
	least bool
}

var (
	kl       = measure{func(m *methodResult) []float64 { return m.KL }, true}
	absolute = measure{func(m *methodResult) []float64 { return m.Absolute }, true}
	rank     = measure{func(m *methodResult) []float64 { return m.Rank }, false}
	seconds  = measure{func(m *methodResult) []float64 { return m.Second }, true}
)

// mean returns the mean over the masks, and false where a method has no values.
func (v measure) mean(t *peerResult, method string) (float64, bool) {
	if m := t.method(method); m != nil && len(v.of(m)) > 0 {
		return mean(v.of(m)), true
	}
	return 0, false
}

// both returns the means of two methods over the masks that both have.
func (v measure) both(t *peerResult, one, other string) (a, b float64, has bool) {
	m, o := t.method(one), t.method(other)
	if m == nil || o == nil {
		return 0, 0, false
	}
	masks := min(len(v.of(m)), len(v.of(o)))
	return mean(v.of(m)[:masks]), mean(v.of(o)[:masks]), masks > 0
}

// ratio returns the geometric mean over tables of BQMF's measure divided by that of a method.
func (v measure) ratio(tables []*peerResult, method string) (ratio float64, better, of int) {
	sum := 0.0
	for _, t := range tables {
		b, m, has := v.both(t, "BQMF", method)
		if !has {
			continue
		}
		of++
		sum += math.Log(b / m)
		if v.least && b < m || !v.least && b > m {
			better++
		}
	}
	return math.Exp(sum / float64(of)), better, of
}

// table writes a table. Its first row is the head.
func table(w *strings.Builder, rows [][]string) {
	for i, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	w.WriteString("\n")
}

// number returns v with the given number of digits, without an exponent.
func number(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%.*f", max(digits-1-int(math.Floor(math.Log10(math.Abs(v)))), 0), v)
}

func percent(v float64) string { return fmt.Sprintf("%.1f", 100*v) }

func peersText(r *peerResults) string {
	var w strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&w, format+"\n", args...) }
	var compared, wide, small []*peerResult // wide and small: of the tables on which BQMF was developed
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.of().alone {
			continue
		}
		compared = append(compared, t)
		if len(compared) <= designed {
			if t.of().wide {
				wide = append(wide, t)
			} else {
				small = append(small, t)
			}
		}
	}
	p("Figures are means over %d masks, or over one or two where (1) or (2) stands behind them. Bold is the best method of a row: the one with the best ratio to BQMF over the masks that both have. Version %s, %s, %s; scikit-learn %s, gcimpute %s.\n", r.Masks, r.Version, r.Date, r.Machine, r.Packages["scikit-learn"], r.Packages["gcimpute"])

	by := func(v measure, title string, methods []string, digits int) {
		p("**%s**\n", title)
		head := append([]string{"table", "d × n"}, methods...)
		rows := [][]string{head}
		for _, t := range compared {
			row := []string{t.of().name, fmt.Sprintf("%d × %d", t.Features, t.Samples)}
			best := 0 // the best ratio to BQMF over the masks that both have
			ratios := make([]float64, len(methods))
			for c, m := range methods {
				b, o, has := v.both(t, "BQMF", m)
				if ratios[c] = o / b; !has {
					ratios[c] = math.NaN()
				} else if v.least && ratios[c] < ratios[best] || !v.least && ratios[c] > ratios[best] {
					best = c
				}
			}
			for c, m := range methods {
				cell := ""
				if ratios[c] == ratios[c] {
					value, _ := v.mean(t, m)
					cell = number(value, digits)
					if c == best {
						cell = "**" + cell + "**"
					}
					if masks := len(v.of(t.method(m))); masks < r.Masks {
						cell += fmt.Sprintf(" (%d)", masks)
					}
				}
				row = append(row, cell)
			}
			rows = append(rows, row)
		}
		table(&w, rows)
	}
	shown := append([]string{"BQMF"}, singles...)
	by(kl, "Kullback-Leibler divergence of hidden cells", shown, 4)
	by(absolute, "Mean absolute error (BQMF predicts the median here)", shown, 3)
	by(rank, "Rank correlation within rows", shown, 2)
	by(seconds, "Seconds of one core, of one fit", shown, 2)

	p("**BQMF beside each other method**: its divergence (KL) in %% of theirs, as geometric means over tables; the number of tables on which its divergence, its absolute error and its rank correlation are better; and its seconds divided by theirs, as a geometric mean. BQMF was developed on the first %d tables.\n", designed)
	rows := [][]string{{"method", fmt.Sprintf("KL, first %d tables", len(wide)), fmt.Sprintf("next %d", len(small)), fmt.Sprintf("all %d", len(compared)), "better KL", "better absolute error", "better rank correlation", "seconds, times theirs"}}
	atLeast90 := 0
	for _, m := range singles {
		a, _, _ := kl.ratio(wide, m)
		b, _, _ := kl.ratio(small, m)
		c, better, of := kl.ratio(compared, m)
		_, abs, _ := absolute.ratio(compared, m)
		_, order, _ := rank.ratio(compared, m)
		s, _, _ := seconds.ratio(compared, m)
		if 10*better >= 9*of {
			atLeast90++
		}
		rows = append(rows, []string{m, percent(a), percent(b), percent(c), fmt.Sprintf("%d of %d", better, of), fmt.Sprintf("%d of %d", abs, of), fmt.Sprintf("%d of %d", order, of), number(s, 2)})
	}
	table(&w, rows)

	leastKL, leastAbs, firstRank := 0, 0, 0
	for _, t := range compared {
		first := func(v measure) int {
			for _, m := range singles {
				if b, o, has := v.both(t, "BQMF", m); has && (v.least && o < b || !v.least && o > b) {
					return 0
				}
			}
			return 1
		}
		leastKL += first(kl)
		leastAbs += first(absolute)
		firstRank += first(rank)
	}
	p("Of all methods BQMF has the least divergence on %d of the %d tables, the least absolute error on %d (%.0f %%), and the best rank correlation on %d. It has less divergence than each of", leastKL, len(compared), leastAbs, 100*float64(leastAbs)/float64(len(compared)), firstRank)
	p("%d of the %d other methods on at least nine tables of ten.\n", atLeast90, len(singles))
	p("![Seconds of a fit against the divergence of hidden cells, in hundredths of BQMF's, geometric means.](bqmf.png)\n")
	p("*Seconds of a fit against the divergence of hidden cells, in hundredths of BQMF's: geometric means over the wide tables (filled) and the small ones (open).*\n")

	p("### 80 %% intervals beside gcimpute's\n")
	rows = [][]string{{"table", "BQMF", "gcimpute"}}
	within := measure{func(m *methodResult) []float64 { return m.Within80 }, true}
	for _, t := range compared {
		row := []string{t.of().name}
		for _, m := range []string{"BQMF", "gcimpute"} {
			cell := ""
			if v, has := within.mean(t, m); has {
				cell = percent(v)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	table(&w, rows)

	p("### Averages of several models\n")
	p("The mean of the predictions of several NMFs or QMFs: of the four ranks from one seed, or of %d seeds at the best rank. The table has its divergence in %% of that of the best single model of the same kind, and of BQMF's, as geometric means over tables.\n", seeds)
	rows = [][]string{{"", fmt.Sprintf("of the single model, first %d tables", len(wide)), fmt.Sprintf("next %d", len(small)), fmt.Sprintf("all %d", len(compared)), "better on", "of BQMF, all", "better on"}}
	for _, m := range averages {
		of := func(tables []*peerResult, base string) (float64, int, int) {
			sum, better, n := 0.0, 0, 0
			for _, t := range tables {
				a, b, has := kl.both(t, m, base)
				if !has {
					continue
				}
				n++
				sum += math.Log(a / b)
				if a < b {
					better++
				}
			}
			return math.Exp(sum / float64(n)), better, n
		}
		single := m[:3]
		a, _, _ := of(wide, single)
		b, _, _ := of(small, single)
		c, better, n := of(compared, single)
		d, beat, _ := of(compared, "BQMF")
		rows = append(rows, []string{m, percent(a), percent(b), percent(c), fmt.Sprintf("%d of %d", better, n), percent(d), fmt.Sprintf("%d of %d", beat, n)})
	}
	table(&w, rows)

	p("## Intervals\n")
	p("The table has the share of the hidden cells, in %%, that lie within BQMF's central intervals, over %d masks together. Where a value that comes more", r.Masks)
	p("than once has a range of ranks, the part of the range that lies within the interval counts. \"Worst\" is the largest departure from the level in any tenth of the features, ordered by their mean, in points.\n")
	rows = [][]string{{"table", "50 %", "worst", "80 %", "worst", "95 %", "worst", "cells"}}
	close, tenths, wides, most := 0, 0, 0, 0.0
	for i := range r.Tables {
		t := &r.Tables[i]
		row := []string{t.of().name}
		near, even := true, true
		for l := range levels {
			off := t.Intervals.Within[l] - levels[l]
			row = append(row, percent(t.Intervals.Within[l]), fmt.Sprintf("%+.1f", 100*t.Intervals.Worst[l]))
			near = near && math.Abs(off) <= 0.03
			even = even && math.Abs(t.Intervals.Worst[l]) <= 0.06
			if t.of().wide {
				most = max(most, math.Abs(off))
			}
		}
		if t.of().wide {
			wides++
			if near {
				close++
			}
			if even {
				tenths++
			}
		}
		rows = append(rows, append(row, fmt.Sprint(t.Intervals.Cells)))
	}
	table(&w, rows)
	p("Of the %d wide tables %d are within 3 points of all three levels (the largest departure is %.1f), and %d within 6 points in every tenth of the features.\n", wides, close, 100*most, tenths)
	return w.String()
}

// named is a point of the plot and its name, which is drawn to its left or right.
type named struct {
	at   plotter.XY
	name string
	left bool
}

const (
	pictureWide, pictureHigh = 17 * vg.Centimeter, 11 * vg.Centimeter
	nameSize                 = 7.5 // points
)

// nameAll draws names beside points, as near to them as possible without covering a point or another name.
func nameAll(pl *plot.Plot, points []named) error {
	type box struct{ x, y, w, h float64 }
	place := func(at plotter.XY) (x, y float64) { // approximate places in points: axes take some of the picture
		share := func(v, low, high float64) float64 { return math.Log(v/low) / math.Log(high/low) }
		return share(at.X, pl.X.Min, pl.X.Max) * (pictureWide.Points() - 50), share(at.Y, pl.Y.Min, pl.Y.Max) * (pictureHigh.Points() - 40)
	}
	var taken []box
	for _, p := range points {
		x, y := place(p.at)
		taken = append(taken, box{x - 3, y - 3, 6, 6})
	}
	for own, p := range points {
		x, y := place(p.at)
		width := 0.55 * nameSize * float64(len(p.name))
		best, least := vg.Point{}, math.Inf(1)
		left := p.left
		for _, side := range []bool{p.left, !p.left} {
			for _, up := range []float64{0, 7, -7} {
				b := box{x + 5, y + up - nameSize/2, width, nameSize}
				if side {
					b.x = x - 5 - width
				}
				over := math.Abs(up) / 10
				if side != p.left {
					over++
				}
				for i, o := range taken {
					across, along := min(b.x+b.w, o.x+o.w)-max(b.x, o.x), min(b.y+b.h, o.y+o.h)-max(b.y, o.y)
					if i != own && across > 0 && along > 0 {
						over += across * along
					}
				}
				if over < least {
					best, least, left = vg.Point{X: 5, Y: vg.Points(up)}, over, side
				}
			}
		}
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{p.at}, Labels: []string{p.name}})
		if err != nil {
			return err
		}
		b := box{x + 5, y + best.Y.Points() - nameSize/2, width, nameSize}
		label.TextStyle[0].XAlign = text.XLeft
		if left {
			b.x, best.X, label.TextStyle[0].XAlign = x-5-width, -best.X, text.XRight
		}
		label.TextStyle[0].Font.Size, label.TextStyle[0].YAlign, label.Offset = vg.Points(nameSize), text.YCenter, best
		taken = append(taken, b)
		pl.Add(label)
	}
	return nil
}

// drawPeers draws error against seconds.
func drawPeers(r *peerResults) error {
	pl := plot.New()
	pl.X.Label.Text, pl.Y.Label.Text = "seconds of one core, a fit", "divergence of hidden cells, % of BQMF's"
	pl.X.Scale, pl.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	pl.Y.Scale, pl.Y.Tick.Marker = plot.LogScale{}, plot.ConstantTicks{{Value: 100, Label: "100"}, {Value: 120, Label: "120"}, {Value: 150, Label: "150"}, {Value: 200, Label: "200"}, {Value: 250, Label: "250"}, {Value: 300, Label: "300"}}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{205}, color.Gray{205}
	pl.Add(grid)
	low, high := math.Inf(1), 0.0
	var points []named
	for _, wide := range []bool{true, false} {
		var xy plotter.XYs
		var names []string
		for _, m := range append([]string{"BQMF"}, singles...) {
			e, s, n := 0.0, 0.0, 0.0
			for i := range r.Tables {
				t := &r.Tables[i]
				b, o, has := kl.both(t, "BQMF", m)
				if t.of().alone || t.of().wide != wide || !has {
					continue
				}
				took, _ := seconds.mean(t, m)
				e += math.Log(o / b)
				s += math.Log(took)
				n++
			}
			if n > 0 {
				xy = append(xy, plotter.XY{X: math.Exp(s / n), Y: 100 * math.Exp(e/n)})
				names = append(names, m)
				low, high = min(low, math.Exp(s/n)), max(high, math.Exp(s/n))
			}
		}
		marks, err := plotter.NewScatter(xy)
		if err != nil {
			return err
		}
		marks.Radius, marks.Shape = vg.Points(3), draw.CircleGlyph{}
		marks.Color = color.RGBA{0, 0x72, 0xB2, 255}
		if !wide {
			marks.Shape = draw.RingGlyph{}
			marks.Color = color.RGBA{0xD5, 0x5E, 0, 255}
		}
		pl.Add(marks)
		for i, name := range names {
			points = append(points, named{xy[i], name, !wide})
		}
		pl.Legend.Add(map[bool]string{true: "wide tables", false: "small tables"}[wide], marks)
	}
	pl.X.Min, pl.X.Max, pl.Y.Min, pl.Y.Max = low/5, high*5, 95, 310
	if err := nameAll(pl, points); err != nil {
		return err
	}
	pl.Legend.Top, pl.Legend.YOffs = true, vg.Points(-4)
	return pl.Save(pictureWide, pictureHigh, pictureFile)
}
