package shards

// Tests of fits whose rows are split: the bits of a fit on one machine, steps that are done twice, too late
// or out of order, and blobs that are lost, cut, flipped or taken from elsewhere.

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
)

var long = os.Getenv("QUANTMF_LONG") != ""

// shelf is a store in memory. It fails a test that gives a name other bytes than before.
type shelf struct {
	t      *testing.T
	mu     sync.Mutex
	blobs  map[string][]byte
	before map[string][]byte // all that was ever put
	puts   int
}

func newShelf(t *testing.T) *shelf {
	return &shelf{t: t, blobs: map[string][]byte{}, before: map[string][]byte{}}
}

func (s *shelf) Get(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[name], nil
}

func (s *shelf) Put(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	data = bytes.Clone(data)
	if old, had := s.before[name]; had && !bytes.Equal(old, data) {
		s.t.Errorf("%s was given other bytes", name)
	}
	s.blobs[name], s.before[name] = data, data
	s.puts++
	return nil
}

func (s *shelf) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, name)
	return nil
}

// tabled is d × n counts, every cell positive under no loss that needs it.
func tabled(d, n int) quantmf.Mat {
	src := random.Split(11, 4)
	x := quantmf.NewMat(d, n)
	for i := range d {
		for j := range n {
			x.Data[i*n+j] = math.Floor(20*src.Float64()*src.Float64()*float64(1+(i+j)%4)) + 1
		}
	}
	for j := range n {
		x.Data[3*n+j] = 2 // constant
	}
	return x
}

// finish makes all rounds of a fit, of some steps each in another order.
func finish(t *testing.T, s *shelf) quantmf.Model {
	t.Helper()
	fit := Must(Open(s))(t)
	for round := 0; ; round++ {
		for i := range fit.Shards() {
			OK(t, fit.Step(context.Background(), round, (i*3+round)%fit.Shards()))
		}
		for i := range fit.Shards() { // 3 may divide their number
			OK(t, fit.Step(context.Background(), round, i))
		}
		at := Must(fit.Reduce(context.Background(), round))(t)
		if at.Over {
			break
		}
	}
	return Must(fit.Finish(context.Background()))(t)
}

func marshalled(t *testing.T, m quantmf.Model) []byte {
	t.Helper()
	return Must(m.MarshalBinary())(t)
}

