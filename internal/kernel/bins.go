package kernel

// The loops over samples in bins of equal width, in Go: the moments of the samples of each bin
// (internal/transport, condense.go). A sample at X lies in bin p at the place t,
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
