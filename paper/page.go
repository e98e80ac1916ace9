// This file makes README.md and figures/ from the files of results and from nothing else.
// Each section names the setting and version of its numbers, and its verdicts depend on the numbers alone.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// sections of the page, each drawing its own figures where draw is set. A section
// without results says so.
var sections = []func(w *writer) error{
	timingPage, toyPage, settingsPage, largerPage, genomicsPage, survivalPage, fieldsPage,
}

// writer collects the text of the page.
type writer struct {
	strings.Builder
	draw   bool       // whether figures are drawn
	claims [][]string // the claims of the paper, and what comes out
}

// claim adds a claim of the paper and what comes out to the table at the head of the page.
func (w *writer) claim(of, comes string, args ...any) {
	w.claims = append(w.claims, []string{of, fmt.Sprintf(comes, args...)})
}

func (w *writer) p(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// picture adds figures/NAME.png to the page; make draws it.
func (w *writer) picture(name, caption string, make func() error) error {
	if w.draw {
		if err := make(); err != nil {
			return err
		}
	}
	w.p("\n![%s](figures/%s.png)\n", caption, name)
	w.p("*%s*\n", caption)
	return nil
}

// table writes a table. Its first row is the head.
func (w *writer) table(rows [][]string) {
	for i, row := range rows {
		w.p("| %s |", strings.Join(row, " | "))
		if i == 0 {
			w.p("|%s", strings.Repeat("---|", len(row)))
		}
	}
	w.p("")
}

// made writes the line that says how the numbers of a section were made.
func (w *writer) made(h header, detail string) {
	w.p("*%s setting (%s), made at %s on %s, %s, in %.3g minutes.*\n",
		strings.ToUpper(h.Setting[:1])+h.Setting[1:], detail, h.Version, h.Date, h.Machine, h.Minutes)
}

// verdict returns yes or no.
func verdict(holds bool, yes, no string) string {
	if holds {
		return yes
	}
	return no
}

func g(v float64) string { return fmt.Sprintf("%.3g", v) }

func text(draw bool) (string, error) {
	w := &writer{draw: draw}
	for _, section := range sections {
		w.p("")
		if err := section(w); err != nil {
			return "", err
		}
	}
	head := &writer{}
	takes, err := duration()
	if err != nil {
		return "", err
	}
	head.p("%s%s\n\n## What comes out\n", preface, takes)
	head.table(append([][]string{{"the paper's claim", "here"}}, w.claims...))
	all := head.String() + w.String() + "\n" + differences
	return breaks.ReplaceAllString(strings.TrimRight(all, "\n"), "\n\n") + "\n", nil
}

var breaks = regexp.MustCompile(`\n{3,}`)

func page() error {
	t, err := text(true)
	if err != nil {
		return err
	}
	return os.WriteFile("README.md", []byte(t), 0o644)
}

// duration says how long the full setting takes. It is the sum of the times of its sections. For a
// section that has only a quick result, it is estimated from the seconds of an epoch.
func duration() (string, error) {
	full := new(session)
	measured, estimated := 0.0, 0.0
	var guessed []string
	add := func(name string, h header, has bool, estimate float64, err error) error {
		switch {
		case err != nil || !has:
			return err
		case h.Setting == "full":
			measured += h.Minutes
		default:
			estimated += estimate
			guessed = append(guessed, name)
		}
		return nil
	}
	quick := &session{quick: true}
	// work is the time of fits, from the seconds of a run that may be shorter.
	work := func(bands []band, ways []way, repeats int) (seconds float64) {
		for _, w := range ways {
			if b, has := find(bands, w.Name); has {
				last := len(b.Epoch) - 1
				seconds += (b.Second[0] +
					(b.Second[last]-b.Second[0])*float64(w.Epochs)/float64(b.Epoch[last])) * float64(repeats)
			}
		}
		return seconds
	}
	t, has, err := read[timingResult]("timing")
	if err = add("timing", t.Header, has, 10*t.Header.Minutes, err); err != nil {
		return "", err
	}
	toys, has, err := read[toyResult]("toy")
	ratio := 0.0
	for _, p := range toys.Result.Problems {
		ratio += work(p.Bands, toyWays(full), toySeeds(full)) / work(p.Bands, toyWays(quick),
			toySeeds(quick)) / float64(len(toys.Result.Problems))
	}
	if err = add("toy", toys.Header, has, ratio*toys.Header.Minutes, err); err != nil {
		return "", err
	}
	set, has, err := read[settingsResult]("settings")
	if err = add("settings", set.Header, has, 10*set.Header.Minutes, err); err != nil {
		return "", err
	}
	l, has, err := read[largerResult]("larger")
	ratio = work(l.Result.Bands, largerWays(full), largerRepeats(full)) / work(l.Result.Bands,
		largerWays(quick), largerRepeats(quick))
	if err = add("larger", l.Header, has, ratio*l.Header.Minutes, err); err != nil {
		return "", err
	}
	gen, has, err := read[genomicsResult]("genomics")
	made, would := 0.0, 0.0
	for _, c := range gen.Result.Cancers {
		made, would = made+work(c.Bands, genomicsWays(quick), genomicsSeeds(quick)), would+
			work(c.Bands, genomicsWays(full), genomicsSeeds(full))
	}
	sum := func(v []int) float64 { return average(v) * float64(len(v)) }
	// the time grows with ranks and masks
	hidden := sum(genomicsRanks(full)) / sum(genomicsRanks(quick)) * float64(genomicsMasks(full)) / float64(genomicsMasks(quick))
	if err = add("genomics", gen.Header, has,
		(gen.Header.Minutes-gen.Result.HiddenMinutes)*would/made+gen.Result.HiddenMinutes*hidden,
		err); err != nil {
		return "", err
	}
	s, has, err := read[survivalResult]("survival")
	if err = add("survival", s.Header, has,
		s.Header.Minutes*float64(survivalSeeds(full))/float64(max(1, s.Result.Seeds)), err); err != nil {
		return "", err
	}
	f, has, err := read[fieldsResult]("fields")
	if err = add("fields", f.Header, has,
		f.Header.Minutes*float64(fieldsMasks(full))/float64(max(1, f.Result.Masks)), err); err != nil {
		return "", err
	}
	out := fmt.Sprintf("The full setting takes about %.0f minutes of two cores", measured+estimated)
	if len(guessed) > 0 {
		out += fmt.Sprintf(": %.1f were measured, %.0f, for %s, are estimated from the quick one", measured,
			estimated, strings.Join(guessed, ", "))
	}
	out += "."
	drawn, all := 0.0, 0.0 // minutes of the quick setting: with generated data alone, and with all
	for _, e := range experiments {
		text, err := os.ReadFile(filepath.FromSlash("results/quick/" + e.name + ".json"))
		if errors.Is(err, fs.ErrNotExist) {
			return out, nil
		}
		var r result[any]
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return "", err
		}
		all += r.Header.Minutes
		if !needsData[e.name] {
			drawn += r.Header.Minutes
		}
	}
	return out + fmt.Sprintf(" The quick one takes %.1f without data and %.1f with them, compiling left out.",
		drawn, all), nil
}

