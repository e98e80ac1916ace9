package quantmf

// This file holds non-negative matrix factorisation,
//
//	min over U, V >= 0 of  Σ_ij Δ(x_ij, (UV)_ij),
//
// the baseline of the paper and the start of its models. internal/nmf has the two ways to lower
// the divergence, Newton's method and multiplicative updates (Lee and Seung 2001; Févotte and
// Idier 2011); here are the fit as the driver calls it, and the model.

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// NMF is a fitted X ≈ UV. It is not changed by its methods.
type NMF struct{ Factorisation }

func nmfDefaults() config {
	return config{
		Settings: qmf.Settings{Epochs: 20, Seed: 1, Loss: divergence.KL, Start: qmf.StartAuto,
			Updates: qmf.UpdatesNewton},
		running: running{restarts: 1},
	}
}

// settleNMF sets the updates that loss and sizes ask for and the number of epochs that updates and start
// ask for, where the options leave them open. It reports options that contradict each other.
func (c *config) settleNMF(d, n, rank int) error {
	if c.Start == qmf.StartScores || c.Start == qmf.StartNMF {
		return &OptionError{Option: option.Start.String(), Value: Start(c.Start).String(),
			Bound: "FitNMF starts from StartAuto, StartUniform or StartSVD"}
	}
	if !nmf.Suits(c.Loss, float64(d), float64(n), float64(rank)) && !c.given.Has(option.Updates) {
		c.Updates = qmf.UpdatesMultiplicative
	}
	if c.Updates == qmf.UpdatesNewton && c.Loss != divergence.KL && c.Loss != divergence.Frobenius {
		return &OptionError{Option: option.Updates.String(), Value: Updates(c.Updates).String(),
			Bound: "takes KL and Frobenius; under other losses there is UpdatesMultiplicative"}
	}
	c.settleEpochs(d, n)
	return nil
}

// settleEpochs sets the number of epochs where the options leave it open.
func (c *config) settleEpochs(d, n int) {
	if c.given.Has(option.Epochs) {
		return
	}
	c.Epochs = nmfDefaults().Epochs
	if c.Updates == qmf.UpdatesMultiplicative {
		c.Epochs = 100
	}
	if c.StartsFrom(d, n) > 0 {
		c.Epochs /= 2
	}
}

// hiddenShare is the share of the visible cells by which chooseEnd takes its choices.
const hiddenShare = 0.1

// endIsOpen tells whether no option says where a FitNMF ends. Where cells are missing, those that it is to
// predict say it then.
func (c *config) endIsOpen() bool {
	given := c.given.Has(option.Epochs) || c.given.Has(option.Init)
	return !given && !c.Whole && c.Patience == 0 && c.Validation == 0
}

// settleFew tells whether guesses are tried: where few cells are visible, by multiplicative updates, which it
// takes if the options leave that open.
func (c *config) settleFew(visible float64, d, n, rank int) bool {
	few := qmf.FewSeen(visible, d, n, rank)
	if few && !c.given.Has(option.Updates) {
		c.Updates = qmf.UpdatesMultiplicative
		c.settleEpochs(d, n)
	}
	return few && c.Updates == qmf.UpdatesMultiplicative
}

// judgeEnd makes c the options of a fit that judges a guess, and finds the end of one of so many epochs by
// default.
func (c *config) judgeEnd(epochs int, guess float64) {
	c.given |= option.Of(option.Epochs)
	c.Validation, c.Epochs, c.Patience = hiddenShare, qmf.MostShare*epochs, qmf.PatienceOf(epochs)
	c.guess = guess
}

