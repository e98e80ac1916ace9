package quantmf

// This file holds the consensus of many NMFs [Kotliar et al., eLife 8:e43803, 2019]: components that come
// back whatever the seed. An NMF has many optima, and what one seed finds need not be found by another. The
// columns of U of fits from s seeds, each brought to length 1, are s k points y_p. A component that holds is
// a dense cluster of s of them; a point that no other fit comes near is left out (internal/qmf). The median
// of each cluster is a column of the consensus, under which V is fitted once more.

import (
	"context"
	"slices"

	"github.com/quantmf/quantmf/internal/fit"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/pool"
	"github.com/quantmf/quantmf/internal/qmf"
	"github.com/quantmf/quantmf/internal/random"
)

// Consensus is what NMFs from many seeds agree on.
type Consensus struct {
	*NMF // U has the components, each with a sum of 1, the largest first; V is fitted to them

	// of each component, the mean silhouette of its cluster: 1 where all fits have the same
	Stability []float64
	Overall   float64   // the mean silhouette of all points in clusters
	Members   []int     // of each cluster; as many as seeds where each fit has the component
	Left      int       // the points that were left out
	Losses    []float64 // of each fit, its mean divergence
}

const mostPoints = 1 << 14 // s k; distances take 8 bytes for each pair of them

// FitConsensus fits NMFs of k components to x from so many seeds, 2 to 1000, and returns what they agree on.
// opts are those of [FitNMF] but for starts that do not depend on the seed, checkpoints and progress; the
// seeds follow from [WithSeed]. Fits run side by side, one worker each; the result does not depend on the
// number of workers. k = 1 has a stability of 1.
//
// Errors are those of [FitNMF], and an [*OptionError] for seeds. Memory: that of the fits at work, dk numbers
// a seed, and 8 bytes for each pair of seeds × k points, of which there may be 16384.
func FitConsensus(ctx context.Context, x Rows, k, seeds int, opts ...FitOption) (*Consensus, error) {
	c := nmfDefaults()
	if err := parse(option.FitNMF, &c, opts); err != nil {
		return nil, err
	}
	if err := c.checkSeeds(k, seeds); err != nil {
		return nil, err
	}
	if err := checkRows(x); err != nil {
		return nil, err
	}
	d, _ := x.Dims()
	p := qmf.NewPoints(d, k, seeds)
	out := &Consensus{Losses: make([]float64, seeds)}
	errs := make([]error, seeds)
	workers := pool.New(c.workers, seeds)
	defer workers.Close()
	workers.Do(seeds, func(_, s int) {
		alone := []FitOption{WithSeed(uint64(random.Split(c.Seed, s))), oneWorker()}
		m, err := FitNMF(ctx, x, k, append(slices.Clone(opts), alone...)...)
		if errs[s] = err; err == nil {
			out.Losses[s] = m.History[m.Best]
			p.Take(s, fit.Dense(m.U), fit.Dense(m.V))
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, fit.StoppedAt(0, err)
	}
	agreed := p.Agree(k, c.Seed, workers)
	out.Stability, out.Overall, out.Members, out.Left = agreed.Stability, agreed.Overall, agreed.Members,
		agreed.Left
	var err error
	out.NMF, err = FitNMF(ctx, x, k, append(slices.Clone(opts), WithFixedU(Mat(agreed.U)))...)
	return out, err
}

// checkSeeds returns the error of a number of seeds, or of an option by which fits would not differ.
func (c *config) checkSeeds(k, seeds int) error {
	if k < 1 {
		return &OptionError{Option: "rank", Value: itoa(k), Bound: "must be at least 1"}
	}
	if seeds < 2 || seeds > qmf.MostSeeds || k > mostPoints/seeds {
		return &OptionError{Option: "seeds", Value: itoa(seeds),
			Bound: "must be from 2 to " + itoa(qmf.MostSeeds) +
				", and seeds times k at most " + itoa(mostPoints)}
	}
	for _, o := range []option.Kind{option.Init, option.FixedU, option.Model, option.Restarts,
		option.Checkpoint, option.Resume, option.Progress} {
		if c.given.Has(o) {
			return &OptionError{Option: o.String(), Value: "given", Bound: "FitConsensus has no use for it"}
		}
	}
	return nil
}
