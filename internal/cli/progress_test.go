package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// clocked is the progress of a model, what it writes, and the time of its clock, which the test sets.
func clocked(t *testing.T, mode, model string) (p *Progress, w *bytes.Buffer, at *time.Time) {
	now, before := Now(), Now
	Now = func() time.Time { return now }
	t.Cleanup(func() { Now = before })
	w = &bytes.Buffer{}
	p = NewProgress(mode, w)
	p.Begin(model)
	return p, w, &now
}

// Before the first epoch the phase is told, in every mode, but not of what takes a
// moment only.
func TestProgressPhase(t *testing.T) {
	for mode, want := range map[string]string{
		"line": "\r\x1b[KQMF: choosing a start, 25 %\r\x1b[KQMF: choosing a start, 50 %\r\x1b[KQMF: first " +
			"maps, 0 %",
		"plain": "QMF: choosing a start, 25 %\nQMF: first maps, 0 %\n",
		"none":  "",
		"json":  "",
	} {
		p, w, at := clocked(t, mode, "QMF")
		told := []quantmf.Progress{
			{Phase: quantmf.PhaseChoice, Epochs: 9}, {Phase: quantmf.PhaseChoice, Done: 0.25, Epochs: 9},
			{Phase: quantmf.PhaseChoice, Done: 0.5, Epochs: 9}, {Phase: quantmf.PhaseMaps, Epochs: 9},
		}
		for i, q := range told {
			if i > 0 { // the first comes at once
				*at = at.Add(time.Second)
			}
			OK(t, p.Report(q))
		}
		if mode != "json" {
			Equal(t, w.String(), want, "%s", mode)
			continue
		}
		lines := strings.Split(strings.TrimSpace(w.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("json: %q", lines)
		}
		var first struct {
			Model, Phase string
			Done         float64
			Epoch        *int
		}
		if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || first.Model != "QMF" ||
			first.Phase != "choosing a start" || first.Done != 0.25 || first.Epoch != nil {
			t.Errorf("json: %v, %s", err, lines[0])
		}
	}
}

// TestProgressLeft: a fit whose epochs all take a second has as many seconds left as epochs. The first, which
// has the start of the fit in it, does not count once there is a second.
func TestProgressLeft(t *testing.T) {
	p, w, at := clocked(t, "plain", "NMF")
	*at = at.Add(2 * time.Second) // the start takes as long as an epoch
	want := ""
	for e := 1; e <= 20; e++ {
		if e > 1 {
			*at = at.Add(time.Second)
		}
		OK(t, p.Report(quantmf.Progress{Epoch: e, Epochs: 20, Rows: 6, Loss: 1.5}))
		if e%2 == 0 {
			want += fmt.Sprintf("NMF: epoch %d of 20, loss 1.5, 6 rows/s, %s left\n", e,
				Duration(float64(20-e)))
		}
	}
	if got := w.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestProgressUnasked: in a file or a log there is a line every ten seconds, of the start and of epochs.
func TestProgressUnasked(t *testing.T) {
	p, w, at := clocked(t, "auto", "QMF")
	for second := 1; second <= 45; second++ {
		*at = at.Add(time.Second)
		q := quantmf.Progress{Phase: quantmf.PhaseChoice, Done: float64(second) / 20}
		if second > 20 {
			q = quantmf.Progress{Phase: quantmf.PhaseEpochs, Epoch: second - 20, Epochs: 25, Rows: 6, Loss: 1}
		}
		OK(t, p.Report(q))
	}
	want := "QMF: choosing a start, 50 %\nQMF: choosing a start, 100 %\n" +
		"QMF: epoch 10 of 25, loss 1, 6 rows/s, 15 s left\nQMF: epoch 20 of 25, loss 1, 6 rows/s, 5.0 " +
		"s left\n"
	if w.String() != want {
		t.Errorf("%q, want %q", w.String(), want)
	}
}

// TestProgressCount: of pieces of work a line is shown at every tenth, with the time that the rest takes if
// it goes on so.
func TestProgressCount(t *testing.T) {
	for mode, want := range map[string]func(done int) string{
		"plain": func(done int) string {
			if done == 0 || done%2 > 0 {
				return ""
			}
			return fmt.Sprintf("rank: %d of 20 fits, %s left\n", done, Duration(float64(20-done)))
		},
		"auto": func(done int) string { // every ten seconds
			if done != 10 && done != 20 {
				return ""
			}
			return fmt.Sprintf("rank: %d of 20 fits, %s left\n", done, Duration(float64(20-done)))
		},
		"line": func(done int) string {
			if done == 0 {
				return "\r\x1b[Krank: 0 of 20 fits"
			}
			return fmt.Sprintf("\r\x1b[Krank: %d of 20 fits, %s left", done, Duration(float64(20-done)))
		},
		"json": func(done int) string {
			return fmt.Sprintf(`{"model":"rank","phase":"fits","done":%v}`+"\n", float64(done)/20)
		},
		"none": func(int) string { return "" },
	} {
		p, w, at := clocked(t, mode, "rank")
		for done := range 21 {
			if done > 0 {
				*at = at.Add(time.Second)
			}
			w.Reset()
			OK(t, p.Count(done, 20, "fits"))
			Equal(t, w.String(), want(done), "%s", mode)
		}
		// Lines that would follow each other at once are left out, but for the last.
		w.Reset()
		for done := range 21 {
			OK(t, p.Count(done, 20, "fits"))
		}
		if n := strings.Count(w.String(), " fits"); mode == "plain" && n != 1 || mode == "auto" && n != 0 {
			t.Errorf("%s: %q", mode, w.String())
		}
	}
}

// A line on a terminal is rewritten, at most ten times a second, and wiped.
func TestProgressLine(t *testing.T) {
	p, w, at := clocked(t, "line", "QMF")
	for e := 1; e <= 1000; e++ {
		*at = at.Add(time.Millisecond)
		OK(t, p.Report(quantmf.Progress{Epoch: e, Epochs: 1000, Rows: 5, Loss: 1}))
	}
	p.End()
	got := w.String()
	if n := strings.Count(got, "\r"); n != 10+1 || strings.Contains(got, "\n") ||
		!strings.HasSuffix(got, "\r\x1b[K") {
		t.Errorf("%d rewritings: ...%q", n, got[max(0, len(got)-200):])
	}
}

// TestTimeOfFirstEpoch: the time that is left after the first epoch does not count what came before it.
func TestTimeOfFirstEpoch(t *testing.T) {
	p, w, at := clocked(t, "plain", "NMF")
	for _, q := range []quantmf.Progress{{Phase: quantmf.PhaseFactors},
		{Phase: quantmf.PhaseFactors, Done: 1},
		{Phase: quantmf.PhaseEpochs, Epoch: 1, Epochs: 10, Rows: 6, Loss: 1}} {
		if q.Epoch > 0 {
			*at = at.Add(2 * time.Second)
		} else {
			*at = at.Add(time.Minute)
		}
		OK(t, p.Report(q))
	}
	if got := w.String(); !strings.HasSuffix(got, "NMF: epoch 1 of 10, loss 1, 3 rows/s, 18 s left\n") {
		t.Error(got)
	}
}

func TestDuration(t *testing.T) {
	for s, want := range map[float64]string{0.04: "0.0 s", 9.94: "9.9 s", 59.4: "59 s", 59.6: "1 min 0 s",
		3599.4: "59 min 59 s", 3599.6: "1 h 0 min", 7384: "2 h 3 min"} {
		Equal(t, Duration(s), want, "%v", s)
	}
}
