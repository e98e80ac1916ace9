package table_test

// This file tests what is taken for names: on the tables of other programs (testdata/tables.py,
// testdata/make.R), on tables that could be read in two ways, and on flags.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// TestReadTables: the tables of NumPy, pandas, R, Excel, featureCounts, cBioPortal and 10x.
func TestReadTables(t *testing.T) {
	for _, c := range []struct{ file, want, taken, doubts string }{
		{"pandas.csv", "TP53|EGFR; a|b; 1.5 2/3 4.25",
			"comma-separated, features named by column 1, samples by line 1", ""},
		{"pandas.tsv.gz", "TP53|EGFR; a|b; 1.5 2/3 4.25",
			`tab-separated, features named by column 1 ("gene"), samples by line 1`, ""},
		{"pandas.csv.bz2", "TP53|EGFR; a|b; 1.5 2/3 4.25",
			`comma-separated, features named by column 1 ("gene"), samples by line 1`, ""},
		{"pandas-numbered.csv", "0|1; 0|1; 1.5 2/3 4.25",
			"comma-separated, features named by column 1, samples by line 1", ""},
		{"pandas-noindex.csv", "f1|f2; 0|1; 1.5 2/3 4.25",
			"comma-separated, no names of features, samples by line 1",
			"line 1 holds numbers that may be names or values: it was taken for names of samples"},
		{"pandas-missing.csv", "TP53|EGFR; a|b; 1.5 2/3 NaN",
			"comma-separated, features named by column 1, samples by line 1", ""},
		{"cbioportal.txt", "TP53|EGFR; a|b; 1.5 2/3 4.25",
			`tab-separated, features named by column 1 ("Hugo_Symbol"), samples by line 1; column 2 ` +
				`("Entrez_Gene_Id") left out`, ""},
		{"entrez.csv", "7157|1956; a|b; 1.5 2/3 4.25",
			`comma-separated, features named by column 1 ("Entrez_Gene_Id"), samples by line 1`, ""},
		{"numbered-samples.csv", "TP53|EGFR; 101|205; 1.5 2/3 4.25",
			`comma-separated, features named by column 1 ("gene"), samples by line 1`, ""},
		{"featurecounts.txt", "ENSG1|ENSG2; a.bam|b.bam; 5 0/0 7",
			`tab-separated, features named by column 1 ("Geneid"), samples by line 2; columns 2 ("Chr"), 3 ` +
				`("Start"), 4 ("End"), 5 ("Strand"), 6 ("Length") left out`, ""},
		{"numpy.txt", "f1|f2; s1|s2; 1.5 2/3 4.25",
			"blank-separated, no names of features, no names of samples", ""},
		{"numpy.csv", "f1|f2; a|b; 1.5 2/3 4.25",
			"comma-separated, no names of features, samples by line 1", ""},
		{"excel.csv", `TP53|EGFR; Tumor, primary|a "b"; 1.5 2/3 4.25`,
			`comma-separated, features named by column 1 ("Gene"), samples by line 1`, ""},
		{"sheet.xlsx", `TP53|EGFR; Tumor, primary|a "b"; 1.5 2/3 4.25`,
			`sheet "Sheet" of an Excel workbook, features named by column 1 ("Gene"), samples by line 1`, ""},
		{"excel-sep.csv", `TP53|EGFR; Tumor, primary|a "b"; 1.5 2/3 4.25`,
			`semicolon-separated, features named by column 1 ("Gene"), samples by line 2`, ""},
		{"r.txt", "TP53|EGFR; a|b; 1.5 2/3 4.25",
			"blank-separated, features named by column 1, samples by line 1", ""},
		{"r-tab.txt", "TP53|EGFR; a|b; 1.5 2/3 4.25",
			"tab-separated, features named by column 1, samples by line 1", ""},
		{"r.tsv.gz", "TP53|EGFR; a; 1.5/3",
			"tab-separated, features named by column 1, samples by line 1", ""},
		{"r.csv", "TP53|EGFR; a|b; 1.5 2/3 4.25",
			"comma-separated, features named by column 1, samples by line 1", ""},
		{"r2.csv", "TP53|EGFR; a|b; 2 2/3 4",
			"semicolon-separated, features named by column 1, samples by line 1", ""},
		{"r-comma.csv", "TP53|EGFR; a|b; 0.75 1/1.5 2.125",
			"semicolon-separated, features named by column 1, samples by line 1; decimal commas", ""},
		{"r-none.txt", "f1|f2; s1|s2; 1.5 2/3 4.25",
			"blank-separated, no names of features, no names of samples", ""},
		{"r-norows.csv", "f1|f2; a|b; 1.5 2/3 4.25",
			"comma-separated, no names of features, samples by line 1", ""},
		{"r-numbers.txt", "7157|1956; 101|205; 1.5 2/3 4.25",
			"blank-separated, features named by column 1, samples by line 1", ""},
		{"r-numbers.csv", "7157|1956; 101|205; 1.5 2/3 4.25",
			"comma-separated, features named by column 1, samples by line 1", ""},
		{"r-odd.txt", `5" end|a b; s 1|s,2; 1.5 2/3 4.25`,
			"blank-separated, features named by column 1, samples by line 1", ""},
		{"r-odd.csv", `5" end|a b; s 1|s,2; 1.5 2/3 4.25`,
			"comma-separated, features named by column 1, samples by line 1", ""},
		{"r-missing.txt", "TP53|EGFR; a|b; 1.5 2/3 NaN",
			"blank-separated, features named by column 1, samples by line 1", ""},
		{"tenx", "G0|G1|G2; AAA-1|CCC-1; 0 3/5 0/0 1",
			"a 10x folder, features named by column 2 of features.tsv.gz, samples by barcodes.tsv.gz",
			"the features are of several types: 1 Antibody Capture, 2 Gene Expression"},
		{"tenx2", "G0|G1|G2; AAA-1|CCC-1; 0 3/5 0/0 1",
			"a 10x folder, features named by column 2 of genes.tsv, samples by barcodes.tsv", ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			var got *table.Table
			if strings.HasPrefix(c.file, "tenx") {
				var err error
				if got, err = table.ReadFolder(os.DirFS("testdata/"+c.file), c.file, anything); err != nil {
					t.Fatal(err)
				}
				Equal(t, shown(got), c.want, "got")
			} else {
				got = readsAs(t, file(t, c.file), anything, c.want)
			}
			Equal(t, got.Taken, c.taken, "got")
			if d := strings.Join(got.Warnings, "|"); d != c.doubts &&
				(c.doubts == "" || !strings.HasPrefix(d, c.doubts)) {
				t.Errorf("doubts %q", d)
			}
		})
	}
}

