//go:build js && wasm

package main

// This file holds the calls of the engine. js/index.d.ts documents their arguments and results.

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/web/host"
)

// calls are the answers in the form that the host takes.
var calls = map[string]func(c host.Call) (any, error){}

func init() {
	for name, f := range answers {
		calls[name] = func(c host.Call) (any, error) { return f(call{c}) }
	}
}

// answers has the function of each call.
var answers = map[string]func(c call) (any, error){
	"fit":         fit,
	"open":        open,
	"transform":   transform,
	"normalize":   normalize,
	"reconstruct": reconstruct,
	"named":       named,
	"score":       score,
	"map":         mapped,
	"top":         top,
	"account":     accounted,
	"heldOut":     heldOut,
	"footprint":   footprint,

	"softRank":     operator(quantmf.SoftRank),
	"softSort":     operator(quantmf.SoftSort),
	"softQuantile": softQuantile,
	"softRankVJP": backward(func(t *quantmf.Transport, _, z []float64) (*quantmf.Gradient,
		error) {
		return t.RankVJP(z)
	}),
	"softSortVJP": backward(func(t *quantmf.Transport, _, z []float64) (*quantmf.Gradient,
		error) {
		return t.SortVJP(z)
	}),
	"softQuantileVJP": backward((*quantmf.Transport).QuantileVJP),
}

func (c call) method() (name string, err error) {
	v := c.Args.Get("method")
	name = text(v)
	if !slices.Contains(settings.Methods, name) {
		return "", wrong("method", v, settings.OneOf(settings.Methods).Error())
	}
	return name, nil
}

// told reports the progress of a fit to the host, and stops the fit when its context ends.
func (c call) told(p quantmf.Progress) error {
	phase := strings.ToLower(strings.TrimPrefix(p.Phase.String(), "Phase"))
	c.Progress(phase, p.Done, p.Epoch, p.Epochs, p.Loss)
	return c.Ctx.Err()
}

func fit(c call) (any, error) {
	method, err := c.method()
	if err != nil {
		return nil, err
	}
	rank, err := c.whole("rank")
	if err != nil {
		return nil, err
	}
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	x := c.Matrix("x")
	if err := room(settings.Method(method), x.Rows, x.Cols, rank, opts); err != nil {
		return nil, err
	}
	m, err := settings.Fit(c.Ctx, method, x, rank, append(opts, quantmf.WithProgress(c.told))...)
	if err != nil {
		return nil, err
	}
	return about(m)
}

// memory is the most bytes that a module of WebAssembly can have.
const memory = 1 << 32

// room returns an error where a fit of this rank may take more memory than a module can have and a fit of
// rank 1 does not. Without the error Go would end the worker. The fit itself reports all other errors.
func room(method quantmf.Method, d, n, rank int, opts []quantmf.FitOption) error {
	most, err := quantmf.MemoryOf(method, d, n, rank, opts...)
	if err != nil || most.Fit < memory {
		return nil
	}
	if least, err := quantmf.MemoryOf(method, d, n, 1, opts...); err != nil || least.Fit >= memory {
		return nil
	}
	return &quantmf.OptionError{Option: "rank", Value: itoa(rank),
		Bound: "a fit of a " + itoa(d) + "×" + itoa(n) + " matrix may take " + itoa(int(most.Fit>>20)) +
			" MiB, and WebAssembly has at most 4096"}
}

