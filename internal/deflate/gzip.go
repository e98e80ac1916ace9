package deflate

// This file holds the frames of gzip and zlib.

import (
	"errors"
	"hash/adler32"
	"hash/crc32"
	"io"
)

// ErrHeader and ErrChecksum are faults of gzip.
var (
	ErrHeader   = errors.New("gzip: invalid header")
	ErrChecksum = errors.New("gzip: invalid checksum")
)

// unzipper reads gzip: one stream behind another.
type unzipper struct {
	*Reader
	sum    uint32
	length uint32
}

// Gunzip returns a reader of what r has, packed as gzip; it reads ahead.
func Gunzip(r io.Reader) (io.Reader, error) {
	z := &unzipper{Reader: NewReader(r)}
	if err := z.header(); err != nil {
		return nil, err
	}
	return z, nil
}

// Bits of the flags in a header.
const (
	headerSum = 1 << (1 + iota)
	headerExtra
	headerName
	headerComment
)

// header reads what stands before a stream; io.EOF where there is nothing.
func (z *unzipper) header() error {
	var b [10]byte
	n, err := z.in.full(b[:])
	if err != nil {
		if n == 0 && err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		return err
	}
	if b[0] != 0x1f || b[1] != 0x8b || b[2] != 8 {
		return ErrHeader
	}
	sum := crc32.ChecksumIEEE(b[:])
	var c [1]byte
	next := func() error {
		_, err := z.in.full(c[:])
		sum = crc32.Update(sum, crc32.IEEETable, c[:])
		return err
	}
	flags := b[3]
	if flags&headerExtra != 0 {
		left := 0
		for i := range 2 {
			if err := next(); err != nil {
				return err
			}
			left |= int(c[0]) << (8 * i)
		}
		for range left {
			if err := next(); err != nil {
				return err
			}
		}
	}
	for _, text := range []byte{headerName, headerComment} {
		for c[0] = 1; flags&text != 0 && c[0] != 0; {
			if err := next(); err != nil {
				return err
			}
		}
	}
	if flags&headerSum != 0 {
		var b [2]byte
		if _, err := z.in.full(b[:]); err != nil {
			return err
		}
		if uint16(b[0])|uint16(b[1])<<8 != uint16(sum) {
			return ErrHeader
		}
	}
	z.sum, z.length = 0, 0
	return nil
}

func (z *unzipper) Read(p []byte) (int, error) {
	for {
		n, err := z.Reader.Read(p)
		z.sum = crc32.Update(z.sum, crc32.IEEETable, p[:n])
		z.length += uint32(n)
		if err != io.EOF {
			return n, err
		}
		if err := z.trailer(); err != nil {
			z.err = err
			return 0, err
		}
	}
}

// trailer checks what stands behind a stream, and begins the next.
func (z *unzipper) trailer() error {
	if z.state != atEnd { // an error that stays
		return z.err
	}
	var b [8]byte
	if _, err := z.in.full(b[:]); err != nil {
		return err
	}
	if little(b[:4]) != z.sum || little(b[4:]) != z.length {
		return ErrChecksum
	}
	if err := z.header(); err != nil {
		z.state = atBlock
		return err
	}
	z.again()
	return nil
}

func little(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func appendLittle(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

// zipper writes gzip.
type zipper struct {
	*Writer
	sum    uint32
	length uint32
}

// Gzip returns a writer that packs as gzip what is written to it, to w; Close ends it.
func Gzip(w io.Writer) io.WriteCloser {
	z := &zipper{Writer: NewWriter(w)}
	z.out = append(z.out, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255)
	return z
}

func (z *zipper) Write(p []byte) (int, error) {
	z.sum = crc32.Update(z.sum, crc32.IEEETable, p)
	z.length += uint32(len(p))
	return z.Writer.Write(p)
}

func (z *zipper) Close() error {
	if err := z.Writer.Close(); err != nil {
		return err
	}
	_, err := z.w.Write(appendLittle(appendLittle(nil, z.sum), z.length))
	return err
}

// Zlib returns p packed as zlib.
func Zlib(p []byte) []byte {
	var b buffer
	w := NewWriter(&b)
	w.out = append(w.out, 0x78, 0x9c)
	w.Write(p)
	w.Close()
	sum := adler32.Checksum(p)
	return append(b, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }
