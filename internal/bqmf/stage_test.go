package bqmf

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
)

// stages returns a table of which every third row is the sum of the two before it, one is bent, and one is
// noise alone; the model of a fit of it, and what makes its second stage.
func stages(t *testing.T, d, n int, hidden float64) (q *Problem, s *stager, p *pool.Pool) {
	src := random.Split(3, 77)
	rows := matrix(d, n, func(int, int) float64 { return normal(&src) })
	for i := range rows {
		for j := range rows[i] {
			switch {
			case i == d-2:
				rows[i][j] = rows[0][j]*rows[0][j] + 0.1*normal(&src)
			case i%3 == 2:
				rows[i][j] = rows[i-1][j] + rows[i-2][j] + 0.1*normal(&src)
			}
		}
	}
	for i := range rows {
		for j := range rows[i] {
			if src.Float64() < hidden {
				rows[i][j] = math.NaN()
			}
		}
	}
	q = problemOf(rows...)
	p = Workers(t, 2)
	m := q.fitted(2, 8, p)
	s = q.newStager(p, q.leaveOut(m, p), len(q.Active), m.K)
	return q, s, p
}

// slowRegression is what a ridge regression of y on lines says at column j, made from some columns; count is
// |S| of its penalty.
func slowRegression(lines [][]float64, y []float64, over []int32, ridge, count float64, j int) float64 {
	sum := meanOver(y, over)
	for r, b := range slowBeta(lines, y, over, ridge*count) {
		sum += b * (lines[r][j] - meanOver(lines[r], over))
	}
	return sum
}

// slowBeta is β of such a regression, by plain normal equations.
func slowBeta(lines [][]float64, y []float64, over []int32, penalty float64) []float64 {
	off := func(line []float64) (from []float64) { // the mean
		mean := meanOver(line, over)
		for _, c := range over {
			from = append(from, line[c]-mean)
		}
		return from
	}
	var centred, a [][]float64
	for _, line := range lines {
		centred = append(centred, off(line))
	}
	for r, line := range centred {
		a = append(a, times(centred, line))
		a[r][r] += penalty
	}
	inverse, _ := Inverse(a)
	return times(inverse, times(centred, off(y)))
}

func meanOver(line []float64, columns []int32) (sum float64) {
	for _, c := range columns {
		sum += line[c] / float64(len(columns))
	}
	return sum
}

// compared returns the room of the last compare of row k, and of its observed cells the places, and the means
// without them.
func compared(s *stager, k int) (r *stageRoom, places []int32, without []float64) {
	r = s.room(0)
	s.compare(r, k, k+1)
	s.q.data.Rows[k].Each(s.q.n, func(j int) {
		places, without = append(places, int32(j)), append(without, s.f.means[k][j])
	})
	return r, places, without
}

// bothKinds are stages whose regressions are of both kinds, by kindWeights in the first rows.
func bothKinds(t *testing.T) (q *Problem, s *stager, p *pool.Pool) {
	q, s, p = stages(t, 9, 40, 0.15)
	s.recipes = [regressions]recipe{{kind: linear, size: 5, ridge: 0.01},
		{kind: radial, size: radialMost, length: 1.5, ridge: 0.1}}
	s.fill(p, -1)
	return q, s, p
}

var kindWeights = [][regressions]float64{{1, 0}, {0, 1}, {0.25, 0.5}}

// slowStage is what such a stage says of column j of row k, made from some columns where all other rows are
// those of view; count is |S| of the penalties.
func slowStage(s *stager, view [][]float64, k int, metric []float64, over []int32, count int, factors float64,
	j int) float64 {
	w := kindWeights[k]
	var lines [regressions][][]float64
	for _, of := range nearestRows(s, k)[:5] {
		lines[linear] = append(lines[linear], view[of])
	}
	for _, ref := range s.refs {
		lines[radial] = append(lines[radial], radialLine(s, view, metric, ref))
	}
	sum := (1 - w[0] - w[1]) * factors
	for kind, w := range w {
		if w > 0 {
			sum += w * slowRegression(lines[kind], s.line(s.filled, k), over, s.recipes[kind].ridge,
				float64(count), j)
		}
	}
	return sum
}

