package main

// This file holds models as the command has them: of any kind, with the names of
// features and samples and how they came about, which model files keep in
// sections of their own (model.go of the package has those of its own).

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// model is a fitted model of any kind.
type model struct {
	quantmf.Model
	method              string // qmf, qmfq, nmf or bqmf
	u, v                quantmf.Mat
	history, validation []float64
	best                int
	warnings            []error
	bend                func() []float64                           // nil in an NMF
	scale               func(i int) (func(float64) float64, error) // T_i; nil in an NMF

	features, samples           []string
	namedFeatures, namedSamples bool
	made
}

// made is how a model came about, empty where that is not known.
type made struct {
	matrix      string // its name
	command     string // that repeats the fit
	log1p       bool   // log(1+x) was taken first
	top         bool   // not all features of the matrix were fitted
	losses      string // which loss was taken and why, where that was left to the command
	words       []string
	unconverged int
	nmf         float64 // the final loss of an NMF of the same rank
	nmfUpdates  int     // after so many; 0 for none
	// What it explains of the average feature; NaN where that is not known.
	nmfExplained float64
}

// modelOf opens a model of the package up. It has no names yet.
func modelOf(m quantmf.Model) *model {
	switch m := m.(type) {
	case *quantmf.NMF:
		return &model{Model: m, method: "nmf", u: m.U, v: m.V, history: m.History, validation: m.Validation, best: m.Best, warnings: m.Warnings}
	case *quantmf.QMF:
		return &model{Model: m, method: "qmf", u: m.U, v: m.V, history: m.History, validation: m.Validation, best: m.Best, warnings: m.Warnings,
			bend: m.Bend, scale: at(m.Map)}
	case *quantmf.QMFQ:
		return &model{Model: m, method: "qmfq", u: m.U, v: m.V, history: m.History, validation: m.Validation, best: m.Best, warnings: m.Warnings,
			bend: m.Bend, scale: at(m.Inflate)}
	case *quantmf.BQMF:
		return &model{Model: m, method: "bqmf", u: m.U, v: m.V, history: m.History, validation: m.Validation, best: m.Best, warnings: m.Warnings,
			bend: m.Bend, scale: at(m.Map)}
	}
	panic("a model of no kind")
}

// at makes functions of the maps of a model.
func at[M interface{ At(w float64) float64 }](maps func(i int) (M, error)) func(i int) (func(float64) float64, error) {
	return func(i int) (func(float64) float64, error) {
		m, err := maps(i)
		if err != nil {
			return nil, err
		}
		return m.At, nil
	}
}

// title names the kind as people do, with its formula.
func (m *model) title() (name, formula string) {
	switch m.method {
	case "nmf":
		return "NMF", "X = UV"
	case "qmf":
		return "QMF", "X = T(UV), one increasing map T per feature"
	}
	if m.method == "bqmf" {
		return "BQMF", "X = T(UV), U and V of either sign, with the uncertainty of every value"
	}
	return "QMFQ", "X = T(P(T'(X))), two increasing maps per feature and P a projection onto the components"
}

// signed tells whether values may be negative; whether they may under the loss that was
// fitted is for the package to say.
func (m *model) signed() bool { return m.method != "nmf" && !m.log1p }

// named gives the model the names of the matrix that was fitted.
func (m *model) named(t *table.Table) {
	m.features, m.samples, m.namedFeatures, m.namedSamples = t.Features, t.Samples, t.NamedFeatures, t.NamedSamples
}

// marshal returns the model as a file.
func (m *model) marshal() ([]byte, error) {
	data, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	if data, err = quantmf.AppendSection(data, "name", m.names()); err != nil {
		return nil, err
	}
	return quantmf.AppendSection(data, "made", []byte(m.made.text()))
}

// names returns the names that the matrix gave.
func (m *model) names() []byte {
	var names []byte
	for _, part := range []struct {
		names []string
		given bool
	}{{m.features, m.namedFeatures}, {m.samples, m.namedSamples}} {
		if !part.given {
			part.names = nil
		}
		names = binary.LittleEndian.AppendUint64(names, uint64(len(part.names)))
		for _, n := range part.names {
			names = binary.LittleEndian.AppendUint64(names, uint64(len(n)))
			names = append(names, n...)
		}
	}
	return names
}

// text returns what is known as lines.
func (m *made) text() string {
	var s strings.Builder
	line := func(key, value string) {
		if value != "" {
			s.WriteString(key + "\t" + strings.NewReplacer("\n", " ", "\r", " ").Replace(value) + "\n")
		}
	}
	yes := map[bool]string{true: "yes"}
	line("matrix", m.matrix)
	line("command", m.command)
	line("log1p", yes[m.log1p])
	line("top", yes[m.top])
	line("losses", m.losses)
	for _, w := range m.words {
		line("warning", w)
	}
	if m.unconverged > 0 {
		line("unconverged", strconv.Itoa(m.unconverged))
	}
	if m.nmfUpdates > 0 {
		line("nmf updates", strconv.Itoa(m.nmfUpdates))
		line("nmf", strconv.FormatFloat(m.nmf, 'g', -1, 64))
		line("nmf explained", strconv.FormatFloat(m.nmfExplained, 'g', -1, 64))
	}
	return s.String()
}

