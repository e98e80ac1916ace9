package command

// This file holds the files that a command writes: all or none. Each is written beside its place, and all are
// renamed once all are whole.

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

// nameless says that an output has no room for names that there are, of features or of samples; "" where it has, or there are none.
func nameless(path, whose string, named bool) string {
	format, _, err := table.FormatOf(path)
	if path == "" || err != nil || !named || format != "npy" && format != "mtx" {
		return ""
	}
	return fmt.Sprintf("%s: %s has no names, so those of the %s are left out: npz keeps them", path, format, whose)
}

// writable reports outputs whose format is not known, and two to the same place, before any work is done.
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
