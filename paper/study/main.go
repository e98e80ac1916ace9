// Command study makes the measurements by which the defaults of quantmf were chosen: how well
// fits predict cells that they have not seen, and how well their components agree with
// known classes. docs/measurements/defaults.md, nmf.md, qmfq.md and bqmf.md have its tables.
//
//	go run . [-data FOLDER] heldout|labels|losses|qmfq|batches|updates [SET ...]
//	go run . -data FOLDER [-python PYTHON] peers [TABLE ...]
//	go run . peerspage
//
// Without -data it reads testdata/laml-exp.tsv.gz, the one matrix of this repository. labels needs another
// set. FOLDER has the sets in the form that the experiments in the folder above read; go run . data there
// says where they are published. Named sets are read in place of the default ones.
//
// peers writes results/peers.json and, from that file alone, the tables and the picture of
// docs/measurements/bqmf.md. For named tables it prints the results or, with -merge, adds them to
// results/peers.json. Finished fits are kept in cache/. peerspage writes the tables and the picture again.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/cells"
	matrices "github.com/quantmf/quantmf/paper/internal/data"
)

var (
	data = flag.String("data", "",
		"folder of the data; without it testdata/laml-exp.tsv.gz of this repository is read")
	rows  = flag.Int("rows", 0, "the largest number of features, taken at even distances; 0: all")
	draws = flag.Int("draws", 3, "masks (heldout, qmfq, updates, peers) or seeds (labels)")

	slowDraws = flag.Int("slow", 1, "peers: masks of the wide tables for slow methods")
	some      = flag.String("methods", "",
		"only these methods of the named tables (peers), or only these settings (qmfq), separated by "+
			"semicolons")
	merge = flag.Bool("merge", false,
		"peers: add the results of the named tables to results/peers.json, and write the page")
	python = flag.String("python", "python3", "peers: a Python with the packages of requirements.txt")
)

// sets are matrices of several kinds: logarithms of counts, shares, counts.
var sets = []string{"tcga-laml/exp", "tcga-laml/mirna", "tcga-kirc/mirna", "tcga-cesc/methy",
	"sotu-wordcounts/counts", "pbmc3k-small/counts"}

// small is a set with few samples. losses prints its losses, too.
var small = []string{"golub-leukemia/exp"}

var ranks = []int{2, 3, 5, 8, 12}

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *data == "" {
		*data, sets, small = "../../testdata", []string{"laml-exp"}, nil
	}
	if flag.NArg() > 1 {
		sets, small = flag.Args()[1:], nil
	}
	switch flag.Arg(0) {
	case "heldout":
		heldOut()
	case "labels":
		labels()
	case "losses":
		losses()
	case "qmfq":
		qmfq()
	case "batches":
		batches()
	case "updates":
		updates()
	case "peers":
		peers()
	case "peerspage":
		r, err := readPeers()
		check(err)
		writePeersPage(r)
	default:
		flag.Usage()
		os.Exit(2)
	}
}

func readIn(folder, set string) quantmf.Mat {
	t, err := matrices.Read(filepath.Join(folder, set+".tsv.gz"))
	check(err)
	return t.X
}

