package bqmf

import (
	"context"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/svd"
)

// long: the tests that run at night.
var long = os.Getenv("QUANTMF_LONG") != ""

// simulated is Y with hidden cells, and the truth where it was made from the model.
type simulated struct {
	d, n     int
	y        []float64 // d × n, whole
	truth    []float64
	observed []bool
	noise    []float64 // of each cell
}

// drawn draws Y from the model: rank k, noise by row and column.
func drawn(d, n, k int, hidden float64, seed uint64) *simulated {
	src := random.Split(seed, 0)
	q := &simulated{d: d, n: n, y: make([]float64, d*n), truth: make([]float64, d*n),
		observed: make([]bool, d*n),
		noise:    make([]float64, d*n)}
	u, v, rows, cols := make([]float64, d*k), make([]float64, n*k), make([]float64, d), make([]float64, n)
	for i := range u {
		u[i] = normal(&src) * math.Sqrt(0.7/float64(k))
	}
	for i := range v {
		v[i] = normal(&src)
	}
	for i := range rows {
		rows[i] = 0.3 + 0.5*src.Float64()
	}
	for j := range cols {
		cols[j] = elem.Exp(0.25 * normal(&src))
	}
	for i := range d {
		for j := range n {
			at := i*n + j
			for c := range k {
				q.truth[at] += u[i*k+c] * v[j*k+c]
			}
			q.noise[at] = rows[i] * cols[j]
			q.y[at] = q.truth[at] + q.noise[at]*normal(&src)
			q.observed[at] = src.Float64() >= hidden || i%n == j || j%d == i
		}
	}
	return q
}

func (q *simulated) data() *Data {
	np := kernel.Pad(q.n)
	y := make([]float64, q.d*np)
	for i := range q.d {
		for j := range q.n {
			if q.observed[i*q.n+j] {
				y[i*np+j] = q.y[i*q.n+j]
			}
		}
	}
	x := NewData(q.d, q.n, y, func(i, j int) bool { return q.observed[i*q.n+j] })
	x.Of = 2*q.d + 2
	return x
}

// start returns a fit at its start.
func (q *simulated) start(t *testing.T, k int) *Fit { return q.startOn(t, k, 1) }

func (q *simulated) startOn(t *testing.T, k, workers int) *Fit {
	p := Workers(t, workers)
	x, np := q.data(), kernel.Pad(q.n)
	f := New(x, k, p)
	f.Start(svd.NewSubspace(q.d, q.n, k, func(_, i int) []float64 { return x.Y[i*np : (i+1)*np] }, p))
	return f
}

// after returns a fit after some epochs.
func (q *simulated) after(t *testing.T, k, epochs int) *Fit {
	f := q.start(t, k)
	for e := range epochs {
		f.Epoch(e)
	}
	return f
}

// fitted returns a fit after some epochs, and its posterior.
func (q *simulated) fitted(t *testing.T, k, epochs int) (*Fit, *Posterior) {
	f := q.after(t, k, epochs)
	return f, f.Posterior(upTo(q.d), q.d)
}

// slow is the model written out: full matrices, cell by cell.
type slow struct {
	*simulated
	k               int
	u, v            [][]float64
	s, c            [][][]float64
	tau, rho, alpha []float64
}

// matrix returns the r × c one of numbers at(i, j).
func matrix(r, c int, at func(i, j int) float64) [][]float64 {
	m := make([][]float64, r)
	for i := range m {
		for j := range c {
			m[i] = append(m[i], at(i, j))
		}
	}
	return m
}

// full is the covariance of packed second moments.
func full(b []float64, k int, mean []float64) [][]float64 {
	return matrix(k, k, func(r, c int) float64 {
		x := b[max(r, c)*(max(r, c)+1)/2+min(r, c)]
		if r != c {
			x /= math.Sqrt2
		}
		return x - mean[r]*mean[c]
	})
}

