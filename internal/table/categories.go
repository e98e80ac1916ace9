package table

// This file holds features whose values are words: sex, stage, treatment (Options.Categories). A cell of such
// a feature is the index of its word among Table.Words, and Indicators makes rows of numbers of it, which a
// fit can take: 1 where the cell has the word, else 0. A feature of two words has one such row, of the
// second.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// AutoCategories stands in Options.Categories for features of which more values are words than numbers.
const AutoCategories = "auto"

// mostCategories is the largest number of words of a feature.
const mostCategories = 64

// mark is a cell that holds a word.
type mark struct {
	line, value uint32 // the row and the column among those of numbers
	word        string
}

// marks are those of a text.
type marks struct {
	list  list[mark]
	known map[string]string
}

// mark takes a cell down that holds a word.
func (r *textReader) mark(value int, text string) error {
	m := &r.marks
	if m.known == nil {
		m.known = map[string]string{}
		m.list = list[mark]{s: r.source, bytes: 24, what: "words"}
	}
	word, is := m.known[text]
	if !is {
		if err := r.take(int64(len(text))+96, "so many words"); err != nil {
			return err
		}
		word = text
		m.known[text] = text
	}
	to, err := m.list.next(1)
	if err == nil {
		to[0] = mark{uint32(len(r.lines)), uint32(value), word}
	}
	return err
}

// isCategory tells whether a word makes a category and not a fault.
func (r *textReader) isCategory(text string) bool {
	_, beside := r.stripped(text)
	return len(r.Categories) > 0 && beside < below && r.long == nil && !strings.ContainsAny(text, "\r")
}

// categories puts the indices of words into the matrix, of which features are in rows, or in columns where
// they will be transposed.
func (r *textReader) categories(t *Table) error {
	if len(r.Categories) == 0 {
		return nil
	}
	features := t.Features
	at := func(i, j int) *float64 { return &t.X.Data[i*t.X.Stride+j] }
	samples := t.X.Cols
	if r.Transpose {
		features, samples = t.Samples, t.X.Rows
		at = func(i, j int) *float64 { return &t.X.Data[j*t.X.Stride+i] }
	}
	var all []mark
	if r.marks.known != nil {
		var err error
		if all, err = r.marks.list.all(); err != nil {
			return err
		}
	}
	of := make([][]mark, len(features))
	for _, m := range all {
		if r.Transpose {
			m.line, m.value = m.value, m.line
		}
		of[m.line] = append(of[m.line], m)
	}
	t.Words = make([][]string, len(features))
	for _, name := range r.Categories {
		if name != AutoCategories && !slices.Contains(features, name) {
			return r.wrong("-categories %s: there is no such feature", quote(name))
		}
	}
	for i, name := range features {
		named := slices.Contains(r.Categories, name)
		if !named && len(of[i]) == 0 {
			continue
		}
		numbers := 0
		for j := range samples {
			if v := *at(i, j); v == v {
				numbers++
			}
		}
		if !named && (numbers >= len(of[i]) || !slices.Contains(r.Categories, AutoCategories)) {
			return &Error{File: r.file, Feature: name,
				Problem: fmt.Sprintf("%s beside %s, such as %s: give -na for "+
					"words that mean a missing value, or name the feature in -categories",
					Counted(len(of[i]), "word"),
					Counted(numbers, "number"), quote(of[i][0].word))}
		}
		if err := r.coded(t, i, samples, at, of[i]); err != nil {
			err.Feature = name
			return err
		}
	}
	return nil
}

// coded makes a category of feature i.
func (r *textReader) coded(t *Table, i, samples int, at func(i, j int) *float64, of []mark) *Error {
	text := make([]string, samples)
	for j := range samples {
		if v := *at(i, j); v == v { // also a number that stands for a category
			text[j] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	for _, m := range of {
		text[m.value] = m.word
	}
	words := slices.Clone(text)
	slices.Sort(words)
	if words = slices.Compact(words); words[0] == "" {
		words = words[1:]
	}
	if len(words) > mostCategories {
		return r.wrong("%d different words, such as %s, where a category has at most %d: leave the "+
			"feature out",
			len(words), Examples(words), mostCategories)
	}
	for j, word := range text {
		if code, is := slices.BinarySearch(words, word); is {
			*at(i, j) = float64(code)
		}
	}
	t.Words[i] = words
	return nil
}

// Indicators returns the table whose rows are numbers, and of each feature of t its first row there.
func (t *Table) Indicators() (rows *Table, first []int) {
	rows = &Table{File: t.File, Samples: t.Samples, NamedFeatures: t.NamedFeatures,
		NamedSamples: t.NamedSamples,
		Taken:        t.Taken}
	for i, name := range t.Features {
		first = append(first, len(rows.Features))
		switch words := t.Words[i]; {
		case words == nil:
			rows.Features = append(rows.Features, name)
		default:
			if len(words) == 2 {
				words = words[1:]
			}
			for _, word := range words {
				rows.Features = append(rows.Features, name+"="+word)
			}
		}
	}
	rows.X = t.IndicatorsOf(t.X, first, len(rows.Features))
	return rows, first
}

// IndicatorsOf makes the rows of a matrix that has the features and the words of t.
func (t *Table) IndicatorsOf(x quantmf.Mat, first []int, rows int) quantmf.Mat {
	out := quantmf.NewMat(rows, x.Cols)
	for i := range x.Rows {
		end := rows
		if i+1 < x.Rows {
			end = first[i+1]
		}
		for j, v := range x.Row(i) {
			for r := first[i]; r < end; r++ {
				switch word := r - first[i]; {
				case len(t.Words[i]) == 1 && v == v:
					out.Set(r, j, 1)
				case end-first[i] == 1, v != v: // of two words, the second is 1
					out.Set(r, j, v)
				case v == float64(word):
					out.Set(r, j, 1)
				}
			}
		}
	}
	return out
}
