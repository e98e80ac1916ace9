package quantmf

// This file tests penalties and fixed columns of U: against their conditions at an optimum, against the
// objective of scikit-learn, and against a fit without them.

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/qmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// evenly are the penalties λ (mean U + mean V) of factors of rank k.
func evenly(lambda float64, k int) Penalties {
	return Penalties{L1U: lambda / float64(k), L1V: lambda / float64(k)}
}

// optimal checks the conditions of an optimum of a penalised NMF: with the objective f of the factors, for
// every entry that may move, ∂f = 0 where it is positive, and ∂f >= 0 where it is 0. Fixed is the number of
// columns of U that stay. Slopes are by the formula of the objective, in which nothing of a fit takes part.
func optimal(t *testing.T, x Mat, m *NMF, loss Loss, p Penalties, fixed int, within float64) {
	t.Helper()
	w := NewMat(x.Dims())
	for i, v := range x.Data {
		if w.Data[i] = 1; v != v {
			w.Data[i] = 0
		}
	}
	optimalBy(t, x, w, m, loss, p, fixed, within)
}

// optimalBy is optimal where cells have weights, 0 if they are hidden.
func optimalBy(t *testing.T, x, weights Mat, m *NMF, loss Loss, p Penalties, fixed int, within float64) {
	t.Helper()
	d, n := x.Dims()
	k := m.Rank()
	w, observed := m.Reconstruct(), 0.0
	for i := range d {
		for _, v := range weights.Row(i) {
			observed += v
		}
	}
	slope := func(i, j int) float64 {
		v, t, by := x.At(i, j), w.At(i, j), weights.At(i, j)/observed
		switch {
		case by == 0:
			return 0
		case loss == Frobenius:
			return (t - v) * by
		}
		return math.Pow(t, float64(loss)-2) * (t - v) * by
	}
	check := func(what string, entry, falls, rises float64) {
		t.Helper()
		size := math.Abs(falls) + math.Abs(rises)
		if g := falls + rises; g < -within*size || entry > 1e-3 && g > within*size {
			t.Errorf("%s is %v, and the slope %v of %v", what, entry, g, size)
		}
	}
	for i := range d {
		for c := fixed; c < k; c++ {
			falls, rises := 0.0, (p.L1U+p.L2U*m.U.At(i, c))/float64(d)
			for j := range n {
				if g := slope(i, j) * m.V.At(c, j); g < 0 {
					falls += g
				} else {
					rises += g
				}
			}
			check("U "+itoa(i)+" "+itoa(c), m.U.At(i, c), falls, rises)
		}
	}
	for c := range k {
		for j := range n {
			falls, rises := 0.0, (p.L1V+p.L2V*m.V.At(c, j))/float64(n)
			for i := range d {
				if g := slope(i, j) * m.U.At(i, c); g < 0 {
					falls += g
				} else {
					rises += g
				}
			}
			check("V "+itoa(c)+" "+itoa(j), m.V.At(c, j), falls, rises)
		}
	}
}

