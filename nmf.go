package quantmf

// This file holds X ≈ UV with U, V >= 0 by multiplicative updates (Lee and Seung
// 2001; other divergences than KL: Févotte and Idier 2011), the baseline of the
// paper and the start of its models. With W = UV, entrywise powers, and the sums
// over visible cells,
//
//	V ← V ∘ (Uᵀ(X∘W^{β-2}) / UᵀW^{β-1})^γ,   then with the new V   U likewise;
//
// for KL, β = 1, the numerator is UᵀR with R = X/W and the denominator Uᵀ1.
//
// An epoch is one sweep over the rows of X. For some rows the update of U is
// finished with the new V, and at once their share of the next update of V
// and their loss are taken, so X is read once an epoch and no d × n matrix is
// ever formed: 8dnk flops, 2dn divisions, dn logarithms. W is made, divided
// by and compared with X in registers (kernel.QuotientRows): the rounding of W hardly
// changes X log(X/W) + W - X of a cell, but would change sums of it taken apart.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// NMF is a fitted X ≈ UV. It is not changed by its methods.
type NMF struct{ Factorisation }

func nmfDefaults() config {
	return config{epochs: 200, seed: 1, loss: KL, restarts: 1, start: StartUniform}
}

// FitNMF factorises x, d features × n samples, finite, non-negative and at most 1e60,
// into U V of the given rank k >= 1, which may exceed d and n. x may be in any unit;
// negative values need a [FitQMF] or [FitQMFQ] under [WithLoss]([Frobenius]).
//
// Defaults: KL, 200 epochs, seed 1, StartUniform (factors uniform on
// sqrt(mean x/k)·[1/2,3/2)), no penalty, no patience, no validation, one start.
// [WithStart] takes StartUniform and StartSVD. Errors: [*DataError],
// [*ShapeError], [*OptionError]; when ctx ends or a progress function fails, the
// model so far with an error that wraps it. A component that has died out, all
// of its U or V zero, is a warning.
//
// Cost: 8dnk flops an epoch, 12dnk where cells are missing or the loss is not KL;
// memory 18kn + dk numbers beside x (33kn then).
func FitNMF(ctx context.Context, x Mat, rank int, opts ...FitOption) (*NMF, error) {
	c := nmfDefaults()
	if err := parse(forNMF, &c, opts); err != nil {
		return nil, err
	}
	if c.start != StartUniform && c.start != StartSVD {
		return nil, &OptionError{Option: kStart.String(), Value: c.start.String(), Bound: "FitNMF starts from StartUniform or StartSVD"}
	}
	visible, err := checkFit(x, rank, &c)
	if err != nil {
		return nil, err
	}
	p := pool.New(c.workers, nmfChunks)
	defer p.Close()
	p.Bind(ctx)
	var best *NMF
	past, err := c.reopen(kindNMF, x, rank)
	if err != nil {
		return nil, err
	}
	if m := new(NMF); len(past.best) > 0 {
		if err := past.bestModel(m, kindNMF, &c, x, rank); err != nil {
			return nil, err
		}
		best = m
	}
	for restart := range c.restarts {
		if past.from != nil && restart < past.from.restart {
			continue
		}
		var err error
		f := newFactors(x.Rows, x.Cols, rank)
		fit := newNMFFit(newCourse(ctx, &c, x.Rows), p, f, visible, &c)
		fit.restart, fit.bestSoFar, fit.data = restart, past.best, past.data
		var start *saved
		switch {
		case past.from != nil && restart == past.from.restart:
			start = past.from
			if visible.held != nil {
				fit.keep = newFactors(x.Rows, x.Cols, rank)
			}
			if _, err := past.state.restore(fit.parts(fit.keep), 0); err != nil {
				return nil, err
			}
			if start.steps != 0 {
				return nil, past.state.failAt("STAT", 3, "there are no steps of V")
			}
		case c.given.has(kInit):
			f.load(c.initU, c.initV)
			f.multiply(1 / visible.root())
			err = fit.course.enter(PhaseFactors)
		default:
			f.random(visible.x, c.seed+uint64(restart))
			if err = fit.course.enter(PhaseFactors); err == nil && c.start == StartSVD {
				err = f.decompose(visible, p)
			}
		}
		var m NMF
		if err == nil {
			m, err = fit.run(p, &c, start)
		} else {
			err = stoppedAt(0, err)
		}
		m.U, m.V, m.loss, m.missing = f.matU(), f.matV(), c.loss, c.missing
		if best == nil || m.objective(c.penalty) < best.objective(c.penalty) {
			best = &m
			if c.save != nil && c.restarts > 1 {
				past.best, _ = m.MarshalBinary()
			}
		}
		if err != nil {
			return best.outward(&visible.units), err
		}
	}
	return best.outward(&visible.units), nil
}

