//go:build js && wasm

package main

// This file holds the options. Their names in JavaScript are those of package quantmf
// without With, and their values that are words are those of the command's flags.

import (
	"strconv"
	"strings"
	"syscall/js"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/web/host"
)

// setting makes an option from its value.
type setting func(name string, v js.Value) (quantmf.FitOption, error)

// settings has the options of fits, some of which operators have as well, and the options of operators.
var settings = map[string]setting{
	"epsilon": decimal(quantmf.WithEpsilon),
	"squash": choice(quantmf.WithSquash, []string{"logistic", "none", "logisticUnit", "arctan"},
		quantmf.SquashLogistic, quantmf.SquashNone, quantmf.SquashLogisticUnit, quantmf.SquashArctan),
	"tolerance":     decimal(quantmf.WithTolerance),
	"maxIterations": whole(quantmf.WithMaxIterations),
	"strict":        on(quantmf.WithStrict),
	"levels":        whole(quantmf.WithLevels),
	"epochs":        whole(quantmf.WithEpochs),
	"seed": func(name string, v js.Value) (quantmf.FitOption, error) {
		seed, err := strconv.ParseUint(text(v), 10, 64)
		if err != nil {
			return nil, wrong(name, v, "must be a whole number from 0 to 2^64-1")
		}
		return quantmf.WithSeed(seed), nil
	},
	"loss": func(name string, v js.Value) (quantmf.FitOption, error) {
		switch {
		case v.Type() == js.TypeNumber:
			return quantmf.WithLoss(quantmf.Beta(v.Float())), nil
		case text(v) == "kl":
			return quantmf.WithLoss(quantmf.KL), nil
		case text(v) == "frobenius":
			return quantmf.WithLoss(quantmf.Frobenius), nil
		}
		return nil, wrong(name, v, "must be kl, frobenius or the β of a divergence")
	},
	"patience":      whole(quantmf.WithPatience),
	"restarts":      whole(quantmf.WithRestarts),
	"validation":    decimal(quantmf.WithValidation),
	"missingValues": on(quantmf.WithMissingValues),
	"start": choice(quantmf.WithStart, []string{"auto", "scores", "nmf", "uniform", "svd"},
		quantmf.StartAuto, quantmf.StartScores, quantmf.StartNMF, quantmf.StartUniform, quantmf.StartSVD),
	"penalty": decimal(quantmf.WithPenalty),
	"updates": choice(quantmf.WithUpdates, []string{"newton", "multiplicative"},
		quantmf.UpdatesNewton, quantmf.UpdatesMultiplicative),
	"learningRate": decimal(quantmf.WithLearningRate),
	"schedule": choice(quantmf.WithSchedule, []string{"cosine", "constant"},
		quantmf.ScheduleCosine, quantmf.ScheduleConstant),
	"ends":      choice(quantmf.WithEnds, []string{"free", "pinned"}, quantmf.EndsFree, quantmf.EndsPinned),
	"batch":     whole(quantmf.WithBatch),
	"shrinkage": decimal(quantmf.WithShrinkage),
	"projection": func(name string, v js.Value) (quantmf.FitOption, error) {
		kind, count, _ := strings.Cut(text(v), ":")
		n, err := strconv.Atoi(count)
		switch {
		case text(v) == "svd":
			return quantmf.WithProjection(quantmf.TruncatedSVD()), nil
		case err == nil && kind == "kl":
			return quantmf.WithProjection(quantmf.KLUpdates(n)), nil
		case err == nil && kind == "frobenius":
			return quantmf.WithProjection(quantmf.FrobeniusUpdates(n)), nil
		}
		return nil, wrong(name, v, "must be kl:N, frobenius:N or svd")
	},
	"init": func(name string, v js.Value) (quantmf.FitOption, error) {
		if v.Type() != js.TypeObject {
			return nil, wrong(name, v, "must be {u, v}")
		}
		return quantmf.WithInit(host.Matrix(v.Get("u")), host.Matrix(v.Get("v"))), nil
	},

	// Only operators have the following options.
	"weights":       list(quantmf.WithWeights),
	"targets":       list(quantmf.WithTargets),
	"targetWeights": list(quantmf.WithTargetWeights),
	"iterations":    whole(quantmf.WithIterations),
	"midpointRanks": on(quantmf.WithMidpointRanks),
}

