package shard

// This file holds an NMF by Newton's method whose rows are split. Its first epochs are those of nmf.go; then an epoch takes
// two rounds, and a further one where it went too far (internal/nmf, rounds.go):
//
//	PhaseOpen    the gradient at the factors that the multiplicative updates have led to, once
//	PhaseLead    the rows that lead, where there are any (internal/nmf, lead.go), once
//	PhaseSearch  what the step of V is taken of; none under Frobenius without hidden cells
//	PhaseHalf    the half of U, the loss at the next factors, and the gradient there
//	PhaseAgain   the same loss and gradient at factors without momentum, where those with it were no better
//
// PhaseOpenClose, PhaseHalfClose and PhaseAgainClose are the passes that take a small loss cell by cell. The state of a shard
// is its rows of U, of z and of the next y, and the best. The round's V, and V beside it, are what the pass reads: y and the
// direction, z and the next y, or twice the next y.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/journal"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// Newton is the number of Newton's method among the choices of updates.
const Newton = 0

// newton tells whether a fit goes over to Newton's method.
func (p *Plan) newton() bool { return p.Kind == NMF && p.Updates == Newton }

// mainNMF is what reducing an NMF goes on from beside V.
type mainNMF struct {
	best         []float64 // k × n: V at the best epoch
	seen         []float64 // n: in how many of the rows each column is observed
	rows         int
	y, z         []float64 // k × n: V at y, the state that the last losses are of, and at z before
	slopes, most []float64 // n: of the direction of V
}

// newMain makes room for it.
func (p *Plan) newMain() *mainNMF {
	m := &mainNMF{rows: p.D}
	v := func(n int) []float64 { return make([]float64, n) }
	if p.Holds {
		m.best = v(p.K * p.N)
	}
	if p.newton() {
		if p.Partial {
			m.seen = v(p.N)
		}
		m.y, m.z, m.slopes, m.most = v(p.K*p.N), v(p.K*p.N), v(p.N), v(p.N)
	}
	return m
}

// parts are none where there is nothing.
func (m *mainNMF) parts() (p []section.Part) {
	for _, v := range [][]float64{m.best, m.y, m.z, m.most} {
		if v != nil {
			p = append(p, section.Positive(v))
		}
	}
	if m.seen != nil {
		p = append(p, section.Within(m.seen, 0, float64(m.rows)))
	}
	if m.slopes != nil {
		p = append(p, section.Any(m.slopes))
	}
	return p
}

// course are the first numbers of a round of Newton's method.
type course struct {
	tau   float64
	last  nmf.Losses
	ahead bool      // the rows of U are those of the next y, which was no worse
	led   bool      // of PhaseHalf: V is that of the rows that lead
	more  []float64 // of PhaseSearch the sums over U, of PhaseLead these and the rows, of PhaseHalf what nmf.Newton.Turn has
}

const courseNumbers = 5

func (c *course) numbers() []float64 {
	return append([]float64{c.tau, c.last.Visible, c.last.Held, c.last.Penalty, float64(bit(c.ahead) + 2*bit(c.led))}, c.more...)
}

// leads returns the rows that lead, of rows from one to another.
func (c *course) leads(p *Plan, from, to int) (rows []int) {
	for _, v := range c.more[p.K:] {
		if i := int(v); i >= from && i < to {
			rows = append(rows, i-from)
		}
	}
	return rows
}

// opens tells whether a round is the first that may find rows that lead.
func (r *Round) opens(p *Plan) bool {
	return p.warm() == 0 && len(r.History) == 0 && (r.Phase == PhaseOpen || r.Phase == PhaseOpenClose)
}

// course reads them.
func (r *Round) course(p *Plan) (*course, error) {
	n, want := r.Numbers, courseNumbers
	switch r.Phase {
	case PhaseOpen:
		return new(course), nil
	case PhaseSearch:
		want += p.K
	case PhaseHalf:
		want += nmf.Turned(p.K)
	case PhaseLead:
		want = max(len(n), want+p.K)
	}
	if len(n) != want {
		return nil, r.Fault(&section.Error{Problem: "section NUMB: wrong length"})
	}
	c := &course{n[0], nmf.Losses{Visible: n[1], Held: n[2], Penalty: n[3]}, n[4] == 1 || n[4] == 3, n[4] >= 2, n[courseNumbers:]}
	if r.Phase == PhaseLead {
		next := 0.0
		for _, v := range c.more[p.K:] {
			if !(v >= next && v < float64(p.D) && v == math.Trunc(v)) {
				return nil, r.Fault(&section.Error{Problem: "section NUMB: no row of the matrix, or rows out of order"})
			}
			next = v + 1
		}
	}
	return c, nil
}