// TestPenalties: a fit that has gone on for long is at an optimum of the loss with the penalties, by both
// methods, with cells missing or not, and the objective never rises on the way.
func TestPenalties(t *testing.T) {
	Slow(t)
	x := first(toy(0), 13).Clone()
	for name, p := range map[string]Penalties{
		"L1":         {L1U: 0.05, L1V: 0.02},
		"L2":         {L2U: 0.05, L2V: 0.1},
		"all":        {L1U: 0.02, L1V: 0.03, L2U: 0.04, L2V: 0.01},
		"L1U, L2V":   {L1U: 0.05, L2V: 0.05},
		"L2U, L1V":   {L2U: 0.05, L1V: 0.05},
		"large":      {L1U: 1, L1V: 0.5, L2U: 1, L2V: 1},
		"very small": {L1U: 1e-6, L2V: 1e-6},
	} {
		for _, loss := range []Loss{KL, Frobenius, Beta(1.5), Beta(0.5), Beta(3)} {
			for _, hidden := range []float64{0, 0.2} {
				for _, u := range []Updates{UpdatesNewton, UpdatesMultiplicative} {
					if loss != KL && loss != Frobenius && (u == UpdatesNewton || name != "all" && !Long) {
						continue
					}
					// other shares of what "all" has
					if u == UpdatesMultiplicative && len(name) > 3 && !Long {
						continue
					}
					x, epochs := x, Draws(1500, 800, 0)
					if u == UpdatesMultiplicative {
						epochs = 300
					}
					opts := []FitOption{WithLoss(loss), WithUpdates(u), WithPenalties(p), WithEpochs(epochs)}
					if hidden > 0 {
						x = holed(x, hidden)
						opts = append(opts, WithMissingValues())
					}
					t.Run(name+", "+loss.String()+", "+u.String()+", "+ftoa(hidden), func(t *testing.T) {
						var objectives []float64
						for _, e := range []int{0, 1, 2, 3, 4, 5, 6, 8, 12, 20, 50, epochs} {
							m := Fitted(t, FitNMF, x, 3, append(opts, WithEpochs(e))...)
							now := m.objective(&qmf.Settings{Penalties: nmf.Penalties(p)})
							if n := len(objectives); n > 0 && now > objectives[n-1]*(1+1e-12) {
								t.Errorf("%v after %v, before epoch %d", now, objectives[n-1], e)
							}
							objectives = append(objectives, now)
							if e == epochs && u == UpdatesNewton && (loss == Frobenius || hidden == 0) {
								optimal(t, x, m, loss, p, 0, 1e-4)
							}
						}
					})
				}
			}
		}
	}
}

// TestFixedU: the given columns of U are those of the model to the bit, whatever else an option asks for; the
// rest is at an optimum; and where all of U is given, V is what Transform makes of the samples.
func TestFixedU(t *testing.T) {
	x := first(toy(0), 13).Clone()
	whole := Fitted(t, FitNMF, x, 3, WithSeed(4))
	u := whole.U.Clone()
	u.Set(2, 1, 0)
	for _, r := range []int{1, 2, 3} {
		fixed := u
		fixed.Cols = r
		for name, opts := range map[string][]FitOption{
			"KL":        {WithEpochs(1500)},
			"Frobenius": {WithLoss(Frobenius), WithEpochs(1500)},
			"penalties": {WithPenalties(Penalties{L1U: 0.01, L1V: 0.05, L2U: 0.01, L2V: 0.01}),
				WithEpochs(1500)},
			"Frobenius, penalties": {WithLoss(Frobenius), WithPenalties(Penalties{L1V: 0.05, L2U: 0.02}),
				WithEpochs(1500)},
			"SVD":        {WithStart(StartSVD), WithEpochs(1500)},
			"init":       {WithInit(whole.U, whole.V), WithEpochs(1500)},
			"model":      {WithModel(whole), WithEpochs(1500)},
			"updates":    {WithUpdates(UpdatesMultiplicative), WithEpochs(20)},
			"updates, β": {WithLoss(Beta(1.5)), WithEpochs(20)},
			"updates, penalties": {WithUpdates(UpdatesMultiplicative),
				WithPenalties(Penalties{L2U: 0.1, L2V: 0.1}), WithEpochs(20)},
			"hidden":            {WithValidation(0.1), WithEpochs(20)},
			"hidden, Frobenius": {WithValidation(0.1), WithLoss(Frobenius), WithEpochs(20)},
			"hidden, updates": {WithValidation(0.1), WithUpdates(UpdatesMultiplicative),
				WithEpochs(20)},
			"no epoch":              {WithEpochs(0)},
			"restarts and patience": {WithRestarts(2), WithPatience(1), WithEpochs(30)},
		} {
			t.Run(name+" "+itoa(r), func(t *testing.T) {
				m := Fitted(t, FitNMF, x, 3, append(opts, WithFixedU(fixed))...)
				for i := range x.Rows {
					for c := range r {
						if m.U.At(i, c) != fixed.At(i, c) {
							t.Fatalf("U %d %d is %v, given %v", i, c, m.U.At(i, c), fixed.At(i, c))
						}
					}
				}
				for e, loss := range m.History {
					if e > 0 && loss > m.History[e-1]*(1+1e-12) && name == "updates" {
						t.Errorf("%v after %v", loss, m.History[e-1])
					}
				}
				var c config
				for _, o := range opts {
					o.setting().check(&c)
				}
				if c.Epochs < 1500 {
					return
				}
				optimal(t, x, m, m.loss, Penalties(c.Penalties), r, 1e-3)
				if r < 3 {
					return
				}
				v := Answer(t, m.Transform, x)
				for i, want := range v.Data {
					Close(t, m.V.Data[i], want, 1e-3, "V %d, by Transform", i)
				}
			})
		}
	}
}

