package quantmf

// This file holds the choice of a method, MethodAuto: NMF, QMF and BQMF are fitted without a tenth of the
// cells, and the one that predicts these cells best is fitted to all of them.
//
// The rank tells the question. Of k components one asks for parts: U and V of an NMF or a QMF, which are not
// negative, so that components add up. Rank 0 asks for the best prediction, whatever the components are: then
// BQMF is tried, too, which finds the number of components itself, beside an NMF and a QMF of rankOfAuto.
//
// The hidden cells are a tenth of the observed ones, by as many masks as make up hiddenOfAuto, at most ten.
// Where that leaves open by more than openOfAuto which candidate is best, as a few cells far from the others
// do, as many masks again follow, and so on, up to ten or mostOfAuto cells. Then a candidate that is worse by
// less than clearOfAuto is taken where it predicts significantly more rows better: a few rows of large values
// may have most of the loss, and what they say is mostly chance.
//
// Of a matrix of more than cellsOfAuto cells some rows, and of one with very many columns some columns, are
// taken, at equal distances. The standard errors are those of a ratio of sums over rows, because cells of one
// row are not independent.
//
// Each of these fits of a QMF chooses where it starts and how straight its maps are (internal/qmf), without
// the hidden cells. The fit of all cells takes what more than half of them have chosen, and does not choose
// again.

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
)

const (
	rankOfAuto   = 10
	cellsOfAuto  = 1 << 20 // how many cells the matrix has at most from which cells are hidden
	hiddenOfAuto = 2000    // how many cells are hidden at least, by at most ten masks
	mostOfAuto   = 20000   // how many cells are hidden at most by more than these masks
	sureOfAuto   = 1.5     // standard errors by which a candidate is worse that needs no more masks
	openOfAuto   = 0.01    // the standard error of a difference of losses that is not taken for chance
	clearOfAuto  = 3       // standard errors by which a candidate is worse whatever most rows say
)

// Candidate is a fit that [Choose] tries.
type Candidate struct {
	Method  Method
	Rank    int
	Options []FitOption
	// Log1p lets it be fitted to log(1+x), of values that are not negative. What it predicts is taken back
	// before it is compared, so all losses are in the units of x. It is never the best: the fit of all cells
	// is one of x.
	Log1p bool

	masks int // by how many it was tried, and is again; 0: as many as it takes
}

// Choice is what [Choose] finds.
type Choice struct {
	Candidates []Candidate
	Best       int          // the candidate of x that predicts best
	Trials     []Prediction // of each candidate

	start *qmf.Choice // what most trials of the best candidate have chosen; nil where they chose nothing
}

// Candidates returns the fits that [Fit] tries under [MethodAuto]: NMF and QMF of that rank, or for rank 0
// those of 10 components and BQMF, each only if it takes x and all of the options. Errors: that of QMF, or
// for rank 0 of BQMF, where no method does; an [*OptionError] for WithInit and WithModel, which belong to one
// method. Cost: x is read once for every method.
func Candidates(x Rows, rank int, opts ...FitOption) (of []Candidate, err error) {
	if err := checkRows(x); err != nil {
		return nil, err
	}
	d, n := x.Dims()
	of, err = candidatesOf(d, n, rank, opts)
	taken := of[:0]
	for _, c := range of {
		if wrong := c.takes(x); wrong != nil {
			err = wrong
		} else {
			taken = append(taken, c)
		}
	}
	if len(taken) == 0 {
		return nil, err
	}
	return taken, nil
}

// candidatesOf returns those that take the options, and the error of the last that does not.
func candidatesOf(d, n, rank int, opts []FitOption) (of []Candidate, err error) {
	k, methods := rank, []Method{MethodNMF, MethodQMF}
	if rank == 0 {
		k, methods = min(rankOfAuto, max(min(d, n)-1, 1)), append(methods, MethodBQMF)
	}
	for _, method := range methods {
		c := Candidate{Method: method, Rank: k, Options: opts}
		if method == MethodBQMF {
			c.Rank = 0
		}
		settled, _, wrong := configOf(method, d, n, c.Rank, opts)
		for _, kind := range [...]option.Kind{option.Init, option.Model} {
			if wrong == nil && settled.given.Has(kind) {
				wrong = &OptionError{Option: kind.String(),
					Bound: "belongs to one method, so MethodAuto has no " +
						"use for it"}
			}
		}
		if wrong != nil {
			err = wrong
			continue
		}
		of = append(of, c)
	}
	return of, err
}

