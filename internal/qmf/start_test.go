package qmf

// Tests of where fits start, and of what the data choose.

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestChoiceByPrediction: start, shrinkage and line that are left to the data are those of the trial that
// predicts its hidden cells best after its two epochs; or before them, where the fit then makes none, unless
// epochs are better for more rows by two standard errors. From both starts three pairs of shrinkage and line
// are tried, those two that predict them best before the first epoch; then, from the best start with the best
// line, the shrinkage of the others that predicts them better before the first epoch.
func TestChoiceByPrediction(t *testing.T) {
	Slow(t)
	late, later, rested, voted, src := 0, 0, 0, 0, random.Split(1, 9)
	for _, seed := range []uint64{0, 4, 12, 13, 16} {
		c := Defaults()
		c.MayRest = true
		x := matrixOf(24, 80, Toy(int(seed)))
		switch seed {
		case 0:
		case 4: // noise
			for i := range x.Data {
				x.Data[i] = elem.Exp(Normal(&src))
			}
		default: // a row that rules the loss
			for j, v := range x.Row(0) {
				x.Row(0)[j] = 1000 * v * elem.Exp(3*Normal(&src))
			}
		}
		visible := Must(cellsOf(x, &c))(t)
		p := pool.New(1, 1)
		t.Cleanup(p.Close)
		f := newQMFFit(visible, 3, &c,
			fit.Run{Pool: p, Seed: seed, Progress: fit.Silent(t.Context())})
		type made struct {
			Prospect
			before, after         float64
			rowsBefore, rowsAfter []float64
		}
		alone := func(s Start, lambda, line float64) made {
			all := Must(f.newTrials())(t)
			m := made{Prospect: Prospect{Start: s, Lambda: lambda, Line: line}}
			trial := all.fit(m.Prospect, f.progress.Within(0, 1))
			Must(trial.begun())(t)
			m.before, m.rowsBefore = trial.meanHeld(), slices.Clone(trial.rowHeld)
			for e := range trialEpochs {
				Must(trial.Epoch(e))(t)
			}
			trial.run(evaluateRows, trial.d)
			m.after, m.rowsAfter = trial.meanHeld(), trial.rowHeld
			return m
		}
		before := func(a, b made) int { return cmp.Compare(a.before, b.before) }
		var all []made
		for _, s := range []Start{StartScores, StartNMF} {
			all = append(all, alone(s, 0, 0), alone(s, 0, 0.9), alone(s, 20, 0.5))
		}
		slices.SortFunc(all, before)
		still, moved := all[0], all[0]
		best := func() Prospect {
			votes := 0
			for i, l := range moved.rowsAfter {
				if l < still.rowsBefore[i] {
					votes++
				} else if l > still.rowsBefore[i] {
					votes--
				}
			}
			if still.before < moved.after && votes*votes > 4*x.Rows && votes > 0 {
				voted++
			} else if still.before < moved.after {
				still.Rests = true
				return still.Prospect
			}
			return moved.Prospect
		}
		race := func(m made) (won bool) {
			was := best()
			still = slices.MinFunc([]made{still, m}, before)
			moved = slices.MinFunc([]made{moved, m},
				func(a, b made) int { return cmp.Compare(a.after, b.after) })
			return best() != was
		}
		if race(all[1]) {
			late++
		}
		var others []made
		for _, lambda := range []float64{0, 20, 100} {
			if b := best(); lambda != b.Lambda {
				others = append(others, alone(b.Start, lambda, b.Line))
			}
		}
		if race(slices.MinFunc(others, before)) {
			later++
		}
		want := best()
		if want.Rests {
			rested++
		}
		OK(t, f.choose())
		if got := (Prospect{f.origin, f.lambda, f.line, f.rests}); got != want {
			t.Errorf("seed %d: took %+v, the trials say %+v", seed, got, want)
		}
	}
	if late == 0 || later == 0 || rested == 0 || voted == 0 {
		t.Errorf("%d, %d, %d, %d: the second trial, the second shrinkage, the rest or the rows never decided",
			late, later, rested, voted)
	}
}

