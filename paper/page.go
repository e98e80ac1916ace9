// This file fills the tables of README.md and draws figures/, from the files of results and from nothing
// else.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/quantmf/quantmf/paper/internal/report"
)

// writer collects the tables of the page.
type writer struct {
	draw   bool // whether figures are drawn
	parts  map[string]string
	claims [][]string
	runs   []string
}

// claim adds a claim of the paper, and what comes out, to the table at the head of the page.
func (w *writer) claim(of, here string, args ...any) {
	w.claims = append(w.claims, []string{of, fmt.Sprintf(here, args...)})
}

func (w *writer) table(name string, rows [][]string) { w.parts[name] = report.Table(rows) }

// section reads the results of an experiment, in the full setting, for its part of the page.
func section[T any](name string, fill func(*writer, T) error) func(*writer) error {
	return func(w *writer) error {
		text, err := os.ReadFile(filepath.Join("results", name+".json"))
		if err != nil {
			return err
		}
		var r result[T]
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("results of %s: %w", name, err)
		}
		h := r.Header
		w.runs = append(w.runs, fmt.Sprintf("%s %s %s", name, h.Setting, h.Version))
		return fill(w, r.Result)
	}
}

// page returns the page with its tables filled in.
func page(draw bool) (string, error) {
	w := &writer{draw: draw, parts: map[string]string{}, claims: [][]string{{"the paper says", "here"}}}
	for _, e := range experiments {
		if err := e.page(w); err != nil {
			return "", err
		}
	}
	w.table("claims", w.claims)
	w.parts["runs"] = "Runs:\n" + strings.Join(w.runs, ";\n") + ".\n"
	text, err := os.ReadFile("README.md")
	if err != nil {
		return "", err
	}
	return report.Fill(string(text), "paper", w.parts)
}

func writePage() error {
	text, err := page(true)
	if err != nil {
		return err
	}
	return os.WriteFile("README.md", []byte(text), 0o644)
}

func g(v float64) string { return fmt.Sprintf("%.3g", v) }

// cell returns a number as the text of a table, a dash for NaN.
func cell(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return g(v)
}
