// Lean makes a WebAssembly module that Go linked smaller, in its place, without another behaviour:
//
//	go run ./internal/lean app.wasm
//
// Data: the linker cuts the initial memory where a few bytes are zero, into tens of thousands of segments
// with a head each. They become one segment up to the next long run of zeros, which compress to nothing.
//
// Line tables: of each function Go keeps for each place in it the file, the line, what was inlined there and
// whether the goroutine may be stopped, beside what its collector and its stacks need. The former four are
// read where a trace of the stack is printed, or asked for by runtime.Callers; they are cleared, and so are
// the trees of what was inlined and the layouts of arguments. A trace then has the names of functions,
// without lines ("?:0"), without arguments and without functions that were inlined.
//
// Records: what is left of each function takes one room for all but a few functions, so that the numbers that
// grow from one function to the next are as far apart as those rooms. They are kept as differences
// (steps.go), and so is the table that finds a function by its place.
//
// Code: jumps, returns and addresses on the stack take fewer instructions (code.go).
//
// With -later and beginnings of names of functions, it divides the module (split.go): functions with such
// names, and those that only they come to, go to app-more.wasm. That is to be instantiated, before anything
// calls them, with the imports of app.wasm and with the exports of its instance as the module "first":
//
//	go run ./internal/lean -later 'example.org/app.Rare example.org/app/rare.' app.wasm
//
// What compresses a module, as servers do, makes a third less of it. The layout is that of package runtime
// (symtab.go, runtime2.go); a module whose tables are laid out otherwise is refused.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	later := flag.String("later", "",
		"beginnings of names of functions, by spaces, that go to a module of their own, NAME-more.wasm "+
			"beside NAME.wasm")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: lean [-later NAMES] MODULE.wasm ...")
		os.Exit(2)
	}
	for _, name := range flag.Args() {
		if err := rewrite(name, strings.Fields(*later)); err != nil {
			fmt.Fprintf(os.Stderr, "lean: %s: %v\n", name, err)
			os.Exit(1)
		}
	}
}

// rewrite makes the module of a file smaller, and divides it where later has names.
func rewrite(name string, later []string) error {
	module, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	first, second, err := lean(module, later)
	if err != nil {
		return err
	}
	if second != nil {
		if err := os.WriteFile(strings.TrimSuffix(name, ".wasm")+"-more.wasm", second, 0o666); err != nil {
			return err
		}
	}
	return os.WriteFile(name, first, 0o666)
}

// Sections of a module, and instructions of the place of a segment.
const (
	typeSection     = 1
	importSection   = 2
	functionSection = 3
	startSection    = 8
	codeSection     = 10
	dataSection     = 11
	constant        = 0x41 // i32.const
	end             = 0x0b
)

var magic = []byte("\x00asm\x01\x00\x00\x00")

var errModule = errors.New("this is no module of WebAssembly as Go's linker writes it")

// section is a part of a module.
type section struct {
	id      byte
	content []byte
}

