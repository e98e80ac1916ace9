package bqmf

// This file holds the second stage (stage.go) as a model has it: what it says of cells, and its numbers in a
// file.

import (
	"math"
	"math/bits"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/section"
)

// Stage is the second stage of all rows.
type Stage struct {
	Rows []StageRow
	part [][]float64 // of each row with a stage Pad(N): Σ of its regressions times their weights
	// what radial regressors are about: of each row of the matrix A at some samples
	about [][]float64
	// a bit for each observed cell, words words a row
	observed []uint64
	words    int
}

// StageRow is that of a row. The mean of a cell is
//
//	Keep F_ij + Constant + Σ_l Weights_l A_lj + Σ_r About_r exp(-Σ_l Metric_l (A_lj - A_lr)²).
//
// A row without a stage has Keep 1.
type StageRow struct {
	Keep, Constant, Shrink float64
	Of                     []int32 // rows of the matrix
	Weights                []float64
	About, Metric          []float64
}

// shrinks fills to with the factor of the variance of each cell of row i.
func (m *Stage) shrinks(to []float64, i int) {
	for j := range to {
		to[j] = 1
	}
	if m == nil || m.part[i] == nil {
		return
	}
	r := &m.Rows[i]
	all, gain := r.squares()
	for j := range to {
		to[j] = squareOf(r.Shrink)
	}
	for h, l := range r.Of {
		lost := float64(gain * (squareOf(r.Weights[h]) / all))
		for w, seen := range m.observed[int(l)*m.words : (int(l)+1)*m.words] {
			for hidden := ^seen; hidden != 0; hidden &= hidden - 1 {
				if j := 64*w + bits.TrailingZeros64(hidden); j < len(to) {
					to[j] += lost
				}
			}
		}
	}
}

// squares returns Σ Weights², at least the smallest number, and by how much they make the variance smaller.
func (r *StageRow) squares() (all, gain float64) {
	for _, w := range r.Weights {
		all += float64(w * w)
	}
	return max(all, math.SmallestNonzeroFloat64), 1 - squareOf(r.Shrink)
}

// shrink returns the factor of the variance of a cell of a new sample y, NaN where it is hidden.
func (r *StageRow) shrink(y []float64) float64 {
	all, gain := r.squares()
	v := squareOf(r.Shrink)
	for h, l := range r.Of {
		if t := y[l]; t != t {
			v += float64(gain * (squareOf(r.Weights[h]) / all))
		}
	}
	return v
}

// keep is the share of the factors in the mean of a cell.
func (m *Stage) keep(i int) float64 {
	if m == nil {
		return 1
	}
	return m.Rows[i].Keep
}

// mean returns the mean of a cell of which the factors say so.
func (m *Stage) mean(i, j int, factors float64) float64 {
	if m == nil || m.part[i] == nil {
		return factors
	}
	return float64(m.Rows[i].Keep*factors) + m.part[i][j]
}

// predict returns the mean of a cell of row i of a new sample, and the factor of its variance, given what the
// factors say of it, A of the sample, and y, NaN where it is hidden.
func (m *Stage) predict(i int, factors float64, filled, y []float64) (mean, shrink float64) {
	if m == nil || m.part[i] == nil {
		return factors, 1
	}
	r := &m.Rows[i]
	mean = float64(r.Keep*factors) + r.Constant
	for h, l := range r.Of {
		mean += float64(r.Weights[h] * filled[l])
	}
	for h, b := range r.About {
		square := 0.0
		for l, g := range r.Metric {
			if g > 0 {
				square += float64(g * squareOf(filled[l]-m.about[l][h]))
			}
		}
		mean += float64(b * elem.Exp(-square))
	}
	return mean, r.shrink(y)
}

// settled returns m once all rows are made, without what no row needs.
func (m *Stage) settled() *Stage {
	if !slices.ContainsFunc(m.Rows, func(r StageRow) bool { return len(r.About) > 0 }) {
		m.about = nil
	}
	return m
}

// sees tells whether a cell was observed, true for nil.
func (m *Stage) sees(i, j int) bool {
	return m == nil || m.observed[i*m.words+j/64]>>(j%64)&1 == 1
}

