package quantmf

// This file holds fits that stop and go on. A checkpoint is all that the rest of
// a fit depends on: parameters, Adam's moments and counts, the order of each
// row's samples and its offset, the random state, the histories, the best state
// so far, and, with restarts, the best model so far. A fit that was resumed
// returns the bits of one that never stopped. It has the layout of a model file
// (codec.go), of kind 16 plus the model's, with these sections:
//
//	OPTS  the options that the result depends on: name, tab, value, a line each
//	DATA  u fingerprint of x, of given factors
//	STAT  u restart, epoch, random state, steps of V, best epoch, epoch of the last fall; f best, mark
//	HIST, VALI  as in a model
//	BEST  a model file, empty in the first of the restarts
//	REAL  f the parameters, one after another in the order of their fit's list
//	IDX0  u the integers of the fit

import (
	"math"

	"github.com/quantmf/quantmf/internal/random"
)

// kindCheckpoint is added to a model's kind.
const kindCheckpoint = 16

// WithCheckpoint calls save with the state of the fit after every so many epochs,
// and after the last, on the goroutine of the caller; the bytes are the
// function's to keep. Its error stops the fit and comes back wrapped, with the
// model so far. every >= 1. What a fit starts from, in FitQMFQ a QMF of 100
// epochs, is made before the first epoch counts.
func WithCheckpoint(every int, save func(state []byte) error) FitOption {
	return fitOption(kCheckpoint, itoa(every), func(c *config) string {
		if every < 1 {
			return "must be at least 1"
		}
		if save == nil {
			return "save must not be nil"
		}
		c.every, c.save = every, save
		return ""
	})
}

// WithResume goes on from a state that [WithCheckpoint] saved, with the same x
// and the same options; workers, progress and checkpoints may differ. Another
// option or initial factor is an [*OptionError] that names it, another x a
// [*DataError], a damaged state a [*FormatError].
func WithResume(state []byte) FitOption {
	return fitOption(kResume, itoa(len(state))+" bytes", func(c *config) string {
		if len(state) == 0 {
			return "must not be empty"
		}
		c.resume = state
		return ""
	})
}

// described lists the options that a result depends on, with their values.
func (c *config) described(rank int) [][2]string {
	given := func(b bool) string {
		if b {
			return "given"
		}
		return "not given"
	}
	return [][2]string{
		{"rank", itoa(rank)}, {kEpsilon.String(), ftoa(c.epsilon)}, {kSquash.String(), c.squash.String()},
		{kTolerance.String(), ftoa(c.tolerance)}, {kMaxIterations.String(), itoa(c.maxIterations)}, {kLevels.String(), itoa(c.levels)},
		{kEpochs.String(), itoa(c.epochs)}, {kSeed.String(), utoa(c.seed)}, {kLearningRate.String(), ftoa(c.learningRate)},
		{kSchedule.String(), c.schedule.String()}, {kBatch.String(), itoa(c.batchRows)}, {kStart.String(), c.start.String()},
		{kEnds.String(), c.ends.String()}, {kPenalty.String(), ftoa(c.penalty)}, {kShrinkage.String(), ftoa(c.shrinkage)},
		{kLoss.String(), ftoa(float64(c.loss))}, {kPatience.String(), itoa(c.patience)}, {kRestarts.String(), itoa(c.restarts)},
		{kValidation.String(), ftoa(c.validation)}, {kMissing.String(), given(c.missing)}, {kInit.String(), given(c.given.has(kInit))},
		{kProjection.String(), c.projection.String()},
	}
}

// fingerprint hashes matrices, sizes and bits (FNV-1a).
func fingerprint(ms ...Mat) uint64 {
	h := uint64(14695981039346656037)
	put := func(v uint64) {
		for range 8 {
			h = (h ^ v&255) * 1099511628211
			v >>= 8
		}
	}
	for _, m := range ms {
		put(uint64(m.Rows))
		put(uint64(m.Cols))
		for i := range m.Rows {
			for _, v := range m.Row(i) {
				put(math.Float64bits(v))
			}
		}
	}
	return h
}

