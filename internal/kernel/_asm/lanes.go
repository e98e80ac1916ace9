package main

// The m × m systems of several rows at once, a lane each. One register of lanes runs
// through a whole system before the next does; element i of a vector lies 64 i bytes
// on, and row k of a lower triangle has k elements, after those of the rows before.

// parts writes text once, in a loop over the registers that the lanes in use take:
// text finds the offset in R14 and adds it to each base.
func (f *fn) parts(text func()) {
	part, next := f.label("part"), f.label("next")
	f.i("XORQ", "R14", "R14")
	f.at(part)
	text()
	f.at(next)
	f.move(8*f.lanes(), "R14")
	f.load("lanes", "AX")
	f.i("SHLQ", "$3", "AX")
	f.i("CMPQ", "R14", "AX")
	f.i("JLT", part)
}

// base brings arguments into registers as load does, and on to the part.
func (f *fn) base(pairs ...string) {
	f.load(pairs...)
	for i := 1; i < len(pairs); i += 2 {
		f.i("ADDQ", "R14", pairs[i])
	}
}

// lastRow sets DX to m, from the length of a vector of lanes, and SI to the end of the
// triangle at DI.
func (f *fn) lastRow(vector string) {
	f.load(vector, "DX")
	f.i("SHRQ", "$3", "DX")
	f.i("LEAQ", "-1(DX)", "SI")
	f.i("IMULQ", "DX", "SI")
	f.i("SHLQ", "$5", "SI")
	f.i("ADDQ", "DI", "SI")
}

// eighths adds term(p, off) to register p of eight for the DX elements at the pointers,
// in the order of blocks, and leaves the sum, joined as kernel.Reduce joins, in 0. It
// uses R12 and CX.
func (f *fn) eighths(term func(p, off int), pointers ...string) {
	f.clear(0, 1, 2, 3, 4, 5, 6, 7)
	f.i("MOVQ", "DX", "R12")
	f.i("SHRQ", "$3", "R12")
	f.groups("R12", []int{1}, func(int) {
		for p := range 8 {
			term(p, 64*p)
		}
		f.move(512, pointers...)
	})
	whole := f.label("whole")
	f.i("MOVQ", "DX", "CX")
	f.i("ANDQ", "$7", "CX")
	for p := range 7 {
		f.i("CMPQ", "CX", imm(p+1))
		f.i("JLT", whole)
		term(p, 64*p)
	}
	f.at(whole)
	for _, pair := range [][2]int{{0, 4}, {2, 6}, {1, 5}, {3, 7}, {0, 2}, {1, 3}, {0, 1}} {
		f.add(pair[0], pair[0], pair[1])
	}
}

func factorLanes(f *fn) {
	f.parts(func() {
		f.base("w_base", "DI", "d_base", "BX", "floor_base", "R8", "l_base", "R9")
		f.lastRow("d_len")
		next, done := f.label("pivot"), f.label("done")
		f.at(next) // DX: k, SI: its row
		f.i("DECQ", "DX")
		f.i("CMPQ", "DX", "$1")
		f.i("JLT", done)
		f.i("MOVQ", "DX", "R11")
		f.i("SHLQ", "$6", "R11")
		f.i("SUBQ", "R11", "SI")
		f.i("MOVQ", "SI", "R10")
		f.eighths(func(p, off int) { f.opm("VADDPD", p, p, mem(off, "R10")) }, "R10")
		f.opm("VMAXPD", 0, 0, mem(0, "R8", "R11*1"))
		f.put(0, mem(0, "BX", "R11*1"))
		// l = row/pivot.
		f.i("MOVQ", "SI", "R10")
		f.i("MOVQ", "R9", "R12")
		f.i("MOVQ", "DX", "CX")
		f.groups("CX", []int{4, 2, 1}, func(n int) {
			for b := range n {
				f.get(mem(64*b, "R10"), 1+b)
				f.div(1+b, 1+b, 0)
				f.put(1+b, mem(64*b, "R12"))
			}
			f.move(64*n, "R10", "R12")
		})
		// Rows i = 1, ..., k-1 take l_i times row k.
		row, taken := f.label("row"), f.label("taken")
		f.i("MOVQ", "DI", "R10")
		f.i("LEAQ", "64(R9)", "R13")
		f.i("MOVQ", "$1", "R11")
		f.at(row)
		f.i("CMPQ", "R11", "DX")
		f.i("JGE", taken)
		f.get("(R13)", 0)
		f.i("MOVQ", "SI", "R12")
		f.i("MOVQ", "R11", "CX")
		f.groups("CX", []int{4, 2, 1}, func(n int) {
			for b := range n {
				f.opm("VMULPD", 1+b, 0, mem(64*b, "R12"))
				f.opm("VADDPD", 1+b, 1+b, mem(64*b, "R10"))
				f.put(1+b, mem(64*b, "R10"))
			}
			f.move(64*n, "R10", "R12")
		})
		f.move(64, "R13")
		f.i("INCQ", "R11")
		f.i("JMP", row)
		f.at(taken)
		f.i("MOVQ", "SI", "R10")
		f.i("MOVQ", "R9", "R12")
		f.i("MOVQ", "DX", "CX")
		f.groups("CX", []int{4, 2, 1}, func(n int) {
			for b := range n {
				f.get(mem(64*b, "R12"), b)
				f.put(b, mem(64*b, "R10"))
			}
			f.move(64*n, "R10", "R12")
		})
		f.i("JMP", next)
		f.at(done)
		f.get(f.c("one", 1), 0)
		f.put(0, "(BX)")
	})
}

