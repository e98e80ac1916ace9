// Command imputation fills in what was not measured of new patients, with intervals: expression, microRNA and
// methylation of acute myeloid leukemias, three scales in one table, from a model of other patients.
//
//	imputation [TABLE]
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/rowfile"
)

// quality says how well values that were hidden of new samples are filled in.
type quality struct {
	hidden int
	less   float64 // the share by which the error is less than that of the features' means, on average
	held   float64 // the share of values in their 90 % intervals
}

func run(w io.Writer, path string) (q quality, err error) {
	ctx := context.Background()
	f, err := rowfile.Open(path, rowfile.Options{})
	if err != nil {
		return q, err
	}
	defer f.Close()
	known, ok := f.Rows.(quantmf.Mat)
	if !ok {
		return q, fmt.Errorf("%s is no table in memory: %T", path, f.Rows)
	}
	// The model sees two thirds of the patients. Of each other a third of the values is hidden.
	old, fresh := known, known
	old.Cols = known.Cols * 2 / 3
	fresh.Data, fresh.Cols = known.Data[old.Cols:], known.Cols-old.Cols
	m, err := quantmf.FitBQMF(ctx, old, 0, quantmf.WithMissingValues())
	if err != nil {
		return q, err
	}
	given, src := fresh.Clone(), rand.New(rand.NewPCG(1, 2))
	for i := range given.Data {
		if src.Float64() < 1./3 {
			given.Data[i] = math.NaN()
		}
	}
	filled, err := m.Predict(ctx, given)
	if err != nil {
		return q, err
	}
	low, high, err := m.PredictInterval(ctx, given, 0.9)
	if err != nil {
		return q, err
	}
	left := 0.0
	for i := range fresh.Rows { // features have units of their own, so errors are compared feature by feature
		mean, off, own := 0.0, 0.0, 0.0
		for j, v := range old.Row(i) {
			mean += (v - mean) / float64(j+1)
		}
		for j, v := range fresh.Row(i) {
			if g := given.At(i, j); g == g || v != v { // not hidden, or never measured
				continue
			}
			q.hidden++
			off += math.Abs(v - filled.At(i, j))
			own += math.Abs(v - mean)
			if v >= low.At(i, j) && v <= high.At(i, j) {
				q.held++
			}
		}
		if own > 0 {
			left += off / own / float64(fresh.Rows)
		}
	}
	q.less, q.held = 1-left, q.held/float64(q.hidden)
	fmt.Fprintf(w, "%d hidden values of %d new patients: %.0f %% less error than the features' means, %.1f "+
		"%% lie "+
		"in their 90 %% intervals\n", q.hidden, fresh.Cols, 100*q.less, 100*q.held)
	for i := 0; i < fresh.Rows; i += fresh.Rows / 6 {
		for j := range fresh.Cols {
			if g := given.At(i, j); g != g {
				fmt.Fprintf(w, "%-12s of %s: %.4g, from %.4g to %.4g; it was %.4g\n", f.Features[i],
					f.Samples[old.Cols+j], filled.At(i, j), low.At(i, j), high.At(i, j), fresh.At(i, j))
				break
			}
		}
	}
	return q, nil
}

func main() {
	path := "../testdata/laml-assays.tsv.gz"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if _, err := run(os.Stdout, path); err != nil {
		log.Fatal(err)
	}
}
