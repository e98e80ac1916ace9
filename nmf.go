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
	"io"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// NMF is a fitted X ≈ UV. It is not changed by its methods.
type NMF struct{ Factorisation }

func nmfDefaults() config {
	return config{settings: settings{epochs: 20, seed: 1, loss: divergence.KL, start: StartUniform, updates: UpdatesNewton}, restarts: 1}
}

// settleNMF chooses the updates by the loss where they are left open, and the number of
// epochs by the updates.
func (c *config) settleNMF() error {
	newton := c.loss == divergence.KL || c.loss == divergence.Frobenius
	if !newton && !c.given.Has(option.Updates) {
		c.updates = UpdatesMultiplicative
	}
	if !newton && c.updates == UpdatesNewton {
		return &OptionError{Option: option.Updates.String(), Value: c.updates.String(), Bound: "takes the losses KL and Frobenius; others have UpdatesMultiplicative"}
	}
	if c.updates == UpdatesMultiplicative && !c.given.Has(option.Epochs) {
		c.epochs = 200
	}
	return nil
}

// FitNMF factorises x, d features × n samples, finite, non-negative and at most 1e60,
// into U V of the given rank k >= 1, which may exceed d and n. x may be in any unit;
// negative values need a [FitQMF] or [FitQMFQ] under [WithLoss]([Frobenius]).
//
// Under [KL], the default, and [Frobenius] it goes down by Newton's method with bounds and
// momentum (newton.go), whose epoch reads x twice; under other losses, and
// WithUpdates([UpdatesMultiplicative]), by the multiplicative updates of the textbooks. The
// loss, with its penalty, never rises. Entries of the factors may be 0; under KL with
// cells hidden they are not let fall below a hundredth of the mean of their component, so that
// cells which the fit has not seen are not held impossible.
//
// Defaults: KL, 20 epochs (200 of multiplicative updates), seed 1, StartUniform (factors
// uniform on sqrt(mean x/k)·[1/2,3/2)), no penalty, no patience, no validation, one start. To go
// on until the loss stands still, WithEpochs(1000) and [WithPatience](3).
// [WithStart] takes StartUniform and StartSVD. Errors: [*DataError],
// [*ShapeError], [*OptionError]; when ctx ends or a progress function fails, the
// model so far with an error that wraps it. A component that has died out, all
// of its U or V zero, is a warning.
//
// Cost: 18dnk flops an epoch, under Frobenius without missing cells 6dnk; memory 40kn + 4dk
// numbers beside x. Of multiplicative updates 8dnk flops, 12dnk where cells are missing or the
// loss is not KL; memory 18kn + dk numbers (33kn then).
func FitNMF(ctx context.Context, x Mat, rank int, opts ...FitOption) (*NMF, error) {
	c := nmfDefaults()
	t, err := open(kindNMF, option.FitNMF, &c, x, rank, opts)
	if err != nil {
		return nil, err
	}
	if c.start != StartUniform && c.start != StartSVD {
		return nil, &OptionError{Option: option.Start.String(), Value: c.start.String(), Bound: "FitNMF starts from StartUniform or StartSVD"}
	}
	if err := c.settleNMF(); err != nil {
		return nil, err
	}
	m, err := t.drive(ctx, nmfChunks, new(NMF), func(seed uint64, way course) algorithm {
		f := newNMFFit(way, t.pool, newFactors(x.Rows, x.Cols, rank), t.cells, c.loss, c.penalty)
		f.start = func() error { return f.startFactors(&c, seed) }
		if c.updates == UpdatesNewton {
			return newNewtonFit(f)
		}
		return f
	})
	nmf, _ := m.(*NMF)
	return nmf, err
}

func (m *NMF) common() *Factorisation { return &m.Factorisation }

// outward brings a model of x' to the units of x, and says what is to be warned of.
func (m *NMF) outward(u *units) {
	m.Warnings = deadComponents(m.U, m.V)
	for _, f := range []Mat{m.U, m.V} {
		for i := range f.Data {
			f.Data[i] *= u.root()
		}
	}
	u.losses(m.loss, m.History)
	u.losses(m.loss, m.Validation)
}

// objective is what a fit is chosen by: its loss on held-out cells, else that on
// the visible ones with the penalty.
func (m *NMF) objective(penalty float64) float64 {
	if m.Validation == nil && penalty > 0 {
		penalty *= meanOf(m.U.Data) + meanOf(m.V.Data)
	} else {
		penalty = 0
	}
	return m.judged() + penalty
}

func meanOf(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x / float64(len(v))
	}
	return s
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

