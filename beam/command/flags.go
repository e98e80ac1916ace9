package command

// This file holds the flags that become options of the package, and those of how a matrix is read. They have
// the names and meanings that they have in quantmf.

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/saved"
	"github.com/quantmf/quantmf/internal/table"
)

// optionFlags collects the options of a fit.
type optionFlags struct {
	options []quantmf.FitOption
	names   map[string]string // the flag of each option
	loss    bool              // it was given
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
  -updates multiplicative
                    of nmf, and its default here: a fit over shards has no others
`

func (f *optionFlags) register(set *flag.FlagSet) {
	f.names = map[string]string{"rank": "k", "shards": "shards", "WithBatch": "batch"}
	add := func(name, option string, parse func(string) (quantmf.FitOption, error)) {
		f.names[option] = name
		set.Func(name, "", func(s string) error {
			o, err := parse(s)
			if err == nil && o != nil {
				f.options = append(f.options, o)
			}
			return err
		})
	}
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
	add("loss", "WithLoss", func(s string) (quantmf.FitOption, error) {
		if f.loss = s != "auto"; !f.loss {
			return nil, nil
		}
		l, err := saved.ParseLoss(s)
		if err != nil {
			return nil, err
		}
		return quantmf.WithLoss(l), nil
	})
	add("m", "WithLevels", whole(quantmf.WithLevels))
	add("epochs", "WithEpochs", whole(quantmf.WithEpochs))
	add("patience", "WithPatience", whole(quantmf.WithPatience))
	add("eps", "WithEpsilon", decimal(quantmf.WithEpsilon))
	add("lr", "WithLearningRate", decimal(quantmf.WithLearningRate))
	add("penalty", "WithPenalty", decimal(quantmf.WithPenalty))
	add("shrinkage", "WithShrinkage", decimal(quantmf.WithShrinkage))
	add("tolerance", "WithTolerance", decimal(quantmf.WithTolerance))
	add("validation", "WithValidation", decimal(quantmf.WithValidation))
	add("schedule", "WithSchedule", choice(quantmf.WithSchedule, []string{"cosine", "constant"}, quantmf.ScheduleCosine, quantmf.ScheduleConstant))
	add("start", "WithStart", choice(quantmf.WithStart, []string{"auto", "scores", "nmf", "uniform", "svd"},
		quantmf.StartAuto, quantmf.StartScores, quantmf.StartNMF, quantmf.StartUniform, quantmf.StartSVD))
	add("ends", "WithEnds", choice(quantmf.WithEnds, []string{"free", "pinned"}, quantmf.EndsFree, quantmf.EndsPinned))
	add("updates", "WithUpdates", choice(quantmf.WithUpdates, []string{"newton", "multiplicative"}, quantmf.UpdatesNewton, quantmf.UpdatesMultiplicative))
	add("seed", "WithSeed", func(s string) (quantmf.FitOption, error) {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, errors.New("not a whole number from 0 to 2^64-1")
		}
		return quantmf.WithSeed(v), nil
	})
}

// takeLoss takes the loss that the values ask for, where none was given.
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

// explain puts an error of the package into the words of the command line and of the matrix.
func (f *optionFlags) explain(err error, t *table.Table) error {
	var option *quantmf.OptionError
	var data *quantmf.DataError
	switch {
	case errors.As(err, &option) && option.Option == "store":
		return usageError("-store: " + option.Bound)
	case errors.As(err, &option):
		if name, is := f.names[option.Option]; is {
			return usageError(strings.TrimSpace(fmt.Sprintf("-%s %s", name, option.Value)) + ": " + option.Bound)
		}
	case errors.As(err, &data) && data.Row < len(t.Features) && data.Col < len(t.Samples):
		return t.Error(data.Row, data.Col, data.Problem)
	}
	return err
}

func whole[O quantmf.FitOption](with func(int) O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		v, err := strconv.Atoi(s)
		if err != nil {
			return nil, errors.New("not a whole number")
		}
		return with(v), nil
	}
}

func decimal[O quantmf.FitOption](with func(float64) O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, errors.New("not a number")
		}
		return with(v), nil
	}
}

func choice[T any](with func(T) quantmf.FitOption, words []string, values ...T) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		i := slices.Index(words, s)
		if i < 0 {
			return nil, errors.New("must be one of " + strings.Join(words, ", "))
		}
		return with(values[i]), nil
	}
}

// matrixFlags are the flags of how a matrix is read.
type matrixFlags struct{ table.Options }

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
	set.Func("header", "", func(s string) error {
		i := slices.Index([]string{"auto", "yes", "no"}, s)
		if i < 0 {
			return errors.New("must be one of auto, yes, no")
		}
		f.Header = []table.Header{table.HeaderAuto, table.HeaderYes, table.HeaderNo}[i]
		return nil
	})
	set.StringVar(&f.Names, "names", "", "")
	set.Func("na", "", func(s string) error {
		for w := range strings.SplitSeq(s, ",") {
			f.NA = append(f.NA, strings.TrimSpace(w))
		}
		return nil
	})
	set.BoolVar(&f.Transpose, "transpose", false, "")
	set.Func("max-memory", "", func(s string) (err error) {
		f.Options.Memory, err = size(s)
		return err
	})
}

// size reads a number of bytes.
func size(s string) (int64, error) {
	number := strings.TrimRight(s, "kKMGTiB")
	unit, ok := map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[s[len(number):]]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v*unit >= 1 && v*unit <= 1<<60) {
		return 0, errors.New("not a size such as 8GiB or 500MB")
	}
	return int64(v * unit), nil
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
	if err != nil || !t.InFile() { // else the table closes it
		file.Close()
	}
	return t, err
}
