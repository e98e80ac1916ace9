package quantmf

// This file holds fits that stop and go on. A checkpoint has all that the rest of
// a fit depends on: parameters, Adam's moments and counts or the model of V, the warm start of
// each row's transport, the order of the rows, the state of the random numbers, the histories, the
// best state so far, and, with restarts, the best model so far. A resumed fit returns the bits of a
// fit that never stopped. A checkpoint has the layout of a model file (internal/section). Its kind is
// 16 plus that of the model, and its sections are
//
//	OPTS  the options that the result depends on: name, tab, value, a line each
//	DATA  u fingerprint of x, of given factors
//	STAT  u restart, epoch, best epoch, epoch of the last fall; f best loss, loss at the last fall
//	HIST, VALI  as in a model
//	BEST  a model file, empty in the first of the restarts
//	REAL  f the arrays, one after another as the walk of the fit shows them, then those of the best state
//	IDX0  u the integers of the fit

import (
	"github.com/quantmf/quantmf/internal/fit"
	"math"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/section"
)

// described lists the options that a result depends on, with their values.
func (c *config) described(rank int) [][2]string {
	given := func(b bool) string {
		if b {
			return "given"
		}
		return "not given"
	}
	return [][2]string{
		{"rank", itoa(rank)},
		{option.Start.String(), c.start.String()},
		{option.Epsilon.String(), ftoa(c.epsilon)},
		{option.Squash.String(), c.squash.String()},
		{option.Tolerance.String(), ftoa(c.tolerance)},
		{option.MaxIterations.String(), itoa(c.maxIterations)},
		{option.Levels.String(), itoa(c.levels)},
		{option.Epochs.String(), itoa(c.epochs)},
		{option.Seed.String(), utoa(c.seed)},
		{option.LearningRate.String(), ftoa(c.learningRate)},
		{option.Schedule.String(), c.schedule.String()},
		{option.Batch.String(), itoa(c.batchRows)},
		{option.Ends.String(), c.ends.String()},
		{option.Penalty.String(), ftoa(c.penalty)},
		{option.Shrinkage.String(), ftoa(c.shrinkage)},
		{option.Line.String(), ftoa(c.line)},
		{option.Loss.String(), ftoa(float64(c.loss))},
		{option.Patience.String(), itoa(c.patience)},
		{option.Restarts.String(), itoa(c.restarts)},
		{option.Validation.String(), ftoa(c.validation)},
		{option.Missing.String(), given(c.missing)},
		{option.Init.String(), given(c.given.Has(option.Init))},
		{option.Projection.String(), c.projection.String()},
		{option.Updates.String(), c.updates.String()},
	}
}

// differs is the error of an option that has another value than in the state. The values are those of
// described, where an option that was not given has one that none can be given.
func (c *config) differs(name, now, then string) *OptionError {
	unset := map[string]string{option.Shrinkage.String(): "-1", option.Line.String(): "-1",
		option.Validation.String(): "0",
		option.Patience.String():   "0",
		option.Missing.String():    "not given", option.Init.String(): "not given"}[name]
	e := &OptionError{Option: name, Value: now, Bound: "the state was saved with " + then}
	switch {
	case unset == "":
	case now == unset:
		e.Value = "not given"
		if then == "given" {
			e.Bound = "the state was saved with it"
		}
	case then == unset:
		e.Bound = "the state was saved without it"
	}
	return e
}

// fingerprintRows hashes sizes and numbers of matrices (FNV-1a). All NaN count as one number, and -0 as 0.
func fingerprintRows(ms ...Rows) (uint64, error) {
	h := uint64(14695981039346656037)
	put := func(v uint64) {
		for range 8 {
			h = (h ^ v&255) * 1099511628211
			v >>= 8
		}
	}
	for _, m := range ms {
		d, n := m.Dims()
		put(uint64(d))
		put(uint64(n))
		from := newRowReader(m)
		for i := range d {
			row, err := from.row(i)
			if err != nil {
				return 0, err
			}
			for _, v := range row {
				if v != v {
					v = math.NaN()
				}
				put(math.Float64bits(v + 0))
			}
		}
	}
	return h, nil
}

// checkpoints saves the states of fits and resumes fits from them. It is an interface for the sake of the
// linker: only WithCheckpoint and WithResume name its one implementation, so a program that uses neither,
// such as a page in a browser, does not contain the code that reads and writes files.
type checkpoints interface {
	// reopen reads the checkpoint that the options give, nil for none, and the best model in it into decoded.
	reopen(t *task, decoded fitted) (*checkpoint, error)
	// resume brings a fit and its journal to the state that was saved.
	resume(a *attempt, c *checkpoint) error
	// save hands the state after an epoch to the caller. best is the model file of the best of the restarts
	// before.
	save(t *task, a *attempt, restart int, best []byte) error
	// file returns a model as a file. A fit that resumed from numbers that no fit has, each of them in its
	// range, may end in a model that no file can hold: this is the error.
	file(m fitted) ([]byte, error)
}

