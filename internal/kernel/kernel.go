// Package kernel holds the loops over samples: lengths and slices, no models. The
// list of them, with what each computes, is in kernel.go. The loops in Go, whose names
// end in _g, are in
//
//	plan.go        over a plan and its levels         bins.go     over samples in bins
//	product.go     over low-rank products             columns.go  steps of the columns of V
//	at.go          the same at some samples only      newton.go   an NMF by Newton's method
//	elementary.go  number by number                   mapped.go   a divergence under a map
//	laplacian.go   the m × m system of the levels
//
// Assembly for amd64, chosen at run time by the processor, for arm64 and for
// WebAssembly is written by internal/asmgen (the build tag purego leaves it out).
//
// # Layout
//
// Samples come in blocks of eight lanes. A vector over n samples is padded to
// np = Pad(n) numbers; a matrix over n samples and m levels is stored block by
// block, level by level, lane by lane: entry (i, j) lies at
// (i/8·m + j)·8 + i%8. Padding lanes hold ordinary numbers and count for
// nothing since their weight is zero. Matrices over m × m levels have rows of
// Pad(m) numbers.
//
// # Bits
//
// A sum over samples has eight partial sums, one a lane, each in the order of
// the blocks, joined by [Reduce]; a sum over levels or components runs in their
// order. Products are never fused with sums, divisions and roots are those of IEEE
// 754. So assembly has the bits of the loops in Go, and the tests ask for them.
//
// # Notation
//
// e is the stored kernel E_ij, w the weights W_j of the levels, z the row sums
// Z_i = Σ_j E_ij W_j; M_ij = E_ij W_j / Z_i is the row-stochastic plan.
package kernel

// Lanes is the number of samples in a block.
const Lanes = 8

// Portable is the level of no vector instructions: the loops in Go. The levels of each processor follow it,
// each with those before it; the files level_* say which there are and which the processor has.
const Portable = 0

// Vectors tells whether the loops run in assembly here.
func Vectors() bool { return level != Portable }

// Pad returns n rounded up to whole blocks.
func Pad(n int) int { return (n + Lanes - 1) &^ (Lanes - 1) }

// levelsOf are the entries of sample i in a matrix over samples and m levels: level j is at Lanes j.
func levelsOf(e []float64, i, m int) []float64 { return e[i/Lanes*m*Lanes+i%Lanes:] }

