//go:build linux

package main

// This file says which fits are measured, and measures them.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/bench"
	"github.com/quantmf/quantmf/shards"
)

// work is a fit: the kind of fit and the sizes of its matrix. A line of the results begins with it.
type work struct {
	kind    string // one of kinds
	d, n    int
	density float64
	k, m    int // m: the levels of a QMF
	shards  int // 0: a fit on one machine
}

// kinds are the ways to fit.
var kinds = []string{"nmf", "nmf-updates", "nmf-sparse", "nmf-sparse-updates", "qmf"}

func (w work) newton() bool { return w.kind == "nmf" || w.kind == "nmf-sparse" }

func (w work) String() string {
	return fmt.Sprintf("%s %d %d %g %d %d %d", w.kind, w.d, w.n, w.density, w.k, w.m, w.shards)
}

// took is what a fit has taken, in seconds of the processor and in bytes.
type took struct {
	nonzero      int
	start, epoch float64 // seconds before the first epoch; those of the shortest epoch
	matrix, fit  float64 // bytes of the matrix; the most that the fit had beside it
	told         float64 // the estimate of MemoryOf for fit
	// of an epoch over shards, which is two rounds by Newton's method: reading the rows in one round; the
	// reduce
	read, reduce  float64
	largest       float64 // the longest step
	moved, stored float64 // bytes read and written, the rows not counted; bytes of the rows of all shards
}

func (t took) String() string {
	return fmt.Sprintf("%d %.4g %.4g %.0f %.0f %.0f %.4g %.4g %.4g %.0f %.0f", t.nonzero, t.start, t.epoch,
		t.matrix, t.fit, t.told, t.read, t.reduce, t.largest, t.moved, t.stored)
}

const heading = "kind d n density k m shards nonzero start epoch matrix fit told read reduce step " +
	"moved stored"

// grid returns the fits that are measured: for each kind a middle size, and sizes that differ from it in one
// or two numbers.
func grid() (all []work) {
	for _, kind := range kinds {
		middle := work{kind, 2000, 4000, 0.05, 10, 0, 0}
		if kind == "qmf" {
			middle.d, middle.m = 1000, 8
		}
		add := func(change func(w *work)) {
			w := middle
			change(&w)
			all = append(all, w)
		}
		add(func(*work) {})
		ds, ns := []int{500, 8000, 20000}, []int{1000, 16000, 64000}
		if kind == "qmf" { // the largest sizes would take too long
			ds, ns = ds[:2], ns[:2]
		}
		for _, d := range ds {
			add(func(w *work) { w.d, w.n = d, 2000 })
		}
		for _, n := range ns {
			add(func(w *work) { w.d, w.n = 1000, n })
		}
		for _, k := range []int{5, 20, 40} {
			add(func(w *work) { w.k = k })
		}
		if strings.Contains(kind, "sparse") {
			for _, density := range []float64{0.01, 0.1} {
				add(func(w *work) { w.density = density })
			}
		}
		if kind == "qmf" {
			for _, m := range []int{4, 16} {
				add(func(w *work) { w.m = m })
			}
		}
	}
	for _, kind := range kinds {
		m := 0
		if kind == "qmf" {
			m = 8
		}
		for _, shards := range []int{1, 2, 4, 8} {
			all = append(all, work{kind, 2000, 4000, 0.05, 10, m, shards})
		}
		for _, n := range []int{1000, 16000} {
			all = append(all, work{kind, 2000, n, 0.05, 10, m, 8})
		}
	}
	return all
}

// measureAll measures the grid, each fit in a process of its own, and writes the results.
func measureAll() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text := heading + "\n"
	for _, w := range grid() {
		c := exec.Command(self, "one", w.String())
		c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=10")
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil {
			return fmt.Errorf("%v: %w", w, err)
		}
		fmt.Print(string(out))
		text += string(out)
	}
	return os.WriteFile(results, []byte(strings.ReplaceAll(text, " ", "\t")), 0o666)
}

// one measures one fit and writes its line.
func one(text string) error {
	w, _, err := parse(strings.Fields(text))
	if err != nil {
		return err
	}
	t, err := measure(w)
	if err == nil {
		fmt.Println(w, t)
	}
	return err
}