// outward brings a model of x' to the units of x, and says what is to be warned of.
func (m *NMF) outward(u *units) *NMF {
	m.Warnings = deadComponents(m.U, m.V)
	for _, f := range []Mat{m.U, m.V} {
		for i := range f.Data {
			f.Data[i] *= u.root()
		}
	}
	u.losses(m.loss, m.History)
	u.losses(m.loss, m.Validation)
	return m
}

// objective is what a fit is chosen by: its loss on held-out cells, else that on
// the visible ones with the penalty.
func (m *NMF) objective(penalty float64) float64 {
	if m.Validation == nil && penalty > 0 {
		penalty *= meanOf(m.U.Data) + meanOf(m.V.Data)
	} else {
		penalty = 0
	}
	return judged(m.History, m.Validation, m.Best) + penalty
}

func meanOf(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x / float64(len(v))
	}
	return s
}

func judged(history, validation []float64, best int) float64 {
	if len(validation) > 0 {
		history = validation
	}
	if best >= len(history) || best < 0 {
		return math.Inf(1)
	}
	return history[best]
}

// deadComponents reports the components that take no part any more.
func deadComponents(u, v Mat) (warnings []error) {
	for c := range u.Cols {
		topU, topV := 0.0, 0.0
		for i := range u.Rows {
			topU = max(topU, u.At(i, c))
		}
		for _, x := range v.Row(c) {
			topV = max(topV, x)
		}
		if topU == 0 || topV == 0 {
			warnings = append(warnings, &DataError{Row: -1, Col: c, Value: 0, Problem: "this component has died out: fewer would do, or another start"})
		}
	}
	return warnings
}

// Bounds of the entries of x: maxValue so that no sum over them overflows; under β <= 0,
// whose divergence is that of ratios, mostRatio from the largest to the least of them, and
// leastBeta below which 0, whose divergence goes as 1/β, is not taken.
const (
	maxValue  = 1e60
	mostRatio = 1e30

	leastInit, mostInit = 1e-50, 1e50 // of initial factors, in units of the root of x's

	leastBeta = 1e-9
)

// checkFit returns the cells that a fit sees, or what is wrong with its data.
func checkFit(x Mat, rank int, c *config) (*cells, error) {
	if err := x.check("x"); err != nil {
		return nil, err
	}
	if rank < 1 {
		return nil, &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least 1"}
	}
	if uint64(rank) > maxCells/uint64(x.Rows+x.Cols) {
		return nil, &OptionError{Option: "rank", Value: itoa(rank), Bound: "the factors of a " + x.size() + " matrix would need too much memory"}
	}
	if err := c.checkCells(x); err != nil {
		return nil, err
	}
	s, err := newCells(x, c)
	if err != nil {
		return nil, err
	}
	s.enter(c.loss, c.maps)
	c.enter(&s.units)
	if !c.given.has(kInit) {
		return s, nil
	}
	least, most := c.reach(rank, s.root())
	for _, f := range []struct {
		name       string
		m          Mat
		rows, cols int
	}{{"initial U", c.initU, x.Rows, rank}, {"initial V", c.initV, rank, x.Cols}} {
		if f.m.Rows != f.rows || f.m.Cols != f.cols {
			return nil, &ShapeError{What: f.name, Got: f.m.size(), Want: itoa(f.rows) + "×" + itoa(f.cols)}
		}
		if err := f.m.check(f.name); err != nil {
			return nil, err
		}
		for i := range f.m.Rows {
			for j, v := range f.m.Row(i) {
				if v-v != 0 || v < 0 {
					return nil, &DataError{Row: i, Col: j, Value: v, Problem: f.name + " must be finite and not negative"}
				}
				if v != 0 && (v < least || v > most) {
					return nil, &DataError{Row: i, Col: j, Value: v, Problem: f.name + " must be 0 or from " + ftoa(least) + " to " + ftoa(most)}
				}
			}
		}
	}
	bound, limit := 0.0, maxValue // of U V
	if !c.maps {
		limit *= s.root() * s.root()
	}
	for l := range rank {
		topU, topV := 0.0, 0.0
		for i := range x.Rows {
			topU = max(topU, c.initU.At(i, l))
		}
		for _, v := range c.initV.Row(l) {
			topV = max(topV, v)
		}
		if bound += float64(topU * topV); !(bound <= limit) {
			return nil, &DataError{Row: -1, Col: l, Value: topU, Problem: "the product of the initial factors must be at most " + ftoa(limit) + ": the largest of this column of U, by that of the row of V, is too much"}
		}
	}
	return s, nil
}