// TestStageIsTheRegression: what the second stage says of an observed cell is the regression without the
// cell, made anew, and of a hidden one the regression over all observed cells; each by regressors of both
// kinds.
func TestStageIsTheRegression(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	q, s, _ := bothKinds(t)
	for k, w := range kindWeights {
		s.weights[k] = w
		view := slowView(s, k)
		stage := s.newStage(q.d)
		r, places, before := compared(s, k)
		without, told := slices.Clone(before), slices.Clone(s.f.means[k])
		if !s.row(r, stage, k, places, without) {
			t.Fatal("there is no stage")
		}
		says := func(over []int32, factors float64, j int) float64 {
			return slowStage(s, view, k, stage.Rows[q.Active[k]].Metric, over, len(places), factors, j)
		}
		for h, j := range places {
			Close(t, without[h], says(slices.Delete(slices.Clone(places), h, h+1), before[h], int(j)), 1e-7,
				"an observed cell without it")
		}
		for j := range q.n {
			Close(t, stage.mean(q.Active[k], j, told[j]), says(places, told[j], j), 1e-7, "a cell")
		}
	}
}

// slowView is A as row k sees it: of a hidden cell what the factors say of it by the posterior of the sample
// without row k, made anew where row k is observed; less of it where the cell weighs more than 1 - slack.
func slowView(s *stager, k int) (view [][]float64) {
	p, row := s.q.reader.p, s.q.Active[k]
	u := p.rowU(row)
	for l := range s.q.Active {
		view = append(view, slices.Clone(s.line(s.filled, l)))
	}
	for j, x := range s.q.row(row) {
		if x != x {
			continue
		}
		v := make([]float64, p.K)
		p.column(v, j)
		spread := full(p.packV(j), p.K, v)
		a := p.precision(row, j)
		left := 1 - a*dot(u, times(spread, u))
		inverse, _ := Inverse(spread)
		e := &equations{times(inverse, v), inverse}
		e.add(-a, s.line(s.q.data.Y, k)[j], u, nil) // takes the cell away
		moved, _ := e.solve()
		for l, i := range s.q.Active {
			for c := range v {
				if y := s.q.row(i)[j]; y != y {
					view[l][j] += p.U[i*p.K+c] * (moved[c] - v[c]) * left / max(slack, left)
				}
			}
		}
	}
	return view
}

// radialLine is the regressor about a sample by a metric of the rows of the matrix, of which a row sees view.
func radialLine(s *stager, view [][]float64, metric []float64, ref int) []float64 {
	line := make([]float64, s.q.n)
	for j := range line {
		square := 0.0
		for l, g := range metric {
			off := view[s.active[l]][j] - s.line(s.filled, s.active[l])[ref]
			square += g * off * off
		}
		line[j] = math.Exp(-square)
	}
	return line
}

// nearestRows are the other rows by falling |cosine| of their lines with that of row k.
func nearestRows(s *stager, k int) (rows []int) {
	cosine := func(b int) float64 {
		x, y := s.line(s.filled, k), s.line(s.filled, b)
		return math.Abs(dot(x, y)) / math.Sqrt(dot(y, y))
	}
	for b := range s.q.Active {
		if b != k {
			rows = append(rows, b)
		}
	}
	slices.SortFunc(rows, func(a, b int) int { return cmp.Compare(cosine(b), cosine(a)) })
	return rows
}

// TestStageChooses: rows that are sums of others are told by them, a bent one by samples that are alike, and
// noise is told no worse. The inner cells that the choice is made by touch no regression of their row.
func TestStageChooses(t *testing.T) {
	q, s, p := stages(t, 5, 300, 0.1)
	s.choose(p)
	s.fill(p, -1)
	stage := s.newStage(q.d)
	for k := range q.Active {
		r, places, without := compared(s, k)
		off := func(without []float64) (sum float64) {
			for h, j := range places {
				if q.data.Cols[j].Count == q.d { // a sum without one of its rows is told by nothing
					sum += math.Pow(s.line(q.data.Y, k)[j]-without[h], 2)
				}
			}
			return sum
		}
		before := off(without)
		s.row(r, stage, k, places, without)
		if left := off(without) / before; left > []float64{0.7, 0.7, 0.7, 0.8, 1.05}[k] {
			t.Errorf("row %d is off by %.2f of before, by the weights %v", k, left, s.weights[k])
		}
	}
	if s.weights[3][radial] == 0 || s.weights[2] == [regressions]float64{} {
		t.Errorf("a bent row has the weights %v, a sum %v", s.weights[3], s.weights[2])
	}
	beta := func() []float64 {
		s.fill(p, 3)
		r := s.room(0)
		s.compare(r, 2, 3)
		s.take(r, 2, 3)
		s.gather(r, 2, &s.recipes[linear])
		return slices.Clone(r.solve(&s.recipes[linear]))
	}
	was := beta()
	touched := 0
	q.data.Rows[2].Each(q.n, func(j int) {
		if inner(2, j, 3) {
			q.data.Y[2*kernel.Pad(q.n)+j] += 7
			touched++
		}
	})
	if touched < 20 || !slices.Equal(beta(), was) {
		t.Errorf("%d inner cells, and they touch the regression", touched)
	}
}

