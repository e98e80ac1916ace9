package gauss

// This file holds the steps of a fit: which model a row makes, what V's model keeps of the rows
// before, and how far steps go. The constants were chosen by cells that no fit saw.

import (
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/runs"
)

// How far a row of U and a column of V go in a step.
var (
	stepU = Step{Sweeps: 4, Damp: 0.1, Low: 0.1, High: 4, Rise: 0.05, Share: 0.7}
	stepV = Step{Sweeps: 4, Damp: 0.1, Low: 0.3, High: 3, Rise: 0.02, Share: 0.7}
)

// wholeBatch is the least batch after which V goes the whole share of its step. After fewer rows it
// goes less far, as it does so more often.
const wholeBatch = 32

// Steps are those of U (d × k) and V (k × np) during a fit. Rows come in batches: each row of one in
// a slot of its own, by StepRow and Put or by Skip; then Mix; then StepTile for every tile of V.
// Slots, and tiles, are independent of each other.
//
// Of one batch of all rows (NewWhole) not all need to be there at once, nor to be seen by one machine. Some
// rows at a time get slots, and TakeTile adds them up tile by tile, in one tree of sums (internal/runs); when all
// are in, Mix and StepTile.
type Steps struct {
	columns *Columns
	batch   Batch
	numbers []float64  // those named below
	rows    []*Row     // one a worker
	rooms   []*Room    // one a worker
	stepV   Step       // of this batch
	d, size int        // the rows of U; those of a whole batch
	a, b    *runs.Sums // of one batch of all rows; nil: there are several
}

// The numbers of Steps that go on from batch to batch.
const (
	weight = iota // of the rows in columns, each 1 when it comes
	trust         // the power of the bounds of V's steps
	judged        // the loss that was judged last; 0: none
)

// NewSteps makes the steps of d rows in batches of so many, for so many workers.
func NewSteps(d, k, np, batch, workers int) *Steps {
	return newSteps(NewColumns(k, np), d, min(batch, d), batch, workers)
}

func newSteps(columns *Columns, d, slots, size, workers int) *Steps {
	k, np := columns.k, columns.np
	s := &Steps{columns: columns, batch: NewBatch(slots, k, np), numbers: []float64{weight: 0, trust: 1, judged: 0},
		rows: make([]*Row, workers), rooms: make([]*Room, workers), d: d, size: size}
	for w := range workers {
		s.rows[w], s.rooms[w] = NewRow(k, np), NewRoom(k, slots)
	}
	return s
}

// NewWhole makes the steps of one batch of all rows, of which the runs of a cut are seen here, in so many slots; size is
// the number of rows that a batch may have.
func NewWhole(cut runs.Cut, k, np, slots, size, workers int) *Steps {
	columns := &Columns{k: k, np: np}
	s := newSteps(columns, cut.Bounds[len(cut.Bounds)-1], slots, size, workers)
	s.a, s.b = runs.NewSums(cut, pairsOf(k)*np), runs.NewSums(cut, k*np)
	if len(s.a.Parts) == 1 {
		columns.A, columns.B = s.a.Parts[0], s.b.Parts[0]
	}
	return s
}

// TakeTile adds the rows that the slots have, those of the matrix from the given one on, to the sums of a tile of
// V. Rows come in their order.
func (s *Steps) TakeTile(worker, t, row, rows int) {
	batch := s.batch
	batch.Rows = rows
	s.columns.TakeRuns(t, row, s.a, s.b, &batch, s.rooms[worker])
}

// Sums are those of A and of B over one batch of all rows.
func (s *Steps) Sums() (a, b *runs.Sums) { return s.a, s.b }

// Curvature is a of the row of a slot, np numbers: to be filled before StepRow.
func (s *Steps) Curvature(slot int) []float64 { return s.batch.Curvature(slot) }

// StepRow makes the step of the row u of the slot, in place, penalty/2 Σ log²u added to its model.
func (s *Steps) StepRow(worker, slot int, u, v, wbar []float64, penalty float64) {
	row := s.rows[worker]
	row.Model(v, wbar, s.batch.Curvature(slot))
	if penalty > 0 {
		row.Penalise(u, penalty)
	}
	row.Step(u, stepU)
}

// Put gives V's model the row of a slot: its weight, w and w̄ before its step, and u after it.
func (s *Steps) Put(slot int, u, w, wbar []float64, weight float64) {
	s.batch.Put(slot, u, w, wbar, weight)
}

// Skip gives V's model nothing of the row of a slot.
func (s *Steps) Skip(slot int) { s.batch.Skip(slot) }

// Mix ends a batch of so many rows, the count-th of the fit. The model of V keeps of the rows before what
// makes an epoch of them. While it has not seen all rows, V is held back by the share that is missing.
func (s *Steps) Mix(rows, count int) {
	d := float64(s.d)
	s.batch.Rows, s.batch.Keep = rows, 1-float64(rows)/d
	s.numbers[weight] = float64(s.numbers[weight]*s.batch.Keep) + float64(rows)
	seen := min(float64(count)*float64(min(s.size, s.d))/d, 1)
	s.stepV = stepV
	s.stepV.Damp += (1 - seen) / seen
	s.stepV.Share *= min(float64(s.size)/wholeBatch, 1)
	power := s.numbers[trust]
	s.stepV.Low, s.stepV.High = elem.Exp(float64(power*elem.Log(stepV.Low))), elem.Exp(float64(power*elem.Log(stepV.High)))
}

// Judge takes the mean loss that the visits of an epoch met, before the last Mix of it. The model of V
// takes the cells of a row for independent, which T couples, so that a whole step can lead beyond
// where it should, and the next one further back. Where the loss has risen, the bounds of V's
// steps come closer to 1, by half their logarithm; where it falls, they widen again by a
// quarter of it.
func (s *Steps) Judge(loss float64) {
	power, before := &s.numbers[trust], &s.numbers[judged]
	if loss > *before && *before > 0 {
		*power = max(*power/2, leastTrust)
	} else {
		*power = min(float64(*power*1.25), 1)
	}
	*before = loss
}

// leastTrust is what is left of the logarithms of the bounds.
const leastTrust = 1. / 256

// Weight is that of the rows in the model of V: each 1 when it comes, and less as others do.
func (s *Steps) Weight() float64 { return s.numbers[weight] }

// Tiles returns the number of tiles of V, and Tile the columns of one.
func (s *Steps) Tiles() int                { return s.columns.Tiles() }
func (s *Steps) Tile(t int) (from, to int) { return s.columns.Tile(t) }

// StepTile adds the batch to the model of a tile of V, and makes the step of V there.
func (s *Steps) StepTile(worker, t int, v []float64, penalty float64) {
	if s.a == nil {
		s.columns.Take(t, &s.batch, s.rooms[worker])
	}
	s.columns.Step(t, v, penalty, s.stepV, s.rooms[worker])
}

// State is what a fit that goes on needs of the steps: sums of a >= 0, sums of any sign, and numbers
// >= 0. They are to be filled between batches only.
func (s *Steps) State() (a, b, numbers []float64) { return s.columns.A, s.columns.B, s.numbers }