// TestShards: a fit in shards has the bytes of the fit on one machine.
func TestShards(t *testing.T) {
	x, many := tabled(300, 70), 130
	if testing.Short() {
		x, many = tabled(150, 40), 40
	}
	holes := holed(x, 0.1)
	small := x.Clone()
	for i := range small.Data { // so that it has a unit of its own
		small.Data[i] *= 0x1p-150
	}
	for j := range small.Cols {
		small.Data[5*small.Cols+j] *= 0x1p-90
	}
	signed := x.Clone()
	for i := range signed.Data {
		signed.Data[i] -= 9
	}
	src := random.Split(3, 3)
	u, v := quantmf.NewMat(x.Rows, 4), quantmf.NewMat(4, x.Cols)
	for _, m := range []quantmf.Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = 0.5 + src.Float64()
		}
	}
	type sharded struct {
		x    quantmf.Mat
		qmf  bool
		opts []quantmf.FitOption
	}
	nmf := func(x quantmf.Mat, o ...quantmf.FitOption) sharded { return sharded{x, false, o} }
	newton := func(x quantmf.Mat, o ...quantmf.FitOption) sharded {
		return nmf(x, append(o, quantmf.WithUpdates(quantmf.UpdatesNewton))...)
	}
	qmf := func(x quantmf.Mat, o ...quantmf.FitOption) sharded { return sharded{x, true, o} }
	epochs, validation, patience, levels := quantmf.WithEpochs, quantmf.WithValidation, quantmf.WithPatience,
		quantmf.WithLevels
	frobenius, missing := quantmf.WithLoss(quantmf.Frobenius), quantmf.WithMissingValues()
	vectors, paper := quantmf.WithStart(quantmf.StartSVD), quantmf.WithStart(quantmf.StartUniform)
	given := func(x quantmf.Mat, o ...quantmf.FitOption) sharded { // the factors to start from
		return qmf(x, append([]quantmf.FitOption{quantmf.WithInit(u, v), quantmf.WithShrinkage(5), epochs(3)},
			o...)...)
	}
	penalties := quantmf.WithPenalties(quantmf.Penalties{L1U: 0.1, L1V: 0.05, L2U: 0.02, L2V: 0.1})
	thin, made := quantmf.NewMat(x.Rows, x.Cols), quantmf.NewMat(x.Rows, x.Cols)
	few := holed(x, 0.9) // where the share of a column that is observed bounds curvatures
	for i := range x.Rows {
		few.Set(i, i%x.Cols, 1)
		if i%30 == 0 {
			for j := range x.Cols {
				few.Data[i*x.Cols+j] *= 100
			}
		}
		product(made.Row(i), u.Row(i), v)
		for j := range x.Cols {
			if src.IntN(8) == 0 || i == j {
				thin.Set(i, j, x.At(i, j))
			}
		}
	}
	// the factors of a matrix of which few rows have most, and nearly those
	hu, near, nearly := u.Clone(), v.Clone(), quantmf.NewMat(x.Rows, x.Cols)
	for c := range 4 {
		for j := range x.Cols { // components that hardly meet, so that the half of U ends where it is least
			if j%4 != c {
				near.Data[c*near.Stride+j] *= 0.01
			}
		}
	}
	for i := range x.Rows {
		for c := range 4 {
			if i%30 == 3 {
				hu.Data[i*hu.Stride+c] *= 100
			}
		}
		product(nearly.Row(i), hu.Row(i), near)
	}
	for i := range near.Data {
		near.Data[i] *= 0.95 + 0.1*src.Float64()
	}
	fixed := u.Clone()
	fixed.Cols = 2
	fixedU := quantmf.WithFixedU(fixed)
	far := x.Clone() // whose losses have another unit
	for i := range far.Data {
		far.Data[i] *= 0x1p150
	}
	tails := quantmf.NewMat(70, 9) // on which steps ahead go too far
	for i := range tails.Data {
		tails.Data[i] = math.Pow(src.Float64(), -6)
	}
	for name, c := range map[string]sharded{
		"NMF":                 nmf(x, epochs(7)),
		"NMF, penalty":        nmf(x, epochs(7), penalties, patience(2)),
		"NMF, missing":        nmf(holes, epochs(7), missing),
		"NMF, validation":     nmf(holes, epochs(60), missing, validation(0.2), patience(3)),
		"NMF, Frobenius, SVD": nmf(small, epochs(5), frobenius, vectors),
		"NMF, patience":       nmf(x, epochs(400), patience(1)),
		"NMF, far":            nmf(far, epochs(3), validation(0.1)),
		"NMF, too far":        nmf(tails, epochs(30), quantmf.WithLoss(quantmf.Beta(2.5))),
		"NMF, no epoch":       nmf(x, epochs(0)),
		"Newton":              newton(x, epochs(9)),
		"Newton, no epoch":    newton(x, epochs(0)),
		"Newton, 3 epochs":    newton(x, epochs(3)),
		"Newton, 4 epochs":    newton(x, epochs(4)),
		"Newton, mostly zero": newton(thin, epochs(9)),
		"Newton, few cells":   newton(few, epochs(9), missing),
		"Frobenius, few":      newton(few, epochs(9), missing, frobenius),
		"Newton, penalty":     newton(x, epochs(30), penalties, patience(2)),
		"Newton, fixed U":     newton(x, epochs(9), fixedU),
		"NMF, fixed U":        nmf(x, epochs(9), fixedU),
		"Newton, missing":     newton(holes, epochs(8), missing),
		"Newton, validation":  newton(holes, epochs(60), missing, validation(0.2), patience(3)),
		"Frobenius, Newton":   newton(small, epochs(9), frobenius, vectors),
		"Frobenius, no epoch": newton(x, epochs(0), frobenius),
		"Frobenius, penalty":  newton(x, epochs(9), frobenius, penalties),
		"Frobenius, missing":  newton(holes, epochs(9), frobenius, missing, validation(0.1)),
		"Frobenius, close":    newton(made, epochs(60), frobenius),
		"Frobenius, near":     newton(nearly, epochs(3), quantmf.WithInit(hu, near), frobenius),
		"Newton, exact fit":   newton(made, epochs(90)),
		"Newton, still":       newton(made, epochs(40), quantmf.WithInit(u, v)),
		"Frobenius, still":    newton(made, epochs(40), quantmf.WithInit(u, v), frobenius),
		"Newton, patience":    newton(made, epochs(40), quantmf.WithInit(u, v), patience(9)),
		"QMF":                 given(x),
		"QMF, no epoch":       given(x, epochs(0)),
		"QMF, chosen":         qmf(x, epochs(2)),
		"QMF, at rest":        qmf(x),
		"QMF, missing":        given(holes, missing),
		"QMF, validation":     given(holes, missing, validation(0.2), epochs(12), patience(2)),
		"QMF, patience":       given(x, epochs(30), patience(1), quantmf.WithPenalty(0.3), levels(4)),
		"QMF, paper":          qmf(x, paper, epochs(4)),
		"QMF, paper, best": qmf(x, paper, epochs(9), quantmf.WithLearningRate(1), validation(0.1),
			quantmf.WithPenalty(1), quantmf.WithEnds(quantmf.EndsPinned)),
		"QMF, paper, patience": qmf(x, paper, epochs(12), quantmf.WithLearningRate(0.5),
			quantmf.WithPenalty(3), patience(1)),
		"QMF, fixed U":        given(x, fixedU),
		"QMF, paper, fixed U": qmf(x, paper, epochs(3), fixedU),
		"QMF, far":            given(far, validation(0.1)),
		"QMF, signed":         given(signed, frobenius),
		"QMF, units":          given(small, quantmf.WithLoss(quantmf.Beta(0.5)), levels(5)),
		// which are solved by points
		"QMF, many samples": qmf(tabled(many, 4104), quantmf.WithStart(quantmf.StartNMF),
			quantmf.WithShrinkage(0), epochs(2), levels(3)),
		"QMF, convergence": given(x, quantmf.WithMaxIterations(2)),
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "NMF, patience" || name == "QMF, at rest") {
				t.Skip("others have patience, and a start that is chosen")
			}
			t.Parallel()
			method, plan, opts := quantmf.MethodNMF, PlanNMF, c.opts
			alone := []quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)}
			if c.qmf {
				method, plan = quantmf.MethodQMF, PlanQMF
				opts, alone = append(opts, quantmf.WithBatch(1000)), nil
			}
			want := Must(quantmf.Fit(t.Context(), method, c.x, 4, append(alone, opts...)...))(t)
			counts := []int{1, 2, 3, 8}
			if testing.Short() {
				counts = []int{3}
			} else if !long && c.qmf {
				counts = []int{8}
			} else if !long { // half of them in one shard, too
				counts = []int{3, 1}[:1+len(name)%2]
			}
			for _, shards := range counts {
				if shards == 8 && !c.qmf {
					continue // there are four runs
				}
				s := newShelf(t)
				OK(t, plan(t.Context(), s, shards, c.x, 4, opts...))
				if got := finish(t, s); !bytes.Equal(marshalled(t, got), marshalled(t, want)) {
					t.Errorf("%d shards: another model", shards)
				}
			}
		})
	}
}

