package posterior

// This file holds what rows say of each other beyond the factors. The noise of nearly equal rows (pixels that touch, two
// forms of one molecule) goes together, and no component is spared for two rows. With
//
//	z_ij = √(τ_i ρ_j) (Y_ij - u_i·v_j) at seen cells, 0 at hidden ones,
//	c_il = Σ_j z_ij z_lj / n_il + √(τ_i τ_l) u_iᵀ (Σ_j ρ_j C_j / n) u_l,   r_il = c_il / √(c_ii c_ll),
//
// r_il is the correlation of the noise of rows i and l over the n_il cells that both have: the second part is
// what the factors, which saw both rows, have taken of it; where many are compared, n_il counts as n_i n_l / n. Rows of nearly the same loadings are
// likely to have such noise in common, others not, so r_il counts by the share
//
//	s = v/(v + ν),  v = mean of (n_il r_il² - ν) over the pairs of rows with as large a |cosine| of u_i and u_l,
//
// ν the mean of n_il r_il² where that is small: what is expected of r_il is s r_il where its variance is v + ν, of which ν is chance. The neighbours
// of row i are the rows of largest s|r_il|, at most nearMost, that are above nearShrunk/√n_i with |r_il| above nearLeast/√n_i, among nearBlock rows in their order.
// Their weights are
//
//	b_l = √(c_ii/c_ll) a_l,  a = (R + nearRidge I)⁻¹ r_i,
//
// R and r_i the correlations by their shares, and the mean of a cell is u_i·v_j + Σ_l b_l z_lj / √(τ_i ρ_j). Without cell (i, j) of weight
// A = τ_i ρ_j itself, to first order as in cells.go,
//
//	z_lj⁻ = z_lj + √(τ_l ρ_j) A (Y_ij - m) u_lᵀC_j u_i / max(0.4, 1 - A u_iᵀC_j u_i).
//
// What these leave of the row's leave-one-out residuals decides whether it has neighbours at all, and may make the weights less
// (Keep).
//
// Cost: 2(n + 2K) flops for each pair of rows of a block, as much again for each of 4 nearPieces of them, and at the end 2(n + 2K) for each pair of neighbours; for each of the cells of a row
// that has neighbours 2K for each of them.

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

const (
	nearMost   = 10
	nearSure   = 4.5 // deviations 1/√n_i above which r_il counts in full
	nearLeast  = 2.5 // below which it does not count
	nearCells  = 100 // seen cells, below which leave-one-out does not tell chance: rows then have neighbours that are sure alone
	nearShrunk = 1.4 // deviations that what is left of it is above
	nearBins   = 20  // of cosines; the lowest nearNone of them have correlations of nothing
	nearNone   = 4
	nearPieces = 64   // of four rows that the shares come from, evenly spread
	nearPairs  = 10   // pseudo-pairs of a bin
	nearRidge  = 0.05 // of a diagonal of 1
	nearBlock  = 2048 // rows that are compared with each other
	nearGain   = 0.02 // of the squares of a row's leave-one-out residuals, below which it has no neighbours
	nearWeight = 4    // the largest magnitude of a weight
)

// Neighbour is a row, and its weight in another one.
type Neighbour struct {
	Row    int
	Weight float64
}

// Near is the neighbours of all rows.
type Near struct {
	Of   [][]Neighbour // of each row
	Left []float64     // by which they make the deviation of a row smaller
	Z    [][]float64   // of each row Pad(N); nil of one that is constant, and once all are decided on of one that is no neighbour
}