// TestStartEndedByHiddenCells: the NMF of a start that hidden cells end stands where their loss was least,
// and the fit makes as many epochs, whether it is told the start or chooses it: few of noise, more than
// FitNMF of a product with hardly any. Where few cells are seen, guesses of the others count as far as that
// predicts better.
func TestStartEndedByHiddenCells(t *testing.T) {
	t.Parallel()
	noisy, k := matrixOf(60, 40, NoisyProduct()), 2
	src := random.Split(2, 9)
	exact := times(drawn(60, 6, src.Float64), drawn(6, 60, src.Float64))
	few, even := times(drawn(16, 4, src.Float64), drawn(4, 30, src.Float64)), drawn(16, 30, func() float64 {
		return 5 + src.Float64()
	})
	for i := range few.Data {
		few.Data[i] *= 0.9 + 0.2*src.Float64()
	}
	for i := 0; i < 16*30; i += 4 - i%2 {
		few.Data[i], even.Data[i] = math.NaN(), math.NaN()
	}
	for name, of := range map[string]struct {
		x    matrix
		k    int
		fits func(share float64) bool
	}{
		"noise":   {noisy, 4 * k, func(share float64) bool { return share < 1 }},
		"product": {exact, 6, func(share float64) bool { return share > 1 }},
		"few":     {few, 4, func(share float64) bool { return share > 0 }},
		"even":    {even, 4, func(share float64) bool { return share > 0 }},
	} {
		c := Defaults()
		c.Start, c.Missing = StartNMF, of.x.Rows == 16
		visible := Must(cellsOf(of.x, &c))(t)
		p := pool.New(1, 1)
		t.Cleanup(p.Close)
		f := newQMFFit(visible, of.k, &c,
			fit.Run{Pool: p, Seed: 1, Progress: fit.Silent(t.Context())})
		OK(t, f.choose())
		all, _ := f.newTrials()
		trial := all.fit(Prospect{Start: StartNMF}, f.progress.Within(0, 1))
		OK(t, trial.startFactors())
		opened := visible.Guess
		c.Shrinkage, c.Line, visible.Guess = 0, 0.5, 0
		told := newQMFFit(visible, of.k, &c, fit.Run{Pool: p, Seed: 1, Progress: f.progress})
		if err := told.choose(); err != nil || told.startShare != f.startShare {
			t.Errorf("%s: told everything, %v of the epochs (%v), else %v", name, told.startShare, err,
				f.startShare)
		}
		if f.startShare != trial.startShare || !of.fits(f.startShare) {
			t.Errorf("%s: %v of the epochs, the trial says %v", name, f.startShare, trial.startShare)
		}
		least, want := math.Inf(1), 0.0
		for _, all.hidden.Guess = range Guesses {
			g := all.fit(Prospect{Start: StartNMF}, f.progress.Within(0, 1))
			g.random(g.cells, g.seed)
			_, held, err := g.endByHidden(g.cells, g.Loss, g.part(0, 1))
			if OK(t, err); held >= least || !g.few && all.hidden.Guess > 0 {
				break
			}
			least, want = held, all.hidden.Guess
		}
		if all.hidden.Guess = want; opened != want || visible.Guess != want || f.few != (of.x.Rows == 16) {
			t.Errorf("%s: a guess counts %v, told %v, want %v", name, opened, visible.Guess, want)
		}
		lossOf := func(f *qmfFit) float64 {
			sum, w, room := 0.0, make([]float64, f.np), make([]float64, f.np)
			for i := range f.d {
				f.reconstruct(w, i)
				sum += f.cells.HeldLoss(f.Loss, w, i, f.Loss.Least(), room)
			}
			return sum
		}
		Near(t, lossOf(trial), least*float64(trial.cells.HeldOut), 1e-12*lossOf(trial), "%s: the trial", name)
		held := func(share float64) float64 {
			f := all.fit(Prospect{Start: StartNMF}, f.progress.Within(0, 1))
			f.startShare = share
			OK(t, f.startFactors())
			return lossOf(f)
		}
		for _, other := range []float64{-0.1, 0.1, 0.25} {
			share := f.startShare + other
			if share > 0 && share <= MostShare && held(share) < held(f.startShare) {
				t.Errorf("%s: %v of the epochs predict better than %v", name, share, f.startShare)
			}
		}
	}
}

