package report

// This file tests groups: what a table of them may hold, the order they make, and their colours.

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestReadKnownGroups(t *testing.T) {
	t.Parallel()
	features, samples := []string{"g1", "g2", "g3"}, []string{"a", "b", "c", "b", "x,y"}
	for _, c := range []struct {
		text              string
		ofSamples         Groups
		ofFeatures        Groups
		warnings, problem string // parts of them
	}{
		{text: "a\tM\nb\tN\nc\tM\nx,y\tN\n",
			ofSamples: Groups{Names: []string{"M", "N"}, Of: []int{0, 1, 0, 1, 1}}},
		{text: "\ufeffname;kind\r\nb;N\r\na;M\r\nc;NA\r\nx,y;\r\n",
			ofSamples: Groups{Title: "kind", Names: []string{"N", "M"}, Of: []int{1, 0, -1, 0, -1}},
			warnings:  `2 samples are without a group: "c", "x,y"`},
		{text: "a\tM\nb\tN\nc\tNaN\nx,y\tM\n",
			ofSamples: Groups{Names: []string{"M", "N"}, Of: []int{0, 1, -1, 1, 0}},
			warnings:  `1 sample is without a group: "c"`},
		{text: "name,kind,age\na,\"M,1\",5\nb,N,6\nc,N,7\n\"x,y\",N,8\n",
			ofSamples: Groups{Title: "kind", Names: []string{"M,1", "N"}, Of: []int{0, 1, 1, 1, 1}},
		},
		{text: "g3\tmRNA\ng1\tprotein\ng2\tmRNA\n",
			ofFeatures: Groups{Names: []string{"mRNA", "protein"}, Of: []int{1, 0, 0}}},
		{text: "a\tM\nb\tM\nc\tM\nx,y\tN\ng1\tN\n",
			ofSamples:  Groups{Names: []string{"M", "N"}, Of: []int{0, 0, 0, 0, 1}},
			ofFeatures: Groups{Names: []string{"N"}, Of: []int{0, -1, -1}},
			warnings:   `2 features are without a group: "g2", "g3"`},
		// A first line that names an unknown sample is no heading.
		{text: "z\tM\na\tM\nb\tM\nc\tN\nx,y\tM\nq\tN\n",
			ofSamples: Groups{Names: []string{"M", "N"}, Of: []int{0, 0, 1, 0, 0}},
			warnings:  `2 names are not in the matrix: "z", "q"`},
		{text: "a\tM\na\tM\nb\tM\n", ofSamples: Groups{Names: []string{"M"}, Of: []int{0, 0, -1, 0, -1}},
			warnings: "2 samples are without a group"},
		{text: "a\tM\nb\tM\na\tN\n", problem: `line 3: "a" has the group "N" here and "M" above`},
		{text: "z\tM\ny\tN\n", problem: `no name in the first column is that of a feature or a sample (it ` +
			`has "y")`},
		{text: "", problem: "no name in the first column"},
		{text: "a\nb\n", problem: "line 1 has no second column"},
		{text: "a\t\nb\tNA\n", problem: "no feature and no sample has a group: the columns are empty"},
	} {
		k, warnings, err := ReadKnown(c.text, Columns{}, features, samples)
		f, s := k.Features, k.Samples
		if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%q: %v, want %s", c.text, err, c.problem)
			continue
		}
		if said := strings.Join(warnings, "\n"); (said == "") != (c.warnings == "") ||
			!strings.Contains(said, c.warnings) {
			t.Errorf("%q: warnings %q, want %q", c.text, said, c.warnings)
		}
		if err == nil && (!alikeGroups(f, c.ofFeatures) || !alikeGroups(s, c.ofSamples)) {
			t.Errorf("%q: %v and %v", c.text, f, s)
		}
	}
	var many strings.Builder
	var names []string
	for i := range mostGroups + 1 {
		names = append(names, "s"+strconv.Itoa(i))
		many.WriteString(names[i] + "\t" + strconv.Itoa(i) + "\n")
	}
	words := strings.ReplaceAll(many.String(), "\t", "\tg")
	if _, _, err := ReadKnown(words, Columns{}, nil, names); err == nil ||
		!strings.Contains(err.Error(), "more than 30 groups") {
		t.Errorf("31 groups: %v", err)
	}
}

func alikeGroups(a, b Groups) bool {
	return a.Title == b.Title && slices.Equal(a.Names, b.Names) && slices.Equal(a.Of, b.Of)
}

// arranged is the order of the heatmaps.
func arranged(f Fit) shown {
	s, _, _ := f.arrange(f.places())
	return s
}

