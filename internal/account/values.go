package account

// This file holds warnings of values that make what is said of unseen values look better, or about something
// else, than a reader would think: features that are copies of others, one feature that has most of what
// differs between samples, and samples that look like features.

import (
	"math"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// Values looks at the rows of a matrix, one after the other.
type Values struct {
	seen    map[uint64]bool // hashes of rows
	copies  []int           // of an earlier row
	visible []float64       // the numbers of values
	sizes   []float64       // the mean magnitude of each row
	sums    []float64       // of magnitudes, of each column
	counts  []float64       // of what is added there
	skewed  int             // rows with a tail of high values
}

// Add looks at the next row. Rows without two different values are no copies of one another.
func (v *Values) Add(row []float64) {
	if v.sums == nil {
		v.sums, v.counts = make([]float64, len(row)), make([]float64, len(row))
	}
	size, n := 0.0, 0.0
	for j, x := range row {
		if x == x {
			n++
			v.sums[j] += math.Abs(x)
			v.counts[j]++
			size += math.Abs(x)
		}
	}
	sum, varies := Fingerprint(row)
	if varies && v.seen[sum] {
		v.copies = append(v.copies, len(v.visible))
	}
	if v.seen == nil {
		v.seen = map[uint64]bool{}
	}
	v.seen[sum] = true
	if skewness(row) > 1 {
		v.skewed++
	}
	v.visible = append(v.visible, n)
	v.sizes = append(v.sizes, size/n)
}

// Fingerprint is a hash of a row, the same of 0 and of -0, and of all missing values; varies tells whether
// the row has two different values.
func Fingerprint(row []float64) (sum uint64, varies bool) {
	const prime = 1099511628211 // FNV-1a, a number at a time
	sum = 14695981039346656037
	first := math.NaN()
	for _, x := range row {
		if x != x {
			x = math.NaN()
		} else if first != first {
			first = x
		}
		varies = varies || x == x && x != first
		sum = (sum ^ math.Float64bits(x+0)) * prime
		sum ^= sum >> 29
	}
	return sum, varies
}

// Skewed tells whether most rows have a tail of high values, as amounts have that vary by factors: a skewness
// above 1 (2 is that of an exponential distribution).
func (v *Values) Skewed() bool { return 2*v.skewed > len(v.visible) }

// skewness is the mean cube of the values in standard deviations from their mean, 0 where all are equal.
func skewness(row []float64) float64 {
	mean, most, n := 0.0, 0.0, 0.0
	for _, x := range row {
		if x == x {
			n++
			mean += (x - mean) / n
		}
	}
	for _, x := range row {
		if x == x {
			most = max(most, math.Abs(x-mean))
		}
	}
	if most == 0 {
		return 0
	}
	square, cube := 0.0, 0.0
	for _, x := range row {
		if x == x { // no power overflows or vanishes
			z := (x - mean) / most
			square += float64(z * z / n)
			cube += float64(z * z * z / n)
		}
	}
	return cube / (square * math.Sqrt(square))
}

// Logarithm says that a logarithm first would do better, "" where that is not plain: worse is the share by
// which the loss of hidden values under a fit of log(1+x) exceeds that of the model.
func Logarithm(worse, stdErr float64) string {
	if !(worse < -0.01 && worse < -2*stdErr) {
		return ""
	}
	return "amounts are skewed, and a fit of log(1+x) predicts hidden values " + percent(-worse, stdErr) +
		" better, in the units of the table: try -log1p"
}

// Visible are the numbers of values of the features, without those that are missing.
func Visible(x quantmf.Mat) []float64 {
	visible := make([]float64, x.Rows)
	for i := range visible {
		for _, v := range x.Row(i) {
			if v == v {
				visible[i]++
			}
		}
	}
	return visible
}

// Explained is that of the values that were looked at.
func (v *Values) Explained(goodness []quantmf.Goodness) float64 {
	return Explained(goodness, v.visible)
}

// Explained is the share of the differences between samples that a model explains of the values that it was
// fitted to, visible ones of each feature; 1 where there are no differences.
func Explained(goodness []quantmf.Goodness, visible []float64) float64 {
	left, spread := 0.0, 0.0
	for i, g := range goodness {
		left += float64(g.Divergence * visible[i])
		spread += float64(g.Spread * visible[i])
	}
	if spread == 0 {
		return 1
	}
	return 1 - left/spread
}

// farApart is the ratio of the mean values of two samples from which they look like features, each with a
// unit of its own.
const farApart = 300

// apart is the largest ratio of two means above 0.
func apart(means []float64) float64 {
	low, high := math.Inf(1), 0.0
	for _, m := range means {
		if m > 0 {
			low, high = min(low, m), max(high, m)
		}
	}
	if high == 0 {
		return 1
	}
	return high / low
}

// fewFeatures is the number below which one feature may well have more than half of what differs.
const fewFeatures = 10

// Remarks returns the warnings, with the names of features.
func (v *Values) Remarks(goodness []quantmf.Goodness, names []string) (words []string) {
	if n := len(v.copies); n > 0 {
		var named []string
		for _, i := range v.copies[:min(n, 3)] {
			named = append(named, names[i])
		}
		are := " features are copies of earlier ones ("
		if n == 1 {
			are = " feature is a copy of an earlier one ("
		}
		words = append(words, strconv.Itoa(n)+are+strings.Join(named, ", ")+
			"): what is hidden of one is seen in "+
			"the other, so unseen values are predicted better than those of new samples will be")
	}
	means := make([]float64, len(v.sums))
	for j := range means {
		means[j] = v.sums[j] / v.counts[j]
	}
	if across := apart(means); across > farApart && across > 10*apart(v.sizes) {
		words = append(words, "the mean values of samples lie up to "+
			strconv.FormatFloat(across, 'f', 0, 64)+" times apart, those of features far less: if the file "+
			"has samples in rows, give -transpose")
	}
	all, most := 0.0, 0
	spread := func(i int) float64 { return float64(goodness[i].Spread * v.visible[i]) }
	for i := range goodness {
		all += spread(i)
		if spread(i) > spread(most) {
			most = i
		}
	}
	if len(goodness) >= fewFeatures && spread(most) > all/2 {
		words = append(words, names[most]+" alone has "+percent(spread(most)/all, 0)+" of all that differs "+
			"between samples: what is predicted and explained is mostly of it")
	}
	return words
}
