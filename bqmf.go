package quantmf

// This file holds Bayesian quantile matrix factorisation, X ≈ T(UV) with signed
// factors, noise by row and by sample, and the uncertainty of every cell:
//
//	g_i(x_ij) ~ N(u_i·v_j, 1/(τ_i ρ_j)),   v_j ~ N(0, I),   u_i ~ N(0, diag(1/α)),
//
// by variational Bayes (internal/posterior). The scales g_i are made first, from the visible values of the
// row alone. The maps back, T_i, are learnt last, from leave-one-out predictions (internal/curve). Two
// corrections are added to the mean u_i·v_j of a cell. Where the noise of two rows is correlated, as the
// noise of pixels that touch, the residuals of one row predict cells of the other (near.go of
// internal/posterior). Where the residuals of a row are similar at samples that are alike, as where samples
// come in kinds, they predict the cells of the row at other such samples (alike.go there). α takes components
// away that the data do not ask for, so the rank is an upper bound. The model is fitted for two strengths γ
// of α, and the fit whose leave-one-out predictions have the smaller loss is returned. The second fit is
// given up where it is behind.

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/curve"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/journal"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/kinds"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/posterior"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/svd"
)

// BQMF is a fitted X ≈ T(UV) with its uncertainty. It is not changed by its methods
// and may be used by several goroutines at once.
type BQMF struct {
	// U and V are means of the posterior, of either sign, components by falling
	// Relevance, the entry of each row of V that is largest in magnitude positive. UV is
	// on the scale of the rows' g_i, of mean 0 and deviation 1. History is no loss: the
	// negative lower bound of the evidence of the visible cells on the scale of UV, given
	// the noise and the relevance, in nats a cell; entry 0 is that of no component at all.
	// Steps of U and V never raise it; those of noise and relevance may, by little.
	// Warnings has one entry where UV still moved when the epochs ended.
	Factorisation
	// Relevance is the mean over all cells of the square of a component's part of UV:
	// its share of the variance of a row.
	Relevance []float64
	// RowNoise (d) and SampleNoise (n): the deviation of the noise of cell (i, j), on the scale of UV, is
	// RowNoise_i SampleNoise_j; the samples' have geometric mean 1. A row near 1 is hardly better predicted
	// by the factors than by its mean. Two corrections may still predict it: from the residuals of rows whose
	// noise is correlated with that of the row, and from the row's own residuals at samples that are alike. 0
	// for a constant row.
	RowNoise, SampleNoise []float64
	// Strength is γ, 1 or 1/2: how far each component has a relevance of its own. At 1/2 the prior of U draws
	// the relevance of each component to the mean of all, with the weight of 30 rows; at 1 it does not.
	Strength float64
	// LeaveOneOut is an estimate of the loss on cells that nobody has seen: the mean divergence of the
	// visible cells from what the model says of each without it. Of the factor by which the two corrections
	// make that smaller only the square root counts, because the corrections were chosen by the same cells.
	LeaveOneOut float64

	curves []curve.Curve
	post   *posterior.Posterior
}

// strengths are the values of γ, in the order in which they are fitted. At γ = 1/2 the relevance of each
// component is drawn to that of all by 30 pseudo-rows (internal/posterior).
var strengths = [2]float64{0.5, 1}

// Two strengths race. The loss that decides about giving up is the leave-one-out loss of the factors alone,
// over some of the rows (glance). The first strength sets a mark: its loss after raceEpochs[0] epochs or at
// its end, whichever is the larger. The second strength is given up after one of raceEpochs if its loss is
// then above the mark. The loss after raceEpochs[0] is part of the mark because losses still fall at that
// time; the loss at the end is part of it because some fits get worse as they settle.
//
// The first epochs count, where others on the completed matrix stand for them (internal/posterior).
//
// There is no mark, and both strengths are fitted to their ends, where the two corrections leave less than
// raceLeft of the first strength's loss: the loss of the factors alone then does not tell which strength is
// better. WithValidation has no mark either.
var raceEpochs = [2]int{6, 12}

func bqmfDefaults() config {
	return config{settings: settings{tolerance: 3e-3, epochs: 60, seed: 1, loss: divergence.KL},
		restarts: len(strengths)}
}

// FitBQMF fits x, d features × n samples of any finite values, by T(UV) with signed factors and one
// increasing map T_i for each feature. The number k of components is at most rank and at most min(d,n)-1, but
// at least 1; rank 0 stands for min(50, d-1, n-1). Components that the data do not ask for fade, so the rank
// need not be chosen.
//
// Defaults: KL, Frobenius where x has negative values; at most 60 epochs, ended when UV moves by less than
// 3e-3 of itself ([WithTolerance]); no validation. The loss decides how the maps are learnt, and which of two
// strengths of relevance is taken. The second strength is given up where it is behind after six or twelve
// epochs. Under [WithValidation] the maps are learnt after every epoch, which takes about as long. Nothing is
// random but the cells held out. Errors: [*DataError], [*ShapeError], [*OptionError]; when ctx ends or a
// progress function fails, the model so far with an error that wraps it.
//
// From 64 rows and columns on, with four fifths of the cells seen, each strength begins with at most 20
// epochs of 4dnk flops on the completed matrix in place of its first six. Cost of an epoch: 4dnk flops, 2k²
// for each missing cell and (d+n)k³; at the end of either strength 5k² for each cell, 4096 (n+2k) for each
// row and 4096 k for each sample. Memory beside x: some 9dn + 1.5(d+n)k² + nk² + 33nk + 600n numbers, of
// which the model keeps 4dn + (d+n)k²/2. An x that is no [Mat] is copied into one. [MemoryOf] adds it up.
func FitBQMF(ctx context.Context, x Rows, rank int, opts ...FitOption) (*BQMF, error) {
	c := bqmfDefaults()
	if err := parse(option.FitBQMF, &c, opts); err != nil {
		return nil, err
	}
	visible, err := c.checkBQMF(x, rank)
	if err != nil {
		return nil, err
	}
	t := &task{config: &c, kind: kinds.BQMF, x: x, rank: rank, cells: visible}
	from, err := t.reopen()
	if err != nil {
		return nil, err
	}
	p := pool.New(c.workers, visible.d)
	defer p.Close()
	f := &bqmfFit{config: &c, cells: visible, pool: p, ctx: ctx, task: t}
	if from != nil && len(from.best) > 0 {
		f.best = new(BQMF)
		if err := f.best.UnmarshalBinary(from.best); err != nil {
			return nil, from.inside(err)
		}
		if b := f.best; b.U.Rows != visible.d || b.V.Cols != visible.n || b.loss != c.loss ||
			b.missing != c.missing || (b.Validation != nil) != (c.validation > 0) {
			return nil, from.file.fail("BEST", "the best model is not of this fit")
		}
	}
	err = f.begin(rank)
	if late := visible.trouble.get(); late != nil {
		return nil, late
	}
	if err != nil {
		if f.best == nil {
			f.best = f.model(nil, 0)
		}
		return f.best, stoppedAt(0, err)
	}
	first := 0
	if from != nil {
		first = from.restart
	}
	for which := first; which < len(strengths); which++ {
		s := &strengthFit{bqmfFit: f, which: which}
		var state *checkpoint
		if which == first {
			state = from
		}
		err := s.run(state)
		if late := visible.trouble.get(); late != nil {
			return nil, late
		}
		if err != nil {
			if f.best == nil {
				f.best = f.model(nil, which)
			}
			return f.best, err
		}
	}
	return f.best, nil
}

