package report

// This file holds the tables of tests: components against what is known of samples, and against sets of
// features.

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// A table has the tests of a q of at most sureBelow, mostTests of them, and at least leastTests whatever
// their q.
const (
	sureBelow  = 0.05
	mostTests  = 60
	leastTests = 8
)

// goesWith writes what a component goes with, on its card.
func (d *document) goesWith(c int, tests []account.Test) {
	for _, t := range tests {
		if t.Component == c && t.Q <= sureBelow {
			d.add(`<p class="goes"><b>%s</b> %s</p>`, clipped(t.Track.Name, 40), clipped(t.Words(), 80))
		}
	}
}

// Tests is a table of tests, the most certain first.
type Tests struct {
	Title, How string // How has <b> and </b> as HTML has them
	Heading    []string
	Rows       [][]string
	Chance     []bool // whether a row may be chance
	Count      string // of all tests, in words
}

// Tests are the tables of tests of components against what is known of the samples, and against sets of
// features.
func (f *Fit) Tests() []Tests {
	return slices.DeleteFunc([]Tests{known(account.Against(f.V, f.Tracks)),
		sets(account.AgainstSets(f.U, f.Shares, f.Goodness, f.Sets))},
		func(t Tests) bool { return t.Count == "" })
}

// known is the table of tests against what is known of the samples.
func known(tests []account.Test) Tests {
	t := Tests{Title: "Components and what is known of the samples",
		How: fmt.Sprintf(`Every component is tested against every column of the table of groups. <b>ε²</b> is
the part of the differences between samples (of their ranks) that lies between groups: 0 where groups
are alike, 1 where each has a range of its own. <b>ρ</b> is the rank correlation with a number.
<b>Hazard</b> says how many times higher the rate of events is with one standard deviation more of the
component, with its 95 %% interval. <b>p</b> is the chance of such an effect if the component had
nothing to do with the column (tests of Kruskal and Wallis, Spearman, Cox), <b>q</b> the same corrected
for the number of tests (Benjamini and Hochberg): of all lines with a q of at most %g one in %g may be
chance. A test does not say why: a batch or an age makes small p-values, too.`, sureBelow, 1/sureBelow),
		Heading: []string{"component", "column", "samples", "effect", "p", "q"}}
	t.take(len(tests), func(i int) float64 { return tests[i].P }, func(i int) float64 { return tests[i].Q },
		func(i int) []string {
			t := &tests[i]
			return []string{name(t.Component), t.Track.Name, fmt.Sprint(t.Samples), t.Words()}
		})
	return t
}

// sets is the table of tests against sets of features.
func sets(tests []account.SetTest) Tests {
	t := Tests{Title: "Components and sets of features",
		How: `<b>Above</b> is the chance that the component stands more for a member of the set
than for another feature: 1 where all members come first, .5 where the set is like the others, below
where members come last. p is that of Mann and Whitney's rank test, q the same corrected for the number
of tests. Members of a set go together in most data, and the test takes them to be independent: p and q
put the sets in order, and are too small as chances, so look at <b>above</b> first.`,
		Heading: []string{"component", "set", "members", "above", "p", "q"}}
	t.take(len(tests), func(i int) float64 { return tests[i].P }, func(i int) float64 { return tests[i].Q },
		func(i int) []string {
			t := &tests[i]
			return []string{name(t.Component), t.Set.Name, fmt.Sprint(len(t.Set.Members)),
				fmt.Sprintf("%.2f", t.Above)}
		})
	return t
}

// take takes the rows from tests.
func (t *Tests) take(count int, p, q func(i int) float64, cells func(i int) []string) {
	var order []int
	sure := 0
	for i := range count {
		if p(i) == p(i) {
			order = append(order, i)
		}
		if q(i) <= sureBelow {
			sure++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p(a), p(b)) })
	shown := order[:min(len(order), max(min(sure, mostTests), leastTests))]
	for _, i := range shown {
		t.Rows = append(t.Rows, append(cells(i), account.Chance(p(i)), account.Chance(q(i))))
		t.Chance = append(t.Chance, q(i) > sureBelow)
	}
	if count == 0 {
		return
	}
	t.Count = fmt.Sprintf("%d of %s %s a q of at most %g", sure, table.Counted(count, "test"),
		map[bool]string{true: "has", false: "have"}[sure == 1], sureBelow)
	if left := len(order) - len(shown); left > 0 {
		t.Count += fmt.Sprintf("; %s left out here (quantmf inspect -json has all)",
			table.Counted(left, "line is", "lines are"))
	}
	if none := count - len(order); none > 0 {
		t.Count += fmt.Sprintf("; %s could not be made", table.Counted(none, "test"))
	}
	t.Count += "."
}

// tests writes tables of tests.
func (d *document) tests(all []Tests) {
	for _, t := range all {
		d.section(t.Title)
		d.add(how+"%s</p>\n<div class=\"wide\"><table><tr>", markup(t.How))
		for _, h := range t.Heading {
			d.add("<th>%s</th>", h)
		}
		d.add("</tr>\n")
		for i, row := range t.Rows {
			class := ""
			if t.Chance[i] {
				class = ` class="chance"`
			}
			d.add("<tr%s>", markup(class))
			for _, c := range row {
				d.add("<td>%s</td>", clipped(c, 80))
			}
			d.add("</tr>\n")
		}
		d.add("</table></div>\n<p class=\"how\">%s</p>\n</section>\n\n", t.Count)
	}
}
