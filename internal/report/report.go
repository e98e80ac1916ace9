// Package report draws a fitted factorisation as one self-contained HTML page:
// figures are inline SVG and PNG, nothing is fetched and no script runs.
package report

// This file holds what goes into the page, and the page as its template
// page.html sees it.

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/quantmf/quantmf"
)

// Fit is what the page shows.
type Fit struct {
	Matrix   string // the name of the file
	Method   string // "QMF", "QMFQ" or "NMF"
	Command  string // the command line that repeats the fit, "" where it is not known
	Version  string // of quantmf
	Features []string
	Samples  []string
	X        quantmf.Mat // NaN where a value is missing
	U, V     quantmf.Mat
	Fitted   quantmf.Mat // T(UV), or UV
	Loss     []float64   // after each epoch, entry 0 before the first
	Warnings []string

	// What the model says (model.go of the package).
	Goodness    []quantmf.Goodness // of each feature
	Shares      quantmf.Mat        // features × components
	TopFeatures [][]quantmf.Top    // of each component
	TopSamples  [][]quantmf.Top

	// Not of NMF; Maps is nil there.
	Maps            []func(w float64) float64 // T_i, from the scale of (UV)_i to that of feature i
	Bend            []float64                 // 0 where the map of a feature is a line, towards 1 the farther it is from any
	Unconverged     int                       // features whose transport did not converge
	Compared        float64                   // the final loss of an NMF of the same rank
	ComparedUpdates int                       // after so many; 0 where there is none
}

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page is what the template fills in.
type page struct {
	Fit
	Maps       []mapPanel
	Scales     bool // there are maps
	Missing    bool // there are missing values
	Numbers    []number
	LossPlot   plot
	Heatmaps   []heatmap
	Scale      template.URL
	Reach      float64
	Shown      string // what the heatmaps leave out
	Height     int    // of the heatmaps, in pixels
	Fine       bool   // more columns than a narrow panel has pixels
	Components []component
	Table      []feature
}

type number struct{ Value, Label string }

type mapPanel struct {
	Name, Bend, Explained string
	Plot                  plot
}

type component struct {
	Name     string
	Strip    string // its profile over the samples
	Features []part
	Samples  []part
}

// part is a feature or a sample with what it has to do with a component.
type part struct{ Name, Size string }

type feature struct {
	Name           string
	Bend           float64
	BendText       string
	Explained      float64
	ExplainedText  string
	Left           string // the mean divergence
	Component      string
	ComponentShare string
}

const (
	mapsShown  = 12
	tableShown = 40
)

// Write writes the page. The same fit gives the same bytes.
func Write(w io.Writer, f Fit) error {
	uv := product(f.U, f.V)
	p := page{Fit: f, Scales: f.Maps != nil, LossPlot: lossPlot(f), Reach: reach, Scale: scale()}
	p.Numbers = numbers(f)
	p.Missing = slices.ContainsFunc(f.X.Data, func(v float64) bool { return v != v })
	p.heatmaps(uv)

	rank := f.Bend
	if p.Scales {
		for _, i := range largest(f.Bend, mapsShown) {
			p.Maps = append(p.Maps, mapPanel{f.Features[i], fmt.Sprintf("%.2f", f.Bend[i]), f.explainedText(i),
				mapPlot(f.Features[i], f.Maps[i], f.X.Row(i), uv.Row(i), f.Fitted.Row(i))})
		}
	} else {
		for _, g := range f.Goodness {
			rank = append(rank, g.Explained)
		}
	}
	for _, i := range largest(rank, tableShown) {
		c := largest(f.Shares.Row(i), 1)[0]
		row := feature{Name: f.Features[i], Explained: max(f.Goodness[i].Explained, 0) * 100, ExplainedText: f.explainedText(i), Left: short(f.Goodness[i].Divergence),
			Component: name(c), ComponentShare: percent(f.Shares.At(i, c))}
		if p.Scales {
			row.Bend, row.BendText = f.Bend[i]*100, fmt.Sprintf("%.2f", f.Bend[i])
		}
		p.Table = append(p.Table, row)
	}
	return pageTemplate.Execute(w, p)
}

// explainedText says what the model explains of feature i, if there is anything.
func (f *Fit) explainedText(i int) string {
	if f.Goodness[i].Spread == 0 {
		return "constant"
	}
	return percent(f.Goodness[i].Explained)
}

func name(c int) string { return fmt.Sprintf("c%d", c+1) }

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// numbers are the key numbers at the top.
func numbers(f Fit) []number {
	own, nmf := f.explained(f.Compared)
	final := f.Loss[len(f.Loss)-1]
	out := []number{{percent(own), "of the differences between samples explained"}}
	loss := "loss: mean divergence per entry"
	if f.ComparedUpdates > 0 {
		out = append(out, number{percent(nmf), "explained by plain NMF with as many components"})
		loss = "loss of " + f.Method + "; that of NMF is " + short(f.Compared)
		if final > 1e-9*f.Compared {
			loss += fmt.Sprintf(", %.3g times as much", f.Compared/final)
		}
	}
	out = append(out, number{short(final), loss})
	if f.Maps == nil {
		return out
	}
	middle := largest(f.Bend, len(f.Bend))[len(f.Bend)/2]
	return append(out, number{fmt.Sprintf("%.2f", f.Bend[middle]), "median bend of the scales: 0 is kept, 1 beyond any line"},
		number{fmt.Sprintf("%d of %d", f.X.Rows-f.Unconverged, f.X.Rows), "maps converged"})
}

// heatmaps draws the panels, and what stands in their order beside them.
func (p *page) heatmaps(uv quantmf.Mat) {
	s := arrange(p.X, p.Fitted)
	alt := fmt.Sprintf(", %d features by %d samples, each feature in standard deviations from its mean", len(s.rows), len(s.columns))
	p.Heatmaps = []heatmap{{"X, the data", "Heatmap of the data" + alt, s.draw(p.X, p.X)}}
	if p.Scales {
		p.Heatmaps = append(p.Heatmaps, heatmap{"UV, the components", "Heatmap of UV, the mixture of components before the maps" + alt, s.draw(uv, uv)},
			heatmap{"T(UV), the reconstruction", "Heatmap of the reconstruction" + alt, s.draw(p.Fitted, p.X)})
	} else {
		p.Heatmaps = append(p.Heatmaps, heatmap{"UV, the reconstruction", "Heatmap of the reconstruction" + alt, s.draw(uv, p.X)})
	}
	if len(s.rows) < p.X.Rows {
		p.Shown += fmt.Sprintf(" Shown are the %d features of largest standard deviation, of %d.", len(s.rows), p.X.Rows)
	}
	if len(s.columns) < p.X.Cols {
		p.Shown += fmt.Sprintf(" Shown are %d samples, evenly spaced in the file, of %d.", len(s.columns), p.X.Cols)
	}
	p.Height = min(max(len(s.rows)*3/2, 260), 640)
	p.Fine = len(s.columns) > 320

	for c := range p.V.Rows {
		k := component{Name: name(c), Strip: strip(at(p.V.Row(c), s.columns))}
		for _, t := range p.TopFeatures[c] {
			if t.Value > 0 {
				k.Features = append(k.Features, part{p.Features[t.Index], fmt.Sprintf("%.2f", t.Value)})
			}
		}
		for _, t := range p.TopSamples[c] {
			if t.Value > 0 {
				k.Samples = append(k.Samples, part{p.Samples[t.Index], fmt.Sprintf("%.1f×", t.Value)})
			}
		}
		p.Components = append(p.Components, k)
	}
}
