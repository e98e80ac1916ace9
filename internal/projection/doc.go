// Package projection is the projection Π_k of QMFQ, X ≈ T(Π_k(T'(X))) (paper §3.5): it finds
// a matrix UV of rank k near a d × n matrix Y, and applies the transposed Jacobian, which
// carries a gradient at UV back to Y.
//
//	p := New(choice, size, seen, workers)
//	p.Forward(y, start)      UV = Π_k(Y)
//	p.Result()               U and V
//	p.Backward(wbar, ybar)   from the gradient at UV to the one at Y
//
// Each map stands next to its adjoint. No call on a [Projector] allocates.
//
// # Map of files
//
//	projector.go   the interface, and New
//	unrolled.go    a number of updates, and their way back  truncated.go  the truncated SVD
//	kl.go, frobenius.go, hidden.go                          one update, forward and back
//	updates.go     what updates of all kinds share          states.go     the states that are kept
//	projection.go  kinds, sizes, factors, the error         limits.go     thresholds
//	memory.go      how many numbers a projector holds
//
// # Multiplicative updates
//
// Π_k(Y) is what n updates make of given factors, which count as constants. With W = UV
// and R = Y/W entry by entry, one update under the divergence of Kullback and Leibler is
//
//	V ← V ∘ UᵀR/Uᵀ1,        then with the new V   U ← U ∘ RVᵀ/1Vᵀ
//
// and one under the Frobenius norm (Lee and Seung 2001; the authors' code)
//
//	V ← V ∘ UᵀY/(UᵀU)V,     then with the new V   U ← U ∘ YVᵀ/U(VVᵀ).
//
// Write the update of V in either as V' = V ∘ N/D, and V̄ for the gradient at V. Then
//
//	N̄ = V̄'∘V/D,   D̄ = -V̄'∘V'/D,   V̄ = V̄'∘V'/V + (what flows through N and D).
//
// Under Kullback and Leibler N = UᵀR and D = Uᵀ1. With s̄_c = Σ_j D̄_cj,
//
//	R̄ = UN̄,   Ȳ += R̄/W,   W̄ = -R̄∘R/W,   Ū += RN̄ᵀ + 1s̄ᵀ + W̄Vᵀ,   V̄ += UᵀW̄.
//
// Under Frobenius N = UᵀY and D = HV. With H = UᵀU,
//
//	Ȳ += UN̄,   Ū += YN̄ᵀ + U(H̄+H̄ᵀ),   H̄ = D̄Vᵀ,   V̄ += HD̄.
//
// The update of U has the transposed formulas, and every row of U has its own. Where a
// denominator is at its floor the derivative takes the denominator for a constant. A zero
// of a factor stays zero; the derivative with respect to it is not used.
//
// # Hidden cells
//
// Where cells are missing or held out, all sums run over the visible ones. Ω is 1 at
// visible cells, or their weight, and 0 at hidden ones. With R = Y/W and S = 1 under Kullback and Leibler,
// R = Y and S = W under Frobenius, either update is
//
//	V ← V ∘ Uᵀ(Ω∘R)/Uᵀ(Ω∘S),   then with the new V   U ← U ∘ (Ω∘R)Vᵀ/(Ω∘S)Vᵀ,
//
// and its way back, with R̄ = Ω∘UN̄ and S̄ = Ω∘UD̄,
//
//	Ū += (Ω∘R)N̄ᵀ + (Ω∘S)D̄ᵀ + W̄Vᵀ,   V̄ += UᵀW̄,
//
// where Ȳ += R̄/W, W̄ = -R̄∘R/W under Kullback and Leibler, and Ȳ += R̄, W̄ = S̄ under
// Frobenius. A denominator depends on the row and the column then, and no sum over a
// factor alone replaces it.
//
// # One pass over the rows an update
//
// State t is (U_t, V_t), state 0 the start. Forward, a pass over the rows of Y makes U_t
// and at once the row's share of the numerator of V_t+1. Backward, a pass takes a row
// through the update of V_t+1 to Ū_t, which is then complete, and on through the update
// of U_t: both read V_t and add to the same V̄_t. W is computed anew in each pass, so
// that Y, Ȳ and W̄ are the only d × n matrices.
//
// Flops an update, forward and backward: 8dnk and 20dnk under Kullback and Leibler, with
// 2dn divisions each; 4dnk and 8dnk under Frobenius; 12dnk and 30dnk under either where
// cells are hidden.
//
// # Memory
//
// The way back reads every state. Every c-th state is kept, and the states of one stretch
// between two kept ones: n/c + c states of (d+n)k numbers, (d+2n)k where cells are hidden.
// c = n as long as all states together take at most 2^23 numbers (64 MiB): then nothing is
// computed twice. Else c = ⌈√n⌉, and the way back makes every stretch but the last once
// more, which costs another 8dnk (4dnk) flops an update.
//
// # Truncated singular value decomposition
//
// Π_k(Y) = Σ_{i<=k} s_i u_i v_iᵀ. Its differential is self-adjoint (Feppon and Lermusiaux
// 2018, Theorem 25). With α_ij = u_iᵀHv_j and β_ij = u_jᵀHv_i for i <= k < j the two sums
// over F± in that theorem join into
//
//	DΠ_k(Y)[H] = P H + H Q - P H Q +
//	             Σ_ij s_j/(s_i²-s_j²) [(s_jα_ij + s_iβ_ij) u_i v_jᵀ + (s_iα_ij + s_jβ_ij) u_j v_iᵀ]
//
// with P = Σ u_i u_iᵀ, Q = Σ v_i v_iᵀ over i <= k. Directions of s_j = 0, among them the
// whole null space, add nothing. So row i of the result is
//
//	U_i (A - (AVᵀ)V + C V₊) + (B_i + E_i U₊) V,    A = UᵀH,  B = HVᵀ,
//
// where C and E hold the coefficients, V₊ and U₊ the vectors j > k. That takes 8dnk flops,
// and 4k(d+n)(min(d,n)-k) for the small matrices. The derivative does not exist where
// s_k = s_k+1; see [EqualError].
package projection
