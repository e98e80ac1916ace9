package table

// This file holds the rules that find the layout of a text: which character separates its cells, whether its
// first line names the samples, which column names the features, and which columns describe them. The rules
// look at the first lines alone. layout.taken says what they found, layout.doubts where they may be wrong.
// Options overrule them.

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// field returns the cell that starts at line[at]. next is the start of the next cell, len(line)+1 behind the
// last. A cell in quotation marks ends at the mark before a separator; ok is false where there is none.
// Within it two marks stand for one, and so does \", which R writes. In any other place, and everywhere if
// plain, a mark is an ordinary character. The separator ' ' stands for any number of blanks.
func field(line []byte, at int, sep byte, plain bool) (text []byte, quoted bool, next int, ok bool) {
	blanks := sep == ' '
	ends := func(i int) bool {
		return i >= len(line) || line[i] == sep || blanks && line[i] == '\t'
	}
	if at >= len(line) || line[at] != '"' || plain {
		end := at
		if blanks {
			for !ends(end) {
				end++
			}
		} else if to := bytes.IndexByte(line[at:], sep); to >= 0 {
			end += to
		} else {
			end = len(line)
		}
		return line[at:end], false, behind(line, end, sep), true
	}
	var joined []byte // the text so far, nil where it is a part of the line
	from := at + 1
	for i := at + 1; i < len(line); i++ {
		if line[i] != '"' {
			continue
		}
		switch {
		case i+1 < len(line) && line[i+1] == '"':
			joined = append(joined, line[from:i+1]...)
			i++
			from = i + 1
		// else R's, before a separator
		case ends(i+1) && !(line[i-1] == '\\' && bytes.Count(line[i+1:], []byte{'"'})%2 == 1):
			text = line[from:i]
			if joined != nil {
				text = append(joined, text...)
			}
			return text, true, behind(line, i+1, sep), true
		case line[i-1] == '\\' && i > from:
			joined = append(append(joined, line[from:i-1]...), '"')
			from = i + 1
		}
	}
	return nil, true, 0, false
}

// behind is where the cell behind a separator at line[at] starts, len(line)+1 where there is none.
func behind(line []byte, at int, sep byte) int {
	at++
	if sep == ' ' {
		for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
			at++
		}
		if at >= len(line) {
			return len(line) + 1
		}
	}
	return at
}

// begin is where the first cell of a line starts.
func begin(line []byte, sep byte) int { return min(behind(line, -1, sep), len(line)) }

// cell is a cell of the first lines.
type cell struct {
	text   string
	quoted bool
}

// cells cuts a line into cells. A line that cannot be cut is one cell; the reader reports it later.
func cells(line []byte, sep byte, plain bool) []cell {
	var row []cell
	for at := begin(line, sep); at <= len(line); {
		text, quoted, next, ok := field(line, at, sep, plain)
		if !ok {
			return append(row, cell{string(line[at:]), false})
		}
		row = append(row, cell{string(text), quoted})
		at = next
	}
	return row
}

// separator chooses tab, semicolon or comma: the character that cuts all lines into the same number of cells,
// the header perhaps into one fewer. Semicolons come before commas, which may be decimal commas. Blanks
// separate if none of the three does and the last line ends in a number behind a blank.
func separator(lines [][]byte) byte {
	best, most := byte(','), 0
	for _, sep := range []byte("\t;,") {
		counts, sum := make([]int, len(lines)), 0
		for i, l := range lines {
			counts[i] = separators(l, sep)
			sum += counts[i]
		}
		if sum > 0 && even(counts) {
			return sep
		}
		if sum > most {
			best, most = sep, sum
		}
	}
	if len(lines) == 0 {
		return best
	}
	counts := make([]int, len(lines))
	for i, l := range lines {
		counts[i] = len(cells(l, ' ', false)) - 1
	}
	last := cells(lines[len(lines)-1], ' ', false)
	if len(last) > 1 && even(counts) && (Options{}).numberLike(last[len(last)-1].text) {
		return ' '
	}
	return best
}

