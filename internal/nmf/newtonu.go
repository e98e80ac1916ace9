package nmf

// This file holds the half of U by Newton's method (newton.go): of some rows at a time the gradient and the
// curvature at the new V, the direction and the step, the next y, and with both next factors the gradient of
// V and the loss there. So X is read once for all of it.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
)

// leastAhead is the share of z below which the next y does not fall.
func (f *Newton) leastAhead() float64 {
	if f.exact {
		return 0
	}
	return leastShare
}

// halfU makes z of U in a piece of the rows: their half at y and the new V. With the next
// y of them it takes the gradient of V there.
func (f *Newton) halfU(worker, piece int) {
	if f.exact {
		f.halfExact(worker, piece)
		return
	}
	ws := &f.room[worker]
	f.clear(piece)
	k := f.K
	for g := f.groups(worker, piece, Group, &f.pieces[piece]); g.next(); {
		if g.thin {
			f.halfThin(ws, g.band, piece, g.i, g.rows)
			continue
		}
		i, rows := g.i, g.rows
		x, stride := f.load(ws, i, rows)
		u, p := ws.u[:rows*k], ws.p[:rows*k]
		for r := range rows {
			for c, s := range f.scale {
				u[r*k+c] = float64(f.U[(i+r)*k+c] * s)
			}
		}
		f.directU(ws, i, rows, x, stride)
		f.searchU(ws, rows, x, stride)
		for r := range rows {
			f.aheadU(i+r, p[r*k:(r+1)*k])
		}
		f.gradientRows(ws, piece, i, rows, x, stride)
	}
}

// aheadU makes row i of U's z of the one before, and the next y.
func (f *Newton) aheadU(i int, z []float64) {
	zu, nu, floors, least := f.zu[i*f.K:(i+1)*f.K], f.nu[i*f.K:(i+1)*f.K], f.metric.floor, f.leastAhead()
	for c, v := range z {
		nu[c] = f.ahead(v, zu[c], floors[c], least)
		zu[c] = v
	}
}

// directU fills p with the direction of rows of U, and g with the slope and the longest
// step of each; where the metric is exact p is the new rows.
func (f *Newton) directU(ws *newtonScratch, i, rows int, x []float64, stride int) {
	k := f.K
	u, g, h := ws.u[:rows*k], ws.g[:rows*k], ws.h[:rows*k]
	clear(g)
	clear(h)
	t := ws.t[:rows*k]
	for tile := range f.tiles.count {
		lo, hi := f.tile(tile)
		z := f.z[k*lo : k*hi]
		n := rows * (hi - lo)
		w, r, q := ws.w[rows*lo:rows*hi], ws.r[:n], ws.q[:n]
		f.curve(ws, r, q, w, u, z, x[lo:], stride, rows)
		kernel.DotsRows(t, z, r, rows)
		add(g, t)
		kernel.DotsRows(t, f.z2[k*lo:k*hi], q, rows)
		add(h, t)
	}
	f.solveU(ws, i, rows)
}

// solveU makes the direction of rows of U of the sums g and h.
func (f *Newton) solveU(ws *newtonScratch, i, rows int) {
	k, s := f.K, &ws.strip
	u, g, h := ws.u[:rows*k], ws.g[:rows*k], ws.h[:rows*k]
	n := kernel.Pad(rows)
	s.cut(k, n)
	if rows < n {
		clear(s.b)
		clear(s.g)
		clear(s.h)
	}
	for r := range n {
		s.weight[r] = 0
		if r < rows {
			s.weight[r] = f.metric.weigh(f.Loss, inner(u[r*k:(r+1)*k], f.sumZ), f.shareU[i+r], f.Of)
		}
	}
	for c := range k {
		b, g0, h0 := s.b[c*n:c*n+rows], s.g[c*n:c*n+rows], s.h[c*n:c*n+rows]
		base, square := f.add.u, f.add.squareU
		if f.plain {
			base += f.sumZ[c]
		}
		at := c
		for r := range b {
			b[r], g0[r] = u[at], base-g[at]
			at += k
		}
		at = c
		for r := range h0 {
			h0[r] = h[at]
			at += k
		}
		if square > 0 {
			for r, x := range b {
				g0[r] += float64(square * x)
				h0[r] += square
			}
		}
	}
	s.hold(f.Fixed)
	f.metric.solve(s)
	p := ws.p[:rows*k]
	for c := range k {
		at := c
		for _, v := range s.p[c*n : c*n+rows] {
			p[at] = v
			at += k
		}
	}
}

// searchU makes the step of rows of U along p, and leaves the new ones there.
func (f *Newton) searchU(ws *newtonScratch, rows int, x []float64, stride int) {
	k := f.K
	var sums [Group][3]float64
	for tile := range f.tiles.count {
		lo, hi := f.tile(tile)
		n := hi - lo
		d := ws.d[:rows*n]
		kernel.CombineRows(d, ws.p[:rows*k], f.z[k*lo:k*hi], rows)
		for r := range rows {
			d := d[r*n : (r+1)*n]
			if f.Loss == divergence.KL {
				var some [3]float64
				kernel.StretchRow(&some, ws.w[rows*lo+r*n:rows*lo+(r+1)*n], d, x[r*stride+lo:r*stride+hi])
				sums[r][0] += some[0]
				sums[r][1] += some[1]
				sums[r][2] = max(sums[r][2], some[2])
				continue
			}
			sums[r][0] += squaresOf(d, ws.omega[r*f.NP:(r+1)*f.NP])
		}
	}
	for r := range rows {
		u, p := ws.u[r*k:(r+1)*k], ws.p[r*k:(r+1)*k]
		if f.add.squareU > 0 {
			sums[r][0] += float64(f.add.squareU * inner(p, p))
		}
		t := stepLength(ws.strip.slope[r], sums[r][0], sums[r][1], sums[r][2], ws.strip.limits[r])
		for c, v := range u {
			p[c] = stepped(v, float64(t*p[c]))
		}
	}
}

