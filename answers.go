package quantmf

// This file holds what the four models answer in the same words: the loss and the goodness of a matrix, and
// the features of a component. model.go has how. Go's embedding hands no model to the methods of
// Factorisation, so each answer has a line a model.

import (
	"context"
)

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
