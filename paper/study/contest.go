package main

// This file compares ways to fit by the cells that were hidden from them.

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/paper/internal/cells"
	"github.com/quantmf/quantmf/paper/internal/drawn"
	"github.com/quantmf/quantmf/paper/internal/report"
	"gonum.org/v1/gonum/stat"
)

// way is a way to fit. It returns what it says of all cells; of several answers the one that predicts the
// hidden cells best counts.
type way struct {
	name string
	fit  func(holes quantmf.Mat, k int, seed uint64) []quantmf.Mat
}

// contest hides a tenth of the cells from all ways under the same masks. For each set it prints the mean
// divergence of these cells by rank; the divergence less that of the first way on the same mask, in per cent
// of the latter, each at its best rank and over all ranks (mean ± standard error over masks); the divergence
// of the visible cells at the best rank; and the processor time as a share of that of the first way.
func contest(sets []string, ranks []int, ways []way) {
	ways = slices.DeleteFunc(ways, func(w way) bool { return !asked(w.name) })
	head := []string{"set", ""}
	for _, k := range ranks {
		head = append(head, fmt.Sprint(k))
	}
	head = append(head, "best rank: less the first, %", "all ranks, %", "visible", "time")
	over, times := make([][]float64, len(ways)), make([]float64, len(ways))
	for _, set := range sets {
		x := read(set)
		// by way, rank, mask
		hidden, visible := make([][][]float64, len(ways)), make([][][]float64, len(ways))
		spent := make([]float64, len(ways))
		for i := range ways {
			hidden[i], visible[i] = make([][]float64, len(ranks)), make([][]float64, len(ranks))
		}
		for draw := range *draws {
			holes := cells.Hide(x, uint64(draw))
			for r, k := range ranks {
				for i, w := range ways {
					began := report.CPUTime()
					fits := w.fit(holes, k, uint64(draw+1))
					spent[i] += (report.CPUTime() - began).Seconds()
					least, seen := math.Inf(1), 0.0
					for _, fit := range fits {
						if h, s := cells.Divergences(x, holes, fit); h < least {
							least, seen = h, s
						}
					}
					hidden[i][r], visible[i][r] = append(hidden[i][r], least), append(visible[i][r], seen)
				}
			}
		}
		rows := [][]string{head}
		first := bestRank(hidden[0])
		for i, w := range ways {
			row := []string{set, w.name}
			var all []float64
			for r := range ranks {
				row = append(row, fmt.Sprintf("%.4g", stat.Mean(hidden[i][r], nil)))
				all = append(all, less(hidden[i][r], hidden[0][r])...)
			}
			at := bestRank(hidden[i])
			rows = append(rows, append(row, shown(less(hidden[i][at], hidden[0][first])), shown(all),
				fmt.Sprintf("%.4g", stat.Mean(visible[i][at], nil)), fmt.Sprintf("%.2f", spent[i]/spent[0])))
			over[i] = append(over[i], all...)
			times[i] += math.Log(spent[i]/spent[0]) / float64(len(sets))
		}
		fmt.Println(report.Table(rows))
	}
	rows := [][]string{{"all sets", "all ranks, %", "time"}}
	for i, w := range ways {
		rows = append(rows, []string{w.name, shown(over[i]), fmt.Sprintf("%.2f", math.Exp(times[i]))})
	}
	fmt.Println(report.Table(rows))
}

// less returns v less base, in per cent of base.
func less(v, base []float64) []float64 {
	d := slices.Clone(v)
	for i := range d {
		d[i] = 100 * (v[i] - base[i]) / base[i]
	}
	return d
}

// shown is a mean and its standard error.
func shown(v []float64) string {
	mean, deviation := stat.MeanStdDev(v, nil)
	return fmt.Sprintf("%+.1f ± %.1f", mean, deviation/math.Sqrt(float64(len(v))))
}

// bestRank returns the index of the rank with the least mean.
func bestRank(byRank [][]float64) int {
	means := make([]float64, len(byRank))
	for r := range means {
		means[r] = stat.Mean(byRank[r], nil)
	}
	return slices.Index(means, slices.Min(means))
}

// fitted fits by a method on one core.
func fitted(method quantmf.Method, holes quantmf.Mat, k int, seed uint64,
	opts ...quantmf.FitOption) quantmf.Model {
	m, err := quantmf.Fit(context.Background(), method, holes, k, append(slices.Clone(opts),
		quantmf.WithMissingValues(), quantmf.WithSeed(seed), quantmf.WithWorkers(1))...)
	check(err)
	return m
}

