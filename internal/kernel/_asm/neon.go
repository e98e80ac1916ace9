package main

// The same texts for arm64. A kernel is written in instructions of amd64, and what it
// writes for AVX2 is turned here, one by one, into instructions of NEON on registers
// of two lanes: four registers are a block. V0 to V27 are the kernel's; V28 holds an
// operand of memory, V29 a constant, V30 and V31 are scratch. On arm64 arithmetic has
// no operands in memory, an address has not both an index and an offset, and there
// are no masked loads: the last number of an odd count goes into the low lane, the
// other being 0.
//
// FMUL and FADD stay apart: FMLA would keep bits that the loops in Go round away.
// FMAX and FMIN are max and min of Go, NaN for NaN; a 0 found by [extent] may have the
// other sign than that of its loop, as on amd64. The assembler of Go lacks arithmetic
// on vectors of doubles: such an instruction is a word with its name beside it.
//
// Every kernel of the list has this form; none is left to the loop in Go.

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// general is the register of arm64 for one of amd64. R14 has the base of the
// constants, R19 and R20 are scratch.
var general = map[string]string{
	"AX": "R0", "BX": "R1", "CX": "R2", "DX": "R3", "SI": "R4", "DI": "R5", "R8": "R6", "R9": "R7",
	"R10": "R8", "R11": "R9", "R12": "R10", "R13": "R11", "R14": "R12",
}

// addresses are the registers for sums of a base, an index and an offset.
var addresses = []string{"R13", "R15", "R16", "R17"}

const (
	memory, fixed, scratch, other = 28, 29, 30, 31
	pool                          = "R14"
)

// encoding has the words of the instructions that the assembler lacks, all registers 0.
var encoding = map[string]uint32{
	"FADD": 0x4e60d400, "FSUB": 0x4ee0d400, "FMUL": 0x6e60dc00, "FDIV": 0x6e60fc00,
	"FMAX": 0x4e60f400, "FMIN": 0x4ee0f400, "FSQRT": 0x6ee1f800,
	"FCMEQ": 0x4e60e400, "FCMGE": 0x6e60e400, "FCMGT": 0x6ee0e400,
	"FADDP": 0x7e70d800, "FMAXP": 0x7e70f800, "FMINP": 0x7ef0f800,
	"MVN": 0x6e205800, "LDR": 0x3ce07800,
}

// word is the line of dst = a op b; b is -1 where there is none.
func word(op string, dst, a, b int) string {
	w, ok := encoding[op]
	if !ok {
		panic("no encoding of " + op)
	}
	w |= uint32(dst) | uint32(a)<<5
	name := fmt.Sprintf("%s V%d.2D, V%d.2D, V%d.2D", op, dst, a, b)
	switch {
	case strings.HasSuffix(op, "P"):
		name = fmt.Sprintf("%s D%d, V%d.2D", op, dst, a)
	case op == "LDR":
		w |= uint32(b) << 16
		name = fmt.Sprintf("LDR Q%d, [X%d, X%d, LSL #4]", dst, a, b)
	case op == "MVN":
		name = fmt.Sprintf("MVN V%d.16B, V%d.16B", dst, a)
	case b < 0:
		name = fmt.Sprintf("%s V%d.2D, V%d.2D", op, dst, a)
	default:
		w |= uint32(b) << 16
	}
	return fmt.Sprintf("WORD $0x%08x // %s", w, name)
}

var (
	memoryForm = regexp.MustCompile(`^(-?\d*)\((\w+)\)(?:\((\w+)\*(\d)\))?$`)
	vectorForm = regexp.MustCompile(`^[VXYZ](\d+)$`)
	countForm  = regexp.MustCompile(`^\$(-?\w+)$`)
)

// vector is the number of a vector register.
func vector(s string) (int, bool) {
	m := vectorForm.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, _ := strconv.Atoi(m[1])
	return n, true
}

// translation of one instruction: lines that may serve several woven instances, and
// lines of its own.
type translation struct{ shared, own []string }

func (t *translation) add(format string, args ...any) {
	t.own = append(t.own, fmt.Sprintf(format, args...))
}

// word adds the line of dst = a op b.
func (t *translation) word(op string, dst, a, b int) { t.own = append(t.own, word(op, dst, a, b)) }

// sum brings base + index·2^shift + off into a register for addresses and returns
// it. One that is there already serves again.
func (f *fn) sum(t *translation, base, index string, shift, off int) string {
	key := fmt.Sprint(base, " ", index, " ", shift, " ", off)
	for i, k := range f.addressed {
		if k == key {
			return addresses[i]
		}
	}
	i := f.turn % len(addresses)
	f.turn++
	r := addresses[i]
	f.written(r) // sums of what it held
	f.addressed[i] = key
	switch {
	case index == "" && off < 0:
		t.add("SUB $%d, %s, %s", -off, base, r)
	case index == "":
		t.add("ADD $%d, %s, %s", off, base, r)
	case shift == 0:
		t.add("ADD %s, %s, %s", index, base, r)
	default:
		t.add("ADD %s<<%d, %s, %s", index, shift, base, r)
	}
	return r
}

