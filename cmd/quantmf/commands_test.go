package main

// This file tests the commands that take a model, and fits that stop and go on,
// as a user runs them.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/internal/table"
)

// says is a command that wants an exit code, and says all this on standard error.
func says(t *testing.T, code int, line string, wants ...string) {
	t.Helper()
	_, e := quiet(t, code, line)
	Has(t, e, wants...)
}

// saying is a command, its exit code, and what it says on standard error.
type saying struct {
	args string
	code int
	says string
}

// quiet runs the program where a test stands, and wants an exit code. fed does with a standard input.
func quiet(t *testing.T, want int, line string) (out, errOut string) {
	t.Helper()
	return fed(t, want, "", line)
}

func fed(t *testing.T, want int, stdin, line string) (out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	if code := run(line, strings.NewReader(stdin), &o, &e); code != want {
		t.Fatalf("quantmf %s: exit code %d, want %d: %s", line, code, want, e.String())
	}
	return o.String(), e.String()
}

// workshop is a folder with matrix.tsv and a model of every kind of it.
func workshop(t *testing.T) {
	t.Helper()
	folder(t)
	for _, method := range settings.Methods {
		file := method + ".qmf"
		if made[method] == nil {
			quiet(t, 0, "fit -compare none -method "+method+" -k 2 -epochs 4 -o "+file+" matrix.tsv")
			made[method] = Must(os.ReadFile(file))(t)
		}
		OK(t, os.WriteFile(file, made[method], 0o666))
	}
}

// made has the models of workshops, which are fitted once.
var made = map[string][]byte{}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	OK(t, os.WriteFile(path, []byte(text), 0o666))
}

// TestModelFiles: what the commands make of a model file is what the package makes of the model that was
// fitted. Cells that are empty, NA or NaN are left out of a fit and filled by reconstruct; new samples may
// have holes, too. Summary, inspect and page warn of few samples, once.
func TestModelFiles(t *testing.T) {
	folder(t)
	lines := strings.Split(small(), "\n")
	for i, with := range map[int]string{2: "", 5: "NA", 9: "nan"} {
		cells := strings.Split(lines[i], "\t")
		cells[i-1] = with
		lines[i] = strings.Join(cells, "\t")
	}
	writeText(t, "holes.tsv", strings.Join(lines, "\n"))
	ctx := context.Background()
	for matrix, gaps := range map[string]int{"matrix.tsv": 0, "holes.tsv": 3} {
		in := read(t, matrix)
		if missing(in.X) != gaps {
			t.Fatal("holes")
		}
		options, flags := []quantmf.FitOption{quantmf.WithEpochs(4)}, " -k 2 -epochs 4 "+matrix
		if gaps > 0 {
			options, flags = append(options, quantmf.WithMissingValues()), " -missing"+flags
		}
		for _, method := range settings.Methods {
			want := Must(settings.Fit(ctx, method, in.X, 2, options...))(t)
			_, said := quiet(t, 0, "fit -compare none -o m.qmf -report page.html -method "+method+flags)
			quiet(t, 0, "transform m.qmf "+matrix+" -o V.csv")
			v := Must(want.Transform(ctx, in.X))(t)
			if got := read(t, "V.csv"); !same(got.X, v) || strings.Join(got.Features, " ") != "c1 c2" ||
				strings.Join(got.Samples, " ") != strings.Join(in.Samples, " ") {
				t.Errorf("%s: transform gave %v, %v", method, got.Features, got.Samples)
			}
			quiet(t, 0, "reconstruct m.qmf -o fit.npz")
			if got := read(t, "fit.npz"); !same(got.X, want.Reconstruct()) || missing(got.X) != 0 ||
				strings.Join(got.Features, " ") != strings.Join(in.Features, " ") {
				t.Errorf("%s: reconstruct gave %v", method, got.Features)
			}
			told, _ := quiet(t, 0, "inspect m.qmf "+matrix)
			one, _ := quiet(t, 0, "report m.qmf "+matrix+" -o -")
			if one != textOf(t, "page.html") {
				t.Errorf("%s: the page of the model is not that of the fit", method)
			}
			warnings := 1
			if method == "bqmf" { // which leaves out what it does not need
				warnings = 0
			}
			for _, text := range []string{said, told, one} {
				Equal(t, strings.Count(text, "there are 9 samples: "), warnings, "%s: warnings", method)
			}
			if gaps > 0 {
				Has(t, said, "14 features × 9 samples (3 missing values)")
				page := regexp.MustCompile(`base64,[^"]*`).ReplaceAllString(one, "")
				Has(t, page, ">missing</text>", "3 values are missing, 2.38 % of the table")
				Lacks(t, page, "NaN")
			}
			m := Must(quantmf.UnmarshalModel([]byte(textOf(t, "m.qmf"))))(t)
			if !same(m.Reconstruct(), want.Reconstruct()) {
				t.Errorf("%s: the package reads another model", method)
			}
			if q, is := want.(*quantmf.QMFQ); is {
				quiet(t, 0, "normalize m.qmf "+matrix+" -o y.gct")
				if got := read(t, "y.gct"); !same(got.X, Must(q.Normalize(in.X))(t)) {
					t.Error("normalize gave other numbers")
				}
			} else {
				says(t, 2, "normalize m.qmf "+matrix+" -o -", "m.qmf is a model of kind "+
					strings.ToUpper(method)+", which has no map from a feature's scale")
			}
		}
	}
	out, _ := quiet(t, 0, "rank -missing -k 1,2 -repeats 2 -epochs 3 holes.tsv")
	shape := regexp.MustCompile(`^k\tmean\tstderr\tworse\tworse_stderr\n` +
		`0(\t\S+){4}\n1(\t\S+){4}\n2(\t\S+){4}\n$`)
	if !shape.MatchString(out) {
		t.Error(out)
	}
}

