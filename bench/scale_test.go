//go:build linux || darwin

package bench

// A fit of QMF over sparse counts too many to be held in full, for docs/scale.md.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
)

// TestScale fits by FitQMF, k = 10, 8 levels, two epochs from its default start, a matrix of counts of the size
// QUANTMF_SCALE (20000x100000) a twentieth of which is not zero, and says how long start and epochs took, of
// how much of the processors, and the most memory that the process had.
func TestScale(t *testing.T) {
	var d, n int
	if _, err := fmt.Sscanf(os.Getenv("QUANTMF_SCALE"), "%dx%d", &d, &n); err != nil {
		t.Skip("a measurement: set QUANTMF_SCALE to ROWSxCOLUMNS")
	}
	x, cells := scaleCounts(t, d, n)
	runtime.GC()
	usage := func() (r syscall.Rusage) {
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	worked := func() float64 {
		r := usage()
		return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
	}
	fmt.Printf("%d × %d, %d cells not zero, %d MB before the fit\n", d, n, cells, usage().Maxrss/1024)
	began, last := time.Now(), worked()
	phase, epoch := quantmf.Phase(99), 0
	_, err := quantmf.FitQMF(context.Background(), x, 10, quantmf.WithEpochs(2), quantmf.WithProgress(func(p quantmf.Progress) error {
		if p.Phase != phase || p.Phase == quantmf.PhaseEpochs && p.Epoch > epoch {
			now := worked()
			fmt.Printf("%v %d: %.1f s by the clock since the start; %.1f s of processors since the line before, %.2f ns a cell\n",
				p.Phase, p.Epoch, time.Since(began).Seconds(), now-last, (now-last)/float64(d)/float64(n)*1e9)
			phase, epoch, last = p.Phase, p.Epoch, now
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%.1f s by the clock, most memory %d MB\n", time.Since(began).Seconds(), usage().Maxrss/1024)
}

// scaleCounts makes counts of features whose rates differ by orders of magnitude.
func scaleCounts(t *testing.T, d, n int) (*quantmf.Sparse, int) {
	r := rand.New(rand.NewPCG(1, 2))
	start, index, values := []int{0}, []uint32(nil), []float32(nil)
	for range d {
		share := min(0.5, 0.03*math.Exp(r.NormFloat64()))
		mean := 0.3 * math.Exp(1.5*r.NormFloat64())
		for j := 0; ; j++ {
			if j += int(math.Log(1-r.Float64()) / math.Log(1-share)); j >= n {
				break
			}
			index = append(index, uint32(j))
			values = append(values, float32(1+math.Floor(mean*r.ExpFloat64())))
		}
		start = append(start, len(index))
	}
	x, err := quantmf.NewSparse(n, start, index, values)
	if err != nil {
		t.Fatal(err)
	}
	return x, len(index)
}
