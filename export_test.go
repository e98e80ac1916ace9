package quantmf

// What the tests from outside of the package share with those from inside.
var (
	AllEnd       = allEnd
	Bent         = bent
	CountsOf     = countsOf
	Holders      = holders
	LoadRows     = loadRows
	Lognormal    = lognormal
	Numbers      = numbers
	NotFinite    = notFinite
	TimesPower   = timesPower
	SparseCounts = sparseCounts
)
