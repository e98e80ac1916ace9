package table_test

// This file feeds the readers whatever there is: bytes to all of them, text to the rules for
// names with flags, arrays to those of archives, and folders. None panics or takes more
// memory than it may, faults are errors that say where, numbers are what they may be, and what
// is read is written and read again to the same bits.

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// little is the memory that readers may take here, and much what they allocate at the most
// for it, garbage counted: buffers grow by the factor 2, decompressors have their own.
const (
	little = 1 << 20
	much   = 16 << 20
)

// reads runs a reader and checks what comes of it.
func reads(t *testing.T, o table.Options, read func() (*table.Table, error)) *table.Table {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := read()
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > much {
		t.Errorf("%d bytes taken", taken)
	}
	if err != nil {
		var fault *table.Error
		if !errors.As(err, &fault) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%T: %v", err, err)
		}
		return nil
	}
	x := got.X
	if x.Rows < 1 || x.Cols < 1 || len(got.Features) != x.Rows || len(got.Samples) != x.Cols {
		t.Fatalf("%d × %d numbers, %d features, %d samples", x.Rows, x.Cols, len(got.Features),
			len(got.Samples))
	}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if math.IsInf(v, 0) || v != v && !o.Missing || v < 0 && !o.Negative {
				t.Fatalf("%v was read", v)
			}
			if e := got.Error(i, j, "odd"); e.Feature != got.Features[i] || e.Sample != got.Samples[j] {
				t.Fatal(e)
			}
		}
	}
	got.Remarks()
	return got
}

// readsText is reads of what a file holds.
func readsText(t *testing.T, in string, o table.Options) *table.Table {
	t.Helper()
	return reads(t, o, func() (*table.Table, error) { return read(in, o) })
}

// comesBack writes a table, if there is one, in every format and reads it again.
func comesBack(t *testing.T, first *table.Table) {
	if first == nil {
		return
	}
	o := anything
	o.Memory = 1 << 24
	for _, file := range []string{"x.tsv", "x.csv", "x.csv.gz", "x.gct", "x.mtx", "x.npy", "x.npz"} {
		var b bytes.Buffer
		if err := table.Write(&b, file, "feature", first.Features, first.Samples, first.X); err != nil {
			if table.InOneCell(first.Features, first.Samples, "\x00\t\r\n") == nil {
				t.Fatal(err)
			}
			continue
		}
		text := b.String()
		again, err := table.Read(&b, file, o)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		kept := func(names []string) []string { return names }
		switch file {
		case "x.mtx", "x.npy":
			kept = nil
		case "x.npz": // which holds characters, and no NUL at the end
			kept = func(names []string) (out []string) {
				for _, n := range names {
					out = append(out, strings.TrimRight(string([]rune(n)), "\x00"))
				}
				return out
			}
		}
		if kept != nil && (!slices.Equal(kept(first.Features), again.Features) ||
			!slices.Equal(kept(first.Samples), again.Samples)) {
			t.Fatalf("names: %q, %q became %q, %q in %q", first.Features, first.Samples, again.Features,
				again.Samples, text)
		}
		if again.X.Rows != first.X.Rows || again.X.Cols != first.X.Cols {
			t.Fatalf("%d × %d became %d × %d in %q", first.X.Rows, first.X.Cols, again.X.Rows, again.X.Cols,
				text)
		}
		for i := range first.Features {
			for j, v := range first.X.Row(i) {
				if w := again.X.At(i, j); math.Float64bits(v) != math.Float64bits(w) && !(v != v && w != w) {
					t.Fatalf("%s: entry %d,%d: %v became %v", file, i, j, v, w)
				}
			}
		}
	}
}

