package main

// This file measures how soon a command says something, and how soon it ends when it is interrupted.

import (
	"bufio"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestCommandLatency: of every command that works for long, on a matrix of 6000 × 300 with 10 components, the
// first line of progress comes within 100 ms of its start, and the process is gone 50 ms after an interrupt
// at a random moment, with code 130, and nothing left behind. The times are those of a machine that does
// nothing else; what is above is tried three times. QUANTMF_LATENCY is set for it.
func TestCommandLatency(t *testing.T) {
	if os.Getenv("QUANTMF_LATENCY") == "" {
		t.Skip("QUANTMF_LATENCY is not set: a measurement of minutes")
	}
	t.Chdir(t.TempDir())
	x := quantmf.NewMat(6000, 300)
	src := rand.New(rand.NewPCG(1, 2))
	for i := range x.Rows {
		level := src.ExpFloat64()
		for j := range x.Cols {
			x.Set(i, j, level*(0.2+src.ExpFloat64()*float64(1+(i+j)%5)))
		}
	}
	writeTable(t, "x.npy", x)
	writeTable(t, "x.tsv", x)
	for i := 0; i < len(x.Data); i += 11 {
		x.Data[i] = math.NaN()
	}
	writeTable(t, "holes.npy", x)
	quiet(t, 0, "fit -k 10 -epochs 1 -start uniform -o m.qmf x.npy")
	quiet(t, 0, "fit -method qmfq -k 10 -epochs 1 -start uniform -o q.qmf x.npy")
	outputs := []string{"o.qmf", "o.npy", "o.tsv", "o.html", "o.csv.gz"}
	kept := files(t, ".")
	for _, args := range []string{
		"fit -k 10 x.npy -o o.qmf", "fit -k 10 -method nmf -epochs 2000 x.npy -o o.qmf",
		"fit -k 10 -method qmfq x.npy -o o.qmf", "fit -k 10 -method bqmf x.npy -o o.qmf",
		"fit -k 10 x.tsv -o o.qmf", "rank -k 5,10 x.npy", "impute -k 10 holes.npy -o o.npy",
		"transform m.qmf x.npy -o o.npy", "score m.qmf x.npy", "reconstruct m.qmf -o o.tsv",
		"normalize q.qmf x.npy -o o.tsv", "inspect m.qmf x.npy", "report m.qmf x.npy -o o.html",
		"convert x.tsv o.csv.gz",
	} {
		begin := func() (p *exec.Cmd, said *bufio.Reader) {
			p, _ = commandOf(t, args+" -progress plain")
			p.Stderr = nil
			pipe := Must(p.StderrPipe())(t)
			OK(t, p.Start())
			return p, bufio.NewReader(pipe)
		}
		first := time.Hour
		for range 3 {
			began := time.Now()
			p, said := begin()
			if _, err := said.ReadString('\n'); err != nil {
				t.Fatal(args, err)
			}
			first = min(first, time.Since(began))
			p.Process.Kill()
			p.Wait()
		}
		left, _ := filepath.Glob(".quantmf-*.tmp")
		for _, o := range append(left, outputs...) {
			os.Remove(o)
		}
		worst := time.Duration(0)
		for range 6 {
			after := time.Duration(src.Int64N(int64(time.Second)))
			least := time.Hour
			for try := 0; try < 3 && least > 50*time.Millisecond; try++ {
				p, said := begin()
				go io.Copy(io.Discard, said)
				time.Sleep(20*time.Millisecond + after)
				told := time.Now()
				p.Process.Signal(os.Interrupt)
				err := p.Wait()
				least = min(least, time.Since(told))
				if err != nil && p.ProcessState.ExitCode() != cli.Interrupted {
					t.Errorf("%s: %v", args, err)
				}
				if err == nil { // it had ended by itself
					after /= 2
				}
				for _, o := range outputs {
					os.Remove(o)
				}
				if got := files(t, "."); got != kept {
					t.Fatalf("%s: files: %s", args, got)
				}
			}
			worst = max(worst, least)
		}
		t.Logf("%-60s first line after %.0f ms, gone %.0f ms after an interrupt at most", args,
			1e3*first.Seconds(), 1e3*worst.Seconds())
		if first > 100*time.Millisecond || worst > 50*time.Millisecond {
			t.Errorf("%s: too late", args)
		}
	}
}
