package report

// This file holds the samples of a page: their places on principal axes, who is near whom, and the tree of
// their clustering.

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// places are the samples on principal axes.
type places struct {
	axes   quantmf.Mat // a row an axis
	shares []float64   // of what differs between samples, that each axis has
	points [][]float64 // of each sample, on all axes
}

func (f *Fit) places() places {
	p := places{points: make([][]float64, f.V.Cols)}
	p.axes, p.shares = account.Coordinates(f.Method, f.U, f.V)
	for j := range p.points {
		for c := range p.axes.Rows {
			p.points[j] = append(p.points[j], p.axes.At(c, j))
		}
	}
	return p
}

// Sizes of the section of samples.
const (
	axesShown = 4  // whose pairs are drawn
	nearest   = 3  // neighbours that are named
	leavesTop = 16 // room above the tree
)

// samples writes where the samples stand, their tree, in the order of columns, and their neighbours.
func (d *document) samples(f *Fit, p places, columns []int, t tree) {
	if p.axes.Rows == 0 || len(columns) < 3 {
		return
	}
	d.section("Samples")
	d.add(how)
	if f.Method == "BQMF" {
		d.add("Distances between samples are those between their mixtures UV: strong components count more " +
			"than weak ones. ")
	} else {
		d.add("Distances between samples are those between their amounts of the components, each component " +
			"in its standard deviations: all components count the same. ")
	}
	d.add("The panels show the first principal axes of this, as a PCA of the components would, each with " +
		"its share of what differs between samples. Hold the pointer over a dot of the first panel for its " +
		"name. ")
	if p.axes.Rows > 2 {
		d.add("Two axes show less than all do: groups that overlap here may be apart. ")
	}
	d.add("</p>\n")
	all := make([]int, f.V.Cols)
	for j := range all {
		all[j] = j
	}
	d.legend("samples", &f.SampleGroups, all)
	d.add(`<div class="components">`)
	count := min(p.axes.Rows, axesShown)
	for a := range max(count-1, 1) {
		for b := a + 1; b < max(count, 2); b++ {
			d.add(`<figure class="card">`)
			d.plot(f.placesPlot(p, a, b, a == 0 && b == 1))
			d.add("</figure>\n")
		}
	}
	d.add("</div>\n")
	d.tree(f, columns, t)
	d.neighbours(f, p, columns)
	d.add("</section>\n\n")
}

// placesPlot draws the samples on axes a and b, each with its name if named. Where there is no second axis
// all have 0 on it. Samples far beyond the others are counted.
func (f *Fit) placesPlot(p places, a, b int, named bool) plot {
	out := frame(330, 270, 46, 40)
	out.Small = true
	x, y := p.axes.Row(a), make([]float64, f.V.Cols)
	label := func(axis int) string {
		if axis >= len(p.shares) {
			return "no second axis"
		}
		return fmt.Sprintf("axis %d, %s", axis+1, percent(p.shares[axis]))
	}
	if b < p.axes.Rows {
		y = p.axes.Row(b)
	}
	out.XLabel, out.YLabel = label(a), label(b)
	out.Title = fmt.Sprintf("%s on the principal axes %d and %d", table.Counted(f.V.Cols, "sample"), a+1, b+1)
	left, right := account.Span(x)
	low, high := account.Span(y)
	out.x = widened(left, right, out.Left, out.Right, 0.05, false)
	out.y = widened(low, high, out.Bottom, out.Top, 0.05, false)
	out.XTicks, out.YTicks = out.x.ticks(5), out.y.ticks(5)
	var drawn []int
	far, step := 0, (len(x)+mostDots-1)/mostDots
	for j := range x {
		if x[j] < left || x[j] > right || y[j] < low || y[j] > high {
			far++
		} else if j%step == 0 {
			drawn = append(drawn, j)
		}
	}
	out.beyond(far)
	if !named {
		out.Series = f.dots(&out, drawn, x, y)
		return out
	}
	for _, j := range drawn {
		dot := f.dots(&out, []int{j}, x, y)[0]
		if dot.Says = clipped(f.Samples[j], 60); f.SampleGroups.Of != nil {
			dot.Says += ", " + f.SampleGroups.name(f.SampleGroups.rank(j))
		}
		out.Series = append(out.Series, dot)
	}
	return out
}

