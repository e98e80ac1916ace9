package report

// This file holds a chart of losses as an SVG picture of its own.

import (
	"fmt"
	"io"
	"math"
	"strings"
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

// Write writes the chart as an SVG document, 640 × 360. The same chart gives the same bytes.
func (c Chart) Write(w io.Writer) error {
	p := frame(640, 360, 70, 50)
	p.Top = 34
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
	var s strings.Builder
	text := func(x, y float64, anchor, more, t string) {
		fmt.Fprintf(&s, `<text x="%s" y="%s" text-anchor="%s"%s>%s</text>`+"\n", coordinate(x), coordinate(y),
			anchor, more, escape(t))
	}
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" `+
		`role="img" font-family="sans-serif" font-size="12" fill="#222">`+"\n", p.Width, p.Height, p.Width,
		p.Height)
	fmt.Fprintf(&s, "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		escape(c.Title))
	text((p.Left+p.Right)/2, 20, "middle", ` font-size="14"`, c.Title)
	for _, t := range p.y.ticks(6) {
		fmt.Fprintf(&s, `<path d="M%s %sH%s" stroke="#ddd"/>`+"\n", coordinate(p.Left), t.At,
			coordinate(p.Right))
		fmt.Fprintf(&s, `<text x="%s" y="%s" text-anchor="end" dy="4">%s</text>`+"\n", coordinate(p.Left-6),
			t.At, t.Label)
	}
	if len(c.Lines) > 0 {
		for i, pt := range c.Lines[0].Points {
			text(p.x.at(float64(i)), p.Bottom+18, "middle", "", pt.Label)
		}
	}
	fmt.Fprintf(&s, `<path d="M%s %sV%sH%s" fill="none" stroke="#222"/>`+"\n", coordinate(p.Left),
		coordinate(p.Top), coordinate(p.Bottom), coordinate(p.Right))
	text((p.Left+p.Right)/2, p.Height-12, "middle", "", c.XLabel)
	text(0, 0, "middle", fmt.Sprintf(` transform="translate(14 %s) rotate(-90)"`,
		coordinate((p.Top+p.Bottom)/2)), c.YLabel)
	for k, l := range c.Lines {
		ink := inks[k%len(inks)]
		var x, y []float64
		bars := ""
		for i, pt := range l.Points {
			at := float64(i) + 0.06*(float64(k)-float64(len(c.Lines)-1)/2) // bars beside one another
			x, y = append(x, at), append(y, pt.Y)
			if pt.Error > 0 {
				bars += fmt.Sprintf("M%s %sV%s", coordinate(p.x.at(at)), coordinate(p.y.at(pt.Y-pt.Error)),
					coordinate(p.y.at(pt.Y+pt.Error)))
			}
		}
		if len(x) == 0 {
			continue
		}
		fmt.Fprintf(&s, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", p.curve(x, y), ink)
		if bars != "" {
			fmt.Fprintf(&s, `<path d="%s" stroke="%s"/>`+"\n", bars, ink)
		}
		for i, pt := range l.Points {
			fill := "#fff"
			if pt.Best {
				fill = ink
			}
			cx, cy := coordinate(p.x.at(x[i])), coordinate(p.y.at(pt.Y))
			fmt.Fprintf(&s, `<circle cx="%s" cy="%s" r="3.5" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n",
				cx, cy, fill, ink)
			if pt.Marked {
				fmt.Fprintf(&s, `<circle cx="%s" cy="%s" r="7.5" fill="none" stroke="%s" `+
					`stroke-width="1.5"><title>the smallest within one standard error of the `+
					`best</title></circle>`+"\n", cx, cy, ink)
			}
		}
		if l.Name != "" {
			y := p.Top + 14*float64(k) + 6
			fmt.Fprintf(&s, `<path d="M%s %sh16" stroke="%s" stroke-width="2"/>`+"\n", coordinate(p.Right-90),
				coordinate(y), ink)
			text(p.Right-68, y+4, "start", "", l.Name)
		}
	}
	s.WriteString("</svg>\n")
	_, err := io.WriteString(w, s.String())
	return err
}
