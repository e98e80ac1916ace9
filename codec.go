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
	"io"
	"math"
	"slices"
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
	loss         Loss
	epsilon      float64
}

func damaged(at int, problem string) error { return &FormatError{Offset: int64(at), Problem: problem} }

// required returns the tags that a file of the kind must have, besides CONV and WARN those
// that this version knows.
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
	maps := kind == kindQMF || kind == kindQMFQ // of levels
	if !maps {
		low[3], most[3] = 0, 0
	}
	for i := range low {
		if v[i] < low[i] || v[i] > most[i] {
			return f.failAt("DIMS", i, "a size is out of range")
		}
	}
	f.d, f.n, f.k, f.m, f.best, f.missing = int(v[0]), int(v[1]), int(v[2]), int(v[3]), int(v[4]), v[5] == 1
	f.loss, f.epsilon = Loss(math.Float64frombits(v[6])), math.Float64frombits(v[7])
	if !(f.loss >= -2 && f.loss <= 4) {
		return f.failAt("DIMS", 6, "β is "+ftoa(float64(f.loss)))
	}
	if !maps && v[7] != 0 || maps && !(f.epsilon >= 1e-12 && f.epsilon <= 1e12) {
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

// savedWarning is a warning of a model that came from a file and is kept as text.
type savedWarning string

func (w savedWarning) Error() string { return string(w) }

func (f *file) warnings() (errs []error, err error) {
	v, err := f.vectorIn("CONV", -1, 0, math.MaxFloat64)
	if err == nil && len(v)%4 != 0 {
		err = f.fail("CONV", "wrong length")
	}
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(v); i += 4 {
		row, passes := int(min(v[i], 1<<31)), int(min(v[i+1], 1<<53))
		switch {
		case row >= f.d || float64(row) != v[i]:
			return nil, f.failAt("CONV", i, "there is no row "+ftoa(v[i]))
		case float64(passes) != v[i+1]:
			return nil, f.failAt("CONV", i+1, "a number of passes is "+ftoa(v[i+1]))
		case !(v[i+3] > 0):
			return nil, f.failAt("CONV", i+3, "a tolerance is 0")
		}
		errs = append(errs, &ConvergenceError{Row: row, Iterations: passes, MarginalError: v[i+2], Tolerance: v[i+3]})
	}
	b := f.sections["WARN"]
	for len(b) > 0 {
		if len(b) < 8 || get64(b) > uint64(len(b)-8) {
			return nil, f.fail("WARN", "wrong length")
		}
		n := int(get64(b))
		errs = append(errs, savedWarning(b[8:8+n]))
		b = b[8+n:]
	}
	return errs, nil
}

// maxProduct bounds the entries of UV, so that neither they nor sums of them overflow.
const maxProduct = 1e290

// common reads what all models have; no factor is below low.
func (f *file) common(m *Factorisation, low float64) (err error) {
	m.Best, m.loss, m.missing = f.best, f.loss, f.missing
	if m.U, err = f.matrixIn("UFAC", f.d, f.k, low, math.MaxFloat64); err != nil {
		return err
	}
	if m.V, err = f.matrixIn("VFAC", f.k, f.n, low, math.MaxFloat64); err != nil {
		return err
	}
	total := 0.0
	for c := range f.k {
		top, at, topU := 0.0, 0, 0.0
		for i := range f.d {
			topU = max(topU, math.Abs(m.U.At(i, c)))
		}
		for j, x := range m.V.Row(c) {
			if math.Abs(x) > top {
				top, at = math.Abs(x), j
			}
		}
		if total += float64(topU * top); !(total <= maxProduct) {
			return f.failAt("VFAC", c*f.n+at, "the product of the factors overflows")
		}
	}
	if m.History, err = f.vectorIn("HIST", -1, f.leastHistory, math.MaxFloat64); err != nil {
		return err
	}
	if m.Validation, err = f.vectorIn("VALI", -1, 0, math.MaxFloat64); err != nil {
		return err
	}
	if len(m.Validation) == 0 {
		m.Validation = nil
	} else if len(m.Validation) != len(m.History) {
		return f.fail("VALI", "wrong length")
	}
	if f.best >= max(len(m.History), 1) {
		return f.failAt("DIMS", 4, "the best epoch is not in the history")
	}
	m.Warnings, err = f.warnings()
	return err
}

// sections are those that all models have; m and ε are 0 in an NMF.
func (f *Factorisation) sections(m int, eps float64) []section {
	missing := uint64(0)
	if f.missing {
		missing = 1
	}
	return append([]section{
		words("DIMS", uint64(f.U.Rows), uint64(f.V.Cols), uint64(f.U.Cols), uint64(m), uint64(max(f.Best, 0)), missing, math.Float64bits(float64(f.loss)), math.Float64bits(eps)),
		floats("UFAC", flat(f.U)), floats("VFAC", flat(f.V)), floats("HIST", f.History), floats("VALI", f.Validation),
	}, warned(f.Warnings)...)
}

// MarshalBinary returns the model as a file.
func (m *NMF) MarshalBinary() ([]byte, error) {
	return encode(kindNMF, m.sections(0, 0)), nil
}

// UnmarshalBinary makes m the model in data, or returns a [*FormatError] and
// leaves m as it was.
func (m *NMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kindNMF)
	if err != nil {
		return err
	}
	var n NMF
	if err := f.common(&n.Factorisation, 0); err != nil {
		return err
	}
	*m = n
	return nil
}

