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

// known writes the tests of components against what is known of the samples.
func (d *document) known(tests []account.Test) {
	if len(tests) == 0 {
		return
	}
	d.section("Components and what is known of the samples")
	d.add(how+`Every component is tested against every column of the table of groups. <b>ε²</b> is
the part of the differences between samples (of their ranks) that lies between groups: 0 where groups
are alike, 1 where each has a range of its own. <b>ρ</b> is the rank correlation with a number.
<b>Hazard</b> says how many times higher the rate of events is with one standard deviation more of the
component, with its 95 %% interval. <b>p</b> is the chance of such an effect if the component had
nothing to do with the column (tests of Kruskal and Wallis, Spearman, Cox), <b>q</b> the same corrected
for the number of tests (Benjamini and Hochberg): of all lines with a q of at most %g one in %g may be
chance. A test does not say why: a batch or an age makes small p-values, too.</p>
`, sureBelow, 1/sureBelow)
	d.tests([]string{"component", "column", "samples", "effect", "p", "q"}, len(tests),
		func(i int) float64 { return tests[i].P }, func(i int) float64 { return tests[i].Q },
		func(i int) []string {
			t := &tests[i]
			return []string{name(t.Component), t.Track.Name, fmt.Sprint(t.Samples), t.Words()}
		})
}

// sets writes the tests of components against sets of features.
func (d *document) sets(tests []account.SetTest) {
	if len(tests) == 0 {
		return
	}
	d.section("Components and sets of features")
	d.add(how + `<b>Above</b> is the chance that the component stands more for a member of the set
than for another feature: 1 where all members come first, .5 where the set is like the others, below
where members come last. p is that of Mann and Whitney's rank test, q the same corrected for the number
of tests. Members of a set go together in most data, and the test takes them to be independent: p and q
put the sets in order, and are too small as chances, so look at <b>above</b> first.</p>
`)
	d.tests([]string{"component", "set", "members", "above", "p", "q"}, len(tests),
		func(i int) float64 { return tests[i].P }, func(i int) float64 { return tests[i].Q },
		func(i int) []string {
			t := &tests[i]
			return []string{name(t.Component), t.Set.Name, fmt.Sprint(len(t.Set.Members)),
				fmt.Sprintf("%.2f", t.Above)}
		})
}

// tests writes a table of tests, the most certain first, and ends the section.
func (d *document) tests(head []string, count int, p, q func(i int) float64, cells func(i int) []string) {
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
	d.add(`<div class="wide"><table><tr>`)
	for _, h := range head {
		d.add("<th>%s</th>", h)
	}
	d.add("</tr>\n")
	for _, i := range shown {
		class := ""
		if q(i) > sureBelow {
			class = ` class="chance"`
		}
		d.add("<tr%s>", markup(class))
		for _, c := range append(cells(i), account.Chance(p(i)), account.Chance(q(i))) {
			d.add("<td>%s</td>", clipped(c, 80))
		}
		d.add("</tr>\n")
	}
	d.add("</table></div>\n<p class=\"how\">%s of %s %s a q of at most %g", fmt.Sprint(sure),
		table.Counted(count, "test"), map[bool]string{true: "has", false: "have"}[sure == 1], sureBelow)
	if left := len(order) - len(shown); left > 0 {
		d.add("; %s left out here (<code>quantmf inspect -json</code> has all)",
			table.Counted(left, "line is", "lines are"))
	}
	if none := count - len(order); none > 0 {
		d.add("; %s could not be made", table.Counted(none, "test"))
	}
	d.add(".</p>\n</section>\n\n")
}
