package main

// NEON of arm64: registers of two lanes, four of them a block. V0 to V27 are the
// kernel's; V28 holds an operand of memory, V29 a constant, V30 and V31 are scratch, as
// are R19 and R20; R14 has the address of the constants. Arithmetic has no operands in
// memory, an address has not both an index and an offset, and there are no masked loads:
// the last number of an odd count goes into the low lane, the other being 0.
//
// FMUL and FADD stay apart: FMLA would keep bits that the loops in Go round away.
// FMAX and FMIN are max and min of Go, NaN for NaN; a 0 found by [extent] may have the
// other sign than that of its loop, as on amd64. The assembler of Go lacks arithmetic
// on vectors of doubles: such an instruction is a word with its name beside it.

import (
	"fmt"
	"slices"
	"strings"
)

const (
	memory, fixed, scratch, other = 28, 29, 30, 31
	poolAt                        = "R14"
)

var neon = &Arch{
	Name:    "NEON",
	Lanes:   2,
	Vectors: memory,
	pooled:  true,
	regs:    numbered,
	op: [ops]string{
		opAddR: "ADD", opSubR: "SUBS", opIncR: "ADD", opDecR: "SUBS", opAndR: "ANDS",
		opShlR: "LSL", opShrR: "LSR", opMulR: "MUL", opNegR: "NEG",
		opAdd: "FADD", opSub: "FSUB", opMul: "FMUL", opDiv: "FDIV", opMax: "FMAX", opMin: "FMIN",
		opAnd: "VAND", opAndInt: "VAND", opOr: "VORR", opXor: "VEOR", opAddInt: "VADD",
		opShl: "VSHL", opShr: "VUSHR",
	},
	jump:  "B",
	jumps: [...]string{EQ: "BEQ", NE: "BNE", LT: "BLT", LE: "BLE", GT: "BGT", GE: "BGE"},
	table: neonTable,
}

