package bqmf

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// paired is drawn with the noise of rows 2i and 2i+1 of a correlation.
func paired(d, n, k int, hidden, correlation float64, seed uint64) *simulated {
	q := drawn(d, n, k, hidden, seed)
	for i := 1; i < d; i += 2 {
		for j := range n {
			at, other := i*n+j, (i-1)*n+j
			own := (q.y[at] - q.truth[at]) / q.noise[at]
			shared := (q.y[other] - q.truth[other]) / q.noise[other]
			q.y[at] = q.truth[at] + q.noise[at]*(correlation*shared+math.Sqrt(1-correlation*correlation)*own)
		}
	}
	return q
}

func (q *simulated) neighbours(t *testing.T, rank int) (*Posterior, *Near) {
	f, p := q.fitted(t, rank, 30)
	workers := pool.New(3, q.d)
	defer workers.Close()
	return p, p.neighbours(f.data, upTo(q.d), workers)
}

// Rows whose noise goes together are neighbours, and no others are. Their weights are most of what the
// regression of one noise on the other has, and never more: what is seen of both is less correlated than they
// are, as the factors have taken a part.
func TestNeighbours(t *testing.T) {
	for _, hidden := range []float64{0, 0.2} {
		for _, correlation := range []float64{0.8, -0.8} {
			q := paired(80, 200, 3, hidden, correlation, 3)
			p, found := q.neighbours(t, 5)
			if found == nil {
				t.Fatal("no row has neighbours")
			}
			p.Near = found
			cells := wholeReader(p)
			cells.leaveOneOut(q.d * q.n)
			for i := range q.d {
				var residuals, said []float64
				cells.load(i, 1)
				for j := range q.n {
					if at := i*q.n + j; q.observed[at] {
						a := p.Tau[i] * p.Rho[j]
						residuals = append(residuals, math.Sqrt(a)*(q.y[at]-cells.without(0, j, q.y[at], a)))
						said = append(said, cells.residualPrediction(0, i, j, q.y[at]))
					}
				}
				found.decide(i, residuals, said)
			}
			right, others, mean := 0, 0, 0.0
			for i, of := range found.Of {
				for _, l := range of {
					if l.Row == i^1 {
						right++
						mean += l.Weight / float64(q.d)
					} else {
						others++
					}
				}
			}
			if right < q.d-1 || others > 4 {
				t.Errorf("hidden %g, correlation %g: %d of %d rows have the one that they go with, %d "+
					"another one", hidden, correlation, right, q.d, others)
			}
			if share := mean / correlation; share < 0.8 || share > 1 {
				t.Errorf("hidden %g, correlation %g: weights of %.3f on average", hidden, correlation, mean)
			}
		}
		q := drawn(80, 200, 3, hidden, 4)
		if _, near := q.neighbours(t, 5); near != nil {
			count := 0
			for _, of := range near.Of {
				count += len(of)
			}
			if count > 2 {
				t.Errorf("%d neighbours where noise is independent", count)
			}
		}
	}
}

// likeLoadings is drawn with the noise of rows 2i and 2i+1 of a correlation, and, where like is set, with the
// same loadings.
func likeLoadings(d, n int, correlation float64, like bool) *simulated {
	q := paired(d, n, 3, 0.1, 0, 5)
	for i := 1; i < d; i += 2 {
		for j := range n {
			at, other := i*n+j, (i-1)*n+j
			own := (q.y[at] - q.truth[at]) / q.noise[at]
			shared := (q.y[other] - q.truth[other]) / q.noise[other]
			if like {
				q.truth[at] = q.truth[other]
			}
			q.y[at] = q.truth[at] + q.noise[at]*(correlation*shared+math.Sqrt(1-correlation*correlation)*own)
		}
	}
	return q
}

// tally counts the neighbours that rows of paired noise have: those that they go with, and others.
func (near *Near) tally() (right, others int) {
	if near == nil {
		return 0, 0
	}
	for i, of := range near.Of {
		for _, l := range of {
			if l.Row == i^1 {
				right++
			} else {
				others++
			}
		}
	}
	return right, others
}

