package calls

// This file holds the options, by their declarations (internal/option). Their names are those of package
// quantmf without With, and their values that are words are those of the command's flags.

import (
	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
)

// setting makes an option of a kind from its value. Options that only operators take are among them.
func setting(k option.Kind, v Value) (quantmf.FitOption, error) {
	name := k.JavaScript()
	switch k {
	case option.Init:
		if v.Type() != Object {
			return nil, wrong(name, v, "must be {u, v}")
		}
		u, err := matrix(name+".u", v.Field("u"))
		if err != nil {
			return nil, err
		}
		w, err := matrix(name+".v", v.Field("v"))
		return quantmf.WithInit(u, w), err
	case option.Model:
		return read(model, quantmf.WithModel, name, v)
	case option.FixedU:
		return read(matrix, quantmf.WithFixedU, name, v)
	case option.Penalties:
		w, err := numbers(name, v)
		if err != nil {
			return nil, err
		}
		if len(w) != 4 {
			return nil, wrong(name, v, "must be four numbers: L1U, L1V, L2U, L2V")
		}
		return quantmf.WithPenalties(quantmf.Penalties{L1U: w[0], L1V: w[1], L2U: w[2], L2V: w[3]}), nil
	case option.SampleWeights:
		return read(numbers, quantmf.WithSampleWeights, name, v)
	case option.Discrete:
		w, err := numbers(name, v)
		if err != nil {
			return nil, err
		}
		rows := make([]int, len(w))
		for k, row := range w {
			if rows[k] = int(int32(row)); float64(rows[k]) != row {
				return nil, wrong(name, v, "must be whole numbers below 2^31")
			}
		}
		return quantmf.WithDiscrete(rows...), nil
	case option.CellWeights:
		return read(rows, quantmf.WithCellWeights, name, v)
	case option.Weights:
		return read(numbers, quantmf.WithWeights, name, v)
	case option.Targets:
		return read(numbers, quantmf.WithTargets, name, v)
	case option.TargetWeights:
		return read(numbers, quantmf.WithTargetWeights, name, v)
	case option.Loss:
		if v.Type() != Number && v.Text() != "kl" && v.Text() != "frobenius" {
			return nil, wrong(name, v, "must be kl, frobenius or the β of a divergence")
		}
	}
	switch k.Form() {
	case option.Whole:
		if _, err := whole(name, v); err != nil {
			return nil, err
		}
	case option.Decimal:
		if v.Type() != Number {
			return nil, noNumber(name, v, "must be a number")
		}
	case option.Switch:
		if v.Type() != Bool {
			return nil, wrong(name, v, "must be true or false")
		}
	}
	o, err := settings.Parse(k, v.Text())
	if err != nil {
		return nil, wrong(name, v, err.Error())
	}
	return o, nil
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
func (c *reader) options() []quantmf.FitOption {
	return c.those(^option.Set(0))
}

// those returns the options of a fit of the kinds that are wanted.
func (c *reader) those(wanted option.Set) []quantmf.FitOption {
	return take(c, "options", func(name string, given Value) (opts []quantmf.FitOption, err error) {
		if given.Type() != Object && given.Type() != None {
			return nil, other(name, given, "an object")
		}
		for _, name := range given.Fields() {
			v := given.Field(name)
			if v.Type() == None {
				continue
			}
			k, known := kindOf(name)
			if !known {
				return nil, wrong(name, v, "there is no such option")
			}
			o, err := setting(k, v)
			if err != nil {
				return nil, err
			}
			if o != nil && wanted.Has(k) {
				opts = append(opts, o)
			}
		}
		return opts, nil
	})
}

// settings returns the options of an operator.
func (c *reader) settings() (opts []quantmf.Option) {
	for _, o := range c.options() {
		own, ok := o.(quantmf.Option)
		if !ok {
			c.fail(&quantmf.OptionError{Option: "options", Bound: "an operator takes no option of fits"})
			break
		}
		opts = append(opts, own)
	}
	return opts
}

// read makes an option of a value of one kind.
func read[T any, O quantmf.FitOption](value func(name string, v Value) (T, error), with func(T) O,
	name string, v Value) (quantmf.FitOption, error) {
	x, err := value(name, v)
	return with(x), err
}
