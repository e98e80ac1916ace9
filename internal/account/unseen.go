package account

// This file holds what is said first of a model: how well values that were hidden are predicted. A tenth of
// the values is hidden from further fits, of the method and of others, and their predictions are compared
// with the mean of the feature's other values (quantmf.Choose). Where the data choose the method, these fits
// come before that of all values.

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// Beside are the further fits beside one by a method that was told: its own, and an NMF unless that is the
// method or values are negative. A BQMF has more components than an NMF could have. shared are the options
// that hold for the NMF, too.
func Beside(own quantmf.Candidate, shared []quantmf.FitOption, negative bool) []quantmf.Candidate {
	of := []quantmf.Candidate{own}
	if (own.Method == quantmf.MethodQMF || own.Method == quantmf.MethodQMFQ) && !negative {
		of = append(of, quantmf.Candidate{Method: quantmf.MethodNMF, Rank: own.Rank, Options: shared})
	}
	return of
}

// Untried is said where Try makes no fits.
const Untried = "no values can be hidden from such a fit of this matrix"

// Try makes the further fits. It returns nil where no value of x can be hidden from them.
func Try(ctx context.Context, x quantmf.Rows, candidates []quantmf.Candidate,
	told func(done, all int) error) (*quantmf.Choice, error) {
	choice, err := quantmf.Choose(ctx, x, candidates, told)
	if err != nil && ctx.Err() == nil &&
		(errors.As(err, new(*quantmf.OptionError)) || errors.As(err, new(*quantmf.DataError))) {
		return nil, nil
	}
	return choice, err
}

// Tried is what further fits say of the model of one of the candidates: nothing where its predictions have no
// share. auto tells that they chose it.
func Tried(c *quantmf.Choice, own int, auto bool) (u Unseen) {
	of := c.Trials[own]
	u.Predicted, u.StdErr = of.Explained()
	if u.Predicted-u.Predicted != 0 {
		return Unseen{}
	}
	u.Auto = auto
	for _, row := range of.Rows {
		u.Values += row.Cells
	}
	for i, p := range c.Trials {
		if i != own {
			o := Other{Method: c.Candidates[i].Method.String()}
			o.Predicted, _ = p.Explained()
			o.Worse, o.StdErr = p.Worse(of)
			u.Others = append(u.Others, o)
		}
	}
	return u
}

// Unseen is how well fits predicted values that were hidden from them: of the model's method, and of others.
// Shares are of how far these values are from the means of their features' other values.
type Unseen struct {
	Values    int     `json:"values"`    // how many were predicted; 0 where nothing was tried
	Predicted float64 `json:"predicted"` // by how much nearer the predictions of the method are
	StdErr    float64 `json:"stderr"`    // of Predicted, over features; 0 where it is not known
	Fitted    float64 `json:"fitted"`    // the same share of the values that the model was fitted to
	Auto      bool    `json:"auto"`      // these values chose the method
	Others    []Other `json:"others"`    // the methods beside it
}

// Other is a method beside that of the model, of the same values.
type Other struct {
	Method    string  `json:"method"` // such as NMF
	Predicted float64 `json:"predicted"`
	// the share by which its loss exceeds that of the model's method, and its standard error
	Worse  float64 `json:"worse"`
	StdErr float64 `json:"worse_stderr"`
}

// Structureless is what a model predicts of a table without structure, at the most.
const Structureless = 0.015

// Found tells whether the model predicts better than the means of features, beyond chance.
func (u *Unseen) Found() bool { return u.Predicted > Structureless && u.Predicted > 2*u.StdErr }

// Noise tells whether the model predicts no better than the means of features.
func (u *Unseen) Noise() bool { return u.Values > 0 && u.Predicted <= Structureless }

// Words say so of a model by a method, such as QMF; "" where nothing was tried. The second text is of the
// other methods.
func (u *Unseen) Words(method string) (text, others string) {
	if u.Values == 0 {
		return "", ""
	}
	predicted, fitted := percent(u.Predicted, u.StdErr), percent(u.Fitted, 0)
	switch {
	case u.Found():
		text = predicted + " of what differs between samples is predicted, in values that the model has " +
			"not seen (" + fitted + " is explained, in those that it was fitted to)"
	case u.Predicted > Structureless:
		text = "it is unsure whether values that the model has not seen are predicted better than by the " +
			"mean of their feature (" + predicted + "; of those that it was fitted to " + fitted +
			" is explained)"
	default:
		text = "no structure was found at this k: values that the model has not seen are predicted no " +
			"better than by the mean of their feature (" + predicted + "; of those that it was fitted to " +
			fitted + " is explained). Components and curves show noise: try a smaller k"
	}
	return text, u.beside(method)
}

