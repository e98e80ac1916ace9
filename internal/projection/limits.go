package projection

// This file holds the thresholds. bench/calibrate measures mostStates and pieces, which it
// finds here by their names, and writes docs/measurements/calibration.md.

const (
	// mostStates is the most numbers that states may take together and all be kept.
	mostStates = 1 << 23

	// pieces is the most pieces that the rows are cut into. Each has partial sums of its
	// own, which are added in order: so the bits do not depend on the number of workers.
	pieces = 16

	// abreast is the number of rows that the loops of internal/kernel read V for at once.
	abreast = 4

	// least is the floor of every denominator: of the entries of UV, and of the sums that
	// updates divide by. The way back divides by them twice more, and 1/least³ is finite.
	least = 1e-60

	// minGap is the least gap between the singular values k and k+1, relative to value k.
	// The derivative grows as the inverse of the gap and loses as many digits: at minGap
	// it has six left of the sixteen.
	minGap = 1e-10
)
