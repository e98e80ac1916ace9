package quantmf

// Tests of Score: of samples seen and unseen, under every divergence, with missing cells.

import (
	"os"
	"testing"
)

// TestScoreUnseen places a quarter of the columns by what the others have taught.
func TestScoreUnseen(t *testing.T) {
	Slow(t)
	const path = "../shared/data/tcga-brca/mirna.tsv.gz"
	if _, err := os.Stat(path); err != nil {
		t.Skip(path + " is not here")
	}
	x := loadRows(t, path, 60)
	seen := columnsOf(x, func(j int) bool { return j%4 != 3 })
	unseen := columnsOf(x, func(j int) bool { return j%4 == 3 })
	for method := range MethodQMFQ {
		m := must(Fit(t.Context(), method, seen, 5, WithEpochs(some([]int{40, 10}, 1)[0])))(t)
		loss, score := must(m.Loss(seen))(t), must(m.Score(t.Context(), unseen))(t)
		if !(score <= 2*loss) {
			t.Errorf("%v: score %v of unseen columns, loss %v of seen ones", method, score, loss)
		}
	}
}
