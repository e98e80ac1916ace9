//go:build js && wasm

// Engine is the package for JavaScript: fits, methods of models, and operators (internal/calls). It runs in a
// worker, which js/worker.js starts. Users call js/index.js, and package host passes their calls on to the
// engine. Engine imports no fmt, which would make it larger.
package main

import (
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/calls"
	"github.com/quantmf/quantmf/web/host"
)

func main() { host.Serve(answer, calls.Described) }

func answer(name string, c host.Call) (any, error) {
	return calls.Call{Ctx: c.Ctx, Args: value{c.Args}, Host: worker{c}}.Answer(name)
}

// worker is the host of a call.
type worker struct{ host.Call }

// memory is the most bytes that a module of WebAssembly can have.
const memory = 1 << 32

// Room returns an error where a fit of this rank may take more memory than a module can have and a fit of
// rank 1 does not. Without the error Go would end the worker.
func (w worker) Room(d, n int, need, least int64) error {
	if need < memory || least >= memory {
		return nil
	}
	return &quantmf.OptionError{Option: "rank", Value: strconv.Itoa(w.Args.Get("rank").Int()),
		Bound: "a fit of a " + strconv.Itoa(d) + "×" + strconv.Itoa(n) + " matrix may take " +
			strconv.Itoa(int(need>>20)) + " MiB, and WebAssembly has at most 4096"}
}