// A correlation that is not sure by itself makes rows neighbours where those of as like loadings have such,
// and hardly elsewhere.
func TestNeighboursOfLikeLoadings(t *testing.T) {
	const d, n = 80, 200
	for _, like := range []bool{true, false} {
		_, found := likeLoadings(d, n, 0.28, like).neighbours(t, 5) // .28 is 3.8 deviations of what is seen
		right, others := found.tally()
		if like && (right < d*6/10 || others > d/10) || !like && right > d/4 {
			t.Errorf("loadings alike %v: %d of %d rows have the one that they go with, %d another one", like,
				right, d, others)
		}
	}
}

// Rows of few cells need a correlation that is sure by itself, however many of as like loadings have such.
func TestNeighboursOfFewCells(t *testing.T) {
	const d = 80
	for _, c := range []struct {
		n    int
		many bool
	}{{100, false}, {125, true}} { // 90 and 112 cells are seen, of which .38 is 3.6 and 4 deviations
		_, found := likeLoadings(d, c.n, 0.38, true).neighbours(t, 5)
		right, _ := found.tally()
		if c.many && right < d/2 || !c.many && right > d/8 {
			t.Errorf("%d samples: %d of %d rows have the one that they go with", c.n, right, d)
		}
	}
}

// TestShares holds what is left of correlations to the variance that they have beyond that of the bins of
// nothing.
func TestShares(t *testing.T) {
	var s [2][2][nearBins]float64
	for h := range nearBins {
		for piece := range s {
			s[piece][0][h], s[piece][1][h] = 900, 1000
		}
	}
	s[1][0][nearBins-1] = 1e5
	s[0][0][nearBins-2], s[1][0][nearBins-2] = 0, 0
	share := shares(s[:])
	noise := 1.05 * (nearNone*1800 + 0.75*nearPairs) / (nearNone*2000 + nearPairs)
	beyond := (1e5 + 900 - 2000*noise) / (2000 + nearPairs)
	for h, got := range share {
		want := 0.0
		if h == nearBins-1 {
			want = beyond / (beyond + noise)
		}
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("the share of bin %d is %v, want %v", h, got, want)
		}
	}
	for cosine, want := range map[float64]int{0: 0, 0.049: 0, -0.051: 1, 1: nearBins - 1,
		-1.0000000000000002: nearBins - 1} {
		if got := nearBin(cosine); got != want {
			t.Errorf("the bin of %v is %d, want %d", cosine, got, want)
		}
	}
}

// certain is a posterior of given columns for rows that are known for certain, and what it would be, v_j and
// C_j, without one cell of a column, or -1.
func certain(q *simulated, k int, seed uint64) (p *Posterior,
	column func(j, without int) (v []float64, c [][]float64)) {
	d, n := q.d, q.n
	src := random.Split(seed, 0)
	np, pp := kernel.Pad(n), Packed(k)
	p = &Posterior{D: d, N: n, K: k, U: make([]float64, d*k), V: make([]float64, k*np),
		BU: make([]float64, d*pp), BV: make([]float64, n*pp), Tau: make([]float64, d),
		Rho: make([]float64, n), Unit: 1}
	for i := range p.U {
		p.U[i] = 0.6 * normal(&src)
	}
	for i := range d {
		p.Tau[i] = 0.5 + src.Float64()
		packOuter(p.BU[i*pp:(i+1)*pp], p.U[i*k:(i+1)*k])
	}
	column = func(j, without int) (v []float64, c [][]float64) {
		a := make([][]float64, k)
		b := make([]float64, k)
		for r := range a {
			a[r] = make([]float64, k)
			a[r][r] = 1
		}
		for i := range d {
			if !q.observed[i*n+j] || i == without {
				continue
			}
			w := p.Tau[i] * p.Rho[j]
			for r := range k {
				b[r] += w * q.y[i*n+j] * p.U[i*k+r]
				for h := range k {
					a[r][h] += w * p.U[i*k+r] * p.U[i*k+h]
				}
			}
		}
		c, _ = solve(a)
		v = make([]float64, k)
		for r := range k {
			v[r] = dotted(c[r], b)
		}
		return v, c
	}
	for j := range n {
		p.Rho[j] = 0.5 + src.Float64()
		v, c := column(j, -1)
		at := 0
		for r := range k {
			p.V[r*np+j] = v[r]
			for h := range r {
				p.BV[j*pp+at] = math.Sqrt2 * (c[r][h] + v[r]*v[h])
				at++
			}
			p.BV[j*pp+at] = c[r][r] + v[r]*v[r]
			at++
		}
	}
	return p, column
}

