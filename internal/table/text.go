package table

// This file holds the reader of text, that is of lines of cells, by the layout that names.go finds.

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// textReader is the state of the reading of a text.
type textReader struct {
	*source
	*layout
	series      bool // the lines are those of the table of a series matrix
	most        int  // lines of numbers, as a GCT says; 0 where that is not known
	firstLine   int
	features    []string
	lines       []int
	values      list[float64]
	long        *longCells // nil unless the table is long
	odd         odd
	marks       marks
	point       byte  // before decimals, 0 where cells are parted by the same
	skipped     int   // lines below the header that are further headers
	heads       []int // the numbers of the first lines that are not blank
	hollow      int   // the lines of separators alone that were left out
	firstHollow int   // the number of the first of them
}

// headLines and headBytes bound the part of a text that the rules look at before reading starts: so many
// lines, or so many bytes, but at least 3 lines that are not blank, for which it looks among blank ones up to
// blankBytes. A table that begins behind so many bytes of blank lines is none.
const (
	headLines  = 50
	headBytes  = 1 << 18
	blankBytes = 1 << 22
)

func readText(s *source) (*Table, error) {
	r := &textReader{source: s, values: s.numbers()}
	for range s.Skip {
		if _, err := r.nextLine(); err == io.EOF {
			return nil, s.wrong("-skip %d: the file has no more lines than that", s.Skip)
		} else if err != nil {
			return nil, err
		}
	}
	comment, err := r.comments()
	if err != nil {
		return nil, err
	}
	head, err := r.head()
	if err != nil {
		return nil, err
	}
	if len(head) == 0 && r.series {
		return nil, r.noNumbers()
	}
	if len(head) == 0 {
		return nil, r.noTable()
	}
	if problem := s.foreign(s.buf[s.from:s.to]); problem != "" {
		return nil, s.wrong("%s", problem)
	}
	if err := r.plan(head, comment); err != nil {
		return nil, err
	}
	if err := r.reserve(); err != nil {
		return nil, err
	}
	if r.header && r.firstLine == 0 {
		line, err := r.nextRow()
		if err != nil {
			return nil, err
		}
		if bytes.ContainsRune(line, '\r') {
			return nil, r.oldMac(0)
		}
		for f, at := 0, begin(line, r.sep); at <= len(line); f++ {
			_, _, next, ok := field(line, at, r.sep, r.plain)
			if !ok {
				return nil, r.openQuote(f)
			}
			at = next
		}
		r.firstLine, r.hollow = r.line, 0
	}
	for range r.skipped {
		if _, err := r.nextRow(); err != nil {
			return nil, err
		}
		r.hollow = 0
	}
	return r.rest()
}

// noTable is the error of a text that begins with no table.
func (r *textReader) noTable() *Error {
	what := "the file is empty"
	if r.err == nil {
		what = "the file begins with blank lines alone"
	}
	return r.wrong("%s: it should hold features in rows and samples in columns", what)
}

// rest reads the lines of numbers.
func (r *textReader) rest() (*Table, error) {
	for {
		line, err := r.nextRow()
		ended := err == io.EOF
		if err == nil {
			err = r.add(line)
		}
		switch {
		case err != nil && r.odd.first != nil: // which came before
			return nil, r.wordsError()
		case ended:
			return r.table()
		case err != nil:
			return nil, err
		}
	}
}

// nextRow returns the next line that is not blank. A line of separators alone is blank.
func (r *textReader) nextRow() ([]byte, error) {
	for {
		line, err := r.nextLine()
		if err != nil || !r.blank(line) {
			return line, err
		}
		if r.sep != ' ' && bytes.IndexByte(line, r.sep) >= 0 {
			if r.hollow++; r.hollow == 1 {
				r.firstHollow = r.line
			}
		}
	}
}

