package qmf

// This file holds what the maps of rows have while they are fitted, T of every row (inflate.go) and T'
// (deflate.go): their parameters, and a workspace a worker, in which one row after the other is transported
// onto its levels.

import (
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
)

// mapRows is an increasing map of every row during a fit.
type mapRows struct {
	*Settings
	cells *fit.Cells
	Maps
	pool   *pool.Pool
	spaces []rowSpace // one a worker
	at     pace       // the rate and the number of Adam's next step

	op op                      // that runs
	do func(worker, piece int) // does a piece of it; made once, so that no loop allocates
}

// run does so many pieces of an op.
func (m *mapRows) run(op op, pieces int) {
	m.op = op
	m.pool.Do(pieces, m.do)
}

// op is what the pieces of a loop of a fit do: rows, or tiles of V.
type op uint8

const (
	visitRows    op = iota // the steps of the maps, and what depends on them
	evaluateRows           // the losses
	accumulate             // what the rows of a batch add to the step of V
	stepColumns            // the step of V
	deflateRows            // Y = T'(X)
	deflateBack            // the steps of the maps T'
)

// rowSpace is the workspace of one worker for one row.
type rowSpace struct {
	row        *transport.Row
	x, w, t, g []float64 // np
	// np, T^{β-1} by weights, which ratios fills; under KL newRowSpaces and read fill it
	s           []float64
	about, z    []float64 // scratch, np
	q, num, den []float64 // m
	shares      []float64 // m
	d0          []float64 // increments of the affine map, m
	observed    []bool    // of the row at hand; nil: all
	mask        []bool
	gu          []float64 // k
	// Where cells have weights: those of the row, 0 in hidden cells and the padding, and these times x; np.
	weights, heavy []float64
}

// newRowSpaces makes the workspaces of the workers of a pool for rows of n samples, k components and m
// levels.
func newRowSpaces(p *pool.Pool, n, k, m int, weighted bool) []rowSpace {
	a, spaces, np := p.Memory, make([]rowSpace, p.Workers()), kernel.Pad(n)
	for i := range spaces {
		v := &spaces[i]
		v.row = transport.NewRow(a, n, m)
		for _, s := range []*[]float64{&v.x, &v.w, &v.t, &v.g, &v.s, &v.about, &v.z} {
			*s = a.Floats(np)
		}
		for _, s := range []*[]float64{&v.q, &v.num, &v.den, &v.shares, &v.d0} {
			*s = a.Floats(m)
		}
		for j := range v.s {
			if j < n {
				v.s[j] = 1
			}
		}
		v.gu, v.mask = a.Floats(k), pool.Make[bool](a, n)
		if weighted {
			v.weights, v.heavy = a.Floats(np), a.Floats(np)
		}
	}
	return spaces
}

// read fills v.x with row i, 0 in hidden cells, and sets v.observed and the weights.
func (m *mapRows) read(v *rowSpace, i int) {
	v.observed = m.cells.ReadRow(v.x, v.mask, i)
	if v.weights != nil {
		m.cells.Weigh(v.weights[:m.cells.N], v.observed, i)
	}
}

// load loads the transport of the samples x of row i, those left out that v.observed leaves out, onto b_i.
func (m *mapRows) load(v *rowSpace, x []float64, i int) {
	p := transport.Problem{
		X: x[:m.cells.N], Observed: v.observed, Logits: m.Logits(i),
		Squash: m.Squash, Epsilon: m.Epsilon,
	}
	if v.weights != nil {
		p.A, p.Weighed = v.weights[:m.cells.N], true
	}
	v.row.Load(p)
}
