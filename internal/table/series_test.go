package table_test

// This file tests series matrices of GEO.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/table"
)

// The lines around the table of a series matrix.
const (
	seriesBegin = "!series_matrix_table_begin"
	seriesEnd   = "!series_matrix_table_end"
)

// seriesOf returns a series matrix as GEO writes it, with many samples described and two in the table.
func seriesOf(rows string) string {
	titles := strings.Repeat("\t\"a title; with, all\"", 300)
	return "!Series_title\t\"Cells of \"two\" " +
		"kinds\"\n!Series_summary\t\"first\"\n!Series_summary\t\"\"\n!Series_sample_id\t\"GSM1 GSM2 \"\n\n" +
		"!Sample_title" + titles +
		"\n!Sample_description\t\t\"only of the second\"\n!Sample_data_row_count\t\"3\"\t\"3\"\n" +
		seriesBegin + "\n" + rows
}

const seriesRows = "\"ID_REF\"\t\"GSM1\"\t\"GSM2\"\n\"1007_s_at\"\t7.5\t-6.25\n\"1053_at\"\t\t1e-3\n" +
	"\"117_at\"\tnull\t3\n" + seriesEnd + "\n"

func TestReadSeries(t *testing.T) {
	in := seriesOf(seriesRows)
	for name, in := range map[string]string{
		"of GEO": in, "of Windows": strings.ReplaceAll(in, "\n", "\r\n"),
		"without a last line end": strings.TrimSuffix(in, "\n"),
		"blank lines behind":      in + "\n\n",
		"of a spreadsheet": strings.NewReplacer(seriesBegin, seriesBegin+"\t\t", seriesEnd,
			"\""+seriesEnd+"\"\t\t").Replace(in),
		"from its samples on": in[strings.Index(in, "!Sample_title"):],
		"the table alone":     in[strings.Index(in, seriesBegin):], "behind a blank line": "\n" + in,
		"as CSV": seriesBegin + ",,\n" + strings.ReplaceAll(seriesRows, "\t", ","),
	} {
		t.Run(name, func(t *testing.T) {
			readsAs(t, in, anything, "1007_s_at|1053_at|117_at; GSM1|GSM2; 7.5 -6.25/NaN 0.001/NaN 3")
		})
	}
	got, err := read(in, anything)
	if want := `a series matrix of GEO, tab-separated, features named by column 1 ("ID_REF"), samples by ` +
		`line 10`; err != nil || got.Taken != want || got.Warnings != nil {
		t.Errorf("%v, %q, %q", err, got.Taken, got.Warnings)
	}
	if e := got.Error(1, 1, "odd").Error(); e != `in:12:3: feature "1053_at", sample "GSM2": odd` {
		t.Error(e)
	}
	// More rows than the rules for names look at.
	long := seriesOf("\"ID_REF\"\t\"GSM1\"\t\"GSM2\"\n" + strings.Repeat("1\t2\t3\n", 3*table.HeadLines) +
		seriesEnd + "\n")
	if got, err := read(long, anything); err != nil ||
		got.X.Rows != 3*table.HeadLines {
		t.Error(err)
	}
	_, err = read(long[:len(long)-2], anything)
	if want := fmt.Sprintf("in:%d: the file ends here, and a series matrix of GEO ends with the line %s: "+
		"copy or download it again", 11+3*table.HeadLines, seriesEnd); err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestSeriesFaults(t *testing.T) {
	in := seriesOf(seriesRows)
	allFail(t, anything, []faulty{
		{"no table", in[:strings.Index(in, seriesBegin)],
			"in:8: this is a series matrix of GEO and ends before its table, which begins with the line " +
				"!series_matrix_table_begin: copy or download it again"},
		{"no rows", seriesOf("\"ID_REF\"\t\"GSM1\"\t\"GSM2\"\n" + seriesEnd + "\n"),
			"in:11: the table of this series matrix has no rows: GEO has the numbers of such series, as of " +
				"sequencing, in supplementary files"},
		{"nothing", seriesOf(seriesEnd + "\n"),
			"in:9: the table of this series matrix has no rows: GEO has the numbers of such series, as of " +
				"sequencing, in supplementary files"},
		{"two tables", in + in, "in:15: there are more lines behind !series_matrix_table_end, with which a " +
			"series matrix ends"},
		{"a short row", strings.Replace(in, "\t1e-3", "", 1),
			`in:12:3: feature "1053_at", sample "GSM2": this line has 2 cells, the lines before it have 3: ` +
				`add the missing cells`},
		{"SOFT", "^DATABASE = GeoMiame\n",
			"in: this is SOFT of GEO: take the series matrix that GEO offers of the same series"},
	})
	// Wherever a file is cut, this is said.
	in = in[strings.Index(in, "!Sample_data"):]
	for i := len("!Sample_"); i < len(in)-1; i++ {
		_, err := read(in[:i], anything)
		var fault *table.Error
		if !errors.As(err, &fault) || fault.Line == 0 ||
			!strings.HasSuffix(fault.Problem, ": copy or download it again") {
			t.Fatalf("cut at %d of %d: %v", i, len(in), err)
		}
	}
	packed := gzipped(in)
	for _, i := range []int{len(packed) - 1, len(packed) - 8, len(packed) / 2} {
		if _, err := read(packed[:i], anything); err == nil {
			t.Errorf("compressed and cut at %d of %d: read", i, len(packed))
		}
	}
}