// Neighbours finds the neighbours of the rows given, of which x has the cells; their weights count in full. nil where there
// are none, or when the pool's work was stopped.
func (p *Posterior) Neighbours(x *Data, rows []int, workers *pool.Pool, stopped func() bool) *Near {
	k, np, kp := p.K, kernel.Pad(p.N), kernel.Pad(p.K)
	near := &Near{Of: make([][]Neighbour, p.D), Left: make([]float64, p.D), Z: make([][]float64, p.D)}
	for i := range near.Left {
		near.Left[i] = 1
	}
	for _, i := range rows {
		near.Z[i] = make([]float64, np)
	}
	// Line a has √n z/n_a and then √τ u, over √c_aa, and ways u over its length, so that an inner product of two lines, with Σ ρ C / n
	// between the second parts, is a correlation where n_il = n_i n_l / n.
	width, words := np+kp, (p.N+63)/64
	lines, seen, ways := make([]float64, len(rows)*width), make([]uint64, len(rows)*words), make([]float64, len(rows)*kp)
	taken, scale := p.taken(), make([]float64, len(rows))
	root := make([]float64, p.N)
	for j := range root {
		root[j] = math.Sqrt(p.Rho[j])
	}
	const together = 8 // rows of a piece
	workers.Do((len(rows)+together-1)/together, func(_, piece int) {
		half := make([]float64, kp)
		for a := together * piece; a < min(together*(piece+1), len(rows)) && !stopped(); a++ {
			i := rows[a]
			z, line, u := near.Z[i], lines[a*width:(a+1)*width], p.U[i*k:(i+1)*k]
			kernel.Combine(line[:np], u, p.V)
			t := math.Sqrt(p.Tau[i])
			x.Rows[a].Each(p.N, func(j int) {
				z[j] = t * root[j] * (x.Y[a*np+j] - line[j])
				seen[a*words+j/64] |= 1 << (j % 64)
			})
			for c, v := range u {
				line[np+c] = t * v
			}
			count := float64(max(x.Rows[a].Count, 1))
			kernel.Combine(half, line[np:np+k], taken)
			var zz, uu [1]float64
			kernel.Dots(zz[:], z, z)
			kernel.Dots(uu[:], line[np:], half)
			scale[a] = math.Sqrt(max(zz[0]/count+uu[0], 1e-6))
			kernel.Scale(line[:np], z, math.Sqrt(float64(p.N))/count/scale[a])
			kernel.Scale(line[np:], line[np:], 1/scale[a])
			copy(ways[a*kp:], u)
			kernel.Dots(uu[:], ways[a*kp:(a+1)*kp], ways[a*kp:(a+1)*kp])
			if uu[0] > 0 {
				kernel.Scale(ways[a*kp:(a+1)*kp], ways[a*kp:(a+1)*kp], 1/math.Sqrt(uu[0]))
			}
		}
	})
	some := make([]bool, p.D)
	type room struct{ query, dots, cosines, half []float64 }
	work := make([]*room, workers.Workers())
	// compare fills the dots and cosines of up to four rows from the one given with the rows of their block.
	compare := func(w, from int) (ws *room, to, first, count int) {
		if work[w] == nil {
			most := 4 * min(nearBlock, len(rows))
			work[w] = &room{make([]float64, 4*width), make([]float64, most), make([]float64, most), make([]float64, kp)}
		}
		ws, to = work[w], min(from+4, len(rows))
		first = from / nearBlock * nearBlock
		last := min(first+nearBlock, len(rows))
		count = last - first
		for a := from; a < to; a++ {
			q, line := ws.query[(a-from)*width:(a-from+1)*width], lines[a*width:(a+1)*width]
			copy(q, line[:np])
			kernel.Combine(ws.half, line[np:np+k], taken)
			copy(q[np:], ws.half)
		}
		kernel.DotsRows(ws.dots[:(to-from)*count], lines[first*width:last*width], ws.query[:(to-from)*width], to-from)
		kernel.DotsRows(ws.cosines[:(to-from)*count], ways[first*kp:last*kp], ways[from*kp:to*kp], to-from)
		return ws, to, first, count
	}
	size := func(a, b int) float64 {
		return float64(x.Rows[a].Count) * float64(x.Rows[b].Count) / float64(p.N)
	}
	// What is left of a correlation, by the cosine of the two loadings.
	pieces := (len(rows) + 3) / 4
	every := (pieces + nearPieces - 1) / nearPieces
	squares := make([][2][nearBins]float64, (pieces+every-1)/every)
	workers.Do(len(squares), func(w, piece int) {
		if stopped() {
			return
		}
		from := 4 * every * piece
		ws, to, first, count := compare(w, from)
		for a := from; a < to; a++ {
			for b := range count {
				if first+b != a {
					h, r := nearBin(ws.cosines[(a-from)*count+b]), ws.dots[(a-from)*count+b]
					if t := float64(float64(r*r) * size(a, first+b)); t < nearSure*nearSure {
						squares[piece][0][h] += t
						squares[piece][1][h]++
					}
				}
			}
		}
	})
	share := shares(squares)
	workers.Do(pieces, func(w, piece int) {
		if stopped() {
			return
		}
		from := 4 * piece
		ws, to, first, count := compare(w, from)
		for a := from; a < to; a++ {
			dots, one := ws.dots[(a-from)*count:(a-from+1)*count], 1/math.Sqrt(float64(max(x.Rows[a].Count, 1)))
			least := nearLeast * one
			if x.Rows[a].Count < nearCells {
				least = nearSure * one
			}
			for h, r := range dots {
				switch {
				case math.Abs(r) <= least:
					dots[h] = 0
				case math.Abs(r) <= nearSure*one:
					dots[h] = r * share[nearBin(ws.cosines[(a-from)*count+h])]
				}
			}
			of := nearest(dots, a-first, nearShrunk*one)
			if len(of) == 0 {
				continue
			}
			correlation := func(a, b int) float64 {
				both := 0
				for w, s := range seen[a*words : (a+1)*words] {
					both += bits.OnesCount64(s & seen[b*words+w])
				}
				if both == 0 {
					return 0
				}
				var zz, uu [1]float64
				kernel.Dots(zz[:], lines[a*width:a*width+np], lines[b*width:b*width+np])
				kernel.Combine(ws.half, lines[a*width+np:][:k], taken)
				kernel.Dots(uu[:], lines[b*width+np:(b+1)*width], ws.half)
				r := float64(zz[0]*(size(a, b)/float64(both))) + uu[0]
				if math.Abs(r) > nearSure/math.Sqrt(float64(both)) {
					return r
				}
				kernel.Dots(uu[:], ways[a*kp:(a+1)*kp], ways[b*kp:(b+1)*kp])
				return r * share[nearBin(uu[0])]
			}
			s := newSystem(len(of))
			for r, b := range of {
				for c, h := range of[:r] {
					s.a[r*s.kp+c] = correlation(first+b, first+h)
				}
				s.a[r*s.kp+r] = 1 + nearRidge
				s.border()[r] = correlation(a, first+b)
			}
			s.solve()
			fine := true
			for r, b := range s.border() {
				fine = fine && math.Abs(b*scale[a]/scale[first+of[r]]) <= nearWeight
			}
			if !fine { // correlations over different cells that no variables have
				continue
			}
			for r, b := range of {
				near.Of[rows[a]] = append(near.Of[rows[a]], Neighbour{rows[first+b], s.border()[r] * scale[a] / scale[first+b]})
			}
			some[rows[a]] = true
		}
	})
	if !slices.Contains(some, true) || stopped() {
		return nil
	}
	return near
}

