package quantmf

// Tests of BQMF: what it predicts and how sure it is, edges, units, data of either sign, new
// samples, cancellation, and options.

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/random"
	"github.com/quantmf/quantmf/internal/section"
)

// bent returns a d × n matrix of rank k and noise under a curve of each row's own,
// and a copy with a share of its cells hidden.
func bent(d, n, k int, share float64, seed uint64) (x, given Mat) {
	src := random.Split(seed, 9)
	normal := func() float64 { return elem.NormalQuantile(math.Max(src.Float64(), 1e-12)) }
	u, v := NewMat(d, k), NewMat(k, n)
	for i := range u.Data {
		u.Data[i] = normal()
	}
	for i := range v.Data {
		v.Data[i] = normal()
	}
	x = NewMat(d, n)
	for i := range d {
		product(x.Row(i), u.Row(i), v)
		for j := range n {
			x.Set(i, j, elem.Exp(0.5*x.At(i, j)+0.3*normal()))
		}
	}
	given = x.Clone()
	for i := range given.Data {
		if src.Float64() < share {
			given.Data[i] = math.NaN()
		}
	}
	for i := range d {
		given.Set(i, i%n, x.At(i, i%n))
		given.Set(i, (i+1)%n, x.At(i, (i+1)%n))
	}
	for j := range n {
		given.Set(j%d, j, x.At(j%d, j))
	}
	return x, given
}

func fitBQMF(t *testing.T, x Mat, rank int, opts ...FitOption) *BQMF {
	t.Helper()
	m := must(FitBQMF(context.Background(), x, rank, opts...))(t)
	return m
}

// finite reports what of a model is not a number.
func finiteBQMF(t *testing.T, m *BQMF) {
	t.Helper()
	lo, hi, err := m.Interval(0.8)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]Mat{"U": m.U, "V": m.V, "Reconstruct": m.Reconstruct(),
		"Median": m.Median(), "Deviation": m.Deviation(), "lo": lo, "hi": hi} {
		if err := a.checkFinite(name); err != nil {
			t.Error(err)
		}
	}
	for i := range lo.Data {
		if lo.Data[i] > hi.Data[i] {
			t.Fatal("an interval is upside down")
		}
	}
	for _, v := range [][]float64{m.Relevance, m.RowNoise, m.SampleNoise, m.History, m.Validation,
		{m.LeaveOneOut}} {
		if notFinite(v) >= 0 {
			t.Errorf("not finite: %v", v)
		}
	}
}

func TestBQMFPredicts(t *testing.T) {
	x, given := bent(60, 50, 3, 0.15, 1)
	m := fitBQMF(t, given, 0, WithMissingValues())
	finiteBQMF(t, m)
	fit, mean, loss, count := m.Reconstruct(), 0.0, 0.0, 0
	for i := range x.Rows {
		average, seen := 0.0, 0.0
		for _, v := range given.Row(i) {
			if v == v {
				average += v
				seen++
			}
		}
		for j, v := range given.Row(i) {
			if v != v {
				mean += divergence.KL.Value(x.At(i, j), average/seen, 0)
				loss += divergence.KL.Value(x.At(i, j), fit.At(i, j), 0)
				count++
			}
		}
	}
	if loss > 0.35*mean {
		t.Errorf("hidden cells lose %g, their means %g", loss/float64(count), mean/float64(count))
	}
	for c := 1; c < len(m.Relevance); c++ {
		if m.Relevance[c] > m.Relevance[c-1] {
			t.Errorf("relevance rises at %d", c)
		}
	}
	if r := m.Relevance; len(r) < 3 || len(r) > 3 && r[3] > 0.1*r[2] {
		t.Errorf("relevance %v of three components", r)
	}
}

func TestBQMFSigned(t *testing.T) {
	x, given := bent(30, 40, 3, 0.1, 6)
	for i := range x.Data {
		x.Data[i], given.Data[i] = elem.Log(x.Data[i]), elem.Log(given.Data[i])
	}
	for i, v := range given.Data {
		if v != v {
			given.Data[i] = math.NaN()
		}
	}
	m := fitBQMF(t, given, 0, WithMissingValues())
	finiteBQMF(t, m)
	if m.loss != Frobenius {
		t.Error("not Frobenius")
	}
	said := m.Reconstruct()
	hidden, left, all := 0, 0.0, 0.0
	for i, v := range given.Data {
		if v != v {
			hidden++
			left += (x.Data[i] - said.Data[i]) * (x.Data[i] - said.Data[i])
			all += x.Data[i] * x.Data[i]
		}
	}
	if hidden < 50 || !(left < 0.2*all) {
		t.Errorf("of the squares of %d hidden values, %g, the model leaves %g", hidden, all, left)
	}
	constant := NewMat(12, 20)
	for i := range constant.Data {
		constant.Data[i] = x.Data[i]
	}
	for j := range constant.Row(3) {
		constant.Row(3)[j] = -7
	}
	flat := fitBQMF(t, constant, 0)
	c := must(flat.Map(3))(t)
	if got, at := flat.Reconstruct().At(3, 5), c.At(0); got != -7 || at != -7 {
		t.Errorf("a row of -7 is fitted as %g, its map is %g", got, at)
	}
	var de *DataError
	if _, err := FitBQMF(context.Background(), given, 0, WithMissingValues(), WithLoss(KL)); !errors.As(err,
		&de) {
		t.Errorf("KL of negative values: %v", err)
	}
	p := must(HeldOut(context.Background(), x, FitBQMF, []Trial{{Rank: 0}, {Rank: 1}},
		Masks{Repeats: 2, Seed: 1}))(t)
	if !(p[0].Mean < p[1].Mean) {
		t.Errorf("three components predict worse than one: %v", p)
	}
}

