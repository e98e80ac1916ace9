package account

// This file holds what is said of values that were hidden from fits.

import (
	"math"
	"strconv"
	"strings"
)

// Unseen is how well fits predicted values that were hidden from them, of the model's method and of an NMF of
// as many components. Shares are of how far these values are from the means of their features' other values.
type Unseen struct {
	Values    int     // how many were predicted; 0 where nothing was tried
	Predicted float64 // by how much nearer the predictions of the method are
	StdErr    float64 // of Predicted, over features; 0 where it is not known
	Fitted    float64 // the same share of the values that the model was fitted to
	NMF       float64 // by how much nearer those of the NMF are, NaN where there is none
	Ahead     float64 // Predicted - NMF, and its standard error: of differences in the same values
	AheadErr  float64
}

// Structureless is what a model predicts of a table without structure, at the most.
const Structureless = 0.015

// Found tells whether the model predicts better than the means of features, beyond chance.
func (u *Unseen) Found() bool { return u.Predicted > Structureless && u.Predicted > 2*u.StdErr }

// Words say so of a model by a method, such as QMF; "" where nothing was tried. The second text is of the
// NMF.
func (u *Unseen) Words(method string) (text, nmf string) {
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
	if u.NMF != u.NMF {
		return text, ""
	}
	nmf = "an NMF of as many components predicts " + percent(u.NMF, 0) + ": "
	switch ahead := percent(math.Abs(u.Ahead), u.AheadErr); {
	case math.Abs(u.Ahead) <= 2*u.AheadErr:
		nmf += "the difference may be chance (" + ahead + ")"
	case u.Ahead > 0:
		nmf += method + " predicts " + ahead + " more"
	default:
		nmf += method + " predicts " + ahead + " less, so take -method nmf"
	}
	return text, nmf
}

// percent writes a share with its standard error, 0 for none.
func percent(share, stdErr float64) string {
	digits := 0
	if stdErr > 0 && stdErr < 0.005 {
		digits = 1
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

// text and readUnseen are the line of a model file.
func (u *Unseen) text() string {
	if u.Values == 0 {
		return ""
	}
	s := strconv.Itoa(u.Values)
	for _, v := range u.numbers() {
		s += " " + strconv.FormatFloat(*v, 'g', -1, 64)
	}
	return s
}

func readUnseen(text string) (u Unseen) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return u
	}
	u.Values, _ = strconv.Atoi(words[0])
	for i, v := range u.numbers() {
		if i+1 < len(words) {
			*v, _ = strconv.ParseFloat(words[i+1], 64)
		}
	}
	return u
}

func (u *Unseen) numbers() []*float64 {
	return []*float64{&u.Predicted, &u.StdErr, &u.Fitted, &u.NMF, &u.Ahead, &u.AheadErr}
}