// TestTwins: fits that differ in the shrinkage alone have the same first maps and losses whether they are
// made together or one by one.
func TestTwins(t *testing.T) {
	Slow(t)
	x := toy(2, 24)
	for j := range x.Cols {
		x.Row(3)[j] = 2 // constant
	}
	signed := x.clone()
	for i := range signed.Data {
		signed.Data[i] -= 1
	}
	for _, of := range []struct {
		x    matrix
		loss divergence.Loss
	}{{x, divergence.KL}, {x, 1.5}, {signed, divergence.Frobenius}} {
		c := Defaults()
		c.Loss, c.Validation, c.Seed = of.loss, 0.1, 4
		visible := Must(cellsOf(of.x, &c))(t)
		visible.SetUnits(true)
		p := pool.New(2, visible.D)
		progress := fit.Silent(context.Background())
		begun := func(lambda float64) *qmfFit {
			f := newQMFFit(visible, 3, &c, fit.Run{Pool: p, Seed: 9, Progress: progress})
			f.origin, f.lambda = StartNMF, lambda
			OK(t, f.startFactors())
			f.beginSteps()
			return f
		}
		var apart, together []*qmfFit
		for _, lambda := range trialShrinkages {
			f := begun(lambda)
			OK(t, f.startMaps(&progress))
			apart, together = append(apart, f), append(together, begun(lambda))
		}
		OK(t, together[0].startMaps(&progress, together[1].inflation, together[2].inflation))
		for i, f := range together {
			want := apart[i]
			if !slices.Equal(f.Inc, want.Inc) || !slices.Equal(f.F, want.F) ||
				!slices.Equal(f.rowLosses, want.rowLosses) ||
				!slices.Equal(f.rowHeld, want.rowHeld) {
				t.Errorf("%v, shrinkage %v: the twin differs", of.loss, f.lambda)
			}
			for r := range f.Warm {
				if f.Warm[r].Valid != want.Warm[r].Valid ||
					!slices.Equal(f.Warm[r].Offset, want.Warm[r].Offset) {
					t.Errorf("%v, shrinkage %v: the twin of row %d starts its next solve elsewhere", of.loss,
						f.lambda, r)
				}
			}
			if i > 0 && slices.Equal(f.Inc, together[0].Inc) {
				t.Errorf("%v: shrinkage %v and %v are the same", of.loss, f.lambda, together[0].lambda)
			}
		}
		p.Close()
	}
}

