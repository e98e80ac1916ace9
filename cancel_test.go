package quantmf

// Tests of a fit that is cancelled: how soon it ends, that its goroutines end with it, and
// the phases that it tells of.

import (
	"context"
	"errors"
	"math"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/svd"
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
			_, _, _, _, _, err := fitAny(ctx, model, x, rank,
				append(append([]FitOption{}, more...), opts...)...)
			return err
		}
	}
	return map[string]func(ctx context.Context, opts ...FitOption) error{
		"NMF":            fit("NMF", WithEpochs(20)),
		"NMF updates":    fit("NMF", WithUpdates(UpdatesMultiplicative), WithEpochs(40)),
		"NMF validation": fit("NMF", WithEpochs(20), WithValidation(0.1)),
		"NMF Frobenius":  fit("NMF", WithLoss(Frobenius), WithEpochs(20)),
		"NMF svd":        fit("NMF", WithStart(StartSVD), WithEpochs(5)),
		"NMF beta":       fit("NMF", WithLoss(Beta(1.5)), WithEpochs(10), WithValidation(0.1)),
		"QMF":            fit("QMF", WithEpochs(4)),
		"QMF validation": fit("QMF", WithEpochs(4), WithValidation(0.1), WithStart(StartScores),
			WithShrinkage(1)),
		"QMF uniform": fit("QMF", WithEpochs(4), WithStart(StartUniform), WithBatch(1<<20)),
		"QMFQ":        fit("QMFQ", WithEpochs(3), WithStart(StartUniform), WithProjection(KLUpdates(20))),
		"QMFQ start":  fit("QMFQ", WithEpochs(1), WithStart(StartNMF)),
		"QMFQ validation": fit("QMFQ", WithEpochs(3), WithStart(StartUniform),
			WithProjection(FrobeniusUpdates(20)), WithValidation(0.1)),
		"QMFQ svd": fit("QMFQ", WithEpochs(2), WithStart(StartUniform),
			WithProjection(TruncatedSVD())),
		"BQMF": func(ctx context.Context, opts ...FitOption) error {
			_, err := FitBQMF(ctx, x, rank, append(opts, WithEpochs(3))...)
			return err
		},
		"BQMF validation": func(ctx context.Context, opts ...FitOption) error {
			_, err := FitBQMF(ctx, x, rank, append(opts, WithEpochs(2), WithValidation(0.1))...)
			return err
		},
		"BQMF 50": func(ctx context.Context, opts ...FitOption) error {
			_, err := FitBQMF(ctx, x, 50, append(opts, WithEpochs(3))...)
			return err
		},
		"HeldOut": func(ctx context.Context, _ ...FitOption) error {
			_, err := HeldOut(ctx, x, FitQMF,
				[]Trial{{Rank: rank, Options: []FitOption{WithEpochs(1), WithStart(StartNMF),
					WithShrinkage(0)}}}, Masks{Repeats: 2, Share: 0.1, Seed: 1})
			return err
		},
	}
}

// clocked is a context that takes how much time of the processor goes by between two looks
// at it, and ends at the last of so many looks; 0: never.
type clocked struct {
	context.Context
	count, last  int
	before, most time.Duration // at the look before, and the most between two
	at           int           // the look that ended the most
}

func (c *clocked) Err() error {
	now := cpuTime()
	if c.count++; c.last > 0 && c.count > c.last {
		return context.Canceled
	}
	if c.count > 1 && now-c.before > c.most {
		c.most, c.at = now-c.before, c.count
	}
	if c.before = now; c.count == c.last {
		return context.Canceled
	}
	return nil
}

// ending is a context that ends at the last of so many looks, by any number of goroutines, and
// takes the time of the first that finds it ended.
type ending struct {
	context.Context
	count, last, at atomic.Int64
}

func (c *ending) Err() error {
	if c.count.Add(1) < c.last.Load() {
		return nil
	}
	c.at.CompareAndSwap(0, time.Now().UnixNano())
	return context.Canceled
}

