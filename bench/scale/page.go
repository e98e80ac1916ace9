//go:build linux

package main

// This file writes the results into docs/scale.md, between the comments "bench/scale: NAME" and "end" of the
// page, and draws the plots.

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
)

// names are the names of the kinds in the tables.
var names = map[string]string{"nmf": "NMF, Newton's method", "nmf-updates": "NMF, multiplicative updates",
	"nmf-sparse":         "NMF over sparse rows, Newton's method",
	"nmf-sparse-updates": "NMF over sparse rows, multiplicative updates", "qmf": "QMF, 8 levels"}

// line is a line of the results.
type line struct {
	work
	took
}

func readResults() (all []line, err error) {
	b, err := os.ReadFile(results)
	if err != nil {
		return nil, err
	}
	for i, text := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if i == 0 {
			continue
		}
		w, t, err := parse(strings.Fields(text))
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", results, i+1, err)
		}
		all = append(all, line{w, t})
	}
	return all, nil
}

// inFormula tells whether a fit counts for a formula: on one machine, and where Adam does not step U and V.
func inFormula(w work) bool { return w.shards == 0 && (w.kind != "qmf" || w.k <= 32) }

// formulas are the formulas of an epoch of each kind, and of the start of a QMF.
type formulas struct {
	epoch map[string]*fitted
	start *fitted
}

func formulasOf(all []line) formulas {
	f := formulas{epoch: map[string]*fitted{}}
	for _, kind := range kinds {
		var works []work
		var nonzero, epochs, starts []float64
		for _, l := range all {
			if l.kind == kind && inFormula(l.work) {
				works, nonzero, epochs, starts = append(works, l.work), append(nonzero, float64(l.nonzero)),
					append(epochs, l.epoch), append(starts, l.start)
			}
		}
		f.epoch[kind] = fit(terms(kind), works, nonzero, epochs)
		if kind == "qmf" {
			f.start = fit(startTerms(), works, nonzero, starts)
		}
	}
	return f
}

func writePage() error {
	all, err := readResults()
	if err != nil {
		return err
	}
	f := formulasOf(all)
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text := string(b)
	for name, part := range map[string]string{"sizes": f.sizes(), "formulas": f.table(),
		"measured": f.measured(all), "shards": f.overShards(all)} {
		begin := "<!-- bench/scale: " + name + " -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, "<!-- end -->")
		if !ok || !closed {
			return fmt.Errorf("%s has no part %q", page, name)
		}
		text = before + begin + part + "<!-- end -->" + after
	}
	if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
		return err
	}
	return os.WriteFile(plots, []byte(f.plot(all)), 0o666)
}

// sizes returns the table of time and memory of fits of some sizes, by the formulas and by MemoryOf.
func (f formulas) sizes() string {
	s := "| d × n, cells not zero | k | the matrix | NMF, an epoch: by Newton's method, by updates | NMF: " +
		"memory | QMF: start | an epoch | memory |\n|---|---|---|---|---|---|---|---|\n"
	for _, w := range []work{{d: 500, n: 300, density: 1, k: 10}, {d: 2000, n: 4000, density: 1, k: 10},
		{d: 20000, n: 1000, density: 1, k: 10}, {d: 20000, n: 2000, density: 1, k: 20},
		{d: 20000, n: 2000, density: 0.05, k: 20},
		{d: 20000, n: 20000, density: 0.05, k: 10}, {d: 20000, n: 100000, density: 0.05, k: 10},
		{d: 20000, n: 1000000, density: 0.05, k: 10}} {
		w.m = 8
		nonzero, matrix := w.density*cells(w, 0), 8*cells(w, 0)
		newton, updates, dense := f.epoch["nmf"], f.epoch["nmf-updates"], "all"
		if w.density < 1 {
			newton, updates, dense = f.epoch["nmf-sparse"], f.epoch["nmf-sparse-updates"],
				fmt.Sprintf("%g %%", 100*w.density)
			matrix = 8 * nonzero
		}
		one := quantmf.WithWorkers(1)
		// no error: sizes and options are valid
		nmf, _ := quantmf.MemoryOf(quantmf.MethodNMF, w.d, w.n, w.k, one)
		qmf, _ := quantmf.MemoryOf(quantmf.MethodQMF, w.d, w.n, w.k, one)
		nmfMemory, qmfMemory := nmf.Fit, qmf.Fit
		if w.density < 1 {
			nmfMemory, qmfMemory = nmf.Rows, qmf.Rows
		}
		s += fmt.Sprintf("| %s × %s, %s | %d | %s | %s, %s | %s | %s | %s | %s |\n", thousands(w.d),
			thousands(w.n), dense, w.k, bytes(matrix), seconds(newton.at(w, nonzero)),
			seconds(updates.at(w, nonzero)),
			bytes(float64(nmfMemory)), seconds(f.start.at(w, nonzero)),
			seconds(f.epoch["qmf"].at(w, nonzero)), bytes(float64(qmfMemory)))
	}
	return s
}

