package report

// This file holds groups of features and of samples, and the table that names them.

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quantmf/quantmf/internal/table"
)

// Groups puts features, or samples, into groups. The zero value has none.
type Groups struct {
	Title string   // what the groups are, "" where it is not known
	Names []string // in their order
	Of    []int    // for each feature or sample an index into Names, -1 where it has no group

	backward bool // its colours are taken from the end
}

// mostGroups is how many groups can be told apart.
const mostGroups = 30

// groupTable is what was read of a table of names and groups.
type groupTable struct {
	known          map[string]bool   // features and samples
	groups         map[string]string // of the names of the table that are known, "" for none
	names, unknown []string          // groups in their order; names that are neither feature nor sample
	heading, above string            // the first line, if that is a heading: its second cell and its first
	warnings       []string
}

// ReadGroups reads a table of two columns, names and their groups, separated by tabs, commas
// or semicolons. A name may be one of the features, of the samples, or both; where it stands
// more than once there, all have the group. An empty group, NA and NaN are none. A first line
// whose name is neither is a heading. Warnings say which names are not known, what has no
// group, and which column was taken of more than two. It is an error where no name is known,
// where a name has two groups, and where there are more than 30 groups.
func ReadGroups(text string, features, samples []string) (ofFeatures, ofSamples Groups, warnings []string,
	err error) {
	t := groupTable{known: map[string]bool{}, groups: map[string]string{}}
	for _, names := range [][]string{features, samples} {
		for _, n := range names {
			t.known[n] = true
		}
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	first, _, _ := strings.Cut(text, "\n")
	switch {
	case strings.Contains(first, "\t"):
		r.Comma = '\t'
	case !strings.Contains(first, ",") && strings.Contains(first, ";"):
		r.Comma = ';'
	}
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, true
	for lines := 0; err == nil; lines++ {
		record, wrong := r.Read()
		if wrong == io.EOF {
			break
		}
		if err = wrong; err != nil {
			err = fmt.Errorf("no table of names and groups: %w", err)
		} else {
			line, _ := r.FieldPos(0)
			err = t.add(record, line, lines == 0)
		}
	}
	if err == nil && len(t.groups) == 0 {
		err = errors.New("no name in the first column is that of a feature or a sample")
		if len(t.unknown) > 0 {
			err = fmt.Errorf("%w (it has %s)", err, table.Examples(t.unknown))
		}
	}
	if err != nil {
		return ofFeatures, ofSamples, nil, err
	}
	if slices.Contains(t.names, t.heading) { // the first line is one like the others
		t.heading, t.unknown = "", append([]string{t.above}, t.unknown...)
	}
	if len(t.unknown) > 0 {
		t.warn("%s not in the matrix: %s", table.Counted(len(t.unknown), "name is", "names are"),
			table.Examples(t.unknown))
	}
	ofFeatures, ofSamples = t.of(features, "feature"), t.of(samples, "sample")
	if ofFeatures.Of == nil && ofSamples.Of == nil {
		return ofFeatures, ofSamples, nil,
			errors.New("no feature and no sample has a group: the second column is empty where names " +
				"are known")
	}
	return ofFeatures, ofSamples, t.warnings, nil
}

func (t *groupTable) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// add takes in a line.
func (t *groupTable) add(record []string, line int, first bool) error {
	if len(record) < 2 {
		return fmt.Errorf("line %d has no second column: a line is a name and its group, with a tab, "+
			"comma or semicolon between", line)
	}
	name, group := strings.TrimSpace(record[0]), strings.TrimSpace(record[1])
	switch {
	case !t.known[name] && first:
		t.heading, t.above = group, name
		if len(record) > 2 {
			t.warn("column 2 (%q) was taken for the groups; columns from 3 (%q) on were left out",
				clipped(group, 40), clipped(record[2], 40))
		}
		return nil
	case !t.known[name]:
		t.unknown = append(t.unknown, name)
		return nil
	case group == "NA", group == "NaN":
		group = ""
	}
	if before, seen := t.groups[name]; seen && before != group {
		return fmt.Errorf("line %d: %q has the group %q here and %q above", line, clipped(name, 40),
			clipped(group, 40), clipped(before, 40))
	}
	t.groups[name] = group
	if group != "" && !slices.Contains(t.names, group) {
		t.names = append(t.names, group)
	}
	if len(t.names) > mostGroups {
		return fmt.Errorf("line %d: the second column has more than %d groups: give a column of few "+
			"different words", line, mostGroups)
	}
	return nil
}

// of returns the groups of features or samples, none where no name has one, and warns of those that have none
// where others have.
func (t *groupTable) of(called []string, what string) Groups {
	g := Groups{Title: t.heading, Of: make([]int, len(called))}
	used := map[string]bool{}
	for _, name := range called {
		used[t.groups[name]] = true
	}
	for _, name := range t.names {
		if used[name] {
			g.Names = append(g.Names, name)
		}
	}
	if len(g.Names) == 0 {
		return Groups{}
	}
	var without []string
	for i, name := range called {
		if g.Of[i] = slices.Index(g.Names, t.groups[name]); g.Of[i] < 0 {
			without = append(without, name)
		}
	}
	if len(without) > 0 {
		t.warn("%s without a group: %s", table.Counted(len(without), what+" is", what+"s are"),
			table.Examples(without))
	}
	return g
}

// order sorts the indices of features or samples by their groups, those without last; within
// a group they stay as they are.
func (g *Groups) order(indices []int) {
	if g.Of == nil {
		return
	}
	slices.SortStableFunc(indices, func(a, b int) int { return g.rank(a) - g.rank(b) })
}

// rank is the place of i's group, that of no group behind all.
func (g *Groups) rank(i int) int {
	if g.Of[i] < 0 {
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

// ink is the colour of the group of rank r.
func (g *Groups) ink(r int) string {
	if r == len(g.Names) {
		return "#9a9a9a"
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

// runs returns the stretches of indices, in their order.
func (g *Groups) runs(indices []int) (out []run) {
	for t, i := range indices {
		if r := g.rank(i); t > 0 && out[len(out)-1].rank == r {
			out[len(out)-1].to++
		} else {
			out = append(out, run{r, t, t + 1})
		}
	}
	return out
}
