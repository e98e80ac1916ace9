package posterior

// This file holds what a posterior says of single cells, and where it places a
// new column.
//
//	E (u_i·v_j) = u_i·v_j = m,  Var (u_i·v_j) = v_jᵀS_i v_j + u_iᵀC_j u_i + tr S_i C_j.
//
// A seen cell pulls its own mean; without it, to first order in what the two
// posteriors hold of it, with A = τ_i ρ_j (leave-one-out),
//
//	m⁻ = m - A ((Y-m)h - g) / max(0.4, 1 - Ah),
//	h = Σ_k (l_k v_k (Sv)_k + r_k u_k (Cu)_k),  g = Σ_k (l_k + r_k) (Sv)_k (Cu)_k.
//
// The first order says too much where a cell weighs nearly as much as all others of its row and column
// together: hence the bound. Fits without single cells show it: where Ah is .4 to .8, the true movement m -
// m⁻ is some .8 of this one. If the cell leaves the row's posterior first, and the column's after that, then
//
//	m⁻ = m - ((Y-m)(1-w) - Ag) / w,  w = max(0.2, (1-r)(1-c)),
//	r = A Σ_k l_k v_k (Sv)_k,  c = A Σ_k r_k u_k (Cu)_k,  r + c = Ah,
//
// and the true movement is 1.0 to 1.1 of this one from Ah = .2 on. The levels of intervals are learnt from
// these predictions (InTurn). Maps, and the choice between strengths, are learnt from the first ones
// (Without), which promise less where many components are weak: by the second ones the wrong strength was
// chosen for counts.
//
// l_k and r_k would be 1 if a cell moved u_i and v_j alone. But what it adds to v_j moves all other u, and so
// on (loops). With s_k and c_k the means of τ_i S_i,kk and ρ_j C_j,kk, such a loop multiplies by s_k c_k λ a
// movement of column k of U, each row times √τ_i, along a left singular vector of the noise of Y whose
// squared singular value is λ. The sum over all loops is 1/(1 - λ/z_k), z_k = 1/(s_k c_k), and its mean over
// all d or n directions is
//
//	l_k = 1 + Σ λ/(z_k - λ) / d,  r_k = 1 + Σ λ/(z_k - λ) / n.
//
// This matters where a component is not much stronger than the noise: fits with many such components
// otherwise look better than they are. The sums are over min(d,n) - K squared singular values λ, which have
// the law of Marchenko and Pastur: of d × n noise of variance 1 in a share p of the cells the density is
// √((b-λ)(λ-a))/λ between a and b, p(√d ∓ √n)². z_k is the squared singular value of Y that belongs to
// component k. Where z_k < b the component is noise itself, and the largest of the λ is left out for it. The
// noise beside the other K' components has d-K' by n-K' directions, and these are the sizes in a and b of its
// law.

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// Posterior is what a fit ends with, as Fit has it.
type Posterior struct {
	D, N, K  int
	U        []float64 // D × K
	V        []float64 // K × Pad(N)
	BU, BV   []float64 // D and N × Packed(K)
	Tau, Rho []float64
	Unit     float64
	Near     *Near  // nil: none
	Alike    *Alike // nil: no row has any
}

// Copy returns the posterior of the fit as one of d rows: the rows given are the fit's, and nothing is known
// of the others. Components are ordered by falling relevance, and the entry of each row of V that is largest
// in magnitude is positive. When the context ends some of it is 0.
func (f *Fit) Copy(rows []int, d int) *Posterior {
	return f.posterior(rows, d, make([]float64, d*f.pp), make([]float64, f.N*f.pp), f.stopped)
}

// Lend is Copy in the room of the fit: what it returns has a meaning until the next epoch of the fit. It does
// not look at the context, because a fit that was stopped makes its model by Lend.
func (f *Fit) Lend(rows []int, d int) *Posterior {
	room := f.spare
	if cap(room) < d*f.pp { // Data did not tell of d
		room = make([]float64, d*f.pp)
	}
	return f.posterior(rows, d, room[:d*f.pp], f.grams, func() bool { return false })
}

