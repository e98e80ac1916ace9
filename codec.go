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
//	DIMS  u d, n, k, m (0 in an NMF and a BQMF); u best; u 1 where NaN cells are missing; f loss β; f ε (0 there)
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
//	WARN  texts of warnings, each u length and bytes (optional)
//
// A tag in lower case is of the program that wrote the file, optional always
// (AppendSection, Section); the package skips it. Those of cmd/quantmf:
//
//	name  u d, d names of features, u n, n names of samples, each u length and bytes
//	made  lines of key, tab, value: how the command came to the matrix and the model
//
// Every length is held against the bytes that are there before memory is taken.

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

func texts(tag string, errs []error) section {
	var b []byte
	for _, e := range errs {
		s := e.Error()
		b = append64(b, uint64(len(s)))
		b = append(b, s...)
	}
	return section{tag: tag, flags: optional, payload: b}
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
	sections map[string][]byte
	offsets  map[string]int64
	d, n, k  int
	m        int
	best     int
	missing  bool
	loss     Loss
	epsilon  float64
}

func damaged(at int, problem string) error { return &FormatError{Offset: int64(at), Problem: problem} }

// required returns the tags that a file of the kind must have, besides WARN those
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
	return f, f.dims(kind)
}

// decodeSections reads a file of the kind that must have the sections tags and
// may have WARN and more.
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
		if tag == "WARN" || slices.Contains(tags, tag) || slices.Contains(more, tag) {
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

func (f *file) dims(kind uint32) error {
	b := f.sections["DIMS"]
	if len(b) != 64 {
		return f.fail("DIMS", "wrong length")
	}
	var v [8]uint64
	for i := range v {
		v[i] = get64(b[8*i:])
	}
	for i := range 5 {
		if v[i] > 1<<31-1 {
			return f.fail("DIMS", "a size is out of range")
		}
	}
	f.d, f.n, f.k, f.m, f.best, f.missing = int(v[0]), int(v[1]), int(v[2]), int(v[3]), int(v[4]), v[5] == 1
	f.loss, f.epsilon = Loss(math.Float64frombits(v[6])), math.Float64frombits(v[7])
	maps := kind == kindQMF || kind == kindQMFQ
	if f.d < 1 || f.n < 1 || f.k < 1 || maps != (f.m > 1) || v[5] > 1 || !(f.loss >= -2 && f.loss <= 4) ||
		maps && !(f.epsilon > 0 && f.epsilon <= 1e12) {
		return f.fail("DIMS", "a value is out of range")
	}
	if uint64(f.m) > maxCells/uint64(max(f.d, f.n, f.m)) { // as in a fit
		return f.fail("DIMS", "the maps would need too much memory")
	}
	return nil
}

// vector returns a section of count finite numbers, -1 for any count.
func (f *file) vector(tag string, count int64) ([]float64, error) {
	b := f.sections[tag]
	if len(b)%8 != 0 || count >= 0 && int64(len(b)/8) != count { // 8*count could overflow
		return nil, f.fail(tag, "wrong length")
	}
	v := make([]float64, len(b)/8)
	for i := range v {
		v[i] = math.Float64frombits(get64(b[8*i:]))
	}
	if i := notFinite(v); i >= 0 {
		return nil, f.fail(tag, "number "+itoa(i)+" is "+ftoa(v[i]))
	}
	return v, nil
}

func (f *file) matrix(tag string, rows, cols int) (Mat, error) {
	v, err := f.vector(tag, int64(rows)*int64(cols))
	return Mat{Rows: rows, Cols: cols, Data: v, Stride: cols}, err
}

// savedWarning is a warning of a model that came from a file.
type savedWarning string

func (w savedWarning) Error() string { return string(w) }

func (f *file) warnings() (errs []error, err error) {
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

// common reads what all models have; signed: a truncated SVD's factors may be negative.
func (f *file) common(u, v *Mat, history, validation *[]float64, warnings *[]error, signed bool) (err error) {
	if *u, err = f.matrix("UFAC", f.d, f.k); err != nil {
		return err
	}
	if *v, err = f.matrix("VFAC", f.k, f.n); err != nil {
		return err
	}
	for _, m := range []Mat{*u, *v} {
		for _, x := range m.Data {
			if x < 0 && !signed {
				return f.fail("UFAC", "a factor is negative")
			}
		}
	}
	if *history, err = f.vector("HIST", -1); err != nil {
		return err
	}
	if *validation, err = f.vector("VALI", -1); err != nil {
		return err
	}
	if len(*validation) == 0 {
		*validation = nil
	}
	if f.best >= max(len(*history), 1) {
		return f.fail("DIMS", "the best epoch is not in the history")
	}
	*warnings, err = f.warnings()
	return err
}

func dimensions(d, n, k, m, best int, missing bool, loss Loss, eps float64) section {
	v := []uint64{uint64(d), uint64(n), uint64(k), uint64(m), uint64(max(best, 0)), 0, math.Float64bits(float64(loss)), math.Float64bits(eps)}
	if missing {
		v[5] = 1
	}
	var b []byte
	for _, x := range v {
		b = append64(b, x)
	}
	return section{tag: "DIMS", payload: b}
}

// MarshalBinary returns the model as a file.
func (m *NMF) MarshalBinary() ([]byte, error) {
	return encode(kindNMF, []section{
		dimensions(m.U.Rows, m.V.Cols, m.U.Cols, 0, m.Best, m.missing, m.loss, 0),
		floats("UFAC", flat(m.U)), floats("VFAC", flat(m.V)), floats("HIST", m.History), floats("VALI", m.Validation), texts("WARN", m.Warnings),
	}), nil
}

// UnmarshalBinary makes m the model in data, or returns a [*FormatError] and
// leaves m as it was.
func (m *NMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kindNMF)
	if err != nil {
		return err
	}
	n := NMF{Best: f.best, loss: f.loss, missing: f.missing}
	if err := f.common(&n.U, &n.V, &n.History, &n.Validation, &n.Warnings, false); err != nil {
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
	return []section{
		dimensions(d, q.V.Cols, q.U.Cols, m, q.Best, q.missing, q.loss, q.epsilon),
		floats("UFAC", flat(q.U)), floats("VFAC", flat(q.V)), floats("HIST", q.History), floats("VALI", q.Validation), texts("WARN", q.Warnings),
		floats("QUAN", flat(q.Quantiles)), floats("WGHT", flat(q.Weights)), floats("POTN", flat(q.potentials)), floats("ROWS", rows), words("TOOK", uint64(q.Start), math.Float64bits(q.Shrinkage)),
	}
}

// UnmarshalBinary makes q the model in data, or returns a [*FormatError] and
// leaves q as it was.
func (q *QMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kindQMF)
	if err != nil {
		return err
	}
	n, err := f.readQMF(false)
	if err != nil {
		return err
	}
	*q = *n
	return nil
}

// readQMF reads the sections of a QMF.
func (f *file) readQMF(signed bool) (*QMF, error) {
	n := &QMF{Best: f.best, epsilon: f.epsilon, loss: f.loss, missing: f.missing}
	err := f.common(&n.U, &n.V, &n.History, &n.Validation, &n.Warnings, signed)
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		tag string
		to  *Mat
	}{{"QUAN", &n.Quantiles}, {"WGHT", &n.Weights}, {"POTN", &n.potentials}} {
		if *part.to, err = f.matrix(part.tag, f.d, f.m); err != nil {
			return nil, err
		}
	}
	took, err := f.words("TOOK", 2)
	if err != nil {
		return nil, err
	}
	n.Start, n.Shrinkage = Start(took[0]&255), math.Float64frombits(took[1])
	if took[0] >= uint64(len(startNames)) || !(n.Shrinkage >= 0) || n.Shrinkage-n.Shrinkage != 0 {
		return nil, f.fail("TOOK", "there is no such start or shrinkage")
	}
	rows, err := f.matrix("ROWS", f.d, 6)
	if err != nil {
		return nil, err
	}
	for i := range f.d {
		r := rows.Row(i)
		s, err := f.squash("ROWS", r[1:5])
		if err != nil {
			return nil, err
		}
		n.center = append(n.center, r[0])
		n.squash = append(n.squash, s)
		n.marginal = append(n.marginal, r[5])
		for j, w := range n.Weights.Row(i) {
			if !(w > 0) {
				return nil, f.fail("WGHT", "a weight is not positive")
			}
			if j > 0 && n.Quantiles.At(i, j) < n.Quantiles.At(i, j-1) {
				return nil, f.fail("QUAN", "the quantiles of row "+itoa(i)+" fall")
			}
		}
	}
	return n, nil
}

