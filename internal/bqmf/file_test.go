package bqmf

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/limit"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
)

// stored is three curves as a file has them: one of a row in which a value comes twice, one of a row of
// distinct values, one of a constant row.
func stored() []Curve {
	curves := make([]Curve, 3)
	for i, x := range [][]float64{{0, 0, 1, 3, 7, 2}, {5, 1, 2, 4, 3, 0.5}, {2, 2, 2, 2, 2, 2}} {
		c := &curves[i]
		var s scaler
		s.scale(c, make([]float64, len(x)), x, nil, false)
		(&mapLearner{x: x, p: []float64{0.5, 0.25, 1.5, 2.5, 5, 2}, cells: ones(x)}).fitMap(c, 1, true)
		c.Levels, c.Spread, c.Floor = LevelsAt, 0.5, 0.125
	}
	return curves
}

// fileOf returns a file of some sections.
func fileOf(t *testing.T, of ...section.Section) *section.File {
	t.Helper()
	var tags []string
	for _, s := range of {
		tags = append(tags, s.Tag)
	}
	f := Must(section.Decode(section.Encode(section.BQMF, of), section.BQMF, section.KindName, tags, nil))(t)
	return f
}

// failsIn tells whether an error is of a section.
func failsIn(tag string, err error) bool {
	return err != nil && strings.Contains(err.Error(), "section "+tag+":")
}

// TestDecode: numbers are those of the curves that were encoded, with the same knots where no value comes
// twice. Any one of the numbers that is not finite, or out of range or order, is a problem of the part that
// it is in, and so is a number too few or too many.
func TestDecode(t *testing.T) {
	curves := stored()
	counts, rows, parts := encodeCurves(curves)
	knots := slices.Concat(parts...)
	read := func(counts []uint64, rows, knots []float64, signed bool) ([]Curve, error) {
		m := &Model{Posterior: &Posterior{D: 3, Tau: []float64{1, 1, 0}}}
		err := m.readCurves(fileOf(t, section.Words("CURV", counts...), section.Floats("CURR", rows),
			section.Floats("KNOT", knots)), signed)
		return m.Curves, err
	}
	got, err := read(counts, rows, knots, false)
	if err != nil || !reflect.DeepEqual(got, curves) {
		t.Fatalf("%v: %+v is decoded as %+v", err, curves, got)
	}
	again, _, parts := encodeCurves(got)
	if !slices.Equal(again, counts) || !slices.Equal(slices.Concat(parts...), knots) || counts[1] == 0 ||
		counts[4] != 0 {
		t.Errorf("counts are %v, and %v when they are encoded again", counts, again)
	}
	refuses := func(what, tag string, counts []uint64, rows, knots []float64, signed bool) {
		t.Helper()
		if _, err := read(counts, rows, knots, signed); !failsIn(tag, err) {
			t.Errorf("%s: %v, want an error in %s", what, err, tag)
		}
	}
	with := func(v []float64, at int, to float64) []float64 {
		v = slices.Clone(v)
		v[at] = to
		return v
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 2e60, -2e60} {
		for at := range rows {
			refuses("a number of a row", "CURR", counts, with(rows, at, bad), knots, true)
		}
		for at := range knots {
			refuses("a knot", "KNOT", counts, rows, with(knots, at, bad), true)
		}
	}
	for at, v := range rows {
		switch k := at % rowNumbers; {
		case k == 0 || k == 1: // the ends
			refuses("an end beyond the scale", "CURR", counts, with(rows, at, float64(2*k-1)*1e9), knots,
				true)
		case k == 2 || k == 3 || k == 6: // spread, floor, slope
			refuses("a negative number", "CURR", counts, with(rows, at, -0.1), knots, true)
			if k != 3 {
				refuses("too large a number", "CURR", counts, with(rows, at, 2*limit.Moment), knots, true)
			}
		case k == rowNumbers-1:
			refuses("too large a level", "CURR", counts, with(rows, at, 2*limit.Moment), knots, true)
			fallthrough
		case k > 7:
			refuses("levels that stay", "CURR", counts, with(rows, at, rows[at-1]), knots, true)
			refuses("levels that fall", "CURR", counts, with(rows, at-1, v+1), knots, true)
		}
	}
	// The lists of the knots: y, x, y and x with mass, where steps begin, and where they lead. The second x
	// and the last may stay.
	at := 0
	for k, list := range []int{0, 1, 2, 3, 4, 5, 0, 1, 4, 5, 0, 1, 4, 5} {
		curve := []int{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}[k]
		n := int(counts[3*curve+list/2])
		for h := at; h < at+n; h++ {
			if h > at && list != 3 && list != 5 {
				refuses("knots that stay", "KNOT", counts, rows, with(knots, h, knots[h-1]), false)
			}
			if h > at {
				refuses("knots that fall", "KNOT", counts, rows, with(knots, h, knots[h-1]-1e-3), true)
			}
			if list%2 == 1 && h == at {
				refuses("a negative value", "KNOT", counts, rows, with(knots, h, -0.1), false)
				if _, err := read(counts, rows, with(knots, h, -0.1), true); err != nil && n > 1 {
					t.Errorf("a negative value of signed ones: %v", err)
				}
			}
		}
		if at += n; n > 0 && (list == 0 || list == 2) {
			refuses("a knot too far", "KNOT", counts, rows, with(knots, at-1, 2*limit.Moment), true)
		}
	}
	for k := range knots {
		if _, err := read(counts, rows, knots[:k], false); err == nil {
			t.Errorf("%d of %d knots are taken", k, len(knots))
		}
	}
	refuses("a knot too many", "KNOT", counts, rows, append(slices.Clone(knots), 9), false)
	for at := range counts {
		for _, n := range []uint64{1 << 20, 1 << 63, math.MaxUint64, math.MaxUint64 - 5} {
			c := slices.Clone(counts)
			c[at] = n
			refuses("a number of knots", "CURV", c, rows, knots, false)
		}
	}
	counts[6] = 0
	refuses("no knots", "CURV", counts, rows, knots, false)
}
