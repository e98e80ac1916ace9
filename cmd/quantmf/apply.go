package main

// This file holds what is done with a fitted model and a matrix: transform,
// reconstruct, normalize; and convert, which needs no model.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

const transformUsage = `usage: quantmf transform [flags] MODEL MATRIX -o FILE

Places the samples of MATRIX, which the fit need not have seen, in the components
of MODEL, a file that "quantmf fit -o" wrote. For each sample it finds the column v
for which the divergence of the sample from T(Uv) is least. FILE gets these columns,
components × samples, like -v of fit.

The features of MATRIX are matched with those of the model by name, in any order.
Without names on either side they must be the model's features in its order. A
feature that only one of the two has is an error; for a model that was fitted with
-top, MATRIX may have features that the fit dropped. Where fit had -log1p, log(1+x)
is taken here, too. For a model fitted with -missing, values may be missing. Formats
are those of "quantmf fit -h".

  -o FILE           where to write (required)
  -block I/N        place only the samples of block I, from 0, of N blocks. N such
                    commands, one for each I, give the bits of a single command.
                    A sparse matrix, or an npy file larger than a quarter of
                    -max-memory, is expanded for this block only (default 0/1)
` + matchHelp + `
` + readHelp + `
` + limitsHelp + `
` + writeHelp + `
` + exitHelp

const reconstructUsage = `usage: quantmf reconstruct [flags] MODEL -o FILE

Writes T(UV), features × samples: the fit of the matrix to which MODEL, a file that
"quantmf fit -o" wrote, was fitted, with missing values filled in. Where fit had
-log1p these are values of log(1+x).

  -o FILE           where to write (required)
  -format FORMAT    the format of standard output, and of a FILE whose name says
                    none: tsv, csv, gct, mtx, npy or npz (default tsv)

` + limitsHelp + `
` + writeHelp + `
` + exitHelp

const normalizeUsage = `usage: quantmf normalize [flags] MODEL MATRIX -o FILE

Writes T'(x), features × samples: the samples of MATRIX on the scales on which the
components of MODEL add up, by the maps that a fit with -method qmfq learned. MATRIX
is as in "quantmf transform -h"; missing values stay missing.

  -o FILE           where to write (required)
` + matchHelp + `
` + readHelp + `
` + limitsHelp + `
` + writeHelp + `
` + exitHelp

const convertUsage = `usage: quantmf convert [flags] IN OUT

Rewrites a matrix in another format; missing and negative values are kept. IN is
read as in "quantmf fit -h". Matrix Market and npy hold no names, so names are lost
there. Descriptions of features in a GCT are dropped.

` + readHelp + `
The ending of OUT says its format: .tsv, .txt, .tab, .csv, .gct, .mtx, .npy or .npz.
A further .gz compresses it. "-" is standard input or output.

` + limitsHelp + `
` + exitHelp

// applied is the command line of a command whose own flags are -o and few more, and its progress.
type applied struct {
	limits
	in    inputFlags
	words []string
	out   string
	tell  *progress

	block, blocks int // of transform: which of how many blocks of samples
}

// parseApplied parses the command line of such a command.
func parseApplied(command string, args []string, s streams, page *pageFlags, wanted ...string) (*applied,
	error) {
	a := &applied{blocks: 1}
	set := newFlags(command)
	set.StringVar(&a.out, "o", "", "")
	a.limits.flags(set)
	if len(wanted) > 1 {
		a.in.register(set, true)
	} else {
		a.in.registerFormat(set)
	}
	if page != nil {
		page.register(set)
	}
	if command == "transform" {
		setting(set, "block", func(s string) error {
			i, n, ok := strings.Cut(s, "/")
			var wrong [2]error
			a.block, wrong[0] = strconv.Atoi(i)
			a.blocks, wrong[1] = strconv.Atoi(n)
			if !ok || wrong[0] != nil || wrong[1] != nil || a.block < 0 || a.block >= a.blocks ||
				a.blocks > 1<<31-1 {
				return errors.New("must be two whole numbers such as 0/4, the first from 0 and below " +
					"the second")
			}
			return nil
		})
	}
	words, err := arguments(set, args, wanted...)
	if err != nil {
		return nil, err
	}
	a.words = words
	if err := needsOut(a.out); err != nil {
		return nil, err
	}
	if page != nil {
		err = page.check(words...)
	} else {
		err = a.in.writable(a.out)
	}
	if err != nil {
		return nil, err
	}
	a.in.progress = a.progress
	a.tell = newProgress(a.progress, s.err)
	a.tell.begin(command)
	return a, a.limits.check()
}

