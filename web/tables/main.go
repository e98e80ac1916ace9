//go:build js && wasm

// Tables reads matrices for JavaScript, with the readers of the command: text, GCT, Matrix
// Market, npy and npz, plain or compressed. It is a module of its own, which a page loads when
// a file comes.
package main

import (
	"bytes"
	"errors"
	"math"

	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/web/host"
)

func main() { host.Serve(map[string]func(c host.Call) (any, error){"read": read}, described) }

// read reads a file. What it may not hold is left to the fit: missing and negative values
// are read.
func read(c host.Call) (any, error) {
	o := table.Options{Missing: true, Negative: true, Transpose: c.Args.Get("transpose").Truthy(), Memory: int64(c.Args.Get("memory").Float())}
	t, err := table.Read(bytes.NewReader(c.Bytes("file")), c.Args.Get("name").String(), o)
	if err != nil {
		return nil, err
	}
	missing, negative, least, most := 0, 0, math.Inf(1), math.Inf(-1)
	for i := range t.X.Rows {
		for _, v := range t.X.Row(i) {
			switch {
			case v != v:
				missing++
				continue
			case v < 0:
				negative++
			}
			least, most = min(least, v), max(most, v)
		}
	}
	return map[string]any{
		"x": host.Grid(t.X), "features": host.Texts(t.Features), "samples": host.Texts(t.Samples),
		"namedFeatures": t.NamedFeatures, "namedSamples": t.NamedSamples,
		"taken": t.Taken, "warnings": host.Texts(t.Warnings), "remarks": host.Texts(t.Remarks()),
		"missing": missing, "negative": negative, "least": least, "most": most,
	}, nil
}

func described(err error) map[string]any {
	var e *table.Error
	if !errors.As(err, &e) {
		return nil
	}
	return map[string]any{"kind": "TableError", "line": e.Line, "column": e.Column, "feature": e.Feature, "sample": e.Sample, "problem": e.Problem}
}