// bqmfComponents is the number that a fit of d × n starts with. Rank 0 leaves it to the function.
func bqmfComponents(d, n, rank int) int {
	if rank == 0 {
		rank = 50
	}
	return min(max(min(d, n)-1, 1), rank)
}

// settleBQMF reports options that make no model of any matrix.
func (c *config) settleBQMF() error {
	if c.loss != divergence.KL && c.loss != divergence.Frobenius {
		return &OptionError{Option: option.Loss.String(), Value: ftoa(float64(c.loss)),
			Bound: "FitBQMF takes KL or Frobenius"}
	}
	return nil
}

// checkBQMF returns the cells that a fit sees, or what is wrong with its data.
func (c *config) checkBQMF(x Rows, rank int) (*cells, error) {
	if err := c.settleBQMF(); err != nil {
		return nil, err
	}
	if err := checkRows(x); err != nil {
		return nil, err
	}
	if rank < 0 {
		return nil, &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least 0"}
	}
	d, n := x.Dims()
	if k := uint64(bqmfComponents(d, n, rank)); k*(k+1)/2 > limit.Cells/uint64(d+n) {
		return nil, &OptionError{Option: "rank", Value: itoa(rank),
			Bound: "the posterior of a " + sizeOf(d, n) + " matrix would need too much memory"}
	}
	rules := config{settings: settings{missing: c.missing, loss: c.loss, mapped: true}}
	if !c.given.Has(option.Loss) {
		rules.loss = divergence.Frobenius // which takes any finite x
	}
	if err := rules.checkCells(x); err != nil {
		return nil, err
	}
	visible, err := newCells(x, &c.settings)
	if err != nil {
		return nil, err
	}
	for _, e := range visible.extremes {
		if e.least < 0 && c.loss == divergence.KL { // not asked for: checkCells would have said so
			c.loss = divergence.Frobenius
		}
	}
	return visible, nil
}

// bqmfFit is a fit under way.
type bqmfFit struct {
	*config
	*cells
	x        Mat // NaN where a cell is hidden
	pool     *pool.Pool
	ctx      context.Context
	progress progress
	task     *task

	rankAsked, rank int
	rooted          bool          // the scales begin with a root
	curves          []curve.Curve // of each row, its scale
	active          []int         // rows that are not constant
	units           []float64
	// the largest of units: losses are taken of x over it, so that squares neither overflow nor vanish
	lossUnit float64
	data     *posterior.Data
	space    *svd.Subspace
	best     *BQMF
	mark     float64          // of raceEpochs; 0: none
	reader   *posterior.Cells // of the last leave-one-out, whose room the next one takes
}

// begin makes the scales and what the fits start from. An error is that of the context or of
// the progress function; the rows that are left then have no scale.
func (f *bqmfFit) begin(rank int) error {
	const some = 256 // rows between two reports
	f.progress = newProgress(f.ctx, f.config, f.cells.d)
	f.progress.now.Epochs = len(strengths) * f.epochs
	err := f.progress.enter(PhaseFactors)
	f.x = f.dense()
	d, n := f.x.Rows, f.x.Cols
	np := kernel.Pad(n)
	f.rankAsked, f.rank = rank, bqmfComponents(d, n, rank)
	f.rooted = true
	for i := range d {
		for _, v := range f.x.Row(i) {
			f.rooted = f.rooted && !(v < 0)
		}
	}
	f.curves, f.units = make([]curve.Curve, d), make([]float64, d)
	y := make([]float64, d*np)
	work := make([]curve.Scaler, f.pool.Workers())
	scale := func(w, i int) {
		top, mean, count := 0.0, 0.0, 0.0
		for _, v := range f.x.Row(i) {
			if v == v {
				top = max(top, math.Abs(v))
				count++
				mean += (v - mean) / count
			}
		}
		f.units[i] = curve.UnitOf(top)
		if err != nil || f.ctx.Err() != nil {
			f.curves[i] = curve.Curve{X: []float64{mean}, Y: []float64{0}, MassY: []float64{0},
				MassX: []float64{mean}}
			return
		}
		work[w].Scale(&f.curves[i], y[i*np:i*np+n], f.x.Row(i), !f.rooted)
	}
	for from := 0; from < d; from += some {
		to := min(from+some, d)
		f.pool.Do(to-from, func(w, i int) { scale(w, from+i) })
		if err == nil {
			err = f.progress.report(0.5 * float64(to) / float64(d))
		}
	}
	for i := range d {
		f.lossUnit = max(f.lossUnit, f.units[i])
		if len(f.curves[i].X) > 1 {
			if a := len(f.active); a < i {
				copy(y[a*np:(a+1)*np], y[i*np:(i+1)*np])
			}
			f.active = append(f.active, i)
		}
	}
	if err != nil || len(f.active) == 0 {
		return err
	}
	a := len(f.active)
	f.data = posterior.NewData(a, n, y[:a*np],
		func(i, j int) bool { v := f.x.Row(f.active[i])[j]; return v == v })
	f.data.Of = d
	f.pool.Bind(f.ctx) // what a stop leaves undone nobody looks at
	defer f.pool.Bind(nil)
	f.space = svd.NewSubspace(a, n, f.rank, svd.Passes, nmf.Pieces,
		func(_, i int) []float64 { return y[i*np : (i+1)*np] }, f.pool)
	return f.progress.report(1)
}

// strengthFit is the fit of one strength.
type strengthFit struct {
	*bqmfFit
	which               int // of strengths
	fit                 *posterior.Fit
	epoch               int       // epochs made
	done                bool      // the fit has come to rest
	history, validation []float64 // after each epoch: the bound, and the loss on the held-out cells
	judge               journal.Watch
	judged              *BQMF // the best on the held-out cells; nil without them
}

// total is the number of epochs made, those of the strengths before included.
func (s *strengthFit) total() int { return s.which*s.epochs + s.epoch }

// run makes the fit, or goes on with it, and keeps its model if it is the best so far.
func (s *strengthFit) run(from *checkpoint) error {
	if err := s.ctx.Err(); err != nil {
		return stoppedAt(0, err)
	}
	if len(s.active) == 0 {
		if s.which == 0 {
			s.best = s.model(nil, s.which)
			s.best.LeaveOneOut = 0
			s.best.History = []float64{0}
			if s.held != nil {
				s.best.Validation = []float64{s.heldMean(s.best)}
			}
		}
		return nil
	}
	s.fit = posterior.New(s.ctx, s.data, min(s.rank, len(s.active)), strengths[s.which], s.space, s.pool)
	s.history = []float64{s.fit.Nothing()}
	var err error
	if s.which == 0 && from == nil { // an epoch may take seconds
		err = s.tell()
	}
	switch {
	case from == nil && err == nil:
		s.fit.Complete()
	case from == nil:
		s.fit.Begin()
	}
	if err := s.ctx.Err(); err != nil {
		return stoppedAt(0, err)
	}
	if from == nil {
		s.validate()
	} else if err := s.resumeFrom(from); err != nil {
		return err
	}
	for s.epoch < s.epochs && !s.done && err == nil {
		if s.behind() {
			return nil
		}
		err = s.step()
	}
	return s.end(err)
}

