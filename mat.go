package quantmf

// This file holds matrices. The package computes with Mat, which is dense and in memory. It reads Rows:
// a Mat, or a Mat32 or a Sparse, which hold larger matrices in less memory.

import (
	"math"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/limit"
)

// Rows is a matrix that is read a row at a time: [Mat], [Mat32], [*Sparse], or another type that holds
// d × n numbers. A fit reads every row many times, and several rows at once. It holds d × n numbers
// of its own only where its documentation says so; otherwise it takes memory for some rows of n
// numbers a worker, beside its factors. The same numbers lead to the same bits, whatever holds them.
type Rows interface {
	// Dims returns the sizes, which do not change.
	Dims() (rows, cols int)
	// ReadRow fills x, of length cols, with row i, 0 <= i < rows; NaN is a missing number. It must give the
	// same numbers at every call, and several goroutines may call it at once. A function that reads the
	// matrix ends at an error of ReadRow, and returns it in a [*ReadError]. A panic of ReadRow becomes one of
	// that function, on the goroutine of its caller.
	ReadRow(x []float64, i int) error
}

// Mat is a dense matrix of Rows × Cols numbers, row-major: entry (i, j) lies at
// Data[i*Stride+j]. The fields are those of gonum's blas64.General, so that
// Mat(g) and blas64.General(m) convert without a copy. The zero value is the
// empty matrix.
type Mat struct {
	Rows, Cols int
	Data       []float64
	Stride     int
}

// NewMat returns a matrix of zeros with Stride = cols. Negative sizes give the empty matrix. It panics, as
// make does, where no memory can hold so many numbers.
func NewMat(rows, cols int) Mat {
	if rows <= 0 || cols <= 0 {
		return Mat{}
	}
	if rows > math.MaxInt/8/cols { // the product may overflow
		panic("quantmf: a matrix of " + sizeOf(rows, cols) + " is larger than any memory")
	}
	return Mat{Rows: rows, Cols: cols, Data: make([]float64, rows*cols), Stride: cols}
}

// MatOf returns a matrix with copies of the given rows, the empty matrix for none or
// empty ones. Rows of different lengths are a [*ShapeError].
func MatOf(rows ...[]float64) (Mat, error) {
	for i, r := range rows {
		if len(r) != len(rows[0]) {
			return Mat{}, &ShapeError{What: "row " + itoa(i), Got: itoa(len(r)) + " values",
				Want: itoa(len(rows[0]))}
		}
	}
	if len(rows) == 0 {
		return Mat{}, nil
	}
	m := NewMat(len(rows), len(rows[0]))
	for i := range m.Rows {
		copy(m.Row(i), rows[i])
	}
	return m, nil
}

// At returns entry (i, j). It panics when the index is out of range.
func (m Mat) At(i, j int) float64 { return m.Row(i)[j] }

// Set writes entry (i, j). It panics when the index is out of range.
func (m Mat) Set(i, j int, v float64) { m.Row(i)[j] = v }

// Row returns row i as a view: writing to it writes to m. It panics when i is
// out of range.
func (m Mat) Row(i int) []float64 {
	if uint(i) >= uint(m.Rows) {
		panic("quantmf: row " + itoa(i) + " of a matrix of " + itoa(m.Rows))
	}
	if m.Cols == 0 {
		return nil
	}
	return m.Data[i*m.Stride : i*m.Stride+m.Cols : i*m.Stride+m.Cols]
}

// Dims returns Rows and Cols.
func (m Mat) Dims() (rows, cols int) { return m.Rows, m.Cols }

// ReadRow copies row i to x; the error is nil. It panics when i is out of range.
func (m Mat) ReadRow(x []float64, i int) error {
	copy(x, m.Row(i))
	return nil
}

// Clone returns a copy that shares nothing with m, with Stride = Cols.
func (m Mat) Clone() Mat {
	c := NewMat(m.Rows, m.Cols)
	for i := range c.Rows {
		copy(c.Row(i), m.Row(i))
	}
	return c
}

// T returns the transposed matrix, a copy with Stride = Rows of m.
func (m Mat) T() Mat {
	t := NewMat(m.Cols, m.Rows)
	const block = 16 // rows that share a line of the cache
	for from := 0; from < t.Cols; from += block {
		for i := from; i < min(from+block, t.Cols); i++ {
			for j, v := range m.Row(i) {
				t.Data[j*t.Stride+i] = v
			}
		}
	}
	return t
}

