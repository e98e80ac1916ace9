package transport

// This file holds the thresholds that choose between two ways to compute the same numbers.
// bench/calibrate measures each of them and writes docs/measurements/calibration.md; it finds
// them here by their names.

const (
	// maxPower is the largest |s Y| at which E is built by multiplication alone.
	maxPower = 150
	// maxLift is the largest sum of max|s Y| and half the range of the reference potentials at
	// which E is built by multiplication and lifted: its entries reach e to that.
	maxLift = 680
	// maxRange is the largest range of h-href: beyond it E is built anew.
	maxRange = 60

	// tileEntries is the number of entries of E that go through all sums of a sweep before
	// the next ones do, so that they are in the cache from when they are built or read.
	tileEntries = 1 << 12
	// keptEntries is the number of entries up to which E is kept where each entry is an
	// exponential, keptPowers the number where entries are powers; beyond keptPowers two
	// exponentials a sample are kept. A longer row has one tile of E at a time, built anew in
	// each sweep, with the same bits: its memory is O(n+m²).
	keptEntries = 1 << 19
	keptPowers  = 1 << 17

	// A histogram serves for a start where the blur between two levels, ε/2Δy, is at least
	// blurBins of its bins wide, and would hold blurSamples samples if they lay evenly: then
	// it does not matter where in a bin a sample lies, nor in what order.
	blurBins    = 4
	blurSamples = 2

	// condensedFrom is the number of samples from which on a solve is made of the points of condensedBins
	// bins (condense.go), where their sums have a relative error of at most condensedError.
	condensedFrom  = 4096
	condensedBins  = 512
	condensedError = 1e-4
	condensedTo    = 1e-9 // the error to which the problem of the points is solved

	// sinkhornFirst is the largest |log(b_j/c_j)| up to which a Newton step is made at once.
	// Beyond it a Sinkhorn step comes first, which lifts tiny weights.
	sinkhornFirst = 1.5
	// weakCoupling is the share of the mass between the levels below and above a boundary
	// under which the last digits need Polish.
	weakCoupling = 1e-4
)
