package table

// This file holds npy, NumPy's binary format of one array:
//
//	"\x93NUMPY", version, length of the header, a header such as
//	{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, the values
//
// A matrix is an array of two dimensions, of floating-point numbers, integers or
// truth values of any size and byte order. There are no names.

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

const (
	npyMagic  = "\x93NUMPY"
	npyHeader = 1 << 16 // longest header that is read
)

// npy is an array whose header was read.
type npy struct {
	*source
	in      io.Reader
	close   func() error // of an array in an archive
	name    string       // of the file, and of the array in an archive
	at      int64        // bytes read
	kind    byte         // f, i, u, b; U or S: strings
	size    int          // bytes, of U and S in all
	order   binary.ByteOrder
	fortran bool
	shape   []int
}

func (a *npy) fault(format string, args ...any) *Error {
	return &Error{File: a.name, Byte: a.at, Problem: fmt.Sprintf(format, args...)}
}

// full fills b.
func (a *npy) full(b []byte, what string) error {
	if _, ended, err := a.fill(b); err != nil {
		return err
	} else if ended {
		return a.fault("the file ends within %s: copy or download it again", what)
	}
	return nil
}

// fill fills b, or n bytes of it where the file ends within it.
func (a *npy) fill(b []byte) (n int, ended bool, err error) {
	n, err = io.ReadFull(a.in, b)
	a.at += int64(n)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return n, true, nil
	}
	if err != nil {
		return n, false, a.failed(err)
	}
	return n, false, nil
}

// openNPY reads the header of an array.
func (s *source) openNPY(in io.Reader, name string) (*npy, error) {
	a := &npy{source: s, in: in, name: name}
	b := make([]byte, 8)
	if err := a.full(b, "its header"); err != nil {
		return nil, err
	}
	if string(b[:6]) != npyMagic {
		return nil, a.fault("this is no npy array")
	}
	if b[6] < 1 || b[6] > 3 {
		return nil, a.fault("version %d of npy is not known here", b[6])
	}
	length := make([]byte, 4)
	if b[6] == 1 {
		length = length[:2]
	}
	if err := a.full(length, "its header"); err != nil {
		return nil, err
	}
	size := uint32(littleEndian.Uint16(length))
	if len(length) == 4 {
		size = littleEndian.Uint32(length)
	}
	if size > npyHeader {
		return nil, a.fault("a header of %d bytes is too long", size)
	}
	head := make([]byte, size)
	if err := a.full(head, "its header"); err != nil {
		return nil, err
	}
	if !a.header(string(head)) {
		return nil, a.fault("the header must have descr, fortran_order and shape of an array of plain "+
			"numbers, and is %s", quote(string(head)))
	}
	return a, nil
}

// header parses a header: a dictionary of Python with the keys descr, fortran_order and shape, in any order.
func (a *npy) header(text string) bool {
	text = strings.ReplaceAll(text, `"`, "'")
	value := func(key string) string {
		_, after, _ := strings.Cut(text, "'"+key+"'")
		after, ok := strings.CutPrefix(strings.TrimLeft(after, " "), ":")
		if !ok || strings.Count(text, "'"+key+"'") > 1 {
			return ""
		}
		return strings.TrimLeft(after, " ")
	}
	descr := strings.SplitN(value("descr"), "'", 3)
	if len(descr) < 3 || descr[0] != "" || !a.descr(descr[1]) {
		return false
	}
	a.fortran = strings.HasPrefix(value("fortran_order"), "True")
	if !a.fortran && !strings.HasPrefix(value("fortran_order"), "False") {
		return false
	}
	shape, _, ok := strings.Cut(value("shape"), ")")
	if shape == "" || shape[0] != '(' || !ok {
		return false
	}
	for _, size := range strings.FieldsFunc(shape[1:], func(r rune) bool { return r == ',' || r == ' ' }) {
		v, ok := count(strings.TrimSuffix(size, "L")) // L of Python 2
		if !ok || len(a.shape) == 32 {
			return false
		}
		a.shape = append(a.shape, int(v))
	}
	return true
}

// descr parses the type of the values: byte order, kind, bytes.
func (a *npy) descr(text string) bool {
	a.order = littleEndian
	if text != "" && strings.IndexByte("<>|=", text[0]) >= 0 {
		if text[0] == '>' {
			a.order = binary.BigEndian
		}
		text = text[1:]
	}
	if text == "" {
		return false
	}
	a.kind = text[0]
	if text = text[1:]; text != "" {
		size, ok := count(text)
		if !ok {
			return false
		}
		a.size = int(size)
	}
	if a.kind == 'U' {
		a.size *= 4
	}
	return true
}

