//go:build js && wasm

// Engine is the package for JavaScript: fits, what models do, and operators, called by
// messages. It runs in a worker; js/worker.js starts it and js/index.js is what people call.
//
// The worker makes an object globalThis.quantmf with the functions reply, progress and turn,
// and the engine adds call, cancel and vectors:
//
//	call(id, name, arguments)     begins a call
//	cancel(id)                    ends its context
//	progress(id, phase, done, epoch, epochs, loss)
//	reply(id, error, result)      the call has ended; one of both is null
//	vectors                       whether the loops run on vectors
//	turn(f)                       calls f after a round of the event loop
//
// Matrices travel as {rows, columns, data}, data being the bytes of a Float64Array. An
// error is an object whose kind names a type of package quantmf; js/index.js makes it an
// Error.
//
// The engine imports no fmt: that alone would add a seventh to what is downloaded.
package main

import (
	"context"
	"errors"
	"strconv"
	"syscall/js"
	"unsafe"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/kernel"
)

// host is what the worker gave, running the contexts of the calls under way.
var (
	host    = js.Global().Get("quantmf")
	running = map[int]context.CancelFunc{}
	events  = newTurn()
)

func main() {
	host.Set("vectors", kernel.Vectors())
	host.Set("call", js.FuncOf(func(_ js.Value, a []js.Value) any {
		id, name, args := a[0].Int(), a[1].String(), a[2]
		ctx, cancel := context.WithCancel(context.Background())
		running[id] = cancel
		go func() {
			result, err := answer(id, name, args, newYielding(ctx, events))
			delete(running, id)
			cancel()
			if err != nil {
				host.Call("reply", id, described(err), nil)
				return
			}
			host.Call("reply", id, nil, result)
		}()
		return nil
	}))
	host.Set("cancel", js.FuncOf(func(_ js.Value, a []js.Value) any {
		if cancel := running[a[0].Int()]; cancel != nil {
			cancel()
		}
		return nil
	}))
	select {}
}

// answer makes a call. What panics is an error of kind Error, as no data should.
func answer(id int, name string, args js.Value, ctx context.Context) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("quantmf: " + panicText(p))
		}
	}()
	f, known := calls[name]
	if !known {
		return nil, &quantmf.OptionError{Option: "call", Value: name, Bound: "is not known"}
	}
	return f(call{id: id, args: args, ctx: ctx})
}

func panicText(p any) string {
	switch p := p.(type) {
	case error:
		return p.Error()
	case string:
		return p
	}
	return "panic"
}

// described is an error as an object: its kind, its text and its fields.
func described(err error) map[string]any {
	e := map[string]any{"kind": "Error", "message": err.Error()}
	var option *quantmf.OptionError
	var data *quantmf.DataError
	var shape *quantmf.ShapeError
	var format *quantmf.FormatError
	var convergence *quantmf.ConvergenceError
	switch {
	case errors.Is(err, context.Canceled):
		e["kind"] = "AbortError"
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

// call is a call under way.
type call struct {
	id   int
	args js.Value
	ctx  context.Context
}

// matrix is the argument of that name.
func (c call) matrix(name string) quantmf.Mat { return matrixOf(c.args.Get(name)) }

// numbers is the argument of that name.
func (c call) numbers(name string) []float64 { return numbersOf(c.args.Get(name)) }

// whole is the argument of that name.
func (c call) whole(name string) (int, error) { return wholeOf(name, c.args.Get(name)) }

// matrixOf copies a matrix into Go. What its sizes promise its data may not hold: the
// functions of the package report that.
func matrixOf(v js.Value) quantmf.Mat {
	m := quantmf.Mat{Rows: v.Get("rows").Int(), Cols: v.Get("columns").Int(), Data: numbersOf(v.Get("data"))}
	m.Stride = m.Cols
	return m
}

// numbersOf copies the bytes of a Float64Array, nil for none.
func numbersOf(v js.Value) []float64 {
	if v.IsUndefined() || v.IsNull() {
		return nil
	}
	x := make([]float64, v.Get("byteLength").Int()/8)
	js.CopyBytesToGo(bytesOf(x), v)
	return x
}

// bytesOf is the memory of numbers, which is in the order of a Float64Array.
func bytesOf(v []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v))
}

// fileOf copies a Uint8Array.
func fileOf(v js.Value) []byte {
	b := make([]byte, v.Get("byteLength").Int())
	js.CopyBytesToGo(b, v)
	return b
}

// handed is a Uint8Array of bytes.
func handed(b []byte) js.Value {
	v := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(v, b)
	return v
}

// floats is a Float64Array of numbers.
func floats(v []float64) js.Value {
	return js.Global().Get("Float64Array").New(handed(bytesOf(v)).Get("buffer"))
}

// grid is a matrix as an object.
func grid(m quantmf.Mat) map[string]any {
	if m.Stride != m.Cols {
		m = m.Clone()
	}
	return map[string]any{"rows": m.Rows, "columns": m.Cols, "data": floats(m.Data)}
}

// texts is an array of strings.
func texts(errs []error) []any {
	all := make([]any, len(errs))
	for i, e := range errs {
		all[i] = e.Error()
	}
	return all
}

func itoa(i int) string { return strconv.Itoa(i) }
