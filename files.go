package quantmf

// This file holds model files: what a kind of model keeps in which section, how a program reads a
// file of a kind that it does not know beforehand, and sections of its own. Their layout is in
// internal/section, and the kinds are 1 NMF, 2 QMF, 3 QMFQ, 4 BQMF (checkpoint.go has more).
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
// Every number is held against the range that it has in a model.

import (
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/transport"
)

const (
	kindNMF = 1 + iota
	kindQMF
	kindQMFQ
	kindBQMF
)

// flat returns the entries of m row by row.
func flat(m Mat) []float64 { return m.Clone().Data }

// warned returns the sections of warnings.
func warned(errs []error) []section.Section {
	var texts []string
	var numbers []float64
	for _, e := range errs {
		if c, ok := e.(*ConvergenceError); ok {
			numbers = append(numbers, float64(c.Row), float64(c.Iterations), c.MarginalError, c.Tolerance)
			continue
		}
		texts = append(texts, e.Error())
	}
	return []section.Section{section.Floats("CONV", numbers).AsOptional(), section.Texts("WARN", texts...).AsOptional()}
}

// file is a decoded file: its sections and, but in a checkpoint, what DIMS says. Its methods
// return every error as a [*FormatError].
type file struct {
	*section.File
	leastHistory float64
	d, n, k      int
	m            int
	best         int
	missing      bool
	loss         divergence.Loss
	epsilon      float64
}

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
	f, err := section.Decode(b, kind, kindName, tags, append(more, "CONV", "WARN"))
	if err != nil {
		return nil, formatError(err)
	}
	return &file{File: f}, nil
}

// formatError makes an error of a section one of this package.
func formatError(err error) error {
	if e, ok := err.(*section.Error); ok {
		return (*FormatError)(e)
	}
	return err
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

// fail reports what is wrong with a section, failAt what is wrong with number i of it.
func (f *file) fail(tag, problem string) error { return formatError(f.Fail(tag, problem)) }

func (f *file) failAt(tag string, i int, problem string) error {
	return formatError(f.FailAt(tag, i, problem))
}

func (f *file) dims(kind uint32) error {
	v, err := f.words("DIMS", 8)
	if err != nil {
		return err
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
	v, err := f.Floats(tag, count, low, high)
	return v, formatError(err)
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

func (f *file) words(tag string, n int) ([]uint64, error) {
	v, err := f.Words(tag, n)
	return v, formatError(err)
}

// savedWarning is a warning of a model that came from a file and is kept as text.
type savedWarning string

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
	kind, err := section.Kind(data)
	if err != nil {
		return 0, formatError(err)
	}
	if kind-kindCheckpoint-kindNMF <= kindBQMF-kindNMF {
		return 0, &FormatError{Offset: 12, Problem: "this is a checkpoint of a fit, not a model"}
	}
	if kind < kindNMF || kind > kindBQMF {
		kind = kindQMF // magic, sum or kind are wrong: let the reader say which
	}
	return kind, nil
}

// AppendSection returns the model file data with a section appended for the caller's own
// use, such as the names of features. Every reader of models skips the section, and
// [Section] finds it. A model read from the file does not keep it: MarshalBinary writes
// files without. tag is four lower-case letters that the file does not have yet. Errors:
// [*FormatError] for the file, [*OptionError] for the tag.
func AppendSection(data []byte, tag string, payload []byte) ([]byte, error) {
	_, has, err := Section(data, tag)
	if err != nil {
		return nil, err
	}
	if has {
		return nil, &OptionError{Option: "tag", Value: tag, Bound: "the file has it already"}
	}
	return section.Append(data, section.Section{Tag: tag, Payload: payload}.AsOptional()), nil
}

// Section returns the payload that [AppendSection] put into a model file under the tag,
// and whether there is one. Errors: [*FormatError] for the file, [*OptionError] for a tag
// that is not four lower-case letters.
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
	return f.Payload(tag), f.Has(tag), nil
}
