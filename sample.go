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
// category is a list of rows that hold 0 and 1, of which one is 1 for each sample, and no row is in two
// lists. Of such rows one is drawn, with their probabilities, and together with what is drawn of other
// features. Rows that the model has not are left out.
func (m *BQMF) SampleCategories(seed uint64, categories ...[]int) Mat {
	categories = slices.Clone(categories)
	if usable(m) != nil {
		return Mat{}
	}
	p := pool.New(m.workers, len(m.model.Curves))
	defer p.Close()
	d, n := m.Dims()
	out, of := NewMat(d, n), make([]int, d) // of each row its place among those of categories, from 1
	count := 0
	for k, rows := range categories {
		categories[k] = slices.DeleteFunc(slices.Clone(rows), func(i int) bool { return i < 0 || i >= d })
		for _, i := range categories[k] {
			count++
			of[i] = count
		}
	}
	places := NewMat(count, n)
	m.model.Draw(p, seed, func(t *bqmf.Table, i, j int, mean, dev, z float64) {
		if of[i] == 0 {
			out.Set(i, j, t.Quantile(mean, dev, z))
			return
		}
		p, at := t.Indicator(mean, dev, z)
		out.Set(i, j, p)
		places.Set(of[i]-1, j, at)
	})
	for _, rows := range categories {
		for j := range n {
			drawOne(out, places, rows, of, j)
		}
	}
	return out
}

// drawOne puts 1 into one of the rows of a category at sample j, where their probabilities are, and 0 into
// the others. The likeliest row is 1 where its own draw lies so high; else the same number, which is uniform
// below that, says which of the others is.
func drawOne(out, places Mat, rows, of []int, j int) {
	if len(rows) == 0 {
		return
	}
	sum, likeliest := 0.0, rows[0]
	for _, i := range rows {
		if sum += out.At(i, j); out.At(i, j) > out.At(likeliest, j) {
			likeliest = i
		}
	}
	one, left := likeliest, float64(places.At(of[likeliest]-1, j)*sum)
	if left < sum-out.At(likeliest, j) {
		for _, i := range rows {
			if p := out.At(i, j); i != likeliest && p > 0 {
				if one = i; left < p {
					break
				}
				left -= p
			}
		}
	}
	for _, i := range rows {
		out.Set(i, j, 0)
	}
	out.Set(one, j, 1)
}
