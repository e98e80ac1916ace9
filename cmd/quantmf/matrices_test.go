package main

// This file tests what is said first of matrices whose truth is known: the first box, the warnings and the
// method of -method auto, in the summary and on the page. testdata/matrices.json has what must be said, and
// the test of the page in the browser reads it, too.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestMatrices: what command and report say of matrices whose truth is known. Without QUANTMF_LONG it is four
// of them at -k 3, and one at -k 0.
func TestMatrices(t *testing.T) {
	if testing.Short() {
		t.Skip("makes hundreds of fits")
	}
	folder := Must(filepath.Abs("../../testdata"))(t)
	truth := decoded[struct {
		Words    map[string]string
		Matrices []struct {
			Name, Odd string
			Method    map[string]string // by k; "" where it may be any
			Says      []string          // of the words
		}
	}](t, textOf(t, filepath.Join(folder, "matrices.json")))
	t.Chdir(t.TempDir())
	for i, m := range truth.Matrices {
		long := os.Getenv("QUANTMF_LONG") != ""
		if !long && i > 3 {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			for k, method := range m.Method {
				if !long && k == "0" && m.Name != "few" {
					continue
				}
				_, said := quiet(t, 0, "fit -progress none -report page.html -o m.qmf -k "+k+" "+
					filepath.Join(folder, "matrices", m.Name+".tsv.gz"))
				told, _ := quiet(t, 0, "inspect m.qmf")
				page := textOf(t, "page.html")
				took := "\nMethod        " + strings.ToUpper(method) // "; " follows where it may be chance
				if method != "" && !strings.Contains(said, took+", ") && !strings.Contains(said, took+"; ") {
					t.Errorf("-k %s: the method is not %s: %s", k, method, said)
				}
				Has(t, page, m.Odd)
				for name, words := range truth.Words {
					if k == "0" && (name == "few" || name == "whole") {
						continue // the method may be BQMF, which leaves out what it does not need
					}
					want := slices.Contains(m.Says, name)
					if strings.Contains(said, words) != want || strings.Contains(told, words) != want {
						t.Errorf("-k %s: %q is said: %v: %s\n%s", k, words, !want, said, told)
					}
					if strings.Contains(strings.ToLower(page), strings.ToLower(words)) != want {
						t.Errorf("-k %s: %q is on the page: %v", k, words, !want)
					}
				}
			}
		})
	}
}
