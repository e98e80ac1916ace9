package quantmf

// This file holds what fits take in memory, counted from the sizes that they
// allocate: the numbers in these formulas are those of newQMFFit, newNMFFit,
// newUnrolled and choose, and a test holds them against what is alive while fits
// of many kinds run.

import (
	"math"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
)

// Method names what a fit function fits.
type Method uint8

const (
	MethodNMF  Method = iota // FitNMF
	MethodQMF                // FitQMF
	MethodQMFQ               // FitQMFQ
)

var methodNames = []string{"NMF", "QMF", "QMFQ"}

// String returns NMF, QMF or QMFQ.
func (m Method) String() string { return name(methodNames, int(m)) }

// Memory is what a fit takes, in bytes.
type Memory struct {
	Fit   int64 // the most that is alive at once beside x, the model counted in
	Model int64 // what the model returned holds, and about the size of its file
	State int64 // the size of a checkpoint of it
}

// MemoryOf returns what the fit of a d × n matrix of the given rank takes with these
// options, before any of it is taken. What fits leave to the garbage collector
// on the way is not counted, nor what [WithCheckpoint] takes while it puts a state
// together, which is about five times State. It is within a factor of 2.5 above what
// was measured. Errors are those of the options, and of sizes below 1; what no fit could
// hold is counted all the same.
func MemoryOf(method Method, d, n, rank int, opts ...FitOption) (Memory, error) {
	var c config
	var t target
	switch method {
	case MethodNMF:
		c, t = nmfDefaults(), forNMF
	case MethodQMF:
		c, t = qmfDefaults(), forQMF
	case MethodQMFQ:
		c, t = qmfqDefaults(), forQMFQ
	default:
		return Memory{}, &OptionError{Option: "method", Value: method.String(), Bound: "must be one of the Method constants"}
	}
	if err := parse(t, &c, opts); err != nil {
		return Memory{}, err
	}
	if d < 1 || n < 1 {
		return Memory{}, &ShapeError{What: "x", Got: itoa(d) + "×" + itoa(n), Want: "at least 1×1"}
	}
	if rank < 1 {
		return Memory{}, &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least 1"}
	}
	switch method {
	case MethodNMF:
		if err := c.settleNMF(); err != nil {
			return Memory{}, err
		}
	case MethodQMFQ:
		c.settleQMFQ()
	}
	f := footprint{d: float64(d), n: float64(n), k: float64(rank), m: float64(c.levels), batch: min(float64(c.batchRows), float64(d)),
		workers: float64(pool.Count(c.workers, d)), hidden: c.missing || c.validation > 0, uniform: c.start == StartUniform}
	f.choose = c.start == StartAuto || c.shrinkage < 0 && c.ends == EndsFree && !f.uniform
	var fit, model, state float64
	factors := size(f.d+f.n, f.k)
	switch method {
	case MethodNMF:
		model, state = factors, factors
		fit = factors + f.update(f.hidden)
		if c.updates == UpdatesNewton {
			state *= 2
			fit = factors + f.newton()
		}
		if c.start == StartSVD {
			fit += size(18, f.n, f.k+2*svdMore) + size(3, f.d+f.n, f.k+2*svdMore)
		}
	case MethodQMF:
		model = factors + size(3, f.d, f.m+4)
		state = size(3, factors) + size(6, f.d, f.m) + size(f.d, f.n)
		fit = f.maps(f.d, f.batch) + max(f.start(), model)
	case MethodQMFQ:
		model = factors + size(8, f.d, f.m+4)
		state = size(4, factors) + size(14, f.d, f.m) + size(2, f.d, f.n)
		before := 0.0 // the QMF that it starts from
		if !f.uniform {
			before = f.maps(f.d, float64(min(qmfDefaults().batchRows, d))) + f.start()
		}
		fit = f.maps(f.d, f.d) + f.projection(c.projection) + max(before, model+f.row())
	}
	if c.validation > 0 { // a copy of x, its mask, and the best epoch
		fit += size(1.125, f.d, f.n) + model
	}
	if c.maps && c.loss == Frobenius { // a signed x about its rows' lowest values
		fit += size(f.d, f.n)
		if c.validation > 0 {
			fit += size(f.d, f.n)
		}
	}
	bytes := func(numbers float64) int64 { return int64(min(8*numbers, math.MaxInt64/2)) }
	return Memory{Fit: bytes(fit), Model: bytes(model), State: bytes(state)}, nil
}

