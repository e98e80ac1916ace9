package main

// The module of WebAssembly with all kernels, and what calls them: the declarations in Go,
// and the functions in JavaScript between the two modules. Go's imports must be there before
// its memory is, which the kernels import; so the functions are closures that are bound later.
//
// # Blocks and loops
//
// WebAssembly has no jumps but those out of a block, to its end, and to the head of a loop. A
// text is a list of instructions and labels. A label that is jumped to from further down is
// the head of a loop as far as the last such jump; one that is jumped to from above is the end
// of a block that begins at the first such jump. Where two of them overlap, the one that
// begins later begins with the other, if it is a block, or else the other, a loop, ends later.

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"go/ast"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// module is a module while it is written.
type module struct {
	tables    []string       // by name
	at        map[string]int // their places, in bytes
	words     []uint64
	functions []wasmFunction
}

// wasmFunction is a kernel in it.
type wasmFunction struct {
	name   string
	params []word // of the arguments that it uses, "tables" first if it uses them
	types  []byte
	result []byte // its type, if it has one
	code   []byte
}

const (
	typeI32, typeF64, typeV128 = 0x7f, 0x7c, 0x7b
	emptyBlock                 = 0x40
)

// opcodes are the instructions without operands of their own, and those whose operands
// [module.instruction] knows. Those from 0x100 on have the prefix of vectors.
var opcodes = map[string]int{
	"br": 0x0c, "br_if": 0x0d, "local.get": 0x20, "local.set": 0x21, "local.tee": 0x22,
	"i32.load": 0x28, "i64.store": 0x37, "i32.const": 0x41, "i64.const": 0x42,
	"i32.eq": 0x46, "i32.ne": 0x47, "i32.lt_s": 0x48, "i32.gt_s": 0x4a, "i32.le_s": 0x4c, "i32.ge_s": 0x4e,
	"i32.add": 0x6a, "i32.sub": 0x6b, "i32.mul": 0x6c, "i32.and": 0x71, "i32.shl": 0x74, "i32.shr_u": 0x76,
	"v128.load": 0x100, "v128.load64_splat": 0x10a, "v128.store": 0x10b, "v128.const": 0x10c,
	"f64x2.splat": 0x114, "i32x4.extract_lane": 0x11b, "f64x2.extract_lane": 0x121,
	"f64x2.eq": 0x147, "f64x2.ne": 0x148, "f64x2.lt": 0x149, "f64x2.gt": 0x14a, "f64x2.le": 0x14b,
	"f64x2.ge": 0x14c,
	"v128.not": 0x14d, "v128.and": 0x14e, "v128.or": 0x150, "v128.xor": 0x151, "v128.bitselect": 0x152,
	"v128.store64_lane": 0x15b, "v128.load64_zero": 0x15d,
	"i64x2.shl": 0x1cb, "i64x2.shr_u": 0x1cd, "i64x2.add": 0x1ce,
	"f64x2.sqrt": 0x1ef, "f64x2.add": 0x1f0, "f64x2.sub": 0x1f1, "f64x2.mul": 0x1f2, "f64x2.div": 0x1f3,
	"f64x2.pmin": 0x1f6, "f64x2.pmax": 0x1f7,
}

// opShuffle takes two registers a, b and a number for each byte of the result.
const opShuffle = 0x10d

// shuffles are lanes of two registers: the first of each, the second of each, and of one
// register the second before the first.
var shuffles = map[string][2]int{"lows": {0, 2}, "highs": {1, 3}, "swap": {1, 0}}

// newModule makes the module of all kernels.
func newModule() *module {
	w := &module{at: map[string]int{}}
	for _, k := range kernels {
		if !k.in(simd128) {
			continue
		}
		file := &File{constants: map[string][]uint64{}}
		w.functions = append(w.functions, w.function(k, file, newFunc(file, k, simd128).out.String()))
	}
	return w
}

// wasmTag is the build tag under which Go imports the module: a program that does not bring it
// would not link.
const wasmTag = "wasmsimd"

// item is a label, or some instructions of which the last may be a jump to one.
type item struct {
	label, to string
	code      []string
}

