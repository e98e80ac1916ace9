package main

import "fmt"

// The loops over samples: rows of a plan and low-rank products.

// groups writes text for as many of count (a register) as there are, in groups of
// the given sizes, largest first. The text moves on the pointers; count falls here.
func (f *fn) groups(count string, sizes []int, text func(size int)) {
	for _, size := range sizes {
		loop, next := f.label("group"), f.label("next")
		f.at(loop)
		f.i("CMPQ", count, fmt.Sprintf("$%d", size))
		f.i("JLT", next)
		text(size)
		f.i("SUBQ", fmt.Sprintf("$%d", size), count)
		f.i("JMP", loop)
		f.at(next)
	}
}

// loop repeats text count times, count > 0 a register that falls to 0.
func (f *fn) loop(count string, text func()) {
	l := f.label("inner")
	f.at(l)
	text()
	f.i("DECQ", count)
	f.i("JNE", l)
}

func imm(n int) string { return fmt.Sprintf("$%d", n) }

// step moves registers on by n bytes.
func (f *fn) move(n int, regs ...string) {
	for _, r := range regs {
		f.i("ADDQ", imm(n), r)
	}
}

// pick returns a for AVX-512, b for AVX2, and for NEON b too or, where it is not
// the same, c.
func pick[T any](f *fn, a, b T, c ...T) T {
	switch {
	case f.wide:
		return a
	case f.neon && len(c) > 0:
		return c[0]
	}
	return b
}

func build(f *fn) {
	f.load("e_base", "DI", "s_base", "SI", "s_len", "CX", "h_base", "DX", "y_base", "BX", "y_len", "R12")
	f.expSetup()
	done := f.label("done")
	block := f.label("block")
	f.at(block)
	f.i("CMPQ", "CX", "$8")
	f.i("JLT", done)
	f.halves(func(_, off int) {
		// The largest exponent of each sample, in 8.
		f.get(mem(off, "SI"), 7)
		f.i("MOVQ", "DX", "R8")
		f.i("MOVQ", "BX", "R9")
		f.i("MOVQ", "R12", "R10")
		f.get(f.w("neginf", 0xfff0000000000000), 8)
		value := func() {
			f.bcast("(R9)", 1)
			f.mul(1, 7, 1)
			f.bcast("(R8)", 0)
			f.add(0, 0, 1)
		}
		f.loop("R10", func() {
			value()
			f.op("VMAXPD", 8, 8, 0)
			f.move(8, "R8", "R9")
		})
		f.i("MOVQ", "DX", "R8")
		f.i("MOVQ", "BX", "R9")
		f.i("MOVQ", "R12", "R10")
		f.i("LEAQ", mem(off, "DI"), "R11")
		const own = 7
		shift, top := pick(f, 27, 15, 27), pick(f, 26, 14, 26)
		f.i("VMOVAPD", f.v(7), f.v(shift))
		f.i("VMOVAPD", f.v(8), f.v(top))
		f.groups("R10", pick(f, []int{3, 1}, []int{2, 1}, []int{3, 1}), func(n int) {
			f.weave(n, own, func(u int) {
				f.bcast(mem(8*u, "R9"), 1)
				f.mul(1, shift, 1)
				f.bcast(mem(8*u, "R8"), 0)
				f.add(0, 0, 1)
				f.sub(0, 0, top)
				f.exp(1, 0, 2, 3, 4, 5, 6)
				f.choose(1, 0, lt, f.c("flush", -300), f.c("zero", 0), 2)
				f.put(1, mem(64*u, "R11"))
			})
			f.move(8*n, "R8", "R9")
			f.move(64*n, "R11")
		})
	})
	f.i("MOVQ", "R12", "AX")
	f.i("SHLQ", "$6", "AX")
	f.i("ADDQ", "AX", "DI")
	f.move(64, "SI")
	f.i("SUBQ", "$8", "CX")
	f.i("JMP", block)
	f.at(done)
}

func lift(f *fn) {
	f.load("e_base", "DI", "h_base", "DX", "h_len", "BX", "n", "CX")
	f.i("SHRQ", "$3", "CX")
	f.i("MOVQ", "BX", "R12")
	f.i("SHLQ", "$6", "R12") // a block of e
	f.i("LEAQ", "(R12)(R12*2)", "R13")
	index := [][]string{nil, {"R12*1"}, {"R12*2"}, {"R13*1"}}
	f.groups("CX", pick(f, []int{4, 1}, []int{1}), func(n int) {
		top := func(u, h int) int { return 4 + 2*(u*f.h()+h) }
		each := func(text func(u, h int, at string)) {
			f.i("MOVQ", "DI", "R8")
			f.i("MOVQ", "DX", "R9")
			f.i("MOVQ", "BX", "R10")
			f.loop("R10", func() {
				f.bcast("(R9)", 0)
				for u := range n {
					f.halves(func(h, off int) { text(u, h, mem(off, "R8", index[u]...)) })
				}
				f.move(64, "R8")
				f.move(8, "R9")
			})
		}
		for u := range n {
			f.halves(func(h, _ int) { f.clear(top(u, h)) })
		}
		each(func(u, h int, at string) {
			f.opm("VMULPD", 1, 0, at)
			f.put(1, at)
			f.op("VMAXPD", top(u, h), top(u, h), 1)
		})
		f.get(f.c("one", 1), 1)
		for u := range n {
			f.halves(func(h, _ int) {
				f.opm("VMULPD", top(u, h)+1, top(u, h), f.c("flushed", 5.148200222412013e-131))
				f.div(top(u, h), 1, top(u, h))
			})
		}
		each(func(u, h int, at string) {
			f.get(at, 1)
			f.keep(1, 1, nl, f.v(top(u, h)+1), 2)
			f.mul(1, 1, top(u, h))
			f.put(1, at)
		})
		for range n {
			f.i("ADDQ", "R12", "DI")
		}
	})
}