func TestInspect(t *testing.T) {
	folder(t)
	in := read(t, "matrix.tsv")
	ctx := context.Background()
	for _, method := range settings.Methods {
		file := method + ".qmf"
		quiet(t, 0, "fit -method "+method+" -k 2 -epochs 4 -o "+file+" matrix.tsv")
		m := Must(settings.Fit(ctx, method, in.X, 2, quantmf.WithEpochs(4)))(t)
		tops := Must(m.TopFeatures(in.X, 8))(t)
		sample := m.TopSamples(1)[1][0]
		words, _ := quiet(t, 0, "inspect "+file+" matrix.tsv")
		Has(t, words, strings.ToUpper(method)+" of 2 components",
			"Fitted to     matrix.tsv: 14 features × 9 samples",
			"after 4 epochs",
			fmt.Sprintf("Component c2  features %s %.2f, ", in.Features[tops[1][0].Index], tops[1][0].Value),
			fmt.Sprintf("samples  %s %.1f×, ", in.Samples[sample.Index], sample.Value),
			"Command       quantmf fit -epochs 4")
		Equal(t, strings.Contains(words, "Bent scales"), method != "nmf", "%s: bent scales", method)
		alone, _ := quiet(t, 0, "inspect "+file)
		Has(t, alone, "samples  ")
		Lacks(t, alone, "features g")
		text, _ := quiet(t, 0, "inspect "+file+" matrix.tsv -json")
		o := decoded[modelObject](t, text)
		goodness, _ := m.Goodness(in.X)
		if o.Method != method || len(o.Loss) != 5 || len(o.Features) != 14 || len(o.Samples) != 9 ||
			len(o.Components) != 2 ||
			o.Components[0].Features[7].Value != tops[0][7].Value ||
			*o.Features[3].Explained != goodness[3].Explained || len(o.Features[3].Shares) != 2 ||
			o.Unseen == nil || (len(o.Unseen.Others) == 0) != (method == "nmf" || method == "bqmf") ||
			(o.LeaveOneOut == nil) == (method == "bqmf") {
			t.Errorf("%s: %s", method, text)
		}
		if b, is := m.(*quantmf.BQMF); is && (!slices.Equal(o.SampleNoise, b.SampleNoise) ||
			*o.Features[3].Noise != b.RowNoise[3]) {
			t.Errorf("another noise than the package's: %s", text)
		}
	}
}

