package quantmf

// Tests of a fit that is cancelled: how soon it ends, that its goroutines end with it, and
// the phases that it tells of.

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// lognormal returns a d × n matrix of independent values, some rows constant.
func lognormal(d, n int) Mat {
	r := random.Split(5, d)
	x := NewMat(d, n)
	for i := range x.Data {
		x.Data[i] = math.Exp(normal(&r))
		if i/n%500 == 7 {
			x.Data[i] = 3
		}
	}
	return x
}

// interruptible are calls that a context ends, by name. A model of the rank goes with
// those that place samples.
func interruptible(x Mat, rank int) map[string]func(ctx context.Context, opts ...FitOption) error {
	fit := func(model string, more ...FitOption) func(ctx context.Context, opts ...FitOption) error {
		return func(ctx context.Context, opts ...FitOption) error {
			_, _, _, _, _, err := fitAny(ctx, model, x, rank, append(append([]FitOption{}, more...), opts...)...)
			return err
		}
	}
	return map[string]func(ctx context.Context, opts ...FitOption) error{
		"NMF":             fit("NMF", WithEpochs(20)),
		"NMF updates":     fit("NMF", WithUpdates(UpdatesMultiplicative), WithEpochs(40)),
		"NMF validation":  fit("NMF", WithEpochs(20), WithValidation(0.1)),
		"NMF Frobenius":   fit("NMF", WithLoss(Frobenius), WithEpochs(20)),
		"NMF svd":         fit("NMF", WithStart(StartSVD), WithEpochs(5)),
		"NMF beta":        fit("NMF", WithLoss(Beta(1.5)), WithEpochs(10), WithValidation(0.1)),
		"QMF":             fit("QMF", WithEpochs(4)),
		"QMF validation":  fit("QMF", WithEpochs(4), WithValidation(0.1), WithStart(StartScores), WithShrinkage(1)),
		"QMF uniform":     fit("QMF", WithEpochs(4), WithStart(StartUniform), WithBatch(1<<20)),
		"QMFQ":            fit("QMFQ", WithEpochs(3), WithStart(StartUniform), WithProjection(KLUpdates(20))),
		"QMFQ start":      fit("QMFQ", WithEpochs(1), WithStart(StartNMF)),
		"QMFQ validation": fit("QMFQ", WithEpochs(3), WithStart(StartUniform), WithProjection(FrobeniusUpdates(20)), WithValidation(0.1)),
		"QMFQ svd":        fit("QMFQ", WithEpochs(2), WithStart(StartUniform), WithProjection(TruncatedSVD())),
		"BQMF": func(ctx context.Context, opts ...FitOption) error {
			_, err := FitBQMF(ctx, x, rank, append(opts, WithEpochs(3))...)
			return err
		},
		"BQMF validation": func(ctx context.Context, opts ...FitOption) error {
			_, err := FitBQMF(ctx, x, rank, append(opts, WithEpochs(2), WithValidation(0.1))...)
			return err
		},
		"HeldOut": func(ctx context.Context, _ ...FitOption) error {
			_, err := HeldOut(ctx, x, FitQMF, []Trial{{Rank: rank, Options: []FitOption{WithEpochs(1), WithStart(StartNMF), WithShrinkage(0)}}}, Masks{Repeats: 2, Share: 0.1, Seed: 1})
			return err
		},
	}
}