func tops(f *fn) {
	f.load("t_base", "DI", "t_len", "CX", "s_base", "SI", "h_base", "DX", "y_base", "BX", "y_len", "R12")
	f.i("SHRQ", "$3", "CX")
	f.groups("CX", pick(f, []int{4, 1}, []int{2, 1}), func(n int) {
		s := func(u, h int) int { return 4 + 2*(u*f.h()+h) }
		for u := range n {
			f.halves(func(h, off int) {
				f.get(mem(64*u+off, "SI"), s(u, h))
				f.get(f.w("neginf", 0xfff0000000000000), s(u, h)+1)
			})
		}
		f.i("MOVQ", "DX", "R8")
		f.i("MOVQ", "BX", "R9")
		f.i("MOVQ", "R12", "R10")
		f.loop("R10", func() {
			f.bcast("(R8)", 0)
			f.bcast("(R9)", 1)
			for u := range n {
				f.halves(func(h, _ int) {
					f.mul(2, s(u, h), 1)
					f.add(2, 0, 2)
					f.op("VMAXPD", s(u, h)+1, s(u, h)+1, 2)
				})
			}
			f.move(8, "R8", "R9")
		})
		for u := range n {
			f.halves(func(h, off int) { f.put(s(u, h)+1, mem(64*u+off, "DI")) })
		}
		f.move(64*n, "DI", "SI")
	})
}

func buildPower(f *fn) {
	f.load("e_base", "DI", "s_base", "SI", "s_len", "CX", "m", "BX")
	f.expSetup()
	done, block := f.label("done"), f.label("block")
	f.at(block)
	f.i("CMPQ", "CX", "$8")
	f.i("JLT", done)
	f.halves(func(h, off int) {
		f.weave(2, 7, func(u int) {
			f.get(mem(off, "SI"), 0)
			f.bcast(f.arg([]string{"y0", "step"}[u]), 1)
			f.mul(0, 0, 1)
			f.exp(1, 0, 2, 3, 4, 5, 6)
		})
		if h < f.h()-1 { // kept from the next, which uses the first 14 registers
			f.i("VMOVAPD", f.v(1), f.v(14+2*h))
			f.i("VMOVAPD", f.v(8), f.v(15+2*h))
		}
	})
	p, r := []int{14, 16, 18, 20}, []int{15, 17, 19, 21}
	p[f.h()-1], r[f.h()-1] = 1, 8
	f.i("MOVQ", "BX", "R10")
	f.loop("R10", func() {
		f.halves(func(h, off int) {
			f.put(p[h], mem(off, "DI"))
			f.mul(p[h], p[h], r[h])
		})
		f.move(64, "DI")
	})
	f.move(64, "SI")
	f.i("SUBQ", "$8", "CX")
	f.i("JMP", block)
	f.at(done)
}

func rowSums(f *fn) {
	f.load("z_base", "DI", "z_len", "CX", "e_base", "SI", "w_base", "DX", "w_len", "BX")
	f.i("SHRQ", "$3", "CX")
	f.i("MOVQ", "BX", "R11")
	f.i("SHLQ", "$6", "R11")
	f.i("LEAQ", "(R11)(R11*2)", "R12")
	f.i("LEAQ", "-8(DX)(BX*8)", "DX") // the last weight
	index := [][]string{nil, {"R11*1"}, {"R11*2"}, {"R12*1"}}
	f.groups("CX", pick(f, []int{4, 1}, []int{2, 1}), func(n int) {
		acc := func(u, h int) int { return 4 + u*f.h() + h }
		for u := range n {
			f.halves(func(h, _ int) { f.clear(acc(u, h)) })
		}
		f.i("LEAQ", "-64(SI)(R11*1)", "R10") // the last level
		f.i("MOVQ", "DX", "R8")
		f.i("MOVQ", "BX", "R9")
		f.loop("R9", func() {
			f.bcast("(R8)", 0)
			for u := range n {
				f.halves(func(h, off int) {
					f.opm("VMULPD", 1, 0, mem(off, "R10", index[u]...))
					f.add(acc(u, h), acc(u, h), 1)
				})
			}
			f.i("SUBQ", "$64", "R10")
			f.i("SUBQ", "$8", "R8")
		})
		for u := range n {
			f.halves(func(h, off int) { f.put(acc(u, h), mem(64*u+off, "DI")) })
			f.i("ADDQ", "R11", "SI")
		}
		f.move(64*n, "DI")
	})
}

