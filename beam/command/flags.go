package command

// This file holds the flags that become options of the package, and those for reading a matrix. They have
// the same names and meanings as in quantmf.

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/table"
)

// optionFlags collects the options of a fit.
type optionFlags struct {
	options []quantmf.FitOption
	names   map[string]string // the flag of each option
	loss    bool              // whether -loss was given
	missing bool
}

const optionHelp = `  -loss auto|kl|frobenius|BETA
                    what is minimised; auto is frobenius where a value is negative
                    and kl elsewhere (default auto)
  -missing          empty cells, NA and NaN are missing
  -m N  -eps X  -lr X  -schedule cosine|constant  -start auto|scores|nmf|uniform|svd
  -ends free|pinned  -shrinkage X  -tolerance X  -strict  -epochs N  -penalty X
  -validation X  -patience N  -seed N
                    as in "quantmf fit -h"
  -updates multiplicative|newton
                    multiplicative: one round an epoch; newton: two rounds an epoch,
                    each epoch worth ten of the former or more (nmf; default
                    multiplicative)
`

func (f *optionFlags) register(set *flag.FlagSet) {
	f.names = map[string]string{"rank": "k", "shards": "shards", "WithBatch": "batch"}
	yes := func(name, option string, with quantmf.FitOption, also *bool) {
		f.names[option] = name
		set.BoolFunc(name, "", func(s string) error {
			on, err := strconv.ParseBool(s)
			if err != nil {
				return errors.New("must be true or false")
			}
			if on {
				f.options = append(f.options, with)
				*also = true
			}
			return nil
		})
	}
	var strict bool
	yes("missing", "WithMissingValues", quantmf.WithMissingValues(), &f.missing)
	yes("strict", "WithStrict", quantmf.WithStrict(), &strict)
	for _, o := range flags.Options() {
		if !slices.Contains(taken, o.Name) {
			continue
		}
		f.names[o.Option] = o.Name
		set.Func(o.Name, "", func(s string) error {
			with, err := o.Parse(s)
			if err == nil && with != nil {
				f.options = append(f.options, with)
			}
			if o.Name == "loss" {
				f.loss = s != "auto"
			}
			return err
		})
	}
}

// taken are the options that a fit over shards has, without those that are true or false.
var taken = []string{"loss", "m", "epochs", "patience", "eps", "lr", "penalty", "shrinkage", "tolerance",
	"validation", "schedule", "start", "ends", "updates", "seed"}

// takeLoss sets the loss that suits the values, where none was given.
func (f *optionFlags) takeLoss(t *table.Table) error {
	if f.loss {
		return nil
	}
	return t.EachRow(func(_ int, row []float64) {
		if !f.loss && slices.ContainsFunc(row, func(v float64) bool { return v < 0 }) {
			f.options = append(f.options, quantmf.WithLoss(quantmf.Frobenius))
			f.loss = true
		}
	})
}

// explain words an error of the package with the flags of the command line and the names of the matrix.
func (f *optionFlags) explain(err error, t *table.Table) error {
	var option *quantmf.OptionError
	var data *quantmf.DataError
	switch {
	case errors.As(err, &option) && option.Option == "store":
		return usageError("-store: " + option.Bound)
	case errors.As(err, &option):
		if name, is := f.names[option.Option]; is {
			return usageError(strings.TrimSpace(fmt.Sprintf("-%s %s", name, option.Value)) + ": " +
				option.Bound)
		}
	case errors.As(err, &data) && data.Row < len(t.Features) && data.Col < len(t.Samples):
		return t.Error(data.Row, data.Col, data.Problem)
	}
	return err
}

// matrixFlags are the flags for reading a matrix and for changing it before a fit.
type matrixFlags struct {
	table.Options
	log1p bool
	top   int // 0: all
}

const matrixHelp = `MATRIX is what quantmf takes: text, GCT, Matrix Market, npy, npz, plain or
compressed, or a folder of 10x; features are in rows, samples in columns. The
driver reads it whole.
`

const readHelp = `How the matrix is read
  -header auto|yes|no  -names COLUMN  -na WORD,...  -transpose
                    as in "quantmf fit -h"
  -max-memory SIZE  the most that reading may take, such as 32GiB (default 8GiB)
`

func (f *matrixFlags) register(set *flag.FlagSet) {
	set.BoolVar(&f.log1p, "log1p", false, "")
	set.Func("header", "", func(s string) (err error) {
		f.Header, err = flags.Header(s)
		return err
	})
	set.StringVar(&f.Names, "names", "", "")
	set.Func("na", "", func(s string) error {
		if s == "" {
			return errors.New("the value is empty")
		}
		f.NA = append(f.NA, flags.Words(s)...)
		return nil
	})
	set.BoolVar(&f.Transpose, "transpose", false, "")
	set.Func("max-memory", "", func(s string) (err error) {
		f.Options.Memory, err = flags.Size(s)
		return err
	})
}

// registerTop is for commands that fit.
func (f *matrixFlags) registerTop(set *flag.FlagSet) {
	set.Func("top", "", func(s string) (err error) {
		if f.top, err = strconv.Atoi(s); err != nil || f.top < 1 {
			return errors.New("must be a whole number of at least 1")
		}
		return nil
	})
}

// matrix reads a matrix by the flags.
func (f *matrixFlags) matrix(path string, missing, negative bool) (*table.Table, error) {
	t, err := f.read(path, missing, negative && !f.log1p)
	if err != nil {
		return nil, err
	}
	if f.log1p {
		t.Log1p()
	}
	if f.top == 0 {
		return t, nil
	}
	few, err := t.MostVariable(f.top)
	if err != nil {
		t.Close()
	}
	return few, err
}

// read reads a file or a folder.
func (f *matrixFlags) read(path string, missing, negative bool) (*table.Table, error) {
	o := f.Options
	o.Missing, o.Negative = missing, negative
	file, err := os.Open(path)
	if err != nil {
		return nil, inputError{err}
	}
	if at, err := file.Stat(); err == nil && at.IsDir() {
		file.Close()
		return table.ReadFolder(os.DirFS(path), path, o)
	}
	t, err := table.Read(file, path, o)
	if err != nil || !t.InFile() { // a table in a file closes it itself
		file.Close()
	}
	return t, err
}
