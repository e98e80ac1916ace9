package table

// This file holds the source of all readers: the decompressed content of a file, in a buffer that grows under
// a bound. It also holds the account of the memory that reading takes, which readers ask before they take
// any.

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
)

// ErrMemory is what an [*Error] wraps where the file asks for more memory than
// Options.Memory allows.
var ErrMemory = errors.New("more memory than reading may take")

// budget is the memory that a reading may still take.
type budget struct{ all, left int64 }

// source is the content of a file.
type source struct {
	Options
	*budget
	file    string
	packed  string    // the compression, "" for none
	r       io.Reader // the content
	err     error     // of r, once there was one
	line    int       // the number of the line that nextLine returned last
	turned  bool      // Transpose was seen to while the numbers were read
	inSheet bool      // the content is a sheet of a workbook

	buf      []byte // buf[from:to] is what was read ahead
	from, to int
	passed   int64 // bytes of content before buf[from]

	seekable io.ReadSeeker // the file, where it can be read twice; else nil
	begin    int64         // where the content begins in it
	place    io.ReaderAt   // the file from its start, where it can be read at a place; else nil
}

// buffered is the size of a buffer to begin with.
const buffered = 1 << 16

func newSource(r io.Reader, file string, o Options) (*source, error) {
	if o.Memory <= 0 {
		o.Memory = 8 << 30
	}
	o.na = nil
	for _, word := range o.NA {
		if v, err := parse(word); err == nil {
			o.na = append(o.na, v)
		}
	}
	s := &source{Options: o, budget: &budget{o.Memory, o.Memory}, file: file}
	if err := s.take(2*buffered, "a buffer"); err != nil {
		return nil, err
	}
	if file, ok := r.(io.ReadSeeker); ok {
		if start, err := file.Seek(0, io.SeekCurrent); err == nil {
			s.seekable, s.begin = file, start
			if at, is := r.(io.ReaderAt); is && start == 0 {
				s.place = at
			}
		}
	}
	var err error
	if s.r, s.packed, err = unpack(r); err != nil {
		return nil, s.failed(err)
	}
	s.buf = make([]byte, buffered)
	if start, err := s.peek(3); err == nil && bytes.Equal(start, []byte("\ufeff")) {
		s.skip(3)
	}
	return s, nil
}

// beside is a source of other content of the file, on the same account, which has taken the buffer.
func (s *source) beside(r io.Reader) *source {
	return &source{Options: s.Options, budget: s.budget, file: s.file, r: r, buf: make([]byte, buffered)}
}

// unpack opens compressed data, by the method packed, "" for none.
func unpack(r io.Reader) (content io.Reader, packed string, err error) {
	in := bufio.NewReaderSize(r, buffered)
	magic, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, "gzip", &packedError{"gzip", err}
		}
		return &packedReader{z, "gzip"}, "gzip", nil
	case bytes.HasPrefix(magic, []byte("BZh")) && len(magic) == 4 && '1' <= magic[3] && magic[3] <= '9':
		return &packedReader{bzip2.NewReader(in), "bzip2"}, "bzip2", nil
	}
	return in, "", nil
}

// packedReader marks errors of decompression as such.
type packedReader struct {
	io.Reader
	name string
}

func (p *packedReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = &packedError{p.name, err}
	}
	return n, err
}

type packedError struct {
	name string
	err  error
}

func (e *packedError) Error() string { return e.err.Error() }

// again calls do with the content from its start, of a file that can be read twice, and leaves the source as
// it was.
func (s *source) again(do func(io.Reader) error) error {
	here, err := s.seekable.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = s.seekable.Seek(s.begin, io.SeekStart)
	}
	if err != nil {
		return err
	}
	content, _, err := unpack(s.seekable)
	if err == nil {
		err = do(content)
	}
	if _, back := s.seekable.Seek(here, io.SeekStart); back != nil {
		return back
	}
	return err
}

// take asks for bytes before they are allocated. what names their use in the error.
func (s *source) take(bytes int64, what string) error {
	if bytes > s.left {
		e := s.fault(0, "%s would take more than the %s of memory that reading may take: allow more with "+
			"-max-memory, if the file is what it should be", what, Size(float64(s.all)))
		e.Err = ErrMemory
		return e
	}
	s.left -= bytes
	return nil
}