// squaresOf turns d into its squares by the weights of the cells, and returns their sum.
func squaresOf(d, omega []float64) (sum float64) {
	kernel.Multiply(d, d, d)
	kernel.Multiply(d, d, omega)
	return kernel.Sum(d)
}

// curve fills r with what the gradient of the factor that moves sums against the one that is
// held, but for its sign and for the sums of that under KL without hidden cells, and q with
// the curvature: X/W - 1 and X/W² or X - W and 1, 0 where a cell is hidden; without, X/W and
// X/W², W = uv, which w has already where v is nil. w is W afterwards, under KL 1/W.
func (f *Newton) curve(ws *newtonScratch, r, q, w, u, v, x []float64, stride, rows int) (difference float64) {
	n := len(r) / rows
	switch {
	case f.Loss == divergence.KL && v != nil:
		difference = kernel.CurveRows(r, q, w, u, v, x, stride, rows, divergence.LeastT)
	case f.Loss == divergence.KL:
		kernel.Curve(r, q, w, x, stride, rows, divergence.LeastT)
	case v != nil:
		kernel.CombineRows(w, u, v, rows)
	}
	if !f.Partial {
		return difference
	}
	omega := ws.omega[:rows*n]   // where cells are hidden there is one tile
	if f.Loss == divergence.KL { // x has the weights
		kernel.Accumulate(r, minusOne, omega)
		return difference
	}
	copy(q, omega)
	copy(r, x[:rows*n])
	kernel.Accumulate(r, minusOne, w)
	kernel.Multiply(r, r, omega)
	return difference
}

var minusOne = []float64{-1}

// clear readies a piece of the rows for sums at the next y, but for num and den, which rowGroups clear.
func (f *Newton) clear(piece int) {
	p := &f.pieces[piece]
	clear(p.sum)
	clear(p.losses)
	clear(f.extra[piece].h)
}

// gradient takes the loss and the gradient of V at the next y, in a piece of the rows.
func (f *Newton) gradient(worker, piece int) {
	if f.exact {
		f.gradientExact(worker, piece)
		return
	}
	ws := &f.room[worker]
	f.clear(piece)
	for g := f.groups(worker, piece, Group, &f.pieces[piece]); g.next(); {
		if g.thin {
			f.gradientThin(ws, g.band, piece, g.i, g.rows)
			continue
		}
		x, stride := f.load(ws, g.i, g.rows)
		f.gradientRows(ws, piece, g.i, g.rows, x, stride)
	}
}

func (f *Newton) gradientRows(ws *newtonScratch, piece, i, rows int, x []float64, stride int) {
	k, pt := f.K, &f.pieces[piece]
	u, squares := f.nu[i*k:(i+rows)*k], ws.squares[:rows*k]
	kernel.Multiply(squares, u, u)
	loss := 0.0
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		n := hi - lo
		num := pt.num[k*lo : k*hi]
		w, r, q := ws.w[:rows*n], ws.r[:rows*n], ws.q[:rows*n]
		v := f.nv[k*lo : k*hi]
		if f.Partial {
			kernel.CombineRows(w, u, v, rows)
			f.lossRows(ws, pt, i, rows, x, w)
			v = nil
		}
		difference := f.curve(ws, r, q, w, u, v, x[lo:], stride, rows)
		if !f.Partial {
			loss += difference
			loss += kernel.LogSumRows(r, x[lo:], stride, rows)
		}
		kernel.AccumulateRows(num, u, r, rows)
		kernel.AccumulateRows(pt.den[k*lo:k*hi], squares, q, rows)
	}
	pt.losses[0] += max(loss, 0) // it is one; rounding may say otherwise of a perfect fit
	f.curvatures(ws, piece, u)
}

// curvatures adds what rows of U add to their sums and to the shared Hessian of V.
func (f *Newton) curvatures(ws *newtonScratch, piece int, u []float64) {
	k, kp, pt := f.K, kernel.Pad(f.K), &f.pieces[piece]
	for len(u) > 0 {
		rows := min(Group, len(u)/k)
		over, wide := ws.over[:rows*k], ws.wide[:rows*kp]
		for r := range rows {
			u := u[r*k : (r+1)*k]
			copy(wide[r*kp:], u)
			for a, v := range u {
				pt.sum[a] += v
			}
			weight := f.Loss.Stiffness(inner(u, f.sumV))
			over := over[r*k : (r+1)*k]
			clear(over)
			if weight > 0 {
				for a, v := range u {
					over[a] = v / weight
				}
			}
		}
		kernel.AccumulateRows(f.extra[piece].h, over, wide, rows)
		u = u[rows*k:]
	}
}

// lossRows adds the losses of rows some of whose cells are hidden.
func (f *Newton) lossRows(ws *newtonScratch, pt *part, i, rows int, x, w []float64) {
	for r := range rows {
		lo, hi := r*f.NP, r*f.NP+f.N
		x, w, omega := x[lo:hi], w[lo:hi], ws.omega[lo:hi]
		if t, ratio := ws.d[:f.N], ws.product[:f.N]; f.Loss == divergence.KL { // x has the weights
			kernel.Multiply(t, w, omega)
			kernel.Ratio(ratio, x, t, divergence.LeastT)
			pt.losses[0] += f.Loss.Sum(x, t, ratio, nil, divergence.LeastT)
		} else {
			pt.losses[0] += f.Loss.WeightedSum(x, w, omega, divergence.LeastT)
		}
		pt.losses[1] += f.Held(f.Loss, w, i+r, f.Loss.Least(), ws.product[:f.N])
	}
}
