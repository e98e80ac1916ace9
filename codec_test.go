package quantmf

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"testing"
)

// TestFiles: what is written is read, and what a loaded model returns has the
// bits of what was saved.
func TestFiles(t *testing.T) {
	ctx := context.Background()
	x := holed(toy(5), 0.05)
	q, err := FitQMF(ctx, x, 3, WithEpochs(5), WithLevels(6), WithMissingValues(), WithValidation(0.1), WithLoss(Beta(1.5)), WithSquash(SquashArctan), WithMaxIterations(2))
	if err != nil {
		t.Fatal(err)
	}
	if len(q.Warnings) == 0 {
		t.Fatal("two passes sufficed everywhere")
	}
	var file bytes.Buffer
	if n, err := q.WriteTo(&file); err != nil || n != int64(file.Len()) {
		t.Fatal(n, err)
	}
	data := bytes.Clone(file.Bytes())
	var p QMF
	if n, err := p.ReadFrom(&file); err != nil || n != int64(len(data)) {
		t.Fatal(n, err)
	}
	for _, v := range [][2][]float64{{q.U.Data, p.U.Data}, {q.V.Data, p.V.Data}, {q.Quantiles.Data, p.Quantiles.Data}, {q.Weights.Data, p.Weights.Data},
		{q.History, p.History}, {q.Validation, p.Validation}, {q.Reconstruct().Data, p.Reconstruct().Data}, {q.Bend(), p.Bend()}, {q.MarginalErrors(), p.MarginalErrors()}} {
		closeTo(t, "loaded", v[1], v[0], 0)
	}
	a, _ := q.Loss(x)
	b, err := p.Loss(x)
	if err != nil || a != b || p.Best != q.Best || len(p.Warnings) != len(q.Warnings) || p.Warnings[0].Error() != q.Warnings[0].Error() {
		t.Errorf("loss %v, %v, %v; best %d, %d; %d, %d warnings", a, b, err, q.Best, p.Best, len(q.Warnings), len(p.Warnings))
	}
	again, _ := p.MarshalBinary()
	if !bytes.Equal(again, data) {
		t.Error("a loaded model is not saved as it was")
	}
	n, err := FitNMF(ctx, x, 2, WithEpochs(3), WithMissingValues())
	if err != nil {
		t.Fatal(err)
	}
	nd, _ := n.MarshalBinary()
	var m NMF
	if err := m.UnmarshalBinary(nd); err != nil {
		t.Fatal(err)
	}
	closeTo(t, "V", m.V.Data, n.V.Data, 0)
	var bad *FormatError
	if err := m.UnmarshalBinary(data); !errors.As(err, &bad) || bad.Offset != 12 {
		t.Errorf("a QMF read as an NMF: %v", err)
	}
	if err := p.UnmarshalBinary(nil); !errors.As(err, &bad) {
		t.Errorf("nothing: %v", err)
	}
	if _, err := m.ReadFrom(io.LimitReader(bytes.NewReader(nd), 100)); !errors.As(err, &bad) {
		t.Errorf("a hundred bytes: %v", err)
	}
}

func TestQMFQFile(t *testing.T) {
	x := toy(5)
	x.Rows, x.Cols = 12, 20
	for _, projection := range []Projection{KLUpdates(3), TruncatedSVD()} {
		q, err := FitQMFQ(context.Background(), x, 2, WithEpochs(2), WithLevels(4), WithProjection(projection))
		if err != nil {
			t.Fatal(err)
		}
		data, _ := q.MarshalBinary()
		var p QMFQ
		if err := p.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		a, _ := q.Normalize(x)
		b, _ := p.Normalize(x)
		closeTo(t, "T'(X)", b.Data, a.Data, 0)
		closeTo(t, "T(UV)", p.Reconstruct().Data, q.Reconstruct().Data, 0)
		closeTo(t, "History", p.History, q.History, 0)
		if again, _ := p.MarshalBinary(); !bytes.Equal(again, data) {
			t.Error("a loaded model is not saved as it was")
		}
		var bad *FormatError
		for i := 0; i < len(data); i += 1 + i/100 {
			c := bytes.Clone(data)
			c[i] ^= 16
			if err := p.UnmarshalBinary(c); !errors.As(err, &bad) {
				t.Fatalf("byte %d changed: %v", i, err)
			}
		}
	}
}

