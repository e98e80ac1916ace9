package quantmf

// Tests of the solver where weights differ by many orders of magnitude.

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
)

// extremeProblem draws few samples and targets with weights over decades of 10.
func extremeProblem(r *random.Source, decades float64) (x, a, b []float64, s Squash) {
	n, m := 1+r.IntN(24), 2+r.IntN(12)
	x = make([]float64, n)
	kind := r.IntN(4)
	for i := range x {
		switch kind {
		case 0:
			x[i] = r.Float64()
		case 1:
			x[i] = normal(r)
		case 2:
			x[i] = float64(r.IntN(3))
		case 3:
			x[i] = elem.Exp(3 * normal(r))
		}
	}
	weights := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = math.Pow(10, -decades*r.Float64())
			if r.IntN(3) == 0 {
				v[i] = 1
			}
		}
		return v
	}
	b = weights(m)
	if r.IntN(3) == 0 {
		a = weights(n)
	}
	return x, a, b, [...]Squash{SquashLogistic, SquashNone}[r.IntN(2)]
}

// TestExtremeWeights: weights of a ratio up to 1e12 are transported, at every ε, to the
// tolerance or to the rounding of the logits.
func TestExtremeWeights(t *testing.T) {
	problems := 4000
	if testing.Short() {
		problems = 500
	}
	for k, eps := range []float64{1e-2, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8} {
		src := random.Split(21, k)
		sum, most := 0, 0
		for p := range problems {
			x, a, b, s := extremeProblem(&src, 12)
			opts := []Option{WithEpsilon(eps), WithTargetWeights(b), WithSquash(s)}
			if a != nil {
				opts = append(opts, WithWeights(a))
			}
			tr, err := Solve(x, opts...)
			if err != nil {
				t.Fatal(err)
			}
			sum += tr.Iterations
			most = max(most, tr.Iterations)
			width := 1.0
			if s == SquashNone {
				width = spread(x)
			}
			rounding := 9e-16 * (1 + width/2/eps)
			if !tr.Converged && tr.MarginalError > 10*rounding {
				t.Errorf("ε=%g, problem %d, %d×%d: %g after %d passes", eps, p, len(x), len(b), tr.MarginalError, tr.Iterations)
			}
			plan := tr.Plan()
			total := total(b)
			for j, want := range b {
				got := 0.0
				for i := range x {
					got += plan.At(i, j)
				}
				if want /= total; !(math.Abs(got-want) <= (2*tr.MarginalError+1e-9+10*rounding)*want) {
					t.Fatalf("ε=%g, problem %d: column %d sums to %g, want %g, MarginalError %g", eps, p, j, got, want, tr.MarginalError)
				}
			}
		}
		t.Logf("ε=%g: %.1f passes, at most %d", eps, float64(sum)/float64(problems), most)
	}
}

// TestLightLevelBetween: of two samples that fill the outer two of three levels each
// gives the same share to the middle one, however far that is at this ε.
func TestLightLevelBetween(t *testing.T) {
	for _, eps := range []float64{1e-2, 1e-3, 1e-5, 1e-7} {
		for _, b := range []float64{1e-3, 1e-10, 1e-14, 1e-40, 1e-100} {
			tr, err := Solve([]float64{0, 1}, WithTargetWeights([]float64{1, b, 1}), WithEpsilon(eps), WithSquash(SquashNone))
			if err != nil {
				t.Fatal(err)
			}
			// By symmetry; M_i1 is b_1 at both.
			beta := b / (2 + b)
			plan := tr.Plan()
			if want := beta / 2; !tr.Converged || math.Abs(plan.At(0, 1)-want) > 1e-8*want || math.Abs(plan.At(1, 1)-want) > 1e-8*want {
				t.Errorf("ε=%g, b=%g: plan %g, %g, want %g, after %d passes at %g", eps, b, plan.At(0, 1), plan.At(1, 1), want, tr.Iterations, tr.MarginalError)
			}
		}
	}
}
