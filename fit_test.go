package quantmf

// Tests of the driver of fits: cancellation and progress, validation, patience, restarts,
// and fits of no epochs.

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/qmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestFirstPatience: a fit is not ended by the loss it starts from being seen twice,
// nor by rows seen in passing; and what is judged has its penalty.
func TestFirstPatience(t *testing.T) {
	x := toy(5)
	x.Rows = 30
	for name, opts := range map[string][]FitOption{
		"one batch": {WithStart(StartUniform)},
		"batches":   {WithBatch(8)},
	} {
		q := Fitted(t, FitQMF, x, 4, append(opts, WithPatience(1), WithEpochs(60))...)
		for e := 1; e < len(q.History)-2; e++ {
			if q.History[e] > q.History[e-1]*(1-fit.Worthwhile) {
				t.Errorf("%s: epoch %d gained nothing and %d more followed", name, e, len(q.History)-1-e)
			}
		}
		if len(q.History) < 5 {
			t.Errorf("%s: ended after %v", name, q.History)
		}
		if loss, _ := q.Loss(x); math.Abs(loss-q.History[len(q.History)-1]) > 1e-12*loss {
			t.Errorf("%s: the last entry is %v, the loss %v", name, q.History[len(q.History)-1], loss)
		}
	}
	const penalty = 5
	whole := func(opts ...FitOption) float64 {
		m := Fitted(t, FitNMF, x, 4, append(opts, WithPenalties(evenly(penalty, 4)))...)
		return m.objective(&qmf.Settings{Penalties: nmf.Penalties(evenly(penalty, 4))})
	}
	if patient, full := whole(WithPatience(3), WithEpochs(2000)),
		whole(WithEpochs(2000)); patient > 1.01*full {
		t.Errorf("ended by patience at %v, where %v is within reach", patient, full)
	}
}

// TestObjective: fits are compared by the loss on held-out cells where there are any, otherwise by the loss
// at the best epoch and the penalty, of an NMF the means of U and V, of a QMF half of the mean squares of
// their logarithms.
func TestObjective(t *testing.T) {
	u := Must(MatOf([]float64{1, 2}, []float64{4, 0.5}, []float64{1, 1}))(t)
	v := Must(MatOf([]float64{3, 1}, []float64{0.25, 8}))(t)
	square := func(of ...float64) (s float64) {
		for _, v := range of {
			s += math.Log(v) * math.Log(v) / float64(len(of))
		}
		return s
	}
	means, logs := (1+2+4+0.5+1+1)/6+(3+1+0.25+8)/4, (square(1, 2, 4, 0.5, 1, 1)+square(3, 1, 0.25, 8))/2
	of := Factorisation{U: u, V: v, History: []float64{9, 7, 8}, Best: 1}
	held := of
	held.Validation = []float64{5, 6, 4}
	for _, penalty := range []float64{0, 0.3, 20} {
		c := qmf.Settings{Penalty: penalty, Penalties: nmf.Penalties(evenly(penalty, 2))}
		NearAll(t, []float64{(&NMF{Factorisation: of}).objective(&c),
			(&QMF{Factorisation: of}).objective(&c),
			(&NMF{Factorisation: held}).objective(&c),
			(&QMF{Factorisation: held}).objective(&c)}, []float64{7 + penalty*means, 7 + penalty*logs, 6, 6},
			1e-12, "objectives")
	}
}