// check reports a matrix whose fields contradict each other. The error calls the matrix by name.
func (m Mat) check(name string) error {
	return checkFields(name, m.Rows, m.Cols, len(m.Data), m.Stride)
}

func checkFields(name string, rows, cols, numbers, stride int) error {
	if err := checkSize(name, rows, cols); err != nil {
		return err
	}
	if stride < cols {
		return &ShapeError{What: name, Got: "stride " + itoa(stride),
			Want: "at least its " + itoa(cols) + " columns"}
	}
	// Divided, not multiplied: sizes from outside must not overflow.
	if numbers < cols || (numbers-cols)/stride < rows-1 {
		return &ShapeError{What: name, Got: itoa(numbers) + " numbers of data",
			Want: "enough for " + sizeOf(rows, cols) + " at stride " + itoa(stride)}
	}
	return nil
}

func checkSize(name string, rows, cols int) error {
	if rows < 0 || cols < 0 {
		return &ShapeError{What: name, Got: sizeOf(rows, cols), Want: "no negative size"}
	}
	if rows == 0 || cols == 0 {
		return &ShapeError{What: name, Got: sizeOf(rows, cols), Want: "at least one row and one column"}
	}
	return nil
}

// checkRows reports a matrix that has no rows to read, or whose fields contradict each other. Errors call it
// x.
func checkRows(x Rows) error {
	const name = "x"
	switch m := x.(type) {
	case nil:
		return &ShapeError{What: name, Got: "nil", Want: "a matrix"}
	case interface{ check(name string) error }: // Mat, Mat32, *Sparse
		return m.check(name)
	}
	rows, cols := x.Dims()
	if max(rows, cols) > limit.Cells { // Rows of a caller's type may claim any size
		return &ShapeError{What: name, Got: sizeOf(rows, cols),
			Want: "at most " + itoa(limit.Cells) + " rows and columns"}
	}
	return checkSize(name, rows, cols)
}

// checkFinite reports the first entry that is NaN or infinite.
func (m Mat) checkFinite(name string) error {
	for i := range m.Rows {
		if j := notFinite(m.Row(i)); j >= 0 {
			return &DataError{Row: i, Col: j, Value: m.At(i, j), Problem: name + " must be finite"}
		}
	}
	return nil
}

// within reports the first number that is not from low to high.
func (m Mat) within(name string, low, high float64) error {
	if err := m.check(name); err != nil {
		return err
	}
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			if !(v >= low && v <= high) {
				return &DataError{Row: i, Col: j, Value: v,
					Problem: name + " must be from " + ftoa(low) + " to " + ftoa(high)}
			}
		}
	}
	return nil
}

func (m Mat) size() string { return sizeOf(m.Rows, m.Cols) }

func sizeOf(rows, cols int) string { return itoa(rows) + "×" + itoa(cols) }

// notFinite returns the index of the first NaN or infinity, -1 for none.
func notFinite(x []float64) int {
	for j, v := range x {
		if v-v != 0 {
			return j
		}
	}
	return -1
}

// rowReader gives the rows of a matrix one after another.
type rowReader struct {
	x    Rows
	mat  Mat       // x where it is a Mat: rows are views of it
	room []float64 // a row of any other x
}

func newRowReader(x Rows) *rowReader {
	r := &rowReader{x: x}
	if m, ok := x.(Mat); ok {
		r.mat = m
		return r
	}
	_, cols := x.Dims()
	r.room = make([]float64, cols)
	return r
}

// row returns row i, which holds until the next call. The caller must not write to it.
func (r *rowReader) row(i int) ([]float64, error) {
	if r.room == nil {
		return r.mat.Row(i), nil
	}
	if err := r.x.ReadRow(r.room, i); err != nil {
		return nil, unread(i, err)
	}
	return r.room, nil
}

// unread returns the error of row i. An err that already says what is wrong with a row stays as it is.
func unread(i int, err error) error {
	switch err := public(err).(type) {
	case *ReadError, *DataError:
		return err
	}
	return &ReadError{Row: i, Err: err}
}

// Mat32 is a [Mat] of numbers in single precision, of half its size.
type Mat32 struct {
	Rows, Cols int
	Data       []float32
	Stride     int
}

// Dims returns Rows and Cols.
func (m Mat32) Dims() (rows, cols int) { return m.Rows, m.Cols }

