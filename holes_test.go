package quantmf_test

// Tests of what models fitted without WithMissingValues make of samples that lack values.

import (
	"errors"
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/settings"
)

// TestHoles: a model that was fitted without missing values places, judges and describes samples with NaN
// cells as one of the same factors that was fitted with them does. Only TruncatedSVD needs every cell.
func TestHoles(t *testing.T) {
	t.Parallel()
	x := NewMat(20, 10)
	for i := range x.Data {
		x.Data[i] = float64(1 + i*i%11 + i%10*(i/10))
	}
	holes := x.Clone()
	for i := range 20 {
		holes.Set(i, i%7, math.NaN()) // three columns have none
	}
	for _, method := range settings.Methods {
		fit := func(o ...FitOption) Model {
			return Must(settings.Fit(t.Context(), method, x, 2, append(o, WithEpochs(3))...))(t)
		}
		m, of := fit(), fit(WithMissingValues())
		got, want := Answer(t, m.Transform, holes), Answer(t, of.Transform, holes)
		if !slices.Equal(got.Data, want.Data) || slices.Max(got.Data) == 0 {
			t.Errorf("%s: at %v, want %v", method, got, want)
		}
		score, as := Answer(t, m.Score, holes), Answer(t, of.Score, holes)
		if score != as || !(score > 0) {
			t.Errorf("%s: a score of %v, want %v", method, score, as)
		}
		loss, as := Must(m.Loss(holes))(t), Must(of.Loss(holes))(t)
		if loss != as || !(loss > 0) {
			t.Errorf("%s: a loss of %v, want %v", method, loss, as)
		}
		good := Must(m.Goodness(holes))(t)
		if as := Must(of.Goodness(holes))(t); good[3] != as[3] {
			t.Errorf("%s: %v, want %v", method, good, as)
		}
		if q, is := m.(*QMFQ); is {
			y, err := q.Normalize(holes)
			if err != nil || y.At(3, 3) == y.At(3, 3) || y.At(3, 4) != y.At(3, 4) {
				t.Errorf("%v, %v", err, y.Row(3))
			}
		}
	}
	q := Fitted(t, FitQMFQ, x, 2, WithEpochs(2),
		WithProjection(TruncatedSVD()))
	var bad *DataError
	if _, err := q.Transform(t.Context(), holes); !errors.As(err, &bad) || bad.Row != 0 || bad.Col != 0 ||
		bad.Problem != "x must be finite: TruncatedSVD needs every cell" {
		t.Error(err)
	}
}
