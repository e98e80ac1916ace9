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
	regs:    []string{"R0", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R12"},
	op: [ops]string{
		opAddR: "i32.add", opSubR: "i32.sub", opIncR: "i32.add", opDecR: "i32.sub", opAndR: "i32.and",
		opShlR: "i32.shl", opShrR: "i32.shr_u", opMulR: "i32.mul",
		opAdd: "f64x2.add", opSub: "f64x2.sub", opMul: "f64x2.mul", opDiv: "f64x2.div", opMax: "f64x2.pmax",
		opMin: "f64x2.pmin",
		opAnd: "v128.and", opAndInt: "v128.and", opOr: "v128.or", opXor: "v128.xor", opAddInt: "i64x2.add",
	},
	jump: "br",
	jumps: [...]string{EQ: ifWasm("eq"), NE: ifWasm("ne"), LT: ifWasm("lt_s"), LE: ifWasm("le_s"),
		GT: ifWasm("gt_s"), GE: ifWasm("ge_s")},

	leave: func(*Func) {},

	intOp: func(f *Func, op Op, to Reg, by Operand) {
		r := f.regs[to]
		switch {
		case op == opNegR:
			f.line("i32.const 0; local.get %s; i32.sub; local.set %[1]s", r)
			return
		case by == nil:
			by = Imm(1)
		}
		f.line("local.get %s; %s; %s; local.set %[1]s", r, f.wasmInteger(by), f.op[op])
		if op == opSubR || op == opDecR || op == opAndR {
			f.line("local.get %s; local.set left; i32.const 0; local.set right", r)
		}
	},
	moveR: func(f *Func, to Reg, from Operand) {
		if m, ok := from.(Mem); ok {
			f.line("%s; i32.load %s; local.set %s", f.wasmAddress(m), wasmOffset(m), f.regs[to])
			return
		}
		f.line("%s; local.set %s", f.wasmInteger(from), f.regs[to])
	},
	wordR: func(f *Func, to Reg, from Mem) { f.moveR(to, from) },
	zeroR: func(f *Func, r Reg) { f.line("i32.const 0; local.set %s", f.regs[r]) },
	zeroAt: func(f *Func, m Mem) {
		f.line("%s; i64.const 0; i64.store %s", f.wasmAddress(m), wasmOffset(m))
	},
	addressR: func(f *Func, to Reg, m Mem) {
		f.line("%s; i32.const %d; i32.add; local.set %s", f.wasmAddress(Mem{Base: m.Base, Index: m.Index}),
			m.Off, f.regs[to])
	},
	tableR: func(f *Func, to Reg, symbol string) { f.line("table %s; local.set %s", symbol, f.regs[to]) },
	compareR: func(f *Func, a Reg, b Operand) {
		f.line("local.get %s; local.set left; %s; local.set right", f.regs[a], f.wasmInteger(b))
	},

	vecOp: func(f *Func, op Op, dst, a Vec, b Operand) {
		x, y := f.wasm(a), f.wasm(b)
		if op == opMax || op == opMin {
			x, y = y, x
		}
		f.line("%s; %s; %s; local.set V%d", x, y, f.op[op], f.vec(dst))
	},
	sqrt: func(f *Func, dst, a Vec) { f.line("%s; f64x2.sqrt; local.set V%d", f.wasm(a), f.vec(dst)) },
	shift: func(f *Func, left bool, dst, a Vec, n int) {
		op := "i64x2.shr_u"
		if left {
			op = "i64x2.shl"
		}
		f.line("%s; i32.const %d; %s; local.set V%d", f.wasm(a), n, op, f.vec(dst))
	},
	clear: func(f *Func, r Vec) { f.line("v128.const 0 0; local.set V%d", f.vec(r)) },
	copy:  func(f *Func, dst, a Vec) { f.line("%s; local.set V%d", f.wasm(a), f.vec(dst)) },
	load:  func(f *Func, dst Vec, from Operand) { f.line("%s; local.set V%d", f.wasm(from), f.vec(dst)) },
	store: func(f *Func, m Mem, a Vec) {
		f.line("%s; %s; v128.store %s", f.wasmAddress(m), f.wasm(a), wasmOffset(m))
	},
	broadcast: func(f *Func, dst Vec, from Operand) {
		switch from := from.(type) {
		case Vec:
			f.line("%s; f64x2.extract_lane 0; f64x2.splat; local.set V%d", f.wasm(from), f.vec(dst))
		case Arg:
			f.line("local.get %s; f64x2.splat; local.set V%d", from.name, f.vec(dst))
		case Mem:
			f.line("%s; v128.load64_splat %s; local.set V%d", f.wasmAddress(from), wasmOffset(from),
				f.vec(dst))
		}
	},
	loadFirst: func(f *Func, dst Vec, m Mem) {
		f.line("%s; v128.load64_zero %s; local.set V%d", f.wasmAddress(m), wasmOffset(m), f.vec(dst))
	},
	storeFirst: func(f *Func, to Operand, a Vec) {
		if arg, ok := to.(Arg); ok {
			f.line("%s; f64x2.extract_lane 0; local.set %s", f.wasm(a), arg.name)
			return
		}
		m := to.(Mem)
		f.line("%s; %s; v128.store64_lane %s 0", f.wasmAddress(m), f.wasm(a), wasmOffset(m))
	},
	firstOp: func(f *Func, op Op, dst, a, b Vec) { f.vecOp(f, op, dst, a, b) },
	compare: func(f *Func, m Mask, a Vec, cmp Cmp, b Operand) {
		op := [...]string{less: "lt", greater: "gt", atLeast: "ge", equal: "eq", notLess: "lt; v128.not",
			notAtMost: "le; v128.not", unordered: "ne"}[cmp] // unordered: of a number with itself
		f.line("%s; %s; f64x2.%s; local.set V%d", f.wasm(a), f.wasm(b), op, f.vec(m.v))
	},
	choose: func(f *Func, m Mask, dst Vec, yes Operand, no Vec) {
		f.line("%s; %s; %s; v128.bitselect; local.set V%d", f.wasm(yes), f.wasm(no), f.wasm(m.v), f.vec(dst))
	},
	keep: func(f *Func, m Mask, dst Vec) { f.and(dst, dst, m.v) },
	reduce: func(f *Func, op Op, block []Vec, t Vec) {
		r := block[0]
		f.vecOp(f, op, r, r, r+2)
		f.vecOp(f, op, t, r+1, r+3)
		f.vecOp(f, op, r, r, t)
		f.line("%s; %[1]s; shuffle swap; local.set V%d", f.wasm(r), f.vec(t))
		f.vecOp(f, op, r, r, t)
	},

	powers:      eachWithTheOther,
	powersReady: func(*Func, Reg) {},
	powersLookUp: func(f *Func, at Reg, k, hi, lo, _, _ Vec) {
		both := func(lane int) string {
			return fmt.Sprintf("%s; i32x4.extract_lane %d; i32.const 15; i32.and; i32.const 4; i32.shl; "+
				"local.get %s; i32.add; v128.load 0", f.wasm(k), 2*lane, f.regs[at])
		}
		f.line("%s; local.tee first; %s; local.tee second; shuffle lows; local.set V%d; local.get first; "+
			"local.get second; shuffle highs; local.set V%d",
			both(0), both(1), f.vec(hi), f.vec(lo))
	},

	eachTail:  func(f *Func, _ Reg, body func(get get, put put)) { body(f.firstMoves(0)) },
	blockTail: pairTail,
	hold: func(f *Func, r Vec) {
		f.line("%s; v128.const ffffffffffffffff 0; v128.and; local.set V%d", f.wasm(r), f.vec(r))
	},

	below:       belowInMemory,
	loadBelow:   loadAndClear,
	addBelow:    addAndBlend,
	divideBelow: divideWhatIsThere,
	mulBelow:    mulAndClear,
	addAt:       addAndBlendAt,
}

