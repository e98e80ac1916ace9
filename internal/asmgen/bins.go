package main

// The kernels over samples in bins, of registers of four lanes; see internal/kernel/bins.go for their loops
// in Go.

// inBins makes of four samples at V0 the places in their bins, and leaves in X1 the offsets of the bins in a
// table, 32 bits each. A bin has 32 rows bytes in the table, and within is the offset of the struct Bins at
// bins. V2 is scratch.
func (f *Func) inBins(bins Reg, within string, rows int) {
	field := func(name string) Mem { return Mem{Base: bins, Field: within + "Bins_" + name} }
	f.broadcast(V1, field("First"))
	f.sub(V0, V0, V1)
	f.broadcast(V1, field("Scale"))
	f.mul(V0, V0, V1)
	f.max(V1, V0, f.c("zero", 0)) // 0 where V0 is no number
	f.broadcast(V2, field("Last"))
	f.min(V1, V1, V2)
	f.line("VROUNDPD $3, Y1, Y1")
	f.sub(V0, V0, V1)
	f.line("VCVTTPD2DQY Y1, X1")
	f.line("VPSLLD $5, X1, X1")
	if rows == 3 {
		f.line("VPADDD X1, X1, X2")
		f.line("VPADDD X1, X2, X1")
	}
}

// rows leaves lane i of V3, V0, V1 and V2 in register V4+i. V8 and V9 are scratch.
func (f *Func) rows() {
	f.line("VUNPCKLPD Y0, Y3, Y6")
	f.line("VUNPCKHPD Y0, Y3, Y7")
	f.line("VUNPCKLPD Y2, Y1, Y8")
	f.line("VUNPCKHPD Y2, Y1, Y9")
	for i := range 2 {
		f.line("VPERM2F128 $0x20, Y%d, Y%d, Y%d", 8+i, 6+i, 4+i)
		f.line("VPERM2F128 $0x31, Y%d, Y%d, Y%d", 8+i, 6+i, 6+i)
	}
}

// binsOf adds V3 times 1, t, t² and t³ to the sums of the bins of four samples, t less 1/2 being the places
// V0 in the bins, whose offsets X1 has.
func (f *Func) binsOf(sums Reg) {
	offsets := []Reg{R9, R10, R11, R12}
	f.line("VMOVD X1, %s", f.regs[R9])
	for i, r := range offsets[1:] {
		f.line("VPEXTRD $%d, X1, %s", i+1, f.regs[r])
	}
	f.sub(V10, V0, f.c("half", 0.5))
	f.mul(V0, V3, V10)
	f.mul(V1, V0, V10)
	f.mul(V2, V1, V10)
	f.rows()
	for i, r := range offsets {
		bin := mem(0, sums, r.times(1))
		f.add(V4+Vec(i), V4+Vec(i), bin)
		f.store(bin, V4+Vec(i))
	}
}

// binMoments takes four samples at a time, as binWeights does, which passes over those that have no weight: 0
// added to a sum leaves it as it is.
func binMoments(f *Func) {
	sums, x, count, bins := f.base("sums", R5), f.base("x", R4), f.length("x", R2), f.value("b", R3)
	f.groups(count, []int{4}, func(int) {
		f.load(V0, mem(0, x))
		f.inBins(bins, "", 1)
		f.load(V3, f.c("one", 1))
		f.binsOf(sums)
		f.advance(32, x)
	})
}

func binWeights(f *Func) {
	sums, x, w, count, bins := f.base("sums", R5), f.base("x", R4), f.base("w", R1), f.length("x", R2),
		f.value("b", R3)
	f.groups(count, []int{4}, func(int) {
		none := f.label("none")
		f.load(V3, mem(0, w))
		f.compare(f.mask(V0), V3, greater, f.c("zero", 0))
		f.line("VMOVMSKPD Y0, %s", f.regs[R9])
		f.branch(R9, EQ, Imm(0), none)
		f.load(V0, mem(0, x))
		f.inBins(bins, "", 1)
		f.binsOf(sums)
		f.at(none)
		f.advance(32, x, w)
	})
}

