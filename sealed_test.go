package quantmf_test

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	. "github.com/quantmf/quantmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// smallModels are a model of each kind, for 6 × 9.
func smallModels(t *testing.T) (x Mat, models map[Method]Model) {
	t.Helper()
	x = NewMat(6, 9)
	for i := range x.Rows {
		for j := range x.Cols {
			x.Set(i, j, 1+math.Abs(math.Sin(float64(3*i+1))*float64(j+1))+float64((i*j)%3))
		}
	}
	models = map[Method]Model{}
	for method := range MethodBQMF + 1 {
		models[method] = Fitted(t, By(method), x, 2, WithEpochs(3))
	}
	return x, models
}

// answers calls the methods of a model that compute with its factors, and returns the names of those that
// answer: with no error, or with a result that is not empty.
func answers(ctx context.Context, t *testing.T, m Model, x Mat) (answered []string) {
	t.Helper()
	errs := map[string]error{"Loss": ErrorOf(m.Loss(x)), "Score": ErrorOf(m.Score(ctx, x)),
		"Transform": ErrorOf(m.Transform(ctx, x)), "Scores": ErrorOf(m.Scores(ctx, x)),
		"Predict": ErrorOf(m.Predict(ctx, x)), "Goodness": ErrorOf(m.Goodness(x)),
		"TopFeatures": ErrorOf(m.TopFeatures(x, 2)), "MarshalBinary": ErrorOf(m.MarshalBinary()),
		"MarshalText": ErrorOf(m.MarshalText())}
	results := map[string]Mat{"Reconstruct": m.Reconstruct()}
	if m, is := m.(*BQMF); is {
		results["low end"], results["high end"], errs["Interval"] = m.Interval(0.5)
		_, _, errs["PredictInterval"] = m.PredictInterval(ctx, x, 0.5)
		_, _, errs["Probability"] = m.Probability(x)
		results["Median"], results["Deviation"] = m.Median(), m.Deviation()
	}
	for name, err := range errs {
		if err == nil {
			answered = append(answered, name)
		} else if !Typed(err) {
			t.Errorf("%T: %s: %v is not typed", m, name, err)
		}
	}
	for name, m := range results {
		if m.Rows != 0 || m.Cols != 0 || m.Data != nil {
			answered = append(answered, name)
		}
	}
	return answered
}

// TestChangedFieldsAnswer: where a field that a model computes with has another size or another number, each
// of its methods returns a typed error or an empty result, and never panics.
func TestChangedFieldsAnswer(t *testing.T) {
	x, models := smallModels(t)
	for method, m := range models {
		if got := answers(t.Context(), t, m, x); len(got) < 8 {
			t.Errorf("%v: as fitted, only %v answer", method, got)
		}
		data := FileOf(t, m)
		for _, name := range []string{"U", "V", "Quantiles", "Weights"} {
			f := reflect.ValueOf(m).Elem().FieldByName(name)
			if !f.IsValid() {
				continue
			}
			was := f.Interface().(Mat)
			other := was.Clone()
			other.Set(1, 1, other.At(1, 1)+1)
			wide := NewMat(was.Rows, was.Cols+1)
			short := was
			short.Data = was.Data[:3]
			for what, change := range map[string]Mat{"another number": other, "another size": wide,
				"too little data": short, "no stride": {Rows: was.Rows, Cols: was.Cols, Data: was.Data},
				"nothing": {}, "negative": {Rows: -1, Cols: 2, Stride: 2}} {
				changed := Must(UnmarshalModel(data))(t)
				reflect.ValueOf(changed).Elem().FieldByName(name).Set(reflect.ValueOf(change))
				if got := answers(t.Context(), t, changed, x); len(got) > 0 {
					t.Errorf("%v: %s with %s: %v answer", method, name, what, got)
				}
			}
		}
	}
}

