// This file compares models on data of other fields: words, faces and cells. The models are NMF of the
// raw matrix, NMF after the scaling that is usual in the field, and QMF, which learns a scaling. They
// are compared on cells that were fitted and on cells that were hidden.
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/cells"
	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// leastShare is the share of the mean of x below which no fitted value counts: a count where 0 was
// fitted would have an infinite loss.
const leastShare = 1e-6

type fieldsResult struct {
	Masks  int
	Fields []field
}

type field struct {
	Set, Kind, Scaling string
	Rank               int
	Features, Samples  int
	Losses             []fieldLoss
	Faces              map[string][][]int // components as pictures, 0 to 255, 23 × 28
}

// fieldLoss has one value for each mask: means over hidden and over visible cells.
type fieldLoss struct {
	Name         string
	Hidden, Seen []float64
}

// scaling is a transformation that is usual before an NMF. forward brings the cells of a matrix to
// the new scale, leaves NaN as NaN, and returns the function that brings fitted values back.
type scaling struct {
	name    string
	forward func(x quantmf.Mat) (scaled quantmf.Mat, back func(i, j int, v float64) float64)
}

// tfidf scales by log(1+count) (1 + log((1+n)/(1+documents with the term))).
var tfidf = scaling{"tf-idf: log(1+count) × (1 + log of the inverse share of documents)",
	func(x quantmf.Mat) (quantmf.Mat, func(int, int, float64) float64) {
		weight := make([]float64, x.Rows)
		y := x.Clone()
		for i := range x.Rows {
			n, has := 1.0, 1.0
			for _, v := range x.Row(i) {
				if v == v {
					n++
					if v > 0 {
						has++
					}
				}
			}
			weight[i] = 1 + math.Log(n/has)
			for j, v := range x.Row(i) {
				y.Set(i, j, math.Log1p(v)*weight[i])
			}
		}
		return y, func(i, _ int, v float64) float64 { return math.Expm1(v / weight[i]) }
	}}

// depth scales by log(1+count), after each cell's counts are scaled to the median total of all cells.
var depth = scaling{"log(1 + counts by the total of the cell)",
	func(x quantmf.Mat) (quantmf.Mat, func(int, int, float64) float64) {
		total := columnMeans(x)
		m := median(total)
		y := x.Clone()
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				y.Set(i, j, math.Log1p(v*m/total[j]))
			}
		}
		return y, func(_, j int, v float64) float64 { return math.Expm1(v) * total[j] / m }
	}}

// brightness divides each picture by its mean.
var brightness = scaling{"each picture by its mean",
	func(x quantmf.Mat) (quantmf.Mat, func(int, int, float64) float64) {
		total := columnMeans(x)
		y := x.Clone()
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				y.Set(i, j, v/total[j])
			}
		}
		return y, func(_, j int, v float64) float64 { return v * total[j] }
	}}

// columnMeans returns the means of columns over the cells that are not NaN.
func columnMeans(x quantmf.Mat) []float64 {
	sum, n := make([]float64, x.Cols), make([]float64, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v {
				sum[j] += v
				n[j]++
			}
		}
	}
	for j := range sum {
		sum[j] = max(sum[j]/n[j], 1e-12)
	}
	return sum
}

// The three fits that are compared.
const raw, scaled = "NMF of the raw matrix", "NMF after scaling by hand"

func fields(s *session) (any, error) {
	r := &fieldsResult{Masks: pick(s, 5, 2)}
	for _, f := range []struct {
		set, kind string
		rank      int
		by        scaling
	}{
		{"sotu-wordcounts/counts", "words of speeches", 8, tfidf},
		{"orl-faces-23x28/pixels", "pixels of faces", 16, brightness},
		{"pbmc3k-small/counts", "genes of blood cells", 8, depth},
	} {
		t, err := s.data.Table(f.set)
		if err != nil {
			return nil, err
		}
		one := field{Set: strings.Split(f.set, "/")[0], Kind: f.kind, Scaling: f.by.name, Rank: f.rank,
			Features: t.X.Rows, Samples: t.X.Cols, Faces: map[string][][]int{}}
		for _, name := range []string{raw, scaled, "QMF"} {
			l := fieldLoss{Name: name}
			type losses struct{ Hidden, Seen float64 }
			key := fmt.Sprintf("%s, %s, rank %d, mask", f.set, name, f.rank)
			all, err := repeat(s, key, r.Masks, func(mask int) (o losses, err error) {
				holes := cells.Hide(t.X, uint64(mask))
				fit, _, err := fieldFit(s, name, holes, f.rank, f.by, true)
				if err != nil {
					return o, err
				}
				o.Hidden, o.Seen = cells.Divergences(t.X, holes, fit, leastShare*stat.Mean(t.X.Data, nil))
				return o, nil
			})
			if err != nil {
				return nil, err
			}
			for _, o := range all {
				l.Hidden = append(l.Hidden, report.Round(o.Hidden, 4))
				l.Seen = append(l.Seen, report.Round(o.Seen, 4))
			}
			one.Losses = append(one.Losses, l)
			if one.Set != "orl-faces-23x28" {
				continue
			}
			one.Faces[name], err = cached(s, name+", components", func() ([][]int, error) {
				_, components, err := fieldFit(s, name, t.X, f.rank, f.by, false)
				return faces(components), err
			})
			if err != nil {
				return nil, err
			}
		}
		r.Fields = append(r.Fields, one)
	}
	return r, nil
}

