package main

// SIMD128 of WebAssembly: registers of two lanes, four of them a block, as NEON has them.
// Registers are locals, of which there are as many as asked for; general registers have 32
// bits, as addresses do. A line is some instructions of the stack machine between
// semicolons, which module.go encodes; there labels and jumps become blocks and loops.
//
// max and min are pmax and pmin with their operands exchanged, which are those of amd64;
// f64x2.max would take six instructions there for NaN and the sign of 0. Constants stay
// in locals, one each. Tables lie in Go's memory: their address is an argument.

import "fmt"

var simd128 = &Arch{
	Name:    "SIMD128",
	Lanes:   2,
	Vectors: 28,
	regs:    numbered,
	op: [ops]string{
		opAddR: "i32.add", opSubR: "i32.sub", opIncR: "i32.add", opDecR: "i32.sub", opAndR: "i32.and",
		opShlR: "i32.shl", opShrR: "i32.shr_u", opMulR: "i32.mul",
		opAdd: "f64x2.add", opSub: "f64x2.sub", opMul: "f64x2.mul", opDiv: "f64x2.div", opMax: "f64x2.pmax",
		opMin: "f64x2.pmin",
		opAnd: "v128.and", opAndInt: "v128.and", opOr: "v128.or", opXor: "v128.xor", opAddInt: "i64x2.add",
		opShl: "i64x2.shl", opShr: "i64x2.shr_u",
	},
	jump: "br",
	jumps: [...]string{EQ: ifWasm("eq"), NE: ifWasm("ne"), LT: ifWasm("lt_s"), LE: ifWasm("le_s"),
		GT: ifWasm("gt_s"), GE: ifWasm("ge_s")},

	table: simd128Table,
}

func simd128Table(f *Func) Table {
	table := twoLanes(f)
	table.intOp = func(op Op, to Reg, by Operand) {
		r := f.regs[to]
		switch {
		case op == opNegR:
			f.line("i32.const 0; local.get %s; i32.sub; local.set %[1]s", r)
			return
		case by == nil:
			by = Imm(1)
		}
		f.line("local.get %s; %s; %s; local.set %[1]s", r, f.wasm(by), f.op[op])
		if op == opSubR || op == opDecR || op == opAndR {
			f.line("local.get %s; local.set left; i32.const 0; local.set right", r)
		}
	}
	table.moveR = func(to Reg, from Operand) {
		if m, ok := from.(Mem); ok {
			f.wordR(to, m)
			return
		}
		f.line("%s; local.set %s", f.wasm(from), f.regs[to])
	}
	table.wordR = func(to Reg, from Mem) {
		f.line("%s; local.set %s", f.fromWasm("i32.load", from), f.regs[to])
	}
	table.zeroR = func(r Reg) { f.moveR(r, Imm(0)) }
	table.zeroAt = func(m Mem) { f.line("%s; i64.const 0; i64.store %s", f.wasmAddress(m), wasmOffset(m)) }
	table.addressR = func(to Reg, m Mem) {
		f.line("%s; i32.const %d; i32.add; local.set %s", f.wasmAddress(Mem{Base: m.Base, Index: m.Index}),
			m.Off, f.regs[to])
	}
	table.symbolR = func(to Reg, symbol string) { f.line("table %s; local.set %s", symbol, f.regs[to]) }
	table.compareR = func(a Reg, b Operand) {
		f.line("local.get %s; local.set left; %s; local.set right", f.regs[a], f.wasm(b))
	}

	// set writes instructions that leave a vector on the stack, and puts it into a register.
	set := func(dst Vec, format string, args ...any) {
		f.line("%s; local.set V%d", fmt.Sprintf(format, args...), f.vec(dst))
	}
	table.vecOp = func(op Op, dst, a Vec, b Operand) {
		x, y := f.wasm(a), f.wasm(b)
		if op == opMax || op == opMin {
			x, y = y, x
		}
		set(dst, "%s; %s; %s", x, y, f.op[op])
	}
	table.sqrt = func(dst, a Vec) { set(dst, "%s; f64x2.sqrt", f.wasm(a)) }
	table.clear = func(r Vec) { set(r, "v128.const 0 0") }
	table.copy = func(dst, a Vec) { f.load(dst, a) }
	table.load = func(dst Vec, from Operand) { set(dst, "%s", f.wasm(from)) }
	table.store = func(m Mem, a Vec) {
		f.line("%s; %s; v128.store %s", f.wasmAddress(m), f.wasm(a), wasmOffset(m))
	}
	table.broadcast = func(dst Vec, from Operand) {
		switch from := from.(type) {
		case Vec:
			set(dst, "%s; f64x2.extract_lane 0; f64x2.splat", f.wasm(from))
		case Arg:
			set(dst, "%s; f64x2.splat", f.wasm(from))
		case Mem:
			set(dst, "%s", f.fromWasm("v128.load64_splat", from))
		}
	}
	table.loadFirst = func(dst Vec, m Mem) { set(dst, "%s", f.fromWasm("v128.load64_zero", m)) }
	table.storeFirst = func(to Operand, a Vec) {
		if arg, ok := to.(Arg); ok {
			f.line("%s; f64x2.extract_lane 0; local.set %s", f.wasm(a), arg.name)
			return
		}
		m := to.(Mem)
		f.line("%s; %s; v128.store64_lane %s 0", f.wasmAddress(m), f.wasm(a), wasmOffset(m))
	}
	table.firstOp = func(op Op, dst, a, b Vec) { f.vecOp(op, dst, a, b) }
	table.compare = func(m Mask, a Vec, cmp Cmp, b Operand) {
		op := [...]string{less: "lt", greater: "gt", atLeast: "ge", equal: "eq", notLess: "lt; v128.not",
			notAtMost: "le; v128.not", unordered: "ne"}[cmp] // unordered: of a number with itself
		set(m.v, "%s; %s; f64x2.%s", f.wasm(a), f.wasm(b), op)
	}
	table.choose = func(m Mask, dst Vec, yes Operand, no Vec) {
		set(dst, "%s; %s; %s; v128.bitselect", f.wasm(yes), f.wasm(no), f.wasm(m.v))
	}
	table.reduceBy = func(op Op, r, t Vec) {
		f.vecOp(op, r, r, r+2)
		f.vecOp(op, t, r+1, r+3)
		f.vecOp(op, r, r, t)
		set(t, "%s; %[1]s; shuffle swap", f.wasm(r))
		f.vecOp(op, r, r, t)
	}
	table.powersLookUp = func(at Reg, k, hi, lo, _, _ Vec) {
		both := func(lane int) string {
			return fmt.Sprintf("%s; i32x4.extract_lane %d; i32.const 15; i32.and; i32.const 4; i32.shl; "+
				"local.get %s; i32.add; v128.load 0", f.wasm(k), 2*lane, f.regs[at])
		}
		f.line("%s; local.tee first; %s; local.tee second; shuffle lows; local.set V%d; local.get first; "+
			"local.get second; shuffle highs; local.set V%d",
			both(0), both(1), f.vec(hi), f.vec(lo))
	}
	table.hold = func(r Vec) { set(r, "%s; v128.const ffffffffffffffff 0; v128.and", f.wasm(r)) }
	return table
}

