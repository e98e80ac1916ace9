package report

// This file holds the heatmaps: what of the matrices they show, in which order
// and in which colours.

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// most rows or columns of a heatmap: a panel is about 270 pixels wide on a screen.
const most = 300

// reach is the number of standard deviations at which colours end.
const reach = 2.5

// shades is the number of colours, odd so that 0 has one of its own. It is also the index of
// the colour of missing values.
const shades = 63

// shown says which rows and columns the heatmaps show, in their order.
type shown struct {
	rows, columns []int
}

// arrange picks rows and columns and orders them: rows like beside like, columns as Order says; members of a
// group together but in the order of the tree. It also returns the columns as the table has them, and their
// tree.
func (f *Fit) arrange(p places) (s shown, picked []int, t tree) {
	rows := account.Largest(f.explainedOfEach(), most)
	slices.Sort(rows)
	picked = make([]int, min(f.X.Cols, most))
	for j := range picked {
		picked[j] = j * f.X.Cols / len(picked)
	}
	byRow := make([][]float64, len(rows))
	for t, i := range rows {
		byRow[t] = at(standardised(f.Fitted.Row(i), f.Fitted.Row(i)), picked)
	}
	rows = at(rows, clustered(byRow).leaves)
	f.FeatureGroups.order(rows)
	t = clustered(at(p.points, picked))
	columns := slices.Clone(picked)
	if f.Order == "tree" {
		return shown{rows, at(columns, t.leaves)}, picked, t
	}
	if c := Component(f.Order); c > 0 && c <= f.V.Rows {
		v := f.V.Row(c - 1)
		slices.SortStableFunc(columns, func(a, b int) int { return cmp.Compare(v[b], v[a]) })
	}
	f.SampleGroups.order(columns)
	return shown{rows, columns}, picked, t
}

// Component is the number of the component that a word such as c2 names, 0 for any other word.
func Component(word string) int {
	c, err := strconv.Atoi(strings.TrimPrefix(word, "c"))
	if err != nil || c < 1 || word != name(c-1) {
		return 0
	}
	return c
}

// standardised returns v in standard deviations of by from its mean, 0 where by is constant,
// NaN where v is missing.
func standardised(v, by []float64) []float64 {
	m, s := mean(by), deviation(by)
	z := make([]float64, len(v))
	for j, x := range v {
		z[j] = scaled(x, m, m, s)
	}
	return z
}

// scaled is x-from in units of s, 0 where s is 0 beside m.
func scaled(x, from, m, s float64) float64 {
	if x == x && !(s > 1e-12*math.Abs(m)) {
		return 0
	}
	return (x - from) / s
}

// residual returns x less the fit in standard deviations of x.
func residual(x, fit []float64) []float64 {
	m, s := mean(x), deviation(x)
	z := make([]float64, len(x))
	for j, v := range x {
		z[j] = scaled(v, fit[j], m, s)
	}
	return z
}

// panel is one of the heatmaps; row gives a row in standard deviations.
type panel struct {
	title, says string
	row         func(i int) []float64
}

// panels are the heatmaps that a model has: the data, what the components make of it or are
// fitted to, the fit and what it leaves.
func (f *Fit) panels(uv quantmf.Mat) []panel {
	byOwn := func(m quantmf.Mat) func(int) []float64 {
		return func(i int) []float64 { return standardised(m.Row(i), m.Row(i)) }
	}
	out := []panel{{"X, the data", "the data", byOwn(f.X)}}
	switch {
	case f.Normalized.Rows > 0:
		out = append(out, panel{"T′(X), the data normalised", "the data on the scale of the components",
			byOwn(f.Normalized)})
	case f.mapped():
		out = append(out, panel{"UV, the components", "the mixture of components before the maps", byOwn(uv)})
	}
	fit := "UV, the fit"
	if f.mapped() {
		fit = "T(UV), the fit"
	}
	return append(out, panel{fit, "the fit",
		func(i int) []float64 { return standardised(f.Fitted.Row(i), f.X.Row(i)) }},
		panel{"X less the fit", "the residuals",
			func(i int) []float64 { return residual(f.X.Row(i), f.Fitted.Row(i)) }})
}

