package table_test

// This file tests matrices of listed entries: sparse rows have the numbers, and the faults, of all numbers.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// pipe hides that a reader can be read twice.
type pipe struct{ io.Reader }

// sameNumbers reports where two matrices differ; several may call it at a time.
func sameNumbers(t *testing.T, name string, got quantmf.Rows, want quantmf.Mat) {
	t.Helper()
	if d, n := got.Dims(); d != want.Rows || n != want.Cols {
		t.Errorf("%s: %d × %d, want %d × %d", name, d, n, want.Rows, want.Cols)
		return
	}
	row := make([]float64, want.Cols)
	for i := range want.Rows {
		if err := got.ReadRow(row, i); err != nil {
			t.Error(name, err)
			return
		}
		for j, v := range want.Row(i) {
			if row[j] != v && !(v != v && row[j] != row[j]) {
				t.Errorf("%s: (%d, %d) is %v, want %v", name, i, j, row[j], v)
			}
		}
	}
}

// TestListed: a Matrix Market file that stays sparse has the numbers, and the faults, of one that does
// not; whether it can be read twice or comes through a pipe.
func TestListed(t *testing.T) {
	const head = "%%MatrixMarket matrix coordinate real general\n"
	many := func(shuffled, twice bool, value func(r *rand.Rand) string) string {
		r := rand.New(rand.NewPCG(1, 2))
		var lines []string
		for j := range 50 {
			for i := range 40 {
				if r.Float64() < 0.1 {
					lines = append(lines, fmt.Sprintf("%d %d %s\n", i+1, j+1, value(r)))
				}
				if twice && r.Float64() < 0.02 {
					lines = append(lines, fmt.Sprintf("%d %d %s\n", 1+r.IntN(40), j+1, value(r)))
				}
			}
		}
		if shuffled {
			r.Shuffle(len(lines), func(a, b int) { lines[a], lines[b] = lines[b], lines[a] })
		}
		return head + fmt.Sprintf("40 50 %d\n", len(lines)) + strings.Join(lines, "")
	}
	count := func(r *rand.Rand) string { return fmt.Sprint(1 + r.IntN(9)) }
	real := func(r *rand.Rand) string { return fmt.Sprint(r.Float64()) }
	sparse := 0
	for name, text := range map[string]string{
		"counts":               many(false, false, count),
		"counts in any order":  many(true, false, count),
		"counts listed twice":  many(true, true, count),
		"numbers":              many(false, false, real),
		"numbers listed twice": many(true, true, real),
		"a sum beyond single":  head + "4 4 3\n1 1 16777216\n1 1 1\n2 3 1\n",
		"a sum that is 0":      head + "4 4 3\n1 1 5\n1 1 -5\n2 3 1\n",
		"a missing number":     head + "4 4 2\n1 1 nan\n2 3 1\n",
		"negative":             head + "4 4 2\n1 1 -3\n2 3 1\n",
		"infinite":             head + "4 4 2\n1 1 inf\n2 3 1\n",
		"written oddly": head +
			"%c\n4\t4  5\n\n1  1 1e1 \r\n%c\n 2 3\t.5\n4 4 0\n3 3 1.\n1 2 1E-3\n%c\n",
		"no last line end": head + "4 4 1\n1 2 3",
		"no entries":       head + "4 4 0\n",
		"symmetric":        "%%MatrixMarket matrix coordinate integer symmetric\n4 4 2\n2 1 3\n3 3 4\n",
		"pattern":          "%%MatrixMarket matrix coordinate pattern general\n4 4 3\n1 1\n2 3\n4 1\n",
		"too few":          head + "4 4 3\n1 1 1\n2 2 2\n",
		"too many":         head + "4 4 1\n1 1 1\n2 2 2\n",
		"row 0":            head + "4 4 1\n0 1 1\n",
		"row 5":            head + "4 4 1\n5 1 1\n",
		"column 5":         head + "4 4 1\n1 5 1\n",
		"column 0":         head + "4 4 1\n1 0 1\n",
		"two numbers":      head + "4 4 1\n1 5\n",
		"four numbers":     head + "4 4 1\n1 1 1 1\n",
		"a word":           head + "4 4 1\n1 1 x\n",
		"a long index":     head + "4 4 1\n100000000000000000001 1 1\n",
		"half full":        head + "2 2 2\n1 1 1\n2 2 2\n",
	} {
		for _, o := range []table.Options{{}, {Missing: true, Negative: true}} {
			want, wrong := read(text, o)
			o.Rows = true
			for how, in := range map[string]io.Reader{"file": strings.NewReader(text),
				"pipe": pipe{strings.NewReader(text)}} {
				got, err := table.Read(in, "in", o)
				if wrong != nil {
					if err == nil || err.Error() != wrong.Error() ||
						errors.Is(err, table.ErrMemory) != errors.Is(wrong, table.ErrMemory) {
						t.Errorf("%s, %s: %v, want %v", name, how, err, wrong)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s, %s: %v", name, how, err)
					continue
				}
				if got.Held != nil {
					sparse++
				}
				sameNumbers(t, name+", "+how, got.Rows(), want.X)
			}
		}
	}
	rows := table.Options{Rows: true}
	if x, err := read(head+"100000 100000 1\n1 1 1\n", rows); err != nil || x.Held == nil {
		t.Errorf("almost empty: %v, %v", x, err)
	}
	if _, err := read(head+"8000000 2000000000 1\n1 1 1\n", rows); !errors.Is(err, table.ErrMemory) {
		t.Errorf("too empty: %v", err)
	}
	if sparse < 40 {
		t.Errorf("%d were sparse", sparse)
	}
}

// TestListedTable: what is asked of a table has the same answer where its matrix is sparse.
func TestListedTable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x := quantmf.NewMat(12, 20)
	for i := range x.Rows {
		for j := range x.Cols {
			if r.Float64() < 0.15 {
				x.Set(i, j, float64(r.IntN(9)))
			}
		}
	}
	clear(x.Row(5))
	var text bytes.Buffer
	OK(t, table.Write(&text, "x.mtx", "", nil, nil, x))
	read := func(rows bool) *table.Table {
		table, err := read(text.String(), table.Options{Rows: rows})
		if err != nil || rows != (table.Held != nil) {
			t.Fatal(err, table.Held)
		}
		return table
	}
	dense, held := read(false), read(true)
	if a, b := fmt.Sprint(dense.Remarks()), fmt.Sprint(held.Remarks()); a != b {
		t.Errorf("remarks %s, want %s", b, a)
	}
	dense.Log1p()
	held.Log1p()
	sameNumbers(t, "log1p", held.Rows(), dense.X)
	a, err := dense.MostVariable(7)
	b, wrong := held.MostVariable(7)
	if err != nil || wrong != nil || fmt.Sprint(a.Features) != fmt.Sprint(b.Features) {
		t.Fatal(err, wrong, a.Features, b.Features)
	}
	sameNumbers(t, "top", b.Rows(), a.X)
	names := []string{"a", "b", "c"}
	sameNumbers(t, "select", held.SelectOr([]int{3, -1, 0}, names).Rows(),
		dense.SelectOr([]int{3, -1, 0}, names).X)
}

