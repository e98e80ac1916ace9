// Package fit has what the fits of all models have in common, whatever their equations: the units in which a
// matrix is fitted (units.go), and the losses after each epoch, which tell when to end (journal.go).
package fit
