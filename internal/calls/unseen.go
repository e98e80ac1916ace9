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
func (c Call) fitAuto(x quantmf.Rows, rank int, opts []quantmf.FitOption) any {
	candidates := got(quantmf.Candidates(x, rank, opts...))
	choice := &quantmf.Choice{Candidates: candidates}
	tried := account.Unseen{}
	if len(candidates) > 1 {
		if made := got(account.Try(c.Ctx, x, candidates, c.counted)); made != nil {
			choice, tried = made, account.Tried(made, made.Best, true)
		}
	}
	of := about(got(choice.Fit(c.Ctx, x, quantmf.WithProgress(c.told))))
	of["tried"] = tried.Lines()
	return of
}

// counted reports how many of the further fits are done.
func (c Call) counted(done, all int) error {
	c.Host.Progress("unseen", float64(done)/float64(all), 0, 0, 0)
	return c.Ctx.Err()
}

// unseen says how well a model predicts values that it has not seen, by the further fits that "tried" tells
// of or by fits that it makes, with the options of the fit; and what in x makes that look better, or about
// something else, than it is.
func (c Call) unseen() any {
	m, x, names := c.model(), c.rows("x"), c.texts("features")
	goodness := got(m.Goodness(x))
	d, n := x.Dims()
	if len(names) != d {
		check(&quantmf.ShapeError{What: "features", Got: itoa(len(names)), Want: itoa(d)})
	}
	var values account.Values
	negative, row := false, make([]float64, n)
	for i := range d {
		check(x.ReadRow(row, i))
		values.Add(row)
		for _, v := range row {
			negative = negative || v < 0
		}
	}
	u := account.ReadUnseen(c.text("tried"))
	if u.Values == 0 {
		u = c.try(m, x, negative)
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
		"warnings": append([]string{}, values.Remarks(goodness, names)...), "lines": u.Lines()}
}

// try makes the further fits of the method of a model, of as many components as were asked for.
func (c Call) try(m quantmf.Model, x quantmf.Rows, negative bool) (u account.Unseen) {
	own := quantmf.Candidate{Method: settings.Method(settings.MethodOf(m)), Rank: c.whole("rank"),
		Options: c.those(^option.Of(settings.NotTried...))}
	both := c.those(option.Of(settings.Shared...))
	candidates := account.Beside(own, both, negative)
	d, n := x.Dims()
	if need, err := quantmf.MemoryOfChoice(x, candidates); err == nil {
		check(c.Host.Room(d, n, need, 0))
	}
	if choice := got(account.Try(c.Ctx, x, candidates, c.counted)); choice != nil {
		u = account.Tried(choice, 0, false)
	}
	return u
}
