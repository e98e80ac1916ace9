//go:build wasmsimd && !purego

package kernel

// SIMD128 is the level of the vectors of WebAssembly.
const SIMD128 = 1

// levelNames are the names of the levels.
var levelNames = []string{"Go", "SIMD128"}

// level is SIMD128 where the host has linked the module of kernels that was written with this package. Tests
// set a lower one.
var level = detect()

func detect() int {
	if version() == moduleVersion {
		return SIMD128
	}
	return Portable
}

// version is what the module says of itself, 0 without one.
//
//go:wasmimport quantmf version
func version() int32
