package bqmf

// This file holds what a posterior says of single cells, and where it places a new column.
//
//	E (u_i·v_j) = u_i·v_j = m,  Var (u_i·v_j) = v_jᵀS_i v_j + u_iᵀC_j u_i + tr S_i C_j.

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

// Posterior is what a fit ends with, and the corrections by residuals.
type Posterior struct {
	D, N, K  int
	U        []float64 // D × K
	V        []float64 // K × Pad(N)
	BU, BV   []float64 // D and N × Packed(K)
	Tau, Rho []float64
	Unit     float64
	Stage    *Stage    // nil: no row has any
	Alike    *Alike    // nil: no row has any
	Together *Together // nil: no cell was hidden
	Absent   []bool    // samples that took no part in the fit; nil: none
}

// absent tells whether a sample took no part in the fit.
func (p *Posterior) absent(j int) bool { return p.Absent != nil && p.Absent[j] }

// rowU returns u_i, and packU and packV the packed second moments of row i and of column j.
func (p *Posterior) rowU(i int) []float64  { return p.U[i*p.K : (i+1)*p.K] }
func (p *Posterior) packU(i int) []float64 { return p.BU[i*Packed(p.K) : (i+1)*Packed(p.K)] }
func (p *Posterior) packV(j int) []float64 { return p.BV[j*Packed(p.K) : (j+1)*Packed(p.K)] }

// precision returns that of the noise of a cell.
func (p *Posterior) precision(i, j int) float64 { return float64(p.Tau[i] * p.Rho[j]) }

// present returns the samples that are not absent.
func (p *Posterior) present() (samples []int) {
	for j := range p.N {
		if !p.absent(j) {
			samples = append(samples, j)
		}
	}
	return samples
}

// ignorant returns the posterior that knows nothing, of a d × n matrix in k components, but for τ.
func ignorant(d, n, k int) *Posterior {
	pp := Packed(k)
	p := &Posterior{D: d, N: n, K: k, U: make([]float64, d*k), V: make([]float64, k*kernel.Pad(n)),
		BU: make([]float64, d*pp), BV: make([]float64, n*pp),
		Tau: make([]float64, d), Rho: slices.Repeat([]float64{1}, n), Unit: 1}
	for j := range n {
		for c := range k {
			p.BV[j*pp+c*(c+1)/2+c] = 1
		}
	}
	return p
}

// Posterior returns the posterior of the fit as one of d rows: the rows given are the fit's, and nothing is
// known of the others. Components are ordered by falling relevance, and the entry of each row of V that is
// largest in magnitude is positive. Second moments are in the room of the fit: they have a meaning until its
// next epoch.
func (f *Fit) Posterior(rows []int, d int) *Posterior {
	k, n, pp := f.K, f.data.N, f.room.pp
	bu, bv := f.room.spare[:d*pp], f.room.grams
	from := &Posterior{D: f.data.D, N: n, K: k, BU: f.BU, BV: f.BV, Absent: f.data.absent()}
	order, flip := falling(from.Relevance()), make([]bool, k)
	p := &Posterior{D: d, N: n, K: k, U: make([]float64, d*k), V: make([]float64, k*f.np), BU: bu, BV: bv,
		Tau: make([]float64, d), Rho: slices.Clone(f.Rho), Unit: f.Unit,
		Absent: from.Absent}
	for h, c := range order {
		row := f.V[c*f.np : c*f.np+n]
		sign := svd.Sign(row)
		flip[h] = sign < 0
		kernel.Scale(p.V[h*f.np:h*f.np+n], row, sign)
		for a, i := range rows {
			p.U[i*k+h] = sign * f.U[a*k+c]
		}
	}
	pick := newPicker(order, flip)
	f.pool.Do(f.data.D, func(_, a int) {
		i, next := rows[a], d
		if a+1 < len(rows) {
			next = rows[a+1]
		}
		p.Tau[i] = f.Tau[a]
		pick.fill(bu[i*pp:(i+1)*pp], f.packU(a))
		clear(bu[(i+1)*pp : next*pp])
	})
	clear(bu[:rows[0]*pp])
	f.pool.Do(n, func(_, j int) { pick.fill(bv[j*pp:(j+1)*pp], f.packV(j)) })
	return p
}

