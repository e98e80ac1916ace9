package qmf

// This file holds where a fit of QMF starts: its first factors and quantiles. A fit that
// starts near a minimum needs fewer epochs. In noisy data a fit also stays near its start,
// so how well it predicts unseen cells depends on the start.
//
// # Factors
//
// StartNMF takes the NMF of X itself; where X has negative values, of X less the lowest value of each row. It
// is ended by hidden cells (below). StartScores takes the NMF of the normal scores of the rows,
// Φ⁻¹((rank-1/2)/n) lifted above 0. Both NMFs are those of FitNMF's defaults: 20 epochs of Newton's method
// under the losses that it takes by default, else 100 multiplicative updates. An increasing map of a row does
// not change its scores, so the maps that T has to learn do not disturb this start. A row of scores is
// multiplied by the row's mean, so that rows weigh as they do in the divergence. Of more than 2^18 cells, the
// NMF is of the scores of rows that make as many, evenly spread, and gives V; the U of each other row is that
// of the least divergence of its scores given V.
//
// Under KL, which is that of scores, too, the NMF of 8192 samples or more begins with that of 2048 of them,
// drawn at random: with its U, and for each sample with the mean of its V. Three tenths of the epochs then
// come as far as all of them from random factors (docs/measurements/defaults.md). FitNMF begins in this way,
// too (docs/measurements/nmf.md).
//
// # Quantiles
//
// The weights b = softmax F of the levels are the mean of two distributions: the uniform one, and the
// share of the samples that lie nearest to each target, a sample being divided between its two
// neighbouring targets. So a heavy tail has levels of its own.
//
// q starts from the empirical quantiles of the row at the middles of the levels, and then takes 20 EM
// steps (monotone.go) at the plan of the starting UV. Before the first epoch the fit has about
// the loss of the NMF itself.
//
// # The choice
//
// Which of the two starts suits, how much the maps should be shrunk, and how much of a line they should have
// (line.go), depends on the data: counts with heavy tails are best fitted from their own NMF by free maps,
// logarithms from scores by straighter maps, a product with little noise by lines. What of start, λ and τ is
// left open is tried on some cells, with a tenth of them hidden: first the pairs of λ and τ of firstTrials
// from each start, of which the two that predict the hidden cells best before the first epoch make two
// epochs; then, from the start and with the τ of the better of them, the better of the other two λ likewise.
// The fit takes what predicts the hidden cells best (docs/measurements/defaults.md). Where that is a trial
// before its epochs, and the number of epochs is left to the data, the fit makes none: it stays at the start,
// which with a line is nearly the NMF that hidden cells have ended. Epochs overfit where few cells rule the
// loss, as in few rows of mixed units. They are made all the same where they predict the hidden cells of so
// many more rows better than worse that it is no chance, by two standard errors of the sign test: a few rows
// that have most of the loss do not keep the others from their maps.
//
// The NMF of StartNMF, in trials and where it is told, ends where the hidden cells say: after the epoch at
// which their loss was least, as soon as it has not fallen in three tenths of the epochs of FitNMF, and after
// four times as many at most. On tables with little noise more epochs are worth as much as the maps, on
// others fewer. The fit then makes as many. Where few cells are seen and others are missing (FewSeen), it is
// by multiplicative updates, and these cells say, too, what a missing cell counts, with the mean of its row
// as a guess. A FitNMF of a matrix with missing cells is ended likewise.
//
// Where the trials have every row, the NMF of the start follows theirs, and makes three tenths of these
// epochs. It has the U of the trial, while each row of V begins at its mean. Unseen cells are then predicted
// better than from random factors (docs/measurements/defaults.md). So a fit that is told what another has
// chosen has the same trial, of its start alone.
//
// These cells are those of up to 512 random rows in as many random columns as make up 2^16 visible cells.
// λ counts samples, whatever n is, so that what suits some of the samples suits all of them. Rows and columns
// of which none of these cells is visible are left out. The choice does not read cells that are hidden from
// the fit itself.

import (
	"cmp"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/order"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/transport"
)

// Begin fills factors and quantiles, and returns the losses before the first epoch.
func (f *qmfFit) Begin() (fit.Losses, error) {
	if err := f.choose(); err != nil {
		f.beginSteps()
		return fit.Losses{}, err
	}
	return f.begun()
}

// begun is Begin of a fit whose choices are made.
func (f *qmfFit) begun() (fit.Losses, error) {
	err := f.startFactors()
	f.beginSteps()
	if err != nil {
		return fit.Losses{}, err
	}
	err = f.startMaps(&f.progress)
	return f.losses(), err
}

// losses returns the losses of the start.
func (f *qmfFit) losses() fit.Losses {
	return fit.Losses{Visible: f.meanLoss(), Held: f.meanHeld(), Penalty: f.regularity(), Rested: f.rests}
}

// openChoices returns the starts that are open, the pairs of λ and τ to be tried first, and all λ. λ and τ
// that are not open are the same in all.
func (f *qmfFit) openChoices() (starts []Start, first []Prospect, lambdas []float64) {
	starts = []Start{f.origin}
	if f.origin == StartAuto {
		starts = []Start{StartScores, StartNMF}
	}
	lambdas = []float64{max(f.lambda, 0)}
	if f.lambda < 0 && f.MayHaveLine() {
		lambdas = trialShrinkages[:]
	}
	for _, c := range firstTrials {
		if len(lambdas) == 1 {
			c.Lambda = lambdas[0]
		}
		if f.Settings.Line >= 0 || !f.MayHaveLine() {
			c.Line = f.line
		}
		if !slices.Contains(first, c) {
			first = append(first, c)
		}
	}
	return starts, first, lambdas
}