// even tells whether all lines have as many separators, the first perhaps one fewer.
func even(counts []int) bool {
	body := counts[min(1, len(counts)-1):]
	return slices.Min(body) == slices.Max(body) && (counts[0] == body[0] || counts[0] == body[0]-1)
}

// separators counts the separators outside quotation marks. A quotation mark opens at the start of a cell.
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

// The content of a column.
const (
	isValue = iota
	isName
	isSample // the name of a sample, in a long table
	isLeft   // left out
	isIndex  // the number of the row: left out
	isEmpty  // nothing: the lines end in a separator
)

// layout tells how a text is cut into names and numbers.
type layout struct {
	sep    byte
	plain  bool // quotation marks are ordinary characters
	header bool // the first line names the columns
	short  bool // which lacks a cell, above column bare
	bare   int
	roles  []byte // what each column holds; their number is that of the cells of a line
	names  int    // the column of names, -1 for none
	values int    // the columns of numbers
	first  []cell // the first line
	doubts []string
}

// words returns a heading in lower case, its letters and digits alone.
func words(heading string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func isOneOf(list string) func(string) bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return func(heading string) bool { return set[words(heading)] }
}

var (
	// Usual headings of a column of names of features.
	ofFeatures = isOneOf(`
		feature features component components gene genes geneid geneids genename genenames genesymbol
		genesymbols hugosymbol hgncsymbol hgnc symbol symbols probe probes probeid probeset probesetid
		idref id ids name names ensembl ensemblid ensemblgene ensemblgeneid transcript transcriptid row
		rows rowname rownames index unnamed0 otu otuid asv asvid taxon protein proteinid proteinids
		majorityproteinids proteingroups accession uniprot uniprotid peptide cpg cgid targetid metabolite
		compound mirna mirnaid locustag`)
	// Headings of names that may be numbers, also of a second column of names.
	ofNumericNames = isOneOf("entrez entrezid entrezgene entrezgeneid ncbigeneid locusid hgncid")
	// Headings of the column of names where the rows are samples.
	ofSamples = isOneOf("sample samples sampleid samplename patient patientid subject subjectid cell " +
		"cellid barcode barcodes")
	// Headings of a column that numbers the rows; an empty heading is one, too.
	ofNumbers = isOneOf("unnamed0 index x v1 1 id no nr number row rows rowname rownames rownumber")
	// Headings of columns of numbers that describe the features.
	ofDescription = isOneOf("length genelength transcriptlength effectivelength chr chrom chromosome start " +
		"end strand position pos width")
)

// ofNames tells whether a heading stands above names.
func ofNames(heading string) bool {
	return ofFeatures(heading) || ofNumericNames(heading) || ofSamples(heading)
}

// isHeading tells whether the first cell of a first line stands above names.
func isHeading(c string) bool { return strings.TrimSpace(c) == "" || ofNames(c) }

// looksLikeID tells whether an unknown heading still looks like one of names.
func looksLikeID(heading string) bool {
	w := words(heading)
	return strings.HasSuffix(w, "id") || strings.HasSuffix(w, "ids") || strings.HasSuffix(w, "name") ||
		strings.HasSuffix(w, "symbol") || strings.HasPrefix(w, "gene") || strings.HasPrefix(w, "probe")
}

// layoutOf finds the layout of a text. first is its first line, rows are the following lines that the rules
// look at.
func (o Options) layoutOf(sep byte, first []cell, rows [][]cell) (*layout, string) {
	l := &layout{sep: sep, first: first, names: -1}
	trailing := o.trailing(l, rows)
	if trailing && len(first) < len(rows[0]) {
		first = append(slices.Clip(first), cell{})
		l.first = first
	}
	width := len(first)
	if len(rows) > 0 {
		width = len(rows[0])
	}
	same := !slices.ContainsFunc(rows, func(r []cell) bool { return len(r) != width })
	oneFewer := len(rows) > 0 && same && len(first) == width-1
	switch o.Header {
	case HeaderYes:
		l.header, l.short = true, oneFewer
	case HeaderNo:
		width = len(first)
	default:
		if l.short = oneFewer && o.isShortHeader(l, rows); l.short {
			l.header = true
		} else {
			l.header = o.isHeader(l, rows)
		}
	}
	if !l.short {
		width = len(first)
	}
	l.roles = make([]byte, width)
	body := rows
	if !l.header {
		body = append([][]cell{first}, rows...)
	}
	if problem := o.nameColumns(l, body); problem != "" {
		return nil, problem
	}
	if last := width - 1; trailing && l.roles[last] == isValue {
		l.roles[last] = isEmpty
	}
	if l.short && l.names < 0 {
		return nil, "the first line has one cell fewer than the lines below, as where it has none above " +
			"the names of the features; -names none says that there are no such names"
	}
	l.values = bytes.Count(l.roles, []byte{isValue})
	return l, ""
}

