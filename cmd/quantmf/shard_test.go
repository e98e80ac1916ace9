//go:build linux

package main

// This file tests "quantmf shard": the bits of "quantmf fit", steps in processes of their own that are killed
// at random moments, parts that are lost or damaged, and the script in docs/shards.md.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// wide is a matrix of 96 features that sums in six runs.
func wide() string {
	src := rand.New(rand.NewPCG(3, 9))
	var s strings.Builder
	s.WriteString("gene")
	for j := range 30 {
		fmt.Fprintf(&s, "\tcell%d", j)
	}
	for i := range 96 {
		fmt.Fprintf(&s, "\ngene%d", i)
		for j := range 30 {
			if src.IntN(20) == 0 {
				s.WriteString("\tNA")
				continue
			}
			fmt.Fprintf(&s, "\t%d", src.IntN(40)*(1+(i+j)%3))
		}
	}
	return s.String() + "\n"
}

// numbersOf is a model file without what the command keeps beside the numbers of the package.
func numbersOf(t *testing.T, path string) []byte {
	t.Helper()
	m := Must(quantmf.UnmarshalModel([]byte(textOf(t, path))))(t)
	return Must(m.MarshalBinary())(t)
}

// TestShard: the model of a fit in shards is that of fit, with the names; and the command that it names makes
// it again.
func TestShard(t *testing.T) {
	t.Chdir(t.TempDir())
	writeText(t, "wide.tsv", wide())
	for i, c := range []struct{ plan, fit string }{
		{"-method nmf -missing -k 3 -epochs 5 -validation 0.1", "-updates multiplicative"},
		{"-method nmf -updates newton -missing -k 3 -epochs 5", ""},
		{"-method qmf -k 2 -missing -epochs 2 -start nmf -shrinkage 1", "-batch 96"},
		{"-method qmf -k 2 -missing -log1p -top 70 -loss frobenius -start uniform -epochs 3 -patience 2",
			"-batch 70"},
	} {
		if testing.Short() && (i == 1 || i == 2) { // package shards has the like
			continue
		}
		dir := fmt.Sprint("fit", i)
		quiet(t, 0, "fit -compare none "+c.plan+" "+c.fit+" -progress none -o want wide.tsv")
		quiet(t, 0, "shard plan "+c.plan+" -shards 3 -progress none -o "+dir+" wide.tsv")
		toEnd(t, dir, 3)
		quiet(t, 0, "shard finish -o got -u U.tsv "+dir)
		EqualAll(t, numbersOf(t, "got"), numbersOf(t, "want"), "%s: another model", c.plan)
		told, _ := quiet(t, 0, "inspect got")
		line := regexp.MustCompile(`(?m)^Command +quantmf (fit .*)$`).FindStringSubmatch(told)
		if line == nil || !strings.Contains(told, "wide.tsv") {
			t.Fatal(told)
		}
		quiet(t, 0, line[1]+" -compare none -progress none -o again")
		EqualAll(t, numbersOf(t, "again"), numbersOf(t, "want"), "%s makes another model", line[1])
		if u := read(t, "U.tsv"); !strings.HasPrefix(u.Features[0], "gene") {
			t.Error(u.Features[0])
		}
	}
	const few = "NMF: 96 × 30 cells are few: one machine is sooner (quantmf fit -method nmf -k 2)\n"
	says(t, 0, "shard plan -method nmf -missing -k 2 -shards 2 -o few wide.tsv", few)
	// What is wrong is said in the words of the command.
	for _, c := range []saying{
		{"shard", cli.Usage, "give one of plan, step, reduce, finish"},
		{"shard plan -shards 7 -o new -missing wide.tsv", cli.Usage, "-shards 7: must be from 1 to 6"},
		{"shard plan -shards 2 -missing wide.tsv", cli.Usage, "-o DIR"},
		{"shard plan -method bqmf -o new wide.tsv", cli.Usage, "must be one of qmf, nmf"},
		{"shard plan -k 0 -o new nothing.tsv", cli.Usage, "must be at least 1"},
		{"shard plan -restarts 2 -o new wide.tsv", cli.Usage, "no flag -restarts"},
		{"shard plan -shards 3 -k 5 -missing -o fit0 wide.tsv", cli.Usage,
			"-o fit0: the folder has another fit"},
		{"shard plan -shards 3 -o new wide.tsv", cli.BadInput, "missing"},
		{"shard step -k 3 fit0", cli.Usage, "-k: step has no use for it"},
		{"shard step fit0", cli.Usage, "must be from 0 to 2"},
		{"shard step -shard 3 fit0", cli.Usage, "must be from 0 to 2"},
		{"shard step -shard 0 -round 1 -wait fit0", cli.Usage, "leave -round out"},
		{"shard reduce nowhere", cli.BadInput, "nowhere"},
		{"shard finish -q Q.tsv fit0", cli.Usage, "only a QMF"},
		{"shard finish fit0", cli.Usage, "-o FILE"},
	} {
		says(t, c.code, c.args, c.says)
	}
}