// choose sets what of start, shrinkage and line is left to the data.
func (f *qmfFit) choose() error {
	starts, first, lambdas := f.openChoices()
	f.lambda = max(f.lambda, 0)
	if f.Init {
		if f.Settings.Line < 0 && f.MayHaveLine() {
			f.line = lineOfInit
		}
		return nil
	}
	chosen := f.Settings.Chosen
	f.origin, f.line = starts[0], first[0].Line
	told := len(starts)*len(first)*len(lambdas) == 1
	if chosen != nil && chosen.Made {
		f.origin, f.lambda, f.line, told = chosen.Start, chosen.Lambda, chosen.Line, true
		f.rests = chosen.Rests && f.MayRest
	}
	if told && !f.leads() {
		return nil
	}
	if err := f.progress.Enter(fit.PhaseChoice); err != nil {
		return err
	}
	t, err := f.newTrials()
	if t == nil || err != nil {
		return err
	}
	if told {
		trial := t.fit(Prospect{Start: f.origin, Lambda: f.lambda, Line: f.line}, f.progress.Within(0, 1))
		err := trial.startFactors()
		f.startShare, f.lead, f.cells.Guess = trial.startShare, trial.factors, t.hidden.Guess
		return err
	}
	// The shares of the work after which the first trials have maps and epochs, and the last ones maps.
	firstMaps, firstEpochs, lastMaps := 0.6, 0.8, 0.9
	if len(lambdas) == 1 {
		firstMaps, firstEpochs = 0.75, 1
	}
	each := firstMaps / float64(len(starts))
	for s, start := range starts {
		open := slices.Clone(first)
		for i := range open {
			open[i].Start = start
		}
		if err := t.from(open, f.progress.Within(float64(s)*each, float64(s+1)*each)); err != nil {
			return err
		}
	}
	if err := t.race(2, f.progress.Within(firstMaps, firstEpochs)); err != nil {
		return err
	}
	best, _ := t.chosen()
	var open []Prospect
	for _, lambda := range lambdas {
		if lambda != best.lambda {
			open = append(open, Prospect{Start: best.origin, Lambda: lambda, Line: best.line})
		}
	}
	if err := t.from(open, f.progress.Within(firstEpochs, lastMaps)); err != nil {
		return err
	}
	if err := t.race(1, f.progress.Within(lastMaps, 1)); err != nil {
		return err
	}
	best, f.rests = t.chosen()
	f.startShare, f.lead, f.cells.Guess = t.share, t.begun[best.origin], t.hidden.Guess
	f.origin, f.lambda, f.line = best.origin, min(best.lambda, f.maxShrinkage), best.line
	if chosen != nil {
		*chosen = Choice{Prospect{f.origin, f.lambda, f.line, f.rests}, true}
	}
	return nil
}

// leads tells whether a fit whose choices are told has a trial: hidden cells end the NMF of StartNMF, and
// that of the scores may follow the trial's.
func (f *qmfFit) leads() bool {
	scores := f.origin == StartScores && f.d <= TrialRows && f.scoredRows() == f.d
	return f.origin == StartNMF || scores && someSamples(divergence.KL, float64(f.d), float64(f.n)) == 0
}

// reserve takes what Begin takes beside the fit: a trial, where there may be one, then the start.
func (f *qmfFit) reserve() {
	starts, first, lambdas := f.openChoices()
	told := len(starts)*len(first)*len(lambdas) == 1
	f.origin = starts[0]
	if !f.Init && (!told || f.leads()) && min(f.d, f.n) > 2 { // else no cell can be hidden
		done := f.pool.Part()
		t, _ := f.newTrials()
		made := make([]*qmfFit, max(len(starts)*len(first), len(lambdas)))
		for i := range made {
			made[i] = t.fit(first[0], f.progress)
		}
		for range starts {
			newFactors(f.pool.Memory, made[0].d, made[0].n, f.k) // with which trials began
		}
		for _, made[0].origin = range starts {
			made[0].reserveFactors()
		}
		made[0].reserveMaps()
		done()
		newFactors(f.pool.Memory, made[0].d, made[0].n, f.k) // the lead
	}
	for _, f.origin = range starts {
		f.reserveFactors()
	}
	f.reserveMaps()
}

// reserveFactors takes what startFactors takes.
func (f *qmfFit) reserveFactors() {
	defer f.pool.Part()()
	x, loss, a := f.cells, f.Loss, f.pool.Memory
	switch {
	case f.Init || f.origin == StartUniform:
		return
	case f.origin == StartScores:
		if rows := f.scoredRows(); rows < f.d {
			_ = f.fromRows(rows) // which only counts, without an error
			return
		}
		x, loss = f.scored(), divergence.KL
	case f.startShare == 0:
		for range 3 { // the first and the best ones of approach
			newFactors(a, f.d, f.n, f.k)
		}
	}
	f.reserveSome(x, loss, someSamples(loss, float64(f.d), float64(f.n)), f.pool)
	f.approximate(x, loss, MostShare, f.part(0, 1))
}

