package main

// This file tests what is said of skewed amounts.

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestSkewed: of amounts that are products the command, inspect and the page say that a logarithm first
// predicts better, and by -log1p they do not.
func TestSkewed(t *testing.T) {
	t.Chdir(t.TempDir())
	src := rand.New(rand.NewPCG(3, 4))
	v, x := make([][3]float64, 80), quantmf.NewMat(60, 80)
	for j := range v {
		v[j] = [3]float64{src.NormFloat64(), src.NormFloat64(), src.NormFloat64()}
	}
	for i := range x.Rows {
		a, b, c := src.NormFloat64(), src.NormFloat64(), src.NormFloat64()
		for j := range v {
			x.Set(i, j, math.Exp(3+a*v[j][0]+b*v[j][1]+c*v[j][2]+0.3*src.NormFloat64()))
		}
	}
	writeTable(t, "x.tsv", x)
	const words = "a fit of log(1+x) predicts hidden values "
	_, said := quiet(t, 0, "fit -progress none -method nmf -k 5 -o m.nmf -report page.html x.tsv")
	told, _ := quiet(t, 0, "inspect m.nmf")
	page, _ := quiet(t, 0, "report -o - m.nmf x.tsv")
	for _, text := range []string{said, told, page} {
		Has(t, text, words)
	}
	_, said = quiet(t, 0, "fit -progress none -method nmf -k 5 -log1p x.tsv")
	Lacks(t, said, words)
}
