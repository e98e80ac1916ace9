//go:build linux || darwin

package bench

// This file fits a QMF to sparse counts whose matrix in full would be too large for memory, for
// docs/scale.md.

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
)

// usage returns the resources that this process has used.
func usage(t *testing.T) (r syscall.Rusage) {
	t.Helper()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// worked returns the processor time that this process has used, in seconds.
func worked(t *testing.T) float64 {
	t.Helper()
	r := usage(t)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// TestScale fits a QMF with k = 10 and 8 levels in two epochs to a matrix of counts of the size QUANTMF_SCALE
// (such as 20000x100000), a twentieth of which is not zero. It starts by default, and with
// QUANTMF_SCALE_START=given from given factors and without a choice of shrinkage. It prints the time of the
// start and of each epoch, by the clock and by the processors, and the most memory that the process had.
func TestScale(t *testing.T) {
	var d, n int
	if _, err := fmt.Sscanf(os.Getenv("QUANTMF_SCALE"), "%dx%d", &d, &n); err != nil {
		t.Skip("a measurement: set QUANTMF_SCALE to ROWSxCOLUMNS")
	}
	x, err := Counts(d, n, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	fmt.Printf("%d × %d, %d cells not zero, %d MB before the fit\n", d, n, x.Listed(), usage(t).Maxrss/1024)
	began, last := time.Now(), worked(t)
	phase, epoch := quantmf.Phase(99), 0
	options := []quantmf.FitOption{quantmf.WithEpochs(2)}
	if os.Getenv("QUANTMF_SCALE_START") == "given" {
		u, v := quantmf.NewMat(d, 10), quantmf.NewMat(10, n)
		for _, m := range []quantmf.Mat{u, v} {
			for i := range m.Data {
				m.Data[i] = 0.5 + float64(i*7%11)/11
			}
		}
		options = append(options, quantmf.WithInit(u, v), quantmf.WithShrinkage(0))
	}
	_, err = quantmf.FitQMF(context.Background(), x, 10,
		append(options, quantmf.WithProgress(func(p quantmf.Progress) error {
			if p.Phase != phase || p.Phase == quantmf.PhaseEpochs && p.Epoch > epoch {
				now := worked(t)
				fmt.Printf("%v %d: %.1f s by the clock since the start; %.1f s of processors since the line "+
					"before, %.2f ns a cell\n",
					p.Phase, p.Epoch, time.Since(began).Seconds(), now-last,
					(now-last)/float64(d)/float64(n)*1e9)
				phase, epoch, last = p.Phase, p.Epoch, now
			}
			return nil
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%.1f s by the clock, most memory %d MB\n", time.Since(began).Seconds(), usage(t).Maxrss/1024)
}
