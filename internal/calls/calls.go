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

// Answer makes the call of this name.
func (c Call) Answer(name string) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, is := p.(fault)
			if !is {
				panic(p)
			}
			result, err = nil, f.error
		}
	}()
	return c.answer(name), nil
}

// answer is a switch and no map, so that a program that does not call it links none of the models.
func (c Call) answer(name string) any {
	switch name {
	case "fit":
		return c.fit()
	case "unseen":
		return c.unseen()
	case "consensus":
		return c.consensus()
	case "open":
		return about(c.model())
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
	panic(fault{errors.New("quantmf: there is no such call")})
}

func (c Call) method() string {
	v := c.Args.Field("method")
	name := v.Text()
	if all := append(slices.Clip(settings.Methods), "auto"); !slices.Contains(all, name) {
		check(wrong("method", v, settings.OneOf(all).Error()))
	}
	return name
}

// told reports the progress of a fit to the host, and stops the fit when its context ends.
func (c Call) told(p quantmf.Progress) error {
	phase := strings.ToLower(strings.TrimPrefix(p.Phase.String(), "Phase"))
	c.Host.Progress(phase, p.Done, p.Epoch, p.Epochs, p.Loss)
	return c.Ctx.Err()
}

func (c Call) fit() any {
	method := c.method()
	x, rank, opts := c.asked(method)
	if method == "auto" {
		return c.fitAuto(x, rank, opts)
	}
	return about(got(settings.Fit(c.Ctx, method, x, rank, append(opts, quantmf.WithProgress(c.told))...)))
}

// asked reads the matrix, the rank and the options of a fit, and asks the host whether there is room for it.
func (c Call) asked(method string) (x quantmf.Rows, rank int, opts []quantmf.FitOption) {
	rank, opts, x = c.whole("rank"), c.options(), c.rows("x")
	c.room(method, x, rank, opts)
	return x, rank, opts
}

// consensus is a fit by NMF with the fields of the consensus beside those of its model.
func (c Call) consensus() any {
	seeds := c.whole("seeds")
	x, rank, opts := c.asked("nmf")
	m := got(quantmf.FitConsensus(c.Ctx, x, rank, seeds, opts...))
	of := about(m.NMF)
	of["stability"], of["overall"], of["left"], of["losses"] = m.Stability, m.Overall, m.Left, m.Losses
	return of
}

// room asks the host whether there is room for a fit. The fit itself reports all other errors.
func (c Call) room(method string, x quantmf.Rows, rank int, opts []quantmf.FitOption) {
	d, n := x.Dims()
	most, err := quantmf.MemoryFor(context.Background(), settings.Method(method), x, rank, opts...)
	if err != nil {
		return
	}
	least, err := quantmf.MemoryFor(context.Background(), settings.Method(method), x, 1, opts...)
	if err == nil {
		check(c.Host.Room(d, n, most.Fit, least.Fit))
	}
}

// about returns what callers hold of a model: its file, and the numbers of it that they read.
func about(m quantmf.Model) map[string]any {
	of := settings.Factorisation(m)
	a := map[string]any{"bytes": got(m.MarshalBinary()), "method": settings.MethodOf(m)}
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
	return a
}

// warnings returns those of a fit and of the size of its model, as the report and a named file have them.
func warnings(m quantmf.Model) []string {
	all := []string{}
	for _, w := range settings.Factorisation(m).Warnings {
		all = append(all, strings.TrimPrefix(w.Error(), "quantmf: "))
	}
	return append(all, account.Remarks(m)...)
}

// ofSamples makes a call of a model with samples.
func (c Call) ofSamples(name string) any {
	m, x := c.model(), c.rows("x")
	switch name {
	case "transform":
		return got(m.Transform(c.Ctx, x))
	case "predict":
		return got(m.Predict(c.Ctx, x))
	case "scores":
		return got(m.Scores(c.Ctx, x))
	}
	return got(m.Score(c.Ctx, x))
}

// updated returns what open does, of the model that has learnt from x as well.
func (c Call) updated() any {
	m, x := c.posterior("updated"), c.rows("x")
	return about(got(m.Updated(c.Ctx, x)))
}

func (c Call) predictInterval() any {
	m, x, p := c.posterior("predictInterval"), c.rows("x"), c.decimal("p")
	return bounds(m.PredictInterval(c.Ctx, x, p))
}

// bounds are those of an interval of each value.
func bounds(lo, hi quantmf.Mat, err error) any {
	return got(map[string]any{"low": lo, "high": hi}, err)
}

func (c Call) normalize() any {
	m := modelOf[*quantmf.QMFQ](c, "normalize", "by qmfq, the only ones with maps of the data itself")
	x := c.matrix("x")
	return got(m.Normalize(x))
}

func (c Call) reconstruct() any {
	m := c.model()
	c.full(m, 1)
	return m.Reconstruct()
}

// full asks the host whether there is room for results as large as the matrix that was fitted.
func (c Call) full(m quantmf.Model, results int64) {
	d, n := m.Dims()
	need := 8 * results * int64(d) * int64(n)
	check(c.Host.Room(d, n, need, need))
}

// posterior reads the model, which must be by bqmf, for a call of this name.
func (c Call) posterior(name string) *quantmf.BQMF {
	return modelOf[*quantmf.BQMF](c, name, "by bqmf, the only ones that know their uncertainty")
}

// modelOf reads the model for a call of this name, which is of models of one kind alone.
func modelOf[M quantmf.Model](c Call, name, kind string) M {
	of, is := c.model().(M)
	if !is {
		check(&quantmf.OptionError{Option: name, Bound: "is of models " + kind})
	}
	return of
}

func (c Call) bayesian(name string) any {
	m := c.posterior(name)
	if name != "embedding" {
		c.full(m, 1)
	}
	switch name {
	case "median":
		return m.Median()
	case "deviation":
		return m.Deviation()
	}
	return m.Embedding()
}

func (c Call) interval() any {
	m, p := c.posterior("interval"), c.decimal("p")
	c.full(m, 2)
	return bounds(m.Interval(p))
}

// mapped returns T_i at values w.
func (c Call) mapped() any {
	m, row, w := c.model(), c.whole("row"), c.numbers("values")
	for j, v := range w {
		if v-v != 0 {
			check(&quantmf.DataError{Row: -1, Col: j, Value: v, Problem: "must be finite"})
		}
	}
	var at interface{ At(w float64) float64 }
	switch m := m.(type) {
	case *quantmf.QMF:
		at = got(m.Map(row))
	case *quantmf.QMFQ:
		at = got(m.Inflate(row))
	case *quantmf.BQMF:
		at = got(m.Map(row))
	default:
		check(&quantmf.OptionError{Option: "map", Bound: "a model by nmf has no maps"})
	}
	t := make([]float64, len(w))
	for j, v := range w {
		t[j] = at.At(v)
	}
	return t
}

// top returns the first features and samples of every component.
func (c Call) top() any {
	m, x, count := c.model(), c.rows("x"), c.whole("count")
	if count < 0 {
		check(&quantmf.OptionError{Option: "count", Value: itoa(count), Bound: "must be at least 0"})
	}
	return map[string]any{"features": ranked(got(m.TopFeatures(x, count))),
		"samples": ranked(m.TopSamples(count))}
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
func (c Call) account() any {
	m, x := c.model(), c.matrix("x")
	a := got(account.Of(m, x, nil))
	goodness := []float64{}
	for _, g := range a.Goodness {
		goodness = append(goodness, g.Divergence, g.Spread, g.Explained)
	}
	return map[string]any{
		"method": a.Method, "u": a.U, "v": a.V, "fitted": a.Fitted, "loss": a.Loss, "epochs": a.Epochs,
		"goodness": goodness, "shares": a.Shares, "features": ranked(a.TopFeatures),
		"samples": ranked(a.TopSamples), "curves": a.Curves, "bend": a.Bend, "normalized": a.Normalized,
		"levels": a.Levels, "began": a.Began, "predicted": a.Predicted,
	}
}

// heldOut makes one trial of a choice of rank. Trials of other calls have the same masks.
func (c Call) heldOut() any {
	method, rank, repeats := c.method(), c.whole("rank"), c.whole("repeats")
	share, seed := c.decimal("share"), c.decimal("maskSeed")
	if !(seed >= 0 && seed < 1<<53) {
		check(wrong("maskSeed", c.Args.Field("maskSeed"), "must be from 0 to 2^53"))
	}
	opts := c.options()
	if repeats == 0 || share == 0 { // HeldOut has defaults for 0, and clients have their own
		check(&quantmf.OptionError{Option: "repeats", Value: itoa(repeats),
			Bound: "neither repeats nor share may be 0"})
	}
	x := c.rows("x")
	c.room(method, x, rank, opts)
	masks := quantmf.Masks{Repeats: repeats, Share: share, Seed: uint64(seed)}
	told := &trial{Call: c, repeats: max(repeats, 1)}
	fit := func(ctx context.Context, x quantmf.Rows, rank int, opts ...quantmf.FitOption) (quantmf.Model,
		error) {
		return settings.Fit(ctx, method, x, rank, opts...)
	}
	trials := []quantmf.Trial{{Rank: rank, Options: append(opts, quantmf.WithProgress(told.hear))}}
	p := got(quantmf.HeldOut(c.Ctx, x, fit, trials, masks))
	return map[string]any{"rank": rank, "mean": p[0].Mean, "standardError": p[0].StdErr,
		"losses": p[0].Losses, "relative": p[0].Relative, "baseline": p[0].Baseline,
		"baselineRelative": p[0].BaselineRelative}
}

// footprint returns the memory that a fit takes, in bytes.
func (c Call) footprint() any {
	method, d, n, k := c.method(), c.whole("rows"), c.whole("columns"), c.whole("rank")
	opts := c.options()
	return float64(got(quantmf.MemoryOf(settings.Method(method), d, n, k, opts...)).Fit)
}

// unary calls a soft operator of x alone, which arg reads, and binary one of x and a further argument.
func unary[T any](c Call, arg func(name string) T, f func(x T, opts ...quantmf.Option) (T, error)) any {
	opts := c.settings()
	return got(f(arg("x"), opts...))
}

func binary[T any](c Call, arg func(name string) T, other string,
	f func(x, other T, opts ...quantmf.Option) (T, error)) any {
	opts, x, y := c.settings(), arg("x"), arg(other)
	return got(f(x, y, opts...))
}

// backward calls the transposed Jacobian of an operator.
func (c Call) backward(name string) any {
	opts, x, q, z := c.settings(), c.numbers("x"), c.numbers("q"), c.numbers("z")
	if q != nil {
		opts = append([]quantmf.Option{quantmf.WithLevels(len(q))}, opts...)
	}
	t := got(quantmf.Solve(x, opts...))
	var g *quantmf.Gradient
	switch name {
	case "softRankVJP":
		g = got(t.RankVJP(z))
	case "softSortVJP":
		g = got(t.SortVJP(z))
	default:
		g = got(t.QuantileVJP(q, z))
	}
	of := map[string]any{"x": g.X, "a": g.A, "b": g.B, "y": g.Y, "epsilon": g.Epsilon}
	if g.Q != nil {
		of["q"] = g.Q
	}
	return of
}

func (c Call) softQuantileRowsVJP() any {
	opts, x, q, z := c.settings(), c.matrix("x"), c.matrix("q"), c.matrix("z")
	gx, gq, gb, err := quantmf.SoftQuantileRowsVJP(x, q, z, opts...)
	return got(map[string]any{"x": gx, "q": gq, "b": gb}, err)
}

// named returns the model's file with the names of features and samples and the origin of the model, in the
// form that the command writes and reads.
func (c Call) named() any {
	m := c.model()
	names := account.Names{Features: c.texts("features"), Samples: c.texts("samples")}
	if d, n := m.Dims(); len(names.Features) != d || len(names.Samples) != n {
		check(&quantmf.ShapeError{What: "names",
			Got: itoa(len(names.Features)) + " and " + itoa(len(names.Samples)), Want: itoa(d) +
				" of features and " + itoa(n) + " of samples"})
	}
	made := Call{Args: c.Args.Field("made")}.made()
	made.Warnings = append(warnings(m), made.Warnings...)
	return got(account.Append(got(m.MarshalBinary()), names, made))
}

// made reads how a model came about.
func (c Call) made() account.Made {
	m := account.Made{Matrix: c.text("matrix"), Command: c.text("command"), Losses: c.text("losses"),
		Log1p: c.text("log1p") == "true", Top: c.text("top") == "true",
		Unseen: account.ReadUnseen(c.text("unseen")), Stability: c.numbers("stability")}
	if c.Args.Field("warnings").Type() != None {
		m.Warnings = c.texts("warnings")
	}
	return m
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