// blank tells whether a line holds nothing but separators, of whatever kind.
func (r *textReader) blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != ',' && c != ';' && (c != r.Sep || c == 0) {
			return false
		}
	}
	return true
}

// comments reads the lines before the table: blank lines, a line such as sep=; for Excel, lines that start
// with a #, and the metadata of a series matrix. It returns the last line with a # if it stands right above
// the table and may be its header.
func (r *textReader) comments() (last []byte, err error) {
	blank := 0 // bytes of blank lines
	for first := true; ; first = false {
		start, err := r.peek(16)
		if err != nil && err != io.EOF {
			return nil, r.failed(err)
		}
		if isSeries(start) {
			return nil, r.toSeries()
		}
		isSep := first && r.Sep == 0 && len(start) > 4 && strings.EqualFold(string(start[:4]), "sep=")
		if !isSep && !bytes.HasPrefix(start, []byte("#")) && !bytes.HasPrefix(start, []byte("\n")) &&
			!bytes.HasPrefix(start, []byte("\r\n")) {
			return last, nil
		}
		line, err := r.nextLine()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if blank++; blank > blankBytes {
				return nil, r.noTable()
			}
		}
		switch {
		case isSep && len(line) == 5:
			r.Sep = line[4]
		case isSep && string(line[4:]) == `\t`, isSep && len(line) == 4 && start[4] == '\t':
			r.Sep = '\t'
		case isSep:
			return nil, r.fault(0, "%s names no separator of one character", quote(string(line)))
		case len(line) > 0:
			r.give(int64(cap(last)))
			if err := r.take(int64(len(line)), "a comment"); err != nil {
				return nil, err
			}
			last = bytes.Clone(line)
			r.firstLine = r.line
		}
	}
}

// head looks at the first lines.
func (r *textReader) head() ([][]byte, error) {
	for n := buffered; ; n *= 2 {
		b, err := r.peek(n)
		if err != nil && err != io.EOF {
			return nil, r.failed(err)
		}
		var lines [][]byte
		all := 0
		r.heads = r.heads[:0]
		for rest := b; len(rest) > 0 && len(lines) < headLines; {
			line, after, whole := bytes.Cut(rest, []byte("\n"))
			if !whole && err == nil {
				break
			}
			all++
			line = bytes.TrimRight(line, "\r")
			if r.series && isMark(line, seriesEnd) {
				return lines, nil
			}
			if !r.blank(line) {
				lines, r.heads = append(lines, line), append(r.heads, r.line+all)
			}
			rest = after
		}
		if err == io.EOF && r.series && len(lines) < headLines {
			return nil, r.cutSeries(r.line + all)
		}
		if err == io.EOF || len(lines) == headLines || n >= headBytes && len(lines) >= 3 || n >= blankBytes &&
			all >= headLines {
			return lines, nil
		}
	}
}

