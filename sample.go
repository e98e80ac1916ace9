package quantmf

// This file holds draws from a BQMF for multiple imputation. internal/bqmf/draw.go has how cells are drawn
// together.

import (
	"slices"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/pool"
)

// Sample returns a draw of the whole matrix, d × n, noise included, from what the model knows: of every cell
// what could have been observed there. Each cell is drawn from the distribution of which Interval and
// Probability have the quantiles and probabilities. Cells of a feature, and of a sample, are drawn together:
// they share what is not known of its row of U and of its column of V, so a mean over several draws varies as
// much as it is uncertain. Observed cells are drawn like any other. For multiple imputation put the values of
// x back in their places; analyse each of some twenty matrices of different seeds, and combine the results by
// Rubin's rules. Draws of one seed have the same bits everywhere, those of different seeds are independent.
// The zero value, and a model whose fields have been changed, have none. Cost: that of Reconstruct, and k³/3
// flops for each row and sample.
func (m *BQMF) Sample(seed uint64) Mat { return m.SampleCategories(seed) }

// SampleCategories is [BQMF.Sample] of a table of which some rows stand for the words of categories: each
// category is a list of rows that hold 0 and 1, of which one is 1 for each sample, or a single row, which is
// 1 for one of two words; no row is in two lists. Of such rows one is drawn, with the probabilities that
// Reconstruct says, over their sum, and together with what is drawn of other features. Rows that the model
// has not are left out. Cost: twice that of Reconstruct.
func (m *BQMF) SampleCategories(seed uint64, categories ...[]int) Mat {
	categories = slices.Clone(categories)
	if usable(m) != nil {
		return Mat{}
	}
	p := pool.New(m.workers, len(m.model.Curves))
	defer p.Close()
	d, n := m.Dims()
	out, words := NewMat(d, n), make([]bool, d)
	for k, rows := range categories {
		categories[k] = slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return i < 0 || i >= d })
		for _, i := range categories[k] {
			words[i] = true
		}
	}
	m.model.Draw(p, seed, func(t *bqmf.Table, i, j int, mean, dev, z float64) {
		if words[i] {
			out.Set(i, j, bqmf.Phi(z))
		} else {
			out.Set(i, j, t.Quantile(mean, dev, z))
		}
	})
	if !slices.Contains(words, true) {
		return out
	}
	said := Mat(m.model.Conditional(p))
	for _, rows := range categories {
		for j := range n {
			drawOne(out, said, rows, j)
		}
	}
	return out
}

// drawOne puts 1 into one of the rows of a category at sample j, where out has uniform numbers, and 0 into
// the others. The likeliest row is 1 where its own number lies so high; else the same number, which is
// uniform below that, says which of the others is.
func drawOne(out, said Mat, rows []int, j int) {
	if len(rows) == 0 {
		return
	}
	p := func(i int) float64 { return min(max(said.At(i, j), 0), 1) }
	sum, likeliest := 0.0, rows[0]
	for _, i := range rows {
		if sum += p(i); p(i) > p(likeliest) {
			likeliest = i
		}
	}
	if len(rows) == 1 {
		sum = 1
	}
	one, left := likeliest, float64(out.At(likeliest, j)*sum)
	if left < sum-p(likeliest) {
		one = -1 // no row is 1: the word that has none
		for _, i := range rows {
			if p(i) > 0 && i != likeliest {
				if one = i; left < p(i) {
					break
				}
				left -= p(i)
			}
		}
	}
	for _, i := range rows {
		out.Set(i, j, 0)
	}
	if one >= 0 {
		out.Set(one, j, 1)
	}
}
