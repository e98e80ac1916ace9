package quantmf

// This file holds X ≈ UV with U, V >= 0: multiplicative updates under the
// generalised Kullback-Leibler divergence (Lee and Seung 2001), the baseline of
// the paper and the start of its models.
//
//	Δ(x, w) = x log(x/w) - x + w,       W = UV,  R = X/W (entrywise)
//	V ← V ∘ UᵀR / Uᵀ1,   then with the new V   U ← U ∘ RVᵀ / 1Vᵀ.
//
// An epoch is one sweep over the rows of X. For each row the update of U_i is
// finished with the new V, and at once the row's share of the next update of V
// and its loss are taken, so X is read once an epoch and no d × n matrix is
// ever formed: 8dnk flops, 2dn divisions, dn logarithms.

import (
	"context"
	"math"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// NMF is a fitted X ≈ UV. It is not changed by its methods.
type NMF struct {
	U, V     Mat       // d × k and k × n, non-negative
	History  []float64 // mean divergence after each epoch, entry 0 before the first; it never rises
	Best     int       // the epoch returned
	Warnings []error
}

const tinyDenominator = 1e-30

// FitNMF factorises x, d features × n samples, finite and non-negative, into
// U V of the given rank k >= 1, which may exceed d and n.
//
// Defaults: 200 epochs, seed 1, factors uniform on sqrt(mean x/k)·[1/2,3/2), no
// penalty. Errors: [*DataError], [*ShapeError], [*OptionError]; when ctx ends or
// a progress function fails, the model so far with an error that wraps it.
// Cost: 8dnk flops an epoch; memory 17kn + dk numbers beside x.
func FitNMF(ctx context.Context, x Mat, rank int, opts ...FitOption) (*NMF, error) {
	c := config{epochs: 200, seed: 1}
	if err := parse(forNMF, &c, opts); err != nil {
		return nil, err
	}
	if err := checkFit(x, rank, &c); err != nil {
		return nil, err
	}
	p := pool.New(c.workers, nmfChunks)
	defer p.Close()
	f := newFactors(x.Rows, x.Cols, rank)
	if c.given.has(kInit) {
		f.load(c.initU, c.initV)
	} else {
		f.random(x, c.seed)
	}
	m := new(NMF)
	var err error
	m.History, err = f.multiplicative(ctx, p, x, &c)
	m.Best = len(m.History) - 1
	m.U, m.V = f.matU(), f.matV()
	return m, err
}

// maxValue bounds the entries of x, so that no sum over them overflows.
const maxValue = 1e150

// checkFit reports what is wrong with the data of a fit.
func checkFit(x Mat, rank int, c *config) error {
	if err := x.check("x"); err != nil {
		return err
	}
	if rank < 1 {
		return &OptionError{Option: "rank", Value: itoa(rank), Bound: "must be at least 1"}
	}
	if uint64(rank) > maxCells/uint64(x.Rows+x.Cols) {
		return &OptionError{Option: "rank", Value: itoa(rank), Bound: "the factors of a " + x.size() + " matrix would need too much memory"}
	}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v-v != 0 {
				return &DataError{Row: i, Col: j, Value: v, Problem: "x must be finite"}
			}
			if v < 0 {
				return &DataError{Row: i, Col: j, Value: v, Problem: "x must not be negative under this loss"}
			}
			if v > maxValue {
				return &DataError{Row: i, Col: j, Value: v, Problem: "x must be at most " + ftoa(maxValue) + ", lest sums overflow"}
			}
		}
	}
	if !c.given.has(kInit) {
		return nil
	}
	for _, f := range []struct {
		name       string
		m          Mat
		rows, cols int
	}{{"initial U", c.initU, x.Rows, rank}, {"initial V", c.initV, rank, x.Cols}} {
		if f.m.Rows != f.rows || f.m.Cols != f.cols {
			return &ShapeError{What: f.name, Got: f.m.size(), Want: itoa(f.rows) + "×" + itoa(f.cols)}
		}
		if err := f.m.check(f.name); err != nil {
			return err
		}
		for i := range f.m.Rows {
			for j, v := range f.m.Row(i) {
				if v-v != 0 || v < 0 {
					return &DataError{Row: i, Col: j, Value: v, Problem: f.name + " must be finite and not negative"}
				}
			}
		}
	}
	return nil
}

