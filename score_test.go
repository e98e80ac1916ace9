package quantmf

// This file tests what Scores cost beside Score.

import (
	"math"
	"testing"
	"time"

	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestScoresCost: Scores of 50 new samples take at most 1.5 times the processor time of one Score of them,
// and read no row more often.
func TestScoresCost(t *testing.T) {
	Slow(t) // and alone: time is that of the process
	x := first(toy(0), 20)
	fresh := &countedRows{Rows: Part(x, 0, 50)}
	for _, method := range []Method{MethodNMF, MethodQMF, MethodBQMF} {
		m := Fitted(t, By(method), x, 4, WithEpochs(2), WithWorkers(1))
		calls := []func(){
			func() { Answer(t, m.Score, fresh) },
			func() { Answer(t, m.Scores, fresh) },
		}
		least, reads := [2]time.Duration{math.MaxInt64, math.MaxInt64}, [2]int{}
		for turn := 0; turn < 9 && (turn < 3 || 2*least[1] > 3*least[0]); turn++ { // other work takes time
			for which, call := range calls {
				began, before := cpuTime(), fresh.reads
				for range 8 { // a single one may take less than what else the process does
					call()
				}
				least[which], reads[which] = min(least[which], cpuTime()-began), fresh.reads-before
			}
		}
		if reads[1] > reads[0] || 2*least[1] > 3*least[0] {
			t.Errorf("%v: Score takes %v and %d rows, Scores %v and %d", method, least[0], reads[0], least[1],
				reads[1])
		}
	}
}

// countedRows counts how often a row is read.
type countedRows struct {
	Rows
	reads int
}

func (r *countedRows) ReadRow(to []float64, i int) error {
	r.reads++
	return r.Rows.ReadRow(to, i)
}
