package table_test

// This file tests the formats that are no plain table on files of other makers
// (testdata/make.py), on their faults, and on every cut and flipped bit.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

const fillIn = "give -missing, fill in a number, or remove the feature or the sample"

// mtxMagic is how a Matrix Market file begins.
const mtxMagic = "%%MatrixMarket"

var anything = table.Options{Missing: true, Negative: true}

func TestReadFormats(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"le-f8.npy", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"be-f8.npy", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"le-f4.npy", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"be-f4.npy", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"le-f2.npy", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"le-i8.npy", "f1|f2; s1|s2|s3; 0 1 0/2 0 0"},
		{"be-i4.npy", "f1|f2; s1|s2|s3; 0 1 0/2 0 0"},
		{"le-i2.npy", "f1|f2; s1|s2|s3; 0 1 0/2 0 0"},
		{"i1.npy", "f1|f2; s1|s2|s3; 0 1 0/2 0 0"},
		{"le-u8.npy", "f1|f2; s1|s2|s3; 0 1 0/2 0 0"},
		{"be-u4.npy", "f1|f2; s1|s2|s3; 0 1 0/2 0 0"},
		{"le-u2.npy", "f1|f2; s1|s2|s3; 0 1 0/2 0 0"},
		{"u1.npy", "f1|f2; s1|s2|s3; 0 1 0/2 0 0"},
		{"b1.npy", "f1|f2; s1|s2|s3; 0 1 0/1 0 1"},
		{"fortran.npy", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"version2.npy", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"one.npz", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"named.npz", "g1|gü; a|bc|d; 0 1.5 0/2 0 0.25"},
		{"sparse-csr.npz", "f1|f2; s1|s2|s3|s4; 0 1.5 0 0/2 0 0.25 0"},
		{"sparse-csc.npz", "f1|f2; s1|s2|s3|s4; 0 1.5 0 0/2 0 0.25 0"},
		{"sparse-coo.npz", "f1|f2; s1|s2|s3|s4; 0 1.5 0 0/2 0 0.25 0"},
		{"sparse-twice.npz", "f1|f2; s1|s2|s3|s4; 0 1.5 0 0/2 0 0.25 0"},
		{"sparse-array.npz", "f1|f2; s1|s2|s3|s4; 0 1.5 0 0/2 0 0.25 0"},
		{"sparse-int.npz", "f1|f2; s1|s2|s3|s4; 0 1 0 0/2 0 0 0"},
		{"coordinate.mtx", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"array.mtx", "f1|f2; s1|s2|s3; 0 1.5 0/2 0 0.25"},
		{"pattern.mtx", "f1|f2; s1|s2|s3; 0 1 0/1 0 1"},
		{"symmetric.mtx", "f1|f2|f3; s1|s2|s3; 1 2 0/2 0 3/0 3 5"},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			got, named := readsAs(t, file(t, c.file), anything, c.want), c.file == "named.npz"
			if got.NamedFeatures != named || got.NamedSamples != named {
				t.Errorf("named: features %v, samples %v", got.NamedFeatures, got.NamedSamples)
			}
		})
	}
}

// TestNegativeZero: no sum makes 0 of an entry that is -0.
func TestNegativeZero(t *testing.T) {
	readsAs(t, "%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 -0\n1 2 1\n", anything,
		"f1; s1|s2; -0 1")
}

const gct13 = "#1.3\n2\t2\t1\t1\nid\tdesc\ta\tb\nage\tna\t4\tx\ng1\tfirst\t1\t2\ng2\t\t3.5\tNA\t\n"

