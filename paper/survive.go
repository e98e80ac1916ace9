// This file has the experiments on survival (paper §4, Genomics): Cox's model of survival on ten factors,
// first on the factors that the authors published, then on ours. Ours are made with many seeds, and the
// counts are compared with those for survival times that are permuted at random.
package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/paper/internal/cells"
	"github.com/quantmf/quantmf/paper/internal/data"
	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/gonum/stat"
)

type survivalResult struct {
	Authors []published
	Seeds   int
	Shuffle int // the number of random permutations of survival for each seed
	Ours    []associated
}

// published holds the counts of factors with p < 0.05 on the authors' factors of one cancer.
type published struct {
	Cancer     string
	Merged     map[string]int       // by the rule of the authors' notebook
	Bonferroni map[string][]int     // in the joint model, p-values times ten, for each run
	P          map[string][]float64 // the merged p-values
}

// associated holds the counts of our fits to one set, one value a seed.
type associated struct {
	Set   string
	Joint map[string][]int     // in the joint model, without correction
	LR    map[string][]float64 // p of the likelihood ratio: all ten factors against none
	// mean and 95th percentile of Joint over random permutations of survival
	Chance, ChanceHigh map[string]float64
	ChanceLR           map[string]float64 // the share of these permutations with LR < 0.05
}

var survivalModels = []string{"NMF", "QMF"}

// cancers are those whose factors are published, with the statements of the paper's text:
// whether QMF has more factors associated with survival than NMF (1), as many (0) or
// fewer (-1), and how many QMF has, or -1 where the text does not say.
var cancers = []struct {
	name      string
	more, qmf int
}{{"aml", 0, -1}, {"breast", 1, 2}, {"colon", 0, 0}, {"gbm", 0, -1}, {"kidney", 0, -1}, {"liver", -1, -1}}

func survive(s *session) (any, error) {
	r := &survivalResult{Seeds: pick(s, 20, 8), Shuffle: pick(s, 50, 25)}
	for _, c := range cancers {
		p, err := authorsFactors(s.data, c.name)
		if err != nil {
			return nil, err
		}
		r.Authors = append(r.Authors, *p)
		s.say("%s: %d and %d factors on the authors' factors", c.name, p.Merged["NMF"], p.Merged["QMF"])
	}
	for _, set := range cancerSets {
		a, err := ourFactors(s, set, r.Seeds, r.Shuffle)
		if err != nil {
			return nil, err
		}
		r.Ours = append(r.Ours, *a)
	}
	return r, nil
}

// below counts p-values that, times a correction, are under 0.05. By Bonferroni's, which is their number, the
// chance of any false finding is at most 0.05.
func below(p []float64, times float64) (n int) {
	for _, v := range p {
		if v*times < 0.05 {
			n++
		}
	}
	return n
}

func columns(v quantmf.Mat) [][]float64 {
	x := make([][]float64, v.Cols)
	for j := range x {
		for c := range v.Rows {
			x[j] = append(x[j], v.At(c, j))
		}
	}
	return x
}

// authorsFactors follows the authors' notebook: it fits one joint model of all ten factors for each
// run, sorts the p-values of both runs together, and averages neighbours.
func authorsFactors(folder data.Folder, cancer string) (*published, error) {
	time, event, err := folder.Survival("tcga-qmf-authors/" + cancer)
	if err != nil {
		return nil, err
	}
	p := &published{Cancer: cancer, Merged: map[string]int{}, Bonferroni: map[string][]int{},
		P: map[string][]float64{}}
	for _, model := range survivalModels {
		var pooled []float64
		for _, run := range []string{"1", "2"} {
			v, err := folder.Table("tcga-qmf-authors/" + cancer + "/" + strings.ToLower(model) + "_init" +
				run)
			if err != nil {
				return nil, err
			}
			m, err := account.FitCox(time, event, columns(v))
			if err != nil {
				return nil, err
			}
			pooled = append(pooled, m.P...)
			p.Bonferroni[model] = append(p.Bonferroni[model], below(m.P, float64(len(m.P))))
		}
		slices.Sort(pooled)
		for i := 0; i < len(pooled); i += 2 {
			p.P[model] = append(p.P[model], report.Round((pooled[i]+pooled[i+1])/2, 6))
		}
		p.Merged[model] = below(p.P[model], 1)
	}
	return p, nil
}

