package main

// This file tests how matrices are read by the commands: the flags, what is told of names,
// and features that find those of a model.

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestFeaturesByName: features in another order give the same bits; what is not in both is
// an error that says so, or is left out or missing where that is allowed.
func TestFeaturesByName(t *testing.T) {
	folder(t)
	quiet(t, 0, "fit -method qmf -compare none -k 2 -epochs 3 -missing -o m.qmf matrix.tsv")
	quiet(t, 0, "transform m.qmf matrix.tsv -o v.tsv")
	lines := strings.Split(strings.TrimSpace(small()), "\n")
	write := func(name string, lines ...string) { writeText(t, name, strings.Join(lines, "\n")+"\n") }
	other := slices.Clone(lines)
	slices.Reverse(other[1:])
	write("reversed.tsv", other...)
	extra := strings.Replace(lines[1], "g0", "more", 1)
	write("extra.tsv", slices.Insert(other, 4, extra)...)
	write("fewer.tsv", append(slices.Clone(lines[:3]), lines[4:]...)...)
	holes := slices.Clone(lines)
	holes[3] = "g2" + strings.Repeat("\tNA", 9)
	write("holes.tsv", holes...)

	want := textOf(t, "v.tsv")
	for _, args := range []string{"reversed.tsv", "extra.tsv -allow extra",
		"extra.tsv -allow extra,missing"} {
		_, e := quiet(t, 0, "transform m.qmf -o out.tsv "+args)
		if textOf(t, "out.tsv") != want {
			t.Errorf("%s: another result", args)
		}
		const warning = `warning: extra.tsv: 1 of the 15 features are not the model's: "more"; left out`
		if strings.Contains(e, warning) != strings.HasPrefix(args, "extra") {
			t.Errorf("%s: %s", args, e)
		}
	}
	quiet(t, 0, "transform m.qmf holes.tsv -o want.tsv")
	says(t, 0, "transform m.qmf fewer.tsv -o out.tsv -allow missing",
		`1 of the model's 14 features are not there: "g2"; taken for missing values`)
	if textOf(t, "out.tsv") != textOf(t, "want.tsv") {
		t.Error("a missing feature is no missing values")
	}
	// The report wants the matrix that was fitted, in whatever order of features.
	for _, args := range []string{"report m.qmf %s -o r.html", "inspect m.qmf %s -json"} {
		var outs []string
		for _, file := range []string{"matrix.tsv", "reversed.tsv"} {
			out, _ := quiet(t, 0, strings.Replace(args, "%s", file, 1))
			if page, err := os.ReadFile("r.html"); err == nil && out == "" {
				out = string(page)
			}
			outs = append(outs, out)
		}
		if outs[0] != outs[1] {
			t.Errorf("%s: differs by the order of features", args)
		}
	}
	// No name in common is most often another column of names.
	write("others.tsv", strings.Split(strings.ReplaceAll(small(), "\ng", "\nENSG"), "\n")...)
	says(t, 3, "transform m.qmf others.tsv -o -",
		`none of the model's 14 features is there: they are called "g0", "g1", "g2", ..., and those of the `+
			`matrix "ENSG0"`)
}

// TestDuplicates: of features with one name the first is the model's first.
func TestDuplicates(t *testing.T) {
	folder(t)
	in := strings.Replace(small(), "\ng5\t", "\ng2\t", 1)
	writeText(t, "twice.tsv", in)
	says(t, 0, "fit -method qmf -compare none -k 2 -epochs 3 -o m.qmf twice.tsv",
		`warning: twice.tsv: 1 name stands more than once among those of features: "g2"`)
	quiet(t, 0, "transform m.qmf twice.tsv -o v.tsv")
	lines := strings.Split(strings.TrimSpace(in), "\n")
	lines[1], lines[2] = lines[2], lines[1]
	writeText(t, "moved.tsv", strings.Join(lines, "\n"))
	quiet(t, 0, "transform m.qmf moved.tsv -o w.tsv")
	if textOf(t, "v.tsv") != textOf(t, "w.tsv") {
		t.Error("another result")
	}
}