// nmfPieces is their number for a matrix of so many rows in groups, and so many
// products UV.
func nmfPieces(groups int, products float64) int {
	return min(nmfChunks, groups, max(int(min(products/(1<<18), nmfChunks)), nmfChunks/4))
}

// nmfFit is an NMF under way.
type nmfFit struct {
	*factors
	*cells
	loss    divergence.Loss
	penalty float64
	plain   bool         // KL of whole rows: the denominators are sums of factors
	start   func() error // fills the factors; nil: they are there
	course  course
	pool    *pool.Pool
	best    *factors // on held-out cells; nil: there are none
	pieces  []nmfPart
	work    []nmfScratch
	tiles   nmfTiles // in the plain case
	updateU bool     // the next sweep finishes the update of U: false in the first
	addU    float64  // what the penalty adds to the denominators
	addV    float64

	sweeps, updates func(worker, piece int) // sweep and updateV, made once
}

// nmfTiles is what the plain case reads V from: tiles of some samples, k rows of each.
type nmfTiles struct {
	count int
	width int       // of the widest
	v     []float64 // V, tile by tile; its numerators lie alike
	denU  []float64 // the denominators of U, sums over V, for as many rows as go together
}

// nmfPart is what a piece of the rows adds to the update of V and to the losses.
type nmfPart struct{ num, den, sum, losses []float64 }

// nmfScratch has room for sweepRows rows; in the plain case for plainRows of x, and of
// a tile.
type nmfScratch struct {
	x, w, num, den, g, h []float64
	observed             []bool
	seen                 [sweepRows][]bool // of each row; nil: all
}

func newNMFFit(way course, p *pool.Pool, f *factors, s *cells, loss divergence.Loss, penalty float64) *nmfFit {
	k, np := f.k, f.np
	fit := &nmfFit{factors: f, cells: s, loss: loss, penalty: penalty, plain: loss == divergence.KL && !s.partial, course: way, pool: p,
		pieces: make([]nmfPart, nmfPieces((f.d+plainRows-1)/plainRows, float64(f.d)*float64(f.n)*float64(f.k))), work: make([]nmfScratch, p.Workers())}
	fit.sweeps, fit.updates = fit.sweep, fit.updateV
	tiles := min((np*k+tileNumbers-1)/tileNumbers, max(np/tileSamples, 1))
	fit.tiles = nmfTiles{count: tiles, width: (np/kernel.Lanes + tiles - 1) / tiles * kernel.Lanes, denU: make([]float64, plainRows*k)}
	for i := range fit.pieces {
		fit.pieces[i] = nmfPart{num: make([]float64, k*np), sum: make([]float64, k), losses: make([]float64, 2)}
		if !fit.plain {
			fit.pieces[i].den = make([]float64, k*np)
		}
	}
	for i := range fit.work {
		if fit.plain {
			v := func(n int) []float64 { return make([]float64, plainRows*n) }
			fit.work[i] = nmfScratch{x: v(np), num: v(fit.tiles.width), g: v(k), h: v(k)}
			continue
		}
		v := func(n int) []float64 { return make([]float64, sweepRows*n) }
		fit.work[i] = nmfScratch{x: v(np), w: v(np), num: v(np), den: v(np), g: v(k), h: v(k), observed: make([]bool, sweepRows*f.n)}
	}
	if fit.plain {
		fit.tiles.v = make([]float64, k*np)
	}
	// (1/N) ΣΔ + λ (mean U + mean V), N the visible cells, has the denominators
	// of the updates with these added.
	fit.addU = penalty * float64(s.visible) / float64(f.d) / float64(k)
	fit.addV = penalty * float64(s.visible) / float64(f.n) / float64(k)
	return fit
}

// shares fills num = x w^{β-2} and den = w^{β-1} of some rows, both 0 where a cell is
// hidden.
func (f *nmfFit) shares(ws *nmfScratch, rows int) {
	for r := range rows {
		lo, hi := r*f.np, (r+1)*f.np
		num, den := ws.num[lo:hi], ws.den[lo:hi]
		f.loss.Terms(num, den, ws.x[lo:hi], ws.w[lo:hi], f.loss.Least())
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
			ws.seen[r] = f.cells.readRow(ws.x[r*np:(r+1)*np], ws.observed[r*f.n:(r+1)*f.n], i+r)
		}
		if f.updateU {
			kernel.CombineRows(w, u, f.v, rows)
			f.shares(ws, rows)
			g, h := ws.g[:rows*k], ws.h[:rows*k]
			kernel.DotsRows(g, f.v, num, rows)
			kernel.DotsRows(h, f.v, den, rows)
			for t := range u {
				u[t] *= f.loss.Step(g[t], h[t]+f.addU)
			}
		}
		kernel.CombineRows(w, u, f.v, rows)
		f.shares(ws, rows)
		kernel.AccumulateRows(pt.num, u, num, rows)
		kernel.AccumulateRows(pt.den, u, den, rows)
		for r := range rows {
			lo, hi := r*np, r*np+f.n
			pt.losses[0] += f.loss.Sum(ws.x[lo:hi], w[lo:hi], num[lo:hi], ws.seen[r], f.loss.Least())
			pt.losses[1] += f.heldLoss(f.loss, w[lo:hi], i+r, f.loss.Least())
		}
	}
}