// takes returns what the fit of a candidate would say of the numbers of x.
func (c *Candidate) takes(x Rows) error {
	d, n := x.Dims()
	settled, _, err := configOf(c.Method, d, n, c.Rank, c.Options)
	if err != nil {
		return err
	}
	settled.Mapped = c.Method != MethodNMF
	if c.Method == MethodBQMF && !settled.given.Has(option.Loss) {
		settled.Loss = divergence.Frobenius // which takes any finite x
	}
	return settled.checkCells(x)
}

// Choose fits each candidate without some of the cells of x, and finds the one that predicts them best. All
// see the same hidden cells. If told is not nil it hears how many of the fits are done, from several
// goroutines in turn; its error ends them. Errors are those of [HeldOut], of which an [*OptionError] of
// "share" tells that x is too small to hide any of its cells.
//
//	candidates, err := quantmf.Candidates(x, 10)
//	choice, err := quantmf.Choose(ctx, x, candidates, nil)
//	worse, stdErr := choice.Trials[0].Worse(choice.Trials[choice.Best])
//	model, err := choice.Fit(ctx, x)
func Choose(ctx context.Context, x Rows, candidates []Candidate, told func(done, all int) error) (*Choice,
	error) {
	if len(candidates) == 0 {
		return nil, &OptionError{Option: "candidates", Value: "none", Bound: "there must be one at least"}
	}
	if err := checkRows(x); err != nil {
		return nil, err
	}
	d, n := x.Dims()
	settled, _, err := configOf(candidates[0].Method, d, n, candidates[0].Rank, candidates[0].Options)
	if err != nil {
		return nil, err
	}
	part, observed, err := partOf(x)
	if err != nil {
		return nil, err
	}
	weights, err := settled.weightsOfPart(d, n)
	if err != nil {
		return nil, err
	}
	candidates = slices.Clone(candidates)
	masks := masksOf(observed, settled.Seed)
	if told := candidates[0].masks; told > 0 {
		masks.Repeats = told
	}
	trials, alone := make([]Trial, len(candidates)), fitOption(option.Workers, "1", func(c *config) string {
		c.progress, c.save, c.resume, c.checkpoints, c.restarts, c.strict = nil, nil, nil, nil, 1, false
		return ""
	})
	for i, c := range candidates {
		trials[i] = Trial{c.Rank, append(append(slices.Clip(c.Options), alone), weights...)}
	}
	var mutex sync.Mutex
	starts, done := make([][]qmf.Choice, len(candidates)), 0
	count := func() error {
		if told == nil {
			return nil
		}
		return told(done, len(trials)*(masks.First+masks.Repeats))
	}
	if err := count(); err != nil {
		return nil, err
	}
	fit := func(ctx context.Context, x Rows, trial int, opts ...FitOption) (Model, error) {
		var start qmf.Choice
		if candidates[trial].Log1p {
			x = loggedRows{x}
		}
		m, err := Fit(ctx, candidates[trial].Method, x, candidates[trial].Rank,
			append(opts, startsBy(&start))...)
		if err != nil {
			return nil, err
		}
		mutex.Lock()
		defer mutex.Unlock()
		if start.Made {
			starts[trial] = append(starts[trial], start)
		}
		done++
		if candidates[trial].Log1p {
			m = unlogged{m}
		}
		return m, count()
	}
	predictions, err := heldOut(ctx, part, fit, trials, masks, settled.workers)
	if err != nil {
		return nil, err
	}
	c := &Choice{Candidates: candidates, Trials: predictions}
	c.settle()
	most := mostMasks(masks, observed)
	for all := masks.Repeats; candidates[0].masks == 0 && all < most && c.open(); all += masks.Repeats {
		masks.First, masks.Repeats = all, min(all, most-all) // as many again
		more, err := heldOut(ctx, part, fit, trials, masks, settled.workers)
		if err != nil {
			return nil, err
		}
		for i := range more {
			c.Trials[i] = c.Trials[i].Join(more[i])
		}
		c.settle()
	}
	c.ask()
	for i := range candidates {
		candidates[i].masks = masks.First + masks.Repeats
	}
	c.start = mostOf(starts[c.Best])
	return c, nil
}