// reserveMaps takes what startMaps takes.
func (f *qmfFit) reserveMaps() {
	defer f.pool.Part()()
	for range f.pool.Workers() {
		new(order.Room).Resize(f.pool.Memory, f.n)
	}
}

// reserveSome takes what ofSome takes.
func (f *factors) reserveSome(x *fit.Cells, loss divergence.Loss, samples float64, p *pool.Pool) {
	if samples == 0 {
		return
	}
	defer p.Part()()
	x.CountSample(p.Memory, f.d, int(samples))
	g := newFactors(p.Memory, f.d, int(samples), f.k)
	g.approximate(x, loss, 1, fit.Run{Pool: p})
}

// trials are short fits of some cells, with a tenth of them hidden.
type trials struct {
	of       *qmfFit
	settings Settings
	hidden   *fit.Cells
	made     []*qmfFit          // those that have maps and wait for their epochs
	begun    map[Start]*factors // with which the trials of a start began
	share    float64            // startShare of StartNMF
	best     [2]*qmfFit         // that predict the hidden cells best before and after their epochs,
	least    [2]float64         // their loss there,
	rows     []float64          // and that of each row before the epochs
}

// newTrials draws the cells of the trials, nil where there are too few to hide a tenth of them.
func (f *qmfFit) newTrials() (*trials, error) {
	src := random.Split(f.seed, 3)
	const share = 0.1 // of the visible cells, which is hidden from the trials
	t := &trials{of: f, settings: *f.Settings, begun: map[Start]*factors{}}
	c := &t.settings
	c.Epochs, c.Validation, c.Missing, c.Patience, c.Seed = trialEpochs, share, true, 0, src.Uint64()
	if a := f.pool.Memory; a.Dry() {
		t.hidden = f.cells.NotSampled(a, TrialRows, TrialCells, f.Rules(), c.Rules())
		return t, nil
	}
	some, weights, rows := f.cells.Sample(TrialRows, TrialCells, &src, f.pool)
	if err := f.pool.Err(); err != nil {
		return nil, err
	}
	rules, err := c.Rules(), error(nil)
	rules.Weights = weights
	if t.hidden, err = fit.Read(some, rules); err != nil {
		return nil, nil
	}
	t.hidden.Pool = f.pool
	t.hidden.Units = f.cells.Units.Pick(rows)
	if c.Fixed > 0 {
		c.FixedU = fit.NewDense(len(rows), c.Fixed)
		for r, i := range rows {
			copy(c.FixedU.Row(r), f.FixedU.Row(i))
		}
	}
	return t, nil
}

// from makes the trials of some choices from one start up to their first maps. They begin with the same
// factors.
func (t *trials) from(open []Prospect, progress fit.Progress) error {
	if len(open) == 0 {
		return nil
	}
	const factorsDone = 0.7 // the share of the work after which the factors are there
	var twins []*inflation
	for _, c := range open {
		trial := t.fit(c, progress.Within(0, factorsDone))
		t.made, twins = append(t.made, trial), append(twins, trial.inflation)
	}
	made := t.made[len(t.made)-len(open):]
	begun := t.begun[open[0].Start]
	if begun == nil {
		if err := made[0].startFactors(); err != nil {
			return err
		}
		begun = made[0].twin()
		t.begun[open[0].Start], t.share = begun, max(t.share, made[0].startShare)
	}
	for _, trial := range made {
		trial.take(begun)
		trial.beginSteps()
	}
	maps := progress.Within(factorsDone, 1)
	return twins[0].startMaps(&maps, twins[1:]...)
}

// race makes the epochs of the most trials that predict best before them, and drops the others.
// Each may be the best before its epochs, where a fit may rest, and after them.
func (t *trials) race(most int, progress fit.Progress) error {
	slices.SortStableFunc(t.made, func(a, b *qmfFit) int { return cmp.Compare(a.meanHeld(), b.meanHeld()) })
	made := t.made[:min(most, len(t.made))]
	t.made = nil
	for i, trial := range made {
		part := progress.Within(float64(i)/float64(len(made)), float64(i+1)/float64(len(made)))
		// Of a trial no state is kept, and its loss on hidden cells is evaluated at its end alone.
		a := &fit.Attempt{Fit: trial, Journal: fit.NewJournal(t.settings.Patience, t.settings.Epochs, false)}
		a.Note(trial.losses())
		if t.take(trial, 0) {
			t.rows = slices.Clone(trial.rowHeld)
		}
		if err := a.Advance(&part, t.settings.Epochs, nil); err != nil {
			return err
		}
		trial.run(evaluateRows, trial.d)
		if err := t.of.pool.Err(); err != nil {
			return err
		}
		t.take(trial, 1)
	}
	return nil
}

// take takes a trial that predicts the hidden cells better than the best one before (0) or after (1) epochs.
func (t *trials) take(trial *qmfFit, after int) bool {
	held := trial.meanHeld()
	better := t.best[after] == nil || held < t.least[after]
	if better {
		t.best[after], t.least[after] = trial, held
	}
	return better
}