// TestModelByHand: an NMF that was put together is one under KL, and the zero Loss is the default of a fit.
func TestModelByHand(t *testing.T) {
	x, models := smallModels(t)
	u, v := models[MethodNMF].Factors()
	m := NMF{Factorisation: Factorisation{U: u, V: v}}
	got, err := m.Loss(x)
	want, _ := models[MethodNMF].Loss(x)
	if err != nil || got != want {
		t.Errorf("by hand: loss %v, %v, as fitted %v", got, err, want)
	}
	data := FileOf(t, &m)
	if read, err := UnmarshalModel(data); err != nil {
		t.Error(err)
	} else if got, err = read.Loss(x); got != want {
		t.Errorf("read: loss %v, %v", got, err)
	}
	for _, bad := range []NMF{
		{}, {Factorisation: Factorisation{U: u}}, {Factorisation: Factorisation{U: v, V: u}},
		{Factorisation: Factorisation{U: Mat{Rows: 1, Cols: 1, Stride: 1,
			Data: []float64{-1}},
			V: Mat{Rows: 1, Cols: 1, Stride: 1, Data: []float64{1}}}},
	} {
		if got := answers(t.Context(), t, &bad, x); len(got) > 0 {
			t.Errorf("%v by hand: %v answer", bad.U, got)
		}
	}
	for _, l := range []Loss{0, KL} {
		m := Fitted(t, FitNMF, x, 2, WithEpochs(3),
			WithLoss(Frobenius), WithLoss(l))
		if got, _ := m.Loss(x); got != want {
			t.Errorf("WithLoss(%v) after Frobenius: %v, want %v", l, got, want)
		}
	}
	signed := x.Clone()
	signed.Set(2, 3, -4)
	if _, err := FitBQMF(t.Context(), signed, 2, WithEpochs(1),
		WithLoss(0)); err != nil {
		t.Errorf("the zero loss of a signed x: %v", err)
	}
	if at := Loss(0).At(3, 2); at != KL.At(3, 2) || at == Beta(0).At(3, 2) {
		t.Errorf("the zero loss at one cell: %v", at)
	}
	Near(t, Beta(0).At(3, 2), 1.5-math.Log(1.5)-1, 1e-15, "Itakura and Saito at one cell")
}

// TestModelsAsTexts: what encoding/json makes of a model is read back to the same bits, by its own type and
// by UnmarshalModel, and another type or a damaged text is an error that leaves the model alone.
func TestModelsAsTexts(t *testing.T) {
	_, models := smallModels(t)
	for method, m := range models {
		coded := Must(json.Marshal(map[string]any{"model": m}))(t)
		file, _ := m.MarshalBinary()
		for other := range MethodBQMF + 1 {
			one := way{method: other}.empty()
			var raw map[string]json.RawMessage
			OK(t, json.Unmarshal(coded, &raw))
			err := json.Unmarshal(raw["model"], one)
			var bad *FormatError
			if other != method {
				if _, has := one.MarshalBinary(); !errors.As(err, &bad) || has == nil {
					t.Errorf("%v read as %v: %v", method, other, err)
				}
				continue
			}
			if again, _ := one.MarshalBinary(); err != nil || string(again) != string(file) {
				t.Errorf("%v: another model, %v", method, err)
			}
		}
		text, _ := m.MarshalText()
		if any, err := UnmarshalModel(text); err != nil {
			t.Error(err)
		} else if again, _ := any.MarshalBinary(); string(again) != string(file) {
			t.Errorf("%v: UnmarshalModel reads another model", method)
		}
		for _, damaged := range [][]byte{text[:len(text)-1],
			append(text[:len(text)-8:len(text)-8], "$AAAAAAA"...),
			[]byte(method.String() + ":"), {}} {
			var bad *FormatError
			if m, err := UnmarshalModel(damaged); m != nil || !errors.As(err, &bad) {
				t.Errorf("%v: a damaged text: %v", method, err)
			}
		}
	}
}

