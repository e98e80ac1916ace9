//go:build !purego

package kernel

// Levels of vector instructions; see [Portable].
const (
	AVX2   = 1
	AVX512 = 2 // F, DQ and VL
)

// levelNames are the names of the levels.
var levelNames = []string{"Go", "AVX2", "AVX-512"}

// level is the highest level that the processor has and whose registers the operating system saves. Tests set
// lower ones.
var level = detect()

func detect() int {
	const (
		osxsave, avx     = 1 << 27, 1 << 28      // leaf 1, ECX
		avx2             = 1 << 5                // leaf 7, EBX
		wide             = 1<<16 | 1<<17 | 1<<31 // leaf 7, EBX: F, DQ, VL
		upper            = 1<<1 | 1<<2           // XCR0: XMM, YMM
		masks            = 1<<5 | 1<<6 | 1<<7    // XCR0: k, upper halves, Z16 to Z31
		features, extras = 1, 7
	)
	if top, _, _, _ := cpuid(0, 0); top < extras {
		return Portable
	}
	_, _, c, _ := cpuid(features, 0)
	if c&(osxsave|avx) != osxsave|avx {
		return Portable
	}
	kept := xgetbv()
	_, b, _, _ := cpuid(extras, 0)
	switch {
	case kept&upper != upper || b&avx2 == 0:
		return Portable
	case kept&masks != masks || b&wide != wide:
		return AVX2
	}
	return AVX512
}

// cpuid executes CPUID with the given EAX and ECX.
func cpuid(leaf, sub uint32) (a, b, c, d uint32)

// xgetbv returns the low half of XCR0.
func xgetbv() uint32
