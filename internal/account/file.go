package account

// This file holds two sections of a model file: "name", the names of features and samples, and "made", lines
// of a key, a tab and a value, which say how the model came about.

import (
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/section"
)

// Names are those of features and samples, nil where the matrix had none.
type Names struct{ Features, Samples []string }

// Made is how a model came about, empty where that is not known.
type Made struct {
	Matrix   string   // its name
	SHA256   string   // of its file, in hexadecimal digits; empty where it was no single file
	Command  string   // the command line that repeats the fit
	Log1p    bool     // log(1+x) was taken first
	Top      bool     // not all features of the matrix were fitted
	Losses   string   // which loss was taken and why, where that was not given
	Warnings []string // of the fit
	Unseen   Unseen   // how well values that were hidden are predicted

	Stability []float64 // of each component of a consensus of several fits
}

// Append returns the file of a model with both sections, and copies it once: it may be most of the memory.
func Append(file []byte, n Names, m Made) ([]byte, error) {
	var names []byte
	for _, part := range [][]string{n.Features, n.Samples} {
		names = append(names, section.Words("", uint64(len(part))).Payload...)
		names = append(names, section.Texts("", part...).Payload...)
	}
	both := []section.Section{{Tag: "name", Payload: names}, {Tag: "made", Payload: []byte(lines(m.text))}}
	for i, s := range both {
		if _, has, err := quantmf.Section(file, s.Tag); err != nil {
			return nil, err
		} else if has {
			return nil, errors.New("model file: it has the section " + s.Tag + " already")
		}
		both[i] = s.AsOptional()
	}
	return section.Append(file, both...), nil
}

// ErrNames is the error of a file whose names cannot be read.
var ErrNames = errors.New("model file: the names of features or samples are damaged, or those of " +
	"another model")

// Read reads both sections of the file of a model of d features and n samples. known tells
// whether the file says how the model came about.
func Read(file []byte, d, n int) (names Names, m Made, known bool, err error) {
	b, _, err := quantmf.Section(file, "name")
	if err != nil {
		return names, m, false, err
	}
	if names.Features, b, err = cut(b, d); err == nil {
		names.Samples, b, err = cut(b, n)
	}
	if err == nil && len(b) > 0 {
		err = ErrNames
	}
	if err != nil {
		return Names{}, m, false, err
	}
	text, _, err := quantmf.Section(file, "made")
	m.read(string(text))
	return names, m, len(text) > 0, err
}

// cut reads count names, or none, off b; nil stands for none.
func cut(b []byte, count int) (names []string, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, nil
	}
	number := func() (v uint64, ok bool) {
		if ok = len(b) >= 8; ok {
			v, b = section.Get64(b), b[8:]
		}
		return v, ok
	}
	n, ok := number()
	if !ok || n != 0 && n != uint64(count) {
		return nil, nil, ErrNames
	}
	for range n {
		size, ok := number()
		if !ok || size > uint64(len(b)) {
			return nil, nil, ErrNames
		}
		names = append(names, string(b[:size]))
		b = b[size:]
	}
	return names, b, nil
}

// lines returns what say says by its function, a line for each pair; it leaves out those without a value.
func lines(say func(line func(key, value string))) string {
	var s strings.Builder
	say(func(key, value string) {
		if value != "" {
			s.WriteString(key + "\t" + strings.NewReplacer("\n", " ", "\r", " ").Replace(value) + "\n")
		}
	})
	return s.String()
}

// pairs are those of a text that lines made.
func pairs(text string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for l := range strings.SplitSeq(text, "\n") {
			if key, value, _ := strings.Cut(l, "\t"); !yield(key, value) {
				return
			}
		}
	}
}

// text says what is known.
func (m *Made) text(line func(key, value string)) {
	yes := map[bool]string{true: "yes"}
	line("matrix", m.Matrix)
	line("sha256", m.SHA256)
	line("command", m.Command)
	line("log1p", yes[m.Log1p])
	line("top", yes[m.Top])
	line("losses", m.Losses)
	for _, w := range m.Warnings {
		line("warning", w)
	}
	m.Unseen.text(line)
	var stability []string
	for _, s := range m.Stability {
		stability = append(stability, strconv.FormatFloat(s, 'g', 4, 64))
	}
	line("stability", strings.Join(stability, " "))
}

// read takes in what text wrote; lines that it does not know are of a later
// version.
func (m *Made) read(text string) {
	for key, value := range pairs(text) {
		switch key {
		case "matrix":
			m.Matrix = value
		case "sha256":
			m.SHA256 = value
		case "command":
			m.Command = value
		case "log1p":
			m.Log1p = true
		case "top":
			m.Top = true
		case "losses":
			m.Losses = value
		case "warning":
			m.Warnings = append(m.Warnings, value)
		case "unseen", "auto", "beside":
			m.Unseen.read(key, value)
		case "stability":
			for _, text := range strings.Fields(value) {
				s, _ := strconv.ParseFloat(text, 64)
				m.Stability = append(m.Stability, s)
			}
		}
	}
}
