package main

// This file holds the division of a module in two: the first begins and has what most need; the second has
// functions that are called only where someone asks for them, and is instantiated over the memory, the table
// and the globals of the first before that. Which functions the second has follows from beginnings of names
// (later): functions with such names, and those that nothing else of the program can come to.
//
// Go's table of functions has every function at a place of its own, which does not change. Each of both
// modules fills the places of its functions. A call from one to the other goes by the table, so that neither
// imports functions of the other. A call of a function of the second traps as long as that is not there.
//
// What can come to a function: a call; its place in code or in data (a function as a value, an entry of a
// table of methods); a method of a type by whose name and type an interface asks. What is in data counts as
// come to, except values that only code of the second names.

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

const (
	tableSection   = 4
	memorySection  = 5
	globalSection  = 6
	exportSection  = 7
	elementSection = 9
	opCallTable    = 0x11
	// a place in code is a function's place in the table, and in as many bits the place within it
	placeSteps = 16
	divided    = "first" // the name of the module that the second imports from
)

var errSplit = errors.New("this module cannot be divided: it is laid out otherwise than those of Go's linker")

// program is a module as its division needs it.
type program struct {
	imports int // functions that are imported; calls count them first
	base    int // the place of the first function in the table
	types   []uint64
	bodies  [][]byte
	names   []string
}

// programOf reads a module that Go has linked, and its initial memory.
func programOf(sections []section, memory []byte) (p program, err error) {
	for _, s := range sections {
		count, n := binary.Uvarint(s.content)
		rest := s.content[max(n, 0):]
		switch s.id {
		case importSection:
			p.imports = int(count)
		case functionSection:
			for len(rest) > 0 && n > 0 {
				var kind uint64
				kind, n = binary.Uvarint(rest)
				p.types = append(p.types, kind)
				rest = rest[max(n, 0):]
			}
		case elementSection:
			if count != 1 || len(rest) < 2 || rest[0] != 0 || rest[1] != constant {
				return p, errSplit
			}
			base, _ := signed(rest[2:])
			p.base = int(base)
			if !bytes.Equal(s.content,
				elements(p.base, p.imports, slices.Repeat([]bool{true}, len(p.types)), true)) {
				return p, errSplit
			}
		case codeSection:
			if p.bodies, err = bodiesOf(s.content); err != nil {
				return p, err
			}
		}
	}
	if p.base <= 0 || len(p.bodies) != len(p.types) {
		return p, errSplit
	}
	// Names, of the tables that clearLines describes.
	at := bytes.Index(memory, []byte(layout))
	if at < 0 || len(memory)-at < headSize {
		return p, errSplit
	}
	number := func(at int) int {
		if at < 0 || at+4 > len(memory) {
			return -1
		}
		return int(binary.LittleEndian.Uint32(memory[at:]))
	}
	list, names := at+number(at+headRecords), at+number(at+headNames)
	for i := range p.bodies {
		from := names + number(list+number(list+8*i+4)+recordName)
		if number(at+headFuncs) != len(p.bodies) || number(list+8*i) != p.base+i || from < 0 ||
			from > len(memory) {
			return p, errSplit
		}
		name, _, _ := bytes.Cut(memory[from:], []byte{0})
		p.names = append(p.names, string(name))
	}
	return p, nil
}

// placed returns the function that begins at the place v. A place within a function is where it goes on after
// a call, and only that function has it. Most other numbers of that size, such as floats in data, look like a
// place within one.
func (p *program) placed(v uint64) (f int, ok bool) {
	at := v>>placeSteps - uint64(p.base)
	return int(at), at < uint64(len(p.bodies)) && v&(1<<placeSteps-1) == 0
}

// initialFunction says whether a function of that name runs when the program begins, whatever its package is
// for.
func initialFunction(name string) bool {
	name, _, _ = strings.Cut(name, "[") // without types
	_, name, _ = strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ".")
	rest, is := strings.CutPrefix(name, "init")
	return is && (rest == "" || rest[0] == '.')
}