// TestModelAndMatrix: a matrix that is not the model's is refused, in words that
// say what differs first.
func TestModelAndMatrix(t *testing.T) {
	workshop(t)
	lines := strings.Split(strings.TrimSpace(small()), "\n")
	join := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	writeText(t, "renamed.tsv", strings.Replace(small(), "\ng4\t", "\nother\t", 1))
	writeText(t, "short.tsv", join(lines[:12]))
	writeText(t, "negative.tsv", strings.Replace(small(), "\ng1\t", "\ng1\t-1", 1))
	writeText(t, "long.tsv", small()+strings.Replace(lines[1], "g0", "more", 1)+"\n")
	writeText(t, "hole.tsv",
		strings.Replace(small(), lines[3], lines[3][:strings.LastIndex(lines[3], "\t")]+"\tNA", 1))
	writeText(t, "samples.tsv", strings.Replace(small(), "\tp3", "\tq3", 1))
	var narrow []string
	for _, l := range lines {
		narrow = append(narrow, l[:strings.LastIndex(l, "\t")])
	}
	writeText(t, "narrow.tsv", join(narrow))
	writeText(t, "foreign.qmf", "quantmf, but no model")
	model := textOf(t, "qmf.qmf")
	writeText(t, "cut.qmf", model[:len(model)/2])
	flipped := []byte(model)
	flipped[2*len(flipped)/5] ^= 8
	writeText(t, "flipped.qmf", string(flipped))
	writeText(t, "state", "")
	quiet(t, 0, "fit -compare none -method qmfq -projection svd -k 2 -epochs 1 -o svd.qmf matrix.tsv")
	OK(t, os.Mkdir("mine", 0o777))
	writeText(t, "mine/thing", "of the user's")
	for _, c := range []saying{
		{"transform qmf.qmf renamed.tsv -o -", 3,
			`\nquantmf transform: renamed.tsv: 1 of the model's 14 features are not there: "g4"; 1 of the ` +
				`14 features are not the model's: "other": -allow extra,missing goes on without\n`},
		{"transform qmf.qmf short.tsv -o - -allow missing", 0,
			`features are not there: "g11", "g12", "g13"; taken for missing values\n`},
		{"transform svd.qmf short.tsv -o - -allow missing", 3,
			`quantmf transform: short.tsv: feature "g11": the matrix lacks this feature: -projection svd ` +
				`of fit needs every cell\n`},
		{"transform qmf.qmf hole.tsv -o -", 0, ""}, {"score bqmf.qmf hole.tsv", 0, ""},
		{"report qmf.qmf negative.tsv -o page.html", 3, `\nquantmf report: negative.tsv:3:2: feature `},
		{"transform qmf.qmf short.tsv -o -", 3,
			`short.tsv: 3 of the model's 14 features are not there: "g11", "g12", "g13": -allow missing ` +
				`goes on`},
		{"transform qmf.qmf long.tsv -o -", 3,
			`long.tsv: 1 of the 15 features are not the model's: "more": -allow extra goes on`},
		{"transform svd.qmf hole.tsv -o -", 3,
			`hole.tsv:4:10: feature "g2", sample "p8": -projection svd of fit needs every cell`},
		{"normalize qmfq.qmf renamed.tsv -o -", 3, `features are not there: "g4"`},
		{"inspect qmf.qmf narrow.tsv", 3,
			`narrow.tsv: the matrix has 8 samples, the model 9: give the matrix that was fitted`},
		{"report qmf.qmf samples.tsv -o -", 3,
			`samples.tsv: sample "q3": the model has "p3" in this place: give the matrix that was fitted`},
		{"inspect foreign.qmf", 3,
			`foreign.qmf: quantmf: model file, byte 21: the file is cut within its header`},
		{"inspect matrix.tsv", 3,
			`matrix.tsv: quantmf: model file, byte 0: this is no quantmf model: MODEL, a file that ` +
				`"quantmf fit -o" wrote, comes first\n`},
		{"inspect cut.qmf", 3, `cut.qmf: quantmf: model file, byte \d+: the file is cut`},
		{"reconstruct flipped.qmf -o -", 3,
			`flipped.qmf: quantmf: model file, byte \d+: .*section.* is damaged`},
		{"inspect none.qmf", 3, `none.qmf: `},
		{"inspect .", 3, `\.: is a folder, not a model`},
		{"transform qmf.qmf matrix.tsv", 2, `say where to write: -o FILE`},
		{"transform qmf.qmf -o x", 2, `no MATRIX given`},
		{"transform - - -o x", 2, `standard input can be read only once`},
		{"reconstruct -o x", 2, `no MODEL given`},
		{"reconstruct qmf.qmf -o qmf.qmf -format csv", 2, `qmf.qmf is read itself`},
		{"report qmf.qmf matrix.tsv -o matrix.tsv", 2, `matrix.tsv is read itself`},
		{"inspect qmf.qmf matrix.tsv more", 2, `more is too much: wanted MODEL \[MATRIX\]`},
		{"convert matrix.tsv", 2, `no OUT given`},
		{"convert none.tsv -", 3, `none.tsv`},
		{"convert matrix.tsv no/x.csv", 1, `cannot write no/x.csv`},
		{"rank matrix.tsv -k 2,x", 2, `-k 2,x: not whole numbers with commas between, such as 2,4,8`},
		{"rank matrix.tsv -repeats 0", 2, `-repeats 0: must be at least 1`},
		{"fit -sep ; matrix.tsv", 3,
			`matrix.tsv:1: only one column was found: no ";" stands between cells, as -sep or a line sep= ` +
				`says: leave that out\n`},
		{"rank hole.tsv", 3, `"NA" is a missing value: give -missing`},
		{"fit -resume matrix.tsv", 2, `-resume: needs the -checkpoint FILE`},
		{"fit -checkpoint - matrix.tsv", 2, `-checkpoint -: must be a file`},
		{"fit -checkpoint x -o ./x matrix.tsv", 2, `two outputs to the same place: x`},
		{"fit -force -checkpoint matrix.tsv matrix.tsv", 2, `matrix.tsv is read itself`},
		{"fit -checkpoint matrix.tsv matrix.tsv", 2,
			`-checkpoint matrix.tsv: it exists: -resume goes on from it, -force starts anew over it`},
		{"rank -checkpoint qmf.qmf matrix.tsv", 2, `-checkpoint qmf.qmf: it exists`},
		{"rank -checkpoint qmf.qmf -resume matrix.tsv", 2, `-checkpoint qmf.qmf: must be a folder`},
		{"rank -checkpoint mine -resume matrix.tsv", 3,
			`mine: this is no folder of -checkpoint of quantmf rank`},
		{"rank -resume matrix.tsv", 2, `-resume: needs the -checkpoint FILE`},
		{"fit -resume -force -checkpoint x matrix.tsv", 2, `-force: -resume goes on from the file`},
		{"fit -checkpoint qmf.qmf -resume -k 2 matrix.tsv", 3,
			`fit: qmf.qmf: quantmf: model file, byte 12: `},
		{"fit -max-memory 1kB matrix.tsv", 3,
			`would take more than the 1000 B of memory that reading may take`},
		{"fit -max-memory 1MB -k 30 matrix.tsv", 3,
			`this fit needs about \S+ MiB of memory, -max-memory allows 977 KiB`},
		{"fit -m 1000000000 matrix.tsv", 3,
			`this fit needs about \S+ TiB of memory, -max-memory allows 8 GiB`},
		{"fit -method qmfq -m 1000000 matrix.tsv", 3, `this fit needs about \S+ TiB of memory`},
		{"fit -method nmf -k 100000000 matrix.tsv", 3, `this fit needs about \S+ \w+ of memory`},
	} {
		if _, e := quiet(t, c.code, c.args); !regexp.MustCompile(c.says).MatchString(e) {
			t.Errorf("%s: %s", c.args, e)
		}
	}
}

