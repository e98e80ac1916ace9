package main

// This file writes the tables of docs/measurements/bqmf.md and draws its picture, from results/peers.json and
// from nothing else.

import (
	"encoding/json"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"

	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	pageFile    = "../../docs/measurements/bqmf.md"
	pictureFile = "../../docs/measurements/bqmf.png"
)

func readPeers() (*peerResults, error) {
	text, err := os.ReadFile(peerFile)
	if err != nil {
		return nil, err
	}
	r := new(peerResults)
	return r, json.Unmarshal(text, r)
}

func writePeersPage(r *peerResults) error {
	if err := report.FillFile(pageFile, "paper/study", peersParts(r)); err != nil {
		return err
	}
	return drawPeers(r)
}

// singles are the methods that FitBQMF is compared with one by one.
var singles = slices.Concat(external[:5], []string{"NMF", "QMF"}, external[5:])

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

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

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

// number returns v with the given number of digits, without an exponent.
func number(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%.*f", max(digits-1-int(math.Floor(math.Log10(math.Abs(v)))), 0), v)
}

func percent(v float64) string { return fmt.Sprintf("%.1f", 100*v) }

// few marks a mean over fewer masks than the others have.
var few = map[int]string{1: "¹", 2: "²"}

// comparison has the tables on which BQMF is compared with other methods. Wide and small are those on which
// it was developed, fresh are the others.
type comparison struct {
	all, wide, small, fresh []*peerResult
	masks                   int
}

func compare(r *peerResults) *comparison {
	c := &comparison{masks: r.Masks}
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.of().alone {
			continue
		}
		c.all = append(c.all, t)
		switch {
		case len(c.all) > designed:
			c.fresh = append(c.fresh, t)
		case t.of().wide:
			c.wide = append(c.wide, t)
		default:
			c.small = append(c.small, t)
		}
	}
	return c
}

// peersParts returns the parts of the page.
func peersParts(r *peerResults) map[string]string {
	c := compare(r)
	return map[string]string{
		"summary": c.summary(),
		"versions": fmt.Sprintf("Version %s of this package, %s, %s; scikit-learn %s, gcimpute %s, "+
			"miceforest %s, pcaMethods %s, hyperimpute %s.\n"+
			"Figures are means over %d masks; ¹ and ² mark means over one mask and over two.\n",
			r.Version, r.Date, r.Machine, r.Packages["scikit-learn"], r.Packages["gcimpute"],
			r.Packages["miceforest"], r.Packages["pcaMethods"], r.Packages["hyperimpute"], r.Masks),
		"divergence": c.divergences(),
		"intervals":  intervalsText(r),
	}
}

// summary compares BQMF with each other method over all tables.
func (c *comparison) summary() string {
	over := func(what string, tables []*peerResult) string {
		return fmt.Sprintf("divergence, %d %s", len(tables), what)
	}
	rows := [][]string{{"method", over("wide", c.wide), over("small", c.small), over("later", c.fresh),
		fmt.Sprintf("all %d", len(c.all)), "less divergence", "less absolute error",
		"better rank correlation", "seconds, times theirs"}}
	for _, m := range singles {
		row := []string{m}
		for _, tables := range [][]*peerResult{c.wide, c.small, c.fresh, c.all} {
			ratio, _, of := kl.ratio(tables, m)
			cell := percent(ratio)
			switch {
			case of == 0:
				cell = ""
			case of < len(tables):
				cell += fmt.Sprintf(" (%d)", of)
			}
			row = append(row, cell)
		}
		for _, v := range []measure{kl, absolute, rank} {
			_, better, of := v.ratio(c.all, m)
			row = append(row, fmt.Sprintf("%d of %d", better, of))
		}
		s, _, _ := seconds.ratio(c.all, m)
		rows = append(rows, append(row, number(s, 2)))
	}
	return report.Table(rows) + fmt.Sprintf("\nOf all methods BQMF has the least divergence on %d of the %d "+
		"tables, the least absolute error on %d, and the best rank correlation on %d.\n", c.first(kl),
		len(c.all), c.first(absolute), c.first(rank))
}

// first returns the number of tables on which no method is better than BQMF.
func (c *comparison) first(v measure) (count int) {
	for _, t := range c.all {
		if !slices.ContainsFunc(singles, func(m string) bool {
			b, o, has := v.both(t, "BQMF", m)
			return has && (v.least && o < b || !v.least && o > b)
		}) {
			count++
		}
	}
	return count
}