// What neighbours say of a cell without it is what they say after a fit of the column without it, where rows
// are known for certain.
func TestSaidIsWithoutTheCell(t *testing.T) {
	const d, n, k = 12, 5, 2
	np := kernel.Pad(n)
	q := drawn(d, n, k, 0.3, 9)
	p, column := certain(q, k, 8)
	all := &Near{Of: make([][]Neighbour, d), DeviationShrink: make([]float64, d), Z: make([][]float64, d)}
	for i := range all.Z {
		all.Z[i] = make([]float64, np)
	}
	z := func(i, j int, v []float64) float64 {
		return math.Sqrt(p.Tau[i]*p.Rho[j]) * (q.y[i*n+j] - dotted(p.U[i*k:(i+1)*k], v))
	}
	for j := range n {
		v, _ := column(j, -1)
		for i := range d {
			if q.observed[i*n+j] {
				all.Z[i][j] = z(i, j, v)
			}
		}
	}
	for i := range d {
		all.Of[i] = []Neighbour{{(i + 1) % d, 0.7}, {(i + 5) % d, -0.4}}[:i%3]
		all.DeviationShrink[i] = 1
	}
	p.Near = all
	cells := wholeReader(p)
	cells.leaveOneOut(d * p.N)
	asked := 0
	for from := 0; from < d; from += RowsPerPass {
		rows := min(RowsPerPass, d-from)
		cells.load(from, rows)
		for i := from; i < from+rows; i++ {
			for j := range n {
				if !q.observed[i*n+j] || len(all.Of[i]) == 0 {
					continue
				}
				_, c := column(j, -1)
				h := 0.0
				for r := range k {
					h += p.Tau[i] * p.Rho[j] * p.U[i*k+r] * dotted(c[r], p.U[i*k:(i+1)*k])
				}
				if h > 1-slack {
					continue
				}
				v, _ := column(j, i)
				want := 0.0
				for _, l := range all.Of[i] {
					if q.observed[l.Row*n+j] {
						want += l.Weight * z(l.Row, j, v)
					}
				}
				closeTo(t, "what neighbours say", cells.residualPrediction(i-from, i, j, q.y[i*n+j]), want,
					1e-9)
				asked++
			}
		}
	}
	if asked < 15 {
		t.Errorf("%d cells were looked at", asked)
	}
}

// Neighbours are kept where they leave less of the residuals.
func TestKeep(t *testing.T) {
	residuals, said := []float64{1, -2, 3, 0.5}, []float64{0.9, -2.2, 2.8, 1}
	for _, sign := range []float64{1, -1} {
		n := &Near{Of: [][]Neighbour{{{1, 0.5}}}, DeviationShrink: []float64{1}}
		for j := range said {
			said[j] *= sign
		}
		factor := n.decide(0, residuals, said)
		if sign < 0 {
			if factor != 0 || n.Of[0] != nil || n.DeviationShrink[0] != 1 {
				t.Error("neighbours that say the opposite are kept")
			}
			continue
		}
		cov, ss, rr := 0.0, 0.0, 0.0
		for j, s := range said {
			cov += s * residuals[j]
			ss += s * s
			rr += residuals[j] * residuals[j]
		}
		closeTo(t, "factor", factor, min(cov/ss, 1), 1e-12)
		closeTo(t, "weight", n.Of[0][0].Weight, 0.5*factor, 1e-12)
		closeTo(t, "what is left", n.DeviationShrink[0], math.Sqrt((rr-2*factor*cov+factor*factor*ss)/rr),
			1e-12)
	}
}

