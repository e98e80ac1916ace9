package quantmf

// This file holds what all fitted models share: factors and histories, and what a
// model tells about features, samples and components.
//
// # Comparing rows of U
//
// Row i of U lives on a hidden scale of its own: T_i undoes any factor, and in an
// NMF the factor is the unit of feature i. Entries of one row compare by the
// share that their component has in the row of UV,
//
//	s_ic = |u_ic| Σ_j|v_cj| / Σ_c' |u_ic'| Σ_j|v_c'j|,   Σ_c s_ic = 1,
//
// which no scale of a feature or a component changes. A share alone ranks badly: a
// feature that is nothing but noise has shares too. So a feature's value for a
// component is s_ic times the part of feature i that the model explains,
//
//	e_i = 1 - Σ_j Δ(x_ij, fit_ij) / Σ_j Δ(x_ij, mean x_i),
//
// which is 1 less the row's divergence from the fit over its divergence from its own
// mean, the constant nearest to a row under every β divergence. model_test.go plants
// four groups of 40 features among 40 features of noise, and gives each feature a scale
// and a power of its own. Of the top 20 features of a component then 0.94 (NMF), 0.86
// (QMF) and 0.88 (QMFQ) belong to one group; by the share alone 0.79, 0.67 and 0.74,
// and by u_ic 0.47, 0.59 and 0.69.
//
// Samples have no hidden scale: those of a component compare by v_cj, given in
// multiples of the component's mean.
//
// # Files
//
// A model is saved as a file of sections (internal/section); internal/section lists the sections and what
// they hold. A reader checks every number against the range that it has in a model.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/place"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/section"
)

// Model is what fits return: [*NMF], [*QMF], [*QMFQ] or [*BQMF]. The zero value of each is for
// UnmarshalBinary and UnmarshalText. Until one of them succeeds it is a model of no features: its matrices
// and lists are empty, and methods with an x return errors.
//
// Fields are there to be read. Where one that a method computes with has got another size or another number,
// the method returns a [*ShapeError] or a [*DataError], or an empty result where it has no error.
//
// The loss is the one that was fitted, without penalty. NaN cells of x are left out, whatever the fit took.
// Errors of methods with an x: [*ShapeError] for another size, [*DataError] for a value that no fit takes and
// for an x, a row or a column without an observed cell where one is needed, [*ReadError].
type Model interface {
	// Reconstruct returns the fitted matrix, d × n.
	Reconstruct() Mat
	// Loss returns the mean divergence of x, d × n, from Reconstruct(). Cost: that of Reconstruct and dn
	// divergences.
	Loss(x Rows) (float64, error)
	// Transform returns the coordinates, k × n', of n' new samples x, d × n'.
	Transform(ctx context.Context, x Rows) (Mat, error)
	// Score returns the mean divergence of new samples from the model at Transform(x).
	Score(ctx context.Context, x Rows) (float64, error)
	// Scores returns the mean divergence of each of n' new samples, over its observed cells: what tells of
	// odd ones. Score is their mean over the observed cells of all. Errors are those of Transform.
	Scores(ctx context.Context, x Rows) ([]float64, error)
	// Predict returns what the model says of every cell of new samples, d × n', NaN cells of x included.
	// Errors are those of Transform.
	Predict(ctx context.Context, x Rows) (Mat, error)
	// Shares returns the share of each component in each feature, d × k.
	Shares() Mat
	// Goodness says for each of the d features how well the model fits x, d × n, the matrix that was fitted
	// or another one of the same samples. A row without an observed cell is an error. Cost: that of
	// Reconstruct and 2dn divergences.
	Goodness(x Rows) ([]Goodness, error)
	// TopFeatures returns, for each of the k components, the count features that it stands for most, the
	// first of equal ones first. A feature's value is s_ic e_i, its share times what the model explains of it
	// (Shares, Goodness), 0 where that is negative: from 0 to 1, whatever scale the feature has. Errors are
	// those of Goodness; a count below 0 is an [*OptionError], and more than d are d.
	TopFeatures(x Rows, count int) ([][]Top, error)
	// TopSamples returns, for each of the k components, the samples that have most of it.
	TopSamples(count int) [][]Top
	// MarshalText returns the model as a text, for JSON: its method, a colon and its file in base64.
	MarshalText() ([]byte, error)
	// MarshalBinary returns the model as a file, for [UnmarshalModel]. Where a caller has given any field
	// another size or another number, it returns a [*ShapeError] or a [*DataError] that names the field.
	MarshalBinary() ([]byte, error)
	// Dims returns the sizes of the matrix that was fitted.
	Dims() (d, n int)
	// Rank returns k, the number of components.
	Rank() int
	// Factors returns copies of U, d × k, and V, k × n.
	Factors() (u, v Mat)
	// Divergence returns the loss that was fitted: Divergence().At(x, t) is that of one cell, t being what
	// Predict or Reconstruct has of it. Scores are its means.
	Divergence() Loss
	bounds() *config
	filler(ctx context.Context) (filler, error)
}

