package report

// This file holds line plots as the coordinates that the page's SVG needs.

import (
	"math"
	"strconv"
	"strings"
)

// plot is a line plot of Width × Height; its frame is the rectangle of the axes.
type plot struct {
	Title, XLabel, YLabel    string
	Width, Height            float64
	Left, Right, Top, Bottom float64 // of the frame
	XTicks, YTicks           []tick
	Series                   []series
	x, y                     axis
}

type tick struct {
	At    string
	Label string
}

// series is one path, drawn as the class says, with its name written at (X,Y).
type series struct {
	Class, Path, Label, X, Y string
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

// widened returns an axis with room around [low,high], a part of its length.
func widened(low, high, from, to, part float64, log bool) axis {
	if log {
		room := math.Pow(high/low, part)
		return axis{low / room, high * room, from, to, log}
	}
	room := part * (high - low)
	if room == 0 {
		room = max(math.Abs(high), 1) / 2
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
			out = append(out, tick{coordinate(a.at(v)), strconv.FormatFloat(v, 'g', 4, 64)})
		}
	}
	return out
}

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// frame returns a plot with axes.
func frame(width, height, left, bottom float64) plot {
	return plot{Width: width, Height: height, Left: left, Right: width - 10, Top: 10, Bottom: height - bottom}
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

// dots returns a path that is a dot at each point, if its line ends are round.
func (p *plot) dots(x, y []float64) string {
	var s strings.Builder
	for i := range x {
		s.WriteString("M" + coordinate(p.x.at(x[i])) + " " + coordinate(p.y.at(y[i])) + "h0")
	}
	return s.String()
}

// lossPlot draws the loss by epoch, and what it is compared with as a line.
func lossPlot(f Fit) plot {
	p := frame(620, 330, 64, 46)
	what := "Loss"
	if f.Method == "BQMF" {
		what = "Bound"
	}
	p.XLabel, p.YLabel = "epoch", strings.ToLower(what)
	epochs := make([]float64, len(f.Loss))
	low, high := f.Loss[0], f.Loss[0]
	for e, l := range f.Loss {
		epochs[e] = float64(e)
		low, high = min(low, l), max(high, l)
	}
	compared := f.ComparedUpdates > 0 && f.Compared > 0
	if compared {
		low, high = min(low, f.Compared), max(high, f.Compared)
	}
	p.x = axis{0, max(float64(len(f.Loss)-1), 1), p.Left, p.Right, false}
	p.y = widened(low, high, p.Bottom, p.Top, 0.1, low > 0 && high > 5*low)
	p.XTicks, p.YTicks = p.x.ticks(6), p.y.ticks(5)

	final := f.Loss[len(f.Loss)-1]
	end := p.y.at(final)
	below, above := 18.0, -9.0
	if compared && final > f.Compared {
		below, above = above, below
	}
	if end+below > p.Bottom-2 || end+below < p.Top+12 {
		below = -below / 2
	}
	p.Title = what + " of " + f.Method + " by epoch, ending at " + short(final)
	p.Series = append(p.Series, series{"curve", p.curve(epochs, f.Loss), f.Method + " " + short(final), coordinate(p.Right - 4), coordinate(end + below)})
	if compared {
		at := p.y.at(f.Compared)
		p.Title += "; NMF after " + strconv.Itoa(f.ComparedUpdates) + " updates is at " + short(f.Compared)
		p.Series = append(p.Series, series{"compared", "M" + coordinate(p.Left) + " " + coordinate(at) + "H" + coordinate(p.Right),
			"NMF after " + strconv.Itoa(f.ComparedUpdates) + " updates: " + short(f.Compared), coordinate(p.Right - 4), coordinate(at + above)})
	}
	return p
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// mostDots bounds the samples drawn in one map.
const mostDots = 400

// mapPlot draws the map of a feature: x its values, w = (UV)_i.
func mapPlot(name string, t func(float64) float64, x, w, fitted []float64) plot {
	p := frame(250, 190, 44, 24)
	p.Title = "Learned map of " + name
	from, to := w[0], w[0]
	for _, v := range w {
		from, to = min(from, v), max(to, v)
	}
	if from == to {
		to = from + max(math.Abs(from), 1)
	}
	p.x = widened(from, to, p.Left, p.Right, 0.06, false)

	const steps = 120
	curveX, curveY := make([]float64, steps+1), make([]float64, steps+1)
	for s := range curveX {
		curveX[s] = from + (to-from)*float64(s)/steps
		curveY[s] = t(curveX[s])
	}
	low, high := curveY[0], curveY[steps]
	for _, v := range x {
		if v == v {
			low, high = min(low, v), max(high, v)
		}
	}
	p.y = widened(low, high, p.Bottom, p.Top, 0.06, false)
	p.YTicks = p.y.ticks(4)
	for _, v := range []float64{0, 0.5, 1} {
		p.XTicks = append(p.XTicks, tick{coordinate(p.x.at(from + v*(to-from))), strconv.FormatFloat(v, 'g', -1, 64)})
	}

	step := (len(x) + mostDots - 1) / mostDots
	var dotX, dotY []float64
	for j := 0; j < len(x); j += step {
		if x[j] == x[j] {
			dotX, dotY = append(dotX, w[j]), append(dotY, x[j])
		}
	}
	slope, offset := line(w, fitted)
	p.Series = []series{
		{Class: "dots", Path: p.dots(dotX, dotY)},
		{Class: "line", Path: p.curve([]float64{from, to}, []float64{offset + slope*from, offset + slope*to})},
		{Class: "curve", Path: p.curve(curveX, curveY)},
	}
	return p
}

// line fits y ≈ offset + slope x by least squares.
func line(x, y []float64) (slope, offset float64) {
	mx, my := mean(x), mean(y)
	var xx, xy float64
	for j := range x {
		xx += (x[j] - mx) * (x[j] - mx)
		xy += (x[j] - mx) * (y[j] - my)
	}
	if xx > 0 {
		slope = xy / xx
	}
	return slope, my - slope*mx
}

// strip draws v as a filled profile, from 0, which stands for what is below it,
// up to its largest value.
func strip(v []float64) string {
	const width, height = 300.0, 40.0
	high := 0.0
	for _, a := range v {
		high = max(high, a)
	}
	if high == 0 {
		high = 1
	}
	var s strings.Builder
	s.WriteString("M0 " + coordinate(height))
	for j, a := range v {
		y := coordinate(height * (1 - max(a, 0)/high))
		s.WriteString("L" + coordinate(width*float64(j)/float64(len(v))) + " " + y + "H" + coordinate(width*float64(j+1)/float64(len(v))))
	}
	s.WriteString("V" + coordinate(height) + "Z")
	return s.String()
}

// What the template needs beyond the frame's edges.
func (p plot) FrameWidth() float64  { return p.Right - p.Left }
func (p plot) FrameHeight() float64 { return p.Bottom - p.Top }
func (p plot) InsideLeft() float64  { return p.Left - 7 }
func (p plot) MiddleX() float64     { return (p.Left + p.Right) / 2 }
func (p plot) MiddleY() float64     { return (p.Top + p.Bottom) / 2 }
