package account

// This file holds sets of features, such as the genes of a pathway, and tests of whether a component stands
// for the members of a set more than for all other features: Mann and Whitney's test on what the component
// stands for, with Benjamini and Hochberg's correction over all sets and components. Members of a set go
// together in most data, whatever the component, and the test takes them to be independent: p-values order
// the sets, and are too small as chances.

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// Set is a set of features, by their indices.
type Set struct {
	Name    string
	Members []int
}

// leastMembers is how many members a set must have among the features.
const leastMembers = 5

// ReadSets reads a GMT file: a line a set, its name, a description and its members, separated by tabs. Sets
// with fewer than five members among the features, or with fewer than five features beside them, are left
// out; few counts them. It is an error where no set is left.
func ReadSets(text string, features []string) (sets []Set, few int, err error) {
	index := map[string]int{}
	for i := len(features) - 1; i >= 0; i-- { // the first of a name
		index[features[i]] = i
	}
	line := 0
	for l := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line++
		cells := strings.Split(strings.TrimRight(l, "\r\n"), "\t")
		if len(cells) == 1 && strings.TrimSpace(cells[0]) == "" {
			continue
		}
		if len(cells) < 3 {
			return nil, 0, errors.New("line " + strconv.Itoa(line) + " is no set: a line of a GMT file has " +
				"a name, a description and members, with tabs between")
		}
		s, seen := Set{Name: cells[0]}, map[int]bool{}
		for _, name := range cells[2:] {
			if i, is := index[strings.TrimSpace(name)]; is && !seen[i] {
				seen[i] = true
				s.Members = append(s.Members, i)
			}
		}
		if n := len(s.Members); n < leastMembers || len(features)-n < leastMembers {
			few++
			continue
		}
		sets = append(sets, s)
	}
	if len(sets) == 0 {
		return nil, few, errors.New("no set has five members among the features, and five features beside " +
			"them: names in both must be of one kind, such as gene symbols")
	}
	return sets, few, nil
}

// SetTest is that of a set against a component.
type SetTest struct {
	Component int
	Set       *Set
	Above     float64 // the chance that the component stands more for a member than for another feature
	P, Q      float64 // NaN where the component stands for all alike
}

// Weight is what a component stands for a feature, in [0,1]: its share in the feature's mixture times the
// explained part of the feature; below 0 where the feature falls as the component rises.
func Weight(u, share float64, of quantmf.Goodness) float64 {
	if !(of.Explained > 0) {
		return 0
	}
	return math.Copysign(share*of.Explained, u) + 0
}

// AgainstSets tests each component against each set.
func AgainstSets(u, shares quantmf.Mat, goodness []quantmf.Goodness, sets []Set) (tests []SetTest) {
	if len(sets) == 0 {
		return nil // and nobody may know the goodness
	}
	var p []float64
	weights := make([]float64, u.Rows)
	for c := range u.Cols {
		for i := range weights {
			weights[i] = Weight(u.At(i, c), shares.At(i, c), goodness[i])
		}
		ranks := RanksOf(weights)
		for s := range sets {
			t := SetTest{Component: c, Set: &sets[s]}
			t.Above, t.P = MannWhitney(ranks, sets[s].Members)
			tests, p = append(tests, t), append(p, t.P)
		}
	}
	for i, q := range BenjaminiHochberg(p) {
		tests[i].Q = q
	}
	return tests
}