// function encodes the text of a kernel.
func (w *module) function(k kernel, file *File, text string) wasmFunction {
	var items []item
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if label, ok := strings.CutSuffix(line, ":"); ok {
			items = append(items, item{label: label})
			continue
		}
		code := strings.Split(line, "; ")
		last := code[len(code)-1]
		to := ""
		if strings.HasPrefix(last, "br") {
			to = strings.Fields(last)[1]
		}
		all = append(all, code...)
		items = append(items, item{code: code, to: to})
	}

	// Arguments that are used, then locals.
	out := wasmFunction{name: string(k)}
	if k.returns() {
		out.result = []byte{typeF64}
	}
	var locals, used []string
	for _, s := range all {
		what, name, _ := strings.Cut(s, " ")
		switch {
		case what == "constant":
			used = append(used, s)
		case what == "table":
			used = append(used, "tables")
		case strings.HasPrefix(what, "local."):
			used = append(used, name)
		}
	}
	tables := word{"tables", "unsafe.Pointer(&tables)", "unsafe.Pointer"}
	for _, w := range append([]word{tables}, k.words()...) {
		if !slices.Contains(used, w.name) {
			continue
		}
		kind := byte(typeI32)
		if w.goType == "float64" {
			kind = typeF64
		}
		out.params, out.types = append(out.params, w), append(out.types, kind)
		locals = append(locals, w.name)
	}
	for _, name := range used {
		if !slices.Contains(locals, name) {
			locals = append(locals, name)
		}
	}
	index := func(name string) int {
		i := slices.Index(locals, name)
		if i < 0 {
			panic(out.name + ": no local " + name)
		}
		return i
	}
	body := uleb(nil, len(locals)-len(out.params))
	for _, name := range locals[len(out.params):] {
		kind := byte(typeV128)
		if name == "ret" {
			kind = typeF64
		} else if name[0] == 'R' || name == "left" || name == "right" {
			kind = typeI32
		}
		body = append(body, 1, kind)
	}
	fields := k.offsets()
	emit := func(s string) { body = w.instruction(body, s, index, file, fields) }
	for _, local := range locals {
		if name, is := strings.CutPrefix(local, "constant "); is {
			emit(fmt.Sprintf("v128.const %x %[1]x", file.constants[name][0]))
			emit("local.set " + local)
		}
	}

	// Items in their blocks and loops.
	scopes := scopesOf(out.name, items)
	var open []*scope
	for i := 0; i <= len(items); i++ {
		for len(open) > 0 && open[len(open)-1].end == i {
			open = open[:len(open)-1]
			body = append(body, 0x0b)
		}
		for len(scopes) > 0 && scopes[0].begin == i {
			body = append(body, map[bool]byte{true: 0x03, false: 0x02}[scopes[0].loop], emptyBlock)
			open = append(open, scopes[0])
			scopes = scopes[1:]
		}
		if i == len(items) || items[i].label != "" {
			continue
		}
		for _, s := range items[i].code {
			if !strings.HasPrefix(s, "br") {
				emit(s)
				continue
			}
			depth := slices.IndexFunc(open, func(c *scope) bool { return c.label == items[i].to && c.has(i) })
			if depth < 0 {
				panic(out.name + ": no way to " + items[i].to)
			}
			op, _, _ := strings.Cut(s, " ")
			body = uleb(append(body, byte(opcodes[op])), len(open)-1-depth)
		}
	}
	if k.returns() {
		emit("local.get ret")
	}
	out.code = append(body, 0x0b)
	return out
}

// scope is a block that ends at a label, or a loop that begins there: the items from begin
// on and before end.
type scope struct {
	label      string
	loop       bool
	at         int // the label's item
	begin, end int
}

// has tells whether a jump at item i goes to the label by this scope.
func (s *scope) has(i int) bool { return s.loop == (i > s.at) }

