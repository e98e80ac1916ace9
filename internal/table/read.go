package table

// This file holds the reader of text, and the choice between readers. What a file
// is, compressed or not, which character separates its cells, whether it has a
// header and a column of names, is known by its content, never by its name.

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// Options say what a matrix may hold beside finite numbers of at least 0, and
// how much.
type Options struct {
	Missing  bool // missing values, which become NaN
	Negative bool
	MaxCells int // most numbers, 0 for 2^30: 8 GiB
}

// Read reads a matrix in any of the formats. A fault in the content is an
// [*Error]; file is what it calls the file.
func Read(r io.Reader, file string, o Options) (*Table, error) {
	if o.MaxCells == 0 {
		o.MaxCells = 1 << 30
	}
	in := bufio.NewReaderSize(r, sniffed)
	zipped := false
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, &Error{File: file, Problem: damaged(err)}
		}
		in, zipped = bufio.NewReaderSize(z, sniffed), true
	}
	if bom, _ := in.Peek(3); bytes.Equal(bom, []byte("\ufeff")) {
		in.Discard(3)
	}
	head, headErr := in.Peek(sniffed)
	s := source{Reader: in, Options: o, file: file, zipped: zipped}
	for _, format := range []struct {
		magic string
		read  func(source) (*Table, error)
	}{{npyMagic, readNPY}, {zipMagic, readNPZ}, {mtxMagic, readMTX}, {"#1.2", readGCT}, {"#1.3", readGCT}} {
		if bytes.HasPrefix(head, []byte(format.magic)) {
			return format.read(s)
		}
	}
	if problem := foreign(head); problem != "" {
		return nil, &Error{File: file, Problem: problem}
	}

	t := &reading{source: s, line: 1}
	t.csv = csv.NewReader(in)
	t.csv.Comma = separator(head, headErr != nil)
	t.csv.LazyQuotes = t.csv.Comma == '\t' // in tab-separated text a quotation mark is most often just one
	t.csv.FieldsPerRecord = -1
	t.csv.ReuseRecord = true
	return t.read()
}

// source is what a reader of one format reads from.
type source struct {
	*bufio.Reader
	Options
	file   string
	zipped bool
}

// failed says what an error of reading, not of content, means.
func (s source) failed(err error, line int) error {
	if s.zipped {
		return &Error{File: s.file, Line: line, Problem: damaged(err)}
	}
	return fmt.Errorf("%s: %w", s.file, err)
}

// tooMany reports a matrix with more numbers than there may be.
func (s source) tooMany(rows, cols uint64) string {
	if cols == 0 || rows <= uint64(s.MaxCells)/cols {
		return ""
	}
	return fmt.Sprintf("%d × %d numbers would take more than the %.3g GiB of memory that a matrix may have", rows, cols, float64(s.MaxCells)/(1<<27))
}

// sniffed is how many bytes are looked at before reading starts.
const sniffed = 1 << 16

func damaged(err error) string {
	return fmt.Sprintf("the gzip data are damaged or cut short (%v): copy or download the file again", err)
}

// foreign names the kind of a file that holds no plain text, "" for text.
func foreign(head []byte) string {
	has := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case has("\xff\xfe"), has("\xfe\xff"):
		return "this is text in UTF-16: save it as UTF-8 (in Excel: \"CSV UTF-8\")"
	case bytes.IndexByte(head, 0) >= 0:
		return "this is a binary file of a kind not known here: give the matrix as CSV, tab-separated text, GCT, Matrix Market, npy or npz"
	}
	return ""
}

// separator chooses tab, semicolon or comma by the first lines: one that makes
// the same number of cells in each, the header perhaps one fewer. Semicolons go
// before commas, which may be decimal ones.
func separator(head []byte, whole bool) rune {
	lines := bytes.Split(head, []byte("\n"))
	if !whole && len(lines) > 1 {
		lines = lines[:len(lines)-1]
	}
	lines = slices.DeleteFunc(lines, func(l []byte) bool { return len(bytes.TrimSpace(l)) == 0 })
	lines = lines[:min(len(lines), 20)]

	best, most := ',', 0
	for _, sep := range []byte("\t;,") {
		counts, sum := make([]int, len(lines)), 0
		for i, l := range lines {
			counts[i] = separators(l, sep)
			sum += counts[i]
		}
		if sum == 0 {
			continue
		}
		body := counts[min(1, len(counts)-1):]
		if slices.Min(body) == slices.Max(body) && (counts[0] == body[0] || counts[0] == body[0]-1) {
			return rune(sep)
		}
		if sum > most {
			best, most = rune(sep), sum
		}
	}
	return best
}

