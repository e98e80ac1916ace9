package report

// This file reads figures back: what they draw lies where their ticks, frames and images say that the numbers
// are.

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// found returns what the groups of a pattern match, numbers where they are.
func found(s, pattern string) (out [][]string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(s, -1) {
		out = append(out, m[1:])
	}
	return out
}

func number64(t *testing.T, s string) float64 {
	t.Helper()
	v := Must(strconv.ParseFloat(s, 64))(t)
	return v
}

// reading returns the value at a coordinate, by the line through the first and the last tick, of logarithms
// if log; and how much a value may be off where coordinates are rounded to a tenth. Each tick is a coordinate
// and a label.
func reading(t *testing.T, ticks [][]string, log bool) (at func(c float64) float64, off float64) {
	t.Helper()
	if len(ticks) < 2 {
		t.Fatalf("%d ticks", len(ticks))
	}
	value := func(k int) (c, v float64) {
		c, v = number64(t, ticks[k][0]), number64(t, ticks[k][1])
		if log {
			v = math.Log(v)
		}
		return c, v
	}
	c0, v0 := value(0)
	c1, v1 := value(len(ticks) - 1)
	per := (v1 - v0) / (c1 - c0)
	off = 0.21 * math.Abs(per)
	at = func(c float64) float64 { return v0 + (c-c0)*per }
	for k := range ticks {
		if c, v := value(k); math.Abs(at(c)-v) > off {
			t.Errorf("tick %s stands at %v", ticks[k][1], c)
		}
	}
	return at, off
}

// picture is a line plot that was read back.
type picture struct {
	text       string
	x, y       func(c float64) float64
	offX, offY float64
}

func readPlot(t *testing.T, p plot, log bool) picture {
	t.Helper()
	d := &document{}
	d.plot(p)
	f := picture{text: d.String()}
	for _, g := range found(f.text,
		`class="grid" d="M([-.\d]+) ([-.\d]+)H([-.\d]+)"/><text class="end" x="[^"]*" y="([-.\d]+)"`) {
		if g[1] != g[3] || number64(t, g[0]) != p.Left || number64(t, g[2]) != p.Right {
			t.Errorf("a line of the grid: %v", g)
		}
	}
	frame := fmt.Sprintf(`<svg x="%g" y="%g" width="%g" height="%g" viewBox="%[1]g %g %g %g">`, p.Left, p.Top,
		p.Right-p.Left, p.Bottom-p.Top)
	if clip := found(f.text, `(<svg x=[^>]*>)`); len(clip) != 1 || clip[0][0] != frame {
		t.Errorf("what clips the frame: %v", clip)
	}
	for _, m := range found(f.text, `<path class="(?:curve|line|dots|group)"[^>]* d="([^"]*)"`) {
		for _, at := range found(m[0], `[ML]([-.\d]+) ([-.\d]+)`) {
			if x, y := number64(t, at[0]),
				number64(t, at[1]); (x < p.Left || x > p.Right || y < p.Top || y > p.Bottom) &&
				!strings.Contains(f.text, `class="line" d="`+m[0]) {
				t.Errorf("a point outside the frame: %v", at)
			}
		}
	}
	for _, says := range []string{p.XLabel, p.YLabel} {
		if says == "" || !strings.Contains(f.text, ">"+says+"</text>") {
			t.Errorf("no label %q", says)
		}
	}
	f.y, f.offY = reading(t, found(f.text, `<text class="end" x="[^"]*" y="([-.\d]+)" dy=".35em">([^<]*)<`),
		log)
	f.x, f.offX = reading(t,
		found(f.text, `<path class="axis" d="M([-.\d]+) [-.\d]+v4"/><text class="mid" x="[^"]*" y="[^"]*" `+
			`dy="1.4em">([^<]*)<`), false)
	return f
}

// points are those of the paths of a class, a colour among its attributes.
func (f picture) points(t *testing.T, class string) (x, y []float64) {
	t.Helper()
	for _, path := range found(f.text, `<path class="`+class+`"[^>]* d="([^"]*)"`) {
		for _, m := range found(path[0], `[ML]([-.\d]+) ([-.\d]+)`) {
			x, y = append(x, f.x(number64(t, m[0]))), append(y, f.y(number64(t, m[1])))
		}
	}
	return x, y
}