// TestCancelLatency takes how long calls go on after their context has ended, at many moments. At
// 6000 × 300, rank 10, calls with the default workers return within 50 ms of it, which needs
// a machine that does nothing else. Calls of one worker are told of in time of the
// processor, which other programs hardly change: the most between two looks at the context, and
// from the look that finds the end to the return, at most 100 ms together; the first progress is told
// after 100 ms at most. QUANTMF_LATENCY
// is 1 or the name of a call. What is above is tried three times.
func TestCancelLatency(t *testing.T) {
	only := os.Getenv("QUANTMF_LATENCY")
	if only == "" {
		t.Skip("QUANTMF_LATENCY is not set: a measurement of minutes")
	}
	x := lognormal(6000, 300)
	calls := interruptible(x, 10)
	few := x
	few.Cols = 60
	for _, model := range []string{"NMF", "QMF", "QMFQ"} {
		m, _, _, _, _, err := fitAny(context.Background(), model, x, 10, WithEpochs(2),
			WithStart(StartUniform))
		if err != nil {
			t.Fatal(err)
		}
		calls["Transform "+model] = func(ctx context.Context, _ ...FitOption) error {
			_,
				err := m.Transform(ctx, few)
			return err
		}
		calls["Score "+model] = func(ctx context.Context, _ ...FitOption) error {
			_,
				err := m.Score(ctx, few)
			return err
		}
	}
	processors := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(processors)
	for name, call := range calls {
		if only != "1" && only != name {
			continue
		}
		const budget, alone = 50 * time.Millisecond, 100 * time.Millisecond
		runtime.GOMAXPROCS(1)             // Transform has a worker for each
		phase, of := "", map[int]string{} // the phase that follows a look
		var first time.Duration           // until something is told
		whole := &clocked{Context: context.Background()}
		run := func(c *clocked) error {
			began := cpuTime()
			return call(c, WithWorkers(1), WithProgress(func(p Progress) error {
				if first == 0 {
					first = cpuTime() - began
				}
				if name := p.Phase.String(); name != phase && c == whole {
					phase, of[c.count] = name, name
				}
				return nil
			}))
		}
		if err := run(whole); err != nil {
			t.Fatal(err)
		}
		in := func(look int) string {
			at, name := -1, "the beginning"
			for from, phase := range of {
				if from <= look && from > at {
					at, name = from, phase
				}
			}
			return name
		}
		least := func(try func() time.Duration) time.Duration {
			took := try()
			for tries := 1; tries < 3 && took > budget/2; tries++ {
				took = min(took, try())
			}
			return took
		}
		gap := whole.most
		if gap > budget/2 {
			gap = least(func() time.Duration {
				again := &clocked{Context: context.Background()}
				if err := run(again); err != nil {
					t.Fatal(err)
				}
				return again.most
			})
		}
		const moments = 8
		worst, at := time.Duration(0), 0
		for k := range moments + 1 {
			look := max(1, k*whole.count/moments)
			took := least(func() time.Duration {
				c := &clocked{Context: context.Background(), last: look}
				if err := run(c); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				return cpuTime() - c.before
			})
			if took > worst {
				worst, at = took, look
			}
		}
		t.Logf("%-16s %8d looks, %.1f ms between two at most (in %s), %.1f ms from the end at most (in %s)",
			name, whole.count,
			1e3*gap.Seconds(), in(whole.at), 1e3*worst.Seconds(), in(at))
		if t.Logf("%-16s tells something after %.1f ms", name,
			1e3*first.Seconds()); first > 100*time.Millisecond {
			t.Errorf("%s: tells nothing for %v", name, first)
		}
		if gap+worst > alone {
			t.Errorf("%s: one worker goes on for %v", name, gap+worst)
		}
		runtime.GOMAXPROCS(processors)
		every := &ending{Context: context.Background()}
		every.last.Store(math.MaxInt64)
		if err := call(every); err != nil {
			t.Fatal(err)
		}
		worst = 0
		for k := range moments + 1 {
			worst = max(worst, least(func() time.Duration {
				c := &ending{Context: context.Background()}
				c.last.Store(max(1, int64(k)*every.count.Load()/moments))
				if err := call(c); err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if at := c.at.Load(); at > 0 {
					return time.Since(time.Unix(0, at))
				}
				return 0
			}))
		}
		if t.Logf("%-16s %.1f ms from the end at most, %d processors", name, 1e3*worst.Seconds(),
			processors); worst > budget {
			t.Errorf("%s: goes on for %v", name, worst)
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
		{"NMF missing", "NMF", []FitOption{WithEpochs(10), WithMissingValues(), WithLoss(Beta(1.5))},
			[]want{{PhaseEpochs, 10 * 600 / nmf.Group}}},
		{"NMF from vectors", "NMF", []FitOption{WithStart(StartSVD), WithEpochs(1)},
			[]want{{PhaseFactors, svd.Passes * (2*nmf.Pieces + 2*11)}}},
		{"QMF", "QMF", []FitOption{WithEpochs(3)},
			[]want{{PhaseChoice, startNewton*512/nmf.Group + 3*512 + 5*trialEpochs*512/8},
				{PhaseFactors, groups}, {PhaseMaps, 600}, {PhaseEpochs, 3 * 600 / 8}}},
		{"QMF validation", "QMF",
			[]FitOption{WithEpochs(3), WithValidation(0.1), WithStart(StartScores), WithShrinkage(0)},
			[]want{{PhaseFactors, 600 + startNewton*600/nmf.Group}, {PhaseMaps, 600},
				{PhaseEpochs, 3 * 2 * 600 / 8}}},
		{"QMFQ", "QMFQ", []FitOption{WithEpochs(3), WithStart(StartNMF), WithShrinkage(0)},
			[]want{{PhaseFactors, groups}, {PhaseMaps, 2 * 600},
				{PhaseQMF, startEpochs * 600 / 8}, {PhaseEpochs, 3 * (3*600/8 + 2*projectOften*16)}}},
		{"QMFQ by singular vectors", "QMFQ",
			[]FitOption{WithEpochs(2), WithStart(StartUniform), WithProjection(TruncatedSVD())},
			[]want{{PhaseMaps, 600}, {PhaseEpochs, 2 * (3*600/8 + 3*40)}}},
	} {
		if testing.Short() && c.name == "QMFQ" {
			continue // a hundred epochs of a QMF, of which others tell
		}
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

// TestStoppedModels: wherever a fit is stopped, the model so far is whole: its file is read again, and all
// that it says is finite.
func TestStoppedModels(t *testing.T) {
	x := lognormal(14, 9)
	for j := range x.Cols {
		x.Data[3*x.Cols+j] = 2 // constant
	}
	var states [][]byte // of a BQMF
	keep := WithCheckpoint(1, func(s []byte) error { states = append(states, s); return nil })
	if _, err := FitBQMF(context.Background(), x, 2, WithEpochs(3), WithValidation(0.1), keep); err != nil {
		t.Fatal(err)
	}
	for name, fit := range map[string]func(ctx context.Context) (Model, error){
		"NMF": func(ctx context.Context) (Model,
			error) {
			return FitNMF(ctx, x, 2, WithEpochs(4), WithWorkers(1))
		},
		"QMF": func(ctx context.Context) (Model, error) {
			return FitQMF(ctx, x, 2, WithEpochs(2), WithLevels(4), WithStart(StartNMF), WithShrinkage(0),
				WithWorkers(1))
		},
		"QMFQ": func(ctx context.Context) (Model, error) {
			return FitQMFQ(ctx, x, 2, WithEpochs(2), WithLevels(4), WithStart(StartUniform), WithWorkers(1))
		},
		"BQMF": func(ctx context.Context) (Model,
			error) {
			return FitBQMF(ctx, x, 2, WithEpochs(3), WithWorkers(1))
		},
		"BQMF, validation": func(ctx context.Context) (Model, error) {
			return FitBQMF(ctx, x, 2, WithEpochs(3), WithValidation(0.1), WithWorkers(1))
		},
		"BQMF, validation, from a state": func(ctx context.Context) (Model, error) {
			return FitBQMF(ctx, x, 2, WithEpochs(3), WithValidation(0.1), WithResume(states[1]),
				WithWorkers(1))
		},
	} {
		all := &looks{Context: context.Background()}
		if _, err := fit(all); err != nil {
			t.Fatal(name, err)
		}
		for last := 1; last < all.count; last += 1 + last/12 {
			m, err := fit(&looks{context.Background(), 0, last})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, stopped at look %d of %d: %v", name, last, all.count, err)
			}
			if reflect.ValueOf(m).IsNil() { // during a start
				continue
			}
			file, err := m.MarshalBinary()
			if err == nil {
				_, err = UnmarshalModel(file)
			}
			if err != nil {
				t.Errorf("%s, stopped at look %d of %d: %v", name, last, all.count, err)
			}
			for _, v := range m.Reconstruct().Data {
				if !(math.Abs(v) <= math.MaxFloat64) {
					t.Errorf("%s, stopped at look %d of %d, says %v", name, last, all.count, v)
					break
				}
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
	allEnd(t, before)
}

// TestPhases: what a fit tells begins with its start, goes through the phases in their
// order with a share that rises to 1, and an error in any of them stops the fit with the
// model so far.
func TestPhases(t *testing.T) {
	x := lognormal(draws(280, 140, 70), 12)
	for _, c := range []struct {
		model string
		opts  []FitOption
		want  []Phase
	}{
		{"NMF", nil, []Phase{PhaseFactors, PhaseEpochs}},
		{"NMF", []FitOption{WithStart(StartSVD)}, []Phase{PhaseFactors, PhaseEpochs}},
		{"QMF", nil, []Phase{PhaseChoice, PhaseFactors, PhaseMaps, PhaseEpochs}},
		{"QMF", []FitOption{WithStart(StartScores), WithShrinkage(0), WithLine(0.5), WithValidation(0.1)},
			[]Phase{PhaseFactors, PhaseMaps, PhaseEpochs}},
		{"QMFQ", nil, []Phase{PhaseChoice, PhaseFactors, PhaseMaps, PhaseQMF, PhaseMaps, PhaseEpochs}},
		{"QMFQ", []FitOption{WithStart(StartUniform)}, []Phase{PhaseFactors, PhaseMaps, PhaseEpochs}},
	} {
		opts := append([]FitOption{WithEpochs(3)}, c.opts...)
		var seen []Phase
		last := Progress{Done: 1}
		if _, _, _, _, _, err := fitAny(context.Background(), c.model, x, 2,
			append(opts, WithProgress(func(p Progress) error {
				if len(seen) == 0 || p.Phase != last.Phase {
					if len(seen) > 0 && last.Done != 1 && last.Phase != PhaseFactors {
						t.Errorf("%s: %v ends at %v", c.model, last.Phase, last.Done)
					}
					seen = append(seen, p.Phase)
				} else if p.Done < last.Done {
					t.Errorf("%s: %v falls from %v to %v", c.model, p.Phase, last.Done, p.Done)
				}
				if !(p.Done >= 0 && p.Done <= 1) || p.Epochs != 3 || p.Rows != x.Rows ||
					(p.Phase == PhaseEpochs) != (p.Epoch > 0) || (p.Loss > 0) != (p.Epoch > 0) {
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
			if testing.Short() && at%2 == 0 {
				continue
			}
			count, phase := -1, Phase(99)
			m, history, _, best, _, err := fitAny(context.Background(), c.model, x, 2,
				append(opts, WithProgress(func(p Progress) error {
					if p.Phase != phase {
						count, phase = count+1, p.Phase
					}
					if count == at {
						return cause
					}
					return nil
				}))...)
			var s *fit.Stopped
			if m == nil || !errors.Is(err, cause) || !errors.As(err, &s) ||
				strings.Count(err.Error(), "stopped") != 1 || best > len(history) {
				t.Errorf("%s, an error in %v: %v", c.model, c.want[at], err)
				continue
			}
			if i := notFinite(m.Reconstruct().Data); i >= 0 {
				t.Errorf("%s, an error in %v: the model has no finite fit", c.model, c.want[at])
			}
			if l, err := m.Loss(x); c.model != "NMF" &&
				(err != nil || len(history) != s.Epoch+1 || !near(l, history[best]) && len(c.opts) < 3) {
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
