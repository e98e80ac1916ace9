package posterior

// This file holds epochs on the completed matrix, which a fit begins with in place of its first epochs
// (posterior.go). The matrices to be inverted depend on how many cells of a line are hidden, not on which.
// With B, u, v, S, C, ρ, τ and α as in the package comment, K components, and the sums over all lines
//
//	G = Σ_i τ_i B_i,  G° = Σ_i τ_i u_i u_iᵀ,  H = Σ_j ρ_j B_j,  H° = Σ_j ρ_j v_j v_jᵀ,
//
// with the completed matrix Ỹ, which has the mean u_i·v_j in place of a hidden cell, and with the share s of
// the cells of a line that are seen, but s = 1/2 where fewer are, such an epoch is
//
//	C_j = (I + s_j ρ_j G)⁻¹,         v_j = C_j ρ_j (Σ_i τ_i Ỹ_ij u_i - (1-s_j) G° v_j);
//	S_i = (diag α + s_i τ_i H)⁻¹,    u_i = S_i τ_i (Σ_j ρ_j Ỹ_ij v_j - (1-s_i) H° u_i),
//
// with ρ, τ, α and the change of coordinates as in an epoch. On the right the v_j and u_i are those of
// before, which Ỹ has as well. The means come to rest where those of epochs do, but for the second moments,
// where s times the sum over all cells stands for the sum over the seen ones. From s = 1/2 on no direction in
// which a line is seen more than elsewhere makes the steps grow. Where nothing is hidden, they are epochs.
//
// All C_j have common eigenvectors, and so have all S_i on the scale of α:
//
//	C_j = E diag 1/(1 + s_j ρ_j λ) Eᵀ,  G = E diag λ Eᵀ,
//	S_i = W diag 1/(1 + s_i τ_i μ) Wᵀ,  W = (diag α)^-½ P,  (diag α)^-½ H (diag α)^-½ = P diag μ Pᵀ.
//
// So such an epoch takes 4dnK flops, 4K for each hidden cell and some 10 (d+n)K² and 100 K³, and no inverse
// of its own for any line. G and H are nearly diagonal already, because of the change of coordinates, so a
// few turns of pairs are enough for their eigenvectors.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

const (
	completedSeen  = 0.8  // the least share of seen cells for which a fit begins so
	completedLines = 64   // the least number of rows, and of columns
	completedLeast = 8    // epochs before they may end
	completedMost  = 20   // the most epochs
	completedMoved = 0.01 // they end when UV moves by less than this of itself
	// the largest entries off the diagonal that are left of G and H, over the root of both diagonal ones
	completedOff  = 1e-3
	completedHalf = 0.5 // the least s
)

// completed is a fit in its epochs on the completed matrix.
type completed struct {
	*Fit
	e, w       []float64   // L × kp: Eᵀ and Wᵀ, where L was K when they were made; nil before
	lambda, mu []float64   // L
	seenRho    []float64   // N: s ρ that the C_j were made with
	seenTau    []float64   // D: s τ that the S_i were made with
	means      []float64   // N × kp: the v_j of the means of hidden cells
	sums       [][]float64 // of each piece of the rows K × kp
	whole      []float64   // D × np: the completed matrix of the last step of V
	lines      [][]float64 // of each worker 12 kp numbers
	off        float64     // completedOff
}

// completes tells whether epochs on the completed matrix are of use: from enough lines on, with few hidden
// cells.
func (f *Fit) completes() bool {
	return min(f.D, f.N) >= completedLines && f.seen >= completedSeen*float64(f.D)*float64(f.N)
}

// Complete makes the first epochs, Ahead of them, on the completed matrix; where there are none it is Begin.
// When the context ends the fit has no meaning.
func (f *Fit) Complete() {
	switch {
	case f.Ahead == 0:
		f.Begin()
	case !f.stopped():
		f.complete(completedMost, completedOff)
	}
}

