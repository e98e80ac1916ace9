package kernel

import "math"

// The loops of a low-rank product at some samples only, in Go: those of the cells of a row that are not 0.
// V lies sample by sample, rows of whole blocks of components. cols names the samples, which are different
// ones.

// span is how many components go together.
const span = 2 * Lanes

func combineAt_g(w, u, v []float64, cols []uint32) {
	k := len(u)
	w = w[:len(cols)]
	for c := 0; c < k; c += span {
		a := (*[Lanes]float64)(u[c:])
		if c+Lanes == k {
			for p, j := range cols {
				x := (*[Lanes]float64)(v[int(j)*k+c:])
				w[p] += ((float64(a[0]*x[0]) + float64(a[4]*x[4])) +
					(float64(a[2]*x[2]) + float64(a[6]*x[6]))) +
					((float64(a[1]*x[1]) + float64(a[5]*x[5])) + (float64(a[3]*x[3]) + float64(a[7]*x[7])))
			}
			return
		}
		b := (*[Lanes]float64)(u[c+Lanes:])
		for p, j := range cols {
			x := (*[span]float64)(v[int(j)*k+c:])
			s0, s4 := float64(a[0]*x[0])+float64(b[0]*x[8]), float64(a[4]*x[4])+float64(b[4]*x[12])
			s2, s6 := float64(a[2]*x[2])+float64(b[2]*x[10]), float64(a[6]*x[6])+float64(b[6]*x[14])
			s1, s5 := float64(a[1]*x[1])+float64(b[1]*x[9]), float64(a[5]*x[5])+float64(b[5]*x[13])
			s3, s7 := float64(a[3]*x[3])+float64(b[3]*x[11]), float64(a[7]*x[7])+float64(b[7]*x[15])
			w[p] += ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
		}
	}
}

// Samples at even and at odd places have sums of their own.
func dotsAt_g(g, v, r []float64, cols []uint32) {
	k := len(g)
	r = r[:len(cols)]
	for c := range g {
		even, odd := 0.0, 0.0
		p := 0
		for ; p+1 < len(cols); p += 2 {
			even += float64(r[p] * v[int(cols[p])*k+c])
			odd += float64(r[p+1] * v[int(cols[p+1])*k+c])
		}
		if p < len(cols) {
			even += float64(r[p] * v[int(cols[p])*k+c])
		}
		g[c] += even + odd
	}
}

func dotsSquaresAt_g(g, h, v, r, q []float64, cols []uint32) {
	k := len(g)
	h, r, q = h[:k], r[:len(cols)], q[:len(cols)]
	for c := range g {
		var gs, hs [2]float64 // of even and of odd places
		for p, j := range cols {
			x := v[int(j)*k+c]
			gs[p&1] += float64(r[p] * x)
			hs[p&1] += float64(q[p] * float64(x*x))
		}
		g[c] += gs[0] + gs[1]
		h[c] += hs[0] + hs[1]
	}
}

func accumulateAt_g(acc, u, r []float64, cols []uint32) {
	k := len(u)
	r = r[:len(cols)]
	for p, j := range cols {
		to, by := acc[int(j)*k:][:k], r[p]
		for c, v := range u {
			to[c] += float64(by * v)
		}
	}
}

// Compress takes the numbers of x that are not 0 over to vals, and their places to cols, and returns how
// many they are. Both have room for all of x. Every number is written, and the next one over it where it was
// 0: no branch is to be foretold.
func Compress(cols []uint32, vals, x []float64) int {
	cols, vals = cols[:len(x)], vals[:len(x)]
	n := 0
	for j, v := range x {
		cols[n], vals[n] = uint32(j), v
		b := math.Float64bits(v) << 1
		n += int((b | -b) >> 63)
	}
	return n
}
