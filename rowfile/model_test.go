package rowfile_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/rowfile"
)

// smallModel is an NMF of a 3 × 4 matrix, with names.
func smallModel(t testing.TB) *rowfile.Model {
	x, _ := quantmf.MatOf([]float64{1, 2, 3, 4}, []float64{2, 4, 6, 8}, []float64{5, 4, 3, 2})
	m := Must(quantmf.FitNMF(context.Background(), x, 2))(t)
	return &rowfile.Model{Of: m, Features: []string{"cpu", "disk", "free"},
		Samples: []string{"h1", "h2", "h3", "h4"}, Log1p: true}
}

// TestModel: a model comes back with its names; damaged names and another number of them are errors.
func TestModel(t *testing.T) {
	m := smallModel(t)
	data := Must(m.MarshalBinary())(t)
	back := Must(rowfile.UnmarshalModel(data, quantmf.WithWorkers(1)))(t)
	if !slices.Equal(back.Features, m.Features) || !slices.Equal(back.Samples, m.Samples) || !back.Log1p ||
		back.Of.Rank() != 2 {
		t.Errorf("%+v", back)
	}
	plain, _ := m.Of.MarshalBinary()
	if none, err := rowfile.UnmarshalModel(plain); err != nil || none.Features != nil || none.Samples != nil {
		t.Errorf("a model without names: %+v, %v", none, err)
	}
	named, _ := quantmf.AppendSection(plain, "name", []byte("abc"))
	if _, err := rowfile.UnmarshalModel(named); err == nil {
		t.Error("damaged names are read")
	}
	var bad *quantmf.FormatError
	if _, err := rowfile.UnmarshalModel(data[:40]); !errors.As(err, &bad) {
		t.Errorf("half a file: %v", err)
	}
	var shape *quantmf.ShapeError
	m.Features = m.Features[:2]
	if _, err := m.MarshalBinary(); !errors.As(err, &shape) {
		t.Errorf("two names of three features: %v", err)
	}
	if _, err := new(rowfile.Model).MarshalBinary(); err == nil {
		t.Error("no model has a file")
	}
}

// TestMatch: rows come in the order of the model, by name; what the file lacks is missing.
func TestMatch(t *testing.T) {
	f := Must(rowfile.Read(strings.NewReader("name,a,b\nfree,1,2\nnew,3,4\ncpu,5,6\n"), "x",
		rowfile.Options{}))(t)
	x := Must(f.Match([]string{"cpu", "disk", "free"}))(t)
	row := make([]float64, 2)
	for i, want := range [][]float64{{5, 6}, {math.NaN(), math.NaN()}, {1, 2}} {
		if err := x.ReadRow(row, i); err != nil || fmt.Sprint(row) != fmt.Sprint(want) {
			t.Errorf("row %d: %v, want %v (%v)", i, row, want, err)
		}
	}
	if _, err := f.Match([]string{"CPU"}); err == nil {
		t.Error("a file without any feature of the model")
	}
}

// A service takes tables whose columns come in any order, and keeps models with their names.
func ExampleFile_Match() {
	body := "host,free,cpu\nh5,3.5,2.5\nh6,9,4\n" // no disk today, and h6 is odd
	m := rowfile.Model{Features: []string{"cpu", "disk", "free"}}
	x, _ := quantmf.MatOf([]float64{1, 2, 3, 4}, []float64{2, 4, 6, 8}, []float64{5, 4, 3, 2})
	var err error
	if m.Of, err = quantmf.FitNMF(context.Background(), x, 2); err != nil {
		log.Fatal(err)
	}
	f, err := rowfile.Read(strings.NewReader(body), "body", rowfile.Options{SamplesInRows: true})
	if err != nil {
		log.Fatal(err)
	}
	today, err := f.Match(m.Features)
	if err != nil {
		log.Fatal(err)
	}
	all, err := m.Of.Predict(context.Background(), today)
	if err != nil {
		log.Fatal(err)
	}
	for j, host := range f.Samples {
		fmt.Printf("%s: disk is about %.0f\n", host, all.At(1, j))
	}
	// Output:
	// h5: disk is about 5
	// h6: disk is about 8
}
