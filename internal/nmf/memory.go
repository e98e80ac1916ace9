package nmf

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
)

// This file holds how many numbers the methods hold, in double precision: sizes may be beyond
// what any memory holds.

// UpdatesNumbers is what multiplicative updates take beside the factors: the sums of the
// pieces of the rows, and where cells are hidden their denominators, too.
func UpdatesNumbers(d, n, k, workers float64, hidden bool) float64 {
	count := pieces(d)
	partial := product(count+1, k, n)
	if hidden {
		partial += product(count, k, n)
	} else {
		partial += thinNumbers(d, n, k, 1+workers, workers)
	}
	return partial + product(workers, Group+2, n)
}

// NewtonNumbers is what Newton's method takes beside the factors: the sums of the pieces,
// factors ahead and behind, room for rows and their products, and where rows lead (lead.go)
// these and what the epochs over them take, less the sums that such a fit does without.
func NewtonNumbers(d, n, k, workers float64, lead bool) float64 {
	count := pieces(d)
	sum := thinNumbers(d, n, k, 3+2*workers, workers) + product(workers, bandCells+1, n) + product(2*count+6, k, n) + product(3*count, n) + product(2, d, k) +
		product(count+1, k, k) + product(workers, 5*Group, n) + product(workers, 9, exactRows, k) + product(workers, min(exactNumbers, product(exactRows, n)))
	if lead {
		rows := leads(d, k)
		sum += product(rows, n) + product(pieces(rows)-count+6, k, n) + product(4, leadRows, k, k)
	}
	return sum
}

// MayLead tells whether some of d rows may lead under Frobenius' loss, where no cell is hidden.
func MayLead(d, k float64) bool { return d/leadCost >= leastLead*k }

// LeadNumbers is what the rows that lead have at most, of X and of U.
func LeadNumbers(d, n, k float64) float64 {
	return product(leads(d, k), n+k)
}

// leads is how many rows lead at most.
func leads(d, k float64) float64 { return min(product(leadRows, k), d/leadCost) }

// pieces is how many pieces d rows are summed in at most; no rows are those of a reduce (internal/shard), which has the pieces of all.
func pieces(d float64) float64 {
	if d == 0 {
		return Chunks
	}
	return min(Chunks, math.Ceil(d/Group))
}

// thinNumbers is what rows that are mostly zero take under KL: so many matrices of V's size, whose components are
// padded, room for cells, and of each row where its tiles end, half a number each.
func thinNumbers(d, n, k, matrices, workers float64) float64 {
	return product(matrices, k+kernel.Lanes-1, n) + product(workers, 1.5*(bandCells+1), n) + float64(product(d, float64(n*(k+kernel.Lanes-1)/tileHeld)+1)/2)
}

// product is the product of some sizes, which no sum is fused with.
func product(of ...float64) float64 {
	p := 1.0
	for _, v := range of {
		p *= v
	}
	return p
}
