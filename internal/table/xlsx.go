package table

// This file holds workbooks of Excel (xlsx; ISO/IEC 29500). A workbook is a zip archive of XML:
//
//	xl/workbook.xml            the names of the sheets, and their ids
//	xl/_rels/workbook.xml.rels the part of each id
//	xl/sharedStrings.xml       texts, to which cells refer by number
//	xl/styles.xml              which cells are shown as dates
//	xl/worksheets/sheet1.xml   rows of cells: <c r="B2" s="1" t="s"><v>7</v></c>
//
// A sheet is read as text, tab-separated, a line for each of its rows, so that the rules for names, and every
// option of text, are the same. A number has the digits that the file has, a formula its last value, an empty
// cell nothing, an error its code (#N/A is a missing value). A date becomes a date such as 2024-03-01, which
// is no number: Excel makes dates of names such as MARCH1. A sheet is read twice, first for its width;
// nothing but a row of it and the shared texts is held.

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const workbookPart = "xl/workbook.xml"

// Excel's own bounds of a sheet.
const (
	mostRows    = 1 << 20
	mostColumns = 1 << 14
)

// workbook is what cells refer to.
type workbook struct {
	*npz
	texts  []string
	dates  []bool // of the styles
	offset int    // days from 1899-12-30, on which Excel's dates count, to where those of this book do
}

// part opens a document of a workbook, nil where there is none.
func (w *workbook) part(name string) (*xmlReader, error) {
	f := w.parts[name]
	if f == nil {
		return nil, nil
	}
	r, err := w.opened(f, "the workbook", ", or the sheet as CSV")
	if err != nil {
		return nil, err
	}
	return w.elements(r)
}

// each calls do at the beginning and the end of every element of a part, up to its end.
func (w *workbook) each(name string, do func(x *xmlReader) error) error {
	x, err := w.part(name)
	if x == nil || err != nil {
		return err
	}
	defer x.close()
	for {
		err := x.next(nil)
		if err == nil {
			err = do(x)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return w.broken(err)
		}
	}
}

func readXLSX(z *npz) (*Table, error) {
	if z.Format != "" {
		return nil, z.wrong("this is xlsx, not %s", z.Format)
	}
	w := &workbook{npz: z}
	names, ids, err := w.sheets()
	if err != nil {
		return nil, err
	}
	chosen, err := w.choose(names)
	if err != nil {
		return nil, err
	}
	part, err := w.target(ids[chosen])
	if err != nil {
		return nil, err
	}
	if err := w.strings(); err != nil {
		return nil, err
	}
	if err := w.styles(); err != nil {
		return nil, err
	}
	text, err := w.sheet(part)
	if err != nil {
		return nil, err
	}
	defer text.x.close()
	o := z.beside(text)
	o.Sep, o.inSheet = '\t', true
	t, err := readText(o)
	others := ""
	if len(names) > 1 {
		others = fmt.Sprintf("; -sheet takes another of its %d sheets: %s", len(names),
			Examples(slices.Delete(slices.Clone(names), chosen, chosen+1)))
	}
	if fault, is := err.(*Error); is && fault.Err == nil {
		fault.Problem = "sheet " + quote(names[chosen]) + ": " + fault.Problem + others
	}
	if err != nil {
		return nil, err
	}
	t.Taken = "sheet " + quote(names[chosen]) + " of an Excel workbook" +
		strings.TrimPrefix(t.Taken, separatedBy['\t']) + others
	return t, nil
}

// sheets returns the names of the sheets and their ids.
func (w *workbook) sheets() (names, ids []string, err error) {
	err = w.each(workbookPart, func(x *xmlReader) error {
		switch {
		case x.begins("workbookPr"):
			if since := x.attribute("date1904"); string(since) == "1" || string(since) == "true" {
				w.offset = 1462
			}
		case x.begins("sheet") && !strings.Contains(string(x.attribute("state")), "idden"):
			name, err := x.unescaped(nil, x.attribute("name"))
			if err == nil {
				err = w.take(int64(len(name)+64), "so many sheets")
			}
			if err != nil {
				return err
			}
			names, ids = append(names, string(name)), append(ids, string(x.attribute("id")))
		}
		return nil
	})
	if err == nil && len(names) == 0 {
		err = w.wrong("the workbook has no sheet: save it anew, or the sheet as CSV")
	}
	return names, ids, err
}

// choose returns the sheet that is meant.
func (w *workbook) choose(names []string) (int, error) {
	if w.Sheet == "" {
		return 0, nil
	}
	if at := slices.Index(names, w.Sheet); at >= 0 {
		return at, nil
	}
	if n, is := count(w.Sheet); is && n >= 1 && n <= uint64(len(names)) {
		return int(n) - 1, nil
	}
	return 0, w.wrong("-sheet %s: the workbook has %s: %s", quote(w.Sheet), Counted(len(names), "sheet"),
		Examples(names))
}

