package account_test

import (
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/account"
)

// TestUnseenWords: what is said of values that the model has not seen, and of other methods beside it.
func TestUnseenWords(t *testing.T) {
	t.Parallel()
	of := func(method string, worse, stdErr float64) account.Other {
		return account.Other{Method: method, Worse: worse, StdErr: stdErr}
	}
	third := func(auto bool, others ...account.Other) account.Unseen {
		return account.Unseen{Values: 9, Predicted: 0.3, StdErr: 0.1, Auto: auto, Others: others}
	}
	for _, c := range []struct {
		u            account.Unseen
		text, others string
	}{
		{account.Unseen{}, "", ""},
		{account.Unseen{Values: 9, Predicted: 0.384, StdErr: 0.03, Fitted: 0.51},
			"38 ± 3 % of what differs between samples is predicted, in values that the model has not seen " +
				"(51 % is explained, in those that it was fitted to)", ""},
		{account.Unseen{Values: 9, Predicted: 0.9, StdErr: 0.002,
			Others: []account.Other{of("NMF", -0.005, 0.001)}}, "90.0 ± 0.2 % of what",
			"NMF predicts hidden values 0.5 ± 0.1 % better: take -method nmf"},
		{third(false, of("NMF", 0.0012, 0.0003)), "30 ± 10 %",
			"NMF predicts hidden values 0.12 ± 0.03 % worse"},
		{third(false, of("NMF", 0.1, 0.02)),
			"30 ± 10 %", "NMF predicts hidden values 10 ± 2 % worse"},
		{third(true, of("NMF", 0.1, 0.02)), "30 ± 10 %",
			"QMF, because NMF predicts hidden values 10 ± 2 % worse"},
		{third(true, of("NMF", 0.01, 0.02), of("BQMF", 0.04, 0.01)), "30 ± 10 %",
			"QMF, because BQMF predicts hidden values 4 ± 1 % worse; NMF predicts them 1 ± 2 % worse, " +
				"which may be chance"},
		{third(true, of("NMF", 0.01, 0.02)), "30 ± 10 %",
			"QMF; NMF predicts them 1 ± 2 % worse, which may be chance"},
		{third(true, of("NMF", -0.05, 0.02)), "30 ± 10 %",
			"QMF, because it predicts more features better (in all, NMF predicts hidden values 5 ± 2 % " +
				"better)"},
		{account.Unseen{Values: 9, Predicted: 0.04, StdErr: 0.09, Fitted: 0.87,
			Others: []account.Other{of("NMF", -0.04, 0.3)}},
			"it is unsure whether values that the model has not seen are predicted better than by the mean " +
				"of their feature (4 ± 9 %; of those that it was fitted to 87 % is explained)",
			"NMF predicts them 4 ± 30 % better, which may be chance"},
		{account.Unseen{Values: 9, Predicted: -0.353, StdErr: 0.03, Fitted: 0.42},
			"no structure was found at this k: values that the model has not seen are predicted no better " +
				"than by the mean of their feature (-35 ± 3 %; of those that it was fitted to 42 % is " +
				"explained). Components and curves show noise: try a smaller k", ""},
		{account.Unseen{Values: 9, Predicted: -0.001},
			"no structure was found at this k: values that the model has " +
				"not seen are predicted no better than by the mean of their feature (0 %;", ""},
	} {
		text, others := c.u.Words("QMF")
		if !strings.HasPrefix(text, c.text) || others != c.others || (c.text == "") != (text == "") {
			t.Errorf("%+v: %q, %q", c.u, text, others)
		}
	}
}
