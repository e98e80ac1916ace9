package main

// This file holds what is done with a fitted model and a matrix: transform, reconstruct, normalize; and
// convert, which needs no model.

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/table"
)

// applied is the command line of a command that makes something of a model or a matrix, and its progress.
type applied struct {
	in    cli.Input
	words []string
	out   string
	page  bool // the output is no matrix
	tell  *cli.Progress
}

func newApplied() *applied { return &applied{in: cli.NewInput()} }

// program completes the declaration of such a command, which has its usage, its text and its own flags.
func (a *applied) program(name string, p *cli.Program, run func(s cli.Streams) error) *cli.Program {
	usage, _, _ := strings.Cut(p.Usage[0], " -o ")
	p.Words = strings.Fields(strings.TrimPrefix(usage, "[flags] "))
	if len(p.Words) > 1 { // with a matrix
		p.Groups = append(p.Groups, a.in.Reading())
	}
	p.Groups = append(p.Groups, a.in.Limits())
	p.Run = func(words []string, s cli.Streams) error {
		a.words = words
		if err := cli.OnceStdin(words...); err != nil {
			return err
		}
		if p.Flag("o") != nil && a.out == "" {
			return cli.UsageError(`say where to write: -o FILE, "-" is standard output`)
		}
		if !a.page {
			if err := a.in.Writable(a.out); err != nil {
				return err
			}
		}
		defer a.in.Hold()()
		a.tell = cli.NewProgress(a.in.Progress, s.Err)
		a.tell.Begin(name)
		defer a.tell.End()
		return run(s)
	}
	return p
}

// own are the flags that a command has beside those of program.
func own(flags ...*cli.Flag) []cli.Group { return []cli.Group{{Flags: flags}} }

// outFlag is -o.
func (a *applied) outFlag() *cli.Flag {
	return cli.File(&a.out, "o", `where to write (required; "-" is standard output)`)
}

const writes = cli.WriteHelp + "\n" + cli.ExitHelp

func transformProgram() *cli.Program {
	a := newApplied()
	block, blocks := 0, 1
	blockFlag := cli.Func("block", "I/N", `place only the samples of block I, from 0, of N blocks. N such
		commands, one for each I, give the bits of a single command. A sparse matrix, or an npy file larger
		than a quarter of -max-memory, is expanded for this block only (default 0/1)`,
		func(text string) error {
			i, n, ok := strings.Cut(text, "/")
			var wrong [2]error
			block, wrong[0] = strconv.Atoi(i)
			blocks, wrong[1] = strconv.Atoi(n)
			if !ok || wrong[0] != nil || wrong[1] != nil || block < 0 || block >= blocks || blocks > 1<<31-1 {
				return errors.New("must be two whole numbers such as 0/4, the first from 0 and below " +
					"the second")
			}
			return nil
		})
	return a.program("transform", &cli.Program{
		Usage: []string{"[flags] MODEL MATRIX -o FILE"},
		About: `Places the samples of MATRIX, which the fit need not have seen, in the components of MODEL, a
			file that "quantmf fit -o" wrote. For each sample it finds the column v for which the divergence
			of the sample from T(Uv) is least. FILE gets these columns, components × samples, like -v of fit.

			The features of MATRIX are matched with those of the model by name, in any order. Without names
			on either side they must be the model's features in its order. A feature that only one of the two
			has is an error; for a model that was fitted with -top, MATRIX may have features that the fit
			dropped. Where fit had -log1p, log(1+x) is taken here, too. Values may be missing, whether
			fit had -missing or not (but with -projection svd): a sample is placed by those that it has.
			Formats are those of "quantmf fit -h".`,
		Groups: own(a.outFlag(), blockFlag, a.in.Allow()),
		After:  writes,
		Examples: [][2]string{{"quantmf transform model.qmf new.csv -o V.csv", ""},
			{"zcat new.tsv.gz | quantmf transform model.qmf - -o -", ""}},
	}, func(s cli.Streams) error { return a.transform(s, block, blocks) })
}

