package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// What is written reads as what was given, with arrays of numbers and texts on one line.
func TestWrite(t *testing.T) {
	given := map[string]any{"a": []any{1.0, 2.5, -3e-7}, "b": []any{map[string]any{"c": []any{1.0}}},
		"s": []any{"x [ 1 , y", "n"}}
	file := filepath.Join(t.TempDir(), "folder", "r.json")
	if err := Write(file, given); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, given) {
		t.Errorf("%v, %v", got, err)
	}
	Has(t, string(text), "[ 1, 2.5, -3e-7 ]")
}

// Parts go between their marks and leave the rest of a page, in any order; a part without marks is an error.
func TestFill(t *testing.T) {
	const page = "a\n<!-- p: one -->\nold\n<!-- end -->\nb\n<!-- p: two -->\n<!-- end -->\nc\n"
	got, err := Fill(page, "p",
		map[string]string{"two": "2\n", "one": Table([][]string{{"x", "y"}, {"1", "2"}})})
	want := "a\n<!-- p: one -->\n| x | y |\n|---|---|\n| 1 | 2 |\n<!-- end -->\nb\n<!-- p: two " +
		"-->\n2\n<!-- end -->\nc\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	for _, bad := range []string{"", "<!-- p: one -->\n"} {
		if _, err := Fill(bad, "p", map[string]string{"one": ""}); err == nil {
			t.Errorf("%q has a place", bad)
		}
	}
}

func TestRound(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 1234.5: 1230, -0.0098765: -0.00988, 7: 7} {
		if got := Round(v, 3); got != want {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
}
