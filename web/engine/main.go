//go:build js && wasm

// Engine is the package for JavaScript: fits, what models do, and operators. It runs in a
// worker, which js/worker.js starts; js/index.js is what people call, and ../host says how
// calls come here. It imports no fmt.
package main

import (
	"strconv"

	"github.com/quantmf/quantmf/web/host"
)

func main() { host.Serve(calls, described) }

// described is an error of the package as an object, the option under its name in JavaScript.
func described(err error) map[string]any {
	e := host.Described(err)
	if option, is := e["option"].(string); is {
		name := optionName(option)
		e["option"] = name
		e["message"] = "quantmf: " + name + " " + e["value"].(string) + ": " + e["bound"].(string)
	}
	return e
}

// call is a call with what this module reads of its arguments.
type call struct{ host.Call }

// whole is the argument of that name.
func (c call) whole(name string) (int, error) { return wholeOf(name, c.Args.Get(name)) }

func itoa(i int) string { return strconv.Itoa(i) }
