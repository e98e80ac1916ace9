package bqmf

// This file holds a matrix on the scales of its rows, and what is learnt of it once UV is fitted: the two
// corrections and the maps T_i, from what the model says of each observed cell without it.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/svd"
)

// Problem is a matrix to be fitted, and its rows on their scales.
type Problem struct {
	// Set once:
	d, n, stride int
	x            []float64 // NaN where a cell is hidden
	loss         divergence.Loss
	signed       bool      // the scales begin with no root
	observed     float64   // the number of observed cells, or their weight
	times, cells []float64 // n, d × Pad(n): the weights of samples, and of cells; nil where all are 1
	Discrete     []bool    // of each row whether it takes single values only; nil: the data say (discrete.go)
	// By Scale and Scaled:
	scales []Curve
	units  []float64 // of each row
	// the largest of units: losses are taken of x over it, so that squares neither overflow nor vanish
	lossUnit float64
	Active   []int // rows that are not constant
	data     *Data // of these
	tails    tails

	y       []float64   // d × Pad(n) before Scaled
	votes   []tailVotes // of each row, nil after Scaled
	scalers []scaler    // of each worker
	reader  *reader     // of the last Learn, whose room the next one takes
}

// NewProblem returns the problem of x, d × n, its rows stride numbers apart, NaN where a cell is hidden.
func NewProblem(x []float64, d, n, stride int, loss divergence.Loss, p *pool.Pool) *Problem {
	a := p.Memory
	q := &Problem{x: x, d: d, n: n, stride: stride, loss: loss, scales: pool.Make[Curve](a, d),
		units: a.Floats(d), y: a.Floats(d, kernel.Pad(n)), votes: pool.Make[tailVotes](a, d),
		scalers: make([]scaler, p.Workers())}
	if a.Dry() {
		return q
	}
	for i := range d {
		for _, v := range q.row(i) {
			q.signed = q.signed || v < 0
			if v == v {
				q.observed++
			}
		}
	}
	return q
}

// Weigh gives the problem the weights of samples, and of the observed cells of each row; nil where all are 1.
// Samples count as often as their weights say, cells by their weights over such a unit that as many equal
// ones as Kish's effective number (Σw)²/Σw² have their sum: a cell of a weight near 0 is nearly hidden, and a
// factor of all makes no difference.
func (q *Problem) Weigh(times []float64, cells func(to []float64, i int)) {
	q.times = slices.Clone(times)
	for j, a := range times {
		q.times[j] = bounded(a)
	}
	if cells != nil {
		np, sum, squares, least, most := kernel.Pad(q.n), 0.0, 0.0, math.Inf(1), 0.0
		q.cells = make([]float64, q.d*np)
		for i := range q.d {
			own := q.cells[i*np : i*np+q.n]
			cells(own, i)
			for j, x := range q.row(i) {
				if x != x {
					own[j] = 0
					continue
				}
				least, most = min(least, own[j]), max(most, own[j])
				a := q.time(j)
				sum += float64(a * own[j])
				squares += float64(a * squareOf(own[j]))
			}
		}
		for at, w := range q.cells {
			q.cells[at] = bounded(float64(w * (sum / squares)))
		}
		if !(least < most) {
			q.cells = nil
		}
	}
	q.observed = 0
	for i := range q.d {
		for j, x := range q.row(i) {
			if x == x {
				q.observed += q.weight(i, j)
			}
		}
	}
}

// weightMost is the most that a sample or a cell counts, and its inverse the least but for 0. More, or less,
// says nothing else, and sums have other terms.
const weightMost = 1e9

func bounded(w float64) float64 {
	if w == 0 {
		return 0
	}
	return min(max(w, 1/weightMost), weightMost)
}

func (q *Problem) time(j int) float64 {
	if q.times == nil {
		return 1
	}
	return q.times[j]
}

// weight is that of an observed cell and its sample.
func (q *Problem) weight(i, j int) float64 {
	if q.cells == nil {
		return q.time(j)
	}
	return float64(q.time(j) * q.cells[i*kernel.Pad(q.n)+j])
}