// TestDecodeNearMemory: what is decoded takes memory for the rows that are neighbours, however many others
// there are.
func TestDecodeNearMemory(t *testing.T) {
	const d, n = 1 << 13, 1 << 13
	words := make([]uint64, d, d+1)
	words[5] = 1
	words = slices.Insert(words, 6, 9) // row 9 in row 5
	numbers := append([]float64{0.5, 0.8}, make([]float64, n)...)
	numbers[2+7] = 3
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	near, _, problem := decodeNear(words, numbers, d, n)
	runtime.ReadMemStats(&after)
	if problem != "" || near.Z[9][7] != 3 {
		t.Fatal(problem)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 100*(d+n) {
		t.Errorf("%d bytes for %d words and %d numbers", took, len(words), len(numbers))
	}
	if w, x := near.encode(n); !slices.Equal(w, words) || !slices.Equal(slices.Concat(x...), numbers) {
		t.Error("encoded again, they are others")
	}
}

// weighing is Neighbours written out for one block of rows, with full matrices: the weights of row l in row
// i.
func (q *simulated) weighing(p *Posterior) [][]float64 {
	d, n, k := q.d, q.n, p.K
	pp := Packed(k)
	v := make([]float64, k)
	taken := make([][]float64, k) // Σ_j ρ_j C_j / n
	for r := range taken {
		taken[r] = make([]float64, k)
	}
	z, seen := make([][]float64, d), make([]float64, d)
	for i := range z {
		z[i] = make([]float64, n)
	}
	for j := range n {
		p.column(v, j)
		for r, row := range full(p.BV[j*pp:(j+1)*pp], k, v) {
			for c, t := range row {
				taken[r][c] += p.Rho[j] * t / float64(n)
			}
		}
		for i := range d {
			if q.observed[i*n+j] {
				z[i][j] = math.Sqrt(p.Tau[i]*p.Rho[j]) * (q.y[i*n+j] - dotted(p.U[i*k:(i+1)*k], v))
				seen[i]++
			}
		}
	}
	u := func(i int) []float64 { return p.U[i*k : (i+1)*k] }
	covariance := func(i, l int, count float64) float64 {
		tu := make([]float64, k)
		for r := range tu {
			tu[r] = dotted(taken[r], u(l))
		}
		return dotted(z[i], z[l])/count + math.Sqrt(p.Tau[i]*p.Tau[l])*dotted(u(i), tu)
	}
	scale := func(i int) float64 { return math.Sqrt(covariance(i, i, seen[i])) }
	bin := func(i, l int) int {
		return nearBin(dotted(u(i), u(l)) / math.Sqrt(dotted(u(i), u(i))*dotted(u(l), u(l))))
	}
	rough := func(i, l int) float64 {
		return covariance(i, l, seen[i]*seen[l]/float64(n)) / (scale(i) * scale(l))
	}
	var squares [1][2][nearBins]float64
	for i := range d {
		for l := range d {
			if t := rough(i, l) * rough(i, l) * seen[i] * seen[l] / float64(n); l != i &&
				t < nearSure*nearSure {
				squares[0][0][bin(i, l)] += t
				squares[0][1][bin(i, l)]++
			}
		}
	}
	share := shares(squares[:])
	counted := func(i, l int) float64 { // s r_il over the samples that both have
		both := 0.0
		for j := range n {
			if q.observed[i*n+j] && q.observed[l*n+j] {
				both++
			}
		}
		if both == 0 {
			return 0
		}
		if r := covariance(i, l, both) / (scale(i) * scale(l)); math.Abs(r)*math.Sqrt(both) > nearSure {
			return r
		} else {
			return r * share[bin(i, l)]
		}
	}
	weights := make([][]float64, d)
	for i := range d {
		weights[i] = make([]float64, d)
		r, least := make([]float64, d), nearLeast
		if seen[i] < nearCells {
			least = nearSure
		}
		for l := range d {
			sure := math.Abs(rough(i, l)) * math.Sqrt(seen[i])
			if r[l] = rough(i, l); sure <= least {
				r[l] = 0
			} else if sure <= nearSure {
				r[l] *= share[bin(i, l)]
			}
		}
		of := nearest(r, i, nearShrunk/math.Sqrt(seen[i]))
		if len(of) == 0 {
			continue
		}
		a := make([][]float64, len(of))
		for g, l := range of {
			a[g] = make([]float64, len(of))
			for h, m := range of {
				if a[g][h] = 1 + nearRidge; h != g {
					a[g][h] = counted(l, m)
				}
			}
		}
		inverse, _ := solve(a)
		for g := range of {
			for h, l := range of {
				weights[i][of[g]] += inverse[g][h] * counted(i, l) * scale(i) / scale(of[g])
			}
		}
	}
	return weights
}

// TestNeighboursAreTheFormula holds neighbours and weights to the formulas written out: of rows with other
// cells hidden, of many and of few cells, and of two that no sample has both of, though both go with a third.
func TestNeighboursAreTheFormula(t *testing.T) {
	const d, n = 30, 200
	q := drawn(d, n, 2, 0.25, 17)
	for i := range d {
		for j := range n {
			if at, first := i*n+j, i/3*3*n+j; i%3 > 0 { // three rows have common noise
				own := (q.y[at] - q.truth[at]) / q.noise[at]
				q.y[at] = q.truth[at] + q.noise[at]*(0.85*(q.y[first]-q.truth[first])/q.noise[first]+0.5*own)
			}
		}
	}
	for j := range n { // rows 1 and 2 go with row 0, each where the other is hidden
		q.observed[1*n+j], q.observed[2*n+j] = j < n/2, j >= n/2
	}
	p, found := q.neighbours(t, 3)
	want, pairs := q.weighing(p), 0
	for i, row := range want {
		got := make([]float64, d)
		for _, l := range found.Of[i] {
			got[l.Row] = l.Weight
		}
		for l, w := range row {
			closeTo(t, "the weight of a neighbour", got[l], w, 1e-7)
			if w != 0 {
				pairs++
			}
		}
	}
	if pairs < d || want[0][1] == 0 || want[0][2] == 0 {
		t.Errorf("%d neighbours; rows 1 and 2 have %v and %v in row 0", pairs, want[0][1], want[0][2])
	}
}

// TestNoNeighbours: nothing is left of neighbours where there are none, at first and after Keep.
func TestNoNeighbours(t *testing.T) {
	const n = 20
	q := drawn(6, n, 1, 0, 2)
	p, _ := q.neighbours(t, 1)
	workers := pool.New(1, 1)
	defer workers.Close()
	x := q.data()
	x.Rows, x.D = x.Rows[:1], 1
	if near := p.neighbours(x, []int{0}, workers); near != nil {
		t.Error("one row has neighbours")
	}
	near := &Near{Of: [][]Neighbour{{{1, 0.5}}, nil}, DeviationShrink: []float64{1, 1},
		Z: [][]float64{make([]float64, n), make([]float64, n)}}
	near.decide(0, []float64{1, 1}, []float64{-1, -1})
	if near.settled() != nil {
		t.Error("neighbours that say the opposite are left")
	}
}

// TestDecodeNearCut: words or numbers that end early, or go on, are a problem.
func TestDecodeNearCut(t *testing.T) {
	const d, n = 4, 3
	words, numbers := []uint64{0, 2, 0, 3, 0, 0}, []float64{0.5, -0.25, 0.9, 1, 2, 3, 4, 5, 6}
	if _, _, problem := decodeNear(words, numbers, d, n); problem != "" {
		t.Fatal(problem)
	}
	for k := range words {
		if _, _, problem := decodeNear(words[:k], numbers, d, n); problem == "" {
			t.Errorf("%d of %d words are taken", k, len(words))
		}
	}
	for k := range numbers {
		if _, _, problem := decodeNear(words, numbers[:k], d, n); problem == "" {
			t.Errorf("%d of %d numbers are taken", k, len(numbers))
		}
	}
	if _, _, problem := decodeNear(append(words, 0), numbers, d, n); problem == "" {
		t.Error("a word too many is taken")
	}
	if _, _, problem := decodeNear(words, append(numbers, 0), d, n); problem == "" {
		t.Error("a number too many is taken")
	}
}