func moments(f *fn) {
	f.load("mu_base", "DI", "mu_len", "BX", "e_base", "SI", "v_base", "DX", "v_len", "CX")
	f.i("SHRQ", "$1", "BX") // levels
	f.i("SHRQ", "$3", "CX") // blocks
	f.i("MOVQ", "BX", "R11")
	f.i("SHLQ", "$6", "R11")
	f.groups("BX", pick(f, []int{8, 4, 2, 1}, []int{2, 1}), func(n int) {
		acc := func(g, o, h int) int { // 16 and on where wide: reduce moves them
			return 5 + (2*g+o)*f.h() + h
		}
		for g := range n {
			for o := range 2 {
				f.halves(func(h, _ int) { f.clear(acc(g, o, h)) })
			}
		}
		last := f.label("inside")
		f.i("MOVQ", imm(64*n), "R12") // to the level after the group, or the last again
		f.i("CMPQ", "BX", imm(n))
		f.i("JNE", last)
		f.i("MOVQ", imm(64*(n-1)), "R12")
		f.at(last)
		f.i("MOVQ", "SI", "R8")
		f.i("MOVQ", "DX", "R9")
		f.i("MOVQ", "CX", "R10")
		f.loop("R10", func() {
			f.halves(func(h, off int) {
				f.get(mem(off, "R9"), 0)
				a, b := 1, 2
				f.get(mem(off, "R8"), a)
				for g := range n {
					if g < n-1 {
						f.get(mem(64*(g+1)+off, "R8"), b)
					} else {
						f.get(mem(off, "R8", "R12*1"), b)
					}
					f.mul(3, 0, a)
					f.mul(4, 3, a)
					f.add(acc(g, 0, h), acc(g, 0, h), 4)
					f.mul(4, 3, b)
					f.add(acc(g, 1, h), acc(g, 1, h), 4)
					a, b = b, a
				}
			})
			f.i("ADDQ", "R11", "R8")
			f.move(64, "R9")
		})
		for g := range n {
			for o := range 2 {
				f.scalar(acc(g, o, 0), mem(16*g+8*o, "DI"))
			}
		}
		f.move(64*n, "SI")
		f.move(16*n, "DI")
	})
	f.i("MOVQ", "$0", "-8(DI)") // the last neighbour was the last level itself
}

// scalar reduces the block in registers a and on to the number at m; 0 and 1 are
// scratch.
func (f *fn) scalar(a int, m string) {
	if f.wide && a > 15 {
		f.i("VMOVAPD", f.v(a), f.v(0))
		a = 0
	}
	f.reduce(f.block(a), 1)
	f.i("VMOVSD", x(a), m)
}

func gram(f *fn) {
	// AX: level j in e; R12: levels up to j.
	f.load("g_base", "DI", "e_base", "SI", "m", "BX")
	f.i("MOVQ", "BX", "R11")
	f.i("SHLQ", "$6", "R11") // a block of e
	f.i("ADDQ", "$7", "BX")  // bytes of a row of g
	f.i("ANDQ", "$-8", "BX")
	f.i("SHLQ", "$3", "BX")
	f.i("MOVQ", "SI", "AX")
	f.i("MOVQ", "$1", "R12")
	row, done := f.label("row"), f.label("done")
	f.at(row)
	f.i("CMPQ", "R12", f.arg("m"))
	f.i("JGT", done)
	f.i("MOVQ", "R12", "R8") // levels left
	f.i("MOVQ", "SI", "R9")  // level k
	f.i("MOVQ", "DI", "R10") // g_jk of row j
	f.groups("R8", pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		acc := func(g, h int) int { return 4 + g*f.h() + h }
		for g := range n {
			f.halves(func(h, _ int) { f.clear(acc(g, h)) })
		}
		f.i("XORQ", "R13", "R13") // from the first block to this one
		f.load("v_base", "DX", "v_len", "CX")
		f.i("SHRQ", "$3", "CX")
		f.loop("CX", func() {
			f.halves(func(h, off int) {
				f.get(mem(off, "DX"), 0)
				f.opm("VMULPD", 0, 0, mem(off, "AX", "R13*1"))
				for g := range n {
					f.opm("VMULPD", 1, 0, mem(64*g+off, "R9", "R13*1"))
					f.add(acc(g, h), acc(g, h), 1)
				}
			})
			f.i("ADDQ", "R11", "R13")
			f.move(64, "DX")
		})
		for g := range n {
			f.scalar(acc(g, 0), mem(8*g, "R10"))
		}
		f.move(64*n, "R9")
		f.move(8*n, "R10")
	})
	f.i("ADDQ", "BX", "DI")
	f.move(64, "AX")
	f.i("INCQ", "R12")
	f.i("JMP", row)
	f.at(done)
}

func hankel(f *fn) {
	f.load("g_base", "DI", "c_base", "R9", "mu_base", "DX", "ratio_base", "SI", "w_base", "R8", "w_len", "CX")
	f.i("MOVQ", "CX", "R11")
	f.i("SHLQ", "$3", "R11") // bytes of a row
	f.i("SHRQ", "$3", "CX")
	sums := f.after(4)
	f.groups("CX", []int{1}, func(int) {
		f.halves(func(h, off int) {
			f.get(mem(off, "R8"), 4+h)
			f.clear(sums + h)
		})
		f.i("MOVQ", "DI", "R10")
		f.i("MOVQ", "SI", "R12")
		f.i("MOVQ", "DX", "R13")
		f.load("w_base", "AX", "m", "BX")
		f.loop("BX", func() {
			f.bcast("(AX)", 3)
			f.halves(func(h, off int) {
				f.get(mem(off, "R13"), 0)
				f.opm("VMULPD", 0, 0, mem(off, "R12"))
				f.mul(1, 3, 4+h)
				f.mul(0, 0, 1)
				f.flush(0, 1, 2)
				f.put(0, mem(off, "R10"))
				f.add(sums+h, sums+h, 0)
			})
			f.move(8, "AX", "R13")
			f.i("ADDQ", "R11", "R12")
			f.i("ADDQ", "R11", "R10")
		})
		f.halves(func(h, off int) { f.put(sums+h, mem(off, "R9")) })
		f.move(64, "DI", "SI", "DX", "R8", "R9")
	})
}

