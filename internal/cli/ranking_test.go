package cli

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// compared is a comparison of losses by trial and mask, made by hand. Where relative is nil it is the losses.
// The mean alone has the losses far.
func compared(c *Comparison, losses, relative [][]float64) *Comparison {
	if c.Methods == nil {
		c.Methods = []string{"nmf"}
	}
	if relative == nil {
		relative = losses
	}
	p := make([]quantmf.Prediction, len(losses))
	for i, l := range losses {
		far := slices.Repeat([]float64{far}, len(l))
		p[i] = quantmf.Prediction{Losses: l, Relative: relative[i], Baseline: far, BaselineRelative: far}
	}
	c.Add(p)
	c.Choose()
	return c
}

const far = 99.0

// TestChoice: of losses made by hand, the smallest k within one paired standard error in both measures.
func TestChoice(t *testing.T) {
	t.Parallel()
	type losses = [][]float64
	three := func(l ...[]float64) losses { return l }
	for _, c := range []struct {
		name         string
		ks, ms       []int
		losses       losses
		relative     losses // nil for the same
		best, chosen int
		sure         float64 // at least; below 0 at most
		edges        string
	}{
		// Masks differ much, the two do not: the difference .01 is ± .0058, so 2 is worse.
		{"paired", []int{2, 4, 8}, nil, three([]float64{1.01, 2.02, 3.0}, []float64{1, 2, 3},
			[]float64{1.5, 2.5, 3.5}), nil, 1, 1, 0.5, ""},
		{"within", []int{2, 4, 8}, nil, three([]float64{1.1, 1.9, 3.05}, []float64{1, 2, 3},
			[]float64{1.5, 2.5, 3.5}), nil, 1, 0, 0.5,
			"-k 2 is the smallest that was tried: smaller ones may do as well"},
		{"within in one measure", []int{2, 4, 8}, nil, three([]float64{1.1, 1.9, 3.05}, []float64{1, 2, 3},
			[]float64{1.5, 2.5, 3.5}), three([]float64{1.1, 2.12, 3.1}, []float64{1, 2, 3},
			[]float64{1, 2, 3}), 1, 1, 0.3, ""},
		{"any order", []int{8, 4, 2}, nil, three([]float64{1.5, 2.5, 3.5}, []float64{1, 2, 3},
			[]float64{1.1, 1.9, 3.05}), nil, 1, 2, 0.5, "-k 2 is the smallest"},
		{"the largest", []int{1, 2}, nil, three([]float64{3, 3.1, 2.9}, []float64{1, 2, 1}), nil, 1, 1, 1,
			"the best, -k 2, is the largest that was tried: try larger ones"},
		{"one is the least there is", []int{1, 2}, nil, three([]float64{1, 1, 1}, []float64{2, 2, 2}), nil, 0,
			0,
			1, "^$"},
		{"as many as there can be", []int{5, 0}, nil, three([]float64{1, 1.2, 1.1}, []float64{1, 1, 1}), nil,
			1, 1, 0.5, "^$"},
		{"one alone", []int{5}, nil, three([]float64{1, 1.2, 1.1}), nil, 0, 0, 1, "^$"},
		{"levels", []int{3, 6}, []int{4, 8}, three([]float64{2, 2, 2}, []float64{1, 1.3, 1},
			[]float64{1.1, 1.1, 1.1}, []float64{0.9, 1.1, 1.1}), nil, 3, 1, 0.1, "-m 8, is the largest"},
		{"a toss", []int{2, 4}, nil, three([]float64{1, 3}, []float64{2, 1.9}), nil, 1, 0, -0.99, ""},
		{"no structure", []int{2, 4}, nil, three([]float64{99.1, 99.2}, []float64{120, 130}), nil, 2, 2, 0.9,
			"^$"},
	} {
		r := compared(&Comparison{Ks: c.ks, Ms: c.ms, Repeats: len(c.losses[0]), Seed: 1}, c.losses,
			c.relative)
		if r.Best != c.best || r.Chosen != c.chosen || c.sure >= 0 && r.SureChosen.Mean < c.sure ||
			c.sure < 0 && r.SureChosen.Mean > -c.sure {
			t.Errorf("%s: best %d, chosen %d, sure %.2f", c.name, r.Best, r.Chosen, r.SureChosen.Mean)
		}
		if rival := r.Rival != r.Chosen; rival != (r.SureChosen.Mean < 1) || rival != (r.RivalShare > 0) {
			t.Errorf("%s: the rival of %d is %d with %v", c.name, r.Chosen, r.Rival, r.RivalShare)
		}
		if got := strings.Join(r.Edges(), "; "); !regexp.MustCompile(c.edges).MatchString(got) {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := r.Verdict(); !strings.HasPrefix(got,
			r.Name(c.best)+" predicts hidden values best (about") ||
			strings.Contains(got, "is the smallest that is as good") != (c.best != c.chosen) ||
			strings.Contains(got, "k=2 is not: it is worse where every feature counts the same") !=
				(c.relative != nil) || strings.Contains(got, "No structure was found") !=
			(c.name == "no structure") {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// TestMethodsCompared: methods are told apart in table and names, the first of as good ones of the same size
// is taken, and a k of 0 is as many components as there can be.
func TestMethodsCompared(t *testing.T) {
	t.Parallel()
	r := compared(&Comparison{Methods: []string{"nmf", "bqmf"}, Ks: []int{4, 2}, Repeats: 2, Seed: 1},
		[][]float64{{4, 6}, {5, 5}, {4, 6}, {5, 4.5}}, nil)
	if r.Name(r.Best) != "bqmf, k=2" || r.Name(r.Chosen) != "nmf, k=2" {
		t.Errorf("best %s, chosen %s", r.Name(r.Best), r.Name(r.Chosen))
	}
	if got, want := r.Table(), "method\tk\tmean\tstderr\tworse\tworse_stderr\nmean\t0\t99\t0\t94.2\t0.25\n"+
		"nmf\t4\t5\t1\t0.25\t1.25\nnmf\t2\t5\t0\t0.25\t0.25\nbqmf\t4\t5\t1\t0.25\t1.25\nbqmf\t2\t"+
		"4.75\t0.25\t0\t0\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r = compared(&Comparison{Ks: []int{0, 7}, Repeats: 2}, [][]float64{{4, 5}, {5, 4.5}}, nil)
	if r.Name(r.Best) != "k=all" || r.Name(r.Chosen) != "k=7" {
		t.Errorf("best %s, chosen %s", r.Name(r.Best), r.Name(r.Chosen))
	}
	// Worse by just the standard error is within it.
	r = compared(&Comparison{Ks: []int{2, 7}, Repeats: 2}, [][]float64{{1, 3}, {1, 1}}, nil)
	if r.Best != 1 || r.Chosen != 0 {
		t.Errorf("best %d, chosen %d", r.Best, r.Chosen)
	}
}

// TestTexts: the table, with the paired standard errors of losses made by hand, and the verdict.
func TestTexts(t *testing.T) {
	t.Parallel()
	is := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	r := compared(&Comparison{Methods: []string{"bqmf"}, Ks: []int{3, 0}, Repeats: 3, Seed: 1},
		[][]float64{{4, 5, 9}, {4, 3, 8}}, nil) // the differences are 0, 2, 1: 1 ± 1/√3
	const head, alone = "mean\tstderr\tworse\tworse_stderr\n", "99\t0\t94\t1.53\n"
	is(r.Table(), "k\t"+head+"0\t"+alone+"3\t6\t1.53\t1\t0.577\nall\t5\t1.53\t0\t0\n")
	const others = ". Sure is how often other hidden values of this table would say the same; other tables " +
		"like it differ by more\n"
	r.SureBest.Mean, r.SureChosen.Mean = 0.81, 0.734
	is(r.Verdict(),
		"k=all predicts hidden values best (about 81 % sure). Take k=all (about 73 % sure)"+others)
	r.Chosen, r.SureChosen.Mean, r.Rival, r.RivalShare = 0, 0.52, 1, 0.4
	is(r.Verdict(), "k=all predicts hidden values best (about 81 % sure); k=3 is the smallest that is as "+
		"good (worse by 1 ± 0.58). It is a toss-up: about 52 % for k=3, 40 % for k=all"+others)
	r.Ms, r.Ks = []int{4, 8}, []int{3}
	is(r.Table(), "k\tm\t"+head+"0\t0\t"+alone+"3\t4\t6\t1.53\t1\t0.577\n3\t8\t5\t1.53\t0\t0\n")
	want := "Warning: the best, -m 8, is the largest that was tried: try larger " +
		"ones\nWarning: -m 4 is the smallest that was tried: smaller ones may do as well\n"
	if got := r.Verdict(); !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	one := compared(&Comparison{Ks: []int{3, 5}, Repeats: 1}, [][]float64{{4}, {5}}, nil)
	is(one.Verdict(), "k=3 predicts hidden values best. One repeat says nothing of chance: give more "+
		"-repeats\nWarning: -k 3 is the smallest that was tried: smaller ones may do as well\n")
	if mean, stdErr := one.Worse(1); mean != 1 || stdErr != 0 {
		t.Errorf("of one repeat %v ± %v", mean, stdErr)
	}
}

// made makes up the losses of masks of a table whose trials are ahead by so many deviations of a mask.
func made(src *rand.Rand, ahead ...float64) (p []quantmf.Prediction) {
	mask := 3 * src.ExpFloat64() // which all trials share
	for _, a := range ahead {
		l := []float64{9 + mask + a + src.NormFloat64()/math.Sqrt2}
		p = append(p, quantmf.Prediction{Losses: l, Relative: l, Baseline: []float64{far},
			BaselineRelative: []float64{far}})
	}
	return p
}

// tried is a comparison of k = 1, 2, ... by masks of such a table.
func tried(src *rand.Rand, repeats, cells int, ahead ...float64) *Comparison {
	c := &Comparison{Methods: []string{"nmf"}, Repeats: repeats, Seed: 1}
	for k := range ahead {
		c.Ks = append(c.Ks, k+1)
	}
	c.Run(cells, func(_, masks int) (p []quantmf.Prediction, err error) {
		p = make([]quantmf.Prediction, len(ahead))
		for range masks {
			for i, of := range made(src, ahead...) {
				p[i] = p[i].Join(of)
			}
		}
		return p, nil
	})
	return c
}

// TestTossUp: more masks are made while it is unsure which trial to take, up to a bound that the size of the
// matrix sets, and as many as were asked for where that is said.
func TestTossUp(t *testing.T) {
	t.Parallel()
	src := rand.New(rand.NewPCG(7, 12))
	for _, c := range []struct {
		repeats, cells int
		ahead          float64 // of k = 2
		least, most    int
	}{{0, 1, 9, 10, 10}, {0, 1, 0.01, 10, 640}, {0, 1 << 30, 0.01, 10, 10}, {0, 1 << 22, 0.01, 10, 10},
		{0, 1 << 17, 0.01, 10, 30}, {4, 1, 0.01, 4, 4}} {
		if got := tried(src, c.repeats, c.cells, c.ahead, 0).Masks(); got < c.least || got > c.most {
			t.Errorf("%+v: %d masks", c, got)
		}
	}
}

// TestOtherSets: made-up losses deviate by more than those of the masks, and the share of sets differs from
// one to another beyond chance.
func TestOtherSets(t *testing.T) {
	m := newMadeUp([][]float64{{0, 2}})
	m.fill([]int{0, 1}, []int{1, 1}) // a mean of 1, off by √2, and deviations of √2
	NearAll(t, m.made[0], []float64{1, 1 + 2*math.Sqrt2}, 1e-12, "losses")
	counts := make([]int, otherMeans)
	for i := range counts {
		counts[i] = 2 + i%2*4
	}
	s := shareOf(counts)
	Near(t, s.Mean, 0.5, 1e-12, "share")
	Near(t, s.StdErr, math.Sqrt(0.25*0.25-0.75*0.25/7), 1e-12, "standard error")
}

// TestSure: over many tables, what is said of other sets of masks comes true in them.
func TestSure(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("chooses a thousand times")
	}
	src := rand.New(rand.NewPCG(7, 11))
	type bin struct{ said, was, count float64 }
	bins := make([]bin, 2) // of shares from .5 and from .8 on
	for range 600 {
		ahead := []float64{0.4 * src.NormFloat64(), 0.4 * src.NormFloat64(), 0} // of trials, in deviations
		c := tried(src, 10, 1, ahead...)
		if said := c.SureChosen.Mean; said >= 0.5 {
			b := &bins[0]
			if said >= 0.8 {
				b = &bins[1]
			}
			b.said += said
			b.count++
			if tried(src, 10, 1, ahead...).Chosen == c.Chosen {
				b.was++
			}
		}
	}
	for _, b := range bins {
		if said, was := b.said/b.count, b.was/b.count; b.count < 80 || math.Abs(said-was) > 0.08 {
			t.Errorf("%.0f times %.2f was said, and it was so in %.2f", b.count, said, was)
		}
	}
}
