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
	"strings"

	"github.com/quantmf/quantmf"
)

// Fit is what the page shows.
type Fit struct {
	Matrix   string // the name of the file
	Method   string // "QMF", "QMFQ", "NMF" or "BQMF", whose Loss is the negative bound of the evidence
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
	Bayes      bool // it is a BQMF
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
	Rest       []feature // all by name, where Table is not all
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
	p := page{Fit: f, Scales: f.Maps != nil, Bayes: f.Method == "BQMF", LossPlot: lossPlot(f), Reach: reach, Scale: scale()}
	p.Numbers = numbers(f)
	p.Missing = slices.ContainsFunc(f.X.Data, func(v float64) bool { return v != v })
	p.heatmaps(uv)

	var rank []float64
	if p.Scales {
		rank = f.telling()
		for _, i := range largest(rank, mapsShown) {
			p.Maps = append(p.Maps, mapPanel{f.Features[i], fmt.Sprintf("%.2f", f.Bend[i]), f.explainedText(i),
				mapPlot(f.Features[i], f.Maps[i], f.X.Row(i), uv.Row(i), f.Fitted.Row(i))})
		}
	} else {
		for _, g := range f.Goodness {
			rank = append(rank, g.Explained)
		}
	}
	for _, i := range largest(rank, tableShown) {
		p.Table = append(p.Table, f.row(i))
	}
	if len(p.Table) < len(f.Features) {
		for i := range f.Features {
			p.Rest = append(p.Rest, f.row(i))
		}
		slices.SortStableFunc(p.Rest, func(a, b feature) int { return strings.Compare(a.Name, b.Name) })
	}
	return pageTemplate.Execute(w, p)
}

// row is what the table says of feature i.
func (f *Fit) row(i int) feature {
	c := largest(f.Shares.Row(i), 1)[0]
	row := feature{Name: f.Features[i], Explained: max(f.Goodness[i].Explained, 0) * 100, ExplainedText: f.explainedText(i), Left: short(f.Goodness[i].Divergence),
		Component: name(c), ComponentShare: percent(f.Shares.At(i, c))}
	if f.Bend != nil {
		row.Bend, row.BendText = f.Bend[i]*100, fmt.Sprintf("%.2f", f.Bend[i])
	}
	return row
}

// telling ranks features whose maps are worth a look: the bend, times what is explained, since
// that of noise is a shape of noise, times the share of samples beside the most frequent value,
// since a row of zeros is on or off, and any two levels are bent.
func (f *Fit) telling() []float64 {
	out := make([]float64, len(f.Bend))
	var values []float64
	for i := range out {
		values = values[:0]
		for _, v := range f.X.Row(i) {
			if v == v {
				values = append(values, v)
			}
		}
		slices.Sort(values)
		most, run := 0, 0
		for j := range values {
			if run++; j > 0 && values[j] != values[j-1] {
				run = 1
			}
			most = max(most, run)
		}
		if most > 1 { // a value that comes once is no frequent one
			out[i] = 1 - float64(most)/float64(len(values))
		} else {
			out[i] = 1
		}
		out[i] *= f.Bend[i] * max(f.Goodness[i].Explained, 0)
	}
	return out
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
	if f.Method == "BQMF" { // whose Loss is no divergence
		final = f.left()
	}
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
	out = append(out, number{fmt.Sprintf("%.2f", f.Bend[middle]), "median bend of the scales: 0 is kept, 1 beyond any line"})
	if f.Method != "BQMF" {
		out = append(out, number{fmt.Sprintf("%d of %d", f.X.Rows-f.Unconverged, f.X.Rows), "maps converged"})
	}
	return out
}

// left is the mean divergence of all values from the fit.
func (f *Fit) left() float64 {
	sum, cells := 0.0, 0.0
	for i, g := range f.Goodness {
		seen := 0.0
		for _, v := range f.X.Row(i) {
			if v == v {
				seen++
			}
		}
		cells += seen
		sum += g.Divergence * seen
	}
	return sum / max(cells, 1)
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