// reach returns the least and the largest entry other than 0 that initial factors may
// have: those which a fit can hold, and from which sums over them keep their range.
func (c *config) reach(rank int, root float64) (least, most float64) {
	if c.maps {
		most = elem.Exp(farthest(c.squash, rank))
		return 1 / most, most
	}
	return root * leastInit, root * mostInit
}

// checkCells reports the first value that a fit cannot have.
func (c *config) checkCells(x Mat) error {
	top := 0.0
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if err := c.checkCell(i, j, v); err != nil {
				return err
			}
			top = max(top, math.Abs(v))
		}
	}
	for i := 0; i < x.Rows && c.loss <= 0; i++ {
		for j, v := range x.Row(i) {
			if v < top/mostRatio {
				return &DataError{Row: i, Col: j, Value: v, Problem: "under this loss x must be within a factor of " + ftoa(mostRatio) + " of its largest value, " + ftoa(top)}
			}
		}
	}
	return nil
}

// checkCell reports a value that a fit cannot have at (i, j).
func (c *config) checkCell(i, j int, v float64) error {
	problem := ""
	switch {
	case v != v && !c.missing:
		problem = "x must be finite; WithMissingValues takes NaN as missing"
	case v-v != 0 && v == v:
		problem = "x must be finite"
	case v < 0 && !c.maps:
		problem = "x must not be negative in an NMF; FitQMF and FitQMFQ take any finite x WithLoss(Frobenius)"
	case v < 0 && c.loss != Frobenius:
		problem = "x must not be negative under this loss; WithLoss(Frobenius) takes any finite x"
	case v == 0 && c.loss < leastBeta:
		problem = "x must be positive under this loss"
	case v < 1/maxValue && c.loss <= 0:
		problem = "x must be at least " + ftoa(1/maxValue) + " under this loss, lest sums overflow"
	case math.Abs(v) > maxValue:
		problem = "x must be at most " + ftoa(maxValue) + " in magnitude, lest sums overflow"
	default:
		return nil
	}
	return &DataError{Row: i, Col: j, Value: v, Problem: problem}
}

// factors are U, d × k, and V, k × np: padded to whole blocks.
type factors struct {
	d, n, np, k int
	u, v        []float64
}

func newFactors(d, n, k int) *factors {
	np := kernel.Pad(n)
	return &factors{d: d, n: n, np: np, k: k, u: make([]float64, d*k), v: make([]float64, k*np)}
}

func (f *factors) rowU(i int) []float64 { return f.u[i*f.k : (i+1)*f.k] }
func (f *factors) rowV(c int) []float64 { return f.v[c*f.np : c*f.np+f.n] }

func (f *factors) matU() Mat {
	return Mat{Rows: f.d, Cols: f.k, Data: append([]float64(nil), f.u...), Stride: f.k}
}

func (f *factors) matV() Mat {
	m := NewMat(f.k, f.n)
	for c := range f.k {
		copy(m.Row(c), f.rowV(c))
	}
	return m
}