// trailing tells whether all lines, but for perhaps the first, end in a separator with nothing behind it.
func (o Options) trailing(l *layout, rows [][]cell) bool {
	if len(rows) == 0 || len(rows[0]) < 3 {
		return false
	}
	last := len(rows[0]) - 1
	nothing := func(r []cell) bool { return len(r) == last+1 && r[last] == cell{} }
	if slices.ContainsFunc(rows, func(r []cell) bool { return !nothing(r) }) {
		return false
	}
	if len(l.first) == last && o.Header != HeaderYes {
		l.doubt(fmt.Sprintf("all lines but the first end in a separator: the empty column %d was left out; "+
			"give -header yes if the first line lacks a cell above the names instead", last+1))
		return true
	}
	return nothing(l.first)
}

// isShortHeader tells whether a first line that is one cell shorter than the rows is a header as R writes it,
// without a cell above the names. Otherwise it is a row of numbers that lacks one.
func (o Options) isShortHeader(l *layout, rows [][]cell) bool {
	if o.allPlain(l.first) {
		switch {
		case !o.numberLike(rows[0][0].text), quotedAgainst(l.first, rows):
			return true
		case len(rows) >= 2:
			l.doubt("line 1 holds numbers and one cell fewer than the lines below: it was taken for names " +
				"of samples; give -header no if it is a line of numbers that lacks one")
			return true
		}
		return false
	}
	return len(l.first) == 1 || !o.allPlain(l.first[1:])
}

// quotedAgainst tells whether all cells are in quotation marks and the numbers below
// are not.
func quotedAgainst(first []cell, rows [][]cell) bool {
	if len(rows) == 0 || slices.ContainsFunc(first, func(c cell) bool { return !c.quoted }) {
		return false
	}
	return !rows[0][len(rows[0])-1].quoted
}

// isHeader reports whether a first line names the columns.
func (o Options) isHeader(l *layout, rows [][]cell) bool {
	first := l.first
	if isHeading(first[0].text) || quotedAgainst(first, rows) {
		return true
	}
	for c := range first {
		// A word above numbers is a name. A word above words may be a cell of a column of words; so may
		// column 1, which holds names in any but a long table.
		if c == 0 && o.Long == "" || o.valueLike(first[c].text, c, rows) {
			continue
		}
		if len(rows) == 0 || slices.ContainsFunc(rows,
			func(r []cell) bool { return c < len(r) && o.numberLike(r[c].text) }) {
			return true
		}
	}
	if len(rows) == 0 {
		return false
	}
	// All cells but the first are numbers. Names of samples that are numbers are whole, at least 0, and all
	// different.
	from := 1
	if o.plainLike(first[0].text) {
		from = 0
	}
	values, ok := wholes(first[from:])
	if !ok || len(values) < 2 {
		return false
	}
	if from == 1 && slices.ContainsFunc(rows,
		func(r []cell) bool { return shape(r[0].text) == shape(first[0].text) }) {
		return false // the first cell is a name like those below it
	}
	rising, byOne := true, values[0] <= 1
	for i := 1; i < len(values); i++ {
		rising = rising && values[i] > values[i-1]
		byOne = byOne && values[i] == values[i-1]+1
	}
	fractions := slices.ContainsFunc(rows, func(r []cell) bool {
		return slices.ContainsFunc(r[min(from, len(r)):],
			func(c cell) bool { return o.numberLike(c.text) && strings.ContainsAny(c.text, ".,") })
	})
	const was = "line 1 holds numbers that may be names or values: it was taken for "
	if from == 1 && (byOne && len(values) > 2 || rising && len(values) > 4 || fractions) || from == 0 &&
		byOne && (values[0] == 0 || fractions) {
		l.doubt(was + "names of samples; give -header no if they are values")
		return true
	}
	if from == 1 || byOne {
		l.doubt(was + "values; give -header yes if they are names")
	}
	return false
}

