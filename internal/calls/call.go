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
	Bool() bool

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

func (c Call) text(name string) string {
	if v := c.Args.Field(name); v.Type() != None {
		return v.Text()
	}
	return ""
}

func (c Call) whole(name string) (int, error) { return whole(name, c.Args.Field(name)) }

func (c Call) decimal(name string) (float64, error) {
	v := c.Args.Field(name)
	if v.Type() != Number {
		return 0, noNumber(name, v, "must be a number")
	}
	return v.Float(), nil
}

// numbers returns the argument of this name, nil where there is none.
func (c Call) numbers(name string) ([]float64, error) {
	v := c.Args.Field(name)
	if v.Type() == None {
		return nil, nil
	}
	return numbers(name, v)
}

func (c Call) rows(name string) (quantmf.Rows, error) { return rows(name, c.Args.Field(name)) }

func (c Call) matrix(name string) (quantmf.Mat, error) { return matrix(name, c.Args.Field(name)) }

func (c Call) texts(name string) ([]string, error) {
	v := c.Args.Field(name)
	t, is := v.Texts()
	if !is {
		return nil, other(name, v, "a list of texts")
	}
	return t, nil
}

// model reads the model whose file is the argument "model".
func (c Call) model() (quantmf.Model, error) { return model("model", c.Args.Field("model")) }

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
