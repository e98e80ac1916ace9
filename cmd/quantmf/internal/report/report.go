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

	"github.com/quantmf/quantmf"
)

// Fit is what the page shows.
type Fit struct {
	Matrix   string // the name of the file
	Method   string // "QMF" or "NMF"
	Command  string // the command line that repeats the fit
	Version  string // of quantmf
	Features []string
	Samples  []string
	X        quantmf.Mat
	U, V     quantmf.Mat
	Fitted   quantmf.Mat // T(UV), or UV
	Loss     []float64   // after each epoch, entry 0 before the first
	Warnings []string

	// Of QMF alone; Maps is nil for NMF.
	Maps            []func(w float64) float64 // T_i, from the scale of (UV)_i to that of feature i
	Bend            []float64                 // 0 where the map of a feature is a line, towards 1 the farther it is from any
	Unconverged     int                       // features whose transport did not converge
	Compared        float64                   // the final loss of an NMF of the same rank
	ComparedUpdates int
}

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page is what the template fills in.
type page struct {
	Fit
	QMF        bool
	Numbers    []number
	LossPlot   plot
	Maps       []mapPanel
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
	Component      string
	ComponentShare string
}

const (
	mapsShown     = 12
	tableShown    = 40
	featuresShown = 8
	samplesShown  = 8
)

// Write writes the page. The same fit gives the same bytes.
func Write(w io.Writer, f Fit) error {
	uv := product(f.U, f.V)
	total, left := deviance(f.X, f.Fitted)
	parts := shares(f.U, f.V)
	p := page{Fit: f, QMF: f.Maps != nil, LossPlot: lossPlot(f), Reach: reach, Scale: scale()}
	p.Numbers = numbers(f, total, left)
	p.heatmaps(uv)

	fits := make([]float64, len(total)) // the explained part of each feature
	for i := range fits {
		fits[i] = explained(total[i], left[i])
	}
	rank := fits
	if p.QMF {
		rank = f.Bend
		for _, i := range largest(f.Bend, mapsShown) {
			p.Maps = append(p.Maps, mapPanel{f.Features[i], fmt.Sprintf("%.2f", f.Bend[i]), percent(fits[i]),
				mapPlot(f.Features[i], f.Maps[i], f.X.Row(i), uv.Row(i), f.Fitted.Row(i))})
		}
	}
	for _, i := range largest(rank, tableShown) {
		c := largest(parts.Row(i), 1)[0]
		row := feature{Name: f.Features[i], Explained: max(fits[i], 0) * 100, ExplainedText: percent(fits[i]),
			Component: name(c), ComponentShare: percent(parts.At(i, c))}
		if p.QMF {
			row.Bend, row.BendText = f.Bend[i]*100, fmt.Sprintf("%.2f", f.Bend[i])
		}
		p.Table = append(p.Table, row)
	}
	return pageTemplate.Execute(w, p)
}

func name(c int) string { return fmt.Sprintf("c%d", c+1) }

func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// numbers are the key numbers at the top.
func numbers(f Fit, total, left []float64) []number {
	sum, rest := 0.0, 0.0
	for i := range total {
		sum += total[i]
		rest += left[i]
	}
	final := f.Loss[len(f.Loss)-1]
	out := []number{{percent(explained(sum, rest)), "of the differences between samples explained"}}
	if f.Maps == nil {
		return append(out, number{short(final), "loss: mean divergence per entry"})
	}
	if sum > 0 {
		nmf := explained(sum, f.Compared*float64(f.X.Rows)*float64(f.X.Cols))
		out = append(out, number{percent(nmf), "explained by plain NMF with as many components"})
	}
	loss := "loss of QMF; that of NMF is " + short(f.Compared)
	if rest > 1e-9*sum {
		loss += fmt.Sprintf(", %.3g times as much", f.Compared/final)
	}
	middle := largest(f.Bend, len(f.Bend))[len(f.Bend)/2]
	return append(out, number{short(final), loss},
		number{fmt.Sprintf("%.2f", f.Bend[middle]), "median bend of the scales: 0 is kept, 1 beyond any line"},
		number{fmt.Sprintf("%d of %d", f.X.Rows-f.Unconverged, f.X.Rows), "maps converged"})
}

// heatmaps draws the panels, and what stands in their order beside them.
func (p *page) heatmaps(uv quantmf.Mat) {
	s := arrange(p.X, p.Fitted)
	alt := fmt.Sprintf(", %d features by %d samples, each feature in standard deviations from its mean", len(s.rows), len(s.columns))
	p.Heatmaps = []heatmap{{"X, the data", "Heatmap of the data" + alt, s.draw(p.X, p.X)}}
	if p.QMF {
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

	parts := shares(p.U, p.V)
	total, left := deviance(p.X, p.Fitted)
	for c := range p.V.Rows {
		v, m := p.V.Row(c), mean(p.V.Row(c))
		k := component{Name: name(c), Strip: strip(at(v, s.columns))}
		brought := make([]float64, p.X.Rows)
		for i := range brought {
			brought[i] = parts.At(i, c) * max(explained(total[i], left[i]), 0)
		}
		for _, i := range largest(brought, featuresShown) {
			k.Features = append(k.Features, part{p.Features[i], percent(parts.At(i, c))})
		}
		for _, j := range largest(v, samplesShown) {
			size := "0"
			if m > 0 {
				size = fmt.Sprintf("%.1f×", v[j]/m)
			}
			k.Samples = append(k.Samples, part{p.Samples[j], size})
		}
		p.Components = append(p.Components, k)
	}
}