// factors are U, d × k, and V, k × np: padded to whole blocks.
type factors struct {
	d, n, np, k int
	u, v        []float64
}

func newFactors(d, n, k int) *factors {
	np := kernel.Pad(n)
	return &factors{d: d, n: n, np: np, k: k, u: make([]float64, d*k), v: make([]float64, k*np)}
}

func (f *factors) rowU(i int) []float64 { return f.u[i*f.k : (i+1)*f.k] }
func (f *factors) rowV(c int) []float64 { return f.v[c*f.np : c*f.np+f.n] }

func (f *factors) matU() Mat {
	return Mat{Rows: f.d, Cols: f.k, Data: append([]float64(nil), f.u...), Stride: f.k}
}

func (f *factors) matV() Mat {
	m := NewMat(f.k, f.n)
	for c := range f.k {
		copy(m.Row(c), f.rowV(c))
	}
	return m
}

func (f *factors) load(u, v Mat) {
	for i := range f.d {
		copy(f.rowU(i), u.Row(i))
	}
	for c := range f.k {
		copy(f.rowV(c), v.Row(c))
	}
}

// random fills the factors with sqrt(mean/k) times uniform numbers on [1/2,3/2).
func (f *factors) random(x Mat, seed uint64) {
	mean := 0.0
	for i := range x.Rows {
		s := 0.0
		for _, v := range x.Row(i) {
			s += v / float64(x.Rows*x.Cols)
		}
		mean += s
	}
	scale := math.Sqrt(mean / float64(f.k))
	if scale == 0 {
		scale = 1
	}
	src := random.Split(seed, 0)
	for i := range f.u {
		f.u[i] = scale * (0.5 + src.Float64())
	}
	for c := range f.k {
		row := f.rowV(c)
		for j := range row {
			row[j] = scale * (0.5 + src.Float64())
		}
	}
}

// nmfChunks is the number of pieces that the rows are cut into: each has a
// partial sum for V, added in order, so the bits do not depend on the workers.
const nmfChunks = 16

// multiplicative runs c.epochs updates of V and U and returns the history.
func (f *factors) multiplicative(ctx context.Context, p *pool.Pool, x Mat, c *config) ([]float64, error) {
	k, np := f.k, f.np
	chunks := min(nmfChunks, f.d)
	type part struct {
		acc, sum []float64
		loss     float64
	}
	parts := make([]part, chunks)
	for i := range parts {
		parts[i] = part{acc: make([]float64, k*np), sum: make([]float64, k)}
	}
	type scratch struct{ x, w, r, g []float64 }
	work := make([]scratch, p.Workers())
	for i := range work {
		work[i] = scratch{make([]float64, np), make([]float64, np), make([]float64, np), make([]float64, k)}
	}
	sumV := make([]float64, k)
	// (1/dn) Σ Δ + λ (mean U + mean V) has the updates' denominators with these added.
	addV := c.penalty * float64(f.d) / float64(k)
	addU := c.penalty * float64(f.n) / float64(k)
	updateU := false
	sweep := func(worker, chunk int) {
		ws, pt := &work[worker], &parts[chunk]
		clear(pt.acc)
		clear(pt.sum)
		pt.loss = 0
		for i := chunk * f.d / chunks; i < (chunk+1)*f.d/chunks; i++ {
			if ctx.Err() != nil {
				return
			}
			u := f.rowU(i)
			copy(ws.x, x.Row(i))
			if updateU {
				kernel.Combine(ws.w, u, f.v)
				ratios(ws.r, ws.x, ws.w)
				kernel.Dots(ws.g, f.v, ws.r)
				for t := range u {
					u[t] *= ws.g[t] / max(sumV[t]+addU, tinyDenominator)
				}
			}
			kernel.Combine(ws.w, u, f.v)
			ratios(ws.r, ws.x, ws.w)
			kernel.Accumulate(pt.acc, u, ws.r)
			for t, v := range u {
				pt.sum[t] += v
			}
			pt.loss += divergence(ws.x[:f.n], ws.w, ws.r)
		}
	}
	history := make([]float64, 0, min(c.epochs, 1000)+1)
	total := func() float64 {
		s := 0.0
		for i := range parts {
			s += parts[i].loss
		}
		return s / float64(f.n) / float64(f.d)
	}
	p.Do(chunks, sweep)
	if err := ctx.Err(); err != nil {
		return history, stoppedAt(0, err)
	}
	history = append(history, total())
	updateU = true
	for epoch := 1; epoch <= c.epochs; epoch++ {
		for i := range parts[1:] {
			add(parts[0].acc, parts[i+1].acc)
			add(parts[0].sum, parts[i+1].sum)
		}
		for t := range k {
			den := max(parts[0].sum[t]+addV, tinyDenominator)
			row, num := f.v[t*np:(t+1)*np], parts[0].acc[t*np:(t+1)*np]
			for j := range row {
				row[j] *= num[j] / den
			}
			sumV[t] = kernel.Sum(row)
		}
		p.Do(chunks, sweep)
		if err := ctx.Err(); err != nil {
			return history, stoppedAt(epoch-1, err)
		}
		history = append(history, total())
		if c.progress != nil {
			if err := c.progress(Progress{Epoch: epoch, Epochs: c.epochs, Rows: f.d, Loss: history[epoch]}); err != nil {
				return history, stoppedAt(epoch, err)
			}
		}
	}
	return history, nil
}

