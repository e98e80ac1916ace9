package deflate

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// samples are contents of many kinds.
func samples() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 150_000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	var table strings.Builder
	for i := range 700 {
		fmt.Fprintf(&table, "ENSG%06d", i*7919)
		for range 30 {
			fmt.Fprintf(&table, "\t%.4g", r.ExpFloat64())
		}
		table.WriteByte('\n')
	}
	few := make([]byte, 60_000) // symbols of very different frequencies: words of more than 15 bits without a bound
	for i := range few {
		few[i] = byte(min(r.ExpFloat64()*3, 255))
	}
	var steep []byte
	for s, n := 0, 1; s < 22; s, n = s+1, max(n*2, 1) {
		for range min(n, 1<<13) {
			steep = append(steep, byte(s))
		}
	}
	r.Shuffle(len(steep), func(i, j int) { steep[i], steep[j] = steep[j], steep[i] })
	far := append(bytes.Clone(noise[:window]), noise[:1000]...) // the largest distance
	return map[string][]byte{
		"nothing": nil, "a byte": {7}, "two": {7, 7}, "four": []byte("abab"), "zeros": make([]byte, 200_000), "noise": noise, "table": []byte(table.String()),
		"few": few, "steep": steep, "far": far, "too far": append(append(bytes.Clone(noise[:window]), 1), noise[:1000]...),
		"noise and zeros": append(append(bytes.Clone(noise[:70_000]), make([]byte, 100_000)...), noise[:70_000]...), "a window": noise[:window], "four windows": noise[:4*window],
		"stored and more": append(bytes.Clone(noise[:0xffff]), table.String()[:5000]...), "one copy": bytes.Repeat([]byte("x"), mostCopied+1),
		"distances": distances(noise),
	}
}

// distances has copies of every length at every power of two.
func distances(noise []byte) (b []byte) {
	b = append(b, noise[:2*window]...)
	for length := 3; length <= mostCopied; length += 17 {
		for d := 1; d <= window; d *= 2 {
			at := len(b)
			for range length {
				b = append(b, b[len(b)-d])
			}
			b = append(b, noise[at%len(noise)])
		}
	}
	return b
}

