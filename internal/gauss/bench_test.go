package gauss

// What the steps of U and V cost in an epoch.

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// BenchmarkSteps makes the steps of U and V of batches of 32 rows, in ns a cell, the least of all batches:
// rows is StepRow and Put, columns StepTile.
func BenchmarkSteps(b *testing.B) {
	const rows = 32
	for _, k := range []int{5, 10, 20} {
		for _, n := range []int{256, 20000} {
			src := random.Split(1, k)
			v, all := problem(&src, k, n, rows)
			np := kernel.Pad(n)
			s := NewSteps(pool.New(1, 1), 10*rows, k, np, rows)
			s.ToTiles(v, 0, np)
			put := func(slot int, r rowOf) {
				copy(s.Curvature(slot), r.a)
				s.StepRow(0, slot, r.u, r.wbar, 0)
				s.Put(slot, r.u, r.w, r.wbar, 1)
			}
			for slot, r := range all {
				put(slot, r)
			}
			steps := func(what string, step func()) {
				b.Run(fmt.Sprintf("%s/k=%d/n=%d", what, k, n), func(b *testing.B) {
					least := time.Duration(math.MaxInt64)
					for b.Loop() {
						began := time.Now()
						step()
						least = min(least, time.Since(began))
					}
					b.ReportMetric(float64(least.Nanoseconds())/float64(rows*n), "ns/cell")
				})
			}
			steps("rows", func() {
				for slot, r := range all {
					put(slot, r)
				}
			})
			count := 0
			steps("columns", func() {
				count++
				s.Mix(rows, count)
				for t := range s.Tiles() {
					s.StepTile(0, t, v, 0)
					from, to := s.Tile(t)
					s.ToTiles(v, from, to)
				}
			})
		}
	}
}