// TestLossPlot: the curve has the loss of every epoch, and is named at its end, within the frame.
func TestLossPlot(t *testing.T) {
	t.Parallel()
	long := make([]float64, 2*mostEpochs+5)
	for e := range long {
		long[e] = 3 - float64(e)/float64(len(long))
	}
	for _, c := range []struct {
		loss []float64
		log  bool
	}{
		{[]float64{9, 3, 1, 0.5}, true}, {[]float64{2, 1.5, 1}, false}, {[]float64{-3, -1, -2}, false},
		{long, false},
	} {
		f := example(3, 4)
		f.Loss = c.loss
		p := lossPlot(&f)
		pic := readPlot(t, p, c.log)
		in := func(v float64) float64 {
			if c.log {
				return math.Log(v)
			}
			return v
		}
		x, y := pic.points(t, "curve")
		if len(x) > mostEpochs+1 || len(x) < min(len(c.loss), mostEpochs/2) {
			t.Fatalf("%v: %d points", c.loss, len(x))
		}
		for s := range x {
			e := int(math.Round(x[s]))
			if s == 0 && e != 0 || s == len(x)-1 && e != len(c.loss)-1 ||
				math.Abs(x[s]-float64(e)) > pic.offX || math.Abs(y[s]-in(c.loss[e])) > pic.offY {
				t.Fatalf("%v: a point at %v, %v", c.loss, x[s], y[s])
			}
		}
		low, high := slices.Min(c.loss), slices.Max(c.loss)
		if span := p.y.at(low) - p.y.at(high); !(span > 0.8*(p.Bottom-p.Top)) {
			t.Errorf("%v: the losses take %v of the height %v", c.loss, span, p.Bottom-p.Top)
		}
		names := found(pic.text, `<text class="named[ a-z]*" x="[^"]*" y="([.\d]+)">([^<]*)<`)
		end := c.loss[len(c.loss)-1]
		if !strings.HasPrefix(names[0][1], "QMF "+short(end)) || len(names) != 1 {
			t.Fatalf("%v: %v", c.loss, names)
		}
		for _, n := range names {
			if y := number64(t, n[0]); y < p.Top+12 || y > p.Bottom-2 {
				t.Errorf("%v: %q stands at %v, outside the frame", c.loss, n[1], y)
			}
		}
	}
}

// TestMapPlot: a map has its curve, its samples, each in the colour of its group, and the line of least
// squares.
func TestMapPlot(t *testing.T) {
	t.Parallel()
	f := example(20, 9)
	f.X.Set(4, 3, math.NaN())
	f.X.Set(2, 5, 1000) // far above the curve
	f.X.Set(4, 6, -900)
	uv := product(f.U, f.V)
	for _, groups := range []Groups{{},
		{Names: []string{"A", "B"}, Of: []int{0, 1, -1, 0, 1, -1, 0, 1, -1}}} {
		f.SampleGroups = groups
		for _, i := range []int{2, 4} {
			w, x := uv.Row(i), f.X.Row(i)
			p := f.mapPlot(i, w)
			pic := readPlot(t, p, false)
			from, to := account.Span(w)
			place := func(v float64) float64 { return (v - from) / (to - from) }
			cx, cy := pic.points(t, "curve")
			if len(cx) != account.Steps+1 {
				t.Fatalf("a curve of %d points", len(cx))
			}
			for s := range cx {
				at := from + (to-from)*float64(s)/account.Steps
				if math.Abs(cx[s]-place(at)) > pic.offX || math.Abs(cy[s]-at*at) > pic.offY {
					t.Fatalf("feature %d: the curve has %v, %v, not %v, %v", i, cx[s], cy[s], place(at),
						at*at)
				}
			}
			for g := range 3 {
				class, of := "dots", func(int) int { return 0 }
				if groups.Of != nil {
					class, of = `group" stroke="`+f.SampleGroups.ink(g), f.SampleGroups.rank
				}
				gx, gy := pic.points(t, class)
				at := 0
				for j := range w {
					if of(j) != g || x[j] != x[j] {
						continue
					}
					if at >= len(gx) || math.Abs(gx[at]-place(w[j])) > pic.offX ||
						math.Abs(gy[at]-x[j]) > pic.offY {
						t.Fatalf("feature %d, group %d: sample %d is not where it should be: %v, %v", i, g, j,
							gx, gy)
					}
					at++
				}
				if at != len(gx) && (groups.Of != nil || g == 0) {
					t.Errorf("feature %d, group %d: %d dots for %d samples", i, g, len(gx), at)
				}
			}
			var n, sw, st, sww, swt float64 // of the normal equations
			for j, v := range f.Fitted.Row(i) {
				n, sw, st, sww, swt = n+1, sw+w[j], st+v, sww+w[j]*w[j], swt+w[j]*v
			}
			slope := (n*swt - sw*st) / (n*sww - sw*sw)
			lx, ly := pic.points(t, "line")
			for s, at := range []float64{from, to} {
				if want := st/n + slope*(at-sw/n); math.Abs(lx[s]-place(at)) > pic.offX ||
					math.Abs(ly[s]-want) > pic.offY {
					t.Errorf("feature %d: the line has %v, %v, not %v", i, lx[s], ly[s], want)
				}
			}
		}
	}
	// The axes are those of the bulk, and a sample far beyond is told of.
	far := example(2, 60)
	for j := range 60 {
		far.V.Set(0, j, float64(j)/10)
		far.V.Set(1, j, 0)
		far.X.Set(0, j, float64(j*j)/100)
	}
	far.V.Set(0, 30, 1000)
	far.X.Set(0, 30, 1e6)
	w := product(far.U, far.V).Row(0)
	far.curve(func(_ int, w float64) float64 { return w * w })
	p := far.mapPlot(0, w)
	if from, to := account.Span(w); from != 0 || to > 6 || p.x.high > 7 || p.y.high > 45 ||
		p.XLabel != "place in the mixture; 1 sample lies beyond" ||
		strings.Count(p.Series[0].Path, "h0") != 59 {
		t.Errorf("from %v to %v, %v to %v, %q, dots %q", from, to, p.y.low, p.y.high, p.XLabel,
			p.Series[0].Path)
	}
	Has(t, strings.Join(far.oddities(), "\n"), "1 sample has more than 10 times the mean of a component, "+
		`which may stand for little else: "<s30>&\"'" (51.1 times that of c1)`,
		"1 component has half or more of the amount in a single sample, and of little use for the others: "+
			`c1 (85 % in "<s30>&\"'")`)
	// Of many samples an even part.
	many := example(1, 2*mostDots+1)
	Equal(t, len(found(many.mapPlot(0, product(many.U, many.V).Row(0)).Series[0].Path,
		`(h0)`)), (2*mostDots+3)/3, "dots")
}

