package quantmf

// Tests of states that a fit refuses to go on from: of another fit, with other options, or
// with numbers that no fit could have.

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestResumeRefuses: other data, other options and damaged states are errors that
// say which.
func TestResumeRefuses(t *testing.T) {
	x := toy(2)
	x.Rows = 20
	ctx := context.Background()
	var state []byte
	opts := []FitOption{WithEpochs(4), WithCheckpoint(3, func(s []byte) error { state = s; return nil })}
	if _, err := FitQMF(ctx, x, 2, opts...); err != nil {
		t.Fatal(err)
	}
	var option *OptionError
	var data *DataError
	var format *FormatError
	resume := WithResume(state)
	if _, err := FitQMF(ctx, x, 2, WithEpochs(5), resume); !errors.As(err, &option) ||
		option.Option != "WithEpochs" {
		t.Errorf("other epochs: %v", err)
	}
	if _, err := FitQMF(ctx, x, 3, WithEpochs(4), resume); !errors.As(err, &option) ||
		option.Option != "rank" {
		t.Errorf("other rank: %v", err)
	}
	if _, err := FitQMF(ctx, x, 2, WithEpochs(4), WithSeed(2), resume); !errors.As(err, &option) ||
		option.Option != "WithSeed" {
		t.Errorf("other seed: %v", err)
	}
	y := x.Clone()
	y.Set(0, 0, y.At(0, 0)+1)
	if _, err := FitQMF(ctx, y, 2, WithEpochs(4), resume); !errors.As(err, &data) {
		t.Errorf("other data: %v", err)
	}
	if _, err := FitNMF(ctx, x, 2, WithEpochs(4), resume); !errors.As(err, &format) ||
		format.Problem != "this is a state of a fit of QMF, not a state of a fit of NMF" {
		t.Errorf("another model: %v", err)
	}
	u, v := NewMat(20, 2), NewMat(2, x.Cols)
	for _, f := range []Mat{u, v} {
		for i := range f.Data {
			f.Data[i] = 1 + float64(i%3)
		}
	}
	var given []byte
	for name, fit := range map[string]func(...FitOption) error{
		"NMF":  func(o ...FitOption) error { _, err := FitNMF(ctx, x, 2, o...); return err },
		"QMF":  func(o ...FitOption) error { _, err := FitQMF(ctx, x, 2, o...); return err },
		"QMFQ": func(o ...FitOption) error { _, err := FitQMFQ(ctx, x, 2, o...); return err },
	} {
		opts := []FitOption{WithEpochs(3), WithInit(u, v)}
		if err := fit(append(opts,
			WithCheckpoint(2, func(s []byte) error { given = s; return nil }))...); err != nil {
			t.Fatal(err)
		}
		v.Set(0, 0, v.At(0, 0)+1)
		if err := fit(append(opts, WithResume(given))...); !errors.As(err, &option) ||
			option.Option != "WithInit" {
			t.Errorf("%s, other factors: %v", name, err)
		}
		v.Set(0, 0, v.At(0, 0)-1)
		// A history that is too short.
		kind := get32(given[12:])
		f, err := decodeSections(given, kind,
			[]string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"})
		if err != nil {
			t.Fatal(err)
		}
		var sections []section.Section
		for _, tag := range f.Tags() {
			payload := f.Payload(tag)
			if tag == "HIST" {
				payload = payload[:len(payload)-8]
			}
			sections = append(sections, section.Section{Tag: tag, Payload: payload})
		}
		if err := fit(append(opts, WithResume(section.Encode(kind, sections)))...); !errors.As(err, &format) {
			t.Errorf("%s, a history that is cut: %v", name, err)
		}
	}
	var third []byte
	if _, err := FitQMFQ(ctx, x, 2, WithEpochs(2),
		WithCheckpoint(1, func(s []byte) error { third = s; return nil })); err != nil {
		t.Fatal(err)
	}
	if _, err := FitQMFQ(ctx, x, 2, WithEpochs(2), WithProjection(KLUpdates(19)),
		WithResume(third)); !errors.As(err, &option) || option.Option != "WithProjection" {
		t.Errorf("another projection: %v", err)
	}
	if _, err := FitQMFQ(ctx, y, 2, WithEpochs(2), WithResume(third)); !errors.As(err, &data) {
		t.Errorf("other data: %v", err)
	}
	if _, err := FitQMFQ(ctx, x, 2, WithEpochs(4), resume); !errors.As(err, &format) {
		t.Errorf("a QMF taken for a QMFQ: %v", err)
	}
	for i := 0; i < len(third); i += 1 + i/20 {
		b := bytes.Clone(third)
		b[i] ^= 4
		if _, err := FitQMFQ(ctx, x, 2, WithEpochs(2), WithResume(b)); !errors.As(err, &format) {
			t.Fatalf("byte %d of a QMFQ changed: %v", i, err)
		}
	}
	for i := 0; i < len(state); i += 1 + i/50 {
		b := bytes.Clone(state)
		b[i] ^= 4
		if _, err := FitQMF(ctx, x, 2, WithEpochs(4), WithResume(b)); !errors.As(err, &format) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := FitQMF(ctx, x, 2, WithEpochs(4), WithResume(b[:i+1])); !errors.As(err, &format) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	cause := errors.New("disk full")
	m, err := FitQMF(ctx, x, 2, WithEpochs(4), WithCheckpoint(2, func([]byte) error { return cause }))
	if !errors.Is(err, cause) || m == nil || len(m.History) != 3 {
		t.Errorf("a save that fails: %v", err)
	}
	if _, err := FitQMF(ctx, x, 2, WithCheckpoint(0, func([]byte) error { return nil })); !errors.As(err,
		&option) {
		t.Error("every 0 epochs")
	}
	if _, err := FitQMF(ctx, x, 2, WithCheckpoint(1, nil)); !errors.As(err, &option) {
		t.Error("no function to save by")
	}
	if _, err := FitQMF(ctx, x, 2, WithResume(nil)); !errors.As(err, &option) {
		t.Error("an empty state")
	}
}

// TestResumeNamesOptions: every option that the result depends on is compared on
// resuming, and another value is refused by its name.
func TestResumeNamesOptions(t *testing.T) {
	ctx := context.Background()
	x := first(toy(2), 12)
	x.Cols = 10
	other := map[option.Kind]FitOption{
		option.Epsilon: WithEpsilon(0.03), option.Squash: WithSquash(SquashArctan),
		option.Tolerance: WithTolerance(1e-8), option.MaxIterations: WithMaxIterations(2000),
		option.Levels: WithLevels(7), option.Epochs: WithEpochs(1), option.Seed: WithSeed(9),
		option.LearningRate: WithLearningRate(0.01), option.Schedule: WithSchedule(ScheduleConstant),
		option.Batch: WithBatch(5), option.Start: WithStart(StartUniform), option.Ends: WithEnds(EndsPinned),
		option.Penalty: WithPenalty(0.1), option.Shrinkage: WithShrinkage(3), option.Line: WithLine(0.3),
		option.Loss: WithLoss(Frobenius), option.Patience: WithPatience(7), option.Restarts: WithRestarts(2),
		option.Validation: WithValidation(0.2), option.Missing: WithMissingValues(),
		option.Init: WithInit(first(x, 12), x), option.Projection: WithProjection(KLUpdates(3)),
		option.Updates: WithUpdates(UpdatesMultiplicative),
	}
	u, v := NewMat(12, 2), NewMat(2, 10)
	for _, m := range []Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = 1
		}
	}
	other[option.Init] = WithInit(u, v)
	// What changes no result, or ends a fit otherwise.
	free := option.Of(option.Workers, option.Progress, option.Checkpoint, option.Resume, option.Strict)
	for _, c := range []struct {
		target option.Function
		fit    func(o ...FitOption) error
	}{
		{option.FitNMF, func(o ...FitOption) error { _, err := FitNMF(ctx, x, 2, o...); return err }},
		{option.FitQMF, func(o ...FitOption) error { _, err := FitQMF(ctx, x, 2, o...); return err }},
		{option.FitQMFQ, func(o ...FitOption) error { _, err := FitQMFQ(ctx, x, 2, o...); return err }},
	} {
		var state []byte
		if err := c.fit(WithEpochs(2),
			WithCheckpoint(2, func(s []byte) error { state = s; return nil })); err != nil {
			t.Fatal(c.target.Name, err)
		}
		for k := range option.Kinds {
			if !c.target.Takes.Has(k) || free.Has(k) {
				continue
			}
			o, known := other[k]
			if k == option.Model {
				methods := map[string]Method{"FitNMF": MethodNMF, "FitQMF": MethodQMF}
				m, err := Fit(ctx, methods[c.target.Name], x, 2, WithEpochs(1))
				if err != nil {
					t.Fatal(err)
				}
				o, known = WithModel(m), true
			}
			if k == option.Start && c.target.Name == "FitNMF" {
				o = WithStart(StartSVD)
			}
			if !known {
				t.Errorf("%s: %v is an option of no part here", c.target.Name, k)
				continue
			}
			opts := []FitOption{WithResume(state), o}
			if k != option.Epochs {
				opts = append(opts, WithEpochs(2))
			}
			var option *OptionError
			if err := c.fit(opts...); !errors.As(err, &option) || option.Option != k.String() {
				t.Errorf("%s: a state of another %v: %v", c.target.Name, k, err)
			}
		}
	}
}

