package main

import (
	"io"
	"testing"
)

// TestSpearman: weights trained through the gradient of soft ranks order new samples nearly as well as
// anything can, and far better than least squares.
func TestSpearman(t *testing.T) {
	byRanks, bySquares, err := run(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if byRanks < 0.85 || bySquares > byRanks-0.2 {
		t.Errorf("%.3f by ranks, %.3f by least squares", byRanks, bySquares)
	}
}
