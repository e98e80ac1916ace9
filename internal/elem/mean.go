package elem

// Mean returns the mean of v, whose sum need not be finite.
func Mean(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x / float64(len(v))
	}
	return s
}
