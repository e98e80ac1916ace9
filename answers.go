package quantmf

// This file holds what the four models answer in the same words: the loss and the goodness of a matrix, the
// features of a component, and files. model.go has how. Go's embedding hands no model to the methods of
// Factorisation, so each answer has a line a model.

import (
	"context"
	"io"
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

// WriteTo is that of [Model].
func (m *NMF) WriteTo(w io.Writer) (int64, error) { return writeTo(w, m) }

// WriteTo is that of [Model].
func (m *QMF) WriteTo(w io.Writer) (int64, error) { return writeTo(w, m) }

// WriteTo is that of [Model].
func (m *QMFQ) WriteTo(w io.Writer) (int64, error) { return writeTo(w, m) }

// WriteTo is that of [Model].
func (m *BQMF) WriteTo(w io.Writer) (int64, error) { return writeTo(w, m) }

// ReadFrom reads a model until the end of r. Errors: those of UnmarshalBinary, and of r.
func (m *NMF) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, m) }

// ReadFrom reads a model until the end of r. Errors: those of UnmarshalBinary, and of r.
func (m *QMF) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, m) }

// ReadFrom reads a model until the end of r. Errors: those of UnmarshalBinary, and of r.
func (m *QMFQ) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, m) }

// ReadFrom reads a model until the end of r. Errors: those of UnmarshalBinary, and of r.
func (m *BQMF) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, m) }
