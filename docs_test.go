package quantmf

// Tests of the pages of documentation, and of the width of what a reader reads.

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestLinks: what a page links to is there, the heading too that an anchor names.
func TestLinks(t *testing.T) {
	if _, err := os.Stat("beam"); err != nil {
		t.Skip("a copy without the nested modules, to which pages link")
	}
	var pages []string
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() &&
			(strings.HasPrefix(e.Name(), ".") && name != "." && name != ".ci" || e.Name() == "node_modules" ||
				e.Name() == "cache") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil || len(pages) < 20 {
		t.Fatal(pages, err)
	}
	link, code := regexp.MustCompile(`\]\(([^()\s]+)\)`), regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	heading, mark := regexp.MustCompile(`(?m)^#+ +(.*)$`), regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	anchors := func(page string) map[string]bool {
		text, _ := os.ReadFile(page)
		all := map[string]bool{}
		prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
		for _, h := range heading.FindAllStringSubmatch(prose, -1) {
			all[strings.ReplaceAll(mark.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
		}
		return all
	}
	count := 0
	for _, page := range pages {
		text := Must(os.ReadFile(page))(t)
		for _, l := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(l[1], "://") || strings.HasPrefix(l[1], "mailto:") {
				continue
			}
			file, anchor, at := strings.Cut(l[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			count++
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[1])
			} else if at && strings.HasSuffix(to, ".md") && !anchors(to)[anchor] {
				t.Errorf("%s links to %s, a heading that is not there", page, l[1])
			}
		}
	}
	t.Log(count, "links")
}

// TestWidth: code, where a tab counts four, and prose are at most 110 columns wide. Generated code, tables,
// blocks of code and links in pages are not prose, nor is data, of which a word is wider than half a line.
func TestWidth(t *testing.T) {
	const most = 110
	link := regexp.MustCompile(`\]\([^()\s]+\)|https?://`)
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && name != "." && (e.Name()[0] == '.' && name != ".ci" ||
			e.Name() == "node_modules" || e.Name() == "cache" || e.Name() == "vendor" ||
			e.Name() == "testdata") {
			return fs.SkipDir
		}
		page, code := strings.HasSuffix(name, ".md"), strings.HasSuffix(name, ".go")
		if err != nil || !page && !code {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil || code && strings.Contains(string(text[:min(len(text), 2000)]), "Code generated") {
			return err
		}
		block := false
		for i, line := range strings.Split(string(text), "\n") {
			if page && strings.HasPrefix(strings.TrimSpace(line), "```") {
				block = !block
			}
			if page && (block || strings.HasPrefix(line, "|") || link.MatchString(line)) {
				continue
			}
			if slices.ContainsFunc(strings.Fields(line), func(word string) bool { return len(word) > 70 }) {
				continue
			}
			if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > most {
				t.Errorf("%s:%d: %d columns", name, i+1, n)
			}
		}
		return nil
	})
	OK(t, err)
}
