package bqmf

// This file holds the correction of a cell by the residuals of the same row at samples that are alike. A row
// may bend along the samples as no linear form in v does, for example where the samples come in kinds. What
// the factors leave of such a row is a smooth function of v. A Gaussian process for every row has the kernel
//
//	κ_jl = exp(-|w_j - w_l|² / (2 alikeLength δ)),  w = Lᵀv,  L Lᵀ = Σ_i τ_i u_i u_iᵀ.
//
// Here |w_j - w_l|² is the distance of two columns of UV in units of the noise, and δ the mean of it over all
// pairs. Let e_ij be the leave-one-out residual of a cell (leaveout.go) times √(τ_i ρ_j), and 0
// where the cell is hidden. The process predicts at sample j
//
//	f_i Σ_l b_jl e_il,  b_j = (κ + alikeRidge I)⁻¹ κ_j,
//
// a sum over the alikeMost samples nearest to j among at most alikeBlock samples, evenly spread. f_i, from 0
// to 1, is fitted to the observed cells of the row. The row has no such prediction where less than a share
// leastGain, or alikeGain/n_i for n_i observed cells, of its squared residuals goes away (correction). An
// observed cell has drawn v_j to where its own residual is small. Without the cell, to first order and with
// the row held,
//
//	w_j⁻ = w_j - A (Y_ij - u_i·v_j) LᵀC_j u_i / max(0.4, 1 - A u_iᵀC_j u_i),  A = τ_i ρ_j.
//
// The kernel κ_j of that cell is taken at w_j⁻; the kernel among the other samples stays as it is.
//
// Cost: 2K flops for each pair of a sample and one of the alikeBlock, alikeMost²(K + alikeMost) for each
// sample, 2 alikeMost a cell; and 2K² + alikeMost (3K + 2 alikeMost) for each cell of a row that may have
// such a prediction.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

const (
	alikeMost   = 24
	alikeLength = 0.1
	alikeRidge  = 1
	alikeGain   = 6    // in units of 1/n_i; chance alone takes away about one
	leastGain   = 0.02 // of the squares of a row's residuals, below which it has no such prediction
	alikeBlock  = 2048 // samples that each is compared with
	alikeWeight = 5    // above every weight: |b| <= |κ_j| / alikeRidge <= √alikeMost
)

// Alike is the prediction of residuals at samples that are alike. References are the samples that all samples
// are compared with: each step-th one.
type Alike struct {
	Z [][]float64 // of each row f e at the references; nil where the row has no such prediction
	// of each row, the factor by which the prediction makes its deviation smaller
	DeviationShrink []float64

	n, k, kp int
	step     int
	low      []float64 // L over √(2 alikeLength δ), K × kp
	middle   []float64 // K: the mean of v
	at       []float64 // places w of the references, each kp
	squares  []float64 // |w|² of the references
	of       []int32   // of each sample alikeMost references, nearest first; -1: none
	weights  []float64 // b, as of has the references
	// What reader.correctAlike alone needs, nil after settled.
	places []float64 // of each sample its place w, kp numbers
	// of each sample (κ + alikeRidge I)⁻¹, alikeMost × alikeMost, 0 where there are fewer references
	inverses []float64
	// Lᵀ over √(2 alikeLength δ), four rows at a time, each of them from the first column that is not 0
	flipped []float64
}

func alikeStep(n int) int { return (n + alikeBlock - 1) / alikeBlock }

// reference returns the reference that sample j is; -1: none.
func (a *Alike) reference(j int) int {
	if j%a.step != 0 {
		return -1
	}
	return j / a.step
}

// compared is the number of references.
func (a *Alike) compared() int { return (a.n + a.step - 1) / a.step }

// newAlike makes the room of d rows, n samples and k components.
func newAlike(m *pool.Arena, d, n, k int) *Alike {
	kp := kernel.Pad(k)
	a := &Alike{Z: pool.Make[[]float64](m, d), DeviationShrink: m.Floats(d), n: n, k: k, kp: kp,
		step: alikeStep(n), low: m.Floats(k, kp), middle: m.Floats(k)}
	a.at, a.squares = m.Floats(a.compared(), kp), m.Floats(a.compared())
	a.of, a.weights = pool.Make[int32](m, n, alikeMost), m.Floats(n, alikeMost)
	return a
}

