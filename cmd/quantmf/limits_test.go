package main

// This file tests what every command has: limits, and messages in the words of flags.

import (
	"regexp"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// TestFlagsNotGo: whatever is wrong with a command line is said before any file is read
// (none.tsv is not there), and in the names of flags.
func TestFlagsNotGo(t *testing.T) {
	t.Chdir(t.TempDir())
	goNames := regexp.MustCompile(`With[A-Z]|Fit[A-Z]|Start[A-Z]|Ends[A-Z]|Schedule[A-Z]|Updates\(|` +
		`quantmf: |flag:|parse error|strconv`)
	for _, c := range []struct{ args, says string }{
		{"fit -method qmf -k 0", "-k 0: must be at least 1"},
		{"fit -k x", "-k x: not a whole number"},
		{"fit -k 99999999999999999999", "-k 99999999999999999999: not a whole number"},
		{"fit -m 1", "-m 1: a model needs at least 2"},
		{"fit -eps 0", "-eps 0: a model needs a positive one"},
		{"fit -eps zero", "-eps zero: not a number"},
		{"fit -lr -1", "-lr -1: "},
		{"fit -missing=perhaps", "-missing perhaps: must be one of true, false"},
		{"fit -log1p=perhaps", "-log1p perhaps: must be one of true, false"},
		{"fit -method qmf -start svd", "-start svd: only -method nmf starts from it"},
		{"fit -method nmf -start scores",
			"-start scores: -method nmf starts from -start auto, -start uniform or -start svd"},
		{"fit -method nmf -start svd -restarts 2", "-restarts 2: -start svd is the same for every seed"},
		{"fit -method nmf -lr 1", "-lr 1: -method nmf has no use for it"},
		{"fit -method qmfq -penalty 1", "-penalty 1: -method qmfq has no use for it"},
		{"fit -method bqmf -restarts 2", "-restarts 2: -method bqmf has no use for it"},
		{"fit -method bqmf -loss 1.5", "-loss 1.5: -method bqmf takes kl or frobenius"},
		{"fit -projection svd", "-projection svd: -method qmf has no use for it"},
		{"fit -method qmfq -projection svd -missing",
			"-projection svd: needs every cell: neither -missing nor -validation go with it"},
		{"fit -method qmfq -projection pca", "-projection pca: must be kl:N, frobenius:N or svd"},
		{"fit -method qmfq -projection kl:0", "-projection kl:0: must have from 1 to"},
		{"fit -method qmf -updates newton", "-updates newton: -method qmf has no use for it"},
		{"fit -method nmf -updates fast", "-updates fast: must be one of newton, multiplicative"},
		{"fit -penalties 1,2,3", "-penalties 1,2,3: must be four numbers: L1U,L1V,L2U,L2V"},
		{"fit -method nmf -updates newton -loss 3",
			"-updates newton: takes kl and frobenius; under other losses there is -updates multiplicative"},
		{"fit -shrinkage 1 -start uniform", "-shrinkage 1: -start uniform has no EM step"},
		{"fit -shrinkage 1 -ends pinned", "-shrinkage 1: needs -ends free"},
		{"fit -validation 0.6", "-validation 0.6: must be above 0 and at most 0.5"},
		{"fit -patience 0", "-patience 0: must be at least 1"},
		{"fit -tolerance 0", "-tolerance 0: must be finite and above 0"},
		{"fit -epochs -1", "-epochs -1: must be at least 0"},
		{"fit -loss 9", "-loss 9: β must be from -2 to 4"},
		{"fit -nosuch", "there is no flag -nosuch of fit"},
		{"fit -o", "-o needs a value"},
		{"fit -o=", "-o: the value is empty"},
		{"fit -na=", "-na: the value is empty"},
		{"fit -u a.tsv -v ./a.tsv", "two outputs to the same place"},
		{"fit -o a -checkpoint a", "two outputs to the same place"},
		{"rank -k 2,0", "-k 0: must be at least 1"},
		{"rank -share .7", "-share .7: must be above 0 and at most 0.5"},
		{"rank -share none", "-share none: not a number"},
		{"rank -m 1,2", "-m 1: a model needs at least 2"},
		{"rank -method nmf -m 4", "-m 4: -method nmf has no use for it"},
		{"rank -plot -", "-plot -: standard output has the results"},
		{"impute -o x.tsv -k -2", "-k -2: must be at least 0"},
		{"transform m -o x.tsv -progress loud", "-progress loud: must be one of auto, plain, json, none"},
		{"transform m -o x.tsv -max-memory much", "-max-memory much: not a size"},
	} {
		if c.args != "fit -o" {
			c.args += " none.tsv"
		}
		if _, e := quiet(t, cli.Usage, c.args); !strings.Contains(e, c.says) ||
			goNames.MatchString(strings.TrimPrefix(e, "quantmf ")) {
			t.Errorf("%s: %s", c.args, e)
		}
	}
}

// TestExtended: a fit that goes on for more epochs is the fit of as many, where these do not depend on their
// number.
func TestExtended(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	folder(t)
	quiet(t, 0, "fit -method qmf -compare none -k 2 -schedule constant -epochs 5 "+
		"-checkpoint state matrix.tsv")
	quiet(t, 0, "fit -method qmf -compare none -k 2 -schedule constant -epochs 9 "+
		"-checkpoint state -resume -o a.qmf -u a.tsv matrix.tsv")
	quiet(t, 0, "fit -method qmf -compare none -k 2 -schedule constant -epochs 9 -u b.tsv matrix.tsv")
	if a, b := read(t, "a.tsv"), read(t, "b.tsv"); !same(a.X, b.X) {
		t.Error("the extended fit is another")
	}
	quiet(t, 0, "fit -compare none -method qmf -k 2 -epochs 5 -force -checkpoint state matrix.tsv")
	says(t, cli.Usage, "fit -compare none -method qmf -k 2 -epochs 9 -resume -checkpoint state matrix.tsv",
		"-epochs 9: the state was saved with 5, over which the learning rate falls to 0: only -schedule "+
			"constant can have more")
}

// TestLimits: every command takes -max-memory and -progress, and keeps to them.
func TestLimits(t *testing.T) {
	workshop(t)
	for _, c := range []struct{ args, phase string }{
		{"transform qmf.qmf matrix.tsv -o x.tsv", "samples"},
		{"reconstruct qmf.qmf -o x.tsv", "reading qmf.qmf"},
		{"normalize qmfq.qmf matrix.tsv -o x.tsv", "taking maps"},
		{"inspect qmf.qmf matrix.tsv", "comparing the model with the matrix"},
		{"report qmf.qmf matrix.tsv -o x.html", "drawing"},
		{"convert matrix.tsv x.npz", "reading matrix.tsv"},
		{"rank -k 1,2 -epochs 2 -repeats 2 matrix.tsv", "fits"},
		{"impute matrix.tsv -o x.tsv -checks 1", "epochs"},
		{"fit -k 2 -epochs 2 matrix.tsv", "epochs"},
	} {
		command, _, _ := strings.Cut(c.args, " ")
		if _, e := quiet(t, cli.BadInput, c.args+" -max-memory 2kB"); !regexp.MustCompile(
			`-max-memory|than the \S+ GiB of memory that a matrix may have`).MatchString(e) {
			t.Errorf("%s: %s", c.args, e)
		}
		_, e := quiet(t, 0, c.args+" -progress json")
		found := false
		for line := range strings.Lines(e) {
			found = decoded[struct{ Model, Phase, Summary string }](t, line).Phase == c.phase || found
		}
		if !found {
			t.Errorf("%s: no %q in %s", c.args, c.phase, e)
		}
		if command == "rank" { // a result, not progress
			_, e := quiet(t, 0, c.args+" -progress none")
			Has(t, e, " predicts hidden values best")
			Lacks(t, e, "matrix.tsv")
		}
		if command != "fit" && command != "impute" && command != "rank" {
			if _, e := quiet(t, 0, c.args+" -progress none"); e != "" {
				t.Errorf("%s: %s", c.args, e)
			}
			says(t, 0, c.args+" -progress plain", command+": ")
			if _, e := quiet(t, 0, c.args); strings.Count(e, "\n") != strings.Count(c.args,
				" matrix.tsv") || strings.Count(e, "\n") != strings.Count(e, "matrix.tsv: 14 features") {
				t.Errorf("%s: %s", c.args, e)
			}
		}
	}
}

// TestDigits: numbers in messages have no exponent where they are round.
func TestDigits(t *testing.T) {
	for in, want := range map[string]string{"moved by 0.04791234": "moved by 0.0479",
		"is 999.61234": "is 1000", "1234.567891, 12345.678912e-9": "1235, 1.23e-05",
		"1234567.89123": "1.23e+06"} {
		Equal(t, inShort(in), want, "%q", in)
	}
	for in, want := range map[float64]string{1: "1 B", 1000: "1000 B", 1 << 20: "1 MiB",
		1000 << 20: "0.977 GiB", 999.6 * (1 << 20): "0.976 GiB", 999.4 * (1 << 20): "999 MiB",
		3 << 40: "3 TiB"} {
		Equal(t, table.Size(in), want, "%v bytes", in)
	}
}