// decoders make a number of the bytes of one, little end first, by kind and size.
var decoders = map[string]func(b []byte) float64{
	"f8": func(b []byte) float64 { return math.Float64frombits(littleEndian.Uint64(b)) },
	"f4": func(b []byte) float64 { return float64(math.Float32frombits(littleEndian.Uint32(b))) },
	"f2": func(b []byte) float64 { return half(littleEndian.Uint16(b)) },
	"i8": func(b []byte) float64 { return float64(int64(littleEndian.Uint64(b))) },
	"i4": func(b []byte) float64 { return float64(int32(littleEndian.Uint32(b))) },
	"i2": func(b []byte) float64 { return float64(int16(littleEndian.Uint16(b))) },
	"i1": func(b []byte) float64 { return float64(int8(b[0])) },
	"u8": func(b []byte) float64 { return float64(littleEndian.Uint64(b)) },
	"u4": func(b []byte) float64 { return float64(littleEndian.Uint32(b)) },
	"u2": func(b []byte) float64 { return float64(littleEndian.Uint16(b)) },
	"u1": func(b []byte) float64 { return float64(b[0]) },
	"b1": func(b []byte) float64 { return float64(b[0]) },
}

var littleEndian = binary.LittleEndian

// decoder returns the function that makes numbers of bytes, nil if the type is not one of numbers.
func (a *npy) decoder() func(to []float64, b []byte) {
	value, size := decoders[string(a.kind)+strconv.Itoa(a.size)], a.size
	switch {
	case value == nil:
		return nil
	case a.order == littleEndian:
		return func(to []float64, b []byte) {
			for k := range to {
				to[k] = value(b[k*size:])
			}
		}
	}
	return func(to []float64, b []byte) {
		turned := make([]byte, size)
		for k := range to {
			copy(turned, b[k*size:])
			slices.Reverse(turned)
			to[k] = value(turned)
		}
	}
}