// part is some numbers of a fit under way, and the range that they are in.
type part struct {
	v         []float64
	low, high float64
}

// The ranges of parts: anything finite, what is not negative, and Adam's second moments.
// The square of a large gradient overflows: a moment is +Inf from then on, and its
// parameter stands still.
func finite(v []float64) part   { return part{v, -math.MaxFloat64, math.MaxFloat64} }
func positive(v []float64) part { return part{v, 0, math.MaxFloat64} }
func (m moment) parts() []part  { return []part{finite(m.mu), {m.nu, 0, math.Inf(1)}} }

// saved is a checkpoint: what all fits have, and the parts of the one at hand.
type saved struct {
	restart, epoch      int
	source              uint64
	steps               int
	judge               watch
	history, validation []float64
	best                []byte
	real                []part
	index               []uint64
}

func words(tag string, v ...uint64) section {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = append64(b, x)
	}
	return section{tag: tag, payload: b}
}

func (s *saved) encode(kind uint32, c *config, rank int, data [2]uint64) []byte {
	var opts []byte
	for _, o := range c.described(rank) {
		opts = append(opts, o[0]+"\t"+o[1]+"\n"...)
	}
	var real []float64
	for _, v := range s.real {
		real = append(real, v.v...)
	}
	return encode(kindCheckpoint+kind, []section{
		{tag: "OPTS", payload: opts}, words("DATA", data[:]...),
		words("STAT", uint64(s.restart), uint64(s.epoch), s.source, uint64(s.steps), uint64(s.judge.bestEpoch), uint64(s.judge.last),
			math.Float64bits(s.judge.best), math.Float64bits(s.judge.mark)),
		floats("HIST", s.history), floats("VALI", s.validation), {tag: "BEST", payload: s.best}, floats("REAL", real), words("IDX0", s.index...),
	})
}

