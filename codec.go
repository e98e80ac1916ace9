package quantmf

// This file holds models as files. All numbers are little-endian.
//
//	offset  size  what
//	0       8     "quantmf\n"
//	8       4     version, 1
//	12      4     kind: 1 NMF, 2 QMF, 3 QMFQ, 4 BQMF (checkpoint.go has more)
//	16      4     number of sections
//	20      4     CRC-32 (IEEE) of bytes 0 to 19
//	24            the sections, one after another, and nothing behind them
//
// A section:
//
//	0       4     tag, four letters
//	4       4     flags: bit 0 set means a reader that does not know the tag skips it
//	8       8     length of the payload
//	16      4     CRC-32 of bytes 0 to 15 of the section
//	20            payload
//	20+len  4     CRC-32 of the payload
//
// Payloads, uint64 as u, float64 as f:
//
//	DIMS  u d, n, k, m (0 in an NMF); u best; u 1 where NaN cells are missing; f loss β; f ε
//	UFAC  f d×k       VFAC  f k×n       HIST  f one an epoch       VALI  f likewise
//	QUAN  f d×m       WGHT  f d×m       POTN  f d×m, h about the centre
//	TOOK  u start, f shrinkage (QMF and QMFQ)
//	ROWS  f d×6: centre, squash kind, its reference, shift and deviation, marginal error
//	DEFQ  f d×m, quantiles of T' (QMFQ only)      DEFC  f d×(m-1), its thresholds, squashed
//	DEFR  f d×4, its squash: kind, reference, shift, deviation
//	PROJ  u kind of projection, u updates
//	BQMF only, packed matrices of k(k+1)/2 as in internal/posterior, factors signed:
//	MOMU  f d×k(k+1)/2, E u uᵀ      MOMV  f n×k(k+1)/2, E v vᵀ
//	NOIS  f d: τ; n: ρ; the mean that ρ was divided by; strength; leave-one-out loss
//	CURV  u d×3: knots of g_i, of g_i⁻¹ with mass (0: the same), steps of T_i
//	CURR  f d×20: spread, floor, mean of x, mean of leave-one-out p, slope, 15 levels
//	KNOT  f of each row: y of its knots, x of them; those with mass; places of its steps, their values
//	CONV  f w×4, a warning each: row, passes, marginal error, tolerance of a transport that
//	      did not converge (QMF and QMFQ, optional)
//	WARN  texts of warnings, each u length and bytes (optional)
//
// A tag in lower case is of the program that wrote the file, optional always
// (AppendSection, Section); the package skips it. Those of cmd/quantmf:
//
//	name  u d, d names of features, u n, n names of samples, each u length and bytes
//	made  lines of key, tab, value: how the command came to the matrix and the model
//
// Every length is held against the bytes that are there before memory is taken, and every
// number against the range that it has in a model.

import (
	"hash/crc32"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/transport"
)

const (
	magic       = "quantmf\n"
	fileVersion = 1
	headerSize  = 24
	sectionSize = 20
	optional    = 1
)

const (
	kindNMF = 1 + iota
	kindQMF
	kindQMFQ
	kindBQMF
)

// The four ways to a little-endian number (package encoding/binary would bring
// reflection along).

func append32(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

func append64(b []byte, v uint64) []byte { return append32(append32(b, uint32(v)), uint32(v>>32)) }

func get32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func get64(b []byte) uint64 { return uint64(get32(b)) | uint64(get32(b[4:]))<<32 }

// section is a part of a file.
type section struct {
	tag     string
	flags   uint32
	payload []byte
}

func floats(tag string, v []float64) section {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = append64(b, math.Float64bits(x))
	}
	return section{tag: tag, payload: b}
}

// flat returns the entries of m row by row.
func flat(m Mat) []float64 { return m.Clone().Data }

// warned returns the sections of warnings.
func warned(errs []error) []section {
	var texts []byte
	var numbers []float64
	for _, e := range errs {
		if c, ok := e.(*ConvergenceError); ok {
			numbers = append(numbers, float64(c.Row), float64(c.Iterations), c.MarginalError, c.Tolerance)
			continue
		}
		s := e.Error()
		texts = append64(texts, uint64(len(s)))
		texts = append(texts, s...)
	}
	conv := floats("CONV", numbers)
	conv.flags = optional
	return []section{conv, {tag: "WARN", flags: optional, payload: texts}}
}

func encode(kind uint32, sections []section) []byte {
	size := headerSize
	for _, s := range sections {
		size += sectionSize + len(s.payload) + 4
	}
	b := make([]byte, 0, size)
	b = append(b, magic...)
	b = append32(b, fileVersion)
	b = append32(b, kind)
	b = append32(b, uint32(len(sections)))
	b = append32(b, crc32.ChecksumIEEE(b))
	for _, s := range sections {
		from := len(b)
		b = append(b, s.tag...)
		b = append32(b, s.flags)
		b = append64(b, uint64(len(s.payload)))
		b = append32(b, crc32.ChecksumIEEE(b[from:]))
		b = append(b, s.payload...)
		b = append32(b, crc32.ChecksumIEEE(s.payload))
	}
	return b
}