// weights returns those of the cells of row i, in to; nil where all are 1.
func (q *Problem) weights(to []float64, i int) []float64 {
	if q.times == nil && q.cells == nil {
		return nil
	}
	to = slices.Grow(to[:0], q.n)[:q.n]
	for j := range to {
		to[j] = q.weight(i, j)
	}
	return to
}

func (q *Problem) row(i int) []float64 { return q.x[i*q.stride:][:q.n] }

// Scale makes the scale of row i.
func (q *Problem) Scale(worker, i int) {
	top := 0.0
	for _, v := range q.row(i) {
		if v == v {
			top = max(top, math.Abs(v))
		}
	}
	q.units[i] = unitOf(top)
	np := kernel.Pad(q.n)
	s := &q.scalers[worker]
	s.scale(&q.scales[i], q.y[i*np:i*np+q.n], q.row(i), q.weights(nil, i), q.signed)
	q.votes[i] = s.votes(&q.scales[i])
}

// Scaled ends the making of the scales, when those of all rows are made.
func (q *Problem) Scaled() {
	np := kernel.Pad(q.n)
	for i := range q.d {
		q.lossUnit = max(q.lossUnit, q.units[i])
		if len(q.scales[i].X) > 1 {
			if a := len(q.Active); a < i {
				copy(q.y[a*np:(a+1)*np], q.y[i*np:(i+1)*np])
			}
			q.Active = append(q.Active, i)
		}
	}
	q.tails = newTails(q.scales, q.votes, q.signed)
	q.votes = nil
	for i := range q.scales {
		q.scales[i].grow(&q.tails, q.row(i), q.takes(i))
	}
	a := len(q.Active)
	q.data = NewData(a, q.n, q.y[:a*np], func(i, j int) bool { v := q.row(q.Active[i])[j]; return v == v })
	q.data.Of = q.d
	cells := q.cells
	if cells != nil && a < q.d {
		cells = make([]float64, a*np)
		for k, i := range q.Active {
			copy(cells[k*np:(k+1)*np], q.cells[i*np:])
		}
	}
	q.data.Weigh(q.times, cells)
}

// Fit returns a fit of the active rows, at most rank components, with room for a state.
func (q *Problem) Fit(rank int, p *pool.Pool) *Fit { return New(q.data, min(rank, len(q.Active)), p) }

// Start gives the fit its first state. Where the pool's context has ended it has no meaning.
func (q *Problem) Start(f *Fit, rank int) {
	np := f.np
	row := func(_, i int) []float64 { return q.data.Y[i*np : (i+1)*np] }
	f.Start(svd.NewSubspace(q.data.D, q.n, rank, row, f.pool))
}

// Ignorant returns the model that knows nothing but the scales, or the mean of a row that has none yet.
func (q *Problem) Ignorant(rank int) *Model {
	m := &Model{Curves: q.curves()}
	for i := range m.Curves {
		if len(m.Curves[i].X) == 0 {
			mean, count := 0.0, 0.0
			for _, v := range q.row(i) {
				if v == v {
					count++
					mean += (v - mean) / count
				}
			}
			m.Curves[i] = Curve{Seen: [2]float64{mean, mean}, X: []float64{mean}, Y: []float64{0},
				MassY: []float64{0}, MassX: []float64{mean}}
			m.Curves[i].plain()
		}
	}
	m.Posterior = ignorant(q.d, q.n, rank)
	for i, c := range m.Curves {
		if len(c.X) > 1 { // a scale has the deviation 1
			m.Tau[i] = 1
		}
	}
	return m
}

// curves returns the maps without corrections.
func (q *Problem) curves() []Curve {
	curves := slices.Clone(q.scales)
	for i := range curves {
		curves[i].plain()
	}
	return curves
}

// Model returns the model of a fit, without corrections. It has a meaning until the next epoch.
func (q *Problem) Model(f *Fit) *Model {
	return &Model{Posterior: f.Posterior(q.Active, q.d), Curves: q.curves()}
}

// floors are shares of the mean of a row. Under KL no prediction falls below one of them, the one of the
// least leave-one-out loss.
var floors = [...]float64{1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.2}

// losses are leave-one-out losses under each of the floors.
type losses [len(floors)]float64

func (l *losses) add(of *losses) {
	for k, v := range of {
		l[k] += v
	}
}