func (f *factors) load(u, v Mat) {
	for i := range f.d {
		copy(f.rowU(i), u.Row(i))
	}
	for c := range f.k {
		copy(f.rowV(c), v.Row(c))
	}
}

// multiply multiplies both factors.
func (f *factors) multiply(by float64) {
	for _, v := range [][]float64{f.u, f.v} {
		for i := range v {
			v[i] *= by
		}
	}
}

// random fills the factors with sqrt(mean/k) times uniform numbers on [1/2,3/2).
func (f *factors) random(x Mat, seed uint64) {
	mean, count := 0.0, 0
	for i := range x.Rows {
		s := 0.0
		for _, v := range x.Row(i) {
			if v == v {
				s += v / float64(x.Rows*x.Cols)
				count++
			}
		}
		mean += s
	}
	mean *= float64(x.Rows*x.Cols) / float64(count)
	scale := math.Sqrt(mean / float64(f.k))
	if scale == 0 {
		scale = 1
	}
	src := random.Split(seed, 0)
	for i := range f.u {
		f.u[i] = scale * (0.5 + src.Float64())
	}
	for c := range f.k {
		row := f.rowV(c)
		for j := range row {
			row[j] = scale * (0.5 + src.Float64())
		}
	}
}

// nmfChunks is the number of pieces that the rows are cut into: each has a
// partial sum for V, added in order, so the bits do not depend on the workers. Where
// an update takes less than a millisecond there are fewer, for sums cost time too.
const nmfChunks = 16

// nmfPieces is their number for a matrix of so many rows in groups, and so many
// products UV.
func nmfPieces(groups int, products float64) int {
	return min(nmfChunks, groups, max(int(min(products/(1<<18), nmfChunks)), nmfChunks/4))
}

// nmfFit is an NMF under way.
type nmfFit struct {
	*factors
	*cells
	loss   Loss
	plain  bool // KL of whole rows: the denominators are sums of factors
	pieces []nmfPart
	keep   *factors // the best on held-out cells, of a fit that goes on
	work   []nmfScratch
	// In the plain case: V and its numerators lie in tiles of some samples, k rows of
	// each; denU has the denominators of U, sums over V, for as many rows as go together.
	tiles   int
	width   int // of the widest
	tiled   []float64
	denU    []float64
	addU    float64 // what the penalty adds to the denominators
	addV    float64
	updateU bool
	course  course
	pool    *pool.Pool

	restart   int
	bestSoFar []byte    // a file of the best of the restarts before
	data      [2]uint64 // fingerprints of x and given factors
}

// nmfPart is what a piece of the rows adds to the update of V and to the losses.
type nmfPart struct{ num, den, sum, losses []float64 }

// sweepRows is the number of rows that are taken through V together, plainRows that in
// the plain case, tileNumbers about the size of a tile of V there, tileSamples its least
// width: shorter sums would cost more to join than V to fetch.
const (
	sweepRows   = 4
	plainRows   = 16
	tileNumbers = 3072
	tileSamples = 128
)

// nmfScratch has room for sweepRows rows; in the plain case for plainRows of x, and of
// a tile.
type nmfScratch struct {
	x, w, num, den, g, h []float64
	observed             []bool
	seen                 [sweepRows][]bool // of each row; nil: all
}

func newNMFFit(way course, p *pool.Pool, f *factors, s *cells, c *config) *nmfFit {
	k, np := f.k, f.np
	fit := &nmfFit{factors: f, cells: s, loss: c.loss, plain: c.loss == KL && !s.partial, course: way, pool: p,
		pieces: make([]nmfPart, nmfPieces((f.d+plainRows-1)/plainRows, float64(f.d)*float64(f.n)*float64(f.k))), work: make([]nmfScratch, p.Workers()), denU: make([]float64, plainRows*k),
		tiles: (np*k + tileNumbers - 1) / tileNumbers}
	fit.tiles = min(fit.tiles, max(np/tileSamples, 1))
	fit.width = (np/kernel.Lanes + fit.tiles - 1) / fit.tiles * kernel.Lanes
	for i := range fit.pieces {
		fit.pieces[i] = nmfPart{num: make([]float64, k*np), sum: make([]float64, k), losses: make([]float64, 2)}
		if !fit.plain {
			fit.pieces[i].den = make([]float64, k*np)
		}
	}
	for i := range fit.work {
		if fit.plain {
			v := func(n int) []float64 { return make([]float64, plainRows*n) }
			fit.work[i] = nmfScratch{x: v(np), num: v(fit.width), g: v(k), h: v(k)}
			continue
		}
		v := func(n int) []float64 { return make([]float64, sweepRows*n) }
		fit.work[i] = nmfScratch{x: v(np), w: v(np), num: v(np), den: v(np), g: v(k), h: v(k), observed: make([]bool, sweepRows*f.n)}
	}
	if fit.plain {
		fit.tiled = make([]float64, k*np)
	}
	// (1/N) ΣΔ + λ (mean U + mean V), N the visible cells, has the denominators
	// of the updates with these added.
	fit.addU = c.penalty * float64(s.visible) / float64(f.d) / float64(k)
	fit.addV = c.penalty * float64(s.visible) / float64(f.n) / float64(k)
	return fit
}