// TestProfile: a component has a column a sample, in multiples of its mean magnitude, from 0 up or down,
// above the colours of the groups.
func TestProfile(t *testing.T) {
	t.Parallel()
	f := example(4, 9)
	f.V.Set(1, 2, -3)
	f.SampleGroups = Groups{Names: []string{"A", "B"}, Of: []int{0, 0, 0, 0, 1, 1, 1, 1, 1}}
	for c := range 2 {
		columns := []int{8, 7, 6, 5, 4, 3, 2, 1, 0}
		d := &document{}
		d.plot(f.profilePlot(c, columns))
		text := d.String()
		y, off := reading(t, found(text,
			`<text class="end small" x="[^"]*" y="([-.\d]+)" dy=".35em">([^<]*)<`), false)
		mean := 0.0
		for _, v := range f.V.Row(c) {
			mean += math.Abs(v) / 9
		}
		area := found(text, `class="area" d="M40.0 ([.\d]+)(.*)V([.\d]+)z"`)[0]
		steps := found(area[1], `V([.\d]+)H([.\d]+)`)
		if math.Abs(y(number64(t, area[0]))) > off || area[0] != area[2] || len(steps) != 9 {
			t.Fatalf("component %d: %s", c, text)
		}
		for s, step := range steps {
			if want := f.V.At(c, columns[s]) / mean; math.Abs(y(number64(t, step[0]))-want) > off ||
				step[1] != coordinate(40+280*float64(s+1)/9) {
				t.Errorf("component %d: sample %d is drawn to %s, %s, not %v", c, columns[s], step[1],
					step[0], want)
			}
		}
		bands := fmt.Sprint(found(text,
			`class="band" fill="([^"]*)" d="M([.\d]+) 80.0H([.\d]+)V86.0H([.\d]+)z"`))
		Equal(t, bands, fmt.Sprintf("[[%s 40.0 195.6 40.0] [%s 195.6 320.0 195.6]]", f.SampleGroups.ink(1),
			f.SampleGroups.ink(0)), "bands")
	}
}

// TestSketch: a path of whole numbers keeps within a unit and a half of one in five points of the curve, a
// half of which is rounding.
func TestSketch(t *testing.T) {
	t.Parallel()
	for kind, of := range []func(s float64) float64{
		func(s float64) float64 { return s * s }, func(s float64) float64 { return math.Tanh(20*s - 10) },
		func(s float64) float64 { return s },
		func(s float64) float64 { return math.Floor(3 * s) }, func(s float64) float64 { return 7 }, math.Sqrt,
	} {
		curve := make([]float64, account.Steps+1)
		for s := range curve {
			curve[s] = of(float64(s) / account.Steps)
		}
		path, low, high := sketch(curve)
		if low != curve[0] || high != curve[account.Steps] {
			t.Errorf("curve %d: from %v to %v", kind, low, high)
		}
		numbers := found(strings.ReplaceAll(path, "-", " -"), `(-?\d+)`)
		x, y := []float64{number64(t, numbers[0][0])}, []float64{number64(t, numbers[1][0])}
		for k := 2; k < len(numbers); k += 2 {
			x, y = append(x, x[len(x)-1]+number64(t, numbers[k][0])),
				append(y, y[len(y)-1]+number64(t, numbers[k+1][0]))
		}
		if x[0] != 0 || x[len(x)-1] != 96 || kind == 2 && len(x) != 2 {
			t.Errorf("curve %d: %s", kind, path)
		}
		leg := 0
		for s := 0; s <= account.Steps; s += 5 {
			at := 96 * float64(s) / account.Steps
			for x[leg+1] < at {
				leg++
			}
			got := y[leg] + (y[leg+1]-y[leg])*(at-x[leg])/(x[leg+1]-x[leg])
			want := 24.0
			if high > low {
				want = 48 * (high - curve[s]) / (high - low)
			}
			if math.Abs(got-want) > 1.5 {
				t.Errorf("curve %d: %s has %v at %v, not %v", kind, path, got, at, want)
			}
		}
	}
}

// heatFigure is a figure of heatmaps that was read back: where its images lie, and how large they are.
type heatFigure struct {
	*testing.T
	text               string
	x                  []float64
	top, width, height float64
	rows, columns      float64 // their numbers
}

