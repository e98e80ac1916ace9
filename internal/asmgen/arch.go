package main

// The table of a set of instructions, and the operands that its operations take.

// Reg is a general register: an address, a count or an offset. A table gives each a
// register of its processor. R0 is scratch of the loops in loops.go, [countR] holds the count
// of a loop whose tail they write; the others are the kernel's own.
type Reg int

const (
	R0 Reg = iota
	R1
	R2
	R3
	R4
	R5
	R6
	R7
	R8
	R9
	R10
	R11
	R12
)

// countR has how many numbers are left for a loop with a tail, or are there in a block.
const countR = R2

// Vec is a vector register, of as many numbers as the set has lanes.
type Vec int

const (
	V0 Vec = iota
	V1
	V2
	V3
	V4
	V5
	V6
	V7
	V8
	V9
	V10
	V11
	V12
	V13
	V14
	V15
)

// Mem is a place in memory: Base + Index + Off bytes. Field is the offset of a field of
// a struct as go_asm.h defines it, and comes on top.
type Mem struct {
	Base  Reg
	Index Index
	Off   int
	Field string
}

// Index is Scale times what Reg holds; with a Scale of 0 there is none.
type Index struct {
	Reg   Reg
	Scale int
}

// shift is how far Reg is shifted to the left.
func (i Index) shift() int { return map[int]int{2: 1, 4: 2, 8: 3}[i.Scale] }

// times is the index n r, n being 1, 2, 4 or 8.
func (r Reg) times(n int) Index { return Index{r, n} }

// mem is the place off bytes after base, and after an index if one is given.
func mem(off int, base Reg, index ...Index) Mem {
	m := Mem{Base: base, Off: off}
	if len(index) > 0 {
		m.Index = index[0]
	}
	return m
}

// plus is the place off bytes further.
func (m Mem) plus(off int) Mem {
	m.Off += off
	return m
}

// Imm is a number within an instruction.
type Imm int

// Arg is an argument of the kernel on the stack, a word of it if it has several.
type Arg struct {
	name string
	off  int
}

// Const is a constant that fills a vector register with its word.
type Const struct {
	name string
	word uint64
}

// Repeat is the number at a place in memory, in every lane.
type Repeat struct{ Mem }

// Operand is what an operation reads: a Reg, Vec, Mem, Imm, Arg, Const or Repeat. The
// comment of each operation says which it takes.
type Operand interface{ operand() }

func (Reg) operand()    {}
func (Vec) operand()    {}
func (Mem) operand()    {}
func (Imm) operand()    {}
func (Arg) operand()    {}
func (Const) operand()  {}
func (Repeat) operand() {}

// Mask says for each lane of a register whether a comparison holds there. Sets that
// have mask registers keep it in K_k, the others in the vector register v.
type Mask struct {
	k int
	v Vec
}

// Op is an operation that all sets write alike but for the mnemonic.
type Op int

const (
	// On general registers.
	opAddR Op = iota
	opSubR
	opIncR
	opDecR
	opAndR
	opShlR
	opShrR
	opMulR
	opNegR
	// On vectors of doubles, lane by lane.
	opAdd
	opSub
	opMul
	opDiv
	opMax
	opMin
	// On the bits of vectors; opAndInt is opAnd next to operations on integers.
	opAnd
	opAndInt
	opOr
	opXor
	opAddInt
	opShl // by an Imm, as opShr
	opShr
	ops
)

// Cond is the condition of a jump.
type Cond int

const (
	EQ Cond = iota
	NE
	LT
	LE
	GT
	GE
)

// Cmp is a comparison of doubles, lane by lane. Those of NaN are false but for the ones
// that say otherwise.
type Cmp int

const (
	less Cmp = iota
	greater
	atLeast
	equal
	notLess   // or NaN
	notAtMost // or NaN
	unordered // either is NaN
)

// Arch is a set of instructions. A new one is a file with such a value and its table, and an entry in
// [targets].
type Arch struct {
	Name     string // the suffix of its kernels, and its constant in internal/kernel
	Requires string // for a line in the comment of each kernel, or ""
	Lanes    int    // doubles in a vector register
	Vectors  int    // vector registers that a kernel may use
	letter   string // of the names of vector registers, amd64 only
	masked   bool   // comparisons go to mask registers, and operations to masked lanes
	pooled   bool   // constants lie together in memory, see arm64.go

	regs  []string // R0, R1, ...
	op    [ops]string
	jumps [GE + 1]string // by condition
	jump  string         // on no condition
	table func(f *Func) Table
}