// TestPenaltiesOfScikit: the objective is that of scikit-learn, divided by dn: from its start a fit ends
// where its solvers end, or lower; with its U fixed, V and Transform are what its transform makes of samples.
func TestPenaltiesOfScikit(t *testing.T) {
	s := loadScikit(t)
	d, n := s.X.Dims()
	for _, c := range s.Penalised {
		loss := Frobenius
		if c.Loss == "kl" {
			loss = KL
		}
		p := Penalties{L1U: c.AlphaH * c.L1Ratio, L1V: c.AlphaW * c.L1Ratio, L2U: c.AlphaH * (1 - c.L1Ratio),
			L2V: c.AlphaW * (1 - c.L1Ratio)}
		m := Fitted(t, FitNMF, s.X, 5, WithLoss(loss), WithInit(s.U0, s.V0), WithPenalties(p),
			WithEpochs(1000))
		got, want := m.objective(&qmf.Settings{Penalties: nmf.Penalties(p)})*float64(d*n), c.Objective
		if !(got <= want*(1+1e-6)) {
			t.Errorf("%s, %v: %v, scikit-learn %v", c.Loss, p, got, want)
		}
		u := Must(MatOf(c.U...))(t)
		few := s.X
		few.Cols = len(c.Few[0])
		of := Fitted(t, FitNMF, few, 5, WithLoss(loss), WithFixedU(u), WithPenalties(p),
			WithEpochs(1000))
		placed := Answer(t, of.Transform, few)
		for l, row := range c.Few {
			for j, want := range row {
				for what, got := range map[string]float64{"V": of.V.At(l, j), "Transform": placed.At(l, j)} {
					Close(t, got, want, 2e-4, "%s, %v: %s %d %d, by scikit-learn", c.Loss, p, what, l, j)
				}
			}
		}
	}
}

