package settings

import (
	"errors"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/option"
)

// TestParse: a text makes the option of its kind with its value, as is seen where a method has no use for it
// or the value is beyond its bound.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		kind        option.Kind
		text, value string
		method      quantmf.Method
	}{
		{option.Epsilon, "0.25", "0.25", quantmf.MethodBQMF},
		{option.Squash, "logisticUnit", "SquashLogisticUnit", quantmf.MethodBQMF},
		{option.Tolerance, "1e-3", "0.001", quantmf.MethodNMF},
		{option.MaxIterations, "7", "7", quantmf.MethodBQMF},
		{option.Strict, "true", "", quantmf.MethodBQMF},
		{option.Iterations, "3", "3", quantmf.MethodBQMF},
		{option.Levels, "5", "5", quantmf.MethodBQMF},
		{option.MidpointRanks, "true", "", quantmf.MethodBQMF},
		{option.Workers, "-1", "-1", quantmf.MethodBQMF},
		{option.Epochs, "-2", "-2", quantmf.MethodBQMF},
		{option.LearningRate, "0.5", "0.5", quantmf.MethodBQMF},
		{option.Schedule, "constant", "ScheduleConstant", quantmf.MethodBQMF},
		{option.Batch, "9", "9", quantmf.MethodBQMF},
		{option.Start, "svd", "StartSVD", quantmf.MethodBQMF},
		{option.Ends, "pinned", "EndsPinned", quantmf.MethodBQMF},
		{option.Penalty, "2", "2", quantmf.MethodBQMF},
		{option.Penalties, "1,2,0.5,0", "L1U 1, L1V 2, L2U 0.5, L2V 0", quantmf.MethodBQMF},
		{option.Shrinkage, "20", "20", quantmf.MethodBQMF},
		{option.Line, "0.7", "0.7", quantmf.MethodBQMF},
		{option.Loss, "9", "9", quantmf.MethodBQMF},
		{option.Patience, "4", "4", quantmf.MethodBQMF},
		{option.Restarts, "2", "2", quantmf.MethodBQMF},
		{option.Validation, "0.75", "0.75", quantmf.MethodBQMF},
		{option.Projection, "frobenius:6", "FrobeniusUpdates(6)", quantmf.MethodBQMF},
		{option.Projection, "kl:6", "KLUpdates(6)", quantmf.MethodBQMF},
		{option.Projection, "svd", "TruncatedSVD()", quantmf.MethodBQMF},
		{option.Updates, "multiplicative", "UpdatesMultiplicative", quantmf.MethodBQMF},
	} {
		o, err := Parse(c.kind, c.text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = quantmf.MemoryOf(c.method, 9, 9, 2, o)
		var bad *quantmf.OptionError
		if !errors.As(err, &bad) || bad.Option != c.kind.String() || bad.Value != c.value {
			t.Errorf("%v of %q: %v", c.kind, c.text, err)
		}
	}
	for _, c := range []struct {
		kind option.Kind
		text string
	}{{option.Strict, "false"}, {option.Loss, "auto"}} {
		if o, err := Parse(c.kind, c.text); o != nil || err != nil {
			t.Errorf("%v of %q: %v, %v", c.kind, c.text, o, err)
		}
	}
	for _, c := range []struct {
		kind       option.Kind
		text, says string
	}{
		{option.Levels, "x", "not a whole number"}, {option.Penalty, "x", "not a number"},
		{option.Penalties, "1,2,3", "must be four numbers: L1U,L1V,L2U,L2V"},
		{option.Penalties, "1,2,3,x", "not a number"},
		{option.Ends, "x", "must be one of free, pinned"},
		{option.Seed, "-1", "not a whole number from 0 to 2^64-1"},
		{option.Missing, "x", "must be one of true, false"},
		{option.Projection, "kl", "must be kl:N, frobenius:N or svd"},
	} {
		if _, err := Parse(c.kind, c.text); err == nil || err.Error() != c.says {
			t.Errorf("%v of %q: %v, want %s", c.kind, c.text, err, c.says)
		}
	}
	for _, name := range Methods {
		m, err := Fit(t.Context(), name,
			quantmf.Mat{Rows: 2, Cols: 3, Stride: 3, Data: []float64{1, 2, 3, 3, 5, 4}},
			1, quantmf.WithEpochs(1))
		if err != nil || MethodOf(m) != name || Factorisation(m).U.Rows != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
