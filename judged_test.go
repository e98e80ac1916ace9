package quantmf

// Tests of what fits are judged by, and of which cells of a matrix have a part in
// what: expected values come from formulas written down here once more.

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/random"
)

// textbook is Δ(x, t) as books print it, for x, t > 0.
func textbook(beta, x, t float64) float64 {
	switch beta {
	case 1:
		return x*math.Log(x/t) - x + t
	case 0:
		return x/t - math.Log(x/t) - 1
	}
	return (math.Pow(x, beta) + (beta-1)*math.Pow(t, beta) - beta*x*math.Pow(t, beta-1)) / (beta * (beta - 1))
}

// meanOver is the mean of Δ(x, fit) over the cells that of picks.
func meanOver(beta float64, x, fit Mat, of func(i, j int) bool) float64 {
	sum, count := 0.0, 0
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if of(i, j) {
				sum += textbook(beta, v, fit.At(i, j))
				count++
			}
		}
	}
	return sum / float64(count)
}

func everyCell(int, int) bool { return true }

// TestRestartsObjective: of several seeds the one with the least loss and penalty
// together is returned, which is neither the first nor that of the least loss.
func TestRestartsObjective(t *testing.T) {
	ctx := context.Background()
	x := first(toy(5), 14)
	for i := range x.Data {
		x.Data[i] += 0.01
	}
	const seeds = 5
	means := func(m Mat, of func(float64) float64) float64 {
		sum := 0.0
		for i := range m.Rows {
			for _, v := range m.Row(i) {
				sum += of(v)
			}
		}
		return sum / float64(m.Rows*m.Cols)
	}
	same := func(v float64) float64 { return v }
	square := func(v float64) float64 { return math.Log(v) * math.Log(v) }
	for _, c := range []struct {
		name    string
		penalty float64
		from    uint64 // the first seed
		regular func(u, v Mat) float64
		fit     func(o ...FitOption) (Model, error)
		options []FitOption
	}{
		{"NMF", 10, 14, func(u, v Mat) float64 { return means(u, same) + means(v, same) },
			func(o ...FitOption) (Model, error) { return FitNMF(ctx, x, 3, o...) }, []FitOption{WithEpochs(3)}},
		{"QMF", 10, 0, func(u, v Mat) float64 { return (means(u, square) + means(v, square)) / 2 },
			func(o ...FitOption) (Model, error) { return FitQMF(ctx, x, 3, o...) }, []FitOption{WithEpochs(3), WithStart(StartUniform)}},
		{"QMFQ", 0, 0, func(u, v Mat) float64 { return 0 },
			func(o ...FitOption) (Model, error) { return FitQMFQ(ctx, x, 3, o...) }, []FitOption{WithEpochs(3), WithStart(StartUniform)}},
	} {
		opts := c.options
		if c.penalty > 0 {
			opts = append(opts, WithPenalty(c.penalty))
		}
		var losses, objectives []float64
		var models []Model
		for seed := range uint64(seeds) {
			m, err := c.fit(append(slices.Clone(opts), WithSeed(c.from+seed))...)
			if err != nil {
				t.Fatal(c.name, err)
			}
			u, v := factorsOf(m)
			loss := meanOver(1, x, m.Reconstruct(), everyCell)
			losses, objectives, models = append(losses, loss), append(objectives, loss+c.penalty*c.regular(u, v)), append(models, m)
		}
		want := slices.Index(objectives, slices.Min(objectives))
		if want == 0 || c.penalty > 0 && want == slices.Index(losses, slices.Min(losses)) {
			t.Errorf("%s: losses %v, with penalty %v: nothing is tested", c.name, losses, objectives)
		}
		best, err := c.fit(append(slices.Clone(opts), WithSeed(c.from), WithRestarts(seeds))...)
		if err != nil {
			t.Fatal(c.name, err)
		}
		u, v := factorsOf(best)
		wantU, wantV := factorsOf(models[want])
		closeTo(t, c.name+": U", u.Data, wantU.Data, 0)
		closeTo(t, c.name+": V", v.Data, wantV.Data, 0)
	}
}

