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
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// Folder is the path of the files, "" if there are none.
type Folder string

// ErrMissing is the error, within another, for a file that is not in the folder.
var ErrMissing = errors.New("no data")

// Text returns the unpacked text of a file of the list, whose SHA-256 it checks.
func (f Folder) Text(name string) ([]byte, error) {
	text, err := []byte(nil), fs.ErrNotExist
	if f != "" {
		text, err = f.unpacked(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrMissing, name)
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
func Read(file string) (quantmf.Mat, error) {
	text, err := Folder(filepath.Dir(file)).unpacked(filepath.Base(file))
	if err != nil {
		return quantmf.Mat{}, err
	}
	return parse(file, text)
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

// Table reads the matrix of the set SET.tsv.gz, features in rows.
func (f Folder) Table(set string) (quantmf.Mat, error) { return f.table(set + ".tsv.gz") }

func (f Folder) table(name string) (quantmf.Mat, error) {
	text, err := f.Text(name)
	if err != nil {
		return quantmf.Mat{}, err
	}
	return parse(name, text)
}

// parse reads the numbers of a text in which both rows and columns have names.
func parse(name string, text []byte) (quantmf.Mat, error) {
	t, err := table.Read(bytes.NewReader(text), name,
		table.Options{Negative: true, Header: table.HeaderYes, Names: "1", Sep: '\t'})
	if err != nil {
		return quantmf.Mat{}, err
	}
	return t.X, nil
}

// Survival reads survival.tsv of a folder of the list: for each sample a time in days,
// and whether it ended in death.
func (f Folder) Survival(folder string) (time []float64, event []bool, err error) {
	x, err := f.table(folder + "/survival.tsv")
	if err != nil {
		return nil, nil, err
	}
	if x.Cols != 2 {
		return nil, nil, fmt.Errorf("%s/survival.tsv: lines of %d numbers", folder, x.Cols)
	}
	for i := range x.Rows {
		time, event = append(time, x.At(i, 0)), append(event, x.At(i, 1) == 1)
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
	case errors.Is(err, ErrMissing):
		return "not there"
	default:
		return err.Error()
	}
}
