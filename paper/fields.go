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
	"github.com/quantmf/quantmf/paper/internal/data"
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
	Terms              map[string][][]string // the first features of each component
	Faces              map[string][][]int    // components as pictures, 0 to 255, 23 × 28
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

func fieldsMasks(s *session) int { return pick(s, 5, 2) }

func fields(s *session) (any, error) {
	r := &fieldsResult{Masks: fieldsMasks(s)}
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
			Features: t.X.Rows, Samples: t.X.Cols,
			Terms: map[string][][]string{}, Faces: map[string][][]int{}}
		names := []string{"NMF of the raw matrix", "NMF after scaling by hand", "QMF"}
		for _, name := range names {
			l := fieldLoss{Name: name}
			type losses struct{ Hidden, Seen float64 }
			at := make([]losses, r.Masks)
			err := s.each(r.Masks, func(i int) (err error) {
				at[i], err = cached(s, fmt.Sprintf("%s, %s, rank %d, mask %d", f.set, name, f.rank, i+1),
					func() (o losses, err error) {
						holes := cells.Hide(t.X, uint64(i+1))
						fit, _, err := fieldFit(s, name, holes, f.rank, f.by, true)
						if err != nil {
							return o, err
						}
						o.Hidden, o.Seen = cells.Divergences(t.X, holes, fit, leastShare*average(t.X.Data))
						return o, nil
					})
				return err
			})
			if err != nil {
				return nil, err
			}
			for _, o := range at {
				l.Hidden, l.Seen = append(l.Hidden, sig(o.Hidden, 4)), append(l.Seen, sig(o.Seen, 4))
			}
			one.Losses = append(one.Losses, l)
			type shown struct {
				Terms [][]string
				Faces [][]int
			}
			sh, err := cached(s, f.set+", "+name+", components", func() (o shown, err error) {
				_, m, err := fieldFit(s, name, t.X, f.rank, f.by, false)
				if err != nil {
					return o, err
				}
				if one.Set == "orl-faces-23x28" {
					o.Faces = faces(m)
					return o, nil
				}
				o.Terms, err = terms(t, m, f.by, name)
				return o, err
			})
			if err != nil {
				return nil, err
			}
			if sh.Terms != nil {
				one.Terms[name] = sh.Terms
			}
			if sh.Faces != nil {
				one.Faces[name] = sh.Faces
			}
		}
		r.Fields = append(r.Fields, one)
	}
	return r, nil
}

// fieldFit fits in one of the three ways and returns the fit on the scale of x. A fit of a
// scaled matrix is brought back. A nonlinear scaling does not keep means, so each row is then multiplied
// by a factor that gives it the sum of x over the visible cells, which minimises the loss.
func fieldFit(s *session, name string, x quantmf.Mat, k int, by scaling, missing bool) (quantmf.Mat,
	quantmf.Model, error) {
	opts := []quantmf.FitOption{quantmf.WithWorkers(1)}
	if missing {
		opts = append(opts, quantmf.WithMissingValues())
	}
	if name == "QMF" {
		m, err := quantmf.FitQMF(s.ctx, x, k, opts...)
		if err != nil {
			return quantmf.Mat{}, nil, err
		}
		return m.Reconstruct(), m, nil
	}
	opts = append(opts, quantmf.WithUpdates(quantmf.UpdatesMultiplicative))
	if name == "NMF of the raw matrix" {
		m, err := quantmf.FitNMF(s.ctx, x, k, opts...)
		if err != nil {
			return quantmf.Mat{}, nil, err
		}
		return m.Reconstruct(), m, nil
	}
	scaled, back := by.forward(x)
	m, err := quantmf.FitNMF(s.ctx, scaled, k, opts...)
	if err != nil {
		return quantmf.Mat{}, nil, err
	}
	fit := m.Reconstruct()
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
			for j, v := range fit.Row(i) {
				fit.Set(i, j, v*want/sum)
			}
		}
	}
	return fit, m, nil
}