// TestShardFar: where numbers lie so far apart that sums of Newton's method overflow, a fit in shards has the
// bits of one machine, too.
func TestShardFar(t *testing.T) {
	x := quantmf.Mat{Rows: 5, Cols: 7, Stride: 7,
		Data: []float64{31, 12, 0, 0.5, 7, 1e-9, 0, 10, 1e30, 3, 1e-100, 1e-300, 1e30, 5e-324, 2, 2, 0.5,
			7, 0, 1e-3, 1 + 0x1p-52, 3, 10, 1e12, 1e12, 5e-324, 5e-324, 1e30,
			7, 1e-9, 0.5, 1e13, 1e-60, 7, 1e30}}
	for _, loss := range []quantmf.Loss{quantmf.KL, quantmf.Frobenius} {
		opts := []quantmf.FitOption{quantmf.WithLoss(loss), quantmf.WithUpdates(quantmf.UpdatesNewton),
			quantmf.WithMissingValues(), quantmf.WithEpochs(19)}
		want := Must(quantmf.FitNMF(t.Context(), x, 3, opts...))(t)
		s := newShelf(t)
		OK(t, PlanNMF(t.Context(), s, 1, x, 3, opts...))
		if got := finish(t, s); !bytes.Equal(marshalled(t, got), marshalled(t, want)) {
			t.Errorf("%v: another model", loss)
		}
	}
}

var plans = []func(context.Context, Store, int, quantmf.Rows, int, ...quantmf.FitOption) error{PlanNMF,
	PlanQMF}

// fewEpochs are the options of a QMF of planned.
var fewEpochs = []quantmf.FitOption{quantmf.WithEpochs(2), quantmf.WithStart(quantmf.StartNMF),
	quantmf.WithShrinkage(1), quantmf.WithLevels(4), quantmf.WithValidation(0.1)}

// planned is a fit of x in shards, of some rounds done.
func planned(t *testing.T, s *shelf, kind string, count int) (*Fit, quantmf.Mat) {
	t.Helper()
	x := tabled(130, 20)
	plan, opts := PlanNMF, []quantmf.FitOption{quantmf.WithEpochs(6), quantmf.WithValidation(0.1)}
	switch kind {
	case "QMF":
		plan, opts = PlanQMF, fewEpochs
	case "Newton": // from the first round on
		opts = []quantmf.FitOption{quantmf.WithEpochs(6), quantmf.WithUpdates(quantmf.UpdatesNewton),
			quantmf.WithLoss(quantmf.Frobenius)}
	}
	OK(t, plan(context.Background(), s, 3, x, 2, opts...))
	fit := Must(Open(s))(t)
	rounds(t, fit, count)
	return fit, x
}

// rounds makes the first rounds of a fit, at most as many as there are.
func rounds(t *testing.T, fit *Fit, count int) {
	t.Helper()
	for round := range count {
		for shard := range fit.Shards() {
			OK(t, fit.Step(t.Context(), round, shard))
		}
		if at, err := fit.Reduce(t.Context(), round); err != nil {
			t.Fatal(err)
		} else if at.Over {
			break
		}
	}
}

// TestShardFaults: a blob that is lost, cut, flipped or taken from elsewhere is found wherever that happens.
// Either an error names it, and the step that it names mends it; or the fit ends with the model that it has
// anyway.
func TestShardFaults(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"NMF", "Newton", "QMF"} {
		if testing.Short() && kind == "Newton" {
			continue
		}
		whole := newShelf(t)
		planned(t, whole, kind, 0)
		want := marshalled(t, finish(t, whole))
		reference := newShelf(t) // as it stands in round 3, all steps made
		fit, _ := planned(t, reference, kind, 3)
		for shard := range fit.Shards() {
			OK(t, fit.Step(ctx, 3, shard))
		}
		other := newShelf(t) // of another fit
		OK(t, PlanNMF(ctx, other, 3, tabled(131, 20), 2, quantmf.WithEpochs(6),
			quantmf.WithValidation(0.1)))
		finish(t, other)
		faults := map[string]func(name string, b []byte) []byte{
			"lost":    func(string, []byte) []byte { return nil },
			"empty":   func(string, []byte) []byte { return []byte{} },
			"cut":     func(_ string, b []byte) []byte { return b[:len(b)*2/3] },
			"flipped": func(_ string, b []byte) []byte { b[len(b)/2] ^= 4; return b },
			"doubled": func(_ string, b []byte) []byte { return append(b, b...) },
			"of another shard": func(name string, b []byte) []byte {
				at := []byte(name)
				at[len(at)-1] = '0' + (at[len(at)-1]-'0'+1)%3
				if from, is := reference.before[string(at)]; is {
					return bytes.Clone(from)
				}
				return nil
			},
			"of another round": func(name string, b []byte) []byte {
				for _, n := range []string{"2", "3", "4"} {
					at := strings.Replace(name, "00000"+name[strings.Index(name, "00000")+5:][:1], "00000"+n,
						1)
					if from, is := reference.before[at]; is && at != name {
						return bytes.Clone(from)
					}
				}
				return nil
			},
			"of another fit": func(name string, b []byte) []byte { return bytes.Clone(other.before[name]) },
		}
		names := []string{"part-000003-0001", "state-000004-0002", "state-000003-0001", "rows-0001",
			"v-000003", "main-000003", "round-000003", "plan", "round-000000", "round-000001", "round-000002"}
		for _, name := range names {
			for fault, change := range faults {
				if fault == "of another shard" && !strings.Contains(name, "-000") ||
					fault == "of another round" && !strings.Contains(name, "-00000") {
					continue
				}
				s := newShelf(t)
				maps.Copy(s.blobs, reference.blobs)
				maps.Copy(s.before, reference.before)
				if _, there := s.blobs[name]; !there {
					t.Fatalf("%s is not there", name)
				}
				b := change(name, bytes.Clone(s.blobs[name]))
				if fault == "lost" || b == nil {
					delete(s.blobs, name)
				} else {
					s.blobs[name] = b
				}
				m, err := anyway(s)
				var format *quantmf.FormatError
				var again *StepError // which has not mended it
				switch {
				case err == nil && !bytes.Equal(marshalled(t, m), want):
					t.Errorf("%s %s: another model", name, fault)
				case err != nil && (errors.As(err, &again) ||
					!errors.As(err, &format) && !errors.Is(err, errMissing) ||
					!strings.Contains(err.Error(), name) &&
						!(name == planName && strings.Contains(err.Error(), "of another fit"))):
					t.Errorf("%s %s: no error names it: %v", name, fault, err)
				}
			}
		}
	}
}

