//go:build js && wasm

// Engine is the package for JavaScript: fits, methods of models, and operators. It runs in a
// worker, which js/worker.js starts. Users call js/index.js, and package host passes their calls on to
// the engine. Engine imports no fmt, which would make it larger.
package main

import (
	"strconv"
	"strings"

	"github.com/quantmf/quantmf/web/host"
)

func main() { host.Serve(calls, described) }

// described returns an error of the package as an object. Options have their names in JavaScript.
func described(err error) map[string]any {
	e := host.Described(err)
	if option, is := e["option"].(string); is {
		name := optionName(option)
		e["option"] = name
		said := name
		if value := e["value"].(string); value != "" {
			said += " " + value
		}
		e["message"] = "quantmf: " + said + ": " + e["bound"].(string)
	}
	if problem, is := e["problem"].(string); is {
		e["problem"], e["message"] = inJavaScript(problem), inJavaScript(err.Error())
	}
	return e
}

// inJavaScript writes a text that names options with their names in JavaScript.
func inJavaScript(text string) string {
	text = strings.Replace(text, "WithMissingValues takes", "missingValues: true takes", 1)
	return strings.Replace(text, "WithLoss(Frobenius) takes", "loss: 'frobenius' takes", 1)
}

// call is a call with methods that read its arguments.
type call struct{ host.Call }

// whole returns the argument of this name, which must be a whole number.
func (c call) whole(name string) (int, error) { return wholeOf(name, c.Args.Get(name)) }

func itoa(i int) string { return strconv.Itoa(i) }
