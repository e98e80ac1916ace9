//go:build js && wasm

package main

// This file holds arguments in the form of JavaScript.

import (
	"syscall/js"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/calls"
	"github.com/quantmf/quantmf/web/host"
)

// value is an argument. js/index.js checks the arguments before they are sent, so that a value is of the kind
// that a call wants.
type value struct{ js.Value }

func (v value) Type() calls.Type {
	switch v.Value.Type() {
	case js.TypeUndefined:
		return calls.None
	case js.TypeBoolean:
		return calls.Bool
	case js.TypeNumber:
		return calls.Number
	case js.TypeString:
		return calls.Text
	}
	return calls.Object
}

func (v value) Text() string {
	if v.Value.Type() == js.TypeString {
		return v.String()
	}
	return js.Global().Call("String", v.Value).String()
}

func (v value) Fields() []string {
	names := js.Global().Get("Object").Call("keys", v.Value).Call("sort")
	of := make([]string, names.Length())
	for i := range of {
		of[i] = names.Index(i).String()
	}
	return of
}

func (v value) Field(name string) calls.Value { return value{v.Get(name)} }
func (v value) Numbers() ([]float64, bool)    { return host.Numbers(v.Value), true }
func (v value) Bytes() ([]byte, bool)         { return host.Bytes(v.Value), true }
func (v value) Texts() ([]string, bool)       { return host.Texts(v.Value), true }

func (v value) Rows() (quantmf.Rows, bool, error) { return host.Matrix(v.Value), true, nil }
