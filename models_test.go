package quantmf_test

// This file tests what holds of every model, however it is fitted: properties by ways. A way is a model with
// options and a matrix for which its fits take another path than those of other ways.

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

type way struct {
	name   string
	method Method
	x      Mat // small, of whole numbers, which are exact in single precision
	loss   Loss
	opts   []FitOption
}

const rank = 3

// fit is a fit of x. Options count in place of those of the way. The model is nil where there is none.
func (w way) fit(ctx context.Context, x Rows, opts ...FitOption) (Model, error) {
	return Fit(ctx, w.method, x, rank, append(append([]FitOption{WithLoss(w.loss)}, w.opts...), opts...)...)
}

// Must is a fit that succeeds.
func (w way) must(t *testing.T, x Rows, opts ...FitOption) Model {
	t.Helper()
	m := Must(w.fit(t.Context(), x, opts...))(t)
	return m
}

// says tells whether the name of the way does.
func (w way) says(what string) bool { return strings.Contains(w.name, what) }

func (w way) empty() Model {
	return [...]Model{new(NMF), new(QMF), new(QMFQ), new(BQMF)}[w.method]
}

// numbers is a matrix of whole numbers, with ties, and some zeros but for a lift.
func numbers(d, n int, lift float64) Mat {
	x := SparseCounts(d, n, 5)
	for i := range x.Data {
		x.Data[i] = math.Floor(x.Data[i]/2) + float64(i*i%3) + lift
	}
	return x
}

// either is a where is holds, else b.
func either[T any](is bool, a, b T) T {
	if is {
		return a
	}
	return b
}

// with is a copy of x in which of has changed some cells.
func with(x Mat, of func(i, j int, v float64) float64) Mat {
	x = x.Clone()
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			x.Set(i, j, of(i, j, v))
		}
	}
	return x
}

// ways are those of d × n matrices.
func ways(d, n int) []way {
	hide := func(i, j int, v float64) float64 {
		if (5*i+j)%9 == 4 {
			return math.NaN()
		}
		return v
	}
	flat := func(i, _ int, v float64) float64 {
		return either(i%8 == 4, float64(i), v)
	}
	plain, positive := with(numbers(d, n, 0), flat), numbers(d, n, 1)
	holed := with(plain, hide)
	signed := with(plain, func(i, _ int, v float64) float64 { return v - float64(3*(i%3)) })
	thin := with(SparseCounts(90, 40, 3), func(i, j int, v float64) float64 {
		return either((40*i+j)%3 == 0 || j == i%40, v, 0)
	})
	samples, cells := make([]float64, n), plain.Clone()
	for i := range cells.Data {
		cells.Data[i] = float64(1+i%5) / 4
		samples[i%n] = float64(3-i%n%3) / 2
	}
	of := func(opts ...FitOption) []FitOption { return opts }
	// A fit of a QMF has fewer levels, and fits that cost more have fewer epochs, than by default.
	maps := func(opts ...FitOption) []FitOption {
		return append(of(WithLevels(4), WithEpochs(4)), opts...)
	}
	missing := WithMissingValues()
	return []way{
		{"NMF", MethodNMF, plain, KL, of(WithEpochs(7))},
		{"NMF, thin", MethodNMF, thin, KL, of(WithEpochs(7))},
		{"NMF, updates, penalty, restarts", MethodNMF, plain, KL, of(WithUpdates(UpdatesMultiplicative),
			WithPenalties(Penalties{L1U: 1, L1V: 0.5}), WithRestarts(3), WithEpochs(4))},
		{"NMF, Frobenius, hidden, validation, penalty", MethodNMF, holed, Frobenius, of(missing,
			WithValidation(0.1), WithPenalties(Penalties{L1V: 0.01, L2U: 0.02, L2V: 0.003}), WithEpochs(8))},
		{"NMF, beta, vectors, validation, patience", MethodNMF, positive, Beta(0.5),
			of(WithStart(StartSVD), WithValidation(0.1), WithPatience(2), WithEpochs(12))},
		{"NMF, weights, hidden, validation", MethodNMF, holed, KL, of(missing, WithValidation(0.1),
			WithSampleWeights(samples), WithCellWeights(cells), WithEpochs(8))},
		{"NMF, weights, Frobenius, restarts", MethodNMF, plain, Frobenius, of(WithCellWeights(cells),
			WithRestarts(2), WithEpochs(6))},
		{"NMF, weights, beta, updates", MethodNMF, positive, Beta(1.5), of(WithSampleWeights(samples),
			WithUpdates(UpdatesMultiplicative), WithEpochs(6))},
		{"QMF", MethodQMF, plain, KL, maps()},
		{"QMF, paper, penalty", MethodQMF, plain, KL, maps(WithStart(StartUniform), WithEnds(EndsPinned),
			WithSchedule(ScheduleConstant), WithPenalty(0.5))},
		{"QMF, one batch, hidden, restarts", MethodQMF, holed, KL, maps(missing, WithBatch(100),
			WithStart(StartNMF), WithShrinkage(5), WithRestarts(2))},
		{"QMF, beta, hidden, validation, restarts, patience", MethodQMF, with(positive, hide), Beta(1.5),
			maps(missing,
				WithValidation(0.1), WithRestarts(2), WithPatience(1), WithBatch(5),
				WithMaxIterations(2))},
		{"QMF, signed", MethodQMF, signed, Frobenius, maps(WithStart(StartScores),
			WithShrinkage(20), WithSquash(SquashArctan), WithSeed(3))}, // of 1 rounding moves a far sample
		{"QMF, signed, raw, batches", MethodQMF, signed, Frobenius, maps(WithSquash(SquashNone),
			WithEpsilon(0.1), WithBatch(5))},
		{"QMF, weights, hidden, validation", MethodQMF, holed, KL, maps(missing, WithValidation(0.1),
			WithSampleWeights(samples), WithCellWeights(cells))},
		{"QMF, weights, signed, one batch", MethodQMF, signed, Frobenius, maps(WithCellWeights(cells),
			WithBatch(100), WithStart(StartScores))},
		{"QMFQ", MethodQMFQ, plain, KL, maps(WithProjection(KLUpdates(3)))},
		{"QMFQ, vectors", MethodQMFQ, positive, KL,
			maps(WithProjection(TruncatedSVD()), WithStart(StartUniform),
				WithSchedule(ScheduleConstant))},
		{"QMFQ, hidden, validation, restarts, patience", MethodQMFQ, holed, KL, maps(missing,
			WithProjection(FrobeniusUpdates(5)), WithStart(StartUniform), WithValidation(0.1),
			WithRestarts(2), WithPatience(1), WithMaxIterations(2), WithLearningRate(0.5))},
		{"QMFQ, signed", MethodQMFQ, signed, Frobenius, maps(WithEnds(EndsPinned),
			WithProjection(KLUpdates(5)))},
		{"QMFQ, weights, hidden", MethodQMFQ, holed, KL, maps(missing, WithProjection(KLUpdates(3)),
			WithSampleWeights(samples), WithCellWeights(cells))},
		{"BQMF", MethodBQMF, positive, KL, of(WithEpochs(8))},
		{"BQMF, hidden, validation", MethodBQMF, holed, KL, of(missing, WithValidation(0.1), WithEpochs(6))},
		{"BQMF, hidden, corrections", MethodBQMF, kin(16, 80), KL, of(missing, WithEpochs(3))},
		{"BQMF, weights, hidden, validation", MethodBQMF, holed, KL, of(missing, WithValidation(0.1),
			WithSampleWeights(samples), WithCellWeights(cells), WithEpochs(6))},
		{"BQMF, weights, signed", MethodBQMF, signed, Frobenius, of(WithSampleWeights(samples),
			WithEpochs(8))},
		{"BQMF, signed, rests", MethodBQMF, signed, Frobenius, of(WithTolerance(0.05))},
	}
}