// tell reports the epochs made.
func (s *strengthFit) tell() error {
	if err := s.progress.reportEpoch(s.total(), max(s.progress.now.Epochs, 1), s.history[s.epoch]); err != nil {
		return stoppedAt(s.total(), err)
	}
	return nil
}

// validate judges the state of the fit by the held-out cells, if there are any, and keeps its model if it is
// the best. False: the context has ended, and the state is not judged.
func (s *strengthFit) validate() bool {
	if s.held == nil {
		return true
	}
	m := s.finish(s.fit.Copy, s.which)
	held := s.heldMean(m)
	if s.ctx.Err() != nil {
		return false
	}
	s.validation = append(s.validation, held)
	if better, _ := s.judge.See(s.epoch, held); better {
		m.Best, s.judged = s.epoch, m
		m.History, m.Validation = s.history, s.validation
		if s.better(m) {
			s.best = m
		}
	}
	return true
}

// behind tells, before an epoch, whether the second strength is given up. The first sets the mark.
func (s *strengthFit) behind() bool {
	at := s.fit.Ahead + s.epoch
	switch {
	case s.held != nil:
	case s.which == 0 && at == raceEpochs[0]:
		s.mark = s.glance(s.fit, s.which)
	case s.which == 1 && slices.Contains(raceEpochs[:], at) && s.mark > 0:
		return s.glance(s.fit, s.which) > s.mark
	}
	return false
}

// step makes an epoch, judges it, reports it and writes a checkpoint where one is due.
func (s *strengthFit) step() error {
	s.done = s.fit.Epoch(s.epoch, s.tolerance)
	if err := s.ctx.Err(); err != nil {
		return stoppedAt(s.total(), err)
	}
	s.epoch++
	s.history = append(s.history, s.fit.Bound)
	if !s.validate() { // an epoch that is not judged counts as not made
		s.epoch--
		s.history = s.history[:s.epoch+1]
		return stoppedAt(s.total(), s.ctx.Err())
	}
	if err := s.tell(); err != nil {
		return err
	}
	if s.save != nil && (s.done || s.epoch == s.epochs || s.epoch%s.every == 0) {
		if err := s.checkpoint(); err != nil {
			return stoppedAt(s.total(), err)
		}
	}
	return nil
}

// end keeps the model of the fit if it is the best so far. err is what has stopped the fit; end returns it,
// or the error of a context that has ended meanwhile.
func (s *strengthFit) end(err error) error {
	m := s.judged
	if m == nil {
		m = s.finish(s.fit.Lend, s.which)
		m.Best = s.epoch
		if err == nil && s.ctx.Err() != nil {
			err = stoppedAt(s.total(), s.ctx.Err())
		}
	}
	m.History, m.Validation = s.history, s.validation
	if !s.done && err == nil && s.epochs > 0 {
		m.Warnings = append(m.Warnings, &unsettled{s.epoch, s.fit.Moved, s.tolerance})
	}
	if s.best == nil || s.better(m) && (err == nil || s.held != nil) {
		s.best = m
	}
	return err
}

// unsettled is the warning of a fit that has not come to rest.
type unsettled struct {
	epochs           int
	moved, tolerance float64
}

func (u *unsettled) Error() string {
	return "quantmf: UV moved by " + ftoa(u.moved) + " of itself in the last of " + itoa(u.epochs) +
		" epochs, wanted " + ftoa(u.tolerance)
}

// better tells whether m predicts better than the best so far.
func (f *bqmfFit) better(m *BQMF) bool {
	if f.best == nil {
		return true
	}
	if f.held != nil {
		return len(m.Validation) > 0 && m.Validation[m.Best] < f.best.Validation[f.best.Best]
	}
	return m.LeaveOneOut < f.best.LeaveOneOut
}

// heldMean is the mean divergence of the held-out cells.
func (f *bqmfFit) heldMean(m *BQMF) float64 {
	if len(f.active) > 0 {
		f.pool.Bind(f.ctx)
		defer f.pool.Bind(nil)
	}
	t, sum, room := m.conditional(f.pool), 0.0, make([]float64, f.n)
	for i := range t.Rows {
		for j, v := range f.observedRow(room, i) {
			if f.isHeld(i, j) {
				sum += f.loss.Divergence(v, t.At(i, j))
			}
		}
	}
	return sum / float64(f.heldOut)
}

// model returns the model of a posterior, its maps without corrections. A nil of stands for a posterior that
// knows nothing.
func (f *bqmfFit) model(of func(rows []int, d int) *posterior.Posterior, which int) *BQMF {
	d, n := f.x.Rows, f.x.Cols
	m := &BQMF{Strength: strengths[which], curves: slices.Clone(f.curves), LeaveOneOut: math.MaxFloat64}
	m.loss, m.missing, m.mapped = f.loss, f.missing, true
	for i := range m.curves {
		m.plain(i)
	}
	if of == nil {
		k := f.rank
		m.post = &posterior.Posterior{D: d, N: n, K: k, U: make([]float64, d*k),
			V: make([]float64, k*kernel.Pad(n)), BU: make([]float64, d*posterior.Packed(k)),
			BV:  make([]float64, n*posterior.Packed(k)),
			Tau: make([]float64, d), Rho: make([]float64, n), Unit: 1}
		for i, c := range m.curves {
			if len(c.X) > 1 { // a scale has the deviation 1
				m.post.Tau[i] = 1
			}
		}
		for j := range n {
			m.post.Rho[j] = 1
			for c := range k {
				m.post.BV[j*posterior.Packed(k)+c*(c+1)/2+c] = 1
			}
		}
		m.History = []float64{0}
	} else {
		m.post = of(f.active, d)
	}
	m.fill()
	return m
}

// fill takes the public fields from the posterior.
func (m *BQMF) fill() {
	p := m.post
	np := kernel.Pad(p.N)
	m.U = Mat{Rows: p.D, Cols: p.K, Data: slices.Clone(p.U), Stride: p.K}
	m.V = NewMat(p.K, p.N)
	for c := range p.K {
		copy(m.V.Row(c), p.V[c*np:])
	}
	m.Relevance, m.RowNoise, m.SampleNoise = p.Relevance(), make([]float64, p.D), make([]float64, p.N)
	for i, t := range p.Tau {
		if t > 0 {
			m.RowNoise[i] = 1 / math.Sqrt(t)
		}
	}
	for j, r := range p.Rho {
		m.SampleNoise[j] = 1 / math.Sqrt(r)
	}
}