func read(set string) quantmf.Mat {
	x := readIn(*data, set)
	if *rows > 0 && x.Rows > *rows {
		some := make([][]float64, *rows)
		for i := range some {
			some[i] = x.Row(i * x.Rows / len(some))
		}
		y, err := quantmf.MatOf(some...)
		check(err)
		return y
	}
	return x
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// heldOut hides a tenth of the cells from every fit, its start included. It prints the mean divergence of
// those cells and of the visible ones for each rank. NMF is stopped at the epoch of 600 that predicts the
// hidden cells themselves best; QMF has no such help and ends at its last epoch. With a validation share QMF
// is taken at the epoch that is best on a further tenth. Masks differ more than models do,
// so QMF is also compared with NMF mask by mask, each at its best rank, by the mean
// of the differences and its standard error.
func heldOut() {
	ctx := context.Background()
	fmt.Println("| set | model | " + strings.ReplaceAll(strings.Trim(fmt.Sprint(ranks), "[]"), " ", " | ") +
		" | best | visible there | less NMF |")
	fmt.Println("|---|---|" + strings.Repeat("---|", len(ranks)+3))
	for _, set := range sets {
		x := read(set)
		names := []string{"row means", "NMF at its best", "QMF", "QMF, validation"}
		var hidden, seen [4][][]float64
		for model := range names {
			hidden[model], seen[model] = make([][]float64, len(ranks)), make([][]float64, len(ranks))
		}
		for draw := range *draws {
			holes := cells.Hide(x, uint64(draw))
			add := func(model, r int, fit quantmf.Mat) {
				h, s := split(x, holes, fit)
				hidden[model][r], seen[model][r] = append(hidden[model][r], h), append(seen[model][r], s)
			}
			for r, k := range ranks {
				add(0, r, rowMeans(holes))
				best, at := quantmf.Mat{}, math.Inf(1)
				opts := []quantmf.FitOption{quantmf.WithMissingValues(), quantmf.WithSeed(uint64(draw + 1))}
				var from []quantmf.FitOption
				// 15, 25, ..., 600 in all
				for _, epochs := range []int{15, 10, 15, 20, 40, 50, 100, 150, 200} {
					m, err := quantmf.FitNMF(ctx, holes, k,
						append(append(from, opts...), quantmf.WithUpdates(quantmf.UpdatesMultiplicative),
							quantmf.WithEpochs(epochs))...)
					check(err)
					from = []quantmf.FitOption{quantmf.WithInit(m.U, m.V)}
					fit := m.Reconstruct()
					if h, _ := split(x, holes, fit); h < at {
						best, at = fit, h
					}
				}
				add(1, r, best)
				q, err := quantmf.FitQMF(ctx, holes, k, opts...)
				check(err)
				add(2, r, q.Reconstruct())
				q, err = quantmf.FitQMF(ctx, holes, k, append(opts, quantmf.WithValidation(0.1))...)
				check(err)
				add(3, r, q.Reconstruct())
			}
		}
		var best [4]int
		for model, name := range names {
			line := "| " + set + " | " + name + " |"
			for r := range ranks {
				line += fmt.Sprintf(" %.4g ± %.2g |", mean(hidden[model][r]), deviation(hidden[model][r]))
				if mean(hidden[model][r]) < mean(hidden[model][best[model]]) {
					best[model] = r
				}
			}
			at := best[model]
			less := "|"
			if model >= 2 {
				d := slices.Clone(hidden[model][at])
				for draw := range d {
					d[draw] -= hidden[1][best[1]][draw]
				}
				less = fmt.Sprintf(" %+.2g ± %.1g |", mean(d), deviation(d)/math.Sqrt(float64(len(d))))
			}
			fmt.Printf("%s %.4g at %d | %.4g |%s\n", line, mean(hidden[model][at]), ranks[at],
				mean(seen[model][at]), less)
		}
	}
}

// split returns the mean divergences of hidden and of visible cells.
func split(x, holes, fit quantmf.Mat) (hidden, seen float64) {
	return cells.Divergences(x, holes, fit, 1e-30)
}

func rowMeans(x quantmf.Mat) quantmf.Mat {
	fit := quantmf.NewMat(x.Rows, x.Cols)
	for i := range x.Rows {
		sum, n := 0.0, 0.0
		for _, v := range x.Row(i) {
			if v == v {
				sum += v
				n++
			}
		}
		for j := range x.Cols {
			fit.Set(i, j, sum/n)
		}
	}
	return fit
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

func deviation(v []float64) float64 {
	m, s := mean(v), 0.0
	for _, x := range v {
		s += (x - m) * (x - m)
	}
	return math.Sqrt(s / float64(max(len(v)-1, 1)))
}

// labels prints the adjusted Rand index of golub's three classes with k-means on
// the sample profiles of three components, over seeds.
func labels() {
	x := read("golub-leukemia/exp")
	class := classes()
	ctx := context.Background()
	fmt.Printf("| golub, %d seeds | mean | deviation | lowest |\n|---|---|---|---|\n", *draws)
	for _, c := range []struct {
		name string
		fit  func(seed uint64) quantmf.Mat
	}{
		{"NMF", func(s uint64) quantmf.Mat {
			m, err := quantmf.FitNMF(ctx, x, 3, quantmf.WithSeed(s),
				quantmf.WithUpdates(quantmf.UpdatesMultiplicative))
			check(err)
			return m.V
		}},
		{"QMF", func(s uint64) quantmf.Mat {
			m, err := quantmf.FitQMF(ctx, x, 3, quantmf.WithSeed(s))
			check(err)
			return m.V
		}},
		{"QMF, StartScores", func(s uint64) quantmf.Mat {
			m, err := quantmf.FitQMF(ctx, x, 3, quantmf.WithSeed(s), quantmf.WithStart(quantmf.StartScores))
			check(err)
			return m.V
		}},
		{"QMF, StartNMF", func(s uint64) quantmf.Mat {
			m, err := quantmf.FitQMF(ctx, x, 3, quantmf.WithSeed(s), quantmf.WithStart(quantmf.StartNMF))
			check(err)
			return m.V
		}},
	} {
		var got []float64
		for s := range *draws {
			got = append(got, agreement(cluster(profiles(c.fit(uint64(s+1))), 3), class))
		}
		fmt.Printf("| %s | %.3f | %.3f | %.3f |\n", c.name, mean(got), deviation(got), slices.Min(got))
	}
	bayesian(x, class)
}

// bayesian does the same for BQMF, in two ways: with its coordinates V, which give each feature the same
// weight, and with the fitted values, whose square roots give a feature the weight that it has under KL.
func bayesian(x quantmf.Mat, class []int) {
	m, err := quantmf.FitBQMF(context.Background(), x, 0)
	check(err)
	fit := m.Reconstruct()
	parts, err := quantmf.FitNMF(context.Background(), fit, 3,
		quantmf.WithUpdates(quantmf.UpdatesMultiplicative))
	check(err)
	three, err := quantmf.FitBQMF(context.Background(), x, 3)
	check(err)
	columns := func(x quantmf.Mat, of func(i int, v float64) float64) [][]float64 {
		p := make([][]float64, x.Cols)
		for i := range x.Rows {
			for j, v := range x.Row(i) {
				p[j] = append(p[j], of(i, v))
			}
		}
		return p
	}
	root := func(_ int, v float64) float64 { return math.Sqrt(v) }
	for _, c := range []struct {
		name string
		p    [][]float64
	}{
		{"V of BQMF of rank 3", columns(three.V,
			func(c int, v float64) float64 { return v * math.Sqrt(three.Relevance[c]) })},
		{"V of BQMF", columns(m.V, func(c int, v float64) float64 { return v * math.Sqrt(m.Relevance[c]) })},
		{"roots of the cells themselves", columns(x, root)},
		{"roots of what BQMF says of the cells", columns(fit, root)},
		{"NMF of what BQMF says of the cells", profiles(parts.V)},
	} {
		fmt.Printf("| %s | %.3f |\n", c.name, agreement(cluster(c.p, 3), class))
	}
}

// classes are those of the patients of golub-leukemia.
func classes() (class []int) {
	text, err := os.ReadFile(filepath.Join(*data, "golub-leukemia/labels.tsv"))
	check(err)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		switch f := strings.Split(line, "\t"); {
		case f[1] == "AML":
			class = append(class, 0)
		case strings.HasPrefix(f[2], "T"):
			class = append(class, 1)
		default:
			class = append(class, 2)
		}
	}
	return class
}

// profiles returns the columns of v. Every component is first brought to mean 1, then every column
// to sum 1.
func profiles(v quantmf.Mat) [][]float64 {
	p := make([][]float64, v.Cols)
	for j := range p {
		p[j] = make([]float64, v.Rows)
		sum := 0.0
		for c := range v.Rows {
			p[j][c] = v.At(c, j) / mean(v.Row(c))
			sum += p[j][c]
		}
		for c := range p[j] {
			p[j][c] /= sum
		}
	}
	return p
}

// cluster is k-means, the best of 50 starts by k-means++.
func cluster(p [][]float64, k int) []int {
	r := rand.New(rand.NewPCG(1, 1))
	distance := func(a, b []float64) (s float64) {
		for i := range a {
			s += (a[i] - b[i]) * (a[i] - b[i])
		}
		return s
	}
	lowest := math.Inf(1)
	var best []int
	for range 50 {
		centers := [][]float64{p[r.IntN(len(p))]}
		for len(centers) < k {
			weight, total := make([]float64, len(p)), 0.0
			for i, x := range p {
				w := math.Inf(1)
				for _, c := range centers {
					w = min(w, distance(x, c))
				}
				weight[i] = w
				total += w
			}
			at, pick := r.Float64()*total, len(p)-1
			for i, w := range weight {
				if at -= w; at <= 0 {
					pick = i
					break
				}
			}
			centers = append(centers, p[pick])
		}
		in, cost := make([]int, len(p)), 0.0
		for range 100 {
			cost = 0
			for i, x := range p {
				d := math.Inf(1)
				for c, y := range centers {
					if e := distance(x, y); e < d {
						d, in[i] = e, c
					}
				}
				cost += d
			}
			for c := range centers {
				sum, n := make([]float64, len(p[0])), 0.0
				for i, x := range p {
					if in[i] == c {
						n++
						for t := range x {
							sum[t] += x[t]
						}
					}
				}
				if n > 0 {
					for t := range sum {
						sum[t] /= n
					}
					centers[c] = sum
				}
			}
		}
		if cost < lowest {
			lowest, best = cost, slices.Clone(in)
		}
	}
	return best
}

// agreement returns the adjusted Rand index (Hubert and Arabie 1985).
func agreement(a, b []int) float64 {
	pairs := func(n float64) float64 { return n * (n - 1) / 2 }
	both, inA, inB := map[[2]int]float64{}, map[int]float64{}, map[int]float64{}
	for i := range a {
		both[[2]int{a[i], b[i]}]++
		inA[a[i]]++
		inB[b[i]]++
	}
	s, sa, sb := 0.0, 0.0, 0.0
	for _, n := range both {
		s += pairs(n)
	}
	for _, n := range inA {
		sa += pairs(n)
	}
	for _, n := range inB {
		sb += pairs(n)
	}
	expected := sa * sb / pairs(float64(len(a)))
	return (s - expected) / ((sa+sb)/2 - expected)
}

// losses prints the training losses of the defaults and of an NMF after 1000 updates.
func losses() {
	ctx := context.Background()
	fmt.Println("| set, k = 10 | NMF, 1000 updates | QMF, before the first epoch | after 4 | shrinkage 0, " +
		"after 20 |")
	fmt.Println("|---|---|---|---|---|")
	for _, set := range append(sets, small...) {
		x := read(set)
		n, err := quantmf.FitNMF(ctx, x, 10, quantmf.WithUpdates(quantmf.UpdatesMultiplicative),
			quantmf.WithEpochs(1000))
		check(err)
		q, err := quantmf.FitQMF(ctx, x, 10)
		check(err)
		l, err := quantmf.FitQMF(ctx, x, 10, quantmf.WithShrinkage(0), quantmf.WithEpochs(20))
		check(err)
		fmt.Printf("| %s | %.4g | %.4g | %.4g | %.4g |\n", set, n.History[1000], q.History[0],
			q.History[len(q.History)-1], l.History[20])
	}
}
