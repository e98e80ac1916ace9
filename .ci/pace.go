//go:build ignore

// Pace prints how many times as long as on the machine for which the limits of testtime were chosen
// this one takes for a fixed piece of work: sorting, and loops of exp over arrays that the second
// cache holds. GOMAXPROCS threads do the work at the same time, as tests run, because threads that share a
// core or its cache slow each other down. A thread counts by the least of its seven tries, so that other
// load counts little. Pace is the mean over the threads, and at least 1.
package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

const reference = 0.078 // seconds of a try on that machine

func main() {
	threads := runtime.GOMAXPROCS(0)
	least := make([]float64, threads)
	var wait sync.WaitGroup
	for t := range threads {
		wait.Go(func() {
			least[t] = math.Inf(1)
			for range 7 {
				begun := time.Now()
				work()
				least[t] = min(least[t], time.Since(begun).Seconds())
			}
		})
	}
	wait.Wait()
	var sum float64
	for _, s := range least {
		sum += s
	}
	fmt.Printf("%.2f\n", max(1, sum/float64(threads)/reference))
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