// WriteTo writes the model as a file.
func (m *NMF) WriteTo(w io.Writer) (int64, error) { return writeTo(w, m.MarshalBinary) }

// ReadFrom reads a model until the end of r.
func (m *NMF) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, m.UnmarshalBinary) }

// MarshalBinary returns the model as a file.
func (q *QMF) MarshalBinary() ([]byte, error) { return encode(kindQMF, q.sections()), nil }

func (q *QMF) sections() []section {
	d, m := q.Quantiles.Dims()
	rows := make([]float64, 0, 6*d)
	for i, s := range q.squash {
		rows = append(rows, q.center[i], float64(s.kind), s.ref, s.shift, s.std, q.marginal[i])
	}
	return append(q.Factorisation.sections(m, q.epsilon),
		floats("QUAN", flat(q.Quantiles)), floats("WGHT", flat(q.Weights)), floats("POTN", flat(q.potentials)), floats("ROWS", rows), words("TOOK", uint64(q.Start), math.Float64bits(q.Shrinkage)))
}

// UnmarshalBinary makes q the model in data, or returns a [*FormatError] and
// leaves q as it was.
func (q *QMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kindQMF)
	if err != nil {
		return err
	}
	n, err := f.readQMF(math.SmallestNonzeroFloat64)
	if err != nil {
		return err
	}
	*q = *n
	return nil
}

// What numbers of a model do not exceed: quantiles, potentials, and places of samples, as
// squashed or as they are.
const (
	maxQuantile  = 1e150
	maxPotential = 1e150
	maxCentre    = 1e150
)

