// Package samebits holds fits that are made in many ways, all of which must come to the same bits: over a
// matrix in full, in sparse rows, in single precision or in its file, by the package and by the commands, on
// one machine and over any number of shards, by schedulers and by Beam. The tests of each of these ways hold
// their models against the hashes in hashes.txt.
package samebits

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/random"
)

// Fit is one of the fits.
type Fit struct {
	Name   string
	Method quantmf.Method // MethodNMF or MethodQMF
	X      quantmf.Mat    // counts, which are exact in single precision, some NaN under WithMissingValues
	Rank   int
	// Options are those of a fit over shards, and OneMachine what a fit on one machine needs beside them.
	Options, OneMachine []quantmf.FitOption
	// Flags are the same for commands that fit over shards, and OneMachineFlags for "quantmf fit".
	Flags, OneMachineFlags []string
}

// Fits returns the fits. Their rows sum in eight runs or more, so that there may be up to eight shards; some
// of their rows are mostly zero.
func Fits() []Fit {
	nmf := Fit{Name: "nmf", Method: quantmf.MethodNMF, X: counts(1600, 0), Rank: 10,
		Options:         []quantmf.FitOption{quantmf.WithEpochs(6)},
		OneMachine:      []quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)},
		Flags:           []string{"-method", "nmf", "-k", "10", "-epochs", "6"},
		OneMachineFlags: []string{"-updates", "multiplicative"}}
	qmf := Fit{Name: "qmf", Method: quantmf.MethodQMF, X: counts(300, 0), Rank: 3,
		Options: []quantmf.FitOption{quantmf.WithEpochs(2), quantmf.WithLevels(4),
			quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(1)},
		OneMachine: []quantmf.FitOption{quantmf.WithBatch(1000)},
		Flags: []string{"-method", "qmf", "-k", "3", "-epochs", "2", "-m", "4", "-start", "scores",
			"-shrinkage", "1"}, OneMachineFlags: []string{"-batch", "1000"}}
	fits := []Fit{nmf, qmf}
	for _, f := range []Fit{nmf, qmf} {
		f.Name += " missing"
		f.X = counts(f.X.Cols, 0.1)
		f.Options = append(slices.Clip(f.Options), quantmf.WithMissingValues())
		f.Flags = append(slices.Clip(f.Flags), "-missing")
		fits = append(fits, f)
	}
	newton := nmf
	newton.Name, newton.OneMachine, newton.OneMachineFlags = "newton", nil, nil
	newton.Options = append(slices.Clip(nmf.Options), quantmf.WithUpdates(quantmf.UpdatesNewton))
	newton.Flags = append(slices.Clip(nmf.Flags), "-updates", "newton")
	return append(fits, newton)
}

// counts are 144 × n, of which a share is missing: three quarters of the rows have few that are not zero.
func counts(n int, missing float64) quantmf.Mat {
	src := random.Split(19, 1)
	x := quantmf.NewMat(144, n)
	for i := range x.Rows {
		share := 0.08
		if i%64 < 16 {
			share = 0.7
		}
		for j := range x.Cols {
			if src.Float64() < share || j%x.Rows == i {
				x.Set(i, j, math.Floor(1+float64(3/(0.1+src.Float64())*float64(1+(i+j)%3))))
			}
			if src.Float64() < missing {
				x.Set(i, j, math.NaN())
			}
		}
	}
	return x
}

//go:embed hashes.txt
var hashes string

// Check reports a model of the fit, made in a way that how tells, whose bits are not those that all models of
// the fit have.
func (f Fit) Check(t testing.TB, how string, m quantmf.Model) {
	t.Helper()
	data, err := m.MarshalBinary()
	if err != nil {
		t.Errorf("%s, %s: %v", f.Name, how, err)
		return
	}
	sum := sha256.Sum256(data)
	if line := f.Name + ": " + hex.EncodeToString(sum[:]); !strings.Contains(hashes, line+"\n") {
		t.Errorf("%s: the model is %s, which is not in internal/samebits/hashes.txt", how, line)
	}
}

// CheckFile is Check of a model file, which may have more in it than the model.
func (f Fit) CheckFile(t testing.TB, how string, data []byte) {
	t.Helper()
	m, err := quantmf.UnmarshalModel(data)
	if err != nil {
		t.Errorf("%s, %s: %v", f.Name, how, err)
		return
	}
	f.Check(t, how, m)
}