func TestBQMFTransform(t *testing.T) {
	x, _ := bent(40, 60, 3, 0, 8)
	train, fresh := NewMat(40, 45), NewMat(40, 15)
	for i := range 40 {
		copy(train.Row(i), x.Row(i)[:45])
		copy(fresh.Row(i), x.Row(i)[45:])
	}
	m := fitBQMF(t, train, 0)
	loss := must(m.Loss(train))(t)
	score := must(m.Score(context.Background(), train))(t)
	if score > 1.01*loss {
		t.Errorf("training columns score %g, loss %g", score, loss)
	}
	other := must(m.Score(context.Background(), fresh))(t)
	if other > 3*loss {
		t.Errorf("new columns score %g, loss %g", other, loss)
	}
	v := must(m.Transform(context.Background(), train))(t)
	dev := 0.0
	for i, w := range v.Data {
		dev += (w - m.V.Data[i]) * (w - m.V.Data[i]) / float64(len(v.Data))
	}
	if dev > 1e-3 {
		t.Errorf("training columns are placed %g from where they are", math.Sqrt(dev))
	}
}

// TestBQMFCancel: how far a fit goes between two looks at its context is bound by rows and
// samples, and nothing is begun once the context has ended. It counts looks, not time.
func TestBQMFCancel(t *testing.T) {
	d, n, moments := 120, 70, 8
	if long {
		d, n, moments = 300, 150, 12
	} else if testing.Short() {
		d, n, moments = 80, 50, 5
	}
	x, _ := bent(d, n, 5, 0, 9)
	x.Set(3, 3, math.NaN())
	whole := &looks{Context: context.Background()}
	var at []int // looks by the end of each epoch
	fit := func(ctx context.Context, opts ...FitOption) (*BQMF, error) {
		return FitBQMF(ctx, x, 0, append(opts, WithMissingValues(), WithEpochs(3), WithWorkers(1))...)
	}
	count := func(p Progress) error {
		if p.Phase == PhaseEpochs {
			at = append(at, whole.count)
		}
		return nil
	}
	must(fit(whole, WithProgress(count)))(t)
	t.Logf("looks: %v, %d in all", at, whole.count)
	least := 2 * d // of an epoch
	if at[0] < d {
		t.Errorf("%d looks in the scales of %d rows", at[0], d)
	}
	for e := 1; e < len(at); e++ {
		if at[e]-at[e-1] < least {
			t.Errorf("%d looks in epoch %d, want %d at least", at[e]-at[e-1], e, least)
		}
	}
	for k := range moments {
		ctx := &looks{Context: context.Background(), last: 2 + k*(whole.count-2)/moments}
		m, err := fit(ctx)
		if !errors.Is(err, context.Canceled) || m == nil {
			t.Fatalf("ended at look %d of %d: %v %v", ctx.last, whole.count, m, err)
		}
		// Each row or sample that is left of the loop under way looks once, and the loops behind it find
		// the end at their first look; that of the scales gives each row its mean.
		most := 20 + max(d, n)
		if ctx.last <= d {
			most += d
		}
		if late := ctx.count - ctx.last; late > most {
			t.Errorf("ended at look %d of %d: %d looks follow", ctx.last, whole.count, late)
		} else {
			t.Logf("ended at look %d: %d looks follow", ctx.last, late)
		}
		finiteBQMF(t, m)
	}
	fail := errors.New("enough")
	m, err := FitBQMF(context.Background(), x, 3, WithMissingValues(), WithProgress(func(p Progress) error {
		if p.Epoch == 3 {
			return fail
		}
		return nil
	}))
	if !errors.Is(err, fail) || m == nil || len(m.History) != 4 {
		t.Errorf("%v", err)
	}
}

