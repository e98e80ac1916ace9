//go:build js

// Command wasm is the package in a page: a table is pasted, and the page says which hosts are odd. Nothing
// leaves the browser. Built for js/wasm it is the module that the page loads; built for a machine it builds
// that module and serves the page (serve.go).
package main

import (
	"context"
	"strings"
	"syscall/js"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/rowfile"
)

// odd scores the samples of a table, one a row. It returns an array of {name, score}, or {error}.
func odd(text string) any {
	f, err := rowfile.Read(strings.NewReader(text), "the table",
		rowfile.Options{SamplesInRows: true, Memory: 64 << 20})
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	ctx := context.Background()
	m, err := quantmf.FitBQMF(ctx, f.Rows, 2, quantmf.WithMissingValues())
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	scores, err := m.Scores(ctx, f.Rows)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	all := make([]any, len(scores))
	for j, s := range scores {
		all[j] = map[string]any{"name": f.Samples[j], "score": s}
	}
	return all
}

func main() {
	js.Global().Set("odd", js.FuncOf(func(_ js.Value, args []js.Value) any {
		if len(args) != 1 || args[0].Type() != js.TypeString {
			return map[string]any{"error": "odd takes the text of a table"}
		}
		return odd(args[0].String())
	}))
	select {} // the page calls odd as long as it is open
}
