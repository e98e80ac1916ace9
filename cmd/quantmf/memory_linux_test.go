package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/shards"
)

// TestFootprint: what is told of memory is at least what a fit in a process of its own has
// resident at its most; beyond the program's share, at most 2.2 times that. The
// process collects at each hundredth by which the heap grows, so that what is resident is
// nearly what is alive; the system keeps the peak. Without QUANTMF_LONG it is three short fits
// of a smaller matrix.
func TestFootprint(t *testing.T) {
	if testing.Short() {
		t.Skip("fits for long, looking at the memory all the while")
	}
	fits := []string{
		"-compare none -method qmf -k 20 -epochs 1 -start nmf -shrinkage 0 plain.tsv",
		"-compare none -k 20 -epochs 1 -method qmfq -start uniform plain.tsv",
		"-k 100 -epochs 4 -method nmf -o m.qmf plain.tsv",
	}
	d, n := 400, 120
	if os.Getenv("QUANTMF_LONG") != "" {
		d, n = 1000, 200
		fits = append(fits,
			"-method qmf -k 20 -epochs 2 plain.tsv",
			"-method qmf -k 20 -epochs 2 -missing holes.tsv",
			"-k 40 -epochs 2 -method bqmf -o m.qmf plain.tsv",
			"-k 5 -m 64 -epochs 2 -start nmf -shrinkage 0 plain.tsv",
			"-method qmf -k 5 -m 300 -epochs 1 -start uniform -workers 3 plain.tsv",
			"-k 20 -epochs 2 -start uniform -batch 600 plain.tsv",
			"-k 5 -epochs 2 -start uniform -report r.html plain.tsv",
			"-k 20 -epochs 2 -start scores -shrinkage 0 -force -checkpoint state plain.tsv",
			"-k 20 -epochs 1 -method qmfq -missing -start scores holes.tsv",
			"-k 20 -epochs 300 -method nmf -missing holes.tsv",
			"-method bqmf -epochs 4 -missing holes.tsv",
			"-method bqmf -k 5 -epochs 4 -report r.html plain.tsv",
			"-method bqmf -k 100 -epochs 2 -missing -workers 1 -force -checkpoint state full.tsv",
			"-k 20 -epochs 300 -method nmf -start svd plain.tsv",
		)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var plain, holes strings.Builder
	for range d {
		for j := range n {
			sep := "\t"
			if j == n-1 {
				sep = "\n"
			}
			v := fmt.Sprintf("%.3f", r.ExpFloat64()*(1+r.Float64()*float64(j%7)))
			plain.WriteString(v + sep)
			if r.Float64() < 0.05 {
				v = "NA"
			}
			holes.WriteString(v + sep)
		}
	}
	const rank = 100 // of a table that a BQMF of as many components keeps all of
	factor := make([]float64, rank*n)
	for i := range factor {
		factor[i] = r.NormFloat64()
	}
	var full strings.Builder
	for range d {
		var row [rank]float64
		for h := range row {
			row[h] = r.NormFloat64()
		}
		for j := range n {
			sum := 0.01 * r.NormFloat64()
			for h, u := range row {
				sum += u * factor[j*rank+h]
			}
			v := fmt.Sprintf("%.3f", sum)
			if r.Float64() < 0.05 {
				v = "NA"
			}
			if j > 0 {
				full.WriteByte('\t')
			}
			full.WriteString(v)
		}
		full.WriteByte('\n')
	}
	dir := t.TempDir()
	tiny := "1\t2\t3\n4\t5\t7\n9\t8\t6\n"
	for name, text := range map[string]string{"plain.tsv": plain.String(), "holes.tsv": holes.String(),
		"full.tsv": full.String(), "tiny.tsv": tiny} {
		ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	t.Chdir(dir)
	idle := peakOf(t, "fit", "-method", "nmf", "-k", "1", "-progress", "none", "tiny.tsv")
	t.Logf("%5.1f MiB resident: a fit of three samples", idle/(1<<20))
	for _, args := range fits {
		words := append([]string{"fit", "-progress", "none"}, strings.Fields(args)...)
		f := newFitFlags()
		program := f.program()
		_, err := program.Parse("fit", words[1:])
		if err == nil {
			err = f.check(program)
		}
		if err != nil {
			t.Fatal(err)
		}
		f.matrix = words[len(words)-1]
		x, _, err := f.read(cli.Streams{Err: io.Discard})
		ok(t, err)
		told := must(f.footprint(x.Rows(), x.HeldBytes()))(t)
		ok(t, x.Close())
		got := leastPeakOf(t, told, words...)
		t.Logf("%5.1f MiB resident, %5.1f told: %s", got/(1<<20), told/(1<<20), args)
		if told < got || told-programSize > 2.2*(got-idle) {
			t.Errorf("%s: %.3g bytes were resident at most, %.3g by the program alone, %.3g told", args, got,
				idle, told)
		}
	}
}

// TestShardFootprint: what is told of the memory of a plan over shards and of its steps is at least what
// processes had resident at their most; beyond the program's share, at most two and a half times that. What
// is told of the folder is what is there.
func TestShardFootprint(t *testing.T) {
	if os.Getenv("QUANTMF_LONG") == "" {
		t.Skip("QUANTMF_LONG is not set: starts many processes")
	}
	const d, n, k, count = 320, 4000, 20, 4
	t.Chdir(t.TempDir())
	r := rand.New(rand.NewPCG(1, 2))
	x := quantmf.NewMat(d, n)
	for i := range x.Data {
		x.Data[i] = r.ExpFloat64() * (1 + float64(i%7))
	}
	file := must(os.Create("x.npy"))(t)
	ok(t, table.Write(file, "x.npy", "", nil, nil, x))
	ok(t, file.Close())
	writeText(t, "tiny.tsv", "1\t2\t3\n4\t5\t7\n9\t8\t6\n")
	idle := peakOf(t, "fit", "-method", "nmf", "-k", "1", "-progress", "none", "tiny.tsv")
	for i, c := range []struct {
		method quantmf.Method
		flags  string
		opts   []quantmf.FitOption
	}{
		{quantmf.MethodNMF, "-method nmf -epochs 1", []quantmf.FitOption{quantmf.WithEpochs(1)}},
		{quantmf.MethodNMF, "-method nmf -epochs 1 -validation 0.1",
			[]quantmf.FitOption{quantmf.WithEpochs(1), quantmf.WithValidation(0.1)}},
		{quantmf.MethodNMF, "-method nmf -epochs 4 -updates newton",
			[]quantmf.FitOption{quantmf.WithEpochs(4), quantmf.WithUpdates(quantmf.UpdatesNewton)}},
		{quantmf.MethodQMF, "-method qmf -epochs 1 -start nmf -shrinkage 1",
			[]quantmf.FitOption{quantmf.WithEpochs(1), quantmf.WithStart(quantmf.StartNMF),
				quantmf.WithShrinkage(1)}},
		{quantmf.MethodQMF, "-method qmf -epochs 1 -start uniform",
			[]quantmf.FitOption{quantmf.WithEpochs(1), quantmf.WithStart(quantmf.StartUniform)}},
	} {
		told := must(shards.MemoryOf(c.method, d, n, k, count, c.opts...))(t)
		dir, whole := fmt.Sprint("fit", i), float64(8*d*n)
		check := func(what string, told float64, args ...string) {
			most := margin*told + buffers + programSize
			got := leastPeakOf(t, most, args...)
			t.Logf("%s, %s: %.1f MiB resident, %.1f told beside the program's %.1f", c.flags, what,
				got/(1<<20), told/(1<<20), idle/(1<<20))
			if most < got || told > 2.5*(got-idle) {
				t.Errorf("%s, %s: %.3g bytes were resident at most, %.3g by the program alone, %.3g told",
					c.flags, what, got, idle, told)
			}
		}
		check("plan", float64(told.Plan)+whole,
			append([]string{"shard", "plan", "-k", fmt.Sprint(k), "-shards", fmt.Sprint(count), "-progress",
				"none", "-o", dir, "x.npy"}, strings.Fields(c.flags)...)...)
		looked := 1 // the round that is looked at
		if strings.Contains(c.flags, "newton") {
			looked = 6 // of the half of U
		}
		for round := 0; ; round++ {
			for shard := range count - 1 {
				quiet(t, 0, "shard", "step", dir, "-shard", fmt.Sprint(shard))
			}
			step := []string{"shard", "step", dir, "-shard", fmt.Sprint(count - 1)}
			if round == looked {
				check("step", float64(max(2*told.Rows, told.Rows+told.Step)), step...)
				var bytes int64
				for _, name := range []string{"part-%06d-*", "state-%06d-*", "v-%06d", "main-%06d"} {
					files := must(filepath.Glob(filepath.Join(dir, fmt.Sprintf(name, round))))(t)
					for _, f := range files {
						if at, err := os.Stat(f); err == nil {
							bytes += at.Size()
						}
					}
				}
				if float64(told.Round) < 0.95*float64(bytes) || float64(told.Round) > 1.5*float64(bytes) {
					t.Errorf("%s: a round leaves %d bytes, %d told", c.flags, bytes, told.Round)
				}
				check("reduce", float64(told.Reduce), "shard", "reduce", "-round", fmt.Sprint(round), dir)
			} else {
				quiet(t, 0, step...)
			}
			if out, _ := quiet(t, 0, "shard", "reduce", "-round", fmt.Sprint(round), dir); out == "over\n" {
				break
			}
		}
		check("finish", float64(told.Finish), "shard", "finish", "-o", "m", dir)
	}
}

// leastPeakOf is peakOf, or where that is more than most the least of three runs: when the collector comes to
// run is a matter of chance, what a run needs is not. A plan is made once, since its folder is there then,
// and a reduce finds its round, the last argument but one, not made yet.
func leastPeakOf(t *testing.T, most float64, args ...string) float64 {
	t.Helper()
	got := peakOf(t, args...)
	for range 2 {
		if got <= most || slices.Contains(args, "plan") {
			break
		}
		if slices.Contains(args, "reduce") {
			dir, round := args[len(args)-1], 0
			must(fmt.Sscan(args[len(args)-2], &round))(t)
			for _, name := range []string{"round", "v", "main"} {
				ok(t, os.Remove(filepath.Join(dir, fmt.Sprintf("%s-%06d", name, round+1))))
			}
		}
		got = min(got, peakOf(t, args...))
	}
	return got
}

// peakOf returns the most bytes that a quantmf with these arguments had resident.
func peakOf(t *testing.T, args ...string) float64 {
	t.Helper()
	c, said := commandOf(t, args...)
	c.Env = append(c.Env, "GOGC=1", "QUANTMF_AS_COMMAND=peak")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err, said)
	}
	_, line, _ := strings.Cut(string(out), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscanf(line, "%f kB", &kib); err != nil {
		t.Fatal(err, line)
	}
	return kib * 1024
}
