package quantmf

// Tests against testdata/cases.json.gz, which reference/cases.py writes: values
// and derivatives in 160 digits, rounded to the nearest double, and an excerpt of
// what R gives where ε = 0.
//
// Tolerances, the same for every case: 1e-9 of the largest entry for all that is
// compared, and on top of it
//
//	∂x         64u (2/ε) max|z| range(averaged) range(y) max dx̃/dx
//	∂y         64u (2/ε) max|z| range(averaged)
//	∂ε         64u (1/ε) max|z| range(averaged)
//	∂q         64u max|z| range(averaged)
//	∂a, ∂b     (64 + 1/κ)u max|z| range(averaged)
//
// for entries that cancel to less, u = 2^-52; averaged is q for T, [0,n] for R, x
// for S. κ is the coupling of the case: weights that a rounding moves by u move
// the potential between two levels by u/κ, which ∂a and ∂b feel and nothing else
// does. Below κ = 1e-12 there is nothing to compare. Of rows of two clusters
// ∂x is right to 1e-10 of its largest entry alone, whatever the coupling. Values of S are compared
// relative to the range of x, with 2u max|x| for what the offset of x takes away.

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

type vectorGradient struct {
	X, A, B, Y, Q []float64
	Eps           float64
}

type referenceCase struct {
	Name             string
	Eps              float64
	Squash           string
	Midpoint         bool
	Iterations       int
	X, A, B, Y, Q    []float64
	T, R, S, F, G    []float64
	P                [][]float64
	Marginal         float64
	Coupling         float64 // the least share that two neighbouring levels exchange
	ZT, ZR, ZS       []float64
	VjpT, VjpR, VjpS vectorGradient
	Dir              vectorGradient
	Jvp              []float64
}

type referenceFile struct {
	Format string
	Cases  []referenceCase
	R      struct {
		Source      string
		Maps, Ranks []struct {
			Name       string
			X, Q, Want []float64
		}
	}
}

func loadCases(t *testing.T) referenceFile {
	t.Helper()
	f := Must(os.Open("testdata/cases.json.gz"))(t)
	defer f.Close()
	z := Must(gzip.NewReader(f))(t)
	var v referenceFile
	OK(t, json.NewDecoder(z).Decode(&v))
	if v.Format != "quantmf-cases-1" || len(v.Cases) == 0 {
		t.Fatalf("format %q with %d cases", v.Format, len(v.Cases))
	}
	if data, err := os.ReadFile("../shared/vectors.json"); err == nil { // more of them, in 110 digits
		var more referenceFile
		OK(t, json.Unmarshal(data, &more))
		for _, c := range more.Cases {
			c.Squash, c.Coupling = "none", 1
			v.Cases = append(v.Cases, c)
		}
	}
	return v
}

// spread is the range of v.
func spread(v []float64) float64 { return slices.Max(v) - slices.Min(v) }

func (c *referenceCase) options(t *testing.T) []Option {
	kinds := map[string]Squash{"logistic": SquashLogistic, "unit": SquashLogisticUnit, "arctan": SquashArctan,
		"none": SquashNone}
	kind, known := kinds[c.Squash]
	if !known {
		t.Fatalf("squash %q", c.Squash)
	}
	opts := []Option{WithEpsilon(c.Eps), WithTargets(c.Y), WithSquash(kind)}
	if c.A != nil {
		opts = append(opts, WithWeights(c.A))
	}
	if c.B != nil {
		opts = append(opts, WithTargetWeights(c.B))
	}
	if c.Midpoint {
		opts = append(opts, WithMidpointRanks())
	}
	if c.Iterations > 0 {
		return append(opts, WithIterations(c.Iterations))
	}
	return append(opts, WithTolerance(1e-13))
}

// steepest is the largest slope of the squash on c.X.
func (c *referenceCase) steepest() float64 {
	if c.Squash == "none" {
		return 1
	}
	n := float64(len(c.X))
	mean, variance := 0.0, 0.0
	for _, v := range c.X {
		mean += (v - c.X[0]) / n
	}
	unit := spread(c.X)
	if unit == 0 {
		return 0
	}
	for _, v := range c.X {
		d := (v - c.X[0] - mean) / unit
		variance += d * d / n
	}
	std := math.Sqrt(variance) * unit
	top := 0.0
	for _, v := range c.X {
		z := (v - c.X[0] - mean) / std
		rate := 1.0
		switch c.Squash {
		case "arctan":
			top = max(top, 1/(1+z*z))
			continue
		case "logistic":
			rate = math.Pi / math.Sqrt(3)
		}
		s := 1 / (1 + math.Exp(-z*rate))
		top = max(top, s*(1-s)*rate)
	}
	return top / std
}

