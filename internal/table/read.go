package table

// This file holds the choice between readers. What a file is, and how it is
// compressed, is known by its content, never by its name.

import (
	"bytes"
	"io"
	"strconv"
)

// Header says whether the first line of a text names the samples.
type Header int

// Values of Header.
const (
	HeaderAuto Header = iota // find out
	HeaderYes
	HeaderNo
)

// Options say what a matrix may hold beside finite numbers of at least 0, how its file
// is read, and how much memory that may take.
type Options struct {
	Missing  bool // missing values, which become NaN
	Negative bool

	// Memory is the most bytes that reading may take at once: lines, names, numbers and
	// archives, of what is decompressed. 0 stands for 8 GiB. A file that asks for more is
	// an *Error that wraps ErrMemory, before the memory is taken.
	Memory int64

	Transpose bool // samples are in rows

	// Full leaves out features and samples without any value, with a warning.
	Full bool

	// Rows says that a matrix which takes less memory so, or which can be read by rows from
	// its file, may stay as it is: Table.Held is what it is then, and X is empty.
	Rows bool

	// InFile says under Rows that every npy array which can be read by rows stays in its file. Else
	// those do whose numbers would take more than a quarter of Memory.
	InFile bool

	// Of text. Names is the number, from 1, or the heading of the column that names the features; the further
	// columns of a list such as gene,3-5 are left out; "none" is no such column; "" is to find out. Of a 10x
	// folder it is the column of features.tsv. Long are the three columns of features, samples and values of
	// a table that has a line for each value; "" for any other. NA are words that mean a missing value beside
	// the usual ones. Sep is the separator, ' ' for any number of blanks, 0 to find out. Decimal is what
	// decimals stand behind, '.' or ','; 0 is to find out. Skip is the number of lines before the table.
	// Below is one of Limits, "" to refuse limits of detection. Of a workbook Sheet is the name or the number
	// of the sheet, "" for the first.
	Header  Header
	Decimal byte
	Skip    int
	Below   string
	Sheet   string

	// Categories are features of text whose values are words (Table.Words), by name or AutoCategories.
	Categories []string

	Names string
	Long  string
	NA    []string
	Sep   byte

	na []float64 // the numbers among NA

	Format string // the format that the file must have, one of Formats; "" for any
}

// Formats are those that Write knows.
var Formats = []string{"tsv", "csv", "gct", "mtx", "npy", "npz"}

// formats are told apart by how they begin.
var formats = []struct {
	magic, name string
	read        func(*source) (*Table, error)
}{
	{npyMagic, "npy", readNPY},
	{mtxMagic, "mtx", readMTX},
	{"#1.2", "gct", readGCT},
	{"#1.3", "gct", readGCT},
}

// Read reads a matrix in any of the formats. A fault in the content is an [*Error];
// file is what it calls the file. The numbers are taken once, 8 bytes each, where r is an
// io.Seeker as well, which is read twice if it holds text or is compressed. Where it is none they take
// a quarter more while they become one piece, below 8 MiB as much again; an npz is kept whole, too.
func Read(r io.Reader, file string, o Options) (*Table, error) {
	s, err := newSource(r, file, o)
	if err != nil {
		return nil, err
	}
	t, err := s.read()
	if err == nil {
		err = s.finish(t, o)
	}
	if err != nil {
		return nil, err
	}
	s.doubtTurned(t)
	return t, nil
}

// finish turns a table that was read, and leaves out what is empty, where the options say so.
func (s *source) finish(t *Table, o Options) error {
	if o.Transpose {
		if err := s.transpose(t); err != nil {
			return err
		}
	}
	if o.Full && o.Missing {
		return s.withoutEmpty(t)
	}
	return nil
}

func (s *source) read() (*Table, error) {
	head, err := s.peek(16)
	if err != nil && err != io.EOF {
		return nil, s.failed(err)
	}
	if bytes.HasPrefix(head, []byte(zipMagic)) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		return readZip(s)
	}
	for _, f := range formats {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			if err := s.mustBe(f.name); err != nil {
				return nil, err
			}
			return f.read(s)
		}
	}
	if problem := s.foreign(head); problem != "" {
		return nil, s.wrong("%s", problem)
	}
	switch s.Format {
	case "", "csv":
	case "tsv":
		if s.Sep == 0 {
			s.Sep = '\t'
		}
	default:
		return nil, s.wrong("this is no %s: it does not begin like one", s.Format)
	}
	return readText(s)
}

// mustBe reports a format, of any but text, that is not the one asked for.
func (s *source) mustBe(format string) error {
	if s.Format != "" && s.Format != format {
		return s.wrong("this is %s, not %s", format, s.Format)
	}
	if s.Long != "" {
		return s.wrong("-long is for text, and this is %s", format)
	}
	return nil
}

// foreign names the kind of a file that holds no plain text, and says how it is brought here; "" for text.
func (s *source) foreign(head []byte) string {
	has := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	const save = ": save the matrix as CSV, tab-separated text, xlsx, GCT, Matrix Market, npy or npz"
	file := strconv.Quote(s.file)
	switch {
	case has("\xff\xfe"), has("\xfe\xff"):
		return "this is text in UTF-16: save it as UTF-8 (in Excel: \"CSV UTF-8\")"
	case has("\xfd7zXZ\x00"), has("\x28\xb5\x2f\xfd"):
		return "this is compressed by xz or zstd: decompress it, or compress it by gzip or bzip2"
	case has("\x89HDF\r\n\x1a\n"):
		return "this is HDF5 (h5, h5ad, loom, MATLAB 7.3)" + save +
			"; of an h5ad, in Python: import anndata; " +
			"anndata.read_h5ad(" + file + `).to_df().T.to_csv("OUT.csv.gz")`
	case has("RDX3\n"), has("RDX2\n"):
		return "this is a file of R's save" + save + "; in R: write.csv(get(load(" + file +
			`)[1]), "OUT.csv")`
	case has("X\n\x00\x00"):
		return "this is a file of R's saveRDS" + save + "; in R: write.csv(as.matrix(readRDS(" + file +
			`)), "OUT.csv")`
	case has("\xd0\xcf\x11\xe0"):
		return "this is an old Excel workbook (xls), or one with a password: save it as xlsx without, or " +
			"the sheet as CSV"
	case has("PAR1"):
		return "this is a Parquet file" + save + "; in Python: import pandas; pandas.read_parquet(" + file +
			`).to_csv("OUT.csv.gz")`
	case has("ARROW1"):
		return "this is an Arrow file" + save + "; in Python: import pandas; pandas.read_feather(" + file +
			`).to_csv("OUT.csv.gz")`
	case has("^DATABASE"), has("^DATASET"), has("^SERIES"), has("^SAMPLE"), has("^PLATFORM"):
		return "this is SOFT of GEO: take the series matrix that GEO offers of the same series"
	case bytes.IndexByte(head, 0) >= 0:
		return "this is a binary file of a kind not known here" + save
	}
	return ""
}
