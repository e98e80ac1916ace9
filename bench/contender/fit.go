package main

// This file makes fits. Times are those of the processor, so that other programs disturb little.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/settings"
)

// fit is a fit of a d × n matrix. Its numbers are little-endian doubles in a file, or drawn.
type fit struct {
	D, N, K int
	X, U, V string // files of all cells and of factors to start from; "" for none
	// a matrix in sparse rows: the nonzero cells of the rows before each row (d+1 numbers), columns, values
	Starts, Columns, Values string
	Density                 float64 // of drawn counts, where no file is given
	// Holder is how the matrix is held: "" as it is given, "full" for sparse rows in full, "positive" for
	// these with 0.01 added to each cell.
	Holder string

	Method  string // "NMF" or "QMF"
	Epochs  int
	Seed    uint64
	Updates string  // of an NMF: "newton" (the default) or "multiplicative"
	Beta    float64 // 0: KL
	Levels  int     // of a QMF, 0 for the default
	// Options of a QMF: "" for the defaults; "free": the paper's ε without shrinkage; "scores": the same from
	// StartScores; "paper": the paper's settings with the penalty of the published code.
	Settings string
	Warm     float64 // seconds of short fits before the fit, so that its memory has been touched
	Shards   int     // 0: on one machine
}

// course is what a fit has taken.
type course struct {
	Seconds  []float64 // the processor's, from the call to the end of each epoch
	Losses   []float64 // after each epoch
	Total    float64   // seconds of the whole call
	Nonzero  int
	Memory   float64 // the most that was resident during the fit beyond what was before, in bytes
	MemoryOf float64 // what MemoryOf says
	Shards   *split  `json:",omitempty"`
}

// numbers reads the doubles of a file.
func numbers(name string) ([]float64, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	v := make([]float64, len(raw)/8)
	_, err = binary.Decode(raw, binary.LittleEndian, v)
	return v, err
}

func matrix(rows, cols int, name string) (quantmf.Mat, error) {
	v, err := numbers(name)
	return quantmf.Mat{Rows: rows, Cols: cols, Stride: cols, Data: v}, err
}

// sparse reads or draws sparse rows.
func (f *fit) sparse() (*quantmf.Sparse, error) {
	if f.Starts == "" {
		return counts(f.D, f.N, f.Density)
	}
	var parts [3][]float64
	for i, name := range []string{f.Starts, f.Columns, f.Values} {
		var err error
		if parts[i], err = numbers(name); err != nil {
			return nil, err
		}
	}
	starts, columns := make([]int, len(parts[0])), make([]uint32, len(parts[1]))
	for i, v := range parts[0] {
		starts[i] = int(v)
	}
	for i, v := range parts[1] {
		columns[i] = uint32(v)
	}
	return quantmf.NewSparse(f.N, starts, columns, parts[2])
}

// rows returns the matrix and the number of its cells that are not zero.
func (f *fit) rows() (quantmf.Rows, int, error) {
	if f.X != "" {
		m, err := matrix(f.D, f.N, f.X)
		return m, f.D * f.N, err
	}
	s, err := f.sparse()
	if err != nil || f.Holder == "" {
		return s, s.Listed(), err
	}
	m := quantmf.NewMat(f.D, f.N)
	for i := range f.D {
		if err := s.ReadRow(m.Row(i), i); err != nil {
			return nil, 0, err
		}
		if f.Holder == "positive" {
			for j := range m.Row(i) {
				m.Row(i)[j] += 0.01
			}
		}
	}
	return m, s.Listed(), nil
}

// counts draws d × n counts of features whose rates differ by orders of magnitude; about the share density of
// them is not zero.
func counts(d, n int, density float64) (*quantmf.Sparse, error) {
	r := rand.New(rand.NewPCG(1, 2))
	start, index, values := make([]int, 1, d+1), []uint32{}, []float32{}
	for range d {
		// its mean is density: exp of a normal number has mean √e
		share := min(0.9, 0.6*density*math.Exp(r.NormFloat64()))
		mean := 0.3 * math.Exp(1.5*r.NormFloat64())
		for j := 0; ; j++ {
			if j += int(math.Log(1-r.Float64()) / math.Log(1-share)); j >= n {
				break
			}
			index = append(index, uint32(j))
			values = append(values, float32(1+math.Floor(mean*r.ExpFloat64())))
		}
		start = append(start, len(index))
	}
	return quantmf.NewSparse(n, start, index, values)
}

