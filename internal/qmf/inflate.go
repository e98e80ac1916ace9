package qmf

// This file holds the inflating maps T while they are fitted to X ≈ T(UV): of a QMF,
// whose U and V take steps themselves, and of a QMFQ, whose U and V a projection makes.
// A visit of a row is
//
//	w = U_i V → T_i(w), its loss → the step on q_i and s_i → ∂Δ/∂T → w̄, and the step of F_i,
//
// one call forward and one back (internal/transport). line.go has the line s_i w of T_i. qmf.go and qmfq.go
// take w̄ on to their factors.

import (
	"math"

	"github.com/quantmf/quantmf/internal/divergence"
	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/transport"
)

// inflation is the maps T_i during a fit.
type inflation struct {
	mapRows
	*factors // whose product is inflated
	*Spans
	lambda float64 // the shrinkage
	line   float64 // τ, the share of the line in the start and in the target of shrinkage
	scale  float64 // the mean of heaviness(i): the unit of the whole loss
	whole  bool    // all rows are one batch, of which some rows are visited at a time
	stepsQ int     // how many EM steps a visit makes on q
	// A visit records the loss of a row before its steps where all rows are one batch,
	// otherwise after the step on q. evaluated says that the losses of an epoch are those of
	// evaluateAll: visits of several batches then record none.
	evaluated          bool
	rowLosses, rowHeld []float64 // of each row, as last visited or evaluated
}

// newInflation makes maps for the observed cells. Its factors may be replaced by others of the same size.
func newInflation(s *Settings, visible *fit.Cells, f *factors, p *pool.Pool) *inflation {
	a, d := p.Memory, visible.D
	of := newSpans(a, d, visible.Units.Signed)
	t := &inflation{
		mapRows: mapRows{Settings: s, cells: visible, pool: p,
			Maps:   newMaps(a, d, s.Levels, s.Start == StartUniform, s.Ends == EndsPinned, of),
			spaces: newRowSpaces(p, visible.N, f.k, s.Levels, visible.Weighted())},
		factors: f, Spans: of,
		lambda: s.Shrinkage, line: max(s.Line, 0), stepsQ: 1, rowLosses: a.Floats(d), rowHeld: a.Floats(d),
	}
	if !a.Dry() {
		t.readSpans()
	}
	return t
}

// readSpans reads the rows for the spans and for the unit of the whole loss.
func (f *inflation) readSpans() {
	d, room, weights := f.cells.D, make([]float64, f.cells.N), make([]float64, f.cells.N)
	for i := range d {
		f.Spans.Read(f.cells.Row(room, i), i, f.cells.InRow[i], f.cells.Weights(weights, i))
		f.scale += f.heaviness(i) / float64(d)
	}
}

// solveRow solves the transport of row i.
func (f *inflation) solveRow(v *rowSpace, i int) {
	f.load(v, i)
	v.row.Solve(f.Tolerance, f.MaxIterations, &f.Warm[i])
}

// solveMap solves the transport of row i, which is not constant, to a tolerance. It fills v.q with q_i, and
// v.t with T_i where average is true.
func (f *inflation) solveMap(v *rowSpace, i int, tolerance float64, average bool) {
	f.Quantiles(v.q, i)
	f.load(v, i)
	if average {
		v.row.Want(v.t, v.q)
	}
	v.row.Solve(tolerance, f.MaxIterations, &f.Warm[i])
	if average {
		f.addLine(v, i)
	}
}

// read fills v.x with row i, v.observed and the weights. Under KL it fills v.s with the weights, 1 where
// there are none, in visible cells and 0 in hidden ones; where no cell is hidden v.s is 1 from newRowSpaces
// on.
func (f *inflation) read(v *rowSpace, i int) {
	f.mapRows.read(v, i)
	if v.weights != nil {
		kernel.Multiply(v.heavy, v.x, v.weights)
		copy(v.s, v.weights)
		return
	}
	if f.Loss == divergence.KL {
		for j, o := range v.observed {
			one := uint64(0) // the compiler makes no branch of this, which would often be predicted wrongly
			if o {
				one = 0x3ff << 52
			}
			v.s[j] = math.Float64frombits(one)
		}
	}
}

// load loads the transport of row i: of w = U_i V, its hidden cells left out, onto b_i.
func (f *inflation) load(v *rowSpace, i int) {
	f.read(v, i)
	kernel.Combine(v.w, f.rowU(i), f.v)
	f.mapRows.load(v, v.w, i)
}

