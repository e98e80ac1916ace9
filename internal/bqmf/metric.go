package bqmf

// This file holds the radial regressors of the second stage (stage.go), and how a row learns in which other
// rows samples must be near each other to say something of it.
//
// Cost: 4drn_p flops for a turn, r = radialLeast, beside that of a regression, and 2drn_p for all samples.

import (
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// metric is that of a row: refs are the samples that its regressors are about, and the weights are g/(2cδ) of
// each active row once these are made.
type metric struct {
	refs    []int
	weights []float64
	// scratch: a number for each of refs and each row; four lines; Σ_l g_l A_lj² as the row sees it, and of
	// each of refs as it is
	coefs, parts, squares, about []float64
}

func newMetric(a *pool.Arena, s *stager) *metric {
	if s.refs == nil {
		return nil
	}
	return &metric{weights: a.Floats(s.lines), coefs: a.Floats(len(s.refs), max(s.lines, 4)),
		parts: a.Floats(4, s.np), squares: a.Floats(s.np), about: a.Floats(len(s.refs))}
}

// about makes the regressors of the row taken radial ones of a length, and learns its metric.
func (s *stager) about(r *stageRoom, length float64) {
	m := r.metric
	for l := range m.weights {
		m.weights[l] = 1
	}
	m.weights[r.row] = 0
	few := min(radialLeast, len(s.refs))
	for range metricTurns {
		m.refs = m.refs[:0]
		for h := range few {
			m.refs = append(m.refs, s.refs[h*len(s.refs)/few])
		}
		s.radials(r, length)
		s.moments(r)
		s.turn(r, r.solve(&recipe{size: few, ridge: metricRidge}))
	}
	m.refs = append(m.refs[:0], s.refs...)
	s.radials(r, length)
}

// radials fills raw with the regressors of a length about the metric's refs.
func (s *stager) radials(r *stageRoom, length float64) {
	m, rows := r.metric, s.lines
	r.size = len(m.refs)
	clear(m.squares)
	clear(m.about)
	for l, g := range m.weights {
		line := s.line(s.filled, l)
		kernel.Multiply(r.shift, s.line(r.view, l), s.line(r.view, l))
		kernel.Accumulate(m.squares, []float64{g}, r.shift)
		for h, ref := range m.refs {
			m.coefs[h*rows+l] = float64(-2 * g * line[ref])
			m.about[h] += float64(g * squareOf(line[ref]))
		}
	}
	raw, mean := r.raw[:r.size*s.np], 0.0
	kernel.CombineRows(raw, m.coefs[:r.size*rows], r.view, r.size)
	for h := range m.refs {
		to := s.line(raw, h)
		add(to, m.squares)
		kernel.Shift(to, to, -m.about[h])
		clear(to[s.q.n:])
		mean += kernel.Sum(to) / float64(s.q.n*r.size)
	}
	scale := 1 / (2 * length * max(mean, 1e-12))
	kernel.Scale(raw, raw, -scale)
	kernel.Exp(raw, raw)
	for l := range m.weights {
		m.weights[l] *= scale
	}
}

// turn takes the weights to the mean squares over S of the derivatives of a regression β by them,
// 2 g_l Σ_r β_r K_jr (A_lr - A_lj), but for a factor.
func (s *stager) turn(r *stageRoom, beta []float64) {
	m, raw := r.metric, r.raw[:r.size*s.np]
	kernel.Combine(r.fit, beta, raw)
	for from := 0; from < s.lines; from += 4 {
		rows := min(4, s.lines-from)
		for h := range rows {
			line := s.line(s.filled, from+h)
			for c, ref := range m.refs {
				m.coefs[h*r.size+c] = float64(beta[c] * line[ref])
			}
		}
		kernel.CombineRows(m.parts[:rows*s.np], m.coefs[:rows*r.size], raw, rows)
		for h := range rows {
			line, part, sum := s.line(r.view, from+h), s.line(m.parts, h), 0.0
			for j, is := range r.on {
				sum += float64(is * squareOf(part[j]-float64(line[j]*r.fit[j])))
			}
			m.weights[from+h] *= float64(m.weights[from+h] * sum)
		}
	}
	most := slices.Max(m.weights)
	for l, g := range m.weights {
		if m.weights[l] = max(g/max(most, 1e-300), leastMetric); l == r.row {
			m.weights[l] = 0
		}
	}
}