// ifWasm is a jump on a condition of the two numbers that were compared last.
func ifWasm(cond string) string { return "local.get left; local.get right; i32." + cond + "; br_if" }

// wasm puts a vector operand on the stack.
func (f *Func) wasm(o Operand) string {
	switch o := o.(type) {
	case Vec:
		return fmt.Sprintf("local.get V%d", f.vec(o))
	case Const:
		return "constant " + o.name
	case Mem:
		return f.wasmAddress(o) + "; v128.load " + wasmOffset(o)
	}
	f.fail("operand %v", o)
	return ""
}

// wasmInteger puts a register, an argument or a number on the stack.
func (f *Func) wasmInteger(o Operand) string {
	switch o := o.(type) {
	case Reg:
		return "local.get " + f.regs[o]
	case Arg:
		return "local.get " + o.name
	}
	return fmt.Sprintf("i32.const %d", o.(Imm))
}

// wasmAddress puts the address of a place on the stack, all but what wasmOffset says: the
// offset of an instruction is not negative.
func (f *Func) wasmAddress(m Mem) string {
	s := "local.get " + f.regs[m.Base]
	if m.Index.Scale != 0 {
		s += fmt.Sprintf("; local.get %s; i32.const %d; i32.shl; i32.add", f.regs[m.Index.Reg],
			map[int]int{1: 0, 2: 1, 4: 2, 8: 3}[m.Index.Scale])
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
