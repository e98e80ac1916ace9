package cli

// This file holds progress: what a running command tells on standard error.

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// Now is the clock of progress. Tests stop it, because the lines that are shown depend on the time.
var Now = time.Now

// since is the time from then to now.
func since(then time.Time) time.Duration { return Now().Sub(then) }

// Progress tells of one fit after the other.
type Progress struct {
	w    io.Writer
	mode string // line, plain, log, json or none: NewProgress

	Model     string           // that is fitted, or the command
	phase     quantmf.Phase    // the phase before the epochs of which a line was last shown
	start     time.Time        // when the first epoch was reported
	since     int              // the epochs done at start
	told      time.Time        // of the last report, of the start or of an epoch
	shown     time.Time        // when a line was last shown
	Last      quantmf.Progress // the newest report of an epoch
	lineShown bool
}

// NewProgress tells in a mode: auto, line, plain, json or none. auto is line on a terminal and log elsewhere:
// plain lines, and few of them, since nobody asked.
func NewProgress(mode string, w io.Writer) *Progress {
	if mode == "auto" {
		mode = "log"
		if isTerminal(w) {
			mode = "line"
		}
	}
	return &Progress{w: w, mode: mode}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// logPause is the time between two lines of the mode log.
const logPause = 10 * time.Second

// Begin announces the fit that the next reports are of.
func (p *Progress) Begin(model string) {
	p.Model, p.start, p.since, p.Last = model, Now(), 0, quantmf.Progress{}
	p.shown, p.phase = p.start, quantmf.PhaseEpochs
}

// phases are the phases of a fit before its epochs, in words.
var phases = map[quantmf.Phase]string{
	quantmf.PhaseChoice:  "choosing a start",
	quantmf.PhaseFactors: "first factors",
	quantmf.PhaseMaps:    "first maps",
	quantmf.PhaseQMF:     "the QMF to start from",
	quantmf.PhaseEpochs:  "the first epoch",
}

// record is a line of -progress json. Figures that do not exist before the first epoch are left out.
type record struct {
	Model   string   `json:"model,omitempty"` // none while the matrix is read
	Phase   string   `json:"phase"`
	Done    float64  `json:"done"` // of the phase, from 0 to 1
	Epochs  int      `json:"epochs,omitempty"`
	Epoch   int      `json:"epoch,omitempty"`
	Loss    *float64 `json:"loss,omitempty"`
	Rate    float64  `json:"rows_per_second,omitempty"`
	Seconds *float64 `json:"seconds_left,omitempty"`
}

// tell writes a line of -progress json.
func (p *Progress) tell(r record) error {
	r.Model = p.Model
	return json.NewEncoder(p.w).Encode(r)
}

// named is a text with the model in front of it, if there is one yet.
func (p *Progress) named(text string) string {
	if p.Model == "" {
		return text
	}
	return p.Model + ": " + text
}

// starting reports a phase before the epochs, unless the start takes only a moment.
func (p *Progress) starting(q quantmf.Progress) error {
	p.told = Now()
	pause := 100 * time.Millisecond
	switch {
	case p.mode == "log":
		pause = logPause
	case p.mode == "plain": // once a phase
		if pause *= 2; q.Phase == p.phase {
			return nil
		}
	}
	if p.mode == "none" || since(p.shown) < pause {
		return nil
	}
	p.shown, p.phase = Now(), q.Phase
	if p.mode == "json" {
		return p.tell(record{Phase: phases[q.Phase], Done: q.Done, Epochs: q.Epochs})
	}
	return p.show(fmt.Sprintf("%s: %s, %.0f %%", p.Model, phases[q.Phase], 100*q.Done))
}

// show writes a line; on a terminal it replaces the line before. The text may hold names of files.
func (p *Progress) show(text string) error {
	text = table.Shown(text)
	if p.mode != "line" {
		_, err := fmt.Fprintln(p.w, text)
		return err
	}
	p.lineShown = true
	_, err := fmt.Fprint(p.w, "\r\x1b[K"+text)
	return err
}

// At reports a part of the work that has no parts itself: on a terminal, and where -progress asks for lines
// or objects.
func (p *Progress) At(what string) error {
	switch {
	case p.mode == "json":
		return p.tell(record{Phase: what})
	case p.mode == "line" || p.mode == "plain":
		return p.show(p.named(what))
	}
	return nil
}

// Remark tells something that a waiting user may want to know; "" is nothing.
func (p *Progress) Remark(text string) error {
	switch {
	case text == "" || p.mode == "none":
		return nil
	case p.mode == "json":
		return p.tell(record{Phase: text})
	}
	_, err := fmt.Fprintln(p.w, table.Shown(p.named(text)))
	return err
}

// Count reports how many of several pieces of work are done.
func (p *Progress) Count(done, of int, what string) error {
	share := float64(done) / float64(of)
	switch {
	case p.mode == "json":
		return p.tell(record{Phase: what, Done: share})
	case p.mode == "log" && since(p.shown) < logPause:
		return nil
	case p.mode == "none" || p.mode == "plain" &&
		(done == 0 || done < of && (done*10/of == (done-1)*10/of || since(p.shown) < 200*time.Millisecond)):
		return nil
	}
	p.shown = Now()
	text := fmt.Sprintf("%s: %d of %d %s", p.Model, done, of, what)
	if done > 0 {
		text += fmt.Sprintf(", %s left", Duration(since(p.start).Seconds()*(1-share)/share))
	}
	return p.show(text)
}

// Measure names the figure that falls during a fit: the loss, or for a BQMF the negative lower bound of the
// evidence, in nats a value.
func (p *Progress) Measure() string {
	if strings.HasPrefix(p.Model, "BQMF") {
		return "bound"
	}
	return "loss"
}

// Report is the fit's progress function.
func (p *Progress) Report(q quantmf.Progress) error {
	if q.Epoch == 0 {
		return p.starting(q)
	}
	if q.Epoch <= p.Last.Epoch { // the next restart has begun
		p.Last, p.start = quantmf.Progress{}, p.told
	}
	first := p.Last.Epoch == 0
	if first {
		if p.told.After(p.start) { // what was told of the start is no part of the first epoch
			p.start = p.told
		}
		p.since = q.Epoch - 1 // above 0 if the fit goes on from a checkpoint
	}
	elapsed := max(since(p.start).Seconds(), 1e-9)
	rate := float64(q.Epoch-p.since) * float64(q.Rows) / elapsed
	left := float64(q.Epochs-q.Epoch) * float64(q.Rows) / rate
	p.told = Now()
	if first { // the first epoch may include some of the start of the fit
		p.start, p.since = Now(), q.Epoch
	}
	before := p.Last
	p.Last = q
	switch {
	case p.mode == "json":
		return p.tell(record{Phase: "epochs", Done: q.Done, Epochs: q.Epochs, Epoch: q.Epoch, Loss: &q.Loss,
			Rate: rate, Seconds: &left})
	case p.mode == "log":
		if since(p.shown) < logPause {
			return nil
		}
	case p.mode == "plain":
		// A line every tenth of the epochs, but not within a moment of the last.
		if q.Epoch < q.Epochs &&
			(q.Epoch*10/q.Epochs == before.Epoch*10/q.Epochs || since(p.shown) < 200*time.Millisecond) {
			return nil
		}
	case p.mode == "line":
		if q.Epoch < q.Epochs && since(p.shown) < 100*time.Millisecond {
			return nil
		}
	default:
		return nil
	}
	p.shown = Now()
	text := fmt.Sprintf("%s: epoch %d of %d, %s %.4g, %.0f rows/s, %s left", p.Model, q.Epoch, q.Epochs,
		p.Measure(), q.Loss, rate, Duration(left))
	return p.show(text)
}

// End clears the line of the terminal for the text that follows.
func (p *Progress) End() {
	if p.lineShown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.lineShown = false
	}
}

// Duration writes a time for people.
func Duration(seconds float64) string {
	switch s := int(seconds + 0.5); {
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	default:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	}
}

// Summary writes text in the form of the progress: as it is, or as a JSON object.
func (p *Progress) Summary(text string) error {
	if p.mode == "json" {
		return json.NewEncoder(p.w).Encode(map[string]string{"summary": text})
	}
	_, err := io.WriteString(p.w, text)
	return err
}
