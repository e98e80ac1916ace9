package quantmf

// Tests of QMFQ: the gradient of the whole loss through the projection, and its scores of
// new samples, and places that are out of reach.

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestQMFQShrinkage: T is shrunk as FitQMF would shrink it, by a choice that a resumed fit and one that
// is told it share, and straighter the more it is.
func TestQMFQShrinkage(t *testing.T) {
	Slow(t)
	ctx := context.Background()
	x, k := noisyProduct()
	fit := func(o ...FitOption) *QMFQ {
		t.Helper()
		m := Fitted(t, FitQMFQ, x, k, append(o, WithEpochs(6))...)
		return m
	}
	var states [][]byte
	chosen := fit(Keep(&states))
	lambda := chosen.inflated.Shrinkage
	q := Fitted(t, FitQMF, x, k, WithEpochs(0))
	if lambda != 20 || q.Shrinkage != 100 { // the most that either may choose
		t.Errorf("shrunk by %v, FitQMF by %v", lambda, q.Shrinkage)
	}
	line := WithLine(chosen.inflated.Line)
	if !bytes.Equal(FileOf(t, fit(WithShrinkage(lambda), line)), FileOf(t, chosen)) {
		t.Error("a fit that is told shrinkage and line differs from the one that chose them")
	}
	if !bytes.Equal(FileOf(t, fit(WithResume(states[2]))), FileOf(t, chosen)) {
		t.Error("a resumed fit differs")
	}
	before := math.Inf(1)
	for _, lambda := range []float64{0, lambda} {
		m := fit(WithShrinkage(lambda))
		Equal(t, m.inflated.Shrinkage, lambda, "shrinkage")
		bend := TotalOf(m.Bend())
		t.Logf("λ %v: bend %.3f, loss %.4f", lambda, bend/float64(x.Rows), m.History[6])
		if !(bend < 0.9*before) {
			t.Errorf("λ %v: the rows bend by %v in all, less shrunk by %v", lambda, bend, before)
		}
		before = bend
	}
	for _, o := range []FitOption{WithEnds(EndsPinned), WithStart(StartUniform)} {
		m := fit(o)
		Equal(t, m.inflated.Shrinkage, 0, "%v: shrunk by", o.setting().value)
		if _, err := FitQMFQ(ctx, x, k, o, WithShrinkage(1)); OptionOf(err) != "WithShrinkage" {
			t.Errorf("%v: %v", o.setting().value, err)
		}
	}
}

// TestRawPlaces: what SquashNone transports as it is must be in reach.
func TestRawPlaces(t *testing.T) {
	ctx := context.Background()
	for _, v := range []float64{1e20, 1e13, 1e-170} {
		x := near1(8, 6, 7)
		x.Set(4, 5, v)
		for j := range x.Cols {
			if v < 1 {
				x.Set(4, j, v*float64(j+1))
			}
		}
		_, err := FitQMFQ(ctx, x, 2, WithSquash(SquashNone), WithEpochs(3))
		var data *DataError
		if !errors.As(err, &data) || data.Row != 4 {
			t.Errorf("x of %v: %v", v, err)
		}
	}
	x := near1(8, 6, 7)
	x.Set(4, 5, 1e11)
	m := Fitted(t, FitQMFQ, x, 2, WithSquash(SquashNone), WithEpochs(3))
	allFinite(t, "QMFQ", m, x)
}

// TestRowsOfProjection: where most of x is 0, no row of UV rules the projection, and a unit that is no power
// of 4, in which everything is rounded anew, has the same fit.
func TestRowsOfProjection(t *testing.T) {
	Slow(t)
	src := random.Split(7, 0)
	draw := func() float64 { return -math.Log(src.Float64()) }
	x := Times(Drawn(70, 3, draw), Drawn(3, 66, draw))
	for i, uv := range x.Data {
		if x.Data[i] = 0; src.IntN(10) == 0 {
			x.Data[i] = math.Ceil(uv * math.Exp(src.Float64()))
		}
	}
	fits := [2]*QMFQ{}
	for e := range fits {
		fits[e] = Fitted(t, FitQMFQ, TimesPower(x, e), 2, WithEpochs(0))
	}
	want, got := fits[0].Reconstruct().Data, fits[1].Reconstruct().Data
	for i, v := range want {
		Near(t, got[i]/2, v, 1e-6*slices.Max(want), "cell %d in another unit", i)
	}
	uv := Times(fits[0].U, fits[0].V)
	for i := range x.Rows {
		if ofX, ofUV := TotalOf(x.Row(i)), TotalOf(uv.Row(i)); !(ofUV <= 2*ofX) {
			t.Errorf("row %d of UV has the sum %v, of x %v", i, ofUV, ofX)
		}
	}
}

// TestEqualSingularValues: a row of ones is deflated to a constant, so that two such rows
// have one singular value above 0, and the truncation to two of three has no derivative.
func TestEqualSingularValues(t *testing.T) {
	x := NewMat(5, 6)
	for i := range x.Data {
		x.Data[i] = 1
	}
	q, err := FitQMFQ(context.Background(), x, 2, WithProjection(TruncatedSVD()), WithStart(StartUniform),
		WithEpochs(3))
	if !DataAt(err, -1, -1) || !strings.Contains(err.Error(), "singular values 2 and 3") {
		t.Errorf("equal singular values: %v", err)
	}
	if q == nil || q.U.Rows != 5 {
		t.Error("no model so far")
	}
}

// TestSubnormalMaps: maps of rows of subnormal numbers have values and slopes everywhere. Their squash is
// steeper than numbers are large.
func TestSubnormalMaps(t *testing.T) {
	x := Lognormal(8, 6)
	for i := range x.Data {
		x.Data[i] *= 1e-311
	}
	m := Fitted(t, FitQMFQ, x, 2, WithEpochs(1), WithStart(StartUniform), WithEpsilon(1e-8))
	for i := range x.Rows {
		for _, of := range []func(int) (*Map, error){m.Inflate, m.Deflate} {
			f := Must(of(i))(t)
			for _, v := range append(x.Row(i), 0, 1e-312, 1e-310, 1e-300, 1, -1, 1e60) {
				if at, slope := f.At(v), f.Slope(v); at-at != 0 || slope-slope != 0 || slope < 0 {
					t.Errorf("row %d: at %v it is %v, of slope %v", i, v, at, slope)
				}
			}
		}
	}
}