// parse reads a line of the results, or its beginning.
func parse(f []string) (w work, t took, err error) {
	number := func() (v float64) {
		if len(f) > 0 && err == nil {
			v, err = strconv.ParseFloat(f[0], 64)
			f = f[1:]
		}
		return v
	}
	if len(f) != 7 && len(f) != len(strings.Fields(heading)) {
		return w, t, fmt.Errorf("%q is not KIND D N DENSITY K M SHARDS", strings.Join(f, " "))
	}
	w.kind, f = f[0], f[1:]
	w.d, w.n, w.density, w.k, w.m, w.shards = int(number()), int(number()), number(), int(number()),
		int(number()), int(number())
	t = took{int(number()), number(), number(), number(), number(), number(), number(), number(), number(),
		number(), number()}
	return w, t, err
}

// worked returns how many seconds the processor has worked for this process.
func worked() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// resident returns a line of /proc/self/status in bytes: VmRSS, or VmHWM, the peak since it was last cleared.
func resident(what string) float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, line, _ := strings.Cut(string(b), what+":")
	var kib float64
	fmt.Sscan(line, &kib)
	return 1024 * kib
}

func measure(w work) (took, error) {
	var t took
	sparse, err := bench.Counts(w.d, w.n, w.density)
	if err != nil {
		return t, err
	}
	t.nonzero = sparse.Listed()
	t.matrix = 8*float64(t.nonzero) + 8*float64(w.d)
	var x quantmf.Rows = sparse
	if w.kind == "nmf" || w.kind == "nmf-updates" {
		m := quantmf.NewMat(w.d, w.n)
		for i := range w.d {
			if err := sparse.ReadRow(m.Row(i), i); err != nil {
				return t, err
			}
			for j := range m.Row(i) {
				m.Row(i)[j] += 0.01 // so that no row is mostly zero
			}
		}
		x, sparse = m, nil
		t.matrix = 8 * float64(len(m.Data))
	}
	method, epochs := quantmf.MethodNMF, 12
	opts := []quantmf.FitOption{quantmf.WithWorkers(1)}
	switch w.kind {
	case "nmf", "nmf-sparse":
		opts = append(opts, quantmf.WithUpdates(quantmf.UpdatesNewton))
	case "nmf-updates", "nmf-sparse-updates":
		opts = append(opts, quantmf.WithUpdates(quantmf.UpdatesMultiplicative))
	case "qmf":
		method, epochs = quantmf.MethodQMF, 4
		opts = append(opts, quantmf.WithLevels(w.m))
	}
	if w.shards > 0 { // the start is that of one machine and is not measured again
		if epochs = 3; w.newton() {
			epochs = 9
		}
		if w.kind == "qmf" {
			opts = append(opts, quantmf.WithInit(ones(w.d, w.k), ones(w.k, w.n)), quantmf.WithShrinkage(0))
		}
	}
	opts = append(opts, quantmf.WithEpochs(epochs))
	told, err := quantmf.MemoryOf(method, w.d, w.n, w.k, opts...)
	if err != nil {
		return t, err
	}
	t.told = float64(told.Fit)
	if sparse != nil {
		t.told = float64(told.Rows)
	}
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // clears the peak
		return t, err
	}
	before := resident("VmRSS")
	if w.shards > 0 {
		err = overShards(w, &t, method, x, opts)
	} else {
		err = onOneMachine(w, &t, method, x, epochs, opts)
	}
	t.fit = resident("VmHWM") - before
	return t, err
}

// ones returns a matrix of numbers near 1.
func ones(rows, cols int) quantmf.Mat {
	r := rand.New(rand.NewPCG(3, 4))
	m := quantmf.NewMat(rows, cols)
	for i := range m.Data {
		m.Data[i] = 0.5 + r.Float64()
	}
	return m
}

