package quantmf

// This file counts the memory that fits take. A fit draws its arrays from an arena (internal/pool); here its
// constructors draw them from one that only counts. Beside them stands what the rest of a fit draws, in the
// order of the fit, and what is given up in between. Tests compare what is counted with the memory that is
// alive during fits of many kinds.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
)

// Method names one of the fit functions.
type Method uint8

const (
	MethodNMF  Method = iota // FitNMF
	MethodQMF                // FitQMF
	MethodQMFQ               // FitQMFQ
	MethodBQMF               // FitBQMF
)

// String returns NMF, QMF, QMFQ or BQMF.
func (m Method) String() string { return option.Name(int(m), "NMF", "QMF", "QMFQ", "BQMF") }

// Memory is what a fit takes, in bytes.
type Memory struct {
	Fit   int64 // the peak during the fit: everything alive at once but x itself, the model included
	Rows  int64 // the same where x is read by rows ([Rows]) and is no Mat
	Model int64 // the model returned; its file is of about this size
	State int64 // a checkpoint, as WithCheckpoint hands it over
}

// MemoryOf counts the memory that a fit of a d × n matrix of the given rank takes with these options, before
// the fit is made: from 1.0 to 1.5 times what was measured, for a BQMF up to 2.2. Where the data choose a
// start it is for the start that takes most, and for an NMF under KL of 16 rows or more without hidden cells
// it is for rows that are mostly zero, which take up to 1.8 times as much as others. Samples that an NMF
// begins with are counted in full; of a [Sparse] they take what it lists of them. Not counted are x, garbage
// that has not been collected yet, and what [WithCheckpoint] takes while it assembles a state, about five
// times State. Errors: the [*OptionError] that the fit would return before it reads x, and [*ShapeError] for
// sizes below 1; a fit too large for any machine is no error here.
func MemoryOf(method Method, d, n, rank int, opts ...FitOption) (Memory, error) {
	c, k, err := configOf(method, d, n, rank, opts)
	if err != nil {
		return Memory{}, err
	}
	of := &uncounted{config: &c, method: method, d: min(d, pool.Beyond), n: min(n, pool.Beyond), k: k}
	model := pool.DryArena()
	of.model(model)
	bytes := func(v float64) int64 { return int64(min(v, math.MaxInt64/2)) }
	return Memory{Fit: bytes(of.fit(true)), Rows: bytes(of.fit(false)), Model: bytes(model.Most()),
		State: bytes(8 * of.state())}, nil
}

// configOf reads and checks the options of a fit of a d × n matrix, and returns them and the number of
// components.
func configOf(method Method, d, n, rank int, opts []FitOption) (c config, k int, err error) {
	var t option.Function
	switch method {
	case MethodNMF:
		c, t = nmfDefaults(), option.FitNMF
	case MethodQMF:
		c, t = qmfDefaults(), option.FitQMF
	case MethodQMFQ:
		c, t = qmfqDefaults(), option.FitQMFQ
	case MethodBQMF:
		c, t = bqmfDefaults(), option.FitBQMF
	default:
		return c, 0, &OptionError{Option: "method", Value: method.String(),
			Bound: "must be one of the Method constants"}
	}
	if err = parse(t, &c, opts); err != nil {
		return c, 0, err
	}
	if d < 1 || n < 1 {
		return c, 0, &ShapeError{What: "x", Got: itoa(d) + "×" + itoa(n), Want: "at least 1×1"}
	}
	least := 1
	if method == MethodBQMF {
		least = 0
	}
	if rank < least {
		return c, 0, &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least " + itoa(least)}
	}
	k = min(rank, pool.Beyond)
	switch method {
	case MethodNMF:
		err = c.settleNMF(d, n, rank)
	case MethodBQMF:
		k, err = min(bqmfComponents(d, n, rank), pool.BeyondSquare), c.settleBQMF()
	default:
		few := c
		few.levels = min(c.levels, 2) // a number of levels too large for any machine is no error here
		if err = few.checkQMF(1, 1); method == MethodQMFQ {
			c.settleQMFQ()
		}
		c.levels = min(c.levels, pool.BeyondSquare)
	}
	return c, k, err
}

