// Command anomalies finds hosts whose metrics do not go together, where each metric alone looks as it does
// elsewhere in the fleet: a model of yesterday's metrics scores today's hosts.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/quantmf/quantmf"
)

var metrics = []string{"requests", "cpu", "latency", "disk", "network", "memory", "threads", "temperature"}

// fleet returns the metrics of a day, metrics in rows. Two things drive them, how busy a host is and how
// large; some metrics saturate and others explode. One in fifty values was not reported.
func fleet(hosts int, src *rand.Rand) quantmf.Mat {
	x := quantmf.NewMat(len(metrics), hosts)
	for j := range hosts {
		load, size := src.ExpFloat64()/2, 1+3*src.Float64()
		requests := 100 * size * (0.1 + load)
		for i, v := range []float64{requests, 100 * (1 - math.Exp(-2*load-0.1)),
			5 * math.Exp(1.5*min(load, 2)),
			math.Pow(requests, 0.7), 0.3 * requests, 4 + 16*size, 50 * size * (1 + load),
			35 + 40*(1-math.Exp(-2*load))} {
			if x.Set(i, j, v*math.Exp(0.04*src.NormFloat64())); src.IntN(50) == 0 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	return x
}

// odd is a host and the metric that has the largest share of its score.
type odd struct {
	host, metric int
	score, share float64
}

// oddest returns the hosts of x by falling scores.
func oddest(ctx context.Context, m quantmf.Model, x quantmf.Mat) ([]odd, error) {
	scores, err := m.Scores(ctx, x)
	if err != nil {
		return nil, err
	}
	expected, err := m.Predict(ctx, x)
	if err != nil {
		return nil, err
	}
	all := make([]odd, len(scores))
	for j, score := range scores {
		all[j] = odd{host: j, score: score}
		sum := 0.0
		for i := range metrics {
			if v := x.At(i, j); v == v { // the score is the mean of these divergences
				part := m.Divergence().At(v, expected.At(i, j))
				if sum += part; part > all[j].share {
					all[j].share, all[j].metric = part, i
				}
			}
		}
		all[j].share /= sum
	}
	slices.SortFunc(all, func(a, b odd) int { return cmp.Compare(b.score, a.score) })
	return all, nil
}

// faults are what happened to some hosts today: a metric that another host has, but not with these others.
var faults = map[int]string{17: "cpu", 40: "latency", 77: "disk", 123: "memory", 200: "network",
	251: "threads"}

// run returns the hosts by their oddness, and by the largest z-score of a metric alone.
func run(w io.Writer) (byModel []odd, byMetric []int, err error) {
	src, ctx := rand.New(rand.NewPCG(1, 1)), context.Background()
	// In standard deviations of its metric, and of its logarithm as these are amounts, no metric weighs more.
	yesterday, today := logs(fleet(400, src)), logs(fleet(300, src))
	for host, metric := range faults {
		i := slices.Index(metrics, metric)
		own, all := today.At(i, host), slices.DeleteFunc(slices.Clone(today.Row(i)), math.IsNaN)
		slices.Sort(all)
		other := all[len(all)/10]
		if !(own > all[len(all)/2]) {
			other = all[len(all)*9/10]
		}
		today.Set(i, host, other)
	}
	deviations(today, yesterday)
	deviations(yesterday, yesterday)
	m, err := quantmf.FitBQMF(ctx, yesterday, 0, quantmf.WithMissingValues(),
		quantmf.WithLoss(quantmf.Frobenius))
	if err != nil {
		return nil, nil, err
	}
	if byModel, err = oddest(ctx, m, today); err != nil {
		return nil, nil, err
	}
	for _, o := range byModel[:8] {
		fmt.Fprintf(w, "host %3d: score %6.3f, %2.0f %% of it %s\n", o.host, o.score, 100*o.share,
			metrics[o.metric])
	}
	far := func(j int) (z float64) {
		for i := range metrics {
			if v := math.Abs(today.At(i, j)); v > z {
				z = v
			}
		}
		return z
	}
	for j := range today.Cols {
		byMetric = append(byMetric, j)
	}
	slices.SortFunc(byMetric, func(a, b int) int { return cmp.Compare(far(b), far(a)) })
	return byModel, byMetric, nil
}

// logs takes the logarithm of every value, in place.
func logs(x quantmf.Mat) quantmf.Mat {
	for i, v := range x.Data {
		x.Data[i] = math.Log(v)
	}
	return x
}

// deviations brings the rows of x to the standard deviations of those of the other matrix, about its means.
func deviations(x, of quantmf.Mat) {
	for i := range x.Rows {
		n, sum, square := 0.0, 0.0, 0.0
		for _, v := range of.Row(i) {
			if v == v {
				n, sum, square = n+1, sum+v, square+v*v
			}
		}
		mean := sum / n
		deviation := math.Sqrt(square/n - mean*mean)
		for j, v := range x.Row(i) {
			x.Set(i, j, (v-mean)/deviation)
		}
	}
}

func main() {
	if _, _, err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
