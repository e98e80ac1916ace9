package main

// This file holds "quantmf impute -categories": features whose values are words. Of each a fit has rows of 0
// and 1, one a word (table.Indicators), whose predictions are probabilities. What is filled in is the most
// probable word; a draw is one word by their probabilities. A cell that is hidden for a check is hidden in
// all rows of its feature.

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/table"
)

// categories are the words of a matrix.
type categories struct {
	whole *table.Table // the matrix as it was read
	first []int        // of each of its features its first row in the matrix of numbers, and the rows of that
}

// categoryFlags are those of features whose values are words.
func (f *imputeFlags) categoryFlags() []*cli.Flag {
	return []*cli.Flag{
		cli.List(&f.in.Categories, "categories", "auto|FEATURE,...", `features whose values are words, such as
			sex and stage: auto for those of more words than numbers, or by name, also where the words are
			numbers. The most probable word is filled in; intervals are of numbers alone. Not with -model: its
			rows are numbers, and it does not have the words that they stood for; add new samples to the
			matrix of a fit (default: words are refused)`),
		cli.File(&f.probabilities, "probabilities", `the probability of each word of -categories, a line for
			each feature and word`),
	}
}

// checkCategories reports flags that exclude each other.
func (f *imputeFlags) checkCategories() error {
	if len(f.in.Categories) == 0 {
		if f.probabilities != "" {
			return cli.UsageError("-probabilities: they are of the words of -categories")
		}
		return nil
	}
	if f.kept != "" {
		return cli.UsageError("-categories: a -model does not have the words that its rows stood for: " +
			"add the samples to the matrix of a fit")
	}
	format, _, err := table.FormatOf(f.in.Place(f.out))
	if err == nil && format != "tsv" && format != "csv" {
		return cli.Usagef("-categories: %s holds no words: write .tsv or .csv", format)
	}
	return f.in.Writable(f.probabilities)
}

// numbered makes rows of numbers of the words of a matrix.
func (r *imputation) numbered() error {
	t := r.table
	if len(r.in.Categories) == 0 {
		return nil
	}
	rows := 0
	for _, words := range t.Words {
		rows += max(1, len(words))
	}
	if err := r.in.Allows(8*float64(rows)*float64(t.X.Cols), "the rows of 0 and 1 of -categories",
		"leave features out, or allow more"); err != nil {
		return err
	}
	c := &categories{whole: t}
	r.table, c.first = t.Indicators()
	c.first = append(c.first, r.table.X.Rows)
	r.categories = c
	return nil
}

// each calls do for every category: its feature, and its rows.
func (c *categories) each(do func(i, from, to int)) {
	for i, words := range c.whole.Words {
		if words != nil {
			do(i, c.first[i], c.first[i+1])
		}
	}
}

// has tells whether a row of numbers is of a word.
func (c *categories) has(row int) (is bool) {
	if c != nil {
		c.each(func(_, from, to int) { is = is || from <= row && row < to })
	}
	return is
}

// String says how many there are.
func (c *categories) String() string {
	features, rows := 0, 0
	c.each(func(_, from, to int) { features, rows = features+1, rows+to-from })
	return fmt.Sprintf("%s of words, as %s of 0 and 1", table.Counted(features, "feature"),
		table.Counted(rows, "row"))
}

// groups are the rows of each category, of which a draw takes one together.
func (c *categories) groups() (groups [][]int) {
	if c == nil {
		return nil
	}
	c.each(func(_, from, to int) {
		var rows []int
		for r := from; r < to; r++ {
			rows = append(rows, r)
		}
		groups = append(groups, rows)
	})
	return groups
}

// likeliest is the index of the word of feature i that is the most probable in sample j.
func (c *categories) likeliest(m quantmf.Mat, i, j int) int {
	from, to := c.first[i], c.first[i+1]
	if len(c.whole.Words[i]) == 2 {
		if m.At(from, j) > 0.5 {
			return 1
		}
		return 0
	}
	best := from
	for r := from + 1; r < to; r++ {
		if m.At(r, j) > m.At(best, j) {
			best = r
		}
	}
	return best - from
}

// worded is a matrix of predictions with words where it has categories; NaN, which is an empty cell, for
// words that are missing in the ends of intervals.
func (c *categories) worded(m quantmf.Mat, ends bool) quantmf.Mat {
	x := c.whole.X
	out := quantmf.NewMat(x.Rows, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			switch {
			case c.whole.Words[i] == nil:
				v = m.At(c.first[i], j)
			case v == v, ends:
			default:
				v = float64(c.likeliest(m, i, j))
			}
			out.Set(i, j, v)
		}
	}
	return out
}

