package quantmf

// This file holds what the four models have in the same words: the fit by any method, the loss and the
// goodness of a matrix, and the features of a component. model.go has how. Go's embedding hands no model to
// the methods of Factorisation, so each answer has a line a model.

import (
	"context"
)

// Fit is the fit of a method: FitNMF, FitQMF, FitQMFQ or FitBQMF, with its options and errors. The model is
// nil where that fit returns none.
//
// [MethodAuto] takes NMF or QMF, or for rank 0 one of NMF, QMF and BQMF: the one that predicts cells best
// which are hidden from a first fit of each. It is Candidates, [Choose] and [Choice.Fit] in turn, which say
// by how much. An option that a method does not take, or a negative value, leaves that method out.
func Fit(ctx context.Context, method Method, x Rows, rank int, opts ...FitOption) (Model, error) {
	switch method {
	case MethodNMF:
		return orNil(FitNMF(ctx, x, rank, opts...))
	case MethodQMF:
		return orNil(FitQMF(ctx, x, rank, opts...))
	case MethodQMFQ:
		return orNil(FitQMFQ(ctx, x, rank, opts...))
	case MethodBQMF:
		return orNil(FitBQMF(ctx, x, rank, opts...))
	case MethodAuto:
		return fitAuto(ctx, x, rank, opts)
	}
	return nil, &OptionError{Option: "method", Value: itoa(int(method)),
		Bound: "must be one of the Method constants"}
}

// orNil makes an interface of a model: nil, and not one that holds a nil pointer, where there is none.
func orNil[M interface {
	Model
	comparable
}](m M, err error) (Model, error) {
	var none M
	if m == none {
		return nil, err
	}
	return m, err
}

// Loss is that of [Model].
func (m *NMF) Loss(x Rows) (float64, error) { return meanLoss(context.Background(), m, x) }

// Loss is that of [Model].
func (m *QMF) Loss(x Rows) (float64, error) { return meanLoss(context.Background(), m, x) }

// Loss is that of [Model].
func (m *QMFQ) Loss(x Rows) (float64, error) { return meanLoss(context.Background(), m, x) }

// Loss is that of [Model].
func (m *BQMF) Loss(x Rows) (float64, error) { return meanLoss(context.Background(), m, x) }

// Goodness is that of [Model].
func (m *NMF) Goodness(x Rows) ([]Goodness, error) { return goodnessOf(m, x) }

// Goodness is that of [Model].
func (m *QMF) Goodness(x Rows) ([]Goodness, error) { return goodnessOf(m, x) }

// Goodness is that of [Model].
func (m *QMFQ) Goodness(x Rows) ([]Goodness, error) { return goodnessOf(m, x) }

// Goodness is that of [Model].
func (m *BQMF) Goodness(x Rows) ([]Goodness, error) { return goodnessOf(m, x) }

// TopFeatures is that of [Model].
func (m *NMF) TopFeatures(x Rows, count int) ([][]Top, error) { return featuresOf(m, x, count) }

// TopFeatures is that of [Model].
func (m *QMF) TopFeatures(x Rows, count int) ([][]Top, error) { return featuresOf(m, x, count) }

// TopFeatures is that of [Model].
func (m *QMFQ) TopFeatures(x Rows, count int) ([][]Top, error) { return featuresOf(m, x, count) }

// TopFeatures is that of [Model].
func (m *BQMF) TopFeatures(x Rows, count int) ([][]Top, error) { return featuresOf(m, x, count) }
