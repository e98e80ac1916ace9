package table

// This file holds cells of text that hold more than a plain number, or none: a decimal comma, a percent sign,
// TRUE and FALSE, a limit of detection such as <0.5, and words such as ND. What is certain is read, and
// Table.Taken says so. Limits are read as Options.Below says. All else is one error, which lists every word
// of the file with its count and its first place.

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits are what Options.Below may be: for <x half of x, x, or a missing value. >x is x under the first two.
var Limits = []string{"half", "limit", "missing"}

// What a cell has beside its number.
const (
	asItIs = iota
	percent
	truth // TRUE and FALSE, 1 and 0
	below // a limit of detection
	above
)

// stripped returns the number of a cell as package strconv takes one, and what the cell has beside it.
func (o Options) stripped(cell string) (number string, beside int) {
	number = strings.TrimSpace(cell)
	if number == "" {
		return number, asItIs
	}
	if last := len(number) - 1; number[last] == '%' {
		number, beside = strings.TrimSpace(number[:last]), percent
	} else if rest, is := cutAny(number, "<=", "≤", "<"); is {
		number, beside = rest, below
	} else if rest, is := cutAny(number, ">=", "≥", ">"); is {
		number, beside = rest, above
	} else if strings.EqualFold(number, "true") {
		return "1", truth
	} else if strings.EqualFold(number, "false") {
		return "0", truth
	}
	if o.Decimal == ',' {
		if strings.Contains(number, ".") {
			return "", beside
		}
		number = strings.Replace(number, ",", ".", 1)
	}
	return number, beside
}

// cutAny cuts one of some beginnings off, and blanks behind it.
func cutAny(text string, beginnings ...string) (rest string, is bool) {
	for _, b := range beginnings {
		if rest, is = strings.CutPrefix(text, b); is {
			return strings.TrimSpace(rest), true
		}
	}
	return text, false
}

// decimalComma tells whether numbers of the first lines have decimal commas: some cell cannot be read
// otherwise, and none has a decimal point.
func decimalComma(rows [][]cell) (is bool) {
	for _, row := range rows {
		for _, c := range row {
			number, _ := Options{}.stripped(c.text)
			switch {
			case strings.Contains(number, ".") && isNumber(number):
				return false
			case hasDecimalComma(number):
				is = true
			}
		}
	}
	return is
}

// hasDecimalComma tells whether a number has one comma, which cannot stand between thousands.
func hasDecimalComma(number string) bool {
	return strings.Count(number, ",") == 1 && !thousands(number) &&
		isNumber(strings.Replace(number, ",", ".", 1))
}

// odd is what was found in the cells of a text that hold more than a number, or none.
type odd struct {
	count  [above + 1]int // cells by what they have beside their number
	signs  []int32        // those with a percent sign in each column
	inLine int32          // and in the line that is read
	words  []word
	cells  int    // that hold a word
	first  *Error // of the first of them
	atTop  bool   // it is in one of the first two lines of numbers
	column int    // the field that all stand in, -1 for several
}

// word is a word that stands where a number should.
type word struct {
	text                string
	count, line, column int
}

// mostWords is the number of different words behind which reading ends: such a text is no matrix with a few
// odd cells.
const mostWords = 64

// value reads a cell of text that is no plain number. With isWord the problem is that of a word.
func (r *textReader) value(text string, f int) (v float64, problem string, isWord bool) {
	if r.isMissing(text) {
		v, problem = r.number(text)
		return v, problem, false
	}
	number, beside := r.stripped(text)
	if _, err := parse(number); err == strconv.ErrSyntax || !isNumber(number) {
		return 0, r.noNumber(text), true
	}
	if (beside == below || beside == above) && r.Below == "" {
		return 0, fmt.Sprintf("%q is a limit of detection: give -below half, limit or missing, or write a "+
			"number", short(text)), true
	}
	if v, problem = r.number(number); problem != "" {
		return 0, problem, false
	}
	r.odd.count[beside]++
	switch beside {
	case percent:
		if r.odd.signs == nil {
			r.odd.signs = make([]int32, len(r.roles))
		}
		r.odd.signs[f]++
		r.odd.inLine++
	case below, above:
		switch {
		case r.Below == "missing" && !r.Missing:
			return 0, fmt.Sprintf("%q is a missing value under -below missing: %s", short(text), fillIn),
				false
		case r.Below == "missing":
			return math.NaN(), "", false
		case r.Below == "half" && beside == below:
			v /= 2
		}
	}
	return v, "", false
}

// see remembers a word. There is an error where there are too many.
func (r *textReader) see(line []byte, f int, text []byte, problem string) error {
	o, shown := &r.odd, short(strings.TrimSpace(string(text)))
	if o.first == nil {
		known := r.notANumber(line, f, text, problem)
		if bytes.ContainsRune(text, '\r') {
			return known
		}
		o.first, o.column, o.atTop = known, f, len(r.lines) < 2
	}
	if o.cells++; o.column != f {
		o.column = -1
	}
	at := slices.IndexFunc(o.words, func(w word) bool { return w.text == shown })
	if at < 0 {
		at = len(o.words)
		if at == mostWords {
			return r.wordsError()
		}
		o.words = append(o.words, word{shown, 0, r.line, f + 1})
	}
	o.words[at].count++
	return nil
}

// shownWords is the number of words that an error lists.
const shownWords = 8