// TestDamage: every flipped bit and every cut is a FormatError; nothing panics,
// and no length that a file claims is taken for memory.
func TestDamage(t *testing.T) {
	x := toy(5)
	x.Rows, x.Cols = 3, 8
	q, err := FitQMF(context.Background(), x, 2, WithEpochs(2), WithLevels(3))
	if err != nil {
		t.Fatal(err)
	}
	data, _ := q.MarshalBinary()
	check := func(what string, at int, b []byte) {
		t.Helper()
		var p QMF
		var bad *FormatError
		if err := p.UnmarshalBinary(b); !errors.As(err, &bad) {
			t.Fatalf("%s at %d: %v", what, at, err)
		}
		if p.U.Rows != 0 {
			t.Fatalf("%s at %d: a model came of it", what, at)
		}
	}
	for i := range data {
		check("cut", i, data[:i])
		for bit := range 8 {
			b := bytes.Clone(data)
			b[i] ^= 1 << bit
			check("flipped bit", i, b)
		}
	}
	check("more", len(data), append(bytes.Clone(data), 0))
	// With sums mended, sizes and values are still checked.
	mend := func(change func(tag string, payload []byte)) []byte {
		b := bytes.Clone(data)
		at := headerSize
		for at < len(b) {
			n := int(binary.LittleEndian.Uint64(b[at+8:]))
			p := b[at+sectionSize : at+sectionSize+n]
			change(string(b[at:at+4]), p)
			binary.LittleEndian.PutUint32(b[at+sectionSize+n:], crc32.ChecksumIEEE(p))
			at += sectionSize + n + 4
		}
		return b
	}
	for field := range 5 {
		for _, v := range []uint64{0, 1 << 20, 1 << 31, 1 << 62, math.MaxUint64} {
			if field == 4 && v == 0 {
				continue
			}
			check("size", field, mend(func(tag string, p []byte) {
				if tag == "DIMS" {
					binary.LittleEndian.PutUint64(p[8*field:], v)
				}
			}))
		}
	}
	for _, tag := range []string{"UFAC", "VFAC", "HIST", "QUAN", "WGHT", "POTN", "ROWS"} {
		check("NaN in "+tag, 0, mend(func(s string, p []byte) {
			if s == tag {
				binary.LittleEndian.PutUint64(p, math.Float64bits(math.NaN()))
			}
		}))
	}
	check("negative factor", 0, mend(func(s string, p []byte) {
		if s == "UFAC" {
			binary.LittleEndian.PutUint64(p, math.Float64bits(-1))
		}
	}))
	// A section of a later version is skipped where it is optional, refused where not.
	for _, flags := range []uint32{optional, 0} {
		q2, _ := q.MarshalBinary()
		extra := encode(kindQMF, []section{{"NEXT", flags, []byte("something")}})[headerSize:]
		q2 = append(q2, extra...)
		binary.LittleEndian.PutUint32(q2[16:], binary.LittleEndian.Uint32(q2[16:])+1)
		binary.LittleEndian.PutUint32(q2[20:], crc32.ChecksumIEEE(q2[:20]))
		var p QMF
		if err := p.UnmarshalBinary(q2); (err == nil) != (flags == optional) {
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
	data := encode(kindNMF, []section{words("DIMS", d, d, k, 0, 0, 0, math.Float64bits(float64(KL)), 0),
		floats("UFAC", eight), floats("VFAC", eight), floats("HIST", eight[:1]), floats("VALI", nil)})
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
	data = encode(kindQMF, []section{words("DIMS", 1, n, 1, n, 0, 0, math.Float64bits(float64(KL)), math.Float64bits(0.02)), floats("UFAC", ones[:1]), floats("VFAC", ones), floats("HIST", ones[:1]), floats("VALI", nil),
		floats("QUAN", ones), floats("WGHT", ones), floats("POTN", ones), floats("ROWS", make([]float64, 6)), words("TOOK", 0, 0)})
	if m, err := UnmarshalModel(data); !errors.As(err, &bad) {
		t.Errorf("%T, %v", m, err)
	}
}

// TestSections: a section of the caller's is found again, readers of models skip
// it, and a model of any kind is read as what it is.
func TestSections(t *testing.T) {
	x := toy(5)
	x.Rows, x.Cols = 6, 9
	for name, m := range threeModels(t, x, 2) {
		plain, _ := m.MarshalBinary()
		if p, has, err := Section(plain, "name"); p != nil || has || err != nil {
			t.Errorf("%s: %v, %v, %v", name, p, has, err)
		}
		data, err := AppendSection(plain, "name", []byte("abc"))
		if err == nil {
			data, err = AppendSection(data, "made", nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if p, has, err := Section(data, "name"); string(p) != "abc" || !has || err != nil {
			t.Errorf("%s: %q, %v, %v", name, p, has, err)
		}
		if p, has, err := Section(data, "made"); len(p) != 0 || !has || err != nil {
			t.Errorf("%s: %q, %v, %v", name, p, has, err)
		}
		again, err := UnmarshalModel(data)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := again.MarshalBinary(); !bytes.Equal(b, plain) {
			t.Errorf("%s: another model was read", name)
		}
		var option *OptionError
		var bad *FormatError
		for _, tag := range []string{"name", "WARN", "abc", "abcde", "a1bc"} {
			if _, err := AppendSection(data, tag, nil); !errors.As(err, &option) {
				t.Errorf("%s: tag %q: %v", name, tag, err)
			}
		}
		for i := range data {
			cut, flipped := data[:i], bytes.Clone(data)
			flipped[i] ^= 4
			for _, b := range [][]byte{cut, flipped} {
				if m, err := UnmarshalModel(b); !errors.As(err, &bad) || m != nil {
					t.Fatalf("%s: cut or flipped at %d: %v, %v", name, i, m, err)
				}
				if p, has, err := Section(b, "name"); !errors.As(err, &bad) || has || p != nil {
					t.Fatalf("%s: cut or flipped at %d: %v", name, i, err)
				}
			}
		}
	}
	var state []byte
	if _, err := FitNMF(context.Background(), x, 1, WithEpochs(1), WithCheckpoint(1, func(b []byte) error { state = b; return nil })); err != nil {
		t.Fatal(err)
	}
	if _, err := UnmarshalModel(state); err == nil || err.Error() != "quantmf: model file, byte 12: this is a checkpoint of a fit, not a model" {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	x := toy(5)
	x.Rows, x.Cols = 2, 5
	q, err := FitQMF(context.Background(), x, 1, WithEpochs(1), WithLevels(2))
	if err != nil {
		f.Fatal(err)
	}
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
