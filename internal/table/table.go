// Package table reads and writes matrices of numbers with names, features in
// rows and samples in columns: text, workbooks of Excel, GCT, Matrix Market, npy and npz. It also reads
// the series matrices of GEO.
package table

// This file holds the table, which way it lies, and the error that tells a place in a file.

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
)

// Table is a matrix with the names of its rows and columns. It remembers the place of every number in its
// file, so that a later error (Table.Error) can name this place.
type Table struct {
	File     string // as given by the user
	Features []string
	Samples  []string
	X        quantmf.Mat

	// Held is the matrix if it is not in X (Options.Rows), else nil.
	Held quantmf.Rows

	// NamedFeatures and NamedSamples are false if the file had no names: then Features are f1, f2, ...,
	// Samples s1, s2, ...
	NamedFeatures, NamedSamples bool

	// Words are those of each feature that is a category (Options.Categories), in their order; nil for
	// numbers.
	Words [][]string

	Taken    string   // in words, what was taken for names
	Warnings []string // what may have been read wrongly

	close      func() error
	lines      []int  // the line of each row, nil where rows are no lines
	fields     []int  // the number, from 1, of each column's cell in a line
	transposed bool   // lines are those of columns, fields those of rows
	absent     []bool // the rows that SelectOr added; nil: none
}

// Rows returns the matrix: Held, or X.
func (t *Table) Rows() quantmf.Rows {
	if t.Held != nil {
		return t.Held
	}
	return t.X
}

// InFile tells whether the matrix is read from its file. The file must stay open until Close.
func (t *Table) InFile() bool { return t.close != nil }

// Close closes the file that the matrix is in, if any. The matrix cannot be read afterwards.
func (t *Table) Close() error {
	if t.close == nil {
		return nil
	}
	return t.close()
}

// HeldBytes is about the number of bytes of memory that Held takes; 0 if the matrix is in X.
func (t *Table) HeldBytes() float64 {
	switch held := t.Held.(type) {
	case nil:
		return 0
	case *quantmf.Sparse:
		return float64(12*held.Listed()) + float64(8*len(t.Features))
	}
	_, n := t.Dims()
	return float64(8 * n) // what is read at once
}

// Dims returns the sizes of the matrix.
func (t *Table) Dims() (features, samples int) { return t.Rows().Dims() }

// EachRow calls do for every row; do must not write to the row. An error comes from reading the file.
func (t *Table) EachRow(do func(i int, row []float64)) error {
	d, n := t.Dims()
	room := make([]float64, n)
	for i := range d {
		row := room
		if t.Held == nil {
			row = t.X.Row(i)
		} else if err := t.Held.ReadRow(room, i); err != nil {
			return &Error{File: t.File, Feature: t.Features[i], Problem: err.Error()}
		}
		do(i, row)
	}
	return nil
}

// SelectOr returns the table of the given rows, in that order; -1 stands for a row of missing values, whose
// name is in names. It shares no numbers with t, but where a file holds them.
func (t *Table) SelectOr(rows []int, names []string) *Table { return t.part(rows, nil, names) }

// part is SelectOr of some columns, nil for all.
func (t *Table) part(rows, columns []int, names []string) *Table {
	s := *t
	s.Features = make([]string, len(rows))
	s.absent = make([]bool, len(rows))
	places, across := &s.lines, &s.fields
	if t.transposed {
		places, across = across, places
	}
	old := *places
	*places = nil
	for to, from := range rows {
		if s.absent[to] = from < 0; s.absent[to] {
			s.Features[to] = names[to]
		} else {
			s.Features[to] = t.Features[from]
		}
		if old != nil {
			*places = append(*places, old[max(from, 0)])
		}
	}
	if columns != nil {
		s.Samples, *across = picked(t.Samples, columns), picked(*across, columns)
	}
	if !slices.Contains(rows, -1) {
		s.Words = picked(t.Words, rows)
	}
	chosen := selected{t.Rows(), slices.Clone(rows), columns}
	if held, is := t.Held.(*quantmf.Sparse); is && !slices.Contains(rows, -1) {
		s.Held = rebuilt(held, rows, columns, func(v float64) float64 { return v })
	} else if t.Held != nil {
		s.Held = chosen
	} else {
		s.X = quantmf.NewMat(chosen.Dims())
		for i := range rows {
			chosen.ReadRow(s.X.Row(i), i) // of a Mat: there is no error
		}
	}
	return &s
}

