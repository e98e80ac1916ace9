package quantmf

// Tests of BQMF: what it predicts and how sure it is, edges, units, data of either sign, new
// samples, cancellation, and options.

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/elem"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/random"
	. "github.com/quantmf/quantmf/internal/samebits/check"
	"github.com/quantmf/quantmf/internal/section"
)

// Bent returns a d × n matrix of rank k and noise under a curve of each row's own,
// and a copy with a share of its cells hidden.
func Bent(d, n, k int, share float64, seed uint64) (x, given Mat) {
	src := random.Split(seed, 9)
	draw := func() float64 { return Normal(&src) }
	x = Times(Drawn(d, k, draw), Drawn(k, n, draw))
	for i, w := range x.Data {
		x.Data[i] = elem.Exp(0.5*w + 0.3*Normal(&src))
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

// TestBQMFPredicts: of three components under curves, and noise, a fit says that they are three, predicts
// hidden cells far better than the means of rows, and so it does of logarithms under Frobenius.
func TestBQMFPredicts(t *testing.T) {
	Slow(t)
	for loss, log := range map[Loss]bool{KL: false, Frobenius: true} {
		x, given := Bent(40, 36, 3, 0.15, 1)
		for i := range x.Data {
			if log {
				x.Data[i], given.Data[i] = math.Log(x.Data[i]), math.Log(given.Data[i])
			}
		}
		m := Fitted(t, FitBQMF, given, 0, WithMissingValues())
		allFinite(t, "BQMF", m, given)
		missed := MeanOver(float64(loss), x, m.Reconstruct(), Missing(given))
		means := MeanOver(float64(loss), x, RowMeans(given), Missing(given))
		if missed > 0.35*means || m.loss != loss {
			t.Errorf("%v: hidden cells lose %g, their means %g", m.loss, missed, means)
		}
		if r := m.Relevance; !slices.IsSortedFunc(r, func(a, b float64) int { return cmp.Compare(b, a) }) ||
			len(r) < 3 || len(r) > 3 && r[3] > 0.1*r[2] {
			t.Errorf("%v: relevance %v of three components", loss, r)
		}
		if !log {
			continue
		}
		if p := Hidden(t, x, FitBQMF, []Trial{{Rank: 0}, {Rank: 1}},
			Masks{Repeats: 1, Seed: 1}); !(p[0].Mean < p[1].Mean) {
			t.Errorf("three components predict worse than one: %v", p)
		}
	}
}

// TestBQMFRank: rank 0 is min(50, d-1, n-1), another one a bound.
func TestBQMFRank(t *testing.T) {
	x, _ := Bent(6, 7, 1, 0, 12)
	for rank, want := range map[int]int{0: 5, 3: 3, 30: 5} {
		Equal(t, Fitted(t, FitBQMF, x, rank, WithEpochs(0)).Rank(), want, "rank %d", rank)
	}
}

// TestBQMFFileOfAnyNumbers: with right checksums and one number changed, a file is refused, or all that its
// model says is finite.
func TestBQMFFileOfAnyNumbers(t *testing.T) {
	Slow(t)
	_, given := Bent(4, 6, 1, 0.1, 2)
	b := FileOf(t, Fitted(t, FitBQMF, given, 1, WithMissingValues(), WithEpochs(2)))
	values := append(real(5e-324, 1, 1e29, 1e200, math.MaxFloat64, -1e-320, -1e200), 0, 1, 1<<40)
	refused, taken := map[string]int{}, 0
	for _, tag := range section.RequiredTags(section.BQMF) {
		for number := 0; ; number++ {
			if b, _ := altered(b, tag, number, 0); b == nil {
				break
			}
			for _, v := range values {
				file, _ := altered(b, tag, number, v)
				if takesOrRefuses(t, file, given) {
					taken++
				} else {
					refused[tag]++
				}
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

// takesOrRefuses tells whether a file is taken. Then all that its model says is finite, else it is refused as
// a file is.
func takesOrRefuses(t *testing.T, file []byte, x Mat) bool {
	m := new(BQMF)
	if err := m.UnmarshalBinary(file); err != nil {
		var format *FormatError
		if !errors.As(err, &format) {
			t.Error(err)
		}
		return false
	}
	allFinite(t, "BQMF", m, x)
	below, upTo, err := m.Probability(x)
	OK(t, err)
	for j, x := range x.Data {
		if x == x && !(0 <= below.Data[j] && below.Data[j] <= upTo.Data[j] && upTo.Data[j] <= 1) {
			t.Errorf("probabilities %v and %v", below.Data[j], upTo.Data[j])
		}
	}
	return true
}

// TestBQMFConstantRows: constant rows are fitted exactly, and nothing of the other rows depends on them.
func TestBQMFConstantRows(t *testing.T) {
	_, given := Bent(20, 26, 2, 0.2, 3)
	with, constant := NewMat(24, 26), []int{0, 7, 8, 23}
	at := 0
	for i := range with.Rows {
		for j := range with.Cols {
			if with.Set(i, j, float64(3*i)); !slices.Contains(constant, i) {
				with.Set(i, j, given.At(at, j))
			}
		}
		if !slices.Contains(constant, i) {
			at++
		}
	}
	got := Fitted(t, FitBQMF, with, 4, WithMissingValues())
	want := Fitted(t, FitBQMF, given, 4, WithMissingValues())
	said, of := got.Reconstruct(), want.Reconstruct()
	at = 0
	for i := range with.Rows {
		if slices.Contains(constant, i) {
			NearAll(t, said.Row(i), with.Row(i), 0, "a constant row")
			continue
		}
		NearAll(t, said.Row(i), of.Row(at), 0, "another row")
		NearAll(t, got.U.Row(i), want.U.Row(at), 0, "its u")
		at++
	}
	x := with.Clone()
	x.Set(7, 0, 20)
	x.Set(7, 1, 22)
	below, upTo, err := got.Probability(x)
	OK(t, err)
	NearAll(t, below.Row(7)[:3], []float64{0, 1, 0}, 0,
		"the probability of less than 20, 22 and 21 where all is 21")
	NearAll(t, upTo.Row(7)[:3], []float64{0, 1, 1}, 0,
		"the probability of at most 20, 22 and 21 where all is 21")
}

// TestBQMFFileOfOtherLengths: a file of either loss is read back as it was; with right checksums and a
// section longer or shorter it is refused.
func TestBQMFFileOfOtherLengths(t *testing.T) {
	_, given := twins(12, 40, 1, 0.9, 4)
	for _, loss := range []Loss{KL, Frobenius} {
		b := FileOf(t, Fitted(t, FitBQMF, given, 1, WithMissingValues(), WithLoss(loss)))
		f := Must(decode(b, section.BQMF))(t)
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
				m := new(BQMF)
				err := m.UnmarshalBinary(replaced(f, section.BQMF, tag, with))
				var format *FormatError
				switch {
				case what == "as it was":
					if err != nil || !bytes.Equal(FileOf(t, m), b) {
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
	_, given := Bent(20, 26, 2, 0.2, 3)
	fit := func(epochs int) (m *BQMF, warned bool) {
		m = Fitted(t, FitBQMF, given, 3, WithMissingValues(), WithTolerance(0.02), WithEpochs(epochs))
		for _, w := range m.Warnings {
			_, is := w.(*bqmf.Unsettled)
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

// TestBQMFStates: a state has the numbers of its components, and of those of the best epoch, and no more.
func TestBQMFStates(t *testing.T) {
	_, given := Bent(20, 26, 2, 0.2, 3)
	var states [][]byte
	Fitted(t, FitBQMF, given, 5, WithMissingValues(), WithEpochs(6), WithValidation(0.1), Keep(&states))
	for k, s := range states {
		all, size := stateOf(t, s), 0
		for at := 0; at+8 < len(all.Payload("IDX0")); at += 16 { // the state, and the best one
			size += bqmfNumbers(20, 26, int(section.Get64(all.Payload("IDX0")[at:])))
		}
		if n := len(all.Payload("REAL")); n != 8*size {
			t.Errorf("state %d has %d bytes of numbers, of which it needs %d", k, n, 8*size)
		}
	}
	if len(states) < 6 {
		t.Errorf("%d states", len(states))
	}
}

// twins is Bent with the noise of rows 2i and 2i+1 of a correlation.
func twins(d, n, k int, correlation float64, seed uint64) (x, given Mat) {
	x, given = Bent(d, n, k, 0.1, seed)
	src := random.Split(seed, 11)
	shared := make([]float64, n)
	for i := range d {
		for j := range n {
			if i%2 == 0 {
				shared[j] = Normal(&src)
			}
			own := Normal(&src)
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
			x.Set(i, j, elem.Exp(math.Sin(float64(waves*a)+phase)+0.1*Normal(&src)))
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

// Where the noise of rows goes together, one says what the other is; where rows bend along the samples,
// samples that are alike say what factors too few cannot. Hidden cells and new samples are predicted better
// than without, and intervals hold what they promise.
func TestBQMFCorrections(t *testing.T) {
	Slow(t)
	near, nearGiven := twins(40, 120, 3, 0.9, 5)
	alike, alikeGiven := circle(18, 140, 3)
	for _, c := range []struct {
		name     string
		x, given Mat
		rank     int
		has      func(p *bqmf.Posterior) bool
		drop     func(p *bqmf.Posterior)
	}{
		{"neighbours", near, nearGiven, 5, func(p *bqmf.Posterior) bool { return p.Stage != nil },
			func(p *bqmf.Posterior) { p.Stage = nil }},
		{"alike", alike, alikeGiven, 2, func(p *bqmf.Posterior) bool { return p.Alike != nil },
			func(p *bqmf.Posterior) { p.Alike = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := Fitted(t, FitBQMF, c.given, c.rank, WithMissingValues(), WithWorkers(1))
			if !c.has(m.model.Posterior) {
				t.Fatal("the model has no such correction")
			}
			says := func(m *BQMF) (missed, score float64) {
				said := m.Reconstruct()
				for i, v := range c.given.Data {
					if v != v {
						missed += math.Abs(elem.Log(said.Data[i] / c.x.Data[i]))
					}
				}
				return missed, Answer(t, m.Score, c.x)
			}
			lo, hi, err := m.Interval(0.8)
			OK(t, err)
			in, all := 0.0, 0.0
			for i, v := range c.given.Data {
				if v != v {
					all++
					if x := c.x.Data[i]; x >= lo.Data[i] && x <= hi.Data[i] {
						in++
					}
				}
			}
			Near(t, in/all, 0.8, 0.06, "80 %% intervals hold")
			with, scored := says(m)
			without := new(BQMF)
			OK(t, without.UnmarshalBinary(FileOf(t, m)))
			c.drop(without.model.Posterior)
			if missed, score := says(without); with > 0.9*missed || scored >= score {
				t.Errorf("hidden cells are missed by %g, without the correction by %g; new samples "+
					"score %g, %g", with, missed, scored, score)
			}
			again := new(BQMF) // a file that has nothing of it is the model without
			if err := again.UnmarshalBinary(FileOf(t, without)); err != nil ||
				c.has(again.model.Posterior) {
				t.Errorf("a file without the correction: %v", err)
			}
		})
	}
}

// A model some of whose samples take no part says the same once it was read from its file, where samples that
// are alike predict rows, too.
func TestBQMFFileOfAbsentSamples(t *testing.T) {
	t.Parallel()
	x, _ := circle(18, 140, 3)
	weights := make([]float64, x.Cols)
	for j := range weights {
		if j%7 != 0 {
			weights[j] = 1
		}
	}
	m, again := Fitted(t, FitBQMF, x, 2, WithSampleWeights(weights)), new(BQMF)
	if m.model.Posterior.Alike == nil {
		t.Fatal("no row is predicted by samples that are alike")
	}
	OK(t, again.UnmarshalBinary(FileOf(t, m)))
	if !slices.Equal(again.Reconstruct().Data, m.Reconstruct().Data) {
		t.Error("the model that was read says something else")
	}
}

// Values of cells that are held out touch nothing that a model says: not scales and tails, UV, the second
// stage and its choices, samples that are alike, maps or levels, nor which values a row takes; so neither
// draws, nor words of rows of 0 and 1, nor what is said of new samples.
func TestBQMFHeldOutCellsAreNotLearnt(t *testing.T) {
	Slow(t)
	x, _ := circle(12, 64, 3)
	words := []int{3, 4, 5}
	for j := range x.Cols {
		word := min(int(x.At(3, j)), 2)
		for k, i := range words {
			x.Set(i, j, 0)
			if k == word {
				x.Set(i, j, 1)
			}
		}
		x.Set(7, j, math.Floor(5*x.At(7, j))) // counts
	}
	held := x.Clone()
	c := qmf.Settings{Loss: divergence.KL, Validation: 0.1, Seed: 1}
	hidden := Must(newCells(x, &c))(t)
	for i := range held.Data {
		if hidden.IsHeld(i/x.Cols, i%x.Cols) {
			held.Data[i] *= 1.001 // the best epoch stays; no whole number stays one
		}
	}
	a, b := Fitted(t, FitBQMF, x, 2, WithValidation(0.1), WithEpochs(2)),
		Fitted(t, FitBQMF, held, 2, WithValidation(0.1), WithEpochs(2))
	if a.model.Alike == nil || a.model.Stage == nil || a.model.Together == nil || a.Best != b.Best ||
		a.LeaveOneOut != b.LeaveOneOut {
		t.Fatal("the fits are not of one state, or have no second stage")
	}
	for _, v := range slices.Concat(a.Median().Row(4), a.Median().Row(7)) {
		if v != math.Trunc(v) {
			t.Fatalf("%v is the median of a row of whole numbers", v)
		}
	}
	fresh, _ := circle(12, 3, 4)
	says := func(m *BQMF) []byte {
		lo, hi, err := m.Interval(0.9)
		newLo, newHi, failed := m.PredictInterval(t.Context(), fresh, 0.9)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return append64(section.Encode(section.BQMF, m.model.Sections(m.LeaveOneOut)),
			fingerprint(m.U, m.V, m.Reconstruct(), m.Median(), lo, hi, m.Sample(1),
				m.SampleCategories(1, words), Answer(t, m.Predict, fresh), newLo, newHi,
				Answer(t, m.Updated, fresh).Reconstruct()))
	}
	if !bytes.Equal(says(a), says(b)) {
		t.Fatal("hidden values touch the model")
	}
}

// A file whose sums are right may hold anything: an error, or a model of which nothing
// is NaN.
func FuzzBQMFFile(f *testing.F) {
	x, given := Bent(5, 6, 2, 0.1, 13)
	for i := range x.Data {
		if i%3 == 0 {
			given.Data[i] = math.Floor(given.Data[i])
		}
	}
	m := Fitted(f, FitBQMF, given, 2, WithMissingValues())
	file, _ := m.MarshalBinary()
	tags := append(section.RequiredTags(section.BQMF), section.OptionalTags(section.BQMF)...)
	// row 1 has a second stage, by rows 0 and 2 and one sample, and rows 1 and 3 have something of samples
	// that are alike; two samples took no part
	half := slices.Repeat([]float64{0.5}, 2*given.Cols)
	with := map[string]section.Section{
		"STGW": section.Words("STGW", 0, 1, 2, 0, 2, 1, 0, 0, 0, 63, 62, 61, 60, 59),
		"STGF": section.Floats("STGF", []float64{0.5, 0.2, 0.7, 0.5, -1, 0.3}, half[:5], half[:6], half[:5]),
		"ALIK": section.Words("ALIK", 1, 3),
		"ABSE": section.Words("ABSE", 1, 4),
		"ALIZ": section.Floats("ALIZ", half, []float64{0.5, 0.5})}
	was := Must(decode(file, section.BQMF))(f)
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
		f := Must(decodeSections(b, section.BQMF, tags))(t)
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
		takesOrRefuses(t, section.Encode(section.BQMF, sections), x)
	})
}

func TestBQMFCurve(t *testing.T) {
	_, given := Bent(12, 40, 2, 0.1, 7)
	for i := range given.Data {
		if i%5 != 0 {
			given.Data[i] = math.Round(given.Data[i])
		}
	}
	m := Fitted(t, FitBQMF, given, 0, WithMissingValues())
	for i := range 12 {
		c := Must(m.Map(i))(t)
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
			w := Must(c.Invert(v))(t)
			Near(t, c.At(w), v, 1e-12*math.Abs(v), "row %d: T(%g)", i, w)
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
	Slow(t)
	continuous := func(seed uint64) Mat { x, _ := Bent(100, 90, 3, 0, 20+seed); return x }
	for name, of := range map[string]struct {
		seeds  uint64
		hidden float64
		table  func(seed uint64) Mat
	}{
		"continuous": {2, 0.1, continuous},
		"counts": {2, 0.1, func(seed uint64) Mat {
			x := continuous(seed)
			for i, v := range x.Data {
				x.Data[i] = math.Floor(2 * v)
			}
			return x
		}},
		"three near copies": {4, 0.2, func(seed uint64) Mat {
			x, src := NewMat(24, 60), random.Split(seed, 4)
			for i := range x.Rows {
				for j := range x.Cols {
					x.Set(i, j, 0.1*Normal(&src))
					if i < 8 {
						x.Set(i, j, Normal(&src))
					} else {
						x.Set(i, j, x.At(i%8, j)+x.At(i, j))
					}
				}
			}
			return x
		}},
	} {
		hold, cells := [3]float64{}, 0.0
		for seed := range of.seeds {
			x, src := of.table(seed), random.Split(seed, 3)
			given := x.Clone()
			for i := range x.Data {
				if src.Float64() < of.hidden {
					given.Data[i] = math.NaN()
				}
			}
			m := Fitted(t, FitBQMF, given, 0, WithMissingValues())
			below, upTo, err := m.Probability(x)
			OK(t, err)
			for k, p := range []float64{0.5, 0.8, 0.95} {
				lo, hi, err := m.Interval(p)
				OK(t, err)
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

// TestBQMFTellsItsStart: progress is told before the scales are made, behind each 256 rows, and at the end.
func TestBQMFTellsItsStart(t *testing.T) {
	var seen []float64
	Fitted(t, FitBQMF, Lognormal(600, 12), 3, WithEpochs(0), WithProgress(func(p Progress) error {
		if p.Phase == PhaseFactors {
			seen = append(seen, p.Done)
		}
		return nil
	}))
	if len(seen) != 5 || !slices.IsSorted(seen) || seen[0] != 0 || seen[3] == 1 || seen[4] != 1 {
		t.Errorf("reports of the start: %v", seen)
	}
}
