package main

// This file tests the whole program from its arguments to its exit code.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/report"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// small is a matrix of 14 features and 9 samples on bent scales, as text.
func small() string {
	var s strings.Builder
	s.WriteString("gene")
	for j := range 9 {
		fmt.Fprintf(&s, "\tp%d", j)
	}
	for i := range 14 {
		fmt.Fprintf(&s, "\ng%d", i)
		for j := range 9 {
			w := float64((i*5+j*3)%7)/7 + float64((j*j+i)%5)/5
			fmt.Fprintf(&s, "\t%.4f", math.Pow(w, float64(1+i%4)))
		}
	}
	return s.String() + "\n"
}

// folder goes to a fresh folder that holds matrix.tsv.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	writeText(t, "matrix.tsv", small())
	return dir
}

// files lists a folder, but for the matrix.
func files(t *testing.T, dir string) string {
	t.Helper()
	entries := Must(os.ReadDir(dir))(t)
	var names []string
	for _, e := range entries {
		if e.Name() != "matrix.tsv" {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name, args, stdin string
		code              int
		out, err          string // patterns
	}{
		{"nothing", "", "", 2, `^$`, `usage:\n  quantmf fit `},
		{"help", "-h", "", 0, `quantmf version`, `^$`},
		{"help as a word", "help", "", 0, `quantmf version`, `^$`},
		{"no such command", "fix", "", 2, `^$`,
			`^quantmf: there is no command "fix": "quantmf -h" lists them\n$`},
		{"version", "version", "", 0, `^quantmf \S+ go1\S* \w+/\w+\n$`, `^$`},
		{"version with more", "version x", "", 2, `^$`, `version takes no arguments`},
		{"help of version", "version -h", "", 0, `^usage: quantmf version`, `^$`},
		{"help of fit", "fit -h", "", 0, `^usage: quantmf fit`, `^$`},
		{"help behind the matrix", "fit matrix.tsv --help", "", 0, `^usage: quantmf fit`, `^$`},
		{"fit", "fit -k 2 -epochs 2 matrix.tsv", "", 0, `^$`,
			`Matrix +matrix.tsv: 14 features × 9 samples\n`},
		{"flags behind the matrix", "fit matrix.tsv -k 2 -epochs 2 -method qmf -compare none -u -", "", 0,
			`^feature\tc1\tc2\ng0\t`, `Time`},
		{"standard input", "fit -method qmf -compare none -k 1 -epochs 2 -v - -", "1,2,3\n4,5,7\n", 0,
			`^component\ts1\ts2\ts3\nc1\t`,
			`names no features, so they are f1, f2, ...; the file names no samples`},
		{"nmf", "fit -method nmf -k 2 matrix.tsv", "", 0, `^$`, `Model +NMF of 2 components`},
		{"seed beyond int64", "fit -method nmf -k 2 -seed 18446744073709551615 matrix.tsv", "", 0, `^$`,
			`NMF of 2`},
		{"every option", "fit -method qmf -compare none -k 2 -m 4 -eps .02 -lr .05 -epochs 2 -batch 5 " +
			"-seed 3 -workers 2 -start nmf -ends pinned -schedule constant -penalty .1 -shrinkage 0 " +
			"matrix.tsv", "", 0, `^$`, `QMF of 2`},
		{"no matrix", "fit -k 2", "", 2, `^$`, `no MATRIX given: .*\n"quantmf fit -h" says how to use it`},
		{"two matrices", "fit matrix.tsv other.tsv", "", 2, `^$`, `other.tsv is too much: wanted MATRIX`},
		{"no such flag", "fit -x x matrix.tsv", "", 2, `^$`, `quantmf fit: there is no flag -x of fit\n`},
		{"scales of nmf", "fit -method nmf -q q.tsv matrix.tsv", "", 2, `^$`,
			`-q: only a QMF has quantiles to write`},
		{"standard output twice", "fit -u - -v - matrix.tsv", "", 2, `^$`,
			`two outputs to the same place: -`},
		{"over the matrix", "fit -u ./matrix.tsv matrix.tsv", "", 2, `^$`, `is read itself`},
		{"no such file", "fit nothing.tsv", "", 3, `^$`, `nothing.tsv: `},
		{"a folder", "fit .", "", 3, `^$`, `\.: `},
		{"a feature of nothing", "fit -method nmf -missing -k 1 -", "x\ta\tb\ng1\t1\t2\ng2\tNA\tNA\n", 0,
			`^$`, `warning: stdin: 1 feature without any value left out: "g2"\n(.*\n)*Matrix.* 1 feature`},
		{"a sample of nothing", "fit -method nmf -missing -k 1 -", "x\ta\tb\ng1\t1\tNA\ng2\t3\tNA\n", 0, `^$`,
			`warning: stdin: 1 sample without any value left out: "b"\n(.*\n)*Matrix.* 2 features`},
		{"a table of nothing", "fit -missing -k 1 -", "x\ta\tb\ng1\tNA\tNA\n", 3, `^$`,
			`^quantmf fit: stdin: all values are missing\n$`},
		{"a missing value", "fit -", "x\ta\tb\ng1\t1\t2\ng2\t3\tNA\n", 3, `^$`,
			`^quantmf fit: stdin:3:3: feature "g2", sample "b": "NA" is a missing value: give -missing, ` +
				`fill in`},
		{"a value too large for the model", "fit -", "x\ta\tb\ng1\t1\t2\ng2\t3\t1e200\n", 3, `^$`,
			`\nquantmf fit: stdin:3:3: feature "g2", sample "b": 1e\+200: `},
		{"the same after -top", "fit -top 1 -", "x\ta\tb\ng1\t1\t2\ng2\t3\t1e200\n", 3, `^$`,
			`\nquantmf fit: stdin:3:3: feature "g2", sample "b": 1e\+200: `},
		{"an output in no folder", "fit -method qmf -compare none -u no/u.tsv matrix.tsv", "", 1, `^$`,
			`\nquantmf fit: cannot write no/u.tsv: `},
		{"an output that is a folder", "fit -o . matrix.tsv", "", 1, `^$`,
			`\nquantmf fit: cannot write \.: it is a folder\n$`},
		{"an output of no known format", "fit -u u.dat none.tsv", "", 2, `^$`,
			`^quantmf fit: "u.dat": the end of the name must say the format`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t)
			out, errOut := fed(t, c.code, c.stdin, c.args)
			if !regexp.MustCompile(c.out).MatchString(out) {
				t.Errorf("standard output: got %q, want %s", out, c.out)
			}
			if !regexp.MustCompile(c.err).MatchString(errOut) {
				t.Errorf("standard error: got %q, want %s", errOut, c.err)
			}
			Equal(t, files(t, dir), "", "files left")
		})
	}
}

