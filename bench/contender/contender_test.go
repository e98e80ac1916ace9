package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// Each kind of fit that the harness asks for has an epoch's time and loss after each epoch.
func TestFits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	var raw []byte
	for i := range 20 * 30 {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(1+float64(i%7)))
	}
	if err := os.WriteFile(file, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"D": 20, "N": 30, "X": "FILE", "Method": "NMF"}`,
		`{"D": 20, "N": 30, "X": "FILE", "Method": "NMF", "Beta": 2}`,
		`{"D": 20, "N": 30, "X": "FILE", "Method": "QMF", "Levels": 4, "Settings": "free"}`,
		`{"D": 20, "N": 30, "X": "FILE", "Method": "QMF", "Settings": "paper"}`,
		`{"D": 60, "N": 200, "Density": 0.1, "Method": "NMF", "Updates": "multiplicative"}`,
		`{"D": 60, "N": 200, "Density": 0.1, "Holder": "positive", "Method": "NMF"}`,
	} {
		f := fit{K: 2, Epochs: 6}
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		if f.X != "" {
			f.X = file
		}
		c, err := f.run()
		if err != nil || len(c.Losses) != 6 || !(c.Losses[5] > 0) || c.Total < c.Seconds[5] {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}

// An epoch over shards has a longest step, a reduce and bytes.
func TestShards(t *testing.T) {
	for _, f := range []fit{{Method: "NMF"}, {Method: "NMF", Updates: "multiplicative"},
		{Method: "QMF", Levels: 4}} {
		f.D, f.N, f.K, f.Density, f.Epochs, f.Shards = 60, 200, 2, 0.1, 8, 2
		c, err := f.run()
		if err != nil || c.Shards == nil || c.Shards.Moved == 0 {
			t.Errorf("%+v: %+v, %v", f, c, err)
		}
	}
}

// Rows are answered, wrong ones by the kind of their error, and timed.
func TestRows(t *testing.T) {
	eps := 0.1
	rows := []row{{X: []float64{1, 2, 4}, Q: []float64{0, 1, 2}, B: []float64{1, 1, 1}, Eps: &eps,
		ZT: []float64{1, 0, 0}}}
	a := answers(append(rows, row{}))
	if a[0].Error != "" || len(a[0].T) != 3 || a[0].GradT == nil || a[1].Error == "" {
		t.Errorf("%+v", a)
	}
	if seconds, err := timeRows(rows, 1e-3); err != nil || !(seconds > 0) {
		t.Errorf("%v, %v", seconds, err)
	}
}
