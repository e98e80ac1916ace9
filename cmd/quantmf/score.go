package main

// This file holds "quantmf score": how well a model fits samples. Its matrix is read by rows, so it may be
// larger than memory. If the samples are placed already, by "quantmf transform -block" on several machines,
// it is read once. odd.go has the scores of each sample.

import (
	"context"
	"fmt"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/table"
)

func scoreProgram() *cli.Program {
	a := newApplied()
	a.in.Rows = true
	var placed []string
	bySample, asJSON := false, false
	v := cli.Aside(cli.Func("v", "FILE", `the samples' columns, components × samples, that "quantmf
		transform" wrote: placing the samples is most of the work. Give -v once for each file of -block, in
		their order. -v of fit has the columns of the fitted samples (qmf and nmf; default: place the
		samples)`,
		func(path string) error {
			placed = append(placed, path)
			return nil
		}))
	return a.program("score", &cli.Program{
		Usage: []string{"[flags] MODEL MATRIX"},
		About: `Places the samples of MATRIX in the components of MODEL, a file that "quantmf fit -o" wrote,
			as "quantmf transform" does. Then it prints how far they are from the model: the mean divergence,
			of the loss that was fitted, over the values that are not missing. Features are matched as in
			"quantmf transform -h".

			With -by-sample it prints a line for each sample, those first that the model explains least:
			sample, score, times_median (the score as a multiple of the median of all scores), and why: the
			features with the largest shares of the score, each with its value and, behind "not", what the
			model expects of it. Between columns stand tabs.

			Memory holds the listed cells of a sparse MATRIX, and one row of an npy file larger than a
			quarter of -max-memory; while samples are placed, some 2^24 values more.`,
		Groups: own(cli.Switch(&bySample, "by-sample", "a line for each sample, the odd ones first, and why"),
			cli.Switch(&asJSON, "json", "with -by-sample: the same as one JSON object"), v, a.in.Allow()),
		After: cli.ExitHelp,
		Examples: [][2]string{{"quantmf score model.qmf new.csv", ""},
			{"quantmf score -by-sample model.qmf new.csv | head -n 11", "the ten oddest samples"},
			{"seq 0 1 | xargs -P 2 -I{} quantmf transform -block {}/2 -o V{}.npy m.nmf big.npy", ""},
			{"quantmf score -v V0.npy -v V1.npy m.nmf big.npy",
				"blocks are placed side by side, on one machine or several"}},
	}, func(s cli.Streams) error {
		if asJSON && !bySample {
			return cli.UsageError("-json: a single number is one already: give -by-sample, too")
		}
		return a.score(s, placed, bySample, asJSON)
	})
}

// blockOfRows is the number of samples of d features that are held in full at once, of a matrix that is not.
func blockOfRows(d int) int { return max(64, 1<<24/d) }

// score prints the score of all samples together or, a line or an object for each, those of samples. placed
// are the files of their coordinates, nil where they are not placed yet.
func (a *applied) score(s cli.Streams, placed []string, bySample, asJSON bool) error {
	m, t, _, err := a.readBoth(s)
	if err != nil {
		return err
	}
	defer t.Close()
	if placed != nil && m.method != "nmf" && m.method != "qmf" {
		return cli.UsageError("-v: coordinates alone say what a model of -method qmf or nmf makes of a " +
			"sample, " +
			"and this is one of " + m.method)
	}
	if t, err = m.fitting(t, &a.in, s.Err); err != nil {
		return err
	}
	ctx, stop := cli.Interruptible()
	defer stop()
	d, n := t.Dims()
	full := n // the number of samples that are held in full at once
	switch {
	case t.Held != nil && placed != nil && !bySample:
		full = 0
	case t.Held != nil:
		full = min(n, blockOfRows(d))
	}
	if err := a.in.Allows(t.HeldBytes()+8*4*(float64(d)*float64(full)+float64(m.of.U.Cols)*float64(n))+
		programSize,
		"this", "allow more, or give fewer samples at a time"); err != nil {
		return err
	}
	var v quantmf.Mat
	if placed != nil {
		if v, err = a.coordinates(placed, m.of.U.Cols, t); err != nil {
			return err
		}
	}
	var all []odd
	var together float64
	if bySample {
		all, err = a.oddOnes(ctx, m, t, v)
	} else {
		together, err = a.together(ctx, m, t, v)
	}
	a.tell.End()
	switch {
	case err != nil:
		return ended(ctx, err, t)
	case asJSON:
		return writeJSON(s.Out, oddObject{all})
	case bySample:
		return oddLines(s.Out, all)
	}
	_, err = fmt.Fprintln(s.Out, together)
	return err
}

// together is the score of all samples. v has their coordinates, or is empty where they are not placed yet.
func (a *applied) together(ctx context.Context, m *model, t *table.Table, v quantmf.Mat) (float64, error) {
	if v.Rows == 0 {
		a.tell.At("placing samples")
		return m.Score(ctx, t.Rows())
	}
	a.tell.At("comparing the model with the matrix")
	moved, err := m.at(v)
	if err != nil {
		return 0, err
	}
	return moved.Loss(t.Rows())
}

// at returns the model, an NMF or a QMF, with v (k × n) in the place of its V.
func (m *model) at(v quantmf.Mat) (quantmf.Model, error) {
	if m, is := m.Model.(*quantmf.NMF); is {
		return m.Placed(v)
	}
	return m.Model.(*quantmf.QMF).Placed(v)
}

// coordinates reads the blocks that "quantmf transform" wrote for the samples of t, and joins them to one V.
func (a *applied) coordinates(paths []string, k int, t *table.Table) (quantmf.Mat, error) {
	_, n := t.Dims()
	v, from := quantmf.NewMat(k, n), 0
	for _, path := range paths {
		a.tell.At("reading " + path)
		in, _, err := cli.Open(path, nil, "matrix")
		if err != nil {
			return v, err
		}
		part, err := table.Read(in, path,
			table.Options{Memory: a.in.MaxMemory, Header: table.HeaderYes, Names: "1"})
		in.Close()
		if err != nil {
			return v, err
		}
		if part.X.Rows != k {
			return v, part.Error(-1, -1,
				fmt.Sprintf("the model has %s, and this %d", table.Counted(k, "component"), part.X.Rows))
		}
		if more := from + part.X.Cols; more > n {
			return v, part.Error(-1, n-from,
				fmt.Sprintf("this sample is one more than the %d of the matrix", n))
		}
		if part.NamedSamples && t.NamedSamples {
			for j, name := range part.Samples {
				if want := t.Samples[from+j]; name != want {
					return v, part.Error(-1, j,
						fmt.Sprintf("the matrix has %q in this place: give the files in the order of "+
							"their blocks", want))
				}
			}
		}
		for c := range k {
			copy(v.Row(c)[from:], part.X.Row(c))
		}
		from += part.X.Cols
	}
	if from < n {
		return v, cli.Usagef("-v: the files have %s, and the matrix %d", table.Counted(from, "sample"), n)
	}
	return v, nil
}
