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
func (c Call) Answer(name string) (any, error) {
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
	case "median", "deviation":
		return c.bayesian(name)
	case "embedding":
		return c.embedding()
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
		return c.operator(quantmf.SoftRank)
	case "softSort":
		return c.operator(quantmf.SoftSort)
	case "softQuantile":
		return c.softQuantile()
	case "softRankVJP", "softSortVJP", "softQuantileVJP":
		return c.backward(name)
	case "softRankRows":
		return c.rowsOf(quantmf.SoftRankRows)
	case "softSortRows":
		return c.rowsOf(quantmf.SoftSortRows)
	case "softRankRowsVJP":
		return c.rowsBack(quantmf.SoftRankRowsVJP)
	case "softSortRowsVJP":
		return c.rowsBack(quantmf.SoftSortRowsVJP)
	case "softQuantileRows":
		return c.softQuantileRows()
	case "softQuantileRowsVJP":
		return c.softQuantileRowsVJP()
	}
	return nil, errors.New("quantmf: there is no such call")
}

func (c Call) method() (name string, err error) {
	v := c.Args.Field("method")
	name = v.Text()
	if all := append(slices.Clip(settings.Methods), "auto"); !slices.Contains(all, name) {
		return "", wrong("method", v, settings.OneOf(all).Error())
	}
	return name, nil
}

// told reports the progress of a fit to the host, and stops the fit when its context ends.
func (c Call) told(p quantmf.Progress) error {
	phase := strings.ToLower(strings.TrimPrefix(p.Phase.String(), "Phase"))
	c.Host.Progress(phase, p.Done, p.Epoch, p.Epochs, p.Loss)
	return c.Ctx.Err()
}

