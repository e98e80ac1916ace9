package main

// This file holds "quantmf inspect": what a model says, in words and as JSON.

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/table"
)

func inspectProgram() *cli.Program {
	a, asJSON, k := newApplied(), false, &known{}
	return a.program("inspect", &cli.Program{
		Usage: []string{"[flags] MODEL [MATRIX]"},
		About: `Prints what is in MODEL, a file that "quantmf fit -o" wrote: what was fitted and how well,
			the features whose scales were bent most, and for every component the samples that have most of
			it, in multiples of the mean sample.

			With MATRIX, the matrix that was fitted, the features listed as bent are also well explained, as
			on the page of "quantmf report". It then also prints how well features are explained, and which
			features each component stands for: by the component's share in the feature, times the explained
			share of the feature (1 less its divergence from the fit over that from its own mean). "quantmf
			fit -h" says what MATRIX may be.

			With -groups or -sets it also prints which components go with what is known of samples and
			features, each effect with its size, the chance p of such an effect in a component that has
			nothing to do with it, and q, which is p corrected for the number of tests.`,
		Groups: own(append([]*cli.Flag{a.in.Allow(),
			cli.Switch(&asJSON, "json", "everything, of all features, as one JSON object"),
		}, k.flags()...)...),
		After: cli.ExitHelp,
		Examples: [][2]string{{"quantmf inspect model.qmf table.tsv", ""},
			{"quantmf inspect -json model.qmf | jq '.features[] | [.name, .bend]'", ""},
			{"quantmf inspect -groups clinical.tsv -by stage,age -survival time,died model.qmf", ""}},
	}, func(s cli.Streams) error { return a.inspect(s, k, asJSON) })
}

// readings are figures that need both a model and its matrix.
type readings struct {
	x        quantmf.Mat
	goodness []quantmf.Goodness
	features [][]quantmf.Top
	observed []float64 // observed cells of each feature
}

// readings computes these figures for the matrix that was fitted.
func (m *model) readings(t *table.Table) (r readings, err error) {
	if r.goodness, err = m.Goodness(t.X); err != nil {
		return r, cli.Explain(err, t)
	}
	r.x, r.features, r.observed = t.X, account.TopFeatures(m.Shares(), r.goodness), account.Visible(t.X)
	return r, nil
}

func (a *applied) inspect(s cli.Streams, k *known, asJSON bool) error {
	if err := k.check(a.words...); err != nil {
		return err
	}
	if k.sets != "" && a.words[1] == "" {
		return cli.UsageError("-sets: which features a component stands for depends on how well they are " +
			"explained: give MATRIX, too")
	}
	m, _, err := a.readModel(s)
	if err != nil {
		return err
	}
	if err := k.read(m.Features, m.Samples, s, &a.in); err != nil {
		return err
	}
	var r readings
	if a.words[1] != "" {
		t, _, err := a.in.Read(a.words[1], s, a.tell, true, m.signed())
		if err != nil {
			return err
		}
		if t, err = m.fitted(t, &a.in, s.Err); err != nil {
			return err
		}
		if err := a.allowsMatrices(3, t.X.Rows, t.X.Cols); err != nil {
			return err
		}
		a.tell.At("comparing the model with the matrix")
		if r, err = m.readings(t); err != nil {
			return err
		}
	}
	a.tell.End()
	if asJSON {
		o := m.object(r)
		o.Tests, o.Sets = k.objects(m, r)
		return writeJSON(s.Out, o)
	}
	_, err = io.WriteString(s.Out, m.tell(r, k))
	return err
}

// writeJSON writes an object over several lines.
func writeJSON(w io.Writer, object any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(object)
}

// tell prints in words what is in the model.
func (m *model) tell(r readings, k *known) string {
	var s strings.Builder
	line := linesOf(&s)
	line("Model", "%s of %s (%s)", m.kind(), table.Counted(m.of.U.Cols, "component"), m.formula())
	of := ""
	if m.Matrix != "" {
		of = m.Matrix + ": "
	}
	how := ""
	if m.Log1p {
		how = ", log(1+x) taken"
	}
	if m.Top {
		how += ", those features of largest standard deviation"
	}
	line("Fitted to", "%s%s × %s%s", of, table.Counted(len(m.Features), "feature"),
		table.Counted(len(m.Samples), "sample"), how)
	m.tellUnseen(line)
	for _, w := range m.Made.Warnings {
		line("Warning", "%s", w)
	}
	switch q := m.Model.(type) {
	case *quantmf.BQMF:
		line("Fit", "%s", foreseen(q))
	default:
		line("Fit", "a loss of %.4g after %s, %.4g before the first: how far values lie from what the "+
			"model says of them, on average, 0 where they are equal",
			m.of.History[m.of.Best], table.Counted(m.of.Best, "epoch"), m.of.History[0])
	}
	if m.Losses != "" {
		line("Loss", "%s", m.Losses)
	}
	if q, ok := m.Model.(*quantmf.QMF); ok {
		line("Start", "%s", account.Begun(q))
	}
	if len(m.of.Validation) > m.of.Best {
		line("", "%.4g on the values held out", m.of.Validation[m.of.Best])
	}
	if m.bend != nil {
		bent, _ := m.bentScales(r.x, r.goodness) // reading a Mat has no error
		line("Bent scales", "%s", bent)
	}
	if told := m.explained(r); told != "" {
		line("Explained", "%s", told)
	}
	samples := m.TopSamples(account.TopShown)
	features, amounts := "  (0 to 1: how far it stands for the feature)", "  (× its mean)"
	for c := range samples {
		head := fmt.Sprintf("Component c%d", c+1)
		if c < len(m.Stability) {
			line(head, "stability %.2f (1: every seed finds it)", m.Stability[c])
			head = ""
		}
		if r.features != nil {
			line(head, "features %s%s", listed(r.features[c], m.Features, "%.2f"), features)
			head, features = "", ""
		}
		line(head, "samples  %s%s", listed(samples[c], m.Samples, "%.1f×"), amounts)
		amounts = ""
	}
	k.tell(m, r, line)
	if m.Command != "" {
		line("Command", "%s", m.Command)
	}
	return s.String()
}

