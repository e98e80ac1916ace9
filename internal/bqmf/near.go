package bqmf

// This file holds the correction of a row by the residuals of its neighbours, rows whose noise is correlated
// with its own. The noise of two nearly equal rows (pixels
// that touch, two forms of one molecule) is correlated, and a fit has no component to spare for a single pair
// of rows. With
//
//	z_ij = √(τ_i ρ_j) (Y_ij - u_i·v_j) at observed cells, 0 at hidden ones,
//	c_il = Σ_j z_ij z_lj / n_il + √(τ_i τ_l) u_iᵀ (Σ_j ρ_j C_j / n) u_l,   r_il = c_il / √(c_ii c_ll),
//
// r_il is the correlation of the noise of rows i and l over the n_il samples that both rows have. The second
// part of c_il is what the factors, which saw both rows, have taken of the common noise. Where many rows are
// compared, n_i n_l / n stands in for n_il. Rows with nearly the same loadings are likely to have common
// noise, other rows are not. So an r_il of at most nearSure/√n_i counts only by the share
//
//	s = v/(v + ν),  v = mean of (n_il r_il² - ν) over the pairs of rows with as large a |cosine| of u_i and
//	                    u_l,
//
// and a larger one by s = 1. Here ν, the part of chance, is the mean of n_il r_il² over the pairs of the
// smallest |cosine|: √n_il r_il has the variance v + ν, so the true correlation is expected to be s r_il.
// Rows are compared within blocks of nearBlock rows. The neighbours of row i are the rows l with |r_il| above
// nearLeast/√n_i and s|r_il| above nearShrunk/√n_i, at most nearMost of them, those of the largest s|r_il|.
// Their weights are
//
//	b_l = √(c_ii/c_ll) a_l,  a = (R + nearRidge I)⁻¹ r_i,
//
// where R and r_i are the correlations among the neighbours and with row i, each times its share s. The mean
// of a cell is then u_i·v_j + Σ_l b_l z_lj / √(τ_i ρ_j). An observed cell (i, j) of weight A = τ_i ρ_j has
// itself moved the residuals of the neighbours. Without it they are, to first order as in leaveout.go,
//
//	z_lj⁻ = z_lj + √(τ_l ρ_j) A (Y_ij - m) u_lᵀC_j u_i / max(0.4, 1 - A u_iᵀC_j u_i).
//
// How well these predict the leave-one-out residuals of row i decides whether the row has neighbours at all,
// and may make their weights less (decide).
//
// Cost: 2(n + 2K) flops for each pair of rows of a block, the same again for each pair of one of 4 nearPieces
// rows and a row of its block, 2(n + 2K) for each pair of neighbours of one row, and 2K for each cell and
// each neighbour of its row.

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

const (
	nearMost  = 10
	nearSure  = 4.5 // deviations 1/√n_i above which r_il counts in full
	nearLeast = 2.5 // deviations below which r_il does not count
	// observed cells of a row below which leave-one-out cannot tell chance, and r_il must be above nearSure
	nearCells  = 100
	nearShrunk = 1.4  // deviations that s r_il must be above
	nearBins   = 20   // bins of |cosine|
	nearNone   = 4    // the lowest bins, whose correlations are taken to be chance
	nearPieces = 64   // pieces of four rows, evenly spread, that the shares are estimated from
	nearPairs  = 10   // pseudo-pairs that hold the share of a bin at 0
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
	Of [][]Neighbour // of each row
	// of each row, the factor by which its neighbours make its deviation smaller
	DeviationShrink []float64
	// of each row Pad(N) residuals z; nil for a constant row and, after settle, for a row that is no
	// neighbour
	Z [][]float64
}

