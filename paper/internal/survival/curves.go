package survival

// This file holds the Kaplan-Meier estimate, the log-rank test, and corrections for several tests.

import (
	"cmp"
	"math"
	"slices"
)

// Step is a step of a Kaplan-Meier estimate: at Time, AtRisk samples were alive and
// Deaths of them died. Survival is the estimate after Time.
type Step struct {
	Time           float64
	AtRisk, Deaths int
	Survival       float64
	StdErrLog      float64 // of log Survival, by Greenwood's formula
}

// KaplanMeier returns the steps of the estimate in increasing time, those without a
// death left out.
func KaplanMeier(time []float64, event []bool) []Step {
	order := make([]int, len(time))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(time[i], time[j]) })
	var steps []Step
	survival, variance := 1.0, 0.0
	for at := 0; at < len(order); {
		s := Step{Time: time[order[at]], AtRisk: len(order) - at}
		for ; at < len(order) && time[order[at]] == s.Time; at++ {
			if event[order[at]] {
				s.Deaths++
			}
		}
		if s.Deaths == 0 {
			continue
		}
		r, d := float64(s.AtRisk), float64(s.Deaths)
		survival *= 1 - d/r
		variance += d / (r * (r - d))
		s.Survival, s.StdErrLog = survival, math.Sqrt(variance)
		steps = append(steps, s)
	}
	return steps
}

// LogRank tests whether groups of samples have the same survival. group has numbers
// 0, ..., g-1.
func LogRank(time []float64, event []bool, group []int) (Test, error) {
	g := slices.Max(group) + 1
	observed, expected := make([]float64, g), make([]float64, g)
	variance := square(g)
	times := map[float64]bool{}
	for i := range time {
		if event[i] {
			times[time[i]] = true
		}
	}
	all := make([]float64, 0, len(times))
	for t := range times {
		all = append(all, t)
	}
	slices.Sort(all) // sums in one order
	for _, t := range all {
		risk, n, d := make([]float64, g), 0.0, 0.0
		for i := range time {
			if time[i] < t {
				continue
			}
			risk[group[i]]++
			n++
			if event[i] && time[i] == t {
				observed[group[i]]++
				d++
			}
		}
		for a := range g {
			expected[a] += d * risk[a] / n
			if n == 1 {
				continue
			}
			for b := range g {
				v := -risk[b] / n
				if a == b {
					v++
				}
				variance[a][b] += d * (n - d) / (n - 1) * risk[a] / n * v
			}
		}
	}
	// The differences sum to 0, so the last group is left out.
	u := make([]float64, g-1)
	for a := range u {
		u[a] = observed[a] - expected[a]
		variance[a] = variance[a][:g-1]
	}
	x, err := solve(variance[:g-1], u)
	if err != nil {
		return Test{}, err
	}
	return chi2(dot(u, x), g-1), nil
}

// Bonferroni returns the p-values times their number, at most 1. If those below 0.05 are taken
// as findings, the chance of any false finding is at most 0.05.
func Bonferroni(p []float64) []float64 {
	adjusted := make([]float64, len(p))
	for i := range p {
		adjusted[i] = min(1, p[i]*float64(len(p)))
	}
	return adjusted
}

// Holm returns adjusted p-values with the guarantee of Bonferroni's, and never larger.
func Holm(p []float64) []float64 {
	order := increasing(p)
	adjusted, largest := make([]float64, len(p)), 0.0
	for r, i := range order {
		largest = max(largest, min(1, p[i]*float64(len(p)-r)))
		adjusted[i] = largest
	}
	return adjusted
}

func increasing(p []float64) []int {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	return order
}
