package main

// This file holds "quantmf score -by-sample": the score of each sample, which is the mean of
//
//	Δ(x_ij, t_ij),   t_ij being what the model says of the sample at its place,
//
// over its observed values, and the share that each feature has in that sum.

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// mostCauses is how many features are named for a sample, least the share that one of them has.
const (
	mostCauses = 5
	leastShare = 0.05
)

// The object of score -by-sample -json.
type (
	oddObject struct {
		Samples []odd `json:"samples"`
	}
	odd struct {
		Name   string   `json:"sample"`
		Score  float64  `json:"score"`
		Times  *float64 `json:"times_median,omitempty"` // where the median is above 0
		Causes []cause  `json:"features"`
	}
	cause struct {
		Name     string  `json:"name"`
		Share    float64 `json:"share"`
		Value    float64 `json:"value"`
		Expected float64 `json:"expected"`
	}
)

// oddOnes returns the samples by falling scores, block of samples by block.
func (a *applied) oddOnes(ctx context.Context, m *model, t *table.Table, v quantmf.Mat) ([]odd, error) {
	d, n := t.Dims()
	width := min(max(placed, (n+9)/10), blockOfRows(d))
	all := make([]odd, 0, n)
	for from := 0; from < n; from += width {
		if err := a.tell.Count(from, n, "samples"); err != nil {
			return nil, err
		}
		to := min(from+width, n)
		x, err := samples(t, from, to)
		if err != nil {
			return nil, err
		}
		expected, err := m.expected(ctx, x, v, from)
		if err != nil {
			return nil, inBlock(err, from)
		}
		for j := range x.Cols {
			o := oddOf(m, x, expected, j)
			o.Name = t.Samples[from+j]
			all = append(all, o)
		}
	}
	slices.SortStableFunc(all, func(a, b odd) int { return cmp.Compare(b.Score, a.Score) })
	if median := (all[(n-1)/2].Score + all[n/2].Score) / 2; median > 0 {
		for j := range all {
			times := all[j].Score / median
			all[j].Times = &times
		}
	}
	return all, a.tell.Count(n, n, "samples")
}

// expected is what the model says of the samples x. v, where it is not empty, has the coordinates of all
// samples, of which x begins with sample from.
func (m *model) expected(ctx context.Context, x, v quantmf.Mat, from int) (quantmf.Mat, error) {
	if v.Rows == 0 {
		return m.Predict(ctx, x)
	}
	v.Data, v.Cols = v.Data[from:], x.Cols
	moved, err := m.at(v)
	if err != nil {
		return quantmf.Mat{}, err
	}
	return moved.Reconstruct(), ctx.Err()
}

// oddOf is what is said of sample j of x.
func oddOf(m *model, x, expected quantmf.Mat, j int) odd {
	loss, sum, cells := m.Divergence(), 0.0, 0.0
	causes := make([]cause, 0, x.Rows)
	for i := range x.Rows {
		if v, t := x.At(i, j), expected.At(i, j); v == v {
			c := cause{m.Features[i], loss.At(v, t), v, t}
			sum += c.Share
			cells++
			causes = append(causes, c)
		}
	}
	slices.SortStableFunc(causes, func(a, b cause) int { return cmp.Compare(b.Share, a.Share) })
	kept := []cause{}
	for _, c := range causes[:min(len(causes), mostCauses)] {
		if c.Share /= sum; c.Share >= leastShare { // NaN for 0 of 0
			kept = append(kept, c)
		}
	}
	return odd{Score: sum / cells, Causes: kept}
}

// oddLines writes a line for each sample.
func oddLines(out io.Writer, all []odd) error {
	w := csv.NewWriter(out)
	w.Comma = '\t'
	w.Write([]string{"sample", "score", "times_median", "why"})
	for _, o := range all {
		why := make([]string, len(o.Causes))
		for i, c := range o.Causes {
			why[i] = fmt.Sprintf("%s %.0f %% (%.4g, not %.4g)", table.Shown(c.Name), 100*c.Share, c.Value,
				c.Expected)
		}
		if len(why) == 0 && o.Score > 0 {
			why = []string{"spread over many features"}
		}
		w.Write([]string{o.Name, strconv.FormatFloat(o.Score, 'g', -1, 64), digits(o.Times),
			strings.Join(why, "; ")})
	}
	w.Flush()
	return w.Error()
}