// readQMF reads the sections of a QMF, whose factors are not below low.
func (f *file) readQMF(low float64) (*QMF, error) {
	n := &QMF{epsilon: f.epsilon}
	err := f.common(&n.Factorisation, low)
	if err != nil {
		return nil, err
	}
	lowest := 0.0
	if f.loss == Frobenius { // which alone takes any x
		lowest = -maxQuantile
	}
	for _, part := range []struct {
		tag       string
		to        *Mat
		low, high float64
	}{{"QUAN", &n.Quantiles, lowest, maxQuantile}, {"WGHT", &n.Weights, math.SmallestNonzeroFloat64, 1}, {"POTN", &n.potentials, -maxPotential, maxPotential}} {
		if *part.to, err = f.matrixIn(part.tag, f.d, f.m, part.low, part.high); err != nil {
			return nil, err
		}
	}
	took, err := f.words("TOOK", 2)
	if err != nil {
		return nil, err
	}
	n.Start, n.Shrinkage = Start(took[0]&255), math.Float64frombits(took[1])
	if took[0] >= uint64(len(startNames)) {
		return nil, f.failAt("TOOK", 0, "there is no such start")
	}
	if !(n.Shrinkage >= 0 && n.Shrinkage <= 1e30) {
		return nil, f.failAt("TOOK", 1, "the shrinkage is "+ftoa(n.Shrinkage))
	}
	rows, err := f.matrixIn("ROWS", f.d, 6, -math.MaxFloat64, math.MaxFloat64)
	if err != nil {
		return nil, err
	}
	for i := range f.d {
		r := rows.Row(i)
		if !(math.Abs(r[0]) <= maxCentre) {
			return nil, f.failAt("ROWS", 6*i, "the centre of row "+itoa(i)+" is "+ftoa(r[0]))
		}
		if r[5] < 0 {
			return nil, f.failAt("ROWS", 6*i+5, "the marginal error of row "+itoa(i)+" is "+ftoa(r[5]))
		}
		s, err := f.squash("ROWS", 6*i+1, r[1:5])
		if err != nil {
			return nil, err
		}
		n.center = append(n.center, r[0])
		n.squash = append(n.squash, s)
		n.marginal = append(n.marginal, r[5])
		sum := 0.0
		for _, w := range n.Weights.Row(i) {
			sum += w
		}
		if math.Abs(sum-1) > 1e-9 {
			return nil, f.failAt("WGHT", i*f.m, "the weights of row "+itoa(i)+" sum to "+ftoa(sum))
		}
		if err := f.rising("QUAN", n.Quantiles, i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

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
func (f *file) squash(tag string, at int, r []float64) (squashed, error) {
	if k := r[0]; !(k >= 0 && k < float64(len(squashNames))) || k != math.Trunc(k) {
		return squashed{}, f.failAt(tag, at, "there is no squash "+ftoa(k))
	}
	for i, v := range r[1:3] {
		if !(math.Abs(v) <= maxProduct) {
			return squashed{}, f.failAt(tag, at+1+i, "a mean is "+ftoa(v))
		}
	}
	if v := r[3]; !(v >= 0 && v <= maxProduct) {
		return squashed{}, f.failAt(tag, at+3, "a deviation is "+ftoa(v))
	}
	return squashed{kind: Squash(r[0]), ref: r[1], shift: r[2], std: r[3]}, nil
}

// MarshalBinary returns the model as a file.
func (q *QMFQ) MarshalBinary() ([]byte, error) {
	t := q.inflated
	t.Factorisation = q.Factorisation
	var quantiles, cuts, squashes []float64
	for _, m := range q.deflate {
		quantiles = append(quantiles, m.q...)
		cuts = append(cuts, m.cut...)
		squashes = append(squashes, float64(m.squash.kind), m.squash.ref, m.squash.shift, m.squash.std)
	}
	return encode(kindQMFQ, append(t.sections(), floats("DEFQ", quantiles), floats("DEFC", cuts), floats("DEFR", squashes),
		words("PROJ", uint64(q.projection.kind), uint64(q.projection.updates)))), nil
}

// UnmarshalBinary makes q the model in data, or returns a [*FormatError] and
// leaves q as it was.
func (q *QMFQ) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kindQMFQ)
	if err != nil {
		return err
	}
	p, err := f.words("PROJ", 2)
	if err != nil {
		return err
	}
	n := QMFQ{projection: Projection{projectionKind(p[0]), int(p[1] & 0x7fffffff)}}
	low := 0.0
	if n.projection.kind == projectionSVD {
		low = -math.MaxFloat64
	}
	switch {
	case p[0] < uint64(projectionKL) || p[0] > uint64(projectionSVD):
		return f.failAt("PROJ", 0, "there is no such projection")
	case n.projection.kind == projectionSVD && p[1] != 0 || p[1] > 0x7fffffff || n.projection.bound() != "":
		return f.failAt("PROJ", 1, "the projection has no such number of updates")
	}
	t, err := f.readQMF(low)
	if err != nil {
		return err
	}
	n.inflated = *t
	n.Factorisation = t.Factorisation
	quantiles, err := f.matrixIn("DEFQ", f.d, f.m, 0, maxQuantile)
	if err != nil {
		return err
	}
	cuts, err := f.matrixIn("DEFC", f.d, f.m-1, -maxCentre, maxCentre)
	if err != nil {
		return err
	}
	squashes, err := f.matrixIn("DEFR", f.d, 4, -math.MaxFloat64, math.MaxFloat64)
	if err != nil {
		return err
	}
	for i := range f.d {
		inflate, _ := t.Map(i)
		deflate := &Map{q: quantiles.Row(i), cut: cuts.Row(i), rate: inflate.rate}
		if deflate.squash, err = f.squash("DEFR", 4*i, squashes.Row(i)); err != nil {
			return err
		}
		if err := f.rising("DEFQ", quantiles, i); err != nil {
			return err
		}
		n.inflate, n.deflate = append(n.inflate, inflate), append(n.deflate, deflate)
	}
	*q = n
	return nil
}

// WriteTo writes the model as a file.
func (q *QMFQ) WriteTo(w io.Writer) (int64, error) { return writeTo(w, q.MarshalBinary) }

// ReadFrom reads a model until the end of r.
func (q *QMFQ) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, q.UnmarshalBinary) }

