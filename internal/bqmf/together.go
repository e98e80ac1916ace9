package bqmf

// This file holds what hidden cells lose by being hidden together, as where an assay was not done for some
// samples. What the factors say of such a cell has the variance uᵀC_j u of a v_j that the other rows alone
// have found, and C_j takes the noise of all rows for independent. It is not: what the factors leave out of a
// row is alike in the rows that go with it. Where these are observed they tell v_j of it; where they are
// hidden with the row they do not. So it is with the second stage, whose regressors are hidden.
//
// The model rehearses it. At each of at most rehearsals samples r the cells are hidden that another sample
// lacks. So that the factors know nothing of the sample, each row's u is taken without its cell there,
//
//	u⁻ = u - A (Y_ir - u·v_r)/(1 - A v_rᵀS v_r) S v_r,  A = τ_i ρ_r,
//
// and v_r is found by these, of the cells that are left. Let E be what u⁻·v_r, or the mixture with a second
// stage whose regression leaves the sample out, is off by at a hidden cell, and e what it is off by where
// this cell alone is hidden. Let V be the variance that the model says of the cell, and V_i that of a cell of
// the row that is hidden alone. With D_i the mean square of the row's leave-one-out residuals,
//
//	f = Σ (E² - e²)/D_i / Σ (V - V_i)/mean V_i
//
// is by how much more a cell is off, for being hidden together, than independent noise would have it; V is
// V_i + f (V - V_i) where it is above V_i, but no more than 1, the row's own variance, unless it was. There
// is one f for a table, as some hidden cells a row say little of the row. It is drawn to 1 as its error asks
// for, and at least 1.
//
// Cost of a rehearsal: 2dK² flops for u⁻, as many for v_r, K³, and 2K² for each hidden cell.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

const (
	rehearsals     = 32 // samples that are enough to tell f by
	rehearsedAtOne = 8  // of them at once, for each of which there is a u⁻ of all rows
)

// Together is what hidden cells lose by being hidden together: f, and of each row the variance of u·v where a
// cell of it is hidden alone, of which V_i is made.
type Together struct {
	Factor float64
	Usual  []float64
}

// widened returns the variance of a cell of row i at a sample of noise rho, of which the model says v.
func (p *Posterior) widened(i int, v, rho float64) float64 {
	if p.Together == nil {
		return v
	}
	if usual := p.usual(i, p.Together.Usual[i], rho); v > usual {
		return max(min(usual+float64(p.Together.Factor*(v-usual)), 1), v)
	}
	return v
}

// usual is V_i, given the variance of u·v.
func (p *Posterior) usual(i int, variance, rho float64) float64 {
	v := float64(p.alikeShrink(i) * (variance + 1/float64(p.Tau[i]*rho)))
	if p.Stage != nil {
		v *= squareOf(p.Stage.Rows[i].Shrink)
	}
	return v
}

// rehearsal is what is said of cells that are hidden in a rehearsal: of each active row a line with one place
// for each of samples. NaN stands where a cell is not hidden.
type rehearsal struct {
	samples  []int
	together []float64 // by the factors, of a cell that is hidden with others: A has it then
	alone    []float64 // by the factors, of a cell that is hidden alone; after judge (E² - e²)/D_i
	variance []float64 // of u·v where it is hidden with others; after judge (V - V_i)/mean V_i
}

func (r *rehearsal) line(v []float64, k int) []float64 {
	return v[k*len(r.samples) : (k+1)*len(r.samples)]
}

