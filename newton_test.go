package quantmf

// Tests of NMF by Newton's method: against the same method as a textbook would
// write it, its gradient by differences, the promise of its steps, and that it never rises.

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// wholeNMF is an NMF by Newton's method in whole matrices, entry by entry: x d × n with NaN
// where a cell is hidden.
type wholeNMF struct {
	x       Mat
	loss    Loss
	penalty float64
	exact   bool
	visible float64
}

// objective is the mean loss with the penalty.
func (b *wholeNMF) objective(u, v Mat) (loss, all float64) {
	w := Times(u, v)
	for i := range w.Rows {
		for j, x := range b.x.Row(i) {
			if x == x {
				loss += Textbook(float64(b.loss), x, w.At(i, j)) / b.visible
			}
		}
	}
	return loss, loss + b.penalty*(Mean(u.Data)+Mean(v.Data))
}

// warm is one multiplicative update of v, x ≈ uv.
func (b *wholeNMF) warm(x, u, v Mat) Mat {
	w, to := Times(u, v), v.Clone()
	added := b.penalty * b.visible / float64(v.Rows*v.Cols)
	falls, rises := NewMat(x.Rows, x.Cols), NewMat(x.Rows, x.Cols) // the two parts of a cell's slope
	for i := range x.Rows {
		for j, y := range x.Row(i) {
			t, p := w.At(i, j), float64(b.loss)
			falls.Set(i, j, y*math.Pow(t, p-2))
			rises.Set(i, j, math.Pow(t, p-1))
		}
	}
	for c := range v.Rows {
		for j := range v.Cols {
			num, den := 0.0, added
			for i := range u.Rows {
				if y := x.At(i, j); y == y {
					num += u.At(i, c) * falls.At(i, j)
					den += u.At(i, c) * rises.At(i, j)
				}
			}
			to.Set(c, j, v.At(c, j)*num/den)
		}
	}
	return to
}

// floor is what row a of v is not let fall below.
func (b *wholeNMF) floor(v Mat, a int) float64 {
	if b.loss == Frobenius || b.visible == float64(b.x.Rows*b.x.Cols) {
		return 0
	}
	return 0.01 * elem.Mean(v.Row(a))
}

// curvature is the second derivative of a cell's loss at t.
func (b *wholeNMF) curvature(x, t float64) float64 {
	if b.loss == Frobenius {
		return 1
	}
	return x / (t * t)
}

// half is Newton's half of v, x ≈ uv.
func (b *wholeNMF) half(x, u, v Mat) Mat {
	d, n, k := u.Rows, v.Cols, v.Rows
	w := Times(u, v)
	added := b.penalty * b.visible / float64(k*n)
	share := func(i int) (s float64) { // what W of row i is in all
		for j := range n {
			s += w.At(i, j)
		}
		return s
	}
	p := float64(b.loss)
	shared, total := NewMat(k, k), 0.0
	for i := range d {
		all := share(i)
		total += all
		weight := math.Pow(all, p-2)
		for a := range k {
			for c := range k {
				shared.Data[a*k+c] += u.At(i, a) * u.At(i, c) * weight
			}
		}
	}
	to := NewMat(k, n)
	for j := range n {
		seen, sum := 0.0, 0.0
		g, h := make([]float64, k), make([]float64, k)
		for i := range d {
			y, t := x.At(i, j), max(w.At(i, j), 1e-100)
			sum += t
			if y != y {
				continue
			}
			seen++
			slope, bend := math.Pow(t, p-2)*(t-y), b.curvature(y, t)
			for a := range k {
				g[a] += u.At(i, a) * slope
				h[a] += u.At(i, a) * u.At(i, a) * bend
			}
		}
		weight := seen / float64(d) * math.Pow(sum/total, p-2)
		hessian := func(a, c int) float64 {
			if b.exact {
				return shared.At(a, c)
			}
			v := shared.At(a, c) / math.Sqrt(shared.At(a, a)*shared.At(c, c))
			if a == c {
				v = 1 + 1e-6
			}
			at := func(a int) float64 { return math.Sqrt(max(h[a], 0.1*shared.At(a, a)*weight)) }
			return v * at(a) * at(c)
		}
		free := make([]float64, k) // how far an entry may fall
		for a := range k {
			if above := v.At(a, j) - b.floor(v, a); above > 1e-12*v.At(a, j) {
				free[a] = above
			}
		}
		s := make([]float64, k)
		sweeps := 4
		if b.exact {
			sweeps = 12
		}
		for range sweeps {
			for a := range k {
				r := g[a] + added
				for c := range k {
					r += hessian(a, c) * s[c]
				}
				s[a] = max(s[a]-r/hessian(a, a), -free[a])
			}
		}
		if b.exact {
			for a := range k {
				to.Set(a, j, v.At(a, j)+s[a])
			}
			continue
		}
		slope, c2, c3, rho, most := 0.0, 0.0, 0.0, 0.0, 2.0
		for a := range k {
			slope += (g[a] + added) * s[a]
			if s[a] < 0 {
				most = min(most, free[a]/-s[a])
			}
		}
		for i := range d {
			along := 0.0
			for a := range k {
				along += u.At(i, a) * s[a]
			}
			t := max(w.At(i, j), 1e-100)
			y, z := x.At(i, j), along/t
			if y != y {
				continue
			}
			bend := b.curvature(y, t) * along * along
			c2 += bend
			if z < 0 && bend > 0 && b.loss != Frobenius {
				c3 -= bend * z
				rho = max(rho, -z)
			}
		}
		// The root of the bound, by halving.
		low, high := 0.0, most
		if rho > 0 {
			high = min(most, 1/rho)
		}
		bound := func(t float64) float64 { return slope + t*c2 + t*t*c3/max(1-rho*t, 1e-300) }
		for range 200 {
			if t := (low + high) / 2; bound(t) <= 0 {
				low = t
			} else {
				high = t
			}
		}
		if bound(high) <= 0 {
			low = high
		}
		for a := range k {
			if stepped := v.At(a, j) + low*s[a]; stepped > 1e-12*v.At(a, j) {
				to.Set(a, j, stepped)
			}
		}
	}
	return to
}