// Number is a number of the first box, and what it is.
type Number struct{ Value, Label string }

// Numbers are those that stand beside the words; none where nothing was tried.
func (u *Unseen) Numbers() (all []Number) {
	if u.Values == 0 {
		return nil
	}
	all = append(all, Number{percent(u.Predicted, u.StdErr),
		"of the differences between samples predicted, in values that the model has not seen"})
	for _, o := range u.Others {
		all = append(all, Number{percent(o.Predicted, 0), "predicted in the same values by " + o.Method})
	}
	return append(all, Number{percent(0, 0), "predicted there by the mean of each feature alone"},
		Number{percent(u.Fitted, 0),
			"of the differences between samples explained, in the values that were fitted"})
}

// beside says of the other methods by how much they are worse, and whether that chose the method.
func (u *Unseen) beside(method string) string {
	var worse, chance []string
	for _, o := range u.Others {
		share := percent(math.Abs(o.Worse), o.StdErr)
		switch {
		case u.Auto && o.Worse < 0:
			worse = append(worse, "it predicts more features better (in all, "+o.Method+
				" predicts hidden values "+share+" better)")
		case o.Worse < -2*o.StdErr:
			return o.Method + " predicts hidden values " + share + " better: take -method " +
				strings.ToLower(o.Method)
		case o.Worse > 2*o.StdErr:
			worse = append(worse, o.Method+" predicts hidden values "+share+" worse")
		case o.Worse < 0:
			chance = append(chance, o.Method+" predicts them "+share+" better, which may be chance")
		default:
			chance = append(chance, o.Method+" predicts them "+share+" worse, which may be chance")
		}
	}
	switch why := strings.Join(append(worse, chance...), "; "); {
	case why == "":
		return ""
	case !u.Auto:
		return why
	case len(worse) > 0:
		return method + ", because " + why
	default:
		return method + "; " + why
	}
}

// percent writes a share with its standard error, 0 for none.
func percent(share, stdErr float64) string {
	digits := 0
	for _, below := range [...]float64{5e-3, 5e-4} {
		if stdErr > 0 && stdErr < below {
			digits++
		}
	}
	text := func(v float64) string { return strconv.FormatFloat(100*v, 'f', digits, 64) }
	s := text(share)
	if strings.Trim(s, "-0.") == "" {
		s = text(0)
	}
	if stdErr > 0 {
		s += " ± " + text(stdErr)
	}
	return s + " %"
}

// Lines returns the lines of a model file that say so, and ReadUnseen reads them, and what follows them.
func (u *Unseen) Lines() string { return lines(u.text) }

func ReadUnseen(text string) (u Unseen) {
	for key, value := range pairs(text) {
		u.read(key, value)
	}
	return u
}

// text and read are lines of a model file, by their keys.
func (u *Unseen) text(line func(key, value string)) {
	if u.Values == 0 {
		return
	}
	line("unseen", strconv.Itoa(u.Values)+numbers(u.Predicted, u.StdErr, u.Fitted))
	if u.Auto {
		line("auto", "yes")
	}
	for _, o := range u.Others {
		line("beside", o.Method+numbers(o.Predicted, o.Worse, o.StdErr))
	}
}

func (u *Unseen) read(key, value string) {
	words := append(strings.Fields(value), "", "", "", "")
	var v [3]float64
	for i := range v {
		v[i], _ = strconv.ParseFloat(words[i+1], 64)
	}
	switch key {
	case "unseen":
		u.Values, _ = strconv.Atoi(words[0])
		u.Predicted, u.StdErr, u.Fitted = v[0], v[1], v[2]
	case "auto":
		u.Auto = true
	case "beside":
		u.Others = append(u.Others, Other{words[0], v[0], v[1], v[2]})
	}
}

// numbers writes numbers, each after a blank.
func numbers(v ...float64) (s string) {
	for _, x := range v {
		s += " " + strconv.FormatFloat(x, 'g', -1, 64)
	}
	return s
}
