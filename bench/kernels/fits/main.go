//go:build linux

// Fits runs one of the fits whose profiles bench/kernels reads: fits NAME PROFILE SECONDS. Without arguments
// it writes their names.
package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"syscall"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/settings"
)

func main() {
	if len(os.Args) == 1 {
		for _, f := range fits {
			fmt.Println(f.name)
		}
		return
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "fits:", err)
		os.Exit(1)
	}
}

// run repeats a fit until it has taken so many seconds, and writes how many times that is.
func run(name, profile, seconds string) error {
	limit, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return err
	}
	for _, f := range fits {
		if f.name != name {
			continue
		}
		once := f.prepare()
		to, err := os.Create(profile)
		if err != nil {
			return err
		}
		runtime.SetCPUProfileRate(250) // StartCPUProfile says that it has a rate, and keeps it
		if err := pprof.StartCPUProfile(to); err != nil {
			return err
		}
		n := 0
		for from := processor(); n == 0 || processor()-from < limit; n++ {
			if err := once(); err != nil {
				return err
			}
		}
		pprof.StopCPUProfile()
		fmt.Println(n)
		return to.Close()
	}
	return fmt.Errorf("no fit is called %q", name)
}

// processor returns the seconds that the processor has worked for this program.
func processor() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// fits are the fits, each with what makes its data and returns one repetition.
var fits = []struct {
	name    string
	prepare func() func() error
}{
	{"NMF", fit("nmf", dense, 1500, 500, 10, epochs(15))},
	{"NMF, Frobenius", fit("nmf", dense, 1500, 500, 10, epochs(15), frobenius)},
	{"NMF, updates", fit("nmf", dense, 1500, 500, 20, epochs(60), updates)},
	{"NMF, β = 1.5", fit("nmf", dense, 1500, 500, 10, epochs(30), updates,
		quantmf.WithLoss(quantmf.Beta(1.5)))},
	{"NMF, k = 40", fit("nmf", dense, 500, 500, 40, epochs(15))},
	{"NMF, missing", fit("nmf", holes, 1500, 500, 10, epochs(15), missing)},
	{"NMF, missing, Frobenius", fit("nmf", holes, 1500, 500, 10, epochs(15), missing, frobenius)},
	{"sparse NMF", fit("nmf", counts, 4000, 3000, 10, epochs(15))},
	{"sparse NMF, k = 24", fit("nmf", counts, 4000, 3000, 24, epochs(10))},
	{"sparse NMF, updates", fit("nmf", counts, 4000, 3000, 10, epochs(50), updates)},
	{"sparse NMF, Frobenius", fit("nmf", counts, 4000, 3000, 10, epochs(15), frobenius)},
	{"QMF", fit("qmf", dense, 400, 150, 8, epochs(30))},
	{"QMF, 1000 samples", fit("qmf", dense, 150, 1000, 10, epochs(20))},
	{"QMF, 20,000 samples", fit("qmf", dense, 40, 20000, 10, epochs(10))},
	{"QMF, k = 40", fit("qmf", dense, 200, 200, 40, epochs(20))},
	{"QMF, Frobenius", fit("qmf", dense, 400, 150, 8, epochs(30), frobenius)},
	{"QMF, missing", fit("qmf", holes, 400, 150, 8, epochs(30), missing)},
	{"QMF, ε = 0.001", fit("qmf", dense, 200, 150, 8, epochs(20), quantmf.WithEpsilon(1e-3))},
	{"QMF, no squash", fit("qmf", dense, 400, 150, 8, epochs(30), quantmf.WithSquash(quantmf.SquashNone))},
	{"QMF, batches", fit("qmf", dense, 400, 150, 8, epochs(30), quantmf.WithBatch(32))},
	{"QMFQ", fit("qmfq", dense, 200, 100, 8, epochs(10))},
	{"QMFQ, Frobenius", fit("qmfq", dense, 200, 100, 8, epochs(10), frobenius,
		quantmf.WithProjection(quantmf.FrobeniusUpdates(100)))},
	{"QMFQ, SVD", fit("qmfq", dense, 200, 100, 8, epochs(10), frobenius,
		quantmf.WithProjection(quantmf.TruncatedSVD()))},
	{"BQMF", fit("bqmf", dense, 400, 150, 0, epochs(10))},
	{"BQMF, 1000 samples", fit("bqmf", dense, 150, 1000, 20, epochs(10))},
	{"BQMF, missing", fit("bqmf", holes, 400, 150, 0, epochs(10), missing)},
	{"BQMF, Frobenius", fit("bqmf", dense, 400, 150, 0, epochs(10), frobenius)},
	{"quantile rows", rows(256, 1e-2)},
	{"quantile rows, ε = 0.1", rows(256, 1e-1)},
	{"quantile rows, 20,000 samples", rows(20000, 1e-2)},
	{"quantile rows, own targets", rows(256, 1e-2, quantmf.WithTargets(roots(levels)))},
	{"ranks and sort", ranks(150, 1e-2)},
	{"ranks and sort, ε = 0.001", ranks(100, 1e-3)},
	{"new samples, NMF", transform("nmf", 10)},
	{"new samples, QMF", transform("qmf", 8)},
	{"new samples, QMFQ", transform("qmfq", 8)},
	{"new samples, BQMF", transform("bqmf", 8)},
}