// separators counts those outside quotation marks, which open at the start of a
// cell, whatever separates the cells.
func separators(line []byte, sep byte) int {
	n, quoted := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"' && quoted:
			if i+1 < len(line) && line[i+1] == '"' {
				i++
			} else {
				quoted = false
			}
		case c == '"':
			quoted = i == 0 || strings.IndexByte("\t;,", line[i-1]) >= 0
		case c == sep && !quoted:
			n++
		}
	}
	return n
}

// reading is a table half read.
type reading struct {
	source
	csv  *csv.Reader
	line int // of the record read last

	header   []string // one name per field; nil without a header
	width    int      // fields in a row
	named    bool     // the first field holds names
	first    []string // the first field of every row
	lines    []int
	values   []float64 // every field of every row, the first one only where it is a number
	unnamed1 *Error    // the first fault of the first fields, counting if they are no names
}

func (t *reading) read() (*Table, error) {
	row, err := t.next()
	if err == io.EOF {
		return nil, &Error{File: t.file, Problem: "the file is empty: it should hold features in rows and samples in columns"}
	}
	if err != nil {
		return nil, err
	}
	first, line := slices.Clone(row), t.line
	row, err = t.next()
	if err != nil && err != io.EOF {
		return nil, err
	}
	last := err == io.EOF
	t.width = len(first)
	if len(first) == 1 && (last || len(row) == 1) {
		return nil, &Error{File: t.file, Line: line, Problem: "only one column was found: separate the cells of a line by tabs, commas or semicolons"}
	}

	short := !last && len(first) == len(row)-1
	switch {
	case short && isShortHeader(first, row[0]):
		t.header, t.width, t.named = append([]string{""}, first...), len(row), true
	case isHeader(first):
		t.header, t.named = first, isHeading(first[0])
	default:
		if err := t.add(first, line); err != nil {
			return nil, err
		}
	}
	for !last {
		if err := t.add(row, t.line); err != nil {
			return nil, err
		}
		row, err = t.next()
		if last = err == io.EOF; err != nil && !last {
			return nil, err
		}
	}
	return t.table()
}

// next returns the next line that is not blank.
func (t *reading) next() ([]string, error) {
	for {
		row, err := t.csv.Read()
		if len(row) > 0 {
			t.line, _ = t.csv.FieldPos(0)
		}
		var syntax *csv.ParseError
		switch {
		case err == io.EOF:
			return nil, err
		case errors.As(err, &syntax):
			return nil, &Error{File: t.file, Line: syntax.Line, Column: len(row) + 1,
				Problem: `a quotation mark that is out of place or never closed: put a cell that holds one in quotation marks and double those inside`}
		case err != nil:
			return nil, t.failed(err, t.line)
		}
		for i, cell := range row {
			if strings.ContainsAny(cell, "\r\n") {
				line, _ := t.csv.FieldPos(i)
				return nil, &Error{File: t.file, Line: line, Column: i + 1,
					Problem: "a cell with a line break in it: close the quotation mark left open, or end lines as Unix (LF) or Windows (CRLF) does"}
			}
		}
		if slices.ContainsFunc(row, func(cell string) bool { return cell != "" }) {
			return row, nil
		}
	}
}

// add takes in a line of numbers.
func (t *reading) add(row []string, line int) error {
	t.named = t.named || !numberLike(row[0])
	fault := func(field int, problem string) *Error {
		e := &Error{File: t.file, Line: line, Column: field + 1, Problem: problem}
		e.Feature = featureName(row[0], len(t.first), t.named)
		if field < t.width && !(t.named && field == 0) {
			e.Sample = t.sampleName(field)
		}
		return e
	}
	if len(row) != t.width {
		before := fmt.Sprintf("the lines before it have %d", t.width)
		if len(t.first) == 0 {
			before = fmt.Sprintf("the header has %d", t.width)
		}
		todo := "add the missing cells"
		if len(row) > t.width {
			todo = "remove the cells that are too many"
		}
		return fault(min(len(row), t.width), fmt.Sprintf("this line has %d cells, %s: %s", len(row), before, todo))
	}
	if problem := t.tooMany(uint64(len(t.first)+1), uint64(t.width)); problem != "" {
		return &Error{File: t.file, Line: line, Problem: problem}
	}
	for f, cell := range row {
		v, problem := t.number(cell)
		if problem != "" {
			e := fault(f, problem)
			if f > 0 {
				return e
			}
			if t.unnamed1 == nil {
				t.unnamed1 = e
			}
		}
		t.values = append(t.values, v)
	}
	t.first = append(t.first, strings.Clone(row[0]))
	t.lines = append(t.lines, line)
	return nil
}

