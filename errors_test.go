package quantmf

// This file tests what the typed errors say, and that of several rows the first is named.

import (
	"errors"
	"io"
	"math"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestErrorTexts: an error says what is wrong and where, as far as there is a where.
func TestErrorTexts(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&OptionError{"WithEpsilon", "-1", "must be positive"}, "quantmf: WithEpsilon(-1): must be positive"},
		{&DataError{0, 3, 7, "is odd"}, "quantmf: row 0, column 3, value 7: is odd"},
		{&DataError{2, -1, nan, "the row has no observed cell"},
			"quantmf: row 2, value NaN: the row has no observed cell"},
		{&DataError{-1, 0, 1.5, "is odd"}, "quantmf: column 0, value 1.5: is odd"},
		{&DataError{-1, -1, nan, "the state was saved from another x"},
			"quantmf: the state was saved from another x"},
		{&DataError{-1, -1, 0.25, "the map is flat"}, "quantmf: 0.25: the map is flat"},
		{&ShapeError{"x", "3 rows", "4"}, "quantmf: x: got 3 rows, want 4"},
		{&ReadError{0, io.ErrUnexpectedEOF}, "quantmf: row 0 could not be read: unexpected EOF"},
		{&FormatError{12, "is damaged"}, "quantmf: model file, byte 12: is damaged"},
		{&ConvergenceError{0, 5, 0.5, 1e-9},
			"quantmf: row 0: transport at a relative column error of 0.5 after 5 passes, wanted 1e-09"},
		{&ConvergenceError{-1, 5, 0.5, 1e-9},
			"quantmf: transport at a relative column error of 0.5 after 5 passes, wanted 1e-09"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestFirstRowIsNamed: of the rows of which no transport converges, the first is named, for any number of
// workers.
func TestFirstRowIsNamed(t *testing.T) {
	x := NewMat(1000, 60)
	for i := range x.Rows {
		for j := range x.Cols {
			if x.Set(i, j, 1); i >= 3 { // the rows before are constant, and converge at once
				x.Set(i, j, float64(j*j))
			}
		}
	}
	q := []float64{0, 1, 2, 3}
	levels := Must(MatOf(q))(t)
	for _, workers := range []int{1, 2, 3, 7} {
		var conv *ConvergenceError
		if _, err := SoftQuantileRows(x, levels, WithStrict(), WithMaxIterations(1),
			WithWorkers(workers)); !errors.As(err, &conv) || conv.Row != 3 {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
}

// TestOptionBounds: an option takes the ends of its range, and nothing beyond.
func TestOptionBounds(t *testing.T) {
	up, down := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) },
		func(v float64) float64 { return math.Nextafter(v, math.Inf(-1)) }
	check := func(takes bool, opts ...FitOption) {
		t.Helper()
		for k, o := range opts {
			var config config
			if problem := o.setting().check(&config); (problem == "") != takes {
				t.Errorf("option %d, %v: %q", k, o.setting().kind, problem)
			}
		}
	}
	nan := math.NaN()
	check(false, WithEpsilon(nan), WithTolerance(0), WithMaxIterations(0), WithWorkers(-1), WithLevels(0),
		WithSquash(99), WithEpochs(-1), WithLearningRate(0), WithLearningRate(1e9), WithBatch(0),
		WithPenalty(-1), WithShrinkage(nan), WithShrinkage(1e300), WithLine(nan), WithPatience(0),
		WithRestarts(0), WithSchedule(9))
	check(true, WithLoss(-2), WithLoss(4))
	check(false, WithLoss(Loss(down(-2))), WithLoss(Loss(up(4))), WithLoss(Loss(nan)))
	check(true, WithValidation(0.5), WithValidation(5e-324))
	check(false, WithValidation(0), WithValidation(up(0.5)), WithValidation(nan))
	check(true, WithEnds(EndsFree), WithEnds(EndsPinned))
	check(false, WithEnds(EndsPinned+1))
	check(true, WithStart(StartAuto), WithStart(StartSVD))
	check(false, WithStart(StartSVD+1))
	check(true, WithUpdates(UpdatesNewton), WithUpdates(UpdatesMultiplicative))
	check(false, WithUpdates(UpdatesMultiplicative+1))
	check(true, WithEpsilon(0), WithEpsilon(1e-12), WithEpsilon(1e12))
	check(false, WithEpsilon(down(1e-12)), WithEpsilon(up(1e12)), WithEpsilon(-1))
	check(true, WithTargets([]float64{-1e12, 1e12}), WithTargets([]float64{0, 1e-200}))
	check(false, WithTargets([]float64{down(-1e12), 0}), WithTargets([]float64{0, up(1e12)}),
		WithTargets([]float64{0, down(1e-200)}))
	check(true, WithWeights([]float64{0, 1e-300}))
	check(false, WithWeights([]float64{0, 0}), WithWeights([]float64{math.MaxFloat64, math.MaxFloat64}),
		WithWeights([]float64{math.Inf(1)}))
	check(true, WithTargetWeights([]float64{1, 1e-290}))
	check(false, WithTargetWeights([]float64{math.MaxFloat64, math.MaxFloat64}),
		WithTargetWeights([]float64{1, -1}))
}

// TestNoCotangentOfQ: q of ranks is no argument.
func TestNoCotangentOfQ(t *testing.T) {
	for _, eps := range []float64{0, 0.1} {
		tr := Solved(t, []float64{3, 1, 2}, WithEpsilon(eps))
		if g, err := tr.RankVJP([]float64{1, 0, 0}); err != nil || g.Q != nil || len(g.X) != 3 {
			t.Errorf("ε = %v: the gradient of ranks is %+v, %v", eps, g, err)
		}
	}
}
