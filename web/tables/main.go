//go:build js && wasm

// Tables reads matrices for JavaScript with the readers of the command: text, GCT,
// series matrices of GEO, Matrix Market, npy and npz, plain or compressed. It also
// draws the report of the command. It is a module of its own, which a page loads when
// it is first needed, and it links no models.
package main

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"syscall/js"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/calls"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
	"github.com/quantmf/quantmf/web/host"
)

// version is the version of the release, which web/build sets.
var version = "(devel)"

func main() {
	host.Serve(answer, described)
}

func answer(name string, c host.Call) (any, error) {
	switch name {
	case "read":
		return read(c)
	case "groups":
		return groups(c)
	case "report":
		return page(c)
	case "tests":
		return tests(c)
	}
	return nil, errors.New("quantmf: there is no such call")
}

// read reads a file. It also reads missing and negative values; the fit checks whether it can take them. A
// text is read twice, so progress is relative to twice the size of the file.
func read(c host.Call) (any, error) {
	is := func(name string) bool { return c.Args.Get(name).Truthy() }
	text := func(name string) string { return c.Args.Get(name).String() }
	log1p := is("log1p")
	o := table.Options{Missing: true, Negative: !log1p, Transpose: is("transpose"), Full: is("full"),
		Memory: int64(c.Args.Get("memory").Float()), Skip: c.Args.Get("skip").Int(), Names: text("names"),
		Long: text("long"), Below: text("below"), Sheet: text("sheet")}
	for word := range strings.SplitSeq(text("na"), ",") {
		if word = strings.TrimSpace(word); word != "" {
			o.NA = append(o.NA, word)
		}
	}
	for _, choice := range []struct {
		option string
		words  []string
		take   func(i int)
	}{
		{"header", []string{"auto", "yes", "no"}, func(i int) { o.Header = table.Header(i) }},
		{"decimal", []string{"", "point", "comma"}, func(i int) { o.Decimal = "\x00.,"[i] }},
		{"below", append([]string{""}, table.Limits...), func(int) {}},
	} {
		i := slices.Index(choice.words, text(choice.option))
		if i < 0 {
			return nil, &quantmf.OptionError{Option: choice.option, Value: text(choice.option),
				Bound: "must be one of " + strings.TrimPrefix(strings.Join(choice.words, ", "), ", ")}
		}
		choice.take(i)
	}
	size := c.Args.Get("file").Get("size").Float()
	file := c.Blob("file", func(n int64) { c.Progress("read", math.Min(1, float64(n)/(2*size)), 0, 0, 0) })
	t, err := table.Read(file, c.Args.Get("name").String(), o)
	if e := (*table.Error)(nil); errors.As(err, &e) && errors.Is(err, table.ErrMemory) {
		e.Problem = strings.Replace(e.Problem, "allow more with -max-memory",
			"allow more with the option memory, or with -max-memory of the command", 1)
	}
	if err != nil {
		return nil, err
	}
	remarks := t.Remarks()
	if log1p {
		t.Log1p()
	}
	if top := c.Args.Get("top").Int(); top > 0 {
		if t, err = t.MostVariable(top); err != nil {
			return nil, err
		}
	}
	missing, negative, least, most := 0, 0, math.Inf(1), math.Inf(-1)
	for i := range t.X.Rows {
		for _, v := range t.X.Row(i) {
			switch {
			case v != v:
				missing++
				continue
			case v < 0:
				negative++
			}
			least, most = min(least, v), max(most, v)
		}
	}
	return map[string]any{
		"x": t.X, "features": t.Features, "samples": t.Samples,
		"namedFeatures": t.NamedFeatures, "namedSamples": t.NamedSamples,
		"taken": t.Taken, "warnings": t.Warnings, "remarks": remarks,
		"missing": missing, "negative": negative, "least": least, "most": most,
	}, nil
}

// groups reads a table of names and their groups, as the command's flag -groups does.
func groups(c host.Call) (any, error) {
	features, samples := host.Texts(c.Args.Get("features")), host.Texts(c.Args.Get("samples"))
	known, warnings, err := report.ReadKnown(c.Args.Get("text").String(), columns(c), features, samples)
	if err != nil {
		return nil, &table.Error{File: c.Args.Get("name").String(), Problem: err.Error()}
	}
	of := func(g report.Groups) any {
		if g.Of == nil {
			return nil
		}
		of := make([]any, len(g.Of))
		for i, rank := range g.Of {
			of[i] = rank
		}
		return map[string]any{"title": g.Title, "names": g.Names, "colours": g.Inks(),
			"of": of}
	}
	return map[string]any{"features": of(known.Features), "samples": of(known.Samples),
		"warnings": warnings}, nil
}