// TestWeightsErrors: what is wrong with penalties and fixed columns, and which fits have no use for them.
func TestWeightsErrors(t *testing.T) {
	x := first(toy(2), 12)
	d := x.Rows
	filled := func(rows, cols int, v float64) Mat {
		m := NewMat(rows, cols)
		for i := range m.Data {
			m.Data[i] = v
		}
		return m
	}
	spot := filled(d, 2, 1)
	spot.Set(3, 1, math.NaN())
	below := filled(d, 2, 1)
	below.Set(4, 0, -1)
	fixed := WithFixedU(filled(d, 2, 1))
	refused := func(method Method, says string, opts ...FitOption) {
		t.Helper()
		m, err := Fit(t.Context(), method, x, 3, opts...)
		if m != nil || err == nil || err.Error() != "quantmf: "+says {
			t.Errorf("%v, want %s", err, says)
		}
	}
	refused(MethodNMF, "WithPenalties(L1U 0, L1V -1, L2U 0, L2V 0): L1V must be from 0 to 1e30",
		WithPenalties(Penalties{L1V: -1}))
	refused(MethodNMF, "WithPenalties(L1U 0, L1V 0, L2U 0, L2V NaN): L2V must be from 0 to 1e30",
		WithPenalties(Penalties{L2V: math.NaN()}))
	refused(MethodNMF, "WithPenalty(1): FitNMF has no use for it", WithPenalty(1))
	refused(MethodQMF, "WithPenalties(L1U 1, L1V 0, L2U 0, L2V 0): FitQMF has no use for it",
		WithPenalties(Penalties{L1U: 1}))
	refused(MethodQMFQ, "WithFixedU("+itoa(d)+"×2): FitQMFQ has no use for it", fixed)
	refused(MethodBQMF, "WithFixedU("+itoa(d)+"×2): FitBQMF has no use for it", fixed)
	refused(MethodNMF, "WithFixedU(0×0): must not be empty", WithFixedU(Mat{}))
	refused(MethodNMF, "WithSampleWeights(len 0): must not be empty", WithSampleWeights(nil))
	refused(MethodNMF, "WithSampleWeights(len 3): not all may be zero", WithSampleWeights(make([]float64, 3)))
	refused(MethodNMF, "WithSampleWeights(len 2): weight 1 is -1, must be at least 0 and at most 1e+60",
		WithSampleWeights([]float64{1, -1}))
	refused(MethodNMF, "sample weights: got 2, want "+itoa(x.Cols), WithSampleWeights([]float64{1, 2}))
	refused(MethodBQMF, "sample weights: got 2, want "+itoa(x.Cols), WithSampleWeights([]float64{1, 2}))
	refused(MethodBQMF, "row 0, column 0, value -2: a cell weight must be at least 0 and at most 1e+60",
		WithCellWeights(filled(d, x.Cols, -2)))
	refused(MethodQMFQ, "WithProjection(TruncatedSVD()): needs the same weights in all features, "+
		"WithSampleWeights: by others no singular vectors are nearest, so WithCellWeights does not go "+
		"with it",
		WithCellWeights(x), WithProjection(TruncatedSVD()))
	refused(MethodNMF, "WithCellWeights(Rows): must not be nil", WithCellWeights(nil))
	refused(MethodNMF, "cell weights: got 2×2, want "+sizeOf(x.Dims()), WithCellWeights(filled(2, 2, 1)))
	refused(MethodNMF, "row 0, column 0, value -2: a cell weight must be at least 0 and at most 1e+60",
		WithCellWeights(filled(d, x.Cols, -2)))
	refused(MethodNMF, "row 0, value NaN: the row has no observed cell",
		WithCellWeights(filled(d, x.Cols, 0)))
	refused(MethodNMF, "fixed U: got 5×2, want "+itoa(d)+"×3 at most", WithFixedU(filled(5, 2, 1)))
	refused(MethodNMF, "fixed U: got "+itoa(d)+"×4, want "+itoa(d)+"×3 at most",
		WithFixedU(filled(d, 4, 1)))
	refused(MethodNMF, "row 3, column 1, value NaN: fixed U must be finite and not negative",
		WithFixedU(spot))
	refused(MethodNMF, "row 4, column 0, value -1: fixed U must be finite and not negative",
		WithFixedU(below))
	refused(MethodNMF,
		"row 0, column 0, value 1e+90: the largest of fixed U must be 0 or from 1e-50 to 1e+50",
		WithFixedU(filled(d, 1, 1e90)))
}

// TestResumeWeights: a state goes on with the same penalties and fixed columns to the same bits, in units of
// its own as well, and is refused with others.
func TestResumeWeights(t *testing.T) {
	for _, unit := range []float64{1, 0x1p150} {
		x := first(toy(2), 12)
		for i := range x.Data {
			x.Data[i] *= unit
		}
		u := NewMat(x.Rows, 2)
		for i := range u.Data {
			u.Data[i] = float64(i%5) * math.Sqrt(unit)
		}
		other := u.Clone()
		other.Data[3]++
		if unit > 1 {
			other.Data[3] *= 2
		}
		var states [][]byte
		cells, samples := x.Clone(), make([]float64, x.Cols)
		for i := range cells.Data {
			cells.Data[i], samples[i%x.Cols] = 1+float64(i%3), 1+float64(i%x.Cols%4)
		}
		moreCells, moreSamples := cells.Clone(), slices.Clone(samples)
		moreCells.Data[9]++
		moreSamples[2]++
		with := func(u Mat, p Penalties, samples []float64, cells Mat) []FitOption {
			return []FitOption{WithFixedU(u), WithPenalties(p), WithSampleWeights(samples),
				WithCellWeights(cells), WithEpochs(6)}
		}
		p, more := Penalties{L1V: 0.1, L2U: 0.1}, Penalties{L1V: 0.1, L2U: 0.2}
		opts := with(u, p, samples, cells)
		want := Fitted(t, FitNMF, x, 3, append(opts, Keep(&states))...)
		for i, s := range states {
			got, err := FitNMF(t.Context(), x, 3, append(opts, WithResume(s))...)
			if err != nil || fingerprint(got.U, got.V) != fingerprint(want.U, want.V) {
				t.Errorf("state %d: %v", i, err)
			}
		}
		for what, opts := range map[string][]FitOption{
			"WithFixedU": with(other, p, samples, cells), "WithPenalties": with(u, more, samples, cells),
			"WithSampleWeights": with(u, p, moreSamples, cells),
			"WithCellWeights":   with(u, p, samples, moreCells),
		} {
			opts = append(opts, WithResume(states[2]))
			if _, err := FitNMF(t.Context(), x, 3, opts...); OptionOf(err) != what {
				t.Errorf("%s: %v", what, err)
			}
		}
		var read NMF
		OK(t, read.UnmarshalBinary(FileOf(t, want)))
		a, errA := want.Transform(t.Context(), x)
		b, errB := read.Transform(t.Context(), x)
		if errA != nil || errB != nil || fingerprint(a) != fingerprint(b) || read.prior != want.prior ||
			unit == 1 && want.prior.L1 != 0.1*float64(x.Rows) {
			t.Errorf("a file: %v %v, %v %v", errA, errB, read.prior, want.prior)
		}
	}
}