// moments is the inverse of full.
func moments(to, mean []float64, spread [][]float64) {
	at := 0
	for r, x := range mean {
		for c, y := range mean[:r+1] {
			to[at] = spread[r][c] + x*y
			if c < r {
				to[at] *= math.Sqrt2
			}
			at++
		}
	}
}

func (q *simulated) slow(f *Fit) *slow {
	s := &slow{simulated: q, k: f.K, tau: slices.Clone(f.Tau), rho: slices.Clone(f.Rho),
		alpha: slices.Clone(f.Alpha)}
	for i := range q.d {
		u := slices.Clone(f.rowU(i))
		s.u, s.s = append(s.u, u), append(s.s, full(f.packU(i), f.K, u))
	}
	for j := range q.n {
		v := make([]float64, f.K)
		for c := range v {
			v[c] = f.V[c*f.np+j]
		}
		s.v, s.c = append(s.v, v), append(s.c, full(f.packV(j), f.K, v))
	}
	return s
}

// variance is Var u·v for the moments.
func (s *slow) variance(i, j int) (own, all, both float64) {
	for a := range s.k {
		for b := range s.k {
			own += s.v[j][a]*s.s[i][a][b]*s.v[j][b] + s.u[i][a]*s.c[j][a][b]*s.u[i][b]
			all += s.s[i][a][b] * s.c[j][b][a]
			for h := range s.k {
				both += s.v[j][a] * s.s[i][a][b] * s.c[j][b][h] * s.u[i][h]
			}
		}
	}
	return own, own + all, both
}

func (s *slow) error(i, j int) float64 {
	e := s.y[i*s.n+j] - dot(s.u[i], s.v[j])
	_, v, _ := s.variance(i, j)
	return e*e + v
}

func (s *slow) stepRho() {
	mean := 0.0
	for j := range s.n {
		n, e := 0.0, 0.0
		for i := range s.d {
			if s.observed[i*s.n+j] {
				n++
				e += s.tau[i] * s.error(i, j)
			}
		}
		s.rho[j] = (n + 60) / (e + 60)
		mean += math.Log(s.rho[j]) / float64(s.n)
	}
	for j := range s.rho {
		s.rho[j] = min(max(s.rho[j]/math.Exp(mean), 0.05), 20)
	}
}

// equations are those of a normal vector given what is observed of it: its precision, and that times its
// mean.
type equations struct {
	right     []float64
	precision [][]float64
}

// prior returns those of independent numbers of mean 0.
func prior(precisions []float64) *equations {
	k := len(precisions)
	return &equations{make([]float64, k), matrix(k, k, func(a, b int) float64 {
		if a == b {
			return precisions[a]
		}
		return 0
	})}
}

// add adds an observation y, of such a precision, of the product with a vector of a mean and, unless nil, a
// covariance.
func (e *equations) add(w, y float64, mean []float64, spread [][]float64) {
	for a, x := range mean {
		e.right[a] += w * y * x
		for b := range mean {
			e.precision[a][b] += w * x * mean[b]
			if spread != nil {
				e.precision[a][b] += w * spread[a][b]
			}
		}
	}
}

// solve returns the mean and the covariance.
func (e *equations) solve() (mean []float64, spread [][]float64) {
	spread, _ = Inverse(e.precision)
	return times(spread, e.right), spread
}

// reweighed returns what the mean of a row or of a column comes to where a cell y of it weighs so much more;
// of is the other vector of the cell.
func reweighed(more, y float64, mean, of []float64, spread, ofSpread [][]float64) []float64 {
	precision, _ := Inverse(spread)
	e := equations{times(precision, mean), precision}
	e.add(more, y, of, ofSpread)
	mean, _ = e.solve()
	return mean
}

