package main

// This file holds what a fit says of itself when it is done, in words.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
)

// noteworthyBend is the bend from which the summary names a feature: below it
// the eye takes a curve for a line.
const noteworthyBend = 0.05

// summary says the result in a few lines of words.
func (r *result) summary(seconds float64) string {
	var s strings.Builder
	line := func(head, format string, args ...any) {
		fmt.Fprintf(&s, "%-13s %s\n", head, fmt.Sprintf(format, args...))
	}
	t := r.table
	line("Matrix", "%s: %s × %s%s", r.name(), counted(t.X.Rows, "feature"), counted(t.X.Cols, "sample"), r.naming())
	if r.qmf == nil {
		line("Model", "NMF of %s (X = UV)", counted(r.rank, "component"))
		line("Fit", "a loss of %.4g (mean Kullback-Leibler divergence per entry) after %s", last(r.history), counted(len(r.history)-1, "epoch"))
	} else {
		line("Model", "QMF of %s (X = T(UV), one increasing map T per feature)", counted(r.rank, "component"))
		qmf, nmf := last(r.history), last(r.nmf.History)
		line("Fit", "a loss of %.4g (mean Kullback-Leibler divergence per entry) after %s;", qmf, counted(len(r.history)-1, "epoch"))
		line("", "plain NMF of the same rank ends at %.4g after %d updates", nmf, comparisonUpdates)
		line("", "%s", compared(qmf, nmf, t.X))
		line("Bent scales", "%s", r.bentScales())
		line("Transport", "%s", r.transports())
	}
	for _, w := range r.warningsInWords() {
		line("Warning", "%s", w)
	}
	line("Time", "%s", duration(seconds))
	for _, f := range []struct{ path, what string }{
		{r.uFile, "U, features × components"},
		{r.vFile, "V, components × samples"},
		{r.qFile, "quantiles and weights of each feature's map"},
		{r.page, "the report: open it in a browser"},
	} {
		if f.path != "" && f.path != "-" {
			line("Written", "%s (%s)", f.path, f.what)
		}
	}
	return s.String()
}

// summary tells it the way progress was told.
func (p *progress) summary(text string) error {
	if p.mode == "json" {
		return json.NewEncoder(p.w).Encode(map[string]string{"summary": text})
	}
	_, err := io.WriteString(p.w, text)
	return err
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// naming says what of the matrix was not as the file has it.
func (r *result) naming() string {
	var parts []string
	if !r.table.NamedFeatures {
		parts = append(parts, "the file names no features, so they are f1, f2, ...")
	}
	if !r.table.NamedSamples {
		parts = append(parts, "the file names no samples, so they are s1, s2, ...")
	}
	if r.log1p {
		parts = append(parts, "log(1+x) taken")
	}
	if r.top > 0 {
		parts = append(parts, "those of largest standard deviation")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// compared puts the two losses in relation. A loss is nothing where it is so
// beside the numbers of x themselves.
func compared(qmf, nmf float64, x quantmf.Mat) string {
	total := 0.0
	for i := range x.Rows {
		for _, v := range x.Row(i) {
			total += v
		}
	}
	nothing := 1e-9 * total / float64(x.Rows) / float64(x.Cols)
	switch {
	case qmf <= nothing && nmf <= nothing:
		return "both explain the matrix exactly: bending the scales gains nothing"
	case qmf <= nothing:
		return "QMF explains the matrix exactly"
	case nmf <= nothing:
		return "NMF explains the matrix exactly: bending the scales gains nothing"
	case nmf >= 1.05*qmf:
		return fmt.Sprintf("QMF leaves %.2g times less unexplained than NMF", nmf/qmf)
	case qmf >= 1.05*nmf:
		return fmt.Sprintf("QMF leaves %.2g times more unexplained than NMF: try more epochs or a smaller learning rate", qmf/nmf)
	}
	return "QMF and NMF explain it about equally well: bending the scales gains little"
}

// bentScales names the features whose map is farthest from a line.
func (r *result) bentScales() string {
	bend := r.qmf.Bend()
	order := make([]int, len(bend))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bend[b], bend[a]) })
	var names []string
	for _, i := range order[:min(5, len(order))] {
		if bend[i] >= noteworthyBend {
			names = append(names, fmt.Sprintf("%s %.2f", r.table.Features[i], bend[i]))
		}
	}
	if len(names) == 0 {
		return "none: every feature kept its scale, nearly"
	}
	bent := 0
	for _, b := range bend {
		if b >= noteworthyBend {
			bent++
		}
	}
	return fmt.Sprintf("%s (0 keeps the scale, 1 is beyond any line; %d of %d features are at %g or above)",
		strings.Join(names, ", "), bent, len(bend), noteworthyBend)
}

func (r *result) transports() string {
	worst := slices.Max(r.qmf.MarginalErrors())
	d := r.table.X.Rows
	if n := r.unconverged(); n > 0 {
		return fmt.Sprintf("%d of %d features did not converge; the worst is off by %.2g relative to a level's weight", n, d, worst)
	}
	return fmt.Sprintf("converged for every feature; the worst is off by %.2g relative to a level's weight", worst)
}

// unconverged counts the features whose transport did not converge.
func (r *result) unconverged() int {
	n := 0
	for _, w := range r.warnings {
		var c *quantmf.ConvergenceError
		if errors.As(w, &c) {
			n++
		}
	}
	return n
}

// warningsInWords names features instead of rows. Transports that did not
// converge are one warning together.
func (r *result) warningsInWords() []string {
	var words, names []string
	for _, w := range r.warnings {
		var c *quantmf.ConvergenceError
		if errors.As(w, &c) && c.Row >= 0 {
			names = append(names, r.table.Features[c.Row])
		} else {
			words = append(words, w.Error())
		}
	}
	if n := len(names); n > 0 {
		more := ""
		if n > 3 {
			names, more = names[:3], fmt.Sprintf(" and %d more", n-3)
		}
		words = append(words, fmt.Sprintf("the map of %s%s is less exact than asked for: a larger -eps helps", strings.Join(names, ", "), more))
	}
	return words
}