// A fit tells the loss before its first epoch, which may take seconds, as Progress
// promises; an error of the first report of all stops it, with a model.
func TestBQMFTellsBeforeItsFirstEpoch(t *testing.T) {
	x, _ := bent(30, 20, 2, 0, 3)
	var told []Progress
	m, err := FitBQMF(context.Background(), x, 3, WithProgress(func(p Progress) error {
		if p.Phase == PhaseEpochs {
			told = append(told, p)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if first := told[0]; first.Epoch != 0 || first.Done != 0 || first.Phase != PhaseEpochs ||
		first.Loss == 0 {
		t.Errorf("the first report is %+v", first)
	}
	for i, p := range told[1:] {
		if p.Epoch <= told[i].Epoch || p.Done <= told[i].Done {
			t.Errorf("%+v after %+v", p, told[i])
		}
	}
	if last := told[len(told)-1]; last.Done != 1 || last.Epoch != len(m.History)-1 ||
		last.Epoch >= last.Epochs {
		t.Errorf("the last report of a fit that came to rest is %+v", last)
	}
	fail := errors.New("enough")
	m, err = FitBQMF(context.Background(), x, 3, WithProgress(func(Progress) error { return fail }))
	if !errors.Is(err, fail) || m == nil || len(m.History) != 1 {
		t.Fatalf("stopped at once: %v, a model: %v", err, m != nil)
	}
	finiteBQMF(t, m)
}

func TestBQMFOptions(t *testing.T) {
	x, _ := bent(6, 7, 1, 0, 12)
	ctx := context.Background()
	for _, o := range []FitOption{WithRestarts(2), WithLevels(4), WithEpsilon(0.1), WithPatience(3),
		WithPenalty(1), WithLearningRate(0.1), WithStart(StartNMF), WithStrict(), WithLoss(Beta(0.5)),
		WithBatch(3)} {
		var e *OptionError
		if _, err := FitBQMF(ctx, x, 0, o); !errors.As(err, &e) {
			t.Errorf("%s: %v", o.setting().kind, err)
		}
	}
	var e *OptionError
	if _, err := FitBQMF(ctx, x, -1); !errors.As(err, &e) {
		t.Errorf("rank -1: %v", err)
	}
	var d *DataError
	bad := x.Clone()
	bad.Set(2, 3, math.NaN())
	if _, err := FitBQMF(ctx, bad, 0); !errors.As(err, &d) || d.Row != 2 || d.Col != 3 {
		t.Errorf("NaN: %v", err)
	}
	if _, err := FitBQMF(ctx, NewMat(2500, 2500), 2499); !errors.As(err, &e) || e.Option != "rank" {
		t.Errorf("a posterior that no memory holds: %v", err)
	}
	m := fitBQMF(t, x, 0)
	for _, p := range []float64{0, 1, -1, math.NaN()} {
		if _, _, err := m.Interval(p); !errors.As(err, &e) {
			t.Errorf("interval %g: %v", p, err)
		}
	}
	if _, err := m.Map(6); err == nil {
		t.Error("a map of no row")
	}
	if fitBQMF(t, x, 0, WithEpochs(0)).U.Cols != 5 || m.U.Cols > 5 ||
		fitBQMF(t, x, 3, WithEpochs(0)).U.Cols != 3 || fitBQMF(t, x, 30, WithEpochs(0)).U.Cols != 5 {
		t.Error("rank 0 is min(50, d-1, n-1), another one a bound")
	}
	if got, err := UnmarshalModel(bqmfFile(t, m)); err != nil ||
		fingerprint(got.Reconstruct()) != fingerprint(m.Reconstruct()) {
		t.Errorf("UnmarshalModel: %v", err)
	}
}

// file returns the model as bytes: two models are equal where their files are.
func bqmfFile(t *testing.T, m *BQMF) []byte {
	t.Helper()
	b := must(m.MarshalBinary())(t)
	return b
}

// TestBQMFFileOfAnyNumbers: with right checksums and one number changed, a file is refused, or all that its
// model says is finite.
func TestBQMFFileOfAnyNumbers(t *testing.T) {
	_, given := bent(4, 6, 1, 0.1, 2)
	b := bqmfFile(t, fitBQMF(t, given, 1, WithMissingValues(), WithEpochs(2)))
	values := append(real(5e-324, 1e-200, 1, 1e29, 1e200, math.MaxFloat64, -1, -1e-320, -1e200,
		-math.MaxFloat64), 0, 1, 1<<40)
	refused, taken := map[string]int{}, 0
	for _, tag := range section.RequiredTags(section.BQMF) {
		for number := 0; ; number++ {
			if b, _ := altered(b, tag, number, 0); b == nil {
				break
			}
			for _, v := range values {
				file, _ := altered(b, tag, number, v)
				m := new(BQMF)
				if err := m.UnmarshalBinary(file); err != nil {
					var format *FormatError
					if !errors.As(err, &format) {
						t.Fatalf("%s, number %d is %v: %v", tag, number, math.Float64frombits(v), err)
					}
					refused[tag]++
					continue
				}
				taken++
				below, upTo, err := m.Probability(given)
				if err != nil {
					t.Fatal(err)
				}
				for j, x := range given.Data {
					if x == x && !(0 <= below.Data[j] && below.Data[j] <= upTo.Data[j] && upTo.Data[j] <= 1) {
						t.Fatalf("%s, number %d is %v: probabilities %v and %v", tag, number,
							math.Float64frombits(v), below.Data[j], upTo.Data[j])
					}
				}
				finiteBQMF(t, m)
				if t.Failed() {
					t.Fatalf("%s, number %d is %v", tag, number, math.Float64frombits(v))
				}
			}
		}
	}
	if len(refused) < 9 || taken == 0 {
		t.Errorf("refused %v, taken %d", refused, taken)
	}
}

// TestBQMFConstantRows: constant rows are fitted exactly, and nothing of the other rows depends on them.
func TestBQMFConstantRows(t *testing.T) {
	_, given := bent(20, 26, 2, 0.2, 3)
	with := NewMat(24, 26)
	for i, at := 0, 0; i < with.Rows; i++ {
		if i == 0 || i == 7 || i == 8 || i == 23 {
			for j := range with.Cols {
				with.Set(i, j, float64(3*i))
			}
			continue
		}
		copy(with.Row(i), given.Row(at))
		at++
	}
	got, want := fitBQMF(t, with, 4, WithMissingValues()), fitBQMF(t, given, 4, WithMissingValues())
	said, of := got.Reconstruct(), want.Reconstruct()
	at := 0
	for i := range with.Rows {
		if i == 0 || i == 7 || i == 8 || i == 23 {
			closeTo(t, "a constant row", said.Row(i), with.Row(i), 0)
			continue
		}
		closeTo(t, "another row", said.Row(i), of.Row(at), 0)
		closeTo(t, "its u", got.U.Row(i), want.U.Row(at), 0)
		at++
	}
	x := with.Clone()
	x.Set(7, 0, 20)
	x.Set(7, 1, 22)
	below, upTo, err := got.Probability(x)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "the probability of less than 20, 22 and 21 where all is 21", below.Row(7)[:3],
		[]float64{0, 1, 0}, 0)
	closeTo(t, "the probability of at most 20, 22 and 21 where all is 21", upTo.Row(7)[:3],
		[]float64{0, 1, 1}, 0)
}

// TestBQMFFileOfOtherLengths: a file of either loss is read back as it was; with right checksums and a
// section longer or shorter it is refused.
func TestBQMFFileOfOtherLengths(t *testing.T) {
	_, given := twins(12, 40, 1, 0.9, 4)
	for _, loss := range []Loss{KL, Frobenius} {
		b := bqmfFile(t, fitBQMF(t, given, 1, WithMissingValues(), WithLoss(loss)))
		f := must(decode(b, section.BQMF))(t)
		if len(f.Payload("STGF")) == 0 {
			t.Error("no row has a second stage: nothing is tested of it")
		}
		for _, tag := range section.RequiredTags(section.BQMF) {
			payload := f.Payload(tag)
			lengths := map[string][]byte{"as it was": payload,
				"longer":        append(bytes.Clone(payload), 0, 0, 0, 0, 0, 0, 0, 0),
				"a byte longer": append(bytes.Clone(payload), 0)}
			if tag == "HIST" { // of an epoch more
				delete(lengths, "longer")
			}
			if n := len(payload); n > 0 {
				lengths["shorter"], lengths["a byte shorter"], lengths["empty"] = payload[:n-8],
					payload[:n-1], nil
			}
			for what, with := range lengths {
				var sections []section.Section
				for _, name := range f.Tags() {
					sections = append(sections, section.Section{Tag: name, Payload: f.Payload(name)})
					if name == tag {
						sections[len(sections)-1].Payload = with
					}
				}
				m := new(BQMF)
				err := m.UnmarshalBinary(section.Encode(section.BQMF, sections))
				var format *FormatError
				switch {
				case what == "as it was":
					if err != nil || !bytes.Equal(bqmfFile(t, m), b) {
						t.Fatalf("%v: a file that is not read back: %v", loss, err)
					}
				case !errors.As(err, &format):
					t.Errorf("%v: section %s is %s: %v", loss, tag, what, err)
				}
			}
		}
	}
}

// TestBQMFRests: a fit ends with the first epoch that moves UV by less than the tolerance, and warns where
// none did.
func TestBQMFRests(t *testing.T) {
	_, given := bent(20, 26, 2, 0.2, 3)
	fit := func(epochs int) (m *BQMF, warned bool) {
		m = fitBQMF(t, given, 3, WithMissingValues(), WithTolerance(0.02), WithEpochs(epochs))
		for _, w := range m.Warnings {
			_, is := w.(*unsettled)
			warned = warned || is
		}
		return m, warned
	}
	whole, warned := fit(200)
	last := len(whole.History) - 1
	if warned || last < 3 || last > 100 {
		t.Fatalf("%d epochs, a warning: %v", last, warned)
	}
	if _, warned := fit(last); warned {
		t.Errorf("%d epochs are enough, and there is a warning", last)
	}
	if _, warned := fit(last - 1); !warned {
		t.Errorf("%d epochs are too few, and there is no warning", last-1)
	}
}

// bqmfNumbers is how many numbers a state of k components has.
func bqmfNumbers(d, n, k int) int {
	return d*(k+bqmf.Packed(k)+1) + k*kernel.Pad(n) + n*(bqmf.Packed(k)+1) + k
}

func TestBQMFResume(t *testing.T) {
	_, given := bent(20, 26, 2, 0.2, 3)
	for _, opts := range [][]FitOption{{WithMissingValues(), WithEpochs(15)},
		{WithMissingValues(), WithTolerance(0.05)}, // comes to rest
		{WithMissingValues(), WithEpochs(6), WithValidation(0.1)}} {
		var states [][]byte
		whole := fitBQMF(t, given, 5,
			append(opts, WithCheckpoint(1,
				func(s []byte) error { states = append(states, s); return nil }))...)
		want := bqmfFile(t, whole)
		for k, s := range states {
			f := must(decodeSections(s, section.State+section.BQMF,
				[]string{"OPTS", "DATA", "STAT", "HIST", "VALI", "BEST", "REAL", "IDX0"}))(t)
			index, size := f.Payload("IDX0"), 0
			for at := 0; at+8 < len(index); at += 16 { // the state, and the best one
				size += bqmfNumbers(20, 26, int(section.Get64(index[at:])))
			}
			if len(f.Payload("REAL")) != 8*size {
				t.Errorf("state %d has %d bytes of numbers, of which it needs %d", k, len(f.Payload("REAL")),
					8*size)
			}
			if !bytes.Equal(want, bqmfFile(t, fitBQMF(t, given, 5, append(opts, WithResume(s))...))) {
				t.Fatalf("resumed at state %d of %d: other bits", k, len(states))
			}
		}
		if len(states) < 6 {
			t.Errorf("%d states", len(states))
		}
		var o *OptionError
		if _, err := FitBQMF(context.Background(), given, 4,
			append(opts, WithResume(states[2]))...); !errors.As(err, &o) {
			t.Errorf("another rank: %v", err)
		}
	}
}

// twins is bent with the noise of rows 2i and 2i+1 of a correlation.
func twins(d, n, k int, correlation float64, seed uint64) (x, given Mat) {
	x, given = bent(d, n, k, 0.1, seed)
	src := random.Split(seed, 11)
	shared := make([]float64, n)
	for i := range d {
		for j := range n {
			if i%2 == 0 {
				shared[j] = elem.NormalQuantile(math.Max(src.Float64(), 1e-12))
			}
			own := elem.NormalQuantile(math.Max(src.Float64(), 1e-12))
			x.Set(i, j, x.At(i, j)*elem.Exp(0.8*(math.Sqrt(correlation)*shared[j]+
				math.Sqrt(1-correlation)*own)))
			if v := given.At(i, j); v == v {
				given.Set(i, j, x.At(i, j))
			}
		}
	}
	return x, given
}

// circle has samples on a circle, of which most rows are one wave and every third has a length of its own, so
// that no other row says what it is; and a copy with a tenth of the cells hidden.
func circle(d, n int, seed uint64) (x, given Mat) {
	src := random.Split(seed, 12)
	angle := make([]float64, n)
	for j := range angle {
		angle[j] = 2 * math.Pi * src.Float64()
	}
	x = NewMat(d, n)
	for i := range d {
		waves, phase := 1.0, 2*math.Pi*src.Float64()
		if i%3 == 0 {
			waves = 1.5 + 0.4*float64(i/3)
		}
		for j, a := range angle {
			x.Set(i, j, elem.Exp(math.Sin(float64(waves*a)+phase)+
				0.1*elem.NormalQuantile(math.Max(src.Float64(), 1e-12))))
		}
	}
	given = x.Clone()
	for i := range given.Data {
		if src.Float64() < 0.1 {
			given.Data[i] = math.NaN()
		}
	}
	return x, given
}

// bqmfTables are data whose models have no correction, neighbours, and samples that are alike.
func bqmfTables() map[string]struct {
	x, given Mat
	rank     int
} {
	type table = struct {
		x, given Mat
		rank     int
	}
	of := func(x, given Mat, rank int) table { return table{x, given, rank} }
	a, b := bent(30, 24, 3, 0.2, 2)
	c, d := twins(60, 160, 3, 0.9, 5)
	e, f := circle(24, 200, 3)
	return map[string]table{"plain": of(a, b, 6), "neighbours": of(c, d, 8), "alike": of(e, f, 2)}
}

// A model has the same bits for any number of workers. Its file is read back as it was, and the model of it
// says the same; damaged anywhere, it is refused.
func TestBQMFFiles(t *testing.T) {
	for name, c := range bqmfTables() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := fitBQMF(t, c.given, c.rank, WithMissingValues(), WithWorkers(1))
			finiteBQMF(t, m)
			b, back := bqmfFile(t, m), new(BQMF)
			if !bytes.Equal(b, bqmfFile(t,
				fitBQMF(t, c.given, c.rank, WithMissingValues(), WithWorkers(3)))) {
				t.Error("bits depend on the workers")
			}
			ok(t, back.UnmarshalBinary(b))
			if !bytes.Equal(b, bqmfFile(t, back)) {
				t.Error("a file read and written is another one")
			}
			own := must(AppendSection(b, "name", []byte("abc")))(t)
			if got, has, err := Section(own, "name"); err != nil || !has || string(got) != "abc" {
				t.Errorf("a section of one's own: %q, %v, %v", got, has, err)
			}
			for i, said := range bqmfSays(t, m, c.x) {
				if other := bqmfSays(t, back, c.x)[i]; !slices.Equal(said, other) {
					t.Errorf("number %d of what the model of the file says is another one", i)
				}
			}
			for at := 0; at < len(b); at += 1 + len(b)/499 {
				broken := bytes.Clone(b)
				broken[at] ^= 0x55
				var f *FormatError
				if err := new(BQMF).UnmarshalBinary(broken); !errors.As(err, &f) {
					t.Fatalf("byte %d broken: %v", at, err)
				}
			}
		})
	}
}