func (f *Fit) posterior(rows []int, d int, bu, bv []float64, stopped func() bool) *Posterior {
	k := f.K
	from := &Posterior{D: f.D, N: f.N, K: k, U: f.U, V: f.V, BU: f.BU, BV: f.BV}
	relevance := from.Relevance()
	order, flip := make([]int, k), make([]bool, k)
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(relevance[b], relevance[a]) })
	p := &Posterior{D: d, N: f.N, K: k, U: make([]float64, d*k), V: make([]float64, k*f.np), BU: bu, BV: bv,
		Tau: make([]float64, d), Rho: slices.Clone(f.Rho), Unit: f.Unit}
	for h, c := range order {
		row, top := f.V[c*f.np:c*f.np+f.N], 0.0
		for _, v := range row {
			if math.Abs(v) > math.Abs(top) {
				top = v
			}
		}
		flip[h] = top < 0
		sign := 1.0
		if flip[h] {
			sign = -1
		}
		for j, v := range row {
			p.V[h*f.np+j] = sign * v
		}
		for a, i := range rows {
			p.U[i*k+h] = sign * f.U[a*k+c]
		}
	}
	pick := newPicker(order, flip)
	f.pool.Do(f.D, func(_, a int) {
		if stopped() {
			return
		}
		i, next := rows[a], d
		if a+1 < len(rows) {
			next = rows[a+1]
		}
		p.Tau[i] = f.Tau[a]
		pick.fill(bu[i*f.pp:(i+1)*f.pp], f.packU(a))
		clear(bu[(i+1)*f.pp : next*f.pp])
	})
	clear(bu[:rows[0]*f.pp])
	f.pool.Do(f.N, func(_, j int) {
		if !stopped() {
			pick.fill(bv[j*f.pp:(j+1)*f.pp], f.packV(j))
		}
	})
	return p
}

// picker takes some rows, and the same columns, of a packed matrix in a given order, with signs turned where
// told.
type picker struct {
	from []int32
	sign []float64
}

func newPicker(order []int, flip []bool) (p picker) {
	for r, a := range order {
		for c, b := range order[:r+1] {
			hi, lo := max(a, b), min(a, b)
			sign := 1.0
			if flip != nil && flip[r] != flip[c] {
				sign = -1
			}
			// the diagonal stays the diagonal
			p.from, p.sign = append(p.from, int32(hi*(hi+1)/2+lo)), append(p.sign, sign)
		}
	}
	return p
}

// fill fills a packed matrix from another one, and its padding with 0.
func (p picker) fill(to, from []float64) {
	sign := p.sign[:len(p.from)]
	for at, b := range p.from {
		to[at] = sign[at] * from[b]
	}
	clear(to[len(p.from):])
}

// Relevance returns, for each component, the mean over the cells of the square of
// its part of u·v, by the second moments.
func (p *Posterior) Relevance() []float64 {
	out, pp := make([]float64, p.K), Packed(p.K)
	v := make([]float64, p.K)
	mean := func(to, moments []float64, lines int) {
		for l := range lines {
			for c := range to {
				to[c] += diagonal(moments[l*pp:], c) / float64(lines)
			}
		}
	}
	mean(out, p.BU, p.D)
	mean(v, p.BV, p.N)
	for c := range out {
		out[c] *= v[c]
	}
	return out
}

// Together is the number of rows that Cells takes at once. Every time that it takes some it reads K² numbers
// of each sample, more than a cache holds.
const Together = 16

// Cells reads a posterior cell by cell. One reader belongs to one worker; what
// they share is made once.
type Cells struct {
	p      *Posterior
	np     int
	planes []float64 // K × K × Pad(N): entry (k, l) of C_j for all j
	s      []float64 // K × rows × K: row k of S_i for all rows
	x      []float64 // rows × Pad(N): entry k of S_i v_j
	z      []float64 // rows × Pad(N): entry k of C_j u_i; K × rows × Pad(N) where Alike asks for all entries
	rows   int       // of the last Rows
	all    []float64 // rows × some samples: E (u_i·v_j)²
	// Of Together rows, each Pad(N): the mean by the factors; vᵀSv+uᵀCu or, after LeaveOut, h; all of the
	// variance; vᵀSCu or g/2.
	Mean, Own, Var, Both []float64
	byRow                []float64 // the part of Own that the row's posterior has, vᵀSv or r/A
	lone                 bool      // after LeaveOut
	left, right          []float64 // l_k and r_k; 1 before LeaveOut
	// u_lᵀC_j u_i of the neighbours l of each row, and of the row itself.
	first [Together]int // the first line of with that belongs to a row
	with  []float64     // the u_lᵀC_j u_i, each line Pad(N)
	ends  []float64     // entry a of the u_l
	bent  *bent
}