// neighbours finds the neighbours of the rows given, of which x has the cells. Their weights count in full
// until decide. It returns nil where there are none, or when the pool's work was stopped.
func (p *Posterior) neighbours(x *Data, rows []int, workers *pool.Pool) *Near {
	near := &Near{Of: make([][]Neighbour, p.D), DeviationShrink: make([]float64, p.D),
		Z: make([][]float64, p.D)}
	for i := range near.DeviationShrink {
		near.DeviationShrink[i] = 1
	}
	for _, i := range rows {
		near.Z[i] = make([]float64, kernel.Pad(p.N))
	}
	c := p.comparison(x, rows, near.Z, workers)
	share := c.shares(workers)
	c.fours(workers, 1, func(f *four, _, from, to int) {
		for a := from; a < to; a++ {
			near.Of[rows[a]] = c.neighbours(f, a, a-from, &share)
		}
	})
	if !slices.ContainsFunc(near.Of, func(of []Neighbour) bool { return of != nil }) || workers.Err() != nil {
		return nil
	}
	return near
}

// comparison is what correlations of rows are computed from. Line a is √n z/n_a followed by √τ u, both over
// √c_aa. The inner product of two lines, with Σ_j ρ_j C_j / n between their second parts, is r_il for n_il =
// n_i n_l / n. Line a of directions is u over its length: inner products are cosines.
type comparison struct {
	x                 *Data
	rows              []int // those that are compared; a and b below are places among them
	n, k, np, kp      int
	width, words      int       // of a line of lines, and of observed
	lines, directions []float64 // each of width, and of kp numbers
	observed          []uint64  // a bit for each cell
	scale             []float64 // √c_aa
	meanC             []float64 // Σ_j ρ_j C_j / n, K × kp
}

// comparison fills z with the residuals of the rows given, and returns what their correlations are computed
// from.
func (p *Posterior) comparison(x *Data, rows []int, z [][]float64, workers *pool.Pool) *comparison {
	k, np, kp := p.K, kernel.Pad(p.N), kernel.Pad(p.K)
	c := &comparison{x: x, rows: rows, n: p.N, k: k, np: np, kp: kp, width: np + kp, words: (p.N + 63) / 64}
	c.lines, c.observed, c.directions = make([]float64, len(rows)*c.width), make([]uint64, len(rows)*c.words),
		make([]float64, len(rows)*kp)
	c.meanC, c.scale = p.meanC(), make([]float64, len(rows))
	root := make([]float64, p.N)
	for j := range root {
		root[j] = math.Sqrt(p.Rho[j])
	}
	const together = 8 // rows of a piece
	workers.Do((len(rows)+together-1)/together, func(_, piece int) {
		half := make([]float64, kp)
		for a := together * piece; a < min(together*(piece+1), len(rows)); a++ {
			i := rows[a]
			z, line, direction, u := z[i], c.line(a), c.direction(a), p.U[i*k:(i+1)*k]
			kernel.Combine(line[:np], u, p.V)
			t := math.Sqrt(p.Tau[i])
			x.Rows[a].Each(p.N, func(j int) {
				z[j] = t * root[j] * (x.Y[a*np+j] - line[j])
				c.observed[a*c.words+j/64] |= 1 << (j % 64)
			})
			for h, v := range u {
				line[np+h] = t * v
			}
			count := float64(max(x.Rows[a].Count, 1))
			kernel.Combine(half, line[np:np+k], c.meanC)
			var zz, uu [1]float64
			kernel.Dots(zz[:], z, z)
			kernel.Dots(uu[:], line[np:], half)
			c.scale[a] = math.Sqrt(max(zz[0]/count+uu[0], 1e-6))
			kernel.Scale(line[:np], z, math.Sqrt(float64(p.N))/count/c.scale[a])
			kernel.Scale(line[np:], line[np:], 1/c.scale[a])
			copy(direction, u)
			kernel.Dots(uu[:], direction, direction)
			if uu[0] > 0 {
				kernel.Scale(direction, direction, 1/math.Sqrt(uu[0]))
			}
		}
	})
	return c
}

func (c *comparison) line(a int) []float64      { return c.lines[a*c.width : (a+1)*c.width] }
func (c *comparison) direction(a int) []float64 { return c.directions[a*c.kp : (a+1)*c.kp] }

// size is n_a n_b / n.
func (c *comparison) size(a, b int) float64 {
	return float64(c.x.Rows[a].Count) * float64(c.x.Rows[b].Count) / float64(c.n)
}

