//go:build linux && amd64 && !purego

package main

// This file reads profiles, and makes the table of them.

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// measurement is a fit in each build.
type measurement struct {
	fit      string
	profiles [levels]profile
}

// profile is the processor's time of one fit, in seconds, in all and by the calls on the stack.
type profile struct {
	total  float64
	traces []trace
}

// trace is a stack's calls of kernels, the innermost first, and its time. A kernel's name ends in the set of
// instructions of its text, or in _g.
type trace struct {
	calls   []string
	seconds float64
}

var call = regexp.MustCompile(`internal/kernel\.(\w+(?:_g|AVX2|AVX512))\b`)

// profileOf reads what pprof -traces writes of so many repetitions of a fit.
func profileOf(text, repetitions string) (p profile, err error) {
	times, err := strconv.ParseFloat(strings.TrimSpace(repetitions), 64)
	if err != nil {
		return p, err
	}
	blocks := strings.Split(text, "-----------+-------------------------------------------------------\n")
	for _, block := range blocks[1:] {
		fields := strings.Fields(block)
		if len(fields) == 0 {
			continue
		}
		took, err := time.ParseDuration(fields[0])
		if err != nil {
			return p, fmt.Errorf("a trace begins with %q: %w", fields[0], err)
		}
		t := trace{seconds: took.Seconds() / times}
		for _, found := range call.FindAllStringSubmatch(block, -1) {
			t.calls = append(t.calls, found[1])
		}
		p.total += t.seconds
		p.traces = append(p.traces, t)
	}
	return p, nil
}

// name returns the kernel of a call.
func name(call string) string {
	for _, form := range []string{"_g", "AVX512", "AVX2"} {
		if kernel, is := strings.CutSuffix(call, form); is {
			return kernel
		}
	}
	return call
}

// times returns the seconds of each kernel with a text: those of the outermost call, since the loops of some
// kernels call others. If inner is not nil, the time of what a loop calls is multiplied by what inner has.
func times(p profile, texts map[string]bool, inner map[string]float64) map[string]float64 {
	seconds := map[string]float64{}
	for _, t := range p.traces {
		inmost, outermost := "", ""
		for _, c := range t.calls {
			if kernel := name(c); texts[kernel] {
				if inmost == "" {
					inmost = kernel
				}
				outermost = kernel
			}
		}
		if outermost == "" {
			continue
		}
		by := 1.0
		if inner != nil && inmost != outermost {
			by = inner[inmost]
		}
		seconds[outermost] += by * t.seconds
	}
	return seconds
}

// texts returns the kernels that are called in assembly at a level.
func texts(level string) (map[string]bool, error) {
	declared := regexp.MustCompile(`(?m)^func (\w+)\(`)
	files, err := filepath.Glob("../internal/*/*_amd64.go")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		at := declared.FindAllSubmatchIndex(text, -1)
		for i, found := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			if bytes.Contains(text[found[1]:end], []byte("case "+level+":")) {
				names[string(text[found[2]:found[3]])] = true
			}
		}
	}
	return names, nil
}

// saving is what a kernel saves one fit.
type saving struct {
	fit  string
	cost float64 // of the fit's time
}

// savings returns those of each kernel by one set of instructions, the dearest first.
func savings(measured []measurement, level int) (map[string][]saving, error) {
	texts, err := texts([levels]string{"AVX512", "AVX2"}[level])
	if err != nil {
		return nil, err
	}
	// What a kernel takes in assembly of its time in Go, over all fits.
	fast, slow := map[string]float64{}, map[string]float64{}
	for _, m := range measured {
		for k, s := range times(m.profiles[level], texts, nil) {
			fast[k] += s
		}
		for k, s := range times(m.profiles[loops], texts, nil) {
			slow[k] += s
		}
	}
	inner := map[string]float64{}
	for k, s := range slow {
		inner[k] = min(1, fast[k]/s)
	}
	all := map[string][]saving{}
	for _, m := range measured {
		fast, slow := times(m.profiles[level], texts, nil), times(m.profiles[loops], texts, inner)
		total := m.profiles[level].total
		for k := range texts {
			if fast[k] > 0 || slow[k] > 0 {
				all[k] = append(all[k], saving{m.fit, (slow[k] - fast[k]) / total})
			}
		}
	}
	for _, s := range all {
		slices.SortFunc(s, func(a, b saving) int { return -cmp.Compare(a.cost, b.cost) })
	}
	return all, nil
}

// meaning begins the page; its table follows.
const meaning = `# What each kernel saves

` + "`cd bench && go run ./kernels`" + ` wrote this: %d fits in three builds, %s.

A kernel is a loop in assembly; 42 of the 69 are compiled from their loops in Go and cost a line each. A
kernel's cost is how much longer a fit would take if that one kernel were its loop in Go; it stands with the
fit in which it is largest. A kernel that saves no fit more than some 2 %% is not worth its text. Costs below
3 %% are good to some points; fisher, multiplyLess and logisticSlope, below that, are in every step of a QMF
and together 4 %% of an epoch of 500 × 300.

`

// table is the page: each kernel with the fit that needs it most, the dearest first.
func table(measured []measurement) (string, error) {
	wide, err := savings(measured, avx512)
	if err != nil {
		return "", err
	}
	narrow, err := savings(measured, avx2)
	if err != nil {
		return "", err
	}
	all, err := texts("AVX2")
	if err != nil {
		return "", err
	}
	// dearest has a kernel's largest cost in either build, and cell one build's in words.
	dearest := func(k string) (most saving) {
		for _, of := range [][]saving{wide[k], narrow[k]} {
			if len(of) > 0 && of[0].cost > most.cost {
				most = of[0]
			}
		}
		return most
	}
	cell := func(s []saving) string {
		if len(s) == 0 || s[0].cost < 0.0005 {
			return "–"
		}
		return fmt.Sprintf("%.1f", 100*s[0].cost)
	}
	kernels := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(kernels, func(a, b string) int {
		return -cmp.Compare(dearest(a).cost, dearest(b).cost)
	})
	var b strings.Builder
	fmt.Fprintf(&b, meaning, len(measured), machine())
	b.WriteString("| fit | kernels that it needs most of all fits, and their cost in %: AVX-512, AVX2 |\n" +
		"|---|---|\n")
	var fits []string // by their dearest kernel
	costs := map[string][]string{}
	for _, k := range kernels {
		fit := dearest(k).fit
		if costs[fit] == nil {
			fits = append(fits, fit)
		}
		costs[fit] = append(costs[fit], fmt.Sprintf("%s %s, %s", k, cell(wide[k]), cell(narrow[k])))
	}
	for _, fit := range fits {
		fmt.Fprintf(&b, "| %s | %s |\n", fit, strings.Join(costs[fit], "; "))
	}
	return b.String(), nil
}

// machine is the name of the processor.
func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	found := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(text)
	if found == nil {
		return "on a processor without a name"
	}
	return string(found[1]) + ", one core"
}