// TestCancelLatency ends every call at many moments and takes how long it goes on: at
// 6000 × 300, rank 10, on two cores, at most 50 ms. QUANTMF_LATENCY is 1 or the name of a call;
// QUANTMF_WORKERS, 0 by default, how many workers it has.
//
// What is judged is the time of the processor that one goes on for, which other programs on
// the machine hardly change, the least of three tries where the first takes longer; with
// several workers that is up to their number times the time by the clock.
func TestCancelLatency(t *testing.T) {
	only := os.Getenv("QUANTMF_LATENCY")
	if only == "" {
		t.Skip("QUANTMF_LATENCY is not set: a measurement of minutes")
	}
	workers, _ := strconv.Atoi(os.Getenv("QUANTMF_WORKERS"))
	atOnce := pool.Count(workers, 6000)
	x := lognormal(6000, 300)
	calls := interruptible(x, 10)
	few := x
	few.Cols = 60
	for _, model := range []string{"NMF", "QMF", "QMFQ"} {
		m, _, _, _, _, err := fitAny(context.Background(), model, x, 10, WithEpochs(2), WithStart(StartUniform))
		if err != nil {
			t.Fatal(err)
		}
		calls["Transform "+model] = func(ctx context.Context, _ ...FitOption) error { _, err := m.Transform(ctx, few); return err }
		calls["Score "+model] = func(ctx context.Context, _ ...FitOption) error { _, err := m.Score(ctx, few); return err }
	}
	for name, call := range calls {
		if only != "1" && only != name {
			continue
		}
		began := time.Now()
		var firstReport time.Duration
		if err := call(context.Background(), WithWorkers(workers), WithProgress(func(Progress) error {
			if firstReport == 0 {
				firstReport = time.Since(began)
			}
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		whole := time.Since(began)
		moments := 60
		if whole > 2*time.Second {
			moments = 12
		}
		// late ends a call after so long, and returns how long it goes on by the clock and by the
		// processors, and the phase that it is in; false where it was done before.
		late := func(after time.Duration) (clock, cpu time.Duration, phase string, ok bool) {
			runtime.GC()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var at, used time.Duration
			began := time.Now()
			timer := time.AfterFunc(after, func() { at, used = time.Since(began), cpuTime(); cancel() })
			err := call(ctx, WithWorkers(workers), WithProgress(func(p Progress) error {
				if ctx.Err() == nil {
					phase = p.Phase.String()
				}
				return nil
			}))
			end, usedThen := time.Since(began), cpuTime()
			if timer.Stop() {
				return 0, 0, "", false
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			<-ctx.Done()
			return end - at, usedThen - used, phase, true
		}
		const most = 50 * time.Millisecond
		var worst, worstClock time.Duration
		where := ""
		for k := range moments {
			at := whole * time.Duration(k) / time.Duration(moments)
			clock, cpu, phase, ok := late(at)
			for tries := 1; ok && tries < 3 && cpu > most; tries++ {
				if c, u, p, o := late(at); o && u < cpu {
					clock, cpu, phase = c, u, p
				}
			}
			if cpu > worst {
				worst, worstClock, where = cpu, clock, phase
			}
		}
		t.Logf("%-16s %6v in all, first report after %5v, goes on for %5v of processor at most, %v by the clock, in %s", name, whole.Round(time.Millisecond),
			firstReport.Round(time.Millisecond), worst.Round(time.Millisecond), worstClock.Round(time.Millisecond), where)
		if worst > most*time.Duration(atOnce) {
			t.Errorf("%s: goes on for %v in %s", name, worst, where)
		}
	}
}

// looks is a context that counts how often it is looked at, and ends at the last of so
// many looks; 0: never.
type looks struct {
	context.Context
	count, last int
}

func (l *looks) Err() error {
	if l.count++; l.last > 0 && l.count >= l.last {
		return context.Canceled
	}
	return nil
}

// TestLooks: how far a fit goes between two looks at its context is bound by rows, not
// by the matrix: in each phase there are as many looks as its work has pieces. Nothing
// here depends on the machine's speed.
func TestLooks(t *testing.T) {
	x := lognormal(600, 40)
	type want struct {
		phase Phase
		least int
	}
	const groups = 600 / nmf.Group
	for _, c := range []struct {
		name, model string
		opts        []FitOption
		want        []want
	}{
		{"NMF", "NMF", []FitOption{WithEpochs(10)}, []want{{PhaseEpochs, 10 * groups}}},
		{"NMF missing", "NMF", []FitOption{WithEpochs(10), WithMissingValues(), WithLoss(Beta(1.5))}, []want{{PhaseEpochs, 10 * 600 / nmf.Group}}},
		{"NMF from vectors", "NMF", []FitOption{WithStart(StartSVD), WithEpochs(1)}, []want{{PhaseFactors, svdPasses * (2*nmf.Chunks + 2*11)}}},
		{"QMF", "QMF", []FitOption{WithEpochs(3)}, []want{{PhaseChoice, 2*(startUpdates*512/nmf.Group) + 6*512 + 36*512/8}, {PhaseFactors, startUpdates * groups}, {PhaseMaps, 600}, {PhaseEpochs, 3 * 600 / 8}}},
		{"QMF validation", "QMF", []FitOption{WithEpochs(3), WithValidation(0.1), WithStart(StartScores), WithShrinkage(0)},
			[]want{{PhaseFactors, 600 + startUpdates*600/nmf.Group}, {PhaseMaps, 600}, {PhaseEpochs, 3 * 2 * 600 / 8}}},
		{"QMFQ", "QMFQ", []FitOption{WithEpochs(3), WithStart(StartNMF)},
			[]want{{PhaseFactors, startUpdates * groups}, {PhaseMaps, 2 * 600}, {PhaseQMF, 100 * 600 / 8}, {PhaseEpochs, 3 * (3*600/8 + 2*projectOften*16)}}},
		{"QMFQ by singular vectors", "QMFQ", []FitOption{WithEpochs(2), WithStart(StartUniform), WithProjection(TruncatedSVD())},
			[]want{{PhaseMaps, 600}, {PhaseEpochs, 2 * (3*600/8 + 3*40)}}},
	} {
		ctx := &looks{Context: context.Background()}
		got, at, phase := map[Phase]int{}, 0, Phase(99)
		enter := func(p Phase) {
			if p != phase {
				got[phase] += ctx.count - at
				at, phase = ctx.count, p
			}
		}
		watch := WithProgress(func(p Progress) error {
			enter(p.Phase)
			return nil
		})
		epochs := 0
		_, history, _, _, _, err := fitAny(ctx, c.model, x, 3, append(c.opts, watch, WithWorkers(1))...)
		if err != nil {
			t.Fatal(err)
		}
		epochs = len(history) - 1
		enter(99)
		for _, w := range c.want {
			least := w.least
			if w.phase == PhaseEpochs { // told after an epoch: those of the first are not in it
				least = least * (epochs - 1) / epochs
			}
			if got[w.phase] < least {
				t.Errorf("%s: %d looks in %v, want %d at least", c.name, got[w.phase], w.phase, least)
			}
		}
	}
}

// TestGoroutinesEnd: calls that a context ends leave no goroutine behind.
func TestGoroutinesEnd(t *testing.T) {
	x := lognormal(60, 20)
	before := runtime.NumGoroutine()
	for name, call := range interruptible(x, 2) {
		for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(context.Background(), after)
			err := call(ctx, WithWorkers(3))
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// TestPhases: what a fit tells begins with its start, goes through the phases in their
// order with a share that rises to 1, and an error in any of them stops the fit with the
// model so far.
func TestPhases(t *testing.T) {
	x := lognormal(280, 12)
	for _, c := range []struct {
		model string
		opts  []FitOption
		want  []Phase
	}{
		{"NMF", nil, []Phase{PhaseFactors, PhaseEpochs}},
		{"NMF", []FitOption{WithStart(StartSVD)}, []Phase{PhaseFactors, PhaseEpochs}},
		{"QMF", nil, []Phase{PhaseChoice, PhaseFactors, PhaseMaps, PhaseEpochs}},
		{"QMF", []FitOption{WithStart(StartScores), WithShrinkage(0), WithValidation(0.1)}, []Phase{PhaseFactors, PhaseMaps, PhaseEpochs}},
		{"QMFQ", nil, []Phase{PhaseChoice, PhaseFactors, PhaseMaps, PhaseQMF, PhaseMaps, PhaseEpochs}},
		{"QMFQ", []FitOption{WithStart(StartUniform)}, []Phase{PhaseFactors, PhaseMaps, PhaseEpochs}},
	} {
		opts := append([]FitOption{WithEpochs(3)}, c.opts...)
		var seen []Phase
		last := Progress{Done: 1}
		if _, _, _, _, _, err := fitAny(context.Background(), c.model, x, 2, append(opts, WithProgress(func(p Progress) error {
			if len(seen) == 0 || p.Phase != last.Phase {
				if len(seen) > 0 && last.Done != 1 && last.Phase != PhaseFactors {
					t.Errorf("%s: %v ends at %v", c.model, last.Phase, last.Done)
				}
				seen = append(seen, p.Phase)
			} else if p.Done < last.Done {
				t.Errorf("%s: %v falls from %v to %v", c.model, p.Phase, last.Done, p.Done)
			}
			if !(p.Done >= 0 && p.Done <= 1) || p.Epochs != 3 || p.Rows != 280 || (p.Phase == PhaseEpochs) != (p.Epoch > 0) || (p.Loss > 0) != (p.Epoch > 0) {
				t.Errorf("%s: %+v", c.model, p)
			}
			last = p
			return nil
		}))...); err != nil {
			t.Fatal(err)
		}
		if !equalPhases(seen, c.want) {
			t.Errorf("%s: %v, want %v", c.model, seen, c.want)
		}
		cause := errors.New("enough")
		for at := range c.want {
			count, phase := -1, Phase(99)
			m, history, _, best, _, err := fitAny(context.Background(), c.model, x, 2, append(opts, WithProgress(func(p Progress) error {
				if p.Phase != phase {
					count, phase = count+1, p.Phase
				}
				if count == at {
					return cause
				}
				return nil
			}))...)
			var s *stopped
			if m == nil || !errors.Is(err, cause) || !errors.As(err, &s) || strings.Count(err.Error(), "stopped") != 1 || best > len(history) {
				t.Errorf("%s, an error in %v: %v", c.model, c.want[at], err)
				continue
			}
			if i := notFinite(m.Reconstruct().Data); i >= 0 {
				t.Errorf("%s, an error in %v: the model has no finite fit", c.model, c.want[at])
			}
			if l, err := m.Loss(x); c.model != "NMF" && (err != nil || len(history) != s.epoch+1 || !near(l, history[best]) && len(c.opts) < 3) {
				t.Errorf("%s, an error in %v: loss %v, %v; history %v", c.model, c.want[at], l, err, history)
			}
		}
	}
}

func equalPhases(a, b []Phase) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
