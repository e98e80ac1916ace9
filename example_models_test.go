package quantmf_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math"

	"github.com/quantmf/quantmf"
)

// loads are the loads of 4 services on 12 hosts: two patterns, mixed.
func loads() quantmf.Mat {
	x := quantmf.NewMat(4, 12)
	for j := range x.Cols {
		day, night := 1+math.Sin(float64(j)), 1+math.Cos(float64(2*j))
		for i, share := range [][2]float64{{8, 1}, {5, 3}, {2, 6}, {1, 9}} {
			x.Set(i, j, share[0]*day+share[1]*night)
		}
	}
	return x
}

func ExampleFitNMF() {
	m, err := quantmf.FitNMF(context.Background(), loads(), 2)
	if err != nil {
		log.Fatal(err)
	}
	d, n := m.Dims()
	fmt.Println(d, n, m.Rank(), m.History[m.Best] < 1e-3)
	// Output: 4 12 2 true
}

func ExampleFitQMFQ() {
	x := loads()
	m, err := quantmf.FitQMFQ(context.Background(), x, 2, quantmf.WithEpochs(10))
	if err != nil {
		log.Fatal(err)
	}
	y, err := m.Normalize(x) // each row on the scale on which it is of low rank
	fmt.Println(y.Rows, y.Cols, err)
	// Output: 4 12 <nil>
}

// A BQMF says how sure it is of each cell.
func ExampleFitBQMF() {
	x := loads()
	hidden := x.At(1, 5)
	x.Set(1, 5, math.NaN())
	m, err := quantmf.FitBQMF(context.Background(), x, 0, quantmf.WithMissingValues())
	if err != nil {
		log.Fatal(err)
	}
	lo, hi, err := m.Interval(0.95)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lo.At(1, 5) <= hidden && hidden <= hi.At(1, 5))
	// Output: true
}

// The method may be a setting, and so may whatever has a text.
func ExampleFit() {
	var settings struct {
		Method quantmf.Method
		Loss   quantmf.Loss
		Rank   int
	}
	if err := json.Unmarshal([]byte(`{"Method":"nmf","Loss":"frobenius","Rank":2}`), &settings); err != nil {
		log.Fatal(err)
	}
	m, err := quantmf.Fit(context.Background(), settings.Method, loads(), settings.Rank,
		quantmf.WithLoss(settings.Loss))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T of rank %d\n", m, m.Rank())
	// Output: *quantmf.NMF of rank 2
}

// Samples that the fit has not seen get a score each; the odd one has the largest.
func ExampleModel_scores() {
	x := loads()
	m, err := quantmf.FitNMF(context.Background(), x, 2)
	if err != nil {
		log.Fatal(err)
	}
	fresh := quantmf.NewMat(4, 3)
	for i := range fresh.Rows {
		copy(fresh.Row(i), x.Row(i)[:3])
	}
	fresh.Set(3, 1, 90) // a service gone wild
	scores, err := m.Scores(context.Background(), fresh)
	if err != nil {
		log.Fatal(err)
	}
	odd := 0
	for j, s := range scores {
		if s > scores[odd] {
			odd = j
		}
	}
	fmt.Println("odd:", odd)
	// Output: odd: 1
}

// Predict fills the cells of new samples that were not observed.
func ExampleModel_predict() {
	x := loads()
	m, err := quantmf.FitNMF(context.Background(), x, 2)
	if err != nil {
		log.Fatal(err)
	}
	fresh := quantmf.Mat{Rows: 4, Cols: 1, Stride: x.Stride, Data: x.Data[7:]}.Clone()
	hidden := fresh.At(2, 0)
	fresh.Set(2, 0, math.NaN())
	p, err := m.Predict(context.Background(), fresh)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(math.Abs(p.At(2, 0)-hidden) < 0.1*hidden)
	// Output: true
}

