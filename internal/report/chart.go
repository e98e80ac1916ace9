package report

// This file holds a chart of losses, which is a figure of the page or an SVG picture of its own.

import (
	"fmt"
	"io"
	"math"
)

// Chart is lines over labels that stand at equal distances.
type Chart struct {
	Title, XLabel, YLabel string
	Lines                 []Line // all with the same labels
}

// Line is one of them; Name is "" where there is one only.
type Line struct {
	Name   string
	Points []Point
}

// Point is a value with its standard error.
type Point struct {
	Label        string
	Y, Error     float64
	Best, Marked bool // drawn filled; with a ring
}

// inks are the colours of lines, in turn: told apart by the colour-blind too.
var inks = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"}

// plot draws the chart as a figure of 640 × 360.
func (c Chart) plot() plot {
	p := frame(640, 360, 70, 50)
	p.Top, p.Title, p.Head, p.XLabel, p.YLabel = 34, c.Title, c.Title, c.XLabel, c.YLabel
	low, high, most := math.Inf(1), math.Inf(-1), 1
	for _, l := range c.Lines {
		most = max(most, len(l.Points))
		for _, pt := range l.Points {
			low, high = min(low, pt.Y-pt.Error), max(high, pt.Y+pt.Error)
		}
	}
	if !(low <= high) {
		low, high = 0, 1
	}
	p.x = axis{-0.5, float64(most) - 0.5, p.Left, p.Right, false}
	p.y = widened(low, high, p.Bottom, p.Top, 0.06, false)
	p.YTicks = p.y.ticks(6)
	for k, l := range c.Lines {
		ink := inks[k%len(inks)]
		var x, y []float64
		bars, all, best, marked := "", "", "", ""
		for i, pt := range l.Points {
			if k == 0 {
				p.XTicks = append(p.XTicks, tick{coordinate(p.x.at(float64(i))), pt.Label})
			}
			x = append(x, float64(i)+0.06*(float64(k)-float64(len(c.Lines)-1)/2)) // bars beside one another
			y = append(y, pt.Y)
			at, of := p.x.at(x[i]), p.y.at(pt.Y)
			if pt.Error > 0 {
				bars += "M" + coordinate(at) + " " + coordinate(p.y.at(pt.Y-pt.Error)) + "V" +
					coordinate(p.y.at(pt.Y+pt.Error))
			}
			all += circle(at, of, 3.5)
			if pt.Best {
				best = circle(at, of, 3.5)
			}
			if pt.Marked {
				marked = circle(at, of, 7.5)
			}
		}
		below := p.Top + 14*float64(k) + 6
		key := series{Class: "ring", Ink: ink, Label: l.Name, LabelClass: "key", X: p.Right - 68,
			Y: below + 4}
		if l.Name != "" {
			key.Path = "M" + coordinate(p.Right-90) + " " + coordinate(below) + "h16"
		}
		for _, s := range []series{key, {Class: "ring", Ink: ink, Path: p.curve(x, y)},
			{Class: "ring", Ink: ink, Path: bars}, {Class: "hollow", Ink: ink, Path: all},
			{Class: "band", Ink: ink, Fill: ink, Path: best},
			{Class: "ring", Ink: ink, Path: marked,
				Says: "the smallest within one standard error of the best"},
		} {
			if s.Path != "" {
				p.Series = append(p.Series, s)
			}
		}
	}
	return p
}

// circle returns the path of a circle.
func circle(x, y, r float64) string {
	return fmt.Sprintf("M%s %sa%[3]g %[3]g 0 1 0 %[4]g 0a%[3]g %[3]g 0 1 0 -%[4]g 0", coordinate(x-r),
		coordinate(y), r, 2*r)
}

// Write writes the chart as an SVG document. The same chart gives the same bytes.
func (c Chart) Write(w io.Writer) error {
	d := &document{}
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360" width="640" height="360">`+"\n"+
		"<title>%s</title>\n<style>%s</style>\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n",
		c.Title,
		markup(chartStyle))
	d.plot(c.plot())
	d.add("</svg>\n")
	_, err := w.Write(d.Bytes())
	return err
}

// chartStyle is that of figures in a page, for a picture alone: with colours in place of variables, which not
// all programs for drawings know.
const chartStyle = `text { font: 12px sans-serif; fill: #222; }
.end { text-anchor: end; } .mid { text-anchor: middle; }
.grid, .axis, .ring { fill: none; } .grid { stroke: #ddd; } .axis { stroke: #222; }
.ring, .hollow { stroke-width: 1.5; } .hollow { fill: #fff; }`
