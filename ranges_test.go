package quantmf

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"testing"
)

// altered returns a copy of a file with one number of a section replaced, its sum right,
// and where the number lies; -1 where the section is shorter.
func altered(data []byte, tag string, number int, value uint64) ([]byte, int64) {
	b := bytes.Clone(data)
	for at := headerSize; at < len(b); {
		n := int(binary.LittleEndian.Uint64(b[at+8:]))
		p := b[at+sectionSize : at+sectionSize+n]
		if string(b[at:at+4]) == tag {
			if 8*number+8 > n {
				return nil, -1
			}
			binary.LittleEndian.PutUint64(p[8*number:], value)
			binary.LittleEndian.PutUint32(b[at+sectionSize+n:], crc32.ChecksumIEEE(p))
			return b, int64(at + sectionSize + 8*number)
		}
		at += sectionSize + n + 4
	}
	return nil, -1
}

func real(v ...float64) (bits []uint64) {
	for _, x := range v {
		bits = append(bits, math.Float64bits(x))
	}
	return bits
}

var noNumber = real(math.NaN(), math.Inf(1), math.Inf(-1))

// TestFilesOutOfRange: in a model file whose sums are right, every number out of its
// range is refused, and the error says where it lies.
func TestFilesOutOfRange(t *testing.T) {
	ctx := context.Background()
	x := toy(5)
	x.Rows, x.Cols = 3, 8
	opts := []FitOption{WithEpochs(2), WithLevels(3), WithMaxIterations(2), WithValidation(0.1), WithTolerance(1e-13)}
	negative := append(real(-1, -math.SmallestNonzeroFloat64), noNumber...)
	count := []uint64{1 << 31, 1 << 40, math.MaxUint64}
	notPositive := append(real(0), negative...)
	type rule struct {
		tag    string
		number func(i int) bool // nil: all
		bad    []uint64
	}
	is := func(numbers ...int) func(int) bool {
		return func(i int) bool {
			for _, n := range numbers {
				if i == n {
					return true
				}
			}
			return false
		}
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
		{"QUAN", nil, append(real(-1, 1e151), noNumber...)}, {"QUAN", column(3, 1, 2), real(0)}, {"QUAN", column(3, 0, 1), real(1e100)},
		{"WGHT", nil, append(real(1.1, 0.999), notPositive...)},
		{"POTN", nil, append(real(1e151, -1e151), noNumber...)},
		{"TOOK", is(0), []uint64{5, math.MaxUint64}}, {"TOOK", is(1), append(real(1.1e30), negative...)},
		{"ROWS", nil, noNumber}, {"ROWS", column(6, 1), real(-1, 0.5, 4, 1e300)}, {"ROWS", column(6, 0), real(1e151)},
		{"ROWS", column(6, 2, 3), real(1e300)}, {"ROWS", column(6, 4), real(-1, -1e-300, 1e300)}, {"ROWS", column(6, 5), real(-1)},
		{"CONV", nil, negative}, {"CONV", column(4, 0), real(3, 0.5, 1e300)}, {"CONV", column(4, 1), real(0.5, 1e300)}, {"CONV", column(4, 3), real(0)},
	}
	signed := []rule{{"UFAC", nil, append(real(1e300), noNumber...)}, {"VFAC", nil, append(real(1e300), noNumber...)}}
	files := map[string]struct {
		m     Model
		rules []rule
	}{}
	nmf, err := FitNMF(ctx, x, 2, WithEpochs(2), WithValidation(0.1))
	if err != nil {
		t.Fatal(err)
	}
	files["NMF"] = struct {
		m     Model
		rules []rule
	}{nmf, append([]rule{{"UFAC", nil, negative}, {"VFAC", nil, negative}, {"DIMS", is(3), append([]uint64{1}, count...)}, {"DIMS", is(7), real(0.02, math.NaN())}}, common...)}
	qmf, err := FitQMF(ctx, x, 2, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if len(qmf.Warnings) == 0 {
		t.Error("no warning is in the file")
	}
	files["QMF"] = struct {
		m     Model
		rules []rule
	}{qmf, append(append([]rule{{"UFAC", nil, notPositive}, {"VFAC", nil, notPositive}}, common...), maps...)}
	deflated := append(append([]rule{
		{"DEFQ", nil, append(real(-1, 1e151), noNumber...)}, {"DEFQ", column(3, 1, 2), real(0)}, {"DEFQ", column(3, 0, 1), real(1e100)},
		{"DEFC", nil, append(real(1e151), noNumber...)},
		{"DEFR", nil, noNumber}, {"DEFR", column(4, 0), real(-1, 0.5, 4)}, {"DEFR", column(4, 1, 2), real(1e300)}, {"DEFR", column(4, 3), real(-1, -1e-300, 1e300)},
		{"PROJ", is(0), []uint64{0, 4, 257, math.MaxUint64}}, {"PROJ", is(1), []uint64{1<<20 + 1, 1 << 32, math.MaxUint64}},
	}, common...), maps...)
	for name, o := range map[string][]FitOption{
		"QMFQ":     append(opts, WithProjection(KLUpdates(2))),
		"QMFQ svd": {WithEpochs(2), WithLevels(3), WithMaxIterations(2), WithTolerance(1e-13), WithProjection(TruncatedSVD())},
	} {
		m, err := FitQMFQ(ctx, x, 2, o...)
		if err != nil {
			t.Fatal(err)
		}
		rules := append(signed, deflated...)
		if name == "QMFQ" {
			rules = append([]rule{{"UFAC", nil, negative}, {"VFAC", nil, negative}}, deflated...)
		} else {
			rules = append(rules, rule{"PROJ", is(1), []uint64{1}})
		}
		files[name] = struct {
			m     Model
			rules []rule
		}{m, rules}
	}
	for name, file := range files {
		data, _ := file.m.MarshalBinary()
		if _, err := UnmarshalModel(data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range file.rules {
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
						t.Errorf("%s: number %d of %s is taken as %v, %d: %v, %T", name, number, r.tag, math.Float64frombits(v), v, err, m)
					// A number may be wrong beside others only: those are of the same section, or
					// the first that no longer fits a size.
					case bad.Offset != at && r.tag != "DIMS" && r.tag != "QUAN" && r.tag != "DEFQ" && r.tag != "WGHT" && v != math.Float64bits(1e300):
						t.Errorf("%s: number %d of %s, at byte %d, is reported at %d: %v", name, number, r.tag, at, bad.Offset, err)
					}
					tried++
				}
			}
			if tried == 0 && r.tag != "VALI" && r.tag != "CONV" {
				t.Errorf("%s: no number of %s was tried", name, r.tag)
			}
		}
	}
}

