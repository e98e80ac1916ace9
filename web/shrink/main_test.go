package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// linked is testdata/program.go as Go links it for GOOS=js.
var linked = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "shrink")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "program.wasm")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, "testdata/program.go")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(file)
})

// built is testdata/program.go as Go links it for GOOS=js, and how to run a module.
func built(t *testing.T) (module []byte, run func(module []byte) string) {
	t.Helper()
	if testing.Short() {
		t.Skip("links a program")
	}
	module, err := linked()
	if err != nil {
		t.Fatal(err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	execute := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "go_js_wasm_exec")
	file := filepath.Join(t.TempDir(), "program.wasm")
	return bytes.Clone(module), func(module []byte) string {
		if err := os.WriteFile(file, module, 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(execute, file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
}

// TestShrink: a program that collects garbage, grows stacks, switches between goroutines, recovers from
// panics and asks for its callers does what it did, and has a third less to download.
func TestShrink(t *testing.T) {
	module, run := built(t)
	small, err := shrink(bytes.Clone(module))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := shrink(bytes.Clone(small)); err != nil || !bytes.Equal(again, small) {
		t.Errorf("again: %v", err)
	}
	if packed(t, small) > packed(t, module)*68/100 {
		t.Errorf("%d bytes became %d", packed(t, module), packed(t, small))
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node: the program not run")
	}
	before, after := run(module), run(small)
	// Names of functions stay; lines go.
	want := strings.ReplaceAll(before, "program.go:25", "?:0")
	if after != want || !strings.Contains(after, "main.deep ?:0") || !strings.Contains(after, "10 2\n") {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func packed(t *testing.T, b []byte) int {
	t.Helper()
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	z.Write(b)
	z.Close()
	return out.Len()
}

// TestSegments: the memory stays the same, whatever lies in it and how it was cut.
func TestSegments(t *testing.T) {
	for _, memory := range [][]byte{
		nil, {1}, {0, 0, 1}, bytes.Repeat([]byte{7}, 200),
		append(append(make([]byte, 100), 5), append(make([]byte, longRun), 6)...),
		append(append(make([]byte, 70000), 5), append(make([]byte, longRun+1), 6, 0, 7)...),
	} {
		section := segments(memory)
		got, err := initial(section)
		if err != nil || !bytes.Equal(got, memory) {
			t.Errorf("%d bytes became %d, %v", len(memory), len(got), err)
		}
		for cut := range section {
			if _, err := initial(section[:cut]); err == nil {
				t.Errorf("%d bytes of a section of %d: no error", cut, len(section))
			}
		}
	}
}

func TestSigned(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 1 << 20, 1<<31 - 1, -1 << 31, 1 << 40, 1<<63 - 1,
		-1 << 63} {
		b := appendSigned(nil, v)
		if got, n := signed(append(b, 9)); got != v || n != len(b) {
			t.Errorf("%d: %d, %d of %d bytes", v, got, n, len(b))
		}
	}
}

// TestRefused: what is laid out otherwise.
func TestRefused(t *testing.T) {
	module, _ := built(t)
	at := bytes.Index(module, []byte(layout))
	for what, change := range map[string]func(b []byte){
		"another layout":     func(b []byte) { b[at] = 0xf0 },
		"too many functions": func(b []byte) { binary.LittleEndian.PutUint64(b[at+headFuncs:], 1<<40) },
	} {
		b := bytes.Clone(module)
		change(b)
		if _, err := shrink(b); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	// The file of such a module stays as it was, and one that is none is an error.
	file := filepath.Join(t.TempDir(), "app.wasm")
	for _, c := range []struct {
		content string
		fails   bool
	}{{string(magic), false}, {string(magic) + "\x0a\x7f", false}, {"text", true}} {
		if err := os.WriteFile(file, []byte(c.content), 0o666); err != nil {
			t.Fatal(err)
		}
		err := rewrite(file)
		if now, _ := os.ReadFile(file); (err != nil) != c.fails || string(now) != c.content {
			t.Errorf("%q: %q, %v", c.content, now, err)
		}
	}
	// Trees that lie elsewhere.
	memory := memoryOf(t, module)
	head := bytes.Index(memory, []byte(layout))
	described := bytes.Index(memory,
		binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(head)),
			uint64(head)+binary.LittleEndian.Uint64(memory[head+headNames:])))
	clear(memory[described+8*moduleRest : described+8*moduleSize])
	if err := clearLines(memory); err == nil {
		t.Error("trees elsewhere: no error")
	}
	for name, want := range map[string]func(memory []byte, record int){
		"another entry": func(m []byte, r int) { m[r]++ },
		"many tables":   func(m []byte, r int) { m[r+recordTables] = mostTables + 1 },
		"a table that is none": func(m []byte,
			r int) {
			binary.LittleEndian.PutUint32(m[r+recordStacks:], 1<<30)
		},
	} {
		memory := memoryOf(t, module)
		if err := clearLines(memory); err != nil {
			t.Fatal(err)
		}
		head := bytes.Index(memory, []byte(layout))
		records := head + int(binary.LittleEndian.Uint64(memory[head+headRecords:]))
		want(memory, records+int(binary.LittleEndian.Uint32(memory[records+8*3+4:])))
		if err := clearLines(memory); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// functionAt is what the runtime reads of a function: numbers of its record, tables and other data, none for
// those that it has not.
func functionAt(list []byte, i int) (numbers [recordSize / 4]uint32, tables, others [mostTables]uint32) {
	r := list[binary.LittleEndian.Uint32(list[8*i+4:]):]
	for k := range numbers {
		numbers[k] = binary.LittleEndian.Uint32(r[4*k:])
	}
	count := copy(tables[:], make([]uint32, numbers[recordTables/4]))
	numbers[recordTables/4], numbers[recordOthers/4] = 0, numbers[recordOthers/4]&(1<<24-1)
	for k := range tables[:count] {
		tables[k] = binary.LittleEndian.Uint32(r[recordSize+4*k:])
	}
	for k := range others {
		others[k] = none
		if k < int(r[recordOthers]) {
			others[k] = binary.LittleEndian.Uint32(r[recordSize+4*(count+k):])
		}
	}
	return numbers, tables, others
}

// TestRecords: of each function there is what was there, but for what is cleared, and a second time
// changes nothing.
func TestRecords(t *testing.T) {
	module, _ := built(t)
	before, after := memoryOf(t, module), memoryOf(t, module)
	if err := clearLines(after); err != nil {
		t.Fatal(err)
	}
	head := bytes.Index(before, []byte(layout))
	list := head + int(binary.LittleEndian.Uint64(before[head+headRecords:]))
	funcs := int(binary.LittleEndian.Uint64(before[head+headFuncs:]))
	for i := range funcs {
		numbers, tables, others := functionAt(before[list:], i)
		got, gotTables, gotOthers := functionAt(after[list:], i)
		for _, f := range []int{recordFile, recordLine, recordUnit, recordStart} {
			numbers[f/4] = 0
		}
		tables[tableStops], tables[tableInlined] = 0, 0
		others[dataTree], others[dataLayout], others[dataAlive] = none, none, none
		if got != numbers || gotTables != tables || gotOthers != others {
			t.Fatalf("function %d: %v %v %v, want %v %v %v", i, got, gotTables, gotOthers, numbers, tables,
				others)
		}
	}
	again := bytes.Clone(after)
	if err := clearLines(again); err != nil || !bytes.Equal(again, after) {
		t.Errorf("again: other memory, %v", err)
	}
}

// memoryOf is the initial memory of a module.
func memoryOf(t *testing.T, module []byte) []byte {
	t.Helper()
	_, data, _, err := sectionsOf(module)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := initial(data.content)
	if err != nil {
		t.Fatal(err)
	}
	return memory
}