// shares fills num = x w^{β-2} and den = w^{β-1} of some rows, both 0 where a cell is
// hidden.
func (f *nmfFit) shares(ws *nmfScratch, rows int) {
	for r := range rows {
		lo, hi := r*f.np, (r+1)*f.np
		num, den := ws.num[lo:hi], ws.den[lo:hi]
		f.loss.parts(num, den, ws.x[lo:hi], ws.w[lo:hi], f.loss.least())
		for j, o := range ws.seen[r] {
			if !o {
				num[j], den[j] = 0, 0
			}
		}
		clear(num[f.n:]) // padding
		clear(den[f.n:])
	}
}

// sweep finishes the update of U in a piece of the rows and sums its part of the
// next update of V.
func (f *nmfFit) sweep(worker, piece int) {
	ws, pt := &f.work[worker], &f.pieces[piece]
	clear(pt.num)
	clear(pt.den)
	clear(pt.sum)
	clear(pt.losses)
	k, np := f.k, f.np
	groups := (f.d + plainRows - 1) / plainRows
	begin, end := piece*groups/len(f.pieces)*plainRows, min((piece+1)*groups/len(f.pieces)*plainRows, f.d)
	for i := begin; i < end && f.plain; i += plainRows {
		if f.pool.Err() != nil {
			return
		}
		f.sweepPlain(ws, pt, i, min(plainRows, end-i))
	}
	for i := begin; i < end && !f.plain; i += sweepRows {
		if f.pool.Err() != nil {
			return
		}
		rows := min(sweepRows, end-i)
		u, w, num, den := f.u[i*k:(i+rows)*k], ws.w[:rows*np], ws.num[:rows*np], ws.den[:rows*np]
		for r := range rows {
			ws.seen[r] = f.cells.load(ws.x[r*np:(r+1)*np], ws.observed[r*f.n:(r+1)*f.n], i+r)
		}
		if f.updateU {
			kernel.CombineRows(w, u, f.v, rows)
			f.shares(ws, rows)
			g, h := ws.g[:rows*k], ws.h[:rows*k]
			kernel.DotsRows(g, f.v, num, rows)
			kernel.DotsRows(h, f.v, den, rows)
			for t := range u {
				u[t] *= f.loss.step(g[t], h[t]+f.addU)
			}
		}
		kernel.CombineRows(w, u, f.v, rows)
		f.shares(ws, rows)
		kernel.AccumulateRows(pt.num, u, num, rows)
		kernel.AccumulateRows(pt.den, u, den, rows)
		for r := range rows {
			lo, hi := r*np, r*np+f.n
			pt.losses[0] += f.loss.sum(ws.x[lo:hi], w[lo:hi], num[lo:hi], ws.seen[r], f.loss.least())
			pt.losses[1] += f.heldLoss(f.loss, w[lo:hi], i+r, f.loss.least())
		}
	}
}

// tile returns the samples of tile t.
func (f *nmfFit) tile(t int) (lo, hi int) {
	blocks := f.np / kernel.Lanes
	return t * blocks / f.tiles * kernel.Lanes, (t + 1) * blocks / f.tiles * kernel.Lanes
}

