package nmf

// This file holds how the first epoch under Frobenius' loss begins where few rows of X have most of Σ X², as
// counts have it: the loss is theirs, almost. Some epochs go over these rows alone, and lead to the V that
// the half of U of all rows then is made for, in place of the half of V. They cost a quarter more than an
// epoch over all rows at most. Should the loss be above that of the start, the epoch is made anew without
// them.

const (
	leadEpochs = 10
	leadRows   = 16  // for each component, at most
	leastLead  = 4   // for each component, at least: V is a fit of k numbers to each column of them
	leadCost   = 8   // and at most one in so many
	leadSize   = 0.6 // of Σ X² that they have
)

// Heavy returns the rows that lead, of the Σ_j X_ij² of all rows; none where a fit has no use for them.
func Heavy(sizes []float64, k int) []int {
	most := min(leadRows*k, len(sizes)/leadCost)
	if most < leastLead*k {
		return nil
	}
	top := make([]float64, most) // a heap, the least first
	all, some := 0.0, 0.0
	for _, s := range sizes {
		all += s
		at := 0
		if s <= top[0] {
			continue
		}
		for to := 1; to < most; to = 2*at + 1 {
			if to+1 < most && top[to+1] < top[to] {
				to++
			}
			if s <= top[to] {
				break
			}
			top[at], at = top[to], to
		}
		top[at] = s
	}
	equal := most // of those that are as large as the least of the heap: the first, where there are more
	for _, s := range top {
		if s > top[0] {
			equal--
		}
	}
	rows := make([]int, 0, most)
	for i, s := range sizes {
		if s == top[0] && s > 0 && equal > 0 {
			equal--
		} else if !(s > top[0]) {
			continue
		}
		rows = append(rows, i)
		some += s
	}
	if some < float64(leadSize*all) {
		return nil
	}
	return rows
}

// Gather returns some rows of X, padded to whole blocks of samples, and of U.
func (f *Newton) Gather(rows []int) (x, u []float64) {
	x, u = make([]float64, len(rows)*f.NP), make([]float64, len(rows)*f.K)
	for r, i := range rows {
		copy(x[r*f.NP:], f.row(&f.room[0], i))
		copy(u[r*f.K:], f.U[i*f.K:(i+1)*f.K])
	}
	return x, u
}

// Lead makes V, k × np, that of some epochs over the rows that Gather has returned, whose u it changes.
func (p Problem) Lead(x, u, v []float64) {
	p.D, p.N, p.Stride, p.X, p.U, p.V, p.Of, p.Runs = len(u)/p.K, p.NP, p.NP, x, u, v, 0, nil
	f := NewNewton(p)
	f.start()
	for e := range leadEpochs {
		f.Epoch(e) // an error is the pool's
	}
}

// lead makes z of V by the rows that lead, and tells whether there are any.
func (f *Newton) lead() bool {
	rows := Heavy(f.sizes, f.K)
	if len(rows) == 0 {
		return false
	}
	x, u := f.Gather(rows)
	v := append([]float64(nil), f.V...)
	f.Lead(x, u, v)
	f.inTiles(f.z, v)
	f.sumsU()
	return true
}

// back takes the first epoch back to the start.
func (f *Newton) back() {
	f.tau[0] = 1
	copy(f.zu, f.U)
	copy(f.nu, f.U)
	copy(f.nv, f.y)
	f.refresh()
}