func (c Call) fit() (any, error) {
	method, err := c.method()
	if err != nil {
		return nil, err
	}
	x, rank, opts, err := c.asked(settings.Method(method))
	if err != nil {
		return nil, err
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

// asked returns the matrix, the rank and the options of a fit for which the host has room.
func (c Call) asked(method quantmf.Method) (x quantmf.Rows, rank int, opts []quantmf.FitOption, err error) {
	if rank, err = c.whole("rank"); err != nil {
		return nil, 0, nil, err
	}
	if opts, err = c.options(); err != nil {
		return nil, 0, nil, err
	}
	if x, err = c.rows("x"); err != nil {
		return nil, 0, nil, err
	}
	return x, rank, opts, c.room(method, x, rank, opts)
}

// consensus is a fit by NMF with the fields of the consensus beside those of its model.
func (c Call) consensus() (any, error) {
	seeds, err := c.whole("seeds")
	if err != nil {
		return nil, err
	}
	x, rank, opts, err := c.asked(quantmf.MethodNMF)
	if err != nil {
		return nil, err
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

func (c Call) open() (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	return result(about(m))
}

// placed returns the model and the matrix that a call is of.
func (c Call) placed() (quantmf.Model, quantmf.Rows, error) {
	m, err := c.model()
	if err != nil {
		return nil, nil, err
	}
	x, err := c.rows("x")
	return m, x, err
}

// ofSamples makes a call of a model with samples.
func (c Call) ofSamples(name string) (any, error) {
	m, x, err := c.placed()
	if err != nil {
		return nil, err
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
func (c Call) updated() (any, error) {
	m, err := c.posterior("updated")
	if err != nil {
		return nil, err
	}
	x, err := c.rows("x")
	if err != nil {
		return nil, err
	}
	of, err := m.Updated(c.Ctx, x)
	if err != nil {
		return nil, err
	}
	return result(about(of))
}

func (c Call) predictInterval() (any, error) {
	m, err := c.posterior("predictInterval")
	if err != nil {
		return nil, err
	}
	x, err := c.rows("x")
	if err != nil {
		return nil, err
	}
	p, err := c.decimal("p")
	if err != nil {
		return nil, err
	}
	lo, hi, err := m.PredictInterval(c.Ctx, x, p)
	if err != nil {
		return nil, err
	}
	return map[string]any{"low": lo, "high": hi}, nil
}

// result returns nothing beside an error.
func result[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (c Call) normalize() (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	q, ok := m.(*quantmf.QMFQ)
	if !ok {
		return nil, &quantmf.OptionError{Option: "normalize",
			Bound: "is of models by qmfq, the only ones with maps of the data itself"}
	}
	x, err := c.matrix("x")
	if err != nil {
		return nil, err
	}
	return result(q.Normalize(x))
}

func (c Call) reconstruct() (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	if err := c.full(m, 1); err != nil {
		return nil, err
	}
	return m.Reconstruct(), nil
}

// full asks the host whether there is room for results as large as the matrix that was fitted.
func (c Call) full(m quantmf.Model, results int64) error {
	of := settings.Factorisation(m)
	need := 8 * results * int64(of.U.Rows) * int64(of.V.Cols)
	return c.Host.Room(of.U.Rows, of.V.Cols, need, need)
}

// posterior reads the model, which must be by bqmf, for a call of this name.
func (c Call) posterior(name string) (*quantmf.BQMF, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	b, is := m.(*quantmf.BQMF)
	if !is {
		return nil, &quantmf.OptionError{Option: name,
			Bound: "is of models by bqmf, the only ones that know their uncertainty"}
	}
	return b, nil
}

func (c Call) bayesian(name string) (any, error) {
	m, err := c.posterior(name)
	if err != nil {
		return nil, err
	}
	if err := c.full(m, 1); err != nil {
		return nil, err
	}
	if name == "median" {
		return m.Median(), nil
	}
	return m.Deviation(), nil
}

func (c Call) embedding() (any, error) {
	m, err := c.posterior("embedding")
	if err != nil {
		return nil, err
	}
	return m.Embedding(), nil
}

func (c Call) interval() (any, error) {
	m, err := c.posterior("interval")
	if err != nil {
		return nil, err
	}
	p, err := c.decimal("p")
	if err != nil {
		return nil, err
	}
	if err := c.full(m, 2); err != nil {
		return nil, err
	}
	lo, hi, err := m.Interval(p)
	if err != nil {
		return nil, err
	}
	return map[string]any{"low": lo, "high": hi}, nil
}

// mapped returns T_i at values w.
func (c Call) mapped() (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	row, err := c.whole("row")
	if err != nil {
		return nil, err
	}
	w, err := c.numbers("values")
	if err != nil {
		return nil, err
	}
	for j, v := range w {
		if v-v != 0 {
			return nil, &quantmf.DataError{Row: -1, Col: j, Value: v, Problem: "must be finite"}
		}
	}
	var at func(w float64) float64
	switch m := m.(type) {
	case *quantmf.QMF:
		t, e := m.Map(row)
		if err = e; err == nil {
			at = t.At
		}
	case *quantmf.QMFQ:
		t, e := m.Inflate(row)
		if err = e; err == nil {
			at = t.At
		}
	case *quantmf.BQMF:
		t, e := m.Map(row)
		if err = e; err == nil {
			at = t.At
		}
	default:
		err = &quantmf.OptionError{Option: "map", Bound: "a model by nmf has no maps"}
	}
	if err != nil {
		return nil, err
	}
	t := make([]float64, len(w))
	for j, v := range w {
		t[j] = at(v)
	}
	return t, nil
}

// top returns the first features and samples of every component.
func (c Call) top() (any, error) {
	m, x, err := c.placed()
	if err != nil {
		return nil, err
	}
	count, err := c.whole("count")
	if err != nil {
		return nil, err
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
func (c Call) account() (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	x, err := c.matrix("x")
	if err != nil {
		return nil, err
	}
	a, err := account.Of(m, x)
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
func (c Call) heldOut() (any, error) {
	method, err := c.method()
	if err != nil {
		return nil, err
	}
	var n [2]int
	for i, name := range []string{"rank", "repeats"} {
		if n[i], err = c.whole(name); err != nil {
			return nil, err
		}
	}
	var of [2]float64
	for i, name := range []string{"share", "maskSeed"} {
		if of[i], err = c.decimal(name); err != nil {
			return nil, err
		}
	}
	share, seed := of[0], of[1]
	if !(seed >= 0 && seed < 1<<53) {
		return nil, wrong("maskSeed", c.Args.Field("maskSeed"), "must be from 0 to 2^53")
	}
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	if n[1] == 0 || share == 0 { // HeldOut has defaults for 0, and clients have their own
		return nil, &quantmf.OptionError{Option: "repeats", Value: itoa(n[1]),
			Bound: "neither repeats nor share may be 0"}
	}
	x, err := c.rows("x")
	if err != nil {
		return nil, err
	}
	if err := c.room(settings.Method(method), x, n[0], opts); err != nil {
		return nil, err
	}
	masks := quantmf.Masks{Repeats: n[1], Share: share, Seed: uint64(seed)}
	told := &trial{Call: c, repeats: max(n[1], 1)}
	fit := func(ctx context.Context, x quantmf.Rows, rank int, opts ...quantmf.FitOption) (quantmf.Model,
		error) {
		return settings.Fit(ctx, method, x, rank, opts...)
	}
	trials := []quantmf.Trial{{Rank: n[0], Options: append(opts, quantmf.WithProgress(told.hear))}}
	p, err := quantmf.HeldOut(c.Ctx, x, fit, trials, masks)
	if err != nil {
		return nil, err
	}
	return map[string]any{"rank": n[0], "mean": p[0].Mean, "standardError": p[0].StdErr,
		"losses": p[0].Losses}, nil
}

// footprint returns the memory that a fit takes, in bytes.
func (c Call) footprint() (any, error) {
	method, err := c.method()
	if err != nil {
		return nil, err
	}
	var n [3]int
	for i, name := range []string{"rows", "columns", "rank"} {
		if n[i], err = c.whole(name); err != nil {
			return nil, err
		}
	}
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	m, err := quantmf.MemoryOf(settings.Method(method), n[0], n[1], n[2], opts...)
	if err != nil {
		return nil, err
	}
	return float64(m.Fit), nil
}

// operator calls a soft operator whose only argument is x.
func (c Call) operator(f func(x []float64, opts ...quantmf.Option) ([]float64, error)) (any, error) {
	opts, err := c.settings()
	if err != nil {
		return nil, err
	}
	x, err := c.numbers("x")
	if err != nil {
		return nil, err
	}
	return result(f(x, opts...))
}

func (c Call) softQuantile() (any, error) {
	opts, err := c.settings()
	if err != nil {
		return nil, err
	}
	x, err := c.numbers("x")
	if err != nil {
		return nil, err
	}
	q, err := c.numbers("q")
	if err != nil {
		return nil, err
	}
	return result(quantmf.SoftQuantile(x, q, opts...))
}

// backward calls the transposed Jacobian of an operator.
func (c Call) backward(name string) (any, error) {
	opts, err := c.settings()
	if err != nil {
		return nil, err
	}
	var v [3][]float64
	for i, name := range []string{"x", "q", "z"} {
		if v[i], err = c.numbers(name); err != nil {
			return nil, err
		}
	}
	x, q, z := v[0], v[1], v[2]
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

// rowsOf calls an operator of the rows of x, and rowsBack its transposed Jacobian.
func (c Call) rowsOf(f func(x quantmf.Mat, opts ...quantmf.Option) (quantmf.Mat, error)) (any, error) {
	opts, err := c.settings()
	if err != nil {
		return nil, err
	}
	x, err := c.matrix("x")
	if err != nil {
		return nil, err
	}
	return result(f(x, opts...))
}

func (c Call) rowsBack(f func(x, z quantmf.Mat, opts ...quantmf.Option) (quantmf.Mat, error)) (any, error) {
	opts, err := c.settings()
	if err != nil {
		return nil, err
	}
	x, err := c.matrix("x")
	if err != nil {
		return nil, err
	}
	z, err := c.matrix("z")
	if err != nil {
		return nil, err
	}
	return result(f(x, z, opts...))
}

func (c Call) softQuantileRows() (any, error) {
	opts, err := c.settings()
	if err != nil {
		return nil, err
	}
	x, err := c.matrix("x")
	if err != nil {
		return nil, err
	}
	q, err := c.matrix("q")
	if err != nil {
		return nil, err
	}
	return result(quantmf.SoftQuantileRows(x, q, opts...))
}

func (c Call) softQuantileRowsVJP() (any, error) {
	opts, err := c.settings()
	if err != nil {
		return nil, err
	}
	var v [3]quantmf.Mat
	for i, name := range []string{"x", "q", "z"} {
		if v[i], err = c.matrix(name); err != nil {
			return nil, err
		}
	}
	x, q, b, err := quantmf.SoftQuantileRowsVJP(v[0], v[1], v[2], opts...)
	if err != nil {
		return nil, err
	}
	return map[string]any{"x": x, "q": q, "b": b}, nil
}

// named returns the model's file with the names of features and samples and the origin of the model, in the
// form that the command writes and reads.
func (c Call) named() (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	of := settings.Factorisation(m)
	var names account.Names
	if names.Features, err = c.texts("features"); err != nil {
		return nil, err
	}
	if names.Samples, err = c.texts("samples"); err != nil {
		return nil, err
	}
	if len(names.Features) != of.U.Rows || len(names.Samples) != of.V.Cols {
		return nil, &quantmf.ShapeError{What: "names",
			Got: itoa(len(names.Features)) + " and " + itoa(len(names.Samples)), Want: itoa(of.U.Rows) +
				" of features and " + itoa(of.V.Cols) + " of samples"}
	}
	made, err := Call{Args: c.Args.Field("made")}.made()
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
func (c Call) made() (m account.Made, err error) {
	m = account.Made{Matrix: c.text("matrix"), Command: c.text("command"), Losses: c.text("losses"),
		Log1p: c.text("log1p") == "true", Top: c.text("top") == "true",
		Unseen: account.ReadUnseen(c.text("unseen"))}
	if m.Stability, err = c.numbers("stability"); err != nil {
		return m, err
	}
	if c.Args.Field("warnings").Type() != None {
		m.Warnings, err = c.texts("warnings")
	}
	return m, err
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
