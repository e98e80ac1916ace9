package bench

// This file times fits to the loss at which the authors' code ends on the paper's synthetic problem.

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
)

var toyFolder = flag.String("toy", "",
	"folder with toy-std1.tsv.gz, toy-std2.tsv.gz and official.json; without it the tests and benchmarks "+
		"that read them are skipped")

// toy reads a matrix, its rank, and the loss of QMF that the authors' code has after 1000 epochs.
func toy(tb testing.TB, name string) (x quantmf.Mat, k int, loss float64) {
	if *toyFolder == "" {
		tb.Skip("reads the folder that -toy names")
	}
	text, err := os.ReadFile(*toyFolder + "/official.json")
	if err != nil {
		tb.Fatal(err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		tb.Fatal(err)
	}
	var curves struct {
		K   int
		QMF map[string]float64
	}
	if err := json.Unmarshal(raw[name], &curves); err != nil {
		tb.Fatal(err)
	}
	f, err := os.Open(*toyFolder + "/" + name + ".tsv.gz")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	var rows [][]float64
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan(); s.Scan(); {
		var row []float64
		for _, field := range strings.Split(s.Text(), "\t")[1:] {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				tb.Fatal(err)
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	x, err = quantmf.MatOf(rows...)
	if err != nil {
		tb.Fatal(err)
	}
	return x, curves.K, curves.QMF["1000"]
}

// BenchmarkToLoss times the shortest fit, of the numbers of epochs listed below, that ends at or
// below the authors' loss at their ε and m. The metric "epochs" is its number of epochs.
func BenchmarkToLoss(b *testing.B) {
	x, k, loss := toy(b, "toy-std1")
	fit := func(epochs int) float64 {
		m, err := quantmf.FitQMF(b.Context(), x, k, quantmf.WithEpochs(epochs), quantmf.WithEpsilon(0.01),
			quantmf.WithLevels(8),
			quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0), quantmf.WithWorkers(1))
		if err != nil {
			b.Fatal(err)
		}
		return m.History[epochs]
	}
	for _, epochs := range []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 120, 150, 200, 300, 500, 1000} {
		reached := fit(epochs)
		if reached > loss {
			continue
		}
		b.ResetTimer()
		for range b.N {
			fit(epochs)
		}
		b.ReportMetric(float64(epochs), "epochs")
		b.ReportMetric(reached, "loss")
		return
	}
	b.Fatal("not reached")
}