// run makes epochs from u and v, and returns the losses.
func (b *wholeNMF) run(u, v Mat, warm, epochs int) (Mat, Mat, []float64) {
	xt := b.x.T()
	first, last := b.objective(u, v)
	history := []float64{first}
	zu, zv, tau := u, v, 1.0
	for e := range epochs {
		if e < warm {
			v = b.warm(b.x, u, v)
			u = b.warm(xt, v.T(), u.T()).T()
			first, last = b.objective(u, v)
			history = append(history, first)
			zu, zv = u, v
			continue
		}
		nv := b.half(b.x, u, v)
		nu := u.Clone()
		for c := range nv.Rows {
			su, sv := 0.0, 0.0
			for i := range nu.Rows {
				su += nu.At(i, c)
			}
			for _, v := range nv.Row(c) {
				sv += v
			}
			if b.penalty > 0 {
				su, sv = su/float64(nu.Rows), sv/float64(nv.Cols)
			}
			scale := math.Sqrt(sv / su)
			for i := range nu.Rows {
				nu.Set(i, c, nu.At(i, c)*scale)
			}
			for j := range nv.Cols {
				nv.Set(c, j, nv.At(c, j)/scale)
			}
		}
		old := nu.T() // its mean sets the floor of U
		nu = b.half(xt, nv.T(), old).T()
		next := (1 + math.Sqrt(1+4*tau*tau)) / 2
		by := (tau - 1) / next
		tau = next
		ahead := func(z, before, at Mat) Mat { // rows are components, whose means at have the floor
			y := z.Clone()
			for i := range z.Rows {
				for j, v := range z.Row(i) {
					least := max(0.1*v, min(v, b.floor(at, i)))
					if b.exact {
						least = 0
					}
					y.Set(i, j, max(v+by*(v-before.At(i, j)), least))
				}
			}
			return y
		}
		yu, yv := ahead(nu.T(), zu.T(), old).T(), ahead(nv, zv, nv)
		loss, all := b.objective(yu, yv)
		if all > last {
			tau, yu, yv = 1, nu, nv
			loss, all = b.objective(yu, yv)
		}
		u, v, zu, zv, last = yu, yv, nu, nv, all
		history = append(history, loss)
	}
	return u, v, history
}

