package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam/internal/kit"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

func run(t *testing.T, want int, args ...string) (out, said string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := Run(args, &stdout, &stderr); code != want {
		t.Fatalf("%v: exit code %d, not %d\n%s", args, code, want, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// TestFit checks a fit of the command and new samples placed under it, with names, by the runner in this
// process.
func TestFit(t *testing.T) {
	file := filepath.Join("..", "..", "testdata", "laml-assays.tsv.gz")
	model := filepath.Join(t.TempDir(), "m.qmf")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	store := filepath.Join(t.TempDir(), "store")
	// with names, in a temporary store
	u, said := run(t, cli.Done, "fit", "-progress", "plain", "-k", "2", "-epochs", "2", "-start", "scores",
		"-shrinkage", "0",
		"-shards", "3", "-o", model, "-u", "-", file)
	Has(t, said, "300 features × 148 samples", "epoch 2 of 2", "done",
		"300 × 148 cells are few: one machine is sooner (quantmf fit -method qmf -k 2)")
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for range 2 { // the second command finds its work done
		_, said := run(t, cli.Done, "fit", "-method", "nmf", "-k", "2", "-epochs", "3", "-store", store, "-u",
			filepath.Join(t.TempDir(), "U.npy"), file)
		Has(t, said, "U.npy: npy has no names, so those of the features are left out")
	}
	if _, said := run(t, cli.Usage, "fit", "-method", "nmf", "-k", "3", "-store", store,
		file); !strings.Contains(said, "-store: it has another fit") {
		t.Error(said)
	}
	in := Must(os.Open(file))(t)
	defer in.Close()
	x := Must(table.Read(in, file, table.Options{}))(t)
	m := Must(quantmf.FitQMF(t.Context(), x.X, 2, quantmf.WithEpochs(2),
		quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0), quantmf.WithBatch(300)))(t)
	if modelIn(t, model) != marshal(t, m) {
		t.Error("the model differs from that of one machine")
	}
	var want bytes.Buffer
	OK(t, table.Write(&want, "-", "feature", x.Features, []string{"c1", "c2"}, m.U))
	if u != want.String() {
		t.Error("U differs from that of one machine")
	}
	v := Must(m.Transform(t.Context(), x.X))(t)
	want.Reset()
	OK(t, table.Write(&want, "-", "component", []string{"c1", "c2"}, x.Samples, v))
	if got, _ := run(t, cli.Done, "transform", "-blocks", "5", model, file); got != want.String() {
		t.Error("the coordinates differ from those of Transform")
	}
}

// TestRank checks that the table and the verdict are those of "quantmf rank".
func TestRank(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the other program")
	}
	quantmf := build(t, "github.com/quantmf/quantmf/cmd/quantmf")
	file := filepath.Join("..", "..", "testdata", "laml-assays.tsv.gz")
	for _, args := range []string{
		"-method nmf -k 1,3 -epochs 4 -repeats 3 -share 0.2 -seed 5 -top 60",
		"-k 2,1 -m 4,6 -epochs 1 -start nmf -shrinkage 1 -batch 20 -repeats 2 -log1p -top 40",
	} {
		words := append(strings.Fields("rank "+args), file)
		c := exec.Command(quantmf, words...)
		var out, verdict bytes.Buffer
		c.Stdout, c.Stderr = &out, &verdict
		if err := c.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, verdict.String())
		}
		got, said := run(t, cli.Done, words...)
		if got != out.String() || strings.Count(got, "\n") < 3 {
			t.Errorf("%s:\n%swant\n%s", args, got, out.String())
		}
		if !strings.Contains(verdict.String(), said) ||
			!strings.Contains(said, "predicts hidden values best") {
			t.Errorf("%s: %q, want %q", args, said, verdict.String())
		}
	}
}