func differences(f *fn) {
	f.load("out_base", "R9", "out_len", "CX", "g_base", "DI", "v_base", "R8")
	f.i("MOVQ", "CX", "R11")
	f.i("SHLQ", "$3", "R11") // bytes of a row
	f.i("SHRQ", "$3", "CX")
	sums := f.after(4)
	f.groups("CX", []int{1}, func(int) {
		f.halves(func(h, off int) {
			f.get(mem(off, "R8"), 4+h)
			f.clear(sums + h)
		})
		f.i("MOVQ", "DI", "R10")
		f.load("v_base", "AX", "m", "BX")
		f.loop("BX", func() {
			f.bcast("(AX)", 3)
			f.halves(func(h, off int) {
				f.sub(0, 4+h, 3)
				f.opm("VMULPD", 0, 0, mem(off, "R10"))
				f.add(sums+h, sums+h, 0)
			})
			f.move(8, "AX")
			f.i("ADDQ", "R11", "R10")
		})
		f.halves(func(h, off int) { f.put(sums+h, mem(off, "R9")) })
		f.move(64, "DI", "R8", "R9")
	})
}

// flush zeroes r where its magnitude is below 1e-200; s, t are scratch.
func (f *fn) flush(r, s, t int) {
	f.opm(pick(f, "VPANDQ", "VANDPD"), s, r, f.w("magnitude", 1<<63-1))
	f.keep(r, s, nl, f.c("decouple", 1e-200), t)
}

func colSums(f *fn) {
	f.load("c_base", "DI", "c_len", "BX", "e_base", "SI", "v_base", "DX", "v_len", "CX")
	f.i("SHRQ", "$3", "CX")
	f.i("MOVQ", "BX", "R11")
	f.i("SHLQ", "$6", "R11")
	f.groups("BX", pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		acc := func(g, h int) int { return 4 + g*f.h() + h }
		for g := range n {
			f.halves(func(h, _ int) { f.clear(acc(g, h)) })
		}
		f.i("MOVQ", "SI", "R8")
		f.i("MOVQ", "DX", "R9")
		f.i("MOVQ", "CX", "R10")
		f.loop("R10", func() {
			f.halves(func(h, off int) {
				f.get(mem(off, "R9"), 0)
				for g := range n {
					f.opm("VMULPD", 1, 0, mem(64*g+off, "R8"))
					f.add(acc(g, h), acc(g, h), 1)
				}
			})
			f.i("ADDQ", "R11", "R8")
			f.move(64, "R9")
		})
		for g := range n {
			f.scalar(acc(g, 0), mem(8*g, "DI"))
		}
		f.move(64*n, "SI")
		f.move(8*n, "DI")
	})
}

func average(f *fn) {
	f.load("t_base", "DI", "t_len", "CX", "e_base", "SI", "w_base", "DX", "w_len", "BX", "z_base", "R8", "d_base", "R9")
	f.i("SHRQ", "$3", "CX")
	f.i("DECQ", "BX") // increments
	f.i("MOVQ", "BX", "R11")
	f.i("SHLQ", "$6", "R11")          // from the first level to the last
	f.i("LEAQ", "64(R11)", "R12")     // a block of e
	f.i("LEAQ", "(DX)(BX*8)", "DX")   // the last weight
	f.i("LEAQ", "-8(R9)(BX*8)", "R9") // the last increment
	f.bcast(f.arg("first"), 3)
	f.groups("CX", pick(f, []int{4, 1}, []int{2, 1}), func(n int) {
		acc := func(u, o, h int) int { return 4 + (2*u+o)*f.h() + h }
		index := [][]string{nil, {"R12*1"}, {"R12*2"}, {"R13*1"}}
		f.i("LEAQ", "(R12)(R12*2)", "R13")
		for u := range n {
			for o := range 2 {
				f.halves(func(h, _ int) { f.clear(acc(u, o, h)) })
			}
		}
		none := f.label("none")
		f.i("LEAQ", "(SI)(R11*1)", "R10")
		f.i("XORQ", "AX", "AX")
		f.load("w_len", "BX")
		f.i("DECQ", "BX")
		f.i("JEQ", none)
		f.loop("BX", func() {
			f.bcast("(DX)(AX*1)", 0)
			f.bcast("(R9)(AX*1)", 1)
			for u := range n {
				f.halves(func(h, off int) {
					f.opm("VMULPD", 2, 0, mem(off, "R10", index[u]...))
					f.add(acc(u, 0, h), acc(u, 0, h), 2)
					f.mul(2, 1, acc(u, 0, h))
					f.add(acc(u, 1, h), acc(u, 1, h), 2)
				})
			}
			f.i("SUBQ", "$64", "R10")
			f.i("SUBQ", "$8", "AX")
		})
		f.at(none)
		f.bcast("(DX)(AX*1)", 0)
		for u := range n {
			f.halves(func(h, off int) {
				f.opm("VMULPD", 2, 0, mem(off, "R10", index[u]...))
				f.add(1, acc(u, 0, h), 2)
				f.put(1, mem(64*u+off, "R8"))
				f.div(2, acc(u, 1, h), 1)
				f.add(2, 3, 2)
				f.put(2, mem(64*u+off, "DI"))
			})
			f.i("ADDQ", "R12", "SI")
		}
		f.move(64*n, "R8", "DI")
	})
}