// each tests a property by all ways, side by side; -short takes one of three, of smaller matrices.
func each(t *testing.T, holds func(t *testing.T, w way)) {
	d, n := 16, 21
	if testing.Short() {
		d, n = 12, 15
	}
	for i, w := range ways(d, n) {
		if testing.Short() && i%3 != 0 {
			continue
		}
		if testing.Short() && w.method == MethodBQMF { // whose epochs cost most
			w.opts = append(w.opts, WithEpochs(3))
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			holds(t, w)
		})
	}
}

// TestResume: from every state that a fit can save the rest of it gives the fit that never stopped: its bits,
// losses, best epoch and warnings. Saving changes nothing.
func TestResume(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		var states [][]byte
		want, saving := w.must(t, w.x), w.must(t, w.x, Keep(&states))
		if !reflect.DeepEqual(saving, want) {
			t.Error("saving changes the fit")
		}
		if epochs := len(Common(want).History) - 1; len(states) < epochs || epochs < 1 {
			t.Errorf("%d states of %d epochs", len(states), epochs)
		}
		for i, s := range states {
			m, other := w.must(t, w.x, WithResume(s)), w.must(t, w.x, WithResume(s), WithWorkers(1+i%3))
			if !reflect.DeepEqual(m, want) || !bytes.Equal(FileOf(t, other), FileOf(t, want)) {
				t.Errorf("state %d of %d: another model", i, len(states))
			}
		}
	})
}

// TestExtends: where no epoch depends on their number, a fit goes on for more of them, from its end or from
// before, to the fit that was asked for so many at once. Where one does, and for fewer than are done, the
// error says why.
func TestExtends(t *testing.T) {
	Slow(t)
	each(t, func(t *testing.T, w way) {
		if w.says("patience") || w.says("rests") { // which end a fit before its last epoch
			return
		}
		var falls, states [][]byte
		maps := w.method == MethodQMF || w.method == MethodQMFQ
		refused := func(why string, m Model, err error) {
			t.Helper()
			if OptionOf(err) != "WithEpochs" || !strings.Contains(err.Error(), why) || m != nil {
				t.Errorf("%v, want %s", err, why)
			}
		}
		if maps {
			w.must(t, w.x, WithSchedule(ScheduleCosine), WithEpochs(3), Keep(&falls))
			m, err := w.fit(t.Context(), w.x, WithSchedule(ScheduleCosine), WithEpochs(5),
				WithResume(falls[2]))
			refused(either(w.says("restarts"), "", "over which the learning rate falls to 0"), m, err)
			w.opts = append(slices.Clone(w.opts), WithSchedule(ScheduleConstant))
		}
		w.must(t, w.x, WithEpochs(6), Keep(&states))
		last := len(states) - 1
		m, err := w.fit(t.Context(), w.x, WithEpochs(2), WithResume(states[min(last, 5)]))
		refused("the state was saved with 6, of which ", m, err)
		if w.says("restarts") {
			m, err := w.fit(t.Context(), w.x, WithEpochs(9), WithResume(states[last]))
			refused("which restarts before have ended with", m, err)
			return
		}
		want := w.must(t, w.x, WithEpochs(11))
		for _, from := range []int{1, 3, last} {
			if m := w.must(t, w.x, WithEpochs(11), WithResume(states[from])); !reflect.DeepEqual(m, want) {
				t.Errorf("from state %d: another model", from)
			}
		}
	})
}

// TestOtherStates: a state that is damaged, or of another matrix, rank, seed or model, is refused with an
// error that says which.
func TestOtherStates(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		var states [][]byte
		w.must(t, w.x, Keep(&states))
		state := states[len(states)/2]
		refused := func(what string, m Model, err error, as any) {
			t.Helper()
			if !errors.As(err, as) || m != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		var format *FormatError
		for at := 0; at < len(state); at += 1 + len(state)/100 {
			broken := bytes.Clone(state)
			broken[at] ^= 1 << (at % 8)
			m, err := w.fit(t.Context(), w.x, WithResume(broken))
			refused("byte "+strconv.Itoa(at)+" changed", m, err, &format)
			m, err = w.fit(t.Context(), w.x, WithResume(state[:at:at]))
			if at > 0 {
				refused("cut at "+strconv.Itoa(at), m, err, &format)
			}
		}
		var option *OptionError
		resume := WithResume(state)
		m, err := w.fit(t.Context(), w.x, WithResume(nil))
		refused("an empty state", m, err, &option)
		m, err = w.fit(t.Context(), w.x, WithSeed(2), resume)
		if refused("another seed", m, err, &option); OptionOf(err) != "WithSeed" {
			t.Errorf("another seed: %v", err)
		}
		m, err = Fit(t.Context(), w.method, w.x, rank-1,
			append(slices.Clone(w.opts), WithLoss(w.loss), resume)...)
		if refused("another rank", m, err, &option); OptionOf(err) != "rank" {
			t.Errorf("another rank: %v", err)
		}
		for method := range MethodBQMF + 1 {
			if method != w.method && w.loss == KL {
				m, err := Fit(t.Context(), method, w.x, rank, WithLoss(w.loss), WithMissingValues(), resume)
				refused("a state of another model", m, err, &format)
			}
		}
		var data *DataError
		m, err = w.fit(t.Context(), with(w.x, func(i, j int, v float64) float64 {
			return v + either(i+j == 0, 1.0, 0)
		}), resume)
		refused("another matrix", m, err, &data)
	})
}

