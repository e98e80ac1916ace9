package quantmf

// This file estimates the memory that fits take, from the sizes of what they allocate: the
// terms of these formulas are the slices that newQMFFit, newQMFQFit, choose, bqmfFit, internal/nmf,
// internal/projection and internal/bqmf make. A test compares the estimates with the memory that
// is alive during fits of many kinds.

import (
	"math"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/transport"
)

// Method names one of the fit functions.
type Method uint8

const (
	MethodNMF  Method = iota // FitNMF
	MethodQMF                // FitQMF
	MethodQMFQ               // FitQMFQ
	MethodBQMF               // FitBQMF
	MethodAuto               // the one of these, but for FitQMFQ, that predicts hidden cells best: [Fit]
)

// String returns NMF, QMF, QMFQ, BQMF or Auto.
func (m Method) String() string { return option.Name(int(m), "NMF", "QMF", "QMFQ", "BQMF", "Auto") }

// Memory is what a fit takes, in bytes.
type Memory struct {
	Fit   int64 // the peak during the fit: everything alive at once but x itself, the model included
	Rows  int64 // the same where x is read by rows ([Rows]) and is no Mat
	Model int64 // the model returned; its file is of about this size
	State int64 // a checkpoint, as WithCheckpoint hands it over
}

// MemoryOf estimates the memory that a fit of a d × n matrix of the given rank takes with these options,
// before the fit is made: from 1.0 to 1.5 times what was measured, for a
// BQMF up to 2.2. Where the data choose a start it is for
// the start that takes most, and for an NMF under KL of 16 rows or more without hidden cells it is for rows
// that are mostly zero, which take up to 1.8 times as much as others. Samples that an NMF begins with are
// counted in full; of a [Sparse] they take what it lists of them. Not counted are x, garbage that has not
// been collected yet, and what [WithCheckpoint] takes while it assembles a state, about five times State.
// Errors: the [*OptionError] that the fit would return before it reads x, and [*ShapeError] for sizes below
// 1; a fit too large for any machine is no error here.
func MemoryOf(method Method, d, n, rank int, opts ...FitOption) (Memory, error) {
	if method == MethodAuto {
		return memoryOfAuto(d, n, rank, opts)
	}
	c, f, err := sizesOf(method, d, n, rank, opts)
	if err != nil {
		return Memory{}, err
	}
	var fit, model, checkpoint float64
	uv := size(f.d+f.n, f.k)
	switch method {
	case MethodNMF:
		model, checkpoint = uv, uv
		if c.validation > 0 {
			checkpoint += uv
		}
		if c.updates == UpdatesNewton {
			checkpoint += uv
		}
		fit = f.nmfFit(&c)
	case MethodQMF:
		model = uv + size(3, f.d, f.m+4)
		checkpoint = float64(4*uv) + f.mapsState()
		f.steps = true
		if f.gauss = c.gaussian(f.rank); f.gauss {
			checkpoint = uv + size(f.pairs()+f.k+1, f.n) + f.mapsState()
		}
		if c.validation > 0 {
			checkpoint += uv + size(2, f.d, f.m)
		}
		fit = f.maps(f.d, f.batch) + max(f.start(), model)
	case MethodQMFQ:
		model = uv + size(8, f.d, f.m+4)
		checkpoint = float64(2*uv) + float64(2*f.mapsState()) + size(f.d, f.m)
		if c.validation > 0 {
			checkpoint += uv + size(5, f.d, f.m)
		}
		before := 0.0 // the QMF that it starts from
		own := f.maps(f.d, f.d)
		if f.gauss = c.gaussian(f.rank); !f.uniform {
			f.steps = true
			before = f.maps(f.d, float64(min(qmfDefaults().batchRows, d))) + f.start()
		}
		fit = own + f.projection(c.projection) + max(before, model+f.row())
	case MethodBQMF:
		var left, best float64
		model, checkpoint, left, best = f.posterior()
		// Beside the fit under way there are a model, whose second moments lie in the fit's spare room, and
		// under validation the best state.
		fit = left + model
		if c.validation > 0 {
			fit += best
			checkpoint += best
		}
	}
	losses := float64(c.epochs) + 2 // of every epoch
	if c.validation > 0 {
		losses *= 2
	}
	fit += float64(1.25 * losses) // a slice that grows has up to a quarter more
	model, checkpoint = model+losses, checkpoint+losses
	if c.validation > 0 { // a bit for each cell, and the best epoch
		fit += size(f.d, math.Ceil(f.n/64)) + model
	}
	fit += float64(fit / 32) // of objects that have died, until they are collected
	rows := fit
	if c.mapped && c.loss == divergence.Frobenius { // the copy of a signed Mat, less its rows' lowest values
		fit += size(f.d, f.n)
	}
	switch method {
	case MethodQMF: // at most mostHeld normal scores are held
		rows -= max(f.start(), model)
		f.scored = min(f.d, mostHeld/f.n)
		rows += max(f.start(), model)
	case MethodBQMF: // the Mat that it makes
		rows += size(f.d, f.n)
		if c.validation > 0 {
			fit += size(f.d, f.n)
		}
	}
	if c.restarts > 1 { // the best of the restarts before
		checkpoint += model
	}
	bytes := func(numbers float64) int64 { return int64(min(8*numbers, math.MaxInt64/2)) }
	return Memory{Fit: bytes(fit), Rows: bytes(rows), Model: bytes(model), State: bytes(checkpoint)}, nil
}

