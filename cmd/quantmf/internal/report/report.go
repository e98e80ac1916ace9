// Package report draws a fitted factorisation as one self-contained HTML page.
package report

// This file holds what goes into the page.

import (
	"io"

	"github.com/quantmf/quantmf"
)

// Fit is what the page shows.
type Fit struct {
	Matrix   string // the name of the file
	Method   string // "QMF" or "NMF"
	Command  string // the command line that repeats the fit
	Version  string // of quantmf
	Features []string
	Samples  []string
	X        quantmf.Mat
	U, V     quantmf.Mat
	Fitted   quantmf.Mat // T(UV), or UV
	Loss     []float64   // after each epoch, entry 0 before the first
	Warnings []string

	// Of QMF alone; Maps is nil for NMF.
	Maps            []func(w float64) float64 // T_i, from the scale of (UV)_i to that of feature i
	Bend            []float64                 // 0 where the map of a feature is a line, towards 1 the farther it is from any
	Unconverged     int                       // features whose transport did not converge
	Compared        float64                   // the final loss of an NMF of the same rank
	ComparedUpdates int
}

// Write writes the page. The same fit gives the same bytes.
func Write(w io.Writer, f Fit) error { return nil }
