package report

// This file tests the page as a whole, and the parts whose faults the eye would
// not find.

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"html"
	"html/template"
	"image/png"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
)

// example is a fit of rank 2 with names that must not reach the page as they are.
func example(features, samples int) Fit {
	f := Fit{Matrix: `<b>"m"</b>.tsv`, Method: "QMF", Command: "quantmf fit '<m>'", Version: "v1", Loss: []float64{9, 3, 1, 0.5},
		X: quantmf.NewMat(features, samples), U: quantmf.NewMat(features, 2), V: quantmf.NewMat(2, samples), Fitted: quantmf.NewMat(features, samples),
		Warnings: []string{"<w>"}, Compared: 2, ComparedUpdates: 1000,
		Shares: quantmf.NewMat(features, 2), Goodness: make([]quantmf.Goodness, features), TopFeatures: make([][]quantmf.Top, 2), TopSamples: make([][]quantmf.Top, 2)}
	for j := range samples {
		f.Samples = append(f.Samples, fmt.Sprintf("<s%d>&\"'", j))
		f.V.Set(0, j, float64(j))
		f.V.Set(1, j, float64(j*j%7))
	}
	for i := range features {
		f.Features = append(f.Features, fmt.Sprintf("<script>f%d</script>", i))
		f.U.Set(i, 0, 1)
		f.U.Set(i, 1, float64(i%3))
		f.Maps = append(f.Maps, func(w float64) float64 { return w * w })
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
	return f
}

func render(t *testing.T, f Fit) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wellFormed reports tags that do not match, and gives all elements by name.
func wellFormed(t *testing.T, page string) map[string]int {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.AutoClose, d.Entity, d.Strict = xml.HTMLAutoClose, xml.HTMLEntity, false
	seen := map[string]int{}
	depth := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			seen[e.Name.Local]++
			depth++
		case xml.EndElement:
			depth--
		}
	}
	if depth != 0 {
		t.Errorf("%d elements are not closed", depth)
	}
	return seen
}

func TestPage(t *testing.T) {
	f := example(20, 9)
	drawn := map[int]bool{}
	for i, m := range f.Maps {
		f.Maps[i] = func(w float64) float64 { drawn[i] = true; return m(w) }
	}
	page := render(t, f)
	for i := range f.Maps {
		if want := i >= 20-mapsShown; drawn[i] != want { // the bend of the example grows with i
			t.Errorf("the map of feature %d is drawn: %v", i, drawn[i])
		}
	}
	s := arrange(f.X, f.Fitted)
	for i, want := range []template.URL{s.draw(f.X, f.X), s.draw(product(f.U, f.V), product(f.U, f.V)), s.draw(f.Fitted, f.X), scale()} {
		if got := images(page)[i]; got != string(want) {
			t.Errorf("image %d is not as it should be", i)
		}
	}
	seen := wellFormed(t, page)
	for element, want := range map[string]int{
		"script": 0, "link": 0, "img": 3 + 1, "figure": 1 + mapsShown + 1, "article": 2, "tr": 1 + 20, "h1": 1,
		// Each figure in SVG has one inside that clips it, and there are 3 keys.
		"svg": 2*(1+mapsShown) + 2 + 3,
	} {
		if seen[element] != want {
			t.Errorf("%d of <%s>, want %d", seen[element], element, want)
		}
	}
	for _, m := range regexp.MustCompile(`(?: src=|href=|url\()[="']*([^"' >]{0,30})`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "data:image/png;base64,") {
			t.Errorf("the page fetches %s", m[1])
		}
	}
	for _, bad := range []string{"http:", "https:", "<script", "<s0", "<b>\"m", "<w>", "NaN", "Inf", "ZgotmplZ", "%!"} {
		if at := strings.Index(withoutImages(page), bad); at >= 0 {
			t.Errorf("the page holds %q: %s", bad, withoutImages(page)[max(at-60, 0):][:120])
		}
	}
	for _, want := range []string{"&lt;script&gt;f19&lt;/script&gt;", "&lt;s0&gt;", "&lt;b&gt;&#34;m", "&lt;w&gt;", "quantmf fit &#39;&lt;m&gt;&#39;", "20 features × 9 samples in 2 components"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if page != render(t, example(20, 9)) {
		t.Error("the same fit made another page")
	}
}