// second says which functions the second module has.
func (p *program) second(memory []byte, later []string) ([]bool, error) {
	named, err := p.named(later)
	if err != nil {
		return nil, err
	}
	comes, live, err := p.comes(memory)
	if err != nil {
		return nil, err
	}
	for _, f := range p.methods(memory) {
		live[f] = true
	}
	called := make([]bool, len(p.bodies))
	for f := range comes {
		for _, to := range comes[f] {
			called[to] = called[to] || to != f
		}
	}
	var next []int
	for f := range live {
		if live[f] = (live[f] || !called[f]) && !named[f]; live[f] {
			next = append(next, f)
		}
	}
	for len(next) > 0 {
		f := next[len(next)-1]
		next = next[:len(next)-1]
		for _, to := range comes[f] {
			if !live[to] && !named[to] {
				live[to] = true
				next = append(next, to)
			}
		}
	}
	for f := range live {
		live[f] = !live[f]
	}
	return live, nil
}

// begins returns an error where a function that runs when the program begins comes by calls to one of the
// second module, which is not there yet. A function that is a value in an initial one, such as init.func1,
// runs then only if it is called.
func (p *program) begins(second []bool) error {
	from := make([]int, len(p.bodies)) // the initial function that comes to a function, counted from 1
	var next []int
	for f, name := range p.names {
		if initialFunction(name) && !strings.Contains(name, ".func") {
			from[f] = f + 1
			next = append(next, f)
		}
	}
	for len(next) > 0 {
		f := next[len(next)-1]
		next = next[:len(next)-1]
		_, code, err := parsed(p.bodies[f])
		if err != nil {
			return err
		}
		for _, i := range code {
			to := int(i.number) - p.imports
			if i.op != opCall || to < 0 || from[to] > 0 {
				continue
			}
			if second[to] {
				return errors.New(p.names[from[f]-1] + ", which runs when the program begins, comes to " +
					p.names[to] + " of the second module, called by " + p.names[f])
			}
			from[to] = from[f]
			next = append(next, to)
		}
	}
	return nil
}

// named says which functions have names with one of the beginnings, each of which must be that of one.
func (p *program) named(later []string) ([]bool, error) {
	named := make([]bool, len(p.bodies))
	used := make([]bool, len(later))
	for f, name := range p.names {
		for i, beginning := range later {
			if strings.HasPrefix(name, beginning) && !initialFunction(name) {
				named[f], used[i] = true, true
			}
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return nil, errors.New("no function has a name that begins with " + later[i])
	}
	return named, nil
}

// comes returns which functions each function comes to, by a call, by a function's place, and by the address
// of a value that code alone names; and which functions the rest of the data come to.
func (p *program) comes(memory []byte) (comes [][]int, live []bool, err error) {
	comes, live = make([][]int, len(p.bodies)), make([]bool, len(p.bodies))
	names := map[uint64][]int{} // which functions have a number
	for f, body := range p.bodies {
		_, code, err := parsed(body)
		if err != nil {
			return nil, nil, err
		}
		for _, i := range code {
			switch {
			case i.op == opCall && int(i.number) >= p.imports:
				comes[f] = append(comes[f], int(i.number)-p.imports)
			case i.op == opConst32 || i.op == opConst64:
				v := uint64(i.number)
				if to, ok := p.placed(v); ok {
					comes[f] = append(comes[f], to)
				} else if v < uint64(len(memory)) {
					names[v] = append(names[v], f)
				}
			}
		}
	}
	inData := map[uint64]bool{}
	for at := 0; at+8 <= len(memory); at += 8 {
		inData[binary.LittleEndian.Uint64(memory[at:])] = true
	}
	for at := 0; at+8 <= len(memory); at += 8 {
		if to, ok := p.placed(binary.LittleEndian.Uint64(memory[at:])); ok {
			by := names[uint64(at)]
			for _, f := range by {
				comes[f] = append(comes[f], to)
			}
			if len(by) == 0 || inData[uint64(at)] {
				live[to] = true
			}
		}
	}
	return comes, live, nil
}

// methods are the functions that an interface can find by name and type. A method of a type is described by
// four numbers: name, type, and its function twice, for two ways of a call; a method of an interface by the
// first two.
func (p *program) methods(memory []byte) (all []int) {
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(memory[at:]) }
	function := func(at int) bool { return uint64(number(at))-uint64(p.base) < uint64(len(p.bodies)) }
	// Both functions are called as the method is, T.M or (*T).M; most other numbers in a row of these sizes
	// are those of functions of two names.
	called := func(at int) (method string) {
		name := p.names[int(number(at))-p.base]
		// without types
		if from, to := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']'); from >= 0 &&
			to > from {
			name = name[:from] + name[to+1:]
		}
		name = name[strings.LastIndexByte(name, '/')+1:]
		if strings.Count(name, ".") > 1 {
			method = name[strings.LastIndexByte(name, '.')+1:]
		}
		return method
	}
	method := func(at int) bool {
		return at+16 <= len(memory) && function(at+8) && function(at+12) && called(at+8) != "" &&
			called(at+8) == called(at+12)
	}
	of := map[uint64][]int{}
	each := func(do func(at int, key uint64)) {
		for at := 0; at+8 <= len(memory); at += 4 {
			if name, kind := number(at), number(at+4); name != 0 && kind != 0 && kind != none {
				do(at, uint64(name)<<32|uint64(kind))
			}
		}
	}
	each(func(at int, key uint64) {
		if method(at) {
			of[key] = append(of[key], int(number(at+8))-p.base, int(number(at+12))-p.base)
		}
	})
	each(func(at int, key uint64) {
		if !method(at) {
			all = append(all, of[key]...)
			delete(of, key)
		}
	})
	return all
}

