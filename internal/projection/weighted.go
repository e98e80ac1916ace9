package projection

// This file holds the truncated singular value decomposition of a matrix whose columns have weights a: it is
// nearest to Y by Σ a_j (Y_ij - W_ij)². With A = diag(a) that is
//
//	Π(Y) = Π_k(Y A^½) A^-½,
//
// whose transposed Jacobian goes by A^-½ to W̄, and by A^½ to Ȳ. A column of weight 0 is 0 in both. Weights
// of single cells have no such form: the least squares are those of no decomposition then.

import (
	"math"

	"github.com/quantmf/quantmf/internal/kernel"
	"github.com/quantmf/quantmf/internal/pool"
)

// weighted is Π_k where columns have weights.
type weighted struct {
	Projector
	size       Size
	root, over []float64 // np: √a and, where that is not 0, 1/√a
	y          []float64 // d × np: Y A^½, then W̄ A^-½
	final      Factors
}

// NewWeighted returns the projector of a truncated SVD for columns of so many weights.
func NewWeighted(size Size, weights []float64, workers *pool.Pool) Projector {
	f, np := workers.Memory.Floats, kernel.Pad(size.N)
	p := &weighted{Projector: newTruncated(size, workers), size: size, root: f(np), over: f(np),
		y: f(size.D, np), final: Factors{V: f(size.K, np)}}
	if workers.Memory.Dry() {
		return p
	}
	most := 0.0
	for _, a := range weights {
		most = max(most, a)
	}
	for j, a := range weights {
		if p.root[j] = math.Sqrt(a / most); p.root[j] > 0 {
			p.over[j] = 1 / p.root[j]
		}
	}
	return p
}

// times fills y with the rows of m times by.
func (p *weighted) times(m, by []float64) {
	np := len(by)
	for at := 0; at < p.size.D*np; at += np {
		kernel.Multiply(p.y[at:at+np], m[at:at+np], by)
	}
}

func (p *weighted) Forward(y []float64, start Factors) error {
	p.times(y, p.root)
	err := p.Projector.Forward(p.y, start)
	r, np := p.Projector.Result(), len(p.over)
	p.final.U = r.U
	for at := 0; at < len(r.V); at += np {
		kernel.Multiply(p.final.V[at:at+np], r.V[at:at+np], p.over)
	}
	return err
}

func (p *weighted) Result() Factors { return p.final }

func (p *weighted) Backward(wbar, ybar []float64) {
	p.times(wbar, p.over)
	p.Projector.Backward(p.y, ybar)
	for at := 0; at < p.size.D*len(p.root); at += len(p.root) {
		kernel.Multiply(ybar[at:at+len(p.root)], ybar[at:at+len(p.root)], p.root)
	}
}