// chooseEnd takes the guess and the number of epochs after which a fit of x, whose cells are those of of,
// without a tenth of the visible ones predicts these best, as the NMF of a start is ended (internal/qmf);
// guesses are tried for as long as they predict better. Where no cell can be hidden there is none, and the
// number stays. With an error it returns the model of a fit that was stopped.
func (c *config) chooseEnd(ctx context.Context, of *fit.Cells, x Rows, rank int,
	opts []FitOption) (*NMF, error) {
	tries := qmf.Guesses[:]
	if !c.settleFew(float64(of.Visible), of.D, of.N, rank) {
		tries = tries[:1]
	}
	least, epochs := math.Inf(1), c.Epochs
	for tried, guess := range tries {
		judged := fitOption(option.Validation, "", func(trial *config) string {
			trial.restarts, trial.strict = 1, false
			trial.save, trial.resume, trial.checkpoints = nil, nil, nil
			trial.judgeEnd(epochs, guess)
			trial.Updates = c.Updates
			if tell := trial.progress; tell != nil {
				trial.progress = func(p Progress) error {
					if p.Phase != PhaseEpochs {
						p.Done = 0
					}
					done := (float64(tried) + p.Done) / float64(len(tries))
					return tell(Progress{Phase: PhaseChoice, Done: done})
				}
			}
			return ""
		})
		trial, err := FitNMF(ctx, x, rank, append(slices.Clip(opts), judged)...)
		switch err.(type) {
		case nil:
		case *OptionError, *DataError:
			return nil, nil
		default:
			return trial, err
		}
		loss := slices.Min(trial.Validation[1:])
		if loss >= least {
			break
		}
		least, c.guess, c.Epochs = loss, guess, 1+slices.Index(trial.Validation[1:], loss)
	}
	return nil, nil
}

// FitNMF factorises x, d features × n samples, finite, non-negative and at most 1e60,
// into U V of the given rank k >= 1, which may exceed d and n. x may be in any unit;
// negative values need a [FitQMF] or [FitQMFQ] under [WithLoss]([Frobenius]).
//
// Under [KL], the default, and [Frobenius] it lowers the loss by Newton's method with bounds and momentum
// (internal/nmf), whose epoch reads x twice; under other losses, which it does not take, for k > d+n, or by
// [WithUpdates], by the multiplicative updates of the textbooks with steps ahead (Hien, Leplat and Gillis
// 2024), of which half as many are enough. The loss, with its penalties and guesses, never rises by more than
// rounding.
//
// Entries of the factors may be 0. Under KL with cells hidden Newton's method keeps them at or above a
// hundredth of the mean of their component, so that the model does not hold values of unseen cells
// impossible.
//
// Defaults: KL, 20 epochs (100 of multiplicative updates), seed 1, StartAuto, no penalties, no patience, no
// validation, no restarts, nothing fixed. Where cells are missing, and epochs, patience, validation and
// factors are not given, a first fit without a tenth of the others finds after how many epochs these are
// predicted best, at most four times the default, and the fit ends there. Where features or samples have
// fewer than 16 visible cells a component, and x up to 2^16, it makes multiplicative updates, unless
// [WithUpdates] is given, and further fits find whether these cells are predicted better if a missing cell
// counts as 1, 10 or 100 % of a cell with the mean of its row. To go on until the loss stands still,
// WithEpochs(1000) and [WithPatience](3): by Newton's method the loss is then within 1e-6 of itself of what
// more epochs reach.
// [WithStart] takes StartAuto, StartUniform (factors uniform on sqrt(mean x/k)·[1/2,3/2)) and StartSVD.
// StartAuto is StartUniform; but under KL, where there are 8192 samples or more and up to 131072 features, it
// takes U from a default FitNMF of 2048 random samples (fewer above 32768 features) without penalty, and for
// each sample the mean of its V. Half as many epochs are the default then: their loss is about that of all of
// them from StartUniform, or lower (docs/measurements/nmf.md).
//
// Errors: [*DataError], [*ShapeError], [*OptionError]; where a row cannot be read a [*ReadError],
// without a model; when ctx ends or a progress function fails, the model so far with an error that
// wraps it. A component that has died out, all of its U or V zero, is a warning.
//
// Cost of an epoch of Newton's method: 18dnk flops, under Frobenius without missing cells
// 4dnk + 24k²(d+n); memory 48kn + 4dk + 17k² numbers beside x. Of an epoch of multiplicative updates:
// 8dnk flops, memory 19kn + 2dk numbers; under Frobenius 4dnk + 6k²d + 4k²n flops; where cells are missing,
// or under other losses, 12dnk flops and 34kn + 2dk numbers.
//
// Under KL and Frobenius without missing or held-out cells, zeros of rows that are mostly zero cost nothing:
// an epoch over a [*Sparse] with z cells that are not 0 takes time for k z + k(d+n), or for k z + k²(d+n)
// under Frobenius, and none for all dn cells. The start and the checks of x read all of x once. This way
// takes up to (k+7)(2+w) n + 14wn numbers more with w workers, under KL with Newton's method twice as many.
func FitNMF(ctx context.Context, x Rows, rank int, opts ...FitOption) (*NMF, error) {
	c := nmfDefaults()
	t, err := open(ctx, section.NMF, option.FitNMF, &c, x, rank, opts)
	if err != nil {
		return nil, err
	}
	if err := c.settleNMF(t.Cells.D, t.Cells.N, rank); err != nil {
		return nil, err
	}
	if t.Cells.Visible < t.Cells.D*t.Cells.N && c.endIsOpen() {
		if trial, err := c.chooseEnd(ctx, t.Cells, x, rank, opts); err != nil {
			return trial, err
		}
	}
	t.Cells.Guess = c.guess
	m, err := t.drive(ctx, nmf.Pieces, new(NMF), func(run fit.Run) fit.Algorithm {
		return qmf.FitNMF(t.Cells, rank, &c.Settings, run)
	})
	fitted, _ := m.(*NMF)
	return fitted, err
}