// withoutEmpty leaves out the features and the samples that have no value, and warns of them.
func (s *source) withoutEmpty(t *Table) error {
	d, n := t.Dims()
	inRow, inColumn := make([]bool, d), make([]bool, n)
	if err := t.EachRow(func(i int, row []float64) {
		for j, v := range row {
			inRow[i], inColumn[j] = inRow[i] || v == v, inColumn[j] || v == v
		}
	}); err != nil {
		return err
	}
	kept := func(has []bool, names []string, what string) (which []int) {
		var empty []string
		for k, is := range has {
			if is {
				which = append(which, k)
			} else {
				empty = append(empty, names[k])
			}
		}
		t.Warnings = append(t.Warnings, Told(empty, what, what+"s", "without any value left out")...)
		return which
	}
	rows, columns := kept(inRow, t.Features, "feature"), kept(inColumn, t.Samples, "sample")
	if len(rows) == 0 {
		return &Error{File: t.File, Problem: "all values are missing"}
	}
	if len(rows) == d && len(columns) == n {
		return nil
	}
	err := s.take(int64(t.HeldBytes()), "the matrix")
	if t.Held == nil {
		err = s.takeMatrix(uint64(len(rows)), uint64(len(columns)))
	}
	if len(columns) == n {
		columns = nil // which costs no copy of a row
	}
	if err == nil {
		*t = *t.part(rows, columns, nil)
	}
	return err
}

// picked are some elements of a list; none of nil.
func picked[T any](all []T, which []int) (some []T) {
	if all == nil {
		return nil
	}
	for _, k := range which {
		some = append(some, all[k])
	}
	return some
}

// Matched returns the rows in which the model's features stand in a matrix, -1 for those that it lacks; their
// names; and those of the features that the model lacks.
func Matched(model, matrix []string) (rows []int, absent, extra []string) {
	places := make(map[string][]int, len(matrix))
	for i, name := range matrix {
		places[name] = append(places[name], i)
	}
	rows = make([]int, len(model))
	used := make([]bool, len(matrix))
	for i, name := range model {
		at := places[name]
		if len(at) == 0 {
			rows[i] = -1
			absent = append(absent, name)
			continue
		}
		rows[i], places[name] = at[0], at[1:]
		used[at[0]] = true
	}
	for i, name := range matrix {
		if !used[i] {
			extra = append(extra, name)
		}
	}
	return rows, absent, extra
}

// selected is some rows of a matrix, -1 for one of missing values, and some columns, nil for all.
type selected struct {
	quantmf.Rows
	rows, columns []int
}

func (s selected) Dims() (rows, cols int) {
	if _, cols = s.Rows.Dims(); s.columns != nil {
		cols = len(s.columns)
	}
	return len(s.rows), cols
}

func (s selected) ReadRow(x []float64, i int) error {
	if s.rows[i] < 0 {
		for j := range x {
			x[j] = math.NaN()
		}
		return nil
	}
	if s.columns == nil {
		return s.Rows.ReadRow(x, s.rows[i])
	}
	_, n := s.Rows.Dims()
	row := make([]float64, n)
	err := s.Rows.ReadRow(row, s.rows[i])
	for to, j := range s.columns {
		x[to] = row[j]
	}
	return err
}

// logged is log(1+x) of a matrix.
type logged struct{ quantmf.Rows }

func (l logged) ReadRow(x []float64, i int) error {
	err := l.Rows.ReadRow(x, i)
	for j, v := range x {
		x[j] = math.Log1p(v)
	}
	return err
}

// Absent tells whether the file lacks the feature of row i, which SelectOr added.
func (t *Table) Absent(i int) bool { return t.absent != nil && t.absent[i] }

// Log1p takes log(1+x) of every number.
func (t *Table) Log1p() {
	switch held := t.Held.(type) {
	case nil:
	case *quantmf.Sparse:
		t.Held = rebuilt(held, nil, nil, math.Log1p)
	default:
		t.Held = logged{held}
	}
	for i := range t.X.Rows {
		row := t.X.Row(i)
		for j, v := range row {
			row[j] = math.Log1p(v)
		}
	}
}

