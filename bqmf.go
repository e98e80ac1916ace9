package quantmf

// This file holds Bayesian quantile matrix factorisation, X ≈ T(UV) with signed factors, noise by row and by
// sample, and the uncertainty of every cell:
//
//	g_i(x_ij) ~ N(u_i·v_j, 1/(τ_i ρ_j)),   v_j ~ N(0, I),   u_i ~ N(0, diag(1/α)),
//
// by variational Bayes. The scales g_i are made first, from the observed values of the row alone. The maps
// back, T_i, are learnt last, from leave-one-out predictions. The mean of a cell is more than u_i·v_j. Where
// the residuals of a row are similar at samples that are alike, as where samples come in kinds, they predict
// the cells of the row at other such samples. And a second stage predicts each row once more, from the rows
// that go with it, and mixes what both say. α takes components away that the data do not ask for, so the rank
// is an upper bound.
//
// internal/bqmf has the mathematics. Here are the fit as the driver calls it, and the model.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// BQMF is a fitted X ≈ T(UV) with its uncertainty. It is not changed by its methods
// and may be used by several goroutines at once.
type BQMF struct {
	// U and V are means of the posterior, of either sign, components by falling
	// Relevance, the entry of each row of V that is largest in magnitude positive. UV is
	// on the scale of the rows' g_i, of mean 0 and deviation 1. History is no loss: the
	// negative lower bound of the evidence of the observed cells on the scale of UV, given
	// the noise and the relevance, in nats a cell; entry 0 is that of no component at all.
	// Steps of U and V never raise it; those of noise and relevance may, by little.
	// Warnings has one entry where no component was found, or where UV still moved when the epochs ended, and
	// one where missing cells look unlike the observed ones: no interval makes up for values that are missing
	// because they are low.
	Factorisation
	// Relevance is the mean over all cells of the square of a component's part of UV:
	// its share of the variance of a row.
	Relevance []float64
	// RowNoise (d) and SampleNoise (n): the deviation of the noise of cell (i, j), on the scale of UV, is
	// RowNoise_i SampleNoise_j; the samples' have geometric mean 1. A row near 1 is hardly better predicted
	// by the factors than by its mean. The second stage may still predict it, or its own residuals at samples
	// that are alike. 0 for a constant row.
	RowNoise, SampleNoise []float64
	// LeaveOneOut is an estimate of the loss on cells that nobody has seen: the mean divergence of the
	// observed cells from what the model says of each without it, raised by as much as the second stage gains
	// less at cells that it has not seen at all.
	LeaveOneOut float64

	model bqmf.Model
}

func bqmfDefaults() config {
	return config{Settings: qmf.Settings{Tolerance: 3e-3, Epochs: 60, Seed: 1, Loss: divergence.KL},
		running: running{restarts: 1}}
}

