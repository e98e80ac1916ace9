package main

// The text of one kernel while it is written: arguments, constants, labels, and a method
// for each operation. Where an operation has a result, that comes first.

import (
	"fmt"
	"go/ast"
	"math"
	"slices"
	"strings"
)

// Func is a kernel written for one set of instructions.
type Func struct {
	*Arch
	Table
	file   *File
	name   string
	head   string
	offset map[string]int    // of arguments
	types  map[string]string // of the structs that arguments point to
	inGo   *ast.FuncDecl     // the loop
	out    strings.Builder
	labels int
	// Of weave: the number of registers that each instance has for its own, or 0, the
	// instance that is written and what it has written.
	own      int
	instance int
	woven    []instruction
	sums     sums // of arm64.go
}

// File is the text of an assembly file.
type File struct {
	body      strings.Builder
	constants map[string][]uint64
	order     []string // of constants each on its own
	pool      []string // of those that lie together, see arm64.go
}

// instruction is some lines of assembly. When instances are woven, lines that all of
// them would write before their own are written once.
type instruction struct{ shared, own []string }

// Label is a place to jump to.
type Label string

// newFunc writes kernel k, all but its end.
func newFunc(file *File, k kernel, set *Arch) *Func {
	f := &Func{Arch: set, file: file, name: string(k) + set.Name, offset: map[string]int{},
		types: k.structs(), inGo: k.loop()}
	size := k.layout(f.offset)
	requires := ""
	if set.Requires != "" {
		requires = "// Requires: " + set.Requires + "\n"
	}
	f.Table = set.table(f)
	f.head = fmt.Sprintf("\n// %s\n%sTEXT ·%s(SB), NOSPLIT, $0-%d\n", k.signature(set.Name), requires, f.name,
		size)
	text, is := texts[k]
	if !is {
		text = (*Func).compile
	}
	text(f)
	return f
}

// end writes the return and adds the kernel to its file.
func (f *Func) end() {
	f.leave()
	f.file.body.WriteString(f.head)
	f.file.body.WriteString(f.out.String())
}

// fail ends the program: a kernel asks for what there is not.
func (f *Func) fail(format string, args ...any) {
	panic(f.name + ": " + fmt.Sprintf(format, args...))
}

// line writes an instruction of one line.
func (f *Func) line(format string, args ...any) {
	f.emit(instruction{own: []string{fmt.Sprintf(format, args...)}})
}

// emit writes an instruction, or keeps it for weave.
func (f *Func) emit(in instruction) {
	if f.own > 0 {
		f.sums.forget()
		f.woven = append(f.woven, in)
		return
	}
	for _, l := range slices.Concat(in.shared, in.own) {
		f.out.WriteString("\t" + l + "\n")
	}
}

// weave writes n instances of a straight text, instruction by instruction in turn:
// a long chain alone would leave the units idle. Registers below own stand for
// own·u and on in instance u; the others are shared. Where two instances add to the
// same register they do so in their order.
func (f *Func) weave(n, own int, text func(u int)) {
	all := make([][]instruction, n)
	for u := range n {
		f.own, f.instance, f.woven = own, u, nil
		f.sums.forget()
		text(u)
		all[u] = f.woven
	}
	f.own, f.instance, f.woven = 0, 0, nil
	for u := range n {
		if len(all[u]) != len(all[0]) {
			f.fail("instances that are woven differ")
		}
	}
	for k, first := range all[0] {
		for u := range n {
			in := all[u][k]
			if u > 0 && slices.Equal(in.shared, first.shared) {
				in.shared = nil
			}
			f.emit(in)
		}
	}
}

// vec is the number of a vector register in this instance.
func (f *Func) vec(r Vec) int {
	i := int(r)
	if i < f.own {
		i += f.instance * f.own
	}
	if i >= f.Vectors {
		f.fail("out of registers")
	}
	return i
}

// mask is the mask of this instance: v where the set has no mask registers.
func (f *Func) mask(v Vec) Mask { return Mask{1 + f.instance, v} }

// Arguments. A slice has two words, "x_base" and "x_len". An argument that points to a
// struct stands for its fields, "c.X".

// arg is the operand of an argument, "x_base", "x_len" or "x".
func (f *Func) arg(name string) Arg {
	at, ok := f.offset[name]
	if !ok {
		f.fail("no argument %s", name)
	}
	return Arg{name, at}
}

