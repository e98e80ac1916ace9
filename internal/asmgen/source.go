package main

// What internal/kernel says, read once: the loops in Go, from which parameters and, of some kernels, all of
// the text come (compile.go).

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// source is what internal/kernel says: functions and structs by name, and the values of constants.
var source struct {
	functions map[string]*ast.FuncDecl
	structs   map[string]*ast.StructType
	info      types.Info
}

// readSource reads it. Types of other packages are not known, which matters to no constant.
func readSource(root string) {
	set := token.NewFileSet()
	var files []*ast.File
	source.functions, source.structs = map[string]*ast.FuncDecl{}, map[string]*ast.StructType{}
	for _, name := range must(filepath.Glob(filepath.Join(root, "internal", "kernel", "*.go"))) {
		if base := filepath.Base(name); strings.HasPrefix(base, "kernel_") ||
			strings.HasSuffix(base, "_test.go") {
			continue
		}
		file := must(parser.ParseFile(set, name, nil, parser.SkipObjectResolution))
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				source.functions[n.Name.Name] = n
			case *ast.TypeSpec:
				source.structs[n.Name.Name], _ = n.Type.(*ast.StructType)
			}
			return true
		})
	}
	source.info.Types = map[ast.Expr]types.TypeAndValue{}
	(&types.Config{Error: func(error) {}}).Check("kernel", set, files, &source.info)
}

func text(e ast.Expr) string { return types.ExprString(e) }
