// Command study makes the measurements by which the defaults of quantmf were chosen: how well fits predict
// cells that they have not seen, and how well their components agree with known classes.
// docs/measurements/defaults.md, nmf.md, qmfq.md and bqmf.md have its tables.
//
//	go run . [-data FOLDER] heldout|choice|updates|batches|qmfq|labels|first [SET ...]
//	go run . [-data FOLDER] [-python PYTHON] filled [SET ...]
//	go run . -data FOLDER [-python PYTHON] peers [TABLE ...]
//	go run . peerspage
//
// Without -data it reads testdata/laml-exp.tsv.gz, the one matrix of this repository; labels needs another
// set. FOLDER has the sets in the form that the experiments in the folder above read; go run . data there
// says where they are published. Named sets are read in place of the default ones.
//
// peers writes results/peers.json and, from that file alone, the tables and the picture of
// docs/measurements/bqmf.md. For named tables it prints the results or, with -merge, adds them to
// results/peers.json. Finished fits are kept in cache/. peerspage writes the tables and the picture again.
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/quantmf/quantmf"
	matrices "github.com/quantmf/quantmf/paper/internal/data"
)

var (
	data = flag.String("data", "",
		"folder of the data; without it testdata/laml-exp.tsv.gz of this repository is read")
	rows  = flag.Int("rows", 0, "the largest number of features, taken at even distances; 0: all")
	draws = flag.Int("draws", 3, "masks, or seeds (labels)")

	slowDraws = flag.Int("slow", 1, "peers: masks of the wide tables for slow methods")
	some      = flag.String("methods", "",
		"only these methods, separated by semicolons; peers: of the named tables")
	merge = flag.Bool("merge", false,
		"peers: add the results of the named tables to results/peers.json, and write the page")
	python = flag.String("python", "python3", "filled, peers: a Python with the packages of requirements.txt")
)

// sets are matrices of several kinds: logarithms of counts, shares, counts.
var sets = []string{"tcga-laml/exp", "tcga-laml/mirna", "tcga-kirc/mirna", "tcga-cesc/methy",
	"sotu-wordcounts/counts", "pbmc3k-small/counts"}

func main() {
	log.SetFlags(0)
	flag.Parse()
	if *data == "" {
		*data, sets = "../../testdata", []string{"laml-exp"}
	}
	if flag.NArg() > 1 {
		sets = flag.Args()[1:]
	}
	run, has := map[string]func(){"heldout": heldOut, "choice": choice, "filled": filled, "updates": updates,
		"batches": batches, "qmfq": projections, "first": first,
		"labels": labels, "peers": peers, "peerspage": func() {
			r, err := readPeers()
			check(err)
			check(writePeersPage(r))
		}}[flag.Arg(0)]
	if !has {
		flag.Usage()
		os.Exit(2)
	}
	run()
}

func readIn(folder, set string) quantmf.Mat {
	x, err := matrices.Read(filepath.Join(folder, set+".tsv.gz"))
	check(err)
	return x
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