// fitting is the way of one fit by a method.
func fitting(name string, method quantmf.Method, opts ...quantmf.FitOption) way {
	return way{name, func(holes quantmf.Mat, k int, seed uint64) []quantmf.Mat {
		return []quantmf.Mat{fitted(method, holes, k, seed, opts...).Reconstruct()}
	}}
}

func nmf(name string, opts ...quantmf.FitOption) way {
	return fitting(name, quantmf.MethodNMF, opts...)
}
func qmf(name string, opts ...quantmf.FitOption) way {
	return fitting(name, quantmf.MethodQMF, opts...)
}
func qmfq(name string, opts ...quantmf.FitOption) way {
	return fitting(name, quantmf.MethodQMFQ, opts...)
}

// stopped is NMF by multiplicative updates, stopped at the number of up to 600 updates that predicts the
// hidden cells best.
func stopped(name string) way {
	return way{name, func(holes quantmf.Mat, k int, seed uint64) (fits []quantmf.Mat) {
		opts := []quantmf.FitOption{quantmf.WithUpdates(quantmf.UpdatesMultiplicative)}
		for _, epochs := range []int{15, 10, 15, 20, 40, 50, 100, 150, 200} { // 15, 25, ..., 600 in all
			m := fitted(quantmf.MethodNMF, holes, k, seed, append(opts, quantmf.WithEpochs(epochs))...)
			opts = append(opts[:1], quantmf.WithInit(m.Factors()))
			fits = append(fits, m.Reconstruct())
		}
		return fits
	}}
}

// heldOut compares QMF at its defaults with the NMF that is best for the hidden cells over the masks, of
// those after 5 to 80 epochs of Newton's method, 25 to 400 multiplicative updates and of the defaults: of
// each set and rank the mean of 100 log(QMF / NMF) of the hidden cells ± its standard error. Within two of
// these they are even.
func heldOut() {
	counts, means := tell(func(x quantmf.Mat, k int) (logs []float64) {
		ways := []way{nmf("")}
		for e := range 5 {
			ways = append(ways,
				nmf("", quantmf.WithUpdates(quantmf.UpdatesNewton), quantmf.WithEpochs(5<<e)),
				nmf("", quantmf.WithUpdates(quantmf.UpdatesMultiplicative), quantmf.WithEpochs(25<<e)))
		}
		byWay := make([][]float64, len(ways)) // the logarithm of the hidden divergence by mask
		for draw := range *draws {
			holes, seed := cells.Hide(x, uint64(draw)), uint64(draw+1)
			loss := func(w way) float64 {
				h, _ := cells.Divergences(x, holes, w.fit(holes, k, seed)[0])
				return math.Log(h)
			}
			for i, w := range ways {
				byWay[i] = append(byWay[i], loss(w))
			}
			logs = append(logs, loss(qmf("")))
		}
		best := byWay[bestRank(byWay)]
		for i := range logs {
			logs[i] = 100 * (logs[i] - best[i])
		}
		return logs
	})
	fmt.Printf("%v; geometric mean %+.1f %%\n", counts, 100*(math.Exp(stat.Mean(means, nil)/100)-1))
}

// tell prints of each set and rank the mean of some logarithms, and counts whether it is below 0, or above,
// by more than two standard errors. It returns the means, too.
func tell(of func(x quantmf.Mat, k int) []float64) (counts map[string]int, means []float64) {
	counts = map[string]int{}
	for _, set := range sets {
		x := read(set)
		for _, k := range []int{3, 6, 12} {
			logs := of(x, k)
			mean, deviation := stat.MeanStdDev(logs, nil)
			is := "even"
			switch far := 2 * deviation / math.Sqrt(float64(len(logs))); {
			case mean > far:
				is = "worse"
			case mean < -far:
				is = "better"
			}
			counts[is]++
			means = append(means, mean)
			fmt.Println(set, k, shown(logs), is)
		}
	}
	return counts, means
}