// written forgets sums of a register that changes.
func (f *fn) written(r string) {
	for i, k := range f.addressed {
		for _, s := range strings.Fields(k) {
			if s == r {
				f.addressed[i] = ""
			}
		}
	}
}

// address is the operand of a load or store, whole the one without an offset.
func (f *fn) address(t *translation, m string, whole bool) string {
	p := memoryForm.FindStringSubmatch(m)
	if p == nil {
		panic(f.name + ": no operand " + m)
	}
	off, _ := strconv.Atoi(p[1])
	base := general[p[2]]
	if p[3] != "" {
		shift := map[string]int{"1": 0, "2": 1, "4": 2, "8": 3}[p[4]]
		base = f.sum(t, base, general[p[3]], shift, 0)
	}
	if off != 0 && whole {
		base, off = f.sum(t, base, "", 0, off), 0
	}
	if off == 0 {
		return "(" + base + ")"
	}
	return fmt.Sprintf("%d(%s)", off, base)
}

// constantAt is the address of a constant.
func (f *fn) constantAt(s string) (string, bool) {
	name, ok := strings.CutSuffix(s, "<>(SB)")
	if !ok {
		return "", false
	}
	f.pooled = true
	return fmt.Sprintf("%d(%s)", f.pool[name], pool), true
}

// operand is the register of a, loaded if need be.
func (f *fn) operand(t *translation, a string) int {
	if r, ok := vector(a); ok {
		return r
	}
	if at, ok := f.constantAt(a); ok {
		t.shared = append(t.shared, fmt.Sprintf("FMOVQ %s, F%d", at, fixed))
		return fixed
	}
	t.add("FMOVQ %s, F%d", f.address(t, a, false), memory)
	return memory
}

// integer is the operand of a register or a number.
func integer(s string) string {
	if r, ok := general[s]; ok {
		return r
	}
	if !countForm.MatchString(s) {
		panic("no integer " + s)
	}
	return s
}

// compare leaves in dst the lanes where a cmp b holds; where not is true, those
// where it does not.
func (t *translation) compare(dst, a int, cmp string, b int) (not bool) {
	switch cmp {
	case lt, nl:
		t.word("FCMGT", dst, b, a)
	case gt:
		t.word("FCMGT", dst, a, b)
	case ge:
		t.word("FCMGE", dst, a, b)
	case notAtMost:
		t.word("FCMGE", dst, b, a)
	case eq, un: // un: of a number with itself
		t.word("FCMEQ", dst, a, b)
	default:
		panic("no comparison " + cmp)
	}
	return cmp == nl || cmp == notAtMost || cmp == un
}

var arithmetic = map[string]string{
	"VADDPD": "FADD", "VSUBPD": "FSUB", "VMULPD": "FMUL", "VDIVPD": "FDIV", "VMAXPD": "FMAX", "VMINPD": "FMIN",
}

var scalars = map[string]string{"VADDSD": "FADDD", "VMAXSD": "FMAXD"}

var logical = map[string]string{"VANDPD": "VAND", "VPAND": "VAND", "VPOR": "VORR", "VXORPD": "VEOR"}

var branches = map[string]string{"JMP": "B", "JEQ": "BEQ", "JNE": "BNE", "JLT": "BLT", "JLE": "BLE", "JGT": "BGT", "JGE": "BGE"}