// settle finds the candidate of x of least loss, the first of equal ones.
func (c *Choice) settle() {
	for i, p := range c.Trials {
		if best := c.Candidates[c.Best]; best.Log1p || p.Mean < c.Trials[c.Best].Mean &&
			!c.Candidates[i].Log1p {
			c.Best = i
		}
	}
}

// open tells whether another candidate of x may be the best.
func (c *Choice) open() bool {
	for i, p := range c.Trials {
		worse, stdErr := p.Worse(c.Trials[c.Best])
		if i != c.Best && !c.Candidates[i].Log1p && worse < sureOfAuto*stdErr && stdErr > openOfAuto {
			return true
		}
	}
	return false
}

// ask takes a candidate that most rows say is better than that of least loss, where the losses are not clear.
func (c *Choice) ask() {
	least := c.Trials[c.Best]
	for i, p := range c.Trials {
		worse, stdErr := p.Worse(least)
		if c.Candidates[i].Log1p || worse >= clearOfAuto*stdErr || !p.betterForMost(least) {
			continue
		}
		if best := c.Trials[c.Best]; best.Mean == least.Mean || p.Mean < best.Mean {
			c.Best = i
		}
	}
}

// loggedRows are rows of log(1+x).
type loggedRows struct{ Rows }

func (l loggedRows) ReadRow(x []float64, i int) error {
	err := l.Rows.ReadRow(x, i)
	for j, v := range x {
		if v < 0 && err == nil {
			err = &DataError{Row: i, Col: j, Value: v, Problem: "has no place in a fit of log(1+x)"}
		}
		x[j] = elem.Log1p(v)
	}
	return err
}

// unlogged is a model of log(1+x), whose predictions are of x.
type unlogged struct{ Model }

func (u unlogged) filler(ctx context.Context) (filler, error) {
	fill, err := u.Model.filler(ctx)
	return func(t []float64, i int) {
		fill(t, i)
		for j, v := range t {
			t[j] = max(elem.Exp(v)-1, 0)
		}
	}, err
}

// Fit fits the best candidate to x. Further options, such as of progress, come after its own.
func (c *Choice) Fit(ctx context.Context, x Rows, opts ...FitOption) (Model, error) {
	best := c.Candidates[c.Best]
	all := append(slices.Clip(best.Options), opts...)
	if c.start != nil {
		all = append(all, startsBy(c.start))
	}
	return Fit(ctx, best.Method, x, best.Rank, all...)
}

// fitAuto is Fit by MethodAuto. Of a matrix that is too small to hide cells the first candidate is taken.
func fitAuto(ctx context.Context, x Rows, rank int, opts []FitOption) (Model, error) {
	candidates, err := Candidates(x, rank, opts...)
	if err != nil {
		return nil, err
	}
	choice := &Choice{Candidates: candidates}
	if len(candidates) > 1 {
		chosen, err := Choose(ctx, x, candidates, nil)
		if bad, is := err.(*OptionError); err == nil {
			choice = chosen
		} else if !is || bad.Option != "share" {
			return nil, err
		}
	}
	return choice.Fit(ctx, x)
}

// memoryOfAuto is memoryOf of MethodAuto: the most that any candidate takes, and that Choose takes.
func memoryOfAuto(d, n int, about fit.About, rank int, opts []FitOption) (most Memory, err error) {
	candidates, err := candidatesOf(d, n, rank, opts)
	if len(candidates) == 0 {
		return most, err
	}
	rows, columns := partSize(d, n)
	trials, err := memoryOfChoice(d, n, about.Visible*qmf.Size(rows, columns), candidates)
	if err != nil {
		return most, err
	}
	most.Fit, most.Rows = trials, trials
	for _, c := range candidates {
		need, err := memoryOf(c.Method, d, n, about, c.Rank, opts)
		if err != nil {
			return most, err
		}
		most = Memory{max(most.Fit, need.Fit), max(most.Rows, need.Rows), max(most.Model, need.Model),
			max(most.State, need.State)}
	}
	return most, nil
}

// masksOf are those of Choose for a part with so many observed cells: more of few cells.
func masksOf(observed float64, seed uint64) Masks {
	m := Masks{Share: max(0.1, min(0.5, 20/observed)), Seed: seed}
	m.Repeats = max(1, int(min(10, math.Ceil(hiddenOfAuto/(m.Share*max(observed, 1))))))
	return m
}

