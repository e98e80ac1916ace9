package quantmf

// This file holds the coordinates of samples that a fit has not seen: what was
// learnt about the features stays, and a new column x of d values is projected on
// it (the idea of the paper's §3.3),
//
//	NMF   min over v >= 0 of  Σ_i Δ(x_i, (Uv)_i)
//	QMF   min over v > 0  of  Σ_i Δ(x_i, T_i((Uv)_i)),   T_i as stored: no transport is solved.
//
// Columns are independent and each is located by one worker, so the bits do not
// depend on the number of workers.
//
// # NMF
//
// The problem is convex for β from 1 to 2. A step s minimises the quadratic model
// g·s + sᵀHs/2 under v+s >= 0 exactly, by an active set in k unknowns, and is
// then halved until the loss falls by a share of g·s: every step is feasible and
// goes down, and zeros of v are found, not approached. H = Uᵀ diag(ω) U, ω = ∂²Δ/∂t²
// as in Newton's method; in the first steps ω is that curvature at x = t, which
// is what it is at a good fit and does not mistake a cell that is far off (x/t²
// instead of 1/t) for a stiff one. Columns of U are brought to sum 1 and so is x.
//
// # QMF
//
// In z = log v the signs need no care: damped Gauss-Newton (Levenberg-Marquardt)
// with the Jacobian T_i'(w_i) U_ic v_c of T_i, w = Uv. A chain of m smooth steps
// has many local minima, so one start is not enough: from the mean of the
// training columns alone the columns of real training sets end up to 8 % above
// their own loss. The starts are that mean and the training columns whose fitted
// values are nearest to x; a few steps are made from every start, and more from the
// best. The loss of unseen columns is then within 1 % of the best of 28 nearest
// starts, each followed to its end, at a tenth of the cost; smoother maps at first (a
// larger ε) gain nothing more. A training column is among its own starts, so it ends
// at its own loss or below.

import (
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/quadratic"
	"github.com/quantmf/quantmf/internal/transport"
)

const (
	mostSteps  = 200
	smallFall  = 1e-10 // relative fall of the loss at which a search ends
	expectedAt = 3     // steps of NMF by the expected curvature
	farOff     = 1000  // x/t from which a cell always has the expected curvature: Newton's steps would only double t
	floorShare = 1e-16 // of t in derivatives, x having sum 1

	leastColumn = 1e-230 // sum of a column of U below which its coordinates could overflow: it counts as 0

	nearStarts = 7  // training columns that QMF starts from, beside the mean
	shortSteps = 10 // of each start, before the best goes on
	longStride = 2  // largest step of a log v
	reach      = 23 // log v stays within a factor e^23 = 1e10 of what training had

	// The nearest training columns are sought by at most nearCells cells: where the
	// training matrix has more, by the features of the largest spread, nearRows at least.
	nearCells = 1 << 18
	nearRows  = 64
)

// Transform returns the coordinates of new samples: for x, d × n', the k × n'
// matrix V' >= 0 at which the divergence of x from U V' is least.
//
// The divergence is the one that was fitted, without penalty. Values of x are
// bound as in the fit; after [WithMissingValues] NaN cells are left out, and a
// column needs one that is not. A component of which U is zero has coordinates 0,
// as has a column of zeros. Where U has dependent columns, as for k > d, V' is
// one of many; under divergences that are not convex, β < 1 or β > 2, it is a
// local minimum. There are no options; columns are spread over GOMAXPROCS
// workers, and the result does not depend on them. Errors: [*ShapeError] for
// another number of rows, [*DataError]; when ctx ends, one that wraps its error.
//
// Cost: about 6 steps a column, at most 200, of dk² + 6dk flops, 4d divisions, 2d
// logarithms and some k³; memory dk + k n' numbers, and 2d + 2k² a worker.
func (m *NMF) Transform(ctx context.Context, x Mat) (Mat, error) {
	v, _, err := m.coordinates(ctx, x)
	return v, err
}

// Score returns the mean divergence of the observed cells of x, d × n', from U V'
// where V' is Transform(x). For the columns of the training matrix it is at most
// what Loss is, wherever the divergence is convex. Cost and errors are those of
// Transform.
func (m *NMF) Score(ctx context.Context, x Mat) (float64, error) {
	_, score, err := m.coordinates(ctx, x)
	return score, err
}