// files implements checkpoints by files.
type files struct{}

func (files) file(m fitted) ([]byte, error) { return m.MarshalBinary() }

// checkpoint is what a checkpoint has of every fit. Its file has the arrays and the integers of one
// algorithm.
type checkpoint struct {
	file                *file
	restart, epoch      int
	watch               fit.Watch
	history, validation []float64
	best                []byte // the model file of the best of the restarts before
}

func (files) save(t *task, a *attempt, restart int, best []byte) error {
	j := a.journal
	c := &checkpoint{restart: restart, epoch: j.Done, watch: j.Watch, history: j.History,
		validation: j.Validation, best: best}
	return t.save(t.encode(c, a.arrays(), a.fit.index()))
}

// encode returns the file of a checkpoint with these arrays and integers of a fit.
func (t *task) encode(c *checkpoint, real []section.Part, index []uint64) []byte {
	var opts []byte
	for _, o := range t.described(t.rank) {
		opts = append(opts, o[0]+"\t"+o[1]+"\n"...)
	}
	return section.Encode(section.State+t.kind, []section.Section{
		{Tag: "OPTS", Payload: opts}, section.Words("DATA", t.fingerprints[:]...),
		section.Words("STAT", uint64(c.restart), uint64(c.epoch), uint64(c.watch.BestEpoch),
			uint64(c.watch.Last), math.Float64bits(c.watch.Best), math.Float64bits(c.watch.Mark)),
		section.Floats("HIST", c.history), section.Floats("VALI", c.validation),
		{Tag: "BEST", Payload: c.best},
		section.Parts("REAL", real), section.Words("IDX0", index...),
	})
}

// compare compares the options of a checkpoint with those of the fit. It returns the number of epochs in the
// checkpoint where that is another one, which epochsAreFixed decides on, and otherwise "".
func (t *task) compare(f *file) (planned string, err error) {
	opts := string(f.Payload("OPTS"))
	for _, o := range t.described(t.rank) {
		name, then, rest := line(opts)
		if name != o[0] {
			return "", f.fail("OPTS", "the options are not those of this version")
		}
		switch {
		case then == o[1]:
		case name == option.Epochs.String():
			planned = then
		default:
			return "", t.differs(name, o[1], then)
		}
		opts = rest
	}
	return planned, nil
}

// openCheckpoint reads the sections of t.resume that all fits have, and compares them with
// the options and the data.
func openCheckpoint(t *task) (*checkpoint, error) {
	tags := []string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"}
	f, err := decodeSections(t.resume, section.State+t.kind, tags)
	if err != nil {
		return nil, err
	}
	planned, err := t.compare(f)
	if err != nil {
		return nil, err
	}
	st, err := f.words("STAT", 6)
	if err != nil {
		return nil, err
	}
	if planned != "" {
		if why := t.epochsAreFixed(st[0], st[1]); why != "" {
			return nil, &OptionError{Option: option.Epochs.String(), Value: itoa(t.epochs),
				Bound: "the state was saved with " + planned + why}
		}
	}
	d, err := f.words("DATA", 2)
	if err != nil {
		return nil, err
	}
	if d[0] != t.fingerprints[0] {
		return nil, &DataError{Row: -1, Col: -1, Value: math.NaN(),
			Problem: "the state was saved from another x"}
	}
	if d[1] != t.fingerprints[1] {
		return nil, &OptionError{Option: option.Init.String(),
			Value: t.initU.size() + ", " + t.initV.size(),
			Bound: "the state was saved with other initial factors"}
	}
	for i, most := range []uint64{uint64(t.restarts) - 1, uint64(t.epochs), st[1], st[1]} {
		if st[i] > most || i == 1 && st[i] < 1 {
			return nil, f.failAt("STAT", i, "a count is out of range")
		}
	}
	for i := 4; i < 6; i++ {
		if v := math.Float64frombits(st[i]); !(v >= 0 && v <= math.MaxFloat64) {
			return nil, f.failAt("STAT", i, "a loss is "+ftoa(v))
		}
	}
	c := &checkpoint{file: f, restart: int(st[0]), epoch: int(st[1]), best: f.Payload("BEST"),
		watch: fit.Watch{Patience: t.patience, BestEpoch: int(st[2]), Last: int(st[3]),
			Best: math.Float64frombits(st[4]), Mark: math.Float64frombits(st[5])}}
	if err := c.histories(t); err != nil {
		return nil, err
	}
	if (len(c.best) > 0) != (c.restart > 0) {
		return nil, f.fail("BEST", "there is a best model from the second of the restarts on")
	}
	return c, nil
}