// TestHeldOutFormula holds the losses of HeldOut to the mean divergence of the cells
// that were observed and that the fit did not get, and every row and column to two
// visible cells, or to what it has.
func TestHeldOutFormula(t *testing.T) {
	ctx := context.Background()
	x := first(toy(3), 9)
	x.Cols = 7
	x = x.Clone()
	for i := range x.Data {
		x.Data[i] += 0.1
	}
	for j := 1; j < 7; j++ { // a row of one observed cell, and one of two
		x.Set(4, j, math.NaN())
		if j > 1 {
			x.Set(5, j, math.NaN())
		}
	}
	type fitted struct{ seen, fit Mat }
	masks := map[string]int{} // how often
	for seed := range uint64(20) {
		var mu sync.Mutex
		var all []fitted
		fit := func(ctx context.Context, y Mat, rank int, opts ...FitOption) (*NMF, error) {
			m, err := FitNMF(ctx, y, rank, append(opts, WithEpochs(3))...)
			if err == nil {
				mu.Lock()
				all = append(all, fitted{y.Clone(), m.Reconstruct()})
				mu.Unlock()
			}
			return m, err
		}
		const repeats = 2
		p, err := HeldOut(ctx, x, fit, []Trial{{Rank: 2}}, Masks{Repeats: repeats, Share: 0.5, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != repeats {
			t.Fatalf("%d fits", len(all))
		}
		var want []float64
		for _, f := range all {
			var hidden strings.Builder
			for i, v := range f.seen.Data {
				if v != v {
					hidden.WriteString(itoa(i) + " ")
				}
			}
			masks[hidden.String()]++
			want = append(want, meanOver(1, x, f.fit, func(i, j int) bool { return x.At(i, j) == x.At(i, j) && f.seen.At(i, j) != f.seen.At(i, j) }))
			count := func(line, length int, at func(m Mat, line, k int) float64) {
				seen, had := 0, 0
				for k := range length {
					if v := at(f.seen, line, k); v == v {
						seen++
					}
					if v := at(x, line, k); v == v {
						had++
					}
				}
				if seen < min(had, 2) {
					t.Errorf("seed %d: %d of %d cells of a row or column %d are visible", seed, seen, had, line)
				}
			}
			for i := range x.Rows {
				count(i, x.Cols, func(m Mat, i, j int) float64 { return m.At(i, j) })
			}
			for j := range x.Cols {
				count(j, x.Rows, func(m Mat, j, i int) float64 { return m.At(i, j) })
			}
		}
		got := slices.Clone(p[0].Losses) // fits end in any order
		slices.Sort(got)
		slices.Sort(want)
		closeTo(t, "losses", got, want, 1e-12*want[1])
	}
	if len(masks) != 40 {
		t.Errorf("%d masks of 20 seeds, 2 repeats each", len(masks))
	}
}

// TestScoreOfSome: Score is the mean over the observed cells alone.
func TestScoreOfSome(t *testing.T) {
	ctx := context.Background()
	x := first(toy(2), 12)
	for i := range x.Data {
		x.Data[i] += 0.1
	}
	few := columnsOf(holed(x, 0.3), func(j int) bool { return j < 6 })
	for name, m := range threeModels(t, holed(x, 0.1), 2, WithMissingValues()) {
		v, err := m.Transform(ctx, few)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := factorsOf(m)
		fit := NewMat(few.Rows, few.Cols)
		for i := range fit.Rows {
			at := func(w float64) float64 { return w }
			switch m := m.(type) {
			case *QMF:
				f, err := m.Map(i)
				if err != nil {
					t.Fatal(err)
				}
				at = f.At
			case *QMFQ:
				f, err := m.Inflate(i)
				if err != nil {
					t.Fatal(err)
				}
				at = f.At
			}
			for j := range fit.Cols {
				w := 0.0
				for c := range u.Cols {
					w += u.At(i, c) * v.At(c, j)
				}
				fit.Set(i, j, at(w))
			}
		}
		want := meanOver(1, few, fit, func(i, j int) bool { return few.At(i, j) == few.At(i, j) })
		if got, err := m.Score(ctx, few); err != nil || !(math.Abs(got-want) <= 1e-9*want) {
			t.Errorf("%s: Score %v, %v; over the observed cells %v", name, got, err, want)
		}
	}
}

// TestResumeNamesOptions: every option that the result depends on is compared on
// resuming, and another value is refused by its name.
func TestResumeNamesOptions(t *testing.T) {
	ctx := context.Background()
	x := first(toy(2), 12)
	x.Cols = 10
	other := map[kind]FitOption{
		kEpsilon: WithEpsilon(0.03), kSquash: WithSquash(SquashArctan), kTolerance: WithTolerance(1e-8), kMaxIterations: WithMaxIterations(2000),
		kLevels: WithLevels(7), kEpochs: WithEpochs(4), kSeed: WithSeed(9), kLearningRate: WithLearningRate(0.01), kSchedule: WithSchedule(ScheduleConstant),
		kBatch: WithBatch(5), kStart: WithStart(StartUniform), kEnds: WithEnds(EndsPinned), kPenalty: WithPenalty(0.1), kShrinkage: WithShrinkage(3),
		kLoss: WithLoss(Frobenius), kPatience: WithPatience(7), kRestarts: WithRestarts(2), kValidation: WithValidation(0.2), kMissing: WithMissingValues(),
		kInit: WithInit(first(x, 12), x), kProjection: WithProjection(KLUpdates(3)), kUpdates: WithUpdates(UpdatesMultiplicative),
	}
	u, v := NewMat(12, 2), NewMat(2, 10)
	for _, m := range []Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = 1
		}
	}
	other[kInit] = WithInit(u, v)
	// What changes no result, or ends a fit otherwise.
	free := set(kWorkers, kProgress, kCheckpoint, kResume, kStrict)
	for _, c := range []struct {
		target target
		fit    func(o ...FitOption) error
	}{
		{forNMF, func(o ...FitOption) error { _, err := FitNMF(ctx, x, 2, o...); return err }},
		{forQMF, func(o ...FitOption) error { _, err := FitQMF(ctx, x, 2, o...); return err }},
		{forQMFQ, func(o ...FitOption) error { _, err := FitQMFQ(ctx, x, 2, o...); return err }},
	} {
		var state []byte
		if err := c.fit(WithEpochs(2), WithCheckpoint(2, func(s []byte) error { state = s; return nil })); err != nil {
			t.Fatal(c.target.name, err)
		}
		for k := range kind(len(kindNames)) {
			if !c.target.takes.has(k) || free.has(k) {
				continue
			}
			o, known := other[k]
			if k == kStart && c.target.name == "FitNMF" {
				o = WithStart(StartSVD)
			}
			if !known {
				t.Errorf("%s: %v is an option of no part here", c.target.name, k)
				continue
			}
			opts := []FitOption{WithResume(state), o}
			if k != kEpochs {
				opts = append(opts, WithEpochs(2))
			}
			var option *OptionError
			if err := c.fit(opts...); !errors.As(err, &option) || option.Option != k.String() {
				t.Errorf("%s: a state of another %v: %v", c.target.name, k, err)
			}
		}
	}
}

