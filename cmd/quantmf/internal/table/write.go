package table

// This file holds the writer: what it writes, the reader reads back to the same
// names and bits.

import (
	"bufio"
	"compress/gzip"
	"io"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// Write writes m with its names: comma-separated for a file that ends in .csv
// and tab-separated otherwise, compressed if .gz follows. Corner stands above
// the names of the rows. A name is put in quotation marks where it could not be
// read back without.
func Write(w io.Writer, file, corner string, rows, columns []string, m quantmf.Mat) error {
	plain, zipped := strings.CutSuffix(strings.ToLower(file), ".gz")
	sep, quoted := byte('\t'), func(name string) bool {
		return strings.ContainsAny(name, "\"\t")
	}
	if strings.HasSuffix(plain, ".csv") {
		sep, quoted = ',', func(name string) bool { return strings.ContainsAny(name, "\",;\t") }
	}
	var z *gzip.Writer
	if zipped {
		z = gzip.NewWriter(w)
		w = z
	}

	out := bufio.NewWriter(w)
	var line []byte
	name := func(s string) {
		if quoted(s) {
			s = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
		line = append(line, s...)
	}
	name(corner)
	for _, c := range columns {
		line = append(line, sep)
		name(c)
	}
	out.Write(append(line, '\n'))
	for i, r := range rows {
		line = line[:0]
		name(r)
		for _, v := range m.Row(i) {
			line = append(line, sep)
			line = strconv.AppendFloat(line, v, 'g', -1, 64)
		}
		out.Write(append(line, '\n'))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if zipped {
		return z.Close()
	}
	return nil
}
