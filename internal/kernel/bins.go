package kernel

// The loops over samples in bins of equal width, in Go: the moments of the samples of each bin, and a
// gradient by cubics over a bin (internal/transport, condense.go and cubic.go). A sample at X lies in bin p
// at the place t,
//
//	y = (X - First) Scale,   p = ⌊y⌋ from 0 to Last,   t = y - p.

// Bins says where bins lie.
type Bins struct {
	First, Scale float64 // where the first begins, and how many a unit of X has
	Last         float64 // the number of the last, counted from 0
}

// find returns the bin of x, as a number and an index, and the place in it.
func (b *Bins) find(x float64) (bin int, t float64) {
	y := float64((x - b.First) * b.Scale)
	p := 0.0
	if y > 0 {
		bin = int(min(y, b.Last))
		p = float64(bin)
	}
	return bin, y - p
}

func binMoments_g(sums, x []float64, b *Bins) {
	for _, x := range x {
		bin, t := b.find(x)
		t -= 0.5
		s, t2 := (*[4]float64)(sums[4*bin:]), float64(t*t)
		s[0]++
		s[1] += t
		s[2] += t2
		s[3] += float64(t2 * t)
	}
}

func binWeights_g(sums, x, w []float64, b *Bins) {
	w = w[:len(x)]
	for i, x := range x {
		v := w[i]
		if v == 0 { // most counts
			continue
		}
		bin, t := b.find(x)
		t -= 0.5
		s, t1 := (*[4]float64)(sums[4*bin:]), float64(v*t)
		t2 := float64(t1 * t)
		s[0] += v
		s[1] += t1
		s[2] += t2
		s[3] += float64(t2 * t)
	}
}

// KLCubics is what [BackKL] reads of a row and leaves, apart from vectors over samples.
type KLCubics struct {
	Bins
	Ref, Shift, Per float64 // z = ((x - Ref) - Shift) Per
	Whole           float64 // By times the number of samples of even weight
	By, Low, Fisher float64
	Sum, Dot        [Lanes]float64 // Σ w and Σ w z in lanes, to which BackKL adds
}

func backKL_g(w, own, t, ratio, at, x, a, cells, curves []float64, c *KLCubics) {
	own, t, ratio, at = own[:len(w)], t[:len(w)], ratio[:len(w)], at[:len(w)]
	x, a, cells = x[:len(w)], a[:len(w)], cells[:len(w)]
	for i := range w {
		bin, u := c.find(at[i])
		k, u2 := (*[12]float64)(curves[12*bin:]), float64(u*u)
		u3 := float64(u2 * u)
		of := (k[0] + float64(k[1]*u)) + (float64(k[2]*u2) + float64(k[3]*u3))
		v := (k[4] + float64(k[5]*u)) + (float64(k[6]*u2) + float64(k[7]*u3))
		lam := (k[8] + float64(k[9]*u)) + (float64(k[10]*u2) + float64(k[11]*u3))
		inverse, share := 1/max(of, c.Low), a[i]
		r := float64(cells[i] * inverse)
		t[i], ratio[i] = of, r
		g := float64((float64(share*c.Whole)-float64(r*c.By))*v) - float64(share*lam)
		w[i] = g
		slope := float64(float64(share*v) * c.Per)
		own[i] = float64(float64(float64(inverse*c.Fisher)*slope) * slope)
		c.Sum[i%Lanes] += g
		c.Dot[i%Lanes] += float64(g * float64(((x[i]-c.Ref)-c.Shift)*c.Per))
	}
}