// TestOrderOfPanels: samples stand as in the table, or like beside like if asked for; groups stand
// together, as they were named, and within them the order stays.
func TestOrderOfPanels(t *testing.T) {
	t.Parallel()
	f := example(20, 9)
	for i := range f.X.Rows { // columns of two kinds, in turn
		for j := range f.X.Cols {
			f.Fitted.Set(i, j, float64((i+j%2)%3)+float64(j)/100)
			f.V.Set(0, j, float64(j%2)+float64(j)/100)
		}
	}
	turns := 0 // between rows with i%3 = 2, which fall from column to column where the others rise, and those
	for t, rows := 1, arranged(f).rows; t < len(rows); t++ {
		if (rows[t]%3 == 2) != (rows[t-1]%3 == 2) {
			turns++
		}
	}
	if turns != 1 {
		t.Errorf("like rows are not beside like: %v", arranged(f).rows)
	}
	EqualAll(t, arranged(f).columns, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, "samples are not as in the table")
	f.Order = "tree"
	columns := arranged(f).columns
	changes := 0
	for t := 1; t < len(columns); t++ {
		changes += (columns[t] + columns[t-1]) % 2
	}
	if changes != 1 {
		t.Errorf("like is not beside like: %v", columns)
	}
	f.Order = "c1"
	EqualAll(t, arranged(f).columns, []int{7, 5, 3, 1, 8, 6, 4, 2, 0}, "by their amount of c1")
	f.Order = ""
	f.SampleGroups = Groups{Names: []string{"A", "B"}, Of: []int{1, 0, -1, 1, 0, -1, 1, 0, -1}}
	EqualAll(t, arranged(f).columns, []int{1, 4, 7, 0, 3, 6, 2, 5, 8}, "groups of samples")
	f.FeatureGroups = Groups{Names: []string{"C"}, Of: make([]int, 20)}
	for i := range 10 {
		f.FeatureGroups.Of[i] = -1
	}
	rows := arranged(f).rows
	for t1, i := range rows {
		if (t1 < 10) != (i >= 10) {
			t.Fatalf("groups of features: %v", rows)
		}
	}
	page := render(t, f)
	wellFormed(t, page)
	Has(t, page, "<title>A: 3 samples</title>", "<title>no group: 3 samples</title>",
		"<title>C: 10 features</title>", "B (3)", "no group (10)")
	// Each panel, each profile and both keys have a stretch of every group in its colour, the tree some.
	_, _, tree := f.arrange(f.places())
	want := 4 + 2 + 2
	for _, r := range f.SampleGroups.runs(tree.leaves) {
		if r.rank == 0 {
			want++
		}
	}
	Equal(t, strings.Count(page, `fill="`+f.SampleGroups.ink(0)+`"`), want, "stretches of the first group")
}

// FuzzReadKnown: no table of groups is taken for more than it is.
func FuzzReadKnown(f *testing.F) {
	for _, s := range []string{"a\tM\nb\tN\n", "\ufeffname;kind\r\nb;N\r\na;M", "\"a\",\"M\n\"\nb",
		"a\tM\na\tN\n", "a,\"", "\n\n", "a\t\xff\n",
		"a\t1\t2\nb\t3\t1e9\n"} {
		f.Add(s)
	}
	features, samples := []string{"g", "a", ""}, []string{"a", "b", "a", "\xff"}
	f.Fuzz(func(t *testing.T, text string) {
		k, _, err := ReadKnown(text, Columns{}, features, samples)
		if err != nil {
			return
		}
		for _, track := range k.Tracks {
			if len(track.Of) != len(samples) && len(track.Numbers) != len(samples) {
				t.Fatalf("%q: %v", text, track)
			}
		}
		for _, c := range []struct {
			g     Groups
			names []string
		}{{k.Features, features}, {k.Samples, samples}} {
			if c.g.Of == nil && len(c.g.Names) == 0 {
				continue
			}
			if len(c.g.Of) != len(c.names) || len(c.g.Names) == 0 || len(c.g.Names) > mostGroups {
				t.Fatalf("%q: %v", text, c.g)
			}
			used := make([]bool, len(c.g.Names))
			for i, k := range c.g.Of {
				if k < -1 || k >= len(used) {
					t.Fatalf("%q: %v", text, c.g)
				}
				if k >= 0 {
					used[k] = true
				}
				for j := range i {
					if c.names[i] == c.names[j] && c.g.Of[i] != c.g.Of[j] {
						t.Fatalf("%q: one name has two groups: %v", text, c.g)
					}
				}
			}
			if slices.Contains(used, false) || slices.Contains(c.g.Names, "") {
				t.Fatalf("%q: a group of nothing: %v", text, c.g)
			}
		}
		if k.Features.Of == nil && k.Samples.Of == nil {
			t.Fatalf("%q: no groups and no error", text)
		}
	})
}