// chosen returns the best trial, and whether it is that before its epochs.
func (t *trials) chosen() (best *qmfFit, rests bool) {
	better := func(i int) int { return cmp.Compare(t.rows[i], t.best[1].rowHeld[i]) } // after epochs
	if t.settings.MayRest && t.least[0] < t.least[1] && !order.MoreAbove(len(t.rows), better) {
		return t.best[0], true
	}
	return t.best[1], false
}

// fit returns the trial of a Prospect. It is evaluated once, after its epochs.
func (t *trials) fit(c Prospect, progress fit.Progress) *qmfFit {
	trial := newQMFFit(t.hidden, t.of.k, &t.settings,
		fit.Run{Pool: t.of.pool, Seed: t.settings.Seed, Progress: progress})
	trial.origin, trial.lambda, trial.line, trial.evaluated = c.Start, c.Lambda, c.Line, false
	trial.startShare, trial.few = 0, t.of.few
	return trial
}

// startFactors fills U and V with the given factors or with those of the start.
func (f *qmfFit) startFactors() error {
	if err := f.progress.Enter(fit.PhaseFactors); err != nil {
		return err
	}
	x, loss := f.cells, f.Loss
	switch {
	case f.Init:
		f.factors.copyFrom(f.InitU, f.InitV)
		f.hold()
		return nil
	case f.origin == StartUniform:
		f.uniform(f.seed)
		f.hold()
		return nil
	case f.origin == StartScores:
		if rows := f.scoredRows(); rows < f.d {
			return f.fromRows(rows)
		}
		x := f.scored()
		if err := f.pool.Err(); err != nil { // an interrupted loop leaves rows without scores
			return err
		}
		return f.factorise(x, divergence.KL, 1, f.maxLogFactor, f.part(0, 1))
	case f.startShare == 0:
		f.random(x, f.seed)
		f.hold()
		var err error
		f.startShare, err = f.approach(x, loss, f.part(0, 1))
		return err
	}
	return f.factorise(x, loss, f.startShare, f.maxLogFactor, f.part(0, 1))
}

// factorise fills UV with an NMF of x, by a share of its epochs. Where there is a lead, it follows that: an
// NMF of some samples, or else that of the trial that chose.
func (f *factors) factorise(x *fit.Cells, loss divergence.Loss, share, maxLogFactor float64,
	run fit.Run) error {
	some, first, rest := someSamples(loss, float64(f.d), float64(f.n)), run, run
	// the share of the time that the NMF of some samples takes
	before := some / (some + float64(someShare*float64(f.n)))
	first.Progress, rest.Progress = run.Progress.Within(0, before), run.Progress.Within(before, 1)
	if some > 0 {
		var err error
		if f.lead, err = f.ofSome(x, loss, some, share, first); err != nil {
			return err
		}
	}
	if f.follow() {
		f.raise(maxLogFactor)
		share *= someShare
	} else {
		f.random(x, run.Seed)
	}
	f.hold()
	return f.approximate(x, loss, share, rest)
}

// scoredRows is of how many rows the NMF of scores is made, the others being placed by its V: all of up to
// FewScores cells. Placing knows no given columns of U.
func (f *qmfFit) scoredRows() int {
	rows := max(FewScores/f.n, leastRows*f.k)
	if float64(f.d)*float64(f.n) <= float64(FewScores) || f.fixed > 0 {
		return f.d
	}
	return min(rows, f.d)
}

// fromRows fills V with that of the NMF of the scores of so many rows, evenly spread, and U with that of
// each row given V. As wΔ(x, t) = Δ(wx, wt), rows with weights are placed by V times the weights. Where these
// differ from row to row, each row has such a V of its own.
func (f *qmfFit) fromRows(count int) error {
	a, p := f.pool.Memory, f.pool
	defer p.Part()()
	scores := order.NewScores(a, f.n, f.cells, f.Average, p.Workers())
	m := fit.Dense{Rows: count, Cols: f.n, Data: a.Floats(count, f.n), Stride: f.n}
	rows := make([]int, count)
	for r := range rows {
		rows[r] = int(int64(r) * int64(f.d) / int64(count))
	}
	g := &factors{d: count, n: f.n, np: f.np, k: f.k, u: a.Floats(count, f.k), v: f.v, few: f.few}
	rules := fit.Rules{Loss: divergence.KL, Missing: true, Mapped: true, Weights: f.cells.WeightsOf(rows)}
	// The share of the work after which V is there; rows a report, and workers of each.
	factorised, together, readers, searchers := 0.5, RowsPlaced, 1, p.Workers()
	if f.cells.EachWeighed() {
		together, readers, searchers = 1, searchers, 1
	}
	of := place.Sizes{D: f.n, N: min(f.d, together), K: f.k, Workers: searchers, Wide: kernel.Lanes}
	if a.Dry() {
		x := fit.NotRead(a, count, f.n, f.cells.About, rules)
		x.X, x.Partial, x.About.Full = m, f.cells.Partial, true // scores are above 0
		g.reserveSome(x, divergence.KL, someSamples(divergence.KL, float64(count), float64(f.n)), p)
		g.approximate(x, divergence.KL, 1, f.part(0, 1))
		for range readers {
			place.Count(a, of, f.cells.Partial)
		}
		return nil
	}
	p.Do(count, func(_, r int) { scores.ReadRow(m.Row(r), rows[r]) })
	if err := p.Err(); err != nil {
		return err
	}
	fillUnseen(m)
	x, err := fit.Read(fit.Source{Dense: m}, rules)
	if err != nil {
		return err
	}
	x.Pool = p
	if err := g.factorise(x, divergence.KL, 1, f.maxLogFactor, f.part(0, factorised)); err != nil {
		return err
	}
	rest := f.progress.Within(factorised, 1)
	if f.cells.EachWeighed() {
		err = rest.Rows(p, f.d, func(_, i int) {
			w := f.cells.WeightsAbove0(make([]float64, f.n), i)
			_ = f.placed(scores, i, of, f.byWeighed(w), w) // whose error is that of the pool
		})
	} else {
		w := f.cells.WeightsAbove0(make([]float64, f.n), 0)
		by := f.byWeighed(w)
		for from := 0; from < f.d && err == nil; from += of.N {
			of.N = min(of.N, f.d-from)
			err = cmp.Or(f.placed(scores, from, of, by, w), p.Err(),
				rest.Report(float64(from)/float64(f.d)))
		}
	}
	if err != nil {
		return err
	}
	for r, i := range rows {
		copy(f.rowU(i), g.rowU(r))
	}
	return nil
}

