package quantmf_test

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/quantmf/quantmf"
)

// TestPatienceRecipe: FitNMF's recipe to go on until the loss stands still comes within 1e-6 of the lowest
// loss that the same fit reaches in fifteen times as many epochs.
func TestPatienceRecipe(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		draw := func() float64 { return math.Pow(r.ExpFloat64(), 2) }
		x := Times(Drawn(40, 4, draw), Drawn(4, 50, draw))
		for i, w := range x.Data {
			x.Data[i] = math.Floor(3 * w * r.ExpFloat64())
		}
		x.Data[0]++
		for _, loss := range []Loss{KL, Frobenius} {
			opts := []FitOption{WithLoss(loss), WithWorkers(1)}
			m := Fitted(t, FitNMF, x, 4, append(opts, WithEpochs(1000),
				WithPatience(3))...)
			epochs := len(m.History) - 1
			long := Fitted(t, FitNMF, x, 4, append(opts, WithEpochs(15*epochs))...)
			last, best := m.History[epochs], long.History[15*epochs]
			if epochs == 1000 || last > best*(1+1e-6) {
				t.Errorf("seed %d, %v: %v after %d epochs, %v after %d: %.1e above", seed, loss, last, epochs,
					best, 15*epochs, last/best-1)
			}
		}
	}
}
