package account

// This file holds what is said of values that were hidden from fits.

import (
	"math"
	"strconv"
	"strings"
)

// Unseen is how well fits predicted values that were hidden from them: of the model's method, and of others.
// Shares are of how far these values are from the means of their features' other values.
type Unseen struct {
	Values    int     // how many were predicted; 0 where nothing was tried
	Predicted float64 // by how much nearer the predictions of the method are
	StdErr    float64 // of Predicted, over features; 0 where it is not known
	Fitted    float64 // the same share of the values that the model was fitted to
	Auto      bool    // these values chose the method
	Others    []Other // the methods beside it
}

// Other is a method beside that of the model, of the same values.
type Other struct {
	Method    string // such as NMF
	Predicted float64
	// the share by which its loss exceeds that of the model's method, and its standard error
	Worse  float64
	StdErr float64
}

// Structureless is what a model predicts of a table without structure, at the most.
const Structureless = 0.015

// Found tells whether the model predicts better than the means of features, beyond chance.
func (u *Unseen) Found() bool { return u.Predicted > Structureless && u.Predicted > 2*u.StdErr }

// Words say so of a model by a method, such as QMF; "" where nothing was tried. The second text is of the
// other methods.
func (u *Unseen) Words(method string) (text, others string) {
	if u.Values == 0 {
		return "", ""
	}
	predicted := percent(u.Predicted, u.StdErr)
	switch {
	case u.Found():
		text = predicted + " of what differs between samples is predicted, in values that the model " +
			"has not " +
			"seen (" + percent(u.Fitted, 0) + " is explained, in those that it was fitted to)"
	case u.Predicted > Structureless:
		text = "it is unsure whether values that the model has not seen are predicted better than by " +
			"the mean " +
			"of their feature (" + predicted + "; of those that it was fitted to " + percent(u.Fitted, 0) +
			" is explained)"
	default:
		text = "no structure was found: values that the model has not seen are predicted no better than by " +
			"the mean of their feature (" + predicted + "; of those that it was fitted to " +
			percent(u.Fitted, 0) + " is explained). Components and curves show noise: try a smaller k"
	}
	return text, u.beside(method)
}

// beside says of the other methods by how much they are worse, and whether that chose the method.
func (u *Unseen) beside(method string) string {
	var worse, chance []string
	for _, o := range u.Others {
		share := percent(math.Abs(o.Worse), o.StdErr)
		switch {
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
		return method + ", though " + why
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
