package report

// This file tests that nothing in a fit can be taken for HTML, and that pages are narrow.

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/quantmf/quantmf/internal/account"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// hostile are names that would do something if they were not escaped.
var hostile = []string{
	`<script>alert(1)</script>`, `</title></svg><script>alert(2)</script>`, `"><img src=x onerror=alert(3)>`,
	`' onmouseover='alert(4)`,
	`</style><style>@import "http://example.org"`, `javascript:alert(5)`, `--><!-- x`, `]]>`, `&lt;b&gt;`,
	`%s%d%!`, "\x00\x1b[2Jnul", "\xff\xfe", "left\u202egnp.exe", "a\nb\tc", "\u2028", "",
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	f := example(len(hostile), len(hostile))
	f.Features, f.Samples = hostile, hostile
	f.Warnings, f.Settings = hostile, hostile
	f.SampleGroups = Groups{Title: hostile[0], Of: make([]int, len(hostile))}
	for i := range hostile {
		f.SampleGroups.Of[i] = i
	}
	f.SampleGroups.Names = hostile
	f.FeatureGroups = f.SampleGroups
	for _, name := range hostile {
		f.Tracks = append(f.Tracks, account.Track{Name: name, Groups: hostile, Of: f.SampleGroups.Of})
		f.Sets = append(f.Sets, account.Set{Name: name, Members: []int{0, 1, 2}})
	}
	for _, name := range hostile {
		f.Matrix, f.Command, f.Version = name, name, name
		page := render(t, f)
		wellFormed(t, page)
		if !utf8.ValidString(page) {
			t.Errorf("%q: no UTF-8", name)
		}
		Lacks(t, page, "<script", "<img", "<b>&gt;", "alert(4)'", "\x00", "\x1b", "\u202e",
			"\u2028", "%!(", "<!--", "-->", "<style>@")
	}
}

// TestEscape: what is escaped reads as it was, but for what cannot be printed.
func TestEscape(t *testing.T) {
	t.Parallel()
	for _, s := range append([]string{"Gène β₂ 蛋白质 😀", "it's 5 < 6 & \"so\""}, hostile[:10]...) {
		if got := html.UnescapeString(escape(s)); got != s {
			t.Errorf("%q reads as %q", s, got)
		}
	}
	Equal(t, escape("\x00\xff\u202e\n"), `\x00\xff\u202e\n`, "got")
}

func TestClipped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		most int
		want string
	}{{"short", 5, "short"}, {"abcdefghij", 7, "abcd…ij"}, {"ééééééééé", 4, "éé…é"}} {
		Equal(t, clipped(c.name, c.most), c.want, "%q in %d", c.name, c.most)
	}
}

// TestNarrow: columns of a grid are as narrow as the screen. Without a least width of their own they are as
// wide as the longest name in them, and the page scrolls sideways.
func TestNarrow(t *testing.T) {
	t.Parallel()
	grids := found(style, `grid-template-columns: ([^;]*);`)
	for _, g := range grids {
		if free := regexp.MustCompile(`minmax\([^()]*\)`).ReplaceAllString(g[0], ""); strings.Contains(free,
			"fr") {
			t.Errorf("%s: a column has no least width", g[0])
		}
	}
	if len(grids) < 8 {
		t.Errorf("%d grids", len(grids))
	}
}
