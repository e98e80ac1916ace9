package account_test

import (
	"math"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/account"
)

// TestUnseenWords: what is said of values that the model has not seen, and of an NMF beside it.
func TestUnseenWords(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		u         account.Unseen
		text, nmf string
	}{
		{account.Unseen{}, "", ""},
		{account.Unseen{Values: 9, Predicted: 0.384, StdErr: 0.03, Fitted: 0.51, NMF: nan},
			"38 ± 3 % of what differs between samples is predicted, in values that the model has not seen " +
				"(51 % is " +
				"explained, in those that it was fitted to)", ""},
		{account.Unseen{Values: 9, Predicted: 0.9, StdErr: 0.002, NMF: 0.905, Ahead: -0.005, AheadErr: 0.001},
			"90.0 ± 0.2 % of what", "an NMF of as many components predicts 90 %: QMF predicts 0.5 ± 0.1 % " +
				"less, so " +
				"take -method nmf"},
		{account.Unseen{Values: 9, Predicted: 0.3, StdErr: 0.1, NMF: 0.2, Ahead: 0.1, AheadErr: 0.02},
			"30 ± 10 %",
			"predicts 20 %: QMF predicts 10 ± 2 % more"},
		{account.Unseen{Values: 9, Predicted: 0.04, StdErr: 0.09, Fitted: 0.87, NMF: 0, Ahead: 0.04,
			AheadErr: 0.3},
			"it is unsure whether values that the model has not seen are predicted better than by the mean " +
				"of their " +
				"feature (4 ± 9 %; of those that it was fitted to 87 % is explained)",
			"predicts 0 %: the difference may be chance (4 ± 30 %)"},
		{account.Unseen{Values: 9, Predicted: -0.353, StdErr: 0.03, Fitted: 0.42, NMF: nan},
			"no structure was found: values that the model has not seen are predicted no better than by " +
				"the mean of " +
				"their feature (-35 ± 3 %; of those that it was fitted to 42 % is explained). Components " +
				"and curves " +
				"show noise: try a smaller k", ""},
		{account.Unseen{Values: 9, Predicted: -0.001, NMF: nan},
			"no structure was found: values that the model has " +
				"not seen are predicted no better than by the mean of their feature (0 %;", ""},
	} {
		text, nmf := c.u.Words("QMF")
		if !strings.HasPrefix(text, c.text) || !strings.Contains(nmf, c.nmf) ||
			(c.text == "") != (text == "") || (c.nmf == "") != (nmf == "") {
			t.Errorf("%+v: %q, %q", c.u, text, nmf)
		}
	}
}
