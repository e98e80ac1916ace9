package quantmf

// This file holds the typed errors. Bad input never panics and is never
// silently mended: a function returns one of these errors, which says what is wrong and where.

import (
	"strconv"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/section"
)

// OptionError reports an option with a value that it cannot have, an option the
// called function has no use for, or two options that contradict each other.
type OptionError struct {
	Option string // the name of the function that made it, such as "WithEpsilon"
	Value  string // the value given
	Bound  string // what the value must be, or why the option cannot stand here
}

func (e *OptionError) Error() string { return (*fit.OptionError)(e).Error() }

// DataError reports a number in the data, or in a field of a model, that cannot be used. Row and
// Col count from 0 and are -1 where they do not apply. Value is the number, NaN where no single
// number is at fault.
type DataError struct {
	Row, Col int
	Value    float64
	Problem  string
}

func (e *DataError) Error() string { return (*fit.DataError)(e).Error() }

// ShapeError reports lengths or sizes that do not fit.
type ShapeError struct {
	What string // the argument, such as "x"
	Got  string // its size
	Want string // the size it must have
}

func (e *ShapeError) Error() string {
	return "quantmf: " + e.What + ": got " + e.Got + ", want " + e.Want
}

// ReadError reports a row of a matrix that could not be read. It wraps the error of [Rows].
type ReadError struct {
	Row int // from 0
	Err error
}

func (e *ReadError) Error() string { return (*fit.ReadError)(e).Error() }
func (e *ReadError) Unwrap() error { return e.Err }

// FormatError reports a model file or a checkpoint that is damaged or of another kind.
type FormatError struct {
	Offset  int64 // where, in bytes from the start
	Problem string
}

func (e *FormatError) Error() string {
	return "quantmf: model file, byte " + strconv.FormatInt(e.Offset, 10) + ": " + e.Problem
}

// ConvergenceError reports a transport that did not reach its tolerance. It is returned
// under [WithStrict] alone; otherwise a model has it among its Warnings, and a
// [Transport] says so by Converged.
type ConvergenceError struct {
	Row           int     // the row of the matrix, from 0; -1 for a single vector
	Iterations    int     // the passes made over the row
	MarginalError float64 // max_j |c_j-b_j|/b_j, as reached
	Tolerance     float64 // the value of WithTolerance that was not reached
}

func (e *ConvergenceError) Error() string {
	s := "quantmf: "
	if e.Row >= 0 {
		s += "row " + itoa(e.Row) + ": "
	}
	return s + "transport at a relative column error of " + ftoa(e.MarginalError) + " after " +
		itoa(e.Iterations) + " passes, wanted " + ftoa(e.Tolerance)
}

// public returns an error of internal/fit or internal/section as the type that callers know, within what
// stopped a fit, too.
func public(err error) error {
	switch e := err.(type) {
	case *fit.DataError:
		return (*DataError)(e)
	case *fit.OptionError:
		return (*OptionError)(e)
	case *fit.ReadError:
		if named, is := e.Err.(*ReadError); is { // by a matrix that is made from another one
			return named
		}
		return (*ReadError)(e)
	case *section.Error:
		return (*FormatError)(e)
	case *fit.Stopped:
		return &fit.Stopped{Epoch: e.Epoch, Err: public(e.Err)}
	}
	return err
}

func itoa(i int) string     { return strconv.Itoa(i) }
func utoa(i uint64) string  { return strconv.FormatUint(i, 10) }
func ftoa(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// interrupted wraps what ended the work on new samples, or on rows.
type interrupted struct{ err error }

func (e *interrupted) Error() string { return "quantmf: interrupted: " + e.err.Error() }
func (e *interrupted) Unwrap() error { return e.err }