// ReadRow fills x with row i; the error is nil. It panics when i is out of range.
func (m Mat32) ReadRow(x []float64, i int) error {
	x = x[:m.Cols]
	for j, v := range m.Data[i*m.Stride : i*m.Stride+m.Cols] {
		x[j] = float64(v)
	}
	return nil
}

func (m Mat32) check(name string) error {
	return checkFields(name, m.Rows, m.Cols, len(m.Data), m.Stride)
}

// Sparse is a matrix most of whose numbers are 0. It lists the others row by row, each with its
// column (compressed sparse rows). It takes 8 bytes a listed number in single precision, 12 in
// double, and 8 a row.
type Sparse struct{ of fit.Sparse }

// NewSparse returns a matrix of cols columns and len(start)-1 rows. Row i has the numbers
// values[start[i]:start[i+1]] in the columns index[start[i]:start[i+1]], which increase, and 0 in
// all others. A listed number may be 0, and NaN is a missing number. The matrix keeps the slices, which
// must not be changed afterwards. Errors: [*ShapeError] for slices whose lengths contradict each other,
// [*DataError] for columns that do not increase or are out of range. Cost: one pass over start and index.
func NewSparse[F float32 | float64](cols int, start []int, index []uint32, values []F) (*Sparse, error) {
	d := len(start) - 1
	if err := checkSize("sparse matrix", max(d, 0), cols); err != nil {
		return nil, err
	}
	if len(values) != len(index) {
		return nil, &ShapeError{What: "values", Got: itoa(len(values)),
			Want: itoa(len(index)) + ", one for each column"}
	}
	if start[0] != 0 || start[d] != len(index) {
		return nil, &ShapeError{What: "start", Got: itoa(start[0]) + " to " + itoa(start[d]),
			Want: "0 to " + itoa(len(index)) + ", the number of columns listed"}
	}
	for i := range d {
		if start[i] > start[i+1] || start[i+1] > len(index) {
			return nil, &ShapeError{What: "row " + itoa(i),
				Got:  "start " + itoa(start[i]) + ", end " + itoa(start[i+1]),
				Want: "an end from its start to " + itoa(len(index))}
		}
		last := -1
		for _, j := range index[start[i]:start[i+1]] {
			if int(j) <= last || uint64(j) >= uint64(cols) {
				return nil, &DataError{Row: i, Col: int(j), Value: float64(j),
					Problem: "the columns of a row must increase and be below " + itoa(cols)}
			}
			last = int(j)
		}
	}
	s := fit.Sparse{Cols: cols, Start: start, Index: index}
	switch v := any(values).(type) {
	case []float64:
		s.Wide = v
	case []float32:
		s.Narrow = v
	}
	return &Sparse{s}, nil
}

// Dims returns the sizes.
func (s *Sparse) Dims() (rows, cols int) {
	if s == nil {
		return 0, 0
	}
	return s.of.Dims()
}

func (s *Sparse) check(name string) error {
	if s == nil {
		return &ShapeError{What: name, Got: "nil", Want: "a matrix"}
	}
	rows, cols := s.Dims()
	return checkSize(name, rows, cols)
}

// Listed returns how many numbers are listed.
func (s *Sparse) Listed() int {
	if s == nil {
		return 0
	}
	return len(s.of.Index)
}

// T returns the transposed matrix, in the precision of s. It is a copy: a view would have to search all rows
// of s for each row of its own. Cost: two passes over the listed numbers.
func (s *Sparse) T() *Sparse {
	if s == nil || len(s.of.Start) == 0 {
		return s
	}
	return &Sparse{s.of.T()}
}

// ReadRow fills x with row i; the error is nil. It panics when i is out of range.
func (s *Sparse) ReadRow(x []float64, i int) error { return s.of.ReadRow(x, i) }

// NonZeros returns the listed columns and numbers of row i. The caller must not write to the slices: they
// are views of the matrix, or of the given slices, which NonZeros overwrites from their start. It panics
// when i is out of range.
func (s *Sparse) NonZeros(i int, cols []uint32, values []float64) ([]uint32, []float64) {
	return s.of.NonZeros(i, cols, values)
}

// product fills w = u V.
func product(w, u []float64, v Mat) {
	clear(w)
	for c, uc := range u {
		for j, vc := range v.Row(c) {
			w[j] += float64(uc * vc)
		}
	}
}
