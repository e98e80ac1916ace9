package main

// This file holds what commands that read a matrix have in common: the flags that say how it is read, the
// line that says what was taken for names, and the matching of its features with those of a model.

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/table"
)

// readHelp is the help of inputFlags, matchHelp that of -allow.
const (
	readHelp = `How the matrix is read
  -header auto|yes|no
                    whether the first line names the samples (default auto)
  -names COLUMN     the column that names the features, by number or heading; others
                    behind it, as in 1,3-5, are left out; none: there is no such
                    column (default: guessed from the content; of a 10x folder 2,
                    the gene names)
  -na WORD,...      more words that mean a missing value
  -sep CHARACTER    what stands between cells: tab, comma, semicolon, blank or a
                    character (default: guessed from the content)
  -transpose        samples are in rows
  -format FORMAT    the format of standard input and output, and of an output whose
                    name says none: tsv, csv, gct, mtx, npy or npz. Of two formats
                    with a comma between, the first is that of input, the second
                    that of output (default: input by its content, output tsv)
`
	matchHelp = `  -allow extra,missing
                    extra: leave out features that the model does not have;
                    missing: take features that the matrix does not have as missing
                    values (default: both are errors)
`
)

// inputFlags are the flags of how a matrix is read.
type inputFlags struct {
	table.Options
	format   [2]string // of standard input and output
	extra    bool      // -allow extra: the matrix may have features that the model does not have
	absent   bool      // -allow missing: the matrix may lack features of the model
	progress string    // the mode of newProgress
	rows     bool      // the matrix may stay sparse, or in its file
}

// register adds the flags to set; -allow only if the command has a model (matching).
func (f *inputFlags) register(set *flag.FlagSet, matching bool) {
	setting(set, "header", func(s string) (err error) {
		f.Header, err = flags.Header(s)
		return err
	})
	setting(set, "names", func(s string) error {
		if s == "" {
			return errors.New("must be a column, or none")
		}
		f.Names = s
		return nil
	})
	setting(set, "na", func(s string) error {
		f.NA = flags.Words(s)
		return nil
	})
	setting(set, "sep", func(s string) error {
		named, is := map[string]byte{"tab": '\t', `\t`: '\t', "comma": ',', "semicolon": ';', "blank": ' ',
			"space": ' '}[s]
		switch {
		case is:
			f.Sep = named
		case len(s) == 1 && s[0] < 0x80 && !strings.Contains("\"\r\n0123456789+-.eE", s):
			f.Sep = s[0]
		default:
			return errors.New("must be tab, comma, semicolon, blank, or a character that is in no number")
		}
		return nil
	})
	set.BoolVar(&f.Transpose, "transpose", false, "")
	f.registerFormat(set)
	if matching {
		setting(set, "allow", func(s string) error {
			for w := range strings.SplitSeq(s, ",") {
				switch w {
				case "extra":
					f.extra = true
				case "missing":
					f.absent = true
				default:
					return errors.New("must be extra, missing or extra,missing")
				}
			}
			return nil
		})
	}
}

// registerFormat adds -format alone, to commands that only write.
func (f *inputFlags) registerFormat(set *flag.FlagSet) {
	setting(set, "format", func(s string) error {
		in, out, two := strings.Cut(s, ",")
		if !two {
			out = in
		}
		if !slices.Contains(table.Formats, in) || !slices.Contains(table.Formats, out) {
			return flags.OneOf(table.Formats)
		}
		f.format = [2]string{in, out}
		return nil
	})
}

// settingFlag is a flag that remembers what it was set to.
type settingFlag struct {
	text string
	set  func(string) error
}

func (f *settingFlag) String() string { return f.text }

func (f *settingFlag) Get() any { return f.text }

func (f *settingFlag) Set(s string) error {
	f.text = s
	return f.set(s)
}

func setting(set *flag.FlagSet, name string, do func(string) error) {
	set.Var(&settingFlag{set: do}, name, "")
}

// place returns the name from which table.Write takes the format of an output. -format gives the format of
// standard output, and of a name without a known ending.
func (f *inputFlags) place(path string) string {
	if f.format[1] == "" {
		return path
	}
	if _, _, err := table.FormatOf(path); path == "-" || err != nil {
		return "output." + f.format[1]
	}
	return path
}

