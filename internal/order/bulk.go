package order

import "slices"

// Bulk returns the lowest and the highest of v, at least one value, but for far ones: those beyond the
// shortest interval that holds 49 in 50 of the values by more than three times its length. So at most one in
// fifty is far, and the others would take less than a quarter of an axis that shows all. Where that interval
// is a point none is.
func Bulk(v []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	count := n - (n+49)/50 // that the interval holds
	if count < 2 {
		return s[0], s[n-1]
	}
	from := 0
	for a := range n - count + 1 {
		if s[a+count-1]-s[a] < s[from+count-1]-s[from] {
			from = a
		}
	}
	low, high = s[from], s[from+count-1]
	reach := float64(3 * (high - low))
	if reach == 0 {
		return s[0], s[n-1]
	}
	first, _ := slices.BinarySearch(s, low-reach)
	behind, _ := slices.BinarySearch(s, high+reach)
	for behind < n && s[behind] == high+reach {
		behind++
	}
	return s[first], s[behind-1]
}
