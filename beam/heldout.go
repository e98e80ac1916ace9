package beam

// This file compares trials by hidden cells, as [quantmf.HeldOut] does. Each trial is fitted once in each
// repeat. These fits do not depend on each other, so the graph is fits → GroupByKey → loss. The matrix and
// the losses are blobs. The name of the matrix is the digest of its bytes, that of a loss the digest of the
// matrix and the fit.

import (
	"context"
	"errors"
	"fmt"
	"math"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/section"
)

func init() {
	sdk.RegisterDoFn(&heldOut{})
}

// Trial is one way to fit, for [HeldOut].
type Trial struct {
	Rank int
	Spec string // an argument of the fit function, such as options
}

// FitFunc fits x with the options that spec stands for, and then the given ones. It must return the same
// model in every process.
type FitFunc func(ctx context.Context, x quantmf.Rows, rank int, spec string,
	opts ...quantmf.FitOption) (quantmf.Model, error)

var fitFuncs = map[string]FitFunc{}

// RegisterFit gives a function the name by which workers find it. Call it in an init function, in the program
// of the driver and in that of the workers.
func RegisterFit(name string, fit FitFunc) { fitFuncs[name] = fit }

// HeldOut fits each trial masks.Repeats times, each time with other cells of x hidden, by the function of
// that name ([RegisterFit]). It returns for each trial how well its models predict the hidden cells, with the
// same bits as [quantmf.HeldOut]. One worker of the runner makes each fit. All trials must have the same
// loss, which is not checked. HeldOut leaves the matrix and the losses in the store, so the same call does
// not make a fit again.
func HeldOut(ctx context.Context, store *Store, x quantmf.Mat, fit string, trials []Trial,
	masks quantmf.Masks, run Run) ([]quantmf.Prediction, error) {
	if fitFuncs[fit] == nil {
		return nil, fmt.Errorf("beam: no function is registered as %q", fit)
	}
	if err := run.settle(); err != nil {
		return nil, err
	}
	if masks.Repeats == 0 {
		masks.Repeats = 5
	}
	if masks.Repeats < 1 || masks.First < 0 { // the package reports it
		_, err := quantmf.HeldOut(ctx, x, quantmf.FitNMF, nil, masks)
		return nil, err
	}
	matrix, err := keep(store, "x", marshalMat(x))
	if err != nil {
		return nil, err
	}
	work := &heldOut{Store: store.folder, Matrix: matrix, Features: x.Rows, Fit: fit, Masks: masks,
		Trials: trials}
	there := func(fit int) error { _, err := work.prediction(store, fit); return err }
	if err := untilThere(ctx, run, len(trials)*masks.Repeats, there, work); err != nil {
		return nil, err
	}
	out := make([]quantmf.Prediction, len(trials))
	for fit := range len(trials) * masks.Repeats {
		p, err := work.prediction(store, fit)
		if err != nil {
			return nil, err
		}
		trial := fit / masks.Repeats
		out[trial] = out[trial].Join(p)
	}
	return out, nil
}

// heldOut makes the fits of a bundle side by side, as many at a time as there are processors. Each fit uses
// one processor. Fit i is that of trial i/Repeats under mask First + i%Repeats.
type heldOut struct {
	Store, Matrix, Fit string
	Features           int // of the matrix
	Masks              quantmf.Masks
	Trials             []Trial

	fits []int
}

func (f *heldOut) StartBundle() { f.fits = f.fits[:0] }

func (f *heldOut) ProcessElement(fit int, _ func(*int) bool) { f.fits = append(f.fits, fit) }

func (f *heldOut) FinishBundle(ctx context.Context) error {
	if len(f.fits) == 0 {
		return nil
	}
	store, err := OpenStore(ctx, f.Store)
	if err != nil {
		return err
	}
	defer store.Close()
	x, err := getMat(store, f.Matrix)
	if err != nil {
		return err
	}
	return sideBySide(f.fits, func(fit int) error {
		if err := f.make(ctx, store, x, fit); err != nil {
			return fmt.Errorf("rank %d, repeat %d: %w", f.Trials[fit/f.Masks.Repeats].Rank, f.mask(fit), err)
		}
		return nil
	})
}

// make makes a fit and writes how well it predicts, unless that is there already.
func (f *heldOut) make(ctx context.Context, store *Store, x quantmf.Mat, fit int) error {
	if _, err := f.prediction(store, fit); err == nil {
		return nil
	}
	of := fitFuncs[f.Fit]
	if of == nil {
		return fmt.Errorf("no function is registered as %q in this worker", f.Fit)
	}
	trial, mask := f.Trials[fit/f.Masks.Repeats], f.Masks
	mask.First, mask.Repeats = f.mask(fit), 1
	p, err := quantmf.HeldOut(ctx, x,
		func(ctx context.Context, x quantmf.Rows, rank int, opts ...quantmf.FitOption) (quantmf.Model,
			error) {
			return of(ctx, x, rank, trial.Spec, opts...)
		}, []quantmf.Trial{{Rank: trial.Rank}}, mask)
	if err != nil {
		return err
	}
	numbers := []float64{p[0].Losses[0], p[0].Relative[0], p[0].Baseline[0], p[0].BaselineRelative[0]}
	for _, row := range p[0].Rows {
		numbers = append(numbers, float64(row.Cells), row.Loss, row.Baseline)
	}
	return store.Put(f.name(fit),
		section.Encode(kindLoss, []section.Section{section.Floats("loss", numbers)}))
}

// mask is the number of the mask of a fit.
func (f *heldOut) mask(fit int) int { return f.Masks.First + fit%f.Masks.Repeats }

// name returns the name of what a fit predicts.
func (f *heldOut) name(fit int) string {
	trial := f.Trials[fit/f.Masks.Repeats]
	return digest("loss", fmt.Appendf(nil, "%s %q %x %d %d %q %d", f.Matrix, f.Fit,
		math.Float64bits(f.Masks.Share), f.Masks.Seed, trial.Rank, trial.Spec, f.mask(fit)))
}

// kindLoss is the kind of the file of what a fit predicts.
const kindLoss = 65

// prediction reads what a fit predicts.
func (f *heldOut) prediction(store *Store, fit int) (p quantmf.Prediction, err error) {
	name := f.name(fit)
	data, err := store.need(name)
	if err != nil {
		return p, err
	}
	file, err := sections(data, kindLoss, "the loss of a fit", "loss")
	var v []float64
	if err == nil {
		v, err = file.Floats("loss", int64(4+3*f.Features), 0, math.MaxFloat64)
	}
	if err != nil { // a damaged loss is made again
		return p, store.fault(name, errors.Join(errAbsent, err))
	}
	p = quantmf.Prediction{Losses: v[0:1], Relative: v[1:2], Baseline: v[2:3], BaselineRelative: v[3:4]}
	for v = v[4:]; len(v) > 0; v = v[3:] {
		p.Rows = append(p.Rows, quantmf.HiddenRow{Cells: int(v[0]), Loss: v[1], Baseline: v[2]})
	}
	return p, nil
}
