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
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
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

// kind is that of the models of a method that is not MethodAuto.
func (m Method) kind() uint32 {
	return [...]uint32{section.NMF, section.QMF, section.QMFQ, section.BQMF}[m]
}

// Memory is what a fit takes, in bytes.
type Memory struct {
	Fit   int64 // the peak during the fit: everything alive at once but x itself, the model included
	Rows  int64 // the same where x is read by rows ([Rows]) and is no Mat
	Model int64 // the model returned; its file is of about this size
	State int64 // a checkpoint, as WithCheckpoint hands it over
}

// MemoryFor counts the memory that a fit of x of the given rank takes with these options, before the fit is
// made: from 1.0 to 1.5 times what is alive at the peak, and a tenth of a megabyte. Fit and Rows are the same
// here. It reads x once, to see what is zero or missing. Where a QMF chooses its start it is for the start
// that takes most. Not counted are x, garbage that has not been collected yet, and what [WithCheckpoint]
// takes while it assembles a state, about five times State. Errors: those of [MemoryOf], [*ReadError], and
// that of ctx; what else is wrong with x is no error here.
func MemoryFor(ctx context.Context, method Method, x Rows, rank int, opts ...FitOption) (Memory, error) {
	if err := checkRows(x); err != nil {
		return Memory{}, err
	}
	d, n := x.Dims()
	of, err := qmf.Look(ctx, d, n, newRowReader(x).row)
	if err != nil {
		return Memory{}, err
	}
	if s, is := x.(*Sparse); is {
		of.Listed = float64(len(s.of.Index)) / qmf.Size(d, n)
	}
	m, err := memoryOf(method, d, n, of, rank, opts)
	if _, held := x.(Mat); !held {
		m.Fit = m.Rows
	}
	m.Rows = m.Fit
	return m, err
}

// MemoryOf is [MemoryFor] of a d × n matrix of which only the sizes are known: it is for the data that take
// most. What it says is more than 1.5 times what is alive for an NMF under KL or Frobenius without hidden
// cells of rows that are not mostly zero, down to half; for [WithMissingValues], a QMF of more than 2^16
// cells of which few are missing, down to a third; for a QMF under Frobenius without negative values; and
// for a [*Sparse] from which an NMF draws the samples that it begins with. Errors: the [*OptionError] that
// the fit would return before it reads x, and [*ShapeError] for sizes below 1; a fit too large for any
// machine is no error here.
func MemoryOf(method Method, d, n, rank int, opts ...FitOption) (Memory, error) {
	return memoryOf(method, d, n, fit.About{}, rank, opts)
}

// memoryOf counts the memory for a matrix of which something may be known.
func memoryOf(method Method, d, n int, about fit.About, rank int, opts []FitOption) (Memory, error) {
	if method == MethodAuto {
		return memoryOfAuto(d, n, about, rank, opts)
	}
	c, k, err := configOf(method, d, n, rank, opts)
	if err != nil {
		return Memory{}, err
	}
	open := method == MethodNMF && c.Missing && about.Visible < 1 && c.endIsOpen()
	if open {
		c.settleFew(float64(about.Visible*qmf.Size(d, n)), d, n, k)
	}
	of := &uncounted{config: &c, method: method, about: about, d: min(d, pool.Beyond),
		n: min(n, pool.Beyond), k: k}
	model := pool.DryArena()
	of.model(model)
	epochs := c.Epochs
	if open {
		epochs *= qmf.MostShare
	}
	fit.CountLosses(model, epochs, of.holds())
	bytes, state := func(v float64) int64 { return int64(min(v, math.MaxInt64/2)) }, of.state()
	if open {
		c.judgeEnd(c.Epochs, 1) // the fits that find the end take more
	}
	return Memory{Fit: bytes(of.fit(true)), Rows: bytes(of.fit(false)), Model: bytes(model.Most()),
		State: bytes(8 * state)}, nil
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
		few.Levels = min(c.Levels, 2) // a number of levels too large for any machine is no error here
		if err = few.checkQMF(1, 1); method == MethodQMFQ {
			c.settleQMFQ()
		}
		c.Levels = min(c.Levels, pool.BeyondSquare)
	}
	return c, k, err
}