func read(t *testing.T, path string) *table.Table {
	t.Helper()
	f := Must(os.Open(path))(t)
	defer f.Close()
	got := Must(table.Read(f, path, table.Options{Missing: true, Negative: true}))(t)
	return got
}

func same(a, b quantmf.Mat) bool {
	if a.Rows != b.Rows || a.Cols != b.Cols {
		return false
	}
	for i := range a.Rows {
		for j, v := range a.Row(i) {
			if math.Float64bits(v) != math.Float64bits(b.At(i, j)) {
				return false
			}
		}
	}
	return true
}

// scales are the columns of -q.
func scales(m *quantmf.QMF) quantmf.Mat {
	d, levels := m.Quantiles.Dims()
	x := quantmf.NewMat(d, 2*levels+1)
	for i := range d {
		copy(x.Row(i), m.Quantiles.Row(i))
		copy(x.Row(i)[levels:], m.Weights.Row(i))
		x.Set(i, 2*levels, m.Slopes[i])
	}
	return x
}

// What is written is what the package gives, with the names of the file. Summary, inspect and the page begin
// with the same bent feature.
func TestFitWritesTheModel(t *testing.T) {
	dir := folder(t)
	_, errOut := quiet(t, 0,
		"fit -k 3 -m 5 -epochs 4 -seed 7 -shrinkage 0 -u U.tsv -v V.csv.gz -q Q.csv -o m.qmf "+
			"-report page.html matrix.tsv")
	if got := files(t, dir); got != "Q.csv U.tsv V.csv.gz m.qmf page.html" {
		t.Fatalf("files: %s", got)
	}
	in := read(t, "matrix.tsv")
	m := Must(quantmf.FitQMF(t.Context(), in.X, 3, quantmf.WithLevels(5), quantmf.WithEpochs(4),
		quantmf.WithSeed(7), quantmf.WithShrinkage(0)))(t)
	features, samples := strings.Join(in.Features, " "), strings.Join(in.Samples, " ")
	for _, c := range []struct {
		file, rows, columns string
		want                quantmf.Mat
	}{
		{"U.tsv", features, "c1 c2 c3", m.U},
		{"V.csv.gz", "c1 c2 c3", samples, m.V},
		{"Q.csv", features, "q1 q2 q3 q4 q5 w1 w2 w3 w4 w5 slope", scales(m)},
	} {
		got := read(t, c.file)
		if r, k := strings.Join(got.Features, " "), strings.Join(got.Samples, " "); r != c.rows ||
			k != c.columns {
			t.Errorf("%s: names %s; %s", c.file, r, k)
		}
		if !same(got.X, c.want) {
			t.Errorf("%s: not the numbers of the model", c.file)
		}
	}
	bend := m.Bend()
	goodness := Must(m.Goodness(in.X))(t)
	telling := Must(report.Telling(in.X, bend, goodness))(t)
	most := slices.Index(telling, slices.Max(telling))
	bent := regexp.MustCompile(`Bent scales .*`).FindString(errOut)
	Has(t, bent, fmt.Sprintf("   %s %.2f, ", in.Features[most], bend[most]),
		"; named are those that are also well explained)")
	told, _ := quiet(t, 0, "inspect m.qmf matrix.tsv")
	Has(t, told, bent)
	_, first, _ := strings.Cut(textOf(t, "page.html"), "<h3>g")
	if !strings.HasPrefix("g"+first, in.Features[most]+"</h3>") {
		t.Errorf("the page begins with g%.20s", first)
	}
	Has(t, errOut, fmt.Sprintf("a loss of %.4g ", m.History[4]),
		"Written       U.tsv (U, features × components)")
}

