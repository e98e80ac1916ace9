package quantmf

// Tests of model files: what is written is read, and what is damaged, out of range or out
// of order is refused with the place where it lies.

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
)

// TestSectionsToCome: a section of a later version is skipped where it is optional, refused where not.
func TestSectionsToCome(t *testing.T) {
	x := toy(5)
	x.Rows, x.Cols = 3, 8
	q := Fitted(t, FitQMF, x, 2, WithEpochs(2), WithLevels(3))
	for _, flags := range []uint32{section.Optional, 0} {
		q2, _ := q.MarshalBinary()
		extra := section.Encode(section.QMF,
			[]section.Section{{Tag: "NEXT", Flags: flags, Payload: []byte("something")}})[headerSize:]
		q2 = append(q2, extra...)
		binary.LittleEndian.PutUint32(q2[16:], binary.LittleEndian.Uint32(q2[16:])+1)
		binary.LittleEndian.PutUint32(q2[20:], crc32.ChecksumIEEE(q2[:20]))
		var p QMF
		if err := p.UnmarshalBinary(q2); (err == nil) != (flags == section.Optional) {
			t.Errorf("flags %d: %v", flags, err)
		}
	}
}

// TestHugeSizes: sizes of 2^61 numbers and 8 more, which are 64 bytes modulo 2^64,
// are not those of a section of 64 bytes.
func TestHugeSizes(t *testing.T) {
	const d, k = 1073807362, 2147352580
	if d*k != 1<<61+8 {
		t.Fatal("another product")
	}
	eight := make([]float64, 8)
	data := section.Encode(section.NMF,
		[]section.Section{section.Words("DIMS", d, d, k, 0, 0, 0, math.Float64bits(float64(KL)), 0),
			section.Floats("UFAC", eight), section.Floats("VFAC", eight), section.Floats("HIST", eight[:1]),
			section.Floats("VALI", nil)})
	var bad *FormatError
	if m, err := UnmarshalModel(data); !errors.As(err, &bad) {
		t.Errorf("%T, %v", m, err)
	}
	// Nor are a row of 2^16 samples and 2^16 levels, whose plan is 2^32 numbers.
	const n = 1 << 16
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	data = section.Encode(section.QMF,
		[]section.Section{section.Words("DIMS", 1, n, 1, n, 0, 0, math.Float64bits(float64(KL)),
			math.Float64bits(0.02)), section.Floats("UFAC", ones[:1]), section.Floats("VFAC", ones),
			section.Floats("HIST", ones[:1]), section.Floats("VALI", nil),
			section.Floats("QUAN", ones), section.Floats("WGHT", ones), section.Floats("POTN", ones),
			section.Floats("ROWS", make([]float64, 7)), section.Words("TOOK", 0, 0, 0)})
	if m, err := UnmarshalModel(data); !errors.As(err, &bad) {
		t.Errorf("%T, %v", m, err)
	}
}

func FuzzFile(f *testing.F) {
	x := toy(5)
	x.Rows, x.Cols = 2, 5
	q := Fitted(f, FitQMF, x, 1, WithEpochs(1), WithLevels(2))
	data, _ := q.MarshalBinary()
	f.Add(data)
	n, _ := FitNMF(context.Background(), x, 1, WithEpochs(1))
	data, _ = n.MarshalBinary()
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var bad *FormatError
		var p QMF
		if err := p.UnmarshalBinary(data); err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
		var m NMF
		if err := m.UnmarshalBinary(data); err != nil && !errors.As(err, &bad) {
			t.Fatal(err)
		}
	})
}