// writable reports outputs of unknown format, before anything is read.
func (f *inputFlags) writable(paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if _, _, err := table.FormatOf(f.place(path)); err != nil {
			return usageError(err.Error() + "; or give -format")
		}
	}
	return nil
}

// nameless says that the format of an output cannot hold the names of features, or of samples.
func (f *inputFlags) nameless(w io.Writer, path string, features, samples bool) error {
	format, _, err := table.FormatOf(f.place(path))
	if path == "" || err != nil || format != "npy" && format != "mtx" || !features && !samples ||
		f.progress == "none" {
		return nil
	}
	whose := "features and samples"
	if !samples {
		whose = "features"
	} else if !features {
		whose = "samples"
	}
	return warn(w, f.progress, path,
		fmt.Sprintf("%s has no names, so those of the %s are left out: npz keeps them", format, whose))
}

// warn says what may be wrong with a file, in the form of -progress.
func warn(w io.Writer, progress, path, text string) error {
	if progress == "json" {
		return json.NewEncoder(w).Encode(struct {
			File    string `json:"file"`
			Warning string `json:"warning"`
		}{path, text})
	}
	_, err := fmt.Fprintf(w, "warning: %s: %s\n", table.Shown(path), text)
	return err
}

// openedMatrix is called between the opening and the reading of every file of a matrix, for a test that
// changes the file at this moment.
var openedMatrix = func(path string) {}

// read reads a matrix and tells what was taken for names. It also returns the identity of the file, nil for
// standard input and folders.
func (f *inputFlags) read(path string, s streams, l *limits, tell *progress, missing,
	negative bool) (*table.Table, os.FileInfo, error) {
	o := f.Options
	o.Missing, o.Negative, o.Memory, o.Rows, f.progress = missing, negative, int64(l.maxMemory), f.rows,
		l.progress
	if err := tell.at("reading " + path); err != nil {
		return nil, nil, err
	}
	var t *table.Table
	var info os.FileInfo
	at, err := os.Stat(path)
	switch {
	case path == "-":
		o.Format = f.format[0]
		t, err = table.Read(s.in, "stdin", o)
	case err == nil && at.IsDir():
		t, err = table.ReadFolder(matrixFolder{os.DirFS(path), path}, path, o)
	default:
		var in io.ReadCloser
		if in, info, err = open(path, nil, "matrix"); err != nil {
			return nil, nil, err
		}
		openedMatrix(path)
		if t, err = table.Read(in, path, o); err != nil || !t.InFile() {
			in.Close()
		}
	}
	if err != nil {
		return nil, nil, err
	}
	tell.end()
	return t, info, f.tell(s.err, t)
}

// matrixFolder opens the files of a folder as open does.
type matrixFolder struct {
	fs.FS
	path string
}

