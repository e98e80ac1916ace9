package table_test

// This file tests columns that number the rows, and tables that have a line for each value.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/table"
)

// TestNumbersOfRows: the numbers that R and pandas put before the rows are neither names nor a sample.
func TestNumbersOfRows(t *testing.T) {
	const left = " numbers the rows and was left out"
	for _, c := range []struct {
		name, in string
		o        table.Options
		want     string // features, samples and numbers
		left     string // the column that is said to number the rows, "" for none
	}{
		{"R's write.csv", "\"\",\"gene\",\"a\",\"b\"\n\"1\",\"TP53\",1,2\n\"2\",\"EGFR\",3,4\n",
			table.Options{},
			"TP53|EGFR; a|b; 1 2/3 4", "1"},
		{"R's write.table", "\"gene\" \"a\" \"b\"\n\"1\" \"TP53\" 1 2\n\"2\" \"EGFR\" 3 4\n", table.Options{},
			"TP53|EGFR; a|b; 1 2/3 4", "1"},
		{"the same without quotation marks", "gene a b\n1 TP53 1 2\n2 EGFR 3 4\n", table.Options{},
			"TP53|EGFR; a|b; 1 2/3 4", "1"},
		{"pandas", ",gene,a,b\n0,TP53,1,2\n1,EGFR,3,4\n", table.Options{}, "TP53|EGFR; a|b; 1 2/3 4", "1"},
		{"pandas, read and written again", "Unnamed: 0,gene,a\n0,TP53,1\n1,EGFR,3\n", table.Options{},
			"TP53|EGFR; a; 1/3", `1 ("Unnamed: 0")`},
		{"names that are numbers, by their heading", ",entrez,a\n0,7157,1\n1,1956,3\n", table.Options{},
			"7157|1956; a; 1/3", "1"},
		{"no header", "1,TP53,1,2\n2,EGFR,3,4\n", table.Options{}, "TP53|EGFR; s1|s2; 1 2/3 4", "1"},
		{"descriptions behind the names", ",gene,what,a\n0,TP53,a gene,1\n1,EGFR,another,3\n",
			table.Options{},
			"TP53|EGFR; a; 1/3", "1"},
		{"-names", ",gene,a,b\n0,7,1,2\n1,8,3,4\n", table.Options{Names: "gene"}, "7|8; a|b; 1 2/3 4", "1"},
		{"-names below a short header", "gene a b\n1 7 1 2\n2 8 3 4\n", table.Options{Names: "gene"},
			"7|8; a|b; 1 2/3 4", "1"},
		{"-names of the numbers", ",gene,a,b\n0,7,1,2\n1,8,3,4\n", table.Options{Names: "1-2"},
			"0|1; a|b; 1 2/3 4",
			""},
		{"no other names", ",a,b\n0,1,2\n1,3,4\n", table.Options{}, "0|1; a|b; 1 2/3 4", ""},
		{"words that are no names", ",group,a\n0,x,1\n1,x,2\n", table.Options{}, "0|1; a; 1/2", ""},
		{"not consecutive", ",gene,a\n0,TP53,1\n2,EGFR,3\n", table.Options{}, "0|2; a; 1/3", ""},
		{"from 7 on", ",gene,a\n7,TP53,1\n8,EGFR,3\n", table.Options{}, "7|8; a; 1/3", ""},
		{"under a heading of its own", "entrez,gene,a\n1,TP53,1\n2,EGFR,3\n", table.Options{}, "1|2; a; 1/3",
			""},
		{"a value under a heading of its own", "age,gene,a\n1,TP53,1\n2,EGFR,3\n",
			table.Options{Names: "gene"},
			"TP53|EGFR; age|a; 1 1/2 3", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := readsAs(t, c.in, c.o, c.want)
			_, said, _ := strings.Cut(got.Taken, "; column ")
			if said, _, _ = strings.Cut(said, left); c.left != said && (c.left != "" ||
				strings.Contains(got.Taken, left)) {
				t.Error(got.Taken)
			}
		})
	}
}

