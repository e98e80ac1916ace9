package main

// The ratio of x to a low-rank product, and their divergence: W = UV never leaves the
// registers.

// roughTable has the inverses and logarithms of elem.RoughLog. AVX2 has no choice from
// eight numbers, but one from eight halves of them: there is a table of the upper and
// one of the lower halves of the logarithms, and one of the upper halves of the
// inverses, which have no lower ones. NEON has pairs.
var roughTable = [8][2]uint64{
	{0x3ff0000000000000, 0xbfe62e42fefa39ef},
	{0x3fecfb2d00000000, 0xbfe30283ffb429b2},
	{0x3fea08ae00000000, 0xbfdf27e9595d0af3},
	{0x3fe7a17b00000000, 0xbfd8f5211c8d016c},
	{0x3fe5a24200000000, 0xbfd34e8bde2ccdd3},
	{0x3fe3f2b400000000, 0xbfcc3ac1d76e4e8e},
	{0x3fe2818b00000000, 0xbfc29fff7f42b779},
	{0x3fe1422900000000, 0xbfb361e46b9b9b21},
}

// roughPart is a part of the table, a word of each entry, or a half of one.
func (f *fn) roughPart(name string, word func(e [2]uint64) uint64, half bool) string {
	var words []uint64
	for i := range roughTable {
		w := word(roughTable[i])
		if half && i%2 == 1 {
			words[i/2] |= w << 32
		} else {
			words = append(words, w)
		}
	}
	return f.constant(name, words...) + "(SB)"
}

// Registers of roughLog that hold the same all the time, with AVX-512.
const (
	roughInverse, roughLogs = 20, 21
	roughFirst              = 23 // the coefficients from the lowest on, then ln2 and 1
)

var roughCoefficients = []float64{-0.49999999999911393, 0.3333333342540451, -0.25000000267895883, 0.19999850237695418, -0.16666427106744514, 0.14358973090971297, -0.125834912959635}

// roughSetup makes the table ready: in registers with AVX-512, at table with NEON.
func (f *fn) roughSetup(table string) {
	switch {
	case f.neon:
		var words []uint64
		for _, e := range roughTable {
			words = append(words, e[0], e[1])
		}
		f.i("LEAQ", f.constant("roughPairs", words...)+"(SB)", table)
	case f.wide:
		f.get(f.roughPart("roughInverse", func(e [2]uint64) uint64 { return e[0] }, false), roughInverse)
		f.get(f.roughPart("roughLogs", func(e [2]uint64) uint64 { return e[1] }, false), roughLogs)
		for i, name := range f.roughNames() {
			f.get(name, roughFirst+i)
		}
	}
}

// roughNames are the operands of what AVX-512 keeps in registers.
func (f *fn) roughNames() (names []string) {
	for i, c := range roughCoefficients {
		names = append(names, f.c("rough"+string(rune('2'+i)), c))
	}
	return append(names, f.c("ln2", 0.6931471805599453), f.c("one", 1))
}

// roughLog fills out with elem.RoughLog of a, which goes; c, d and e are scratch.
func (f *fn) roughLog(out, a, c, d, e int, table string) {
	names := f.roughNames()
	with := func(op string, dst, r, i int) { // dst = r op constant i
		if f.wide {
			f.op(op, dst, r, roughFirst+i)
		} else {
			f.opm(op, dst, r, names[i])
		}
	}
	const ln2, one = 7, 8
	f.opm("VPADDQ", a, a, f.w("roughShift", 0x4000000000000000-0x3feeaaaa00000000))
	f.i("VPSRLQ", "$49", f.v(a), f.v(d))
	switch {
	case f.wide:
		f.i("VPERMPD", f.v(roughLogs), f.v(d), f.v(c))
		f.i("VPERMPD", f.v(roughInverse), f.v(d), f.v(out))
	case f.neon:
		f.gatherPairs(table, 7, d, out, c)
	default: // d has its number in lower halves, e in upper ones
		f.i("VPSLLQ", "$32", f.v(d), f.v(e))
		f.i("VPERMD", f.roughPart("roughLower", func(e [2]uint64) uint64 { return e[1] & (1<<32 - 1) }, true), f.v(d), f.v(c))
		f.i("VPERMD", f.roughPart("roughUpper", func(e [2]uint64) uint64 { return e[1] >> 32 }, true), f.v(e), f.v(e))
		f.i("VPBLENDD", "$0xaa", f.v(e), f.v(c), f.v(c))
		f.i("VPERMD", f.roughPart("roughInverses", func(e [2]uint64) uint64 { return e[0] >> 32 }, true), f.v(d), f.v(out))
		f.i("VPSLLQ", "$32", f.v(out), f.v(out))
	}
	if f.wide {
		f.i("VGETEXPPD", f.v(a), f.v(d))
	} else {
		f.i("VPSRLQ", "$52", f.v(a), f.v(d))
		f.opm("VPOR", d, d, f.c("two52", 0x1p52))
		f.opm("VSUBPD", d, d, f.c("bias", 0x1p52+1023))
	}
	with("VMULPD", d, d, ln2)
	f.add(c, d, c)
	f.opm(pick(f, "VPANDQ", "VPAND"), a, a, f.w("mantissa", 1<<52-1))
	f.opm("VPADDQ", a, a, f.w("roughEdge", 0x3feeaaaa00000000))
	f.mul(a, a, out)
	with("VSUBPD", a, a, one) // f
	f.mul(d, a, a)            // f²
	f.add(c, c, a)
	with("VMULPD", out, d, 6)
	with("VMULPD", e, a, 5)
	f.add(out, out, e)
	with("VADDPD", out, out, 4)
	f.mul(e, d, d)
	f.mul(out, out, e)
	with("VMULPD", e, a, 3)
	with("VADDPD", e, e, 2)
	f.mul(e, e, d)
	f.add(out, out, e)
	with("VMULPD", e, a, 1)
	with("VADDPD", e, e, 0)
	f.add(out, out, e)
	f.mul(out, out, d)
	f.add(out, out, c)
}

