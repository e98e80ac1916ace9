package survival

// This file holds the Kaplan-Meier estimate, the log-rank test of two groups, and Bonferroni's correction.

import (
	"cmp"
	"math"
	"slices"
)

// Step is a step of a Kaplan-Meier estimate, which is Survival after Time.
type Step struct{ Time, Survival float64 }

// KaplanMeier returns the steps of the estimate in increasing time, those without a death left out.
func KaplanMeier(time []float64, event []bool) []Step {
	order := make([]int, len(time))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(time[i], time[j]) })
	var steps []Step
	survival := 1.0
	for at := 0; at < len(order); {
		now, risk, deaths := time[order[at]], float64(len(order)-at), 0.0
		for ; at < len(order) && time[order[at]] == now; at++ {
			if event[order[at]] {
				deaths++
			}
		}
		if deaths > 0 {
			survival *= 1 - deaths/risk
			steps = append(steps, Step{now, survival})
		}
	}
	return steps
}

// LogRank returns the p-value of the log-rank test of two groups: under the same survival the deaths of one
// less their expectation, squared and over the variance, have a χ² distribution.
func LogRank(time []float64, event, second []bool) float64 {
	var times []float64
	for i, t := range time {
		if event[i] {
			times = append(times, t)
		}
	}
	slices.Sort(times)
	difference, variance := 0.0, 0.0
	for _, t := range slices.Compact(times) {
		atRisk, in, deaths := 0.0, 0.0, 0.0
		for i := range time {
			if time[i] < t {
				continue
			}
			atRisk++
			died := event[i] && time[i] == t
			if died {
				deaths++
			}
			if second[i] {
				in++
				if died {
					difference++
				}
			}
		}
		difference -= deaths * in / atRisk
		if atRisk > 1 {
			variance += deaths * (atRisk - deaths) / (atRisk - 1) * in / atRisk * (1 - in/atRisk)
		}
	}
	return math.Erfc(math.Abs(difference) / math.Sqrt(2*variance))
}

// Bonferroni returns the p-values times their number, at most 1. If those below 0.05 are taken as findings,
// the chance of any false finding is at most 0.05.
func Bonferroni(p []float64) []float64 {
	adjusted := make([]float64, len(p))
	for i := range p {
		adjusted[i] = min(1, p[i]*float64(len(p)))
	}
	return adjusted
}