// makeLearning makes the room that reader.correctAlike alone needs.
func (a *Alike) makeLearning(m *pool.Arena) {
	a.places, a.inverses = m.Floats(a.n, a.kp), m.Floats(a.n, alikeMost*alikeMost)
	a.flipped = m.Floats(a.k, a.k)[:0]
}

// alike returns L and the places of the references, nil where all samples are in one place.
func (p *Posterior) alike() *Alike {
	k, kp, np, a := p.K, kernel.Pad(p.K), kernel.Pad(p.N), newAlike(nil, p.D, p.N, p.K)
	trace, active := 0.0, 0.0 // rows that are not constant
	for _, t := range p.Tau {
		if t > 0 {
			active++
		}
	}
	for i, t := range p.Tau {
		a.DeviationShrink[i] = 1
		u := p.rowU(i)
		for r, x := range u {
			tx := t / active * x
			row := a.low[r*kp:]
			for c, y := range u[:r+1] {
				row[c] += float64(tx * y)
			}
			trace += float64(tx * x)
		}
	}
	for r := range k {
		a.low[r*kp+r] += float64(1e-9 * trace)
	}
	cholesky(a.low, k, kp)
	count := a.compared()
	seen := 0.0
	for l := range count {
		if !p.absent(l * a.step) {
			seen++
		}
	}
	for c := range k {
		for l := range count {
			if !p.absent(l * a.step) {
				a.middle[c] += p.V[c*np+l*a.step] / seen
			}
		}
	}
	v := make([]float64, k)
	unit := 0.0
	for l := range count {
		if p.absent(l * a.step) {
			continue
		}
		p.column(v, l*a.step)
		for _, t := range a.place(a.at[l*kp:(l+1)*kp], v) {
			unit += float64(2*float64(t*t)) / seen
		}
	}
	scale := 1 / math.Sqrt(2*alikeLength*unit)
	if !(scale > 0) || scale > math.MaxFloat64 {
		return nil
	}
	kernel.Scale(a.low, a.low, scale)
	kernel.Scale(a.at, a.at, scale)
	for l := range count {
		at := a.at[l*kp : (l+1)*kp]
		a.squares[l] = product(at, at)
		if p.absent(l * a.step) {
			a.squares[l] = math.Inf(1) // far from all
		}
	}
	return a
}

// column fills v with v_j.
func (p *Posterior) column(v []float64, j int) {
	for c := range v {
		v[c] = p.V[c*kernel.Pad(p.N)+j]
	}
}

// place fills w, kp numbers, with the place of a sample.
func (a *Alike) place(w, v []float64) []float64 {
	clear(w)
	for r, t := range v {
		t -= a.middle[r]
		for c, l := range a.low[r*a.kp : r*a.kp+r+1] {
			w[c] += float64(t * l)
		}
	}
	return w
}

// Finder finds the references nearest to a sample, for one worker.
type Finder struct {
	a       *Alike
	dots    []float64
	w       []float64
	squares []float64 // squared distances of the references found
	Of      []int32   // the references found, nearest first
	ws      system
}

// Finder returns a new one.
func (a *Alike) Finder() *Finder {
	return &Finder{a: a, dots: make([]float64, a.compared()), w: make([]float64, a.kp),
		squares: make([]float64, alikeMost+1), Of: make([]int32, 0, alikeMost+1)}
}

