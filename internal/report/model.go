package report

// This file holds the page of a model whose file says how the model came about.

import (
	"fmt"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/table"
)

// Of returns the page of what a model says of x, the matrix that was fitted: d names of features,
// n of samples, and how the model came about.
func Of(a account.Account, features, samples []string, x quantmf.Mat, how account.Made) Fit {
	f := Fit{Account: a, Made: how, Settings: settings(a, how), Features: features, Samples: samples, X: x}
	if f.Unseen.Values == 0 && a.Predicted == a.Predicted { // each value without itself
		f.Unseen = account.Unseen{Values: x.Rows * x.Cols, Predicted: a.Predicted, Fitted: f.explained()}
	}
	if f.Matrix == "" {
		f.Matrix = "A matrix"
	}
	return f
}

// settings says in words how the model was fitted, as far as that is known.
func settings(a account.Account, how account.Made) (words []string) {
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	given := map[string]string{} // of the command line
	line := strings.Fields(how.Command)
	for i, w := range line[:max(len(line)-1, 0)] {
		if strings.HasPrefix(w, "-") {
			given[w] = line[i+1]
		}
	}
	if how.Log1p {
		say("log(1+x) of every value")
	}
	if how.Top {
		say("the features of largest standard deviation alone")
	}
	if a.Method == "QMF" {
		say("%d levels", a.Levels)
	}
	if eps := given["-eps"]; eps != "" {
		say("ε = %s", eps)
	}
	loss := given["-loss"]
	if _, auto, is := strings.Cut(how.Losses, "-loss auto took "); is {
		loss, _, _ = strings.Cut(auto, ":")
	}
	if l, err := account.ParseLoss(loss); err == nil {
		say("the %s as loss", account.LossName(l))
	}
	switch a.Method {
	case "QMF":
		say("started %s, %s", strings.ReplaceAll(a.Began, "; ", ", "), table.Counted(a.Epochs, "epoch"))
	case "BQMF":
		say("%s of variational Bayes", table.Counted(a.Epochs, "epoch"))
	default:
		say("%s", table.Counted(a.Epochs, "epoch"))
	}
	if share := given["-validation"]; share != "" {
		say("a share of %s of the values held out to choose the epoch", share)
	}
	if restarts := given["-restarts"]; restarts != "" {
		say("the best of %s restarts", restarts)
	}
	if seed := given["-seed"]; seed != "" {
		say("seed %s", seed)
	}
	return words
}
