package shards

// This file estimates the memory that a fit in shards takes, from the sizes of what its steps and reduces
// allocate.

import (
	"math"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/nmf"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/internal/svd"
)

// Memory is what a fit over shards takes, in bytes.
type Memory struct {
	Plan   int64 // the peak of PlanNMF or PlanQMF beside x: the plan makes the start, on one machine
	Rows   int64 // the rows of the largest shard, 8 bytes a cell: less for a Sparse or single precision
	Step   int64 // the peak of a step of the largest shard beside Rows; before it, reading takes Rows twice
	Reduce int64 // the peak of a Reduce
	Finish int64 // the peak of Finish, the model included
	Round  int64 // what the store has of a round beside the rows; it has two rounds at a time
}

// MemoryOf estimates the memory that [PlanNMF] or [PlanQMF] with these arguments, and the steps of the plan,
// take, before x is read. The estimate is up to 2.5 times what was measured; garbage that has not been
// collected yet is not counted. Errors: those of [quantmf.MemoryOf], and a [*quantmf.OptionError] for a
// method that cannot be split into shards, or for a wrong number of shards.
func MemoryOf(method quantmf.Method, d, n, rank, shards int, opts ...quantmf.FitOption) (Memory, error) {
	p := &plan{Split: fit.Split{Kind: section.NMF, D: d, N: n, K: rank}, Shards: shards}
	first := quantmf.WithUpdates(quantmf.UpdatesMultiplicative)
	switch method {
	case quantmf.MethodNMF:
	case quantmf.MethodQMF:
		first, p.Kind = quantmf.WithBatch(max(d, 1)), section.QMF
	default:
		return Memory{}, &quantmf.OptionError{Option: "method", Value: method.String(),
			Bound: "must be MethodNMF or MethodQMF"}
	}
	opts = append([]quantmf.FitOption{first}, opts...)
	whole, err := quantmf.MemoryOf(method, d, n, rank, opts...)
	if err != nil {
		return Memory{}, err
	}
	p.setRuns()
	if err := p.checkShards(); err != nil {
		return Memory{}, err
	}
	// The rows of the largest shard; the most sums that a shard puts into the store; the sums of all shards.
	rows, sums, all := 0, 0, 0
	var largest pool.Runs
	for shard := range shards {
		cut := p.cut(shard)
		from, to := cut.Rows()
		parts := cut.To - cut.From
		if p.Kind == section.QMF {
			parts = len(cut.Nodes())
		}
		if to-from > rows {
			largest = cut
		}
		rows, sums, all = max(rows, to-from), max(sums, parts), all+parts
	}
	of, err := quantmf.Split(fit.Door{}).Sizes(method, d, n, rank, largest, opts)
	if err != nil {
		return Memory{}, err
	}
	s := &sizes{SplitSizes: of, d: float64(d), n: float64(n), k: float64(rank), rows: float64(rows),
		sums: float64(sums)}
	if of.Validation > 0 {
		s.best = 1
	}
	if p.Kind == section.NMF {
		s.nmf(p, largest)
	} else {
		s.qmf(float64(whole.Rows/8), float64(whole.Model/8))
	}
	return s.bytes(float64(all)), nil
}

// sizes are what the memory depends on, and, in numbers of eight bytes, what it is.
type sizes struct {
	*fit.SplitSizes
	d, n, k    float64
	rows, sums float64 // of the largest shard
	best       float64 // 1 where the best epoch is kept as well

	plan, step, reduce, finish float64
	state, sum                 float64 // of a row, of a run
	main                       float64
}

// size is the product of some sizes, rounded before it meets a sum.
func size(of ...float64) float64 {
	p := 1.0
	for _, v := range of {
		p = float64(p * v)
	}
	return p
}

func (s *sizes) v() float64 { return size(s.k, s.n) }

// method is what a method of an NMF takes over the runs from first to end, in a step that has their rows,
// or in a reduce.
func (s *sizes) method(p *plan, rows bool, first, end int, newton bool) float64 {
	n := min(p.N, pool.Beyond)
	m := nmf.Problem{N: n, K: min(p.K, pool.Beyond), NP: kernel.Pad(n), Partial: s.Hidden, Loss: s.Loss,
		Pool: pool.Idle(int(s.Workers), int(s.Workers))}
	if rows {
		m.D = p.runs[end] - p.runs[first]
	}
	p.runsOf(&m, first, end)
	return nmf.Memory(m, newton) / 8
}

// nmf counts an NMF.
func (s *sizes) nmf(p *plan, largest pool.Runs) {
	v := s.v()
	s.state, s.sum, s.main = size(2+s.best, s.k), size(2, v), v
	if s.Loss == divergence.KL && !s.Hidden { // the denominators are sums of factors
		s.sum = v + s.k
	}
	s.step = size(3, s.rows, s.k) + s.method(p, true, largest.From, largest.To, false)
	s.reduce = s.method(p, false, 0, p.count(), false)
	if s.Updates == fit.ByNewton {
		s.state, s.sum = s.state+s.k, size(2, v)+size(2, s.k)+size(s.k, s.k+kernel.Lanes)+3
		s.main = size(3, v) + size(3, s.n)
		s.step = size(4, s.rows, s.k) + s.method(p, true, largest.From, largest.To, true) + v
		s.reduce = s.method(p, false, 0, p.count(), true) + size(3, v)
	}
	s.finish = size(s.d+s.n, s.k) + size(2, s.rows, s.state)
	s.plan = size(2, s.d+s.n, s.k)
	if s.Start == uint64(quantmf.StartSVD) {
		workers := pool.Idle(int(s.Workers), int(s.Workers))
		svd.NewSubspace(p.D, p.N, p.K+svd.More, svd.Passes, nmf.Pieces, nil, workers)
		s.plan += workers.Memory.Most()/8 + size(1.2, s.Workers, s.n+kernel.Lanes)
	}
}

// qmf counts a QMF, of which whole and model are the numbers of a fit on one machine.
func (s *sizes) qmf(whole, model float64) {
	m, v := float64(s.Levels), s.v()
	s.state, s.sum = size(1+s.best, s.k)+2+s.MapState+size(2*s.best, m), v
	if s.Gaussian {
		s.sum = size(size(.5, s.k, s.k+1)+s.k, s.n)
	} else {
		s.state += size(3, s.k)
		s.main = size(3, v)
	}
	s.step = s.Maps
	s.reduce = size(3, s.sum) + size(2, s.sums, s.sum) + size(2, s.d) + size(4, v)
	s.finish = size(2, model) + v + size(3, s.rows, s.k+float64(3*m)) // as a file, too
	s.plan = whole
}

// bytes returns the memory. all is the number of sums of all shards.
func (s *sizes) bytes(all float64) Memory {
	v := s.v()
	held := size(s.best, s.rows, s.n, 1./64)
	// Beside the numbers of state and sums there are their bytes, and a blob with these bytes.
	s.step += size(4, s.rows, s.state) + size(2, s.sums, s.sum) + size(3, v) + held
	s.main += size(s.best, v)
	s.reduce += size(s.sums, s.sum) + size(5, v) + size(3, s.main)
	s.plan += size(3, s.rows, s.n) + size(3, s.rows, s.state) + size(3, v)
	bytes := func(numbers float64) int64 { return int64(min(8*numbers, math.MaxInt64/2)) }
	return Memory{
		Plan: bytes(s.plan), Rows: bytes(size(s.rows, s.n)), Step: bytes(s.step), Reduce: bytes(s.reduce),
		Finish: bytes(s.finish + size(2, v)),
		Round:  bytes(size(all, s.sum) + size(s.d, s.state) + v + s.main),
	}
}
