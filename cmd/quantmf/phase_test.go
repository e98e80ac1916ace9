package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
)

// stopped is the time of a clock that the test sets.
func stopped(t *testing.T) *time.Time {
	at, before := now(), now
	now = func() time.Time { return at }
	t.Cleanup(func() { now = before })
	return &at
}

// Before the first epoch the phase is told, in every mode, but not of what takes a
// moment only.
func TestProgressPhase(t *testing.T) {
	for mode, want := range map[string]string{
		"line":  "\r\x1b[KQMF: choosing a start, 25 %\r\x1b[KQMF: choosing a start, 50 %\r\x1b[KQMF: first maps, 0 %",
		"plain": "QMF: choosing a start, 25 %\nQMF: first maps, 0 %\n",
		"none":  "",
		"json":  "",
	} {
		var w bytes.Buffer
		at := stopped(t)
		p := newProgress(mode, &w)
		p.begin("QMF")
		told := []quantmf.Progress{
			{Phase: quantmf.PhaseChoice, Epochs: 9}, {Phase: quantmf.PhaseChoice, Done: 0.25, Epochs: 9},
			{Phase: quantmf.PhaseChoice, Done: 0.5, Epochs: 9}, {Phase: quantmf.PhaseMaps, Epochs: 9},
		}
		for i, q := range told {
			if i > 0 { // the first comes at once
				*at = at.Add(time.Second)
			}
			if err := p.report(q); err != nil {
				t.Fatal(err)
			}
		}
		if mode != "json" {
			if w.String() != want {
				t.Errorf("%s: %q, want %q", mode, w.String(), want)
			}
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
		if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || first.Model != "QMF" || first.Phase != "choosing a start" || first.Done != 0.25 || first.Epoch != nil {
			t.Errorf("json: %v, %s", err, lines[0])
		}
	}
}
