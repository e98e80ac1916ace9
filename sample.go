package quantmf

// This file holds draws from a BQMF for multiple imputation. internal/bqmf/draw.go has how cells are drawn
// together.

import (
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
func (m *BQMF) Sample(seed uint64) Mat {
	if usable(m) != nil {
		return Mat{}
	}
	p := pool.New(m.workers, len(m.model.Curves))
	defer p.Close()
	out := NewMat(m.Dims())
	m.model.Draw(p, seed, func(t *bqmf.Table, i, j int, mean, dev, z float64) {
		out.Set(i, j, t.Quantile(mean, dev, z))
	})
	return out
}
