package table

// This file holds NumPy's binary formats.
//
//	npy   "\x93NUMPY", version, length of the header, a header such as
//	      {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }, the values
//	npz   a zip archive of npy files, named by their variables
//
// A matrix is an array of two dimensions, of floating-point numbers, integers or
// truth values of any size and byte order. In an npz it is the only such array,
// or the one called x (X, data); arrays of as many strings as it has rows, called
// features, and as it has columns, called samples, are its names: what Write puts
// there.

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

const (
	npyMagic  = "\x93NUMPY"
	zipMagic  = "PK\x03\x04"
	npyHeader = 1 << 20 // longest header that is read
)

// npy is an array half read: behind its header.
type npy struct {
	source
	at      int64 // bytes read
	kind    byte  // f, i, u, b; U or S: strings
	size    int   // bytes, of U and S in all
	order   binary.ByteOrder
	fortran bool
	shape   []int
}

func (a *npy) fault(format string, args ...any) *Error {
	return &Error{File: a.file, Byte: a.at, Problem: fmt.Sprintf(format, args...)}
}

// full fills b.
func (a *npy) full(b []byte, what string) error {
	n, err := io.ReadFull(a.Reader, b)
	a.at += int64(n)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return a.fault("the file ends within %s: copy or download it again", what)
	}
	if err != nil {
		return a.failed(err, 0)
	}
	return nil
}