// TestDoubts: what could be read in two ways is said, and each flag makes it the one or
// the other.
func TestDoubts(t *testing.T) {
	for _, c := range []struct {
		name, in  string
		o         table.Options
		want, say string // features and numbers; what is in the only warning, "" for none
	}{
		{"numeric names of samples, a corner of no known name", "cohort,1,2,3\ng,4,5,6\nh,7,8,8\n",
			table.Options{},
			"g|h; 4 5 6/7 8 8", "line 1 holds numbers that may be names or values: it was taken for " +
				"names of samples; give -header no"},
		{"a first feature like the others", "g1,1,2,3\ng2,4,5,6\n", table.Options{}, "g1|g2; 1 2 3/4 5 6",
			""},
		{"years", "country,1990,2000,2010\nFR,1.5,2,3\n", table.Options{}, "FR; 1.5 2 3",
			"taken for names of samples"},
		{"counts in no order", "a,7,3,9\nbb,4,5,6\n", table.Options{}, "a|bb; 7 3 9/4 5 6",
			"it was taken for values; give -header yes"},
		{"the same, overruled", "a,7,3,9\nbb,4,5,6\n", table.Options{Header: table.HeaderYes}, "bb; 4 5 6",
			""},
		{"the first, overruled", "cohort,1,2,3\ng,4,5,6\n", table.Options{Header: table.HeaderNo},
			"cohort|g; 1 2 3/4 5 6", ""},
		{"unknown identifiers", "S0,S1,S2\n7157,5,5\n1956,6,6\n3845,6,6\n", table.Options{},
			"f1|f2|f3; 7157 5 5/1956 6 6/3845 6 6",
			`column 1 ("S0") holds whole numbers, all different, and was taken for values; give -names 1`},
		{"the same, overruled", "S0,S1,S2\n7157,5,5\n1956,6,6\n3845,6,6\n", table.Options{Names: "1"},
			"7157|1956|3845; 5 5/6 6/6 6", ""},
		{"something like identifiers", "my_gene_id,S1\n7157,5\n1956,6\n", table.Options{}, "7157|1956; 5/6",
			`column 1 ("my_gene_id") holds whole numbers and was taken for names of features; give ` +
				`-names none`},
		{"the same, overruled", "my_gene_id,S1\n7157,5\n1956,6\n", table.Options{Names: "none"},
			"f1|f2; 7157 5/1956 6", ""},
		{"lengths", "gene_id,length,S1\na,1000,5\nb,700,6\n", table.Options{}, "a|b; 1000 5/700 6",
			`column 2 ("length") was taken for a sample; give -names 1-2`},
		{"the same, overruled", "gene_id,length,S1\na,1000,5\nb,700,6\n", table.Options{Names: "1-2"},
			"a|b; 5/6",
			""},
		{"places of genes", "gene_id,chr,start,end,S1\na,1,1000,2000,5\nb,X,700,900,6\n", table.Options{},
			"a|b; 5/6", ""},
		{"samples in rows", "sample,TP53,EGFR\ns1,1,2\ns2,3,4\n", table.Options{}, "s1|s2; 1 2/3 4",
			"speaks of samples in rows"},
		{"the same, transposed", "sample,TP53,EGFR\ns1,1,2\ns2,3,4\n", table.Options{Transpose: true},
			"TP53|EGFR; 1 3/2 4", "speaks of samples in rows"},
		{"a column of words", "gene,what,S1\na,first gene,5\nb,,6\n", table.Options{}, "a|b; 5/6", ""},
		{"a short header of numbers", "1,2\n7157,5,6\n1956,5,6\n", table.Options{}, "7157|1956; 5 6/5 6",
			"one cell fewer than the lines below"},
		{"what is written here", "feature,length,chr\na,1,2\n", table.Options{}, "a; 1 2", ""},
		{"a short header, names in column 2", "a b\n1 g 2\n", table.Options{Names: "2", Sep: ' '}, "g; 1 2",
			""},
		{"separators before the header", ",,\n,,\nx,a,b\ng,1,2\n;;\n", table.Options{}, "g; 1 2", ""},
		{"comments", "# one\n# two\n\nx,a\ng,1\n", table.Options{}, "g; 1", ""},
		{"a comment that is a header", "# made by hand\n#OTU ID\ta\tb\nx\t1\t2\n", table.Options{}, "x; 1 2",
			""},
		{"blanks, many of them", "  x    a   b  \n  g    1   2  \n\n  h \t 3  4\n", table.Options{},
			"g|h; 1 2/3 4",
			""},
		{"words of missing values", "x,a,b\ng,-999,below\n",
			table.Options{Missing: true, NA: []string{"-999", "below"}}, "g; NaN NaN", ""},
		{"lines that end in a separator", "x,a,b,\ng,1,2,\nh,3,4,\n", table.Options{}, "g|h; 1 2/3 4", ""},
		{"all but the first", "x\ta\tb\ng\t1\t2\t\nh\t3\t4\t\n", table.Options{Missing: true}, "g|h; 1 2/3 4",
			"the empty column 4 was left out; give -header yes"},
		{"the same, overruled", "x\ta\tb\ng\t1\t2\t\nh\t3\t4\t\n",
			table.Options{Missing: true, Header: table.HeaderYes},
			"g|h; 1 2 NaN/3 4 NaN", ""},
		{"a last sample that misses one value", "x,a,b\ng,1,\nh,3,4\n", table.Options{Missing: true},
			"g|h; 1 NaN/3 4", ""},
		{"names that Go writes numbers like", "1_1,1,2\n1_2,3,4\n", table.Options{}, "1_1|1_2; 1 2/3 4", ""},
		{"others", "0x1p4,1,2\n0x1p5,3,4\n", table.Options{}, "0x1p4|0x1p5; 1 2/3 4", ""},
		{"samples called by numbers, column 1", "gene,1,2\n7157,5,6\n1956,5,6\n", table.Options{Names: "1"},
			"7157|1956; 5 6/5 6", ""},
		{"samples called by numbers, a heading", "1990,2000,2010\n5,6,7\n",
			table.Options{Names: "2000", Header: table.HeaderYes}, "6; 5 7", ""},
		{"no names, and a line of separators", "a,b\n1,2\n,\n3,4\n", table.Options{}, "f1|f2; 1 2/3 4",
			"line 3 holds nothing but separators: left out; write NA into a line"},
		{"several such lines", "a,b\n,\n1,2\n,\n\n3,4\n,\n", table.Options{}, "f1|f2; 1 2/3 4",
			"line 2 and 2 more hold nothing but separators"},
		{"names by a list of headings", "id,gene,length,S1\n1,a,1000,5\n2,b,700,6\n",
			table.Options{Names: "gene,length"}, "a|b; 5/6", ""},
		{"and of a number", "id,gene,length,S1\n7,a,1000,5\n2,b,700,6\n",
			table.Options{Names: "gene,1,length"},
			"a|b; 5/6", ""},
		{"a heading with a comma", "x;a,b;S1\n1;g;5\n", table.Options{Names: "a,b"}, "g; 1 5", ""},
		{"a separator of one's own", "x|a|b\ng|1|2\n", table.Options{Sep: '|'}, "g; 1 2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Must(read(c.in, c.o))(t)
			Equal(t, strings.Join(got.Features, "|")+"; "+numbers(got), c.want, "got")
			if d := strings.Join(got.Warnings, "|"); !strings.Contains(d, c.say) ||
				(c.say == "") != (d == "") ||
				len(got.Warnings) > 1 {
				t.Errorf("doubts %q", d)
			}
		})
	}
}

