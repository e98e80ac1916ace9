// Package flags has the flags that the commands quantmf and quantmf-beam share: which flag becomes which
// option of a fit, how its value is read, and the error of a wrong value.
package flags

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// Option is a flag that becomes an option of the package.
type Option struct {
	Name, Option string // WithEpsilon is the option of the flag eps
	// Parse reads the value of the flag. It returns nil and no error for a value that leaves the choice to
	// the data.
	Parse   func(s string) (quantmf.FitOption, error)
	Shared  bool // the option also holds for the NMF of a comparison
	Boolean bool // the value is true, or the flag is not given
}

// Fit runs the fit of a value of -method, qmf where it is none of the others.
func Fit(ctx context.Context, method string, x quantmf.Rows, rank int,
	options []quantmf.FitOption) (quantmf.Model, error) {
	switch method {
	case "nmf":
		return quantmf.FitNMF(ctx, x, rank, options...)
	case "qmfq":
		return quantmf.FitQMFQ(ctx, x, rank, options...)
	case "bqmf":
		return quantmf.FitBQMF(ctx, x, rank, options...)
	}
	return quantmf.FitQMF(ctx, x, rank, options...)
}

// Options returns the flags of a fit that become options, by their order in the help.
func Options() []Option {
	return []Option{
		{Name: "loss", Option: "WithLoss", Parse: loss, Shared: true},
		{Name: "missing", Option: "WithMissingValues", Parse: on(quantmf.WithMissingValues), Shared: true,
			Boolean: true},
		{Name: "m", Option: "WithLevels", Parse: whole(quantmf.WithLevels)},
		{Name: "eps", Option: "WithEpsilon", Parse: decimal(quantmf.WithEpsilon)},
		{Name: "epochs", Option: "WithEpochs", Parse: whole(quantmf.WithEpochs)},
		{Name: "lr", Option: "WithLearningRate", Parse: decimal(quantmf.WithLearningRate)},
		{Name: "schedule", Option: "WithSchedule", Parse: choice(quantmf.WithSchedule,
			[]string{"cosine", "constant"}, quantmf.ScheduleCosine, quantmf.ScheduleConstant)},
		{Name: "batch", Option: "WithBatch", Parse: whole(quantmf.WithBatch)},
		{Name: "start", Option: "WithStart", Parse: choice(quantmf.WithStart,
			[]string{"auto", "scores", "nmf", "uniform", "svd"}, quantmf.StartAuto, quantmf.StartScores,
			quantmf.StartNMF, quantmf.StartUniform, quantmf.StartSVD)},
		{Name: "ends", Option: "WithEnds", Parse: choice(quantmf.WithEnds,
			[]string{"free", "pinned"}, quantmf.EndsFree, quantmf.EndsPinned)},
		{Name: "penalty", Option: "WithPenalty", Parse: decimal(quantmf.WithPenalty)},
		{Name: "shrinkage", Option: "WithShrinkage", Parse: decimal(quantmf.WithShrinkage)},
		{Name: "projection", Option: "WithProjection", Parse: projection},
		{Name: "updates", Option: "WithUpdates", Parse: choice(quantmf.WithUpdates,
			[]string{"newton", "multiplicative"}, quantmf.UpdatesNewton, quantmf.UpdatesMultiplicative)},
		{Name: "tolerance", Option: "WithTolerance", Parse: decimal(quantmf.WithTolerance)},
		{Name: "validation", Option: "WithValidation", Parse: decimal(quantmf.WithValidation)},
		{Name: "patience", Option: "WithPatience", Parse: whole(quantmf.WithPatience)},
		{Name: "restarts", Option: "WithRestarts", Parse: whole(quantmf.WithRestarts)},
		{Name: "strict", Option: "WithStrict", Parse: on(quantmf.WithStrict), Boolean: true},
		{Name: "seed", Option: "WithSeed", Parse: seed, Shared: true},
		{Name: "workers", Option: "WithWorkers", Parse: whole(quantmf.WithWorkers), Shared: true},
	}
}

func on[O quantmf.FitOption](with func() O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		if s != "true" {
			return nil, OneOf([]string{"true", "false"})
		}
		return with(), nil
	}
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

func choice[T any](with func(T) quantmf.FitOption, words []string,
	values ...T) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		i := slices.Index(words, s)
		if i < 0 {
			return nil, OneOf(words)
		}
		return with(values[i]), nil
	}
}

// projection reads kl:N, frobenius:N or svd.
func projection(s string) (quantmf.FitOption, error) {
	kind, count, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(count)
	switch {
	case s == "svd":
		return quantmf.WithProjection(quantmf.TruncatedSVD()), nil
	case err == nil && kind == "kl":
		return quantmf.WithProjection(quantmf.KLUpdates(n)), nil
	case err == nil && kind == "frobenius":
		return quantmf.WithProjection(quantmf.FrobeniusUpdates(n)), nil
	}
	return nil, errors.New("must be kl:N, frobenius:N or svd")
}

func seed(s string) (quantmf.FitOption, error) {
	v, err := Seed(s)
	if err != nil {
		return nil, err
	}
	return quantmf.WithSeed(v), nil
}

func loss(s string) (quantmf.FitOption, error) {
	if s == "auto" {
		return nil, nil
	}
	l, err := account.ParseLoss(s)
	if err != nil {
		return nil, err
	}
	return quantmf.WithLoss(l), nil
}

// OneOf is the error of a value that is none of the words.
func OneOf(words []string) error {
	return errors.New("must be one of " + strings.Join(words, ", "))
}

// Seed reads a seed.
func Seed(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, errors.New("not a whole number from 0 to 2^64-1")
	}
	return v, nil
}

// Empty reports a flag of text that was given with an empty value, such as that of an unset variable.
func Empty(set *flag.FlagSet) (err error) {
	set.Visit(func(f *flag.Flag) {
		if text, is := f.Value.(flag.Getter); is && text.Get() == "" {
			err = errors.New("-" + f.Name + ": the value is empty")
		}
	})
	return err
}

// Size reads a number of bytes.
func Size(s string) (int64, error) {
	number := strings.TrimRight(s, "kKMGTiB")
	unit, ok := map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[s[len(number):]]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v*unit >= 1 && v*unit <= 1<<60) {
		return 0, errors.New("not a size such as 8GiB or 500MB")
	}
	return int64(v * unit), nil
}

// Header reads whether a matrix has names of samples above it.
func Header(s string) (table.Header, error) {
	words := []string{"auto", "yes", "no"}
	i := slices.Index(words, s)
	if i < 0 {
		return 0, OneOf(words)
	}
	return []table.Header{table.HeaderAuto, table.HeaderYes, table.HeaderNo}[i], nil
}

// Words reads words between commas.
func Words(s string) (words []string) {
	for w := range strings.SplitSeq(s, ",") {
		words = append(words, strings.TrimSpace(w))
	}
	return words
}