func add(to, from []float64) {
	for i, v := range from {
		to[i] += v
	}
}

// ratios fills r = x/w.
func ratios(r, x, w []float64) {
	x, w = x[:len(r)], w[:len(r)]
	for j := range r {
		r[j] = x[j] / max(w[j], tinyDenominator)
	}
}

// divergence returns Σ x log r - x + w for r = x/w, 0 log 0 = 0.
func divergence(x, w, r []float64) float64 {
	s := 0.0
	for j, v := range x {
		if v > 0 {
			s += float64(v*elem.Log(max(r[j], tinyScale))) + (max(w[j], tinyDenominator) - v)
		} else {
			s += w[j]
		}
	}
	return max(s, 0) // it is one; rounding may say otherwise of a perfect fit
}

// stopped wraps what ended a fit early.
type stopped struct {
	epoch int
	err   error
}

func (s *stopped) Error() string {
	return "quantmf: stopped after epoch " + itoa(s.epoch) + ": " + s.err.Error()
}
func (s *stopped) Unwrap() error { return s.err }

func stoppedAt(epoch int, err error) error { return &stopped{epoch, err} }

// Reconstruct returns UV, d × n.
func (m *NMF) Reconstruct() Mat {
	out := NewMat(m.U.Rows, m.V.Cols)
	for i := range out.Rows {
		product(out.Row(i), m.U.Row(i), m.V)
	}
	return out
}

// product fills w = u V.
func product(w, u []float64, v Mat) {
	clear(w)
	for c, uc := range u {
		for j, vc := range v.Row(c) {
			w[j] += float64(uc * vc)
		}
	}
}

// Loss returns the mean divergence of x, d × n, finite and non-negative, from
// Reconstruct().
func (m *NMF) Loss(x Mat) (float64, error) { return meanLoss(x, m.Reconstruct()) }

// meanLoss is the mean over all entries of Δ(x, t).
func meanLoss(x, t Mat) (float64, error) {
	if err := x.check("x"); err != nil {
		return 0, err
	}
	if x.Rows != t.Rows || x.Cols != t.Cols {
		return 0, &ShapeError{What: "x", Got: x.size(), Want: t.size()}
	}
	total := 0.0
	r := make([]float64, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v-v != 0 || v < 0 {
				return 0, &DataError{Row: i, Col: j, Value: v, Problem: "x must be finite and not negative under this loss"}
			}
		}
		ratios(r, x.Row(i), t.Row(i))
		total += divergence(x.Row(i), t.Row(i), r)
	}
	return total / float64(x.Cols) / float64(x.Rows), nil
}