// Factorisation is what all models have: the factors and the course of the fit.
type Factorisation struct {
	// U (d × k) and V (k × n) are the factors: non-negative in an NMF, positive in a
	// QMF, and what the projection makes of T'(X) in a QMFQ, of either sign under
	// [TruncatedSVD].
	U, V Mat
	// History is the mean divergence of the visible cells after each epoch, without a
	// penalty; entry 0 is that before the first epoch. All entries are exact up to rounding, but those that
	// [FitQMF] names. A fit that was stopped, by its context or by an error of a function
	// that it calls, has entry 0 and one for each epoch done; a QMFQ under [WithValidation]
	// lacks the entry of the last.
	History []float64
	// Validation is the mean divergence of the held-out cells after each epoch, nil
	// without [WithValidation].
	Validation []float64
	// Best is the epoch whose model this is, an index into History: the last epoch, or under
	// [WithValidation] the one of the lowest loss on the held-out cells. A fit stopped
	// within an epoch has made a part of that epoch too. The last entry of History is
	// still that of the model for a QMF and a QMFQ, exact but for rounding, while the loss
	// of an NMF may be lower.
	Best int
	// Warnings has a *[ConvergenceError] for each row of which a transport did not
	// converge, and a *[DataError] for each component of an NMF that has died out. In a
	// model read from a file, warnings of dead components are errors of another type, with
	// the same text.
	Warnings []error

	loss    Loss
	missing bool        // NaN cells are unobserved
	mapped  bool        // the model has maps
	workers int         // of the methods
	prior   place.Prior // of the samples of an NMF that was fitted with penalties of V
	seals   []seal      // of the fields as the model was made, nil in one that was put together by hand
}

// factorisationOf returns what models share of what a fit has made.
func factorisationOf(made *qmf.Fitted, s *qmf.Settings) Factorisation {
	return Factorisation{U: Mat(made.U), V: Mat(made.V), History: made.History, Validation: made.Validation,
		Best: made.Best, loss: lossOf(s.Loss), missing: s.Missing}
}

// Top is an entry of a ranking: the index of a feature or a sample, from 0, and the value
// it is ranked by.
type Top struct {
	Index int
	Value float64
}

// Goodness says how well a model fits one feature.
type Goodness struct {
	Divergence float64 // mean of Δ(x_ij, fit_ij) over the observed cells, under the loss that was fitted
	Spread     float64 // mean of Δ(x_ij, mean x_i) over the observed cells; 0 where all are equal
	// Explained is e_i = 1 - Divergence/Spread: 1 for a perfect fit, 0 for one that is
	// no better than the feature's mean, below 0 for a worse one; 0 where Spread is.
	Explained float64
}

// filler fills row, n numbers, with row i of a fitted matrix. One goroutine calls it at a time.
type filler func(row []float64, i int)

// matrix returns all rows, d × n.
func (f filler) matrix(d, n int) Mat {
	m := NewMat(d, n)
	for i := range d {
		f(m.Row(i), i)
	}
	return m
}