func (m *NMF) coordinates(ctx context.Context, x Mat) (Mat, float64, error) {
	visible, err := m.bounds().checkColumns(x, m.U.Rows)
	if err != nil {
		return Mat{}, 0, err
	}
	b := newNMFBase(m)
	return locateColumns(ctx, x, m.U.Cols, visible, func() locator { return newNMFLocator(b) })
}

// Transform returns the coordinates of new samples: for x, d × n', the k × n'
// matrix V' > 0 at which the divergence of x from T(U V') is least, with every
// T_i as it was fitted.
//
// The divergence is the one that was fitted, without penalty. Values of x are
// bound as in the fit; after [WithMissingValues] NaN cells are left out, and a
// column needs one that is not. The minimum is a local one, the best of several starts. Coordinates
// stay within a factor of 1e10 of the range of their component in V. There are no
// options; columns are spread over GOMAXPROCS workers, and the result does not
// depend on them. Errors: [*ShapeError] for another number of rows,
// [*DataError]; when ctx ends, one that wraps its error.
//
// Cost: about 120 evaluations a column, at most 289, each of d maps of m
// exponentials and 15m flops, and dk² + 6dk flops; before them min(dn, 2^18)
// divergences a column to find the nearest training columns (64n for n > 4096),
// and, once a call, as many maps to have their fitted values. Memory 3dm + k n'
// numbers and one for each of those cells, and d + n + 6k² a worker.
func (q *QMF) Transform(ctx context.Context, x Mat) (Mat, error) {
	v, _, err := q.coordinates(ctx, x)
	return v, err
}

// Score returns the mean divergence of the observed cells of x, d × n', from T(U V')
// where V' is Transform(x). For columns of a training matrix of up to 2^18 cells it is at
// most Loss, because a training column is found among the starts of its own search. In a
// larger matrix the nearest training columns are sought on a part of the features, and a
// column may miss itself; with a twentieth of the cells the score was still below the
// loss. Cost and errors are those of Transform.
func (q *QMF) Score(ctx context.Context, x Mat) (float64, error) {
	_, score, err := q.coordinates(ctx, x)
	return score, err
}

func (q *QMF) coordinates(ctx context.Context, x Mat) (Mat, float64, error) {
	visible, err := q.bounds().checkColumns(x, q.U.Rows)
	if err != nil {
		return Mat{}, 0, err
	}
	b, x, err := newQMFBase(ctx, q, x)
	if err != nil {
		return Mat{}, 0, err
	}
	return b.coordinates(ctx, x, visible, func() locator { return newQMFLocator(b) })
}

// coordinates is locateColumns for x', with the loss in the units of x.
func (b *qmfBase) coordinates(ctx context.Context, x Mat, visible int, fresh func() locator) (Mat, float64, error) {
	v, loss, err := locateColumns(ctx, x, b.q.U.Cols, visible, fresh)
	return v, loss * b.q.loss.Unit(b.all), err
}

// checkColumns reports what is wrong with new samples, and counts the observed
// cells.
func (c *config) checkColumns(x Mat, d int) (visible int, err error) {
	if err := x.check("x"); err != nil {
		return 0, err
	}
	if x.Rows != d {
		return 0, &ShapeError{What: "x", Got: itoa(x.Rows) + " rows", Want: itoa(d) + ", the features of the model"}
	}
	seen := make([]bool, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if err := c.checkCell(i, j, v); err != nil {
				return 0, err
			}
			if v == v {
				seen[j] = true
				visible++
			}
		}
	}
	if j := slices.Index(seen, false); j >= 0 {
		return 0, &DataError{Row: -1, Col: j, Value: math.NaN(), Problem: "the column has no observed cell"}
	}
	return visible, nil
}

// locator finds the coordinates of one column after another.
type locator interface {
	// locate fills v, k numbers, with the coordinates of the column x, NaN where a cell
	// is missing, and returns the sum of divergences at v. It may stop early where ctx
	// has ended.
	locate(ctx context.Context, v, x []float64) float64
}