// deal permutes survival at random.
func deal(r *rand.Rand, time []float64, event []bool) {
	r.Shuffle(len(time), func(a, b int) {
		time[a], time[b] = time[b], time[a]
		event[a], event[b] = event[b], event[a]
	})
}

// ourFactors fits both models to a set with several seeds, and counts factors with p < 0.05.
func ourFactors(s *session, set cancerSet, seeds, shuffle int) (*associated, error) {
	x, err := set.matrix(s.data)
	if err != nil {
		return nil, err
	}
	time, event, err := s.data.Survival(set.folder)
	if err != nil {
		return nil, err
	}
	a := &associated{Set: set.folder, Joint: map[string][]int{}, LR: map[string][]float64{},
		Chance: map[string]float64{}, ChanceHigh: map[string]float64{}, ChanceLR: map[string]float64{}}
	type counts struct {
		P        []float64
		LR       float64
		Random   []float64 // factors with p < 0.05, for each random permutation
		RandomLR []float64
	}
	for _, model := range survivalModels {
		key := fmt.Sprintf("%s %s of %d deals, seed", set.folder, model, shuffle)
		all, err := repeat(s, key, seeds, func(seed int) (c counts, err error) {
			v, err := factorsOf(s, model, x, 10, uint64(seed))
			if err != nil {
				return c, err
			}
			at := columns(v)
			m, err := account.FitCox(time, event, at)
			if err != nil {
				return c, err
			}
			c.P, c.LR = report.RoundAll(m.P, 5), report.Round(m.LR, 5)
			r := rand.New(rand.NewPCG(uint64(seed-1), 3))
			times, events := slices.Clone(time), slices.Clone(event)
			for range shuffle {
				deal(r, times, events)
				n, err := account.FitCox(times, events, at)
				if err != nil {
					return c, err
				}
				c.Random = append(c.Random, float64(below(n.P, 1)))
				c.RandomLR = append(c.RandomLR, report.Round(n.LR, 3))
			}
			return c, nil
		})
		if err != nil {
			return nil, err
		}
		var random, randomLR []float64
		for _, c := range all {
			a.Joint[model] = append(a.Joint[model], below(c.P, 1))
			a.LR[model] = append(a.LR[model], c.LR)
			random, randomLR = append(random, c.Random...), append(randomLR, c.RandomLR...)
		}
		slices.Sort(random)
		a.Chance[model] = report.Round(stat.Mean(random, nil), 3)
		a.ChanceHigh[model] = stat.Quantile(0.95, stat.Empirical, random, nil)
		a.ChanceLR[model] = report.Round(float64(below(randomLR, 1))/float64(len(random)), 3)
	}
	return a, nil
}

// factorsOf fits a model of the given rank by its defaults, an NMF by multiplicative updates.
func factorsOf(s *session, model string, x quantmf.Mat, k int, seed uint64) (quantmf.Mat, error) {
	opts := []quantmf.FitOption{quantmf.WithSeed(seed), quantmf.WithWorkers(1)}
	method := quantmf.MethodQMF
	if model == "NMF" {
		method, opts = quantmf.MethodNMF, append(opts, updates...)
	}
	m, err := quantmf.Fit(s.ctx, method, x, k, opts...)
	if err != nil {
		return quantmf.Mat{}, err
	}
	_, v := m.Factors()
	return v, nil
}

func average(n []int) float64 {
	sum := 0
	for _, v := range n {
		sum += v
	}
	return float64(sum) / float64(len(n))
}