// tile returns the samples of tile t.
func (f *nmfFit) tile(t int) (lo, hi int) {
	blocks := f.np / kernel.Lanes
	return t * blocks / f.tiles.count * kernel.Lanes, (t + 1) * blocks / f.tiles.count * kernel.Lanes
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
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			r, v := ws.num[:rows*(hi-lo)], f.tiles.v[k*lo:k*hi]
			kernel.QuotientRows(r, u, v, x[lo:], stride, rows, divergence.LeastT)
			if t == 0 {
				kernel.DotsRows(g, v, r, rows)
				continue
			}
			kernel.DotsRows(h, v, r, rows)
			for t := range g {
				g[t] += h[t]
			}
		}
		kernel.Ratio(g, g, f.tiles.denU[:rows*k], divergence.LeastSum)
		for t := range u {
			u[t] *= g[t]
		}
	}
	loss := 0.0
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		r := ws.num[:rows*(hi-lo)]
		loss += kernel.QuotientRows(r, u, f.tiles.v[k*lo:k*hi], x[lo:], stride, rows, divergence.LeastT)
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
		row[j] *= f.loss.Step(num[j], den[j]+f.addV)
	}
}

// updatePlain is updateV in the plain case, where num and V have tiles.
func (f *nmfFit) updatePlain(ws *nmfScratch, c int) {
	sum := 0.0
	for i := range f.pieces {
		sum += f.pieces[i].sum[c]
	}
	row, den := f.v[c*f.np:(c+1)*f.np], ws.num[:f.tiles.width]
	for j := range den {
		den[j] = sum + f.addV
	}
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		from, to := f.k*lo+c*(hi-lo), f.k*lo+(c+1)*(hi-lo)
		num, some := f.pieces[0].num[from:to], row[lo:hi]
		for i := range f.pieces[1:] {
			add(num, f.pieces[i+1].num[from:to])
		}
		kernel.Ratio(num, num, den[:hi-lo], divergence.LeastSum)
		for j, r := range num {
			some[j] *= r
		}
	}
	f.layTiles(c)
}

// layAll takes V over to where the plain case reads it.
func (f *nmfFit) layAll() {
	if f.plain {
		for c := range f.k {
			f.layTiles(c)
		}
	}
}

// layTiles takes row c of V over to where the plain case reads it.
func (f *nmfFit) layTiles(c int) {
	row := f.v[c*f.np : (c+1)*f.np]
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		copy(f.tiles.v[f.k*lo+c*(hi-lo):f.k*lo+(c+1)*(hi-lo)], row[lo:hi])
	}
	den := kernel.Sum(row) + f.addU
	for r := range plainRows {
		f.tiles.denU[r*f.k+c] = den
	}
}

// startFactors fills U and V.
func (f *nmfFit) startFactors(c *config, seed uint64) error {
	if c.given.Has(option.Init) {
		f.factors.copyFrom(c.initU, c.initV)
		f.multiply(1 / f.root())
		return f.course.enter(PhaseFactors)
	}
	f.random(f.cells.x, seed)
	err := f.course.enter(PhaseFactors)
	if err == nil && c.start == StartSVD {
		err = f.decompose(f.cells, f.pool)
	}
	return err
}

// begin makes the first sweep over the factors of the start.
func (f *nmfFit) begin() (losses, error) {
	if f.start != nil { // else the factors are there
		if err := f.start(); err != nil {
			return losses{}, err
		}
	}
	f.layAll()
	f.pool.Do(len(f.pieces), f.sweeps)
	return f.losses(0, f.u, f.v), f.pool.Err()
}

// epoch is the updates of V and of U. It looks whether to go on before V moves: the
// factors are those of the last losses.
func (f *nmfFit) epoch(e int) (losses, error) {
	if err := f.pool.Err(); err != nil {
		return losses{}, err
	}
	f.pool.Do(f.k, f.updates)
	f.updateU = true
	f.pool.Do(len(f.pieces), f.sweeps)
	return f.losses(e+1, f.u, f.v), f.pool.Err()
}

