package report

// This file tests the page as a whole, and the parts whose faults the eye would
// not find.

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"html"
	"image"
	"image/png"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// zeros is a QMF of zeros.
func zeros(d, n, k int) Fit {
	return Fit{Account: account.Account{Method: "QMF", U: quantmf.NewMat(d, k), V: quantmf.NewMat(k, n),
		Fitted: quantmf.NewMat(d, n), Shares: quantmf.NewMat(d, k), Goodness: make([]quantmf.Goodness, d),
		TopFeatures: make([][]quantmf.Top, k), TopSamples: make([][]quantmf.Top, k)},
		Version: "v1", X: quantmf.NewMat(d, n)}
}

// example is a fit of rank 2 with names that must not reach the page as they are.
func example(features, samples int) Fit {
	f := zeros(features, samples, 2)
	f.Matrix, f.Command, f.Warnings = `<b>"m"</b>.tsv`, "quantmf fit '<m>'", []string{"<w>"}
	f.Settings, f.Loss, f.Predicted = []string{"8 levels"}, []float64{9, 3, 1, 0.5}, math.NaN()
	f.Unseen = account.Unseen{Values: 4, Predicted: 0.5,
		Others: []account.Other{{Method: "NMF", Predicted: 0.3}}}
	for j := range samples {
		f.Samples = append(f.Samples, fmt.Sprintf("<s%d>&\"'", j))
		f.V.Set(0, j, float64(j))
		f.V.Set(1, j, float64(j*j%7))
	}
	for i := range features {
		f.Features = append(f.Features, fmt.Sprintf("<script>f%d</script>", i))
		f.U.Set(i, 0, 1)
		f.U.Set(i, 1, float64(i%3))
		f.Bend = append(f.Bend, float64(i)/float64(features))
		for j := range samples {
			w := f.V.At(0, j) + float64(i%3)*f.V.At(1, j)
			f.Fitted.Set(i, j, w*w)
			f.X.Set(i, j, w*w+float64((i+j)%2))
		}
		f.Shares.Set(i, i%2, 1)
		f.Goodness[i] = quantmf.Goodness{Divergence: 0.5, Spread: 2, Explained: 0.75}
		f.TopFeatures[i%2] = append(f.TopFeatures[i%2], quantmf.Top{Index: i, Value: 0.75})
	}
	for c := range 2 {
		for j := range samples {
			f.TopSamples[c] = append(f.TopSamples[c], quantmf.Top{Index: j, Value: float64(j + 1)})
		}
	}
	f.curve(func(_ int, w float64) float64 { return w * w })
	return f
}

// curve gives the fit the maps T_i.
func (f *Fit) curve(t func(i int, w float64) float64) {
	f.Curves = quantmf.NewMat(f.U.Rows, account.Steps+1)
	uv := product(f.U, f.V)
	for i := range f.U.Rows {
		from, to := account.Span(uv.Row(i))
		for s := range account.Steps + 1 {
			f.Curves.Set(i, s, t(i, from+(to-from)*float64(s)/account.Steps))
		}
	}
}

func render(t *testing.T, f Fit) string {
	t.Helper()
	var b bytes.Buffer
	OK(t, Write(&b, f))
	return b.String()
}

// wellFormed reports tags that do not match, attributes that a policy forbids and figures
// without a title, and gives all elements by name. All elements are closed.
func wellFormed(t *testing.T, page string) map[string]int {
	t.Helper()
	rest, ok := strings.CutPrefix(page, "<!DOCTYPE html>")
	if !ok {
		t.Fatal("no DOCTYPE")
	}
	d := xml.NewDecoder(strings.NewReader(rest))
	seen := map[string]int{}
	ids := []string{}
	named := true // the figure that was opened last has its title, or needs none
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		OK(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			if seen[name]++; !named && name != "title" {
				t.Errorf("a figure begins with <%s>", name)
			}
			named = name != "svg" || slices.Contains(ids, "svg") // one inside another only clips
			for _, a := range e.Attr {
				switch {
				case a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on"):
					t.Errorf("<%s %s>", name, a.Name.Local)
				case (a.Name.Local == "href" || a.Name.Local == "src") &&
					!strings.HasPrefix(a.Value, "data:image/png;base64,") &&
					!strings.HasPrefix(a.Value, "data:text/tab-separated-values;base64,") &&
					!strings.HasPrefix(a.Value, "data:application/gzip;base64,"):
					t.Errorf("<%s %s=%.40q>", name, a.Name.Local, a.Value)
				case a.Name.Local == "aria-hidden":
					named = true
				}
			}
			ids = append(ids, name)
		case xml.EndElement:
			ids = ids[:len(ids)-1]
		case xml.CharData:
			if s := string(e); len(ids) > 0 && ids[len(ids)-1] == "title" && strings.TrimSpace(s) == "" {
				t.Error("an empty title")
			}
		}
	}
	for _, never := range []string{"script", "link", "iframe", "object", "embed", "form", "input", "base",
		"use", "foreignObject", "img"} {
		if seen[never] > 0 {
			t.Errorf("%d of <%s>", seen[never], never)
		}
	}
	if len(page) > budget {
		t.Errorf("%d bytes", len(page))
	}
	return seen
}

