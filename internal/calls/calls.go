// Package calls answers the calls that programs in other languages make of package quantmf: fits, methods of
// models, operators. JavaScript (web/engine) and "quantmf serve" bring arguments behind [Value], each in its
// own form, and take results as trees of plain values. web/js/index.d.ts documents arguments
// and results. The package imports no fmt, which alone would add a tenth to the size of the engine.
package calls

// This file holds the calls. A result is nil, a bool, an int, a float64, a string, a []string, a []float64, a
// []byte, a quantmf.Mat, or a []any or map[string]any of results.

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/settings"
)

// Answer makes the call of this name. It is a switch and no map, so that a program that does not call it
// links none of the models.
func (c Call) Answer(name string) (any, error) { return (&reader{Call: c}).answer(name) }

func (c *reader) answer(name string) (any, error) {
	switch name {
	case "fit":
		return c.fit()
	case "unseen":
		return c.unseen()
	case "consensus":
		return c.consensus()
	case "open":
		return c.open()
	case "transform", "predict", "scores", "score":
		return c.ofSamples(name)
	case "updated":
		return c.updated()
	case "predictInterval":
		return c.predictInterval()
	case "normalize":
		return c.normalize()
	case "reconstruct":
		return c.reconstruct()
	case "median", "deviation", "embedding":
		return c.bayesian(name)
	case "interval":
		return c.interval()
	case "map":
		return c.mapped()
	case "top":
		return c.top()
	case "account":
		return c.account()
	case "named":
		return c.named()
	case "heldOut":
		return c.heldOut()
	case "footprint":
		return c.footprint()
	case "softRank":
		return unary(c, c.numbers, quantmf.SoftRank)
	case "softSort":
		return unary(c, c.numbers, quantmf.SoftSort)
	case "softQuantile":
		return binary(c, c.numbers, "q", quantmf.SoftQuantile)
	case "softRankVJP", "softSortVJP", "softQuantileVJP":
		return c.backward(name)
	case "softRankRows":
		return unary(c, c.matrix, quantmf.SoftRankRows)
	case "softSortRows":
		return unary(c, c.matrix, quantmf.SoftSortRows)
	case "softRankRowsVJP":
		return binary(c, c.matrix, "z", quantmf.SoftRankRowsVJP)
	case "softSortRowsVJP":
		return binary(c, c.matrix, "z", quantmf.SoftSortRowsVJP)
	case "softQuantileRows":
		return binary(c, c.matrix, "q", quantmf.SoftQuantileRows)
	case "softQuantileRowsVJP":
		return c.softQuantileRowsVJP()
	}
	return nil, errors.New("quantmf: there is no such call")
}

func (c *reader) method() string {
	v := c.Args.Field("method")
	name := v.Text()
	if all := append(slices.Clip(settings.Methods), "auto"); !slices.Contains(all, name) {
		c.fail(wrong("method", v, settings.OneOf(all).Error()))
	}
	return name
}

// told reports the progress of a fit to the host, and stops the fit when its context ends.
func (c Call) told(p quantmf.Progress) error {
	phase := strings.ToLower(strings.TrimPrefix(p.Phase.String(), "Phase"))
	c.Host.Progress(phase, p.Done, p.Epoch, p.Epochs, p.Loss)
	return c.Ctx.Err()
}

func (c *reader) fit() (any, error) {
	method := c.method()
	x, rank, opts := c.asked(method)
	if c.err != nil {
		return nil, c.err
	}
	if method == "auto" {
		return c.fitAuto(x, rank, opts)
	}
	m, err := settings.Fit(c.Ctx, method, x, rank, append(opts, quantmf.WithProgress(c.told))...)
	if err != nil {
		return nil, err
	}
	return result(about(m))
}

// asked reads the matrix, the rank and the options of a fit, and asks the host whether there is room for it.
func (c *reader) asked(method string) (x quantmf.Rows, rank int, opts []quantmf.FitOption) {
	rank, opts, x = c.whole("rank"), c.options(), c.rows("x")
	if c.err == nil {
		c.fail(c.room(settings.Method(method), x, rank, opts))
	}
	return x, rank, opts
}

// consensus is a fit by NMF with the fields of the consensus beside those of its model.
func (c *reader) consensus() (any, error) {
	seeds := c.whole("seeds")
	x, rank, opts := c.asked("nmf")
	if c.err != nil {
		return nil, c.err
	}
	m, err := quantmf.FitConsensus(c.Ctx, x, rank, seeds, opts...)
	if err != nil {
		return nil, err
	}
	of, err := about(m.NMF)
	if err != nil {
		return nil, err
	}
	of["stability"], of["overall"], of["left"], of["losses"] = m.Stability, m.Overall, m.Left, m.Losses
	return of, nil
}

