package account_test

import (
	"math"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
)

// TestValues: copies and a feature that has most of what differs are warned of, and nothing else is.
func TestValues(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	names := strings.Split("a b c d e f g h i j", " ")
	for name, c := range map[string]struct {
		rows   [][]float64
		spread float64 // of the last of ten features; the others have 1
		want   string  // between blanks, what each warning begins with
	}{
		"none":         {[][]float64{{1, 2}, {2, 1}, {1, nan}, {nan, 1}}, 5, ""},
		"a copy":       {[][]float64{{1, 2}, {2, 1}, {1, 2}}, 1, "1 feature is a copy of an earlier one (c)"},
		"with missing": {[][]float64{{1, nan, 2}, {1, 2, nan}, {1, nan, 2}}, 1, "1 feature is a copy"},
		"zeros":        {[][]float64{{0, 1}, {math.Copysign(0, -1), 1}}, 1, "1 feature is a copy"},
		"constant":     {[][]float64{{1, 1}, {1, 1}, {nan, 1}, {nan, 1}}, 1, ""},
		"five": {[][]float64{{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}, 1,
			"4 features are copies of earlier ones (b, c, d)"},
		"in rows": {[][]float64{{1, 900}, {2, 700}, {1, 800}, {2, 900}, {2, 800}, {1, 700}, {3, 900},
			{2, 850},
			{1, 950}, {2, 780}}, 1, "the mean values of samples lie up to "},
		"most": {nil, 11, "j alone has 55 % of all that differs"},
	} {
		var v account.Values
		goodness := make([]quantmf.Goodness, 10)
		for i := range goodness {
			row := []float64{float64(i), 77}
			if i < len(c.rows) {
				row = c.rows[i]
			}
			v.Add(row)
			goodness[i].Spread = 1
		}
		goodness[9].Spread = c.spread
		got := v.Remarks(goodness, names)
		if len(got) > 1 || (len(got) == 1) != (c.want != "") || len(got) == 1 &&
			!strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: %q", name, got)
		}
		if got := v.Remarks(goodness[:9], names); name == "most" && got != nil {
			t.Errorf("of few features: %q", got)
		}
	}
}
