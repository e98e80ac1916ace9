package report

// This file holds what is known of features and samples beside the matrix: groups, numbers and survival, and
// the table that has them.

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// Groups puts features, or samples, into groups. The zero value has none.
type Groups struct {
	Title string   // what the groups are, "" where it is not known
	Names []string // in their order
	Of    []int    // for each feature or sample an index into Names, -1 where it has no group

	backward bool // its colours are taken from the end
	rising   bool // they are steps of a number
}

// mostGroups is how many groups can be told apart.
const mostGroups = 30

// Known is what a table says of features and samples beside the matrix.
type Known struct {
	Features, Samples Groups          // of the first column: the colours of a page
	Tracks            []account.Track // of samples: each column in turn, and survival
}

// Columns says which columns of such a table are taken, by their headings.
type Columns struct {
	By          []string // in this order; none for all
	Time, Event string   // of survival, "" for none
}

// knownTable is what was read of such a table.
type knownTable struct {
	heading  []string            // nil where there is none
	lines    map[string][]string // of the names that are features or samples
	names    []string            // these, in their order
	warnings []string
}

// ReadKnown reads a table whose first column has names of features, samples or both, separated by tabs,
// commas or semicolons. Where a name stands more than once among features or samples, the line is of all. A
// cell that is empty, NA or NaN is not known. A first line whose name is neither is a heading. A column of
// numbers is one, unless few and often repeated ones are names of groups (parsed); a column of words has at
// most 30 groups. Warnings say which names are not known, what has no group in the first column, and which
// columns are left out. It is an error where no name is known, a name has two lines that differ, or a column
// that is asked for is not there or has too many groups.
func ReadKnown(text string, of Columns, features, samples []string) (k Known, warnings []string, err error) {
	t := knownTable{lines: map[string][]string{}}
	if err := t.read(text, features, samples); err != nil {
		return k, nil, err
	}
	by, err := t.columns(of)
	if err != nil {
		return k, nil, err
	}
	var left []string
	for i, c := range by {
		if i == 0 {
			k.Features = t.groups(c, features)
		}
		words, n := t.groups(c, samples), parsed(t.cells(c, samples))
		track, colours := account.Track{Name: t.name(c), Groups: words.Names, Of: words.Of}, words
		if n != nil {
			track, colours = account.Track{Name: t.name(c), Numbers: n}, quarters(t.title(c), n)
		}
		if n == nil && len(words.Names) > mostGroups || i == 0 && len(k.Features.Names) > mostGroups {
			if len(of.By) > 0 || len(by) == 1 {
				return Known{}, nil, fmt.Errorf("%s has more than %d groups: give a column of numbers or "+
					"of few different words", strconv.Quote(clipped(t.name(c), 40)), mostGroups)
			}
			left = append(left, t.name(c))
			if i == 0 {
				k.Features = Groups{}
			}
			continue
		}
		if words.Of == nil {
			continue
		}
		if k.Tracks = append(k.Tracks, track); len(k.Tracks) == 1 {
			k.Samples = colours
		}
	}
	t.without(&k.Features, features, "feature")
	t.without(&k.Samples, samples, "sample")
	if len(left) > 0 {
		t.warnings = append(t.warnings, fmt.Sprintf("left out: %s with more than %d groups: %s",
			table.Counted(len(left), "column"), mostGroups, table.Examples(left)))
	}
	if of.Time != "" {
		track, err := t.survival(of, samples)
		if err != nil {
			return Known{}, nil, err
		}
		k.Tracks = append(k.Tracks, track)
	}
	if k.Features.Of == nil && len(k.Tracks) == 0 {
		return k, nil, errors.New("no feature and no sample has a group: the columns are empty where names " +
			"are known")
	}
	return k, t.warnings, nil
}