// four is up to four rows beside all rows of their block, and the room of one worker.
type four struct {
	first, count  int       // the rows of the block
	dots, cosines []float64 // of each of the four, count numbers
	query, half   []float64
}

// fours takes the rows four by four, and calls g for one of so many fours as every says. from and to-1 are
// the first and the last row of the four, and piece counts the calls.
func (c *comparison) fours(workers *pool.Pool, every int,
	g func(f *four, piece, from, to int)) {
	work := make([]*four, workers.Workers())
	pieces := (len(c.rows) + 3) / 4
	workers.Do((pieces+every-1)/every, func(w, piece int) {
		if work[w] == nil {
			most := 4 * min(nearBlock, len(c.rows))
			work[w] = &four{query: make([]float64, 4*c.width), dots: make([]float64, most),
				cosines: make([]float64, most), half: make([]float64, c.kp)}
		}
		from := 4 * every * piece
		to := min(from+4, len(c.rows))
		c.compare(work[w], from, to)
		g(work[w], piece, from, to)
	})
}

// compare fills the dots and cosines of up to four rows.
func (c *comparison) compare(to *four, from, end int) {
	to.first = from / nearBlock * nearBlock
	last := min(to.first+nearBlock, len(c.rows))
	to.count = last - to.first
	for a := from; a < end; a++ {
		q, line := to.query[(a-from)*c.width:(a-from+1)*c.width], c.line(a)
		copy(q, line[:c.np])
		kernel.Combine(to.half, line[c.np:c.np+c.k], c.meanC)
		copy(q[c.np:], to.half)
	}
	rows := end - from
	kernel.DotsRows(to.dots[:rows*to.count], c.lines[to.first*c.width:last*c.width], to.query[:rows*c.width],
		rows)
	kernel.DotsRows(to.cosines[:rows*to.count], c.directions[to.first*c.kp:last*c.kp],
		c.directions[from*c.kp:end*c.kp],
		rows)
}

// of returns the dots and the cosines of one of the four rows.
func (f *four) of(r int) (dots, cosines []float64) {
	return f.dots[r*f.count : (r+1)*f.count], f.cosines[r*f.count : (r+1)*f.count]
}

// shares returns the share by which a correlation counts, by the bin of the cosine of the two loadings.
func (c *comparison) shares(workers *pool.Pool) [nearBins]float64 {
	pieces := (len(c.rows) + 3) / 4
	every := (pieces + nearPieces - 1) / nearPieces
	squares := make([][2][nearBins]float64, (pieces+every-1)/every)
	c.fours(workers, every, func(f *four, piece, from, to int) {
		for a := from; a < to; a++ {
			dots, cosines := f.of(a - from)
			for b, r := range dots {
				if f.first+b != a {
					h := nearBin(cosines[b])
					if t := float64(float64(r*r) * c.size(a, f.first+b)); t < nearSure*nearSure {
						squares[piece][0][h] += t
						squares[piece][1][h]++
					}
				}
			}
		}
	})
	return shares(squares)
}

// neighbours returns the neighbours of row a, the r-th of the four that f has; nil: none.
func (c *comparison) neighbours(f *four, a, r int, share *[nearBins]float64) (out []Neighbour) {
	dots, cosines := f.of(r)
	one := 1 / math.Sqrt(float64(max(c.x.Rows[a].Count, 1)))
	least := nearLeast * one
	if c.x.Rows[a].Count < nearCells {
		least = nearSure * one
	}
	for h, r := range dots {
		switch {
		case math.Abs(r) <= least:
			dots[h] = 0
		case math.Abs(r) <= nearSure*one:
			dots[h] = r * share[nearBin(cosines[h])]
		}
	}
	of := nearest(dots, a-f.first, nearShrunk*one)
	if len(of) == 0 {
		return nil
	}
	s := newSystem(len(of))
	for r, b := range of {
		for l, h := range of[:r] {
			s.a[r*s.kp+l] = c.correlation(f.first+b, f.first+h, share, f.half)
		}
		s.a[r*s.kp+r] = 1 + nearRidge
		s.border()[r] = c.correlation(a, f.first+b, share, f.half)
	}
	s.solve()
	for r, b := range of {
		w := s.border()[r] * c.scale[a] / c.scale[f.first+b]
		// R of different cells need not be positive definite: its weights may be without bounds
		if !(math.Abs(w) <= nearWeight) {
			return nil
		}
		out = append(out, Neighbour{c.rows[f.first+b], w})
	}
	return out
}

