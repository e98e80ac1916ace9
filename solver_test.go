package quantmf

// Tests of the row solver on random problems.

import (
	"math"
	"sort"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
)

// normal returns a standard normal number.
func normal(r *random.Source) float64 { return elem.NormalQuantile((r.Float64() + 0x1p-54)) }

// randomProblem draws from the law by which pass counts are stated: n in 1..256,
// m in {2,...,32}, ε in {1e-1,...,1e-4}, x of six kinds, b = softmax(c N).
func randomProblem(r *random.Source) (x, b []float64, eps float64) {
	n := 1 + r.IntN(256)
	m := 2 << r.IntN(5)
	eps = [...]float64{1e-1, 1e-2, 1e-3, 1e-4}[r.IntN(4)]
	x = make([]float64, n)
	kind := r.IntN(6)
	for i := range x {
		switch kind {
		case 0:
			x[i] = r.Float64()
		case 1:
			x[i] = elem.Logistic(1.8 * normal(r))
		case 2:
			x[i] = float64(r.IntN(4)) / 4
		case 3:
			x[i] = 0.5
		case 4:
			x[i] = float64(r.IntN(2)) + 1e-3*normal(r)
		case 5:
			x[i] = math.Exp(3 * normal(r))
		}
	}
	c := [...]float64{0, 0.5, 2, 4}[r.IntN(4)]
	b = make([]float64, m)
	for j := range b {
		b[j] = math.Exp(c * normal(r))
	}
	return x, b, eps
}

func TestRandomProblems(t *testing.T) {
	problems := 20000
	if testing.Short() {
		problems = 2000
	}
	src := random.Split(3, 0)
	var passes []int
	total, failed := 0, 0
	for p := range problems {
		x, b, eps := randomProblem(&src)
		tr, err := Solve(x, WithEpsilon(eps), WithTargetWeights(b), WithSquash(SquashNone))
		if err != nil {
			t.Fatal(err)
		}
		if !tr.Converged {
			failed++
			if failed < 10 {
				t.Errorf("problem %d: n=%d m=%d eps=%g: %g after %d passes", p, len(x), len(b), eps, tr.MarginalError, tr.Iterations)
			}
		}
		for _, v := range [][]float64{tr.F, tr.G, tr.Rank(), tr.Sort()} {
			if i := notFinite(v); i >= 0 {
				t.Fatalf("problem %d: %v", p, v[i])
			}
		}
		passes = append(passes, tr.Iterations)
		total += tr.Iterations
	}
	sort.Ints(passes)
	mean := float64(total) / float64(problems)
	t.Logf("%d problems: mean %.2f passes, median %d, p99 %d, most %d", problems, mean, passes[problems/2], passes[problems*99/100], passes[problems-1])
	if failed > 0 {
		t.Errorf("%d of %d not converged", failed, problems)
	}
	if mean > 6.5 {
		t.Errorf("mean passes %.2f, want at most 6.5", mean)
	}
}