// give returns bytes to the account.
func (s *source) give(bytes int64) { s.left += bytes }

// Size writes a number of bytes with three digits, below a kibibyte as it is.
func Size(bytes float64) string {
	if bytes < 1<<10 {
		return fmt.Sprintf("%.0f B", bytes)
	}
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	for bytes /= 1 << 10; bytes >= 999.5 && len(units) > 1; bytes /= 1 << 10 {
		units = units[1:]
	}
	return fmt.Sprintf("%.3g %s", bytes, units[0])
}

// takeMatrix asks for the memory of a matrix of numbers.
func (s *source) takeMatrix(rows, cols uint64) error {
	bytes := uint64(math.MaxInt64)
	if cols == 0 || rows <= math.MaxInt64/8/cols {
		bytes = 8 * rows * cols
	}
	return s.take(int64(bytes), fmt.Sprintf("%d × %d numbers", rows, cols))
}

// mayTakeMatrix tells whether the memory of a matrix may be taken, later.
func (s *source) mayTakeMatrix(rows, cols uint64) error {
	err := s.takeMatrix(rows, cols)
	if err == nil {
		s.give(8 * int64(rows*cols))
	}
	return err
}

// failed makes an *Error of an error of reading.
func (s *source) failed(err error) error {
	var bad *packedError
	var known *Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &bad):
		e := s.fault(0, "the %s data are damaged or cut short (%v): copy or download the file again",
			bad.name,
			bad.err)
		if e.Line > 0 {
			e.Line++
		}
		return e
	}
	return fmt.Errorf("%s: %w", s.file, err)
}

// more reads at least one more byte into the buffer, whose content may move.
func (s *source) more() error {
	if s.err != nil {
		return s.err
	}
	switch {
	case s.from > 0 && (s.from == s.to || s.to == len(s.buf)):
		copy(s.buf, s.buf[s.from:s.to])
		s.from, s.to = 0, s.to-s.from
	case s.to == len(s.buf):
		if err := s.take(2*int64(len(s.buf)), "a line this long"); err != nil {
			return err
		}
		grown := make([]byte, 2*len(s.buf))
		copy(grown, s.buf[:s.to])
		s.give(int64(len(s.buf)))
		s.buf = grown
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.to:])
		s.to += n
		s.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.err = io.ErrNoProgress
	return s.err
}

// peek returns the next n bytes without reading them, or fewer and an error.
func (s *source) peek(n int) ([]byte, error) {
	for s.to-s.from < n {
		if err := s.more(); err != nil {
			return s.buf[s.from:s.to], err
		}
	}
	return s.buf[s.from : s.from+n], nil
}

func (s *source) skip(n int) { s.from += n; s.passed += int64(n) }

