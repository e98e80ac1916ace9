//go:build linux || darwin

package bench

// This file measures epochs of FitNMF over sparse counts by seconds of the processor, for sparse.py.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/quantmf/quantmf"
)

// TestSparse reads a problem from the file QUANTMF_SPARSE: d, n, k, the number of cells that are not 0, the
// starts of rows, the columns, the values, u and v. Columns are integers of 32 bits, all other numbers
// doubles. QUANTMF_HOLDER names the matrix that is fitted, in QUANTMF_EPOCHS epochs of QUANTMF_UPDATES. The
// test writes a line for each epoch, with the seconds that the processor has worked since the epoch before
// and the loss. Last it writes the most memory that the process had, in MB.
//
//	sparse  the matrix in sparse rows
//	dense   the first quarter of its rows, in full
//	all     that quarter with 0.01 added to each cell, so that none is zero
func TestSparse(t *testing.T) {
	name := os.Getenv("QUANTMF_SPARSE")
	if name == "" {
		t.Skip("for sparse.py")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	next := func() float64 {
		v := math.Float64frombits(binary.LittleEndian.Uint64(raw))
		raw = raw[8:]
		return v
	}
	d, n, k, cells := int(next()), int(next()), int(next()), int(next())
	epochs, err := strconv.Atoi(os.Getenv("QUANTMF_EPOCHS"))
	if err != nil {
		t.Fatal(err)
	}
	start, index, values := make([]int, d+1), make([]uint32, cells), make([]float64, cells)
	for i := range start {
		start[i] = int(next())
	}
	for p := range index {
		index[p] = binary.LittleEndian.Uint32(raw)
		raw = raw[4:]
	}
	for p := range values {
		values[p] = next()
	}
	u, v := quantmf.NewMat(d, k), quantmf.NewMat(k, n)
	for _, m := range []quantmf.Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = next()
		}
	}
	raw = nil
	var x quantmf.Rows
	sparse, err := quantmf.NewSparse(n, start, index, values)
	if err != nil {
		t.Fatal(err)
	}
	if x = sparse; os.Getenv("QUANTMF_HOLDER") != "sparse" {
		m := quantmf.NewMat(d/4, n)
		u.Rows = m.Rows
		u.Data = u.Data[:m.Rows*k]
		for i := range m.Rows {
			if err := sparse.ReadRow(m.Row(i), i); err != nil {
				t.Fatal(err)
			}
			if os.Getenv("QUANTMF_HOLDER") == "all" {
				for j := range m.Row(i) {
					m.Row(i)[j] += 0.01
				}
			}
		}
		x = m
	}
	runtime.GC()
	updates := quantmf.UpdatesMultiplicative
	if os.Getenv("QUANTMF_UPDATES") == "newton" {
		updates = quantmf.UpdatesNewton
	}
	last := worked(t)
	_, err = quantmf.FitNMF(context.Background(), x, k, quantmf.WithInit(u, v), quantmf.WithEpochs(epochs),
		quantmf.WithUpdates(updates),
		quantmf.WithWorkers(1), quantmf.WithProgress(func(p quantmf.Progress) error {
			if p.Phase == quantmf.PhaseEpochs {
				now := worked(t)
				fmt.Printf("epoch %.17g %.17g\n", now-last, p.Loss)
				last = now
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("memory %d\n", usage(t).Maxrss/1024)
}
