package main

// This file compares the prediction of unseen cells with that of other software. It draws the hidden cells,
// fits the models of this package and scores all predictions; peers.py runs the other software. Each other
// method has, for each measure, the setting that is best on the hidden cells themselves. FitBQMF has its
// defaults.

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/cells"
	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/gonum/stat"
)

// sig rounds to four significant digits.
func sig(v float64) float64 { return report.Round(v, 4) }

// peerTable is a table of the comparison, one or more sets stacked. peers.py makes the sets of scikit-learn.
type peerTable struct {
	key, name, kind string
	sets            []string
	// whether it is one of the wide tables; means are given for these and for the small ones apart
	wide  bool
	alone bool // only BQMF is fitted, for its intervals
}

var peerTables = []peerTable{
	{"laml-exp", "TCGA-LAML expression", "logarithms of omics", []string{"tcga-laml/exp"}, true, false},
	{"kirc-mirna", "TCGA-KIRC miRNA", "logarithms of omics", []string{"tcga-kirc/mirna"}, true, false},
	{"laml", "TCGA-LAML, three omics", "logarithms of omics",
		[]string{"tcga-laml/exp", "tcga-laml/mirna", "tcga-laml/methy"}, true, false},
	{"sotu", "State of the Union, words", "counts", []string{"sotu-wordcounts/counts"}, true, false},
	{"pbmc", "PBMC, counts", "counts", []string{"pbmc3k-small/counts"}, true, false},
	{"wine", "wine", "mixed measures", []string{"sklearn/wine"}, false, false},
	{"breast", "breast cancer, 30 measures", "mixed measures", []string{"sklearn/breast"}, false, false},
	{"diabetes", "diabetes", "mixed measures", []string{"sklearn/diabetes"}, false, false},
	{"digits", "digits", "pictures", []string{"sklearn/digits"}, false, false},
	{"orl", "ORL faces", "pictures", []string{"orl-faces-23x28/pixels"}, true, false},
	{"golub", "Golub leukaemia", "raw intensities", []string{"golub-leukemia/exp"}, true, false},
	{"brca-methy", "TCGA-BRCA methylation", "shares", []string{"tcga-brca/methy"}, true, false},
	{"cesc-mirna", "TCGA-CESC miRNA", "logarithms of omics", []string{"tcga-cesc/mirna"}, true, true},
	{"ov-mirna", "TCGA-OV miRNA", "logarithms of omics", []string{"tcga-ov/mirna"}, true, true},
	{"kirc-rppa", "TCGA-KIRC proteins (signed)", "signed", []string{"tcga-kirc/rppa"}, true, true},
	{"coadread-exp", "TCGA-COADREAD expression", "logarithms of omics", []string{"tcga-coadread/exp"}, true,
		true},
	{"brca-exp", "TCGA-BRCA expression (signed)", "signed", []string{"tcga-brca/exp"}, true, true},
}

// designed is the number of tables at the head of the list on which BQMF was developed. The first five of
// them are wide.
const designed = 9

const mostFeatures, mostSamples = 400, 220

// external are the methods of peers.py. Slow methods try all their settings under the first mask, and only
// the best of these under the others. On wide tables they have slowDraws masks, and slowest methods none.
var (
	external = []string{"softImpute", "KNNImputer", "IterativeImputer", "gcimpute", "missForest", "BPCA",
		"miceforest", "HyperImpute"}
	slow = map[string]bool{"IterativeImputer": true, "gcimpute": true, "missForest": true, "BPCA": true,
		"miceforest": true, "HyperImpute": true}
	slowest = []string{"miceforest", "HyperImpute"}
)

// peerResults is what results/peers.json holds.
type peerResults struct {
	Version, Date, Machine string
	Packages               map[string]string
	Masks                  int
	Tables                 []peerResult
}

type peerResult struct {
	Key               string
	Features, Samples int // under the first mask
	Methods           []methodResult
	Intervals         intervals
}

// methodResult has one value for each mask, with the setting that is best for the measure on that mask.
// Second and Within80 belong to the setting that is best for KL. Within80 is the share of hidden cells within
// 80 % intervals, for methods that have intervals.
type methodResult struct {
	Name                       string
	Setting                    []string
	KL, Absolute, Rank, Second []float64
	Within80                   []float64 `json:",omitempty"`
}

