package data

import (
	_ "embed"
	"strings"
)

//go:embed sums.txt
var listed string

// Sums has the SHA-256 of the unpacked text of each file.
var Sums = func() map[string]string {
	sums := map[string]string{}
	for line := range strings.Lines(listed) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	return sums
}()