// TestResumeRanges: states with right checksums and numbers that no fit could have
// are refused.
func TestResumeRanges(t *testing.T) {
	ctx := context.Background()
	x := first(toy(2), 12)
	fits := map[string]func(o ...FitOption) error{
		"NMF": func(o ...FitOption) error {
			_,
				err := FitNMF(ctx, x, 2, append(o, WithEpochs(4))...)
			return err
		},
		"QMF": func(o ...FitOption) error {
			_,
				err := FitQMF(ctx, x, 2, append(o, WithEpochs(4))...)
			return err
		},
		"QMFQ": func(o ...FitOption) error {
			_,
				err := FitQMFQ(ctx, x, 2, append(o, WithEpochs(4))...)
			return err
		},
	}
	for name, fit := range fits {
		var state []byte
		if err := fit(WithCheckpoint(2, func(s []byte) error {
			if state == nil {
				state = s
			}
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		changed := func(tag string, at int, to uint64) []byte {
			var sections []section.Section
			for name, payload := range stateOf(t, state) {
				if name == tag {
					payload = slices.Concat(payload[:8*at], append64(nil, to), payload[8*at+8:])
				}
				sections = append(sections, section.Section{Tag: name, Payload: payload})
			}
			return section.Encode(get32(state[12:]), sections)
		}
		if err := fit(WithResume(changed("", 0, 0))); err != nil {
			t.Errorf("%s: as it was: %v", name, err)
		}
		type change struct {
			what, tag string
			at        int
			to        uint64
		}
		changes := []change{{"a restart beyond the last", "STAT", 0, 1},
			{"an epoch beyond the last", "STAT", 1, 5}, {"a best epoch to come", "STAT", 2, 3},
			{"a fall to come", "STAT", 3, 3}, {"a negative factor", "REAL", 0, math.Float64bits(-1)},
			{"a factor that is NaN", "REAL", 1, math.Float64bits(math.NaN())}}
		if name == "QMF" {
			changes = append(changes, change{"a row beyond the last", "IDX0", 0, 12})
			for at := range 2 {
				changes = append(changes,
					change{"a row twice", "IDX0", at, get64(stateOf(t, state)["IDX0"][8*(1-at):])})
			}
		}
		for _, c := range changes {
			var format *FormatError
			if err := fit(WithResume(changed(c.tag, c.at, c.to))); !errors.As(err, &format) {
				t.Errorf("%s: %s: %v", name, c.what, err)
			}
		}
	}
}

// stateOf returns the sections of a state.
func stateOf(t *testing.T, state []byte) map[string][]byte {
	t.Helper()
	f, err := decodeSections(state, get32(state[12:]),
		[]string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, tag := range f.Tags() {
		all[tag] = f.Payload(tag)
	}
	return all
}

// TestStatesOutOfRange: a state whose sums are right, but which holds a number out of its
// range, is refused. What a number means is the fit's affair; here each is made what none
// may be, and what some may not.
func TestStatesOutOfRange(t *testing.T) {
	ctx := context.Background()
	x := toy(5)
	x.Rows, x.Cols = 4, 8
	for _, model := range []string{"NMF", "QMF", "QMFQ"} {
		opts := []FitOption{WithEpochs(3), WithValidation(0.1), WithRestarts(2)}
		if model != "NMF" {
			opts = append(opts, WithLevels(3))
		}
		var states [][]byte
		save := WithCheckpoint(1, func(s []byte) error { states = append(states, s); return nil })
		if _, _, _, _, _, err := fitAny(ctx, model, x, 2, append(opts, save)...); err != nil {
			t.Fatal(err)
		}
		state := states[4] // of the second restart, after two epochs
		ends := 0
		refused := func(what string, b []byte, at int64) {
			t.Helper()
			var bad *FormatError
			_, _, _, _, _, err := fitAny(ctx, model, x, 2, append(opts, WithResume(b))...)
			if !errors.As(err, &bad) || at >= 0 && bad.Offset != at {
				t.Errorf("%s, %s, at byte %d: %v", model, what, at, err)
			}
		}
		for number := 0; ; number++ {
			b, at := altered(state, "REAL", number, math.Float64bits(math.NaN()))
			if b == nil {
				break
			}
			if number%7 == 0 || number < 40 {
				refused("NaN in REAL", b, at)
				b, at = altered(state, "REAL", number, math.Float64bits(math.Inf(-1)))
				refused("-Inf in REAL", b, at)
				if transport.Invariants { // such numbers make plans of NaN, which is what they report
					continue
				}
				b, _ = altered(state, "REAL", number, math.Float64bits(math.MaxFloat64))
				var bad *FormatError
				if m, _, _, _, _, err := fitAny(ctx, model, x, 2,
					append(opts, WithResume(b))...); err == nil {
					allFinite(t, model, m, x)
				} else if !errors.As(err, &bad) {
					t.Errorf("%s, the largest number as number %d of REAL: %v", model, number, err)
				} else if strings.Contains(err.Error(), "ends in no model") {
					ends++
				}
			}
		}
		// others take the model of the first restart
		if ends == 0 && model == "QMF" && !transport.Invariants {
			t.Errorf("%s: no number leads out of the range of models", model)
		}
		for _, tag := range []string{"HIST", "VALI"} {
			for number := range 3 {
				for _, v := range append(real(-1), noNumber...) {
					if b, at := altered(state, tag, number, v); b != nil {
						refused(tag, b, at)
					}
				}
			}
		}
		for number, bad := range [][]uint64{{2, math.MaxUint64}, {0, 4, math.MaxUint64},
			{3, math.MaxUint64}, {3, math.MaxUint64}, real(-1, math.NaN(), math.Inf(1)),
			real(-1, math.NaN(), math.Inf(1))} {
			for _, v := range bad {
				b, at := altered(state, "STAT", number, v)
				if number == 1 && v < 5 {
					at = -1
				}
				refused("STAT", b, at)
			}
		}
		if model != "NMF" {
			rows := 4
			for number := 0; ; number++ {
				b, at := altered(state, "IDX0", number, 1<<40)
				if b == nil {
					break
				}
				if model == "QMF" && number == 2*rows+3 {
					continue // any state of the random numbers will do
				}
				shrinkage := 2 * rows // and after it the share of the line
				if model == "QMF" {
					shrinkage++
				}
				if number == shrinkage || number == shrinkage+1 {
					b, at = altered(state, "IDX0", number, math.Float64bits(-1))
				}
				refused("IDX0", b, at)
			}
		}
		// The best model of the restarts before: with a number out of range, of another
		// shape, and not there.
		f, err := decodeSections(state, get32(state[12:]),
			[]string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"})
		if err != nil {
			t.Fatal(err)
		}
		with := func(best []byte) []byte {
			var sections []section.Section
			for _, tag := range []string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"} {
				p := f.Payload(tag)
				if tag == "BEST" {
					p = best
				}
				sections = append(sections, section.Section{Tag: tag, Payload: p})
			}
			return section.Encode(get32(state[12:]), sections)
		}
		best := f.Payload("BEST")
		bad, at := altered(best, "UFAC", 1, math.Float64bits(-1))
		refused("a factor of the best model", with(bad), f.Offset("BEST")+at)
		refused("no best model", with(nil), f.Offset("BEST"))
		fewer, lower := x, x
		fewer.Cols, lower.Rows = x.Cols-1, x.Rows-1
		for what, of := range map[string]struct {
			x    Mat
			rank int
			opts []FitOption
		}{"other samples": {fewer, 2, opts}, "other features": {lower, 2, opts}, "another rank": {x, 1, opts},
			"no held-out cells": {x, 2, slices.Delete(slices.Clone(opts), 1, 2)}} {
			other, _, _, _, _, err := fitAny(ctx, model, of.x, of.rank, of.opts...)
			if err != nil {
				t.Fatal(what, err)
			}
			b, err := other.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			refused("the best model of "+what, with(b), f.Offset("BEST"))
		}
	}
}