func covariance(f *fn) {
	f.load("out_base", "DI", "out_len", "CX", "e_base", "SI", "w_base", "DX", "z_base", "R8", "v_base", "R9", "lam_base", "R10", "y_base", "R11")
	f.load("zeta_base", "R12", "a_base", "R13", "w_len", "R14")
	f.i("SHRQ", "$3", "CX")
	f.i("SHLQ", "$6", "R14") // a block of e
	const (
		p, du, t, best                   = 0, 1, 2, 3
		dy                               = best
		vt, lt0, yt, zl, al, mu, my, muy = 4, 5, 6, 7, 8, 9, 10, 11
		own                              = 12
	)
	// Several registers of samples go side by side: wide two blocks, narrow one half of
	// a block after the other, two of the four registers of NEON.
	part := func(n, off int) {
		r := func(u, k int) int { return own*u + k }
		at := func(u int, base string) string { return mem(off+pick(f, 64, 0, 16)*u, base) }
		// number is a register with that of the level in a list: to or, as NEON has no
		// operands of memory, one for all.
		number := func(u int, base string, to int) int {
			if f.neon {
				to = map[string]int{"DX": 24, "R9": 25, "R10": 26, "R11": 27}[base]
			}
			if !f.neon || u == 0 {
				f.bcast("("+base+")(BX*8)", to)
			}
			return to
		}
		each := func(text func(u int)) {
			f.i("LEAQ", mem(off, "SI"), "AX")
			f.i("XORQ", "BX", "BX")
			l := f.label("level")
			f.at(l)
			for u := range n {
				f.opm("VMULPD", r(u, p), number(u, "DX", r(u, p)), pick(f, mem(0, "AX", []string{"R14*1"}[:min(u, 1)]...), "(AX)", mem(16*u, "AX")))
				text(u)
			}
			f.move(64, "AX")
			f.i("INCQ", "BX")
			f.i("CMPQ", "BX", f.arg("w_len"))
			f.i("JLT", l)
		}
		for u := range n {
			f.bcast("(R9)", r(u, vt))
			f.bcast("(R10)", r(u, lt0))
			f.bcast("(R11)", r(u, yt))
			f.clear(r(u, best))
		}
		each(func(u int) {
			if f.wide {
				f.i("VCMPPD", gt, f.v(r(u, best)), f.v(r(u, p)), "K1")
				f.op("VMAXPD", r(u, best), r(u, best), r(u, p))
				f.i("VBROADCASTSD", "(R9)(BX*8)", "K1", f.v(r(u, vt)))
				f.i("VBROADCASTSD", "(R10)(BX*8)", "K1", f.v(r(u, lt0)))
				f.i("VBROADCASTSD", "(R11)(BX*8)", "K1", f.v(r(u, yt)))
				return
			}
			f.i("VCMPPD", gt, f.v(r(u, best)), f.v(r(u, p)), f.v(r(u, t)))
			f.op("VMAXPD", r(u, best), r(u, best), r(u, p))
			for i, base := range []string{"R9", "R10", "R11"} {
				f.i("VBLENDVPD", f.v(r(u, t)), f.v(number(u, base, r(u, du))), f.v(r(u, vt+i)), f.v(r(u, vt+i)))
			}
		})
		for u := range n {
			f.get(at(u, "R12"), r(u, zl))
			f.get(at(u, "R13"), r(u, al))
			f.clear(r(u, mu), r(u, my), r(u, muy))
		}
		each(func(u int) {
			p, du, dy, t := r(u, p), r(u, du), r(u, dy), r(u, t)
			f.sub(du, number(u, "R9", du), r(u, vt))
			f.mul(du, r(u, zl), du)
			f.sub(t, number(u, "R10", t), r(u, lt0))
			f.mul(t, r(u, al), t)
			f.sub(du, du, t)
			f.sub(dy, number(u, "R11", dy), r(u, yt))
			f.mul(du, p, du)
			f.add(r(u, mu), r(u, mu), du)
			f.mul(p, p, dy)
			f.add(r(u, my), r(u, my), p)
			f.mul(du, du, dy)
			f.add(r(u, muy), r(u, muy), du)
		})
		for u := range n {
			mu, my, muy, z := r(u, mu), r(u, my), r(u, muy), r(u, p)
			f.get(at(u, "R8"), z)
			f.div(muy, muy, z)
			f.div(mu, mu, z)
			f.div(my, my, z)
			f.mul(mu, mu, my)
			f.sub(muy, muy, mu)
			f.put(muy, at(u, "DI"))
		}
	}
	f.groups("CX", pick(f, []int{2, 1}, []int{1}), func(n int) {
		if f.wide {
			part(n, 0)
		} else {
			part(pick(f, 0, 1, 2), 0)
			part(pick(f, 0, 1, 2), 32)
		}
		for range n {
			f.i("ADDQ", "R14", "SI")
		}
		f.move(64*n, "DI", "R8", "R12", "R13")
	})
}