// upTo returns 0, 1, ..., n-1.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// falling returns the places of numbers by falling numbers, equal ones as they come.
func falling(v []float64) []int {
	order := upTo(len(v))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(v[b], v[a]) })
	return order
}

// Relevance returns, for each component, the mean over the cells of the square of its part of u·v, by the
// second moments.
func (p *Posterior) Relevance() []float64 {
	out, v := make([]float64, p.K), make([]float64, p.K)
	for i := range p.D {
		for c := range out {
			out[c] += diagonal(p.packU(i), c) / float64(p.D)
		}
	}
	present := p.present()
	for _, j := range present {
		for c := range v {
			v[c] += diagonal(p.packV(j), c) / float64(len(present))
		}
	}
	for c := range out {
		out[c] *= v[c]
	}
	return out
}

// RowsPerPass is the number of rows that a reader takes at once. Every time that it takes some it reads K²
// numbers of each sample, more than a cache holds.
const RowsPerPass = 16

// reader reads a posterior cell by cell. One reader belongs to one worker; planes, left and right are made
// once for all.
type reader struct {
	p      *Posterior
	np     int
	planes []float64 // K × K × Pad(N): entry (k, l) of C_j for all j
	rows   int       // of the last load
	cells  cellForms
	// Leave-one-out:
	left, right []float64 // l_k and r_k; 1 before leave-one-out
	alike       *alikeRoom
	// Scratch:
	s   []float64 // K × rows × K: row k of S_i for all rows
	x   []float64 // rows × Pad(N): entry k of S_i v_j
	z   []float64 // rows × Pad(N): entry k of C_j u_i; K × rows × Pad(N) where Alike asks for all entries
	all []float64 // rows × some samples: E (u_i·v_j)²
}

// cellForms are, of RowsPerPass rows, each Pad(N): the mean by the factors; vᵀSv+uᵀCu or, leave-one-out, h;
// all of the variance; vᵀSCu or g/2; and the part of own that the row's posterior has, vᵀSv or r/A.
type cellForms struct{ mean, own, variance, both, byRow []float64 }

// reader returns a reader, which is of no use where the context that the workers are bound to has ended. It
// takes the planes of another reader that is no longer used, or nil.
func (p *Posterior) reader(workers *pool.Pool, room *reader) *reader {
	np, k := kernel.Pad(p.N), p.K
	var planes []float64
	if room != nil {
		planes = room.planes
	}
	c := &reader{p: p, np: np, planes: pool.Again(workers.Memory, planes, k*k*np),
		left:  slices.Repeat([]float64{1}, k),
		right: slices.Repeat([]float64{1}, k)}
	pp := Packed(k)
	workers.Do(k*(k+1)/2, func(_, at int) { // entry (r, h) of all C_j
		r := 0
		for (r+1)*(r+2)/2 <= at {
			r++
		}
		h := at - r*(r+1)/2
		plane, a, b := c.planes[(r*k+h)*np:][:p.N], p.V[r*np:], p.V[h*np:]
		for j := range plane {
			v := p.BV[j*pp+at]
			if h < r {
				v /= root2
			}
			plane[j] = v - float64(a[j]*b[j])
		}
		clear(c.planes[(r*k+h)*np+p.N : (r*k+h+1)*np])
		copy(c.planes[(h*k+r)*np:], c.planes[(r*k+h)*np:][:np])
	})
	return c
}

// share returns another reader of the same posterior.
func (c *reader) share() *reader {
	return &reader{p: c.p, np: c.np, planes: c.planes, left: c.left, right: c.right}
}

// room makes the room for rows. all tells that Alike asks for all entries of z.
func (c *reader) room(a *pool.Arena, all bool) {
	k, np, entries := c.p.K, c.np, 1
	if all {
		entries = k
	}
	c.s, c.all = a.Floats(RowsPerPass, k, k), a.Floats(RowsPerPass, RowsPerPass)
	for _, line := range []*[]float64{&c.x, &c.cells.mean, &c.cells.own, &c.cells.variance, &c.cells.both,
		&c.cells.byRow} {
		*line = a.Floats(RowsPerPass, np)
	}
	c.z = a.Floats(entries, RowsPerPass, np)
}