// intervals has the shares of hidden cells within 50, 80 and 95 % intervals, over all masks. Features are
// divided into tenths by their mean; Worst is the difference between the share and its level in the tenth
// where it is largest.
type intervals struct {
	Cells         int
	Within, Worst [3]float64
}

var levels = [3]float64{0.5, 0.8, 0.95}

// outcome has the measures of one setting on one mask.
type outcome struct {
	Setting                   string
	KL, Absolute, Rank        float64
	Seconds                   float64
	Within80                  float64 // NaN is written as -1
	Tenths                    [3][10]float64
	Count                     [10]float64
	Features, Samples, Hidden int
}

// problem is a table with hidden cells. Rows with fewer than three different visible values are left out.
type problem struct {
	peerTable
	draw    int
	x, mask quantmf.Mat // the table, and the table with hidden cells as NaN
	means   []float64   // the mean of the visible cells of each row
	file    string      // mask as a file, for peers.py
}

func peers() {
	tables := peerTables
	named := flag.Args()[1:]
	if (*some != "" || *merge) && len(named) == 0 {
		log.Fatal("-methods and -merge are for named tables")
	}
	if len(named) > 0 {
		tables = slices.DeleteFunc(slices.Clone(tables),
			func(t peerTable) bool { return !slices.Contains(named, t.key) })
		if len(tables) == 0 {
			log.Fatal("no such tables")
		}
	}
	bundled := filepath.Join("cache", "sklearn")
	if _, err := os.Stat(filepath.Join(bundled, "digits.tsv.gz")); err != nil {
		runPython("tables", bundled)
	}
	r := peerResults{Version: report.Version(), Date: report.Today(), Masks: *draws,
		Machine: report.Machine()}
	check(json.Unmarshal(runPython("versions"), &r.Packages))
	all := outcomesOf(tables)
	for _, t := range tables {
		r.Tables = append(r.Tables, t.summary(all))
	}
	if len(named) > 0 && *merge {
		old, err := readPeers()
		check(err)
		old.merge(&r)
		old.write()
		return
	}
	if len(named) > 0 {
		for _, t := range r.Tables {
			for _, m := range t.Methods {
				fmt.Printf("%-12s %-20s KL %v, absolute %v, rank %v, %v s, 80 %%: %v, at %q\n", t.Key, m.Name,
					m.KL, m.Absolute, m.Rank, m.Second, m.Within80, m.Setting)
			}
			fmt.Printf("%-12s intervals: %.3f, tenths %+.3f\n", t.Key, t.Intervals.Within, t.Intervals.Worst)
		}
		return
	}
	r.write()
}

// outcomesOf returns the outcomes of all settings by "TABLE/METHOD", for each mask. The loop over masks is
// the outer one, so that a command that is stopped has results of each table.
func outcomesOf(tables []peerTable) map[string][][]outcome {
	all := map[string][][]outcome{}
	for draw := range *draws {
		for _, t := range tables {
			p := t.problem(draw)
			for _, method := range methods(t) {
				if t.wide && slow[method] && (draw >= *slowDraws || slices.Contains(slowest, method)) {
					continue
				}
				key := t.key + "/" + method
				var settings []string
				if slow[method] && draw > 0 {
					settings = bestSettings(all[key][0])
				}
				all[key] = append(all[key], p.outcomes(method, settings))
			}
		}
	}
	return all
}

// Outcomes in the order of a measure, the best first.
func byKL(a, b outcome) int       { return cmp.Compare(a.KL, b.KL) }
func byAbsolute(a, b outcome) int { return cmp.Compare(a.Absolute, b.Absolute) }
func byRank(a, b outcome) int     { return cmp.Compare(b.Rank, a.Rank) }

