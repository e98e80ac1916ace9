package quantmf

// This file holds a BQMF that learns from new samples without those of its fit (internal/bqmf/update.go).

import (
	"context"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/pool"
)

// Updated returns a model that has learnt from n' new samples x, d × n', as well: its U is that of a fit to
// both, with V, maps and second stage as they were fitted. The samples of the model stay those of the fit.
// Predict says of each new sample what a refit with that sample alone would; a refit with all of them knows
// more where they are many, as a third of those of the fit, and the updated model nearly as much. m is not
// changed. The same samples given twice count twice.
//
// NaN cells are left out, whatever the fit took, and a column needs one that is not. Errors are those of
// Transform. Cost: three times that of Transform, with 2k² more for each cell and 2k³ for each row; x is read
// as often.
func (m *BQMF) Updated(ctx context.Context, x Rows) (*BQMF, error) {
	if err := usable(m); err != nil {
		return nil, err
	}
	x, err := m.bounds().checkColumns(x, len(m.model.Curves))
	if err != nil {
		return nil, err
	}
	_, n := x.Dims()
	p := pool.New(m.workers, max(n, len(m.model.Curves)))
	defer p.Close()
	p.Bind(ctx)
	update := m.model.Update(p)
	for range bqmf.UpdateRounds {
		update.Begin()
		err := inBlocks(ctx, x, nil, func(block Mat, _ int) error {
			update.Add(block.Cols, block.column)
			if err := p.Err(); err != nil {
				return &interrupted{err}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		update.End()
	}
	of := *m
	of.model = *update.Model()
	if err := p.Err(); err != nil {
		return nil, &interrupted{err}
	}
	of.fill()
	sealFields(&of)
	return &of, nil
}