// base brings the address of a slice, an argument, into a register and returns that.
func (f *Func) base(slice string, in Reg) Reg { return f.value(slice+"_base", in) }

// length brings the length of a slice, an argument, into a register and returns that.
func (f *Func) length(slice string, in Reg) Reg { return f.value(slice+"_len", in) }

// value brings an argument of one word into a register and returns that.
func (f *Func) value(name string, in Reg) Reg {
	f.moveR(in, f.arg(name))
	return in
}

// field is the place of a field "c.X" of the struct at address at, to which argument c
// points. go_asm.h, which the compiler writes, defines its offset.
func (f *Func) field(at Reg, name string) Mem {
	pointer, field, _ := strings.Cut(name, ".")
	typ, ok := f.types[pointer]
	if !ok {
		f.fail("no struct at %s", pointer)
	}
	return Mem{Base: at, Field: typ + "_" + field}
}

// result is the operand of the kernel's result.
func (f *Func) result() Arg { return f.arg("ret") }

// Constants.

func bits(v float64) uint64 { return math.Float64bits(v) }

// c is the operand of a register full of the number v.
func (f *Func) c(name string, v float64) Const { return f.w(name, bits(v)) }

// w is the operand of a register full of the word.
func (f *Func) w(name string, word uint64) Const {
	place := &f.file.order
	if f.pooled {
		place = &f.file.pool
	}
	f.file.constant(place, name, slices.Repeat([]uint64{word}, 8))
	return Const{name, word}
}

// tableR brings the address of a table of words into a register.
func (f *Func) tableR(to Reg, name string, words []uint64) {
	f.file.constant(&f.file.order, name, words)
	f.symbolR(to, name)
}

// constant adds one to the file, if it is new, and to a list.
func (t *File) constant(list *[]string, name string, words []uint64) {
	if _, ok := t.constants[name]; !ok {
		t.constants[name] = words
		*list = append(*list, name)
	}
}

// data is the text of the file's data, which goes before its kernels.
func (t *File) data() string {
	var b strings.Builder
	t.poolData(&b)
	for _, name := range t.order {
		b.WriteString("\n")
		words := t.constants[name]
		for i, w := range words {
			fmt.Fprintf(&b, "DATA %s<>+%d(SB)/8, $0x%016x\n", name, 8*i, w)
		}
		fmt.Fprintf(&b, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, 8*len(words))
	}
	return b.String()
}

// Labels and jumps.

// label is a new one; the hint is its name but for a number.
func (f *Func) label(hint string) Label {
	f.labels++
	return Label(fmt.Sprintf("%s%d", hint, f.labels))
}

// at puts a label here.
func (f *Func) at(l Label) {
	if f.own > 0 {
		f.fail("a label in a text that is woven")
	}
	fmt.Fprintf(&f.out, "%s:\n", l)
	f.sums.forget()
}

// jump goes on at l.
func (f *Func) jump(l Label) { f.line("%s %s", f.Arch.jump, l) }

// jumpIf goes on at l if the result of the operation just before compares so to 0:
// after subR, decR and andR only.
func (f *Func) jumpIf(c Cond, l Label) { f.line("%s %s", f.jumps[c], l) }

// branch goes on at l if a compares so to b, a Reg, Imm or Arg.
func (f *Func) branch(a Reg, c Cond, b Operand, l Label) {
	f.compareR(a, b)
	f.jumpIf(c, l)
}

// General registers. Their operations end in R.

func (f *Func) addR(to Reg, by Operand) { f.intOp(opAddR, to, by) }  // to += by, a Reg or Imm
func (f *Func) subR(to Reg, by Operand) { f.intOp(opSubR, to, by) }  // to -= by, a Reg or Imm
func (f *Func) mulR(to Reg, by Reg)     { f.intOp(opMulR, to, by) }  // to *= by
func (f *Func) andR(to Reg, by Imm)     { f.intOp(opAndR, to, by) }  // to &= by
func (f *Func) shlR(to Reg, by Imm)     { f.intOp(opShlR, to, by) }  // to <<= by
func (f *Func) shrR(to Reg, by Imm)     { f.intOp(opShrR, to, by) }  // to >>= by, zeros coming in
func (f *Func) incR(to Reg)             { f.intOp(opIncR, to, nil) } // to++
func (f *Func) decR(to Reg)             { f.intOp(opDecR, to, nil) } // to--
func (f *Func) negR(to Reg)             { f.intOp(opNegR, to, nil) } // to = -to

