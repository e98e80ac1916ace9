package fit

// This file holds the matrices that fits read.

import "slices"

// Rows is a matrix that is read by rows, as the root package documents it.
type Rows interface {
	Dims() (rows, cols int)
	ReadRow(x []float64, i int) error
}

// Dense is a matrix in memory, row-major: the Mat of the root package.
type Dense struct {
	Rows, Cols int
	Data       []float64
	Stride     int
}

// NewDense returns a matrix of zeros.
func NewDense(rows, cols int) Dense {
	return Dense{Rows: rows, Cols: cols, Data: make([]float64, rows*cols), Stride: cols}
}

// Row returns row i as a view.
func (m Dense) Row(i int) []float64 { return m.Data[i*m.Stride:][:m.Cols:m.Cols] }

// Dims returns Rows and Cols.
func (m Dense) Dims() (rows, cols int) { return m.Rows, m.Cols }

// ReadRow copies row i to x; the error is nil.
func (m Dense) ReadRow(x []float64, i int) error {
	copy(x, m.Row(i))
	return nil
}

// Sparse is a matrix most of whose numbers are 0, row by row: row i has the numbers from Start[i] up to
// Start[i+1], in the columns Index. They are in double precision in Wide, or in single precision in Narrow.
type Sparse struct {
	Cols   int
	Start  []int
	Index  []uint32
	Wide   []float64
	Narrow []float32
}

// Dims returns the sizes.
func (s *Sparse) Dims() (rows, cols int) { return max(len(s.Start)-1, 0), s.Cols }

// ReadRow fills x with row i; the error is nil.
func (s *Sparse) ReadRow(x []float64, i int) error {
	x = x[:s.Cols]
	clear(x)
	from, to := s.Start[i], s.Start[i+1]
	if s.Narrow != nil {
		values := s.Narrow[from:to]
		for k, j := range s.Index[from:to] {
			x[j] = float64(values[k])
		}
		return nil
	}
	values := s.Wide[from:to]
	for k, j := range s.Index[from:to] {
		x[j] = values[k]
	}
	return nil
}

// T returns the transposed matrix. Rows are taken in order, so that the columns of each new row increase.
func (s *Sparse) T() Sparse {
	d, n := s.Dims()
	t := Sparse{Cols: d, Start: make([]int, n+1), Index: make([]uint32, len(s.Index))}
	if s.Narrow != nil {
		t.Narrow = make([]float32, len(s.Narrow))
	} else {
		t.Wide = make([]float64, len(s.Wide))
	}
	for _, j := range s.Index {
		t.Start[j+1]++
	}
	for j := range n {
		t.Start[j+1] += t.Start[j]
	}
	next := slices.Clone(t.Start)
	for i := range d {
		for k := s.Start[i]; k < s.Start[i+1]; k++ {
			to := &next[s.Index[k]]
			t.Index[*to] = uint32(i)
			if s.Narrow != nil {
				t.Narrow[*to] = s.Narrow[k]
			} else {
				t.Wide[*to] = s.Wide[k]
			}
			*to++
		}
	}
	return t
}

// NonZeros returns the listed columns and numbers of row i, as views, or in the given slices, which it
// overwrites from their start.
func (s *Sparse) NonZeros(i int, cols []uint32, values []float64) ([]uint32, []float64) {
	from, to := s.Start[i], s.Start[i+1]
	if s.Narrow == nil {
		return s.Index[from:to], s.Wide[from:to]
	}
	values = values[:0]
	for _, v := range s.Narrow[from:to] {
		values = append(values, float64(v))
	}
	return s.Index[from:to], values
}

// Source is a matrix as a fit gets it. One of them is set.
type Source struct {
	Dense  Dense // in memory
	Sparse *Sparse
	Rows   Rows // any other matrix
	// InMemory: the numbers of Rows lie in memory too, or are made of such. They are taken not to change, and
	// a row is checked when it is first read alone.
	InMemory bool
}

// Matrix returns the matrix.
func (s *Source) Matrix() Rows {
	switch {
	case s.Rows != nil:
		return s.Rows
	case s.Sparse != nil:
		return s.Sparse
	}
	return s.Dense
}