// TestShardReducedAgain: where V, or what only Reduce reads, is lost, the error says what writes it again,
// and that does.
func TestShardReducedAgain(t *testing.T) {
	ctx := context.Background()
	for round, way := range []string{"the plan of the same fit writes it again",
		"the reduce of round 0 writes it again"} {
		s := newShelf(t)
		fit, x := planned(t, s, "QMF", round)
		for _, name := range []string{fmt.Sprintf("v-%06d", round), fmt.Sprintf("main-%06d", round)} {
			whole := s.blobs[name]
			delete(s.blobs, name)
			var err error
			for i := 0; i < fit.Shards() && err == nil; i++ {
				err = fit.Step(ctx, round, i)
			}
			if err == nil {
				_, err = fit.Reduce(ctx, round)
			}
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), way) ||
				!errors.Is(err, errMissing) {
				t.Errorf("%s is lost: %v", name, err)
			}
			if round > 0 {
				_, err = fit.Reduce(ctx, round-1)
			} else {
				err = PlanQMF(ctx, s, 3, x, 2, fewEpochs...)
			}
			if err != nil || whole == nil || !bytes.Equal(s.blobs[name], whole) {
				t.Errorf("%s was not written again: %v", name, err)
			}
		}
	}
}

// TestShardSteps: what is done again, too early, too late or on no shard.
func TestShardSteps(t *testing.T) {
	ctx := context.Background()
	s := newShelf(t)
	fit, x := planned(t, s, "QMF", 1)
	if err := PlanQMF(ctx, s, 3, x, 2, fewEpochs...); err != nil {
		t.Error(err) // the same bytes, which the store looks at
	}
	var option *quantmf.OptionError
	if err := PlanQMF(ctx, s, 2, x, 2, fewEpochs...); !errors.As(err, &option) || option.Option != "store" {
		t.Errorf("another plan: %v", err)
	}
	var shape *quantmf.ShapeError
	for _, shard := range []int{-1, 3} {
		if err := fit.Step(ctx, 1, shard); !errors.As(err, &shape) {
			t.Errorf("shard %d: %v", shard, err)
		}
	}
	var early *StepError
	if err := fit.Step(ctx, 2, 0); !errors.As(err, &early) || early.Round != 2 {
		t.Errorf("a step of the next round: %v", err)
	}
	if _, err := fit.Reduce(ctx, 1); !errors.As(err, &early) || early.Round != 1 || early.Shard != 0 ||
		!errors.Is(err, errMissing) {
		t.Errorf("without steps: %v", err)
	}
	if _, err := fit.Reduce(ctx, 9); err == nil {
		t.Error("a round that does not exist was reduced")
	}
	if _, err := fit.Finish(ctx); !errors.As(err, &option) {
		t.Errorf("a fit that is not over: %v", err)
	}
	OK(t, fit.Step(ctx, 1, 1))
	puts := s.puts
	for _, round := range []int{0, 1} { // done
		if err := fit.Step(ctx, round, 1); err != nil {
			t.Error(err)
		}
	}
	if s.puts != puts {
		t.Error("a step that is done was made again")
	}
	delete(s.blobs, "part-000001-0001")
	if err := fit.Step(ctx, 1, 1); err != nil || s.blobs["part-000001-0001"] == nil {
		t.Errorf("a part was not made again: %v", err)
	}
	puts = s.puts
	for n := range 5 {
		if err := fit.Step(&endsAfter{Context: ctx, n: n}, 1, 2); !errors.Is(err, context.Canceled) ||
			s.puts != puts {
			t.Errorf("a step whose context has ended: %v", err)
		}
	}
	m := finish(t, s)
	puts = s.puts
	for round := range 20 { // as where rounds are planned ahead
		if err := fit.Step(ctx, round, 0); err != nil {
			t.Error(err)
		}
		if at, err := fit.Reduce(ctx, round); err != nil || at.Number != min(round+1, 6) {
			t.Errorf("round %d is reduced again: %v, %v", round, at, err)
		}
		if at, err := fit.Reduce(ctx, round+5); err != nil || !at.Over || at.Epoch != 2 ||
			at.Loss != m.(*quantmf.QMF).History[2] {
			t.Errorf("round %d: %v, %v", round+5, at, err)
		}
	}
	if s.puts != puts {
		t.Error("something was written after the end")
	}
	for name := range s.blobs {
		if strings.HasPrefix(name, "state-000001") || strings.HasPrefix(name, "part-000001") ||
			strings.HasPrefix(name, "v-000001") {
			t.Errorf("%s stays", name)
		}
	}
}