// tree writes the tree of the samples, the colours of their groups and, where there is room, their names.
func (d *document) tree(f *Fit, columns []int, t tree) {
	const left, height = 18., 130.
	pitch := (heatWidth - 2*left) / float64(len(columns))
	under, named := 6., pitch >= labelPitch
	if f.SampleGroups.Of != nil {
		under += bandWidth + 4
	}
	bottom := leavesTop + height
	size := bottom + under
	ordered := at(columns, t.leaves)
	names := f.sampleNames(ordered)
	if named {
		size += widest(names) + 4
	}
	d.add(`<figure><div class="wide">`)
	d.svg(heatWidth, size, fmt.Sprintf("Tree of %s", table.Counted(len(columns), "sample")))
	x, y := make([]float64, len(columns)), make([]float64, len(columns)) // of the clusters of their points
	for place, i := range t.leaves {
		x[i], y[i] = left+(float64(place)+.5)*pitch, bottom
	}
	top, path := 0.0, ""
	for _, m := range t.merges {
		top = max(top, m.height)
	}
	for _, m := range t.merges {
		at := bottom - height*m.height/max(top, 1e-300)
		path += "M" + coordinate(x[m.a]) + " " + coordinate(y[m.a]) + "V" + coordinate(at) + "H" +
			coordinate(x[m.b]) + "V" + coordinate(y[m.b])
		x[m.a], y[m.a] = (x[m.a]+x[m.b])/2, at
	}
	d.path(series{Class: "axis", Path: path})
	for _, r := range f.SampleGroups.runs(ordered) {
		d.band(&f.SampleGroups, r, "sample", box(left+float64(r.from)*pitch, bottom+5,
			left+float64(r.to)*pitch, bottom+5+bandWidth))
	}
	for place, n := range names {
		if named {
			d.upright("end small", left+(float64(place)+.5)*pitch+3.5, bottom+under+2, n)
		}
	}
	d.add("</svg></div>\n<figcaption>The tree joins the two samples, or groups of samples, that are most " +
		"alike first, and so on (Ward's clustering of the distances above); the higher they meet, the less " +
		"alike they are. <b>-order tree</b> puts the samples of the heatmaps and profiles in this order.")
	if len(columns) < f.V.Cols {
		d.add(" Shown are %d samples, evenly spaced in the table, of %d.", len(columns), f.V.Cols)
	}
	d.add("</figcaption></figure>\n")
}

// neighbours writes the nearest samples of each, and how often the nearest is of the same group.
func (d *document) neighbours(f *Fit, p places, columns []int) {
	lines, same, chance, grouped := make([][]int, len(columns)), 0, 0.0, 0
	g := &f.SampleGroups
	sizes := make([]int, len(g.Names)+1)
	for j := range g.Of {
		sizes[g.rank(j)]++
	}
	known := f.V.Cols - sizes[len(g.Names)]
	far := make([]float64, f.V.Cols)
	for place, j := range columns {
		var others []int
		for i := range far {
			far[i] = math.Sqrt(apart(p.points[i], p.points[j]))
			if i != j && (g.Of == nil || g.Of[j] < 0 || g.Of[i] >= 0) {
				others = append(others, i)
			}
		}
		slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(far[a], far[b]) })
		lines[place] = others[:min(len(others), nearest)]
		if g.Of != nil && g.Of[j] >= 0 && len(others) > 0 {
			grouped++
			chance += float64(sizes[g.Of[j]]-1) / float64(max(known-1, 1))
			if g.Of[others[0]] == g.Of[j] {
				same++
			}
		}
	}
	if grouped > 0 {
		d.add("<p>The nearest other sample is of the same group for %s of the samples; by chance it would "+
			"be for %s.</p>\n",
			percent(float64(same)/float64(grouped)), percent(chance/float64(grouped)))
	}
	d.add("<details><summary>Nearest neighbours of %s</summary>\n<div "+
		"class=\"wide\"><table><tr><th>sample</th>",
		table.Counted(len(columns), "sample"))
	if g.Of != nil {
		d.add("<th>group</th>")
	}
	d.add("<th>nearest, by all axes</th></tr>\n")
	for place, j := range columns {
		d.add("<tr><td>%s</td>", clipped(f.Samples[j], 40))
		if g.Of != nil {
			d.add("<td>%s</td>", clipped(g.name(g.rank(j)), 40))
		}
		d.add("<td>")
		for t, i := range lines[place] {
			if t > 0 {
				d.add(", ")
			}
			d.add("%s (%s)", clipped(f.Samples[i], 40), short(math.Sqrt(apart(p.points[i], p.points[j]))))
		}
		d.add("</td></tr>\n")
	}
	d.add("</table></div></details>\n")
}
