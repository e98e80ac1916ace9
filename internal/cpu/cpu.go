// Package cpu tells which vector instructions the assembly may use.
package cpu

// Levels of vector instructions, each with those before it.
const (
	Portable = iota // none: the loops in Go
	AVX2
	AVX512 // F, DQ and VL
)