// TestShardParts: a part that is lost or damaged is named with the command that makes it again.
func TestShardParts(t *testing.T) {
	t.Chdir(t.TempDir())
	writeText(t, "wide.tsv", wide())
	quiet(t, 0, "shard plan -method nmf -k 2 -missing -shards 2 -epochs 3 -progress none -o "+
		"D wide.tsv")
	_, said := quiet(t, cli.Failed, "shard finish -o m D")
	Has(t, said, "not over")
	says(t, cli.Failed, "shard step -round 1 -shard 0 D", `("quantmf shard reduce -round 0" comes first)`)
	mend := regexp.MustCompile(`"quantmf (shard step -round 0 -shard 1)" makes it`)
	quiet(t, 0, "shard step -shard 0 D")
	_, said = quiet(t, cli.Failed, "shard reduce D")
	if !strings.Contains(said, "part-000000-0001") || !mend.MatchString(said) {
		t.Error(said)
	}
	part := filepath.Join("D", "part-000000-0001")
	quiet(t, 0, "shard step -shard 1 D")
	whole := textOf(t, part)
	writeText(t, part, whole[:len(whole)-9])
	_, said = quiet(t, cli.BadInput, "shard reduce D")
	command := mend.FindStringSubmatch(said)
	if command == nil || !strings.Contains(said, "part-000000-0001") {
		t.Fatal(said)
	}
	quiet(t, 0, command[1]+" D")
	if textOf(t, part) != whole {
		t.Error("another part")
	}
	if out, _ := quiet(t, 0, "shard reduce D"); out != "1\n" {
		t.Error(out)
	}
}

// TestShardWait: steps and a reduce that wait for each other go to the end by themselves, also where a part
// is damaged under way.
func TestShardWait(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	before := patienceOfFolder
	patienceOfFolder = 2 * time.Millisecond
	defer func() { patienceOfFolder = before }()
	writeText(t, "wide.tsv", wide())
	quiet(t, 0, "fit -compare none -method nmf -updates multiplicative -k 2 -missing -epochs 40 -progress "+
		"none -o want wide.tsv")
	quiet(t, 0, "shard plan -method nmf -k 2 -missing -shards 3 -epochs 40 -progress none "+
		"-o D wide.tsv")
	var all sync.WaitGroup
	for _, args := range []string{"step -wait -shard 0 D", "step -wait -shard 1 D", "step -wait -shard 2 D",
		"reduce -wait D"} {
		all.Go(func() {
			Equal(t, run("shard "+args, strings.NewReader(""), &bytes.Buffer{},
				&bytes.Buffer{}), 0, "%s", args)
		})
	}
	for range 5 {
		time.Sleep(5 * time.Millisecond)
		parts, _ := filepath.Glob("D/part-*")
		for _, p := range parts {
			os.Truncate(p, 30)
		}
	}
	all.Wait()
	says(t, cli.Usage, "shard finish -o D/plan D", "plan is read itself")
	quiet(t, 0, "shard finish -o got D")
	if !bytes.Equal(numbersOf(t, "got"), numbersOf(t, "want")) {
		t.Error("another model")
	}
}