// stepNewton makes the step of a shard in a round of Newton's method. m is the problem of its rows.
func (f *Fit) stepNewton(r *Round, shard int, state *Blob, v []float64, m nmf.Problem, runs int) (*Made, error) {
	p := f.Plan
	c, err := r.course(p)
	if err != nil {
		return nil, err
	}
	beside, err := f.beside(r.Number)
	if err != nil {
		return nil, err
	}
	fit := nmf.NewRounds(m)
	u, z, next := fit.Points()
	best := make([]float64, len(u))
	if _, err := state.Restore(p.statesU(u, best, z, next), 0); err != nil {
		return nil, err
	}
	if c.ahead {
		copy(u, next)
	}
	if r.Fresh {
		copy(best, u)
	}
	var of Part
	passed := fit.Passed
	switch r.Phase {
	case PhaseLead:
		from, to := p.Cut(shard).Rows()
		of.Num, of.Den = fit.Gather(c.leads(p, from, to))
		runs = 0
	case PhaseOpen:
		copy(z, u)
		copy(next, u)
		err = fit.Gradient(beside, false)
	case PhaseSearch:
		err, passed = fit.Search(v, beside), fit.Searched
	case PhaseHalf:
		err = fit.Half(v, beside, c.more)
	case PhaseAgain:
		copy(next, z)
		err = fit.Gradient(beside, false)
	default:
		err = fit.Gradient(beside, true)
	}
	if err != nil {
		return nil, err
	}
	for run := range runs {
		for _, s := range passed(run) {
			of.Num = append(of.Num, s...)
		}
	}
	if r.opens(p) {
		of.Den = fit.Sizes()
	}
	if p.Penalty > 0 {
		of.U = next
	}
	return &Made{p.statesU(u, best, z, next), nil, of.sections(NMF)}, nil
}

// reduceNewton joins the sums of a round of Newton's method, and makes the next.
func (f *Fit) reduceNewton(r *Round, v []float64, m nmf.Problem) ([]float64, []section.Part, error) {
	p := f.Plan
	c, err := r.course(p)
	if err != nil {
		return nil, nil, err
	}
	beside, err := f.beside(r.Number)
	if err != nil {
		return nil, nil, err
	}
	main := p.newMain()
	if err := f.Main(r.Number, main.parts()); err != nil {
		return nil, nil, err
	}
	fit := nmf.NewRounds(m)
	passed := fit.Passed
	if r.Phase == PhaseSearch {
		passed = fit.Searched
	}
	turn := func(d *nmf.Descent) {
		v, r.Beside, c.tau, c.more = fit.Turn(main.y, main.z, c.tau, d)
		r.Phase = PhaseHalf
	}
	if r.Phase == PhaseLead {
		x, u, err := f.leading(c, r.Number, m.NP)
		if err != nil {
			return nil, nil, err
		}
		p.padded(m.V, main.y, m.NP)
		m.Lead(x, u, m.V)
		turn(&nmf.Descent{Direction: p.dense(m.V, m.NP), Slopes: main.slopes, Most: main.most, SumU: c.more[:p.K]})
		c.ahead, c.led = false, true
		r.Numbers = c.numbers()
		return v, main.parts(), nil
	}
	u := m.U
	var sizes []float64
	if r.opens(p) {
		sizes = make([]float64, p.D)
	}
	for shard := range p.Shards {
		if err := f.passed(passed, u, sizes, r.Number, shard); err != nil {
			return nil, nil, err
		}
	}
	r.Fresh = false
	if r.Phase == PhaseSearch {
		turn(&nmf.Descent{Direction: beside, Slopes: main.slopes, Most: main.most, SumU: c.more})
		c.ahead = false
		r.Numbers = c.numbers()
		return v, main.parts(), nil
	}
	phase, closed := r.Phase, false
	switch phase {
	case PhaseOpenClose, PhaseHalfClose, PhaseAgainClose:
		phase, closed = phase-PhaseOpenClose+PhaseOpen, true
	}
	l, again := fit.Ahead(u, beside, closed)
	c.ahead, c.more = false, nil
	still := false
	switch {
	case again:
		r.Phase, r.Beside = phase-PhaseOpen+PhaseOpenClose, beside
		r.Numbers = c.numbers()
		return v, main.parts(), nil
	case phase == PhaseOpen:
		c.tau, c.last = 1, l
		copy(main.y, v)
		copy(main.z, v)
	case c.led && l.Above(c.last): // without the rows that lead
		c.led = false
		r.Phase, r.Beside = PhaseOpen, main.y
		r.Numbers = c.numbers()
		return slices.Clone(main.y), main.parts(), nil
	case phase == PhaseHalf && l.Above(c.last):
		r.Phase, r.Beside = PhaseAgain, v
		c.tau = 1
		r.Numbers = c.numbers()
		return v, main.parts(), nil
	default:
		copy(main.z, v)
		if still = l.Above(c.last); !still {
			copy(main.y, beside)
			c.last = l
		}
	}
	c.ahead, c.led = !still, false
	if phase != PhaseOpen {
		r.Done++
	}
	enter := func() {
		r.Enter(journal.Losses{Of: r.Done, Visible: c.last.Visible, Held: c.last.Held, Penalty: c.last.Penalty}, p.Epochs, PhaseSearch, PhaseOver)
		if r.Fresh {
			copy(main.best, main.y)
		}
	}
	if r.Phase = PhaseSearch; phase != PhaseOpen || len(r.History) == 0 {
		enter()
	}
	for still && r.Phase != PhaseOver { // no epoch moves anything any more
		r.Done++
		enter()
	}
	if v, r.Beside = slices.Clone(main.y), nil; r.Phase == PhaseOver {
		// there is no half
	} else if rows := nmf.Heavy(sizes, p.K); len(rows) > 0 {
		c.more = fit.SumsU()
		for _, i := range rows {
			c.more = append(c.more, float64(i))
		}
		r.Phase, r.Beside = PhaseLead, v
	} else {
		d := fit.Descend(main.y, main.seen)
		if fit.Exact() {
			turn(d)
		} else {
			copy(main.slopes, d.Slopes)
			copy(main.most, d.Most)
			r.Beside, c.more = d.Direction, d.SumU
		}
	}
	r.Numbers = c.numbers()
	return v, main.parts(), nil
}

