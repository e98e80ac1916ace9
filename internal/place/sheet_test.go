package place

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestRatio: what a ratio of polynomials says of cells is what a softmax over levels says, with the slope as a sum over pairs of
// levels and the divergence of package divergence: in the middle and far out, for levels that are close and far apart in ε,
// for cells that are 0, near T and far from it.
func TestRatio(t *testing.T) {
	src := random.Split(41, 0)
	const tail = 1e-290 // no slope beyond where that of the squash is e^-700 is told from none
	ratios := 0
	for round := range 600 {
		m := []int{2, 3, 8, 20}[round%4]
		kind := []transport.Kind{transport.Logistic, transport.LogisticUnit}[round/4%2]
		rho := []float64{0.3, 5, 30, 90}[round/8%4]
		q, cut, rate := make([]float64, m), make([]float64, m-1), make([]float64, m-1)
		last := []float64{0, 1e-9, 0.5}[round%3]
		for J := range q {
			if J > 0 {
				last += 0.01 + src.Float64()
				cut[J-1] = (float64(J) - 0.5 + 0.4*(src.Float64()-0.5)) / float64(m)
				rate[J-1] = rho
			}
			q[J] = last
		}
		squash := transport.Squash{Kind: kind, Ref: 3, Shift: 0.2, Std: []float64{1e-4, 0.7, 1e5}[round%3]}
		f := NewSheet(squash, q, cut, rate)
		low := 1e-6 * f.High()
		ratio := f.Ratio(low)
		if ratio == nil {
			continue
		}
		ratios++
		const points = 64
		w, x := make([]float64, points), make([]float64, points)
		loss, slope, curvature := make([]float64, points), make([]float64, points), make([]float64, points)
		value, steep := make([]float64, points), make([]float64, points)
		for i := range w {
			z := (float64(i) - 31.5) / 5
			switch i {
			case 0:
				z = -1e5
			case 63:
				z = 1e5
			}
			w[i] = squash.Ref + squash.Shift + z*squash.Std
			value[i], steep[i] = softmax(&f, cut, rho, w[i])
			switch i % 5 {
			case 1:
				x[i] = value[i]
			case 2:
				x[i] = value[i] * (1 + 1e-5)
			case 3:
				x[i] = 3 * q[m-1] * src.Float64()
			case 4:
				x[i] = 1e-40
			}
		}
		kernel.MappedKL(loss, slope, curvature, w, x, ratio.levels, ratio.slopes, &ratio.row)
		for i, x := range x {
			v, s, by := value[i], steep[i], math.Max(value[i], low)
			size := rho + float64(m)  // of the exponents, which have as many units in the last place
			rough := 9e-15 * math.Ln2 // of elem.RoughLog2
			if want := divergence.KL.Value(x, v, divergence.KL.Least()); !(math.Abs(loss[i]-want) <= (rough+1e-15*size)*(x+v)) {
				t.Errorf("%d levels, ρ=%v, w=%v, x=%v: loss %v, want %v", m, rho, w[i], x, loss[i], want)
			}
			if want := s * (1 - x/by); !(math.Abs(slope[i]-want) <= 1e-13*size*(s*(1+x/by))+tail) {
				t.Errorf("%d levels, ρ=%v, w=%v, x=%v: slope %v, want %v", m, rho, w[i], x, slope[i], want)
			}
			if want := s * s / by; !(math.Abs(curvature[i]-want) <= 1e-13*size*want+tail) {
				t.Errorf("%d levels, ρ=%v, w=%v: curvature %v, want %v", m, rho, w[i], curvature[i], want)
			}
		}
	}
	if ratios < 400 {
		t.Errorf("%d of 600 maps are ratios", ratios)
	}
}

// softmax returns T and its derivative at w. Where the squash is near 1, its slope takes the digits of 1-x̃ from the
// other side.
func softmax(f *Sheet, cut []float64, rho, w float64) (value, slope float64) {
	rate := math.Pi / math.Sqrt(3)
	if f.squash.Kind == transport.LogisticUnit {
		rate = 1
	}
	z := (w - f.squash.Ref - f.squash.Shift) / f.squash.Std * rate
	s, rest := 1/(1+math.Exp(-z)), 1/(1+math.Exp(z))
	m := len(f.q)
	logs, top := make([]float64, m), 0.0
	for J := 1; J < m; J++ {
		logs[J] = logs[J-1] + rho*(s-cut[J-1])
		top = math.Max(top, logs[J])
	}
	sum := 0.0
	for J, l := range logs {
		logs[J] = math.Exp(l - top)
		sum += logs[J]
	}
	for J, p := range logs {
		value += p / sum * f.q[J]
		for K := range J {
			slope += p / sum * logs[K] / sum * float64(J-K) * (f.q[J] - f.q[K])
		}
	}
	return value, slope * rho * s * rest * rate / f.squash.Std
}

// TestRatioRefused: maps whose sums might overflow, or that are not above 0, are no ratios; nor is one that the squash
// does not bound.
func TestRatioRefused(t *testing.T) {
	logistic := transport.Squash{Kind: transport.Logistic, Std: 1}
	q, cut := []float64{0, 1, 2}, []float64{0.3, 0.6}
	for _, c := range []struct {
		name   string
		squash transport.Squash
		q      []float64
		rate   []float64
		want   bool
	}{
		{"plain", logistic, q, []float64{9, 9}, true},
		{"steep", logistic, q, []float64{400, 400}, false},
		{"two rates", logistic, q, []float64{9, 8}, false},
		{"negative", logistic, []float64{-1, 1, 2}, []float64{9, 9}, false},
		{"zero", logistic, []float64{0, 0, 0}, []float64{9, 9}, false},
		{"huge", logistic, []float64{0, 1, 1e200}, []float64{9, 9}, false},
		{"no squash", transport.Squash{Kind: transport.None}, q, []float64{9, 9}, false},
		{"arctan", transport.Squash{Kind: transport.Arctan, Std: 1}, q, []float64{9, 9}, false},
		{"constant", transport.Squash{Kind: transport.Logistic}, q, []float64{9, 9}, false},
		{"narrow", transport.Squash{Kind: transport.Logistic, Std: 1e-200}, q, []float64{9, 9}, false},
	} {
		f := NewSheet(c.squash, c.q, cut, c.rate)
		if got := f.Ratio(1e-12) != nil; got != c.want {
			t.Errorf("%s: a ratio is %v, want %v", c.name, got, c.want)
		}
	}
}