// plan finds the layout of the text.
func (r *textReader) plan(head [][]byte, comment []byte) error {
	sep := r.Sep
	if sep == 0 {
		sep = separator(head)
	}
	room := int64(0)
	for i, l := range head {
		room += 48 * int64(bytes.Count(l, []byte{sep})+1)
		if i >= 2 && room > headBytes {
			head = head[:i+1]
			break
		}
	}
	if err := r.take(room, "a line of so many cells"); err != nil {
		return err
	}
	defer r.give(room)
	rows := make([][]cell, len(head))
	for i, l := range head {
		rows[i] = cells(l, sep, false)
	}
	if r.Decimal == 0 && decimalComma(rows) {
		r.Decimal = ','
	}
	if r.point = r.Decimal; r.point == 0 {
		r.point = '.'
	} else if r.point == sep {
		r.point = 0
	}
	o := r.Options
	if err := r.isMetadata(rows); err != nil {
		return err
	}
	first, body := rows[0], rows[1:]
	if comment != nil {
		named := cells(bytes.TrimLeft(comment, "# "), sep, false)
		if o.Header == HeaderAuto && len(named) == len(first) && len(named) > 1 &&
			!o.allPlain(named[1:]) {
			first, body = named, rows
			o.Header = HeaderYes
		} else {
			comment = nil
		}
	}
	if comment == nil {
		r.firstLine = 0 // found when it is read
	}
	if len(first) == 1 && (len(body) == 0 || len(body[0]) == 1) {
		e := &Error{File: r.file, Line: r.line + 1,
			Problem: "only one column was found: separate the cells of a line by tabs, commas, semicolons " +
				"or blanks"}
		if r.inSheet {
			e.Problem = "only one column was found"
		} else if r.Sep != 0 {
			e.Problem = "only one column was found: no " + quote(string(r.Sep)) +
				" stands between cells, as -sep or a line sep= says: leave that out"
		}
		return e
	}
	further := 0
	if o.Long == "" && o.Header != HeaderNo {
		further = o.secondHeaders(body)
	}
	l, problem := o.layoutOf(sep, first, body[further:])
	if problem == "" && !l.header && further > 0 {
		further = 0
		l, problem = o.layoutOf(sep, first, body)
	}
	if problem != "" {
		return r.wrong("%s", problem)
	}
	if o.Long != "" {
		r.long = &longCells{lines: list[place]{s: r.source, bytes: 8, what: "lines"}}
	}
	if l.values == 0 {
		return &Error{File: r.file, Line: r.line + 1,
			Problem: "there is no column of numbers beside the names"}
	}
	if r.skipped = further; further > 0 {
		at := r.heads[len(rows)-len(body)]
		which := fmt.Sprintf("line %d holds", at)
		if further > 1 {
			which = fmt.Sprintf("lines %d to %d hold", at, r.heads[len(rows)-len(body)+further-1])
		}
		l.doubt(fmt.Sprintf("%s words alone, as %s: taken for a further header and left out", which,
			quote(body[0][min(1, len(body[0])-1)].text)))
	}
	r.layout = l
	names := int64(0)
	for _, c := range first {
		names += int64(len(c.text)) + 32
	}
	return r.take(names+int64(len(l.roles)), "so many names of samples")
}

// isMetadata is the error of lines before the table that say what it is: they have fewer cells than all lines
// below them, of which there are two or more.
func (r *textReader) isMetadata(rows [][]cell) error {
	last := len(rows) - 1
	from := last
	for from > 0 && len(rows[from-1]) == len(rows[last]) {
		from--
	}
	if from > 0 && len(rows[from-1]) == len(rows[last])-1 && last-from > 0 { // a header without a corner
		from--
	}
	if from == 0 || last-from < 2 || slices.ContainsFunc(rows[:from], func(row []cell) bool {
		return len(row) >= len(rows[last])-1
	}) {
		return nil
	}
	return &Error{File: r.file, Line: r.heads[0],
		Problem: fmt.Sprintf("the first lines have fewer cells than "+
			"those from line %d on, as lines do that describe a table: give -skip %d to leave them out",
			r.heads[from], r.heads[from]-1)}
}

// reserve allocates the memory for all numbers at once if the file can be read twice. Then nothing is moved.
// Every cell ends in a separator or the end of its line, so there are never more numbers than bytes.
func (r *textReader) reserve() error {
	if r.err == io.EOF { // all is in the buffer
		n := int64(bytes.Count(r.buf[r.from:r.to], []byte("\n")) + 1)
		return r.values.reserve(int(min(n*int64(r.layout.values), int64(r.to-r.from)+1)))
	}
	most := r.left / int64(8*r.layout.values) // the number of lines for which there is memory
	lines, size, known := r.extent(most + int64(r.line) + 1)
	if !known {
		return nil
	}
	if lines -= int64(r.line); r.header && r.firstLine == 0 {
		lines--
	}
	if lines > most {
		return r.take(r.all+1, fmt.Sprintf("more than %d lines of %d numbers", most, r.layout.values))
	}
	return r.values.reserve(int(min(lines*int64(r.layout.values), size+1)))
}