func TestPage(t *testing.T) {
	t.Parallel()
	f := example(20, 9)
	page := render(t, f)
	for i, n := range f.Features {
		drawn := strings.Contains(page, "<h3>"+html.EscapeString(n)+"</h3>")
		// the bend of the example grows with i
		Equal(t, drawn, i >= 20-mapsShown, "the map of feature %d is drawn", i)
	}
	s := arranged(f)
	for i, p := range f.panels(product(f.U, f.V)) {
		if got := images(page)[i]; got != string(s.draw(p.row)) {
			t.Errorf("image %d is not as it should be", i)
		}
	}
	seen := wellFormed(t, page)
	for element, want := range map[string]int{
		"image": 4 + 1, "figure": 1 + mapsShown + 1 + 2, "article": 2, "h1": 1, "a": 4,
		// Each plot has one inside that clips it; 2 profiles, one of samples, 2 of heatmaps, a tree, 20
		// curves, 3 keys.
		"svg": 2*(1+mapsShown+3) + 2 + 1 + 20 + 3,
	} {
		if seen[element] != want {
			t.Errorf("%d of <%s>, want %d", seen[element], element, want)
		}
	}
	Lacks(t, withoutImages(page), "http:", "https:", "<script", "<s0", "<b>\"m", "<w>", "NaN", "Inf", "%!")
	Has(t, page, "&lt;script&gt;f19&lt;/script&gt;", "&lt;s0&gt;", "&lt;b&gt;&#34;m",
		"&lt;w&gt;", "quantmf fit &#39;&lt;m&gt;&#39;", "20 features × 9 samples in 2 components",
		"quantile matrix factorisation, X ≈ T(UV)",
		"as implemented in quantmf v1, with 2 components, 8 levels.")
	if page != render(t, example(20, 9)) {
		t.Error("the same fit made another page")
	}
}

// images returns the data URIs of the page.
func images(page string) []string {
	var uris []string
	for _, m := range found(page, `<image[^>]* href="([^"]*)"`) {
		uris = append(uris, html.UnescapeString(m[0]))
	}
	return uris
}

func withoutImages(page string) string {
	return regexp.MustCompile(`base64,[^"]*`).ReplaceAllString(page, "")
}