// histories reads the losses after each epoch, and checks that those that the watch remembers are among them.
func (c *checkpoint) histories(t *task) (err error) {
	f, entries := c.file, c.epoch+1-t.lag()
	if c.history, err = f.vectorIn("HIST", int64(entries), section.LeastHistory(t.kind),
		math.MaxFloat64); err != nil {
		return err
	}
	held := 0
	if t.validation > 0 {
		held = entries
	}
	if c.validation, err = f.vectorIn("VALI", int64(held), 0, math.MaxFloat64); err != nil {
		return err
	}
	if held == 0 {
		c.validation = nil // as in a fit that never stopped
	}
	if c.watch.BestEpoch >= entries {
		return f.failAt("STAT", 2, "the best epoch is not in the history")
	}
	if c.watch.Last >= entries {
		return f.failAt("STAT", 3, "the epoch of the last fall is not in the history")
	}
	return nil
}

// epochsAreFixed says why a fit cannot go on with another number of epochs from a state
// of the given restart and epoch. It returns "" where it can, because nothing that was computed up to
// that state depends on the number of epochs.
func (t *task) epochsAreFixed(restart, epoch uint64) string {
	switch {
	case epoch > uint64(t.epochs):
		return ", of which " + utoa(epoch) + " are done"
	case section.Mapped(t.kind) && t.schedule != ScheduleConstant:
		return ", over which the learning rate falls to 0: only ScheduleConstant can have more"
	case restart > 0:
		return ", which restarts before have ended with"
	}
	return ""
}

func (files) reopen(t *task, decoded fitted) (*checkpoint, error) {
	if t.save == nil && t.resume == nil {
		return nil, nil
	}
	of, err := fingerprintRows(t.x)
	if err != nil {
		return nil, err
	}
	given, _ := fingerprintRows(t.initU, t.initV) // reading a Mat has no error
	t.fingerprints = [2]uint64{of, given}
	if t.resume == nil {
		return nil, nil
	}
	c, err := openCheckpoint(t)
	if c != nil && len(c.best) > 0 {
		err = c.bestModel(decoded, t)
	}
	return c, err
}

// lag is the number of epochs by which the journal of a fit is behind the fit: 1 where an epoch returns
// the losses of the state that it started from.
func (t *task) lag() int {
	if t.kind == section.QMFQ || t.kind == section.QMF && t.lagging(t.cells.d) {
		return 1
	}
	return 0
}

func (files) resume(a *attempt, c *checkpoint) error {
	j := a.journal
	j.History, j.Validation, j.Watch, j.Done, j.Kept = c.history, c.validation, c.watch, c.epoch, j.Holds
	return a.fit.resume(a, c)
}

// fill reads the arrays of a fit and its best state from section REAL, and returns the count integers of
// IDX0.
func (c *checkpoint) fill(t *attempt, count int) ([]uint64, error) {
	if t.journal.Holds {
		t.room()
	}
	return c.file.restore(t.arrays(), count)
}

// inside turns the offset of an error in the best model, which counts from the start of section BEST,
// into one from the start of the checkpoint.
func (c *checkpoint) inside(err error) error {
	if e, ok := err.(*FormatError); ok {
		return &FormatError{Offset: c.file.Offset("BEST") + e.Offset, Problem: "section BEST: " + e.Problem}
	}
	return err
}

// bestModel reads the best model of the restarts before into m, and checks that it is of
// this fit.
func (c *checkpoint) bestModel(m fitted, t *task) error {
	f, err := decode(c.best, t.kind)
	if err == nil {
		err = m.UnmarshalBinary(c.best)
	}
	if err != nil {
		return c.inside(err)
	}
	levels, eps := t.levels, t.epsilon
	if t.kind == section.NMF {
		levels, eps = 0, 0
	}
	if f.d != t.cells.d || f.n != t.cells.n || f.k != t.rank || f.m != levels ||
		f.loss != t.loss || f.missing != t.missing || f.epsilon != eps {
		return c.file.fail("BEST", "the best model is not of this fit")
	}
	if (t.validation > 0) != (len(f.Payload("VALI")) > 0) {
		return c.file.fail("BEST", "the best model has other histories than this fit")
	}
	return nil
}

// restore fills the parts from section REAL, in their order, and returns the count integers
// of IDX0.
func (f *file) restore(parts []section.Part, count int) ([]uint64, error) {
	index, err := f.words("IDX0", count)
	if err != nil {
		return nil, err
	}
	return index, formatError(f.Fill("REAL", parts))
}

// line splits "name\tvalue\nrest".
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
