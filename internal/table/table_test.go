package table_test

// This file tests the reader on what people's files look like, its faults to the
// letter, and that what is written reads back the same.

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

// numbers prints the matrix as rows parted by "/".
func numbers(t *table.Table) string {
	var b bytes.Buffer
	table.Write(&b, "x.tsv", "", t.Features, t.Samples, t.X)
	var rows []string
	for _, l := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")[1:] {
		_, values, _ := strings.Cut(l, "\t")
		rows = append(rows, strings.ReplaceAll(values, "\t", " "))
	}
	return strings.Join(rows, "/")
}

// shown is a table as the tests write it: features, samples and numbers.
func shown(t *table.Table) string {
	return strings.Join(t.Features, "|") + "; " + strings.Join(t.Samples, "|") + "; " + numbers(t)
}

// read reads what a file holds.
func read(in string, o table.Options) (*table.Table, error) {
	return table.Read(strings.NewReader(in), "in", o)
}

// readsAs reads a file, as such, through a pipe byte by byte, and compressed, if it is not: always the same.
func readsAs(t *testing.T, in string, o table.Options, want string) (got *table.Table) {
	t.Helper()
	ways := map[string]io.Reader{"a pipe": iotest.OneByteReader(strings.NewReader(in)),
		"a file": strings.NewReader(in)}
	if !strings.HasPrefix(in, "\x1f\x8b") && !strings.HasPrefix(in, "BZh") {
		ways["compressed"] = strings.NewReader(gzipped(in))
	}
	for how, r := range ways {
		var err error
		if got, err = table.Read(r, "in", o); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		Equal(t, shown(got), want, "%s: got", how)
	}
	return got
}

// fails reads a file whose fault is to be told in these words.
func fails(t *testing.T, in string, o table.Options, want string) {
	t.Helper()
	_, err := read(in, o)
	var fault *table.Error
	if !errors.As(err, &fault) {
		t.Errorf("got %v, want an *Error", err)
	} else if got := fault.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// faulty is a file and the words in which its fault is to be told.
type faulty struct{ name, in, want string }

func allFail(t *testing.T, o table.Options, files []faulty) {
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) { t.Parallel(); fails(t, f.in, o, f.want) })
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"tsv", "feature\ta\tb\ng1\t1\t2\ng2\t3\t4.5\n", "g1|g2; a|b; 1 2/3 4.5"},
		{"no newline at the end", "feature\ta\tb\ng1\t1\t2", "g1; a|b; 1 2"},
		{"csv", "gene,a,b\ng1,1,2\n", "g1; a|b; 1 2"},
		{"semicolons", "gene;a;b\ng1;1;2\n", "g1; a|b; 1 2"},
		{"gzip", gzipped("gene,a,b\ng1,1,2\n"), "g1; a|b; 1 2"},
		{"two gzip members", gzipped("gene,a,b\ng1,1,2\n") + gzipped("g2,3,4\n"), "g1|g2; a|b; 1 2/3 4"},
		{"byte order mark", "\ufefffeature\ta\ng1\t1\n", "g1; a; 1"},
		{"byte order mark inside gzip", gzipped("\ufeffx,a,b\ng1,1,2\n"), "g1; a|b; 1 2"},
		{"CRLF", "feature,a,b\r\ng1,1,2\r\n", "g1; a|b; 1 2"},
		{"blank lines", "\nfeature\ta\tb\n\ng1\t1\t2\n\n\n", "g1; a|b; 1 2"},
		{"lines of nothing but separators", "feature,a,b\ng1,1,2\n,,\n,,\n", "g1; a|b; 1 2"},
		{"spaces around numbers", "x, a,b \ng1, 1 , 2\n", "g1;  a|b ; 1 2"},
		{"quoted", "\"\",\"a,1\",\"b \"\"x\"\"\"\n\"g 1\",\"1\",2\n", `g 1; a,1|b "x"; 1 2`},
		{"quotation marks in tsv", "feature\ta\tb\n5\"-x\t1\t2\n\"g\"\t3\t4\n", `5"-x|g; a|b; 1 2/3 4`},
		{"quotation marks in csv", "x,a\n5\"-x,1\n\"g\"\"h\",2\n", `5"-x|g"h; a; 1/2`},
		{"commas in tsv names", "feature\ta\nx,y,z\t1\nx,y,z\t2\n", "x,y,z|x,y,z; a; 1/2"},
		{"R header", "a\tb\ng1\t1\t2\n", "g1; a|b; 1 2"},
		{"R header of numbers", "1,2\ng1,5,6\n", "g1; 1|2; 5 6"},
		{"R header, one sample", "a\ng1\t1\ng2\t2\n", "g1|g2; a; 1/2"},
		{"no header, names", "g1,1,2\ng2,3,4\n", "g1|g2; s1|s2; 1 2/3 4"},
		{"no header, no names", "1,2\n3,4\n", "f1|f2; s1|s2; 1 2/3 4"},
		{"header, no names", "a,b\n1,2\n3,4\n", "f1|f2; a|b; 1 2/3 4"},
		{"header, no names, one first cell no number", "a,b\n1,2\ng,4\n", "1|g; b; 2/4"},
		{"samples named by numbers", "gene,1,2\n7157,5,6\n", "7157; 1|2; 5 6"},
		{"a data frame of pandas", ",0,1\n0,5,6\n1,7,8\n", "0|1; 0|1; 5 6/7 8"},
		{"a sample called NA", "x,NA,b\ng1,1,2\n", "g1; NA|b; 1 2"},
		{"one row", "1\t2\t3\n", "f1; s1|s2|s3; 1 2 3"},
		{"names twice", "x,a,a\ng,1,2\ng,3,4\n", "g|g; a|a; 1 2/3 4"},
		{"numbers of all kinds", "x,a,b,c,d\ng,1e3,-0,.5,5e-324\n", "g; a|b|c|d; 1000 -0 0.5 5e-324"},
		{"Latin-1 kept", "x,\xe9\ng\xe9,1\n", "g\xe9; \xe9; 1"},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); readsAs(t, c.in, table.Options{}, c.want) })
	}
}