// placed fills the U of rows from one on with that of their scores by V, both times the weights w, if any.
func (f *qmfFit) placed(scores *order.Scores, from int, of place.Sizes, by *place.Linear, w []float64) error {
	u, err := place.Columns(f.progress.Ctx, by, of, func(row []float64, r int) {
		scores.ReadRow(row, from+r)
		for j, w := range w {
			row[j] *= w
		}
	})
	if err != nil {
		return err
	}
	for r := range of.N {
		for c := range f.k {
			f.u[(from+r)*f.k+c] = u[c*of.N+r]
		}
	}
	return nil
}

// byWeighed returns V, each column times the weight of its sample, nil for none, to place rows by.
func (f *factors) byWeighed(weights []float64) *place.Linear {
	sample := make([]float64, f.k)
	return place.NewLinear(divergence.KL, f.n, f.k, func(j int) []float64 {
		for c := range sample {
			sample[c] = f.v[c*f.np+j]
			if weights != nil {
				sample[c] *= weights[j]
			}
		}
		return sample
	})
}

// fillUnseen gives samples of which no cell is seen the means of the rows.
func fillUnseen(m fit.Dense) {
	seen := make([]bool, m.Cols)
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			seen[j] = seen[j] || v == v
		}
	}
	if !slices.Contains(seen, false) {
		return
	}
	for i := range m.Rows {
		sum, count := 0.0, 0
		for _, v := range m.Row(i) {
			if v == v {
				sum += v
				count++
			}
		}
		for j, v := range seen {
			if !v {
				m.Row(i)[j] = sum / float64(count)
			}
		}
	}
}

// approximate lowers the loss of UV from x by a share of the epochs of startMethod.
func (f *factors) approximate(x *fit.Cells, loss divergence.Loss, share float64, run fit.Run) error {
	method, epochs := f.startMethod(x, loss, run.Pool)
	epochs = max(int(math.Round(share*float64(epochs))), 1)
	if run.Pool.Memory.Dry() {
		method.Reserve(epochs)
		return nil
	}
	_, err := method.Begin()
	for e := 0; err == nil && e < epochs; e++ {
		if _, err = method.Epoch(e); err == nil {
			err = run.Progress.ReportEpoch(e+1, epochs, 0)
		}
	}
	return err
}

// startMethod returns what makes the NMF of a start, and the number of its epochs.
func (f *factors) startMethod(x *fit.Cells, loss divergence.Loss, p *pool.Pool) (nmf.Method, int) {
	if !p.Memory.Dry() {
		f.leaveOut(x.LeftOut())
	}
	if nmf.Suits(loss, float64(f.d), float64(f.n), float64(f.k)) && !f.few {
		return nmf.NewNewton(newProblem(f, x, loss, p)), startNewton
	}
	return nmf.NewUpdates(newProblem(f, x, loss, p)), startUpdates
}

// approach lowers the loss of UV from x, of which cells are held out, until their loss no longer falls. Where
// few cells are seen it does so with each of Guesses, for as long as they predict better. It leaves UV where
// that loss was least, and x with its guess, and returns the number of epochs up to there as a share of those
// of startMethod.
func (f *factors) approach(x *fit.Cells, loss divergence.Loss, run fit.Run) (share float64, err error) {
	tries := Guesses[:]
	if !f.few {
		tries = Guesses[:1]
	}
	start, best, least := f.twin(), f.twin(), math.Inf(1)
	for i, guess := range tries {
		x.Guess = guess
		f.take(start)
		part := run
		part.Progress = run.Progress.Within(float64(i)/float64(len(tries)), float64(i+1)/float64(len(tries)))
		end, held, err := f.endByHidden(x, loss, part)
		if i > 0 && held >= least || err != nil {
			x.Guess = Guesses[max(i-1, 0)]
			f.take(best)
			return share, err
		}
		share, least = end, held
		best.take(f)
	}
	return share, nil
}

