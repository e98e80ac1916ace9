package table_test

// This file tests that reading takes no more memory than it may, by what the process
// had resident at its most: each hostile file is read by a process of its own.

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/table"
)

// endless repeats a text for ever.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		k := copy(b[n:], e.text[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.text)
	}
	return n, nil
}

func forever(start, rest string) io.Reader {
	return io.MultiReader(strings.NewReader(start), &endless{text: rest})
}

// endlessly are files of a start and a text that goes on for ever, which ask for too much memory.
var endlessly = map[string][2]string{
	"one endless line":           {"", "x"},
	"an endless header":          {"gene", "\ta"},
	"an endless line of numbers": {"gene,a,b\ng", ",1"},
	"an open quotation mark":     {"gene,a\n\"", "g\t,;"},
	"endless lines":              {"gene,a\n", "g,1\n"},
	"endless names":              {"gene,a\n", strings.Repeat("g", 1<<20) + ",1\n"},
	"an endless comment":         {"#", "c"},
	"an endless separator":       {"sep=", ";"},
	"an endless line of gct":     {"#1.2\n", "9"},
	"an endless description":     {"#1.2\n1\t1\nName\tDescription\ta\ng\t", "d"},
	"endless names of gct":       {"#1.2\n1\t1000000\nName\tDescription", "\tabc"},
	"endless features of gct":    {"#1.2\n2000000000\t1\nName\tDescription\ta\n", "g\td\t1\n"},
	"an endless comment of mtx":  {mtxMagic + " matrix coordinate real general\n%", "c"},
	"an endless kind of mtx":     {mtxMagic + " matrix", " x"},
	"an endless array of mtx":    {mtxMagic + " matrix array real general\n3000 3000\n", "1\n"},
	"entries of mtx": {mtxMagic + " matrix coordinate real general\n1440 1430 2050000\n",
		"1 1 1\n1 2 3\n"},
	"an npy":                 {npyHead("<f8", "30000, 30000"), "\x00"},
	"an npy of single bytes": {npyHead("|u1", "3000, 3000"), "\x01"},
	"an endless archive":     {"PK\x03\x04", "z"},
}

// bounded are others that do.
var bounded = map[string]func() io.Reader{
	"a header of 3000 names of 1 MB": func() io.Reader { return named(3000) },
	"a matrix of one entry": func() io.Reader {
		return strings.NewReader(mtxMagic + " matrix coordinate real general\n30000 30000 1\n1 1 1\n")
	},
	"an npy in the order of Fortran": func() io.Reader {
		return io.LimitReader(forever(strings.Replace(npyHead("<f4", "1450, 1450"), "False", "True ", 1),
			"\x00"), 128+4*1450*1450)
	},
	"an archive of zeros": func() io.Reader {
		x := io.LimitReader(forever(npyHead("<f8", "1700, 1700"), "\x00"), 128+8*1700*1700)
		return strings.NewReader(archive(map[string]io.Reader{"x": x}))
	},
	"an archive of long names": func() io.Reader {
		return strings.NewReader(archive(map[string]io.Reader{
			"x":        strings.NewReader(npyHead("|b1", "40, 1") + strings.Repeat("\x01", 40)),
			"features": io.LimitReader(forever(npyHead("|S1000000", "40,"), "n"), 128+40e6),
		}))
	},
	"a sparse archive of nothing": func() io.Reader {
		return strings.NewReader(sparseArchive(30000, 30000, 0))
	},
	"a sparse archive of few": func() io.Reader {
		return strings.NewReader(sparseArchive(20000, 30000, 100))
	},
	"an archive of many files": func() io.Reader {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := range 31000 {
			z.CreateRaw(&zip.FileHeader{Name: strconv.Itoa(i) + strings.Repeat("n", 50)})
		}
		z.Close()
		return &b
	},
}

func npyHead(descr, shape string) string {
	var b bytes.Buffer
	table.WriteNPYHeader(&b, descr, shape)
	return b.String()
}

// named is a header of long names.
func named(count int) io.Reader {
	parts := []io.Reader{strings.NewReader("gene")}
	for range count {
		parts = append(parts, io.LimitReader(forever(",", "n"), 1<<20))
	}
	return io.MultiReader(append(parts, strings.NewReader("\n"))...)
}

func archive(arrays map[string]io.Reader) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, r := range arrays {
		w, _ := z.Create(name + ".npy")
		io.Copy(w, r)
	}
	z.Close()
	return b.String()
}

// vector is an array of one dimension, and array one of a shape.
func vector(v ...float64) io.Reader { return array(fmt.Sprintf("%d,", len(v)), v...) }