// TestShardKilled: steps and reduces that are killed at random moments and started again leave the bits of a
// fit that was left alone.
func TestShardKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Chdir(t.TempDir())
	writeText(t, "wide.tsv", wide())
	src := rand.New(rand.NewPCG(1, 2))
	quiet(t, 0, "fit -method qmf -compare none -k 2 -missing -epochs 2 -start nmf -shrinkage 1 -batch 96 "+
		"-progress none -o want wide.tsv")
	kills, left := 0, false
	for kills < 20 {
		os.RemoveAll("D")
		// quantmf runs a command until it was not killed; most are, at a moment that is within their run.
		quantmf := func(args string) string {
			for try := 0; ; try++ {
				p, said := commandOf(t, args)
				var out bytes.Buffer
				p.Stdout = &out
				OK(t, p.Start())
				if try < 2 {
					time.Sleep(time.Duration(src.Int64N(int64(12 * time.Millisecond))))
					p.Process.Kill()
				}
				err := p.Wait()
				switch {
				case err == nil:
					return out.String()
				case p.ProcessState.ExitCode() == -1: // by the signal
					kills++
					files, _ := filepath.Glob("D/.*.tmp")
					left = left || len(files) > 0
				default:
					t.Fatalf("%s: %v: %s", args, err, said)
				}
			}
		}
		quantmf("shard plan -k 2 -missing -epochs 2 -start nmf -shrinkage 1 -shards 2 -progress none -o D " +
			"wide.tsv")
		for round := "0"; round != "over"; round = strings.TrimSpace(quantmf("shard reduce D -round " +
			round)) {
			quantmf("shard step -shard 0 D -round " + round)
			quantmf("shard step -shard 1 D -round " + round)
		}
		quantmf("shard finish -o got D")
		EqualAll(t, numbersOf(t, "got"), numbersOf(t, "want"), "another model after %d kills", kills)
	}
	t.Logf("%d kills, a temporary file left: %v", kills, left)
}

// TestShardScripts: the scripts in docs/shards make the model of fit, started as schedulers start them.
func TestShardScripts(t *testing.T) {
	if os.Getenv("QUANTMF_LONG") == "" {
		t.Skip("QUANTMF_LONG is not set: runs whole scripts")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	docs := Must(filepath.Abs("../../docs/shards"))(t)
	self := Must(os.Executable())(t)
	t.Chdir(t.TempDir())
	os.Mkdir("bin", 0o777)
	os.Symlink(self, "bin/quantmf")
	here, _ := os.Getwd()
	script := func(env string, words ...string) error {
		c := exec.Command(bash, words...)
		c.Env = append(os.Environ(), "QUANTMF_AS_COMMAND=1",
			"PATH="+filepath.Join(here, "bin")+":"+os.Getenv("PATH"), env)
		out, err := c.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%v: %w: %s", words, err, out)
		}
		return nil
	}
	writeText(t, "wide.tsv", wide())
	quiet(t, 0, "fit -method nmf -updates multiplicative -k 2 -missing -epochs 2 -progress "+
		"none -o want wide.tsv")
	plan := "shard plan -method nmf -k 2 -missing -epochs 2 -progress none wide.tsv -o "
	quiet(t, 0, plan+"rounds -shards 3")
	for range 2 { // again, it finds all done
		OK(t, script("A=", filepath.Join(docs, "rounds.sh"), "rounds", "3", "2"))
	}
	quiet(t, 0, "shard finish rounds -o rounds.model")
	// An array job of as many tasks as shards and one more. The matrix has six runs, so slurm.sh has fewer
	// shards here.
	text := textOf(t, filepath.Join(docs, "slurm.sh"))
	array := regexp.MustCompile(`--array=0-8\n(?s:.*)work.sh fit 8 `)
	if !array.MatchString(text) {
		t.Fatal("slurm.sh has another array")
	}
	writeText(t, "slurm.sh", strings.Replace(text, "fit 8", "fit 2", 1))
	os.Symlink(filepath.Join(docs, "work.sh"), "work.sh")
	quiet(t, 0, plan+"fit -shards 2")
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			if err := script(fmt.Sprint("SLURM_ARRAY_TASK_ID=", i), "slurm.sh"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, got := range []string{"rounds.model", "fit.model"} {
		EqualAll(t, numbersOf(t, got), numbersOf(t, "want"), "%s is another model", got)
	}
}