// size is the product of some sizes, rounded before it meets a sum.
func size(of ...int) float64 {
	p := 1.0
	for _, v := range of {
		p = float64(p * float64(v))
	}
	return p
}

// uncounted is a fit of a d × n matrix by k components whose memory is to be counted.
type uncounted struct {
	*config
	method  Method
	d, n, k int
}

// holds tells whether cells are held out, of which the best epoch is kept.
func (f *uncounted) holds() bool { return f.validation > 0 }

// small is what a fit takes in structures and slices that depend on no size, in bytes.
const small = 1 << 14

// fit returns the peak of a fit, in bytes: of a Mat, or of a matrix that is read by rows.
func (f *uncounted) fit(inMemory bool) float64 {
	most := f.d
	if f.method == MethodNMF {
		most = nmf.Pieces
	}
	p := pool.Idle(f.workers, most)
	rules := f.rules()
	if f.sampleWeights != nil || f.cellWeights != nil {
		rules.Weights = &fit.Weights{Samples: f.sampleWeights}
	}
	a, cells := p.Memory, fit.NotRead(p.Memory, f.d, f.n, rules)
	if inMemory {
		cells.X = fit.Dense{Rows: f.d, Cols: f.n, Stride: f.n}
		// a copy of what is signed, less its rows' lowest values
		if f.mapped && f.loss == divergence.Frobenius {
			a.Floats(f.d, f.n)
		}
	}
	if f.restarts > 1 { // the best of the restarts before
		f.model(a)
	}
	switch f.method {
	case MethodNMF:
		f.nmf(cells, p)
	case MethodQMF:
		q := newQMFFit(cells, f.k, &f.settings, p, 0, fit.Silent(context.Background()))
		q.reserve()
	case MethodQMFQ:
		q := newQMFQFit(cells, f.k, &f.settings, p, 0, fit.Silent(context.Background()))
		q.reserve()
	case MethodBQMF:
		f.bqmf(a, cells.X.Rows > 0)
	}
	if f.holds() && f.method != MethodBQMF {
		f.best(a)
	}
	f.model(a)
	return a.Most() + float64(a.Most()/32) + small // objects that have died, until they are collected
}

// nmf counts a fit of an NMF.
func (f *uncounted) nmf(cells *fit.Cells, p *pool.Pool) {
	u := newFactors(p.Memory, f.d, f.n, f.k)
	method := f.newMethod(newProblem(u, cells, f.loss, p))
	u.reserveSome(cells, f.loss, f.startsFrom(f.d, f.n), p)
	if f.start == StartSVD {
		u.decompose(cells, p)
	}
	method.Reserve(f.epochs)
}

// best counts what is kept of the best epoch.
func (f *uncounted) best(a *pool.Arena) {
	newFactors(a, f.d, f.n, f.k)
	switch f.method {
	case MethodQMF:
		a.Floats(2, f.d, f.levels)
		a.Floats(f.d)
	case MethodQMFQ:
		a.Floats(5, f.d, f.levels)
		a.Floats(f.d)
	}
}

// model counts the model, and the losses after every epoch.
func (f *uncounted) model(a *pool.Arena) {
	lists := 1
	if f.holds() {
		lists = 2
	}
	// a slice that grows has up to a quarter more
	a.Count(float64(8 * 1.25 * float64(lists) * (float64(f.epochs) + 2)))
	if f.method == MethodBQMF {
		model, _, _, _ := f.posterior()
		a.Count(8 * model)
		return
	}
	newFactors(a, f.d, f.n, f.k)
	a.Floats(f.d + f.k) // seals of U and V
	if f.method == MethodNMF {
		return
	}
	newQMF(a, f.d, f.levels)
	a.Floats(2, f.d)
	if f.method == MethodQMFQ {
		pool.Make[Map](a, f.d)
		a.Floats(3, f.d, f.levels)
	}
}

