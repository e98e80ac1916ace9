package main

// The kernels over samples in bins, of registers of four lanes; see internal/kernel/bins.go for their loops
// in Go.

// inBins makes of four samples at V0 the places in their bins, and leaves in X1 the offsets of the bins in a
// table, 32 bits each, of 32 bytes a bin. bins is the address of the struct Bins. V2 is scratch.
func (f *Func) inBins(bins Reg) {
	field := func(name string) Mem { return Mem{Base: bins, Field: "Bins_" + name} }
	f.broadcast(V1, field("First"))
	f.sub(V0, V0, V1)
	f.broadcast(V1, field("Scale"))
	f.mul(V0, V0, V1)
	f.max(V1, V0, f.c("zero", 0)) // 0 where V0 is no number
	f.broadcast(V2, field("Last"))
	f.min(V1, V1, V2)
	f.x86("VROUNDPD", Imm(3), V1, V1)
	f.sub(V0, V0, V1)
	f.x86("VCVTTPD2DQY", V1, f.x(V1))
	f.x86("VPSLLD", Imm(5), f.x(V1), f.x(V1))
}

// rows leaves lane i of V3, V0, V1 and V2 in register V4+i. V8 and V9 are scratch.
func (f *Func) rows() {
	f.x86("VUNPCKLPD", V0, V3, V6)
	f.x86("VUNPCKHPD", V0, V3, V7)
	f.x86("VUNPCKLPD", V2, V1, V8)
	f.x86("VUNPCKHPD", V2, V1, V9)
	for i := range 2 {
		f.x86("VPERM2F128", hex(0x20), Vec(8+i), Vec(6+i), Vec(4+i))
		f.x86("VPERM2F128", hex(0x31), Vec(8+i), Vec(6+i), Vec(6+i))
	}
}

// binsOf adds V3 times 1, t, t² and t³ to the sums of the bins of four samples, t less 1/2 being the places
// V0 in the bins, whose offsets X1 has.
func (f *Func) binsOf(sums Reg) {
	offsets := []Reg{R9, R10, R11, R12}
	f.x86("VMOVD", f.x(V1), R9)
	for i, r := range offsets[1:] {
		f.x86("VPEXTRD", Imm(i+1), f.x(V1), r)
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
		f.inBins(bins)
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
		f.x86("VMOVMSKPD", V0, R9)
		f.branch(R9, EQ, Imm(0), none)
		f.load(V0, mem(0, x))
		f.inBins(bins)
		f.binsOf(sums)
		f.at(none)
		f.advance(32, x, w)
	})
}
