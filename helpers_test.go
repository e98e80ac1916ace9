package quantmf

// What tests share: matrices, numbers, ways to fit, contexts, and changes to files. Names in capitals are for
// the tests from outside of the package, too.

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// Long is set where tests may take minutes: whole data sets, all seeds and epochs.
var Long = os.Getenv("QUANTMF_LONG") != ""

// AllEnd waits until no more goroutines are there than before. One that was told to end does so when
// the machine gives it the time: 100,000 looks, each with a sleep that gives others a turn, are minutes.
func AllEnd(t *testing.T, before int) {
	t.Helper()
	for range 100000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before,
		stacks[:runtime.Stack(stacks, true)])
}

// allocations counts those of a call, on average, without garbage collections, which empty pools of
// workspaces and the lists that channels wait in.
func allocations(calls int, call func()) float64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return testing.AllocsPerRun(calls, call)
}

// allocated are the bytes that a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// load reads a gzipped table with names in the first row and column.
func load(t testing.TB, path string) Mat {
	t.Helper()
	return loadRows(t, path, math.MaxInt)
}

// loadRows is load of the first rows.
func loadRows(t testing.TB, path string, most int) Mat {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skip(path + " is not here")
	}
	defer f.Close()
	z := Must(gzip.NewReader(f))(t)
	var rows [][]float64
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<24)
	for first := true; len(rows) < most && s.Scan(); first = false {
		if first {
			continue
		}
		var row []float64
		for _, field := range strings.Split(s.Text(), "\t")[1:] {
			row = append(row, Must(strconv.ParseFloat(field, 64))(t))
		}
		rows = append(rows, row)
	}
	return Must(MatOf(rows...))(t)
}

// toy is the paper's synthetic problem.
func toy(seed int) Mat { return Mat{Rows: 160, Cols: 80, Stride: 80, Data: Toy(seed)} }

// scores returns d × n log ratios of mixed sign; the last row is constant.
func scores(seed uint64, d, n int) Mat {
	return Mat{Rows: d, Cols: n, Stride: n, Data: Curves(seed, d, n)}
}

// noisyProduct is a product of rank k with noise.
func noisyProduct() (noisy Mat, k int) {
	return Mat{Rows: 60, Cols: 40, Stride: 40, Data: NoisyProduct()}, 2
}

// newCells reads x, and returns the cells that a fit with these settings sees.
func newCells(x Rows, s *qmf.Settings) (*fit.Cells, error) { return readCells(x, s.Rules()) }

// Drawn is a d × n matrix of numbers that are drawn row by row.
func Drawn(d, n int, draw func() float64) Mat {
	x := NewMat(d, n)
	for i := range x.Data {
		x.Data[i] = draw()
	}
	return x
}

// Dot is Σ a_j b_j.
func Dot(a, b []float64) float64 {
	s := 0.0
	for j, v := range a {
		s += v * b[j]
	}
	return s
}

// Times is UV.
func Times(u, v Mat) Mat {
	x := NewMat(u.Rows, v.Cols)
	for i := range x.Rows {
		product(x.Row(i), u.Row(i), v)
	}
	return x
}

func first(x Mat, rows int) Mat {
	x.Rows = min(x.Rows, rows)
	return x
}

// Part is a view of the columns from one to before another.
func Part(x Mat, from, to int) Mat {
	return Mat{Rows: x.Rows, Cols: to - from, Stride: x.Stride, Data: x.Data[from:]}
}

// columnsOf copies the columns of x that keep says.
func columnsOf(x Mat, keep func(j int) bool) Mat {
	var columns []int
	for j := range x.Cols {
		if keep(j) {
			columns = append(columns, j)
		}
	}
	out := NewMat(x.Rows, len(columns))
	for i := range x.Rows {
		for to, j := range columns {
			out.Set(i, to, x.At(i, j))
		}
	}
	return out
}

// holed returns x with about a share of its cells NaN.
func holed(x Mat, share float64) Mat {
	y := x.Clone()
	Hole(y.Data, share)
	return y
}

// counts draws a matrix of small counts, most of them zero, with a row and a
// column of zeros and a constant row.
func counts(d, n int) Mat {
	r := random.Split(5, 6)
	x := NewMat(d, n)
	for i := range d {
		for j := range n {
			rate := 3 * r.Float64() * r.Float64() * r.Float64()
			for p := r.Float64(); p > math.Exp(-rate); p *= r.Float64() {
				x.Row(i)[j]++
			}
		}
	}
	clear(x.Row(1))
	for j := range n {
		x.Set(2, j, 4)
	}
	for i := range d {
		x.Set(i, n/2, 0)
	}
	return x
}

// near1 returns rank-two data with noise, whose largest value lies in [1,4): so the
// units of x are those that a fit chooses for it elsewhere.
func near1(seed uint64, d, n int) Mat {
	r := random.Split(seed, 77)
	y := NewMat(d, n)
	for i := range d {
		a := r.Float64()
		for j := range n {
			s := float64(j) / float64(n)
			y.Set(i, j, 0.1+a*s+(1-a)*4*s*(1-s)+0.2*r.Float64())
		}
	}
	_, e := math.Frexp(slices.Max(y.Data))
	return TimesPower(y, -((e - 1) &^ 1))
}

