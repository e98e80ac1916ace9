package report

// This file holds the one figure with axes that there is: the frame, the axes and their ticks, and what is
// drawn within. The curves of losses and of maps, the profiles of components and the chart of ranks are such
// figures. Every mark is a path, whose class says how it looks.

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// plot is a figure of Width × Height; its frame is the rectangle of the axes.
type plot struct {
	Title                    string // says in words what it shows
	Head                     string // stands above the frame
	XLabel, YLabel           string
	Small                    bool // texts are
	Width, Height            float64
	Left, Right, Top, Bottom float64 // of the frame
	Base                     float64 // where the horizontal axis lies, Bottom in most
	XTicks, YTicks           []tick
	Series                   []series
	x, y                     axis
}

type tick struct {
	At    string
	Label string
}

// series is one path, drawn as the class says, its lines in the Ink and filled with Fill where it has these.
// Says is what it means. Label, which looks as LabelClass says, is written at (X,Y).
type series struct {
	Class, Ink, Fill, Path, Says string
	Label, LabelClass            string
	X, Y                         float64
}

// axis maps values from [low,high] to [from,to], by their logarithm if log.
type axis struct {
	low, high, from, to float64
	log                 bool
}

func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// widened returns an axis with room around [low,high], a part of its length. Values that differ by little
// more than rounding get the axis of a single value: labels cannot tell them apart, and ticks could not be
// counted in float64.
func widened(low, high, from, to, part float64, log bool) axis {
	if log {
		room := math.Pow(high/low, part)
		return axis{low / room, high * room, from, to, log}
	}
	room, size := part*(high-low), max(math.Abs(low), math.Abs(high))
	if high-low <= 1e-12*size {
		room = max(size, 1) / 2
	}
	return axis{low - room, high + room, from, to, log}
}

// ticks returns about count round values within the axis.
func (a axis) ticks(count int) []tick {
	var values []float64
	if a.log {
		within, step := []float64{1, 2, 5}, 1.0
		if decades := math.Log10(a.high / a.low); decades > 3 {
			within, step = within[:1], math.Ceil(decades/float64(count))
		}
		for e := math.Floor(math.Log10(a.low)); e <= math.Log10(a.high); e += step {
			for _, m := range within {
				values = append(values, m*math.Pow(10, e))
			}
		}
	} else {
		raw := (a.high - a.low) / float64(count)
		unit := math.Pow(10, math.Floor(math.Log10(raw)))
		step := 10 * unit
		for _, m := range []float64{1, 2, 5} {
			if m*unit >= raw {
				step = m * unit
				break
			}
		}
		for n := math.Ceil(a.low / step); n*step <= a.high; n++ {
			values = append(values, n*step+0) // + 0: no tick is at -0
		}
	}
	var out []tick
	for _, v := range values {
		if v >= a.low && v <= a.high {
			out = append(out, tick{coordinate(a.at(v)), rounded(v)})
		}
	}
	return out
}

// rounded is a number with at most four digits; thousands are k and millions M.
func rounded(v float64) string { return digits(v, 4) }

// short is a number with three digits, with four from 1000 to 9999.
func short(v float64) string {
	if size := math.Abs(v); size >= 1e3 && size < 9999.5 {
		return digits(v, 4)
	}
	return digits(v, 3)
}

func digits(v float64, count int) string {
	// says the unit: what rounds to 1000 k is 1 M
	round, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', count, 64), 64)
	unit := ""
	switch size := math.Abs(round); {
	case size >= 1e6 && size < 1e9:
		v, unit = v/1e6, "M"
	case size >= 1e4 && size < 1e6:
		v, unit = v/1e3, "k"
	case size == 1e3:
		v, count = round, 4
	}
	return strconv.FormatFloat(v, 'g', count, 64) + unit
}

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// frame returns a plot with axes.
func frame(width, height, left, bottom float64) plot {
	return plot{Width: width, Height: height, Left: left, Right: width - 10, Top: 10, Bottom: height - bottom,
		Base: height - bottom}
}

// curve returns a path through the points.
func (p *plot) curve(x, y []float64) string {
	var s strings.Builder
	to := "M"
	for i := range x {
		s.WriteString(to + coordinate(p.x.at(x[i])) + " " + coordinate(p.y.at(y[i])))
		to = "L"
	}
	return s.String()
}

// beyond says how many samples lie beyond the frame.
func (p *plot) beyond(samples int) {
	if samples > 0 {
		p.XLabel += "; " + table.Counted(samples, "sample lies", "samples lie") + " beyond"
	}
}

// dots returns a path that is a dot at each point, if its line ends are round.
func (p *plot) dots(x, y []float64) string {
	return strings.ReplaceAll(p.curve(x, y), "L", "h0M") + "h0"
}

// dots are those of samples in a plot, a series for each group.
func (f *Fit) dots(p *plot, samples []int, x, y []float64) (out []series) {
	g := &f.SampleGroups
	if g.Of == nil && len(samples) > 0 {
		return []series{{Class: "dots", Path: p.dots(at(x, samples), at(y, samples))}}
	}
	samples = slices.Clone(samples)
	g.order(samples)
	for _, r := range g.runs(samples) {
		of := samples[r.from:r.to]
		out = append(out, series{Class: "group", Ink: g.ink(r.rank), Path: p.dots(at(x, of), at(y, of))})
	}
	return out
}