func TestLogarithmAndTop(t *testing.T) {
	out, errOut := fed(t, 0, "x,a,b\nlow,100,110\nhigh,0,3\nmiddle,1,4\n",
		"fit -method nmf -k 1 -top 2 -log1p -u - -")
	// Standard deviations before the logarithm: 5, 1.5, 1.5; after it: .05, .69, .46.
	Has(t, out, "\nhigh\t", "\nmiddle\t")
	Lacks(t, out, "low")
	Has(t, errOut,
		"2 features × 2 samples (log(1+x) taken; the features of largest standard deviation)")
}

func TestProgress(t *testing.T) {
	folder(t)
	_, errOut := quiet(t, 0, "fit -method qmf -k 2 -epochs 3 -progress json matrix.tsv")
	lines := strings.Split(strings.TrimSuffix(errOut, "\n"), "\n")
	if want := `{"phase":"reading matrix.tsv","done":0}`; lines[0] != want {
		t.Fatal(lines[0])
	}
	lines = lines[1:]
	if read := `{"read":"matrix.tsv","features":14,"samples":9,"taken":"tab-separated, features named by ` +
		`column 1 (\"gene\"), samples by line 1"}`; lines[0] != read {
		t.Fatal(lines[0])
	}
	if lines = lines[1:]; len(lines) != 3+1+2*10+1 { // ten masks, of QMF and of NMF
		t.Fatalf("%d lines", len(lines))
	}
	for i, l := range lines[:3] {
		p := decoded[struct {
			Model         string
			Epoch, Epochs int
			Loss          float64
			Rate          float64 `json:"rows_per_second"`
			Left          float64 `json:"seconds_left"`
		}](t, l)
		if p.Model != "QMF" || p.Epoch != i+1 || p.Epochs != 3 || p.Loss <= 0 || p.Rate <= 0 ||
			(p.Left == 0) != (i == 2) {
			t.Error(l)
		}
	}
	Has(t, decoded[struct{ Summary string }](t, lines[len(lines)-1]).Summary, "Matrix")

	_, errOut = quiet(t, 0, "fit -k 2 -epochs 3 -progress none matrix.tsv")
	if !strings.HasPrefix(errOut, "Matrix") {
		t.Errorf("none: %s", errOut)
	}
	_, errOut = quiet(t, 0, "fit -method qmf -k 2 -epochs 3 -progress plain matrix.tsv")
	if !regexp.MustCompile(`(?m)^QMF: epoch 3 of 3, loss \S+, \d+ rows/s, 0.0 s left$`).MatchString(errOut) ||
		strings.ContainsAny(errOut, "\r\x1b") {
		t.Errorf("plain: %q", errOut)
	}
}

