package shards

// This file holds an NMF by Newton's method whose rows are split. Its first epochs are those of nmf.go; then
// an epoch takes two rounds, and a further one where it went too far (internal/nmf, rounds.go):
//
//	phaseOpen    the gradient at the factors that the multiplicative updates have led to, once
//	phaseSearch  what the step of V is taken of; none under Frobenius without hidden cells
//	phaseHalf    the half of U, the loss at the next factors, and the gradient there
//	phaseAgain   the same loss and gradient at factors without momentum, where those with it were no better
//
// phaseOpenClose, phaseHalfClose and phaseAgainClose are the passes that take a small loss cell by cell. The
// state of a shard is its rows of U, of z and of the next y, and the best. The round's V, and V beside it,
// are what the pass reads: y and the direction, z and the next y, or twice the next y.

import (
	"slices"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// newton tells whether a fit goes over to Newton's method.
func (p *plan) newton() bool { return p.Kind == section.NMF && p.Updates == qmf.UpdatesNewton }

// mainNMF is what reducing an NMF goes on from beside V.
type mainNMF struct {
	best         []float64 // k × n: V at the best epoch
	seen         []float64 // n: in how many of the rows each column is observed
	rows         int
	z            []float64 // k × n: V at z before
	y            []float64 // k × n, of Newton's method: V at y, the state that the last losses are of
	slopes, most []float64 // n: of the direction of V
}

// newMain makes room for it.
func (p *plan) newMain() *mainNMF {
	v := func(n int) []float64 { return make([]float64, n) }
	m := &mainNMF{rows: p.D, z: v(p.K * p.N)}
	if p.Holds {
		m.best = v(p.K * p.N)
	}
	if p.newton() {
		if p.Partial {
			m.seen = v(p.N)
		}
		m.y, m.slopes, m.most = v(p.K*p.N), v(p.N), v(p.N)
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

// course are the first numbers of a round of an NMF.
type course struct {
	tau   float64
	by    float64 // of the steps ahead of multiplicative updates
	last  nmf.Losses
	ahead bool      // the rows of U are those of the next y, which was no worse
	more  []float64 // of phaseSearch the sums over U, of phaseHalf what nmf.Newton.Turn has
}

const courseNumbers = 6

func (c *course) numbers() []float64 {
	return append([]float64{c.tau, c.by, c.last.Visible, c.last.Held, c.last.Penalty,
		float64(bit(c.ahead))}, c.more...)
}

// course reads them.
func (r *stage) course(p *plan) (*course, error) {
	n, want := r.Numbers, courseNumbers
	switch r.Phase {
	case phaseStart, phaseOpen:
		return &course{tau: 1}, nil
	case phaseSearch:
		want += p.K
	case phaseHalf:
		want += nmf.Turned(p.K)
	}
	if len(n) != want {
		return nil, r.fault(&section.Error{Problem: "section NUMB: wrong length"})
	}
	return &course{n[0], n[1], nmf.Losses{Visible: n[2], Held: n[3], Penalty: n[4]}, n[5] == 1,
		n[courseNumbers:]}, nil
}

// stepNewton makes the step of a shard in a round of Newton's method. m is the problem of its rows.
func (f *Fit) stepNewton(r *stage, state *blob, v []float64, m nmf.Problem, runs int) (*made, error) {
	p := f.plan
	c, err := r.course(p)
	if err != nil {
		return nil, err
	}
	beside, err := f.beside(r.Number)
	if err != nil {
		return nil, err
	}
	method := nmf.NewRounds(m)
	u, z, next := method.Points()
	best := make([]float64, len(u))
	if _, err := state.restore(p.statesU(u, best, z, next), 0); err != nil {
		return nil, err
	}
	if c.ahead {
		copy(u, next)
	}
	if r.Fresh {
		copy(best, u)
	}
	var of qmf.ShardPart
	passed := method.Passed
	switch r.Phase {
	case phaseOpen:
		copy(z, u)
		copy(next, u)
		err = method.Gradient(beside, false)
	case phaseSearch:
		err, passed = method.Search(v, beside), method.Searched
	case phaseHalf:
		err = method.Half(v, beside, c.more)
	case phaseAgain:
		copy(next, z)
		err = method.Gradient(beside, false)
	default:
		err = method.Gradient(beside, true)
	}
	if err != nil {
		return nil, err
	}
	for run := range runs {
		for _, s := range passed(run) {
			of.Num = append(of.Num, s...)
		}
	}
	if p.Penalties.Any() {
		of.U = next
	}
	return &made{p.statesU(u, best, z, next), nil, of}, nil
}

// reduceNewton joins the sums of a round of Newton's method, and makes the next.
func (f *Fit) reduceNewton(r *stage, v []float64, m nmf.Problem) ([]float64, []section.Part, error) {
	c, err := r.course(f.plan)
	if err != nil {
		return nil, nil, err
	}
	beside, err := f.beside(r.Number)
	if err != nil {
		return nil, nil, err
	}
	main := f.plan.newMain()
	if err := f.main(r.Number, main.parts()); err != nil {
		return nil, nil, err
	}
	j := &joining{plan: f.plan, r: r, c: c, fit: nmf.NewRounds(m), main: main, v: v, beside: beside}
	passed := j.fit.Passed
	if r.Phase == phaseSearch {
		passed = j.fit.Searched
	}
	if err := f.sum(r.Number, m.U, func(run int) (num, _, _ []section.Part) {
		for _, s := range passed(run) {
			// far from 1 a sum may overflow, and the steps that it is of are none
			num = append(num, section.Any(s))
		}
		return num, nil, nil
	}); err != nil {
		return nil, nil, err
	}
	r.Fresh = false
	if r.Phase == phaseSearch {
		j.turn(&nmf.Descent{Direction: beside, Slopes: main.slopes, Most: main.most, SumU: c.more})
		c.ahead = false
	} else {
		j.judge(m.U)
	}
	r.Numbers = c.numbers()
	return j.v, main.parts(), nil
}

// joining is a reduce of a round of Newton's method. Round, course and main are those of this round, and
// become those of the next.
type joining struct {
	plan   *plan
	r      *stage
	c      *course
	fit    *nmf.Newton
	main   *mainNMF
	v      []float64 // of this round, then of the next
	beside []float64 // of this round
}

// turn makes the step of V.
func (j *joining) turn(d *nmf.Descent) {
	j.v, j.r.Beside, j.c.tau, j.c.more = j.fit.Turn(j.main.y, j.main.z, j.c.tau, d)
	j.r.Phase = phaseHalf
}

// judge goes on from the losses at the next factors.
func (j *joining) judge(u []float64) {
	main, c, r := j.main, j.c, j.r
	phase, byCells := r.Phase, false
	switch phase {
	case phaseOpenClose, phaseHalfClose, phaseAgainClose:
		phase, byCells = phase-phaseOpenClose+phaseOpen, true
	}
	l, again := j.fit.Ahead(u, j.beside, byCells)
	c.ahead, c.more = false, nil
	still := false
	switch {
	case again:
		r.Phase, r.Beside = phase-phaseOpen+phaseOpenClose, j.beside
		return
	case phase == phaseOpen:
		c.tau, c.last = 1, l
		copy(main.y, j.v)
		copy(main.z, j.v)
	case phase == phaseHalf && l.Above(c.last):
		r.Phase, r.Beside = phaseAgain, j.v
		c.tau = 1
		return
	default:
		copy(main.z, j.v)
		if still = l.Above(c.last); !still {
			copy(main.y, j.beside)
			c.last = l
		}
	}
	c.ahead = !still
	if phase != phaseOpen {
		r.Done++
	}
	r.Phase = phaseSearch
	if phase != phaseOpen || len(r.History) == 0 {
		j.enter()
	}
	for still && r.Phase != phaseOver { // no epoch moves anything any more
		r.Done++
		j.enter()
	}
	j.descend()
}

// enter enters the losses of an epoch, and keeps V if they are the best.
func (j *joining) enter() {
	r, last := j.r, j.c.last
	r.enter(fit.Losses{Of: r.Done, Visible: last.Visible, Held: last.Held, Penalty: last.Penalty},
		j.plan.Epochs, phaseSearch, phaseOver)
	if r.Fresh {
		copy(j.main.best, j.main.y)
	}
}

// descend begins the half of V, unless the fit is over.
func (j *joining) descend() {
	main, c, r := j.main, j.c, j.r
	j.v, r.Beside = slices.Clone(main.y), nil
	if r.Phase == phaseOver {
		return
	}
	d := j.fit.Descend(main.y, main.seen)
	if j.fit.Exact() {
		j.turn(d)
		return
	}
	copy(main.slopes, d.Slopes)
	copy(main.most, d.Most)
	r.Beside, c.more = d.Direction, d.SumU
}

// problem is that of a reduce, which has no rows.
func (p *plan) problem(workers *pool.Pool) nmf.Problem {
	np := kernel.Pad(p.N)
	m := nmf.Problem{N: p.N, K: p.K, NP: np, V: make([]float64, p.K*np), Partial: p.Partial,
		Visible: p.Visible, HeldOut: p.HeldOut, Loss: p.Loss, Penalties: p.Penalties, Fixed: p.Fixed,
		Pool: workers}
	p.runsOf(&m, 0, p.count())
	if p.Penalties.Any() {
		m.U = make([]float64, p.D*p.K)
	}
	return m
}