// about returns what JavaScript holds of a model: its file, and the numbers of it that callers read.
func about(m quantmf.Model) (any, error) {
	file, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	of := settings.Factorisation(m)
	a := map[string]any{"bytes": host.File(file)}
	switch m := m.(type) {
	case *quantmf.NMF:
		a["method"] = "nmf"
	case *quantmf.QMF:
		a["method"], a["bend"] = "qmf", host.Floats(m.Bend())
	case *quantmf.QMFQ:
		a["method"], a["bend"] = "qmfq", host.Floats(m.Bend())
	case *quantmf.BQMF:
		a["method"], a["bend"] = "bqmf", host.Floats(m.Bend())
		a["relevance"], a["leaveOneOut"] = host.Floats(m.Relevance), m.LeaveOneOut
	}
	a["u"], a["v"] = host.Grid(of.U), host.Grid(of.V)
	a["history"], a["validation"], a["best"] = host.Floats(of.History), host.Floats(of.Validation), of.Best
	a["warnings"] = host.Texts(warnings(m))
	return a, nil
}

// warnings returns those of a fit and of the size of its model, as the report and a named file have them.
func warnings(m quantmf.Model) (all []string) {
	for _, w := range settings.Factorisation(m).Warnings {
		all = append(all, strings.TrimPrefix(w.Error(), "quantmf: "))
	}
	return append(all, account.Remarks(m)...)
}

// model reads the model from the argument with its file.
func (c call) model() (quantmf.Model, error) {
	return quantmf.UnmarshalModel(c.Bytes("model"))
}

func open(c call) (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	return about(m)
}

func transform(c call) (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	v, err := m.Transform(c.Ctx, c.Matrix("x"))
	if err != nil {
		return nil, err
	}
	return host.Grid(v), nil
}

func normalize(c call) (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	q, ok := m.(*quantmf.QMFQ)
	if !ok {
		return nil, &quantmf.OptionError{Option: "normalize",
			Bound: "is of models by qmfq, the only ones with maps of the data itself"}
	}
	y, err := q.Normalize(c.Matrix("x"))
	if err != nil {
		return nil, err
	}
	return host.Grid(y), nil
}

func reconstruct(c call) (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	return host.Grid(m.Reconstruct()), nil
}

func score(c call) (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	return m.Score(c.Ctx, c.Matrix("x"))
}

// mapped returns T_i at values w.
func mapped(c call) (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	row, err := c.whole("row")
	if err != nil {
		return nil, err
	}
	w := c.Numbers("values")
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
	return host.Floats(t), nil
}

