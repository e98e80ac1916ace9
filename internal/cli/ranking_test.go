package cli

import (
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestChoice: of losses made by hand, the smallest k within one paired standard error.
func TestChoice(t *testing.T) {
	type losses = []float64
	for _, c := range []struct {
		name         string
		ks, ms       []int
		losses       []losses
		best, chosen int
		sure         float64 // at least; below 0 at most
		edges        string
	}{
		// Masks differ much, the two do not: the difference .01 is ± .0058, so 2 is worse.
		{"paired", []int{2, 4, 8}, nil, []losses{{1.01, 2.02, 3.0}, {1, 2, 3}, {1.5, 2.5, 3.5}}, 1, 1, 0.5,
			""},
		{"within", []int{2, 4, 8}, nil, []losses{{1.1, 1.9, 3.05}, {1, 2, 3}, {1.5, 2.5, 3.5}}, 1, 0, 0.5,
			"-k 2 is the smallest that was tried: smaller ones may do as well"},
		{"any order", []int{8, 4, 2}, nil, []losses{{1.5, 2.5, 3.5}, {1, 2, 3}, {1.1, 1.9, 3.05}}, 1, 2, 0.5,
			"-k 2 is the smallest"},
		{"the largest", []int{1, 2}, nil, []losses{{3, 3.1, 2.9}, {1, 2, 1}}, 1, 1, 1,
			"the best, -k 2, is the largest that was tried: try larger ones"},
		{"one is the least there is", []int{1, 2}, nil, []losses{{1, 1, 1}, {2, 2, 2}}, 0, 0, 1, "^$"},
		{"as many as there can be", []int{5, 0}, nil, []losses{{1, 1.2, 1.1}, {1, 1, 1}}, 1, 1, 0.5, "^$"},
		{"one alone", []int{5}, nil, []losses{{1, 1.2, 1.1}}, 0, 0, 1, "^$"},
		{"levels", []int{3, 6}, []int{4, 8},
			[]losses{{2, 2, 2}, {1, 1.3, 1}, {1.1, 1.1, 1.1}, {0.9, 1.1, 1.1}}, 3, 1, 0.1,
			"-m 8, is the largest"},
		{"a toss", []int{2, 4}, nil, []losses{{1, 3}, {2, 1.9}}, 1, 0, -0.99, ""},
	} {
		r := &Comparison{Ks: c.ks, Ms: c.ms, Repeats: len(c.losses[0]), Seed: 1}
		for _, l := range c.losses {
			sum := 0.0
			for _, v := range l {
				sum += v
			}
			r.Got = append(r.Got, quantmf.Prediction{Mean: sum / float64(len(l)), Losses: l})
		}
		r.Choose()
		if r.Best != c.best || r.Chosen != c.chosen || c.sure >= 0 && r.Sure < c.sure || c.sure < 0 &&
			r.Sure > -c.sure {
			t.Errorf("%s: best %d, chosen %d, sure %.2f", c.name, r.Best, r.Chosen, r.Sure)
		}
		if got := strings.Join(r.Edges(), "; "); !regexp.MustCompile(c.edges).MatchString(got) {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := r.Verdict(); !strings.HasPrefix(got, r.Name(c.best)+" predicts hidden cells best") ||
			strings.Contains(got, "is the smallest within one") != (c.best != c.chosen) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// TestTexts: the table, with the paired standard errors of losses made by hand, and the verdict.
func TestTexts(t *testing.T) {
	r := &Comparison{Ks: []int{3, 0}, Repeats: 3, Seed: 1,
		Got: []quantmf.Prediction{quantmf.PredictionOf([]float64{4, 5, 9}),
			quantmf.PredictionOf([]float64{4, 3, 8})}}
	r.Choose() // the differences are 0, 2, 1: 1 ± 1/√3
	if got, want := r.Table(),
		"k\tmean\tstderr\tworse\tworse_stderr\n3\t6\t1.53\t1\t0.577\n0\t5\t1.53\t0\t0\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Sure = 0.734
	want := "k=0 predicts hidden cells best. Take k=0: about 73 % of other sets of 3 masks would " +
		"choose it. " +
		"Standard errors speak of other hidden cells of this table; other tables like it differ by more\n"
	if got := r.Verdict(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Ms, r.Ks, r.Chosen = []int{4, 8}, []int{3}, 0
	want = "k\tm\tmean\tstderr\tworse\tworse_stderr\n3\t4\t6\t1.53\t1\t0.577\n3\t8\t5\t1.53\t0\t0\n"
	if got := r.Table(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := r.Verdict(),
		"k=3, m=8 predicts hidden cells best; k=3, m=4 is the smallest within one standard error of it "+
			"(worse by 1 ± 0.58). Take k=3, m=4: about 73 % of other sets of 3 masks would choose it. "+
			"Standard errors speak of other hidden cells of this table; other tables like it differ "+
			"by more\n"+
			"Warning: the best, -m 8, is the largest that was tried: try larger ones\nWarning: -m 4 is the "+
			"smallest that was tried: smaller ones may do as well\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	one := &Comparison{Ks: []int{3, 5}, Repeats: 1,
		Got: []quantmf.Prediction{quantmf.PredictionOf([]float64{4}), quantmf.PredictionOf([]float64{5})}}
	one.Choose()
	if got, want := one.Verdict(),
		"k=3 predicts hidden cells best. One repeat says nothing of chance: give more -repeats\nWarning: "+
			"-k 3 is the smallest that was tried: smaller ones may do as well\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if mean, stdErr := one.Worse(1); mean != 1 || stdErr != 0 {
		t.Errorf("of one repeat %v ± %v", mean, stdErr)
	}
	// A k of 0 is as many as there can be: a smaller one that is as good is taken.
	r = &Comparison{Ks: []int{0, 7}, Repeats: 2,
		Got: []quantmf.Prediction{quantmf.PredictionOf([]float64{4, 5}),
			quantmf.PredictionOf([]float64{5, 4.5})}}
	if r.Choose(); r.Best != 0 || r.Chosen != 1 {
		t.Errorf("best %d, chosen %d", r.Best, r.Chosen)
	}
	// Worse by just the standard error is within it.
	r = &Comparison{Ks: []int{2, 7}, Repeats: 2,
		Got: []quantmf.Prediction{quantmf.PredictionOf([]float64{1, 3}),
			quantmf.PredictionOf([]float64{1, 1})}}
	if r.Choose(); r.Best != 1 || r.Chosen != 0 {
		t.Errorf("best %d, chosen %d", r.Best, r.Chosen)
	}
}

// TestSure: over many tables, what is said of other sets of masks comes true in them.
func TestSure(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("chooses 2400 times")
	}
	src := rand.New(rand.NewPCG(7, 11))
	type bin struct{ said, was, count float64 }
	bins := make([]bin, 5) // of shares from .5 on
	for range 1200 {
		ahead := [3]float64{0.4 * src.NormFloat64(), 0.4 * src.NormFloat64()} // of trials, in deviations
		choose := func() *Comparison {
			c := &Comparison{Ks: []int{1, 2, 3}, Repeats: 10, Seed: 1}
			losses := make([][]float64, 3)
			for range c.Repeats {
				mask := 3 * src.ExpFloat64() // which all trials share
				for i := range losses {
					losses[i] = append(losses[i], 9+mask+ahead[i]+src.NormFloat64()/math.Sqrt2)
				}
			}
			for _, l := range losses {
				c.Got = append(c.Got, quantmf.PredictionOf(l))
			}
			c.Choose()
			return c
		}
		c, again := choose(), choose()
		if b := int(10*c.Sure) - 5; b >= 0 {
			bins[min(b, 4)].said += c.Sure
			bins[min(b, 4)].count++
			if again.Chosen == c.Chosen {
				bins[min(b, 4)].was++
			}
		}
	}
	for _, b := range bins {
		if said, was := b.said/b.count, b.was/b.count; b.count < 80 || math.Abs(said-was) > 0.08 {
			t.Errorf("%.0f times %.2f was said, and it was so in %.2f", b.count, said, was)
		}
	}
}