// Learn learns the second stage and the maps of m from leave-one-out predictions. It returns the mean
// divergence of the observed cells from these predictions, times the optimism of the stage, but no more than
// that of the factors alone. When the context that the workers are bound to ends, m is without what is
// learnt, and the largest number is returned.
func (q *Problem) Learn(m *Model, p *pool.Pool) (loss float64) {
	m.Alike = m.samples(p, true)
	f := q.leaveOut(m, p)
	m.Alike = m.Alike.settled()
	s := q.newStager(p, f, len(q.Active), m.K)
	s.choose(p)
	s.fill(p, -1)
	m.Stage = s.newStage(m.D)
	s.rehearsal = s.rehearse(m, p)
	a := len(q.Active)
	curves, sums := make([]*Curve, a), make([]rowSums, a) // of the active rows
	means := make([]float64, a)                           // of their observed cells
	byFactors, staged := make([]losses, a), make([]losses, a)
	work := make([]*rowLearner, p.Workers())
	q.read(p, m, f, func(of *leaver, w, k, row int) {
		if work[w] == nil {
			work[w] = newRowLearner(nil, q, m, of)
		}
		l, r := work[w], s.room(w)
		if k%4 == 0 {
			s.compare(r, k, min(k+4, a))
		}
		of.whole(k, row)
		means[k] = l.take(k)
		l.spread()
		l.addLoss(&byFactors[k])
		if staged[k] = byFactors[k]; s.row(r, m.Stage, k, l.places, l.without) {
			staged[k] = losses{}
			l.spread()
			l.addLoss(&staged[k])
		}
		curves[k], sums[k] = l.c, l.fit()
		s.judge(r, l)
	})
	if p.Err() != nil {
		m.Curves, m.Stage, m.Alike, m.Together = q.curves(), nil, nil, nil
		return math.MaxFloat64
	}
	m.Together = s.learnt(m.D)
	var residuals histogram
	for _, l := range work {
		if l != nil {
			residuals.add(&l.all)
		}
	}
	poolMaps(curves, sums, &residuals, countUnit(q.observed))
	m.Stage = m.Stage.settled()
	var before, after losses
	for k := range staged {
		before.add(&byFactors[k])
		after.add(&staged[k])
	}
	least := 0
	for k, l := range after {
		if l < after[least] {
			least = k
		}
	}
	if q.loss == divergence.KL {
		for k, c := range curves {
			c.Floor = floors[least] * means[k]
		}
	}
	loss = min(after[least]*s.optimism(), max(slices.Min(before[:]), after[least]))
	return min(loss*q.loss.Scale(q.lossUnit), math.MaxFloat64)
}

// leaveOut returns what the factors of m say of all cells of the active rows, of the observed ones without
// them, but for usual.
func (q *Problem) leaveOut(m *Model, p *pool.Pool) *factorCells {
	a, np := len(q.Active), kernel.Pad(q.n)
	f := &factorCells{means: make([][]float64, a), usual: make([]float64, a)}
	if q.cells != nil {
		f.seen = make([]float64, a*np)
	}
	q.reader = m.reader(p, q.reader)
	q.reader.leaveOneOut(q.data)
	q.read(p, m, f, func(l *leaver, _, k, r int) {
		f.means[k] = make([]float64, np)
		l.row(k, r)
	})
	return f
}

// read calls g for each active row, row r of the last load of the leaver of a worker. It is done twice, as
// what it reads of a row is more than the means that the second stage needs of all rows at once.
func (q *Problem) read(p *pool.Pool, m *Model, f *factorCells, g func(l *leaver, w, k, r int)) {
	a, work := len(q.Active), make([]*leaver, p.Workers())
	p.Do((a+RowsPerPass-1)/RowsPerPass, func(w, piece int) {
		if work[w] == nil {
			work[w] = newLeaver(nil, q, m, f, q.reader.share())
		}
		from := piece * RowsPerPass
		work[w].each(from, min(from+RowsPerPass, a), func(k, r int) { g(work[w], w, k, r) })
	})
}