// fieldFit fits in one of the three ways and returns the fit on the scale of x, and U. A fit of a
// scaled matrix is brought back. A nonlinear scaling does not keep means, so each row is then multiplied
// by a factor that gives it the sum of x over the visible cells, which minimises the loss. Of QMF it returns
// shares for U: T_i makes up for the scale of row i of U, so only shares of rows can be compared.
func fieldFit(s *session, name string, x quantmf.Mat, k int, by scaling, missing bool) (fit, u quantmf.Mat,
	err error) {
	opts := []quantmf.FitOption{quantmf.WithWorkers(1)}
	if missing {
		opts = append(opts, quantmf.WithMissingValues())
	}
	if name == "QMF" {
		m, _, err := fitModel(s, quantmf.MethodQMF, x, k, opts)
		if err != nil {
			return fit, u, err
		}
		return m.Reconstruct(), m.Shares(), nil
	}
	y := x
	back := func(_, _ int, v float64) float64 { return v }
	if name == scaled {
		y, back = by.forward(x)
	}
	m, f, err := fitModel(s, quantmf.MethodNMF, y, k, append(opts, updates...))
	if err != nil {
		return fit, u, err
	}
	fit = m.Reconstruct()
	if name == raw {
		return fit, f.U, nil
	}
	for i := range fit.Rows {
		sum, want := 0.0, 0.0
		for j, v := range fit.Row(i) {
			b := max(back(i, j, v), 0)
			fit.Set(i, j, b)
			if w := x.At(i, j); w == w {
				sum += b
				want += w
			}
		}
		if sum > 0 {
			floats.Scale(want/sum, fit.Row(i))
		}
	}
	return fit, f.U, nil
}

// faces returns the columns of u as pictures, each from 0 at its least value to 255 at its 99th percentile.
func faces(u quantmf.Mat) (out [][]int) {
	for c := range u.Cols {
		var v []float64
		for i := range u.Rows {
			v = append(v, u.At(i, c))
		}
		sorted := slices.Sorted(slices.Values(v))
		low, high := sorted[0], sorted[len(sorted)*99/100]
		var grey []int
		for _, w := range v {
			grey = append(grey, int(255*min(1, max(0, (w-low)/(high-low)))))
		}
		out = append(out, grey)
	}
	return out
}

// montage writes rows of pictures of 23 × 28 pixels, enlarged, to figures/NAME.png.
func montage(name string, rows [][][]int) error {
	const wide, high, zoom, gap = 23, 28, 3, 4
	img := image.NewGray(image.Rect(0, 0, len(rows[0])*(wide*zoom+gap)+gap, len(rows)*(high*zoom+gap)+gap))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	for r, row := range rows {
		for c, face := range row {
			for y := range high * zoom {
				for x := range wide * zoom {
					img.SetGray(gap+c*(wide*zoom+gap)+x, gap+r*(high*zoom+gap)+y,
						color.Gray{uint8(face[y/zoom*wide+x/zoom])})
				}
			}
		}
	}
	f, err := os.Create("figures/" + name + ".png")
	if err != nil {
		return err
	}
	if err := png.Encode(f, img); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func fieldsPage(w *writer, res fieldsResult) error {
	rows := [][]string{{"hidden cells (range over masks)", "NMF, raw", "NMF, scaled", "QMF"}}
	for _, f := range res.Fields {
		row := []string{fmt.Sprintf("%s, k = %d", f.Kind, f.Rank)}
		for _, l := range f.Losses {
			row = append(row, fmt.Sprintf("%.4g (%.4g–%.4g)", stat.Mean(l.Hidden, nil), slices.Min(l.Hidden),
				slices.Max(l.Hidden)))
		}
		rows = append(rows, row)
		if len(f.Faces) == 0 || !w.draw {
			continue
		}
		var pictures [][][]int
		for _, l := range f.Losses {
			pictures = append(pictures, f.Faces[l.Name])
		}
		if err := montage("faces", pictures); err != nil {
			return err
		}
	}
	w.table("fields", rows)
	return nil
}