func TestReadGCT(t *testing.T) {
	for name, in := range map[string]string{
		"1.2": "#1.2\n2\t2\nName\tDescription\ta\tb\ng1\tfirst\t1\t2\ng2\t\t3.5\t\n",
		"1.3": gct13, "1.3 of Windows": strings.ReplaceAll(gct13, "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) { readsAs(t, in, anything, "g1|g2; a|b; 1 2/3.5 NaN") })
	}
	readsAs(t, "#1.2\n2\t1\nName\tDescription\t\"a\n\"g1\"\t5\" end\t1\n\"\t\"\t2\n", anything,
		`"g1"|"; "a; 1/2`) // a quotation mark is a character
	got, _ := read(gct13, anything)
	if e := got.Error(1, 0, "odd").Error(); e != `in:6:3: feature "g2", sample "a": odd` {
		t.Error(e)
	}
	for in, want := range map[string]string{
		gct13: "; descriptions left out: 1 of features, 1 of samples",
		"#1.3\n1\t1\t0\t1\nid\ta\nage\t4\ng1\t1\n":  "; descriptions left out: 0 of features, 1 of samples",
		"#1.3\n1\t1\t1\t0\nid\tdesc\ta\ng1\tx\t1\n": "; descriptions left out: 1 of features, 0 of samples",
		"#1.3\n1\t1\t0\t0\nid\ta\ng1\t1\n":          "",
		"#1.2\n1\t1\nName\tDescription\ta\ng1\tfirst\t1\n": "; descriptions left out: 1 of features, 0 of " +
			"samples",
	} {
		got, err := read(in, anything)
		if err != nil || got.Taken != "GCT, features named by column 1, samples by line 3"+want ||
			!got.NamedSamples || strings.Join(got.Features, "") == "" {
			t.Errorf("%q: %v, %+v", in, err, got)
		}
	}
}

func TestFormatFaults(t *testing.T) {
	npy := func(descr, shape string, values string) string {
		var b bytes.Buffer
		table.WriteNPYHeader(&b, descr, shape)
		return b.String() + values
	}
	zeros := strings.Repeat("\x00", 32)
	const mtx = "%%MatrixMarket matrix coordinate real general\n"
	allFail(t, table.Options{Memory: 1 << 18}, []faulty{
		{"gct: no sizes", "#1.2\nName\n",
			"in:2: here must be 2 whole numbers: the number of features, the number of samples, ..."},
		{"gct: no features", "#1.2\n0\t2\n", "in:2: the file says that it has 0 features and 2 samples"},
		{"gct: cut", "#1.2\n2\t1\nName\tDescription\ta\ng\td\t1\n",
			"in:4: the file ends here, where a feature should follow: copy or download it again"},
		{"gct: a short line", "#1.2\n1\t2\nName\tDescription\ta\tb\ng\td\t1\n",
			"in:4:4: this line has 3 cells; by the numbers in line 2 it must have 4"},
		{"gct: a long line", "#1.2\n1\t1\nName\tDescription\ta\ng\td\t1\t2\n",
			"in:4:4: this line has 4 cells; by the numbers in line 2 it must have 3"},
		{"gct: more lines", "#1.2\n1\t1\nName\tDescription\ta\ng\td\t1\nh\td\t1\n",
			"in:5: there are more lines than the 1 features of line 2"},
		{"gct: missing", "#1.2\n1\t1\nName\tDescription\ta\ng\td\tNA\n",
			`in:4:3: feature "g", sample "a": "NA" is a missing value: ` + fillIn},
		{"gct: too large", "#1.2\n100000\t100000\n",
			"in:2: 100000 × 100000 numbers would take more than the 256 KiB of memory that reading may " +
				"take: allow more with -max-memory, if the file is what it should be"},
		{"mtx: complex", "%%MatrixMarket matrix coordinate complex general\n",
			`in:1: "%%MatrixMarket matrix coordinate complex general" is no kind of matrix known here: it ` +
				`must be a coordinate real, integer or pattern, general or symmetric, or an array real or ` +
				`integer general`},
		{"mtx: no size", mtx + "%\n",
			"in:2: the file ends here, where the size of the matrix should follow: copy or download " +
				"it again"},
		{"mtx: a bad size", mtx + "3 -1 2\n", "in:2: here must be 3 whole numbers: rows, columns, entries"},
		{"mtx: too large", mtx + "2000000000 2000000000 1\n1 1 1\n",
			"in:2: 2000000000 × 2000000000 numbers would take more than the 256 KiB of memory that reading " +
				"may take: allow more with -max-memory, if the file is what it should be"},
		{"mtx: too many entries", mtx + "2 3 7\n1 1 1\n",
			"in:2: the file says that it has 7 entries, and a matrix of 2 × 3 has only 6"},
		{"mtx: not square", strings.Replace(mtx, "general", "symmetric", 1) + "2 3 1\n",
			"in:2: a symmetric matrix has as many rows as columns"},
		{"mtx: index", mtx + "% c\n2 3 1\n1 4 1\n", `in:4:2: "4" is no index from 1 to 3`},
		{"mtx: index 0", mtx + "2 3 1\n0 1 1\n", `in:3:1: "0" is no index from 1 to 2`},
		{"mtx: word", mtx + "2 3 1\n1 1 x\n",
			`in:3:3: "x" is not a number: write a number here; names belong into the first line and the ` +
				`first column`},
		{"mtx: negative", mtx + "2 3 1\n1 2 -4\n",
			`in: feature "f1", sample "s2": -4 is negative: this needs values of at least 0, such as ` +
				`counts or log2(1+x); centred values and log ratios are for -loss frobenius, with any ` +
				`-method but nmf and without -log1p`},
		{"mtx: sum", mtx + "2 3 2\n1 2 1e308\n1 2 1e308\n",
			`in: feature "f1", sample "s2": +Inf is not finite: fill in a finite number, or remove the ` +
				`feature or the sample`},
		{"mtx: fields", mtx + "2 3 1\n1 2\n", `in:3: this entry has 2 numbers, it should have 3`},
		{"mtx: cut", mtx + "2 3 2\n1 2 1\n",
			"in:3: the file ends here, where entry 2 of 2 should follow: copy or download it again"},
		{"mtx: more", mtx + "2 3 1\n1 2 1\n1 1 1\n", "in:4: there are more lines than the size makes"},
		{"mtx: more in an array", "%%MatrixMarket matrix array real general\n1 2\n1 2 3\n",
			"in:3:3: there are more than the 2 values that the size makes"},
		{"npy: cut header", npy("<f8", "2, 2", "")[:30],
			"in: byte 30: the file ends within its header: copy or download it again"},
		{"npy: version", "\x93NUMPY\x09\x00" + zeros, "in: byte 8: version 9 of npy is not known here"},
		{"npy: long header", "\x93NUMPY\x02\x00\xff\xff\xff\x7f" + zeros,
			"in: byte 12: a header of 2147483647 bytes is too long"},
		{"npy: cut values", npy("<f8", "2, 2", zeros[:20]),
			"in: byte 148: the file ends within its values, 2 of 4 of which are there in full: copy or " +
				"download it again"},
		{"npy: more values", npy("<f8", "2, 2", zeros+"x"),
			"in: byte 160: there is more behind the last value"},
		{"npy: a vector", npy("<f8", "4,", zeros),
			"in: byte 128: the array has the shape [4]: a matrix has rows and columns"},
		{"npy: nothing", npy("<f8", "0, 4", ""),
			"in: byte 128: the array has the shape [0 4]: a matrix has rows and columns"},
		{"npy: shape", npy("<f8", "99999999999, 4", ""),
			`in: byte 128: the header must have descr, fortran_order and shape of an array of plain ` +
				`numbers, and is "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999..."`},
		{"npy: a header without a colon",
			strings.Replace(npy("<f8", "2, 2", zeros), "'shape':", "'shape' ", 1),
			`in: byte 128: the header must have descr, fortran_order and shape of an array of plain ` +
				`numbers, and is "{'descr': '<f8', 'fortran_order': False, 'shape'  (2, 2), } ..."`},
		{"npy: too large", npy("<f8", "2000000000, 2000000000", ""),
			"in: 2000000000 × 2000000000 numbers would take more than the 256 KiB of memory that reading " +
				"may take: allow more with -max-memory, if the file is what it should be"},
		{"npy: objects", npy("|O", "2, 2", zeros),
			"in: byte 128: an array of type O0 holds no plain numbers"},
		{"npy: NaN", npy("<f8", "1, 1", "\x00\x00\x00\x00\x00\x00\xf8\x7f"),
			`in: feature "f1", sample "s1": NaN is a missing value: ` + fillIn},
		{"npy: Inf", npy("<f4", "1, 1", "\x00\x00\x80\x7f"),
			`in: feature "f1", sample "s1": +Inf is not finite: fill in a finite number, or remove the ` +
				`feature or the sample`},
		{"npz: several", file(t, "several.npz"),
			"in: there are several matrices, a, b: call the one that is meant x"},
		{"npy: a cube", file(t, "cube.npy"),
			"in: byte 128: the array has the shape [2 2 2]: a matrix has rows and columns"},
		{"npy: complex", file(t, "complex.npy"), "in: byte 128: an array of type c16 holds no plain numbers"},
		{"text too large", "x,a,b\n" + strings.Repeat("g,1,2\n", 40000),
			"in: more than 8185 lines of 2 numbers would take more than the 256 KiB of memory that reading " +
				"may take: allow more with -max-memory, if the file is what it should be"},
	})
}

func file(t *testing.T, name string) string {
	b := Must(os.ReadFile(filepath.Join("testdata", name)))(t)
	return string(b)
}

// TestDamage: whatever is cut off or flipped, the reader says what is wrong or
// reads another matrix; it does not panic, and takes no memory for what a size
// claims.
func TestDamage(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.[nm][pt]*")
	if len(names) < 20 {
		t.Fatalf("files: %v", names)
	}
	all := []string{gct13}
	for _, n := range names {
		all = append(all, file(t, filepath.Base(n)))
	}
	o := anything
	o.Memory = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	reads := uint64(0)
	step, bits := 3, 1 // each third byte cut, one of its bits flipped
	if testing.Short() {
		step = 11
	} else if os.Getenv("QUANTMF_LONG") != "" {
		step, bits = 1, 8
	}
	for k, s := range all {
		try := func(what string, at int, in string) {
			reads++
			_, err := read(in, o)
			var fault *table.Error
			if err != nil && !errors.As(err, &fault) {
				t.Fatalf("file %d: %s at %d: %v", k, what, at, err)
			}
			if err == nil && what == "cut" && k > 0 && !strings.HasPrefix(s, mtxMagic) {
				t.Fatalf("file %d: cut at %d of %d was read", k, at, len(s))
			}
		}
		for i := 0; i < len(s); i += step {
			if i > 0 {
				try("cut", i, s[:i])
			}
			for bit := range bits {
				b := []byte(s)
				b[i] ^= 1 << ((i/step + bit) % 8)
				try("flip", i, string(b))
			}
		}
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / reads; per > 1<<20 {
		t.Errorf("%d bytes a read", per)
	}
}

func TestWriteFormats(t *testing.T) {
	m := quantmf.NewMat(2, 3)
	copy(m.Data, []float64{0, -1.0 / 3, 0, math.NaN(), 0, 0})
	full := quantmf.NewMat(1, 2)
	copy(full.Data, []float64{math.Copysign(0, -1), 2})
	rows, columns := []string{"g 1", "gü"}, []string{"a", "b", "c"}
	for _, c := range []struct {
		file string
		m    quantmf.Mat
		want string
	}{
		{"x.gct", m, "#1.2\n2\t3\nName\tDescription\ta\tb\tc\ng " +
			"1\t\t0\t-0.3333333333333333\t0\ngü\t\tNaN\t0\t0\n"},
		{"x.mtx", m, "%%MatrixMarket matrix coordinate real general\n2 3 2\n2 1 NaN\n1 2 " +
			"-0.3333333333333333\n"},
		{"x.mtx", full, "%%MatrixMarket matrix array real general\n1 2\n-0\n2\n"},
	} {
		var b bytes.Buffer
		if err := table.Write(&b, c.file, "feature", rows[:c.m.Rows], columns[:c.m.Cols], c.m); err != nil ||
			b.String() != c.want {
			t.Errorf("%s: %v, %q", c.file, err, b.String())
		}
	}
	for _, name := range []string{"x.gct.gz", "x.NPY", "x.npz", "x.mtx.gz", "x.npz.gz"} {
		var b, again bytes.Buffer
		for _, to := range []io.Writer{&b, &again} {
			OK(t, table.Write(to, name, "feature", rows, columns, m))
		}
		EqualAll(t, b.Bytes(), again.Bytes(), "%s: written twice, it differs", name)
		got := Must(table.Read(&b, name, anything))(t)
		want := "[g 1 gü] [a b c]"
		if strings.Contains(strings.ToLower(name), ".npy") || strings.Contains(name, ".mtx") {
			want = "[f1 f2] [s1 s2 s3]"
		}
		if names := fmt.Sprint(got.Features, got.Samples); names != want ||
			numbers(got) != "0 -0.3333333333333333 0/NaN 0 0" {
			t.Errorf("%s: %s, %s", name, names, numbers(got))
		}
	}
	for _, name := range []string{"x.tsv", "x.csv", "x.gct"} {
		if err := table.Write(io.Discard, name, "feature", []string{"a\nb"}, columns[:1], full); err == nil ||
			!strings.Contains(err.Error(), `the name "a\nb" cannot be written as text`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