// table returns the table of the factors.
func (f formulas) table() string {
	s := "| | nanoseconds of one core | a measured time lies off it by at most |\n|---|---|---|\n"
	row := func(name string, of *fitted) {
		var sum []string
		for i, t := range of.terms {
			if of.factors[i] > 0 {
				sum = append(sum, fmt.Sprintf("%.3g %s", 1e9*of.factors[i], t.name))
			}
		}
		s += fmt.Sprintf("| %s | %s | %.1f times |\n", name, strings.Join(sum, " + "), of.off)
	}
	for _, kind := range kinds {
		row("an epoch of "+names[kind], f.epoch[kind])
	}
	row("the start of QMF where it is chosen", f.start)
	return s
}

// measured returns the table of all fits on one machine.
func (f formulas) measured(all []line) string {
	s := "| fit | d × n | k, m | cells not zero | start | an epoch | of the formula | memory | as MemoryOf " +
		"has it |\n|---|---|---|---|---|---|---|---|---|\n"
	for _, l := range all {
		if l.shards > 0 {
			continue
		}
		more := fmt.Sprint(l.k)
		if l.m > 0 {
			more += fmt.Sprintf(", %d", l.m)
		}
		nonzero, formula := thousands(l.nonzero),
			fmt.Sprintf("%.2f", l.epoch/f.epoch[l.kind].at(l.work, float64(l.nonzero)))
		if l.kind == "nmf" || l.kind == "nmf-updates" {
			nonzero = "all"
		}
		if !inFormula(l.work) {
			formula = "(Adam)"
		}
		s += fmt.Sprintf("| %s | %s × %s | %s | %s | %s | %s | %s | %s | %s |\n",
			strings.TrimSuffix(names[l.kind], ", 8 levels"), thousands(l.d), thousands(l.n), more, nonzero,
			seconds(l.start), seconds(l.epoch),
			formula, bytes(l.fit), bytes(l.told))
	}
	return s
}

// overShards returns the table of fits over shards.
func (f formulas) overShards(all []line) string {
	s := "| fit | d × n | shards | all steps and the reduce | the longest step | the reduce | written and " +
		"read |\n|---|---|---|---|---|---|---|\n"
	for _, l := range all {
		if l.shards > 0 {
			s += fmt.Sprintf("| %s | %s × %s | %d | %s | %s | %s | %s |\n", names[l.kind], thousands(l.d),
				thousands(l.n), l.shards, seconds(l.epoch), seconds(l.largest), seconds(l.reduce),
				bytes(l.moved))
		}
	}
	return s
}

func thousands(v int) string {
	s := fmt.Sprint(v)
	for at := len(s) - 3; at > 0 && len(s) > 4; at -= 3 {
		s = s[:at] + " " + s[at:]
	}
	return s
}

// digits returns a number with two digits.
func digits(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(10*math.Round(v/10), 'f', 0, 64)
	}
	if v >= 9.95 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func seconds(v float64) string {
	switch {
	case v < 0.9995:
		return digits(1000*v) + " ms"
	case v < 100:
		return digits(v) + " s"
	case v < 6000:
		return digits(v/60) + " min"
	}
	return digits(v/3600) + " h"
}