// state returns how many numbers a checkpoint has: those that Walk of the fit shows, and the losses.
func (f *uncounted) state() float64 {
	uv, maps := size(f.d+f.n, f.k), f.mapState(f.d)
	best, state := uv, uv // of an NMF
	switch f.method {
	case MethodNMF:
		if f.updates == UpdatesNewton {
			state += uv
		}
	case MethodQMF:
		best += size(2, f.d, f.levels)
		if state = 4*uv + maps; f.gaussian(f.k) {
			state = uv + size(f.k*(f.k+1)/2+f.k+1, f.n) + maps
		}
	case MethodQMFQ:
		best += size(5, f.d, f.levels)
		state = 2*uv + 2*maps + size(f.d, f.levels)
	case MethodBQMF:
		_, state, _, best = f.posterior()
	}
	losses := float64(f.epochs) + 2
	if f.holds() {
		state, losses = state+best, 2*losses
	}
	if f.restarts > 1 { // the best of the restarts before
		model := pool.DryArena()
		f.model(model)
		state += model.Most() / 8
	}
	return state + losses
}

// mapState is how many numbers a checkpoint has of d maps: parameters, Adam's moments, warm starts, losses.
func (s *settings) mapState(d int) float64 {
	perRow := 5*s.levels + 4
	if s.start == StartUniform {
		perRow += 3 * s.levels
	}
	return size(d, perRow)
}

// bqmf counts a fit of a BQMF: beside the fit under way there are a model, whose second moments lie in the
// fit's spare room, and under validation the best state.
func (f *uncounted) bqmf(a *pool.Arena, inMemory bool) {
	_, _, left, best := f.posterior()
	a.Count(8 * left)
	if f.holds() {
		a.Count(8 * best)
	}
	if f.holds() || !inMemory {
		a.Floats(f.d, f.n)
	}
}

// posterior is the memory of a BQMF: the model; a state of the fit in a checkpoint; the peak of the fit under
// way, with all the components that it starts with; and what of a state is kept as the best. The tables of
// curves are counted as if no value came twice.
func (f *uncounted) posterior() (model, state, fit, best float64) {
	size := func(of ...float64) float64 {
		p := 1.0
		for _, v := range of {
			p = float64(p * v)
		}
		return p
	}
	p := struct{ d, n, k, workers float64 }{float64(f.d), float64(f.n), float64(f.k),
		float64(pool.Count(f.workers, f.d))}
	n, pp := float64(kernel.Pad(int(min(p.n, 1<<40)))), size(.5, p.k, p.k+1)+kernel.Lanes
	uv, moments := size(p.k, p.d+n), size(p.d+n, pp)
	compared := min(n, 2048)
	model = 2*uv + moments + size(2, p.d, p.n) + size(34, p.d) + size(2, p.n) +
		size(1.015625, p.d, n) + size(80+64, p.d) + // the second stage
		size(p.d, compared) + size(n, 37) + size(p.k+kernel.Lanes, compared) // samples that are alike
	state = uv + moments + size(p.d, 4) + size(n, 4)
	scales := size(p.d, n) + size(2, p.d, p.n)
	if f.missing || f.holds() { // lists of what is hidden, or seen, of four bytes each
		scales += size(.5, p.d, n)
	}
	subspace := size(nmf.Pieces+2, p.k, n) + size(3, p.k, p.d+n)
	epochs := 2*uv + moments + size(3, p.k, max(p.d, n)) + size(nmf.Pieces, size(p.k, n)+pp+n) +
		size(p.workers, 4, p.k, p.k+8)
	cells := size(p.k, p.k, n) +
		size(p.workers, bqmf.RowsPerPass, size(p.k, p.k)+float64(18*n)+bqmf.RowsPerPass)
	regressors := max(min(p.d, 40), 64)
	stage := size(5, p.d, n) + size(64, n) + size(p.workers, float64(3*regressors)+5, n+regressors)
	alike := size(n, 600+p.k+kernel.Lanes) + size(p.k, p.k+kernel.Lanes) +
		size(p.workers, size(bqmf.RowsPerPass+2, p.k, n)+2*n+float64(compared)+1000)
	return model, state, scales + subspace + epochs + cells + alike + stage, state
}
