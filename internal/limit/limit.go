// Package limit has the ranges of numbers and sizes: what data, options and files may hold, so that
// no sum or product that is made of it leaves the range of float64, from 5e-324 to 1.8e308. Sums have
// up to 2^31 terms, so
//
//	2^31 Value²    = 2e129   squares of data can be summed
//	2^31 MostInit² = 2e109   products of initial factors can, in units of x
//	ProductInit⁴   = 1e280   the product of initial factors has a loss under every β
//	Map²           = 1e300   two numbers of a map can be multiplied
//	Moment³        = 1e90    three numbers on the scale of UV can
//	Point²         = 1e24    costs of a transport
//
// Whoever reads a number holds it against its range once; the loops that work on it do not.
package limit

// Of data.
const (
	// magnitude of an entry of a matrix to be fitted; 1/Value is the least under β < LeastBeta
	Value = 1e60
	// the largest entry to the least under β < LeastBeta, where the divergence is that of ratios
	Ratio     = 1e30
	LeastBeta = 1e-9  // β below which no entry may be 0: the divergence from 0 grows as 1/β
	Magnitude = 1e300 // of samples and quantile values of operators: differences of them have a value
)

// Of what is transported, and of targets.
const (
	Point = 1e12   // magnitude: no cost overflows
	Gap   = 1e-200 // least distance between neighbouring targets: no threshold overflows
)

// Of factors.
const (
	LeastInit = 1e-50 // of initial factors of an NMF, in units of the root of x's: what is below is 0
	MostInit  = 1e50
	// of an entry of their product: UV of an NMF may exceed the x that it was fitted to, and maps onto it are
	// far below Map
	ProductInit = 1e70
	LogFactor   = 300   // of logarithms: a learning rate too large gives a bad fit and no overflow
	Product     = 1e290 // of an entry of UV in a file, and of means and deviations of its rows
	Penalty     = 1e120 // of the weight of a penalty in units of the loss: beyond it nothing else counts
)

// Of maps in files.
const (
	Map    = 1e150 // quantiles, potentials, centres and thresholds of rows
	Moment = 1e30  // numbers on the scale of UV in a BQMF, where a fit's are far below
)

// Cells bounds the numbers that one problem of n samples and m levels takes, nm + 4m²:
// those of a plan and of the m × m systems. 2^31 are 16 GiB; where addresses have 32 bits
// 2^27 are 1 GiB.
const Cells = 1 << (27 + 4*(^uint(0)>>63))

// TooMany tells whether n samples and m levels take more. It divides, since products
// could overflow.
func TooMany(n, m int) bool {
	return uint64(m) > Cells || m > 0 && uint64(n)+4*uint64(m) > Cells/uint64(m)
}
