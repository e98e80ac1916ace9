package bqmf

// This file holds the second stage: each row predicted once more, by a regression of its own. The factors
// share few components among all rows. A row that is a sum of some others, or has a near copy, is told better
// by those rows; and a row that bends along the samples by samples that are like this one.
//
// With F_ij what the factors say of a cell, the filled table A has the observed cells on the scales of their
// rows, and F elsewhere. Row i is predicted by ridge regression over its observed cells S,
//
//	R_ij = t + β·x_j,  β = (XᵀX + λ|S| I)⁻¹ Xᵀ(A_i - t),  t the mean of A_i over S,
//
// whose regressors x_j, less their means over S, are
//
//	linear   A_lj, for the m rows l of A of largest |cosine| with row i;
//	radial   exp(-D_jr/(2cδ)), D_jr = Σ_{l≠i} g_l (A_lj - A_lr)², for some samples r at even steps; δ is
//	         the mean of such sums. For tables of at most radialRows rows and twice as many samples. Row i
//	         itself is left out, as it would tell what is to be predicted.
//
// At a hidden cell of row l F knows Y_ij, by v_j. A regression on that would be told of Y_ij by Y_ij itself,
// at all cells that it learns from or is judged by, and at none that is to be predicted. So where row i is
// observed it sees F of the v_j without it, with a = τ_i ρ_j
//
//	F_lj - a (Y_ij - u_i·v_j)/max(0.4, 1 - a u_iᵀC_j u_i) u_lᵀC_j u_i.
//
// What a bent row depends on are often few of the others, and distances in all rows are blind to that. So g
// begins at 1, and metricTurns times becomes the mean over S of the squared derivative by A_lj of the radial
// regression by the last g, with radialLeast samples and λ metricRidge; at least leastMetric of the largest.
//
// The mean of a cell is (1 - w - w') F_ij + w R_ij + w' R'_ij, weights multiples of 1/stageSteps.
//
// All of it is chosen by cells that the regression of their row does not see: a fold of the observed cells is
// not of S, and where rows are compared what the factors say of each without it (leaveout.go) stands in its
// place. Other rows are seen whole, as they are where a hidden cell is predicted. m, c and λ are those of the
// whole table, the least sum of logarithms of squares over some rows; rows that choose for themselves choose
// what fits their few inner cells. The weights are those of each row, by its inner cells and stageCells cells
// of the table's mean. Where cells are few more folds are tried, up to all ten.
//
// An observed cell is left out of the regression of its own row in closed form,
//
//	A_ij - R_ij⁻ = (A_ij - R_ij)/(1 - h_ij),  h_ij = x_j·(XᵀX + λ|S| I)⁻¹ x_j + 1/|S|.
//
// As the leave-one-out residuals of a row become smaller, so does the deviation of its cells, as far as the
// regression sees observed cells of the column: with s the share of |β|² whose rows are observed there, the
// variance is multiplied by 1 - (1 - shrink²) s. Rows that are hidden together make nothing surer.
//
// Cost, n_p the padded n: 2dn_p flops a row, among at most stageBlock rows; 2K²n_p a row, and 2Kn_p for each
// row that it sees; 6m²n_p + 4m³ a row for m regressors of a kind; and for each fold the same again.

