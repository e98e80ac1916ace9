package quantmf_test

// This file tests random fits: random options of random models over random matrices of many kinds.

import (
	"bytes"
	"flag"
	"hash/fnv"
	"math"
	"testing"

	. "github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/random"
)

var randomFits = flag.Int("fits", 45, "how many fits TestRandomFits makes")

// TestRandomFits: a fit of finite numbers has finite numbers, what cannot be fitted is an error of one of the
// package's types, nothing panics, and another holder and other workers make the same file. .ci/night makes
// thousands on several platforms, and compares the hashes that are logged.
func TestRandomFits(t *testing.T) {
	h, fitted := fnv.New64a(), 0
	if testing.Short() {
		*randomFits = min(*randomFits, 16)
	}
	for seed := range *randomFits {
		src := random.Split(61, seed)
		x, name := randomMatrix(&src)
		method, k := Method(src.IntN(4)), 1+src.IntN(5)
		opts := randomOptions(&src, method)
		before := x.Clone()
		m, err := Fit(t.Context(), method, x, k, append(opts, WithWorkers(1))...)
		if !SameBits(x.Data, before.Data) {
			t.Fatalf("fit %d, %v of %s: x has changed", seed, method, name)
		}
		if err != nil {
			if !Typed(err) {
				t.Errorf("fit %d, %v of %s, %d × %d: %v", seed, method, name, x.Rows, x.Cols, err)
			}
			continue
		}
		fitted++
		for i, v := range Numbers(t, m, x) {
			if j := NotFinite(v); j >= 0 &&
				!(v[j] != v[j] && len(v) == len(x.Data) && x.Data[j] != x.Data[j]) {
				t.Errorf("fit %d, %v of %s, %d × %d: numbers %d: entry %d is %v", seed, method, name, x.Rows,
					x.Cols, i, j, v[j])
			}
		}
		b := FileOf(t, m)
		h.Write(b)
		var y Rows = SparseOf[float64](t, x)
		if seed%2 == 0 {
			y = struct{ Rows }{x}
		}
		other, err := Fit(t.Context(), method, y, k, append(opts, WithWorkers(3))...)
		if err != nil || !bytes.Equal(FileOf(t, other), b) {
			t.Errorf("fit %d, %v of %s, %d × %d, %T: another model: %v", seed, method, name, x.Rows, x.Cols,
				y, err)
		}
	}
	if t.Logf("%d of %d fits, hash %016x", fitted, *randomFits, h.Sum64()); fitted < *randomFits/2 {
		t.Errorf("only %d of %d can be fitted", fitted, *randomFits)
	}
}

// randomMatrix draws sizes, a kind and numbers that are the same on every platform.
func randomMatrix(src *random.Source) (x Mat, kind string) {
	sizes := [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 50}, {50, 1}, {3, 7}, {7, 3}, {9, 33}, {33, 9},
		{40, 40},
		{5, 120}, {20, 60}, {12, 12}, {65, 9}, {2, 1100}}
	size := sizes[src.IntN(len(sizes))]
	unit, coarse := math.Ldexp(1, src.IntN(300)-150), 1+src.IntN(1000)
	kinds := []struct {
		name string
		of   func(i, j int) float64
	}{
		{"uniform", func(_, _ int) float64 { return float64(src.IntN(1<<20)) / 1024 }},
		{"wide", func(_, _ int) float64 { return math.Ldexp(float64(1+src.IntN(1000)), src.IntN(40)-20) }},
		{"counts", func(_, _ int) float64 { return float64(src.IntN(4) * src.IntN(4) * src.IntN(coarse)) }},
		{"mostly zero", func(_, _ int) float64 { return float64(src.IntN(20) / 18 * (1 + src.IntN(9))) }},
		{"constant", func(_, _ int) float64 { return 7 }},
		{"constant rows", func(i, j int) float64 { return float64(i%3 + j*(i%4)) }},
		{"two values", func(_, _ int) float64 { return float64(src.IntN(2)) }},
		{"subnormal", func(_, _ int) float64 { return math.Ldexp(float64(src.IntN(5)), -1074) }},
		{"large", func(_, _ int) float64 { return math.Ldexp(float64(1+src.IntN(1000)), 180) }},
		{"a unit", func(_, _ int) float64 { return unit * float64(1+src.IntN(100)) }},
		{"signed", func(_, _ int) float64 { return float64(src.IntN(2001)-1000) / 64 }},
		{"missing", func(_, _ int) float64 {
			if src.IntN(4) == 0 {
				return math.NaN()
			}
			return float64(src.IntN(1 << 20))
		}},
		{"rows apart", func(i, _ int) float64 { return math.Ldexp(float64(1+src.IntN(100)), 9*(i%20)-90) }},
		{"neighbours", func(_, _ int) float64 { return 3 + math.Ldexp(float64(src.IntN(3)), -51) }},
		{"product", func(i, j int) float64 { return float64((i*i%7+1)*(j*j%11+1)*8 + src.IntN(16)) }},
	}
	of := kinds[src.IntN(len(kinds))]
	return with(NewMat(size[0], size[1]), func(i, j int, _ float64) float64 { return of.of(i, j) }), of.name
}

