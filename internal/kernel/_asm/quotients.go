package main

// The ratio of x to a low-rank product W = UV, which never leaves the registers, and
// the two sums of their divergence.

// roughCoefficients are those of elem.RoughLog2, from the lowest on.
var roughCoefficients = []float64{2.8853900817779268, 0.9617966941545152, 0.5770779266462769, 0.4122108204781891, 0.3198448046851114, 0.28371821126063973}

// roughNames are the operands of roughLog, the most wanted first.
func (f *fn) roughNames() []string {
	names := []string{f.c("one", 1), f.w("roughShift", 1023<<52-roughEdge), f.w("mantissa", 1<<52-1), f.w("roughEdge", roughEdge)}
	for i, c := range roughCoefficients {
		names = append(names, f.c("rough"+string(rune('0'+i)), c))
	}
	return names
}

// roughEdge has the bits of the root of a half.
const roughEdge = 0x3fe6a09e667f3bcd

// roughHeld says how many of them stay in registers, and from which on.
func (f *fn) roughHeld() (first, held int) { return pick(f, 24, 14, 16), pick(f, 7, 2, 10) }

// roughSetup brings operands into registers.
func (f *fn) roughSetup() {
	first, held := f.roughHeld()
	for i, name := range f.roughNames()[:held] {
		f.get(name, first+i)
	}
}

// roughLog fills a with elem.RoughLog2 of it; b to g are scratch.
func (f *fn) roughLog(a, b, c, d, e, g int) {
	names := f.roughNames()
	first, held := f.roughHeld()
	with := func(op string, dst, r, i int) { // dst = r op operand i
		if i < held {
			f.op(op, dst, r, first+i)
		} else {
			f.opm(op, dst, r, names[i])
		}
	}
	const one, shift, mantissa, edge, lowest = 0, 1, 2, 3, 4
	with("VPADDQ", a, a, shift)
	with(pick(f, "VPANDQ", "VPAND"), b, a, mantissa)
	with("VPADDQ", b, b, edge)
	with("VADDPD", c, b, one)
	with("VSUBPD", b, b, one)
	f.div(b, b, c) // s
	if f.wide {
		f.i("VGETEXPPD", f.v(a), f.v(a))
	} else {
		f.i("VPSRLQ", "$52", f.v(a), f.v(a))
		f.opm("VPOR", a, a, f.c("two52", 0x1p52))
		f.opm("VSUBPD", a, a, f.c("bias", 0x1p52+1023))
	}
	f.mul(c, b, b) // s²
	with("VMULPD", d, c, lowest+5)
	with("VMULPD", e, c, lowest+3)
	f.mul(g, c, c)
	with("VADDPD", d, d, lowest+4)
	with("VADDPD", e, e, lowest+2)
	f.mul(d, d, g)
	with("VMULPD", c, c, lowest+1)
	f.add(d, d, e)
	f.mul(d, d, g)
	with("VADDPD", c, c, lowest)
	f.add(d, d, c)
	f.mul(b, b, d)
	f.add(a, a, b)
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
		low, total, first := pick(f, 22, 14, 22), pick(f, 23, 4, 23), 6
		f.bcast(f.arg("low"), low)
		for h := range f.h() {
			f.clear(total + h)
		}
		f.groups("CX", pick(f, []int{2, 1}, []int{1}), func(n int) {
			acc := func(r, b, h int) int { return first + (r*n+b)*f.h() + h }
			products := func(sum bool) {
				for b := range n {
					f.halves(func(h, off int) { f.get(mem(64*b+off, "R8"), 2+b*f.h()+h) })
				}
				for r := range rows {
					f.bcast(fourth(r, 0, "R9", "R12", "R13"), 0)
					for b := range n {
						f.halves(func(h, _ int) {
							if !sum {
								f.mul(acc(r, b, h), 0, 2+b*f.h()+h)
								return
							}
							f.mul(1, 0, 2+b*f.h()+h)
							f.add(acc(r, b, h), acc(r, b, h), 1)
						})
					}
				}
				f.i("ADDQ", "R11", "R8")
				f.move(8, "R9")
			}
			f.i("MOVQ", "SI", "R8")
			f.i("MOVQ", "DX", "R9")
			f.i("MOVQ", "BX", "R10")
			products(false)
			whole := f.label("whole")
			f.i("DECQ", "R10")
			f.i("JEQ", whole)
			f.loop("R10", func() { products(true) })
			f.at(whole)
			f.load("stride", "R8")
			f.i("SHLQ", "$3", "R8")
			f.i("LEAQ", "(R8)(R8*2)", "R9")
			for b := range n {
				for r := range rows {
					f.halves(func(h, off int) {
						w, diff := acc(r, b, h), 2+h
						f.get(fourth(r, 64*b+off, "R14", "R8", "R9"), 0)
						if r == 0 {
							f.sub(diff, w, 0)
						} else {
							f.sub(1, w, 0)
							f.add(diff, diff, 1)
						}
						f.op("VMAXPD", w, low, w)
						f.div(w, 0, w)
						f.put(w, fourth(r, 64*b+off, "DI", "R11", "AX"))
					})
				}
				for h := range f.h() {
					f.add(total+h, total+h, 2+h)
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
		total := pick(f, 31, 12, 12)
		f.roughSetup()
		for h := range f.h() {
			f.clear(total + h)
		}
		units := pick(f, 4, 2) // at a time
		f.groups("CX", []int{1}, func(int) {
			if rows == 4 {
				for r := range rows {
					f.i("PREFETCHT1", fourth(r, 0, "R12", "R8", "R9"))
				}
			}
			for first := 0; first < rows*f.h(); first += units {
				f.weave(min(units, rows*f.h()), 6, func(u int) {
					r, h := (first+u)/f.h(), (first+u)%f.h()
					off := 8 * f.lanes() * h
					f.get(fourth(r, off, "DI", "R11", "AX"), 0)
					f.roughLog(0, 1, 2, 3, 4, 5)
					f.opm("VMULPD", 0, 0, fourth(r, off, "R14", "R8", "R9"))
					f.add(total+h, total+h, 0)
				})
			}
			f.move(64, "DI", "R14", "R12")
		})
		f.total(total)
	}
}
