//go:build unix

package table_test

// This file measures readers in time of the processor: that of the clock says little on a busy machine.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"

	. "github.com/quantmf/quantmf/internal/samebits/check"
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
				Must(table.Read(bytes.NewReader(text.Bytes()), "in", table.Options{}))(b)
			})
		})
	}
}