// fitted fills v.t with T_i(w) = s_i w + M q_i at the solved transport.
func (f *inflation) fitted(v *rowSpace, i int) {
	f.Quantiles(v.q, i)
	if f.Constant(i) {
		for j := range v.t {
			v.t[j] = f.Low[i]
		}
		return
	}
	v.row.Average(v.t, v.q)
	f.addLine(v, i)
}

// lowest is the floor of T_i as a divisor. T_i of signed data may be negative and has no floor:
// under Frobenius, which alone takes signed data, nothing is divided by T_i.
func (f *inflation) lowest(i int) float64 {
	if f.Spans.Signed {
		return math.Inf(-1)
	}
	return max(FloorT*f.Average[i], f.Loss.Least())
}

// ratios fills v.g with x T^{β-2} and v.s with T^{β-1}, both times the weight of the cell and 0 in hidden
// cells, where x is 0. Under KL read has filled v.s.
func (f *inflation) ratios(v *rowSpace, i int) {
	den, hidden := v.s[:f.n], v.observed
	if f.Loss == divergence.KL {
		den, hidden = nil, nil
	}
	f.Loss.Terms(v.g[:f.n], den, v.x, v.t, f.lowest(i))
	for j, o := range hidden {
		if !o {
			v.g[j], v.s[j] = 0, 0
		}
	}
	if v.weights == nil {
		return
	}
	kernel.Multiply(v.g, v.g, v.weights)
	if f.Loss != divergence.KL {
		kernel.Multiply(v.s, v.s, v.weights)
	}
}

// rowLoss fills the ratios and returns the sum of divergences of the row, by the weights of its cells.
func (f *inflation) rowLoss(v *rowSpace, i int) float64 {
	f.ratios(v, i)
	return f.ratiosLoss(v, i)
}

// ratiosLoss returns the sum of divergences of the row from the ratios that are in v.g.
func (f *inflation) ratiosLoss(v *rowSpace, i int) float64 {
	t, observed := v.t, v.observed
	if v.weights != nil {
		return f.Loss.WeightedSum(v.x[:f.n], t, v.weights, f.lowest(i))
	}
	if f.Loss == divergence.KL && observed != nil { // T of hidden cells, where x is 0 too, adds 0
		t, observed = v.z, nil
		kernel.Multiply(t, v.t, v.s)
	}
	return f.Loss.Sum(v.x[:f.n], t, v.g, observed, f.lowest(i))
}

// moments returns the squash of w by which slopes are told.
func (f *inflation) moments(v *rowSpace) transport.Squash {
	if v.weights != nil {
		return transport.WeightedSquash(transport.LogisticUnit, v.w[:f.n], v.weights[:f.n])
	}
	return transport.NewSquash(transport.LogisticUnit, v.w[:f.n], v.observed, v.z)
}

// prior fills the prior of the sums with the increments of the map that shrinkage pulls q_i towards. This map
// is α+βw, β >= 0, by least squares of x on w, averaged over each level under the plan. Where the data are
// not signed it is at least 0. den holds the column sums of M over the visible cells, by their weights.
// mixLine gives the line its share.
func (f *inflation) prior(v *rowSpace, i int, s *emSums, den []float64) {
	d0 := s.Prior
	at := v.row.Squash()
	if at.Kind == transport.None { // it has no moments, which are what is needed here
		at = f.moments(v)
	}
	clear(d0)
	beta := 0.0
	if at.Std > 0 {
		// z-scores of w, which no magnitude of w can overflow, and x about its mean.
		z, x := v.z, v.about
		kernel.Shift(x, v.w, at.Ref)
		kernel.Shift(x, x, at.Shift)
		clear(x[f.n:])
		for j, o := range v.observed {
			if !o {
				x[j] = 0
			}
		}
		kernel.Combine(z, []float64{1 / at.Std}, x)
		kernel.Shift(x, v.x, f.Average[i])
		var cov, vw [1]float64
		if v.weights == nil {
			kernel.Dots(vw[:], z, z)
		} else {
			weighted := v.g // which is not in use between the steps of q
			kernel.Multiply(weighted, z, v.weights)
			kernel.Dots(vw[:], z, weighted)
			z = weighted
		}
		kernel.Dots(cov[:], z, x)
		beta = max(cov[0]/vw[0], 0)
		v.row.Columns(d0, z)
	}
	last := 0.0
	for l := range d0 {
		at := 0.0
		if den[l] > 0 {
			at = d0[l] / den[l]
		}
		q := f.Average[i] + float64(beta*at)
		if l > 0 || !f.Spans.Signed {
			q = max(q, last)
		}
		d0[l], last = q-last, q
	}
	if f.line > 0 {
		alpha, slope := f.lineTarget(&at, i, beta)
		f.mixLine(s, alpha, slope)
	}
}

