package main

// The list of kernels.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"slices"
	"strings"
)

// kernel is one entry: its Go signature, result "" or "float64", and its text.
type kernel struct {
	name, params, result string
	text                 func(f *Func)
}

// only has the sets of instructions of kernels that are not written for all.
var only = map[string][]*Arch{"combineRuns": {avx512, avx2}, "ratioDotsRuns": {avx512, avx2},
	"ratioAccumulateRuns": {avx512, avx2}, "largest": {avx512, avx2}, "binMoments": {avx2},
	"binWeights": {avx2}}

// of returns the set whose text is called where set is in use, and those after it are lesser ones of the same
// processor; nil is the loop in Go.
func (k kernel) of(set *Arch, lesser []*Arch) *Arch {
	for _, s := range append([]*Arch{set}, lesser...) {
		if k.in(s) {
			return s
		}
	}
	return nil
}

// in tells whether the kernel is written for a set.
func (k kernel) in(set *Arch) bool {
	sets, some := only[k.name]
	return !some || slices.Contains(sets, set)
}

// kernels are those of internal/kernel.
var kernels = []kernel{
	{"build", "e, s, h, y []float64", "", build},
	{"buildPower", "e, s []float64, y0, step float64, m int", "", buildPower},
	{"powersOf", "e, base, rate []float64, m int", "", powersOf},
	{"lift", "e, h []float64, n int", "", lift},
	{"mappedKL", "loss, slope, curvature, w, x, levels, slopes []float64, p *KLMap", "", mappedKL},
	{"tops", "t, s, h, y []float64", "", tops},
	{"rowSums", "z, e, w []float64", "", rowSums},
	{"rowRatios", "u, e, c, z, x []float64, low float64", "", rowRatios},
	{"moments", "mu, e, v []float64", "", moments},
	{"gram", "g, e, v []float64, m int", "", gram},
	{"hankel", "g, c, mu, ratio, w []float64, m int", "", hankel},
	{"differences", "out, g, v []float64, m int", "", differences},
	{"colSums", "c, e, v []float64", "", colSums},
	{"average", "t, e, w, z []float64, first float64, d []float64", "", average},
	{"covariance", "c *Cov, n, m int", "", covariance},
	{"covarianceOwn", "c *Cov, n, m int", "", covarianceOwn},
	{"covariances", "c *Cov, n, m int", "", covariances},
	{"combine", "w, u, v []float64", "", combine},
	{"dots", "g, v, r []float64", "", dots},
	{"sum", "r []float64", "float64", sum},
	{"accumulate", "acc, u, r []float64", "", accumulate},
	{"combine4", "w, u, v []float64", "", combine4},
	{"dots4", "g, v, r []float64", "", dots4},
	{"accumulate4", "acc, u, r []float64", "", accumulate4},
	{"accumulateLower", "acc, u, r []float64, first, rows int", "", accumulateLower},
	{"sweep", "acc, lines, minus []float64, before, after, rows int", "", sweep},
	{"accumulateFrom", "to, from, w, r []float64, at []uint32, stride int", "", accumulateFrom},
	{"unpack", "to, from []float64, rows, stride int, c float64", "", unpack},
	{"combineAt", "w, u, v []float64, cols []uint32, stride int", "", combineAt},
	{"dotsAt", "g, v, r []float64, cols []uint32, stride int", "", dotsAt},
	{"dotsSquaresAt", "g, h, v, r, q []float64, cols []uint32, stride int", "", dotsSquaresAt},
	{"accumulateAt", "acc, u, r []float64, cols []uint32, stride int", "", accumulateAt},
	{"combineRuns", "r, u, v []float64, cols, runs []uint32, stride, k int", "", combineRuns},
	{"ratioDotsRuns", "g, r, u, v, x []float64, cols, runs []uint32, stride int, low float64, k int", "",
		ratioDotsRuns},
	{"ratioAccumulateRuns", "acc, r, logs, u, v, x []float64, cols, runs []uint32, stride int, low " +
		"float64, k int", "", ratioAccumulateRuns},
	{"largest", "to, cols []uint32", "", largest},
	{"quotient", "r, u, v, x []float64, stride int, low float64", "float64", quotients(1, false)},
	{"quotient4", "r, u, v, x []float64, stride int, low float64", "float64", quotients(4, false)},
	{"logSum", "r, x []float64, stride int", "float64", logSums(1)},
	{"logSum4", "r, x []float64, stride int", "float64", logSums(4)},
	{"curve4", "r, q, w, u, v, x []float64, stride int, low float64", "float64", quotients(4, true)},
	{"curve", "r, q, w, x []float64, low float64", "float64", curve},
	{"stretch", "c2, c3, rho, w, d, x []float64, low float64", "", stretch},
	{"stretchRow", "to, v, d, x []float64", "", stretchRow},
	{"bounded", "x, low, q, c, inverse []float64, n, sweeps int", "", bounded},
	{"descend", "s, a []float64, k, n, sweeps int", "", descend},
	{"direction", "p, slope, most, b, g, root []float64, k int, longest float64", "", direction},
	{"binMoments", "sums, x []float64, b *Bins", "", binMoments},
	{"binWeights", "sums, x, w []float64, b *Bins", "", binWeights},
	{"exp", "to, x []float64", "", exp},
	{"log", "to, x []float64", "", log},
	{"logistic", "to, x []float64, z *Score, rate float64", "", logistic},
	{"extent", "to, x []float64", "", extent},
	{"shift", "to, x []float64, c float64", "", shift},
	{"slopes", "s, x []float64, eps float64", "float64", slopes},
	{"spread", "to, x []float64, ref float64", "", spread},
	{"deviation", "x []float64, ref, scale float64", "float64", deviation},
	{"squares", "x []float64, ref, scale, mean float64", "float64", squares},
	{"logisticBack", "to, g, s, x []float64, z *Score, rate float64", "", logisticBack},
	{"logisticSlope", "g, s []float64, c float64", "", logisticSlope},
	{"scoreBack", "g, x []float64, z *Score, mean, dot float64", "", scoreBack},
	{"divide", "to, a, z []float64", "", divide},
	{"scale", "to, x []float64, c float64", "", scale},
	{"multiply", "to, a, b []float64", "", multiply},
	{"multiplyLess", "to, a, b, c []float64", "", multiplyLess},
	{"rotate", "p, q []float64, cos, sin float64", "", rotate},
	{"weigh", "to, a, z []float64", "", weigh},
	{"ratio", "num, x, t []float64, low float64", "", ratio},
	{"fisher", "a, t []float64, by, low float64", "", fisher},
	{"ratioBack", "w, r, ybar, y []float64, low float64", "", ratioBack},
	{"lossKL", "x, t, r []float64, low float64", "float64", lossKL},
	{"factor", "w, d, floor, l []float64, stride int", "", factor},
	{"solve", "w, d, r []float64, stride int", "", solve},
	{"adamStep", "x, g, mu, nu []float64, rate, c2 float64", "", adamStep},
}

