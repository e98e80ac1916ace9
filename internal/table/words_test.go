package table_test

// This file tests cells that hold more than a number, or none: what is read of them and said, and the one
// error that lists the others.

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

func TestWords(t *testing.T) {
	t.Parallel()
	half := table.Options{Missing: true, Below: "half"}
	for _, c := range []struct {
		name, in string
		o        table.Options
		want     string // features, samples, numbers
		said     string // in Taken, behind what is said of names
	}{
		{"decimal commas", "x;a;b\ng;1,5;-2,25e-1\nh;1000;,5\n", anything, "g|h; a|b; 1.5 -0.225/1000 0.5",
			"; decimal commas"},
		{"in quotation marks", "x,a\ng,\"1,5\"\nh,2\n", anything, "g|h; a; 1.5/2", "; decimal commas"},
		{"zero before three decimals", "x\ta\ng\t0,125\n", anything, "g; a; 0.125", "; decimal commas"},
		{"three decimals, which could be thousands", "x;a\ng;1,125\n", table.Options{Decimal: ','},
			"g; a; 1.125",
			"; decimal commas"},
		{"points", "x;a\ng;1.125\n", table.Options{Decimal: '.'}, "g; a; 1.125", ""},
		{"percent", "x,a,b,c\ng,45%,5 %,NA\nh,.5,1,2\n", anything, "g|h; a|b|c; 45 5 NaN/0.5 1 2",
			"; 2 cells in percent (45 % is 45)"},
		{"percent in a column", "x,a,b\ns,1%,1\nr,NA,1\n", table.Options{Missing: true, Transpose: true},
			"a|b; s|r; 1 NaN/1 1", "; 1 cell in percent (45 % is 45); then transposed"},
		{"samples that are called 10%", "cohort,10%,20%\ng,1,2\n", anything, "g; 10%|20%; 1 2", ""},
		{"percent without a header", "g,10%,20%\nh,1%,2%\n", anything, "g|h; s1|s2; 10 20/1 2",
			"; 4 cells in percent (45 % is 45)"},
		{"truths", "x,a,b\ng,TRUE,false\n", anything, "g; a|b; 1 0",
			"; 2 cells are TRUE or FALSE, which are 1 and 0"},
		{"half of a limit", "x;a;b\ng;<0,5;> 100\nh;<= 1;≥2\n", half, "g|h; a|b; 0.25 100/0.5 2",
			"; decimal commas; 2 values below a limit of detection, taken at half of it; 2 values above a " +
				"limit of detection, taken at it"},
		{"a limit", "x;a;b\ng;<0.5;7\n", table.Options{Below: "limit"}, "g; a|b; 0.5 7",
			"; 1 value below a limit of detection, taken at it"},
		{"a limit as missing", "x;a;b\ng;<0.5;>7\n", table.Options{Below: "missing", Missing: true},
			"g; a|b; NaN NaN", "; 1 value below a limit of detection, taken for missing; 1 value above a " +
				"limit of detection, taken for missing"},
		{"words for missing", "x,a,b\ng,ND,n.d.\nh,1,2\n",
			table.Options{Missing: true, NA: []string{"ND", "n.d."}},
			"g|h; a|b; NaN NaN/1 2", ""},
		{"lines before the table", "by us\nin 2024\n\nx,a\ng,1\n", table.Options{Skip: 3}, "g; a; 1", ""},
		{"features and samples without values", "x,a,b,c\ng,1,,2\nh,,NA,\ni,3,,4\n",
			table.Options{Missing: true, Full: true}, "g|i; a|c; 1 2/3 4", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := readsAs(t, c.in, c.o, c.want)
			names := got.Taken[strings.Index(got.Taken, "samples")+len("samples"):]
			names = strings.TrimLeft(names, " byline0123456789")
			Equal(t, names, c.said, "said")
		})
	}
}

