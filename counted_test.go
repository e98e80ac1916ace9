package quantmf

// Tests that fits draw their arrays from the arena of their pool, which counts them.

import (
	"context"
	"runtime"
	"testing"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/pool"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestCounted: what the constructors of fits make, the arena has counted, and one that only counts says the
// same.
func TestCounted(t *testing.T) {
	Slow(t)
	const d, n, k = 8192, 100, 30
	x := Lognormal(d, n)
	for name, change := range map[string]func(c *config){
		"Gauss–Newton": func(c *config) {}, "one batch": func(c *config) { c.batchRows = d },
		"Adam": func(c *config) { c.squash = SquashNone }, "one batch by Adam": func(c *config) {
			c.squash, c.batchRows = SquashNone, d
		},
		"the paper": func(c *config) { c.start = StartUniform },
		"QMFQ":      func(c *config) { c.settleQMFQ() },
	} {
		c := qmfDefaults()
		change(&c)
		cells := Must(newCells(x, &c.settings))(t)
		construct := func(p *pool.Pool, cells *fit.Cells) any {
			run := fit.Run{Pool: p, Seed: 1, Progress: fit.Silent(context.Background())}
			if name == "QMFQ" {
				return newQMFQFit(cells, k, &c.settings, run)
			}
			return newQMFFit(cells, k, &c.settings, run)
		}
		made, dry := pool.New(2, d), pool.Idle(2, d)
		made.Memory = pool.NewArena()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f := construct(made, cells)
		runtime.ReadMemStats(&after)
		made.Close()
		construct(dry, &fit.Cells{D: d, N: n})
		// Sizes of small arrays are rounded up by more than their headers and the structures take.
		took, said := float64(after.TotalAlloc-before.TotalAlloc), made.Memory.Most()
		if took > said || took < said-1<<15 || dry.Memory.Most() != said {
			t.Errorf("%s: %.0f bytes, counted %.0f, by a dry arena %.0f", name, took, said, dry.Memory.Most())
		}
		runtime.KeepAlive(f)
	}
}