// endByHidden is approach by the guess of x. It returns the least loss of the cells that are held out, too.
func (f *factors) endByHidden(x *fit.Cells, loss divergence.Loss, run fit.Run) (share, held float64,
	err error) {
	method, epochs := f.startMethod(x, loss, run.Pool)
	best, most := f.twin(), MostShare*epochs
	watch := fit.Watch{Patience: PatienceOf(epochs)}
	watch.See(0, math.Inf(1)) // one epoch is made at least
	_, err = method.Begin()
	for e, stop := 1, false; err == nil && e <= most && !stop; e++ {
		var l nmf.Losses
		if l, err = method.Epoch(e - 1); err != nil {
			break
		}
		var better bool
		if better, stop = watch.See(e, l.Held); better {
			held = l.Held
			best.take(f)
		}
		err = run.Progress.ReportEpoch(e, most, 0)
	}
	f.take(best)
	return float64(watch.BestEpoch) / float64(epochs), held, err
}

// Guesses are what the guess of a missing cell, the mean of its row, is tried to count beside a visible cell
// in multiplicative updates of few cells.
var Guesses = [...]float64{0, 0.01, 0.1, 1}

// someSamples returns how many of n samples an NMF begins with, 0 where it begins with all: no more than have
// fit.MostSampled cells, and a quarter of StartSamples at least.
func someSamples(loss divergence.Loss, d, n float64) float64 {
	some := min(StartSamples, math.Floor(fit.MostSampled/d))
	if loss != divergence.KL || n < 4*StartSamples || 4*some < StartSamples {
		return 0
	}
	return some
}

// ofSome returns an NMF of so many random samples of x, by a share of its epochs; nil where these have no
// visible cell of a row.
func (f *factors) ofSome(x *fit.Cells, loss divergence.Loss, samples, share float64, run fit.Run) (*factors,
	error) {
	p, src := run.Pool, random.Split(run.Seed, 4)
	some, weights, rows := x.Sample(f.d, int(samples*float64(x.Visible)/float64(x.N)), &src, p)
	if err := p.Err(); err != nil || len(rows) < f.d {
		return nil, err
	}
	few, err := fit.Read(some, fit.Rules{Loss: divergence.Frobenius, Missing: true, Mapped: true,
		Weights: weights})
	if err != nil {
		return nil, err
	}
	few.Pool = p
	g := newFactors(p.Memory, f.d, few.N, f.k)
	g.given, g.fixed, g.few = f.given, f.fixed, f.few
	g.random(few, run.Seed)
	g.hold()
	return g, g.approximate(few, loss, share, run)
}

// follow fills U with that of the lead, an NMF of some of the samples, and each row of V with the mean of its
// V; there is no lead afterwards. It leaves both as they are, and returns false, where there is none of all
// rows, and where it has nothing but zeros. The caller raises small entries: one of 0 would stay so, though
// other samples may have use for it.
func (f *factors) follow() bool {
	g := f.lead
	if f.lead = nil; g == nil || g.d != f.d || elem.Mean(g.u) == 0 {
		return false
	}
	means := make([]float64, f.k)
	for t := range means {
		means[t] = elem.Mean(g.rowV(t))
	}
	if elem.Mean(means) == 0 {
		return false
	}
	copy(f.u, g.u)
	for t, mean := range means {
		row := f.rowV(t)
		for j := range row {
			row[j] = mean
		}
	}
	return true
}

// beginSteps hands U and V of the start to their steps. The paper's start is taken as it is, as is that of a
// model. Samples that take no part have the mean of the others, which changes no mean.
func (f *qmfFit) beginSteps() {
	f.setAside(f.cells.LeftOut())
	f.steps.begin(f.origin == StartUniform && !f.Init || f.Settings.Begun != nil)
}

// startMaps fills F and q for the factors, and computes the losses. It does the same for twins, fits of
// the same cells from the same factors, which differ in the shrinkage alone.
func (f *inflation) startMaps(progress *fit.Progress, twins ...*inflation) error {
	err := progress.Enter(fit.PhaseMaps)
	if err == nil {
		rooms := make([]order.Room, f.pool.Workers())
		err = progress.Rows(f.pool, f.d, func(worker, i int) {
			room := &rooms[worker]
			if room.Perm == nil {
				room.Resize(f.pool.Memory, f.n)
			}
			v := &f.spaces[worker]
			f.placeRow(v, i, room)
			for _, t := range twins {
				copy(t.Increments(i), f.Increments(i))
				copy(t.Logits(i), f.Logits(i))
				copy(t.Warm[i].Offset, f.Warm[i].Offset)
				t.Warm[i].Valid = f.Warm[i].Valid
				t.calibrateRow(v, i)
			}
			f.calibrateRow(v, i)
		})
	}
	return err
}

const (
	startNewton  = 20  // epochs of the NMF that a fit starts from, by Newton's method
	startUpdates = 100 // the same by multiplicative updates
	MostShare    = 4   // times as many at most where hidden cells end them
	someShare    = 0.3 // of these epochs, after the NMF of some samples
	leastRows    = 16  // rows a component, at least, of which the NMF of scores is made
	calibration  = 20  // EM steps on q at the plan of the starting UV
)

// PatienceOf returns in how many epochs the loss of hidden cells has to fall, where they end an NMF that has
// so many by default. In a quarter of them the loss of some tables had only paused.
func PatienceOf(epochs int) int { return 3 * epochs / 10 }

// FewScores is how many cells have scores for an NMF, in whole rows, and RowsPlaced how many of the other
// rows are placed between two reports. A test sets both lower.
var FewScores, RowsPlaced = 1 << 18, 1024