// MostVariable returns the table of the count features of largest standard deviation over the values that are
// not missing, in the order of t; t itself if it has no more features. An error comes from reading the file.
func (t *Table) MostVariable(count int) (*Table, error) {
	d, _ := t.Dims()
	if count >= d {
		return t, nil
	}
	spread := make([]float64, d) // the variance
	rows := make([]int, d)
	err := t.EachRow(func(i int, row []float64) {
		rows[i] = i
		mean, seen := 0.0, 0.0
		for _, v := range row {
			if v == v {
				seen++
				mean += (v - mean) / seen
			}
		}
		for _, v := range row {
			if v == v {
				spread[i] += (v - mean) * (v - mean) / seen
			}
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(spread[b], spread[a]) })
	rows = rows[:count]
	slices.Sort(rows)
	return t.SelectOr(rows, nil), nil
}

// Error returns an error at entry (i, j). i is -1 if the error is not of one feature, j if it is not of one
// sample.
func (t *Table) Error(i, j int, problem string) *Error {
	e := &Error{File: t.File, Problem: problem}
	if i >= 0 {
		e.Feature = t.Features[i]
	}
	if j >= 0 {
		e.Sample = t.Samples[j]
	}
	if i >= 0 && t.Absent(i) { // nowhere
		return e
	}
	if t.transposed {
		i, j = j, i
	}
	if i >= 0 && t.lines != nil {
		e.Line = t.lines[i]
		if j >= 0 {
			e.Column = t.fields[j]
		}
	}
	return e
}

// tableOf returns the table of a matrix without names, whose numbers it checks.
func (s *source) tableOf(x quantmf.Rows) (*Table, error) {
	d, n := x.Dims()
	if err := s.take(48*int64(d+n), "names and a row"); err != nil {
		return nil, err
	}
	t := &Table{File: s.file, Features: Numbered("f", d), Samples: Numbered("s", n), Held: x,
		Taken: "no names in the file"}
	if full, is := x.(quantmf.Mat); is {
		t.X, t.Held = full, nil
	}
	var fault *Error
	check := func(i, j int, v float64) {
		if fault == nil && !s.fine(v) {
			if problem := s.check(v); problem != "" {
				fault = t.Error(i, j, problem)
			}
		}
	}
	var err error
	if sparse, is := x.(*quantmf.Sparse); is {
		var cols []uint32
		var values []float64
		for i := range d {
			cols, values = sparse.NonZeros(i, cols, values)
			for k, v := range values {
				check(i, int(cols[k]), v)
			}
		}
	} else {
		err = t.EachRow(func(i int, row []float64) {
			for j, v := range row {
				check(i, j, v)
			}
		})
	}
	if fault != nil {
		return nil, fault
	}
	return t, err
}

// transpose makes the samples of a file the features. Where its reader has read it so, this is a matter of
// names; otherwise it makes a copy of the numbers.
func (s *source) transpose(t *Table) error {
	if !s.turned {
		if err := s.takeMatrix(uint64(t.X.Cols), uint64(t.X.Rows)); err != nil {
			return err
		}
		t.X = t.X.T()
		s.give(8 * int64(len(t.X.Data)))
	}
	t.Features, t.Samples = t.Samples, t.Features
	t.NamedFeatures, t.NamedSamples = t.NamedSamples, t.NamedFeatures
	t.transposed = true
	d, n := t.Dims()
	if !t.NamedFeatures {
		t.Features = Numbered("f", d)
	}
	if !t.NamedSamples {
		t.Samples = Numbered("s", n)
	}
	t.Taken += "; then transposed"
	return nil
}

// doubtTurned warns where columns rather than rows seem to be features: where at least half of the variance
// of all values lies between samples, as it does if each has a scale of its own. By chance it is one part in
// d, so tables of fewer than ten features say nothing. What is not in memory is not read again for it.
func (s *source) doubtTurned(t *Table) {
	if t.Held != nil || t.X.Rows < 10 {
		return
	}
	share := betweenSamples(t.X)
	if !(share >= 0.5) { // NaN where values do not differ, or overflow
		return
	}
	turn := "are in rows, give"
	if s.Transpose {
		turn = "are in columns, leave out"
	}
	t.Warnings = append(t.Warnings, fmt.Sprintf("%.0f %% of the variance of all values is between samples, "+
		"as if each had its own scale: if samples %s -transpose", 100*share, turn))
}

// betweenSamples is the share of the variance of the values that lies between the means of columns.
func betweenSamples(x quantmf.Mat) float64 {
	means, counts := make([]float64, x.Cols), make([]float64, x.Cols)
	mean, all, total, between := 0.0, 0.0, 0.0, 0.0
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v {
				means[j] += v
				counts[j]++
			}
		}
	}
	for j, c := range counts {
		mean += means[j]
		all += c
		means[j] /= max(c, 1)
	}
	mean /= all
	for i := range x.Rows {
		for _, v := range x.Row(i) {
			if v == v {
				total += (v - mean) * (v - mean)
			}
		}
	}
	for j, c := range counts {
		between += c * (means[j] - mean) * (means[j] - mean)
	}
	return between / total
}

