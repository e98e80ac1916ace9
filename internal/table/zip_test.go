package table

// This file tests archives against package archive/zip.

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// content reads all files of an archive.
func content(r io.ReaderAt, length int64) (map[string]string, error) {
	files, err := readZip(r, length, func(int64) error { return nil })
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for i := range files {
		in, err := files[i].open(r)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		all[files[i].name] = string(b)
	}
	return all, nil
}

// archived is what package archive/zip writes.
func archived(t *testing.T, method uint16, comment string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"a.npy", "b.npy", "empty"} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method, Comment: "why", Extra: []byte{9, 9, 2, 0, 1, 1}})
		if err != nil {
			t.Fatal(err)
		}
		if name != "empty" {
			io.WriteString(w, strings.Repeat(name, 1000))
		}
	}
	z.SetComment(comment)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReadZip: archives that archive/zip writes, stored and deflated, with a remark, and behind something else.
func TestReadZip(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		for _, comment := range []string{"", "a remark", "PK\x05\x06 is no end", strings.Repeat("long", 16000)} {
			b := archived(t, method, comment)
			for _, before := range []string{"", "#!/bin/sh\n"} {
				b := append([]byte(before), b...)
				got, err := content(bytes.NewReader(b), int64(len(b)))
				if err != nil || len(got) != 3 || got["b.npy"] != strings.Repeat("b.npy", 1000) || got["empty"] != "" {
					t.Fatalf("method %d, remark %.9q, behind %q: %v, %d files", method, comment, before, err, len(got))
				}
			}
		}
	}
}

// TestDamagedZip: whatever byte of an archive is another, what is read is refused or right.
func TestDamagedZip(t *testing.T) {
	b := archived(t, zip.Deflate, "")
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 1 << (i % 8)
		got, err := content(bytes.NewReader(changed), int64(len(b)))
		if err == nil && (got["a.npy"] != "" && got["a.npy"] != strings.Repeat("a.npy", 1000)) {
			t.Errorf("byte %d: wrong without an error", i)
		}
		if _, err := content(bytes.NewReader(b[:i]), int64(i)); err == nil {
			t.Errorf("cut after %d bytes: no error", i)
		}
	}
	locked := bytes.Clone(b)
	locked[bytes.Index(b, []byte(zipEntry))+8] |= 1
	if _, err := content(bytes.NewReader(locked), int64(len(b))); !errors.Is(err, errZipMethod) {
		t.Errorf("locked: %v", err)
	}
}

// after is bytes behind a gap of zeros.
type after struct {
	gap int64
	b   []byte
}

func (a after) ReadAt(p []byte, at int64) (n int, err error) {
	for ; n < len(p) && at < a.gap; at, n = at+1, n+1 {
		p[n] = 0
	}
	if n < len(p) {
		var more int
		more, err = bytes.NewReader(a.b).ReadAt(p[n:], at-a.gap)
		n += more
	}
	return n, err
}

// TestWriteZip: archive/zip and the reader read what is written, also beyond 4 GiB.
func TestWriteZip(t *testing.T) {
	for _, gap := range []int64{0, 1 << 33} {
		var b bytes.Buffer
		z := &zipWriter{to: &b, at: uint64(gap)}
		for _, name := range []string{"x.npy", "empty"} {
			if err := z.write(name, func(w io.Writer) error {
				_, err := io.WriteString(w, strings.Repeat(name, 5000*(len(name)%2)))
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.close(); err != nil {
			t.Fatal(err)
		}
		of, length := after{gap, b.Bytes()}, gap+int64(b.Len())
		std, err := zip.NewReader(of, length)
		if err != nil || len(std.File) != 2 {
			t.Fatal(err)
		}
		want := strings.Repeat("x.npy", 5000)
		r, err := std.File[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != want {
			t.Errorf("behind %d: archive/zip: %v", gap, err)
		}
		if got, err := content(of, length); err != nil || got["x.npy"] != want || len(got) != 2 {
			t.Errorf("behind %d: %v", gap, err)
		}
	}
}
