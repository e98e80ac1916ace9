package quantmf_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf"
)

// bentTable has n samples of d features, curves of a product of rank 3 with noise; some in 2^-300.
func bentTable(d, n int, unit float64) quantmf.Mat {
	x := quantmf.NewMat(d, n)
	for i := range d {
		for j := range n {
			w := 0.0
			for c := range 3 {
				w += (1 + math.Sin(float64(i*(c+2)+c))) * (1.1 + math.Cos(float64(j*(2*c+1)+5*c)))
			}
			noise := 1 + 0.05*math.Sin(float64(i*31+j*17+i*j))
			x.Set(i, j, unit*math.Pow(w, 0.6+0.1*float64(i%8))*noise)
		}
	}
	return x
}

func part(x quantmf.Mat, from, to int) quantmf.Mat {
	return quantmf.Mat{Rows: x.Rows, Cols: to - from, Stride: x.Stride, Data: x.Data[from:]}
}

// TestWithModel: a fit that goes on from a model begins at the model's loss and does not end above it, in any
// unit, signed or not; a file makes no difference.
func TestWithModel(t *testing.T) {
	t.Parallel()
	signed := bentTable(20, 60, 1)
	for i := range signed.Rows {
		for j := range signed.Cols {
			signed.Set(i, j, signed.At(i, j)-float64(i%5))
		}
	}
	for name, c := range map[string]struct {
		x      quantmf.Mat
		method quantmf.Method
		opts   []quantmf.FitOption
	}{
		"QMF":       {bentTable(20, 60, 1), quantmf.MethodQMF, nil},
		"QMF, tiny": {bentTable(20, 60, 0x1p-300), quantmf.MethodQMF, nil},
		"QMF, signed": {signed, quantmf.MethodQMF,
			[]quantmf.FitOption{quantmf.WithLoss(quantmf.Frobenius)}},
		"QMF, one batch": {bentTable(20, 60, 1), quantmf.MethodQMF,
			[]quantmf.FitOption{quantmf.WithBatch(99)}},
		"QMF, other maps": {bentTable(20, 60, 1), quantmf.MethodQMF,
			[]quantmf.FitOption{quantmf.WithLevels(5), quantmf.WithEpsilon(0.05)}},
		"NMF":       {bentTable(20, 60, 1), quantmf.MethodNMF, nil},
		"NMF, tiny": {bentTable(20, 60, 0x1p-300), quantmf.MethodNMF, nil},
		"NMF, Frobenius": {bentTable(20, 60, 1), quantmf.MethodNMF,
			[]quantmf.FitOption{quantmf.WithLoss(quantmf.Frobenius)}},
	} {
		fit := func(x quantmf.Rows, opts ...quantmf.FitOption) (quantmf.Model, []float64) {
			t.Helper()
			m, err := quantmf.Fit(t.Context(), c.method, x, 3, opts...)
			if err != nil {
				t.Fatal(name, err)
			}
			switch m := m.(type) {
			case *quantmf.NMF:
				return m, m.History
			case *quantmf.QMF:
				return m, m.History
			}
			return nil, nil
		}
		first, history := fit(c.x, c.opts...)
		own, _ := first.Loss(c.x)
		from := quantmf.WithModel(first)
		if n := len(history); name != "QMF, one batch" && math.Abs(history[n-1]-own) > 1e-9*own {
			t.Fatalf("%s: the loss is %v, the history ends with %v", name, own, history[n-1])
		}
		still, begun := fit(c.x, from, quantmf.WithEpochs(0))
		if now, _ := still.Loss(c.x); math.Abs(begun[0]-own) > 1e-9*own || math.Abs(now-own) > 1e-9*own {
			t.Errorf("%s: begins at %v and ends at %v, the model's loss is %v", name, begun[0], now, own)
		}
		more, went := fit(c.x, from, quantmf.WithEpochs(3))
		if now, _ := more.Loss(c.x); !(now <= own*(1+1e-6)) {
			t.Errorf("%s: three epochs lead from %v to %v", name, own, now)
		}
		data, _ := first.MarshalBinary()
		read := must(quantmf.UnmarshalModel(data))(t)
		if _, again := fit(c.x, quantmf.WithModel(read), quantmf.WithEpochs(3)); !slices.Equal(again, went) {
			t.Errorf("%s: from a file another history", name)
		}
	}
}

