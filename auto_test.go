package quantmf_test

// This file tests the choice of a method: who is tried, that the best is taken, that its fit takes what the
// trials have chosen, and that hidden cells and workers change nothing.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// mixed is a d × n matrix of three components with noise, bent by a power of each row where bent is true.
func mixed(d, n int, bent bool) Mat {
	src := rand.New(rand.NewPCG(3, 1))
	v, x := Drawn(3, n, src.ExpFloat64), NewMat(d, n)
	for i := range d {
		power := 1.0
		if bent {
			power = math.Exp(1.2 * src.NormFloat64())
		}
		u := [3]float64{src.ExpFloat64(), src.ExpFloat64(), src.ExpFloat64()}
		for j := range n {
			w := 0.0
			for c, a := range u {
				w += a * v.At(c, j)
			}
			x.Set(i, j, math.Pow(w/3, power)*math.Exp(0.1*src.NormFloat64()))
		}
	}
	return x
}

// TestCandidates: rank, options and the numbers of x say which methods are tried; what none takes is an
// error.
func TestCandidates(t *testing.T) {
	t.Parallel()
	x := mixed(6, 5, false)
	signed, holed := x.Clone(), x.Clone()
	signed.Data[3] = -1
	holed.Data[3] = math.NaN()
	const nmf, qmf, bqmf = MethodNMF, MethodQMF, MethodBQMF
	type options = []FitOption
	frobenius := WithLoss(Frobenius)
	for name, c := range map[string]struct {
		x     Mat
		rank  int
		opts  options
		want  []Method
		wrong string // the option of the error, "x" for data
	}{
		"parts":      {x, 2, nil, []Method{nmf, qmf}, ""},
		"prediction": {x, 0, nil, []Method{nmf, qmf, bqmf}, ""},
		"levels":     {x, 2, options{WithLevels(4)}, []Method{qmf}, ""},
		"updates": {x, 0, options{WithUpdates(UpdatesNewton)},
			[]Method{nmf}, ""},
		"a loss": {x, 0, options{WithLoss(Beta(0))}, []Method{nmf, qmf},
			""},
		"signed":               {signed, 2, options{frobenius}, []Method{qmf}, ""},
		"signed, prediction":   {signed, 0, options{frobenius}, []Method{qmf, bqmf}, ""},
		"signed, nothing said": {signed, 0, nil, []Method{bqmf}, ""},
		"signed under KL":      {signed, 2, nil, nil, "x"},
		"holes":                {holed, 2, nil, nil, "x"},
		"holes, said": {holed, 2, options{WithMissingValues()}, []Method{nmf, qmf},
			""},
		"rank":       {x, -1, nil, nil, "rank"},
		"projection": {x, 2, options{WithProjection(KLUpdates(3))}, nil, "WithProjection"},
		"init": {x, 2, options{WithInit(NewMat(6, 2), NewMat(2, 5))}, nil,
			"WithInit"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Candidates(c.x, c.rank, c.opts...)
			var option *OptionError
			var data *DataError
			switch {
			case c.wrong == "x" && !errors.As(err, &data),
				c.wrong != "" && c.wrong != "x" && !(errors.As(err, &option) && option.Option == c.wrong),
				c.wrong == "" && err != nil, len(got) != len(c.want):
				t.Fatalf("%v, %v", got, err)
			}
			for i, m := range c.want {
				if got[i].Method != m || m == bqmf && got[i].Rank != 0 || c.rank == 0 && m != bqmf &&
					got[i].Rank != 4 || c.rank > 0 && got[i].Rank != c.rank {
					t.Errorf("%v", got)
				}
			}
			if need, err := MemoryOf(MethodAuto, 6, 5, c.rank, c.opts...); (err != nil) !=
				(c.wrong != "" && c.wrong != "x") || err == nil && need.Fit <= 0 {
				t.Errorf("memory %v, %v", need, err)
			}
		})
	}
	if _, err := Choose(t.Context(), x, nil, nil); err == nil {
		t.Error("a choice of none")
	}
}

