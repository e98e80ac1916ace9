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

// fault is an error that ends a call: [Call.Answer] returns it. So what reads an argument, or makes a part of
// a result, returns that alone.
type fault struct{ error }

func check(err error) {
	if err != nil {
		panic(fault{err})
	}
}

// got is the result of what may have an error.
func got[T any](v T, err error) T {
	check(err)
	return v
}

func (c Call) text(name string) string {
	if v := c.Args.Field(name); v.Type() != None {
		return v.Text()
	}
	return ""
}

func (c Call) whole(name string) int { return whole(name, c.Args.Field(name)) }

func (c Call) decimal(name string) float64 { return decimal(name, c.Args.Field(name)) }

// numbers returns the argument of this name, nil where there is none.
func (c Call) numbers(name string) []float64 {
	if v := c.Args.Field(name); v.Type() != None {
		return numbers(name, v)
	}
	return nil
}

func (c Call) rows(name string) quantmf.Rows { return rows(name, c.Args.Field(name)) }

func (c Call) matrix(name string) quantmf.Mat { return matrix(name, c.Args.Field(name)) }

func (c Call) texts(name string) []string {
	v := c.Args.Field(name)
	t, is := v.Texts()
	need(is, name, v, "a list of texts")
	return t
}

// model reads the model whose file is the argument "model".
func (c Call) model() quantmf.Model { return model("model", c.Args.Field("model")) }

func decimal(name string, v Value) float64 {
	if v.Type() != Number {
		check(noNumber(name, v, "must be a number"))
	}
	return v.Float()
}

func model(name string, v Value) quantmf.Model {
	file, is := v.Bytes()
	need(is, name, v, "the bytes of a model's file")
	return got(quantmf.UnmarshalModel(file))
}

func numbers(name string, v Value) []float64 {
	x, is := v.Numbers()
	need(is, name, v, "a list of numbers")
	return x
}

func rows(name string, v Value) quantmf.Rows {
	x, is, err := v.Rows()
	need(is, name, v, "a matrix")
	return got(x, err)
}

// matrix returns a matrix that is held in full.
func matrix(name string, v Value) quantmf.Mat {
	x := rows(name, v)
	if m, is := x.(quantmf.Mat); is {
		return m
	}
	d, n := x.Dims()
	m := quantmf.NewMat(d, n)
	for i := range d {
		check(x.ReadRow(m.Row(i), i))
	}
	return m
}

// whole returns a whole number that fits into an int on every platform.
func whole(name string, v Value) int {
	if v.Type() == Number {
		if f := v.Float(); f == float64(int32(f)) {
			return int(f)
		}
	}
	panic(fault{noNumber(name, v, "must be a whole number below 2^31")})
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

// need refuses an argument that is of another kind than wanted.
func need(is bool, name string, v Value, want string) {
	if is {
		return
	}
	got := [...]string{None: "nothing", Bool: "a truth value", Number: "a number", Text: "a text",
		Object: "another object"}[v.Type()]
	check(&quantmf.ShapeError{What: name, Got: got, Want: want})
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
