package quantmf

// This file holds refinement: a fit that goes on from a model of its method, with its factors and maps. Where
// x is the matrix of the model, the fit begins at the model's loss. Other samples are placed first, with all
// that is known of the features as it is: then few epochs come as far as a fit from nothing.
//
// A QMFQ goes on from T and T', and from where its projections started. A BQMF goes on from its rows, the
// posterior of U and their noise: V is the posterior of the samples given these, and scales, maps and second
// stage are made of x as in any fit.

import (
	"context"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// WithModel makes a fit go on from a model of the same method and rank: with its U, and for a QMF or a QMFQ
// with its maps. x has the features of the model. If its samples are those that the model was fitted to,
// which is seen by its loss there, the fit begins with V and at that loss; other samples, however many, are
// placed first by Transform. Loss, and of a QMF or a QMFQ ε, squash, levels, shrinkage, line and projection,
// are the model's where they are not given; other levels are an error, as is a QMFQ by [TruncatedSVD]. It
// takes the place of a start: it contradicts [WithInit], [WithStart], [WithRestarts] and, in a QMF or a QMFQ,
// [WithEnds]([EndsPinned]). Cost: a Loss or a Transform of x.
//
// A BQMF goes on with what the model knows of the features, U and noise, and always places the samples by
// that. It has no more components than the model, whatever the rank, and may end after one epoch. History
// begins, as ever, with no component at all. Cost: two epochs.
func WithModel(m Model) FitOption {
	return fitOption(option.Model, "", func(c *config) string {
		is := false
		switch of := m.(type) {
		case *NMF:
			c.from, is = of, of != nil
		case *QMF:
			c.from, is = of, of != nil
		case *QMFQ:
			c.from, is = of, of != nil
		case *BQMF:
			c.from, is = of, of != nil
		}
		if !is {
			c.from = nil
			return "must be a model"
		}
		return ""
	})
}

func (m *NMF) settle(ctx context.Context, c *config, kind uint32, x Rows, rank int) error {
	if err := settles(ctx, m, kind == section.NMF, rank); err != nil {
		return err
	}
	return c.takeModel(ctx, m, x)
}

func (q *QMF) settle(ctx context.Context, c *config, kind uint32, x Rows, rank int) error {
	if err := settles(ctx, q, kind == section.QMF, rank); err != nil {
		return err
	}
	if err := c.takeMaps(q); err != nil {
		return err
	}
	return c.takeModel(ctx, q, x)
}

func (q *QMFQ) settle(ctx context.Context, c *config, kind uint32, x Rows, rank int) error {
	if err := settles(ctx, q, kind == section.QMFQ, rank); err != nil {
		return err
	}
	if !c.given.Has(option.Projection) {
		c.Projection = q.projection
		c.given |= option.Of(option.Projection)
	}
	if q.projection.Kind == projection.SVD || c.Projection.Kind == projection.SVD {
		return cannotGoOn(q, "has no way to go on under TruncatedSVD, whose factors may be negative")
	}
	if err := c.takeMaps(&q.inflated); err != nil {
		return err
	}
	if err := c.takeModel(ctx, q, x); err != nil {
		return err
	}
	if &c.InitV.Data[0] == &q.V.Data[0] { // the samples are those of the model
		c.InitU, c.InitV, c.Begun.Own = fit.Dense(q.from[0]), fit.Dense(q.from[1]), true
	}
	return c.takeDeflation(q, x)
}

func (m *BQMF) settle(ctx context.Context, c *config, kind uint32, x Rows, rank int) error {
	if err := settles(ctx, m, kind == section.BQMF, m.Rank()); err != nil {
		return err
	}
	if err := checkRows(x); err != nil {
		return err
	}
	if d, _ := x.Dims(); d != m.U.Rows {
		return &ShapeError{What: "x", Got: itoa(d) + " rows",
			Want: itoa(m.U.Rows) + ", the features of the model"}
	}
	if !c.given.Has(option.Loss) {
		c.Loss = m.bounds().Loss
	}
	c.InitU = fit.Dense(m.U) // which a checkpoint tells models apart by
	return nil
}

// settles reports a model that a fit cannot go on from; same tells whether it is of the fit's method.
func settles(ctx context.Context, m Model, same bool, rank int) error {
	if !same {
		return cannotGoOn(m, "must be of the method of the fit")
	}
	if _, err := m.filler(ctx); err != nil { // also a field that has been changed
		return err
	}
	if k := m.Rank(); rank != k {
		return &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be that of the model, " + itoa(k)}
	}
	return nil
}

func cannotGoOn(m Model, bound string) error {
	return &OptionError{Option: option.Model.String(), Value: sizeOf(m.Dims()), Bound: bound}
}

// takeModel takes the loss, where the options leave it open, and the factors.
func (c *config) takeModel(ctx context.Context, m Model, x Rows) error {
	if !c.given.Has(option.Loss) {
		c.Loss = m.bounds().Loss
	}
	u, v, err := placeModel(ctx, m, x)
	c.InitU, c.InitV = fit.Dense(u), fit.Dense(v)
	c.Init = true
	c.given |= option.Of(option.Init)
	return err
}

// takeMaps takes what a QMF settles where options do not.
func (c *config) takeMaps(q *QMF) error {
	if c.given.Has(option.Levels) && c.Levels != q.Quantiles.Cols {
		return &OptionError{Option: option.Levels.String(), Value: itoa(c.Levels),
			Bound: "must be those of the model, " + itoa(q.Quantiles.Cols)}
	}
	if c.Ends == qmf.EndsPinned {
		return cannotGoOn(q, "contradicts EndsPinned")
	}
	c.Begun = &qmf.Given{Quantiles: fit.Dense(q.Quantiles), Weights: fit.Dense(q.Weights), Slopes: q.Slopes}
	c.Levels = q.Quantiles.Cols
	if !c.given.Has(option.Epsilon) {
		c.Epsilon = q.epsilon
	}
	if !c.given.Has(option.Squash) {
		c.Squash = q.squash[0].Kind
	}
	if !c.given.Has(option.Shrinkage) {
		c.Shrinkage = q.Shrinkage
	}
	if !c.given.Has(option.Line) {
		c.Line = q.Line
	}
	return nil
}

// takeDeflation takes T' of a QMFQ: q', and as weights b' the shares of the samples that its plan gives the
// levels, of which the same map is the solution.
func (c *config) takeDeflation(q *QMFQ, x Rows) error {
	d, m := len(q.deflate), q.inflated.Quantiles.Cols
	to := &qmf.Given{Quantiles: fit.NewDense(d, m), Weights: fit.NewDense(d, m)}
	from, odds := newRowReader(x), make([]float64, m-1)
	for i, f := range q.deflate {
		row, err := from.row(i)
		if err != nil {
			return err
		}
		copy(to.Quantiles.Row(i), f.of.Q)
		shares, seen := to.Weights.Row(i), 0.0
		for _, t := range row {
			if t != t {
				continue
			}
			f.of.Odds(f.of.Squash.At(t), odds)
			above := 1.0
			for l := range shares {
				next := 0.0
				if l < len(odds) {
					next = 1 / (1 + odds[l])
				}
				shares[l] += above - next
				above = next
			}
			seen++
		}
		for l := range shares {
			shares[l] = max(shares[l]/seen, leastShare)
		}
	}
	c.Begun.Deflation = to
	return nil
}

// leastShare is what a level of T' has of the samples at least, so that it has a logarithm.
const leastShare = 1e-12

// placeModel returns U of the model, and V: its own where x is what it was fitted to, else that of Transform.
func placeModel(ctx context.Context, m Model, x Rows) (u, v Mat, err error) {
	if err := checkRows(x); err != nil {
		return u, v, err
	}
	of := m.(sealed).common()
	u, v = of.U, of.V
	d, n := of.Dims()
	if rows, cols := x.Dims(); rows == d && cols == n && len(of.History) > 0 {
		own := of.History[min(of.Best, len(of.History)-1)]
		if len(of.Validation) > 0 {
			own = max(own, of.judged())
		}
		loss, err := meanLoss(ctx, m, x)
		if err != nil || loss <= own*(1+1e-3) {
			return u, v, err
		}
	}
	v, err = m.Transform(ctx, x)
	return u, v, err
}
