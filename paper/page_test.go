package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/paper/internal/report"
)

// The page is equal to the text that is made from the files of results, so no number on it comes
// from elsewhere. Its pictures are there and small enough.
func TestPageShowsResults(t *testing.T) {
	want := Must(page(false))(t)
	got := Must(os.ReadFile("README.md"))(t)
	if d := report.Difference(string(got), want); d != "" {
		t.Fatalf("README.md is not what go run . page writes: %s", d)
	}
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`\((figures/[^)]*)\)`).FindAllStringSubmatch(want, -1) {
		shown[m[1]] = true
		if _, err := os.Stat(filepath.FromSlash(m[1])); err != nil {
			t.Error(err)
		}
	}
	files := Must(os.ReadDir("figures"))(t)
	var bytes int64
	for _, f := range files {
		if !shown["figures/"+f.Name()] {
			t.Errorf("figures/%s is on no page", f.Name())
		}
		info := Must(f.Info())(t)
		bytes += info.Size()
	}
	if bytes > 3<<20 {
		t.Errorf("pictures take %d bytes", bytes)
	}
	if strings.Contains(want, "NaN") || strings.Contains(want, "%!") {
		t.Error("the page has a NaN or a value that was not formatted")
	}
}

// A page depends on the files of results alone, and changes with each of them.
func TestPageFollowsResults(t *testing.T) {
	before := Must(page(false))(t)
	results := map[string][]byte{}
	for _, f := range Must(filepath.Glob("results/*.json"))(t) {
		results[f] = Must(os.ReadFile(f))(t)
	}
	if len(results) == 0 {
		t.Fatal("no results")
	}
	text := Must(os.ReadFile("README.md"))(t)
	t.Chdir(t.TempDir())
	OK(t, os.WriteFile("README.md", text, 0o644))
	OK(t, os.Mkdir("results", 0o755))
	put := func(file string, text []byte) {
		OK(t, os.WriteFile(file, text, 0o644))
	}
	for f, b := range results {
		put(f, b)
	}
	if same, err := page(false); err != nil || same != before {
		t.Errorf("the page depends on more than its results: %v", err)
	}
	for f, b := range results {
		var v any
		OK(t, json.Unmarshal(b, &v))
		other := Must(json.Marshal(half(v)))(t)
		put(f, other)
		if changed, err := page(false); err != nil || changed == before {
			t.Errorf("the page does not follow %s: %v", f, err)
		}
		put(f, b)
	}
}

// half halves the numbers that are not integers.
func half(v any) any {
	switch v := v.(type) {
	case float64:
		if v != math.Trunc(v) {
			return v / 2
		}
	case []any:
		for i := range v {
			v[i] = half(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = half(v[name])
		}
	}
	return v
}
