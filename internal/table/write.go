package table

// This file holds the writer: what it writes, the reader reads back to the same
// names and bits, as far as the format has names.

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// Write writes m with its names in the format that the end of the file's name
// says: .csv, .gct, .mtx, .npy, .npz, and tab-separated text otherwise; compressed
// if .gz follows. Corner stands above the names of the rows in text. A name is put
// in quotation marks where it could not be read back without. Matrix Market and
// npy have no names.
func Write(w io.Writer, file, corner string, rows, columns []string, m quantmf.Mat) error {
	plain, zipped := strings.CutSuffix(strings.ToLower(file), ".gz")
	var z *gzip.Writer
	if zipped {
		z = gzip.NewWriter(w)
		w = z
	}
	out := bufio.NewWriter(w)
	var err error
	switch {
	case strings.HasSuffix(plain, ".npy"):
		writeNPY(out, m)
	case strings.HasSuffix(plain, ".npz"):
		err = writeNPZ(out, rows, columns, m)
	case strings.HasSuffix(plain, ".mtx"):
		writeMTX(out, m)
	case strings.HasSuffix(plain, ".gct"):
		if err = inOneCell(rows, columns, "\t\r\n"); err == nil {
			writeGCT(out, rows, columns, m)
		}
	default:
		if err = inOneCell(rows, columns, "\r\n"); err == nil {
			writeText(out, strings.HasSuffix(plain, ".csv"), corner, rows, columns, m)
		}
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil && zipped {
		err = z.Close()
	}
	return err
}

// inOneCell reports a name that text cannot hold.
func inOneCell(rows, columns []string, never string) error {
	for _, names := range [][]string{rows, columns} {
		for _, n := range names {
			if strings.ContainsAny(n, never) {
				return errors.New("the name " + strconv.Quote(n) + " cannot be written as text: choose npz, which can hold it")
			}
		}
	}
	return nil
}

func writeText(out *bufio.Writer, commas bool, corner string, rows, columns []string, m quantmf.Mat) {
	sep, quoted := byte('\t'), func(name string) bool {
		return strings.ContainsAny(name, "\"\t")
	}
	if commas {
		sep, quoted = ',', func(name string) bool { return strings.ContainsAny(name, "\",;\t") }
	}
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
}
