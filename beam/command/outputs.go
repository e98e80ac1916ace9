package command

// This file writes the outputs of a command, all of them or none. Each is written under another name, and all are
// renamed when all are whole.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

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

// nameless returns a message where the format of an output has no place for the names of features or samples, and "" where it has or
// there are no names.
func nameless(path, whose string, named bool) string {
	format, _, err := table.FormatOf(path)
	if path == "" || err != nil || !named || format != "npy" && format != "mtx" {
		return ""
	}
	return fmt.Sprintf("%s: %s has no names, so those of the %s are left out: npz keeps them", path, format, whose)
}

// writable reports outputs whose format is not known, and two outputs to the same file, before any work is done.
func writable(paths ...string) error {
	seen := map[string]bool{"": false}
	for _, path := range paths {
		if path == "" {
			continue
		}
		if _, _, err := table.FormatOf(path); err != nil {
			return usageError(err.Error())
		}
		if seen[path] {
			return usageError("two outputs to the same place: " + path)
		}
		seen[path] = true
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