func readHeatmaps(t *testing.T, f *Fit, s shown) heatFigure {
	d := &document{}
	d.heatmaps(f, s, product(f.U, f.V))
	h := heatFigure{T: t, text: d.String(), rows: float64(len(s.rows)), columns: float64(len(s.columns))}
	h.text = h.text[:strings.Index(h.text, "</svg>")]
	images := found(h.text, `<image( class="fine")? x="([.\d]+)" y="([.\d]+)" width="([.\d]+)" `+
		`height="([.\d]+)"`)
	h.top, h.width, h.height = number64(t, images[0][2]), number64(t, images[0][3]), number64(t, images[0][4])
	for p, i := range images {
		h.x = append(h.x, number64(t, i[1]))
		if (i[0] != "") != (h.columns > h.width) || !slices.Equal(i[2:], images[0][2:]) {
			t.Errorf("an image %v", i)
		}
		if p > 0 {
			h.near("an image", i[1], h.x[p-1]+h.width+heatGap)
		}
	}
	if len(h.x) != 4 || math.Abs(h.x[3]+h.width-heatWidth) > 0.2 || h.height < 240 || h.height > 620 {
		t.Fatalf("images at %v of %v × %v", h.x, h.width, h.height)
	}
	return h
}

func (h heatFigure) near(what, got string, want float64) {
	h.Helper()
	if math.Abs(number64(h.T, got)-want) > 0.2 {
		h.Errorf("%s is at %s, want %v", what, got, want)
	}
}

// bands checks those of groups: beside the rows, at left, or above the columns of each panel.
func (h heatFigure) bands(f *Fit, s shown, left float64) {
	h.Helper()
	box := `<path class="band" fill="([^"]*)" d="M([.\d]+) ` +
		`([.\d]+)H([.\d]+)V([.\d]+)H[.\d]+z"><title>([^<]*)<`
	rowRuns, columnRuns := f.FeatureGroups.runs(s.rows), f.SampleGroups.runs(s.columns)
	all := found(h.text, box)
	if len(all) != len(rowRuns)+len(h.x)*len(columnRuns) {
		h.Fatalf("bands %v", all)
	}
	check := func(band []string, g *Groups, r run, what string, box ...float64) {
		for k, want := range box {
			h.near("a band", band[1+k], want)
		}
		if says := g.Names[r.rank] + ": " + table.Counted(r.to-r.from, what); band[0] != g.ink(r.rank) ||
			band[5] != says {
			h.Errorf("a band %v of %q", band, says)
		}
	}
	for k, r := range rowRuns {
		pitch := h.height / h.rows
		check(all[k], &f.FeatureGroups, r, "feature", left, h.top+float64(r.from)*pitch, left+bandWidth,
			h.top+float64(r.to)*pitch)
	}
	for k, band := range all[len(rowRuns):] {
		r, x, pitch := columnRuns[k%len(columnRuns)], h.x[k/len(columnRuns)], h.width/h.columns
		check(band, &f.SampleGroups, r, "sample", x+float64(r.from)*pitch, heatTop, x+float64(r.to)*pitch,
			heatTop+bandWidth)
	}
}

// TestHeatmapFigure: panels stand side by side with all that belongs to them: the colours of groups, and the
// names of rows, of their groups or their number, and of columns, where there is room.
func TestHeatmapFigure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ d, n, k int }{{12, 9, 0}, {12, 9, 3}, {100, 40, 0}, {100, 40, 3},
		{20, 301, 2}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			f := example(c.d, c.n)
			band := 0.0
			if c.k > 0 {
				f.FeatureGroups, f.SampleGroups = Groups{Names: []string{"A", "B", "C"}[:c.k]},
					Groups{Names: []string{"D", "E", "F"}[:c.k]}
				for i := range c.d {
					// one of A, one of B where there is a C
					f.FeatureGroups.Of = append(f.FeatureGroups.Of, min(i, c.k-1))
				}
				for j := range c.n {
					f.SampleGroups.Of = append(f.SampleGroups.Of, j*c.k/c.n)
				}
				band = bandWidth + 3
			}
			s := arranged(f)
			h := readHeatmaps(t, &f, s)
			Equal(t, h.top, heatTop+band, "panels begin at")
			if c.k > 0 {
				h.bands(&f, s, h.x[0]-band)
			}
			type label struct {
				at   float64
				text string
			}
			var want []label
			pitch := h.height / h.rows
			if (pitch >= 11) != (c.d < 50) {
				t.Errorf("rows of %v", pitch)
			}
			if pitch >= 11 {
				for k, i := range s.rows {
					want = append(want, label{h.top + (float64(k)+.5)*pitch, clipped(f.Features[i], 24)})
				}
			} else if c.k > 0 {
				for _, r := range f.FeatureGroups.runs(s.rows) {
					if float64(r.to-r.from)*pitch >= 11 {
						want = append(want, label{h.top + float64(r.from+r.to)/2*pitch,
							f.FeatureGroups.Names[r.rank]})
					}
				}
			}
			labels := found(h.text, `<text class="end small" x="([-.\d]+)" y="([.\d]+)">([^<]*)<`)
			if len(labels) != len(want) {
				t.Fatalf("%d labels of rows, want %v", len(labels), want)
			}
			for k, l := range labels {
				h.near("a label", l[0], h.x[0]-band-6)
				h.near("a label", l[1], want[k].at+3.5)
				if name := html.UnescapeString(l[2]); name != want[k].text ||
					number64(t, l[0]) < letter*float64(len([]rune(name))) {
					t.Errorf("row %d is %q at %s, want %q", k, name, l[0], want[k].text)
				}
			}
			Equal(t, strings.Contains(h.text,
				">"+table.Counted(c.d, "feature")+"</text>"), len(want) == 0,
				"the number of features is written")
			h.samples(&f, s)
		})
	}
}

