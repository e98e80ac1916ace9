package nmf

// This file estimates how many numbers of eight bytes the methods hold. Sizes are floating-point numbers,
// since they may be beyond what any memory holds.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
)

// Sizes are what the memory of a method depends on.
type Sizes struct {
	D, N, K, Workers float64
	// rows of the whole matrix where these are some of it, or none in a reduce (package shards); 0: they are
	// all of it
	Of     float64
	Loss   divergence.Loss
	Hidden bool // some cells are
	Warm   bool // Newton's method begins with multiplicative updates, see First
}

// plain, exact and apart are as in [Updates] and [Newton].
func (s Sizes) plain() bool { return s.Loss == divergence.KL && !s.Hidden }
func (s Sizes) exact() bool { return s.Loss == divergence.Frobenius && !s.Hidden }
func (s Sizes) apart() bool { return !s.plain() && !s.exact() }

// np, kp and v are n and k padded to whole blocks, and the size of V.
func (s Sizes) np() float64 { return blocks(s.N) }
func (s Sizes) kp() float64 { return blocks(s.K) }
func (s Sizes) v() float64  { return product(s.K, s.np()) }

// together is as many rows as are there of those that go together, at least one.
func (s Sizes) together(most float64) float64 { return max(min(most, s.D), 1) }

// pieces is how many pieces the rows are summed in; a reduce has those of all.
func (s Sizes) pieces() float64 {
	of := max(s.Of, s.D)
	count := split(math.Ceil(of/Group), product(of, s.N, s.K))
	if s.D > 0 {
		count = min(count, math.Ceil(s.D/Group))
	}
	return count
}

// width is how many samples a tile of V has at most.
func (s Sizes) width() float64 {
	if s.apart() {
		return s.np()
	}
	return blocks(s.np() / tiling(s.np(), s.K))
}

// Made is what a method takes before it begins, beside the factors: the sums of the pieces, and where it is
// warm all that multiplicative updates take but for thin rows.
func (s Sizes) Made() float64 {
	count, dens := s.pieces(), 0.0
	if s.Warm && !s.plain() {
		dens = 1
	}
	sum := product(count, 1+dens, s.v()) + product(count, s.K+2) + product(Group, s.K)
	if s.plain() {
		sum += s.v() + product(s.Workers, 1.5, s.N) + s.survey()
	}
	switch {
	case !s.Warm:
	case s.plain():
		sum += product(s.Workers, s.together(Group), s.np()+s.width()+product(2, s.K))
	default:
		sum += product(s.Workers, s.together(sweepRows),
			product(4, s.np())+product(2, s.K)+product(0.125, s.N))
	}
	return sum
}

// Updates is what multiplicative updates take beside the factors, where rows are thin if they may be.
func (s Sizes) Updates() float64 {
	s.Warm = true
	sum := s.Made()
	if s.plain() {
		sum += s.thin(1, 1)
	}
	return sum
}

// Newton is what Newton's method takes beside the factors, with what the rows that lead take (lead.go) if
// they may.
func (s Sizes) Newton(lead bool) float64 {
	v, np, kp, count := s.v(), s.np(), s.kp(), s.pieces()
	sum := product(count, v+s.K+2) + product(Group, s.K) + // as Made has them
		// y, z and what it was, the next y; the metric
		product(4, v) + product(2, s.D, s.K) + product(s.K, s.K+8) + product(3, np) +
		product(count, product(s.K, kp)+1)
	group := s.together(Group)
	strip := product(s.K, stripColumns)
	room := product(group, s.width()) + product(s.together(Group), kp) // a worker's
	if s.exact() {
		group = s.together(rowsTogether(np))
		strip = product(s.K, max(stripColumns, blocks(group)))
		sum += product(2, s.K, s.K) + s.D
		room += np + product(s.together(Group), s.width()) + product(group, np+product(2, s.K))
	} else {
		sum += product(count, v+product(3, np)) + v + s.D
		room += product(group, product(2, np+s.width())+product(7, s.K))
	}
	if s.apart() {
		room += np + product(0.125, group, s.N)
	}
	sum += product(s.Workers, room+product(7, strip)+3*stripColumns)
	if s.plain() {
		sum += s.survey() + s.thin(3, 2) +
			product(s.Workers, s.thinRoom()+product(s.thinRows(), product(3, kp)+5)+product(2, s.chunkRoom())+
				3*kernel.RunCells)
	}
	if lead {
		few := s
		few.D, few.Of, few.Warm = leads(s.D, s.K), 0, false
		sum += product(few.D, np+s.K) + v + few.Newton(false)
	}
	return max(sum, s.Made())
}

// MayLead tells whether some of d rows may lead under Frobenius' loss, where no cell is hidden.
func MayLead(d, k float64) bool { return d/leadCost >= leastLead*k }

// LeadNumbers is what the rows that lead have at most, of X and of U.
func LeadNumbers(d, n, k float64) float64 {
	return product(leads(d, k), n+k)
}

// leads is how many rows lead at most.
func leads(d, k float64) float64 { return min(product(leadRows, k), d/leadCost) }

// survey is what is known of thin rows before there is room for them (thin.go), and a row of each worker.
func (s Sizes) survey() float64 {
	return product(s.D, 1+product(0.5, s.thinTiles())) + product(s.Workers, s.N)
}

// thin is what thin rows take (thin.go): so many matrices of V's size sample by sample, and of each worker so
// many, and its room for a band.
func (s Sizes) thin(matrices, each float64) float64 {
	kp, rows := s.kp(), s.thinRows()
	return product(matrices, kp, s.np()) +
		product(s.Workers, product(each, kp, s.np())+product(1.5, s.thinRoom())+
			product(rows, product(2, kp)+kernel.Lanes+s.thinTiles())+product(5, s.thinRuns())+
			product(7, s.thinChunks())+s.chunkRoom())
}

// thinRows, thinRuns, thinChunks and thinRoom are how many rows, runs and chunks a band has at most, and for
// how many cells there is room.
func (s Sizes) thinRows() float64 { return s.together(bandRows) }
func (s Sizes) thinRuns() float64 {
	return product(s.thinRows(), s.thinTiles()) + float64(s.thinCells()/kernel.RunCells)
}
func (s Sizes) thinChunks() float64 {
	return s.thinTiles() + (s.thinCells()+product(s.thinRuns(), kernel.Lanes))/(chunkCells-kernel.RunsBefore)
}
func (s Sizes) thinRoom() float64 {
	return s.thinCells() + product(s.thinRuns(), kernel.Lanes) + product(s.thinChunks(), kernel.RunsBefore) +
		kernel.RunsAfter
}
func (s Sizes) thinCells() float64 { return product(min(bandCells, math.Ceil(s.D/thinShare))+1, s.N) }

// chunkRoom is how many cells a chunk has at most.
func (s Sizes) chunkRoom() float64 {
	return float64(chunkRoom(int(min(s.N, s.thinWidth()))))
}

// thinTiles is how many tiles of samples thin rows have.
func (s Sizes) thinTiles() float64 {
	return math.Ceil(s.N / s.thinWidth())
}

// thinWidth is how many samples the widest of them has.
func (s Sizes) thinWidth() float64 { return float64(thinWidth(int(min(s.kp(), 1<<30)))) }

// blocks is n padded to whole blocks.
func blocks(n float64) float64 { return product(math.Ceil(n/kernel.Lanes), kernel.Lanes) }

// product is the product of some sizes, which no sum is fused with.
func product(of ...float64) float64 {
	p := 1.0
	for _, v := range of {
		p = float64(p * v)
	}
	return p
}
