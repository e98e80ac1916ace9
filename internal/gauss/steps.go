package gauss

// This file holds the steps of a fit: how the model of V weighs earlier rows, and how far steps
// go. The constants were chosen by the prediction of unseen cells.

import (
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/pool"
)

// How far a row of U and a column of V go in a step.
var (
	stepU = step{Sweeps: 4, Damp: 0.1, Low: 0.1, High: 4, Rise: 0.05, Share: 0.7}
	stepV = step{Sweeps: 4, Damp: 0.1, Low: 0.3, High: 3, Rise: 0.02, Share: 0.7}
)

// wholeBatch is the number of rows from which on a batch moves V by the whole share of its step. After a
// smaller batch V moves less far, since it moves more often.
const wholeBatch = 32

// Steps makes the steps of U (d × k) and V (k × np) during a fit. Rows come in batches. Each row of a
// batch has a slot of its own: StepRow and Put take it, or Skip leaves it out. After all rows of the
// batch comes Mix, and then StepTile for every tile of V. Slots are independent of each other, and so
// are tiles.
//
// Where all rows are one batch (NewWhole), not all of them need slots at once, nor need one machine see
// them all. Some rows at a time get slots, and Accumulate adds them up tile by tile, in one tree of sums
// (internal/pool). After all rows come Mix and StepTile.
type Steps struct {
	*columns            // the model of V: Tiles and Tile
	batch               // the slots: Curvature, which the caller fills before StepRow, Put and Skip
	*tiles              // V as StepRow reads it: ToTiles
	numbers  []float64  // weight, trust and judged
	rows     []*row     // one a worker
	rooms    []*room    // one a worker
	stepV    step       // how far V goes after this batch
	d, size  int        // the rows of U; the rows of a full batch
	a, b     *pool.Sums // A and B over one batch of all rows; nil where there are several batches
}

// The indices of the numbers of Steps that persist from batch to batch.
const (
	weight = iota // the sum of the weights of the rows in columns; a row has 1 when it comes
	trust         // the power to which the bounds of V's steps are raised
	judged        // the loss that was judged last; 0: none
)

// NewSteps makes the steps of d rows in batches of the given number of rows, for the workers of a pool.
func NewSteps(p *pool.Pool, d, k, np, batch int) *Steps {
	return newSteps(p, newColumns(p.Memory, k, np), d, min(batch, d), batch)
}

func newSteps(p *pool.Pool, columns *columns, d, slots, size int) *Steps {
	k, np, a, workers := columns.k, columns.np, p.Memory, p.Workers()
	s := &Steps{columns: columns, batch: newBatch(a, slots, k, np),
		numbers: []float64{weight: 0, trust: 1, judged: 0},
		tiles:   newTiles(a, k, np), rows: make([]*row, workers), rooms: make([]*room, workers), d: d,
		size: size}
	for w := range workers {
		s.rows[w], s.rooms[w] = newRow(a, s.tiles), newRoom(a, k, slots)
	}
	return s
}

// NewWhole makes the steps of one batch of all rows. Here the rows in the runs of a cut are seen, in the
// given number of slots. size is the number of rows that a batch may have.
func NewWhole(p *pool.Pool, cut pool.Runs, k, np, slots, size int) *Steps {
	columns := &columns{k: k, np: np}
	s := newSteps(p, columns, cut.Bounds[len(cut.Bounds)-1], slots, size)
	s.a, s.b = pool.NewSums(p.Memory, cut, pairsOf(k), np), pool.NewSums(p.Memory, cut, k, np)
	if len(s.a.Parts) == 1 {
		columns.A, columns.B = s.a.Parts[0], s.b.Parts[0]
	}
	return s
}

// Accumulate adds the rows in the slots, which are successive rows of the matrix from the given row on, to
// the sums of a tile of V. Rows must come in their order.
func (s *Steps) Accumulate(worker, t, row, rows int) {
	batch := s.batch
	batch.Rows = rows
	s.takeRuns(t, row, s.a, s.b, &batch, s.rooms[worker])
}

// Sums returns the sums A and B over one batch of all rows.
func (s *Steps) Sums() (a, b *pool.Sums) { return s.a, s.b }

// FixU keeps the first so many entries of every row of U where they are. Call it before the first step.
func (s *Steps) FixU(fixed int) {
	for _, row := range s.rows {
		row.fixed = fixed
	}
}

// StepRow makes the step of u, the row in the slot, in place, with penalty/2 Σ log²u added to its model.
func (s *Steps) StepRow(worker, slot int, u, wbar []float64, penalty float64) {
	row := s.rows[worker]
	row.Model(s.tiles, wbar, s.Curvature(slot))
	if penalty > 0 {
		row.Penalise(u, penalty)
	}
	row.Step(u, stepU)
}

// Mix ends a batch of the given number of rows, the count-th of the fit. The model of V multiplies the
// weights of earlier rows by 1 - rows/d, so that the weights sum to about those of an epoch. Until all rows
// have been seen, the diagonal of V's Hessian is raised, as if each unseen row had the mean curvature of the
// seen rows and a minimum where V is.
func (s *Steps) Mix(rows, count int) {
	d := float64(s.d)
	s.Rows, s.Keep = rows, 1-float64(rows)/d
	s.numbers[weight] = float64(s.numbers[weight]*s.Keep) + float64(rows)
	seen := min(float64(count)*float64(min(s.size, s.d))/d, 1)
	s.stepV = stepV
	s.stepV.Damp += (1 - seen) / seen
	s.stepV.Share *= min(float64(s.size)/wholeBatch, 1)
	power := s.numbers[trust]
	s.stepV.Low, s.stepV.High = elem.Exp(float64(power*elem.Log(stepV.Low))),
		elem.Exp(float64(power*elem.Log(stepV.High)))
}

// Judge takes the mean loss of an epoch's visits, before the last Mix of the epoch. The model of V treats
// the cells of a row as independent, but T couples them. So a whole step can lead too far, and the next
// step too far back. Where the loss has risen, the logarithms of the bounds of V's steps are halved; where
// it has fallen, they grow by a quarter, up to their full size.
func (s *Steps) Judge(loss float64) {
	power, before := &s.numbers[trust], &s.numbers[judged]
	if loss > *before && *before > 0 {
		*power = max(*power/2, leastTrust)
	} else {
		*power = min(float64(*power*1.25), 1)
	}
	*before = loss
}

// leastTrust is the least factor on the logarithms of the bounds.
const leastTrust = 1. / 256

// Weight returns the sum of the weights of the rows in the model of V: a row has 1 when it comes, and
// less after each later batch.
func (s *Steps) Weight() float64 { return s.numbers[weight] }

// StepTile adds the batch to the model of a tile of V, and makes the step of V there.
func (s *Steps) StepTile(worker, t int, v []float64, penalty float64) {
	if s.a == nil {
		s.take(t, &s.batch, s.rooms[worker])
	}
	s.step(t, v, penalty, s.stepV, s.rooms[worker])
}

// State returns the numbers that a checkpoint has of the steps: A, which is >= 0, B, of any sign, and the
// numbers that persist, which are >= 0. A resumed fit may overwrite them between batches.
func (s *Steps) State() (a, b, numbers []float64) { return s.A, s.B, s.numbers }