// target returns the part of a sheet.
func (w *workbook) target(id string) (part string, err error) {
	err = w.each("xl/_rels/workbook.xml.rels", func(x *xmlReader) error {
		if x.begins("Relationship") && string(x.attribute("Id")) == id {
			to, err := x.unescaped(nil, x.attribute("Target"))
			if part = path.Join("xl", string(to)); strings.HasPrefix(string(to), "/") {
				part = string(to[1:])
			}
			return err
		}
		return nil
	})
	if err == nil && w.parts[part] == nil {
		err = w.wrong("a sheet of the workbook is not in its archive: copy or download the file again")
	}
	return part, err
}

// strings reads the shared texts. Of one with its pronunciation (rPh) the text alone counts.
func (w *workbook) strings() error {
	var text []byte
	spoken := false
	return w.each("xl/sharedStrings.xml", func(x *xmlReader) error {
		switch name := string(x.name); {
		case name == "rPh":
			spoken = !x.ends
		case name == "t" && !x.ends && !spoken:
			return x.next(&text) // to its end
		case name == "si" && x.ends:
			if err := w.take(int64(len(text)+32), "so many texts of cells"); err != nil {
				return err
			}
			w.texts, text = append(w.texts, string(text)), text[:0]
		}
		return nil
	})
}

// styles finds out which styles show a number as a date.
func (w *workbook) styles() error {
	formats, inCells := map[string]bool{}, false
	return w.each("xl/styles.xml", func(x *xmlReader) error {
		id := x.attribute("numFmtId")
		switch name := string(x.name); {
		case name == "cellXfs":
			inCells = !x.ends
		case x.begins("numFmt"):
			if err := w.take(int64(len(id)+64), "so many formats of cells"); err != nil {
				return err
			}
			formats[string(id)] = showsDate(string(x.attribute("formatCode")))
		case x.begins("xf") && inCells:
			if err := w.take(2, "so many styles of cells"); err != nil {
				return err
			}
			n, _ := whole(id) // ISO/IEC 29500-1, 18.8.30
			is := 14 <= n && n <= 22 || 27 <= n && n <= 36 || 45 <= n && n <= 47 || 50 <= n && n <= 58
			w.dates = append(w.dates, is || formats[string(id)])
		}
		return nil
	})
}

// showsDate tells whether the code of a format has days, months or years, outside of quotes and brackets.
func showsDate(code string) bool {
	code = strings.ReplaceAll(strings.ToLower(code), "&quot;", `"`)
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case '\\', '_', '*':
			i++
		case '"', '[':
			end := strings.IndexByte(code[i+1:], map[byte]byte{'"': '"', '[': ']'}[code[i]])
			if end < 0 {
				return false
			}
			i += 1 + end
		case 'd', 'm', 'y', 'h':
			return true
		}
	}
	return false
}

// sheetText is a sheet as lines of text.
type sheetText struct {
	*workbook
	x     *xmlReader
	width int // cells a line
	line  []byte
	rest  []byte // of line, that is not read
	cell  []byte
	row   int // the number of the last row
	ended bool
	err   error
}

// sheet opens a sheet, whose width it has found.
func (w *workbook) sheet(part string) (*sheetText, error) {
	width := 0
	for {
		x, err := w.part(part)
		if err != nil {
			return nil, err
		}
		s := &sheetText{workbook: w, x: x, width: width}
		if width > 0 {
			return s, w.take(2*buffered, "a buffer")
		}
		for err == nil {
			var cells int
			cells, err = s.next()
			width = max(width, cells)
		}
		x.close()
		if err != io.EOF {
			return nil, w.broken(err)
		}
		if width = max(width, 1); width > mostColumns {
			return nil, w.wrong("a row of the sheet has more than %d cells: the workbook is damaged",
				mostColumns)
		}
	}
}

