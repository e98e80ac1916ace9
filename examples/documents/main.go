// Command documents finds topics in the annual addresses of the presidents of the United States, from nothing
// but how often each address has each word, and compares the addresses by them.
//
// addresses.tsv.gz has the counts of 400 words in 240 addresses, 1790 to 2020: those that are most frequent,
// but for the 120 first. The texts are works of the federal government; the counts were made from the R
// package sotu.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/rowfile"
)

//go:embed addresses.tsv.gz
var addresses []byte

const topics = 12

// result is what the topics say.
type result struct {
	words [topics][]string // of each topic the first
	// the median number of years between an address and the nearest other by its topics
	apart float64
	alone float64 // the same between two addresses by chance
}

func run(w io.Writer) (r result, err error) {
	f, err := rowfile.Read(bytes.NewReader(addresses), "addresses.tsv.gz", rowfile.Options{})
	if err != nil {
		return r, err
	}
	// An NMF under the Kullback-Leibler divergence is probabilistic latent semantic analysis.
	m, err := quantmf.FitNMF(context.Background(), f.Rows, topics, quantmf.WithEpochs(40))
	if err != nil {
		return r, err
	}
	first, err := m.TopFeatures(f.Rows, 8)
	if err != nil {
		return r, err
	}
	most := m.TopSamples(3)
	for c := range topics {
		for _, top := range first[c] {
			r.words[c] = append(r.words[c], f.Features[top.Index])
		}
		var of []string
		for _, top := range most[c] {
			of = append(of, strings.ReplaceAll(f.Samples[top.Index], "_", " "))
		}
		fmt.Fprintf(w, "%s: most in %s\n", strings.Join(r.words[c], " "), strings.Join(of, ", "))
	}
	shares := sharesOf(m)
	year := func(j int) float64 {
		y, _ := strconv.Atoi(f.Samples[j][:4])
		return float64(y)
	}
	var apart, alone []float64
	for j := range shares.Cols {
		nearest, least := -1, math.Inf(1)
		for l := range shares.Cols {
			d := 0.0
			for c := range topics {
				d += math.Abs(shares.At(c, j) - shares.At(c, l))
			}
			if l != j && d < least {
				nearest, least = l, d
			}
			if l != j {
				alone = append(alone, math.Abs(year(j)-year(l)))
			}
		}
		apart = append(apart, math.Abs(year(j)-year(nearest)))
	}
	slices.Sort(apart)
	slices.Sort(alone)
	r.apart, r.alone = apart[len(apart)/2], alone[len(alone)/2]
	fmt.Fprintf(w, "an address and the nearest by its topics are %.0f years apart, two by chance %.0f "+
		"(medians)\n",
		r.apart, r.alone)
	return r, nil
}

// sharesOf returns the share of each topic in each address: v_cj times the words of topic c.
func sharesOf(m *quantmf.NMF) quantmf.Mat {
	u, v := m.Factors()
	for c := range v.Rows {
		words := 0.0
		for i := range u.Rows {
			words += u.At(i, c)
		}
		for j := range v.Cols {
			v.Set(c, j, v.At(c, j)*words)
		}
	}
	for j := range v.Cols {
		sum := 0.0
		for c := range v.Rows {
			sum += v.At(c, j)
		}
		for c := range v.Rows {
			v.Set(c, j, v.At(c, j)/sum)
		}
	}
	return v
}

func main() {
	if _, err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