// wordsError is the error of all cells that hold a word.
func (r *textReader) wordsError() error {
	o := &r.odd
	if o.cells == 1 {
		return o.first
	}
	var listed, missing []string
	limits := false
	for _, w := range o.words[:min(len(o.words), shownWords)] {
		listed = append(listed, fmt.Sprintf("%q (%d, first in line %d, column %d)", w.text, w.count, w.line,
			w.column))
		if number, beside := r.stripped(w.text); beside >= below && isNumber(number) {
			limits = true
		} else if !strings.Contains(w.text, ",") {
			missing = append(missing, w.text)
		}
	}
	text := fmt.Sprintf("%d cells hold words where numbers should stand: %s", o.cells,
		strings.Join(listed, ", "))
	if more := len(o.words) - shownWords; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	var todo []string
	if o.atTop && (!r.header || r.nameless()) {
		todo = append(todo, "-skip N to leave out the first N lines, if the names of the samples stand "+
			"below them")
	}
	if len(missing) > 0 {
		todo = append(todo, fmt.Sprintf("-na %s for words that mean a missing value",
			quotedWord(strings.Join(missing, ","))))
	}
	if limits {
		todo = append(todo, "-below half, limit or missing for limits of detection")
	}
	if r.names >= 0 && o.column >= 0 {
		todo = append(todo, fmt.Sprintf("-names %d,%d to leave out column %[2]d, in which all of them stand",
			r.names+1, o.column+1))
	}
	e := *o.first
	e.Problem = text + ": give " + strings.Join(todo, "; ")
	return &e
}

// nameless tells whether a column of values has no heading in a first line that has others.
func (l *layout) nameless() bool {
	for f, role := range l.roles {
		if role == isValue && l.heading(f) == "" {
			return true
		}
	}
	return false
}

// quotedWord puts a word between quotation marks where a shell would not take it as one.
func quotedWord(text string) string {
	if strings.ContainsAny(text, " \t'\"\\$`&|;<>()*?#~!{}[]") {
		return strconv.Quote(text)
	}
	return text
}

// endLine checks the percent signs of a line.
func (r *textReader) endLine(line []byte, row []float64) error {
	signs := r.odd.inLine
	r.odd.inLine = 0
	if signs == 0 || r.Transpose || r.long != nil || r.odd.first != nil {
		return nil
	}
	if problem := mixed(signs, row); problem != "" {
		return r.naming(r.fault(0, "%s", problem), r.row(line), "")
	}
	return nil
}

// mixed says that of the values of a feature some have percent signs and others not; "" where they are alike.
func mixed(signs int32, values []float64) string {
	seen := int32(0)
	for _, v := range values {
		if v == v {
			seen++
		}
	}
	if signs == seen {
		return ""
	}
	return fmt.Sprintf("%d of its %d values end in %%: write all of them in percent, or none", signs, seen)
}

// endText checks the percent signs of columns.
func (r *textReader) endText(t *Table) error {
	if !r.Transpose || r.odd.signs == nil || r.long != nil {
		return nil
	}
	column, j := make([]float64, t.X.Rows), -1
	for f, role := range r.roles {
		if role != isValue {
			continue
		}
		if j++; r.odd.signs[f] == 0 {
			continue
		}
		for i := range column {
			column[i] = t.X.At(i, j)
		}
		if problem := mixed(r.odd.signs[f], column); problem != "" {
			return r.naming(r.wrong("%s", problem), "", t.Samples[j])
		}
	}
	return nil
}

// told says what was read of cells that have more than a number.
func (r *textReader) told() (text string) {
	o := &r.odd
	if r.Decimal == ',' {
		text += "; decimal commas"
	}
	if n := o.count[percent]; n > 0 {
		text += fmt.Sprintf("; %s in percent (45 %% is 45)", Counted(n, "cell"))
	}
	if n := o.count[truth]; n > 0 {
		text += fmt.Sprintf("; %s TRUE or FALSE, which are 1 and 0", Counted(n, "cell is", "cells are"))
	}
	for beside := below; beside <= above; beside++ {
		n, where := o.count[beside], [...]string{"below", "above"}[beside-below]
		if n == 0 {
			continue
		}
		how := "taken for missing"
		switch {
		case r.Below == "half" && beside == below:
			how = "taken at half of it"
		case r.Below != "missing":
			how = "taken at it"
		}
		text += fmt.Sprintf("; %s %s a limit of detection, %s", Counted(n, "value"), where, how)
	}
	return text
}

// secondHeaders returns the number of lines below the first that are further headers, of units or groups:
// they hold words alone, two or more and each of another kind than those below, in columns that else hold
// numbers.
func (o Options) secondHeaders(rows [][]cell) (count int) {
	inColumn, kinds := map[int]bool{}, map[string]bool{}
	for count < min(len(rows)-2, mostHeaders) {
		words := 0
		for c, of := range rows[count] {
			switch text := strings.TrimSpace(of.text); {
			case c == 0, o.isMissing(text):
			case o.numberLike(text):
				words = math.MinInt32
			default:
				words++
				inColumn[c], kinds[text] = true, true
			}
		}
		if words <= 0 {
			break
		}
		count++
	}
	if len(kinds) < 2 {
		return 0
	}
	for c := range inColumn {
		numbers, others := 0, 0
		for _, row := range rows[count:] {
			switch {
			case c >= len(row) || kinds[strings.TrimSpace(row[c].text)]:
				return 0
			case o.isMissing(row[c].text):
			case o.numberLike(row[c].text):
				numbers++
			default:
				others++
			}
		}
		if numbers <= others {
			return 0
		}
	}
	return count
}

// mostHeaders is the number of lines that may be further headers.
const mostHeaders = 4