// correlation returns r_ab over the samples that both rows have, times its share. half is scratch.
func (c *comparison) correlation(a, b int, share *[nearBins]float64, half []float64) float64 {
	both := 0
	for w, s := range c.observed[a*c.words : (a+1)*c.words] {
		both += bits.OnesCount64(s & c.observed[b*c.words+w])
	}
	if both == 0 {
		return 0
	}
	var zz, uu [1]float64
	kernel.Dots(zz[:], c.line(a)[:c.np], c.line(b)[:c.np])
	kernel.Combine(half, c.line(a)[c.np:][:c.k], c.meanC)
	kernel.Dots(uu[:], c.line(b)[c.np:], half)
	r := float64(zz[0]*(c.size(a, b)/float64(both))) + uu[0]
	if math.Abs(r) > nearSure/math.Sqrt(float64(both)) {
		return r
	}
	kernel.Dots(uu[:], c.direction(a), c.direction(b))
	return r * share[nearBin(uu[0])]
}

// meanC returns Σ_j ρ_j C_j / n, K × Pad(K).
func (p *Posterior) meanC() []float64 {
	k, pp := p.K, Packed(p.K)
	np, kp := kernel.Pad(p.N), kernel.Pad(p.K)
	sum, a := make([]float64, pp), make([]float64, k*kp)
	for j := range p.N {
		w := [1]float64{p.Rho[j] / float64(p.N)}
		kernel.Accumulate(sum, w[:], p.BV[j*pp:(j+1)*pp])
	}
	unpack(a, sum, k)
	for r := range k {
		for c := range k {
			s := 0.0
			for j, rho := range p.Rho {
				s += float64(float64(rho/float64(p.N)*p.V[r*np+j]) * p.V[c*np+j])
			}
			a[r*kp+c] -= s
		}
	}
	return a
}

// nearBin returns the bin of a cosine.
func nearBin(cosine float64) int { return min(int(math.Abs(cosine)*nearBins), nearBins-1) }

// shares returns the share s of each bin. Of each piece, squares has the sums of n_il r_il² by bin, and then
// the counts.
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
	noise = float64(min(noise/pairs, 1) * 1.05) // bins of chance alone differ by some 5 %
	for h := range share {
		beyond := max(sum[h]-float64(noise*count[h]), 0) / (count[h] + nearPairs)
		share[h] = beyond / (beyond + noise)
	}
	return share
}

// nearest returns the places of the at most nearMost numbers of largest magnitude, falling. A number counts
// if its magnitude is above least and its place is not own.
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

// correction fits a prediction of the leave-one-out residuals of a row, each times √(τρ). factor is the
// multiple of the prediction, from 0 to 1, that leaves the least squares, and 0 where even that takes away
// less than a share gain of them. shrink is the factor by which the prediction makes the deviation of the
// residuals smaller.
func correction(residuals, predicted []float64, gain float64) (factor, shrink float64) {
	cov, square := 0.0, 0.0
	for j, p := range predicted {
		cov += float64(p * residuals[j])
		square += float64(p * p)
	}
	if square > 0 {
		factor = min(max(cov/square, 0), 1)
	}
	before, after := 0.0, 0.0
	for j, p := range predicted {
		e := residuals[j] - float64(factor*p)
		before += float64(residuals[j] * residuals[j])
		after += float64(e * e)
	}
	if !(after <= (1-gain)*before) || factor == 0 {
		return 0, 1
	}
	return factor, math.Sqrt(after / before)
}

