package quantmf

// Tests of the line in the maps of a QMF: its steps and gradients, the function, and that a QMF with it
// contains the NMF.

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
)

// farProduct draws an exact product of rank 2 whose samples are of very different sizes, as populations are.
func farProduct() Mat {
	r := random.Split(31, 7)
	x := NewMat(40, 90)
	for i := range x.Rows {
		a, b := 0.2+r.Float64(), 0.2+r.Float64()
		s := random.Split(5, 5)
		for j := range x.Cols {
			size := math.Exp(2 * Normal(&s))
			x.Set(i, j, size*(a*s.Float64()+b))
		}
	}
	return x
}

// TestLineContainsNMF: of a product with far samples a QMF predicts hidden cells as an NMF does, and without
// its line far worse.
func TestLineContainsNMF(t *testing.T) {
	t.Parallel()
	ctx, x := context.Background(), farProduct()
	holes := holed(x, 0.1)
	loss := func(m Model, err error) float64 {
		OK(t, err)
		return MeanOver(1, x, m.Reconstruct(), Missing(holes))
	}
	nmf := loss(FitNMF(ctx, holes, 2, WithMissingValues()))
	with := loss(FitQMF(ctx, holes, 2, WithMissingValues()))
	without := loss(FitQMF(ctx, holes, 2, WithMissingValues(), WithLine(0)))
	if !(with < 2*nmf+1e-3*without) || !(without > 20*with) {
		t.Errorf("hidden cells: NMF %v, QMF %v, without lines %v", nmf, with, without)
	}
}

// TestLineMonotone: T does not fall from a number to the next, nor beyond the range of the row, and its slope
// is not below that of its line.
func TestLineMonotone(t *testing.T) {
	t.Parallel()
	m := Fitted(t, FitQMF, first(toy(3), 20), 3, WithLine(0.5), WithEpochs(1))
	r := random.Split(3, 3)
	for i := range m.U.Rows {
		f, _ := m.Map(i)
		if !(f.of.Line > 0) {
			t.Fatalf("row %d has no line", i)
		}
		w := make([]float64, m.V.Cols)
		product(w, m.U.Row(i), m.V)
		span := LargestOf(w)
		for range 1500 {
			x := span * (6*r.Float64() - 2)
			if r.Float64() < 0.1 {
				x = math.Ldexp(x, int(1000*r.Float64()))
			}
			next := math.Nextafter(x, math.Inf(1))
			a, b := f.At(x), f.At(next)
			if !(a <= b) || !(f.Slope(x) >= m.Slopes[i]) {
				t.Fatalf("row %d: T falls from %v at %v to %v, slope %v", i, a, x, b, f.Slope(x))
			}
		}
		for _, v := range []float64{f.At(0) - span, f.At(0), f.At(span), f.At(3 * span), 1e6 * f.At(span)} {
			if x, err := f.Invert(v); err != nil || !(math.Abs(f.At(x)-v) <= 1e-12*(math.Abs(v)+span)) {
				t.Errorf("row %d: T of the inverse %v of %v is %v (%v)", i, x, v, f.At(x), err)
			}
		}
		if _, err := f.Invert(math.Inf(1)); err == nil {
			t.Errorf("row %d: an infinite value has an inverse", i)
		}
		if lo, hi := f.At(math.Inf(-1)), f.At(math.Inf(1)); !math.IsInf(lo, -1) || !math.IsInf(hi, 1) {
			t.Errorf("row %d: the limits of T are %v and %v", i, lo, hi)
		}
	}
}

// TestLineOff: the paper's forms and WithLine(0) have no line; τ is what was given, or chosen, or a half
// after WithInit.
func TestLineOff(t *testing.T) {
	t.Parallel()
	x := first(toy(3), 20)
	u, v := first(x, 20), first(x, 2)
	u.Cols = 2
	for _, c := range []struct {
		name string
		want float64
		opts []FitOption
	}{
		{"StartUniform", 0, []FitOption{WithStart(StartUniform)}},
		{"EndsPinned", 0, []FitOption{WithEnds(EndsPinned)}},
		{"given 0", 0, []FitOption{WithLine(0)}},
		{"given 0.3", 0.3, []FitOption{WithLine(0.3)}},
		{"given 1", 1, []FitOption{WithLine(1)}},
		{"WithInit", 0.5, []FitOption{WithInit(u, v)}},
	} {
		m := Fitted(t, FitQMF, x, 2, append(c.opts, WithEpochs(1))...)
		if m.Line != c.want || (TotalOf(m.Slopes) > 0) != (c.want > 0) {
			t.Errorf("%s: τ %v, want %v; slopes %v", c.name, m.Line, c.want, m.Slopes)
		}
		if again, err := FitQMF(context.Background(), x, 2, WithInit(m.U, m.V), WithLine(c.want),
			WithEpochs(0)); err != nil || again.Line != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestLineEarlierFile: a file of a model without lines is refused in words.
func TestLineEarlierFile(t *testing.T) {
	t.Parallel()
	m := Fitted(t, FitQMF, first(toy(3), 20), 2, WithEpochs(0))
	sections := m.sections()
	for i, s := range sections {
		if s.Tag == "TOOK" {
			sections[i].Payload = s.Payload[:16]
		}
	}
	var format *FormatError
	err := new(QMF).UnmarshalBinary(section.Encode(section.QMF, sections))
	if !errors.As(err, &format) || !strings.Contains(err.Error(), "earlier version") {
		t.Error(err)
	}
}

// TestLineOfBestEpoch: under validation the lines are those of the best epoch, as all else: a fit that ends
// there has the same model.
func TestLineOfBestEpoch(t *testing.T) {
	Slow(t)
	t.Parallel()
	ctx, x := context.Background(), first(toy(4), 30)
	opts := []FitOption{WithValidation(0.3), WithSchedule(ScheduleConstant), WithStart(StartNMF),
		WithShrinkage(0), WithLine(0.5), WithLearningRate(0.5)}
	noisy, _ := noisyProduct()
	long := Fitted(t, FitQMF, noisy, 8, append(opts, WithEpochs(12))...)
	short, err := FitQMF(ctx, noisy, 8, append(opts, WithEpochs(long.Best))...)
	if err != nil || long.Best == 12 || !slices.Equal(long.Slopes, short.Slopes) {
		t.Errorf("QMF, best epoch %d (%v): slopes %v, of a fit that ends there %v", long.Best, err,
			long.Slopes[:3], short.Slopes[:3])
	}
	q := Fitted(t, FitQMFQ, x, 8, append(opts, WithEpochs(12))...)
	end, err := FitQMFQ(ctx, x, 8, append(opts, WithEpochs(q.Best))...)
	if err != nil || q.Best == 12 || !slices.Equal(q.inflated.Slopes, end.inflated.Slopes) {
		t.Errorf("QMFQ, best epoch %d (%v): slopes %v, of a fit that ends there %v", q.Best, err,
			q.inflated.Slopes[:3], end.inflated.Slopes[:3])
	}
}

// TestLineSealed: a slope that was changed is an error of the maps that have it.
func TestLineSealed(t *testing.T) {
	t.Parallel()
	m := Fitted(t, FitQMF, first(toy(3), 20), 2, WithEpochs(0))
	m.Slopes[3]++
	var data *DataError
	if _, err := m.Map(3); !errors.As(err, &data) || data.Row != 3 {
		t.Error(err)
	}
	if _, err := m.Map(4); err != nil {
		t.Error(err)
	}
	if _, err := m.MarshalBinary(); !errors.As(err, &data) {
		t.Error(err)
	}
}