// FitBQMF fits x, d features × n samples of any finite values, by T(UV) with signed factors and one
// increasing map T_i for each feature, which goes on beyond the values that were observed of it. The number k
// of components is at most rank and at most min(d,n)-1, but at least 1; rank 0 stands for min(50, d-1, n-1).
// Components that the data do not ask for fade, so the rank need not be chosen.
//
// Defaults: KL, Frobenius where x has negative values; at most 60 epochs, ended when UV moves by less than
// 3e-3 of itself ([WithTolerance]); no validation. The loss decides how the maps are learnt. Under
// [WithValidation] the maps are learnt after every epoch, which takes about as long. Nothing is random but
// the cells held out. Errors: [*DataError], [*ShapeError], [*OptionError]; when ctx ends or a progress
// function fails, the model so far with an error that wraps it.
//
// Cost of an epoch: 4dnk flops, 2k² for each missing cell and (d+n)k³; at the end 5k² for each cell, 4096
// (n+2k) for each row and 4096 k for each sample; and for the second stage 2·10⁴ n + 5·10⁵ for each row, of
// at most 64 rows up to 10⁶ n. Memory beside x: some 4dn + (d+n)k² + nk² + 33nk + 900n numbers, of which the
// model keeps 2dn + (d+n)k²/2, and for its maps two numbers for each of a row's values, four where some come
// more than once, and few for those that are 0. An x that is no [Mat] is copied into one. [MemoryFor] adds it
// up.
func FitBQMF(ctx context.Context, x Rows, rank int, opts ...FitOption) (*BQMF, error) {
	c := bqmfDefaults()
	if err := parse(option.FitBQMF, &c, opts); err != nil {
		return nil, err
	}
	if c.from != nil {
		if err := c.from.settle(ctx, &c, section.BQMF, x, rank); err != nil {
			return nil, err
		}
	}
	observed, err := c.checkBQMF(x, rank)
	if err != nil {
		return nil, err
	}
	settings := bqmf.Settings{Loss: c.Loss, Tolerance: c.Tolerance, Epochs: c.Epochs}
	if of, is := c.from.(*BQMF); is {
		settings.From = of.model.Posterior
	}
	if c.given.Has(option.Discrete) {
		settings.Discrete = make([]bool, observed.D)
		for _, i := range c.discrete {
			settings.Discrete[i] = true
		}
	}
	t := &task{config: &c, Task: fit.Task{Kind: section.BQMF, Cells: observed}, x: x, rank: rank}
	m, err := t.drive(ctx, observed.D, new(BQMF), func(run fit.Run) fit.Algorithm {
		return bqmf.NewAlgorithm(observed, bqmfComponents(observed.D, observed.N, rank), settings, run)
	})
	fitted, _ := m.(*BQMF)
	return fitted, err
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
	if c.Loss != divergence.KL && c.Loss != divergence.Frobenius {
		return &OptionError{Option: option.Loss.String(), Value: ftoa(float64(c.Loss)),
			Bound: "FitBQMF takes KL or Frobenius"}
	}
	return nil
}

// checkBQMF returns the cells that a fit sees, or what is wrong with its data.
func (c *config) checkBQMF(x Rows, rank int) (*fit.Cells, error) {
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
	for _, i := range c.discrete {
		if i < 0 || i >= d {
			return nil, &OptionError{Option: option.Discrete.String(), Value: itoa(i),
				Bound: "must be rows, from 0 to " + itoa(d-1)}
		}
	}
	if k := uint64(bqmfComponents(d, n, rank)); k*(k+1)/2 > limit.Cells/uint64(d+n) {
		return nil, &OptionError{Option: "rank", Value: itoa(rank),
			Bound: "the posterior of a " + sizeOf(d, n) + " matrix would need too much memory"}
	}
	rules := c.Rules()
	rules.Mapped, rules.Hash = true, c.checkpoints != nil
	var err error
	if rules.Weights, err = c.weightsOf(d, n); err != nil {
		return nil, err
	}
	if !c.given.Has(option.Loss) {
		rules.Loss = divergence.Frobenius // which takes any finite x
	}
	observed, err := readCells(x, rules)
	if err == nil && observed.Signed() { // under KL, if that was asked for, x has no negative value
		c.Loss = divergence.Frobenius
	}
	return observed, err
}

func (*BQMF) fitted(made any, s *qmf.Settings) fitted {
	of := made.(*bqmf.Made)
	m := &BQMF{LeaveOneOut: of.LeaveOneOut, model: of.Model}
	m.loss, m.missing, m.mapped = lossOf(s.Loss), s.Missing, true
	m.History, m.Validation, m.Best, m.Warnings = of.History, of.Validation, of.Best, of.Warnings
	m.fill()
	return m
}

// place gives samples of weight 0 what the model says of new ones.
func (m *BQMF) place(x Rows, samples []int) error {
	d, _ := m.model.Dims()
	of := NewMat(d, len(samples))
	for i := range d {
		if err := (chosen{x, samples}).ReadRow(of.Row(i), i); err != nil {
			return err
		}
	}
	p := pool.New(m.workers, d)
	defer p.Close()
	m.model.Place(samples, of.column, p)
	m.fill()
	return nil
}

func (m *BQMF) objective(*qmf.Settings) float64 { return m.LeaveOneOut }

// toUserUnits has nothing to do: a BQMF takes x in its own units.
func (m *BQMF) toUserUnits(*fit.Units) {}