// Cells returns a reader, which is of no use where the context that the workers are bound to has ended. It
// takes the room of another reader that is no longer used, or nil.
func (p *Posterior) Cells(workers *pool.Pool, room *Cells) *Cells {
	np, k := kernel.Pad(p.N), p.K
	if room == nil || cap(room.planes) < k*k*np {
		room = &Cells{planes: make([]float64, k*k*np)}
	}
	c := &Cells{p: p, np: np, planes: room.planes[:k*k*np], left: make([]float64, k),
		right: make([]float64, k)}
	for a := range k {
		c.left[a], c.right[a] = 1, 1
	}
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

// Share returns another reader of the same posterior.
func (c *Cells) Share() *Cells {
	return &Cells{p: c.p, np: c.np, planes: c.planes, lone: c.lone, left: c.left, right: c.right}
}

// room makes the room for rows.
func (c *Cells) room() {
	k, np := c.p.K, c.np
	c.s, c.all = make([]float64, Together*k*k), make([]float64, Together*Together)
	for _, line := range []*[]float64{&c.x, &c.Mean, &c.Own, &c.Var, &c.Both, &c.byRow} {
		*line = make([]float64, Together*np)
	}
	c.z = make([]float64, Together*np)
	if c.p.Alike.learning() {
		c.z = make([]float64, k*Together*np)
	}
}

// LeaveOut prepares the reader, and those that Share returns from then on, for Without and Said, given the
// number of seen cells.
func (c *Cells) LeaveOut(seen int) {
	c.lone = true
	c.left, c.right = c.p.loops(float64(seen))
}

const (
	loopGrid = 256 // places at which the law of the noise is added up
	loopMost = 0.9 // of λ/z_k
)

// loops returns l_k and r_k, given the number of seen cells.
func (p *Posterior) loops(seen float64) (left, right []float64) {
	k, np, pp := p.K, kernel.Pad(p.N), Packed(p.K)
	d, n := 0.0, float64(p.N)
	for _, t := range p.Tau {
		if t > 0 {
			d++
		}
	}
	share := seen / float64(d*n)
	rootD, rootN := math.Sqrt(d), math.Sqrt(n)
	high := float64(share * float64((rootD+rootN)*(rootD+rootN)))
	z, noisy := make([]float64, k), 0.0 // the number of components that are noise
	for a := range z {
		s, c := 0.0, 0.0
		for i, t := range p.Tau {
			u := p.U[i*k+a]
			s += float64(t / d * max(diagonal(p.BU[i*pp:], a)-float64(u*u), 0))
		}
		for j, t := range p.Rho {
			v := p.V[a*np+j]
			c += float64(t / n * max(diagonal(p.BV[j*pp:], a)-float64(v*v), 0))
		}
		z[a] = 1 / max(s*c, 1e-300)
		if z[a] < high {
			noisy++
		}
	}
	above := float64(k) - noisy // K'
	rootD, rootN = math.Sqrt(max(d-above, 1)), math.Sqrt(max(n-above, 1))
	low := float64(share * float64((rootD-rootN)*(rootD-rootN)))
	high = float64(share * float64((rootD+rootN)*(rootD+rootN)))
	var at, count [loopGrid]float64 // falling places, and how many λ are there
	all, spare := 0.0, noisy
	for g := range at {
		at[g] = high - float64((high-low)*((float64(g)+0.5)/loopGrid))
		count[g] = math.Sqrt((high-at[g])*(at[g]-low)) / at[g]
		all += count[g]
	}
	for g := range count {
		count[g] = float64(count[g] * (max(min(d, n)-float64(k)+noisy, 0) / all))
		taken := min(spare, count[g])
		count[g] -= taken
		spare -= taken
	}
	left, right = make([]float64, k), make([]float64, k)
	for a, t := range z {
		sum := 0.0
		for g, c := range count {
			ratio := min(at[g]/t, loopMost)
			sum += float64(c * (ratio / (1 - ratio)))
		}
		left[a], right[a] = 1+sum/d, 1+sum/n
	}
	return left, right
}

// Rows reads the rows from i on, at most Together of them.
func (c *Cells) Rows(i, rows int) {
	p, k, np := c.p, c.p.K, c.np
	if c.s == nil {
		c.room()
	}
	c.rows = rows
	kernel.CombineRows(c.Mean[:rows*np], p.U[i*k:(i+rows)*k], p.V, rows)
	c.unpack(i, rows)
	lines := 0
	for r := range rows {
		c.first[r] = lines
		if of := c.near(i + r); c.lone && len(of) > 0 {
			lines += len(of) + 1
		}
	}
	if lines > 0 {
		c.with = slices.Grow(c.with[:0], lines*np)[:lines*np]
		clear(c.with)
	}
	c.parts(i, rows)
	c.variances(i, rows)
}

// unpack fills s with the S_i of the rows from i on.
func (c *Cells) unpack(i, rows int) {
	p, k, pp := c.p, c.p.K, Packed(c.p.K)
	for r := range rows {
		b, u, at := p.BU[(i+r)*pp:], p.U[(i+r)*k:(i+r+1)*k], 0
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

// parts fills Own, byRow, Both and with of the rows from i on, component by component.
func (c *Cells) parts(i, rows int) {
	p, k, np := c.p, c.p.K, c.np
	u, own, byRow, both := p.U[i*k:(i+rows)*k], c.Own[:rows*np], c.byRow[:rows*np], c.Both[:rows*np]
	clear(own)
	clear(byRow)
	clear(both)
	x, all := c.x[:rows*np], len(c.z) > Together*np
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
			if of := c.near(i + r); c.lone && len(of) > 0 {
				c.ends = c.ends[:0]
				for _, l := range of {
					c.ends = append(c.ends, p.U[l.Row*k+a])
				}
				c.ends = append(c.ends, t)
				kernel.Accumulate(c.with[c.first[r]*np:], c.ends, zr)
			}
		}
	}
	for j, o := range own {
		own[j] = max(o, 0)
	}
}

// variances fills Var of the rows from i on, given Mean.
func (c *Cells) variances(i, rows int) {
	p, n, np, pp := c.p, c.p.N, c.np, Packed(c.p.K)
	moments, all := p.BU[i*pp:(i+rows)*pp], c.Var[:rows*np]
	clear(all)
	// second moments of so many samples stay in the cache for all rows
	for from := 0; from < n; from += Together {
		some := min(Together, n-from)
		kernel.DotsRows(c.all[:rows*some], p.BV[from*pp:(from+some)*pp], moments, rows)
		for r := range rows {
			at := r*np + from
			// what is left of E (u·v)² without the square of the mean
			for j, e := range c.all[r*some : (r+1)*some] {
				m := c.Mean[at+j]
				all[at+j] = max(e-float64(m*m), 0)
			}
		}
	}
}

// The least of the denominators of Without and of InTurn.
const (
	slack       = 0.4
	slackInTurn = 0.2
)

// Without returns the mean of a cell of row r of the last Rows, whose value is y
// and whose weight τρ is a, had it not been seen.
func (c *Cells) Without(r, j int, y, a float64) float64 {
	at := r*c.np + j
	m, own := c.Mean[at], c.Own[at]
	return m - float64(a*(float64((y-m)*own)-2*c.Both[at]))/max(slack, 1-float64(a*own))
}

// InTurn returns what Without does, by the second of the formulas above.
func (c *Cells) InTurn(r, j int, y, a float64) float64 {
	at := r*c.np + j
	m := c.Mean[at]
	row := min(max(float64(a*c.byRow[at]), 0), 1)
	column := min(max(float64(a*c.Own[at])-row, 0), 1)
	left := max(float64((1-row)*(1-column)), slackInTurn)
	return m - (float64((y-m)*(1-left))-float64(2*float64(a*c.Both[at])))/left
}

// near returns the neighbours of row i.
func (c *Cells) near(i int) []Neighbour {
	if c.p.Near == nil {
		return nil
	}
	return c.p.Near.Of[i]
}

// Said returns what the neighbours of row i, row r of the last Rows, say of a cell of value y, times √(τρ),
// had the cell not been seen.
func (c *Cells) Said(r, i, j int, y float64) (sum float64) {
	p, of := c.p, c.near(i)
	a := float64(p.Tau[i] * p.Rho[j])
	at := func(l int) float64 { return c.with[(c.first[r]+l)*c.np+j] }
	pull := a * (y - c.Mean[r*c.np+j]) / max(slack, 1-float64(a*at(len(of))))
	for l, o := range of {
		if z := p.Near.Z[o.Row][j]; z != 0 { // a seen cell
			sum += float64(o.Weight * (z + float64(math.Sqrt(p.Tau[o.Row]*p.Rho[j])*pull*at(l))))
		}
	}
	return sum
}

// At returns the mean of a cell of row i, row r of the last Rows.
func (c *Cells) At(r, i, j int) float64 {
	m, sum := c.Mean[r*c.np+j], 0.0
	of, alike := c.near(i), c.p.Alike
	bent := alike != nil && alike.Z[i] != nil
	if len(of) == 0 && !bent {
		return m
	}
	for _, o := range of {
		sum += float64(o.Weight * c.p.Near.Z[o.Row][j])
	}
	if bent {
		sum += alike.say(alike.Z[i], j)
	}
	return m + sum/math.Sqrt(c.p.Tau[i]*c.p.Rho[j])
}

// Deviation returns the deviation of Y of a cell of row i, row r of the last Rows.
func (c *Cells) Deviation(r, i, j int) float64 {
	return c.p.Left(i) * math.Sqrt(c.Var[r*c.np+j]+1/(c.p.Tau[i]*c.p.Rho[j]))
}

// Left returns the factor by which neighbours, and samples that are alike, make the deviation of row i
// smaller.
func (p *Posterior) Left(i int) float64 {
	left := 1.0
	if p.Near != nil {
		left = p.Near.Left[i]
	}
	if p.Alike != nil {
		left *= p.Alike.Left[i]
	}
	return left
}

// Placer places new columns: the step of v_j and ρ_j of a fit, all else as it is.
type Placer struct {
	p          *Posterior
	all        []float64 // packed Σ_i τ_i B_i
	weights    weights
	gram, back []float64
	rhs, v     []float64
	ws         system // holds -C and v
}

// Placer returns what places new columns, for one worker.
func (p *Posterior) Placer() *Placer {
	pp := Packed(p.K)
	s := &Placer{p: p, all: make([]float64, pp)}
	s.weights.fill(p.Tau, pp)
	var w [1]float64
	for i := range p.D {
		w[0] = p.Tau[i]
		kernel.Accumulate(s.all, w[:], p.BU[i*pp:(i+1)*pp])
	}
	return s.Share()
}

// Share returns another for another worker.
func (s *Placer) Share() *Placer {
	k := s.p.K
	return &Placer{p: s.p, all: s.all, weights: s.weights, gram: make([]float64, Packed(k)),
		back: make([]float64, Packed(k)), rhs: make([]float64, k), v: make([]float64, k), ws: newSystem(k)}
}

// placeSteps is how often ρ and v of a new column are updated in turn.
const placeSteps = 3

// Place returns the coordinates of a new column y, NaN where it is not known, and
// its ρ. What it returns is overwritten by the next call.
func (s *Placer) Place(y []float64) (v []float64, rho float64) {
	p, k := s.p, s.p.K
	pp := Packed(k)
	l := List{}
	for _, t := range y {
		if t == t {
			l.Count++
		}
	}
	l.Seen = 2*l.Count < p.D
	squares := 0.0
	clear(s.rhs)
	for i, t := range y {
		if (t == t) == l.Seen {
			l.At = append(l.At, uint32(i))
		}
		if t == t {
			a := p.Tau[i] * t
			squares += float64(a * t)
			for c, u := range p.U[i*k : (i+1)*k] {
				s.rhs[c] += float64(a * u)
			}
		}
	}
	s.weights.gather(s.gram, &l, s.all, p.BU, pp)
	rho = 1
	at := s.ws.border()
	for step := range placeSteps {
		s.ws.load(s.gram, rho)
		for c := range at {
			s.ws.a[c*s.ws.kp+c]++
			at[c] = s.rhs[c] * rho
		}
		s.ws.solve()
		s.ws.pack(s.back)
		copy(s.v, at)
		if !s.finite() { // moments that are none, from a file: the prior
			clear(s.v)
			clear(s.back)
			for c := range k {
				s.back[c*(c+1)/2+c] = 1
			}
			return s.v, 1
		}
		if step == placeSteps-1 {
			break
		}
		var e [1]float64
		kernel.Dots(e[:], s.gram, s.back)
		dot := 0.0
		for c, t := range s.v {
			dot += float64(t * s.rhs[c])
		}
		rho = (float64(l.Count) + rhoCells) / (max(squares-2*dot+e[0], 0) + rhoCells)
		rho = min(max(rho/p.Unit, 1.0/rhoMost), rhoMost)
	}
	return s.v, rho
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

// Spread fills variance with Var (u_i·v) of every row, for the last column placed.
func (s *Placer) Spread(variance []float64) {
	p, k := s.p, s.p.K
	pp := Packed(k)
	for i := range variance {
		var e [1]float64
		kernel.Dots(e[:], s.back, p.BU[i*pp:(i+1)*pp])
		m := 0.0
		for c, u := range p.U[i*k : (i+1)*k] {
			m += float64(u * s.v[c])
		}
		variance[i] = max(e[0]-float64(m*m), 0)
	}
}