func covariances(f *fn) {
	// One offset, CX, for all that runs over samples; R12 is one of their bases.
	f.load("e_base", "SI", "w_base", "DX", "v_base", "R9", "lam_base", "R10", "y_base", "R11", "h_base", "R8")
	f.load("w_len", "R13")
	f.i("SHLQ", "$6", "R13") // a block of e
	f.i("XORQ", "CX", "CX")
	// Two blocks side by side where wide; of a sample's numbers only ζ has a register
	// where not.
	const (
		p, du, dt, t, mu, my, muy, ml, mul, mlam = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
		vt, lt0, yt, ht, zl, al                  = 10, 11, 12, 13, 14, 15
		best                                     = my
		own                                      = 16
	)
	tops := []struct {
		base string
		r    int
	}{{"R9", vt}, {"R10", lt0}, {"R11", yt}, {"R8", ht}}
	part := func(n, off int) {
		r := func(u, k int) int { return own*u + k }
		e := func(u int) string { return mem(0, "AX", []string{"R13*1"}[:u]...) }
		each := func(text func()) {
			f.i("LEAQ", mem(off, "SI"), "AX")
			f.i("XORQ", "BX", "BX")
			l := f.label("level")
			f.at(l)
			text()
			f.move(64, "AX")
			f.i("INCQ", "BX")
			f.i("CMPQ", "BX", f.arg("w_len"))
			f.i("JLT", l)
		}
		sample := func(name string, number int) {
			f.load(name+"_base", "R12")
			for u := range n {
				f.get(mem(off+64*u, "R12", "CX*8"), r(u, number))
			}
		}
		for u := range n {
			for _, l := range tops {
				f.bcast("("+l.base+")", r(u, l.r))
			}
			f.clear(r(u, best))
		}
		each(func() {
			f.bcast("(DX)(BX*8)", dt)
			if f.wide {
				for i, l := range tops {
					f.bcast("("+l.base+")(BX*8)", []int{mu, muy, ml, mul}[i])
				}
				for u := range n {
					f.opm("VMULPD", r(u, p), dt, e(u))
					k := fmt.Sprintf("K%d", 1+u)
					f.i("VCMPPD", gt, f.v(r(u, best)), f.v(r(u, p)), k)
					f.op("VMAXPD", r(u, best), r(u, best), r(u, p))
					for i, l := range tops {
						f.i("VMOVAPD", f.v([]int{mu, muy, ml, mul}[i]), k, f.v(r(u, l.r)))
					}
				}
				return
			}
			f.opm("VMULPD", p, dt, e(0))
			f.i("VCMPPD", gt, f.v(best), f.v(p), f.v(t))
			f.op("VMAXPD", best, best, p)
			for _, l := range tops {
				f.bcast("("+l.base+")(BX*8)", du)
				f.i("VBLENDVPD", f.v(t), f.v(du), f.v(l.r), f.v(l.r))
			}
		})
		sample("zeta", zl)
		sample("a", al)
		f.load("s_base", "R12")
		for u := range n {
			for k := mu; k <= mlam; k++ {
				f.clear(r(u, k))
			}
		}
		each(func() {
			// number is top less that of the level.
			number := func(base string, top, to int) {
				if f.wide {
					f.i("VSUBPD.BCST", "("+base+")(BX*8)", f.v(top), f.v(to))
					return
				}
				f.bcast("("+base+")(BX*8)", to)
				f.sub(to, top, to)
			}
			for u := range n {
				p, du, dt, t := r(u, p), r(u, du), r(u, dt), r(u, t)
				f.bcast("(DX)(BX*8)", p)
				f.opm("VMULPD", p, p, e(u))
				number("R9", r(u, vt), du)
				f.mul(du, r(u, zl), du)
				number("R10", r(u, lt0), t)
				f.mul(dt, p, t)
				f.add(r(u, mlam), r(u, mlam), dt)
				f.mul(t, r(u, al), t)
				f.sub(du, du, t)
				f.mul(du, p, du)
				f.add(r(u, mu), r(u, mu), du)
				number("R11", r(u, yt), t)
				f.mul(dt, p, t)
				f.add(r(u, my), r(u, my), dt)
				f.mul(dt, du, t)
				f.add(r(u, muy), r(u, muy), dt)
				f.opm("VMULPD", t, t, mem(off+64*u, "R12", "CX*8"))
				number("R8", r(u, ht), dt)
				f.add(dt, dt, t)
				f.mul(p, p, dt)
				f.add(r(u, ml), r(u, ml), p)
				f.mul(du, du, dt)
				f.add(r(u, mul), r(u, mul), du)
			}
		})
		sample("z", p)
		for u := range n {
			for k := mu; k <= mlam; k++ {
				f.div(r(u, k), r(u, k), r(u, p))
			}
			f.sub(r(u, mlam), r(u, lt0), r(u, mlam))
			for _, k := range []int{my, ml} {
				f.mul(r(u, k), r(u, mu), r(u, k))
				f.sub(r(u, k+1), r(u, k+1), r(u, k))
			}
		}
		for _, to := range []struct {
			name   string
			number int
		}{{"out", muy}, {"logs", mul}, {"mean", mlam}} {
			f.load(to.name+"_base", "R12")
			for u := range n {
				f.put(r(u, to.number), mem(off+64*u, "R12", "CX*8"))
			}
		}
	}
	for _, n := range pick(f, []int{2, 1}, []int{1}) {
		next, done := f.label("next"), f.label("done")
		f.at(next)
		f.i("LEAQ", mem(8*n-1, "CX"), "AX")
		f.i("CMPQ", "AX", f.arg("z_len"))
		f.i("JGE", done)
		f.halves(func(_, off int) { part(n, off) })
		for range n {
			f.i("ADDQ", "R13", "SI")
		}
		f.i("ADDQ", imm(8*n), "CX")
		f.i("JMP", next)
		f.at(done)
	}
}

