//go:build linux || darwin

package bench

// This file measures the losses of FitNMF by seconds of the processor, for nmf.py.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestLosses reads a problem from the file QUANTMF_NMF, all of whose numbers are doubles: d, n, k, beta,
// then x, u and v by rows. It writes a line for each of QUANTMF_EPOCHS epochs: the seconds that the
// processor has worked since the call, and the loss.
func TestLosses(t *testing.T) {
	name := os.Getenv("QUANTMF_NMF")
	if name == "" {
		t.Skip("for nmf.py")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	next := func() float64 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(raw))
		raw = raw[8:]
		return v
	}
	d, n, k, beta := int(next()), int(next()), int(next()), next()
	epochs, err := strconv.Atoi(os.Getenv("QUANTMF_EPOCHS"))
	if err != nil {
		t.Fatal(err)
	}
	matrix := func(rows, cols int) quantmf.Mat {
		m := quantmf.NewMat(rows, cols)
		for i := range m.Data {
			m.Data[i] = next()
		}
		return m
	}
	x, u, v := matrix(d, n), matrix(d, k), matrix(k, n)
	worked := func() float64 {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	fit := func(epochs int) string {
		var b strings.Builder
		begin := worked()
		_, err := quantmf.FitNMF(context.Background(), x, k, quantmf.WithLoss(quantmf.Beta(beta)),
			quantmf.WithInit(u, v), quantmf.WithEpochs(epochs),
			quantmf.WithWorkers(1), quantmf.WithProgress(func(p quantmf.Progress) error {
				if p.Phase != quantmf.PhaseEpochs {
					return nil
				}
				fmt.Fprintf(&b, "loss %.17g %.17g\n", worked()-begin, p.Loss)
				return nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	// The other contenders have made calls in their process before, so their memory has been touched. The
	// same is done here: the first use of a page of memory takes as long as 30,000 products.
	for begin := worked(); worked()-begin < 0.1; {
		fit(min(epochs, 20))
	}
	fmt.Print(fit(epochs))
}