// TestStageShrink: a deviation becomes smaller as far as rows are observed that tell of the cell.
func TestStageShrink(t *testing.T) {
	rows := []StageRow{{Shrink: 0.5, Of: []int32{3, 1}, Weights: []float64{2, -1}},
		{Shrink: 0.5, About: []float64{1}}}
	m := &Stage{Rows: rows, part: [][]float64{{}, {}, nil}, words: 2,
		observed: []uint64{0, 0, 0b1010, 0, 0, 0, 0b1100, 1 << 5}}
	m.observed[2] |= 0
	m.observed[3] = 1 << 5
	to := make([]float64, 70)
	m.shrinks(to, 0)
	for j, want := range map[int]float64{0: 1, 1: 1 - 0.75*0.2, 2: 1 - 0.75*0.8, 3: 0.25, 69: 0.25, 68: 1} {
		Close(t, to[j], want, 1e-15, "a variance")
		y := []float64{1, math.NaN(), 1, math.NaN()}
		for h, l := range []int{1, 3} {
			if m.observed[2*l+j/64]>>(j%64)&1 != 0 {
				y[[]int{1, 3}[h]] = 1
			}
		}
		Close(t, rows[0].shrink(y), want, 1e-15, "that of a new sample")
	}
	m.shrinks(to, 1)
	Close(t, to[0], 0.25, 0, "a variance by samples alone")
	m.shrinks(to, 2)
	Close(t, to[0], 1, 0, "a variance without a stage")
}

// TestDecodeStage: numbers are those of the stage that was encoded, and any of them that is cut off, out of
// range or too many is a problem.
func TestDecodeStage(t *testing.T) {
	q, s, p := stages(t, 9, 40, 0.15)
	s.choose(p)
	s.fill(p, -1)
	stage := s.newStage(q.d)
	for k := range q.Active {
		r, places, without := compared(s, k)
		s.row(r, stage, k, places, without)
	}
	of := &Posterior{D: q.d, N: q.n, Tau: slices.Repeat([]float64{1}, q.d)}
	words, parts := stage.encode(q.n)
	numbers := slices.Concat(parts...)
	read := func(words []uint64, numbers []float64) error {
		return of.readStage(fileOf(t, section.Words("STGW", words...), section.Floats("STGF", numbers)))
	}
	if err := read(words, numbers); err != nil || stage.settled() == nil {
		t.Fatal(err)
	}
	again, more := of.Stage.encode(q.n)
	if !slices.Equal(again, words) || !slices.Equal(slices.Concat(more...), numbers) {
		t.Error("encoded again, it is another one")
	}
	for cut := range words {
		if read(words[:cut], numbers) == nil {
			t.Fatalf("%d of %d words are enough", cut, len(words))
		}
	}
	for cut := range numbers {
		if read(words, numbers[:cut]) == nil {
			t.Fatalf("%d of %d numbers are enough", cut, len(numbers))
		}
	}
	if read(words, append(numbers, 1)) == nil {
		t.Error("a number too many is no problem")
	}
	row := slices.Index(words, 1) + 2 // of the first row with a stage: the first that it is told by
	for _, bad := range []uint64{uint64(q.d), 1 << 40, uint64(slices.Index(words, 1))} {
		with := slices.Clone(words)
		with[row] = bad
		if err := read(with, numbers); !failsIn("STGW", err) && words[row-1] > 0 {
			t.Errorf("a row told by row %d: %v", bad, err)
		}
	}
}
