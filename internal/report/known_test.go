package report

// This file tests the columns of a table of what is known, and the tables of tests on the page.

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestReadKnownColumns: which columns are tracks, of which kind, and which has the colours.
func TestReadKnownColumns(t *testing.T) {
	t.Parallel()
	var samples []string
	text := "id\tsite\tage\tgrade\tbarcode\tdays\tdied\n"
	for j := range 40 {
		samples = append(samples, "s"+strconv.Itoa(j))
		age := strconv.Itoa(30 + j)
		if j == 7 {
			age = "NA"
		}
		text += strings.Join([]string{samples[j], "site" + strconv.Itoa(j%3), age, strconv.Itoa(1 + j%4),
			"code" + strconv.Itoa(j), strconv.Itoa(100 + j), []string{"0:LIVING", "1:DECEASED"}[j%2]}, "\t") +
			"\n"
	}
	twelve, noHeading := "", ""
	for j := range 12 { // as R's write.table has it, a heading shorter by one
		twelve += samples[j] + "\t" + strconv.Itoa(j*j) + "\t" + "ab"[j%2:j%2+1] + "\n"
	}
	noHeading, twelve = twelve, "size\tletter\n"+twelve
	for _, c := range []struct {
		text, tracks string // a word a track
		of           Columns
		colours      []string
		problem      string // of the error, or of the warnings
	}{
		{text, "site:groups age:numbers grade:groups days:survival", Columns{Time: "days", Event: "died"},
			[]string{"site0", "site1", "site2"}, `left out: 1 column with more than 30 groups: "barcode"`},
		{text, "age:numbers site:groups", Columns{By: []string{"age", "site"}},
			[]string{"up to 40", "40 to 50", "50 to 60", "60 to 69"}, `1 sample is without a group: "s7"`},
		{text, "", Columns{By: []string{"barcode"}}, nil, `"barcode" has more than 30 groups`},
		{text, "", Columns{By: []string{"stage"}}, nil,
			`there is no column "stage": the first line has "site"`},
		{text, "", Columns{Time: "site", Event: "died"}, nil, `the time "site0" of "s0" is no number from 0`},
		{text, "", Columns{Time: "age", Event: "days"}, nil, `"100" of "s0" is no event`},
		{twelve, "size:numbers letter:groups", Columns{},
			[]string{"up to 4", "4 to 25", "25 to 64", "64 to 121"},
			"28 samples are without a group"},
		{noHeading, "column 2:numbers column 3:groups", Columns{},
			[]string{"up to 4", "4 to 25", "25 to 64", "64 to 121"}, "28 samples are without a group"},
		{noHeading, "", Columns{By: []string{"letter"}}, nil, "the first line is no heading"},
	} {
		k, warnings, err := ReadKnown(c.text, c.of, nil, samples)
		said := strings.Join(warnings, "\n")
		if err != nil {
			said = err.Error()
		}
		if (err == nil) != (c.tracks != "") || !strings.Contains(said, c.problem) {
			t.Errorf("%v: %q, want %q", c.of, said, c.problem)
		}
		var tracks []string
		for _, track := range k.Tracks {
			tracks = append(tracks, track.Name+":"+track.Kind())
		}
		if got := strings.Join(tracks, " "); got != c.tracks || !slices.Equal(k.Samples.Names, c.colours) {
			t.Errorf("%v: %q in colours %q, want %q in %q", c.of, got, k.Samples.Names, c.tracks, c.colours)
		}
	}
	k, _, err := ReadKnown(text, Columns{Time: "days", Event: "died"}, nil, samples)
	OK(t, err)
	age, days := k.Tracks[1], k.Tracks[3]
	if !math.IsNaN(age.Numbers[7]) || age.Numbers[8] != 38 || days.Numbers[9] != 109 || !days.Event[9] ||
		days.Event[8] {
		t.Errorf("ages %v, days %v, %v", age.Numbers, days.Numbers, days.Event)
	}
	k, _, err = ReadKnown(text, Columns{By: []string{"age"}}, nil, samples)
	if of := k.Samples.Of; err != nil || of[0] != 0 || of[7] != -1 || of[10] != 0 || of[11] != 1 ||
		of[39] != 3 {
		t.Errorf("quarters %v, %v", of, err)
	}
}

// TestTestsOfPage: the table has the most certain tests first and counts the others, and a card says what its
// component goes with.
func TestTestsOfPage(t *testing.T) {
	t.Parallel()
	f := example(20, 24)
	Lacks(t, render(t, f), "what is known of the samples") // without tracks
	same, noise := make([]float64, 24), make([]float64, 24)
	one := account.Track{Name: "one", Groups: []string{"all"}, Of: make([]int, 24)}
	for j := range same {
		same[j], noise[j] = f.V.At(0, j), float64(j*7%24)
	}
	f.Tracks = []account.Track{{Name: "noise", Numbers: noise}, {Name: "same", Numbers: same}, one}
	for range 10 {
		f.Tracks = append(f.Tracks, f.Tracks[0])
	}
	f.Sets = []account.Set{{Name: "first half", Members: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}
	page := render(t, f)
	wellFormed(t, page)
	Has(t, page, "<tr><td>c1</td><td>same</td><td>24</td><td>ρ 1.00</td><td>&lt; 1e-300</td>",
		"<p class=\"goes\"><b>same</b> ρ 1.00</p>", "could not be made", "left out here",
		"<td>first half</td><td>10</td>", "<tr class=\"chance\">")
	first := strings.Index(page, "<tr><td>c1</td><td>same</td>")
	Lacks(t, page[:first], "<tr class=\"chance\">") // the most certain tests come first
}