// split returns the sections of both modules. bodies are those of the functions, rewritten or not.
func (p *program) split(sections []section, bodies [][]byte, second []bool) (parts [2][]section, err error) {
	var rank []int // of each function among those of its module
	var have [2]int
	for _, s := range second {
		rank = append(rank, have[index(s)])
		have[index(s)]++
	}
	functions, code, err := p.divide(bodies, second, rank, have)
	if err != nil {
		return parts, err
	}
	both, err := p.share(sections, second, code)
	if err != nil {
		return parts, err
	}
	for _, s := range sections {
		first, other := s, s
		switch s.id {
		case 0, tableSection, memorySection, globalSection, startSection, dataSection:
			other.content = nil
		case importSection:
			_, n := binary.Uvarint(s.content)
			other.content = append(binary.AppendUvarint(nil, uint64(p.imports+both.count)),
				slices.Concat(s.content[n:], both.imports)...)
		case functionSection:
			first.content, other.content = functions[0], functions[1]
		case exportSection:
			other.content = nil
			if first.content, err = p.exports(s.content, second, rank, both.exports, both.count); err != nil {
				return parts, err
			}
		case elementSection:
			first.content = elements(p.base, p.imports, second, false)
			other.content = elements(p.base, p.imports, second, true)
		case codeSection:
			first.content, other.content = code[0], code[1]
		}
		parts[0] = append(parts[0], first)
		if other.content != nil {
			parts[1] = append(parts[1], other)
		}
	}
	return parts, nil
}

// divide returns the sections of functions and of code of both modules, of which each has so many functions.
// Calls of a function of the other module go by the table.
func (p *program) divide(bodies [][]byte, second []bool, rank []int, have [2]int) (functions, code [2][]byte,
	err error) {
	call := func(from, to int) []instruction {
		if to < p.imports {
			return []instruction{one(opCall, to)}
		}
		to -= p.imports
		if second[from] == second[to] {
			return []instruction{one(opCall, p.imports+rank[to])}
		}
		return []instruction{one(opConst32, p.base+to),
			{op: opCallTable, rest: append(binary.AppendUvarint(nil, p.types[to]), 0)}}
	}
	for part := range 2 {
		functions[part] = binary.AppendUvarint(nil, uint64(have[part]))
		code[part] = binary.AppendUvarint(nil, uint64(have[part]))
	}
	for f, body := range bodies {
		locals, all, err := parsed(body)
		if err != nil {
			return functions, code, err
		}
		body = bytes.Clone(locals)
		for _, i := range all {
			if i.op != opCall {
				body = i.append(body)
				continue
			}
			for _, i := range call(f, int(i.number)) {
				body = i.append(body)
			}
		}
		part := index(second[f])
		functions[part] = binary.AppendUvarint(functions[part], p.types[f])
		code[part] = append(binary.AppendUvarint(code[part], uint64(len(body))), body...)
	}
	return functions, code, nil
}