// complete makes at most so many epochs on the completed matrix.
func (f *Fit) complete(most int, off float64) {
	f.BU, f.BV, f.spare, f.grams = nil, nil, nil, nil // until the epochs have settled K
	c := &completed{Fit: f, seenRho: make([]float64, f.N), seenTau: make([]float64, f.D),
		means: make([]float64, f.N*f.kp), whole: slices.Clone(f.Y), off: off}
	c.size()
	for t := range most {
		copy(f.lastU, f.U)
		copy(f.lastV, f.V)
		c.transpose()
		c.stepV(t >= noiseFrom)
		if t < turns && !f.stopped() {
			c.turn()
		}
		if !f.stopped() {
			c.stepU()
		}
		if f.stopped() {
			return
		}
		f.relevant(f.sizes)
		f.noise()
		rest := t+1 >= completedLeast && f.movement() < completedMoved
		if t >= pruneFrom {
			c.prune()
		}
		if rest {
			break
		}
	}
	c.hold()
	c.secondMoments()
}

// share returns s of a line of n cells.
func (l *List) share(n int) float64 { return max(float64(l.Count)/float64(n), completedHalf) }

// size makes the room for K components.
func (c *completed) size() {
	c.sums, c.lines = make([][]float64, pieces(c.D)), make([][]float64, c.pool.Workers())
	for p := range c.sums {
		c.sums[p] = make([]float64, c.K*c.kp)
	}
	for w := range c.lines {
		c.lines[w] = make([]float64, 12*c.kp)
	}
}

// transpose fills means with V.
func (c *completed) transpose() {
	for h := range c.K {
		for j, v := range c.V[h*c.np : h*c.np+c.N] {
			c.means[j*c.kp+h] = v
		}
	}
}

// fill brings the hidden cells of row i of the completed matrix to their means; u is u_i, padded.
func (c *completed) fill(u []float64, i int) {
	line, y, l := c.whole[i*c.np:(i+1)*c.np], c.rowY(i), &c.Rows[i]
	if l.Seen {
		kernel.DotsRows(line[:c.N], c.means[:c.N*c.kp], u, 1)
		for _, j := range l.At {
			line[j] = y[j]
		}
		return
	}
	for _, j := range l.At {
		kernel.Dots(line[j:j+1], u, c.means[int(j)*c.kp:][:c.kp])
	}
}

// product fills to with the product of u, rows × k, and v.
func (c *completed) product(to, u, v []float64, rows int) {
	p, k := len(to)/rows, len(u)/rows
	c.pool.Do((rows+3)/4, func(_, piece int) {
		from, end := 4*piece, min(4*piece+4, rows)
		kernel.CombineRows(to[from*p:end*p], u[from*k:end*k], v, end-from)
	})
}

// addInverses adds Σ_l weight(l) basisᵀ diag 1/(1 + t_l λ) basis to a, K × kp.
func (c *completed) addInverses(a, basis, lambda, t []float64, weight func(l int) float64) {
	s, k, kp := make([]float64, len(lambda)), c.K, c.kp
	for l, t := range t {
		w := weight(l)
		for h, v := range lambda {
			s[h] += w / (1 + float64(t*v))
		}
	}
	flipped, scaled := make([]float64, k*len(lambda)), make([]float64, len(lambda)*kp)
	for h, v := range s {
		kernel.Scale(scaled[h*kp:(h+1)*kp], basis[h*kp:(h+1)*kp], v)
		for c := range k {
			flipped[c*len(s)+h] = basis[h*kp+c]
		}
	}
	sum := make([]float64, k*kp)
	kernel.CombineRows(sum, flipped, scaled, k)
	add(a, sum)
}

// addProduct adds V Wᵀ to a, K × kp, for V and a W of its size.
func (c *completed) addProduct(a, v, w []float64) {
	k, np := c.K, c.np
	g := make([]float64, k*k)
	c.pool.Do((k+3)/4, func(_, piece int) {
		from, end := 4*piece, min(4*piece+4, k)
		kernel.DotsRows(g[from*k:end*k], v, w[from*np:end*np], end-from)
	})
	for r := range k {
		for h := range k {
			a[r*c.kp+h] += g[r*k+h]
		}
	}
}

// padded fills lines of kp numbers with four rows of U and returns them.
func (c *completed) padded(to []float64, from, rows int) []float64 {
	for r := range rows {
		clear(to[r*c.kp+copy(to[r*c.kp:], c.rowU(from+r)) : (r+1)*c.kp])
	}
	return to[:rows*c.kp]
}

