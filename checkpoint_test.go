package quantmf

import (
	"bytes"
	"context"
	"errors"
	"testing"
)

// TestResume: from every state that a fit saved, whatever the workers, the rest
// of it gives the bits of the fit that never stopped.
func TestResume(t *testing.T) {
	x := holed(toy(2), 0.05)
	x.Rows, x.Cols = 34, 25
	base := []FitOption{WithMissingValues(), WithEpochs(6), WithSeed(4)}
	for name, extra := range map[string][]FitOption{
		"plain":      {WithLevels(5)},
		"whole":      {WithBatch(1000), WithEnds(EndsPinned)},
		"uniform":    {WithStart(StartUniform), WithSchedule(ScheduleConstant)},
		"validation": {WithValidation(0.1), WithShrinkage(5)},
		"restarts":   {WithRestarts(3), WithLoss(Frobenius)},
		"patience":   {WithValidation(0.2), WithRestarts(2), WithPatience(1)},
	} {
		opts := append(append([]FitOption{}, base...), extra...)
		plain, err := FitQMF(context.Background(), x, 3, opts...)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := plain.MarshalBinary()
		var states [][]byte
		save := WithCheckpoint(2, func(s []byte) error { states = append(states, s); return nil })
		m, err := FitQMF(context.Background(), x, 3, append(opts, save)...)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := m.MarshalBinary(); !bytes.Equal(got, want) {
			t.Errorf("%s: saving states changes the fit", name)
		}
		if len(states) < 2 {
			t.Errorf("%s: %d states", name, len(states))
		}
		for i, s := range states {
			m, err := FitQMF(context.Background(), x, 3, append(opts, WithResume(s), WithWorkers(1+i%3))...)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, _ := m.MarshalBinary(); !bytes.Equal(got, want) {
				t.Errorf("%s: resumed from state %d the fit differs", name, i)
			}
		}
		if name == "whole" || name == "uniform" || name == "plain" {
			continue
		}
		// The same for NMF, with what it takes.
		opts = append([]FitOption{}, base...)
		for _, o := range extra {
			if forNMF.takes.has(o.setting().kind) {
				opts = append(opts, o)
			}
		}
		n, err := FitNMF(context.Background(), x, 3, opts...)
		if err != nil {
			t.Fatal(err)
		}
		want, _ = n.MarshalBinary()
		states = nil
		if _, err := FitNMF(context.Background(), x, 3, append(opts, save)...); err != nil {
			t.Fatal(err)
		}
		for i, s := range states {
			m, err := FitNMF(context.Background(), x, 3, append(opts, WithResume(s), WithWorkers(1+i%3))...)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, _ := m.MarshalBinary(); !bytes.Equal(got, want) {
				t.Errorf("%s: NMF resumed from state %d differs", name, i)
			}
		}
	}
}

