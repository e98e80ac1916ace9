package rowfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/rowfile"
)

const hosts = ` [ {"host": "h1", "cpu": 0.5, "disk": 7},
	{"disk": 9e0, "host": "h\u0032", "cpu": null}, {"host": "h3", "net": -1}]
`

// TestRecords: records are the table that they say, in every way, as rows or as columns.
func TestRecords(t *testing.T) {
	nan := math.NaN()
	want := [][]float64{{0.5, 7, nan}, {nan, 9, nan}, {nan, nan, -1}}
	for _, turned := range []bool{false, true} {
		for what, read := range ways(t, "hosts.json", hosts, turned) {
			f, err := read()
			if err != nil {
				t.Fatal(what, err)
			}
			x, names, columns := f.Rows.(quantmf.Mat), f.Features, f.Samples
			if turned {
				x, names, columns = x.T(), columns, names
			}
			got := make([][]float64, x.Rows)
			for i := range got {
				got[i] = x.Row(i)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || !slices.Equal(names, []string{"h1", "h2", "h3"}) ||
				!slices.Equal(columns, []string{"cpu", "disk", "net"}) {
				t.Errorf("%s, turned %v: %v of %q, %q", what, turned, got, names, columns)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	f, err := rowfile.Read(strings.NewReader(`[{"a": 1}, {"a": 2}]`), "x", rowfile.Options{})
	if err != nil || !slices.Equal(f.Features, []string{"f1", "f2"}) {
		t.Errorf("records without a name: %v, %v", f, err)
	}
	if x, err := f.Match([]string{"f2", "none"}); err != nil || x.(quantmf.Mat).At(0, 0) != 2 {
		t.Errorf("matched: %v, %v", x, err)
	}
	text := "[name]\ts1\ng1\t3\n" // no records
	if f, err := rowfile.Read(strings.NewReader(text), "x", rowfile.Options{}); err != nil ||
		f.Features[0] != "g1" {
		t.Errorf("text that begins with a bracket: %v", err)
	}
}

// TestRecordsErrors: what is no table of records is an error that says at which byte; a budget holds.
func TestRecordsErrors(t *testing.T) {
	for text, says := range map[string]string{
		`[{"a": 1}`:                      "end", // in words of encoding/json from Go 1.27 on
		`[{"a": 1}, 3]`:                  "must be a record",
		`[{"a": [1]}]`:                   "no number",
		`[{"a": true}]`:                  "no number",
		`[{"a": 1e999}]`:                 "byte",
		`[{"a": 1, "a": 2}]`:             "twice",
		`[{"h": "x", "i": "y", "a": 1}]`: "is a string",
		`[{"h": "x", "a": 1}, {"a": 1}]`: "has no h",
		`[{"h": "x"}]`:                   "no numbers",
		`[{"a": 1}] x`:                   "byte",
		`[{"a": 1}] []`:                  "more behind",
		`[{"a" 1}]`:                      "byte",
		`[{}]`:                           "no numbers",
		`[{"a": 1}, {"b": "x", "a": 2}, {"a":1}]`: "is a string",
	} {
		_, err := rowfile.Read(strings.NewReader(text), "body", rowfile.Options{})
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "body") {
			t.Errorf("%s: %v", text, err)
		}
	}
	var wide strings.Builder // a diagonal: as many columns as rows
	for i := range 2000 {
		fmt.Fprintf(&wide, `,{"k%d": 1}`, i)
	}
	for _, text := range []string{"[" + wide.String()[1:] + "]",
		`[{"` + strings.Repeat("n", 2<<20) + `": 1}]`} {
		if _, err := rowfile.Read(strings.NewReader(text), "body",
			rowfile.Options{Memory: 1 << 20}); !errors.Is(err,
			table.ErrMemory) {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	broken := io.MultiReader(strings.NewReader(`[{"a": 1},`), failing{})
	if _, err := rowfile.Read(broken, "body", rowfile.Options{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a reader that fails: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// FuzzRecords: whatever follows a bracket and a brace is a table of as many names as rows and columns, or an
// error.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(hosts))
	f.Add([]byte(`[{"a":1,"b":"x"},{"a":null,"b":"y"}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := rowfile.Read(bytes.NewReader(append([]byte("[{"), data...)), "in",
			rowfile.Options{Memory: 1 << 22, SamplesInRows: len(data)%2 == 0})
		if err != nil {
			return
		}
		if d, n := file.Rows.Dims(); d == 0 || n == 0 || d != len(file.Features) || n != len(file.Samples) {
			t.Errorf("%d × %d, %d and %d names", d, n, len(file.Features), len(file.Samples))
		}
	})
}
