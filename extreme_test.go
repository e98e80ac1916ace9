package quantmf

// Tests of the solver where weights differ by many orders of magnitude.

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// extremeProblem draws few samples and targets with weights over decades of 10.
func extremeProblem(r *random.Source, decades float64) (x, a, b []float64, s Squash) {
	n, m := 1+r.IntN(24), 2+r.IntN(12)
	x = make([]float64, n)
	kind := r.IntN(4)
	for i := range x {
		switch kind {
		case 0:
			x[i] = r.Float64()
		case 1:
			x[i] = Normal(r)
		case 2:
			x[i] = float64(r.IntN(3))
		case 3:
			x[i] = elem.Exp(3 * Normal(r))
		}
	}
	weights := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = math.Pow(10, -decades*r.Float64())
			if r.IntN(3) == 0 {
				v[i] = 1
			}
		}
		return v
	}
	b = weights(m)
	if r.IntN(3) == 0 {
		a = weights(n)
	}
	return x, a, b, [...]Squash{SquashLogistic, SquashNone}[r.IntN(2)]
}

// TestExtremeWeights: weights of a ratio up to 1e12 are transported, at every ε, to the
// tolerance or to the rounding of the logits.
func TestExtremeWeights(t *testing.T) {
	problems := Draws(4000, 200, 100)
	for k, eps := range []float64{1e-2, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8} {
		src := random.Split(21, k)
		sum, most := 0, 0
		for p := range problems {
			x, a, b, s := extremeProblem(&src, 12)
			opts := []Option{WithEpsilon(eps), WithTargetWeights(b), WithSquash(s)}
			if a != nil {
				opts = append(opts, WithWeights(a))
			}
			tr := Solved(t, x, opts...)
			sum += tr.Iterations
			most = max(most, tr.Iterations)
			width := 1.0
			if s == SquashNone {
				width = spread(x)
			}
			rounding := 9e-16 * (1 + width/2/eps)
			if !tr.Converged && tr.MarginalError > 10*rounding {
				t.Errorf("ε=%g, problem %d, %d×%d: %g after %d passes", eps, p, len(x), len(b),
					tr.MarginalError, tr.Iterations)
			}
			if off := columnError(tr, b); !(off <= 2*tr.MarginalError+1e-9+10*rounding) {
				t.Fatalf("ε=%g, problem %d: a column is off by %g, MarginalError %g", eps, p, off,
					tr.MarginalError)
			}
		}
		t.Logf("ε=%g: %.1f passes, at most %d", eps, float64(sum)/float64(problems), most)
	}
}

// TestLightLevelBetween: of two samples that fill the outer two of three levels each
// gives the same share to the middle one, however far that is at this ε.
func TestLightLevelBetween(t *testing.T) {
	for _, eps := range []float64{1e-2, 1e-3, 1e-5, 1e-7} {
		for _, b := range []float64{1e-3, 1e-10, 1e-14, 1e-40, 1e-110} {
			tr := Solved(t, []float64{0, 1}, WithTargetWeights([]float64{1, b, 1}), WithEpsilon(eps),
				WithSquash(SquashNone))
			// By symmetry; M_i1 is b_1 at both.
			beta := b / (2 + b)
			plan := tr.Plan()
			if want := beta / 2; !tr.Converged || math.Abs(plan.At(0, 1)-want) > 1e-8*want ||
				math.Abs(plan.At(1, 1)-want) > 1e-8*want {
				t.Errorf("ε=%g, b=%g: plan %g, %g, want %g, after %d passes at %g", eps, b, plan.At(0, 1),
					plan.At(1, 1), want, tr.Iterations, tr.MarginalError)
			}
		}
	}
}

// TestLightSamples: a sample whose weight vanishes beside the others counts as one of weight 0.
func TestLightSamples(t *testing.T) {
	x := []float64{0, 1, 0.25}
	want := Solved(t, x, WithWeights([]float64{1, 0, 2}), WithLevels(3))
	for _, light := range []float64{5e-324, 1e-308, 1e-210} {
		tr := Solved(t, x, WithWeights([]float64{1, light, 2}), WithLevels(3))
		NearAll(t, tr.Rank(), want.Rank(), 1e-14, "ranks")
		g := Must(tr.SortVJP([]float64{1, 2, -1}))(t)
		w, _ := want.SortVJP([]float64{1, 2, -1})
		NearAll(t, g.A, w.A, 1e-12, "∂a")
	}
}