// needsData has the experiments that are left out without real data.
var needsData = map[string]bool{"genomics": true, "survival": true, "fields": true}

const preface = "# The paper's experiments, with this package\n" + `
Every experiment of "Supervised Quantile Normalization for Low-rank Matrix Approximation" (Cuturi, Teboul, Niles-Weed and Vert, ICML
2020), repeated with the public functions of quantmf: where the results agree, where paper, published code and this package
differ, and what the paper left out. The page and its figures are written by a command from the files in [results](results):

` + "```sh" + `
cd paper
go run . all -quick                 # what needs no data, minutes; with -data FOLDER all of it
go run . all -data FOLDER           # the full setting
go run . toy -quick                 # one experiment: timing, toy, settings, larger, genomics, survival, fields
go run . page                       # figures and this page again, from the results that are there
go run . data -data FOLDER          # where the data are published, and which of them FOLDER has
` + "```" + `

Losses are mean generalised Kullback-Leibler divergences per entry of the matrix. Lines of figures are medians, bands go from
the lowest to the highest seed. Seconds are those of one core of a machine that did other work at the same time: compare them
within a figure only. Each section names the version that computed its numbers, and the minutes that two cores would
take for it without other work. "NMF" is the textbook's multiplicative updates under KL, as in the paper, unless
"Newton" is said, which is what FitNMF does by default. The published code is the folder soft_sort of google-research;
"published curves" are losses that this code reaches on the same matrices. Fits named "paper's settings" have its start, pinned
ends, a constant rate, ε = 0.01 and SquashLogistic. [study](study) is another program on the same data, by which the defaults
of fits were chosen.
`

const differences = `## Where paper, published code and this package differ

| | the paper's text | the published code | this package |
|---|---|---|---|
| samples before the transport | as they are | z-scores through a logistic function onto [0,1] | the same; models with slope 1 by default |
| iterations | a given number | until columns are within 1e-2, ε falling to its value | Newton's method to 1e-9, or a given number |
| gradients (Algorithm 2) | J_x misses 1/ε in two terms, J_b has a wrong form, Δ is n × m with 2(x_i - y_j): as printed they are wrong | right formulas, at a plan that has not converged | right formulas, at the converged plan; checked against differences in high precision |
| soft ranks | n P cumsum(b)/a, their mean too high by (n/m-1)/2 | the same | the same, or the unbiased WithMidpointRanks |
| soft sort | columns exact | the row-exact plan divided by b: neither monotone nor within the range of x | the plan divided by its own columns: both |
| loss | a sum over entries | a mean | a mean |
| NMF, and Π_k of QMFQ | KL | updates of the Frobenius norm, the loss reported is KL | Newton's method; multiplicative updates; Π_k by either or by the SVD |
| toy | gaps of deviation 1 | 2 | both are shown |
| larger | noise after the quantile map | noise is never added | as in the text |
| QMF | no penalty but in genomics | a penalty of 0.01 on the logarithms of factors | none unless asked for |
| miRNA of the cancers | not said | in reads per million, the other blocks as logarithms | logarithms of all |
| p-values of survival | corrected by Bonferroni, each factor | one joint model of ten factors, no correction, two runs merged | both, with chance beside them |
`