// leaver leaves the observed cells of a row out of what the factors say of them, for one worker.
type leaver struct {
	q     *Problem
	m     *Model
	f     *factorCells
	cells *reader
	// of the last row that was taken whole: the mean and the variance of u·v, at observed cells without the
	// cell, and there what leaving it out of row and column in turn adds to the mean
	mean, variance, turn []float64
	// of the observed cells of a row: its place; what is left of it without it; what is predicted of that;
	// its weight with that of the sample, and alone
	places               []int32
	residuals, predicted []float64
	weights, cellsOwn    []float64
}

func newLeaver(a *pool.Arena, q *Problem, m *Model, f *factorCells, cells *reader) *leaver {
	return &leaver{q: q, m: m, f: f, cells: cells, mean: a.Floats(q.n), variance: a.Floats(q.n),
		turn: a.Floats(q.n), places: pool.Make[int32](a, q.n), residuals: a.Floats(q.n),
		predicted: a.Floats(q.n), weights: a.Floats(q.n), cellsOwn: a.Floats(q.n)}
}

// each reads the active rows from from to to-1, and calls g for each, row r of the last load.
func (l *leaver) each(from, to int, g func(k, r int)) {
	active := l.q.Active
	for at := from; at < to; { // the rows follow one another in the matrix unless a constant one lies between
		end := at + 1
		for end < to && active[end] == active[end-1]+1 {
			end++
		}
		l.cells.load(active[at], end-at)
		for k := at; k < end; k++ {
			g(k, k-at)
		}
		at = end
	}
}

// precision is the weight of an observed cell of active row k in the posterior.
func (l *leaver) precision(k, j int) float64 {
	return float64(l.m.precision(l.q.Active[k], j) * l.q.data.Cell(k, j))
}

// row fills the means of active row k, row r of the last load, and finds out whether it is predicted by
// samples that are alike.
func (l *leaver) row(k, r int) {
	c, i, np, data, means := l.cells, l.q.Active[k], l.cells.np, l.q.data, l.f.means[k]
	y := data.Y[k*np : (k+1)*np]
	l.places, l.residuals = l.places[:0], l.residuals[:0]
	l.weights, l.cellsOwn = l.weights[:0], l.cellsOwn[:0]
	weight := func(j int) float64 { return math.Sqrt(l.m.precision(i, j)) }
	without := l.mean // room: what the factors say of these cells follows below, by what correctAlike finds
	data.Rows[k].Each(l.q.n, func(j int) {
		c.count(r, j, data.Time(j))
		without[j] = c.without(r, j, y[j], l.precision(k, j))
		l.places, l.residuals = append(l.places, int32(j)), append(l.residuals, weight(j)*(y[j]-without[j]))
		l.weights, l.cellsOwn = append(l.weights, l.q.weight(i, j)), append(l.cellsOwn, data.Cell(k, j))
	})
	l.predicted = slices.Grow(l.predicted[:0], len(l.places))[:len(l.places)]
	if l.m.Alike != nil &&
		c.correctAlike(r, i, y, l.places, l.residuals, l.weights, l.cellsOwn, l.predicted) {
		for h, j := range l.places {
			without[j] += l.predicted[h] / weight(int(j))
		}
	}
	for j := range l.q.n {
		means[j] = c.factorMean(r, i, j)
	}
	if l.f.seen != nil {
		copy(l.f.seen[k*np:], means)
	}
	for _, j := range l.places {
		means[j] = without[j]
	}
}

// whole fills mean, variance and turn of active row k, row r of the last load, and its usual variance.
func (l *leaver) whole(k, r int) {
	c, i, np, list := l.cells, l.q.Active[k], l.cells.np, &l.q.data.Rows[k]
	for j := range l.mean {
		l.mean[j] = c.factorMean(r, i, j)
	}
	copy(l.variance, c.cells.variance[r*np:])
	list.Each(l.q.n, func(j int) {
		a, y, times := l.precision(k, j), l.q.data.Y[k*np+j], l.q.data.Time(j)
		c.count(r, j, times)
		l.turn[j] = c.withoutInTurn(r, j, y, a) - c.without(r, j, y, a)
		l.variance[j] += c.varianceWithout(r, j, a, times)
		l.f.usual[k] += float64(l.q.weight(i, j) * (l.variance[j] / list.Weight))
	})
}