// sumToOne makes probabilities of the predictions of words, in place.
func (c *categories) sumToOne(m quantmf.Mat) {
	c.each(func(_, from, to int) {
		for j := range m.Cols {
			sum := 0.0
			for r := from; r < to; r++ {
				m.Set(r, j, min(max(m.At(r, j), 0), 1))
				sum += m.At(r, j)
			}
			for r := from; r < to && to-from > 1; r++ {
				if sum > 0 {
					m.Set(r, j, m.At(r, j)/sum)
				} else {
					m.Set(r, j, 1/float64(to-from))
				}
			}
		}
	})
}

// probable are the rows of all words, and their probabilities. Of two words the matrix of numbers has one.
func (c *categories) probable(m quantmf.Mat) (names []string, p quantmf.Mat) {
	var rows [][]float64
	c.each(func(i, from, to int) {
		words := c.whole.Words[i]
		for k, word := range words {
			row := m.Row(from + min(k, to-from-1))
			if len(words) == 2 && k == 0 {
				other := make([]float64, len(row))
				for j, v := range row {
					other[j] = 1 - v
				}
				row = other
			}
			names, rows = append(names, c.whole.Features[i]+"="+word), append(rows, row)
		}
	})
	p = quantmf.NewMat(len(rows), c.whole.X.Cols)
	for r, row := range rows {
		copy(p.Row(r), row)
	}
	return names, p
}

// right counts the hidden words that are predicted, and those that the most frequent word of what is visible
// is. given has the hidden ones missing.
func (c *categories) right(mean quantmf.Mat, given quantmf.Rows, of []feature) error {
	row := make([]float64, mean.Cols)
	var err error
	c.each(func(i, from, to int) {
		err = cmp.Or(err, given.ReadRow(row, from))
		x, words := c.whole.X.Row(i), c.whole.Words[i]
		seen := make([]int, len(words))
		for j, v := range x {
			if row[j] == row[j] {
				seen[int(v)]++
			}
		}
		frequent := 0
		for k, n := range seen {
			if n > seen[frequent] {
				frequent = k
			}
		}
		for j, v := range x {
			if v != v || row[j] == row[j] {
				continue
			}
			of[from].words++
			if c.likeliest(mean, i, j) == int(v) {
				of[from].right++
			}
			if frequent == int(v) {
				of[from].frequent++
			}
		}
	})
	return err
}

// hide is the hiding of a check: of cells of the matrix as it was read.
func (c *categories) hide(m manner, src *rand.Rand, share float64) (given quantmf.Mat, count int) {
	given, count = m.hide(c.whole.X, src, share)
	return c.whole.IndicatorsOf(given, c.first, c.first[len(c.first)-1]), count
}

// words are the lines of the summary.
func (r *imputation) wordsRight(line lineFunc) {
	if r.categories == nil || r.all.words == 0 {
		return
	}
	n := float64(r.all.words)
	line("Words", "%.1f %% of %s are predicted; the most frequent word of their feature is right in %.1f %%",
		100*float64(r.all.right)/n, table.Counted(r.all.words, "hidden word"), 100*float64(r.all.frequent)/n)
	var parts []string
	r.categories.each(func(i, from, _ int) {
		if c := r.of[from]; c.words > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f (%.0f)", table.Shown(r.categories.whole.Features[i]),
				100*float64(c.right)/float64(c.words), 100*float64(c.frequent)/float64(c.words)))
		}
	})
	if more := len(parts) - 12; more > 0 {
		parts = append(parts[:12], fmt.Sprintf("and %d more", more))
	}
	line("", "%% right (most frequent word): %s", strings.Join(parts, ", "))
}

// categoryErrors is a category in the object of -json: how many hidden words were predicted, and how many are
// the most frequent one of those that were visible.
type categoryErrors struct {
	Name     string   `json:"name"`
	Words    []string `json:"words"`
	Missing  int      `json:"missing"`
	Checked  int      `json:"checked"`
	Right    int      `json:"right"`
	Frequent int      `json:"most_frequent"`
}

// object are the categories of the object of -json, given how well each row is predicted, nil without checks.
func (c *categories) object(of []feature) (all []categoryErrors) {
	if c == nil {
		return nil
	}
	c.each(func(i, from, _ int) {
		e := categoryErrors{Name: c.whole.Features[i], Words: c.whole.Words[i],
			Missing: missingIn(c.whole.X.Row(i))}
		if of != nil {
			e.Checked, e.Right, e.Frequent = of[from].words, of[from].right, of[from].frequent
		}
		all = append(all, e)
	})
	return all
}

// asRead is the matrix as it was read.
func (r *imputation) asRead() *table.Table {
	if r.categories == nil {
		return r.table
	}
	return r.categories.whole
}
