package bqmf

// This file holds how a model learns from new samples without those of its fit. Given V of the fit, the
// posterior of u_i is all that the cells of the fit say of it: with P_i = S_i⁻¹, new samples j of noise ρ_j
// make of it
//
//	P_i' = P_i + τ_i Σ_j ρ_j B_j,   u_i' = P_i'⁻¹ (P_i u_i + τ_i Σ_j ρ_j Y_ij v_j),
//
// sums over the new cells that are observed, v_j and B_j being what Placer says of the sample. It takes as
// many rounds of placing and this as a posterior takes to settle. The noise of rows, the relevance, scales,
// maps and the second stage stay what they were.
//
// Cost: 2K³ a row and 2K² a new cell, in each round.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/pool"
)

// UpdateRounds are enough: a fourth one changes the loss of hidden cells by less than a thousandth.
const UpdateRounds = 3

// updateColumns is how many new samples are held at once.
const updateColumns = 64

// Update learns from new samples. A round is Begin, Add for blocks of samples, which need not be the same
// ones each time, and End.
type Update struct {
	from, to *Model // what is learnt stands in the second
	workers  *pool.Pool
	// set once: P_i and P_i u_i
	precision, pull []float64
	// each round: Σ_j ρ_j B_j and Σ_j ρ_j Y_ij v_j
	moments, sums []float64
	samples       []*Sample // of each worker
	// of the samples of a block: on the scales of the rows, of each row updateColumns; v and B; ρ
	y, v, back, rho []float64
	work            []*updateRoom
}

// updateRoom is the room of a worker.
type updateRoom struct {
	system
	x, packed, u []float64
	at           []uint32
}

// Update returns one that leaves m as it is.
func (m *Model) Update(p *pool.Pool) *Update {
	d, k, pp := m.D, m.K, Packed(m.K)
	of := *m.Posterior
	of.U, of.BU = slices.Clone(m.U), slices.Clone(m.BU)
	s := &Update{from: m, to: &Model{Posterior: &of, Curves: m.Curves}, workers: p,
		precision: make([]float64, d*pp), pull: make([]float64, d*k),
		moments: make([]float64, d*pp), sums: make([]float64, d*k), samples: make([]*Sample, p.Workers()),
		y: make([]float64, d*updateColumns), v: make([]float64, updateColumns*k),
		back: make([]float64, updateColumns*pp), rho: make([]float64, updateColumns),
		work: make([]*updateRoom, p.Workers())}
	p.Do(d, func(w, i int) {
		r := s.room(w)
		u := m.rowU(i)
		packOuter(r.packed, u)
		for c, b := range m.packU(i) {
			r.packed[c] = b - r.packed[c]
		}
		r.invert(s.precision[i*pp:(i+1)*pp], s.pull[i*k:(i+1)*k], u)
	})
	return s
}

func (s *Update) room(w int) *updateRoom {
	if s.work[w] == nil {
		k := s.from.K
		s.work[w] = &updateRoom{system: newSystem(nil, k), x: make([]float64, s.from.D),
			packed: make([]float64, Packed(k)), u: make([]float64, k)}
	}
	return s.work[w]
}

// invert fills inverse with that of packed, and z with its product with b.
func (r *updateRoom) invert(inverse, z, b []float64) {
	r.load(r.packed, 1)
	copy(r.border(), b)
	r.solve()
	copy(z, r.border())
	clear(r.border())
	r.pack(inverse)
}

// Begin begins a round.
func (s *Update) Begin() {
	clear(s.moments)
	clear(s.sums)
	clear(s.samples)
	base := s.to.Sample(false, false)
	for w := range s.samples {
		s.samples[w] = base.Share()
	}
}

// Add adds n samples; column fills x with the j-th, NaN where a cell is missing. When the workers' context
// ends, what is learnt has no meaning.
func (s *Update) Add(n int, column func(x []float64, j int)) {
	k, pp := s.from.K, Packed(s.from.K)
	for from := 0; from < n && s.workers.Err() == nil; from += updateColumns {
		count := min(updateColumns, n-from)
		s.workers.Do(count, func(w, j int) {
			of, x := s.samples[w], s.room(w).x
			column(x, from+j)
			copy(s.v[j*k:(j+1)*k], of.Place(x))
			copy(s.back[j*pp:(j+1)*pp], of.placer.back)
			s.rho[j] = of.rho
			for i, y := range of.y {
				s.y[i*updateColumns+j] = y
			}
		})
		s.workers.Do(s.from.D, func(w, i int) {
			r := s.room(w)
			r.at = r.at[:0]
			sum := s.sums[i*k : (i+1)*k]
			for j, y := range s.y[i*updateColumns:][:count] {
				if y == y {
					r.at = append(r.at, uint32(j))
					a := float64(s.rho[j] * y)
					for c, v := range s.v[j*k : (j+1)*k] {
						sum[c] += float64(a * v)
					}
				}
			}
			to := s.moments[i*pp : (i+1)*pp]
			copy(r.packed, to)
			kernel.AccumulateFrom(to, r.packed, s.rho, s.back, r.at, pp)
		})
	}
}

// End ends a round. A row of which the moments are none, from a file, stays as it was.
func (s *Update) End() {
	k, pp := s.from.K, Packed(s.from.K)
	s.workers.Do(s.from.D, func(w, i int) {
		r, tau := s.room(w), s.from.Tau[i]
		if !(tau > 0) {
			return
		}
		for c, p := range s.precision[i*pp : (i+1)*pp] {
			r.packed[c] = p + float64(tau*s.moments[i*pp+c])
		}
		for c, p := range s.pull[i*k : (i+1)*k] {
			r.u[c] = p + float64(tau*s.sums[i*k+c])
		}
		r.load(r.packed, 1)
		copy(r.border(), r.u)
		r.solve()
		r.pack(r.packed)
		if !within(r.border()) || !within(r.packed) {
			return
		}
		copy(s.to.rowU(i), r.border())
		copy(s.to.packU(i), r.packed)
	})
}

// Model returns what is learnt. The places of samples that are alike are by U, as a file of the model has
// them.
func (s *Update) Model() *Model {
	s.to.Alike = s.to.placed(s.from.Alike, s.workers)
	return s.to
}

// within tells whether numbers are in the range of those of a model.
func within(v []float64) bool {
	for _, t := range v {
		if !(math.Abs(t) <= limit.Moment) {
			return false
		}
	}
	return true
}
