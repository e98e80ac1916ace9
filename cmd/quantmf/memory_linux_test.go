package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestFootprint: what is told of memory is at least what a fit in a process of its own has
// resident at its most; beyond the program's share, at most 2.2 times that and 2 MiB: of a report 8 MiB are
// told whatever its size, and a small one takes fewer or more of them by chance. The
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
	plain, full := quantmf.NewMat(d, n), quantmf.NewMat(d, n)
	for i := range d {
		for j := range n {
			plain.Set(i, j, r.ExpFloat64()*(1+r.Float64()*float64(j%7)))
		}
	}
	const rank = 100 // of a table that a BQMF of as many components keeps all of
	factor := make([]float64, rank*n)
	for i := range factor {
		factor[i] = r.NormFloat64()
	}
	for i := range d {
		var row [rank]float64
		for h := range row {
			row[h] = r.NormFloat64()
		}
		for j := range n {
			sum := 0.01 * r.NormFloat64()
			for h, u := range row {
				sum += u * factor[j*rank+h]
			}
			full.Set(i, j, sum)
		}
	}
	t.Chdir(t.TempDir())
	lost := func(int, int) bool { return r.Float64() < 0.05 }
	writeTable(t, "plain.tsv", plain)
	writeTable(t, "holes.tsv", lacking(plain, lost))
	writeTable(t, "full.tsv", lacking(full, lost))
	writeText(t, "tiny.tsv", "1\t2\t3\n4\t5\t7\n9\t8\t6\n")
	idle := peakOf(t, "fit -method nmf -k 1 -progress none tiny.tsv")
	t.Logf("%5.1f MiB resident: a fit of three samples", idle/(1<<20))
	for _, args := range fits {
		words := strings.Fields("-progress none " + args)
		f := newFitFlags()
		program := f.program()
		_, err := program.Parse("fit", words)
		if err == nil {
			err = f.check(program)
		}
		OK(t, err)
		f.matrix = words[len(words)-1]
		x, _, err := f.read(cli.Streams{Err: io.Discard})
		OK(t, err)
		told := Must(f.footprint(x.Rows(), x.HeldBytes()))(t)
		OK(t, x.Close())
		got := leastPeakOf(t, told, "fit -progress none "+args)
		t.Logf("%5.1f MiB resident, %5.1f told: %s", got/(1<<20), told/(1<<20), args)
		if told < got || told-programSize > 2.2*(got-idle)+2<<20 {
			t.Errorf("%s: %.3g bytes were resident at most, %.3g by the program alone, %.3g told", args, got,
				idle, told)
		}
	}
}

// leastPeakOf is peakOf, or where that is more than most the least of three runs: when the collector comes to
// run is a matter of chance, what a run needs is not.
func leastPeakOf(t *testing.T, most float64, line string) float64 {
	t.Helper()
	got := peakOf(t, line)
	for range 2 {
		if got > most {
			got = min(got, peakOf(t, line))
		}
	}
	return got
}

// peakOf returns the most bytes that a quantmf with these arguments had resident.
func peakOf(t *testing.T, line string) float64 {
	t.Helper()
	c, said := commandOf(t, line)
	c.Env = append(c.Env, "GOGC=1", "QUANTMF_AS_COMMAND=peak")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err, said)
	}
	_, peak, _ := strings.Cut(string(out), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscanf(peak, "%f kB", &kib); err != nil {
		t.Fatal(err, peak)
	}
	return kib * 1024
}
