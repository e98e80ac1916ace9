package nmf

// This file holds the half of V by Newton's method (newton.go): the direction from the gradient that the
// pieces of the rows have summed up, the pass over X that the step of each column is taken of, and the step.
// Between this half and that of U (newtonu.go) the components are balanced, V is extrapolated, and the metric
// of U is made.

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
)

// halfV makes z of V: the half of V at y.
func (f *Newton) halfV() {
	f.descend()
	if !f.exact {
		f.transposeThree(f.y, f.nv, nil)
		f.run(opSearch, len(f.pieces))
		f.run(opMove, f.cols)
	}
}

// descend makes the direction of V, or under an exact metric z.
func (f *Newton) descend() {
	m := &f.metric
	clear(m.c)
	for i := range f.pieces {
		for c := range f.K {
			at := c * kernel.Pad(f.K)
			add(m.c[c*f.K:], f.extra[i].h[at:at+c+1])
		}
	}
	f.sumsU()
	f.lowest(f.sumV, f.N)
	m.fill(f.exact, inner(f.sumU, f.sumV), f.add.squareV)
	f.run(opDirect, f.cols)
}

// sumsU adds up the sums over U of the pieces.
func (f *Newton) sumsU() {
	clear(f.sumU)
	for i := range f.pieces {
		for c, v := range f.pieces[i].sum {
			f.sumU[c] += v
		}
	}
}

// columns calls g for the parts of tiles that a piece of the columns has, at most most
// columns at a time: they are lo to hi, in the tile that goes from to its width on.
func (f *Newton) columns(piece, most int, g func(lo, hi, from, width int)) {
	blocks := f.NP / kernel.Lanes
	begin, end := piece*blocks/f.cols*kernel.Lanes, (piece+1)*blocks/f.cols*kernel.Lanes
	for t := range f.tiles.count {
		from, to := f.tile(t)
		for lo := max(from, begin); lo < min(to, end); lo += most {
			g(lo, min(lo+most, to, end), from, to-from)
		}
	}
}

// direct makes the direction of some columns of V, of the gradient that the pieces of the
// rows have.
func (f *Newton) direct(worker, piece int) {
	s := &f.room[worker].strip
	f.columns(piece, stripColumns, func(lo, hi, from, width int) {
		n := hi - lo
		s.cut(f.K, n)
		clear(s.weight[:n])
		for c := range f.K {
			at := f.K*from + c*width + lo - from
			b, g, h := s.b[c*n:(c+1)*n], s.g[c*n:(c+1)*n], s.h[c*n:(c+1)*n]
			copy(b, f.y[at:at+n])
			clear(g)
			for i := range f.pieces {
				add(g, f.pieces[i].num[at:at+n])
			}
			base := f.add.v
			if f.plain {
				base += f.sumU[c]
			}
			for j, v := range g {
				g[j] = base - v
				s.weight[j] += float64(f.sumU[c] * b[j])
			}
			if f.exact {
				continue
			}
			clear(h)
			for i := range f.pieces {
				add(h, f.pieces[i].den[at:at+n])
			}
			if square := f.add.squareV; square > 0 {
				for j, x := range b {
					g[j] += float64(square * x)
					h[j] += square
				}
			}
		}
		for j := range n {
			s.weight[j] = f.metric.weigh(f.Loss, s.weight[j], f.shareV[lo+j], f.N)
		}
		to := f.nv
		if f.exact {
			f.metric.sweep(s)
			to = f.z
		} else {
			f.metric.solve(s)
		}
		for c := range f.K {
			at := f.K*from + c*width + lo - from
			copy(to[at:at+n], s.p[c*n:(c+1)*n])
		}
		copy(f.slopes[lo:hi], s.slope)
		copy(f.most[lo:hi], s.limits)
	})
}

// searchV sums what the step of V is taken of, over a piece of the rows.
func (f *Newton) searchV(worker, piece int) {
	ws, ex := &f.room[worker], &f.extra[piece]
	clear(ex.c2)
	clear(ex.c3)
	clear(ex.rho)
	for g := f.groups(worker, piece, Group, nil); g.next(); {
		if g.thin {
			f.searchThin(g.band, ex, g.i, g.rows)
		} else {
			f.searchRows(ws, ex, g.i, g.rows)
		}
	}
}