// sweepPlain takes up to plainRows rows through a sweep in the plain case, tile by
// tile, so that a ratio never leaves the first cache and V comes to it once. X is read
// where it lies, but where its rows end within a block.
func (f *nmfFit) sweepPlain(ws *nmfScratch, pt *nmfPart, i, rows int) {
	k, np := f.k, f.np
	u := f.u[i*k : (i+rows)*k]
	x, stride := f.x.Data[i*f.x.Stride:], f.x.Stride
	if np > f.n {
		for r := range rows {
			copy(ws.x[r*np:(r+1)*np], f.x.Row(i+r))
		}
		x, stride = ws.x, np
	}
	if f.updateU {
		g, h := ws.g[:rows*k], ws.h[:rows*k]
		for t := range f.tiles {
			lo, hi := f.tile(t)
			r, v := ws.num[:rows*(hi-lo)], f.tiled[k*lo:k*hi]
			kernel.QuotientRows(r, u, v, x[lo:], stride, rows, leastT)
			if t == 0 {
				kernel.DotsRows(g, v, r, rows)
				continue
			}
			kernel.DotsRows(h, v, r, rows)
			for t := range g {
				g[t] += h[t]
			}
		}
		kernel.Ratio(g, g, f.denU[:rows*k], leastSum)
		for t := range u {
			u[t] *= g[t]
		}
	}
	loss := 0.0
	for t := range f.tiles {
		lo, hi := f.tile(t)
		r := ws.num[:rows*(hi-lo)]
		loss += kernel.QuotientRows(r, u, f.tiled[k*lo:k*hi], x[lo:], stride, rows, leastT)
		loss += kernel.LogSumRows(r, x[lo:], stride, rows)
		kernel.AccumulateRows(pt.num[k*lo:k*hi], u, r, rows)
	}
	pt.losses[0] += max(loss, 0) // it is one; rounding may say otherwise of a perfect fit
	for ; len(u) > 0; u = u[k:] {
		for c := range pt.sum {
			pt.sum[c] += u[c]
		}
	}
}

// updateV joins the pieces and updates row c of V.
func (f *nmfFit) updateV(worker, c int) {
	if f.plain {
		f.updatePlain(&f.work[worker], c)
		return
	}
	lo, hi := c*f.np, (c+1)*f.np
	row, num, den := f.v[lo:hi], f.pieces[0].num[lo:hi], f.pieces[0].den[lo:hi]
	for i := range f.pieces[1:] {
		add(num, f.pieces[i+1].num[lo:hi])
		add(den, f.pieces[i+1].den[lo:hi])
	}
	for j := range row[:f.n] {
		row[j] *= f.loss.step(num[j], den[j]+f.addV)
	}
}

// updatePlain is updateV in the plain case, where num and V have tiles.
func (f *nmfFit) updatePlain(ws *nmfScratch, c int) {
	sum := 0.0
	for i := range f.pieces {
		sum += f.pieces[i].sum[c]
	}
	row, den := f.v[c*f.np:(c+1)*f.np], ws.num[:f.width]
	for j := range den {
		den[j] = sum + f.addV
	}
	for t := range f.tiles {
		lo, hi := f.tile(t)
		from, to := f.k*lo+c*(hi-lo), f.k*lo+(c+1)*(hi-lo)
		num, some := f.pieces[0].num[from:to], row[lo:hi]
		for i := range f.pieces[1:] {
			add(num, f.pieces[i+1].num[from:to])
		}
		kernel.Ratio(num, num, den[:hi-lo], leastSum)
		for j, r := range num {
			some[j] *= r
		}
	}
	f.layTiles(c)
}

// layTiles takes row c of V over to where the plain case reads it.
func (f *nmfFit) layTiles(c int) {
	row := f.v[c*f.np : (c+1)*f.np]
	for t := range f.tiles {
		lo, hi := f.tile(t)
		copy(f.tiled[f.k*lo+c*(hi-lo):f.k*lo+(c+1)*(hi-lo)], row[lo:hi])
	}
	den := kernel.Sum(row) + f.addU
	for r := range plainRows {
		f.denU[r*f.k+c] = den
	}
}

