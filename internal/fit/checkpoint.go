package fit

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
	"math"
	"strconv"

	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/section"
)

// States is what a task has to do with states of fits.
type States struct {
	Every    int // epochs from one save to the next
	Save     func(state []byte) error
	ResumeAt []byte
	Files    Checkpoints // nil where there is neither Save nor ResumeAt
	Options  [][2]string // the options that a result depends on, with their values
	Init     Hash        // of the initial factors
	Lag      int         // 1 where an epoch returns the losses of the state that it started from, else 0
	// EpochsFixed: what an epoch computes depends on the number of epochs
	EpochsFixed bool
}

// Checkpoints saves the states of fits and resumes fits from them. It is an interface for the sake of the
// linker: only the options of checkpoints name its one implementation, so a program that uses neither,
// such as a page in a browser, does not contain the code that reads and writes files.
type Checkpoints interface {
	// reopen reads the checkpoint that the task gives, nil for none, and the best model in it.
	reopen(t *Task) (*Checkpoint, error)
	// resume brings a fit and its journal to the state that was saved.
	resume(a *Attempt, c *Checkpoint) error
	// save hands the state after an epoch to the caller. best is the model file of the best of the restarts
	// before.
	save(t *Task, a *Attempt, restart int, best []byte) error
	// file returns a model as a file.
	file(t *Task, m Model) ([]byte, error)
}

// Files implements Checkpoints by files.
type Files struct{}

func (Files) file(t *Task, m Model) ([]byte, error) { return t.Models.File(m) }

// Checkpoint is what a checkpoint has of every fit. Its file has the arrays and the integers of one
// algorithm.
type Checkpoint struct {
	*section.File
	Epoch               int
	Watch               Watch
	restart             int
	history, validation []float64
	best                []byte // the model file of the best of the restarts before, and the model
	model               Model
}

// Differs is the error of a task whose option has another value than in the state.
type Differs struct{ Name, Now, Then string }

func (d *Differs) Error() string {
	return "quantmf: " + d.Name + "(" + d.Now + "): the state was saved with " + d.Then
}

func (Files) save(t *Task, a *Attempt, restart int, best []byte) error {
	var opts []byte
	for _, o := range t.Options {
		opts = append(opts, o[0]+"\t"+o[1]+"\n"...)
	}
	j := a.Journal
	return t.Save(section.Encode(section.State+t.Kind, []section.Section{
		{Tag: "OPTS", Payload: opts}, section.Words("DATA", uint64(t.Cells.Fingerprint), uint64(t.Init)),
		section.Words("STAT", uint64(restart), uint64(j.Done), uint64(j.BestEpoch), uint64(j.Last),
			math.Float64bits(j.Best), math.Float64bits(j.Mark)),
		section.Floats("HIST", j.History), section.Floats("VALI", j.Validation),
		{Tag: "BEST", Payload: best},
		section.Parts("REAL", a.Arrays()), section.Words("IDX0", a.Fit.Index()...),
	}))
}

// compare compares the options of a checkpoint with those of the fit. It returns the number of epochs in the
// checkpoint where that is another one, which epochsAreFixed decides on, and otherwise "".
func (t *Task) compare(f *section.File) (planned string, err error) {
	opts := string(f.Payload("OPTS"))
	for _, o := range t.Options {
		name, then, rest := line(opts)
		if name != o[0] {
			return "", f.Fail("OPTS", "the options are not those of this version")
		}
		switch {
		case then == o[1]:
		case name == option.Epochs.String():
			planned = then
		default:
			return "", &Differs{name, o[1], then}
		}
		opts = rest
	}
	return planned, nil
}