var (
	frobenius = quantmf.WithLoss(quantmf.Frobenius)
	updates   = quantmf.WithUpdates(quantmf.UpdatesMultiplicative)
	missing   = quantmf.WithMissingValues()
)

func epochs(n int) quantmf.FitOption { return quantmf.WithEpochs(n) }

// fit is a fit of a d × n matrix.
func fit(of string, data func(d, n int) quantmf.Rows, d, n, k int,
	opts ...quantmf.FitOption) func() func() error {
	return func() func() error {
		x := data(d, n)
		return func() error {
			_, err := settings.Fit(context.Background(), of, x, k, opts...)
			return err
		}
	}
}

// transform is the coordinates of new samples under a model.
func transform(of string, k int) func() func() error {
	return func() func() error {
		m, err := settings.Fit(context.Background(), of, dense(300, 100), k, epochs(10))
		x := dense(300, 200).(quantmf.Mat)
		return func() error {
			if err != nil {
				return err
			}
			_, err := m.Transform(context.Background(), x)
			return err
		}
	}
}

// levels is the number of levels of a layer of a network.
const levels = 16

// rows is what a layer of a network does with rows of n samples: quantiles, and their gradient.
func rows(n int, eps float64, opts ...quantmf.Option) func() func() error {
	return func() func() error {
		x, z := dense(max(4, 100000/n), n).(quantmf.Mat), dense(max(4, 100000/n), n).(quantmf.Mat)
		q := quantmf.Mat{Rows: 1, Cols: levels, Data: roots(levels), Stride: levels}
		opts := append(slices.Clip(opts), quantmf.WithEpsilon(eps))
		return func() error {
			if _, err := quantmf.SoftQuantileRows(x, q, opts...); err != nil {
				return err
			}
			_, _, _, err := quantmf.SoftQuantileRowsVJP(x, q, z, opts...)
			return err
		}
	}
}

// roots returns m numbers that rise from 0 to 1 in uneven steps.
func roots(m int) []float64 {
	q := make([]float64, m)
	for j := range q {
		q[j] = math.Sqrt(float64(j) / float64(m-1))
	}
	return q
}

// ranks is the ranks and the sorted values of n samples at as many levels, and their gradients.
func ranks(n int, eps float64) func() func() error {
	return func() func() error {
		x := dense(1, n).(quantmf.Mat).Data
		return func() error {
			t, err := quantmf.Solve(x, quantmf.WithEpsilon(eps), quantmf.WithLevels(n))
			if err != nil {
				return err
			}
			z := t.Rank()
			copy(z, t.Sort())
			if _, err := t.RankVJP(z); err != nil {
				return err
			}
			_, err = t.SortVJP(z)
			return err
		}
	}
}

// holes is dense with a fifth of the cells missing.
func holes(d, n int) quantmf.Rows {
	x, r := dense(d, n).(quantmf.Mat), rand.New(rand.NewPCG(3, 0))
	for i := range x.Data {
		if r.Float64() < 0.2 {
			x.Data[i] = math.NaN()
		}
	}
	return x
}

// dense returns a d × n matrix of rank 6 with noise, each row with a curve of its own.
func dense(d, n int) quantmf.Rows {
	const rank = 6
	r := rand.New(rand.NewPCG(1, uint64(d*n)))
	u, v := quantmf.NewMat(d, rank), quantmf.NewMat(rank, n)
	for _, m := range []quantmf.Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = r.ExpFloat64()
		}
	}
	x := quantmf.NewMat(d, n)
	for i := range d {
		power := 0.5 + 1.5*r.Float64()
		for j := range n {
			s := 0.0
			for c := range rank {
				s += u.At(i, c) * v.At(c, j)
			}
			x.Set(i, j, math.Pow(s*math.Exp(0.3*r.NormFloat64()), power))
		}
	}
	return x
}

// counts returns sparse counts, 3 % of them not 0.
func counts(d, n int) quantmf.Rows {
	r := rand.New(rand.NewPCG(2, uint64(d*n)))
	start, at, values := make([]int, d+1), []uint32(nil), []float64(nil)
	for i := range d {
		row := 0.03 * (0.2 + 1.6*r.Float64())
		for j := range n {
			if r.Float64() < row {
				at, values = append(at, uint32(j)), append(values, float64(1+int(2*r.ExpFloat64())))
			}
		}
		start[i+1] = len(at)
	}
	x, err := quantmf.NewSparse(n, start, at, values)
	if err != nil {
		panic(err)
	}
	return x
}
