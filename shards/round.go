package shards

// This file holds rounds: where a fit stands before the steps of each, and V, which they read.

import (
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/section"
)

// phase is what the steps of a round do.
type phase uint64

const (
	phaseStart phase = iota // what comes before the first epoch
	phaseVisit              // an epoch
	phaseBack               // an epoch of multiplicative updates again, without steps ahead
	phaseJudge              // the losses after an epoch, where they are not those of its visits
	phaseHand               // the model's rows
	phaseOver               // nothing
	phaseOpen               // of Newton's method, see newton.go
	phaseHalf
	phaseAgain
	phaseOpenClose
	phaseHalfClose
	phaseAgainClose
	phaseSearch
)

// stage is where a fit stands before the steps of a round.
type stage struct {
	Number int
	Phase  phase
	Fresh  bool // the states that are read now are the best so far, and to be kept
	Steps  int  // of V
	*fit.Journal
	Numbers []float64 // that V's steps go on from
	// k × n, of Newton's method: what the steps read beside V; of a round that is to be written
	Beside []float64
}

// enter enters losses into the journal, and sets what comes next: again, where there is another epoch, or
// else end.
func (r *stage) enter(l fit.Losses, epochs int, again, end phase) {
	better, stop := r.Note(l)
	r.Fresh = better
	r.Phase = again
	if stop || r.Done >= epochs {
		r.Phase = end
	}
}

// fault is the error of the round's blob.
func (r *stage) fault(err error) error {
	return &blobError{Name: whom{kind: kindRound, round: r.Number}.name(), Err: err}
}

func (f *Fit) putRound(r *stage, v []float64, main []section.Part) error {
	if len(main) > 0 {
		if err := f.put(kindMain, r.Number, 0, section.Parts("REAL", main)); err != nil {
			return err
		}
	}
	factor := []section.Section{section.Floats("VFAC", v)}
	if f.plan.newton() {
		factor = append(factor, section.Floats("VTWO", r.Beside))
	}
	if err := f.put(kindV, r.Number, 0, factor...); err != nil {
		return err
	}
	of := f.plan.whom(kindRound, r.Number, 0)
	data := of.encode(
		section.Words("STAT", uint64(r.Phase), bit(r.Fresh), uint64(r.Steps), uint64(r.Done), bit(r.Kept),
			uint64(r.BestEpoch), uint64(r.Last), math.Float64bits(r.Best), math.Float64bits(r.Mark)),
		section.Floats("HIST", r.History), section.Floats("VALI", r.Validation),
		section.Floats("NUMB", r.Numbers))
	// What nobody could read would be made again and again.
	file, err := section.Decode(data, kindRound, kindName, append(slices.Clip(roundTags), "WHOM"), nil)
	if err == nil {
		_, err = decodeRound(file, f.plan, r.Number)
	}
	if err != nil {
		of.round--
		return &blobError{Name: of.name(), Err: err}
	}
	return f.store.Put(of.name(), data)
}

var roundTags = []string{"STAT", "HIST", "VALI", "NUMB"}

func (f *Fit) readRound(round int) (*stage, error) {
	if round < 0 {
		return nil, (&stage{Number: round}).fault(errMissing)
	}
	b, err := f.read(kindRound, round, 0, roundTags...)
	if err != nil {
		return nil, err
	}
	r, err := decodeRound(b.File, f.plan, round)
	return r, b.fault(err)
}