// TestTimeStamps: exact numbers of a spread far below their size, such as times since an
// epoch, are told apart as their differences are; neighbouring floats are not, in any
// order and at any scale.
func TestTimeStamps(t *testing.T) {
	for _, c := range []struct{ offset, step float64 }{{1.7e15, 100}, {1.7e15, 1}, {1.7e18, 1024},
		{-1.7e15, 100}, {0x1p-800, 0x1p-846}} {
		small, large := make([]float64, 8), make([]float64, 8)
		for i := range small {
			k := float64((5 * i) % 8)
			small[i], large[i] = k*k, c.offset+k*k*c.step
		}
		for _, s := range []Squash{SquashLogistic, SquashLogisticUnit, SquashArctan} {
			want := Must(SoftRank(small, WithSquash(s)))(t)
			got := Must(SoftRank(large, WithSquash(s)))(t)
			NearAll(t, got, want, 1e-12*8, "ranks of %v", c.offset)
		}
	}
	for _, scale := range []float64{0x1p-900, 1, 1.7e15, -1e300} {
		up := math.Nextafter(scale, math.Inf(1))
		for _, x := range [][]float64{{scale, up, scale}, {up, scale, scale},
			{scale, up, math.Nextafter(up, math.Inf(1))}} {
			r := Must(SoftRank(x))(t)
			if r[0] != r[1] || r[1] != r[2] {
				t.Errorf("ranks %v of neighbours of %g", r, scale)
			}
		}
	}
	// A single one that differs, among many.
	x := slices.Repeat([]float64{1.7e15}, 100000)
	x[77] += 300
	r := Must(SoftRank(x, WithLevels(16)))(t)
	if !(r[77] > r[78]+1) {
		t.Errorf("ranks %v, %v", r[77], r[78])
	}
}

// TestTinyUnits: rows are ranked alike in any unit down to a deviation of 1e-290, below which
// a row is constant.
func TestTinyUnits(t *testing.T) {
	want := Must(SoftRank([]float64{3, 1, 2}))(t)
	for _, unit := range []float64{0x1p-963, 0x1p-900, 0x1p990} { // the deviation is 0.8 of it
		x := []float64{3 * unit, unit, 2 * unit}
		got := Must(SoftRank(x))(t)
		NearAll(t, got, want, 0, "ranks")
		tr := Solved(t, x)
		g := Must(tr.RankVJP([]float64{1, -2, 0.5}))(t)
		if i := notFinite(g.X); i >= 0 || g.X[0] == 0 {
			t.Errorf("unit %g: ∂x %v", unit, g.X)
		}
	}
	for _, x := range [][]float64{{1e-300, 2e-300, 3e-300}, {0, 1.9e-290, 0.95e-290}, {5e-324, 0, 0}} {
		got := Must(SoftRank(x))(t)
		if got[0] != got[1] || got[1] != got[2] {
			t.Errorf("ranks %v of %v, want equal ones", got, x)
		}
	}
}

// TestSortShift: the plan does not change where all samples move together, and sorted
// values move with them, so that ∂S/∂x sums to Σz; also where z/b is large.
func TestSortShift(t *testing.T) {
	src := random.Split(22, 0)
	for p := range 300 {
		x, a, b, _ := extremeProblem(&src, 12)
		opts := []Option{WithEpsilon(0.1), WithTargetWeights(b), WithSquash(SquashNone), WithTolerance(1e-13)}
		if a != nil {
			opts = append(opts, WithWeights(a))
		}
		tr := Solved(t, x, opts...)
		z := make([]float64, len(b))
		z[src.IntN(len(b))] = 1
		g := Must(tr.SortVJP(z))(t)
		sum, size := 0.0, 1.0
		for _, v := range g.X {
			sum += v
			size += math.Abs(v)
		}
		if !(math.Abs(sum-1) <= 1e-11*size) {
			t.Errorf("problem %d: ∂S/∂x sums to %v, of size %g", p, sum, size)
		}
	}
}

