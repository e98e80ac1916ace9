package table

// This file holds GCT, the Broad Institute's text format for expression:
//
//	#1.2                              #1.3
//	d	n                               d	n	descriptions of rows	descriptions of columns
//	Name	Description	s1	s2 ...     id	desc ...	s1	s2 ...
//	g1	what it is	5	6 ...          descriptions of columns, then rows as before
//
// Names are kept, descriptions are not.

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// lines reads a file line by line.
type lines struct {
	source
	line int // of the one read last
}

// next returns the next line without its end; io.EOF behind the last one.
func (l *lines) next() (string, error) {
	text, err := l.ReadString('\n')
	if err != nil && err != io.EOF {
		return "", l.failed(err, l.line+1)
	}
	if err == io.EOF && text == "" {
		return "", err
	}
	l.line++
	return strings.TrimRight(text, "\r\n"), nil
}

// nextFull returns the next line that is not blank.
func (l *lines) nextFull() (string, error) {
	for {
		text, err := l.next()
		if err != nil || strings.TrimSpace(text) != "" {
			return text, err
		}
	}
}

func (l *lines) fault(column int, format string, args ...any) *Error {
	return &Error{File: l.file, Line: l.line, Column: column, Problem: fmt.Sprintf(format, args...)}
}

// count parses a size or an index.
func count(text string) (uint64, bool) {
	v, err := strconv.ParseUint(text, 10, 31)
	return v, err == nil
}

func readGCT(s source) (*Table, error) {
	l := &lines{source: s}
	version, err := l.next()
	if err != nil {
		return nil, err
	}
	text, err := l.next()
	if err != nil && err != io.EOF {
		return nil, err
	}
	fields := strings.Fields(text)
	want := 2
	if strings.HasPrefix(version, "#1.3") {
		want = 4
	}
	var sizes [4]uint64 // features, samples, descriptions of features and of samples
	sizes[2] = 1
	ok := len(fields) == want
	for f := 0; ok && f < want; f++ {
		sizes[f], ok = count(fields[f])
	}
	if !ok {
		return nil, l.fault(0, "here must be %d whole numbers, the number of features, that of samples, ...", want)
	}
	if sizes[0] == 0 || sizes[1] == 0 {
		return nil, l.fault(0, "the file says that it has %d features and %d samples", sizes[0], sizes[1])
	}
	if problem := s.tooMany(sizes[0], sizes[1]); problem != "" {
		return nil, l.fault(0, "%s", problem)
	}
	d, n, skip := int(sizes[0]), int(sizes[1]), 1+int(sizes[2])
	cells := func(what string) ([]string, error) {
		text, err := l.next()
		if err == io.EOF {
			return nil, l.fault(0, "the file ends here, where %s should follow: copy or download it again", what)
		}
		if err != nil {
			return nil, err
		}
		row := strings.Split(text, "\t")
		for len(row) > skip+n && row[len(row)-1] == "" { // tabs at the end
			row = row[:len(row)-1]
		}
		if len(row) != skip+n {
			return nil, l.fault(min(len(row), skip+n)+1, "this line has %d cells, the numbers in line 2 make it %d", len(row), skip+n)
		}
		return row, nil
	}
	head, err := cells("the names of the samples")
	if err != nil {
		return nil, err
	}
	t := &Table{File: s.file, Samples: slices.Clone(head[skip:]), NamedFeatures: true, NamedSamples: true, field: skip + 1}
	for range sizes[3] {
		if _, err := cells("a description of the samples"); err != nil {
			return nil, err
		}
	}
	var values []float64
	for range d {
		row, err := cells("a feature")
		if err != nil {
			return nil, err
		}
		for j, cell := range row[skip:] {
			v, problem := s.number(cell)
			if problem != "" {
				e := l.fault(skip+j+1, "%s", problem)
				e.Feature, e.Sample = row[0], t.Samples[j]
				return nil, e
			}
			values = append(values, v)
		}
		t.Features = append(t.Features, strings.Clone(row[0]))
		t.lines = append(t.lines, l.line)
	}
	switch _, err := l.nextFull(); {
	case err == nil:
		return nil, l.fault(0, "there are more lines than the %d features of line 2", d)
	case err != io.EOF:
		return nil, err
	}
	t.X = quantmf.Mat{Rows: d, Cols: n, Data: values, Stride: n}
	return t, nil
}

func writeGCT(out *bufio.Writer, rows, columns []string, m quantmf.Mat) {
	fmt.Fprintf(out, "#1.2\n%d\t%d\nName\tDescription", len(rows), len(columns))
	for _, c := range columns {
		out.WriteString("\t" + c)
	}
	out.WriteByte('\n')
	var line []byte
	for i, r := range rows {
		line = append(append(line[:0], r...), '\t')
		for _, v := range m.Row(i) {
			line = strconv.AppendFloat(append(line, '\t'), v, 'g', -1, 64)
		}
		out.Write(append(line, '\n'))
	}
}