// Find fills Of for a sample of coordinates v and returns its weights b. Reference own, the sample itself, is
// left out; -1: none. The next call overwrites what it returns.
func (s *Finder) Find(v []float64, own int) (b []float64) {
	a, kp := s.a, s.a.kp
	a.place(s.w, v)
	square := product(s.w, s.w)
	kernel.DotsRows(s.dots, a.at, s.w, 1)
	s.Of = s.Of[:0]
	for l, dot := range s.dots {
		t := max(square+a.squares[l]-2*dot, 0)
		if l == own || !(t < alikeFar) || len(s.Of) == alikeMost && t >= s.squares[alikeMost-1] {
			continue
		}
		h := len(s.Of)
		s.Of = append(s.Of, 0)
		for ; h > 0 && s.squares[h-1] > t; h-- {
			s.squares[h], s.Of[h] = s.squares[h-1], s.Of[h-1]
		}
		s.squares[h], s.Of[h] = t, int32(l)
		s.Of = s.Of[:min(len(s.Of), alikeMost)]
	}
	k := len(s.Of)
	if s.ws.k != k || s.ws.a == nil {
		s.ws = newSystem(nil, k)
	}
	b = s.ws.border()
	for r, l := range s.Of {
		row, w := s.ws.a[r*s.ws.kp:], a.at[int(l)*kp:(int(l)+1)*kp]
		a.distances(row[:r], w, s.Of[:r])
		for c, t := range row[:r] {
			row[c] = alikeness(t)
		}
		row[r] = 1 + alikeRidge
		b[r] = alikeness(s.squares[r])
	}
	s.ws.solve()
	for _, t := range b {
		if !(math.Abs(t) <= alikeWeight) { // places read from a file may be too far apart for their distances
			s.Of = s.Of[:0]
			return b[:0]
		}
	}
	return b
}

// alikeFar is the squared distance, over 2 alikeLength δ, beyond which κ is below 1e-13 and counts as 0.
const alikeFar = 30

// samples compares the samples. With learn, reader.correctAlike then finds out which rows are predicted by
// it. It returns nil where all samples are in one place, or when the pool's work was stopped.
func (p *Posterior) samples(workers *pool.Pool, learn bool) *Alike {
	a := p.alike()
	if a == nil {
		return nil
	}
	const size = alikeMost * alikeMost
	if learn {
		a.makeLearning(workers.Memory)
		a.flip()
	}
	type room struct {
		*Finder
		v []float64
	}
	work := make([]*room, workers.Workers())
	workers.Do(p.N, func(w, j int) {
		if work[w] == nil {
			work[w] = &room{a.Finder(), make([]float64, p.K)}
		}
		ws := work[w]
		p.column(ws.v, j)
		b := ws.Find(ws.v, a.reference(j))
		of := a.of[j*alikeMost : (j+1)*alikeMost]
		for h := range of {
			of[h] = -1
		}
		copy(of, ws.Of)
		copy(a.weights[j*alikeMost:], b)
		if learn {
			copy(a.places[j*a.kp:], ws.w)
			inverse := a.inverses[j*size:]
			for r := range b {
				for c, t := range ws.ws.a[r*ws.ws.kp:][:r+1] {
					inverse[r*alikeMost+c], inverse[c*alikeMost+r] = -t, -t
				}
			}
		}
	})
	if workers.Err() != nil {
		return nil
	}
	return a
}

// placed returns predictions by the residuals of others, at the places that samples have now; nil for nil.
func (p *Posterior) placed(of *Alike, workers *pool.Pool) *Alike {
	if of == nil {
		return nil
	}
	a := p.samples(workers, false)
	if a != nil {
		a.Z, a.DeviationShrink = of.Z, of.DeviationShrink
	}
	return a
}

// settled drops what reader.correctAlike alone needs, and returns nil where no row has such a prediction.
func (a *Alike) settled() *Alike {
	if a == nil || !slices.ContainsFunc(a.Z, func(z []float64) bool { return z != nil }) {
		return nil
	}
	a.places, a.inverses, a.flipped = nil, nil, nil
	return a
}

// learning tells whether reader.correctAlike may still be asked.
func (a *Alike) learning() bool { return a != nil && a.inverses != nil }

// flip fills flipped.
func (a *Alike) flip() {
	for from := 0; from < a.k; from += 4 {
		for h := from; h < min(from+4, a.k); h++ {
			for g := from; g < a.k; g++ {
				a.flipped = append(a.flipped, a.low[g*a.kp+h])
			}
		}
	}
}

// references returns those nearest to sample j.
func (a *Alike) references(j int) []int32 {
	of := a.of[j*alikeMost : (j+1)*alikeMost]
	for h, l := range of {
		if l < 0 {
			return of[:h]
		}
	}
	return of
}