// sizesOf reads and checks the options of a fit of a d × n matrix, for MemoryOf.
func sizesOf(method Method, d, n, rank int, opts []FitOption) (c config, f footprint, err error) {
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
		return c, f, &OptionError{Option: "method", Value: method.String(),
			Bound: "must be one of the Method constants"}
	}
	if err = parse(t, &c, opts); err != nil {
		return c, f, err
	}
	if d < 1 || n < 1 {
		return c, f, &ShapeError{What: "x", Got: itoa(d) + "×" + itoa(n), Want: "at least 1×1"}
	}
	least := 1
	if method == MethodBQMF {
		least = 0
	}
	if rank < least {
		return c, f, &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least " + itoa(least)}
	}
	if method == MethodBQMF {
		rank = bqmfComponents(d, n, rank)
	}
	switch method {
	case MethodNMF:
		err = c.settleNMF(d, n, rank)
	case MethodBQMF:
		err = c.settleBQMF()
	default:
		few := c
		few.levels = min(c.levels, 2) // a number of levels too large for any machine is no error here
		err = few.checkQMF(1, 1)
		if method == MethodQMFQ {
			c.settleQMFQ()
		}
	}
	if err != nil {
		return c, f, err
	}
	f = footprint{
		rank: rank, d: float64(d), n: float64(n), k: float64(rank), m: float64(c.levels),
		scored: float64(d), batch: min(float64(c.batchRows), float64(d)),
		workers: float64(pool.Count(c.workers, d)),
		hidden:  c.missing || c.validation > 0, uniform: c.start == StartUniform, loss: c.loss,
	}
	f.trialled = trialCells / (1 - c.validation)
	if c.missing {
		f.trialled = fit.MostSampled
	}
	open := (c.shrinkage < 0 || c.line < 0) && c.mayHaveLine()
	f.choose = c.start == StartAuto || c.start == StartNMF || open
	return c, f, nil
}

// size is the product of some sizes, rounded before it meets a sum.
func size(of ...float64) float64 {
	p := 1.0
	for _, v := range of {
		p = float64(p * v)
	}
	return p
}

// footprint has the sizes that decide how much memory a fit takes. Its methods return memory as a
// count of numbers of eight bytes.
type footprint struct {
	rank            int // k
	d, n, k, m      float64
	scored          float64 // rows of which the normal scores are held
	batch, workers  float64
	hidden, uniform bool // cells are hidden; StartUniform
	loss            divergence.Loss
	choose          bool    // start or shrinkage are chosen by the data
	trialled        float64 // cells that a trial has at most
	gauss           bool    // U and V take steps of Gauss and Newton's method
	steps           bool    // U and V take steps; those of a QMFQ do not
}

// small is what a fit takes in structures and slices that depend on no size.
const small = 2048

// sizeInt is a size as an int: one that is larger than any memory is large enough.
func sizeInt(size float64) int { return int(min(size, pool.Beyond)) }

// cells are those of a fit that is not made.
func (p footprint) cells() *fit.Cells {
	return &fit.Cells{D: sizeInt(p.d), N: sizeInt(p.n), Partial: p.hidden}
}

// nmfFit is the memory of a fit of an NMF, the model included.
func (p footprint) nmfFit(c *config) float64 {
	workers, x, k := pool.Idle(c.workers, nmf.Pieces), p.cells(), sizeInt(p.k)
	a := workers.Memory
	fit.Reserve(a, x.D)
	f := newFactors(a, x.D, x.N, k)
	method := newMethod(workers, f, x, c.loss, c.penalty, c.updates)
	f.reserveSome(x, c.loss, c.startsFrom(x.D, x.N), workers)
	if c.start == StartSVD {
		f.decompose(x, workers)
	}
	method.Reserve(c.epochs)
	newFactors(a, x.D, x.N, k) // the model
	return float64(a.Most()/8) + small
}

// reserveSome takes the memory of fromSome.
func (f *factors) reserveSome(x *fit.Cells, loss divergence.Loss, samples float64, p *pool.Pool) {
	if samples == 0 {
		return
	}
	defer p.Part()()
	p.Memory.Floats(f.d, int(samples)) // the samples
	g := newFactors(p.Memory, f.d, int(samples), f.k)
	g.approximate(x, loss, 1, p, fit.Progress{})
}