func (s *slow) stepV() {
	for j := range s.n {
		e := prior(ones(s.alpha))
		for i := range s.d {
			if s.observed[i*s.n+j] {
				e.add(s.tau[i]*s.rho[j], s.y[i*s.n+j], s.u[i], s.s[i])
			}
		}
		s.v[j], s.c[j] = e.solve()
	}
}

func (s *slow) stepU() {
	for i := range s.d {
		e := prior(s.alpha)
		for j := range s.n {
			if s.observed[i*s.n+j] {
				e.add(s.tau[i]*s.rho[j], s.y[i*s.n+j], s.v[j], s.c[j])
			}
		}
		s.u[i], s.s[i] = e.solve()
	}
}

func (s *slow) stepAlpha() {
	each, all := make([]float64, s.k), 0.0
	for a := range s.k {
		for i := range s.d {
			each[a] += s.u[i][a]*s.u[i][a] + s.s[i][a][a]
		}
		all += each[a]
	}
	d, held := float64(s.d), 30.0
	for a := range s.k { // d rows of the component's own second moment, and 30 of the mean one
		own, mean := each[a]/d, all/d/float64(s.k)
		s.alpha[a] = (d + held) / (d*own + held*mean)
	}
}

func (s *slow) stepTau() {
	r, n := make([]float64, s.d), make([]float64, s.d)
	total, cells := 0.0, 0.0
	for i := range s.d {
		for j := range s.n {
			if s.observed[i*s.n+j] {
				n[i]++
				r[i] += s.rho[j] * s.error(i, j)
			}
		}
		total += r[i]
		cells += n[i]
	}
	for i := range s.tau {
		s.tau[i] = (2 + n[i]) / (2*total/cells + r[i])
	}
}

// bound is the negative lower bound of the evidence in nats a observed cell.
func (s *slow) bound() float64 {
	b, cells := 0.0, 0.0
	for i := range s.d {
		for j := range s.n {
			if s.observed[i*s.n+j] {
				w := s.tau[i] * s.rho[j]
				b += 0.5 * (w*s.error(i, j) - math.Log(w) + math.Log(2*math.Pi))
				cells++
			}
		}
	}
	// KL of N(m, C) from N(0, diag 1/α).
	from := func(m []float64, c [][]float64, alpha func(a int) float64) {
		_, det := Inverse(c)
		b -= 0.5 * math.Log(det)
		for a := range m {
			b += 0.5 * (alpha(a)*(m[a]*m[a]+c[a][a]) - 1 - math.Log(alpha(a)))
		}
	}
	for i := range s.d {
		from(s.u[i], s.s[i], func(a int) float64 { return s.alpha[a] })
	}
	for j := range s.n {
		from(s.v[j], s.c[j], func(int) float64 { return 1 })
	}
	return b / cells
}

// parts are the numbers of the model by their names.
func (s *slow) parts() map[string][][]float64 {
	return map[string][][]float64{"tau": {s.tau}, "rho": {s.rho}, "alpha": {s.alpha}, "u": s.u, "v": s.v,
		"S": slices.Concat(s.s...), "C": slices.Concat(s.c...)}
}

func (s *slow) compare(t *testing.T, f *Fit) {
	t.Helper()
	got := s.simulated.slow(f).parts()
	for name, lines := range s.parts() {
		for l, line := range lines {
			for a, want := range line {
				Close(t, got[name][l][a], want, 1e-8, "%s", name)
			}
		}
	}
}

// hidings are shares of hidden cells: none, few, and so many that lists hold the observed ones.
var hidings = []float64{0, 0.1, 0.7}

