package main

// This file holds the frames of "quantmf serve", and the values in them. docs/serve.md has the layout:
//
//	"qmf1" · length of the header (4 bytes) · length of the body (8 bytes) · header, JSON · body, arrays
//
// Numbers are little-endian. An array begins at a multiple of 8 bytes of the body. The header's field
// "arrays" has type and shape of each; {"$array": i} stands for array i in the rest of the header.

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/calls"
)

const (
	frameMagic = "qmf1"
	frameStart = 16 // bytes of magic and lengths
	// mostHeader bounds a header, in which names of features and samples stand.
	mostHeader = 1 << 26
	// mostArrays bounds the arrays of a frame.
	mostArrays = 1 << 10
	// pieceOf is how many numbers of an array are read or written at once.
	pieceOf = 1 << 13
)

// array is the type and the shape of an array, and its numbers in the one field of its type.
type array struct {
	Type  string `json:"type"`
	Shape []int  `json:"shape"`

	f8 []float64
	f4 []float32
	i8 []int64
	u4 []uint32
	u1 []byte
}

// widths has the bytes of a number of each type.
var widths = map[string]int64{"f8": 8, "f4": 4, "i8": 8, "u4": 4, "u1": 1}

// bytes returns the length of the array, -1 if it has none that a body can have.
func (a *array) bytes() int64 {
	size := widths[a.Type]
	for _, n := range a.Shape {
		if n < 0 || n > 0 && size > math.MaxInt64/16/int64(n) {
			return -1
		}
		size *= int64(n)
	}
	if widths[a.Type] == 0 {
		return -1
	}
	return size
}

func padded(n int64) int64 { return (n + 7) &^ 7 }

// header is the header of a frame that a client sends.
type header struct {
	ID     *int64  `json:"id"`
	Cancel *int64  `json:"cancel"`
	Call   string  `json:"call"`
	Args   any     `json:"args"`
	Arrays []array `json:"arrays"`
}

// badFrame is an error in a frame behind which the next one still begins where its lengths say.
type badFrame struct{ problem string }

func (e *badFrame) Error() string { return "quantmf: a frame " + e.problem }

// errCut is the error of an input that ends where a frame does not.
var errCut = errors.New("quantmf: the input ends within a frame")

// readLengths reads the first bytes of a frame. Its error is io.EOF where no frame begins.
func readLengths(r io.Reader) (head, body int64, err error) {
	var b [frameStart]byte
	if _, err = io.ReadFull(r, b[:]); err == io.ErrUnexpectedEOF {
		err = errCut
	}
	if err != nil {
		return 0, 0, err
	}
	head, body = int64(binary.LittleEndian.Uint32(b[4:])), int64(binary.LittleEndian.Uint64(b[8:]))
	if string(b[:4]) != frameMagic || head > mostHeader || body < 0 {
		return 0, 0, errors.New("quantmf: what stands in place of a frame is none")
	}
	return head, body, nil
}

// readHeader reads a header of this length.
func readHeader(r io.Reader, length, body int64) (h header, err error) {
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, errCut
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, &badFrame{"has a header that is no JSON of a call: " + err.Error()}
	}
	if len(h.Arrays) > mostArrays {
		return h, &badFrame{fmt.Sprintf("has more than %d arrays", mostArrays)}
	}
	size := int64(0)
	for i := range h.Arrays {
		n := h.Arrays[i].bytes()
		if n < 0 || size > body {
			return h, &badFrame{fmt.Sprintf("has an array %d whose type or shape is none", i)}
		}
		size += padded(n)
	}
	if size != body {
		return h, &badFrame{fmt.Sprintf("has a body of %d bytes for arrays of %d", body, size)}
	}
	return h, nil
}

// read reads the numbers of an array.
func (a *array) read(r io.Reader) (err error) {
	size := a.bytes()
	switch n := size / widths[a.Type]; a.Type {
	case "f8":
		a.f8, err = numbers[float64](r, n)
	case "f4":
		a.f4, err = numbers[float32](r, n)
	case "i8":
		a.i8, err = numbers[int64](r, n)
	case "u4":
		a.u4, err = numbers[uint32](r, n)
	case "u1":
		a.u1, err = numbers[byte](r, n)
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, r, padded(size)-size)
	}
	return err
}

// numbers reads n numbers, a piece at a time.
func numbers[T float64 | float32 | int64 | uint32 | byte](r io.Reader, n int64) ([]T, error) {
	all, bytes := make([]T, n), make([]byte, 8*pieceOf)
	for piece := range slices.Chunk(all, pieceOf) {
		b := bytes[:binary.Size(piece)]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		binary.Decode(b, binary.LittleEndian, piece)
	}
	return all, nil
}

// value is an argument: what JSON has, or an array of the frame.
type value struct {
	of     any
	arrays []array
}

// array returns the array that the value stands for, nil if for none.
func (v value) array() *array {
	if o, is := v.of.(map[string]any); is && len(o) == 1 {
		if i, is := o["$array"].(float64); is && i >= 0 && int(i) < len(v.arrays) && i == math.Trunc(i) {
			return &v.arrays[int(i)]
		}
	}
	return nil
}

func (v value) Type() calls.Type {
	switch v.of.(type) {
	case nil:
		return calls.None
	case bool:
		return calls.Bool
	case float64:
		return calls.Number
	case string:
		return calls.Text
	}
	return calls.Object
}

