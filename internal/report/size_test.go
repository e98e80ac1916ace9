package report

// This file tests how large pages become, and what is left out of the largest.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
)

// noisy is a fit of noise, which nothing compresses, with names made by name.
func noisy(d, n, k int, name func(i int) string) Fit {
	f := zeros(d, n, k)
	f.Matrix, f.Loss = "noise.tsv", []float64{2, 1}
	r := rand.New(rand.NewPCG(1, 2))
	for _, m := range []quantmf.Mat{f.X, f.U, f.V, f.Fitted} {
		for i := range m.Data {
			m.Data[i] = r.Float64()
		}
	}
	for j := range n {
		f.Samples = append(f.Samples, name(j))
	}
	for i := range d {
		f.Features = append(f.Features, name(i))
		bend := r.Float64()
		f.Bend = append(f.Bend, bend)
		f.Shares.Set(i, i%k, 0.75)
		f.Goodness[i] = quantmf.Goodness{Divergence: r.Float64(), Spread: 2, Explained: r.Float64()}
	}
	f.curve(func(i int, w float64) float64 { return w + f.Bend[i]*math.Sin(6*w)/6 })
	for c := range k {
		for t := range 8 {
			f.TopFeatures[c] = append(f.TopFeatures[c], quantmf.Top{Index: t % d, Value: 0.5})
			f.TopSamples[c] = append(f.TopSamples[c], quantmf.Top{Index: t % n, Value: 2})
		}
	}
	return f
}

// TestSize: a page takes at most 2 MB, and one of 6000 × 300 has the curve of every feature and
// its tables; what does not fit is said. With QUANTMF_LONG there are more of them, also with
// long names.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("makes pages of large matrices")
	}
	short := func(i int) string { return fmt.Sprintf("ENSG%011d", i*7919) }
	for _, c := range []struct {
		what       string
		d, n, k    int
		name       func(i int) string
		all        bool // curves
		tables     int
		components int
	}{
		{"usual", 6000, 300, 10, short, true, 3, 10},
		{"long names", 6000, 300, 10,
			func(i int) string {
				return fmt.Sprintf("%06d_%s_%[1]d", i, strings.Repeat("REGULATION_OF_", 15))
			}, true, 2, 10},
		{"names to escape", 6000, 300, 10,
			func(i int) string { return strings.Repeat("<&'\">", 40) + fmt.Sprint(i) }, false, 1, 10},
		{"many components", 3000, 300, 120, short, true, 1, 50},
		{"more features", 20000, 50, 5, short, false, 2, 5},
		{"many samples", 30, 30000, 5, short, true, 4, 5},
	} {
		if os.Getenv("QUANTMF_LONG") == "" && c.what != "names to escape" {
			continue // what others leave out, this one does, too
		}
		page := render(t, noisy(c.d, c.n, c.k, c.name))
		wellFormed(t, page)
		curves := strings.Count(page, `viewBox="0 0 96 48"`)
		if curves > c.d || (curves == c.d) != c.all || c.all == strings.Contains(page, "<p>The other ") {
			t.Errorf("%s: %d of %d curves", c.what, curves, c.d)
		}
		if n := strings.Count(page, "<a download="); n < c.tables ||
			n+strings.Count(page, "is not in this page") != 4 {
			t.Errorf("%s: %d tables", c.what, n)
		}
		if n := strings.Count(page, "<article"); n != c.components {
			t.Errorf("%s: %d components", c.what, n)
		}
		t.Logf("%s: %d bytes, %d curves, %d tables", c.what, len(page), curves,
			strings.Count(page, "<a download="))
	}
}
