//go:build unix

package beam

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/beam/internal/kit"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/shards"
)

// BenchmarkRound compares a round by Prism in this process with an epoch on one machine, of the same matrix
// and on the same processors. One run takes minutes:
//
//	go test -run '^$' -bench Round -benchtime 1x -timeout 60m
func BenchmarkRound(b *testing.B) {
	for _, size := range [][2]int{{2000, 500}, {20000, 2000}} {
		x := kit.LowRank(size[0], size[1])
		for _, nmf := range []bool{true, false} {
			for _, processors := range []int{1, 2} {
				for _, count := range []int{1, 2} {
					name := map[bool]string{true: "NMF", false: "QMF"}[nmf]
					b.Run(fmt.Sprintf("%s/%dx%d/processors=%d/shards=%d", name, size[0], size[1], processors,
						count), func(b *testing.B) {
						if processors > runtime.NumCPU() {
							b.Skip("there are not so many processors")
						}
						defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
						for range b.N {
							whole, round := epochAndRound(b, x, nmf, count)
							b.ReportMetric(whole.wall, "s/epoch")
							b.ReportMetric(whole.cpu, "cpu-s/epoch")
							b.ReportMetric(round.wall, "s/round")
							b.ReportMetric(round.cpu, "cpu-s/round")
						}
					})
				}
			}
		}
	}
}

// moment has the time of the clock and the processor time of the process, in seconds.
type moment struct{ wall, cpu float64 }

func now() moment {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	return moment{float64(time.Now().UnixNano()) / 1e9, cpu.Seconds()}
}

// per returns the time from then to m divided by count.
func (m moment) per(then moment, count int) moment {
	return moment{(m.wall - then.wall) / float64(count), (m.cpu - then.cpu) / float64(count)}
}

// epochAndRound returns the times of an epoch on one machine and of a round over shards. They are means
// between the end of the first and the end of the last, so the start of either is left out.
func epochAndRound(b *testing.B, x quantmf.Mat, nmf bool, count int) (whole, round moment) {
	ctx, epochs, method, plan := b.Context(), 5, quantmf.MethodQMF, shards.PlanQMF
	opts := []quantmf.FitOption{quantmf.WithStart(quantmf.StartScores), quantmf.WithShrinkage(0)}
	alone := []quantmf.FitOption{quantmf.WithBatch(x.Rows)}
	if nmf {
		epochs, method, plan, opts = 11, quantmf.MethodNMF, shards.PlanNMF, nil
		alone[0] = quantmf.WithUpdates(quantmf.UpdatesMultiplicative)
	}
	opts = append(opts, quantmf.WithEpochs(epochs))
	var first moment
	tell := quantmf.WithProgress(func(p quantmf.Progress) error {
		switch p.Epoch {
		case 1:
			first = now()
		case epochs:
			whole = now().per(first, epochs-1)
		}
		return nil
	})
	Must(quantmf.Fit(ctx, method, x, 10, append(append(alone, tell), opts...)...))(b)
	store := Must(OpenStore(ctx, b.TempDir()))(b)
	OK(b, plan(ctx, store, count, x, 10, opts...))
	fit := Must(shards.Open(store))(b)
	done := make(chan error, 1)
	go func() { _, err := Fit(ctx, store, Run{Retries: -1}); done <- err }()
	var from, to shards.Round
	var began, ended moment
	for {
		select {
		case err := <-done:
			OK(b, err)
			return whole, ended.per(began, to.Number-from.Number)
		case <-time.After(20 * time.Millisecond):
			at, err := fit.Round()
			if err != nil || at.Number == to.Number {
				continue
			}
			to, ended = at, now()
			if from.Number == 0 {
				from, began = to, ended
			}
		}
	}
}