var (
	npyDescr   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=]?)([a-zA-Z])(\d{0,9})['"]`)
	npyFortran = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	npyShape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9,\sL]*)\)`)
)

func openNPY(s source) (*npy, error) {
	a := &npy{source: s}
	b := make([]byte, 8)
	if err := a.full(b, "its header"); err != nil {
		return nil, err
	}
	if string(b[:6]) != npyMagic {
		return nil, a.fault("this is no npy array")
	}
	length := make([]byte, 2)
	if b[6] >= 2 {
		length = make([]byte, 4)
	}
	if b[6] < 1 || b[6] > 3 {
		return nil, a.fault("version %d of npy is not known here", b[6])
	}
	if err := a.full(length, "its header"); err != nil {
		return nil, err
	}
	var size uint32
	if len(length) == 2 {
		size = uint32(binary.LittleEndian.Uint16(length))
	} else {
		size = binary.LittleEndian.Uint32(length)
	}
	if size > npyHeader {
		return nil, a.fault("a header of %d bytes is too long", size)
	}
	head := make([]byte, size)
	if err := a.full(head, "its header"); err != nil {
		return nil, err
	}
	descr, fortran, shape := npyDescr.FindSubmatch(head), npyFortran.FindSubmatch(head), npyShape.FindSubmatch(head)
	if descr == nil || fortran == nil || shape == nil {
		return nil, a.fault("the header must have descr, fortran_order and shape of an array of plain numbers, and is %q", clip(string(head), 200))
	}
	a.order = binary.LittleEndian
	if string(descr[1]) == ">" {
		a.order = binary.BigEndian
	}
	a.kind, a.fortran = descr[2][0], string(fortran[1]) == "True"
	a.size, _ = strconv.Atoi(string(descr[3]))
	if a.kind == 'U' {
		a.size *= 4
	}
	for _, part := range strings.Split(strings.TrimSpace(string(shape[1])), ",") {
		part = strings.TrimSuffix(strings.TrimSpace(part), "L")
		if part == "" {
			continue
		}
		v, ok := count(part)
		if !ok {
			return nil, a.fault("the shape (%s) is out of range", clip(string(shape[1]), 100))
		}
		a.shape = append(a.shape, int(v))
	}
	return a, nil
}

func clip(s string, most int) string { return s[:min(len(s), most)] }

// decoder returns what makes a number of a.size bytes, nil where the type is
// none of numbers.
func (a *npy) decoder() func(b []byte) float64 {
	o := a.order
	switch string(a.kind) + strconv.Itoa(a.size) {
	case "f8":
		return func(b []byte) float64 { return math.Float64frombits(o.Uint64(b)) }
	case "f4":
		return func(b []byte) float64 { return float64(math.Float32frombits(o.Uint32(b))) }
	case "f2":
		return func(b []byte) float64 { return half(o.Uint16(b)) }
	case "i8":
		return func(b []byte) float64 { return float64(int64(o.Uint64(b))) }
	case "i4":
		return func(b []byte) float64 { return float64(int32(o.Uint32(b))) }
	case "i2":
		return func(b []byte) float64 { return float64(int16(o.Uint16(b))) }
	case "i1":
		return func(b []byte) float64 { return float64(int8(b[0])) }
	case "u8":
		return func(b []byte) float64 { return float64(o.Uint64(b)) }
	case "u4":
		return func(b []byte) float64 { return float64(o.Uint32(b)) }
	case "u2":
		return func(b []byte) float64 { return float64(o.Uint16(b)) }
	case "u1", "b1":
		return func(b []byte) float64 { return float64(b[0]) }
	}
	return nil
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

// each reads count values of a.size bytes. What is taken for them is at most
// twice what is there.
func (a *npy) each(count int, take func(b []byte)) error {
	per := max(1<<16/a.size, 1)
	b := make([]byte, min(per, count)*a.size)
	for done := 0; done < count; {
		n := min(per, count-done)
		if err := a.full(b[:n*a.size], fmt.Sprintf("its values, %d of %d of which are there in full", done, count)); err != nil {
			return err
		}
		for k := range n {
			take(b[k*a.size : (k+1)*a.size])
		}
		done += n
	}
	return nil
}

// matrix reads an array of two dimensions.
func (a *npy) matrix() (quantmf.Mat, error) {
	decode := a.decoder()
	if decode == nil {
		return quantmf.Mat{}, a.fault("an array of type %c%d holds no plain numbers", a.kind, a.size)
	}
	if len(a.shape) != 2 || a.shape[0] == 0 || a.shape[1] == 0 {
		return quantmf.Mat{}, a.fault("the array has the shape %v: a matrix has rows and columns", a.shape)
	}
	d, n := a.shape[0], a.shape[1]
	if problem := a.tooMany(uint64(d), uint64(n)); problem != "" {
		return quantmf.Mat{}, a.fault("%s", problem)
	}
	var values []float64
	if err := a.each(d*n, func(b []byte) { values = append(values, decode(b)) }); err != nil {
		return quantmf.Mat{}, err
	}
	if _, err := a.ReadByte(); err != io.EOF {
		if err != nil {
			return quantmf.Mat{}, a.failed(err, 0)
		}
		return quantmf.Mat{}, a.fault("there is more behind the last value")
	}
	if !a.fortran {
		return quantmf.Mat{Rows: d, Cols: n, Data: values, Stride: n}, nil
	}
	x := quantmf.NewMat(d, n)
	for j := range n {
		for i := range d {
			x.Set(i, j, values[j*d+i])
		}
	}
	return x, nil
}

// names reads an array of strings, nil where it is none of count.
func (a *npy) names(count int) ([]string, error) {
	if a.kind != 'U' && a.kind != 'S' || len(a.shape) != 1 || a.shape[0] != count || a.size == 0 || a.size > 1<<20 {
		return nil, nil
	}
	var names []string
	err := a.each(count, func(b []byte) {
		if a.kind == 'S' {
			names = append(names, string(bytes.TrimRight(b, "\x00")))
			return
		}
		var s strings.Builder
		for k := 0; k < len(b); k += 4 {
			s.WriteRune(rune(a.order.Uint32(b[k:]) & 0x7fffffff))
		}
		names = append(names, strings.TrimRight(s.String(), "\x00"))
	})
	return names, err
}

// tableOf checks every value of x.
func (s source) tableOf(x quantmf.Mat) (*Table, error) {
	t := &Table{File: s.file, Features: numbered("f", x.Rows), Samples: numbered("s", x.Cols), X: x}
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if problem := s.check(v); problem != "" {
				return nil, t.Error(i, j, problem)
			}
		}
	}
	return t, nil
}

func readNPY(s source) (*Table, error) {
	a, err := openNPY(s)
	if err != nil {
		return nil, err
	}
	x, err := a.matrix()
	if err != nil {
		return nil, err
	}
	return s.tableOf(x)
}

func readNPZ(s source) (*Table, error) {
	most := int64(s.MaxCells)*8 + 1<<24
	b, err := io.ReadAll(io.LimitReader(s.Reader, most))
	if err != nil {
		return nil, s.failed(err, 0)
	}
	broken := func(err error) error {
		return &Error{File: s.file, Problem: fmt.Sprintf("the archive is damaged or cut short (%v): copy or download the file again", err)}
	}
	archive, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, broken(err)
	}
	// member opens an array, to be closed by close.
	member := func(f *zip.File) (a *npy, closeIt func() error, err error) {
		r, err := f.Open()
		if err != nil {
			return nil, nil, broken(err)
		}
		in := s
		in.Reader, in.file, in.zipped = bufio.NewReader(r), s.file+"("+f.Name+")", false
		if a, err = openNPY(in); err != nil {
			r.Close()
			return nil, nil, zipFault(err, broken)
		}
		return a, r.Close, nil
	}
	var matrices []*zip.File
	arrays := map[string]*zip.File{}
	for _, f := range archive.File {
		name, isArray := strings.CutSuffix(f.Name, ".npy")
		if !isArray {
			continue
		}
		arrays[name] = f
		a, closeIt, err := member(f)
		if err != nil {
			return nil, err
		}
		closeIt()
		if len(a.shape) == 2 && a.decoder() != nil {
			matrices = append(matrices, f)
		}
	}
	switch {
	case len(arrays) == 0:
		return nil, &Error{File: s.file, Problem: "this is a zip archive or an Excel workbook: save the sheet as CSV or tab-separated text"}
	case len(matrices) == 0:
		return nil, &Error{File: s.file, Problem: "none of the arrays of this archive is a matrix of numbers"}
	case len(matrices) > 1:
		var names []string
		var chosen *zip.File
		for _, f := range matrices {
			names = append(names, strings.TrimSuffix(f.Name, ".npy"))
		}
		for _, want := range []string{"x", "X", "data"} {
			if i := slices.Index(names, want); i >= 0 && chosen == nil {
				chosen = matrices[i]
			}
		}
		if chosen == nil {
			return nil, &Error{File: s.file, Problem: fmt.Sprintf("there are several matrices, %s: call the one that is meant x", clip(strings.Join(names, ", "), 200))}
		}
		matrices[0] = chosen
	}
	a, closeIt, err := member(matrices[0])
	if err != nil {
		return nil, err
	}
	defer closeIt()
	x, err := a.matrix()
	if err != nil {
		return nil, zipFault(err, broken)
	}
	t, err := s.tableOf(x)
	if err != nil {
		return nil, err
	}
	for _, n := range []struct {
		array string
		to    *[]string
		named *bool
	}{{"features", &t.Features, &t.NamedFeatures}, {"samples", &t.Samples, &t.NamedSamples}} {
		f := arrays[n.array]
		if f == nil {
			continue
		}
		a, closeIt, err := member(f)
		if err != nil {
			return nil, err
		}
		names, err := a.names(len(*n.to))
		closeIt()
		if err != nil {
			return nil, zipFault(err, broken)
		}
		if names != nil {
			*n.to, *n.named = names, true
		}
	}
	return t, nil
}

// zipFault makes an error of reading one of the archive: its bytes are in memory.
func zipFault(err error, broken func(error) error) error {
	if _, is := err.(*Error); is {
		return err
	}
	return broken(err)
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

func writeNPZ(out *bufio.Writer, rows, columns []string, m quantmf.Mat) error {
	z := zip.NewWriter(out)
	for _, part := range []struct {
		name  string
		write func(out *bufio.Writer)
	}{
		{"x", func(out *bufio.Writer) { writeNPY(out, m) }},
		{"features", func(out *bufio.Writer) { writeNames(out, rows) }},
		{"samples", func(out *bufio.Writer) { writeNames(out, columns) }},
	} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: part.name + ".npy", Method: zip.Deflate})
		if err != nil {
			return err
		}
		buffered := bufio.NewWriter(w)
		part.write(buffered)
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
	return z.Close()
}

func writeNames(out *bufio.Writer, names []string) {
	longest := 1
	for _, n := range names {
		longest = max(longest, len([]rune(n)))
	}
	writeNPYHeader(out, fmt.Sprintf("<U%d", longest), fmt.Sprintf("%d,", len(names)))
	for _, n := range names {
		b := make([]byte, 0, 4*longest)
		for _, r := range n {
			b = binary.LittleEndian.AppendUint32(b, uint32(r))
		}
		out.Write(b[:4*longest])
	}
}