// TestShardDamagedRounds: up to three damaged records of rounds, one after the other, do not hide the rounds
// behind them.
func TestShardDamagedRounds(t *testing.T) {
	ctx, s := t.Context(), newShelf(t)
	OK(t, PlanNMF(ctx, s, 2, tabled(40, 9), 2, quantmf.WithEpochs(11)))
	finish(t, s)
	fit := Must(Open(s))(t)
	want, err := fit.Round()
	if err != nil || !want.Over || want.Number < 10 {
		t.Fatalf("%v, %v", want, err)
	}
	for first := range want.Number {
		for count := 1; count <= min(3, want.Number-first); count++ {
			kept := map[string][]byte{}
			for round := first; round < first+count; round++ {
				name := fmt.Sprintf("round-%06d", round)
				kept[name] = s.blobs[name]
				s.blobs[name] = kept[name][:len(kept[name])-9*(round%2)-1]
			}
			if got, err := fit.Round(); err != nil || got.Number != want.Number || !got.Over {
				t.Errorf("rounds %d to %d are damaged: round %d, %v, want %d", first, first+count-1,
					got.Number, err, want.Number)
			}
			for name, b := range kept {
				s.blobs[name] = b
			}
		}
	}
}

// TestShardFailingStore: where a record of a round is damaged and the store fails for the next, the error is
// that of the store.
func TestShardFailingStore(t *testing.T) {
	ctx, s := t.Context(), newShelf(t)
	OK(t, PlanNMF(ctx, s, 2, tabled(40, 9), 2, quantmf.WithEpochs(3)))
	finish(t, s)
	gone, absent := errors.New("the shelf is gone"), ""
	fit := Must(Open(watched{s, func(name string) error {
		if name == absent {
			return gone
		}
		return nil
	}}))(t)
	absent = "round-000001"
	s.blobs["round-000000"] = s.blobs["round-000000"][:9]
	if r, err := fit.Round(); !errors.Is(err, gone) {
		t.Errorf("%+v, %v", r, err)
	}
}

// watched is a shelf that asks before it gives a blob.
type watched struct {
	*shelf
	ask func(name string) error
}

func (s watched) Get(name string) ([]byte, error) {
	if err := s.ask(name); err != nil {
		return nil, err
	}
	return s.shelf.Get(name)
}

// counting counts how often each blob is read.
func counting(s *shelf, reads map[string]int) Store {
	return watched{s, func(name string) error { reads[name]++; return nil }}
}

