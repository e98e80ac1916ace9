// Package fit has what the fits of all models have in common, whatever their equations: the one reading of a
// matrix, its cells, and the unit in which it is fitted (reading.go, cells.go, units.go); the driver of
// epochs, restarts and checkpoints (drive.go, checkpoint.go); and the losses after each epoch, which tell
// when to end (journal.go). It knows nothing of options: errors have the fields of those of the root package,
// which hands them out as its own types.
package fit