// TestFilesOutOfOrder: files with right checksums whose quantiles fall, or whose
// weights or deviations are negative, are refused.
func TestFilesOutOfOrder(t *testing.T) {
	models := threeModels(t, first(toy(2), 5), 2)
	for name, tags := range map[string][]string{"QMF": {"QUAN", "WGHT", "ROWS"}, "QMFQ": {"QUAN", "WGHT", "DEFQ", "ROWS", "DEFR"}} {
		data, err := models[name].MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		fresh := func() Model {
			if name == "QMF" {
				return new(QMF)
			}
			return new(QMFQ)
		}
		read := func(b []byte) error { return fresh().(interface{ UnmarshalBinary([]byte) error }).UnmarshalBinary(b) }
		for _, tag := range append(tags, "") {
			for _, row := range []int{0, 4} {
				b := rewritten(t, data, tag, func(v []float64) {
					m := len(v) / 5
					switch tag {
					case "WGHT":
						v[row*m+1] = -v[row*m+1]
					case "ROWS", "DEFR": // the deviation comes last but one, and last
						at := row*m + map[string]int{"ROWS": 4, "DEFR": 3}[tag]
						v[at] = -v[at]
					default:
						v[row*m+1], v[row*m+2] = v[row*m+2], v[row*m+1]
					}
				})
				err := read(b)
				var format *FormatError
				if tag == "" && err != nil {
					t.Errorf("%s as it was: %v", name, err)
				}
				if tag != "" && !errors.As(err, &format) {
					t.Errorf("%s: %s of row %d out of order: %v", name, tag, row, err)
				}
			}
		}
	}
}