// WriteTo writes the model as a file.
func (q *QMF) WriteTo(w io.Writer) (int64, error) { return writeTo(w, q.MarshalBinary) }

// ReadFrom reads a model until the end of r.
func (q *QMF) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, q.UnmarshalBinary) }

func writeTo(w io.Writer, marshal func() ([]byte, error)) (int64, error) {
	b, err := marshal()
	if err != nil {
		return 0, err
	}
	n, err := w.Write(b)
	return int64(n), err
}

func readFrom(r io.Reader, unmarshal func([]byte) error) (int64, error) {
	b, err := io.ReadAll(r)
	if err == nil {
		err = unmarshal(b)
	}
	return int64(len(b)), err
}

// UnmarshalModel reads a model of any kind: a [*NMF], [*QMF], [*QMFQ] or [*BQMF], or
// a [*FormatError].
func UnmarshalModel(data []byte) (Model, error) {
	kind, err := modelKind(data)
	if err != nil {
		return nil, err
	}
	var m interface {
		Model
		UnmarshalBinary(data []byte) error
	}
	switch kind {
	case kindNMF:
		m = new(NMF)
	case kindQMF:
		m = new(QMF)
	case kindBQMF:
		m = new(BQMF)
	default:
		m = new(QMFQ)
	}
	if err := m.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	return m, nil
}

// modelKind returns the kind of a model file.
func modelKind(data []byte) (uint32, error) {
	if len(data) < headerSize {
		return 0, damaged(len(data), "the file is cut within its header")
	}
	kind := get32(data[12:])
	if string(data[:8]) == magic && kind-kindCheckpoint-kindNMF <= kindBQMF-kindNMF {
		return 0, damaged(12, "this is a checkpoint of a fit, not a model")
	}
	if kind < kindNMF || kind > kindBQMF {
		kind = kindQMF // magic, sum or kind are wrong: let the reader say which
	}
	return kind, nil
}

// AppendSection returns the model file data with a section of the caller's behind
// it, such as the names of features: every reader of models skips it, and
// [Section] finds it. Models do not keep it: what MarshalBinary returns is without.
// tag is four letters in lower case, and not there yet. Errors: [*FormatError],
// [*OptionError].
func AppendSection(data []byte, tag string, payload []byte) ([]byte, error) {
	_, has, err := Section(data, tag)
	if err != nil {
		return nil, err
	}
	if has {
		return nil, &OptionError{Option: "tag", Value: tag, Bound: "the file has it already"}
	}
	kind := get32(data[12:])
	b := append([]byte(nil), data[:16]...)
	b = append32(b, get32(data[16:])+1)
	b = append32(b, crc32.ChecksumIEEE(b))
	b = append(b, data[headerSize:]...)
	return append(b, encode(kind, []section{{tag, optional, payload}})[headerSize:]...), nil
}

// Section returns what [AppendSection] put into a model file under the tag, and
// whether it is there. Errors: [*FormatError], [*OptionError] for a tag that is
// not four letters in lower case.
func Section(data []byte, tag string) (payload []byte, has bool, err error) {
	if len(tag) != 4 || slices.ContainsFunc([]byte(tag), func(c byte) bool { return c < 'a' || c > 'z' }) {
		return nil, false, &OptionError{Option: "tag", Value: tag, Bound: "must be four letters in lower case"}
	}
	kind, err := modelKind(data)
	if err != nil {
		return nil, false, err
	}
	f, err := decodeSections(data, kind, required(kind), tag)
	if err != nil {
		return nil, false, err
	}
	payload, has = f.sections[tag]
	return payload, has, nil
}