// The fast form makes what the equations say, cell by cell.
func TestEpochIsTheEquations(t *testing.T) {
	for _, hidden := range hidings {
		for _, k := range []int{1, 3, 9} {
			q := drawn(23, 19, 3, hidden, uint64(k))
			f := q.after(t, k, 3)
			k := k
			if k == 9 {
				f.keep([]int{0, 2, 3, 5, 8})
				k = 5
				f.Epoch(turns)
				f.Epoch(turns)
			}
			s := q.slow(f)
			f.Epoch(turns) // no change of coordinates any more
			s.stepRho()
			s.stepV()
			s.stepU()
			s.stepAlpha()
			s.stepTau()
			if f.K != k {
				t.Fatal("a component was dropped")
			}
			for l, b := range [][]float64{f.BU, f.BV, f.room.spare, f.room.grams} {
				for at, v := range b {
					if at%f.room.pp >= k*(k+1)/2 && v != 0 {
						t.Fatalf("moments %d: padding of %v", l, v)
					}
				}
			}
			s.compare(t, f)
			Close(t, f.Bound, s.bound(), 1e-9, "the bound")
		}
	}
}

// follow takes U where a change of coordinates has taken V since before: V' = RV with R = V'Vᵀ (VVᵀ)⁻¹, and
// u' = R⁻ᵀu.
func (s *slow) follow(before *slow) {
	k := s.k
	inner := func(v, w [][]float64) [][]float64 {
		return matrix(k, k, func(a, b int) (sum float64) {
			for j := range v {
				sum += v[j][a] * w[j][b]
			}
			return sum
		})
	}
	g, _ := Inverse(inner(before.v, before.v))
	m := inner(s.v, before.v)
	inverse, _ := Inverse(matrix(k, k, func(a, b int) float64 { return dot(m[a], g[b]) })) // G⁻¹ is symmetric
	r := matrix(k, k, func(a, b int) float64 { return inverse[b][a] })
	for i := range s.u {
		u, c := before.u[i], before.s[i]
		for a := range k {
			s.u[i][a] = dot(r[a], u)
		}
		half := matrix(k, k, func(a, b int) float64 { return dot(r[a], c[b]) }) // S is symmetric
		s.s[i] = matrix(k, k, func(a, b int) float64 { return dot(half[a], r[b]) })
	}
}

// ending is a context that ends at the last of so many looks; 0: never.
type ending struct {
	context.Context
	count, last int
}

func (e *ending) Err() error {
	if e.count++; e.last > 0 && e.count >= e.last {
		return context.Canceled
	}
	return nil
}

// An epoch that the context ends, at whichever look, leaves the fit as it was, and the next epoch is
// as if that one had not been.
func TestStoppedEpoch(t *testing.T) {
	for _, hidden := range hidings {
		// with and without a change of coordinates, the noise, and fading
		for e, fade := range map[int]bool{2: false, noiseFrom: true} {
			q := drawn(23, 19, 3, hidden, 9)
			start := func() *Fit {
				f := q.after(t, 6, e)
				if fade {
					f.keep([]int{0, 1, 3})
				}
				return f
			}
			state := func(f *Fit) []float64 {
				return slices.Concat([]float64{float64(f.K), f.Unit, f.Bound, f.Moved}, f.U, f.V, f.BU, f.BV,
					f.Tau, f.Rho, f.Alpha)
			}
			whole := start()
			count := &ending{Context: context.Background()}
			whole.pool.Bind(count)
			whole.Epoch(e)
			for look := 1; look <= count.count; look++ {
				if look%7 != 0 && !long {
					continue
				}
				f := start()
				before := state(f)
				f.pool.Bind(&ending{Context: context.Background(), last: look})
				if f.Epoch(e); !slices.Equal(state(f), before) {
					t.Fatalf("hidden %g, epoch %d, look %d of %d: the fit is not as it was", hidden, e, look,
						count.count)
				}
				f.pool.Bind(context.Background())
				if f.Epoch(e); !slices.Equal(state(f), state(whole)) {
					t.Fatalf("hidden %g, epoch %d, look %d of %d: another epoch", hidden, e, look,
						count.count)
				}
			}
		}
	}
}

