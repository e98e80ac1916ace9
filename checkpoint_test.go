package quantmf

// Tests of states that a fit refuses to go on from: of another fit, with other options, or
// with numbers that no fit could have.

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/option"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestOtherFactors: a state of a fit from other initial factors.
func TestOtherFactors(t *testing.T) {
	x := first(toy(2), 20)
	u, v := NewMat(20, 2), NewMat(2, x.Cols)
	for _, m := range []Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = 1 + float64(i%3)
		}
	}
	for method := range MethodBQMF {
		var states [][]byte
		Fitted(t, By(method), x, 2, WithEpochs(3), WithInit(u, v), Keep(&states))
		w := v.Clone()
		w.Data[0]++
		if _, err := Fit(t.Context(), method, x, 2, WithEpochs(3), WithInit(u, w),
			WithResume(states[1])); OptionOf(err) != "WithInit" {
			t.Errorf("%v: %v", method, err)
		}
	}
}

// TestCutHistory: a history that is too short for the epochs that are done.
func TestCutHistory(t *testing.T) {
	Slow(t)
	x := first(toy(2), 6)
	for method := range MethodBQMF + 1 {
		var states [][]byte
		Fitted(t, By(method), x, 2, WithEpochs(3), Keep(&states))
		f := stateOf(t, states[1])
		history := f.Payload("HIST")
		var format *FormatError
		cut := WithResume(replaced(f, get32(states[1][12:]), "HIST", history[:len(history)-8]))
		if _, err := Fit(t.Context(), method, x, 2, WithEpochs(3), cut); !errors.As(err, &format) {
			t.Errorf("%v: %v", method, err)
		}
	}
}

// TestResumeNamesOptions: every option that the result depends on is compared on
// resuming, and another value is refused by its name.
func TestResumeNamesOptions(t *testing.T) {
	ctx := context.Background()
	x := first(toy(2), 12)
	x.Cols = 10
	// What changes no result, or ends a fit otherwise.
	free := option.Of(option.Workers, option.Progress, option.Checkpoint, option.Resume, option.Strict)
	for method, takes := range []option.Set{option.FitNMF.Takes, option.FitQMF.Takes, option.FitQMFQ.Takes} {
		fit := func(o ...FitOption) (Model, error) { return Fit(ctx, Method(method), x, 2, o...) }
		var states [][]byte
		OK(t, ErrorOf(fit(WithEpochs(2), Keep(&states))))
		for k := range option.Kinds {
			if !takes.Has(k) || free.Has(k) {
				continue
			}
			o := anOption(k, 12, 10, 2)
			if k == option.Model {
				o = WithModel(Must(fit(WithEpochs(1)))(t))
			}
			if k == option.Start && Method(method) == MethodNMF {
				o = WithStart(StartSVD)
			}
			opts := []FitOption{WithResume(states[1]), o}
			if k != option.Epochs {
				opts = append(opts, WithEpochs(2))
			}
			if _, err := fit(opts...); OptionOf(err) != k.String() {
				t.Errorf("%v: a state of another %v: %v", Method(method), k, err)
			}
		}
	}
}

// stateOf returns the sections of a state.
func stateOf(t *testing.T, state []byte) *file {
	t.Helper()
	return Must(decodeSections(state, get32(state[12:]),
		[]string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"}))(t)
}

// replaced is a file of a kind with another payload of one section.
func replaced(f *file, kind uint32, tag string, payload []byte) []byte {
	var sections []section.Section
	for _, name := range f.Tags() {
		s := section.Section{Tag: name, Payload: f.Payload(name)}
		if name == tag {
			s.Payload = payload
		}
		sections = append(sections, s)
	}
	return section.Encode(kind, sections)
}

// TestStatesOutOfRange: a state whose sums are right, but which holds a number out of its
// range, is refused. What a number means is the fit's affair; here each is made what none
// may be, and what some may not.
func TestStatesOutOfRange(t *testing.T) {
	Slow(t)
	ctx := context.Background()
	x := toy(5)
	x.Rows, x.Cols = 4, 8
	for model := range MethodBQMF {
		opts := []FitOption{WithEpochs(3), WithValidation(0.1), WithRestarts(2), WithSeed(4)}
		if model != MethodNMF {
			opts = append(opts, WithLevels(3))
		}
		var states [][]byte
		Fitted(t, By(model), x, 2, append(opts, Keep(&states))...)
		state := states[4] // of the second restart, after two epochs
		ends := 0
		refused := func(what string, b []byte, at int64) {
			t.Helper()
			var bad *FormatError
			_, err := Fit(ctx, model, x, 2, append(opts, WithResume(b))...)
			if !errors.As(err, &bad) || at >= 0 && bad.Offset != at {
				t.Errorf("%v, %s, at byte %d: %v", model, what, at, err)
			}
		}
		for number := 0; ; number++ {
			b, at := altered(state, "REAL", number, math.Float64bits(math.NaN()))
			if b == nil {
				break
			}
			if number%13 == 0 || number < 30 {
				refused("NaN in REAL", b, at)
				b, at = altered(state, "REAL", number, math.Float64bits(math.Inf(-1)))
				refused("-Inf in REAL", b, at)
				if transport.Invariants { // such numbers make plans of NaN, which is what they report
					continue
				}
				b, _ = altered(state, "REAL", number, math.Float64bits(math.MaxFloat64))
				var bad *FormatError
				if m, err := Fit(ctx, model, x, 2,
					append(opts, WithResume(b))...); err == nil {
					allFinite(t, model.String(), m, x)
				} else if !errors.As(err, &bad) {
					t.Errorf("%v, the largest number as number %d of REAL: %v", model, number, err)
				} else if strings.Contains(err.Error(), "ends in no model") {
					ends++
				}
			}
		}
		// others take the model of the first restart
		if ends == 0 && model == MethodQMF && !transport.Invariants {
			t.Errorf("%v: no number leads out of the range of models", model)
		}
		b, at := altered(state, "REAL", 0, math.Float64bits(-1))
		refused("a negative factor", b, at)
		if model == MethodQMF {
			b, _ = altered(state, "IDX0", 0, get64(stateOf(t, state).Payload("IDX0")[8:]))
			refused("a row twice", b, -1)
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
		if model != MethodNMF {
			rows := 4
			for number := 0; ; number++ {
				b, at := altered(state, "IDX0", number, 1<<40)
				if b == nil {
					break
				}
				if model == MethodQMF && number == 2*rows+3 {
					continue // any state of the random numbers will do
				}
				shrinkage := 2 * rows // and after it the share of the line
				if model == MethodQMF {
					shrinkage++
				}
				if number == shrinkage || number == shrinkage+1 {
					b, _ = altered(state, "IDX0", number, math.Float64bits(-1))
				}
				refused("IDX0", b, at)
			}
		}
		// The best model of the restarts before: with a number out of range, of another
		// shape, and not there.
		f := stateOf(t, state)
		with := func(best []byte) []byte { return replaced(f, get32(state[12:]), "BEST", best) }
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
			b := FileOf(t, Fitted(t, By(model), of.x, of.rank, of.opts...))
			refused("the best model of "+what, with(b), f.Offset("BEST"))
		}
	}
}