// stepQ makes EM steps on q_i and s_i (monotone.go) at the solved transport. Sums that do not depend on
// them are taken once: under KL all but those of the ratios x/T.
func (f *inflation) stepQ(v *rowSpace, i, steps int) {
	kl, lined := f.Loss == divergence.KL, f.Slope(i) > 0
	s := emSums{Num: v.num, Den: v.den, Shares: v.den, Prior: v.d0}
	if kl {
		v.row.ObservedColumns(s.Den, v.s, f.Mass[i])
	} else if f.lambda > 0 || f.Spans.Signed {
		s.Shares = v.shares
		ones := f.visibleCells(v)
		v.row.Columns(s.Shares, ones)
		s.Line.Share = blockDot(v.w, ones)
	}
	if f.lambda > 0 {
		f.prior(v, i, &s, s.Shares)
	}
	if f.Spans.Signed {
		v.row.Tails(s.Shares)
	}
	if kl {
		v.row.Tails(s.Den)
		if v.weights == nil {
			v.row.Gather(v.x, lined)
		} else {
			v.row.Gather(v.heavy, lined)
		}
		if lined {
			s.Line.Den = blockDot(v.w, v.s)
		}
	}
	for range steps {
		if kl {
			f.Quantiles(v.q, i)
			s.Line.Num = v.row.RatioColumns(s.Num, v.q, f.Slope(i), f.lowest(i))
		} else {
			f.fitted(v, i)
			f.ratios(v, i)
			v.row.Columns(s.Num, v.g)
			v.row.Columns(s.Den, v.s)
			v.row.Tails(s.Den)
			if lined {
				s.Line.Num, s.Line.Den = blockDot(v.w, v.g), blockDot(v.w, v.s)
			}
		}
		v.row.Tails(s.Num)
		f.EM(i, s, f.Loss, f.lambda)
	}
}

// unit is the size of the loss of row i: (mean x_i)^β. heaviness is unit by the mean weight of the row's
// cells, with which the row's mean loss counts in the whole; relativeUnit is that divided by its mean over
// all rows.
func (f *inflation) unit(i int) float64 {
	return max(f.Loss.Scale(max(f.Average[i], divergence.Tiny)), divergence.Tiny)
}
func (f *inflation) heaviness(i int) float64 { return f.unit(i) * f.cells.Importance(i) }

func (f *inflation) relativeUnit(i int) float64 { return f.heaviness(i) / f.scale }

// visitMap makes the steps on q and F of row i, and fills wbar with the gradient at w = (UV)_i, in units of
// the row's loss, and curvature, np numbers, unless it is nil, with the curvature in w. For a constant row
// wbar is 0 and nothing is stepped.
func (f *inflation) visitMap(v *rowSpace, i int, wbar, curvature []float64) {
	if f.Constant(i) {
		f.rowLosses[i] = 0
		clear(wbar)
		return
	}
	// Where rows come in several batches a step needs no exact loss. A transport with the error √ρ is one
	// pass short of ρ, and its T and its gradients have errors of the order of √ρ.
	tolerance := f.Tolerance
	if !f.whole {
		tolerance = max(tolerance, math.Sqrt(tolerance))
	}
	f.solveMap(v, i, tolerance, f.whole || f.R != nil)
	v.row.Adjoint(f.fitMap(v, i))
	v.row.GradXSlopes(wbar[:f.n], curvature)
	f.backLine(v, i, wbar, curvature)
	if curvature != nil {
		f.curvature(curvature, v, i)
	}
	clear(wbar[f.n:])
	f.stepMap(v, i)
}