// TestFurtherHeaders: lines of words below the header are left out and said, where they are certain.
func TestFurtherHeaders(t *testing.T) {
	t.Parallel()
	const numbers = "g,1,2\nh,3,ND\ni,5,6\n"
	o := table.Options{Missing: true, NA: []string{"ND"}}
	for _, c := range []struct{ name, lines, warning string }{
		{"units", "unit,mg,g\n",
			`line 2 holds words alone, as "mg": taken for a further header and left out`},
		{"groups and units", "group,A,B\nunit,mg,\n",
			`lines 2 to 3 hold words alone, as "A": taken for a further header and left out`},
	} {
		got := readsAs(t, "x,a,b\n"+c.lines+numbers, o, "g|h|i; a|b; 1 2/3 NaN/5 6")
		if len(got.Warnings) != 1 || got.Warnings[0] != c.warning {
			t.Errorf("%s: %q", c.name, got.Warnings)
		}
	}
	for name, line := range map[string]string{"one word": "z,low,low\n", "a number beside": "z,low,1\n",
		"a word that comes again": "z,low,ND\n"} {
		_, err := read("x,a,b\n"+line+numbers, table.Options{Missing: true})
		if err == nil || !strings.Contains(err.Error(), `in:2:2: feature "z"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWordFaults(t *testing.T) {
	t.Parallel()
	many := "x,a,b\n"
	for i := range 70 {
		many += "g,1,w" + strconv.Itoa(i) + "\n"
	}
	for _, c := range []struct {
		name, in string
		o        table.Options
		want     string
	}{
		{"all words at once", "x,a,b,c\ng,1,ND,<0.5\nh,n.d.,2,3\ni,ND,<0.5,4\n", anything,
			`in:2:3: feature "g", sample "b": 5 cells hold words where numbers should stand: "ND" (2, ` +
				`first in line 2, column 3), "<0.5" (2, first in line 2, column 4), "n.d." (1, first in ` +
				`line 3, column 2): give -na ND,n.d. for words that mean a missing value; -below half, ` +
				`limit or missing for limits of detection`},
		{"in one column", "x,a,b\ng,1,b d\nh,2,e\ni,3,e\n", anything,
			`in:2:3: feature "g", sample "b": 3 cells hold words where numbers should stand: "b d" (1, ` +
				`first in line 2, column 3), "e" (2, first in line 3, column 3): give -na "b d,e" for ` +
				`words that mean a missing value; -names 1,3 to leave out column 3, in which all of them ` +
				`stand`},
		{"a word before a line that is short", "x,a,b\ng,1,low\nh,2\n", anything,
			`in:2:3: feature "g", sample "b": "low" is not a number: write a number here; names belong ` +
				`into the first line and the first column`},
		{"a limit", "x,a\ng,<0.5\n", anything,
			`in:2:2: feature "g", sample "a": "<0.5" is a limit of detection: give -below half, limit or ` +
				`missing, or write a number`},
		{"a limit that would be missing", "x,a\ng,<0.5\n", table.Options{Below: "missing"},
			`in:2:2: feature "g", sample "a": "<0.5" is a missing value under -below missing: give ` +
				`-missing, fill in a number, or remove the feature or the sample`},
		{"percent beside plain numbers", "x,a,b\ng,45%,0.5\n", anything,
			`in:2: feature "g": 1 of its 2 values end in %: write all of them in percent, or none`},
		{"the same in a column", "x,a,b\ns,1%,1\nr,2,1\n", table.Options{Transpose: true},
			`in: feature "a": 1 of its 2 values end in %: write all of them in percent, or none`},
		{"points among commas", "x;a;b\ng;1,5;1.000,5\n", table.Options{Decimal: ','},
			`in:2:3: feature "g", sample "b": "1.000,5" has a point where decimals have a comma: write ` +
				`thousands without a mark, or give -decimal . if decimals have a point`},
		{"lines that describe", "by us\nin 2024\n\nx,a,b\ng,1,2\nh,1,2\n", anything,
			`in:1: the first lines have fewer cells than those from line 4 on, as lines do that describe a ` +
				`table: give -skip 3 to leave them out`},
		{"lines that describe, with cells", "by us,,\nx,a,b\ng,1,2\nh,1,2\n", anything,
			`in:2:2: feature "x", sample "s1": 2 cells hold words where numbers should stand: "a" (1, ` +
				`first in line 2, column 2), "b" (1, first in line 2, column 3): give -skip N to leave out ` +
				`the first N lines, if the names of the samples stand below them; -na a,b for words that ` +
				`mean a missing value`},
		{"more lines than there are", "x,a\n", table.Options{Skip: 2},
			`in: -skip 2: the file has no more lines than that`},
		{"no value at all", "x,a\ng,\n", table.Options{Missing: true, Full: true},
			"in: all values are missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fails(t, c.in, c.o, c.want)
		})
	}
	_, err := read(many, anything)
	if err == nil || !strings.Contains(err.Error(), "65 cells hold words") ||
		!strings.Contains(err.Error(), "and 56 more") {
		t.Error(err)
	}
}

// FuzzDecimalComma: numbers with commas are those with points, to the bit.
func FuzzDecimalComma(f *testing.F) {
	f.Add("1.5 0.125 7", byte(0))
	f.Add("1e-3 -2.25 .5 1000.125", byte(1))
	f.Add("<0.5 45% TRUE 1.1", byte(2))
	f.Fuzz(func(t *testing.T, numbers string, below byte) {
		o := table.Options{Memory: little, Missing: true, Negative: true, Header: table.HeaderYes, Names: "1",
			Sep:   ';',
			Below: append(table.Limits, "")[below%4], Decimal: '.'}
		text := "x;a\n"
		for _, n := range strings.Fields(numbers) {
			if strings.ContainsAny(n, ",;\"\x00") || n == "." { // which is a missing value
				return
			}
			text += "g;" + n + "\n"
		}
		points := readsText(t, text, o)
		o.Decimal = ','
		commas := readsText(t, strings.ReplaceAll(text, ".", ","), o)
		if points == nil {
			return
		}
		if commas == nil || len(commas.X.Data) != len(points.X.Data) {
			t.Fatalf("%q is not read", text)
		}
		var a, b bytes.Buffer
		for k, v := range points.X.Data {
			if w := commas.X.Data[k]; math.Float64bits(v) != math.Float64bits(w) && !(v != v && w != w) {
				t.Fatalf("%v became %v", v, w)
			}
		}
		table.Write(&a, "x.tsv", "", points.Features, points.Samples, points.X)
		table.Write(&b, "x.tsv", "", commas.Features, commas.Samples, commas.X)
		if a.String() != b.String() {
			t.Fatalf("%q became %q", a.String(), b.String())
		}
	})
}
