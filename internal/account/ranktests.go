package account

// This file holds tests by ranks and what they need: Kruskal and Wallis's of groups, Spearman's of numbers,
// Mann and Whitney's of a set among all, and Benjamini and Hochberg's correction of many p-values. Values
// that are equal have the mean of their ranks. Each agrees with R (testdata/known.R) and scipy.

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
)

// Ranks are those of values, from 1.
type Ranks struct {
	Of   []float64
	Ties float64 // the sum of t³-t over the t values of each tie
}

// RanksOf ranks values.
func RanksOf(x []float64) Ranks {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	r := Ranks{Of: make([]float64, len(x))}
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			r.Of[i] = float64(from+1+to) / 2
		}
		t := float64(to - from)
		r.Ties += float64(t*t*t) - t
		from = to
	}
	return r
}

// KruskalWallis tests whether values differ between groups. epsilon is the share ε² of what differs between
// the ranks that lies between groups: 0 for groups alike, 1 where each has ranks of its own. most is the
// group with the highest mean rank. groups are numbers from 0 below count. p is NaN where all values are
// equal or there are fewer than two groups.
func KruskalWallis(x []float64, groups []int, count int) (epsilon, p float64, most int) {
	r, middle := RanksOf(x), float64(len(x)+1)/2
	sums, sizes, all := make([]float64, count), make([]float64, count), 0.0
	for j, v := range r.Of {
		off := v - middle
		sums[groups[j]] += off
		sizes[groups[j]]++
		all += float64(off * off)
	}
	between, used := 0.0, 0
	for g, n := range sizes {
		if n == 0 {
			continue
		}
		used++
		between += float64(sums[g] / n * sums[g])
		if sizes[most] == 0 || sums[g]/n > sums[most]/sizes[most] {
			most = g
		}
	}
	if all == 0 || used < 2 {
		return math.NaN(), math.NaN(), most
	}
	return between / all, chiSquared(float64(len(x)-1)*(between/all), used-1), most
}

// Spearman tests whether two lists of numbers rise together: their rank correlation, with the p-value of
// Student's t for n-2 degrees of freedom, NaN where a list has one value only or n is below 3.
func Spearman(x, y []float64) (rho, p float64) {
	a, b, middle := RanksOf(x).Of, RanksOf(y).Of, float64(len(x)+1)/2
	xx, xy, yy := 0.0, 0.0, 0.0
	for j, v := range a {
		u, w := v-middle, b[j]-middle
		xx += float64(u * u)
		xy += float64(u * w)
		yy += float64(w * w)
	}
	if xx == 0 || yy == 0 || len(x) < 3 {
		return math.NaN(), math.NaN()
	}
	rho = max(-1, min(1, xy/(math.Sqrt(xx)*math.Sqrt(yy))))
	free := float64(len(x) - 2)
	return rho, student(rho*rho*free/(1-float64(rho*rho)), free)
}

// MannWhitney tests whether the members of a set have higher or lower ranks than all others. above is the
// chance that a member has the higher value of a pair with another, ties counted half: .5 for a set that is
// like the others. The p-value is that of the normal distribution, corrected for ties and continuity, NaN
// where all values are equal, or all or none are members.
func MannWhitney(r Ranks, members []int) (above, p float64) {
	n, in := float64(len(r.Of)), float64(len(members))
	out := n - in
	if in == 0 || out == 0 {
		return math.NaN(), math.NaN()
	}
	w := -float64(in*(in+1)) / 2
	for _, i := range members {
		w += r.Of[i]
	}
	variance := in * out / 12 * (n + 1 - r.Ties/(n*(n-1)))
	if !(variance > 0) {
		return math.NaN(), math.NaN()
	}
	off := max(math.Abs(w-float64(in*out)/2)-0.5, 0)
	return w / (in * out), normal(off / math.Sqrt(variance))
}

// BenjaminiHochberg returns q-values: those who take all findings of at most q for true are wrong in a share
// q of them on average. A p that is NaN is no test, and has none.
func BenjaminiHochberg(p []float64) []float64 {
	q, order := make([]float64, len(p)), []int(nil)
	for i, v := range p {
		if q[i] = math.NaN(); v == v {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	least := 1.0
	for t, i := range order {
		least = min(least, p[i]*float64(len(order))/float64(len(order)-t))
		q[i] = least
	}
	return q
}

// normal is the chance that a standard normal number is farther from 0 than z.
func normal(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }

// chiSquared is the chance that the sum of so many squares of standard normal numbers exceeds x: a finite sum
// of terms whose ratio is that of x/2 to 1, 2, ..., or to 3/2, 5/2, ....
func chiSquared(x float64, free int) float64 {
	half, sum, i := x/2, 0.0, 1.0
	term := elem.Exp(-half)
	if free%2 == 1 {
		sum = math.Erfc(math.Sqrt(half))
		i = 1.5
		term *= 2 * math.Sqrt(half/math.Pi)
	}
	for range free / 2 {
		sum += term
		term *= half / i
		i++
	}
	return min(1, sum)
}

// student is the chance that the square of Student's t exceeds square: I_x(free/2, 1/2) for x = free/(free +
// square), by the continued fraction of the incomplete beta function where that converges fast.
func student(square, free float64) float64 {
	if math.IsInf(square, 1) {
		return 0
	}
	a, b, x := free/2, 0.5, free/(free+square)
	mirrored := x > (a+1)/(a+b+2)
	if mirrored {
		a, b, x = b, a, square/(free+square)
	}
	if x == 0 {
		return map[bool]float64{true: 1}[mirrored]
	}
	ga, _ := math.Lgamma(a)
	gb, _ := math.Lgamma(b)
	gab, _ := math.Lgamma(a + b)
	front := elem.Exp(gab-ga-gb+float64(a*elem.Log(x))+float64(b*elem.Log1p(-x))) / a
	// Lentz's way: c and d are ratios of numerators, and of denominators, that follow each other
	c, d := 1.0, 1/(1-(a+b)*x/(a+1))
	f := d
	for m := 1.0; m < 500; m++ {
		for _, by := range [2]float64{m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)),
			-(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))} {
			d = 1 / (1 + float64(by*d))
			c = 1 + by/c
			f *= c * d
		}
		if math.Abs(float64(c*d)-1) < 1e-15 {
			break
		}
	}
	if mirrored {
		return 1 - float64(front*f)
	}
	return min(1, front*f)
}