func survivalPage(w *writer, res survivalResult) error {
	agree, remain := 0, 0
	rows := [][]string{{"authors' factors", "the text, QMF's against NMF's", "its rule: NMF, QMF"}}
	for i, p := range res.Authors {
		c := cancers[i]
		says := []string{"fewer", "as many", "more"}[c.more+1]
		if c.qmf >= 0 {
			says = fmt.Sprintf("%d, %s", c.qmf, says)
		}
		if cmp.Compare(p.Merged["QMF"], p.Merged["NMF"]) == c.more &&
			(c.qmf < 0 || c.qmf == p.Merged["QMF"]) {
			agree++
		}
		for _, model := range survivalModels {
			for _, n := range p.Bonferroni[model] {
				remain += n
			}
		}
		rows = append(rows, []string{p.Cancer, says,
			fmt.Sprintf("%d, %d", p.Merged["NMF"], p.Merged["QMF"])})
	}
	w.table("authors", rows)
	above := 0
	rows = [][]string{{"ours, mean of seeds", "NMF, QMF", "chance of QMF: mean, 95th",
		"all ten: NMF, QMF, chance"}}
	for _, a := range res.Ours {
		share := func(model string) float64 {
			return float64(below(a.LR[model], 1)) / float64(len(a.LR[model]))
		}
		rows = append(rows, []string{strings.TrimPrefix(a.Set, "tcga-"),
			fmt.Sprintf("%.1f, %.1f", average(a.Joint["NMF"]), average(a.Joint["QMF"])),
			fmt.Sprintf("%.2f, %g", a.Chance["QMF"], a.ChanceHigh["QMF"]),
			fmt.Sprintf("%.2f, %.2f, %.2f", share("NMF"), share("QMF"), a.ChanceLR["QMF"])})
		if average(a.Joint["QMF"]) > a.ChanceHigh["QMF"] {
			above++
		}
	}
	w.table("survival", rows)
	w.claim("QMF has more factors associated with survival in 4 of 9 cancers, fewer in one",
		"on the authors' factors so in %d of %d at hand; corrected, %d of %d factors remain; on ours above "+
			"chance in "+
			"%d of %d", agree, len(res.Authors), remain,
		len(res.Authors)*40, above, len(res.Ours))
	return nil
}

// cancerSet is a matrix of one cancer: blocks of features, stacked.
type cancerSet struct {
	folder string
	blocks []string
}

// cancerSets have no negative values. Expression and miRNA are logarithms already. The methylation
// of tcga-brca is a square root already; other methylation is brought to log2(1+x), as the authors do.
var cancerSets = []cancerSet{
	{"tcga-laml", []string{"exp", "mirna", "methy"}},
	{"tcga-brca", []string{"mirna", "methy"}},
	{"tcga-cesc", []string{"exp", "mirna", "methy"}},
	{"tcga-coadread", []string{"exp", "mirna"}},
	{"tcga-kirc", []string{"mirna"}},
	{"tcga-ov", []string{"mirna"}},
}

// matrix stacks the blocks. Of each it takes at most the 6,000 features with the largest deviations.
func (c cancerSet) matrix(folder data.Folder) (quantmf.Mat, error) {
	var rows [][]float64
	for _, block := range c.blocks {
		x, err := folder.Table(c.folder + "/" + block)
		if err != nil {
			return quantmf.Mat{}, err
		}
		if block == "methy" && c.folder != "tcga-brca" {
			for i, v := range x.Data {
				x.Data[i] = math.Log2(1 + v)
			}
		}
		rows = append(rows, widest(x, 6000)...)
	}
	return quantmf.MatOf(rows...)
}

// widest returns the rows of largest standard deviation, in their order in x.
func widest(x quantmf.Mat, most int) [][]float64 {
	narrow := make([]float64, x.Rows)
	for i := range narrow {
		narrow[i] = -stat.Variance(x.Row(i), nil)
	}
	order := cells.Order(narrow)
	order = order[:min(most, len(order))]
	slices.Sort(order)
	var rows [][]float64
	for _, i := range order {
		rows = append(rows, x.Row(i))
	}
	return rows
}