func (f matrixFolder) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil || name == "." {
		return file, err
	}
	file.Close()
	path := filepath.Join(f.path, filepath.FromSlash(name))
	in, _, err := open(path, nil, "matrix")
	if err != nil {
		return nil, err
	}
	openedMatrix(path)
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
func (f *inputFlags) tell(w io.Writer, t *table.Table) error {
	warnings := t.Warnings
	if f.progress != "none" {
		warnings = append(slices.Clone(warnings), t.Remarks()...)
	}
	features, samples := t.Dims()
	if f.progress == "json" {
		return json.NewEncoder(w).Encode(readRecord{t.File, features, samples, t.Taken, warnings})
	}
	var text strings.Builder
	if f.progress != "none" {
		fmt.Fprintf(&text, "%s: %s × %s; %s\n", table.Shown(t.File), counted(features, "feature"),
			counted(samples, "sample"), t.Taken)
	}
	for _, warning := range warnings {
		fmt.Fprintf(&text, "warning: %s: %s\n", table.Shown(t.File), warning)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// fitting applies to a matrix what fit applied: -log1p, and the choice and order of features. Features are
// found by name. A feature that only the matrix or only the model has is an error, unless f allows it; if the
// model was fitted with -top, further features of the matrix are left out. Where a name stands several times,
// its first feature is the model's first of that name, and so on. Without names on either side the features
// must be the model's in its order.
func (m *model) fitting(t *table.Table, f *inputFlags, messages io.Writer) (*table.Table, error) {
	if m.Log1p {
		t.Log1p()
	}
	if !m.namedFeatures || !t.NamedFeatures {
		switch d := len(m.features); {
		case len(t.Features) > d:
			return nil, t.Error(d, -1, fmt.Sprintf("this feature is one more than the %d of the model", d))
		case len(t.Features) < d:
			return nil, t.Error(-1, -1,
				fmt.Sprintf("the matrix has %d features, the model %d: the first that is missing is %s",
					len(t.Features), d, strconv.Quote(m.features[len(t.Features)])))
		}
		return t, nil
	}
	if slices.Equal(t.Features, m.features) {
		return t, nil
	}
	rows, absent, extra := matched(m.features, t.Features)
	var problems []string
	if len(absent) > 0 {
		text := fmt.Sprintf("%d of the model's %d features are not there: %s", len(absent), len(m.features),
			firstOf(absent))
		if slices.ContainsFunc(absent[:min(len(absent), 3)],
			func(name string) bool { return slices.Contains(t.Features, name) }) {
			text += ", a name that the model has more often than the matrix"
		}
		if !f.absent {
			problems = append(problems, text)
		} else if err := f.say(messages, t, text+"; taken for missing values"); err != nil {
			return nil, err
		}
	}
	if len(extra) > 0 {
		text := fmt.Sprintf("%d of the %d features are not the model's: %s", len(extra), len(t.Features),
			firstOf(extra))
		if !f.extra && !m.Top {
			problems = append(problems, text)
		} else if !m.Top {
			if err := f.say(messages, t, text+"; left out"); err != nil {
				return nil, err
			}
		}
	}
	if len(absent) == len(m.features) {
		return nil, t.Error(-1, -1,
			fmt.Sprintf("none of the model's %d features is there: they are called %s, and those of the "+
				"matrix %s; -names says which column names them, -transpose that samples are in rows",
				len(m.features), firstOf(m.features), firstOf(t.Features)))
	}
	if len(problems) > 0 {
		var allow []string
		if len(extra) > 0 && !f.extra && !m.Top {
			allow = append(allow, "extra")
		}
		if len(absent) > 0 && !f.absent {
			allow = append(allow, "missing")
		}
		how := ": -allow " + strings.Join(allow, ",") + " goes on without"
		if len(absent) > 0 && !f.absent {
			how += ", if the model was fitted with -missing"
		}
		return nil, t.Error(-1, -1, strings.Join(problems, "; ")+how)
	}
	return t.SelectOr(rows, m.features), nil
}

// matched returns the rows in which the model's features stand in a matrix, -1 for those that it lacks; their
// names; and those of the features that the model lacks.
func matched(model, matrix []string) (rows []int, absent, extra []string) {
	places := make(map[string][]int, len(matrix))
	for i, name := range matrix {
		places[name] = append(places[name], i)
	}
	rows = make([]int, len(model))
	used := make([]bool, len(matrix))
	for i, name := range model {
		at := places[name]
		if len(at) == 0 {
			rows[i] = -1
			absent = append(absent, name)
			continue
		}
		rows[i], places[name] = at[0], at[1:]
		used[at[0]] = true
	}
	for i, name := range matrix {
		if !used[i] {
			extra = append(extra, name)
		}
	}
	return rows, absent, extra
}

func (f *inputFlags) say(w io.Writer, t *table.Table, text string) error {
	if f.progress == "none" {
		return nil
	}
	return warn(w, f.progress, t.File, text)
}

// firstOf quotes the first names of a list.
func firstOf(names []string) string {
	var quoted []string
	for _, n := range names[:min(len(names), 3)] {
		quoted = append(quoted, strconv.Quote(n))
	}
	if len(names) > 3 {
		quoted = append(quoted, "...")
	}
	return strings.Join(quoted, ", ")
}
