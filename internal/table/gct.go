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
	"strconv"

	"github.com/quantmf/quantmf"
)

// readGCT reads the lines above the rows. The rest is text, whose cells are separated by tabs; a quotation
// mark is an ordinary character.
func readGCT(s *source) (*Table, error) {
	sizes, err := s.gctSizes()
	if err != nil {
		return nil, err
	}
	features, samples, skip := sizes[0], sizes[1], 1+sizes[2] // the columns before those of the samples
	const many = "so many names of samples"
	if err := s.take(int64(skip+samples), many); err != nil {
		return nil, err
	}
	r := &textReader{source: s, values: s.numbers(), most: features, firstLine: 3,
		layout: &layout{sep: '\t', plain: true, header: true, values: samples,
			roles: bytes.Repeat([]byte{isLeft}, skip+samples)}}
	clear(r.roles[skip:]) // isValue
	r.roles[0] = isName
	head, err := r.nextLine()
	if err != nil {
		return nil, err
	}
	if err := r.take(int64(len(head)+64*len(r.roles)), many); err != nil {
		return nil, err
	}
	r.first = cells(head, r.sep, true)
	for range sizes[3] {
		if _, err := r.nextLine(); err != nil {
			return nil, err
		}
	}
	if err := r.reserve(); err != nil {
		return nil, err
	}
	t, err := r.rest()
	if err != nil {
		return nil, err
	}
	t.Taken = "GCT, features named by column 1, samples by line 3"
	if sizes[2] > 0 || sizes[3] > 0 {
		t.Taken += fmt.Sprintf("; descriptions left out: %d of features, %d of samples", sizes[2], sizes[3])
	}
	return t, nil
}

// gctSizes reads the first two lines: the numbers of features, of samples, of descriptions of features, and
// of descriptions of samples. It refuses a matrix that memory does not allow.
func (s *source) gctSizes() (sizes [4]int, err error) {
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
		var size uint64
		size, ok = count(string(fields[f]))
		sizes[f] = int(size)
	}
	if !ok {
		return sizes, s.fault(0,
			"here must be %d whole numbers: the number of features, the number of samples, ...", want)
	}
	if sizes[0] == 0 || sizes[1] == 0 {
		return sizes, s.fault(0, "the file says that it has %d features and %d samples", sizes[0], sizes[1])
	}
	return sizes, s.mayTakeMatrix(uint64(sizes[0]), uint64(sizes[1]))
}

// ofGCT checks a line below the second of a GCT, and cuts off tabs at its end.
func (r *textReader) ofGCT(line []byte, err error) ([]byte, error) {
	switch {
	case err == io.EOF && len(r.lines) < r.most:
		return nil, r.fault(0, "the file ends here, where a feature should follow: copy or download it again")
	case err != nil, r.blank(line):
		return line, err
	case len(r.lines) == r.most:
		return nil, r.fault(0, "there are more lines than the %d features of line 2", r.most)
	}
	count, want := bytes.Count(line, []byte("\t"))+1, len(r.roles)
	for count > want && line[len(line)-1] == '\t' {
		line = line[:len(line)-1]
		count--
	}
	if count != want {
		return nil, r.fault(min(count, want)+1,
			"this line has %d cells; by the numbers in line 2 it must have %d", count, want)
	}
	return line, nil
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
