package quantmf

// Tests of fits whose rows are split: the bits of a fit on one machine, steps that are done twice, too late or out
// of order, and blobs that are lost, cut, flipped or taken from elsewhere.

import (
	"bytes"
	"context"
	"math"
	"sync"
	"testing"

	"github.com/quantmf/quantmf/internal/random"
)

// shelf is a store in memory. It fails a test that gives a name other bytes than before.
type shelf struct {
	t       *testing.T
	mu      sync.Mutex
	blobs   map[string][]byte
	before  map[string][]byte // all that was ever put
	puts    int
	keepAll bool
}

func newShelf(t *testing.T) *shelf {
	return &shelf{t: t, blobs: map[string][]byte{}, before: map[string][]byte{}}
}

func (s *shelf) Get(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[name], nil
}

func (s *shelf) Put(name string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	data = append([]byte(nil), data...)
	if old, had := s.before[name]; had && !bytes.Equal(old, data) {
		s.t.Errorf("%s was given other bytes", name)
	}
	s.blobs[name], s.before[name] = data, data
	s.puts++
	return nil
}

func (s *shelf) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, name)
	return nil
}

// tabled is d × n counts, every cell positive under no loss that needs it.
func tabled(d, n int) Mat {
	src := random.Split(11, 4)
	x := NewMat(d, n)
	for i := range d {
		for j := range n {
			x.Data[i*n+j] = math.Floor(20*src.Float64()*src.Float64()*float64(1+(i+j)%4)) + 1
		}
	}
	for j := range n {
		x.Data[3*n+j] = 2 // constant
	}
	return x
}

// finish makes all rounds of a fit, of some steps each in another order.
func finish(t *testing.T, s *shelf) Model {
	t.Helper()
	fit, err := OpenSharded(s)
	if err != nil {
		t.Fatal(err)
	}
	for round := 0; ; round++ {
		for i := range fit.Shards() {
			if err := fit.Step(context.Background(), round, (i*3+round)%fit.Shards()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range fit.Shards() { // 3 may divide their number
			if err := fit.Step(context.Background(), round, i); err != nil {
				t.Fatal(err)
			}
		}
		at, err := fit.Reduce(context.Background(), round)
		if err != nil {
			t.Fatal(err)
		}
		if at.Over {
			break
		}
	}
	m, err := fit.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func marshalled(t *testing.T, m Model) []byte {
	t.Helper()
	b, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestShards: a fit in shards has the bytes of the fit on one machine.
func TestShards(t *testing.T) {
	x := tabled(300, 70)
	holes := holed(x, 0.1)
	small := x.Clone()
	for j := range small.Cols {
		small.Data[5*small.Cols+j] *= 0x1p-300
		small.Data[7*small.Cols+j] *= 0x1p-200
	}
	signed := x.Clone()
	for i := range signed.Data {
		signed.Data[i] -= 9
	}
	src := random.Split(3, 3)
	u, v := NewMat(x.Rows, 4), NewMat(4, x.Cols)
	for _, m := range []Mat{u, v} {
		for i := range m.Data {
			m.Data[i] = 0.5 + src.Float64()
		}
	}
	given := []FitOption{WithInit(u, v), WithShrinkage(5), WithEpochs(3)}
	for name, c := range map[string]struct {
		x    Mat
		qmf  bool
		opts []FitOption
	}{
		"NMF":                 {x, false, []FitOption{WithEpochs(7)}},
		"NMF, penalty":        {x, false, []FitOption{WithEpochs(7), WithPenalty(0.1), WithPatience(2)}},
		"NMF, missing":        {holes, false, []FitOption{WithEpochs(7), WithMissingValues()}},
		"NMF, validation":     {holes, false, []FitOption{WithEpochs(60), WithMissingValues(), WithValidation(0.2), WithPatience(3)}},
		"NMF, Frobenius, SVD": {small, false, []FitOption{WithEpochs(5), WithLoss(Frobenius), WithStart(StartSVD)}},
		"NMF, patience":       {x, false, []FitOption{WithEpochs(400), WithPatience(1)}},
		"NMF, no epoch":       {x, false, []FitOption{WithEpochs(0)}},
		"QMF":                 {x, true, given},
		"QMF, no epoch":       {x, true, append(given[:2:2], WithEpochs(0))},
		"QMF, chosen":         {x, true, []FitOption{WithEpochs(2)}},
		"QMF, missing":        {holes, true, append(given, WithMissingValues())},
		"QMF, validation":     {holes, true, append(given, WithMissingValues(), WithValidation(0.2), WithEpochs(12), WithPatience(2))},
		"QMF, patience":       {x, true, append(given, WithEpochs(30), WithPatience(1), WithPenalty(0.3), WithLevels(4))},
		"QMF, paper":          {x, true, []FitOption{WithStart(StartUniform), WithEpochs(4)}},
		"QMF, paper, best":    {x, true, []FitOption{WithStart(StartUniform), WithEpochs(9), WithLearningRate(1), WithValidation(0.1), WithPenalty(1), WithEnds(EndsPinned)}},
		"QMF, signed":         {signed, true, append(given, WithLoss(Frobenius))},
		"QMF, units":          {small, true, append(given, WithLoss(Beta(0.5)), WithLevels(5))},
		"QMF, convergence":    {x, true, append(given, WithMaxIterations(2))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want Model
			var err error
			if c.qmf {
				want, err = FitQMF(context.Background(), c.x, 4, append(c.opts, WithBatch(1000))...)
			} else {
				want, err = FitNMF(context.Background(), c.x, 4, append(c.opts, WithUpdates(UpdatesMultiplicative))...)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, shards := range []int{1, 2, 3, 8} {
				s := newShelf(t)
				if c.qmf {
					err = PlanQMF(context.Background(), s, shards, c.x, 4, append(c.opts, WithBatch(1000))...)
				} else if shards == 8 {
					continue // there are four runs
				} else {
					err = PlanNMF(context.Background(), s, shards, c.x, 4, c.opts...)
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := finish(t, s); !bytes.Equal(marshalled(t, got), marshalled(t, want)) {
					t.Errorf("%d shards: another model", shards)
				}
			}
		})
	}
}