// losses returns the mean divergences of the visible and the held-out cells.
func (f *nmfFit) losses() (seen, held float64) {
	for i := range f.pieces {
		seen += f.pieces[i].losses[0]
		held += f.pieces[i].losses[1]
	}
	return seen / float64(f.visible), held / float64(max(f.heldOut, 1))
}

// run makes c.epochs updates of V and U, from the given state on where there is
// one, and leaves the best factors.
func (f *nmfFit) run(p *pool.Pool, c *config, from *saved) (m NMF, err error) {
	sweep, updateV := f.sweep, f.updateV
	judge := watch{patience: c.patience}
	keep := f.keep
	first := 0
	m.History = make([]float64, 0, min(c.epochs, 1000)+1)
	if f.held != nil {
		m.Validation = make([]float64, 0, min(c.epochs, 1000)+1)
	}
	if from != nil {
		m.History, m.Validation, judge, first = from.history, from.validation, from.judge, from.epoch+1
		if judge.over(from.epoch) {
			first = c.epochs + 1
		}
	}
	note := func(epoch int) (stop bool) {
		seen, held := f.losses()
		m.History = append(m.History, seen)
		if f.held != nil {
			m.Validation = append(m.Validation, held)
			seen = held
		} else if c.penalty > 0 {
			// The padding of V is 0.
			seen += float64(c.penalty * (meanOf(f.u) + float64(meanOf(f.v)*float64(f.np)/float64(f.n))))
		}
		better, stop := judge.see(epoch, seen)
		if better && f.held != nil {
			if keep == nil {
				keep = newFactors(f.d, f.n, f.k)
			}
			copy(keep.u, f.u)
			copy(keep.v, f.v)
		}
		return stop
	}
	if f.plain {
		for c := range f.k {
			f.layTiles(c)
		}
	}
	if from != nil && first <= c.epochs {
		p.Do(len(f.pieces), sweep) // the sums that the next update of V takes
	}
	for epoch := first; epoch <= c.epochs; epoch++ {
		if err = p.Err(); err == nil { // before V moves: the factors are those of the last entry
			if epoch > 0 {
				p.Do(f.k, updateV)
				f.updateU = true
			}
			p.Do(len(f.pieces), sweep)
			err = p.Err()
		}
		if err != nil {
			err = stoppedAt(max(epoch-1, 0), err)
			break
		}
		stop := note(epoch)
		if epoch > 0 {
			if err = f.course.epoch(epoch, c.epochs, m.History[epoch]); err != nil {
				err = stoppedAt(epoch, err)
				break
			}
		}
		if epoch > 0 && c.due(epoch, stop || epoch == c.epochs) {
			if err = f.checkpoint(c, &m, judge, epoch, keep); err != nil {
				err = stoppedAt(epoch, err)
				break
			}
		}
		if stop {
			break
		}
	}
	m.Best = max(len(m.History)-1, 0)
	if keep != nil {
		copy(f.u, keep.u)
		copy(f.v, keep.v)
		m.Best = judge.bestEpoch
	}
	return m, err
}

// add adds from to to.
func add(to, from []float64) { kernel.Accumulate(to[:len(from)], []float64{1}, from) }

// Reconstruct returns UV, d × n.
func (m *NMF) Reconstruct() Mat {
	out, _ := m.reconstruct(context.Background())
	return out
}

func (m *NMF) reconstruct(ctx context.Context) (Mat, error) {
	out := NewMat(m.U.Rows, m.V.Cols)
	for i := range out.Rows {
		if err := ctx.Err(); err != nil {
			return Mat{}, stoppedAt(0, err)
		}
		product(out.Row(i), m.U.Row(i), m.V)
	}
	return out, nil
}

// product fills w = u V.
func product(w, u []float64, v Mat) {
	clear(w)
	for c, uc := range u {
		for j, vc := range v.Row(c) {
			w[j] += float64(uc * vc)
		}
	}
}

// Loss returns the mean divergence of x, d × n, from Reconstruct(), under the
// loss that was fitted. Where the fit was WithMissingValues, NaN cells are left
// out.
func (m *NMF) Loss(x Mat) (float64, error) { return m.bounds().meanLoss(x, m.Reconstruct()) }