// lean returns the module with its functions rewritten, with its memory in few segments, without tables of
// lines and with some tables as differences; and with the functions whose names begin as later says in a
// second module, nil without any. A module that begins by itself has been here before, and is returned as it
// is: Go's linker makes none.
func lean(module []byte, later []string) (first, second []byte, err error) {
	rest, is := bytes.CutPrefix(module, magic)
	if !is {
		return nil, nil, errModule
	}
	var sections []section
	var data, code *section
	for len(rest) > 0 {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, nil, errModule
		}
		if id == startSection {
			if len(later) > 0 {
				return nil, nil, errors.New("only a module as Go's linker writes it can be divided")
			}
			return module, nil, nil
		}
		sections = append(sections, section{id, rest[1+n : 1+n+int(size)]})
		rest = rest[1+n+int(size):]
	}
	for i := range sections {
		switch sections[i].id {
		case dataSection:
			data = &sections[i]
		case codeSection:
			code = &sections[i]
		}
	}
	if data == nil || code == nil {
		return nil, nil, errModule
	}
	memory, err := initial(data.content)
	if err != nil {
		return nil, nil, err
	}
	var whole program
	var apart []bool
	if len(later) > 0 {
		if whole, err = programOf(sections, memory); err == nil {
			apart, err = whole.second(memory, later)
		}
		if err == nil {
			err = whole.begins(apart)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	columns, err := clearLines(memory)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range columns {
		c.differences(memory)
	}
	data.content = segments(memory)
	bodies, err := bodiesOf(code.content)
	if err != nil {
		return nil, nil, err
	}
	for i := range bodies {
		if bodies[i], err = rewritten(bodies[i]); err != nil {
			return nil, nil, err
		}
	}
	code.content = codeOf(bodies)
	if apart != nil {
		parts, err := whole.split(sections, bodies, apart)
		if err != nil {
			return nil, nil, err
		}
		sections, second = parts[0], joined(parts[1])
	}
	if sections, err = withStart(sections, columns); err != nil {
		return nil, nil, err
	}
	return joined(sections), second, nil
}

// joined is the module of sections.
func joined(sections []section) []byte {
	out := bytes.Clone(magic)
	for _, s := range sections {
		out = append(out, s.id)
		out = binary.AppendUvarint(out, uint64(len(s.content)))
		out = append(out, s.content...)
	}
	return out
}

// initial returns the memory that a section of data makes, from address 0 on.
func initial(section []byte) (memory []byte, err error) {
	at := 0
	number := func() int {
		v, n := binary.Uvarint(section[min(at, len(section)):])
		if n <= 0 || v > 1<<31 {
			err = errModule
			return 0
		}
		at += n
		return int(v)
	}
	for count := number(); count > 0 && err == nil; count-- {
		if len(section)-at < 2 || section[at] != 0 || section[at+1] != constant {
			return nil, errModule
		}
		at += 2
		place, n := signed(section[at:])
		at += n
		if n == 0 || place < 0 || place > 1<<31 || at == len(section) || section[at] != end {
			return nil, errModule
		}
		at++
		size := number()
		if err != nil || size > len(section)-at {
			return nil, errModule
		}
		if more := int(place) + size - len(memory); more > 0 {
			memory = append(memory, make([]byte, more)...)
		}
		copy(memory[place:], section[at:at+size])
		at += size
	}
	if err == nil && at != len(section) {
		err = errModule
	}
	return memory, err
}

// signed reads a signed number of variable length (LEB128), and returns how long it is, 0 where it is none.
func signed(b []byte) (v int64, n int) {
	for shift := 0; n < len(b) && shift < 70; shift += 7 {
		c := b[n]
		n++
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 && shift < 57 {
				v |= -1 << (shift + 7)
			}
			return v, n
		}
	}
	return 0, 0
}

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// longRun is how many zeros are worth a segment of their own.
const longRun = 1 << 10

// segments returns the section of data of a memory.
func segments(memory []byte) []byte {
	var all []byte
	count := uint64(0)
	for at := 0; at < len(memory); {
		if memory[at] == 0 {
			at++
			continue
		}
		last := at // that is not zero
		for i := at; i < len(memory) && i-last <= longRun; i++ {
			if memory[i] != 0 {
				last = i
			}
		}
		all = append(all, 0, constant)
		all = appendSigned(all, int64(at))
		all = append(all, end)
		all = binary.AppendUvarint(all, uint64(last+1-at))
		all = append(all, memory[at:last+1]...)
		count++
		at = last + 1
	}
	return append(binary.AppendUvarint(nil, count), all...)
}

// The head of the tables of functions (runtime.pcHeader), little-endian: a number that names the layout, two
// zeros, the steps of places in code, the size of a pointer, and eight numbers of eight bytes.
const (
	layout      = "\xf1\xff\xff\xff\x00\x00\x01\x08"
	headFuncs   = 8  // how many functions
	headNames   = 32 // from the head on: where names begin
	headUnits   = 40 // and units of compilation
	headPlaces  = 56 // tables of places
	headRecords = 64 // the list of functions, and records
	headSize    = 72
)