// floors are shares of the mean of a row. Under KL no prediction falls below one of them, the one of the
// least leave-one-out loss.
var floors = [...]float64{1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.2}

// finish makes the model of a posterior, its maps learnt from leave-one-out
// predictions. When the context ends, the maps not yet learnt are without corrections.
func (f *bqmfFit) finish(of func(rows []int, d int) *posterior.Posterior, which int) *BQMF {
	m := f.model(of, which)
	stopped := func() bool { return f.ctx.Err() != nil }
	if !stopped() {
		m.post.Near = m.post.Neighbours(f.data, f.active, f.pool, stopped)
	}
	if !stopped() {
		m.post.Alike = m.post.Samples(f.pool, stopped)
	}
	if stopped() {
		m.post.Near, m.post.Alike = nil, nil
		return m
	}
	loss, factors, corrected := f.learn(m)
	if which == 0 && f.held == nil && f.ctx.Err() == nil {
		f.mark = max(f.mark, min(factors, limit.Moment))
		const raceLeft = 0.85
		if corrected < raceLeft*factors {
			f.mark = 0
		}
	}
	// the corrections count by half, see LeaveOneOut
	if corrected > 0 && (m.post.Near != nil || m.post.Alike != nil) {
		loss *= math.Sqrt(factors / corrected)
	}
	m.LeaveOneOut = min(loss, math.MaxFloat64)
	return m
}

// glanceRows is how many rows follow one another among those that glance looks at, at most
// posterior.Together.
const glanceRows = 8

// glance returns the leave-one-out loss of the factors alone over some 100 rows, evenly spread, or over all
// rows where they are fewer than 200. 0 when the context ends.
func (f *bqmfFit) glance(fit *posterior.Fit, which int) float64 {
	var from []int
	for k := 0; k < len(f.active); k += glanceRows {
		if f.glanced(k) {
			from = append(from, k)
		}
	}
	factors := make([][len(floors)]float64, len(f.active))
	f.lessons(f.model(fit.Lend, which), from, glanceRows, func(l *lesson, k int) {
		l.leaveOut(k)
		l.judgeFactors(&factors[k])
	})
	if f.ctx.Err() != nil {
		return 0
	}
	return min(f.leastFactors(factors), limit.Moment)
}

// glanced tells whether glance looks at active row k.
func (f *bqmfFit) glanced(k int) bool { return k/glanceRows%max(len(f.active)/100, 1) == 0 }

// lessons calls learn for active rows k, rows of them from each of from on, with a worker's lesson for the
// model m. When the context ends some of them are left out.
func (f *bqmfFit) lessons(m *BQMF, from []int, rows int, learn func(l *lesson, k int)) {
	work := make([]*lesson, f.pool.Workers())
	f.pool.Bind(f.ctx)
	base := m.post.Cells(f.pool, f.reader)
	f.reader = base
	base.LeaveOut(f.data.Cells())
	f.pool.Bind(nil)
	f.pool.Do(len(from), func(w, piece int) {
		if f.ctx.Err() != nil {
			return
		}
		if work[w] == nil {
			work[w] = &lesson{bqmfFit: f, m: m, cells: base.Share()}
		}
		l := work[w]
		l.each(from[piece], min(from[piece]+rows, len(f.active)), func(k int) { learn(l, k) })
	})
}

// leastFactors returns the loss by the factors alone of the rows of glance, given that of each of them under
// each floor; 0 of the others. It is the loss under the floor where it is least.
func (f *bqmfFit) leastFactors(each [][len(floors)]float64) float64 {
	var sums [len(floors)]float64
	for _, losses := range each {
		for k, l := range losses {
			sums[k] += l
		}
	}
	return slices.Min(sums[:]) * f.loss.Scale(f.lossUnit)
}

// learn learns the maps of m from leave-one-out predictions, and decides which rows are corrected by
// neighbours or by samples that are alike. It returns three leave-one-out losses: of all rows, corrections
// included; of the rows of glance, by the factors alone; and of the rows of glance, corrections included.
func (f *bqmfFit) learn(m *BQMF) (loss, factors, corrected float64) {
	a := len(f.active)
	curves, sums := make([]*curve.Curve, a), make([]curve.Sums, a) // of the active rows
	means := make([]float64, a)                                    // of their visible cells
	// their losses under each floor: corrections included,
	each := make([][len(floors)]float64, a)
	byFactors := make([][len(floors)]float64, a) // and by the factors alone
	var from []int
	for k := 0; k < a; k += posterior.Together {
		from = append(from, k)
	}
	f.lessons(m, from, posterior.Together, func(l *lesson, k int) {
		means[k] = l.leaveOut(k)
		if f.glanced(k) {
			l.judgeFactors(&byFactors[k])
		}
		l.correct()
		sums[k] = l.teach()
		l.judge(&each[k])
		curves[k] = l.c
	})
	if f.ctx.Err() != nil {
		for i := range m.curves {
			m.plain(i)
		}
		m.post.Near, m.post.Alike = nil, nil
		return math.MaxFloat64, math.MaxFloat64, math.MaxFloat64
	}
	if m.post.Near != nil {
		m.post.Near = m.post.Near.Settled()
	}
	if m.post.Alike != nil {
		m.post.Alike = m.post.Alike.Settled()
	}
	curve.Pool(curves, sums)
	var losses [len(floors)]float64
	for _, of := range each {
		for k, l := range of {
			losses[k] += l
		}
	}
	least := 0
	for k, l := range losses {
		if l < losses[least] {
			least = k
		}
	}
	for k, of := range each {
		if f.loss == divergence.KL {
			curves[k].Floor = floors[least] * means[k]
		}
		if f.glanced(k) {
			corrected += of[least]
		}
	}
	scale := f.loss.Scale(f.lossUnit)
	return losses[least] * scale, f.leastFactors(byFactors), corrected * scale
}

// plain takes from map i what was learnt.
func (m *BQMF) plain(i int) {
	c := &m.curves[i]
	c.Slope, c.MeanX, c.MeanP, c.StepAt, c.StepTo, c.Levels = 1, 0, 0, nil, nil, curve.LevelsAt
}

// lesson is what a worker learns the map of a row in: leaveOut takes the row, correct, teach and judge go on
// with it.
type lesson struct {
	*bqmfFit
	m     *BQMF
	cells *posterior.Cells // of which the row is row r
	table curve.Table
	curve.Learner

	i, r   int
	c      *curve.Curve
	y      []float64 // the row on its scale
	near   bool      // it has neighbours
	places []int32   // of the visible cells
	// there: the mean of each cell without it, what is left, and what neighbours say of that
	without, residuals, said []float64
	lows                     [len(floors)]float64
}

// each calls g for the active rows from from to to-1, of which cells then has row r.
func (l *lesson) each(from, to int, g func(k int)) {
	for at := from; at < to; { // the rows follow one another in the matrix unless a constant one lies between
		end := at + 1
		for end < to && l.active[end] == l.active[end-1]+1 {
			end++
		}
		l.cells.Rows(l.active[at], end-at)
		for k := at; k < end; k++ {
			l.r = k - at
			g(k)
		}
		at = end
	}
}