// TestResumeQMFQ: the same for QMFQ.
func TestResumeQMFQ(t *testing.T) {
	x := toy(2)
	x.Rows, x.Cols = 34, 20
	y := holed(x, 0.05)
	base := []FitOption{WithEpochs(5), WithSeed(4), WithLevels(5)}
	for name, c := range map[string]struct {
		x    Mat
		more []FitOption
	}{
		"plain":      {x, []FitOption{WithProjection(KLUpdates(7))}},
		"svd":        {x, []FitOption{WithProjection(TruncatedSVD()), WithSchedule(ScheduleConstant)}},
		"uniform":    {y, []FitOption{WithMissingValues(), WithStart(StartUniform), WithProjection(FrobeniusUpdates(9)), WithValidation(0.1)}},
		"missing":    {y, []FitOption{WithMissingValues(), WithEnds(EndsPinned), WithRestarts(2)}},
		"validation": {x, []FitOption{WithValidation(0.1), WithRestarts(3), WithLoss(Frobenius), WithLearningRate(0.5)}},
		"patience":   {y, []FitOption{WithMissingValues(), WithValidation(0.2), WithRestarts(2), WithPatience(1), WithProjection(FrobeniusUpdates(5)), WithLearningRate(1)}},
	} {
		opts := append(append([]FitOption{}, base...), c.more...)
		plain, err := FitQMFQ(context.Background(), c.x, 3, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if name == "patience" && len(plain.History) == 6 {
			t.Error("patience did not run out: nothing is tested")
		}
		want, _ := plain.MarshalBinary()
		var states [][]byte
		save := WithCheckpoint(2, func(s []byte) error { states = append(states, s); return nil })
		m, err := FitQMFQ(context.Background(), c.x, 3, append(opts, save)...)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := m.MarshalBinary(); !bytes.Equal(got, want) {
			t.Errorf("%s: saving states changes the fit", name)
		}
		if len(states) < 2 {
			t.Errorf("%s: %d states", name, len(states))
		}
		for i, s := range states {
			m, err := FitQMFQ(context.Background(), c.x, 3, append(opts, WithResume(s), WithWorkers(1+i%3))...)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, _ := m.MarshalBinary(); !bytes.Equal(got, want) {
				t.Errorf("%s: resumed from state %d the fit differs", name, i)
			}
		}
		var p QMFQ
		if err := p.UnmarshalBinary(want); err != nil {
			t.Fatal(err)
		}
		closeTo(t, "Validation", p.Validation, plain.Validation, 0)
	}
}

// TestResumeRefuses: other data, other options and damaged states are errors that
// say which.
func TestResumeRefuses(t *testing.T) {
	x := toy(2)
	x.Rows = 20
	ctx := context.Background()
	var state []byte
	opts := []FitOption{WithEpochs(4), WithCheckpoint(3, func(s []byte) error { state = s; return nil })}
	if _, err := FitQMF(ctx, x, 2, opts...); err != nil {
		t.Fatal(err)
	}
	var option *OptionError
	var data *DataError
	var format *FormatError
	resume := WithResume(state)
	if _, err := FitQMF(ctx, x, 2, WithEpochs(5), resume); !errors.As(err, &option) || option.Option != "WithEpochs" {
		t.Errorf("other epochs: %v", err)
	}
	if _, err := FitQMF(ctx, x, 3, WithEpochs(4), resume); !errors.As(err, &option) || option.Option != "rank" {
		t.Errorf("other rank: %v", err)
	}
	if _, err := FitQMF(ctx, x, 2, WithEpochs(4), WithSeed(2), resume); !errors.As(err, &option) || option.Option != "WithSeed" {
		t.Errorf("other seed: %v", err)
	}
	y := x.Clone()
	y.Set(0, 0, y.At(0, 0)+1)
	if _, err := FitQMF(ctx, y, 2, WithEpochs(4), resume); !errors.As(err, &data) {
		t.Errorf("other data: %v", err)
	}
	if _, err := FitNMF(ctx, x, 2, WithEpochs(4), resume); !errors.As(err, &format) || format.Problem != "this is a state of a fit of QMF, not a state of a fit of NMF" {
		t.Errorf("another model: %v", err)
	}
	u, v := NewMat(20, 2), NewMat(2, x.Cols)
	for _, f := range []Mat{u, v} {
		for i := range f.Data {
			f.Data[i] = 1 + float64(i%3)
		}
	}
	var given []byte
	for name, fit := range map[string]func(...FitOption) error{
		"NMF":  func(o ...FitOption) error { _, err := FitNMF(ctx, x, 2, o...); return err },
		"QMF":  func(o ...FitOption) error { _, err := FitQMF(ctx, x, 2, o...); return err },
		"QMFQ": func(o ...FitOption) error { _, err := FitQMFQ(ctx, x, 2, o...); return err },
	} {
		opts := []FitOption{WithEpochs(3), WithInit(u, v)}
		if err := fit(append(opts, WithCheckpoint(2, func(s []byte) error { given = s; return nil }))...); err != nil {
			t.Fatal(err)
		}
		v.Set(0, 0, v.At(0, 0)+1)
		if err := fit(append(opts, WithResume(given))...); !errors.As(err, &option) || option.Option != "WithInit" {
			t.Errorf("%s, other factors: %v", name, err)
		}
		v.Set(0, 0, v.At(0, 0)-1)
		// A history that is too short.
		kind := get32(given[12:])
		f, err := decodeSections(given, kind, []string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"})
		if err != nil {
			t.Fatal(err)
		}
		var sections []section
		for tag, payload := range f.sections {
			if tag == "HIST" {
				payload = payload[:len(payload)-8]
			}
			sections = append(sections, section{tag: tag, payload: payload})
		}
		if err := fit(append(opts, WithResume(encode(kind, sections)))...); !errors.As(err, &format) {
			t.Errorf("%s, a history that is cut: %v", name, err)
		}
	}
	var third []byte
	if _, err := FitQMFQ(ctx, x, 2, WithEpochs(2), WithCheckpoint(1, func(s []byte) error { third = s; return nil })); err != nil {
		t.Fatal(err)
	}
	if _, err := FitQMFQ(ctx, x, 2, WithEpochs(2), WithProjection(KLUpdates(19)), WithResume(third)); !errors.As(err, &option) || option.Option != "WithProjection" {
		t.Errorf("another projection: %v", err)
	}
	if _, err := FitQMFQ(ctx, y, 2, WithEpochs(2), WithResume(third)); !errors.As(err, &data) {
		t.Errorf("other data: %v", err)
	}
	if _, err := FitQMFQ(ctx, x, 2, WithEpochs(4), resume); !errors.As(err, &format) {
		t.Errorf("a QMF taken for a QMFQ: %v", err)
	}
	for i := 0; i < len(third); i += 1 + i/20 {
		b := bytes.Clone(third)
		b[i] ^= 4
		if _, err := FitQMFQ(ctx, x, 2, WithEpochs(2), WithResume(b)); !errors.As(err, &format) {
			t.Fatalf("byte %d of a QMFQ changed: %v", i, err)
		}
	}
	for i := 0; i < len(state); i += 1 + i/50 {
		b := bytes.Clone(state)
		b[i] ^= 4
		if _, err := FitQMF(ctx, x, 2, WithEpochs(4), WithResume(b)); !errors.As(err, &format) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := FitQMF(ctx, x, 2, WithEpochs(4), WithResume(b[:i+1])); !errors.As(err, &format) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	cause := errors.New("disk full")
	m, err := FitQMF(ctx, x, 2, WithEpochs(4), WithCheckpoint(2, func([]byte) error { return cause }))
	if !errors.Is(err, cause) || m == nil || len(m.History) != 3 {
		t.Errorf("a save that fails: %v", err)
	}
	if _, err := FitQMF(ctx, x, 2, WithCheckpoint(0, func([]byte) error { return nil })); !errors.As(err, &option) {
		t.Error("every 0 epochs")
	}
	if _, err := FitQMF(ctx, x, 2, WithCheckpoint(1, nil)); !errors.As(err, &option) {
		t.Error("no function to save by")
	}
	if _, err := FitQMF(ctx, x, 2, WithResume(nil)); !errors.As(err, &option) {
		t.Error("an empty state")
	}
}
