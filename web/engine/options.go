//go:build js && wasm

package main

// This file holds the options, by their declarations (internal/option). Their names in JavaScript are those
// of package quantmf without With, and their values that are words are those of the command's flags.

import (
	"strconv"
	"strings"
	"syscall/js"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/web/host"
)

// setting makes an option of a kind from its value. Options that only operators take are among them.
func setting(k option.Kind, v js.Value) (quantmf.FitOption, error) {
	name := k.JavaScript()
	switch k {
	case option.Init:
		if v.Type() != js.TypeObject {
			return nil, wrong(name, v, "must be {u, v}")
		}
		return quantmf.WithInit(host.Matrix(v.Get("u")), host.Matrix(v.Get("v"))), nil
	case option.Weights:
		return list(quantmf.WithWeights, name, v)
	case option.Targets:
		return list(quantmf.WithTargets, name, v)
	case option.TargetWeights:
		return list(quantmf.WithTargetWeights, name, v)
	case option.Loss:
		if v.Type() != js.TypeNumber && text(v) != "kl" && text(v) != "frobenius" {
			return nil, wrong(name, v, "must be kl, frobenius or the β of a divergence")
		}
	}
	switch k.Form() {
	case option.Whole:
		if _, err := wholeOf(name, v); err != nil {
			return nil, err
		}
	case option.Decimal:
		if v.Type() != js.TypeNumber {
			return nil, noNumber(name, v, "must be a number")
		}
	case option.Switch:
		if v.Type() != js.TypeBoolean {
			return nil, wrong(name, v, "must be true or false")
		}
	}
	o, err := settings.Parse(k, text(v))
	if err != nil {
		return nil, wrong(name, v, err.Error())
	}
	return o, nil
}

// kinds has the options that JavaScript can give, under their names there.
var kinds = map[string]option.Kind{}

func init() {
	for k := range option.Kinds {
		if settings.Parses(k) || k.Form() == option.Numbers || k == option.Init {
			kinds[k.JavaScript()] = k
		}
	}
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
		k, known := kinds[name]
		if !known {
			return nil, wrong(name, v, "there is no such option")
		}
		o, err := setting(k, v)
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

func list(with func([]float64) quantmf.Option, name string, v js.Value) (quantmf.FitOption, error) {
	if v.Type() != js.TypeObject {
		return nil, wrong(name, v, "must be a list of numbers")
	}
	return with(host.Numbers(v)), nil
}
