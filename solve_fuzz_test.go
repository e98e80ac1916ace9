package quantmf

// A transport of anything: floats of any bits, any options, every result and gradient. In testdata/fuzz are
// inputs that leave nothing to converge to but the rounding of logits, and one whose z/b is near the largest
// number.

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// anyBytes reads arguments from bytes; zeros follow the last.
type anyBytes struct{ data []byte }

func (b *anyBytes) byte() int {
	if len(b.data) == 0 {
		return 0
	}
	v := b.data[0]
	b.data = b.data[1:]
	return int(v)
}

// odd are numbers at which something might break.
var odd = []float64{0, 1, math.Copysign(0, -1), 0.5, 2, 1e-3, -1, 1e-10, 1e10, 1e-17, 1e-100, 1e100, 1e-300,
	1e300, -1e300, 5e-324, 0x1p-1022,
	math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 1e12, 1e-12, 1.7e15, 1e-8, 1 +
		0x1p-52, 1 - 0x1p-53}

// float reads a number: a small one of few digits, an odd one, or eight bytes of bits.
func (b *anyBytes) float() float64 {
	switch k := b.byte(); {
	case k < 128:
		return float64(k) / 64
	case k < 192:
		return odd[k%len(odd)]
	case k < 208:
		return -float64(b.byte()) / 16
	case k < 224: // near each other
		return 1 + float64(b.byte())*0x1p-52
	case k < 240: // any magnitude
		return math.Ldexp(1+float64(b.byte())/256, b.byte()*8-1024)
	default:
		var raw [8]byte
		for i := range raw {
			raw[i] = byte(b.byte())
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(raw[:]))
	}
}

func (b *anyBytes) floats(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = b.float()
	}
	return v
}

// sorted reads numbers in order.
func (b *anyBytes) sorted(n int) []float64 {
	v := b.floats(n)
	slices.Sort(v)
	return v
}

// anyProblem turns bytes into arguments.
func anyProblem(data []byte) (x, q []float64, opts []Option, rest *anyBytes) {
	b := &anyBytes{data}
	n, m, has := b.byte()%14, b.byte()%12, b.byte()
	eps := [...]float64{0.01, 0, 1, 1e-3, 1e-5, 1e-8, 1e-12, 1e12, 30, -1}[b.byte()%10]
	if has&1 != 0 {
		eps = math.Abs(b.float())
	}
	opts = []Option{WithEpsilon(eps), WithSquash(Squash(b.byte() % 5)), WithLevels(m)}
	positive := func(n int) []float64 {
		v := b.floats(n)
		for i := range v {
			v[i] = math.Abs(v[i])
		}
		return v
	}
	if has&2 != 0 {
		opts = append(opts, WithWeights(positive(n)))
	}
	if has&4 != 0 {
		opts = append(opts, WithTargetWeights(positive(m)))
	}
	if has&8 != 0 {
		opts = append(opts, WithTargets(b.sorted(m)))
	}
	switch has >> 4 & 7 {
	case 1:
		opts = append(opts, WithIterations(b.byte()%12))
	case 2:
		opts = append(opts, WithMaxIterations(b.byte()))
	case 3:
		opts = append(opts, WithTolerance(b.float()))
	case 4:
		opts = append(opts, WithMidpointRanks())
	case 5:
		opts = append(opts, WithStrict())
	case 6:
		opts = append(opts, WithIterations(b.byte()%12), WithMidpointRanks())
	}
	return b.floats(n), b.sorted(m), opts, b
}

// checkAny transports what the bytes say. It returns whether that had no error.
func checkAny(t *testing.T, data []byte) bool {
	x, q, opts, rest := anyProblem(data)
	given := slices.Clone(x)
	tr, err := Solve(x, opts...)
	if !SameBits(x, given) {
		t.Fatal("x was changed")
	}
	if err != nil {
		if !Typed(err) {
			t.Fatalf("%T: %v", err, err)
		}
		return false
	}
	zn, zm := rest.floats(len(x)), rest.floats(len(q))
	for _, v := range [][]float64{zn, zm} {
		for i := range v {
			if v[i]-v[i] != 0 {
				v[i] = 1
			}
		}
	}
	all, _ := results(t, tr, x, q, zn, zm)
	for i, v := range all {
		if j := notFinite(v); j >= 0 {
			t.Fatalf("result %d: entry %d is %v; x %v, converged %v, error %g after %d", i, j, v[j], x,
				tr.Converged,
				tr.MarginalError, tr.Iterations)
		}
	}
	if _, err := tr.Quantile(q); err == nil {
		checkOrder(t, x, q, tr, math.Inf(1))
	}
	return true
}

// FuzzSolve: whatever the bits, no panic, no NaN or infinity out of input that is
// accepted, no error without a type; order and range hold.
func FuzzSolve(f *testing.F) {
	f.Add([]byte{3, 3, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{2, 3, 4, 4, 1, 64, 135, 64, 0, 64, 0, 1, 2})
	f.Add([]byte{5, 4, 15, 5, 1, 0, 1, 2, 3, 4, 64, 64, 64, 64, 64, 140, 1, 2, 3, 9, 8, 7, 6, 5})
	f.Add([]byte{6, 2, 16, 3, 2, 3, 4, 200, 33, 215, 1, 215, 2, 139, 140, 141, 142})
	for k := range 8 {
		r := random.Split(32, k)
		data := make([]byte, 120)
		for i := range data {
			data[i] = byte(r.IntN(128))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 400 {
			t.Skip()
		}
		checkAny(t, data)
	})
}

// TestSolveAnything is what FuzzSolve does, for bytes that are drawn.
func TestSolveAnything(t *testing.T) {
	problems := Draws(40000, 4000, 1500)
	r := random.Split(31, 0)
	solved := 0
	for range problems {
		data := make([]byte, 40+r.IntN(200))
		tame := r.IntN(4)
		for i := range data {
			data[i] = byte(r.IntN(256))
			if tame > 0 && r.IntN(20) > 0 {
				data[i] %= byte(100 + tame*28)
			}
		}
		if checkAny(t, data) {
			solved++
		}
	}
	t.Logf("%d of %d were accepted", solved, problems)
	if solved < problems/10 {
		t.Errorf("%d of %d were accepted", solved, problems)
	}
}
