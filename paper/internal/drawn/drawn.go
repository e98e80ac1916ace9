// Package drawn draws the paper's synthetic problems (§4, Toy illustrations and Larger experiments), and says
// how much of the truth a fit has found.
package drawn

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/cells"
	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/gonum/floats"
)

// Problem is a synthetic problem. X has the rows of W = U* V*, each brought to a quantile
// function q of its own by hard quantile normalisation.
type Problem struct {
	X, U, V, W, Q quantmf.Mat // Q, d × n, has the true quantile functions before noise
}

// New draws a synthetic problem: U* Poisson(2), columns of V* Dirichlet(1/2), and
// q = cumsum(exp(gap N)) at n levels. Where noise is above 0, it adds max(noise N, 0) to X.
func New(d, n, k int, gap, noise float64, seed uint64) Problem {
	r := rand.New(rand.NewPCG(seed, 160))
	p := Problem{quantmf.NewMat(d, n), quantmf.NewMat(d, k), quantmf.NewMat(k, n), quantmf.NewMat(d, n),
		quantmf.NewMat(d, n)}
	for i := range p.U.Data {
		// Knuth's method counts the uniform factors whose product stays above exp(-2).
		for product := r.Float64(); product > math.Exp(-2); product *= r.Float64() {
			p.U.Data[i]++
		}
	}
	for j := range n {
		sum := 0.0
		for c := range k {
			g := r.NormFloat64()
			p.V.Set(c, j, g*g) // half a Gamma(1/2)
			sum += g * g
		}
		for c := range k {
			p.V.Set(c, j, p.V.At(c, j)/sum)
		}
	}
	for i := range d {
		for j := range n {
			for c := range k {
				p.W.Data[i*n+j] += p.U.At(i, c) * p.V.At(c, j)
			}
		}
		q := 0.0
		for rank, j := range cells.Order(p.W.Row(i)) {
			q += math.Exp(gap * r.NormFloat64())
			p.Q.Set(i, rank, q)
			p.X.Set(i, j, q)
		}
	}
	if noise > 0 {
		for i := range p.X.Data {
			p.X.Data[i] += max(noise*r.NormFloat64(), 0)
		}
	}
	return p
}

// Recovery says how much of the truth a fit has found.
type Recovery struct {
	// mean over rows: correlation of the fitted row's quantile function with the true one
	Quantile   float64
	Order      float64 // mean over rows: rank correlation of UV with U*V*
	Components float64 // mean correlation of the rows of V with those of V*, best matched
}

// Recovered compares a fit with the truth. An increasing map of a row of UV can be undone by
// the row's T, so only the order of the row can be found, and its rank correlation is taken.
// Components can be scaled and permuted, so they are matched as well as possible.
func (p Problem) Recovered(fit, u, v quantmf.Mat) (r Recovery) {
	d, n := p.X.Dims()
	for i := range d {
		row := slices.Sorted(slices.Values(fit.Row(i)))
		truth := p.Q.Row(i)
		r.Quantile += cells.Correlation(row, truth) / float64(d)
		w := make([]float64, n)
		for c := range u.Cols {
			floats.AddScaled(w, u.At(i, c), v.Row(c))
		}
		r.Order += cells.Correlation(cells.Ranks(w), cells.Ranks(p.W.Row(i))) / float64(d)
	}
	k := p.V.Rows
	score := make([][]float64, k)
	for a := range k {
		for b := range k {
			score[a] = append(score[a], cells.Correlation(p.V.Row(a), v.Row(b)))
		}
	}
	r.Components = assign(score) / float64(k)
	return Recovery{report.Round(r.Quantile, 4), report.Round(r.Order, 4), report.Round(r.Components, 4)}
}

// assign returns the largest sum over pairs of rows and columns with each row and each column in
// one pair, by dynamic programming over sets of columns.
func assign(score [][]float64) float64 {
	k := len(score)
	best := make([]float64, 1<<k)
	for set := 1; set < 1<<k; set++ {
		row := -1
		for c := range k {
			if set>>c&1 == 1 {
				row++
			}
		}
		best[set] = math.Inf(-1)
		for c := range k {
			if set>>c&1 == 1 {
				best[set] = max(best[set], best[set&^(1<<c)]+score[row][c])
			}
		}
	}
	return best[1<<k-1]
}