// TestStartFromSome: where samples are many the NMF of a start begins with some of them, and comes as far in
// three tenths of the epochs as all epochs from random factors. A row whose values lie among the other
// samples has its sum all the same. Where the drawn samples say nothing of a row, or of all rows, the start
// is that from random factors.
func TestStartFromSome(t *testing.T) {
	const d, n, k, apart = 20, 320, 3, 7
	samples := StartSamples
	defer func() { StartSamples = samples }()
	src := random.Split(7, 1)
	draw := func() float64 { return -elem.Log(src.Float64()) }
	x := times(drawn(d, k, draw), drawn(k, n, draw))
	for i := range x.Data {
		x.Data[i] *= math.Exp(float64(i/n%5)) * (0.5 + src.Float64())
	}
	unseen := []int{7, 67} // not among the 80 samples that are drawn
	clear(x.Row(apart))
	holed, hidden, few := x.clone(), x.clone(), newMatrix(d, n)
	for i := range d {
		for j := range n {
			if src.Float64() < 0.2 && i != apart {
				holed.set(i, j, math.NaN())
			}
			if i == apart {
				hidden.set(i, j, math.NaN())
			}
		}
		for _, j := range unseen {
			few.set(i, j, 1+src.Float64())
		}
	}
	for _, m := range []matrix{x, holed, hidden} {
		for _, j := range unseen {
			m.set(apart, j, 3)
		}
	}
	for _, of := range []struct {
		name   string
		x      matrix
		loss   divergence.Loss
		origin Start
		most   float64 // of the loss from random factors; 1 where the start is the same
	}{
		{"KL", x, divergence.KL, StartNMF, 1.003},
		{"KL, scores", x, divergence.KL, StartScores, 1.003},
		{"KL, missing", holed, divergence.KL, StartNMF, 1.003},
		{"Frobenius", x, divergence.Frobenius, StartNMF, 1},
		{"a row hidden", hidden, divergence.KL, StartNMF, 1}, {"zeros", few, divergence.KL, StartNMF, 1},
	} {
		c := Defaults()
		c.Loss, c.Missing, c.Seed = of.loss, true, 4
		visible := Must(cellsOf(of.x, &c))(t)
		visible.SetUnits(true)
		p := pool.New(2, visible.D)
		progress := fit.Silent(context.Background())
		lossFrom := func(some float64) float64 {
			StartSamples = some
			f := newQMFFit(visible, k, &c, fit.Run{Pool: p, Seed: 9, Progress: progress})
			f.origin = of.origin
			OK(t, f.startFactors())
			y, as := f.cells, f.Loss
			if of.origin == StartScores {
				y, as = f.scored(), divergence.KL
			}
			w, room, sum, gap := make([]float64, f.np), make([]float64, n), 0.0, 0.0
			for i := range d {
				f.reconstruct(w, i)
				for j, v := range y.Row(room, i) {
					if v == v {
						sum += as.Divergence(v, w[j])
						if i == apart {
							gap += (v - w[j]) / 6
						}
					}
				}
			}
			if of.most > 1 && math.Abs(gap) > 0.5 {
				t.Errorf("%s, %v samples: the sum of row %d is off by %.2g of it", of.name, some, apart, gap)
			}
			return sum
		}
		all, few := lossFrom(math.Inf(1)), lossFrom(80)
		if (few == all) != (of.most == 1) || few > of.most*all {
			t.Errorf("%s: loss %v after a start from some samples, %v from random factors", of.name, few, all)
		}
		p.Close()
	}
}

// TestFollow: the NMF of a start follows that of a trial of the same rows, told its choices or not: it begins
// with the U of the trial and with rows of V that are even, and makes three tenths of the epochs. One of
// other rows or of nothing but zeros is not followed. One epoch is made at least.
func TestFollow(t *testing.T) {
	const n, k = 30, 2
	src := random.Split(5, 1)
	x := drawn(40, n, func() float64 { return elem.Exp(Normal(&src)) })
	for name, of := range map[string]struct {
		start  Start
		d      int
		alter  func(lead *factors)
		follow bool
	}{
		"open": {StartAuto, 40, nil, true}, "scores": {StartScores, 40, nil, true},
		"NMF":       {StartNMF, 40, nil, true},
		"other":     {StartScores, 40, func(lead *factors) { lead.d = 39 }, false},
		"zeros":     {StartNMF, 40, func(lead *factors) { clear(lead.u) }, false},
		"zero V":    {StartNMF, 40, func(lead *factors) { clear(lead.v) }, false},
		"as drawn":  {StartUniform, 40, nil, false},
		"many rows": {StartNMF, TrialRows + 1, nil, false},
	} {
		c := Defaults()
		if c.Start = of.start; of.start != StartAuto {
			c.Shrinkage, c.Line = 0, 0
		}
		y := x
		if of.d > x.Rows {
			y = drawn(of.d, n, func() float64 { return elem.Exp(Normal(&src)) })
		}
		visible := Must(cellsOf(y, &c))(t)
		visible.SetUnits(true)
		p := pool.New(1, visible.D)
		f := newQMFFit(visible, k, &c, fit.Run{Pool: p, Seed: 9, Progress: fit.Silent(context.Background())})
		OK(t, f.choose())
		if of.alter != nil {
			of.alter(f.lead)
		}
		lead := f.lead
		f.uniform(7)
		u, v := slices.Clone(f.u), slices.Clone(f.v)
		if f.follow() != of.follow || f.lead != nil {
			t.Errorf("%s: follows %v", name, !of.follow)
		}
		if of.follow {
			u = lead.u
			for c := range k {
				for j := range n {
					v[c*f.np+j] = elem.Mean(lead.rowV(c))
				}
			}
		}
		EqualAll(t, f.u, u, "%s: U", name)
		EqualAll(t, f.v, v, "%s: V", name)
		if of.follow { // three epochs of ten from there
			f.startShare, f.lead = 0.5, lead
			OK(t, f.startFactors())
			g := newQMFFit(visible, k, &c, fit.Run{Pool: p, Seed: 9, Progress: f.progress})
			copy(g.u, u)
			copy(g.v, v)
			g.raise(g.maxLogFactor)
			y, loss, share := g.cells, c.Loss, 0.15
			if f.origin == StartScores {
				y, loss, share = g.scored(), divergence.KL, 0.3
			}
			OK(t, g.approximate(y, loss, share, fit.Run{Pool: p, Seed: 9, Progress: f.progress}))
			EqualAll(t, f.u, g.u, "%s: U of the start", name)
			EqualAll(t, f.v, g.v, "%s: V of the start", name)
			before := slices.Clone(g.v) // of a share below one epoch
			OK(t, g.approximate(y, loss, 1e-3, fit.Run{Pool: p, Seed: 9, Progress: f.progress}))
			if slices.Equal(g.v, before) {
				t.Errorf("%s: a small share of the epochs is none", name)
			}
		}
		p.Close()
	}
}