// TestSortOfTwo: the gradients of sorted values of two samples, of which the first has the
// share p_j = σ(α + 2(x_1-x_2)y_j/ε) of level j, Σ b_j p_j = a_1: S_j = x_2 + (x_1-x_2)p_j. In
// levels of little weight z_j/b_j is large, and what the levels have in common cancels.
func TestSortOfTwo(t *testing.T) {
	src := random.Split(26, 0)
	worst := map[string]float64{}
	for p := range 400 {
		m := 2 + src.IntN(11)
		x, a, y, b, z := []float64{src.Float64(), src.Float64()}, []float64{0.1 + src.Float64(), 1},
			make([]float64, m), make([]float64, m), make([]float64, m)
		for j := range b {
			y[j], b[j], z[j] = transport.Grid(j, m), 1, Normal(&src)
			if src.IntN(2) == 0 {
				b[j] = math.Pow(10, -12*src.Float64())
			}
		}
		transport.Normalise(a, slices.Clone(a))
		transport.Normalise(b, slices.Clone(b))
		eps := []float64{0.003, 0.01, 0.1, 0.3, 1, 3}[p%6]
		tr := Solved(t, x, WithEpsilon(eps), WithSquash(SquashNone), WithWeights(a), WithTargetWeights(b),
			WithTolerance(1e-14))
		g := Must(tr.SortVJP(z))(t)
		gap, plan := x[0]-x[1], tr.Plan()
		share, rest, slope := make([]float64, m), make([]float64, m), make([]float64, m)
		mass, moved, up, ups := 0.0, 0.0, 0.0, 0.0 // Σ b p(1-p), Σ z p(1-p), both with 2y/ε
		for j := range b {
			share[j], rest[j] = plan.At(0, j)/(plan.At(0, j)+plan.At(1, j)),
				plan.At(1, j)/(plan.At(0, j)+plan.At(1, j))
			slope[j] = share[j] * rest[j]
			mass += b[j] * slope[j]
			moved += z[j] * slope[j]
			up += b[j] * slope[j] * 2 * (y[j] - 0.5) / eps
			ups += z[j] * slope[j] * 2 * (y[j] - 0.5) / eps
		}
		d := gap * moved / mass
		toA, toB, toY, toX := []float64{a[1] * d, -a[0] * d}, make([]float64, m), make([]float64, m),
			make([]float64, 2)
		for j, v := range share {
			toB[j] = d * (a[0] - v)
			toY[j] = gap * 2 * gap / eps * (z[j] - b[j]*moved/mass) * slope[j]
			toX[0] += z[j] * v
			toX[1] += z[j] * rest[j]
		}
		both := gap * (ups - up*moved/mass)
		toX[0] += both
		toX[1] -= both
		for _, c := range []struct {
			what      string
			got, want []float64
			tol       float64
		}{{"∂x", g.X, toX, 1e-11}, {"∂a", g.A, toA, 1e-11}, {"∂b", g.B, toB, 1e-11},
			{"∂y", g.Y, toY, 1e-11}} {
			for i, w := range c.want {
				e := math.Abs(c.got[i]-w) / (math.Abs(d) + LargestOf(c.want))
				worst[c.what] = max(worst[c.what], e)
				if !(e <= c.tol) {
					t.Errorf("problem %d, ε=%g, %d levels: %s[%d] = %g, want %g: off by %.1e of the largest",
						p, eps, m, c.what, i, c.got[i], w, e)
				}
			}
		}
	}
	t.Log(worst)
}