// TestFixedUOfQMF: the given columns are those of the model to the bit by every start and step, resumed or
// not and in any unit; and where x is bent products of known U, the fit finds their V.
func TestFixedUOfQMF(t *testing.T) {
	const d, n = 40, 60
	u, v := NewMat(d, 3), NewMat(3, n)
	for i := range u.Data {
		u.Data[i] = float64(i*7%11) / 5
	}
	for i := range v.Data {
		v.Data[i] = 0.1 + float64(i*i*5%17)/4
	}
	x := Times(u, v)
	for i, w := range x.Data {
		x.Data[i] = math.Pow(w, 0.4+float64(i/n%5)/4)
	}
	whole := Fitted(t, FitQMF, x, 3, WithSeed(4))
	for name, opts := range map[string][]FitOption{
		"default": nil, "scores": {WithStart(StartScores)}, "NMF": {WithStart(StartNMF)},
		"paper":      {WithStart(StartUniform), WithEpochs(8)},
		"one batch":  {WithBatch(100), WithStart(StartNMF), WithShrinkage(0), WithLine(0)},
		"raw":        {WithSquash(SquashNone), WithEpochs(3)},
		"init":       {WithInit(whole.U, whole.V)},
		"model":      {WithModel(whole)},
		"Frobenius":  {WithLoss(Frobenius), WithPenalty(0.1)},
		"validation": {WithValidation(0.1), WithPatience(3)},
	} {
		for _, r := range []int{1, 3} {
			if testing.Short() && name != "default" {
				continue
			}
			t.Run(name+" "+itoa(r), func(t *testing.T) {
				var states [][]byte
				opts := append(opts, WithFixedU(Part(u, 0, r)))
				m := Fitted(t, FitQMF, x, 3, append(opts, Keep(&states))...)
				of := qmf.Settings{Squash: m.squash[0].Kind}
				least := math.Exp(-of.FactorBound(3))
				for i := range d {
					for c := range r {
						want := max(u.At(i, c), least)
						if got := m.U.At(i, c); !(math.Abs(got-want) <= 1e-12*want) || u.At(i, c) > 0 &&
							got != want {
							t.Fatalf("U %d %d is %v, given %v", i, c, got, u.At(i, c))
						}
					}
				}
				for i, s := range states {
					again := Fitted(t, FitQMF, x, 3, append(opts, WithResume(s))...)
					if fingerprint(again.U, again.V, again.Quantiles) != fingerprint(m.U, m.V, m.Quantiles) {
						t.Errorf("state %d leads elsewhere", i)
					}
				}
				for c := range 3 {
					if found := correlation(m.V.Row(c), v.Row(c)); name == "default" && r == 3 &&
						!(found > 0.9) {
						t.Errorf("V %d correlates by %v", c, found)
					}
				}
			})
		}
	}
}
