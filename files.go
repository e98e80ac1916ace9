package quantmf

// This file holds model files as a program meets them: of a kind that it does not know
// beforehand, and with sections of its own. model.go has what the package keeps in them.
//
// A tag in lower case is of the program that wrote the file, optional always
// (AppendSection, Section); the package skips it. Those of cmd/quantmf:
//
//	name  u d, d names of features, u n, n names of samples, each u length and bytes
//	made  lines of key, tab, value: how the command came to the matrix and the model

import (
	"slices"

	"github.com/quantmf/quantmf/internal/section"
)

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
	f, err := decodeSections(data, kind, required(kind), append(optional(kind), tag)...)
	if err != nil {
		return nil, false, err
	}
	return f.Payload(tag), f.Has(tag), nil
}
