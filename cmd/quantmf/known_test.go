package main

// This file tests what inspect and the page say of groups, numbers, survival and sets, and the flags of
// these.

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestKnown: a component that goes with a column, and a set that goes with a component, are found so by
// inspect, as JSON and on the page; the command of the model does not depend on them.
func TestKnown(t *testing.T) {
	t.Chdir(t.TempDir())
	var matrix, known, sets strings.Builder
	known.WriteString("sample,kind,age,days,died\n")
	for j := range 24 {
		fmt.Fprintf(&matrix, "\ts%d", j)
		fmt.Fprintf(&known, "s%d,%s,%d,%d,%d\n", j, []string{"low", "high"}[j/12], 40+j*5%24,
			200-6*j+j*7%24, (j+1)%4/2)
	}
	for i := range 20 {
		fmt.Fprintf(&matrix, "\ng%d", i)
		for j := range 24 {
			level := []int{10 + (i+j)%5, 1}[i/10]
			if j >= 12 {
				level = []int{1, 10 + (i*j)%5}[i/10]
			}
			fmt.Fprintf(&matrix, "\t%d", level+(3*i+j)%3)
		}
	}
	writeText(t, "x.tsv", matrix.String()+"\n")
	writeText(t, "known.csv", known.String())
	for s := range 2 {
		fmt.Fprintf(&sets, "set%d\tof ten", s)
		for i := range 10 {
			fmt.Fprintf(&sets, "\tg%d", 10*s+i)
		}
		sets.WriteString("\n")
	}
	writeText(t, "sets.gmt", sets.String()+"two\tof ten\tg1\tg2\n")
	flags := " -groups known.csv -survival days,died -sets sets.gmt "
	says(t, 0, "fit -method nmf -k 2 -o m.qmf -report one.html"+flags+"x.tsv", "sets.gmt: 1 set is left out")
	text, _ := quiet(t, 0, "inspect m.qmf x.tsv"+flags)
	page, _ := quiet(t, 0, "report -o - m.qmf x.tsv"+flags)
	Lacks(t, text, "known.csv", "days,died") // in the command of the model
	for _, told := range []string{text, page} {
		Has(t, told, "ε² 0.7", "most in high", "hazard × ")
	}
	out, _ := quiet(t, 0, "inspect -json m.qmf x.tsv"+flags)
	o := decoded[modelObject](t, out)
	if len(o.Tests) != 6 || len(o.Sets) != 4 || o.Tests[2].Kind != "survival" ||
		*o.Tests[2].Low > *o.Tests[2].Effect {
		t.Errorf("%+v, %+v", o.Tests, o.Sets)
	}
	for _, s := range o.Sets { // each component stands for one of the sets
		if *s.Above > 0.01 && *s.Above < 0.99 || *s.Q > 0.01 || s.Members != 10 {
			t.Errorf("%+v", s)
		}
	}
	writeText(t, "bad.gmt", "set\tg1\n")
	for _, c := range []saying{
		{"inspect m.qmf -sets sets.gmt", 2, "give MATRIX, too"},
		{"inspect m.qmf -by kind", 2, "give -groups, too"},
		{"inspect m.qmf -survival days,died", 2, "give -groups, too"},
		{"inspect m.qmf -groups known.csv -survival days", 2, "must be two headings"},
		{"inspect m.qmf -groups known.csv -by kind,,age", 2, "must be headings"},
		{"inspect m.qmf -groups known.csv -by sex", 3, `known.csv: there is no column "sex"`},
		{"inspect m.qmf x.tsv -sets bad.gmt", 3, "bad.gmt: line 1 is no set"},
		{"inspect m.qmf x.tsv -groups - -sets -", 2, "standard input can be read only once"},
		{"fit -k 2 -sets sets.gmt x.tsv", 2, "-sets: it says how the page looks: give -report, too"},
	} {
		says(t, c.code, c.args, c.says)
	}
}