// rowLearner learns the map of one row after another, for one worker: take takes the row, fit and addLoss go
// on with it.
type rowLearner struct {
	// Set once:
	q    *Problem
	m    *Model
	read *leaver
	// Of each row:
	k, i int
	c    *Curve
	y    []float64 // the row on its scale
	lows losses    // its floors
	// of each of its observed cells: its place, and its mean without it
	places     []int32
	without    []float64
	deviations []float64 // of all of its cells
	weight     float64   // of its observed cells
	room       []float64

	table  Table
	maps   mapLearner
	scaler scaler
	ends   [2]endScale
	all    histogram // of the residuals of all its rows
}

// newRowLearner makes one with room for rows of which no value comes twice.
func newRowLearner(a *pool.Arena, q *Problem, m *Model, read *leaver) *rowLearner {
	n := q.n
	l := &rowLearner{q: q, m: m, read: read, places: pool.Make[int32](a, n), without: a.Floats(n),
		deviations: a.Floats(n)}
	l.maps = mapLearner{z: a.Floats(n), p: a.Floats(n), x: a.Floats(n), cells: a.Floats(n),
		weights: a.Floats(n), order: pool.Make[int32](a, n)}
	l.maps.sorter.Resize(a, n)
	l.scaler = newScaler(a, n)
	return l
}

// endScale is the scale of a row without the one cell that has its least or its largest value: that cell has
// not made the scale that it is judged by. is tells that there is one such cell.
type endScale struct {
	is    bool
	x     float64
	c     Curve
	table Table
}

// leaveOutEnds makes the scales of the row without its ends.
func (l *rowLearner) leaveOutEnds() {
	l.room = l.q.weights(l.room, l.i)
	l.scaler.sort(l.q.row(l.i), l.room)
	sorted, weights := l.scaler.sorted, l.scaler.weights
	last := len(sorted) - 1
	for side := range l.ends {
		e := &l.ends[side]
		if e.is = last > 1 && sorted[side*last] != sorted[side*(last-2)+1]; !e.is {
			continue
		}
		rest := sorted[1-side : last+1-side]
		e.x = l.c.Seen[side]
		if weights != nil {
			l.scaler.fill(&e.c, rest, weights[1-side:last+1-side], l.q.signed)
		} else {
			l.scaler.fill(&e.c, rest, nil, l.q.signed)
		}
		e.c.grow(&l.q.tails, rest, l.q.takes(l.i))
		e.c.plain()
		e.table.Load(&e.c, false)
	}
}

// end returns the scale without a cell of value x, nil where that cell is not the only one at an end.
func (l *rowLearner) end(x float64) *endScale {
	for side := range l.ends {
		if e := &l.ends[side]; e.is && x == e.x {
			return e
		}
	}
	return nil
}

// times is how many cells of the weight of the h-th observed one have that of the row.
func (l *rowLearner) times(h int) float64 { return l.weight / l.maps.cells[h] }

// deviationWithout returns the deviation of the row's cells on its scale but for the h-th observed one, at y:
// all of them have mean 0 and deviation 1.
func (l *rowLearner) deviationWithout(h int, y float64) float64 {
	n := l.times(h)
	if len(l.places) < 2 || !(n > 1) {
		return 1
	}
	return math.Sqrt(max((n-float64(y*y))/(n-1)-squareOf(y/(n-1)), 1e-6))
}

// spread fills deviations.
func (l *rowLearner) spread() {
	l.deviations = slices.Grow(l.deviations[:0], l.q.n)[:l.q.n]
	l.m.deviations(l.deviations, l.read.variance, l.i)
}

// take takes active row k, which was read whole, and returns the mean of its observed cells.
func (l *rowLearner) take(k int) (mean float64) {
	l.k, l.i = k, l.q.Active[k]
	l.c = &l.m.Curves[l.i]
	l.table.Load(l.c, false)
	l.leaveOutEnds()
	np, without := kernel.Pad(l.q.n), l.read.f.means[k]
	l.y = l.q.data.Y[k*np : (k+1)*np]
	l.maps.x, l.maps.z, l.maps.parts = l.maps.x[:0], l.maps.z[:0], l.c.parts()
	l.places, l.without, l.maps.cells = l.places[:0], l.without[:0], l.maps.cells[:0]
	l.weight = l.q.data.Rows[k].Weight
	for j, x := range l.q.row(l.i) {
		if x == x {
			w := l.q.weight(l.i, j)
			l.maps.x, l.maps.cells = append(l.maps.x, x), append(l.maps.cells, w)
			mean += float64(w * (x / l.weight))
			l.places, l.without = append(l.places, int32(j)), append(l.without, without[j])
		}
	}
	for k, share := range floors {
		l.lows[k] = math.Inf(-1)
		if l.q.loss == divergence.KL {
			l.lows[k] = float64(share * mean)
		}
	}
	return mean
}