// translate is the instruction op of amd64.
func (f *fn) translate(op string, a []string) *translation {
	t := &translation{}
	argument := func(s string) bool { return strings.HasSuffix(s, "(FP)") }
	// Arithmetic on general registers; it sets flags where a jump may follow.
	count := func(name, by string, to string) {
		t.add("%s %s, %s, %s", name, by, general[to], general[to])
		f.written(general[to])
	}
	if b := branches[op]; b != "" {
		t.add("%s %s", b, a[0])
		return t
	}
	if o := arithmetic[op]; o != "" {
		b := f.operand(t, a[0])
		x, _ := vector(a[1])
		dst, _ := vector(a[2])
		t.word(o, dst, x, b)
		return t
	}
	if o := scalars[op]; o != "" {
		b, _ := vector(a[0])
		x, _ := vector(a[1])
		dst, _ := vector(a[2])
		t.add("%s F%d, F%d, F%d", o, b, x, dst)
		return t
	}
	if o := logical[op]; o != "" {
		b := f.operand(t, a[0])
		x, _ := vector(a[1])
		dst, _ := vector(a[2])
		t.add("%s V%d.B16, V%d.B16, V%d.B16", o, b, x, dst)
		return t
	}
	switch op {
	case "VZEROUPPER":
	case "RET":
		t.add("RET")
	case "VMOVUPD", "VMOVAPD":
		from, isFrom := vector(a[0])
		to, isTo := vector(a[1])
		switch {
		case isFrom && isTo:
			t.add("VMOV V%d.B16, V%d.B16", from, to)
		case isFrom:
			at := f.address(t, a[1], false)
			t.add("FMOVQ F%d, %s", from, at)
		default:
			at, ok := f.constantAt(a[0])
			if !ok {
				at = f.address(t, a[0], false)
			}
			t.add("FMOVQ %s, F%d", at, to)
		}
	case "PREFETCHT1":
		at := f.address(t, a[0], false)
		t.add("PRFM %s, PLDL2KEEP", at)
	case "VMOVSD":
		move := func(s string) string {
			if r, ok := vector(s); ok {
				return fmt.Sprintf("F%d", r)
			}
			if argument(s) {
				return s
			}
			return f.address(t, s, false)
		}
		from, to := move(a[0]), move(a[1])
		t.add("FMOVD %s, %s", from, to)
	case "VBROADCASTSD":
		to, _ := vector(a[1])
		if from, ok := vector(a[0]); ok {
			t.add("VDUP V%d.D[0], V%d.D2", from, to)
		} else if argument(a[0]) {
			t.shared = append(t.shared, fmt.Sprintf("MOVD %s, R19", a[0]))
			t.add("VDUP R19, V%d.D2", to)
		} else {
			at := f.address(t, a[0], true)
			t.add("VLD1R %s, [V%d.D2]", at, to)
		}
	case "VSQRTPD":
		from, _ := vector(a[0])
		to, _ := vector(a[1])
		t.word("FSQRT", to, from, -1)
	case "VCMPPD":
		b := f.operand(t, a[1])
		x, _ := vector(a[2])
		to, _ := vector(a[3])
		if t.compare(to, x, a[0], b) {
			t.word("MVN", to, to, -1)
		}
	case "VBLENDVPD": // mask, where it holds, elsewhere, dst
		mask, _ := vector(a[0])
		yes := f.operand(t, a[1])
		no, _ := vector(a[2])
		dst, _ := vector(a[3])
		switch dst {
		case no:
			t.add("VBIT V%d.B16, V%d.B16, V%d.B16", mask, yes, dst)
		case yes:
			t.add("VBIF V%d.B16, V%d.B16, V%d.B16", mask, no, dst)
		default:
			t.add("VMOV V%d.B16, V%d.B16", no, dst)
			t.add("VBIT V%d.B16, V%d.B16, V%d.B16", mask, yes, dst)
		}
	case "VPSRLQ", "VPSLLQ":
		from, _ := vector(a[1])
		to, _ := vector(a[2])
		t.add("%s %s, V%d.D2, V%d.D2", map[string]string{"VPSRLQ": "VUSHR", "VPSLLQ": "VSHL"}[op], a[0], from, to)
	case "VPADDQ":
		b := f.operand(t, a[0])
		x, _ := vector(a[1])
		to, _ := vector(a[2])
		t.add("VADD V%d.D2, V%d.D2, V%d.D2", b, x, to)
	case "MOVQ":
		to, isTo := general[a[1]]
		switch {
		case !isTo && a[0] == "$0":
			at := f.address(t, a[1], false)
			t.add("MOVD ZR, %s", at)
		case !isTo:
			at := f.address(t, a[1], false)
			t.add("MOVD %s, %s", general[a[0]], at)
		case argument(a[0]):
			t.add("MOVD %s, %s", a[0], to)
		default:
			t.add("MOVD %s, %s", integer(a[0]), to)
		}
		if isTo {
			f.written(to)
		}
	case "LEAQ":
		to := general[a[1]]
		defer f.written(to)
		if table, ok := strings.CutSuffix(a[0], "<>(SB)"); ok {
			t.add("MOVD $%s<>(SB), %s", table, to)
			return t
		}
		p := memoryForm.FindStringSubmatch(a[0])
		from := general[p[2]]
		if p[3] != "" {
			if shift := map[string]int{"1": 0, "2": 1, "4": 2, "8": 3}[p[4]]; shift == 0 {
				t.add("ADD %s, %s, %s", general[p[3]], from, to)
			} else {
				t.add("ADD %s<<%d, %s, %s", general[p[3]], shift, from, to)
			}
			from = to
		}
		if off, _ := strconv.Atoi(p[1]); off < 0 {
			t.add("SUB $%d, %s, %s", -off, from, to)
		} else if off > 0 || p[3] == "" {
			t.add("ADD $%d, %s, %s", off, from, to)
		}
	case "ADDQ":
		count("ADD", integer(a[0]), a[1])
	case "INCQ":
		count("ADD", "$1", a[0])
	case "SUBQ":
		count("SUBS", integer(a[0]), a[1])
	case "DECQ":
		count("SUBS", "$1", a[0])
	case "ANDQ":
		count("ANDS", integer(a[0]), a[1])
	case "SHLQ":
		count("LSL", integer(a[0]), a[1])
	case "SHRQ":
		count("LSR", integer(a[0]), a[1])
	case "IMULQ":
		count("MUL", integer(a[0]), a[1])
	case "NEGQ":
		t.add("NEG %s, %s", general[a[0]], general[a[0]])
		f.written(general[a[0]])
	case "XORQ":
		if a[0] != a[1] {
			panic(f.name + ": XORQ of two registers")
		}
		t.add("MOVD ZR, %s", general[a[1]])
		f.written(general[a[1]])
	case "TESTQ":
		if a[0] != a[1] {
			panic(f.name + ": TESTQ of two registers")
		}
		t.add("CMP $0, %s", general[a[0]])
	case "CMPQ":
		with := a[1]
		if argument(with) {
			t.add("MOVD %s, R19", with)
			with = "R19"
		} else {
			with = integer(with)
		}
		t.add("CMP %s, %s", with, general[a[0]])
	default:
		panic(f.name + ": no translation of " + op)
	}
	return t
}

