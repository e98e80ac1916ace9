package bqmf

import (
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// The normal distribution function against its quantile, and at its ends.
func TestPhi(t *testing.T) {
	for k := 1; k < 2000; k++ {
		p := float64(k) / 2000
		Near(t, Phi(elem.NormalQuantile(p)), p, 1e-14, "phi of the quantile of %g", p)
	}
	for _, z := range []float64{-8, -7.5, 7.5, 8, math.Inf(1), math.Inf(-1)} {
		Near(t, Phi(z), math.Erfc(-z/math.Sqrt2)/2, 1e-14, "Phi(%g)", z)
	}
}

// TestBend: Bend takes LevelsAt to the levels, linear between them and of slope 1 beyond, and Unbend takes it
// back.
func TestBend(t *testing.T) {
	var c Curve
	at := -3.0
	for k := range c.Levels {
		at += 0.1 + float64(k%3)
		c.Levels[k] = at
	}
	last := len(LevelsAt) - 1
	for k, z := range LevelsAt {
		z, want := []float64{z, z - 2, z + 2}, []float64{c.Levels[k], c.Levels[0] - 2, c.Levels[last] + 2}
		if 0 < k && k < last {
			z[1], want[1] = (LevelsAt[k-1]+z[0])/2, (c.Levels[k-1]+want[0])/2
			z, want = z[:2], want[:2]
		} else {
			z, want = append(z[:1], z[1+k/last]), append(want[:1], want[1+k/last])
		}
		for h, z := range z {
			Near(t, c.bend(z), want[h], 1e-12, "%v is bent to", z)
			Near(t, c.unbend(want[h]), z, 1e-12, "%v is bent back to", want[h])
		}
	}
}

// TestUnitOf: units are powers of four.
func TestUnitOf(t *testing.T) {
	for _, v := range []float64{1, 1.5, 2, 3.99, 4, 17, 0.25, 0.2499, 1e60, 3e-60, 0x1p-1074} {
		unit := unitOf(v)
		half, e := math.Frexp(unit)
		if half != 0.5 || (e-1)%2 != 0 || v/unit < 1 || v/unit >= 4 {
			t.Errorf("the unit of %v is %v", v, unit)
		}
	}
	Equal(t, unitOf(0), 1, "the unit of 0")
}

// TestScaleOfZeros: -0 and hidden cells leave the scale of a row as 0 and their absence do, and a hidden cell
// is at 0.
func TestScaleOfZeros(t *testing.T) {
	minus := math.Copysign(0, -1)
	var c, other Curve
	var s scaler
	y := []float64{9, 9, 9, 9, 9, 9}
	s.scale(&c, y, []float64{minus, 2, math.NaN(), 0, 5, minus}, nil, false)
	of := make([]float64, 5)
	s.scale(&other, of, []float64{0, 2, 0, 5, 0}, nil, false)
	if math.Signbit(c.X[0]) || !slices.Equal(c.Y, other.Y) ||
		!slices.Equal(slices.Delete(slices.Clone(y), 2, 3), of) || y[2] != 0 {
		t.Errorf("%v at %v, want %v at %v", y, c, of, other)
	}
}

// TestOneStep: a rising correction of one knot is constant.
func TestOneStep(t *testing.T) {
	c := Curve{X: []float64{1, 5}, MeanX: 3, MeanP: 2, Slope: 0.5, StepAt: []float64{2}, StepTo: []float64{4}}
	for _, p := range []float64{1, 2, 3} {
		want := (p + (3 + 0.5*(p-2)) + 4) / 3
		Near(t, c.correct(p), want, 1e-15*want, "%v is corrected to", p)
	}
}

// TestLearnUnits: what is learnt of a row does not depend on its unit, and of a row of the least numbers,
// whose mean rounds to 0, all is finite.
func TestLearnUnits(t *testing.T) {
	learn := func(unit float64) (c Curve, sums rowSums) {
		l := mapLearner{x: []float64{unit, 0, 0, 3 * unit, 0, 0, 0},
			p: []float64{0, unit, 0, 2 * unit, 0, 0, 0}, cells: ones(make([]int, 7))}
		var s scaler
		s.scale(&c, make([]float64, len(l.x)), l.x, nil, false)
		return c, l.fitMap(&c, unit, true)
	}
	c, sums := learn(1)
	small, of := learn(0x1p-800)
	sums.unit = of.unit
	if small.MeanX != c.MeanX*0x1p-800 || small.MeanP != c.MeanP*0x1p-800 || of != sums {
		t.Errorf("in units of 2^-800 %v %v %v, in others %v %v %v", small.MeanX, small.MeanP, of, c.MeanX,
			c.MeanP, sums)
	}
	least, of := learn(0x1p-1074)
	for _, v := range append([]float64{least.MeanX, least.MeanP, of.xp, of.pp, of.xx},
		append(least.StepAt, least.StepTo...)...) {
		if !(math.Abs(v) <= math.MaxFloat64) {
			t.Fatalf("a row of the least numbers: %v, %v", least, of)
		}
	}
}

// TestLearn holds the corrections to their definitions: least squares by the weights of the loss, and the
// isotonic regression by its max-min formula, a knot in the middle of each block, drawn towards p, and lines
// of slope 1 at most from the outer ones to the ends of the row.
func TestLearn(t *testing.T) {
	r := random.Split(11, 1)
	for trial := range 40 {
		n := 3 + int(r.Uint64()%60)
		x, p := make([]float64, n), make([]float64, n)
		for j := range x {
			x[j] = 8 * r.Float64()
			p[j] = x[j]/3 + 3*r.Float64()
			if trial%2 == 1 { // predictions that come more than once
				p[j] = 0.5 + math.Floor(p[j])
			}
		}
		for j := range p { // as all that Mean returns
			p[j] = min(max(p[j], slices.Min(x)), slices.Max(x))
		}
		for _, relative := range []bool{false, true} {
			var s scaler
			var c Curve
			s.scale(&c, make([]float64, n), x, nil, false)
			l := mapLearner{x: x, p: p, cells: ones(x)}
			sums := l.fitMap(&c, 1, relative)

			mean := 0.0
			for _, v := range x {
				mean += v / float64(n)
			}
			w, total := make([]float64, n), 0.0
			for j := range w {
				w[j] = 1
				if relative {
					w[j] = 1 / max(p[j], mean/5)
				}
				total += w[j]
			}
			var mx, mp, cov, vr, vx float64
			for j := range w {
				w[j] *= float64(n) / total
				mx += w[j] * x[j] / float64(n)
				mp += w[j] * p[j] / float64(n)
			}
			for j := range w {
				cov += w[j] * (x[j] - mx) * (p[j] - mp)
				vr += w[j] * (p[j] - mp) * (p[j] - mp)
				vx += w[j] * (x[j] - mx) * (x[j] - mx) / float64(n)
			}
			for _, v := range [][3]float64{{c.MeanX, mx, 1}, {c.MeanP, mp, 2}, {sums.xp, cov, 3},
				{sums.pp, vr, 4}, {sums.xx, vx, 5}} {
				Close(t, v[0], v[1], 1e-12, "%d cells, relative %v: moment %g", n,
					relative, v[2])
			}

			// The isotonic regression at each cell: equal p are one cell.
			fit := make([]float64, n)
			for j := range fit {
				fit[j] = math.Inf(-1)
				for _, from := range p {
					if from > p[j] {
						continue
					}
					least := math.Inf(1)
					for _, to := range p {
						if to < p[j] {
							continue
						}
						sum, count := 0.0, 0.0
						for h := range p {
							if p[h] >= from && p[h] <= to {
								sum += x[h]
								count++
							}
						}
						least = min(least, sum/count)
					}
					fit[j] = max(fit[j], least)
				}
			}
			lo, hi := slices.Min(x), slices.Max(x)
			var at, to []float64
			for _, j := range slices.Backward(falling(p)) {
				middle, count := 0.0, 0.0
				for h := range p {
					if math.Abs(fit[h]-fit[j]) < 1e-9 {
						middle += p[h]
						count++
					}
				}
				middle /= count
				if k := len(at); k > 0 && middle <= at[k-1]+1e-9 {
					continue
				}
				knot := min(max((count*fit[j]+2*middle)/(count+2), lo), hi)
				if k := len(to); k > 0 {
					knot = max(knot, to[k-1])
				}
				at, to = append(at, middle), append(to, knot)
			}
			if at[0] > lo {
				end := max(to[0]+lo-at[0], lo)
				at, to = slices.Insert(at, 0, lo), slices.Insert(to, 0, end)
			}
			if k := len(at) - 1; at[k] < hi {
				at, to = append(at, hi), append(to, min(to[k]+hi-at[k], hi))
			}
			want := func(p float64) float64 {
				k := 1
				for k+1 < len(at) && at[k] < p {
					k++
				}
				return to[k-1] + (to[k]-to[k-1])*(p-at[k-1])/(at[k]-at[k-1])
			}
			c.Slope = 0.7
			for k := range 200 {
				q := lo + (hi-lo)*float64(k)/199
				affine := min(max(mx+0.7*(q-mp), lo), hi)
				Near(t, c.correct(q), (q+affine+want(q))/3, 1e-9,
					"%d cells, relative %v: the correction of %v", n, relative, q)
			}
			at, to = c.StepAt, c.StepTo
			for k := range at {
				if k > 0 && !(at[k] > at[k-1] && to[k] >= to[k-1]) {
					t.Fatalf("knots %v, %v do not rise", at, to)
				}
			}
		}
	}
}

// TestPool holds the slopes and the levels of rows to their definitions, in plain loops: a row's own, drawn
// to those of all rows by so many pseudo-cells. A row whose predictions are all the same has the slope of
// all, and a level that a row has too few cells for the distance of all rows' from the next inner one.
func TestPool(t *testing.T) {
	r := random.Split(12, 1)
	for range 20 {
		var curves []*Curve
		var rows []rowSums
		var cov, vr, cells float64
		for k := range 5 {
			s := rowSums{xp: r.Float64(), pp: r.Float64(), xx: 1 + r.Float64(),
				cells: 20 + math.Floor(250*r.Float64()), unit: 4}
			if k == 3 {
				s.xp, s.pp = 0, 0
			}
			c := &Curve{MeanP: 4 * r.Float64()}
			for h, z := range LevelsAt {
				c.Levels[h] = z*(0.5+r.Float64()/4) + 0.1*float64(h)
			}
			slices.Sort(c.Levels[:])
			curves, rows = append(curves, c), append(rows, s)
			cov, vr, cells = cov+s.xp/s.xx, vr+s.pp/s.xx, cells+s.cells
		}
		var own [5][len(LevelsAt)]float64
		for k, c := range curves {
			own[k] = c.Levels
		}
		var residuals []float64
		for range int(cells) * residualParts {
			residuals = append(residuals, 3*r.Float64()-1)
		}
		slices.Sort(residuals)
		var all histogram
		all.take(&mapLearner{z: residuals, parts: residualParts, cells: ones(residuals)}, countUnit(cells))
		poolMaps(curves, rows, &all, countUnit(cells))
		for k, c := range curves {
			s := rows[k]
			slope := cov / vr
			if k != 3 {
				slope = (s.xp/s.pp*s.cells + 20*slope) / (s.cells + 20)
			}
			Near(t, c.Slope, slope, 1e-12, "row %d: slope", k)
			var want, pooled [len(LevelsAt)]float64
			for h, z := range LevelsAt {
				p := Phi(z)
				pooled[h] = residuals[int(math.Ceil(p*(cells+1)*residualParts))-1] // within a bin
				hold := 10 * 0.25 / (p * (1 - p))
				want[h] = (own[k][h]*s.cells + pooled[h]*hold) / (s.cells + hold)
			}
			for h := 6; h >= 0; h-- {
				if Phi(LevelsAt[h])*(s.cells+1) < 1 {
					want[h] = want[h+1] + pooled[h] - pooled[h+1]
				}
			}
			for h := 8; h < len(want); h++ {
				if Phi(-LevelsAt[h])*(s.cells+1) < 1 {
					want[h] = want[h-1] + pooled[h] - pooled[h-1]
				}
			}
			for h := range want {
				want[h] = max(want[h], want[max(h-1, 0)])
				if !(math.Abs(c.Levels[h]-want[h]) <= 2.0/binsPerUnit) || h > 0 &&
					!(c.Levels[h] > c.Levels[h-1]) {
					t.Errorf("row %d of %v cells: level %d %v, want %v", k, s.cells, h, c.Levels[h], want[h])
				}
			}
		}
	}
}
