//go:build ignore

// Pace prints how many times as long as on the machine for which the limits of testtime were chosen
// this one takes for a fixed piece of work: sorting, and loops of exp over arrays that the second
// cache holds. It is at least 1, and takes the least of seven tries, so that other load counts little.
package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const reference = 0.078 // seconds of a try on that machine

func main() {
	least := math.Inf(1)
	for range 7 {
		begun := time.Now()
		work()
		least = min(least, time.Since(begun).Seconds())
	}
	fmt.Printf("%.2f\n", max(1, least/reference))
}

func work() {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float64, 1<<15), make([]float64, 1<<15)
	for range 40 {
		for i := range x {
			x[i] = r.Float64()
		}
		slices.Sort(x)
		for i, v := range x {
			y[i] += math.Exp(-v) / (1 + y[i])
		}
	}
	if math.IsNaN(y[0]) {
		panic("pace: NaN")
	}
}