// onOneMachine fits and returns the time of the shortest epoch. By Newton's method, whose first epochs are
// multiplicative updates, it is the mean of the latter half of the epochs.
func onOneMachine(w work, t *took, method quantmf.Method, x quantmf.Rows, epochs int,
	opts []quantmf.FitOption) error {
	began := worked()
	var at []float64
	opts = append(opts, quantmf.WithProgress(func(p quantmf.Progress) error {
		if p.Phase == quantmf.PhaseEpochs && p.Epoch > len(at) {
			at = append(at, worked())
		}
		return nil
	}))
	var err error
	if method == quantmf.MethodNMF {
		_, err = quantmf.FitNMF(context.Background(), x, w.k, opts...)
	} else {
		_, err = quantmf.FitQMF(context.Background(), x, w.k, opts...)
	}
	if err != nil {
		return err
	}
	if len(at) < epochs {
		return fmt.Errorf("there were %d epochs", len(at))
	}
	if w.newton() {
		t.epoch = (at[epochs-1] - at[epochs/2-1]) / float64(epochs-epochs/2)
	} else {
		t.epoch = at[1] - at[0]
		for e := 2; e < epochs; e++ {
			t.epoch = min(t.epoch, at[e]-at[e-1])
		}
	}
	t.start = max(at[0]-began-t.epoch, 0)
	return nil
}

// overShards fits over shards, one step after the other, and measures each step and each reduce. It returns
// those of the shortest epoch, by Newton's method of the epochs after its first ones. In the first round no
// rows are kept between steps, in the others all are.
func overShards(w work, t *took, method quantmf.Method, x quantmf.Rows, opts []quantmf.FitOption) error {
	dir, err := os.MkdirTemp("", "scale-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store := &folder{dir: dir}
	ctx := context.Background()
	plan := shards.PlanNMF
	if method == quantmf.MethodQMF {
		plan = shards.PlanQMF
	}
	began := worked()
	if err := plan(ctx, store, w.shards, x, w.k, opts...); err != nil {
		return err
	}
	t.start = worked() - began
	fit, err := shards.Open(store)
	if err != nil {
		return err
	}
	fit.KeepRows(1 << 40)
	times := func(round int) (longest, all, reduce float64, at shards.Round, err error) {
		for shard := range w.shards {
			began := worked()
			if err := fit.Step(ctx, round, shard); err != nil {
				return 0, 0, 0, at, err
			}
			step := worked() - began
			longest, all = max(longest, step), all+step
		}
		began := worked()
		at, err = fit.Reduce(ctx, round)
		return longest, all, worked() - began, at, err
	}
	cold, _, _, at, err := times(0)
	if err != nil {
		return err
	}
	store.moved = 0
	first := 1 // the first epoch that counts
	if w.newton() {
		first = 5
	}
	var largest, epoch, reduce float64
	for round := 1; ; round++ {
		longest, all, last, now, err := times(round)
		if err != nil {
			return err
		}
		if now.Over { // the last round does other work
			break
		}
		largest, epoch, reduce = largest+longest, epoch+all+last, reduce+last
		if now.Epoch == at.Epoch {
			continue
		}
		if at = now; at.Epoch == first {
			t.largest, t.epoch, t.reduce, t.moved = largest, epoch, reduce, float64(store.moved)
		} else if at.Epoch > first {
			t.largest, t.epoch, t.reduce = min(largest, t.largest), min(epoch, t.epoch), min(reduce, t.reduce)
		}
		largest, epoch, reduce, store.moved = 0, 0, 0, 0
	}
	if method == quantmf.MethodNMF && !w.newton() { // round 0 of multiplicative updates is a sweep as well
		t.read = max(cold-t.largest, 0)
	}
	t.stored = float64(store.rows)
	return nil
}

// folder is a shards.Remover over files, which counts the bytes that go through it.
type folder struct {
	dir         string
	moved, rows int
}

func (f *folder) count(name string, data []byte) {
	if strings.HasPrefix(name, "rows-") {
		f.rows += len(data)
	} else {
		f.moved += len(data)
	}
}

func (f *folder) Get(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if !strings.HasPrefix(name, "rows-") {
		f.count(name, b)
	}
	return b, err
}

func (f *folder) Put(name string, data []byte) error {
	f.count(name, data)
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path+".tmp", data, 0o666); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func (f *folder) Remove(name string) error {
	err := os.Remove(filepath.Join(f.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
