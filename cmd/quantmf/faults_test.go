package main

// This file tests what befalls a program from outside: writers that take less than they are
// given, files that change while they are read, files left by a run that was killed.

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/cli"
)

// TestMain makes the test a quantmf for those tests that need a process of its own. The others
// have a clock that stands still: no line of progress is shown because the machine is slow.
func TestMain(m *testing.M) {
	as := os.Getenv("QUANTMF_AS_COMMAND")
	if as != "" {
		checkpointEvery = time.Duration(0)
	}
	switch as {
	case "":
		at := time.Now()
		cli.Now = func() time.Time { return at }
		cli.Heard = func() { interrupts <- true }
	case "heard": // a file tells that an interrupt was heard
		cli.Heard = func() { os.WriteFile("heard", nil, 0o666) }
		main()
	case "peak": // what /proc says of its memory follows what it writes
		code := runWords(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		status, _ := os.ReadFile("/proc/self/status")
		os.Stdout.Write(status)
		os.Exit(code)
	default:
		main()
	}
	os.Exit(m.Run())
}

// half takes half of every write, and says nothing of it.
type half struct{ bytes.Buffer }

func (w *half) Write(b []byte) (int, error) { return w.Buffer.Write(b[:len(b)/2]) }

// TestShortWriter: a writer that returns short fails the command, whatever that writes.
func TestShortWriter(t *testing.T) {
	workshop(t)
	for _, args := range []string{
		"fit -k 2 -epochs 2 -u - matrix.tsv", "fit -k 2 -epochs 2 -o - matrix.tsv",
		"transform qmf.qmf matrix.tsv -o -", "score qmf.qmf matrix.tsv", "reconstruct qmf.qmf -o -",
		"normalize qmfq.qmf matrix.tsv -o -", "inspect qmf.qmf", "inspect qmf.qmf -json",
		"report qmf.qmf matrix.tsv -o -", "rank -k 1,2 -epochs 2 -repeats 1 matrix.tsv",
		"rank -json -k 1,2 -epochs 2 -repeats 1 matrix.tsv", "impute matrix.tsv -checks 0 -o -",
		"impute matrix.tsv -checks 1 -json -o x.tsv", "convert matrix.tsv -", "help fit", "completion bash",
		"version",
	} {
		var errOut bytes.Buffer
		if code := run(args, nil, &half{}, &errOut); code != cli.Failed ||
			!strings.Contains(errOut.String(), "short write") {
			t.Errorf("%s: exit code %d, %s", args, code, errOut.String())
		}
	}
}

// TestMatrixChanges: every command that reads a matrix reports a file that becomes longer or
// shorter meanwhile, though what is left is a table, and though it is read twice.
func TestMatrixChanges(t *testing.T) {
	workshop(t)
	folder := func() {
		os.MkdirAll("tenx", 0o777)
		writeText(t, "tenx/matrix.mtx",
			"%%MatrixMarket matrix coordinate integer general\n3 2 2\n1 1 5\n3 2 1\n%\n")
		writeText(t, "tenx/genes.tsv", "E1\tG1\nE2\tG2\nE3\tG3\n\n")
		writeText(t, "tenx/barcodes.tsv", "A\nB\n\n")
	}
	defer func(before func(string)) { cli.Opened = before }(cli.Opened)
	for i, c := range []struct{ args, file string }{
		{"convert changing.tsv x.npy", "changing.tsv"},
		{"transform qmf.qmf changing.tsv -o x.tsv", "changing.tsv"},
		{"score qmf.qmf changing.tsv", "changing.tsv"},
		{"fit -k 2 -epochs 2 changing.tsv", "changing.tsv"},
		{"rank -k 1 -epochs 1 -repeats 1 changing.tsv", "changing.tsv"},
		{"impute -checks 0 changing.tsv -o x.tsv", "changing.tsv"},
		{"convert tenx x.csv", "tenx/matrix.mtx"},
		{"convert tenx x.csv", "tenx/genes.tsv"},
		{"convert tenx x.csv", "tenx/barcodes.tsv"},
	} {
		if testing.Short() && i > 0 {
			break // the others are not among the quickest
		}
		for _, by := range []int64{0, -1, 1} {
			folder()
			writeText(t, "changing.tsv", small()+strings.Repeat("\n", 400000)) // too long to be read ahead
			cli.Opened = func(path string) {
				if filepath.Base(path) != filepath.Base(c.file) {
					return
				}
				info, err := os.Stat(c.file)
				if err == nil && by < 0 {
					err = os.Truncate(c.file, info.Size()+by)
				}
				if err == nil && by > 0 {
					var f *os.File
					if f, err = os.OpenFile(c.file, os.O_APPEND|os.O_WRONLY, 0); err == nil {
						f.WriteString("\n")
						f.Close()
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
			var out, e bytes.Buffer
			code := run(c.args, strings.NewReader(""), &out, &e)
			switch said := strings.Contains(e.String(),
				map[int64]string{-1: "became shorter while it was read", 1: "grew while it was read"}[by]); {
			case by == 0 && code != 0, by != 0 && (code != cli.BadInput || !said):
				t.Errorf("%s, %s by %d: %d, %s", c.args, c.file, by, code, e.String())
			}
		}
	}
}

// TestLongNames: a file may have the longest name that its folder takes.
func TestLongNames(t *testing.T) {
	dir := folder(t)
	name := strings.Repeat("é", 127)
	if err := os.WriteFile(name+"0", nil, 0o666); err != nil {
		t.Skip("this system has no such names: ", err)
	}
	quiet(t, 0, "fit -method nmf -k 1 -epochs 1 -o "+name+"0 -checkpoint "+name+"2 matrix.tsv")
	if got := files(t, dir); got != name+"0 "+name+"2" {
		t.Errorf("files: %q", got)
	}
}

// TestHostileNames: names of files and values of flags never reach the terminal with characters that control
// it or end a line, whatever is said of them.
func TestHostileNames(t *testing.T) {
	folder(t)
	const name = "e\x1b[31m\n\u202e\ax\xff"
	if err := os.WriteFile(name+".tsv", []byte(small()), 0o666); err != nil {
		t.Skip("this system has no such names: ", err)
	}
	writeText(t, name+"bad", "a\tb\n1\t2\t3\n")
	writeText(t, name+"empty", "")
	os.Mkdir(name+"folder", 0o777)
	quiet(t, 0, "fit -method qmf -compare none -k 1 -epochs 1 -o m.qmf matrix.tsv")
	for _, args := range [][]string{
		// the summary says what was written
		{"fit", "-k", "1", "-epochs", "1", "-o", name + ".qmf", "-v", name + ".npy", name + ".tsv"},
		{"fit", name + "none"}, {"fit", name + "empty"}, {"fit", name + "folder"},
		{"fit", "matrix.tsv", name},
		{"fit", "-o", name + "folder", "matrix.tsv"}, {"fit", "-o", name + "none/m", "matrix.tsv"},
		{"fit", "-u", name + ".tsv", name + ".tsv"},
		{"fit", "-epochs", "1", "-k", "1", "-checkpoint", name + "state", "-resume", "matrix.tsv"},
		{"fit", "-checkpoint", name + "bad", "matrix.tsv"},
		{"fit", "-checkpoint", name + "bad", "-resume", "matrix.tsv"}, {"fit", "-method", name, "matrix.tsv"},
		{"fit", "-" + name, "matrix.tsv"}, {"fit", "-k", name, "matrix.tsv"},
		{"fit", "-k", "1", "-report", "r.html", "-groups", name + "bad", "matrix.tsv"},
		{"transform", name + "bad", "matrix.tsv", "-o", "-"}, {"transform", "m.qmf", name + "bad", "-o", "-"},
		{"inspect", name + ".qmf"},
		{"impute", "-checks", "0", "-o", name + "i.tsv", name + ".tsv"},
		{"convert", name + ".tsv", name + "none/x.npy"}, {"shard", "step", name + "folder"},
		{"rank", "-k", "1", "-epochs", "1", "-repeats", "1", "-checkpoint", name + "bad", "-resume",
			"matrix.tsv"}, {"completion", name}, {name},
	} {
		out, said := &bytes.Buffer{}, &bytes.Buffer{}
		runWords(args, strings.NewReader(""), out, said)
		text := out.String() + said.String()
		for _, c := range []string{"\x1b", "\u202e", "\a", "\xff", "[31m\n"} {
			if strings.Contains(text, c) {
				t.Errorf("%q: %q is in %q", args, c, text)
			}
		}
		if args[0] != "inspect" && !strings.Contains(text, `e\x1b[31m\n\u202e\ax\xff`) {
			t.Errorf("%q: the name is not in %q", args, text)
		}
	}
}
