// Package bench has benchmarks of public calls, which docs/measurements/speed.md compares with other
// software, and of the price of equal bits. bench/run builds the benchmarks, runs them in turn with
// the other software and writes the page. The benchmarks of parts of a fit, which no public call makes
// alone, are in bench_test.go of the root.
package bench
