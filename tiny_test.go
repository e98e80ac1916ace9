package quantmf_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestLossesInAnyUnit: in a unit in which losses are no numbers, the best epoch is that of x in another unit,
// and HeldOut says so in place of losses of 0.
func TestLossesInAnyUnit(t *testing.T) {
	Slow(t)
	r := rand.New(rand.NewPCG(3, 1))
	x := NewMat(30, 40)
	u, v := make([]float64, 30), make([]float64, 40)
	for i := range u {
		u[i] = r.ExpFloat64()
	}
	for j := range v {
		v[j] = r.ExpFloat64()
	}
	for i := range x.Data {
		x.Data[i] = u[i/40]*v[i%40] + 0.3*r.ExpFloat64()
	}
	in := func(e int) Mat {
		y := x.Clone()
		for i := range y.Data {
			y.Data[i] = math.Ldexp(y.Data[i], e)
		}
		return y
	}
	for method := range MethodBQMF + 1 {
		best := func(e int) int {
			return Common(Fitted(t, By(method), in(e), 3, WithLoss(Frobenius), WithEpochs(8),
				WithValidation(0.1))).Best
		}
		if one, small := best(0), best(-900); small != one {
			t.Errorf("%v: epoch %d is the best, in the unit of 1 epoch %d", method, small, one)
		}
	}
	trials := []Trial{{Rank: 1, Options: []FitOption{WithLoss(Frobenius), WithEpochs(5)}}}
	losses := func(e int) ([]float64, error) {
		p, err := HeldOut(t.Context(), in(e), FitNMF, trials, Masks{Repeats: 2})
		if err != nil {
			return nil, err
		}
		return p[0].Losses, nil
	}
	one := Must(losses(0))(t)
	small := Must(losses(-300))(t)
	for i := range small {
		small[i] = math.Ldexp(small[i], 600)
	}
	EqualAll(t, one, small, "2^-300")
	var data *DataError
	if none, err := losses(-900); !errors.As(err, &data) {
		t.Errorf("2^-900: %v, %v", none, err)
	}
}