func array(shape string, v ...float64) io.Reader {
	text := []byte(npyHead("<f8", shape))
	for _, v := range v {
		text = binary.LittleEndian.AppendUint64(text, math.Float64bits(v))
	}
	return bytes.NewReader(text)
}

// scipyArchive is a sparse matrix as SciPy's save_npz writes it.
func scipyArchive(format string, d, n int, arrays map[string]io.Reader) string {
	arrays["format"] = strings.NewReader(npyHead("|S3", "") + format)
	arrays["shape"] = vector(float64(d), float64(n))
	return archive(arrays)
}

// sparseArchive is a csr matrix of count entries, all in the first row.
func sparseArchive(d, n, count int) string {
	pointers, columns := make([]float64, d+1), make([]float64, count)
	for i := range d {
		pointers[i+1] = float64(count)
	}
	for i := range columns {
		columns[i] = float64(i)
	}
	return scipyArchive("csr", d, n, map[string]io.Reader{"indptr": vector(pointers...),
		"indices": vector(columns...), "data": vector(columns...)})
}

const bound = 16 << 20

func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	if testing.Short() {
		t.Skip("starts many processes")
	}
	alone := func(name string) (peak int, said string) { return readBy(t, boundedReads+"="+name) }
	idle, _ := alone("nothing")
	for _, name := range slices.Concat(slices.Collect(maps.Keys(endlessly)),
		slices.Collect(maps.Keys(bounded))) {
		for _, packed := range []string{"", "gzip: "} {
			if packed != "" && name != "one endless line" && name != "endless lines" &&
				name != "an archive of zeros" {
				continue
			}
			peak, said := alone(packed + name)
			if peak-idle > bound*3/2 || !strings.HasPrefix(said, "ErrMemory: ") {
				t.Errorf("%s%s: %.3g of the bound, %s", packed, name, float64(peak-idle)/bound, said)
			}
			t.Logf("%.2f of the bound: %s%s: %s", float64(peak-idle)/bound, packed, name,
				strings.TrimSpace(said))
		}
	}
}

const boundedReads = "QUANTMF_TABLE_READS"

// TestMain makes the test a process that reads a file for TestMemory or TestPeak, and prints the most
// bytes that it had resident and what came of it.
func TestMain(m *testing.M) {
	said := ""
	if name, is := os.LookupEnv(boundedReads); is {
		said = readBounded(name)
	} else if what, is := os.LookupEnv(peakReads); is {
		said = readPeak(what)
	} else {
		os.Exit(m.Run())
	}
	status, _ := os.ReadFile("/proc/self/status")
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(peak, "\n")
	fmt.Printf("%s\n%s\n", strings.TrimSpace(peak), said)
}

// readBy returns what such a process prints.
func readBy(t *testing.T, environ ...string) (peak int, said string) {
	t.Helper()
	self := Must(os.Executable())(t)
	c := exec.Command(self)
	c.Env = append(os.Environ(), environ...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", environ, err, out[:min(len(out), 2000)])
	}
	if _, err := fmt.Sscanf(string(out), "%d kB", &peak); err != nil {
		t.Fatalf("%s: %s", environ, out)
	}
	_, said, _ = strings.Cut(string(out), "\n")
	return peak << 10, said
}

// readBounded reads one of the hostile files.
func readBounded(name string) (said string) {
	debug.SetMemoryLimit(bound)
	base, packed := strings.CutPrefix(name, "gzip: ")
	open := bounded[base]
	if text, is := endlessly[base]; is {
		open = func() io.Reader { return forever(text[0], text[1]) }
	}
	if open != nil {
		in := open()
		debug.FreeOSMemory() // what open held; the peak begins anew
		os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
		if packed {
			r, w := io.Pipe()
			from := in
			go func() {
				z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
				_, err := io.Copy(z, from)
				z.Close()
				w.CloseWithError(err)
			}()
			in = r
		}
		_, err := table.Read(in, "in", table.Options{Missing: true, Memory: bound})
		said = fmt.Sprint(err)
		if errors.Is(err, table.ErrMemory) {
			said = "ErrMemory: " + said
		}
	}
	return said
}

