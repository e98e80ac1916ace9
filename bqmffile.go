package quantmf

// This file holds a BQMF as a file (files.go) and as a checkpoint (checkpoint.go).

import (
	"io"
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/posterior"
	"github.com/quantmf/quantmf/internal/section"
)

// MarshalBinary returns the model as a file.
func (m *BQMF) MarshalBinary() ([]byte, error) {
	p := m.post
	size := p.K * (p.K + 1) / 2
	tight := func(b []float64, lines int) []float64 {
		out := make([]float64, 0, lines*size)
		for l := range lines {
			out = append(out, b[l*posterior.Packed(p.K):][:size]...)
		}
		return out
	}
	noise := append(append(append([]float64{}, p.Tau...), p.Rho...), p.Unit, m.Strength, m.LeaveOneOut)
	var counts []uint64
	var rows, knots []float64
	for i := range m.curves {
		c := &m.curves[i]
		at, to := c.at, c.to
		if &at[0] == &c.y[0] {
			at, to = nil, nil
		}
		counts = append(counts, uint64(len(c.x)), uint64(len(at)), uint64(len(c.stepAt)))
		rows = append(append(rows, c.spread, c.floor, c.meanX, c.meanP, c.slope), c.levels[:]...)
		for _, part := range [][]float64{c.y, c.x, at, to, c.stepAt, c.stepTo} {
			knots = append(knots, part...)
		}
	}
	return section.Encode(kindBQMF, append(m.sections(0, 0), []section.Section{
		section.Floats("MOMU", tight(p.BU, p.D)), section.Floats("MOMV", tight(p.BV, p.N)), section.Floats("NOIS", noise),
		section.Words("CURV", counts...), section.Floats("CURR", rows), section.Floats("KNOT", knots),
	}...)), nil
}

// mostMoment bounds the numbers of a file that are on the scale of UV, lest their
// products overflow. A fit's are far below.
const mostMoment = 1e30

// UnmarshalBinary makes m the model in data, or returns a [*FormatError] and
// leaves m as it was.
func (m *BQMF) UnmarshalBinary(data []byte) error {
	f, err := decode(data, kindBQMF)
	if err != nil {
		return err
	}
	b := new(BQMF)
	if f.loss != divergence.KL && f.loss != divergence.Frobenius {
		return f.fail("DIMS", "a BQMF has no such loss")
	}
	if err := f.common(&b.Factorisation, -math.MaxFloat64); err != nil {
		return err
	}
	size := int64(f.k) * int64(f.k+1) / 2
	if size > maxCells/int64(f.d+f.n) {
		return f.fail("DIMS", "the moments would need too much memory")
	}
	p := &posterior.Posterior{D: f.d, N: f.n, K: f.k, U: flat(b.U), V: make([]float64, f.k*kernel.Pad(f.n))}
	for c := range f.k {
		copy(p.V[c*kernel.Pad(f.n):], b.V.Row(c))
	}
	small := func(tag string, v []float64) error {
		for i, x := range v {
			if !(math.Abs(x) <= mostMoment) {
				return f.fail(tag, "number "+itoa(i)+" is "+ftoa(x))
			}
		}
		return nil
	}
	if err := small("UFAC", p.U); err != nil {
		return err
	}
	if err := small("VFAC", p.V); err != nil {
		return err
	}
	moments := func(tag string, lines int) ([]float64, error) {
		v, err := f.vectorIn(tag, int64(lines)*size, -mostMoment, mostMoment)
		if err != nil {
			return nil, err
		}
		out := make([]float64, lines*posterior.Packed(f.k))
		for l := range lines {
			copy(out[l*posterior.Packed(f.k):], v[int64(l)*size:int64(l+1)*size])
		}
		return out, nil
	}
	if p.BU, err = moments("MOMU", f.d); err != nil {
		return err
	}
	if p.BV, err = moments("MOMV", f.n); err != nil {
		return err
	}
	noise, err := f.vectorIn("NOIS", int64(f.d)+int64(f.n)+3, 0, math.MaxFloat64)
	if err != nil {
		return err
	}
	p.Tau, p.Rho = noise[:f.d:f.d], noise[f.d:f.d+f.n:f.d+f.n]
	rest := noise[f.d+f.n:]
	p.Unit, b.Strength, b.LeaveOneOut = rest[0], rest[1], rest[2]
	for _, t := range p.Tau {
		if !(t >= 0 && t <= mostMoment) {
			return f.fail("NOIS", "a noise of a row is out of range")
		}
	}
	for _, r := range p.Rho {
		if !(r >= 1/mostMoment && r <= mostMoment) {
			return f.fail("NOIS", "a noise of a sample is out of range")
		}
	}
	if !(p.Unit >= 1/mostMoment && p.Unit <= mostMoment) || b.Strength != strengths[0] && b.Strength != strengths[1] || !(b.LeaveOneOut >= 0) {
		return f.fail("NOIS", "a unit, strength or loss is out of range")
	}
	if err := f.readCurves(b); err != nil {
		return err
	}
	for i := range b.curves {
		if (len(b.curves[i].x) == 1) != (p.Tau[i] == 0) {
			return f.fail("NOIS", "a row is constant and has noise, or neither")
		}
	}
	b.post = p
	b.fill()
	*m = *b
	return nil
}