// mostMasks is how many there may be in all, beginning with those of Choose.
func mostMasks(m Masks, observed float64) int {
	return max(m.Repeats, int(min(10, mostOfAuto/(m.Share*max(observed, 1)))))
}

// MemoryOfChoice counts the memory, in bytes, that [Choose] takes for x: of one fit a worker, with its matrix
// and what it predicts. Errors are those of [MemoryOf], and [*ReadError].
func MemoryOfChoice(x Rows, candidates []Candidate) (int64, error) {
	d, n := x.Dims()
	_, observed, err := partOf(x)
	if err != nil {
		return 0, err
	}
	return memoryOfChoice(d, n, observed, candidates)
}

// memoryOfChoice is MemoryOfChoice for a part with so many observed cells.
func memoryOfChoice(d, n int, observed float64, candidates []Candidate) (int64, error) {
	rows, columns := partSize(d, n)
	masks, numbers, workers := masksOf(observed, 0), 8*int64(rows)*int64(columns), 1
	repeats := masks.Repeats
	if len(candidates) > 1 {
		repeats = mostMasks(masks, observed)
	}
	var fits []int64
	for _, c := range candidates {
		settled, _, err := configOf(c.Method, d, n, c.Rank, c.Options)
		if err != nil {
			return 0, err
		}
		need, err := MemoryOf(c.Method, rows, columns, c.Rank, append(slices.Clip(c.Options),
			WithMissingValues(), WithWorkers(1))...)
		if err != nil {
			return 0, err
		}
		fits = append(fits, slices.Repeat([]int64{need.Fit}, repeats)...)
		workers = max(workers, pool.Count(settled.workers, repeats*len(candidates)))
	}
	slices.Sort(fits)
	all := 2 * numbers
	for _, fit := range fits[max(len(fits)-workers, 0):] {
		all += fit + 2*numbers
	}
	return all, nil
}

// partSize is the size of the matrix from which cells are hidden.
func partSize(d, n int) (rows, columns int) {
	rows = min(d, max(cellsOfAuto/n, 500))
	return rows, min(n, max(cellsOfAuto/rows, 1))
}

// partOf is the matrix from which cells are hidden, with the number of its observed cells: x, or rows and
// columns of it at equal distances.
func partOf(x Rows) (part Rows, observed float64, err error) {
	d, n := x.Dims()
	rows, columns := partSize(d, n)
	whole := rows == d && columns == n
	var m Mat
	if part = x; !whole {
		m = NewMat(rows, columns)
		part = m
	}
	row := make([]float64, n)
	for to := range rows {
		if err := x.ReadRow(row, int(int64(to)*int64(d)/int64(rows))); err != nil {
			return nil, 0, err
		}
		for j := range columns {
			v := row[int64(j)*int64(n)/int64(columns)]
			if v == v {
				observed++
			}
			if !whole {
				m.Set(to, j, v)
			}
		}
	}
	return part, observed, nil
}

// weightsOfPart returns, as options, the weights of the cells of the part of d × n cells from which some are
// hidden; none where that is all.
func (c *config) weightsOfPart(d, n int) (opts []FitOption, err error) {
	rows, columns := partSize(d, n)
	if rows == d && columns == n {
		return nil, nil
	}
	if _, err := c.weightsOf(d, n); err != nil {
		return nil, err
	}
	if c.sampleWeights != nil {
		of := make([]float64, columns)
		for j := range of {
			of[j] = c.sampleWeights[int64(j)*int64(n)/int64(columns)]
		}
		opts = append(opts, WithSampleWeights(of))
	}
	if c.cellWeights != nil {
		of, _, err := partOf(c.cellWeights)
		if err != nil {
			return nil, err
		}
		opts = append(opts, WithCellWeights(of))
	}
	return opts, nil
}

// startsBy is an option of a fit of QMF that takes a choice, or notes the one that it makes. Other fits have
// no use for it.
func startsBy(s *qmf.Choice) FitOption {
	return fitOption(option.Workers, "", func(c *config) string {
		c.Chosen = s
		return ""
	})
}

// mostOf returns the choice that more than half of the fits have made, or nil for none.
func mostOf(made []qmf.Choice) *qmf.Choice {
	for _, one := range made {
		same := 0
		for _, c := range made {
			if c.Prospect == one.Prospect {
				same++
			}
		}
		if 2*same > len(made) {
			return &qmf.Choice{Prospect: one.Prospect, Made: true}
		}
	}
	return nil
}