// backKL takes as many as tile samples at a time, blocks of eight: it finds their bins at first, and keeps
// the places in w and the offsets of the bins where ratio will be, so that no chain of instructions is long.
// The sums have registers 12 to 15.
func backKL(f *Func) {
	const c, curves, off, to, end, last = R3, R4, R5, R6, R2, R1
	const tile = 64
	f.value("c", c)
	f.base("curves", curves)
	f.length("w", last)
	f.shlR(last, Imm(3))
	f.zeroR(off)
	const sum, dot = V12, V14
	eachSum := func(text func(m Mem, sum Vec)) {
		f.halves(func(h Vec, at int) {
			for s, name := range []string{"c.Sum", "c.Dot"} {
				m := f.field(c, name)
				m.Off = at
				text(m, []Vec{sum, dot}[s]+h)
			}
		})
	}
	eachSum(func(m Mem, sum Vec) { f.load(sum, m) })
	field := func(v Vec, name string) { f.broadcast(v, f.field(c, "c."+name)) }
	place := func(name string) Mem { return mem(0, f.base(name, to), off.times(1)) }
	// cubic fills out with the values of cubic k: products of its coefficients and the powers in V4 to V7. V1
	// to V3 and out are scratch.
	cubic := func(k int, out Vec) {
		for i, r := range []Reg{R9, R10, R11, R12} {
			f.mul([]Vec{out, V1, V2, V3}[i], V4+Vec(i), mem(32*k, curves, r.times(1)))
		}
		for _, pair := range [][2]Vec{{out, V1}, {V2, V3}} {
			f.line("VHADDPD Y%d, Y%d, Y%[2]d", pair[1], pair[0])
		}
		f.line("VPERM2F128 $0x20, Y2, Y%d, Y1", out)
		f.line("VPERM2F128 $0x31, Y2, Y%d, Y%[1]d", out)
		f.add(out, V1, out)
	}
	again, found, find, all, done := f.label("tile"), f.label("found"), f.label("find"), f.label("all"),
		f.label("done")
	f.at(again)
	f.branch(off, GE, last, done)
	f.addressR(end, mem(8*tile, off))
	f.branch(end, LE, last, all)
	f.moveR(end, last)
	f.at(all)
	f.moveR(R9, off)
	f.at(find)
	f.load(V0, place("at"))
	f.inBins(c, "KLCubics_Bins+", 3)
	f.store(place("w"), V0)
	f.line("VMOVUPD X1, %s", f.amd64(place("ratio")))
	f.advance(32, off)
	f.branch(off, LT, end, find)
	f.moveR(off, R9)
	f.at(found)
	f.halves(func(h Vec, _ int) {
		f.load(V0, place("w"))
		offsets := place("ratio")
		for i, r := range []Reg{R9, R10, R11, R12} {
			offsets.Off = 4 * i
			f.wordR(r, offsets)
		}
		f.mul(V1, V0, V0)
		f.mul(V2, V1, V0)
		f.load(V3, f.c("one", 1))
		f.rows()
		cubic(0, V8)
		cubic(1, V9)
		cubic(2, V10)
		f.store(place("t"), V8)
		field(V0, "Low")
		f.max(V8, V0, V8)
		f.load(V0, f.c("one", 1))
		f.div(V8, V0, V8)
		f.mul(V1, V8, place("cells"))
		f.store(place("ratio"), V1)
		field(V0, "By")
		f.mul(V1, V1, V0)
		f.load(V2, place("a"))
		field(V0, "Whole")
		f.mul(V0, V2, V0)
		f.sub(V0, V0, V1)
		f.mul(V0, V0, V9)
		f.mul(V1, V2, V10)
		f.sub(V0, V0, V1)
		f.store(place("w"), V0)
		f.add(sum+h, sum+h, V0)
		field(V1, "Per")
		f.mul(V2, V2, V9)
		f.mul(V2, V2, V1)
		field(V3, "Fisher")
		f.mul(V3, V3, V8)
		f.mul(V3, V3, V2)
		f.mul(V3, V3, V2)
		f.store(place("own"), V3)
		f.load(V2, place("x"))
		field(V3, "Ref")
		f.sub(V2, V2, V3)
		field(V3, "Shift")
		f.sub(V2, V2, V3)
		f.mul(V2, V2, V1)
		f.mul(V2, V2, V0)
		f.add(dot+h, dot+h, V2)
		f.advance(32, off)
	})
	f.branch(off, LT, end, found)
	f.jump(again)
	f.at(done)
	eachSum(func(m Mem, sum Vec) { f.store(m, sum) })
}