// shared is what the second module imports of the first: table, memory and globals, as entries of the
// sections of imports and of exports.
type shared struct {
	imports, exports []byte
	count            int
}

func (s *shared) add(name string, kind, what byte, description []byte) {
	s.imports = append(appendName(appendName(s.imports, divided), name), what)
	s.imports = append(s.imports, description...)
	s.exports = append(append(appendName(s.exports, name), what), kind)
	s.count++
}

// share returns what the modules of this code share. The name of the table says which first module a second
// belongs to: with another it is not instantiated.
func (p *program) share(sections []section, second []bool, code [2][]byte) (both shared, err error) {
	sum := sha256.New()
	for _, part := range [][]byte{code[0], code[1], elements(p.base, p.imports, second, false)} {
		sum.Write(part)
	}
	for _, s := range sections {
		if s.id == dataSection {
			sum.Write(s.content)
		}
	}
	for _, s := range sections {
		switch s.id {
		case tableSection:
			both.add("table "+hex.EncodeToString(sum.Sum(nil)[:8]), 0, 1, s.content[1:])
		case memorySection:
			both.add("mem", 0, 2, s.content[1:])
		case globalSection:
			// Each is a type, a byte for one that changes, and its first value, a constant of 0.
			count, n := binary.Uvarint(s.content)
			for i, rest := 0, s.content[n:]; i < int(count); i, rest = i+1, rest[5:] {
				if len(rest) < 5 || rest[4] != end {
					return both, errSplit
				}
				both.add("global"+string(rune('0'+i)), byte(i), 3, rest[:2])
			}
		}
	}
	return both, nil
}

// exports returns the section of exports, its functions counted anew, with what the second module imports.
func (p *program) exports(content []byte, second []bool, rank []int, more []byte, shared int) ([]byte,
	error) {
	count, n := binary.Uvarint(content)
	out, at := []byte(nil), n
	total := int(count) + shared
	for range count {
		size, n := binary.Uvarint(content[min(at, len(content)):])
		if n <= 0 || size > uint64(len(content)-at-n) {
			return nil, errSplit
		}
		name := content[at+n:][:size]
		at += n + int(size)
		if at+2 > len(content) {
			return nil, errSplit
		}
		what := content[at]
		which, n := binary.Uvarint(content[at+1:])
		at += 1 + n
		if what == 2 {
			total-- // the memory, which is among the others
			continue
		}
		f := int(which) - p.imports
		if n <= 0 || what != 0 || f < 0 || f >= len(second) || second[f] {
			return nil, errSplit
		}
		out = append(appendName(out, string(name)), 0)
		out = binary.AppendUvarint(out, uint64(p.imports+rank[f]))
	}
	return slices.Concat(binary.AppendUvarint(nil, uint64(total)), out, more), nil
}

// elements returns the section that fills the places of those functions f of a module for which in[f] == is.
func elements(base, imports int, in []bool, is bool) []byte {
	var all []byte
	count, function := 0, imports
	for f := 0; f < len(in); f++ {
		if in[f] != is {
			continue
		}
		from := f
		for f < len(in) && in[f] == is {
			f++
		}
		all = append(appendSigned(append(all, 0, constant), int64(base+from)), end)
		all = binary.AppendUvarint(all, uint64(f-from))
		for range f - from {
			all = binary.AppendUvarint(all, uint64(function))
			function++
		}
		count++
	}
	return append(binary.AppendUvarint(nil, uint64(count)), all...)
}

func appendName(b []byte, name string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(name))), name...)
}

func index(second bool) int {
	if second {
		return 1
	}
	return 0
}