// fitMap makes the EM steps on q_i. Where all rows are one batch, and where Adam steps q, v.t holds T_i
// before the steps. fitMap returns the gradient ∂Δ/∂T at T_i after the steps and the q_i that the adjoint
// takes, both in the units of the adjoint.
func (f *inflation) fitMap(v *rowSpace, i int) transport.Cotangent {
	// Where all rows are one batch the loss before the steps is that of the model.
	if f.whole {
		f.rowLosses[i] = f.rowLoss(v, i)
		f.rowHeld[i] = f.cells.HeldLoss(f.Loss, v.t, i, f.lowest(i), v.about)
	}
	if f.R == nil {
		f.stepQ(v, i, f.stepsQ)
		f.fitted(v, i)
	}
	f.ratios(v, i)
	if !f.whole && !f.evaluated {
		f.rowLosses[i] = f.ratiosLoss(v, i)
	}
	// ∂Δ/∂T of the row's mean divergence, in units of f.unit(i); Ṽ̄ is in units of the
	// whole loss (relativeUnit). So Adam's constant of 1e-8 means the same at every scale of x.
	unit := f.cellUnit(i)
	for l := range v.q {
		v.q[l] *= unit
	}
	perCell := 1 / (f.unit(i) * unit) / f.Mass[i]
	kernel.Residual(v.g, v.s, f.np, 1)
	kernel.Scale(v.g, v.g, perCell)
	return transport.Cotangent{Z: v.g, Q: v.q}
}

// cellUnit is the factor that brings q_i to units of the mean of x_i for the adjoint.
func (f *inflation) cellUnit(i int) float64 { return 1 / max(f.Average[i], divergence.Tiny) }

// stepMap makes the steps of F_i and, where q is stepped by Adam, of R_i.
func (f *inflation) stepMap(v *rowSpace, i int) {
	if f.R != nil {
		v.row.GradQ(v.den)
		f.StepR(i, v.den, f.cellUnit(i), f.at)
	}
	v.row.GradLogits(v.num)
	f.StepF(i, v.num, f.at)
}

// evaluate computes the losses of row i at the current parameters.
func (f *inflation) evaluate(v *rowSpace, i int) {
	if f.Constant(i) {
		f.read(v, i)
		f.fitted(v, i)
	} else {
		f.solveMap(v, i, f.Tolerance, true)
	}
	f.noteLosses(v, i)
}

// noteLosses computes the losses of row i from T_i in v.t.
func (f *inflation) noteLosses(v *rowSpace, i int) {
	f.rowLosses[i] = f.rowLoss(v, i)
	f.rowHeld[i] = f.cells.HeldLoss(f.Loss, v.t, i, f.lowest(i), v.about)
}

// curvatureUnit is n_i, the mass of the row, in the units in which curvature has the slopes and w̄.
func (f *inflation) curvatureUnit(i int) float64 {
	unit := f.cellUnit(i)
	return f.Mass[i] / (f.unit(i) * unit) / unit
}

func (f *inflation) meanHeld() float64 {
	total := 0.0
	for _, l := range f.rowHeld {
		total += l
	}
	return total / float64(max(f.cells.HeldOut, 1))
}

func (f *inflation) meanLoss() float64 {
	total := 0.0
	for _, l := range f.rowLosses {
		total += l
	}
	return total / float64(f.cells.Visible)
}

// curvature fills a with the curvature in w of the divergence of row i, in the units of w̄. With
// the potentials of the row's transport and the moments of its squash held fixed, each T_ij depends on
// its own w_ij alone, with the slope
//
//	T'_j = s_i + (2/ε) Cov_{M_j}(q,y) dx̃_j/dw_j,
//
// and where x = T the divergence has the second derivative T^{β-2} in T. So with n_i visible
// cells in the row
//
//	a_j = T_j^{β-2} T'_j²/n_i.
//
// That is Fisher's scoring; the second derivative at x itself, x T^{-2} under KL, makes steps too short where
// x is far above T. Before this call a holds T'_j/n_i in units of the row's mean, and v.s is T^{β-1}. Both
// are 0 in hidden cells. By weights n_i is their sum, and a_j, the slope and T^{β-1} are those times the
// weight of the cell.
func (f *inflation) curvature(a []float64, v *rowSpace, i int) {
	low, by := f.lowest(i), f.curvatureUnit(i)
	if v.weights != nil {
		for j, s := range a[:f.n] {
			if w := v.weights[j]; s != 0 {
				weight := by
				if f.Loss != divergence.Frobenius {
					weight = by * (v.s[j] / w / max(v.t[j], low))
				}
				a[j] = float64(weight*(s/w)) * s
			}
		}
		clear(a[f.n:])
		return
	}
	if f.Loss == divergence.KL {
		kernel.Fisher(a[:f.n], v.t, by, low)
		clear(a[f.n:])
		return
	}
	for j, s := range a[:f.n] {
		weight := by
		if f.Loss != divergence.Frobenius {
			weight = by * (v.s[j] / max(v.t[j], low))
		}
		a[j] = float64(weight*s) * s
	}
	clear(a[f.n:])
}
