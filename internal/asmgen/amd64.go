package main

// What AVX2 and AVX-512 share: the general registers of amd64, how operands are written,
// and the instructions that differ in their registers alone. The tables are in avx2.go
// and avx512.go. K7 and vector register 15 are those of tails.

import (
	"fmt"
	"strings"
)

// amd64 adds what both sets have.
func amd64(a Arch) *Arch {
	a.regs = []string{"AX", "BX", "CX", "DX", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14"}
	for op, mnemonic := range map[Op]string{
		opAddR: "ADDQ", opSubR: "SUBQ", opIncR: "INCQ", opDecR: "DECQ", opAndR: "ANDQ",
		opShlR: "SHLQ", opShrR: "SHRQ", opMulR: "IMULQ", opNegR: "NEGQ",
		opAdd: "VADDPD", opSub: "VSUBPD", opMul: "VMULPD", opDiv: "VDIVPD", opMax: "VMAXPD", opMin: "VMINPD",
		opAddInt: "VPADDQ", opShl: "VPSLLQ", opShr: "VPSRLQ",
	} {
		a.op[op] = mnemonic
	}
	a.jump = "JMP"
	a.jumps = [...]string{EQ: "JEQ", NE: "JNE", LT: "JLT", LE: "JLE", GT: "JGT", GE: "JGE"}
	return &a
}

// amd64Table is the part of a table that both sets have.
func amd64Table(f *Func) Table {
	return Table{
		intOp: func(op Op, to Reg, by Operand) {
			if by == nil {
				f.x86(f.op[op], to)
			} else {
				f.x86(f.op[op], by, to)
			}
		},
		moveR:    func(to Reg, from Operand) { f.x86("MOVQ", from, to) },
		wordR:    func(to Reg, from Mem) { f.x86("MOVL", from, to) },
		zeroAt:   func(m Mem) { f.x86("MOVQ", Imm(0), m) },
		zeroR:    func(r Reg) { f.x86("XORQ", r, r) },
		addressR: func(to Reg, m Mem) { f.x86("LEAQ", m, to) },
		symbolR:  func(to Reg, symbol string) { f.x86("LEAQ", Const{name: symbol}, to) },
		compareR: func(a Reg, b Operand) {
			if b == Imm(0) {
				f.x86("TESTQ", a, a)
			} else {
				f.x86("CMPQ", a, b)
			}
		},
		leave: func() {
			f.line("VZEROUPPER")
			f.line("RET")
		},

		vecOp: func(op Op, dst, a Vec, b Operand) {
			mnemonic := f.op[op]
			if _, ok := b.(Repeat); ok {
				if !f.masked {
					f.fail("%s has no repeated operands", f.Name)
				}
				mnemonic += ".BCST"
			}
			f.x86(mnemonic, b, a, dst)
		},
		sqrt:  func(dst, a Vec) { f.x86("VSQRTPD", a, dst) },
		clear: func(r Vec) { f.xor(r, r, r) },
		copy:  func(dst, a Vec) { f.x86("VMOVAPD", a, dst) },
		load:  func(dst Vec, from Operand) { f.x86("VMOVUPD", from, dst) },
		store: func(m Mem, a Vec) { f.x86("VMOVUPD", a, m) },
		broadcast: func(dst Vec, from Operand) {
			if r, ok := from.(Vec); ok {
				from = f.x(r)
			}
			f.x86("VBROADCASTSD", from, dst)
		},
		loadFirst:  func(dst Vec, m Mem) { f.x86("VMOVSD", m, f.x(dst)) },
		storeFirst: func(to Operand, a Vec) { f.x86("VMOVSD", f.x(a), to) },
		firstOp: func(op Op, dst, a, b Vec) {
			f.x86(strings.TrimSuffix(f.op[op], "PD")+"SD", f.x(b), f.x(a), f.x(dst))
		},
	}
}

// x86 writes an instruction, its operands in the order of Go's assembler.
func (f *Func) x86(mnemonic string, operands ...Operand) {
	var texts []string
	for _, o := range operands {
		texts = append(texts, f.amd64(o))
	}
	f.line("%s %s", mnemonic, strings.Join(texts, ", "))
}

// amd64 is an operand as the assembler has it, a vector register of full width.
func (f *Func) amd64(o Operand) string {
	switch o := o.(type) {
	case Reg:
		return f.regs[o]
	case Vec:
		return fmt.Sprint(f.letter, f.vec(o))
	case named:
		return string(o)
	case Imm:
		return fmt.Sprintf("$%d", o)
	case Arg:
		return o.text()
	case Const:
		return o.name + "<>(SB)"
	case Repeat:
		return f.amd64(o.Mem)
	case Mem:
		s := ""
		if o.Field != "" || o.Off != 0 {
			s = offset(o.Field, o.Off)
		}
		s += "(" + f.regs[o.Base] + ")"
		if o.Index.Scale != 0 {
			s += fmt.Sprintf("(%s*%d)", f.regs[o.Index.Reg], o.Index.Scale)
		}
		return s
	}
	f.fail("operand %v", o)
	return ""
}

// named is an operand by its name.
type named string

func (named) operand() {}

// x and y are the low two and four lanes of a vector register.
func (f *Func) x(r Vec) named { return named(fmt.Sprint("X", f.vec(r))) }
func (f *Func) y(r Vec) named { return named(fmt.Sprint("Y", f.vec(r))) }

// hex is a number whose bits say something.
func hex(bits int) named { return named(fmt.Sprintf("$0x%02x", bits)) }

// predicates are the comparisons as VCMPPD has them.
var predicates = [...]named{less: hex(0x11), unordered: hex(0x03), notLess: hex(0x15), greater: hex(0x1e),
	atLeast: hex(0x1d), equal: hex(0x00), notAtMost: hex(0x16)}

// lowHalf ends reduceBy: it joins the lanes of a register of four, t, into lane 0 of a.
func (f *Func) lowHalf(extract string, op Op, a, t Vec) {
	f.x86(extract, Imm(1), f.y(t), f.x(a))
	f.x86(f.op[op], f.x(a), f.x(t), f.x(a))
	f.x86("VPERMILPD", Imm(1), f.x(a), f.x(t))
	f.firstOp(op, a, a, t)
}

// pairSums ends reduceEach: it sets a to the sums of pairs of lanes, of a and of b in turns. t and t+1 are
// scratch.
func (f *Func) pairSums(a, b, t Vec) {
	f.x86("VUNPCKLPD", b, a, t)
	f.x86("VUNPCKHPD", b, a, t+1)
	f.add(a, t, t+1)
}