func TestReadFaults(t *testing.T) {
	const missing = ": give -missing, fill in a number, or remove the feature or the sample"
	allFail(t, table.Options{}, []faulty{
		{"empty", "", "in: the file is empty: it should hold features in rows and samples in columns"},
		{"blank", "\n\r\n\n", "in: the file is empty: it should hold features in rows and samples in " +
			"columns"},
		{"nothing but separators", ",\n;;\n",
			"in: the file is empty: it should hold features in rows and samples in columns"},
		{"header only", "feature\ta\tb\n", "in:1: there is a header and no row of numbers below it"},
		{"one column", "1\n2\n",
			"in:1: only one column was found: separate the cells of a line by tabs, commas, semicolons " +
				"or blanks"},
		{"NA", "x\ta\tb\n\ng1\t1\t2\ng2\t3\tNA\n",
			`in:4:3: feature "g2", sample "b": "NA" is a missing value` + missing},
		{"NaN", "x\ta\tb\ng1\tNaN\t2\n",
			`in:2:2: feature "g1", sample "a": "NaN" is a missing value` + missing},
		{"nothing", "x\ta\tb\ng1\t\t2\n", `in:2:2: feature "g1", sample "a": this cell is empty` + missing},
		{"a value in an empty column", "x,a,b,\n" + strings.Repeat("g1,1,2,\n", 60) + "g2,1,2,7\n",
			`in:62:4: "7" stands in a column that is empty in the lines before: remove it, or name the ` +
				`column in the first line`},
		{"Go's own numbers", "x\ta\tb\ng1\t1\t1_000\n",
			`in:2:3: feature "g1", sample "b": "1_000" is not a number: write a number here; names belong ` +
				`into the first line and the first column`},
		{"Inf", "x\ta\tb\ng1\t1\t-Inf\n",
			`in:2:3: feature "g1", sample "b": "-Inf" is not finite: fill in a finite number, or remove ` +
				`the feature or the sample`},
		{"too large", "x\ta\tb\ng1\t1\t1e999\n",
			`in:2:3: feature "g1", sample "b": "1e999" is not finite: fill in a finite number, or remove ` +
				`the feature or the sample`},
		{"negative", "x\ta\tb\ng1\t1\t2\ng2\t1\t-0.5\n",
			`in:3:3: feature "g2", sample "b": -0.5 is negative: this needs values of at least 0, such as ` +
				`counts or log2(1+x); centred values and log ratios are for -loss frobenius, with any ` +
				`-method but nmf and without -log1p`},
		{"a word", "x\ta\tb\ng1\t1\tlow\n",
			`in:2:3: feature "g1", sample "b": "low" is not a number: write a number here; names belong ` +
				`into the first line and the first column`},
		{"decimal comma", "x;a;b\ng1;1,5;2.5\n",
			`in:2:2: feature "g1", sample "a": "1,5" has a decimal comma: write decimals with a point, or ` +
				`give -decimal comma if all have a comma`},
		{"a comma of thousands or of decimals", "x;a;b\ng1;-1,234;2\n",
			`in:2:2: feature "g1", sample "a": "-1,234" has a comma: write decimals with a point, and ` +
				`thousands without a mark; give -decimal comma if it stands before decimals`},
		{"commas of thousands", "x\ta\tb\ng1\t1,234,567.5\t2\n",
			`in:2:2: feature "g1", sample "a": "1,234,567.5" has a comma: write decimals with a point, and ` +
				`thousands without a mark`},
		{"short row", "x\ta\tb\ng1\t1\t2\ng2\t3\n",
			`in:3:3: feature "g2", sample "b": this line has 2 cells, the lines before it have 3: add the ` +
				`missing cells`},
		{"a row cut short", "x\ta\tb\ng1\t1\t2\ng2\t3",
			`in:3:3: feature "g2", sample "b": this line has 2 cells, the lines before it have 3: add the ` +
				`missing cells, or copy or download the file again if it was cut short here`},
		{"a row of one cell", "x\ta\tb\ng1\t1\t2\ng2\n",
			`in:3:2: feature "g2", sample "a": this line has 1 cell, the lines before it have 3: add the ` +
				`missing cells`},
		{"long row", "x\ta\tb\ng1\t1\t2\ng2\t3\t4\t5\n",
			`in:3:4: feature "g2": this line has 4 cells, the lines before it have 3: remove the cells ` +
				`that are too many`},
		{"long header", "x\ta\tb\tc\ng1\t1\t2\n",
			`in:2:4: feature "g1", sample "c": this line has 3 cells, the header has 4: add the ` +
				`missing cells`},
		{"ragged numbers", "1,2\n3,4,5\n",
			`in:2:3: feature "f2": this line has 3 cells, the lines before it have 2: remove the cells ` +
				`that are too many`},
		{"ragged at a short first row", "g1,1\ng2,1,2\n",
			`in:2:3: feature "g2": this line has 3 cells, the lines before it have 2: remove the cells ` +
				`that are too many`},
		{"NA in the first line of numbers", "1,NA\n3,4\n",
			`in:1:2: feature "f1", sample "s2": "NA" is a missing value` + missing},
		{"NA in the first column of numbers", "a,b\n1,2\nNA,4\n",
			`in:3:1: feature "f2", sample "a": "NA" is a missing value` + missing},
		{"negative in the first column of numbers", "1,2\n-3,4\n",
			`in:2:1: feature "f2", sample "s1": -3 is negative: this needs values of at least 0, such as ` +
				`counts or log2(1+x); centred values and log ratios are for -loss frobenius, with any ` +
				`-method but nmf and without -log1p`},
		{"R header", "a\tb\ng1\t1\tNA\n",
			`in:2:3: feature "g1", sample "b": "NA" is a missing value` + missing},
		{"open quotation mark in csv", "x,a\n\"g1,1\ng2,2\n",
			"in:2:1: a quotation mark that is out of place or never closed in its line: put a cell that " +
				"holds one in quotation marks and double those inside"},
		{"open quotation mark in tsv", "x\ta\n\"g1\t1\ng2\t2\n",
			"in:2:1: a quotation mark that is out of place or never closed in its line: put a cell that " +
				"holds one in quotation marks and double those inside"},
		{"line ends of old Macs", "x,a\rg,1\r",
			"in:1:1: a cell with a carriage return in it: end lines as Unix (LF) or Windows (CRLF) does"},
		{"a cut zip archive", "PK\x03\x04rest",
			"in: the archive is damaged or cut short (zip: not a valid zip file): copy or download the " +
				"file again"},
		{"UTF-16", "\xff\xfex\x00", "in: this is text in UTF-16: save it as UTF-8 (in Excel: \"CSV UTF-8\")"},
		{"binary", "\x89HDF\r\n\x1a\n\x00",
			"in: this is HDF5 (h5, h5ad, loom, MATLAB 7.3): save the matrix as CSV, tab-separated text, " +
				"xlsx, GCT, Matrix Market, npy or npz; of an h5ad, in Python: import anndata; " +
				`anndata.read_h5ad("in").to_df().T.to_csv("OUT.csv.gz")`},
		{"Parquet", "PAR1\x15\x04",
			"in: this is a Parquet file: save the matrix as CSV, tab-separated text, xlsx, GCT, Matrix " +
				"Market, npy or npz; in Python: import pandas; " +
				`pandas.read_parquet("in").to_csv("OUT.csv.gz")`},
		{"R", "X\n\x00\x00\x00\x03",
			"in: this is a file of R's saveRDS: save the matrix as CSV, tab-separated text, xlsx, GCT, " +
				`Matrix Market, npy or npz; in R: write.csv(as.matrix(readRDS("in")), "OUT.csv")`},
		{"binary of another kind", "\x00\x01\x02",
			"in: this is a binary file of a kind not known here: save the matrix as CSV, tab-separated " +
				"text, xlsx, GCT, Matrix Market, npy or npz"},
		{"gzip cut in its head", gzipped("x,a\n")[:5],
			"in: the gzip data are damaged or cut short (unexpected EOF): copy or download the file again"},
		{"gzip cut in its data", gzipped("x,a,b\ng1,1,2\n")[:25],
			"in: the gzip data are damaged or cut short (unexpected EOF): copy or download the file again"},
	})
}

