package cli

// This file holds what commands that read files have in common: the flags that say how a matrix is read, the
// line that says what was taken for names, -max-memory and -progress.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/internal/table"
)

// Parts of the help of several commands.
const (
	MatrixHelp = `MATRIX is a file of tab-, comma-, semicolon- or blank-separated text, GCT, a series
		matrix of GEO, a workbook of Excel (xlsx), Matrix Market, npy or npz (SciPy's sparse matrices, too),
		plain or compressed by gzip or bzip2; or a folder of 10x with matrix.mtx, features.tsv and
		barcodes.tsv; or "-", standard input. The content tells the format. Features are in rows, samples in
		columns. A line on standard error says what was taken for names, and warnings say what may be wrong
		with that. 45% is 45, TRUE 1, FALSE 0; decimal commas are found where they are certain. Under
		-missing, fits leave out features and samples without any value. Features without names are f1, f2,
		..., samples s1, s2, ... Values must be finite; negative ones need -loss frobenius, which auto takes
		for them.`
	WriteHelp = `The ending of FILE says its format: .tsv, .txt, .tab, .csv, .gct, .mtx, .npy or .npz. A
		further .gz compresses it. "-" is standard output, tab-separated without -format.`
	ExitHelp = `Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input or model file, 4 not converged under
		-strict, 130 interrupted.`
)

// Input is how a command reads its files.
type Input struct {
	table.Options
	Rows      bool // the matrix may stay sparse, or in its file
	Log1p     bool
	Top       int    // keep as many features, 0 for all
	Extra     bool   // -allow extra: the matrix may have features that the model does not have
	Absent    bool   // -allow missing: the matrix may lack features of the model
	MaxMemory int64  // in bytes
	Progress  string // the mode of NewProgress

	format [2]string // of standard input and output
}

// NewInput has the defaults.
func NewInput() Input { return Input{MaxMemory: 8 << 30, Progress: "auto"} }

// Reading are the flags of how a matrix is read.
func (in *Input) Reading() Group {
	return Group{Heading: "How the matrix is read", Flags: []*Flag{
		Func("header", "auto|yes|no", `whether the first line names the samples (default auto)`,
			func(text string) error {
				words := []string{"auto", "yes", "no"}
				i := slices.Index(words, text)
				if i < 0 {
					return settings.OneOf(words)
				}
				in.Header = []table.Header{table.HeaderAuto, table.HeaderYes, table.HeaderNo}[i]
				return nil
			}),
		Text(&in.Names, "names", "COLUMN,...", `the column that names the features, by number or heading;
			further ones, as in gene,length or 1,3-5, are left out; none: there is no such column (default:
			guessed from the content; of a 10x folder 2, the gene names)`),
		Text(&in.Long, "long", "FEATURE,SAMPLE,VALUE", `of a table with a line for each value: the columns of
			the feature, the sample and the value, by number or heading (default: such a table is refused)`),
		List(&in.NA, "na", "WORD,...", `more words that mean a missing value, beside empty cells, NA, NaN,
			null, -, . and ?`),
		Choice(&in.Below, "below", strings.Join(table.Limits, "|"), `what a limit of detection such as <0.5
			becomes: half of it; the limit itself; or a missing value. One such as >100 becomes 100, or a
			missing value (default: such cells are refused)`),
		Func("decimal", "point|comma", `what stands before the decimals of a number (default: guessed from the
			content)`, func(text string) error {
			is := map[string]byte{"point": '.', ".": '.', "comma": ',', ",": ','}[text]
			if in.Decimal = is; is == 0 {
				return settings.OneOf([]string{"point", "comma"})
			}
			return nil
		}),
		Whole(&in.Skip, 0, "skip", "N", `leave out the first N lines, which describe the table`),
		Text(&in.Sheet, "sheet", "NAME|N", `of an Excel workbook: the sheet, by name or number (default: the
			first)`),
		Func("sep", "CHARACTER", `what stands between cells: tab, comma, semicolon, blank or a character
			(default: guessed from the content)`, in.separator),
		Switch(&in.Transpose, "transpose", `samples are in rows`),
		in.FormatFlag(),
	}}
}