// interrupts has one value for each interrupt that a command has heard; see TestMain.
var interrupts = make(chan bool, 1)

// canInterrupt skips a test where no process can interrupt itself.
func canInterrupt(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" || runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("no process here can interrupt itself")
	}
}

// interrupt sends an interrupt to this process, and returns when the command has heard it:
// what waits for that cannot be over before.
func interrupt() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err == nil {
		<-interrupts
	}
	return err
}

// interrupting sends an interrupt to this process at a line of progress that has both parts, behind so many
// others that have.
type interrupting struct {
	bytes.Buffer
	line, sign string
	others     int
}

func (w *interrupting) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(w.line)) && bytes.Contains(b, []byte(w.sign)) {
		if w.others--; w.others == -1 {
			if err := interrupt(); err != nil {
				return 0, err
			}
		}
	}
	return w.Buffer.Write(b)
}

func TestInterrupt(t *testing.T) {
	canInterrupt(t)
	dir := folder(t)
	writeText(t, "U.tsv", "of before")
	w := interrupting{line: `{"model":"QMF"`, sign: `"epoch":`}
	code := run("fit -method qmf -k 2 -epochs 200000 -progress json -u U.tsv -report r.html matrix.tsv", nil,
		io.Discard, &w)
	if code != cli.Interrupted {
		t.Errorf("exit code %d: %s", code, w.String())
	}
	if !regexp.MustCompile(`quantmf fit: interrupted after \d+ of 200000 epochs of the QMF, at a loss of ` +
		`\S+; no file was written\n$`).MatchString(w.String()) {
		t.Errorf("got ...%s", w.String()[max(0, w.Len()-300):])
	}
	Equal(t, files(t, dir), "U.tsv", "files")
	if textOf(t, "U.tsv") != "of before" {
		t.Errorf("U.tsv was changed")
	}
}

// TestCompare: -compare none leaves the further fits out, as does an interrupt in them, which loses nothing
// else.
func TestCompare(t *testing.T) {
	canInterrupt(t)
	const line = "fit -method qmf -k 2 -epochs 2 -progress json -u - -o m.qmf matrix.tsv"
	dir := folder(t)
	want, said := quiet(t, 0, line+" -compare none")
	Lacks(t, said, "the model has not seen", "hidden")
	alone := textOf(t, "m.qmf")
	var out bytes.Buffer
	w := interrupting{line: `{"model":"QMF, NMF without hidden values"`, sign: `"done":0.05`}
	code := run(line+" -force -checkpoint state -report r.html", nil, &out, &w)
	if code != cli.Interrupted || !strings.HasSuffix(w.String(), "\nquantmf fit: interrupted in the further "+
		"fits, without hidden values: these are left out, all else is done\n") {
		t.Errorf("exit code %d: %s", code, w.String())
	}
	if files(t, dir) != "m.qmf r.html state" || out.String() != want || textOf(t, "m.qmf") != alone ||
		strings.Count(w.String(), `"summary"`) != 1 {
		t.Errorf("files: %s; %s", files(t, dir), w.String())
	}
}

// TestFewNegatives: the one negative value that makes -loss auto take frobenius is told of, with its place,
// unless it was asked for.
func TestFewNegatives(t *testing.T) {
	const warning = `warning: stdin: no more than 1 value is negative: feature "g1", sample "b" has ` +
		`-9, and ` +
		`-loss auto takes frobenius for all. If that stands for a missing value, -na -9 says so; if it is ` +
		`meant, -loss frobenius` + "\n"
	const x = "x\ta\tb\tc\ng1\t1\t-9\t2\ng2\t3\t1\t4\n"
	for args, warned := range map[string]bool{"fit -k 1 -epochs 1": true, "impute -o - -epochs 1": true,
		"fit -k 1 -epochs 1 -loss frobenius": false, "fit -k 1 -epochs 1 -missing -na -9": false} {
		_, said := fed(t, 0, x, args+" -")
		if strings.Contains(said, warning) != warned ||
			warned != strings.Contains(said, "-loss auto took frobenius: 1 value is negative") {
			t.Errorf("%s: %s", args, said)
		}
	}
	two := strings.Replace(x, "\t1\t4", "\t-1\t4", 1) // two in six are no slip
	_, said := fed(t, 0, two, "fit -k 1 -epochs 1 -")
	Has(t, said, "-loss auto took frobenius: 2 values are negative")
	Lacks(t, said, "warning")
}