// file is a decoded file: the sections this version knows, by tag.
type file struct {
	leastHistory float64
	sections     map[string][]byte
	offsets      map[string]int64
	d, n, k      int
	m            int
	best         int
	missing      bool
	loss         divergence.Loss
	epsilon      float64
}

func damaged(at int, problem string) error { return &FormatError{Offset: int64(at), Problem: problem} }

// required returns the tags that a file of the kind must have. CONV and WARN are the only
// other ones that this version knows.
func required(kind uint32) []string {
	tags := []string{"DIMS", "UFAC", "VFAC", "HIST", "VALI"}
	if kind == kindBQMF {
		return append(tags, "MOMU", "MOMV", "NOIS", "CURV", "CURR", "KNOT")
	}
	if kind != kindNMF {
		tags = append(tags, "QUAN", "WGHT", "POTN", "ROWS", "TOOK")
	}
	if kind == kindQMFQ {
		tags = append(tags, "DEFQ", "DEFC", "DEFR", "PROJ")
	}
	return tags
}

func decode(b []byte, kind uint32) (*file, error) {
	f, err := decodeSections(b, kind, required(kind))
	if err != nil {
		return nil, err
	}
	f.leastHistory = leastHistory(kind)
	return f, f.dims(kind)
}

// leastHistory is the least entry of a History: losses are not negative, bounds of the
// evidence may be.
func leastHistory(kind uint32) float64 {
	if kind == kindBQMF {
		return -math.MaxFloat64
	}
	return 0
}

// decodeSections reads a file of the kind that must have the sections tags and
// may have CONV, WARN and more.
func decodeSections(b []byte, kind uint32, tags []string, more ...string) (*file, error) {
	if len(b) < headerSize {
		return nil, damaged(len(b), "the file is cut within its header")
	}
	if string(b[:8]) != magic {
		return nil, damaged(0, "this is no quantmf model")
	}
	if crc32.ChecksumIEEE(b[:20]) != get32(b[20:]) {
		return nil, damaged(20, "the header is damaged")
	}
	if v := get32(b[8:]); v != fileVersion {
		return nil, damaged(8, "version "+itoa(int(v))+", this reader knows "+itoa(fileVersion))
	}
	if k := get32(b[12:]); k != kind {
		return nil, damaged(12, "this is "+kindName(k)+", not "+kindName(kind))
	}
	f := &file{sections: map[string][]byte{}, offsets: map[string]int64{}}
	at := headerSize
	for range get32(b[16:]) {
		if len(b)-at < sectionSize {
			return nil, damaged(len(b), "the file is cut within a section")
		}
		head := b[at : at+sectionSize]
		if crc32.ChecksumIEEE(head[:16]) != get32(head[16:]) {
			return nil, damaged(at, "a section's header is damaged")
		}
		length := get64(head[8:])
		if length > uint64(len(b)-at-sectionSize) || len(b)-at-sectionSize-int(length) < 4 {
			return nil, damaged(len(b), "the file is cut within a section")
		}
		tag := string(head[:4])
		payload := b[at+sectionSize : at+sectionSize+int(length)]
		end := at + sectionSize + int(length)
		if crc32.ChecksumIEEE(payload) != get32(b[end:]) {
			return nil, damaged(at+sectionSize, "section "+tag+" is damaged")
		}
		if tag == "CONV" || tag == "WARN" || slices.Contains(tags, tag) || slices.Contains(more, tag) {
			if _, twice := f.sections[tag]; twice {
				return nil, damaged(at, "section "+tag+" comes twice")
			}
			f.sections[tag], f.offsets[tag] = payload, int64(at+sectionSize)
		} else if get32(head[4:])&optional == 0 {
			return nil, damaged(at, "section "+tag+" is not known to this reader")
		}
		at = end + 4
	}
	if at != len(b) {
		return nil, damaged(at, "there is more behind the last section")
	}
	for _, tag := range tags {
		if _, has := f.sections[tag]; !has {
			return nil, damaged(len(b), "section "+tag+" is not there")
		}
	}
	return f, nil
}

func kindName(kind uint32) string {
	names := map[uint32]string{kindNMF: "NMF", kindQMF: "QMF", kindQMFQ: "QMFQ", kindBQMF: "BQMF"}
	if name, known := names[kind]; known {
		return "a model of " + name
	}
	if name, known := names[kind-kindCheckpoint]; known {
		return "a state of a fit of " + name
	}
	return "of unknown kind"
}

// fail reports what is wrong with a section.
func (f *file) fail(tag, problem string) error {
	return &FormatError{Offset: f.offsets[tag], Problem: "section " + tag + ": " + problem}
}

