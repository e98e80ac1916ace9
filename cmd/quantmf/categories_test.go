package main

// This file tests "quantmf impute -categories": a table of numbers and words goes through whole.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestImputeCategories(t *testing.T) {
	t.Chdir(t.TempDir())
	src := rand.New(rand.NewPCG(3, 4))
	truth, text := map[string]string{}, "id,sex,a,b,stage,c,d,e\n"
	for j := range 90 {
		latent := src.NormFloat64()
		number := func() string { return fmt.Sprintf("%.3f", 5+latent+src.NormFloat64()/4) }
		sex, stage := "f", []string{"I", "II", "III"}[min(max(int(latent+1.5), 0), 2)]
		if latent > 0 {
			sex = "m"
		}
		name := fmt.Sprintf("p%d", j)
		truth[name] = sex + " " + stage
		switch {
		case j%5 == 0:
			sex = ""
		case j%5 == 1:
			stage = "NA"
		}
		score := fmt.Sprintf("%.0f", 10*latent)
		if j%5 == 2 {
			score = ""
		}
		text += strings.Join([]string{name, sex, number(), number(), stage, number(), number(), score},
			",") + "\n"
	}
	writeText(t, "clinic.csv", text)
	object, said := quiet(t, 0, "impute -transpose -categories auto clinic.csv -o full.csv -draws 1 -json "+
		"-discrete sex,a -probabilities p.tsv -interval 0.8 -checks 2")
	Has(t, said, "2 features of words, as 4 rows of 0 and 1", "Filled        54 values",
		"of their feature is right in")
	o := decoded[imputeObject](t, object)
	if len(o.Categories) != 2 {
		t.Fatal(object)
	}
	if c := o.Categories[0]; c.Name != "sex" || strings.Join(c.Words, " ") != "f m" || c.Missing != 18 ||
		c.Right <= c.Frequent || c.Right > c.Checked {
		t.Errorf("-json has %+v", c)
	}
	for file, least := range map[string]int{"full.csv": 150, "full.draw1.csv": 140} {
		rows, right := lines(t, file, ","), 0
		for j, name := range rows["feature"] {
			want := strings.Fields(truth[name])
			for k, feature := range []string{"sex", "stage"} {
				if rows[feature][j] == want[k] {
					right++
				}
			}
		}
		if t.Log(file, right); right < least || len(rows) != 8 {
			t.Errorf("%s: %d of 180 words are right, wanted %d", file, right, least)
		}
	}
	lower := lines(t, "full.lower.csv", ",")
	p := lines(t, "p.tsv", "\t")
	if !strings.Contains(strings.Join(lower["e"], ""), ".") {
		t.Error("-discrete does not overrule what the values of e show")
	}
	for j := range lower["feature"] {
		if missing := lower["sex"][j] == ""; missing != (j%5 == 0) {
			t.Errorf("sample %d: an end of an interval is %q", j, lower["sex"][j])
		}
		sum := 0.0
		for _, word := range []string{"stage=I", "stage=II", "stage=III", "sex=f", "sex=m"} {
			var v float64
			fmt.Sscan(p[word][j], &v)
			sum += v
		}
		if sum < 1.999 || sum > 2.001 {
			t.Errorf("sample %d: probabilities sum to %v", j, sum)
		}
	}
	for words, want := range map[string]string{
		"-categories stadium -o x.csv":                  `-categories "stadium": there is no such feature`,
		"-categories auto -o x.npy":                     "-categories: npy holds no words",
		"-categories auto -o x.csv -model m":            "-categories: a -model does not have the words",
		"-categories auto -discrete b,stadium -o x.csv": `-discrete "stadium": there is no such feature`,
		"-probabilities p.tsv -o x.csv":                 "-probabilities: they are of the words",
		"-o x.csv":                                      "cells hold words where numbers should stand",
	} {
		code := 2
		if strings.HasPrefix(want, `-categories "`) || strings.HasPrefix(want, "cells") {
			code = 3
		}
		says(t, code, "impute -transpose clinic.csv "+words, want)
	}
}

// lines are the cells of a text behind the first of each line.
func lines(t *testing.T, file, sep string) map[string][]string {
	t.Helper()
	cells := map[string][]string{}
	for line := range strings.Lines(textOf(t, file)) {
		of := strings.Split(strings.TrimSuffix(line, "\n"), sep)
		cells[of[0]] = of[1:]
	}
	return cells
}
