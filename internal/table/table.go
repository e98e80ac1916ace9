// Package table reads and writes matrices of numbers with names, features in
// rows and samples in columns: text, GCT, Matrix Market, npy and npz.
package table

// This file holds the table itself and the error that points into a file.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
)

// Table is a matrix with the names of its rows and columns. It remembers where
// in its file every number stood, so that whoever finds fault with one later can
// say so in the words of the file.
type Table struct {
	File     string // as given by the user
	Features []string
	Samples  []string
	X        quantmf.Mat

	// NamedFeatures and NamedSamples are false where the file had no names and
	// f1, f2, ... or s1, s2, ... stand instead.
	NamedFeatures, NamedSamples bool

	lines []int // the line of each row, nil where rows are no lines
	field int   // the field number, from 1, of the first sample
}

// Select returns the table of the given rows, in that order. It shares no
// numbers with t.
func (t *Table) Select(rows []int) *Table {
	s := *t
	s.Features = make([]string, len(rows))
	s.lines = nil
	s.X = quantmf.NewMat(len(rows), t.X.Cols)
	for to, from := range rows {
		s.Features[to] = t.Features[from]
		if t.lines != nil {
			s.lines = append(s.lines, t.lines[from])
		}
		copy(s.X.Row(to), t.X.Row(from))
	}
	return &s
}

// Log1p takes log(1+x) of every number.
func (t *Table) Log1p() {
	for i := range t.X.Rows {
		row := t.X.Row(i)
		for j, v := range row {
			row[j] = math.Log1p(v)
		}
	}
}

// MostVariable returns the table of the count features of largest standard
// deviation over the values that are there, in the order of t, or t where it has
// no more.
func (t *Table) MostVariable(count int) *Table {
	if count >= t.X.Rows {
		return t
	}
	spread := make([]float64, t.X.Rows) // the variance
	rows := make([]int, t.X.Rows)
	for i := range rows {
		rows[i] = i
		mean, seen := 0.0, 0.0
		for _, v := range t.X.Row(i) {
			if v == v {
				seen++
				mean += (v - mean) / seen
			}
		}
		for _, v := range t.X.Row(i) {
			if v == v {
				spread[i] += (v - mean) * (v - mean) / seen
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(spread[b], spread[a]) })
	rows = rows[:count]
	slices.Sort(rows)
	return t.Select(rows)
}

// Error returns an error at entry (i, j), either of which is -1 where the fault
// lies not with one feature or one sample.
func (t *Table) Error(i, j int, problem string) *Error {
	e := &Error{File: t.File, Problem: problem}
	if i >= 0 {
		e.Feature = t.Features[i]
	}
	if j >= 0 {
		e.Sample = t.Samples[j]
	}
	if i >= 0 && t.lines != nil {
		e.Line = t.lines[i]
		if j >= 0 {
			e.Column = t.field + j
		}
	}
	return e
}

// Error is a fault in a file of numbers: where it is, what it is and what to do
// about it.
type Error struct {
	File            string
	Line, Column    int   // from 1; 0 where there is none. Column is the number of the cell in its line.
	Byte            int64 // from the start of a file that has no lines; 0 where there is none
	Feature, Sample string
	Problem         string
}

func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&s, ":%d", e.Line)
	}
	if e.Column > 0 {
		fmt.Fprintf(&s, ":%d", e.Column)
	}
	if e.Byte > 0 {
		fmt.Fprintf(&s, ": byte %d", e.Byte)
	}
	s.WriteString(": ")
	if e.Feature != "" {
		fmt.Fprintf(&s, "feature %q", e.Feature)
	}
	if e.Sample != "" {
		if e.Feature != "" {
			s.WriteString(", ")
		}
		fmt.Fprintf(&s, "sample %q", e.Sample)
	}
	if e.Feature != "" || e.Sample != "" {
		s.WriteString(": ")
	}
	s.WriteString(e.Problem)
	return s.String()
}