// fill takes the public fields from the posterior.
func (m *BQMF) fill() {
	p := m.model.Posterior
	np := kernel.Pad(p.N)
	m.U = Mat{Rows: p.D, Cols: p.K, Data: p.U, Stride: p.K}.Clone()
	m.V = Mat{Rows: p.K, Cols: p.N, Data: p.V, Stride: np}.Clone()
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

// Map returns T_i, the increasing function from the scale of UV to the units of x.
// i is a row of U, else a [*ShapeError]. Reconstruct takes it at (UV)_ij for the
// spread of each cell, Map for that of the row.
func (m *BQMF) Map(i int) (*Curve, error) {
	if i < 0 || i >= len(m.model.Curves) {
		return nil, &ShapeError{What: "row", Got: itoa(i), Want: "from 0 to " + itoa(len(m.model.Curves)-1)}
	}
	return &Curve{&m.model.Curves[i]}, nil
}

// Curve is T_i of a [BQMF], an increasing function from the scale of UV to the
// units of x, for a cell about which the model is as sure as it is on average of
// the row. It is constant for a constant row, as is the zero Curve, at 0. It is not changed by its methods.
type Curve struct{ of *bqmf.Curve }

// At returns T(w), non-decreasing in w; NaN for NaN, and the limits at ±Inf. Cost:
// ten searches of the row's distinct values.
func (c *Curve) At(w float64) float64 {
	if c.of == nil && w == w {
		return 0
	}
	return c.of.At(w)
}

// Invert returns a w with T(w) = v, or the least representable one where T
// reaches v. A v outside the values that T takes, or a flat T, is a
// [*DataError] with Row = Col = -1. Cost: one call of At for each bit of w, some sixty where w is not
// very near 0.
func (c *Curve) Invert(v float64) (float64, error) {
	if c.of == nil {
		return 0, &DataError{Row: -1, Col: -1, Value: v, Problem: "the map is flat"}
	}
	w, problem := c.of.Invert(v)
	if problem != "" {
		return 0, &DataError{Row: -1, Col: -1, Value: v, Problem: problem}
	}
	return w, nil
}

// Reconstruct returns the conditional mean of every cell, d × n, under the loss that was fitted: T_i,
// averaged over the normal distribution of the cell on the scale of UV. The mean of that distribution is
// (UV)_ij plus what residuals of row i at samples that are alike say of it, mixed with the second stage: what
// the rows that go with row i say, and samples by all other rows. Cost: 5k² flops a cell, spread over
// GOMAXPROCS workers.
func (m *BQMF) Reconstruct() Mat {
	out, _ := m.reconstruct(context.Background())
	return out
}

func (m *BQMF) filler(ctx context.Context) (filler, error) {
	t, err := m.reconstruct(ctx)
	if err != nil {
		return nil, err
	}
	return func(row []float64, i int) { copy(row, t.Row(i)) }, nil
}

func (m *BQMF) reconstruct(ctx context.Context) (Mat, error) {
	if err := usable(m); err != nil {
		return Mat{}, err
	}
	p := pool.New(m.workers, len(m.model.Curves))
	defer p.Close()
	p.Bind(ctx)
	out := Mat(m.model.Conditional(p))
	if err := p.Err(); err != nil {
		return Mat{}, fit.StoppedAt(0, err)
	}
	return out, nil
}

// cellwise returns a matrix of what g makes of each cell, given the table of its row and its mean and
// deviation on the scale of UV. With mass the table has the masses of values that come more than once.
func cellwise(m *bqmf.Model, p *pool.Pool, mass bool, g func(t *bqmf.Table, mean, dev float64) float64) Mat {
	out := NewMat(m.Dims())
	m.Each(p, mass, func(t *bqmf.Table, i, j int, mean, dev float64) { out.Set(i, j, g(t, mean, dev)) })
	return out
}

func (m *BQMF) cellwise(g func(t *bqmf.Table, mean, dev float64) float64) Mat {
	if usable(m) != nil {
		return Mat{}
	}
	p := pool.New(m.workers, len(m.model.Curves))
	defer p.Close()
	return cellwise(&m.model, p, true, g)
}

// quantile returns the quantile of every cell of which z is the normal quantile.
func (m *BQMF) quantile(z float64) Mat {
	return m.cellwise(func(t *bqmf.Table, mean, dev float64) float64 { return t.Quantile(mean, dev, z) })
}

// Median returns the conditional median of every cell, d × n: what to take where
// absolute errors count. Cost: that of Reconstruct.
func (m *BQMF) Median() Mat { return m.quantile(0) }

// Deviation returns the standard deviation of every cell, d × n, in the units of x. Cost: that of
// Reconstruct.
func (m *BQMF) Deviation() Mat { return m.cellwise((*bqmf.Table).Deviation) }

// Interval returns the central interval of every cell that holds its value with probability p, 0 < p < 1, as
// two d × n matrices. Cells that are hidden together, as by an assay that was not done for some samples, have
// wider ones: the fit learns by how much from samples that have such cells. Another p is an [*OptionError].
// Cost: twice that of Reconstruct.
func (m *BQMF) Interval(p float64) (lo, hi Mat, err error) {
	z, err := tailOf(p)
	if err != nil {
		return Mat{}, Mat{}, err
	}
	if err := usable(m); err != nil {
		return Mat{}, Mat{}, err
	}
	return m.quantile(-z), m.quantile(z), nil
}

// tailOf returns the normal quantile at the upper end of a central interval of probability p.
func tailOf(p float64) (float64, error) {
	if !(p > 0 && p < 1) {
		return 0, &OptionError{Option: "p", Value: ftoa(p), Bound: "must be above 0 and below 1"}
	}
	return elem.NormalQuantile(0.5 + float64(p/2)), nil
}

// Probability returns, for every cell of x, d × n, the probability of a value below
// it, and of one that is at most it. They differ where single values have mass,
// as in counts. NaN where x is. Errors: [*ShapeError], [*DataError]. Cost: that of Reconstruct.
func (m *BQMF) Probability(x Mat) (below, upTo Mat, err error) {
	if err := usable(m); err != nil {
		return Mat{}, Mat{}, err
	}
	if err := x.check("x"); err != nil {
		return Mat{}, Mat{}, err
	}
	if d, n := m.Dims(); x.Rows != d || x.Cols != n {
		return Mat{}, Mat{}, &ShapeError{What: "x", Got: x.size(), Want: itoa(d) + "×" + itoa(n)}
	}
	if err := m.bounds().checkCells(x); err != nil {
		return Mat{}, Mat{}, err
	}
	p := pool.New(m.workers, len(m.model.Curves))
	defer p.Close()
	below, upTo = NewMat(x.Rows, x.Cols), NewMat(x.Rows, x.Cols)
	m.model.Each(p, true, func(t *bqmf.Table, i, j int, mean, dev float64) {
		lo, hi := t.Probability(x.At(i, j), mean, dev)
		below.Set(i, j, lo)
		upTo.Set(i, j, hi)
	})
	return below, upTo, nil
}

// Bend returns the bend of every T_i, as [QMF.Bend] defines it.
func (m *BQMF) Bend() []float64 {
	return bendsOf(m)
}

// MarshalBinary returns the model as a file. Errors are those of [NMF.MarshalBinary].
func (m *BQMF) MarshalBinary() ([]byte, error) {
	return fileOf(m)
}

func (m *BQMF) encode() []byte {
	return section.Encode(section.BQMF, append(m.sections(0, 0), m.model.Sections(m.LeaveOneOut)...))
}

// UnmarshalBinary makes m the model in data, or returns a [*FormatError] and
// leaves m as it was.
func (m *BQMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, section.BQMF)
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
	more := make([]float64, 1)
	of, err := bqmf.Decode(f.File, f.d, f.n, f.k, flat(b.U), flat(b.V), f.loss != divergence.KL, more)
	if err != nil {
		return formatError(err)
	}
	b.model, b.LeaveOneOut = *of, more[0]
	b.fill()
	*m = *b
	sealFields(m)
	return nil
}

func (m *BQMF) fields() (used, told []field) {
	return []field{{"U", m.U}, {"V", m.V}, listed("Relevance", m.Relevance...),
			listed("RowNoise", m.RowNoise...), listed("SampleNoise", m.SampleNoise...)},
		append(m.told(), listed("LeaveOneOut", m.LeaveOneOut))
}

func (m *BQMF) readable() ([]byte, error) {
	file := m.encode()
	return file, new(BQMF).UnmarshalBinary(file)
}