// bqmfSays returns what a model says of its cells and of new samples.
func bqmfSays(t *testing.T, m *BQMF, x Mat) [][]float64 {
	t.Helper()
	score := must(m.Score(t.Context(), x))(t)
	return [][]float64{m.Reconstruct().Data, m.Median().Data, m.Deviation().Data, {score}}
}

// Where the noise of rows goes together, one says what the other is; where rows bend along the samples,
// samples that are alike say what factors too few cannot. Hidden cells and new samples are predicted better
// than without, and intervals hold what they promise.
func TestBQMFCorrections(t *testing.T) {
	for _, c := range []struct {
		name string
		has  func(p *bqmf.Posterior) bool
		drop func(p *bqmf.Posterior)
	}{
		{"neighbours", func(p *bqmf.Posterior) bool { return p.Stage != nil },
			func(p *bqmf.Posterior) { p.Stage = nil }},
		{"alike", func(p *bqmf.Posterior) bool { return p.Alike != nil },
			func(p *bqmf.Posterior) { p.Alike = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data := bqmfTables()[c.name]
			m := fitBQMF(t, data.given, data.rank, WithMissingValues(), WithWorkers(1))
			if !c.has(m.model.Posterior) {
				t.Fatal("the model has no such correction")
			}
			says := func(m *BQMF) (missed, score float64) {
				said := bqmfSays(t, m, data.x)
				for i, v := range data.given.Data {
					if v != v {
						missed += math.Abs(elem.Log(said[0][i] / data.x.Data[i]))
					}
				}
				return missed, said[3][0]
			}
			lo, hi, err := m.Interval(0.8)
			if err != nil {
				t.Fatal(err)
			}
			in, all := 0.0, 0.0
			for i, v := range data.given.Data {
				if v != v {
					all++
					if x := data.x.Data[i]; x >= lo.Data[i] && x <= hi.Data[i] {
						in++
					}
				}
			}
			if math.Abs(in/all-0.8) > 0.06 {
				t.Errorf("80 %% intervals hold %.3f", in/all)
			}
			with, scored := says(m)
			without := new(BQMF)
			ok(t, without.UnmarshalBinary(bqmfFile(t, m)))
			c.drop(without.model.Posterior)
			if missed, score := says(without); with > 0.9*missed || scored >= score {
				t.Errorf("hidden cells are missed by %g, without the correction by %g; new samples "+
					"score %g, %g",
					with, missed, scored, score)
			}
			again := new(BQMF) // a file that has nothing of it is the model without
			if err := again.UnmarshalBinary(bqmfFile(t, without)); err != nil ||
				c.has(again.model.Posterior) {
				t.Errorf("a file without the correction: %v", err)
			}
		})
	}
}