// taken returns Σ_j ρ_j C_j / n, K × Pad(K).
func (p *Posterior) taken() []float64 {
	k, pp := p.K, Packed(p.K)
	np := kernel.Pad(p.N)
	f := Fit{K: k, kp: kernel.Pad(k)}
	sum, a := make([]float64, pp), make([]float64, k*kernel.Pad(k))
	for j := range p.N {
		w := [1]float64{p.Rho[j] / float64(p.N)}
		kernel.Accumulate(sum, w[:], p.BV[j*pp:(j+1)*pp])
	}
	f.unpack(a, sum, 1)
	for r := range k {
		for c := range k {
			s := 0.0
			for j, rho := range p.Rho {
				s += float64(float64(rho/float64(p.N)*p.V[r*np+j]) * p.V[c*np+j])
			}
			a[r*f.kp+c] -= s
		}
	}
	return a
}

// nearBin is that of a cosine.
func nearBin(cosine float64) int { return min(int(math.Abs(cosine)*nearBins), nearBins-1) }

// shares returns what is left of a correlation in each bin, of sums of squares, times n_il, and of counts.
func shares(squares [][2][nearBins]float64) (share [nearBins]float64) {
	var sum, count [nearBins]float64
	for _, s := range squares {
		for h := range sum {
			sum[h] += s[0][h]
			count[h] += s[1][h]
		}
	}
	noise, pairs := 0.75*nearPairs, float64(nearPairs)
	for h := range nearNone {
		noise += sum[h]
		pairs += count[h]
	}
	noise = float64(min(noise/pairs, 1) * 1.05) // what bins of nothing differ by
	for h := range share {
		beyond := max(sum[h]-float64(noise*count[h]), 0) / (count[h] + nearPairs)
		share[h] = beyond / (beyond + noise)
	}
	return share
}

// nearest returns the places of the numbers that are largest in magnitude, falling, and above least, but that of own.
func nearest(r []float64, own int, least float64) (of []int) {
	for b, v := range r {
		if b != own && math.Abs(v) > least {
			of = append(of, b)
		}
	}
	slices.SortFunc(of, func(a, b int) int {
		if c := cmp.Compare(math.Abs(r[b]), math.Abs(r[a])); c != 0 {
			return c
		}
		return a - b
	})
	return of[:min(len(of), nearMost)]
}