// readCurves reads the maps.
func (f *file) readCurves(b *BQMF) error {
	counts, err := f.words("CURV", 3*f.d)
	if err != nil {
		return err
	}
	rows, err := f.matrixIn("CURR", f.d, 5+len(levelsAt), -maxValue, maxValue)
	if err != nil {
		return err
	}
	knots, err := f.vectorIn("KNOT", -1, -maxValue, maxValue)
	if err != nil {
		return err
	}
	b.curves = make([]Curve, f.d)
	for i := range b.curves {
		c, r := &b.curves[i], rows.Row(i)
		n, mass, steps, most := counts[3*i], counts[3*i+1], counts[3*i+2], uint64(len(knots))/2
		if n < 1 || n > most || mass > most || steps > most || n+mass+steps > most {
			return f.fail("CURV", "a number of knots is out of range")
		}
		take := func(n uint64) []float64 {
			v := knots[:n:n]
			knots = knots[n:]
			return v
		}
		c.y, c.x, c.at, c.to, c.stepAt, c.stepTo = take(n), take(n), take(mass), take(mass), take(steps), take(steps)
		if mass == 0 {
			c.at, c.to = c.y, c.x
		}
		copy(c.levels[:], r[5:])
		c.spread, c.floor, c.meanX, c.meanP, c.slope = r[0], r[1], r[2], r[3], r[4]
		if !(c.spread >= 0 && c.spread <= mostMoment) || !(c.floor >= 0 && c.floor <= maxValue) || !(c.slope >= 0 && c.slope <= mostMoment) ||
			!(math.Abs(c.meanX) <= maxValue) || !(math.Abs(c.meanP) <= maxValue) {
			return f.fail("CURR", "a number of row "+itoa(i)+" is out of range")
		}
		for k := range c.x {
			if !(math.Abs(c.y[k]) <= mostMoment && math.Abs(c.x[k]) <= maxValue) || k > 0 && !(c.y[k] > c.y[k-1] && c.x[k] > c.x[k-1]) ||
				f.loss == divergence.KL && c.x[k] < 0 {
				return f.fail("KNOT", "the scale of row "+itoa(i)+" does not rise")
			}
		}
		for k := range c.at {
			if !(math.Abs(c.at[k]) <= mostMoment && math.Abs(c.to[k]) <= maxValue) || k > 0 && !(c.at[k] > c.at[k-1] && c.to[k] >= c.to[k-1]) ||
				f.loss == divergence.KL && c.to[k] < 0 {
				return f.fail("KNOT", "the masses of row "+itoa(i)+" fall")
			}
		}
		for k, l := range c.levels {
			if !(math.Abs(l) <= mostMoment) || k > 0 && !(l > c.levels[k-1]) {
				return f.fail("CURR", "the levels of row "+itoa(i)+" do not rise")
			}
		}
		for k := range c.stepAt {
			if !(math.Abs(c.stepAt[k]) <= maxValue && math.Abs(c.stepTo[k]) <= maxValue) || k > 0 && !(c.stepAt[k] > c.stepAt[k-1] && c.stepTo[k] >= c.stepTo[k-1]) ||
				f.loss == divergence.KL && c.stepTo[k] < 0 {
				return f.fail("KNOT", "the steps of row "+itoa(i)+" fall")
			}
		}
	}
	if len(knots) > 0 {
		return f.fail("KNOT", "wrong length")
	}
	return nil
}

// WriteTo writes the model as a file.
func (m *BQMF) WriteTo(w io.Writer) (int64, error) { return writeTo(w, m.MarshalBinary) }

// ReadFrom reads a model until the end of r.
func (m *BQMF) ReadFrom(r io.Reader) (int64, error) { return readFrom(r, m.UnmarshalBinary) }

// parts are the numbers of a fit under way: those of the posterior, and the unit of ρ
// and the last movement.
func (f *bqmfFit) parts(fit *posterior.Fit, last []float64) []section.Part {
	ranges := [...]section.Part{
		section.Within(fit.U, -mostMoment, mostMoment), section.Within(fit.V, -mostMoment, mostMoment), section.Within(fit.BU, -mostMoment, mostMoment), section.Within(fit.BV, -mostMoment, mostMoment),
		section.Within(fit.Tau, 1/mostMoment, mostMoment), section.Within(fit.Rho, 1/mostMoment, mostMoment), section.Within(fit.Alpha, 1/mostMoment, mostMoment),
		section.Within(last, 0, mostMoment),
	}
	u, v := fit.Last()
	return append(ranges[:], section.Within(u, -mostMoment, mostMoment), section.Within(v, -mostMoment, mostMoment))
}

// checkpoint hands the state after an epoch of a run to the caller.
func (f *bqmfFit) checkpoint(fit *posterior.Fit, run, epoch int, done bool, judge watch, history, validation []float64) error {
	s := &saved{restart: run, epoch: epoch, judge: judge, history: history, validation: validation, real: f.parts(fit, []float64{fit.Unit, fit.Moved}), index: []uint64{uint64(fit.K)}}
	if done {
		s.steps = 1
	}
	if f.best != nil {
		s.best, _ = f.best.MarshalBinary()
	}
	return f.save(s.encode(kindBQMF, f.config, f.rankAsked, f.fingerprints))
}

// resumeFrom takes the state of a checkpoint.
func (f *bqmfFit) resumeFrom(fit *posterior.Fit, file *file, s *saved) error {
	if s.steps > 1 {
		return file.failAt("STAT", 3, "there are no steps of V")
	}
	k, err := file.words("IDX0", 1)
	if err != nil {
		return err
	}
	if k[0] < 1 || k[0] > uint64(fit.K) {
		return file.fail("IDX0", "the number of components is out of range")
	}
	if int(k[0]) < fit.K {
		fit.Resize(int(k[0]))
	}
	last := make([]float64, 2)
	if _, err := file.restore(f.parts(fit, last), 1); err != nil {
		return err
	}
	if !(last[0] >= 1/mostMoment) {
		return file.fail("REAL", "the unit of the samples' noise is out of range")
	}
	fit.Unit, fit.Moved = last[0], last[1]
	return nil
}
