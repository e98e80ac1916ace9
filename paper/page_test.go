package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page is what the files of results make of it, to the letter: no number on it comes
// from elsewhere. Its pictures are there, and are as small as they must be.
func TestPageShowsResults(t *testing.T) {
	want, err := text(false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		a, b := strings.Split(string(got), "\n"), strings.Split(want, "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("README.md is not what go run . page writes. Line %d:\n%s\nis to be\n%s", i+1, a[i], b[i])
			}
		}
		t.Fatalf("README.md has %d lines, go run . page writes %d", len(a), len(b))
	}
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(`\((figures/[^)]*)\)`).FindAllStringSubmatch(want, -1) {
		shown[m[1]] = true
		if _, err := os.Stat(filepath.FromSlash(m[1])); err != nil {
			t.Error(err)
		}
	}
	files, err := os.ReadDir("figures")
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	for _, f := range files {
		if !shown["figures/"+f.Name()] {
			t.Errorf("figures/%s is on no page", f.Name())
		}
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	if bytes > 3<<20 {
		t.Errorf("pictures take %d bytes", bytes)
	}
	if strings.Contains(want, "NaN") || strings.Contains(want, "%!") {
		t.Error("the page has a NaN or a value that was not formatted")
	}
}

// A changed result changes the page.
func TestPageFollowsResults(t *testing.T) {
	before, err := text(false)
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	copyResults := func(change func(string) string) {
		for _, folder := range []string{"results", "results/quick"} {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(filepath.Join(home, folder, "*.json"))
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(folder, filepath.Base(f)), []byte(change(string(text))), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	copyResults(func(s string) string { return s })
	if same, err := text(false); err != nil || same != before {
		t.Errorf("the page depends on more than its results: %v", err)
	}
	// Every loss on it is in a list of losses: without digits 1 the page is another one.
	copyResults(func(s string) string { return strings.ReplaceAll(s, "0.1", "0.2") })
	if other, err := text(false); err != nil || other == before {
		t.Errorf("the page does not follow its results: %v", err)
	}
}