// Values of cells that are held out touch nothing that a model says: not scales and tails, UV, the second
// stage and its choices, samples that are alike, maps or levels.
func TestBQMFHeldOutCellsAreNotLearnt(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	x, _ := circle(24, 120, 3)
	held := x.Clone()
	c := settings{validation: 0.1, seed: 1}
	hidden := must(newCells(x, &c))(t)
	for i := range held.Data {
		if hidden.IsHeld(i/x.Cols, i%x.Cols) {
			held.Data[i] *= 1.001 // the best epoch stays
		}
	}
	a, b := fitBQMF(t, x, 2, WithValidation(0.1), WithEpochs(8)),
		fitBQMF(t, held, 2, WithValidation(0.1), WithEpochs(8))
	if a.model.Alike == nil || a.model.Stage == nil || a.model.Together == nil || a.Best != b.Best ||
		a.LeaveOneOut != b.LeaveOneOut {
		t.Fatal("the fits are not of one state, or have no second stage")
	}
	says := func(m *BQMF) []byte { return section.Encode(section.BQMF, m.model.Sections(m.LeaveOneOut)) }
	if !bytes.Equal(says(a), says(b)) {
		t.Fatal("hidden values touch the model")
	}
}

// A file whose sums are right may hold anything: an error, or a model of which nothing
// is NaN.
func FuzzBQMFFile(f *testing.F) {
	x, given := bent(5, 6, 2, 0.1, 13)
	for i := range x.Data {
		if i%3 == 0 {
			given.Data[i] = math.Floor(given.Data[i])
		}
	}
	m := must(FitBQMF(context.Background(), given, 2, WithMissingValues()))(f)
	file, _ := m.MarshalBinary()
	tags := append(section.RequiredTags(section.BQMF), "ALIK", "ALIZ", "TOGE")
	// row 1 has a second stage, by rows 0 and 2 and one sample, and rows 1 and 3 have something of samples
	// that are alike
	half := slices.Repeat([]float64{0.5}, 2*given.Cols)
	with := map[string]section.Section{
		"STGW": section.Words("STGW", 0, 1, 2, 0, 2, 1, 0, 0, 0, 63, 62, 61, 60, 59),
		"STGF": section.Floats("STGF", []float64{0.1, 0.5, 0.2, 0.7, 0.5, -1, 0.3}, half[:6], half[:5]),
		"ALIK": section.Words("ALIK", 1, 3),
		"ALIZ": section.Floats("ALIZ", half, []float64{0.5, 0.5})}
	was := must(decode(file, section.BQMF))(f)
	var sections []section.Section
	for _, tag := range tags {
		if of, is := with[tag]; is {
			sections = append(sections, of)
		} else {
			sections = append(sections, section.Section{Tag: tag, Payload: was.Payload(tag)})
		}
	}
	b := section.Encode(section.BQMF, sections)
	if err := m.UnmarshalBinary(b); err != nil || m.model.Stage == nil || m.model.Alike == nil {
		f.Fatalf("a file with both corrections: %v", err)
	}
	f.Add(uint16(100), uint64(0x7ff0000000000000))
	f.Add(uint16(200), uint64(0xffefffffffffffff))
	f.Add(uint16(300), uint64(1))
	f.Fuzz(func(t *testing.T, at uint16, v uint64) {
		f := must(decodeSections(b, section.BQMF, tags))(t)
		var sections []section.Section
		place := int(at)
		for _, tag := range tags {
			p := bytes.Clone(f.Payload(tag))
			if n := len(p) / 8; place >= 0 && place < n {
				copy(p[8*place:], append64(nil, v))
			} else if place == n {
				p = p[:max(len(p)-8, 0)]
			}
			place -= len(p)/8 + 1
			sections = append(sections, section.Section{Tag: tag, Payload: p})
		}
		got := new(BQMF)
		if err := got.UnmarshalBinary(section.Encode(section.BQMF, sections)); err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) {
				t.Fatal(err)
			}
			return
		}
		for name, a := range map[string]Mat{"Reconstruct": got.Reconstruct(), "Median": got.Median(),
			"Deviation": got.Deviation()} {
			ok(t, a.checkFinite(name))
		}
		score := must(got.Score(context.Background(), x))(t)
		if score != score {
			t.Fatal("the score is not a number")
		}
	})
}