// images returns the data URIs of the page.
func images(page string) []string {
	var uris []string
	for _, m := range regexp.MustCompile(`src="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		uris = append(uris, html.UnescapeString(m[1]))
	}
	return uris
}

func withoutImages(page string) string {
	return regexp.MustCompile(`base64,[^"]*`).ReplaceAllString(page, "")
}

// Constant, empty and single things have no scale to divide by.
func TestPageOfLittle(t *testing.T) {
	zero := example(2, 3)
	for _, m := range []quantmf.Mat{zero.X, zero.U, zero.V, zero.Fitted} {
		clear(m.Data)
	}
	clear(zero.Goodness)
	zero.Loss, zero.Compared = []float64{0}, 0
	zero.Maps[0] = func(float64) float64 { return 0 }
	nmf := example(3, 4)
	nmf.Method, nmf.Maps, nmf.Bend, nmf.Fitted = "NMF", nil, nil, product(nmf.U, nmf.V)
	nmf.ComparedUpdates, nmf.Command = 0, ""
	holes := example(3, 4)
	holes.X.Set(1, 2, math.NaN())
	for j := range 4 {
		holes.X.Set(2, j, math.NaN())
	}
	rounding := example(3, 4)
	rounding.Loss = []float64{1, 1e-17, -1e-20}
	for name, f := range map[string]Fit{"one feature": example(1, 9), "one sample": example(3, 1), "one number": example(1, 1), "zeros": zero, "nmf": nmf, "rounding": rounding, "holes": holes} {
		page := withoutImages(render(t, f))
		wellFormed(t, page)
		for _, bad := range []string{"NaN", "Inf", "ZgotmplZ", "%!"} {
			if at := strings.Index(page, bad); at >= 0 {
				t.Errorf("%s: the page holds %q: %s", name, bad, page[max(at-60, 0):][:120])
			}
		}
	}
}

func TestHeatmapsOfMany(t *testing.T) {
	f := example(most+40, most+11)
	page := render(t, f)
	for _, want := range []string{"Shown are the 500 features of largest standard deviation, of 540.", "Shown are 500 samples, evenly spaced in the file, of 511."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for i, want := range []string{"500×500", "500×500", "500×500", "256×1"} {
		b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(images(page)[i], "data:image/png;base64,"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := png.DecodeConfig(bytes.NewReader(b))
		if got := fmt.Sprintf("%d×%d", c.Width, c.Height); err != nil || got != want {
			t.Errorf("image %d: %s, %v", i, got, err)
		}
	}
}

func TestDrawUsesTheRowsScale(t *testing.T) {
	x := quantmf.NewMat(2, 4)
	copy(x.Data, []float64{0, 0, 100, 100, 3, 3, 3, 3})
	uri := string(shown{rows: []int{1, 0}, columns: []int{3, 0}}.draw(x, x))
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(uri, "data:image/png;base64,"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x, y int
		z    float64
	}{{0, 0, 0}, {1, 0, 0}, {0, 1, 1}, {1, 1, -1}} {
		if got, want := img.At(c.x, c.y), diverging[shade(c.z)]; got != want {
			t.Errorf("pixel %d,%d is %v, want %v", c.x, c.y, got, want)
		}
	}
}

// Points along a line come in the order of the line, and groups stay together,
// whatever the order they are given in.
func TestOrder(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 64} {
		points := make([][]float64, n)
		for i := range points {
			points[i] = []float64{float64(i * 7 % n)}
		}
		got := order(points)
		sorted := slices.Clone(got)
		slices.Sort(sorted)
		for i, v := range sorted {
			if v != i {
				t.Fatalf("n=%d: %v is no order", n, got)
			}
		}
		length := 0.0
		for t := 1; t < n; t++ {
			length += math.Abs(points[got[t]][0] - points[got[t-1]][0])
		}
		if length > 1.5*float64(n) { // the line itself is n-1 long, a random order about n²/3
			t.Errorf("n=%d: a way of %v", n, length)
		}
	}
	var points [][]float64
	for i := range 60 {
		p := make([]float64, 3)
		p[i%3] = 10 + float64(i*i%11)/11
		points = append(points, p)
	}
	changes := 0
	got := order(points)
	for t := 1; t < len(got); t++ {
		if got[t]%3 != got[t-1]%3 {
			changes++
		}
	}
	if changes != 2 {
		t.Errorf("three groups lie in %d pieces", changes+1)
	}
	if got := order(make([][]float64, 5)); len(got) != 5 {
		t.Errorf("equal points: %v", got)
	}
}

// The colours run from dark over light to dark in steps that hardly differ.
func TestPaletteIsEven(t *testing.T) {
	lightness := func(i int) float64 {
		r, g, b, _ := diverging[i].RGBA()
		linear := func(v uint32) float64 {
			s := float64(v) / 65535
			if s <= 0.04045 {
				return s / 12.92
			}
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		y := 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
		return 116*math.Cbrt(y) - 16
	}
	for i := 1; i < 256; i++ {
		step := lightness(i) - lightness(i-1)
		if i > 129 {
			step = -step
		}
		if i != 128 && i != 129 && (step < -0.3 || step > 1.2) {
			t.Errorf("from %d to %d the lightness changes by %v", i-1, i, step)
		}
	}
	if lightness(127) < 93 || lightness(0) > 40 || lightness(255) > 40 {
		t.Errorf("lightness %v, %v, %v", lightness(0), lightness(127), lightness(255))
	}
}

func TestTicks(t *testing.T) {
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
}

func TestStatistics(t *testing.T) {
	f := example(2, 4)
	f.X.Set(0, 0, math.NaN())
	f.Goodness = []quantmf.Goodness{{Divergence: 1, Spread: 4}, {Divergence: 0.5, Spread: 3}}
	if own, nmf := f.explained(1.5); math.Abs(own-19./24) > 1e-15 || math.Abs(nmf-(1-10.5/24)) > 1e-15 { // 3 cells and 4
		t.Errorf("explained %v, %v", own, nmf)
	}
	clear(f.Goodness)
	if own, nmf := f.explained(0); own != 1 || nmf != 1 {
		t.Errorf("of nothing %v, %v are explained", own, nmf)
	}
	if m, s := mean([]float64{1, math.NaN(), 5}), deviation([]float64{1, math.NaN(), 5}); m != 3 || s != 2 {
		t.Errorf("mean %v, deviation %v", m, s)
	}
	if got := largest([]float64{1, 5, 5, 0}, 3); !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("largest %v", got)
	}
}

// TestPolicy: the page forbids scripts and whatever is not in it.
func TestPolicy(t *testing.T) {
	page := render(t, example(20, 9))
	if !strings.Contains(page, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:;`) {
		t.Error("no policy")
	}
	if strings.Index(page, "Content-Security-Policy") > strings.Index(page, "<style") {
		t.Error("the policy comes after what it is for")
	}
}

// TestAllFeatures: a table of some is followed by a list of all, by name.
func TestAllFeatures(t *testing.T) {
	if page := render(t, example(tableShown, 9)); strings.Contains(page, "<details>") {
		t.Error("a list of what is in the table")
	}
	f := example(tableShown+3, 9)
	page := render(t, f)
	at := strings.Index(page, "<details>")
	if at < 0 {
		t.Fatal("no list")
	}
	list := page[at:]
	if n := strings.Count(list, "<tr>") - 1; n != len(f.Features) {
		t.Errorf("%d features", n)
	}
	last := -1
	sorted := slices.Clone(f.Features)
	slices.Sort(sorted)
	for _, name := range sorted {
		here := strings.Index(list, "<tr><td>"+template.HTMLEscapeString(name)+"</td>")
		if here <= last {
			t.Errorf("%s is not in its place", name)
		}
		last = here
	}
}

// TestTelling: of features that are equally bent, rows that are nearly all zero and those that
// are not explained come last.
func TestTelling(t *testing.T) {
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
		if got := f.telling()[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%d: %g, want %g", i, got, want)
		}
	}
}

// TestBayes: the page of a BQMF does not call its bound a loss.
func TestBayes(t *testing.T) {
	f := example(20, 9)
	f.Method, f.Compared, f.ComparedUpdates = "BQMF", 0, 0
	page := render(t, f)
	for _, want := range []string{"negative lower bound of the evidence", "Bound of BQMF by epoch", "<b>0.5</b><span>loss: mean divergence per entry"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, bad := range []string{"maps converged", "Loss of BQMF", "The curve is the loss", "Plain non-negative"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

// TestChart: points lie where the numbers say, in the order of their size.
func TestChart(t *testing.T) {
	c := Chart{Title: "A <chart>", Lines: []Line{{Name: "m = 4", Points: []Point{{Label: "1", Y: 3, Error: 1}, {Label: "2", Y: 1, Best: true, Marked: true}}}}}
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	var cy []float64
	for _, m := range regexp.MustCompile(`<circle cx="([0-9.]+)" cy="([0-9.]+)" r="3.5"`).FindAllStringSubmatch(s, -1) {
		v, _ := strconv.ParseFloat(m[2], 64)
		cy = append(cy, v)
	}
	if len(cy) != 2 || cy[0] >= cy[1] || strings.Count(s, `r="7.5"`) != 1 || strings.Contains(s, "<chart>") || !strings.Contains(s, "A &lt;chart&gt;") {
		t.Errorf("%v: %s", cy, s)
	}
	b.Reset()
	if err := (Chart{}).Write(&b); err != nil || strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Errorf("an empty chart: %v %s", err, b.String())
	}
}