// A posterior is that of the state, with rows between that know nothing, whatever the room that it is made in
// holds; and it leaves the fit as it is.
func TestPosteriorInTheRoomOfTheFit(t *testing.T) {
	q := drawn(11, 13, 2, 0.2, 6)
	f := q.start(t, 8)
	rows := make([]int, q.d)
	for i := range rows {
		rows[i] = 1 + 2*i
	}
	for e := range 12 {
		if e > 6 && f.K > 1 { // where there is no room for more components and where there is
			f.keep([]int{0, 1, 2, 3, 4, 5, 6, 7}[:f.K-1])
		}
		f.Epoch(e)
		before := f.State.Copy(nil)
		fresh := New(q.data(), f.K, f.pool)
		fresh.Set(before)
		a, b := f.Posterior(rows, 2*q.d+2), fresh.Posterior(rows, 2*q.d+2)
		for _, both := range [][2][]float64{{a.U, b.U}, {a.V, b.V}, {a.BU, b.BU}, {a.BV, b.BV},
			{a.Tau, b.Tau}, {a.Rho, b.Rho}, {f.BU, before.BU}, {f.BV, before.BV}, {f.U, before.U}} {
			EqualAll(t, both[0], both[1], "epoch %d: not the posterior of the state", e)
		}
		if a.Unit != b.Unit || f.Unit != before.Unit {
			t.Fatalf("epoch %d: units %v, %v of the state's %v", e, a.Unit, b.Unit, before.Unit)
		}
	}
}

// TestPrune: components whose α is a hundred times the least go, unless all would.
func TestPrune(t *testing.T) {
	q := drawn(23, 19, 3, 0.2, 2)
	f := q.start(t, 6)
	f.Epoch(0)
	last := f.U[4]
	for _, c := range []struct {
		alpha []float64
		k     int
	}{{[]float64{1, 100, 50, 1000, 99.9, 100}, 3}, {[]float64{1, 1, 2}, 3}, {[]float64{0, 1, 2}, 3}} {
		copy(f.Alpha, c.alpha)
		if f.prune(); f.K != c.k || f.U[2] != last {
			t.Errorf("%v: %d components, the last with %v, not %v", c.alpha, f.K, f.U[2], last)
		}
	}
}

// A change of coordinates leaves every u·v, its variance and Σ_i τ_i B_i's part in
// it, makes the second moment of V the identity and that of U diagonal.
func TestTurn(t *testing.T) {
	q := drawn(23, 19, 3, 0.2, 2)
	f := q.after(t, 6, 2)
	before := q.slow(f)
	f.turn()
	after := q.slow(f)
	after.follow(before)
	for i := range q.d {
		for j := range q.n {
			Close(t, dot(after.u[i], after.v[j]), dot(before.u[i], before.v[j]), 1e-6, "u·v")
			_, a, _ := after.variance(i, j)
			_, b, _ := before.variance(i, j)
			Close(t, a, b, 1e-6, "its variance")
		}
	}
	for a := range f.K {
		for b := range f.K {
			vv, uu := 0.0, 0.0
			for j := range q.n {
				vv += (after.v[j][a]*after.v[j][b] + after.c[j][a][b]) / float64(q.n)
			}
			for i := range q.d {
				uu += after.u[i][a]*after.u[i][b] + after.s[i][a][b]
			}
			if a == b {
				Close(t, vv, 1, 1e-6, "a second moment of V")
			} else {
				Close(t, vv, 0, 1e-6, "a second moment of V")
				Close(t, uu, 0, 1e-5, "one of U")
			}
		}
	}
}

// rest makes steps of U and V at the noise and relevance as they are.
func rest(f *Fit) {
	for range 100 {
		f.stepV(0)
		f.stepU()
	}
}

// settled returns a fit of k components whose U and V are those of its noise and relevance, and
// what it ends with.
func settled(t *testing.T, q *simulated, k int) (*Fit, *Posterior) {
	f, _ := q.fitted(t, k, 30)
	rest(f)
	return f, f.Posterior(upTo(q.d), q.d)
}