func Mean(v []float64) float64 { return TotalOf(v) / float64(len(v)) }

// correlation is that of two rows.
func correlation(a, b []float64) float64 {
	ma, mb := Mean(a), Mean(b)
	var aa, bb, ab float64
	for i := range a {
		p, q := a[i]-ma, b[i]-mb
		aa, bb, ab = aa+p*p, bb+q*q, ab+p*q
	}
	return ab / math.Sqrt(aa*bb)
}

func largestDifference(a, b []float64) float64 {
	top := 0.0
	for i := range a {
		top = max(top, math.Abs(a[i]-b[i])) // NaN, once there is one
	}
	return top
}

// Textbook is Δ(x, t) as books print it, for t > 0, with 0 log 0 = 0.
func Textbook(beta, x, t float64) float64 {
	switch {
	case beta == 1 && x == 0:
		return t
	case beta == 1:
		return x*math.Log(x/t) - x + t
	case beta == 0:
		return x/t - math.Log(x/t) - 1
	case beta == 2:
		return (x - t) * (x - t) / 2
	}
	return (math.Pow(x, beta) + (beta-1)*math.Pow(t, beta) - beta*x*math.Pow(t, beta-1)) / (beta * (beta - 1))
}

// MeanOver is the mean of Δ(x, fit) over the cells that of picks.
func MeanOver(beta float64, x, fit Mat, of func(i, j int) bool) float64 {
	sum, count := 0.0, 0
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			if of(i, j) {
				sum += Textbook(beta, v, fit.At(i, j))
				count++
			}
		}
	}
	return sum / float64(count)
}

// Missing picks the cells that x lacks.
func Missing(x Mat) func(i, j int) bool {
	return func(i, j int) bool { return math.IsNaN(x.At(i, j)) }
}

// RowMeans has in every cell the mean of those that x has in the row.
func RowMeans(x Mat) Mat {
	means := NewMat(x.Dims())
	for i := range x.Rows {
		sum, seen := 0.0, 0.0
		for _, v := range x.Row(i) {
			if v == v {
				sum, seen = sum+v, seen+1
			}
		}
		for j := range x.Cols {
			means.Set(i, j, sum/seen)
		}
	}
	return means
}

// quick are options by which a fit of a method is short: a QMFQ by its quickest projection.
func quick(method Method) []FitOption {
	if method == MethodQMFQ {
		return []FitOption{WithProjection(KLUpdates(3))}
	}
	return nil
}

// threeModels fits all three, QMFQ by few epochs.
func threeModels(t *testing.T, x Mat, k int) map[string]Model {
	t.Helper()
	return map[string]Model{"NMF": Fitted(t, FitNMF, x, k), "QMF": Fitted(t, FitQMF, x, k),
		"QMFQ": Fitted(t, FitQMFQ, x, k, WithEpochs(30))}
}

// Numbers returns all that a model says of itself and of new samples like x.
func Numbers(t testing.TB, m Model, x Mat) [][]float64 {
	t.Helper()
	f := Common(m)
	out := [][]float64{m.Reconstruct().Data, m.Shares().Data, f.U.Data, f.V.Data, f.History, f.Validation}
	switch m := m.(type) {
	case *QMF:
		out = append(out, m.Quantiles.Data, m.Weights.Data, m.Bend(), m.MarginalErrors())
	case *QMFQ:
		y := Must(m.Normalize(x))(t)
		out = append(out, y.Data, m.Bend())
	case *BQMF:
		lo, hi, err := m.Interval(0.8)
		OK(t, err)
		for i, v := range lo.Data {
			if v > hi.Data[i] {
				t.Fatalf("cell %d: an interval from %v to %v", i, v, hi.Data[i])
			}
		}
		loadings, deviations := m.Loadings()
		out = append(out, lo.Data, hi.Data, m.Median().Data, m.Deviation().Data, m.Relevance, m.RowNoise,
			m.SampleNoise, []float64{m.LeaveOneOut}, m.Sample(1).Data, loadings.Data, deviations.Data)
	}
	ctx := context.Background()
	v, err1 := m.Transform(ctx, x)
	score, err2 := m.Score(ctx, x)
	loss, err3 := m.Loss(x)
	g, err4 := m.Goodness(x)
	b, err5 := m.MarshalBinary()
	OK(t, errors.Join(err1, err2, err3, err4, err5))
	out = append(out, v.Data, []float64{score, loss})
	for _, g := range g {
		out = append(out, []float64{g.Divergence, g.Spread, g.Explained})
	}
	if _, err := UnmarshalModel(b); err != nil {
		t.Fatalf("the file cannot be read: %v", err)
	}
	return out
}