// TestZeroValues: zero values of exported types answer with errors, empty results or constants.
func TestZeroValues(t *testing.T) {
	tr := new(Transport)
	if len(tr.Rank()) != 0 || len(tr.Sort()) != 0 || tr.Plan().Rows != 0 {
		t.Error("the zero Transport has results")
	}
	f, c := new(Map), new(Curve)
	errs := []error{ErrorOf(f.Invert(0)), ErrorOf(c.Invert(0))}
	for _, q := range [][]float64{nil, {1, 2}} {
		errs = append(errs, ErrorOf(tr.RankVJP(q)), ErrorOf(tr.SortVJP(q)), ErrorOf(tr.Quantile(q)),
			ErrorOf(tr.Map(q)), ErrorOf(tr.QuantileVJP(q, q)), ErrorOf(tr.QuantileJVP(q, Gradient{})))
	}
	for i, err := range errs {
		if !Typed(err) {
			t.Errorf("error %d is %v", i, err)
		}
	}
	if f.At(3) != 0 || f.Slope(3) != 0 || c.At(3) != 0 || !math.IsNaN(c.At(math.NaN())) {
		t.Error("the zero Map or Curve is not 0")
	}
	var s *Sparse
	if d, n := s.Dims(); d != 0 || n != 0 || s.Listed() != 0 {
		t.Error("a nil Sparse has numbers")
	}
	for _, x := range []Rows{nil, s, new(Sparse), Mat{}, Mat32{}} {
		if _, err := FitNMF(t.Context(), x, 1); !Typed(err) {
			t.Errorf("%T: %v", x, err)
		}
	}
	for _, err := range []error{&ReadError{}, &DataError{}, &ShapeError{},
		&OptionError{}, &FormatError{}, &ConvergenceError{}} {
		if err.Error() == "" {
			t.Errorf("%T says nothing", err)
		}
	}
	for _, m := range []Model{new(NMF), new(QMF), new(QMFQ), new(BQMF)} {
		if got := answers(t.Context(), t, m, NewMat(2, 3)); len(got) > 0 || m.Shares().Rows != 0 ||
			len(m.TopSamples(2)) != 0 {
			t.Errorf("the zero %T: %v answer", m, got)
		}
	}
	b, q, two := new(BQMF), new(QMF), new(QMFQ)
	for i, err := range []error{ErrorOf(b.Map(0)), ErrorOf(q.Map(0)), ErrorOf(two.Inflate(0)),
		ErrorOf(two.Deflate(0)), ErrorOf(two.Normalize(NewMat(2, 3)))} {
		if !Typed(err) {
			t.Errorf("map %d of a zero model: %v", i, err)
		}
	}
	if len(b.Bend())+len(q.Bend())+len(two.Bend())+len(q.MarginalErrors()) != 0 {
		t.Error("a zero model has bends or errors")
	}
	if p, err := (Projection{}).MarshalText(); err != nil || len(p) != 0 {
		t.Errorf("the zero Projection: %q, %v", p, err)
	}
	if _, err := FitNMF(t.Context(), NewMat(2, 2), 1, nil); !Typed(err) {
		t.Errorf("a nil option: %v", err)
	}
}

// TestTexts: every constant is read back from its text, and no other text is.
func TestTexts(t *testing.T) {
	count := 0
	check := func(v encoding.TextMarshaler, fresh encoding.TextUnmarshaler, want string) {
		t.Helper()
		count++
		got, err := v.MarshalText()
		if err != nil || string(got) != want {
			t.Errorf("%v: %q, %v, want %q", v, got, err, want)
			return
		}
		if err := fresh.UnmarshalText(got); err != nil ||
			reflect.ValueOf(fresh).Elem().Interface() != any(v) {
			t.Errorf("%q is read as %v, %v", got, reflect.ValueOf(fresh).Elem(), err)
		}
		before := reflect.ValueOf(fresh).Elem().Interface()
		if err := fresh.UnmarshalText([]byte("x y")); !Typed(err) ||
			reflect.ValueOf(fresh).Elem().Interface() != before {
			t.Errorf("%T takes another text: %v", v, err)
		}
	}
	for m, want := range []string{"nmf", "qmf", "qmfq", "bqmf"} {
		check(Method(m), new(Method), want)
	}
	for p, want := range []string{"choice", "factors", "maps", "qmf", "epochs"} {
		check(Phase(p), new(Phase), want)
	}
	for s, want := range []string{"logistic", "none", "logisticUnit", "arctan"} {
		check(Squash(s), new(Squash), want)
	}
	for s, want := range []string{"auto", "scores", "nmf", "uniform", "svd"} {
		check(Start(s), new(Start), want)
	}
	check(ScheduleConstant, new(Schedule), "constant")
	check(UpdatesMultiplicative, new(Updates), "multiplicative")
	check(EndsPinned, new(Ends), "pinned")
	for l, want := range map[Loss]string{0: "auto", KL: "kl", Frobenius: "frobenius",
		Beta(0): "0", Beta(0.5): "0.5"} {
		check(l, new(Loss), want)
	}
	for p, want := range map[Projection]string{KLUpdates(5): "kl:5",
		FrobeniusUpdates(7): "frobenius:7", TruncatedSVD(): "svd", {}: ""} {
		check(p, new(Projection), want)
	}
	for _, v := range []encoding.TextMarshaler{Method(9), Phase(9), Squash(9),
		Schedule(9), Updates(9), Start(9), Ends(9)} {
		if _, err := v.MarshalText(); !Typed(err) {
			t.Errorf("%T(9): %v", v, err)
		}
	}
	if count < 25 {
		t.Errorf("%d texts", count)
	}
}