// TestPeak: of a file and through a pipe, reading has the matrix in memory once and little else. A process of
// its own reads, and collects at each hundredth by which the heap grows, so that what is resident is nearly
// what is alive; the system keeps the peak.
func TestPeak(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	if os.Getenv("QUANTMF_LONG") == "" {
		t.Skip("QUANTMF_LONG is not set: writes and reads 25 MB")
	}
	dir := t.TempDir()
	m := quantmf.NewMat(4000, 800)
	for k := range m.Data {
		m.Data[k] = float64(k*7919%100003) / 1000
	}
	rows, columns := table.Numbered("gene", m.Rows), table.Numbered("sample", m.Cols)
	matrix := 8 * len(m.Data)
	idle, _ := readBy(t, "GOGC=1", peakReads+"=")
	for _, name := range []string{"x.csv.gz", "x.gct", "x.npz", "x.tsv", "x.npy", "x.npy.gz"} {
		path := filepath.Join(dir, name)
		out := Must(os.Create(path))(t)
		OK(t, table.Write(out, name, "feature", rows, columns, m))
		out.Close()
		archive := 0 // kept whole where it comes through a pipe: what is in it stands at its end
		if info, err := os.Stat(path); err == nil && name == "x.npz" {
			archive = int(info.Size())
		}
		// Through a pipe 1.1 to 1.2 are measured: 1/64 for the numbers of a piece that are not there yet,
		// 1/16 for those that are there twice while the list becomes the matrix, and what garbage there is
		// between two collections.
		for by, bound := range map[string]int{"file": matrix * 13 / 10, "pipe": matrix*13/10 + archive} {
			// The least of up to three: where other programs hold up the collector, garbage is resident for
			// longer.
			least := math.MaxInt
			for try := 0; try < 3 && least > bound; try++ {
				peak, said := readBy(t, "GOGC=1", fmt.Sprintf("%s=%s %d %s", peakReads, by, bound, path))
				if want := fmt.Sprint(m.At(3999, 799)); strings.TrimSpace(said) != want {
					t.Errorf("%s, %s: %s, want %s", name, by, said, want)
				}
				least = min(least, peak-idle)
			}
			t.Logf("%s, %s: %.2f times the matrix", name, by, float64(least)/float64(matrix))
			if least > bound {
				t.Errorf("%s, %s: %.2f times the matrix was resident", name, by,
					float64(least)/float64(matrix))
			}
		}
	}
}

const peakReads = "QUANTMF_TABLE_PEAK"

// readPeak reads a file, itself or as a pipe, and prints its last number.
func readPeak(what string) (said string) {
	by, rest, _ := strings.Cut(what, " ")
	most, path, ok := strings.Cut(rest, " ")
	bound, _ := strconv.ParseInt(most, 10, 64)
	if !ok {
		return "nothing"
	}
	in, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	var r io.Reader = in
	if by == "pipe" {
		r = struct{ io.Reader }{in}
	}
	got, err := table.Read(r, path, table.Options{Memory: bound})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(got.X.At(got.X.Rows-1, got.X.Cols-1))
}

// TestFolderBudget: the files of a folder share a budget.
func TestFolderBudget(t *testing.T) {
	dir := fstest.MapFS{
		"matrix.mtx":   {Data: []byte(mtxMagic + " matrix coordinate integer general\n1000 1000 1\n1 1 1\n")},
		"features.tsv": {Data: bytes.Repeat([]byte("i\t"+strings.Repeat("n", 1000)+"\n"), 1000)},
		"barcodes.tsv": {Data: bytes.Repeat([]byte(strings.Repeat("b", 1000)+"\n"), 1000)},
	}
	for memory, want := range map[int64]error{12 << 20: nil, 10 << 20: table.ErrMemory,
		7 << 20: table.ErrMemory} {
		_, err := table.ReadFolder(dir, "dir", table.Options{Memory: memory})
		if !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", memory, err, want)
		}
	}
}

// TestBlankLines: the rules for names do not look for lines behind any number of blank ones.
func TestBlankLines(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	few := strings.Repeat("\n,,\n", 100000)
	got, err := read(few+"x,a,b\n"+few+"g,1,2\n", table.Options{})
	if err != nil || got.Features[0] != "g" ||
		got.Taken != `comma-separated, features named by column 1 ("x"), samples by line 200001` {
		t.Errorf("some: %+v, %v", got, err)
	}
	for _, line := range []string{",\n", "\r\n"} {
		if _, err := table.Read(forever("", line), "in", table.Options{}); err == nil ||
			err.Error() != "in: the file begins with blank lines alone: it should hold features in rows and "+
				"samples in columns" {
			t.Errorf("endless ones, %q: %v", line, err)
		}
	}
	_, err = read("g,a\n"+strings.Repeat("\n", 2*table.BlankBytes),
		table.Options{Memory: 2 * table.BlankBytes})
	if !errors.Is(err, table.ErrMemory) ||
		!strings.Contains(err.Error(), "lines of 2 numbers") {
		t.Errorf("behind a header: %v", err)
	}
}
