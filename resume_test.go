package quantmf

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
)

// fitAny fits a model by its name.
func fitAny(ctx context.Context, model string, x Mat, rank int, opts ...FitOption) (m Model, history, validation []float64, best int, warnings []error, err error) {
	switch model {
	case "NMF":
		n, err := FitNMF(ctx, x, rank, opts...)
		if n == nil {
			return nil, nil, nil, 0, nil, err
		}
		return n, n.History, n.Validation, n.Best, n.Warnings, err
	case "QMF":
		q, err := FitQMF(ctx, x, rank, opts...)
		if q == nil {
			return nil, nil, nil, 0, nil, err
		}
		return q, q.History, q.Validation, q.Best, q.Warnings, err
	}
	q, err := FitQMFQ(ctx, x, rank, opts...)
	if q == nil {
		return nil, nil, nil, 0, nil, err
	}
	return q, q.History, q.Validation, q.Best, q.Warnings, err
}

// stateCases calls f for every model with every combination of the options that are
// part of the state of a fit.
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
		{{}, {" batch", "QMF", []FitOption{WithBatch(100)}}, {" uniform", "QMF QMFQ", []FitOption{WithStart(StartUniform)}}},
	}
	whole := toy(3)
	whole.Rows, whole.Cols = 14, 12
	holed := holed(whole, 0.1)
	for _, model := range []string{"NMF", "QMF", "QMFQ"} {
		opts := []FitOption{WithEpochs(4), WithSeed(3), WithLoss(Beta(1.5))}
		switch model {
		case "QMF":
			opts = append(opts, WithLevels(4), WithMaxIterations(2), WithLearningRate(0.2))
		case "QMFQ":
			opts = append(opts, WithLevels(4), WithMaxIterations(2), WithProjection(KLUpdates(3)), WithLearningRate(0.5))
		}
		var walk func(k int, name string, x Mat, opts []FitOption)
		walk = func(k int, name string, x Mat, opts []FitOption) {
			if k == len(axes) {
				f(name, model, x, opts)
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

// TestResumeEveryState: from each state that a fit can save, the rest of it gives the
// model of the fit that never stopped: its bits, histories, best epoch, and warnings
// of the same types.
func TestResumeEveryState(t *testing.T) {
	ctx := context.Background()
	stateCases(func(name, model string, x Mat, opts []FitOption) {
		if testing.Short() && len(opts)%2 == 0 {
			return
		}
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
			if testing.Short() && i%3 != 0 {
				continue
			}
			got, _, _, _, _, err := fitAny(ctx, model, x, 2, append(opts, WithResume(s), WithWorkers(1+i%2))...)
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

// TestResumeStrict: what a strict fit reports after it was resumed is what it reports
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
			if _, _, _, _, _, err := fitAny(context.Background(), model, x, 2, append(opts, WithResume(s))...); !reflect.DeepEqual(err, want) {
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
		x.Set(2, j, x.At(2, j)*1e-140)
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

// TestCancelledBetweenEpochs: a fit whose context ends between two epochs, or within
// one, has an entry of History for each epoch done and the one before the first, Best
// among them, and the last says what the model returned has for a loss.
func TestCancelledBetweenEpochs(t *testing.T) {
	stateCases(func(name, model string, x Mat, opts []FitOption) {
		if testing.Short() && len(opts)%2 == 0 {
			return
		}
		for _, at := range []int{1, 2, 3} {
			ctx, cancel := context.WithCancel(context.Background())
			watch := WithProgress(func(p Progress) error {
				if p.Epoch == at {
					cancel()
				}
				return nil
			})
			m, history, validation, best, _, err := fitAny(ctx, model, x, 2, append(opts, watch, WithWorkers(1))...)
			cancel()
			if m == nil {
				t.Fatalf("%s: no model, %v", name, err)
			}
			var s *stopped
			if !errors.As(err, &s) || !errors.Is(err, context.Canceled) {
				if err == nil && bytes.Contains([]byte(name), []byte("patience")) {
					continue // which ran out first
				}
				t.Fatalf("%s, cancelled after epoch %d: %v", name, at, err)
			}
			n := at
			if s.epoch == 0 && bytes.Contains([]byte(name), []byte("restarts")) {
				continue // patience ran out at that very epoch, and the next restart had not begun
			}
			if s.epoch != n || len(history) > n+1 || best >= len(history) || validation != nil && len(validation) != len(history) {
				t.Errorf("%s, cancelled after epoch %d: %d entries, %d of validation, best %d; %v", name, at, len(history), len(validation), best, err)
			}
			if model != "QMFQ" || validation == nil {
				if len(history) != n+1 && !bytes.Contains([]byte(name), []byte("restarts")) {
					t.Errorf("%s, cancelled after epoch %d: %d entries", name, at, len(history))
				}
			}
			if l, err := m.Loss(x); err != nil || math.Abs(l-history[best]) > 1e-12*l && validation == nil {
				t.Errorf("%s, cancelled after epoch %d: loss %v, history %v, best %d, %v", name, at, l, history, best, err)
			}
		}
	})
}
