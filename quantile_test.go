package quantmf

// Tests of the operators T, R and S: order and range on adversarial input, finite results
// for whatever is finite, and the documented way to the quantiles of others.

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestOrderAndRange tries rows full of ties and neighbours one unit in the last
// place apart: order and range must hold without a single exception, at any
// number of iterations.
func TestOrderAndRange(t *testing.T) {
	problems := Draws(14000, 600, 200)
	pairs := 0
	for seed := range problems {
		r := random.Split(9, seed)
		n, m := 2+r.IntN(150), 1+r.IntN(20)
		x := make([]float64, n)
		offset := []float64{0, 1, 1e9, -1e-3}[r.IntN(4)]
		for i := range x {
			switch {
			case i > 0 && r.IntN(2) == 0:
				x[i] = math.Nextafter(x[i-1], x[i-1]+float64(r.IntN(2)*2-1))
			case i > 0 && r.IntN(4) == 0:
				x[i] = x[r.IntN(i)]
			default:
				x[i] = offset + r.Float64()
			}
		}
		eps := []float64{10, 1, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 0}[r.IntN(8)]
		opts := []Option{WithEpsilon(eps), WithSquash(Squash(r.IntN(2))), WithLevels(m)}
		if l := r.IntN(12); l > 0 && l <= 10 && eps > 0 {
			opts = append(opts, WithIterations(l))
		}
		if r.IntN(2) == 0 {
			b := make([]float64, m)
			for j := range b {
				b[j] = math.Exp(3 * Normal(&r))
			}
			opts = append(opts, WithTargetWeights(b))
		}
		q := make([]float64, m)
		for j := range q {
			q[j] = Normal(&r) * math.Exp(4*Normal(&r))
			if j > 0 && r.IntN(3) == 0 {
				q[j] = q[j-1]
			}
		}
		slices.Sort(q)
		pairs += n - 1
		checkOrder(t, x, q, Solved(t, x, opts...), float64(len(x)))
		if t.Failed() {
			t.Fatalf("problem %d, ε = %g", seed, eps)
		}
	}
	if pairs < 70*problems {
		t.Errorf("only %d pairs", pairs)
	}
}