// samples checks what stands below the panels.
func (h heatFigure) samples(f *Fit, s shown) {
	h.Helper()
	n, numbers := len(s.columns), len(found(h.text, `(>\d+ samples</text>)`))
	below := found(h.text, `<text class="end small" transform="translate\(([.\d]+) ([.\d]+)\) `+
		`rotate\(-90\)">([^<]*)<`)
	if n > 9 {
		if len(below) != 0 || numbers != 4 {
			h.Errorf("%d labels of samples, %d numbers", len(below), numbers)
		}
		return
	}
	for k, l := range below {
		h.near("a sample", l[0], h.x[k/n]+(float64(k%n)+.5)*h.width/h.columns+3.5)
		h.near("a sample", l[1], h.top+h.height+5)
		if html.UnescapeString(l[2]) != clipped(f.Samples[s.columns[k%n]], 16) {
			h.Errorf("label %d is %s", k, l[2])
		}
	}
	total := number64(h.T, found(h.text, `viewBox="0 0 1120 ([.\d]+)"`)[0][0])
	if len(below) != 4*n || total < h.top+h.height+5+letter*float64(len(f.Samples[0])) {
		h.Errorf("%d labels of samples, the figure ends at %v", len(below), total)
	}
}

// TestScale: the colours of heatmaps stand at the numbers below them.
func TestScale(t *testing.T) {
	t.Parallel()
	d := &document{}
	d.scale(true)
	scale := d.String()
	from, wide := number64(t, found(scale, `<image x="([.\d]+)"`)[0][0]),
		number64(t, found(scale, `<image [^>]*width="([.\d]+)"`)[0][0])
	for k, tick := range found(scale,
		`<path class="axis" d="M([.\d]+) 16v4"/><text class="mid small" x="([.\d]+)" y="32.0">([^<]*)<`) {
		want := []float64{-2.5, -1, 0, 1, 2.5}[k]
		says := number64(t, strings.NewReplacer("≤ ", "", "≥ ", "", "−", "-", "+", "").Replace(tick[2]))
		if at := from + (want+2.5)/5*wide; says != want || math.Abs(number64(t, tick[0])-at) > 0.1 ||
			math.Abs(number64(t, tick[1])-at) > 0.1 {
			t.Errorf("tick %v, want %v at %v", tick, want, at)
		}
	}
	if grey := diverging[shades].(color.RGBA); grey.R != grey.G || grey.G != grey.B ||
		!strings.Contains(scale, fmt.Sprintf(`fill="#%02x%02x%02x"`, grey.R, grey.G, grey.B)) {
		t.Errorf("missing values are %v in %s", grey, scale)
	}
}

// TestDiverging: the colours lie in OKLab on straight lines between those that are named, in equal steps.
func TestDiverging(t *testing.T) {
	t.Parallel()
	anchors := [][3]float64{{0.36, 0.13, 264}, {0.66, 0.12, 245}, {0.97, 0.005, 90}, {0.70, 0.14, 48},
		{0.40, 0.14, 27}}
	lab := func(k int) (l, a, b float64) {
		sin, cos := math.Sincos(anchors[k][2] * math.Pi / 180)
		return anchors[k][0], anchors[k][1] * cos, anchors[k][1] * sin
	}
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	for i := range shades {
		c := diverging[i].(color.RGBA)
		red, green, blue := linear(c.R), linear(c.G), linear(c.B)
		long, medium, short := math.Cbrt(0.4122214708*red+0.5363325363*green+0.0514459929*blue),
			math.Cbrt(0.2119034982*red+0.6806995451*green+0.1073969566*blue),
			math.Cbrt(0.0883024619*red+0.2817188376*green+0.6299787005*blue)
		l := 0.2104542553*long + 0.7936177850*medium - 0.0040720468*short
		a := 1.9779984951*long - 2.4285922050*medium + 0.4505937099*short
		b := 0.0259040371*long + 0.7827717662*medium - 0.8086757660*short
		at := float64(i) / (shades - 1) * float64(len(anchors)-1)
		from := min(int(at), len(anchors)-2)
		at -= float64(from)
		l0, a0, b0 := lab(from)
		l1, a1, b1 := lab(from + 1)
		if off := max(math.Abs(l-l0-at*(l1-l0)), math.Hypot(a-a0-at*(a1-a0), b-b0-at*(b1-b0))); off > 0.005 {
			t.Errorf("colour %d, %v, is %.3f, %.3f, %.3f in OKLab, %.3f beside its place", i, c, l, a, b, off)
		}
	}
	if len(diverging) != shades+1 || len(colours) != 6*shades {
		t.Errorf("%d colours", len(diverging))
	}
}

