package main

// This file tests "quantmf rank": its table against the package, the choice against one made
// here by hand, its warnings, the picture, and that an interrupt loses no fit.

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestRank: table, words and object are those of a comparison of what HeldOut gives for the flags.
func TestRank(t *testing.T) {
	folder(t)
	in := read(t, "matrix.tsv")
	for m, levels := range map[string][]int{"": nil, " -m 4,6": {4, 6}} {
		want := cli.NewComparison()
		want.Ks, want.Ms, want.Repeats, want.Seed = []int{1, 3}, levels, 3, 5
		var trials []quantmf.Trial
		for i := range want.Trials() {
			options := []quantmf.FitOption{quantmf.WithEpochs(6), quantmf.WithSeed(5)}
			if levels != nil {
				options = append(options, quantmf.WithLevels(want.M(i)))
			}
			trials = append(trials, quantmf.Trial{Rank: want.K(i), Options: options})
		}
		want.Add(Must(quantmf.HeldOut(t.Context(), in.X, quantmf.FitQMF, trials,
			quantmf.Masks{Repeats: 3, Share: 0.2, Seed: 5}))(t))
		want.Choose()
		line := "rank -k 1,3 -repeats 3 -share 0.2 -seed 5 -epochs 6 matrix.tsv" + m
		out, e := quiet(t, 0, line)
		if out != want.Table() || !strings.HasSuffix(e, want.Verdict()) {
			t.Errorf("got %s%s, want %s%s", out, e, want.Table(), want.Verdict())
		}
		text, _ := quiet(t, 0, line+" -json")
		o := decoded[rankObject](t, text)
		if len(o.Trials) != len(want.Got) || o.Best != want.Best || o.Chosen != want.Chosen ||
			*o.Sure != want.SureChosen.Mean || *o.SureBest != want.SureBest.Mean {
			t.Error(text)
		}
		for i, of := range o.Trials {
			p := want.Got[i]
			worse, stdErr := want.Worse(i)
			if of.K != want.K(i) || of.M != want.M(i) || of.Mean != p.Mean || of.StdErr != p.StdErr ||
				of.Worse != worse || of.WorseStdErr != stdErr || !slices.Equal(of.Losses, p.Losses) ||
				!slices.Equal(of.Relative, p.Relative) {
				t.Errorf("trial %d: %s", i, text)
			}
		}
	}
}

// TestRankPlot: the picture has a point for every k, by size, behind that of the mean alone, and a line and a
// name for every m.
func TestRankPlot(t *testing.T) {
	folder(t)
	c := &comparison{rankFlags: parsedRank(t, "-k 3,1 -m 4,6 -repeats 2 -epochs 2 x.tsv"),
		told: cli.NewProgress("none", io.Discard)}
	OK(t, c.fits(t.Context(), read(t, "matrix.tsv").X))
	said := ""
	for _, line := range c.chart().Lines {
		said += line.Name + ":"
		for _, p := range line.Points {
			said += fmt.Sprintf(" %s %.4g", p.Label, p.Y)
		}
		said += "\n"
	}
	want := "m = 4: 0 %[5]v 1 %[3]v 3 %[1]v\nm = 6: 0 %[5]v 1 %[4]v 3 %[2]v\n"
	var means []any
	for _, p := range c.Got {
		means = append(means, fmt.Sprintf("%.4g", p.Mean))
	}
	if want = fmt.Sprintf(want, means...); said != want {
		t.Errorf("%s, want %s", said, want)
	}
}

// TestRankResumes: fits done before an interrupt are not made again, and the result is that of
// one that was never stopped; one that is damaged or lost is made anew.
func TestRankResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for moments at which it interrupts")
	}
	canInterrupt(t)
	// fits at once: with a processor for each, all would be done
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	dir := folder(t)
	const line = "rank -k 1,2,3 -repeats 4 -epochs 150 -m 5 matrix.tsv"
	const with = line + " -checkpoint fits -progress json"
	want, _ := quiet(t, 0, line)
	w := interrupting{line: `"phase":"fits"`, others: 4}
	if code := run(with, nil, io.Discard, &w); code != cli.Interrupted ||
		!strings.Contains(w.String(),
			"interrupted before all fits were done; those that are done are in fits: the same command with "+
				"-resume goes on") {
		t.Fatalf("exit code %d: %s", code, w.String())
	}
	if got := files(t, dir); got != "fits" {
		t.Fatalf("files: %s", got)
	}
	for _, damage := range []func(blob string) error{
		func(string) error { return nil },
		func(blob string) error { return os.Truncate(blob, 100) },
		os.Remove,
	} {
		saved, err := filepath.Glob("fits/fit-*")
		if err != nil || len(saved) < 3 {
			t.Fatalf("%q fits kept, %v", saved, err)
		}
		OK(t, damage(saved[1]))
		says(t, 2, with+" -resume -eps 0.03", "-resume: fits was made with other flags")
		before := copied(t, "fits")
		got, _ := quiet(t, 0, with+" -resume")
		Equal(t, got, want, "got")
		Equal(t, files(t, dir), "", "files")
		OK(t, os.CopyFS("fits", before))
	}
}

