package quantmf_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// programs returns amounts of d features in n samples, noise of a fifth among them, and U of their k
// components, of which each has features of its own.
func programs(seed uint64, d, n, k int) (x, u Mat) {
	r := random.Split(seed, 3)
	u = NewMat(d, k)
	for i := range d {
		for c := range k {
			u.Set(i, c, .02*r.Float64())
		}
		u.Set(i, i%k, 1+r.Float64())
	}
	x = Times(u, Drawn(k, n, func() float64 { return math.Pow(r.Float64(), 4) }))
	for at := range x.Data {
		x.Data[at] *= .8 + .4*r.Float64()
	}
	return x, u
}

func column(m Mat, c int) []float64 {
	out := make([]float64, m.Rows)
	for i := range out {
		out[i] = m.At(i, c)
	}
	return out
}

// cosine is that of the angle between a and b.
func cosine(a, b []float64) float64 {
	ab, aa, bb := 0.0, 0.0, 0.0
	for i := range a {
		ab += float64(a[i] * b[i])
		aa += float64(a[i] * a[i])
		bb += float64(b[i] * b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// At the true number of components the consensus has every one of them, and all fits agree. With two more
// fits disagree, and what they do not share says so.
func TestConsensus(t *testing.T) {
	t.Parallel()
	x, u := programs(1, 60, 80, 4)
	m := Must(FitConsensus(t.Context(), x, 4, 10))(t)
	for c := range u.Cols {
		near := 0.0
		for found := range m.U.Cols {
			near = max(near, cosine(column(u, c), column(m.U, found)))
		}
		if near < .99 {
			t.Errorf("component %d comes back with a cosine of %.3f", c, near)
		}
	}
	if m.Overall < .95 || slices.Min(m.Stability) < .9 || m.Left > 2 || len(m.Losses) != 10 {
		t.Errorf("stability %.3f of %.3f, %d left out, %d losses", m.Overall, m.Stability, m.Left,
			len(m.Losses))
	}
	for c := range m.U.Cols {
		Near(t, TotalOf(column(m.U, c)), 1, 1e-12, "component %d has a sum", c)
		if c > 0 && TotalOf(m.V.Row(c)) > 1.05*TotalOf(m.V.Row(c-1)) {
			t.Errorf("component %d is larger than the one before", c)
		}
	}
	if loss := m.History[m.Best]; loss > 1.05*slices.Min(m.Losses) {
		t.Errorf("the consensus has a loss of %.4g, the best fit %.4g", loss, slices.Min(m.Losses))
	}
	more := Must(FitConsensus(t.Context(), x, 6, 10))(t)
	if more.Overall > m.Overall-.1 || slices.Min(more.Stability) > .7 {
		t.Errorf("with two more components the stability is %.3f of %.3f", more.Overall, more.Stability)
	}
}

// Stability is the silhouette of the columns of U of the fits, by its definition, and U their medians, for
// any number of workers.
func TestConsensusByDefinition(t *testing.T) {
	t.Parallel()
	x, _ := programs(4, 40, 50, 3)
	const seeds, k = 7, 3
	m := Must(FitConsensus(t.Context(), x, k, seeds, WithSeed(9), WithWorkers(1)))(t)
	three := Must(FitConsensus(t.Context(), x, k, seeds, WithSeed(9), WithWorkers(3)))(t)
	if !slices.Equal(three.U.Data, m.U.Data) || !slices.Equal(three.V.Data, m.V.Data) ||
		!slices.Equal(three.Stability, m.Stability) {
		t.Error("three workers make another consensus")
	}
	var points [][]float64
	var of []int
	for s := range seeds {
		fit := Fitted(t, FitNMF, x, k, WithSeed(uint64(random.Split(9, s))))
		for c := range k {
			p := column(fit.U, c)
			length := math.Sqrt(Dot(p, p))
			for i := range p {
				p[i] /= length
			}
			nearest := 0
			for c := range k {
				if cosine(p, column(m.U, c)) > cosine(p, column(m.U, nearest)) {
					nearest = c
				}
			}
			points, of = append(points, p), append(of, nearest)
		}
	}
	if m.Left > 0 {
		t.Fatalf("%d points were left out", m.Left)
	}
	overall := 0.0
	for p := range points {
		far, count := make([]float64, k), make([]float64, k)
		for q := range points {
			if q != p {
				far[of[q]] += math.Sqrt(max(0, 2-2*Dot(points[p], points[q])))
				count[of[q]]++
			}
		}
		a, b := far[of[p]]/count[of[p]], math.Inf(1)
		for c := range k {
			if c != of[p] {
				b = min(b, far[c]/count[c])
			}
		}
		overall += (b - a) / max(a, b) / float64(len(points))
	}
	Near(t, overall, m.Overall, 1e-9, "the silhouette")
	for c := range k {
		medians := make([]float64, x.Rows)
		for i := range medians {
			var values []float64
			for p, own := range of {
				if own == c {
					values = append(values, points[p][i])
				}
			}
			slices.Sort(values)
			medians[i] = (values[(len(values)-1)/2] + values[len(values)/2]) / 2
		}
		if got := cosine(medians, column(m.U, c)); got < 1-1e-12 {
			t.Errorf("component %d is no median: cosine %v", c, got)
		}
	}
}

// Components that have died, and data by which fits cannot differ, give numbers too.
func TestConsensusOfPoorData(t *testing.T) {
	t.Parallel()
	constant, one := NewMat(5, 6), NewMat(1, 6)
	for at := range constant.Data {
		constant.Data[at] = 1
	}
	one.Data[3] = 2
	for name, x := range map[string]Mat{"zero": NewMat(4, 5), "constant": constant,
		"one": one} {
		for _, k := range []int{1, 3} {
			m := Must(FitConsensus(t.Context(), x, k, 3))(t)
			if v := slices.Concat(m.U.Data, m.V.Data, m.Stability, []float64{m.Overall}); NotFinite(v) >= 0 {
				t.Errorf("%s, k = %d: %v", name, k, v)
			}
		}
	}
}

// A feature that no cluster has in more than half of its points is still predicted: under KL a value that is
// predicted to be 0 would cost as much as all others together.
func TestConsensusPredictsEveryFeature(t *testing.T) {
	t.Parallel()
	x := sparseRows(11)
	m := Must(FitConsensus(t.Context(), x, 9, 8))(t)
	for i := range x.Rows {
		if TotalOf(x.Row(i)) > 0 && TotalOf(m.U.Row(i)) == 0 {
			t.Errorf("no component has feature %d", i)
		}
	}
}

// sparseRows are amounts without structure, most of them 0, by which fits do not agree.
func sparseRows(seed uint64) Mat {
	r, x := random.Split(seed, 0), NewMat(40, 30)
	for at := range x.Data {
		if r.Float64() < .08 {
			x.Data[at] = r.Float64()
		}
	}
	return x
}

func TestConsensusErrors(t *testing.T) {
	x, _ := programs(3, 8, 9, 2)
	for name, call := range map[string]struct {
		k, seeds int
		option   FitOption
	}{
		"seeds":       {2, 1, nil},
		"Seeds":       {2, 1001, nil},
		"points":      {100, 1000, nil},
		"rank":        {0, 2, nil},
		"Init":        {2, 2, WithInit(NewMat(8, 2), NewMat(2, 9))},
		"Restarts":    {2, 2, WithRestarts(2)},
		"Epsilon":     {2, 2, WithLine(.5)},
		"StartScores": {2, 2, WithStart(StartScores)},
	} {
		var opts []FitOption
		if call.option != nil {
			opts = append(opts, call.option)
		}
		m, err := FitConsensus(t.Context(), x, call.k, call.seeds, opts...)
		if OptionOf(err) == "" || m != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := FitConsensus(ended, x, 2, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	bad := NewMat(3, 3)
	bad.Set(1, 2, math.NaN())
	if _, err := FitConsensus(t.Context(), bad, 2, 2); !DataAt(err, 1, 2) {
		t.Errorf("a missing cell: %v", err)
	}
}

func ExampleFitConsensus() {
	x, _ := programs(1, 60, 80, 4)
	for k := 3; k <= 5; k++ {
		m, err := FitConsensus(context.Background(), x, k, 10)
		if err != nil {
			panic(err)
		}
		fmt.Printf("k = %d: stability %.2f\n", k, m.Overall)
	}
	// Output:
	// k = 3: stability 0.79
	// k = 4: stability 1.00
	// k = 5: stability 0.93
}
