package quantmf

// Tests that a fit goes on from every state that it saved as if it had never stopped.

import (
	"context"
	"errors"
	"reflect"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestResumeStrict: under WithStrict a fit that goes on from a state ends in the error that it ends in when
// it never stopped, though the best model came from a state.
func TestResumeStrict(t *testing.T) {
	x := toy(3)
	x.Rows, x.Cols = 14, 12
	for _, method := range []Method{MethodQMF, MethodQMFQ} {
		opts := []FitOption{WithEpochs(2), WithLevels(4), WithMaxIterations(2), WithRestarts(2), WithStrict()}
		var states [][]byte
		_, want := Fit(t.Context(), method, x, 2, append(opts, Keep(&states))...)
		var c *ConvergenceError
		if !errors.As(want, &c) {
			t.Fatalf("%v: %v", method, want)
		}
		for i, s := range states {
			if _, err := Fit(t.Context(), method, x, 2,
				append(opts, WithResume(s))...); !reflect.DeepEqual(err, want) {
				t.Errorf("%v, state %d: %v, want %v", method, i, err, want)
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
		want := Fitted(t, FitQMF, x, 2, append(opts, Keep(&states))...)
		for i, s := range states {
			got, err := FitQMF(context.Background(), x, 2, append(opts, WithResume(s))...)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%v, state %d: %v", start, i, err)
			}
		}
	}
}

// TestResumeUnset: an option that one of the two fits was not given is named as that, without the number that
// stands for it.
func TestResumeUnset(t *testing.T) {
	x := Lognormal(10, 9)
	fit := func(opts ...FitOption) error {
		return ErrorOf(FitQMF(t.Context(), x, 2, append(opts, WithEpochs(1), WithStart(StartScores))...))
	}
	state := func(opts ...FitOption) []byte {
		var states [][]byte
		OK(t, fit(append(opts, Keep(&states))...))
		return states[0]
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