// openCheckpoint reads c.resume as far as all fits have it, and holds it against
// the options and the data. lag is by how many epochs the histories are behind.
func openCheckpoint(kind uint32, c *config, rank, lag int, data [2]uint64) (*file, *saved, error) {
	f, err := decodeSections(c.resume, kindCheckpoint+kind, []string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"})
	if err != nil {
		return nil, nil, err
	}
	opts := string(f.sections["OPTS"])
	for _, o := range c.described(rank) {
		name, then, rest := line(opts)
		if name != o[0] {
			return nil, nil, f.fail("OPTS", "the options are not those of this version")
		}
		if then != o[1] {
			return nil, nil, &OptionError{Option: o[0], Value: o[1], Bound: "the state was saved with " + then}
		}
		opts = rest
	}
	st, err := f.words("STAT", 8)
	if err != nil {
		return nil, nil, err
	}
	d, err := f.words("DATA", 2)
	if err != nil {
		return nil, nil, err
	}
	if d[0] != data[0] {
		return nil, nil, &DataError{Row: -1, Col: -1, Value: math.NaN(), Problem: "the state was saved from another x"}
	}
	if d[1] != data[1] {
		return nil, nil, &OptionError{Option: kInit.String(), Value: c.initU.size() + ", " + c.initV.size(), Bound: "the state was saved with other initial factors"}
	}
	for i, most := range []uint64{uint64(c.restarts) - 1, uint64(c.epochs), math.MaxUint64, math.MaxInt64, st[1], st[1]} {
		if st[i] > most || i == 1 && st[i] < 1 {
			return nil, nil, f.failAt("STAT", i, "a count is out of range")
		}
	}
	for i := 6; i < 8; i++ {
		if v := math.Float64frombits(st[i]); !(v >= 0 && v <= math.MaxFloat64) {
			return nil, nil, f.failAt("STAT", i, "a loss is "+ftoa(v))
		}
	}
	s := &saved{restart: int(st[0]), epoch: int(st[1]), source: st[2], steps: int(st[3]), best: f.sections["BEST"],
		judge: watch{patience: c.patience, bestEpoch: int(st[4]), last: int(st[5]), best: math.Float64frombits(st[6]), mark: math.Float64frombits(st[7])}}
	entries := s.epoch + 1 - lag
	if s.history, err = f.vectorIn("HIST", int64(entries), leastHistory(kind), math.MaxFloat64); err != nil {
		return nil, nil, err
	}
	held := 0
	if c.validation > 0 {
		held = entries
	}
	if s.validation, err = f.vectorIn("VALI", int64(held), 0, math.MaxFloat64); err != nil {
		return nil, nil, err
	}
	if held == 0 {
		s.validation = nil // as in a fit that never stopped
	}
	if s.judge.bestEpoch >= entries {
		return nil, nil, f.failAt("STAT", 4, "the best epoch is not in the history")
	}
	if s.judge.last >= entries {
		return nil, nil, f.failAt("STAT", 5, "the epoch of the last fall is not in the history")
	}
	// A BQMF has the best of its epochs so far there too.
	if kind != kindBQMF && (len(s.best) > 0) != (s.restart > 0) {
		return nil, nil, f.fail("BEST", "there is a best model from the second of the restarts on")
	}
	return f, s, nil
}

// past is what a fit goes on from: nothing, or the state of a checkpoint.
type past struct {
	state *file
	from  *saved
	best  []byte    // the model file of the best of the restarts before
	data  [2]uint64 // fingerprints of what is fitted, where states are saved or resumed
}

// reopen reads the checkpoint that the options give, if any.
func (c *config) reopen(kind uint32, x Mat, rank int) (p past, err error) {
	if c.save != nil || c.resume != nil {
		p.data = [2]uint64{fingerprint(x), fingerprint(c.initU, c.initV)}
	}
	if c.resume == nil {
		return p, nil
	}
	lag := 0
	if kind == kindQMFQ || kind == kindQMF && c.lagging(x.Rows) {
		lag = 1
	}
	if p.state, p.from, err = openCheckpoint(kind, c, rank, lag, p.data); err == nil {
		p.best = p.from.best
	}
	return p, err
}

// inside places an error in the best model, a file within a file whose offsets count
// from its own start.
func (p *past) inside(err error) error {
	if e, ok := err.(*FormatError); ok {
		return &FormatError{Offset: p.state.offsets["BEST"] + e.Offset, Problem: "section BEST: " + e.Problem}
	}
	return err
}

// bestModel reads the best model of the restarts before into m, and holds it against
// the fit.
func (p *past) bestModel(m interface{ UnmarshalBinary([]byte) error }, kind uint32, c *config, x Mat, rank int) error {
	f, err := decode(p.best, kind)
	if err == nil {
		err = m.UnmarshalBinary(p.best)
	}
	if err != nil {
		return p.inside(err)
	}
	levels, eps := c.levels, c.epsilon
	if kind == kindNMF {
		levels, eps = 0, 0
	}
	if f.d != x.Rows || f.n != x.Cols || f.k != rank || f.m != levels || f.loss != c.loss || f.missing != c.missing || f.epsilon != eps {
		return p.state.fail("BEST", "the best model is not of this fit")
	}
	if (c.validation > 0) != (len(f.sections["VALI"]) > 0) {
		return p.state.fail("BEST", "the best model has other histories than this fit")
	}
	return nil
}

// restore fills the parts, in their order, and returns count integers.
func (f *file) restore(parts []part, count int) ([]uint64, error) {
	b := f.sections["REAL"]
	total := int64(0)
	for _, p := range parts {
		total += int64(len(p.v))
	}
	if len(b)%8 != 0 || int64(len(b)/8) != total {
		return nil, f.fail("REAL", "wrong length")
	}
	index, err := f.words("IDX0", count)
	if err != nil {
		return nil, err
	}
	at := 0
	for _, p := range parts {
		for i := range p.v {
			x := math.Float64frombits(get64(b[8*at:]))
			if !(x >= p.low && x <= p.high) {
				return nil, f.failAt("REAL", at, "number "+itoa(at)+" is "+ftoa(x))
			}
			p.v[i] = x
			at++
		}
	}
	return index, nil
}

func (f *file) words(tag string, n int) ([]uint64, error) {
	b := f.sections[tag]
	if len(b) != 8*n {
		return nil, f.fail(tag, "wrong length")
	}
	v := make([]uint64, n)
	for i := range v {
		v[i] = get64(b[8*i:])
	}
	return v, nil
}

// line splits "name\tvalue\n..." .
func line(s string) (name, value, rest string) {
	tab := 0
	for i := range len(s) {
		switch s[i] {
		case '\t':
			tab = i
		case '\n':
			return s[:tab], s[min(tab+1, i):i], s[i+1:]
		}
	}
	return "", "", ""
}

// due tells whether a checkpoint is due after an epoch.
func (c *config) due(epoch int, last bool) bool {
	return c.save != nil && (last || epoch%c.every == 0)
}

// checkpoint hands the state after an epoch to the caller.
func (f *qmfFit) checkpoint(epoch int) error {
	s := &saved{restart: f.restart, epoch: epoch, source: uint64(f.source), steps: f.stepsV, judge: f.judge,
		history: f.history, validation: f.validationHistory, best: f.bestSoFar, real: f.parts()}
	for _, i := range f.order {
		s.index = append(s.index, uint64(i))
	}
	s.index = appendWarm(s.index, f.state)
	s.index = append(s.index, uint64(f.origin), math.Float64bits(f.lambda))
	return f.save(s.encode(kindQMF, f.config, f.k, f.data))
}

// appendWarm adds, for each row, whether what its transport starts from is of use.
func appendWarm(index []uint64, states []warm) []uint64 {
	for i := range states {
		valid := uint64(0)
		if states[i].valid {
			valid = 1
		}
		index = append(index, valid)
	}
	return index
}

// takeWarm takes what appendWarm added, from so many integers on.
func (f *file) takeWarm(states []warm, index []uint64, from int) error {
	for i := range states {
		if index[from+i] > 1 {
			return f.failAt("IDX0", from+i, "is neither 0 nor 1")
		}
		states[i].valid = index[from+i] == 1
	}
	return nil
}

// parts are the numbers of a QMF under way.
func (f *qmfFit) parts() []part {
	log := func(v []float64) part { return part{v, -f.farthest, f.farthest} }
	p := []part{positive(f.u), positive(f.v), log(f.logU), log(f.logV), finite(f.f), positive(f.rowLosses), positive(f.rowHeld)}
	for _, m := range []moment{f.momU, f.momV, f.momF} {
		p = append(p, m.parts()...)
	}
	p = append(p, f.increments(f.inc)...)
	if f.r != nil {
		p = append(append(p, part{f.r, shortest, longest}), f.momR.parts()...)
	}
	if f.held != nil {
		p = append(append(p, positive(f.keep.u), positive(f.keep.v), finite(f.keep.f)), f.increments(f.keep.inc)...)
	}
	return appendOffsets(p, f.state)
}

// increments are parts: but for the first of a row, q_1, none is negative.
func (f *qmfFit) increments(inc []float64) (p []part) {
	for i := range f.d {
		row := inc[i*f.m : (i+1)*f.m]
		p = append(p, finite(row[:1]), positive(row[1:]))
	}
	return p
}

func appendOffsets(p []part, states []warm) []part {
	for i := range states {
		p = append(p, finite(states[i].offset))
	}
	return p
}

// resumeFrom takes the state of a checkpoint.
func (f *qmfFit) resumeFrom(file *file, s *saved) error {
	if f.held != nil {
		f.keep = f.newState()
	}
	index, err := file.restore(f.parts(), 2*f.d+2)
	if err != nil {
		return err
	}
	seen := make([]bool, f.d)
	for k, i := range index[:f.d] {
		if i >= uint64(f.d) || seen[i] {
			return file.failAt("IDX0", k, "an index is out of range")
		}
		seen[i], f.order[k] = true, int(i)
	}
	if err := file.takeWarm(f.state, index, f.d); err != nil {
		return err
	}
	origin, lambda := index[2*f.d], math.Float64frombits(index[2*f.d+1])
	if origin >= uint64(len(startNames)) {
		return file.failAt("IDX0", 2*f.d, "there is no such start")
	}
	if !(lambda >= 0 && lambda <= 1e30) {
		return file.failAt("IDX0", 2*f.d+1, "the shrinkage is "+ftoa(lambda))
	}
	size := min(f.batchRows, f.d)
	if s.steps != s.epoch*((f.d+size-1)/size) {
		return file.failAt("STAT", 3, "the steps of V are not those of so many epochs")
	}
	f.origin, f.lambda = Start(origin), lambda
	f.source, f.stepsV, f.judge, f.done = random.Source(s.source), s.steps, s.judge, s.epoch
	f.history, f.validationHistory = s.history, s.validation
	return nil
}

// checkpoint hands the state after an epoch to the caller.
func (f *qmfqFit) checkpoint(epoch int) error {
	s := &saved{restart: f.restart, epoch: epoch, judge: f.judge, history: f.history, validation: f.validationHistory, best: f.bestSoFar,
		real: f.parts(), index: appendWarm(appendWarm(nil, f.state), f.state1)}
	return f.save(s.encode(kindQMFQ, f.config, f.k, f.data))
}

// parts are the numbers of a QMFQ under way. What the last projection made is for a fit
// that is stopped before the next.
func (f *qmfqFit) parts() []part {
	p := append([]part{positive(f.from.u), positive(f.from.v), positive(f.rowLosses), positive(f.rowHeld)}, f.made(f.now)...)
	for _, m := range []moment{f.momF, f.momF1, f.momR1} {
		p = append(p, m.parts()...)
	}
	if f.r != nil {
		p = append(append(p, part{f.r, shortest, longest}), f.momR.parts()...)
	}
	if f.held != nil {
		p = append(p, f.made(f.best)...)
	}
	return appendOffsets(appendOffsets(p, f.state), f.state1)
}

// made are the parts of what a model is made of, as now has it.
func (f *qmfqFit) made(v [][]float64) []part {
	factor := positive
	if f.projection.kind == projectionSVD {
		factor = finite
	}
	p := append([]part{finite(v[0])}, f.increments(v[1])...)
	return append(p, finite(v[2]), part{v[3], f.shortest1, f.longest1}, finite(v[4]), factor(v[5]), factor(v[6]))
}

// resumeFrom takes the state of a checkpoint.
func (f *qmfqFit) resumeFrom(file *file, s *saved) error {
	index, err := file.restore(f.parts(), 2*f.d)
	if err != nil {
		return err
	}
	if err := file.takeWarm(f.state, index, 0); err != nil {
		return err
	}
	if err := file.takeWarm(f.state1, index, f.d); err != nil {
		return err
	}
	if s.steps != 0 {
		return file.failAt("STAT", 3, "there are no steps of V")
	}
	f.u, f.v = f.whole.u, f.whole.v
	f.done, f.judge, f.history, f.validationHistory = s.epoch, s.judge, s.history, s.validation
	return nil
}

// checkpoint hands the state after an epoch to the caller.
func (f *nmfFit) checkpoint(c *config, m *NMF, judge watch, epoch int, keep *factors) error {
	s := &saved{restart: f.restart, epoch: epoch, judge: judge, history: m.History, validation: m.Validation, best: f.bestSoFar, real: f.parts(keep)}
	return c.save(s.encode(kindNMF, c, f.k, f.data))
}

// parts are the numbers of an NMF under way.
func (f *nmfFit) parts(keep *factors) []part {
	p := []part{positive(f.u), positive(f.v)}
	if f.held != nil {
		p = append(p, positive(keep.u), positive(keep.v))
	}
	return p
}
