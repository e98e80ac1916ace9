// Package nmf has two methods for X ≈ UV with U, V >= 0 that minimise the mean divergence of the
// visible cells, with the penalties of a [Problem]:
//
//	[Updates]  multiplicative updates (Lee and Seung 2001), any β divergence: V ← V ∘ (num/den)^γ, then U
//	[Newton]   Newton's method with bounds and momentum, under KL and Frobenius: twenty epochs for hundreds
//
// Both read X row by row and hold nothing of its size. Under KL and Frobenius without hidden cells rows that
// are mostly zero cost what their other cells do (thin.go). The factors are the caller's: a method changes
// them in Epoch alone, and between calls they are those of the losses last returned, unless the pool's
// context ended within an epoch. Bits do not depend on the number of workers.
package nmf

import (
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
)

// Problem is what is factorised, and where the factors are.
type Problem struct {
	D, N, K int
	NP      int       // N padded to whole blocks of samples
	U, V    []float64 // d × k; k × np, the padding 0

	// Where the rows are a part of a larger matrix (package shards), Of is the number of rows of that matrix,
	// and Runs has the first row of each of its pieces that these rows are, counted from the first of them,
	// and the end of the last. A problem that joins sums has all pieces, and no rows. Visible and HeldOut are
	// of the larger matrix. 0 and nil: the rows are the whole matrix.
	Of   int
	Runs []int

	X       []float64 // d rows, Stride apart, NaN where a cell is hidden; nil: Read alone gives them
	Stride  int
	Full    bool  // no rows are mostly zero; false: some may be
	Partial bool  // cells are hidden or weighed
	Whole   bool  // none is hidden of a sample that takes part
	Rows    []int // visible cells of each row
	Visible int   // and of all
	HeldOut int   // cells that the losses Held are of

	// NonZeros, if there is one, returns the cells of row i that may be other than 0, columns increasing,
	// where they are held or appended to the slices given, which have room for a row. Under KL and
	// Frobenius, where no cell is hidden, rows that are mostly zero are then read by it alone.
	NonZeros func(i int, cols []uint32, vals []float64) ([]uint32, []float64)
	// Read copies row i into x, with 0 in hidden cells, and where cells are hidden or weighed, fills omega
	// with the weights of the cells, of mean 1 over all visible cells, 0 in hidden ones. The loss is the mean
	// of the weighted divergences.
	Read func(x, omega []float64, i int)
	// Guess, if there is one, fills hidden cells of x with guesses and g with their weights, 0 in visible
	// cells; x and omega are what Read has given. The losses of guesses are a part of Penalty. Newton's
	// method has no guesses.
	Guess func(x, omega, g []float64, i int)
	// Held returns the sum of divergences of t from the held-out cells of row i. room has N numbers.
	Held func(l divergence.Loss, t []float64, i int, low float64, room []float64) float64

	Loss      divergence.Loss
	Penalties Penalties
	Fixed     int // the first so many columns of U are given, and stay
	Pool      *pool.Pool
}

// together is how many of rows that go together there are at most: there is room for one even in a reduce,
// which has none.
func (p *Problem) together(most int) int { return max(min(most, p.D), 1) }

// blocks tells whether rows of X can be read where they lie, in whole blocks of samples.
func (p *Problem) blocks() bool { return p.X != nil && p.NP == p.N }

// Losses are mean divergences at one state of the factors.
type Losses struct {
	Visible, Held float64
	Penalty       float64 // what the penalty and guesses of hidden cells add to Visible
}

// Method goes down from factors that the caller has filled. The first call is Begin, or for a
// state that was saved after e epochs Prepare(e), then reading it into the factors and State(), then
// Resume(e). Epoch(e) is called in the order of e.
type Method interface {
	Begin() (Losses, error)
	Epoch(e int) (Losses, error)
	State() []section.Part // what the rest depends on beside the factors
	Prepare(e int)
	Resume(e int)
	// Reserve takes all that so many epochs take, of rows that are mostly zero if there may be any, from a
	// dry arena, in place of all other calls.
	Reserve(epochs int)
}

// Suits tells whether Newton's method suits a d × n matrix and rank k: under KL and Frobenius, for k up to
// d+n. Above, its k² numbers for each piece of the rows are more than the factors have, and its epochs take
// longer than all the multiplicative updates, which come as close to x there.
func Suits(l divergence.Loss, d, n, k float64) bool {
	return (l == divergence.KL || l == divergence.Frobenius) && k <= d+n
}

// Pieces is the number of pieces that the rows are cut into: each has a
// partial sum for V, added in order, so the bits do not depend on the workers. Where
// an update takes less than a millisecond there are fewer, for sums cost time too.
const Pieces = 16

// add adds from to to.
func add(to, from []float64) { kernel.Accumulate(to[:len(from)], []float64{1}, from) }

// sweepRows is the number of rows that pass over V together, Group the same in Newton's method and in the
// plain case. There V is cut into tiles of about tileNumbers numbers, at least tileSamples
// samples wide: adding up shorter sums would cost more than fetching V again.
const (
	sweepRows   = 4
	Group       = 16
	tileNumbers = 3072
	tileSamples = 128
)
