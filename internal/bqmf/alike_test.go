package bqmf

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
)

// process is the Gaussian process of alike.go in its plain form.
type process struct {
	p        *Posterior
	m        [][]float64 // Σ τ u uᵀ
	unit     float64
	compared []int
}

func newProcess(p *Posterior, step int) *process {
	e := prior(make([]float64, p.K))
	for i, t := range p.Tau {
		e.add(t, 0, p.rowU(i), nil)
	}
	g := &process{p: p, m: e.precision}
	for j := 0; j < p.N; j += step {
		g.compared = append(g.compared, j)
	}
	for _, j := range g.compared {
		for _, l := range g.compared {
			g.unit += g.square(g.column(j), g.column(l)) / float64(len(g.compared)*len(g.compared))
		}
	}
	return g
}

func (g *process) column(j int) []float64 {
	v := make([]float64, g.p.K)
	g.p.column(v, j)
	return v
}

func (g *process) square(v, w []float64) (sum float64) {
	for r := range v {
		for c := range v {
			sum += (v[r] - w[r]) * g.m[r][c] * (v[c] - w[c])
		}
	}
	return sum
}

func (g *process) kernel(v, w []float64) float64 {
	return math.Exp(-g.square(v, w) / (2 * alikeLength * g.unit))
}

// says returns what residuals e of all samples, 0 where there is none, say at v of sample j, whose nearest
// samples are those of column j.
func (g *process) says(e []float64, j int, v []float64) (sum float64) {
	var of []int
	for _, l := range g.compared {
		if l != j {
			of = append(of, l)
		}
	}
	at := g.column(j)
	slices.SortStableFunc(of, func(a, b int) int {
		return cmp.Compare(g.square(at, g.column(a)), g.square(at, g.column(b)))
	})
	of = of[:min(len(of), alikeMost)]
	a := matrix(len(of), len(of), func(r, c int) float64 {
		return g.kernel(g.column(of[r]), g.column(of[c]))
	})
	for r := range a {
		a[r][r] += alikeRidge
	}
	inverse, _ := Inverse(a)
	for r, l := range of {
		for c, m := range of {
			sum += g.kernel(v, g.column(l)) * inverse[r][c] * e[m]
		}
	}
	return sum
}

// What samples that are alike say is what the process in its plain form says, of a seen cell at where its
// sample is after a fit of the column without the cell, where rows are known for certain; of a sample that is
// new, at where it is.
func TestAlike(t *testing.T) {
	const d, n, k = 14, 60, 2
	q := drawn(d, n, k, 0.2, 9)
	p, column := certain(q, k, 8)
	workers := Workers(t, 3)
	p.Alike = p.samples(workers, true)
	g := newProcess(p, 1)
	cells := wholeReader(p)
	src := random.Split(4, 0)
	asked, kept := 0, 0
	for i := range d {
		cells.load(i, 1)
		var places []int32
		var residuals, unsaid []float64
		e, y := make([]float64, n), make([]float64, n)
		for j := range n {
			if q.observed[i*n+j] {
				y[j] = q.y[i*n+j]
				e[j] = math.Sin(2*g.column(j)[0]) + 0.1*normal(&src) // what bends
				places, residuals = append(places, int32(j)), append(residuals, e[j])
			}
		}
		said := make([]float64, len(places))
		if !cells.correctAlike(0, i, y, places, residuals, ones(places), ones(places), said) {
			continue
		}
		kept++
		var plain []float64 // before the factor
		for _, j := range places {
			v, _ := column(int(j), i)
			plain = append(plain, g.says(e, int(j), v))
		}
		factor, left := correction(residuals, plain, ones(plain), leastGain)
		Close(t, p.Alike.DeviationShrink[i], left, 1e-9, "what is left")
		for h, place := range places {
			j := int(place)
			_, c := column(j, -1)
			own := 0.0
			for r := range k {
				own += p.precision(i, j) * p.U[i*k+r] * dot(c[r], p.rowU(i))
			}
			if own > 1-slack {
				unsaid = append(unsaid, own)
				continue
			}
			Close(t, said[h], factor*plain[h], 1e-9, "what is said of a seen cell")
			asked++
		}
		if len(unsaid) > 0 {
			t.Error("a cell weighs too much for the test")
		}
		for j := range n {
			Close(t, p.Alike.prediction(p.Alike.Z[i], j), factor*g.says(e, j, g.column(j)), 1e-9,
				"what is said of a sample")
		}
		finder := p.Alike.Finder()
		b := finder.Find(g.column(7), 7)
		Close(t, finder.residualPrediction(i, b), factor*g.says(e, 7, g.column(7)), 1e-9,
			"what is said of a new sample")
	}
	if asked < 300 || kept < d-4 {
		t.Errorf("%d rows and %d cells were looked at", kept, asked)
	}
	was := p.Alike.settled()
	rows, numbers := was.encode()
	read := func(rows []uint64, numbers ...[]float64) error {
		return p.readAlike(fileOf(t, section.Words("ALIK", rows...), section.Floats("ALIZ", numbers...)))
	}
	OK(t, read(rows, numbers...))
	if back := p.Alike; !slices.Equal(back.weights, was.weights) || !slices.Equal(back.of, was.of) ||
		!slices.Equal(back.DeviationShrink, was.DeviationShrink) {
		t.Error("what comes back is something else")
	}
	for _, c := range []struct {
		rows    []uint64
		numbers []float64
		problem string
	}{
		{[]uint64{d}, make([]float64, 1+n), "a row is out of range"},
		{[]uint64{1, 1}, make([]float64, 2+2*n), "a row is out of range"},
		{[]uint64{1}, make([]float64, n), "wrong length"},
		{[]uint64{1}, append([]float64{1.5}, make([]float64, n)...),
			"a factor of deviations is out of range"},
		{nil, []float64{1}, "wrong length"},
	} {
		if err := read(c.rows, c.numbers); err == nil || !strings.HasSuffix(err.Error(), c.problem) {
			t.Errorf("%d rows and %d numbers: %v", len(c.rows), len(c.numbers), err)
		}
	}
}