// box returns the path of a rectangle.
func box(left, top, right, bottom float64) string {
	return "M" + coordinate(left) + " " + coordinate(top) + "H" + coordinate(right) + "V" +
		coordinate(bottom) + "H" + coordinate(left) + "z"
}

// mostEpochs bounds the points of the curve of losses.
const mostEpochs = 600

// lossPlot draws the loss by epoch, and what it is compared with as a line.
func lossPlot(f *Fit) plot {
	p := frame(620, 330, 64, 46)
	what := "Loss"
	p.XLabel, p.YLabel = "epoch", "loss of a value, on average"
	if f.Method == "BQMF" {
		what, p.YLabel = "Bound", "bound, nats of a value"
	}
	var epochs, losses []float64
	low, high := f.Loss[0], f.Loss[0]
	step := (len(f.Loss) + mostEpochs - 1) / mostEpochs
	for e, l := range f.Loss {
		low, high = min(low, l), max(high, l)
		if e%step == 0 || e == len(f.Loss)-1 {
			epochs, losses = append(epochs, float64(e)), append(losses, l)
		}
	}
	p.x = axis{0, max(float64(len(f.Loss)-1), 1), p.Left, p.Right, false}
	p.y = widened(low, high, p.Bottom, p.Top, 0.1, low > 0 && high > 5*low)
	p.XTicks, p.YTicks = p.x.ticks(6), p.y.ticks(5)

	final := f.Loss[len(f.Loss)-1]
	end := p.y.at(final)
	below := 18.0
	if end+below > p.Bottom-2 { // at the top the axis has room
		below = -below / 2
	}
	p.Title = what + " of " + f.Method + " by epoch, ending at " + short(final)
	p.Series = append(p.Series,
		series{Class: "curve", Path: p.curve(epochs, losses), Label: f.Method + " " + short(final),
			LabelClass: "named", X: p.Right - 4, Y: end + below})
	return p
}

// mostDots bounds the samples drawn in one map.
const mostDots = 400

// mapPlot draws the map of a feature: x its values, w = (UV)_i.
func (f *Fit) mapPlot(i int, w []float64) plot {
	x, curveY := f.X.Row(i), f.Curves.Row(i)
	p := frame(250, 200, 60, 38)
	p.Title = "Learned map of " + clipped(f.Features[i], 80)
	p.XLabel, p.YLabel = "place in the mixture", "value"
	if f.FeatureGroups.Of != nil && f.FeatureGroups.Of[i] >= 0 {
		p.YLabel = clipped(f.FeatureGroups.Names[f.FeatureGroups.Of[i]], 28)
	}
	from, to := account.Span(w)
	p.x = widened(from, to, p.Left, p.Right, 0.06, false)
	within := func(j int) bool { return w[j] >= from && w[j] <= to }
	curveX := make([]float64, len(curveY))
	for s := range curveX {
		curveX[s] = from + (to-from)*float64(s)/account.Steps
	}
	low, high := curveY[0], curveY[account.Steps]
	for j, v := range x {
		if v == v && within(j) {
			low, high = min(low, v), max(high, v)
		}
	}
	p.y = widened(low, high, p.Bottom, p.Top, 0.06, false)
	p.YTicks = p.y.ticks(4)
	for _, v := range []float64{0, 0.5, 1} {
		p.XTicks = append(p.XTicks,
			tick{coordinate(p.x.at(from + v*(to-from))), strconv.FormatFloat(v, 'g', -1, 64)})
	}

	var drawn []int
	var lineX, lineY []float64
	step := (len(x) + mostDots - 1) / mostDots
	for j := range w {
		if !within(j) {
			continue
		}
		lineX, lineY = append(lineX, w[j]), append(lineY, f.Fitted.At(i, j))
		if j%step == 0 && x[j] == x[j] {
			drawn = append(drawn, j)
		}
	}
	p.beyond(len(w) - len(lineX))
	p.Series = f.dots(&p, drawn, w, x)
	slope, offset := line(lineX, lineY)
	p.Series = append(p.Series,
		series{Class: "line", Path: p.curve([]float64{from, to},
			[]float64{offset + slope*from, offset + slope*to})},
		series{Class: "curve", Path: p.curve(curveX, curveY)})
	return p
}

// line fits y ≈ offset + slope x by least squares.
func line(x, y []float64) (slope, offset float64) {
	mx, my, sx, sy := mean(x), mean(y), deviation(x), deviation(y)
	if !(sx > 0 && sy > 0) {
		return 0, my
	}
	alike := 0.0 // the correlation
	for j := range x {
		alike += (x[j] - mx) / sx * ((y[j] - my) / sy) / float64(len(x))
	}
	slope = alike * (sy / sx)
	return slope, my - slope*mx
}

