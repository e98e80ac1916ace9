package cli

// This file holds the files that a fit writes of its model, with the names of features and samples.

import (
	"cmp"
	"io"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/internal/table"
)

// Names are the names of features and samples, and whether they are those of a matrix or made up.
type Names struct {
	Features, Samples           []string
	NamedFeatures, NamedSamples bool
}

// NamesOf are those of a table.
func NamesOf(t *table.Table) Names {
	return Names{t.Features, t.Samples, t.NamedFeatures, t.NamedSamples}
}

// Saved are the names that a model file holds: those that are not made up.
func (n Names) Saved() (names account.Names) {
	if n.NamedFeatures {
		names.Features = n.Features
	}
	if n.NamedSamples {
		names.Samples = n.Samples
	}
	return names
}

// ModelFiles are the files that a fit writes of its model, "" for none.
type ModelFiles struct{ Model, U, V, Q string }

// Flags are those that name the files.
func (f *ModelFiles) Flags() []*Flag {
	return []*Flag{
		File(&f.Model, "o", `the model, for the other commands`),
		File(&f.U, "u", `U, features × components`),
		File(&f.V, "v", `V, components × samples`),
		File(&f.Q, "q", `per feature the quantiles q1, q2, ... and their weights w1, w2, ..., and the
			slope of its line (qmf)`),
	}
}

// Paths are the files.
func (f *ModelFiles) Paths() []string { return []string{f.Model, f.U, f.V, f.Q} }

// Check returns an error for files that a fit by the method cannot write, before anything is read.
func (f *ModelFiles) Check(in *Input, method string) error {
	if f.Q != "" && method != "qmf" {
		return UsageError("-q: only a QMF has quantiles to write")
	}
	return cmp.Or(in.Writable(f.U, f.V, f.Q), Apart(f.Paths()...))
}

// Write writes the files.
func (f *ModelFiles) Write(out *Outputs, in *Input, m quantmf.Model, names Names, made account.Made) error {
	of := settings.Factorisation(m)
	components := table.Numbered("c", of.U.Cols)
	matrix := func(path, corner string, rows, columns []string, x quantmf.Mat) error {
		return out.Write(path, func(w io.Writer) error {
			return table.Write(w, in.Place(path), corner, rows, columns, x)
		})
	}
	err := out.Write(f.Model, func(w io.Writer) error {
		data, err := m.MarshalBinary()
		if err == nil {
			data, err = account.Append(data, names.Saved(), made)
		}
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	if err == nil {
		err = matrix(f.U, "feature", names.Features, components, of.U)
	}
	if err == nil {
		err = matrix(f.V, "component", components, names.Samples, of.V)
	}
	if q, is := m.(*quantmf.QMF); is && err == nil && f.Q != "" {
		levels := q.Quantiles.Cols
		columns := append(append(table.Numbered("q", levels), table.Numbered("w", levels)...), "slope")
		slopes := quantmf.Mat{Rows: len(q.Slopes), Cols: 1, Data: q.Slopes, Stride: 1}
		err = matrix(f.Q, "feature", names.Features, columns, beside(q.Quantiles, q.Weights, slopes))
	}
	return err
}

// Nameless says which files cannot hold the names.
func (f *ModelFiles) Nameless(w io.Writer, in *Input, n Names) error {
	return cmp.Or(in.Nameless(w, f.U, n.NamedFeatures, false), in.Nameless(w, f.V, false, n.NamedSamples),
		in.Nameless(w, f.Q, n.NamedFeatures, false))
}

// beside returns matrices of as many rows side by side.
func beside(of ...quantmf.Mat) quantmf.Mat {
	cols := 0
	for _, a := range of {
		cols += a.Cols
	}
	m := quantmf.NewMat(of[0].Rows, cols)
	for i := range m.Rows {
		row := m.Row(i)
		for _, a := range of {
			row = row[copy(row, a.Row(i)):]
		}
	}
	return m
}