func TestLong(t *testing.T) {
	const want = "TP53|EGFR; A|B; 1.5 2/0 4"
	byHeadings := table.Options{Long: "gene,sample,value"}
	for _, c := range []struct {
		name, in string
		o        table.Options
		want     string
	}{
		{"by headings", "gene,sample,value\nTP53,A,1.5\nTP53,B,2\nEGFR,A,0\nEGFR,B,4\n",
			byHeadings, want},
		{"by numbers, in another order", "v\ts\tg\n1.5\tA\tTP53\n2\tB\tTP53\n4\tB\tEGFR\n0\tA\tEGFR\n",
			table.Options{Long: "3,2,1"}, want},
		{"without a header", "TP53;A;1.5\nTP53;B;2\nEGFR;A;0\nEGFR;B;4\n", table.Options{Long: "1-3"}, want},
		{"of R, with numbers of rows",
			"\"gene\" \"sample\" \"value\"\n\"1\" \"TP53\" \"A\" 1.5\n\"2\" \"TP53\" " +
				"\"B\" 2\n\"3\" \"EGFR\" \"A\" 0\n\"4\" \"EGFR\" \"B\" 4\n",
			byHeadings, want},
		{"names that are numbers", "gene,sample,note,value\n7,1,x,1.5\n8,1,,2\n",
			byHeadings, "7|8; 1; 1.5/2"},
		{"a cell that no line has", "g,s,v\na,A,1\nb,B,2\n", table.Options{Long: "g,s,v", Missing: true},
			"a|b; A|B; 1 NaN/NaN 2"},
		{"a missing value", "g,s,v\na,A,NA\na,B,2\n", table.Options{Long: "g,s,v", Missing: true},
			"a; A|B; NaN 2"},
		{"transposed", "g,s,v\na,A,1\na,B,2\n", table.Options{Long: "g,s,v", Transpose: true}, "A|B; a; 1/2"},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); readsAs(t, c.in, c.o, c.want) })
	}
	got := readsAs(t, "x,gene,sample,value\n1,a,A,1\n2,a,B,2\n", byHeadings,
		"a; A|B; 1 2")
	if got.Taken != `comma-separated, features named by column 2 ("gene"), samples by column 3 ("sample"), `+
		`a value a line in column 4 ("value"); column 1 ("x") left out` || !got.NamedSamples ||
		!got.NamedFeatures {
		t.Error(got.Taken)
	}
}

// long is a long table of as many genes and samples, which has a line for each gene and then for each sample.
func long(header string, genes, samples int, line func(gene, sample int) string) string {
	s := header
	for i := range genes {
		for j := range samples {
			s += line(i, j)
		}
	}
	return s
}