// TestSlopeSymmetry: the map of a row that is its own mirror image has the slopes of one
// side on the other, as far out as they are above 0.
func TestSlopeSymmetry(t *testing.T) {
	x := []float64{-4, -3, -1, -0.5, 0.5, 1, 3, 4}
	for _, s := range []Squash{SquashNone, SquashLogistic, SquashLogisticUnit} {
		y := []float64{-4, -2, 2, 4}
		if s != SquashNone {
			y = []float64{0, 0.25, 0.75, 1}
		}
		for _, eps := range []float64{0.01, 0.1, 1} {
			tr := Solved(t, x, WithEpsilon(eps), WithTargets(y), WithSquash(s), WithTolerance(1e-13))
			f := Must(tr.Map([]float64{-5, -1, 1, 5}))(t)
			value, slope := make([]float64, 8), make([]float64, 8)
			sheet, room := f.of.Sheet(), place.NewSheetRoom(8, 4)
			for at := 0.0; at < 80; at += 0.25 {
				low, high := f.Slope(-at), f.Slope(at)
				if low > 1e-200 && !(math.Abs(high-low) <= 1e-8*low) {
					t.Errorf("%v, ε=%g: slope %g at %g, %g at %g", s, eps, high, at, low, -at)
				}
				if s == SquashNone { // new samples feel no slope below e^-300
					continue
				}
				sheet.At(value, slope, []float64{at, at, at, at, at, at, at, at}, room)
				if low > 1e-200 && !(math.Abs(slope[0]-high) <= 1e-8*high) {
					t.Errorf("%v, ε=%g: slope %g at %g, of new samples %g", s, eps, high, at, slope[0])
				}
			}
		}
	}
}

// TestFarOutliers: a sample far off is transported to the last level whether it lies at 10
// or at 1e12, and the others do not feel where, to their last digits; the median may belong to any level.
func TestFarOutliers(t *testing.T) {
	src := random.Split(23, 0)
	for p := range 200 {
		n := 5 + src.IntN(30)
		m := [...]int{3, 4, n}[p%3]
		x, z, q := make([]float64, n), make([]float64, n), make([]float64, m)
		for i := range x {
			x[i], z[i] = src.Float64(), Normal(&src)
		}
		a, b := slices.Repeat([]float64{1}, n), slices.Repeat([]float64{1}, m)
		for j := range q {
			q[j] = float64(j)
		}
		sign, end := 1.0, m-1
		if p%2 == 1 {
			sign, end = -1, 0
		}
		if n > 2*m { // and the sample far off is less than the last level, or fills it
			b[p/6%m] = float64(m - 1)
			if p%4 < 2 && b[end] == 1 {
				a[0] = float64(n-1) * b[end] / (float64(2*m-2) - b[end])
			}
		}
		solved := func(far float64) (T, dx []float64, tr *Transport) {
			x := slices.Clone(x)
			x[0] = sign * far
			tr = Solved(t, x, WithSquash(SquashNone), WithWeights(a), WithTargetWeights(b),
				WithTolerance(1e-12))
			T = Must(tr.Quantile(q))(t)
			g := Must(tr.QuantileVJP(q, z))(t)
			return T, g.X, tr
		}
		T, dx, _ := solved(10)
		for _, far := range []float64{1e4, 1e6, 1e9, 1e12} {
			U, dy, tr := solved(far)
			if !tr.Converged || tr.MarginalError > 1e-11 {
				t.Errorf("problem %d, outlier at %g: error %g after %d", p, far, tr.MarginalError,
					tr.Iterations)
			}
			NearAll(t, U, T, 1e-11*float64(m), "T")
			NearAll(t, dy, dx, 1e-10*LargestOf(dx), "∂x")
		}
	}
}

