package main

// The list of kernels.

import (
	"go/ast"
	"iter"
	"slices"
	"strings"
)

// kernel is the name of one, which its loop in Go has with _g.
type kernel string

// loop is that in Go.
func (k kernel) loop() *ast.FuncDecl { return source.functions[string(k)+"_g"] }

// form is the type of the function, which is that of its loop in Go.
func (k kernel) form() *ast.FuncType { return k.loop().Type }

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
var only = map[kernel][]*Arch{"binMoments": {avx2}, "binWeights": {avx2}}

// in tells whether the kernel is written for a set.
func (k kernel) in(set *Arch) bool {
	sets, some := only[k]
	return !some || slices.Contains(sets, set)
}

// kernels are those of internal/kernel.
var kernels = []kernel{
	"build", "buildPower", "powersOf", "lift", "mappedKL", "tops", "rowSums", "rowRatios", "moments", "gram",
	"hankel", "differences", "colSums", "average", "covariance", "covarianceOwn", "covariances", "combine",
	"dots", "sum", "accumulate", "combine4", "dots4", "accumulate4", "accumulateLower", "sweep",
	"accumulateFrom", "unpack", "combineAt", "dotsAt", "dotsSquaresAt", "accumulateAt", "quotient",
	"quotient4", "curve4", "logSum", "curve", "stretch", "stretchRow", "bounded", "descend", "direction",
	"binMoments", "binWeights", "exp", "log", "logistic", "extent", "shift", "slopes", "spread", "deviation",
	"squares", "logisticBack", "logisticSlope", "scoreBack", "divide", "scale", "multiply", "multiplyLess",
	"rotate", "weigh", "ratio", "fisher", "ratioBack", "lossKL", "factor", "solve", "adamStep",
}

// texts are those of kernels that are not compiled from their loops in Go.
var texts = map[kernel]func(f *Func){
	"moments":         moments,
	"gram":            gram,
	"hankel":          hankel,
	"differences":     differences,
	"colSums":         colSums,
	"combine":         combines(1),
	"dots":            dots(1),
	"accumulate":      accumulates(1, false),
	"combine4":        combines(4),
	"dots4":           dots(4),
	"accumulate4":     accumulates(4, false),
	"accumulateLower": accumulates(4, true),
	"sweep":           sweep,
	"accumulateFrom":  accumulateFrom,
	"unpack":          unpack,
	"combineAt":       combineAt,
	"dotsAt":          sumsAt(false),
	"dotsSquaresAt":   sumsAt(true),
	"accumulateAt":    accumulateAt,
	"quotient4":       quotients(false),
	"curve4":          quotients(true),
	"bounded":         bounded,
	"descend":         descend,
	"binMoments":      binMoments,
	"binWeights":      binWeights,
	"factor":          factor,
	"solve":           solve,
}

// signature is that of the function with the suffix.
func (k kernel) signature(suffix string) string {
	return "func " + string(k) + suffix + strings.TrimPrefix(text(k.form()), "func")
}

// call is the statement that calls that function.
func (k kernel) call(suffix string) string {
	var names []string
	for name := range k.params() {
		names = append(names, name)
	}
	s := string(k) + suffix + "(" + strings.Join(names, ", ") + ")"
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