// squash reads kind, reference, shift and deviation.
func (f *file) squash(tag string, r []float64) (squashed, error) {
	if !(r[0] >= 0 && int(r[0]) < len(squashNames)) || r[3] < 0 {
		return squashed{}, f.fail(tag, "there is no such squash")
	}
	return squashed{kind: Squash(r[0]), ref: r[1], shift: r[2], std: r[3]}, nil
}

// MarshalBinary returns the model as a file.
func (q *QMFQ) MarshalBinary() ([]byte, error) {
	t := q.inflated
	t.History, t.Validation, t.Best, t.Warnings = q.History, q.Validation, q.Best, q.Warnings
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
	if p[0] > 255 || p[1] > 0x7fffffff || n.projection.bound() != "" {
		return f.fail("PROJ", "there is no such projection")
	}
	t, err := f.readQMF(n.projection.kind == projectionSVD)
	if err != nil {
		return err
	}
	n.inflated = *t
	n.U, n.V, n.History, n.Validation, n.Best, n.Warnings = t.U, t.V, t.History, t.Validation, t.Best, t.Warnings
	quantiles, err := f.matrix("DEFQ", f.d, f.m)
	if err != nil {
		return err
	}
	cuts, err := f.matrix("DEFC", f.d, f.m-1)
	if err != nil {
		return err
	}
	squashes, err := f.matrix("DEFR", f.d, 4)
	if err != nil {
		return err
	}
	for i := range f.d {
		inflate, _ := t.Map(i)
		deflate := &Map{q: quantiles.Row(i), cut: cuts.Row(i), rate: inflate.rate}
		if deflate.squash, err = f.squash("DEFR", squashes.Row(i)); err != nil {
			return err
		}
		if !slices.IsSorted(deflate.q) {
			return f.fail("DEFQ", "the quantiles of row "+itoa(i)+" fall")
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

// UnmarshalModel reads a model of any kind: a [*NMF], [*QMF] or [*QMFQ], or a
// [*FormatError].
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
	if string(data[:8]) == magic && kind-kindCheckpoint-kindNMF <= kindQMFQ-kindNMF {
		return 0, damaged(12, "this is a checkpoint of a fit, not a model")
	}
	if kind < kindNMF || kind > kindQMFQ {
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
