package quantmf

// Tests of the fits.

import (
	"bufio"
	"compress/gzip"
	"context"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// load reads a gzipped table with names in the first row and column.
func load(t testing.TB, path string) Mat {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skip(path + " is not here")
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]float64
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<24)
	for first := true; s.Scan(); first = false {
		if first {
			continue
		}
		var row []float64
		for _, field := range strings.Split(s.Text(), "\t")[1:] {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	m, err := MatOf(rows...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestToy(t *testing.T) {
	x := load(t, "../shared/data/toy/toy-std1.tsv.gz")
	nmf, err := FitNMF(context.Background(), x, 8, WithEpochs(1000))
	if err != nil {
		t.Fatal(err)
	}
	base := nmf.History[1000]
	for _, c := range []struct {
		epochs int
		most   float64
	}{{100, 0.12}, {300, 0.085}} {
		m, err := FitQMF(context.Background(), x, 8, WithEpsilon(0.01), WithLevels(8), WithEpochs(c.epochs))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("NMF %.3f; QMF %.3f before, %.3f after 1, %.4f after 10, %.4f after %d", base, m.History[0], m.History[1], m.History[10], m.History[c.epochs], c.epochs)
		if m.History[0] > base || m.History[1] > base {
			t.Errorf("%v, %v at the first epoch, NMF %v", m.History[0], m.History[1], base)
		}
		if got := m.History[c.epochs]; got > c.most {
			t.Errorf("%v after %d epochs, want at most %v", got, c.epochs, c.most)
		}
		if len(m.Warnings) > 0 {
			t.Errorf("%d warnings: %v", len(m.Warnings), m.Warnings[0])
		}
		if l, err := m.Loss(x); err != nil || l != m.History[c.epochs] {
			t.Errorf("Loss %v, %v; History ends at %v", l, err, m.History[c.epochs])
		}
	}
	_ = math.Pi
}