// read takes in the lines.
func (t *knownTable) read(text string, features, samples []string) error {
	known := map[string]bool{}
	for _, n := range slices.Concat(features, samples) {
		known[n] = true
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.Contains(first, "\t"):
		r.Comma = '\t'
	case !strings.Contains(first, ",") && strings.Contains(first, ";"):
		r.Comma = ';'
	}
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	var unknown []string
	for lines := 0; ; lines++ {
		record, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("no table of names and groups: %w", err)
		}
		line, _ := r.FieldPos(0)
		if len(record) < 2 && (lines > 0 || known[record[0]]) {
			return noSecond(line)
		}
		for c, cell := range record {
			if record[c] = strings.TrimSpace(cell); record[c] == "NA" || record[c] == "NaN" {
				record[c] = ""
			}
		}
		name := record[0]
		before, seen := t.lines[name]
		switch {
		case !known[name] && lines == 0:
			t.heading = record
		case !known[name]:
			unknown = append(unknown, name)
		case !seen:
			t.names, t.lines[name] = append(t.names, name), record
		default:
			for c := range max(len(before), len(record)) {
				if a, b := cell(before, c), cell(record, c); a != b {
					return fmt.Errorf("line %d: %q has the group %q here and %q above", line,
						clipped(name, 40),
						clipped(b, 40), clipped(a, 40))
				}
			}
		}
	}
	if len(t.lines) == 0 && len(t.heading) == 1 {
		return noSecond(1)
	}
	if len(t.lines) == 0 {
		err := errors.New("no name in the first column is that of a feature or a sample")
		if len(unknown) > 0 {
			err = fmt.Errorf("%w (it has %s)", err, table.Examples(unknown))
		}
		return err
	}
	if h := t.heading; h != nil && len(h)+1 == len(t.lines[t.names[0]]) { // as R's write.table has it
		t.heading = append([]string{""}, h...)
	} else if h != nil && slices.ContainsFunc(t.names, func(name string) bool {
		return cell(t.lines[name], 1) == cell(h, 1)
	}) { // the first line is one like the others
		t.heading, unknown = nil, append([]string{h[0]}, unknown...)
	}
	t.warn(table.Told(unknown, "name is", "names are", "not in the matrix"))
	return nil
}

func noSecond(line int) error {
	return fmt.Errorf("line %d has no second column: a line is a name and what is known of it, with a tab, "+
		"comma or semicolon between", line)
}

// warn takes in warnings.
func (t *knownTable) warn(told []string) { t.warnings = append(t.warnings, told...) }

// cell is that of column c of a line, "" where the line is shorter.
func cell(line []string, c int) string {
	if c < len(line) {
		return line[c]
	}
	return ""
}

// cells are those of column c for features or samples.
func (t *knownTable) cells(c int, called []string) []string {
	out := make([]string, len(called))
	for i, name := range called {
		out[i] = cell(t.lines[name], c)
	}
	return out
}

// title is the heading of column c, "" where there is none, and name what to call the column.
func (t *knownTable) title(c int) string { return cell(t.heading, c) }

func (t *knownTable) name(c int) string { return cmp.Or(t.title(c), fmt.Sprintf("column %d", c+1)) }

// columns are those that are taken: those asked for, or all but those of survival.
func (t *knownTable) columns(of Columns) (by []int, err error) {
	for _, title := range of.By {
		c, err := t.find(title)
		if err != nil {
			return nil, err
		}
		by = append(by, c)
	}
	if len(of.By) > 0 {
		return by, nil
	}
	widest := len(t.heading)
	for _, line := range t.lines {
		widest = max(widest, len(line))
	}
	for c := 1; c < widest; c++ {
		if title := t.title(c); of.Time == "" || title != of.Time && title != of.Event {
			by = append(by, c)
		}
	}
	return by, nil
}

// find is the column of a heading.
func (t *knownTable) find(title string) (int, error) {
	if c := slices.Index(t.heading, title); c > 0 {
		return c, nil
	}
	if len(t.heading) == 0 {
		return 0, fmt.Errorf("there is no column %q: the first line is no heading", clipped(title, 40))
	}
	return 0, fmt.Errorf("there is no column %q: the first line has %s", clipped(title, 40),
		table.Examples(t.heading[1:]))
}

// groups returns those of features or samples by column c, none where no name has one.
func (t *knownTable) groups(c int, called []string) Groups {
	g, index, used := Groups{Title: t.title(c)}, map[string]int{"": -1}, map[string]bool{}
	cells := t.cells(c, called)
	for _, group := range cells {
		used[group] = true
	}
	for _, name := range t.names { // in the order of the file
		group := cell(t.lines[name], c)
		if _, seen := index[group]; used[group] && !seen {
			index[group] = len(g.Names)
			g.Names = append(g.Names, group)
		}
	}
	if len(g.Names) == 0 {
		return Groups{}
	}
	for _, group := range cells {
		g.Of = append(g.Of, index[group])
	}
	return g
}

// without warns of features or samples without a group where others have one.
func (t *knownTable) without(g *Groups, called []string, what string) {
	var names []string
	for i, of := range g.Of {
		if of < 0 {
			names = append(names, called[i])
		}
	}
	t.warn(table.Told(names, what+" is", what+"s are", "without a group"))
}

// parsed reads cells as numbers, NaN for an empty one. It returns nil where one is no number, and where
// there are at most ten different ones that come twice or more on average: these are names of groups.
func parsed(cells []string) []float64 {
	out, different, known := make([]float64, len(cells)), map[float64]bool{}, 0
	for i, text := range cells {
		if out[i] = math.NaN(); text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v-v != 0 {
			return nil
		}
		out[i], different[v] = v, true
		known++
	}
	if n := len(different); n <= 10 && 2*n <= known {
		return nil
	}
	return out
}

