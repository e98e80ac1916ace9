package account

// This file holds coordinates of samples whose distances mean something, on principal axes: what to draw, and
// by which to say who is near whom.
//
// The rows of V of a BQMF have one variance however weak their component is, so its samples are in the
// coordinates of UV (its Embedding): the distances are those between columns of UV. In an NMF or a QMF the
// scale of a row of V is that of a row of U, or of the maps, and says nothing; there each row is taken in its
// standard deviations from its mean, so that all components count the same.

import (
	"math"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/svd"
)

// Coordinates returns the samples of a model on the principal axes of what differs between them, a row an
// axis, the first with most of it; shares says how much each has. Axes without any are left out.
func Coordinates(method string, u, v quantmf.Mat) (axes quantmf.Mat, shares []float64) {
	e := v.Clone()
	for c := range e.Rows {
		row, mean, square := e.Row(c), 0.0, 0.0
		for j, a := range row {
			off := a - mean
			mean += off / float64(j+1)
			square += float64(off * (a - mean))
		}
		deviation := math.Sqrt(square / float64(len(row)))
		for j := range row {
			if row[j] -= mean; method != "BQMF" && deviation > 1e-12*math.Abs(mean) {
				row[j] /= deviation
			} else if method != "BQMF" {
				row[j] = 0
			}
		}
	}
	if method == "BQMF" && u.Rows >= u.Cols {
		e = along(u, e)
	}
	// e = Σ S Left Rightᵀ, of whichever side is longer
	long := e.Cols >= e.Rows
	s := svd.New(nil, max(e.Rows, e.Cols), min(e.Rows, e.Cols))
	for h := range len(s.S) {
		for i := range s.Column(h) {
			if long {
				s.Column(h)[i] = e.At(h, i)
			} else {
				s.Column(h)[i] = e.At(i, h)
			}
		}
	}
	s.Factor()
	all := 0.0
	for _, size := range s.S {
		all += float64(size * size)
	}
	pad := len(s.Right) / len(s.S)
	axes.Cols, axes.Stride = e.Cols, e.Cols
	for h, size := range s.S {
		if !(size > 1e-7*s.S[0]) {
			break
		}
		of := s.Right[h*pad:]
		if long {
			of = s.Left(h)
		}
		most := 0.0
		for _, a := range of[:e.Cols] {
			if math.Abs(a) > math.Abs(most) {
				most = a
			}
		}
		for _, a := range of[:e.Cols] { // the farthest sample is on the side above 0
			axes.Data = append(axes.Data, float64(math.Copysign(size, most)*a))
		}
		axes.Rows++
		shares = append(shares, size*size/all)
	}
	return axes, shares
}

// along returns Aᵀ U V, with A the left singular vectors of U: coordinates with the distances of UV.
func along(u, v quantmf.Mat) quantmf.Mat {
	s := svd.New(nil, u.Rows, u.Cols)
	for c := range u.Cols {
		for i := range s.Column(c) {
			s.Column(c)[i] = u.At(i, c)
		}
	}
	s.Factor()
	turned := quantmf.NewMat(u.Cols, u.Cols)
	for h := range u.Cols {
		for i, a := range s.Left(h)[:u.Rows] {
			for c, b := range u.Row(i) {
				turned.Row(h)[c] += float64(a * b)
			}
		}
	}
	out := quantmf.NewMat(u.Cols, v.Cols)
	for h := range out.Rows {
		Mixture(out.Row(h), turned, v, h)
	}
	return out
}
