package kernel

// This file solves L λ = r for the Laplacian L of a small weighted graph. The factorisation has no
// subtraction (Grassmann, Taksar and Heyman 1985). So every entry of the factor keeps a high relative
// accuracy, however badly conditioned L is.
//
//	L_jk = -W_jk for j != k,  L_jj = Σ_{k!=j} W_jk,  W symmetric, W >= 0.
//
// The kernel of L is the constant vectors: r must sum to zero, and of the solutions λ, which differ by
// constants, the one with λ_0 = 0 is returned. Cost: m³/6 multiply-adds for [FactorLaplacian], m² for
// [SolveLaplacian].

// LaplacianStride is the distance of the rows of a matrix of m rows that [FactorLaplacian] and
// [SolveLaplacian] take: Pad(m), and from 128 vertices on 8 more where that makes it an odd multiple of 8. At
// a distance of a power of two rows would meet in the same lines of the caches: the elimination took 2 times
// as long for 128 vertices, 6 times for 512.
func LaplacianStride(m int) int {
	stride := Pad(m)
	if m >= 128 && stride%16 == 0 {
		stride += 8
	}
	return stride
}

// panelled is the number of vertices from which on [FactorLaplacian] goes by panels: the matrix, half a
// megabyte from here on, no longer stays in the second cache.
const panelled = 256

// panel is the number of pivots that are eliminated from all other rows in one pass over these.
const panel = 16

// blocked is the number of entries of the rows that meet the pivots of a panel together: 128 KB.
const blocked = 1 << 14

// LaplacianRoom is the number of entries of scratch that [FactorLaplacian] needs for m vertices.
func LaplacianRoom(m int) int {
	if m < panelled {
		return Pad(m)
	}
	return 2 * panel * LaplacianStride(m)
}

// FactorLaplacian eliminates the vertices m-1, ..., 1 in turn, m = len(d). Of w, m rows of
// stride = LaplacianStride(m) numbers, it reads the entries below the diagonal and
// replaces w_kj by w_kj/d_k; entries on and above the diagonal are overwritten. The pivots
// go to d. A sum over vertices has eight partial sums. A pivot is never below floor[k] > 0:
// a vertex of smaller total weight is not determined in floating point, and the floor keeps
// rounding errors in its direction small. work has LaplacianRoom(m) numbers. Of many vertices it
// gives up once done, if it is not nil, is closed; w and d are of no use then.
func FactorLaplacian(w, d, floor, work []float64, done <-chan struct{}) {
	stride, rest := LaplacianStride(len(d)), len(d)
	if rest >= panelled {
		rest = factorPanels(w[:len(d)*stride], d, floor[:len(d)], work[:LaplacianRoom(len(d))], done)
	}
	factor(w[:rest*stride], d[:rest], floor[:rest], work[:Pad(rest)], stride)
}

// factorPanels is [FactorLaplacian] as far as vertex panel-1, with the same bits: each entry meets the pivots
// in the same order. It returns how many vertices are left. A panel of pivots is eliminated first from its
// own rows and then from those above it, four pivots at a time and a block of rows that stays in the cache,
// so that the matrix is read once a panel, not once a pivot.
func factorPanels(w, d, floor, work []float64, done <-chan struct{}) int {
	const four = 4
	stride := len(w) / len(d)
	// lines are the rows of four pivots, before their division, and shares after it.
	lines := func(g int) []float64 { return work[2*g*four*stride:][:four*stride] }
	shares := func(g int) []float64 { return work[(2*g+1)*four*stride:][:four*stride] }
	block := max(four, blocked/stride&^(four-1))
	end := len(d)
	for end > panel {
		select {
		case <-done:
			return 1
		default:
		}
		groups := 0
		for low := max((end-1)&^(four-1)+four-panel, panel); end > low; groups++ {
			first := (end - 1) &^ (four - 1)
			for g := range groups {
				AccumulateLower(w, shares(g), lines(g), first, end)
			}
			clear(shares(groups))
			clear(lines(groups))
			for p := end - 1; p >= first; p-- {
				at := (end - 1 - p) * stride
				line, share := lines(groups)[at:at+stride], shares(groups)[at:at+stride]
				copy(line, w[p*stride:p*stride+p])
				d[p] = max(Sum(line[:Pad(p)]), floor[p])
				for j, v := range line[:p] {
					share[j] = v / d[p]
				}
				Accumulate(w[first*stride:p*stride], share[first:p], line)
				copy(w[p*stride:], share[:p])
			}
			end = first
		}
		for first := 0; first < end; first += block {
			for g := range groups {
				AccumulateLower(w, shares(g), lines(g), first, min(first+block, end))
			}
		}
	}
	return end
}

// SolveLaplacian overwrites r, which sums to zero, with a solution, given what FactorLaplacian
// left in w and d. r has a capacity of Pad(m); numbers beyond m are overwritten.
func SolveLaplacian(w, d, r []float64) {
	stride := LaplacianStride(len(d))
	solve(w[:len(d)*stride], d, r[:Pad(len(d))], stride)
}

func factor_g(w, d, floor, l []float64, stride int) {
	d[0] = 1
	for k := len(d) - 1; k > 0; k-- {
		row := w[k*stride : k*stride+k]
		var part [Lanes]float64
		for j, v := range row {
			part[j%Lanes] += v
		}
		s := max(Reduce(&part), floor[k])
		d[k] = s
		l := l[:len(row)]
		for j, v := range row {
			l[j] = v / s
		}
		for i := k - 1; i > 0; i-- {
			f := l[i]
			to := w[i*stride : i*stride+i]
			from := row[:len(to)]
			for j, v := range from {
				to[j] += float64(f * v)
			}
		}
		copy(row, l)
	}
}

func solve_g(w, d, r []float64, stride int) {
	m := len(d)
	for k := m - 1; k > 0; k-- {
		rk := r[k]
		for j, l := range w[k*stride : k*stride+k] {
			r[j] += float64(l * rk)
		}
	}
	r[0] = 0
	for k := 1; k < m; k++ {
		var part [Lanes]float64
		for j, l := range w[k*stride : k*stride+k] {
			part[j%Lanes] += float64(l * r[j])
		}
		r[k] = r[k]/d[k] + Reduce(&part)
	}
}