// TestTopAndLogarithmOfModel: a model remembers what was done to its matrix, and
// finds its features among others.
func TestTopAndLogarithmOfModel(t *testing.T) {
	folder(t)
	quiet(t, 0, "fit -compare none -method qmf -k 2 -epochs 3 -top 6 -log1p -o m.qmf matrix.tsv")
	out, _ := quiet(t, 0, "inspect m.qmf matrix.tsv")
	Has(t, out,
		"6 features × 9 samples, log(1+x) taken, those features of largest standard deviation")
	in := read(t, "matrix.tsv")
	in.Log1p()
	in = Must(in.MostVariable(6))(t)
	m := Must(quantmf.FitQMF(t.Context(), in.X, 2, quantmf.WithEpochs(3)))(t)
	want := Must(m.Transform(t.Context(), in.X))(t)
	quiet(t, 0, "transform m.qmf matrix.tsv -o v.tsv")
	if got := read(t, "v.tsv"); !same(got.X, want) {
		t.Error("another matrix was transformed")
	}
	lines := strings.Split(small(), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, in.Features[2]+"\t") {
			lines[i] = "other" + strings.TrimPrefix(l, in.Features[2])
		}
	}
	writeText(t, "renamed.tsv", strings.Join(lines, "\n"))
	says(t, 3, "transform m.qmf renamed.tsv -o -",
		fmt.Sprintf("renamed.tsv: 1 of the model's 6 features are not there: %q: -allow missing",
			in.Features[2]))
}