func allFinite(t testing.TB, name string, m Model, x Mat) {
	t.Helper()
	for i, v := range Numbers(t, m, x) {
		if j := notFinite(v); j >= 0 {
			t.Fatalf("%s: numbers %d: entry %d is %v", name, i, j, v[j])
		}
	}
}

// SameBits tells whether numbers are the same to the bit, NaN and the signs of zeros included.
func SameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(v, w float64) bool {
		return math.Float64bits(v) == math.Float64bits(w)
	})
}

// Ending is a context that counts how often it is asked whether it has ended, which it has from the At-th
// time on, if At is above 0.
type Ending struct {
	context.Context
	At, Asked int64
}

func (e *Ending) Err() error {
	if n := atomic.AddInt64(&e.Asked, 1); e.At > 0 && n >= e.At {
		return context.Canceled
	}
	return nil
}

// altered returns a copy of a file with one number of a section replaced, its sum right,
// and where the number lies; -1 where the section is shorter.
func altered(data []byte, tag string, number int, value uint64) ([]byte, int64) {
	b := bytes.Clone(data)
	for at := headerSize; at < len(b); {
		n := int(binary.LittleEndian.Uint64(b[at+8:]))
		p := b[at+sectionSize : at+sectionSize+n]
		if string(b[at:at+4]) == tag {
			if 8*number+8 > n {
				return nil, -1
			}
			binary.LittleEndian.PutUint64(p[8*number:], value)
			binary.LittleEndian.PutUint32(b[at+sectionSize+n:], crc32.ChecksumIEEE(p))
			return b, int64(at + sectionSize + 8*number)
		}
		at += sectionSize + n + 4
	}
	return nil, -1
}

// Keep is an option that keeps the states of a fit after each epoch.
func Keep(states *[][]byte) FitOption {
	return WithCheckpoint(1, func(s []byte) error { *states = append(*states, s); return nil })
}

// FileOf returns the file of a model.
func FileOf(t *testing.T, m Model) []byte {
	t.Helper()
	return Must(m.MarshalBinary())(t)
}

func real(v ...float64) (bits []uint64) {
	for _, x := range v {
		bits = append(bits, math.Float64bits(x))
	}
	return bits
}

var noNumber = real(math.NaN(), math.Inf(1), math.Inf(-1))

// some returns all the cases, or under -short those of the given indices: one of each kind.
func some[T any](cases []T, short ...int) []T {
	if !testing.Short() {
		return cases
	}
	few := make([]T, 0, len(short))
	for _, i := range short {
		few = append(few, cases[i])
	}
	return few
}

// Draws is how many cases a test draws: whole with QUANTMF_LONG, usual without, few under -short.
func Draws(whole, usual, few int) int {
	switch {
	case Long:
		return whole
	case testing.Short():
		return few
	}
	return usual
}

// Sizes and numbers of files, by their layout (internal/section).
const headerSize, sectionSize = 24, 20

func get32(b []byte) uint32              { return binary.LittleEndian.Uint32(b) }
func get64(b []byte) uint64              { return binary.LittleEndian.Uint64(b) }
func append64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

// fingerprint hashes matrices in memory.
func fingerprint(ms ...Mat) uint64 {
	h := fit.NewHash()
	for _, m := range ms {
		hashMat(&h, fit.Dense(m))
	}
	return uint64(h)
}

// DataAt tells whether an error is one of data in that row and column.
func DataAt(err error, row, col int) bool {
	var data *DataError
	return errors.As(err, &data) && data.Row == row && data.Col == col
}

// OptionOf is the option that an error names.
func OptionOf(err error) string {
	var option *OptionError
	if !errors.As(err, &option) {
		return ""
	}
	return option.Option
}

// ErrorOf is the error of a call.
func ErrorOf[T any](_ T, err error) error { return err }

// Fitted is the model of a fit that succeeds.
func Fitted[M Model](t testing.TB, fit func(context.Context, Rows, int, ...FitOption) (M, error), x Rows,
	k int, opts ...FitOption) M {
	t.Helper()
	return Must(fit(t.Context(), x, k, opts...))(t)
}

// Answer is what a model says of x by one of its methods.
func Answer[V any](t testing.TB, ask func(context.Context, Rows) (V, error), x Rows) V {
	t.Helper()
	return Must(ask(t.Context(), x))(t)
}

// Hidden is HeldOut where it succeeds.
func Hidden[M Model](t testing.TB, x Rows, fit func(context.Context, Rows, int, ...FitOption) (M, error),
	trials []Trial, masks Masks) []Prediction {
	t.Helper()
	return Must(HeldOut(t.Context(), x, fit, trials, masks))(t)
}

// Solved is a transport that can be solved.
func Solved(t testing.TB, x []float64, opts ...Option) *Transport {
	t.Helper()
	return Must(Solve(x, opts...))(t)
}

// By is the fit by a method.
func By(method Method) func(context.Context, Rows, int, ...FitOption) (Model, error) {
	return func(ctx context.Context, x Rows, k int, o ...FitOption) (Model, error) {
		return Fit(ctx, method, x, k, o...)
	}
}