// TestFaultsOfNames: flags that fit no file, and what the first lines did not tell.
func TestFaultsOfNames(t *testing.T) {
	late := "x,a\n" + strings.Repeat("1,2\n", 100) + "g,2\n"
	for _, c := range []struct {
		in   string
		o    table.Options
		want string
	}{
		{late, table.Options{}, `in:102:1: feature "f101", sample "x": "g" is not a number: write a number ` +
			`here; names belong into the first line and the first column; the first lines hold numbers in ` +
			`column 1, which so was taken for values: give -names 1 if it names the features`},
		{late, table.Options{Names: "none"},
			`in:102:1: feature "f101", sample "x": "g" is not a number: write a number here; names belong ` +
				`into the first line and the first column; -names none says that column 1 holds values: ` +
				`leave it out if column 1 names the features`},
		{"x,a\ng,1\n", table.Options{Names: "3"},
			`in: -names "3": none of the 2 columns is called "3": give ` +
				`headings or numbers, such as gene,3-5`},
		{"0 0\nA 0 0\n", table.Options{Names: "none"},
			`in: the first line has one cell fewer than the lines below, as where it has none above the ` +
				`names of the features; -names none says that there are no such names`},
		{"x,a\ng,1\n", table.Options{Names: "0"},
			`in: -names "0": none of the 2 columns is called "0": give headings or numbers, such as ` +
				`gene,3-5`},
		{"x,a\ng,1\n", table.Options{Names: "x,b"},
			`in: -names "x,b": none of the 2 columns is called "b": give headings or numbers, such as ` +
				`gene,3-5`},
		{"x,a\ng,1\n", table.Options{Names: "1-2"}, `in:1: there is no column of numbers beside the names`},
		{"x\ta\ng\t1\n", table.Options{Format: "npz"}, `in: this is no npz: it does not begin like one`},
		{"#1.2\n1\t1\nName\tDescription\ta\ng\t\t1\n", table.Options{Format: "csv"},
			`in: this is gct, not csv`},
		{"sep=ab\nx,a\n", table.Options{}, `in:1: "sep=ab" names no separator of one character`},
	} {
		fails(t, c.in, c.o, c.want)
	}
}