// summary returns the results of a table, each method with the setting that is best for the measure on a
// mask.
func (t peerTable) summary(all map[string][][]outcome) peerResult {
	one := peerResult{Key: t.key}
	for _, method := range methods(t) {
		runs := all[t.key+"/"+method]
		m := methodResult{Name: method}
		for _, run := range runs {
			if len(run) == 0 {
				continue
			}
			one.Features, one.Samples = run[0].Features, run[0].Samples
			least := slices.MinFunc(run, byKL)
			m.Setting, m.KL = append(m.Setting, least.Setting), append(m.KL, sig(least.KL))
			m.Second = append(m.Second, sig(least.Seconds))
			m.Absolute = append(m.Absolute, sig(slices.MinFunc(run, byAbsolute).Absolute))
			m.Rank = append(m.Rank, sig(slices.MinFunc(run, byRank).Rank))
			if least.Within80 >= 0 {
				m.Within80 = append(m.Within80, sig(least.Within80))
			}
		}
		if len(m.KL) > 0 {
			one.Methods = append(one.Methods, m)
		}
		if method == "BQMF" && len(runs) > 0 {
			one.Intervals = pooled(runs)
		}
	}
	return one
}

// merge adds the results of another run for some tables and methods, if it has as many masks.
func (r *peerResults) merge(from *peerResults) {
	maps.Copy(r.Packages, from.Packages)
	for _, t := range from.Tables {
		at := slices.IndexFunc(r.Tables, func(o peerResult) bool { return o.Key == t.Key })
		if at < 0 {
			log.Fatalf("%s has no table %s", peerFile, t.Key)
		}
		into := &r.Tables[at]
		for _, m := range t.Methods {
			if old := into.method(m.Name); old == nil {
				into.Methods = append(into.Methods, m)
			} else if len(m.KL) >= len(old.KL) {
				*old = m
			}
			if m.Name == "BQMF" {
				into.Intervals = t.Intervals
				r.Version, r.Date, r.Machine = from.Version, from.Date, from.Machine
			}
		}
	}
}

// write writes the results and the page.
func (r *peerResults) write() {
	check(report.Write(peerFile, r))
	check(writePeersPage(r))
}

const peerFile = "results/peers.json"

// These are the methods of this package beside BQMF.
var own = []string{"NMF", "QMF", "row means"}

func methods(t peerTable) []string {
	if t.alone {
		return []string{"BQMF"}
	}
	return slices.DeleteFunc(slices.Concat([]string{"BQMF"}, external, own),
		func(m string) bool { return !asked(m) })
}

// asked tells whether -methods has a method or has none.
func asked(method string) bool {
	return *some == "" || slices.Contains(strings.Split(*some, ";"), method)
}