// TestLongFaults: a long table is refused with the way to read it, unless -names says what it is.
func TestLongFaults(t *testing.T) {
	byGene := func(i, j int) string { return fmt.Sprintf("G%d,S%d,%d\n", i, j, i+j) }
	bySample := func(i, j int) string { return fmt.Sprintf("G%d,S%d,%d\n", j, i, i+j) }
	say := func(list string) string {
		return "in: this looks like a long table, which has a line for each value: give -long " + list +
			", or make a matrix of it once by quantmf convert -long " + list +
			" IN OUT.tsv; if it is of one sample, give -names "
	}
	for _, c := range []struct {
		name, in string
		want     string // "" where it is no long table
	}{
		{"gene by gene", long("gene,sample,value\n", 4, 30, byGene), say("gene,sample,value") + "1-2"},
		{"sample by sample", long("gene,sample,value\n", 30, 100, bySample),
			say("gene,sample,value") + "1-2"},
		{"words without telling headings", long("protein,run,lfq\n", 4, 30, byGene),
			say("protein,run,lfq") + "1-2"},
		{"the same, sample by sample", long("protein,run,lfq\n", 30, 100, bySample),
			say("protein,run,lfq") + "1-2"},
		{"headings with blanks", long("Gene Name,The sample,value\n", 4, 30, byGene), say("1,2,3") + "1-2"},
		{"no header", long("", 4, 30, byGene), say("1,2,3") + "1-2"},
		{"samples first", long("sample,gene,value\n", 4, 30, byGene), say("gene,sample,value") + "1-2"},
		{"numbers of rows first", long(",gene,sample,value\n", 4, 3, func(i, j int) string {
			return fmt.Sprintf("%d,G%d,S%d,5\n", 3*i+j, i, j)
		}), say("gene,sample,value") + "2-3"},
		{"numbers as names of samples, and two values",
			long("gene,sample,count,tpm\n", 4, 3, func(i, j int) string {
				return fmt.Sprintf("G%d,%d,5,6\n", i, j)
			}), say("gene,sample,count") + "1-2"},
		{"a description of features", "gene,what,a\nTP53,x,1\nEGFR,y,2\nMYC,x,3\n", ""},
		{"chromosomes", "gene,chr,a\nTP53,chr1,1\nEGFR,chr1,2\nMYC,chr1,3\n", ""},
		{"probes of a gene", "gene,probe,a\nTP53,p1,1\nTP53,p2,2\nMYC,p3,3\n", ""},
		{"samples of a patient in rows", "patient,sample,x,y\np1,a,1,2\np1,b,1,2\np2,c,3,4\n", ""},
		{"the same names again", "gene,run,a\nTP53,x,1\nTP53,x,2\nMYC,x,3\n", ""},
		{"two samples", "gene,run,a,b\nTP53,x,1,2\nTP53,y,2,3\nMYC,x,3,4\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.want != "" {
				fails(t, c.in, table.Options{}, c.want)
			} else if _, err := read(c.in, table.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := read(long("gene,run,value\n", 4, 3, byGene), table.Options{Names: "1-2"}); err != nil {
		t.Errorf("-names 1-2: %v", err)
	}
	const two = "g,s,v\na,A,1\nb,A,2\n"
	gsv := table.Options{Long: "g,s,v"}
	for _, c := range []struct {
		in   string
		o    table.Options
		want string
	}{
		{two + "b,A,3\n", gsv,
			`in:4: feature "b", sample "A": an earlier line has a value of ` +
				`this cell, too: leave one of them`},
		{two + "b,B,3\n", gsv,
			`in: feature "a", sample "B": no line has a value of this ` +
				`cell: give -missing, fill in a number, or remove the feature or the sample`},
		{two + "b,B,low\n", gsv,
			`in:4:3: feature "b", sample "B": "low" is not a number: ` +
				`write a number here; names belong into the first line and the first column`},
		{two + "b\n", gsv,
			`in:4:2: feature "b": this line has 1 cell, the lines before it have 3: add the missing cells`},
		{two, table.Options{Long: "g,s"},
			`in: -long "g,s": must be three columns, of features, samples and values, ` +
				`such as gene,sample,value or 1,2,3`},
		{two, table.Options{Long: "g,s,g"},
			`in: -long "g,s,g": must be three columns, of features, samples and ` +
				`values, such as gene,sample,value or 1,2,3`},
		{two, table.Options{Long: "g,s,w"},
			`in: -long "g,s,w": none of the 3 columns is called "w": give headings or ` +
				`numbers, such as gene,3-5`},
		{two, table.Options{Long: "g,s,v", Names: "1"},
			`in: -long and -names contradict each other: -long names the features, too`},
		{"#1.2\n1\t1\nName\tDescription\ta\ng\t\t1\n", table.Options{Long: "1,2,3"},
			`in: -long is for text, and this is gct`},
	} {
		fails(t, c.in, c.o, c.want)
	}
}

// TestLongMemory: names that would make too large a matrix are refused before it is made.
func TestLongMemory(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "g%d,s%d,1\n", i, i)
	}
	fails(t, b.String(), table.Options{Long: "1,2,3", Missing: true, Memory: 4 << 20},
		"in:2000: 2000 × 2000 numbers would take more than the 4 MiB of memory that reading may take: "+
			"allow more with -max-memory, if the file is what it should be")
}