// add adds a line of numbers to the table.
func (r *textReader) add(line []byte) error {
	row, err := r.values.next(r.layout.values)
	if err != nil {
		return err
	}
	f, k := 0, 0 // the field, the number
	at := begin(line, r.sep)
	for ; at <= len(line); f++ {
		if f == len(r.roles) {
			return r.ragged(line)
		}
		if r.roles[f] == isValue {
			if v, n, ok := decimal(line[at:], r.sep, r.point); ok && r.fine(v) {
				row[k] = v
				k++
				at = behind(line, at+n, r.sep)
				continue
			}
		}
		text, _, next, ok := field(line, at, r.sep, r.plain)
		if !ok {
			return r.openQuote(f)
		}
		switch r.roles[f] {
		case isValue:
			v, problem, isWord := r.value(string(text), f)
			if isWord && r.isCategory(string(text)) {
				v = math.NaN()
				if err := r.mark(k, strings.TrimSpace(string(text))); err != nil {
					return err
				}
			} else if isWord {
				if err := r.see(line, f, text, problem); err != nil {
					return err
				}
			} else if problem != "" {
				return r.notANumber(line, f, text, problem)
			}
			row[k] = v
			k++
		case isName, isSample:
			if bytes.ContainsRune(text, '\r') {
				return r.oldMac(f)
			}
			if err := r.name(r.roles[f], text); err != nil {
				return err
			}
		case isEmpty:
			if len(bytes.TrimSpace(text)) > 0 {
				return r.fault(f+1, "%s stands in a column that is empty in the lines before: remove it, "+
					"or name the column in the first line", quote(string(text)))
			}
		}
		at = next
	}
	if f < len(r.roles) {
		return r.ragged(line)
	}
	if err := r.endLine(line, row); err != nil {
		return err
	}
	if len(r.lines) == cap(r.lines) {
		if err := r.take(8*int64(max(len(r.lines), 64)), "so many lines"); err != nil {
			return err
		}
	}
	r.lines = append(r.lines, r.line)
	if r.long != nil {
		to, err := r.long.lines.next(1)
		if err != nil {
			return err
		}
		to[0] = r.long.line
	}
	return nil
}

// name adds a name of a feature or, in a long table, of a sample to the line.
func (r *textReader) name(role byte, text []byte) (err error) {
	switch {
	case r.long == nil:
		if err = r.take(int64(len(text))+32, "so many names of features"); err == nil {
			r.features = append(r.features, string(text))
		}
	case role == isName:
		r.long.line.i, err = r.long.features.add(r.source, text)
	default:
		r.long.line.j, err = r.long.samples.add(r.source, text)
	}
	return err
}

func (r *textReader) openQuote(f int) error {
	return r.fault(f+1, "a quotation mark that is out of place or never closed in its line: put a cell "+
		"that holds one in quotation marks and double those inside")
}

func (r *textReader) oldMac(f int) *Error {
	return r.fault(f+1, "a cell with a carriage return in it: end lines as Unix (LF) or Windows (CRLF) does")
}

// row names what a line holds the numbers of.
func (r *textReader) row(line []byte) string {
	if r.names < 0 {
		return r.prefix("f", "s") + strconv.Itoa(len(r.lines)+1)
	}
	return r.cell(line, r.names)
}

// cell is what stands in column c of a line, "" where nothing does.
func (r *textReader) cell(line []byte, c int) string {
	row := cells(line, r.sep, r.plain)
	if c < len(row) {
		return row[c].text
	}
	return ""
}