// scopesOf are the scopes that items need, the outer before the inner where they begin
// together.
func scopesOf(name string, items []item) []*scope {
	var all []*scope
	for at, it := range items {
		if it.label == "" {
			continue
		}
		first, last := -1, -1
		for i, jump := range items {
			if jump.to == it.label && i < at && first < 0 {
				first = i
			}
			if jump.to == it.label && i > at {
				last = i
			}
		}
		if first >= 0 {
			all = append(all, &scope{label: it.label, at: at, begin: first, end: at})
		}
		if last >= 0 {
			all = append(all, &scope{label: it.label, loop: true, at: at, begin: at, end: last + 1})
		}
	}
	for again := true; again; {
		again = false
		for _, a := range all {
			for _, b := range all {
				if a.begin >= b.begin || b.begin >= a.end || a.end >= b.end {
					continue
				}
				switch {
				case !b.loop:
					b.begin = a.begin
				case a.loop:
					a.end = b.end
				default:
					panic(name + ": a jump into the loop at " + b.label)
				}
				again = true
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *scope) int { return cmp.Or(a.begin-b.begin, b.end-a.end) })
	return all
}

// instruction appends the encoding of one.
func (w *module) instruction(body []byte, s string, index func(string) int, file *File,
	fields map[string]int) []byte {
	what, rest, _ := strings.Cut(s, " ")
	operands := strings.Fields(rest)
	switch what {
	case "constant":
		return uleb(append(body, 0x20), index(s))
	case "table": // its address
		if _, known := w.at[rest]; !known {
			w.at[rest] = 8 * len(w.words)
			w.tables = append(w.tables, rest)
			w.words = append(w.words, file.constants[rest]...)
		}
		body = uleb(append(body, 0x20), index("tables"))
		return append(sleb(append(body, 0x41), int64(w.at[rest])), byte(opcodes["i32.add"]))
	case "shuffle":
		body = opcode(body, opShuffle)
		for _, lane := range shuffles[rest] {
			for i := range 8 {
				body = append(body, byte(8*lane+i))
			}
		}
		return body
	}
	op, known := opcodes[what]
	if !known {
		panic("no instruction " + s)
	}
	body = opcode(body, op)
	switch {
	case strings.HasPrefix(what, "local."):
		return uleb(body, index(rest))
	case what == "i32.const" || what == "i64.const":
		return sleb(body, must(strconv.ParseInt(rest, 10, 64)))
	case what == "v128.const":
		for _, o := range operands {
			body = binary.LittleEndian.AppendUint64(body, must(strconv.ParseUint(o, 16, 64)))
		}
		return body
	case strings.Contains(what, "load") || strings.Contains(what, "store"):
		offset, known := fields[operands[0]]
		if !known {
			offset = must(strconv.Atoi(operands[0]))
		}
		align := 3
		if what == "i32.load" {
			align = 2
		}
		body = uleb(uleb(body, align), offset)
		operands = operands[1:]
	}
	for _, o := range operands { // lanes
		body = append(body, byte(must(strconv.Atoi(o))))
	}
	return body
}

func opcode(body []byte, op int) []byte {
	if op < 0x100 {
		return append(body, byte(op))
	}
	return uleb(append(body, 0xfd), op-0x100)
}

func uleb(b []byte, v int) []byte { return binary.AppendUvarint(b, uint64(v)) }

func sleb(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// bytes is the module.
func (w *module) bytes() []byte {
	sized := func(out []byte, content string) []byte { return append(uleb(out, len(content)), content...) }
	var signatures []string
	all := append(slices.Clip(w.functions),
		wasmFunction{name: version, result: []byte{typeI32},
			code: append(sleb([]byte{0, 0x41}, int64(w.version())), 0x0b)})
	functions, exports, code := uleb(nil, len(all)), uleb(nil, len(all)), uleb(nil, len(all))
	for i, f := range all {
		s := uleb([]byte{0x60}, len(f.types))
		s = uleb(append(s, f.types...), len(f.result))
		s = append(s, f.result...)
		at := slices.Index(signatures, string(s))
		if at < 0 {
			at, signatures = len(signatures), append(signatures, string(s))
		}
		functions = uleb(functions, at)
		exports = uleb(append(sized(exports, f.name), 0), i)
		code = sized(code, string(f.code))
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, section := range []struct {
		id      byte
		content []byte
	}{
		{1, append(uleb(nil, len(signatures)), strings.Join(signatures, "")...)},
		{2, append(sized(sized([]byte{1}, "env"), "memory"), 2, 0, 1)},
		{3, functions}, {7, exports}, {10, code},
	} {
		out = sized(append(out, section.id), string(section.content))
	}
	return out
}

// version is the name of the function that returns what [module.version] does.
const version = "version"

// version is a number that changes with the kernels: Go has it too, and leaves alone a
// module that says another.
func (w *module) version() int32 {
	sum := crc32.NewIEEE()
	for _, f := range w.functions {
		var names []string
		for _, p := range f.params {
			names = append(names, p.name)
		}
		fmt.Fprintf(sum, "%s%v%v", f.name, names, f.types)
		sum.Write(f.code)
	}
	return int32(sum.Sum32())
}

// script is the module of JavaScript with Go's imports.
func (w *module) script() string {
	var imports, names strings.Builder
	for _, f := range w.functions {
		var args []string
		for i := range f.params {
			args = append(args, fmt.Sprintf("a%d", i))
		}
		list := strings.Join(args, ", ")
		fmt.Fprintf(&imports, "  %s: (%s) => %[1]s(%[2]s),\n", f.name, list)
		fmt.Fprintf(&names, ", %s", f.name)
	}
	return strings.TrimSuffix(notice, "\n") + `//
// What Go imports of the kernels. Without bind, which takes the exports of kernels.wasm, version
// is 0, and Go calls none of them.
let version = () => 0` + names.String() + `;
export const imports = {
  version: () => version(),
` + imports.String() + `};
export function bind(exports) {
  ({ version` + names.String() + ` } = exports);
}
`
}

// declarations is the file of internal/kernel with the choice at run time and the imports.
func (w *module) declarations() string {
	var b strings.Builder
	b.WriteString(notice + "//go:build " + wasmTag + " && !purego\n\npackage kernel\n" +
		"\nimport \"unsafe\"\n\n" +
		"// moduleVersion is what the module of kernels that Go was built with says of itself.\n" +
		"const moduleVersion = " + fmt.Sprint(w.version()) + "\n\n" +
		"// place is the address of a slice.\nfunc place[T any](s []T) unsafe.Pointer { return " +
		"unsafe.Pointer(unsafe.SliceData(s)) }\n")
	fmt.Fprintf(&b, "\n// tables are %s.\nvar tables = [...]uint64{\n", strings.Join(w.tables, ", then "))
	for i, v := range w.words {
		fmt.Fprintf(&b, "%#016x,", v)
		if i%4 == 3 {
			b.WriteString("\n")
		}
	}
	b.WriteString("\n}\n")
	checked := map[string]bool{}
	functions := w.functions
	for _, k := range kernels {
		if !k.in(simd128) {
			fmt.Fprintf(&b, "\n%s { %s }\n", k.signature(""), k.call("_g"))
			continue
		}
		f := functions[0]
		functions = functions[1:]
		for field, at := range k.offsets() {
			checked[fmt.Sprintf("_ = [1]struct{}{}[unsafe.Offsetof(%s)-%d]",
				strings.Replace(field, "_", "{}.", 1), at)] = true
		}
		var args, params []string
		for _, p := range f.params {
			args = append(args, p.give)
			params = append(params, p.name+" "+p.goType)
		}
		name := string(k) + simd128.Name
		call := name + "(" + strings.Join(args, ", ") + ")"
		result := ""
		if k.returns() {
			call, result = "return "+call, "float64"
		}
		fmt.Fprintf(&b, "\n%s {\n\tif level == %s {\n\t\t%s\n", k.signature(""), simd128.Name, call)
		if !k.returns() {
			b.WriteString("return\n")
		}
		fmt.Fprintf(&b, "\t}\n\t%s\n}\n", k.call("_g"))
		fmt.Fprintf(&b, "\n//go:wasmimport quantmf %s\n//go:noescape\nfunc %s(%s) %s\n", f.name,
			name, strings.Join(params, ", "), result)
	}
	b.WriteString("\n// The kernels have these offsets.\nvar (\n")
	b.WriteString(strings.Join(slices.Sorted(maps.Keys(checked)), "\n") + "\n)\n")
	return gofmt(b.String())
}

// word is a word of the arguments: its name, as [kernel.layout] has it, how Go gives it and
// its type there.
type word struct{ name, give, goType string }

// words are those of a kernel, in their order.
func (k kernel) words() (all []word) {
	for name, typ := range k.params() {
		switch typ.(type) {
		case *ast.ArrayType:
			all = append(all, word{name + "_base", "place(" + name + ")", "unsafe.Pointer"},
				word{name + "_len", "int32(len(" + name + "))", "int32"})
		case *ast.StarExpr:
			all = append(all, word{name, "unsafe.Pointer(" + name + ")", "unsafe.Pointer"})
		default:
			w := word{name, "int32(" + name + ")", "int32"}
			if text(typ) == "float64" {
				w = word{name, name, "float64"}
			}
			all = append(all, w)
		}
	}
	return all
}

// offsets are those of the fields of the structs that a kernel takes, "Type_Field".
func (k kernel) offsets() map[string]int {
	at := map[string]int{}
	for _, typ := range k.structs() {
		offset := 0
		for name := range names(source.structs[typ].Fields) {
			at[typ+"_"+name] = offset
			offset += 8
		}
	}
	return at
}