// TestSameBits: the model and the states of a fit have the same bits for any number of workers, whatever
// holds its matrix, and whatever the sign of zeros; and the fit changes nothing of that.
func TestSameBits(t *testing.T) { each(t, sameBits) }

// TestSameBitsOfMany: where samples are many, too.
func TestSameBitsOfMany(t *testing.T) {
	Slow(t)
	Small(t)
	each(t, sameBits)
}

func sameBits(t *testing.T, w way) {
	before := w.x.Clone()
	var want, states [][]byte
	m := w.must(t, w.x, Keep(&want), WithWorkers(1))
	same := func(what string, x Rows, workers int) {
		states = nil
		got := w.must(t, x, Keep(&states), WithWorkers(workers))
		if !bytes.Equal(FileOf(t, got), FileOf(t, m)) ||
			!slices.EqualFunc(states, want, bytes.Equal) {
			t.Errorf("%s, %d workers: other bits", what, workers)
		}
	}
	same("matrix", w.x, 7)
	for holder, x := range Holders(t, w.x) {
		same(holder, x, 2)
	}
	if !SameBits(w.x.Data, before.Data) {
		t.Fatal("the fit has changed its matrix")
	}
	y := with(w.x, func(i, j int, v float64) float64 {
		return either(v == 0 && j%2 == 0, math.Copysign(0, -1), v)
	})
	if !bytes.Equal(FileOf(t, w.must(t, y)), FileOf(t, m)) {
		t.Error("-0 makes another model")
	}
}

// TestStops: wherever a fit is stopped, by its context or by an error of what it calls, the error says so and
// wraps the cause, the model so far is whole, nothing is begun after it, and no goroutine is left. Where the
// context has ended before, there is no model.
func TestStops(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() { AllEnd(t, before) })
	each(t, func(t *testing.T, w way) {
		cause, epochs := errors.New("enough"), 0
		check := func(where string, m Model, err, why error) {
			t.Helper()
			if !errors.Is(err, why) || strings.Count(err.Error(), "stopped after epoch ") != 1 {
				t.Fatalf("%s: %v", where, err)
			}
			if begun := where != "at look 1"; m == nil || !begun {
				if (m != nil) != begun {
					t.Errorf("%s: a model: %v, %v", where, m != nil, err)
				}
				return
			}
			f := Common(m)
			// During a start an NMF has no losses yet.
			if len(f.History) > epochs+1 || f.Best > max(len(f.History)-1, 0) ||
				f.Validation != nil && len(f.Validation) != len(f.History) {
				t.Errorf("%s: %d losses, %d of held-out cells, the best %d; %v", where, len(f.History),
					len(f.Validation), f.Best, err)
			}
			if j := NotFinite(m.Reconstruct().Data); j >= 0 {
				t.Errorf("%s: cell %d is not finite", where, j)
			}
			if _, err := UnmarshalModel(FileOf(t, m)); err != nil {
				t.Errorf("%s: the model cannot be read: %v", where, err)
			}
			// What the model says is what History says, but for steps of an epoch that was not finished.
			loss, lossErr := m.Loss(w.x)
			if lossErr != nil {
				t.Errorf("%s: %v", where, lossErr)
			} else if exact := w.method == MethodQMF || w.method == MethodQMFQ; exact &&
				!w.says("validation") && !w.says("weights") && math.Abs(loss-f.History[f.Best]) > 1e-11*loss {
				t.Errorf("%s: Loss %v, History %v, best %d", where, loss, f.History, f.Best)
			}
		}
		whole := &Ending{Context: t.Context()}
		var told []Progress
		tell := func(p Progress) error { told = append(told, p); return nil }
		m := Must(w.fit(whole, w.x, WithWorkers(1), WithProgress(tell)))(t)
		epochs = len(Common(m).History) - 1
		for _, p := range told {
			epochs = max(epochs, p.Epoch)
		}
		for at := int64(1); at < whole.Asked; at += 1 + whole.Asked/11 {
			ended := &Ending{Context: t.Context(), At: at}
			m, err := w.fit(ended, w.x, WithWorkers(1))
			check("at look "+strconv.FormatInt(at, 10), m, err, context.Canceled)
			// Each row or sample that is left of the loop under way looks once, and the loops behind it find
			// the end at their first look; that of the scales of a BQMF gives each row its mean.
			if late := ended.Asked - at; late > int64(20+w.x.Rows+max(w.x.Rows, w.x.Cols)) {
				t.Errorf("ended at look %d of %d: %d looks follow", at, whole.Asked, late)
			}
		}
		// a number of looks that the workers decide
		for at := int64(1); at < whole.Asked; at += 1 + whole.Asked/3 {
			m, err := w.fit(&Ending{Context: t.Context(), At: at}, w.x, WithWorkers(3))
			if err != nil {
				check("at look "+strconv.FormatInt(at, 10), m, err, context.Canceled)
			}
		}
		last := Phase(255)
		for at, p := range told {
			if p.Phase == last && p.Phase != PhaseEpochs {
				continue // of each phase the first report, and each epoch
			}
			last = p.Phase
			count := 0
			fault := WithProgress(func(Progress) error {
				if count++; count == at+1 {
					return cause
				}
				return nil
			})
			m, err := w.fit(t.Context(), w.x, WithWorkers(1), fault)
			check("report "+strconv.Itoa(at), m, err, cause)
			if says := "after epoch " + strconv.Itoa(p.Epoch); !strings.Contains(err.Error(), says) {
				t.Errorf("stopped %s by the report: %v", says, err)
			}
		}
		m, err := w.fit(t.Context(), w.x, WithCheckpoint(2, func([]byte) error { return cause }))
		check("saving", m, err, cause)
	})
}