func decodeRound(f *section.File, p *plan, number int) (*stage, error) {
	st, err := f.Words("STAT", 9)
	if err != nil {
		return nil, err
	}
	epochs, last := uint64(p.Epochs), phaseOver
	if p.newton() {
		last = phaseSearch
	}
	for i, most := range []uint64{uint64(last), 1, epochs, epochs, 1, epochs, epochs} {
		if st[i] > most {
			return nil, f.FailAt("STAT", i, "a number is out of range")
		}
	}
	r := &stage{Number: number, Phase: phase(st[0]), Fresh: st[1] == 1, Steps: int(st[2]),
		Journal: fit.NewJournal(p.Patience, p.Epochs, p.Holds)}
	r.Done, r.Kept, r.BestEpoch, r.Last, r.Best, r.Mark = int(st[3]), st[4] == 1, int(st[5]), int(st[6]),
		math.Float64frombits(st[7]), math.Float64frombits(st[8])
	for i, v := range []float64{r.Best, r.Mark} {
		if !(v >= 0 && v <= math.MaxFloat64) {
			return nil, f.FailAt("STAT", 7+i, "a loss is "+strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
	if r.History, err = f.Floats("HIST", -1, 0, math.MaxFloat64); err != nil {
		return nil, err
	}
	if r.Validation, err = f.Floats("VALI", -1, 0, math.MaxFloat64); err != nil {
		return nil, err
	}
	if !p.Holds {
		r.Validation = nil
	}
	if len(r.History) > r.Done+1 || p.Holds && len(r.Validation) != len(r.History) ||
		r.BestEpoch >= max(len(r.History), 1) || (r.Fresh || r.Kept) && !p.Holds {
		return nil, f.Fail("STAT", "the journal is not of so many epochs")
	}
	r.Numbers, err = f.Floats("NUMB", -1, 0, math.MaxFloat64)
	return r, err
}

// readAhead is how many rounds one after the other are read before none of them counts as written.
const readAhead = 4

// current reads the newest round. Rounds are written one after the other and stay, so the newest is found by
// doubling and halving. One that is damaged counts as not written yet, so that it is written again, unless
// one of the three after it is there.
func (f *Fit) current() (*stage, error) {
	r, err := f.roundAt(0)
	if err != nil {
		return nil, err
	}
	// Round low is there, and none of readAhead rounds from high on is.
	low, high := r.Number, math.MaxInt
	for step := 1; high-low > 1; step = min(2*step, high-low) {
		at := low + min(step, (high-low)/2)
		next, err := f.roundAt(at)
		switch {
		case err == nil:
			r, low = next, next.Number
		case damaged(err):
			high = at
		default:
			return nil, err
		}
	}
	return r, nil
}

// roundAt reads a round, or where it is damaged the first whole one of the few after it.
func (f *Fit) roundAt(round int) (*stage, error) {
	r, err := f.readRound(round)
	for after := 1; err != nil && damaged(err) && after < readAhead; after++ {
		if next, late := f.readRound(round + after); late == nil || !damaged(late) {
			return next, late
		}
	}
	return r, err
}

// factor reads what the steps of a round read of V.
func (f *Fit) factor(round int) (*blob, error) {
	tags := []string{"VFAC", "VTWO"}
	if !f.plan.newton() {
		tags = tags[:1]
	}
	return f.read(kindV, round, 0, tags...)
}

// beside reads what stands beside V, k × n numbers of either sign.
func (f *Fit) beside(round int) ([]float64, error) {
	b, err := f.factor(round)
	if err != nil {
		return nil, err
	}
	v, err := b.Floats("VTWO", int64(f.plan.K)*int64(f.plan.N), -math.MaxFloat64, math.MaxFloat64)
	return v, b.fault(err)
}

// readV reads V as the steps of a round do, k × n.
func (f *Fit) readV(round int) ([]float64, error) {
	b, err := f.factor(round)
	if err != nil {
		return nil, err
	}
	v, err := b.Floats("VFAC", int64(f.plan.K)*int64(f.plan.N), 0, math.MaxFloat64)
	return v, b.fault(err)
}

// mainBlob reads what only Reduce goes on from.
func (f *Fit) mainBlob(round int) (*blob, error) {
	return f.read(kindMain, round, 0, "REAL")
}

// main fills the parts with it.
func (f *Fit) main(round int, parts []section.Part) error {
	if len(parts) == 0 {
		return nil
	}
	b, err := f.mainBlob(round)
	if err != nil {
		return err
	}
	return b.fault(b.Fill("REAL", parts))
}