// explained says how well the features are explained, "" without the matrix or where all its samples are
// equal.
func (m *model) explained(r readings) string {
	least, count, left, spread := 0, 0, 0.0, 0.0
	for i, g := range r.goodness {
		left += g.Divergence * r.observed[i]
		spread += g.Spread * r.observed[i]
		if g.Explained >= 0.5 {
			count++
		}
		if g.Spread > 0 && (r.goodness[least].Spread == 0 || g.Explained < r.goodness[least].Explained) {
			least = i
		}
	}
	if spread == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %% of the differences between samples; half or more in %d of %d features; "+
		"least in %s (%.0f %%)", 100*(1-left/spread), count, len(r.goodness), m.Features[least],
		math.Round(100*r.goodness[least].Explained)+0) // and no -0
}

// listed names the top entries, without those whose value is nothing.
func listed(tops []quantmf.Top, names []string, format string) string {
	var words []string
	for _, t := range tops {
		if t.Value > 0 {
			words = append(words, table.Shown(names[t.Index])+" "+fmt.Sprintf(format, t.Value))
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

// The object of inspect -json. An NMF has no bend. Figures that need the matrix are left out without it.
type (
	modelObject struct {
		Method     string          `json:"method"`
		Matrix     string          `json:"matrix,omitempty"`
		SHA256     string          `json:"sha256,omitempty"`
		Command    string          `json:"command,omitempty"`
		Log1p      bool            `json:"log1p"`
		Epoch      int             `json:"epoch"`
		Loss       []float64       `json:"loss"`
		Validation []float64       `json:"validation,omitempty"`
		Unseen     *account.Unseen `json:"unseen,omitempty"`
		// of a BQMF, as are relevance and noise
		LeaveOneOut *float64          `json:"leave_one_out,omitempty"`
		SampleNoise []float64         `json:"sample_noise,omitempty"`
		Warnings    []string          `json:"warnings"`
		Components  []componentObject `json:"components"`
		Features    []featureObject   `json:"features"`
		Samples     []string          `json:"samples"`
		Tests       []testObject      `json:"tests,omitempty"` // with -groups
		Sets        []setObject       `json:"sets,omitempty"`  // with -sets
	}
	componentObject struct {
		Name      string      `json:"name"`
		Relevance *float64    `json:"relevance,omitempty"`
		Stability *float64    `json:"stability,omitempty"` // of a consensus
		Features  []topObject `json:"features,omitempty"`
		Samples   []topObject `json:"samples"`
	}
	topObject struct {
		Name  string  `json:"name"`
		Value float64 `json:"value"`
	}
	featureObject struct {
		Name       string    `json:"name"`
		Noise      *float64  `json:"noise,omitempty"`
		Bend       *float64  `json:"bend,omitempty"`
		Divergence *float64  `json:"divergence,omitempty"`
		Explained  *float64  `json:"explained,omitempty"`
		Shares     []float64 `json:"shares"`
	}
)

func (m *model) object(r readings) modelObject {
	o := modelObject{Method: m.method, Matrix: m.Matrix, SHA256: m.SHA256, Command: m.Command,
		Log1p: m.Log1p, Epoch: m.of.Best, Loss: m.of.History, Validation: m.of.Validation,
		Warnings: append([]string{}, m.Made.Warnings...), Samples: m.Samples}
	if u := m.Unseen; u.Values > 0 {
		u.Others = append([]account.Other{}, u.Others...) // a list, also of none
		for i := range u.Others {
			u.Others[i].Method = strings.ToLower(u.Others[i].Method)
		}
		o.Unseen = &u
	}
	bayes, _ := m.Model.(*quantmf.BQMF)
	if bayes != nil {
		o.LeaveOneOut, o.SampleNoise = &bayes.LeaveOneOut, bayes.SampleNoise
	}
	objects := func(tops []quantmf.Top, names []string) (out []topObject) {
		for _, t := range tops {
			out = append(out, topObject{names[t.Index], t.Value})
		}
		return out
	}
	for c, samples := range m.TopSamples(account.TopShown) {
		k := componentObject{Name: fmt.Sprintf("c%d", c+1), Samples: objects(samples, m.Samples)}
		if bayes != nil {
			k.Relevance = &bayes.Relevance[c]
		}
		if c < len(m.Stability) {
			k.Stability = &m.Stability[c]
		}
		if r.features != nil {
			k.Features = objects(r.features[c], m.Features)
		}
		o.Components = append(o.Components, k)
	}
	var bend []float64
	if m.bend != nil {
		bend = m.bend()
	}
	shares := m.Shares()
	for i, name := range m.Features {
		f := featureObject{Name: name, Shares: shares.Row(i)}
		if bayes != nil {
			f.Noise = &bayes.RowNoise[i]
		}
		if bend != nil {
			f.Bend = &bend[i]
		}
		if r.goodness != nil {
			f.Divergence, f.Explained = &r.goodness[i].Divergence, &r.goodness[i].Explained
		}
		o.Features = append(o.Features, f)
	}
	return o
}
