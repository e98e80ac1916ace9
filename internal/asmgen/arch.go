package main

// The table of a set of instructions, and the operands that its operations take.

// Reg is a general register: an address, a count or an offset. A table gives each a
// register of its processor. R0 is scratch of the loops in loops.go, R2 holds the count
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

// Imm is a number within an instruction.
type Imm int

// Arg is an argument of the kernel on the stack, a word of it if it has several.
type Arg struct {
	name string
	off  int
}

// Const is a constant that fills a vector register.
type Const struct{ name string }

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

// Arch is a set of instructions: how each operation is written. A new architecture is a
// file with such a table and an entry in [targets]. A field that may be nil says so;
// [Func] has the method of the same name, whose comment says what the operation does.
type Arch struct {
	Name           string // the suffix of its kernels, and its constant in internal/kernel
	Requires       string // for a line in the comment of each kernel, or ""
	Lanes          int    // doubles in a vector register
	Vectors        int    // vector registers that a kernel may use
	masked         bool   // comparisons go to mask registers, and operations to masked lanes
	memoryOperands bool   // arithmetic takes operands in memory
	pooled         bool   // constants lie together in memory, see arm64.go

	regs  []string // R0, R1, ...
	op    [ops]string
	jumps [GE + 1]string // by condition
	jump  string         // on no condition

	// On general registers.
	intOp    func(f *Func, op Op, to Reg, by Operand) // by: Reg or Imm, nil of opNegR
	moveR    func(f *Func, to Reg, from Operand)
	wordR    func(f *Func, to Reg, from Mem)
	zeroR    func(f *Func, r Reg)
	zeroAt   func(f *Func, m Mem)
	addressR func(f *Func, to Reg, m Mem)
	tableR   func(f *Func, to Reg, symbol string)
	compareR func(f *Func, a Reg, b Operand)
	enter    func(f *Func) []string // the first lines of a kernel; may be nil
	leave    func(f *Func)          // the last instructions

	// On vectors.
	vecOp      func(f *Func, op Op, dst, a Vec, b Operand)
	sqrt       func(f *Func, dst, a Vec)
	shift      func(f *Func, left bool, dst, a Vec, n int)
	clear      func(f *Func, r Vec)
	copy       func(f *Func, dst, a Vec)
	load       func(f *Func, dst Vec, from Operand)
	store      func(f *Func, m Mem, a Vec)
	broadcast  func(f *Func, dst Vec, from Operand)
	loadFirst  func(f *Func, dst Vec, m Mem)
	storeFirst func(f *Func, to Operand, a Vec)
	firstOp    func(f *Func, op Op, dst, a, b Vec)
	compare    func(f *Func, to Mask, a Vec, cmp Cmp, b Operand)
	choose     func(f *Func, m Mask, dst Vec, yes Operand, no Vec)
	keep       func(f *Func, m Mask, dst Vec)
	where      func(f *Func, m Mask, op Op, dst Vec, b Operand) // nil unless masked
	reduce     func(f *Func, op Op, block []Vec, t Vec)
	reduceEach func(f *Func, blocks, t Vec) // may be nil: texts reduce one block at a time
	exponent   func(f *Func, dst, a Vec)    // may be nil: texts take the bits apart
	mantissa   func(f *Func, dst, a Vec)    // nil with exponent

	// The table of 2^(j/16) that [Func.exp] looks up: how it lies in memory, what makes
	// it ready at the start of a kernel, and hi and lo of the j in the low four bits of
	// k, with the registers t and u as scratch.
	powers       func(hi, lo []uint64) []uint64
	powersReady  func(f *Func, at Reg)
	powersLookUp func(f *Func, at Reg, k, hi, lo, t, u Vec)

	// What is left after the whole registers or blocks of a loop; see loops.go. hold
	// zeroes the lanes of r that are not there.
	eachTail  func(f *Func, n Reg, body func(get get, put put))
	blockTail func(f *Func, n Reg, done Label, body func(h Vec, tail bool, get get, put put))
	hold      func(f *Func, r Vec)

	// The lanes below the count n < 8 of a block, and lane n itself; see levels.go.
	below       func(f *Func, n Reg)
	loadBelow   func(f *Func, n Reg, dst Vec, m Mem, h Vec)
	addBelow    func(f *Func, h, dst, a, t Vec)
	divideBelow func(f *Func, n Reg, h, dst Vec, m Mem, t, u Vec)
	mulBelow    func(f *Func, h, dst, a Vec, m Mem)
	addAt       func(f *Func, h, dst, a, t, u Vec)
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
