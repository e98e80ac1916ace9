package rowfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/rowfile"
)

// ways are those in which a matrix is read: from a reader, from what can be sought, from a file, and from a
// file system.
func ways(t *testing.T, name, text string, turned bool) map[string]func() (*rowfile.File, error) {
	dir, o := t.TempDir(), rowfile.Options{SamplesInRows: turned}
	path := filepath.Join(dir, name)
	OK(t, os.WriteFile(path, []byte(text), 0o666))
	return map[string]func() (*rowfile.File, error){
		"a reader": func() (*rowfile.File, error) {
			return rowfile.Read(struct{ io.Reader }{strings.NewReader(text)}, name, o)
		},
		"what can be sought": func() (*rowfile.File, error) {
			return rowfile.Read(strings.NewReader(text), name, o)
		},
		"a file":        func() (*rowfile.File, error) { return rowfile.Open(path, o) },
		"a file system": func() (*rowfile.File, error) { return rowfile.OpenFS(os.DirFS(dir), name, o) },
	}
}

// holds reports a file that has not these numbers and names, and closes it.
func holds(t *testing.T, what string, f *rowfile.File, x quantmf.Mat, features, samples []string) {
	t.Helper()
	if d, n := f.Rows.Dims(); d != x.Rows || n != x.Cols {
		t.Fatalf("%s: %d × %d", what, d, n)
	}
	row := make([]float64, x.Cols)
	for i := range x.Rows {
		OK(t, f.Rows.ReadRow(row, i))
		EqualAll(t, row, x.Row(i), "%s: row %d", what, i)
	}
	EqualAll(t, f.Features, features, "%s: features", what)
	EqualAll(t, f.Samples, samples, "%s: samples", what)
	OK(t, f.Close())
}

// TestReadWrite: what Write writes in any format is read back in every way, the names where the format has
// them, and from samples in rows once it is transposed.
func TestReadWrite(t *testing.T) {
	x, _ := quantmf.MatOf([]float64{1, 2.5, 0}, []float64{0.25, 1e-7, 3})
	features, samples := []string{"a", "b"}, []string{"s", "t", "u"}
	for _, name := range []string{"x.tsv", "x.csv.gz", "x.gct", "x.mtx", "x.npy", "x.npz", "x.npy.gz"} {
		for _, transposed := range []bool{false, true} {
			var file bytes.Buffer
			err := rowfile.Write(&file, name, x, features, samples)
			if transposed {
				file.Reset()
				err = rowfile.Write(&file, name, x.T(), samples, features)
			}
			if err != nil {
				t.Fatal(name, err)
			}
			names := [2][]string{features, samples}
			if strings.Contains(name, ".mtx") || strings.Contains(name, ".npy") {
				names = [2][]string{table.Numbered("f", 2), table.Numbered("s", 3)}
			}
			for what, read := range ways(t, name, file.String(), transposed) {
				holds(t, name+" by "+what, Must(read())(t), x, names[0], names[1])
			}
		}
	}
}

// TestSamplesInRows: samples in rows are the same matrix from every format, and no second copy of it is made
// where the documentation says so: lists stay lists, an array in Fortran order stays in its file.
func TestSamplesInRows(t *testing.T) {
	const d, n = 7, 30
	x := quantmf.NewMat(d, n)
	for j := range n {
		for i := range d {
			if (i*5+j*3)%4 == 0 {
				x.Set(i, j, float64(1+i+10*j))
			}
		}
	}
	written := func(name string) string {
		var b strings.Builder
		OK(t, rowfile.Write(&b, name, x.T(), make([]string, n), make([]string, d)))
		return b.String()
	}
	whole := fmt.Sprintf("%%%%MatrixMarket matrix array integer general\n%d %d\n", n, d)
	head := fmt.Sprintf("{'descr': '<u2', 'fortran_order': True, 'shape': (%d, %d), }", n, d)
	fortran := []byte("\x93NUMPY\x01\x00\x76\x00" + head + strings.Repeat(" ", 117-len(head)) + "\n")
	for _, v := range x.Data { // both go by columns, which are features here
		whole += fmt.Sprintf("%d\n", int(v))
		fortran = append(fortran, byte(v), byte(int(v)>>8))
	}
	for name, c := range map[string]struct{ text, kind string }{
		"coordinate.mtx": {written("x.mtx"), "*quantmf.Sparse"},
		"array.mtx":      {whole, "quantmf.Mat"},
		"fortran.npy":    {string(fortran), "*table.npyRows"},
		"c.npy":          {written("x.npy"), "quantmf.Mat"},
	} {
		for what, read := range ways(t, name, c.text, true) {
			f, err := read()
			if err != nil {
				t.Fatal(name, what, err)
			}
			if got := fmt.Sprintf("%T", f.Rows); what == "a file" && got != c.kind {
				t.Errorf("%s is held as %s, want %s", name, got, c.kind)
			}
			holds(t, name+" by "+what, f, x, table.Numbered("f", d), table.Numbered("s", n))
		}
	}
}