// leaveOut takes active row k, row r of cells, and returns the mean of its visible cells.
func (l *lesson) leaveOut(k int) (mean float64) {
	l.i = l.active[k]
	l.c = &l.m.curves[l.i]
	l.table.Load(l.c, false)
	l.y = l.data.Y[k*kernel.Pad(l.x.Cols):]
	l.X, l.P, l.Z = l.X[:0], l.P[:0], l.Z[:0]
	l.places, l.without, l.residuals, l.said = l.places[:0], l.without[:0], l.residuals[:0], l.said[:0]
	post := l.m.post
	l.near = post.Near != nil && len(post.Near.Of[l.i]) > 0
	tau, count := post.Tau[l.i], float64(l.data.Rows[k].Count)
	for j, x := range l.x.Row(l.i) {
		if x == x {
			l.X = append(l.X, x)
			mean += x / count
			without := l.cells.Without(l.r, j, l.y[j], float64(tau*post.Rho[j]))
			l.places, l.without = append(l.places, int32(j)), append(l.without, without)
			l.residuals = append(l.residuals, math.Sqrt(tau*post.Rho[j])*(l.y[j]-without))
			said := 0.0
			if l.near {
				said = l.cells.Said(l.r, l.i, j, l.y[j])
			}
			l.said = append(l.said, said)
		}
	}
	for k, share := range floors {
		l.lows[k] = math.Inf(-1)
		if l.loss == divergence.KL {
			l.lows[k] = float64(share * mean)
		}
	}
	return mean
}

// judge adds the loss of the predictions P under each floor.
func (l *lesson) judge(losses *[len(floors)]float64) {
	for j, x := range l.X {
		above := -1.0 // the loss that all floors share which are below p
		for k, low := range l.lows {
			if p := l.P[j]; p < low {
				losses[k] += l.loss.Value(x/l.lossUnit, low/l.lossUnit, divergence.Tiny) / float64(l.visible)
			} else {
				if above < 0 {
					above = l.loss.Value(x/l.lossUnit, p/l.lossUnit, divergence.Tiny) / float64(l.visible)
				}
				losses[k] += above
			}
		}
	}
}

// judgeFactors adds the loss by the factors alone.
func (l *lesson) judgeFactors(losses *[len(floors)]float64) {
	for h, j := range l.places {
		l.P = append(l.P, l.table.Mean(l.without[h], l.cells.Deviation(l.r, l.i, int(j))))
	}
	l.judge(losses)
	l.P = l.P[:0]
}

// correct decides which corrections the row has, and makes them.
func (l *lesson) correct() {
	post := l.m.post
	tau := post.Tau[l.i]
	if l.near {
		if factor := post.Near.Keep(l.i, l.residuals, l.said); factor > 0 {
			for h, j := range l.places {
				said := float64(factor * l.said[h])
				l.without[h] += said / math.Sqrt(tau*post.Rho[j])
				l.residuals[h] -= said
			}
		}
	}
	if post.Alike != nil && l.cells.Alike(l.r, l.i, l.y, l.places, l.residuals, l.said) {
		for h, j := range l.places {
			l.without[h] += l.said[h] / math.Sqrt(tau*post.Rho[j])
		}
	}
}

// teach learns the map of the row, and leaves the predictions in P.
func (l *lesson) teach() curve.Sums {
	post, spread, seen := l.m.post, 0.0, 0
	tau := post.Tau[l.i]
	for j, x := range l.x.Row(l.i) {
		s := l.cells.Deviation(l.r, l.i, j)
		spread += float64(s*s) / float64(l.x.Cols)
		if x == x {
			without := l.without[seen]
			l.P = append(l.P, l.table.Mean(without, s))
			// levels are learnt with the cell left out of row and column in turn
			a := float64(tau * post.Rho[j])
			l.Residual(l.c, x, l.y[j],
				without+(l.cells.InTurn(l.r, j, l.y[j], a)-l.cells.Without(l.r, j, l.y[j], a)), s)
			seen++
		}
	}
	l.c.Spread = math.Sqrt(spread)
	l.Quantiles(l.c)
	return l.Learn(l.c, l.units[l.i], l.loss == divergence.KL)
}

// Map returns T_i, the increasing function from the scale of UV to the units of x.
// i is a row of U, else a [*ShapeError]. Reconstruct takes it at (UV)_ij for the
// spread of each cell, Map for that of the row.
func (m *BQMF) Map(i int) (*Curve, error) {
	if i < 0 || i >= len(m.curves) {
		return nil, &ShapeError{What: "row", Got: itoa(i), Want: "from 0 to " + itoa(len(m.curves)-1)}
	}
	return &Curve{&m.curves[i]}, nil
}

// Curve is T_i of a [BQMF], an increasing function from the scale of UV to the
// units of x, for a cell about which the model is as sure as it is on average of
// the row. It is constant for a constant row. It is not changed by its methods.
type Curve struct{ of *curve.Curve }

// At returns T(w), non-decreasing in w; NaN for NaN, and the limits at ±Inf. Cost:
// ten searches of the row's distinct values.
func (c *Curve) At(w float64) float64 { return c.of.At(w) }

// Invert returns a w with T(w) = v, or the least representable one where T
// reaches v. A v outside the values that T takes, or a flat T, is a
// [*DataError] with Row = Col = -1. Cost: one call of At for each bit of w, some sixty where w is not
// very near 0.
func (c *Curve) Invert(v float64) (float64, error) {
	w, problem := c.of.Invert(v)
	if problem != "" {
		return 0, &DataError{Row: -1, Col: -1, Value: v, Problem: problem}
	}
	return w, nil
}

// eachRow calls g for every row i with the reader that has row i as its r-th, or with nil where the row is
// constant.
func (m *BQMF) eachRow(p *pool.Pool, mass bool, g func(t *curve.Table, c *posterior.Cells, r, i int)) {
	type room struct {
		cells *posterior.Cells
		table curve.Table
	}
	d := len(m.curves)
	if d == 0 { // the zero value
		return
	}
	work := make([]*room, p.Workers())
	base := m.post.Cells(p, nil)
	p.Do((d+posterior.Together-1)/posterior.Together, func(w, piece int) {
		if work[w] == nil {
			work[w] = &room{cells: base.Share()}
		}
		ws := work[w]
		from := piece * posterior.Together
		rows := min(posterior.Together, d-from)
		ws.cells.Rows(from, rows)
		for r := range rows {
			ws.table.Load(&m.curves[from+r], mass)
			c := ws.cells
			if len(m.curves[from+r].X) == 1 {
				c = nil
			}
			g(&ws.table, c, r, from+r)
		}
	})
}

// Reconstruct returns the conditional mean of every cell, d × n, under the loss that was fitted: T_i,
// averaged over the normal distribution of the cell on the scale of UV. The mean of that distribution is
// (UV)_ij plus two corrections: from the residuals of rows whose noise is correlated with that of row i, and
// from the residuals of row i at samples that are alike. Cost: 5k² flops a cell, spread over GOMAXPROCS
// workers.
func (m *BQMF) Reconstruct() Mat {
	out, _ := m.reconstruct(context.Background())
	return out
}