// TestProgress: a fit goes through its phases in their order, each with a share that rises to 1, and the last
// report has the loss of the last epoch.
func TestProgress(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		var told []Progress
		m := w.must(t, w.x, WithProgress(func(p Progress) error { told = append(told, p); return nil }))
		phases := map[Method][]Phase{MethodNMF: {PhaseFactors, PhaseEpochs},
			MethodQMF:  {PhaseChoice, PhaseFactors, PhaseMaps, PhaseEpochs},
			MethodQMFQ: {PhaseChoice, PhaseFactors, PhaseMaps, PhaseQMF, PhaseMaps, PhaseEpochs},
			MethodBQMF: {PhaseFactors, PhaseEpochs}}[w.method]
		if told[0].Done != 0 && w.method != MethodQMFQ {
			t.Errorf("the first report is %+v", told[0])
		}
		at, last := 0, Progress{Done: -1, Phase: told[0].Phase}
		if at := slices.IndexFunc(told, func(p Progress) bool { return p.Phase == PhaseEpochs }); w.method ==
			MethodBQMF && told[at].Epoch != 0 {
			t.Errorf("before the first epoch, which may take seconds, nothing is told: %+v", told[at])
		}
		for _, p := range told {
			if p.Phase != last.Phase {
				if last.Done != 1 && last.Phase != PhaseFactors {
					t.Errorf("%v ends at %v", last.Phase, last.Done)
				}
				for at < len(phases) && phases[at] != p.Phase {
					at++
				}
				if at == len(phases) && p.Phase == phases[0] || w.says("restarts") && p.Phase < last.Phase {
					at, last = 0, Progress{Done: -1} // the next restart
				} else if at == len(phases) {
					t.Fatalf("%v after %v", p.Phase, last.Phase)
				}
			} else if p.Done < last.Done && !w.says("restarts") {
				t.Errorf("%v falls from %v to %v", p.Phase, last.Done, p.Done)
			}
			if !(p.Done >= 0 && p.Done <= 1) || p.Epochs < len(Common(m).History)-1 || p.Rows != w.x.Rows ||
				p.Phase != PhaseEpochs && (p.Epoch > 0 || p.Loss != 0) || p.Phase == PhaseEpochs &&
				p.Loss == 0 {
				t.Errorf("%+v", p)
			}
			last = p
		}
		// Where all rows are one batch, an epoch tells the loss of the state before it; in batches, of rows
		// as they were seen.
		if h := Common(m).History; last.Phase != PhaseEpochs || !w.says("restarts") && !w.says("batches") &&
			(last.Epoch != len(h)-1 || !slices.Contains(h[len(h)-2:], last.Loss)) {
			t.Errorf("the last report is %+v, History %v", last, h)
		}
	})
}

// TestUnits: in another unit, a power of 4, the fit is the same in that unit, and so are its losses. A
// constant added to a row of either sign is added to what is fitted.
func TestUnits(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		if w.says("raw") { // which transports numbers as they are
			return
		}
		want := w.must(t, w.x)
		if w.says("signed") && w.method != MethodBQMF {
			y := with(w.x, func(i, _ int, v float64) float64 { return v + float64(4*(3*i%7)) - 12 })
			shifted, fit := w.must(t, y).Reconstruct(), want.Reconstruct()
			for i, v := range shifted.Data {
				if d := v - y.Data[i] - (fit.Data[i] - w.x.Data[i]); !(math.Abs(d) <= 1e-11) {
					t.Fatalf("shifted, cell %d is off by %v", i, d)
				}
			}
		}
		for _, e := range []int{-960, -266, 60} {
			if e == -960 && (w.loss < 1 || w.says("penalty")) {
				continue
			}
			y, unit := TimesPower(w.x, e), math.Exp2(float64(w.loss)*float64(e))
			var opts []FitOption
			switch { // a penalty is in the unit of the loss, and that of an NMF on factors in the unit's root
			case w.says("NMF, updates"):
				by := unit / math.Exp2(float64(e/2))
				opts = append(opts, WithPenalties(Penalties{L1U: by, L1V: 0.5 * by}))
			case w.says("NMF, Frobenius"):
				by, square := unit/math.Exp2(float64(e/2)), unit/math.Exp2(float64(e))
				opts = append(opts, WithPenalties(Penalties{L1V: 0.01 * by, L2U: 0.02 * square,
					L2V: 0.003 * square}))
			case w.says("QMF, paper"):
				opts = append(opts, WithPenalty(0.5*unit))
			}
			told := 0.0
			opts = append(opts, WithProgress(func(p Progress) error { told = p.Loss; return nil }))
			got := w.must(t, y, opts...)
			alike := func(what string, got, want []float64, unit, within float64) {
				t.Helper()
				top := 0.0
				for _, v := range want {
					top = max(top, math.Abs(v))
				}
				for i, v := range want {
					if !(math.Abs(got[i]/unit-v) <= within*top) {
						t.Fatalf("unit 2^%d: %s %d is %v, want %v", e, what, i, got[i]/unit, v)
					}
				}
			}
			alike("cell", TimesPower(got.Reconstruct(), -e).Data, want.Reconstruct().Data, 1, 1e-7)
			if unit < 1e-290 {
				continue // losses vanish
			}
			a, b := Common(want), Common(got)
			if w.method == MethodBQMF {
				unit = 1 // nats
			}
			alike("loss", append(slices.Clone(b.History), told), append(slices.Clone(a.History), told/unit),
				unit, 1e-6)
			if w.method == MethodBQMF {
				unit = math.Exp2(float64(w.loss) * float64(e))
				alike("leave-one-out", []float64{got.(*BQMF).LeaveOneOut},
					[]float64{want.(*BQMF).LeaveOneOut}, unit, 1e-6)
			}
			alike("held-out loss", b.Validation, a.Validation, unit, 1e-6)
			score := Answer(t, want.Score, w.x)
			alike("score", []float64{Answer(t, got.Score, y)}, []float64{score}, unit, 1e-6)
			alike("Loss", []float64{Must(got.Loss(y))(t)}, []float64{Must(want.Loss(w.x))(t)}, unit, 1e-6)
			if !w.says("restarts") && w.method != MethodBQMF && !slices.ContainsFunc(b.History,
				func(h float64) bool { return math.Abs(told-h) <= 0.3*h }) {
				t.Errorf("unit 2^%d: progress tells a loss of %v, History %v", e, told, b.History)
			}
		}
	})
}

