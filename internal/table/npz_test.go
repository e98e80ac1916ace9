package table_test

// This file tests archives: that damage is found, and what their directories say is not believed.

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// packedAnew is an archive of the files of another, by a method.
func packedAnew(t testing.TB, in string, method uint16) []byte {
	t.Helper()
	from := Must(zip.NewReader(strings.NewReader(in), int64(len(in))))(t)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range from.File {
		r := Must(f.Open())(t)
		w := Must(z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: method}))(t)
		Must(io.Copy(w, r))(t)
	}
	OK(t, z.Close())
	return b.Bytes()
}

// TestSeveralArrays: of several matrices the one called x is read, else X, else data, and that is said; two
// of one name are refused.
func TestSeveralArrays(t *testing.T) {
	archive := func(names ...string) io.Reader {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i, name := range names {
			w, err := z.Create(name + ".npy")
			if err == nil {
				_, err = w.Write(append([]byte(npyHead("<u1", "1, 1")), byte(i)))
			}
			OK(t, err)
		}
		OK(t, z.Close())
		return &b
	}
	for _, c := range []struct {
		names []string
		want  float64
		taken string
	}{
		{[]string{"a"}, 0, `the array "a", no`},
		{[]string{"data", "X", "x"}, 2, `the array "x", one of 3 matrices, no`},
		{[]string{"a", "data", "X"}, 2, `the array "X", one of 3 matrices, no`},
		{[]string{"a", "data"}, 1, `the array "data", one of 2 matrices, no`},
	} {
		got, err := table.Read(archive(c.names...), "in", table.Options{})
		if err != nil {
			t.Fatal(c.names, err)
		}
		if got.X.At(0, 0) != c.want || !strings.HasPrefix(got.Taken, c.taken) {
			t.Errorf("%v: %v, %q", c.names, got.X, got.Taken)
		}
	}
	for _, names := range [][]string{{"x", "x"}, {"x", "features", "features"}} {
		if _, err := table.Read(archive(names...), "in", table.Options{}); err == nil ||
			!strings.Contains(err.Error(), "in: there are two arrays") {
			t.Errorf("%v: %v", names, err)
		}
	}
}

// directoryMagic begins an entry of a directory.
const directoryMagic = "PK\x01\x02"

// TestDamagedArchive: whatever bit is another before the directory of an archive, stored or deflated, what is
// read is refused or has the same numbers, and the same names or none.
func TestDamagedArchive(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	var named bytes.Buffer
	OK(t, table.Write(&named, "x.npz", "", []string{"g1", "g2"}, []string{"a", "b"},
		quantmf.NewMat(2, 2)))
	archives := map[string]string{"as written": named.String()}
	sparse, _ := filepath.Glob("testdata/sparse-*.npz")
	for _, name := range append(sparse, "testdata/one.npz") {
		archives[name] = file(t, filepath.Base(name))
	}
	for name, archive := range archives {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			b := packedAnew(t, archive, method)
			want, err := read(string(b), anything)
			if err != nil {
				t.Fatal(name, err)
			}
			step := 3
			if os.Getenv("QUANTMF_LONG") != "" {
				step = 1
			}
			for i := 0; i < bytes.Index(b, []byte(directoryMagic)); i += step {
				changed := bytes.Clone(b)
				changed[i] ^= 1 << (i % 8)
				got, err := read(string(changed), anything)
				if err != nil {
					continue
				}
				if numbers(got) != numbers(want) || got.NamedFeatures &&
					!slices.Equal(got.Features, want.Features) || got.NamedSamples &&
					!slices.Equal(got.Samples, want.Samples) {
					t.Errorf("%s, method %d: bit %d of byte %d: wrong without an error", name, method, i%8, i)
				}
			}
		}
	}
}

// gapped is a file with zeros between its start and its end.
type gapped struct {
	start, end []byte
	length     int64
}

