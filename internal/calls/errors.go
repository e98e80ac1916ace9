package calls

// This file tells errors of the package to other languages.

import (
	"errors"
	"strings"

	"github.com/quantmf/quantmf"
)

// Described returns an error as an object with its kind, its message and the fields of its type. An error
// that is none of the package's has the kind Error.
func Described(err error) map[string]any {
	e := map[string]any{"kind": "Error", "message": err.Error()}
	var option *quantmf.OptionError
	var data *quantmf.DataError
	var shape *quantmf.ShapeError
	var format *quantmf.FormatError
	var convergence *quantmf.ConvergenceError
	switch {
	case errors.As(err, &option):
		said := camel(option.Option)
		e["kind"], e["option"], e["value"], e["bound"] = "OptionError", said, option.Value, option.Bound
		if option.Value != "" {
			said += " " + option.Value
		}
		e["message"] = "quantmf: " + said + ": " + option.Bound
	case errors.As(err, &data):
		e["kind"], e["row"], e["column"], e["value"] = "DataError", data.Row, data.Col, data.Value
		e["problem"], e["message"] = options(data.Problem), options(err.Error())
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

// options writes a text that names options of Go as calls name them.
func options(text string) string {
	text = strings.Replace(text, "WithMissingValues takes", "missingValues: true takes", 1)
	return strings.Replace(text, "WithLoss(Frobenius) takes", "loss: 'frobenius' takes", 1)
}
