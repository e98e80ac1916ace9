package place

import (
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// drawnLevels are m levels from the first on, the cuts between them, and even rates.
func drawnLevels(src *random.Source, m int, first, rho float64) (q, cut, rate []float64) {
	q = []float64{first}
	for J := 1; J < m; J++ {
		q = append(q, q[J-1]+0.01+src.Float64())
		cut = append(cut, (float64(J)-0.5+0.4*(src.Float64()-0.5))/float64(m))
		rate = append(rate, rho)
	}
	return q, cut, rate
}

// TestRatio: what a ratio of polynomials says of cells is what a softmax over levels says, with the slope as
// a sum over pairs of levels and the divergence of package divergence: in the middle and far out, for levels
// that are close and far apart in ε, for cells that are 0, near T and far from it.
func TestRatio(t *testing.T) {
	src := random.Split(41, 0)
	const tail = 1e-290 // no slope beyond where that of the squash is e^-700 is told from none
	ratios := 0
	for round := range 600 {
		m := []int{2, 3, 8, 20}[round%4]
		kind := []transport.Kind{transport.Logistic, transport.LogisticUnit}[round/4%2]
		rho := []float64{0.3, 5, 30, 90}[round/8%4]
		q, cut, rate := drawnLevels(&src, m, []float64{0, 1e-9, 0.5}[round%3], rho)
		squash := transport.Squash{Kind: kind, Ref: 3, Shift: 0.2, Std: []float64{1e-4, 0.7, 1e5}[round%3]}
		line := []float64{0, 0, 0, 0, 0.3}[round%5]
		f := NewSheet(squash, q, cut, rate).WithLine(line)
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
			if line > 0 { // T is to be above 0
				w[i] = math.Abs(w[i])
			}
			value[i], steep[i] = softmaxOf(squash, q, cut, rate, w[i])
			value[i], steep[i] = value[i]+line*w[i], steep[i]+line
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
			Near(t, loss[i], divergence.KL.Value(x, v,
				divergence.KL.Least()), (rough+1e-15*size)*(x+v), "%d levels, ρ=%v, w=%v, x=%v: loss", m,
				rho, w[i], x)
			Near(t, slope[i], s*(1-x/by), 1e-13*size*(s*(1+x/by))+tail, "%d levels, ρ=%v, w=%v, x=%v: slope",
				m, rho, w[i], x)
			want := s * s / by
			Near(t, curvature[i], want, 1e-13*size*want+tail, "%d levels, ρ=%v, w=%v: curvature", m, rho,
				w[i])
		}
	}
	if ratios < 400 {
		t.Errorf("%d of 600 maps are ratios", ratios)
	}
}

// softmaxOf returns T and its derivative at w. Where the squash is near 1, its slope takes the digits of 1-x̃
// from the other side.
func softmaxOf(squash transport.Squash, q, cut, rates []float64, w float64) (value, slope float64) {
	z := (w - squash.Ref - squash.Shift) / squash.Std
	s, rise := 0.0, 0.0
	switch squash.Kind {
	case transport.None:
		s, rise = w, 1
	case transport.Arctan:
		s, rise = math.Atan(z), 1/(1+z*z)/squash.Std
	default:
		rate := math.Pi / math.Sqrt(3)
		if squash.Kind == transport.LogisticUnit {
			rate = 1
		}
		rest := 1 / (1 + math.Exp(z*rate))
		s = 1 / (1 + math.Exp(-z*rate))
		rise = s * rest * rate / squash.Std
	}
	m := len(q)
	logs, y, top, sum := make([]float64, m), make([]float64, m), 0.0, 0.0
	for J := 1; J < m; J++ {
		logs[J] = logs[J-1] + rates[J-1]*(s-cut[J-1])
		y[J] = y[J-1] + rates[J-1]
		top = math.Max(top, logs[J])
	}
	for J, l := range logs {
		logs[J] = math.Exp(l - top)
		sum += logs[J]
	}
	for J, p := range logs {
		value += p / sum * q[J]
		for K := range J {
			slope += p / sum * logs[K] / sum * (y[J] - y[K]) * (q[J] - q[K])
		}
	}
	return value, slope * rise
}