func (in *Input) separator(text string) error {
	named, is := map[string]byte{"tab": '\t', `\t`: '\t', "comma": ',', "semicolon": ';', "blank": ' ',
		"space": ' '}[text]
	switch {
	case is:
		in.Sep = named
	case len(text) == 1 && text[0] < 0x80 && !strings.Contains("\"\r\n0123456789+-.eE", text):
		in.Sep = text[0]
	default:
		return errors.New("must be tab, comma, semicolon, blank, or a character that is in no number")
	}
	return nil
}

// FormatFlag is -format.
func (in *Input) FormatFlag() *Flag {
	return Aside(Func("format", "FORMAT", `the format of standard input and output, and of an output whose
		name says none: tsv, csv, gct, mtx, npy or npz. Of two formats with a comma between, the first is
		that of input, the second that of output (default: input by its content, output tsv)`,
		func(text string) error {
			from, to, two := strings.Cut(text, ",")
			if !two {
				to = from
			}
			if !slices.Contains(table.Formats, from) || !slices.Contains(table.Formats, to) {
				return settings.OneOf(table.Formats)
			}
			in.format = [2]string{from, to}
			return nil
		}))
}

// Allow is the flag of commands that match a matrix with a model.
func (in *Input) Allow() *Flag {
	return Func("allow", "extra,missing", `extra: leave out features that the model does not have; missing:
		take features that the matrix does not have as missing values (default: both are errors)`,
		func(text string) error {
			for w := range strings.SplitSeq(text, ",") {
				switch w {
				case "extra":
					in.Extra = true
				case "missing":
					in.Absent = true
				default:
					return errors.New("must be extra, missing or extra,missing")
				}
			}
			return nil
		})
}

// Changes are the flags of what is done to a matrix before it is fitted.
func (in *Input) Changes() []*Flag {
	return []*Flag{
		Switch(&in.Log1p, "log1p", `take log(1+x) of every value first (natural logarithm); no value may be
			negative`),
		Whole(&in.Top, 1, "top", "N", `keep the N features of largest standard deviation, after -log1p
			(default: all)`),
	}
}

// Limits are the flags that every command has. On what they say no result depends.
func (in *Input) Limits() Group {
	return Group{Flags: []*Flag{in.MemoryFlag(),
		Aside(Choice(&in.Progress, "progress", "auto|plain|json|none",
			`what is told on standard error: auto: one line rewritten on a terminal, elsewhere a line every
				ten seconds; plain: a line for each part of the work, up to
				ten a fit; json: an object for each, and for every epoch; none: only what was found, and
				warnings of what may be wrong in how the matrix was read (default auto)`))}}
}

// MemoryFlag is -max-memory.
func (in *Input) MemoryFlag() *Flag {
	return Aside(Size(&in.MaxMemory, "max-memory", `refuse what needs more, such as 500MB, with exit code 3
		(default 8GiB)`))
}

// Hold makes the garbage collector keep to -max-memory until the returned function is called. What is made
// while it collects comes on top of its limit.
func (in *Input) Hold() (release func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, in.MaxMemory-in.MaxMemory/16))
	return func() { debug.SetMemoryLimit(before) }
}

// Allows returns an error if need is more bytes than -max-memory allows.
func (in *Input) Allows(need float64, what, instead string) error {
	if need > float64(in.MaxMemory) {
		return &InputError{fmt.Errorf("%s needs about %s of memory, -max-memory allows %s: %s", what,
			table.Size(need), table.Size(float64(in.MaxMemory)), instead)}
	}
	return nil
}

// Place returns the name from which table.Write takes the format of an output. -format gives the format of
// standard output, and of a name without a known ending.
func (in *Input) Place(path string) string {
	if in.format[1] == "" {
		return path
	}
	if _, _, err := table.FormatOf(path); path == "-" || err != nil {
		return "output." + in.format[1]
	}
	return path
}