// Table is how a set writes each operation of a kernel. Results come first. A field that may be nil says so.
type Table struct {
	// On general registers; by is a Reg or Imm, nil of opIncR, opDecR and opNegR.
	intOp    func(op Op, to Reg, by Operand)
	moveR    func(to Reg, from Operand)  // from: Reg, Imm, Arg or Mem
	wordR    func(to Reg, from Mem)      // to = the 32 bits there, no sign
	zeroR    func(r Reg)                 // r = 0
	zeroAt   func(m Mem)                 // the double at m = 0
	addressR func(to Reg, m Mem)         // to = the address of m
	symbolR  func(to Reg, symbol string) // to = the address of a table of words, see [Func.tableR]
	compareR func(a Reg, b Operand)      // b: Reg, Imm or Arg
	leave    func()                      // the last instructions; may be nil

	// On vectors. An operand b is a Vec, Mem or Const, of shifts an Imm.
	vecOp func(op Op, dst, a Vec, b Operand)
	sqrt  func(dst, a Vec) // √a
	clear func(r Vec)      // r = +0
	copy  func(dst, a Vec)
	load  func(dst Vec, from Operand) // from: Mem or Const
	store func(m Mem, a Vec)
	// broadcast fills dst with the number at from, a Mem or Arg, or in lane 0 of a Vec.
	broadcast func(dst Vec, from Operand)
	// On the number in lane 0 alone; others are then anything, but 0 after loadFirst.
	loadFirst  func(dst Vec, m Mem)
	storeFirst func(to Operand, a Vec) // to: Mem or Arg
	firstOp    func(op Op, dst, a, b Vec)
	// compare sets a mask where a compares so to b.
	compare func(to Mask, a Vec, cmp Cmp, b Operand)
	// choose fills dst with yes, a Vec, Mem or Const, where the mask holds and with no elsewhere. One of
	// them is dst, with mask registers no.
	choose func(m Mask, dst Vec, yes Operand, no Vec)
	// keep zeroes dst where the mask does not hold.
	keep func(m Mask, dst Vec)
	// where sets dst to dst op b where the mask holds. It is nil unless masked.
	where func(m Mask, op Op, dst Vec, b Operand)
	// reduceBy joins the lanes of the block at r into lane 0 of r, as kernel.Reduce joins them; t is scratch.
	reduceBy func(op Op, r, t Vec)
	// reduceEach reduces as many blocks as a register has lanes, those from the register blocks on, and
	// leaves their sums in that register in their order. As many registers from t on are scratch. It may be
	// nil: texts reduce one block at a time.
	reduceEach func(blocks, t Vec)
	// exponent is the e and mantissa the m of |a| = m 2^e with 1 <= m < 2. mantissa may be nil: texts take
	// the bits apart, and exponent is for normal numbers a > 0 then.
	exponent func(dst, a Vec)
	mantissa func(dst, a Vec)

	// The table of 2^(j/16) that [Func.exp] looks up: how it lies in memory, what makes
	// it ready at the start of a kernel, and hi and lo of the j in the low four bits of
	// k, with the registers t and u as scratch.
	powers       func(hi, lo []uint64) []uint64
	powersReady  func(at Reg) // may be nil
	powersLookUp func(at Reg, k, hi, lo, t, u Vec)

	// What is left after the whole registers or blocks of a loop, for which the code goes on at done; see
	// loops.go. blockTail is nil where a block is one register.
	eachTail  func(body func(part))
	blockTail func(done Label, body func(part))
	// hold zeroes, in a tail, the lanes of r that are not there. It is for sums and
	// maxima of what is not 0 where its arguments are.
	hold func(r Vec)

	// The lanes below the n < 8 in countR of a block, and lane n itself; see levels.go. below makes the mask
	// of n ready for the others, which work on register h of a block.
	below     func()
	loadBelow func(h, dst Vec, m Mem) // the lanes of m below n, and 0 in the others
	// addBelow is dst + a in the lanes below n, dst in the others; a and t are scratch.
	addBelow func(h, dst, a, t Vec)
	// divideBelow is dst / m in the lanes below n, and 0 in the others; t and u are scratch.
	divideBelow func(h, dst Vec, m Mem, t, u Vec)
	mulBelow    func(h, dst, a Vec, m Mem) // a m in the lanes below n, and 0 in the others
	addAt       func(h, dst, a, t, u Vec)  // dst + a in lane n, dst in the others; t and u are scratch
}

// Target is an architecture of Go with its sets of instructions, the best first, that
// Go's assembler writes. That of WebAssembly is in module.go.
type Target struct {
	GOARCH string
	Sets   []*Arch
}

var targets = []Target{
	{"amd64", []*Arch{avx512, avx2}},
	{"arm64", []*Arch{neon}},
}
