// Command quantmf learns one increasing map per feature jointly with a low-rank factorisation of a matrix.
// "quantmf -h" says what it can do.
package main

// This file holds the list of commands.

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/quantmf/quantmf/internal/cli"
)

func main() {
	cli.EndCleanly()
	os.Exit(program().Run(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// program is quantmf.
func program() *cli.App {
	app := &cli.App{
		Name: "quantmf",
		Introduction: "quantmf learns how to bend the scale of every feature of a matrix so that few " +
			"components explain it.",
		Version: version(),
	}
	app.Commands = []cli.Command{
		{"fit", "fit a matrix; write the model, its factors and scales, and a report", fitProgram},
		{"transform", "place new samples in a model's components", transformProgram},
		{"score", "print how well a model fits samples", scoreProgram},
		{"reconstruct", "write the fitted matrix T(UV), missing values filled in", reconstructProgram},
		{"impute", "fill in missing values, and say how well they are predicted", imputeProgram},
		{"normalize", "bring samples to the scales of a qmfq model", normalizeProgram},
		{"inspect", "print what is in a model: scales, features and samples of components", inspectProgram},
		{"report", "draw a model and its matrix as a page of figures", reportProgram},
		{"rank", "compare numbers of components on hidden cells", rankProgram},
		{"shard", "fit a matrix in steps that many machines share", shardProgram},
		{"convert", "rewrite a matrix in another format", convertProgram},
		{"version", "print the version", versionProgram},
		{"help", "print the help of a command, also as a manual page or Markdown", app.Help},
		{"completion", "print a script by which a shell completes commands and flags", app.Completion},
	}
	return app
}

func versionProgram() *cli.Program {
	return &cli.Program{
		Usage: []string{""},
		About: "Prints the version of quantmf, the version of Go it was built with, and the platform.",
		Run: func(_ []string, s cli.Streams) error {
			_, err := fmt.Fprintln(s.Out, "quantmf", version(), runtime.Version(),
				runtime.GOOS+"/"+runtime.GOARCH)
			return err
		},
	}
}

// released is the version of a program that .ci/release made.
var released string

// version returns the version of the release, or that of the module, which the Go tool stamps.
func version() string {
	if released != "" {
		return released
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}