func bytes(v float64) string {
	if v < 999.5e6 {
		return digits(v/1e6) + " MB"
	}
	return digits(v/1e9) + " GB"
}

// plot draws on logarithmic axes the times of epochs over n and over d, and of the longest step and the
// reduce over shards. Lines are the formulas.
func (f formulas) plot(all []line) string {
	var s strings.Builder
	inks := []string{"#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00"}
	fmt.Fprint(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="960" height="400" `+
		`font-family="sans-serif" font-size="12"><rect width="960" height="400" fill="white"/>`+"\n")
	const top, bottom, low, high = 20.0, 330.0, -3.0, 1.0 // seconds are from 10^low to 10^high
	y := func(v float64) float64 { return bottom - (math.Log10(v)-low)/(high-low)*(bottom-top) }
	panel := func(left, from, to float64, label string, ticks ...float64) func(v float64) float64 {
		x := func(v float64) float64 { return left + 260*math.Log(v/from)/math.Log(to/from) }
		for e := low; e <= high; e++ {
			fmt.Fprintf(&s, `<path d="M%.0f %.1fh260" stroke="#ddd"/><text x="%.0f" y="%.1f" `+
				`text-anchor="end">%s</text>`+"\n", left, y(math.Pow(10, e)), left-4, y(math.Pow(10, e))+4,
				seconds(math.Pow(10, e)))
		}
		for _, t := range ticks {
			fmt.Fprintf(&s, `<path d="M%.1f 20V330" stroke="#ddd"/><text x="%.1f" y="346" `+
				`text-anchor="middle">%s</text>`+"\n", x(t), x(t), thousands(int(t)))
		}
		fmt.Fprintf(&s, `<text x="%.0f" y="364" text-anchor="middle">%s</text>`+"\n", left+130, label)
		return x
	}
	dot := func(x, v float64, ink string) {
		fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y(v), ink)
	}
	overN := panel(52, 900, 70000, "an epoch over n, d = 1000, k = 10", 1000, 4000, 16000, 64000)
	overD := panel(372, 450, 22000, "an epoch over d, n = 2000, k = 10", 500, 2000, 8000, 20000)
	overS := panel(692, 0.9, 9, "shards of 2000 × 4000: a step (rings: the reduce)", 1, 2, 4, 8)
	for i, kind := range kinds {
		curve := func(x func(float64) float64, from, to float64, of func(v float64) work) {
			path, d := "", "M"
			for v := from; v <= to*1.001; v *= math.Pow(to/from, 1./20) {
				w := of(v)
				path, d = path+fmt.Sprintf("%s%.1f %.1f", d, x(v), y(f.epoch[kind].at(w, 0.05*cells(w, 0)))),
					"L"
			}
			fmt.Fprintf(&s, `<path d="%s" fill="none" stroke="%s"/>`+"\n", path, inks[i])
		}
		curve(overN, 1000, 64000, func(v float64) work { return work{d: 1000, n: int(v), k: 10, m: 8} })
		curve(overD, 500, 20000, func(v float64) work { return work{d: int(v), n: 2000, k: 10, m: 8} })
		for _, l := range all {
			switch {
			case l.kind != kind || l.k != 10 || l.density != 0.05 || l.m > 0 && l.m != 8:
			case l.shards > 0 && l.n == 4000:
				dot(overS(float64(l.shards)), l.largest, inks[i])
				fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="3" fill="none" stroke="%s"/>`+"\n",
					overS(float64(l.shards)), y(l.reduce), inks[i])
			case l.shards > 0:
			case l.d == 1000:
				dot(overN(float64(l.n)), l.epoch, inks[i])
			case l.n == 2000:
				dot(overD(float64(l.d)), l.epoch, inks[i])
			}
		}
		fmt.Fprintf(&s, `<text x="%d" y="388" fill="%s">%s</text>`+"\n", []int{20, 150, 320, 560, 840}[i],
			inks[i], strings.TrimSuffix(names[kind], ", 8 levels"))
	}
	s.WriteString("</svg>\n")
	return s.String()
}