func TestBQMFCurve(t *testing.T) {
	_, given := bent(12, 40, 2, 0.1, 7)
	for i := range given.Data {
		if i%5 != 0 {
			given.Data[i] = math.Round(given.Data[i])
		}
	}
	m := fitBQMF(t, given, 0, WithMissingValues())
	for i := range 12 {
		c := must(m.Map(i))(t)
		places := append([]float64{-1e9, -9, 9, 1e9}, c.of.Y...)
		for k := -60; k <= 60; k++ {
			places = append(places, float64(k)/13)
		}
		for _, e := range bqmf.Nodes { // the seams of the tables under every node
			for _, y := range c.of.Y {
				places = append(places, y-e*c.of.Spread)
			}
		}
		for _, w := range places {
			at := w
			for range 40 {
				next := math.Nextafter(at, math.Inf(1))
				if c.At(next) < c.At(at) {
					t.Fatalf("row %d: T falls from %v to %v", i, at, next)
				}
				at = next
			}
		}
		for k := -20; k <= 20; k++ {
			v := c.At(float64(k) / 10)
			w := must(c.Invert(v))(t)
			if got := c.At(w); math.Abs(got-v) > 1e-12*math.Abs(v) {
				t.Errorf("row %d: T(%g) = %g, want %g", i, w, got, v)
			}
		}
		if _, err := c.Invert(-1); err == nil {
			t.Error("no error below the range")
		}
	}
}