func TestReadPassesOnOtherErrors(t *testing.T) {
	broken := errors.New("cable pulled")
	_, err := table.Read(io.MultiReader(strings.NewReader("x,a\n"), iotest.ErrReader(broken)), "in",
		table.Options{})
	var fault *table.Error
	if !errors.Is(err, broken) || errors.As(err, &fault) {
		t.Errorf("got %v", err)
	}
}

// TestReadFromWithin: a file is read from where it stands, in text that is read twice as well.
func TestReadFromWithin(t *testing.T) {
	r := strings.NewReader("some other text\nx,a\n" + strings.Repeat("g,1\n", table.Buffered))
	r.Seek(int64(len("some other text\n")), io.SeekStart)
	got, err := table.Read(r, "in", table.Options{})
	if err != nil || len(got.Features) != table.Buffered || cap(got.X.Data) != table.Buffered {
		t.Errorf("%d rows in room for %d, %v", len(got.Features), cap(got.X.Data), err)
	}
}

func TestSelect(t *testing.T) {
	in := Must(read("x,a,b\ng1,1,2\n\ng2,3,4\ng3,5,6\n", table.Options{}))(t)
	got := in.SelectOr([]int{2, 1}, nil)
	if n, f := numbers(got), strings.Join(got.Features, "|"); n != "5 6/3 4" || f != "g3|g2" {
		t.Errorf("got %s, %s", f, n)
	}
	if e := got.Error(1, 1, "odd").Error(); e != `in:4:3: feature "g2", sample "b": odd` {
		t.Error(e)
	}
	if e := got.Error(-1, 0, "odd").Error(); e != `in: sample "a": odd` {
		t.Error(e)
	}
	if e := got.Error(0, -1, "odd").Error(); e != `in:5: feature "g3": odd` {
		t.Error(e)
	}
	if or := in.SelectOr([]int{-1, 0}, []string{"new", ""}); !or.Absent(0) || or.Absent(1) ||
		shown(or) != "new|g1; a|b; NaN NaN/1 2" {
		t.Errorf("with a row that is missing: %s", shown(or))
	}
	got.X.Set(0, 0, 9)
	if in.X.At(2, 0) != 5 {
		t.Error("SelectOr shares numbers with its table")
	}
}

