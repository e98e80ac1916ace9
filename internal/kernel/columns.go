package kernel

// The loops of a step of V in Go: quadratic problems with bounds, one a column, each with a matrix of its
// own.

// Entries of columns lie in rows of Wide numbers, a column a place, and an entry has six such rows, one after
// the other.
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

// Column is the rows of one entry of up to Wide columns: see [StepColumns].
type Column struct{ X, G, H, Low, High []float64 }

// columnNumbers is how many numbers the rows of an entry are.
const columnNumbers = columnRows * Wide

// ColumnOf returns the rows of entry c for n columns.
func ColumnOf(s []float64, c, n int) Column {
	s = s[c*columnNumbers : (c+1)*columnNumbers]
	row := func(i int) []float64 { return s[i*Wide : i*Wide+n] }
	return Column{row(columnX), row(columnG), row(columnH), row(columnLow), row(columnHigh)}
}

// ColumnsRoom is how many numbers the rows of k entries are.
func ColumnsRoom(k int) int { return k * columnNumbers }

// ColumnStep says how far [StepColumns] goes; internal/gauss has the meaning of its numbers.
type ColumnStep struct {
	Sweeps                       int
	Damp, Low, High, Rise, Share float64
}

// BeginColumns fills, of the rows of k entries of n columns ([ColumnOf]), X with V, G with -b and H with the
// diagonal of a, and mean, n numbers, with the means of the columns of V. The rows of V lie stride numbers
// apart, those of b n numbers; a is as [StepColumns] has it. n is of whole blocks, at most Wide.
func BeginColumns(s, a, b, v, mean []float64, k, n, stride int) {
	checkColumns(n)
	mean = mean[:n]
	clear(mean)
	share := [...]float64{1 / float64(k)}
	for c := range k {
		row, column, diagonal := v[c*stride:][:n], ColumnOf(s, c, n), c*(c+3)/2
		Accumulate(mean, share[:], row)
		copy(column.X, row)
		copy(column.H, a[diagonal*n:])
		Scale(column.G, b[c*n:(c+1)*n], -1)
	}
}

// StepColumns makes steps of n columns of V: s has the rows that BeginColumns filled, of which it reads X, G,
// H. It raises H by the share Damp of itself, makes sweeps of coordinate descent, in each column, towards the
// least of G·x + xᵀAx/2 within the bounds Low x and High x + Rise mean of the x at the start, and moves V by
// the share Share of the way. a has rows of n numbers, one for each pair (c,b) with b <= c, and the curvature
// along an entry is that of its row H, which may be more than A says. Where it is not above 1e-250, or where
// the gradient is not a number, the entry stays. What s has then is anything.
func StepColumns(s, a, v, mean []float64, k, n, stride int, step ColumnStep) {
	checkColumns(n)
	rise, share := [...]float64{step.Rise}, [...]float64{-step.Share}
	for c := range k {
		column := ColumnOf(s, c, n)
		Scale(column.H, column.H, 1+step.Damp)
		Scale(column.Low, column.X, step.Low)
		Scale(column.High, column.X, step.High)
		Accumulate(column.High, rise[:], mean[:n])
	}
	descend(s[:k*columnNumbers], a[:k*(k+1)/2*n], k, n, step.Sweeps)
	for c := range k {
		row, x := v[c*stride:][:n], ColumnOf(s, c, n).X
		residual(x, row) // the way back
		Accumulate(row, share[:], x)
	}
}

func checkColumns(n int) {
	if n%Lanes != 0 || n > Wide {
		panic("kernel: columns that are no whole blocks")
	}
}

const leastCurvature = 1e-250

// descend_g makes the sweeps of [StepColumns].
func descend_g(s, a []float64, k, n, sweeps int) {
	var scratch [Wide]float64
	step := scratch[:n]
	for c := range k {
		row := s[c*columnNumbers : (c+1)*columnNumbers]
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
			row := s[c*columnNumbers : (c+1)*columnNumbers]
			x, g, h, inverse := row[:n], row[columnG*Wide:][:n], row[columnH*Wide:][:n],
				row[columnInverse*Wide:][:n]
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
		g := s[b*columnNumbers+columnG*Wide:][:n]
		by = by[:n]
		for j, v := range step {
			g[j] += float64(by[j] * v)
		}
	}
}