// room asks the host whether there is room for a fit. The fit itself reports all other errors.
func (c Call) room(method quantmf.Method, x quantmf.Rows, rank int, opts []quantmf.FitOption) error {
	d, n := x.Dims()
	most, err := quantmf.MemoryFor(context.Background(), method, x, rank, opts...)
	if err != nil {
		return nil
	}
	least, err := quantmf.MemoryFor(context.Background(), method, x, 1, opts...)
	if err != nil {
		return nil
	}
	return c.Host.Room(d, n, most.Fit, least.Fit)
}

// about returns what callers hold of a model: its file, and the numbers of it that they read.
func about(m quantmf.Model) (map[string]any, error) {
	file, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	of := settings.Factorisation(m)
	a := map[string]any{"bytes": file, "method": settings.MethodOf(m)}
	switch m := m.(type) {
	case *quantmf.QMF:
		a["bend"] = m.Bend()
	case *quantmf.QMFQ:
		a["bend"] = m.Bend()
	case *quantmf.BQMF:
		a["bend"], a["relevance"], a["leaveOneOut"] = m.Bend(), m.Relevance, m.LeaveOneOut
	}
	a["u"], a["v"] = of.U, of.V
	a["history"], a["validation"], a["best"] = of.History, of.Validation, of.Best
	a["warnings"] = warnings(m)
	return a, nil
}

// warnings returns those of a fit and of the size of its model, as the report and a named file have them.
func warnings(m quantmf.Model) []string {
	all := []string{}
	for _, w := range settings.Factorisation(m).Warnings {
		all = append(all, strings.TrimPrefix(w.Error(), "quantmf: "))
	}
	return append(all, account.Remarks(m)...)
}

func (c *reader) open() (any, error) {
	m := c.model()
	if c.err != nil {
		return nil, c.err
	}
	return result(about(m))
}

// ofSamples makes a call of a model with samples.
func (c *reader) ofSamples(name string) (any, error) {
	m, x := c.model(), c.rows("x")
	if c.err != nil {
		return nil, c.err
	}
	switch name {
	case "transform":
		return result(m.Transform(c.Ctx, x))
	case "predict":
		return result(m.Predict(c.Ctx, x))
	case "scores":
		return result(m.Scores(c.Ctx, x))
	}
	return result(m.Score(c.Ctx, x))
}

// updated returns what open does, of the model that has learnt from x as well.
func (c *reader) updated() (any, error) {
	m, x := c.posterior("updated"), c.rows("x")
	if c.err != nil {
		return nil, c.err
	}
	of, err := m.Updated(c.Ctx, x)
	if err != nil {
		return nil, err
	}
	return result(about(of))
}

func (c *reader) predictInterval() (any, error) {
	m, x, p := c.posterior("predictInterval"), c.rows("x"), c.decimal("p")
	if c.err != nil {
		return nil, c.err
	}
	return bounds(m.PredictInterval(c.Ctx, x, p))
}

// bounds are those of an interval of each value.
func bounds(lo, hi quantmf.Mat, err error) (any, error) {
	return result(map[string]any{"low": lo, "high": hi}, err)
}

