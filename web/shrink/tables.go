package main

// This file clears what only traces of the stack read in the tables of functions that Go keeps in a program's
// memory. The layout is that of package runtime (symtab.go, runtime2.go).

import (
	"bytes"
	"encoding/binary"
	"errors"
)

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
	moduleRest  = 18
	moduleSize  = 60
)

// A node of a tree (runtime.inlinedCall).
const (
	nodeZeros = 1 // three bytes of zeros
	nodeName  = 4 // where its name lies among names
)

var errTables = errors.New("its tables of functions are laid out as those of another Go")

// functions are the tables of functions in a memory.
type functions struct {
	tables, names []byte // tables from the head on
	count         int    // of functions
	units, places int    // from the head on
	records       int    // the list of functions, and records
	described     []byte // the description of the module, from moduleRest on
}

// functionsOf finds them.
func functionsOf(memory []byte) (*functions, error) {
	at := bytes.Index(memory, []byte(layout))
	if at < 0 || bytes.Contains(memory[at+1:], []byte(layout)) {
		return nil, errTables
	}
	tables := memory[at:]
	offset := func(field int) int {
		return int(min(binary.LittleEndian.Uint64(tables[field:]), uint64(len(tables))))
	}
	if len(tables) < headSize {
		return nil, errTables
	}
	names := offset(headNames)
	f := &functions{tables: tables, count: offset(headFuncs), units: offset(headUnits),
		places: offset(headPlaces), records: offset(headRecords)}
	if names > f.units || f.units > f.places || f.places > f.records || f.count == 0 ||
		f.count > (len(tables)-f.records)/8 {
		return nil, errTables
	}
	f.names = tables[names:f.units]
	module := binary.LittleEndian.AppendUint64(nil, uint64(at))
	module = binary.LittleEndian.AppendUint64(module, uint64(at+names))
	described := bytes.Index(memory, module)
	if described < 0 || described > len(memory)-8*moduleSize ||
		binary.LittleEndian.Uint64(memory[described+8*moduleFuncs:]) != uint64(f.count)+1 {
		return nil, errTables
	}
	f.described = memory[described+8*moduleRest : described+8*moduleSize]
	return f, nil
}

// clearLines clears the tables of lines in a memory.
func clearLines(memory []byte) error {
	f, err := functionsOf(memory)
	if err != nil {
		return err
	}
	old := bytes.Clone(f.tables[f.places:f.records])
	c := &clearing{old: old, kept: make([]byte, len(old)), trees: map[uint32]int{},
		layouts: map[uint32]bool{}, used: map[uint32]bool{}}
	list := f.tables[f.records:]
	for i := range f.count {
		entry, place := binary.LittleEndian.Uint32(list[8*i:]), int(binary.LittleEndian.Uint32(list[8*i+4:]))
		if place < 8*f.count || place > len(list)-recordSize || !c.record(list[place:], entry) {
			return errTables
		}
	}
	if len(c.trees) > 0 && !clearTrees(memory, f.described, f.names, c.trees, c.layouts, c.used) {
		return errTables
	}
	copy(f.tables[f.places:], c.kept)
	clear(f.tables[f.units:f.places]) // and the names of files
	return nil
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
		nodes, first := 0, 0 // nodes in all, and those with the first of the names
		for from, size := range trees {
			if base > uint64(len(memory)) || uint64(from)+uint64(size) > uint64(len(memory))-base {
				return false
			}
			for tree := memory[base+uint64(from):][:size]; len(tree) > 0; tree = tree[treeNode:] {
				name := uint64(binary.LittleEndian.Uint32(tree[nodeName:]))
				if tree[nodeZeros]|tree[nodeZeros+1]|tree[nodeZeros+2] != 0 || name >= uint64(len(names)) ||
					name > 0 && names[name-1] != 0 {
					return false
				}
				if name == 0 {
					first++
				}
				nodes++
			}
		}
		return 2*first < nodes // zeros would name the first name alone
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