// predicts tells whether row i has such a prediction.
func (a *Alike) predicts(i int) bool { return a != nil && a.Z[i] != nil }

// prediction returns the prediction of sample j by residuals z at the references.
func (a *Alike) prediction(z []float64, j int) float64 {
	return weighed(z, a.references(j), a.weights[j*alikeMost:])
}

// residualPrediction returns the prediction of the residual of row i, which has one, at the sample of the
// last Find, times √(τρ); b is what Find returned.
func (s *Finder) residualPrediction(i int, b []float64) float64 { return weighed(s.a.Z[i], s.Of, b) }

// weighed returns the sum of residuals z at references by their weights.
func weighed(z []float64, of []int32, weights []float64) (sum float64) {
	for h, l := range of {
		sum += float64(weights[h] * z[l])
	}
	return sum
}

// encode returns the predictions as numbers, nothing for nil: the rows that have one, and of each of them
// DeviationShrink and Z.
func (a *Alike) encode() (rows []uint64, numbers [][]float64) {
	if a == nil {
		return nil, nil
	}
	for i, z := range a.Z {
		if z != nil {
			rows, numbers = append(rows, uint64(i)), append(numbers, a.DeviationShrink[i:i+1], z)
		}
	}
	return rows, numbers
}

// readAlike reads what encode returned, for any numbers.
func (p *Posterior) readAlike(f *section.File) error {
	rows, numbers, err := readCorrection(f, "ALIK", "ALIZ")
	if err != nil || len(rows) == 0 && len(numbers) == 0 {
		return err
	}
	for k, i := range rows {
		if i >= uint64(p.D) || k > 0 && i <= rows[k-1] || !(p.Tau[i] > 0) {
			return f.Fail("ALIK", "a row is out of range")
		}
	}
	workers := pool.New(0, p.N)
	defer workers.Close()
	a := p.samples(workers, false)
	if a == nil {
		return f.Fail("ALIK", "all samples are in one place")
	}
	count := a.compared()
	if int64(len(numbers)) != int64(len(rows))*int64(1+count) {
		return f.Fail("ALIZ", "wrong length")
	}
	for _, i := range rows {
		if a.DeviationShrink[i] = numbers[0]; !(numbers[0] >= 0 && numbers[0] <= 1) {
			return f.Fail("ALIZ", "a factor of deviations is out of range")
		}
		a.Z[i], numbers = numbers[1:1+count:1+count], numbers[1+count:]
	}
	p.Alike = a
	return nil
}

// correctAlike finds out whether row i, row r of the last load, is predicted by samples that are alike, and
// returns whether it is. It takes y of the row, its observed places and the leave-one-out residuals there,
// times √(τρ), and the weights of these cells, with those of their samples and alone. Where it returns true,
// predicted has what is predicted of each of these residuals without the cell itself. A cell of a weight
// below 1 tells others of that share of its residual.
func (c *reader) correctAlike(r, i int, y []float64, places []int32, residuals, weights, cells,
	predicted []float64) bool {
	p, a, k, np := c.p, c.p.Alike, c.p.K, c.np
	if c.alike == nil {
		c.alike = newAlikeRoom(nil, a, np)
	}
	b := c.alike
	gain := max(leastGain, alikeGain/float64(len(places)))
	clear(b.z)
	for h, j := range places {
		if l := a.reference(int(j)); l >= 0 {
			b.z[l] = float64(min(cells[h], 1) * residuals[h])
		}
	}
	for h, j := range places {
		predicted[h] = a.prediction(b.z, int(j))
	}
	// a cell that has drawn v_j only makes the gain look larger
	if factor, _ := correction(residuals, predicted, weights, gain); factor == 0 {
		return false
	}
	for h := range k {
		copy(b.q[h*np:(h+1)*np], c.z[(h*c.rows+r)*np:])
	}
	kernel.Combine(b.own, p.rowU(i), b.q)
	flipped := a.flipped
	for from := 0; from < k; from += 4 {
		rows := min(4, k-from)
		kernel.CombineRows(b.o[from*np:(from+rows)*np], flipped[:rows*(k-from)], b.q[from*np:], rows)
		flipped = flipped[rows*(k-from):]
	}
	var process, known, kappa [alikeMost]float64 // (κ + alikeRidge I)⁻¹ e, e and κ_j
	for h, place := range places {
		j := int(place)
		weight := float64(p.precision(i, j) * cells[h])
		pull := weight * (y[j] - c.cells.mean[r*np+j]) / max(slack, 1-float64(weight*b.own[j]))
		w := b.w
		for g, t := range a.places[j*a.kp:][:k] {
			w[g] = t - float64(pull*b.o[g*np+j])
		}
		of := a.references(j)
		clear(known[:])
		for g, l := range of {
			known[g] = b.z[l]
		}
		kernel.Combine(process[:], known[:], a.inverses[j*alikeMost*alikeMost:])
		a.distances(kappa[:len(of)], w[:k], of)
		sum := 0.0
		for g, t := range kappa[:len(of)] {
			sum += float64(process[g] * alikeness(t))
		}
		predicted[h] = sum
	}
	factor, shrink := correction(residuals, predicted, weights, gain)
	if factor == 0 {
		return false
	}
	a.Z[i], a.DeviationShrink[i] = make([]float64, len(b.z)), shrink
	kernel.Scale(a.Z[i], b.z, factor)
	kernel.Scale(predicted, predicted, factor)
	return true
}

