package report

// This file tests the section of samples.

import (
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestSamples: a dot of the first panel has its name and group, the nearest neighbours are those of the
// distances, and a page of samples that are all alike has no such section.
func TestSamples(t *testing.T) {
	t.Parallel()
	f := example(6, 10)
	for j := range 10 { // two clusters, five apart
		f.V.Set(0, j, float64(5*(j%2))+float64(j)/50)
		f.V.Set(1, j, float64(j*j%3)/50)
	}
	for j := range f.Samples {
		f.Samples[j] = "sample" + string(rune('A'+j))
	}
	f.SampleGroups = Groups{Names: []string{"even", "odd"}, Of: []int{0, 1, 0, 1, 0, 1, 0, 1, 0, -1}}
	f.Method = "BQMF" // in which the second component, which is weak, counts little
	page := render(t, f)
	wellFormed(t, page)
	Has(t, page, "<title>sampleC, even</title>", "<title>sampleJ, no group</title>",
		"<title>10 samples on the principal axes 1 and 2</title>", "<title>Tree of 10 samples</title>",
		"same group for 100 % of the samples; by chance it would be for 44 %",
		"strong components count more")
	row := page[strings.Index(page, "<td>sampleA</td>"):]
	row = row[:strings.Index(row, "</tr>")]
	Has(t, row, "sampleC", "sampleE", "sampleG") // the neighbours of sampleA
	f.Method = "QMF"
	Has(t, render(t, f), "all components count the same")
	clear(f.V.Data)
	Lacks(t, render(t, f), "principal axes", "Tree of")
}
