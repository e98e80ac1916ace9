package shards

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/qmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

func planOf(kind uint32) *plan {
	p := &plan{ID: 7, Shards: 2, Plan: qmf.Plan{Kind: kind, D: 40, N: 12, K: 3, Visible: 470, HeldOut: 3,
		Partial: true, Holds: true, Strict: true,
		Units: fit.Units{All: -4},
		Settings: qmf.Settings{Tolerance: 1e-9, LearningRate: 0.2, Penalty: 0.5, Validation: 0.1, Loss: 1.5,
			MaxIterations: 200, Levels: 8, Epochs: 4, BatchRows: 40, Patience: 2,
			Seed: math.MaxUint64, Missing: true, Squash: transport.Arctan,
			Schedule: qmf.ScheduleConstant, Start: qmf.StartSVD, Ends: qmf.EndsPinned,
			Updates: qmf.UpdatesMultiplicative, Shrinkage: 20, Line: 0.5},
		Origin: 2, Scale: 0.7}}
	if kind == section.NMF {
		p.Penalties, p.Fixed = nmf.Penalties{L1U: 1, L1V: 2, L2U: 3, L2V: 4}, 2
	}
	if kind == section.QMF {
		p.Epsilon, p.Mapped, p.Signed, p.Shift = 0.02, true, true, make([]float64, 40)
		p.Shift[3] = -1
	}
	p.setRuns()
	return p
}

// TestPlan: a plan comes back as it was, and one with a number that no fit has is refused, where the number
// stands.
func TestPlan(t *testing.T) {
	for _, kind := range []uint32{section.NMF, section.QMF} {
		got := Must(readPlan(&shelf{blobs: map[string][]byte{planName: planOf(kind).encode()}}))(t)
		if want := planOf(kind); !reflect.DeepEqual(got, want) {
			t.Errorf("kind %d: %+v, want %+v", kind, got, want)
		}
	}
	for name, c := range map[string]struct {
		kind   uint32
		change func(p *plan)
		where  string
	}{
		"kind":              {section.QMF, func(p *plan) { p.Kind = 3 }, "WORD"},
		"no row":            {section.NMF, func(p *plan) { p.D = 0 }, "WORD"},
		"too large":         {section.QMF, func(p *plan) { p.D, p.N = 1<<31-1, 1<<31-1 }, "WORD"},
		"fixed":             {section.NMF, func(p *plan) { p.Fixed = 4 }, "WORD"},
		"rank":              {section.NMF, func(p *plan) { p.K = 1<<31 - 1 }, "WORD"},
		"shards":            {section.NMF, func(p *plan) { p.Shards = 41 }, "WORD"},
		"one level":         {section.QMF, func(p *plan) { p.Levels = 1 }, "WORD"},
		"batches":           {section.QMF, func(p *plan) { p.BatchRows = 39 }, "WORD"},
		"start":             {section.QMF, func(p *plan) { p.Start = qmf.StartSVD + 1 }, "WORD"},
		"origin":            {section.QMF, func(p *plan) { p.Origin = qmf.StartSVD + 1 }, "WORD"},
		"exponent":          {section.QMF, func(p *plan) { p.All = exponents + 1 }, "WORD"},
		"ε of 0":            {section.QMF, func(p *plan) { p.Epsilon = 0 }, "ε"},
		"ε":                 {section.QMF, func(p *plan) { p.Epsilon = 9e-13 }, "ε"},
		"ε of an NMF":       {section.NMF, func(p *plan) { p.Epsilon = 0.02 }, "ε"},
		"β":                 {section.NMF, func(p *plan) { p.Loss = 5 }, "REAL"},
		"NaN":               {section.NMF, func(p *plan) { p.Penalty = math.NaN() }, "REAL"},
		"shift, not signed": {section.QMF, func(p *plan) { p.Signed = false }, "UNIT"},
		"few shifts":        {section.QMF, func(p *plan) { p.Shift = p.Shift[:39] }, "UNIT"},
	} {
		p := planOf(c.kind)
		c.change(p)
		_, err := readPlan(&shelf{blobs: map[string][]byte{planName: p.encode()}})
		var format *section.Error
		if !errors.As(err, &format) || !strings.Contains(format.Problem, c.where) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlannedSettings: a plan has every setting that the numbers of a fit depend on, so that a step of a
// shard computes what a fit on one machine does. Those left out reach a plan in another way, or are of other
// fits.
func TestPlannedSettings(t *testing.T) {
	apart := map[string]string{
		"Init": "the factors themselves are blobs", "InitU": "the factors themselves are blobs",
		"InitV":      "the factors themselves are blobs",
		"Line":       "chosen by the start, which a plan has",
		"FixedU":     "the factors of the start have it, a plan how many columns it is",
		"Projection": "of FitQMFQ, which is not split", "Begun": "of WithModel, which a plan does not take",
		"Chosen":  "of MethodAuto, which a plan is not",
		"MayRest": "settled by the start, which a plan has", "Whole": "of fits that judge others",
	}
	of := reflect.TypeFor[qmf.Settings]()
	for i := range of.NumField() {
		name, p := of.Field(i).Name, planOf(section.QMF)
		if _, left := apart[name]; left {
			continue
		}
		switch field := reflect.ValueOf(&p.Settings).Elem().Field(i); field.Kind() {
		case reflect.Float64:
			field.SetFloat(0.75)
		case reflect.Int:
			field.SetInt(41) // rows and more
			p.K = 41
		case reflect.Uint8, reflect.Uint64:
			field.SetUint(1 - field.Uint()%2)
		case reflect.Bool:
			field.SetBool(!field.Bool())
		default:
			p.Penalties.L2U = 3
		}
		if reflect.DeepEqual(p, planOf(section.QMF)) {
			t.Errorf("%s: a kind that this test cannot set", name)
		}
		got := Must(readPlan(&shelf{blobs: map[string][]byte{planName: p.encode()}}))(t)
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%s is not in a plan", name)
		}
	}
}
