package rowfile_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/rowfile"
)

// TestOpen: a folder has the numbers and the names of its files, and a matrix is held as the documentation
// says.
func TestOpen(t *testing.T) {
	const d, n = 12, 20
	x := quantmf.NewMat(d, n)
	for i := range d {
		for j := range n {
			if (i*5+j)%4 == 0 {
				x.Set(i, j, float64(1+(i*7+j*3)%11))
			}
		}
	}
	features, samples := table.Numbered("f", d), table.Numbered("s", n)
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777),
			os.WriteFile(path, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	write("folder/features.tsv", strings.Join(features, "\n"))
	write("folder/barcodes.tsv", strings.Join(samples, "\n"))
	for _, name := range []string{"x.tsv", "x.npy", "x.mtx", "folder/matrix.mtx"} {
		var b strings.Builder
		OK(t, rowfile.Write(&b, name, x, features, samples))
		write(name, b.String())
	}
	for name, kind := range map[string]string{"x.tsv": "quantmf.Mat", "x.npy": "*table.npyRows",
		"x.mtx": "*quantmf.Sparse", "folder": "*quantmf.Sparse"} {
		f := Must(rowfile.Open(filepath.Join(dir, name), rowfile.Options{}))(t)
		Equal(t, fmt.Sprintf("%T", f.Rows), kind, "%s is held as", name)
		holds(t, name, f, x, features, samples)
	}
	if f, err := rowfile.Open(filepath.Join(dir, "nothing"), rowfile.Options{}); f != nil ||
		!os.IsNotExist(err) {
		t.Errorf("nothing: %v, %v", f, err)
	}
}

// TestOpenPipe: what cannot be sought is read from its first byte on.
func TestOpenPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Skip(err)
	}
	defer r.Close()
	w.WriteString("name\ts1\nf1\t3\n")
	w.Close()
	f, err := rowfile.Open(fmt.Sprintf("/dev/fd/%d", r.Fd()), rowfile.Options{})
	if os.IsNotExist(err) {
		t.Skip(err)
	}
	if err != nil || f.Features[0] != "f1" {
		t.Errorf("%v, %v", f, err)
	}
}

// An npy file of any size is fitted from where it lies, and its samples may stand in rows, in Fortran order.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	x := quantmf.NewMat(3, 8)
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, float64((i+1)*(j+1)))
		}
	}
	path := filepath.Join(dir, "x.npy")
	file, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	if err := rowfile.Write(file, path, x, []string{"a", "b", "c"}, make([]string, 8)); err != nil {
		log.Fatal(err)
	}
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
	f, err := rowfile.Open(path, rowfile.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	m, err := quantmf.FitNMF(context.Background(), f.Rows, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", m.Reconstruct().At(2, 7))
	// Output: 24.000
}