// locateColumns locates every column of x and returns the coordinates, k × n', and
// the mean divergence over the visible cells. fresh makes the locator of a worker.
func locateColumns(ctx context.Context, x Mat, k, visible int, fresh func() locator) (Mat, float64, error) {
	p := pool.New(0, x.Cols)
	defer p.Close()
	type space struct {
		locator
		x, v []float64
	}
	work := make([]space, p.Workers())
	out, loss := NewMat(k, x.Cols), make([]float64, x.Cols)
	p.Do(x.Cols, func(worker, j int) {
		if ctx.Err() != nil {
			return
		}
		ws := &work[worker]
		if ws.locator == nil {
			*ws = space{fresh(), make([]float64, x.Rows), make([]float64, k)}
		}
		for i := range ws.x {
			ws.x[i] = x.Data[i*x.Stride+j]
		}
		loss[j] = ws.locate(ctx, ws.v, ws.x)
		for c, v := range ws.v {
			out.Data[c*out.Stride+j] = v
		}
	})
	if err := ctx.Err(); err != nil {
		return Mat{}, 0, &interrupted{err}
	}
	total := 0.0
	for _, l := range loss {
		total += l
	}
	return out, total / float64(visible), nil
}

// interrupted wraps what ended the search for the coordinates of new samples.
type interrupted struct{ err error }

func (e *interrupted) Error() string { return "quantmf: new samples: " + e.err.Error() }
func (e *interrupted) Unwrap() error { return e.err }

// nmfBase is what the locators of all workers share: U without its zero columns, each
// brought to sum 1.
type nmfBase struct {
	loss  divergence.Loss
	full  Mat
	u     []float64 // d × k
	alive []int     // the columns of U that are left, k of them
	sum   []float64
}

func newNMFBase(m *NMF) *nmfBase {
	u := m.U
	b := &nmfBase{loss: m.loss, full: u}
	for c := range u.Cols {
		s := 0.0
		for i := range u.Rows {
			s += u.At(i, c)
		}
		if s > leastColumn {
			b.alive, b.sum = append(b.alive, c), append(b.sum, s)
		}
	}
	for i := range u.Rows {
		row := u.Row(i)
		for a, c := range b.alive {
			b.u = append(b.u, row[c]/b.sum[a])
		}
	}
	return b
}

type nmfLocator struct {
	*nmfBase
	quadratic.Form
	x      []float64 // the column, of sum 1
	v, try []float64
}

func newNMFLocator(b *nmfBase) *nmfLocator {
	k := len(b.alive)
	return &nmfLocator{nmfBase: b, Form: quadratic.New(k), x: make([]float64, b.full.Rows), v: make([]float64, k), try: make([]float64, k)}
}

func (p *nmfLocator) locate(ctx context.Context, v, x []float64) float64 {
	clear(v)
	unit := 0.0
	for _, xi := range x {
		if xi == xi {
			unit += xi
		}
	}
	if unit > 0 && p.K > 0 {
		for i, xi := range x {
			p.x[i] = xi / unit
		}
		p.minimise(ctx)
		for a, c := range p.alive {
			v[c] = p.v[a] * (unit / p.sum[a])
		}
	}
	loss := 0.0
	for i, xi := range x {
		if xi == xi {
			loss += p.loss.Divergence(xi, dot(p.full.Row(i), v))
		}
	}
	return loss
}

// minimise finds the v of the least loss for p.x, from equal v_c.
func (p *nmfLocator) minimise(ctx context.Context) {
	for c := range p.v {
		p.v[c] = 1 / float64(p.K)
	}
	f := p.value(p.v)
	for step := range mostSteps {
		if ctx.Err() != nil {
			return
		}
		p.Clear()
		noise := 0.0
		for i, x := range p.x {
			if x != x {
				continue
			}
			u := p.u[i*p.K : (i+1)*p.K]
			t := dot(u, p.v)
			_, slope, curvature, expected := p.loss.Differentiate(x, t, floorShare)
			noise += float64(float64(expected*t) * t)
			if step < expectedAt || x > farOff*t {
				curvature = expected
			}
			p.Add(slope, curvature, u)
		}
		p.Bounded(p.v, 1e-12)
		promise := -dot(p.G, p.S)
		if promise <= float64(1e-12*f)+float64(1e-16*noise) { // nothing is left but rounding
			return
		}
		next := f
		for share := 1.0; share > 1e-9; share /= 2 {
			for c, s := range p.S {
				p.try[c] = max(p.v[c]+float64(share*s), 0)
			}
			if next = p.value(p.try); next <= f-float64(1e-4*share*promise) {
				break
			}
			next = f
		}
		if next >= f {
			if step < expectedAt {
				continue
			}
			return
		}
		p.v, p.try = p.try, p.v
		small := f-next <= 1e-2*smallFall*f // the convergence is quadratic: a step later nothing is left
		f = next
		if small && step >= expectedAt {
			return
		}
	}
}