// quarters are groups of samples by a number, from the lowest to the highest.
func quarters(title string, numbers []float64) Groups {
	sorted := slices.DeleteFunc(slices.Clone(numbers), func(v float64) bool { return v != v })
	slices.Sort(sorted)
	g := Groups{Title: title, Of: make([]int, len(numbers)), rising: true}
	var ends []float64
	for q := range 4 {
		end := sorted[((q+1)*len(sorted)+3)/4-1]
		if q > 0 && end == ends[len(ends)-1] {
			continue
		}
		of := "up to " + short(end)
		if q > 0 {
			of = short(ends[len(ends)-1]) + " to " + short(end)
		}
		ends, g.Names = append(ends, end), append(g.Names, of)
	}
	for j, v := range numbers {
		if g.Of[j] = -1; v == v {
			g.Of[j], _ = slices.BinarySearch(ends, v)
		}
	}
	return g
}

// survival reads the times and events of samples.
func (t *knownTable) survival(of Columns, samples []string) (s account.Track, err error) {
	var c [2]int
	for i, title := range []string{of.Time, of.Event} {
		if c[i], err = t.find(title); err != nil {
			return s, err
		}
	}
	s = account.Track{Name: of.Time, Numbers: make([]float64, len(samples)),
		Event: make([]bool, len(samples))}
	times, events := t.cells(c[0], samples), t.cells(c[1], samples)
	for j, name := range samples {
		if s.Numbers[j] = math.NaN(); times[j] == "" || events[j] == "" {
			continue
		}
		v, err := strconv.ParseFloat(times[j], 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) {
			return s, fmt.Errorf("the time %q of %q is no number from 0", clipped(times[j], 40),
				clipped(name, 40))
		}
		word, _, _ := strings.Cut(strings.ToLower(events[j]), ":") // as cBioPortal has it, 1:DECEASED
		switch word {
		case "1", "1.0", "true", "yes", "dead", "deceased", "event":
			s.Event[j] = true
		case "0", "0.0", "false", "no", "alive", "living", "censored":
		default:
			return s, fmt.Errorf("%q of %q is no event: it must be 1 where the time ends with the event, "+
				"and 0 where it ends before", clipped(events[j], 40), clipped(name, 40))
		}
		s.Numbers[j] = v
	}
	return s, nil
}

// order sorts the indices of features or samples by their groups, those without last; within
// a group they stay as they are.
func (g *Groups) order(indices []int) {
	slices.SortStableFunc(indices, func(a, b int) int { return g.rank(a) - g.rank(b) })
}

// rank is the place of i's group, that of no group behind all.
func (g *Groups) rank(i int) int {
	if g.Of == nil || g.Of[i] < 0 {
		return len(g.Names)
	}
	return g.Of[i]
}

// name is that of the group of rank r.
func (g *Groups) name(r int) string {
	if r == len(g.Names) {
		return "no group"
	}
	return g.Names[r]
}

// groupInks are the colours of groups, in turn: Okabe and Ito's without yellow, which is too
// light for dots, and three more. Features take them from the end, so that few colours mean
// a group of either.
var groupInks = []string{"#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#8f8f3c",
	"#6a51a3", "#5c4033"}

// risingInks are those of quarters of a number, from low to high, as in the heatmaps.
var risingInks = []string{"#2166ac", "#67a9cf", "#ef8a62", "#b2182b"}

// ink is the colour of the group of rank r.
func (g *Groups) ink(r int) string {
	if r == len(g.Names) {
		return "#9a9a9a"
	}
	if g.rising {
		return risingInks[r]
	}
	if r %= len(groupInks); g.backward {
		r = len(groupInks) - 1 - r
	}
	return groupInks[r]
}

// Inks are the colours of the groups of samples, in the order of their names.
func (g Groups) Inks() []string {
	inks := make([]string, len(g.Names))
	for r := range inks {
		inks[r] = g.ink(r)
	}
	return inks
}

// run is a stretch of neighbours of one group: from, up to but not including, to.
type run struct{ rank, from, to int }

// runs returns the stretches of indices, in their order, none where there are no groups.
func (g *Groups) runs(indices []int) (out []run) {
	if g.Of == nil {
		return nil
	}
	for t, i := range indices {
		if r := g.rank(i); t > 0 && out[len(out)-1].rank == r {
			out[len(out)-1].to++
		} else {
			out = append(out, run{r, t, t + 1})
		}
	}
	return out
}
