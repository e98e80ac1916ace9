package quantmf

import (
	"slices"
	"testing"

	"github.com/quantmf/quantmf/internal/bqmf"
	"github.com/quantmf/quantmf/internal/qmf"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// What the tests from outside of the package share with those from inside.
var (
	NotFinite = notFinite
)

// Common are the factors and losses, which all models have.
func Common(m Model) *Factorisation { return m.(sealed).common() }

// Small lets few samples count as many, until the test ends: a fit begins with some of them and holds no
// normal scores of a matrix that is read by rows, and new samples are placed in blocks of columns.
func Small(t *testing.T) {
	held, samples, numbers, columns := qmf.MostHeld, qmf.StartSamples, blockNumbers, blockColumns
	t.Cleanup(func() {
		qmf.MostHeld, qmf.StartSamples, blockNumbers, blockColumns = held, samples, numbers, columns
	})
	qmf.MostHeld, qmf.StartSamples, blockNumbers, blockColumns = 200, 5, 90, 7
}

// HeldOutBy tells which cells of x a fit holds out for validation, of the seed that it has by default.
func HeldOutBy(t *testing.T, x Mat, share float64, l Loss) func(i, j int) bool {
	c := Must(newCells(x, &qmf.Settings{Validation: share, Seed: 1, Missing: true, Mapped: true,
		Loss: l.of(1)}))(t)
	return c.IsHeld
}

// Corrected tells whether a model has a second stage and samples that are alike.
func Corrected(m *BQMF) bool {
	return m.model.Alike != nil &&
		slices.ContainsFunc(m.model.Stage.Rows, func(r bqmf.StageRow) bool { return r.Keep < 1 })
}

// MemoryOfPart is MemoryOfChoice for a part with so many observed cells.
var MemoryOfPart = memoryOfChoice
