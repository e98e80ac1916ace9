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
		row := e.Row(c)
		mean, square := around(row)
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
	columns, long := e, e.Cols >= e.Rows
	if !long {
		columns = e.T()
	}
	s := decomposed(columns)
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

// around returns the mean of x and the sum of squares around it.
func around(x []float64) (mean, square float64) {
	for j, a := range x {
		off := a - mean
		mean += off / float64(j+1)
		square += float64(off * (a - mean))
	}
	return mean, square
}

// decomposed is the singular value decomposition of a matrix by its columns, which are given as rows.
func decomposed(columns quantmf.Mat) *svd.Decomposition {
	s := svd.New(nil, columns.Cols, columns.Rows)
	for h := range columns.Rows {
		copy(s.Column(h), columns.Row(h))
	}
	s.Factor()
	return s
}

// along returns Aᵀ U V, with A the left singular vectors of U: coordinates with the distances of UV.
func along(u, v quantmf.Mat) quantmf.Mat {
	s := decomposed(u.T())
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