// draw paints a panel: one pixel an entry.
func (s shown) draw(row func(i int) []float64) markup {
	img := image.NewPaletted(image.Rect(0, 0, len(s.columns), len(s.rows)), diverging)
	for y, i := range s.rows {
		z := row(i)
		for x, j := range s.columns {
			img.SetColorIndex(x, y, shade(z[j]))
		}
	}
	return dataURI(img)
}

func shade(z float64) uint8 {
	if z != z {
		return shades
	}
	return uint8(math.Round((min(max(z, -reach), reach)/reach + 1) / 2 * (shades - 1)))
}

func dataURI(img image.Image) markup {
	var b bytes.Buffer
	b.WriteString("data:image/png;base64,")
	to := base64.NewEncoder(base64.StdEncoding, &b)
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(to, img); err != nil {
		panic(err) // a buffer takes everything and the image has a size
	}
	to.Close()
	return markup(b.String())
}

// Sizes of the figure of heatmaps, in pixels.
const (
	heatWidth  = 1120.
	heatGap    = 14.
	heatTop    = 24.
	labelPitch = 11. // between labels that can be read
	bandWidth  = 8.  // of the colours of groups
	letter     = 6.3 // the mean width of a character
)

// heatLayout says where the panels, their labels and the bands of groups lie.
type heatLayout struct {
	rows, columns         float64 // their numbers
	left, top             float64 // of the first panel
	width, height, bottom float64 // of a panel, and of the room below it
	names                 []string
	named                 bool // names are those of rows; else of runs
	samplesNamed          bool
	rowRuns, columnRuns   []run
}

func (f *Fit) heatLayout(s shown, panels int) heatLayout {
	l := heatLayout{rows: float64(len(s.rows)), columns: float64(len(s.columns)), left: 18, top: heatTop,
		bottom: 18}
	l.height = min(max(1.4*l.rows, 240), 520)
	if labelPitch*l.rows <= 620 {
		l.height = max(l.height, labelPitch*l.rows)
	}
	l.rowRuns, l.columnRuns = f.FeatureGroups.runs(s.rows), f.SampleGroups.runs(s.columns)
	if l.columnRuns != nil {
		l.top += bandWidth + 3
	}
	if l.named = l.height/l.rows >= labelPitch; l.named {
		for _, i := range s.rows {
			l.names = append(l.names, clipped(f.Features[i], 24))
		}
	} else {
		for _, r := range l.rowRuns {
			l.names = append(l.names, clipped(f.FeatureGroups.name(r.rank), 24))
		}
	}
	if len(l.names) > 0 {
		l.left = widest(l.names) + 8
	}
	if l.rowRuns != nil {
		l.left += bandWidth + 3
	}
	count := float64(panels)
	l.width = (heatWidth - l.left - heatGap*(count-1)) / count
	if l.samplesNamed = l.width/l.columns >= labelPitch; l.samplesNamed {
		l.bottom = widest(f.sampleNames(s.columns)) + 10
	}
	return l
}

// sampleNames are those of samples as figures have them.
func (f *Fit) sampleNames(columns []int) (names []string) {
	for _, j := range columns {
		names = append(names, clipped(f.Samples[j], 16))
	}
	return names
}

// widest is about the width of the longest name.
func widest(names []string) float64 {
	most := 0
	for _, n := range names {
		most = max(most, utf8.RuneCountInString(n))
	}
	return letter * float64(most)
}

