package calls

// This file holds what is said first of a model, how well values that were hidden are predicted (package
// account), and the fit whose method is chosen by such values.

import (
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
)

// fitAuto is a fit by the method that predicts hidden values best. Its result has besides "tried", the lines
// of what these fits say, which "unseen" takes.
func (c *reader) fitAuto(x quantmf.Rows, rank int, opts []quantmf.FitOption) (any, error) {
	candidates, err := quantmf.Candidates(x, rank, opts...)
	if err != nil {
		return nil, err
	}
	choice := &quantmf.Choice{Candidates: candidates}
	tried := account.Unseen{}
	if len(candidates) > 1 {
		made, err := account.Try(c.Ctx, x, candidates, c.counted)
		if err != nil {
			return nil, err
		}
		if made != nil {
			choice, tried = made, account.Tried(made, made.Best, true)
		}
	}
	m, err := choice.Fit(c.Ctx, x, quantmf.WithProgress(c.told))
	if err != nil {
		return nil, err
	}
	of, err := about(m)
	if err != nil {
		return nil, err
	}
	of["tried"] = tried.Lines()
	return of, nil
}

// counted reports how many of the further fits are done.
func (c Call) counted(done, all int) error {
	c.Host.Progress("unseen", float64(done)/float64(all), 0, 0, 0)
	return c.Ctx.Err()
}

// unseen says how well a model predicts values that it has not seen, by the further fits that "tried" tells
// of or by fits that it makes, with the options of the fit; and what in x makes that look better, or about
// something else, than it is.
func (c *reader) unseen() (any, error) {
	m, x, names := c.model(), c.rows("x"), c.texts("features")
	if c.err != nil {
		return nil, c.err
	}
	goodness, err := m.Goodness(x)
	if err != nil {
		return nil, err
	}
	d, n := x.Dims()
	if len(names) != d {
		return nil, &quantmf.ShapeError{What: "features", Got: itoa(len(names)), Want: itoa(d)}
	}
	var values account.Values
	negative, row := false, make([]float64, n)
	for i := range d {
		if err := x.ReadRow(row, i); err != nil {
			return nil, err
		}
		values.Add(row)
		for _, v := range row {
			negative = negative || v < 0
		}
	}
	u := account.ReadUnseen(c.text("tried"))
	if u.Values == 0 {
		if u, err = c.try(m, x, negative); err != nil {
			return nil, err
		}
	}
	u.Fitted = values.Explained(goodness)
	text, others := u.Words(strings.ToUpper(settings.MethodOf(m)))
	if u.Values == 0 {
		text = account.Untried
	}
	numbers := []any{}
	for _, v := range u.Numbers() {
		numbers = append(numbers, map[string]any{"value": v.Value, "label": v.Label})
	}
	return map[string]any{"values": u.Values, "predicted": u.Predicted, "standardError": u.StdErr,
		"fitted": u.Fitted, "found": u.Found(), "noise": u.Noise(), "text": text, "others": others,
		"numbers":  numbers,
		"warnings": append([]string{}, values.Remarks(goodness, names)...), "lines": u.Lines()}, nil
}

// try makes the further fits of the method of a model, of as many components as were asked for.
func (c *reader) try(m quantmf.Model, x quantmf.Rows, negative bool) (u account.Unseen, err error) {
	own := quantmf.Candidate{Method: settings.Method(settings.MethodOf(m)), Rank: c.whole("rank"),
		Options: c.those(^option.Of(settings.NotTried...))}
	both := c.those(option.Of(settings.Shared...))
	if c.err != nil {
		return u, c.err
	}
	candidates := account.Beside(own, both, negative)
	d, n := x.Dims()
	if need, err := quantmf.MemoryOfChoice(x, candidates); err == nil {
		if err := c.Host.Room(d, n, need, 0); err != nil {
			return u, err
		}
	}
	choice, err := account.Try(c.Ctx, x, candidates, c.counted)
	if choice != nil {
		u = account.Tried(choice, 0, false)
	}
	return u, err
}