// wholes returns the numbers of cells that are all whole, at least 0 and different.
func wholes(row []cell) (values []uint64, ok bool) {
	for _, c := range row {
		v, err := strconv.ParseUint(strings.TrimSpace(c.text), 10, 62)
		if err != nil {
			return nil, false
		}
		values = append(values, v)
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return values, len(slices.Compact(sorted)) == len(values)
}

// shape is a name with all digits replaced by one: TP53 and TP63 have the same shape.
func shape(name string) string {
	digit := false
	return strings.Map(func(r rune) rune {
		before := digit
		digit = unicode.IsDigit(r)
		switch {
		case digit && before:
			return -1
		case digit:
			return '0'
		}
		return r
	}, name)
}

// nameColumns finds the column of names and the columns that describe the features.
func (o Options) nameColumns(l *layout, body [][]cell) string {
	column := func(c int) (column []cell) {
		for _, r := range body {
			if c < len(r) {
				column = append(column, r[c])
			}
		}
		return column
	}
	first := column(0)
	numbered := len(l.roles) > 2 && countsRows(first) && (l.heading(0) == "" || ofNumbers(l.heading(0)))
	if o.Long != "" {
		return o.longColumns(l)
	}
	if o.Names != "" && o.Names != "none" {
		given, problem := l.columns("-names", o.Names)
		if problem != "" {
			return problem
		}
		for _, c := range given {
			l.roles[c] = isLeft
		}
		l.names = given[0]
		l.roles[l.names] = isName
		if numbered && !slices.Contains(given, 0) {
			l.roles[0] = isIndex
		} else {
			l.bare = l.names
		}
		return ""
	}
	if o.Names == "none" {
		return ""
	}
	if numbered && o.namesBehind(l, column(1)) {
		l.roles[0], l.names = isIndex, 1
	} else {
		o.firstColumn(l, column, body)
	}
	if l.names < 0 || len(l.roles) < 2 {
		return ""
	}
	l.roles[l.names] = isName
	if heading := l.heading(l.names); ofSamples(heading) {
		l.doubt(fmt.Sprintf("the heading %s speaks of samples in rows, and rows were taken for features; "+
			"give -transpose if they are samples", quote(heading)))
	}
	if l.header && slices.Contains([]string{"feature", "component"}, l.first[0].text) {
		return "" // as written here: numbers alone follow
	}
	if len(o.Categories) == 0 {
		o.leaveOut(l, column)
	}
	return o.isLong(l, body)
}

// firstColumn finds out whether column 1 holds names.
func (o Options) firstColumn(l *layout, column func(c int) []cell, body [][]cell) {
	first := column(0)
	_, whole := wholes(first)
	switch {
	case len(o.Categories) > 0 && l.header && !isHeading(l.first[0].text) && repeats(first): // a category
	case l.short, l.header && isHeading(l.first[0].text), !o.allNumberLike(first),
		len(first) > 0 && len(body[0]) > 1 && quotedAgainst(first, [][]cell{body[0][len(body[0])-1:]}):
		l.names = 0
	case len(first) >= 2 && whole && l.header && looksLikeID(l.heading(0)):
		l.names = 0
		l.doubt(fmt.Sprintf("column 1 (%s) holds whole numbers and was taken for names of features; give "+
			"-names none if they are values", quote(l.heading(0))))
	case len(first) >= 3 && whole && len(body[0]) > 1:
		if _, others := wholes(column(1)); !others {
			l.doubt(fmt.Sprintf("column 1%s holds whole numbers, all different, and was taken for values; "+
				"give -names 1 if they are names of features", l.bracketed(0)))
		}
	}
}

// repeats tells whether a cell stands twice.
func repeats(column []cell) bool {
	seen := map[string]bool{}
	for _, c := range column {
		if seen[c.text] {
			return true
		}
		seen[c.text] = true
	}
	return false
}

// countsRows tells whether a column counts the rows from 0 or 1 on.
func countsRows(column []cell) bool {
	values, ok := wholes(column)
	for i, v := range values {
		ok = ok && values[0] <= 1 && v == values[0]+uint64(i)
	}
	return ok && len(values) > 1
}

// namesBehind tells whether column 2 holds the names, behind the numbers of rows: its heading says so, or its
// cells are words, each another.
func (o Options) namesBehind(l *layout, column []cell) bool {
	heading := l.heading(1)
	return heading != "" && ofNames(heading) || !repeats(column) && o.allWords(column)
}

// leaveOut finds the columns behind that of names which describe the features: columns of words, of further
// names, and of numbers that describe, where at least three are headed so, as in the tables of featureCounts.
func (o Options) leaveOut(l *layout, column func(c int) []cell) {
	left, all, described := l.names+1, l.names+1, 0
	for c := left; c < len(l.roles)-1; c++ {
		heading := l.heading(c)
		words := ofNumericNames(heading) || o.allWords(column(c))
		if !words && !ofDescription(heading) {
			break
		}
		if ofDescription(heading) {
			described++
		}
		if all = c + 1; words && left == c {
			left = all
		}
	}
	if described >= 3 {
		left = all
	}
	for c := l.names + 1; c < left; c++ {
		l.roles[c] = isLeft
	}
	if left < len(l.roles) && ofDescription(l.heading(left)) {
		l.doubt(fmt.Sprintf("column %d (%s) was taken for a sample; give -names 1-%d if it describes the "+
			"features", left+1, quote(l.heading(left)), left+1))
	}
}

// columns returns the columns of a list such as gene,3-5, which a flag gives. A number is that of a column,
// unless there are fewer columns: samples may be called 1, 2, ..., too. All of the list may be one heading.
func (l *layout) columns(flag, list string) (columns []int, problem string) {
	for part := range strings.SplitSeq(list, ",") {
		from, to := l.column(strings.TrimSpace(part))
		if from < 0 {
			if c := l.headed(list); c >= 0 {
				return []int{c}, ""
			}
			return nil, fmt.Sprintf("%s %s: none of the %d columns is called %s: give headings or numbers, "+
				"such as gene,3-5", flag, quote(list), len(l.roles), quote(part))
		}
		for c := from; c <= to; c++ {
			if !slices.Contains(columns, c) {
				columns = append(columns, c)
			}
		}
	}
	return columns, ""
}

// column returns the columns that a number, a range or a heading means; from is -1 where there are none.
func (l *layout) column(text string) (from, to int) {
	first, last, isRange := strings.Cut(text, "-")
	a, ok := count(first)
	b := a
	if isRange && ok {
		b, ok = count(last)
	}
	if ok && 1 <= a && a <= b && b <= uint64(len(l.roles)) {
		return int(a) - 1, int(b) - 1
	}
	c := l.headed(text)
	return c, c
}

// headed returns the column with a heading, -1 for none.
func (l *layout) headed(heading string) int {
	for c := range l.roles {
		if l.header && l.heading(c) == heading {
			return c
		}
	}
	return -1
}

// allWords tells whether a column holds words: most cells begin with a letter and none is a number. Cells may
// be empty.
func (o Options) allWords(column []cell) bool {
	letters, seen := 0, 0
	for _, c := range column {
		text := strings.TrimSpace(c.text)
		if o.isMissing(text) {
			continue
		}
		if o.numberLike(text) || isNumber(strings.Replace(text, ",", ".", 1)) {
			return false
		}
		seen++
		if r, _ := utf8.DecodeRuneInString(text); unicode.IsLetter(r) {
			letters++
		}
	}
	return seen > 0 && 2*letters > seen
}

func (o Options) allNumberLike(row []cell) bool {
	return !slices.ContainsFunc(row, func(c cell) bool { return !o.numberLike(c.text) })
}

func (o Options) allPlain(row []cell) bool {
	return !slices.ContainsFunc(row, func(c cell) bool { return !o.plainLike(c.text) })
}

// valueLike tells whether a cell of the first line can be a value: a plain number, or one with something
// beside it that a number below it has, too.
func (o Options) valueLike(text string, c int, rows [][]cell) bool {
	_, beside := o.stripped(text)
	return o.plainLike(text) || o.numberLike(text) && slices.ContainsFunc(rows, func(r []cell) bool {
		if c >= len(r) || !o.numberLike(r[c].text) {
			return false
		}
		_, there := o.stripped(r[c].text)
		return there == beside
	})
}

func (l *layout) doubt(text string) { l.doubts = append(l.doubts, text) }

// Shown returns a text that has names in it, of files, features or flags, as it is printed on a line.
// Characters that cannot be printed are escaped, so that no name can overwrite a line, begin another or
// control the terminal.
func Shown(text string) string {
	var s strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && r != utf8.RuneError {
			s.WriteString(text[:size])
		} else {
			escaped := strconv.Quote(text[:size])
			s.WriteString(escaped[1 : len(escaped)-1])
		}
		text = text[size:]
	}
	return s.String()
}

