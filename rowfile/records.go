package rowfile

// This file holds tables in JSON, an array of records:
//
//	[{"host": "h1", "cpu": 0.5, "disk": 7}, {"host": "h2", "cpu": null}]
//
// A record is a row. Its key whose value is a string, the same in every record, names it; the others are
// columns, in the order in which they come first. null, and a key that a record lacks, are missing.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// ahead is how many bytes of a reader are looked at to tell records from other formats.
const ahead = 512

// hasRecords tells whether r begins like records. It returns a reader of the same content, r itself where
// it can go back.
func hasRecords(r io.Reader) (bool, io.Reader, error) {
	var head []byte
	if s, is := r.(io.Seeker); is {
		if at, err := s.Seek(0, io.SeekCurrent); err == nil {
			head = make([]byte, ahead)
			n, err := io.ReadFull(r, head)
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				err = nil
			}
			if _, back := s.Seek(at, io.SeekStart); err == nil {
				err = back
			}
			return recorded(head[:n]), r, err
		}
	}
	b := bufio.NewReaderSize(r, 1<<16)
	head, _ = b.Peek(ahead) // its error comes again
	return recorded(head), b, nil
}

func recorded(head []byte) bool {
	head, is := bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("["))
	return is && bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
}

// records is the state of the reading of records.
type records struct {
	name    string
	in      *json.Decoder
	left    int64 // bytes of memory that may be taken
	key     string
	columns map[string]int
	names   [2][]string // of rows and of columns
	cells   []recordCell
	seen    map[int]int // the last row that had a column
}

type recordCell struct {
	row, col int
	value    float64
}

// bounded reads no more than left bytes.
type bounded struct {
	io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, table.ErrMemory
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// readRecords reads the table.
func readRecords(in io.Reader, name string, o table.Options) (*File, error) {
	most := o.Memory
	if most <= 0 {
		most = 8 << 30
	}
	r := &records{name: name, in: json.NewDecoder(&bounded{in, most}), left: most,
		columns: map[string]int{}, seen: map[int]int{}}
	if err := r.all(); err != nil {
		return nil, err
	}
	rows, cols := len(r.names[0]), len(r.names[1])
	if rows == 0 || cols == 0 {
		return nil, r.fault("there are no numbers")
	}
	if int64(rows) > r.left/8/int64(cols) {
		return nil, r.memory()
	}
	d, n, turned := rows, cols, o.Transpose
	if turned {
		d, n = cols, rows
	}
	x := quantmf.NewMat(d, n)
	for k := range x.Data {
		x.Data[k] = math.NaN()
	}
	for _, c := range r.cells {
		if turned {
			c.row, c.col = c.col, c.row
		}
		x.Set(c.row, c.col, c.value)
	}
	f := &File{Rows: x, Features: r.names[0], Samples: r.names[1]}
	if r.key == "" {
		f.Features = table.Numbered(map[bool]string{false: "f", true: "s"}[turned], rows)
	}
	if turned {
		f.Features, f.Samples = f.Samples, f.Features
	}
	return f, nil
}

// all reads the array.
func (r *records) all() error {
	if _, err := r.token(); err != nil { // the [ that hasRecords saw
		return err
	}
	for r.in.More() {
		if t, err := r.token(); err != nil {
			return err
		} else if t != json.Delim('{') {
			return r.fault("here must be a record in braces")
		}
		row := len(r.names[0])
		if err := r.take(64, &r.names[0], ""); err != nil {
			return err
		}
		for r.in.More() {
			if err := r.cell(row); err != nil {
				return err
			}
		}
		if _, err := r.token(); err != nil {
			return err
		}
		if r.names[0][row] == "" && r.key != "" {
			return r.fault("the record has no " + r.key)
		}
	}
	if _, err := r.token(); err != nil {
		return err
	}
	if _, err := r.in.Token(); err != io.EOF {
		return r.fault("there is more behind the array")
	}
	return nil
}

// cell reads a key and its value.
func (r *records) cell(row int) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	key := t.(string) // the decoder allows no other
	if t, err = r.token(); err != nil {
		return err
	}
	if text, is := t.(string); is {
		if r.key == "" && row == 0 {
			r.key = key
		}
		if key != r.key || r.names[0][row] != "" {
			return r.fault("the value of " + key + " is a string, and that of one key alone names a record")
		}
		r.names[0][row] = text
		r.left -= int64(len(text))
		return nil
	}
	v, is := t.(float64)
	if t == nil {
		v = math.NaN()
	} else if !is {
		return r.fault("the value of " + key + " is no number")
	}
	col, known := r.columns[key]
	if !known {
		col = len(r.names[1])
		if err := r.take(int64(128+2*len(key)), &r.names[1], key); err != nil {
			return err
		}
		r.columns[key] = col
	}
	if last, before := r.seen[col]; before && last == row {
		return r.fault("the record has " + key + " twice")
	}
	r.seen[col] = row
	r.cells = append(r.cells, recordCell{row, col, v})
	if r.left -= 64; r.left < 0 { // 24, and while the list grows more than twice that
		return r.memory()
	}
	return nil
}

// take adds a name, which takes so much memory.
func (r *records) take(bytes int64, names *[]string, name string) error {
	*names = append(*names, name)
	if r.left -= bytes; r.left < 0 {
		return r.memory()
	}
	return nil
}

// token returns the next token of the array, which has not ended.
func (r *records) token() (json.Token, error) {
	t, err := r.in.Token()
	switch {
	case err == nil:
		return t, nil
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return nil, r.fault("the array does not end")
	case errors.Is(err, table.ErrMemory):
		return nil, r.memory()
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return nil, r.fault(err.Error())
	}
	return nil, err // of the reader
}

func (r *records) fault(problem string) error {
	return &table.Error{File: r.name, Byte: r.in.InputOffset(), Problem: problem}
}

func (r *records) memory() error {
	return &table.Error{File: r.name, Err: table.ErrMemory, Problem: "the records need too much memory"}
}
