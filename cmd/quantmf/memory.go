package main

// This file estimates the memory of a fit for -max-memory: the most that is alive at once in the whole
// command. quantmf.MemoryFor has the share of the package. Garbage is not counted, because the collector gets
// its limit from cli.Input.Hold.

import (
	"context"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/internal/table"
)

// readShare is the number of bytes that reading takes for a number of a large matrix that comes through a
// pipe: 8, and an eighth of that while the pieces become one. A file takes 8. Below 8 MiB a pipe takes 16,
// which is little.
const readShare = 9

// margin covers sizes that the allocator rounds up and MemoryFor does not, small allocations, and the names
// and indices beside a matrix.
const margin = 1.125

// buffers are the bytes of the buffers for reading and writing.
const buffers = 1 << 19

// programSize is the bytes that the program takes without a matrix.
const programSize = 12 << 20

// footprint is the most that is alive at once while a matrix is fitted, in bytes: the matrix, the fit
// (quantmf.MemoryFor), the further fits without hidden values, the report. held is what the matrix takes
// where it is no Mat, else 0.
func (f *fitFlags) footprint(matrix quantmf.Rows, held float64) (float64, error) {
	need, err := quantmf.MemoryFor(context.Background(), settings.Method(f.method), matrix, f.rank,
		f.options.List()...)
	if err != nil {
		return 0, err
	}
	d, n := matrix.Dims()
	hidden, err := f.hiddenFootprint(matrix)
	if err != nil {
		return 0, err
	}
	numbers := float64(d) * float64(n)
	fit, x, reading := float64(need.Fit), 8*numbers, readShare*numbers
	if held > 0 {
		x, reading = held, 1.3*held
	}
	if f.keep.path != "" {
		fit += 3 * float64(need.State) // the last one, a new one, and one that the collector has not come for
	}
	model := float64(need.Model)
	most := max(fit, model+hidden)
	if f.page != "" {
		shownRows, shownColumns := float64(min(d, 300)), float64(min(n, 300))
		shown := max(shownRows, shownColumns)
		curves := float64(d) * (account.Steps + 1)
		most = max(most, model+8*(3*numbers+curves+2*shown*shown+2*shownRows*shownColumns+1<<20))
	}
	most = max(most, 3*model) // as a file, and as that file with the names
	return margin*max(x+most, reading) + 64*float64(d+n) + buffers + programSize, nil
}

// affordable returns an error for a fit that would take more memory than -max-memory. Further fits without
// hidden values that would are left out.
func (f *fitFlags) affordable(t *table.Table) error {
	need, err := f.footprint(t.Rows(), t.HeldBytes())
	if err == nil && need > float64(f.in.MaxMemory) && f.compare != "none" {
		f.compare, f.untried = "none", "-max-memory allows too little for further fits"
		need, err = f.footprint(t.Rows(), t.HeldBytes())
	}
	if err != nil {
		return err
	}
	return f.in.Allows(need, "this fit", "use fewer features (-top), components or levels, or allow more")
}