// Constant, empty and single things have no scale to divide by.
func TestPageOfLittle(t *testing.T) {
	t.Parallel()
	zero := example(2, 3)
	for _, m := range []quantmf.Mat{zero.X, zero.U, zero.V, zero.Fitted} {
		clear(m.Data)
	}
	clear(zero.Goodness)
	zero.Loss = []float64{0}
	clear(zero.Curves.Row(0))
	nmf := example(3, 4)
	nmf.Method, nmf.Curves, nmf.Bend, nmf.Fitted = "NMF", quantmf.Mat{}, nil, product(nmf.U, nmf.V)
	nmf.Unseen, nmf.Command = account.Unseen{}, ""
	holes := example(3, 4)
	holes.X.Set(1, 2, math.NaN())
	for j := range 4 {
		holes.X.Set(2, j, math.NaN())
	}
	signed := example(3, 4)
	signed.Method, signed.Unseen.Others = "BQMF", nil
	for _, m := range []quantmf.Mat{signed.X, signed.U, signed.V, signed.Fitted} {
		for i := range m.Data {
			m.Data[i] -= 2
		}
	}
	normalised := example(3, 4)
	normalised.Method, normalised.Normalized = "QMFQ", product(normalised.U, normalised.V)
	normalised.X.Set(0, 0, math.NaN())
	normalised.Normalized.Set(0, 0, math.NaN())
	nothing := example(1, 1)
	nothing.X.Set(0, 0, math.NaN())
	nothing.SampleGroups = Groups{Names: []string{"A"}, Of: []int{0}}
	times := func(unit float64) Fit {
		f := example(3, 4)
		for i := range f.X.Data {
			f.X.Data[i] *= unit
			f.Fitted.Data[i] *= unit
		}
		f.curve(func(_ int, w float64) float64 { return w * w * unit })
		return f
	}
	rounding := example(3, 4)
	rounding.Loss = []float64{1, 1e-17, -1e-20}
	for name, f := range map[string]Fit{"one feature": example(1, 9), "one sample": example(3, 1),
		"one number": example(1, 1), "zeros": zero, "nmf": nmf, "rounding": rounding, "holes": holes,
		"signed": signed, "normalised": normalised, "nothing": nothing, "vast": times(1e306),
		"tiny": times(1e-310)} {
		t.Run(name, func(t *testing.T) {
			page := render(t, f)
			wellFormed(t, page)
			Lacks(t, withoutImages(page), "NaN", "Inf", "%!")
		})
	}
}

func TestHeatmapsOfMany(t *testing.T) {
	t.Parallel()
	f := example(most+40, most+11)
	page := render(t, f)
	Has(t, page, "Shown are the 300 features that are explained best, of 340.",
		"Shown are 300 samples, evenly spaced in the table, of 311.")
	for i, want := range []string{"300×300", "300×300", "300×300", "300×300", "63×1"} {
		img := decoded(t, images(page)[i])
		Equal(t, fmt.Sprintf("%d×%d", img.Bounds().Dx(), img.Bounds().Dy()), want, "image %d", i)
	}
}

func decoded(t *testing.T, uri string) image.Image {
	t.Helper()
	img := Must(png.Decode(bytes.NewReader(unpacked(t, strings.TrimPrefix(uri,
		"data:image/png;base64,")))))(t)
	return img
}

// unpacked is what a link to data holds.
func unpacked(t *testing.T, base string) []byte {
	t.Helper()
	b := Must(base64.StdEncoding.DecodeString(html.UnescapeString(base)))(t)
	return b
}

