//go:build js && wasm

// Engine is the package for JavaScript: fits, what models do, and operators. It runs in a
// worker, which js/worker.js starts; js/index.js is what people call, and ../host says how
// calls come here. It imports no fmt.
package main

import (
	"errors"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/web/host"
)

func main() { host.Serve(calls, described) }

// described is an error of the package as an object: its kind, its text and its fields.
func described(err error) map[string]any {
	e := map[string]any{}
	var option *quantmf.OptionError
	var data *quantmf.DataError
	var shape *quantmf.ShapeError
	var format *quantmf.FormatError
	var convergence *quantmf.ConvergenceError
	switch {
	case errors.As(err, &option):
		name := optionName(option.Option)
		e["kind"], e["option"], e["value"], e["bound"] = "OptionError", name, option.Value, option.Bound
		e["message"] = "quantmf: " + name + " " + option.Value + ": " + option.Bound
	case errors.As(err, &data):
		e["kind"], e["row"], e["column"], e["value"], e["problem"] = "DataError", data.Row, data.Col, data.Value, data.Problem
	case errors.As(err, &shape):
		e["kind"], e["what"], e["got"], e["want"] = "ShapeError", shape.What, shape.Got, shape.Want
	case errors.As(err, &format):
		e["kind"], e["offset"], e["problem"] = "FormatError", float64(format.Offset), format.Problem
	case errors.As(err, &convergence):
		e["kind"], e["row"], e["iterations"] = "ConvergenceError", convergence.Row, convergence.Iterations
		e["marginalError"], e["tolerance"] = convergence.MarginalError, convergence.Tolerance
	}
	return e
}

// call is a call with what this module reads of its arguments.
type call struct{ host.Call }

// whole is the argument of that name.
func (c call) whole(name string) (int, error) { return wholeOf(name, c.Args.Get(name)) }

func itoa(i int) string { return strconv.Itoa(i) }
