package main

// This file holds the summary of a finished fit, in words.

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
)

// noteworthyBend is the bend from which the summary names a feature. Below it a curve looks like a line.
const noteworthyBend = 0.05

// summary returns the result in a few lines of words.
func (r *result) summary(seconds float64) (string, error) {
	var s strings.Builder
	line := linesOf(&s)
	m := r.m
	d, n := r.table.Dims()
	gaps := 0
	if err := r.table.EachRow(func(_ int, row []float64) { gaps += missingIn(row) }); err != nil {
		return "", err
	}
	line("Matrix", "%s: %s × %s%s", r.name(), table.Counted(d, "feature"), table.Counted(n, "sample"),
		r.naming(r.table, gaps))
	line("Model", "%s of %s (%s)", m.kind(), table.Counted(m.of.U.Cols, "component"), m.formula())
	m.tellUnseen(line)
	if r.untried != "" {
		line("Unseen values", "not predicted: %s", r.untried)
	}
	for _, w := range m.Made.Warnings {
		line("Warning", "%s", w)
	}
	if m.Losses != "" {
		line("Loss", "%s", m.Losses)
	}
	if q, is := m.Model.(*quantmf.BQMF); is {
		line("Fit", "%s", foreseen(q))
	} else {
		line("Fit", "a loss of %.4g after %[3]s: the mean %[2]s of values from what the model says of "+
			"them, 0 where "+
			"they are equal", m.of.History[m.of.Best],
			account.LossName(r.fitFlags.options.Loss), table.Counted(m.of.Best, "epoch"))
	}
	if q, ok := m.Model.(*quantmf.QMF); ok {
		line("Start", "%s", account.Begun(q))
	}
	if m.bend != nil {
		bent, err := m.bentScales(r.table.Rows(), r.goodness)
		if err != nil {
			return "", err
		}
		line("Bent scales", "%s", bent)
	}
	line("Time", "%s", cli.Duration(seconds))
	written(line, r.files.Model, "the model: \"quantmf inspect\" prints what is in it")
	written(line, r.files.U, "U, features × components")
	written(line, r.files.V, "V, components × samples")
	written(line, r.files.Q, "quantiles, weights and slope of each feature's map")
	written(line, r.page, "the report: a page to open in a browser")
	if outputs := append(r.files.Paths(), r.page); strings.Join(outputs, "") == "" {
		line("Kept", "nothing: -o FILE keeps the model, -report FILE a page of figures")
	}
	return s.String(), nil
}

// lineFunc adds a line to a summary.
type lineFunc func(head, format string, args ...any)

// written says what a file has, if it was asked for.
func written(line lineFunc, path, what string) {
	if path != "" && path != "-" {
		line("Written", "%s (%s)", path, what)
	}
}

// linesOf returns a function that adds lines to s.
func linesOf(s *strings.Builder) lineFunc {
	return func(head, format string, args ...any) {
		fmt.Fprintf(s, "%-13s %s\n", head, table.Shown(fmt.Sprintf(format, args...)))
	}
}

// foreseen says how well a BQMF predicts values that it has not seen.
func foreseen(m *quantmf.BQMF) string {
	return fmt.Sprintf("a loss of about %.4g on unseen values: how far values lie from what the model says "+
		"of each without having seen it, on average; after %s", m.LeaveOneOut,
		table.Counted(len(m.History)-1, "epoch"))
}

// naming says where the fitted matrix differs from its file: names that were made up, missing values, -log1p,
// -top.
func (f *fitFlags) naming(t *table.Table, gaps int) string {
	var parts []string
	if !t.NamedFeatures {
		parts = append(parts, "the file names no features, so they are f1, f2, ...")
	}
	if !t.NamedSamples {
		parts = append(parts, "the file names no samples, so they are s1, s2, ...")
	}
	if gaps > 0 {
		parts = append(parts, table.Counted(gaps, "missing value"))
	}
	if f.in.Log1p {
		parts = append(parts, "log(1+x) taken")
	}
	if f.in.Top > 0 {
		parts = append(parts, "the features of largest standard deviation")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// missing counts the missing values, missingIn those of a row.
func missing(x quantmf.Mat) (n int) {
	for i := range x.Rows {
		n += missingIn(x.Row(i))
	}
	return n
}

func missingIn(row []float64) (n int) {
	for _, v := range row {
		if v != v {
			n++
		}
	}
	return n
}

// tellUnseen says how well values are predicted that the model has not seen, if that is known.
func (m *model) tellUnseen(line lineFunc) {
	text, others := m.Unseen.Words(m.kind())
	head := "Unseen values"
	if !m.Unseen.Found() {
		head = "Warning"
	}
	if text != "" {
		line(head, "%s", text)
	}
	if others != "" {
		head = ""
		if m.Unseen.Auto {
			head = "Method"
		}
		line(head, "%s", others)
	}
}

// bentScales names the most bent features, in the order of the page; in that of their bend alone if goodness
// is nil.
func (m *model) bentScales(x quantmf.Rows, goodness []quantmf.Goodness) (string, error) {
	bend := m.bend()
	rank := bend
	if goodness != nil {
		var err error
		if rank, err = report.Telling(x, bend, goodness); err != nil {
			return "", err
		}
	}
	var order []int
	for i, b := range bend {
		if b >= noteworthyBend {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
	var names []string
	for _, i := range order[:min(5, len(order))] {
		names = append(names, fmt.Sprintf("%s %.2f", table.Shown(m.Features[i]), bend[i]))
	}
	if len(names) == 0 {
		return "none: every feature kept its scale, nearly", nil
	}
	named := ""
	if goodness != nil {
		named = "; named are those that are also well explained"
	}
	return fmt.Sprintf("%s (0 is a straight line, 1 far from any; %d of %d features have %g or more%s)",
		strings.Join(names, ", "), len(order), len(bend), noteworthyBend, named), nil
}

// warningsInWords writes warnings with the names of features and components in the place of rows and columns.
// All features whose transport did not converge are one warning.
func warningsInWords(warnings []error, features []string) (words []string) {
	var names []string
	seen := map[int]bool{}
	for _, w := range warnings {
		var c *quantmf.ConvergenceError
		var dead *quantmf.DataError
		switch {
		case errors.As(w, &dead) && dead.Row < 0 && dead.Col >= 0:
			words = append(words, fmt.Sprintf("c%d: %s", dead.Col+1, dead.Problem))
		case !errors.As(w, &c) || c.Row < 0:
			words = append(words, inShort(strings.TrimPrefix(w.Error(), "quantmf: ")))
		case !seen[c.Row]: // both maps of a feature of QMFQ may have a warning
			seen[c.Row] = true
			names = append(names, table.Shown(features[c.Row]))
		}
	}
	if len(names) > 0 {
		more := ""
		if n := len(names); n > 3 {
			names, more = names[:3], fmt.Sprintf(" and %d more", n-3)
		}
		words = append(words, fmt.Sprintf("the map of %s%s is less exact than asked for: a larger -eps helps",
			strings.Join(names, ", "), more))
	}
	return words
}

// manyDigits matches a number with more digits than people want.
var manyDigits = regexp.MustCompile(`\d+\.\d{5,}(e[+-]\d+)?`)

// inShort gives the numbers of a text three digits, those of 1000 and more all that stand before the point.
func inShort(text string) string {
	return manyDigits.ReplaceAllStringFunc(text, func(number string) string {
		v, _ := strconv.ParseFloat(number, 64)
		if v >= 999.5 && v < 1e6 {
			return fmt.Sprintf("%.0f", v)
		}
		return fmt.Sprintf("%.3g", v)
	})
}
