package quantmf_test

// This file tests what HeldOut says of hidden cells beside their loss: by row, relative to the row's spread,
// and of the mean of the row.

import (
	"context"
	"math"
	"testing"

	. "github.com/quantmf/quantmf"
)

// TestHiddenRows: the sums by row, the baseline and the relative losses are those of the formulas, of x in
// any unit, and of the masks by themselves or together.
func TestHiddenRows(t *testing.T) {
	t.Parallel()
	const d, n, repeats = 12, 30, 3
	for _, scale := range []float64{1, 0x1p-300} {
		x := NewMat(d, n)
		for k := range x.Data {
			x.Data[k] = scale * (1 + math.Abs(math.Sin(float64(k*k))))
		}
		clear(x.Row(3)) // of which no mean predicts anything
		x.Set(5, 7, math.NaN())
		loss := KL
		if scale != 1 {
			loss = Frobenius
		}
		var want Prediction
		want.Rows = make([]HiddenRow, d)
		fit := func(ctx context.Context, given Rows, k int, o ...FitOption) (Model,
			error) {
			m, err := FitNMF(ctx, given, k, o...)
			if err != nil {
				return nil, err
			}
			of, all := m.Reconstruct(), HiddenRow{}
			relative, baseRelative, counted := 0.0, 0.0, 0
			for i := range d {
				row, h := given.(Mat).Row(i), HiddenRow{}
				mean, square, visible := 0.0, 0.0, 0.0
				for _, v := range row {
					if v == v {
						mean, visible = mean+v, visible+1
					}
				}
				mean /= visible
				for j, v := range row {
					if v == v {
						square += (v - mean) * (v - mean) / visible / 2
					} else if w := x.At(i, j); w == w {
						h.Cells++
						h.Loss += loss.At(w, of.At(i, j))
						h.Baseline += loss.At(w, mean)
					}
				}
				all.Cells += h.Cells
				all.Loss += h.Loss
				all.Baseline += h.Baseline
				if mean == 0 {
					continue
				}
				if loss == KL {
					square /= mean
				}
				relative += h.Loss / square
				baseRelative += h.Baseline / square
				counted += h.Cells
				want.Rows[i].Cells += h.Cells
				want.Rows[i].Loss += h.Loss
				want.Rows[i].Baseline += h.Baseline
			}
			of1 := func(sum float64, cells int) []float64 { return []float64{sum / float64(cells)} }
			want = want.Join(Prediction{Losses: of1(all.Loss, all.Cells),
				Baseline: of1(all.Baseline, all.Cells), Relative: of1(relative, counted),
				BaselineRelative: of1(baseRelative, counted)})
			return m, nil
		}
		trials := []Trial{{Rank: 2, Options: []FitOption{WithLoss(loss)}}}
		var alone Prediction
		for r := range repeats {
			p := Hidden(t, x, fit, trials,
				Masks{Seed: 3, Share: 0.2, First: r, Repeats: 1})
			alone = alone.Join(p[0])
		}
		p := Hidden(t, x, FitNMF, trials,
			Masks{Seed: 3, Share: 0.2, Repeats: repeats})
		numbers := func(p Prediction) (v []float64) {
			v = append(v, p.Mean/want.Mean, p.StdErr/want.Mean)
			for r := range repeats {
				v = append(v, p.Losses[r]/want.Losses[r], p.Baseline[r]/want.Baseline[r], p.Relative[r],
					p.BaselineRelative[r])
			}
			for i, row := range p.Rows {
				v = append(v, float64(row.Cells))
				if i != 3 {
					v = append(v, row.Loss/want.Rows[i].Loss, row.Baseline/want.Rows[i].Baseline)
				}
			}
			return v
		}
		got, by, is := numbers(p[0]), numbers(alone), numbers(want)
		for k, v := range is {
			if !(math.Abs(got[k]-v) <= 1e-9*math.Abs(v)) || got[k] != by[k] {
				t.Errorf("scale %v, number %d: %v, one by one %v, want %v", scale, k, got[k], by[k], v)
			}
		}
	}
}