// heatmaps writes the figure of all panels, what its colours mean and what it leaves out.
func (d *document) heatmaps(f *Fit, s shown, uv quantmf.Mat) {
	panels := f.panels(uv)
	l := f.heatLayout(s, len(panels))
	var says []string
	for _, p := range panels {
		says = append(says, p.says)
	}
	d.add(`<figure><div class="wide">`)
	d.svg(heatWidth, l.top+l.height+l.bottom,
		fmt.Sprintf("Heatmaps of %s: %s by %s, each feature in its standard deviations",
			strings.Join(says, ", "), table.Counted(len(s.rows), "feature"),
			table.Counted(len(s.columns), "sample")))
	d.heatRows(f, l)
	for t, p := range panels {
		d.heatPanel(f, s, l, l.left+float64(t)*(l.width+heatGap), p)
	}
	d.WriteString("</svg>\n")
	d.scale(f.missing() > 0)
	d.WriteString("</div>\n")
	d.legend("features", &f.FeatureGroups, s.rows)
	d.legend("samples", &f.SampleGroups, s.columns)
	d.heatmapCaption(f, s, l.rowRuns != nil || l.columnRuns != nil)
}

// heatRows writes what stands left of the first panel: names of rows or of groups, and the bands of groups.
func (d *document) heatRows(f *Fit, l heatLayout) {
	pitch, right := l.height/l.rows, l.left-6
	if l.rowRuns != nil {
		right -= bandWidth + 3
	}
	for t, n := range l.names {
		from, to := t, t+1
		if !l.named {
			from, to = l.rowRuns[t].from, l.rowRuns[t].to
		}
		if float64(to-from)*pitch >= labelPitch {
			d.text("end small", right, l.top+float64(from+to)/2*pitch+3.5, n)
		}
	}
	if len(l.names) == 0 {
		d.upright("mid small", 11, l.top+l.height/2, table.Counted(int(l.rows), "feature"))
	}
	for _, r := range l.rowRuns {
		d.band(&f.FeatureGroups, r, "feature", box(l.left-bandWidth-3, l.top+float64(r.from)*pitch, l.left-3,
			l.top+float64(r.to)*pitch))
	}
}

// band writes the colour of a group along a run of its members.
func (d *document) band(g *Groups, r run, what, path string) {
	d.path(series{Class: "band", Fill: g.ink(r.rank), Path: path,
		Says: g.name(r.rank) + ": " + table.Counted(r.to-r.from, what)})
}

// heatPanel writes a panel, at x, with its title, bands and the names of samples.
func (d *document) heatPanel(f *Fit, s shown, l heatLayout, x float64, p panel) {
	d.text("title", x, 13, p.title)
	for _, r := range l.columnRuns {
		d.band(&f.SampleGroups, r, "sample", box(x+float64(r.from)*l.width/l.columns, heatTop,
			x+float64(r.to)*l.width/l.columns, heatTop+bandWidth))
	}
	fine := ""
	if l.columns > l.width { // rows are never finer than pixels
		fine = ` class="fine"`
	}
	width, height := coordinate(l.width), coordinate(l.height)
	d.add(`<image%s x="%s" y="%g" width="%s" height="%s" preserveAspectRatio="none" href="%s"/>`,
		markup(fine),
		coordinate(x), l.top, width, height, s.draw(p.row))
	d.add(`<rect class="frame" x="%s" y="%g" width="%s" height="%s"/>`, coordinate(x), l.top, width, height)
	if !l.samplesNamed {
		d.text("mid small", x+l.width/2, l.top+l.height+13, table.Counted(len(s.columns), "sample"))
		return
	}
	for t, n := range f.sampleNames(s.columns) {
		d.upright("end small", x+(float64(t)+.5)*l.width/l.columns+3.5, l.top+l.height+5, n)
	}
}

// heatmapCaption says in which units and order the heatmaps are, and which rows and columns they leave out.
func (d *document) heatmapCaption(f *Fit, s shown, grouped bool) {
	d.add("<figcaption>Colours are in standard deviations of each feature. The data and the fit are " +
		"relative to the mean of the data, ")
	if f.mapped() {
		d.add("the second panel, which is on another scale, to its own mean, ")
	}
	d.add("the residuals to 0. Features are ordered by likeness (Ward's clustering of the fit), samples ")
	c := Component(f.Order)
	switch {
	case f.Order == "tree":
		d.add("by their tree (below)")
	case c > 0 && c <= f.V.Rows:
		d.add("by their amount of %s", f.Order)
	default:
		d.add("as in the table")
	}
	if grouped && f.Order == "tree" && f.FeatureGroups.Of != nil {
		d.add(", features of a group together")
	} else if grouped && f.Order != "tree" {
		d.add(", members of a group together")
	}
	d.add(".")
	if len(s.rows) < f.X.Rows {
		d.add(" Shown are the %d features that are explained best, of %d.", len(s.rows), f.X.Rows)
	}
	if len(s.columns) < f.X.Cols {
		d.add(" Shown are %d samples, evenly spaced in the table, of %d.", len(s.columns), f.X.Cols)
	}
	d.WriteString("</figcaption></figure>\n")
}

