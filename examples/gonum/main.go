// Command gonum takes a gonum matrix in and gives gonum one back, both without a copy: a regression on the
// coordinates of a model, where that on the metrics themselves is misled by their bent scales.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/quantmf/quantmf"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Of and Dense share the numbers of the matrix that they are given: the fields are the same.
func Of(m *mat.Dense) quantmf.Mat { return quantmf.Mat(m.RawMatrix()) }

func Dense(m quantmf.Mat) *mat.Dense {
	d := new(mat.Dense)
	d.SetRawMatrix(blas64.General(m))
	return d
}

// measured returns what 20 instruments say of n patients, and an outcome. Two hidden things drive both, but
// each instrument has a scale of its own: some grow as a power, some saturate.
func measured(n int, src *rand.Rand) (x *mat.Dense, outcome []float64) {
	x, outcome = mat.NewDense(20, n, nil), make([]float64, n)
	weights := rand.New(rand.NewPCG(9, 9)) // of the instruments, the same in every group
	share := make([]float64, 20)
	for i := range share {
		share[i] = weights.Float64()
	}
	for j := range n {
		a, b := src.ExpFloat64(), src.ExpFloat64()
		outcome[j] = a - b + 0.2*src.NormFloat64()
		for i, s := range share {
			v := s*a + (1-s)*b
			switch i % 3 {
			case 0:
				v = math.Pow(v, 3)
			case 1:
				v = 1 - math.Exp(-2*v)
			}
			x.Set(i, j, 100*v*math.Exp(0.1*src.NormFloat64()))
		}
	}
	return x, outcome
}

// fitted returns the least-squares prediction of an outcome from further rows z, of coefficients from rows x.
func fitted(x, z mat.Matrix, y []float64) ([]float64, error) {
	design := func(m mat.Matrix) *mat.Dense {
		k, n := m.Dims()
		d := mat.NewDense(n, k+1, nil)
		for j := range n {
			d.Set(j, 0, 1)
			for c := range k {
				d.Set(j, c+1, m.At(c, j))
			}
		}
		return d
	}
	var coefficients, out mat.VecDense
	if err := coefficients.SolveVec(design(x), mat.NewVecDense(len(y), y)); err != nil {
		return nil, err
	}
	out.MulVec(design(z), &coefficients)
	return out.RawVector().Data, nil
}

// run returns the share of the variance of new patients' outcome that is predicted from the coordinates of a
// BQMF, and from as many principal components of the metrics.
func run(w io.Writer) (byBQMF, byPCA float64, err error) {
	ctx, src := context.Background(), rand.New(rand.NewPCG(1, 3))
	x, y := measured(200, src)
	z, truth := measured(200, src)
	m, err := quantmf.FitBQMF(ctx, Of(x), 2)
	if err != nil {
		return 0, 0, err
	}
	placed, err := m.Transform(ctx, Of(z))
	if err != nil {
		return 0, 0, err
	}
	got, err := fitted(Dense(m.V), Dense(placed), y)
	if err != nil {
		return 0, 0, err
	}
	var pc stat.PC
	if !pc.PrincipalComponents(x.T(), nil) {
		return 0, 0, fmt.Errorf("no principal components")
	}
	var vectors, old, fresh mat.Dense
	pc.VectorsTo(&vectors)
	first := vectors.Slice(0, 20, 0, 2)
	old.Mul(first.T(), x)
	fresh.Mul(first.T(), z)
	plain, err := fitted(&old, &fresh, y)
	if err != nil {
		return 0, 0, err
	}
	byBQMF, byPCA = stat.RSquaredFrom(got, truth, nil), stat.RSquaredFrom(plain, truth, nil)
	fmt.Fprintf(w, "of the outcome of new patients two coordinates of a BQMF predict %.0f %%, two "+
		"principal components "+
		"%.0f %%\n", 100*byBQMF, 100*byPCA)
	return byBQMF, byPCA, nil
}

func main() {
	if _, _, err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