// meanLoss is the mean over the observed entries of Δ(x, t) under the loss that was fitted, t being what a
// model says of its samples; the largest number where it is beyond that, as of an x far from given factors.
func meanLoss(ctx context.Context, m Model, x Rows) (float64, error) {
	fill, err := m.filler(ctx)
	if err != nil {
		return 0, err
	}
	c := m.bounds()
	d, n := m.Dims()
	if err := checkRows(x); err != nil {
		return 0, err
	}
	if rows, cols := x.Dims(); rows != d || cols != n {
		return 0, &ShapeError{What: "x", Got: sizeOf(rows, cols), Want: sizeOf(d, n)}
	}
	sum, count := 0.0, 0
	from := newRowReader(x)
	observed, num, den, t := make([]bool, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range d {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		row, err := from.row(i)
		if err != nil {
			return 0, err
		}
		fill(t, i)
		top := 0.0
		for j, v := range row {
			if err := c.checkCell(i, j, v); err != nil {
				return 0, err
			}
			if observed[j] = v == v; v == v {
				top = max(top, v, t[j])
				count++
			}
		}
		if c.Loss != divergence.Frobenius && (top == 0 || divergence.Distant(top)) {
			for j, o := range observed {
				if o {
					sum += c.Loss.Divergence(row[j], t[j])
				}
			}
			continue
		}
		low := c.Loss.Least()
		if c.Loss == divergence.Frobenius {
			low = math.Inf(-1)
		}
		c.Loss.Terms(num, den, row, t, low)
		sum += c.Loss.Sum(row, t, num, observed, low)
	}
	if count == 0 {
		return 0, &DataError{Row: -1, Col: -1, Value: math.NaN(), Problem: "x has no observed cell"}
	}
	return min(sum/float64(count), math.MaxFloat64), nil
}

// Dims is that of [Model].
func (m *Factorisation) Dims() (d, n int) { return m.U.Rows, m.V.Cols }

// Rank is that of [Model].
func (m *Factorisation) Rank() int { return m.U.Cols }

// Factors is that of [Model].
func (m *Factorisation) Factors() (u, v Mat) {
	u, v = m.factors()
	return u.Clone(), v.Clone()
}

// Divergence is that of [Model].
func (m *Factorisation) Divergence() Loss { return lossOf(m.divergence()) }

// divergence is the loss of the model.
func (m *Factorisation) divergence() divergence.Loss { return m.loss.of(divergence.KL) }

func (m *Factorisation) common() *Factorisation { return m }

// bounds returns the options that say which values a matrix may have. Whatever the fit took, a NaN cell is
// unobserved: samples that lack values are placed and judged by those that they have.
func (m *Factorisation) bounds() *config {
	return &config{Settings: qmf.Settings{Loss: m.divergence(), Missing: true, Mapped: m.mapped}}
}

// judged is the loss at the best epoch: that of the held-out cells where there are any, otherwise that
// of the visible cells.
func (m *Factorisation) judged() float64 {
	entries := m.History
	if len(m.Validation) > 0 {
		entries = m.Validation
	}
	if m.Best >= len(entries) || m.Best < 0 {
		return math.Inf(1)
	}
	return entries[m.Best]
}

// Shares returns s, d × k: s_ic is the share of component c in feature i of UV, in [0,1].
// The shares of a feature sum to 1; they are all 0 where UV is 0 for every sample. Under
// [TruncatedSVD] magnitudes are compared.
func (m *Factorisation) Shares() Mat {
	u, v := m.factors()
	mass, most := make([]float64, v.Rows), 0.0
	for c := range mass {
		mass[c] = meanSize(v.Row(c))
		most = max(most, mass[c])
	}
	s := NewMat(u.Rows, u.Cols)
	for i := range s.Rows {
		row, top, sum := s.Row(i), 0.0, 0.0
		for _, x := range u.Row(i) {
			top = max(top, math.Abs(x))
		}
		if top == 0 || most == 0 {
			continue
		}
		for c, x := range u.Row(i) { // factors of at most 1: no magnitude overflows
			row[c] = float64(math.Abs(x) / top * (mass[c] / most))
			sum += row[c]
		}
		for c := range row {
			if sum > 0 {
				row[c] /= sum
			}
		}
	}
	return s
}

// meanSize returns the mean of |v_j|, without a sum that could overflow.
func meanSize(v []float64) float64 {
	mean := 0.0
	for j, x := range v {
		mean += (math.Abs(x) - mean) / float64(j+1)
	}
	return mean
}

// goodnessOf is the Goodness of a model.
func goodnessOf(m Model, x Rows) ([]Goodness, error) {
	c := m.bounds()
	d, n := m.Dims()
	if err := checkRows(x); err != nil {
		return nil, err
	}
	if rows, cols := x.Dims(); rows != d || cols != n {
		return nil, &ShapeError{What: "x", Got: sizeOf(rows, cols), Want: sizeOf(d, n)}
	}
	fill, err := m.filler(context.Background())
	if err != nil {
		return nil, err
	}
	out, from, fit := make([]Goodness, d), newRowReader(x), make([]float64, n)
	for i := range out {
		row, err := from.row(i)
		if err != nil {
			return nil, err
		}
		fill(fit, i)
		low, high, mean, count := math.Inf(1), math.Inf(-1), 0.0, 0.0
		for j, v := range row {
			if err := c.checkCell(i, j, v); err != nil {
				return nil, err
			}
			if v == v {
				low, high = min(low, v), max(high, v)
				count++
				mean += (v - mean) / count // no sum that could overflow
			}
		}
		if count == 0 {
			return nil, &DataError{Row: i, Col: -1, Value: math.NaN(),
				Problem: "the row has no observed cell"}
		}
		// The squares of very large numbers overflow and those of very small ones underflow, but their
		// ratio is a float64: divergences are taken in units of 2^e. Under β < 0 no x is so large or so
		// small, but in the unit of a fitted value that is, the powers of x would overflow: e stays 0.
		e, top := 0, max(math.Abs(low), math.Abs(high))
		for _, v := range fit {
			top = max(top, math.Abs(v))
		}
		if c.Loss >= 0 && divergence.Distant(top) {
			e = divergence.ExponentOf(top)
		}
		left, total, unit := 0.0, 0.0, c.Loss.Unit(e)
		for j, v := range row {
			if v == v {
				v = math.Ldexp(v, -e)
				left += c.Loss.Divergence(v, math.Ldexp(fit[j], -e))
				total += c.Loss.Divergence(v, math.Ldexp(mean, -e))
			}
		}
		out[i].Divergence = min(left/count*unit, math.MaxFloat64)
		if low < high && total > 0 {
			out[i].Spread = min(total/count*unit, math.MaxFloat64)
			out[i].Explained = max(1-left/total, -math.MaxFloat64)
		}
	}
	return out, nil
}

func featuresOf(m Model, x Rows, count int) ([][]Top, error) {
	if count < 0 {
		return nil, &OptionError{Option: "count", Value: itoa(count), Bound: "must be at least 0"}
	}
	g, err := m.Goodness(x)
	if err != nil {
		return nil, err
	}
	return topFeatures(m.Shares(), g, count), nil
}

func topFeatures(s Mat, g []Goodness, count int) [][]Top {
	out := make([][]Top, s.Cols)
	for c := range out {
		out[c] = ranked(s.Rows, count, func(i int) float64 { return s.At(i, c) * max(g[i].Explained, 0) })
	}
	return out
}

// TopSamples returns, for each of the k components, the count samples that have most of
// it, largest first, equal ones in the order of their indices. A sample's value is v_cj
// divided by the mean of v_c (of |v_c| under a [TruncatedSVD]); 0 where that mean is 0. A
// count below 0 is taken as 0, one above n as n.
func (m *Factorisation) TopSamples(count int) [][]Top {
	_, v := m.factors()
	out := make([][]Top, v.Rows)
	for c := range out {
		row, mean := v.Row(c), meanSize(v.Row(c))
		out[c] = ranked(len(row), count, func(j int) float64 {
			if mean == 0 {
				return 0
			}
			return row[j] / mean
		})
	}
	return out
}

// ranked returns the count largest of n values, the first of equal ones first.
func ranked(n, count int, value func(i int) float64) []Top {
	all := make([]Top, n)
	for i := range all {
		all[i] = Top{i, value(i)}
	}
	slices.SortStableFunc(all, func(a, b Top) int { return cmp.Compare(b.Value, a.Value) })
	return slices.Clip(all[:min(max(count, 0), n)])
}

// common reads the sections that all models have. No entry of a factor may be below low.
func (f *file) common(m *Factorisation, low float64) (err error) {
	m.Best, m.loss, m.missing, m.mapped = f.best, lossOf(f.loss), f.missing, f.mapped
	if m.U, err = f.matrixIn("UFAC", f.d, f.k, low, math.MaxFloat64); err != nil {
		return err
	}
	if m.V, err = f.matrixIn("VFAC", f.k, f.n, low, math.MaxFloat64); err != nil {
		return err
	}
	if c, j := m.overflow(); c >= 0 {
		return f.failAt("VFAC", c*f.n+j, "the product of the factors overflows")
	}
	if m.History, err = f.vectorIn("HIST", -1, f.leastHistory, math.MaxFloat64); err != nil {
		return err
	}
	if m.Validation, err = f.vectorIn("VALI", -1, 0, math.MaxFloat64); err != nil {
		return err
	}
	if len(f.Payload("PENV")) > 0 {
		v, err := f.vectorIn("PENV", 2, 0, math.MaxFloat64)
		if err != nil {
			return err
		}
		m.prior = place.Prior{L1: v[0], L2: v[1]}
	}
	if len(m.Validation) == 0 {
		m.Validation = nil
	} else if len(m.Validation) != len(m.History) {
		return f.fail("VALI", "wrong length")
	}
	if f.best >= max(len(m.History), 1) {
		return f.failAt("DIMS", 4, "the best epoch is not in the history")
	}
	m.Warnings, err = f.warnings()
	return err
}

// overflow returns the component whose part may bring an entry of UV beyond limit.Product, and the sample
// where this part is largest; component is -1 where there is none.
func (m *Factorisation) overflow() (component, sample int) {
	total := 0.0
	for c := range m.V.Rows {
		topU, topV, at := 0.0, 0.0, 0
		for i := range m.U.Rows {
			topU = max(topU, math.Abs(m.U.At(i, c)))
		}
		for j, x := range m.V.Row(c) {
			if math.Abs(x) > topV {
				topV, at = math.Abs(x), j
			}
		}
		if total += float64(topU * topV); !(total <= limit.Product) {
			return c, at
		}
	}
	return -1, 0
}

// sections returns the sections that all models have; m and ε are 0 in an NMF.
func (f *Factorisation) sections(m int, eps float64) []section.Section {
	missing := uint64(0)
	if f.missing {
		missing = 1
	}
	all := []section.Section{
		section.Words("DIMS", uint64(f.U.Rows), uint64(f.V.Cols), uint64(f.U.Cols), uint64(m),
			uint64(f.Best), missing, math.Float64bits(float64(f.divergence())), math.Float64bits(eps)),
		section.Floats("UFAC", flat(f.U)), section.Floats("VFAC", flat(f.V)),
		section.Floats("HIST", f.History), section.Floats("VALI", f.Validation),
	}
	if f.prior != (place.Prior{}) {
		all = append(all, section.Floats("PENV", []float64{f.prior.L1, f.prior.L2}))
	}
	return append(all, warned(f.Warnings)...)
}

func (f *file) warnings() (errs []error, err error) {
	v, err := f.vectorIn("CONV", -1, 0, math.MaxFloat64)
	if err == nil && len(v)%4 != 0 {
		err = f.fail("CONV", "wrong length")
	}
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(v); i += 4 {
		row, passes := int(min(v[i], 1<<31)), int(min(v[i+1], 1<<53))
		switch {
		case row >= f.d || float64(row) != v[i]:
			return nil, f.failAt("CONV", i, "there is no row "+ftoa(v[i]))
		case float64(passes) != v[i+1]:
			return nil, f.failAt("CONV", i+1, "a number of passes is "+ftoa(v[i+1]))
		case !(v[i+3] > 0):
			return nil, f.failAt("CONV", i+3, "a tolerance is 0")
		}
		errs = append(errs, &ConvergenceError{Row: row, Iterations: passes, MarginalError: v[i+2],
			Tolerance: v[i+3]})
	}
	texts, err := f.Texts("WARN")
	for _, s := range texts {
		errs = append(errs, savedWarning(s))
	}
	return errs, formatError(err)
}

// flat returns the entries of m row by row.
func flat(m Mat) []float64 { return m.Clone().Data }

// warned returns the sections of warnings.
func warned(errs []error) []section.Section {
	var texts []string
	var numbers []float64
	for _, e := range errs {
		if c, ok := e.(*ConvergenceError); ok {
			numbers = append(numbers, float64(c.Row), float64(c.Iterations), c.MarginalError, c.Tolerance)
			continue
		}
		texts = append(texts, e.Error())
	}
	return []section.Section{section.Floats("CONV", numbers).AsOptional(),
		section.Texts("WARN", texts...).AsOptional()}
}

// file is a decoded file: its sections and, except in a checkpoint, the numbers of section DIMS. Its
// methods return every error as a [*FormatError].
type file struct {
	*section.File
	leastHistory float64
	d, n, k      int
	m            int
	mapped       bool
	best         int
	missing      bool
	loss         divergence.Loss
	epsilon      float64
}

func decode(b []byte, kind uint32) (*file, error) {
	f, err := decodeSections(b, kind, section.RequiredTags(kind), section.OptionalTags(kind)...)
	if err != nil {
		return nil, err
	}
	f.leastHistory, f.mapped = section.LeastHistory(kind), kind != section.NMF
	return f, f.dims(kind)
}

// decodeSections reads a file of the kind that must have the sections tags and
// may have CONV, WARN and more.
func decodeSections(b []byte, kind uint32, tags []string, more ...string) (*file, error) {
	f, err := section.Decode(b, kind, section.KindName, tags, append(more, "CONV", "WARN"))
	if err != nil {
		return nil, formatError(err)
	}
	return &file{File: f}, nil
}

// formatError turns an error of internal/section into a [*FormatError].
func formatError(err error) error {
	if e, ok := err.(*section.Error); ok {
		return (*FormatError)(e)
	}
	return err
}

// fail reports a problem of a section, failAt one of number i of a section.
func (f *file) fail(tag, problem string) error { return formatError(f.Fail(tag, problem)) }

func (f *file) failAt(tag string, i int, problem string) error {
	return formatError(f.FailAt(tag, i, problem))
}

func (f *file) dims(kind uint32) error {
	v, err := f.words("DIMS", 8)
	if err != nil {
		return err
	}
	low := [6]uint64{1, 1, 1, 2, 0, 0}
	most := [6]uint64{1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1<<31 - 1, 1}
	mapped := section.Mapped(kind)
	if !mapped {
		low[3], most[3] = 0, 0
	}
	for i := range low {
		if v[i] < low[i] || v[i] > most[i] {
			return f.failAt("DIMS", i, "a size is out of range")
		}
	}
	f.d, f.n, f.k, f.m, f.best, f.missing = int(v[0]), int(v[1]), int(v[2]), int(v[3]), int(v[4]), v[5] == 1
	f.loss, f.epsilon = divergence.Loss(math.Float64frombits(v[6])), math.Float64frombits(v[7])
	if !(f.loss >= -2 && f.loss <= 4) {
		return f.failAt("DIMS", 6, "β is "+ftoa(float64(f.loss)))
	}
	if !mapped && v[7] != 0 || mapped && !(f.epsilon >= 1e-12 && f.epsilon <= 1e12) {
		return f.failAt("DIMS", 7, "ε is "+ftoa(f.epsilon))
	}
	if limit.TooMany(max(f.d, f.n), f.m) { // as in a fit
		return f.failAt("DIMS", 3, "the maps would need too much memory")
	}
	if uint64(f.k) > limit.Cells/uint64(f.d+f.n) {
		return f.failAt("DIMS", 2, "the factors would need too much memory")
	}
	return nil
}

// vectorIn returns a section of count numbers, each from low to high, which are finite. A count of -1
// stands for any.
func (f *file) vectorIn(tag string, count int64, low, high float64) ([]float64, error) {
	v, err := f.Floats(tag, count, low, high)
	return v, formatError(err)
}

func (f *file) matrixIn(tag string, rows, cols int, low, high float64) (Mat, error) {
	v, err := f.vectorIn(tag, int64(rows)*int64(cols), low, high)
	return Mat{Rows: rows, Cols: cols, Data: v, Stride: cols}, err
}

func (w savedWarning) Error() string { return string(w) }

func (f *file) words(tag string, n int) ([]uint64, error) {
	v, err := f.Words(tag, n)
	return v, formatError(err)
}

// savedWarning is a warning of a model that came from a file and is kept as text.
type savedWarning string

// movable is a model that is the same for other samples once their coordinates take the place of V.
type movable interface {
	Model
	at(v Mat) Model
}

// placing is a model that knows more of a sample than its coordinates.
type placing interface {
	place(x Rows, samples []int) error
}

// placeSamples gives some of the samples of x, those that took no part in the fit of a new model, the
// coordinates that Transform has for them. A fit that was stopped has them, too.
func placeSamples(ctx context.Context, m fitted, x Rows, samples []int) error {
	placed, err := m.Transform(context.WithoutCancel(ctx), chosen{x, samples})
	if err != nil {
		return err
	}
	v := m.common().V
	for c := range v.Rows {
		for at, j := range samples {
			v.Set(c, j, placed.At(c, at))
		}
	}
	if p, is := m.(placing); is {
		err = p.place(x, samples)
	}
	sealFields(m)
	return err
}

// chosen is some of the columns of a matrix.
type chosen struct {
	of      Rows
	columns []int
}

func (x chosen) Dims() (rows, cols int) {
	rows, _ = x.of.Dims()
	return rows, len(x.columns)
}

func (x chosen) ReadRow(row []float64, i int) error {
	_, n := x.of.Dims()
	all := make([]float64, n)
	if err := x.of.ReadRow(all, i); err != nil {
		return err
	}
	for at, j := range x.columns {
		row[at] = all[j]
	}
	return nil
}