// rewritten returns a model file whose numbers under a tag went through change, with
// right checksums; "" changes nothing.
func rewritten(t *testing.T, data []byte, tag string, change func(v []float64)) []byte {
	t.Helper()
	kind := get32(data[12:])
	f, err := decode(data, kind)
	if err != nil {
		t.Fatal(err)
	}
	var sections []section
	for name, payload := range f.sections {
		if name == tag {
			v := make([]float64, len(payload)/8)
			for i := range v {
				v[i] = math.Float64frombits(get64(payload[8*i:]))
			}
			change(v)
			payload = floats(tag, v).payload
		}
		sections = append(sections, section{tag: name, payload: payload})
	}
	return encode(kind, sections)
}

// TestStepOnQ holds the EM step on q, its shrinkage and the first weights of levels
// to their formulas, on a row with hidden cells whose x falls where w rises and on one
// where it does not. The plan is that of Solve of the visible cells by themselves.
func TestStepOnQ(t *testing.T) {
	const d, n, k, m, lambda = 4, 31, 2, 5, 7.0
	r := random.Split(8, 1)
	x, u, v := NewMat(d, n), NewMat(d, k), NewMat(k, n)
	for _, f := range []Mat{u, v} {
		for i := range f.Data {
			f.Data[i] = 0.2 + r.Float64()
		}
	}
	w := NewMat(d, n)
	for i := range d {
		for j := range n {
			for c := range k {
				w.Row(i)[j] += u.At(i, c) * v.At(c, j)
			}
			up := w.At(i, j)
			if i%2 == 1 {
				up = 4 - up
			}
			x.Set(i, j, up+0.3*r.Float64())
			if i > 1 && r.Float64() < 0.3 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	p := pool.New(1, 1)
	defer p.Close()
	for _, l := range []Loss{KL, 1.5} {
		c := qmfDefaults()
		c.levels, c.epsilon, c.start, c.loss, c.missing, c.shrinkage, c.tolerance = m, 0.05, StartNMF, l, true, lambda, 1e-12
		visible, err := newCells(x, &c)
		if err != nil {
			t.Fatal(err)
		}
		f := newQMFFit(visible, k, &c, p, c.seed, newCourse(context.Background(), &c, visible.x.Rows))
		f.factors.load(u, v)
		for i := range d {
			vis := &f.work[0].visitors[0]
			var seenX, seenW []float64
			for j, xj := range x.Row(i) {
				if xj == xj {
					seenX, seenW = append(seenX, xj), append(seenW, w.At(i, j))
				}
			}
			count := float64(len(seenX))
			f.place(vis, i)
			// Weights of levels: half even, half by where the squashed samples lie.
			mean, variance := 0.0, 0.0
			for _, v := range seenW {
				mean += v / count
			}
			for _, v := range seenW {
				variance += (v - mean) * (v - mean) / count
			}
			want := make([]float64, m)
			for l := range want {
				want[l] = 0.5 / m
			}
			for _, v := range seenW {
				at := (m - 1) / (1 + math.Exp(-(v-mean)/math.Sqrt(variance)))
				for l := range want { // a hat over each target
					want[l] += 0.5 / count * max(0, 1-math.Abs(at-float64(l)))
				}
			}
			f.shareLevels(vis, i)
			got := make([]float64, m)
			for l, v := range f.rowF(i) {
				got[l] = math.Exp(v)
			}
			closeTo(t, "weights of levels", got, want, 1e-12)

			f.place(vis, i)
			inc := f.rowInc(i)
			for l := range inc {
				inc[l] = 0.2 + r.Float64()
			}
			before := slices.Clone(inc)
			plan, err := Solve(seenW, WithEpsilon(c.epsilon), WithTargetWeights(got), WithSquash(c.squash), WithTolerance(1e-12))
			if err != nil {
				t.Fatal(err)
			}
			share := plan.Plan()
			// M, T and the least squares of x on w, β >= 0.
			meanX, cov := 0.0, 0.0
			for _, v := range seenX {
				meanX += v / count
			}
			for j := range seenX {
				cov += (seenW[j] - mean) * (seenX[j] - meanX) / count
			}
			beta := max(cov/variance, 0)
			if falls := i%2 == 1; falls != (cov < 0) {
				t.Fatalf("row %d: covariance %v: nothing is tested", i, cov)
			}
			num, den, wbar, mass := make([]float64, m), make([]float64, m), make([]float64, m), make([]float64, m)
			for j := range seenX {
				fit, tail := 0.0, make([]float64, m+1)
				for l := m - 1; l >= 0; l-- {
					tail[l] = tail[l+1] + share.At(j, l)*count
					fit += tail[l] * before[l]
				}
				for l := range m {
					num[l] += tail[l] * seenX[j] * math.Pow(fit, float64(c.loss)-2)
					den[l] += tail[l] * math.Pow(fit, float64(c.loss)-1)
					wbar[l] += share.At(j, l) * count * seenW[j]
					mass[l] += share.At(j, l) * count
				}
			}
			last := 0.0
			want = make([]float64, m)
			for l := range want {
				q := max(meanX+beta*(wbar[l]/mass[l]-mean), 0)
				prior := q - last
				last = q
				weight := lambda * den[l] / count
				want[l] = (before[l]*num[l] + weight*prior) / (den[l] + weight)
			}
			f.fitted(vis, i)
			f.ratios(vis, i)
			f.em(vis, i)
			closeTo(t, "increments", inc, want, 1e-8)
		}
	}
}

// TestTransformFromProjection: no new sample is placed worse than where its own
// projection lies, found here by Lee and Seung's updates of v alone. Without that start
// some of these, which are like no training sample under maps of steep steps, are.
func TestTransformFromProjection(t *testing.T) {
	ctx := context.Background()
	const d, columns = 30, 40
	for _, c := range []struct{ n, k int }{{5, 4}, {5, 8}} {
		x := columnsOf(first(toy(1), d), func(j int) bool { return j < c.n })
		q, err := FitQMFQ(ctx, x, c.k, WithEpochs(5), WithEpsilon(0.0005))
		if err != nil {
			t.Fatal(err)
		}
		r := random.Split(3, 3)
		v, fresh := make([]float64, c.k), NewMat(d, columns)
		inflated := func(v []float64, i int) float64 {
			w := 0.0
			for c, u := range q.U.Row(i) {
				w += u * v[c]
			}
			f, err := q.Inflate(i)
			if err != nil {
				t.Fatal(err)
			}
			return f.At(w)
		}
		for j := range columns {
			for l := range v {
				v[l] = math.Exp(1.5*normal(&r)) * mean(q.V.Row(l))
			}
			for i := range d {
				fresh.Set(i, j, inflated(v, i))
			}
		}
		got, err := q.Transform(ctx, fresh)
		if err != nil {
			t.Fatal(err)
		}
		y, err := q.Normalize(fresh)
		if err != nil {
			t.Fatal(err)
		}
		for j := range columns {
			loss := func(v []float64) float64 {
				sum := 0.0
				for i := range d {
					sum += textbook(1, fresh.At(i, j), inflated(v, i))
				}
				return sum
			}
			placed, projected := make([]float64, c.k), make([]float64, c.k)
			for l := range placed {
				placed[l], projected[l] = got.At(l, j), 1
			}
			for range 3000 {
				num, den := make([]float64, c.k), make([]float64, c.k)
				for i := range d {
					w := 0.0
					for l, u := range q.U.Row(i) {
						w += u * projected[l]
					}
					for l, u := range q.U.Row(i) {
						num[l] += u * y.At(i, j) / w
						den[l] += u
					}
				}
				for l := range projected {
					projected[l] *= num[l] / den[l]
				}
			}
			if a, b := loss(placed), loss(projected); !(a <= b*(1+1e-6)) {
				t.Errorf("n=%d, k=%d, sample %d: placed at a loss of %v, its projection has %v", c.n, c.k, j, a, b)
			}
		}
	}
}

// TestTransformAtItsLeast: where the divergence is smooth, no coordinate of a new
// sample moves by a thousandth and lowers its loss; and the sample that a model makes of
// the mean of its training columns is found again, however steep its maps.
func TestTransformAtItsLeast(t *testing.T) {
	ctx := context.Background()
	const d, columns = 30, 20
	for _, c := range []struct {
		n, k   int
		eps    float64
		smooth bool
	}{{20, 2, 0.02, true}, {20, 4, 0.02, true}, {40, 4, 0.02, true}, {5, 8, 0.0005, false}} {
		q, err := FitQMF(ctx, columnsOf(first(toy(1), d), func(j int) bool { return j < c.n }), c.k,
			WithEpochs(5), WithEpsilon(c.eps), WithShrinkage(0), WithStart(StartScores))
		if err != nil {
			t.Fatal(err)
		}
		maps := make([]*Map, d)
		for i := range maps {
			if maps[i], err = q.Map(i); err != nil {
				t.Fatal(err)
			}
		}
		fit := func(i int, v []float64) float64 {
			w := 0.0
			for c, u := range q.U.Row(i) {
				w += u * v[c]
			}
			return maps[i].At(w)
		}
		v, own := make([]float64, c.k), NewMat(d, 1)
		for l := range v {
			v[l] = mean(q.V.Row(l))
		}
		for i := range d {
			own.Set(i, 0, fit(i, v))
		}
		if score, err := q.Score(ctx, own); err != nil || !(score < 1e-9) {
			t.Errorf("%v: the mean of the columns scores %v, %v", c, score, err)
		}
		if !c.smooth {
			continue
		}
		x := columnsOf(first(toy(1), d), func(j int) bool { return j >= 40 && j < 40+columns })
		placed, err := q.Transform(ctx, x)
		if err != nil {
			t.Fatal(err)
		}
		for j := range columns {
			for l := range v {
				v[l] = placed.At(l, j)
			}
			loss := func() float64 {
				sum := 0.0
				for i := range d {
					sum += textbook(1, x.At(i, j), fit(i, v))
				}
				return sum
			}
			least := loss()
			for l, at := range v {
				for _, by := range []float64{0.999, 1.001} {
					v[l] = at * by
					if moved := loss(); moved < least*(1-1e-8) {
						t.Errorf("%v, sample %d: coordinate %d times %v lowers the loss from %v to %v", c, j, l, by, least, moved)
					}
				}
				v[l] = at
			}
		}
	}
}

// TestResumeRanges: states with right checksums and numbers that no fit could have
// are refused.
func TestResumeRanges(t *testing.T) {
	ctx := context.Background()
	x := first(toy(2), 12)
	fits := map[string]func(o ...FitOption) error{
		"NMF":  func(o ...FitOption) error { _, err := FitNMF(ctx, x, 2, append(o, WithEpochs(4))...); return err },
		"QMF":  func(o ...FitOption) error { _, err := FitQMF(ctx, x, 2, append(o, WithEpochs(4))...); return err },
		"QMFQ": func(o ...FitOption) error { _, err := FitQMFQ(ctx, x, 2, append(o, WithEpochs(4))...); return err },
	}
	for name, fit := range fits {
		var state []byte
		if err := fit(WithCheckpoint(2, func(s []byte) error {
			if state == nil {
				state = s
			}
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		changed := func(tag string, at int, to uint64) []byte {
			var sections []section
			for name, payload := range stateOf(t, state) {
				if name == tag {
					payload = slices.Concat(payload[:8*at], append64(nil, to), payload[8*at+8:])
				}
				sections = append(sections, section{tag: name, payload: payload})
			}
			return encode(get32(state[12:]), sections)
		}
		if err := fit(WithResume(changed("", 0, 0))); err != nil {
			t.Errorf("%s: as it was: %v", name, err)
		}
		type change struct {
			what, tag string
			at        int
			to        uint64
		}
		changes := []change{{"a restart beyond the last", "STAT", 0, 1}, {"an epoch beyond the last", "STAT", 1, 5}, {"a best epoch to come", "STAT", 4, 3},
			{"a fall to come", "STAT", 5, 3}, {"a negative factor", "REAL", 0, math.Float64bits(-1)}, {"a factor that is NaN", "REAL", 1, math.Float64bits(math.NaN())}}
		if name == "QMF" {
			changes = append(changes, change{"a row beyond the last", "IDX0", 0, 12})
			for at := range 2 {
				changes = append(changes, change{"a row twice", "IDX0", at, get64(stateOf(t, state)["IDX0"][8*(1-at):])})
			}
		}
		for _, c := range changes {
			var format *FormatError
			if err := fit(WithResume(changed(c.tag, c.at, c.to))); !errors.As(err, &format) {
				t.Errorf("%s: %s: %v", name, c.what, err)
			}
		}
	}
}

// stateOf returns the sections of a state.
func stateOf(t *testing.T, state []byte) map[string][]byte {
	t.Helper()
	f, err := decodeSections(state, get32(state[12:]), []string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"})
	if err != nil {
		t.Fatal(err)
	}
	return f.sections
}

// TestDeadFactors: a component is dead where either of its factors is zero.
func TestDeadFactors(t *testing.T) {
	x := first(toy(2), 6)
	for name, zero := range map[string]func(u, v Mat){
		"U": func(u, v Mat) {
			for i := range u.Rows {
				u.Set(i, 1, 0)
			}
		},
		"V":       func(u, v Mat) { clear(v.Row(1)) },
		"neither": func(u, v Mat) { u.Set(0, 1, 0); v.Set(1, 0, 0) },
	} {
		u, v := NewMat(6, 3), NewMat(3, x.Cols)
		for _, m := range []Mat{u, v} {
			for i := range m.Data {
				m.Data[i] = 1
			}
		}
		zero(u, v)
		m, err := FitNMF(context.Background(), x, 3, WithInit(u, v), WithEpochs(0))
		if err != nil {
			t.Fatal(err)
		}
		var dead *DataError
		if name == "neither" && len(m.Warnings) > 0 {
			t.Errorf("%v", m.Warnings)
		}
		if name != "neither" && (len(m.Warnings) != 1 || !errors.As(m.Warnings[0], &dead) || dead.Col != 1) {
			t.Errorf("zero %s: warnings %v", name, m.Warnings)
		}
	}
}

// TestTopFeaturesOfAnother: by a matrix that the model was not fitted to, features that
// it explains worse than their mean does have the value 0, and the others their share
// times what is explained.
func TestTopFeaturesOfAnother(t *testing.T) {
	const d, k = 12, 2
	x := first(toy(2), d)
	y := NewMat(d, x.Cols)
	for i := range d { // every other row turned round
		for j := range x.Cols {
			from := j
			if i%2 == 1 {
				from = x.Cols - 1 - j
			}
			y.Set(i, j, x.At(i, from)+0.01)
		}
	}
	for name, m := range threeModels(t, x, k) {
		fit := m.Reconstruct()
		u, v := factorsOf(m)
		worse := 0
		explained, share := make([]float64, d), NewMat(d, k)
		for i := range d {
			own, constant := NewMat(1, y.Cols), NewMat(1, y.Cols)
			for j := range y.Cols {
				own.Set(0, j, fit.At(i, j))
				constant.Set(0, j, mean(y.Row(i)))
			}
			row := Mat{Rows: 1, Cols: y.Cols, Stride: y.Cols, Data: y.Row(i)}
			explained[i] = 1 - meanOver(1, row, own, everyCell)/meanOver(1, row, constant, everyCell)
			if explained[i] < 0 {
				worse++
			}
			sum := 0.0
			for c := range k {
				share.Set(i, c, u.At(i, c)*total(v.Row(c)))
				sum += share.At(i, c)
			}
			for c := range k {
				share.Set(i, c, share.At(i, c)/sum)
			}
		}
		if worse == 0 || worse == d {
			t.Errorf("%s: explained %v: nothing is tested", name, explained)
		}
		tops, err := m.TopFeatures(y, d)
		if err != nil {
			t.Fatal(err)
		}
		for c, top := range tops {
			if len(top) != d {
				t.Fatalf("%s: %d features", name, len(top))
			}
			for at, p := range top {
				if want := share.At(p.Index, c) * max(explained[p.Index], 0); math.Abs(p.Value-want) > 1e-9 {
					t.Errorf("%s, component %d: feature %d has %v, want %v", name, c, p.Index, p.Value, want)
				}
				if at > 0 && (p.Value > top[at-1].Value || p.Value == top[at-1].Value && p.Index < top[at-1].Index) {
					t.Errorf("%s, component %d: %v after %v", name, c, p, top[at-1])
				}
			}
		}
	}
}
