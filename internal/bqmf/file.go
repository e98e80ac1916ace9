package bqmf

// This file holds models as sections of a file (internal/section lists them), and states as parts of a
// checkpoint. What is read may be any numbers: each is held to the range that it has in a model.

import (
	"math"
	"strconv"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/limit"
	"github.com/quantmf/quantmf/internal/section"
)

// Sections returns the sections of a model but for U and V. The numbers of more are kept beside the noise.
func (m *Model) Sections(more ...float64) []section.Section {
	p := m.Posterior
	size := p.K * (p.K + 1) / 2
	tight := func(b []float64, lines int) [][]float64 {
		out := make([][]float64, lines)
		for l := range out {
			out[l] = b[l*Packed(p.K):][:size]
		}
		return out
	}
	counts, rows, knots := encodeCurves(m.Curves)
	of, stage := p.Stage.encode(p.N)
	all := []section.Section{
		section.Floats("MOMU", tight(p.BU, p.D)...), section.Floats("MOMV", tight(p.BV, p.N)...),
		section.Floats("NOIS", p.Tau, p.Rho, []float64{p.Unit}, more),
		section.Words("STGW", of...), section.Floats("STGF", stage...),
		section.Words("CURV", counts...), section.Floats("CURR", rows), section.Floats("KNOT", knots...),
	}
	if p.Together != nil {
		all = append(all, section.Floats("TOGE", []float64{p.Together.Factor}, p.Together.Usual))
	}
	var absent []uint64
	for j := range p.N {
		if p.absent(j) {
			absent = append(absent, uint64(j))
		}
	}
	if len(absent) > 0 {
		all = append(all, section.Words("ABSE", absent...))
	}
	if p.Alike != nil {
		of, alike := p.Alike.encode()
		all = append(all, section.Words("ALIK", of...), section.Floats("ALIZ", alike...))
	}
	return all
}

