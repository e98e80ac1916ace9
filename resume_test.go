package quantmf

// Tests that a fit goes on from every state that it saved as if it had never stopped.

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestResumeQMFQ: from every state that a fit of QMFQ saved, the rest of it gives the bits
// of the fit that never stopped.
func TestResumeQMFQ(t *testing.T) {
	x := toy(2)
	x.Rows, x.Cols = 34, 20
	y := holed(x, 0.05)
	base := []FitOption{WithEpochs(5), WithSeed(4), WithLevels(5)}
	for name, c := range map[string]struct {
		x    Mat
		more []FitOption
	}{
		"plain": {x, []FitOption{WithProjection(KLUpdates(7))}},
		"svd":   {x, []FitOption{WithProjection(TruncatedSVD()), WithSchedule(ScheduleConstant)}},
		"uniform": {y, []FitOption{WithMissingValues(), WithStart(StartUniform),
			WithProjection(FrobeniusUpdates(9)), WithValidation(0.1)}},
		"missing": {y, []FitOption{WithMissingValues(), WithEnds(EndsPinned), WithRestarts(2)}},
		"validation": {x, []FitOption{WithValidation(0.1), WithRestarts(3), WithLoss(Frobenius),
			WithLearningRate(0.5)}},
		"patience": {y, []FitOption{WithMissingValues(), WithValidation(0.2), WithRestarts(2),
			WithPatience(1), WithProjection(FrobeniusUpdates(5)), WithLearningRate(1)}},
	} {
		if testing.Short() && name != "svd" && name != "uniform" && name != "patience" {
			continue
		}
		opts := append(append([]FitOption{}, base...), c.more...)
		plain, err := FitQMFQ(context.Background(), c.x, 3, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if name == "patience" && len(plain.History) == 6 {
			t.Error("patience did not run out: nothing is tested")
		}
		want, _ := plain.MarshalBinary()
		var states [][]byte
		save := WithCheckpoint(2, func(s []byte) error { states = append(states, s); return nil })
		m, err := FitQMFQ(context.Background(), c.x, 3, append(opts, save)...)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := m.MarshalBinary(); !bytes.Equal(got, want) {
			t.Errorf("%s: saving states changes the fit", name)
		}
		if len(states) < 2 {
			t.Errorf("%s: %d states", name, len(states))
		}
		for i, s := range states {
			m, err := FitQMFQ(context.Background(), c.x, 3,
				append(opts, WithResume(s), WithWorkers(1+i%3))...)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, _ := m.MarshalBinary(); !bytes.Equal(got, want) {
				t.Errorf("%s: resumed from state %d the fit differs", name, i)
			}
		}
		var p QMFQ
		if err := p.UnmarshalBinary(want); err != nil {
			t.Fatal(err)
		}
		closeTo(t, "Validation", p.Validation, plain.Validation, 0)
	}
}

// stateCases calls f for every model with combinations of the options that are part of the
// state of a fit: with QUANTMF_LONG with each.
func stateCases(f func(name, model string, x Mat, opts []FitOption)) {
	type choice struct {
		name   string
		models string
		opts   []FitOption
	}
	axes := [][]choice{
		{{}, {" restarts", "NMF QMF QMFQ", []FitOption{WithRestarts(3)}}},
		{{}, {" penalty", "NMF QMF", []FitOption{WithPenalty(3)}}},
		{{}, {" validation", "NMF QMF QMFQ", []FitOption{WithValidation(0.2)}}},
		{{}, {" patience", "NMF QMF QMFQ", []FitOption{WithPatience(2)}}},
		{{}, {" missing", "NMF QMF QMFQ", []FitOption{WithMissingValues()}}},
		{{}, {" batch", "QMF", []FitOption{WithBatch(100)}},
			{" uniform", "QMF QMFQ", []FitOption{WithStart(StartUniform)}}},
	}
	whole := toy(3)
	whole.Rows, whole.Cols = 14, 12
	holed, count := holed(whole, 0.1), 0
	for _, model := range []string{"NMF", "QMF", "QMFQ"} {
		opts := []FitOption{WithEpochs(4), WithSeed(3), WithLoss(Beta(1.5))}
		switch model {
		case "QMF":
			opts = append(opts, WithLevels(4), WithMaxIterations(2), WithLearningRate(0.2))
		case "QMFQ":
			opts = append(opts, WithLevels(4), WithMaxIterations(2), WithProjection(KLUpdates(3)),
				WithLearningRate(0.5))
		}
		var walk func(k int, name string, x Mat, opts []FitOption)
		walk = func(k int, name string, x Mat, opts []FitOption) {
			if k == len(axes) {
				// Of every model each pair of choices is among the fifth, and each choice among the eleventh.
				if count++; long || testing.Short() && count%11 == 3 || !testing.Short() && count%5 == 3 {
					f(name, model, x, opts)
				}
				return
			}
			for i, c := range axes[k] {
				switch {
				case i == 0:
					walk(k+1, name, x, opts)
				case bytes.Contains([]byte(" "+c.models+" "), []byte(" "+model+" ")):
					y := x
					if c.name == " missing" {
						y = holed
					}
					walk(k+1, name+c.name, y, append(append([]FitOption{}, opts...), c.opts...))
				}
			}
		}
		walk(0, model, whole, opts)
	}
}

// TestResumeEveryState: from each state that a fit can save (without QUANTMF_LONG each second), the rest of
// it gives the model of the fit that never stopped: its bits, histories, best epoch, and warnings of the same
// types.
func TestResumeEveryState(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	ctx := context.Background()
	stateCases(func(name, model string, x Mat, opts []FitOption) {
		want, _, _, _, warnings, err := fitAny(ctx, model, x, 2, opts...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if model != "NMF" && len(warnings) == 0 {
			t.Errorf("%s: two passes sufficed, no warning is compared", name)
		}
		var states [][]byte
		save := WithCheckpoint(1, func(s []byte) error { states = append(states, s); return nil })
		saving, _, _, _, _, err := fitAny(ctx, model, x, 2, append(opts, save)...)
		if err != nil || !reflect.DeepEqual(saving, want) {
			t.Errorf("%s: saving changes the fit: %v", name, err)
		}
		bits, _ := want.MarshalBinary()
		for i, s := range states {
			if of := draws(1, 2, 4); i%of != 1%of {
				continue
			}
			got, _, _, _, _, err := fitAny(ctx, model, x, 2,
				append(opts, WithResume(s), WithWorkers(1+i/2%2))...)
			if err != nil {
				t.Errorf("%s, state %d of %d: %v", name, i, len(states), err)
				continue
			}
			if b, _ := got.MarshalBinary(); !bytes.Equal(b, bits) {
				t.Errorf("%s, state %d of %d: another model", name, i, len(states))
			} else if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, state %d of %d: the same file, but not the same fields", name, i, len(states))
			}
		}
	})
}

// TestResumeStrict: what a strict fit reports after it was resumed is what it reports TestResumeThinRows: a
// fit over rows that are mostly zero goes on with them as such from every state, of multiplicative updates
// and of Newton's method, whatever holds the matrix.
func TestResumeThinRows(t *testing.T) {
	x := sparseCounts(90, 40, 3)
	for i := range x.Data {
		if i%3 != 0 {
			x.Data[i] = 0
		}
	}
	for i := range x.Rows {
		x.Set(i, i%x.Cols, 3)
	}
	for what, held := range map[string]Rows{"dense": x, "sparse": sparseOf[float64](t, x)} {
		var states [][]byte
		opts := []FitOption{WithEpochs(9), WithSeed(2)}
		m, err := FitNMF(t.Context(), held, 3,
			append(opts, WithCheckpoint(1,
				func(s []byte) error { states = append(states, s); return nil }))...)
		if err != nil {
			t.Fatal(err)
		}
		want := marshalled(t, m)
		for i, s := range states {
			m, err := FitNMF(t.Context(), held, 3, append(opts, WithResume(s), WithWorkers(1+i%3))...)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(marshalled(t, m), want) {
				t.Errorf("%s, resumed after epoch %d: other bits", what, i+1)
			}
		}
	}
}

// when it never stopped, though the best model came from a state.
func TestResumeStrict(t *testing.T) {
	x := toy(3)
	x.Rows, x.Cols = 14, 12
	for _, model := range []string{"QMF", "QMFQ"} {
		opts := []FitOption{WithEpochs(2), WithLevels(4), WithMaxIterations(2), WithRestarts(2), WithStrict()}
		var states [][]byte
		save := WithCheckpoint(1, func(s []byte) error { states = append(states, s); return nil })
		_, _, _, _, _, want := fitAny(context.Background(), model, x, 2, append(opts, save)...)
		var c *ConvergenceError
		if !errors.As(want, &c) {
			t.Fatalf("%s: %v", model, want)
		}
		for i, s := range states {
			if _, _, _, _, _, err := fitAny(context.Background(), model, x, 2,
				append(opts, WithResume(s))...); !reflect.DeepEqual(err, want) {
				t.Errorf("%s, state %d: %v, want %v", model, i, err, want)
			}
		}
	}
}

// TestResumeOverflowedMoment: gradients whose squares overflow make a second moment
// infinite, and the parameter stands still from then on. The fit goes on, and so it
// does from a state.
func TestResumeOverflowedMoment(t *testing.T) {
	x := toy(3)
	x.Rows, x.Cols = 14, 12
	x = x.Clone()
	for j := range x.Cols {
		x.Set(2, j, x.At(2, j)*1e-28)
	}
	for _, start := range []Start{StartNMF, StartUniform} {
		opts := []FitOption{WithEpochs(3), WithLevels(4), WithPenalty(1e30), WithStart(start)}
		var states [][]byte
		save := WithCheckpoint(1, func(s []byte) error { states = append(states, s); return nil })
		want, err := FitQMF(context.Background(), x, 2, append(opts, save)...)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range states {
			got, err := FitQMF(context.Background(), x, 2, append(opts, WithResume(s))...)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v, state %d: %v", start, i, err)
			}
		}
	}
}