// TestSheet: T and T' of a map are those of a softmax over its levels, with the slope as a sum over pairs of
// levels, for each way in which weights are made, also for negative levels and one level, far out, and where
// the squash is near 1.
func TestSheet(t *testing.T) {
	src := random.Split(42, 0)
	forms := map[form]int{}
	for round := range 500 {
		m := []int{1, 2, 3, 8, 20}[round%5]
		kind := []transport.Kind{transport.Logistic, transport.LogisticUnit, transport.Arctan,
			transport.None}[round/5%4]
		rho := []float64{0.3, 30, 90, 400, 2000}[round/20%5]
		q, cut, rate := drawnLevels(&src, m, []float64{0, -3, 0.5}[round%3], rho/float64(m))
		if round%7 == 0 {
			for J := range rate {
				rate[J] *= 0.5 + src.Float64()
			}
		}
		squash := transport.Squash{Kind: kind, Ref: 3, Shift: 0.2, Std: []float64{1e-4, 0.7, 1e5}[round%3]}
		if kind == transport.None {
			squash = transport.Squash{Kind: kind, Std: 1}
		}
		f := NewSheet(squash, q, cut, rate)
		if f.Low() != q[0] || f.High() != q[m-1] || f.Constant() {
			t.Fatalf("a map of %v is from %v to %v, constant: %v", q, f.Low(), f.High(), f.Constant())
		}
		if m > 1 {
			forms[f.form]++
		}
		const points = 64
		room := NewSheetRoom(points, m)
		w, value, slope := make([]float64, points), make([]float64, points), make([]float64, points)
		for i := range w {
			z := (float64(i) - 31.5) / 5
			if kind == transport.None {
				z /= 5
			}
			w[i] = squash.Ref + squash.Shift + z*squash.Std
		}
		f.At(value, slope, w, room)
		ofRange := q[m-1] - q[0]
		for i, w := range w {
			v, s := softmaxOf(squash, q, cut, rate, w)
			size := rho + float64(m) // of the exponents, which have as many units in the last place
			if !(math.Abs(value[i]-v) <= 1e-14*size*ofRange) || !(value[i] >= q[0] && value[i] <= q[m-1]) {
				t.Fatalf("round %d, form %d: T(%v) = %v, want %v", round, f.form, w, value[i], v)
			}
			Near(t, slope[i], s, 1e-12*size*s+1e-120/squash.Std, "round %d, form %d, m=%d: the slope at %v",
				round, f.form, m, w)
		}
	}
	for f := exact; f <= powers; f++ {
		if forms[f] < 20 {
			t.Errorf("%d maps have the form %d", forms[f], f)
		}
	}
	// A slope beyond all numbers is the largest one, and no other changes.
	steep := NewSheet(transport.Squash{Kind: transport.Logistic, Std: 1e-290}, []float64{0, 1e200},
		[]float64{0.5}, []float64{3})
	t8, slope := make([]float64, 8), make([]float64, 8)
	steep.At(t8, slope, []float64{0, 1e-289, 5e-289, 1, -1, math.Inf(1), math.Inf(-1), 0}, NewSheetRoom(8, 2))
	for i, want := range []float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, 0, 0, 0, 0,
		math.MaxFloat64} {
		Equal(t, slope[i], want, "slope %d of a steep map", i)
	}
}

// TestRatioRefused: maps whose sums might overflow, or that are not above 0, are no ratios; nor is one that
// the squash does not bound.
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
		Equal(t, f.Ratio(1e-12) != nil, c.want, "%s: a ratio", c.name)
	}
}

// TestSheetLine: a line adds s w to T and s to its slope, and a map of one value takes others with it.
func TestSheetLine(t *testing.T) {
	squash := transport.Squash{Kind: transport.LogisticUnit, Ref: 2, Std: 0.5}
	for _, c := range []struct{ q, cut, rate []float64 }{
		{[]float64{1}, nil, nil},
		{[]float64{0, 0.4, 2}, []float64{0.3, 0.7}, []float64{12, 12}},
		{[]float64{0, 0.4, 2}, []float64{0.3, 0.7}, []float64{12, 9}},
	} {
		f := NewSheet(squash, c.q, c.cut, c.rate)
		lined := f.WithLine(0.3)
		const n = 16
		room, w := NewSheetRoom(n, len(c.q)), make([]float64, n)
		t0, s0, t1, s1 := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range w {
			w[i] = float64(i) / 3
		}
		f.At(t0, s0, w, room)
		lined.At(t1, s1, w, room)
		for i, x := range w {
			if math.Abs(t1[i]-t0[i]-0.3*x) > 1e-14 || math.Abs(s1[i]-s0[i]-0.3) > 1e-14 {
				t.Errorf("%d levels at %v: %v, %v, without the line %v, %v", len(c.q), x, t1[i], s1[i], t0[i],
					s0[i])
			}
		}
		if !(lined.High() > f.High()) || lined.Constant() {
			t.Errorf("%d levels: the line is in no range", len(c.q))
		}
	}
}
