package main

// The list of kernels.

import (
	"go/ast"
	"iter"
	"slices"
	"strings"
)

// kernel is one entry: its name, which its loop in Go has with _g, and its text.
type kernel struct {
	name string
	text func(f *Func)
}

// form is the type of the function, which is that of its loop in Go.
func (k kernel) form() *ast.FuncType { return source.functions[k.name+"_g"].Type }

// params are the parameters with their types.
func (k kernel) params() iter.Seq2[string, ast.Expr] { return names(k.form().Params) }

// names are those of fields, or of parameters, with their types.
func names(fields *ast.FieldList) iter.Seq2[string, ast.Expr] {
	return func(yield func(string, ast.Expr) bool) {
		for _, field := range fields.List {
			for _, name := range field.Names {
				if !yield(name.Name, field.Type) {
					return
				}
			}
		}
	}
}

// only has the sets of instructions of kernels that are not written for all.
var only = map[string][]*Arch{"binMoments": {avx2}, "binWeights": {avx2}}

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
	{"build", (*Func).compile},
	{"buildPower", (*Func).compile},
	{"powersOf", (*Func).compile},
	{"lift", (*Func).compile},
	{"mappedKL", (*Func).compile},
	{"tops", (*Func).compile},
	{"rowSums", (*Func).compile},
	{"rowRatios", (*Func).compile},
	{"moments", moments},
	{"gram", gram},
	{"hankel", hankel},
	{"differences", differences},
	{"colSums", colSums},
	{"average", (*Func).compile},
	{"covariance", (*Func).compile},
	{"covarianceOwn", (*Func).compile},
	{"covariances", (*Func).compile},
	{"combine", combines(1)},
	{"dots", dots(1)},
	{"sum", (*Func).compile},
	{"accumulate", accumulates(1, false)},
	{"combine4", combines(4)},
	{"dots4", dots(4)},
	{"accumulate4", accumulates(4, false)},
	{"accumulateLower", accumulates(4, true)},
	{"sweep", sweep},
	{"accumulateFrom", accumulateFrom},
	{"unpack", unpack},
	{"combineAt", combineAt},
	{"dotsAt", sumsAt(false)},
	{"dotsSquaresAt", sumsAt(true)},
	{"accumulateAt", accumulateAt},
	{"quotient", (*Func).compile},
	{"quotient4", quotients(false)},
	{"curve4", quotients(true)},
	{"logSum", (*Func).compile},
	{"curve", (*Func).compile},
	{"stretch", (*Func).compile},
	{"stretchRow", (*Func).compile},
	{"bounded", bounded},
	{"descend", descend},
	{"direction", (*Func).compile},
	{"binMoments", binMoments},
	{"binWeights", binWeights},
	{"exp", (*Func).compile},
	{"log", (*Func).compile},
	{"logistic", (*Func).compile},
	{"extent", (*Func).compile},
	{"shift", (*Func).compile},
	{"slopes", (*Func).compile},
	{"spread", (*Func).compile},
	{"deviation", (*Func).compile},
	{"squares", (*Func).compile},
	{"logisticBack", (*Func).compile},
	{"logisticSlope", (*Func).compile},
	{"scoreBack", (*Func).compile},
	{"divide", (*Func).compile},
	{"scale", (*Func).compile},
	{"multiply", (*Func).compile},
	{"multiplyLess", (*Func).compile},
	{"rotate", (*Func).compile},
	{"weigh", (*Func).compile},
	{"ratio", (*Func).compile},
	{"fisher", (*Func).compile},
	{"ratioBack", (*Func).compile},
	{"lossKL", (*Func).compile},
	{"factor", factor},
	{"solve", solve},
	{"adamStep", (*Func).compile},
}

// signature is that of the function with the suffix.
func (k kernel) signature(suffix string) string {
	return "func " + k.name + suffix + strings.TrimPrefix(text(k.form()), "func")
}

// call is the statement that calls that function.
func (k kernel) call(suffix string) string {
	var names []string
	for name := range k.params() {
		names = append(names, name)
	}
	s := k.name + suffix + "(" + strings.Join(names, ", ") + ")"
	if k.returns() {
		s = "return " + s
	}
	return s
}

// returns tells whether it has a result, which is a number.
func (k kernel) returns() bool { return k.form().Results != nil }

// structs are the types that the pointers among the parameters point to.
func (k kernel) structs() map[string]string {
	types := map[string]string{}
	for name, typ := range k.params() {
		if p, ok := typ.(*ast.StarExpr); ok {
			types[name] = text(p.X)
		}
	}
	return types
}

// layout fills offset with the places of the arguments on the stack, a slice's being
// x_base and x_len and the result's ret, and returns how many bytes they take.
func (k kernel) layout(offset map[string]int) (size int) {
	for _, w := range k.words() {
		offset[w.name] = size
		size += 8
		if strings.HasSuffix(w.name, "_len") {
			size += 8 // the capacity
		}
	}
	if k.returns() {
		offset["ret"] = size
		size += 8
	}
	return size
}