// Reduce joins the eight partial sums of a reduction.
func Reduce(a *[Lanes]float64) float64 {
	return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

const (
	// flush is the exponent below which an entry of E is zero: its square would
	// come near the denormals, which are many times slower.
	flush   = -300
	flushed = 5.148200222412013e-131 // its exponential
	// decouple is the magnitude below which an entry of a Gram matrix is zero.
	decouple = 1e-200
	// tiny is the least ratio that a logarithm is taken of.
	tiny = 1e-300
	ln2  = 0.6931471805599453
)

// Build fills E_ij = exp(h_j + s_i y_j - max_j), each row's largest entry 1.
// One exp an entry.
func Build(e, s, h, y []float64) {
	_ = y[0]
	build(e[:len(s)*len(y)], s, h[:len(y)], y)
}

// Lift makes of [BuildPower]'s E for n samples what [Build] fills, given exp h: each
// level is multiplied by its own, and each row divided by the largest, which the caller
// keeps between 1 and 1e300.
func Lift(e, h []float64, n int) {
	_ = h[0]
	lift(e[:n*len(h)], h, n)
}

// Tops fills t_i = max_j h_j + s_i y_j: what [Build] takes away.
func Tops(t, s, h, y []float64) {
	_ = y[0]
	tops(t, s[:len(t)], h[:len(y)], y)
}

// BuildPower fills E_ij = exp(s_i y_j) for the grid y_j = y0 + j·step of m
// levels by repeated multiplication: two exps a row. The caller keeps |s_i y_j|
// below 700, and small enough for squares not to overflow or has them from [Lift].
func BuildPower(e, s []float64, y0, step float64, m int) {
	if m < 1 {
		return
	}
	buildPower(e[:len(s)*m], s, y0, step, m)
}

// Powers fills base_i = exp(s_i y0) and rate_i = exp(s_i step), from which [PowersOf] fills E with the bits
// of [BuildPower].
func Powers(base, rate, s []float64, y0, step float64) {
	Scale(base, s, y0)
	Exp(base, base)
	Scale(rate, s, step)
	Exp(rate, rate)
}

// PowersOf fills E of m levels; see [Powers].
func PowersOf(e, base, rate []float64, m int) {
	if m < 1 {
		return
	}
	powersOf(e[:len(base)*m], base, rate[:len(base)], m)
}

// MappedKL fills loss, slope and curvature with what cells x >= 0 under T(w) say of the divergence of
// Kullback and Leibler,
//
//	Δ(x,T),   (1-x/T) T',   T'²/T,
//
// with derivatives in w, for a T = Line w + N/D > 0, N/D being a ratio of polynomials in r = e^{Step
// (x̃-Center)} and x̃ the logistic squash of w:
//
//	D = Σ_J D_J r^J,   N = Σ_J N_J r^J,   (N/D)' = r (N'D - ND')/D².
//
// levels has D_J and N_J of the two levels at least, slopes the coefficients of N'D - ND' times Step and the
// slope of x̃ in e, both from the highest power on. D, N and what D² r is made of stay far from overflow. The
// derivatives take 1/T no larger than Most. An infinite w, or one that is no number, has a loss that is no
// number. The logarithm is [elem.RoughLog2], and there are four divisions a cell. Whole blocks.
func MappedKL(loss, slope, curvature, w, x, levels, slopes []float64, p *KLMap) {
	n := len(loss)
	_, _ = levels[3], slopes[0]
	mappedKL(loss, slope[:n], curvature[:n], w[:n], x[:n], levels[:len(levels)&^1], slopes, p)
}

// BinMoments adds the moments of samples to those of their bins, four numbers each: to number k of bin p Σ
// (t-1/2)^k of its samples, in their order, t being their places in the bin.
func BinMoments(sums, x []float64, b *Bins) {
	_ = sums[4*int(b.Last)+3]
	whole := len(x) &^ 3
	binMoments(sums, x[:whole], b)
	binMoments_g(sums, x[whole:], b)
}

// BinWeights is BinMoments of finite samples of weights w >= 0, for sums none of which is -0.
func BinWeights(sums, x, w []float64, b *Bins) {
	_ = sums[4*int(b.Last)+3]
	whole := len(x) &^ 3
	binWeights(sums, x[:whole], w[:whole], b)
	binWeights_g(sums, x[whole:], w[whole:], b)
}

// RowSums fills z_i = Σ_j E_ij w_j, the last level first.
func RowSums(z, e, w []float64) {
	_ = w[0]
	rowSums(z, e[:len(z)*len(w)], w)
}

// RowRatios replaces u_i by x_i / max(u_i + Σ_j E_ij c_j, low z_i), the last level first.
func RowRatios(u, e, c, z, x []float64, low float64) {
	_ = c[0]
	rowRatios(u, e[:len(u)*len(c)], c, z[:len(u)], x[:len(u)], low)
}

// Moments fills mu_2j = Σ_i v_i E_ij² and, for j < m-1, mu_2j+1 = Σ_i v_i E_ij
// E_i,j+1, m = len(mu)/2; the last is 0. On a regular grid these 2m-1 sums hold
// the whole Gram matrix.
func Moments(mu, e, v []float64) {
	_, _ = mu[1], v[Lanes-1]
	moments(mu, e[:len(v)*(len(mu)/2)], v)
}

// Gram fills the lower triangle, diagonal included, of the m × m
// g_jk = Σ_i v_i E_ij E_ik: the general form, m/4 times the cost of [Moments].
func Gram(g, e, v []float64, m int) {
	_ = v[Lanes-1]
	gram(g[:m*Pad(m)], e[:len(v)*m], v, m)
}

// Hankel fills the m × m g_jk = mu_j+k ratio_jk w_j w_k, zero where that is below
// 1e-200, and c_j = Σ_k g_jk. c and w have Pad(m) numbers, mu has m + Pad(m); w is
// 0 in the padding, and mu and ratio finite there.
func Hankel(g, c, mu, ratio, w []float64, m int) {
	_, _ = mu[0], g[m-1]
	hankel(g[:m*len(w)], c[:len(w)], mu[:m+len(w)], ratio[:m*len(w)], w, m)
}

// Differences fills out_j = Σ_k (v_j-v_k) g_jk for the symmetric m × m g. out and v
// have Pad(m) numbers, finite in the padding.
func Differences(out, g, v []float64, m int) {
	_ = g[m-1]
	differences(out, g[:m*len(out)], v[:len(out)], m)
}

// ColSums fills c_j = Σ_i v_i E_ij for the m = len(c) levels.
func ColSums(c, e, v []float64) {
	_ = v[Lanes-1]
	colSums(c, e[:len(c)*len(v)], v)
}

// Average fills z as [RowSums] does, and t_i = first + Σ_J d_J G_iJ / z_i, with
// G_iJ = Σ_{j>J} E_ij w_j: the mean under M_i of the levels whose first value is first
// and whose m-1 increments are d. Where d >= 0 only positive numbers are added.
func Average(t, e, w, z []float64, first float64, d []float64) {
	average(t, e[:len(t)*len(w)], w, z[:len(t)], first, d[:len(w)-1])
}

// Cov is what [Covariance] and [Covariances] read and fill, for n = len(Out) samples,
// whole blocks, and m = len(W) levels, at least one. What only Covariances uses may be nil
// for the other.
type Cov struct {
	Out        []float64 // n: to fill
	Own        []float64 // n: to fill, CovarianceOwn only
	Mean, Logs []float64 // n: to fill, Covariances only
	E          []float64 // n × m: the stored kernel
	W          []float64 // m: the weights of the levels
	Z          []float64 // n: the row sums
	Zeta, A    []float64 // n: ζ and a
	S          []float64 // n: the slopes of log M in y, Covariances only
	V, Lam, Y  []float64 // m: v, λ and y
	H          []float64 // m: log M at a slope of 0, Covariances only
}

// check panics where a slice that all read is shorter than it has to be, and returns n.
func (c *Cov) check() int {
	n, m := len(c.Out), len(c.W)
	_, _ = c.W[0], c.E[:n*m]
	_, _, _ = c.V[:m], c.Lam[:m], c.Y[:m]
	return n
}

// Covariance fills
//
//	out_i = ζ_i Cov_{M_i}(v, y) - a_i Cov_{M_i}(λ, y) = Cov_{M_i}(u_i, y),  u_ij = ζ_i v_j - a_i λ_j.
//
// Levels are taken about the likeliest one of the sample: a plan on one level
// gives 0 without cancellation, and a level of little weight adds little
// however large its v. Eight lanes keep their own.
func Covariance(c *Cov) {
	n := c.check()
	covariance(c.Out, c.E, c.W, c.Z[:n], c.Zeta[:n], c.A[:n], c.V, c.Lam, c.Y)
}

// CovarianceOwn is [Covariance] from the covariances of v and of λ apart, and fills own_i = a_i Cov_{M_i}(v,
// y).
func CovarianceOwn(c *Cov) {
	n := c.check()
	covarianceOwn(c.Out, c.Own[:n], c.E, c.W, c.Z[:n], c.Zeta[:n], c.A[:n], c.V, c.Lam, c.Y)
}

// Covariances is [Covariance], and fills logs_i with the same for log M_ij in place of
// y_j, which is h_j + s_i y_j and what does not depend on j, and mean_i with M_i·λ.
func Covariances(c *Cov) {
	n := c.check()
	covariances(c.Out, c.Mean[:n], c.Logs[:n], c.E, c.W, c.Z[:n], c.Zeta[:n], c.A[:n], c.S[:n], c.V, c.Lam,
		c.H[:len(c.W)], c.Y)
}

// Combine fills w_j = Σ_c u_c V_cj for V of len(u) rows as long as w.
func Combine(w, u, v []float64) {
	v = v[:len(u)*len(w)]
	if len(w)%Lanes != 0 { // small square matrices
		combine_g(w, u, v)
		return
	}
	combine(w, u, v)
}

// Dots fills g_c = Σ_j V_cj r_j over the whole blocks of r, at least one.
func Dots(g, v, r []float64) {
	_ = r[Lanes-1]
	dots(g, v[:len(g)*len(r)], r)
}

// Sum returns Σ_j r_j over whole blocks.
func Sum(r []float64) float64 { return sum(r) }

// Accumulate adds u_c r_j to acc_cj.
func Accumulate(acc, u, r []float64) {
	acc = acc[:len(u)*len(r)]
	if len(r)%Lanes != 0 || len(r) == 0 { // small square matrices
		accumulate_g(acc, u, r)
		return
	}
	accumulate(acc, u, r)
}

// CombineRows is [Combine] for the rows of W = UV, DotsRows [Dots] for those of
// G = R Vᵀ, AccumulateRows adds UᵀR: rows of padded samples, at least one block, each
// with the bits it has alone and in their order. They read V for four rows at once.
func CombineRows(w, u, v []float64, rows int) {
	k, np := len(u)/rows, len(w)/rows
	for ; rows >= 4; rows -= 4 {
		combine4(w[:4*np], u[:4*k], v[:k*np])
		w, u = w[4*np:], u[4*k:]
	}
	for ; rows > 0; rows-- {
		Combine(w[:np], u[:k], v)
		w, u = w[np:], u[k:]
	}
}

// DotsRows fills G = R Vᵀ; see [CombineRows].
func DotsRows(g, v, r []float64, rows int) {
	k, np := len(g)/rows, len(r)/rows
	for ; rows >= 4; rows -= 4 {
		dots4(g[:4*k], v[:k*np], r[:4*np])
		g, r = g[4*k:], r[4*np:]
	}
	for ; rows > 0; rows-- {
		Dots(g[:k], v, r[:np])
		g, r = g[k:], r[np:]
	}
}

// AccumulateRows adds UᵀR to acc; see [CombineRows].
func AccumulateRows(acc, u, r []float64, rows int) {
	k, np := len(u)/rows, len(r)/rows
	for ; rows >= 4; rows -= 4 {
		accumulate4(acc[:k*np], u[:4*k], r[:4*np])
		u, r = u[4*k:], r[4*np:]
	}
	for ; rows > 0; rows-- {
		Accumulate(acc, u[:k], r[:np])
		u, r = u[k:], r[np:]
	}
}

// AccumulateLower adds UᵀR, U and R of four rows as long as those of acc, to the blocks of acc up to its
// diagonal: of row c to entries 0 to c/8·8+7. It takes the rows from first to before end; first is a multiple
// of 4, or end-1. A row of acc has whole blocks, and at least end entries.
func AccumulateLower(acc, u, r []float64, first, end int) {
	np := len(r) / 4
	_, _ = acc[:end*np], u[:np:np][:end]
	accumulateLower(acc[first*np:], u[first:4*np], r[:4*np], first, end-first)
}

// Sweep adds UᵀX to the blocks up to the diagonal of the first rows of acc, as [AccumulateLower] does, but
// for the rows from before to after-1. U is four rows, lines, as long as those of acc, and X = -DU for the 4
// × 4 matrix -D, minus. It then replaces U by -X. lines may be the four rows of acc that are left out.
func Sweep(acc, lines, minus []float64, before, after, rows int) {
	np := len(lines) / 4
	_, _, _ = acc[:rows*np], lines[:np:np][:rows], minus[:16]
	sweep(acc, lines[:4*np], minus, before, after, rows)
}

// Unpack fills the lower triangle of a matrix, its rows stride numbers apart, whole blocks, with c times a
// packed one, row after row. What lies above the diagonal in the blocks that it crosses is anything then.
func Unpack(to, from []float64, rows, stride int, c float64) {
	whole := inside(len(from), rows)
	unpack(to[:rows*stride], from, whole, stride, c)
	for r := whole; r < rows; r++ {
		Scale(to[r*stride:][:r+1], from[r*(r+1)/2:], c)
	}
}

// inside is how many rows of a packed triangle, at most some, have all of their blocks within its first n
// numbers.
func inside(n, rows int) int {
	for rows > 0 && (rows-1)*rows/2+(rows-1)&^(Lanes-1)+Lanes > n {
		rows--
	}
	return rows
}

// AccumulateFrom fills to, whole blocks, with from and adds w_l times line l of r, for all l of at in turn:
// lines of the length of to that lie stride numbers apart. With the bits of [Accumulate] line by line. All l
// are below len(w) and lines of r: that is not checked.
func AccumulateFrom(to, from, w, r []float64, at []uint32, stride int) {
	accumulateFrom(to, from[:len(to)], w, r, at, stride)
}

// CombineAt fills w_p = Σ_c u_c V_jc with j = cols_p, for V that lies sample by sample, a row of len(u)
// numbers each, whole blocks of components. DotsAt adds Σ_p r_p V_jc to g_c, DotsSquaresAt also Σ_p q_p V_jc²
// to h_c, and AccumulateAt u_c r_p to acc_jc. All cols are different and below the number of rows of V: that
// is not checked.
func CombineAt(w, u, v []float64, cols []uint32) {
	w = w[:len(cols)]
	clear(w)
	combineAt(w, u, v, cols)
}

// DotsAt adds the products of V and r to g; see [CombineAt].
func DotsAt(g, v, r []float64, cols []uint32) { dotsAt(g, v, r[:len(cols)], cols) }

// DotsSquaresAt is described at [CombineAt].
func DotsSquaresAt(g, h, v, r, q []float64, cols []uint32) {
	dotsSquaresAt(g, h[:len(g)], v, r[:len(cols)], q[:len(cols)], cols)
}

// AccumulateAt adds the products of u and r to some rows of acc; see [CombineAt].
func AccumulateAt(acc, u, r []float64, cols []uint32) { accumulateAt(acc, u, r[:len(cols)], cols) }

// QuotientRows fills R = X / max(UV, low), rows of padded samples as in [CombineRows],
// and returns Σ UV - X, cell by cell. Rows of X lie stride numbers apart.
func QuotientRows(r, u, v, x []float64, stride, rows int, low float64) float64 {
	k, np := len(u)/rows, len(r)/rows
	_, x = u[0], x[:(rows-1)*stride+np]
	s := 0.0
	for ; rows >= 4; rows -= 4 {
		s += quotient4(r[:4*np], u[:4*k], v[:k*np], x, stride, low)
		r, u, x = r[4*np:], u[4*k:], x[min(4*stride, len(x)):]
	}
	if rows == 0 {
		return s
	}
	CombineRows(r, u, v, rows)
	for ; rows > 0; rows-- {
		s += quotient(r[:np], x[:np], low)
		r, x = r[np:], x[min(stride, len(x)):]
	}
	return s
}

// LogSumRows returns Σ x log(r), R and X as [QuotientRows] has them, with the logarithm
// of elem.RoughLog2: with what that returns it is the divergence of Kullback and
// Leibler, and the rounding of UV, the same in both, hardly changes it.
func LogSumRows(r, x []float64, stride, rows int) float64 {
	np := len(r) / rows
	x = x[:(rows-1)*stride+np]
	s := 0.0
	for i := range rows {
		s += logSum(r[i*np:(i+1)*np], x[i*stride:i*stride+np])
	}
	return s * ln2
}

// LogSum returns Σ x log2 r of any number of samples; see [LogSumRows].
func LogSum(r, x []float64) float64 { return logSum(r, x[:len(r)]) }

// AdamStep moves x against its gradient g by the rule of Kingma and Ba (internal/qmf): it makes mu and
// nu the moments with g, and subtracts rate mu/(√(nu/c2) + 1e-8).
func AdamStep(x, g, mu, nu []float64, rate, c2 float64) {
	adamStep(x, g[:len(x)], mu[:len(x)], nu[:len(x)], rate, c2)
}

// Exp fills to_i = exp x_i, with the bits of elem.Exp. Here and below slices have
// any length and to may be one of the others.
func Exp(to, x []float64) { exp(to, x[:len(to)]) }

// Log fills to_i = log x_i, with the bits of elem.Log.
func Log(to, x []float64) { log(to, x[:len(to)]) }

// Score is how a number x of a row is standardised: z = ((x-Ref)-Shift)/Std. The mean is
// Ref + Shift; Ref, a number of the row, goes first, so that a mean far from 0 costs no
// digits.
type Score struct{ Ref, Shift, Std float64 }

// Logistic fills to_i with elem.Logistic of z_i·rate.
func Logistic(to, x []float64, z *Score, rate float64) { logistic(to, x[:len(to)], z, rate) }

// Extent fills to with the least and the largest of x, whole blocks, at least one.
func Extent(to *[2]float64, x []float64) {
	_ = x[Lanes-1]
	extent(to[:], x)
}

// Shift fills to_i = x_i - c.
func Shift(to, x []float64, c float64) { shift(to, x[:len(to)], c) }

// Slopes fills s_i = 2x_i/eps and returns the largest magnitude.
func Slopes(s, x []float64, eps float64) float64 { return slopes(s, x[:len(s)], eps) }

// Spread fills to with max |x_i-ref| and max |x_i|. Where an x_i is not finite, the
// second is NaN and the first anything.
func Spread(to *[2]float64, x []float64, ref float64) {
	var three [3]float64
	spread(three[:], x, ref)
	to[0], to[1] = three[0], three[1]+three[2]
}

// Deviation returns Σ (x_i-ref)/scale.
func Deviation(x []float64, ref, scale float64) float64 { return deviation(x, ref, scale) }

// Squares returns Σ ((x_i-ref)/scale - mean)².
func Squares(x []float64, ref, scale, mean float64) float64 { return squares(x, ref, scale, mean) }

// LogisticBack turns the gradient g at s, what [Logistic] made of x, into
// w_i = g_i s_i (1-s_i) rate, and fills to with Σ w_i and Σ w_i z_i.
func LogisticBack(to *[2]float64, g, s, x []float64, z *Score, rate float64) {
	logisticBack(to[:], g, s[:len(g)], x[:len(g)], z, rate)
}

// LogisticSlope multiplies g_i by c s_i (1-s_i).
func LogisticSlope(g, s []float64, c float64) { logisticSlope(g, s[:len(g)], c) }

// ScoreBack replaces g_i by (g_i - mean - z_i dot)/std.
func ScoreBack(g, x []float64, z *Score, mean, dot float64) { scoreBack(g, x[:len(g)], z, mean, dot) }

// Divide fills to_i = a_i / z_i.
func Divide(to, a, z []float64) { divide(to, a[:len(to)], z[:len(to)]) }

// Scale fills to_i = x_i c.
func Scale(to, x []float64, c float64) { scale(to, x[:len(to)], c) }

// Multiply fills to_i = a_i b_i.
func Multiply(to, a, b []float64) { multiply(to, a[:len(to)], b[:len(to)]) }

// MultiplyLess fills to_i = a_i b_i - c_i.
func MultiplyLess(to, a, b, c []float64) {
	n := len(to)
	multiplyLess(to, a[:n], b[:n], c[:n])
}

// Rotate turns the pair (p, q) by the angle of the given cosine and sine.
func Rotate(p, q []float64, cos, sin float64) { rotate(p, q[:len(p)], cos, sin) }

// Weigh fills to_i = a_i / z_i²: the weights of a Gram matrix.
func Weigh(to, a, z []float64) { weigh(to, a[:len(to)], z[:len(to)]) }

// Ratio fills num_i = x_i / max(t_i, low).
func Ratio(num, x, t []float64, low float64) { ratio(num, x[:len(num)], t[:len(num)], low) }

// Fisher replaces a_i by a_i² by/max(t_i, low).
func Fisher(a, t []float64, by, low float64) { fisher(a, t[:len(a)], by, low) }

// RatioBack takes the gradient r at R = y/max(w, low) back: it adds the gradient at y
// to ybar, and leaves R in r and the gradient at w, -r R/w and 0 up to low, in w.
func RatioBack(w, r, ybar, y []float64, low float64) {
	ratioBack(w, r[:len(w)], ybar[:len(w)], y[:len(w)], low)
}

// LossKL returns Σ_i x_i log r_i + max(t_i, low) - x_i, where x_i = 0: t_i, for
// finite x, t >= 0 and r = x/max(t, low) as [Ratio] left it.
func LossKL(x, t, r []float64, low float64) float64 {
	return lossKL(x, t[:len(x)], r[:len(x)], low)
}

// Curve takes the product W in w, rows of padded samples, and fills R = X/W and
// Q = X/W², W not let fall below low; it leaves 1/W in w and returns Σ W - X, cell by
// cell, for [LogSumRows]. Rows of X lie stride numbers apart.
func Curve(r, q, w, x []float64, stride, rows int, low float64) float64 {
	np := len(r) / rows
	_ = x[:(rows-1)*stride+np]
	s := 0.0
	for i := range rows {
		lo, hi := i*np, (i+1)*np
		s += curve(r[lo:hi], q[lo:hi], w[lo:hi], x[i*stride:i*stride+np], low)
	}
	return s
}

// CurveRows is [CombineRows] and then [Curve], four rows at a time without W leaving the registers.
func CurveRows(r, q, w, u, v, x []float64, stride, rows int, low float64) (s float64) {
	k, np, whole := len(u)/rows, len(r)/rows, rows&^3
	_, _ = x[:(rows-1)*stride+np], v[:k*np]
	for i := 0; i < whole; i += 4 {
		lo, hi := i*np, (i+4)*np
		s += curve4(r[lo:hi], q[lo:hi], w[lo:hi], u[i*k:(i+4)*k], v, x[i*stride:], stride, low)
	}
	if whole == rows {
		return s
	}
	lo := whole * np
	w = w[lo:len(r)]
	CombineRows(w, u[whole*k:], v, rows-whole)
	return s + Curve(r[lo:], q[lo:], w, x[whole*stride:], stride, rows-whole, low)
}

// Stretch adds, for a row of samples, x z² to c2 and x |z|³ to c3 where z < 0, and raises
// rho to |z| there if x > 0. z = d/w, w not let fall below low, is how a direction d
// changes w.
func Stretch(c2, c3, rho, w, d, x []float64, low float64) {
	n := len(c2)
	stretch(c2, c3[:n], rho[:n], w[:n], d[:n], x[:n], low)
}

// StretchRow fills to with the sums over samples of what [Stretch] adds and the largest of
// what it raises, for z = d v.
func StretchRow(to *[3]float64, v, d, x []float64) {
	stretchRow(to[:], v, d[:len(v)], x[:len(v)])
}

// Bounded makes sweeps of coordinate descent from x towards the least of q·x + xᵀCx/2 over
// x >= low, for every sample: x, low and q have k rows of whole blocks of samples. C is k × k,
// symmetric; inverse, k, has 1/C_aa. A sum over components has those at even and at odd places apart.
func Bounded(x, low, q, c, inverse []float64, sweeps int) {
	k := len(inverse)
	bounded(x, low[:len(x)], q[:len(x)], c[:k*k], inverse, len(x)/k, sweeps)
}

// Direction turns a step p in [Metric]'s terms into the direction from v, -v where p is at most
// -v s and p/s elsewhere, and fills slope, n, with Σ g p over the k rows and most with
// the longest step, up to longest, at which no v + t p is below 0. Whole blocks.
func Direction(p, slope, most, v, g, s []float64, longest float64) {
	n := len(p)
	direction(p, slope, most[:len(slope)], v[:n], g[:n], s[:n], n/max(len(slope), 1), longest)
}
