package quantmf

// Tests of the solution of a row: its passes and marginals on random and on hard problems.
// testdata/cases.json.gz has plans in 160 digits, also after some iterations of Algorithm 1.

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

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
			x[i] = elem.Logistic(1.8 * Normal(r))
		case 2:
			x[i] = float64(r.IntN(4)) / 4
		case 3:
			x[i] = 0.5
		case 4:
			x[i] = float64(r.IntN(2)) + 1e-3*Normal(r)
		case 5:
			x[i] = math.Exp(3 * Normal(r))
		}
	}
	c := [...]float64{0, 0.5, 2, 4}[r.IntN(4)]
	b = make([]float64, m)
	for j := range b {
		b[j] = math.Exp(c * Normal(r))
	}
	return x, b, eps
}

// TestRandomProblems: all converge, in the number of passes that is stated, and
// nothing is NaN.
func TestRandomProblems(t *testing.T) {
	problems := Draws(100000, 4000, 2000)
	src := random.Split(3, 0)
	var passes []int
	sum, failed := 0, 0
	for p := range problems {
		x, b, eps := randomProblem(&src)
		tr := Solved(t, x, WithEpsilon(eps), WithTargetWeights(b), WithSquash(SquashNone))
		if !tr.Converged {
			failed++
			if failed < 10 {
				t.Errorf("problem %d: n=%d m=%d eps=%g: %g after %d passes", p, len(x), len(b), eps,
					tr.MarginalError, tr.Iterations)
			}
		}
		for _, v := range [][]float64{tr.F, tr.G, tr.Rank(), tr.Sort()} {
			if i := notFinite(v); i >= 0 {
				t.Fatalf("problem %d: %v", p, v[i])
			}
		}
		passes = append(passes, tr.Iterations)
		sum += tr.Iterations
	}
	slices.Sort(passes)
	mean, p99 := float64(sum)/float64(problems), passes[problems*99/100]
	t.Logf("%d problems: %d failed; mean %.2f passes, median %d, p99 %d, most %d", problems, failed, mean,
		passes[problems/2], p99, passes[problems-1])
	if mean > 5.5 || p99 > 25 {
		t.Errorf("mean passes %.2f, p99 %d, want at most 5.5 and 25", mean, p99)
	}
}

// TestMaxIterations: no more passes are made than were allowed, and what comes of
// too few is whole.
func TestMaxIterations(t *testing.T) {
	Slow(t)
	src := random.Split(5, 0)
	for p := range 3000 {
		x, b, eps := randomProblem(&src)
		if p%3 == 0 {
			eps = 1e-6
		}
		most := 1 + p%25
		tr := Solved(t, x, WithEpsilon(eps), WithTargetWeights(b), WithSquash(SquashNone),
			WithMaxIterations(most))
		if tr.Iterations > most {
			t.Fatalf("problem %d: %d passes of %d", p, tr.Iterations, most)
		}
		for _, v := range [][]float64{tr.F, tr.G, tr.Rank(), tr.Sort(), {tr.MarginalError}} {
			if notFinite(v) >= 0 {
				t.Fatalf("problem %d: %v", p, v)
			}
		}
	}
}

// columnError is the largest share by which a column of the plan misses the weight of its level.
func columnError(tr *Transport, b []float64) (rel float64) {
	columns, sum := tr.Plan().T(), TotalOf(b)
	for j, w := range b {
		rel = max(rel, math.Abs(TotalOf(columns.Row(j))-w/sum)/(w/sum))
	}
	return rel
}

// TestSmallEpsilon goes down to 1e-8: what does not converge must say so, and
// what says that it converged must have its marginals.
func TestSmallEpsilon(t *testing.T) {
	problems := Draws(4000, 400, 200)
	src := random.Split(4, 0)
	for _, eps := range []float64{1e-5, 1e-6, 1e-7, 1e-8} {
		failed, passes := 0, 0
		for p := range problems {
			x, b, _ := randomProblem(&src)
			tr := Solved(t, x, WithEpsilon(eps), WithTargetWeights(b), WithSquash(SquashNone))
			passes += tr.Iterations
			rel := columnError(tr, b)
			// Two ways to the same sums differ by the rounding of the logits.
			rounding := 8 * 0x1p-53 * (1 + 2*LargestOf(x)/eps)
			if math.IsNaN(rel) || math.Abs(rel-tr.MarginalError) > 1e-3*rel+rounding {
				t.Fatalf("ε=%g, problem %d: MarginalError %g, the plan is off by %g", eps, p,
					tr.MarginalError, rel)
			}
			if !tr.Converged {
				failed++
				_, err := Solve(x, WithEpsilon(eps), WithTargetWeights(b), WithSquash(SquashNone),
					WithStrict())
				if _, ok := err.(*ConvergenceError); !ok {
					t.Fatalf("strict: %v", err)
				}
			}
		}
		t.Logf("ε=%g: %d of %d not converged, said so; mean %.1f passes", eps, failed, problems,
			float64(passes)/float64(problems))
		if eps >= 1e-6 && failed > problems/100 {
			t.Errorf("ε=%g: %d of %d not converged", eps, failed, problems)
		}
	}
}

// TestHardest keeps the problems that took the most passes of a hundred thousand:
// heavy tails, where most samples share a few targets.
func TestHardest(t *testing.T) {
	for name, c := range map[string]struct {
		state random.Source
		most  int
	}{
		"48x32, ε=1e-4":  {0x217cfb27a398837e, 250},
		"96x32, ε=1e-3":  {0xdac3cba2590dd457, 200},
		"32x32, ε=1e-3":  {0x0c9faa0e27ce7870, 200},
		"16x32, ε=1e-4":  {0x8dad9b1862e2b1fa, 200},
		"112x16, ε=1e-3": {0x56917fa071bf1d5a, 200},
		"32x16, ε=1e-2":  {0xf05f3dab0ba91f6c, 200},
	} {
		src := c.state
		x, b, eps := randomProblem(&src)
		tr := Solved(t, x, WithEpsilon(eps), WithTargetWeights(b), WithSquash(SquashNone))
		t.Logf("%s: %d passes to %.1e", name, tr.Iterations, tr.MarginalError)
		if !tr.Converged || tr.Iterations > c.most {
			t.Errorf("%s: converged %v, %d passes, want at most %d", name, tr.Converged, tr.Iterations,
				c.most)
		}
	}
}