func combine(f *fn) {
	f.load("w_base", "DI", "w_len", "CX", "u_base", "DX", "u_len", "BX", "v_base", "SI")
	f.i("MOVQ", "CX", "R11")
	f.i("SHLQ", "$3", "R11") // bytes of a row
	f.i("SHRQ", "$3", "CX")
	f.groups("CX", pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		acc := func(u, h int) int { return 4 + u*f.h() + h }
		for u := range n {
			f.halves(func(h, _ int) { f.clear(acc(u, h)) })
		}
		none := f.label("none")
		f.i("MOVQ", "SI", "R8")
		f.i("MOVQ", "DX", "R9")
		f.i("MOVQ", "BX", "R10")
		f.i("TESTQ", "BX", "BX")
		f.i("JEQ", none)
		f.loop("R10", func() {
			f.bcast("(R9)", 0)
			for u := range n {
				f.halves(func(h, off int) {
					f.opm("VMULPD", 1, 0, mem(64*u+off, "R8"))
					f.add(acc(u, h), acc(u, h), 1)
				})
			}
			f.i("ADDQ", "R11", "R8")
			f.move(8, "R9")
		})
		f.at(none)
		for u := range n {
			f.halves(func(h, off int) { f.put(acc(u, h), mem(64*u+off, "DI")) })
		}
		f.move(64*n, "DI", "SI")
	})
}

// rows are the operands of up to eight rows R11 bytes apart, from R8 and R9 = R8 +
// 4 R11 with R12 = 3 R11.
func rows(g, off int) string {
	base := "R8"
	if g > 3 {
		base = "R9"
	}
	return mem(off, base, [][]string{nil, {"R11*1"}, {"R11*2"}, {"R12*1"}}[g&3]...)
}

func dots(f *fn) {
	f.load("g_base", "DI", "g_len", "BX", "v_base", "SI", "r_base", "DX", "r_len", "CX")
	f.i("MOVQ", "CX", "R11")
	f.i("SHLQ", "$3", "R11")
	f.i("LEAQ", "(R11)(R11*2)", "R12")
	f.i("SHRQ", "$3", "CX")
	f.groups("BX", pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		acc := func(g, h int) int { return 4 + g*f.h() + h }
		for g := range n {
			f.halves(func(h, _ int) { f.clear(acc(g, h)) })
		}
		f.i("MOVQ", "SI", "R8")
		f.i("LEAQ", "(SI)(R11*4)", "R9")
		f.i("MOVQ", "DX", "R10")
		f.i("MOVQ", "CX", "AX")
		f.loop("AX", func() {
			f.halves(func(h, off int) {
				f.get(mem(off, "R10"), 0)
				for g := range n {
					f.opm("VMULPD", 1, 0, rows(g, off))
					f.add(acc(g, h), acc(g, h), 1)
				}
			})
			f.move(64, "R8", "R9", "R10")
		})
		for g := range n {
			f.scalar(acc(g, 0), mem(8*g, "DI"))
		}
		f.move(8*n, "DI")
		for range n {
			f.i("ADDQ", "R11", "SI")
		}
	})
}

func sum(f *fn) {
	f.load("r_base", "SI", "r_len", "CX")
	f.i("SHRQ", "$3", "CX")
	f.clear(f.block(2)...)
	f.groups("CX", []int{1}, func(int) {
		f.halves(func(h, off int) { f.opm("VADDPD", 2+h, 2+h, mem(off, "SI")) })
		f.move(64, "SI")
	})
	f.reduce(f.block(2), 1)
	f.i("VMOVSD", x(2), f.arg("ret"))
}

func accumulate(f *fn) {
	f.load("acc_base", "SI", "u_base", "DI", "u_len", "BX", "r_base", "DX", "r_len", "CX")
	f.i("MOVQ", "CX", "R11")
	f.i("SHLQ", "$3", "R11")
	f.i("LEAQ", "(R11)(R11*2)", "R12")
	f.i("SHRQ", "$3", "CX")
	f.groups("BX", pick(f, []int{8, 4, 2, 1}, []int{4, 2, 1}), func(n int) {
		for g := range n {
			f.bcast(mem(8*g, "DI"), 4+g)
		}
		f.i("MOVQ", "SI", "R8")
		f.i("LEAQ", "(SI)(R11*4)", "R9")
		f.i("MOVQ", "DX", "R10")
		f.i("MOVQ", "CX", "AX")
		f.loop("AX", func() {
			f.halves(func(_, off int) {
				f.get(mem(off, "R10"), 0)
				for g := range n {
					f.mul(1, 0, 4+g)
					f.opm("VADDPD", 1, 1, rows(g, off))
					f.put(1, rows(g, off))
				}
			})
			f.move(64, "R8", "R9", "R10")
		})
		f.move(8*n, "DI")
		for range n {
			f.i("ADDQ", "R11", "SI")
		}
	})
}

// Four rows at a time of the three loops above, so that V is read once for them;
// narrow, two and two where registers are short. Each row has the bits of its own loop.

