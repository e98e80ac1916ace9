package report

// This file holds what the page says of a model.

import (
	"fmt"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/saved"
)

// TopShown is how many features or samples of a component are named.
const TopShown = 8

// Of returns the page of a model and of x, the matrix that was fitted: d names of features,
// n of samples, and how the model came about.
func Of(model quantmf.Model, features, samples []string, x quantmf.Mat, how saved.Made) (Fit, error) {
	f := Fit{
		Matrix:      how.Matrix,
		Command:     how.Command,
		Features:    features,
		Samples:     samples,
		X:           x,
		Fitted:      model.Reconstruct(),
		Warnings:    how.Warnings,
		Shares:      model.Shares(),
		TopSamples:  model.TopSamples(TopShown),
		Unconverged: how.Unconverged,
		Compared:    how.NMF, ComparedUpdates: how.NMFUpdates, ComparedExplained: how.NMFExplained,
	}
	if f.Matrix == "" {
		f.Matrix = "A matrix"
	}
	var of *quantmf.Factorisation
	var scale func(i int) (func(float64) float64, error)
	var err error
	switch m := model.(type) {
	case *quantmf.NMF:
		f.Method, of = "NMF", &m.Factorisation
	case *quantmf.QMF:
		f.Method, of, f.Bend, scale = "QMF", &m.Factorisation, m.Bend(), scaleOf(m.Map)
	case *quantmf.QMFQ:
		f.Method, of, f.Bend, scale = "QMFQ", &m.Factorisation, m.Bend(), scaleOf(m.Inflate)
	case *quantmf.BQMF:
		f.Method, of, f.Bend, scale = "BQMF", &m.Factorisation, m.Bend(), scaleOf(m.Map)
	}
	f.U, f.V, f.Loss = of.U, of.V, of.History[:of.Best+1]
	f.Settings = settings(model, of, how)
	if f.Goodness, err = model.Goodness(x); err != nil {
		return f, err
	}
	if f.TopFeatures, err = model.TopFeatures(x, TopShown); err != nil {
		return f, err
	}
	if q, is := model.(*quantmf.QMFQ); is {
		if f.Normalized, err = q.Normalize(x); err != nil {
			return f, err
		}
	}
	if scale == nil {
		return f, nil
	}
	f.Maps = make([]func(float64) float64, len(features))
	for i := range f.Maps {
		if f.Maps[i], err = scale(i); err != nil {
			return f, err
		}
	}
	return f, nil
}

// scaleOf makes functions of the maps of a model.
func scaleOf[M interface{ At(w float64) float64 }](maps func(i int) (M, error)) func(i int) (func(float64) float64, error) {
	return func(i int) (func(float64) float64, error) {
		m, err := maps(i)
		if err != nil {
			return nil, err
		}
		return m.At, nil
	}
}

// settings says in words how the model was fitted, as far as that is known.
func settings(model quantmf.Model, of *quantmf.Factorisation, how saved.Made) (words []string) {
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
	q, isQMF := model.(*quantmf.QMF)
	_, isBQMF := model.(*quantmf.BQMF)
	if isQMF {
		say("%d levels", q.Quantiles.Cols)
	}
	if eps := given["-eps"]; eps != "" {
		say("ε = %s", eps)
	}
	loss := given["-loss"]
	if _, auto, is := strings.Cut(how.Losses, "-loss auto took "); is {
		loss, _, _ = strings.Cut(auto, ":")
	}
	if l, err := saved.ParseLoss(loss); err == nil {
		say("the %s as loss", saved.LossName(l))
	}
	switch {
	case isQMF:
		say("started %s, %s", strings.ReplaceAll(Begun(q), "; ", ", "), counted(of.Best, "epoch"))
	case isBQMF:
		say("%s of variational Bayes", counted(len(of.History)-1, "epoch"))
	default:
		say("%s", counted(of.Best, "epoch"))
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

// Begun says where a fit started and how much its maps were shrunk.
func Begun(q *quantmf.QMF) string {
	from := map[quantmf.Start]string{quantmf.StartAuto: "from given factors", quantmf.StartScores: "from an NMF of normal scores",
		quantmf.StartNMF: "from an NMF of the matrix", quantmf.StartUniform: "at random"}[q.Start]
	if q.Shrinkage == 0 {
		return from + "; maps are free"
	}
	return fmt.Sprintf("%s; maps are pulled towards straight lines by %g pseudo-samples", from, q.Shrinkage)
}