// Read reads from the buffer first, then from the content.
func (s *source) Read(b []byte) (int, error) {
	if s.from < s.to {
		n := copy(b, s.buf[s.from:s.to])
		s.skip(n)
		return n, nil
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(b)
	s.passed += int64(n)
	s.err = err
	return n, err
}

// nextLine returns the next line without its end, or io.EOF behind the last line. The line is valid until the
// next call.
func (s *source) nextLine() ([]byte, error) {
	seen := 0
	for {
		if at := bytes.IndexByte(s.buf[s.from+seen:s.to], '\n'); at >= 0 {
			line := s.buf[s.from : s.from+seen+at]
			s.skip(len(line) + 1)
			s.line++
			return bytes.TrimRight(line, "\r"), nil
		}
		seen = s.to - s.from
		switch err := s.more(); {
		case err == io.EOF && seen == 0:
			return nil, err
		case err == io.EOF:
			line := s.buf[s.from:s.to]
			s.skip(len(line))
			s.line++
			return bytes.TrimRight(line, "\r"), nil
		case err != nil:
			return nil, s.failed(err)
		}
	}
}

// open tells whether the line that was read last is the last of the content and has no end.
func (s *source) open() bool {
	return s.err == io.EOF && s.from == s.to && s.from > 0 && s.buf[s.from-1] != '\n'
}

// nextFull returns the next line that is not blank.
func (s *source) nextFull() ([]byte, error) {
	for {
		text, err := s.nextLine()
		if err != nil || len(bytes.TrimSpace(text)) > 0 {
			return text, err
		}
	}
}

// wrong returns an error of the file as a whole.
func (s *source) wrong(format string, args ...any) *Error {
	return &Error{File: s.file, Problem: fmt.Sprintf(format, args...)}
}

// fault returns an error at the line that was read last.
func (s *source) fault(column int, format string, args ...any) *Error {
	return &Error{File: s.file, Line: s.line, Column: column, Problem: fmt.Sprintf(format, args...)}
}

// naming names the row and the column of an error: its feature and its sample, unless samples are in rows.
func (s *source) naming(e *Error, row, column string) *Error {
	e.Feature, e.Sample = row, column
	if s.Transpose {
		e.Feature, e.Sample = column, row
	}
	return e
}

// extent counts the lines, up to most, and the bytes of the content. known is false for a file that cannot be
// read twice.
func (s *source) extent(most int64) (lines, bytesInAll int64, known bool) {
	if s.seekable == nil {
		return 0, 0, false
	}
	err := s.again(func(r io.Reader) error {
		b := make([]byte, buffered)
		last := byte('\n')
		for lines <= most {
			n, err := r.Read(b)
			bytesInAll += int64(n)
			lines += int64(bytes.Count(b[:n], []byte("\n")))
			if n > 0 {
				last = b[n-1]
			}
			if err != nil && last != '\n' {
				lines++
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return lines, bytesInAll, err == nil
}

// list is a growing list of numbers or entries, in pieces that are moved only once, at the end.
type list[T any] struct {
	s      *source
	bytes  int64  // of an element
	what   string // are the elements
	pieces [][]T
	count  int
	room   int // of all pieces
}

func (s *source) numbers() list[float64] { return list[float64]{s: s, bytes: 8, what: "numbers"} }

// piece is the largest number of elements that are allocated at a time while their count is unknown. A long
// list grows by its part 1/morePieces, which is the most of it that may be empty.
const (
	piece      = 1 << 16
	morePieces = 64
)

// reserve takes the memory for count more elements at once.
func (l *list[T]) reserve(count int) error {
	if err := l.s.take(l.bytes*int64(count), l.of(l.count+count)); err != nil {
		return err
	}
	l.pieces = append(l.pieces, make([]T, 0, count))
	l.room += count
	return nil
}

func (l *list[T]) of(count int) string { return fmt.Sprintf("%d %s", count, l.what) }

// next returns room for count elements, which lie together.
func (l *list[T]) next(count int) ([]T, error) {
	last := len(l.pieces) - 1
	if last < 0 || cap(l.pieces[last])-len(l.pieces[last]) < count {
		if err := l.reserve(max(min(max(l.count, 256), piece), l.count/morePieces, count)); err != nil {
			return nil, err
		}
		last++
	}
	p := l.pieces[last]
	p = p[:len(p)+count]
	l.pieces[last] = p
	l.count += count
	return p[len(p)-count:], nil
}

// shorten takes back the last elements, at most those of the last next.
func (l *list[T]) shorten(count int) {
	last := len(l.pieces) - 1
	l.pieces[last] = l.pieces[last][:len(l.pieces[last])-count]
	l.count -= count
}

// handOver is the part of a large list that is in memory twice while it becomes one piece: 1/16.
const handOver = 16

// all returns the numbers in one slice. The pages of a large slice take no memory before they are written,
// and pieces go back to the system as they are copied. So memory holds little more than the numbers at any
// time.
func (l *list[T]) all() ([]T, error) {
	if len(l.pieces) == 1 {
		return l.pieces[0], nil
	}
	more := l.count
	if l.count >= 1<<20 {
		more /= handOver
	}
	if err := l.s.take(l.bytes*int64(more), l.of(l.count)+" in one piece"); err != nil {
		return nil, err
	}
	out, kept := make([]T, 0, l.count), 0
	for i, p := range l.pieces {
		l.pieces[i] = nil
		out = append(out, p...)
		if kept += len(p); more < l.count && i < len(l.pieces)-1 && kept+len(l.pieces[i+1]) > more {
			debug.FreeOSMemory()
			kept = 0
		}
	}
	l.s.give(l.bytes * int64(l.room-l.count+more))
	return out, nil
}