import (
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// The choices of the table: m, the lengths c of radial regressors, and λ.
var (
	stageSizes   = [...]int{5, 10, 20, 40}
	stageLengths = [...]float64{0.05, 0.3, 1.5}
	stageRidges  = [...]float64{1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1}
)

const (
	stageMost    = 40      // the largest m
	radialRows   = 64      // rows in more than which samples are all far from each other
	radialLeast  = 64      // samples that radial regressors are about: so many, or an eighth of all
	radialMost   = 256     // but no more, each of which costs a line
	radialRoom   = 1 << 21 // numbers that these lines have together, at most
	metricTurns  = 2       // four: -8 to +6 %
	metricRidge  = 1e-4    // ten times less or more is 0 to 1 % worse
	leastMetric  = 1e-4    // so that no row is lost for good
	stageLeast   = 10      // observed cells of a row that has a second stage
	stageFolds   = 10      // an inner cell is one of a fold
	stageTried   = 4000    // inner cells that are enough to choose by
	stageRows    = 64      // rows that are enough to choose m, c and λ by
	stageCells   = 100     // pseudo-cells of the table that draw the weights of a row
	stageSteps   = 4       // weights are multiples of 1/stageSteps
	stageBlock   = 2048    // rows that are compared with each other
	leastShrink  = 0.05    // of a deviation
	leastOutside = 0.02    // of 1 - h
)

// regressors are the kinds of regressors.
const (
	linear = iota // other rows
	radial        // exp(-D_jr/(2cδ)) for some samples r
	regressions
)

// recipe is how the regressors of a kind are made and weighed: m or c, and λ.
type recipe struct {
	kind, size int
	length     float64
	ridge      float64
}

// recipes are those that are tried; those of one kind and size or length follow one another.
func recipes(withRadial bool) (all []recipe) {
	for _, ridge := range stageRidges {
		for _, m := range stageSizes {
			all = append(all, recipe{kind: linear, size: m, ridge: ridge})
		}
	}
	if withRadial {
		for _, c := range stageLengths {
			for _, ridge := range stageRidges {
				all = append(all, recipe{kind: radial, size: radialMost, length: c, ridge: ridge})
			}
		}
	}
	return all
}

// factorCells are what the factors say of the cells of the active rows. A line is Pad(N) numbers.
type factorCells struct {
	// a line for each row: the mean, at observed cells without the cell. A row that has a second stage has
	// its part of that in the room of its line, which nobody else reads by then
	means [][]float64
	// the same at observed cells with the cell; nil where no cell has a weight
	seen []float64
	// of each row the mean variance of its observed cells, each without the cell
	usual []float64
}

// stager makes the second stage of a problem.
type stager struct {
	q         *Problem
	f         *factorCells
	lines     int       // active rows
	np, k     int       // k: K of the factors
	filled    []float64 // A, a line of np for each active row
	norm      []float64 // of each line of filled
	refs      []int     // samples that radial regressors are about, none where there are no such
	rooms     []*stageRoom
	rehearsal *rehearsal // nil: none
	lacking   bool       // A has some of what the factors say
	active    []int      // of each row of the matrix its place among the active ones
	// chosen:
	recipes [regressions]recipe
	weights [][regressions]float64 // of each active row
	// of each active row the sum of the squares that the factors are off by (0) and that the mixture is: at
	// inner cells, and at observed ones that are left out
	innerOff, looOff [][2]float64
}

// stageRoom is the room of a worker. raw, x, t and on are of the row of the last gather: lines of its
// regressors; those over S less their means, times the roots of the cells' weights, 0 elsewhere; the row less
// its mean, likewise; and the weights over S.
type stageRoom struct {
	dots              []float64 // of the last compare
	from, first, last int       // its first row; the rows of the block
	gram, rhs         []float64
	of                []int
	metric            *metric
	row, size         int // the row of the last take; how many regressors
	raw, x, t, on     []float64
	roots             []float64 // of on
	means             []float64
	mean, count       float64   // count: Σ on
	cells             int       // of S
	moved, shift      []float64 // K lines, and one
	view              []float64 // where there are refs: A as the row taken sees it
	fit, hat          []float64
	inside, inverse   []float64
	system            system
	together, alone   []float64 // what the last row is predicted as in rehearsals
}

// newStager makes the room for a active rows and k components.
func (q *Problem) newStager(p *pool.Pool, f *factorCells, a, k int) *stager {
	m := p.Memory
	s := &stager{q: q, f: f, lines: a, np: kernel.Pad(q.n), k: k, rooms: make([]*stageRoom, p.Workers())}
	s.filled, s.norm = m.Floats(a, s.np), m.Floats(a)
	s.weights = pool.Make[[regressions]float64](m, a)
	s.active = pool.Make[int](m, q.d)
	for a, i := range q.Active {
		s.active[i] = a
	}
	s.lacking = q.cells != nil || q.data != nil && q.data.Observed() < a*q.n
	s.innerOff, s.looOff = pool.Make[[2]float64](m, a), pool.Make[[2]float64](m, a)
	if a <= radialRows && 2*a <= q.n {
		s.refs = q.evenly(min(max(q.n/8, radialLeast), radialMost, radialRoom/q.n, q.n))
	}
	return s
}

// room returns the room of a worker.
func (s *stager) room(w int) *stageRoom {
	if s.rooms[w] == nil {
		s.rooms[w] = s.newRoom(nil)
	}
	return s.rooms[w]
}

func (s *stager) newRoom(a *pool.Arena) *stageRoom {
	most := max(min(stageMost, s.lines), len(s.refs))
	lines := func() []float64 { return a.Floats(most, s.np) }
	line := func() []float64 { return a.Floats(s.np) }
	square := func() []float64 { return a.Floats(most, most) }
	view := 0
	if s.refs != nil {
		view = s.lines
	}
	return &stageRoom{dots: a.Floats(4, min(stageBlock, s.lines)),
		moved: a.Floats(s.k, s.np), shift: line(), view: a.Floats(view, s.np),
		gram: square(), metric: newMetric(a, s), rhs: a.Floats(most), raw: lines(), x: lines(), t: line(),
		on: line(), roots: line(),
		means: a.Floats(most), fit: line(), hat: line(), inside: lines(), inverse: square()}
}

func (s *stager) line(v []float64, a int) []float64 { return v[a*s.np : (a+1)*s.np] }

// inner tells whether an observed cell is one of a fold. Fold -1 has none.
func inner(a, j, fold int) bool {
	if fold < 0 {
		return false
	}
	r := random.Split(uint64(a), j)
	return int(r.Uint64()%stageFolds) == fold
}

// fill fills A, in which the cells of a fold are hidden, and those of a weight w below 1 are by 1 - w.
func (s *stager) fill(p *pool.Pool, fold int) {
	p.Do(s.lines, func(_, a int) {
		line, y := s.line(s.filled, a), s.line(s.q.data.Y, a)
		copy(line, s.f.means[a])
		s.q.data.Rows[a].Each(s.q.n, func(j int) {
			if inner(a, j, fold) {
				return
			}
			if w := s.q.data.Cell(a, j); w < 1 {
				seen := s.line(s.f.seen, a)[j]
				line[j] = seen + float64(w*(y[j]-seen))
			} else {
				line[j] = y[j]
			}
		})
		s.norm[a] = math.Sqrt(max(product(line, line), 1e-12))
	})
}

// rows calls g for each active row, of the last compare, with the room of the worker.
func (s *stager) rows(p *pool.Pool, g func(r *stageRoom, worker, k int)) {
	a := s.lines
	p.Do((a+3)/4, func(w, piece int) { // four rows are in one block
		from, end := 4*piece, min(4*piece+4, a)
		r := s.room(w)
		s.compare(r, from, end)
		for k := from; k < end; k++ {
			g(r, w, k)
		}
	})
}

// take fills the room with active row a, the cells of a fold hidden.
func (s *stager) take(r *stageRoom, a, fold int) {
	r.row, r.count, r.size, r.cells = a, 0, 0, 0
	clear(r.on)
	s.q.data.Rows[a].Each(s.q.n, func(j int) {
		if !inner(a, j, fold) {
			r.on[j] = s.weight(a, j)
			r.count += r.on[j]
			r.cells++
		}
	})
	for j, w := range r.on {
		r.roots[j] = math.Sqrt(w)
	}
	r.mean = r.center(r.t, s.line(s.q.data.Y, a))
	if s.leave(r); s.refs != nil {
		for l := range s.lines {
			s.see(r, s.line(r.view, l), l)
		}
	}
}

// leave fills moved with what the observed cells of the row taken have moved the v of their samples by.
func (s *stager) leave(r *stageRoom) {
	if !s.lacking {
		return
	}
	p, k, i, y := s.q.reader.p, s.k, s.q.Active[r.row], s.line(s.q.data.Y, r.row)
	u, by, spread, mean := p.rowU(i), r.shift, r.hat, r.fit
	for c := range k { // C_j u
		kernel.Combine(s.line(r.moved, c), u, s.q.reader.planes[c*k*s.np:(c+1)*k*s.np])
	}
	kernel.Combine(spread, u, r.moved)
	kernel.Combine(mean, u, p.V)
	clear(by)
	s.q.data.Rows[r.row].Each(s.q.n, func(j int) {
		w := float64(p.precision(i, j) * s.q.data.Cell(r.row, j))
		by[j] = float64(w*(y[j]-mean[j])) / max(slack, 1-float64(w*spread[j]))
	})
	for c := range k {
		kernel.Multiply(s.line(r.moved, c), s.line(r.moved, c), by)
	}
}

// see fills to with line l of A as the row taken sees it. No fold is hidden in it.
func (s *stager) see(r *stageRoom, to []float64, l int) {
	from, y, i := s.line(s.filled, l), s.line(s.q.data.Y, l), s.q.Active[l]
	copy(to, from)
	if s.lacking {
		kernel.Combine(r.shift, s.q.reader.p.rowU(i), r.moved)
	}
	for j, x := range s.q.row(i) {
		switch w := s.q.data.Cell(l, j); {
		case from[j] == y[j]:
		case x != x:
			to[j] -= r.shift[j]
		case w < 1:
			to[j] = float64(w*y[j]) + float64((1-w)*(s.line(s.f.seen, l)[j]-r.shift[j]))
		default:
			to[j] = y[j]
		}
	}
}

// weight is that of an observed cell of active row a, and of its sample.
func (s *stager) weight(a, j int) float64 { return s.q.weight(s.q.Active[a], j) }

// center fills to with a line less its mean over S, by the roots of weights, 0 elsewhere, and returns the
// mean.
func (r *stageRoom) center(to, from []float64) (mean float64) {
	mean = product(r.on, from) / r.count
	kernel.Shift(to, from, mean)
	kernel.Multiply(to, to, r.roots)
	return mean
}

// gather fills the room with the regressors of row a that a recipe asks for.
func (s *stager) gather(r *stageRoom, a int, by *recipe) {
	if by.kind == linear {
		s.neighbours(r, a)
	} else {
		s.about(r, by.length)
	}
	s.moments(r)
}

// moments fills the room with what a regression needs of its raw regressors.
func (s *stager) moments(r *stageRoom) {
	for h := range r.size {
		r.means[h] = r.center(s.line(r.x, h), s.line(r.raw, h))
	}
	m, np := r.size, s.np
	for from := 0; from < m; from += 4 { // the lower triangle
		end := min(from+4, m)
		rows := r.inverse[:(end-from)*end]
		kernel.DotsRows(rows, r.x[:end*np], r.x[from*np:end*np], end-from)
		for h := from; h < end; h++ {
			copy(r.gram[h*m:h*m+end], rows[(h-from)*end:])
		}
	}
	kernel.Dots(r.rhs[:m], r.x[:m*np], r.t)
}

// compare fills dots with the inner products of rows from to end-1, of one block and at most four, with all
// rows of the block.
func (s *stager) compare(r *stageRoom, from, end int) {
	r.from, r.first = from, from/stageBlock*stageBlock
	r.last = min(r.first+stageBlock, s.lines)
	kernel.DotsRows(r.dots[:(end-from)*(r.last-r.first)], s.filled[r.first*s.np:r.last*s.np],
		s.filled[from*s.np:end*s.np], end-from)
}

// neighbours makes the rows that go with row a, of the last compare, its regressors: those of largest
// |cosine|, falling.
func (s *stager) neighbours(r *stageRoom, a int) {
	dots := r.dots[(a-r.from)*(r.last-r.first):][:r.last-r.first]
	most := min(stageMost, max(r.cells-5, stageSizes[0]), len(dots)-1)
	r.of = r.of[:0]
	for b, dot := range dots {
		dots[b] = math.Abs(dot) / s.norm[r.first+b]
		if r.first+b == a || len(r.of) == most && !(dots[b] > dots[r.of[most-1]]) {
			continue
		}
		if len(r.of) < most {
			r.of = append(r.of, b)
		}
		h := len(r.of) - 1
		for ; h > 0 && dots[r.of[h-1]] < dots[b]; h-- {
			r.of[h] = r.of[h-1]
		}
		r.of[h] = b
	}
	r.size = len(r.of)
	for h, b := range r.of {
		r.of[h] = r.first + b
		s.see(r, s.line(r.raw, h), r.first+b)
	}
}

// solve returns β of a recipe, of the regressors that were gathered for its kind and length.
func (r *stageRoom) solve(by *recipe) (beta []float64) {
	m, all := min(by.size, r.size), r.size
	ws := &r.system
	if ws.k != m || ws.a == nil {
		*ws = newSystem(nil, m)
	}
	for c := range m {
		copy(ws.a[c*ws.kp:][:c+1], r.gram[c*all:])
		ws.a[c*ws.kp+c] += float64(by.ridge * r.count)
	}
	copy(ws.border(), r.rhs[:m])
	ws.solve()
	return ws.border()
}

// at returns R at column j.
func (s *stager) at(r *stageRoom, beta []float64, j int) float64 {
	sum := r.mean
	for h, b := range beta {
		sum += float64(b * (r.raw[h*s.np+j] - r.means[h]))
	}
	return sum
}

// innerErrors are, of the inner cells of a row, how many there are, and the sums of products of what the
// factors (0) and the regressions are off by.
type innerErrors struct {
	cells    float64
	products [regressions + 1][regressions + 1]float64
}

// eachInner calls g for the inner cells of the row taken.
func (s *stager) eachInner(r *stageRoom, a int, g func(j int)) {
	s.q.data.Rows[a].Each(s.q.n, func(j int) {
		if r.on[j] == 0 {
			g(j)
		}
	})
}

// staged tells whether a row may have a second stage.
func (s *stager) staged(a int) bool {
	return s.q.data.Rows[a].Count >= stageLeast && s.lines > 1
}

// choose chooses the recipes of the table and the weights of all rows.
func (s *stager) choose(p *pool.Pool) {
	a := s.lines
	folds := min(max(int(math.Ceil(stageTried*stageFolds/float64(s.q.data.Observed()))), 1), stageFolds)
	s.fill(p, 0)
	s.chooseRecipes(p)
	errors := make([]innerErrors, a)
	for fold := range folds {
		if fold > 0 {
			s.fill(p, fold)
		}
		s.rows(p, func(r *stageRoom, w, k int) {
			if !s.staged(k) {
				return
			}
			e := &errors[k]
			s.take(r, k, fold)
			y, without := s.line(s.q.data.Y, k), s.f.means[k]
			off, weights := make([][regressions + 1]float64, 0, s.q.n), []float64(nil)
			s.eachInner(r, k, func(j int) {
				off = append(off, [regressions + 1]float64{y[j] - without[j]})
				weights = append(weights, s.weight(k, j))
			})
			for kind := range s.recipes {
				if s.recipes[kind].size == 0 {
					continue
				}
				s.gather(r, k, &s.recipes[kind])
				beta, at := r.solve(&s.recipes[kind]), 0
				s.eachInner(r, k, func(j int) {
					off[at][1+kind] = y[j] - s.at(r, beta, j)
					at++
				})
			}
			for c, o := range off {
				e.cells += weights[c]
				for g := range o {
					for h := range o {
						e.products[g][h] += float64(weights[c] * float64(o[g]*o[h]))
					}
				}
			}
		})
	}
	s.weigh(errors)
}

// chooseRecipes chooses, for each kind, the recipe with the least sum over some rows of the logarithms of the
// mean squares that their inner cells are off by.
func (s *stager) chooseRecipes(p *pool.Pool) {
	all := recipes(s.refs != nil)
	a := s.lines
	count := min(stageRows, a)
	scores := make([][]float64, count)
	p.Do(count, func(w, c int) {
		k, r := c*a/count, s.room(w)
		if !s.staged(k) {
			return
		}
		s.compare(r, k, k+1)
		s.take(r, k, 0)
		cells := 0.0
		s.eachInner(r, k, func(j int) { cells += s.weight(k, j) })
		if cells == 0 {
			return
		}
		scores[c] = make([]float64, len(all))
		y := s.line(s.q.data.Y, k)
		for h := range all {
			if h == 0 || all[h].kind != all[h-1].kind || all[h].length != all[h-1].length {
				s.gather(r, k, &all[h])
			}
			beta, sum := r.solve(&all[h]), 0.0
			s.eachInner(r, k, func(j int) {
				sum += float64(s.weight(k, j) * squareOf(y[j]-s.at(r, beta, j)))
			})
			scores[c][h] = elem.Log(min(sum/cells, 1e100) + 1e-9)
		}
	})
	var least [regressions]float64
	for h := range all {
		sum, kind := 0.0, all[h].kind
		for _, score := range scores {
			if score != nil {
				sum += score[h]
			}
		}
		if s.recipes[kind].size == 0 || sum < least[kind] {
			s.recipes[kind], least[kind] = all[h], sum
		}
	}
}

// weigh chooses the weights of each row by what its inner cells, and stageCells cells of the table's mean,
// are off by.
func (s *stager) weigh(errors []innerErrors) {
	type mix [regressions + 1]float64
	var mixes []mix
	for l := range stageSteps + 1 {
		for r := range stageSteps + 1 - l {
			if r == 0 || s.refs != nil {
				mixes = append(mixes, mix{float64(stageSteps-l-r) / stageSteps, float64(l) / stageSteps,
					float64(r) / stageSteps})
			}
		}
	}
	off := func(e *innerErrors, w *mix) (sum float64) {
		for g, a := range w {
			for h, b := range w {
				sum += float64(a * b * e.products[g][h])
			}
		}
		return sum
	}
	table, cells := make([]float64, len(mixes)), 0.0
	for k := range errors {
		cells += errors[k].cells
		for c := range mixes {
			table[c] += off(&errors[k], &mixes[c])
		}
	}
	for k := range errors {
		least := math.Inf(1)
		if errors[k].cells == 0 {
			continue
		}
		for c := range mixes {
			if t := off(&errors[k], &mixes[c]) + float64(stageCells*table[c]/cells); t < least {
				least = t
				copy(s.weights[k][:], mixes[c][1:])
				s.innerOff[k] = [2]float64{errors[k].products[0][0], off(&errors[k], &mixes[c])}
			}
		}
	}
}

// row makes the stage of active row k, and changes without, of its observed cells at places, to that of the
// mixture. It tells whether there is a stage.
func (s *stager) row(r *stageRoom, m *Stage, k int, places []int32, without []float64) bool {
	keep := 1.0
	for _, w := range s.weights[k] {
		keep -= w
	}
	s.rehearseRow(r, k, keep)
	if keep == 1 {
		return false
	}
	i := s.q.Active[k]
	of := &m.Rows[i]
	*of = StageRow{Keep: keep, Shrink: 1}
	y, part, mixed := s.line(s.q.data.Y, k), s.f.means[k], make([]float64, len(places))
	clear(part)
	for h := range mixed {
		mixed[h] = float64(keep * without[h])
	}
	s.take(r, k, -1)
	for kind, w := range s.weights[k] {
		if w == 0 {
			continue
		}
		s.gather(r, k, &s.recipes[kind])
		beta := r.solve(&s.recipes[kind])
		constant := r.hats(beta, s.np)
		of.Constant += float64(w * constant)
		for h, b := range beta {
			if kind == linear {
				of.Of, of.Weights = append(of.Of, int32(s.q.Active[r.of[h]])),
					append(of.Weights, float64(w*b))
			} else {
				of.About = append(of.About, float64(w*b))
			}
		}
		if kind == radial {
			of.Metric = make([]float64, s.q.d)
			for l, g := range r.metric.weights {
				of.Metric[s.q.Active[l]] = g
			}
		}
		for j, t := range r.fit[:s.q.n] {
			part[j] += float64(w * (t + constant))
		}
		for h, j := range places {
			off := (y[j] - (r.fit[j] + constant)) / max(1-r.hat[j], leastOutside)
			mixed[h] += float64(w * (y[j] - off))
		}
		s.rehearseRegression(r, k, kind, w, constant, beta)
	}
	m.part[i] = part
	before, after := 0.0, 0.0
	for h, j := range places {
		before += float64(r.on[j] * squareOf(y[j]-without[h]))
		after += float64(r.on[j] * squareOf(y[j]-mixed[h]))
	}
	copy(without, mixed)
	s.looOff[k] = [2]float64{before, after}
	if after < before {
		of.Shrink = max(math.Sqrt(after/before), leastShrink)
	}
	return true
}

// hats fills fit with β·regressors and hat with h, and returns what fit lacks of R.
func (r *stageRoom) hats(beta []float64, np int) (constant float64) {
	m, ws := len(beta), &r.system
	for h := range m {
		for g := range h + 1 {
			v := -ws.a[h*ws.kp+g]
			r.inverse[h*m+g], r.inverse[g*m+h] = v, v
		}
	}
	kernel.Combine(r.fit, beta, r.raw[:m*np])
	kernel.CombineRows(r.inside[:m*np], r.inverse[:m*m], r.x[:m*np], m)
	for j := range r.hat {
		r.hat[j] = 1 / r.count
		if on := r.on[j]; on > 0 {
			r.hat[j] = on / r.count
		}
	}
	for h := range m {
		z := r.inside[h*np : (h+1)*np]
		for j, t := range r.x[h*np : (h+1)*np] {
			r.hat[j] += float64(t * z[j])
		}
	}
	constant = r.mean
	for h, b := range beta {
		constant -= float64(b * r.means[h])
	}
	return constant
}

// newStage returns a stage of d rows that have none yet.
func (s *stager) newStage(d int) *Stage {
	q := s.q
	m := &Stage{Rows: make([]StageRow, d), words: (q.n + 63) / 64, part: make([][]float64, d)}
	m.observed = make([]uint64, d*m.words)
	for i := range d {
		m.Rows[i] = StageRow{Keep: 1, Shrink: 1}
		for j, x := range q.row(i) {
			if x == x {
				m.see(i, j)
			}
		}
	}
	if s.refs != nil {
		m.about = make([][]float64, d)
		for k, i := range q.Active {
			for _, ref := range s.refs {
				m.about[i] = append(m.about[i], s.line(s.filled, k)[ref])
			}
		}
	}
	return m
}

// optimism is by how much more the mixture gains at cells that are left out of it than at inner cells, which
// it has not seen at all: the rows of a regression were chosen by all cells. It is at least 1.
func (s *stager) optimism() float64 {
	var in, out [2]float64
	for k := range s.looOff {
		if s.looOff[k][0] > 0 { // a row with a second stage
			for h := range in {
				in[h] += s.innerOff[k][h]
				out[h] += s.looOff[k][h]
			}
		}
	}
	if !(in[0] > 0 && out[1] > 0) {
		return 1
	}
	return max(in[1]/in[0]*(out[0]/out[1]), 1)
}
