package quantmf_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/shards"
)

// fickle is a matrix whose rows are changed from the call number from of ReadRow on.
type fickle struct {
	Mat
	calls *atomic.Int64
	from  int64
	turn  func(x []float64) error
}

func (f fickle) ReadRow(x []float64, i int) error {
	call := f.calls.Add(1)
	f.Mat.ReadRow(x, i)
	if call < f.from {
		return nil
	}
	return f.turn(x)
}

func counts() Mat {
	x := NewMat(24, 40)
	for i := range x.Data {
		x.Data[i] = float64(i*i*7%11) + 1
	}
	return x
}

// blobs is a store in memory.
type blobs struct {
	mu sync.Mutex
	of map[string][]byte
}

func (s *blobs) Get(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[name], nil
}

func (s *blobs) Put(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[name] = append([]byte{}, data...)
	return nil
}

// fits is the fit of a rank of 3 by a method, nil where there is no model.
func fits(method Method, opts ...FitOption) func(ctx context.Context, x Rows) (any, error) {
	opts = append(opts, WithWorkers(3))
	return func(ctx context.Context, x Rows) (any, error) { return orNil(Fit(ctx, method, x, 3, opts...)) }
}

// readers are the functions that fit what they read.
var readers = map[string]func(ctx context.Context, x Rows) (any, error){
	"NMF":               fits(MethodNMF, WithEpochs(2)),
	"NMF, hidden cells": fits(MethodNMF, WithEpochs(2), WithMissingValues(), WithValidation(0.1)),
	"NMF, multiplicative, SVD": fits(MethodNMF, WithEpochs(2), WithUpdates(UpdatesMultiplicative),
		WithStart(StartSVD)),
	"QMF":        fits(MethodQMF, WithEpochs(1)),
	"QMF, paper": fits(MethodQMF, WithEpochs(1), WithStart(StartUniform), WithEnds(EndsPinned)),
	"QMFQ": fits(MethodQMFQ, WithEpochs(1), WithStart(StartUniform),
		WithProjection(KLUpdates(5))),
	"BQMF": fits(MethodBQMF, WithEpochs(2), WithMissingValues(), WithValidation(0.1)),
	"PlanNMF": func(ctx context.Context, x Rows) (any, error) {
		return nil, shards.PlanNMF(ctx, &blobs{of: map[string][]byte{}}, 2, x, 3, WithEpochs(1))
	},
	"PlanQMF": func(ctx context.Context, x Rows) (any, error) {
		return nil, shards.PlanQMF(ctx, &blobs{of: map[string][]byte{}}, 2, x, 3, WithEpochs(1))
	},
}

// placers are functions that place what they read, for models of counts.
func placers(t *testing.T) map[string]func(ctx context.Context, x Rows) (any, error) {
	all := map[string]func(ctx context.Context, x Rows) (any, error){}
	for method := range MethodBQMF + 1 {
		m := Fitted(t, By(method), counts(), 3, WithEpochs(1))
		all[method.String()+", new samples"] = func(ctx context.Context, x Rows) (any, error) {
			return orNil(m.Transform(ctx, x))
		}
	}
	return all
}

// TestRowsThatChange: a row that changes between two reads is a *DataError that names it, one that cannot be
// read a *ReadError, in every fit, and there is no model.
func TestRowsThatChange(t *testing.T) {
	Slow(t)
	cause := errors.New("gone")
	turns := map[string]func(x []float64) error{
		"NaN":      func(x []float64) error { x[0] = math.NaN(); return nil },
		"infinite": func(x []float64) error { x[len(x)-1] = math.Inf(1); return nil },
		"negative": func(x []float64) error { x[3] = -5; return nil },
		"zero":     func(x []float64) error { clear(x); return nil },
		"large":    func(x []float64) error { x[0] = 1e59; return nil },
		"error":    func(x []float64) error { return cause },
	}
	all := placers(t)
	maps.Copy(all, readers)
	for name, fit := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var whole atomic.Int64
			Must(fit(t.Context(), fickle{counts(), &whole, math.MaxInt64, nil}))(t)
			last := whole.Load() // a row is read then, at least
			for what, turn := range turns {
				for _, from := range []int64{25, 25 + (last-25)/2, last - 1} {
					m, err := fit(t.Context(), fickle{counts(), new(atomic.Int64), from, turn})
					var data *DataError
					var read *ReadError
					ok := errors.As(err, &data) && data.Row >= 0
					if what == "error" {
						ok = errors.As(err, &read) && errors.Is(err, cause)
					}
					if m != nil || !ok {
						t.Errorf("%s from read %d of %d on: %v, %v", what, from, last, m, err)
					}
				}
			}
		})
	}
}

// TestReaderExits: runtime.Goexit in a reader, as by t.Fatal, ends the goroutine that fits, and no other is
// left.
func TestReaderExits(t *testing.T) {
	for name, fit := range readers {
		var whole atomic.Int64
		fit(t.Context(), fickle{counts(), &whole, math.MaxInt64, nil})
		for _, from := range []int64{1, 25, whole.Load() / 2, whole.Load() - 1} {
			ended, returned := make(chan struct{}), false
			go func() {
				defer close(ended)
				exit := func([]float64) error { runtime.Goexit(); return nil }
				fit(t.Context(), fickle{counts(), new(atomic.Int64), from, exit})
				returned = true
			}()
			<-ended
			if returned {
				t.Errorf("%s, from read %d on: the fit has returned", name, from)
			}
		}
	}
	buf := make([]byte, 1<<16)
	if all := string(buf[:runtime.Stack(buf, true)]); strings.Contains(all, "pool.(*Pool).work") {
		t.Errorf("a worker is left:\n%s", all)
	}
}

// TestOneReading: options that ask for checks, held-out cells, units and a fingerprint take one read of a row
// in all before a fit begins.
func TestOneReading(t *testing.T) {
	x := counts()
	for i := range x.Data {
		x.Data[i] = math.Ldexp(x.Data[i], 120)
	}
	stop := errors.New("stop")
	for name, opts := range map[string][]FitOption{
		"NMF":  {WithLoss(Beta(-0.5))},
		"QMF":  {WithStart(StartUniform)},
		"BQMF": {},
	} {
		var calls, before atomic.Int64
		opts = append(opts, WithMissingValues(), WithValidation(0.2),
			WithCheckpoint(1, func([]byte) error { return nil }),
			WithProgress(func(Progress) error {
				before.CompareAndSwap(0, calls.Load())
				return stop
			}))
		rows := fickle{x, &calls, math.MaxInt64, nil}
		var err error
		switch name {
		case "NMF":
			_, err = FitNMF(t.Context(), rows, 2, opts...)
		case "QMF": // and one for the extremes of the maps
			calls.Store(-int64(x.Rows))
			_, err = FitQMF(t.Context(), rows, 2, opts...)
		case "BQMF":
			_, err = FitBQMF(t.Context(), rows, 2, opts...)
		}
		if !errors.Is(err, stop) || before.Load() != int64(x.Rows) {
			t.Errorf("%s: %d rows were read %d times: %v", name, x.Rows, before.Load(), err)
		}
	}
}