// Read reads lines: those of the rows, blank ones for rows that the file leaves out.
func (s *sheetText) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		before := s.row
		cells, err := s.next()
		if err != nil {
			if s.err = err; err != io.EOF {
				s.err = s.broken(err)
			}
			return 0, s.err
		}
		missing := 0
		if cells > 0 {
			missing = s.width - cells
		}
		if s.line, err = s.x.grown(s.line, tabs[:missing]); err == nil {
			s.line, err = s.x.grown(s.line, []byte{'\n'})
		}
		if s.err = err; err != nil {
			continue
		}
		if s.rest = s.line; s.row > before+1 {
			s.rest = append(bytes.Repeat([]byte{'\n'}, s.row-before-1), s.line...)
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// damaged is the error of a sheet that is none.
func (s *sheetText) damaged(what string) error {
	return s.wrong("row %d of the sheet %s: the workbook is damaged", s.row, what)
}

// next reads a row into line, and returns how many cells it has up to the last that is not empty.
func (s *sheetText) next() (cells int, err error) {
	x := s.x
	for first := true; first || !x.begins("row"); first = false {
		if err := x.next(nil); err == io.EOF && !s.ended {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
		s.ended = s.ended || x.ends && string(x.name) == "sheetData"
	}
	s.line = s.line[:0]
	number := s.row + 1
	if r := x.attribute("r"); r != nil {
		n, is := whole(r)
		if !is || int(n) < number || n > mostRows {
			return 0, s.damaged("is followed by one of another number")
		}
		number = int(n)
	}
	if s.row = number; s.row > mostRows {
		return 0, s.damaged("is one too many")
	}
	at, written := 0, 0 // the cell, and how much of line holds cells that are not empty
	for {
		if err := x.next(nil); err != nil {
			return 0, noEnd(err)
		}
		switch {
		case x.ends && string(x.name) == "row":
			s.line = s.line[:written]
			return cells, nil
		case x.begins("c"):
			to := at + 1
			if r := x.attribute("r"); r != nil {
				to = columnOf(r)
			}
			if to <= at || to > mostColumns {
				return 0, s.damaged("has cells out of order")
			}
			var before int
			if s.line, err = x.grown(s.line, tabs[:to-max(at, 1)]); err == nil {
				before = len(s.line)
				err = s.value()
			}
			if err != nil {
				return 0, noEnd(err)
			}
			if at = to; len(s.line) > before {
				cells, written = to, len(s.line)
			}
		}
	}
}

// tabs part the cells of the widest row.
var tabs = bytes.Repeat([]byte{'\t'}, mostColumns)

// noEnd is the error of a document that ends within an element.
func noEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// whole is the number that some digits make, of at most nine.
func whole(b []byte) (n uint64, is bool) {
	n, length := digits(b, 0)
	return n, length == len(b) && 1 <= length && length <= 9
}

// columnOf is the number of the column of a cell such as AB12, 0 for none.
func columnOf(cell []byte) (column int) {
	for _, c := range cell {
		switch {
		case 'A' <= c && c <= 'Z' && column <= mostColumns:
			column = 26*column + int(c-'A') + 1
		default:
			return column
		}
	}
	return column
}

// value reads a cell up to its end, and appends it to line.
func (s *sheetText) value() error {
	x := s.x
	kind := string(x.attribute("t"))
	style, isStyle := whole(x.attribute("s"))
	s.cell = s.cell[:0]
	for spoken := false; !x.ends || string(x.name) != "c"; {
		if err := x.next(nil); err != nil {
			return err
		}
		switch name := string(x.name); {
		case name == "rPh":
			spoken = !x.ends
		case (name == "v" || name == "t") && !x.ends && !spoken:
			if err := x.next(&s.cell); err != nil {
				return err
			}
		}
	}
	switch kind {
	case "s":
		n, is := whole(bytes.TrimSpace(s.cell))
		if !is || n >= uint64(len(s.texts)) {
			return s.damaged("has a cell whose text is missing")
		}
		return s.text(s.texts[n])
	case "inlineStr", "str", "e", "d":
		return s.text(string(s.cell))
	case "b":
		if string(s.cell) == "1" {
			return s.text("TRUE")
		}
		return s.text("FALSE")
	}
	if isStyle && style < uint64(len(s.dates)) && s.dates[style] {
		if v, err := strconv.ParseFloat(string(s.cell), 64); err == nil && v >= 0 && v < 3e6 {
			return s.text(date(int(v) + s.offset))
		}
	}
	if at := bytes.IndexByte(s.cell, '.'); at >= 0 && s.Decimal == ',' { // as texts have it
		s.cell[at] = ','
	}
	return s.append(s.cell)
}

// date writes the day that is so many days after 1899-12-30. It takes no format of package time, which would
// add to what a page loads.
func date(days int) string {
	year, month, day := time.Date(1899, time.December, 30+days, 0, 0, 0, 0, time.UTC).Date()
	return fmt.Sprintf("%04d-%02d-%02d", year, int(month), day)
}

// append appends a cell to line; of a damaged sheet it may have more lines.
func (s *sheetText) append(cell []byte) (err error) {
	for i, c := range cell {
		if c == '\t' || c == '\n' || c == '\r' || c == 0 {
			cell[i] = ' '
		}
	}
	s.line, err = s.x.grown(s.line, cell)
	return err
}

// text appends a text to line, in quotation marks where it has one. Tabs and ends of lines become blanks.
func (s *sheetText) text(text string) (err error) {
	if strings.Contains(text, `"`) {
		text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	if s.cell, err = s.x.grown(s.cell[:0], []byte(text)); err != nil {
		return err
	}
	return s.append(s.cell)
}
