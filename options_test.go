package quantmf

// Tests of the options: the table of which function takes which, and that every
// bad argument is a typed error that says where.

import (
	"context"
	"errors"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/option"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// anOption is an option of the kind that a fit of d × n numbers takes, or an operator on n numbers. It is not
// the default.
func anOption(k option.Kind, d, n, rank int) FitOption {
	u, v, w, y := NewMat(d, rank), NewMat(rank, n), make([]float64, n), make([]float64, n)
	for _, of := range [][]float64{u.Data, v.Data, w} {
		for i := range of {
			of[i] = 1
		}
	}
	for j := range y {
		y[j] = float64(j * j)
	}
	cells := NewMat(d, n)
	for i := range cells.Data {
		cells.Data[i] = float64(1 + i%2)
	}
	w[0] = 2
	return map[option.Kind]FitOption{
		option.Epsilon: WithEpsilon(0.03), option.Squash: WithSquash(SquashArctan),
		option.Tolerance: WithTolerance(1e-8), option.MaxIterations: WithMaxIterations(2000),
		option.Strict: WithStrict(), option.Weights: WithWeights(w), option.Targets: WithTargets(y),
		option.TargetWeights: WithTargetWeights(w), option.Iterations: WithIterations(3),
		option.Levels: WithLevels(n), option.MidpointRanks: WithMidpointRanks(),
		option.Workers: WithWorkers(1),
		option.Epochs:  WithEpochs(1), option.Seed: WithSeed(9), option.LearningRate: WithLearningRate(0.01),
		option.Schedule: WithSchedule(ScheduleConstant), option.Batch: WithBatch(5),
		option.Start: WithStart(StartUniform), option.Ends: WithEnds(EndsPinned),
		option.Penalty: WithPenalty(0.1), option.Penalties: WithPenalties(Penalties{L1U: 0.1, L2V: 0.2}),
		option.FixedU: WithFixedU(first(u, u.Rows)), option.SampleWeights: WithSampleWeights(w),
		option.CellWeights: WithCellWeights(cells), option.Shrinkage: WithShrinkage(3),
		option.Line: WithLine(0.3),
		option.Loss: WithLoss(Frobenius), option.Patience: WithPatience(7), option.Restarts: WithRestarts(2),
		option.Validation: WithValidation(0.2), option.Missing: WithMissingValues(),
		option.Init:       WithInit(u, v),
		option.Projection: WithProjection(KLUpdates(3)), option.Updates: WithUpdates(UpdatesMultiplicative),
		option.Discrete:   WithDiscrete(1),
		option.Context:    WithContext(context.Background()),
		option.Progress:   WithProgress(func(Progress) error { return nil }),
		option.Checkpoint: WithCheckpoint(1, func([]byte) error { return nil }),
	}[k]
}

// TestOptionTable: each function takes the options that the table says, and no other.
func TestOptionTable(t *testing.T) {
	ctx, m := t.Context(), first(toy(2), 6)
	m.Cols = 10
	x, y := m.Row(0), []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	fit := func(f option.Function, method Method) (option.Function, func(o FitOption) error) {
		return f, func(o FitOption) error { return ErrorOf(Fit(ctx, method, m, 2, WithEpochs(1), o)) }
	}
	operator := func(f option.Function, call func(o Option) error) (option.Function,
		func(o FitOption) error) {
		return f, func(o FitOption) error {
			if p, ok := o.(Option); ok {
				return call(p)
			}
			return &OptionError{} // refused by the compiler
		}
	}
	model := Fitted(t, FitNMF, m, 2, WithEpochs(1))
	check := func(f option.Function, call func(o FitOption) error) {
		for k := range option.Kinds {
			o := anOption(k, 6, 10, 2)
			switch {
			case k == option.Resume, k == option.Model &&
				f.Takes.Has(k): // other tests have a state, and models
				continue
			case k == option.Model:
				o = WithModel(model)
			case o == nil:
				t.Errorf("there is no option of the kind %v", k)
				continue
			}
			var bad *OptionError
			if err := call(o); f.Takes.Has(k) != (err == nil) || err != nil && !errors.As(err, &bad) {
				t.Errorf("%s with %v: %v", f.Name, k, err)
			}
		}
	}
	check(fit(option.FitNMF, MethodNMF))
	check(fit(option.FitQMF, MethodQMF))
	check(fit(option.FitQMFQ, MethodQMFQ))
	check(fit(option.FitBQMF, MethodBQMF))
	check(operator(option.Solve, func(o Option) error { return ErrorOf(Solve(x, o)) }))
	check(operator(option.SoftRank, func(o Option) error { return ErrorOf(SoftRank(x, o)) }))
	check(operator(option.SoftSort, func(o Option) error { return ErrorOf(SoftSort(x, o)) }))
	check(operator(option.SoftQuantile, func(o Option) error { return ErrorOf(SoftQuantile(x, y, o)) }))
	check(operator(option.SoftQuantileRows, func(o Option) error {
		return ErrorOf(SoftQuantileRows(m, Must(MatOf(y))(t), o))
	}))
	check(operator(option.SoftQuantiles,
		func(o Option) error { return ErrorOf(SoftQuantiles(x, []float64{0.5}, o)) }))
	check(operator(option.SoftTopK, func(o Option) error { return ErrorOf(SoftTopK(x, 2, o)) }))
}

// TestBadArguments: a bad argument is a typed error that says what is wrong and where.
func TestBadArguments(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	x := []float64{1, 2, 3}
	ctx := context.Background()
	mat := func(rows ...[]float64) Mat { return Must(MatOf(rows...))(t) }
	good, wide, signed := mat(x, []float64{2, 1, 0}), first(toy(2), 12), scores(5, 5, 6)
	solve := func(x []float64, o ...Option) error { return ErrorOf(Solve(x, o...)) }
	fit := func(m Rows, k int, o ...FitOption) error {
		return ErrorOf(FitQMF(ctx, m, k, append(o, WithEpochs(1))...))
	}
	nmf := func(m Rows, k int, o ...FitOption) error { return ErrorOf(FitNMF(ctx, m, k, o...)) }
	init := func(u float64, v ...float64) FitOption {
		return WithInit(mat([]float64{1}, []float64{u}),
			mat(v))
	}
	weights := func(level, width float64) error {
		_, _, err := QuantileWeights([]float64{0.5, level}, width)
		return err
	}
	held := func(x Mat, m Masks, trials ...Trial) error { return ErrorOf(HeldOut(ctx, x, FitNMF, trials, m)) }
	memory := func(m Method, rank int, o ...FitOption) error { return ErrorOf(MemoryOf(m, 5, 5, rank, o...)) }
	one, mask := Trial{Rank: 1, Options: []FitOption{WithEpochs(1)}}, Masks{1, 0.1, 1, 0}
	tr := Solved(t, x)
	m, b := Fitted(t, FitQMF, good, 1, WithEpochs(1)), Fitted(t, FitBQMF, first(wide, 6), 0)
	interval := func(p float64) error { _, _, err := b.Interval(p); return err }
	_, _, _, shape4 := SoftQuantileRowsVJP(NewMat(2, 3), NewMat(1, 2), NewMat(2, 4))
	check := func(as any) func(err error, says string) {
		return func(err error, says string) {
			t.Helper()
			if !errors.As(err, as) || !strings.Contains(err.Error(), says) {
				t.Errorf("%T %v; want %T that says %q", err, err, as, says)
			}
		}
	}
	option, data := check(new(*OptionError)), check(new(*DataError))
	shape, conv := check(new(*ShapeError)), check(new(*ConvergenceError))
	option(solve(x, WithIterations(0)), "at least 1")
	option(solve(x, WithIterations(1), WithEpsilon(0)), "epsilon 0")
	option(solve(x, WithIterations(1), WithTolerance(1)), "contradicts WithIterations")
	option(solve(x, WithMaxIterations(9), WithIterations(1)), "contradicts WithIterations")
	option(solve(x, WithLevels(2), WithTargets(x)), "WithTargets gives 3")
	option(ErrorOf(SoftQuantile(x, x, WithLevels(2))), "q has 3")
	option(solve(x, WithWeights(nil)), "WithWeights")
	option(solve(x, WithWeights([]float64{0, -1, 0})), "weight 1")
	shape(solve(x, WithWeights(x[:2])), "weights")
	option(solve(x, WithTargets(nil)), "WithTargets")
	option(solve(x, WithTargets([]float64{0, 0})), "target 1")
	option(solve(x, WithTargets([]float64{0, nan})), "target 1")
	option(solve(x, WithTargets([]float64{0, 5e-324, 1})), "") // targets that no threshold separates
	shape(ErrorOf(SoftQuantile(x, x, WithTargets(x[:2]))), "targets: got 2")
	option(solve(x, WithTargetWeights([]float64{})), "WithTargetWeights")
	option(solve(x, WithTargetWeights([]float64{1, 0, 1})), "weight 1")
	option(solve(x, WithTargetWeights([]float64{1e-300, 1e300})), "WithTargetWeights")
	option(solve(x, WithTargetWeights([]float64{1, 1e308, 1}), WithEpsilon(0)), "WithTargetWeights")
	option(solve(x, WithTargetWeights([]float64{1, 1, 1e-291})), "WithTargetWeights")
	shape(solve(x, WithTargetWeights(x), WithLevels(2)), "target weights")
	option(solve(x, nil), "nil")
	option(solve(make([]float64, 100000), WithLevels(100000)), "memory")
	shape(solve(nil), "no samples")
	data(solve([]float64{1, nan}), "column 1")
	data(solve([]float64{-inf, 1}), "column 0")
	conv(solve([]float64{0, 1, 2, 5}, WithStrict(), WithMaxIterations(1)), "wanted 1e-09")
	shape(ErrorOf(tr.Quantile(x[:2])), "q")
	data(ErrorOf(tr.Quantile([]float64{3, 2, 1})), "column 1")
	data(ErrorOf(tr.RankVJP([]float64{1, nan, 0})), "column 1")
	shape(ErrorOf(tr.SortVJP(x[:1])), "z")
	shape(ErrorOf(tr.QuantileJVP(x, Gradient{B: x[:1]})), "dir.B")
	shape(ErrorOf(SoftQuantile(x, nil)), "q")
	shape(ErrorOf(SoftQuantileRows(good, mat(x, x, x))), "1 or 2")
	shape(shape4, "z: got 2×4, want 2×3")
	data(ErrorOf(SoftQuantileRows(good, mat([]float64{0, 1}, []float64{1, 0}))), "row 1, column 1")
	data(ErrorOf(SoftQuantiles(x, []float64{1.5})), "")                // level 1.5
	shape(ErrorOf(SoftQuantiles(x, nil)), "")                          // no levels
	shape(ErrorOf(SoftQuantiles(nil, x[:1])), "")                      // no samples
	option(ErrorOf(SoftQuantiles(x, x[:1], WithTargetWeights(x))), "") // own weights
	data(weights(-0.01, 0.1), "column 1")
	data(weights(1.01, 0.1), "column 1")
	data(weights(nan, 0.1), "column 1")
	option(weights(0.6, 0), "width(0)")
	option(weights(0.6, -1), "width(-1)")
	option(weights(0.6, math.Nextafter(1, 2)), "width(1.0000000000000002)")
	option(weights(0.6, nan), "width(NaN)")
	option(ErrorOf(SoftTopK(x, 0)), "") // top 0
	option(ErrorOf(SoftTopK(x, 4)), "") // top 4 of 3
	shape(ErrorOf(MatOf(x, x[:2])), "row 1")
	option(fit(good, 0), "rank(0)")
	option(nmf(good, 0), "rank(0)")
	option(nmf(good, 1<<31-1), "memory")
	shape(fit(Mat{}, 1), "at least one row")
	shape(fit(Mat{Rows: 2, Cols: 2, Stride: 2, Data: x}, 1), "3 numbers")
	shape(fit(Mat{Rows: 2, Cols: 2, Stride: 1, Data: x}, 1), "stride")
	shape(fit(Mat{Rows: math.MaxInt, Cols: 2, Stride: 2, Data: x}, 1), "numbers")
	data(nmf(mat([]float64{1e200, 2, 1}), 1), "overflow")
	data(nmf(signed, 2), "WithLoss(Frobenius)")
	data(nmf(signed, 2, WithLoss(Frobenius)), "FitQMF")
	data(fit(signed, 2), "WithLoss(Frobenius)")
	data(fit(signed, 2, WithLoss(1.5)), "WithLoss(Frobenius)")
	data(ErrorOf(FitQMFQ(ctx, signed, 2)), "WithLoss(Frobenius)")
	data(ErrorOf(FitBQMF(ctx, signed, 2, WithLoss(KL))), "") // signed, KL
	data(held(signed, mask, one), "WithLoss(Frobenius)")
	option(fit(good, 1, WithLevels(1)), "at least 2")
	option(fit(good, 1, WithEpsilon(0)), "gradient")
	option(fit(good, 1, WithShrinkage(1), WithEnds(EndsPinned)), "EndsFree")
	option(fit(good, 1, WithShrinkage(1), WithStart(StartUniform)), "EM")
	option(fit(good, 1, WithLine(0.5), WithEnds(EndsPinned)), "must be 0")
	option(fit(good, 1, WithLine(0.5), WithStart(StartUniform)), "must be 0")
	option(ErrorOf(FitQMFQ(ctx, good, 1, WithLine(0.5), WithProjection(TruncatedSVD()))), "must be 0")
	option(fit(good, 1, WithStart(StartNMF), init(1, x...)), "contradicts WithInit")
	option(nmf(good, 1, WithStart(StartUniform), init(1, x...)), "contradicts WithInit")
	shape(fit(good, 1, WithInit(good, good)), "initial U")
	data(nmf(good, 1, init(-1, x...)), "initial U")
	data(nmf(good, 1, init(1e40, 1e40, 1, 1)), "the product")
	data(nmf(good, 1, init(1e200, 1, 1, 1)), "row 1, column 0")
	data(fit(good, 1, init(1e40, 1e40, 1, 1)), "the product")
	data(fit(good, 1, init(1e200, 1, 1, 1)), "row 1, column 0")
	option(fit(good, 1, WithLevels(math.MaxInt32)), "memory")
	option(fit(good, 1, WithProgress(nil)), "WithProgress")
	data(nmf(good, 1, WithLoss(Beta(0))), "positive")
	option(nmf(good, 1, WithRestarts(2), init(1, x...)), "contradicts WithInit")
	option(nmf(good, 1, WithRestarts(2), WithStart(StartSVD)), "")  // restarts, SVD
	option(nmf(good, 1, WithStart(StartScores)), "")                // scores
	option(fit(good, 1, WithStart(StartSVD)), "")                   // SVD
	option(ErrorOf(FitQMFQ(ctx, good, 1, WithStart(StartSVD))), "") // SVD
	option(nmf(good, 1, WithValidation(0.1)), "too small")
	option(ErrorOf(FitBQMF(ctx, good, -1)), "rank(-1)")
	option(ErrorOf(FitBQMF(ctx, good, 0, WithLoss(Beta(0.5)))), "") // a loss of no BQMF
	option(ErrorOf(FitBQMF(ctx, NewMat(2500, 2500), 2499)), "rank(")
	shape(ErrorOf(b.Map(6)), "row")
	shape(ErrorOf(m.Map(2)), "") // a map of no row
	option(interval(0), "p(0)")
	option(interval(1), "p(1)")
	option(interval(-1), "p(-1)")
	option(interval(nan), "p(NaN)")
	option(held(wide, Masks{First: -1}, one), "first(-1)")
	option(held(wide, mask, Trial{}), "rank(0)")
	option(held(wide, mask, one, Trial{1, []FitOption{WithLoss(Frobenius)}}), "WithLoss")
	option(ErrorOf(HeldOut(ctx, wide, FitQMFQ, []Trial{{2, []FitOption{WithProjection(TruncatedSVD())}}},
		mask)),
		"WithProjection")
	option(held(wide, Masks{-1, 0.1, 1, 0}, one), "repeats(-1): must be at least 1")
	option(held(wide, Masks{math.MaxInt, 0.1, 1, 0}, one), "repeats(")
	option(held(wide, Masks{math.MaxInt / 1000, 0.1, 1, 0}, one), "repeats(")
	option(held(wide, Masks{1, 0.6, 1, 0}, one), "share(0.6)")
	option(held(mat(x[:2], x[1:]), mask, one), "share(")
	shape(ErrorOf(HeldOut(ctx, wide, func(ctx context.Context, _ Rows, k int, o ...FitOption) (*NMF, error) {
		return FitNMF(ctx, NewMat(12, 81), k, o...)
	}, []Trial{one}, mask)), "x: ")
	option(memory(MethodNMF, 0), "rank(0)")
	option(memory(MethodBQMF, -1), "rank(-1)")
	option(memory(MethodNMF, 1, WithStart(StartNMF)), "")                    // memory, start
	option(memory(MethodQMF, 1, WithShrinkage(1), WithEnds(EndsPinned)), "") // memory, shrinkage, pinned
	option(memory(MethodQMFQ, 1, WithStart(StartSVD)), "")                   // memory, SVD
	option(memory(MethodBQMF, 1, WithLoss(Beta(1.5))), "")                   // memory, loss
	option(memory(MethodNMF, 1, WithLevels(8)), "WithLevels")
	option(memory(Method(9), 1), "")                 // memory of no method
	option(ErrorOf(Fit(ctx, 99, good, 2)), "")       // no method
	shape(ErrorOf(MemoryOf(MethodQMF, 0, 5, 1)), "") // memory of nothing
}

// TestDocumentedOptions holds the tables of options and defaults in doc.go against
// the code.
func TestDocumentedOptions(t *testing.T) {
	doc := Must(os.ReadFile("doc.go"))(t)
	_, text, _ := strings.Cut(string(doc), "// # Options\n")
	options, text, _ := strings.Cut(text, "// # Defaults of models\n")
	defaults, _, _ := strings.Cut(text, "// Without options")
	columns := [][]option.Function{
		{option.Solve, option.SoftRank, option.SoftRankRows, option.SoftRankRowsVJP,
			option.SoftRankRowsJVP},
		{option.SoftSort, option.SoftSortRows, option.SoftSortRowsVJP, option.SoftSortRowsJVP},
		{option.SoftQuantile, option.SoftQuantileRows}, {option.SoftQuantiles, option.SoftTopK},
		{option.FitNMF}, {option.FitQMF}, {option.FitQMFQ}, {option.FitBQMF}}
	rows := func(section string) map[string][]string {
		m := map[string][]string{}
		for _, line := range strings.Split(section, "\n") {
			if rest, is := strings.CutPrefix(line, "//\tWith"); is {
				cells := regexp.MustCompile(`\s{2,}`).Split("With"+rest, -1)
				m[cells[0]] = cells[1:]
			}
		}
		return m
	}
	taken := rows(options)
	for k := range option.Kinds {
		row := taken[k.String()]
		if len(row) != len(columns) {
			t.Errorf("%v: the table has %q", k, row)
			continue
		}
		for c, targets := range columns {
			for _, f := range targets {
				if takes := row[c] != "-"; takes != f.Takes.Has(k) {
					t.Errorf("%v of %s: the table says %q", k, f.Name, row[c])
				}
			}
		}
	}
	if len(taken) != int(option.Kinds) {
		t.Errorf("%d options in the table, there are %d", len(taken), option.Kinds)
	}
	models := []config{nmfDefaults(), qmfDefaults(), qmfqDefaults(), bqmfDefaults()}
	models[2].settleQMFQ()
	value := map[string]func(c *config) string{
		"WithLoss": func(c *config) string {
			return map[Loss]string{KL: "KL",
				Frobenius: "Frobenius"}[Loss(c.Loss)]
		},
		"WithEpochs":        func(c *config) string { return itoa(c.Epochs) },
		"WithLevels":        func(c *config) string { return itoa(c.Levels) },
		"WithEpsilon":       func(c *config) string { return ftoa(c.Epsilon) },
		"WithSquash":        func(c *config) string { return Squash(c.Squash).String() },
		"WithTolerance":     func(c *config) string { return ftoa(c.Tolerance) },
		"WithMaxIterations": func(c *config) string { return itoa(c.MaxIterations) },
		"WithLearningRate":  func(c *config) string { return ftoa(c.LearningRate) },
		"WithSchedule":      func(c *config) string { return Schedule(c.Schedule).String() },
		"WithBatch": func(c *config) string {
			if c.BatchRows == math.MaxInt32 {
				return "all"
			}
			return itoa(c.BatchRows)
		},
		"WithStart": func(c *config) string { return Start(c.Start).String() },
		"WithEnds":  func(c *config) string { return Ends(c.Ends).String() },
		"WithShrinkage": func(c *config) string {
			if c.Shrinkage < 0 {
				return "by hidden cells"
			}
			return ftoa(c.Shrinkage)
		},
		"WithLine": func(c *config) string {
			if c.Line < 0 {
				return "by hidden cells"
			}
			return ftoa(c.Line)
		},
		"WithProjection": func(c *config) string { return Projection{c.Projection}.String() },
		"WithPenalty":    func(c *config) string { return ftoa(c.Penalty) },
		"WithPenalties": func(c *config) string {
			if !c.Penalties.Any() {
				return "none"
			}
			return Penalties(c.Penalties).String()
		},
		"WithUpdates":  func(c *config) string { return Updates(c.Updates).String() },
		"WithSeed":     func(c *config) string { return utoa(c.Seed) },
		"WithRestarts": func(c *config) string { return itoa(c.restarts) },
	}
	told := rows(defaults)
	for name, of := range value {
		for m := range models {
			want := "-"
			if taken[name][4+m] == "x" || m == 2 && name == "WithBatch" { // fixed there
				want = of(&models[m])
			}
			if len(told[name]) != len(models) || told[name][m] != want {
				t.Errorf("%s, model %d: the table says %q, the code %s", name, m, told[name], want)
			}
		}
	}
}

func TestProjectionValues(t *testing.T) {
	for _, c := range []struct {
		p     Projection
		name  string
		valid bool
	}{
		{KLUpdates(100), "KLUpdates(100)", true},
		{KLUpdates(0), "KLUpdates(0)", false},
		{FrobeniusUpdates(1), "FrobeniusUpdates(1)", true},
		{FrobeniusUpdates(-3), "FrobeniusUpdates(-3)", false},
		{TruncatedSVD(), "TruncatedSVD()", true},
		{Projection{}, "Projection{}", false},
	} {
		if c.p.String() != c.name || (c.p.bound() == "") != c.valid {
			t.Errorf("%v: %q", c.p, c.p.bound())
		}
	}
	if again := KLUpdates(3); again != KLUpdates(3) || again == FrobeniusUpdates(3) {
		t.Error("equality")
	}
}