// TestForwardWeakCoupling: two clusters that each fill two levels, and a sample without
// weight in the gap, which feels the potential between them though next to nothing crosses.
// What is wanted is worked out from the plan in 300 bits.
func TestForwardWeakCoupling(t *testing.T) {
	src := random.Split(24, 0)
	worst := 0.0
	for p := range 60 {
		n, m := 13, 4
		x, a, d, q, dy := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, m),
			make([]float64, m)
		for i := range x {
			x[i], d[i], a[i] = 0.3*src.Float64(), Normal(&src), 1
			if i%2 == 1 {
				x[i] += 0.7
			}
		}
		x[0], a[0] = 0.45+0.1*src.Float64(), 0
		for j := range q {
			q[j], dy[j] = float64(j)+src.Float64(), 0.3*Normal(&src)
		}
		eps := []float64{0.1, 0.03, 0.01, 7e-3, 5e-3, 4e-3}[p%6]
		tr := Solved(t, x, WithEpsilon(eps), WithSquash(SquashNone), WithLevels(m), WithTolerance(1e-14),
			WithWeights(a))
		r := tr.row()
		var plan [][]float64
		r.EachSample(func(_ int, row []float64) { plan = append(plan, slices.Clone(row)) })
		share, _ := r.Weights()
		coupling := 1.0 // the least mass that levels below a boundary share with those above
		for J := range m - 1 {
			across := 0.0
			for i, row := range plan {
				across += share[i] * TotalOf(row[:J+1]) * TotalOf(row[J+1:])
			}
			coupling = min(coupling, across)
		}
		workspaces.Put(r)
		for _, dir := range []Gradient{{X: d}, {Y: dy}} {
			got := Must(tr.QuantileJVP(q, dir))(t)
			want, size := bigForward(plan, x, a, q, eps, dir)
			if coupling < 1e-14 { // the floor of the pivots
				continue
			}
			e := math.Abs(got[0]-want[0]) / size
			worst = max(worst, e)
			if !(e <= 1e-14) {
				t.Errorf("problem %d, ε=%g: %v, want %v, relative %.1e, coupling %.1e", p, eps, got[0],
					want[0], e, coupling)
			}
		}
	}
	t.Logf("worst %.1e", worst)
}

// TestWeightlessSamples: samples of weight 0 go where the map of the others takes them,
// also in a gap that next to no mass crosses: nothing there says where a solve should end,
// so that it ends where it starts, half way between samples of some weight.
func TestWeightlessSamples(t *testing.T) {
	for _, eps := range []float64{0.1, 0.03, 0.01, 1e-3, 1e-5} {
		x := []float64{0, 0.4, 0.6, 1}
		tr := Solved(t, x, WithWeights([]float64{1, 0, 0, 1}), WithLevels(2), WithEpsilon(eps),
			WithSquash(SquashNone), WithTolerance(1e-13))
		T := Must(tr.Quantile([]float64{0, 1}))(t)
		want := make([]float64, 4) // the threshold is 1/2 by symmetry
		for i, v := range x {
			want[i] = 1 / (1 + math.Exp(-2*(v-0.5)/eps))
		}
		NearAll(t, T, want, 1e-11, "T")
		for i, w := range want[:2] {
			Near(t, T[i], w, 1e-9*w+1e-300, "ε=%g: T(%g)", eps, x[i])
		}
	}
	src := random.Split(25, 0)
	for p := range 400 {
		n, m := 6+src.IntN(20), 2+src.IntN(6)
		x, a, q := make([]float64, n), make([]float64, n), make([]float64, m)
		var some []float64
		for i := range x {
			if x[i] = src.Float64(); i < 2 || src.IntN(2) == 0 {
				a[i] = 1
				some = append(some, x[i])
			}
		}
		for j := range q {
			q[j] = float64(j)
		}
		opts := []Option{WithLevels(m), WithSquash(SquashNone), WithEpsilon([]float64{1e-2, 1e-3, 1e-4}[p%3]),
			WithTolerance(1e-12)}
		all := Solved(t, x, append(opts, WithWeights(a))...)
		few := Solved(t, some, opts...)
		f := Must(few.Map(q))(t)
		T := Must(all.Quantile(q))(t)
		for i, v := range x {
			// Where some 1e-12 of the mass crosses, the tolerance leaves a little of T open.
			Near(t, T[i], f.At(v), 0.02, "problem %d: T(%g) among samples without weight", p, v)
		}
	}
}