// TestFaults checks that errors are reported in the words of the command line, with the exit code of their
// kind.
func TestFaults(t *testing.T) {
	file := filepath.Join("..", "..", "testdata", "laml-assays.tsv.gz")
	damaged := filepath.Join(t.TempDir(), "m.qmf")
	OK(t, os.WriteFile(damaged, []byte("no model, whatever its name says"), 0o666))
	matrix, link := filepath.Join(t.TempDir(), "x.tsv"), filepath.Join(t.TempDir(), "link.tsv")
	const numbers = "f\ta\tb\ng\t1\t2\n"
	OK(t, os.WriteFile(matrix, []byte(numbers), 0o666))
	if err := os.Symlink(matrix, link); err != nil {
		link = matrix // where links need a privilege
	}
	for _, c := range []struct {
		code int
		says string
		args string
	}{
		{cli.Usage, "is read itself", "fit -method nmf -k 1 -shards 1 -o " + matrix + " " + matrix},
		{cli.Usage, "is read itself", "fit -method nmf -k 1 -shards 1 -u " + link + " " + matrix},
		{cli.Usage, "is read itself", "transform -o " + matrix + " MODEL " + link},
		{cli.Usage, "two outputs", "fit -o U.tsv -u ./U.tsv " + file},
		{cli.Usage, "there is no command", "fitt"},
		{cli.Usage, "no MATRIX given", "fit"},
		{cli.Usage, "too much", "fit a b"},
		{cli.Usage, "-method qmfq", "fit -method qmfq x"},
		{cli.Usage, "-endpoint", "fit -runner universal x"},
		{cli.Usage, "-runner nope: this program has no such runner", "fit -runner nope " + file},
		{cli.Usage, "not a whole number", "fit -m x x"},
		{cli.Usage, "-shards 400", "fit -shards 400 " + file},
		{cli.Usage, "-updates", "fit -method nmf -updates newton -loss 3 " + file},
		{cli.Usage, "-top 0: must be at least 1", "fit -top 0 " + file},
		{cli.Usage, "-top 0: must be at least 1", "rank -top 0 " + file},
		{cli.Usage, "-k 0", "fit -k 0 " + file},
		{cli.Usage, "end of the name", "fit -u U.what " + file},
		{cli.Usage, "two outputs", "fit -u U.tsv -v U.tsv " + file},
		{cli.Usage, "-log loud", "fit -log loud " + file},
		{cli.Usage, "-share 0.9", "rank -share 0.9 " + file},
		{cli.Usage, "-repeats 0", "rank -repeats 0 " + file},
		{cli.Usage, "not whole numbers", "rank -k 1,x " + file},
		{cli.Usage, "-k 0", "rank -method nmf -k 0 " + file},
		{cli.Usage, "-method what", "rank -method what " + file},
		{cli.Usage, "-eps", "rank -method nmf -eps 0.1 " + file},
		{cli.Usage, "-blocks 0", "transform -blocks 0 MODEL " + file},
		{cli.BadInput, "no such file", "fit /nowhere"},
		{cli.BadInput, `fit: open /no\x1bwhere:`, "fit /no\x1bwhere"},
		{cli.Usage, `-method \x1b: must`, "fit -method \x1b " + file},
		{cli.Usage, "-o: the value is empty", "fit -o= " + file},
		{cli.Usage, "-o: the value is empty", "transform -o= MODEL " + file},
		{cli.Usage, "-store: the value is empty", "rank -store= " + file},
		{cli.Usage, "-endpoint: the value is empty", "fit -endpoint= " + file},
		{cli.Usage, "-na: the value is empty", "fit -na= " + file},
		{cli.BadInput, "model", "transform " + damaged + " " + file},
	} {
		_, said := run(t, c.code, strings.Fields(strings.Replace(c.args, "MODEL", goodModel(t), 1))...)
		Has(t, said, c.says)
	}
	if b, err := os.ReadFile(matrix); err != nil || string(b) != numbers {
		t.Errorf("the matrix is %q now, %v", b, err)
	}
	for _, help := range []string{"-h", "fit -h", "transform -h", "rank -h", "workers -h"} {
		if out, _ := run(t, cli.Done, strings.Fields(help)...); !strings.Contains(out, "usage:") {
			t.Errorf("%s: %q", help, out)
		}
	}
}

// goodModel is the file of a model of the table of the tests.
func goodModel(t *testing.T) string {
	t.Helper()
	m := Must(quantmf.FitNMF(t.Context(), kit.LowRank(300, 4), 1, quantmf.WithEpochs(1)))(t)
	path := filepath.Join(t.TempDir(), "m.nmf")
	OK(t, os.WriteFile(path, []byte(marshal(t, m)), 0o666))
	return path
}
