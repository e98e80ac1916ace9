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
	"github.com/quantmf/quantmf/internal/transport"
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

// saved is a checkpoint: what all fits have, and the parts of the one at hand.
type saved struct {
	restart, epoch      int
	source              uint64
	steps               int
	judge               watch
	history, validation []float64
	best                []byte
	real                [][]float64
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
		real = append(real, v...)
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
	if st[0] >= uint64(c.restarts) || st[1] > uint64(c.epochs) || st[3] > 1<<60 || st[4] > st[1] || st[5] > st[1] {
		return nil, nil, f.fail("STAT", "a count is out of range")
	}
	s := &saved{restart: int(st[0]), epoch: int(st[1]), source: st[2], steps: int(st[3]), best: f.sections["BEST"],
		judge: watch{patience: c.patience, bestEpoch: int(st[4]), last: int(st[5]), best: math.Float64frombits(st[6]), mark: math.Float64frombits(st[7])}}
	if s.history, err = f.vector("HIST", -1); err != nil {
		return nil, nil, err
	}
	if s.validation, err = f.vector("VALI", -1); err != nil {
		return nil, nil, err
	}
	held := 0
	if c.validation > 0 {
		held = s.epoch + 1 - lag
	}
	if s.epoch < 1 || len(s.history) != s.epoch+1-lag {
		return nil, nil, f.fail("HIST", "wrong length")
	}
	if len(s.validation) != held {
		return nil, nil, f.fail("VALI", "wrong length")
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

// restore fills the parts, in their order, and returns count integers.
func (f *file) restore(parts [][]float64, count int) ([]uint64, error) {
	total := int64(0)
	for _, p := range parts {
		total += int64(len(p))
	}
	real, err := f.vector("REAL", total)
	if err != nil {
		return nil, err
	}
	index, err := f.words("IDX0", count)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		real = real[copy(p, real):]
	}
	return index, nil
}

// positive reports negative factors.
func (f *file) positive(of *factors) error {
	for _, v := range [][]float64{of.u, of.v} {
		for _, x := range v {
			if x < 0 {
				return f.fail("REAL", "a factor is negative")
			}
		}
	}
	return nil
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
	flags := uint64(0)
	if f.replace {
		flags = 1
	}
	s.index = append(s.index, flags, uint64(f.origin), math.Float64bits(f.lambda))
	return f.save(s.encode(kindQMF, f.config, f.k, f.data))
}

// appendWarm adds, for each row, whether what its transport starts from is of use.
func appendWarm(index []uint64, states []transport.Warm) []uint64 {
	for i := range states {
		valid := uint64(0)
		if states[i].Valid {
			valid = 1
		}
		index = append(index, valid)
	}
	return index
}

// takeWarm takes what appendWarm added.
func takeWarm(states []transport.Warm, index []uint64) {
	for i := range states {
		states[i].Valid = index[i] == 1
	}
}

// parts are the numbers of a QMF under way.
func (f *qmfFit) parts() [][]float64 {
	p := [][]float64{f.u, f.v, f.logU, f.logV, f.momU.mu, f.momU.nu, f.momV.mu, f.momV.nu, f.f, f.momF.mu, f.momF.nu, f.inc, f.rowLosses, f.rowHeld}
	if f.r != nil {
		p = append(p, f.r, f.momR.mu, f.momR.nu)
	}
	if f.held != nil {
		p = append(p, f.keep.u, f.keep.v, f.keep.f, f.keep.inc)
	}
	for i := range f.state {
		p = append(p, f.state[i].Offset)
	}
	return p
}

// resumeFrom takes the state of a checkpoint.
func (f *qmfFit) resumeFrom(file *file, s *saved) error {
	if f.held != nil {
		f.keep = f.newState()
	}
	index, err := file.restore(f.parts(), 2*f.d+3)
	if err != nil {
		return err
	}
	seen := make([]bool, f.d)
	for k, i := range index[:f.d] {
		if i >= uint64(f.d) || seen[i] {
			return file.fail("IDX0", "an index is out of range")
		}
		seen[i], f.order[k] = true, int(i)
	}
	takeWarm(f.state, index[f.d:])
	last := index[len(index)-3:]
	f.replace, f.origin, f.lambda = last[0] == 1, Start(last[1]&255), math.Float64frombits(last[2])
	if last[1] >= uint64(len(startNames)) || !(f.lambda >= 0) || f.lambda > math.MaxFloat64 {
		return file.fail("IDX0", "start or shrinkage is out of range")
	}
	if err := file.positive(f.factors); err != nil {
		return err
	}
	f.source, f.stepsV, f.judge = random.Source(s.source), s.steps, s.judge
	f.history, f.validationHistory = s.history, s.validation
	return nil
}

// checkpoint hands the state after an epoch to the caller.
func (f *qmfqFit) checkpoint(epoch int) error {
	s := &saved{restart: f.restart, epoch: epoch, judge: f.judge, history: f.history, validation: f.validationHistory, best: f.bestSoFar,
		real: f.parts(), index: appendWarm(appendWarm(nil, f.state), f.state1)}
	return f.save(s.encode(kindQMFQ, f.config, f.k, f.data))
}

// parts are the numbers of a QMFQ under way. What a projection makes is no part:
// it is made again.
func (f *qmfqFit) parts() [][]float64 {
	p := [][]float64{f.from.u, f.from.v, f.f, f.momF.mu, f.momF.nu, f.inc, f.f1, f.momF1.mu, f.momF1.nu, f.r1, f.momR1.mu, f.momR1.nu, f.rowLosses, f.rowHeld}
	if f.r != nil {
		p = append(p, f.r, f.momR.mu, f.momR.nu)
	}
	if f.held != nil {
		p = append(p, f.best...)
	}
	for i := range f.state {
		p = append(p, f.state[i].Offset, f.state1[i].Offset)
	}
	return p
}

// resumeFrom takes the state of a checkpoint.
func (f *qmfqFit) resumeFrom(file *file, s *saved) error {
	index, err := file.restore(f.parts(), 2*f.d)
	if err != nil {
		return err
	}
	takeWarm(f.state, index)
	takeWarm(f.state1, index[f.d:])
	if err := file.positive(f.from); err != nil {
		return err
	}
	f.done, f.judge, f.history, f.validationHistory = s.epoch, s.judge, s.history, s.validation
	return nil
}

// checkpoint hands the state after an epoch to the caller.
func (f *nmfFit) checkpoint(c *config, m *NMF, judge watch, epoch int, keep *factors) error {
	s := &saved{restart: f.restart, epoch: epoch, judge: judge, history: m.History, validation: m.Validation, best: f.bestSoFar, real: f.parts(keep)}
	return c.save(s.encode(kindNMF, c, f.k, f.data))
}

// parts are the numbers of an NMF under way.
func (f *nmfFit) parts(keep *factors) [][]float64 {
	p := [][]float64{f.u, f.v}
	if f.held != nil {
		p = append(p, keep.u, keep.v)
	}
	return p
}