// plot writes a figure.
func (d *document) plot(p plot) {
	small := ""
	if p.Small {
		small = " small"
	}
	d.svg(p.Width, p.Height, p.Title)
	if p.Head != "" {
		d.text("mid", (p.Left+p.Right)/2, 20, p.Head)
	}
	for _, t := range p.YTicks {
		d.add(`<path class="grid" d="M%g %sH%g"/><text class="end%s" x="%g" y="%s" dy=".35em">%s</text>`,
			p.Left, t.At, p.Right, small, p.Left-6, t.At, t.Label)
	}
	for _, t := range p.XTicks {
		d.add(`<path class="axis" d="M%s %gv4"/><text class="mid%s" x="%s" y="%g" dy="1.4em">%s</text>`, t.At,
			p.Bottom, small, t.At, p.Bottom, t.Label)
	}
	d.add(`<svg x="%g" y="%g" width="%g" height="%g" viewBox="%g %g %g %g">`, p.Left, p.Top, p.Right-p.Left,
		p.Bottom-p.Top, p.Left, p.Top, p.Right-p.Left, p.Bottom-p.Top)
	for _, s := range p.Series {
		d.path(s)
	}
	d.add(`</svg><path class="axis" d="M%g %gV%s"/><path class="axis" d="M%g %sH%g"/>`, p.Left, p.Top,
		coordinate(p.y.from), p.Left, coordinate(p.Base), p.Right)
	for _, s := range p.Series {
		if s.Label != "" {
			d.text(s.LabelClass, s.X, s.Y, s.Label)
		}
	}
	d.text("mid"+small, (p.Left+p.Right)/2, p.Height-4, p.XLabel)
	d.upright("mid"+small, 12, (p.Top+p.Bottom)/2, p.YLabel)
	d.WriteString("</svg>\n")
}

// meanMagnitude is that of a component over all samples.
func (f *Fit) meanMagnitude(c int) float64 {
	mean := 0.0
	for _, a := range f.V.Row(c) {
		mean += math.Abs(a) / float64(f.V.Cols)
	}
	return mean
}

// profilePlot draws a component over the samples, in multiples of the mean magnitude, with the colours of
// their groups below.
func (f *Fit) profilePlot(c int, columns []int) plot {
	v, scale := at(f.V.Row(c), columns), f.meanMagnitude(c)
	low, high := 0.0, 0.0
	for j := range v {
		if scale > 0 {
			v[j] /= scale
		}
		low, high = min(low, v[j]), max(high, v[j])
	}
	if low == high {
		high = 1
	}
	const band = 6 // of the colours
	p := frame(330, 104, 40, 18)
	p.Small, p.XLabel, p.YLabel = true, "samples, as in the heatmaps", "× mean"
	p.Title = fmt.Sprintf("Profile of component %s over %s, from %s to %s times the mean", name(c),
		table.Counted(len(v), "sample"), short(low), short(high))
	p.x = axis{0, float64(len(v)), p.Left, p.Right, false}
	p.y = axis{low, high, p.Bottom - band - 4, p.Top, false}
	p.YTicks, p.Base = p.y.ticks(4), p.y.at(0)
	zero := coordinate(p.Base)
	var s strings.Builder
	s.WriteString("M" + coordinate(p.Left) + " " + zero)
	for j, a := range v {
		s.WriteString("V" + coordinate(p.y.at(a)) + "H" + coordinate(p.x.at(float64(j+1))))
	}
	p.Series = []series{{Class: "area", Path: s.String() + "V" + zero + "z"}}
	for _, r := range f.SampleGroups.runs(columns) {
		p.Series = append(p.Series, series{Class: "band", Fill: f.SampleGroups.ink(r.rank),
			Path: box(p.x.at(float64(r.from)), p.Bottom-band, p.x.at(float64(r.to)), p.Bottom)})
	}
	return p
}

// sketch is the curve of a feature as a path in a box of 96 × 48: as few of its points, one in five,
// as keep it within one unit.
func sketch(curve []float64) (path string, low, high float64) {
	const steps, width, height = account.Steps / 5, 96, 48
	low, high = curve[0], curve[account.Steps]
	var at [steps + 1]int
	for s := range at {
		if high > low {
			at[s] = int(math.Round(height * (high - curve[5*s]) / (high - low)))
		} else {
			at[s] = height / 2
		}
	}
	b := strconv.AppendInt([]byte("M0 "), int64(at[0]), 10)
	var through func(a, z int)
	through = func(a, z int) {
		worst, off := 0, 1.0
		for s := a + 1; s < z; s++ {
			straight := float64(at[a]) + float64(at[z]-at[a])*float64(s-a)/float64(z-a)
			if e := math.Abs(float64(at[s]) - straight); e > off {
				worst, off = s, e
			}
		}
		if worst > 0 {
			through(a, worst)
			through(worst, z)
			return
		}
		b = strconv.AppendInt(append(b, 'l'), int64((z-a)*width/steps), 10)
		if at[z] >= at[a] {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(at[z]-at[a]), 10)
	}
	through(0, steps)
	return string(b), low, high
}