// Remarks says what is odd about names and rows: names that stand twice, and, if there are two samples or
// more, features that are 0 everywhere or do not vary.
func (t *Table) Remarks() []string {
	var remarks []string
	for _, n := range []struct {
		what  string
		names []string
		given bool
	}{{"features", t.Features, t.NamedFeatures}, {"samples", t.Samples, t.NamedSamples}} {
		if !n.given {
			continue
		}
		twice := make(map[string]int, len(n.names))
		for _, name := range n.names {
			twice[name]++
		}
		maps.DeleteFunc(twice, func(_ string, times int) bool { return times == 1 })
		remarks = append(remarks, Told(slices.Sorted(maps.Keys(twice)), "name stands", "names stand",
			"more than once among those of "+n.what)...)
	}
	if dates := asDates(t.Features); t.NamedFeatures && 2*len(dates) < len(t.Features) {
		remarks = append(remarks, Told(dates, "feature is called like", "features are called like",
			"dates, which spreadsheets make of names such as MARCH1 and SEPT2")...)
	}
	if len(t.Samples) < 2 {
		return remarks
	}
	var zero, constant []string
	err := t.EachRow(func(i int, row []float64) {
		first, varies := math.NaN(), false
		for _, v := range row {
			if first != first {
				first = v
			} else if v != first && v == v {
				varies = true
				break
			}
		}
		switch {
		case varies || first != first:
		case first == 0:
			zero = append(zero, t.Features[i])
		default:
			constant = append(constant, t.Features[i])
		}
	})
	if err != nil { // whoever fits the matrix will say so
		return remarks
	}
	remarks = append(remarks, Told(zero, "feature is", "features are", "0 in all samples")...)
	return append(remarks, Told(constant, "feature is", "features are", "the same in all samples")...)
}

// asDates matches the dates that a spreadsheet makes of names such as MARCH1, SEPT2 and DEC1: 1-Mar, and
// 2024-03-01 of a workbook.
func asDates(names []string) (dates []string) {
	for _, name := range names {
		a, b, cut := strings.Cut(name, "-")
		if isDate(name) || cut && (isDay(a) && isMonth(b) || isMonth(a) && isDay(b)) {
			dates = append(dates, name)
		}
	}
	return dates
}

// isDate tells whether a name is a date such as 2024-03-01.
func isDate(s string) bool {
	parts := strings.Split(s, "-")
	return len(parts) == 3 && len(parts[0]) == 4 && len(parts[1]) == 2 && parts[1] <= "12" && isDay(parts[2])
}

func isDay(s string) bool { v, ok := count(s); return ok && v >= 1 && v <= 31 && len(s) <= 2 }

func isMonth(s string) bool {
	return slices.Contains([]string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct",
		"nov", "dec"}, strings.ToLower(s))
}

// Counted is "1 name", "2 names"; the plural is given where it does not end in s.
func Counted(n int, one string, many ...string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, append(many, one+"s")[0])
}

// Told says what holds of names, of how many and of which: "2 features are constant: a, b"; nothing of none.
func Told(names []string, one, many, what string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{Counted(len(names), one, many) + " " + what + ": " + Examples(names)}
}

// Examples quotes the first names of a list.
func Examples(names []string) string {
	var s []string
	for _, n := range names[:min(len(names), 3)] {
		s = append(s, quote(n))
	}
	if len(names) > 3 {
		return strings.Join(s, ", ") + ", ..."
	}
	return strings.Join(s, ", ")
}

// Error is an error in a file of numbers: where it is, what it is, and what to do about it.
type Error struct {
	File            string
	Line, Column    int   // from 1; 0 where there is none. Column is the number of the cell in its line.
	Byte            int64 // from the start of a file that has no lines; 0 where there is none
	Feature, Sample string
	Problem         string
	Err             error // what it wraps: ErrMemory, or nil
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Error() string {
	place := e.File
	if e.Line > 0 {
		place += fmt.Sprintf(":%d", e.Line)
	}
	if e.Column > 0 {
		place += fmt.Sprintf(":%d", e.Column)
	}
	if e.Byte > 0 {
		place += fmt.Sprintf(": byte %d", e.Byte)
	}
	var names []string
	if e.Feature != "" {
		names = append(names, "feature "+quote(e.Feature))
	}
	if e.Sample != "" {
		names = append(names, "sample "+quote(e.Sample))
	}
	if names != nil {
		place += ": " + strings.Join(names, ", ")
	}
	return place + ": " + e.Problem
}