// TestPlacedRows: where the NMF of scores is of some rows, the others have the U of least divergence given
// its V, by the weights of samples or cells.
func TestPlacedRows(t *testing.T) {
	few, placed := FewScores, RowsPlaced
	defer func() { FewScores, RowsPlaced = few, placed }()
	FewScores, RowsPlaced = 100*60, 128
	src := random.Split(3, 9)
	draw := func() float64 { return elem.Exp(Normal(&src) / 2) }
	x := times(drawn(200, 2, draw), drawn(2, 60, draw))
	light := func() float64 {
		if src.IntN(2) > 0 {
			return 1e-4
		}
		return 1
	}
	samples, cells := drawn(1, 60, light), drawn(200, 60, light)
	for i := 0; i < x.Rows; i += 2 { // the rows that are scored
		x.set(i, 9, math.NaN())
		cells.set(i, 9, 0)
	}
	for name, of := range map[string]struct {
		weights *fit.Weights
		at      func(i, j int) float64
	}{
		"none":    {nil, func(int, int) float64 { return 1 }},
		"samples": {&fit.Weights{Samples: samples.Data}, func(_, j int) float64 { return samples.Data[j] }},
		"cells":   {&fit.Weights{Cells: cells.Dense}, cells.at},
	} {
		s := Defaults()
		s.Start, s.Missing = StartScores, true
		rules := s.Rules()
		rules.Weights = of.weights
		visible := Must(fit.Read(fit.Source{Dense: x.Dense}, rules))(t)
		visible.SetUnits(true)
		f := newQMFFit(visible, 2, &s, silent(t, 1, 1))
		OK(t, f.startFactors())
		worst := 0.0
		y, w, room := f.scored(), make([]float64, f.np), make([]float64, x.Cols)
		for i := 1; i < x.Rows; i += 2 { // the rows that are placed
			f.reconstruct(w, i)
			for a, u := range f.rowU(i) {
				slope, sum := 0.0, 0.0
				for j, s := range y.Row(room, i) {
					if s == s {
						v := of.at(i, j) * f.rowV(a)[j]
						slope, sum = slope+v*(1-s/w[j]), sum+v
					}
				}
				if slope < 0 || u > 0 {
					worst = max(worst, math.Abs(slope)/sum)
				}
			}
		}
		if worst > 1e-6 {
			t.Errorf("%s: the loss of a row falls by a slope of %.2g at its U", name, worst)
		}
	}
}