func (f *fit) options() (method quantmf.Method, opts []quantmf.FitOption, err error) {
	opts = []quantmf.FitOption{quantmf.WithWorkers(1), quantmf.WithEpochs(f.Epochs)}
	if f.Seed > 0 {
		opts = append(opts, quantmf.WithSeed(f.Seed))
	}
	if f.U != "" {
		u, err := matrix(f.D, f.K, f.U)
		if err != nil {
			return 0, nil, err
		}
		v, err := matrix(f.K, f.N, f.V)
		if err != nil {
			return 0, nil, err
		}
		opts = append(opts, quantmf.WithInit(u, v))
	}
	if f.Method == "NMF" {
		if f.Beta != 0 {
			opts = append(opts, quantmf.WithLoss(quantmf.Beta(f.Beta)))
		}
		updates := quantmf.UpdatesNewton
		if f.Updates == "multiplicative" {
			updates = quantmf.UpdatesMultiplicative
		}
		return quantmf.MethodNMF, append(opts, quantmf.WithUpdates(updates)), nil
	}
	if f.Levels > 0 {
		opts = append(opts, quantmf.WithLevels(f.Levels))
	}
	switch f.Settings {
	case "free", "scores":
		opts = append(opts, quantmf.WithEpsilon(0.01), quantmf.WithShrinkage(0))
		if f.Settings == "scores" {
			opts = append(opts, quantmf.WithStart(quantmf.StartScores))
		}
	case "paper":
		opts = append(opts, quantmf.WithEpsilon(0.01), quantmf.WithStart(quantmf.StartUniform),
			quantmf.WithEnds(quantmf.EndsPinned), quantmf.WithSchedule(quantmf.ScheduleConstant),
			quantmf.WithLearningRate(0.01), quantmf.WithSquash(quantmf.SquashLogistic),
			quantmf.WithBatch(1<<30), quantmf.WithPenalty(0.01))
	}
	return quantmf.MethodQMF, opts, nil
}

// memory is what MemoryOf says of the fit, in bytes beside the matrix.
func (f *fit) memory() (float64, error) {
	method, opts, err := f.options()
	if err != nil {
		return 0, err
	}
	told, err := quantmf.MemoryOf(method, f.D, f.N, f.K, opts...)
	if f.X != "" || f.Holder != "" {
		return float64(told.Fit), err
	}
	return float64(told.Rows), err
}

func (f *fit) run() (*course, error) {
	x, nonzero, err := f.rows()
	if err != nil {
		return nil, err
	}
	method, opts, err := f.options()
	if err != nil {
		return nil, err
	}
	c := &course{Nonzero: nonzero}
	if c.MemoryOf, err = f.memory(); err != nil {
		return nil, err
	}
	call := func(epochs int, more ...quantmf.FitOption) (history []float64, err error) {
		opts := append(append(opts, more...), quantmf.WithEpochs(epochs))
		m, err := quantmf.Fit(context.Background(), method, x, f.K, opts...)
		if err != nil {
			return nil, err
		}
		return settings.Factorisation(m).History, nil
	}
	for began := worked(); worked()-began < f.Warm; {
		if _, err := call(min(f.Epochs, 20)); err != nil {
			return nil, err
		}
	}
	debug.FreeOSMemory()
	clearPeak()
	before := resident("VmRSS")
	began := worked()
	if f.Shards > 0 {
		c.Shards, err = f.overShards(method, x, opts)
	} else {
		var history []float64
		history, err = call(f.Epochs, quantmf.WithProgress(func(p quantmf.Progress) error {
			if p.Phase == quantmf.PhaseEpochs && p.Epoch > len(c.Seconds) {
				c.Seconds = append(c.Seconds, worked()-began)
			}
			return nil
		}))
		if err == nil {
			c.Losses = history[1:]
		}
	}
	c.Total = worked() - began
	c.Memory = max(resident("VmHWM")-before, 0)
	if err == nil && f.Shards == 0 && len(c.Seconds) != f.Epochs {
		err = fmt.Errorf("there were %d epochs", len(c.Seconds))
	}
	return c, err
}