// bigForward is the derivative of T along x and y of the plan M, by its definition: the
// logits h_j - (x_i-y_j)²/ε move by dh_j + κ_ij such that the column sums do not. size is that
// of the logits' move.
func bigForward(plan [][]float64, x, a, q []float64, eps float64, dir Gradient) (out []float64,
	size float64) {
	n, m := len(x), len(q)
	num := func(v float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(v) }
	add := func(a, b *big.Float) *big.Float { return num(0).Add(a, b) }
	sub := func(a, b *big.Float) *big.Float { return num(0).Sub(a, b) }
	mul := func(a, b *big.Float) *big.Float { return num(0).Mul(a, b) }
	quo := func(a, b *big.Float) *big.Float { return num(0).Quo(a, b) }
	kappa, M := make([][]*big.Float, n), make([][]*big.Float, n)
	for i := range x {
		sum := num(0)
		for j := range m {
			dx, dy := 0.0, 0.0
			if dir.X != nil {
				dx = dir.X[i]
			}
			if dir.Y != nil {
				dy = dir.Y[j]
			}
			y := transport.Grid(j, m)
			// d of -(x-y)²/ε, without what does not depend on j, about the middle.
			move := add(mul(num(2*dx), sub(num(y), num(0.5))), mul(num(2*dy), sub(num(x[i]), num(y))))
			kappa[i] = append(kappa[i], quo(move, num(eps)))
			v, _ := kappa[i][j].Float64()
			size = max(size, math.Abs(v))
			M[i] = append(M[i], num(plan[i][j]))
			sum = add(sum, M[i][j])
		}
		for j := range m {
			M[i][j] = quo(M[i][j], sum)
		}
	}
	// Σ_k L_jk dh_k = -Σ_i a_i M_ij (κ_ij - κ̄_i), dh_0 = 0, by elimination.
	L := make([][]*big.Float, m)
	for j := range L {
		L[j] = make([]*big.Float, m+1)
		for k := range L[j] {
			L[j][k] = num(0)
		}
	}
	for i := range x {
		mean := num(0)
		for j := range m {
			mean = add(mean, mul(M[i][j], kappa[i][j]))
		}
		for j := range m {
			w := mul(num(a[i]), M[i][j])
			L[j][m] = sub(L[j][m], mul(w, sub(kappa[i][j], mean)))
			for k := range m {
				L[j][k] = sub(L[j][k], mul(w, M[i][k]))
			}
			L[j][j] = add(L[j][j], w)
		}
	}
	dh := make([]*big.Float, m)
	dh[0] = num(0)
	for k := m - 1; k > 0; k-- {
		for j := range k {
			f := quo(L[j][k], L[k][k])
			for c := range L[j] {
				L[j][c] = sub(L[j][c], mul(f, L[k][c]))
			}
		}
	}
	for k := 1; k < m; k++ {
		v := L[k][m]
		for j := range k {
			v = sub(v, mul(L[k][j], dh[j]))
		}
		dh[k] = quo(v, L[k][k])
	}
	for i := range x {
		mean, mq, sum := num(0), num(0), num(0)
		for j := range m {
			u := add(dh[j], kappa[i][j])
			mean = add(mean, mul(M[i][j], u))
			mq = add(mq, mul(M[i][j], num(q[j])))
			sum = add(sum, mul(M[i][j], mul(u, num(q[j]))))
		}
		v, _ := sub(sum, mul(mean, mq)).Float64()
		out = append(out, v)
	}
	return out, size * (q[m-1] - q[0])
}

// TestFarRowsReconstruct: without a squash a row of UV whose samples lie far apart is mapped
// By its stored potentials as it was when the fit ended, about the centre that they belong to.
func TestFarRowsReconstruct(t *testing.T) {
	x := NewMat(12, 60)
	for i := range x.Data {
		x.Data[i] = float64(1+i*7%101) * 0.01
	}
	for i := range x.Rows {
		x.Set(i, (i*7)%60, 3e7)
	}
	q := Fitted(t, FitQMF, x, 3, WithSquash(SquashNone), WithEpochs(3), WithStart(StartNMF),
		WithShrinkage(0))
	l := Must(q.Loss(x))(t)
	want := q.History[q.Best]
	Near(t, l, want, 1e-12*want, "Loss, by the end of History")
}
