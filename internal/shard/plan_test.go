package shard

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/unit"
)

// memory is a store in memory.
type memory map[string][]byte

func (m memory) Get(name string) ([]byte, error) { return m[name], nil }

func (m memory) Put(name string, data []byte) error {
	m[name] = data
	return nil
}

var most = Choices{Squash: 3, Schedule: 1, Start: 4, Ends: 1, Updates: 1}

func plan(kind uint32) *Plan {
	p := &Plan{Kind: kind, ID: 7, D: 40, N: 12, K: 3, Shards: 2, Visible: 470, HeldOut: 3, Partial: true,
		Holds: true, Strict: true,
		Units: unit.Units{All: -4, Each: make([]int, 40), Weight: make([]float64, 40)},
		Settings: Settings{Tolerance: 1e-9, LearningRate: 0.2, Penalty: 0.5, Validation: 0.1, Loss: 1.5,
			MaxIterations: 200, Levels: 8, Epochs: 4, BatchRows: 40, Patience: 2,
			Seed: math.MaxUint64, Missing: true, Choices: most, Origin: 2, Lambda: 20, Scale: 0.7}}
	p.Each[5], p.Weight[5] = -300, 0.25
	if kind == QMF {
		p.Epsilon, p.Mapped, p.Signed, p.Shift = 0.02, true, true, make([]float64, 40)
		p.Shift[3] = -1
	}
	p.SetRuns()
	return p
}

// TestPlan: a plan comes back as it was, and one with a number that no fit has is refused, where the number
// stands.
func TestPlan(t *testing.T) {
	for _, kind := range []uint32{NMF, QMF} {
		s := memory{PlanName: plan(kind).encode()}
		f, err := Open(s, most)
		if err != nil {
			t.Fatal(err)
		}
		if want := plan(kind); !reflect.DeepEqual(f.Plan, want) {
			t.Errorf("kind %d: %+v, want %+v", kind, f.Plan, want)
		}
	}
	for name, c := range map[string]struct {
		kind   uint32
		change func(p *Plan)
		where  string
	}{
		"kind":              {QMF, func(p *Plan) { p.Kind = 3 }, "WORD"},
		"no row":            {NMF, func(p *Plan) { p.D = 0 }, "WORD"},
		"too large":         {QMF, func(p *Plan) { p.D, p.N = 1<<31-1, 1<<31-1 }, "WORD"},
		"rank":              {NMF, func(p *Plan) { p.K = 1<<31 - 1 }, "WORD"},
		"shards":            {NMF, func(p *Plan) { p.Shards = 41 }, "WORD"},
		"one level":         {QMF, func(p *Plan) { p.Levels = 1 }, "WORD"},
		"batches":           {QMF, func(p *Plan) { p.BatchRows = 39 }, "WORD"},
		"start":             {QMF, func(p *Plan) { p.Start = most.Start + 1 }, "WORD"},
		"origin":            {QMF, func(p *Plan) { p.Origin = most.Start + 1 }, "WORD"},
		"exponent":          {QMF, func(p *Plan) { p.All = exponents + 1 }, "WORD"},
		"exponent of one":   {QMF, func(p *Plan) { p.Each[3] = exponents + 1 }, "EACH"},
		"ε of 0":            {QMF, func(p *Plan) { p.Epsilon = 0 }, "ε"},
		"ε":                 {QMF, func(p *Plan) { p.Epsilon = 9e-13 }, "ε"},
		"ε of an NMF":       {NMF, func(p *Plan) { p.Epsilon = 0.02 }, "ε"},
		"β":                 {NMF, func(p *Plan) { p.Loss = 5 }, "REAL"},
		"NaN":               {NMF, func(p *Plan) { p.Penalty = math.NaN() }, "REAL"},
		"no weights":        {QMF, func(p *Plan) { p.Weight = nil }, "UNIT"},
		"shift, not signed": {QMF, func(p *Plan) { p.Signed = false }, "UNIT"},
		"few shifts":        {QMF, func(p *Plan) { p.Shift = p.Shift[:39] }, "UNIT"},
	} {
		p := plan(c.kind)
		c.change(p)
		_, err := Open(memory{PlanName: p.encode()}, most)
		var format *section.Error
		if !errors.As(err, &format) || !strings.Contains(format.Problem, c.where) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnother: a store that has the plan of another fit says so; one that has none, a damaged one or this one
// does not.
func TestAnother(t *testing.T) {
	p := plan(QMF)
	for name, c := range map[string]struct {
		has  []byte
		want bool
	}{
		"none": {nil, false}, "this": {plan(QMF).encode(), false}, "damaged": {p.encode()[:99], false},
		"another": {func() []byte { p := plan(QMF); p.ID++; return p.encode() }(), true},
	} {
		got, err := (&Fit{memory{PlanName: c.has}, p}).Another(most)
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