// divergences has that of every method on every table. Bold is the method with the best ratio to BQMF over
// the masks that both have.
func (c *comparison) divergences() string {
	shown := append([]string{"BQMF"}, singles...)
	rows := [][]string{append([]string{"table", "d × n"}, shown...)}
	for _, t := range c.all {
		row := []string{t.of().name, fmt.Sprintf("%d × %d", t.Features, t.Samples)}
		best := 0
		ratios := make([]float64, len(shown))
		for i, m := range shown {
			b, o, has := kl.both(t, "BQMF", m)
			if ratios[i] = o / b; !has {
				ratios[i] = math.NaN()
			} else if ratios[i] < ratios[best] {
				best = i
			}
		}
		for i, m := range shown {
			cell := ""
			if ratios[i] == ratios[i] {
				value, _ := kl.mean(t, m)
				cell = number(value, 4)
				if i == best {
					cell = "**" + cell + "**"
				}
				if masks := len(t.method(m).KL); masks < c.masks {
					cell += few[masks]
				}
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return report.Table(rows)
}

// intervalsText has the shares of hidden cells within intervals, of BQMF on all tables and of gcimpute where
// it was fitted.
func intervalsText(r *peerResults) string {
	rows := [][]string{{"table", "50 %", "80 %", "95 %", "worst at 80", "80 %, gcimpute"}}
	within := measure{func(m *methodResult) []float64 { return m.Within80 }, true}
	wides, most, worst := 0, 0.0, 0.0
	for i := range r.Tables {
		t := &r.Tables[i]
		row := []string{t.of().name}
		for l := range levels {
			row = append(row, percent(t.Intervals.Within[l]))
			if t.of().wide {
				most, worst = max(most, math.Abs(t.Intervals.Within[l]-levels[l])),
					max(worst, math.Abs(t.Intervals.Worst[l]))
			}
		}
		if t.of().wide {
			wides++
		}
		row = append(row, fmt.Sprintf("%+.1f", 100*t.Intervals.Worst[1]), "")
		if v, has := within.mean(t, "gcimpute"); has {
			row[len(row)-1] = percent(v)
		}
		rows = append(rows, row)
	}
	return report.Table(rows) +
		fmt.Sprintf("\nOn the %d wide tables BQMF departs from its levels by %.1f points "+
			"at most, and by %.1f in a tenth of the features.\n", wides, 100*most, 100*worst)
}

// glyphs are the marks of BQMF and of the first singles.
var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{},
	draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}}

// drawPeers draws error against seconds: a glyph a method, a colour for wide and one for small tables.
func drawPeers(r *peerResults) error {
	pl := plot.New()
	pl.X.Label.Text = "seconds of one core, a fit (blue: wide tables, orange: small ones)"
	pl.Y.Label.Text = "divergence of hidden cells, % of BQMF's"
	pl.X.Scale, pl.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	pl.Y.Scale, pl.Y.Tick.Marker = plot.LogScale{},
		plot.ConstantTicks{{Value: 100, Label: "100"}, {Value: 120, Label: "120"}, {Value: 150, Label: "150"},
			{Value: 200, Label: "200"}, {Value: 250, Label: "250"}, {Value: 300, Label: "300"}}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{205}, color.Gray{205}
	pl.Add(grid)
	c := compare(r)
	for i, m := range append([]string{"BQMF"}, singles...)[:len(glyphs)] {
		var named plot.Thumbnailer // those of wide tables
		for _, of := range []struct {
			tables []*peerResult
			color  color.Color
		}{
			{c.small, color.RGBA{0xD5, 0x5E, 0, 255}},
			{slices.DeleteFunc(slices.Clone(c.all), func(t *peerResult) bool { return !t.of().wide }),
				color.RGBA{0, 0x72, 0xB2, 255}},
		} {
			ratio, _, _ := kl.ratio(of.tables, m)
			took, n := 0.0, 0.0
			for _, t := range of.tables {
				if s, has := seconds.mean(t, m); has {
					took += math.Log(s)
					n++
				}
			}
			marks, err := plotter.NewScatter(plotter.XYs{{X: math.Exp(took / n), Y: 100 / ratio}})
			if err != nil {
				return err
			}
			marks.Radius, marks.Shape, marks.Color = vg.Points(4), glyphs[i], of.color
			pl.Add(marks)
			named = marks
		}
		pl.Legend.Add(m, named)
	}
	pl.X.Min, pl.X.Max, pl.Y.Min, pl.Y.Max = 1e-3, 1e3, 95, 310
	pl.Legend.Top, pl.Legend.YOffs, pl.Legend.TextStyle.Font.Size = true, vg.Points(-4), vg.Points(8)
	return pl.Save(17*vg.Centimeter, 11*vg.Centimeter, pictureFile)
}