// rehearse makes the rehearsal of a model by its factors; nil where no cell is hidden.
func (s *stager) rehearse(m *Model, p *pool.Pool) *rehearsal {
	q, a := s.q, len(s.q.Active)
	var lacking []int
	for j, l := range q.data.Cols {
		if l.Count < a && !m.absent(j) {
			lacking = append(lacking, j)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	r := &rehearsal{samples: q.evenly(rehearsals)}
	count := len(r.samples)
	r.makeRoom(p.Memory, a, count)
	work, base := make([]*rehearser, p.Workers()), m.Placer()
	room := newAwayRoom(p.Memory, m.K, a, p.Workers())
	for from := 0; from < count && p.Err() == nil; from += rehearsedAtOne {
		some := r.samples[from:min(from+rehearsedAtOne, count)]
		s.away(m, room, some, p)
		p.Do(len(some), func(w, c int) {
			if work[w] == nil {
				work[w] = newRehearser(s, m, base)
			}
			like := random.Split(uint64(len(lacking)), from+c)
			work[w].sample(r, from+c, lacking[int(like.Uint64()%uint64(len(lacking)))], room.of(c))
		})
	}
	return r
}

func (r *rehearsal) makeRoom(a *pool.Arena, rows, count int) {
	r.together, r.alone, r.variance = a.Floats(rows, count), a.Floats(rows, count), a.Floats(rows, count)
}

// evenly returns count of the samples that take part, at even steps, or all of them.
func (q *Problem) evenly(count int) []int {
	all := make([]int, 0, q.n)
	for j := range q.n {
		if q.time(j) > 0 {
			all = append(all, j)
		}
	}
	count = min(count, len(all))
	for h := range count { // no later one is read after it is written over
		all[h] = all[h*len(all)/count]
	}
	return all[:count]
}

// awayRoom holds u - u⁻ of all active rows for each of some samples, each Pad(K).
type awayRoom struct {
	k, kp, rows int
	shifts      []float64
	at          []float64   // v of the samples, K each
	work        [][]float64 // of each worker: S, K × kp, and S v of the samples
}

func newAwayRoom(a *pool.Arena, k, rows, workers int) *awayRoom {
	kp := kernel.Pad(k)
	return &awayRoom{k: k, kp: kp, rows: rows, shifts: a.Floats(rehearsedAtOne, rows, kp),
		at: a.Floats(rehearsedAtOne, k), work: make([][]float64, workers)}
}

// of returns those of a sample.
func (r *awayRoom) of(c int) []float64 { return r.shifts[c*r.rows*r.kp : (c+1)*r.rows*r.kp] }

// away fills room for samples.
func (s *stager) away(m *Model, room *awayRoom, samples []int, p *pool.Pool) {
	q, k, kp := s.q, m.K, room.kp
	for c, j := range samples {
		m.column(room.at[c*k:(c+1)*k], j)
	}
	p.Do(len(q.Active), func(w, a int) {
		if room.work[w] == nil {
			room.work[w] = make([]float64, (k+rehearsedAtOne)*kp)
		}
		spread, moved := room.work[w][:k*kp], room.work[w][k*kp:(k+len(samples))*kp]
		i := q.Active[a]
		u := m.rowU(i)
		unpack(spread, m.packU(i), k)
		for c, t := range u {
			for h, v := range u {
				spread[c*kp+h] -= float64(t * v)
			}
		}
		kernel.CombineRows(moved, room.at[:len(samples)*k], spread, len(samples))
		for c, j := range samples {
			to := room.of(c)[a*kp : (a+1)*kp]
			if x := q.row(i)[j]; x != x {
				clear(to)
				continue
			}
			v, sv := room.at[c*k:(c+1)*k], moved[c*kp:(c+1)*kp]
			weight := float64(m.precision(i, j) * q.weight(i, j))
			off := s.line(q.data.Y, a)[j] - dot(u, v)
			kernel.Scale(to, sv, float64(weight*off)/max(slack, 1-float64(weight*dot(v, sv))))
		}
	})
}

// rehearser makes rehearsals, for one worker.
type rehearser struct {
	s      *stager
	m      *Model
	placer *Placer
	finder *Finder // nil where no row is predicted by samples that are alike
	hidden []int   // active rows
	// the sample as it is, and without what is hidden; u⁻ of all rows of the matrix
	y, left, u []float64
	cells      []float64 // the weights of its cells, whole blocks, nil where all are 1
	v          []float64 // of the sample as it is
	back       []float64 // its second moments
	square     []float64 // K × kp
	coefs      []float64 // four rows
}

func newRehearser(s *stager, m *Model, placer *Placer) *rehearser {
	line := func() []float64 { return make([]float64, m.D) }
	r := &rehearser{s: s, m: m, placer: placer.Share(), y: line(), left: line(), u: make([]float64, len(m.U)),
		square: make([]float64, m.K*kernel.Pad(m.K)), coefs: make([]float64, 4*m.K)}
	if m.Alike != nil {
		r.finder = m.Alike.Finder()
	}
	if s.q.cells != nil {
		r.cells = make([]float64, kernel.Pad(m.D))
	}
	return r
}

// sample makes rehearsal c, in which the sample lacks what sample of lacks; shifts are u - u⁻.
func (r *rehearser) sample(to *rehearsal, c, of int, shifts []float64) {
	q, m, j, kp := r.s.q, r.m, to.samples[c], kernel.Pad(r.m.K)
	for i := range r.y {
		r.y[i], r.left[i] = math.NaN(), math.NaN()
	}
	copy(r.u, m.U)
	r.hidden = r.hidden[:0]
	for a, i := range q.Active {
		at, row := a*len(to.samples)+c, q.row(i)
		to.together[at], to.alone[at], to.variance[at] = math.NaN(), math.NaN(), math.NaN()
		if row[j] != row[j] {
			continue
		}
		if r.cells != nil {
			r.cells[i] = q.data.Cell(a, j)
		}
		for h, t := range shifts[a*kp : a*kp+m.K] {
			r.u[i*m.K+h] -= t
		}
		r.y[i] = r.s.line(q.data.Y, a)[j]
		if r.left[i] = r.y[i]; row[of] != row[of] {
			r.hidden, r.left[i] = append(r.hidden, a), math.NaN()
		}
	}
	if len(r.hidden) == 0 {
		return
	}
	r.v = append(r.v[:0], r.place(r.y, shifts, m.Rho[j])...)
	r.back = append(r.back[:0], r.placer.back...)
	v := r.place(r.left, shifts, m.Rho[j])
	var alike []float64
	if r.finder != nil {
		alike = r.finder.Find(v, m.Alike.reference(j))
	}
	for _, a := range r.hidden {
		i, at := q.Active[a], a*len(to.samples)+c
		u, weight := r.u[i*m.K:(i+1)*m.K], m.precision(i, j)
		mean := dot(u, r.v)
		own := float64(float64(weight*q.data.Cell(a, j)) * (form(r.back, u) - float64(mean*mean)))
		to.together[at] = dot(u, v)
		to.alone[at] = r.y[i] - (r.y[i]-mean)/max(slack, 1-own)
		if m.Alike.predicts(i) {
			to.together[at] += r.finder.residualPrediction(i, alike) / math.Sqrt(weight)
			to.alone[at] += m.Alike.prediction(m.Alike.Z[i], j) / math.Sqrt(weight)
		}
		to.variance[at] = r.placer.spread(i)
	}
}

// place finds v of a sample, NaN where it is hidden, by u⁻.
func (r *rehearser) place(y, shifts []float64, rho float64) []float64 {
	k, kp, active := r.m.K, kernel.Pad(r.m.K), r.s.q.Active
	r.placer.observe(y, r.cells, r.u)
	// u⁻u⁻ᵀ - uuᵀ = -(w sᵀ + s wᵀ), s the shift and w = u - s/2
	clear(r.square)
	for from := 0; from < len(active); from += 4 {
		rows := min(4, len(active)-from)
		for h := range rows {
			i := active[from+h]
			tau := r.m.Tau[i]
			if y[i] != y[i] {
				tau = 0
			} else if r.cells != nil {
				tau *= r.cells[i]
			}
			for c, u := range r.u[i*k : (i+1)*k] {
				r.coefs[h*k+c] = float64(tau * (u + r.m.U[i*k+c]) / 2)
			}
		}
		kernel.AccumulateRows(r.square, r.coefs[:rows*k], shifts[from*kp:(from+rows)*kp], rows)
	}
	at := 0
	for h := range k {
		for g := range h {
			r.placer.gram[at] -= float64(root2 * (r.square[h*kp+g] + r.square[g*kp+h]))
			at++
		}
		r.placer.gram[at] -= 2 * r.square[h*kp+h]
		at++
	}
	r.placer.solve(rho)
	return r.placer.v
}

// form returns uᵀBu of a packed B.
func form(b, u []float64) (sum float64) {
	at := 0
	for r, x := range u {
		sum += float64(x * (float64(root2*dot(u[:r], b[at:])) + float64(b[at+r]*x)))
		at += r + 1
	}
	return sum
}

// rehearseRow begins the rehearsals of row k, of which the factors have a share.
func (s *stager) rehearseRow(r *stageRoom, k int, keep float64) {
	if of := s.rehearsal; of != nil {
		count := len(of.samples)
		r.together, r.alone = slices.Grow(r.together[:0], count)[:count],
			slices.Grow(r.alone[:0], count)[:count]
		kernel.Scale(r.together, of.line(of.together, k), keep)
		kernel.Scale(r.alone, of.line(of.alone, k), keep)
	}
}

// rehearseRegression adds a regression of row k times w: β without the sample is β - z off/(1-h), z being
// inside, and off the residual.
func (s *stager) rehearseRegression(r *stageRoom, k, kind int, w, constant float64, beta []float64) {
	of := s.rehearsal
	if of == nil {
		return
	}
	y, hidden := s.line(s.q.data.Y, k), of.line(of.together, k)
	for c, j := range of.samples {
		if hidden[c] != hidden[c] {
			continue
		}
		off := (y[j] - (r.fit[j] + constant)) / max(1-r.hat[j], leastOutside)
		moved, by := 0.0, math.Sqrt(r.on[j])
		for h, b := range beta {
			to := 0.0
			if kind == radial {
				to = s.radialMoved(r, h, c)
			} else if t := of.line(of.together, r.of[h])[c]; t == t {
				to = t - s.line(r.raw, h)[j]
			}
			moved += float64((b - float64(s.line(r.inside, h)[j]*float64(by*off))) * to)
		}
		r.together[c] += float64(w * (y[j] - off + moved))
		r.alone[c] += float64(w * (y[j] - off))
	}
}

// radialMoved returns by how much the radial regressor about ref h moves at the sample of rehearsal c.
func (s *stager) radialMoved(r *stageRoom, h, c int) float64 {
	of, square := s.rehearsal, 0.0
	for l, g := range r.metric.weights {
		line, t := s.line(s.filled, l), of.line(of.together, l)[c]
		if t != t {
			t = s.line(r.view, l)[of.samples[c]]
		}
		square += float64(g * squareOf(t-line[r.metric.refs[h]]))
	}
	return elem.Exp(-square) - s.line(r.raw, h)[of.samples[c]]
}

// judge ends the rehearsals of the row of the last rehearseRow, l having what it is without its cells.
func (s *stager) judge(r *stageRoom, l *rowLearner) {
	i, k, m, of, y := l.i, l.k, l.m, s.rehearsal, l.y
	if of == nil {
		return
	}
	row, more, said := &m.Stage.Rows[i], of.line(of.alone, k), of.line(of.variance, k)
	all, gain := row.squares()
	least, cells, without := 0.0, 0.0, 0.0
	for c, j := range of.samples {
		if said[c] != said[c] {
			continue
		}
		shrink := squareOf(row.Shrink)
		for h, l := range row.Of {
			t := of.line(of.together, s.active[l])[c]
			if !m.Stage.sees(int(l), j) || t == t {
				shrink += float64(gain * (squareOf(row.Weights[h]) / all))
			}
		}
		usual := m.usual(i, s.f.usual[k], m.Rho[j])
		square := squareOf(y[j] - r.alone[c])
		more[c] = squareOf(y[j]-r.together[c]) - square
		v := m.alikeShrink(i) * shrink
		said[c] = max(float64(v*(said[c]+1/m.precision(i, j)))-usual, 0)
		least += usual
		cells++
	}
	for h, j := range l.places {
		without += float64(l.maps.cells[h] * (squareOf(y[j]-l.without[h]) / l.weight))
	}
	for c := range more {
		more[c] /= without // no number where all are exact
		said[c] *= cells / least
	}
}

// learnt returns what the rehearsals say, once all rows are judged: f is made of the sums of each sample, as
// cells of one are off together.
func (s *stager) learnt(d int) *Together {
	of := s.rehearsal
	if of == nil {
		return nil
	}
	t := &Together{Factor: 1, Usual: make([]float64, d)}
	more, said := make([]float64, len(of.samples)), make([]float64, len(of.samples))
	a, b := 0.0, 0.0
	for k, i := range s.q.Active {
		t.Usual[i] = s.f.usual[k]
		v := of.line(of.variance, k)
		for c, m := range of.line(of.alone, k) {
			if m-m == 0 {
				more[c] += m
				said[c] += v[c]
				a += m
				b += v[c]
			}
		}
	}
	if !(a > b) || b == 0 {
		return t
	}
	f, square := a/b, 0.0
	for c, m := range more {
		square += squareOf((m - float64(f*said[c])) / b)
	}
	t.Factor += max(f-1-square/(f-1), 0)
	return t
}

// alikeShrink is the factor of row i's variances by samples that are alike.
func (p *Posterior) alikeShrink(i int) float64 {
	if p.Alike == nil {
		return 1
	}
	return squareOf(p.Alike.DeviationShrink[i])
}