// TestWithModelOfOthers: with 50 more samples a fit that goes on reaches the loss of one from nothing in a
// fifth of its epochs, and so does one of other samples alone.
func TestWithModelOfOthers(t *testing.T) {
	t.Parallel()
	x := bentTable(40, 200, 1)
	for _, method := range []quantmf.Method{quantmf.MethodNMF, quantmf.MethodQMF} {
		first := must(quantmf.Fit(t.Context(), method, part(x, 0, 150), 3, quantmf.WithEpochs(20)))(t)
		for what, some := range map[string]quantmf.Mat{"more": x, "others": part(x, 150, 200),
			"as many": part(x, 50, 200)} {
			anew, err1 := quantmf.Fit(t.Context(), method, some, 3, quantmf.WithEpochs(20))
			on, err2 := quantmf.Fit(t.Context(), method, some, 3, quantmf.WithEpochs(4),
				quantmf.WithModel(first))
			ok(t, errors.Join(err1, err2))
			want, _ := anew.Loss(some)
			got, _ := on.Loss(some)
			if !(got <= want*1.05) {
				t.Errorf("%v, %s: four epochs from the model come to %v, twenty from nothing to %v", method,
					what,
					got, want)
			}
		}
	}
}

// TestWithModelErrors: what has no way to go on is a typed error.
func TestWithModelErrors(t *testing.T) {
	t.Parallel()
	x, models := smallModels(t)
	nmf, qmf := models[quantmf.MethodNMF].(*quantmf.NMF), models[quantmf.MethodQMF].(*quantmf.QMF)
	changed := *qmf
	changed.U = quantmf.NewMat(6, 2)
	u, v := nmf.Factors()
	wide := quantmf.NewMat(7, 9)
	for name, c := range map[string]struct {
		method quantmf.Method
		x      quantmf.Rows
		rank   int
		opts   []quantmf.FitOption
	}{
		"no model": {quantmf.MethodNMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(nil)}},
		"a nil pointer": {quantmf.MethodNMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel((*quantmf.NMF)(nil))}},
		"another method": {quantmf.MethodNMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(qmf)}},
		"a BQMF": {quantmf.MethodQMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(models[quantmf.MethodBQMF])}},
		"into a BQMF": {quantmf.MethodBQMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(nmf)}},
		"into a QMFQ": {quantmf.MethodQMFQ, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(nmf)}},
		"another rank": {quantmf.MethodQMF, x, 3,
			[]quantmf.FitOption{quantmf.WithModel(qmf)}},
		"other levels": {quantmf.MethodQMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(qmf), quantmf.WithLevels(5)}},
		"pinned ends": {quantmf.MethodQMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(qmf), quantmf.WithEnds(quantmf.EndsPinned)}},
		"given factors": {quantmf.MethodNMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(nmf), quantmf.WithInit(u, v)}},
		"a start": {quantmf.MethodQMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(qmf), quantmf.WithStart(quantmf.StartNMF)}},
		"restarts": {quantmf.MethodQMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(qmf), quantmf.WithRestarts(2)}},
		"other features": {quantmf.MethodQMF, wide, 2,
			[]quantmf.FitOption{quantmf.WithModel(qmf)}},
		"a changed field": {quantmf.MethodQMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(&changed)}},
		"the zero value": {quantmf.MethodQMF, x, 2,
			[]quantmf.FitOption{quantmf.WithModel(&quantmf.QMF{})}},
		"no matrix at all": {quantmf.MethodQMF, nil, 2,
			[]quantmf.FitOption{quantmf.WithModel(qmf)}},
	} {
		if m, err := quantmf.Fit(t.Context(), c.method, c.x, c.rank, c.opts...); m != nil || !typed(err) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}