// columns are those of a table of groups that are taken, as the flags -by and -survival of the command say.
func columns(c host.Call) (of report.Columns) {
	if by := c.Args.Get("by").String(); by != "" {
		for title := range strings.SplitSeq(by, ",") {
			of.By = append(of.By, strings.TrimSpace(title))
		}
	}
	of.Time, of.Event, _ = strings.Cut(c.Args.Get("survival").String(), ",")
	of.Event = strings.TrimSpace(of.Event)
	return of
}

// page returns the report that the command's "report" writes from a model's file and the matrix. The engine
// computes what the model says of the matrix ("account"), because this module links no models.
func page(c host.Call) (any, error) {
	f, err := fitted(c)
	if err != nil {
		return nil, err
	}
	f.Version = version
	if c.Args.Get("byFit").Truthy() {
		f.Order = "tree"
	}
	var b bytes.Buffer
	if err := report.Write(&b, f); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tests returns the tables of tests of that report.
func tests(c host.Call) (any, error) {
	f, err := fitted(c)
	if err != nil {
		return nil, err
	}
	tables, plain := []any{}, strings.NewReplacer("<b>", "", "</b>", "")
	for _, t := range f.Tests() {
		rows, chance := []any{}, []any{}
		for i, row := range t.Rows {
			rows, chance = append(rows, row), append(chance, t.Chance[i])
		}
		tables = append(tables, map[string]any{"title": t.Title, "how": plain.Replace(t.How),
			"heading": t.Heading, "rows": rows, "chance": chance, "count": t.Count})
	}
	return tables, nil
}

// fitted returns what a report shows of a model's file, the matrix, and what is known of it.
func fitted(c host.Call) (f report.Fit, err error) {
	file, x, of := host.Bytes(c.Args.Get("model")), host.Matrix(c.Args.Get("x")), told(c.Args.Get("account"))
	names, how, _, err := account.Read(file, x.Rows, x.Cols)
	if err != nil {
		return f, err
	}
	features, samples := names.Features, names.Samples
	if features == nil {
		features = table.Numbered("f", x.Rows)
	}
	if samples == nil {
		samples = table.Numbered("s", x.Cols)
	}
	f = report.Of(of, features, samples, x, how)
	if text := c.Args.Get("groups").String(); text != "" {
		known, _, err := report.ReadKnown(text, columns(c), features, samples)
		if err != nil {
			return f, &table.Error{File: "groups", Problem: err.Error()}
		}
		f.FeatureGroups, f.SampleGroups, f.Tracks = known.Features, known.Samples, known.Tracks
	}
	if text := c.Args.Get("sets").String(); text != "" {
		if f.Sets, _, err = account.ReadSets(text, features); err != nil {
			return f, &table.Error{File: "sets", Problem: err.Error()}
		}
	}
	return f, nil
}

// told reads what the call "account" of the engine returned.
func told(v js.Value) account.Account {
	a := account.Account{
		Method: v.Get("method").String(),
		U:      host.Matrix(v.Get("u")), V: host.Matrix(v.Get("v")), Fitted: host.Matrix(v.Get("fitted")),
		Loss: host.Numbers(v.Get("loss")), Epochs: v.Get("epochs").Int(),
		Shares: host.Matrix(v.Get("shares")), TopFeatures: ranked(v.Get("features")),
		TopSamples: ranked(v.Get("samples")),
		Curves:     host.Matrix(v.Get("curves")), Bend: host.Numbers(v.Get("bend")),
		Normalized: host.Matrix(v.Get("normalized")),
		Levels:     v.Get("levels").Int(), Began: v.Get("began").String(),
		Predicted: v.Get("predicted").Float(),
	}
	for g := host.Numbers(v.Get("goodness")); len(g) > 0; g = g[3:] {
		a.Goodness = append(a.Goodness, quantmf.Goodness{Divergence: g[0], Spread: g[1], Explained: g[2]})
	}
	return a
}

// ranked reads the first features, or samples, of every component.
func ranked(v js.Value) [][]quantmf.Top {
	lists := make([][]quantmf.Top, v.Length())
	for i := range lists {
		for j := range v.Index(i).Length() {
			t := v.Index(i).Index(j)
			lists[i] = append(lists[i],
				quantmf.Top{Index: t.Get("index").Int(), Value: t.Get("value").Float()})
		}
	}
	return lists
}

func described(err error) map[string]any {
	var e *table.Error
	if errors.As(err, &e) {
		return map[string]any{"kind": "TableError", "message": err.Error(), "line": e.Line,
			"column": e.Column, "feature": e.Feature, "sample": e.Sample, "problem": e.Problem}
	}
	return calls.Described(err)
}
