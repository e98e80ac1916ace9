package quantmf

// This file holds model files as programs use them: reading a model of any kind, and sections
// of the program's own. internal/section lists the sections that the package itself writes.
//
// A section whose tag is in lower case belongs to the program that wrote the file
// (AppendSection, Section). It is always optional, and the package skips it. cmd/quantmf writes
//
//	name  u d, d names of features, u n, n names of samples, each u length and bytes
//	made  lines of key, tab, value: how the command came to the matrix and the model

import (
	"slices"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/section"
)

// UnmarshalModel reads a model of any kind, a file or the text that MarshalText has written: a [*NMF],
// [*QMF], [*QMFQ] or [*BQMF], or a [*FormatError] and nil. [WithWorkers] is for the methods of the model; any
// other option is an [*OptionError].
func UnmarshalModel(data []byte, opts ...Option) (Model, error) {
	var c config
	if err := parse(option.UnmarshalModel, &c, opts); err != nil {
		return nil, err
	}
	if _, file, err := modelText(data); err == nil {
		data = file
	} else if e, is := err.(*FormatError); is && e.Offset > 0 {
		return nil, err // a text that is damaged
	}
	kind, err := section.ModelKind(data)
	if err != nil {
		return nil, formatError(err)
	}
	var m interface {
		Model
		UnmarshalBinary(data []byte) error
		common() *Factorisation
	}
	switch kind {
	case section.NMF:
		m = new(NMF)
	case section.QMF:
		m = new(QMF)
	case section.BQMF:
		m = new(BQMF)
	default:
		m = new(QMFQ)
	}
	if err := m.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	m.common().workers = c.workers
	return m, nil
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
		return nil, false, &OptionError{Option: "tag", Value: tag,
			Bound: "must be four letters in lower case"}
	}
	kind, err := section.ModelKind(data)
	if err != nil {
		return nil, false, formatError(err)
	}
	f, err := decodeSections(data, kind, section.RequiredTags(kind),
		append(section.OptionalTags(kind), tag)...)
	if err != nil {
		return nil, false, err
	}
	return f.Payload(tag), f.Has(tag), nil
}
