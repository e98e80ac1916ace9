package report

// This file holds what is odd in the data, as sentences.

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// farAbove is how many times the mean magnitude of a component a sample must have of it to be far.
const farAbove = 10

// farOut is how many interquartile ranges beyond a quartile a value is far.
const farOut = 10

// missing counts the missing values.
func (f *Fit) missing() int {
	gone := f.X.Rows * f.X.Cols
	for _, seen := range account.Visible(f.X) {
		gone -= int(seen)
	}
	return gone
}

// oddities are names that stand twice, features that do not vary, what is missing or
// negative, copies of features and samples, and values far from all others.
func (f *Fit) oddities() (out []string) {
	t := table.Table{Features: f.Features, Samples: f.Samples, X: f.X, NamedFeatures: true,
		NamedSamples: true}
	out = t.Remarks()
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	x := f.X
	if gone := f.missing(); gone > 0 {
		rows, columns := make([]int, x.Rows), make([]int, x.Cols)
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				if v != v {
					rows[i]++
					columns[j]++
				}
			}
		}
		i, j := slices.Index(rows, slices.Max(rows)), slices.Index(columns, slices.Max(columns))
		say("%s missing, %s %% of the table; most in the feature %q (%d of %d) and in the sample %q "+
			"(%d of %d)", table.Counted(gone, "value is", "values are"),
			short(100*float64(gone)/float64(len(f.Features)*len(f.Samples))),
			clipped(f.Features[i], 40), rows[i], x.Cols, clipped(f.Samples[j], 40), columns[j], x.Rows)
	}
	negative, within := 0, []string(nil)
	far, farIn := 0, []string(nil)
	for i := range x.Rows {
		below, beyond := 0, 0
		low, high := fences(x.Row(i))
		for _, v := range x.Row(i) {
			if v < 0 {
				below++
			}
			if v < low || v > high {
				beyond++
			}
		}
		if negative += below; below > 0 {
			within = append(within, f.Features[i])
		}
		if far += beyond; beyond > 0 {
			farIn = append(farIn, f.Features[i])
		}
	}
	if negative > 0 {
		say("%s negative, in %s: %s", table.Counted(negative, "value is", "values are"),
			table.Counted(len(within), "feature"),
			table.Examples(within))
	}
	if far > 0 {
		say("%s more than %d interquartile ranges beyond the quartiles of the feature, in %s: %s",
			table.Counted(far, "value is", "values are"), farOut, table.Counted(len(farIn), "feature"),
			table.Examples(farIn))
	}
	if far := f.farSamples(); len(far) > 0 {
		say("%s more than %d times the mean of a component, which may stand for little else: %s",
			table.Counted(len(far), "sample has", "samples have"), farAbove,
			strings.Join(far[:min(len(far), 5)], ", "))
	}
	if alone := f.alone(); len(alone) > 0 {
		say("%s half or more of the amount in a single sample, and of little use for the others: %s",
			table.Counted(len(alone), "component has", "components have"),
			strings.Join(alone[:min(len(alone), 5)], ", "))
	}
	if x.Cols > 1 {
		out = append(out, table.Told(alike(x.Rows, x.Row, f.Features), "feature is", "features are",
			"the same in all samples as an earlier one")...)
	}
	if x.Rows > 1 {
		column := make([]float64, x.Rows)
		copies := alike(x.Cols, func(j int) []float64 {
			for i := range column {
				column[i] = x.At(i, j)
			}
			return column
		}, f.Samples)
		out = append(out, table.Told(copies, "sample is", "samples are",
			"the same in all features as an earlier one")...)
	}
	return out
}

// farSamples are those that have far more of a component than others, each with its largest multiple of the
// mean and the component, the farthest first.
func (f *Fit) farSamples() (out []string) {
	most, of := make([]float64, f.V.Cols), make([]int, f.V.Cols)
	for c := range f.V.Rows {
		scale := f.meanMagnitude(c)
		for j, v := range f.V.Row(c) {
			if times := math.Abs(v) / scale; times > most[j] {
				most[j], of[j] = times, c
			}
		}
	}
	for _, j := range account.Largest(most, len(most)) {
		if most[j] > farAbove {
			out = append(out, fmt.Sprintf("%q (%s of %s)", clipped(f.Samples[j], 40),
				short(most[j])+" times that",
				name(of[j])))
		}
	}
	return out
}

// alone are the components of which one of ten samples or more has half or more, each with that sample and
// its share.
func (f *Fit) alone() (out []string) {
	for c := range f.V.Rows {
		all := f.meanMagnitude(c) * float64(f.V.Cols)
		for j, v := range f.V.Row(c) {
			if share := math.Abs(v) / all; share >= 0.5 && f.V.Cols >= 10 {
				out = append(out, fmt.Sprintf("%s (%s in %q)", name(c), percent(share),
					clipped(f.Samples[j], 40)))
				break
			}
		}
	}
	return out
}

// fences are what far values lie beyond: farOut interquartile ranges from the quartiles; no
// value lies beyond where these are equal.
func fences(row []float64) (low, high float64) {
	var v []float64
	for _, x := range row {
		if x == x {
			v = append(v, x)
		}
	}
	slices.Sort(v)
	if len(v) < 4 || v[len(v)/4] == v[(3*len(v)-1)/4] {
		return math.Inf(-1), math.Inf(1)
	}
	q1, q3 := v[len(v)/4], v[(3*len(v)-1)/4]
	return q1 - farOut*(q3-q1), q3 + farOut*(q3-q1)
}

// alike returns the names of lines that are copies of an earlier one. Lines without two
// different values are no copies of one another: they are told of as constant.
func alike(count int, line func(int) []float64, names []string) (copies []string) {
	seen := map[uint64][]int{}
	same := func(a, b []float64) bool {
		return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
	}
	for i := range count {
		mine := slices.Clone(line(i))
		sum, varies := account.Fingerprint(mine)
		if !varies {
			continue
		}
		if slices.ContainsFunc(seen[sum], func(j int) bool { return same(mine, line(j)) }) {
			copies = append(copies, names[i])
			continue
		}
		seen[sum] = append(seen[sum], i)
	}
	return copies
}