// TestResumeExtends: where no epoch depends on their number, a fit goes on for more of them,
// from its end or from before, to the bits of one that was asked for so many at once. Where
// one does, and for fewer than are done, the error says why.
func TestResumeExtends(t *testing.T) {
	x, _ := bent(12, 20, 2, 0, 3)
	ctx := context.Background()
	type fitter func(epochs int, opts ...FitOption) (Model, error)
	nmf := func(own ...FitOption) fitter {
		return func(epochs int, opts ...FitOption) (Model, error) {
			return FitNMF(ctx, x, 3, append(append(own[:len(own):len(own)], WithEpochs(epochs)), opts...)...)
		}
	}
	qmf := func(own ...FitOption) fitter {
		return func(epochs int, opts ...FitOption) (Model, error) {
			return FitQMF(ctx, x, 3, append(append(own[:len(own):len(own)], WithEpochs(epochs)), opts...)...)
		}
	}
	constant := WithSchedule(ScheduleConstant)
	for name, fit := range map[string]fitter{
		"nmf":            nmf(),
		"multiplicative": nmf(WithUpdates(UpdatesMultiplicative), WithLoss(Beta(0.5))),
		"nmf held out":   nmf(WithValidation(0.1)),
		"qmf":            qmf(constant, WithBatch(5)),
		"one batch":      qmf(constant, WithBatch(12)),
		"qmf held out":   qmf(constant, WithValidation(0.1), WithMissingValues()),
		"qmfq": func(epochs int, opts ...FitOption) (Model, error) {
			return FitQMFQ(ctx, x, 3, append([]FitOption{constant, WithEpochs(epochs)}, opts...)...)
		},
		"bqmf": func(epochs int, opts ...FitOption) (Model, error) {
			return FitBQMF(ctx, x, 3, append([]FitOption{WithEpochs(epochs)}, opts...)...)
		},
	} {
		var states [][]byte
		save := WithCheckpoint(1, func(b []byte) error { states = append(states, b); return nil })
		if _, err := fit(6, save); err != nil {
			t.Fatal(name, err)
		}
		want, err := fit(11)
		if err != nil {
			t.Fatal(name, err)
		}
		file, _ := want.MarshalBinary()
		for _, from := range []int{1, 3, len(states) - 1} {
			got, err := fit(11, WithResume(states[from]))
			if err != nil {
				t.Errorf("%s, state %d: %v", name, from, err)
				continue
			}
			if b, _ := got.MarshalBinary(); !bytes.Equal(b, file) {
				t.Errorf("%s, state %d: another model", name, from)
			}
		}
		var o *OptionError
		if _, err := fit(2, WithResume(states[len(states)-1])); !errors.As(err, &o) ||
			o.Bound != "the state was saved with 6, of which 6 are done" {
			t.Errorf("%s: fewer than are done: %v", name, err)
		}
	}
	for why, fit := range map[string]fitter{
		"over which the learning rate falls to 0": qmf(),
		"which restarts before have ended with":   nmf(WithRestarts(2)),
	} {
		var state []byte
		if _, err := fit(6, WithCheckpoint(1, func(b []byte) error { state = b; return nil })); err != nil {
			t.Fatal(err)
		}
		var o *OptionError
		if _, err := fit(9, WithResume(state)); !errors.As(err, &o) || o.Option != "WithEpochs" ||
			!strings.Contains(o.Bound, why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestResumeUnset: an option that one of the two fits was not given is named as that, without the number that
// stands for it.
func TestResumeUnset(t *testing.T) {
	x := lognormal(10, 9)
	fit := func(opts ...FitOption) error {
		_, err := FitQMF(t.Context(), x, 2, append(opts, WithEpochs(1), WithStart(StartScores))...)
		return err
	}
	state := func(opts ...FitOption) (state []byte) {
		if err := fit(append(opts,
			WithCheckpoint(1, func(b []byte) error { state = b; return nil }))...); err != nil {
			t.Fatal(err)
		}
		return state
	}
	without := state()
	for _, c := range []struct {
		option     FitOption
		with, less string
	}{
		{WithShrinkage(3), "WithShrinkage(3): the state was saved without it",
			"WithShrinkage(not given): the state was saved with 3"},
		{WithPatience(7), "WithPatience(7): the state was saved without it",
			"WithPatience(not given): the state was saved with 7"},
		{WithValidation(0.25), "WithValidation(0.25): the state was saved without it",
			"WithValidation(not given): the state was saved with 0.25"},
		{WithMissingValues(), "WithMissingValues(given): the state was saved without it",
			"WithMissingValues(not given): the state was saved with it"},
		{WithPenalty(2), "WithPenalty(2): the state was saved with 0",
			"WithPenalty(0): the state was saved with 2"},
	} {
		if err := fit(c.option, WithResume(without)); err == nil || err.Error() != "quantmf: "+c.with {
			t.Errorf("%v, want %s", err, c.with)
		}
		if err := fit(WithResume(state(c.option))); err == nil || err.Error() != "quantmf: "+c.less {
			t.Errorf("%v, want %s", err, c.less)
		}
	}
}