// stepV updates ρ, if told, V and C.
func (c *completed) stepV(noise bool) {
	k, np, kp, count := c.K, c.np, c.kp, pieces(c.D)
	c.pool.Do(count, func(w, piece int) {
		us := c.lines[w][:4*kp]
		scaled, squares := c.work[w].u, c.work[w].line[:np]
		part, sum := c.parts[piece][:k*np+np], c.sums[piece]
		clear(part)
		clear(sum)
		from, to := pool.Cut(c.D, count, piece)
		for i := from; i < to && !c.stopped(); {
			rows := min(4, to-i)
			us := c.padded(us, i, rows)
			for r := range rows {
				t := c.Tau[i+r]
				c.fill(us[r*kp:(r+1)*kp], i+r)
				for h, v := range c.rowU(i + r) {
					scaled[r*k+h] = v * t
				}
				if noise {
					line := c.whole[(i+r)*np : (i+r+1)*np]
					kernel.Multiply(squares, line, line)
					kernel.Accumulate(part[k*np:], []float64{t}, squares)
				}
			}
			kernel.AccumulateRows(part[:k*np], scaled[:rows*k], c.whole[i*np:(i+rows)*np], rows)
			kernel.AccumulateRows(sum, scaled[:rows*k], us, rows)
			i += rows
		}
	})
	if c.stopped() {
		return
	}
	rhs, gram := c.rhs[:k*np], make([]float64, k*kp)
	clear(rhs)
	clear(c.squares)
	for p := range count {
		add(rhs, c.parts[p][:k*np])
		add(c.squares, c.parts[p][k*np:k*np+np])
		add(gram, c.sums[p])
	}
	all := make([]float64, k*kp) // Σ_i τ_i S_i
	if c.w != nil {
		c.addInverses(all, c.w, c.mu, c.seenTau, func(i int) float64 { return c.Tau[i] })
	}
	fit := make([]float64, k*np) // Σ τ u uᵀ v
	c.product(fit, square(gram, k, kp), c.V, k)
	if noise {
		c.noiseV(rhs, fit, gram, all)
	}
	add(gram, all)
	c.lambda, c.e = jacobi(gram, k, kp, c.off)
	turned := c.scaled[:k*np]
	for j, r := range c.Rho {
		share := c.Cols[j].share(c.D)
		c.seenRho[j] = r * share
		for h := range k {
			rhs[h*np+j] -= float64((1 - share) * fit[h*np+j])
		}
	}
	c.product(turned, square(c.e, k, kp), rhs, k)
	for h, l := range c.lambda {
		row := turned[h*np:]
		for j, r := range c.Rho {
			row[j] *= r / (1 + float64(c.seenRho[j]*l))
		}
	}
	c.product(c.V, square(transposed(c.e, k, kp), k, kp), turned, k)
}

// noiseV updates ρ, given Σ τ ỹ u of all columns, Σ τ u uᵀ and Σ τ S. The hidden cells are at their means, so
// what the square of their residual has is their variance.
func (c *completed) noiseV(rhs, fit, gram, all []float64) {
	k, np, kp := c.K, c.np, c.kp
	vary := c.scaled[:k*np]
	c.product(vary, square(all, k, kp), c.V, k)
	both := make([]float64, k*kp)
	add(both, gram)
	add(both, all)
	own, half := make([]float64, len(c.lambda)), make([]float64, len(c.lambda)*kp)
	kernel.CombineRows(half, tight(c.e, len(own), k, kp), both, len(own))
	for h := range own {
		kernel.Dots(own[h:h+1], half[h*kp:(h+1)*kp], c.e[h*kp:(h+1)*kp])
	}
	for j := range c.N {
		square, variance := c.squares[j], 0.0
		for h := range k {
			v := c.V[h*np+j]
			square += float64(v * (fit[h*np+j] - 2*rhs[h*np+j]))
			variance += float64(v * vary[h*np+j])
		}
		for h, l := range c.lambda {
			variance += own[h] / (1 + float64(c.seenRho[j]*l))
		}
		count := float64(c.Cols[j].Count)
		c.Rho[j] = (count + rhoCells) / (max(square, 0) + float64(count/float64(c.D)*variance) + rhoCells)
	}
	c.unitRho()
}