// long is a table with a line for each value.
const long = "gene,sample,value\ng,a,1\ng,b,2\nh,a,3\n"

// TestLong: a long table is refused with the flag that reads it, whatever the command.
func TestLong(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{"fit -k 1 -", "rank -k 1 -", "impute - -o -", "convert - -",
		"shard plan -k 1 -o d -"} {
		_, said := fed(t, cli.BadInput, long, args)
		Has(t, said, "give -long gene,sample,value, or make a matrix of it once by quantmf convert -long "+
			"gene,sample,value IN OUT.tsv")
	}
	out, _ := fed(t, 0, long, "fit -method nmf -k 1 -missing -long gene,sample,value -v - -")
	if !strings.HasPrefix(out, "component\ta\tb\n") {
		t.Error(out)
	}
}

// TestReadingFlags: each flag reaches the reader, in the commands that read a matrix.
func TestReadingFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ args, in, out, err string }{
		{"convert - -", "x,1,2\ng,3,4\nh,5.5,6\n", "feature\t1\t2\ng\t3\t4\nh\t5.5\t6\n", ""},
		{"convert - - -header no", "gene,1,2\ng,3,4\n", "feature\ts1\ts2\ngene\t1\t2\ng\t3\t4\n", ""},
		{"convert - - -header yes", "a,1,2\nb,3,4\n", "feature\t1\t2\nb\t3\t4\n", ""},
		{"convert - - -names none", "gene,b\n1,2\n", "feature\tgene\tb\nf1\t1\t2\n",
			`stdin: 1 feature × 2 samples; comma-separated, no names of features, samples by line 1` + "\n"},
		{"convert - - -names 2", "a,id,b\n1,x,2\n", "feature\ta\tb\nx\t1\t2\n", ""},
		{"convert - - -names id", "a,id,b\n1,7,2\n", "feature\ta\tb\n7\t1\t2\n", ""},
		{"convert -na -- -sep , -- - -", "gene,a,b\ng,--,2\n", "feature\ta\tb\ng\tNaN\t2\n", ""},
		{"convert - - -names 2,1", "n,id,b\n9,7,2\n", "feature\tb\n7\t2\n",
			`features named by column 2 ("id"), samples by line 1; column 1 ("n") left out`},
		{"convert - - -names id,n", "n,id,b\n9,7,2\n", "feature\tb\n7\t2\n",
			`features named by column 2 ("id"), samples by line 1; column 1 ("n") left out`},
		{"convert - -", "\"\",\"gene\",\"s1\",\"s2\"\n\"1\",\"g\",3,4\n\"2\",\"h\",5,6\n",
			"feature\ts1\ts2\ng\t3\t4\nh\t5\t6\n", "column 1 numbers the rows"},
		{"convert - - -names gene", ",gene,s1,s2\n0,g,3,4\n1,h,5,6\n",
			"feature\ts1\ts2\ng\t3\t4\nh\t5\t6\n", "column 1 numbers the rows"},
		{"convert - - -long gene,sample,value", long, "feature\ta\tb\ng\t1\t2\nh\t3\tNaN\n", ""},
		{"convert - - -long 2,1,3", "sample,gene,value\na,g,1\nb,g,2\na,h,3\n",
			"feature\ta\tb\ng\t1\t2\nh\t3\tNaN\n", ""},
		{"convert - - -na -999,lost", "gene,a,b,c\ng,-999,-999.0,lost\n",
			"feature\ta\tb\tc\ng\tNaN\tNaN\tNaN\n", ""},
		{"convert - - -sep | -transpose", "s|g|h\na|1|2\n", "feature\ta\ng\t1\nh\t2\n", "; then transposed"},
		{"convert - - -format csv", "gene,a\ng,1\n", "feature,a\ng,1\n", ""},
		{"convert - - -format tsv,gct", "gene\ta,b\ng\t1\n", "#1.2\n1\t1\nName\tDescription\ta,b\ng\t\t1\n",
			""},
	} {
		out, e := fed(t, 0, c.in, c.args)
		if out != c.out || !strings.Contains(e, c.err) {
			t.Errorf("%s: %q, %s", c.args, out, e)
		}
	}
	for _, c := range []saying{
		{"convert - - -header maybe", 2, "-header maybe: must be one of auto, yes, no"},
		{"convert - - -sep 5", 2, "-sep 5: must be tab, comma"},
		{"convert - - -format xls", 2, "-format xls: must be one of tsv"},
		{"convert - - -allow extra", 2, "there is no flag -allow of convert"},
		{"transform m x -o - -allow all", 2, "-allow all: must be extra, missing"},
		{"convert none.tsv x.xyz", 2, `"x.xyz": the end of the name must say the format`},
		{"convert none.tsv x", 2, `"x": the end of the name must say the format`},
		{"convert none.tsv x.bz2", 2, `bzip2 can be read and not written`},
		{"transform none.qmf none.tsv -o x.dat", 2, `"x.dat": the end of the name must say the format`},
		{"reconstruct none.qmf -o x.dat", 2, `"x.dat": the end of the name must say the format`},
		{"normalize none.qmf none.tsv -o x.dat", 2, `"x.dat": the end of the name must say the format`},
		{"fit -v x.dat none.tsv", 2, `"x.dat": the end of the name must say the format`},
		{"convert -- - -names x", 2, "x is too much: wanted IN OUT"},
		{"convert - -- -none/x.tsv", 1, "cannot write -none/x.tsv: "},
		{"convert - -- -x", 2, `"-x": the end of the name must say the format`},
		{"convert - - -names nobody", 3, `-names "nobody": none of the 2 columns is called "nobody"`},
		{"convert - - -format npz", 3, `stdin: this is no npz`},
	} {
		_, e := fed(t, c.code, "gene,a\ng,1\n", c.args)
		Has(t, e, c.says)
	}
	// The flags are in the command that a model repeats, and hold in fit and rank.
	folder(t)
	writeText(t, "odd.txt", strings.ReplaceAll(small(), "\t", "|"))
	quiet(t, 0, "fit -k 2 -epochs 2 -sep | -names 1,2 -o m.qmf odd.txt")
	out, _ := quiet(t, 0, "inspect m.qmf")
	Has(t, out, "-names 1,2 -sep '|' -method auto", "14 features × 8 samples")
	quiet(t, 0, "rank -k 1 -repeats 1 -epochs 1 -sep | odd.txt")
}