// notANumber is the error of a cell that holds no number.
func (r *textReader) notANumber(line []byte, f int, text []byte, problem string) *Error {
	if bytes.ContainsRune(text, '\r') {
		return r.oldMac(f)
	}
	switch {
	case r.names >= 0 || f > 0 || r.numberLike(string(text)):
	case r.Names == "none":
		problem += "; -names none says that column 1 holds values: leave it out if column 1 names the " +
			"features"
	default:
		problem += "; the first lines hold numbers in column 1, which so was taken for values: give -names " +
			"1 if it names the features"
	}
	return r.naming(r.fault(f+1, "%s", problem), r.row(line), r.column(line, f))
}

// ragged is the error of a line with more or fewer cells than the others.
func (r *textReader) ragged(line []byte) error {
	count := len(cells(line, r.sep, r.plain))
	before := fmt.Sprintf("the lines before it have %d", len(r.roles))
	if len(r.lines) == 0 {
		before = fmt.Sprintf("the header has %d", len(r.roles))
	}
	todo := "add the missing cells"
	switch {
	case count > len(r.roles):
		todo = "remove the cells that are too many"
	case r.open():
		todo += ", or copy or download the file again if it was cut short here"
	}
	f := min(count, len(r.roles))
	e := r.fault(f+1, "this line has %s, %s: %s", Counted(count, "cell"), before, todo)
	column := ""
	if f < len(r.roles) && r.roles[f] == isValue {
		column = r.column(line, f)
	}
	return r.naming(e, r.row(line), column)
}

// prefix is how what a file does not name is called, where features are in rows and where samples are.
func (r *textReader) prefix(features, samples string) string {
	if r.Transpose {
		return samples
	}
	return features
}

// column names what a field of a line holds a number of.
func (r *textReader) column(line []byte, f int) string {
	switch {
	case r.long != nil:
		return r.cell(line, slices.Index(r.roles, isSample))
	case r.header:
		return r.heading(f)
	}
	return r.prefix("s", "f") + strconv.Itoa(1+bytes.Count(r.roles[:f], []byte{isValue}))
}

// table makes the table once all lines are known.
func (r *textReader) table() (t *Table, err error) {
	if len(r.lines) == 0 {
		return nil, r.noNumbers()
	}
	data, err := r.values.all()
	if err != nil {
		return nil, err
	}
	if r.long == nil {
		t = r.wideTable(data)
	} else if t, err = r.longTable(data); err != nil {
		return nil, err
	}
	t.File, t.Taken = r.file, r.taken(r.firstLine)
	t.Taken += r.told()
	if err := cmp.Or(r.endText(t), r.categories(t)); err != nil {
		return nil, err
	}
	t.NamedFeatures, t.NamedSamples = r.names >= 0, r.header || r.long != nil
	t.Warnings = append(r.doubts, t.Warnings...)
	if r.series {
		t.Taken = "a series matrix of GEO, " + t.Taken
	}
	return t, nil
}

// wideTable makes the table that has a line for each feature.
func (r *textReader) wideTable(data []float64) *Table {
	d, n := len(r.lines), r.layout.values
	t := &Table{Features: r.features, lines: r.lines,
		X: quantmf.Mat{Rows: d, Cols: n, Data: data, Stride: n}}
	if r.names < 0 {
		t.Features = Numbered("f", d)
		if r.hollow > 0 { // where rows have names these are none
			lines := fmt.Sprintf("line %d holds", r.firstHollow)
			if r.hollow > 1 {
				lines = fmt.Sprintf("line %d and %d more hold", r.firstHollow, r.hollow-1)
			}
			t.Warnings = append(t.Warnings,
				lines+" nothing but separators: left out; write NA into a line that is a row of "+
					"missing values")
		}
	}
	for f, role := range r.roles {
		if role == isValue {
			t.fields = append(t.fields, f+1)
			t.Samples = append(t.Samples, r.heading(f))
		}
	}
	if !r.header {
		t.Samples = Numbered("s", n)
	}
	return t
}

// Numbered are names for what has none: prefix1, prefix2, ...
func Numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i+1)
	}
	return names
}