// seeds adds the files of testdata.
func seeds(f *testing.F, add func(b []byte), patterns ...string) {
	for _, p := range patterns {
		names, _ := filepath.Glob("testdata/" + p)
		if len(names) == 0 {
			f.Fatalf("no %s", p)
		}
		for _, n := range names {
			b := Must(os.ReadFile(n))(f)
			add(b)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{
		"feature\ta\tb\ng1\t1\t2\n", "x,a\n\"g,\"\"1\",5\n", "1;2\n3;4\n", "a\tb\n\"g\t1\"\t1\t2\n",
		",0,1\n0,5,6\n", "\ufeffx,a\r\ng,1e5\r\n",
		gzipped("x,a\ng,1\n"), "x\ta;b\n\"\t1\n", "x,a,b\ng,,-2\n", seriesBegin + "\n" + seriesRows,
		"#1.2\n1\t2\nName\tDescription\ta\tb\ng\t\t1\t\n", "#1.3\n1\t1\t1\t1\nid\td\ta\nc\tna\tb\ng\td\t4\n",
		"%%MatrixMarket matrix coordinate real general\n% c\n2 3 2\n1 1 5\n2 3 -1\n",
		"%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n",
	} {
		f.Add([]byte(s))
	}
	m := quantmf.NewMat(2, 2)
	m.Data[1] = math.NaN()
	for _, file := range []string{"x.npy", "x.npz", "x.npy.gz"} {
		var b bytes.Buffer
		OK(f, table.Write(&b, file, "", []string{"g1", "g\u00fc"}, []string{"a", "\t"}, m))
		f.Add(b.Bytes())
	}
	seeds(f, func(b []byte) { f.Add(b) }, "*.npy", "*.npz", "*.mtx", "*.bz2")
	o := anything
	o.Memory = little
	f.Fuzz(func(t *testing.T, in []byte) {
		first := readsText(t, string(in), o)
		// A pipe makes no difference, but for the memory that it takes.
		piped, err := table.Read(struct{ *bytes.Buffer }{bytes.NewBuffer(in)}, "in", o)
		if err == nil && (first == nil || numbers(piped) != numbers(first) ||
			!slices.Equal(piped.Features, first.Features)) {
			t.Fatal("a pipe is read otherwise")
		}
		comesBack(t, first)
	})
}

// FuzzText: text under flags of every kind.
func FuzzText(f *testing.F) {
	add := func(b []byte) {
		f.Add(b, byte(0), byte(0), byte(0), "", "")
		f.Add(b, byte(1), byte(','), byte(1), "1-2", "-999,x")
		f.Add(b, byte(2), byte(' '), byte(2), "none", "")
	}
	seeds(f, add, "*.txt", "*.csv")
	f.Add([]byte("gene,sample,value\nTP53,A,1\nTP53,B,2\nEGFR,A,3\n"), byte(0), byte(0), byte(9),
		"gene,sample,value", "")
	add([]byte(",gene,sample,value\n1,TP53,A,1\n2,TP53,B,2\n3,EGFR,A,3\n"))
	add([]byte("a\\\"b\t\"c\\\"\t1\n\"x\" \"y\\\" z\" 3\n"))
	f.Fuzz(func(t *testing.T, in []byte, header, sep, flags byte, names, na string) {
		o := table.Options{Memory: little, Header: table.Header(header % 3), Sep: sep, Names: names,
			Missing: flags&1 != 0, Negative: flags&2 != 0, Transpose: flags&4 != 0}
		if sep > 0x7f || strings.IndexByte("\"\r\n", sep) >= 0 {
			o.Sep = 0
		}
		if flags&8 != 0 {
			o.Long, o.Names = names, ""
		}
		if na != "" {
			o.NA = strings.Split(na, ",")
		}
		comesBack(t, readsText(t, string(in), o))
	})
}

// FuzzArrays: archives of arrays, whose checksums hold. Each part is the name of an
// array, its type, its shape and its bytes.
func FuzzArrays(f *testing.F) {
	f.Add("x\n<f8\n2, 1\n\x00\x00\x00\x00\x00\x00\xf8\x3f\x00\x00\x00\x00\x00\x00\x00\x40\n"+
		"features\n<U1\n2,\na\x00\x00\x00b\x00\x00\x00", false)
	whole := func(v ...byte) string { return string(v) }
	for _, kind := range []string{"csr", "csc", "coo"} {
		f.Add(strings.Join([]string{"format", "|S3", "", kind, "shape", "|u1", "2,", whole(2, 2), "data",
			"|u1", "2,", whole(1, 2), "indices", "|i1", "2,", whole(0, 1), "indptr", "|i1", "3,",
			whole(0, 1, 2), "row", "|u1", "2,", whole(0, 1), "col", "|u1", "2,", whole(1, 0)}, "\n"),
			kind == "csc")
	}
	o := anything
	o.Memory = little
	f.Fuzz(func(t *testing.T, parts string, packed bool) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		fields := strings.Split(parts, "\n")
		for ; len(fields) >= 4; fields = fields[4:] {
			h := &zip.FileHeader{Name: fields[0] + ".npy"}
			if packed {
				h.Method = zip.Deflate
			}
			w, err := z.CreateHeader(h)
			if err != nil || len(fields[1]) > 100 || len(fields[2]) > 100 {
				return
			}
			table.WriteNPYHeader(w, fields[1], fields[2])
			w.Write([]byte(fields[3]))
		}
		z.Close()
		comesBack(t, readsText(t, b.String(), o))
	})
}

func FuzzFolder(f *testing.F) {
	f.Add("", []byte("%%MatrixMarket matrix coordinate integer general\n2 1 1\n1 1 5\n"),
		[]byte("E1\tG1\tx\nE2\tG2\ty\n"), []byte("A-1\n"), "")
	f.Add("GSM_", []byte("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n"), []byte("E1\n"),
		[]byte("A-1\r\n"), "1")
	o := anything
	o.Memory = little
	f.Fuzz(func(t *testing.T, prefix string, matrix, features, barcodes []byte, names string) {
		if !fs.ValidPath(prefix+"x") || strings.Contains(prefix, "/") {
			return
		}
		dir := fstest.MapFS{prefix + "matrix.mtx": {Data: matrix}, prefix + "features.tsv": {Data: features},
			prefix + "barcodes.tsv": {Data: barcodes}}
		o := o
		o.Names = names
		reads(t, o, func() (*table.Table, error) { return table.ReadFolder(dir, "dir", o) })
	})
}

// FuzzDecimal: numbers are those of strconv, to the bit.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.5,", "12345678901234567890", "9007199254740993",
		"90071992547409.93", "0.1e22",
		"1e-22", "123456789012345e10", ".5", "5.", "-", "e5", "1e", "1e+", "1e00022", "--1", "1.2.3",
		"4.9406564584124654e-324", "1_0", "0x1p3", "+1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, n, ok := table.Decimal([]byte(s), ',', '.')
		if !ok {
			return
		}
		cell, _, _ := strings.Cut(s, ",")
		want, err := strconv.ParseFloat(cell, 64)
		if err != nil || n != len(cell) || math.Float64bits(v) != math.Float64bits(want) {
			t.Errorf("%q: got %v of %d bytes, want %v, %v", s, v, n, want, err)
		}
	})
}

// TestDecimal: of decimals of up to 16 digits those without an exponent, three in four, are read without
// strconv, to its bits.
func TestDecimal(t *testing.T) {
	quick, all := 0, 0
	state := uint64(1)
	for range 100000 {
		state = state*6364136223846793005 + 1442695040888963407
		digits := state >> 33 % 1000000000 * (state >> 50)
		text := strconv.FormatUint(digits%10000000000000000, 10)
		if at := int(state >> 20 % uint64(len(text)+1)); at < len(text) {
			text = text[:at] + "." + text[at:]
		}
		if state>>10&3 == 0 {
			text += "e" + strconv.Itoa(int(state>>12%30)-15)
		}
		want := Must(strconv.ParseFloat(text, 64))(t)
		all++
		if v, n, ok := table.Decimal([]byte(text), '\t', '.'); ok {
			quick++
			if v != want || n != len(text) {
				t.Fatalf("%s: got %v, want %v", text, v, want)
			}
		}
	}
	if quick < all*7/10 {
		t.Errorf("%d of %d without strconv", quick, all)
	}
}
