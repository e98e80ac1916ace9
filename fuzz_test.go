package quantmf

// The fuzz target of fits: small matrices of any numbers, any options. Inputs that were found, or that show a
// fault once mended, are in testdata/fuzz, some under names that say which.

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/option"
)

// Typed tells whether an error is one of the package's.
func Typed(err error) bool {
	var (
		option  *OptionError
		data    *DataError
		shape   *ShapeError
		format  *FormatError
		working *ConvergenceError
	)
	return errors.As(err, &option) || errors.As(err, &data) || errors.As(err, &shape) ||
		errors.As(err, &format) || errors.As(err, &working)
}

// reader takes numbers from bytes, zeros behind their end.
type reader []byte

func (r *reader) byte() int {
	if len(*r) == 0 {
		return 0
	}
	b := (*r)[0]
	*r = (*r)[1:]
	return int(b)
}

// number takes one of few values that meet the limits of something, or any bits.
func (r *reader) number() float64 {
	some := [...]float64{0, 1, 2, 3, 0.5, 1e-3, 10, 1e60, 1e-60, 1e-170, 5e-324, 1e-300, 1e-100, 1e30, -1,
		-1e-170, -1e60, 1e12, 1e13,
		1 + 0x1p-52, math.NaN(), math.Inf(1), 1e-30, 1e-9, 7}
	switch k := r.byte(); {
	case k < len(some):
		return some[k]
	case k < 128:
		return float64(k) - 64
	case k < 200:
		return math.Ldexp(float64(k), r.byte()*8-1074)
	}
	var b [8]byte
	copy(b[:], *r)
	*r = (*r)[min(8, len(*r)):]
	return math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
}

func (r *reader) matrix(d, n int) Mat {
	x := NewMat(d, n)
	for i := range x.Data {
		x.Data[i] = r.number()
	}
	return x
}

// FuzzFits: a fit of finite numbers has finite numbers, what cannot be fitted is a typed
// error, nothing panics, and nothing given is changed.
func FuzzFits(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 4, 4, 2, 9, 4, 8, 10, 10, 1, 66, 65, 0, 3, 4, 9, 9, 10, 1})
	// an NMF by multiplicative updates or by Newton's method, a QMF, a QMFQ; KL or Frobenius; missing cells
	// or none
	for kind := range byte(16) {
		seed := []byte{[]byte{0, 33, 1, 2}[kind&3], 4, 5, 1, kind >> 2 & 1, 140, kind >> 3, 0x40}
		for i := range 30 {
			seed = append(seed, byte(65+i*i%11))
			if kind >= 8 && i%7 == 3 {
				seed[len(seed)-1] = 20
			}
		}
		f.Add(seed)
	}
	f.Add([]byte{224, 5, 6, 2, 1, 140, 0, 0, 66, 67, 68, 70, 66, 64, 65, 66, 68, 66, 71, 68, 70, 72, 66, 64,
		65, 66, 68, 66, 71, 68, 70, 72})
	f.Fuzz(fitBytes)
}

// fitBytes fits what the bytes say.
func fitBytes(t *testing.T, data []byte) {
	r := reader(data)
	first := r.byte()
	model, d, n, rank := first%3, 1+r.byte()%6, 1+r.byte()%7, 1+r.byte()%4
	if first >= 224 {
		model = 3
	}
	losses := [...]Loss{KL, Frobenius, Frobenius, Beta(0), -1, -2, 0.5, 1.5, 3, 4, 1 - 0x1p-53, 1e-12,
		-5e-324}
	var loss Loss
	if k := r.byte(); k < 200 {
		loss = losses[k%len(losses)]
	} else {
		loss = Loss(r.number())
	}
	epochs := r.byte()
	if epochs < 128 {
		epochs %= 5
	} else { // enough for Newton's method to follow its first multiplicative updates, and to stand still
		epochs = 4 + epochs%16
	}
	opts := []FitOption{WithLoss(loss), WithEpochs(epochs)}
	more := []func(){
		func() { opts = append(opts, WithMissingValues()) },
		func() { opts = append(opts, WithValidation(0.3)) },
		func() { opts = append(opts, WithStart(Start(r.byte()%5))) },
		func() { opts = append(opts, WithPenalty(r.number())) },
		func() {
			opts = append(opts, WithPenalties(Penalties{r.number(), r.number(), r.number(), r.number()}))
		},
		func() { opts = append(opts, WithFixedU(r.matrix(d, 1+r.byte()%rank))) },
		func() { opts = append(opts, WithInit(r.matrix(d, rank), r.matrix(rank, n))) },
		func() { opts = append(opts, WithPatience(1+r.byte()%3), WithRestarts(1+r.byte()%2)) },
		func() { opts = append(opts, WithEnds(Ends(r.byte()%2))) },
		func() { opts = append(opts, WithSquash(Squash(r.byte()%4))) },
		func() { opts = append(opts, WithEpsilon(r.number())) },
		func() { opts = append(opts, WithLevels(2+r.byte()%6)) },
		func() { opts = append(opts, WithLearningRate(r.number())) },
		func() { opts = append(opts, WithShrinkage(r.number())) },
		func() { opts = append(opts, WithBatch(1+r.byte()%4)) },
		func() {
			opts = append(opts, []FitOption{WithProjection(KLUpdates(2)), WithProjection(FrobeniusUpdates(3)),
				WithProjection(TruncatedSVD())}[r.byte()%3])
		},
	}
	if first/32%2 == 0 {
		opts = append(opts, WithUpdates(UpdatesMultiplicative))
	}
	if model == 2 {
		opts = append(opts, WithProjection(KLUpdates(3)))
	}
	bits := r.byte() | r.byte()<<8
	for k, add := range more {
		if bits>>k&1 == 1 {
			add()
		}
	}
	if model == 1 || model == 2 {
		opts = append(opts, WithMaxIterations(100))
	}
	takes := [...]option.Function{option.FitNMF, option.FitQMF, option.FitQMFQ, option.FitBQMF}[model].Takes
	opts = slices.DeleteFunc(opts, func(o FitOption) bool { return !takes.Has(o.setting().kind) })
	x := r.matrix(d, n)
	t.Logf("model %d, %d × %d, rank %d, x %v", model, d, n, rank, x.Data)
	for _, o := range opts {
		t.Log(o.setting().kind, o.setting().value)
	}
	before := slices.Clone(x.Data)
	ctx := context.Background()
	m, err := Fit(ctx, Method(model), x, rank, opts...)
	if !SameBits(x.Data, before) {
		t.Fatalf("x changed from %v to %v", before, x.Data)
	}
	if err != nil {
		if !Typed(err) {
			t.Fatalf("an error of another type: %v", err)
		}
		return
	}
	for i, v := range Numbers(t, m, x) {
		if j := notFinite(v); j >= 0 && !(i == 6 && model == 2 && v[j] != v[j] && x.Data[j] != x.Data[j]) {
			t.Fatalf("model %d of %v, loss %v: numbers %d: entry %d is %v", model, x, loss, i, j, v[j])
		}
	}
}