// decide decides on the neighbours of row i by the leave-one-out residuals of its cells, each times √(τρ),
// and what the neighbours predict of each. It returns the factor that the weights of the neighbours are
// multiplied by: 0, and no neighbours, where they do not predict the residuals.
func (n *Near) decide(i int, residuals, predicted []float64) (factor float64) {
	factor, shrink := correction(residuals, predicted, nearGain)
	if factor == 0 {
		n.Of[i] = nil
		return 0
	}
	for l := range n.Of[i] {
		n.Of[i][l].Weight *= factor
	}
	n.DeviationShrink[i] = shrink
	return factor
}

// Used returns the rows that are neighbours of any row, rising.
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

// settled returns n once all rows are decided on: without the residuals of rows that are no neighbours, and
// nil where no row has neighbours.
func (n *Near) settled() *Near {
	if n == nil {
		return nil
	}
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

// residualPrediction returns the prediction by the neighbours of row i of the residual of its cell of a
// column, times √(τρ), given z of every row there.
func (n *Near) residualPrediction(i int, z []float64) (sum float64) {
	for _, l := range n.Of[i] {
		sum += float64(l.Weight * z[l.Row])
	}
	return sum
}

// encode returns the neighbours as numbers, none for nil. The words are, of each row, how many neighbours it
// has and which. The numbers are, of each row that has neighbours, their weights and DeviationShrink; then,
// of each row that is a neighbour, z.
func (n *Near) encode(columns int) (words []uint64, numbers [][]float64) {
	if n == nil {
		return nil, nil
	}
	var each []float64
	for i, of := range n.Of {
		words = append(words, uint64(len(of)))
		for _, l := range of {
			words, each = append(words, uint64(l.Row)), append(each, l.Weight)
		}
		if len(of) > 0 {
			each = append(each, n.DeviationShrink[i])
		}
	}
	numbers = append(numbers, each)
	for _, i := range n.Used() {
		numbers = append(numbers, n.Z[i][:columns])
	}
	return words, numbers
}

// decodeNear is the inverse of encode, for any numbers. A problem says what is wrong in the section tag.
func decodeNear(words []uint64, numbers []float64, d, columns int) (n *Near, tag, problem string) {
	if len(words) == 0 && len(numbers) == 0 {
		return nil, "", ""
	}
	n = &Near{Of: make([][]Neighbour, d), DeviationShrink: make([]float64, d)}
	for i := range n.Of {
		n.DeviationShrink[i] = 1
		if len(words) == 0 {
			return nil, "NEAR", "wrong length"
		}
		count := words[0]
		words = words[1:]
		if count > uint64(len(words)) || count > nearMost {
			return nil, "NEAR", "a number of neighbours is out of range"
		}
		if count == 0 {
			continue
		}
		if count >= uint64(len(numbers)) {
			return nil, "NEAZ", "wrong length"
		}
		for l, row := range words[:count] {
			if row >= uint64(d) || row == uint64(i) {
				return nil, "NEAR", "a neighbour is out of range"
			}
			if w := numbers[l]; !(math.Abs(w) <= nearWeight) {
				return nil, "NEAZ", "a weight is out of range"
			}
			n.Of[i] = append(n.Of[i], Neighbour{int(row), numbers[l]})
		}
		if n.DeviationShrink[i] = numbers[count]; !(n.DeviationShrink[i] >= 0 && n.DeviationShrink[i] <= 1) {
			return nil, "NEAZ", "a factor of deviations is out of range"
		}
		words, numbers = words[count:], numbers[count+1:]
	}
	used := n.Used()
	if len(words) > 0 || len(used) == 0 {
		return nil, "NEAR", "wrong length"
	}
	if int64(len(numbers)) != int64(len(used))*int64(columns) {
		return nil, "NEAZ", "wrong length"
	}
	np := kernel.Pad(columns)
	n.Z = make([][]float64, d)
	for at, i := range used {
		n.Z[i] = make([]float64, np)
		copy(n.Z[i], numbers[at*columns:(at+1)*columns])
	}
	return n, "", ""
}