func neonTable(f *Func) Table {
	table := twoLanes(f)
	table.intOp = func(op Op, to Reg, by Operand) {
		r := f.regs[to]
		switch {
		case op == opNegR:
			f.line("NEG %s, %s", r, r)
		case by == nil: // to++ and to--
			f.line("%s $1, %s, %s", f.op[op], r, r)
		default:
			f.line("%s %s, %s, %s", f.op[op], f.arm64(nil, by), r, r)
		}
		f.written(r)
	}
	table.moveR = func(to Reg, from Operand) {
		f.read("MOVD", from, f.regs[to])
		f.written(f.regs[to])
	}
	table.wordR = func(to Reg, from Mem) {
		f.read("MOVWU", from, f.regs[to])
		f.written(f.regs[to])
	}
	table.zeroR = func(r Reg) {
		f.line("MOVD ZR, %s", f.regs[r])
		f.written(f.regs[r])
	}
	table.zeroAt = func(m Mem) { f.write("MOVD", "ZR", m) }
	table.addressR = func(to Reg, m Mem) {
		var in instruction
		r, from := f.regs[to], f.regs[m.Base]
		if m.Index.Scale != 0 {
			in.add("ADD %s, %s, %s", f.indexed(m.Index), from, r)
			from = r
		}
		if m.Off != 0 || m.Index.Scale == 0 {
			in.plus(r, from, "", m.Off)
		}
		f.emit(in)
		f.written(r)
	}
	table.symbolR = func(to Reg, symbol string) {
		f.line("MOVD $%s<>(SB), %s", symbol, f.regs[to])
		f.written(f.regs[to])
	}
	table.compareR = func(a Reg, b Operand) {
		var in instruction
		with := f.arm64(&in, b)
		if _, ok := b.(Arg); ok {
			in.add("MOVD %s, R19", with)
			with = "R19"
		}
		in.add("CMP %s, %s", with, f.regs[a])
		f.emit(in)
	}
	table.leave = func() {
		if f.sums.pooled {
			f.head += "\tMOVD $constants<>(SB), " + poolAt + "\n"
		}
		f.line("RET")
	}

	table.vecOp = func(op Op, dst, a Vec, b Operand) {
		if n, is := b.(Imm); is {
			f.line("%s $%d, V%d.D2, V%d.D2", f.op[op], n, f.vec(a), f.vec(dst))
			return
		}
		var in instruction
		y, x, to := f.operand(&in, b), f.vec(a), f.vec(dst)
		switch op {
		case opAnd, opAndInt, opOr, opXor:
			in.add("%s V%d.B16, V%d.B16, V%d.B16", f.op[op], y, x, to)
		case opAddInt:
			in.add("%s V%d.D2, V%d.D2, V%d.D2", f.op[op], y, x, to)
		default:
			in.word(f.op[op], to, x, y)
		}
		f.emit(in)
	}
	table.sqrt = func(dst, a Vec) {
		var in instruction
		in.word("FSQRT", f.vec(dst), f.vec(a), -1)
		f.emit(in)
	}
	table.clear = func(r Vec) { f.xor(r, r, r) }
	table.copy = func(dst, a Vec) { f.line("VMOV V%d.B16, V%d.B16", f.vec(a), f.vec(dst)) }
	table.load = func(dst Vec, from Operand) { f.read("FMOVQ", from, f.float(dst)) }
	table.store = func(m Mem, a Vec) { f.write("FMOVQ", f.float(a), m) }
	table.broadcast = func(dst Vec, from Operand) {
		var in instruction
		r, inVector := from.(Vec)
		m, inMemory := from.(Mem)
		switch {
		case inVector:
			in.add("VDUP V%d.D[0], V%d.D2", f.vec(r), f.vec(dst))
		case inMemory && m.Field == "":
			in.add("VLD1R %s, [V%d.D2]", f.address(&in, m, true), f.vec(dst))
		default:
			in.shared = []string{fmt.Sprintf("MOVD %s, R19", f.arm64(&in, from))}
			in.add("VDUP R19, V%d.D2", f.vec(dst))
		}
		f.emit(in)
	}
	table.loadFirst = func(dst Vec, m Mem) { f.read("FMOVD", m, f.float(dst)) }
	table.storeFirst = func(to Operand, a Vec) { f.write("FMOVD", f.float(a), to) }
	table.firstOp = func(op Op, dst, a, b Vec) {
		f.line("%sD %s, %s, %s", f.op[op], f.float(b), f.float(a), f.float(dst))
	}
	table.compare = func(m Mask, a Vec, cmp Cmp, b Operand) {
		var in instruction
		y, x, to := f.operand(&in, b), f.vec(a), f.vec(m.v)
		if cmp == less || cmp == notLess || cmp == notAtMost {
			x, y = y, x
		}
		op := [...]string{less: "FCMGT", notLess: "FCMGT", greater: "FCMGT", atLeast: "FCMGE",
			notAtMost: "FCMGE", equal: "FCMEQ", unordered: "FCMEQ"}[cmp] // unordered: of a number with itself
		in.word(op, to, x, y)
		if cmp == notLess || cmp == notAtMost || cmp == unordered {
			in.word("MVN", to, to, -1)
		}
		f.emit(in)
	}
	table.choose = func(m Mask, dst Vec, yes Operand, no Vec) {
		var in instruction
		y, n, to, mask := f.operand(&in, yes), f.vec(no), f.vec(dst), f.vec(m.v)
		if to == y {
			in.add("VBIF V%d.B16, V%d.B16, V%d.B16", mask, n, to)
		} else {
			in.add("VBIT V%d.B16, V%d.B16, V%d.B16", mask, y, to)
		}
		f.emit(in)
	}
	table.reduceBy = func(op Op, block, _ Vec) {
		var in instruction
		mnemonic, r := f.op[op], f.vec(block)
		in.word(mnemonic, scratch, r, r+2)
		in.word(mnemonic, r, r+1, r+3)
		in.word(mnemonic, r, scratch, r)
		in.word(mnemonic+"P", r, r, -1)
		f.emit(in)
	}
	table.powersLookUp = func(at Reg, k, hi, lo, _, _ Vec) {
		var in instruction
		for i, to := range []int{scratch, other} {
			in.add("VMOV V%d.D[%d], R%d", f.vec(k), i, 19+i)
			in.add("AND $15, R%d, R%[1]d", 19+i)
			in.word("LDR", to, int(at), 19+i)
		}
		in.add("VZIP1 V%d.D2, V%d.D2, V%d.D2", other, scratch, f.vec(hi))
		in.add("VZIP2 V%d.D2, V%d.D2, V%d.D2", other, scratch, f.vec(lo))
		f.emit(in)
	}
	table.hold = func(r Vec) { f.line("FMOVD %s, %[1]s", f.float(r)) }
	return table
}

// read and write write a load, or a move, to a register and from one.
func (f *Func) read(mnemonic string, from Operand, to string) {
	var in instruction
	in.add("%s %s, %s", mnemonic, f.arm64(&in, from), to)
	f.emit(in)
}

