//go:build purego || (!amd64 && !arm64)

package cpu

// Level is that of a processor without assembly.
const Level = Portable