// StartSamples is how many samples the NMF of a start begins with, where there are at least four times as
// many. A test sets it lower.
var StartSamples = 2048.0

// The choice of start and shrinkage.
const (
	TrialRows   = 512     // how many rows are fitted, at most
	TrialCells  = 1 << 16 // how many visible cells of these rows
	trialEpochs = 2       // of each trial
	lineOfInit  = 0.5     // τ where initial factors leave no choice
)

// trialShrinkages are the λ that are tried, and firstTrials the pairs of λ and τ that are tried first.
var (
	trialShrinkages = [...]float64{0, 20, 100}
	firstTrials     = [...]Prospect{{Lambda: 0, Line: 0}, {Lambda: 0, Line: 0.9}, {Lambda: 20, Line: 0.5}}
)

// raise raises small entries of U to LeastAtStart of the mean of U, those of a row of V to
// that of the mean of the row, and holds all entries within e^±maxLogFactor.
func (f *factors) raise(maxLogFactor float64) {
	most := elem.Exp(maxLogFactor)
	raiseFactors(f.u, 1/most, most)
	for t := range f.k {
		raiseFactors(f.rowV(t), 1/most, most)
	}
}

// raiseFactors raises small entries of v to LeastAtStart of its mean, and holds all entries
// from least to most.
func raiseFactors(v []float64, least, most float64) {
	kernel.Confine(v, min(max(LeastAtStart(elem.Mean(v)), least), most), most)
}

// logarithms fills l with log v. Unless exact is true it first raises small entries of v as
// raiseFactors does. It holds v within e^±maxLogFactor.
func logarithms(l, v []float64, exact bool, maxLogFactor float64) {
	low := LeastAtStart(elem.Mean(v))
	for i, x := range v {
		if !exact {
			x = max(x, low)
			v[i] = x
		}
		l[i] = elem.Log(x)
		if math.Abs(l[i]) > maxLogFactor {
			l[i] = min(max(l[i], -maxLogFactor), maxLogFactor)
			v[i] = elem.Exp(l[i])
		}
	}
}

// placeRow gives row i its first quantiles and levels, and solves its transport in the workspace. Under
// StartUniform the quantiles are equal steps between the extremes of the row. Otherwise they are its
// empirical quantiles at the middles of the levels.
func (f *inflation) placeRow(v *rowSpace, i int, room *order.Room) {
	switch {
	case f.Constant(i):
		inc := f.Increments(i)
		clear(inc)
		inc[0] = f.Low[i]
		f.read(v, i)
	case f.Settings.Begun != nil:
		f.modelRow(v, i)
	case f.R != nil:
		f.startSteps(i)
		f.solveRow(v, i)
	default:
		f.startQuantiles(v, i, room)
		f.Warm[i].Valid = false
		if transport.Condenses(f.n) { // a solve by points needs no start
			f.load(v, i)
		} else {
			f.solveRow(v, i)
		}
		f.shareLevels(v, i)
		f.solveRow(v, i)
	}
}

// modelRow gives row i the map of the model that the fit goes on from.
func (f *inflation) modelRow(v *rowSpace, i int) {
	q, inc, logits := v.q[:f.M], f.Increments(i), f.Logits(i)
	copy(q, f.Settings.Begun.Quantiles.Row(i))
	units := &f.cells.Units
	if !units.Plain() {
		units.Bring(q, i)
	}
	last := 0.0
	for l, b := range f.Settings.Begun.Weights.Row(i) {
		inc[l], logits[l] = q[l]-last, elem.Log(b)
		last = q[l]
	}
	if f.S != nil {
		f.S[i] = f.Settings.Begun.Slopes[i]
		if units.All != 0 {
			f.S[i] = math.Ldexp(f.S[i], -units.All)
		}
	}
	f.Warm[i].Valid = false
	f.solveRow(v, i)
}

// calibrateRow fits the first quantiles of row i to the starting UV by EM steps, but not under StartUniform,
// and gives the row its losses. The workspace has the row as placeRow leaves it, and keeps it so.
func (f *inflation) calibrateRow(v *rowSpace, i int) {
	if f.R == nil && !f.Constant(i) && f.Settings.Begun == nil {
		f.startLine(v, i)
		f.stepQ(v, i, calibration)
	}
	f.fitted(v, i)
	f.noteLosses(v, i)
}

// startSteps gives row i quantiles in equal steps between its extremes: the paper's start.
func (f *inflation) startSteps(i int) {
	inc, m := f.Increments(i), f.M
	lo, span := f.Low[i], f.High[i]-f.Low[i]
	r := f.R[i*m : (i+1)*m]
	inc[0] = lo
	for l := 1; l < m; l++ {
		inc[l] = span / float64(m-1)
	}
	if f.Pinned {
		return
	}
	inc[0] = max(lo, FloorStart*span/float64(m))
	for l := range inc {
		r[l] = max(elem.Log(inc[l]), f.Shortest)
	}
	if f.Spans.Signed {
		// Where all cells far above 5e-324 are held out the mean underflows: q_1 is 0 then.
		r[0] = 0
		if f.Average[i] > 0 {
			r[0] = inc[0] / f.Average[i]
		}
	}
}

