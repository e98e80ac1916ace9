// This file makes fits and keeps the course of their loss over epochs and over seconds.
package main

import (
	"math"
	"slices"
	"time"

	"github.com/quantmf/quantmf"
)

// trace is the course of a fit at some epochs.
type trace struct {
	Epoch   []int
	Loss    []float64
	Seconds []float64 // since the fit was called, its start included
}

// fitted has the methods of models that the experiments use.
type fitted interface {
	Reconstruct() quantmf.Mat
	Loss(quantmf.Rows) (float64, error)
}

// way is one way to fit, under the name that tables and figures give it.
type way struct {
	Name   string
	Method quantmf.Method
	Epochs int
	Opts   []quantmf.FitOption
}

// paperQMF are the paper's settings of QMF: start, pinned ends, a constant rate, all rows in one
// batch, ε, and the squash and penalty of the published code.
func paperQMF(levels int) []quantmf.FitOption {
	return []quantmf.FitOption{
		quantmf.WithStart(quantmf.StartUniform), quantmf.WithEnds(quantmf.EndsPinned),
		quantmf.WithSchedule(quantmf.ScheduleConstant), quantmf.WithLearningRate(0.01),
		quantmf.WithEpsilon(0.01), quantmf.WithLevels(levels), quantmf.WithSquash(quantmf.SquashLogistic),
		quantmf.WithBatch(1 << 30),
	}
}

// paperQMFQ are the paper's settings of QMFQ, which has neither batches nor a penalty.
func paperQMFQ(levels int, p quantmf.Projection) []quantmf.FitOption {
	return []quantmf.FitOption{
		quantmf.WithStart(quantmf.StartUniform), quantmf.WithEnds(quantmf.EndsPinned),
		quantmf.WithSchedule(quantmf.ScheduleConstant), quantmf.WithLearningRate(0.01),
		quantmf.WithEpsilon(0.01), quantmf.WithLevels(levels), quantmf.WithSquash(quantmf.SquashLogistic),
		quantmf.WithProjection(p),
	}
}

// fit fits x on one core and returns the model, its factors and its course.
func (w way) fit(s *session, x quantmf.Mat, k int, seed uint64) (m fitted, f *quantmf.Factorisation, t trace,
	err error) {
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
	switch w.Method {
	case quantmf.MethodNMF:
		var n *quantmf.NMF
		if n, err = quantmf.FitNMF(s.ctx, x, k, opts...); err == nil {
			m, f = n, &n.Factorisation
		}
	case quantmf.MethodQMF:
		var n *quantmf.QMF
		if n, err = quantmf.FitQMF(s.ctx, x, k, opts...); err == nil {
			m, f = n, &n.Factorisation
		}
	default:
		var n *quantmf.QMFQ
		if n, err = quantmf.FitQMFQ(s.ctx, x, k, opts...); err == nil {
			m, f = n, &n.Factorisation
		}
	}
	if err != nil {
		return nil, nil, t, err
	}
	if seconds[0] == 0 && len(seconds) > 1 {
		seconds[0] = seconds[1] / 2 // the progress did not report epoch 0
	}
	for _, e := range marks(len(f.History) - 1) {
		t.Epoch = append(t.Epoch, e)
		t.Loss = append(t.Loss, sig(f.History[e], 5))
		t.Seconds = append(t.Seconds, sig(seconds[e], 3))
	}
	return m, f, t, nil
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

func bandOf(name string, traces []trace) band {
	b := band{Name: name, Epoch: traces[0].Epoch}
	for i := range b.Epoch {
		var loss, second []float64
		for _, t := range traces {
			loss, second = append(loss, t.Loss[i]), append(second, t.Seconds[i])
		}
		b.Median = append(b.Median, sig(median(loss), 4))
		b.Low = append(b.Low, sig(slices.Min(loss), 4))
		b.High = append(b.High, sig(slices.Max(loss), 4))
		b.Second = append(b.Second, sig(median(second), 3))
	}
	for _, t := range traces {
		b.Final = append(b.Final, sig(t.Loss[len(t.Loss)-1], 4))
	}
	return b
}

// at returns the median loss after the given epochs, NaN where the fits were shorter.
func (b band) at(epoch int) float64 {
	for i, e := range b.Epoch {
		if e == epoch {
			return b.Median[i]
		}
	}
	return math.NaN()
}

// last returns the median loss at the end, NaN of an empty band.
func (b band) last() float64 {
	if len(b.Median) == 0 {
		return math.NaN()
	}
	return b.Median[len(b.Median)-1]
}

// find returns the band with a name, or an empty band.
func find(bands []band, name string) (b band, has bool) {
	for _, b := range bands {
		if b.Name == name {
			return b, true
		}
	}
	return band{Name: name}, false
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// cell returns a number as the text of a table, a dash for NaN.
func cell(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return g(v)
}
