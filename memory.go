package quantmf

// This file holds the memory that fits take, counted from the sizes that they allocate:
// the factors in these formulas are those of newQMFFit, newQMFQFit, choose,
// internal/nmf and internal/projection. A test compares them with what is alive during fits of many
// kinds.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
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
)

// String returns NMF, QMF or QMFQ.
func (m Method) String() string { return option.Name(int(m), "NMF", "QMF", "QMFQ") }

// Memory is what a fit takes, in bytes.
type Memory struct {
	Fit   int64 // the peak during the fit: everything alive at once but x itself, the model included
	Model int64 // the model returned; its file is of about this size
	State int64 // a checkpoint, as WithCheckpoint hands it over
}

// MemoryOf estimates what a fit of a d × n matrix of the given rank takes with these
// options, before the fit is made. The estimate is up to 2.5 times what was measured. Not
// counted are x, garbage that has not been collected yet, and what [WithCheckpoint] takes
// while it assembles a state, about five times State. Errors: [*OptionError] and
// [*ShapeError], for the options and for sizes below 1; a fit too large for any machine
// is no error here.
func MemoryOf(method Method, d, n, rank int, opts ...FitOption) (Memory, error) {
	var c config
	var t option.Function
	switch method {
	case MethodNMF:
		c, t = nmfDefaults(), option.FitNMF
	case MethodQMF:
		c, t = qmfDefaults(), option.FitQMF
	case MethodQMFQ:
		c, t = qmfqDefaults(), option.FitQMFQ
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
	var fit, model, checkpoint float64
	uv := size(f.d+f.n, f.k)
	switch method {
	case MethodNMF:
		model, checkpoint = uv, uv
		fit = uv + nmf.UpdatesNumbers(f.n, f.k, f.workers, f.hidden)
		if c.updates == UpdatesNewton {
			checkpoint *= 2
			fit = uv + nmf.NewtonNumbers(f.d, f.n, f.k, f.workers)
		}
		if c.start == StartSVD {
			fit += size(18, f.n, f.k+2*svdMore) + size(3, f.d+f.n, f.k+2*svdMore)
		}
	case MethodQMF:
		model = uv + size(3, f.d, f.m+4)
		checkpoint = size(3, uv) + size(6, f.d, f.m) + size(f.d, f.n)
		fit = f.maps(f.d, f.batch) + max(f.start(), model)
	case MethodQMFQ:
		model = uv + size(8, f.d, f.m+4)
		checkpoint = size(4, uv) + size(14, f.d, f.m) + size(2, f.d, f.n)
		before := 0.0 // the QMF that it starts from
		if !f.uniform {
			before = f.maps(f.d, float64(min(qmfDefaults().batchRows, d))) + f.start()
		}
		fit = f.maps(f.d, f.d) + f.projection(c.projection) + max(before, model+f.row())
	}
	if c.validation > 0 { // a copy of x, its mask, and the best epoch
		fit += size(1.125, f.d, f.n) + model
	}
	if c.mapped && c.loss == divergence.Frobenius { // a signed x about its rows' lowest values
		fit += size(f.d, f.n)
		if c.validation > 0 {
			fit += size(f.d, f.n)
		}
	}
	bytes := func(numbers float64) int64 { return int64(min(8*numbers, math.MaxInt64/2)) }
	return Memory{Fit: bytes(fit), Model: bytes(model), State: bytes(checkpoint)}, nil
}

// size is the product of some sizes, rounded before it meets a sum.
func size(of ...float64) float64 {
	p := 1.0
	for _, v := range of {
		p *= v
	}
	return p
}

// footprint is the sizes that decide how much memory a fit takes. Its methods return
// counts of numbers of eight bytes.
type footprint struct {
	d, n, k, m      float64
	batch, workers  float64
	hidden, uniform bool // cells are hidden; StartUniform
	choose          bool // start or shrinkage are chosen by the data
}

// row is the workspace of one worker: a group of rows of n samples and m levels.
func (p footprint) row() float64 {
	rows := float64(transport.Abreast(int(p.n), int(p.m), int(p.d)))
	return size(rows, p.n, p.m+21) + size(5, rows, p.m, p.m+18)
}

// maps is a fit of maps to d rows: factors, Adam's moments, warm starts of transports.
func (p footprint) maps(d, batch float64) float64 {
	perRow := size(5, p.m) + 24
	if p.uniform {
		perRow += size(3, p.m)
	}
	return size(4, d, p.k) + size(5, p.k, p.n) + size(d, perRow) + size(min(batch, d), p.n+p.k) + size(p.workers, p.row())
}

// start is the start of a fit of maps beside the fit itself: the NMF of scores or, before
// it, the short fits of some rows with hidden cells, of which three are alive at once: the
// start, the current one, and the one before.
func (p footprint) start() float64 {
	if p.uniform {
		return 0
	}
	most := size(p.d, p.n) + nmf.UpdatesNumbers(p.n, p.k, p.workers, p.hidden)
	if p.choose {
		few := min(p.d, trialRows)
		most = max(most, size(3, p.maps(few, p.batch))+size(3.2, few, p.n)+nmf.UpdatesNumbers(p.n, p.k, p.workers, true))
	}
	return most
}

// projection is what QMFQ has beside T: the maps T', Y and its gradient, and the states
// of the updates.
func (p footprint) projection(of Projection) float64 {
	deflated := size(p.d, 2, p.n) + size(9, p.d, p.m) + size(p.workers, p.row())
	return deflated + projection.Numbers(of.kind, of.updates, p.d, p.n, p.k, p.hidden)
}