func reconstructProgram() *cli.Program {
	a := newApplied()
	return a.program("reconstruct", &cli.Program{
		Usage: []string{"[flags] MODEL -o FILE"},
		About: `Writes T(UV), features × samples: the fit of the matrix to which MODEL, a file that "quantmf
			fit -o" wrote, was fitted, with missing values filled in. Where fit had -log1p these are values
			of log(1+x).`,
		Groups:   own(a.outFlag(), a.in.FormatFlag()),
		After:    writes,
		Examples: [][2]string{{"quantmf reconstruct model.qmf -o fitted.tsv.gz", ""}},
	}, a.reconstruct)
}

func normalizeProgram() *cli.Program {
	a := newApplied()
	return a.program("normalize", &cli.Program{
		Usage: []string{"[flags] MODEL MATRIX -o FILE"},
		About: `Writes T'(x), features × samples: the samples of MATRIX on the scales on which the components
			of MODEL add up, by the maps that a fit with -method qmfq learned. MATRIX is as in "quantmf
			transform -h"; missing values stay missing.`,
		Groups:   own(a.outFlag(), a.in.Allow()),
		After:    writes,
		Examples: [][2]string{{"quantmf normalize model.qmf table.tsv -o scaled.tsv", ""}},
	}, a.normalize)
}

func convertProgram() *cli.Program {
	a := newApplied()
	p := a.program("convert", &cli.Program{
		Usage: []string{"[flags] IN OUT"},
		About: `Rewrites a matrix in another format; missing and negative values are kept. IN is read as in
			"quantmf fit -h". Matrix Market and npy hold no names, so names are lost there. Descriptions of
			features in a GCT are dropped.`,
		After: `The ending of OUT says its format: .tsv, .txt, .tab, .csv, .gct, .mtx, .npy or .npz. A
			further .gz compresses it. "-" is standard input or output.` + "\n\n" + cli.ExitHelp,
		Examples: [][2]string{{"quantmf convert expression.gct table.csv.gz", ""},
			{"quantmf convert counts.mtx.gz -", ""}},
	}, a.convert)
	run := p.Run
	p.Run = func(words []string, s cli.Streams) error {
		a.out = words[1]
		return run(words[:1], s)
	}
	return p
}

// writeMatrix writes one matrix, to a place that is none of the inputs. Corner says what its rows are.
func (a *applied) writeMatrix(s cli.Streams, inputs []os.FileInfo, corner string, n cli.Names,
	m quantmf.Mat) error {
	err := cli.WriteOnly(s.Out, a.out, inputs, func(w io.Writer) error {
		return table.Write(w, a.in.Place(a.out), corner, n.Features, n.Samples, m)
	})
	if err == nil {
		err = a.in.Nameless(s.Err, a.out, n.NamedFeatures, n.NamedSamples)
	}
	return err
}

// allowsMatrices returns an error if count matrices of d × n numbers, beside the model, take more than
// -max-memory.
func (a *applied) allowsMatrices(count float64, d, n int) error {
	return a.in.Allows(8*count*float64(d)*float64(n)+programSize, "this",
		"allow more, or give fewer samples at a time")
}

// readBoth reads a model, and a matrix that has its features.
func (a *applied) readBoth(s cli.Streams) (*model, *table.Table, []os.FileInfo, error) {
	m, from, err := a.readModel(s)
	if err != nil {
		return nil, nil, nil, err
	}
	t, also, err := a.in.Read(a.words[1], s, a.tell, true, m.signed())
	if err != nil {
		return nil, nil, nil, err
	}
	return m, t, []os.FileInfo{from, also}, nil
}

func (a *applied) readModel(s cli.Streams) (*model, os.FileInfo, error) {
	a.tell.At("reading " + a.words[0])
	return readModel(a.words[0], s.In, &a.in)
}

func (a *applied) transform(s cli.Streams, block, blocks int) error {
	a.in.Rows = blocks > 1 // only one block is held in full
	m, t, inputs, err := a.readBoth(s)
	if err != nil {
		return err
	}
	defer t.Close()
	if t, err = m.fitting(t, &a.in, s.Err); err != nil {
		return err
	}
	d, n := t.Dims()
	from, to := blockOf(n, block, blocks), blockOf(n, block+1, blocks)
	if from == to {
		return cli.Usagef("-block %d/%d: there are %s", block, blocks, table.Counted(n, "sample"))
	}
	ctx, stop := cli.Interruptible()
	defer stop()
	full := n
	if t.Held != nil {
		full = to - from
	}
	if err := a.allowsMatrices(4, d+m.of.V.Rows, full); err != nil {
		return err
	}
	x, err := samples(t, from, to)
	if err != nil {
		return err
	}
	v, err := place(ctx, m, x, a.tell)
	if err != nil {
		return ended(ctx, inBlock(err, from), t)
	}
	return a.writeMatrix(s, inputs, "component",
		cli.Names{Features: table.Numbered("c", v.Rows), Samples: t.Samples[from:to],
			NamedSamples: t.NamedSamples}, v)
}

