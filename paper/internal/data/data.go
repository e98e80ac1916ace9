// Package data reads the sets of real data that the experiments use. They are public and not
// part of this repository. List says where each is published, how its file was made
// from that, and which hash the text of the file must have.
//
// A set is a file SET.tsv.gz below a folder of the user, with features in rows, samples in
// columns, tab-separated, and names in the first row and column. The file may also be uncompressed,
// without the ending .gz.
package data

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// Table is a matrix with the names of its features (rows) and samples (columns).
type Table struct {
	Features, Samples []string
	X                 quantmf.Mat
}

// Folder is the path of the files, "" if there are none.
type Folder string

// Missing is the error for a set that is not in the folder.
type Missing struct{ Name string }

func (e *Missing) Error() string { return "no data: " + e.Name }

// IsMissing tells whether an error wraps a Missing.
func IsMissing(err error) bool {
	var m *Missing
	return errors.As(err, &m)
}

// Text returns the unpacked text of a file of the list, whose SHA-256 it checks.
func (f Folder) Text(name string) ([]byte, error) {
	if f == "" {
		return nil, &Missing{name}
	}
	text, err := f.unpacked(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Missing{name}
	}
	if err != nil {
		return nil, err
	}
	want, listed := Sums[name]
	if !listed {
		return nil, fmt.Errorf("%s is not in the list of data", name)
	}
	if got := sum(text); got != want {
		return nil, fmt.Errorf("%s is another file: its text has the SHA-256 %s, not %s", name, got, want)
	}
	return text, nil
}

func sum(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// Read reads a table from any file of this form. The file need not be in the list.
func Read(file string) (*Table, error) {
	text, err := Folder(filepath.Dir(file)).unpacked(filepath.Base(file))
	if err != nil {
		return nil, err
	}
	t, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// unpacked reads name, or name without its ending .gz.
func (f Folder) unpacked(name string) ([]byte, error) {
	packed, err := os.ReadFile(filepath.Join(string(f), filepath.FromSlash(name)))
	if err != nil || !strings.HasSuffix(name, ".gz") {
		if plain, isGz := strings.CutSuffix(name, ".gz"); isGz && errors.Is(err, fs.ErrNotExist) {
			return os.ReadFile(filepath.Join(string(f), filepath.FromSlash(plain)))
		}
		return packed, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(z)
}

// Table reads the set SET.tsv.gz.
func (f Folder) Table(set string) (*Table, error) {
	text, err := f.Text(set + ".tsv.gz")
	if err != nil {
		return nil, err
	}
	t, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", set, err)
	}
	return t, nil
}

func parse(text string) (*Table, error) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	t := &Table{Samples: strings.Split(lines[0], "\t")[1:]}
	var rows [][]float64
	for _, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		t.Features = append(t.Features, fields[0])
		row := make([]float64, len(fields)-1)
		for j, field := range fields[1:] {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return nil, fmt.Errorf("feature %s: %w", fields[0], err)
			}
			row[j] = v
		}
		rows = append(rows, row)
	}
	x, err := quantmf.MatOf(rows...)
	t.X = x
	return t, err
}

// Survival reads survival.tsv of a folder of the list: for each sample a time in days,
// and whether it ended in death.
func (f Folder) Survival(folder string) (time []float64, event []bool, err error) {
	text, err := f.Text(folder + "/survival.tsv")
	if err != nil {
		return nil, nil, err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			return nil, nil, fmt.Errorf("%s/survival.tsv: a line of %d fields", folder, len(fields))
		}
		t, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return nil, nil, err
		}
		time, event = append(time, t), append(event, fields[2] == "1")
	}
	return time, event, nil
}

// JSON reads a file of the list into v.
func (f Folder) JSON(name string, v any) error {
	text, err := f.Text(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// Check reports whether a file of the list is there and has the expected hash.
func (f Folder) Check(name string) string {
	switch _, err := f.Text(name); {
	case err == nil:
		return "right"
	case IsMissing(err):
		return "not there"
	default:
		return err.Error()
	}
}
