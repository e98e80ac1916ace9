package fit

// This file holds the losses of a fit after each of its epochs. It tells which epoch is the best, and whether
// the losses still fall. A fit is judged by the loss of the held-out cells if there are any, else by the loss
// of the visible cells and the penalty.

import (
	"slices"

	"github.com/quantmf/quantmf/internal/pool"
)

// Losses are mean divergences of one state of a fit.
type Losses struct {
	Of            int // the number of epochs that led to the state, 0: the start
	Visible, Held float64
	Penalty       float64 // what the penalty adds to Visible for patience; 0 without patience
	Rested        bool    // the fit has come to rest: a further epoch would change nothing that counts
}

// Journal is the losses of a fit after each epoch.
type Journal struct {
	History, Validation []float64 // of visible and of held-out cells, the latter nil without
	Done                int       // epochs made
	Kept                bool      // a state was kept
	Rested              bool      // by the losses last noted
	Watch
	Holds bool // there are held-out cells
}

// NewJournal begins the journal of a fit of so many epochs at most. holds: there are held-out cells.
func NewJournal(patience, epochs int, holds bool) *Journal {
	j := &Journal{Watch: Watch{Patience: patience}, Holds: holds, History: newLosses(nil, epochs)}
	if holds {
		j.Validation = newLosses(nil, epochs)
	}
	return j
}

// mostLosses is the most losses that there is room for from the start.
const mostLosses = 1 << 22

// newLosses makes room for the losses of so many epochs.
func newLosses(a *pool.Arena, epochs int) []float64 {
	if a.Dry() && epochs > mostLosses {
		a.Floats(9, epochs/4) // when the list last grows, by a quarter, there are both
		return nil
	}
	return a.Floats(min(epochs, mostLosses) + 2)[:0]
}

// CountLosses draws the losses of a fit of so many epochs from a dry arena.
func CountLosses(a *pool.Arena, epochs int, holds bool) {
	newLosses(a, epochs)
	if holds {
		newLosses(a, epochs)
	}
}

// Cut gives up the room of epochs that were not made.
func (j *Journal) Cut() {
	for _, v := range []*[]float64{&j.History, &j.Validation} {
		if len(*v) < cap(*v)/2 {
			*v = slices.Clone(*v)
		}
	}
}

// Note enters losses, unless the journal has those of their state already, and tells
// whether their state is to be kept and whether to end: the fit rests, or patience has run out.
func (j *Journal) Note(l Losses) (better, stop bool) {
	if l.Of < len(j.History) {
		return false, false
	}
	j.History, j.Rested = append(j.History, l.Visible), l.Rested
	judged := l.Visible + l.Penalty
	if j.Holds {
		j.Validation = append(j.Validation, l.Held)
		judged = l.Held
	}
	better, stop = j.See(l.Of, judged)
	better = better && j.Holds
	j.Kept = j.Kept || better
	return better, stop || j.Rested
}

// Exact enters the exact losses of the model, for the state that was kept, otherwise for
// the state after the last epoch, and returns the index of the entry.
func (j *Journal) Exact(visible, held float64) (best int) {
	if j.Kept {
		j.History[j.BestEpoch] = visible
		return j.BestEpoch
	}
	if j.Holds { // stopped before its first epoch
		j.Validation = append(j.Validation, held)
	}
	j.History = append(j.History[:min(len(j.History), j.Done)], visible)
	return len(j.History) - 1
}

// Watch follows the loss that a fit is judged by, from epoch to epoch.
type Watch struct {
	Patience  int // 0: none
	Best      float64
	BestEpoch int
	Last      int     // the epoch of the last worthwhile fall
	Mark      float64 // the loss at that epoch
}

// Worthwhile is the least relative fall of the loss that renews the patience. Newton's method, which ends
// when no three epochs bring that, is then within 1e-6 of where the loss stands still; at 1e-4 it was up to a
// tenth above it, where the loss had paused.
const Worthwhile = 1e-7

// Over tells whether patience had run out by an epoch.
func (w *Watch) Over(epoch int) bool { return w.Patience > 0 && epoch-w.Last >= w.Patience }

// See takes the loss after an epoch and tells whether it is the best so far and
// whether to end.
func (w *Watch) See(epoch int, loss float64) (better, stop bool) {
	if epoch == 0 || loss < w.Best {
		w.Best, w.BestEpoch, better = loss, epoch, true
	}
	if epoch == 0 || loss < w.Mark*(1-Worthwhile) {
		w.Mark, w.Last = loss, epoch
	}
	return better, w.Over(epoch)
}
