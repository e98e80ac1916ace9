package rowfile

// This file holds models with the names of what they were fitted to: files that the command quantmf reads and
// writes, and new samples in the order of a model's features.

import (
	"errors"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// Model is a model of any kind with the names of its features and samples, nil where its file has none.
type Model struct {
	Of                quantmf.Model
	Features, Samples []string
	Log1p             bool // log(1+x) of the matrix was fitted: the model takes that of new samples, too
}

// MarshalBinary returns the model as a file with its names, which the command quantmf reads as well. Errors:
// those of the model, and [*quantmf.ShapeError] for another number of names.
func (m *Model) MarshalBinary() ([]byte, error) {
	if m.Of == nil {
		return nil, errors.New("rowfile: there is no model")
	}
	d, n := m.Of.Dims()
	for _, c := range []struct {
		names []string
		want  int
		what  string
	}{{m.Features, d, "features"}, {m.Samples, n, "samples"}} {
		if c.names != nil && len(c.names) != c.want {
			return nil, numberOf(c.what, len(c.names), c.want)
		}
	}
	file, err := m.Of.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return account.Append(file, account.Names{Features: m.Features, Samples: m.Samples},
		account.Made{Log1p: m.Log1p})
}

// UnmarshalModel reads a model with its names: what MarshalBinary or "quantmf fit -o" has written, or a model
// without names. It takes memory in proportion to the bytes it is given. Errors: those of
// [quantmf.UnmarshalModel], whose options it takes, and one that says that the names are damaged.
func UnmarshalModel(data []byte, opts ...quantmf.Option) (*Model, error) {
	m, err := quantmf.UnmarshalModel(data, opts...)
	if err != nil {
		return nil, err
	}
	d, n := m.Dims()
	names, made, _, err := account.Read(data, d, n)
	if err != nil {
		return nil, err
	}
	return &Model{m, names.Features, names.Samples, made.Log1p}, nil
}

// Match returns the matrix with its rows in the order of a model's features, found by name; the k-th of equal
// names is the k-th there. A feature that the file lacks is missing in all samples, one that the model lacks
// is left out. It is an error if the file has none of them.
func (f *File) Match(features []string) (quantmf.Rows, error) {
	rows, absent, _ := table.Matched(features, f.Features)
	if len(absent) == len(features) {
		return nil, errors.New("rowfile: none of the model's features is there")
	}
	t := f.table
	if x, is := f.Rows.(quantmf.Mat); is {
		t = &table.Table{X: x, Features: f.Features, Samples: f.Samples}
	}
	return t.SelectOr(rows, features).Rows(), nil
}