// Writable reports outputs of unknown format, before anything is read.
func (in *Input) Writable(paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if _, _, err := table.FormatOf(in.Place(path)); err != nil {
			return UsageError(err.Error() + "; or give -format")
		}
	}
	return nil
}

// Nameless says that the format of an output cannot hold the names of features, or of samples.
func (in *Input) Nameless(w io.Writer, path string, features, samples bool) error {
	format, _, err := table.FormatOf(in.Place(path))
	if path == "" || err != nil || format != "npy" && format != "mtx" || !features && !samples {
		return nil
	}
	whose := "features and samples"
	if !samples {
		whose = "features"
	} else if !features {
		whose = "samples"
	}
	return in.Warn(w, path,
		fmt.Sprintf("%s has no names, so those of the %s are left out: npz keeps them", format, whose))
}

// Warn says what may be wrong with a file, in the form of -progress.
func (in *Input) Warn(w io.Writer, path, text string) error {
	switch in.Progress {
	case "none":
		return nil
	case "json":
		return json.NewEncoder(w).Encode(struct {
			File    string `json:"file"`
			Warning string `json:"warning"`
		}{path, text})
	}
	_, err := fmt.Fprintf(w, "warning: %s: %s\n", table.Shown(path), text)
	return err
}

// Opened is called between the opening and the reading of every file of a matrix, for a test that changes
// the file at this moment.
var Opened = func(path string) {}

// Read reads a matrix, tells what was taken for names, and applies -log1p and -top. It also returns the
// identity of the file, nil for standard input and folders.
func (in *Input) Read(path string, s Streams, tell *Progress, missing, negative bool) (*table.Table,
	os.FileInfo, error) {
	o := in.Options
	o.Missing, o.Negative, o.Memory, o.Rows = missing, negative, in.MaxMemory, in.Rows
	if err := tell.At("reading " + path); err != nil {
		return nil, nil, err
	}
	t, info, err := in.open(path, s.In, o)
	if err != nil {
		return nil, nil, err
	}
	tell.End()
	if err = in.tell(s.Err, t); err == nil && in.Log1p {
		t.Log1p()
	}
	few := t
	if err == nil && in.Top > 0 {
		few, err = t.MostVariable(in.Top)
	}
	if err != nil {
		t.Close()
	}
	return few, info, err
}

// open opens and reads a file, a folder or standard input.
func (in *Input) open(path string, stdin io.Reader, o table.Options) (*table.Table, os.FileInfo, error) {
	if path == "-" {
		o.Format = in.format[0]
		t, err := table.Read(stdin, "stdin", o)
		return t, nil, err
	}
	if at, err := os.Stat(path); err == nil && at.IsDir() {
		t, err := table.ReadFolder(folder{os.DirFS(path), path}, path, o)
		return t, nil, err
	}
	file, info, err := Open(path, nil, "matrix")
	if err != nil {
		return nil, nil, err
	}
	Opened(path)
	t, err := table.Read(file, path, o)
	if err != nil || !t.InFile() { // a table in a file closes it itself
		file.Close()
	}
	return t, info, err
}

// folder opens the files of a folder as Open does.
type folder struct {
	fs.FS
	path string
}

func (f folder) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil || name == "." {
		return file, err
	}
	file.Close()
	path := filepath.Join(f.path, filepath.FromSlash(name))
	in, _, err := Open(path, nil, "matrix")
	if err != nil {
		return nil, err
	}
	Opened(path)
	return in.(*wholeFile), nil
}

// readRecord is the line of -progress json about a matrix that was read.
type readRecord struct {
	Read     string   `json:"read"`
	Features int      `json:"features"`
	Samples  int      `json:"samples"`
	Taken    string   `json:"taken"`
	Warnings []string `json:"warnings,omitempty"`
}

