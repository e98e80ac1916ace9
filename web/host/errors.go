//go:build js && wasm

package host

// This file tells errors of the package to JavaScript.

import (
	"errors"

	"github.com/quantmf/quantmf"
)

// Described returns an error of the package as an object with its kind and its fields. The object is empty
// for an error of another kind.
func Described(err error) map[string]any {
	e := map[string]any{}
	var option *quantmf.OptionError
	var data *quantmf.DataError
	var shape *quantmf.ShapeError
	var format *quantmf.FormatError
	var convergence *quantmf.ConvergenceError
	switch {
	case errors.As(err, &option):
		e["kind"], e["option"], e["value"], e["bound"] = "OptionError", option.Option, option.Value,
			option.Bound
	case errors.As(err, &data):
		e["kind"], e["row"], e["column"], e["value"], e["problem"] = "DataError", data.Row, data.Col,
			data.Value, data.Problem
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