// see makes a cell an observed one.
func (m *Stage) see(i, j int) { m.observed[i*m.words+j/64] |= 1 << (j % 64) }

// encode returns the stage as numbers, none for nil. The words are, of each row, 1 where it has a stage, how
// many rows it is told by and which, and how many samples it is about; then the observed cells. The numbers
// are, of each row with a stage, Keep, Constant, Shrink, Weights, About, Metric where it has About, and part;
// and about.
func (m *Stage) encode(columns int) (words []uint64, numbers [][]float64) {
	if m == nil {
		return nil, nil
	}
	for i := range m.Rows {
		r := &m.Rows[i]
		if m.part[i] == nil {
			words = append(words, 0)
			continue
		}
		words = append(words, 1, uint64(len(r.Of)))
		for _, l := range r.Of {
			words = append(words, uint64(l))
		}
		words = append(words, uint64(len(r.About)))
		numbers = append(numbers, []float64{r.Keep, r.Constant, r.Shrink}, r.Weights, r.About,
			r.Metric, m.part[i][:columns])
	}
	return append(words, m.observed...), append(numbers, m.about...)
}

// stageReader takes what encode returned apart; short tells that there was less than was asked for.
type stageReader struct {
	words   []uint64
	numbers []float64
	short   bool
}

func (r *stageReader) word() (v uint64) {
	if len(r.words) == 0 {
		r.short = true
		return 0
	}
	v, r.words = r.words[0], r.words[1:]
	return v
}

func (r *stageReader) floats(n int) (v []float64) {
	if n > len(r.numbers) {
		r.short = true
		return make([]float64, n)
	}
	v, r.numbers = r.numbers[:n:n], r.numbers[n:]
	return v
}

// readStage reads what encode returned, for any numbers.
func (p *Posterior) readStage(f *section.File) error {
	words, numbers, err := readCorrection(f, "STGW", "STGF")
	if err != nil || len(words) == 0 && len(numbers) == 0 {
		return err
	}
	r := &stageReader{words: words, numbers: numbers}
	m := &Stage{Rows: make([]StageRow, p.D), part: make([][]float64, p.D), words: (p.N + 63) / 64}
	samples := 0
	for i := range m.Rows {
		row := &m.Rows[i]
		row.Keep, row.Shrink = 1, 1
		if r.word() == 0 {
			continue
		}
		of := r.word()
		if of > stageMost || !(p.Tau[i] > 0) {
			return f.Fail("STGW", "a row has too many others")
		}
		for range of {
			l := r.word()
			if l >= uint64(p.D) || l == uint64(i) {
				return f.Fail("STGW", "a row is out of range")
			}
			row.Of = append(row.Of, int32(l))
		}
		about := r.word()
		if about > radialMost || about > 0 && samples > 0 && int(about) != samples {
			return f.Fail("STGW", "a number of samples is out of range")
		}
		samples = max(samples, int(about))
		first := r.floats(3)
		row.Keep, row.Constant, row.Shrink = first[0], first[1], first[2]
		row.Weights, row.About = r.floats(int(of)), r.floats(int(about))
		if about > 0 {
			row.Metric = r.floats(p.D)
			for l, g := range row.Metric {
				if !(g >= 0) || g > 0 && !(p.Tau[l] > 0) {
					return f.Fail("STGF", "a weight of distances is out of range")
				}
			}
		}
		if !(row.Keep >= 0 && row.Keep < 1 && row.Shrink >= 0 && row.Shrink <= 1) {
			return f.Fail("STGF", "a share is out of range")
		}
		if len(r.numbers) < p.N {
			return f.Fail("STGF", "wrong length")
		}
		m.part[i] = make([]float64, kernel.Pad(p.N))
		copy(m.part[i], r.floats(p.N))
	}
	if samples > 0 {
		m.about = make([][]float64, p.D)
		for i, t := range p.Tau {
			if t > 0 {
				m.about[i] = r.floats(samples)
			}
		}
	}
	if m.observed = r.words; r.short || len(r.words) != p.D*m.words || len(r.numbers) > 0 {
		return f.Fail("STGW", "wrong length")
	}
	p.Stage = m.settled()
	return nil
}
