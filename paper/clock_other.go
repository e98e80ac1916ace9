//go:build !unix

package main

import "time"

// worked is how long processors have worked for this process, taken as all of its time.
func worked() time.Duration { return time.Since(started) * time.Duration(cores()) }