// A stream that cannot be written spoils the whole: no file changes.
func TestAllOrNothing(t *testing.T) {
	dir := folder(t)
	var errOut bytes.Buffer
	code := run("fit -k 2 -epochs 2 -u U.tsv -v - matrix.tsv", nil, broken{}, &errOut)
	if code != cli.Failed || !strings.Contains(errOut.String(), "cannot write -: no space left") {
		t.Errorf("exit code %d: %s", code, errOut.String())
	}
	Equal(t, files(t, dir), "", "files")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestReport(t *testing.T) {
	folder(t)
	page, _ := quiet(t, 0, "fit -k 2 -m 4 -epochs 3 -report - matrix.tsv")
	Has(t, page, "QMF of matrix.tsv", "14 features × 9 samples in 2 components",
		"quantmf fit -epochs 3 -k 2 -m 4 -method qmf -seed 1 matrix.tsv",
		"2 components, 4 levels, the Kullback-Leibler divergence as loss, started from an NMF")
	again, _ := quiet(t, 0, "fit -k 2 -m 4 -epochs 3 -workers 2 -progress none -report - matrix.tsv")
	if page != again {
		t.Error("the same fit made another page")
	}
	page, _ = quiet(t, 0, "fit -method nmf -k 2 -log1p -top 5 -report - matrix.tsv")
	Has(t, page, "NMF of matrix.tsv", "components, log(1+x) of every value, the features of largest standard")
	Lacks(t, page, "T(UV)")
}

// TestCommandLine: what was not given, and the result depends on, stands in the line; -epochs does not where
// the fit chose their number itself. What a shell would read otherwise is quoted.
func TestCommandLine(t *testing.T) {
	q := &quantmf.QMF{Quantiles: quantmf.NewMat(1, 8)}
	for want, f := range map[string]*fitFlags{
		"quantmf fit -method qmf -k 3 -m 8 -epochs 4 -seed 1 -": {method: "qmf", rank: 3,
			matrix: "-"},
		"quantmf fit -m 8 -epochs 9 -seed 5 -method qmf -k 3 x.tsv": {method: "qmf", rank: 3,
			matrix: "d/x.tsv", given: []string{"-m", "8", "-epochs", "9", "-seed", "5"}},
		"quantmf fit -patience 3 -method nmf -k 2 -seed 1 x.tsv": {method: "nmf", rank: 2,
			matrix: "x.tsv", given: []string{"-patience", "3"}},
		"quantmf fit -method bqmf -k 0 -seed 1 x.tsv": {method: "bqmf",
			matrix: "x.tsv"},
		"quantmf fit -na '' -method nmf -k 2 -epochs 4 -seed 1 a-Z_0.+:=,@9zA": {method: "nmf", rank: 2,
			matrix: "a-Z_0.+:=,@9zA", given: []string{"-na", ""}},
		"quantmf fit -na '*[`' -method nmf -k 2 -epochs 4 -seed 1 '{'": {method: "nmf", rank: 2,
			matrix: "{", given: []string{"-na", "*[`"}},
		`quantmf fit -k 3 -log1p -method nmf -epochs 4 -seed 1 'it'\''s $x.tsv'`: {method: "nmf", rank: 3,
			matrix: "dir/it's $x.tsv", given: []string{"-k", "3", "-log1p"}},
		"quantmf fit -method nmf -k 3 -epochs 4 -seed 1 ./-x.tsv": {method: "nmf", rank: 3,
			matrix: "dir/-x.tsv"},
	} {
		r := &result{fitFlags: f, m: &model{of: &quantmf.Factorisation{History: make([]float64, 5)}}}
		if f.method == "qmf" {
			r.m.Model = q
		}
		Equal(t, r.commandLine(), want, "got")
	}
}

func TestWarningsInWords(t *testing.T) {
	var warnings []error
	for i := range 5 {
		warnings = append(warnings, &quantmf.ConvergenceError{Row: i}, &quantmf.ConvergenceError{Row: i})
	}
	warnings = append(warnings, errors.New("other"),
		&quantmf.DataError{Row: -1, Col: 1, Problem: "this component has died out"})
	words := warningsInWords(warnings, []string{"a", "b", "c", "d", "e"})
	want := "other; c2: this component has died out; the map of a, b, c and 2 more is less exact than " +
		"asked for: a larger -eps helps"
	Equal(t, strings.Join(words, "; "), want, "got")
}