// TestChart: points, bars of errors and labels of a chart stand where its ticks say, each line in its colour.
func TestChart(t *testing.T) {
	t.Parallel()
	c := Chart{Title: "A <chart>", XLabel: "components, k", YLabel: "loss", Lines: []Line{
		{Name: "m = 4", Points: []Point{{Label: "0", Y: 3, Error: 0.5}, {Label: "1", Y: 2},
			{Label: "2", Y: 1.5, Error: 0.25, Best: true}}},
		{Name: "m = 8", Points: []Point{{Label: "0", Y: 2.5, Error: 0.1},
			{Label: "1", Y: 1.8, Error: 0.3, Marked: true}, {Label: "2", Y: 1.6}}},
	}}
	p := c.plot()
	pic := readPlot(t, p, false)
	for k, l := range c.Lines {
		paths := map[string]string{}
		for _, s := range p.Series {
			if s.Ink == inks[k] {
				paths[s.Class] += s.Path
			}
		}
		var want, got []string
		near := func(x, y float64) string { return fmt.Sprintf("%.1f %.2f ", x, y) }
		for i, pt := range l.Points {
			x := float64(i) + 0.06*(float64(k)-0.5)
			want = append(want, near(x, pt.Y)+"line", near(x, pt.Y)+"a3.5")
			if pt.Error > 0 {
				want = append(want, near(x, pt.Y-pt.Error)+"V", near(x, pt.Y+pt.Error))
			}
			if pt.Best {
				want = append(want, near(x, pt.Y)+"a3.5")
			}
			if pt.Marked {
				want = append(want, near(x, pt.Y)+"a7.5")
			}
		}
		for _, m := range found(paths["ring"]+paths["hollow"]+paths["band"],
			`[ML]([.\d]+) ([.\d]+)(V([.\d]+)|a[.\d]+|h16)?`) {
			x, y := number64(t, m[0]), number64(t, m[1])
			switch {
			case m[2] == "h16":
				continue
			case m[2] == "":
				m[2] = "line"
			case m[2][0] == 'V':
				got = append(got, near(pic.x(x), pic.y(number64(t, m[3]))))
				m[2] = "V"
			default:
				x += number64(t, m[2][1:])
			}
			got = append(got, near(pic.x(x), pic.y(y))+m[2])
		}
		slices.Sort(want)
		slices.Sort(got)
		EqualAll(t, got, want, "line %d", k)
		Has(t, pic.text, `class="key"`, ">"+l.Name+"</text>")
	}
	for _, c := range []Chart{c, {}} {
		var b bytes.Buffer
		OK(t, c.Write(&b))
		wellFormed(t, "<!DOCTYPE html>"+b.String())
		Lacks(t, b.String(), "NaN", "Inf", "var(")
	}
}

// TestOdd: each kind of oddity in its sentence, and a table without any.
func TestOdd(t *testing.T) {
	t.Parallel()
	f := example(5, 8)
	nan := math.NaN()
	for i, row := range [][]float64{
		{1, 2, 3, 4, 5, 6, 7, 1},
		{1, 2, 3, 4, 5, 6, 7, 1},
		{0, nan, 2, nan, 4, 5, 6, 0},
		{-1, 3, -2, 5, 9, 8, 7, -1},
		{1, 2, 3, 4, 5, 6, 35, 1},
	} {
		copy(f.X.Row(i), row)
		f.Features[i] = "f" + strconv.Itoa(i)
	}
	for j := range f.Samples {
		f.Samples[j] = "s" + strconv.Itoa(j)
	}
	want := []string{
		`2 values are missing, 5 % of the table; most in the feature "f2" (2 of 8) and in the sample "s1" ` +
			`(1 of 5)`,
		`3 values are negative, in 1 feature: "f3"`,
		`1 feature is the same in all samples as an earlier one: "f1"`,
		`1 sample is the same in all features as an earlier one: "s7"`,
	}
	EqualAll(t, f.oddities(), want, "oddities") // 35 is ten ranges of 3 beyond 5: no more than that
	f.X.Set(4, 6, 35.5)
	if got := f.oddities(); len(got) != 5 ||
		got[2] != `1 value is more than 10 interquartile ranges beyond the quartiles of the feature, in 1 `+
			`feature: "f4"` {
		t.Errorf("%q", got)
	}
	f.X.Set(4, 6, 7)
	f.X.Set(4, 0, -28.5) // beyond 2 - 10·3 on the other side
	Has(t, strings.Join(f.oddities(), "\n"), "4 values are negative, in 2 features",
		"1 value is more than 10")
	// Rows with the same gaps are copies, those with others, and those that do not vary, are none.
	gaps := example(5, 6)
	for i, row := range [][]float64{{nan, 1, 2, 3, 4, 6}, {nan, 1, 2, 3, 4, 6}, {0, 1, 2, 3, 4, 6},
		{nan, 7, 7, 7, 7, 7}, {nan, 7, 7, 7, 7, 7}} {
		copy(gaps.X.Row(i), row)
	}
	if got := strings.Join(gaps.oddities(), "\n"); strings.Count(got, "as an earlier one") != 1 ||
		!strings.Contains(got, "1 feature is the same in all samples as an earlier one: \"<script>f1") {
		t.Errorf("%q", got)
	}
	signs := example(2, 3) // 0 and -0 are one value
	copy(signs.X.Data, []float64{0, 1, 2, math.Copysign(0, -1), 1, 2})
	Has(t, strings.Join(signs.oddities(), "\n"), "1 feature is the same in all samples as an earlier one")
	for row, want := range map[string][2]float64{"[4 1 2 3]": {2 - 10, 3 + 10},
		"[3 1 2]": {math.Inf(-1), math.Inf(1)}, "[1 2 2 2 9]": {math.Inf(-1), math.Inf(1)},
		"[1 2 4 6 9]": {2 - 40, 6 + 40}} {
		var v []float64
		for _, w := range strings.Fields(strings.Trim(row, "[]")) {
			v = append(v, number64(t, w))
		}
		if low, high := fences(append(v, nan)); low != want[0] || high != want[1] {
			t.Errorf("%s: far values lie beyond %v and %v, want %v", row, low, high, want)
		}
	}
	plain := example(3, 4)
	for i := range 3 {
		copy(plain.X.Row(i), [][]float64{{1, 2, 3, 4}, {0, 3, 1, 2}, {5, 5, 6, 7}}[i])
	}
	Has(t, render(t, plain), "Nothing was found")
}