// tell says what was taken for names, what may be wrong with that, and what is odd. With -progress none it
// only says what may be wrong.
func (in *Input) tell(w io.Writer, t *table.Table) error {
	warnings := t.Warnings
	if in.Progress != "none" {
		warnings = append(slices.Clone(warnings), t.Remarks()...)
	}
	features, samples := t.Dims()
	if in.Progress == "json" {
		return json.NewEncoder(w).Encode(readRecord{t.File, features, samples, t.Taken, warnings})
	}
	var text strings.Builder
	if in.Progress != "none" {
		fmt.Fprintf(&text, "%s: %s × %s; %s\n", table.Shown(t.File), table.Counted(features, "feature"),
			table.Counted(samples, "sample"), t.Taken)
	}
	for _, warning := range warnings {
		fmt.Fprintf(&text, "warning: %s: %s\n", table.Shown(t.File), warning)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Open opens an input. It also returns the identity of the file, nil for standard input.
func Open(path string, stdin io.Reader, what string) (io.ReadCloser, os.FileInfo, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, &InputError{err}
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = errors.New(path + ": is a folder, not a " + what)
	}
	if err != nil {
		file.Close()
		return nil, nil, &InputError{err}
	}
	size := int64(-1)
	// a file that the system makes up while it is read, as in /proc, has none
	if info.Mode().IsRegular() && info.Size() > 0 {
		size = info.Size()
	}
	return &wholeFile{File: file, name: path, size: size}, info, nil
}

// Sum returns the SHA-256 of a file in hexadecimal digits, by which others can tell whether they have the
// same one; "" for standard input, folders and pipes.
func Sum(path string) (string, error) {
	if info, err := os.Stat(path); path == "-" || err != nil || !info.Mode().IsRegular() {
		return "", nil
	}
	file, _, err := Open(path, nil, "matrix")
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", &InputError{err}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ReadAll reads a file of at most a share of -max-memory, since the bytes are not all that it takes.
func (in *Input) ReadAll(path string, stdin io.Reader, what string, share int64) ([]byte, os.FileInfo,
	error) {
	file, info, err := Open(path, stdin, what)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	var data bytes.Buffer
	if of, is := file.(*wholeFile); is && of.size > 0 {
		if err := in.Allows(float64(share)*float64(of.size), path, "allow more"); err != nil {
			return nil, info, err
		}
		data.Grow(int(of.size) + bytes.MinRead) // with which ReadFrom need not grow it
	}
	most := in.MaxMemory / share
	read, err := data.ReadFrom(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case read > most:
		err = in.Allows(float64(share)*float64(read), path, "allow more")
	}
	return data.Bytes(), info, err
}

// ReadBack reads what a command has written for itself, such as a state or a blob; nil where there is none.
// What is no regular file is refused: a pipe would be waited for, and a device may have no end.
func (in *Input) ReadBack(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened, for which a pipe waits
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New(path + ": is no regular file")
	}
	if err == nil { // the bytes, and what is made of them
		err = in.Allows(2*float64(info.Size()), path, "allow more")
	}
	var data []byte
	if err == nil {
		data, err = readUpTo(path, in.MaxMemory/2)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // or removed meanwhile
		return nil, nil
	case err != nil:
		return nil, &InputError{err}
	}
	return data, nil
}

// readUpTo reads a file, which another process may cut short meanwhile.
func readUpTo(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// wholeFile reads a file. At the end it returns an error if the file has become shorter or longer meanwhile,
// because a part of a table may look like a whole table.
type wholeFile struct {
	*os.File
	name string
	size int64 // at the start; -1 if the file is no regular file
	read int64
}

func (f *wholeFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.read += int64(n)
	if f.size < 0 {
		return n, err
	}
	if f.read > f.size {
		return n, &InputError{fmt.Errorf("%s grew while it was read: wait until it is written", f.name)}
	}
	if err == io.EOF && f.read < f.size {
		return n, &InputError{fmt.Errorf("%s became shorter while it was read, by %d bytes: wait until it "+
			"is written", f.name, f.size-f.read)}
	}
	return n, err
}

// Seek goes to another place, for readers that read a file twice.
func (f *wholeFile) Seek(offset int64, whence int) (int64, error) {
	at, err := f.File.Seek(offset, whence)
	if err == nil {
		f.read = at
	}
	return at, err
}