// TestFilesOutOfRange: in a model file whose sums are right, every number out of its
// range is refused, and the error says where it lies.
func TestFilesOutOfRange(t *testing.T) {
	x := toy(5)
	x.Rows, x.Cols = 3, 8
	opts := []FitOption{WithEpochs(2), WithLevels(3), WithMaxIterations(2), WithValidation(0.1),
		WithTolerance(1e-13)}
	negative := append(real(-1, -math.SmallestNonzeroFloat64), noNumber...)
	count := []uint64{1 << 31, 1 << 40, math.MaxUint64}
	notPositive := append(real(0), negative...)
	type rule struct {
		tag    string
		number func(i int) bool // nil: all
		bad    []uint64
	}
	is := func(numbers ...int) func(int) bool {
		return func(i int) bool { return slices.Contains(numbers, i) }
	}
	column := func(cols int, of ...int) func(int) bool {
		return func(i int) bool { return is(of...)(i % cols) }
	}
	common := []rule{
		{"DIMS", is(0, 1, 2), append([]uint64{0}, count...)}, {"DIMS", is(4), append([]uint64{3}, count...)},
		{"DIMS", is(5), []uint64{2, math.MaxUint64}}, {"DIMS", is(6), append(real(-2.1, 4.1), noNumber...)},
		{"HIST", nil, negative}, {"VALI", nil, negative},
	}
	maps := []rule{
		{"DIMS", is(7), append(real(0, 5e-324, 9e-13, 1.1e12, -1), noNumber...)},
		{"DIMS", is(3), append([]uint64{0, 1}, count...)},
		{"QUAN", nil, append(real(-1, 1e151), noNumber...)}, {"QUAN", column(3, 1, 2), real(0)},
		{"QUAN", column(3, 0, 1), real(1e100)},
		{"WGHT", nil, append(real(1.1, 0.999), notPositive...)},
		{"POTN", nil, append(real(1e151, -1e151), noNumber...)},
		{"TOOK", is(0), []uint64{5, math.MaxUint64}}, {"TOOK", is(1), append(real(1.1e30), negative...)},
		{"TOOK", is(2), append(real(1.1), negative...)},
		{"ROWS", nil, noNumber}, {"ROWS", column(7, 1), real(-1, 0.5, 4, 1e300)},
		{"ROWS", column(7, 0), real(1e151)},
		{"ROWS", column(7, 2, 3), real(1e300)}, {"ROWS", column(7, 4), real(-1, -1e-300, 1e300)},
		{"ROWS", column(7, 5, 6), real(-1)},
		{"CONV", nil, negative}, {"CONV", column(4, 0), real(3, 0.5, 1e300)},
		{"CONV", column(4, 1), real(0.5, 1e300)}, {"CONV", column(4, 3), real(0)},
	}
	deflated := []rule{
		{"DEFQ", nil, append(real(-1, 1e151), noNumber...)}, {"DEFQ", column(3, 1, 2), real(0)},
		{"DEFQ", column(3, 0, 1), real(1e100)},
		{"DEFC", nil, append(real(1e151), noNumber...)},
		{"DEFR", nil, noNumber}, {"DEFR", column(4, 0), real(-1, 0.5, 4)},
		{"DEFR", column(4, 1, 2), real(1e300)}, {"DEFR", column(4, 3), real(-1, -1e-300, 1e300)},
		{"FROM", nil, negative}, {"PROJ", is(0), []uint64{0, 4, 257, math.MaxUint64}},
		{"PROJ", is(1), []uint64{1<<20 + 1, 1 << 32, math.MaxUint64}},
	}
	check := func(name string, m Model, rules ...[]rule) {
		t.Helper()
		data := FileOf(t, m)
		Must(UnmarshalModel(data))(t)
		for _, r := range slices.Concat(rules...) {
			tried := 0
			for number := 0; ; number++ {
				if r.number != nil && !r.number(number) && number < 1000 {
					continue
				}
				if b, _ := altered(data, r.tag, number, 0); b == nil {
					break
				}
				for _, v := range r.bad {
					b, at := altered(data, r.tag, number, v)
					m, err := UnmarshalModel(b)
					var bad *FormatError
					switch {
					case !errors.As(err, &bad):
						t.Errorf("%s: number %d of %s is taken as %v, %d: %v, %T", name, number, r.tag,
							math.Float64frombits(v), v, err, m)
					// A number may be wrong beside others only: those are of the same section, or
					// the first that no longer fits a size.
					case bad.Offset != at && r.tag != "DIMS" && r.tag != "QUAN" && r.tag != "DEFQ" &&
						r.tag != "WGHT" && v != math.Float64bits(1e300):
						t.Errorf("%s: number %d of %s, at byte %d, is reported at %d: %v", name, number,
							r.tag, at, bad.Offset, err)
					}
					tried++
				}
			}
			if tried == 0 && r.tag != "VALI" && r.tag != "CONV" {
				t.Errorf("%s: no number of %s was tried", name, r.tag)
			}
		}
	}
	factors := func(bad []uint64) []rule { return []rule{{"UFAC", nil, bad}, {"VFAC", nil, bad}} }
	check("NMF", Fitted(t, FitNMF, x, 2, WithEpochs(2), WithValidation(0.1)), factors(negative),
		common, []rule{{"DIMS", is(3), append([]uint64{1}, count...)},
			{"DIMS", is(7), real(0.02, math.NaN())}})
	qmf := Fitted(t, FitQMF, x, 2, opts...)
	if len(qmf.Warnings) == 0 {
		t.Error("no warning is in the file")
	}
	check("QMF", qmf, factors(notPositive), common, maps)
	check("QMFQ", Fitted(t, FitQMFQ, x, 2, append(opts, WithProjection(KLUpdates(2)))...),
		factors(negative), deflated, common, maps)
	svd := Fitted(t, FitQMFQ, x, 2, WithEpochs(2), WithLevels(3), WithMaxIterations(2), WithTolerance(1e-13),
		WithProjection(TruncatedSVD()))
	check("QMFQ svd", svd, factors(append(real(1e300), noNumber...)), deflated, common, maps,
		[]rule{{"PROJ", is(1), []uint64{1}}})
}

