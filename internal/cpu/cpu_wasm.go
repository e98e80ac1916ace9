//go:build wasmsimd && !purego

package cpu

// SIMD128 is the level of the vectors of WebAssembly.
const SIMD128 = 1

// Names are the names of the levels.
var Names = []string{"Go", "SIMD128"}

// Level is SIMD128 where the host has linked the module of kernels that was written with this
// package.
var Level = detect()

func detect() int {
	if version() == kernels {
		return SIMD128
	}
	return Portable
}

// version is what the module says of itself, 0 without one.
//
//go:wasmimport quantmf version
func version() int32
