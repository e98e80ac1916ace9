package order

import "math"

// MoreAbove tells whether so many more of n signs are above than below 0 that it is no chance, by two
// standard errors of the sign test.
func MoreAbove(n int, sign func(i int) int) bool {
	more := 0
	for i := range n {
		more += sign(i)
	}
	return float64(more) > 2*math.Sqrt(float64(n))
}