// predict returns what the model says of the h-th observed cell without it, in the units of x: p of curve.go,
// by the scale of the row without the cell where it is at an end. Another cell at y has in the scale that the
// mean of the others is not at 0 but at -y/(n_i-1).
func (l *rowLearner) predict(h int) float64 {
	j := int(l.places[h])
	w, s, y := l.without[h], l.deviations[j], l.y[j]
	if e := l.end(l.maps.x[h]); e != nil {
		deviation := l.deviationWithout(h, y)
		return e.table.Mean(w/deviation, s/deviation)
	}
	return l.table.Mean(w-y/max(l.times(h)-1, 1), s)
}

// addLoss adds the loss of what predict says of the row's observed cells, under each floor.
func (l *rowLearner) addLoss(to *losses) {
	unit := l.q.lossUnit
	for h, x := range l.maps.x {
		p, above := l.predict(h), -1.0 // the loss that all floors share which are below p
		loss := func(p float64) float64 {
			return float64(l.maps.cells[h] * (l.q.loss.Value(x/unit, p/unit, divergence.Tiny) / l.q.observed))
		}
		for k, low := range l.lows {
			if p < low {
				to[k] += loss(low)
			} else {
				if above < 0 {
					above = loss(p)
				}
				to[k] += above
			}
		}
	}
}

// fit fits the map of the row. T_i is learnt from predictions by the scale that has seen the cell: without
// it, T_i would follow what two cells say of the tails.
func (l *rowLearner) fit() rowSums {
	spread := 0.0
	for j := range l.q.n {
		s := l.deviations[j]
		spread += float64(s*s) / float64(l.q.n)
	}
	l.maps.p = l.maps.p[:0]
	turn, keep := l.read.turn, l.m.Stage.keep(l.i)
	for h, place := range l.places {
		j := int(place)
		s := l.deviations[j]
		l.maps.p = append(l.maps.p, l.table.Mean(l.without[h], s))
		// levels are learnt with the cell left out of row and column in turn
		l.addResidual(h, l.without[h]+float64(keep*turn[j]), s)
	}
	l.c.Spread = math.Sqrt(spread)
	l.maps.quantiles(l.c)
	l.all.take(&l.maps, countUnit(l.q.observed))
	return l.maps.fitMap(l.c, l.q.units[l.i], l.q.loss == divergence.KL)
}

// addResidual adds what the h-th observed cell says of the levels, w and s being its mean and its deviation.
// τ is taken without the cell, as a residual over a deviation that it has a part in has no long tails: with
// τ_i of leave-one-out, to first order, s² is less by the cell's own share of Σ_j ρ_j e_ij.
func (l *rowLearner) addResidual(h int, w, s float64) {
	j, n, weight := int(l.places[h]), l.weight, l.maps.cells[h]
	x, y := l.maps.x[h], l.y[j]
	own := float64(weight * float64(l.m.precision(l.i, j)*(max(float64((y-l.read.mean[j])*(y-w)), 0)+
		l.read.variance[j])))
	others := n + (tauCells - weight)
	s *= math.Sqrt(max(n+tauCells-own, leastTau*others) / others)
	if e := l.end(x); e != nil && len(e.c.X) > 1 {
		deviation := l.deviationWithout(h, y)
		x = min(max(x, e.c.X[0]), e.c.X[len(e.c.X)-1])
		l.maps.addResidual(&e.c, x, along(x, e.c.X, e.c.Y), w/deviation, s/deviation)
		return
	}
	l.maps.addResidual(l.c, x, y, w, s)
}

// leastTau is the least factor that leaving a cell out of τ changes s² by.
const leastTau = 0.1