// TestConvert: a matrix goes through every format and comes back the same.
func TestConvert(t *testing.T) {
	folder(t)
	in := "feature\ta\tb \"x\"\tc\ng1\t0\t-1.5\t3e-300\ng,2\tNA\t0\t0.1\n"
	writeText(t, "in.tsv", in)
	from := "in.tsv"
	for _, to := range []string{"a.csv", "b.gct.gz", "c.npz", "d.tsv.gz", "e.csv.gz"} {
		quiet(t, 0, "convert "+from+" "+to)
		from = to
	}
	out, _ := quiet(t, 0, "convert "+from+" -")
	Equal(t, out, strings.Replace(strings.Replace(in, "b \"x\"", "\"b \"\"x\"\"\"", 1), "NA", "NaN",
		1), "got")
	says(t, 0, "convert "+from+" f.mtx", "warning: f.mtx: mtx has no names, so those of the features and "+
		"samples are left out: npz keeps them\n")
	// there were none
	_, said := quiet(t, 0, "convert f.mtx g.npy.gz")
	Lacks(t, said, "names of the")
	g := read(t, "g.npy.gz")
	if w := read(t, "in.tsv"); g.X.At(0, 1) != -1.5 || !math.IsNaN(g.X.At(1, 0)) ||
		g.X.At(1, 2) != w.X.At(1, 2) || g.Features[1] != "f2" {
		t.Errorf("%v, %v", g.X, g.Features)
	}
	if out, _ := fed(t, 0, "1,2\n3,4\n", "convert - -"); out != "feature\ts1\ts2\nf1\t1\t2\nf2\t3\t4\n" {
		t.Errorf("%q", out)
	}
}

// TestTransformBlocks: blocks of samples that are placed by commands of their own have the bits of one
// command.
func TestTransformBlocks(t *testing.T) {
	folder(t)
	quiet(t, 0, "fit -method qmf -compare none -k 2 -epochs 2 matrix.tsv -o m")
	quiet(t, 0, "transform m matrix.tsv -o V.tsv")
	want := read(t, "V.tsv")
	var names []string
	v := quantmf.NewMat(want.X.Rows, want.X.Cols)
	for i := range 3 {
		quiet(t, 0, fmt.Sprintf("transform m matrix.tsv -o part.tsv -block %d/3", i))
		part := read(t, "part.tsv")
		for c := range v.Rows {
			copy(v.Row(c)[len(names):], part.X.Row(c))
		}
		names = append(names, part.Samples...)
	}
	if !slices.Equal(names, want.Samples) || !same(v, want.X) {
		t.Errorf("the blocks have %v of samples %v, want %v of %v", v, names, want.X, want.Samples)
	}
	for _, block := range []string{"3/3", "-1/3", "1", "x/2", "0/0", "0/99999",
		"900000000000000000/9000000000000000000"} {
		says(t, cli.Usage, "transform m matrix.tsv -o part.tsv -block "+block, "-block")
	}
}