// terms returns the names of the six features with the largest loadings on each component.
func terms(t *data.Table, m quantmf.Model, by scaling, name string) (out [][]string, err error) {
	x := t.X
	if name == "NMF after scaling by hand" {
		x, _ = by.forward(x)
	}
	tops, err := m.TopFeatures(x, 6)
	for _, top := range tops {
		var names []string
		for _, f := range top {
			names = append(names, t.Features[f.Index])
		}
		out = append(out, names)
	}
	return out, err
}

// faces returns the columns of U as pictures, each from 0 at its least value to 255 at its largest.
func faces(m quantmf.Model) (out [][]int) {
	var u quantmf.Mat
	switch m := m.(type) {
	case *quantmf.NMF:
		u = m.U
	case *quantmf.QMF:
		// T_i makes up for the scale of row i of U, so only shares of rows can be compared.
		u = m.Shares()
	}
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

func fieldsPage(w *writer) error {
	w.p("## Other fields\n")
	r, has, err := read[fieldsResult]("fields")
	if err != nil || !has {
		w.p("Not run: it needs data.\n")
		return err
	}
	res := r.Result
	w.made(r.Header, fmt.Sprintf("%d masks of a tenth of the cells", res.Masks))
	w.p("Losses on the scale of the raw matrix, mean over masks (range). A fit of a matrix that was scaled " +
		"by hand is brought back, and each of its rows multiplied so that its sum over visible")
	w.p("cells is that of the data. NMF: 200 multiplicative updates; QMF: defaults.\n")
	rows := [][]string{{"set", "scaling by hand", "model", "hidden cells", "fitted cells"}}
	for _, f := range res.Fields {
		for _, l := range f.Losses {
			rows = append(rows, []string{fmt.Sprintf("%s: %s, %d × %d, k = %d", f.Set, f.Kind, f.Features,
				f.Samples, f.Rank), f.Scaling, l.Name,
				fmt.Sprintf("%.4g (%.4g–%.4g)", average(l.Hidden), slices.Min(l.Hidden),
					slices.Max(l.Hidden)), fmt.Sprintf("%.4g", average(l.Seen))})
		}
	}
	w.table(rows)
	for _, f := range res.Fields {
		order := slices.Clone(f.Losses)
		slices.SortFunc(order, func(a, b fieldLoss) int {
			if average(a.Hidden) < average(b.Hidden) {
				return -1
			}
			return 1
		})
		always := true
		for i, v := range order[0].Hidden {
			always = always && v < order[1].Hidden[i]
		}
		w.p("- %s: %s has the least loss of unseen cells (%.4g), then %s (%.4g) and %s (%.4g); %s.", f.Kind,
			order[0].Name, average(order[0].Hidden), order[1].Name, average(order[1].Hidden), order[2].Name,
			average(order[2].Hidden),
			verdict(always, "the first is ahead of the second under every mask",
				"the first two change places from mask to mask"))
	}
	w.p("")
	for _, f := range res.Fields {
		if len(f.Terms) > 0 {
			w.p("**Components of %s** by the features that they stand for most:\n", f.Set)
			rows := [][]string{{"component"}}
			var names []string
			for _, l := range f.Losses {
				names = append(names, l.Name)
			}
			rows[0] = append(rows[0], names...)
			for c := range f.Rank {
				row := []string{fmt.Sprint(c + 1)}
				for _, name := range names {
					row = append(row, strings.Join(f.Terms[name][c], ", "))
				}
				rows = append(rows, row)
			}
			w.table(rows)
		}
		if len(f.Faces) > 0 {
			err := w.picture("faces",
				"Components of faces. From above: NMF of the raw matrix, NMF after scaling by hand "+
					"(columns of U), QMF (share of the component in each pixel: rows of its U have no "+
					"common scale). White is large.", func() error {
					var rows [][][]int
					for _, l := range f.Losses {
						rows = append(rows, f.Faces[l.Name])
					}
					return montage("faces", rows)
				})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