// signature is that of the form with the suffix.
func (k kernel) signature(suffix string) string {
	s := "func " + k.name + suffix + "(" + k.params + ")"
	if k.result != "" {
		s += " " + k.result
	}
	return s
}

// call is the statement that calls that form.
func (k kernel) call(suffix string) string {
	var names []string
	for _, field := range k.fields() {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	s := k.name + suffix + "(" + strings.Join(names, ", ") + ")"
	if k.result != "" {
		s = "return " + s
	}
	return s
}

// fields are the parameters.
func (k kernel) fields() []*ast.Field {
	e, err := parser.ParseExpr("func(" + k.params + ")")
	if err != nil {
		panic(fmt.Sprintf("%s: %v", k.name, err))
	}
	return e.(*ast.FuncType).Params.List
}

// structs are the types that the pointers among the parameters point to.
func (k kernel) structs() map[string]string {
	types := map[string]string{}
	for _, field := range k.fields() {
		if p, ok := field.Type.(*ast.StarExpr); ok {
			for _, name := range field.Names {
				types[name.Name] = p.X.(*ast.Ident).Name
			}
		}
	}
	return types
}

// layout fills offset with the places of the arguments on the stack, a slice's being
// x_base and x_len and the result's ret, and returns how many bytes they take.
func (k kernel) layout(offset map[string]int) (size int) {
	for _, field := range k.fields() {
		for _, name := range field.Names {
			if _, slice := field.Type.(*ast.ArrayType); slice {
				offset[name.Name+"_base"], offset[name.Name+"_len"] = size, size+8
				size += 24
			} else {
				offset[name.Name] = size
				size += 8
			}
		}
	}
	if k.result != "" {
		offset["ret"] = size
		size += 8
	}
	return size
}