// result returns nothing beside an error.
func result[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (c *reader) normalize() (any, error) {
	m := modelOf[*quantmf.QMFQ](c, "normalize", "by qmfq, the only ones with maps of the data itself")
	x := c.matrix("x")
	if c.err != nil {
		return nil, c.err
	}
	return result(m.Normalize(x))
}

func (c *reader) reconstruct() (any, error) {
	m := c.model()
	if c.full(m, 1); c.err != nil {
		return nil, c.err
	}
	return m.Reconstruct(), nil
}

// full asks the host whether there is room for results as large as the matrix that was fitted.
func (c *reader) full(m quantmf.Model, results int64) {
	if c.err == nil {
		of := settings.Factorisation(m)
		need := 8 * results * int64(of.U.Rows) * int64(of.V.Cols)
		c.fail(c.Host.Room(of.U.Rows, of.V.Cols, need, need))
	}
}

// posterior reads the model, which must be by bqmf, for a call of this name.
func (c *reader) posterior(name string) *quantmf.BQMF {
	return modelOf[*quantmf.BQMF](c, name, "by bqmf, the only ones that know their uncertainty")
}

// modelOf reads the model for a call of this name, which is of models of one kind alone.
func modelOf[M quantmf.Model](c *reader, name, kind string) (of M) {
	m := c.model()
	of, is := m.(M)
	if m != nil && !is {
		c.fail(&quantmf.OptionError{Option: name, Bound: "is of models " + kind})
	}
	return of
}

func (c *reader) bayesian(name string) (any, error) {
	m := c.posterior(name)
	if name != "embedding" {
		c.full(m, 1)
	}
	if c.err != nil {
		return nil, c.err
	}
	switch name {
	case "median":
		return m.Median(), nil
	case "deviation":
		return m.Deviation(), nil
	}
	return m.Embedding(), nil
}

func (c *reader) interval() (any, error) {
	m, p := c.posterior("interval"), c.decimal("p")
	if c.full(m, 2); c.err != nil {
		return nil, c.err
	}
	return bounds(m.Interval(p))
}

// mapped returns T_i at values w.
func (c *reader) mapped() (any, error) {
	m, row, w := c.model(), c.whole("row"), c.numbers("values")
	if c.err != nil {
		return nil, c.err
	}
	for j, v := range w {
		if v-v != 0 {
			return nil, &quantmf.DataError{Row: -1, Col: j, Value: v, Problem: "must be finite"}
		}
	}
	var at interface{ At(w float64) float64 }
	var err error
	switch m := m.(type) {
	case *quantmf.QMF:
		at, err = m.Map(row)
	case *quantmf.QMFQ:
		at, err = m.Inflate(row)
	case *quantmf.BQMF:
		at, err = m.Map(row)
	default:
		err = &quantmf.OptionError{Option: "map", Bound: "a model by nmf has no maps"}
	}
	if err != nil {
		return nil, err
	}
	t := make([]float64, len(w))
	for j, v := range w {
		t[j] = at.At(v)
	}
	return t, nil
}

// top returns the first features and samples of every component.
func (c *reader) top() (any, error) {
	m, x, count := c.model(), c.rows("x"), c.whole("count")
	if c.err != nil {
		return nil, c.err
	}
	if count < 0 {
		return nil, &quantmf.OptionError{Option: "count", Value: itoa(count), Bound: "must be at least 0"}
	}
	features, err := m.TopFeatures(x, count)
	if err != nil {
		return nil, err
	}
	return map[string]any{"features": ranked(features), "samples": ranked(m.TopSamples(count))}, nil
}

func ranked(all [][]quantmf.Top) []any {
	lists := make([]any, len(all))
	for i, top := range all {
		list := make([]any, len(top))
		for j, t := range top {
			list[j] = map[string]any{"index": t.Index, "value": t.Value}
		}
		lists[i] = list
	}
	return lists
}

// account is what a report draws of a model and the matrix that was fitted; the call "report" of the
// page's readers takes it.
func (c *reader) account() (any, error) {
	m, x := c.model(), c.matrix("x")
	if c.err != nil {
		return nil, c.err
	}
	a, err := account.Of(m, x, nil)
	if err != nil {
		return nil, err
	}
	goodness := []float64{}
	for _, g := range a.Goodness {
		goodness = append(goodness, g.Divergence, g.Spread, g.Explained)
	}
	return map[string]any{
		"method": a.Method, "u": a.U, "v": a.V, "fitted": a.Fitted, "loss": a.Loss, "epochs": a.Epochs,
		"goodness": goodness, "shares": a.Shares, "features": ranked(a.TopFeatures),
		"samples": ranked(a.TopSamples), "curves": a.Curves, "bend": a.Bend, "normalized": a.Normalized,
		"levels": a.Levels, "began": a.Began, "predicted": a.Predicted,
	}, nil
}

// heldOut makes one trial of a choice of rank. Trials of other calls have the same masks.
func (c *reader) heldOut() (any, error) {
	method, rank, repeats := c.method(), c.whole("rank"), c.whole("repeats")
	share, seed := c.decimal("share"), c.decimal("maskSeed")
	if !(seed >= 0 && seed < 1<<53) {
		c.fail(wrong("maskSeed", c.Args.Field("maskSeed"), "must be from 0 to 2^53"))
	}
	opts := c.options()
	if repeats == 0 || share == 0 { // HeldOut has defaults for 0, and clients have their own
		c.fail(&quantmf.OptionError{Option: "repeats", Value: itoa(repeats),
			Bound: "neither repeats nor share may be 0"})
	}
	x := c.rows("x")
	if c.err == nil {
		c.fail(c.room(settings.Method(method), x, rank, opts))
	}
	if c.err != nil {
		return nil, c.err
	}
	masks := quantmf.Masks{Repeats: repeats, Share: share, Seed: uint64(seed)}
	told := &trial{Call: c.Call, repeats: max(repeats, 1)}
	fit := func(ctx context.Context, x quantmf.Rows, rank int, opts ...quantmf.FitOption) (quantmf.Model,
		error) {
		return settings.Fit(ctx, method, x, rank, opts...)
	}
	trials := []quantmf.Trial{{Rank: rank, Options: append(opts, quantmf.WithProgress(told.hear))}}
	p, err := quantmf.HeldOut(c.Ctx, x, fit, trials, masks)
	if err != nil {
		return nil, err
	}
	return map[string]any{"rank": rank, "mean": p[0].Mean, "standardError": p[0].StdErr,
		"losses": p[0].Losses, "relative": p[0].Relative, "baseline": p[0].Baseline,
		"baselineRelative": p[0].BaselineRelative}, nil
}

// footprint returns the memory that a fit takes, in bytes.
func (c *reader) footprint() (any, error) {
	method, d, n, k := c.method(), c.whole("rows"), c.whole("columns"), c.whole("rank")
	opts := c.options()
	if c.err != nil {
		return nil, c.err
	}
	m, err := quantmf.MemoryOf(settings.Method(method), d, n, k, opts...)
	return result(float64(m.Fit), err)
}

// unary calls a soft operator of x alone, which arg reads, and binary one of x and a further argument.
func unary[T any](c *reader, arg func(name string) T,
	f func(x T, opts ...quantmf.Option) (T, error)) (any, error) {
	opts, x := c.settings(), arg("x")
	if c.err != nil {
		return nil, c.err
	}
	return result(f(x, opts...))
}

func binary[T any](c *reader, arg func(name string) T, other string,
	f func(x, other T, opts ...quantmf.Option) (T, error)) (any, error) {
	opts, x, y := c.settings(), arg("x"), arg(other)
	if c.err != nil {
		return nil, c.err
	}
	return result(f(x, y, opts...))
}

// backward calls the transposed Jacobian of an operator.
func (c *reader) backward(name string) (any, error) {
	opts, x, q, z := c.settings(), c.numbers("x"), c.numbers("q"), c.numbers("z")
	if c.err != nil {
		return nil, c.err
	}
	if q != nil {
		opts = append([]quantmf.Option{quantmf.WithLevels(len(q))}, opts...)
	}
	t, err := quantmf.Solve(x, opts...)
	if err != nil {
		return nil, err
	}
	var g *quantmf.Gradient
	switch name {
	case "softRankVJP":
		g, err = t.RankVJP(z)
	case "softSortVJP":
		g, err = t.SortVJP(z)
	default:
		g, err = t.QuantileVJP(q, z)
	}
	if err != nil {
		return nil, err
	}
	of := map[string]any{"x": g.X, "a": g.A, "b": g.B, "y": g.Y, "epsilon": g.Epsilon}
	if g.Q != nil {
		of["q"] = g.Q
	}
	return of, nil
}

func (c *reader) softQuantileRowsVJP() (any, error) {
	opts, x, q, z := c.settings(), c.matrix("x"), c.matrix("q"), c.matrix("z")
	if c.err != nil {
		return nil, c.err
	}
	gx, gq, gb, err := quantmf.SoftQuantileRowsVJP(x, q, z, opts...)
	return result(map[string]any{"x": gx, "q": gq, "b": gb}, err)
}

// named returns the model's file with the names of features and samples and the origin of the model, in the
// form that the command writes and reads.
func (c *reader) named() (any, error) {
	m := c.model()
	names := account.Names{Features: c.texts("features"), Samples: c.texts("samples")}
	if c.err != nil {
		return nil, c.err
	}
	of := settings.Factorisation(m)
	if len(names.Features) != of.U.Rows || len(names.Samples) != of.V.Cols {
		return nil, &quantmf.ShapeError{What: "names",
			Got: itoa(len(names.Features)) + " and " + itoa(len(names.Samples)), Want: itoa(of.U.Rows) +
				" of features and " + itoa(of.V.Cols) + " of samples"}
	}
	made, err := (&reader{Call: Call{Args: c.Args.Field("made")}}).made()
	if err != nil {
		return nil, err
	}
	made.Warnings = append(warnings(m), made.Warnings...)
	file, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return result(account.Append(file, names, made))
}

// made reads how a model came about.
func (c *reader) made() (account.Made, error) {
	m := account.Made{Matrix: c.text("matrix"), Command: c.text("command"), Losses: c.text("losses"),
		Log1p: c.text("log1p") == "true", Top: c.text("top") == "true",
		Unseen: account.ReadUnseen(c.text("unseen")), Stability: c.numbers("stability")}
	if c.Args.Field("warnings").Type() != None {
		m.Warnings = c.texts("warnings")
	}
	return m, c.err
}

// trial is the progress of the fits of one trial, which may run side by side.
type trial struct {
	Call
	repeats int
	ended   atomic.Int64
}

func (t *trial) hear(p quantmf.Progress) error {
	if p.Phase == quantmf.PhaseEpochs {
		ended := t.ended.Load()
		if p.Epoch == p.Epochs {
			ended = t.ended.Add(1)
		}
		t.Host.Progress("rank", math.Min(1, float64(ended)/float64(t.repeats)), p.Epoch, p.Epochs, p.Loss)
	}
	return t.Ctx.Err()
}