// TestNewtonTextbook: the factors and losses of the method in whole matrices.
func TestNewtonTextbook(t *testing.T) {
	r := random.Split(4, 4)
	const k = 4
	sizes := [][2]int{{37, 29}, {5, 16}, {9, 150}}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, size := range sizes {
		d, n := size[0], size[1]
		draw := func() float64 { return math.Exp(Normal(&r)) }
		x, u, v := Drawn(d, n, draw), Drawn(d, k, draw), Drawn(k, n, draw)
		for i := 0; i < len(x.Data); i += 7 {
			x.Data[i] = 0
		}
		for _, loss := range []Loss{KL, Frobenius} {
			for _, hidden := range []float64{0, 0.2} {
				for _, penalty := range []float64{0, 0.05} {
					b := &wholeNMF{x: x, loss: loss, penalty: penalty, exact: loss == Frobenius &&
						hidden == 0}
					opts := []FitOption{WithUpdates(UpdatesNewton), WithLoss(loss),
						WithPenalties(evenly(penalty, u.Cols)), WithInit(u, v), WithEpochs(9),
						WithWorkers(2)}
					warm := 3
					if hidden > 0 {
						b.x = holed(x, hidden)
						opts = append(opts, WithMissingValues())
					} else if b.exact && penalty == 0 {
						warm = 0
					}
					for _, v := range b.x.Data {
						if v == v {
							b.visible++
						}
					}
					got := Fitted(t, FitNMF, b.x, k, opts...)
					uu, vv, history := b.run(u, v, warm, 9)
					name := fmt.Sprintf("%v×%v, loss %v, %v hidden, penalty %v", d, n, loss, hidden, penalty)
					NearAll(t, got.History, history, 1e-9*history[0], "%s: losses", name)
					NearAll(t, got.U.Data, uu.Data, 1e-7*LargestOf(uu.Data), "%s: U", name)
					NearAll(t, got.V.Data, vv.Data, 1e-7*LargestOf(vv.Data), "%s: V", name)
				}
			}
		}
	}
}

// hostile are matrices that methods fail on, with ranks.
func hostile() map[string]Mat {
	r := random.Split(11, 2)
	fill := func(d, n int, f func(i, j int) float64) Mat {
		m := NewMat(d, n)
		for i := range d {
			for j := range n {
				m.Set(i, j, f(i, j))
			}
		}
		return m
	}
	poisson := func(mean float64) float64 {
		k, p := 0.0, math.Exp(-mean)
		for at := r.Float64(); at > p; at *= r.Float64() {
			k++
		}
		return k
	}
	draw := func() float64 { return math.Exp(Normal(&r)) }
	low := Drawn(40, 3, draw)
	return map[string]Mat{
		"random": Drawn(60, 37, draw),
		"rows of all size": fill(50, 24,
			func(i, _ int) float64 { return math.Exp(Normal(&r)) * math.Pow(10, float64(i%13-6)) }),
		"mostly zero":   Drawn(60, 33, func() float64 { return max(0, math.Exp(Normal(&r))-2.3) }),
		"sparse counts": Drawn(60, 40, func() float64 { return poisson(0.05) }),
		"few":           Drawn(7, 5, draw),
		"constant":      Drawn(30, 20, func() float64 { return 3 }),
		"zero":          NewMat(9, 8),
		"of rank 3":     Times(low, Drawn(3, 30, draw)),
		"1e-30":         Drawn(40, 24, func() float64 { return 1e-30 * math.Exp(Normal(&r)) }),
		"1e30":          Drawn(40, 24, func() float64 { return 1e30 * math.Exp(Normal(&r)) }),
		"1e-50 to 1e50": Drawn(40, 24, func() float64 { return math.Pow(10, 100*r.Float64()-50) }),
		"one row":       Drawn(1, 24, draw),
		"one column":    Drawn(24, 1, draw),
		"empty lines":   fill(40, 24, func(i, j int) float64 { return float64((i % 3) * (j % 4)) }),
		"loud rows": fill(200, 24,
			func(i, _ int) float64 { return math.Exp(Normal(&r)) * math.Pow(10, float64(3-i%20)) }),
		"blocks": fill(40, 24,
			func(i, j int) float64 { return float64(max(0, 1-(i/10-j/6)*(i/10-j/6))) }),
	}
}