// TestStatesOutOfRange: the same for what a fit goes on from. What a number means is
// the fit's affair; here each is made what none may be, and what some may not.
func TestStatesOutOfRange(t *testing.T) {
	ctx := context.Background()
	x := toy(5)
	x.Rows, x.Cols = 4, 8
	for _, model := range []string{"NMF", "QMF", "QMFQ"} {
		opts := []FitOption{WithEpochs(3), WithValidation(0.1), WithRestarts(2)}
		if model != "NMF" {
			opts = append(opts, WithLevels(3))
		}
		var states [][]byte
		save := WithCheckpoint(1, func(s []byte) error { states = append(states, s); return nil })
		if _, _, _, _, _, err := fitAny(ctx, model, x, 2, append(opts, save)...); err != nil {
			t.Fatal(err)
		}
		state := states[4] // of the second restart, after two epochs
		refused := func(what string, b []byte, at int64) {
			t.Helper()
			var bad *FormatError
			_, _, _, _, _, err := fitAny(ctx, model, x, 2, append(opts, WithResume(b))...)
			if !errors.As(err, &bad) || at >= 0 && bad.Offset != at {
				t.Errorf("%s, %s, at byte %d: %v", model, what, at, err)
			}
		}
		for number := 0; ; number++ {
			b, at := altered(state, "REAL", number, math.Float64bits(math.NaN()))
			if b == nil {
				break
			}
			if number%7 == 0 || number < 40 {
				refused("NaN in REAL", b, at)
				b, at = altered(state, "REAL", number, math.Float64bits(math.Inf(-1)))
				refused("-Inf in REAL", b, at)
			}
		}
		for _, tag := range []string{"HIST", "VALI"} {
			for number := range 3 {
				for _, v := range append(real(-1), noNumber...) {
					if b, at := altered(state, tag, number, v); b != nil {
						refused(tag, b, at)
					}
				}
			}
		}
		for number, bad := range [][]uint64{{2, math.MaxUint64}, {0, 4, math.MaxUint64}, nil, {1, 1 << 62}, {3, math.MaxUint64}, {3, math.MaxUint64}, real(-1, math.NaN(), math.Inf(1)), real(-1, math.NaN(), math.Inf(1))} {
			for _, v := range bad {
				b, at := altered(state, "STAT", number, v)
				if model == "QMF" && number == 3 || number == 1 && v < 5 {
					at = -1
				}
				refused("STAT", b, at)
			}
		}
		if model != "NMF" {
			rows := 4
			for number := 0; ; number++ {
				b, at := altered(state, "IDX0", number, 1<<40)
				if b == nil {
					break
				}
				if model == "QMF" && number == 2*rows+1 {
					b, at = altered(state, "IDX0", number, math.Float64bits(-1))
				}
				refused("IDX0", b, at)
			}
		}
		// The best model of the restarts before: with a number out of range, of another
		// shape, and not there.
		f, err := decodeSections(state, get32(state[12:]), []string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"})
		if err != nil {
			t.Fatal(err)
		}
		with := func(best []byte) []byte {
			var sections []section
			for _, tag := range []string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"} {
				p := f.sections[tag]
				if tag == "BEST" {
					p = best
				}
				sections = append(sections, section{tag: tag, payload: p})
			}
			return encode(get32(state[12:]), sections)
		}
		best := f.sections["BEST"]
		bad, at := altered(best, "UFAC", 1, math.Float64bits(-1))
		refused("a factor of the best model", with(bad), f.offsets["BEST"]+at)
		refused("no best model", with(nil), f.offsets["BEST"])
		y := x
		y.Cols = 7
		other, _, _, _, _, err := fitAny(ctx, model, y, 2, opts...)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := other.MarshalBinary()
		refused("the best model of another matrix", with(b), f.offsets["BEST"])
	}
}
