package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestFootprint: what is told of memory is at least what a fit has alive at its
// most, and at most two and a half times that. Without QUANTMF_LONG it is three fits
// of a smaller matrix.
func TestFootprint(t *testing.T) {
	if testing.Short() {
		t.Skip("fits for long, looking at the memory all the while")
	}
	fits := []string{
		"-k 20 -epochs 2 plain.tsv",
		"-k 20 -epochs 2 -method qmfq -start uniform plain.tsv",
		"-k 100 -epochs 300 -method nmf -o m.qmf plain.tsv",
		"-k 60 -epochs 6 -method bqmf -o m.qmf plain.tsv",
	}
	d, n := 300, 100
	if os.Getenv("QUANTMF_LONG") != "" {
		d, n = 600, 150
		fits = append(fits,
			"-k 20 -epochs 2 -missing holes.tsv",
			"-k 5 -m 64 -epochs 2 -start nmf -shrinkage 0 plain.tsv",
			"-k 5 -m 300 -epochs 1 -start uniform -workers 3 plain.tsv",
			"-k 20 -epochs 2 -start uniform -batch 600 plain.tsv",
			"-k 5 -epochs 2 -start uniform -report r.html plain.tsv",
			"-k 20 -epochs 2 -start scores -shrinkage 0 -force -checkpoint state plain.tsv",
			"-k 20 -epochs 1 -method qmfq -missing -start scores holes.tsv",
			"-k 20 -epochs 300 -method nmf -missing holes.tsv",
			"-method bqmf -epochs 4 -missing holes.tsv",
			"-method bqmf -k 5 -epochs 4 -report r.html plain.tsv",
			"-method bqmf -k 100 -epochs 2 -missing -workers 1 -force -checkpoint state holes.tsv",
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
	dir := t.TempDir()
	for name, text := range map[string]string{"plain.tsv": plain.String(), "holes.tsv": holes.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, args := range fits {
		words := append([]string{"fit", "-progress", "none"}, strings.Fields(args)...)
		f, err := parseFit(words[1:])
		if err != nil {
			t.Fatal(err)
		}
		told, err := f.footprint(d, n)
		if err != nil {
			t.Fatal(err)
		}
		told -= programSize
		// A look may count garbage that was made meanwhile, or miss the peak: then
		// there are more.
		got, fits := 0.0, false
		for look := 0; look < 12 && !fits; look++ {
			got = aliveAtMost(func() {
				var out, errOut bytes.Buffer
				if code := run(words, strings.NewReader(""), &out, &errOut); code != 0 {
					t.Errorf("%s: %s", args, errOut.String())
				}
			})
			fits = told >= got && told <= 2.5*got
		}
		t.Logf("%5.1f MiB alive, %5.1f told: %s", got/(1<<20), told/(1<<20), args)
		if !fits {
			t.Errorf("%s: %.3g bytes were alive at most, %.3g told", args, got, told)
		}
	}
}

// aliveAtMost returns the most bytes that were alive while do ran, by collecting
// and looking all the while.
func aliveAtMost(do func()) float64 {
	alive := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := alive()
	most := before
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				most = max(most, alive())
			}
		}
	})
	do()
	close(done)
	wait.Wait()
	return float64(most - before)
}
