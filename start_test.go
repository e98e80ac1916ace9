package quantmf

// Tests of where fits start: scores, given factors, and the choice by prediction, against
// formulas written down here once more.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestStartScores: before the first epoch the factors of a fit from scores are those
// of an NMF of the normal scores of the rows, ties averaged, lifted above 0 and
// multiplied by the row's mean; entries far below a factor's mean are raised.
func TestStartScores(t *testing.T) {
	const d, n, k = 9, 17, 2
	r := random.Split(6, 1)
	x, scores := NewMat(d, n), NewMat(d, n)
	for i := range d {
		for j := range n {
			x.Set(i, j, math.Exp(float64(i))*float64(1+r.IntN(6)))
			if r.Float64() < 0.1 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	quantile := func(p float64) float64 { // Φ⁻¹ by halving
		lo, hi := -10.0, 10.0
		for range 200 {
			if mid := (lo + hi) / 2; math.Erfc(-mid/math.Sqrt2)/2 < p {
				lo = mid
			} else {
				hi = mid
			}
		}
		return lo
	}
	lift := max(3, 0.1-quantile(0.5/n))
	for i := range d {
		seen, mean := 0.0, 0.0
		for _, v := range x.Row(i) {
			if v == v {
				seen++
				mean += v
			}
		}
		mean /= seen
		for j, v := range x.Row(i) {
			below, equal := 0.0, 0.0
			for _, o := range x.Row(i) {
				if o < v {
					below++
				} else if o == v {
					equal++
				}
			}
			scores.Set(i, j, v)
			if v == v {
				scores.Set(i, j, mean*(quantile((below+equal/2)/seen)+lift))
			}
		}
	}
	q := Fitted(t, FitQMF, x, k, WithStart(StartScores), WithShrinkage(0), WithMissingValues(),
		WithEpochs(0))
	want := Fitted(t, FitNMF, scores, k, WithMissingValues(), WithUpdates(UpdatesMultiplicative),
		WithEpochs(100)) // few cells are seen
	for _, m := range []Mat{want.U, want.V} {
		low := 1e-3 * Mean(m.Data)
		for i := range m.Data {
			m.Data[i] = max(m.Data[i], low)
		}
	}
	NearAll(t, q.U.Data, want.U.Data, 1e-9*LargestOf(want.U.Data), "U")
	NearAll(t, q.V.Data, want.V.Data, 1e-9*LargestOf(want.V.Data), "V")
}

// TestUniformInit: the paper's form of a fit starts from the factors that it is given. From
// those that it would draw, exp of uniform numbers on [-1/2,1/2], it has the bits of a fit that draws them.
func TestUniformInit(t *testing.T) {
	x := first(toy(4), 20)
	const k = 3
	src := random.Split(7, 0)
	draw := func() float64 { return elem.Exp(src.Float64() - 0.5) }
	u, v := Drawn(x.Rows, k, draw), Drawn(k, x.Cols, draw)
	for _, method := range []Method{MethodQMF, MethodQMFQ} {
		fit := func(o ...FitOption) Model {
			return Fitted(t, By(method), x, k,
				append(o, WithEpochs(4), WithStart(StartUniform))...)
		}
		saved := func(m Model) string { return string(FileOf(t, m)) }
		drawn := saved(fit(WithSeed(7)))
		if saved(fit(WithSeed(7), WithInit(u, v))) != drawn {
			t.Errorf("%v: from the factors that it draws the fit is another", method)
		}
		w := u.Clone()
		w.Data[5] *= 2
		if saved(fit(WithSeed(7), WithInit(w, v))) == drawn {
			t.Errorf("%v: the fit does not depend on the factors that it is given", method)
		}
	}
}

// TestChoiceByPrediction: start, shrinkage and line that are left to the data are those of the trial that
// predicts its hidden cells best after its two epochs; or before them, where the fit then makes none, unless
// epochs are better for more rows by two standard errors. From both starts three pairs of shrinkage and line
// are tried, those two that predict them best before the first epoch; then, from the best start with the best
// line, the shrinkage of the others that predicts them better before the first epoch.
func TestChoiceByPrediction(t *testing.T) {
	Slow(t)
	late, later, rested, voted, src := 0, 0, 0, 0, random.Split(1, 9)
	for _, seed := range []uint64{0, 4, 12, 13, 16} {
		c := qmfDefaults()
		c.settleQMF(3)
		x := first(toy(int(seed)), 24)
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
		visible := Must(newCells(x, &c.settings))(t)
		p := pool.New(1, 1)
		t.Cleanup(p.Close)
		f := newQMFFit(visible, 3, &c.settings,
			fit.Run{Pool: p, Seed: seed, Progress: fit.Silent(t.Context())})
		type made struct {
			prospect
			before, after         float64
			rowsBefore, rowsAfter []float64
		}
		alone := func(s Start, lambda, line float64) made {
			all := Must(f.newTrials())(t)
			m := made{prospect: prospect{start: s, lambda: lambda, line: line}}
			trial := all.fit(m.prospect, f.progress.Within(0, 1))
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
		best := func() prospect {
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
				still.rests = true
				return still.prospect
			}
			return moved.prospect
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
			if b := best(); lambda != b.lambda {
				others = append(others, alone(b.start, lambda, b.line))
			}
		}
		if race(slices.MinFunc(others, before)) {
			later++
		}
		want := best()
		if want.rests {
			rested++
		}
		OK(t, f.choose())
		if got := (prospect{f.origin, f.lambda, f.line, f.rests}); got != want {
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
// FitNMF of a product with hardly any.
func TestStartEndedByHiddenCells(t *testing.T) {
	t.Parallel()
	noisy, k := noisyProduct()
	src := random.Split(2, 9)
	exact := Times(Drawn(60, 6, src.Float64), Drawn(6, 60, src.Float64))
	for name, of := range map[string]struct {
		x    Mat
		k    int
		fits func(share float64) bool
	}{
		"noise":   {noisy, 4 * k, func(share float64) bool { return share < 1 }},
		"product": {exact, 6, func(share float64) bool { return share > 1 }},
	} {
		c := qmfDefaults()
		c.start = StartNMF
		visible := Must(newCells(of.x, &c.settings))(t)
		p := pool.New(1, 1)
		t.Cleanup(p.Close)
		f := newQMFFit(visible, of.k, &c.settings,
			fit.Run{Pool: p, Seed: 1, Progress: fit.Silent(t.Context())})
		OK(t, f.choose())
		all, _ := f.newTrials()
		trial := all.fit(prospect{start: StartNMF}, f.progress.Within(0, 1))
		OK(t, trial.startFactors())
		c.shrinkage, c.line = 0, 0.5
		told := newQMFFit(visible, of.k, &c.settings, fit.Run{Pool: p, Seed: 1, Progress: f.progress})
		if err := told.choose(); err != nil || told.startShare != f.startShare {
			t.Errorf("%s: told everything, %v of the epochs (%v), else %v", name, told.startShare, err,
				f.startShare)
		}
		if f.startShare != trial.startShare || !of.fits(f.startShare) {
			t.Errorf("%s: %v of the epochs, the trial says %v", name, f.startShare, trial.startShare)
		}
		held := func(share float64) float64 {
			f := all.fit(prospect{start: StartNMF}, f.progress.Within(0, 1))
			f.startShare = share
			OK(t, f.startFactors())
			sum, w, room := 0.0, make([]float64, f.np), make([]float64, f.np)
			for i := range f.d {
				f.reconstruct(w, i)
				sum += f.cells.HeldLoss(f.loss, w, i, f.loss.Least(), room)
			}
			return sum
		}
		for _, other := range []float64{-0.1, 0.1, 0.25} {
			share := f.startShare + other
			if share > 0 && share <= mostShare && held(share) < held(f.startShare) {
				t.Errorf("%s: %v of the epochs predict better than %v", name, share, f.startShare)
			}
		}
	}
}

// noisyProduct draws a product of rank k with noise.
func noisyProduct() (noisy Mat, k int) {
	r := random.Split(8, 8)
	const d, n = 60, 40
	k = 2
	draw := func() float64 { return 5 * r.Float64() }
	noisy = Times(Drawn(d, k, draw), Drawn(k, n, draw))
	for i, w := range noisy.Data {
		noisy.Data[i] = max(w+5*Normal(&r), 0)
	}
	return noisy, k
}

// TestChoice: a fit that chooses start and shrinkage has the bits of one that is
// told them; it takes scores and free maps where curves are all that is wrong with
// a product, and shrinks maps where there is nothing but a product and noise. There it makes no epochs,
// unless it is told how far to go.
func TestChoice(t *testing.T) {
	ctx := context.Background()
	noisy, k := noisyProduct()
	for _, c := range []struct {
		name string
		x    Mat
		k    int
		want func(m *QMF) bool
	}{
		{"curves", first(toy(1), 80), 8,
			func(m *QMF) bool { return m.Start == StartScores && m.Shrinkage == 0 }},
		{"noise", noisy, k, func(m *QMF) bool { return m.Shrinkage > 0 && len(m.History) == 1 }},
	} {
		m := Fitted(t, FitQMF, c.x, c.k)
		if !c.want(m) {
			t.Errorf("%s: took %v and %v", c.name, m.Start, m.Shrinkage)
		}
		told := Fitted(t, FitQMF, c.x, c.k, WithStart(m.Start), WithShrinkage(m.Shrinkage),
			WithLine(m.Line), WithEpochs(len(m.History)-1))
		a, _ := m.MarshalBinary()
		b, _ := told.MarshalBinary()
		EqualAll(t, a, b, "%s: told what was chosen, the fit is another", c.name)
		given, err := FitQMF(ctx, c.x, c.k, WithInit(m.U, m.V), WithEpochs(1))
		if err != nil || given.Start != StartAuto || given.Shrinkage != 0 {
			t.Errorf("%s: from given factors %v, %v, %v", c.name, given.Start, given.Shrinkage, err)
		}
	}
	for what, far := range map[string]FitOption{"epochs": WithEpochs(4), "patience": WithPatience(5),
		"validation": WithValidation(0.1)} {
		if m, err := FitQMF(ctx, noisy, k, far); err != nil || len(m.History) != 5 {
			t.Errorf("noise, told its %s: %v, %v", what, m.History, err)
		}
	}
}

// TestChoiceOfNothing: where there are too few cells to hide a tenth of them, a fit starts from scores with
// free maps, and says so.
func TestChoiceOfNothing(t *testing.T) {
	x := Must(MatOf([]float64{1, 2}, []float64{3, 5}))(t)
	for want, opts := range map[Start][]FitOption{StartScores: nil, StartNMF: {WithStart(StartNMF)},
		StartUniform: {WithStart(StartUniform)}} {
		if m, err := FitQMF(context.Background(), x, 1, append(opts, WithEpochs(1))...); err != nil ||
			m.Start != want || m.Shrinkage != 0 {
			t.Errorf("start %v: %v, %+v", want, err, m)
		}
	}
}

// TestTwins: fits that differ in the shrinkage alone have the same first maps and losses whether they are
// made together or one by one.
func TestTwins(t *testing.T) {
	Slow(t)
	x := first(toy(2), 24)
	for j := range x.Cols {
		x.Row(3)[j] = 2 // constant
	}
	signed := x.Clone()
	for i := range signed.Data {
		signed.Data[i] -= 1
	}
	for _, of := range []struct {
		x    Mat
		loss Loss
	}{{x, KL}, {x, Beta(1.5)}, {signed, Frobenius}} {
		c := qmfDefaults()
		c.loss, c.validation, c.seed = divergence.Loss(of.loss), 0.1, 4
		visible := Must(newCells(of.x, &c.settings))(t)
		visible.SetUnits(true)
		p := pool.New(2, visible.D)
		progress := fit.Silent(context.Background())
		begun := func(lambda float64) *qmfFit {
			f := newQMFFit(visible, 3, &c.settings, fit.Run{Pool: p, Seed: 9, Progress: progress})
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
	samples := startSamples
	defer func() { startSamples = samples }()
	src := random.Split(7, 1)
	draw := func() float64 { return -elem.Log(src.Float64()) }
	x := Times(Drawn(d, k, draw), Drawn(k, n, draw))
	for i := range x.Data {
		x.Data[i] *= math.Exp(float64(i/n%5)) * (0.5 + src.Float64())
	}
	unseen := []int{7, 67} // not among the 80 samples that are drawn
	clear(x.Row(apart))
	holed, hidden, few := x.Clone(), x.Clone(), NewMat(d, n)
	for i := range d {
		for j := range n {
			if src.Float64() < 0.2 && i != apart {
				holed.Set(i, j, math.NaN())
			}
			if i == apart {
				hidden.Set(i, j, math.NaN())
			}
		}
		for _, j := range unseen {
			few.Set(i, j, 1+src.Float64())
		}
	}
	for _, m := range []Mat{x, holed, hidden} {
		for _, j := range unseen {
			m.Set(apart, j, 3)
		}
	}
	for _, of := range []struct {
		name   string
		x      Mat
		loss   Loss
		origin Start
		most   float64 // of the loss from random factors; 1 where the start is the same
	}{
		{"KL", x, KL, StartNMF, 1.003}, {"KL, scores", x, KL, StartScores, 1.003},
		{"KL, missing", holed, KL, StartNMF, 1.003},
		{"Frobenius", x, Frobenius, StartNMF, 1},
		{"a row hidden", hidden, KL, StartNMF, 1}, {"zeros", few, KL, StartNMF, 1},
	} {
		c := qmfDefaults()
		c.loss, c.missing, c.seed = divergence.Loss(of.loss), true, 4
		visible := Must(newCells(of.x, &c.settings))(t)
		visible.SetUnits(true)
		p := pool.New(2, visible.D)
		progress := fit.Silent(context.Background())
		lossFrom := func(some float64) float64 {
			startSamples = some
			f := newQMFFit(visible, k, &c.settings, fit.Run{Pool: p, Seed: 9, Progress: progress})
			f.origin = of.origin
			OK(t, f.startFactors())
			y, as := f.cells, f.loss
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

// TestNMFFromSome: half of the epochs of an NMF that begins with some of many samples end where all of them
// end from random factors. It has the same bits for any number of workers and over shards; where it is
// stopped before its first epoch it has factors. The progress of a start counts the epochs of both NMFs, and
// ends at 1. MemoryOf has the samples that are drawn.
func TestNMFFromSome(t *testing.T) {
	const d, n, k = 20, 320, 3
	samples := startSamples
	defer func() { startSamples = samples }()
	startSamples = 80
	src := random.Split(8, 1)
	draw := func() float64 { return -elem.Log(src.Float64()) }
	x := Times(Drawn(d, k, draw), Drawn(k, n, draw))
	for i := range x.Data {
		x.Data[i] *= 0.5 + src.Float64()
	}
	fit := func(opts ...FitOption) *NMF {
		m := Fitted(t, FitNMF, x, k, opts...)
		return m
	}
	for _, of := range []struct {
		opts   []FitOption
		epochs int
	}{{nil, 10}, {[]FitOption{WithUpdates(UpdatesMultiplicative)}, 50}} {
		some, all := fit(of.opts...), fit(append(of.opts, WithStart(StartUniform))...)
		if len(some.History) != of.epochs+1 || len(all.History) != 2*of.epochs+1 ||
			some.History[of.epochs] > 1.0005*all.History[2*of.epochs] {
			t.Errorf("%v: loss %v after %d epochs, %v after %d from random factors", of.opts,
				some.History[len(some.History)-1], len(some.History)-1,
				all.History[len(all.History)-1], len(all.History)-1)
		}
		if len(fit(append(of.opts, WithEpochs(1))...).History) != 2 {
			t.Errorf("%v: a given number of epochs is another", of.opts)
		}
	}
	want := FileOf(t, fit(WithWorkers(1)))
	if !bytes.Equal(FileOf(t, fit(WithWorkers(3))), want) {
		t.Error("three workers make another model")
	}
	// of some, and three tenths as many of all
	for method, epochs := range map[Method]int{MethodNMF: 20, MethodQMF: 26} {
		var done []float64
		opts := []FitOption{WithEpochs(1), WithProgress(func(p Progress) error {
			if p.Phase == PhaseFactors {
				done = append(done, p.Done)
			}
			return nil
		})}
		if method == MethodQMF {
			opts = append(opts, WithStart(StartScores), WithShrinkage(0), WithLine(0))
		}
		Fitted(t, By(method), x, k, opts...)
		if len(done) != 1+epochs || !slices.IsSorted(done) || done[0] != 0 ||
			math.Abs(done[epochs]-1) > 1e-12 {
			t.Errorf("%v: progress %v", method, done)
		}
	}
	few, _ := MemoryOf(MethodNMF, d, n, k, WithEpochs(20))
	if none, err := MemoryOf(MethodNMF, d, n, k, WithEpochs(20), WithStart(StartUniform)); err != nil ||
		few.Fit < none.Fit {
		t.Errorf("memory of an NMF from some samples: %d bytes, from random factors %d, %v", few.Fit,
			none.Fit, err)
	}
	enough := errors.New("enough")
	m, err := FitNMF(t.Context(), x, k, WithProgress(func(p Progress) error {
		if p.Phase == PhaseFactors && p.Done > 0 {
			return enough
		}
		return nil
	}))
	if !errors.Is(err, enough) || slices.Min(m.U.Data) <= 0 || slices.Min(m.V.Data) <= 0 {
		t.Errorf("stopped at the start: %v, %v", m, err)
	}
}

// TestTrialSample: the cells that the choice looks at are those of x' in random rows and columns, which are
// in their order; there are as many columns as make up the number of visible cells; no row and no column
// is without a visible cell.
func TestTrialSample(t *testing.T) {
	Slow(t)
	r := random.Split(3, 3)
	x := NewMat(300, 700)
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, float64(1000*i+j)-5000)
		}
	}
	holes := x.Clone()
	for i := range holes.Rows {
		for j := range holes.Cols {
			if r.Float64() < 0.9 || j%7 == 2 && i != 50 || i%9 == 4 && j > 0 {
				holes.Set(i, j, math.NaN())
			}
		}
		holes.Set(i, 0, 1)
	}
	for j := range holes.Cols {
		holes.Set(50, j, 2)
	}
	listed := NewMat(300, 700)
	for i := range listed.Rows {
		for j := (7 * i) % 5; j < listed.Cols; j += 5 {
			listed.Set(i, j, float64(1000*i+j))
		}
	}
	for _, of := range []struct {
		name             string
		x                Rows
		validation       float64
		rows, cells      int
		least, most      int // visible cells
		fewRows, fewCols bool
	}{
		{"all", x, 0, 300, 300 * 700, 300 * 700, 300 * 700, false, false},
		{"rows", x, 0, 100, 100 * 700, 100 * 700, 100 * 700, true, false},
		{"columns", x, 0, 300, 30000, 30000, 30000, false, true},
		{"rows and columns", x, 0, 100, 10001, 10100, 10100, true, true},
		{"read by rows", struct{ Rows }{x}, 0, 100, 10001, 10100, 10100, true, true},
		{"held out", x, 0.3, 100, 10000, 9000, 11000, true, true},
		{"missing", holes, 0, 100, 3000, 2000, 4000, true, true},
		{"missing, read by rows, held out", struct{ Rows }{holes}, 0.3, 100, 1500, 1000, 2000, true, true},
		{"listed", SparseOf[float64](t, listed), 0, 100, 10001, 10100, 10100, true, true},
		{"listed, rows", SparseOf[float32](t, listed), 0, 100, 100 * 700, 100 * 700, 100 * 700, true, false},
		{"listed, held out", SparseOf[float64](t, listed), 0.3, 100, 10000, 9000, 11000, true, true},
	} {
		c := qmfDefaults()
		c.loss, c.missing, c.validation = divergence.Frobenius, true, of.validation
		visible := Must(newCells(of.x, &c.settings))(t)
		visible.SetUnits(true)
		var before []float64
		for seed := range uint64(2) {
			p, src := pool.New(int(1+seed%3), visible.D), random.Split(seed, 3)
			source, _, rows := visible.Sample(of.rows, of.cells, &src, p)
			p.Close()
			sampled := source.Matrix()
			if ok := source.Sparse != nil; ok != (visible.NonZeros() != nil) ||
				ok != (of.name == "listed" || of.name == "listed, rows") {
				t.Errorf("%s: the sample is listed: %v", of.name, ok)
			}
			some := NewMat(sampled.Dims())
			for i := range some.Rows {
				OK(t, sampled.ReadRow(some.Row(i), i))
			}
			if len(rows) != some.Rows || some.Rows > of.rows || of.fewRows != (some.Rows < x.Rows) ||
				of.fewCols != (some.Cols < x.Cols) {
				t.Fatalf("%s: %s, %d rows", of.name, some.size(), len(rows))
			}
			if !slices.IsSorted(rows) {
				t.Errorf("%s: rows are not in their order", of.name)
			}
			count, inRow, inCol, room := 0, make([]int, some.Rows), make([]int, some.Cols),
				make([]float64, x.Cols)
			last := -1
			for j := range some.Cols { // each is found among the columns of x' after the one before
				same := func(at int) bool {
					for i, from := range rows {
						v, w := some.At(i, j), visible.Row(room, from)[at]
						if v != w && (v == v || w == w) {
							return false
						}
					}
					return true
				}
				for last++; last < x.Cols && !same(last); last++ {
				}
				for i := range rows {
					if v := some.At(i, j); v == v {
						count, inRow[i], inCol[j] = count+1, inRow[i]+1, inCol[j]+1
					}
				}
			}
			if last >= x.Cols {
				t.Errorf("%s: there is a column that x' has not, or out of order", of.name)
			}
			if slices.Contains(inRow, 0) || slices.Contains(inCol, 0) {
				t.Errorf("%s: a row or a column is empty", of.name)
			}
			if count < of.least || count > of.most {
				t.Errorf("%s: %d visible cells", of.name, count)
			}
			if of.fewCols && slices.Equal(some.Row(0), before) {
				t.Errorf("%s: another seed takes the same columns", of.name)
			}
			before = slices.Clone(some.Row(0))
		}
	}
}

// TestInitialFactors: they are taken as they are, or refused where the largest is; a small one among them is
// no matter.
func TestInitialFactors(t *testing.T) {
	ctx := context.Background()
	x := near1(7, 5, 6)
	fill := func(rows, cols int, v float64) Mat {
		m := NewMat(rows, cols)
		for i := range m.Data {
			m.Data[i] = v * (1 + float64(i%3)/8)
		}
		return m
	}
	for method := range MethodBQMF {
		fit := func(u Mat) (Model, error) {
			return Fit(ctx, method, x, 2, append(quick(method), WithInit(u, fill(2, 6, 1)), WithEpochs(0))...)
		}
		for _, v := range []float64{1e-310, 1e-200, 1e-140, 1e-40, 1, 1e20, 1e140} {
			u := fill(5, 2, 1)
			u.Set(2, 1, v)
			for c := range 2 {
				for i := range 5 {
					if v < 1 {
						u.Set(i, c, v)
					}
				}
			}
			m, err := fit(u)
			if v == 1e-40 || v == 1 || v == 1e20 {
				if err != nil {
					t.Errorf("%v, %v: %v", method, v, err)
					continue
				}
				allFinite(t, method.String(), m, x)
				if n, is := m.(*NMF); is && !slices.Equal(n.U.Data, u.Data) {
					t.Errorf("%v starts from %v, not %v", method, n.U, u)
				}
				if q, is := m.(*QMF); is && v != 1e20 { // the others are raised there
					NearAll(t, q.U.Data, u.Data, 1e-15*v, "U")
				}
				continue
			}
			var data *DataError
			if !errors.As(err, &data) || data.Row < 0 || data.Col < 0 {
				t.Errorf("%v takes an initial factor of %v: %v", method, v, err)
			}
			if v < 1 {
				u.Set(0, 0, 1)
				if m, err = fit(u); err != nil {
					t.Errorf("%v, %v beside 1: %v", method, v, err)
					continue
				}
				allFinite(t, method.String(), m, x)
			}
		}
	}
}

// TestScoresOfRows: the NMF of the scores of some rows, and the others placed by it, end near that of all of
// them, with the same bits for any number of workers, a sample without cells in the rows included, and where
// weights say which samples or cells are of another matrix. Memory does not grow as all scores do.
func TestScoresOfRows(t *testing.T) {
	few, placed := fewScores, rowsPlaced
	defer func() { fewScores, rowsPlaced = few, placed }()
	rowsPlaced = 128 // of 200
	clean, _ := Bent(200, 60, 2, 0.1, 3)
	other, _ := Bent(200, 60, 2, 0.1, 4)
	samples, cells, src := make([]float64, clean.Cols), NewMat(200, 60), rand.New(rand.NewPCG(1, 2))
	for j := range samples {
		samples[j] = 1
		if j%3 > 0 {
			samples[j] = 1e-4
		}
	}
	for i := range cells.Data {
		cells.Data[i] = 1
		if src.IntN(2) > 0 {
			cells.Data[i] = 1e-4
		}
	}
	for _, c := range []struct {
		name   string
		opts   []FitOption
		weight func(i, j int) float64
	}{
		{"the same weights", nil, func(int, int) float64 { return 1 }},
		{"samples", []FitOption{WithSampleWeights(samples)}, func(_, j int) float64 { return samples[j] }},
		{"cells", []FitOption{WithCellWeights(cells)}, cells.At},
	} {
		x := clean.Clone()
		for i := range x.Rows {
			for j := range x.Cols {
				if c.weight(i, j) < 1 {
					x.Set(i, j, other.At(i, j))
				}
			}
		}
		for i := 0; i < x.Rows; i += 2 { // the rows that are scored
			x.Set(i, 9, math.NaN())
			cells.Set(i, 9, 0)
		}
		opts := append(c.opts, WithStart(StartScores), WithShrinkage(0), WithLine(0), WithEpochs(0),
			WithMissingValues())
		of := func(cells, workers int) *QMF {
			fewScores = cells
			return Fitted(t, FitQMF, x, 2, append(opts, WithWorkers(workers))...)
		}
		all, some := of(1<<18, 2), of(100*60, 1)
		t.Logf("%s: loss %v from some rows, %v from all", c.name, some.History[0], all.History[0])
		if some.History[0] == all.History[0] || some.History[0] > 1.4*all.History[0] {
			t.Errorf("%s: loss %v from some rows, %v from all", c.name, some.History[0], all.History[0])
		}
		EqualAll(t, FileOf(t, some), Must(of(100*60, 7).MarshalBinary())(t),
			"%s: seven workers have other bits than one", c.name)
		f := fitOf(t, x, 2, func(of *config) {
			for _, o := range opts {
				o.setting().check(of)
			}
		})
		OK(t, f.startFactors())
		worst := 0.0
		y, w, room := f.scored(), make([]float64, f.np), make([]float64, x.Cols)
		for i := 1; i < x.Rows; i += 2 { // the rows that are placed
			f.reconstruct(w, i)
			for a, u := range f.rowU(i) {
				slope, sum := 0.0, 0.0
				for j, s := range y.Row(room, i) {
					if s == s {
						v := c.weight(i, j) * f.rowV(a)[j]
						slope, sum = slope+v*(1-s/w[j]), sum+v
					}
				}
				if slope < 0 || u > 0 {
					worst = max(worst, math.Abs(slope)/sum)
				}
			}
		}
		if worst > 1e-6 {
			t.Errorf("%s: the loss of a row falls by a slope of %.2g at its U", c.name, worst)
		}
	}
	fewScores, rowsPlaced = few, placed
	told := func(start Start) int64 {
		return Must(MemoryOf(MethodQMF, 20000, 1000, 10, WithStart(start), WithWorkers(2)))(t).Fit
	}
	if scores, own := told(StartScores), told(StartNMF); scores > own+16<<20 {
		t.Errorf("scores take %d bytes, the NMF of x %d", scores, own)
	}
}
