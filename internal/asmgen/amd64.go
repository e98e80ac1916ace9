package main

// What AVX2 and AVX-512 share: the general registers of amd64, how operands are written,
// and the instructions that differ in their registers alone. The tables are in avx2.go
// and avx512.go. K7 and vector register 15 are those of tails.

import "fmt"

// amd64 is the part of a table that both sets have; letter is that of the vector
// registers.
func amd64(letter string, a Arch) *Arch {
	a.memoryOperands = true
	a.regs = []string{"AX", "BX", "CX", "DX", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14"}
	for op, mnemonic := range map[Op]string{
		opAddR: "ADDQ", opSubR: "SUBQ", opIncR: "INCQ", opDecR: "DECQ", opAndR: "ANDQ",
		opShlR: "SHLQ", opShrR: "SHRQ", opMulR: "IMULQ", opNegR: "NEGQ",
		opAdd: "VADDPD", opSub: "VSUBPD", opMul: "VMULPD", opDiv: "VDIVPD", opMax: "VMAXPD", opMin: "VMINPD",
		opAddInt: "VPADDQ",
	} {
		a.op[op] = mnemonic
	}
	a.jump = "JMP"
	a.jumps = [...]string{EQ: "JEQ", NE: "JNE", LT: "JLT", LE: "JLE", GT: "JGT", GE: "JGE"}

	// v is a register of full width or another operand.
	v := func(f *Func, o Operand) string {
		if r, ok := o.(Vec); ok {
			return fmt.Sprint(letter, f.vec(r))
		}
		return f.amd64(o)
	}
	a.intOp = func(f *Func, op Op, to Reg, by Operand) {
		if by == nil {
			f.line("%s %s", f.op[op], f.amd64(to))
		} else {
			f.line("%s %s, %s", f.op[op], f.amd64(by), f.amd64(to))
		}
	}
	a.moveR = func(f *Func, to Reg, from Operand) { f.line("MOVQ %s, %s", f.amd64(from), f.amd64(to)) }
	a.wordR = func(f *Func, to Reg, from Mem) { f.line("MOVL %s, %s", f.amd64(from), f.amd64(to)) }
	a.zeroAt = func(f *Func, m Mem) { f.line("MOVQ $0, %s", f.amd64(m)) }
	a.zeroR = func(f *Func, r Reg) { f.line("XORQ %s, %[1]s", f.amd64(r)) }
	a.addressR = func(f *Func, to Reg, m Mem) { f.line("LEAQ %s, %s", f.amd64(m), f.amd64(to)) }
	a.tableR = func(f *Func, to Reg, symbol string) { f.line("LEAQ %s<>(SB), %s", symbol, f.amd64(to)) }
	a.compareR = func(f *Func, x Reg, b Operand) {
		if b == Imm(0) {
			f.line("TESTQ %s, %[1]s", f.amd64(x))
		} else {
			f.line("CMPQ %s, %s", f.amd64(x), f.amd64(b))
		}
	}
	a.leave = func(f *Func) {
		f.line("VZEROUPPER")
		f.line("RET")
	}

	a.vecOp = func(f *Func, op Op, dst, x Vec, b Operand) {
		mnemonic := f.op[op]
		if _, ok := b.(Repeat); ok {
			if !f.masked {
				f.fail("%s has no repeated operands", f.Name)
			}
			mnemonic += ".BCST"
		}
		f.line("%s %s, %s, %s", mnemonic, v(f, b), v(f, x), v(f, dst))
	}
	a.sqrt = func(f *Func, dst, x Vec) { f.line("VSQRTPD %s, %s", v(f, x), v(f, dst)) }
	a.shift = func(f *Func, left bool, dst, x Vec, n int) {
		mnemonic := "VPSRLQ"
		if left {
			mnemonic = "VPSLLQ"
		}
		f.line("%s $%d, %s, %s", mnemonic, n, v(f, x), v(f, dst))
	}
	a.clear = func(f *Func, r Vec) { f.line("%s %s, %[2]s, %[2]s", f.op[opXor], v(f, r)) }
	a.copy = func(f *Func, dst, x Vec) { f.line("VMOVAPD %s, %s", v(f, x), v(f, dst)) }
	a.load = func(f *Func, dst Vec, from Operand) { f.line("VMOVUPD %s, %s", v(f, from), v(f, dst)) }
	a.store = func(f *Func, m Mem, x Vec) { f.line("VMOVUPD %s, %s", v(f, x), v(f, m)) }
	a.broadcast = func(f *Func, dst Vec, from Operand) {
		if r, ok := from.(Vec); ok {
			f.line("VBROADCASTSD X%d, %s", f.vec(r), v(f, dst))
		} else {
			f.line("VBROADCASTSD %s, %s", v(f, from), v(f, dst))
		}
	}
	a.loadFirst = func(f *Func, dst Vec, m Mem) { f.line("VMOVSD %s, X%d", f.amd64(m), f.vec(dst)) }
	a.storeFirst = func(f *Func, to Operand, x Vec) { f.line("VMOVSD X%d, %s", f.vec(x), f.amd64(to)) }
	a.firstOp = func(f *Func, op Op, dst, x, b Vec) {
		f.line("%s X%d, X%d, X%d", scalar(f.op[op]), f.vec(b), f.vec(x), f.vec(dst))
	}
	return &a
}

// scalar is the mnemonic on lane 0 alone.
func scalar(mnemonic string) string { return mnemonic[:len(mnemonic)-2] + "SD" }

// amd64 is an operand that is no vector register.
func (f *Func) amd64(o Operand) string {
	switch o := o.(type) {
	case Reg:
		return f.regs[o]
	case Imm:
		return fmt.Sprintf("$%d", o)
	case Arg:
		return fmt.Sprintf("%s+%d(FP)", o.name, o.off)
	case Const:
		return o.name + "<>(SB)"
	case Repeat:
		return f.amd64(o.Mem)
	case Mem:
		s := o.Field
		if s == "" && o.Off != 0 {
			s = fmt.Sprint(o.Off)
		} else if o.Off != 0 {
			s += fmt.Sprintf("+%d", o.Off)
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

// predicates are the comparisons as VCMPPD has them.
var predicates = [...]int{less: 0x11, unordered: 0x03, notLess: 0x15, greater: 0x1e, atLeast: 0x1d,
	equal: 0x00, notAtMost: 0x16}

// lowHalf ends reduce: it joins the lanes of a register of four, t, into lane 0 of a.
func (f *Func) lowHalf(extract string, op Op, a, t int) {
	f.line("%s $1, Y%d, X%d", extract, t, a)
	f.line("%s X%d, X%d, X%d", f.op[op], a, t, a)
	f.line("VPERMILPD $1, X%d, X%d", a, t)
	f.line("%s X%d, X%d, X%d", scalar(f.op[op]), t, a, a)
}

// oneAfterTheOther puts the high parts of a table before the low ones.
func oneAfterTheOther(hi, lo []uint64) []uint64 { return append(append([]uint64{}, hi...), lo...) }