// packedHere packs in one piece, or in pieces of a size.
func packedHere(t testing.TB, content []byte, piece int) []byte {
	var b bytes.Buffer
	w := NewWriter(&b)
	for len(content) > 0 {
		n := min(piece, len(content))
		if got, err := w.Write(content[:n]); got != n || err != nil {
			t.Fatal(got, err)
		}
		content = content[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPacked: package flate reads what is packed here, which is not much longer than what it packs.
func TestPacked(t *testing.T) {
	for name, content := range samples() {
		b := packedHere(t, content, 1<<30)
		got, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %v; %d bytes became %d", name, err, len(content), len(got))
		}
		if !bytes.Equal(packedHere(t, content, 777), b) {
			t.Errorf("%s: it matters how much is written at once", name)
		}
		var std bytes.Buffer
		w, _ := flate.NewWriter(&std, flate.DefaultCompression)
		w.Write(content)
		w.Close()
		if len(b) > std.Len()+std.Len()/32 {
			t.Errorf("%s: %d bytes, flate makes %d", name, len(b), std.Len())
		}
		t.Logf("%s: %d bytes, flate %d", name, len(b), std.Len())
	}
}

// TestUnpacked: what package flate packs at any level is read here, however it comes and is asked for.
func TestUnpacked(t *testing.T) {
	for name, content := range samples() {
		for _, level := range []int{flate.NoCompression, flate.BestSpeed, flate.DefaultCompression, flate.BestCompression, flate.HuffmanOnly} {
			var b bytes.Buffer
			w, _ := flate.NewWriter(&b, level)
			w.Write(content[:len(content)/2])
			w.Flush() // an empty block
			w.Write(content[len(content)/2:])
			w.Close()
			packed := b.Bytes()
			for how, r := range map[string]io.Reader{"as it is": &b, "by bytes": iotest.OneByteReader(bytes.NewReader(packed)), "with the end": iotest.DataErrReader(bytes.NewReader(packed))} {
				got, err := io.ReadAll(NewReader(r))
				if err != nil || !bytes.Equal(got, content) {
					t.Fatalf("%s, level %d, %s: %v, %d bytes of %d", name, level, how, err, len(got), len(content))
				}
			}
			if len(content) < 1000 {
				if err := iotest.TestReader(NewReader(bytes.NewReader(packed)), content); err != nil {
					t.Fatalf("%s, level %d: %v", name, level, err)
				}
			}
			for cut := range min(len(packed), 40) {
				if _, err := io.ReadAll(NewReader(bytes.NewReader(packed[:cut]))); err != io.ErrUnexpectedEOF {
					t.Fatalf("%s, level %d, cut after %d bytes: %v", name, level, cut, err)
				}
			}
			for _, cut := range []int{len(packed) / 2, len(packed) - 1} {
				if _, err := io.ReadAll(NewReader(bytes.NewReader(packed[:cut]))); err != io.ErrUnexpectedEOF {
					t.Fatalf("%s, level %d, cut after %d bytes: %v", name, level, cut, err)
				}
			}
		}
	}
}

// TestFrames: packages gzip and zlib read the frames, and gzip's are read here, one behind another and with all parts of a
// header.
func TestFrames(t *testing.T) {
	content := samples()["table"]
	var b bytes.Buffer
	z := Gzip(&b)
	z.Write(content)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	std, err := gzip.NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(std); err != nil || !bytes.Equal(got, content) {
		t.Fatal(err)
	}
	w := gzip.NewWriter(&b)
	w.Header = gzip.Header{Comment: "why", Name: "x.tsv", Extra: []byte{1, 2, 3}}
	w.Write([]byte("more"))
	w.Close()
	b.Write(withSum(t, "and more"))
	got, err := unzipped(b.Bytes())
	if err != nil || string(got) != string(content)+"moreand more" {
		t.Fatalf("%v, %d bytes", err, len(got))
	}
	if got, err := io.ReadAll(must(zlib.NewReader(bytes.NewReader(Zlib(content))))); err != nil || !bytes.Equal(got, content) {
		t.Fatal(err)
	}

	whole := withSum(t, "x")
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":            {nil, io.EOF},
		"cut in its head":    {whole[:9], io.ErrUnexpectedEOF},
		"cut in its sum":     {whole[:11], io.ErrUnexpectedEOF},
		"another method":     {changed(whole, 2, 7), ErrHeader},
		"another sum":        {changed(whole, 10, whole[10]+1), ErrHeader},
		"cut at its end":     {whole[:len(whole)-1], io.ErrUnexpectedEOF},
		"another length":     {changed(whole, len(whole)-1, 1), ErrChecksum},
		"another content":    {changed(whole, len(whole)-6, whole[len(whole)-6]+1), ErrChecksum},
		"something behind":   {append(bytes.Clone(whole), "x, y, and z"...), ErrHeader},
		"a little behind it": {append(bytes.Clone(whole), 0x1f), io.ErrUnexpectedEOF},
	} {
		_, err := unzipped(c.b)
		if err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if r, stdErr := gzip.NewReader(bytes.NewReader(c.b)); stdErr == nil {
			if _, stdErr = io.ReadAll(r); stdErr.Error() != err.Error() {
				t.Errorf("%s: %v, gzip says %v", name, err, stdErr)
			}
		} else if stdErr.Error() != err.Error() {
			t.Errorf("%s: %v, gzip says %v", name, err, stdErr)
		}
	}
}

// withSum is gzip with the sum of its header.
func withSum(t *testing.T, content string) []byte {
	head := []byte{0x1f, 0x8b, 8, headerSum, 0, 0, 0, 0, 0, 255}
	var b bytes.Buffer
	z := Gzip(&b)
	io.WriteString(z, content)
	z.Close()
	sum := crc(head)
	return append(append(head, byte(sum), byte(sum>>8)), b.Bytes()[10:]...)
}

func crc(b []byte) uint32 { // bit by bit
	sum := ^uint32(0)
	for _, c := range b {
		sum ^= uint32(c)
		for range 8 {
			sum = sum>>1 ^ 0xedb88320&-(sum&1)
		}
	}
	return ^sum
}

func changed(b []byte, at int, to byte) []byte {
	b = bytes.Clone(b)
	b[at] = to
	return b
}

func must(r io.Reader, err error) io.Reader {
	if err != nil {
		panic(err)
	}
	return r
}

func unzipped(b []byte) ([]byte, error) {
	r, err := Gunzip(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// TestFailingWriter: the error of a writer comes back, at the end at the latest.
func TestFailingWriter(t *testing.T) {
	why := errors.New("full")
	for _, name := range []string{"a byte", "noise", "table"} {
		w := NewWriter(failing{why})
		_, err := w.Write(samples()[name])
		if err == nil {
			err = w.Close()
		}
		if err != why || w.Close() != why {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// FuzzUnpack: any bytes are read, or refused, as package flate does.
func FuzzUnpack(f *testing.F) {
	for _, content := range samples() {
		if len(content) > 3000 {
			content = content[:3000]
		}
		for _, level := range []int{0, 1, 6} {
			var b bytes.Buffer
			w, _ := flate.NewWriter(&b, level)
			w.Write(content)
			w.Close()
			f.Add(b.Bytes())
		}
	}
	f.Add([]byte("$0\x00\x00")) // a code of one word, and the other
	f.Add([]byte("\x1cVK\x12\xddZ\n\x1b\xf5K\xae\r\x92@h\xff[\xedr\xc6.\x1f(}\xf9\x83I"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const most = 1 << 20
		got, err := io.ReadAll(io.LimitReader(NewReader(bytes.NewReader(in)), most))
		want, stdErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(in)), most))
		if stdErr == io.ErrUnexpectedEOF && err != nil && bytes.HasPrefix(got, want) {
			return // flate wants as many bits as the word for the end has, before it decodes shorter ones
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, flate has %d; %v, %v", len(got), len(want), err, stdErr)
		}
		if (err == nil) != (stdErr == nil) || err != nil && err.Error() != stdErr.Error() {
			t.Fatalf("%v, flate says %v", err, stdErr)
		}
	})
}

// FuzzPack: what is packed is read again.
func FuzzPack(f *testing.F) {
	f.Add([]byte("x"), 3)
	f.Fuzz(func(t *testing.T, in []byte, times int) {
		in = bytes.Repeat(in, times&1023)
		got, err := io.ReadAll(flate.NewReader(bytes.NewReader(packedHere(t, in, 1000))))
		if err != nil || !bytes.Equal(got, in) {
			t.Fatal(err)
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	content := samples()["table"]
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, 6)
	w.Write(content)
	w.Close()
	for name, open := range map[string]func(io.Reader) io.Reader{"here": func(r io.Reader) io.Reader { return NewReader(r) }, "flate": func(r io.Reader) io.Reader { return flate.NewReader(r) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				io.Copy(io.Discard, open(bytes.NewReader(packed.Bytes())))
			}
		})
	}
}

func BenchmarkPack(b *testing.B) {
	content := samples()["table"]
	if file := os.Getenv("PACK"); file != "" {
		content, _ = os.ReadFile(file)
	}
	for name, open := range map[string]func(io.Writer) io.WriteCloser{"here": func(w io.Writer) io.WriteCloser { return NewWriter(w) }, "flate": func(w io.Writer) io.WriteCloser { z, _ := flate.NewWriter(w, 6); return z }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				w := open(io.Discard)
				w.Write(content)
				w.Close()
			}
		})
	}
}
