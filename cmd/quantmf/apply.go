package main

// This file holds what is done with a fitted model and a matrix: transform,
// reconstruct, normalize; and convert, which needs no model.

import (
	"context"
	"io"
	"os"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

const transformUsage = `usage: quantmf transform [flags] MODEL MATRIX -o FILE

Places the samples of MATRIX, which the fit need not have seen, in the components
of MODEL, a file of "quantmf fit -o": the columns v for which the divergence of a
sample from T(Uv) is least. FILE gets components × samples, like -v of fit.

The features of MATRIX find those of the model by name, in any order; without
names on either side they must be the model's in its order. What is not in both is
an error; of a model that was fitted with -top MATRIX may have others. Where fit
had -log1p, log(1+x) is taken here, too. Of a model fitted with -missing, values
may be missing. Formats are those of "quantmf fit -h".

  -o FILE           where to write (required)
` + matchHelp + `
` + readHelp + `
` + writeHelp + `
` + exitHelp

const reconstructUsage = `usage: quantmf reconstruct MODEL -o FILE

Writes what MODEL, a file of "quantmf fit -o", makes of the matrix that it was
fitted to: T(UV), features × samples, missing values filled. Where fit had -log1p
these are values of log(1+x).

  -o FILE           where to write (required)
  -format FORMAT    of standard output: tsv, csv, gct, mtx, npy or npz (default tsv)

` + writeHelp + `
` + exitHelp

const normalizeUsage = `usage: quantmf normalize MODEL MATRIX -o FILE

Brings the samples of MATRIX to the scales on which the components of MODEL add
up: T'(x), features × samples, by the maps that a fit with -method qmfq learned.
MATRIX is as in "quantmf transform -h"; what is missing stays so.

  -o FILE           where to write (required)
` + matchHelp + `
` + readHelp + `
` + writeHelp + `
` + exitHelp

const convertUsage = `usage: quantmf convert IN OUT

Rewrites a matrix in another format, values missing or negative included. IN is
read as in "quantmf fit -h". Names become f1, f2, ... and s1, s2, ... in Matrix
Market and npy, which have none; descriptions of features in a GCT are dropped.

` + readHelp + `
The end of OUT says its format: .tsv, .txt, .tab, .csv, .gct, .mtx, .npy or .npz,
with .gz behind it compressed. "-" is standard input or output.

` + exitHelp

// outFlags parses the command line of a command that has but -o.
func outFlags(command string, args []string, wanted ...string) (words []string, out string, in *inputFlags, err error) {
	set := newFlags(command)
	set.StringVar(&out, "o", "", "")
	in = &inputFlags{}
	if len(wanted) > 1 {
		in.register(set, true)
	} else {
		in.registerFormat(set)
	}
	if words, err = arguments(set, args, wanted...); err == nil {
		err = needsOut(out)
	}
	if err == nil && command != "report" {
		err = in.writable(out)
	}
	return words, out, in, err
}

// writeMatrix writes one matrix, to a place that is none of the inputs.
func writeMatrix(s streams, path string, in *inputFlags, inputs []os.FileInfo, corner string, rows, columns []string, m quantmf.Mat) error {
	return writeOnly(s, path, inputs, func(w io.Writer) error { return table.Write(w, in.place(path), corner, rows, columns, m) })
}

// writeOnly writes one file, to a place that is none of the inputs.
func writeOnly(s streams, path string, inputs []os.FileInfo, fill func(w io.Writer) error) error {
	out := &outputs{stdout: s.out}
	defer out.discard()
	if err := out.open(path, inputs...); err != nil {
		return err
	}
	if err := out.write(path, fill); err != nil {
		return err
	}
	return out.commit()
}

// readBoth reads a model, and a matrix that has its features.
func readBoth(modelFile, matrix string, in *inputFlags, s streams) (*model, *table.Table, []os.FileInfo, error) {
	m, from, err := readModel(modelFile, s.in)
	if err != nil {
		return nil, nil, nil, err
	}
	t, also, err := in.read(matrix, s, true, m.signed())
	if err != nil {
		return nil, nil, nil, err
	}
	return m, t, []os.FileInfo{from, also}, nil
}

func transform(args []string, s streams) error {
	words, out, in, err := outFlags("transform", args, "MODEL", "MATRIX")
	if err != nil {
		return err
	}
	m, t, inputs, err := readBoth(words[0], words[1], in, s)
	if err != nil {
		return err
	}
	if t, err = m.fitting(t, in, s.err); err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	v, err := m.Transform(ctx, t.X)
	if err != nil {
		return ended(ctx, err, t)
	}
	return writeMatrix(s, out, in, inputs, "component", numbered("c", v.Rows), t.Samples, v)
}

// ended says what an error of the package means to a command without flags of
// its own for it.
func ended(ctx context.Context, err error, t *table.Table) error {
	if ctx.Err() != nil {
		return interrupted("interrupted; no file was written")
	}
	return explain(err, t, nil)
}

func reconstruct(args []string, s streams) error {
	words, out, in, err := outFlags("reconstruct", args, "MODEL")
	if err != nil {
		return err
	}
	m, from, err := readModel(words[0], s.in)
	if err != nil {
		return err
	}
	return writeMatrix(s, out, in, []os.FileInfo{from}, "feature", m.features, m.samples, m.Reconstruct())
}

func normalize(args []string, s streams) error {
	words, out, in, err := outFlags("normalize", args, "MODEL", "MATRIX")
	if err != nil {
		return err
	}
	m, t, inputs, err := readBoth(words[0], words[1], in, s)
	if err != nil {
		return err
	}
	q, is := m.Model.(*quantmf.QMFQ)
	if !is {
		name, _ := m.title()
		return usageError(words[0] + " is a model of kind " + name + ", which has no map from a feature's scale to the components': fit one with -method qmfq")
	}
	if t, err = m.fitting(t, in, s.err); err != nil {
		return err
	}
	y, err := q.Normalize(t.X)
	if err != nil {
		return explain(err, t, nil)
	}
	return writeMatrix(s, out, in, inputs, "feature", t.Features, t.Samples, y)
}

func convert(args []string, s streams) error {
	set := newFlags("convert")
	in := &inputFlags{}
	in.register(set, false)
	words, err := arguments(set, args, "IN", "OUT")
	if err == nil {
		err = in.writable(words[1])
	}
	if err != nil {
		return err
	}
	t, from, err := in.read(words[0], s, true, true)
	if err != nil {
		return err
	}
	return writeMatrix(s, words[1], in, []os.FileInfo{from}, "feature", t.Features, t.Samples, t.X)
}
