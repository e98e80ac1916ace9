// This file makes fits and keeps the course of their loss over epochs and over seconds.
package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quantmf/quantmf"
	named "github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/paper/internal/report"
)

// trace is the course of a fit at some epochs.
type trace struct {
	Epoch   []int
	Loss    []float64
	Seconds []float64 // since the fit was called, its start included
}

// way is one way to fit, under the name that tables and figures give it.
type way struct {
	Name   string
	Method quantmf.Method
	Epochs int
	Opts   []quantmf.FitOption
}

// updates are the multiplicative updates of the paper's NMF.
var updates = []quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)}

// paperFit are the paper's settings of QMF and QMFQ: start, pinned ends, a constant rate, ε, and the squash
// of the published code.
func paperFit(levels int, more ...quantmf.FitOption) []quantmf.FitOption {
	return append([]quantmf.FitOption{quantmf.WithStart(quantmf.StartUniform),
		quantmf.WithEnds(quantmf.EndsPinned), quantmf.WithSchedule(quantmf.ScheduleConstant),
		quantmf.WithLearningRate(0.01), quantmf.WithEpsilon(0.01), quantmf.WithLevels(levels),
		quantmf.WithSquash(quantmf.SquashLogistic)}, more...)
}

// paperQMF are the paper's settings of QMF with 8 levels and all rows in one batch.
func paperQMF(more ...quantmf.FitOption) []quantmf.FitOption {
	return paperFit(8, append([]quantmf.FitOption{quantmf.WithBatch(1 << 30)}, more...)...)
}

// paperQMFQ are the paper's settings of QMFQ, which has neither batches nor a penalty.
func paperQMFQ(levels int, p quantmf.Projection) []quantmf.FitOption {
	return paperFit(levels, quantmf.WithProjection(p))
}

// ours are the defaults at the paper's ε without shrinkage.
func ours(more ...quantmf.FitOption) []quantmf.FitOption {
	return append([]quantmf.FitOption{quantmf.WithEpsilon(0.01), quantmf.WithShrinkage(0)}, more...)
}

// fit fits x on one core and returns the model and its course.
func (w way) fit(s *session, x quantmf.Mat, k int, seed uint64) (m quantmf.Model, t trace, err error) {
	began := time.Now()
	seconds := make([]float64, w.Epochs+1)
	opts := append(slices.Clone(w.Opts), quantmf.WithSeed(seed), quantmf.WithWorkers(1),
		quantmf.WithEpochs(w.Epochs),
		quantmf.WithProgress(func(p quantmf.Progress) error {
			if p.Phase == quantmf.PhaseEpochs && p.Epoch < len(seconds) {
				seconds[p.Epoch] = time.Since(began).Seconds()
			}
			return nil
		}))
	if m, err = quantmf.Fit(s.ctx, w.Method, x, k, opts...); err != nil {
		return nil, t, err
	}
	if seconds[0] == 0 && len(seconds) > 1 {
		seconds[0] = seconds[1] / 2 // the progress did not report epoch 0
	}
	history := named.Factorisation(m).History
	for _, e := range marks(len(history) - 1) {
		t.Epoch = append(t.Epoch, e)
		t.Loss = append(t.Loss, report.Round(history[e], 5))
		t.Seconds = append(t.Seconds, report.Round(seconds[e], 3))
	}
	return m, t, nil
}

// marks returns the epochs whose losses are kept of a fit of the given length: the first ten, then about
// twelve for each factor of ten, round numbers among them, and the last.
func marks(last int) []int {
	keep := []int{30, 100, 300, 1000, last}
	for e := 0; e <= min(10, last); e++ {
		keep = append(keep, e)
	}
	for f := 10.0; f < float64(last); f *= math.Pow(10, 1.0/12) {
		keep = append(keep, int(f))
	}
	slices.Sort(keep)
	keep = slices.Compact(keep)
	return slices.DeleteFunc(keep, func(e int) bool { return e > last })
}

// band holds the courses of several seeds: medians, lowest and highest.
type band struct {
	Name                      string
	Epoch                     []int
	Median, Low, High, Second []float64
	Final                     []float64 // the last loss of every seed
}

// bandOf fits a matrix for each seed, which may be the same for all.
func bandOf(s *session, of string, w way, k, seeds int, x func(seed uint64) quantmf.Mat) (band, error) {
	key := fmt.Sprintf("%s, %s, %d epochs, seed", of, w.Name, w.Epochs)
	traces, err := repeat(s, key, seeds, func(seed int) (trace, error) {
		_, t, err := w.fit(s, x(uint64(seed)), k, uint64(seed))
		return t, err
	})
	if err != nil {
		return band{}, err
	}
	return newBand(w.Name, traces), nil
}

func newBand(name string, traces []trace) band {
	b := band{Name: name, Epoch: traces[0].Epoch}
	for i := range b.Epoch {
		var loss, second []float64
		for _, t := range traces {
			loss, second = append(loss, t.Loss[i]), append(second, t.Seconds[i])
		}
		b.Median = append(b.Median, report.Round(median(loss), 4))
		b.Low = append(b.Low, report.Round(slices.Min(loss), 4))
		b.High = append(b.High, report.Round(slices.Max(loss), 4))
		b.Second = append(b.Second, report.Round(median(second), 3))
	}
	for _, t := range traces {
		b.Final = append(b.Final, report.Round(t.Loss[len(t.Loss)-1], 4))
	}
	return b
}

// at returns the median loss after the given epochs, NaN where the fits were shorter.
func (b band) at(epoch int) float64 {
	if i := slices.Index(b.Epoch, epoch); i >= 0 {
		return b.Median[i]
	}
	return math.NaN()
}

// last returns the median loss at the end, NaN of an empty band, and epochs their number.
func (b band) last() float64 {
	if len(b.Median) == 0 {
		return math.NaN()
	}
	return b.Median[len(b.Median)-1]
}

func (b band) epochs() int { return b.Epoch[len(b.Epoch)-1] }

// find returns the band with a name, or an empty band, of which charts draw nothing.
func find(bands []band, name string) band {
	i := slices.IndexFunc(bands, func(b band) bool { return b.Name == name })
	if i < 0 {
		return band{}
	}
	return bands[i]
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return math.NaN()
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
