package report

// This file tests the section of samples.

import (
	"math/rand/v2"
	"slices"
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

// TestTree: each merge is at least as high as those within it, and joins all points in the end, whose
// stretches are neighbours in the order.
func TestTree(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 3))
	points := make([][]float64, 40)
	for i := range points {
		points[i] = []float64{r.NormFloat64(), r.NormFloat64()}
	}
	tree := clustered(points)
	if len(tree.merges) != 39 {
		t.Fatalf("%d merges", len(tree.merges))
	}
	height, members := make([]float64, 40), make([][]int, 40)
	for i := range members {
		members[i] = []int{slices.Index(tree.leaves, i)}
	}
	for _, m := range tree.merges {
		if m.height < max(height[m.a], height[m.b]) || m.height == 0 {
			t.Errorf("%+v is below %v and %v", m, height[m.a], height[m.b])
		}
		height[m.a], members[m.a] = m.height, append(members[m.a], members[m.b]...)
		if of := members[m.a]; slices.Max(of)-slices.Min(of) != len(of)-1 {
			t.Errorf("a cluster lies in pieces: %v", of)
		}
	}
}
