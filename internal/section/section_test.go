package section

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func kindName(k uint32) string { return "kind" }

// byHand is the file of the layout in the package comment, one field after another.
func byHand(kind uint32, sections []Section) []byte {
	le := binary.LittleEndian
	b := append([]byte("quantmf\n"), 1, 0, 0, 0)
	b = le.AppendUint32(b, kind)
	b = le.AppendUint32(b, uint32(len(sections)))
	b = le.AppendUint32(b, crc32.ChecksumIEEE(b))
	for _, s := range sections {
		payload := slices.Clone(s.Payload)
		for _, x := range slices.Concat(s.numbers...) {
			payload = le.AppendUint64(payload, math.Float64bits(x))
		}
		head := le.AppendUint64(le.AppendUint32([]byte(s.Tag), s.Flags), uint64(len(payload)))
		b = append(b, le.AppendUint32(head, crc32.ChecksumIEEE(head))...)
		b = append(b, payload...)
		b = le.AppendUint32(b, crc32.ChecksumIEEE(payload))
	}
	return b
}

// TestLayout: files are as the package comment says, and what is written is read.
func TestLayout(t *testing.T) {
	real := []Part{Finite([]float64{-1, 2}), Positive(nil), Within([]float64{5}, 4, 6),
		Any([]float64{math.NaN()})}
	sections := []Section{Floats("REAL", []float64{math.Pi}, nil, []float64{-0.5}), Words("WORD", 7, 1<<63),
		Texts("TEXT", "", "añ", "").AsOptional(),
		{Tag: "skip", Flags: Optional, Payload: []byte("of another program")}, Parts("PART", real),
		{Tag: "NONE"}}
	b := Encode(9, sections)
	if !bytes.Equal(b, byHand(9, sections)) {
		t.Fatal("the layout is another")
	}
	if more := Append(b, Texts("TAIL", "x")); !bytes.Equal(more,
		byHand(9, append(sections, Texts("TAIL", "x")))) {
		t.Error("a section appended is not one written")
	}
	f := Must(Decode(b, 9, kindName, []string{"REAL", "WORD", "NONE", "PART"}, []string{"TEXT", "ELSE"}))(t)
	if v, err := f.Floats("REAL", 2, -1, 4); err != nil || !slices.Equal(v, []float64{math.Pi, -0.5}) {
		t.Error(v, err)
	}
	if v, err := f.Words("WORD", 2); err != nil || !slices.Equal(v, []uint64{7, 1 << 63}) {
		t.Error(v, err)
	}
	if v, err := f.Texts("TEXT"); err != nil || !slices.Equal(v, []string{"", "añ", ""}) {
		t.Error(v, err)
	}
	into := []Part{Finite(make([]float64, 2)), Positive(nil), Within(make([]float64, 1), 4, 6),
		Any(make([]float64, 1))}
	if err := f.Fill("PART", into); err != nil || !slices.Equal(into[0].V, real[0].V) || into[2].V[0] != 5 ||
		into[3].V[0] == into[3].V[0] {
		t.Error(into, err)
	}
	if !slices.Equal(f.Tags(), []string{"REAL", "WORD", "TEXT", "PART", "NONE"}) || f.Has("skip") ||
		f.Has("ELSE") || !f.Has("NONE") {
		t.Error("kept", f.Tags())
	}
	// What has another length, or is out of range, is refused where it lies.
	at := f.Offset("REAL")
	if _, err := f.Floats("REAL", 2, 0, 4); err == nil || err.(*Error).Offset != at+8 {
		t.Error("below its range:", err)
	}
	if _, err := f.Floats("REAL", 3, -9, 9); err == nil || err.(*Error).Offset != at {
		t.Error("wrong length:", err)
	}
	if _, err := f.Floats("REAL", 0, -9, 9); err == nil {
		t.Error("two numbers were read as none")
	}
	if v, err := f.Floats("REAL", -1, -0.5, math.Pi); err != nil || len(v) != 2 {
		t.Error("the ends of a range:", err)
	}
	if _, err := f.Words("WORD", 1); err == nil {
		t.Error("two integers were read as one")
	}
	if _, err := f.Texts("WORD"); err == nil {
		t.Error("integers were read as texts")
	}
	into[2] = Within(into[2].V, 4, 4.5)
	if err := f.Fill("PART", into); err == nil || err.(*Error).Offset != f.Offset("PART")+16 {
		t.Error("a part out of its range:", err)
	}
	if err := f.Fill("PART", into[:3]); err == nil {
		t.Error("more numbers than parts")
	}
	if _, err := Decode(b, 9, kindName, []string{"REAL", "WORD", "NONE", "PART", "ELSE"},
		[]string{"TEXT"}); err == nil {
		t.Error("a section that must be there is not missed")
	}
	if _, err := Decode(b, 9, kindName, []string{"REAL", "WORD", "NONE"}, []string{"TEXT"}); err == nil {
		t.Error("a section that may not be skipped is")
	}
}

