// Package transport is the problem of one row: the entropic transport of n weighted
// samples onto m weighted targets, solved by Newton's method on its dual, with averages
// over the plan and their derivatives.
//
// # The way of a row
//
// A caller has a [Row], one a worker, and uses it for many problems:
//
//	r.Load(problem)                  x, squashed; a, b; ε
//	r.Want(t, q)                     that the solve leaves T = M q in t
//	r.Solve(tol, most, state)        the potentials; state says where the last solve of this row ended
//	r.Average, r.Columns, r.Tails    what else is wanted of M: T at another q, sums for a step on q
//	r.Adjoint(back)                  λ of dℓ/dT
//	r.GradX, r.GradQ, r.GradLogits   its gradients
//
// A Row has states that say which method may be called (row.go), and a call out of order panics. Slices that
// a method fills are the caller's; scratch never leaves the package.
//
// # Map of files
//
// Each type embeds the type that it is derived from. So a file uses only files that stand
// above it in this list:
//
//	problem.go  samples, targets, ε                squash.go   rows onto [0,1]
//	matrix.go   E at reference potentials, in its forms, tile by tile
//	plan.go     M at potentials h                  gram.go     G = Mᵀdiag(a)M and c = Mᵀa
//	dual.go     the semi-dual, its proof of convergence, its linear system
//	descent.go  the methods that maximise it       polish.go   the last digits of weakly coupled levels
//	condense.go many samples replaced by points with the same sums
//	start.go    where a solve starts, and what it leaves for the next
//	row.go      the workspace and its states       solution.go a solved row, kept and restored
//	average.go  T, S, f and g                      adjoint.go  their transposed Jacobians
//	forward.go  the forward derivative of T        hard.go     the plan in the limit ε → 0
//	levels.go   few levels that stand for many
//	scale.go    powers of two against overflow     wide.go     numbers of a larger range
//	limits.go   thresholds, measured by bench/calibrate
//	invariants.go what a build with -tags invariants checks
//
// Whether a derived value is valid is one state, not several flags: a matrix is stale, aimed or
// built ([matrix.stands]), sums are nothing, swept, expanded or triangled ([gram.knows]).
// A method that changes the values from which it is derived sets the state back.
//
// # A sweep
//
// One sweep over the samples, 8nm flops on a regular grid, builds or reads E, sums its rows, and takes the
// 2m-1 sums that hold the Gram matrix; the elimination takes m³/3 more. A cold solve takes some 5 sweeps, a
// solve that goes on from the last visit 2 to 4. The last sweep also computes T where T was asked for. Of a
// row of many samples sweeps go over some 1000 points in their place (condense.go): one sweep over the
// samples remains, and none where the tolerance is above the error of the points.
package transport
