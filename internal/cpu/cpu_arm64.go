//go:build !purego

package cpu

// NEON is the level that every arm64 processor has.
const NEON = 1

// Names are the names of the levels.
var Names = []string{"Go", "NEON"}

// Level is the highest level of this processor.
const Level = NEON