func (p *nmfLocator) value(v []float64) float64 {
	f := 0.0
	for i, x := range p.x {
		if x == x {
			f += p.loss.Value(x, dot(p.u[i*p.K:(i+1)*p.K], v), p.loss.Least())
		}
	}
	return f
}

// dot returns Σ a_c b_c.
func dot(a, b []float64) float64 {
	s := 0.0
	b = b[:len(a)]
	for c, v := range a {
		s += float64(v * b[c])
	}
	return s
}

// valueAndSlope returns T(x) and T'(x) at one exponential a level, for ε > 0. They agree
// with At and Slope to rounding. arg is scratch of m-1 numbers.
//
// The levels weigh exp L_j, L_{j+1} - L_j = (2Δy_j/ε)(x̃-t_j). All is taken
// relative to the heaviest level p, so what is added is small where it counts:
// with e_j = exp(L_j-L_p), c_j = (2/ε)(y_j-y_p), D_j = q_j-q_p and E the mean
// under weights e, T = q_p + E[D] and dT/dx̃ = E[cD] - E[c]E[D].
func (f *Map) valueAndSlope(x float64, arg []float64) (t, slope float64) {
	s := f.squash.At(x)
	q, rate, cut := f.q, f.rate, f.cut[:len(f.rate)]
	arg = arg[:len(rate)]
	p, l, top := 0, 0.0, 0.0
	for J, r := range rate {
		arg[J] = float64(r * (s - cut[J]))
		l += arg[J]
		if l > top {
			p, top = J+1, l
		}
	}
	const faint = -60 // e^-60 is below the rounding of 1
	sum, sumD, sumC, sumCD := 1.0, 0.0, 0.0, 0.0
	l = 0
	c := 0.0
	for J := p; J < len(rate); J++ {
		l += arg[J]
		c += rate[J]
		if l > faint {
			e := elem.Exp(l)
			ed := float64(e * (q[J+1] - q[p]))
			sum += e
			sumD += ed
			sumC += float64(e * c)
			sumCD += float64(ed * c)
		}
	}
	l, c = 0, 0
	for J := p - 1; J >= 0; J-- {
		l -= arg[J]
		c -= rate[J]
		if l > faint {
			e := elem.Exp(l)
			ed := float64(e * (q[J] - q[p]))
			sum += e
			sumD += ed
			sumC += float64(e * c)
			sumCD += float64(ed * c)
		}
	}
	mean := sumD / sum
	t = min(max(q[p]+mean, q[0]), q[len(q)-1])
	dx := f.squash.Slope(x, s)
	return t, transport.Saturate(max((sumCD-float64(sumC*mean))/sum, 0) * dx)
}

// qmfBase is what the locators of all workers share. Quantiles are in the units of x'.
type qmfBase struct {
	units
	q         *QMF
	maps      []*Map
	rows      []int // features whose map is not constant
	mean      []float64
	low, high []float64 // bounds of log v
	near      []int     // features that the nearest columns are looked for on
	fitted    Mat       // of those, at the training columns, len(near) × n
}

