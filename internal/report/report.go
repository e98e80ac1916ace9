// Package report draws a fitted factorisation as one self-contained HTML page:
// figures are inline SVG and PNG, nothing is fetched and no script runs.
package report

// This file holds what goes into the page, and the page from top to bottom.

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// Fit is what the page shows.
type Fit struct {
	account.Account // what the model says
	account.Made    // how it came about

	Version  string   // of quantmf
	Settings []string // of the fit in words, for a methods section, such as "8 levels"
	Features []string
	Samples  []string
	X        quantmf.Mat // NaN where a value is missing

	// How the heatmaps stand: groups together, otherwise samples as in the table; by their amount of a
	// component where Order is its name, such as c2; or by their tree, whatever their groups, where it is
	// "tree".
	FeatureGroups, SampleGroups Groups
	Order                       string

	// What is known of samples, and sets of features: components are tested against both.
	Tracks []account.Track
	Sets   []account.Set
}

// mapped tells whether the model has maps.
func (f *Fit) mapped() bool { return f.Curves.Rows > 0 }

const (
	mapsShown       = 12
	componentsShown = 50
	chunk           = 100     // curves of a list that opens at once
	listed          = 1100000 // bytes that the lists of curves may take
)

// Write writes the page, of at most 2 MB. The same fit gives the same bytes.
func Write(w io.Writer, f Fit) error {
	d := &document{}
	f.FeatureGroups.backward = true
	uv, noise := product(f.U, f.V), ""
	if f.Unseen.Noise() {
		noise = ` class="noise"`
	}
	title := fmt.Sprintf("%s of %s", f.Method, clipped(f.Matrix, 120))
	d.add(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="%s"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>%s</title>
<style>%s</style>
</head>
<body>
<main%s>
`, markup(policy), title, markup(style), markup(noise))
	d.head(&f)
	rank := f.explainedOfEach()
	if f.mapped() {
		rank, _ = Telling(f.X, f.Bend, f.Goodness) // reading a Mat has no error
	}
	best := account.Largest(rank, len(rank))
	places := f.places()
	shown, picked, tree := f.arrange(places)
	d.section("Data and fit")
	d.add(how + `Rows are features and columns are samples, in the same order in every panel. Colours are ` +
		`relative to each feature: red where a sample is above that feature's mean, blue where it is below. `)
	if f.mapped() && f.Normalized.Rows == 0 {
		d.add("The second panel is the mixture before the maps, the third after them. ")
	} else if f.mapped() {
		d.add("The second panel is the data on the scale on which components add up, where a second map of " +
			"each feature takes them. ")
	}
	d.add("The more the fit looks like the data, the better. A pattern in the last panel is one that the " +
		"model has not explained.</p>\n")
	d.heatmaps(&f, shown, uv)
	d.add("</section>\n\n")
	if f.mapped() {
		d.maps(&f, uv, best[:min(mapsShown, len(best))])
	}
	d.samples(&f, places, picked, tree)
	d.components(&f, shown.columns, account.Against(f.V, f.Tracks))
	d.tests(f.Tests())
	d.list(&f, best)
	d.odd(&f)
	d.losses(&f)
	d.methods(&f)
	d.section("Tables")
	d.add("<p class=\"how\">These files are in this page; a click saves them. Their numbers have four or " +
		"five digits, whole ones all of theirs; the files that the command writes have all. Names end in " +
		".tsv, or in .tsv.gz where the file is compressed by gzip.</p>\n")
	d.tables(&f, uv)
	d.add("</section>\n</main>\n</body>\n</html>\n")
	_, err := w.Write(d.Bytes())
	return err
}

// head writes what was fitted, the key numbers and the warnings.
func (d *document) head(f *Fit) {
	d.add("<header>\n<h1>%s: %s × %s in %s</h1>\n", clipped(f.Matrix, 120),
		table.Counted(len(f.Features), "feature"), table.Counted(len(f.Samples), "sample"),
		table.Counted(f.V.Rows, "component"))
	d.add(`<p class="lede">`)
	switch {
	case f.Method == "BQMF":
		d.add("Bayesian quantile matrix factorisation (BQMF) describes every sample as a point in %s, of "+
			"either sign, and learns one increasing map for every feature, which translates that point "+
			"into the feature's own scale. It has an uncertainty for every value.",
			table.Counted(f.V.Rows, "direction"))
	case f.mapped():
		d.add("Quantile matrix factorisation (%s) describes every sample as a mixture of %s, and learns "+
			"one increasing map for every feature, which translates that mixture into the feature's own "+
			"scale. ", f.Method, table.Counted(f.V.Rows, "component"))
		if f.Method == "QMFQ" {
			d.add("The mixture is the projection of the data onto these components, after a second map of " +
				"each feature. ")
		}
		d.add("Plain non-negative matrix factorisation (NMF) has the mixture but not the maps.")
	default:
		d.add("Non-negative matrix factorisation (NMF) describes every sample as a mixture of %s.",
			table.Counted(f.V.Rows, "component"))
	}
	d.add("</p>\n")
	d.unseen(&f.Unseen, f.Method)
	d.add("<ul class=\"numbers\">")
	for _, n := range numbers(f) {
		d.add("<li><b>%s</b><span>%s</span></li>", n.Value, n.Label)
	}
	d.add("</ul>\n")
	for _, w := range f.Warnings {
		d.add("<p class=\"warning\"><b>Warning:</b> %s</p>\n", clipped(w, 1000))
	}
	d.add("</header>\n\n")
}

// unseen writes what is known of values that the model has not seen.
func (d *document) unseen(u *account.Unseen, method string) {
	text, others := u.Words(method)
	if text == "" {
		return
	}
	class := "unseen"
	if u.Noise() {
		class = "warning none"
	} else if !u.Found() {
		class = "warning"
	}
	lead, rest, cut := strings.Cut(strings.ToUpper(text[:1])+text[1:], ": ")
	if cut {
		d.add(`<p class="%s"><b>%s:</b> %s.</p>`+"\n", class, lead, rest)
	} else {
		d.add(`<p class="%s">%s.</p>`+"\n", class, lead)
	}
	if others != "" {
		d.add("<p>%s.</p>\n", others)
	}
}

// numbers are the key numbers at the top: first what holds of values that the model has not seen, last the
// loss.
func numbers(f *Fit) (out []account.Number) {
	say := func(value, label string) { out = append(out, account.Number{Value: value, Label: label}) }
	own := f.explained()
	final := f.Loss[len(f.Loss)-1]
	if f.Method == "BQMF" { // whose Loss is no divergence
		final = f.left()
	}
	if out = f.Unseen.Numbers(); len(out) == 0 {
		say(percent(own), "of the differences between samples explained, in the values that were fitted")
	}
	say(percent(Average(f.Goodness)), "of the average feature explained, whatever its scale")
	if f.mapped() {
		middle := account.Largest(f.Bend, len(f.Bend))[len(f.Bend)/2]
		say(fmt.Sprintf("%.2f", f.Bend[middle]),
			"median bend of the scales: 0 is a straight line, 1 far from any")
	}
	say(short(final), "loss: how far a value is from the fit, on average")
	return out
}

// losses writes the loss by epoch.
func (d *document) losses(f *Fit) {
	d.section("How the fit went")
	d.add("<div class=\"two\">" + how)
	if f.Method == "BQMF" {
		d.add("The curve is the negative lower bound of the evidence, in nats a value on the scale of the " +
			"mixture: how well the model accounts for the data, less the price of the model itself. Lower " +
			"is better. It cannot be compared between tables.")
	} else {
		d.add("The curve is the loss after each pass over all features: how far the fit is from the data, " +
			"on average over all values. Lower is better. A curve that still falls would come closer " +
			"to these data with more epochs, but need not predict unseen values better.")
	}
	d.add("</p>\n<figure class=\"loss card\">")
	d.plot(lossPlot(f))
	d.add("</figure></div>\n</section>\n\n")
}

// maps writes the learned maps of some features, with their samples.
func (d *document) maps(f *Fit, uv quantmf.Mat, features []int) {
	d.section("Learned scales of features that are bent and well explained")
	d.add(how + `Each panel is one feature. The components' mixture for a sample runs from left to right, from
the lowest (0) to the highest (1), but for samples that lie far beyond the others; the measured value runs
upwards.
The curve is the learned map between the two. Where it follows the dashed line, the feature's scale needed
no change; a step means an on-off feature; a flat end means saturation or a detection limit.
Points near the curve mean a good fit. <b>Bend</b> is the part of the curve's shape that no straight line
has. Shown are the features with the largest bend times explained part, times the share of samples that do
not have the feature's most frequent value.</p>
<div class="key">`)
	const dots = "M6 6h0M15 6h0M24 6h0"
	d.key(series{Class: "curve", Path: "M1 6H29", Label: "learned map"})
	d.key(series{Class: "line", Path: "M1 6H29", Label: "best straight line"})
	if f.SampleGroups.Of == nil {
		d.key(series{Class: "dots", Path: dots, Label: "samples"})
	} else {
		d.add("<span>samples in the colours of their groups:</span>")
		for r, n := range f.SampleGroups.Names {
			d.key(series{Class: "group", Ink: f.SampleGroups.ink(r), Path: dots, Label: clipped(n, 60)})
		}
	}
	d.add("</div>\n")
	d.add(`<div class="maps">`)
	for _, i := range features {
		explained := f.explainedText(i)
		if explained != "constant" {
			explained += " explained"
		}
		d.add(`<figure class="card"><h3>%s</h3><small>bend %.2f, %s</small>`, clipped(f.Features[i], 80),
			f.Bend[i], explained)
		d.plot(f.mapPlot(i, uv.Row(i)))
		d.add("</figure>\n")
	}
	d.add("</div>\n</section>\n\n")
}

// Telling ranks features whose maps are worth a look: the bend, times what is explained, since
// that of noise is a shape of noise, times the share of samples beside the most frequent value,
// since a row of zeros is on or off, and any two levels are bent.
// The error is one of reading x.
func Telling(x quantmf.Rows, bend []float64, goodness []quantmf.Goodness) ([]float64, error) {
	out := make([]float64, len(bend))
	_, n := x.Dims()
	row, values := make([]float64, n), make([]float64, 0, n)
	for i := range out {
		if err := x.ReadRow(row, i); err != nil {
			return nil, err
		}
		values = values[:0]
		for _, v := range row {
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
		out[i] *= bend[i] * max(goodness[i].Explained, 0)
	}
	return out, nil
}

// explainedText says what the model explains of feature i, if there is anything.
func (f *Fit) explainedText(i int) string {
	if f.Goodness[i].Spread == 0 {
		return "constant"
	}
	return percent(f.Goodness[i].Explained)
}

func name(c int) string { return fmt.Sprintf("c%d", c+1) }

// percent writes a share; a sign that stands before 0 is left out.
func percent(v float64) string {
	return strings.Replace(fmt.Sprintf("%.0f %%", math.Round(100*v)+0), "-", "−", 1)
}

// components writes the profile of each, and what it stands for.
func (d *document) components(f *Fit, columns []int, tests []account.Test) {
	d.section("Components")
	d.add(how + "The profile shows how much of the component each sample has, in multiples of the mean")
	if f.Method == "BQMF" {
		d.add(" distance from 0")
	}
	d.add(`, in the order of the heatmaps. <b>Features</b> are those that the component stands for, from 0 to
1: its share in the feature's mixture times the part of the feature that the model explains. A feature's own
scale does not matter for this.
<b>Samples</b> are those that have most of the component, in the same multiples.`)
	if f.V.Rows > componentsShown {
		d.add(" Shown are the first %d of %d components.", componentsShown, f.V.Rows)
	}
	if f.Method == "NMF" && f.Stability == nil {
		d.add(" Which of them come back from other seeds is what <b>quantmf consensus</b> tells.")
	}
	d.add("</p>\n<div class=\"components\">")
	part := func(what string, tops []quantmf.Top, names []string, format string) {
		d.add(`<ol><li class="head">%s</li>`, what)
		for _, t := range tops {
			if t.Value >= 0.005 { // a feature of less is none of the component's
				d.add("<li><b>%s</b><span>%s</span></li>", clipped(names[t.Index], 40),
					fmt.Sprintf(format, t.Value))
			}
		}
		d.add("</ol>\n")
	}
	for c := range min(f.V.Rows, componentsShown) {
		heading := name(c)
		if c < len(f.Stability) {
			heading += fmt.Sprintf(", stability %.2f", f.Stability[c])
		}
		d.add(`<article class="card"><h3>%s</h3>`, heading)
		d.plot(f.profilePlot(c, columns))
		d.add(`<div class="parts">`)
		part("features", f.TopFeatures[c], f.Features, "%.2f")
		part("samples", f.TopSamples[c], f.Samples, "%.1f×")
		d.add("</div>")
		d.goesWith(c, tests)
		d.add("</article>\n")
	}
	d.add("</div>\n</section>\n\n")
}

// list writes all features in the given order, with their curves, in lists that open one by
// one; a browser's search opens them by itself.
func (d *document) list(f *Fit, best []int) {
	heading := "All features, the best explained first"
	if f.mapped() {
		heading = "All curves, the most telling first"
	}
	d.section(heading)
	d.add(how)
	if f.mapped() {
		d.add("Features are ordered by their bend times their explained part, times the share of samples " +
			"that do not have the most frequent value. Below each name stand the <b>bend</b>, the part of " +
			"the feature's differences between samples that the model <b>explains</b>, the ends of its " +
			"<b>curve</b> in its own units, and the <b>component</b> with the largest share in it. The " +
			"curve runs from the lowest to the highest mixture and from its lowest to its highest value. ")
	} else {
		d.add("Below each name stand the part of the feature's differences between samples that the model " +
			"<b>explains</b> and the <b>component</b> with the largest share in it. ")
	}
	d.add("To find a feature search the page for its name: most browsers open the list that has it.</p>\n")
	limit := min(d.Len()+listed, budget-100_000)
	most := min(60, max(12, listed/max(len(best), 1)-155)) // characters of a name
	for from := 0; from < len(best); from += chunk {
		to := min(from+chunk, len(best))
		if d.Len() > limit-500*(to-from) {
			d.add("<p>The other %s are in the table of features below, if this page has room for it.</p>\n",
				table.Counted(len(best)-from, "feature"))
			break
		}
		open := ""
		if len(best) <= 24 {
			open = ` open=""`
		}
		d.add("<details%s><summary>Features %d to %d <small>%s … %s</small></summary>\n<ol "+
			"class=\"curves\" start=\"%d\">\n", markup(open), from+1, to,
			clipped(f.Features[best[from]], 40), clipped(f.Features[best[to-1]], 40), from+1)
		for _, i := range best[from:to] {
			c := account.Largest(f.Shares.Row(i), 1)[0]
			d.add("<li><b>%s</b>", clipped(f.Features[i], most))
			if !f.mapped() {
				d.add("%s, %s</li>\n", f.explainedText(i), name(c))
				continue
			}
			path, low, high := sketch(f.Curves.Row(i))
			d.add(`%.2f, %s, %s to %s, %s<svg viewBox="0 0 96 48"><title>curve</title><path `+
				`d="%s"/></svg></li>`+"\n", f.Bend[i], f.explainedText(i), short(low), short(high), name(c),
				markup(path))
		}
		d.add("</ol></details>\n")
	}
	d.add("</section>\n\n")
}

// odd writes what is odd in the data.
func (d *document) odd(f *Fit) {
	d.section("What is odd in the data")
	odd := f.oddities()
	if len(odd) == 0 {
		d.add("<p>Nothing was found: no value is missing or negative, no name stands twice, no feature is "+
			"constant, none is a copy of another, nor is a sample, no value lies more than %d interquartile "+
			"ranges beyond the quartiles of its feature, and no sample has more than %d times the mean of a "+
			"component.</p>\n", farOut, farAbove)
	} else {
		d.add("<ul>\n")
		for _, o := range odd {
			d.add("<li>%s.</li>\n", o)
		}
		d.add("</ul>\n")
	}
	d.add("</section>\n\n")
}

// methods writes a paragraph for a methods section and the command line.
func (d *document) methods(f *Fit) {
	d.section("Methods")
	d.add("<p>%s</p>\n", f.Methods())
	if f.Command != "" {
		d.add("<p class=\"how\">The same matrix and command give the same numbers, on any "+
			"machine.</p>\n<pre>%s</pre>\n", clipped(f.Command, 5000))
	}
	d.add("</section>\n\n")
}

// Methods returns the paragraph for a methods section.
func (f *Fit) Methods() string {
	var s strings.Builder
	fmt.Fprintf(&s, "The table %s (%s × %s", clipped(f.Matrix, 120),
		table.Counted(len(f.Features), "feature"),
		table.Counted(len(f.Samples), "sample"))
	if n := f.missing(); n > 0 {
		fmt.Fprintf(&s, ", %s left out", table.Counted(n, "missing value"))
	}
	if f.SHA256 != "" {
		s.WriteString("; SHA-256 of the file: " + clipped(f.SHA256, 64))
	}
	const paper = "Cuturi, Teboul, Niles-Weed, Vert: Supervised Quantile Normalization for Low-rank Matrix " +
		"Approximation, ICML 2020"
	how := map[string]string{
		"NMF": "non-negative matrix factorisation, X ≈ UV",
		"QMF": "quantile matrix factorisation, X ≈ T(UV) with an increasing map T for every feature (" +
			paper + ")",
		"QMFQ": "quantile matrix factorisation, X ≈ T(UV), where UV projects the normalised data T′(X), " +
			"with two increasing maps for every feature (" + paper + ")",
		"BQMF": "Bayesian quantile matrix factorisation, X ≈ T(UV) with U and V of either sign and an " +
			"increasing map T for every feature",
	}[f.Method]
	fmt.Fprintf(&s, ") was factorised by %s, as implemented in quantmf %s, with %s", how, f.Version,
		strings.Join(append([]string{table.Counted(f.V.Rows, "component")}, f.Settings...), ", "))
	s.WriteString(". All other settings were the defaults of that version.")
	if u := f.Unseen; u.Values > 0 {
		also, chosen := "", ""
		for _, o := range u.Others {
			also += " and of " + o.Method
		}
		if u.Auto {
			chosen = "; the method is the one of these that predicted them best"
		}
		fmt.Fprintf(&s, " How well unseen values are predicted was found by further fits, of this model%s, "+
			"from which a tenth of the values was hidden%s.", also, chosen)
	}
	return s.String()
}
