//go:build !invariants

package transport

// Invariants tells whether plan, marginals and order are checked after every solve and
// every map, as a build with -tags invariants does.
const Invariants = false

func (*dual) checkPlan(Outcome)                  {}
func (*samples) checkOrder([]float64, []float64) {}
