package quantmf

// Tests of Score: of samples seen and unseen, under every divergence, with missing cells.

import (
	"context"
	"os"
	"testing"
)

// scorer is what NMF and QMF have in common for new samples.
type scorer interface {
	Loss(x Rows) (float64, error)
	Transform(ctx context.Context, x Rows) (Mat, error)
	Score(ctx context.Context, x Rows) (float64, error)
}

// bothModels fits NMF and QMF to x.
func bothModels(t *testing.T, x Mat, k int, opts ...FitOption) map[string]scorer {
	t.Helper()
	nmf := must(FitNMF(context.Background(), x, k))(t)
	qmf := must(FitQMF(context.Background(), x, k, opts...))(t)
	return map[string]scorer{"NMF": nmf, "QMF": qmf}
}

// TestScoreUnseen places a quarter of the columns by what the others have taught.
func TestScoreUnseen(t *testing.T) {
	const path = "../shared/data/tcga-brca/mirna.tsv.gz"
	if _, err := os.Stat(path); err != nil {
		t.Skip(path + " is not here")
	}
	x := loadRows(t, path, 60)
	seen := columnsOf(x, func(j int) bool { return j%4 != 3 })
	unseen := columnsOf(x, func(j int) bool { return j%4 == 3 })
	for name, m := range bothModels(t, seen, 5, WithEpochs(some([]int{40, 10}, 1)[0])) {
		loss := must(m.Loss(seen))(t)
		score, err := m.Score(context.Background(), unseen)
		t.Logf("%s: seen %.4g, unseen %.4g", name, loss, score)
		if err != nil || !(score <= 2*loss) {
			t.Errorf("%s: score %v of unseen columns (%v), loss %v of seen ones", name, score, err, loss)
		}
	}
}