// turn changes the coordinates of V as Fit.turn does.
func (c *completed) turn() {
	k, kp, count := c.K, c.kp, pieces(c.D)
	low, sum := make([]float64, k*kp), make([]float64, k*kp)
	c.addInverses(low, c.e, c.lambda, c.seenRho, func(int) float64 { return 1 })
	c.addProduct(low, c.V, c.V)
	kernel.Scale(low, low, 1/float64(c.N))
	c.pool.Do(count, func(w, piece int) {
		part := c.sums[piece]
		clear(part)
		from, to := pool.Cut(c.D, count, piece)
		for i := from; i < to; i += 4 {
			rows := min(4, to-i)
			kernel.AccumulateRows(part, c.U[i*k:(i+rows)*k], c.padded(c.lines[w], i, rows), rows)
		}
	})
	for _, part := range c.sums {
		add(sum, part)
	}
	if c.w != nil {
		c.addInverses(sum, c.w, c.mu, c.seenTau, func(int) float64 { return 1 })
	}
	for h := range k {
		low[h*kp+h] += 1e-9
	}
	cholesky(low, k, kp)
	mid := make([]float64, k*kp)
	kernel.CombineRows(mid, square(sum, k, kp), low, k)
	kernel.CombineRows(sum, square(transposed(low, k, kp), k, kp), mid, k) // lowᵀ Σ_i B_i low
	s, q := jacobi(sum, k, kp, c.off)
	c.relevant(s)
	r := make([]float64, k*kp)
	kernel.CombineRows(r, square(q, k, kp), lowerInverse(low, k, kp), k)
	v := make([]float64, len(c.V))
	c.product(v, square(r, k, kp), c.V, k)
	c.V = v
	e := make([]float64, k*kp)
	kernel.CombineRows(e, square(c.e, k, kp), transposed(r, k, kp), k)
	c.e = e
}

// stepU updates U and S, and fills resid and sizes.
func (c *completed) stepU() {
	k, np, kp := c.K, c.np, c.kp
	for h := range k {
		kernel.Multiply(c.scaled[h*np:h*np+c.N], c.V[h*np:h*np+c.N], c.Rho)
	}
	all, gram := make([]float64, k*kp), make([]float64, k*kp) // Σ_j ρ_j C_j, Σ_j ρ_j v_j v_jᵀ
	c.addInverses(all, c.e, c.lambda, c.seenRho, func(j int) float64 { return c.Rho[j] })
	c.addProduct(gram, c.V, c.scaled)
	c.basis(all, gram)
	flipped := transposed(c.w, k, kp)
	cross := make([]float64, k*kp)
	c.addProduct(cross, c.scaled, c.lastV) // Σ_j (last v_j) ρ_j v_jᵀ
	c.pool.Do((c.D+3)/4, func(w, piece int) {
		if c.stopped() {
			return
		}
		us, fit, vary := c.lines[w][:4*kp], c.lines[w][4*kp:8*kp], c.lines[w][8*kp:12*kp]
		at, room := c.work[w].u, c.work[w].line[:np]
		from, to := 4*piece, min(4*piece+4, c.D)
		rows := to - from
		kernel.CombineRows(vary[:rows*kp], c.U[from*k:to*k], cross, rows)
		for r := range rows {
			line := c.whole[(from+r)*np : (from+r+1)*np]
			kernel.Multiply(room[:c.N], line[:c.N], c.Rho)
			clear(room[c.N:])
			kernel.Dots(c.resid[from+r:from+r+1], room, line)
		}
		rhs := c.rhs[from*k : to*k]
		kernel.DotsRows(rhs, c.scaled, c.whole[from*np:to*np], rows)
		for r := range rows {
			i := from + r
			share := c.Rows[i].share(c.N)
			c.seenTau[i] = c.Tau[i] * share
			for h := range k {
				at[r*k+h] = rhs[r*k+h] - float64((1-share)*vary[r*kp+h])
			}
		}
		kernel.CombineRows(us[:rows*kp], at[:rows*k], flipped, rows)
		for r := range rows {
			t, seen := c.Tau[from+r], c.seenTau[from+r]
			for h, l := range c.mu {
				at[r*k+h] = us[r*kp+h] * (t / (1 + float64(seen*l)))
			}
		}
		kernel.CombineRows(us[:rows*kp], at[:rows*k], c.w, rows)
		for r := range rows {
			copy(c.rowU(from+r), us[r*kp:r*kp+k])
		}
		kernel.CombineRows(fit[:rows*kp], c.U[from*k:to*k], gram, rows)
		kernel.CombineRows(vary[:rows*kp], c.U[from*k:to*k], all, rows)
		for r := range rows {
			i, square, variance := from+r, 0.0, 0.0
			for h, u := range c.rowU(i) {
				square += float64(u * (fit[r*kp+h] - 2*rhs[r*k+h]))
				variance += float64(u * vary[r*kp+h])
			}
			for _, l := range c.mu {
				variance += l / (1 + float64(c.seenTau[i]*l))
			}
			c.resid[i] = max(c.resid[i]+square, 0) + float64(float64(c.Rows[i].Count)/float64(c.N)*variance)
		}
	})
	if c.stopped() {
		return
	}
	c.diagonalU()
}