// load reads the rows from i on, at most RowsPerPass of them.
func (c *reader) load(i, rows int) {
	p, k, np := c.p, c.p.K, c.np
	if c.s == nil {
		c.room(nil, c.p.Alike.learning())
	}
	c.rows = rows
	kernel.CombineRows(c.cells.mean[:rows*np], p.U[i*k:(i+rows)*k], p.V, rows)
	c.unpackRows(i, rows)
	c.forms(i, rows)
	c.variances(i, rows)
}

// unpackRows fills s with the S_i of the rows from i on.
func (c *reader) unpackRows(i, rows int) {
	p, k := c.p, c.p.K
	for r := range rows {
		b, u, at := p.packU(i+r), p.rowU(i+r), 0
		for a := range k {
			for h := range a + 1 {
				v := b[at]
				if h < a {
					v /= root2
				}
				v -= float64(u[a] * u[h])
				c.s[(a*rows+r)*k+h], c.s[(h*rows+r)*k+a] = v, v
				at++
			}
		}
	}
}

// forms fills own, byRow and both of the rows from i on, component by component.
func (c *reader) forms(i, rows int) {
	p, k, np := c.p, c.p.K, c.np
	u, own, byRow, both := p.U[i*k:(i+rows)*k], c.cells.own[:rows*np], c.cells.byRow[:rows*np],
		c.cells.both[:rows*np]
	clear(own)
	clear(byRow)
	clear(both)
	x, all := c.x[:rows*np], len(c.z) > RowsPerPass*np
	for a := range k {
		kernel.CombineRows(x, c.s[a*rows*k:(a+1)*rows*k], p.V, rows)
		z := c.z[:rows*np]
		if all {
			z = c.z[a*rows*np:][:rows*np]
		}
		kernel.CombineRows(z, u, c.planes[a*k*np:(a+1)*k*np], rows)
		v := p.V[a*np : (a+1)*np]
		for r := range rows {
			t, zr := u[r*k+a], z[r*np:(r+1)*np]
			xr, o, bo, by := x[r*np:], own[r*np:][:np], both[r*np:], byRow[r*np:]
			kernel.Forms(o, by, bo, xr, zr, v, c.left[a], float64(t*c.right[a]), (c.left[a]+c.right[a])/2)
		}
	}
	for j, o := range own {
		own[j] = max(o, 0)
	}
}

// variances fills the variances of the rows from i on, given the means.
func (c *reader) variances(i, rows int) {
	p, n, np, pp := c.p, c.p.N, c.np, Packed(c.p.K)
	moments, all := p.BU[i*pp:(i+rows)*pp], c.cells.variance[:rows*np]
	clear(all)
	// second moments of so many samples stay in the cache for all rows
	for from := 0; from < n; from += RowsPerPass {
		some := min(RowsPerPass, n-from)
		kernel.DotsRows(c.all[:rows*some], p.BV[from*pp:(from+some)*pp], moments, rows)
		for r := range rows {
			at := r*np + from
			// what is left of E (u·v)² without the square of the mean
			for j, e := range c.all[r*some : (r+1)*some] {
				m := c.cells.mean[at+j]
				all[at+j] = max(e-float64(m*m), 0)
			}
		}
	}
}

// factorMean returns what the factors say of a cell of row i, row r of the last load.
func (c *reader) factorMean(r, i, j int) float64 {
	m, alike := c.cells.mean[r*c.np+j], c.p.Alike
	if !alike.predicts(i) {
		return m
	}
	return m + alike.prediction(alike.Z[i], j)/math.Sqrt(c.p.precision(i, j))
}

// mean returns the mean of a cell of row i, row r of the last load.
func (c *reader) mean(r, i, j int) float64 {
	return c.p.Stage.mean(i, j, c.factorMean(r, i, j))
}

// deviations fills to with the deviation of Y of each cell of row i, given the variances of u·v.
func (p *Posterior) deviations(to, variance []float64, i int) {
	p.Stage.shrinks(to, i)
	for j, shrink := range to {
		to[j] = p.deviation(i, variance[j], p.Rho[j], shrink)
	}
}

// deviation returns that of a cell of row i at a sample of noise rho, given the variance of u·v and the
// factor that variances have by the second stage.
func (p *Posterior) deviation(i int, variance, rho, shrink float64) float64 {
	v := float64(p.alikeShrink(i)*shrink) * (variance + 1/float64(p.Tau[i]*rho))
	return math.Sqrt(p.widened(i, v, rho))
}

