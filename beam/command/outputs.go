package command

// This file writes the outputs of a command, all of them or none. Each is written under another name, and all
// are renamed when all are whole.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// output is a file to write; "-" is standard output.
type output struct {
	path string
	fill func(w io.Writer) error
}

// tableOutput is a matrix with names.
func tableOutput(path, corner string, rows, columns []string, m quantmf.Mat) output {
	return output{path, func(w io.Writer) error { return table.Write(w, path, corner, rows, columns, m) }}
}

// nameless returns a message where the format of an output has no place for the names of features or samples,
// and "" where it has or there are no names.
func nameless(path, whose string, named bool) string {
	format, _, err := table.FormatOf(path)
	if path == "" || err != nil || !named || format != "npy" && format != "mtx" {
		return ""
	}
	return fmt.Sprintf("%s: %s has no names, so those of the %s are left out: npz keeps them", path, format,
		whose)
}

// writable reports, before any work is done, matrices whose format is not known, two outputs to the same
// file, and outputs over a file that is read. model is the path of the model, "" where none is written.
func writable(reads []string, model string, matrices ...string) error {
	for _, path := range matrices {
		if path == "" {
			continue
		}
		if _, _, err := table.FormatOf(path); err != nil {
			return usageError(err.Error())
		}
	}
	seen := map[string]bool{}
	for _, path := range append(matrices, model) {
		if path == "" {
			continue
		}
		at := filepath.Clean(path)
		if seen[at] {
			return usageError("two outputs to the same place: " + path)
		}
		seen[at] = true
		there, err := os.Stat(path)
		if err != nil { // there is nothing yet
			continue
		}
		for _, read := range reads {
			if in, err := os.Stat(read); err == nil && os.SameFile(in, there) {
				return usageError(path + " is read itself: write to another file")
			}
		}
	}
	return nil
}

// write writes the outputs that have a path.
func write(stdout io.Writer, files ...output) (err error) {
	type temporary struct{ from, to string }
	var written []temporary
	defer func() {
		for _, f := range written {
			os.Remove(f.from)
		}
	}()
	var direct bytes.Buffer
	for _, f := range files {
		switch f.path {
		case "":
			continue
		case "-":
			if err := f.fill(&direct); err != nil {
				return fmt.Errorf("cannot write standard output: %w", err)
			}
			continue
		}
		from := f.path + ".tmp"
		file, err := os.Create(from)
		if err == nil {
			written = append(written, temporary{from, f.path})
			err = f.fill(file)
			if err == nil {
				err = file.Sync()
			}
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", f.path, err)
		}
	}
	if _, err := direct.WriteTo(stdout); err != nil {
		return fmt.Errorf("cannot write standard output: %w", err)
	}
	for _, f := range written {
		if err := os.Rename(f.from, f.to); err != nil {
			return fmt.Errorf("cannot write %s: %w", f.to, err)
		}
	}
	return nil
}