// open reads the sections of t.ResumeAt that all fits have, and compares them with the options and the data.
func (t *Task) open() (*Checkpoint, error) {
	tags := []string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"}
	f, err := section.Decode(t.ResumeAt, section.State+t.Kind, section.KindName, tags,
		[]string{"CONV", "WARN"})
	if err != nil {
		return nil, err
	}
	planned, err := t.compare(f)
	if err != nil {
		return nil, err
	}
	st, err := f.Words("STAT", 6)
	if err != nil {
		return nil, err
	}
	if planned != "" {
		if why := t.epochsAreFixed(st[0], st[1]); why != "" {
			return nil, &OptionError{Option: option.Epochs.String(), Value: strconv.Itoa(t.Epochs),
				Bound: "the state was saved with " + planned + why}
		}
	}
	d, err := f.Words("DATA", 2)
	if err != nil {
		return nil, err
	}
	if d[0] != uint64(t.Cells.Fingerprint) {
		return nil, &DataError{Row: -1, Col: -1, Value: math.NaN(),
			Problem: "the state was saved from another x"}
	}
	if d[1] != uint64(t.Init) {
		return nil, &Differs{Name: option.Init.String(), Then: "other initial factors"}
	}
	for i, most := range []uint64{uint64(t.Restarts) - 1, uint64(t.Epochs), st[1], st[1]} {
		if st[i] > most || i == 1 && st[i] < 1 {
			return nil, f.FailAt("STAT", i, "a count is out of range")
		}
	}
	for i := 4; i < 6; i++ {
		if v := math.Float64frombits(st[i]); !(v >= 0 && v <= math.MaxFloat64) {
			return nil, f.FailAt("STAT", i, "a loss is "+ftoa(v))
		}
	}
	c := &Checkpoint{File: f, restart: int(st[0]), Epoch: int(st[1]), best: f.Payload("BEST"),
		Watch: Watch{Patience: t.Patience, BestEpoch: int(st[2]), Last: int(st[3]),
			Best: math.Float64frombits(st[4]), Mark: math.Float64frombits(st[5])}}
	if err := c.histories(t); err != nil {
		return nil, err
	}
	if (len(c.best) > 0) != (c.restart > 0) {
		return nil, f.Fail("BEST", "there is a best model from the second of the restarts on")
	}
	return c, nil
}

// histories reads the losses after each epoch, and checks that those that the watch remembers are among them.
func (c *Checkpoint) histories(t *Task) (err error) {
	entries := c.Epoch + 1 - t.Lag
	if c.history, err = c.Floats("HIST", int64(entries), section.LeastHistory(t.Kind),
		math.MaxFloat64); err != nil {
		return err
	}
	held := 0
	if t.Cells.Held != nil {
		held = entries
	}
	if c.validation, err = c.Floats("VALI", int64(held), 0, math.MaxFloat64); err != nil {
		return err
	}
	if held == 0 {
		c.validation = nil // as in a fit that never stopped
	}
	if c.Watch.BestEpoch >= entries {
		return c.FailAt("STAT", 2, "the best epoch is not in the history")
	}
	if c.Watch.Last >= entries {
		return c.FailAt("STAT", 3, "the epoch of the last fall is not in the history")
	}
	return nil
}

// epochsAreFixed says why a fit cannot go on with another number of epochs from a state
// of the given restart and epoch. It returns "" where it can, because nothing that was computed up to
// that state depends on the number of epochs.
func (t *Task) epochsAreFixed(restart, epoch uint64) string {
	switch {
	case epoch > uint64(t.Epochs):
		return ", of which " + strconv.FormatUint(epoch, 10) + " are done"
	case t.EpochsFixed:
		return ", over which the learning rate falls to 0: only ScheduleConstant can have more"
	case restart > 0:
		return ", which restarts before have ended with"
	}
	return ""
}

func (Files) reopen(t *Task) (*Checkpoint, error) {
	if t.ResumeAt == nil {
		return nil, nil
	}
	c, err := t.open()
	if err != nil || len(c.best) == 0 {
		return c, err
	}
	if c.model, err = t.Models.Decode(c.best); err != nil {
		return nil, c.inside(err)
	}
	return c, nil
}

// inside turns the offset of an error in the best model, which counts from the start of section BEST,
// into one from the start of the checkpoint. An error that is not in the file is one of the section.
func (c *Checkpoint) inside(err error) error {
	if e, ok := err.(*section.Error); ok {
		return &section.Error{Offset: c.Offset("BEST") + e.Offset, Problem: "section BEST: " + e.Problem}
	}
	return err
}

func (Files) resume(a *Attempt, c *Checkpoint) error {
	j := a.Journal
	j.History, j.Validation, j.Watch, j.Done, j.Kept = c.history, c.validation, c.Watch, c.Epoch, j.Holds
	return a.Fit.Resume(a, c)
}

// Fill reads the arrays of a fit and its best state from section REAL, in their order, and returns the count
// integers of IDX0.
func (c *Checkpoint) Fill(a *Attempt, count int) ([]uint64, error) {
	if a.Journal.Holds {
		a.Room()
	}
	index, err := c.Words("IDX0", count)
	if err != nil {
		return nil, err
	}
	return index, c.File.Fill("REAL", a.Arrays())
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