// TestTransposedPlaces: a fault in a table that was transposed is where the file has it.
func TestTransposedPlaces(t *testing.T) {
	got := Must(read("x,note,a,b\ns1,yes,1,2\n\ns2,no,3,4\n", table.Options{Transpose: true}))(t)
	if e := got.Error(1, 1, "odd").Error(); e != `in:4:4: feature "b", sample "s2": odd` {
		t.Error(e)
	}
	one := got.SelectOr([]int{1}, nil)
	if e := one.Error(0, 0, "odd").Error(); e != `in:2:4: feature "b", sample "s1": odd` {
		t.Error(e)
	}
}

// TestTransposedFaults: an error of reading tells features from samples where samples are in rows.
func TestTransposedFaults(t *testing.T) {
	for in, want := range map[string]string{
		"x,a,b\ns1,1,2\ns2,3,low\n": `in:3:3: feature "b", sample "s2": "low" is not a number: `,
		"a,b\n1,2\n3,\n":            `in:3:2: feature "b", sample "s2": this cell is empty: `,
		"1,2\n3,\n":                 `in:2:2: feature "f2", sample "s2": this cell is empty: `,
		"1,2\n3\n":                  `in:2:2: feature "f2", sample "s2": this line has 1 cell`,
		"x,a,b\ns1,1,2\ns2,3,4,5\n": `in:3:4: sample "s2": this line has 4 cells`,
		"#1.2\n1\t1\nName\tDescription\ta\ns1\tnone\tlow\n": `in:4:3: feature "a", sample "s1": "low" is ` +
			`not a number: `,
	} {
		if _, err := read(in, table.Options{Transpose: true}); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

// closed is a folder in which no file can be opened.
type closed struct{ fstest.MapFS }

func (c closed) Open(name string) (fs.File, error) {
	if name == "." {
		return c.MapFS.Open(name)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

// TestFolderOfIdentifiers: a features.tsv of one column is said to be one.
func TestFolderOfIdentifiers(t *testing.T) {
	for features, want := range map[string]string{"G0\nG1\nG2\n": "1", "E0\tG0\nE1\tG1\nG2\n": "2"} {
		dir := fstest.MapFS{"matrix.mtx": {Data: []byte(file(t, "tenx2/matrix.mtx"))},
			"features.tsv": {Data: []byte(features)}, "barcodes.tsv": {Data: []byte("A\nB\n")}}
		got, err := table.ReadFolder(dir, "dir", table.Options{})
		if err != nil || strings.Join(got.Features, "|") != "G0|G1|G2" ||
			got.Taken != "a 10x folder, features named by column "+want+
				" of features.tsv, samples by barcodes.tsv" {
			t.Errorf("%q: %+v, %v", features, got, err)
		}
	}
}

// TestFolderFaults: what is not as 10x writes it.
func TestFolderFaults(t *testing.T) {
	none := closed{fstest.MapFS{"matrix.mtx": {}, "features.tsv": {}, "barcodes.tsv": {}}}
	if _, err := table.ReadFolder(none, "dir", table.Options{}); !errors.Is(err, fs.ErrPermission) ||
		!strings.HasPrefix(err.Error(), "open dir/matrix.mtx: ") {
		t.Errorf("a file that cannot be opened: %v", err)
	}
	for name, want := range map[string]string{
		"none":     "dir: this folder has no matrix.mtx or matrix.mtx.gz",
		"barcodes": "dir: this folder has no barcodes.tsv or barcodes.tsv.gz",
		"few": "dir/barcodes.tsv:1: there are 1 names, and 2 of the matrix: the matrix must have " +
			"features in rows",
		"many": "dir/genes.tsv:4: there are more names than the 3 of the matrix",
		"two":  `dir: this folder has several files of this kind, such as "a_matrix.mtx" and "matrix.mtx"`,
	} {
		dir := t.TempDir()
		for _, f := range []string{"matrix.mtx", "genes.tsv", "barcodes.tsv"} {
			text := file(t, "tenx2/"+f)
			switch {
			case name == "none" && f == "matrix.mtx", name == "barcodes" && f == "barcodes.tsv":
				continue
			case name == "few" && f == "barcodes.tsv":
				text = "A\n"
			case name == "many" && f == "genes.tsv":
				text += "E\tG\n"
			case name == "two" && f == "matrix.mtx":
				os.WriteFile(filepath.Join(dir, "a_"+f), []byte(text), 0o666)
			}
			os.WriteFile(filepath.Join(dir, f), []byte(text), 0o666)
		}
		_, err := table.ReadFolder(os.DirFS(dir), "dir", table.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTurned: a table is doubted where its columns have scales of their own, whichever way it was read, and
// not where rows have, nor where there are few of them; missing values do not count.
func TestTurned(t *testing.T) {
	// Scales 1, 10 and 100 of three, and values that vary by a third of them.
	wide := func(d int) string {
		text := strings.Builder{}
		for i, scale := range []float64{1, 10, 100} {
			fmt.Fprintf(&text, "m%d", i)
			for j := range d {
				if (i+j)%7 == 0 {
					text.WriteString("\tNA")
				} else {
					fmt.Fprintf(&text, "\t%g", scale*(1+float64(j*j%11)/33))
				}
			}
			text.WriteByte('\n')
		}
		return text.String()
	}
	long := func(d int) string {
		x := Must(read(wide(d), table.Options{Missing: true}))(t).X
		text := strings.Builder{}
		for j := range x.Cols {
			fmt.Fprintf(&text, "s%d", j)
			for i := range x.Rows {
				fmt.Fprintf(&text, "\t%g", x.At(i, j))
			}
			text.WriteByte('\n')
		}
		return text.String()
	}
	for _, c := range []struct {
		name, in  string
		transpose bool
		want      string
	}{
		{"samples in rows", long(40), false, "samples are in rows, give -transpose"},
		{"samples in rows, turned", long(40), true, ""},
		{"samples in columns", wide(40), false, ""},
		{"samples in columns, turned", wide(40), true, "samples are in columns, leave out -transpose"},
		{"nine features", long(9), false, ""},
		{"ten features", long(10), false, "samples are in rows, give -transpose"},
		{"two fifths", strings.Repeat("a\t0\t1\t2\nb\t2\t3\t4\n", 6), false, ""},
		{"three fifths", strings.Repeat("a\t0\t1.5\t3\nb\t2\t3.5\t5\n", 6), false, "60 % of the variance"},
		{"alike", strings.Repeat("a\t1\t1\t1\n", 12), false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := table.Options{Missing: true, Transpose: c.transpose, Header: table.HeaderNo}
			got := Must(read(c.in, o))(t)
			d := strings.Join(got.Warnings, "|")
			if (c.want == "") != (d == "") || !strings.Contains(d, c.want) {
				t.Errorf("said %q", d)
			}
		})
	}
}