// losses returns those of the factors u and v, whose order in v is free, summed by the
// last sweep.
func (f *nmfFit) losses(epoch int, u, v []float64) losses {
	l := losses{of: epoch}
	for i := range f.pieces {
		l.visible += f.pieces[i].losses[0]
		l.held += f.pieces[i].losses[1]
	}
	l.visible /= float64(f.visible)
	l.held /= float64(max(f.heldOut, 1))
	if f.penalty > 0 { // the padding of V is 0
		l.penalty = float64(f.penalty * (meanOf(u) + float64(meanOf(v)*float64(f.np)/float64(f.n))))
	}
	return l
}

func (f *nmfFit) keep() {
	if f.best == nil {
		f.best = newFactors(f.d, f.n, f.k)
	}
	copy(f.best.u, f.u)
	copy(f.best.v, f.v)
}

// model hands the factors over. Every entry of the journal is exact.
func (f *nmfFit) model(j *journal) (fitted, error) {
	best := max(len(j.history)-1, 0)
	if f.best != nil {
		copy(f.u, f.best.u)
		copy(f.v, f.best.v)
		best = j.bestEpoch
	}
	return &NMF{Factorisation{U: f.matU(), V: f.matV(), History: j.history, Validation: j.validation, Best: best, loss: f.loss, missing: f.cells.missing}}, nil
}

func (f *nmfFit) snapshot() snapshot {
	real := []section.Part{section.Positive(f.u), section.Positive(f.v)}
	if f.best != nil {
		real = append(real, section.Positive(f.best.u), section.Positive(f.best.v))
	}
	return snapshot{real: real}
}

// resume takes the factors of a checkpoint, and makes the sums that the next update of V
// takes.
func (f *nmfFit) resume(file *file, s *saved) error {
	if err := f.restore(file, s, f.snapshot); err != nil {
		return err
	}
	f.layAll()
	f.pool.Do(len(f.pieces), f.sweeps)
	return nil
}

// restore fills what a snapshot lists.
func (f *nmfFit) restore(file *file, s *saved, list func() snapshot) error {
	if f.held != nil {
		f.best = newFactors(f.d, f.n, f.k)
	}
	if _, err := file.restore(list().real, 0); err != nil {
		return err
	}
	if s.steps != 0 {
		return file.failAt("STAT", 3, "there are no steps of V")
	}
	return nil
}

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

// Loss returns the mean divergence of x, d × n, from Reconstruct(), under the
// loss that was fitted. Where the fit was WithMissingValues, NaN cells are left
// out.
func (m *NMF) Loss(x Mat) (float64, error) { return m.bounds().meanLoss(x, m.Reconstruct()) }

// MarshalBinary returns the model as a file.
func (m *NMF) MarshalBinary() ([]byte, error) {
	return section.Encode(kindNMF, m.sections(0, 0)), nil
}

// UnmarshalBinary makes m the model in data, or returns a [*FormatError] and
// leaves m as it was.
func (m *NMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kindNMF)
	if err != nil {
		return err
	}
	var n NMF
	if err := f.common(&n.Factorisation, 0); err != nil {
		return err
	}
	*m = n
	return nil
}

// WriteTo writes the model as a file.
func (m *NMF) WriteTo(w io.Writer) (int64, error) { return writeTo(w, m.MarshalBinary) }

// ReadFrom reads a model until the end of r.
func (m *NMF) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, m.UnmarshalBinary) }

// bounds returns the options that say which values a matrix may have.
func (m *NMF) bounds() *config { return &config{settings: settings{loss: m.loss, missing: m.missing}} }

// Goodness says for every feature how well the model fits x, d × n, the matrix
// that was fitted or another one of the same samples. Where the fit was
// [WithMissingValues], NaN cells are left out. Errors: [*ShapeError], [*DataError];
// a row without an observed cell is one. Cost: that of Reconstruct and 2dn
// divergences.
func (m *NMF) Goodness(x Mat) ([]Goodness, error) {
	return m.bounds().goodness(x, m.Reconstruct())
}

// TopFeatures returns, for each of the k components, the count features that it
// stands for most, the first of equal ones first. A feature's value is s_ic e_i,
// its share times what the model explains of it ([NMF.Shares], [Goodness]), 0
// where that is negative: from 0 to 1, whatever scale the feature has. x and
// errors are those of [NMF.Goodness]; a count below 0 is an [*OptionError], and more than d
// are d.
func (m *NMF) TopFeatures(x Mat, count int) ([][]Top, error) { return featuresOf(m, x, count) }
