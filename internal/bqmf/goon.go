package bqmf

// This file holds a start from what another model knows of the rows: its u_i, S_i and τ_i. α follows from
// these as it does in an epoch. Columns are placed by them first, v and ρ in turn, all else as it is: where
// they are those of the model, this is where its fit has ended.

// GoOn gives the fit, which has room for rank components, the state that p leaves for the columns of the
// problem. Of p it takes the components of most relevance. Rows that are constant in p are unknown. Where the
// pool's context has ended it has no meaning.
func (q *Problem) GoOn(f *Fit, p *Posterior) {
	k := min(f.K, p.K)
	f.Resize(k)
	f.GoesOn()
	pick := newPicker(upTo(k), nil)
	sizes := make([]float64, k)
	for a, i := range q.Active {
		f.Tau[a] = 1
		if p.Tau[i] > 0 {
			f.Tau[a] = p.Tau[i]
			copy(f.rowU(a), p.rowU(i)[:k])
			pick.fill(f.packU(a), p.packU(i))
		}
		for c := range sizes {
			sizes[c] += diagonal(f.packU(a), c)
		}
	}
	f.relevance(sizes)
	for j := range f.Rho {
		f.Rho[j] = 1
	}
	for step := range placeSteps {
		f.stepV(step * noiseFrom) // the first one has no V to tell noise by
	}
}

// GoesOn tells the fit that its state has the epochs behind it before which no fit rests.
func (f *Fit) GoesOn() { f.begun, f.Moved = leastSteps, 1 }