func (f *Func) write(mnemonic, from string, to Operand) {
	var in instruction
	in.add("%s %s, %s", mnemonic, from, f.arm64(&in, to))
	f.emit(in)
}

// float is a vector register as FMOVD and FMOVQ have it.
func (f *Func) float(r Vec) string { return fmt.Sprint("F", f.vec(r)) }

// arm64 is an operand that is no vector register. What brings its address into a register goes to in.
func (f *Func) arm64(in *instruction, o Operand) string {
	switch o := o.(type) {
	case Reg:
		return f.regs[o]
	case Imm:
		return fmt.Sprintf("$%d", o)
	case Arg:
		return o.text()
	case Const:
		return f.constantAt(o)
	}
	return f.address(in, o.(Mem), false)
}

// What sets of two lanes share.

// numbered are the general registers of processors that number them.
var numbered = []string{"R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12"}

func twoLanes(f *Func) (table Table) {
	maskless(f, &table)
	table.eachTail = func(body func(part)) { body(f.firstPart(0)) }
	table.blockTail = f.pairTail
	table.divideBelow = f.divideWhatIsThere
	return table
}

// pairTail takes what is left of a block by two, and the last number alone.
func (f *Func) pairTail(done Label, body func(part)) {
	for h := range f.h() {
		one := f.label("one")
		f.branch(countR, LT, Imm(2), one)
		body(f.whole(h))
		f.subR(countR, Imm(2))
		f.jumpIf(EQ, done)
		f.jump(one + "next")
		f.at(one)
		body(f.firstPart(h))
		f.jump(done)
		f.at(one + "next")
	}
}

// divideWhatIsThere reads no number that is not there.
func (f *Func) divideWhatIsThere(h, dst Vec, m Mem, t, u Vec) {
	one, done := f.label("one"), f.label("have")
	f.clear(t)
	f.branch(countR, LT, Imm(2*h+1), done)
	f.jumpIf(EQ, one)
	f.load(t, m)
	f.jump(done)
	f.at(one)
	f.loadFirst(t, m)
	f.at(done)
	f.load(u, f.onesOf(R0, h))
	f.div(dst, dst, t)
	f.and(dst, dst, u)
}

// firstPart is register h of a block, of which the low lane is there.
func (f *Func) firstPart(h int) part {
	off := 8 * f.Lanes * h
	return part{
		get:  func(to Vec, at Reg) { f.loadFirst(to, mem(off, at)) },
		put:  func(at Reg, from Vec) { f.storeFirst(mem(off, at), from) },
		h:    Vec(h),
		tail: true,
	}
}

// text is the operand of an argument.
func (a Arg) text() string { return fmt.Sprintf("%s+%d(FP)", a.name, a.off) }

// indexed is an index as an operand of ADD.
func (f *Func) indexed(i Index) string {
	if i.Scale == 1 {
		return f.regs[i.Reg]
	}
	return fmt.Sprintf("%s<<%d", f.regs[i.Reg], i.shift())
}

// add adds a line.
func (in *instruction) add(format string, args ...any) {
	in.own = append(in.own, fmt.Sprintf(format, args...))
}

// encoding has the words of the instructions that the assembler lacks, all registers 0.
var encoding = map[string]uint32{
	"FADD": 0x4e60d400, "FSUB": 0x4ee0d400, "FMUL": 0x6e60dc00, "FDIV": 0x6e60fc00,
	"FMAX": 0x4e60f400, "FMIN": 0x4ee0f400, "FSQRT": 0x6ee1f800,
	"FCMEQ": 0x4e60e400, "FCMGE": 0x6e60e400, "FCMGT": 0x6ee0e400,
	"FADDP": 0x7e70d800, "FMAXP": 0x7e70f800, "FMINP": 0x7ef0f800,
	"MVN": 0x6e205800, "LDR": 0x3ce07800,
}

// word adds the line of dst = a op b; b is -1 where there is none.
func (in *instruction) word(op string, dst, a, b int) {
	w, ok := encoding[op]
	if !ok {
		panic("no encoding of " + op)
	}
	w |= uint32(dst) | uint32(a)<<5
	if b >= 0 {
		w |= uint32(b) << 16
	}
	name := fmt.Sprintf("%s V%d.2D, V%d.2D, V%d.2D", op, dst, a, b)
	switch {
	case strings.HasSuffix(op, "P"):
		name = fmt.Sprintf("%s D%d, V%d.2D", op, dst, a)
	case op == "LDR":
		name = fmt.Sprintf("LDR Q%d, [X%d, X%d, LSL #4]", dst, a, b)
	case op == "MVN":
		name = fmt.Sprintf("MVN V%d.16B, V%d.16B", dst, a)
	case b < 0:
		name = fmt.Sprintf("%s V%d.2D, V%d.2D", op, dst, a)
	}
	in.add("WORD $0x%08x // %s", w, name)
}