// refitted returns the mean of a cell in a fit without it, at the noise and relevance of f.
func refitted(t *testing.T, q *simulated, f *Fit, i, j int) (mean float64) {
	other := *q
	other.observed = slices.Clone(q.observed)
	other.observed[i*q.n+j] = false
	g := other.start(t, f.K)
	g.Set(&f.State)
	rest(g)
	for h, u := range g.rowU(i) {
		mean += u * g.V[h*g.np+j]
	}
	return mean
}

// A cell that weighs as much as all others of its row and column together moves its mean by less than the
// first order says. Leaving it out of the row and of the column in turn comes nearer to fits without it.
func TestLeaveOneOutInTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("half a second")
	}
	q := drawn(24, 16, 5, 0.1, 9)
	f, p := settled(t, q, 5)
	c := wholeReader(p)
	var said, turn, truth float64 // how far means move, by both forms and in fits without the cell
	count := 0
	for i := range q.d {
		c.load(i, 1)
		for j := range q.n {
			at, a := i*q.n+j, p.precision(i, j)
			if own := float64(a * c.cells.own[j]); !q.observed[at] || own < 0.4 || own > 0.8 || count == 40 {
				continue
			}
			m, without := c.cells.mean[j], refitted(t, q, f, i, j)
			truth += math.Abs(m - without)
			said += math.Abs(m - c.without(0, j, q.y[at], a))
			turn += math.Abs(m - c.withoutInTurn(0, j, q.y[at], a))
			count++
		}
	}
	if first, second := truth/said, truth/turn; count < 30 || first > 0.93 || second < 0.95 || second > 1.15 {
		t.Errorf("%d cells: the means move by %.3g of what the first order says, and by %.3g of what they "+
			"do in turn", count, first, second)
	}
}

// The error of leave-one-out predictions is the error of the predictions of hidden cells, also of a fit most
// of whose components are noise. Were a cell to move its own row and column alone, leave-one-out would
// promise less error.
func TestLeaveOneOutIsNoBetterThanHidden(t *testing.T) {
	var hidden, out, plain mean // of squared errors over the noise, less 1
	for seed := range uint64(3) {
		q := drawn(150, 90, 4, 0.1, 20+seed)
		f, p := q.fitted(t, 30, 25)
		c, loops := wholeReader(p), wholeReader(p)
		loops.leaveOneOut(f.data)
		for i := range q.d {
			c.load(i, 1)
			loops.load(i, 1)
			for j := range q.n {
				at, a := i*q.n+j, p.precision(i, j)
				noise, variance := q.y[at]-q.truth[at], q.noise[at]*q.noise[at]
				// (y-m)² - noise², but for what is 0 on average of any m made without y
				beyond := func(m float64) float64 {
					e := q.truth[at] - m
					return e * (e + 2*noise) / variance
				}
				if !q.observed[at] {
					e := q.truth[at] - c.cells.mean[j]
					hidden.add(e * e / variance)
					continue
				}
				out.add(beyond(loops.without(0, j, q.y[at], a)))
				plain.add(beyond(c.without(0, j, q.y[at], a)))
			}
		}
	}
	// In units of the noise; without loops .12 is missing.
	Near(t, out.of(), hidden.of(), 0.05, "the error of leave-one-out, against that of hidden cells")
	t.Logf("error of hidden cells %.3g, leave-one-out %.3g, without loops %.3g", hidden.of(), out.of(),
		plain.of())
}

// mean is one under way.
type mean struct{ sum, count float64 }

func (m *mean) add(x float64) { m.sum, m.count = m.sum+x, m.count+1 }
func (m *mean) of() float64   { return m.sum / m.count }

