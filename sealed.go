package quantmf

// This file holds the promise that a model is what was fitted or read. Its fields are exported to be read; it
// keeps a hash of each of their rows, and a method that computes with a field which has another size or
// another number returns a typed error, or an empty result where it has no error. So a model never answers
// with numbers that belong together no longer.
//
// An NMF is nothing but its factors, so one may be put together by hand: NMF{Factorisation{U: u, V: v}}.

import (
	"cmp"
	"math"
)

// field is an exported field of a model: a matrix, or numbers as its one row.
type field struct {
	name string
	m    Mat
}

func listed(name string, v ...float64) field {
	return field{name, Mat{Rows: 1, Cols: len(v), Stride: len(v), Data: v}}
}

// seal is what a model keeps of a field.
type seal struct {
	cols int
	rows []uint64 // a hash of each row
}

func sealOf(m Mat) seal {
	s := seal{cols: m.Cols}
	for i := range m.Rows {
		s.rows = append(s.rows, hashOf(m.Row(i)))
	}
	return s
}

// hashOf tells apart rows that differ in one number for certain, and others but for chance.
func hashOf(row []float64) uint64 {
	h := uint64(len(row))
	for _, v := range row {
		h = (h ^ math.Float64bits(v)) * 0x9e3779b97f4a7c15 // odd, so that no two numbers lead to the same
		h ^= h >> 32
	}
	return h
}

// check reports a field whose size, or whose rows up to but without to, are not as they were sealed.
func (s *seal) check(f field, from, to int) error {
	if f.m.Rows != len(s.rows) || f.m.Cols != s.cols {
		return &ShapeError{What: f.name, Got: f.m.size(), Want: sizeOf(len(s.rows), s.cols) + ", as it was"}
	}
	if s.cols == 0 {
		return nil
	}
	if err := f.m.check(f.name); err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if hashOf(f.m.Row(i)) != s.rows[i] {
			return &DataError{Row: i, Col: -1, Value: math.NaN(),
				Problem: f.name + " has been changed since the model was made"}
		}
	}
	return nil
}

// sealed is a model whose fields are sealed.
type sealed interface {
	common() *Factorisation
	// fields returns the exported fields: those that methods compute with, U and V first, and those that are
	// only told and written.
	fields() (used, told []field)
}

// sealFields seals the fields of a new model.
func sealFields(m sealed) {
	used, told := m.fields()
	of := m.common()
	of.seals = make([]seal, 0, len(used)+len(told))
	for _, f := range append(used, told...) {
		of.seals = append(of.seals, sealOf(f.m))
	}
}

// usable reports the first field that methods compute with and that is not as the model was made.
func usable(m sealed) error {
	used, _ := m.fields()
	return m.common().unchanged(used)
}

// writable reports the first field that is not as the model was made.
func writable(m sealed) error {
	used, told := m.fields()
	return m.common().unchanged(append(used, told...))
}

// unchanged reports the first of the fields that is not as it was sealed.
func (m *Factorisation) unchanged(fields []field) error {
	if m.seals == nil {
		return &ShapeError{What: "the model", Got: "one of no features",
			Want: "one that was fitted or read from a file"}
	}
	for i, f := range fields {
		if err := m.seals[i].check(f, 0, f.m.Rows); err != nil {
			return err
		}
	}
	return nil
}

// factors returns U and V, or empty matrices where they are not as the model was made, or, put together by
// hand, are not of one rank and finite.
func (m *Factorisation) factors() (u, v Mat) {
	if m.seals != nil {
		if m.unchanged([]field{{"U", m.U}, {"V", m.V}}) != nil {
			return Mat{}, Mat{}
		}
		return m.U, m.V
	}
	const most = math.MaxFloat64
	if cmp.Or(m.U.within("U", -most, most), m.V.within("V", -most, most)) != nil || m.U.Cols != m.V.Rows {
		return Mat{}, Mat{}
	}
	return m.U, m.V
}

// byHand reports factors that make no NMF.
func (m *Factorisation) byHand() error {
	if err := cmp.Or(m.U.within("U", 0, math.MaxFloat64), m.V.within("V", 0, math.MaxFloat64)); err != nil {
		return err
	}
	if m.V.Rows != m.U.Cols {
		return &ShapeError{What: "V", Got: m.V.size(), Want: itoa(m.U.Cols) + " rows, as U has columns"}
	}
	if c, j := m.overflow(); c >= 0 {
		return &DataError{Row: c, Col: j, Value: m.V.At(c, j),
			Problem: "V must not be so large that UV may overflow"}
	}
	return nil
}

// told returns the fields of all models that no method computes with.
func (m *Factorisation) told() []field {
	warnings := make([]float64, len(m.Warnings))
	for i, w := range m.Warnings {
		warnings[i] = math.NaN()
		if c, is := w.(*ConvergenceError); w != nil && !(is && c == nil) {
			h := uint64(0)
			for _, b := range []byte(w.Error()) {
				h = (h ^ uint64(b)) * 0x9e3779b97f4a7c15
			}
			warnings[i] = float64(h)
		}
	}
	return []field{listed("History", m.History...), listed("Validation", m.Validation...),
		listed("Best", float64(m.Best)), listed("Warnings", warnings...)}
}

// fileOf is the MarshalBinary of a model.
func fileOf(m interface {
	sealed
	encode() []byte
}) ([]byte, error) {
	if err := writable(m); err != nil {
		return nil, err
	}
	return m.encode(), nil
}
