package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// sectionsOf are those of a module.
func sectionsOf(t *testing.T, module []byte) (all []section) {
	for rest := module[len(magic):]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			t.Fatal("no section")
		}
		all = append(all, section{rest[0], rest[1+n : 1+n+int(size)]})
		rest = rest[1+n+int(size):]
	}
	return all
}

// told is what a module says of its functions: the place of each in the table, and what is there: its type
// and its code, in which a call of a function with a place is that place and that type, however it is called.
func told(t *testing.T, module []byte) map[int]string {
	var imports, functions int
	var types []uint64
	var bodies [][]byte
	place := map[int]int{} // of functions, those that are imported counted
	for _, s := range sectionsOf(t, module) {
		at := 0
		number := func() int {
			v, n := binary.Uvarint(s.content[at:])
			at += n
			return int(v)
		}
		switch count := number(); s.id {
		case importSection:
			for range count {
				for range 2 {
					size := number()
					at += size
				}
				at++
				switch s.content[at-1] {
				case 0:
					number()
					imports++
				case 1, 2:
					at += 1 - int(s.content[at-1]-1) // the type of a table
					if s.content[at] > 0 {
						t.Fatal("a limit")
					}
					at++
					number()
				case 3:
					at += 2
				}
			}
			if at != len(s.content) {
				t.Fatal("imports")
			}
		case functionSection:
			functions = count
			for range count {
				types = append(types, uint64(number()))
			}
		case elementSection:
			for range count {
				at += 2
				from, n := signed(s.content[at:])
				at += n + 1
				for i := range number() {
					place[number()] = int(from) + i
				}
			}
		case codeSection:
			var err error
			if bodies, err = bodiesOf(s.content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(bodies) != functions {
		t.Fatalf("%d functions, code of %d", functions, len(bodies))
	}
	all := map[int]string{}
	for f, body := range bodies {
		if _, ok := place[imports+f]; !ok {
			continue // those that a module starts with
		}
		locals, code, err := parsed(body)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		fmt.Fprintf(&text, "type %d, locals %x;", types[f], locals)
		for at := 0; at < len(code); at++ {
			i := code[at]
			switch {
			case i.op == opCall && int(i.number) < imports:
				fmt.Fprintf(&text, "import %d;", i.number)
			case i.op == opCall:
				fmt.Fprintf(&text, "call %d of %d;", place[int(i.number)], types[int(i.number)-imports])
			case i.op == opConst32 && at+1 < len(code) && code[at+1].op == opCallTable:
				fmt.Fprintf(&text, "call %d of %d;", i.number, code[at+1].rest[0])
				at++
			default:
				fmt.Fprintf(&text, "%x;", i.append(nil))
			}
		}
		all[place[imports+f]] = text.String()
	}
	return all
}

var apart = []string{"main.both", "main.deep", "main.digits", "main.recovered", "main.(*tree).",
	"main.main.func1"}

// TestSplit: both modules together have every function where it was, and every call is one of the function
// that it was; and the program does what it did.
func TestSplit(t *testing.T) {
	module, run := built(t)
	small, _, err := lean(bytes.Clone(module), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second, err := lean(bytes.Clone(module), apart)
	if err != nil {
		t.Fatal(err)
	}
	whole, parts := told(t, small), [2]map[int]string{told(t, first), told(t, second)}
	if len(parts[0])+len(parts[1]) != len(whole) || len(parts[1]) < len(apart) {
		t.Fatalf("%d functions became %d and %d", len(whole), len(parts[0]), len(parts[1]))
	}
	for place, want := range whole {
		got, is := parts[0][place]
		if !is {
			got = parts[1][place]
		}
		if got != want {
			t.Fatalf("place %d:\n%s, want\n%s", place, got, want)
		}
	}
	if again, more, err := lean(bytes.Clone(module), apart); err != nil || !bytes.Equal(again, first) ||
		!bytes.Equal(more, second) {
		t.Errorf("again: other modules, %v", err)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node: the program not run")
	}
	folder := t.TempDir()
	runBoth := func(first, second []byte) (string, error) {
		names := []string{filepath.Join(folder, "first.wasm"), filepath.Join(folder, "second.wasm")}
		for i, b := range [][]byte{first, second} {
			if err := os.WriteFile(names[i], b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command("node", "--stack-size=984", "testdata/run.mjs",
			filepath.Join(runtime.GOROOT(), "lib", "wasm"), names[0], names[1]).CombinedOutput()
		return string(out), err
	}
	if got, err := runBoth(first, second); err != nil || got != run(small) {
		t.Errorf("%v: %s", err, got)
	}
	// The second of another division.
	_, other, err := lean(bytes.Clone(module), apart[1:])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := runBoth(first, other); err == nil || !strings.Contains(got, "LinkError") {
		t.Errorf("the second of another: %v: %s", err, got)
	}
}

// TestSecond: the second module has the functions that are named and what they alone come to, and nothing
// that runs at the beginning, that a value in data is, or that an interface finds.
func TestSecond(t *testing.T) {
	module, _ := built(t)
	p, err := programOf(sectionsOf(t, module), memoryOf(t, module))
	if err != nil {
		t.Fatal(err)
	}
	in := func(later ...string) (names []string) {
		second, err := p.second(memoryOf(t, module), later)
		if err != nil {
			t.Fatal(err)
		}
		for f, is := range second {
			if is {
				names = append(names, p.names[f])
			}
		}
		slices.Sort(names)
		return names
	}
	if got, want := in("main.deep"),
		[]string{"main.deep", "main.digits", "runtime.Caller", "runtime.FuncForPC", "runtime.encoderune",
			"runtime.intstring"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := in("main.recovered"); slices.Contains(got, "main.word.Len") ||
		slices.Contains(got, "main.(*word).Len") || !slices.Contains(got, "main.recovered.func1") {
		t.Errorf("%q", got)
	}
	if got := in("main.both"); !reflect.DeepEqual(got, []string{"main.both"}) {
		t.Errorf("%q: an interface finds Twice", got)
	}
	if got := in("main.named"); !reflect.DeepEqual(got, []string{"main.named"}) {
		t.Errorf("%q: data hold seven", got)
	}
	for _, name := range in("runtime.", "main.") {
		if initialFunction(name) {
			t.Errorf("%s goes", name)
		}
	}
	if _, err := p.second(memoryOf(t, module), []string{"main.deep", "main.nobody"}); err == nil ||
		!strings.Contains(err.Error(), "main.nobody") {
		t.Errorf("a name of nobody: %v", err)
	}
}

// TestSecondOfFew: what is not named and only calls itself is reached in a way that is not known, and stays
// in the first module.
func TestSecondOfFew(t *testing.T) {
	calls := func(f ...byte) (body []byte) {
		body = []byte{0} // no locals
		for _, f := range f {
			body = append(body, opCall, f)
		}
		return append(body, opEnd)
	}
	p := program{bodies: [][]byte{calls(1), calls(2, 3), calls(3), calls()},
		names: []string{"main.alone", "main.later", "main.deeper", "main.idle"}, imports: 1, base: 1 << 10}
	if got, err := p.second(nil, []string{"main.later"}); err != nil ||
		!reflect.DeepEqual(got, []bool{false, true, true, false}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestBegins: what runs when the program begins may not come to the second module by calls, and may have its
// places.
func TestBegins(t *testing.T) {
	call := func(op, f byte) []byte { return []byte{0, op, f, opEnd} }
	p := program{bodies: [][]byte{call(opCall, 3), call(opCall, 4), call(opConst32, 4), call(opCall, 4),
		call(opCall, 4)}, names: []string{"a/b.init", "main.main", "main.way", "main.later",
		"main.init.func1"}, imports: 1, base: 1 << 10}
	second := []bool{false, false, false, true, false}
	if err := p.begins(second); err != nil {
		t.Error(err)
	}
	p.bodies[2] = call(opCall, 4)
	if err := p.begins(second); err == nil ||
		err.Error() != "a/b.init, which runs when the program begins, comes to main.later of the second "+
			"module, called by main.way" {
		t.Error(err)
	}
}

func TestInitialFunction(t *testing.T) {
	for name, want := range map[string]bool{
		"a/b.c/d.init": true, "main.init": true, "a/d.init.0": true, "a/d.init.func1": true,
		"a/d.init[b/c.d]": true, "a/d.initial": false, "a/d.(*T).init": false, "a.init/d.f": false,
		"main.main": false,
	} {
		if initialFunction(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
