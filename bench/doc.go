// Package bench holds the public calls that docs/measurements/speed.md times beside other
// people's software, and what docs/measurements/speed.md says about the price of equal bits.
// bench/run builds its benchmarks, runs them in turn with the others and writes
// the page; times of what only a fit does inside are in the root's bench_test.go.
package bench