// TestNameless: what is written without the names that there are is said, of each output.
func TestNameless(t *testing.T) {
	folder(t)
	for _, c := range []struct{ args, says string }{
		{"fit -compare none -method nmf -k 2 -epochs 2 matrix.tsv -o m -u U.npy -v V.mtx",
			"U.npy: npy has no names, so those of the features are left out|V.mtx: mtx has no names, so " +
				"those of the samples are left out"},
		{"fit -compare none -method qmf -k 2 -epochs 1 matrix.tsv -q Q.mtx.gz -u U.tsv -v V.npz",
			"Q.mtx.gz: mtx has no names, so those of the features are left out"},
		{"transform m matrix.tsv -o V.npy", "V.npy: npy has no names, so those of the samples are left out"},
		{"reconstruct m -o X.npy",
			"X.npy: npy has no names, so those of the features and samples are left out"},
		{"reconstruct m -o X.npy -progress none", ""},
		{"convert matrix.tsv X.npy -progress json",
			`{"file":"X.npy","warning":"npy has no names, so those of the features and samples are left ` +
				`out: npz keeps them"}`},
		{"impute matrix.tsv -k 2 -epochs 2 -checks 0 -o X.npy",
			"X.npy: npy has no names, so those of the features and samples are left out"},
	} {
		_, said := quiet(t, 0, c.args)
		for _, says := range strings.Split(c.says, "|") {
			if strings.Count(said, "has no names") != strings.Count(c.says, "has no names") ||
				!strings.Contains(said, says) {
				t.Errorf("%s: %q", c.args, said)
			}
		}
	}
}

// TestResume: a fit that was interrupted and goes on writes the bytes of one that
// never stopped.
func TestResume(t *testing.T) {
	canInterrupt(t)
	for _, method := range settings.Methods {
		if testing.Short() && method != "qmf" {
			continue
		}
		t.Run(method, func(t *testing.T) {
			dir, epochs, more := folder(t), 400, ""
			switch method {
			case "nmf": // quicker, and not to be over when the signal comes
				epochs = 2000
			case "bqmf": // which would end by itself
				more = " -tolerance 1e-300"
			}
			fit := fmt.Sprintf("fit -method %s -k 2 -epochs %d -compare none matrix.tsv%s", method, epochs,
				more)
			quiet(t, 0, fit+" -o whole.qmf")
			fit += " -checkpoint state -resume"
			with := fit + " -o model.qmf -progress json"
			w := interrupting{line: `{"model":"` + strings.ToUpper(method) + `"`, sign: `"epoch":`}
			code := run(with, nil, io.Discard, &w)
			said := regexp.MustCompile(`interrupted after \d+ of (400|2000) epochs of the \w+, at a ` +
				`(loss|bound) of \S+; the state is in state: the same command with -resume goes on\n$`)
			if code != cli.Interrupted || !said.MatchString(w.String()) ||
				!strings.Contains(w.String(),
					`{"file":"state","warning":"there is nothing to go on from yet`) {
				t.Fatalf("exit code %d: ...%s", code, w.String()[max(0, w.Len()-300):])
			}
			if got := files(t, dir); got != "state whole.qmf" {
				t.Fatalf("files: %s", got)
			}
			// Flags that would change the result are refused, other data too.
			if method != "nmf" && method != "bqmf" { // which take more of them
				says(t, 2, fmt.Sprint(fit, " -epochs ", epochs+1),
					fmt.Sprintf("-epochs %d: the state was saved with %d, ", epochs+1, epochs))
			}
			says(t, 3, fit+" -log1p", "matrix.tsv: the state was saved from another matrix")
			_, e := quiet(t, 0, with)
			if first := regexp.MustCompile(`"epoch":(\d+)`).FindStringSubmatch(e); first == nil ||
				first[1] == "1" {
				t.Errorf("the fit began anew: %.200s", e)
			}
			whole := textOf(t, "whole.qmf")
			if textOf(t, "model.qmf") != whole {
				t.Error("the resumed fit is another")
			}
			quiet(t, 0, with) // what is done stays done
			if textOf(t, "model.qmf") != whole {
				t.Error("the fit resumed at its end is another")
			}
			state := textOf(t, "state")
			writeText(t, "state", state[:len(state)/2])
			says(t, 3, with, "fit: state: quantmf: model file, byte ")
		})
	}
}

// TestResumeOfNothing: a state that is not there, or of no bytes, is that of a fit that has not begun.
func TestResumeOfNothing(t *testing.T) {
	folder(t)
	for range 2 {
		says(t, 0, "fit -compare none -method nmf -k 2 -epochs 2 -checkpoint state -resume matrix.tsv",
			"\nstate: there is nothing to go on from yet: the fit starts at the beginning\n")
		writeText(t, "state", "")
	}
}

