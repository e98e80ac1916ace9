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
		return ErrorOf(SoftQuantileRows(m, Mat{Rows: 1, Cols: 10, Stride: 10, Data: y}, o))
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
	tr := Must(Solve(x))(t)
	m, b := Fitted(t, FitQMF, good, 1, WithEpochs(1)), Fitted(t, FitBQMF, first(wide, 6), 0)
	interval := func(p float64) error { _, _, err := b.Interval(p); return err }
	_, _, _, shape4 := SoftQuantileRowsVJP(NewMat(2, 3), NewMat(1, 2), NewMat(2, 4))
	var (
		option *OptionError
		data   *DataError
		shape  *ShapeError
		conv   *ConvergenceError
	)
	for _, c := range []struct {
		name string
		err  error
		as   any
		says string
	}{
		{"ε < 0", solve(x, WithEpsilon(-1)), &option, "WithEpsilon(-1)"},
		{"ε NaN", solve(x, WithEpsilon(nan)), &option, "WithEpsilon(NaN)"},
		{"ε Inf", solve(x, WithEpsilon(inf)), &option, "WithEpsilon(+Inf)"},
		{"tolerance 0", solve(x, WithTolerance(0)), &option, "WithTolerance(0)"},
		{"iterations 0", solve(x, WithIterations(0)), &option, "at least 1"},
		{"iterations at ε 0", solve(x, WithIterations(1), WithEpsilon(0)), &option, "epsilon 0"},
		{"iterations, tolerance", solve(x, WithIterations(1), WithTolerance(1)), &option,
			"contradicts WithIterations"},
		{"iterations, maximum", solve(x, WithMaxIterations(9), WithIterations(1)), &option,
			"contradicts WithIterations"},
		{"maximum 0", solve(x, WithMaxIterations(0)), &option, "WithMaxIterations(0)"},
		{"workers", solve(x, WithWorkers(-1)), &option, "WithWorkers(-1)"},
		{"levels 0", solve(x, WithLevels(0)), &option, "WithLevels(0)"},
		{"levels, targets", solve(x, WithLevels(2), WithTargets(x)), &option, "WithTargets gives 3"},
		{"levels, q", ErrorOf(SoftQuantile(x, x, WithLevels(2))), &option, "q has 3"},
		{"nil weights", solve(x, WithWeights(nil)), &option, "WithWeights"},
		{"weights sum", solve(x, WithWeights([]float64{0, 0, 0})), &option, "sum"},
		{"negative weight", solve(x, WithWeights([]float64{0, -1, 0})), &option, "weight 1"},
		{"weights length", solve(x, WithWeights(x[:2])), &shape, "weights"},
		{"empty targets", solve(x, WithTargets(nil)), &option, "WithTargets"},
		{"targets order", solve(x, WithTargets([]float64{0, 0})), &option, "target 1"},
		{"targets NaN", solve(x, WithTargets([]float64{0, nan})), &option, "target 1"},
		{"targets that no threshold separates", solve(x, WithTargets([]float64{0, 5e-324, 1})), &option, ""},
		{"targets, q", ErrorOf(SoftQuantile(x, x, WithTargets(x[:2]))), &shape, "targets: got 2"},
		{"empty target weights", solve(x, WithTargetWeights([]float64{})), &option, "WithTargetWeights"},
		{"zero target weight", solve(x, WithTargetWeights([]float64{1, 0, 1})), &option, "weight 1"},
		{"far target weight", solve(x, WithTargetWeights([]float64{1e-300, 1e300})), &option,
			"WithTargetWeights"},
		{"far target weight", solve(x, WithTargetWeights([]float64{1, 1e308, 1}), WithEpsilon(0)), &option,
			"WithTargetWeights"},
		{"far target weight", solve(x, WithTargetWeights([]float64{1, 1, 1e-291})), &option,
			"WithTargetWeights"},
		{"target weights length", solve(x, WithTargetWeights(x), WithLevels(2)), &shape, "target weights"},
		{"squash", solve(x, WithSquash(99)), &option, "WithSquash(99)"},
		{"nil option", solve(x, nil), &option, "nil"},
		{"too much memory", solve(make([]float64, 100000), WithLevels(100000)), &option, "memory"},
		{"empty x", solve(nil), &shape, "no samples"},
		{"NaN in x", solve([]float64{1, nan}), &data, "column 1"},
		{"Inf in x", solve([]float64{-inf, 1}), &data, "column 0"},
		{"strict", solve([]float64{0, 1, 2, 5}, WithStrict(), WithMaxIterations(1)), &conv, "wanted 1e-09"},
		{"q length", ErrorOf(tr.Quantile(x[:2])), &shape, "q"},
		{"q order", ErrorOf(tr.Quantile([]float64{3, 2, 1})), &data, "column 1"},
		{"z NaN", ErrorOf(tr.RankVJP([]float64{1, nan, 0})), &data, "column 1"},
		{"z length", ErrorOf(tr.SortVJP(x[:1])), &shape, "z"},
		{"direction", ErrorOf(tr.QuantileJVP(x, Gradient{B: x[:1]})), &shape, "dir.B"},
		{"no q", ErrorOf(SoftQuantile(x, nil)), &shape, "q"},
		{"rows of q", ErrorOf(SoftQuantileRows(good, mat(x, x, x))), &shape, "1 or 2"},
		{"rows of z", shape4, &shape, "z: got 2×4, want 2×3"},
		{"unsorted q", ErrorOf(SoftQuantileRows(good, mat([]float64{0, 1}, []float64{1, 0}))), &data,
			"row 1, column 1"},
		{"level 1.5", ErrorOf(SoftQuantiles(x, []float64{1.5})), &data, ""},
		{"no levels", ErrorOf(SoftQuantiles(x, nil)), &shape, ""},
		{"no samples", ErrorOf(SoftQuantiles(nil, x[:1])), &shape, ""},
		{"own weights", ErrorOf(SoftQuantiles(x, x[:1], WithTargetWeights(x))), &option, ""},
		{"level -0.01", weights(-0.01, 0.1), &data, "column 1"},
		{"level 1.01", weights(1.01, 0.1), &data, "column 1"},
		{"level NaN", weights(nan, 0.1), &data, "column 1"},
		{"width 0", weights(0.6, 0), &option, "width(0)"},
		{"width -1", weights(0.6, -1), &option, "width(-1)"},
		{"width above 1", weights(0.6, math.Nextafter(1, 2)), &option, "width(1.0000000000000002)"},
		{"width NaN", weights(0.6, nan), &option, "width(NaN)"},
		{"top 0", ErrorOf(SoftTopK(x, 0)), &option, ""}, {"top 4 of 3", ErrorOf(SoftTopK(x, 4)), &option, ""},
		{"ragged", ErrorOf(MatOf(x, x[:2])), &shape, "row 1"},
		{"rank 0", fit(good, 0), &option, "rank(0)"},
		{"rank 0", nmf(good, 0), &option, "rank(0)"},
		{"absurd rank", nmf(good, 1<<31-1), &option, "memory"},
		{"empty matrix", fit(Mat{}, 1), &shape, "at least one row"},
		{"short data", fit(Mat{Rows: 2, Cols: 2, Stride: 2, Data: x}, 1), &shape, "3 numbers"},
		{"stride", fit(Mat{Rows: 2, Cols: 2, Stride: 1, Data: x}, 1), &shape, "stride"},
		{"huge", fit(Mat{Rows: math.MaxInt, Cols: 2, Stride: 2, Data: x}, 1), &shape, "numbers"},
		{"negative", fit(mat(x, []float64{1, -2, 3}), 1), &data, "row 1, column 1"},
		{"NaN", nmf(mat(x, []float64{1, 2, nan}), 1), &data, "row 1, column 2"},
		{"Inf", nmf(mat([]float64{inf, 2, 1}), 1), &data, "row 0, column 0"},
		{"too large", nmf(mat([]float64{1e200, 2, 1}), 1), &data, "overflow"},
		{"signed", nmf(signed, 2), &data, "WithLoss(Frobenius)"},
		{"signed, Frobenius", nmf(signed, 2, WithLoss(Frobenius)), &data, "FitQMF"},
		{"signed", fit(signed, 2), &data, "WithLoss(Frobenius)"},
		{"signed, 1.5", fit(signed, 2, WithLoss(1.5)), &data, "WithLoss(Frobenius)"},
		{"signed", ErrorOf(FitQMFQ(ctx, signed, 2)), &data, "WithLoss(Frobenius)"},
		{"signed, KL", ErrorOf(FitBQMF(ctx, signed, 2, WithLoss(KL))), &data, ""},
		{"signed", held(signed, mask, one), &data, "WithLoss(Frobenius)"},
		{"one level", fit(good, 1, WithLevels(1)), &option, "at least 2"},
		{"ε 0 in a fit", fit(good, 1, WithEpsilon(0)), &option, "gradient"},
		{"epochs", nmf(good, 1, WithEpochs(-1)), &option, "WithEpochs(-1)"},
		{"rate", fit(good, 1, WithLearningRate(0)), &option, "WithLearningRate(0)"},
		{"batch", fit(good, 1, WithBatch(0)), &option, "WithBatch(0)"},
		{"penalty", fit(good, 1, WithPenalty(-1)), &option, "WithPenalty(-1)"},
		{"shrinkage", fit(good, 1, WithShrinkage(nan)), &option, "WithShrinkage(NaN)"},
		{"shrinkage, pinned", fit(good, 1, WithShrinkage(1), WithEnds(EndsPinned)), &option, "EndsFree"},
		{"shrinkage, uniform", fit(good, 1, WithShrinkage(1), WithStart(StartUniform)), &option, "EM"},
		{"line", fit(good, 1, WithLine(nan)), &option, "WithLine(NaN)"},
		{"line, pinned", fit(good, 1, WithLine(0.5), WithEnds(EndsPinned)), &option, "must be 0"},
		{"line, uniform", fit(good, 1, WithLine(0.5), WithStart(StartUniform)), &option, "must be 0"},
		{"line, SVD", ErrorOf(FitQMFQ(ctx, good, 1, WithLine(0.5), WithProjection(TruncatedSVD()))), &option,
			"must be 0"},
		{"start, init", fit(good, 1, WithStart(StartNMF), init(1, x...)), &option, "contradicts WithInit"},
		{"start, init", nmf(good, 1, WithStart(StartUniform), init(1, x...)), &option,
			"contradicts WithInit"},
		{"init shape", fit(good, 1, WithInit(good, good)), &shape, "initial U"},
		{"init negative", nmf(good, 1, init(-1, x...)), &data, "initial U"},
		{"init too large", nmf(good, 1, init(1e40, 1e40, 1, 1)), &data, "the product"},
		{"init out of reach", nmf(good, 1, init(1e200, 1, 1, 1)), &data, "row 1, column 0"},
		{"init too large", fit(good, 1, init(1e40, 1e40, 1, 1)), &data, "the product"},
		{"init out of reach", fit(good, 1, init(1e200, 1, 1, 1)), &data, "row 1, column 0"},
		{"absurd levels", fit(good, 1, WithLevels(math.MaxInt32)), &option, "memory"},
		{"absurd rate", fit(good, 1, WithLearningRate(1e9)), &option, "at most 100"},
		{"absurd shrinkage", fit(good, 1, WithShrinkage(1e300)), &option, "1e30"},
		{"progress", fit(good, 1, WithProgress(nil)), &option, "WithProgress"},
		{"loss", nmf(good, 1, WithLoss(Beta(9))), &option, "WithLoss(9)"},
		{"zero", nmf(good, 1, WithLoss(Beta(0))), &data, "positive"},
		{"patience", nmf(good, 1, WithPatience(0)), &option, "WithPatience(0)"},
		{"restarts", nmf(good, 1, WithRestarts(0)), &option, "WithRestarts(0)"},
		{"restarts, init", nmf(good, 1, WithRestarts(2), init(1, x...)), &option, "contradicts WithInit"},
		{"restarts, SVD", nmf(good, 1, WithRestarts(2), WithStart(StartSVD)), &option, ""},
		{"scores", nmf(good, 1, WithStart(StartScores)), &option, ""},
		{"SVD", fit(good, 1, WithStart(StartSVD)), &option, ""},
		{"SVD", ErrorOf(FitQMFQ(ctx, good, 1, WithStart(StartSVD))), &option, ""},
		{"validation", nmf(good, 1, WithValidation(0.6)), &option, "WithValidation(0.6)"},
		{"validation of nothing", nmf(good, 1, WithValidation(0.1)), &option, "too small"},
		{"schedule", fit(good, 1, WithSchedule(9)), &option, "WithSchedule(9)"},
		{"start", fit(good, 1, WithStart(9)), &option, "WithStart(9)"},
		{"ends", fit(good, 1, WithEnds(9)), &option, "WithEnds(9)"},
		{"rank -1", ErrorOf(FitBQMF(ctx, good, -1)), &option, "rank(-1)"},
		{"a loss of no BQMF", ErrorOf(FitBQMF(ctx, good, 0, WithLoss(Beta(0.5)))), &option, ""},
		{"a posterior that no memory holds", ErrorOf(FitBQMF(ctx, NewMat(2500, 2500), 2499)), &option,
			"rank("},
		{"a map of no row", ErrorOf(b.Map(6)), &shape, "row"},
		{"a map of no row", ErrorOf(m.Map(2)), nil, ""},
		{"p = 0", interval(0), &option, "p(0)"}, {"p = 1", interval(1), &option, "p(1)"},
		{"p = -1", interval(-1), &option, "p(-1)"}, {"p = NaN", interval(nan), &option, "p(NaN)"},
		{"loss of another shape", ErrorOf(m.Loss(NewMat(1, 1))), &shape, "x: got 1×1, want 2×3"},
		{"loss of another shape", ErrorOf(m.Loss(NewMat(2, 4))), &shape, "x: got 2×4, want 2×3"},
		{"loss of Inf", ErrorOf(m.Loss(mat(x, []float64{1, 2, inf}))), &data, "row 1, column 2"},
		{"first mask -1", held(wide, Masks{First: -1}, one), &option, "first(-1)"},
		{"held out, rank 0", held(wide, mask, Trial{}), &option, "rank(0)"},
		{"held out, two losses", held(wide, mask, one, Trial{1, []FitOption{WithLoss(Frobenius)}}), &option,
			"WithLoss"},
		{"held out, SVD", ErrorOf(HeldOut(ctx, wide, FitQMFQ,
			[]Trial{{2, []FitOption{WithProjection(TruncatedSVD())}}}, mask)), &option, "WithProjection"},
		{"-1 repeats", held(wide, Masks{-1, 0.1, 1, 0}, one), &option, "repeats(-1): must be at least 1"},
		{"endless repeats", held(wide, Masks{math.MaxInt, 0.1, 1, 0}, one), &option, "repeats("},
		{"many repeats", held(wide, Masks{math.MaxInt / 1000, 0.1, 1, 0}, one), &option, "repeats("},
		{"share 0.6", held(wide, Masks{1, 0.6, 1, 0}, one), &option, "share(0.6)"},
		{"share of nothing", held(mat(x[:2], x[1:]), mask, one), &option, "share("},
		{"held out of another matrix", ErrorOf(HeldOut(ctx, wide,
			func(ctx context.Context, _ Rows, k int, o ...FitOption) (*NMF, error) {
				return FitNMF(ctx, NewMat(12, 81), k, o...)
			}, []Trial{one}, mask)), &shape, "x: "},
		{"memory of rank 0", memory(MethodNMF, 0), &option, "rank(0)"},
		{"memory of rank -1", memory(MethodBQMF, -1), &option, "rank(-1)"},
		{"memory, start", memory(MethodNMF, 1, WithStart(StartNMF)), &option, ""},
		{"memory, shrinkage, pinned", memory(MethodQMF, 1, WithShrinkage(1), WithEnds(EndsPinned)), &option,
			""},
		{"memory, SVD", memory(MethodQMFQ, 1, WithStart(StartSVD)), &option, ""},
		{"memory, loss", memory(MethodBQMF, 1, WithLoss(Beta(1.5))), &option, ""},
		{"memory, levels of NMF", memory(MethodNMF, 1, WithLevels(8)), &option, "WithLevels"},
		{"memory of no method", memory(Method(9), 1), &option, ""},
		{"no method", ErrorOf(Fit(ctx, 99, good, 2)), &option, ""},
		{"memory of nothing", ErrorOf(MemoryOf(MethodQMF, 0, 5, 1)), &shape, ""},
	} {
		if c.err == nil || c.as != nil && !errors.As(c.err, c.as) ||
			!strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %T %v; want %T that says %q", c.name, c.err, c.err, c.as, c.says)
		}
	}
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
