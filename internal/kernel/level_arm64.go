//go:build !purego

package kernel

// NEON is the level that every arm64 processor has.
const NEON = 1

// levelNames are the names of the levels.
var levelNames = []string{"Go", "NEON"}

// level is that of this processor. Tests set a lower one.
var level = NEON