// pairs is the number of entries of a symmetric k × k matrix.
func (p footprint) pairs() float64 { return size(.5, p.k, p.k+1) }

// row is the workspace of one worker: a row of n samples and m levels.
func (p footprint) row() float64 {
	return size(p.n, p.m+21) + size(5, p.m, p.m+18) + transport.CondensedRoom(p.n, p.m)
}

// maps is the memory of a fit of maps to d rows: factors, Adam's moments or the models of Gauss and
// Newton's method, warm starts of transports.
func (p footprint) maps(d, batch float64) float64 {
	perRow := size(5, p.m) + 24
	if p.uniform {
		perRow += size(3, p.m)
	}
	factors, rows, copies := size(4, d, p.k)+size(5, p.k, p.n), min(batch, d), 1.0
	if p.steps && batch >= d { // the sums of a run and of a group beside those of all rows
		rows, copies = min(d, togetherRows), 3
		factors += size(2, p.k, p.n)
	}
	if p.gauss {
		factors = size(d, p.k) + size(2, p.k, p.n) + size(copies, p.pairs()+p.k, p.n) +
			size(rows, p.n+p.n+p.pairs()) +
			size(p.workers, p.n+size(p.k, p.k)+size(32, rows+float64(3*p.k)))
	}
	return factors + size(d, perRow) + size(rows, p.n+p.k) + size(p.workers, p.row())
}

// mapsState is the size of d maps in a checkpoint: parameters, Adam's moments, warm starts, losses.
func (p footprint) mapsState() float64 {
	perRow := size(5, p.m) + 4
	if p.uniform {
		perRow += size(3, p.m)
	}
	return size(p.d, perRow)
}

// first is the memory of the larger of two NMFs with which a fit may begin: of scores, and of x.
func (p footprint) first() float64 {
	most := 0.0
	for _, l := range []divergence.Loss{divergence.KL, p.loss} {
		workers := pool.Idle(sizeInt(p.workers), sizeInt(p.workers))
		f := newFactors(pool.DryArena(), sizeInt(p.d), sizeInt(p.n), sizeInt(p.k))
		f.approximate(p.cells(), l, 1, workers, fit.Progress{})
		most = max(most, workers.Memory.Most()/8)
	}
	return most
}

// start is the memory that the start of a fit of maps takes beside the fit itself: that of the NMF of scores,
// of all samples or of some, or, before it, that of the trials of some cells: the three of a start are alive
// at once.
func (p footprint) start() float64 {
	if p.uniform {
		return 0
	}
	scores := size(p.scored, p.n)
	most := scores + p.first()
	if some := someSamples(divergence.KL, p.d, p.n); some > 0 {
		few := p
		few.n = some
		most = max(most, scores+size(some, p.d+p.k)+few.first())
	}
	if p.choose && min(p.d, p.n) > 2 { // else no cell can be hidden from a trial
		few := p
		few.d = min(p.d, trialRows)
		few.n = math.Ceil(min(p.n, p.trialled/few.d))
		few.hidden = true
		most = max(most, size(3, few.maps(few.d, p.batch))+size(4.2, few.d, few.n)+
			size(2, few.d+few.n, few.k)+few.first())
	}
	return most
}

// projection is the memory that a QMFQ takes beside T: the maps T', Y and its gradient, and the
// states of the updates.
func (p footprint) projection(of Projection) float64 {
	deflated := size(p.d, 2, p.n) + size(9, p.d, p.m)
	return deflated + projection.Numbers(of.kind, of.updates, p.d, p.n, p.k, p.hidden)
}

// posterior is the memory of a BQMF: the model; a state of the fit in a checkpoint; the peak of the fit under
// way, with all the components that it starts with; and what of a state is kept as the best. The tables of
// curves are counted as if no value came twice.
func (p footprint) posterior() (model, state, fit, best float64) {
	n, pp := float64(kernel.Pad(int(min(p.n, 1<<40)))), size(.5, p.k, p.k+1)+kernel.Lanes
	uv, moments := size(p.k, p.d+n), size(p.d+n, pp)
	compared := min(n, 2048)
	model = 2*uv + moments + size(2, p.d, p.n) + size(34, p.d) + size(2, p.n) +
		size(1.015625, p.d, n) + size(80+64, p.d) + // the second stage
		size(p.d, compared) + size(n, 37) + size(p.k+kernel.Lanes, compared) // samples that are alike
	state = uv + moments + size(p.d, 4) + size(n, 4)
	scales := size(p.d, n) + size(2, p.d, p.n)
	if p.hidden { // lists of what is hidden, or seen, of four bytes each
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