// TestListedMemory: reading takes at most 1.3 times what the matrix takes.
func TestListedMemory(t *testing.T) {
	const d, n = 50, 20000
	var text bytes.Buffer
	r := rand.New(rand.NewPCG(1, 2))
	entries := 0
	for j := range n {
		for i := r.IntN(4); i < d; i += 1 + r.IntN(6) {
			fmt.Fprintf(&text, "%d %d %d\n", i+1, j+1, 1+r.IntN(9))
			entries++
		}
	}
	file := fmt.Sprintf("%%%%MatrixMarket matrix coordinate integer general\n%d %d %d\n%s", d, n, entries,
		text.String())
	names := 40 * (d + n)
	o := table.Options{Rows: true, Memory: int64(names) + int64(1.3*float64(8*entries+8*(d+1)))}
	got := Must(read(file, o))(t)
	if s := got.Held.(*quantmf.Sparse); s.Listed() != entries {
		t.Errorf("%d entries, want %d", s.Listed(), entries)
	}
}

// sparseZip is a matrix as SciPy's save_npz keeps it in a format, for csr, csc and coo with every entry
// listed in two parts where twice.
func sparseZip(x quantmf.Mat, format string, twice bool) string {
	var data, rows, cols []float64
	pointers := []float64{0}
	list := func(i, j int) {
		v := x.At(i, j)
		if v == 0 {
			return
		}
		if twice {
			rows, cols, data = append(rows, float64(i)), append(cols, float64(j)), append(data, v/2)
			v /= 2
		}
		rows, cols, data = append(rows, float64(i)), append(cols, float64(j)), append(data, v)
	}
	outer, inner := x.Rows, x.Cols
	if format == "csc" {
		outer, inner = inner, outer
	}
	for o := range outer {
		for k := range inner {
			at := inner - 1 - k // columns need not be in order
			if format == "csc" {
				list(at, o)
			} else {
				list(o, at)
			}
		}
		pointers = append(pointers, float64(len(data)))
	}
	arrays := map[string]io.Reader{"data": vector(data...)}
	switch format {
	case "coo":
		arrays["row"], arrays["col"] = vector(rows...), vector(cols...)
	case "csr":
		arrays["indices"], arrays["indptr"] = vector(cols...), vector(pointers...)
	case "csc":
		arrays["indices"], arrays["indptr"] = vector(rows...), vector(pointers...)
	}
	return scipyArchive(format, x.Rows, x.Cols, arrays)
}

