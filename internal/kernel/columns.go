package kernel

// The loop of a step of V in Go: quadratic problems with bounds, one a column, each with a matrix of its own.

// Entries of columns lie in rows of Wide numbers, a column a place, and an entry has six such rows, one after the other.
const (
	Wide = 32

	columnX       = iota - 1 // where the entry is
	columnG                  // the gradient there
	columnH                  // the curvature along it, raised
	columnInverse            // 1 over that, 0 where it counts as none: scratch
	columnLow                // the bounds of the entry
	columnHigh
	columnRows
)

// Column is the rows of one entry of up to Wide columns: see [Descend].
type Column struct{ X, G, H, Low, High []float64 }

// ColumnNumbers is how many numbers the rows of an entry are.
const ColumnNumbers = columnRows * Wide

// ColumnOf returns the rows of entry c for n columns.
func ColumnOf(s []float64, c, n int) Column {
	s = s[c*ColumnNumbers : (c+1)*ColumnNumbers]
	row := func(i int) []float64 { return s[i*Wide : i*Wide+n] }
	return Column{row(columnX), row(columnG), row(columnH), row(columnLow), row(columnHigh)}
}

// Descend makes sweeps of coordinate descent, in each of n columns, towards the least of g·x + xᵀAx/2 within bounds,
// and leaves it in x. s has the rows of the k entries ([ColumnOf]), g being the gradient at x = 0; a has rows of n
// numbers, one for each pair (c,b) with b <= c, and the curvature along an entry is that of its row H, which may be more than
// A says. Where it is not above 1e-250, or where the gradient is not a number, the entry stays. n is of whole blocks, at most Wide.
func Descend(s, a []float64, k, n, sweeps int) {
	if n%Lanes != 0 || n > Wide {
		panic("kernel: columns that are no whole blocks")
	}
	descend(s[:k*ColumnNumbers], a[:k*(k+1)/2*n], k, n, sweeps)
}

const leastCurvature = 1e-250

func descend_g(s, a []float64, k, n, sweeps int) {
	var scratch [Wide]float64
	step := scratch[:n]
	for c := range k {
		row := s[c*ColumnNumbers : (c+1)*ColumnNumbers]
		x, h, inverse := row[:n], row[columnH*Wide:][:n], row[columnInverse*Wide:][:n]
		for j, v := range h {
			inverse[j] = 0
			if v > leastCurvature {
				inverse[j] = 1 / v
			}
		}
		moveColumns(s, a, x, a[(c+1)*(c+2)/2*n-n:][:n], c, k)
	}
	for range sweeps {
		for c := range k {
			row := s[c*ColumnNumbers : (c+1)*ColumnNumbers]
			x, g, h, inverse := row[:n], row[columnG*Wide:][:n], row[columnH*Wide:][:n], row[columnInverse*Wide:][:n]
			low, high := row[columnLow*Wide:][:n], row[columnHigh*Wide:][:n]
			for j, v := range x {
				to := v - float64(g[j]*inverse[j])
				if to != to {
					to = v
				}
				to = min(max(to, low[j]), high[j])
				x[j], step[j] = to, to-v
			}
			moveColumns(s, a, step, h, c, k)
		}
	}
}

// moveColumns adds to the gradients what steps of entry c do to them, diagonal being the curvatures along it.
func moveColumns(s, a, step, diagonal []float64, c, k int) {
	n := len(step)
	pair := c * (c + 1) / 2
	for b := range k {
		by := diagonal
		switch {
		case b < c:
			by = a[(pair+b)*n:]
		case b > c:
			by = a[(b*(b+1)/2+c)*n:]
		}
		g := s[b*ColumnNumbers+columnG*Wide:][:n]
		by = by[:n]
		for j, v := range step {
			g[j] += float64(by[j] * v)
		}
	}
}