// Decode reads a model of which d, n and k are the sizes and u and v the factors, row by row. It fills more.
// Values of x are not negative unless signed.
func Decode(f *section.File, d, n, k int, u, v []float64, signed bool, more []float64) (*Model, error) {
	p := &Posterior{D: d, N: n, K: k, U: u, V: make([]float64, k*kernel.Pad(n))}
	for c := range k {
		copy(p.V[c*kernel.Pad(n):], v[c*n:(c+1)*n])
	}
	m := &Model{Posterior: p}
	// readAlike compares samples: which of them are absent is known by then.
	for _, read := range []func(*section.File) error{p.readMoments,
		func(f *section.File) error { return p.readNoise(f, more) },
		func(f *section.File) error { return m.readCurves(f, signed) }, p.readStage, p.readAbsent,
		p.readAlike, p.readTogether} {
		if err := read(f); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// readMoments reads the second moments, and checks the first ones.
func (p *Posterior) readMoments(f *section.File) (err error) {
	if size := int64(p.K) * int64(p.K+1) / 2; size > limit.Cells/int64(p.D+p.N) {
		return f.Fail("DIMS", "the moments would need too much memory")
	}
	for _, tag := range []string{"UFAC", "VFAC"} {
		if _, err := f.Floats(tag, -1, -limit.Moment, limit.Moment); err != nil {
			return err
		}
	}
	moments := func(tag string, lines int) ([]float64, error) {
		size, pp := p.K*(p.K+1)/2, Packed(p.K)
		v, err := f.Floats(tag, int64(lines)*int64(size), -limit.Moment, limit.Moment)
		if err != nil {
			return nil, err
		}
		out := make([]float64, lines*pp)
		for l := range lines {
			copy(out[l*pp:], v[l*size:(l+1)*size])
		}
		return out, nil
	}
	if p.BU, err = moments("MOMU", p.D); err != nil {
		return err
	}
	p.BV, err = moments("MOMV", p.N)
	return err
}

// readNoise reads τ, ρ and what stands beside them.
func (p *Posterior) readNoise(f *section.File, more []float64) error {
	v, err := f.Floats("NOIS", int64(p.D+p.N+1+len(more)), 0, math.MaxFloat64)
	if err != nil {
		return err
	}
	for i, t := range v[:p.D+p.N+1] {
		if !(t >= 1/limit.Moment && t <= limit.Moment) && (i >= p.D || t != 0) { // τ of a constant row is 0
			return f.FailAt("NOIS", i, "a number is out of range")
		}
	}
	p.Tau, p.Rho, p.Unit = v[:p.D:p.D], v[p.D:p.D+p.N:p.D+p.N], v[p.D+p.N]
	copy(more, v[p.D+p.N+1:])
	return nil
}

// readCurves reads what encodeCurves returned, for any numbers. Those on the scale of x are not negative
// unless signed.
func (m *Model) readCurves(f *section.File, signed bool) error {
	counts, err := f.Words("CURV", 3*m.D)
	if err != nil {
		return err
	}
	rows, err := f.Floats("CURR", int64(m.D)*int64(rowNumbers), -limit.Value, limit.Value)
	if err != nil {
		return err
	}
	knots, err := f.Floats("KNOT", -1, -limit.Value, limit.Value)
	if err != nil {
		return err
	}
	m.Curves = make([]Curve, m.D)
	for i := range m.Curves {
		c, r := &m.Curves[i], rows[i*rowNumbers:(i+1)*rowNumbers]
		n, mass, steps, left := counts[3*i], counts[3*i+1], counts[3*i+2], uint64(len(knots))/2
		if n < 1 || n > left || mass > left || steps > left || n+mass+steps > left {
			return f.Fail("CURV", "a number of knots is out of range")
		}
		take := func(n uint64) []float64 {
			v := knots[:n:n]
			knots = knots[n:]
			return v
		}
		c.Y, c.X, c.MassY, c.MassX, c.StepAt, c.StepTo = take(n), take(n), take(mass), take(mass),
			take(steps), take(steps)
		if mass == 0 {
			c.MassY, c.MassX = c.Y, c.X
		}
		copy(c.Levels[:], r[7:])
		c.Seen = [2]float64{r[0], r[1]}
		c.Spread, c.Floor, c.MeanX, c.MeanP, c.Slope = r[2], r[3], r[4], r[5], r[6]
		row := strconv.Itoa(i)
		switch {
		case min(c.Spread, c.Floor, c.Slope) < 0 || max(c.Spread, c.Slope) > limit.Moment:
			return f.Fail("CURR", "a number of row "+row+" is out of range")
		case !rise(c.Y, c.X, limit.Moment, signed) || !rise(c.X, c.Y, limit.Value, true):
			return f.Fail("KNOT", "the scale of row "+row+" does not rise")
		case !(c.X[0] <= c.Seen[lower] && c.Seen[lower] <= c.Seen[upper] && c.Seen[upper] <= c.X[n-1]):
			return f.Fail("CURR", "the ends of row "+row+" are not on its scale")
		case !rise(c.MassY, c.MassX, limit.Moment, signed):
			return f.Fail("KNOT", "the masses of row "+row+" fall")
		case !rise(c.Levels[:], c.Levels[:], limit.Moment, true):
			return f.Fail("CURR", "the levels of row "+row+" do not rise")
		case !rise(c.StepAt, c.StepTo, limit.Value, signed):
			return f.Fail("KNOT", "the steps of row "+row+" fall")
		case (n == 1) != (m.Tau[i] == 0):
			return f.Fail("NOIS", "a row is constant and has noise, or neither")
		}
	}
	if len(knots) > 0 {
		return f.Fail("KNOT", "wrong length")
	}
	return nil
}

// rise tells whether places rise, their magnitude at most so much, and values there do not fall, nor are
// negative unless signed.
func rise(at, to []float64, most float64, signed bool) bool {
	for k := range at {
		if math.Abs(at[k]) > most || !signed && to[k] < 0 || k > 0 && !(at[k] > at[k-1] && to[k] >= to[k-1]) {
			return false
		}
	}
	return true
}

// readCorrection reads the integers and the numbers of a correction.
func readCorrection(f *section.File, words, floats string) ([]uint64, []float64, error) {
	of, err := f.Words(words, len(f.Payload(words))/8)
	if err != nil {
		return nil, nil, err
	}
	v, err := f.Floats(floats, -1, -limit.Moment, limit.Moment)
	return of, v, err
}

func (p *Posterior) readTogether(f *section.File) error {
	if !f.Has("TOGE") {
		return nil
	}
	v, err := f.Floats("TOGE", int64(1+p.D), 0, limit.Moment)
	if err != nil {
		return err
	}
	if !(v[0] >= 1) {
		return f.FailAt("TOGE", 0, "a factor is out of range")
	}
	p.Together = &Together{Factor: v[0], Usual: v[1:]}
	return nil
}

func (p *Posterior) readAbsent(f *section.File) error {
	if !f.Has("ABSE") {
		return nil
	}
	of, err := f.Words("ABSE", min(len(f.Payload("ABSE"))/8, p.N-1)) // one sample or more is there
	if err != nil {
		return err
	}
	p.Absent = make([]bool, p.N)
	for h, j := range of {
		if j >= uint64(p.N) || h > 0 && j <= of[h-1] {
			return f.FailAt("ABSE", h, "a sample is out of range or out of order")
		}
		p.Absent[j] = true
	}
	return nil
}

// Parts are the numbers of a state in a checkpoint, but for K and Unit.
func (s *State) Parts() []section.Part {
	within := func(v []float64) section.Part { return section.Within(v, -limit.Moment, limit.Moment) }
	above := func(v []float64) section.Part { return section.Within(v, 1/limit.Moment, limit.Moment) }
	return []section.Part{within(s.U), within(s.V), within(s.BU), within(s.BV), above(s.Tau), above(s.Rho),
		above(s.Alpha)}
}

// rowNumbers is how many numbers a curve has beside its knots: the least and the largest observed value,
// spread, floor, mean of x, mean of p, slope and the levels.
const rowNumbers = 7 + len(LevelsAt)

// encodeCurves returns curves as numbers: three counts each (of the knots of g_i, of those of g_i⁻¹ with
// mass, 0 where they are the same, and of the steps), rowNumbers numbers, and the knots, views of those of
// the curves, a part after another.
func encodeCurves(curves []Curve) (counts []uint64, rows []float64, knots [][]float64) {
	for i := range curves {
		c := &curves[i]
		at, to := c.MassY, c.MassX
		if !c.mass() {
			at, to = nil, nil
		}
		counts = append(counts, uint64(len(c.X)), uint64(len(at)), uint64(len(c.StepAt)))
		rows = append(append(rows, c.Seen[lower], c.Seen[upper], c.Spread, c.Floor, c.MeanX, c.MeanP,
			c.Slope), c.Levels[:]...)
		knots = append(knots, c.Y, c.X, at, to, c.StepAt, c.StepTo)
	}
	return counts, rows, knots
}
