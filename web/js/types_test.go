// Package js holds the package for JavaScript, and the test that its types say what the options are.
package js

import (
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/calls"
	"github.com/quantmf/quantmf/internal/option"
)

// member is one of an interface of index.d.ts: its comment and its type.
type member struct{ comment, typ string }

// members are those of an interface, by their names.
func members(t *testing.T, name string) map[string]member {
	t.Helper()
	text, err := os.ReadFile("index.d.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "export interface "+name+" {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	all, one := map[string]member{}, regexp.MustCompile(`(?s)/\*\*(.*?)\*/\s+(\w+)\?: (.*?);\n`)
	for _, m := range one.FindAllStringSubmatch(body+"\n", -1) {
		all[m[2]] = member{strings.Join(strings.Fields(strings.ReplaceAll(m[1], "\n   *", "\n")), " "), m[3]}
	}
	return all
}

// typeOf is the type of an option's values, "" where its declaration does not say it.
func typeOf(k option.Kind) string {
	switch k.Form() {
	case option.Whole, option.Decimal:
		return "number"
	case option.Switch:
		return "boolean"
	case option.Numbers:
		return "Numbers"
	case option.Choice:
		return "'" + strings.Join(k.Words(), "' | '") + "'"
	}
	return ""
}

// defaults are the cells of the table of defaults in doc.go, by the names of the functions of options.
func defaults(t *testing.T) map[string][]string {
	t.Helper()
	doc, err := os.ReadFile("../../doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "// # Defaults of models\n")
	table, _, _ = strings.Cut(table, "// Without options")
	of := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^//\t(With\w+) +(.*)$`).FindAllStringSubmatch(table, -1) {
		of[row[1]] = regexp.MustCompile(` {2,}`).Split(row[2], -1)
	}
	return of
}

// TestSettings: index.d.ts has the options that fits and operators take, with the types and the bounds of
// their declarations, and the defaults of fits that doc.go has.
func TestSettings(t *testing.T) {
	number := regexp.MustCompile(`\d[\d.]*(?:e-?\d+)?`)
	told := defaults(t)
	for name, functions := range map[string][]option.Function{
		"Settings":         {option.FitNMF, option.FitQMF, option.FitQMFQ, option.FitBQMF},
		"OperatorSettings": {option.SoftRank, option.SoftSort, option.SoftQuantile},
	} {
		taken := option.Set(0)
		for _, f := range functions {
			taken |= f.Takes
		}
		listed := members(t, name)
		for k := range option.Kinds {
			m, is := listed[k.JavaScript()]
			delete(listed, k.JavaScript())
			// An engine has one thread.
			if want := taken.Has(k) && calls.Given(k) && k != option.Workers; is != want {
				t.Errorf("%s: %s: listed %v, want %v", name, k.JavaScript(), is, want)
			}
			if !is {
				continue
			}
			if want := typeOf(k); want != "" && m.typ != want {
				t.Errorf("%s: %s is a %s, want %s", name, k.JavaScript(), m.typ, want)
			}
			bound := ""
			if k.Form() == option.Whole || k.Form() == option.Decimal || k == option.Loss {
				bound = k.Check(math.NaN())
			}
			for _, end := range number.FindAllString(bound, -1) {
				if name == "Settings" && (k == option.Levels || k == option.Epsilon) && len(end) == 1 {
					continue // of operators alone: a fit has two levels or more, and no ε of 0
				}
				if !strings.Contains(m.comment, end) {
					t.Errorf("%s: %s does not say %q: %q", name, k.JavaScript(), bound, m.comment)
				}
			}
			if name == "Settings" {
				checkDefaults(t, k, m.comment, told[k.String()])
			}
		}
		for other := range listed {
			t.Errorf("%s: %s is no option", name, other)
		}
	}
}

// checkDefaults asks for the defaults of an option in its comment: numbers, and the words of constants.
func checkDefaults(t *testing.T, k option.Kind, comment string, told []string) {
	t.Helper()
	_, said, _ := strings.Cut(strings.ToLower(comment), "default")
	for _, want := range told {
		for i, word := range k.Words() {
			if want == k.Constant(i) {
				want = word
			}
		}
		want = strings.NewReplacer("e-0", "e-", "KLUpdates(", "kl:", ")", "").Replace(want)
		if want != "-" && want != "all" && !strings.Contains(said, strings.ToLower(want)) {
			t.Errorf("the default %s of %v is not in %q", want, k, comment)
		}
	}
}