func TestCellsAreTheSlowForm(t *testing.T) {
	for _, hidden := range hidings {
		q := drawn(11, 13, 2, hidden, 5)
		f := q.after(t, 3, 8)
		rows := upTo(q.d)
		for i := range rows {
			rows[i] *= 2
		}
		p := f.Posterior(rows, 2*q.d)
		s := q.slow(f)
		c := wholeReader(p)
		for i := range q.d {
			c.load(2*i, 1)
			for j := range q.n {
				own, all, both := s.variance(i, j)
				Close(t, c.cells.mean[j], dot(s.u[i], s.v[j]), 1e-9, "mean")
				Close(t, c.cells.own[j], own, 1e-9, "own")
				Close(t, c.cells.variance[j], all, 1e-9, "variance")
				Close(t, c.cells.both[j], both, 1e-9, "both")
				y, more := q.y[i*q.n+j], 0.0
				slope := Derivative(&more, 1e-3, func() float64 {
					return dot(reweighed(more, y, s.u[i], s.v[j], s.s[i], s.c[j]),
						reweighed(more, y, s.v[j], s.u[i], s.c[j], s.s[i]))
				})
				const a = 1e-5
				Close(t, (c.cells.mean[j]-c.without(0, j, y, a))/a, slope, 1e-3, "movement")
				Close(t, (c.cells.mean[j]-c.withoutInTurn(0, j, y, a))/a, slope, 1e-3, "movement in turn")
				deviation := make([]float64, q.n)
				p.deviations(deviation, c.cells.variance, 2*i)
				Close(t, deviation[j], math.Sqrt(all+1/(s.tau[i]*s.rho[j])), 1e-9, "deviation")
			}
		}
		for h := 1; h < p.K; h++ {
			if r := p.Relevance(); r[h] > r[h-1] {
				t.Error("relevance rises")
			}
		}
	}
}

func TestSolve(t *testing.T) {
	src := random.Split(6, 0)
	for k := 1; k < 20; k++ {
		s := newSystem(nil, k)
		e := prior(ones(make([]float64, k)))
		for range 2 * k {
			x := make([]float64, k)
			for r := range x {
				x[r] = normal(&src)
			}
			e.add(1, normal(&src), x, nil)
		}
		for r, row := range e.precision {
			for c := range k {
				s.a[r*s.kp+c] = math.NaN() // above the diagonal there may be anything
			}
			copy(s.a[r*s.kp:], row[:r+1])
		}
		copy(s.border(), e.right)
		logDet := s.solve()
		_, det := Inverse(e.precision)
		Close(t, logDet, math.Log(det), 1e-10, "log det")
		mean, spread := e.solve()
		for r, z := range mean {
			Close(t, s.border()[r], z, 1e-10, "a solution")
		}
		packed, want := make([]float64, Packed(k)), make([]float64, Packed(k))
		s.pack(packed)
		moments(want, mean, spread)
		for at, b := range want[:k*(k+1)/2] {
			Close(t, packed[at], b, 1e-10, "a second moment")
		}
	}
}

// A new column that is one of the fit's is placed where it was.
func TestPlace(t *testing.T) {
	for _, hidden := range hidings {
		q := drawn(40, 30, 2, hidden, 7)
		f := q.after(t, 3, 60)
		f.stepV(100)
		p := f.Posterior(upTo(q.d), q.d)
		place := p.Placer()
		c := wholeReader(p)
		y := make([]float64, q.d)
		for j := range q.n {
			for i := range y {
				y[i] = q.y[i*q.n+j]
				if !q.observed[i*q.n+j] {
					y[i] = math.NaN()
				}
			}
			v, rho := place.Place(y)
			Close(t, rho, p.Rho[j], 2e-3, "rho")
			for h, x := range v {
				Close(t, x, p.V[h*kernel.Pad(q.n)+j], 2e-3, "v")
			}
			for i := range 3 {
				c.load(i, 1)
				Close(t, place.spread(i), c.cells.variance[j], 2e-3, "variance")
			}
		}
	}
}

