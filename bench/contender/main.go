// Command contender does for the harness in this folder what other software does in Python: it reads a
// request as JSON from standard input, works, and writes the answer as JSON to standard output. The harness
// builds it with different assembly, and for WebAssembly.
//
//	{"rows": [ROW, ...], "repeat": SECONDS}    transports of rows (rows.go)
//	{"fit": FIT}                               a fit, its losses by seconds, and its memory (fit.go)
//	{"memory": FIT}                            what MemoryOf says of it
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

type request struct {
	Rows   []row
	Repeat float64
	Fit    *fit
	Memory *fit
}

func main() {
	var r request
	err := json.NewDecoder(os.Stdin).Decode(&r)
	var answer any
	switch {
	case err != nil:
	case r.Fit != nil:
		answer, err = r.Fit.run()
	case r.Memory != nil:
		answer, err = r.Memory.memory()
	case r.Repeat > 0:
		answer, err = timeRows(r.Rows, r.Repeat)
	default:
		answer = answers(r.Rows)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "contender:", err)
		os.Exit(1)
	}
}
