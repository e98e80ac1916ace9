package table

// This file holds what is particular to a series matrix, the form in which GEO, the Gene Expression Omnibus,
// offers the numbers of a series: metadata in lines that begin with an exclamation mark, then one table
// between two marks.
//
//	!Series_title	"a title"
//	!Sample_title	"first sample"	"second sample"
//	!series_matrix_table_begin
//	"ID_REF"	"GSM1"	"GSM2"
//	"1007_s_at"	7.5	6.25
//	!series_matrix_table_end
//
// The table is text like any other. The metadata are left out.

import (
	"bytes"
	"io"
)

// seriesBegin and seriesEnd are the lines around the table of a series matrix.
const (
	seriesBegin = "!series_matrix_table_begin"
	seriesEnd   = "!series_matrix_table_end"
)

// isSeries tells whether a file that starts so is a series matrix.
func isSeries(start []byte) bool {
	for _, s := range []string{"!Series_", "!Sample_", "!series_matrix_"} {
		if bytes.HasPrefix(start, []byte(s)) {
			return true
		}
	}
	return false
}

// isMark tells whether a line is a mark of a series matrix. Spreadsheets add separators or quotation marks.
func isMark(line []byte, mark string) bool { return string(bytes.Trim(line, "\t ,;\"")) == mark }

// toSeries reads the metadata of a series matrix, up to the mark that its table follows.
func (r *textReader) toSeries() error {
	for {
		switch line, err := r.nextLine(); {
		case err == io.EOF:
			return r.fault(0, "this is a series matrix of GEO and ends before its table, which begins with "+
				"the line %s: copy or download it again", seriesBegin)
		case err != nil:
			return err
		case isMark(line, seriesBegin):
			r.series = true
			return nil
		}
	}
}

// nextLine is that of the source, of which a GCT is checked. In the table of a series matrix it returns
// io.EOF for the mark behind it. A file without that mark was cut, and its last number may be, too.
func (r *textReader) nextLine() ([]byte, error) {
	line, err := r.source.nextLine()
	switch {
	case r.most > 0:
		return r.ofGCT(line, err)
	case !r.series:
		return line, err
	case err == nil && isMark(line, seriesEnd):
		_, err := r.nextFull() // to the end of the content, where what is compressed is checked
		if err == nil {
			err = r.fault(0, "there are more lines behind %s, with which a series matrix ends", seriesEnd)
		}
		return nil, err
	case err == io.EOF, err == nil && r.err == io.EOF && r.from == r.to:
		return nil, r.cutSeries(r.line)
	}
	return line, err
}

// cutSeries is the error of a series matrix that ends with another line.
func (r *textReader) cutSeries(line int) *Error {
	return &Error{File: r.file, Line: line,
		Problem: "the file ends here, and a series matrix of GEO ends with the line " + seriesEnd +
			": copy or download it again"}
}

// noNumbers is the error of a text without rows below its header.
func (r *textReader) noNumbers() *Error {
	if r.series {
		return r.fault(0, "the table of this series matrix has no rows: GEO has the numbers of such "+
			"series, as of sequencing, in supplementary files")
	}
	return r.fault(0, "there is a header and no row of numbers below it")
}