// searchRows is searchV for rows that are not thin.
func (f *Newton) searchRows(ws *newtonScratch, ex *newtonPart, i, rows int) {
	x, stride := f.load(ws, i, rows)
	u := f.U[i*f.K : (i+rows)*f.K]
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		n := hi - lo
		w, d := ws.w[:rows*n], ws.d[:rows*n]
		kernel.CombineRows(d, u, f.nv[f.K*lo:f.K*hi], rows)
		if f.Loss == divergence.KL {
			kernel.CombineRows(w, u, f.y[f.K*lo:f.K*hi], rows)
		}
		for r := range rows {
			d := d[r*n : (r+1)*n]
			if f.Loss == divergence.KL {
				kernel.Stretch(ex.c2[lo:hi], ex.c3[lo:hi], ex.rho[lo:hi], w[r*n:(r+1)*n], d,
					x[r*stride+lo:r*stride+hi], divergence.LeastT)
				continue
			}
			squaresOf(d, ws.omega[r*n:(r+1)*n])
			add(ex.c2[lo:hi], d)
		}
	}
}

// moveV makes the step of some columns of V.
func (f *Newton) moveV(piece int) {
	f.columns(piece, f.NP, func(lo, hi, from, width int) {
		for j := lo; j < hi; j++ {
			var c2, c3, rho float64
			for i := range f.extra {
				c2 += f.extra[i].c2[j]
				c3 += f.extra[i].c3[j]
				rho = max(rho, f.extra[i].rho[j])
			}
			if square := f.add.squareV; square > 0 {
				for c := range f.K {
					p := f.nv[f.K*from+c*width+j-from]
					c2 += float64(square * float64(p*p))
				}
			}
			t := stepLength(f.slopes[j], c2, c3, rho, f.most[j])
			for c := range f.K {
				at := f.K*from + c*width + j - from
				f.z[at] = stepped(f.y[at], float64(t*f.nv[at]))
			}
		}
	})
}

// between balances the components, extrapolates V, and makes the metric of the half of U.
func (f *Newton) between() {
	f.sums(f.sumZ, f.z)
	for c := range f.K {
		f.scale[c] = 1
		if c >= f.Fixed {
			squaresU, squaresZ := f.squares(c)
			f.scale[c] = f.add.balanced(f.sumU[c], f.sumZ[c], squaresU, squaresZ)
		}
		f.sumU[c] *= f.scale[c]
		f.sumZ[c] /= f.scale[c]
	}
	f.advance()
	f.lowest(f.sumZ, f.N)
	m := &f.metric
	clear(m.c)
	row := f.room[0].r
	for t := range f.tiles.count {
		lo, hi := f.tile(t)
		n := hi - lo
		weight := f.room[0].w[:n] // not x, whose padding is 0
		clear(weight)
		for c := range f.K {
			from, to := f.K*lo+c*n, f.K*lo+(c+1)*n
			over := 1 / f.scale[c]
			for j, v := range f.z[from:to] {
				f.z[from+j] = float64(v * over)
			}
			next, floor, least := f.nv[from:to], m.floor[c], f.leastAhead()
			for j, v := range f.z[from:to] {
				next[j] = f.ahead(v, f.zv[from+j], floor, least)
			}
			kernel.Accumulate(weight, f.sumU[c:c+1], f.z[from:to])
		}
		for j := range weight {
			weight[j] = f.Loss.Stiffness(weight[j])
		}
		for c := range f.K {
			z := f.z[f.K*lo+c*n : f.K*lo+(c+1)*n]
			r := row[:n]
			if f.Loss == divergence.Frobenius {
				copy(r, z)
			} else {
				kernel.Ratio(r, z, weight, divergence.LeastSum)
			}
			g := f.room[0].g[:c+1]
			kernel.Dots(g, f.z[f.K*lo:f.K*lo+(c+1)*n], r)
			add(m.c[c*f.K:c*f.K+c+1], g)
		}
	}
	if !f.exact {
		kernel.Multiply(f.z2, f.z, f.z)
	}
	f.sums(f.sumV, f.nv)
	if f.exact {
		f.products(f.nv)
	}
	f.lowest(f.sumU, f.Of)
	m.fill(f.exact, inner(f.sumU, f.sumZ), f.add.squareU)
}

// squares returns Σu² and Σz² of a component at the U and the V that the halves lead from and to, 0 where no
// penalty has them.
func (f *Newton) squares(c int) (u, z float64) {
	if f.add.squareU > 0 {
		for i := c; i < len(f.U); i += f.K {
			u += float64(f.U[i] * f.U[i])
		}
	}
	if f.add.squareV > 0 {
		for t := range f.tiles.count {
			lo, hi := f.tile(t)
			v := f.z[f.K*lo+c*(hi-lo) : f.K*lo+(c+1)*(hi-lo)]
			z += inner(v, v)
		}
	}
	return u, z
}