// TestControlCharacters: names cannot speak to the terminal.
func TestControlCharacters(t *testing.T) {
	folder(t)
	in := strings.NewReplacer("\ng3\t", "\n\x1b[2J\x07g3\t", "\ts1\t",
		"\t\x1b[31m\u202es1\t").Replace(small())
	writeText(t, "evil.tsv", in)
	writeText(t, "bad.tsv", strings.Replace(in, "\t\x1b", "\tx\x1b", 1)+"\x1b[0m"+strings.Repeat("\tlow", 9)+
		"\n")
	all := ""
	for _, args := range []string{"fit -method qmf -compare none -k 2 -epochs 2 -o m.qmf evil.tsv",
		"inspect m.qmf evil.tsv",
		"inspect m.qmf", "transform m.qmf evil.tsv -o v.npy"} {
		out, e := quiet(t, 0, args)
		all += out + e
	}
	for _, args := range []string{"fit -method qmf -k 2 bad.tsv", "transform m.qmf bad.tsv -o v.npy"} {
		out, e := quiet(t, 3, args)
		all += out + e
	}
	if runtime.GOOS != "windows" { // which has no such names
		writeText(t, "\x1b]0;x\x07.tsv", in)
		_, e := quiet(t, 0, "convert \x1b]0;x\x07.tsv v.npy -progress plain")
		all += e
	}
	Lacks(t, all, "\x1b", "\x07", "\u202e")
	Has(t, all, `\x1b[2J\ag3`)
	out, _ := quiet(t, 0, "inspect -json m.qmf")
	if name := decoded[modelObject](t, out).Features[3].Name; name != "\x1b[2J\x07g3" {
		t.Errorf("%q", name)
	}
}

