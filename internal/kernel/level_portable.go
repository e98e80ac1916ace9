//go:build purego || (!amd64 && !arm64 && !(wasm && wasmsimd))

package kernel

// level is that of a processor without assembly.
const level = Portable