// startQuantiles gives row i its empirical quantiles at the middles of the levels.
func (f *inflation) startQuantiles(v *rowSpace, i int, room *order.Room) {
	inc, m := f.Increments(i), f.M
	lo, span := f.Low[i], f.High[i]-f.Low[i]
	quantile := f.quantiles
	if v.weights != nil {
		quantile = f.weightedQuantiles
	}
	at := quantile(v, i, room)
	last := 0.0
	for l := range inc {
		q := at((float64(l) + 0.5) / float64(m))
		inc[l] = max(q-last, FloorStart*span/float64(m))
		last = q
	}
	if f.Pinned {
		inc[0] = lo
		sum := 0.0
		for _, d := range inc[1:] {
			sum += d
		}
		if sum == 0 { // a subnormal span, of which no share is above 0
			sum, inc[m-1] = span, span
		}
		for l := range inc[1:] {
			inc[1+l] *= span / sum
		}
	}
}

// quantiles returns the empirical quantile of the visible values of row i at a share of them.
func (f *inflation) quantiles(v *rowSpace, i int, room *order.Room) func(share float64) float64 {
	// The visible values in order. Zeros, of which counts have many, need not be sorted.
	values, below, seen := v.t[:0], 0, f.cells.InRow[i]
	for _, x := range f.cells.Row(v.z[:f.n], i) {
		if x == x && x != 0 {
			values = append(values, x)
			if x < 0 {
				below++
			}
		}
	}
	perm := room.Sort(values)
	zeros := seen - len(values)
	at := func(p int) float64 { // the value at place p of the order
		switch {
		case p < below:
			return values[perm[p]]
		case p < below+zeros:
			return 0
		}
		return values[perm[p-zeros]]
	}
	return func(share float64) float64 {
		place := float64(share*float64(seen)) - 0.5
		place = min(max(place, 0), float64(seen-1))
		p := min(int(place), seen-1)
		frac := place - float64(p)
		a, b := at(p), at(min(p+1, seen-1))
		return a + float64(frac*(b-a))
	}
}

// weightedQuantiles is quantiles of cells with weights. A value stands for a share as large as its weight;
// over as much as the least weight, about where two values meet, quantiles go from one to the other in a
// straight line. So equal weights have the quantiles of none, and whole numbers those of each value as often.
func (f *inflation) weightedQuantiles(v *rowSpace, i int, room *order.Room) func(share float64) float64 {
	values, weights, ends := v.t[:0], v.about[:0], v.g[:0]
	own, least, sum := f.cells.Weights(v.weights, i), math.Inf(1), 0.0
	for j, x := range f.cells.Row(v.z[:f.n], i) {
		if w := own[j]; x == x && w > 0 {
			values, weights, least = append(values, x), append(weights, w), min(least, w)
		}
	}
	perm := room.Sort(values)
	for _, p := range perm {
		sum += weights[p]
		ends = append(ends, sum)
	}
	return func(share float64) float64 {
		at, last := float64(share*sum), len(ends)-1
		p, _ := slices.BinarySearch(ends, at)
		p = min(p, last)
		value, upTo := values[perm[p]], ends[p]
		from := upTo - weights[perm[p]]
		switch half := float64(least / 2); {
		case at < from+half && p > 0:
			before := values[perm[p-1]]
			return before + float64((at-(from-half))/least*(value-before))
		case at > upTo-half && p < last:
			return value + float64((at-(upTo-half))/least*(values[perm[p+1]]-value))
		}
		return value
	}
}

// shareLevels sets the logits F_i by where the samples lie among the targets: half of each weight is
// uniform, half is the share of the visible samples, by their weights, next to the target.
func (f *inflation) shareLevels(v *rowSpace, i int) {
	share := f.Logits(i)
	mass := f.Mass[i]
	for l := range share {
		share[l] = 0.5 / float64(f.M)
	}
	for j, s := range v.row.Squashed() {
		if v.observed != nil && !v.observed[j] {
			continue
		}
		at := float64(min(max(s, 0), 1) * float64(f.M-1))
		l := min(int(at), f.M-2)
		frac := at - float64(l)
		half := 0.5
		if v.weights != nil {
			half *= v.weights[j]
		}
		share[l] += (1 - frac) * half / mass
		share[l+1] += frac * half / mass
	}
	for l, b := range share {
		share[l] = elem.Log(b)
	}
}

// scored returns the cells of the normal scores of x', each row times its mean. The scores are held in
// memory where x is a fit.Dense or not large, and otherwise made whenever a row is read.
func (f *inflation) scored() *fit.Cells {
	a := f.pool.Memory
	s := order.NewScores(a, f.n, f.cells, f.Average, f.pool.Workers())
	x := fit.Source{Rows: s}
	if !large(f.cells) {
		m := fit.Dense{Rows: f.d, Cols: f.n, Data: a.Floats(f.d, f.n), Stride: f.n}
		f.pool.Do(f.d, func(_, i int) { s.ReadRow(m.Row(i), i) })
		x = fit.Source{Dense: m}
	}
	c := f.cells.Beside(x)
	c.About.Full = true // scores are above 0
	return c
}

// large tells whether a copy of x may be too large to hold in memory.
func large(x *fit.Cells) bool { return x.X.Rows == 0 && float64(x.D)*float64(x.N) > MostHeld }

// MostHeld is the largest number of scores that are held in memory where x is no fit.Dense. A test sets it
// lower.
var MostHeld = float64(1 << 26)
