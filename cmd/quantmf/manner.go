package main

// This file holds how values are missing, and known values hidden in the same way, for a check that says of
// the missing ones what will become of them. There are three ways. Of d features, n_ij is the number of
// samples that lack both i and j, and p_i the share that lack i.
//
//	at the end   the fit says that missing values look lower, or higher, than known ones: the lowest, or the
//	             highest, known values of a feature are hidden, as large a share as is missing
//	together     Σ (n_ij - e)² / Σ e over pairs of features, e = n p_i p_j, is about 1 where values are
//	             missing independently, and above togetherRatio here: some samples lack what another lacks
//	at random    else: by quantmf.HeldOut, of -categories as the others here

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/quantmf/quantmf"
)

// manner is one of these ways.
type manner int

const (
	atRandom manner = iota
	together
	lowEnd
	highEnd
)

// String is what the JSON object has.
func (m manner) String() string {
	return [...]string{"at random", "together", "low", "high"}[m]
}

// words are those of the summary after "did not see".
func (m manner) words() string {
	return [...]string{"", ", hidden together as missing values are",
		", the lowest of their features, as missing values seem to be",
		", the highest of their features, as missing values seem to be"}[m]
}

const (
	togetherRatio = 2   // twice what chance makes of it; of hundreds of pairs chance alone makes 1.2
	mostPaired    = 400 // features whose pairs are enough to tell by
	fewHidden     = 20  // hidden values that are too few for a check
)

// mannerOf tells how values of x are missing, given the warnings of a fit.
func mannerOf(x quantmf.Mat, warnings []error) manner {
	for _, w := range warnings {
		var unlike interface{ MissingShift() float64 }
		if errors.As(w, &unlike) {
			if unlike.MissingShift() < 0 {
				return lowEnd
			}
			return highEnd
		}
	}
	if missingTogether(x) > togetherRatio {
		return together
	}
	return atRandom
}

// missingTogether is Σ (n_ij - e)² / Σ e over pairs of at most mostPaired features that lack values.
func missingTogether(x quantmf.Mat) float64 {
	var lacking [][]uint64
	var share []float64
	for i := range x.Rows {
		set, count := make([]uint64, (x.Cols+63)/64), 0
		for j, v := range x.Row(i) {
			if v != v {
				set[j/64] |= 1 << (j % 64)
				count++
			}
		}
		if count > 0 {
			lacking, share = append(lacking, set), append(share, float64(count)/float64(x.Cols))
		}
	}
	step := (len(lacking) + mostPaired - 1) / mostPaired
	off, expected := 0.0, 0.0
	for i := 0; i < len(lacking); i += step {
		for l := 0; l < i; l += step {
			both := 0
			for w, set := range lacking[i] {
				both += bits.OnesCount64(set & lacking[l][w])
			}
			e := float64(x.Cols) * share[i] * share[l]
			off += (float64(both) - e) * (float64(both) - e)
			expected += e
		}
	}
	if expected == 0 {
		return 0
	}
	return off / expected
}

// hide returns a copy of x in which known values are hidden, too, in the manner of the missing ones, a share
// of all at most, and how many these are. Of the known values of a feature half stay at least, and of a
// sample two.
func (m manner) hide(x quantmf.Mat, src *rand.Rand, share float64) (given quantmf.Mat, count int) {
	given = x.Clone()
	known, left := make([]int, x.Cols), make([]int, x.Rows)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if v == v {
				known[j]++
				left[i]++
			}
		}
		left[i] /= 2
	}
	hide := func(i, j int) {
		if v := given.At(i, j); v == v && left[i] > 0 && known[j] > 2 {
			given.Set(i, j, math.NaN())
			known[j]--
			left[i]--
			count++
		}
	}
	most := share * float64(len(x.Data)-missing(x))
	if m == atRandom {
		for _, at := range src.Perm(len(x.Data)) {
			if float64(count) >= most {
				break
			}
			hide(at/x.Cols, at%x.Cols)
		}
		return given, count
	}
	if m == together {
		hideTogether(x, src, func(i, j int) bool {
			hide(i, j)
			return float64(count) < most
		})
		return given, count
	}
	for i := range x.Rows {
		row, places := x.Row(i), []int(nil)
		for j, v := range row {
			if v == v {
				places = append(places, j)
			}
		}
		slices.SortStableFunc(places, func(a, b int) int {
			if m == highEnd {
				a, b = b, a
			}
			return cmp.Compare(row[a], row[b])
		})
		// half to one and a half times as many, so that each check hides others
		some := float64(len(places)) * float64(x.Cols-len(places)) / float64(x.Cols)
		for _, j := range places[:min(int(some*(0.5+src.Float64())), len(places))] {
			hide(i, j)
		}
	}
	return given, count
}

// hideTogether calls hide for cells of samples in turn that another sample lacks, until it returns false.
func hideTogether(x quantmf.Mat, src *rand.Rand, hide func(i, j int) (more bool)) {
	var lacking []int
	for j := range x.Cols {
		for i := range x.Rows {
			if v := x.At(i, j); v != v {
				lacking = append(lacking, j)
				break
			}
		}
	}
	for _, j := range src.Perm(x.Cols) {
		of := lacking[src.IntN(len(lacking))]
		more := true
		for i := range x.Rows {
			if v := x.At(i, of); v != v {
				more = hide(i, j)
			}
		}
		if !more {
			return
		}
	}
}
