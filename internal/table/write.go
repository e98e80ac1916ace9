package table

// This file holds the writer. The reader gets the same bits back from its files, and the same names if the
// format has names.

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// FormatOf returns the format, one of Formats, by the ending of a file's name, and whether the file is
// compressed by gzip. An unknown ending is an error. "-", standard output, is tsv.
func FormatOf(file string) (format string, zipped bool, err error) {
	if file == "-" {
		return "tsv", false, nil
	}
	plain, zipped := strings.CutSuffix(strings.ToLower(file), ".gz")
	ending := plain[strings.LastIndexByte(plain, '.')+1:]
	switch {
	case ending == "txt" || ending == "tab":
		return "tsv", zipped, nil
	case len(ending) < len(plain) && slices.Contains(Formats, ending):
		return ending, zipped, nil
	case strings.HasSuffix(plain, ".bz2"):
		return "", false, errors.New(quote(file) + ": bzip2 can be read and not written: write .gz")
	}
	return "", false, errors.New(quote(file) +
		": the end of the name must say the format: .tsv, .txt, .tab, .csv, .gct, .mtx, .npy or .npz, with " +
		".gz behind it compressed")
}

// Write writes m with its names in the format of the ending of the file's name (FormatOf). In text corner
// stands above the names of the rows, and a name that could not be read back otherwise is put in quotation
// marks. Matrix Market and npy have no names.
func Write(w io.Writer, file, corner string, rows, columns []string, m quantmf.Mat) error {
	return WriteWords(w, file, corner, rows, columns, m, nil)
}

// WriteWords is Write of a matrix whose rows may be of words, of which it has the indices (Table.Words). Only
// text can hold them.
func WriteWords(w io.Writer, file, corner string, rows, columns []string, m quantmf.Mat,
	words [][]string) error {
	format, zipped, err := FormatOf(file)
	if err != nil {
		return err
	}
	var z *gzip.Writer
	if zipped {
		z = gzip.NewWriter(w)
		w = z
	}
	out := bufio.NewWriter(w)
	switch format {
	case "npy":
		writeNPY(out, m)
	case "npz":
		err = writeNPZ(out, rows, columns, m)
	case "mtx":
		writeMTX(out, m)
	case "gct":
		if err = inOneCell(rows, columns, "\x00\t\r\n"); err == nil {
			writeGCT(out, rows, columns, m)
		}
	default:
		err = writeText(out, format == "csv", corner, rows, columns, m, words)
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil && zipped {
		err = z.Close()
	}
	return err
}

// WriteTSV writes what Write writes to a file that ends in .tsv. A program that calls it alone has no writer
// of another format in it.
func WriteTSV(w io.Writer, corner string, rows, columns []string, m quantmf.Mat) error {
	out := bufio.NewWriter(w)
	if err := writeText(out, false, corner, rows, columns, m, nil); err != nil {
		return err
	}
	return out.Flush()
}

// inOneCell returns an error for a name that text cannot hold. A NUL among the first bytes would make a file
// look binary to readers, this package among them.
func inOneCell(rows, columns []string, never string) error {
	for _, names := range [][]string{rows, columns} {
		for _, n := range names {
			if strings.ContainsAny(n, never) {
				return errors.New("the name " + strconv.Quote(n) +
					" cannot be written as text: choose npz, which can hold it")
			}
		}
	}
	return nil
}

func writeText(out *bufio.Writer, commas bool, corner string, rows, columns []string, m quantmf.Mat,
	words [][]string) error {
	if err := inOneCell(rows, columns, "\x00\r\n"); err != nil {
		return err
	}
	sep, special := byte('\t'), "\"\t"
	if commas {
		sep, special = ',', "\",;\t"
	}
	var line []byte
	name := func(s string) {
		if strings.ContainsAny(s, special) {
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
			switch line = append(line, sep); {
			case words == nil || words[i] == nil:
				line = strconv.AppendFloat(line, v, 'g', -1, 64)
			case v == v:
				name(words[i][int(v)])
			}
		}
		out.Write(append(line, '\n'))
	}
	return nil
}