// TestNotConverged: -strict makes what is a warning otherwise exit code 4, and no
// file is written.
func TestNotConverged(t *testing.T) {
	err := cli.Explain(fmt.Errorf("wrapped: %w",
		&quantmf.ConvergenceError{Row: 1, MarginalError: 1, Tolerance: 0.5}),
		&table.Table{Features: []string{"a", "b"}})
	if cli.ExitCode(err) != cli.Unconverged || !strings.HasPrefix(err.Error(), `feature "b": `) {
		t.Errorf("%d: %v", cli.ExitCode(err), err)
	}
	folder(t)
	quiet(t, 0, "fit -method qmf -compare none -k 2 -epochs 2 -strict matrix.tsv")
	quiet(t, 0, "fit -method qmf -compare none -k 2 -epochs 2 -strict=false matrix.tsv")
	says(t, 2, "fit -method nmf -strict matrix.tsv", "-strict: -method nmf has no use for it")
}

// TestNames: a model file keeps any names, damage to them is found, and a model
// of the package alone gets names of its own.
func TestNames(t *testing.T) {
	x := quantmf.NewMat(3, 2)
	copy(x.Data, []float64{1, 2, 3, 4, 5, 7})
	fitted := Must(quantmf.FitNMF(t.Context(), x, 1, quantmf.WithEpochs(2)))(t)
	plain, _ := fitted.MarshalBinary()
	m, err := unmarshal(plain)
	if err != nil || strings.Join(m.Features, " ") != "f1 f2 f3" || strings.Join(m.Samples, " ") != "s1 s2" ||
		m.NamedFeatures || m.Matrix != "" {
		t.Fatalf("%v: %v", err, m)
	}
	m.Features, m.NamedFeatures = []string{"", "g\xe9\n", "a\tb"}, true
	data := Must(account.Append(plain, m.Saved(), account.Made{Matrix: "x.tsv"}))(t)
	got := Must(unmarshal(data))(t)
	if !slices.Equal(got.Features, m.Features) || !got.NamedFeatures || got.NamedSamples ||
		got.Matrix != "x.tsv" {
		t.Errorf("%q, %v", got.Features, got.Made)
	}
	bad := Must(quantmf.AppendSection(plain, "name", []byte("short")))(t)
	if _, err := unmarshal(bad); cli.ExitCode(err) != cli.BadInput {
		t.Errorf("damaged names: %v", err)
	}
	fitted.History, fitted.Best = nil, 0
	empty, _ := fitted.MarshalBinary()
	if _, err := unmarshal(empty); cli.ExitCode(err) != cli.BadInput {
		t.Errorf("a model without a history: %v", err)
	}
	// A matrix without names is taken by its number of features alone.
	unnamed := &table.Table{Features: table.Numbered("f", 3), X: x}
	if _, err := got.fitting(unnamed, &cli.Input{}, io.Discard); err != nil {
		t.Error(err)
	}
}

// TestNamesTwice: where the model has a name twice and the matrix once, the error says so.
func TestNamesTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	const rest = "g\t2\t5\t1\nh\t1\t1\t4\n"
	writeText(t, "x.tsv", "x\ta\tb\tc\nf\t1\t2\t3\nf\t3\t0\t2\n"+rest)
	writeText(t, "y.tsv", "x\ta\tb\tc\nf\t1\t2\t3\n"+rest)
	quiet(t, 0, "fit -compare none -method nmf -k 1 -epochs 1 -o m x.tsv")
	const want = `y.tsv: 1 of the model's 4 features are not there: "f", a name that the model has more ` +
		`often than the matrix: -allow missing`
	says(t, cli.BadInput, "transform m y.tsv -o -", want)
}

