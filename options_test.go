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
	check := func(as any) func(name string, err error, says string) {
		return func(name string, err error, says string) {
			t.Helper()
			if !errors.As(err, as) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %T %v; want %T that says %q", name, err, err, as, says)
			}
		}
	}
	option, data := check(new(*OptionError)), check(new(*DataError))
	shape, conv := check(new(*ShapeError)), check(new(*ConvergenceError))
	option("ε NaN", solve(x, WithEpsilon(nan)), "WithEpsilon(NaN)")
	option("tolerance 0", solve(x, WithTolerance(0)), "WithTolerance(0)")
	option("iterations 0", solve(x, WithIterations(0)), "at least 1")
	option("iterations at ε 0", solve(x, WithIterations(1), WithEpsilon(0)), "epsilon 0")
	option("iterations, tolerance", solve(x, WithIterations(1), WithTolerance(1)),
		"contradicts WithIterations")
	option("iterations, maximum", solve(x, WithMaxIterations(9), WithIterations(1)),
		"contradicts WithIterations")
	option("maximum 0", solve(x, WithMaxIterations(0)), "WithMaxIterations(0)")
	option("workers", solve(x, WithWorkers(-1)), "WithWorkers(-1)")
	option("levels 0", solve(x, WithLevels(0)), "WithLevels(0)")
	option("levels, targets", solve(x, WithLevels(2), WithTargets(x)), "WithTargets gives 3")
	option("levels, q", ErrorOf(SoftQuantile(x, x, WithLevels(2))), "q has 3")
	option("nil weights", solve(x, WithWeights(nil)), "WithWeights")
	option("negative weight", solve(x, WithWeights([]float64{0, -1, 0})), "weight 1")
	shape("weights length", solve(x, WithWeights(x[:2])), "weights")
	option("empty targets", solve(x, WithTargets(nil)), "WithTargets")
	option("targets order", solve(x, WithTargets([]float64{0, 0})), "target 1")
	option("targets NaN", solve(x, WithTargets([]float64{0, nan})), "target 1")
	option("targets that no threshold separates", solve(x, WithTargets([]float64{0, 5e-324, 1})), "")
	shape("targets, q", ErrorOf(SoftQuantile(x, x, WithTargets(x[:2]))), "targets: got 2")
	option("empty target weights", solve(x, WithTargetWeights([]float64{})), "WithTargetWeights")
	option("zero target weight", solve(x, WithTargetWeights([]float64{1, 0, 1})), "weight 1")
	option("far target weight", solve(x, WithTargetWeights([]float64{1e-300, 1e300})), "WithTargetWeights")
	option("far target weight", solve(x, WithTargetWeights([]float64{1, 1e308, 1}), WithEpsilon(0)),
		"WithTargetWeights")
	option("far target weight", solve(x, WithTargetWeights([]float64{1, 1, 1e-291})), "WithTargetWeights")
	shape("target weights length", solve(x, WithTargetWeights(x), WithLevels(2)), "target weights")
	option("squash", solve(x, WithSquash(99)), "WithSquash(99)")
	option("nil option", solve(x, nil), "nil")
	option("too much memory", solve(make([]float64, 100000), WithLevels(100000)), "memory")
	shape("empty x", solve(nil), "no samples")
	data("NaN in x", solve([]float64{1, nan}), "column 1")
	data("Inf in x", solve([]float64{-inf, 1}), "column 0")
	conv("strict", solve([]float64{0, 1, 2, 5}, WithStrict(), WithMaxIterations(1)), "wanted 1e-09")
	shape("q length", ErrorOf(tr.Quantile(x[:2])), "q")
	data("q order", ErrorOf(tr.Quantile([]float64{3, 2, 1})), "column 1")
	data("z NaN", ErrorOf(tr.RankVJP([]float64{1, nan, 0})), "column 1")
	shape("z length", ErrorOf(tr.SortVJP(x[:1])), "z")
	shape("direction", ErrorOf(tr.QuantileJVP(x, Gradient{B: x[:1]})), "dir.B")
	shape("no q", ErrorOf(SoftQuantile(x, nil)), "q")
	shape("rows of q", ErrorOf(SoftQuantileRows(good, mat(x, x, x))), "1 or 2")
	shape("rows of z", shape4, "z: got 2×4, want 2×3")
	data("unsorted q", ErrorOf(SoftQuantileRows(good, mat([]float64{0, 1}, []float64{1, 0}))),
		"row 1, column 1")
	data("level 1.5", ErrorOf(SoftQuantiles(x, []float64{1.5})), "")
	shape("no levels", ErrorOf(SoftQuantiles(x, nil)), "")
	shape("no samples", ErrorOf(SoftQuantiles(nil, x[:1])), "")
	option("own weights", ErrorOf(SoftQuantiles(x, x[:1], WithTargetWeights(x))), "")
	data("level -0.01", weights(-0.01, 0.1), "column 1")
	data("level 1.01", weights(1.01, 0.1), "column 1")
	data("level NaN", weights(nan, 0.1), "column 1")
	option("width 0", weights(0.6, 0), "width(0)")
	option("width -1", weights(0.6, -1), "width(-1)")
	option("width above 1", weights(0.6, math.Nextafter(1, 2)), "width(1.0000000000000002)")
	option("width NaN", weights(0.6, nan), "width(NaN)")
	option("top 0", ErrorOf(SoftTopK(x, 0)), "")
	option("top 4 of 3", ErrorOf(SoftTopK(x, 4)), "")
	shape("ragged", ErrorOf(MatOf(x, x[:2])), "row 1")
	option("rank 0", fit(good, 0), "rank(0)")
	option("rank 0", nmf(good, 0), "rank(0)")
	option("absurd rank", nmf(good, 1<<31-1), "memory")
	shape("empty matrix", fit(Mat{}, 1), "at least one row")
	shape("short data", fit(Mat{Rows: 2, Cols: 2, Stride: 2, Data: x}, 1), "3 numbers")
	shape("stride", fit(Mat{Rows: 2, Cols: 2, Stride: 1, Data: x}, 1), "stride")
	shape("huge", fit(Mat{Rows: math.MaxInt, Cols: 2, Stride: 2, Data: x}, 1), "numbers")
	data("too large", nmf(mat([]float64{1e200, 2, 1}), 1), "overflow")
	data("signed", nmf(signed, 2), "WithLoss(Frobenius)")
	data("signed, Frobenius", nmf(signed, 2, WithLoss(Frobenius)), "FitQMF")
	data("signed", fit(signed, 2), "WithLoss(Frobenius)")
	data("signed, 1.5", fit(signed, 2, WithLoss(1.5)), "WithLoss(Frobenius)")
	data("signed", ErrorOf(FitQMFQ(ctx, signed, 2)), "WithLoss(Frobenius)")
	data("signed, KL", ErrorOf(FitBQMF(ctx, signed, 2, WithLoss(KL))), "")
	data("signed", held(signed, mask, one), "WithLoss(Frobenius)")
	option("one level", fit(good, 1, WithLevels(1)), "at least 2")
	option("ε 0 in a fit", fit(good, 1, WithEpsilon(0)), "gradient")
	option("epochs", nmf(good, 1, WithEpochs(-1)), "WithEpochs(-1)")
	option("rate", fit(good, 1, WithLearningRate(0)), "WithLearningRate(0)")
	option("batch", fit(good, 1, WithBatch(0)), "WithBatch(0)")
	option("penalty", fit(good, 1, WithPenalty(-1)), "WithPenalty(-1)")
	option("shrinkage", fit(good, 1, WithShrinkage(nan)), "WithShrinkage(NaN)")
	option("shrinkage, pinned", fit(good, 1, WithShrinkage(1), WithEnds(EndsPinned)), "EndsFree")
	option("shrinkage, uniform", fit(good, 1, WithShrinkage(1), WithStart(StartUniform)), "EM")
	option("line", fit(good, 1, WithLine(nan)), "WithLine(NaN)")
	option("line, pinned", fit(good, 1, WithLine(0.5), WithEnds(EndsPinned)), "must be 0")
	option("line, uniform", fit(good, 1, WithLine(0.5), WithStart(StartUniform)), "must be 0")
	option("line, SVD", ErrorOf(FitQMFQ(ctx, good, 1, WithLine(0.5), WithProjection(TruncatedSVD()))),
		"must be 0")
	option("start, init", fit(good, 1, WithStart(StartNMF), init(1, x...)), "contradicts WithInit")
	option("start, init", nmf(good, 1, WithStart(StartUniform), init(1, x...)), "contradicts WithInit")
	shape("init shape", fit(good, 1, WithInit(good, good)), "initial U")
	data("init negative", nmf(good, 1, init(-1, x...)), "initial U")
	data("init too large", nmf(good, 1, init(1e40, 1e40, 1, 1)), "the product")
	data("init out of reach", nmf(good, 1, init(1e200, 1, 1, 1)), "row 1, column 0")
	data("init too large", fit(good, 1, init(1e40, 1e40, 1, 1)), "the product")
	data("init out of reach", fit(good, 1, init(1e200, 1, 1, 1)), "row 1, column 0")
	option("absurd levels", fit(good, 1, WithLevels(math.MaxInt32)), "memory")
	option("absurd rate", fit(good, 1, WithLearningRate(1e9)), "at most 100")
	option("absurd shrinkage", fit(good, 1, WithShrinkage(1e300)), "1e30")
	option("progress", fit(good, 1, WithProgress(nil)), "WithProgress")
	data("zero", nmf(good, 1, WithLoss(Beta(0))), "positive")
	option("patience", nmf(good, 1, WithPatience(0)), "WithPatience(0)")
	option("restarts", nmf(good, 1, WithRestarts(0)), "WithRestarts(0)")
	option("restarts, init", nmf(good, 1, WithRestarts(2), init(1, x...)), "contradicts WithInit")
	option("restarts, SVD", nmf(good, 1, WithRestarts(2), WithStart(StartSVD)), "")
	option("scores", nmf(good, 1, WithStart(StartScores)), "")
	option("SVD", fit(good, 1, WithStart(StartSVD)), "")
	option("SVD", ErrorOf(FitQMFQ(ctx, good, 1, WithStart(StartSVD))), "")
	option("validation of nothing", nmf(good, 1, WithValidation(0.1)), "too small")
	option("schedule", fit(good, 1, WithSchedule(9)), "WithSchedule(9)")
	option("rank -1", ErrorOf(FitBQMF(ctx, good, -1)), "rank(-1)")
	option("a loss of no BQMF", ErrorOf(FitBQMF(ctx, good, 0, WithLoss(Beta(0.5)))), "")
	option("a posterior that no memory holds", ErrorOf(FitBQMF(ctx, NewMat(2500, 2500), 2499)), "rank(")
	shape("a map of no row", ErrorOf(b.Map(6)), "row")
	shape("a map of no row", ErrorOf(m.Map(2)), "")
	option("p = 0", interval(0), "p(0)")
	option("p = 1", interval(1), "p(1)")
	option("p = -1", interval(-1), "p(-1)")
	option("p = NaN", interval(nan), "p(NaN)")
	option("first mask -1", held(wide, Masks{First: -1}, one), "first(-1)")
	option("held out, rank 0", held(wide, mask, Trial{}), "rank(0)")
	option("held out, two losses", held(wide, mask, one, Trial{1, []FitOption{WithLoss(Frobenius)}}),
		"WithLoss")
	option("held out, SVD",
		ErrorOf(HeldOut(ctx, wide, FitQMFQ, []Trial{{2, []FitOption{WithProjection(TruncatedSVD())}}}, mask)),
		"WithProjection")
	option("-1 repeats", held(wide, Masks{-1, 0.1, 1, 0}, one), "repeats(-1): must be at least 1")
	option("endless repeats", held(wide, Masks{math.MaxInt, 0.1, 1, 0}, one), "repeats(")
	option("many repeats", held(wide, Masks{math.MaxInt / 1000, 0.1, 1, 0}, one), "repeats(")
	option("share 0.6", held(wide, Masks{1, 0.6, 1, 0}, one), "share(0.6)")
	option("share of nothing", held(mat(x[:2], x[1:]), mask, one), "share(")
	shape("held out of another matrix",
		ErrorOf(HeldOut(ctx, wide, func(ctx context.Context, _ Rows, k int, o ...FitOption) (*NMF, error) {
			return FitNMF(ctx, NewMat(12, 81), k, o...)
		}, []Trial{one}, mask)), "x: ")
	option("memory of rank 0", memory(MethodNMF, 0), "rank(0)")
	option("memory of rank -1", memory(MethodBQMF, -1), "rank(-1)")
	option("memory, start", memory(MethodNMF, 1, WithStart(StartNMF)), "")
	option("memory, shrinkage, pinned", memory(MethodQMF, 1, WithShrinkage(1), WithEnds(EndsPinned)), "")
	option("memory, SVD", memory(MethodQMFQ, 1, WithStart(StartSVD)), "")
	option("memory, loss", memory(MethodBQMF, 1, WithLoss(Beta(1.5))), "")
	option("memory, levels of NMF", memory(MethodNMF, 1, WithLevels(8)), "WithLevels")
	option("memory of no method", memory(Method(9), 1), "")
	option("no method", ErrorOf(Fit(ctx, 99, good, 2)), "")
	shape("memory of nothing", ErrorOf(MemoryOf(MethodQMF, 0, 5, 1)), "")
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
				Frobenius: "Frobenius"}[Loss(c.loss)]
		},
		"WithEpochs":        func(c *config) string { return itoa(c.epochs) },
		"WithLevels":        func(c *config) string { return itoa(c.levels) },
		"WithEpsilon":       func(c *config) string { return ftoa(c.epsilon) },
		"WithSquash":        func(c *config) string { return c.squash.String() },
		"WithTolerance":     func(c *config) string { return ftoa(c.tolerance) },
		"WithMaxIterations": func(c *config) string { return itoa(c.maxIterations) },
		"WithLearningRate":  func(c *config) string { return ftoa(c.learningRate) },
		"WithSchedule":      func(c *config) string { return c.schedule.String() },
		"WithBatch": func(c *config) string {
			if c.batchRows == math.MaxInt32 {
				return "all"
			}
			return itoa(c.batchRows)
		},
		"WithStart": func(c *config) string { return c.start.String() },
		"WithEnds":  func(c *config) string { return c.ends.String() },
		"WithShrinkage": func(c *config) string {
			if c.shrinkage < 0 {
				return "by hidden cells"
			}
			return ftoa(c.shrinkage)
		},
		"WithLine": func(c *config) string {
			if c.line < 0 {
				return "by hidden cells"
			}
			return ftoa(c.line)
		},
		"WithProjection": func(c *config) string { return c.projection.String() },
		"WithPenalty":    func(c *config) string { return ftoa(c.penalty) },
		"WithPenalties": func(c *config) string {
			if c.penalties == (Penalties{}) {
				return "none"
			}
			return c.penalties.String()
		},
		"WithUpdates":  func(c *config) string { return c.updates.String() },
		"WithSeed":     func(c *config) string { return utoa(c.seed) },
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