// A tenth of the cells is hidden; the central intervals hold what they say, values that
// have mass counted by the part of it that lies within (in a closed interval they would
// count whole).
func TestBQMFIntervalsHold(t *testing.T) {
	if testing.Short() {
		t.Skip("fits two larger matrices")
	}
	for name, change := range map[string]func(v float64) float64{
		"continuous": func(v float64) float64 { return v },
		"counts":     func(v float64) float64 { return math.Floor(2 * v) },
	} {
		hold, cells := [3]float64{}, 0.0
		for seed := range uint64(2) {
			x, _ := bent(100, 90, 3, 0, 20+seed)
			src := random.Split(seed, 3)
			given := x.Clone()
			for i, v := range x.Data {
				x.Data[i] = change(v)
				given.Data[i] = x.Data[i]
				if src.Float64() < 0.1 {
					given.Data[i] = math.NaN()
				}
			}
			m := fitBQMF(t, given, 0, WithMissingValues())
			below, upTo, err := m.Probability(x)
			if err != nil {
				t.Fatal(err)
			}
			for k, p := range []float64{0.5, 0.8, 0.95} {
				lo, hi, err := m.Interval(p)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range given.Data {
					if v == v {
						continue
					}
					if k == 0 {
						cells++
					}
					a, b, from, to := below.Data[i], upTo.Data[i], 0.5-p/2, 0.5+p/2
					switch {
					case b > a:
						hold[k] += max(min(b, to)-max(a, from), 0) / (b - a)
					case a >= from && a <= to:
						hold[k]++
					}
					if inside := x.Data[i] >= lo.Data[i] && x.Data[i] <= hi.Data[i]; !inside &&
						a > from+1e-9 && b < to-1e-9 {
						t.Fatalf("%s: %g has probabilities %g to %g and is not in [%g,%g] of %g", name,
							x.Data[i], a, b, lo.Data[i], hi.Data[i], p)
					}
				}
			}
		}
		for k, p := range []float64{0.5, 0.8, 0.95} {
			if got := hold[k] / cells; math.Abs(got-p) > 0.03 {
				t.Errorf("%s: %g intervals hold %.3f of %g hidden cells", name, p, got, cells)
			}
		}
	}
}