// TestBentScales: the summary names the features that are bent, the most bent first,
// five at most, and counts them; none of those that are nearly straight.
func TestBentScales(t *testing.T) {
	for want, bend := range map[string][]float64{
		"e 0.90, b 0.20, d 0.05 (0 is a straight line, 1 far from any; 3 of 6 features have 0.05 or more)": {
			0.01, 0.2, 0.0499, 0.05, 0.9, 0},
		"e 0.90, d 0.80, c 0.70, b 0.60, a 0.50 (0 is a straight line, 1 far from any; 6 of 6 features " +
			"have 0.05 or more)": {0.5, 0.6, 0.7, 0.8, 0.9, 0.4},
		"none: every feature kept its scale, nearly": {0.01, 0, 0.049, 0, 0, 0},
	} {
		m := &model{bend: func() []float64 { return bend },
			Names: cli.Names{Features: []string{"a", "b", "c", "d", "e", "f"}}}
		if got, err := m.bentScales(quantmf.Mat{}, nil); err != nil || got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestLoss: -loss is that of the package, is recorded, and frobenius takes log ratios
// all the way through; what does not take them says which does.
func TestLoss(t *testing.T) {
	folder(t)
	var s strings.Builder
	for _, line := range strings.SplitAfter(small(), "\n") {
		if strings.HasPrefix(line, "g") && !strings.HasPrefix(line, "gene") {
			line = regexp.MustCompile(`\t0\.`).ReplaceAllString(line, "\t-0.")
		}
		s.WriteString(line)
	}
	writeText(t, "ratios.tsv", s.String())
	for _, method := range []string{"qmf", "qmfq"} {
		_, said := quiet(t, 0, "fit -method "+method+
			" -loss frobenius -k 2 -epochs 4 -o m.qmf -report r.html ratios.tsv")
		Has(t, said, "the mean half squared difference of values", "that the model has not seen")
		Lacks(t, said, "an NMF of as many")
		m := Must(table.Read(strings.NewReader(s.String()), "ratios.tsv", table.Options{Negative: true}))(t)
		want := Must(settings.Fit(context.Background(), method, m.X, 2, quantmf.WithEpochs(4),
			quantmf.WithLoss(quantmf.Frobenius)))(t)
		quiet(t, 0, "reconstruct -o fit.tsv m.qmf")
		fitted := read(t, "fit.tsv")
		if !same(fitted.X, want.Reconstruct()) {
			t.Errorf("%s: another model than the package's", method)
		}
		quiet(t, 0, "transform -o v.tsv m.qmf ratios.tsv")
		out, _ := quiet(t, 0, "inspect m.qmf ratios.tsv")
		Has(t, out, "-loss frobenius")
	}
	if out, _ := quiet(t, 0,
		"rank -loss frobenius -k 1,2 -epochs 2 -repeats 1 ratios.tsv"); strings.Count(out, "\n") < 2 {
		t.Errorf("rank: %s", out)
	}
	for _, c := range []saying{
		{"fit -loss kl ratios.tsv", 3, "-loss frobenius"},
		{"fit -method nmf -loss frobenius ratios.tsv", 3, "any -method but nmf"},
		{"fit -loss frobenius -log1p ratios.tsv", 3, "without -log1p"},
		{"fit -loss squares matrix.tsv", 2, "must be auto, kl, frobenius or the β"},
	} {
		says(t, c.code, c.args, c.says)
	}
	quiet(t, 0, "fit -compare none -method qmf -k 2 -epochs 2 -o kl.qmf matrix.tsv")
	says(t, 3, "transform -o v.tsv kl.qmf ratios.tsv", "-loss frobenius of fit")
	says(t, 0, "fit -compare none -loss 1.5 -method nmf -k 2 -epochs 2 matrix.tsv", "β = 1.5")
}

// TestBlockNamesSample: a value of a block that the model does not take is named by its place in the table.
func TestBlockNamesSample(t *testing.T) {
	folder(t)
	quiet(t, 0, "fit -compare none -method nmf -k 2 -epochs 2 -o m matrix.tsv")
	lines := strings.Split(small(), "\n")
	cells := strings.Split(lines[3], "\t")
	cells[7] = "1e90" // feature g2, sample p6
	lines[3] = strings.Join(cells, "\t")
	writeText(t, "far.tsv", strings.Join(lines, "\n"))
	for _, block := range []string{"0/1", "2/3"} {
		says(t, cli.BadInput, "transform m far.tsv -o v.tsv -block "+block,
			`far.tsv:4:8: feature "g2", sample "p6"`)
	}
}
