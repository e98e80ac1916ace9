package bench

// The losses of FitNMF by seconds, for nmf.py.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
)

// TestLosses reads a problem from the file QUANTMF_NMF: d, n, k, beta, the number of epochs, then
// x, u and v by rows, doubles all, and writes a line for every epoch: seconds since the call,
// and the loss. QUANTMF_UPDATES=multiplicative asks for those.
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
	d, n, k, beta, epochs := int(next()), int(next()), int(next()), next(), int(next())
	matrix := func(rows, cols int) quantmf.Mat {
		m := quantmf.NewMat(rows, cols)
		for i := range m.Data {
			m.Data[i] = next()
		}
		return m
	}
	x, u, v := matrix(d, n), matrix(d, k), matrix(k, n)
	updates := quantmf.UpdatesNewton
	if os.Getenv("QUANTMF_UPDATES") == "multiplicative" {
		updates = quantmf.UpdatesMultiplicative
	}
	fit := func(epochs int) string {
		var b strings.Builder
		begin := time.Now()
		_, err := quantmf.FitNMF(context.Background(), x, k, quantmf.WithLoss(quantmf.Beta(beta)), quantmf.WithInit(u, v), quantmf.WithEpochs(epochs),
			quantmf.WithUpdates(updates), quantmf.WithWorkers(1), quantmf.WithProgress(func(p quantmf.Progress) error {
				if p.Phase != quantmf.PhaseEpochs {
					return nil
				}
				fmt.Fprintf(&b, "loss %.17g %.17g\n", time.Since(begin).Seconds(), p.Loss)
				return nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	fit(min(epochs, 5))
	fmt.Print(fit(epochs))
}
