package quantmf

// This file holds Mat, the one matrix type of the package.

// Mat is a dense matrix of Rows × Cols numbers, row-major: entry (i, j) lies at
// Data[i*Stride+j]. The fields are those of gonum's blas64.General, so that
// Mat(g) and blas64.General(m) convert without a copy. The zero value is the
// empty matrix.
type Mat struct {
	Rows, Cols int
	Data       []float64
	Stride     int
}

// NewMat returns a matrix of zeros with Stride = cols. Negative sizes give the
// empty matrix.
func NewMat(rows, cols int) Mat {
	if rows <= 0 || cols <= 0 {
		return Mat{}
	}
	return Mat{Rows: rows, Cols: cols, Data: make([]float64, rows*cols), Stride: cols}
}

// MatOf returns a matrix with copies of the given rows, the empty matrix for none or
// empty ones. Rows of different lengths are a [*ShapeError].
func MatOf(rows ...[]float64) (Mat, error) {
	for i, r := range rows {
		if len(r) != len(rows[0]) {
			return Mat{}, &ShapeError{What: "row " + itoa(i), Got: itoa(len(r)) + " values", Want: itoa(len(rows[0]))}
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

// Clone returns a copy that shares nothing with m, with Stride = Cols.
func (m Mat) Clone() Mat {
	c := NewMat(m.Rows, m.Cols)
	for i := range c.Rows {
		copy(c.Row(i), m.Row(i))
	}
	return c
}

// check reports a matrix whose fields contradict each other, by name.
func (m Mat) check(name string) error {
	if m.Rows < 0 || m.Cols < 0 {
		return &ShapeError{What: name, Got: m.size(), Want: "no negative size"}
	}
	if m.Rows == 0 || m.Cols == 0 {
		return &ShapeError{What: name, Got: m.size(), Want: "at least one row and one column"}
	}
	if m.Stride < m.Cols {
		return &ShapeError{What: name, Got: "stride " + itoa(m.Stride), Want: "at least its " + itoa(m.Cols) + " columns"}
	}
	// Divided, not multiplied: sizes from outside must not overflow.
	if len(m.Data) < m.Cols || (len(m.Data)-m.Cols)/m.Stride < m.Rows-1 {
		return &ShapeError{What: name, Got: itoa(len(m.Data)) + " numbers of data", Want: "enough for " + m.size() + " at stride " + itoa(m.Stride)}
	}
	return nil
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

func (m Mat) size() string { return itoa(m.Rows) + "×" + itoa(m.Cols) }

// notFinite returns the index of the first NaN or infinity, -1 for none.
func notFinite(x []float64) int {
	for j, v := range x {
		if v-v != 0 {
			return j
		}
	}
	return -1
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

// dot returns Σ a_c b_c.
func dot(a, b []float64) float64 {
	s := 0.0
	b = b[:len(a)]
	for c, v := range a {
		s += float64(v * b[c])
	}
	return s
}