// alikeRoom is the room of correctAlike.
type alikeRoom struct{ q, o, own, z, w []float64 }

func newAlikeRoom(m *pool.Arena, a *Alike, np int) *alikeRoom {
	return &alikeRoom{q: m.Floats(a.k, np), o: m.Floats(a.k, np), own: m.Floats(np),
		z: m.Floats(a.compared()),
		w: m.Floats(a.kp)}
}

func alikeness(square float64) float64 {
	if !(square < alikeFar) {
		return 0
	}
	return elem.Exp(-square)
}

// distances fills to with the squared distances of a place w from references, four at a time.
func (a *Alike) distances(to, w []float64, of []int32) {
	for len(of) >= 4 {
		at := func(l int32) []float64 { return a.at[int(l)*a.kp:][:len(w)] }
		p, q, r, s := at(of[0]), at(of[1]), at(of[2]), at(of[3])
		t, u, v, x := 0.0, 0.0, 0.0, 0.0
		for c, y := range w {
			d, e, f, g := y-p[c], y-q[c], y-r[c], y-s[c]
			t += float64(d * d)
			u += float64(e * e)
			v += float64(f * f)
			x += float64(g * g)
		}
		to[0], to[1], to[2], to[3] = t, u, v, x
		to, of = to[4:], of[4:]
	}
	for h, l := range of {
		to[h] = distance(w, a.at[int(l)*a.kp:][:len(w)])
	}
}

func distance(v, w []float64) float64 {
	sum := 0.0
	for c, t := range v {
		d := t - w[c]
		sum += float64(d * d)
	}
	return sum
}

// correction fits a prediction of the leave-one-out residuals of a row, each times √(τρ), by weights. factor
// is the multiple of the prediction, from 0 to 1, that leaves the least squares, and 0 where even that takes
// away less than a share gain of them. shrink is the factor by which the prediction makes the deviation of
// the residuals smaller.
func correction(residuals, predicted, weights []float64, gain float64) (factor, shrink float64) {
	cov, square := 0.0, 0.0
	for j, p := range predicted {
		cov += float64(weights[j] * float64(p*residuals[j]))
		square += float64(weights[j] * float64(p*p))
	}
	if square > 0 {
		factor = min(max(cov/square, 0), 1)
	}
	before, after := 0.0, 0.0
	for j, p := range predicted {
		e := residuals[j] - float64(factor*p)
		before += float64(weights[j] * squareOf(residuals[j]))
		after += float64(weights[j] * float64(e*e))
	}
	if !(after <= (1-gain)*before) || factor == 0 {
		return 0, 1
	}
	return factor, math.Sqrt(after / before)
}