// filled compares FitNMF with scikit-learn's NMF of the table whose hidden cells are filled again and again
// with what it says of them, as heldOut compares QMF with NMF; each has the floor that is best for it.
func filled() {
	counts, means := tell(func(x quantmf.Mat, k int) (logs []float64) {
		for draw := range *draws {
			p := &problem{peerTable: peerTable{key: "filled"}, draw: draw, x: x,
				mask: cells.Hide(x, uint64(draw))}
			for i := range x.Rows {
				p.means = append(p.means, stat.Mean(visible(p.mask.Row(i)), nil))
			}
			own := p.score(fitted(quantmf.MethodNMF, p.mask, k, uint64(draw+1)).Reconstruct(), true)
			other := p.external("filled", []string{strconv.Itoa(k)})[0]
			logs = append(logs, 100*math.Log(own.KL/other.KL))
		}
		return logs
	})
	near := 0
	for _, mean := range means {
		if mean <= 1 {
			near++
		}
	}
	fmt.Printf("%v; no worse than 1 %%: %d of %d\n", counts, near, len(means))
}

// choice prints how many times the processor time of a FitQMF that is told start, shrinkage and line one by
// default takes: 500 × 300, k = 10, the least time of twelve rounds, one worker.
func choice() {
	x := drawn.New(500, 300, 10, 1, 0.1, 1).X
	least := func(opts ...quantmf.FitOption) (seconds float64, m *quantmf.QMF) {
		seconds = math.Inf(1)
		for range 12 {
			began := report.CPUTime()
			var err error
			m, err = quantmf.FitQMF(context.Background(), x, 10, append(opts, quantmf.WithWorkers(1))...)
			check(err)
			seconds = min(seconds, (report.CPUTime() - began).Seconds())
		}
		return seconds, m
	}
	open, m := least()
	for _, start := range []quantmf.Start{quantmf.StartScores, quantmf.StartNMF} {
		told, _ := least(quantmf.WithStart(start), quantmf.WithShrinkage(m.Shrinkage),
			quantmf.WithLine(m.Line))
		fmt.Printf("default %.3f s, told %v, λ = %v, τ = %v %.3f s: %.2f (chosen: %v)\n",
			open, start, m.Shrinkage, m.Line, told, open/told, m.Start)
	}
}

// updates compares Newton's method after some epochs with multiplicative updates.
func updates() {
	ways := []way{stopped("multiplicative, best"), nmf("multiplicative, 200",
		quantmf.WithUpdates(quantmf.UpdatesMultiplicative), quantmf.WithEpochs(200))}
	for _, epochs := range []int{10, 20, 30} {
		ways = append(ways, nmf(fmt.Sprintf("Newton, %d", epochs), quantmf.WithUpdates(quantmf.UpdatesNewton),
			quantmf.WithEpochs(epochs)))
	}
	contest(sets, []int{3, 8, 12}, ways)
}

// batches compares batches of FitQMF, by their numbers of rows.
func batches() {
	var ways []way
	for _, rows := range []int{32, 64, 128, 1 << 30} {
		ways = append(ways, qmf(fmt.Sprint(rows), quantmf.WithBatch(rows)))
	}
	if flag.NArg() < 2 {
		sets = append([]string{assays}, sets...)
	}
	contest(sets, []int{2, 5, 8}, ways)
}

// projections compares projections and numbers of epochs of FitQMFQ on the sets (at most 300 features of
// each) and on the paper's toy problem.
func projections() {
	if *rows == 0 {
		*rows = 300
	}
	if flag.NArg() < 2 {
		sets = append([]string{toy}, sets...)
	}
	free := quantmf.WithShrinkage(0)
	kl := func(n int) quantmf.FitOption { return quantmf.WithProjection(quantmf.KLUpdates(n)) }
	contest(sets, []int{8, 10},
		[]way{qmfq("defaults"), qmfq("KLUpdates(2)", kl(2)), qmfq("KLUpdates(20)", kl(20)),
			qmfq("no shrinkage", free), qmfq("no shrinkage, KLUpdates(20)", free, kl(20)),
			qmfq("30 epochs", quantmf.WithEpochs(30)),
			qmfq("validation share 0.1", quantmf.WithValidation(0.1))})
}

// toy names the paper's synthetic problem, and assays the table in mixed units of the README, in testdata.
const toy, assays = "toy", "laml-assays"

// read reads a set, of whose features it takes at most *rows, at even distances.
func read(set string) quantmf.Mat {
	var x quantmf.Mat
	switch set {
	case toy:
		return drawn.New(160, 80, 8, 1, 0, 1).X
	case assays:
		x = readIn("../../testdata", set)
	default:
		x = readIn(*data, set)
	}
	if *rows == 0 || x.Rows <= *rows {
		return x
	}
	y := quantmf.NewMat(*rows, x.Cols)
	for i := range y.Rows {
		copy(y.Row(i), x.Row(i*x.Rows/y.Rows))
	}
	return y
}
