package quantmf

// Tests of QMF: the gradient of the whole loss; losses against the curves of the authors'
// code, which are of QMFQ too, and against NMF on real data; signed data; allocations.

import (
	"bytes"
	"encoding/json"
	stdmaps "maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestAuthorsCurves holds fits to the loss curves of the authors' code on the same
// matrices, from three seeds, at their ε and m and without shrinkage: below them
// at every number of epochs that is given there; and as low as they are after
// 1000 and 300 epochs in 60 and 30. Every transport converges. Without QUANTMF_LONG it is one seed, for 30
// and 60 epochs of QMF and 30 of QMFQ on the small matrices; under -short one fit.
func TestAuthorsCurves(t *testing.T) {
	const data = "../shared/data/toy/"
	text, err := os.ReadFile(data + "official.json")
	if err != nil {
		t.Skip("the curves are not here")
	}
	var all map[string]json.RawMessage
	OK(t, json.Unmarshal(text, &all))
	names, seeds, most := []string{"toy-std1", "toy-std2"}, 1, map[Method]int{MethodQMF: 60, MethodQMFQ: 30}
	if Long {
		names, seeds = append(names, "larger"), 3
		most = map[Method]int{MethodQMF: 1000, MethodQMFQ: 1000}
	} else if testing.Short() {
		names, most = names[:1], map[Method]int{MethodQMF: 30}
	}
	for _, name := range names {
		x := load(t, data+name+".tsv.gz")
		var curves map[string]json.RawMessage
		OK(t, json.Unmarshal(all[name], &curves))
		k := 0
		OK(t, json.Unmarshal(curves["k"], &k))
		for method, most := range most {
			theirs := map[int]float64{}
			OK(t, json.Unmarshal(curves[method.String()], &theirs))
			goals := map[int][]float64{} // ours by epochs
			for epochs, loss := range theirs {
				goals[epochs] = append(goals[epochs], loss)
			}
			opts := []FitOption{WithEpsilon(0.01), WithLevels(8)}
			if method == MethodQMF {
				opts = append(opts, WithShrinkage(0))
			}
			if method == MethodQMF && name != "larger" {
				goals[30] = append(goals[30], theirs[300])
				goals[60] = append(goals[60], theirs[1000])
			}
			if method == MethodQMFQ && name == "toy-std1" {
				goals[100] = append(goals[100], 0.12)
				goals[300] = append(goals[300], 0.1)
			}
			t.Run(name+"/"+method.String(), func(t *testing.T) {
				t.Parallel()
				for _, epochs := range slices.Sorted(stdmaps.Keys(goals)) {
					if epochs > most || epochs < 30 && !Long {
						continue
					}
					got := make([]float64, seeds)
					for seed := range got {
						m := Common(Fitted(t, By(method), x, k,
							append(opts, WithEpochs(epochs), WithSeed(uint64(seed+1)))...))
						if got[seed] = m.History[epochs]; method == MethodQMF && len(m.Warnings) > 0 {
							t.Errorf("%d warnings: %v", len(m.Warnings), m.Warnings[0])
						}
					}
					goal := slices.Min(goals[epochs])
					t.Logf("%4d epochs: %.4g, to be below %.4g", epochs, got, goal)
					if !(slices.Max(got) < goal) {
						t.Errorf("%d epochs: %v, want below %v", epochs, got, goal)
					}
				}
			})
		}
	}
}

// TestRealData holds QMF to be below NMF after 1000 multiplicative updates, on three whole
// matrices where QUANTMF_LONG is set. 1000 epochs of Newton's method end lower than that.
func TestRealData(t *testing.T) {
	if !Long {
		t.Skip("QUANTMF_LONG is not set: fits whole data sets")
	}
	for _, c := range []struct {
		path string
		k, m int
	}{{"testdata/laml-exp.tsv.gz", 10, 16}, {"../shared/data/tcga-cesc/methy.tsv.gz", 10, 16},
		{"../shared/data/golub-leukemia/exp.tsv.gz", 5, 8}} {
		t.Run(c.path, func(t *testing.T) {
			x := load(t, c.path)
			nmf := Fitted(t, FitNMF, x, c.k, WithEpochs(1000),
				WithUpdates(UpdatesMultiplicative))
			qmf := Fitted(t, FitQMF, x, c.k, WithLevels(c.m), WithShrinkage(0))
			a, b := nmf.History[1000], qmf.History[len(qmf.History)-1]
			t.Logf("%s, k=%d, m=%d: NMF %.5g, QMF %.5g", x.size(), c.k, c.m, a, b)
			if !(b < a) || len(qmf.Warnings) > 0 {
				t.Errorf("QMF %v, NMF %v, %d warnings", b, a, len(qmf.Warnings))
			}
		})
	}
}

// TestFitAllocations: an epoch allocates nothing once the fit is under way.
func TestFitAllocations(t *testing.T) {
	Slow(t)
	if transport.Invariants {
		t.Skip("the checks allocate")
	}
	x := first(toy(0), 12)
	held := WithValidation(0.1)
	for _, f := range []struct {
		method Method
		opts   []FitOption
		walks  float64 // allocations of an epoch that is kept
	}{
		{MethodQMF, []FitOption{WithStart(StartNMF)}, 0},
		{MethodQMF, []FitOption{WithPenalty(1), WithPatience(99), held}, 3},
		{MethodQMF, []FitOption{WithStart(StartUniform)}, 0},
		{MethodNMF, []FitOption{WithUpdates(UpdatesMultiplicative), held}, 3},
		{MethodNMF, nil, 0},
		{MethodNMF, []FitOption{held}, 3},
		{MethodNMF, []FitOption{WithLoss(Frobenius)}, 0},
		{MethodQMFQ, []FitOption{held, WithStart(StartUniform), WithProjection(KLUpdates(5))}, 3},
	} {
		fit := func(epochs, workers int) {
			Fitted(t, By(f.method), x, 4,
				append(f.opts, WithEpochs(epochs+3), WithWorkers(workers))...)
		}
		for workers := 1; workers <= 2; workers++ {
			few, many := allocations(1, func() { fit(2, workers) }),
				allocations(1, func() { fit(22, workers) })
			// AllocsPerRun leaves one processor to all, so what it counts of two workers is
			// theirs; stacks that grow later, by some in one run and not in another, are none of an epoch's:
			// one number an epoch would be twenty. An epoch that is kept takes three for its walk.
			if many > few+9+f.walks*20 {
				t.Errorf("%d workers: %v allocations for 2 epochs, %v for 22", workers, few, many)
			}
		}
	}
}

// TestStepsGrowNoFurther: where the rows hang together, one batch of them all makes steps of V
// that lead too far, each back beyond the one before, and the loss grows from epoch to epoch. The
// bounds of the steps stop that.
func TestStepsGrowNoFurther(t *testing.T) {
	type kind struct {
		seed uint64
		loss Loss
		k    int
	}
	for _, c := range some([]kind{{7, KL, 3}, {25, KL, 2}, {1, Frobenius, 5}, {7, Frobenius, 5}}, 0) {
		src := random.Split(c.seed, 30)
		x, z := NewMat(30, 150), Drawn(2, 150, func() float64 { return Normal(&src) })
		for i := range x.Rows {
			a, b, unit := Normal(&src), Normal(&src), math.Pow(10, 5*src.Float64()-2)
			for j := range x.Cols {
				x.Set(i, j, unit*math.Exp(.6*a*z.At(0, j)+.3*b*z.At(1, j)+.1*Normal(&src)))
			}
		}
		q := Fitted(t, FitQMF, x, c.k, WithEpochs(40), WithLoss(c.loss), WithShrinkage(0),
			WithStart(StartScores))
		least, last := slices.Min(q.History), q.History[len(q.History)-1]
		if last > 1.02*least {
			t.Errorf("seed %d, %v, rank %d: ends at %.4g, was at %.4g", c.seed, c.loss, c.k, last, least)
		}
	}
}

// TestManySamples: a fit of so many samples that they are condensed is that of half of them, each twice,
// whose fit is not: the two have the same sums. It has the same bits for any number of workers.
func TestManySamples(t *testing.T) {
	Slow(t)
	const d, half, k = 12, 2200, 3
	r := random.Split(17, 3)
	few, many := NewMat(d, half), NewMat(d, 2*half)
	u := Drawn(d, k, func() float64 { return 0.2 + r.Float64() })
	v, vv := Drawn(k, half, func() float64 { return math.Exp(Normal(&r)) }), NewMat(k, 2*half)
	uv := Times(u, v)
	for i := range d {
		for j, w := range uv.Row(i) {
			x := min(math.Floor(w*w*r.Float64()*float64(i%4)), 9)
			if r.IntN(9) == 0 {
				x = math.NaN()
			}
			few.Set(i, j, x)
			many.Set(i, j, x)
			many.Set(i, half+j, x)
		}
	}
	for c := range k {
		copy(vv.Row(c), v.Row(c))
		copy(vv.Row(c)[half:], v.Row(c))
	}
	for i := range u.Data {
		u.Data[i] *= 0.5 + r.Float64()
	}
	for _, batch := range []int{5, d} {
		opts := []FitOption{WithEpochs(4), WithShrinkage(0), WithBatch(batch), WithMissingValues()}
		want := Fitted(t, FitQMF, few, k, append(opts, WithInit(u, v))...)
		var bits []byte
		for _, workers := range []int{1, 3} {
			m := Fitted(t, FitQMF, many, k, append(opts, WithInit(u, vv), WithWorkers(workers))...)
			data := FileOf(t, m)
			if bits != nil && !bytes.Equal(data, bits) {
				t.Errorf("batches of %d: %d workers make another model", batch, workers)
			}
			bits = data
			// a visit of few samples solves to √ρ
			NearAll(t, m.History, want.History, 1e-6*want.History[0], "losses")
			NearAll(t, m.U.Data, want.U.Data, 1e-5, "U")
			NearAll(t, m.V.Row(1)[:half], want.V.Row(1), 1e-4, "V")
			NearAll(t, m.Quantiles.Data, want.Quantiles.Data, 1e-5*LargestOf(want.Quantiles.Data),
				"quantiles")
			NearAll(t, m.Weights.Data, want.Weights.Data, 1e-5, "weights")
			if exact, err := m.Loss(many); err != nil || math.Abs(exact-m.History[4]) > 1e-9*exact {
				t.Errorf("the loss is %v, the history ends with %v: %v", exact, m.History[4], err)
			}
		}
	}
}

// TestWhereAdamSteps: Adam steps U and V in the four cases that FitQMF names, which have epochs and a rate of
// their own.
func TestWhereAdamSteps(t *testing.T) {
	for _, c := range []struct {
		rank int
		opts []FitOption
		adam bool
	}{
		{5, nil, false}, {32, nil, false}, {33, nil, true}, {5, []FitOption{WithStart(StartUniform)}, true},
		{5, []FitOption{WithStart(StartNMF)}, false},
		{5, []FitOption{WithSquash(SquashNone)}, true}, {5, []FitOption{WithSquash(SquashArctan)}, false},
		{5, []FitOption{WithLoss(-0.5)}, false}, {5, []FitOption{WithLoss(-0.51)}, true},
	} {
		for _, given := range [][]FitOption{nil, {WithEpochs(7)}, {WithLearningRate(0.3)}} {
			config := qmfDefaults()
			for _, o := range append(given, c.opts...) {
				if problem := o.setting().check(&config); problem != "" {
					t.Fatal(problem)
				}
				config.given |= option.Of(o.setting().kind)
			}
			config.settleQMF(c.rank)
			epochs, rate := 4, 0.2
			if c.adam {
				epochs, rate = 20, 0.06
			}
			if config.Epochs == 7 {
				epochs = 7
			}
			if config.LearningRate == 0.3 {
				rate = 0.3
			}
			if config.Gaussian(c.rank) == c.adam || config.Epochs != epochs || config.LearningRate != rate ||
				(len(given) > 0) != (epochs == 7 || rate == 0.3) {
				t.Errorf("%+v: Adam %v, %d epochs, rate %v", c, !config.Gaussian(c.rank), config.Epochs,
					config.LearningRate)
			}
		}
	}
}