// TestFiles: a model is read from its file as it was, with sections of the caller's and without. A file that
// is changed in a byte, cut, or of another model is refused, and what it was read into is as before.
func TestFiles(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		m := w.must(t, w.x)
		data := FileOf(t, m)
		back := w.empty().(interface {
			Model
			UnmarshalBinary(b []byte) error
		})
		OK(t, back.UnmarshalBinary(data))
		read := Numbers(t, back, w.x)
		for i, v := range Numbers(t, m, w.x) {
			if !SameBits(read[i], v) {
				t.Errorf("numbers %d of the model that was read are others", i)
			}
		}
		a, b := Common(m), Common(back)
		if b.Best != a.Best || !slices.EqualFunc(b.Warnings, a.Warnings, func(a, b error) bool {
			return a.Error() == b.Error()
		}) {
			t.Errorf("best epoch %d, warnings %v; were %d, %v", b.Best, b.Warnings, a.Best, a.Warnings)
		}
		more := Must(AppendSection(Must(AppendSection(data, "name", []byte("abc")))(t), "made", nil))(t)
		for tag, want := range map[string]string{"name": "abc", "made": ""} {
			if p, has, err := Section(more, tag); string(p) != want || !has || err != nil {
				t.Errorf("section %s: %q, %v, %v", tag, p, has, err)
			}
		}
		if p, has, err := Section(data, "name"); p != nil || has || err != nil {
			t.Errorf("a section that is not there: %v, %v, %v", p, has, err)
		}
		var option *OptionError
		for _, tag := range []string{"name", "WARN", "abc", "abcde", "a1bc"} {
			if _, err := AppendSection(more, tag, nil); !errors.As(err, &option) {
				t.Errorf("tag %q: %v", tag, err)
			}
		}
		if again, err := UnmarshalModel(more); err != nil || !bytes.Equal(FileOf(t, again), data) ||
			reflect.TypeOf(again) != reflect.TypeOf(m) {
			t.Errorf("with sections another model is read: %v", err)
		}
		damaged := func(what string, b []byte) {
			t.Helper()
			var bad *FormatError
			if m, err := UnmarshalModel(b); !errors.As(err, &bad) || m != nil {
				t.Errorf("%s: %v", what, err)
			}
			if p, has, err := Section(b, "name"); !errors.As(err, &bad) || p != nil || has {
				t.Errorf("%s: a section: %v", what, err)
			}
			if err := back.UnmarshalBinary(b); !errors.As(err, &bad) || !bytes.Equal(FileOf(t, back), data) {
				t.Fatalf("%s: %v, or the model is another", what, err)
			}
		}
		for at := 0; at < len(more); at += 1 + len(more)/300 {
			broken := bytes.Clone(more)
			broken[at] ^= 1 << (at % 8)
			damaged("byte "+strconv.Itoa(at), broken)
			damaged("cut at "+strconv.Itoa(at), more[:at])
		}
		damaged("more", append(bytes.Clone(more), 0))
		other := way{method: (w.method + 1) % 4}.empty().(interface{ UnmarshalBinary(b []byte) error })
		var bad *FormatError
		if err := other.UnmarshalBinary(data); !errors.As(err, &bad) || bad.Offset != 12 {
			t.Errorf("read as %T: %v", other, err)
		}
		var states [][]byte
		w.must(t, w.x, Keep(&states))
		if _, err := UnmarshalModel(states[0]); err == nil ||
			err.Error() != "quantmf: model file, byte 12: this is a checkpoint of a fit, not a model" {
			t.Errorf("a checkpoint: %v", err)
		}
	})
}

// means are the mean divergences of the observed cells of x from fit, of each row and of all.
func means(beta float64, x, fit Mat) (rows []float64, all float64) {
	seen := func(i, j int) bool { return !Missing(x)(i, j) }
	for row := range x.Rows {
		rows = append(rows, MeanOver(beta, x, fit, func(i, j int) bool { return i == row && seen(i, j) }))
	}
	return rows, MeanOver(beta, x, fit, seen)
}

// inflated is T(U v), what a model but a BQMF says of samples at v.
func inflated(t *testing.T, m Model, v Mat) Mat {
	u := Common(m).U
	fit := NewMat(u.Rows, v.Cols)
	for i := range fit.Rows {
		at := func(w float64) float64 { return w }
		switch m := m.(type) {
		case *QMF:
			at = Must(m.Map(i))(t).At
		case *QMFQ:
			at = Must(m.Inflate(i))(t).At
		}
		for j := range fit.Cols {
			w := 0.0
			for c, a := range u.Row(i) {
				w += a * v.At(c, j)
			}
			fit.Set(i, j, at(w))
		}
	}
	return fit
}