// uncounted is a fit of a d × n matrix by k components whose memory is to be counted.
type uncounted struct {
	*config
	method  Method
	about   fit.About
	d, n, k int
}

// holds tells whether cells are held out, of which the best epoch is kept.
func (f *uncounted) holds() bool { return f.Validation > 0 }

// small is what a fit takes in structures and slices that depend on no size, in bytes.
const small = 1 << 17

// fit returns the peak of a fit, in bytes: of a Mat, or of a matrix that is read by rows.
func (f *uncounted) fit(inMemory bool) float64 {
	most := f.d
	if f.method == MethodNMF {
		most = nmf.Pieces
	}
	p := pool.Idle(f.workers, most)
	rules := f.Rules()
	if f.sampleWeights != nil || f.cellWeights != nil {
		rules.Weights = &fit.Weights{Samples: f.sampleWeights}
	}
	run := fit.Run{Pool: p, Progress: fit.Silent(context.Background())}
	a, cells := p.Memory, fit.NotRead(p.Memory, f.d, f.n, f.about, rules)
	if inMemory {
		cells.X = fit.Dense{Rows: f.d, Cols: f.n, Stride: f.n}
		// a copy of what is signed, less its rows' lowest values, or of what is in another unit
		if f.Mapped && f.Loss == divergence.Frobenius && !f.about.Plain || f.about.Rescale {
			a.Floats(f.d, f.n)
		}
	}
	fit.CountLosses(a, f.Epochs, f.holds())
	if f.restarts > 1 { // the best of the restarts before
		fit.CountLosses(a, f.Epochs, f.holds())
		f.model(a)
	}
	if f.method == MethodBQMF {
		if f.holds() || !inMemory || rules.Weights != nil { // x as a matrix
			a.Floats(f.d, f.n)
		}
		f.sizes().Count(p, cells.Partial, f.holds(), f.cellWeights != nil)
		return dying(a)
	}
	cells.Guess = f.guess
	qmf.Count(f.method.kind(), cells, f.k, &f.Settings, run)
	f.model(a)
	return dying(a)
}

// sizes are those of a BQMF.
func (f *uncounted) sizes() *bqmf.Size { return bqmf.SizeOf(f.d, f.n, f.k, f.about.Nonzero) }

// dying returns the peak of a fit with objects that have died, until they are collected.
func dying(a *pool.Arena) float64 { return a.Most() + float64(a.Most()/32) + small }

// model counts the model, but for its losses.
func (f *uncounted) model(a *pool.Arena) {
	if f.method == MethodBQMF {
		f.sizes().CountModel(a)
		return
	}
	qmf.CountFactors(a, f.d, f.n, f.k)
	a.Floats(f.d + f.k) // seals of U and V
	if f.method == MethodNMF {
		return
	}
	qmf.NewQMF(a, f.d, f.Levels)
	a.Floats(2, f.d)
	if f.method == MethodQMFQ {
		pool.Make[Map](a, f.d)
		qmf.CountFactors(a, f.d, f.n, f.k)
		a.Floats(3, f.d, f.Levels)
	}
}

// state returns how many numbers a checkpoint has: those that Walk of the fit shows, and the losses.
func (f *uncounted) state() float64 {
	var state, best float64
	if f.method == MethodBQMF {
		of := pool.DryArena()
		f.sizes().CountState(of)
		state = of.Most() / 8
		best = state
	} else {
		state, best = qmf.CountState(f.method.kind(), f.d, f.n, f.k, &f.Settings)
	}
	losses := float64(f.Epochs) + 2
	if f.holds() {
		state, losses = state+best, 2*losses
	}
	if f.restarts > 1 { // the best of the restarts before
		model := pool.DryArena()
		f.model(model)
		state += float64(model.Most()/8) + losses
	}
	return state + losses
}