// Of noise that nothing goes along with, samples that are alike say nothing; of more samples than are
// compared, all have some.
func TestAlikeChance(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	workers := Workers(t, 3)
	kept, all := 0, 0
	for seed := range uint64(6) {
		q := drawn(80, 200, 3, 0.1, seed)
		_, p := q.fitted(t, 5, 30)
		p.Alike = p.samples(workers, true)
		cells := wholeReader(p)
		all += q.d
		for i := range q.d {
			cells.load(i, 1)
			var places []int32
			var residuals []float64
			for j := range q.n {
				if at := i*q.n + j; q.observed[at] {
					a := p.precision(i, j)
					places, residuals = append(places, int32(j)),
						append(residuals, math.Sqrt(a)*(q.y[at]-cells.without(0, j, q.y[at], a)))
				}
			}
			if cells.correctAlike(0, i, q.y[i*q.n:(i+1)*q.n], places, residuals, ones(places), ones(places),
				make([]float64, len(places))) {
				kept++
			}
		}
	}
	if kept > all/25 { // one or two of a hundred are, by chance
		t.Errorf("%d of %d rows have something of samples that are alike", kept, all)
	}
	Equal(t, alikeStep(alikeBlock), 1, "the step of %d samples", alikeBlock)
	Equal(t, alikeStep(alikeBlock+1), 2, "the step of one more")
	many := drawn(6, 3*alikeBlock/2, 2, 0, 5)
	p, _ := certain(many, 2, 6)
	a := p.samples(workers, true)
	Equal(t, a.compared(), 3*alikeBlock/4, "how many samples are compared")
	for j := range many.n {
		of := a.references(j)
		if len(of) != alikeMost || j%2 == 0 && slices.Contains(of, int32(j/2)) {
			t.Fatalf("sample %d is alike to %v", j, of)
		}
	}
	workers.Bind(&ending{Context: t.Context(), last: 1})
	if p.samples(workers, true) != nil {
		t.Error("samples are found after a stop")
	}
	workers.Bind(t.Context())
	if a.settled() != nil {
		t.Error("what no row has is kept")
	}
	clear(p.V)
	if p.samples(workers, true) != nil {
		t.Error("samples in one place are alike")
	}
}

// certain is a posterior of given columns for rows that are known for certain, and what it would be, v_j and
// C_j, without one cell of a column, or -1.
func certain(q *simulated, k int, seed uint64) (p *Posterior,
	column func(j, without int) (v []float64, c [][]float64)) {
	d, n := q.d, q.n
	src := random.Split(seed, 0)
	p = ignorant(d, n, k)
	for i := range p.U {
		p.U[i] = 0.6 * normal(&src)
	}
	for i := range d {
		p.Tau[i] = 0.5 + src.Float64()
		packOuter(p.packU(i), p.rowU(i))
	}
	column = func(j, without int) (v []float64, c [][]float64) {
		e := prior(ones(make([]float64, k)))
		for i := range d {
			if q.observed[i*n+j] && i != without {
				e.add(p.precision(i, j), q.y[i*n+j], p.rowU(i), nil)
			}
		}
		return e.solve()
	}
	for j := range n {
		p.Rho[j] = 0.5 + src.Float64()
		v, c := column(j, -1)
		for r := range k {
			p.V[r*kernel.Pad(n)+j] = v[r]
		}
		moments(p.packV(j), v, c)
	}
	return p, column
}

// A prediction of residuals counts by the factor that leaves the least squares, where that is enough.
func TestCorrection(t *testing.T) {
	residuals, said := []float64{1, -2, 3, 0.5}, []float64{0.9, -2.2, 2.8, 1}
	cov, ss, rr := 0.0, 0.0, 0.0
	for j, s := range said {
		cov += s * residuals[j]
		ss += s * s
		rr += residuals[j] * residuals[j]
	}
	left := math.Sqrt((rr - cov*cov/ss) / rr)
	factor, shrink := correction(residuals, said, ones(said), 0.02)
	Close(t, factor, cov/ss, 1e-12, "factor")
	Close(t, shrink, left, 1e-12, "what is left")
	if factor, shrink := correction(residuals, said, ones(said), 1.01-left*left); factor != 0 || shrink != 1 {
		t.Errorf("a gain that is not enough counts by %v, %v", factor, shrink)
	}
	for j := range said {
		said[j] *= -1
	}
	if factor, shrink := correction(residuals, said, ones(said), 0.02); factor != 0 || shrink != 1 {
		t.Errorf("what says the opposite counts by %v, %v", factor, shrink)
	}
}

// ones are weights of 1, as many as there are places or numbers.
func ones[T any](of []T) []float64 { return slices.Repeat([]float64{1}, len(of)) }
