// Package cpu tells which vector instructions the assembly may use.
package cpu

// Portable is the level of no vector instructions: the loops in Go. The levels of
// each processor follow it, each with those before it.
const Portable = 0