func (m *BQMF) filler(ctx context.Context) (filler, error) {
	t, err := m.reconstruct(ctx)
	return func(row []float64, i int) { copy(row, t.Row(i)) }, err
}

func (m *BQMF) reconstruct(ctx context.Context) (Mat, error) {
	p := pool.New(0, len(m.curves))
	defer p.Close()
	p.Bind(ctx)
	out := m.conditional(p)
	if err := p.Err(); err != nil {
		return Mat{}, stoppedAt(0, err)
	}
	return out, nil
}

func (m *BQMF) conditional(p *pool.Pool) Mat {
	out := NewMat(m.dims())
	m.eachRow(p, false, func(t *curve.Table, c *posterior.Cells, r, i int) {
		row := out.Row(i)
		for j := range row {
			if c == nil {
				row[j] = t.C.X[0]
				continue
			}
			row[j] = t.C.Correct(t.Mean(c.At(r, i, j), c.Deviation(r, i, j)))
		}
	})
	return out
}

// Median returns the conditional median of every cell, d × n: what to take where
// absolute errors count. Cost: that of Reconstruct.
func (m *BQMF) Median() Mat {
	return m.each(func(t *curve.Table, mean,
		dev float64) float64 {
		return t.Back(mean + float64(dev*t.C.Bend(0)))
	})
}

// Deviation returns the standard deviation of every cell, d × n, in the units of x. Cost: that of
// Reconstruct.
func (m *BQMF) Deviation() Mat {
	return m.each(func(t *curve.Table, mean, dev float64) float64 {
		about := t.Back(mean)
		unit := max(math.Abs(t.C.X[0]), math.Abs(t.C.X[len(t.C.X)-1]))
		if len(t.C.X) == 1 {
			return 0
		}
		first, second := 0.0, 0.0
		for k, e := range curve.Nodes {
			v := (t.Back(mean+float64(dev*t.C.Bend(e))) - about) / unit
			first += float64(curve.NodeWeights[k] * v)
			second += float64(curve.NodeWeights[k] * float64(v*v))
		}
		return unit * math.Sqrt(max(second-float64(first*first), 0))
	})
}

// Interval returns the central interval of every cell that holds its value with
// probability p, 0 < p < 1, as two d × n matrices. Another p is an [*OptionError]. Cost: twice that
// of Reconstruct.
func (m *BQMF) Interval(p float64) (lo, hi Mat, err error) {
	if !(p > 0 && p < 1) {
		return Mat{}, Mat{}, &OptionError{Option: "p", Value: ftoa(p), Bound: "must be above 0 and below 1"}
	}
	z := elem.NormalQuantile(0.5 + float64(p/2))
	lo = m.each(func(t *curve.Table, mean,
		dev float64) float64 {
		return t.Back(mean + float64(dev*t.C.Bend(-z)))
	})
	hi = m.each(func(t *curve.Table, mean,
		dev float64) float64 {
		return t.Back(mean + float64(dev*t.C.Bend(z)))
	})
	return lo, hi, nil
}

// Probability returns, for every cell of x, d × n, the probability of a value below
// it, and of one that is at most it. They differ where single values have mass,
// as in counts. NaN where x is. Errors: [*ShapeError], [*DataError]. Cost: that of Reconstruct.
func (m *BQMF) Probability(x Mat) (below, upTo Mat, err error) {
	if err := x.check("x"); err != nil {
		return Mat{}, Mat{}, err
	}
	if d, n := m.dims(); x.Rows != d || x.Cols != n {
		return Mat{}, Mat{}, &ShapeError{What: "x", Got: x.size(), Want: itoa(d) + "×" + itoa(n)}
	}
	rules := m.bounds()
	rules.missing = true
	if err := rules.checkCells(x); err != nil {
		return Mat{}, Mat{}, err
	}
	p := pool.New(0, len(m.curves))
	defer p.Close()
	below, upTo = NewMat(x.Rows, x.Cols), NewMat(x.Rows, x.Cols)
	m.eachRow(p, true, func(t *curve.Table, c *posterior.Cells, r, i int) {
		for j, v := range x.Row(i) {
			lo, hi := t.C.Places(v)
			if v == t.C.MassX[0] {
				lo = math.Inf(-1)
			}
			if v == t.C.MassX[len(t.C.MassX)-1] {
				hi = math.Inf(1)
			}
			if c != nil {
				mean, dev := c.At(r, i, j), c.Deviation(r, i, j)
				lo, hi = t.C.Unbend((lo-mean)/dev), t.C.Unbend((hi-mean)/dev)
			}
			if v != v {
				lo, hi = v, v
			}
			below.Set(i, j, curve.Phi(lo))
			upTo.Set(i, j, curve.Phi(hi))
		}
	})
	return below, upTo, nil
}

// each returns a matrix of what g makes of the mean and the deviation of each cell on the scale of UV.
func (m *BQMF) each(g func(t *curve.Table, mean, dev float64) float64) Mat {
	p := pool.New(0, len(m.curves))
	defer p.Close()
	out := NewMat(m.dims())
	m.eachRow(p, true, func(t *curve.Table, c *posterior.Cells, r, i int) {
		row := out.Row(i)
		for j := range row {
			if c == nil {
				row[j] = g(t, 0, 0)
				continue
			}
			row[j] = g(t, c.At(r, i, j), c.Deviation(r, i, j))
		}
	})
	return out
}

func (m *BQMF) dims() (d, n int) {
	if m.post == nil { // the zero value
		return 0, 0
	}
	return m.post.D, m.post.N
}

// Bend returns the bend of every T_i, as [QMF.Bend] defines it.
func (m *BQMF) Bend() []float64 {
	fill, _ := m.filler(context.Background())
	return bends(fill, m.U, m.V)
}

// Transform returns the coordinates of new samples: for x, d × n', the k × n' means
// of the posterior of V' with all else as it was fitted, values beyond those of a
// row's fit counting as the nearest. After [WithMissingValues] NaN cells are left out,
// and a column needs one that is not. Columns are spread over GOMAXPROCS workers.
// Errors: [*ShapeError], [*DataError]; when ctx ends, one that wraps its error.
//
// Cost of a column: dk flops, k² for each missing cell and 6k³.
func (m *BQMF) Transform(ctx context.Context, x Rows) (Mat, error) {
	v, _, err := m.coordinates(ctx, x, false)
	return v, err
}

// Score returns the mean divergence of the observed cells of x, d × n', from what the model says of them
// after Transform, as Reconstruct says it of the samples of the fit. Errors are those of Transform. To the
// cost of Transform, k² flops a cell and 4096 k a column are added.
func (m *BQMF) Score(ctx context.Context, x Rows) (float64, error) {
	_, score, err := m.coordinates(ctx, x, true)
	return score, err
}