// fourth returns the operand off(base) of row i of up to five that lie step bytes apart,
// triple three times that.
func fourth(i, off int, base, step, triple string) string {
	return mem(off, base, [][]string{nil, {step + "*1"}, {step + "*2"}, {triple + "*1"}, {step + "*4"}}[i]...)
}

func combine4(f *fn) {
	f.load("w_base", "DI", "w_len", "CX", "u_base", "DX", "u_len", "BX", "v_base", "SI")
	f.i("SHRQ", "$2", "BX") // k
	f.i("MOVQ", "BX", "R12")
	f.i("SHLQ", "$3", "R12") // bytes of a row of u
	f.i("LEAQ", "(R12)(R12*2)", "R13")
	f.i("MOVQ", "CX", "R11")
	f.i("SHLQ", "$1", "R11") // bytes of a row of w and v
	f.i("LEAQ", "(R11)(R11*2)", "AX")
	f.i("SHRQ", "$5", "CX")
	f.groups("CX", pick(f, []int{4, 1}, []int{1}), func(n int) {
		acc := func(r, b, h int) int { return pick(f, 8+r*n+b, 6+2*r+h, 6+4*r+h) }
		for r := range 4 {
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
			for r := range 4 {
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
		for r := range 4 {
			for b := range n {
				f.halves(func(h, off int) { f.put(acc(r, b, h), fourth(r, 64*b+off, "DI", "R11", "AX")) })
			}
		}
		f.move(64*n, "DI", "SI")
	})
}

func dots4(f *fn) {
	f.load("g_base", "DI", "g_len", "BX", "v_base", "SI", "r_base", "DX", "r_len", "CX")
	f.i("MOVQ", "CX", "R11")
	f.i("SHLQ", "$1", "R11") // bytes of a row of r and v
	f.i("LEAQ", "(R11)(R11*2)", "R12")
	f.i("SHRQ", "$5", "CX")
	f.i("MOVQ", "BX", "R13")
	f.i("SHLQ", "$1", "R13") // bytes of a row of g
	f.i("SHRQ", "$2", "BX")
	f.groups("BX", pick(f, []int{5, 4, 3, 2, 1}, []int{2, 1}), func(n int) {
		some := pick(f, 4, 2) // rows at a time
		for first := 0; first < 4; first += some {
			acc := func(r, g, h int) int { return pick(f, 8+r*n+g, 5+(r*n+g)*2+h, 5+(r*n+g)*4+h) }
			for r := range some {
				for g := range n {
					f.halves(func(h, _ int) { f.clear(acc(r, g, h)) })
				}
			}
			f.i("MOVQ", "SI", "R8")
			f.i("LEAQ", fourth(first, 0, "DX", "R11", "R12"), "R10")
			f.i("MOVQ", "CX", "AX")
			f.loop("AX", func() {
				f.halves(func(h, off int) {
					for r := range some {
						f.get(fourth(r, off, "R10", "R11", "R12"), 2+r)
					}
					for g := range n {
						f.get(fourth(g, off, "R8", "R11", "R12"), 0)
						for r := range some {
							f.mul(1, 0, 2+r)
							f.add(acc(r, g, h), acc(r, g, h), 1)
						}
					}
				})
				f.move(64, "R8", "R10")
			})
			f.i("LEAQ", "(R13)(R13*2)", "R9")
			for r := range some {
				for g := range n {
					f.scalar(acc(r, g, 0), fourth(first+r, 8*g, "DI", "R13", "R9"))
				}
			}
		}
		f.move(8*n, "DI")
		for range n {
			f.i("ADDQ", "R11", "SI")
		}
	})
}

func accumulate4(f *fn) {
	f.load("acc_base", "SI", "u_base", "DI", "u_len", "BX", "r_base", "DX", "r_len", "CX")
	f.i("SHRQ", "$2", "BX") // k
	f.i("MOVQ", "BX", "R13")
	f.i("SHLQ", "$3", "R13") // bytes of a row of u
	f.i("MOVQ", "CX", "R11")
	f.i("SHLQ", "$1", "R11") // bytes of a row of r and acc
	f.i("LEAQ", "(R11)(R11*2)", "R12")
	f.i("SHRQ", "$5", "CX")
	f.groups("BX", pick(f, []int{5, 4, 3, 2, 1}, []int{2, 1}), func(n int) {
		by := func(r, g int) int { return 6 + r*n + g }
		f.i("LEAQ", "(R13)(R13*2)", "R9")
		for r := range 4 {
			for g := range n {
				f.bcast(fourth(r, 8*g, "DI", "R13", "R9"), by(r, g))
			}
		}
		f.i("MOVQ", "SI", "R8")
		f.i("MOVQ", "DX", "R10")
		f.i("MOVQ", "CX", "AX")
		f.loop("AX", func() {
			f.halves(func(_, off int) {
				for r := range 4 {
					f.get(fourth(r, off, "R10", "R11", "R12"), 2+r)
				}
				for g := range n {
					f.get(fourth(g, off, "R8", "R11", "R12"), 0)
					for r := range 4 {
						f.mul(1, 2+r, by(r, g))
						f.add(0, 0, 1)
					}
					f.put(0, fourth(g, off, "R8", "R11", "R12"))
				}
			})
			f.move(64, "R8", "R10")
		})
		f.move(8*n, "DI")
		for range n {
			f.i("ADDQ", "R11", "SI")
		}
	})
}