// emit writes a translation, or keeps it for weave. What is woven shares no sums.
func (f *fn) emit(t *translation) {
	if f.own > 0 {
		f.addressed = [4]string{}
		f.translated = append(f.translated, t)
		return
	}
	for _, lines := range [][]string{t.shared, t.own} {
		for _, l := range lines {
			f.out.WriteString("\t" + l + "\n")
		}
	}
}

// weaveTranslated is weave: a constant is loaded once for all instances.
func (f *fn) weaveTranslated(n int, text func(u int)) {
	lines := make([][]*translation, n)
	for u := range n {
		f.instance, f.translated, f.addressed = u, nil, [4]string{}
		text(u)
		lines[u] = f.translated
	}
	f.instance, f.own, f.translated = 0, 0, nil
	for k, t := range lines[0] {
		for u := range n {
			l := lines[u][k]
			if u > 0 && strings.Join(l.shared, "\n") == strings.Join(t.shared, "\n") {
				l.shared = nil
			}
			f.emit(l)
		}
	}
}

// gatherPairs fills hi and lo with the numbers of a table, at a register of amd64, that
// the bits of k below a mask ask for: it has them in pairs.
func (f *fn) gatherPairs(at string, mask, k, hi, lo int) {
	num := func(r int) int { n, _ := vector(f.v(r)); return n }
	t := &translation{}
	for i, to := range []int{scratch, other} {
		t.add("VMOV V%d.D[%d], R%d", num(k), i, 19+i)
		t.add("AND $%d, R%d, R%d", mask, 19+i, 19+i)
		table, _ := strconv.Atoi(general[at][1:])
		t.word("LDR", to, table, 19+i)
	}
	t.add("VZIP1 V%d.D2, V%d.D2, V%d.D2", other, scratch, num(hi))
	t.add("VZIP2 V%d.D2, V%d.D2, V%d.D2", other, scratch, num(lo))
	f.emit(t)
}

// fold joins the four registers from r on by op into r, its lanes by pair.
func (f *fn) fold(op, pair string, r int) {
	t := &translation{}
	t.word(op, scratch, r, r+2)
	t.word(op, r, r+1, r+3)
	t.word(op, r, scratch, r)
	t.word(pair, r, r, -1)
	f.emit(t)
}

// getFirst and putFirst move the low lane of a register from and to memory; loaded,
// the other is 0.
func (f *fn) getFirst(m string, r int) { f.i("VMOVSD", m, f.v(r)) }
func (f *fn) putFirst(r int, m string) { f.i("VMOVSD", f.v(r), m) }

// getBelow loads the lanes below CX of the register h of a block, the rest 0.
func (f *fn) getBelow(m string, h, r int) {
	one, done := f.label("one"), f.label("have")
	f.clear(r)
	f.i("CMPQ", "CX", imm(2*h+1))
	f.i("JLT", done)
	f.i("JEQ", one)
	f.get(m, r)
	f.i("JMP", done)
	f.at(one)
	f.getFirst(m, r)
	f.at(done)
}
