package quantmf_test

// This file tests that fits have the same bits on every platform: testdata/golden.txt is made on amd64.

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"testing"

	. "github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// TestGolden: of each way to fit, and of what the ways' small matrices do not lead to. Their numbers are
// whole, or powers of two times whole numbers, so that nothing but the package can differ between platforms.
// They are few because an emulator of a foreign processor takes minutes for a second of fits.
func TestGolden(t *testing.T) {
	const path = "testdata/golden.txt"
	got := ""
	for _, w := range append(ways(35, 29), []way{ // more rows than a batch has
		{"QMF, units", MethodQMF, units(35, 29), KL, []FitOption{WithEpochs(3)}},
		{"BQMF, whole blocks", MethodBQMF, units(66, 64), KL, []FitOption{WithEpochs(5)}},
		{"QMF, many samples, batches", MethodQMF, many(5, 4100), KL, []FitOption{WithBatch(2), WithEpochs(2),
			WithStart(StartNMF), WithShrinkage(0)}},
		{"QMF, many samples, one batch", MethodQMF, many(5, 4100), KL, []FitOption{WithBatch(5),
			WithEpochs(2), WithStart(StartNMF), WithShrinkage(0), WithLevels(5)}},
		{"NMF, from some samples", MethodNMF, many(4, 8200), KL, []FitOption{WithEpochs(2)}},
	}...) {
		m, h := w.must(t, w.x), fnv.New64a()
		h.Write(FileOf(t, m))
		if w.says("corrections") && !Corrected(m.(*BQMF)) {
			t.Error("the model has no corrections")
		}
		few := w.x
		few.Cols = 11 // placing all would take an emulator too long
		v := Answer(t, m.Transform, few)
		score := Answer(t, m.Score, few)
		parts := []Mat{m.Reconstruct(), v, {Data: []float64{score}}}
		if b, is := m.(*BQMF); is {
			lo, hi, err := b.Interval(0.8)
			OK(t, err)
			parts = append(parts, b.Median(), b.Deviation(), lo, hi, b.Sample(1))
		}
		for _, p := range parts {
			if NotFinite(p.Data) >= 0 {
				t.Errorf("%s: %v", w.name, p)
			}
			OK(t, binary.Write(h, binary.LittleEndian, p.Data))
		}
		got += fmt.Sprintf("%016x %s\n", h.Sum64(), w.name)
	}
	if *update {
		OK(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := Must(os.ReadFile(path))(t)
	if got != string(want) {
		t.Errorf("got %swant %s", got, want)
	}
}

// units has rows of all sizes, a row of zeros and a constant one.
func units(d, n int) Mat {
	return with(NewMat(d, n), func(i, j int, _ float64) float64 {
		switch i {
		case 3:
			return 0
		case 4:
			return 7
		}
		return math.Ldexp(float64((1+i*37+j*j*11+i*j*5)%1000), (i*j)%6-i%9)
	})
}

// many has rows of three components, some of them of counts, most of which are 0.
func many(d, n int) Mat {
	return with(NewMat(d, n), func(i, j int, _ float64) float64 {
		v := 64 + 8*((i*7+j*3+i*j)%16)
		for c := range 3 {
			v += ((i*5 + c*3) % 49) * ((j*(c+2) + c) % 49)
		}
		if i < d/2 && (5*i+j)%4 > 0 {
			v = 0
		}
		return math.Ldexp(float64(v), i%5-4)
	})
}

// kin is of such numbers: rows in pairs of common noise, which predict each other, and every
// third row bent along the samples, so that it has a prediction from samples that are alike.
func kin(d, n int) Mat {
	r := random.Split(10, 10)
	at, x, common := make([]int, n), NewMat(d, n), make([]int, n)
	for j := range at {
		at[j] = r.IntN(64)
	}
	for i := range d {
		slope, middle := 1+r.IntN(5), 16+r.IntN(32)
		for j, a := range at {
			if i%2 == 0 {
				common[j] = r.IntN(256)
			}
			v := 200 + 8*slope*a + common[j] + r.IntN(64)
			if i%3 == 0 {
				v = 200 + 2*(a-middle)*(a-middle) + r.IntN(64)
			}
			x.Set(i, j, math.Ldexp(float64(v), i%5-4))
			if (i*n+j)%7 == 3 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	return x
}