// TestTablesOfPage: the tables in a page have the numbers of the fit to four or five digits.
func TestTablesOfPage(t *testing.T) {
	t.Parallel()
	f := example(20, 9)
	const whole = 1234567 // may be a count
	f.Bend[3] = whole
	uv := product(f.U, f.V)
	page := render(t, f)
	rows := func(of string, d, n int, at func(i, j int) float64, digits int) {
		t.Helper()
		link := found(page, `<a download="`+of+`.tsv" href="data:text/tab-separated-values;base64,([^"]*)"`)
		if len(link) != 1 {
			t.Fatalf("%s: %d links", of, len(link))
		}
		lines := strings.Split(strings.TrimSuffix(string(unpacked(t, link[0][0])), "\n"), "\n")
		if len(lines) != d+1 {
			t.Fatalf("%s: %d lines", of, len(lines))
		}
		for i, l := range lines[1:] {
			fields := strings.Split(l, "\t")
			if len(fields) != n+1 {
				t.Fatalf("%s: %q", of, l)
			}
			for j := range n {
				want := strconv.FormatFloat(at(i, j), 'g', digits, 64)
				if at(i, j) == whole {
					want = "1234567"
				}
				if number64(t, fields[j+1]) != number64(t, want) {
					t.Errorf("%s: %s at %d, %d, want %s", of, fields[j+1], i, j, want)
				}
			}
		}
	}
	rows("U", 20, 2, f.U.At, 5)
	rows("V", 2, 9, f.V.At, 5)
	rows("curves", 20, 9, func(i, j int) float64 {
		from, to := account.Span(uv.Row(i))
		if j < 2 {
			return []float64{from, to}[j]
		}
		w := from + (to-from)*float64(j-2)/6
		return w * w
	}, 4)
	rows("features", 20, 5, func(i, j int) float64 {
		return []float64{0.75, 0.5, float64(i%2 + 1), 1, f.Bend[i]}[j]
	}, 4)
	// A large table is compressed.
	d := &document{}
	wide := noisy(2, 5000, 3, strconv.Itoa)
	d.tables(&wide, product(wide.U, wide.V))
	packed := found(d.String(), `<a download="V.tsv.gz" href="data:application/gzip;base64,([^"]*)"`)
	if len(packed) != 1 {
		t.Fatalf("%d tables are compressed", len(packed))
	}
	z := Must(gzip.NewReader(bytes.NewReader(unpacked(t, packed[0][0]))))(t)
	text, err := io.ReadAll(z)
	if err != nil || strings.Count(string(text), "\t") != 4*5000 ||
		!strings.Contains(string(text), "\nc3\t"+strconv.FormatFloat(wide.V.At(2, 0), 'g', 5, 64)+"\t") {
		t.Errorf("%v, %.80q", err, text)
	}
}

// TestSettingsInWords: what the command line, the model and the notes of the fit say goes into the paragraph
// of methods.
func TestSettingsInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		account account.Account
		how     account.Made
		want    string
	}{
		{account.Account{Method: "QMF", Levels: 8, Epochs: 4,
			Began: "from an NMF of the matrix; maps are free"},
			account.Made{Command: "quantmf fit -k 3 -loss frobenius -eps 0.03 -validation .2 -restarts 3 " +
				"-seed 7 m.tsv"},
			"8 levels; ε = 0.03; the half squared difference as loss; started from an NMF of the matrix, " +
				"maps are free, 4 epochs; a share of .2 of the values held out to choose the epoch; the " +
				"best of 3 restarts; seed 7"},
		{account.Account{Method: "NMF", Epochs: 1},
			account.Made{Command: "quantmf nmf", Log1p: true, Top: true},
			"log(1+x) of every value; the features of largest standard deviation alone; 1 epoch"},
		{account.Account{Method: "BQMF", Epochs: 60},
			account.Made{Command: "quantmf bqmf -loss auto m.tsv -seed", Losses: "-loss auto took kl: x"},
			"the Kullback-Leibler divergence as loss; 60 epochs of variational Bayes"},
	} {
		got := strings.Join(settings(c.account, c.how), "; ")
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	page := Of(account.Account{Method: "NMF"}, []string{"a"}, []string{"b"}, quantmf.NewMat(1, 1),
		account.Made{})
	if page.Matrix != "A matrix" {
		t.Errorf("a matrix without a name is %q", page.Matrix)
	}
}