func TestCases(t *testing.T) {
	const u = 0x1p-52
	clusters := 0
	for _, c := range loadCases(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			tr := Solved(t, c.X, c.options(t)...)
			T := Must(tr.Quantile(c.Q))(t)
			NearAll(t, T, c.T, 1e-9*LargestOf(c.T), "T")
			NearAll(t, tr.Rank(), c.R, 1e-9*LargestOf(c.R), "R")
			NearAll(t, tr.Sort(), c.S, 1e-9*spread(c.X)+2*u*LargestOf(c.X), "S")
			if c.Iterations > 0 {
				if tr.Iterations != c.Iterations {
					t.Errorf("%d iterations, want %d", tr.Iterations, c.Iterations)
				}
				NearAll(t, []float64{tr.MarginalError}, []float64{c.Marginal}, 1e-9*c.Marginal,
					"marginal error")
				return
			}
			if !tr.Converged {
				t.Errorf("not converged: %g after %d passes", tr.MarginalError, tr.Iterations)
			}
			for i, row := range c.P {
				NearAll(t, tr.Plan().Row(i), row, 1e-9, "P")
			}
			if c.F != nil { // absent where the potentials are not determined
				NearAll(t, tr.F, c.F, 1e-9*LargestOf(c.F), "F")
				NearAll(t, tr.G, c.G, 1e-9*LargestOf(c.G), "G")
			}

			slope := c.steepest()
			for _, g := range []struct {
				name  string
				got   *Gradient
				want  vectorGradient
				scale float64 // max|z|·range(averaged)
			}{
				{"T", Must(tr.QuantileVJP(c.Q, c.ZT))(t), c.VjpT, LargestOf(c.ZT) * spread(c.Q)},
				{"R", Must(tr.RankVJP(c.ZR))(t), c.VjpR, LargestOf(c.ZR) * float64(len(c.X))},
				{"S", Must(tr.SortVJP(c.ZS))(t), c.VjpS, LargestOf(c.ZS) * spread(c.X)},
			} {
				zero := 64 * u * g.scale
				within := zero*2/c.Eps*spread(c.Y)*slope + 1e-9*LargestOf(g.want.X)
				if c.Squash == "none" && strings.HasPrefix(c.Name, "two clusters") {
					clusters++
					within = 1e-10 * LargestOf(g.want.X)
				}
				NearAll(t, g.got.X, g.want.X, within, "∂%s/∂x", g.name)
				NearAll(t, g.got.Y, g.want.Y, zero*2/c.Eps+1e-9*LargestOf(g.want.Y), "∂%s/∂y", g.name)
				NearAll(t, []float64{g.got.Epsilon}, []float64{g.want.Eps},
					zero/c.Eps+1e-9*math.Abs(g.want.Eps), "∂%s/∂ε", g.name)
				if g.want.Q != nil {
					NearAll(t, g.got.Q, g.want.Q, zero+1e-9*LargestOf(g.want.Q), "∂%s/∂q", g.name)
				}
				if g.want.A != nil {
					NearAll(t, g.got.A, g.want.A, zero+u/c.Coupling*g.scale+1e-9*LargestOf(g.want.A),
						"∂%s/∂a", g.name)
					NearAll(t, g.got.B, g.want.B, zero+u/c.Coupling*g.scale+1e-9*LargestOf(g.want.B),
						"∂%s/∂b", g.name)
					continue
				}
				// Levels coupled below 1e-12: no more than finite can be asked.
				if v := LargestOf(g.got.A) + LargestOf(g.got.B); v-v != 0 {
					t.Errorf("∂%s/∂a or ∂%[1]s/∂b is not finite", g.name)
				}
			}

			if c.Jvp == nil {
				return
			}
			d := c.Dir
			got := Must(tr.QuantileJVP(c.Q,
				Gradient{X: d.X, A: d.A, B: d.B, Y: d.Y, Q: d.Q, Epsilon: d.Eps}))(t)
			moves := slope*LargestOf(d.X)*spread(c.Y) + LargestOf(d.Y) + math.Abs(d.Eps)
			NearAll(t, got, c.Jvp, 64*u*2/c.Eps*spread(c.Q)*moves+1e-9*LargestOf(c.Jvp), "JVP")
		})
	}
	if clusters < 3*6 {
		t.Errorf("%d gradients of two clusters", clusters)
	}
}

// TestAgainstR compares the limit ε = 0 with quantile normalisation in R. A run
// of equal samples gets the mean of its slots here; preprocessCore gives the
// middle slot, or the mean of the middle two, which is the same for runs of two
// and wherever the slots' values are evenly spaced.
func TestAgainstR(t *testing.T) {
	r := loadCases(t).R
	if len(r.Maps) == 0 || len(r.Ranks) == 0 {
		t.Fatal("no excerpt")
	}
	for _, c := range r.Maps {
		t.Run(c.Name, func(t *testing.T) {
			got := Must(SoftQuantile(c.X, c.Q, WithEpsilon(0)))(t)
			want := slices.Clone(c.Want)
			for i, v := range c.X {
				below, equal := 0, 0
				for _, w := range c.X {
					if w < v {
						below++
					} else if w == v {
						equal++
					}
				}
				slots := c.Q[below : below+equal]
				middle := (slots[(equal-1)/2] + slots[equal/2]) / 2
				Near(t, c.Want[i], middle, 1e-13*LargestOf(c.Q), "sample %d by R, the middle of its slots", i)
				if equal > 2 {
					want[i] = 0
					for _, q := range slots {
						want[i] += q / float64(equal)
					}
				}
			}
			NearAll(t, got, want, 1e-13*LargestOf(c.Q), "T") // R's values are printed with 15 digits
		})
	}
	for _, c := range r.Ranks {
		t.Run(c.Name, func(t *testing.T) {
			got := Must(SoftRank(c.X, WithEpsilon(0)))(t)
			NearAll(t, got, c.Want, 0, "R")
		})
	}
}