// randomOptions draws options that the method takes, but of values that may be out of range or contradict.
func randomOptions(src *random.Source, method Method) (opts []FitOption) {
	maps, adam := method == MethodQMF || method == MethodQMFQ, method != MethodBQMF
	one := func(percent int, taken bool, of ...FitOption) {
		if o := of[src.IntN(len(of))]; src.IntN(100) < percent && taken {
			opts = append(opts, o)
		}
	}
	opts = append(opts, WithEpochs([]int{0, 1, 2, 3, 9}[src.IntN(5)]), WithMaxIterations(100))
	if !maps {
		opts = opts[:1]
	}
	one(40, true, WithMissingValues())
	one(50, true, WithLoss(Frobenius), WithLoss(Frobenius), WithLoss(KL), WithLoss(0))
	one(20, adam, WithLoss(Beta(0)), WithLoss(-2), WithLoss(0.5), WithLoss(1.5), WithLoss(4),
		WithLoss(1+0x1p-30))
	one(30, true, WithSeed(src.Uint64()))
	one(25, true, WithValidation(0.05), WithValidation(0.3), WithValidation(0.5))
	one(20, adam, WithPatience(1), WithPatience(2))
	one(10, adam, WithRestarts(2))
	one(30, adam, WithStart(StartUniform), WithStart(StartNMF), WithStart(StartScores), WithStart(StartSVD))
	one(12, method == MethodQMF, WithPenalty(1e-3), WithPenalty(1), WithPenalty(1e6))
	one(12, method == MethodNMF, WithPenalties(Penalties{L1U: 1e-3, L2V: 1}),
		WithPenalties(Penalties{L1U: 1, L1V: 1, L2U: 1e6}), WithPenalties(Penalties{L2U: 0.1, L2V: 0.1}))
	one(40, method == MethodNMF, WithUpdates(UpdatesMultiplicative))
	one(25, maps, WithEpsilon(1e-3), WithEpsilon(0.1), WithEpsilon(1), WithEpsilon(1e-6))
	one(20, maps, WithSquash(SquashLogistic), WithSquash(SquashNone), WithSquash(SquashArctan))
	one(10, maps, WithMaxIterations(1), WithMaxIterations(3), WithStrict())
	one(25, maps, WithLevels(2), WithLevels(3), WithLevels(16))
	one(12, maps, WithLearningRate(1e-3), WithLearningRate(3), WithLearningRate(100))
	one(12, maps, WithSchedule(ScheduleConstant))
	one(20, maps, WithEnds(EndsPinned))
	one(15, maps, WithShrinkage(0), WithShrinkage(1), WithShrinkage(1e3))
	one(20, method == MethodQMF, WithBatch(1), WithBatch(3), WithBatch(1000))
	one(40, method == MethodQMFQ, WithProjection(KLUpdates(2)), WithProjection(FrobeniusUpdates(3)),
		WithProjection(TruncatedSVD()))
	one(15, method == MethodBQMF, WithTolerance(1e-9), WithTolerance(0.5))
	return opts
}