// bestSettings returns the settings that are best for some measure.
func bestSettings(run []outcome) (names []string) {
	if len(run) == 0 {
		return nil
	}
	for _, better := range []func(a, b outcome) int{byKL, byAbsolute, byRank} {
		if s := slices.MinFunc(run, better).Setting; !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return names
}

// pooled returns the intervals over all masks together.
func pooled(runs [][]outcome) (all intervals) {
	for l, level := range levels {
		var in, count [10]float64
		for _, run := range runs {
			for h := range in {
				in[h] += run[0].Tenths[l][h]
				count[h] += run[0].Count[h]
			}
		}
		within, cells := 0.0, 0.0
		for h := range in {
			within += in[h]
			cells += count[h]
			if off := in[h]/count[h] - level; math.Abs(off) > math.Abs(all.Worst[l]) {
				all.Worst[l] = sig(off)
			}
		}
		all.Cells, all.Within[l] = int(cells), sig(within/cells)
	}
	return all
}

// problem draws a mask.
func (t peerTable) problem(draw int) *problem {
	var rows [][]float64
	for _, set := range t.sets {
		folder := *data
		if strings.HasPrefix(set, "sklearn/") {
			folder = "cache"
		}
		x := readIn(folder, set)
		for i := range x.Rows {
			rows = append(rows, x.Row(i))
		}
	}
	d, n := min(len(rows), mostFeatures), min(len(rows[0]), mostSamples)
	x := quantmf.NewMat(d, n)
	for i := range d {
		for j := range n {
			x.Set(i, j, rows[i*len(rows)/d][j*len(rows[0])/n])
		}
	}
	holes := cells.Hide(x, uint64(1000+draw)) // other seeds than those of other measurements
	p := &problem{peerTable: t, draw: draw}
	var whole, mask [][]float64
	for i := range d {
		seen := visible(holes.Row(i))
		mean := stat.Mean(seen, nil)
		slices.Sort(seen)
		if len(slices.Compact(seen)) >= 3 {
			whole, mask, p.means = append(whole, x.Row(i)), append(mask, holes.Row(i)), append(p.means, mean)
		}
	}
	var err error
	p.x, err = quantmf.MatOf(whole...)
	check(err)
	p.mask, err = quantmf.MatOf(mask...)
	check(err)
	return p
}

// outcomes returns the outcomes of a method with all its settings, or with the given ones. They come from the
// cache if they are there.
func (p *problem) outcomes(method string, settings []string) []outcome {
	by := report.Version("bqmf.go", "internal/bqmf")
	if method == "BQMF" {
		by = report.Version()
	}
	if slices.Contains(external, method) {
		script, err := os.ReadFile("peers.py")
		check(err)
		by = fmt.Sprintf("%x", sha256.Sum256(script))
	}
	key := strings.Join(append([]string{by, p.key, fmt.Sprint(p.draw), method}, settings...), "\n")
	out, err := report.Cached("peers/"+p.key+"-", key, false, func() (out []outcome, err error) {
		began := time.Now()
		switch {
		case method == "BQMF":
			out = []outcome{p.bqmf()}
		case slices.Contains(own, method):
			out = p.own(method)
		default:
			out = p.external(method, settings)
		}
		log.Printf("%s, mask %d, %s: %.1f s", p.key, p.draw+1, method, time.Since(began).Seconds())
		return out, nil
	})
	check(err)
	return out
}

func (p *problem) bqmf() outcome {
	began := report.CPUTime()
	m, err := quantmf.FitBQMF(context.Background(), p.mask, 0, quantmf.WithMissingValues(),
		quantmf.WithWorkers(1))
	seconds := (report.CPUTime() - began).Seconds()
	check(err)
	o := p.score(m.Reconstruct(), false)
	o.Absolute = p.score(m.Median(), false).Absolute
	o.Seconds, o.Setting = seconds, "defaults"
	below, upTo, err := m.Probability(p.x)
	check(err)
	total := 0.0
	for place, i := range cells.Order(p.means) {
		tenth := place * 10 / p.x.Rows
		for j := range p.x.Cols {
			if v := p.mask.At(i, j); v == v {
				continue
			}
			o.Count[tenth]++
			for l, level := range levels {
				in := within(below.At(i, j), upTo.At(i, j), level)
				o.Tenths[l][tenth] += in
				if l == 1 {
					total += in
				}
			}
		}
	}
	o.Within80 = total / float64(o.Hidden)
	return o
}

// within returns the share of the probability from below to upTo that lies in a central interval. For a value
// without mass it is 0 or 1.
func within(below, upTo, level float64) float64 {
	lo, hi := (1-level)/2, (1+level)/2
	if !(upTo > below) {
		if below >= lo && below <= hi {
			return 1
		}
		return 0
	}
	return max(min(upTo, hi)-max(below, lo), 0) / (upTo - below)
}

// ownRanks are the ranks of NMF and QMF, and nmfEpochs the epochs after which NMF may stop.
var (
	ownRanks  = []int{3, 6, 12, 24}
	nmfEpochs = []int{4, 6, 9, 14, 20}
)

// own fits NMF or QMF with all ranks.
func (p *problem) own(method string) (out []outcome) {
	if method == "row means" {
		fit := p.x.Clone()
		for i, mean := range p.means {
			for j := range fit.Cols {
				fit.Set(i, j, mean)
			}
		}
		o := p.score(fit, true)
		o.Setting = "means"
		return []outcome{o}
	}
	scored := func(setting string, by quantmf.Method, k int, opts ...quantmf.FitOption) {
		began := report.CPUTime()
		m := fitted(by, p.mask, k, 1, opts...)
		seconds := (report.CPUTime() - began).Seconds()
		o := p.score(m.Reconstruct(), true)
		o.Setting, o.Seconds = setting, seconds
		out = append(out, o)
	}
	for _, k := range ownRanks {
		if k > p.x.Rows {
			break
		}
		if method == "QMF" {
			scored(fmt.Sprintf("k = %d", k), quantmf.MethodQMF, k)
			continue
		}
		for _, epochs := range nmfEpochs {
			scored(fmt.Sprintf("k = %d, %d epochs", k, epochs), quantmf.MethodNMF, k,
				quantmf.WithEpochs(epochs))
		}
	}
	return out
}

// external runs peers.py and scores its predictions.
func (p *problem) external(method string, settings []string) (out []outcome) {
	if p.file == "" {
		var text bytes.Buffer
		for i := range p.mask.Rows {
			for j, v := range p.mask.Row(i) {
				if j > 0 {
					text.WriteByte('\t')
				}
				if v == v {
					text.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
				}
			}
			text.WriteByte('\n')
		}
		p.file = filepath.Join("cache", fmt.Sprintf("%s-%d.tsv", p.key, p.draw))
		check(os.MkdirAll("cache", 0o755))
		check(os.WriteFile(p.file, text.Bytes(), 0o644))
	}
	said := runPython(append([]string{method, p.file}, settings...)...)
	for _, line := range bytes.Split(bytes.TrimSpace(said), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var l struct {
			Setting          string
			Seconds          float64
			Cells, Low, High []float64
		}
		check(json.Unmarshal(line, &l))
		fit, at, in := p.x.Clone(), 0, 0.0
		for i := range fit.Rows {
			for j := range fit.Cols {
				if v := p.mask.At(i, j); v != v {
					fit.Set(i, j, l.Cells[at])
					if l.Low != nil && l.Low[at] <= p.x.At(i, j) && p.x.At(i, j) <= l.High[at] {
						in++
					}
					at++
				}
			}
		}
		if at != len(l.Cells) {
			log.Fatalf("%s: %d values for %d cells", method, len(l.Cells), at)
		}
		o := p.score(fit, true)
		o.Setting, o.Seconds = l.Setting, l.Seconds
		if l.Low != nil {
			o.Within80 = in / float64(at)
		}
		out = append(out, o)
	}
	return out
}

// floorShares are shares of a row's mean. Predictions below such a floor are raised to it, because a count
// where 0 was predicted has an infinite divergence. The floor that is best on the hidden cells counts.
var floorShares = []float64{1e-9, 1e-3, 1e-2, 3e-2, 0.1, 0.2}

// score compares a fit with the hidden cells, with the best of the floors if it is floored.
func (p *problem) score(fit quantmf.Mat, floored bool) outcome {
	o := outcome{KL: math.Inf(1), Within80: -1, Features: p.x.Rows, Samples: p.x.Cols}
	shares := []float64{1e-30}
	if floored {
		shares = floorShares
	}
	var truths, said []float64
	rows := 0.0
	sums := make([]float64, len(shares))
	for i := range p.x.Rows {
		truths, said = truths[:0], said[:0]
		for j, v := range p.x.Row(i) {
			if w := p.mask.At(i, j); w == w {
				continue
			}
			f := fit.At(i, j)
			truths, said = append(truths, v), append(said, f)
			o.Hidden++
			o.Absolute += math.Abs(v - f)
			for s, share := range shares {
				t := max(f, share*p.means[i])
				sums[s] += t - v
				if v > 0 {
					sums[s] += v * math.Log(v/t)
				}
			}
		}
		if r, varies := spearman(truths, said); varies {
			o.Rank += r
			rows++
		}
	}
	for _, s := range sums {
		o.KL = min(o.KL, s/float64(o.Hidden))
	}
	if math.IsInf(o.KL, 0) || p.kind == "signed" {
		o.KL = 0 // not defined
	}
	o.Absolute /= float64(o.Hidden)
	o.Rank /= max(rows, 1)
	return o
}

// leastCells is the number of hidden cells that a row needs to have a rank correlation.
const leastCells = 5

// spearman returns the correlation of ranks, ties averaged. It is 0 where the prediction does not vary, and
// there is none where the truth does not vary or has too few cells.
func spearman(truth, said []float64) (r float64, varies bool) {
	if len(truth) < leastCells || slices.Min(truth) == slices.Max(truth) {
		return 0, false
	}
	return cells.Correlation(cells.Ranks(truth), cells.Ranks(said)), true
}

// runPython calls peers.py. Its messages go to standard error.
func runPython(args ...string) []byte {
	c := exec.Command(*python, append([]string{"peers.py"}, args...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		log.Fatalf("peers.py %s: %v (%s needs what requirements.txt names)", args[0], err, *python)
	}
	return out
}

// visible returns the numbers of a row that are not hidden.
func visible(row []float64) []float64 { return slices.DeleteFunc(slices.Clone(row), math.IsNaN) }