// TestPanels: data and fit are in deviations of the data, the mixture in its own, and what is
// missing has a colour of its own.
func TestPanels(t *testing.T) {
	t.Parallel()
	f := example(2, 4)
	copy(f.X.Row(0), []float64{3, 3, 3, 3})
	copy(f.X.Row(1), []float64{0, math.NaN(), 100, 100})
	copy(f.Fitted.Row(0), []float64{3, 3, 3, 4})
	copy(f.Fitted.Row(1), []float64{0, 50, 100, 200})
	s := shown{rows: []int{1, 0}, columns: []int{3, 1, 0}}
	mean, dev := 200./3, math.Sqrt(2)*100/3
	for i, want := range [][][]float64{
		{{(100 - mean) / dev, math.NaN(), -mean / dev}, {0, 0, 0}},
		nil,
		{{(200 - mean) / dev, (50 - mean) / dev, -mean / dev}, {0, 0, 0}},
		{{-100 / dev, math.NaN(), 0}, {0, 0, 0}},
	} {
		img := decoded(t, string(s.draw(f.panels(product(f.U, f.V))[i].row)))
		for y, row := range want {
			for x, z := range row {
				k := shades
				if z == z {
					k = int(math.Round((min(max(z, -2.5), 2.5) + 2.5) / 5 * (shades - 1)))
				}
				Equal(t, img.At(x, y), diverging[k], "panel %d, pixel %d,%d", i, x, y)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		axis  axis
		count int
		want  string
	}{
		{axis{0, 100, 0, 1, false}, 5, "0 20 40 60 80 100"},
		{axis{-0.02, 1.05, 0, 1, false}, 4, "0 0.5 1"},
		{axis{0.117, 0.175, 0, 1, false}, 5, "0.12 0.14 0.16"},
		{axis{0.3, 12, 0, 1, true}, 5, "0.5 1 2 5 10"},
		{axis{1e-12, 2, 0, 1, true}, 5, "1e-12 1e-09 1e-06 0.001 1"},
	} {
		var got []string
		for _, tick := range c.axis.ticks(c.count) {
			got = append(got, tick.Label)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %v, want %s", c.axis, got, c.want)
		}
	}
	// Values that only rounding keeps apart have few ticks, too.
	for _, low := range []float64{0.1, 3, -1e17, 1e60} {
		high := low
		for range 100 {
			if n := len(widened(low, high, 0, 1, 0.06, false).ticks(5)); n < 2 || n > 8 {
				t.Errorf("%d ticks from %v to %v", n, low, high)
			}
			high = math.Nextafter(high, math.Inf(1))
		}
	}
}

func TestStatistics(t *testing.T) {
	t.Parallel()
	f := example(2, 4)
	f.X.Set(0, 0, math.NaN())
	f.Goodness = []quantmf.Goodness{{Divergence: 1, Spread: 4}, {Divergence: 0.5, Spread: 3}}
	// 3 cells and 4
	Near(t, f.explained(), 19./24, 1e-15, "explained")
	clear(f.Goodness)
	if own := f.explained(); own != 1 {
		t.Errorf("of nothing %v are explained", own)
	}
	Equal(t, Average([]quantmf.Goodness{{Spread: 1, Explained: 0.5}, {},
		{Spread: 9, Explained: -1}}), 0.25, "the average")
	for v, want := range map[float64]string{-0.001: "0 %", -0.04: "−4 %", 0.996: "100 %"} {
		Equal(t, percent(v), want, "%v", v)
	}
	if m, s := mean([]float64{1, math.NaN(), 5}), deviation([]float64{1, math.NaN(), 5}); m != 3 || s != 2 {
		t.Errorf("mean %v, deviation %v", m, s)
	}
	Equal(t, deviation([]float64{1e300, -1e300}), 1e300, "deviation")
	if slope, offset := line([]float64{1, 2, 4},
		[]float64{5e-300, 7e-300, 11e-300}); math.Abs(slope-2e-300) > 1e-314 ||
		math.Abs(offset-3e-300) > 1e-314 {
		t.Errorf("%v + %v x", offset, slope)
	}
	EqualAll(t, account.Largest([]float64{1, 5, 5, 0}, 3), []int{1, 2, 0}, "largest")
}

// TestPolicy: the page forbids scripts and whatever is not in it; its style is the one whose
// hash the policy has.
func TestPolicy(t *testing.T) {
	t.Parallel()
	page := render(t, example(20, 9))
	sum := sha256.Sum256([]byte(style))
	hash := "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
	if !strings.Contains(page,
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '`+hash+
			`'; img-src data:; base-uri 'none'; form-action 'none'"/>`) {
		t.Errorf("no policy of the style, whose hash is %s", hash)
	}
	if strings.Index(page, "Content-Security-Policy") > strings.Index(page, "<style") {
		t.Error("the policy comes after what it is for")
	}
	if strings.Count(page, "<style>"+style+"</style>") != 1 || strings.Count(page, "<style") != 1 {
		t.Error("another style")
	}
}

// TestList: all features are listed once, with their curves, in lists of at most a hundred,
// the most telling first.
func TestList(t *testing.T) {
	t.Parallel()
	f := example(2*chunk+3, 9)
	page := render(t, f)
	list := page[strings.Index(page, "<h2>All curves"):strings.Index(page, "<h2>What is odd")]
	Equal(t, strings.Count(list, "<details>"), 3, "lists")
	Equal(t, strings.Count(list, "<svg"), len(f.Features), "curves")
	last := 0
	telling := Must(Telling(f.X, f.Bend, f.Goodness))(t)
	for _, i := range account.Largest(telling, len(f.Features)) {
		at := strings.Index(list, "<li><b>"+html.EscapeString(f.Features[i])+"</b>")
		if at <= last {
			t.Fatalf("feature %d stands at %d, the one before at %d", i, at, last)
		}
		last = at
	}
	Has(t, render(t, example(20, 9)), `<details open="">`) // a short list
}

// TestTelling: of features that are equally bent, rows that are nearly all zero and those that
// are not explained come last.
func TestTelling(t *testing.T) {
	t.Parallel()
	f := example(3, 10)
	f.Bend = []float64{0.5, 0.4, 0.5}
	f.Goodness[2].Explained = 0.1
	for j := range 10 {
		f.X.Set(0, j, 0)
		f.X.Set(1, j, float64(j))
		f.X.Set(2, j, float64(j))
	}
	f.X.Set(0, 9, 3)
	for i, want := range []float64{0.5 * 0.75 * 0.1, 0.4 * 0.75, 0.5 * 0.1} {
		if got, err := Telling(f.X, f.Bend, f.Goodness); err != nil || math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("%d: %g, want %g, %v", i, got[i], want, err)
		}
	}
}

// TestPredicted: what is known of values that the model has not seen comes first, and where that is nothing
// the page says so before all numbers.
func TestPredicted(t *testing.T) {
	t.Parallel()
	const none = "No structure was found"
	for _, c := range []struct {
		predicted float64
		first     string
		none      bool
	}{
		{0.473, "47 %", false}, {0.02, "2 %", false}, {0.01, "1 %", true}, {-0.2, "-20 %", true},
		{math.NaN(), "75 %", false}, // what is explained
	} {
		f := example(20, 9)
		if f.Unseen = (account.Unseen{}); c.predicted == c.predicted {
			f.Unseen = account.Unseen{Values: 180, Predicted: c.predicted}
		}
		page := render(t, f)
		if first := found(page, `<ul class="numbers"><li><b>([^<]*)`); len(first) != 1 ||
			first[0][0] != c.first {
			t.Errorf("%v: the first number is %q, want %s", c.predicted, first, c.first)
		}
		at := strings.Index(page, none)
		if (at >= 0) != c.none || strings.Contains(page, `<main class="noise">`) != c.none ||
			at > strings.Index(page, `<ul class="numbers">`) {
			t.Errorf("%v: %q at %d", c.predicted, none, at)
		}
	}
}

// TestBayes: the page of a BQMF does not call its bound a loss.
func TestBayes(t *testing.T) {
	t.Parallel()
	f := example(20, 9)
	f.Method, f.Unseen.Others = "BQMF", nil
	page := render(t, f)
	Has(t, page, "negative lower bound of the evidence", "Bound of BQMF by epoch",
		"factorised by Bayesian quantile matrix factorisation",
		"<b>0.5</b><span>loss: how far a value is from the fit")
	Lacks(t, page, "Loss of BQMF", "The curve is the loss",
		"Plain non-negative")
}

// TestPlain: the page of an NMF speaks of no maps, that of the others of theirs.
func TestPlain(t *testing.T) {
	t.Parallel()
	f := example(20, 9)
	text := func() string { _, body, _ := strings.Cut(withoutImages(render(t, f)), "<main>"); return body }
	page := text()
	Has(t, page, "The second panel is the mixture before the maps",
		"Plain non-negative matrix factorisation (NMF) has the mixture but not the maps",
		"<b>30 %</b><span>predicted in the same values by NMF",
		"of this model and of NMF, from which a tenth of the values")
	f.Method, f.Normalized = "QMFQ", product(f.U, f.V)
	page = text()
	Has(t, page, "The second panel is the data on the scale on which components add up",
		"with two increasing maps for every feature (")
	Lacks(t, page, "The second panel is the mixture")
	f.Method, f.Curves, f.Bend, f.Normalized, f.Unseen = "NMF", quantmf.Mat{}, nil, quantmf.Mat{},
		account.Unseen{}
	page = text()
	Has(t, page, "Non-negative matrix factorisation (NMF) describes every sample as a "+
		"mixture of 2 components.", "All features, the best explained first", "75 %, c1</li>",
		"come back from other seeds")
	Lacks(t, page, "second panel", " maps", "bend", "learned", "curves.tsv", "distance from 0",
		"dashed", "T(UV)")
	f.Stability = []float64{0.7, 1}
	page = text()
	Has(t, page, "c1, stability 0.70")
	Lacks(t, page, "come back from other seeds")
}