// TestBQMFTellsItsStart: progress is told before the scales are made, and on while they are;
// an error in any of these reports stops the fit, with a model that is finite.
func TestBQMFTellsItsStart(t *testing.T) {
	x := lognormal(600, 12)
	var seen []Progress
	watch := func(p Progress) error {
		seen = append(seen, p)
		return nil
	}
	must(FitBQMF(t.Context(), x, 3, WithEpochs(2), WithProgress(watch)))(t)
	start := 0
	for start < len(seen) && seen[start].Phase == PhaseFactors {
		if p := seen[start]; p.Epoch != 0 || p.Loss != 0 || p.Epochs != 2 || start > 0 &&
			p.Done <= seen[start-1].Done {
			t.Errorf("report %d: %+v", start, p)
		}
		start++
	}
	// at once, behind each 256 rows, and at the end
	if start != 5 || seen[0].Done != 0 || seen[start-1].Done != 1 {
		t.Errorf("%d reports of the start: %+v", start, seen[:start])
	}
	for at := range start {
		count, cause := 0, errors.New("enough")
		m, err := FitBQMF(t.Context(), x, 3, WithEpochs(2), WithProgress(func(Progress) error {
			if count++; count > at {
				return cause
			}
			return nil
		}))
		if !errors.Is(err, cause) || count != at+1 || m == nil {
			t.Fatalf("report %d: %v after %d", at, err, count)
		}
		if i := notFinite(m.Reconstruct().Data); i >= 0 {
			t.Errorf("report %d: cell %d of the model is not finite", at, i)
		}
	}
}
