// Asmgen writes the kernels of quantmf: the inner loops, in assembly for amd64 (AVX2 and AVX-512) and arm64
// (NEON), and in WebAssembly (SIMD128). Of internal/kernel it writes the files kernel_amd64.go,
// kernel_arm64.go (the choice at run time and the declarations), kernel_portable.go (the loops in Go, where
// there is no assembly) and kernel_amd64.s, kernel_arm64.s. Run it in the root of the repository:
//
//	go run ./internal/asmgen
//
// Go has no assembly for WebAssembly. There the kernels are a module of their own, which imports
// Go's memory: kernel_wasm.go has the imports, under the build tag wasmsimd, and
//
//	go run ./internal/asmgen -wasm FOLDER
//
// writes kernels.wasm and kernels.js. See module.go.
//
// # A kernel
//
// A kernel that goes over samples one by one has no text here: it is compiled from its loop in Go
// (compile.go), for all sets of instructions. This one has its name in list.go and nothing else:
//
//	func shift_g(to, x []float64, c float64) {
//		x = x[:len(to)]
//		for i, v := range x {
//			to[i] = v - c
//		}
//	}
//
// Other kernels are written in Go as calls that write one instruction each; every set of instructions has a
// table of how. This one fills to with c times the rows of a packed lower triangle, whole blocks of each:
//
//	func unpack(f *Func) {
//		to, from, rows := f.base("to", R5), f.base("from", R4), f.value("rows", R1)
//		const row, done, at, left = R9, R2, R6, R8
//		f.broadcast(V2, f.arg("c"))
//		f.stride(row) // the bytes of a row
//		f.zeroR(done)
//		f.repeat(rows, func() {
//			f.zeroR(at)
//			f.moveR(left, done)
//			f.shrR(left, Imm(3))
//			f.incR(left)
//			f.loop(left, func() {
//				for _, off := range f.registers(1) {
//					f.mul(V0, V2, mem(off, from, at.times(1)))
//					f.store(mem(off, to, at.times(1)), V0)
//				}
//				f.advance(64, at)
//			})
//			f.incR(done)
//			f.moveR(left, done)
//			f.shlR(left, Imm(3))
//			f.addR(from, left)
//			f.addR(to, row)
//		})
//	}
//
// The first line brings arguments into general registers: the addresses of two slices and a count. f.repeat
// writes a loop over as many rows, f.loop one over the blocks of a row up to the diagonal. A for of Go writes
// its instructions for each register of a block.
//
// The order of results is that of an assignment: f.sub(dst, a, b) is dst = a - b,
// f.load(dst, from), f.store(to, a). The operations are in arch.go and func.go, the loops in loops.go:
//
//	each        numbers one by one, slices of any length, also with sums in eight lanes; in turns,
//	            instruction by instruction, where a chain is long
//	groups      blocks or levels, some at a time, with what is left one at a time
//	loop        a count that falls to 0, repeat one that may be 0 at once
//	registers   the registers of some blocks of eight numbers, with a for of Go; clearBlocks, loadBlocks,
//	            storeBlocks and addProducts go over them
//	sumTo       the sum over the lanes of a block
//
// # Registers
//
// General registers are R0 to R12, named anew on each processor. By custom the addresses
// of slices are in R5, R4, R3, R1 in the order of the parameters, and R2 is the count.
// R0 is scratch of tails; R6 to R12 are for what else a kernel counts. Vector registers
// are V0 and on: 16 in AVX2, 28 in NEON and SIMD128, 32 in AVX-512, with those taken out that a
// loop's comment names. A text that asks for more than there are stops the generator.
// A text that uses one register for two things is not noticed: the tests see to that.
//
// # Bits
//
// A kernel has the bits of the loop in Go that bears its name with _g, on all
// processors. Products are never fused with sums; division and root are those of IEEE
// 754; a sum over samples has eight lanes and ends in f.sumTo, which adds them in the
// order of kernel.Reduce. Exp and log are those of internal/elem, operation for
// operation.
//
// # To add a kernel
//
// CONTRIBUTING.md has the steps, with one kernel from end to end.
//
//  1. The loop in Go, name_g, in the package: it says what the kernel computes.
//  2. The exported function in the package, which slices its arguments to their lengths
//     (assembly checks no bounds) and calls name.
//  3. Its name in list.go.
//  4. A text, unless the loop is one that compile.go takes, in the file here of the loop in Go: plan.go,
//     product.go, quotients.go, bins.go; levels.go. [texts] says which it is.
//  5. go run ./internal/asmgen
//  6. A test in vector_test.go of the package: equal bits at every length, with poison
//     around every slice.
//
// A kernel that pays on some sets of instructions only is named in [only] with them. A better set of the same
// processor then calls that of the next lesser set; where there is none, the loop in Go is called. What a
// kernel saves each kind of fit, and so which ones are worth their text, is in docs/measurements/kernels.md.
//
// Parameters are slices of float64 or uint32, numbers of float64 and int, and one pointer to a
// struct of such numbers where they would be many: its fields are then "c.X", and the
// assembler takes their offsets from go_asm.h, that is from the compiler.
//
// # To add a set of instructions
//
// A new file has an [Arch] and its [Table], and [targets] its name; internal/kernel needs the
// level. avx2.go shows the shortest one. A field whose comment says so may be nil. Texts
// ask for the number of lanes ([pick]), and for what a set says of itself: masked, exponent.
//
// # Files
//
//	list.go        the kernels
//	main.go        writing the files of a package
//	func.go        a kernel while it is written: arguments, constants, operations
//	loops.go       loops and tails
//	arch.go        what a set of instructions has, and the kinds of operand
//	amd64.go       what the tables of amd64 share
//	avx2.go, avx512.go, arm64.go, wasm.go
//	               the tables
//	module.go      the module of WebAssembly and its imports
//	source.go      the loops in Go
//	compile.go, statements.go, lists.go, values.go
//	               kernels that are compiled from them
//	elementary.go  exponential and logarithm
//	plan.go, product.go, at.go, quotients.go, newton.go, levels.go, columns.go, bins.go
//	               the texts of the others
package main

//go:generate go run . -root ../..
