package calls

// This file holds the options, by their declarations (internal/option). Their names are those of package
// quantmf without With, and their values that are words are those of the command's flags.

import (
	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
)

// setting makes an option of a kind from its value. Options that only operators take are among them.
func setting(k option.Kind, v Value) quantmf.FitOption {
	name := k.JavaScript()
	refuse := func(bound string) { check(wrong(name, v, bound)) }
	switch k {
	case option.Init:
		if v.Type() != Object {
			refuse("must be {u, v}")
		}
		return quantmf.WithInit(matrix(name+".u", v.Field("u")), matrix(name+".v", v.Field("v")))
	case option.Model:
		return quantmf.WithModel(model(name, v))
	case option.FixedU:
		return quantmf.WithFixedU(matrix(name, v))
	case option.Penalties:
		w := numbers(name, v)
		if len(w) != 4 {
			refuse("must be four numbers: L1U, L1V, L2U, L2V")
		}
		return quantmf.WithPenalties(quantmf.Penalties{L1U: w[0], L1V: w[1], L2U: w[2], L2V: w[3]})
	case option.SampleWeights:
		return quantmf.WithSampleWeights(numbers(name, v))
	case option.Discrete:
		w := numbers(name, v)
		rows := make([]int, len(w))
		for k, row := range w {
			if rows[k] = int(int32(row)); float64(rows[k]) != row {
				refuse("must be whole numbers below 2^31")
			}
		}
		return quantmf.WithDiscrete(rows...)
	case option.CellWeights:
		return quantmf.WithCellWeights(rows(name, v))
	case option.Weights:
		return quantmf.WithWeights(numbers(name, v))
	case option.Targets:
		return quantmf.WithTargets(numbers(name, v))
	case option.TargetWeights:
		return quantmf.WithTargetWeights(numbers(name, v))
	case option.Loss:
		if v.Type() != Number && v.Text() != "kl" && v.Text() != "frobenius" {
			refuse("must be kl, frobenius or the β of a divergence")
		}
	}
	switch k.Form() {
	case option.Whole:
		whole(name, v)
	case option.Decimal:
		decimal(name, v)
	case option.Switch:
		if v.Type() != Bool {
			refuse("must be true or false")
		}
	}
	o, err := settings.Parse(k, v.Text())
	if err != nil {
		refuse(err.Error())
	}
	return o
}

// Given tells whether a call can give an option: what can be written, lists of numbers and matrices.
func Given(k option.Kind) bool {
	return settings.Parses(k) || k.Form() == option.Numbers || k == option.Init || k == option.Model ||
		k == option.FixedU || k == option.CellWeights
}

// kindOf returns the option of this name, and whether a call can give it.
func kindOf(name string) (option.Kind, bool) {
	for k := range option.Kinds {
		if k.JavaScript() == name {
			return k, Given(k)
		}
	}
	return 0, false
}

// options returns the options of a fit, in the order of their names.
func (c Call) options() []quantmf.FitOption {
	return c.those(^option.Set(0))
}

// those returns the options of a fit of the kinds that are wanted.
func (c Call) those(wanted option.Set) (opts []quantmf.FitOption) {
	given := c.Args.Field("options")
	need(given.Type() == Object || given.Type() == None, "options", given, "an object")
	for _, name := range given.Fields() {
		v := given.Field(name)
		if v.Type() == None {
			continue
		}
		k, known := kindOf(name)
		if !known {
			check(wrong(name, v, "there is no such option"))
		}
		if o := setting(k, v); o != nil && wanted.Has(k) {
			opts = append(opts, o)
		}
	}
	return opts
}

// settings returns the options of an operator.
func (c Call) settings() (opts []quantmf.Option) {
	for _, o := range c.options() {
		own, ok := o.(quantmf.Option)
		if !ok {
			check(&quantmf.OptionError{Option: "options", Bound: "an operator takes no option of fits"})
		}
		opts = append(opts, own)
	}
	return opts
}