// TestAnswers: Loss and Goodness are the mean divergence of the observed cells from what the model says,
// Score that of new samples from the model at their coordinates. The last loss of History is Loss. Whatever
// holds the samples, and whichever are beside them, the answers have the same bits, and so they have for
// callers at once. Samples of the fit score no worse than they were fitted.
func TestAnswers(t *testing.T) {
	Small(t)
	each(t, func(t *testing.T, w way) {
		ctx, m, beta := t.Context(), w.must(t, w.x), float64(w.loss)
		near := func(what string, got, want, within float64) {
			t.Helper()
			if !(math.Abs(got-want) <= within*math.Abs(want)) {
				t.Errorf("%s is %v, want %v", what, got, want)
			}
		}
		fit := m.Reconstruct()
		if w.method != MethodBQMF {
			for i, v := range inflated(t, m, Common(m).V).Data {
				near("a fitted cell, by its map", fit.Data[i], v, 1e-11)
			}
		}
		rows, want := means(beta, w.x, fit)
		loss := Must(m.Loss(w.x))(t)
		near("Loss", loss, want, 1e-9)
		if f := Common(m); w.method != MethodBQMF && !w.says("validation") && !w.says("weights") {
			near("the loss of the best epoch", f.History[f.Best], want, 1e-8)
		}
		spreads, _ := means(beta, w.x, RowMeans(w.x))
		good := Must(m.Goodness(w.x))(t)
		for i, g := range good {
			if spreads[i] < 1e-12 {
				if g.Spread != 0 || g.Explained != 0 || w.method != MethodNMF && g.Divergence > 1e-12 {
					t.Errorf("row %d is constant: %+v", i, g)
				}
				continue
			}
			near("Divergence of a row", g.Divergence, rows[i], 1e-9)
			near("Spread of a row", g.Spread, spreads[i], 1e-9)
			near("Explained of a row", 1-g.Explained, rows[i]/spreads[i], 1e-9)
		}
		score, err := m.Score(ctx, w.x)
		// A projection on singular vectors is one of least squares, and a BQMF places samples by its prior
		// too, an NMF by its penalties.
		loose := w.says("vectors") || w.says("penalty") || w.method == MethodBQMF
		if most := either(loose, 1.05, 1+1e-9); err != nil || !(score <= most*loss) {
			t.Errorf("samples of the fit score %v, their loss is %v: %v", score, loss, err)
		}
		y := with(w.x, func(i, j int, v float64) float64 { return v + float64((i+2*j)%3) })
		v, err := m.Transform(ctx, y)
		if err != nil || v.Rows != Common(m).U.Cols || v.Cols != y.Cols {
			t.Fatal(v.Rows, v.Cols, err)
		}
		score = Answer(t, m.Score, y)
		if w.method != MethodBQMF {
			_, want := means(beta, y, inflated(t, m, v))
			near("Score", score, want, 1e-9)
		}
		if q, is := m.(*QMFQ); is {
			checkDeflated(t, w, q, y, v)
		}
		predicted, scores := Answer(t, m.Predict, y), Answer(t, m.Scores, y)
		for j, got := range scores {
			sum, seen := 0.0, 0.0
			for i := range y.Rows {
				if x := y.At(i, j); x == x {
					sum, seen = sum+w.loss.At(x, predicted.At(i, j)), seen+1
				}
			}
			near("Score of a sample", got, sum/seen, 1e-9)
		}
		if placer, is := m.(interface{ Placed(v Mat) (Model, error) }); is {
			if !slices.Equal(Must(placer.Placed(v))(t).Reconstruct().Data, predicted.Data) {
				t.Error("the model placed at Transform is not what Predict says")
			}
		}
		lossY, _ := m.Loss(y)
		goodY, _ := m.Goodness(y)
		same := func(what string, x Rows) {
			got, err := m.Transform(ctx, x)
			if err != nil || !slices.Equal(got.Data, v.Data) {
				t.Errorf("%s: other coordinates: %v", what, err)
			}
			if s, err := m.Score(ctx, x); err != nil || s != score {
				t.Errorf("%s: score %v, want %v: %v", what, s, score, err)
			}
			if p, err := m.Predict(ctx, x); err != nil || !slices.Equal(p.Data, predicted.Data) {
				t.Errorf("%s: other predictions: %v", what, err)
			}
			if s, err := m.Scores(ctx, x); err != nil || !slices.Equal(s, scores) {
				t.Errorf("%s: other scores: %v", what, err)
			}
			if l, err := m.Loss(x); err != nil || l != lossY {
				t.Errorf("%s: loss %v, want %v: %v", what, l, lossY, err)
			}
			if g, err := m.Goodness(x); err != nil || !slices.Equal(g, goodY) {
				t.Errorf("%s: goodness %v, want %v: %v", what, g, goodY, err)
			}
		}
		var callers sync.WaitGroup
		for what, x := range Holders(t, y) {
			callers.Go(func() { same(what, x) })
		}
		callers.Wait()
		for j := range y.Cols {
			one := NewMat(y.Rows, 1)
			for i := range one.Rows {
				one.Set(i, 0, y.At(i, j))
			}
			alone := Answer(t, m.Transform, one)
			for c, a := range alone.Data {
				if a != v.At(c, j) {
					t.Fatalf("sample %d has coordinate %v alone, %v among others", j, a, v.At(c, j))
				}
			}
		}
		for looks := range int64(12) {
			got, err := m.Transform(&Ending{Context: ctx, At: 1 + looks*looks}, y)
			if err != nil && (!errors.Is(err, context.Canceled) || got.Data != nil) || looks == 0 &&
				err == nil {
				t.Errorf("stopped at look %d: %v", 1+looks*looks, err)
			}
			if s, err := m.Score(&Ending{Context: ctx, At: 1 + looks*looks}, y); err != nil &&
				(!errors.Is(err, context.Canceled) || s != 0) || looks == 0 && err == nil {
				t.Errorf("Score stopped at look %d: %v, %v", 1+looks*looks, s, err)
			}
		}
		for _, by := range []float64{0, 1e-150, 1e-9, 1e9, 1e50} {
			far := with(y, func(i, j int, v float64) float64 { return by * v })
			var data *DataError
			if v, err := m.Transform(ctx, far); err == nil && NotFinite(v.Data) >= 0 ||
				err != nil && !(errors.As(err, &data) && beta < 1) {
				t.Errorf("samples times %g: %v, %v", by, v.Data, err)
			}
			if s, err := m.Score(ctx, far); err == nil && s-s != 0 {
				t.Errorf("samples times %g: score %v", by, s)
			}
		}
	})
}

// checkDeflated: Normalize is T' of each cell, and under TruncatedSVD the coordinates v of new samples y are
// those of least squares, where U has orthogonal columns.
func checkDeflated(t *testing.T, w way, q *QMFQ, y, v Mat) {
	normal := Must(q.Normalize(y))(t)
	for i := range y.Rows {
		f := Must(q.Deflate(i))(t)
		for j, x := range y.Row(i) {
			if got := normal.At(i, j); got != f.At(x) && (x == x || got == got) {
				t.Errorf("cell (%d, %d) is normalised to %v, T' of it is %v", i, j, got, f.At(x))
			}
		}
	}
	if !w.says("vectors") {
		return
	}
	for c := range v.Rows {
		for j := range v.Cols {
			norm, sum := 0.0, 0.0
			for i := range y.Rows {
				norm += q.U.At(i, c) * q.U.At(i, c)
				sum += q.U.At(i, c) * normal.At(i, j)
			}
			if math.Abs(v.At(c, j)-sum/norm) > 1e-12 {
				t.Errorf("coordinate %d of sample %d is %v, by least squares %v", c, j, v.At(c, j), sum/norm)
			}
		}
	}
}

// TestHiddenCells: where all cells are observed, the fit is the same whether cells may be missing or not;
// where a tenth are, they are predicted better than by the means of their rows, of a BQMF by
// TestBQMFPredicts.
func TestHiddenCells(t *testing.T) {
	Slow(t)
	each(t, func(t *testing.T, w way) {
		if w.says("hidden") {
			return
		}
		m, err := w.fit(t.Context(), w.x, WithMissingValues())
		if w.says("QMFQ, vectors") {
			if OptionOf(err) != "WithProjection" {
				t.Errorf("a truncated SVD with hidden cells: %v", err)
			}
			return
		}
		OK(t, err)
		want := w.must(t, w.x).Reconstruct()
		for i, v := range m.Reconstruct().Data {
			if !(math.Abs(v-want.Data[i]) <= 1e-7*slices.Max(want.Data)) {
				t.Fatalf("cell %d is fitted by %v, without missing values by %v", i, v, want.Data[i])
			}
		}
	})
	full, holed := Bent(60, 50, 3, 0.15, 1)
	for _, w := range []way{{method: MethodNMF}, {method: MethodQMF}, {method: MethodQMFQ},
		{method: MethodQMFQ, opts: []FitOption{WithProjection(FrobeniusUpdates(30))}}} {
		w.loss = KL
		ours := MeanOver(1, full, w.must(t, holed, WithMissingValues()).Reconstruct(), Missing(holed))
		if theirs := MeanOver(1, full, RowMeans(holed), Missing(holed)); !(ours < 0.75*theirs) {
			t.Errorf("%v: hidden cells are missed by %v, by the means of rows by %v", w.method, ours, theirs)
		}
	}
}