// read takes in what text wrote; lines that it does not know are of a later
// version.
func (m *made) read(text string) {
	m.nmfExplained = math.NaN()
	for _, l := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(l, "\t")
		switch key {
		case "matrix":
			m.matrix = value
		case "command":
			m.command = value
		case "log1p":
			m.log1p = true
		case "top":
			m.top = true
		case "losses":
			m.losses = value
		case "warning":
			m.words = append(m.words, value)
		case "unconverged":
			m.unconverged, _ = strconv.Atoi(value)
		case "nmf updates":
			m.nmfUpdates, _ = strconv.Atoi(value)
		case "nmf explained":
			m.nmfExplained, _ = strconv.ParseFloat(value, 64)
		case "nmf":
			m.nmf, _ = strconv.ParseFloat(value, 64)
		}
	}
}

// unmarshal reads a model file.
func unmarshal(data []byte) (*model, error) {
	opened, err := quantmf.UnmarshalModel(data)
	if err != nil {
		return nil, err
	}
	m := modelOf(opened)
	if len(m.history) == 0 {
		return nil, &inputError{errors.New("model file: its fit was stopped before it began")}
	}
	names, _, err := quantmf.Section(data, "name")
	if err != nil {
		return nil, err
	}
	if err := m.setNames(names); err != nil {
		return nil, err
	}
	text, _, err := quantmf.Section(data, "made")
	if err != nil {
		return nil, err
	}
	m.made.read(string(text))
	if len(text) == 0 {
		for _, w := range m.warnings {
			m.words = append(m.words, w.Error())
		}
	}
	return m, nil
}

// setNames takes in what names wrote.
func (m *model) setNames(names []byte) error {
	for _, part := range []struct {
		to     *[]string
		given  *bool
		prefix string
		count  int
	}{{&m.features, &m.namedFeatures, "f", m.u.Rows}, {&m.samples, &m.namedSamples, "s", m.v.Cols}} {
		var read []string
		var err error
		if read, names, err = cutNames(names, part.count); err != nil {
			return err
		}
		if *part.given = read != nil; !*part.given {
			read = numbered(part.prefix, part.count)
		}
		*part.to = read
	}
	if len(names) > 0 {
		return &inputError{errNames}
	}
	return nil
}

var errNames = errors.New("model file: the names of features or samples are damaged, or those of another model")

// cutNames reads count names, or none, off b; nil stands for none.
func cutNames(b []byte, count int) (names []string, rest []byte, err error) {
	number := func() (int, bool) {
		if len(b) < 8 {
			return 0, false
		}
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return int(min(v, math.MaxInt32)), true
	}
	if len(b) == 0 {
		return nil, nil, nil
	}
	n, ok := number()
	if !ok || n != 0 && n != count {
		return nil, nil, &inputError{errNames}
	}
	for range n {
		size, ok := number()
		if !ok || size > len(b) {
			return nil, nil, &inputError{errNames}
		}
		names = append(names, string(b[:size]))
		b = b[size:]
	}
	return names, b, nil
}

// readModel also says which file it read, nil for standard input.
func readModel(path string, stdin io.Reader, l *limits) (*model, os.FileInfo, error) {
	in, info, err := open(path, stdin, "model")
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	// The file, the model and what it is put together from are of about the same size.
	most := int64(l.maxMemory) / 3
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if int64(len(data)) > most {
		return nil, nil, l.allows(3*float64(len(data)), path, "allow more")
	}
	m, err := unmarshal(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, info, nil
}

// fitted brings the matrix that was fitted to what the model saw: its samples,
// too, must be the model's.
func (m *model) fitted(t *table.Table, f *inputFlags, messages io.Writer) (*table.Table, error) {
	t, err := m.fitting(t, f, messages)
	if err != nil {
		return nil, err
	}
	if len(t.Samples) != len(m.samples) {
		return nil, t.Error(-1, -1, fmt.Sprintf("the matrix has %d samples, the model %d: give the matrix that was fitted", len(t.Samples), len(m.samples)))
	}
	if m.namedSamples && t.NamedSamples {
		for j, s := range m.samples {
			if t.Samples[j] != s {
				return nil, t.Error(-1, j, fmt.Sprintf("the model has %q in this place: give the matrix that was fitted", s))
			}
		}
	}
	return t, nil
}

func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}