// scale writes what the colours of heatmaps mean.
func (d *document) scale(missing bool) {
	img := image.NewPaletted(image.Rect(0, 0, shades, 1), diverging)
	for x := range shades {
		img.SetColorIndex(x, 0, uint8(x))
	}
	const width, left = 320., 20.
	d.svg(heatWidth, 46, fmt.Sprintf("Colours: blue is %g standard deviations below, white the mean, red "+
		"%g above", reach, reach))
	d.add(`<image x="%g" y="4" width="%g" height="12" preserveAspectRatio="none" href="%s"/>`, left, width,
		dataURI(img))
	for _, t := range []struct {
		at   float64
		text string
	}{{0, "≤ −2.5"}, {.3, "−1"}, {.5, "0"}, {.7, "+1"}, {1, "≥ +2.5"}} {
		d.add(`<path class="axis" d="M%g 16v4"/>`, left+t.at*width)
		d.text("mid small", left+t.at*width, 32, t.text)
	}
	d.text("small", left+width+44, 14, "standard deviations of the feature")
	if missing {
		r, g, b, _ := diverging[shades].RGBA()
		d.add(`<path class="band" fill="#%02x%02x%02x" d="M%g 22h14v12h-14z"/>`, r>>8, g>>8, b>>8,
			left+width+44)
		d.text("small", left+width+64, 32, "missing")
	}
	d.WriteString("</svg>\n")
}

// legend names the groups that members have, and counts these.
func (d *document) legend(of string, g *Groups, members []int) {
	if g.Of == nil {
		return
	}
	members = slices.Clone(members)
	g.order(members)
	d.add(`<div class="key"><b>%s`, of)
	if g.Title != "" {
		d.add(" by %s", clipped(g.Title, 60))
	}
	d.add("</b>")
	for _, r := range g.runs(members) {
		d.key(series{Class: "band", Fill: g.ink(r.rank), Path: "M0 0h30v12H0z",
			Label: fmt.Sprintf("%s (%d)", clipped(g.name(r.rank), 60), r.to-r.from)})
	}
	d.WriteString("</div>\n")
}

// diverging runs from blue over near white to red in equal steps of perceived difference, and ends in the
// grey of missing values.
var diverging = palette()

// colours are straight lines in OKLab (Ottosson 2020) from lightness, chroma and hue 0.36, 0.13, 264° over
// 0.66, 0.12, 245° to 0.97, 0.005, 90° and on over 0.70, 0.14, 48° to 0.40, 0.14, 27°.
const colours = "1836801a3d851d438b204990234f9626559b295ca12c62a73068ac336fb23775b73a7bbd3e82c34188c8458fce" +
	"4996d4519cd85ea2da69a8dc75aede80b4e08bbae296c0e4a1c6e5abcce7b6d2e9c1d8eacbdeecd6e3ede1e9ef" +
	"eceff0f6f5f1f6eee7f6e6dcf5dfd2f4d8c7f3d0bdf2c9b2f1c1a8f0ba9defb393edab88eca37dea9c73e89468" +
	"e68c5ce48550e07d49da7745d47142cd6a3ec7643bc15d38ba5735b45131ae4a2ea8442ba23d289b3725953022" +
	"8f291e89221b831a18"

func palette() color.Palette {
	p := make(color.Palette, shades, shades+1)
	for i := range p {
		v, _ := strconv.ParseUint(colours[6*i:6*i+6], 16, 32)
		p[i] = color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255}
	}
	return append(p, color.RGBA{0x8e, 0x8e, 0x8e, 255})
}