// newQMFBase also returns x', the new samples in units of their own and the model's.
func newQMFBase(ctx context.Context, q *QMF, x Mat) (*qmfBase, Mat, error) {
	d, n, k, m := q.U.Rows, q.V.Cols, q.U.Cols, q.Quantiles.Cols
	top := make([]float64, d)
	for i := range top {
		top[i] = max(math.Abs(q.Quantiles.At(i, 0)), math.Abs(q.Quantiles.At(i, m-1)))
		for _, v := range x.Row(i) {
			if v == v {
				top[i] = max(top[i], math.Abs(v))
			}
		}
	}
	u := unitsOf(q.loss, top, true)
	if x = u.inward(x); !u.plain() {
		in := *q
		in.Quantiles = u.inward(q.Quantiles)
		q = &in
	}
	b := &qmfBase{units: u, q: q, maps: make([]*Map, d), mean: make([]float64, k), low: make([]float64, k), high: make([]float64, k)}
	tell := make([]float64, d)
	for i := range d {
		f, err := q.Map(i)
		if err != nil {
			return nil, Mat{}, err
		}
		b.maps[i] = f
		lo, hi := f.q[0], f.q[m-1]
		if lo < hi && !f.squash.Constant() {
			b.rows = append(b.rows, i)
			tell[i] = b.lossWeight(i) * q.loss.Value(lo, hi, b.lowest(f))
		}
	}
	for c := range k {
		lo, hi := math.Inf(1), 0.0
		for _, v := range q.V.Row(c) {
			v = max(v, divergence.Tiny)
			lo, hi = min(lo, v), max(hi, v)
			b.mean[c] += v / float64(n)
		}
		b.low[c], b.high[c] = elem.Log(lo)-reach, elem.Log(hi)+reach
	}
	b.near = append(b.near, b.rows...)
	if most := max(nearRows, nearCells/n); len(b.near) > most {
		slices.SortStableFunc(b.near, func(i, j int) int {
			switch {
			case tell[i] > tell[j]:
				return -1
			case tell[i] < tell[j]:
				return 1
			}
			return 0
		})
		b.near = b.near[:most]
		slices.Sort(b.near)
	}
	b.fitted = NewMat(len(b.near), n)
	p := pool.New(0, len(b.near))
	defer p.Close()
	args := make([]float64, p.Workers()*m)
	p.Do(len(b.near), func(worker, r int) {
		if ctx.Err() != nil {
			return
		}
		row, i := b.fitted.Row(r), b.near[r]
		product(row, q.U.Row(i), q.V)
		for j, w := range row {
			row[j], _ = b.maps[i].valueAndSlope(w, args[worker*m:(worker+1)*m])
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, Mat{}, &interrupted{err}
	}
	return b, x, nil
}

// lowest is the least value of T where T is divided by. A T of negative values, under
// Frobenius, is never divided by.
func (b *qmfBase) lowest(f *Map) float64 {
	if b.q.loss == divergence.Frobenius && f.q[0] < 0 {
		return math.Inf(-1)
	}
	return b.q.loss.Least()
}

type qmfLocator struct {
	*qmfBase
	x        []float64
	at, next logPoint
	s, best  []float64
	own      []float64 // one more start, of QMFQ; nil: none
	bestLoss float64
	arg      []float64 // m
	distance []float64 // n
}

// logPoint is a point z = log v of a search, with the loss and its quadratic model there.
type logPoint struct {
	z, v []float64
	loss float64
	quadratic.Form
}

func newLogPoint(k int) logPoint {
	return logPoint{z: make([]float64, k), v: make([]float64, k), Form: quadratic.New(k)}
}

func newQMFLocator(b *qmfBase) *qmfLocator {
	k := b.q.U.Cols
	return &qmfLocator{qmfBase: b, at: newLogPoint(k), next: newLogPoint(k), s: make([]float64, k), best: make([]float64, k),
		arg: make([]float64, b.q.Quantiles.Cols), distance: make([]float64, b.q.V.Cols)}
}

func (p *qmfLocator) locate(ctx context.Context, v, x []float64) float64 {
	p.x, p.bestLoss = x, math.Inf(1)
	p.from(ctx, func(c int) float64 { return p.mean[c] })
	if p.own != nil {
		p.from(ctx, func(c int) float64 { return p.own[c] })
	}
	p.measure()
	for range min(nearStarts, len(p.distance)) {
		j := 0
		for i, d := range p.distance {
			if d < p.distance[j] {
				j = i
			}
		}
		p.distance[j] = math.Inf(1)
		p.from(ctx, func(c int) float64 { return p.q.V.At(c, j) })
	}
	p.moveTo(p.best)
	p.minimise(ctx, mostSteps)
	for c := range v {
		v[c] = p.at.v[c]
	}
	// The loss of all rows; minimise leaves the constant ones out.
	loss := 0.0
	for i, f := range p.maps {
		if x[i] != x[i] {
			continue
		}
		t, _ := f.valueAndSlope(dot(p.q.U.Row(i), v), p.arg)
		loss += float64(p.lossWeight(i) * p.q.loss.Value(x[i], t, p.lowest(f)))
	}
	return loss
}

// measure fills distance with the divergences of x from the fitted values of the
// training columns.
func (p *qmfLocator) measure() {
	clear(p.distance)
	for r, i := range p.near {
		if x := p.x[i]; x == x {
			for j, t := range p.fitted.Row(r) {
				p.distance[j] += float64(p.lossWeight(i) * p.q.loss.Value(x, t, p.lowest(p.maps[i])))
			}
		}
	}
}

// from makes the first steps of a search from v, and keeps their end if it is the best so far.
func (p *qmfLocator) from(ctx context.Context, v func(c int) float64) {
	for c := range p.s {
		p.s[c] = elem.Log(max(v(c), divergence.Tiny))
	}
	p.moveTo(p.s)
	p.minimise(ctx, shortSteps)
	if p.at.loss < p.bestLoss {
		p.bestLoss = p.at.loss
		copy(p.best, p.at.z)
	}
}

func (p *qmfLocator) moveTo(z []float64) {
	copy(p.at.z, z)
	p.evaluate(&p.at)
}

// evaluate fills v, the loss over the rows that are not constant, and the
// Gauss-Newton model at z.
func (p *qmfLocator) evaluate(at *logPoint) {
	k := at.K
	for c, z := range at.z {
		at.v[c] = elem.Exp(z)
	}
	at.Clear()
	at.loss = 0
	for _, i := range p.rows {
		if p.x[i] != p.x[i] {
			continue
		}
		u, f := p.q.U.Row(i), p.maps[i]
		t, s := f.valueAndSlope(dot(u, at.v), p.arg)
		low := p.lowest(f)
		if low > 0 {
			low = max(floorT*f.q[len(f.q)-1], low)
		}
		value, slope, _, expected := p.q.loss.Differentiate(p.x[i], t, low)
		share := p.lossWeight(i)
		at.loss += float64(share * value)
		if s > 0 {
			at.Add(float64(float64(share*slope)*s), float64(float64(float64(share*expected)*s)*s), u)
		}
	}
	for c, v := range at.v { // from v to log v
		at.G[c] *= v
		for b := range c + 1 {
			at.H[c*k+b] *= float64(v * at.v[b])
		}
	}
}

// minimise takes at most the given number of damped Gauss-Newton steps from at,
// which has been evaluated. The loss never rises.
//
// The damping follows the agreement of model and loss (Nielsen 1999): it falls
// smoothly, to a third at best, where they agree, and rises ever faster while
// steps fail. Directions in which the model is flat are damped like those a
// million times less flat than the steepest.
func (p *qmfLocator) minimise(ctx context.Context, steps int) {
	lambda, raise, idle := 1e-3, 2.0, 0
	for range steps {
		at, next := &p.at, &p.next
		top := at.Top()
		if ctx.Err() != nil || !(top > 0) || top-top != 0 {
			return
		}
		next.loss = math.Inf(1)
		promise := 0.0
		if at.Factor(lambda, 1e-6*top) {
			longest := 0.0
			for c, g := range at.G {
				p.s[c] = -g
			}
			at.Solve(p.s)
			for _, s := range p.s {
				longest = max(longest, math.Abs(s))
			}
			share := min(1, longStride/longest)
			for c, s := range p.s {
				z := min(max(at.z[c]+float64(share*s), p.low[c]), p.high[c])
				p.s[c], next.z[c] = z-at.z[c], z
			}
			for c, s := range p.s {
				promise -= float64(s * (at.G[c] + float64(at.Times(c, p.s)/2)))
			}
			p.evaluate(next)
		}
		fall := at.loss - next.loss
		if !(fall > 0) {
			lambda *= raise
			raise *= 2
			if lambda > 1e10 {
				return
			}
			continue
		}
		agree := float64(2*fall/max(promise, divergence.Tiny)) - 1
		lambda = max(lambda*max(1.0/3, 1-float64(agree*agree*agree)), 1e-12)
		raise = 2
		idle++
		if fall > smallFall*at.loss {
			idle = 0
		}
		p.at, p.next = p.next, p.at
		if idle == 2 { // a single small step may be a cautious one
			return
		}
	}
}