// wholeReader is a reader made by two workers to its end.
func wholeReader(p *Posterior) *reader {
	workers := pool.New(2, p.N)
	defer workers.Close()
	return p.reader(workers, nil)
}

// TestReaderStop: a reader that is stopped while it is made leaves the rest.
func TestReaderStop(t *testing.T) {
	f, p := drawn(20, 30, 4, 0.1, 3).fitted(t, 4, 1)
	whole, workers := wholeReader(p), Workers(t, 1)
	workers.Bind(&ending{Context: t.Context(), last: 4})
	c := p.reader(workers, nil)
	for r := range f.K {
		for h := range r + 1 {
			plane, made := whole.planes[(r*f.K+h)*f.np:][:p.N], c.planes[(r*f.K+h)*f.np:][:p.N]
			if done := r*(r+1)/2+h < 3; slices.Equal(plane, made) != done {
				t.Errorf("entry (%d, %d): made %v, want %v", r, h, !done, done)
			}
		}
	}
}

// Sums over what each line observes, against sums number by number: with few holes and many, by any number of
// workers with the same bits.
func TestGather(t *testing.T) {
	for _, hidden := range []float64{0, 0.01, 0.2, 0.8} {
		for _, k := range []int{1, 7, 12, 20} { // the last in panels, of which there are fewer than workers
			q := drawn(140, 70, 3, hidden, 5)
			var first []float64
			for _, workers := range []int{1, 3, 9} {
				f := q.startOn(t, k, workers)
				f.room.tau.fill(f.Tau, f.room.pp)
				for i := range f.room.grams {
					f.room.grams[i] = math.NaN()
				}
				f.gather(f.room.grams, f.data.Cols, f.room.sumU, f.BU, &f.room.tau)
				if first != nil {
					Same(t, append(slices.Clone(f.room.sumU), f.room.grams...), first, "%d workers", workers)
					continue
				}
				first = append(slices.Clone(f.room.sumU), f.room.grams...)
				for j := range q.n {
					for c := range f.room.pp {
						want, all := 0.0, 0.0
						for i := range q.d {
							b := f.Tau[i] * f.BU[i*f.room.pp+c]
							if all += b; q.observed[i*q.n+j] {
								want += b
							}
						}
						Close(t, f.gram(j)[c], want, 1e-12*(1+math.Abs(all))*float64(q.d),
							"sum over what a column observes")
						Close(t, f.room.sumU[c], all, 1e-12*(1+math.Abs(all))*float64(q.d), "sum over all")
					}
				}
			}
		}
	}
}

// TestLoops: the sums over the noise are those of its Stieltjes transform, which has a closed form: of p
// squared singular values λ of p × q noise, Σ λ/(z-λ) = p (-z' m(z') - 1), z' = z over share q, m the
// transform of the law with ratio p/q.
func TestLoops(t *testing.T) {
	const d, n = 60, 40
	z := []float64{210, 300, 500, 1000, 5000} // all above the noise: (√60+√40)² = 198
	k := len(z)
	for _, share := range []float64{1, 0.8} {
		p := ignorant(d, n, k)
		for a, z := range z {
			for i := range d {
				p.Tau[i], p.packU(i)[a*(a+1)/2+a] = 2, 1.5
			}
			for j := range n {
				p.Rho[j], p.packV(j)[a*(a+1)/2+a] = 1, 1/(3*z)
			}
		}
		left, right := p.loops(share*d*n, &Data{N: n})
		few, many := float64(n-k), float64(d-k)
		y := few / many
		for a, z := range z {
			at := z / (share * many)
			m := (1 - y - at + math.Sqrt((at-1-y)*(at-1-y)-4*y)) / (2 * y * at)
			sum := few * (-at*m - 1)
			for _, of := range [][2]float64{{left[a], 1 + sum/d}, {right[a], 1 + sum/n}} {
				Near(t, of[0], of[1], 2e-3*(of[1]-1), "share %g, z %g", share, z)
			}
		}
	}
}
