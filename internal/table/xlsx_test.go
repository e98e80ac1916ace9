package table_test

// This file tests workbooks: of other programs, by hand where those write no such thing, damaged and forged.

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/table"
)

// Parts of a workbook made by hand.
const (
	bookXML = `<?xml version="1.0"?><x:workbook xmlns:x="m"><x:workbookPr date1904='1'/><x:sheets><x:sheet ` +
		`name="no" state="hidden" r:id="r2"/><x:sheet name="A &amp; B" r:id="r1"/></x:sheets></x:workbook>`
	relsXML   = `<Relationships><Relationship Id="r1" Target="/xl/worksheets/a.xml"/></Relationships>`
	stylesXML = `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[Red]&quot;day&quot;0.0\d"/>` +
		`<numFmt numFmtId="165" formatCode="yyyy"/></numFmts><cellStyleXfs><xf ` +
		`numFmtId="14"/></cellStyleXfs>` +
		`<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>`
	textsXML = `<sst><si><t>gene</t></si><si><r><t xml:space="preserve">s </t></r><r><t>1</t></r>` +
		`<rPh><t>spoken</t></rPh></si><si><t/></si>` +
		`<si><t><![CDATA[a<b]]>&#65;&#x42;&amp;&none;</t></si></sst>`
	sheetXML = `<worksheet><!-- <row> --><sheetData><row r="2"><c r="B2" t="s"><v>0</v></c><c ` +
		`t="s"><v>1</v></c><c r="E2" t="inlineStr"><is><t>two&#10;"2"</t></is></c></row><row r="4"><c ` +
		`r="B4" t="s"><v>3</v></c><c r="C4" s="1"><v>1.5</v></c><c r="D4" t="s"><v>2</v></c><c r="E4" ` +
		`t="b"><v>1</v></c></row><row><c r="B5" s="2"><v>0</v></c><c r="C5" ` +
		`t="str"><f>B1</f><v>2</v></c><c r="E5" t="e"><v>#N/A</v></c><c ` +
		`r="F5"/></row></sheetData></worksheet>`
)

// book is a workbook of parts.
func book(sheet, texts string) string { return styled(sheet, texts, stylesXML) }

func styled(sheet, texts, styles string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	parts := []string{"xl/workbook.xml", bookXML, "xl/_rels/workbook.xml.rels", relsXML, "xl/styles.xml",
		styles,
		"xl/sharedStrings.xml", texts, "xl/worksheets/a.xml", sheet}
	for k := 0; k < len(parts); k += 2 {
		if parts[k+1] == "" {
			continue
		}
		w, err := z.Create(parts[k])
		if err == nil {
			_, err = io.WriteString(w, parts[k+1])
		}
		if err != nil {
			panic(err)
		}
	}
	z.Close()
	return b.String()
}

