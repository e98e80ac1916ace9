//go:build js && wasm

// Engine is the package for JavaScript: fits, methods of models, and operators. It runs in a
// worker, which js/worker.js starts. Users call js/index.js, and package host passes their calls on to
// the engine. Engine imports no fmt, which would make it larger.
package main

import (
	"strconv"

	"github.com/quantmf/quantmf/web/host"
)

func main() { host.Serve(calls, described) }

// described returns an error of the package as an object. Options have their names in JavaScript.
func described(err error) map[string]any {
	e := host.Described(err)
	if option, is := e["option"].(string); is {
		name := optionName(option)
		e["option"] = name
		e["message"] = "quantmf: " + name + " " + e["value"].(string) + ": " + e["bound"].(string)
	}
	return e
}

// call is a call with methods that read its arguments.
type call struct{ host.Call }

// whole returns the argument of this name, which must be a whole number.
func (c call) whole(name string) (int, error) { return wholeOf(name, c.Args.Get(name)) }

func itoa(i int) string { return strconv.Itoa(i) }