func (v value) Text() string {
	switch of := v.of.(type) {
	case nil:
		return ""
	case string:
		return of
	case float64:
		if of == math.Trunc(of) && math.Abs(of) < 1e21 { // 1e7 is a whole number
			return strconv.FormatFloat(of, 'f', -1, 64)
		}
		return strconv.FormatFloat(of, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(of)
	}
	return "an object"
}

func (v value) Float() float64 { f, _ := v.of.(float64); return f }

func (v value) Fields() []string {
	o, _ := v.of.(map[string]any)
	return slices.Sorted(maps.Keys(o))
}

func (v value) Field(name string) calls.Value {
	o, _ := v.of.(map[string]any)
	return value{o[name], v.arrays}
}

func (v value) Numbers() ([]float64, bool) {
	if a := v.array(); a != nil {
		return a.f8, a.Type == "f8" && len(a.Shape) == 1
	}
	return list[float64](v.of)
}

func (v value) Bytes() ([]byte, bool) {
	a := v.array()
	if a == nil || a.Type != "u1" {
		return nil, false
	}
	return a.u1, true
}

func (v value) Texts() ([]string, bool) { return list[string](v.of) }

// list returns the elements of a list, and whether it is one, of such elements alone.
func list[T any](v any) ([]T, bool) {
	of, is := v.([]any)
	all := make([]T, len(of))
	for i := range of {
		one, isOne := of[i].(T)
		if !isOne {
			return nil, false
		}
		all[i] = one
	}
	return all, is
}

func (v value) Rows() (quantmf.Rows, bool, error) {
	if a := v.array(); a != nil {
		switch {
		case len(a.Shape) != 2:
			return nil, false, nil
		case a.Type == "f8":
			return quantmf.Mat{Rows: a.Shape[0], Cols: a.Shape[1], Data: a.f8, Stride: a.Shape[1]}, true, nil
		case a.Type == "f4":
			return quantmf.Mat32{Rows: a.Shape[0], Cols: a.Shape[1], Data: a.f4, Stride: a.Shape[1]}, true,
				nil
		}
		return nil, false, nil
	}
	if o, is := v.of.(map[string]any); is {
		return v.sparse(o)
	}
	of, is := v.of.([]any)
	rows := make([][]float64, len(of))
	for i := range of {
		var isRow bool
		if rows[i], isRow = (value{of[i], v.arrays}).Numbers(); !isRow {
			return nil, false, nil
		}
	}
	if !is {
		return nil, false, nil
	}
	m, err := quantmf.MatOf(rows...)
	return m, true, err
}

// sparse returns a matrix in compressed sparse rows.
func (v value) sparse(o map[string]any) (quantmf.Rows, bool, error) {
	array := func(name string) *array { return value{o[name], v.arrays}.array() }
	columns, start, index, values := v.Field("columns").Float(), array("start"), array("index"),
		array("values")
	if start == nil || index == nil || values == nil || columns != float64(int32(columns)) ||
		start.Type != "i8" || index.Type != "u4" {
		return nil, false, nil
	}
	from := make([]int, len(start.i8))
	for i, at := range start.i8 {
		from[i] = int(at)
	}
	var s *quantmf.Sparse
	var err error
	switch values.Type {
	case "f8":
		s, err = quantmf.NewSparse(int(columns), from, index.u4, values.f8)
	case "f4":
		s, err = quantmf.NewSparse(int(columns), from, index.u4, values.f4)
	default:
		return nil, false, nil
	}
	return s, true, err
}

// writeFrame writes a frame whose header has the fields; arrays are taken out of them.
func writeFrame(w *bufio.Writer, fields map[string]any) error {
	var arrays []array
	tree := plain(fields, &arrays)
	body := int64(0)
	for i := range arrays {
		body += padded(arrays[i].bytes())
	}
	if len(arrays) > 0 {
		tree.(map[string]any)["arrays"] = arrays
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	b := append([]byte(frameMagic), make([]byte, frameStart-len(frameMagic))...)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(text)))
	binary.LittleEndian.PutUint64(b[8:], uint64(body))
	w.Write(b)
	w.Write(text)
	for i := range arrays {
		arrays[i].write(w)
	}
	return w.Flush()
}

// plain returns a result of a call as JSON has it, with its arrays put aside. JSON has no number that is not
// finite; one is an array of no dimension.
func plain(v any, arrays *[]array) any {
	put := func(a array) any {
		*arrays = append(*arrays, a)
		return map[string]any{"$array": len(*arrays) - 1}
	}
	switch v := v.(type) {
	case float64:
		if v-v != 0 {
			return put(array{Type: "f8", Shape: []int{}, f8: []float64{v}})
		}
	case []float64:
		return put(array{Type: "f8", Shape: []int{len(v)}, f8: v})
	case []byte:
		return put(array{Type: "u1", Shape: []int{len(v)}, u1: v})
	case quantmf.Mat:
		if v.Stride != v.Cols {
			v = v.Clone()
		}
		return put(array{Type: "f8", Shape: []int{v.Rows, v.Cols}, f8: v.Data[:v.Rows*v.Cols]})
	case []any:
		of := make([]any, len(v))
		for i := range v {
			of[i] = plain(v[i], arrays)
		}
		return of
	case map[string]any:
		of := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(v)) { // arrays in the order of the names
			of[name] = plain(v[name], arrays)
		}
		return of
	}
	return v
}

// write writes an array of a result: numbers, or bytes.
func (a *array) write(w *bufio.Writer) {
	w.Write(a.u1)
	var b []byte
	for piece := range slices.Chunk(a.f8, pieceOf) {
		b, _ = binary.Append(b[:0], binary.LittleEndian, piece)
		w.Write(b)
	}
	size := a.bytes()
	w.Write(make([]byte, padded(size)-size))
}