func TestWorkbooks(t *testing.T) {
	t.Parallel()
	data := table.Options{Missing: true, Sheet: "a & b", Skip: 2, Below: "half", NA: []string{"ND"}}
	number := data
	number.Sheet = "2"
	byHand := anything
	byHand.Names = "2"
	comma := anything
	comma.Decimal, comma.NA = ',', []string{"2024-01-31"}
	const openpyxl, want = "openpyxl.xlsx", "2024-03-01|EGFR|TP53; s1|s2|s3; 0.1 1 0.25/NaN 0 2/1e-07 NaN NaN"
	for _, c := range []struct {
		name, in    string
		o           table.Options
		want, taken string
	}{
		{"openpyxl", file(t, openpyxl), data, want, `sheet "a & b" of an Excel workbook, features named by ` +
			`column 1 ("gene"), samples by line 3; 2 cells are TRUE or FALSE, which are 1 and 0; 1 value ` +
			`below a limit of detection, taken at half of it; -sheet takes another of its 2 sheets: "notes"`},
		{"a sheet by its number", file(t, openpyxl), number, want, `sheet "a & b" of an Excel workbook`},
		{"XlsxWriter, texts in their cells", file(t, "xlsxwriter.xlsx"), comma,
			`TP53|EGFR|sum; a|<b> & "c"; 1.5 2.25/3 4.25/4.5 NaN`, `sheet "Sheet1" of an Excel workbook, ` +
				`features named by column 1, samples by line 1; decimal commas`},
		{"by hand", book(sheetXML, textsXML), byHand,
			`a<bAB&&none;|1904-01-01; |s 1||two "2"; NaN 1.5 NaN 1/NaN 2 ` +
				`NaN NaN`, `sheet "A & B" of an Excel workbook, features named by column 2 ("gene"), ` +
				`samples by line 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := readsAs(t, c.in, c.o, c.want)
			if !strings.HasPrefix(got.Taken, c.taken) {
				t.Errorf("taken %s", got.Taken)
			}
		})
	}
}

func TestWorkbookFaults(t *testing.T) {
	t.Parallel()
	cut := func(text, from string) string { return text[:strings.Index(text, from)] }
	for _, c := range []struct {
		name, in string
		o        table.Options
		want     string
	}{
		{"no such sheet", file(t, "openpyxl.xlsx"), table.Options{Sheet: "c"},
			`in: -sheet "c": the workbook has 2 sheets: "notes", "a & b"`},
		{"one column", file(t, "openpyxl.xlsx"), anything,
			`in:1: sheet "notes": only one column was found; -sheet takes another of its 2 sheets: "a & b"`},
		{"a word", book(strings.Replace(sheetXML, "1.5", "x", 1), textsXML),
			table.Options{Names: "2", Missing: true},
			`in:4:3: feature "a<bAB&&none;", sample "s 1": sheet "A & B": "x" is not a number: write a ` +
				`number here; names belong into the first line and the first column`},
		{"another format", file(t, "sheet.xlsx"), table.Options{Format: "csv"}, "in: this is xlsx, not csv"},
		{"a sheet cut short", book(cut(sheetXML, "</sheetData>"), textsXML), anything,
			"in: the archive is damaged or cut short (unexpected EOF): copy or download the file again"},
		{"a text that is missing", book(sheetXML, cut(textsXML, "<si><t><!")), anything,
			"in: row 4 of the sheet has a cell whose text is missing: the workbook is damaged"},
		{"cells out of order", book(strings.Replace(sheetXML, "E2", "A2", 1), textsXML), anything,
			"in: row 2 of the sheet has cells out of order: the workbook is damaged"},
		{"rows out of order", book(strings.Replace(sheetXML, `r="4"`, `r="2"`, 1), textsXML), anything,
			"in: row 2 of the sheet is followed by one of another number: the workbook is damaged"},
		{"more columns than Excel has", book(strings.Replace(sheetXML, "E2", "XFE2", 1), textsXML), anything,
			"in: row 2 of the sheet has cells out of order: the workbook is damaged"},
		{"no sheet", book("", textsXML), anything,
			"in: a sheet of the workbook is not in its archive: copy or download the file again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fails(t, c.in, c.o, c.want)
		})
	}
	for name, part := range map[string]string{"ods": "content.xml", "xlsb": "xl/workbook.bin",
		"zip": "a.csv"} {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		z.Create(part)
		z.Close()
		_, err := table.Read(&b, "in", anything)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWorkbookBombs: what a workbook makes of few bytes is refused before it takes memory.
func TestWorkbookBombs(t *testing.T) { // which counts what all goroutines allocate
	const big = 8 << 20
	o := anything
	o.Memory = little
	row := `<row><c r="A1" t="s"><v>0</v></c><c r="XFD1"><v>1</v></c></row>`
	texts := "<sst><si><t>" + strings.Repeat("x", 1<<15) + "</t></si></sst>"
	for name, in := range map[string]string{
		"a long text":    book(sheetXML, "<sst><si><t>"+strings.Repeat("x", big)+"</t></si></sst>"),
		"many texts":     book(sheetXML, "<sst>"+strings.Repeat("<si><t/></si>", big/13)+"</sst>"),
		"a long tag":     book("<worksheet "+strings.Repeat("x", big)+">", textsXML),
		"many styles":    styled(sheetXML, textsXML, "<cellXfs>"+strings.Repeat("<xf/>", big/5)),
		"many wide rows": book("<sheetData>"+strings.Repeat(row, 99)+"</sheetData>", texts),
		"a text many times": book("<sheetData><row>"+strings.Repeat(`<c t="s"><v>0</v></c>`, 9999)+
			"</row></sheetData>",
			texts),
	} {
		reads(t, o, func() (*table.Table, error) {
			got, err := read(in, o)
			if !errors.Is(err, table.ErrMemory) {
				t.Errorf("%s: %v", name, err)
			}
			return got, err
		})
	}
}

// FuzzWorkbook: parts of workbooks whose checksums hold.
func FuzzWorkbook(f *testing.F) {
	f.Add(sheetXML, textsXML, stylesXML, "")
	f.Add(`<sheetData><row><c/><c t="b"><v>1</v></c></row></sheetData>`, "<sst>", "<cellXfs>", "2")
	f.Fuzz(func(t *testing.T, sheet, texts, styles, name string) {
		o := anything
		o.Memory, o.Sheet, o.Below = little, name, "half"
		comesBack(t, readsText(t, styled(sheet, texts, styles), o))
	})
}
