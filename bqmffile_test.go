package quantmf

// Tests of the files and states of BQMF: the same model comes back, and hostile bytes are
// refused.

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/quantmf/quantmf/internal/section"
)

// file returns the model as bytes: two models are equal where their files are.
func bqmfFile(t *testing.T, m *BQMF) []byte {
	t.Helper()
	b, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBQMFFileAndWorkers(t *testing.T) {
	_, given := bent(30, 24, 3, 0.2, 2)
	m := fitBQMF(t, given, 6, WithMissingValues(), WithWorkers(1))
	b := bqmfFile(t, m)
	if !bytes.Equal(b, bqmfFile(t, fitBQMF(t, given, 6, WithMissingValues(), WithWorkers(5)))) {
		t.Error("bits depend on the workers")
	}
	var back BQMF
	if err := back.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, bqmfFile(t, &back)) {
		t.Error("a file read and written is another one")
	}
	if a, b := m.Reconstruct(), back.Reconstruct(); fingerprint(a) != fingerprint(b) {
		t.Error("the model of a file predicts something else")
	}
	for at := 0; at < len(b); at += 1 + len(b)/997 {
		broken := bytes.Clone(b)
		broken[at] ^= 0x55
		var f *FormatError
		if err := new(BQMF).UnmarshalBinary(broken); !errors.As(err, &f) {
			t.Fatalf("byte %d broken: %v", at, err)
		}
	}
}

func TestBQMFResume(t *testing.T) {
	_, given := bent(20, 26, 2, 0.2, 3)
	for _, opts := range [][]FitOption{{WithMissingValues(), WithEpochs(15)}, {WithMissingValues(), WithEpochs(6), WithValidation(0.1)}} {
		var states [][]byte
		whole := fitBQMF(t, given, 5, append(opts, WithCheckpoint(1, func(s []byte) error { states = append(states, s); return nil }))...)
		want := bqmfFile(t, whole)
		for k, s := range states {
			if !bytes.Equal(want, bqmfFile(t, fitBQMF(t, given, 5, append(opts, WithResume(s))...))) {
				t.Fatalf("resumed at state %d of %d: other bits", k, len(states))
			}
		}
		if len(states) < 12 {
			t.Errorf("%d states", len(states))
		}
		var o *OptionError
		if _, err := FitBQMF(context.Background(), given, 4, append(opts, WithResume(states[2]))...); !errors.As(err, &o) {
			t.Errorf("another rank: %v", err)
		}
	}
}

// A file whose sums are right may hold anything: an error, or a model of which nothing
// is NaN.
func FuzzBQMFFile(f *testing.F) {
	x, given := bent(5, 6, 2, 0.1, 13)
	for i := range x.Data {
		if i%3 == 0 {
			given.Data[i] = math.Floor(given.Data[i])
		}
	}
	m, err := FitBQMF(context.Background(), given, 2, WithMissingValues())
	if err != nil {
		f.Fatal(err)
	}
	b, _ := m.MarshalBinary()
	f.Add(uint16(100), uint64(0x7ff0000000000000))
	f.Add(uint16(200), uint64(0xffefffffffffffff))
	f.Add(uint16(300), uint64(1))
	f.Fuzz(func(t *testing.T, at uint16, v uint64) {
		f, err := decodeSections(b, kindBQMF, required(kindBQMF))
		if err != nil {
			t.Fatal(err)
		}
		var sections []section.Section
		place := int(at)
		for _, tag := range required(kindBQMF) {
			p := bytes.Clone(f.Payload(tag))
			if n := len(p) / 8; place >= 0 && place < n {
				copy(p[8*place:], append64(nil, v))
			} else if place == n {
				p = p[:max(len(p)-8, 0)]
			}
			place -= len(p)/8 + 1
			sections = append(sections, section.Section{Tag: tag, Payload: p})
		}
		got := new(BQMF)
		if err := got.UnmarshalBinary(section.Encode(kindBQMF, sections)); err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) {
				t.Fatal(err)
			}
			return
		}
		for name, a := range map[string]Mat{"Reconstruct": got.Reconstruct(), "Median": got.Median(), "Deviation": got.Deviation()} {
			if err := a.checkFinite(name); err != nil {
				t.Fatal(err)
			}
		}
		score, err := got.Score(context.Background(), x)
		if err != nil {
			t.Fatal(err)
		}
		if score != score {
			t.Fatal("the score is not a number")
		}
	})
}
