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
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/quantmf/quantmf"
)

// gctSizes reads the first two lines: the numbers of features, of samples, of descriptions of features, and
// of descriptions of samples. It refuses a matrix that memory does not allow.
func gctSizes(s *source) (sizes [4]uint64, err error) {
	version, err := s.nextLine()
	if err != nil {
		return sizes, err
	}
	want := 2
	if bytes.HasPrefix(version, []byte("#1.3")) {
		want = 4
	}
	text, err := s.nextLine()
	if err != nil && err != io.EOF {
		return sizes, err
	}
	fields := bytes.Fields(text[:min(len(text), 1<<10)])
	sizes[2] = 1
	ok := len(fields) == want
	for f := 0; ok && f < want; f++ {
		sizes[f], ok = count(string(fields[f]))
	}
	if !ok {
		return sizes, s.fault(0,
			"here must be %d whole numbers: the number of features, the number of samples, ...", want)
	}
	if sizes[0] == 0 || sizes[1] == 0 {
		return sizes, s.fault(0, "the file says that it has %d features and %d samples", sizes[0], sizes[1])
	}
	if err := s.takeMatrix(sizes[0], sizes[1]); err != nil {
		return sizes, err
	}
	s.give(8 * int64(sizes[0]*sizes[1]))
	return sizes, nil
}

// gctReader is the state of the reading of a GCT.
type gctReader struct {
	*source
	d, n int
	skip int // the columns before those of the samples
	t    *Table
}

func readGCT(s *source) (*Table, error) {
	sizes, err := gctSizes(s)
	if err != nil {
		return nil, err
	}
	r := &gctReader{s, int(sizes[0]), int(sizes[1]), 1 + int(sizes[2]),
		&Table{File: s.file, NamedFeatures: true, NamedSamples: true,
			Taken: "GCT, features named by column 1, samples by line 3"}}
	if sizes[2] > 0 || sizes[3] > 0 {
		r.t.Taken += fmt.Sprintf("; descriptions left out: %d of features, %d of samples", sizes[2], sizes[3])
	}
	if err := r.header(); err != nil {
		return nil, err
	}
	for range sizes[3] {
		if _, err := r.row("a description of the samples"); err != nil {
			return nil, err
		}
	}
	values := numberList{s: s}
	// a number and its tab are two bytes, an empty cell is one
	if _, bytes, known := s.extent(math.MaxInt64); known {
		if err := values.reserve(int(min(int64(r.d)*int64(r.n), bytes))); err != nil {
			return nil, err
		}
	}
	for range r.d {
		if err := r.feature(&values); err != nil {
			return nil, err
		}
	}
	switch _, err := s.nextFull(); {
	case err == nil:
		return nil, s.fault(0, "there are more lines than the %d features of line 2", r.d)
	case err != io.EOF:
		return nil, err
	}
	data, err := values.all()
	if err != nil {
		return nil, err
	}
	r.t.X = quantmf.Mat{Rows: r.d, Cols: r.n, Data: data, Stride: r.n}
	return r.t, nil
}

// row returns the next line, which has a cell for every column. what it is stands in the error where there is
// none.
func (r *gctReader) row(what string) ([]byte, error) {
	text, err := r.nextLine()
	if err == io.EOF {
		return nil, r.fault(0, "the file ends here, where %s should follow: copy or download it again", what)
	}
	if err != nil {
		return nil, err
	}
	count, want := bytes.Count(text, []byte("\t"))+1, r.skip+r.n
	for count > want && text[len(text)-1] == '\t' { // tabs at the end
		text = text[:len(text)-1]
		count--
	}
	if count != want {
		return nil, r.fault(min(count, want)+1,
			"this line has %d cells; by the numbers in line 2 it must have %d", count, want)
	}
	return text, nil
}

// cutTab cuts the first cell off a line.
func cutTab(text []byte) (cell, rest []byte) {
	cell, rest, _ = bytes.Cut(text, []byte("\t"))
	return cell, rest
}

// header reads the names of the samples.
func (r *gctReader) header() error {
	head, err := r.row("the names of the samples")
	if err != nil {
		return err
	}
	if err := r.take(int64(len(head))+(24+8)*int64(r.n), "so many names of samples"); err != nil {
		return err
	}
	for f := range r.skip + r.n {
		var name []byte
		if name, head = cutTab(head); f >= r.skip {
			r.t.Samples = append(r.t.Samples, string(name))
			r.t.fields = append(r.t.fields, f+1)
		}
	}
	return nil
}

// feature reads the name and the numbers of a feature.
func (r *gctReader) feature(values *numberList) error {
	text, err := r.row("a feature")
	if err != nil {
		return err
	}
	row, err := values.next(r.n)
	if err != nil {
		return err
	}
	name, rest := cutTab(text)
	if err := r.take(int64(len(name))+32+8, "so many names of features"); err != nil {
		return err
	}
	r.t.Features = append(r.t.Features, string(name))
	r.t.lines = append(r.t.lines, r.line)
	for range r.skip - 1 {
		_, rest = cutTab(rest)
	}
	for j := range row {
		if v, size, ok := decimal(rest, '\t'); ok && r.fine(v) {
			row[j] = v
			rest = rest[min(size+1, len(rest)):]
			continue
		}
		var cell []byte
		cell, rest = cutTab(rest)
		v, problem := r.number(string(cell))
		if problem != "" {
			return r.naming(r.fault(r.skip+j+1, "%s", problem), string(name), r.t.Samples[j])
		}
		row[j] = v
	}
	return nil
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
