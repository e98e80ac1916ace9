package qmf

// Tests that fits draw their arrays from the arena of their pool, which counts them.

import (
	"context"
	"math"
	"runtime"
	"testing"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/projection"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/transport"
)

// TestCounted: what the constructors of fits make, the arena has counted, and one that only counts says the
// same.
func TestCounted(t *testing.T) {
	Slow(t)
	const d, n, k = 8192, 100, 30
	r := random.Split(1, 1)
	x := drawn(d, n, func() float64 { return math.Exp(Normal(&r)) })
	for name, change := range map[string]func(c *Settings){
		"Gauss–Newton": func(c *Settings) {}, "one batch": func(c *Settings) { c.BatchRows = d },
		"Adam": func(c *Settings) { c.Squash = transport.None }, "one batch by Adam": func(c *Settings) {
			c.Squash, c.BatchRows = transport.None, d
		},
		"the paper": func(c *Settings) { c.Start = StartUniform },
		"QMFQ":      func(c *Settings) { c.BatchRows, c.Projection = d, by(projection.KL, 5) },
	} {
		c := Defaults()
		change(&c)
		cells := Must(cellsOf(x, &c))(t)
		construct := func(p *pool.Pool, cells *fit.Cells) any {
			run := fit.Run{Pool: p, Seed: 1, Progress: fit.Silent(context.Background())}
			if name == "QMFQ" {
				return newQMFQFit(cells, k, &c, run)
			}
			return newQMFFit(cells, k, &c, run)
		}
		dry := pool.Idle(2, d)
		construct(dry, &fit.Cells{D: d, N: n})
		// Sizes of small arrays are rounded up by more than their headers and the structures take. What else
		// runs in the program may allocate, too: the least of three counts.
		said, took := 0.0, math.Inf(1)
		for range 3 {
			made := pool.New(2, d)
			made.Memory = pool.NewArena()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f := construct(made, cells)
			runtime.ReadMemStats(&after)
			made.Close()
			said, took = made.Memory.Most(), min(took, float64(after.TotalAlloc-before.TotalAlloc))
			runtime.KeepAlive(f)
		}
		if took > said || took < said-1<<15 || dry.Memory.Most() != said {
			t.Errorf("%s: %.0f bytes, counted %.0f, by a dry arena %.0f", name, took, said, dry.Memory.Most())
		}
	}
}