func (g gapped) ReadAt(p []byte, at int64) (n int, err error) {
	clear(p)
	if at < int64(len(g.start)) {
		copy(p, g.start[at:])
	}
	if from := g.length - int64(len(g.end)); at+int64(len(p)) > from {
		skip := max(from-at, 0)
		n = int(skip) + copy(p[skip:], g.end[min(max(at-from, 0), int64(len(g.end))):])
		if n < len(p) {
			err = io.EOF
		}
		return n, err
	}
	return len(p), nil
}

// gap makes room before the directory of an archive, and has it say that there are so many files, in the form
// for large ones.
func gap(archive []byte, length int64, files uint64) io.Reader {
	at := bytes.Index(archive, []byte(directoryMagic))
	directory := archive[at : len(archive)-22]
	from := uint64(length) - uint64(len(directory)) - 56 - 20 - 22
	end, err := binary.Append(bytes.Clone(directory), binary.LittleEndian, struct {
		Magic                   [4]byte
		Follows                 uint64
		Versions                [2]uint16
		Disks                   [2]uint32
		Here, Files, Size, From uint64

		PlaceMagic [4]byte
		PlaceDisk  uint32
		Place      uint64
		AllDisks   uint32

		EndMagic  [4]byte
		EndDisks  uint32
		Elsewhere [12]byte
		Comment   uint16
	}{
		[4]byte{'P', 'K', 6, 6}, 44, [2]uint16{45, 45}, [2]uint32{}, files, files, uint64(len(directory)),
		from,
		[4]byte{'P', 'K', 6, 7}, 0, from + uint64(len(directory)), 1,
		[4]byte{'P', 'K', 5, 6}, 0, [12]byte(bytes.Repeat([]byte{0xff}, 12)), 0,
	})
	if err != nil {
		panic(err)
	}
	return io.NewSectionReader(gapped{archive[:at], end, length}, 0, length)
}

// TestDirectories: what reading a directory takes is bounded by the budget, whatever the archive says of its
// size; and what archive/zip cannot unpack is said.
func TestDirectories(t *testing.T) {
	one := packedAnew(t, file(t, "one.npz"), zip.Deflate)
	from := bytes.Index(one, []byte(directoryMagic))
	changed := func(at int, v ...byte) []byte {
		b := bytes.Clone(one)
		copy(b[at:], v)
		return b
	}
	o := anything
	const files = 20000
	var many bytes.Buffer
	z := zip.NewWriter(&many)
	for range files {
		z.CreateRaw(&zip.FileHeader{})
	}
	z.Close()
	// the end says that the directory begins at the last byte, counted from before the file
	hidden := many.Bytes()
	end := len(hidden) - 22
	binary.LittleEndian.PutUint32(hidden[end+16:], uint32(len(hidden)-1))
	const large = 3 << 30
	const tooMuch = "in: the directory of the archive would take more than the 1 MiB of memory that " +
		"reading may take: allow more with -max-memory, if the file is what it should be"
	const unpackable = `in: the array "values" is encrypted, or packed by another method than deflate: ` +
		`save it anew by numpy.savez or savez_compressed`
	for _, c := range []struct {
		name   string
		in     io.Reader
		memory int64
		want   string // the error
	}{
		{"a directory that is not where it says", bytes.NewReader(hidden), little, tooMuch},
		{"many files that are not there", gap(one, large, 1+large/40>>16<<16), little, tooMuch},
		{"a large file with one array", gap(one, large, 1), 1 << 30, ""},
		{"encrypted", bytes.NewReader(changed(from+8, one[from+8]|1)), little, unpackable},
		{"by LZMA", bytes.NewReader(changed(from+10, 14)), little, unpackable},
		{"an array behind the end", bytes.NewReader(changed(from+42, 0xff, 0xff)), little,
			"in: the archive is damaged or cut short (unexpected EOF): copy or download the file again"},
	} {
		o.Memory = c.memory
		said := ""
		reads(t, o, func() (*table.Table, error) {
			got, err := table.Read(c.in, "in", o)
			if err != nil {
				said = err.Error()
			}
			if errors.Is(err, table.ErrMemory) != (c.want == tooMuch) {
				t.Errorf("%s: %v", c.name, err)
			}
			return got, err
		})
		if said != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, said, c.want)
		}
	}
}