func TestWrite(t *testing.T) {
	m := quantmf.NewMat(2, 2)
	copy(m.Data, []float64{1.0 / 3, 0, 1e300, 2})
	for _, c := range []struct{ file, want string }{
		{"u.tsv", "feature\ta,b\t\"c\td\"\n\"\"\"g\"\"\"\t0.3333333333333333\t0\n\"5\"\" x\"\t1e+300\t2\n"},
		{"u.csv", "feature,\"a,b\",\"c\td\"\n\"\"\"g\"\"\",0.3333333333333333,0\n\"5\"\" x\",1e+300,2\n"},
		{"u.txt", "feature\ta,b\t\"c\td\"\n\"\"\"g\"\"\"\t0.3333333333333333\t0\n\"5\"\" x\"\t1e+300\t2\n"},
	} {
		var b bytes.Buffer
		if err := table.Write(&b, c.file, "feature", []string{`"g"`, `5" x`}, []string{"a,b", "c\td"},
			m); err != nil || b.String() != c.want {
			t.Errorf("%s: %v, got %q, want %q", c.file, err, b.String(), c.want)
		}
		var z bytes.Buffer
		table.Write(&z, c.file+".gz", "feature", []string{`"g"`, `5" x`}, []string{"a,b", "c\td"}, m)
		r := Must(gzip.NewReader(&z))(t)
		if plain, _ := io.ReadAll(r); string(plain) != c.want {
			t.Errorf("%s.gz: got %q", c.file, plain)
		}
	}
}

// TestManyUnnamed: the columns of a text without names are numbered, each by one step: a million of them in
// less time than anyone waits.
func TestManyUnnamed(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	const n = 1 << 17
	x := Must(read(strings.Repeat("1,", n-1)+"1\n", table.Options{}))(t)
	if len(x.Samples) != n || x.Samples[0] != "s1" || x.Samples[n-1] != "s131072" {
		t.Errorf("%d samples, from %s to %s", len(x.Samples), x.Samples[0], x.Samples[len(x.Samples)-1])
	}
}
