//go:build unix

package table_test

// This file measures readers in time of the processor: that of the clock says little on a busy machine.

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// timed runs a benchmark and reports megabytes per second of processor time.
func timed(b *testing.B, size int, do func()) {
	used := func() float64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	before := used()
	for b.Loop() {
		do()
	}
	b.ReportMetric(float64(size)*float64(b.N)/1e6/(used()-before), "MB/cpu-s")
}

func BenchmarkReadText(b *testing.B) {
	for _, c := range []struct {
		name, sep string
		cell      func(r *rand.Rand) string
	}{
		{"counts", "\t", func(r *rand.Rand) string { return strconv.Itoa(int(r.ExpFloat64() * 3)) }},
		{"3 decimals", "\t", func(r *rand.Rand) string { return fmt.Sprintf("%.3f", r.Float64()*15) }},
		{"3 decimals, commas", ",", func(r *rand.Rand) string { return fmt.Sprintf("%.3f", r.Float64()*15) }},
		{"15 digits", "\t", func(r *rand.Rand) string { return fmt.Sprintf("%.15g", r.Float64()*15) }},
		{"all digits", "\t", func(r *rand.Rand) string {
			return strconv.FormatFloat(r.Float64()*15, 'g', -1,
				64)
		}},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		var text bytes.Buffer
		text.WriteString("gene")
		for j := range 500 {
			fmt.Fprintf(&text, "%ssample%d", c.sep, j)
		}
		for i := 0; text.Len() < 4<<20; i++ {
			fmt.Fprintf(&text, "\ngene%d", i)
			for range 500 {
				text.WriteString(c.sep + c.cell(r))
			}
		}
		b.Run(c.name, func(b *testing.B) {
			timed(b, text.Len(), func() {
				must(table.Read(bytes.NewReader(text.Bytes()), "in", table.Options{}))(b)
			})
		})
	}
}

// BenchmarkReadSparse reads a Matrix Market file of counts, column by column, into sparse rows.
func BenchmarkReadSparse(b *testing.B) {
	const d, n = 20000, 1000
	r := rand.New(rand.NewPCG(1, 2))
	var body bytes.Buffer
	entries := 0
	for j := range n {
		for i := int(r.ExpFloat64() * 20); i < d; i += 1 + int(r.ExpFloat64()*20) {
			fmt.Fprintf(&body, "%d %d %d\n", i+1, j+1, 1+int(r.ExpFloat64()*2))
			entries++
		}
	}
	text := append(fmt.Appendf(nil, "%s matrix coordinate integer general\n%d %d %d\n", mtxMagic, d, n,
		entries), body.Bytes()...)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(text)
	z.Close()
	for name, in := range map[string][]byte{"plain": text, "gzip": packed.Bytes()} {
		b.Run(name, func(b *testing.B) {
			timed(b, len(text), func() {
				must(table.Read(bytes.NewReader(in), "in", table.Options{Rows: true}))(b)
			})
		})
	}
}

// BenchmarkReadPacked reads matrices that are compressed, in megabytes of their content: counts and decimals
// as text by gzip, and as arrays of archives, full and sparse.
func BenchmarkReadPacked(b *testing.B) {
	const d, n = 2000, 500
	r := rand.New(rand.NewPCG(1, 2))
	counts, decimals := quantmf.NewMat(d, n), quantmf.NewMat(d, n)
	for i := range counts.Data {
		counts.Data[i] = math.Floor(r.ExpFloat64() * 3)
		decimals.Data[i] = math.Round(r.Float64()*15000) / 1000
	}
	features, samples := table.Numbered("gene", d), table.Numbered("sample", n)
	for _, c := range []struct {
		name, file string
		x          quantmf.Mat
	}{{"counts", "x.tsv.gz", counts}, {"3 decimals", "x.tsv.gz", decimals}, {"counts", "x.npz", counts},
		{"3 decimals", "x.npz", decimals}} {
		var plain, packed bytes.Buffer
		for to, file := range map[*bytes.Buffer]string{&plain: strings.Replace(strings.TrimSuffix(c.file,
			".gz"), "npz", "npy", 1), &packed: c.file} {
			ok(b, table.Write(to, file, "", features, samples, c.x))
		}
		b.Run(c.name+" "+c.file, func(b *testing.B) {
			timed(b, plain.Len(), func() {
				must(table.Read(bytes.NewReader(packed.Bytes()), c.file,
					table.Options{}))(b)
			})
		})
	}
	sparse := quantmf.NewMat(d, n)
	for i := range sparse.Data {
		sparse.Data[i] = max(counts.Data[i]-6, 0)
	}
	archive := packedAnew(b, string(sparseZip(sparse, "csr", false)), zip.Deflate)
	b.Run("sparse x.npz", func(b *testing.B) {
		timed(b, 8*d*n, func() {
			must(table.Read(bytes.NewReader(archive), "x.npz",
				table.Options{Rows: true}))(b)
		})
	})
}
