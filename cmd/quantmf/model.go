package main

// This file holds the models of the command: models of any kind, with the names of features and samples and
// the settings of the fit. Model files keep both in sections of their own (package account).

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/internal/table"
)

// model is a fitted model of any kind.
type model struct {
	quantmf.Model
	of     *quantmf.Factorisation
	method string           // qmf, qmfq, nmf or bqmf
	bend   func() []float64 // nil in an NMF

	cli.Names
	account.Made
}

// modelOf makes a model from one of the package. It has no names yet.
func modelOf(m quantmf.Model) *model {
	of := &model{Model: m, of: settings.Factorisation(m), method: settings.MethodOf(m)}
	if bent, is := m.(interface{ Bend() []float64 }); is {
		of.bend = bent.Bend
	}
	return of
}

// kind is the name of the kind for people, and formula what it says.
func (m *model) kind() string { return strings.ToUpper(m.method) }

func (m *model) formula() string {
	return map[string]string{
		"nmf":  "X = UV",
		"qmf":  "X = T(UV), one increasing map T per feature",
		"qmfq": "X = T(P(T'(X))), two increasing maps per feature and P a projection onto the components",
		"bqmf": "X = T(UV), U and V of either sign, with the uncertainty of every value",
	}[m.method]
}

// signed tells whether this kind of model may take negative values. Whether the fitted loss allows them is
// checked by the package.
func (m *model) signed() bool { return m.method != "nmf" && !m.Log1p }

// unmarshal reads a model file.
func unmarshal(data []byte) (*model, error) {
	opened, err := quantmf.UnmarshalModel(data)
	if err != nil {
		return nil, err
	}
	m := modelOf(opened)
	if len(m.of.History) == 0 {
		return nil, &cli.InputError{Err: errors.New("model file: its fit was stopped before it began")}
	}
	names, how, known, err := account.Read(data, m.of.U.Rows, m.of.V.Cols)
	if errors.Is(err, account.ErrNames) {
		return nil, &cli.InputError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	m.setNames(names, how)
	if !known {
		for _, w := range m.of.Warnings {
			m.Made.Warnings = append(m.Made.Warnings, w.Error())
		}
	}
	return m, nil
}

// setNames gives the model the names and settings of its file.
func (m *model) setNames(names account.Names, how account.Made) {
	m.Names = cli.Names{Features: names.Features, Samples: names.Samples,
		NamedFeatures: names.Features != nil,
		NamedSamples:  names.Samples != nil}
	m.Made = how
	if !m.NamedFeatures {
		m.Features = table.Numbered("f", m.of.U.Rows)
	}
	if !m.NamedSamples {
		m.Samples = table.Numbered("s", m.of.V.Cols)
	}
}

// warn keeps the warnings of the fit, and of the size of the model, in the words of the command.
func (m *model) warn() {
	m.Made.Warnings = append(warningsInWords(m.of.Warnings, m.Features), account.Remarks(m.Model)...)
}

// readModel reads a model, and returns the identity of its file, too, nil for standard input.
func readModel(path string, stdin io.Reader, in *cli.Input) (*model, os.FileInfo, error) {
	// The file, the model and what it is put together from are of about the same size.
	data, info, err := in.ReadAll(path, stdin, "model", 3)
	if err != nil {
		return nil, nil, err
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
func (m *model) fitted(t *table.Table, in *cli.Input, messages io.Writer) (*table.Table, error) {
	t, err := m.fitting(t, in, messages)
	if err != nil {
		return nil, err
	}
	if len(t.Samples) != len(m.Samples) {
		return nil, t.Error(-1, -1,
			fmt.Sprintf("the matrix has %d samples, the model %d: give the matrix that was fitted",
				len(t.Samples), len(m.Samples)))
	}
	if m.NamedSamples && t.NamedSamples {
		for j, s := range m.Samples {
			if t.Samples[j] != s {
				return nil, t.Error(-1, j,
					fmt.Sprintf("the model has %q in this place: give the matrix that was fitted", s))
			}
		}
	}
	return t, nil
}

// fitting applies to a matrix what fit applied: -log1p, and the choice and order of features. Features are
// found by name. A feature that only the matrix or only the model has is an error, unless f allows it; if the
// model was fitted with -top, further features of the matrix are left out. Where a name stands several times,
// its first feature is the model's first of that name, and so on. Without names on either side the features
// must be the model's in its order.
func (m *model) fitting(t *table.Table, in *cli.Input, messages io.Writer) (*table.Table, error) {
	if m.Log1p {
		t.Log1p()
	}
	if !m.NamedFeatures || !t.NamedFeatures {
		switch d := len(m.Features); {
		case len(t.Features) > d:
			return nil, t.Error(d, -1, fmt.Sprintf("this feature is one more than the %d of the model", d))
		case len(t.Features) < d:
			return nil, t.Error(-1, -1,
				fmt.Sprintf("the matrix has %d features, the model %d: the first that is missing is %s",
					len(t.Features), d, strconv.Quote(m.Features[len(t.Features)])))
		}
		return t, nil
	}
	if slices.Equal(t.Features, m.Features) {
		return t, nil
	}
	rows, absent, extra := table.Matched(m.Features, t.Features)
	var problems, allow []string
	// differ warns of a difference that is allowed, and keeps another as a problem
	differ := func(word string, allowed bool, text, then string) error {
		if allowed {
			return in.Warn(messages, t.File, text+then)
		}
		problems, allow = append(problems, text), append([]string{word}, allow...)
		return nil
	}
	if len(absent) > 0 {
		text := fmt.Sprintf("%d of the model's %d features are not there: %s", len(absent), len(m.Features),
			firstOf(absent))
		if slices.ContainsFunc(absent[:min(len(absent), 3)],
			func(name string) bool { return slices.Contains(t.Features, name) }) {
			text += ", a name that the model has more often than the matrix"
		}
		if err := differ("missing", in.Absent, text, "; taken for missing values"); err != nil {
			return nil, err
		}
	}
	if len(extra) > 0 && !m.Top {
		text := fmt.Sprintf("%d of the %d features are not the model's: %s", len(extra), len(t.Features),
			firstOf(extra))
		if err := differ("extra", in.Extra, text, "; left out"); err != nil {
			return nil, err
		}
	}
	if len(absent) == len(m.Features) {
		return nil, t.Error(-1, -1,
			fmt.Sprintf("none of the model's %d features is there: they are called %s, and those of the "+
				"matrix %s; -names says which column names them, -transpose that samples are in rows",
				len(m.Features), firstOf(m.Features), firstOf(t.Features)))
	}
	if len(problems) > 0 {
		return nil, t.Error(-1, -1, strings.Join(problems, "; ")+": -allow "+strings.Join(allow, ",")+
			" goes on without")
	}
	return t.SelectOr(rows, m.Features), nil
}

// firstOf quotes the first names of a list.
func firstOf(names []string) string {
	var quoted []string
	for _, n := range names[:min(len(names), 3)] {
		quoted = append(quoted, strconv.Quote(n))
	}
	if len(names) > 3 {
		quoted = append(quoted, "...")
	}
	return strings.Join(quoted, ", ")
}