// TestHeldOutCells: the model is that of the epoch which is best on the cells that are held out, and its
// losses on those and on the others are what its histories say. The values of held-out cells touch nothing
// but the choice of the epoch.
func TestHeldOutCells(t *testing.T) {
	each(t, func(t *testing.T, w way) {
		if !w.says("validation") || w.says("weights") {
			return
		}
		m, held := w.must(t, w.x), HeldOutBy(t, w.x, 0.1, w.loss)
		f, sums, counts := Common(m), [2]float64{}, [2]float64{}
		fit := m.Reconstruct()
		moved := with(w.x, func(i, j int, v float64) float64 {
			if of := either(held(i, j), 0, 1); v == v {
				sums[of], counts[of] = sums[of]+Textbook(float64(w.loss), v, fit.At(i, j)), counts[of]+1
			}
			return either(held(i, j), v*(1+1e-9), v) // the best epoch stays
		})
		if best := slices.Min(f.Validation); f.Validation[f.Best] != best || counts[0] == 0 ||
			!(math.Abs(sums[0]/counts[0]-best) <= 1e-6*best) {
			t.Errorf("epoch %d loses %v on held-out cells, Validation %v", f.Best, sums[0]/counts[0],
				f.Validation)
		}
		if loss := sums[1] / counts[1]; w.method != MethodBQMF &&
			!(math.Abs(loss-f.History[f.Best]) <= 1e-6*loss) {
			t.Errorf("epoch %d loses %v on the others, History %v", f.Best, loss, f.History)
		}
		other := w.must(t, moved)
		if Common(other).Best != f.Best || !slices.Equal(Common(other).V.Data, f.V.Data) ||
			!slices.Equal(other.Reconstruct().Data, fit.Data) {
			t.Error("held-out values touch the model")
		}
	})
}

// TestAwkwardData: what data may be that has little in it, or much: all that a model says of it is finite,
// and constant rows are met exactly where there are maps. What cannot be fitted is an error that says why.
func TestAwkwardData(t *testing.T) {
	sets := map[string][][]float64{
		"zeros": {{0, 0, 0}, {0, 0, 0}}, "constant": {{3, 3, 3}, {3, 3, 3}}, "a cell": {{5}},
		"constant rows": {{0, 0, 0}, {1, 1, 1}, {1, 2, 3}}, "a row": {{1, 2, 0, 4, 0.5}},
		"a row of zeros": {{0, 0, 0}}, "a column": {{1}, {2}, {0}},
		"ties":  {{1, 1, 2, 2, 1, 1}, {0, 1, 0, 1, 0, 1}, {3, 1, 4, 1, 5, 9}},
		"tiny":  {{1e-300, 2e-300, 4e-300}, {3e-300, 1e-300, 0}},
		"least": {{5e-324, 0, 1e-323}, {0, 5e-324, 5e-324}},
		"huge":  {{1e60, 2e59, 0}, {3e58, 1e60, 1e57}}, "both": {{0, 0, 0, 0, 1e60}, {1e31, 0, 1e31, 0, 0}},
		"rows apart":       {{1e-170, 3e-170, 2e-170, 1e-170}, {1, 2, 3, 5}, {2, 1, 2, 1}},
		"rows apart, 1e80": {{1e-80, 3e-80, 2e-80, 1e-80}, {1, 2, 3, 5}, {2, 1, 2, 1}},
		"columns apart":    {{1, 1e-200, 2, 3}, {2, 3e-200, 1, 1}},
		"positive":         {{1, 2, 3, 5}, {2, 1, 2, 1}, {7, 7, 7, 7}},
		"signed":           {{-1, 2, 0.5, -3}, {0, 1, -1, 4}, {-2, -2, -2, -2}},
		"negative":         {{-1, -2, -0.5, -3}, {-5, -4, -4, -4.5}},
		"signed, tiny":     {{-1e-170, 2e-170, 1e-171}, {1, -1, 3}},
		"signed, huge":     {{-1e60, 1e60, 0}, {1, -1, 3}},
		"signed, offset":   {{1e15, 1e15 + 1, 1e15 + 2}, {-1e15, -1e15 - 3, -1e15}},
		"holes":            {{math.NaN(), 1, 1}, {2, math.NaN(), 3}, {3, 1, math.NaN()}},
		"few cells": {{math.NaN(), 7, 0, 2}, {4, math.NaN(), math.NaN(), math.NaN()},
			{4, 0, 0, math.NaN()}},
	}
	each(t, func(t *testing.T, w way) {
		losses := []Loss{w.loss}
		if !strings.Contains(w.name, ",") && w.method != MethodBQMF {
			losses = []Loss{KL, Frobenius, Beta(0), -1, -2, 0.5, 1.5, 3, 4, 1 - 0x1p-53, 1 + 1e-10, 1e-7,
				-1e-10}
		}
		if w.says("weights") { // which have sizes of their own
			return
		}
		refused := 0
		for set, rows := range sets {
			x := Must(MatOf(rows...))(t)
			holes, low, far := NotFinite(x.Data) >= 0, math.Inf(1), strings.HasPrefix(set, "rows apart") ||
				set == "signed, tiny" || set == "signed, huge"
			for _, v := range x.Data {
				low = min(low, either(v == v, v, math.Inf(1)))
			}
			for _, l := range losses {
				for _, epochs := range []int{0, 3} {
					m, err := w.fit(t.Context(), x, WithLoss(l), WithEpochs(epochs))
					var option *OptionError
					var data *DataError
					if errors.As(err, &option) && w.says("validation") { // too few cells to hide any
						refused++
						continue
					}
					signed := low < 0 && (l != Frobenius || w.method == MethodNMF)
					if signed || holes && !w.says("hidden") || low >= 0 && low < 1e-60 && l < 1e-9 ||
						far && (w.method == MethodQMF || w.method == MethodQMFQ) {
						if refused++; !errors.As(err, &data) || m != nil {
							t.Errorf("%s, β %v: %v", set, l, err)
						}
						continue
					}
					switch {
					case errors.As(err, &data) && (w.says("raw") || w.says("vectors")):
						refused++ // far numbers, or singular values that meet
						continue
					case err != nil:
						t.Errorf("%s, β %v: %v", set, l, err)
						continue
					}
					for i, v := range Numbers(t, m, x) {
						if j := NotFinite(v); j >= 0 && !(holes && v[j] != v[j] && len(v) == len(x.Data)) {
							t.Fatalf("%s, β %v, %d epochs: numbers %d: entry %d is %v", set, l, epochs, i, j,
								v[j])
						}
					}
					if f := Common(m); epochs == 0 && (len(f.History) != 1 || f.Best != 0) {
						t.Errorf("%s, no epochs: History %v, best %d", set, f.History, f.Best)
					}
					fit := m.Reconstruct()
					for i, row := range rows {
						if top := slices.Max(row); w.method == MethodNMF || top != slices.Min(row) {
							continue
						} else if got := fit.At(i, 0); math.Abs(got-top) > 1e-12*math.Abs(top) {
							t.Errorf("%s, β %v: a row of %v is fitted by %v", set, l, top, got)
						}
					}
				}
			}
		}
		if refused == 0 && w.name != "BQMF" && !w.says("signed") {
			t.Error("nothing was refused")
		}
	})
}