// TestAuto: lines are fitted by NMF and bent rows by QMF; the model is that of the choice, for any number of
// workers, and a QMF begins as the trials say, without a choice of its own. Two masks leave it open which of
// two numbers of components is better: two more follow, and no others.
func TestAuto(t *testing.T) {
	t.Parallel()
	Slow(t)
	told := 0
	close := []Candidate{{Method: MethodNMF, Rank: 7}, {Method: MethodNMF, Rank: 8}}
	Must(Choose(t.Context(), mixed(100, 120, false), close, func(int, int) error {
		told++
		return nil
	}))(t)
	if told != 2*4+1 {
		t.Errorf("two numbers of components: told %d times", told)
	}
	for name, want := range map[string]Method{"lines": MethodNMF, "bent": MethodQMF} {
		const seed = 3 // most of the trials of the bent rows begin alike
		x := mixed(40, 60, name == "bent")
		candidates := Must(Candidates(x, 3, WithSeed(seed)))(t)
		last, told := 0, 0
		choice := Must(Choose(t.Context(), x, candidates, func(done, all int) error {
			last, told = all-done, told+1
			return nil
		}))(t)
		masks := len(choice.Trials[0].Losses)
		if got := candidates[choice.Best].Method; got != want || last != 0 || told != 2*masks+1 {
			t.Errorf("%s: %v, %d of %d fits left", name, got, last, told)
		}
		if name == "lines" {
			continue
		}
		trials := make([]Trial, 2)
		for i, c := range candidates {
			trials[i] = Trial{Rank: i, Options: c.Options}
		}
		again := Hidden(t, x, func(ctx context.Context, x Rows, i int,
			o ...FitOption) (Model, error) {
			return Fit(ctx, candidates[i].Method, x, 3, o...)
		}, trials, Masks{Repeats: masks, Seed: seed})
		for i, p := range again {
			if p.Mean != choice.Trials[i].Mean || p.StdErr != choice.Trials[i].StdErr {
				t.Errorf("%s: trial %d has %v, HeldOut %v", name, i, choice.Trials[i].Mean, p.Mean)
			}
		}
		best, other := again[choice.Best], again[1-choice.Best]
		worse, stdErr := other.Worse(best)
		if share := other.Mean/best.Mean - 1; math.Abs(worse-share) > 0.1*share || !(stdErr > 0) {
			t.Errorf("%s: worse by %v ± %v, of the means by %v", name, worse, stdErr, share)
		}
		explained, _ := again[choice.Best].Explained()
		Near(t, explained, 1-again[choice.Best].Mean/Mean(again[0].Baseline), 1e-2,
			"%s: explained, of the means", name)
		model := Must(choice.Fit(t.Context(), x))(t).(*QMF)
		file := FileOf(t, model)
		three := Fitted(t, By(MethodAuto), x, 3, WithSeed(seed), WithWorkers(3))
		if data := FileOf(t, three); string(data) != string(file) {
			t.Errorf("%s: another model by three workers", name)
		}
		starts, lock := map[string]int{}, sync.Mutex{}
		says := func(m *QMF) string { return fmt.Sprint(m.Start, m.Shrinkage, m.Line, len(m.History) == 1) }
		Hidden(t, x, func(ctx context.Context, x Rows, i int, o ...FitOption) (Model, error) {
			m, err := FitQMF(ctx, x, 3, o...)
			lock.Lock()
			defer lock.Unlock()
			starts[says(m)]++
			return m, err
		}, trials[choice.Best:], Masks{Repeats: masks, Seed: seed})
		if 2*starts[says(model)] <= masks {
			t.Errorf("%s: a start of %s, those of the trials are %v", name, says(model), starts)
		}
	}
}

// TestAutoByRows: where one row of chance has most of the loss, and NMF has less of it, QMF is taken for it
// predicts most other rows better; not where the losses are clear.
func TestAutoByRows(t *testing.T) {
	t.Parallel()
	Slow(t)
	for seed, want := range map[uint64]Method{7: MethodQMF, 8: MethodNMF} {
		x, src := mixed(40, 60, true), rand.New(rand.NewPCG(seed, 9))
		for j := range x.Row(0) {
			x.Set(0, j, 300*math.Exp(2*src.NormFloat64()))
		}
		candidates := Must(Candidates(x, 3, WithSeed(3)))(t)
		choice := Must(Choose(t.Context(), x, candidates, nil))(t)
		nmf, qmf := choice.Trials[0], choice.Trials[1]
		worse, stdErr := qmf.Worse(nmf)
		best, open := candidates[choice.Best].Method, worse < 3*stdErr
		if worse < 0 || open != (want == MethodQMF) || best != want {
			t.Errorf("%v, where QMF is %v ± %v worse", best, worse, stdErr)
		}
	}
}

// TestAutoStops: of a matrix too small to hide cells NMF is taken; an error of told and a context end a
// choice.
func TestAutoStops(t *testing.T) {
	t.Parallel()
	small := Must(MatOf([]float64{1, 2}, []float64{3, 4}))(t)
	if m, err := Fit(t.Context(), MethodAuto, small, 1); err != nil {
		t.Error(err)
	} else if _, is := m.(*NMF); !is {
		t.Errorf("%T", m)
	}
	x := mixed(10, 12, false)
	candidates := Must(Candidates(x, 2))(t)
	stop := errors.New("stop")
	for _, at := range []int{0, 3} {
		if _, err := Choose(t.Context(), x, candidates, func(done, _ int) error {
			if done == at {
				return stop
			}
			return nil
		}); !errors.Is(err, stop) {
			t.Errorf("at %d: %v", at, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if m, err := Fit(ctx, MethodAuto, x, 2); !errors.Is(err, context.Canceled) || m != nil {
		t.Errorf("%v, %v", m, err)
	}
}

// TestPart: of a large matrix some rows and columns are taken, from the first on at equal distances, as
// MemoryOfChoice counts them. It counts as many fits as there are: more of a matrix of few observed cells.
func TestPart(t *testing.T) {
	t.Parallel()
	at := func(d, n int) int64 {
		return Must(MemoryOfPart(d, n, 1<<20, []Candidate{{Method: MethodNMF, Rank: 2}}))(t)
	}
	for _, c := range [][4]int{{4000, 500, 2097, 500}, {100, 100000, 100, 10485}, {1 << 20, 2, 1 << 19, 2},
		{1000, 1 << 22, 500, 2097}} {
		if large, part := at(c[0], c[1]), at(c[2], c[3]); large != part {
			t.Errorf("%v: %d bytes, of the part %d", c, large, part)
		}
	}
	x := NewMat(100, 300)
	candidates := []Candidate{{Method: MethodNMF, Rank: 2, Options: []FitOption{WithWorkers(9)}}}
	one := Must(MemoryOfChoice(x, candidates))(t)
	for i := range x.Data {
		if i%9 > 0 {
			x.Data[i] = math.NaN()
		}
	}
	if nine := Must(MemoryOfChoice(x, candidates))(t); nine < 4*one || nine > 9*one {
		t.Errorf("%d bytes of all cells, %d of a ninth of them", one, nine)
	}
}
