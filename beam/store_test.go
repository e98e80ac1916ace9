package beam

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/memfs"
	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestStore checks what the documentation of shards.Store requires, on a file system that renames and on one
// with a scheme.
func TestStore(t *testing.T) {
	for _, folder := range []string{filepath.Join(t.TempDir(), "a [b]*"), "memfs://bucket/a"} {
		s := Must(OpenStore(t.Context(), folder))(t)
		if data, err := s.Get("a-1"); data != nil || err != nil {
			t.Errorf("%s: %q, %v where there is none", folder, data, err)
		}
		OK(t, s.Remove("a-1"))
		for _, want := range []string{"short", strings.Repeat("long", 1<<20), ""} {
			OK(t, s.Put("a-1", []byte(want)))
			if data, err := s.Get("a-1"); string(data) != want || data == nil || err != nil {
				t.Errorf("%s: %d bytes of %d, %v", folder, len(data), len(want), err)
			}
		}
		OK(t, s.Remove("a-1"))
		if data, err := s.Get("a-1"); data != nil || err != nil {
			t.Errorf("%s: %q, %v after it was removed", folder, data, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, folder := range []string{"", "nowhere://a", "gs://bucket/a*"} {
		if _, err := OpenStore(t.Context(), folder); err == nil {
			t.Errorf("%q is a store", folder)
		}
	}
}

// TestFailedPut checks that a blob that cannot be written leaves nothing.
func TestFailedPut(t *testing.T) {
	folder := t.TempDir()
	s := Must(OpenStore(t.Context(), folder))(t)
	OK(t, os.MkdirAll(filepath.Join(folder, "taken", "by"), 0o777))
	if err := s.Put("taken", []byte("data")); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("%v", err)
	}
	if _, err := s.Get("taken"); err == nil {
		t.Error("a folder was read")
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*.tmp")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestMatFile checks that a matrix is read with the same bits, and that damaged files are refused.
func TestMatFile(t *testing.T) {
	m := Must(quantmf.MatOf([]float64{1, math.NaN(), -0.5}, []float64{math.MaxFloat64, 0, 5e-324}))(t)
	data := marshalMat(m)
	back, err := unmarshalMat(data)
	if err != nil || !bytes.Equal(marshalMat(back), data) {
		t.Fatalf("%v", err)
	}
	for at := range data {
		for _, bad := range [][]byte{data[:at],
			append(append(bytes.Clone(data[:at]), data[at]^1), data[at+1:]...)} {
			if _, err := unmarshalMat(bad); err == nil {
				t.Errorf("damage at byte %d of %d, %d left, is not seen", at, len(data), len(bad))
			}
		}
	}
}