// TestNewtonNeverRises: no loss, with its penalty, is above the one before, and nothing is
// anything but finite, on what methods fail on.
func TestNewtonNeverRises(t *testing.T) {
	Slow(t)
	epochs := Draws(60, 15, 15)
	for name, x := range hostile() {
		for _, k := range []int{1, 3, 12} {
			for _, loss := range []Loss{KL, Frobenius} {
				for i, opts := range [][]FitOption{nil, {WithStart(StartSVD)},
					{WithPenalties(evenly(1e-3, k))},
					{WithPenalties(evenly(10, k))}, {WithMissingValues()},
					{WithMissingValues(), WithPenalties(evenly(0.1, k))}} {
					of := 3 // two of the six for each rank and loss
					if Long {
						of = 1
					} else if testing.Short() {
						of = 6 // one
					}
					if (i+k+int(loss))%of > 0 {
						continue
					}
					y := x
					if len(opts) > 0 && min(x.Rows, x.Cols) > 8 {
						y = holed(x, 0.15)
						opts = append(opts, WithMissingValues())
					}
					var with config
					for _, o := range opts {
						o.setting().check(&with)
					}
					m := Fitted(t, FitNMF, y, k,
						append(opts, WithLoss(loss), WithUpdates(UpdatesNewton), WithEpochs(epochs))...)
					for _, v := range [][]float64{m.U.Data, m.V.Data, m.History} {
						if i := notFinite(v); i >= 0 {
							t.Fatalf("%s, k=%d, loss %v: %v", name, k, loss, v[i])
						}
					}
					if slices.Min(m.U.Data) < 0 || slices.Min(m.V.Data) < 0 {
						t.Fatalf("%s: a negative factor", name)
					}
					before, size := m.History, 0.0 // of the loss; below 1e-15 of it there is but rounding
					for _, v := range x.Data {
						size += math.Pow(v, float64(loss)) / float64(len(x.Data))
					}
					for e := 1; e < len(before) && !with.Penalties.Any(); e++ {
						if before[e] > before[e-1]*(1+1e-13)+1e-15*size {
							t.Errorf("%s, k=%d, loss %v: %v after %v, epoch %d", name, k, loss, before[e],
								before[e-1], e)
						}
					}
					last := before[len(before)-1]
					// The multiplicative updates do no better in as many epochs, but for what
					// another optimum may be worth: with a penalty a component may die out.
					w := Fitted(t, FitNMF, y, k,
						append(opts, WithLoss(loss), WithUpdates(UpdatesMultiplicative),
							WithEpochs(epochs))...)
					allowed := 1e-9 * w.History[0]
					if loss == KL && len(opts) > 0 { // entries are kept above 0
						allowed = 0.01 * w.History[0]
					}
					if there := w.objective(&with.Settings); m.objective(&with.Settings) > there*1.3+allowed {
						t.Errorf("%s, k=%d, loss %v, %d options: %v, multiplicative updates %v", name, k,
							loss, len(opts), last, there)
					}
				}
			}
		}
	}
}

// TestNewtonStill: a fit that has nowhere to go stands still, with its loss, and a
// state of it goes on the same.
func TestNewtonStill(t *testing.T) {
	x := first(toy(2), 12)
	var states [][]byte
	opts := []FitOption{WithEpochs(3000), WithLoss(Frobenius)}
	m := Fitted(t, FitNMF, x, 2, append(opts, Keep(&states))...)
	last := m.History[2500:]
	if slices.Max(last) != slices.Min(last) {
		t.Errorf("losses from %v to %v after 2500 epochs", slices.Max(last), slices.Min(last))
	}
	again := Fitted(t, FitNMF, x, 2, append(opts, WithResume(states[1999]))...)
	NearAll(t, again.U.Data, m.U.Data, 0, "U")
	NearAll(t, again.History, m.History, 0, "losses")
	patient := Fitted(t, FitNMF, x, 2, append(opts, WithPatience(3))...)
	if e := len(patient.History); e > 300 || patient.History[e-1] > 1.01*m.History[3000] {
		t.Errorf("patience ended after %d epochs at %v, the end is %v", e, patient.History[e-1],
			m.History[3000])
	}
}

// TestNewtonLosses: Newton's method is the default of two losses, which end lower with it, and an error under
// others, whose default is multiplicative updates.
func TestNewtonLosses(t *testing.T) {
	x := Part(first(toy(2), 12), 0, 30).Clone()
	for i := range x.Data {
		x.Data[i] = max(x.Data[i], 0.1)
	}
	fit := func(opts ...FitOption) []float64 {
		t.Helper()
		m := Fitted(t, FitNMF, x, 3, opts...)
		return m.History
	}
	for _, l := range []Loss{Beta(-2), Beta(0), Beta(0.5), KL, Beta(1.5), Frobenius, Beta(2.5), Beta(4)} {
		of := fit(WithLoss(l), WithUpdates(UpdatesMultiplicative))
		if l == KL || l == Frobenius {
			newton := fit(WithLoss(l), WithUpdates(UpdatesNewton))
			if len(newton) != 21 || newton[20] >= of[20] {
				t.Errorf("loss %v: %v epochs to %v, multiplicative updates %v", l, len(newton)-1, newton[20],
					of[20])
			}
			of = newton
		} else {
			_, err := FitNMF(t.Context(), x, 3, WithLoss(l), WithUpdates(UpdatesNewton))
			if OptionOf(err) != "WithUpdates" {
				t.Errorf("loss %v: %v", l, err)
			}
		}
		NearAll(t, fit(WithLoss(l)), of, 0, "default")
	}
}