// A record of a function (runtime._func), numbers of four bytes, and behind it as many tables of places and
// of other data as it says.
const (
	recordEntry  = 0
	recordName   = 4
	recordStacks = 16 // the table of depths of the stack
	recordFile   = 20 // the table of files
	recordLine   = 24 // and that of lines
	recordTables = 28 // how many further tables there are
	recordUnit   = 32
	recordStart  = 36 // the first line
	recordOthers = 43 // a byte: how many other data
	recordSize   = 44

	tableStops   = 0 // whether a goroutine may be stopped, which WebAssembly does not
	tableInlined = 2 // an index into the tree of what was inlined
	dataTree     = 3 // that tree, among the other data
	dataLayout   = 5 // where arguments lie, for traces: bytes up to layoutEnd
	dataAlive    = 6 // and which of them are in use
	layoutEnd    = 0xff
	treeNode     = 16
	mostTables   = 8
	none         = 1<<32 - 1
)

// The description of the module (runtime.moduledata), numbers of eight bytes, begins with the addresses of
// the head and of the names. Somewhere in it, where exactly depends on the version of Go, is the address that
// other data are counted from.
const (
	moduleFuncs = 17 // how many functions, and one more
	// the table that finds functions by their places; and behind it the first place and the last
	modulePlace = 19
	moduleRest  = 18
	moduleSize  = 60
)

// A node of a tree (runtime.inlinedCall).
const (
	nodeZeros = 1 // three bytes of zeros
	nodeName  = 4 // where its name lies among names
)

var errTables = errors.New("the tables of functions are laid out as those of another Go")

// functions are the tables of functions in a memory.
type functions struct {
	memory, tables, names []byte // tables from the head on
	at                    int    // where the head is
	count                 int    // of functions
	units, places         int    // from the head on
	records               int    // the list of functions, and records
	described             int    // where the description of the module is
}

// functionsOf finds them.
func functionsOf(memory []byte) (*functions, error) {
	at := bytes.Index(memory, []byte(layout))
	if at < 0 || bytes.Contains(memory[at+1:], []byte(layout)) {
		return nil, errors.New("one table of functions was expected, of the layout that Go has had " +
			"since 1.20")
	}
	tables := memory[at:]
	offset := func(field int) int {
		return int(min(binary.LittleEndian.Uint64(tables[field:]), uint64(len(tables))))
	}
	if len(tables) < headSize {
		return nil, errTables
	}
	names := offset(headNames)
	f := &functions{memory: memory, tables: tables, at: at, count: offset(headFuncs),
		units: offset(headUnits), places: offset(headPlaces), records: offset(headRecords)}
	if names > f.units || f.units > f.places || f.places > f.records || f.count == 0 ||
		f.count > (len(tables)-f.records)/8 {
		return nil, errTables
	}
	f.names = tables[names:f.units]
	module := binary.LittleEndian.AppendUint64(nil, uint64(at))
	module = binary.LittleEndian.AppendUint64(module, uint64(at+names))
	f.described = bytes.Index(memory, module)
	if f.described < 0 || f.described > len(memory)-8*moduleSize ||
		binary.LittleEndian.Uint64(memory[f.described+8*moduleFuncs:]) != uint64(f.count)+1 {
		return nil, errTables
	}
	return f, nil
}

// clearLines clears the tables of lines in a memory, and returns the columns of what is left that grow.
func clearLines(memory []byte) ([]column, error) {
	f, err := functionsOf(memory)
	if err != nil {
		return nil, err
	}
	old := bytes.Clone(f.tables[f.places:f.records])
	c := &clearing{old: old, kept: make([]byte, len(old)), trees: map[uint32]int{},
		layouts: map[uint32]bool{}, used: map[uint32]bool{}}
	list := f.tables[f.records:]
	for i := range f.count {
		entry, place := binary.LittleEndian.Uint32(list[8*i:]), int(binary.LittleEndian.Uint32(list[8*i+4:]))
		if place < 8*f.count || place > len(list)-recordSize || !c.record(list[place:], entry) {
			return nil, errTables
		}
	}
	if len(c.trees) > 0 && !clearTrees(memory, memory[f.described+8*moduleRest:f.described+8*moduleSize],
		f.names, c.trees, c.layouts, c.used) {
		return nil, errTables
	}
	copy(f.tables[f.places:], c.kept)
	clear(f.tables[f.units:f.places]) // and the names of files
	columns := inRooms(list, f.count)
	for i := range columns {
		columns[i].at += f.at + f.records
	}
	if c, ok := finder(memory, f.described, f.count); ok {
		columns = append(columns, c)
	}
	return columns, nil
}