func solveLanes(f *fn) {
	f.parts(func() {
		f.base("w_base", "DI", "d_base", "R8", "r_base", "BX")
		f.lastRow("d_len")
		back, forward, done := f.label("back"), f.label("forward"), f.label("done")
		f.at(back) // DX: k, SI: its row
		f.i("DECQ", "DX")
		f.i("CMPQ", "DX", "$1")
		f.i("JLT", forward)
		f.i("MOVQ", "DX", "R11")
		f.i("SHLQ", "$6", "R11")
		f.i("SUBQ", "R11", "SI")
		f.get(mem(0, "BX", "R11*1"), 0)
		f.i("MOVQ", "SI", "R10")
		f.i("MOVQ", "BX", "R13")
		f.i("MOVQ", "DX", "CX")
		f.groups("CX", []int{4, 2, 1}, func(n int) {
			for b := range n {
				f.opm("VMULPD", 1+b, 0, mem(64*b, "R10"))
				f.opm("VADDPD", 1+b, 1+b, mem(64*b, "R13"))
				f.put(1+b, mem(64*b, "R13"))
			}
			f.move(64*n, "R10", "R13")
		})
		f.i("JMP", back)
		f.at(forward)
		f.clear(0)
		f.put(0, "(BX)")
		f.i("MOVQ", "DI", "SI")
		f.i("MOVQ", "$1", "DX")
		row := f.label("row")
		f.at(row)
		f.load("d_len", "CX")
		f.i("SHRQ", "$3", "CX")
		f.i("CMPQ", "DX", "CX")
		f.i("JGE", done)
		f.i("MOVQ", "SI", "R10")
		f.i("MOVQ", "BX", "R13")
		f.eighths(func(p, off int) {
			f.get(mem(off, "R10"), 8)
			f.opm("VMULPD", 8, 8, mem(off, "R13"))
			f.add(p, p, 8)
		}, "R10", "R13")
		f.i("MOVQ", "DX", "R11")
		f.i("SHLQ", "$6", "R11")
		f.i("ADDQ", "R11", "SI")
		f.get(mem(0, "BX", "R11*1"), 8)
		f.opm("VDIVPD", 8, 8, mem(0, "R8", "R11*1"))
		f.add(0, 8, 0)
		f.put(0, mem(0, "BX", "R11*1"))
		f.i("INCQ", "DX")
		f.i("JMP", row)
		f.at(done)
	})
}

// hankelLanes is the lower triangle of hankel, and its sums over both. Without ratio
// that is 1; on the diagonal it is.
func hankelLanes(f *fn) {
	f.parts(func() {
		f.base("g_base", "DI", "c_base", "R11", "mu_base", "R8", "ratio_base", "SI", "w_base", "R9")
		f.i("MOVQ", "R9", "BX")
		f.i("XORQ", "DX", "DX")
		row, done := f.label("row"), f.label("done")
		f.at(row) // DX: j, R8: μ_j, BX: w_j, DI and SI: row j of g and ratio
		f.load("w_len", "CX")
		f.i("SHRQ", "$3", "CX")
		f.i("CMPQ", "DX", "CX")
		f.i("JGE", done)
		f.get("(BX)", 2)
		f.clear(3)
		f.i("MOVQ", "R8", "R10")
		f.i("MOVQ", "R9", "R12")
		f.i("MOVQ", "R11", "R13")
		entry := func(scaled bool) {
			f.get("(R10)", 0)
			if scaled {
				f.opm("VMULPD", 0, 0, "(SI)")
			}
			f.opm("VMULPD", 1, 2, "(R12)")
			f.mul(0, 0, 1)
			f.flush(0, 1, 4)
			f.add(3, 3, 0)
		}
		below := func(scaled bool) {
			f.i("MOVQ", "DX", "CX")
			f.groups("CX", []int{1}, func(int) {
				entry(scaled)
				f.put(0, "(DI)")
				f.opm("VADDPD", 0, 0, "(R13)")
				f.put(0, "(R13)")
				f.move(64, "R10", "R12", "R13", "DI")
				if scaled {
					f.move(64, "SI")
				}
			})
		}
		flat, diagonal := f.label("flat"), f.label("diagonal")
		f.load("ratio_len", "CX")
		f.i("TESTQ", "CX", "CX")
		f.i("JEQ", flat)
		below(true)
		f.i("JMP", diagonal)
		f.at(flat)
		below(false)
		f.at(diagonal)
		entry(false)
		f.put(3, "(R13)")
		f.move(64, "R8", "BX")
		f.i("INCQ", "DX")
		f.i("JMP", row)
		f.at(done)
	})
}
