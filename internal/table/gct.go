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

// gctSizes reads the first two lines: the numbers of features, of samples, of descriptions of features, and of
// descriptions of samples. It refuses a matrix that memory does not allow.
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
		return sizes, s.fault(0, "here must be %d whole numbers: the number of features, the number of samples, ...", want)
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

func readGCT(s *source) (*Table, error) {
	sizes, err := gctSizes(s)
	if err != nil {
		return nil, err
	}
	d, n, skip := int(sizes[0]), int(sizes[1]), 1+int(sizes[2])
	// line returns the next line, which has a cell for every column.
	line := func(what string) ([]byte, error) {
		text, err := s.nextLine()
		if err == io.EOF {
			return nil, s.fault(0, "the file ends here, where %s should follow: copy or download it again", what)
		}
		if err != nil {
			return nil, err
		}
		count := bytes.Count(text, []byte("\t")) + 1
		for count > skip+n && text[len(text)-1] == '\t' { // tabs at the end
			text = text[:len(text)-1]
			count--
		}
		if count != skip+n {
			return nil, s.fault(min(count, skip+n)+1, "this line has %d cells; by the numbers in line 2 it must have %d", count, skip+n)
		}
		return text, nil
	}
	// cut cuts a cell off.
	cut := func(text []byte) (cell, rest []byte) {
		cell, rest, _ = bytes.Cut(text, []byte("\t"))
		return cell, rest
	}
	head, err := line("the names of the samples")
	if err != nil {
		return nil, err
	}
	if err := s.take(int64(len(head))+(24+8)*int64(n), "so many names of samples"); err != nil {
		return nil, err
	}
	t := &Table{File: s.file, NamedFeatures: true, NamedSamples: true,
		Taken: "GCT, features named by column 1, samples by line 3"}
	if sizes[2] > 0 || sizes[3] > 0 {
		t.Taken += fmt.Sprintf("; descriptions left out: %d of features, %d of samples", sizes[2], sizes[3])
	}
	for f := range skip + n {
		var name []byte
		if name, head = cut(head); f >= skip {
			t.Samples = append(t.Samples, string(name))
			t.fields = append(t.fields, f+1)
		}
	}
	for range sizes[3] {
		if _, err := line("a description of the samples"); err != nil {
			return nil, err
		}
	}
	values := numberList{s: s}
	if _, bytes, known := s.extent(math.MaxInt64); known { // a number and its tab are two bytes, an empty cell is one
		if err := values.reserve(int(min(int64(d)*int64(n), bytes))); err != nil {
			return nil, err
		}
	}
	for range d {
		text, err := line("a feature")
		if err != nil {
			return nil, err
		}
		row, err := values.next(n)
		if err != nil {
			return nil, err
		}
		name, rest := cut(text)
		if err := s.take(int64(len(name))+32+8, "so many names of features"); err != nil {
			return nil, err
		}
		t.Features = append(t.Features, string(name))
		t.lines = append(t.lines, s.line)
		for range skip - 1 {
			_, rest = cut(rest)
		}
		for j := range row {
			if v, size, ok := decimal(rest, '\t'); ok && s.fine(v) {
				row[j] = v
				rest = rest[min(size+1, len(rest)):]
				continue
			}
			var cell []byte
			cell, rest = cut(rest)
			v, problem := s.number(string(cell))
			if problem != "" {
				e := s.fault(skip+j+1, "%s", problem)
				s.naming(e, t.Features[len(t.Features)-1], t.Samples[j])
				return nil, e
			}
			row[j] = v
		}
	}
	switch _, err := s.nextFull(); {
	case err == nil:
		return nil, s.fault(0, "there are more lines than the %d features of line 2", d)
	case err != io.EOF:
		return nil, err
	}
	data, err := values.all()
	if err != nil {
		return nil, err
	}
	t.X = quantmf.Mat{Rows: d, Cols: n, Data: data, Stride: n}
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
