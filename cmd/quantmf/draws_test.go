package main

// This file tests "quantmf impute -draws".

import (
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestImputeDraws: each file is a draw of the package with the known values in their places, in the order of
// the other outputs; the summary has one line for all. What cannot be drawn is refused before any work.
func TestImputeDraws(t *testing.T) {
	t.Chdir(t.TempDir())
	_, given := bent(14, 30)
	writeTable(t, "holes.csv", given)
	m := Must(quantmf.FitBQMF(t.Context(), given, 0, quantmf.WithMissingValues()))(t)
	for _, also := range []string{"", " -interval 0.8"} {
		_, said := quiet(t, 0, "impute holes.csv -o full.csv -draws 2 -checks 1 -features of.csv -seed 3"+
			also)
		for k, name := range []string{"full.draw1.csv", "full.draw2.csv"} {
			want := m.Sample(3<<10 + uint64(k))
			keep(want, given)
			if !same(read(t, name).X, want) {
				t.Errorf("%s with %v is not the package's draw", name, also)
			}
		}
		if strings.Count(said, "raw") != 2 ||
			!strings.Contains(said, "Written       full.draw*.csv (2 draws of what is missing)") {
			t.Error(said)
		}
	}
	for words, want := range map[string]string{
		"-draws 1001 -o x.csv":          "-draws 1001: must be at most 1000",
		"-draws 2 -o -":                 "-draws: needs an -o FILE",
		"-draws 2 -o x.csv -model m.qm": "-draws: they are of the samples of a fit",
	} {
		says(t, 2, "impute holes.csv "+words, want)
	}
}
