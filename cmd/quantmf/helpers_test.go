package main

// This file runs the program in this process, as tests do, and reads what it writes.

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// run runs the program with a command line, whose words have no blanks, and returns its exit code; runWords
// runs it with words.
func run(line string, in io.Reader, out, errOut io.Writer) int {
	return runWords(strings.Fields(line), in, out, errOut)
}

func runWords(args []string, in io.Reader, out, errOut io.Writer) int {
	return program().Run(args, cli.Streams{In: in, Out: out, Err: errOut})
}

// decoded is what a text in JSON says.
func decoded[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// textOf is what a file has.
func textOf(t *testing.T, path string) string {
	t.Helper()
	return string(Must(os.ReadFile(path))(t))
}

// keptModel is the model of a file.
func keptModel(t *testing.T, path string) *model {
	t.Helper()
	return Must(unmarshal([]byte(textOf(t, path))))(t)
}

// asFitted is a copy of x with the logarithm that the model was fitted to, if it was.
func (m *model) asFitted(x quantmf.Mat) quantmf.Mat {
	x = x.Clone()
	if m.Log1p {
		for i, v := range x.Data {
			x.Data[i] = math.Log1p(v)
		}
	}
	return x
}
