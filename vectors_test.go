package quantmf

// Tests against reference values from 110-digit arithmetic.

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

type vectorGradient struct {
	X, A, B, Y, Q []float64
	Eps           float64
}

type vectorCase struct {
	Name             string
	Eps              float64
	X, A, B, Y, Q    []float64
	T, R, S, F, G    []float64
	P                [][]float64
	ZT, ZR, ZS       []float64
	VjpT, VjpR, VjpS vectorGradient
}

func loadVectors(t *testing.T) []vectorCase {
	data, err := os.ReadFile("../shared/vectors.json")
	if err != nil {
		t.Skip("reference vectors are not here")
	}
	var v struct{ Cases []vectorCase }
	ok(t, json.Unmarshal(data, &v))
	return v.Cases
}

// TestVectors takes the tolerances that the reference file suggests, with the
// absolute part 64u·max|z|·range(q) added for values that are exactly zero.
func TestVectors(t *testing.T) {
	const u = 0x1p-52
	for _, c := range loadVectors(t) {
		t.Run(c.Name, func(t *testing.T) {
			tr := must(Solve(c.X, WithEpsilon(c.Eps), WithWeights(c.A), WithTargets(c.Y),
				WithTargetWeights(c.B),
				WithSquash(SquashNone), WithTolerance(1e-13)))(t)
			if !tr.Converged {
				t.Errorf("not converged: %g after %d passes", tr.MarginalError, tr.Iterations)
			}
			T := must(tr.Quantile(c.Q))(t)
			closeTo(t, "T", T, c.T, 1e-9*largest(c.T))
			closeTo(t, "R", tr.Rank(), c.R, 1e-9*largest(c.R))
			closeTo(t, "S", tr.Sort(), c.S, 1e-9*largest(c.S))
			closeTo(t, "G", tr.G, c.G, 1e-9*largest(c.G))
			closeTo(t, "F", tr.F, c.F, 1e-9*largest(c.F))
			for i, row := range c.P {
				closeTo(t, "P", tr.Plan().Row(i), row, 1e-9)
			}
			gT := must(tr.QuantileVJP(c.Q, c.ZT))(t)
			gR := must(tr.RankVJP(c.ZR))(t)
			gS := must(tr.SortVJP(c.ZS))(t)
			n := float64(len(c.X))
			rangeY := c.Y[len(c.Y)-1] - c.Y[0]
			rangeX := 0.0
			for _, v := range c.X {
				for _, w := range c.X {
					rangeX = max(rangeX, v-w)
				}
			}
			for _, g := range []struct {
				name  string
				got   *Gradient
				want  vectorGradient
				scale float64 // max|z|·range of what is averaged
			}{
				{"T", gT, c.VjpT, largest(c.ZT) * (c.Q[len(c.Q)-1] - c.Q[0])},
				{"R", gR, c.VjpR, largest(c.ZR) * n},
				{"S", gS, c.VjpS, largest(c.ZS) * rangeX},
			} {
				zero := 64 * u * g.scale
				closeTo(t, g.name+"/x", g.got.X, g.want.X,
					64*u*(2/c.Eps)*g.scale*rangeY+1e-9*largest(g.want.X))
				closeTo(t, g.name+"/b", g.got.B, g.want.B, zero+1e-9*largest(g.want.B))
				closeTo(t, g.name+"/a", g.got.A, g.want.A, zero+1e-9*largest(g.want.A))
				closeTo(t, g.name+"/y", g.got.Y, g.want.Y, zero*(2/c.Eps)+1e-9*largest(g.want.Y))
				closeTo(t, g.name+"/eps", []float64{g.got.Epsilon}, []float64{g.want.Eps},
					zero/c.Eps+1e-9*math.Abs(g.want.Eps))
				if g.want.Q != nil {
					closeTo(t, g.name+"/q", g.got.Q, g.want.Q, zero+1e-9*largest(g.want.Q))
				}
			}
		})
	}
}