// operand is the register of a Vec, Mem or Const, loaded if need be.
func (f *Func) operand(in *instruction, o Operand) int {
	switch o := o.(type) {
	case Vec:
		return f.vec(o)
	case Const:
		in.shared = append(in.shared, fmt.Sprintf("FMOVQ %s, F%d", f.constantAt(o), fixed))
		return fixed
	case Mem:
		in.add("FMOVQ %s, F%d", f.address(in, o, false), memory)
		return memory
	}
	f.fail("operand %v", o)
	return 0
}

// Addresses. A sum of a base, an index and an offset goes into a register for addresses,
// and serves again while nothing that it was made of has changed.

// addresses are the registers for such sums.
var addresses = [...]string{"R13", "R15", "R16", "R17"}

// addressSum is base + index + off.
type addressSum struct {
	base  string
	index Index
	field string
	off   int
}

// sums says what the registers for addresses hold, a sum with no base for nothing, and
// which is next to go; and whether the kernel reads constants.
type sums struct {
	held   [len(addresses)]addressSum
	turn   int
	pooled bool
}

// forget forgets all of them, as code may come here from elsewhere.
func (s *sums) forget() { s.held = [len(addresses)]addressSum{} }

// written forgets sums of a register that changes.
func (f *Func) written(r string) {
	for i, k := range f.sums.held {
		if k.base == r || k.index.Scale != 0 && f.regs[k.index.Reg] == r {
			f.sums.held[i] = addressSum{}
		}
	}
}

// address is the operand of a load or store, whole the one without an offset.
func (f *Func) address(in *instruction, m Mem, whole bool) string {
	base := f.regs[m.Base]
	if m.Index.Scale != 0 {
		base = f.sum(in, addressSum{base: base, index: m.Index})
	}
	if m.Off == 0 && m.Field == "" {
		return "(" + base + ")"
	}
	if whole {
		return "(" + f.sum(in, addressSum{base: base, off: m.Off, field: m.Field}) + ")"
	}
	return offset(m.Field, m.Off) + "(" + base + ")"
}

// offset is that of a field, of a number of bytes, or of both.
func offset(field string, off int) string {
	switch {
	case field == "":
		return fmt.Sprint(off)
	case off == 0:
		return field
	}
	return fmt.Sprintf("%s+%d", field, off)
}

// plus adds the line of to = base + the offset.
func (in *instruction) plus(to, base, field string, off int) {
	if off < 0 {
		in.add("SUB $%d, %s, %s", -off, base, to)
	} else {
		in.add("ADD $%s, %s, %s", offset(field, off), base, to)
	}
}

// sum brings a sum, of an index or an offset, into a register for addresses and returns
// that.
func (f *Func) sum(in *instruction, k addressSum) string {
	if i := slices.Index(f.sums.held[:], k); i >= 0 {
		return addresses[i]
	}
	i := f.sums.turn % len(addresses)
	f.sums.turn++
	r := addresses[i]
	f.written(r) // sums of what it held
	f.sums.held[i] = k
	if k.index.Scale != 0 {
		in.add("ADD %s, %s, %s", f.indexed(k.index), k.base, r)
	} else {
		in.plus(r, k.base, k.field, k.off)
	}
	return r
}

// Constants lie together, so that the address of one serves for all.

// constantAt is the address of a constant.
func (f *Func) constantAt(c Const) string {
	f.sums.pooled = true
	return fmt.Sprintf("%d(%s)", 16*slices.Index(f.file.pool, c.name), poolAt)
}

// poolData writes those that have one.
func (t *File) poolData(b *strings.Builder) {
	if len(t.pool) == 0 {
		return
	}
	b.WriteString("\n")
	for i, name := range t.pool {
		for half, w := range t.constants[name][:2] {
			fmt.Fprintf(b, "DATA constants<>+%d(SB)/8, $0x%016x // %s\n", 16*i+8*half, w, name)
		}
	}
	fmt.Fprintf(b, "GLOBL constants<>(SB), RODATA|NOPTR, $%d\n", 16*len(t.pool))
}