// advance moves addresses on by n bytes.
func (f *Func) advance(n int, regs ...Reg) {
	for _, r := range regs {
		f.addR(r, Imm(n))
	}
}

// triple is to = 3 of.
func (f *Func) triple(to, of Reg) { f.addressR(to, mem(0, of, of.times(2))) }

// Vector registers. An operand b is a Vec, Mem or Const.

func (f *Func) add(dst, a Vec, b Operand) { f.vecOp(opAdd, dst, a, b) } // a + b
func (f *Func) sub(dst, a Vec, b Operand) { f.vecOp(opSub, dst, a, b) } // a - b
func (f *Func) mul(dst, a Vec, b Operand) { f.vecOp(opMul, dst, a, b) } // a b
func (f *Func) div(dst, a Vec, b Operand) { f.vecOp(opDiv, dst, a, b) } // a / b
// the larger; amd64: b if either is NaN
func (f *Func) max(dst, a Vec, b Operand) { f.vecOp(opMax, dst, a, b) }

// the smaller; amd64: b if either is NaN
func (f *Func) min(dst, a Vec, b Operand)    { f.vecOp(opMin, dst, a, b) }
func (f *Func) and(dst, a Vec, b Operand)    { f.vecOp(opAnd, dst, a, b) }    // the bits of a and b
func (f *Func) andInt(dst, a Vec, b Operand) { f.vecOp(opAndInt, dst, a, b) } // as and
func (f *Func) or(dst, a Vec, b Operand)     { f.vecOp(opOr, dst, a, b) }     // the bits of a or b
// the bits of a or b but not both
func (f *Func) xor(dst, a Vec, b Operand)    { f.vecOp(opXor, dst, a, b) }
func (f *Func) addInt(dst, a Vec, b Operand) { f.vecOp(opAddInt, dst, a, b) } // a + b as integers
// the bits of a, n to the left
func (f *Func) shl(dst, a Vec, n Imm) { f.vecOp(opShl, dst, a, n) }

// the bits of a, n to the right
func (f *Func) shr(dst, a Vec, n Imm) { f.vecOp(opShr, dst, a, n) }

// addProduct is sum = sum + a b, with two roundings; t is scratch.
func (f *Func) addProduct(sum, a Vec, b Operand, t Vec) {
	f.mul(t, a, b)
	f.add(sum, sum, t)
}

// addProductTo is place = place + a b, with two roundings; t is scratch.
func (f *Func) addProductTo(place Mem, a Vec, b Operand, t Vec) {
	f.mul(t, a, b)
	f.add(t, t, place)
	f.store(place, t)
}

// magnitude is |a|.
func (f *Func) magnitude(dst, a Vec) { f.and(dst, a, f.w("magnitude", 1<<63-1)) }

// negate is -a.
func (f *Func) negate(dst, a Vec) { f.xor(dst, a, f.w("sign", 1<<63)) }

// chooseIf sets dst to yes where a compares so to b, else leaves it; t is scratch.
func (f *Func) chooseIf(dst, a Vec, cmp Cmp, b, yes Operand, t Vec) {
	f.compare(f.mask(t), a, cmp, b)
	f.choose(f.mask(t), dst, yes, dst)
}

// keepIf zeroes dst where a does not compare so to b; t is scratch.
func (f *Func) keepIf(dst, a Vec, cmp Cmp, b Operand, t Vec) {
	f.compare(f.mask(t), a, cmp, b)
	f.keep(f.mask(t), dst)
}

// reduce is [Table.reduceBy] of sums; V1 is scratch.
func (f *Func) reduce(r Vec) { f.reduceBy(opAdd, r, V1) }

// sumTo sets to, a Mem or Arg, to the sum of the lanes of the block at r, as kernel.Reduce
// adds them. The block and V1 are scratch.
func (f *Func) sumTo(to Operand, r Vec) {
	f.reduce(r)
	f.storeFirst(to, r)
}
