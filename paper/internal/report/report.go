// Package report has what measurements of this module share: tables of Markdown, pages whose parts are filled
// in, files of results and of a cache, and the processor time.
package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Table returns a table. Its first row is the head.
func Table(rows [][]string) string {
	var w strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&w, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return w.String()
}

// width is that of the prose of a page.
const width = 110

// prose breaks the lines of a part that are wider than a page, rows of tables apart.
func prose(part string) string {
	var w strings.Builder
	for line := range strings.Lines(part) {
		if len(line) <= width || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "[") {
			w.WriteString(line)
			continue
		}
		at := 0
		for i, word := range strings.Fields(line) {
			switch n := utf8.RuneCountInString(word); {
			case i == 0:
				at = n
			case at+1+n > width:
				w.WriteByte('\n')
				at = n
			default:
				w.WriteByte(' ')
				at += 1 + n
			}
			w.WriteString(word)
		}
		w.WriteByte('\n')
	}
	return w.String()
}

// Fill puts each part of a page between its marks, the comments "PROGRAM: NAME" and "end", with prose of at
// most 110 columns. A part without its marks is an error.
func Fill(page, program string, parts map[string]string) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		begin, end := "<!-- "+program+": "+name+" -->\n", "<!-- end -->"
		before, rest, begins := strings.Cut(page, begin)
		_, after, ends := strings.Cut(rest, end)
		if !begins || !ends {
			return "", fmt.Errorf("the page has no place for %q", name)
		}
		page = before + begin + prose(parts[name]) + end + after
	}
	return page, nil
}

// Difference says which line of a page is the first that is not as it is to be; "" where none is.
func Difference(page, want string) string {
	a, b := strings.Split(page, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%s\nis to be\n%s", i+1, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d lines, not %d", len(a), len(b))
	}
	return ""
}

// FillFile fills the parts of a page in a file.
func FillFile(file, program string, parts map[string]string) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := Fill(string(page), program, parts)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// Write writes results as JSON with arrays of numbers or texts on one line.
func Write(file string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(compact(text), '\n'), 0o644)
}

// Cached returns what compute has returned for a key, from cache/, or calls it, anew where again is set. The
// name of the file begins with the given one.
func Cached[T any](name, key string, again bool, compute func() (T, error)) (v T, err error) {
	h := sha256.Sum256([]byte(key))
	file := filepath.Join("cache", name+hex.EncodeToString(h[:12])+".json")
	if text, err := os.ReadFile(file); err == nil && !again && json.Unmarshal(text, &v) == nil {
		return v, nil
	}
	if v, err = compute(); err != nil {
		return v, err
	}
	return v, Write(file, v)
}

func compact(text []byte) []byte {
	return arrays.ReplaceAllFunc(text,
		func(a []byte) []byte { return []byte(strings.Join(strings.Fields(string(a)), " ")) })
}

var arrays = regexp.MustCompile(`\[[^][{}]*\]`)

// Version returns the last commit that changed the package, changes of tests and of the paths left out apart,
// with a + where files differ from it.
func Version(without ...string) string {
	of := []string{"--", ":(top,glob)*.go", ":(top)internal", ":(top,exclude)*_test.go"}
	for _, path := range without {
		of = append(of, ":(top,exclude)"+path)
	}
	out, err := exec.Command("git", append([]string{"log", "-1", "--format=%h"}, of...)...).Output()
	if err != nil || len(out) == 0 {
		return "an unknown version"
	}
	v := strings.TrimSpace(string(out))
	changed, err := exec.Command("git", append([]string{"status", "--porcelain"}, of...)...).Output()
	if err != nil || len(changed) > 0 {
		v += "+"
	}
	return v
}

// Today returns the date, and Machine the platform and its cores.
func Today() string { return time.Now().UTC().Format(time.DateOnly) }
func Machine() string {
	return fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}

// Round rounds to the given number of significant digits.
func Round(v float64, digits int) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return r
}

// RoundAll rounds each number.
func RoundAll(v []float64, digits int) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = Round(v[i], digits)
	}
	return out
}