// TestShardOptions: what a fit in shards does not have is an error of its plan, and leaves no blob.
func TestShardOptions(t *testing.T) {
	ctx, x, none := context.Background(), tabled(40, 20), func([]byte) error { return nil }
	for name, err := range map[string]error{
		"shards":    PlanQMF(ctx, newShelf(t), 4, x, 2),
		"no shards": PlanNMF(ctx, newShelf(t), 0, x, 2),
		"WithUpdates": PlanNMF(ctx, newShelf(t), 1, x, 2, quantmf.WithUpdates(quantmf.UpdatesNewton),
			quantmf.WithLoss(quantmf.Beta(3))),
		"WithRestarts":   PlanNMF(ctx, newShelf(t), 1, x, 2, quantmf.WithRestarts(2)),
		"WithCheckpoint": PlanQMF(ctx, newShelf(t), 1, x, 2, quantmf.WithCheckpoint(1, none)),
		"WithResume":     PlanQMF(ctx, newShelf(t), 1, x, 2, quantmf.WithResume([]byte{1})),
		"WithBatch":      PlanQMF(ctx, newShelf(t), 1, x, 2, quantmf.WithBatch(39)),
		"WithStart":      PlanQMF(ctx, newShelf(t), 1, x, 2, quantmf.WithStart(quantmf.StartSVD)),
		"WithIterations": PlanQMF(ctx, newShelf(t), 1, x, 2, quantmf.WithIterations(3)),
		"rank":           PlanQMF(ctx, newShelf(t), 1, x, 0),
	} {
		var option *quantmf.OptionError
		if !errors.As(err, &option) || option.Option != strings.TrimPrefix(name, "no ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	for _, plan := range plans {
		for want, o := range map[string]quantmf.FitOption{
			"WithSampleWeights": quantmf.WithSampleWeights(slices.Repeat([]float64{1}, x.Cols)),
			"WithCellWeights":   quantmf.WithCellWeights(x)} {
			var bad *quantmf.OptionError
			if err := plan(ctx, newShelf(t), 2, x, 2, o); !errors.As(err, &bad) || bad.Option != want {
				t.Errorf("%s: %v", want, err)
			}
		}
		s := newShelf(t)
		if err := plan(stopped, s, 1, x, 2); !errors.Is(err, context.Canceled) ||
			s.blobs[planName] != nil {
			t.Errorf("a plan whose context has ended: %v", err)
		}
		var data *quantmf.DataError
		bad := x.Clone()
		bad.Data[30] = math.NaN()
		if err := plan(ctx, s, 1, bad, 2); !errors.As(err, &data) || data.Row != 1 || data.Col != 10 {
			t.Errorf("NaN: %v", err)
		}
	}
}

// rowsIn is a fit whose store has the rows of x and no plan.
func rowsIn(s *shelf, shards int, x quantmf.Mat, held []uint64, partial bool) *Fit {
	f := &Fit{store: s, plan: &plan{Shards: shards, Plan: qmf.Plan{Kind: section.QMF, D: x.Rows, N: x.Cols,
		K: 1, Partial: partial, Holds: true}}}
	f.plan.setRuns()
	for shard := range shards {
		s.Put(f.plan.whom(kindRows, 0, shard).name(), f.plan.encodeRows(shard,
			&qmf.SplitStart{Held: held, Row: func(_ []float64, i int) []float64 { return x.Row(i) }}))
	}
	return f
}

// TestShardRows: the rows of a shard come back with their bits and masks, listed or not, in single or double
// precision.
func TestShardRows(t *testing.T) {
	for name, c := range map[string]struct {
		draw func(src *random.Source) float64
		most int // bytes a cell
	}{
		"counts":         {func(src *random.Source) float64 { return float64(src.IntN(9)) + 1 }, 4},
		"few counts":     {func(src *random.Source) float64 { return float64(max(src.IntN(9)-6, 0)) }, 3},
		"numbers":        {func(src *random.Source) float64 { return src.Float64() }, 8},
		"few numbers":    {func(src *random.Source) float64 { return max(src.Float64()-0.8, 0) }, 5},
		"negative zeros": {func(src *random.Source) float64 { return max(src.Float64()-0.8, 0) * -1 }, 5},
	} {
		const d, n, shards = 100, 70, 3
		src, x, held := random.Split(6, 6), quantmf.NewMat(d, n), make([]uint64, 2*d)
		for i := range x.Data {
			if x.Data[i] = c.draw(&src); src.IntN(10) == 0 {
				x.Data[i] = math.NaN()
			} else if src.IntN(5) == 0 {
				held[i/n*2+i%n/64] |= 1 << (i % n % 64)
			}
		}
		s := newShelf(t)
		f := rowsIn(s, shards, x, held, true)
		size := 0
		for shard := range shards {
			size += len(s.blobs[f.plan.whom(kindRows, 0, shard).name()])
			got, err := f.readRows(shard)
			if err != nil {
				t.Fatal(name, err)
			}
			from, to := got.Cut.Rows()
			row := make([]float64, n)
			for i := from; i < to; i++ {
				visible := 0
				OK(t, got.X.ReadRow(row, i-from))
				for j, v := range row {
					w, hidden := x.At(i, j), held[2*i+j/64]>>(j%64)&1 == 1
					if math.Float64bits(v) != math.Float64bits(w+0) && !(v != v && w != w) ||
						hidden != (got.Held[2*(i-from)+j/64]>>(j%64)&1 == 1) {
						t.Fatalf("%s: cell %d, %d is %v, want %v", name, i, j, v, w)
					}
					if v == v && !hidden {
						visible++
					}
				}
				if got.Visible[i-from] != visible {
					t.Fatalf("%s: row %d has %d visible cells, want %d", name, i, got.Visible[i-from],
						visible)
				}
			}
		}
		if size > c.most*d*n+6000 {
			t.Errorf("%s take %d bytes", name, size)
		}
	}
}

// TestShardRowsDamaged: rows whose checksums are right and whose numbers are not those of a shard are
// refused, and the error says where.
func TestShardRowsDamaged(t *testing.T) {
	const d, n = 16, 8
	for name, c := range map[string]struct {
		change func(x []float64, held []uint64)
		alter  func(b []byte) []byte
		where  string
	}{
		"a number is missing": {func(x []float64, _ []uint64) { x[3*n+2] = math.NaN() }, nil, "CELL"},
		"nothing is visible":  {func(_ []float64, held []uint64) { held[3] = 1<<n - 1 }, nil, "CELL"},
		"infinite": {nil, func(b []byte) []byte { return altered(b, "CELL", 0, 0x7f8000007f800000) },
			"CELL"},
		"held beyond the last": {nil, func(b []byte) []byte { return altered(b, "HELD", 1, 1<<n) }, "HELD"},
		"of no form":           {nil, func(b []byte) []byte { return altered(b, "FORM", 0, 2) }, "FORM"},
		"start beyond the end": {func(x []float64, _ []uint64) { clear(x[n:]) },
			func(b []byte) []byte { return altered(b, "STRT", 3, 99) }, "STRT"},
		"starts fall": {func(x []float64, _ []uint64) { clear(x[n:]) },
			func(b []byte) []byte { return altered(b, "STRT", 2, 3) }, "STRT"},
	} {
		x, held := quantmf.NewMat(d, n), make([]uint64, d)
		for i := range x.Data {
			x.Data[i] = float64(1 + i%5)
		}
		if c.change != nil {
			c.change(x.Data, held)
		}
		s := newShelf(t)
		f := rowsIn(s, 1, x, held, false)
		if c.alter != nil {
			s.blobs["rows-0000"] = c.alter(s.blobs["rows-0000"])
		}
		var format *section.Error
		if _, err := f.readRows(0); !errors.As(err, &format) || !strings.Contains(format.Problem, c.where) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShardStrict: under WithStrict what has not converged is an error beside the model.
func TestShardStrict(t *testing.T) {
	s := newShelf(t)
	OK(t, PlanQMF(t.Context(), s, 2, tabled(40, 20), 2, quantmf.WithStrict(),
		quantmf.WithMaxIterations(2),
		quantmf.WithEpochs(1), quantmf.WithStart(quantmf.StartUniform)))
	fit := Must(Open(s))(t)
	rounds(t, fit, math.MaxInt)
	var warning *quantmf.ConvergenceError
	if m, err := fit.Finish(t.Context()); m == nil || !errors.As(err, &warning) {
		t.Errorf("%v, %v", m, err)
	}
}

// TestShardHolders: whatever holds a matrix, its shards have the same bytes; and an error of reading ends the
// plan.
func TestShardHolders(t *testing.T) {
	if testing.Short() {
		t.Skip("plans and fits by three holders")
	}
	ctx := context.Background()
	x := tabled(130, 40)
	for i := range x.Data {
		if i%3 > 0 {
			x.Data[i] = 0
		}
	}
	start, index, values, single := []int{0}, []uint32{}, []float64{}, make([]float32, len(x.Data))
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			single[i*x.Cols+j] = float32(v)
			if v != 0 {
				index, values = append(index, uint32(j)), append(values, v)
			}
		}
		start = append(start, len(index))
	}
	sparse := Must(quantmf.NewSparse(x.Cols, start, index, values))(t)
	for _, plan := range plans {
		want := newShelf(t)
		OK(t, plan(ctx, want, 2, x, 2, quantmf.WithEpochs(2)))
		for _, holder := range []quantmf.Rows{sparse,
			quantmf.Mat32{Rows: x.Rows, Cols: x.Cols, Data: single, Stride: x.Cols}} {
			got := newShelf(t)
			got.before = want.before // where other bytes are an error
			OK(t, plan(ctx, got, 2, holder, 2, quantmf.WithEpochs(2)))
			if len(got.blobs) != len(want.blobs) {
				t.Errorf("%d blobs, want %d", len(got.blobs), len(want.blobs))
			}
		}
		var read *quantmf.ReadError
		for after := 0; ; after = after*5/4 + 1 {
			s, calls := newShelf(t), 0
			err := plan(ctx, s, 2, failing{x, 7, after, &calls, errors.New("gone")}, 2, quantmf.WithEpochs(2))
			if err == nil && after > 2 {
				break
			}
			if !errors.As(err, &read) || read.Row != 7 || s.blobs[planName] != nil {
				t.Errorf("row 7 is read %d times: %v", after, err)
			}
		}
	}
}

// TestShardNumbers: blobs whose checksums are right and whose numbers are not make errors of a type, or a
// model: they never panic, and take no more memory than their length.
func TestShardNumbers(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	ctx := context.Background()
	values := []uint64{0, 1, 2, 1 << 31, 1<<63 - 1, math.MaxUint64, math.Float64bits(math.NaN()),
		math.Float64bits(math.Inf(1)), math.Float64bits(-1), math.Float64bits(1e308)}
	tags := map[string][]string{"plan": {"WHOM", "WORD", "REAL", "UNIT"},
		"rows":  {"WHOM", "FORM", "STRT", "COLS", "CELL", "HELD"},
		"round": {"WHOM", "STAT", "HIST", "VALI", "NUMB"},
		"v":     {"WHOM", "VFAC", "VTWO"}, "main": {"WHOM", "REAL"}, "state": {"WHOM", "REAL", "IDX0"},
		"part": {"WHOM", "NUMS", "DENS", "LOSS", "HELD", "UFAC", "FILE"}}
	src := random.Split(2, 9)
	errs, models := 0, 0
	for _, kind := range []string{"NMF", "Newton", "QMF"} {
		x := tabled(40, 12)
		for i := range x.Data {
			if i%4 > 0 && i/12 != 3 {
				x.Data[i] = 0
			}
		}
		for j := range 12 {
			x.Data[5*12+j] *= 0x1p-90
		}
		penalties := quantmf.WithPenalties(quantmf.Penalties{L1U: 0.1, L2V: 0.1})
		plan, opts, rounds := PlanNMF,
			[]quantmf.FitOption{quantmf.WithEpochs(2), quantmf.WithValidation(0.1), penalties}, 2
		switch kind {
		case "Newton": // its rounds 3, 4 and 5 are those of its own
			opts, rounds = []quantmf.FitOption{quantmf.WithEpochs(4), quantmf.WithValidation(0.1),
				penalties, quantmf.WithUpdates(quantmf.UpdatesNewton)}, 6
		case "QMF":
			plan, opts, rounds = PlanQMF,
				[]quantmf.FitOption{quantmf.WithEpochs(1), quantmf.WithStart(quantmf.StartUniform),
					quantmf.WithLevels(3), quantmf.WithValidation(0.1),
					quantmf.WithPenalty(0.1), quantmf.WithPatience(2)}, 4
		}
		for _, at := range []int{rounds - 1, 1, rounds - 2}[:2+rounds/6] {
			reference := newShelf(t)
			OK(t, plan(ctx, reference, 2, x, 2, opts...))
			fit := Must(Open(reference))(t)
			for round := range at + 1 {
				for shard := range 2 {
					OK(t, fit.Step(ctx, round, shard))
				}
				if round < at {
					Must(fit.Reduce(ctx, round))(t)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(reference.blobs)) {
				b := reference.blobs[name]
				kind, _, _ := strings.Cut(name, "-")
				number, _ := section.Kind(b)
				f, err := section.Decode(b, number, section.KindName, nil, tags[kind])
				if err != nil {
					t.Fatal(name, err)
				}
				for _, tag := range tags[kind] {
					count := len(f.Payload(tag)) / 8
					for number := range count {
						first := kind == "plan" && tag == "REAL" && number == 0 // ε
						// without QUANTMF_LONG half of the numbers
						if count > 30 && src.IntN(count) >= 3 || !long && !first && src.IntN(2) == 0 {
							continue
						}
						value := values[src.IntN(len(values))]
						wants := false // an error
						if first {
							value, wants = 0, kind == "QMF"
						}
						s := newShelf(t)
						maps.Copy(s.blobs, reference.blobs)
						s.blobs[name] = altered(b, tag, number, value)
						m, err := anyway(s)
						var option *quantmf.OptionError
						var format *quantmf.FormatError
						switch {
						case wants && !errors.As(err, &format):
							t.Errorf("%s, %s %d is %x: %v", name, tag, number, value, err)
						case err == nil:
							models++
							if m == nil {
								t.Errorf("%s, %s %d is %x: no model", name, tag, number, value)
							}
						case !errors.As(err, &option) && !errors.As(err, &format) &&
							!errors.Is(err, errMissing) && !errors.Is(err, ErrNotReduced):
							t.Errorf("%s, %s %d is %x: %v", name, tag, number, value, err)
						default:
							errs++
						}
					}
				}
			}
		}
	}
	t.Logf("%d errors, %d models", errs, models)
	if errs < 200 || models == 0 {
		t.Error("that is few")
	}
}

// anyway brings a fit to its end, doing again the steps that errors name, or to its first error that no step
// mends.
func anyway(s *shelf) (quantmf.Model, error) {
	ctx := context.Background()
	fit, err := Open(s)
	if err != nil {
		return nil, err
	}
	for mends := 0; ; {
		at, err := fit.Round()
		if err != nil {
			return nil, err
		}
		if at.Number > 20 { // more epochs are no damage
			return new(quantmf.NMF), nil
		}
		var m quantmf.Model
		if at.Over {
			m, err = fit.Finish(ctx)
		} else {
			_, err = fit.Reduce(ctx, at.Number)
		}
		var again *StepError
		if errors.As(err, &again) && mends < 60 {
			mends++
			err = fit.Step(ctx, again.Round, again.Shard)
		} else if at.Over {
			return m, err
		}
		if err != nil {
			return nil, err
		}
	}
}

// TestKeepRows: rows that are kept are read once, those for which there is no room each time, and the model
// is the same.
func TestKeepRows(t *testing.T) {
	for _, kind := range []string{"NMF", "QMF"} {
		var want []byte
		for _, room := range []int64{0, 1 << 20, 1 << 13} {
			s := newShelf(t)
			fit, _ := planned(t, s, kind, 0)
			most, left := 0, room
			for shard := range fit.Shards() {
				rows := Must(fit.readRows(shard))(t)
				if left -= sizeOf(rows); left >= 0 {
					most++
				}
			}
			if room > 0 {
				fit.KeepRows(room)
			}
			reads := map[string]int{}
			fit.store = counting(s, reads)
			rounds(t, fit, math.MaxInt)
			rounds, kept := Must(fit.Round())(t).Number, 0
			for shard := range fit.Shards() {
				switch count := reads["rows-000"+strconv.Itoa(shard)]; {
				case count == 1 && rounds > 1:
					kept++
				case count < rounds-1:
					t.Errorf("room %d: the rows of shard %d are read %d times in %d rounds", room, shard,
						count, rounds)
				}
			}
			if kept != most || room == 1<<13 && (kept == 0 || kept == fit.Shards()) {
				t.Errorf("room %d: %d shards of %d are kept, not %d", room, kept, fit.Shards(), most)
			}
			got := marshalled(t, finish(t, s))
			if want == nil {
				want = got
			} else if !bytes.Equal(got, want) {
				t.Errorf("room %d: other bits", room)
			}
		}
	}
}

// TestKeepLastRows: without KeepRows the rows that were read last are kept, and after KeepRows(0) none.
func TestKeepLastRows(t *testing.T) {
	for _, c := range []struct {
		none bool
		want int
	}{{false, 2}, {true, 3}} {
		s := newShelf(t)
		fit, _ := planned(t, s, "NMF", 0)
		reads := map[string]int{}
		fit.store = counting(s, reads)
		if c.none {
			fit.KeepRows(0)
		}
		for _, shard := range []int{0, 0, 1, 0} {
			Must(fit.rowsOf(shard))(t)
		}
		Equal(t, reads["rows-0000"], c.want, "none %v: the rows are read", c.none)
	}
}

// holed returns x with about a share of its cells NaN.
func holed(x quantmf.Mat, share float64) quantmf.Mat {
	y := x.Clone()
	Hole(y.Data, share)
	return y
}

// product fills row with u V.
func product(row, u []float64, v quantmf.Mat) {
	clear(row)
	for c, uc := range u {
		for j, vc := range v.Row(c) {
			row[j] += float64(uc * vc)
		}
	}
}

// endsAfter is a context that ends at the n-th question.
type endsAfter struct {
	context.Context
	mu sync.Mutex
	n  int
}

func (c *endsAfter) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// failing fails to read a row from some call on.
type failing struct {
	quantmf.Rows
	row, after int
	calls      *int
	err        error
}

func (f failing) ReadRow(x []float64, i int) error {
	if i == f.row {
		if *f.calls++; *f.calls > f.after {
			return f.err
		}
	}
	return f.Rows.ReadRow(x, i)
}

// altered returns a copy of a blob with one number of a section replaced, its sum right.
func altered(data []byte, tag string, number int, value uint64) []byte {
	const headerSize, sectionSize = 24, 20
	b := bytes.Clone(data)
	for at := headerSize; at < len(b); {
		n := int(binary.LittleEndian.Uint64(b[at+8:]))
		p := b[at+sectionSize : at+sectionSize+n]
		if string(b[at:at+4]) == tag {
			binary.LittleEndian.PutUint64(p[8*number:], value)
			binary.LittleEndian.PutUint32(b[at+sectionSize+n:], crc32.ChecksumIEEE(p))
			break
		}
		at += sectionSize + n + 4
	}
	return b
}
