package main

// This file holds the models of the command: models of any kind, with the names of features and samples and
// the settings of the fit. Model files keep both in sections of their own (package saved).

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// model is a fitted model of any kind.
type model struct {
	quantmf.Model
	method              string // qmf, qmfq, nmf or bqmf
	u, v                quantmf.Mat
	history, validation []float64
	best                int
	warnings            []error
	bend                func() []float64 // nil in an NMF

	features, samples           []string
	namedFeatures, namedSamples bool
	account.Made
}

// modelOf makes a model from one of the package. It has no names yet.
func modelOf(m quantmf.Model) *model {
	switch m := m.(type) {
	case *quantmf.NMF:
		return &model{Model: m, method: "nmf", u: m.U, v: m.V, history: m.History, validation: m.Validation,
			best: m.Best, warnings: m.Warnings}
	case *quantmf.QMF:
		return &model{Model: m, method: "qmf", u: m.U, v: m.V, history: m.History, validation: m.Validation,
			best: m.Best, warnings: m.Warnings, bend: m.Bend}
	case *quantmf.QMFQ:
		return &model{Model: m, method: "qmfq", u: m.U, v: m.V, history: m.History, validation: m.Validation,
			best: m.Best, warnings: m.Warnings, bend: m.Bend}
	case *quantmf.BQMF:
		return &model{Model: m, method: "bqmf", u: m.U, v: m.V, history: m.History, validation: m.Validation,
			best: m.Best, warnings: m.Warnings, bend: m.Bend}
	}
	panic("a model of no kind")
}

// title returns the name of the kind for people, and its formula.
func (m *model) title() (name, formula string) {
	switch m.method {
	case "nmf":
		return "NMF", "X = UV"
	case "qmf":
		return "QMF", "X = T(UV), one increasing map T per feature"
	}
	if m.method == "bqmf" {
		return "BQMF", "X = T(UV), U and V of either sign, with the uncertainty of every value"
	}
	return "QMFQ", "X = T(P(T'(X))), two increasing maps per feature and P a projection onto the components"
}

// signed tells whether this kind of model may take negative values. Whether the fitted loss allows them is
// checked by the package.
func (m *model) signed() bool { return m.method != "nmf" && !m.Log1p }

// named gives the model the names of the matrix that was fitted.
func (m *model) named(t *table.Table) {
	m.features, m.samples, m.namedFeatures, m.namedSamples = t.Features, t.Samples, t.NamedFeatures,
		t.NamedSamples
}

// marshal returns the model as a file.
func (m *model) marshal() ([]byte, error) {
	data, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return account.Append(data, m.names(), m.Made)
}

// names returns the names that the matrix had, nil for names that were made up.
func (m *model) names() account.Names {
	var names account.Names
	if m.namedFeatures {
		names.Features = m.features
	}
	if m.namedSamples {
		names.Samples = m.samples
	}
	return names
}

// unmarshal reads a model file.
func unmarshal(data []byte) (*model, error) {
	opened, err := quantmf.UnmarshalModel(data)
	if err != nil {
		return nil, err
	}
	m := modelOf(opened)
	if len(m.history) == 0 {
		return nil, &inputError{errors.New("model file: its fit was stopped before it began")}
	}
	names, how, known, err := account.Read(data, m.u.Rows, m.v.Cols)
	if errors.Is(err, account.ErrNames) {
		return nil, &inputError{err}
	}
	if err != nil {
		return nil, err
	}
	m.setNames(names, how)
	if !known {
		for _, w := range m.warnings {
			m.Warnings = append(m.Warnings, w.Error())
		}
	}
	return m, nil
}

// setNames gives the model the names and settings of its file.
func (m *model) setNames(names account.Names, how account.Made) {
	m.features, m.samples, m.Made = names.Features, names.Samples, how
	m.namedFeatures, m.namedSamples = names.Features != nil, names.Samples != nil
	if !m.namedFeatures {
		m.features = numbered("f", m.u.Rows)
	}
	if !m.namedSamples {
		m.samples = numbered("s", m.v.Cols)
	}
}

// readModel reads a model, and returns the identity of its file, too, nil for standard input.
func readModel(path string, stdin io.Reader, l *limits) (*model, os.FileInfo, error) {
	in, info, err := open(path, stdin, "model")
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	// The file, the model and what it is put together from are of about the same size.
	most := int64(l.maxMemory) / 3
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if int64(len(data)) > most {
		return nil, nil, l.allows(3*float64(len(data)), path, "allow more")
	}
	m, err := unmarshal(data)
	var bad *quantmf.FormatError
	switch {
	case errors.As(err, &bad) && bad.Offset == 0:
		return nil, nil, fmt.Errorf("%s: %w: MODEL, a file that \"quantmf fit -o\" wrote, comes first", path,
			err)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, info, nil
}

// fitted does what fitting does, for the matrix that was fitted: its samples, too, must be the model's.
func (m *model) fitted(t *table.Table, f *inputFlags, messages io.Writer) (*table.Table, error) {
	t, err := m.fitting(t, f, messages)
	if err != nil {
		return nil, err
	}
	if len(t.Samples) != len(m.samples) {
		return nil, t.Error(-1, -1,
			fmt.Sprintf("the matrix has %d samples, the model %d: give the matrix that was fitted",
				len(t.Samples), len(m.samples)))
	}
	if m.namedSamples && t.NamedSamples {
		for j, s := range m.samples {
			if t.Samples[j] != s {
				return nil, t.Error(-1, j,
					fmt.Sprintf("the model has %q in this place: give the matrix that was fitted", s))
			}
		}
	}
	return t, nil
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}