// options returns the options in the argument of this name, in the order of their names.
func (c call) options() (opts []quantmf.FitOption, err error) {
	given := c.Args.Get("options")
	names := js.Global().Get("Object").Call("keys", given).Call("sort")
	for i := range names.Length() {
		name := names.Index(i).String()
		v := given.Get(name)
		if v.IsUndefined() {
			continue
		}
		with, known := settings[name]
		if !known {
			return nil, wrong(name, v, "there is no such option")
		}
		o, err := with(name, v)
		if err != nil {
			return nil, err
		}
		if o != nil {
			opts = append(opts, o)
		}
	}
	return opts, nil
}

// operator returns the options of an operator.
func (c call) operator() (opts []quantmf.Option, err error) {
	all, err := c.options()
	for _, o := range all {
		own, ok := o.(quantmf.Option)
		if !ok {
			return nil, &quantmf.OptionError{Option: "options", Bound: "an operator takes no option of fits"}
		}
		opts = append(opts, own)
	}
	return opts, err
}

// optionName returns the name in JavaScript of an option whose name in Go is in an error.
func optionName(s string) string {
	s, with := strings.CutPrefix(s, "With")
	if !with || s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func wrong(name string, v js.Value, bound string) error {
	return &quantmf.OptionError{Option: name, Value: text(v), Bound: bound}
}

// noNumber is the error of a value where a number is wanted. A text, which may look like a number, is shown
// in quotation marks.
func noNumber(name string, v js.Value, bound string) error {
	if v.Type() == js.TypeString {
		return &quantmf.OptionError{Option: name, Value: strconv.Quote(v.String()), Bound: bound}
	}
	return wrong(name, v, bound)
}

// text returns a value as JavaScript writes it.
func text(v js.Value) string {
	if v.Type() == js.TypeString {
		return v.String()
	}
	return js.Global().Call("String", v).String()
}

// wholeOf returns a whole number that fits into an int.
func wholeOf(name string, v js.Value) (int, error) {
	if v.Type() == js.TypeNumber {
		if f := v.Float(); f == float64(int32(f)) {
			return int(f), nil
		}
	}
	return 0, noNumber(name, v, "must be a whole number below 2^31")
}

func whole[O quantmf.FitOption](with func(int) O) setting {
	return func(name string, v js.Value) (quantmf.FitOption, error) {
		n, err := wholeOf(name, v)
		if err != nil {
			return nil, err
		}
		return with(n), nil
	}
}

func decimal[O quantmf.FitOption](with func(float64) O) setting {
	return func(name string, v js.Value) (quantmf.FitOption, error) {
		if v.Type() != js.TypeNumber {
			return nil, noNumber(name, v, "must be a number")
		}
		return with(v.Float()), nil
	}
}

// on makes an option that is true or false.
func on[O quantmf.FitOption](with func() O) setting {
	return func(name string, v js.Value) (quantmf.FitOption, error) {
		if v.Type() != js.TypeBoolean {
			return nil, wrong(name, v, "must be true or false")
		}
		if !v.Bool() {
			return nil, nil
		}
		return with(), nil
	}
}

func list(with func([]float64) quantmf.Option) setting {
	return func(name string, v js.Value) (quantmf.FitOption, error) {
		if v.Type() != js.TypeObject {
			return nil, wrong(name, v, "must be a list of numbers")
		}
		return with(host.Numbers(v)), nil
	}
}

func choice[T any, O quantmf.FitOption](with func(T) O, words []string, values ...T) setting {
	return func(name string, v js.Value) (quantmf.FitOption, error) {
		for i, w := range words {
			if text(v) == w {
				return with(values[i]), nil
			}
		}
		return nil, wrong(name, v, "must be one of "+strings.Join(words, ", "))
	}
}