// TestReadLargeArray: of an array that Read leaves in its file the rows can be read until Close, which closes
// the file; from a file system it is in memory.
func TestReadLargeArray(t *testing.T) {
	x := quantmf.NewMat(40, 1000)
	x.Set(39, 999, 3)
	var array strings.Builder
	OK(t, rowfile.Write(&array, "x.npy", x, make([]string, 40), make([]string, 1000)))
	dir, o := t.TempDir(), rowfile.Options{Memory: 1 << 20}
	path := filepath.Join(dir, "x.npy")
	OK(t, os.WriteFile(path, []byte(array.String()), 0o666))
	in := Must(os.Open(path))(t)
	f := Must(rowfile.Read(in, "x.npy", o))(t)
	row := make([]float64, 1000)
	if err := f.Rows.ReadRow(row, 39); err != nil || row[999] != 3 {
		t.Errorf("%v, %v", row[999], err)
	}
	Equal(t, fmt.Sprintf("%T", f.Rows), "*table.npyRows", "held")
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := in.Stat(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Close leaves the file open: %v", err)
	}
	whole := Must(rowfile.OpenFS(os.DirFS(dir), "x.npy", o))(t)
	if _, is := whole.Rows.(quantmf.Mat); !is {
		t.Errorf("%T of a file system", whole.Rows)
	}
}

// TestReadErrors: a budget, another ending and names of another number are errors.
func TestReadErrors(t *testing.T) {
	wide := strings.Repeat("1\t", 1<<16) + "1\n"
	if _, err := rowfile.Read(strings.NewReader(strings.Repeat(wide, 40)), "x",
		rowfile.Options{Memory: 1 << 20}); err == nil {
		t.Error("2.6 million numbers are read within a megabyte")
	}
	if _, err := rowfile.Read(strings.NewReader("{}"), "body", rowfile.Options{}); err == nil ||
		!strings.Contains(err.Error(), "body") {
		t.Errorf("what is no matrix: %v", err)
	}
	if _, err := rowfile.OpenFS(fstest.MapFS{}, "x.tsv", rowfile.Options{}); err == nil {
		t.Error("a file that is not there")
	}
	x := quantmf.NewMat(1, 2)
	var shape *quantmf.ShapeError
	if err := rowfile.Write(io.Discard, "x.tsv", x, nil, nil); !errors.As(err, &shape) {
		t.Errorf("no names: %v", err)
	}
	if err := rowfile.Write(io.Discard, "x.doc", x, []string{"f"}, []string{"s", "t"}); err == nil {
		t.Error("an ending that is no format")
	}
}

func ExampleRead() {
	body := strings.NewReader("host,cpu,disk\nh1,0.5,7\nh2,,9\nh3,0.25,8\n")
	f, err := rowfile.Read(body, "upload", rowfile.Options{Memory: 64 << 20, SamplesInRows: true})
	if err != nil {
		log.Fatal(err)
	}
	row := make([]float64, 3)
	for i, name := range f.Features {
		if err := f.Rows.ReadRow(row, i); err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, row, math.IsNaN(row[1]))
	}
	// Output:
	// cpu [0.5 NaN 0.25] true
	// disk [7 9 8] false
}
