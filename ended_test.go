package quantmf

// This file tests that operators end with their context within a row.

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// soon is a context that has ended, but says so by Err from the second question on: it ends a call right
// after its beginning.
type soon struct {
	context.Context
	asked int
}

func (s *soon) Err() error {
	if s.asked++; s.asked == 1 {
		return nil
	}
	return context.Canceled
}

// TestContextWithinRow: an operator whose context ends in the middle of a row returns its error, and the next
// call, in the workspace that was left, has the bits of any other.
func TestContextWithinRow(t *testing.T) {
	Slow(t)
	t.Parallel()
	x, q := make([]float64, 100), make([]float64, 100)
	for i := range x {
		x[i], q[i] = float64(i*i%101), float64(i)
	}
	rows := Must(MatOf(x))(t)
	row := func(m Mat, err error) ([]float64, error) { return m.Data, err }
	for name, f := range map[string]func(opts ...Option) ([]float64, error){
		"SoftRank": func(opts ...Option) ([]float64, error) { return SoftRank(x, opts...) },
		"SoftSort": func(opts ...Option) ([]float64, error) { return SoftSort(x, opts...) },
		"Solve": func(opts ...Option) ([]float64, error) {
			tr, err := Solve(x, opts...)
			if err != nil {
				return nil, err
			}
			return tr.F, nil
		},
		"SoftQuantile": func(opts ...Option) ([]float64, error) { return SoftQuantile(x, q, opts...) },
		"SoftRankRows": func(opts ...Option) ([]float64, error) {
			return row(SoftRankRows(rows, opts...))
		},
		"SoftSortRowsVJP": func(opts ...Option) ([]float64, error) {
			return row(SoftSortRowsVJP(rows, rows, opts...))
		},
		"SoftRankRowsJVP": func(opts ...Option) ([]float64, error) {
			return row(SoftRankRowsJVP(rows, rows, opts...))
		},
	} {
		for how, opts := range map[string][]Option{"solved": {WithLevels(100)},
			"iterated":    {WithLevels(100), WithIterations(3)},
			"nearly hard": {WithLevels(100), WithEpsilon(1e-7)}} {
			want := Must(f(opts...))(t)
			ended, stop := context.WithCancel(context.Background())
			stop()
			_, err := f(append(slices.Clone(opts), WithContext(&soon{Context: ended}))...)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			got := Must(f(append(slices.Clone(opts), WithContext(t.Context()))...))(t)
			EqualAll(t, got, want, "%s, %s: other numbers after a call that was ended", name, how)
		}
	}
}