// size is the product of some sizes, which no sum is fused with.
func size(of ...float64) float64 {
	p := 1.0
	for _, v := range of {
		p *= v
	}
	return p
}

// footprint is what decides how much memory a fit takes; its methods count
// numbers of eight bytes.
type footprint struct {
	d, n, k, m      float64
	batch, workers  float64
	hidden, uniform bool // cells are; the paper's start
	choose          bool // start or shrinkage are chosen by the data
}

// update is what the updates of an NMF take beside its factors: the sums of the
// pieces of the rows, and where cells are hidden their denominators, too.
func (p footprint) update(hidden bool) float64 {
	sums := size(nmfChunks+1, p.k, p.n)
	if hidden {
		sums += size(nmfChunks, p.k, p.n)
	}
	return sums + size(p.workers, plainRows+2, p.n)
}

// newton is what an NMF by Newton's method takes beside its factors: the sums of the
// pieces, factors ahead and behind, and room for rows and their products.
func (p footprint) newton() float64 {
	return size(2*nmfChunks+6, p.k, p.n) + size(3*nmfChunks, p.n) + size(2, p.d, p.k) + size(nmfChunks+1, p.k, p.k) +
		size(p.workers, 5*plainRows, p.n) + size(p.workers, 6, stripColumns+plainRows, p.k)
}

// row is a worker's room for rows of n samples and m levels, as many as it works at
// abreast.
func (p footprint) row() float64 {
	rows := float64(transport.Abreast(int(p.n), int(p.m), int(p.d)))
	return size(rows, p.n, p.m+21) + size(5, rows, p.m, p.m+18)
}

// maps is a fit of maps to d rows: factors, Adam's moments, what transports start
// from.
func (p footprint) maps(d, batch float64) float64 {
	perRow := size(5, p.m) + 24
	if p.uniform {
		perRow += size(3, p.m)
	}
	return size(4, d, p.k) + size(5, p.k, p.n) + size(d, perRow) + size(min(batch, d), p.n+p.k) + size(p.workers, p.row())
}

// start is what a fit of maps starts from beside itself: the NMF of scores, and,
// before that, short fits of some rows with hidden cells: their start, one of
// them, and the one before.
func (p footprint) start() float64 {
	if p.uniform {
		return 0
	}
	most := size(p.d, p.n) + p.update(p.hidden)
	if p.choose {
		few := min(p.d, trialRows)
		most = max(most, size(3, p.maps(few, p.batch))+size(3.2, few, p.n)+p.update(true))
	}
	return most
}

// projection is what QMFQ has beside the maps back: the maps T', Y and its
// gradient, and the states of the updates.
func (p footprint) projection(kind Projection) float64 {
	deflation := size(p.d, 2, p.n) + size(9, p.d, p.m) + size(p.workers, p.row())
	if kind.kind == projectionSVD {
		least, most := min(p.d, p.n), max(p.d, p.n)
		return deflation + size(2, least, most+least) + size(20, p.k, p.d+p.n)
	}
	state, sums := size(p.d+p.n, p.k), size(projectionChunks, p.k, p.n)
	if p.hidden {
		state += size(p.n, p.k)
		sums *= 2
	}
	states := float64(kind.updates) + 1
	if size(float64(kind.updates), state) > mostStates {
		states = size(2, math.Ceil(math.Sqrt(float64(kind.updates))))
	}
	return deflation + size(states, state) + sums + size(2, p.d+2*p.n, p.k)
}
