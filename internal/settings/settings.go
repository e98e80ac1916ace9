// Package settings makes options, and fits, from texts: the values of flags and of options in JavaScript, by
// the declarations of package option.
package settings

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/option"
)

// parsers returns the parser of each option that texts can give. It is no variable, so that a program that
// does not parse links no options.
func parsers() [option.Kinds]func(text string) (quantmf.FitOption, error) {
	return [option.Kinds]func(text string) (quantmf.FitOption, error){
		option.Epsilon:       of(Decimal, quantmf.WithEpsilon),
		option.Squash:        choice(option.Squash, quantmf.WithSquash),
		option.Tolerance:     of(Decimal, quantmf.WithTolerance),
		option.MaxIterations: of(Whole, quantmf.WithMaxIterations),
		option.Strict:        on(quantmf.WithStrict),
		option.Iterations:    of(Whole, quantmf.WithIterations),
		option.Levels:        of(Whole, quantmf.WithLevels),
		option.MidpointRanks: on(quantmf.WithMidpointRanks),
		option.Workers:       of(Whole, quantmf.WithWorkers),
		option.Epochs:        of(Whole, quantmf.WithEpochs),
		option.Seed:          of(Seed, quantmf.WithSeed),
		option.LearningRate:  of(Decimal, quantmf.WithLearningRate),
		option.Schedule:      choice(option.Schedule, quantmf.WithSchedule),
		option.Batch:         of(Whole, quantmf.WithBatch),
		option.Start:         choice(option.Start, quantmf.WithStart),
		option.Ends:          choice(option.Ends, quantmf.WithEnds),
		option.Penalty:       of(Decimal, quantmf.WithPenalty),
		option.Penalties:     penalties,
		option.Shrinkage:     of(Decimal, quantmf.WithShrinkage),
		option.Line:          of(Decimal, quantmf.WithLine),
		option.Loss:          loss,
		option.Patience:      of(Whole, quantmf.WithPatience),
		option.Restarts:      of(Whole, quantmf.WithRestarts),
		option.Validation:    of(Decimal, quantmf.WithValidation),
		option.Missing:       on(quantmf.WithMissingValues),
		option.Projection:    projection,
		option.Updates:       choice(option.Updates, quantmf.WithUpdates),
	}
}

// Parses tells whether texts can give an option of the kind.
func Parses(k option.Kind) bool { return parsers()[k] != nil }

// Parse returns the option of a kind from the text of its value, "true" or "false" for one that has none. It
// returns nil and no error for a text that leaves the choice to the data, or that is false.
func Parse(k option.Kind, text string) (quantmf.FitOption, error) { return parsers()[k](text) }

func on[O quantmf.FitOption](with func() O) func(string) (quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		switch s {
		case "true":
			return with(), nil
		case "false":
			return nil, nil
		}
		return nil, OneOf([]string{"true", "false"})
	}
}

// of is the parser of an option of one value.
func of[T any, O quantmf.FitOption](parse func(string) (T, error), with func(T) O) func(string) (
	quantmf.FitOption, error) {
	return func(s string) (quantmf.FitOption, error) {
		v, err := parse(s)
		if err != nil {
			return nil, err
		}
		return with(v), nil
	}
}

func choice[T ~uint8, O quantmf.FitOption](k option.Kind, with func(T) O) func(string) (quantmf.FitOption,
	error) {
	return func(s string) (quantmf.FitOption, error) {
		words := k.Words()
		i := slices.Index(words, s)
		if i < 0 {
			return nil, OneOf(words)
		}
		return with(T(i)), nil
	}
}

// loss reads kl, frobenius or a β; auto is the choice of the data.
func loss(s string) (quantmf.FitOption, error) {
	if s == "auto" {
		return nil, nil
	}
	return of(account.ParseLoss, quantmf.WithLoss)(s)
}

// penalties reads the four weights, L1U,L1V,L2U,L2V.
func penalties(s string) (quantmf.FitOption, error) {
	var p quantmf.Penalties
	texts, to := strings.Split(s, ","), []*float64{&p.L1U, &p.L1V, &p.L2U, &p.L2V}
	if len(texts) != len(to) {
		return nil, errors.New("must be four numbers: L1U,L1V,L2U,L2V")
	}
	for i, text := range texts {
		v, err := Decimal(text)
		if err != nil {
			return nil, err
		}
		*to[i] = v
	}
	return quantmf.WithPenalties(p), nil
}

// projection reads kl:N, frobenius:N or svd.
func projection(s string) (quantmf.FitOption, error) {
	var p quantmf.Projection
	if s == "" || p.UnmarshalText([]byte(s)) != nil {
		return nil, errors.New("must be kl:N, frobenius:N or svd")
	}
	return quantmf.WithProjection(p), nil
}

// Whole reads a whole number.
func Whole(s string) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil {
		return 0, errors.New("not a whole number")
	}
	return v, nil
}

// Decimal reads a number.
func Decimal(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errors.New("not a number")
	}
	return v, nil
}

// Seed reads a seed.
func Seed(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, errors.New("not a whole number from 0 to 2^64-1")
	}
	return v, nil
}

// OneOf is the error of a value that is none of the words.
func OneOf(words []string) error {
	return errors.New("must be one of " + strings.Join(words, ", "))
}

// Methods are the methods in the order of the help.
var Methods = []string{"qmf", "qmfq", "nmf", "bqmf"}

// NotTried are options that fits from which values are hidden do not take or need, and Shared those that also
// hold for an NMF beside such a fit.
var (
	NotTried = []option.Kind{option.Missing, option.Strict, option.Restarts}
	Shared   = []option.Kind{option.Loss, option.Seed}
)

// Method returns the method of a name, that of qmf for a name that is none of Methods.
func Method(name string) quantmf.Method {
	m := quantmf.MethodQMF
	_ = m.UnmarshalText([]byte(name)) // which leaves m as it was for another name
	return m
}

// Fit runs the fit of a method, qmf where the name is none of Methods.
func Fit(ctx context.Context, method string, x quantmf.Rows, rank int,
	options ...quantmf.FitOption) (quantmf.Model, error) {
	return quantmf.Fit(ctx, Method(method), x, rank, options...)
}

// MethodOf returns the name of the method of a model.
func MethodOf(m quantmf.Model) string {
	switch m.(type) {
	case *quantmf.NMF:
		return "nmf"
	case *quantmf.QMFQ:
		return "qmfq"
	case *quantmf.BQMF:
		return "bqmf"
	}
	return "qmf"
}

// Factorisation returns the part that all models have.
func Factorisation(m quantmf.Model) *quantmf.Factorisation {
	switch m := m.(type) {
	case *quantmf.NMF:
		return &m.Factorisation
	case *quantmf.QMF:
		return &m.Factorisation
	case *quantmf.QMFQ:
		return &m.Factorisation
	}
	return &m.(*quantmf.BQMF).Factorisation
}