// TestSignedFiles: a file with a negative quantile is read under the Frobenius norm, and
// under no other loss.
func TestSignedFiles(t *testing.T) {
	m := Fitted(t, FitQMF, scores(6, 5, 8), 2, WithLoss(Frobenius), WithEpochs(2))
	b, _ := m.MarshalBinary()
	OK(t, new(QMF).UnmarshalBinary(b))
	b, _ = altered(b, "DIMS", 6, math.Float64bits(float64(KL)))
	var format *FormatError
	if err := new(QMF).UnmarshalBinary(b); !errors.As(err, &format) ||
		!strings.Contains(err.Error(), "QUAN") {
		t.Errorf("negative quantiles of KL: %v", err)
	}
}

// TestChangedFields: a field of a model that its owner has given what no reader would take is an error that
// names it, and whatever else is written can be read.
func TestChangedFields(t *testing.T) {
	x := first(toy(2), 5)
	models := threeModels(t, x, 2)
	b := Fitted(t, FitBQMF, x, 2, WithEpochs(2))
	models["BQMF"] = b
	nan, inf := math.NaN(), math.Inf(1)
	refused := map[string]int{}
	for name, m := range models {
		data := FileOf(t, m)
		try := func(field, what string, change func(f reflect.Value)) {
			t.Helper()
			m := Must(UnmarshalModel(data))(t)
			change(reflect.ValueOf(m).Elem().FieldByName(field))
			file, err := m.MarshalBinary()
			if err == nil {
				if _, err := UnmarshalModel(file); err != nil {
					t.Errorf("%s: %s, %s, is written and not read: %v", name, field, what, err)
				}
				return
			}
			refused[field]++
			var shape *ShapeError
			var data *DataError
			if !errors.As(err, &shape) && !errors.As(err, &data) || !strings.Contains(err.Error(), field) &&
				!strings.Contains(what, "size") {
				t.Errorf("%s: %s, %s: %v", name, field, what, err)
			}
		}
		all := reflect.VisibleFields(reflect.TypeOf(m).Elem())
		for _, f := range all {
			if !f.IsExported() || f.Anonymous {
				continue
			}
			field := f.Name
			switch reflect.New(f.Type).Interface().(type) {
			case *Mat:
				for _, v := range []float64{nan, inf, -inf, -1, 0, 1e-320, 1e40, 1e200, 1e300} {
					for _, at := range []int{0, 3} {
						try(field, ftoa(v), func(f reflect.Value) { f.Interface().(Mat).Data[at] = v })
					}
				}
				for _, other := range []Mat{{}, NewMat(2, 2), NewMat(6, 2), NewMat(-0, 3),
					{Rows: 5, Cols: 2, Stride: 2}, {Rows: 5, Cols: 2, Stride: 1, Data: make([]float64, 10)},
					{Rows: -1, Cols: 2, Stride: 2}} {
					try(field, "size "+other.size(), func(f reflect.Value) { f.Set(reflect.ValueOf(other)) })
				}
			case *[]float64:
				for _, v := range []float64{nan, inf, -1} {
					try(field, ftoa(v), func(f reflect.Value) { f.Set(reflect.ValueOf([]float64{v, 1})) })
				}
				try(field, "size 0", func(f reflect.Value) { f.SetZero() })
			case *[]error:
				for _, w := range []error{nil, io.EOF, &ConvergenceError{Row: 5, Tolerance: 1},
					&ConvergenceError{Row: -1, Tolerance: 1}, &ConvergenceError{Tolerance: 0},
					&ConvergenceError{Tolerance: nan},
					&ConvergenceError{Tolerance: 1, MarginalError: inf},
					&ConvergenceError{Tolerance: 1, Iterations: -1}, &ConvergenceError{Tolerance: 1},
					(*ConvergenceError)(nil)} {
					try(field, "an error", func(f reflect.Value) { f.Set(reflect.ValueOf([]error{w})) })
				}
			case *int:
				for _, v := range []int{-1, 1, 1000} {
					try(field, itoa(v), func(f reflect.Value) { f.SetInt(int64(v)) })
				}
			case *float64:
				for _, v := range []float64{nan, inf, -1, 0, 1e31, 0.75} {
					try(field, ftoa(v), func(f reflect.Value) { f.SetFloat(v) })
				}
			case *Start:
				for _, v := range []Start{StartSVD, StartSVD + 1, 255} {
					try(field, v.String(), func(f reflect.Value) { f.SetUint(uint64(v)) })
				}
			default:
				t.Errorf("%s: no change of %s is tried", name, field)
			}
		}
	}
	for _, field := range []string{"U", "V", "History", "Validation", "Best", "Warnings", "Quantiles",
		"Weights", "Start", "Shrinkage", "LeaveOneOut"} {
		if refused[field] == 0 {
			t.Errorf("no change of %s is refused", field)
		}
	}
	for _, m := range []Model{new(NMF), new(QMF), new(QMFQ), new(BQMF)} {
		var shape *ShapeError
		if _, err := m.MarshalBinary(); !errors.As(err, &shape) {
			t.Errorf("an empty %T: %v", m, err)
		}
	}
}
