package main

// The ratio of x to a low-rank product, and their divergence: W = UV never leaves the
// registers.

import "slices"

// roughTable has the inverses and logarithms of elem.RoughLog. AVX2 has no table of
// eight numbers in registers, but one of eight halves of them: there the words are the
// upper halves of the logarithms, their lower ones, and the upper ones of the inverses,
// which have no others. NEON has pairs.
var roughTable = [8][2]uint64{
	{0x3ff0000000000000, 0},
	{0x3fecfb2d00000000, 0x3fb95df7fa3081e6},
	{0x3fea08ae00000000, 0x3fca6939492ed1d6},
	{0x3fe7a17b00000000, 0x3fd36764e1677272},
	{0x3fe5a24200000000, 0x3fd90dfa1fc7a60b},
	{0x3fe3f2b400000000, 0x3fde3f25123d4c97},
	{0x3fe2818b00000000, 0x3fe186431f298c11},
	{0x3fe1422900000000, 0x3fe3c2067186c68b},
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
	roughInverse, roughLogs = 18, 19
	roughTop                = 22 // the coefficients from the highest down, then ln2 and 1
)

var roughCoefficients = []float64{-0.125834912959635, 0.14358973090971297, -0.16666427106744514, 0.19999850237695418, -0.25000000267895883, 0.3333333342540451, -0.49999999999911393}

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
			f.get(name, roughTop+i)
		}
	}
}

// roughNames are the operands of what AVX-512 keeps in registers.
func (f *fn) roughNames() (names []string) {
	for i, c := range roughCoefficients {
		names = append(names, f.c("rough"+string(rune('8'-i)), c))
	}
	return append(names, f.c("ln2", 0.6931471805599453), f.c("one", 1))
}

// roughLog fills out with elem.RoughLog of a, which goes; c and d are scratch.
func (f *fn) roughLog(out, a, c, d int, table string) {
	names := f.roughNames()
	with := func(op string, r, i int) { // r = r op constant i
		if f.wide {
			f.op(op, r, r, roughTop+i)
		} else {
			f.opm(op, r, r, names[i])
		}
	}
	const ln2, one = 7, 8
	f.opm("VPADDQ", a, a, f.w("roughShift", 0x3ff0000000000000-0x3feeaaaa00000000))
	f.i("VPSRLQ", "$49", f.v(a), f.v(d))
	switch {
	case f.wide:
		f.i("VPERMPD", f.v(roughLogs), f.v(d), f.v(c))
		f.i("VPERMPD", f.v(roughInverse), f.v(d), f.v(out))
	case f.neon:
		f.gatherPairs(table, 7, d, out, c)
	default: // an odd half takes entry 0 of the table, whose lower half is 0
		f.i("VPERMD", f.roughPart("roughUpper", func(e [2]uint64) uint64 { return e[1] >> 32 }, true), f.v(d), f.v(c))
		f.i("VPERMD", f.roughPart("roughLower", func(e [2]uint64) uint64 { return e[1] & (1<<32 - 1) }, true), f.v(d), f.v(out))
		f.i("VPSLLQ", "$32", f.v(c), f.v(c))
		f.op("VPOR", c, c, out)
		f.i("VPERMD", f.roughPart("roughInverses", func(e [2]uint64) uint64 { return e[0] >> 32 }, true), f.v(d), f.v(out))
		f.i("VPSLLQ", "$32", f.v(out), f.v(out))
	}
	f.i("VPSRLQ", "$52", f.v(a), f.v(d))
	f.opm(pick(f, "VPORQ", "VPOR"), d, d, f.c("two52", 0x1p52))
	f.opm("VSUBPD", d, d, f.c("bias", 0x1p52+1023))
	with("VMULPD", d, ln2)
	f.add(c, d, c)
	f.opm(pick(f, "VPANDQ", "VPAND"), a, a, f.w("mantissa", 1<<52-1))
	f.opm("VPADDQ", a, a, f.w("roughEdge", 0x3feeaaaa00000000))
	f.mul(a, a, out)
	with("VSUBPD", a, one) // f
	f.mul(d, a, a)
	if f.wide {
		f.mul(out, a, roughTop)
	} else {
		f.opm("VMULPD", out, a, names[0])
	}
	for i := 1; i < len(roughCoefficients); i++ {
		with("VADDPD", out, i)
		if i < len(roughCoefficients)-1 {
			f.mul(out, a, out)
		}
	}
	f.mul(out, d, out)
	f.add(out, a, out)
	f.add(out, out, c)
}

// quotients is the text for 1 or 4 rows, with the divergence or without.
func quotients(rows int, loss bool) func(f *fn) {
	return func(f *fn) {
		f.load("r_base", "DI", "r_len", "CX", "u_base", "DX", "u_len", "BX", "v_base", "SI", "x_base", "R14")
		f.i("MOVQ", "CX", "R11") // bytes of a row of r and v
		if rows == 4 {
			f.i("SHLQ", "$1", "R11")
			f.i("SHRQ", "$5", "CX")
			f.i("SHRQ", "$2", "BX") // k
		} else {
			f.i("SHLQ", "$3", "R11")
			f.i("SHRQ", "$3", "CX")
		}
		f.i("MOVQ", "BX", "R12")
		f.i("SHLQ", "$3", "R12") // bytes of a row of u
		f.i("LEAQ", "(R12)(R12*2)", "R13")
		f.i("LEAQ", "(R11)(R11*2)", "AX")
		low, first, total := pick(f, 21, 15, 26), pick(f, 10, 4, 6), pick(f, 20, 13, 22)
		f.bcast(f.arg("low"), low)
		if loss {
			if f.wide {
				f.roughSetup("")
			}
			for h := range f.h() {
				f.clear(total + h)
			}
		}
		f.groups("CX", pick(f, []int{2, 1}, []int{1}), func(n int) {
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
			if f.neon && loss {
				f.roughSetup("R10")
			}
			// x in b, the ratio in a; what is left of a product is w - x.
			one := func(r, b, h, off int) {
				w, q, x, c, d, e := acc(r, b, h), 0, 1, 2, 3, pick(f, 4, 12, 4)
				f.op("VMAXPD", q, low, w)
				f.get(fourth(r, 64*b+off, "R14", "R8", "R9"), x)
				f.div(q, x, q)
				f.put(q, fourth(r, 64*b+off, "DI", "R11", "AX"))
				if !loss {
					return
				}
				f.sub(w, w, x)
				f.get(f.c("tiny", 1e-300), e)
				f.op("VMAXPD", q, e, q)
				f.roughLog(e, q, c, d, "R10")
				f.mul(e, x, e)
				f.add(e, e, w)
				f.add(total+h, total+h, e)
			}
			for b := range n {
				all := []int{0, 1, 2, 3}[:rows]
				if !f.wide {
					for r := range all {
						f.halves(func(h, off int) { one(r, b, h, off) })
					}
					continue
				}
				for some := range slices.Chunk(all, 2) {
					f.weave(len(some), 5, func(u int) { one(some[u], b, 0, 0) })
				}
			}
			f.move(64*n, "DI", "SI", "R14")
		})
		if loss {
			if f.wide {
				f.i("VMOVAPD", f.v(total), f.v(9))
				total = 9
			}
			f.reduce(f.block(total), 0)
			f.i("VMOVSD", x(total), f.arg("ret"))
		}
	}
}