// TestDamage: no byte can change, be lost or be added without an error.
func TestDamage(t *testing.T) {
	b := Encode(3, []Section{Floats("REAL", []float64{1, 2}), Texts("TEXT", "abc").AsOptional()})
	read := func(b []byte) error {
		_, err := Decode(b, 3, kindName, []string{"REAL"}, nil)
		if _, typed := err.(*Error); err != nil && !typed {
			t.Fatalf("an error of type %T", err)
		}
		return err
	}
	OK(t, read(b))
	for i := range b {
		for bit := range 8 {
			c := bytes.Clone(b)
			c[i] ^= 1 << bit
			if read(c) == nil {
				t.Errorf("bit %d of byte %d changed", bit, i)
			}
		}
		if read(b[:i:i]) == nil {
			t.Errorf("cut to %d bytes", i)
		}
	}
	if read(append(bytes.Clone(b), 0)) == nil {
		t.Error("a byte more")
	}
	if read(Encode(3, []Section{Floats("REAL", nil), Floats("REAL", nil)})) == nil {
		t.Error("a section twice")
	}
	if k, err := Kind(b); k != 3 || err != nil {
		t.Error(k, err)
	}
	if k, err := Kind(make([]byte, 24)); k != 0 || err != nil {
		t.Error("another layout:", k, err)
	}
	if _, err := Kind(b[:23]); err == nil {
		t.Error("the kind of a header that is cut")
	}
}

// TestForged: with right checksums, a header of other lengths and counts than those of the sections is an
// error, and so are lengths of texts beyond their section.
func TestForged(t *testing.T) {
	le := binary.LittleEndian
	b := Encode(3, []Section{Floats("REAL", []float64{1, 2})})
	forged := func(count uint32, length uint64) error {
		c := bytes.Clone(b)
		le.PutUint32(c[16:], count)
		le.PutUint32(c[20:], crc32.ChecksumIEEE(c[:20]))
		head := c[headerSize:]
		le.PutUint64(head[8:], length)
		le.PutUint32(head[16:], crc32.ChecksumIEEE(head[:16]))
		_, err := Decode(c[:len(c):len(c)], 3, kindName, []string{"REAL"}, nil)
		return err
	}
	OK(t, forged(1, 16))
	for _, length := range []uint64{0, 15, 17, 20, 21, 1 << 31, 1 << 62, 1 << 63, math.MaxUint64 - 40,
		math.MaxUint64 - 3, math.MaxUint64} {
		if forged(1, length) == nil {
			t.Errorf("a section of %d bytes", length)
		}
	}
	for _, count := range []uint32{0, 2, math.MaxUint32} {
		if forged(count, 16) == nil {
			t.Errorf("%d sections", count)
		}
	}
	for _, payload := range [][]byte{make([]byte, 7), {1, 0, 0, 0, 0, 0, 0, 0}, le.AppendUint64(nil, 1<<63),
		append(make([]byte, 8), 1)} {
		f := Must(Decode(Encode(3, []Section{{Tag: "TEXT", Payload: payload}}), 3, kindName, []string{"TEXT"},
			nil))(t)
		if v, err := f.Texts("TEXT"); err == nil {
			t.Errorf("%v is read as %q", payload, v)
		}
	}
}

// TestBase64: the vectors of RFC 4648, and where a text is none.
func TestBase64(t *testing.T) {
	for data, want := range map[string]string{"": "", "f": "Zg==", "fo": "Zm8=", "foo": "Zm9v",
		"foob": "Zm9vYg==", "\x00\x00\xff\xfe": "AAD//g=="} {
		Equal(t, string(Base64(nil, []byte(data))), want, "%q", data)
		if got, at := FromBase64([]byte(want)); string(got) != data || at >= 0 {
			t.Errorf("%s is %q, %d", want, got, at)
		}
	}
	for text, want := range map[string]int{"Zm9": 3, "Zm9vZm9": 7, "Zm-v": 2, "Zh==": 1, "Zm9=": 2,
		"Zg==Zg==": 2, "====": 0, "Z===": 1} {
		_, at := FromBase64([]byte(text))
		Equal(t, at, want, "%s: at", text)
	}
}

// TestKinds: what kinds of files there are, and what sections they must and may have.
func TestKinds(t *testing.T) {
	for kind, c := range map[uint32]struct {
		reads     uint32
		must, may int
	}{0: {QMF, 10, 0}, NMF: {NMF, 5, 1}, QMF: {QMF, 10, 0}, QMFQ: {QMFQ, 15, 0}, BQMF: {BQMF, 13, 4},
		BQMF + 1: {QMF, 10, 0}, State: {QMF, 10, 0}, State + NMF: {0, 10, 0}, State + BQMF: {0, 10, 0},
		State + BQMF + 1: {QMF, 10, 0}} {
		reads, err := ModelKind(Encode(kind, nil))
		if reads != c.reads || (err != nil) != (reads == 0) || len(RequiredTags(kind)) != c.must ||
			len(OptionalTags(kind)) != c.may || (LeastHistory(kind) < 0) != (kind == BQMF) ||
			Mapped(kind) != (kind == QMF || kind == QMFQ) {
			t.Errorf("kind %d: read as %d, %v, with %d and %d sections", kind, reads, err,
				len(RequiredTags(kind)), len(OptionalTags(kind)))
		}
	}
}
