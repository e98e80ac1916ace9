//go:build linux || darwin

package bench

// This file measures the losses of FitQMF on the paper's synthetic problem by seconds of the processor, for
// qmf.py.

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/quantmf/quantmf"
)

// ways are the fits that are compared. "default" has the defaults but for ε, which is the paper's, and
// shrinkage, which is 0 because the data have no noise. "paper" has the paper's settings, with the penalty of
// the published code.
var ways = map[string][]quantmf.FitOption{
	"default": {quantmf.WithShrinkage(0)},
	"paper": {quantmf.WithStart(quantmf.StartUniform), quantmf.WithEnds(quantmf.EndsPinned),
		quantmf.WithSchedule(quantmf.ScheduleConstant),
		quantmf.WithLearningRate(0.01), quantmf.WithSquash(quantmf.SquashLogistic),
		quantmf.WithBatch(1 << 30), quantmf.WithPenalty(0.01)},
}

// TestToyLosses fits the matrix QUANTMF_TOY in the way QUANTMF_WAY, with the seed QUANTMF_SEED and
// once for each number of epochs in QUANTMF_EPOCHS. It writes the loss at which the published code
// ends, and a line for each fit: epochs, seconds that the processor worked, and the losses before the
// first epoch and after each. It uses only what earlier versions have as well, so that they can be timed.
func TestToyLosses(t *testing.T) {
	name := os.Getenv("QUANTMF_TOY")
	if name == "" {
		t.Skip("for qmf.py")
	}
	x, k, published := toy(t, name)
	way, has := ways[os.Getenv("QUANTMF_WAY")]
	seed, err := strconv.ParseUint(os.Getenv("QUANTMF_SEED"), 10, 64)
	if !has || err != nil {
		t.Fatalf("QUANTMF_WAY or QUANTMF_SEED: %v", err)
	}
	processor := func() float64 {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	fit := func(epochs int) string {
		opts := append([]quantmf.FitOption{quantmf.WithEpsilon(0.01), quantmf.WithLevels(8),
			quantmf.WithWorkers(1), quantmf.WithSeed(seed), quantmf.WithEpochs(epochs)}, way...)
		began := processor()
		m, err := quantmf.FitQMF(context.Background(), x, k, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("fit %d %.17g %s\n", epochs, processor()-began,
			strings.Trim(fmt.Sprint(m.History), "[]"))
	}
	fmt.Printf("published %.17g\n", published)
	fit(2) // the first call of a process takes longer and is not timed
	for _, field := range strings.Fields(os.Getenv("QUANTMF_EPOCHS")) {
		epochs, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Print(fit(epochs))
	}
}