// ifWasm is a jump on a condition of the two numbers that were compared last.
func ifWasm(cond string) string { return "local.get left; local.get right; i32." + cond + "; br_if" }

// wasm puts an operand on the stack, from memory a vector.
func (f *Func) wasm(o Operand) string {
	switch o := o.(type) {
	case Reg:
		return "local.get " + f.regs[o]
	case Vec:
		return fmt.Sprintf("local.get V%d", f.vec(o))
	case Arg:
		return "local.get " + o.name
	case Imm:
		return fmt.Sprintf("i32.const %d", o)
	case Const:
		return "constant " + o.name
	case Mem:
		return f.fromWasm("v128.load", o)
	}
	f.fail("operand %v", o)
	return ""
}

// fromWasm loads from memory.
func (f *Func) fromWasm(load string, m Mem) string {
	return fmt.Sprintf("%s; %s %s", f.wasmAddress(m), load, wasmOffset(m))
}

// wasmAddress puts the address of a place on the stack, all but what wasmOffset says: the
// offset of an instruction is not negative.
func (f *Func) wasmAddress(m Mem) string {
	s := "local.get " + f.regs[m.Base]
	if m.Index.Scale != 0 {
		s += fmt.Sprintf("; local.get %s; i32.const %d; i32.shl; i32.add", f.regs[m.Index.Reg],
			m.Index.shift())
	}
	if m.Off < 0 {
		s += fmt.Sprintf("; i32.const %d; i32.add", m.Off)
	}
	return s
}

// wasmOffset is the rest of an address, a number or the name of a field.
func wasmOffset(m Mem) string {
	if m.Field != "" {
		return m.Field
	}
	return fmt.Sprint(max(m.Off, 0))
}
