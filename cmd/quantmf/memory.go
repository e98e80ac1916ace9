package main

// This file holds what a fit takes in memory, as -max-memory asks: the most that
// is alive at once, of all that the command does, by the sizes in the package.
// Garbage is not counted, because the collector is told the same limit (fit).

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
)

// What the package does where no flag says otherwise.
const (
	defaultLevels  = 8
	defaultBatch   = 32
	updates        = 20  // of the projection of QMFQ,
	updatesUniform = 100 // and from a uniform start
)

// readShare is how many bytes reading takes for a number: a slice that grows by a
// quarter, what it is copied from, and what that was copied from, still uncollected.
const readShare = 26

// margin is for sizes that the allocator rounds up, and small things.
const margin = 1.25

// buffers are those of reading and writing.
const buffers = 1 << 19

// programSize is what the program takes by itself.
const programSize = 12 << 20

// footprint is what decides how much memory a fit takes.
type footprint struct {
	method              string
	d, n, k, m          float64
	batch, workers      float64
	missing, choose     bool // choose: start or shrinkage
	svd, uniform        bool // where it starts
	report, checkpoints bool
}

// footprint of the fit of a d × n matrix.
func (f *fitFlags) footprint(d, n int) footprint {
	whole := func(flag string, unset int) float64 {
		if v, err := strconv.Atoi(f.told[flag]); err == nil && v > 0 {
			return float64(v)
		}
		return float64(unset)
	}
	start, shrinkage, ends := f.told["start"], f.told["shrinkage"], f.told["ends"]
	return footprint{
		method: f.method, d: float64(d), n: float64(n), k: float64(max(f.rank, 1)), m: whole("m", defaultLevels),
		batch: min(whole("batch", defaultBatch), float64(d)), workers: min(whole("workers", runtime.GOMAXPROCS(0)), float64(d)),
		missing: f.missing, choose: start == "" || start == "auto" || f.method == "qmf" && shrinkage == "" && ends != "pinned" && start != "uniform",
		svd: start == "svd", uniform: start == "uniform", report: f.page != "", checkpoints: f.checkpoint != "",
	}
}

// bytes is the most that is alive at once.
func (p footprint) bytes() float64 {
	d, n, k, m := p.d, p.n, p.k, p.m
	x, factors := 1.25*d*n, (d+n)*k // x as it was read
	nmf := factors + p.update(p.missing)
	if p.svd {
		nmf += (18*n + 3*(d+n)) * (k + 16)
	}
	model := factors
	fitting := nmf
	state := factors + d*n // of a checkpoint
	switch p.method {
	case "qmf":
		model += d * (3*m + 12)
		fitting = p.maps(d, p.batch) + max(p.start(), model)
		state = 3*factors + d*(6*m+n)
	case "qmfq":
		model += d * (8*m + 30)
		before := 0.0 // the QMF that it starts from
		if !p.uniform {
			before = p.maps(d, p.batch) + p.start()
		}
		fitting = p.maps(d, d) + p.projection() + max(before, model+p.row())
		state = 4*factors + d*(14*m+2*n)
	}
	if p.checkpoints {
		fitting += 5 * state // the last one, a new one, what it is put together from
	}
	most := max(fitting, model+nmf)
	if p.report {
		shownRows, shownColumns := min(d, 500), min(n, 500)
		shown := max(shownRows, shownColumns)
		most = max(most, model+2*d*n+2*shown*shown+2*shownRows*shownColumns+d*(5*m+k)+1<<19)
	}
	most += model // as a file
	return margin*max(8*(x+most), readShare*d*n) + 64*(d+n) + buffers + programSize
}

// update is what the updates of an NMF take beside its factors: the sums of 16
// pieces of the rows, and where cells are hidden their denominators, too.
func (p footprint) update(hidden bool) float64 {
	sums := 17 * p.k * p.n
	if hidden {
		sums += 16 * p.k * p.n
	}
	return sums + p.workers*18*p.n
}

// row is a worker's room for rows of n samples and m levels, up to eight of which it
// works at abreast.
func (p footprint) row() float64 {
	rows := min(8, p.d, math.Floor(1<<15/(p.n*p.m)))
	if rows < 3 || p.m > 64 {
		rows = 1
	}
	return rows * (p.n*(p.m+20) + 5*p.m*(p.m+8) + 48*p.m)
}

// maps is a fit of maps to d rows: factors, Adam's moments, what transports start from.
func (p footprint) maps(d, batch float64) float64 {
	perRow := 5*p.m + 24
	if p.uniform {
		perRow += 3 * p.m
	}
	return 4*d*p.k + 5*p.k*p.n + d*perRow + min(batch, d)*(p.n+p.k) + p.workers*p.row()
}

// start is what a fit of maps starts from beside itself: the NMF of scores, and,
// before that, short fits of up to 512 rows with hidden cells: their start, one of
// them, and the one before.
func (p footprint) start() float64 {
	if p.uniform {
		return 0
	}
	most := p.d*p.n + p.update(p.missing)
	if p.choose {
		few := min(p.d, 512)
		most = max(most, 3*p.maps(few, p.batch)+3.2*few*p.n+p.update(true))
	}
	return most
}

// projection is what QMFQ has beside the maps back: the maps T', Y and its
// gradient, and the states of the updates.
func (p footprint) projection() float64 {
	size, sums := (p.d+p.n)*p.k, 16*p.k*p.n
	if p.missing {
		size += p.n * p.k
		sums *= 2
	}
	often := float64(updates)
	if p.uniform {
		often = updatesUniform
	}
	states := often + 1
	if often*size > 1<<23 {
		states = 2 * math.Ceil(math.Sqrt(often))
	}
	return states*size + sums + 2*(p.d+2*p.n)*p.k + p.d*(2*p.n+9*p.m) + p.workers*p.row()
}

// affordable reports a fit that would take more memory than it may.
func (f *fitFlags) affordable(d, n int) error {
	if need := f.footprint(d, n).bytes(); need > float64(f.maxMemory) {
		return &inputError{fmt.Errorf("this fit needs about %s of memory, -max-memory allows %s: use fewer features (-top), components or levels, or allow more", gibi(need), gibi(float64(f.maxMemory)))}
	}
	return nil
}

// gibi writes a number of bytes.
func gibi(b float64) string {
	if b < 1<<30 {
		return fmt.Sprintf("%.3g MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.3g GiB", b/(1<<30))
}
