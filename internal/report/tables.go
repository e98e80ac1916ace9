package report

// This file holds the tables that a page carries with it, as links to data.

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"math"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// budget is the most bytes of a page, and plain those of a table that is not compressed.
const (
	budget = 2_000_000
	plain  = 100_000
)

// tables writes links to the factors and to what is known of each feature, as far as they fit.
func (d *document) tables(f *Fit, uv quantmf.Mat) {
	components := make([]string, f.V.Rows)
	for c := range components {
		components[c] = name(c)
	}
	curves, drawn := f.curveTable(uv)
	known, says := []string{"explained", "left", "component", "share"},
		"of each feature what is explained and left, the component with the largest share in it, and "+
			"that share"
	if len(f.Bend) > 0 {
		known, says = append(known, "bend"), says+"; the bend of its curve"
	}
	d.WriteString("<ul>\n")
	for _, t := range []struct {
		file, says, corner string
		rows, columns      []string
		m                  quantmf.Mat
		digits             int
	}{
		{"V.tsv", "components × samples", "component", components, f.Samples, f.V, 5},
		{"U.tsv", "features × components", "feature", f.Features, components, f.U, 5},
		{"curves.tsv", "of each feature the lowest and the highest mixture, but for far samples, and its " +
			"curve at seven equal steps from the one to the other", "feature", f.Features, curves, drawn, 4},
		{"features.tsv", says, "feature", f.Features, known, f.featureTable(), 4},
	} {
		if len(t.columns) == 0 {
			continue
		}
		d.WriteString("<li>")
		if err := d.link(t.file, t.corner, t.rows, t.columns, t.m, t.digits); err != nil {
			d.add("%s is not in this page: %s", t.file, err.Error())
		}
		d.add(": %s</li>\n", t.says)
	}
	d.WriteString("</ul>\n")
}

// errTooLarge says that a table does not fit.
var errTooLarge = errors.New("it would be too large")

// link writes a table as a link. Its numbers have so many digits, whole ones all of theirs: they may be
// counts.
func (d *document) link(file, corner string, rows, columns []string, m quantmf.Mat, digits int) error {
	const tail = 2_000 // what follows the tables
	room := (budget - tail - d.Len()) / 4 * 3
	cells := m.Rows * m.Cols
	if cells > room { // a number takes more than a byte, compressed or not
		return errTooLarge
	}
	rounded := quantmf.NewMat(m.Rows, m.Cols)
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
				v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
			}
			rounded.Set(i, j, v)
		}
	}
	var b bytes.Buffer
	if err := table.WriteTSV(&b, corner, rows, columns, rounded); err != nil {
		return err
	}
	kind := "text/tab-separated-values"
	if b.Len() > plain {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(b.Bytes()) // a buffer takes everything
		z.Close()
		b, file, kind = packed, file+".gz", "application/gzip"
	}
	if b.Len() > room {
		return errTooLarge
	}
	d.add(`<a download="%s" href="data:%s;base64,%s">%s</a>`, file, kind,
		markup(base64.StdEncoding.EncodeToString(b.Bytes())), file)
	return nil
}

// featureTable is what is known of each feature.
func (f *Fit) featureTable() quantmf.Mat {
	m := quantmf.NewMat(f.X.Rows, 4+min(len(f.Bend), 1))
	for i := range m.Rows {
		c := account.Largest(f.Shares.Row(i), 1)[0]
		row := append(m.Row(i)[:0], f.Goodness[i].Explained, f.Goodness[i].Divergence, float64(c+1),
			f.Shares.At(i, c))
		if len(f.Bend) > 0 {
			m.Set(i, len(row), f.Bend[i])
		}
	}
	return m
}

// curveTable is the curve of each feature, with what its columns are; nil where there is none.
func (f *Fit) curveTable(uv quantmf.Mat) (columns []string, m quantmf.Mat) {
	const steps = 6
	if !f.mapped() {
		return nil, m
	}
	columns = []string{"from", "to"}
	for s := range steps + 1 {
		columns = append(columns, "t"+strconv.Itoa(s))
	}
	m = quantmf.NewMat(f.X.Rows, len(columns))
	for i := range m.Rows {
		from, to := account.Span(uv.Row(i))
		row := append(m.Row(i)[:0], from, to)
		for s := range steps + 1 {
			row = append(row, f.Curves.At(i, s*account.Steps/steps))
		}
	}
	return columns, m
}