// coordinates returns what Transform does and, where score is wanted, what Score does.
func (m *BQMF) coordinates(ctx context.Context, x Rows, score bool) (Mat, float64, error) {
	visible, err := m.bounds().checkColumns(x, len(m.curves))
	if err != nil {
		return Mat{}, 0, err
	}
	d, n := x.Dims()
	v := NewMat(m.post.K, n)
	losses := make([]float64, n)
	p := pool.New(0, n)
	defer p.Close()
	base := m.post.Placer()
	tables := make([]curve.Table, 0)
	if score {
		tables = make([]curve.Table, d)
		for i := range tables {
			tables[i].Load(&m.curves[i], false)
		}
	}
	work := make([]*newSample, p.Workers())
	column := func(w, j int, x Mat, from int) {
		if ctx.Err() != nil {
			return
		}
		if work[w] == nil {
			work[w] = &newSample{m: m, tables: tables, placer: base.Share(), y: make([]float64, d),
				variance: make([]float64, d), w: make([]float64, d), z: make([]float64, d)}
		}
		s := work[w]
		s.place(x, j)
		for h, t := range s.v {
			v.Set(h, from+j, t)
		}
		if score {
			losses[from+j] = s.loss(x, j)
		}
	}
	err = inBlocks(ctx, x, nil, func(block Mat, from int) error {
		p.Do(block.Cols, func(w, j int) { column(w, j, block, from) })
		if err := ctx.Err(); err != nil {
			return &interrupted{err}
		}
		return nil
	})
	if err != nil {
		return Mat{}, 0, err
	}
	sum := 0.0
	for _, l := range losses {
		sum += l
	}
	return v, sum / float64(visible), nil
}

// newSample is a new sample, column j of a matrix x, and the room of a worker for it: place finds its
// coordinates, and loss follows.
type newSample struct {
	m      *BQMF
	tables []curve.Table // of all rows, for loss
	placer *posterior.Placer
	finder *posterior.Finder // made by loss, where rows are predicted by samples that are alike

	v              []float64 // the coordinates
	rho            float64
	y, w, variance []float64 // on the scales of the rows: x_ij, the mean by the factors, its variance
	z              []float64 // √(τ_i ρ) (y_i - w_i)
}

// place finds v and ρ.
func (s *newSample) place(x Mat, j int) {
	for i := range s.y {
		if s.y[i] = x.At(i, j); s.y[i] == s.y[i] {
			s.y[i] = s.m.curves[i].Forward(s.y[i])
		}
	}
	s.v, s.rho = s.placer.Place(s.y)
}

// loss returns the sum of the divergences of the observed cells from what the model says of them.
func (s *newSample) loss(x Mat, j int) (sum float64) {
	m, post := s.m, s.m.post
	s.placer.Spread(s.variance)
	var alike []float64
	if post.Alike != nil {
		if s.finder == nil {
			s.finder = post.Alike.Finder()
		}
		alike = s.finder.Find(s.v, -1)
	}
	for i := range s.y {
		s.w[i], s.z[i] = dot(post.U[i*post.K:(i+1)*post.K], s.v), 0
		if s.y[i] == s.y[i] {
			s.z[i] = math.Sqrt(post.Tau[i]*s.rho) * (s.y[i] - s.w[i])
		}
	}
	for i := range s.y {
		value := x.At(i, j)
		if value != value {
			continue
		}
		t := m.curves[i].X[0]
		if tau := post.Tau[i]; tau > 0 {
			mean, dev := s.w[i], math.Sqrt(s.variance[i]+1/(tau*s.rho))
			said := 0.0
			if post.Near != nil {
				said = post.Near.Say(i, s.z)
			}
			if post.Alike != nil {
				said += s.finder.Say(i, alike)
			}
			mean += said / math.Sqrt(tau*s.rho)
			dev *= post.Left(i)
			t = m.curves[i].Correct(s.tables[i].Mean(mean, dev))
		}
		sum += m.loss.Divergence(value, t)
	}
	return sum
}

// The file of a BQMF (internal/kinds) and its checkpoint (checkpoint.go).

// MarshalBinary returns the model as a file. Errors are those of [NMF.MarshalBinary].
func (m *BQMF) MarshalBinary() ([]byte, error) {
	if err := m.writable(kinds.BQMF, -limit.Moment, limit.Moment); err != nil {
		return nil, err
	}
	p := m.post
	switch {
	case p == nil || m.U.Rows != p.D || m.U.Cols != p.K || m.V.Cols != p.N:
		return nil, &ShapeError{What: "U, V", Got: m.U.size() + ", " + m.V.size(),
			Want: "the sizes that were fitted"}
	case !slices.Contains(strengths[:], m.Strength):
		return nil, &DataError{Row: -1, Col: -1, Value: m.Strength, Problem: "Strength must be 0.5 or 1"}
	case !(m.LeaveOneOut >= 0 && m.LeaveOneOut <= math.MaxFloat64):
		return nil, &DataError{Row: -1, Col: -1, Value: m.LeaveOneOut,
			Problem: "LeaveOneOut must be finite and not negative"}
	}
	size := p.K * (p.K + 1) / 2
	tight := func(b []float64, lines int) [][]float64 {
		out := make([][]float64, lines)
		for l := range out {
			out[l] = b[l*posterior.Packed(p.K):][:size]
		}
		return out
	}
	noise := append(append(append([]float64{}, p.Tau...), p.Rho...), p.Unit, m.Strength, m.LeaveOneOut)
	counts, rows, knots := curve.Encode(m.curves)
	of, near := p.Near.Encode(p.N)
	all := append(m.sections(0, 0), []section.Section{
		section.Words("NEAR", of...), section.Floats("NEAZ", near...),
		section.Floats("MOMU", tight(p.BU, p.D)...), section.Floats("MOMV", tight(p.BV, p.N)...),
		section.Floats("NOIS", noise),
		section.Words("CURV", counts...), section.Floats("CURR", rows), section.Floats("KNOT", knots...),
	}...)
	if p.Alike != nil {
		of, alike := p.Alike.Encode()
		all = append(all, section.Words("ALIK", of...), section.Floats("ALIZ", alike...))
	}
	return section.Encode(kinds.BQMF, all), nil
}

// UnmarshalBinary makes m the model in data, or returns a [*FormatError] and
// leaves m as it was.
func (m *BQMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kinds.BQMF)
	if err != nil {
		return err
	}
	b := new(BQMF)
	if f.loss != divergence.KL && f.loss != divergence.Frobenius {
		return f.fail("DIMS", "a BQMF has no such loss")
	}
	if err := f.common(&b.Factorisation, -math.MaxFloat64); err != nil {
		return err
	}
	if size := int64(f.k) * int64(f.k+1) / 2; size > limit.Cells/int64(f.d+f.n) {
		return f.fail("DIMS", "the moments would need too much memory")
	}
	p := &posterior.Posterior{D: f.d, N: f.n, K: f.k, U: flat(b.U), V: make([]float64, f.k*kernel.Pad(f.n))}
	for c := range f.k {
		copy(p.V[c*kernel.Pad(f.n):], b.V.Row(c))
	}
	b.post = p
	if err := f.readMoments(p); err != nil {
		return err
	}
	if err := f.readNoise(b); err != nil {
		return err
	}
	if err := f.readCurves(b); err != nil {
		return err
	}
	for i := range b.curves {
		if (len(b.curves[i].X) == 1) != (p.Tau[i] == 0) {
			return f.fail("NOIS", "a row is constant and has noise, or neither")
		}
	}
	if err := f.readCorrections(p); err != nil {
		return err
	}
	b.fill()
	*m = *b
	return nil
}