// clearing is the tables of places, and what records say of other data.
type clearing struct {
	old, kept []byte          // the tables as they were, and with nothing but those that are kept
	trees     map[uint32]int  // where trees begin, and how long they are
	layouts   map[uint32]bool // where layouts of arguments begin
	used      map[uint32]bool // where other data begin that stay
}

// table returns the table of a place, pairs of steps of the value, from -1 on, and of the place, up to a step
// of 0; and the largest value.
func (c *clearing) table(from uint32) (t []byte, most int, ok bool) {
	at := int(from)
	if at == 0 {
		return nil, -1, true
	}
	value := -1
	for most, first := -1, true; ; first = false {
		step, n := binary.Uvarint(c.old[min(at, len(c.old)):])
		if n > 0 && step == 0 && !first {
			return c.old[from : at+1], most, true
		}
		_, m := binary.Uvarint(c.old[min(at+max(n, 0), len(c.old)):])
		if n <= 0 || m <= 0 {
			return nil, 0, false
		}
		value += int(step>>1) ^ -int(step&1)
		most = max(most, value)
		at += n + m
	}
}

// keep keeps the table of a place.
func (c *clearing) keep(from uint32) bool {
	t, _, ok := c.table(from)
	copy(c.kept[min(int(from), len(c.kept)):], t)
	return ok
}

// record clears the record of the function with this entry. It keeps the tables that stay, and notes where
// other data are.
func (c *clearing) record(record []byte, entry uint32) bool {
	field := func(f int) uint32 { return binary.LittleEndian.Uint32(record[f:]) }
	further, other := int(min(field(recordTables), mostTables+1)), int(record[recordOthers])
	if field(recordEntry) != entry || further > mostTables || len(record) < recordSize+4*(further+other) {
		return false
	}
	for d := range other {
		f := recordSize + 4*(further+d)
		place := field(f)
		switch {
		case place == none:
		case d == dataLayout || d == dataAlive:
			if d == dataLayout {
				c.layouts[place] = true
			}
			binary.LittleEndian.PutUint32(record[f:], none)
		case d != dataTree || further <= tableInlined:
			c.used[place] = true
		default:
			_, most, ok := c.table(field(recordSize + 4*tableInlined))
			if !ok {
				return false
			}
			c.trees[place] = max(c.trees[place], treeNode*(most+1))
			binary.LittleEndian.PutUint32(record[f:], none)
		}
	}
	for _, f := range []int{recordFile, recordLine, recordUnit, recordStart} {
		clear(record[f : f+4])
	}
	ok := c.keep(field(recordStacks))
	for t := range further {
		f := recordSize + 4*t
		if t == tableStops || t == tableInlined {
			clear(record[f : f+4])
		}
		ok = ok && c.keep(field(f))
	}
	return ok
}

// clearTrees clears the trees of what was inlined, whose places are counted from one of the addresses: the
// one where every node has a name, and no tree is anything else. The layouts of arguments, counted from there
// too, go with them.
func clearTrees(memory, addresses, names []byte, trees map[uint32]int, layouts, used map[uint32]bool) bool {
	for from, size := range trees {
		for place := from; place < from+uint32(size); place++ {
			if used[place] {
				return false
			}
		}
	}
	are := func(base uint64) bool {
		for from, size := range trees {
			if base > uint64(len(memory)) || uint64(from)+uint64(size) > uint64(len(memory))-base {
				return false
			}
			for tree := memory[base+uint64(from):][:size]; len(tree) > 0; tree = tree[treeNode:] {
				name := uint64(binary.LittleEndian.Uint32(tree[nodeName:]))
				if tree[nodeZeros]|tree[nodeZeros+1]|tree[nodeZeros+2] != 0 || name == 0 ||
					name >= uint64(len(names)) || names[name-1] != 0 {
					return false
				}
			}
		}
		return true
	}
	for ; len(addresses) > 0; addresses = addresses[8:] {
		if base := binary.LittleEndian.Uint64(addresses); are(base) {
			for from, size := range trees {
				clear(memory[base+uint64(from):][:size])
			}
			for from := range layouts {
				for at := uint64(from); base+at < uint64(len(memory)) && !used[uint32(at)]; at++ {
					last := memory[base+at] == layoutEnd
					memory[base+at] = 0
					if last {
						break
					}
				}
			}
			return true
		}
	}
	return false
}