// leading reads the rows that lead, of X, padded to np numbers, and of U.
func (f *Fit) leading(c *course, round, np int) (x, u []float64, err error) {
	p := f.Plan
	for shard := range p.Shards {
		b, err := f.part(round, shard)
		if err != nil {
			return nil, nil, err
		}
		from, to := p.Cut(shard).Rows()
		rows := len(c.leads(p, from, to))
		some, of := make([]float64, rows*np), make([]float64, rows*p.K)
		if err := b.fill(sums{"NUMS", []section.Part{section.Positive(some)}}, sums{"DENS", []section.Part{section.Positive(of)}}, sums{"LOSS", nil}, sums{"UFAC", nil}); err != nil {
			return nil, nil, err
		}
		x, u = append(x, some...), append(u, of...)
	}
	return x, u, nil
}

// passed takes the sums of a shard's runs into their pieces, and the sizes of its rows where there is room for them.
func (f *Fit) passed(of func(run int) [][]float64, u, sizes []float64, round, shard int) error {
	p, cut := f.Plan, f.Plan.Cut(shard)
	b, err := f.part(round, shard)
	if err != nil {
		return err
	}
	var num, den, us []section.Part
	for run := cut.From; run < cut.To; run++ {
		for _, s := range of(run) {
			num = append(num, section.Any(s)) // far from 1 a sum may overflow, and the steps that it is of are none
		}
	}
	from, to := cut.Rows()
	if p.Penalty > 0 {
		us = append(us, section.Positive(u[from*p.K:to*p.K]))
	}
	if sizes != nil {
		den = append(den, section.Positive(sizes[from:to]))
	}
	return b.fill(sums{"NUMS", num}, sums{"DENS", den}, sums{"LOSS", nil}, sums{"UFAC", us})
}

// problem is that of a reduce, which has no rows.
func (p *Plan) problem(workers *pool.Pool) nmf.Problem {
	np := kernel.Pad(p.N)
	m := nmf.Problem{N: p.N, K: p.K, NP: np, V: make([]float64, p.K*np), Partial: p.Partial, Visible: p.Visible, HeldOut: p.HeldOut, Loss: p.Loss, Penalty: p.Penalty, Pool: workers}
	p.runsOf(&m, 0, p.Runs())
	if p.Penalty > 0 {
		m.U = make([]float64, p.D*p.K)
	}
	return m
}