// failAt reports what is wrong with number i of a section.
func (f *file) failAt(tag string, i int, problem string) error {
	return &FormatError{Offset: f.offsets[tag] + 8*int64(i), Problem: "section " + tag + ": " + problem}
}

func (f *file) dims(kind uint32) error {
	b := f.sections["DIMS"]
	if len(b) != 64 {
		return f.fail("DIMS", "wrong length")
	}
	var v [8]uint64
	for i := range v {
		v[i] = get64(b[8*i:])
	}
	low := [6]uint64{1, 1, 1, 2, 0, 0}
	most := [6]uint64{1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1}
	mapped := kind == kindQMF || kind == kindQMFQ // of levels
	if !mapped {
		low[3], most[3] = 0, 0
	}
	for i := range low {
		if v[i] < low[i] || v[i] > most[i] {
			return f.failAt("DIMS", i, "a size is out of range")
		}
	}
	f.d, f.n, f.k, f.m, f.best, f.missing = int(v[0]), int(v[1]), int(v[2]), int(v[3]), int(v[4]), v[5] == 1
	f.loss, f.epsilon = divergence.Loss(math.Float64frombits(v[6])), math.Float64frombits(v[7])
	if !(f.loss >= -2 && f.loss <= 4) {
		return f.failAt("DIMS", 6, "β is "+ftoa(float64(f.loss)))
	}
	if !mapped && v[7] != 0 || mapped && !(f.epsilon >= 1e-12 && f.epsilon <= 1e12) {
		return f.failAt("DIMS", 7, "ε is "+ftoa(f.epsilon))
	}
	if tooManyCells(max(f.d, f.n), f.m) { // as in a fit
		return f.failAt("DIMS", 3, "the maps would need too much memory")
	}
	if uint64(f.k) > maxCells/uint64(f.d+f.n) {
		return f.failAt("DIMS", 2, "the factors would need too much memory")
	}
	return nil
}

// vectorIn returns a section of count numbers from low to high, both finite; -1 for any
// count.
func (f *file) vectorIn(tag string, count int64, low, high float64) ([]float64, error) {
	b := f.sections[tag]
	if len(b)%8 != 0 || count >= 0 && int64(len(b)/8) != count { // 8*count could overflow
		return nil, f.fail(tag, "wrong length")
	}
	v := make([]float64, len(b)/8)
	for i := range v {
		v[i] = math.Float64frombits(get64(b[8*i:]))
		if !(v[i] >= low && v[i] <= high) {
			return nil, f.failAt(tag, i, "number "+itoa(i)+" is "+ftoa(v[i]))
		}
	}
	return v, nil
}

func (f *file) matrixIn(tag string, rows, cols int, low, high float64) (Mat, error) {
	v, err := f.vectorIn(tag, int64(rows)*int64(cols), low, high)
	return Mat{Rows: rows, Cols: cols, Data: v, Stride: cols}, err
}

func (w savedWarning) Error() string { return string(w) }

// maxProduct bounds the entries of UV, so that neither they nor sums of them overflow.
const maxProduct = 1e290

// rising reports quantiles of row i that fall.
func (f *file) rising(tag string, q Mat, i int) error {
	for j := 1; j < q.Cols; j++ {
		if q.At(i, j) < q.At(i, j-1) {
			return f.failAt(tag, i*q.Cols+j, "the quantiles of row "+itoa(i)+" fall")
		}
	}
	return nil
}

// squash reads kind, reference, shift and deviation, from number at of the section on.
func (f *file) squash(tag string, at int, r []float64) (transport.Squash, error) {
	if k := r[0]; !(k >= 0 && k <= float64(SquashArctan)) || k != math.Trunc(k) {
		return transport.Squash{}, f.failAt(tag, at, "there is no squash "+ftoa(k))
	}
	for i, v := range r[1:3] {
		if !(math.Abs(v) <= maxProduct) {
			return transport.Squash{}, f.failAt(tag, at+1+i, "a mean is "+ftoa(v))
		}
	}
	if v := r[3]; !(v >= 0 && v <= maxProduct) {
		return transport.Squash{}, f.failAt(tag, at+3, "a deviation is "+ftoa(v))
	}
	return transport.Squash{Kind: transport.Kind(r[0]), Ref: r[1], Shift: r[2], Std: r[3]}, nil
}

// kindCheckpoint is added to a model's kind.
const kindCheckpoint = 16

func words(tag string, v ...uint64) section {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = append64(b, x)
	}
	return section{tag: tag, payload: b}
}

func (f *file) words(tag string, n int) ([]uint64, error) {
	b := f.sections[tag]
	if len(b) != 8*n {
		return nil, f.fail(tag, "wrong length")
	}
	v := make([]uint64, n)
	for i := range v {
		v[i] = get64(b[8*i:])
	}
	return v, nil
}

// savedWarning is a warning of a model that came from a file and is kept as text.
type savedWarning string
