package main

// This file tests what is said first of matrices whose truth is known: the first box, the warnings and the
// method of -method auto, in the summary and on the page.

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// lowRank is a table of k components, with noise of so many logarithms.
func lowRank(src *rand.Rand, d, n, k int, noise float64) [][]float64 {
	v := make([][]float64, k)
	for c := range v {
		v[c] = make([]float64, n)
		for j := range n {
			v[c][j] = src.ExpFloat64()
		}
	}
	x := make([][]float64, d)
	for i := range x {
		x[i] = make([]float64, n)
		for c := range k {
			u := src.ExpFloat64()
			for j := range n {
				x[i][j] += u * v[c][j]
			}
		}
		for j := range n {
			x[i][j] *= math.Exp(noise * src.NormFloat64())
		}
	}
	return x
}

// TestMatrices: what command and report say of matrices whose truth is known.
func TestMatrices(t *testing.T) {
	if testing.Short() {
		t.Skip("makes hundreds of fits")
	}
	t.Chdir(t.TempDir())
	src := rand.New(rand.NewPCG(5, 5))
	noise := lowRank(src, 60, 50, 0, 0)
	for _, row := range noise {
		for j := range row {
			row[j] = src.ExpFloat64()
		}
	}
	outlier := lowRank(src, 60, 50, 3, 0.2)
	outlier[7][9] *= 5000
	linear := lowRank(src, 60, 80, 3, 0.1)
	for i := range linear { // far samples, along a component
		for j := 0; j < 80; j += 20 {
			linear[i][j] *= 30
		}
	}
	limits := lowRank(src, 60, 80, 3, 0.2)
	for _, row := range limits {
		for j, v := range row {
			if v < 1.5 {
				row[j] = 0
			}
		}
	}
	twins := lowRank(src, 30, 50, 3, 0.2)
	twins = append(twins, twins...)
	batches := lowRank(src, 60, 80, 3, 0.2)
	for i := range batches {
		by := math.Exp(1.5 * src.NormFloat64())
		for j := 40; j < 80; j++ {
			batches[i][j] *= by
		}
	}
	const (
		none  = "no structure was found"
		some  = "% of what differs between samples is predicted, in values that the model has not seen"
		few   = "samples: of fewer than 40 a fit explains much that is noise"
		whole = "can repeat any 60 × 3 matrix as it is"
		copy  = "30 features are copies of earlier ones (f31, f32, f33)"
		alone = "f8 alone has "
	)
	all := []string{none, some, few, whole, copy, alone}
	for name, c := range map[string]struct {
		x       [][]float64
		parts   string   // the method of -k 3; "" where it may be either
		foresee string   // that of -k 0; "" where that is not tried
		says    []string // of all
		odd     string   // what the page says beside
	}{
		"noise": {noise, "", "bqmf", []string{none}, "Nothing was found"},
		"outlier": {outlier, "", "", []string{some, alone},
			"1 value is more than 10 interquartile ranges"},
		"three": {lowRank(src, 60, 3, 3, 0.2), "", "", []string{some, whole}, ""},
		"few":   {lowRank(src, 60, 34, 3, 0.2), "nmf", "bqmf", []string{some, few}, ""},
		"linear": {linear, "nmf", "", []string{some},
			"samples have more than 10 times the mean of a component"},
		"limits":  {limits, "qmf", "bqmf", []string{some}, ""},
		"twins":   {twins, "nmf", "bqmf", []string{some, copy}, "30 features are the same in all samples"},
		"batches": {batches, "", "bqmf", []string{some}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var s strings.Builder
			for _, row := range c.x {
				for j, v := range row {
					fmt.Fprintf(&s, "%.4f%s", v, map[bool]string{true: "\n", false: "\t"}[j == len(row)-1])
				}
			}
			writeText(t, "x.tsv", s.String())
			for k, method := range map[string]string{"3": c.parts, "0": c.foresee} {
				if k == "0" && method == "" {
					continue
				}
				_, said := quiet(t, 0, "fit -progress none -report page.html -o m.qmf -k "+k+" x.tsv")
				told, _ := quiet(t, 0, "inspect m.qmf")
				b, _ := os.ReadFile("page.html")
				page := string(b)
				if method != "" && !strings.Contains(said, "\nMethod        "+strings.ToUpper(method)+", ") {
					t.Errorf("-k %s: the method is not %s: %s", k, method, said)
				}
				if !strings.Contains(page, c.odd) {
					t.Errorf("-k %s: the page lacks %q", k, c.odd)
				}
				for _, words := range all {
					want := slices.Contains(c.says, words)
					if k == "0" && (words == few || words == whole) {
						continue // the method may be BQMF, which leaves out what it does not need
					}
					if strings.Contains(said, words) != want || strings.Contains(told, words) != want {
						t.Errorf("-k %s: %q is said: %v: %s\n%s", k, words, !want, said, told)
					}
					onPage := map[string]string{none: "No structure was found:",
						some: "of the differences between samples predicted, in values that the model has " +
							"not seen"}
					if words = cmp.Or(onPage[words], words); words != onPage[some] &&
						strings.Contains(page, words) != want {
						t.Errorf("-k %s: %q is on the page: %v", k, words, !want)
					}
				}
			}
		})
	}
}