// TestRemarks: what is odd about a matrix is said.
func TestRemarks(t *testing.T) {
	in := "gene\ta\tb\tb\nzero\t0\t0\t0\none\t1\t1\t1\nholes\tNA\t2\t2\ng\t1\t2\t3\n"
	_, e := fed(t, 0, in, "convert - -")
	Has(t, e, `stdin: 4 features × 3 samples; tab-separated, features named by column 1 ("gene"), samples `+
		"by line 1\n", `warning: stdin: 1 name stands more than once among those of samples: "b"`+"\n",
		`warning: stdin: 1 feature is 0 in all samples: "zero"`+"\n",
		`warning: stdin: 2 features are the same in all samples: "one", "holes"`+"\n")
}

// TestConvertIsBounded: a few bytes do not make gigabytes.
func TestConvertIsBounded(t *testing.T) {
	out, e := fed(t, cli.BadInput,
		"%%MatrixMarket matrix coordinate real general\n32000 32000 1\n1 1 1\n", "convert - -")
	Has(t, e, "32000 × 32000 numbers with only 1 of them in the file would take 7.63 GiB")
	if out != "" {
		t.Error(out)
	}
}

// TestSparseInput: a fit of a file that lists what is not 0 says and writes what a fit of all its numbers
// does.
func TestSparseInput(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	const d, n = 20, 15
	var listed, all strings.Builder
	entries := 0
	for j := range n {
		for i := range d {
			v := 0
			if (3*i+2*j)%5 == 0 {
				v = 1 + (i*7+j*5)%13
				fmt.Fprintf(&listed, "%d %d %d\n", i+1, j+1, v)
				entries++
			}
			fmt.Fprintf(&all, "%d\n", v)
		}
	}
	sparse := fmt.Sprintf("%%%%MatrixMarket matrix coordinate integer general\n%d %d %d\n%s", d, n, entries,
		listed.String())
	dense := fmt.Sprintf("%%%%MatrixMarket matrix array integer general\n%d %d\n%s", d, n, all.String())
	time := regexp.MustCompile(`(?m)^Time .*\n`)
	for _, args := range []string{"", "-method nmf ", "-method qmfq -compare none ",
		"-method bqmf -compare none ", "-method qmf -compare none -log1p -top 12 "} {
		line := "fit -k 2 -epochs 2 -v V.tsv " + args + "-"
		_, want := fed(t, 0, dense, line)
		v := textOf(t, "V.tsv")
		_, got := fed(t, 0, sparse, line)
		if textOf(t, "V.tsv") != v {
			t.Errorf("%s: another V\n%s", args, got)
		}
		if got, want := time.ReplaceAllString(got, ""), time.ReplaceAllString(want, ""); got != want {
			t.Errorf("%s: it says\n%s\nwant\n%s", args, got, want)
		}
	}
}

// TestDates: a name that a spreadsheet has made a date is said.
func TestDates(t *testing.T) {
	folder(t)
	writeText(t, "dates.tsv", "g\ta\tb\nTP53\t1\t2\n1-Mar\t3\t4\nsep-02\t3\t6\n32-Mar\t3\t5\nA-1\t1\t2\n")
	want := `warning: dates.tsv: 2 features are called like dates, which spreadsheets make of names such ` +
		`as MARCH1 and SEPT2: "1-Mar", "sep-02"`
	says(t, 0, "convert dates.tsv x.tsv", want)
}