// Placer places new columns: the step of v_j and ρ_j of a fit, all else as it is.
type Placer struct {
	p          *Posterior
	all        []float64 // packed Σ_i τ_i B_i
	weights    weights
	gram, back []float64
	rhs, v     []float64
	ws         system    // holds -C and v
	lines      []float64 // where cells have weights, a number for each row
}

// Placer returns what places new columns, for one worker.
func (p *Posterior) Placer() *Placer {
	pp := Packed(p.K)
	s := &Placer{p: p, all: make([]float64, pp)}
	s.weights.fill(p.Tau, pp)
	var w [1]float64
	for i := range p.D {
		w[0] = p.Tau[i]
		kernel.Accumulate(s.all, w[:], p.packU(i))
	}
	return s.Share()
}

// Share returns another for another worker.
func (s *Placer) Share() *Placer {
	k := s.p.K
	return &Placer{p: s.p, all: s.all, weights: s.weights, gram: make([]float64, Packed(k)),
		back: make([]float64, Packed(k)), rhs: make([]float64, k), v: make([]float64, k),
		ws: newSystem(nil, k)}
}

// placeSteps is how often ρ and v of a new column are updated in turn.
const placeSteps = 3

// Place returns the coordinates of a new column y, NaN where it is not known, and
// its ρ. What it returns is overwritten by the next call.
func (s *Placer) Place(y []float64) (v []float64, rho float64) {
	p := s.p
	count, squares := s.observe(y, nil, p.U)
	rho = 1
	for step := range placeSteps {
		if !s.solve(rho) {
			return s.v, 1
		}
		if step == placeSteps-1 {
			break
		}
		off := max(squares-2*dot(s.v, s.rhs)+product(s.gram, s.back), 0)
		rho = (float64(count) + rhoCells) / (off + rhoCells)
		rho = min(max(rho/p.Unit, 1.0/rhoMost), rhoMost)
	}
	return s.v, rho
}

// observe fills gram and rhs of a column y, NaN where it is not known, of cells of such weights, whole
// blocks, nil where all are 1, u being the factors of all rows. It returns how many are known, and Σ τ y²
// over them.
func (s *Placer) observe(y, cells, u []float64) (count int, squares float64) {
	p, k := s.p, s.p.K
	l := List{}
	for _, t := range y {
		if t == t {
			l.Count++
		}
	}
	l.Observed = cells != nil || 2*l.Count < p.D
	clear(s.rhs)
	for i, t := range y {
		if (t == t) == l.Observed {
			l.At = append(l.At, uint32(i))
		}
		if t == t {
			a := p.Tau[i] * t
			if cells != nil {
				a *= cells[i]
			}
			squares += float64(a * t)
			for c, u := range u[i*k : (i+1)*k] {
				s.rhs[c] += float64(a * u)
			}
		}
	}
	if s.weights.cells = cells; cells != nil {
		s.lines = slices.Grow(s.lines[:0], p.D)[:p.D]
	}
	s.weights.observed(s.gram, &l, 0, s.all, p.BU, Packed(k), s.lines)
	return l.Count, squares
}

// solve fills v and back for a column of noise rho, by gram and rhs. Moments that are none, from a file, give
// the prior, and false.
func (s *Placer) solve(rho float64) bool {
	at := s.ws.border()
	s.ws.load(s.gram, rho)
	for c := range at {
		s.ws.a[c*s.ws.kp+c]++
		at[c] = s.rhs[c] * rho
	}
	s.ws.solve()
	s.ws.pack(s.back)
	copy(s.v, at)
	if s.finite() {
		return true
	}
	clear(s.v)
	clear(s.back)
	for c := range s.p.K {
		s.back[c*(c+1)/2+c] = 1
	}
	return false
}

// finite tells whether v and its second moments are numbers.
func (s *Placer) finite() bool {
	sum := 0.0
	for _, t := range s.v {
		sum += t - t
	}
	for _, t := range s.back {
		sum += t - t
	}
	return sum == 0
}

// spread returns Var (u_i·v) of row i, for the last column placed.
func (s *Placer) spread(i int) float64 {
	return max(product(s.back, s.p.packU(i))-squareOf(dot(s.p.rowU(i), s.v)), 0)
}
