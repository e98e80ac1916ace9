package table_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// npyFile writes x as an array of the type into a file.
func npyFile(t *testing.T, descr string, x quantmf.Mat) string {
	t.Helper()
	var b bytes.Buffer
	table.WriteNPYHeader(&b, descr, fmt.Sprintf("%d, %d", x.Rows, x.Cols))
	for _, v := range x.Data {
		switch descr {
		case "<f8":
			binary.Write(&b, binary.LittleEndian, v)
		case "<f4":
			binary.Write(&b, binary.LittleEndian, float32(v))
		case ">f4":
			binary.Write(&b, binary.BigEndian, float32(v))
		case "<i2":
			binary.Write(&b, binary.LittleEndian, int16(v))
		}
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	OK(t, os.WriteFile(path, b.Bytes(), 0o666))
	return path
}

// unmappable is a file that cannot be mapped.
type unmappable struct {
	io.ReadSeeker
	io.ReaderAt
}

// readInFile reads a file as a table that stays in it: all its numbers would be too many.
func readInFile(t *testing.T, path string, mapped bool, o table.Options) (*table.Table, error) {
	t.Helper()
	f := Must(os.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	o.Rows, o.Memory = true, 1<<19
	if mapped {
		return table.Read(f, "x.npy", o)
	}
	return table.Read(unmappable{f, f}, "x.npy", o)
}

// TestNPYRows: an array that stays in its file, mapped or not, has the numbers of one that is read, to
// several that read rows at a time as well.
func TestNPYRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := quantmf.NewMat(130, 150)
	for i := range x.Data {
		if r.Float64() < 0.5 {
			x.Data[i] = float64(r.IntN(50))
		}
	}
	holes := x.Clone()
	for i := range holes.Data {
		if r.Float64() < 0.1 {
			holes.Data[i] = math.NaN()
		}
	}
	for _, c := range []struct {
		descr string
		x     quantmf.Mat
	}{{"<f8", x}, {"<f4", x}, {">f4", holes}, {"<i2", x}, {"<f8", holes}} {
		path := npyFile(t, c.descr, c.x)
		for _, mapped := range []bool{true, false} {
			name := fmt.Sprintf("%s, mapped %v", c.descr, mapped)
			got, err := readInFile(t, path, mapped, table.Options{Missing: true})
			if err != nil {
				t.Fatal(name, err)
			}
			inFile, isMapped := table.InPlace(got.Held)
			if !inFile || runtime.GOOS == "linux" && isMapped != mapped {
				t.Fatalf("%s: %T", name, got.Held)
			}
			var readers sync.WaitGroup
			for range 8 {
				readers.Go(func() {
					for range 5 {
						sameNumbers(t, name, got.Rows(), c.x)
					}
				})
			}
			readers.Wait()
			if err := got.Close(); err != nil {
				t.Error(name, err)
			}
		}
	}
}

// TestNPYRowsFaults: what is wrong with an array that stays in its file is said as of one that is read.
func TestNPYRowsFaults(t *testing.T) {
	x := quantmf.NewMat(130, 150)
	for i := range x.Data {
		x.Data[i] = float64(i)
	}
	for name, c := range map[string]struct {
		number func(x quantmf.Mat)
		file   func(path string) error
	}{
		"NaN":      {number: func(x quantmf.Mat) { x.Set(3, 5, math.NaN()) }},
		"infinite": {number: func(x quantmf.Mat) { x.Set(129, 149, math.Inf(1)) }},
		"negative": {number: func(x quantmf.Mat) { x.Set(0, 1, -1) }},
		"cut":      {file: func(path string) error { return os.Truncate(path, 100000) }},
		"one more": {file: func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.Write([]byte{1})
				f.Close()
			}
			return err
		}},
	} {
		y := x.Clone()
		if c.number != nil {
			c.number(y)
		}
		path := npyFile(t, "<f8", y)
		if c.file != nil {
			OK(t, c.file(path))
		}
		b := Must(os.ReadFile(path))(t)
		_, want := table.Read(bytes.NewReader(b), "x.npy", table.Options{})
		for _, mapped := range []bool{true, false} {
			got, err := readInFile(t, path, mapped, table.Options{})
			if err == nil || want == nil || err.Error() != want.Error() {
				t.Errorf("%s: %v, %v, want %v", name, got, err, want)
			}
		}
	}
	// A file that becomes shorter is an error of reading, not a fault of the program.
	for _, mapped := range []bool{true, false} {
		path := npyFile(t, "<f8", x)
		got := Must(readInFile(t, path, mapped, table.Options{}))(t)
		if err := os.Truncate(path, 8192); err != nil {
			t.Skip(err)
		}
		m, err := quantmf.FitNMF(t.Context(), got.Rows(), 2, quantmf.WithEpochs(2))
		var read *quantmf.ReadError
		if m != nil || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &read) || read.Row < 6 {
			t.Errorf("mapped %v: %v", mapped, err)
		}
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestHeldWithoutEmpty: features and samples without any value are left out of matrices that stay sparse, or
// in their file, as they are of others.
func TestHeldWithoutEmpty(t *testing.T) {
	t.Parallel()
	x := quantmf.NewMat(10, 40)
	for j := range x.Cols {
		x.Set(1, j, math.NaN())
		x.Set(2, j, float64((j+2)%3/2))
	}
	for i := range x.Rows {
		x.Set(i, 5, math.NaN())
		x.Set(i, 3, 7)
	}
	x.Set(1, 3, math.NaN())
	var listed strings.Builder
	count := 0
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v != 0 {
				fmt.Fprintf(&listed, "%d %d %g\n", i+1, j+1, v)
				count++
			}
		}
	}
	mtx := fmt.Sprintf("%%%%MatrixMarket matrix coordinate real general\n10 40 %d\n%s", count, &listed)
	o := table.Options{Missing: true, Full: true}
	want := Must(read(mtx, o))(t)
	o.Rows = true
	sparse := Must(read(mtx, o))(t)
	o.InFile = true
	inFile := Must(readInFile(t, npyFile(t, "<f8", x), false, o))(t)
	for _, got := range []*table.Table{want, sparse, inFile} {
		if d, n := got.Dims(); d != 9 || n != 39 || len(got.Warnings) != 2 || len(got.Samples) != n {
			t.Fatalf("%d × %d, %d samples: %q", d, n, len(got.Samples), got.Warnings)
		}
		if err := got.EachRow(func(i int, row []float64) {
			EqualAll(t, row, want.X.Row(i), "row %d", i)
		}); err != nil {
			t.Error(err)
		}
	}
	if _, is := sparse.Held.(*quantmf.Sparse); !is || inFile.Held == nil {
		t.Errorf("%T, %T", sparse.Held, inFile.Held)
	}
}
