package qmf

// This file holds the maps of models as sections of a file (internal/section lists them). What is read may be
// any numbers: each is held to the range that it has in a model.

import (
	"math"
	"strconv"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

// rowNumbers is how many numbers section ROWS has of a row.
const rowNumbers = 7

// Sections returns the sections of the maps T.
func (q *QMF) Sections() []section.Section {
	rows := make([]float64, 0, rowNumbers*len(q.Squash))
	for i, s := range q.Squash {
		rows = append(rows, q.Center[i], float64(s.Kind), s.Ref, s.Shift, s.Std, q.Marginal[i], q.Slopes[i])
	}
	return []section.Section{section.Floats("QUAN", rowsOf(q.Quantiles)...),
		section.Floats("WGHT", rowsOf(q.Weights)...), section.Floats("POTN", rowsOf(q.Potentials)...),
		section.Floats("ROWS", rows),
		section.Words("TOOK", uint64(q.Start), math.Float64bits(q.Lambda), math.Float64bits(q.Line))}
}

// rowsOf are the rows of a matrix.
func rowsOf(m fit.Dense) (rows [][]float64) {
	for i := range m.Rows {
		rows = append(rows, m.Row(i))
	}
	return rows
}

// Decode reads d maps T of m levels. Values of x are not negative unless signed.
func Decode(f *section.File, d, m int, signed bool) (*QMF, error) {
	q, least := new(QMF), 0.0
	if signed {
		least = -limit.Map
	}
	var err error
	for _, sec := range []struct {
		tag       string
		to        *fit.Dense
		low, high float64
	}{
		{"QUAN", &q.Quantiles, least, limit.Map},
		{"WGHT", &q.Weights, math.SmallestNonzeroFloat64, 1},
		{"POTN", &q.Potentials, -limit.Map, limit.Map},
	} {
		if *sec.to, err = readMatrix(f, sec.tag, d, m, sec.low, sec.high); err != nil {
			return nil, err
		}
	}
	if len(f.Payload("TOOK")) == 16 {
		return nil, f.Fail("TOOK", "an earlier version wrote the file, whose maps had no line: fit again")
	}
	took, err := f.Words("TOOK", 3)
	if err != nil {
		return nil, err
	}
	q.Start = Start(took[0] & 255)
	q.Lambda, q.Line = math.Float64frombits(took[1]), math.Float64frombits(took[2])
	if took[0] > uint64(StartSVD) {
		return nil, f.FailAt("TOOK", 0, "there is no such start")
	}
	if option.Shrinkage.Check(q.Lambda) != "" {
		return nil, f.FailAt("TOOK", 1, "the shrinkage is "+text(q.Lambda))
	}
	if option.Line.Check(q.Line) != "" {
		return nil, f.FailAt("TOOK", 2, "the share of the line is "+text(q.Line))
	}
	rows, err := readMatrix(f, "ROWS", d, rowNumbers, -math.MaxFloat64, math.MaxFloat64)
	if err != nil {
		return nil, err
	}
	for i := range d {
		r, row := rows.Row(i), "of row "+strconv.Itoa(i)
		if !(math.Abs(r[0]) <= limit.Map) {
			return nil, f.FailAt("ROWS", rowNumbers*i, "the centre "+row+" is "+text(r[0]))
		}
		if r[5] < 0 {
			return nil, f.FailAt("ROWS", rowNumbers*i+5, "the marginal error "+row+" is "+text(r[5]))
		}
		if r[6] < 0 {
			return nil, f.FailAt("ROWS", rowNumbers*i+6, "the slope "+row+" is "+text(r[6]))
		}
		s, err := squashOf(f, "ROWS", rowNumbers*i+1, r[1:5])
		if err != nil {
			return nil, err
		}
		q.Center = append(q.Center, r[0])
		q.Squash = append(q.Squash, s)
		q.Marginal = append(q.Marginal, r[5])
		q.Slopes = append(q.Slopes, r[6])
		sum := 0.0
		for _, w := range q.Weights.Row(i) {
			sum += w
		}
		if !(math.Abs(sum-1) <= 1e-9) {
			return nil, f.FailAt("WGHT", i*m, "the weights "+row+" sum to "+text(sum))
		}
		if err := rising(f, "QUAN", q.Quantiles, i); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// DecodeDeflation reads d maps T' of m levels, whose rates are those of T.
func DecodeDeflation(f *section.File, d, m int, rate []float64) ([]place.Curve, error) {
	quantiles, err := readMatrix(f, "DEFQ", d, m, 0, limit.Map)
	if err != nil {
		return nil, err
	}
	cuts, err := readMatrix(f, "DEFC", d, m-1, -limit.Map, limit.Map)
	if err != nil {
		return nil, err
	}
	squashes, err := readMatrix(f, "DEFR", d, 4, -math.MaxFloat64, math.MaxFloat64)
	if err != nil {
		return nil, err
	}
	curves := make([]place.Curve, d)
	for i := range curves {
		curves[i] = place.Curve{Q: quantiles.Row(i), Cut: cuts.Row(i), Rate: rate}
		if curves[i].Squash, err = squashOf(f, "DEFR", 4*i, squashes.Row(i)); err != nil {
			return nil, err
		}
		if err := rising(f, "DEFQ", quantiles, i); err != nil {
			return nil, err
		}
	}
	return curves, nil
}

func readMatrix(f *section.File, tag string, rows, cols int, low, high float64) (fit.Dense, error) {
	v, err := f.Floats(tag, int64(rows)*int64(cols), low, high)
	return fit.Dense{Rows: rows, Cols: cols, Data: v, Stride: cols}, err
}

// rising reports quantiles of row i that fall.
func rising(f *section.File, tag string, q fit.Dense, i int) error {
	for j, v := range q.Row(i) {
		if j > 0 && v < q.Row(i)[j-1] {
			return f.FailAt(tag, i*q.Cols+j, "the quantiles of row "+strconv.Itoa(i)+" fall")
		}
	}
	return nil
}

// squashOf makes a squash of r, its kind, reference, shift and deviation. They are the numbers of the
// section from number at on, which an error names.
func squashOf(f *section.File, tag string, at int, r []float64) (transport.Squash, error) {
	if k := r[0]; !(k >= 0 && k <= float64(transport.Kinds-1)) || k != math.Trunc(k) {
		return transport.Squash{}, f.FailAt(tag, at, "there is no squash "+text(k))
	}
	for i, v := range r[1:3] {
		if !(math.Abs(v) <= limit.Product) {
			return transport.Squash{}, f.FailAt(tag, at+1+i, "a mean is "+text(v))
		}
	}
	if v := r[3]; !(v >= 0 && v <= limit.Product) {
		return transport.Squash{}, f.FailAt(tag, at+3, "a deviation is "+text(v))
	}
	return transport.Squash{Kind: transport.Kind(r[0]), Ref: r[1], Shift: r[2], Std: r[3]}, nil
}