func ExampleHeldOut() {
	x := loads()
	trials := []quantmf.Trial{{Rank: 1}, {Rank: 2}}
	p, err := quantmf.HeldOut(context.Background(), x, quantmf.FitNMF, trials, quantmf.Masks{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("rank 2 predicts hidden cells better:", p[1].Mean < p[0].Mean)
	// Output: rank 2 predicts hidden cells better: true
}

// A fit that was stopped goes on from its last state, and ends with the same bits.
func ExampleWithResume() {
	ctx, x := context.Background(), loads()
	var state []byte
	save := quantmf.WithCheckpoint(5, func(s []byte) error { // s is the callee's to keep
		if state == nil {
			state = s
		}
		return nil
	})
	whole, err := quantmf.FitNMF(ctx, x, 2, save)
	if err != nil {
		log.Fatal(err)
	}
	resumed, err := quantmf.FitNMF(ctx, x, 2, quantmf.WithResume(state))
	if err != nil {
		log.Fatal(err)
	}
	a, _ := whole.MarshalBinary()
	b, _ := resumed.MarshalBinary()
	fmt.Println(bytes.Equal(a, b))
	// Output: true
}

// Tonight's fit begins with yesterday's model.
func ExampleWithModel() {
	ctx, x := context.Background(), loads()
	yesterday, err := quantmf.FitQMF(ctx, quantmf.Mat{Rows: 4, Cols: 10, Stride: x.Stride, Data: x.Data}, 2)
	if err != nil {
		log.Fatal(err)
	}
	today, err := quantmf.FitQMF(ctx, x, 2, quantmf.WithModel(yesterday), quantmf.WithEpochs(1))
	if err != nil {
		log.Fatal(err)
	}
	_, n := today.Dims()
	fmt.Println(n)
	// Output: 12
}

// Models are files, with sections of the program's own.
func ExampleUnmarshalModel() {
	m, err := quantmf.FitNMF(context.Background(), loads(), 2)
	if err != nil {
		log.Fatal(err)
	}
	file, err := m.MarshalBinary()
	if err == nil {
		file, err = quantmf.AppendSection(file, "host", []byte("web1 web2"))
	}
	if err != nil {
		log.Fatal(err)
	}
	read, err := quantmf.UnmarshalModel(file, quantmf.WithWorkers(1))
	if err != nil {
		log.Fatal(err)
	}
	hosts, _, _ := quantmf.Section(file, "host")
	fmt.Printf("%T %s\n", read, hosts)
	// Output: *quantmf.NMF web1 web2
}

// Rows that are mostly zero are listed, and cost what is listed.
func ExampleNewSparse() {
	x, err := quantmf.NewSparse(4, []int{0, 2, 4, 6}, []uint32{0, 1, 0, 1, 2, 3}, []float64{2, 4, 1, 2, 3, 3})
	if err != nil {
		log.Fatal(err)
	}
	m, err := quantmf.FitNMF(context.Background(), x, 2)
	if err != nil {
		log.Fatal(err)
	}
	loss, err := m.Loss(x)
	fmt.Println(loss < 1e-3, err)
	// Output: true <nil>
}

// Ranks of each row and their gradient, for a loss that counts ranks.
func ExampleSoftRankRows() {
	x, _ := quantmf.MatOf([]float64{3, 1, 2}, []float64{10, 30, 20})
	r, err := quantmf.SoftRankRows(x, quantmf.WithEpsilon(1e-4))
	if err != nil {
		log.Fatal(err)
	}
	for i := range r.Rows {
		fmt.Printf("%.1f\n", r.Row(i))
	}
	// Output:
	// [3.0 1.0 2.0]
	// [1.0 3.0 2.0]
}

// Draws carry what is not known of missing values into any analysis. Here it is the mean of a feature, by
// Rubin's rules: the variance of the mean of M results is the mean of their variances, and (1 + 1/M) times
// the variance among them.
func ExampleBQMF_Sample() {
	x := quantmf.NewMat(5, 60)
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, 10+math.Sin(float64(j)/3)*float64(i+1)+math.Cos(float64(i*j*j)))
			if (i+j)%4 == 0 {
				x.Set(i, j, math.NaN())
			}
		}
	}
	m, err := quantmf.FitBQMF(context.Background(), x, 0, quantmf.WithMissingValues())
	if err != nil {
		fmt.Println(err)
		return
	}
	const draws = 20
	var means, variances []float64
	for seed := range uint64(draws) {
		z := m.Sample(seed)
		mean, squares, n := 0.0, 0.0, float64(x.Cols)
		for j, v := range x.Row(4) {
			if v != v { // what is known stays
				v = z.At(4, j)
			}
			mean += v / n
			squares += v * v / n
		}
		means, variances = append(means, mean), append(variances, (squares-mean*mean)/(n-1))
	}
	q, u, b := 0.0, 0.0, 0.0
	for k, mean := range means {
		q += mean / draws
		u += variances[k] / draws
	}
	for _, mean := range means {
		b += (mean - q) * (mean - q) / (draws - 1)
	}
	fmt.Printf("%.1f, standard error %.2f\n", q, math.Sqrt(u+(1+1.0/draws)*b))
	// Output: 10.2, standard error 0.48
}