// table makes the table once all lines are known.
func (t *reading) table() (*Table, error) {
	if len(t.first) == 0 {
		return nil, &Error{File: t.file, Line: t.line, Problem: "there is a header and no row of numbers below it"}
	}
	skip := 1
	if !t.named {
		if t.unnamed1 != nil {
			return nil, t.unnamed1
		}
		skip = 0
	}
	d := len(t.first)
	out := &Table{
		File:          t.file,
		Features:      t.first,
		Samples:       make([]string, t.width-skip),
		X:             quantmf.Mat{Rows: d, Cols: t.width - skip, Data: t.values[skip:], Stride: t.width},
		NamedFeatures: t.named,
		NamedSamples:  t.header != nil,
		lines:         t.lines,
		field:         skip + 1,
	}
	for i := range out.Features {
		out.Features[i] = featureName(t.first[i], i, t.named)
	}
	for j := range out.Samples {
		out.Samples[j] = t.sampleName(skip + j)
	}
	return out, nil
}

// numbered returns prefix1, prefix2, ...: names where a file has none.
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}

func featureName(first string, i int, named bool) string {
	if named {
		return first
	}
	return "f" + strconv.Itoa(i+1)
}

func (t *reading) sampleName(field int) string {
	switch {
	case t.header != nil:
		return strings.Clone(t.header[field])
	case t.named:
		return "s" + strconv.Itoa(field)
	default:
		return "s" + strconv.Itoa(field+1)
	}
}

// isHeader reports whether a first line holds names: a cell beyond the first is
// no number, or the first is what a column of names is usually called.
func isHeader(row []string) bool {
	return isHeading(row[0]) || !allNumberLike(row[1:])
}

// isShortHeader reports whether a first line that is one cell shorter than the
// next is a header as R writes it, without a cell above the names, and not a
// row of numbers that lacks one.
func isShortHeader(row []string, below string) bool {
	if allNumberLike(row) {
		return !numberLike(below)
	}
	return len(row) == 1 || !allNumberLike(row[1:])
}

func isHeading(cell string) bool {
	switch strings.ToLower(strings.TrimSpace(cell)) {
	case "", "feature", "features", "component", "gene", "genes", "gene_id", "gene_name", "gene_symbol", "symbol", "probe", "probe_id",
		"id", "name", "names", "entrez", "entrez_id", "ensembl", "ensembl_id", "row", "rowname", "row.names":
		return true
	}
	return false
}

func allNumberLike(cells []string) bool {
	for _, c := range cells {
		if !numberLike(c) {
			return false
		}
	}
	return true
}

// numberLike reports whether a cell is a number or the mark of a missing one.
func numberLike(cell string) bool {
	if isMissing(cell) {
		return true
	}
	_, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

func isMissing(cell string) bool {
	switch strings.ToLower(strings.TrimSpace(cell)) {
	case "", "na", "n/a", "#n/a", "<na>", "nan", "null", "none", "-", ".", "?":
		return true
	}
	return false
}

// number parses a cell, or says what is wrong with it and what to do.
func (o Options) number(cell string) (v float64, problem string) {
	text := strings.TrimSpace(cell)
	if isMissing(text) {
		if o.Missing {
			return math.NaN(), ""
		}
		if text == "" {
			return 0, "this cell is empty: " + fillIn
		}
		return 0, fmt.Sprintf("%q is a missing value: %s", text, fillIn)
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && v-v != 0:
		return 0, fmt.Sprintf("%q is not finite: fill in a finite number, or remove the feature or the sample", text)
	case err != nil && strings.Count(text, ",") == 1 && isNumber(strings.Replace(text, ",", ".", 1)):
		return 0, fmt.Sprintf("%q has a decimal comma: write decimals with a point", text)
	case err != nil:
		return 0, fmt.Sprintf("%q is not a number: write a number here; names belong into the first line and the first column", text)
	}
	return v, o.check(v)
}

const fillIn = "give -missing, fill in a number, or remove the feature or the sample"

// check says what is wrong with a number.
func (o Options) check(v float64) (problem string) {
	switch {
	case v != v && !o.Missing:
		return "NaN is a missing value: " + fillIn
	case v != v:
		return ""
	case v-v != 0:
		return fmt.Sprintf("%g is not finite: fill in a finite number, or remove the feature or the sample", v)
	case v < 0 && !o.Negative:
		return fmt.Sprintf("%g is negative: this needs values of at least 0, such as counts or log2(1+x); centred values and log ratios are for -loss frobenius, with -method qmf or qmfq and without -log1p", v)
	}
	return ""
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}