// basis fills W and μ, given Σ_j ρ_j C_j and Σ_j ρ_j v_j v_jᵀ.
func (c *completed) basis(all, gram []float64) {
	k, kp := c.K, c.kp
	h, root := make([]float64, k*kp), make([]float64, k)
	add(h, all)
	add(h, gram)
	for r, a := range c.Alpha {
		root[r] = 1 / math.Sqrt(a)
	}
	for r := range k {
		for s := range k {
			h[r*kp+s] *= root[r] * root[s]
		}
	}
	c.mu, c.w = jacobi(h, k, kp, c.off)
	for r := range k {
		for s, t := range root {
			c.w[r*kp+s] *= t
		}
	}
}

// diagonalU fills sizes with the diagonal of Σ_i B_i.
func (c *completed) diagonalU() {
	sum := make([]float64, c.K*c.kp)
	c.addInverses(sum, c.w, c.mu, c.seenTau, func(int) float64 { return 1 })
	for h := range c.K {
		c.sizes[h] = sum[h*c.kp+h]
	}
	for i := range c.D {
		for h, u := range c.rowU(i) {
			c.sizes[h] += float64(u * u)
		}
	}
}

// prune drops the components that Fit.prune drops.
func (c *completed) prune() {
	k, kp := c.K, c.kp
	keep := c.kept()
	if len(keep) == 0 || len(keep) == k {
		return
	}
	c.keep(keep)
	pick := func(basis []float64) []float64 {
		to := make([]float64, len(basis)/kp*c.kp)
		for l := range len(basis) / kp {
			for h, a := range keep {
				to[l*c.kp+h] = basis[l*kp+a]
			}
		}
		return to
	}
	c.e, c.w, c.means = pick(c.e), pick(c.w), make([]float64, c.N*c.kp)
	c.size()
}

// secondMoments fills the second moments.
func (c *completed) secondMoments() {
	k, kp := c.K, c.kp
	most := (max(len(c.lambda), len(c.mu)) + 3) &^ 3
	whole := func(basis []float64) []float64 { return append(basis, make([]float64, most*kp-len(basis))...) }
	e, w := whole(c.e), whole(c.w)
	c.transpose()
	room := make([][]float64, c.pool.Workers())
	c.pool.Do(c.D+c.N, func(worker, l int) {
		if c.stopped() {
			return
		}
		if room[worker] == nil {
			room[worker] = make([]float64, (most+k)*kp)
		}
		half, a := room[worker][:most*kp], room[worker][most*kp:]
		basis, lambda, t, at, to := e, c.lambda, 0.0, []float64(nil), []float64(nil)
		if l < c.D {
			basis, lambda, t, at, to = w, c.mu, c.seenTau[l], c.rowU(l), c.packU(l)
		} else {
			j := l - c.D
			t, at, to = c.seenRho[j], c.means[j*kp:j*kp+k], c.packV(j)
		}
		clear(a)
		for h, v := range lambda {
			kernel.Scale(half[h*kp:(h+1)*kp], basis[h*kp:(h+1)*kp], 1/(1+float64(t*v)))
		}
		for h := 0; h < len(lambda); h += 4 {
			kernel.AccumulateLower(a, half[h*kp:(h+4)*kp], basis[h*kp:(h+4)*kp], 0, k)
		}
		for r, x := range at {
			for h, y := range at[:r+1] {
				a[r*kp+h] += float64(x * y)
			}
		}
		c.pack(to, a)
	})
}
