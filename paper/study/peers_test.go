package main

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/report"
)

// The parts of the page between its marks are equal to the texts that are made from the results, and its
// picture is there.
func TestPageShowsPeers(t *testing.T) {
	r, err := readPeers()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Fill(string(page), "paper/study", peersParts(r))
	if err != nil {
		t.Fatal(err)
	}
	if d := report.Difference(string(page), want); d != "" {
		t.Fatalf("the page is not what go run . peerspage writes: %s", d)
	}
	if strings.Contains(want, "NaN") || strings.Contains(want, "%!") || strings.Contains(want, "Inf") {
		t.Error("the page has a NaN or a value that was not formatted")
	}
	compared := map[string]int{}
	for i := range r.Tables {
		one := &r.Tables[i]
		if one.of().alone {
			continue
		}
		compared[one.of().kind]++
		for _, m := range append([]string{"BQMF"}, singles...) {
			if one.method(m) == nil && !slices.Contains(external[5:], m) { // which were run on some
				t.Errorf("%s has nothing of %s", one.Key, m)
			}
		}
		if b := one.method("BQMF"); len(b.KL) != r.Masks || r.Masks < 3 {
			t.Errorf("%s has %d masks of BQMF", one.Key, len(b.KL))
		}
		before := one.Methods[0].KL[0]
		one.Methods[0].KL[0] *= 3
		if other, _ := report.Fill(want, "paper/study", peersParts(r)); other == want {
			t.Errorf("the page does not follow %s", one.Key)
		}
		one.Methods[0].KL[0] = before
	}
	if len(compared) < 5 {
		t.Errorf("tables of the kinds %v", compared)
	}
	picture, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
		t.Error(err)
	}
}

// The README says between which shares of softImpute's divergence BQMF's lies.
func TestReadmeShowsPeers(t *testing.T) {
	r, err := readPeers()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]float64{}
	for _, one := range compare(r).all {
		b, o, _ := kl.both(one, "BQMF", "softImpute")
		group := "omics and counts"
		switch {
		case !one.of().wide:
			group = "small"
		case one.Key == "orl":
			group = "faces"
		}
		groups[group] = append(groups[group], 100*b/o)
	}
	of := func(group string) (least, most float64) {
		return slices.Min(groups[group]),
			slices.Max(groups[group])
	}
	a, b := of("omics and counts")
	c, d := of("small")
	want := fmt.Sprintf("%.0f to %.0f %% of its loss on omics and counts, %.0f to %.0f %% on small tables",
		a, b, c, d)
	if !strings.Contains(string(readme), want) || len(groups["small"]) != 4 ||
		len(groups["omics and counts"]) != 7 {
		t.Errorf("README.md does not say: %s", want)
	}
}

// A value without mass is within an interval or not. Of a value with mass, the part within counts.
func TestWithin(t *testing.T) {
	for _, c := range []struct{ below, upTo, level, want float64 }{
		{0.3, 0.3, 0.5, 1}, {0.2, 0.2, 0.5, 0}, {0.1, 0.1, 0.8, 1}, {0, 0.5, 0.5, 0.5}, {0, 1, 0.8, 0.8},
		{0.3, 0.6, 0.5, 1}, {0.8, 0.9, 0.5, 0}, {0.7, 0.8, 0.5, 0.5},
	} {
		if got := within(c.below, c.upTo, c.level); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("from %g to %g at %g: %g, want %g", c.below, c.upTo, c.level, got, c.want)
		}
	}
}

func TestSpearman(t *testing.T) {
	for _, c := range []struct {
		truth, said []float64
		want        float64
		varies      bool
	}{
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 4, 9, 16, 25}, 1, true},
		{[]float64{1, 2, 3, 4, 5}, []float64{5, 4, 3, 2, 1}, -1, true},
		{[]float64{1, 2, 3, 4, 5}, []float64{7, 7, 7, 7, 7}, 0, true},
		{[]float64{3, 3, 3, 3, 3}, []float64{1, 2, 3, 4, 5}, 0, false},
		{[]float64{1, 2, 3}, []float64{1, 2, 3}, 0, false},
		{[]float64{1, 2, 3, 4, 5}, []float64{2, 1, 4, 3, 5}, 0.8, true}, // 1 - 6·4/(5·24)
	} {
		if got, varies := spearman(c.truth, c.said); math.Abs(got-c.want) > 1e-12 || varies != c.varies {
			t.Errorf("%v, %v: %g, want %g", c.truth, c.said, got, c.want)
		}
	}
}

// Only hidden cells count, and a prediction of 0 is raised to the best of the floors.
func TestScore(t *testing.T) {
	nan := math.NaN()
	x, _ := quantmf.MatOf([]float64{2, 4, 6}, []float64{1, 1, 4})
	mask, _ := quantmf.MatOf([]float64{nan, 4, 6}, []float64{1, 1, nan})
	fit, _ := quantmf.MatOf([]float64{0, 99, 99}, []float64{99, 99, 5})
	p := &problem{x: x, mask: mask, means: []float64{5, 1}}
	o := p.score(fit, true)
	// The first is best at a fifth of the mean of its row, 1: 2 log 2 - 1; the second is 4 log 4/5 + 1.
	if want := (2*math.Ln2 - 1 + 4*math.Log(0.8) + 1) / 2; math.Abs(o.KL-want) > 1e-15 || o.Absolute != 1.5 ||
		o.Hidden != 2 {
		t.Errorf("%+v, want a divergence of %g", o, want)
	}
	if o := p.score(fit, false); !(o.KL > 60) { // 2 log(2/5e-30) - 2, halved
		t.Errorf("without floors the divergence is %g", o.KL)
	}
	// A method has the best setting for each measure.
	run := []outcome{{Setting: "a", KL: 1, Absolute: 3, Rank: 0.1},
		{Setting: "b", KL: 2, Absolute: 1, Rank: 0.2}, {Setting: "c", KL: 3, Absolute: 2, Rank: 0.3}}
	if got := strings.Join(bestSettings(run), ""); got != "abc" {
		t.Errorf("best settings %s", got)
	}
}
