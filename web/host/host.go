//go:build js && wasm

// Package host answers the calls that a worker passes on from JavaScript.
//
// The worker makes an object globalThis.quantmf with the functions reply, progress and turn,
// and [Serve] adds call, cancel and vectors:
//
//	call(id, name, arguments)     begins a call
//	cancel(id)                    ends its context
//	vectors                       whether the loops run on vectors
//	progress(id, phase, done, epoch, epochs, loss)
//	reply(id, error, result)      the call has ended; one of both is null
//	turn(f)                       calls f after a round of the event loop
//
// A matrix is passed as {rows, columns, data}, where data has the bytes of a Float64Array. An
// error is passed as an object whose kind names its type in JavaScript; js/index.js makes an Error of it.
//
// The package imports no fmt, which alone would add a tenth to the size of the download.
package host

import (
	"context"
	"errors"
	"syscall/js"
	"unsafe"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/kernel"
)

var host = js.Global().Get("quantmf")

// Call is a call that is being answered.
type Call struct {
	ID   int
	Args js.Value
	Ctx  *Context
}

// Serve answers calls by their names, and does not return. described makes an object, with a kind and a
// message, of an error.
func Serve(calls func(name string, c Call) (any, error), described func(err error) map[string]any) {
	running := map[int]*Context{}
	events := newTurn()
	host.Set("vectors", kernel.Vectors())
	host.Set("call", js.FuncOf(func(_ js.Value, a []js.Value) any {
		id, name, args := a[0].Int(), a[1].String(), a[2]
		ctx := newContext(events)
		running[id] = ctx
		go func() {
			result, err := answer(calls, name, Call{id, args, ctx})
			delete(running, id)
			ctx.end()
			if err != nil {
				e := described(err)
				if errors.Is(err, context.Canceled) {
					e = map[string]any{"kind": "AbortError", "message": err.Error()}
				}
				host.Call("reply", id, e, nil)
				return
			}
			host.Call("reply", id, nil, plain(result))
		}()
		return nil
	}))
	host.Set("cancel", js.FuncOf(func(_ js.Value, a []js.Value) any {
		if ctx := running[a[0].Int()]; ctx != nil {
			ctx.end()
		}
		return nil
	}))
	select {}
}

// answer makes a call. A panic is how the end of the context stops a call. Any other panic, which no data
// should cause, becomes an error of kind Error.
func answer(calls func(name string, c Call) (any, error), name string, c Call) (result any, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case cancelled:
			err = context.Canceled
		case error:
			err = errors.New("quantmf: " + p.Error())
		case string:
			err = errors.New("quantmf: " + p)
		default:
			err = errors.New("quantmf: panic")
		}
	}()
	return calls(name, c)
}

// Progress reports how far a call is.
func (c Call) Progress(phase string, done float64, epoch, epochs int, loss float64) {
	host.Call("progress", c.ID, phase, done, epoch, epochs, loss)
}

// Matrix copies a matrix into Go. It does not check the length of the data against the sizes; the functions
// of package quantmf do.
func Matrix(v js.Value) quantmf.Mat {
	m := quantmf.Mat{Rows: v.Get("rows").Int(), Cols: v.Get("columns").Int(), Data: Numbers(v.Get("data"))}
	m.Stride = m.Cols
	return m
}

// Numbers copies a Float64Array, or the bytes of one. It returns nil where there are none.
func Numbers(v js.Value) []float64 {
	if v.IsUndefined() || v.IsNull() {
		return nil
	}
	size := v.Get("byteLength")
	x := make([]float64, size.Int()/8)
	bytes := js.Global().Get("Uint8Array").New(v.Get("buffer"), v.Get("byteOffset"), size)
	js.CopyBytesToGo(bytesOf(x), bytes)
	return x
}

// bytesOf returns the memory of numbers as bytes, which have the order of a Float64Array.
func bytesOf(v []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v))
}

// Bytes copies a Uint8Array.
func Bytes(v js.Value) []byte {
	b := make([]byte, v.Get("byteLength").Int())
	js.CopyBytesToGo(b, v)
	return b
}

// Texts copies an array of strings.
func Texts(v js.Value) (all []string) {
	for i := range v.Length() {
		all = append(all, v.Index(i).String())
	}
	return all
}

// plain returns a result of a call as JavaScript takes it: bytes as a Uint8Array, numbers as a Float64Array,
// a matrix as an object, and texts as an array.
func plain(v any) any {
	switch v := v.(type) {
	case []float64:
		return js.Global().Get("Float64Array").New(file(bytesOf(v)).Get("buffer"))
	case []byte:
		return file(v)
	case []string:
		all := make([]any, len(v))
		for i, text := range v {
			all[i] = text
		}
		return all
	case quantmf.Mat:
		if v.Stride != v.Cols {
			v = v.Clone()
		}
		return map[string]any{"rows": v.Rows, "columns": v.Cols, "data": plain(v.Data)}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	}
	return v
}

// file returns bytes as a Uint8Array.
func file(b []byte) js.Value {
	v := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(v, b)
	return v
}