// keep returns by what factor that counts which is said of a row's leave-one-out residuals, each times √(τρ): 0 where less than a share
// gain of their squares goes away; and by what it makes their deviation smaller.
func keep(residuals, said []float64, gain float64) (factor, left float64) {
	cov, square := 0.0, 0.0
	for j, s := range said {
		cov += float64(s * residuals[j])
		square += float64(s * s)
	}
	if square > 0 {
		factor = min(max(cov/square, 0), 1)
	}
	before, after := 0.0, 0.0
	for j, s := range said {
		e := residuals[j] - float64(factor*s)
		before += float64(residuals[j] * residuals[j])
		after += float64(e * e)
	}
	if !(after <= (1-gain)*before) || factor == 0 {
		return 0, 1
	}
	return factor, math.Sqrt(after / before)
}

// Keep decides on the neighbours of row i by its leave-one-out residuals, each times √(τρ), and what the neighbours say of each.
// It returns the factor by which that counts: 0 where the row is better off without.
func (n *Near) Keep(i int, residuals, said []float64) (factor float64) {
	factor, left := keep(residuals, said, nearGain)
	if factor == 0 {
		n.Of[i] = nil
		return 0
	}
	for l := range n.Of[i] {
		n.Of[i][l].Weight *= factor
	}
	n.Left[i] = left
	return factor
}

// Used returns the rows that are neighbours of any, rising.
func (n *Near) Used() (rows []int) {
	is := make([]bool, len(n.Of))
	for _, of := range n.Of {
		for _, l := range of {
			is[l.Row] = true
		}
	}
	for i, used := range is {
		if used {
			rows = append(rows, i)
		}
	}
	return rows
}

// Settled returns what is left when all rows are decided on: without the numbers of rows that are no neighbours, nil where no row has any.
func (n *Near) Settled() *Near {
	used := n.Used()
	if len(used) == 0 {
		return nil
	}
	z := make([][]float64, len(n.Z))
	for _, i := range used {
		z[i] = n.Z[i]
	}
	n.Z = z
	return n
}

// Say returns what the neighbours of row i say of a column, given every row's z, times √(τρ).
func (n *Near) Say(i int, z []float64) (sum float64) {
	for _, l := range n.Of[i] {
		sum += float64(l.Weight * z[l.Row])
	}
	return sum
}

// Encode returns neighbours as numbers, none for nil: words, of each row a count and the rows, and of each row that has any
// their weights and what they leave, then z, n numbers, of each row that is one.
func (n *Near) Encode(columns int) (words []uint64, numbers []float64) {
	if n == nil {
		return nil, nil
	}
	for i, of := range n.Of {
		words = append(words, uint64(len(of)))
		for _, l := range of {
			words, numbers = append(words, uint64(l.Row)), append(numbers, l.Weight)
		}
		if len(of) > 0 {
			numbers = append(numbers, n.Left[i])
		}
	}
	for _, i := range n.Used() {
		numbers = append(numbers, n.Z[i][:columns]...)
	}
	return words, numbers
}

// DecodeNear is the inverse of Encode, for numbers that need not come from it. What is wrong is a problem, with part 0 of the
// words or 1 of the numbers.
func DecodeNear(words []uint64, numbers []float64, d, columns int) (n *Near, part int, problem string) {
	if len(words) == 0 && len(numbers) == 0 {
		return nil, 0, ""
	}
	n = &Near{Of: make([][]Neighbour, d), Left: make([]float64, d)}
	for i := range n.Of {
		n.Left[i] = 1
		if len(words) == 0 {
			return nil, 0, "wrong length"
		}
		count := words[0]
		words = words[1:]
		if count > uint64(len(words)) || count > nearMost {
			return nil, 0, "a number of neighbours is out of range"
		}
		if count == 0 {
			continue
		}
		if count >= uint64(len(numbers)) {
			return nil, 1, "wrong length"
		}
		for l, row := range words[:count] {
			if row >= uint64(d) || row == uint64(i) {
				return nil, 0, "a neighbour is out of range"
			}
			if w := numbers[l]; !(math.Abs(w) <= nearWeight) {
				return nil, 1, "a weight is out of range"
			}
			n.Of[i] = append(n.Of[i], Neighbour{int(row), numbers[l]})
		}
		if n.Left[i] = numbers[count]; !(n.Left[i] >= 0 && n.Left[i] <= 1) {
			return nil, 1, "what neighbours leave is out of range"
		}
		words, numbers = words[count:], numbers[count+1:]
	}
	used := n.Used()
	if len(words) > 0 || len(used) == 0 {
		return nil, 0, "wrong length"
	}
	if int64(len(numbers)) != int64(len(used))*int64(columns) {
		return nil, 1, "wrong length"
	}
	np := kernel.Pad(columns)
	n.Z = make([][]float64, d)
	for at, i := range used {
		n.Z[i] = make([]float64, np)
		copy(n.Z[i], numbers[at*columns:(at+1)*columns])
	}
	return n, 0, ""
}
