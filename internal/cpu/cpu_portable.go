//go:build purego || (!amd64 && !arm64 && !(wasm && wasmsimd))

package cpu

// Level is the level of a processor without assembly.
const Level = Portable
