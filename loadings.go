package quantmf

// This file holds the components of a BQMF turned for reading: internal/bqmf/loadings.go.

// Loadings returns how the scale of each feature goes with each of r axes, d × r, and the posterior deviation
// of that. r is the number of components that are alive. The axes are uncorrelated over the samples and have
// variance 1, so a loading is a correlation; they are turned to simple structure (varimax), so that each goes
// with few features and plainly. A loading of less than two deviations is none that the data speak for. The
// zero value, and a model whose fields have been changed, have none. Cost: dr² for each pass over all pairs
// of axes, at most 50.
func (m *BQMF) Loadings() (mean, deviation Mat) {
	if usable(m) != nil {
		return Mat{}, Mat{}
	}
	a, b, r := m.model.Loadings()
	d := m.model.D
	return Mat{Rows: d, Cols: r, Stride: r, Data: a}, Mat{Rows: d, Cols: r, Stride: r, Data: b}
}
