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
	"math/bits"
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
	size := uint32(binary.LittleEndian.Uint16(length))
	if len(length) == 4 {
		size = binary.LittleEndian.Uint32(length)
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
	word := func() (w string, ok bool) { // a string in either kind of quotation marks
		text = strings.TrimLeft(text, " \t\n")
		if text == "" || text[0] != '\'' && text[0] != '"' {
			return "", false
		}
		w, rest, ok := strings.Cut(text[1:], text[:1])
		text = rest
		return w, ok
	}
	sign := func(c byte) bool {
		text = strings.TrimLeft(text, " \t\n")
		if text == "" || text[0] != c {
			return false
		}
		text = text[1:]
		return true
	}
	if !sign('{') {
		return false
	}
	seen := map[string]bool{}
	for !sign('}') {
		key, ok := word()
		if !ok || !sign(':') || seen[key] {
			return false
		}
		seen[key] = true
		switch key {
		case "descr":
			descr, ok := word()
			if !ok || !a.descr(descr) {
				return false
			}
		case "fortran_order":
			text = strings.TrimLeft(text, " \t\n")
			rest, yes := strings.CutPrefix(text, "True")
			if !yes {
				var no bool
				if rest, no = strings.CutPrefix(text, "False"); !no {
					return false
				}
			}
			a.fortran, text = yes, rest
		case "shape":
			if !sign('(') {
				return false
			}
			for !sign(')') {
				end := strings.IndexAny(text, ",)")
				if end < 0 {
					return false
				}
				v, ok := count(strings.TrimSuffix(strings.TrimSpace(text[:end]), "L")) // L of Python 2
				if !ok || len(a.shape) == 32 {
					return false
				}
				a.shape = append(a.shape, int(v))
				text = text[end:]
				sign(',')
			}
		default:
			return false
		}
		sign(',')
	}
	return seen["descr"] && seen["fortran_order"] && seen["shape"] && strings.TrimSpace(text) == ""
}

// descr parses the type of the values: byte order, kind, bytes.
func (a *npy) descr(text string) bool {
	a.order = binary.LittleEndian
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

// decoder returns the function that makes numbers of bytes, nil if the type is not one of numbers.
func (a *npy) decoder() func(to []float64, b []byte) {
	big := a.order == binary.BigEndian
	switch string(a.kind) + strconv.Itoa(a.size) {
	case "f8":
		return wide(big, math.Float64frombits)
	case "f4":
		return middle(big, func(b uint32) float64 { return float64(math.Float32frombits(b)) })
	case "f2":
		return narrow(big, half)
	case "i8":
		return wide(big, func(b uint64) float64 { return float64(int64(b)) })
	case "i4":
		return middle(big, func(b uint32) float64 { return float64(int32(b)) })
	case "i2":
		return narrow(big, func(b uint16) float64 { return float64(int16(b)) })
	case "i1":
		return single(func(b byte) float64 { return float64(int8(b)) })
	case "u8":
		return wide(big, func(b uint64) float64 { return float64(b) })
	case "u4":
		return middle(big, func(b uint32) float64 { return float64(b) })
	case "u2":
		return narrow(big, func(b uint16) float64 { return float64(b) })
	case "u1", "b1":
		return single(func(b byte) float64 { return float64(b) })
	}
	return nil
}

// wide, middle, narrow and single decode values of 8, 4, 2 and 1 bytes.
func wide(big bool, value func(uint64) float64) func([]float64, []byte) {
	return func(to []float64, b []byte) {
		for k := range to {
			v := binary.LittleEndian.Uint64(b[8*k:])
			if big {
				v = bits.ReverseBytes64(v)
			}
			to[k] = value(v)
		}
	}
}

func middle(big bool, value func(uint32) float64) func([]float64, []byte) {
	return func(to []float64, b []byte) {
		for k := range to {
			v := binary.LittleEndian.Uint32(b[4*k:])
			if big {
				v = bits.ReverseBytes32(v)
			}
			to[k] = value(v)
		}
	}
}

func narrow(big bool, value func(uint16) float64) func([]float64, []byte) {
	return func(to []float64, b []byte) {
		for k := range to {
			v := binary.LittleEndian.Uint16(b[2*k:])
			if big {
				v = bits.ReverseBytes16(v)
			}
			to[k] = value(v)
		}
	}
}

func single(value func(byte) float64) func([]float64, []byte) {
	return func(to []float64, b []byte) {
		for k := range to {
			to[k] = value(b[k])
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

// matrix reads an array of two dimensions. there is a lower bound of the number of bytes of the file, 0 if it
// is unknown.
func (a *npy) matrix(there int64) (x quantmf.Mat, err error) {
	if a.decoder() == nil {
		return x, a.fault("an array of type %c%d holds no plain numbers", a.kind, a.size)
	}
	if len(a.shape) != 2 || a.shape[0] == 0 || a.shape[1] == 0 {
		return x, a.fault("the array has the shape %v: a matrix has rows and columns", a.shape)
	}
	d, n := a.shape[0], a.shape[1]
	if err := a.takeMatrix(uint64(d), uint64(n)); err != nil {
		return x, err
	}
	a.give(8 * int64(d*n))
	list := numberList{s: a.source}
	if there/int64(a.size) >= int64(d)*int64(n) {
		if err := list.reserve(d * n); err != nil {
			return x, err
		}
	}
	in := a.values(d * n)
	if reserved := len(list.pieces) == 1; a.fortran && reserved {
		x = quantmf.Mat{Rows: d, Cols: n, Data: list.pieces[0][:d*n], Stride: n}
		part := make([]float64, batch)
		for i, j := 0, 0; j < n; {
			got, err := in.read(part)
			if err != nil {
				return x, err
			}
			for _, v := range part[:got] {
				x.Data[i*n+j] = v
				if i++; i == d {
					i, j = 0, j+1
				}
			}
		}
		return x, a.end()
	}
	for in.done < in.count {
		to, err := list.next(min(batch, in.count-in.done))
		if err != nil {
			return x, err
		}
		if _, err := in.read(to); err != nil {
			return x, err
		}
	}
	if err := a.end(); err != nil {
		return x, err
	}
	if !a.fortran {
		data, err := list.all()
		return quantmf.Mat{Rows: d, Cols: n, Data: data, Stride: n}, err
	}
	if err := a.takeMatrix(uint64(d), uint64(n)); err != nil {
		return x, err
	}
	x = quantmf.NewMat(d, n)
	i, j := 0, 0
	for _, p := range list.pieces {
		for _, v := range p {
			x.Data[i*n+j] = v
			if i++; i == d {
				i, j = 0, j+1
			}
		}
		a.give(8 * int64(cap(p)))
	}
	return x, nil
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

// tableOf returns the table of x, whose values it checks.
func (s *source) tableOf(x quantmf.Mat) (*Table, error) {
	if err := s.take(40*int64(x.Rows+x.Cols), "names"); err != nil {
		return nil, err
	}
	t := &Table{File: s.file, Features: numbered("f", x.Rows), Samples: numbered("s", x.Cols), X: x,
		Taken: "no names in the file"}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if s.fine(v) {
				continue
			}
			if problem := s.check(v); problem != "" {
				return nil, t.Error(i, j, problem)
			}
		}
	}
	return t, nil
}

func readNPY(s *source) (*Table, error) {
	a, err := s.openNPY(s, s.file)
	if err != nil {
		return nil, err
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
		b = b[:0]
		for _, v := range m.Row(i) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		out.Write(b)
	}
}