// quotients is the text for 1 or 4 rows.
func quotients(rows int) func(f *fn) {
	return func(f *fn) {
		f.load("r_base", "DI", "r_len", "CX", "u_base", "DX", "u_len", "BX", "v_base", "SI", "x_base", "R14")
		f.i("MOVQ", "CX", "R11") // bytes of a row of r and v
		f.i("SHLQ", imm(pickRows(rows, 3, 1)), "R11")
		f.i("SHRQ", imm(pickRows(rows, 3, 5)), "CX")
		f.i("SHRQ", imm(pickRows(rows, 0, 2)), "BX") // k
		f.i("MOVQ", "BX", "R12")
		f.i("SHLQ", "$3", "R12") // bytes of a row of u
		f.i("LEAQ", "(R12)(R12*2)", "R13")
		f.i("LEAQ", "(R11)(R11*2)", "AX")
		low, total, first := pick(f, 14, 14, 26), pick(f, 15, 12, 22), pick(f, 16, 4, 6)
		f.bcast(f.arg("low"), low)
		for h := range f.h() {
			f.clear(total + h)
		}
		f.groups("CX", pick(f, []int{4, 2, 1}, []int{1}), func(n int) {
			acc := func(r, b, h int) int { return first + (r*n+b)*f.h() + h }
			for r := range rows {
				for b := range n {
					f.halves(func(h, _ int) { f.clear(acc(r, b, h)) })
				}
			}
			f.i("MOVQ", "SI", "R8")
			f.i("MOVQ", "DX", "R9")
			f.i("MOVQ", "BX", "R10")
			f.loop("R10", func() {
				for b := range n {
					f.halves(func(h, off int) { f.get(mem(64*b+off, "R8"), 2+b+h) })
				}
				for r := range rows {
					f.bcast(fourth(r, 0, "R9", "R12", "R13"), 0)
					for b := range n {
						f.halves(func(h, _ int) {
							f.mul(1, 0, 2+b+h)
							f.add(acc(r, b, h), acc(r, b, h), 1)
						})
					}
				}
				f.i("ADDQ", "R11", "R8")
				f.move(8, "R9")
			})
			f.load("stride", "R8")
			f.i("SHLQ", "$3", "R8")
			f.i("LEAQ", "(R8)(R8*2)", "R9")
			for b := range n {
				for r := range rows {
					f.halves(func(h, off int) {
						w := acc(r, b, h)
						f.get(fourth(r, 64*b+off, "R14", "R8", "R9"), 0)
						f.op("VMAXPD", 1, low, w)
						f.div(1, 0, 1)
						f.put(1, fourth(r, 64*b+off, "DI", "R11", "AX"))
						f.sub(w, w, 0)
						f.add(total+h, total+h, w)
					})
				}
			}
			f.move(64*n, "DI", "SI", "R14")
		})
		f.total(total)
	}
}

// pickRows returns what is for one row, or for four.
func pickRows(rows, one, four int) int {
	if rows == 4 {
		return four
	}
	return one
}

// total returns the sum of the lanes of the block at r.
func (f *fn) total(r int) {
	if f.wide {
		f.i("VMOVAPD", f.v(r), f.v(9))
		r = 9
	}
	f.reduce(f.block(r), 0)
	f.i("VMOVSD", x(r), f.arg("ret"))
}

// logSums is the text for 1 or 4 rows. The rows of a block are woven; four ask for the
// rows of x 16 further, which come next (nmf.go).
func logSums(rows int) func(f *fn) {
	return func(f *fn) {
		f.load("r_base", "DI", "r_len", "CX", "x_base", "R14", "stride", "R8")
		f.i("MOVQ", "CX", "R11") // bytes of a row of r
		f.i("SHLQ", imm(pickRows(rows, 3, 1)), "R11")
		f.i("SHRQ", imm(pickRows(rows, 3, 5)), "CX")
		f.i("LEAQ", "(R11)(R11*2)", "AX")
		f.i("SHLQ", "$3", "R8")
		f.i("LEAQ", "(R8)(R8*2)", "R9")
		if rows == 4 {
			f.i("LEAQ", "(R14)(R8*8)", "R12")
			f.i("LEAQ", "(R12)(R8*8)", "R12")
		}
		total := pick(f, 22, 14, 14)
		f.roughSetup("R10")
		for h := range f.h() {
			f.clear(total + h)
		}
		term := func(r, h, off int) {
			f.get(fourth(r, off, "DI", "R11", "AX"), 0)
			f.roughLog(1, 0, 2, 3, 4, "R10")
			f.opm("VMULPD", 1, 1, fourth(r, off, "R14", "R8", "R9"))
			f.add(total+h, total+h, 1)
		}
		f.groups("CX", []int{1}, func(int) {
			if rows == 4 {
				for r := range rows {
					f.i("PREFETCHT1", fourth(r, 0, "R12", "R8", "R9"))
				}
			}
			if f.wide {
				f.weave(rows, 5, func(r int) { term(r, 0, 0) })
			} else {
				for r := range rows {
					for h := 0; h < f.h(); h += 2 {
						f.weave(2, 5, func(u int) { term(r, h+u, 8*f.lanes()*(h+u)) })
					}
				}
			}
			f.move(64, "DI", "R14", "R12")
		})
		f.total(total)
	}
}
