package calls

// This file holds the arguments of a call, and what is wrong with one of another kind than wanted.

import (
	"context"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// Type is the type of a value.
type Type uint8

const (
	None   Type = iota // nothing was given
	Bool               // true or false
	Number             // a float64
	Text               // a text
	Object             // all else: fields, lists, matrices, bytes
)

// Value is an argument in the form of another language. Each method is for values of some types; the last
// four return false for a value that is none of theirs, and Rows an error for a matrix that is damaged.
type Value interface {
	Type() Type
	Text() string // the value as its language writes it, of any type
	Float() float64

	Fields() []string // the names of an object's fields, in their order
	Field(name string) Value

	Numbers() ([]float64, bool)
	Rows() (x quantmf.Rows, is bool, err error)
	Bytes() ([]byte, bool)
	Texts() ([]string, bool)
}

// Host is who brings a call.
type Host interface {
	// Progress hears how far a call is.
	Progress(phase string, done float64, epoch, epochs int, loss float64)
	// Room returns an error if a fit of a d × n matrix that takes so many bytes has no place; least is what
	// a fit of rank 1 would take.
	Room(d, n int, need, least int64) error
}

// Call is a call that is being answered.
type Call struct {
	Ctx  context.Context
	Args Value
	Host Host
}

// reader reads the arguments of a call. Its methods return nothing from the first error on, which err keeps.
type reader struct {
	Call
	err error
}

func (c *reader) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// take reads the argument of this name.
func take[T any](c *reader, name string, read func(name string, v Value) (T, error)) (t T) {
	if c.err == nil {
		t, c.err = read(name, c.Args.Field(name))
	}
	return t
}

func (c *reader) text(name string) string {
	if v := c.Args.Field(name); v.Type() != None {
		return v.Text()
	}
	return ""
}

func (c *reader) whole(name string) int { return take(c, name, whole) }

func (c *reader) decimal(name string) float64 { return take(c, name, decimal) }

// numbers returns the argument of this name, nil where there is none.
func (c *reader) numbers(name string) []float64 {
	if c.Args.Field(name).Type() == None {
		return nil
	}
	return take(c, name, numbers)
}

func (c *reader) rows(name string) quantmf.Rows { return take(c, name, rows) }

func (c *reader) matrix(name string) quantmf.Mat { return take(c, name, matrix) }

func (c *reader) texts(name string) []string { return take(c, name, texts) }

// model reads the model whose file is the argument "model".
func (c *reader) model() quantmf.Model { return take(c, "model", model) }

func decimal(name string, v Value) (float64, error) {
	if v.Type() != Number {
		return 0, noNumber(name, v, "must be a number")
	}
	return v.Float(), nil
}

func texts(name string, v Value) ([]string, error) {
	t, is := v.Texts()
	if !is {
		return nil, other(name, v, "a list of texts")
	}
	return t, nil
}

func model(name string, v Value) (quantmf.Model, error) {
	file, is := v.Bytes()
	if !is {
		return nil, other(name, v, "the bytes of a model's file")
	}
	return quantmf.UnmarshalModel(file)
}

func numbers(name string, v Value) ([]float64, error) {
	x, is := v.Numbers()
	if !is {
		return nil, other(name, v, "a list of numbers")
	}
	return x, nil
}

func rows(name string, v Value) (quantmf.Rows, error) {
	x, is, err := v.Rows()
	if !is {
		return nil, other(name, v, "a matrix")
	}
	return x, err
}

// matrix returns a matrix that is held in full.
func matrix(name string, v Value) (quantmf.Mat, error) {
	x, err := rows(name, v)
	if err != nil {
		return quantmf.Mat{}, err
	}
	if m, is := x.(quantmf.Mat); is {
		return m, nil
	}
	d, n := x.Dims()
	m := quantmf.NewMat(d, n)
	for i := range d {
		if err := x.ReadRow(m.Row(i), i); err != nil {
			return quantmf.Mat{}, err
		}
	}
	return m, nil
}

// whole returns a whole number that fits into an int on every platform.
func whole(name string, v Value) (int, error) {
	if v.Type() == Number {
		if f := v.Float(); f == float64(int32(f)) {
			return int(f), nil
		}
	}
	return 0, noNumber(name, v, "must be a whole number below 2^31")
}

func wrong(name string, v Value, bound string) error {
	return &quantmf.OptionError{Option: name, Value: v.Text(), Bound: bound}
}

// noNumber is the error of a value where a number is wanted. A text, which may look like a number, is shown
// in quotation marks.
func noNumber(name string, v Value, bound string) error {
	if v.Type() == Text {
		return &quantmf.OptionError{Option: name, Value: strconv.Quote(v.Text()), Bound: bound}
	}
	return wrong(name, v, bound)
}

// other is the error of an argument of another kind than wanted.
func other(name string, v Value, want string) error {
	got := [...]string{None: "nothing", Bool: "a truth value", Number: "a number", Text: "a text",
		Object: "another object"}[v.Type()]
	return &quantmf.ShapeError{What: name, Got: got, Want: want}
}

// camel returns the name that other languages have for an option whose name in Go is in an error.
func camel(s string) string {
	s, with := strings.CutPrefix(s, "With")
	if !with || s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func itoa(i int) string { return strconv.Itoa(i) }