// TestRankAfterKill: a comparison that was killed while it wrote its first file goes on, and what was half
// written goes.
func TestRankAfterKill(t *testing.T) {
	dir := folder(t)
	OK(t, os.Mkdir("fits", 0o777))
	writeText(t, "fits/.quantmf-0123456789abcdef.tmp", "begun")
	quiet(t, 0, "rank -method nmf -k 1 -repeats 2 -epochs 2 -checkpoint fits -resume matrix.tsv")
	Equal(t, files(t, dir), "", "files")
}

// copied is what a folder has.
func copied(t *testing.T, dir string) fs.FS {
	t.Helper()
	to := t.TempDir()
	OK(t, os.CopyFS(to, os.DirFS(dir)))
	return os.DirFS(to)
}

// TestRankTakesFits: a fit that is in the folder is not made again, neither by the same comparison nor by a
// larger one.
func TestRankTakesFits(t *testing.T) {
	t.Chdir(t.TempDir())
	x := quantmf.NewMat(6, 5)
	for i := range x.Data {
		x.Data[i] = float64(1 + i*i%7)
	}
	compare := func(args string) (fits int) {
		f := parsedRank(t, "-repeats 3 -epochs 2 -checkpoint fits "+args+" x.tsv")
		done := Must(openFits(f))(t)
		c := &comparison{rankFlags: f, told: cli.NewProgress("none", io.Discard), done: done}
		OK(t, c.fits(t.Context(), x))
		if c.Table() == "" || len(c.Got) != len(f.Ks)+1 {
			t.Error(c.Table())
		}
		return len(done.blobs()) - 1
	}
	Equal(t, compare("-method nmf -k 1,2 -force"), 6, "fits")
	blobs, _ := filepath.Glob("fits/fit-*")
	old := time.Unix(1000, 0)
	for _, b := range blobs {
		os.Chtimes(b, old, old)
	}
	Equal(t, compare("-method nmf -k 1,2,3 -resume"), 9, "fits")
	for _, b := range blobs {
		if info, err := os.Stat(b); err != nil || !info.ModTime().Equal(old) {
			t.Errorf("%s was made again: %v", b, err)
		}
	}
	writeText(t, "fits/mine", "not of rank")
	Equal(t, compare("-method nmf -k 1 -force"), 3, "fits")
	(&fitsDone{cli.Folder{Dir: "fits"}}).remove()
	Equal(t, files(t, "fits"), "mine", "files")
}

func parsedRank(t *testing.T, args string) *rankFlags {
	t.Helper()
	f := newRankFlags()
	Must(f.program().Parse("rank", strings.Fields(args)))(t)
	return f
}

// TestRankMemory: a comparison asks for what its largest fit takes, of the levels and of the components.
func TestRankMemory(t *testing.T) {
	x := Must(quantmf.NewSparse[float64](900, make([]int, 801), nil, nil))(t)
	asks := func(args string) float64 { return Must(parsedRank(t, args+" x.tsv").footprint(x))(t) }
	fit := func(k, m int) float64 {
		need := Must(quantmf.MemoryFor(t.Context(), quantmf.MethodQMF, x, k, quantmf.WithLevels(m),
			quantmf.WithMissingValues(), quantmf.WithWorkers(1)))(t)
		return float64(need.Fit)
	}
	base := asks("-k 2 -m 8 -repeats 9")
	side := float64(min(runtime.GOMAXPROCS(0), 9))
	for _, c := range []struct {
		k, m string
		more float64
	}{{"2,400", "8", fit(400, 8) - fit(2, 8)}, {"400,2", "8", fit(400, 8) - fit(2, 8)},
		{"2", "8,90", fit(2, 90) - fit(2, 8)}} {
		more := asks("-k "+c.k+" -m "+c.m+" -repeats 9") - base
		if sideBySide := margin * side * c.more; !(c.more > 0 && more >= 0.99*sideBySide) {
			t.Errorf("-k %s -m %s asks for %.0f bytes more, its fits take %.0f", c.k, c.m, more, sideBySide)
		}
	}
	// a copy for every repeat
	if more := asks("-k 2 -m 8 -repeats 19") - base; !(more >= 10*800*900*8) {
		t.Errorf("ten repeats more ask for %.0f bytes more", more)
	}
}

// TestRankMethods: several methods are compared by the same hidden cells, and the picture has a line for
// each.
func TestRankMethods(t *testing.T) {
	folder(t)
	out, e := quiet(t, 0, "rank -method nmf,bqmf -k 1,2 -repeats 2 -plot p.svg matrix.tsv")
	for _, method := range []string{"nmf", "bqmf"} {
		alone, _ := quiet(t, 0, "rank -method "+method+" -k 1,2 -repeats 2 matrix.tsv")
		for k, line := range strings.Split(strings.TrimSpace(alone), "\n")[1:] {
			of := []string{"mean", method, method}[k]
			if numbers := strings.Split(line, "\t")[:3]; !strings.Contains(out, of+"\t"+strings.Join(numbers,
				"\t")) {
				t.Errorf("%s, of %s alone: %s", out, method, line)
			}
		}
	}
	Has(t, textOf(t, "p.svg"), ">NMF<", ">BQMF<")
	Has(t, e, "mf, k=")
	for _, bad := range []string{"nmf,nmf", "nmf,pca", ","} {
		says(t, 2, "rank -method "+bad+" matrix.tsv", "must be some of qmf, qmfq, nmf, bqmf")
	}
	says(t, 2, "rank -method qmf,nmf -m 4 matrix.tsv", "-m")
}