// TestCaption: the caption of heatmaps says what they show, and no more.
func TestCaption(t *testing.T) {
	t.Parallel()
	f := example(4, 5)
	s := shown{rows: []int{0, 1, 2, 3}, columns: []int{0, 1, 2, 3, 4}}
	const units, mixed, residuals = "Colours are in standard deviations of each feature. The data and the " +
		"fit are relative to the mean of the data, ",
		"the second panel, which is on another scale, to its own mean, ",
		"the residuals to 0. Features are ordered by likeness (Ward's clustering of the fit), samples "
	caption := func(grouped bool) string {
		d := &document{}
		d.heatmapCaption(&f, s, grouped)
		return strings.TrimSuffix(strings.TrimPrefix(d.String(), "<figcaption>"), "</figcaption></figure>\n")
	}
	if got := caption(false); got != units+mixed+residuals+"as in the table." {
		t.Errorf("%q", got)
	}
	f.Order = "tree"
	s.rows, s.columns = s.rows[1:], s.columns[2:]
	if got := caption(true); got != units+mixed+residuals+
		"by their tree (below). Shown are the 3 features that are explained best, "+
		"of 4. Shown are 3 samples, evenly spaced in the table, of 5." {
		t.Errorf("%q", got)
	}
	f.Order = "c2"
	Has(t, caption(true), "by their amount of c2, members of a group together.")
	f.Method, f.Curves = "NMF", quantmf.Mat{}
	if got := caption(false); !strings.HasPrefix(got, units+residuals) {
		t.Errorf("%q", got)
	}
}

// TestDigits: numbers have three or four digits, from ten thousand on with k or M behind them.
func TestDigits(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64][2]string{0: {"0", "0"}, 0.12345: {"0.1235", "0.123"},
		1234: {"1234", "1234"}, 9999: {"9999", "9999"}, 10000: {"10k", "10k"}, -12345: {"-12.35k", "-12.3k"},
		999.4: {"999.4", "999"}, 999.6: {"999.6", "1000"}, -999.96: {"-1000", "-1000"},
		9999.4: {"9999", "9999"}, 9999.6: {"10k", "10k"}, 999960: {"1M", "1M"}, 9.9999e8: {"1e+09", "1e+09"},
		1e6: {"1M", "1M"}, 2.5e8: {"250M", "250M"}, 1e9: {"1e+09", "1e+09"}} {
		if a, b := rounded(v), short(v); a != want[0] || b != want[1] {
			t.Errorf("%v is %s and %s, want %v", v, a, b, want)
		}
	}
}

// TestWard: the order is that of Ward's clustering by definition, the two clusters of least increase of the
// sum of squares merged first, each merge turned so that the nearest ends meet; the whole may run either way.
// The square of a merge's height is twice its increase.
func TestWard(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	for n := 1; n <= 24; n++ {
		points := make([][]float64, n)
		for i := range points {
			points[i] = []float64{r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}
		}
		apart := func(a, b []float64) (sum float64) {
			for t := range a {
				sum += (a[t] - b[t]) * (a[t] - b[t])
			}
			return sum
		}
		center := func(of []int) []float64 {
			c := make([]float64, 3)
			for _, i := range of {
				for t, v := range points[i] {
					c[t] += v / float64(len(of))
				}
			}
			return c
		}
		increase := func(a, b []int) float64 {
			na, nb := float64(len(a)), float64(len(b))
			return na * nb / (na + nb) * apart(center(a), center(b))
		}
		var clusters [][]int
		for i := range points {
			clusters = append(clusters, []int{i})
		}
		tree, members := clustered(points), slices.Clone(clusters)
		Equal(t, len(tree.merges), n-1, "merges")
		for _, m := range tree.merges {
			a, b := members[m.a], members[m.b]
			Near(t, m.height, math.Sqrt(2*increase(a, b)), 1e-12, "%d points: height of %v and %v", n, a, b)
			members[m.a] = slices.Concat(a, b)
		}
		for len(clusters) > 1 {
			least, x, y := math.Inf(1), 0, 0
			for b := range clusters {
				for a := range b {
					if more := increase(clusters[a], clusters[b]); more < least {
						least, x, y = more, a, b
					}
				}
			}
			a, b := clusters[x], clusters[y]
			var best []int
			least = math.Inf(1)
			for turn := range 4 {
				left, right := slices.Clone(a), slices.Clone(b)
				if turn&1 > 0 {
					slices.Reverse(left)
				}
				if turn&2 > 0 {
					slices.Reverse(right)
				}
				if gap := apart(points[left[len(left)-1]], points[right[0]]); gap < least {
					least, best = gap, append(left, right...)
				}
			}
			clusters[x] = best
			clusters = slices.Delete(clusters, y, y+1)
		}
		got, want := tree.leaves, clusters[0]
		if got[0] != want[0] {
			slices.Reverse(got)
		}
		EqualAll(t, got, want, "%d points", n)
	}
}