// checkOrder: T, R, S and the map keep the order of the samples x and stay in their ranges to the last bit,
// and equal samples have equal values; ranks are at most most. The map inverts nothing beyond its quantiles.
func checkOrder(t *testing.T, x, q []float64, tr *Transport, most float64) {
	t.Helper()
	n, m := len(x), len(q)
	T, f, R, S := Must(tr.Quantile(q))(t), Must(tr.Map(q))(t), tr.Rank(), tr.Sort()
	perm := make([]int, n)
	for i := range perm {
		perm[i] = i
	}
	slices.SortFunc(perm, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	for k, i := range perm {
		if !(T[i] >= q[0] && T[i] <= q[m-1]) || !(R[i] >= 0 && R[i] <= most) {
			t.Fatalf("T = %v outside [%v,%v], or rank %v of %v", T[i], q[0], q[m-1], R[i], most)
		}
		p := perm[max(k-1, 0)]
		if T[p] > T[i] || R[p] > R[i] || f.At(x[p]) > f.At(x[i]) || x[p] == x[i] &&
			(T[p] != T[i] || R[p] != R[i]) {
			t.Fatalf("x %v, %v but T %v, %v, R %v, %v and the map %v, %v", x[p], x[i], T[p], T[i], R[p], R[i],
				f.At(x[p]), f.At(x[i]))
		}
	}
	for _, v := range []float64{math.Inf(-1), -1e300, -3, 0, 3, 1e300, math.Inf(1)} {
		if v := f.At(v); !(v >= q[0] && v <= q[m-1]) {
			t.Fatalf("the map has the value %v, not from %v to %v", v, q[0], q[m-1])
		}
	}
	for _, v := range []float64{math.Nextafter(q[0], math.Inf(-1)), math.Nextafter(q[m-1], math.Inf(1)),
		math.NaN(), math.Inf(1), math.Inf(-1)} {
		if at, err := f.Invert(v); !DataAt(err, -1, -1) {
			t.Fatalf("%v, which the map does not take, is inverted to %v, %v", v, at, err)
		}
	}
	if !slices.IsSorted(S) || S[0] < slices.Min(x) || S[m-1] > slices.Max(x) {
		t.Fatalf("S = %v, of samples from %v to %v", S, slices.Min(x), slices.Max(x))
	}
}

// parts are a gradient's, in all arguments that it has.
func parts(g *Gradient) [][]float64 { return [][]float64{g.X, g.A, g.B, g.Y, g.Q, {g.Epsilon}} }

// results are all that a transport of x says, with the cotangents zn of samples and zm of levels. What has no
// number is one of the package's errors.
func results(t testing.TB, tr *Transport, x, q, zn, zm []float64) (all [][]float64, err error) {
	gradient := func(g *Gradient, wrong error) {
		if wrong == nil {
			all = append(all, parts(g)...)
		} else if err = wrong; !Typed(err) {
			t.Fatalf("%T: %v", err, err)
		}
	}
	all = append(all, tr.F, tr.G, []float64{tr.MarginalError}, tr.Rank(), tr.Sort(), tr.Plan().Data)
	gradient(tr.RankVJP(zn))
	gradient(tr.SortVJP(zm))
	T, wrong := tr.Quantile(q)
	if wrong != nil {
		gradient(nil, wrong)
		return all, err
	}
	gradient(tr.QuantileVJP(q, zn))
	f := Must(tr.Map(q))(t)
	for _, v := range x {
		all = append(all, []float64{f.At(v), f.Slope(v)})
		if back, wrong := f.Invert(f.At(v)); wrong == nil {
			all = append(all, []float64{back})
		} else if !Typed(wrong) {
			t.Fatalf("%T: %v", wrong, wrong)
		}
	}
	return append(all, T, Must(tr.QuantileJVP(q,
		Gradient{X: zn, A: zn, B: zm, Y: zm, Q: zm, Epsilon: zn[0]}))(t)), err
}

// TestInputsKept: inputs are neither changed nor kept.
func TestInputsKept(t *testing.T) {
	x := []float64{3, 1, 2}
	a, y, b := []float64{1, 2, 3}, []float64{0, 0.5, 1}, []float64{1, 1, 2}
	tr := Solved(t, x, WithWeights(a), WithTargets(y), WithTargetWeights(b))
	before := tr.Rank()
	for _, v := range [][]float64{x, a, y, b} {
		for i := range v {
			v[i] = 77
		}
	}
	NearAll(t, tr.Rank(), before, 0, "rank")
}

// TestPeerQuantiles: Hazen's rule at ε = 0, and the documented way to the default of numpy and
// R, each against its formula on sorted x; and close to it at a small ε.
func TestPeerQuantiles(t *testing.T) {
	place := func(sorted []float64, at float64) float64 {
		at = min(max(at, 0), float64(len(sorted)-1))
		k := min(int(at), len(sorted)-1)
		return sorted[k] + (at-float64(k))*(sorted[min(k+1, len(sorted)-1)]-sorted[k])
	}
	for seed := range 300 {
		r := random.Split(73, seed)
		x := make([]float64, 1+r.IntN(40))
		for i := range x {
			x[i] = Normal(&r)
		}
		sorted, n := slices.Clone(x), float64(len(x))
		slices.Sort(sorted)
		for _, p := range []float64{0, 0.05, 0.1, 0.25, 1.0 / 3, 0.5, 0.75, 0.9, 0.99, 1, r.Float64()} {
			hazen := Must(SoftQuantiles(x, []float64{p}, WithEpsilon(0)))(t)
			NearAll(t, hazen, []float64{place(sorted, p*n-0.5)}, 1e-11, "Hazen")
			level := []float64{(p*(n-1) + 0.5) / n}
			numpy, _ := SoftQuantiles(x, level, WithEpsilon(0))
			NearAll(t, numpy, []float64{place(sorted, p*(n-1))}, 1e-11, "numpy")
			soft, _ := SoftQuantiles(x, level, WithEpsilon(1e-7))
			NearAll(t, soft, numpy, 2e-3, "numpy, nearly")
		}
	}
}