// quote returns a name in quotation marks, cut if it is long; characters that cannot be printed are escaped.
func quote(name string) string { return strconv.Quote(short(name)) }

// heading is what the first line says above a column, "" where it does not.
func (l *layout) heading(c int) string {
	switch {
	case !l.header, l.short && c == l.bare:
		return ""
	case l.short && c > l.bare:
		c--
	}
	if c >= len(l.first) { // line 3 of a GCT may be short
		return ""
	}
	return l.first[c].text
}

// bracketed is a heading in brackets, behind a blank.
func (l *layout) bracketed(c int) string {
	if heading := l.heading(c); heading != "" {
		return " (" + quote(heading) + ")"
	}
	return ""
}

// taken says in words what was taken for names; first is the number of the first line.
func (l *layout) taken(first int) string {
	var s strings.Builder
	s.WriteString(separatedBy[l.sep])
	if separatedBy[l.sep] == "" {
		fmt.Fprintf(&s, "separated by %q", l.sep)
	}
	samples := slices.Index(l.roles, isSample)
	if l.names >= 0 {
		fmt.Fprintf(&s, ", features named by column %d%s", l.names+1, l.bracketed(l.names))
	} else {
		s.WriteString(", no names of features")
	}
	switch {
	case samples >= 0:
		values := slices.Index(l.roles, isValue)
		fmt.Fprintf(&s, ", samples by column %d%s, a value a line in column %d%s", samples+1,
			l.bracketed(samples), values+1, l.bracketed(values))
	case l.header:
		fmt.Fprintf(&s, ", samples by line %d", first)
	default:
		s.WriteString(", no names of samples")
	}
	if l.roles[0] == isIndex {
		s.WriteString("; column 1" + l.bracketed(0) + " numbers the rows and was left out")
	}
	var left []string
	for c, r := range l.roles {
		if r == isLeft {
			left = append(left, strconv.Itoa(c+1)+l.bracketed(c))
		}
	}
	switch more := len(left) - 8; {
	case len(left) == 1:
		s.WriteString("; column " + left[0] + " left out")
	case more > 0:
		fmt.Fprintf(&s, "; columns %s and %d more left out", strings.Join(left[:8], ", "), more)
	case len(left) > 0:
		s.WriteString("; columns " + strings.Join(left, ", ") + " left out")
	}
	if n := len(l.roles); l.roles[n-1] == isEmpty {
		fmt.Fprintf(&s, "; column %d is empty", n)
	}
	return s.String()
}

var separatedBy = map[byte]string{'\t': "tab-separated", ',': "comma-separated", ';': "semicolon-separated",
	' ': "blank-separated"}