// half is a number of 16 bits: 1 of sign, 5 of exponent, 10 of fraction.
func half(b uint16) float64 {
	sign, exponent, fraction := 1-2*float64(b>>15), int(b>>10&31), float64(b&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction > 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// values reads count values, up to len(to) at a time, into to.
type values struct {
	*npy
	decode      func(to []float64, b []byte)
	count, done int
	b           []byte
}

func (a *npy) values(count int) *values { return &values{npy: a, decode: a.decoder(), count: count} }

// read fills to, or as much of it as is left.
func (v *values) read(to []float64) (n int, err error) {
	n = min(len(to), v.count-v.done)
	if need := n * v.size; len(v.b) < need {
		v.b = make([]byte, need)
	}
	b := v.b[:n*v.size]
	if there, ended, err := v.fill(b); err != nil {
		return 0, err
	} else if ended {
		return 0, v.fault("the file ends within its values, %d of %d of which are there in full: copy or "+
			"download it again", v.done+there/v.size, v.count)
	}
	v.decode(to[:n], b)
	v.done += n
	return n, nil
}

// batch is the number of values that are decoded at a time.
const batch = 1 << 12

// stream reads an array number by number, from its start to its end.
type stream struct {
	*values
	part []float64
	next int
}

// number reads the next number.
func (s *stream) number() (float64, error) {
	if s.next == len(s.part) {
		if err := s.refill(); err != nil {
			return 0, err
		}
	}
	s.next++
	return s.part[s.next-1], nil
}

// refill decodes the next part.
func (s *stream) refill() error {
	if s.done == s.count {
		return s.fault("there are more entries than the %d that this array has", s.count)
	}
	if s.part == nil {
		s.part = make([]float64, min(batch, s.count))
	}
	n, err := s.read(s.part[:min(cap(s.part), s.count-s.done)])
	s.part, s.next = s.part[:n], 0
	return err
}

// index reads the next number, which must be whole, from least to below most.
func (s *stream) index(least, most int) (int, error) {
	v, err := s.number()
	if err != nil {
		return 0, err
	}
	if !(v >= float64(least) && v < float64(most)) || v != float64(int(v)) {
		return 0, s.fault("%g is no index from %d to %d", v, least, most-1)
	}
	return int(v), nil
}

// matrix reads an array of two dimensions. there is a lower bound of the number of bytes of the file, 0 if it
// is unknown.
func (a *npy) matrix(there int64) (quantmf.Rows, error) {
	if a.decoder() == nil {
		return nil, a.fault("an array of type %c%d holds no plain numbers", a.kind, a.size)
	}
	if len(a.shape) != 2 || a.shape[0] == 0 || a.shape[1] == 0 {
		return nil, a.fault("the array has the shape %v: a matrix has rows and columns", a.shape)
	}
	d, n := a.shape[0], a.shape[1]
	if a.fortran {
		return a.entries(d, n, a.byColumns, nil).full()
	}
	if err := a.mayTakeMatrix(uint64(d), uint64(n)); err != nil {
		return nil, err
	}
	numbers := a.numbers()
	if there/int64(a.size) >= int64(d)*int64(n) {
		if err := numbers.reserve(d * n); err != nil {
			return nil, err
		}
	}
	for in := a.values(d * n); in.done < in.count; {
		to, err := numbers.next(min(batch, in.count-in.done))
		if err == nil {
			_, err = in.read(to)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := a.end(); err != nil {
		return nil, err
	}
	data, err := numbers.all()
	return quantmf.Mat{Rows: d, Cols: n, Data: data, Stride: n}, err
}

// byColumns calls put for every value of an array in the order of Fortran.
func (a *npy) byColumns(put sink) error {
	in := stream{values: a.values(a.shape[0] * a.shape[1])}
	for j := range a.shape[1] {
		for i := range a.shape[0] {
			v, err := in.number()
			if err == nil {
				err = put(i, j, v)
			}
			if err != nil {
				return err
			}
		}
	}
	return a.end()
}

// end returns an error for anything behind the last value.
func (a *npy) end() error {
	switch n, err := io.ReadFull(a.in, make([]byte, 1)); {
	case n > 0:
		return a.fault("there is more behind the last value")
	case err != io.EOF:
		return a.failed(err)
	}
	return nil
}

// strings reads an array of count strings; it returns nil if the array has another size or type.
func (a *npy) strings(count int) ([]string, error) {
	if a.kind != 'U' && a.kind != 'S' || len(a.shape) != 1 || a.shape[0] != count || a.size == 0 ||
		a.size > 1<<20 {
		return nil, nil
	}
	a.in = bufio.NewReader(a.in)
	b := make([]byte, a.size)
	var names []string
	for range count {
		if err := a.full(b, "its strings"); err != nil {
			return nil, err
		}
		name := string(bytes.TrimRight(b, "\x00"))
		if a.kind == 'U' {
			var s strings.Builder
			for k := 0; k < len(b); k += 4 {
				s.WriteRune(rune(a.order.Uint32(b[k:]) & 0x7fffffff))
			}
			name = strings.TrimRight(s.String(), "\x00")
		}
		if err := a.take(int64(len(name))+48, "so many names"); err != nil {
			return nil, err
		}
		names = append(names, strings.Clone(name))
	}
	return names, a.end()
}

func readNPY(s *source) (*Table, error) {
	a, err := s.openNPY(s, s.file)
	if err != nil {
		return nil, err
	}
	if s.Transpose && len(a.shape) == 2 && a.shape[0] > 0 && a.shape[1] > 0 {
		// an array transposed is one of the other order
		a.shape[0], a.shape[1], a.fortran, s.turned = a.shape[1], a.shape[0], !a.fortran, true
	}
	_, there, _ := s.extent(math.MaxInt64)
	if a.stays(there) {
		return a.table()
	}
	x, err := a.matrix(there)
	if err != nil {
		return nil, err
	}
	return s.tableOf(x)
}

// writeNPYHeader writes the header of an array.
func writeNPYHeader(out io.Writer, descr string, shape string) {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	pad := (64 - (10+len(head)+1)%64) % 64
	head += strings.Repeat(" ", pad) + "\n"
	out.Write(append([]byte(npyMagic+"\x01\x00"), byte(len(head)), byte(len(head)>>8)))
	io.WriteString(out, head)
}

func writeNPY(out *bufio.Writer, m quantmf.Mat) {
	writeNPYHeader(out, "<f8", fmt.Sprintf("%d, %d", m.Rows, m.Cols))
	var b []byte
	for i := range m.Rows {
		b, _ = binary.Append(b[:0], littleEndian, m.Row(i)) // numbers have no error
		out.Write(b)
	}
}
