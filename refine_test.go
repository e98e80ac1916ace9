package quantmf_test

import (
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// bentTable has n samples of d features, curves of a product of rank 3 with noise; some in 2^-300.
func bentTable(d, n int, unit float64) Mat {
	x := NewMat(d, n)
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

// TestWithModel: a fit that goes on from a model begins at the model's loss and does not end above it, in any
// unit, signed or not; a file makes no difference.
func TestWithModel(t *testing.T) {
	Slow(t)
	t.Parallel()
	signed := bentTable(20, 60, 1)
	for i := range signed.Rows {
		for j := range signed.Cols {
			signed.Set(i, j, signed.At(i, j)-float64(i%5))
		}
	}
	plain, tiny := bentTable(20, 60, 1), bentTable(20, 60, 0x1p-300)
	for name, c := range map[string]struct {
		x      Mat
		method Method
		opts   []FitOption
	}{
		"QMF":             {plain, MethodQMF, nil},
		"QMF, tiny":       {tiny, MethodQMF, nil},
		"QMF, signed":     {signed, MethodQMF, []FitOption{WithLoss(Frobenius)}},
		"QMF, one batch":  {plain, MethodQMF, []FitOption{WithBatch(99)}},
		"QMF, other maps": {plain, MethodQMF, []FitOption{WithLevels(5), WithEpsilon(0.05)}},
		"NMF":             {plain, MethodNMF, nil},
		"NMF, tiny":       {tiny, MethodNMF, nil},
		"NMF, Frobenius":  {plain, MethodNMF, []FitOption{WithLoss(Frobenius)}},
		"QMFQ, tiny":      {tiny, MethodQMFQ, []FitOption{WithEpochs(50)}},
		"QMFQ, other maps": {plain, MethodQMFQ, []FitOption{WithEpochs(50), WithLevels(5),
			WithEpsilon(0.05)}},
	} {
		fit := func(opts ...FitOption) (Model, []float64) {
			t.Helper()
			m := Fitted(t, By(c.method), c.x, 3, opts...)
			return m, Common(m).History
		}
		near, above, epochs := 1e-9, 1e-6, 3
		if c.method == MethodQMFQ { // steps of Adam need some epochs
			above, epochs = 0.01, 30
		}
		first, history := fit(c.opts...)
		own, _ := first.Loss(c.x)
		from := WithModel(first)
		if n := len(history); name != "QMF, one batch" && math.Abs(history[n-1]-own) > 1e-9*own {
			t.Fatalf("%s: the loss is %v, the history ends with %v", name, own, history[n-1])
		}
		still, begun := fit(from, WithEpochs(0))
		if now, _ := still.Loss(c.x); math.Abs(begun[0]-own) > near*own || math.Abs(now-own) > near*own {
			t.Errorf("%s: begins at %v and ends at %v, the model's loss is %v", name, begun[0], now, own)
		}
		more, went := fit(from, WithEpochs(epochs))
		if now, _ := more.Loss(c.x); !(now <= own*(1+above)) {
			t.Errorf("%s: %d epochs lead from %v to %v", name, epochs, own, now)
		}
		data, _ := first.MarshalBinary()
		read := Must(UnmarshalModel(data))(t)
		if _, again := fit(WithModel(read), WithEpochs(epochs)); !slices.Equal(again, went) {
			t.Errorf("%s: from a file another history", name)
		}
	}
}

// TestWithModelOfBQMF: a BQMF that goes on ends after fewer epochs than one from nothing and predicts unseen
// cells as well, of the same samples, with more, and of others alone; a file makes no difference, nor does an
// end on the way; features that were constant, and as many components as fit, are no trouble.
func TestWithModelOfBQMF(t *testing.T) {
	Slow(t)
	t.Parallel()
	x := bentTable(16, 60, 1)
	for j := range 45 {
		x.Set(7, j, 2) // constant in what the model has seen
	}
	fit := func(x Mat, opts ...FitOption) *BQMF { return Fitted(t, FitBQMF, x, 0, opts...) }
	first := fit(Part(x, 0, 45))
	for what, some := range map[string]Mat{"the same": Part(x, 0, 45), "more": x, "others": Part(x, 45, 60),
		"few": Part(x, 45, 51)} {
		anew, on := fit(some), fit(some, WithModel(first))
		if what == "the same" {
			anew = first
		}
		most := (len(anew.History) - 1) / 2
		if what == "few" {
			most = len(anew.History) - 2
		}
		if len(on.History)-1 > most || !(on.LeaveOneOut <= 1.1*anew.LeaveOneOut) ||
			on.Rank() > min(first.Rank(), anew.Rank()) && what == "few" {
			t.Errorf("%s: %d epochs for %d, leave-one-out %v for %v, %d components", what, len(on.History)-1,
				len(anew.History)-1, on.LeaveOneOut, anew.LeaveOneOut, on.Rank())
		}
		if what == "the same" && !(math.Abs(on.History[1]-first.History[len(first.History)-1]) < 0.01) {
			t.Errorf("begins at %v, where the model ended at %v", on.History[1], first.History)
		}
	}
	from := WithModel(Must(UnmarshalModel(FileOf(t, first)))(t))
	two := []FitOption{WithEpochs(2), WithTolerance(1e-9)}
	var states [][]byte
	on, again := fit(x, append(two, WithModel(first))...), fit(x, append(two, from, Keep(&states))...)
	resume := WithResume(states[0])
	resumed := fit(x, append(two, from, resume)...)
	for what, m := range map[string]*BQMF{"from a file": again, "resumed": resumed} {
		if !slices.Equal(m.U.Data, on.U.Data) || !slices.Equal(m.History, on.History) {
			t.Errorf("%s: another model", what)
		}
	}
	if err := ErrorOf(FitBQMF(t.Context(), x, 0, append(two, resume)...)); !Typed(err) {
		t.Errorf("resumed without the model: %v", err)
	}
	held := fit(x, WithModel(first), WithEpochs(3), WithValidation(0.1))
	if len(held.Validation) != len(held.History) {
		t.Errorf("%d losses of held-out cells, %d of others", len(held.Validation), len(held.History))
	}
}

// TestWithModelErrors: what has no way to go on is a typed error.
func TestWithModelErrors(t *testing.T) {
	t.Parallel()
	x, models := smallModels(t)
	nmf, qmf := models[MethodNMF].(*NMF), models[MethodQMF].(*QMF)
	changed := *qmf
	changed.U = NewMat(6, 2)
	u, v := nmf.Factors()
	wide := NewMat(7, 9)
	refused := func(name string, method Method, x Rows, rank int, opts ...FitOption) {
		t.Helper()
		if m, err := Fit(t.Context(), method, x, rank, opts...); m != nil || !Typed(err) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	ofNMF, ofQMF := WithModel(nmf), WithModel(qmf)
	ofQMFQ, ofBQMF := WithModel(models[MethodQMFQ]), WithModel(models[MethodBQMF])
	refused("no model", MethodNMF, x, 2, WithModel(nil))
	refused("a nil pointer", MethodNMF, x, 2, WithModel((*NMF)(nil)))
	refused("another method", MethodNMF, x, 2, ofQMF)
	refused("a BQMF", MethodQMF, x, 2, ofBQMF)
	refused("into a BQMF", MethodBQMF, x, 2, ofNMF)
	refused("into a QMFQ", MethodQMFQ, x, 2, ofNMF)
	refused("another rank", MethodQMF, x, 3, ofQMF)
	refused("other levels", MethodQMF, x, 2, ofQMF, WithLevels(5))
	refused("pinned ends", MethodQMF, x, 2, ofQMF, WithEnds(EndsPinned))
	refused("a QMFQ of another rank", MethodQMFQ, x, 3, ofQMFQ)
	refused("a QMFQ with pinned ends", MethodQMFQ, x, 2, ofQMFQ, WithEnds(EndsPinned))
	refused("a QMFQ by vectors", MethodQMFQ, x, 2, ofQMFQ, WithProjection(TruncatedSVD()))
	refused("a BQMF of other features", MethodBQMF, wide, 2, ofBQMF)
	refused("a BQMF and no matrix", MethodBQMF, nil, 2, ofBQMF)
	refused("a nil BQMF", MethodBQMF, x, 2, WithModel((*BQMF)(nil)))
	refused("given factors", MethodNMF, x, 2, ofNMF, WithInit(u, v))
	refused("a start", MethodQMF, x, 2, ofQMF, WithStart(StartNMF))
	refused("restarts", MethodQMF, x, 2, ofQMF, WithRestarts(2))
	refused("other features", MethodQMF, wide, 2, ofQMF)
	refused("a changed field", MethodQMF, x, 2, WithModel(&changed))
	refused("the zero value", MethodQMF, x, 2, WithModel(&QMF{}))
	refused("no matrix at all", MethodQMF, nil, 2, ofQMF)
}
