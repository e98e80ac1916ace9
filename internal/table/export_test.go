package table

// This file shows the tests, which stand outside of the package, the few things inside that they need: bounds
// that files are made to reach, and what has a reference of its own.

import "github.com/quantmf/quantmf"

const (
	BlankBytes = blankBytes
	Buffered   = buffered
	HeadLines  = headLines
)

var (
	Decimal        = decimal
	InOneCell      = inOneCell
	WriteNPYHeader = writeNPYHeader
)

// InPlace tells whether a matrix is read from its file, and whether the file is mapped into memory.
func InPlace(x quantmf.Rows) (inFile, mapped bool) {
	held, inFile := x.(*npyRows)
	return inFile, inFile && held.mapped != nil
}
