package fit

// This file holds the errors of fits. The root package has types of its own with the same fields, which are
// documented there: it hands out an error of this package as one of these.

import "strconv"

// DataError reports a number in the data that cannot be used. Row and Col count from 0 and are -1 where they
// do not apply. Value is the number, NaN where no single number is at fault.
type DataError struct {
	Row, Col int
	Value    float64
	Problem  string
}

func (e *DataError) Error() string {
	s := "quantmf: "
	if e.Row >= 0 {
		s += "row " + strconv.Itoa(e.Row) + ", "
	}
	if e.Col >= 0 {
		s += "column " + strconv.Itoa(e.Col) + ", "
	}
	if e.Row < 0 && e.Col < 0 && e.Value != e.Value {
		return s + e.Problem
	}
	if e.Row >= 0 || e.Col >= 0 {
		s += "value "
	}
	return s + ftoa(e.Value) + ": " + e.Problem
}

// OptionError reports an option with a value that it cannot have.
type OptionError struct {
	Option string // the name of the function that made it, such as "WithEpsilon"
	Value  string // the value given
	Bound  string // what the value must be, or why the option cannot stand here
}

func (e *OptionError) Error() string {
	return "quantmf: " + e.Option + "(" + e.Value + "): " + e.Bound
}

// ReadError reports a row that could not be read.
type ReadError struct {
	Row int // from 0
	Err error
}

func (e *ReadError) Error() string {
	if e.Err == nil {
		return "quantmf: row " + strconv.Itoa(e.Row) + " could not be read"
	}
	return "quantmf: row " + strconv.Itoa(e.Row) + " could not be read: " + e.Err.Error()
}
func (e *ReadError) Unwrap() error { return e.Err }

// readError is the error of row i whose reading has failed with err, that of a weight being its own.
func readError(i int, err error) error {
	switch err.(type) {
	case *DataError, *ReadError:
		return err
	}
	return &ReadError{i, err}
}

// Stopped wraps the error that ended a fit early.
type Stopped struct {
	Epoch int
	Err   error
}

func (s *Stopped) Error() string {
	return "quantmf: stopped after epoch " + strconv.Itoa(s.Epoch) + ": " + s.Err.Error()
}
func (s *Stopped) Unwrap() error { return s.Err }

// StoppedAt wraps an error with the number of epochs after which it stopped a fit, in place of the number
// that a fit within it has given.
func StoppedAt(epoch int, err error) error {
	if s, ok := err.(*Stopped); ok {
		err = s.Err
	}
	return &Stopped{epoch, err}
}

func ftoa(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