func (*NMF) fitted(made any, s *qmf.Settings) fitted {
	of := made.(*qmf.NMF)
	m := &NMF{factorisationOf(&of.Fitted, s)}
	m.prior = of.Prior
	return m
}

// toUserUnits brings a model of x' to the units of x, and sets its warnings.
func (m *NMF) toUserUnits(u *fit.Units) {
	m.Warnings = deadComponents(m.U, m.V)
	if u.All != 0 {
		for _, f := range []Mat{m.U, m.V} {
			for i := range f.Data {
				f.Data[i] *= u.Root()
			}
		}
	}
	m.prior.L1 = penaltyIn(-u.All, m.prior.L1, m.divergence(), 1)
	m.prior.L2 = penaltyIn(-u.All, m.prior.L2, m.divergence(), 2)
	u.Losses(m.divergence(), m.History)
	u.Losses(m.divergence(), m.Validation)
}

// objective is the loss by which the best of several fits is chosen: that on held-out cells where
// there are any, otherwise that on the visible cells with the penalty.
func (m *NMF) objective(c *qmf.Settings) float64 {
	loss := m.judged()
	if m.Validation == nil {
		d, n := m.Dims()
		loss += c.Penalties.Of(m.U.Data, m.V.Data, d, n)
	}
	return loss
}

// deadComponents returns a warning for each component whose column of U or row of V is all zero.
func deadComponents(u, v Mat) (warnings []error) {
	for c := range u.Cols {
		aliveU, aliveV := false, false
		for i := 0; i < u.Rows && !aliveU; i++ {
			aliveU = u.At(i, c) > 0
		}
		for _, x := range v.Row(c) {
			aliveV = aliveV || x > 0
		}
		if !aliveU || !aliveV {
			warnings = append(warnings, &DataError{Row: -1, Col: c, Value: 0,
				Problem: "this component has died out: fewer would do, or another start"})
		}
	}
	return warnings
}

// Reconstruct returns UV, d × n. Cost: 2dnk flops.
func (m *NMF) Reconstruct() Mat {
	fill, err := m.filler(context.Background())
	if err != nil {
		return Mat{}
	}
	return fill.matrix(m.Dims())
}

// usable reports fields that are not as the model was made, or make no NMF.
func (m *NMF) usable() error {
	if m.seals == nil {
		return m.byHand()
	}
	return usable(m)
}

func (m *NMF) filler(context.Context) (filler, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	return func(row []float64, i int) { product(row, m.U.Row(i), m.V) }, nil
}

// MarshalBinary returns the model as a file. Errors: [*ShapeError] and [*DataError] for a field that
// the caller has given another size or another number.
func (m *NMF) MarshalBinary() ([]byte, error) {
	if m.seals != nil {
		return fileOf(m)
	}
	if err := m.byHand(); err != nil {
		return nil, err
	}
	of := NMF{Factorisation{U: m.U, V: m.V, loss: m.loss}} // a history that no fit made is not written
	return of.encode(), nil
}

func (m *NMF) encode() []byte { return section.Encode(section.NMF, m.sections(0, 0)) }

// UnmarshalBinary makes m the model in data, or returns a [*FormatError] and
// leaves m as it was.
func (m *NMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, section.NMF)
	if err != nil {
		return err
	}
	var n NMF
	if err := f.common(&n.Factorisation, 0); err != nil {
		return err
	}
	*m = n
	sealFields(m)
	return nil
}

func (m *NMF) fields() (used, told []field) {
	return []field{{"U", m.U}, {"V", m.V}}, m.told()
}

func (m *NMF) readable() ([]byte, error) {
	file := m.encode()
	return file, new(NMF).UnmarshalBinary(file)
}
