package quantmf

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quantmf/quantmf/internal/random"
)

// lognormal returns a d × n matrix of independent values, some rows constant.
func lognormal(d, n int) Mat {
	r := random.Split(5, d)
	x := NewMat(d, n)
	for i := range x.Data {
		x.Data[i] = math.Exp(normal(&r))
		if i/n%500 == 7 {
			x.Data[i] = 3
		}
	}
	return x
}

// interruptible are calls that a context ends, by name. A model of the rank goes with
// those that place samples.
func interruptible(x Mat, rank int) map[string]func(ctx context.Context, opts ...FitOption) error {
	fit := func(model string, more ...FitOption) func(ctx context.Context, opts ...FitOption) error {
		return func(ctx context.Context, opts ...FitOption) error {
			_, _, _, _, _, err := fitAny(ctx, model, x, rank, append(append([]FitOption{}, more...), opts...)...)
			return err
		}
	}
	return map[string]func(ctx context.Context, opts ...FitOption) error{
		"NMF":             fit("NMF", WithEpochs(40)),
		"NMF svd":         fit("NMF", WithStart(StartSVD), WithEpochs(5)),
		"NMF beta":        fit("NMF", WithLoss(Beta(1.5)), WithEpochs(10), WithValidation(0.1)),
		"QMF":             fit("QMF", WithEpochs(4)),
		"QMF validation":  fit("QMF", WithEpochs(4), WithValidation(0.1), WithStart(StartScores), WithShrinkage(1)),
		"QMF uniform":     fit("QMF", WithEpochs(4), WithStart(StartUniform), WithBatch(1<<20)),
		"QMFQ":            fit("QMFQ", WithEpochs(3), WithStart(StartUniform), WithProjection(KLUpdates(20))),
		"QMFQ start":      fit("QMFQ", WithEpochs(1), WithStart(StartNMF)),
		"QMFQ validation": fit("QMFQ", WithEpochs(3), WithStart(StartUniform), WithProjection(FrobeniusUpdates(20)), WithValidation(0.1)),
		"QMFQ svd":        fit("QMFQ", WithEpochs(2), WithStart(StartUniform), WithProjection(TruncatedSVD())),
		"HeldOut": func(ctx context.Context, _ ...FitOption) error {
			_, err := HeldOut(ctx, x, FitQMF, []Trial{{Rank: rank, Options: []FitOption{WithEpochs(1), WithStart(StartNMF), WithShrinkage(0)}}}, 2, 0.1, 1)
			return err
		},
	}
}

// TestCancelLatency ends every call at many moments and takes how long it goes on. At
// 6000 × 300, rank 10, on a quiet machine of two cores it is some 30 ms at most, which
// the model takes that is handed back.
func TestCancelLatency(t *testing.T) {
	if os.Getenv("QUANTMF_LATENCY") == "" {
		t.Skip("QUANTMF_LATENCY is not set: a measurement of minutes")
	}
	x := lognormal(6000, 300)
	calls := interruptible(x, 10)
	few := x
	few.Cols = 60
	for _, model := range []string{"NMF", "QMF", "QMFQ"} {
		m, _, _, _, _, err := fitAny(context.Background(), model, x, 10, WithEpochs(2), WithStart(StartUniform))
		if err != nil {
			t.Fatal(err)
		}
		calls["Transform "+model] = func(ctx context.Context, _ ...FitOption) error { _, err := m.Transform(ctx, few); return err }
	}
	only := os.Getenv("QUANTMF_LATENCY")
	for name, call := range calls {
		if only != "1" && only != name {
			continue
		}
		began := time.Now()
		var firstReport time.Duration
		if err := call(context.Background(), WithProgress(func(Progress) error {
			if firstReport == 0 {
				firstReport = time.Since(began)
			}
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		whole := time.Since(began)
		if firstReport > 100*time.Millisecond {
			t.Errorf("%s: the first report after %v", name, firstReport)
		}
		moments := 60
		if whole > 2*time.Second {
			moments = 12
		}
		var worst, sum time.Duration
		worstAt := 0
		for k := range moments {
			ctx, cancel := context.WithCancel(context.Background())
			var cancelled time.Time
			timer := time.AfterFunc(whole*time.Duration(k)/time.Duration(moments), func() { cancelled = time.Now(); cancel() })
			err := call(ctx)
			ended := time.Now()
			if timer.Stop() {
				cancel()
				continue
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			<-ctx.Done()
			took := ended.Sub(cancelled)
			sum += took
			if took > worst {
				worst, worstAt = took, k
			}
		}
		t.Logf("%-16s %6v in all, first report after %5v, goes on for %5v at most (at %d/%d), %v on average", name, whole.Round(time.Millisecond),
			firstReport.Round(time.Millisecond), worst.Round(time.Millisecond), worstAt, moments, (sum / time.Duration(moments)).Round(time.Millisecond))
	}
}
var _ = runtime.NumGoroutine
var _ = strings.Repeat