// blockOf is where a block of n samples begins.
func blockOf(n, block, blocks int) int { return int(int64(n) * int64(block) / int64(blocks)) }

// samples returns the samples from, ..., to-1 of a matrix as a Mat.
func samples(t *table.Table, from, to int) (quantmf.Mat, error) {
	if t.Held == nil {
		x := t.X
		x.Data, x.Cols = x.Data[from:], to-from
		return x, nil
	}
	x := quantmf.NewMat(len(t.Features), to-from)
	err := t.EachRow(func(i int, row []float64) { copy(x.Row(i), row[from:to]) })
	return x, err
}

// placed is the least number of samples that are placed at once: the nearest samples of the fit are looked
// for once a part.
const placed = 200

// place transforms the samples in up to ten parts. The number of parts changes no bit.
func place(ctx context.Context, m *model, x quantmf.Mat, tell *cli.Progress) (quantmf.Mat, error) {
	some := max(placed, (x.Cols+9)/10)
	v := quantmf.NewMat(m.of.U.Cols, x.Cols)
	for from := 0; from < x.Cols; from += some {
		if err := tell.Count(from, x.Cols, "samples"); err != nil {
			return v, err
		}
		part := x
		part.Cols = min(some, x.Cols-from)
		part.Data = x.Data[from:]
		at, err := m.Transform(ctx, part)
		if err != nil {
			return v, inBlock(err, from)
		}
		for c := range at.Rows {
			copy(v.Row(c)[from:], at.Row(c))
		}
	}
	return v, tell.Count(x.Cols, x.Cols, "samples")
}

// inBlock returns an error of a block of samples as one of all of them, of which from come before.
func inBlock(err error, from int) error {
	var bad *quantmf.DataError
	if errors.As(err, &bad) && bad.Col >= 0 {
		bad.Col += from
	}
	return err
}

// ended puts an error of the package into words for a command that has no checkpoint.
func ended(ctx context.Context, err error, t *table.Table) error {
	if ctx.Err() != nil {
		return cli.StoppedError("interrupted; no file was written")
	}
	return cli.Explain(err, t)
}

func (a *applied) reconstruct(s cli.Streams) error {
	m, from, err := a.readModel(s)
	if err != nil {
		return err
	}
	if err := a.allowsMatrices(2, len(m.Features), len(m.Samples)); err != nil {
		return err
	}
	a.tell.At("taking the model at every feature and sample")
	return a.writeMatrix(s, []os.FileInfo{from}, "feature", m.Names, m.Reconstruct())
}

func (a *applied) normalize(s cli.Streams) error {
	m, t, inputs, err := a.readBoth(s)
	if err != nil {
		return err
	}
	q, is := m.Model.(*quantmf.QMFQ)
	if !is {
		return cli.UsageError(a.words[0] + " is a model of kind " + m.kind() +
			", which has no map from a feature's scale to the components': fit one with -method qmfq")
	}
	if t, err = m.fitting(t, &a.in, s.Err); err != nil {
		return err
	}
	if err := a.allowsMatrices(3, t.X.Rows, t.X.Cols); err != nil {
		return err
	}
	a.tell.At("taking maps")
	y, err := q.Normalize(t.X)
	if err != nil {
		return cli.Explain(err, t)
	}
	return a.writeMatrix(s, inputs, "feature", cli.NamesOf(t), y)
}

func (a *applied) convert(s cli.Streams) error {
	t, from, err := a.in.Read(a.words[0], s, a.tell, true, true)
	if err != nil {
		return err
	}
	a.tell.At("writing " + a.out)
	return a.writeMatrix(s, []os.FileInfo{from}, "feature", cli.NamesOf(t), t.X)
}