// top returns the first features and samples of every component.
func top(c call) (any, error) {
	m, err := c.model()
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
	features, err := m.TopFeatures(c.Matrix("x"), count)
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

// accounted is what a report draws of a model and the matrix that was fitted; the call "report" of the
// readers takes it.
func accounted(c call) (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	a, err := account.Of(m, c.Matrix("x"))
	if err != nil {
		return nil, err
	}
	var goodness []float64
	for _, g := range a.Goodness {
		goodness = append(goodness, g.Divergence, g.Spread, g.Explained)
	}
	return map[string]any{
		"method": a.Method, "u": host.Grid(a.U), "v": host.Grid(a.V), "fitted": host.Grid(a.Fitted),
		"loss": host.Floats(a.Loss), "epochs": a.Epochs,
		"goodness": host.Floats(goodness), "shares": host.Grid(a.Shares), "features": ranked(a.TopFeatures),
		"samples": ranked(a.TopSamples),
		"curves":  host.Grid(a.Curves), "bend": host.Floats(a.Bend), "normalized": host.Grid(a.Normalized),
		"levels": a.Levels, "began": a.Began,
	}, nil
}

// heldOut makes one trial of a choice of rank. Trials on other workers have the same masks.
func heldOut(c call) (any, error) {
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
	opts, err := c.options()
	if err != nil {
		return nil, err
	}
	share := c.Args.Get("share").Float()
	if n[1] == 0 || share == 0 { // HeldOut has defaults for 0, and js/index.js has its own
		return nil, &quantmf.OptionError{Option: "repeats", Value: itoa(n[1]),
			Bound: "neither repeats nor share may be 0"}
	}
	fits := 0.0
	opts = append(opts, quantmf.WithProgress(func(p quantmf.Progress) error {
		if p.Phase == quantmf.PhaseEpochs {
			if p.Epoch == p.Epochs {
				fits++
			}
			c.Progress("rank", math.Min(1, fits/float64(max(n[1], 1))), p.Epoch, p.Epochs, p.Loss)
		}
		return c.Ctx.Err()
	}))
	x := c.Matrix("x")
	if err := room(settings.Method(method), x.Rows, x.Cols, n[0], opts); err != nil {
		return nil, err
	}
	masks := quantmf.Masks{Repeats: n[1], Share: share, Seed: uint64(c.Args.Get("maskSeed").Float())}
	fit := func(ctx context.Context, x quantmf.Rows, rank int, opts ...quantmf.FitOption) (quantmf.Model,
		error) {
		return settings.Fit(ctx, method, x, rank, opts...)
	}
	p, err := quantmf.HeldOut(c.Ctx, x, fit, []quantmf.Trial{{Rank: n[0], Options: opts}}, masks)
	if err != nil {
		return nil, err
	}
	return map[string]any{"rank": n[0], "mean": p[0].Mean, "standardError": p[0].StdErr,
		"losses": host.Floats(p[0].Losses)}, nil
}

// footprint returns the memory that a fit takes, in bytes.
func footprint(c call) (any, error) {
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
func operator(f func(x []float64, opts ...quantmf.Option) ([]float64, error)) func(c call) (any, error) {
	return func(c call) (any, error) {
		opts, err := c.operator()
		if err != nil {
			return nil, err
		}
		v, err := f(c.Numbers("x"), opts...)
		if err != nil {
			return nil, err
		}
		return host.Floats(v), nil
	}
}

func softQuantile(c call) (any, error) {
	opts, err := c.operator()
	if err != nil {
		return nil, err
	}
	v, err := quantmf.SoftQuantile(c.Numbers("x"), c.Numbers("q"), opts...)
	if err != nil {
		return nil, err
	}
	return host.Floats(v), nil
}

// backward calls the transposed Jacobian of an operator.
func backward(f func(t *quantmf.Transport, q, z []float64) (*quantmf.Gradient, error)) func(c call) (any,
	error) {
	return func(c call) (any, error) {
		opts, err := c.operator()
		if err != nil {
			return nil, err
		}
		q := c.Numbers("q")
		if q != nil {
			opts = append([]quantmf.Option{quantmf.WithLevels(len(q))}, opts...)
		}
		t, err := quantmf.Solve(c.Numbers("x"), opts...)
		if err != nil {
			return nil, err
		}
		g, err := f(t, q, c.Numbers("z"))
		if err != nil {
			return nil, err
		}
		of := map[string]any{"x": host.Floats(g.X), "a": host.Floats(g.A), "b": host.Floats(g.B),
			"y": host.Floats(g.Y), "epsilon": g.Epsilon}
		if g.Q != nil {
			of["q"] = host.Floats(g.Q)
		}
		return of, nil
	}
}

// named returns the model's file with the names of features and samples and the origin of the model, in the
// form that the command writes and reads.
func named(c call) (any, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	of := settings.Factorisation(m)
	names := account.Names{Features: c.Texts("features"), Samples: c.Texts("samples")}
	if len(names.Features) != of.U.Rows || len(names.Samples) != of.V.Cols {
		return nil, &quantmf.ShapeError{What: "names",
			Got: itoa(len(names.Features)) + " and " + itoa(len(names.Samples)), Want: itoa(of.U.Rows) +
				" of features and " + itoa(of.V.Cols) + " of samples"}
	}
	how := c.Args.Get("made")
	made := account.Made{Matrix: how.Get("matrix").String(), Command: how.Get("command").String(),
		Losses: how.Get("losses").String(), Warnings: warnings(m)}
	file, err := m.MarshalBinary()
	if err == nil {
		file, err = account.Append(file, names, made)
	}
	if err != nil {
		return nil, err
	}
	return host.File(file), nil
}
