package quantmf_test

// This file tests fits of log(1+x) beside those of x, by Choose.

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestLogarithm: of amounts that are products a fit of their logarithm predicts hidden values better, in the
// units of the table, and of sums worse; it is never the best candidate; and a negative value is an error.
func TestLogarithm(t *testing.T) {
	Slow(t)
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	const d, n = 30, 40
	sums, products, v := NewMat(d, n), NewMat(d, n), make([]float64, 2*n)
	for j := range v {
		v[j] = r.NormFloat64()
	}
	for i := range d {
		a, b := r.NormFloat64(), r.NormFloat64()
		for j := range n {
			sums.Set(i, j, 20*(a*a*v[j]*v[j]+b*b*v[n+j]*v[n+j])*(1+0.1*r.NormFloat64()))
			products.Set(i, j, math.Exp(3+a*v[j]+b*v[n+j]+0.2*r.NormFloat64()))
		}
	}
	for name, x := range map[string]Mat{"sums": sums, "products": products} {
		for k := range x.Data {
			x.Data[k] = math.Abs(x.Data[k])
		}
		plain := Candidate{Method: MethodNMF, Rank: 3}
		logged := plain
		logged.Log1p = true
		c := Must(Choose(t.Context(), x, []Candidate{logged, plain, logged}, nil))(t)
		Equal(t, c.Best, 1, "%s: the best", name)
		worse, stdErr := c.Trials[0].Worse(c.Trials[1])
		if (worse < 0) != (name == "products") || name == "products" && worse > -2*stdErr {
			t.Errorf("%s: a logarithm is %v ± %v worse", name, worse, stdErr)
		}
		for i, row := range c.Trials[0].Rows { // the mean alone does not depend on it
			if row.Baseline != c.Trials[1].Rows[i].Baseline || row != c.Trials[2].Rows[i] {
				t.Fatalf("%s: row %d is %v, %v", name, i, row, c.Trials[1].Rows[i])
			}
		}
	}
	sums.Set(4, 5, -1)
	bad := new(DataError)
	_, err := Choose(t.Context(), sums, []Candidate{{Method: MethodQMF, Rank: 2,
		Options: []FitOption{WithLoss(Frobenius)}, Log1p: true}}, nil)
	if !errors.As(err, &bad) || bad.Row != 4 || bad.Value != -1 {
		t.Errorf("a negative value: %v", err)
	}
}