// readMoments reads the second moments, and checks the first ones.
func (f *file) readMoments(p *posterior.Posterior) (err error) {
	small := func(tag string, v []float64) error {
		for i, x := range v {
			if !(math.Abs(x) <= limit.Moment) {
				return f.fail(tag, "number "+itoa(i)+" is "+ftoa(x))
			}
		}
		return nil
	}
	if err := small("UFAC", p.U); err != nil {
		return err
	}
	if err := small("VFAC", p.V); err != nil {
		return err
	}
	size := int64(f.k) * int64(f.k+1) / 2
	moments := func(tag string, lines int) ([]float64, error) {
		v, err := f.vectorIn(tag, int64(lines)*size, -limit.Moment, limit.Moment)
		if err != nil {
			return nil, err
		}
		out := make([]float64, lines*posterior.Packed(f.k))
		for l := range lines {
			copy(out[l*posterior.Packed(f.k):], v[int64(l)*size:int64(l+1)*size])
		}
		return out, nil
	}
	if p.BU, err = moments("MOMU", f.d); err != nil {
		return err
	}
	p.BV, err = moments("MOMV", f.n)
	return err
}

// readNoise reads τ, ρ and what stands beside them.
func (f *file) readNoise(b *BQMF) error {
	p := b.post
	noise, err := f.vectorIn("NOIS", int64(f.d)+int64(f.n)+3, 0, math.MaxFloat64)
	if err != nil {
		return err
	}
	p.Tau, p.Rho = noise[:f.d:f.d], noise[f.d:f.d+f.n:f.d+f.n]
	rest := noise[f.d+f.n:]
	p.Unit, b.Strength, b.LeaveOneOut = rest[0], rest[1], rest[2]
	for _, t := range p.Tau {
		if t != 0 && !(t >= 1/limit.Moment && t <= limit.Moment) { // 0: the row is constant
			return f.fail("NOIS", "a noise of a row is out of range")
		}
	}
	for _, r := range p.Rho {
		if !(r >= 1/limit.Moment && r <= limit.Moment) {
			return f.fail("NOIS", "a noise of a sample is out of range")
		}
	}
	if !(p.Unit >= 1/limit.Moment && p.Unit <= limit.Moment) || !slices.Contains(strengths[:], b.Strength) ||
		!(b.LeaveOneOut >= 0) {
		return f.fail("NOIS", "a unit, strength or loss is out of range")
	}
	return nil
}

// readCorrections reads what neighbours and samples that are alike say.
func (f *file) readCorrections(p *posterior.Posterior) error {
	numbers := func(words, floats string) ([]uint64, []float64, error) {
		of, err := f.words(words, len(f.Payload(words))/8)
		if err != nil {
			return nil, nil, err
		}
		v, err := f.vectorIn(floats, -1, -limit.Moment, limit.Moment)
		return of, v, err
	}
	of, z, err := numbers("NEAR", "NEAZ")
	if err != nil {
		return err
	}
	var part int
	var problem string
	if p.Near, part, problem = posterior.DecodeNear(of, z, f.d, f.n); problem != "" {
		return f.fail([...]string{"NEAR", "NEAZ"}[part], problem)
	}
	if !f.Has("ALIK") && !f.Has("ALIZ") {
		return nil
	}
	if of, z, err = numbers("ALIK", "ALIZ"); err != nil {
		return err
	}
	if p.Alike, part, problem = p.DecodeAlike(of, z); problem != "" {
		return f.fail([...]string{"ALIK", "ALIZ"}[part], problem)
	}
	return nil
}

// readCurves reads the maps.
func (f *file) readCurves(b *BQMF) error {
	counts, err := f.words("CURV", 3*f.d)
	if err != nil {
		return err
	}
	rows, err := f.vectorIn("CURR", int64(f.d)*int64(curve.RowNumbers), -limit.Value, limit.Value)
	if err != nil {
		return err
	}
	knots, err := f.vectorIn("KNOT", -1, -limit.Value, limit.Value)
	if err != nil {
		return err
	}
	curves, part, problem := curve.Decode(counts, rows, knots, f.loss != divergence.KL)
	if problem != "" {
		return f.fail([...]string{"CURV", "CURR", "KNOT"}[part], problem)
	}
	b.curves = curves
	return nil
}

// parts are the numbers of a fit under way: those of the posterior, and the unit of ρ,
// the last movement and the mark of the first strength.
func (f *bqmfFit) parts(fit *posterior.Fit, last []float64) []section.Part {
	within := func(numbers []float64) section.Part {
		return section.Within(numbers, -limit.Moment,
			limit.Moment)
	}
	above := func(numbers []float64) section.Part {
		return section.Within(numbers, 1/limit.Moment,
			limit.Moment)
	}
	return []section.Part{within(fit.U), within(fit.V), within(fit.BU), within(fit.BV), above(fit.Tau),
		above(fit.Rho), above(fit.Alpha), section.Within(last, 0, limit.Moment)}
}

// checkpoint hands the state after an epoch to the caller.
func (s *strengthFit) checkpoint() error {
	c := &checkpoint{restart: s.which, epoch: s.epoch, watch: s.judge, history: s.history,
		validation: s.validation}
	done := uint64(0)
	if s.done {
		done = 1
	}
	if s.best != nil {
		c.best, _ = s.best.MarshalBinary()
	}
	return s.save(s.task.encode(c, s.parts(s.fit, []float64{s.fit.Unit, s.fit.Moved, s.mark}),
		[]uint64{uint64(s.fit.K), done}))
}

// resumeFrom takes the state of a checkpoint.
func (s *strengthFit) resumeFrom(from *checkpoint) error {
	file := from.file
	k, err := file.words("IDX0", 2)
	if err != nil {
		return err
	}
	if k[0] < 1 || k[0] > uint64(s.fit.K) {
		return file.fail("IDX0", "the number of components is out of range")
	}
	if k[1] > 1 {
		return file.failAt("IDX0", 1, "is neither 0 nor 1")
	}
	s.fit.Resize(int(k[0]))
	last := make([]float64, 3)
	if _, err := file.restore(s.parts(s.fit, last), 2); err != nil {
		return err
	}
	if !(last[0] >= 1/limit.Moment) {
		return file.fail("REAL", "the unit of the samples' noise is out of range")
	}
	s.fit.Unit, s.fit.Moved, s.mark = last[0], last[1], last[2]
	s.epoch, s.done, s.history, s.validation, s.judge = from.epoch, k[1] == 1, from.history,
		from.validation, from.watch
	if s.held != nil && s.best != nil && s.best.Strength == strengths[s.which] {
		s.judged = s.best
	}
	return nil
}
