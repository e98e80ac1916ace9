package main

// This file tests the flags of the page: groups, the order of samples, and what is said of them.

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

func TestGroups(t *testing.T) {
	folder(t)
	in := read(t, "matrix.tsv")
	groups := "sample,kind\n"
	for j, s := range in.Samples {
		groups += s + "," + []string{"odd", "even"}[j%2] + "\n"
	}
	writeText(t, "groups.csv", groups+"nobody,odd\n")
	quiet(t, 0, "fit -method qmf -compare none -k 2 -epochs 3 -o m.qmf matrix.tsv")
	one, said := quiet(t, 0, "report m.qmf matrix.tsv -groups groups.csv -o -")
	Has(t, said, `warning: groups.csv: 1 name is not in the matrix: "nobody"`)
	_, said = quiet(t, 0, "fit -method qmf -compare none -k 2 -epochs 3 -groups groups.csv "+
		"-report page.html -progress json matrix.tsv")
	for line := range strings.Lines(said) {
		if !json.Valid([]byte(line)) {
			t.Errorf("-progress json: %s", line)
		}
	}
	two := textOf(t, "page.html")
	if one != two {
		t.Error("the page of the model is not that of the fit")
	}
	Has(t, one, "<title>odd: 5 samples</title>", "samples by kind")
	Lacks(t, one, "groups.csv") // what a fit is does not depend on them
	table, _ := quiet(t, 0, "report m.qmf matrix.tsv -o -")
	fit, _ := quiet(t, 0, "report m.qmf matrix.tsv -order tree -o -")
	Has(t, table, "samples as in the table")
	Lacks(t, table, "samples by their tree")
	Has(t, fit, "samples by their tree")
	writeText(t, "none.csv", "sample,kind\nnobody,odd\n")
	writeText(t, "binary.csv", "\x00\x01\x02")
	for _, c := range []saying{
		{"report m.qmf matrix.tsv -o - -groups none.csv", 3,
			`none.csv: no name in the first column is that of a feature or a sample (it has "nobody")`},
		{"report m.qmf matrix.tsv -o - -groups binary.csv", 3, "binary.csv: line 1 has no second column"},
		{"report m.qmf matrix.tsv -o - -groups nowhere.csv", 3, "nowhere.csv"},
		{"report m.qmf matrix.tsv -o - -order best", 2,
			"-order best: must be table, tree or a component such as c2"},
		{"report m.qmf matrix.tsv -o groups.csv -groups groups.csv", 2, "groups.csv is read itself"},
		{"fit -k 2 -report groups.csv -groups groups.csv matrix.tsv", 2, "groups.csv is read itself"},
		{"report m.qmf - -o - -groups -", 2, "standard input can be read only once"},
		{"fit -method qmf -compare none -k 2 -groups groups.csv matrix.tsv", 2,
			"-groups: it says how the page looks: give -report, too"},
		{"fit -k 2 -report x.html -groups none.csv matrix.tsv", 3, "none.csv: no name"},
	} {
		says(t, c.code, c.args, c.says)
	}
	if _, err := os.Stat("x.html"); err == nil {
		t.Error("a page of groups that are none")
	}
}

// TestSum: a model says of which file it is, by a sum that sha256sum prints, too; nothing of standard input.
func TestSum(t *testing.T) {
	folder(t)
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(small())))
	page, _ := quiet(t, 0, "fit -method qmf -compare none -k 2 -epochs 1 -o m.qmf -report - matrix.tsv")
	Has(t, page, "; SHA-256 of the file: "+want+") was factorised")
	for _, args := range []string{"report m.qmf matrix.tsv -o -", "inspect -json m.qmf"} {
		out, _ := quiet(t, 0, args)
		Has(t, out, want)
	}
	page, _ = fed(t, 0, small(), "fit -method qmf -compare none -k 2 -epochs 1 -report - -")
	if page == "" || strings.Contains(page, "SHA-256") {
		t.Error("of standard input")
	}
}

// TestVersion: the commit stands in the version, once.
func TestVersion(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct{ version, commit, modified, want string }{
		{"", "", "", "(devel)"},
		{"(devel)", "", "", "(devel)"},
		{"(devel)", commit, "false", "(devel) of commit 0123456789ab"},
		{"(devel)", commit, "true", "(devel) of commit 0123456789ab with changes"},
		{"v1.2.3", commit, "false", "v1.2.3 of commit 0123456789ab"},
		{"v0.0.0-20260102030405-0123456789ab+dirty", commit, "true",
			"v0.0.0-20260102030405-0123456789ab+dirty"},
	} {
		b := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: c.commit},
			{Key: "vcs.modified", Value: c.modified}}}
		b.Main.Version = c.version
		Equal(t, versionOf(b), c.want, "%s, %s", c.version, c.commit)
	}
}