// writeMatrix writes one matrix, to a place that is none of the inputs. Features and samples tell whether the
// names among rows and columns are those of a matrix that was read.
func writeMatrix(s streams, path string, in *inputFlags, inputs []os.FileInfo, corner string, rows,
	columns []string, m quantmf.Mat, features, samples bool) error {
	err := writeOnly(s, path, inputs,
		func(w io.Writer) error { return table.Write(w, in.place(path), corner, rows, columns, m) })
	if err == nil {
		err = in.nameless(s.err, path, features, samples)
	}
	return err
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
func readBoth(a *applied, s streams) (*model, *table.Table, []os.FileInfo, error) {
	a.tell.at("reading " + a.words[0])
	m, from, err := readModel(a.words[0], s.in, &a.limits)
	if err != nil {
		return nil, nil, nil, err
	}
	t, also, err := a.in.read(a.words[1], s, &a.limits, a.tell, true, m.signed())
	if err != nil {
		return nil, nil, nil, err
	}
	return m, t, []os.FileInfo{from, also}, nil
}

func transform(args []string, s streams) error {
	a, err := parseApplied("transform", args, s, nil, "MODEL", "MATRIX")
	if err != nil {
		return err
	}
	defer a.hold()()
	defer a.tell.end()
	a.in.rows = a.blocks > 1 // only one block is held in full
	m, t, inputs, err := readBoth(a, s)
	if err != nil {
		return err
	}
	defer t.Close()
	if t, err = m.fitting(t, &a.in, s.err); err != nil {
		return err
	}
	d, n := t.Dims()
	from, to := blockOf(n, a.block, a.blocks), blockOf(n, a.block+1, a.blocks)
	if from == to {
		return usageError(fmt.Sprintf("-block %d/%d: there are %s", a.block, a.blocks, counted(n, "sample")))
	}
	ctx, stop := interruptible()
	defer stop()
	full := n
	if t.Held != nil {
		full = to - from
	}
	if err := a.allowsMatrices(4, d+m.v.Rows, full); err != nil {
		return err
	}
	x, err := samples(t, from, to)
	if err != nil {
		return err
	}
	v, err := place(ctx, m, x, a.tell)
	if bad := new(quantmf.DataError); errors.As(err, &bad) && bad.Col >= 0 {
		bad.Col += from
	}
	if err != nil {
		return ended(ctx, err, t)
	}
	return writeMatrix(s, a.out, &a.in, inputs, "component", numbered("c", v.Rows), t.Samples[from:to], v,
		false, t.NamedSamples)
}

// blockOf is where a block of n samples begins.
func blockOf(n, block, blocks int) int { return int(int64(n) * int64(block) / int64(blocks)) }

// placed is the least number of samples that are placed at once: the nearest samples of the fit are looked
// for once a part.
const placed = 200

// place transforms the samples in up to ten parts. The number of parts changes no bit.
func place(ctx context.Context, m *model, x quantmf.Mat, tell *progress) (quantmf.Mat, error) {
	some := max(placed, (x.Cols+9)/10)
	v := quantmf.NewMat(m.u.Cols, x.Cols)
	for from := 0; from < x.Cols; from += some {
		if err := tell.count(from, x.Cols, "samples"); err != nil {
			return v, err
		}
		part := x
		part.Cols = min(some, x.Cols-from)
		part.Data = x.Data[from:]
		at, err := m.Transform(ctx, part)
		if err != nil {
			var bad *quantmf.DataError
			if errors.As(err, &bad) && bad.Col >= 0 {
				bad.Col += from
			}
			return v, err
		}
		for c := range at.Rows {
			copy(v.Row(c)[from:], at.Row(c))
		}
	}
	return v, tell.count(x.Cols, x.Cols, "samples")
}

// ended puts an error of the package into words for a command that has no flags of a fit.
func ended(ctx context.Context, err error, t *table.Table) error {
	if ctx.Err() != nil {
		return interrupted("interrupted; no file was written")
	}
	return explain(err, t, nil)
}

func reconstruct(args []string, s streams) error {
	a, err := parseApplied("reconstruct", args, s, nil, "MODEL")
	if err != nil {
		return err
	}
	defer a.hold()()
	defer a.tell.end()
	a.tell.at("reading " + a.words[0])
	m, from, err := readModel(a.words[0], s.in, &a.limits)
	if err != nil {
		return err
	}
	if err := a.allowsMatrices(2, len(m.features), len(m.samples)); err != nil {
		return err
	}
	a.tell.at("taking the model at every feature and sample")
	return writeMatrix(s, a.out, &a.in, []os.FileInfo{from}, "feature", m.features, m.samples,
		m.Reconstruct(), m.namedFeatures, m.namedSamples)
}

func normalize(args []string, s streams) error {
	a, err := parseApplied("normalize", args, s, nil, "MODEL", "MATRIX")
	if err != nil {
		return err
	}
	defer a.hold()()
	defer a.tell.end()
	m, t, inputs, err := readBoth(a, s)
	if err != nil {
		return err
	}
	q, is := m.Model.(*quantmf.QMFQ)
	if !is {
		name, _ := m.title()
		return usageError(a.words[0] + " is a model of kind " + name +
			", which has no map from a feature's scale to the components': fit one with -method qmfq")
	}
	if t, err = m.fitting(t, &a.in, s.err); err != nil {
		return err
	}
	if err := a.allowsMatrices(3, t.X.Rows, t.X.Cols); err != nil {
		return err
	}
	a.tell.at("taking maps")
	y, err := q.Normalize(t.X)
	if err != nil {
		return explain(err, t, nil)
	}
	return writeMatrix(s, a.out, &a.in, inputs, "feature", t.Features, t.Samples, y, t.NamedFeatures,
		t.NamedSamples)
}

func convert(args []string, s streams) error {
	var l limits
	var in inputFlags
	set := newFlags("convert")
	l.flags(set)
	in.register(set, false)
	words, err := arguments(set, args, "IN", "OUT")
	if err == nil {
		err = l.check()
	}
	if err == nil {
		err = in.writable(words[1])
	}
	if err != nil {
		return err
	}
	defer l.hold()()
	tell := newProgress(l.progress, s.err)
	tell.begin("convert")
	defer tell.end()
	t, from, err := in.read(words[0], s, &l, tell, true, true)
	if err != nil {
		return err
	}
	tell.at("writing " + words[1])
	return writeMatrix(s, words[1], &in, []os.FileInfo{from}, "feature", t.Features, t.Samples, t.X,
		t.NamedFeatures, t.NamedSamples)
}