// staysSparse reads an archive of SciPy's, from a file and from a pipe, into sparse rows with these numbers,
// which it also has in full.
func staysSparse(t *testing.T, file string, want quantmf.Mat) (held *quantmf.Sparse) {
	t.Helper()
	for how, in := range map[string]io.Reader{"file": strings.NewReader(file),
		"pipe": pipe{strings.NewReader(file)}} {
		got, err := table.Read(in, "in", table.Options{Rows: true})
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		is := false
		if held, is = got.Held.(*quantmf.Sparse); !is {
			t.Fatalf("%s: it did not stay sparse", how)
		}
		sameNumbers(t, how, held, want)
		if !strings.HasPrefix(got.Taken, "SciPy ") ||
			!strings.HasSuffix(got.Taken, ", no names in the file") {
			t.Error(got.Taken)
		}
	}
	full, err := read(file, table.Options{})
	if err != nil || full.Held != nil {
		t.Fatalf("in full: %v", err)
	}
	sameNumbers(t, "in full", full.X, want)
	return held
}

// failsAlike reads an archive whose fault is said in the same words in either form.
func failsAlike(t *testing.T, file string, says string) {
	t.Helper()
	_, want := read(file, table.Options{})
	got, err := read(file, table.Options{Rows: true})
	if want == nil || got != nil || err == nil || err.Error() != want.Error() ||
		!strings.Contains(err.Error(), says) {
		t.Errorf("%v, in full %v, want %s", err, want, says)
	}
}

// TestListedArchive: an archive of SciPy's stays sparse, with the numbers that it has in full, from a file
// and from a pipe.
func TestListedArchive(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x, nonzero := quantmf.NewMat(40, 50), 0
	for i := range x.Data {
		if r.Float64() < 0.1 {
			nonzero++
			x.Data[i] = float64(1+r.IntN(9)) / 3
		}
	}
	for _, format := range []string{"csr", "csc", "coo"} {
		for _, twice := range []bool{false, true} {
			t.Run(fmt.Sprint(format, ", listed twice: ", twice), func(t *testing.T) {
				if held := staysSparse(t, sparseZip(x, format, twice), x); held.Listed() != nonzero {
					t.Errorf("%d numbers are listed, want %d", held.Listed(), nonzero)
				}
			})
		}
	}
	x.Set(3, 4, -1)
	failsAlike(t, sparseZip(x, "csr", false), "is negative")
	file := sparseZip(x, "csr", false)
	for _, length := range []int{len(file) / 3, len(file) - 40} {
		if got, err := read(file[:length], table.Options{Rows: true, Negative: true}); err == nil {
			t.Errorf("cut: %v", got)
		}
	}
}

// TestListedArchiveMemory: reading an archive takes at most 1.3 times what the sparse matrix takes, which is
// far below what all numbers would.
func TestListedArchiveMemory(t *testing.T) {
	x := quantmf.NewMat(200, 6000)
	for i := 0; i < len(x.Data); i += 7 {
		x.Data[i] = float64(1 + i%9)
	}
	entries := (len(x.Data) + 6) / 7
	file := sparseZip(x, "csr", false)
	o := table.Options{Rows: true, Memory: int64(40*(x.Rows+x.Cols)) + 1<<18 + int64(1.3*float64(8*entries))}
	got := Must(read(file, o))(t)
	if s := got.Held.(*quantmf.Sparse); s.Listed() != entries {
		t.Errorf("%d entries, want %d", s.Listed(), entries)
	}
	o.Rows = false
	if _, err := read(file, o); !errors.Is(err, table.ErrMemory) {
		t.Errorf("all numbers fit into %d bytes: %v", o.Memory, err)
	}
}