// TestRestartsObjective: of several seeds the one with the least loss and penalty
// together is returned, which is neither the first nor that of the least loss.
func TestRestartsObjective(t *testing.T) {
	x := first(toy(5), 14)
	for i := range x.Data {
		x.Data[i] += 0.01
	}
	const seeds = 5
	means := func(m Mat, of func(float64) float64) float64 {
		sum := 0.0
		for i := range m.Rows {
			for _, v := range m.Row(i) {
				sum += of(v)
			}
		}
		return sum / float64(m.Rows*m.Cols)
	}
	same := func(v float64) float64 { return v }
	square := func(v float64) float64 { return math.Log(v) * math.Log(v) }
	for _, c := range []struct {
		method  Method
		penalty float64
		from    uint64 // the first seed
		regular func(u, v Mat) float64
		option  FitOption // that has the penalty, where there is one
	}{
		{MethodNMF, 10, 14, func(u, v Mat) float64 { return means(u, same) + means(v, same) },
			WithPenalties(evenly(10, 3))},
		{MethodQMF, 10, 0, func(u, v Mat) float64 { return (means(u, square) + means(v, square)) / 2 },
			WithPenalty(10)},
		{MethodQMFQ, 0, 0, func(u, v Mat) float64 { return 0 }, WithWorkers(1)},
	} {
		fit := func(o ...FitOption) Model {
			return Fitted(t, By(c.method), x, 3, append(o, WithEpochs(3), WithStart(StartUniform),
				c.option)...)
		}
		var losses, objectives []float64
		var models []Model
		for seed := range uint64(seeds) {
			m := fit(WithSeed(c.from + seed))
			u, v := m.Factors()
			loss := MeanOver(1, x, m.Reconstruct(), func(int, int) bool { return true })
			losses, objectives, models = append(losses, loss),
				append(objectives, loss+c.penalty*c.regular(u, v)), append(models, m)
		}
		want := slices.Index(objectives, slices.Min(objectives))
		if want == 0 || c.penalty > 0 && want == slices.Index(losses, slices.Min(losses)) {
			t.Errorf("%v: losses %v, with penalty %v: nothing is tested", c.method, losses, objectives)
		}
		u, v := fit(WithSeed(c.from), WithRestarts(seeds)).Factors()
		wantU, wantV := models[want].Factors()
		NearAll(t, u.Data, wantU.Data, 0, "%v: U", c.method)
		NearAll(t, v.Data, wantV.Data, 0, "%v: V", c.method)
	}
}

// TestFitsOfBetaNearby: a fit is continuous in β where it passes 0 and 1.
func TestFitsOfBetaNearby(t *testing.T) {
	x := near1(9, 10, 16)
	tenth := 0.0
	for range 10 {
		tenth += 0.1
	}
	start := Fitted(t, FitNMF, x, 2, WithEpochs(20))
	for method := range MethodBQMF {
		for _, c := range some([]struct{ beta, near float64 }{{1, tenth}, {1, 1 + 0x1p-52}, {1, 1 + 1e-12},
			{0, 1e-12}, {0, -5e-324}, {0, -1e-14}}, 0, 4) {
			opts := func(beta float64) []FitOption {
				o := append(quick(method), WithLoss(Beta(beta)), WithEpochs(5))
				if method == MethodNMF { // Newton's method takes β = 1 itself alone
					o = append(o, WithUpdates(UpdatesMultiplicative))
				} else { // and so does the NMF that they start from
					o = append(o, WithInit(start.U, start.V))
				}
				return o
			}
			a := Fitted(t, By(method), x, 2, opts(c.beta)...)
			b := Fitted(t, By(method), x, 2, opts(c.near)...)
			want, _ := a.Loss(x)
			got, _ := b.Loss(x)
			if math.Abs(got-want) > 1e-6*want {
				t.Errorf("%v: at β %v %v, at %v %v", method, c.near, got, c.beta, want)
			}
			if d := largestDifference(a.Reconstruct().Data, b.Reconstruct().Data); d > 1e-4 {
				t.Errorf("%v: at β %v another fit than at %v, by %v", method, c.near, c.beta, d)
			}
		}
	}
}

// TestLosses: under every divergence a QMF ends below an NMF, and its last loss is that of the model.
func TestLosses(t *testing.T) {
	Slow(t)
	const epochs = 40
	x := first(toy(5), 16)
	for i := range x.Data {
		x.Data[i] += 0.01
	}
	for _, l := range []Loss{KL, Frobenius, Beta(0), -1, 0.5, 1.5, 3} {
		n := Fitted(t, FitNMF, x, 5, WithLoss(l), WithEpochs(epochs))
		for _, ends := range []Ends{EndsFree, EndsPinned} {
			// the others with one of the two
			if !Long && l != KL && (ends == EndsPinned) != (l == Frobenius || l == 1.5 || l == Beta(0)) {
				continue
			}
			q := Fitted(t, FitQMF, x, 5, WithLoss(l), WithEpochs(epochs), WithEnds(ends),
				WithShrinkage(0))
			if q.History[epochs] > n.History[epochs] || len(q.Warnings) > 0 {
				t.Errorf("β=%g, %v: QMF %v, NMF %v", l, ends, q.History[epochs], n.History[epochs])
			}
			got := Must(q.Loss(x))(t)
			Near(t, got, q.History[epochs], 1e-9*got, "β=%g: Loss, by History", l)
		}
	}
}