// TestBadData: a cell that no fit takes is an error that says where, of a fit and of new samples; and so are
// a row or a column without a cell, a matrix of no or of another size, and a row that cannot be read.
func TestBadData(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() { AllEnd(t, before) })
	each(t, func(t *testing.T, w way) {
		ctx, m := t.Context(), w.must(t, w.x)
		calls := map[string]func(x Rows) (any, error){
			"fit":         func(x Rows) (any, error) { return orNil(w.fit(ctx, x)) },
			"Loss":        func(x Rows) (any, error) { return orNil(m.Loss(x)) },
			"Score":       func(x Rows) (any, error) { return orNil(m.Score(ctx, x)) },
			"Goodness":    func(x Rows) (any, error) { return orNil(m.Goodness(x)) },
			"TopFeatures": func(x Rows) (any, error) { return orNil(m.TopFeatures(x, 1)) },
			"Scores":      func(x Rows) (any, error) { return orNil(m.Scores(ctx, x)) },
			"Predict":     func(x Rows) (any, error) { return orNil(m.Predict(ctx, x)) },
			"Transform":   func(x Rows) (any, error) { return orNil(m.Transform(ctx, x)) },
			"HeldOut": func(x Rows) (any, error) {
				return orNil(HeldOut(ctx, x, FitNMF,
					[]Trial{{Rank: 1, Options: []FitOption{WithLoss(w.loss), WithEpochs(1)}}},
					Masks{Repeats: 1}))
			},
		}
		places := map[string]bool{"Transform": true, "Score": true, "Scores": true, "Predict": true}
		for name, call := range calls {
			if name == "HeldOut" && (w.method != MethodNMF || w.says("hidden")) {
				continue
			}
			bad := func(what string, x Rows, row, col int) {
				t.Helper()
				if v, err := call(x); !DataAt(err, row, col) || v != nil {
					t.Errorf("%s of %s: %v, %v", name, what, v, err)
				}
			}
			changed := func(v float64) Mat {
				return with(w.x, func(i, j int, was float64) float64 {
					return either(i == 7 && j == 3, v, was)
				})
			}
			for _, v := range []float64{math.Inf(1), math.Inf(-1), 2e60} {
				bad(strconv.FormatFloat(v, 'g', -1, 64), changed(v), 7, 3)
			}
			if w.loss != Frobenius || w.method == MethodNMF {
				bad("-1", changed(-1), 7, 3)
			}
			if !w.says("hidden") && (name == "fit" || w.says("QMFQ, vectors") &&
				places[name]) {
				bad("NaN", changed(math.NaN()), 7, 3)
			} else if name == "fit" || name == "Goodness" || name == "TopFeatures" {
				bad("a row of NaN", with(w.x, func(i, _ int, v float64) float64 {
					return either(i == 7, math.NaN(), v)
				}), 7, -1)
			}
			if w.says("hidden") && name == "fit" || places[name] && !w.says("QMFQ, vectors") {
				bad("a column of NaN", with(w.x, func(_, j int, v float64) float64 {
					return either(j == 9, math.NaN(), v)
				}), -1, 9)
			}
			d, n := w.x.Dims()
			shapes := map[string]Rows{"nil": nil, "no sparse": (*Sparse)(nil), "an empty sparse": &Sparse{},
				"empty": Mat{}, "empty, single": Mat32{},
				"short":         Mat{Rows: d, Cols: n, Stride: n, Data: w.x.Data[:d*n-1]},
				"a stride":      Mat{Rows: d, Cols: n, Stride: n - 1, Data: w.x.Data},
				"short, single": Mat32{Rows: d, Cols: n, Stride: n, Data: make([]float32, d*n-1)},
				"huge":          sizes{math.MaxInt, math.MaxInt}, "negative": sizes{-1, 2}}
			if name != "fit" && name != "HeldOut" {
				shapes["fewer rows"] = Mat{Rows: d - 1, Cols: n, Stride: n, Data: w.x.Data}
			}
			if name == "Loss" || name == "Goodness" || name == "TopFeatures" {
				shapes["fewer columns"] = Mat{Rows: d, Cols: n - 1, Stride: n, Data: w.x.Data}
			}
			for what, x := range shapes {
				var shape *ShapeError
				if v, err := call(x); !errors.As(err, &shape) || v != nil {
					t.Errorf("%s of a matrix that is %s: %v, %v", name, what, v, err)
				}
			}
			cause := errors.New("the disk is gone")
			for after := int64(0); ; after = after*5/4 + 1 {
				calls := new(int64)
				v, err := call(failing{w.x, 7, after, cause, calls})
				if *calls <= after {
					break
				}
				var read *ReadError
				if !errors.Is(err, cause) || !errors.As(err, &read) || read.Row != 7 || v != nil {
					t.Fatalf("%s, after %d readings: %v, %v", name, after, v, err)
				}
				if *calls > after+20 {
					t.Errorf("%s, after %d readings: %d more until it has ended", name, after, *calls-after)
				}
			}
			// Whoever calls can recover from a panic of a reader, on whatever goroutine it was.
			for at := range int64(3) {
				calls := new(int64)
				func() {
					defer func() {
						if err, _ := recover().(error); *calls > at && !errors.Is(err, cause) {
							t.Errorf("%s, reading %d panics: recovered %v", name, at, err)
						}
					}()
					call(failing{w.x, 7, at, nil, calls}.panics(cause))
				}()
			}
		}
	})
}

// orNil is nil for the zero value of anything.
func orNil[T any](v T, err error) (any, error) {
	if reflect.ValueOf(&v).Elem().IsZero() {
		return nil, err
	}
	return v, err
}

// failing fails to read a row after so many readings.
type failing struct {
	Rows
	row   int
	after int64
	err   error
	calls *int64
}

func (f failing) ReadRow(x []float64, i int) error {
	if i == f.row && atomic.AddInt64(f.calls, 1) > f.after {
		return f.err
	}
	return f.Rows.ReadRow(x, i)
}

// panics panics where f fails.
func (f failing) panics(cause error) Rows { f.err = cause; return panicking{f} }

type panicking struct{ failing }

func (p panicking) ReadRow(x []float64, i int) error {
	if err := p.failing.ReadRow(x, i); err != nil {
		panic(err)
	}
	return nil
}

// sizes has nothing else.
type sizes struct{ rows, cols int }

func (s sizes) Dims() (rows, cols int)       { return s.rows, s.cols }
func (s sizes) ReadRow([]float64, int) error { return errors.New("nothing") }
