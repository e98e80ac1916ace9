// Command quantmf learns one increasing map per feature jointly with a low-rank factorisation of a matrix.
// "quantmf -h" says what it can do.
package main

// This file holds the list of commands.

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

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
		{Name: "fit", New: fitProgram,
			Does: "fit a matrix; write the model, its factors and scales, and a report"},
		{Name: "transform", New: transformProgram,
			Does: "place new samples in a model's components"},
		{Name: "score", New: scoreProgram,
			Does: "print how well a model fits samples"},
		{Name: "reconstruct", New: reconstructProgram,
			Does: "write the fitted matrix T(UV), missing values filled in"},
		{Name: "impute", New: imputeProgram,
			Does: "fill in missing values, and say how well they are predicted"},
		{Name: "normalize", New: normalizeProgram,
			Does: "bring samples to the scales of a qmfq model"},
		{Name: "inspect", New: inspectProgram,
			Does: "print what is in a model: scales, features and samples of components"},
		{Name: "report", New: reportProgram,
			Does: "draw a model and its matrix as a page of figures"},
		{Name: "rank", New: rankProgram,
			Does: "compare numbers of components by hidden values"},
		{Name: "consensus", New: consensusProgram,
			Does: "say which components come back from many seeds, and keep these"},
		{Name: "shard", New: shardProgram,
			Does: "fit a matrix in steps that many machines share"},
		{Name: "serve", New: serveProgram,
			Does: "answer calls of another program, such as the package for Python"},
		{Name: "convert", New: convertProgram,
			Does: "rewrite a matrix in another format"},
		{Name: "version", New: versionProgram,
			Does: "print the version"},
		{Name: "help", New: app.Help,
			Does: "print the help of a command, also as a manual page or Markdown"},
		{Name: "completion", New: app.Completion,
			Does: "print a script by which a shell completes commands and flags"},
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
	b, _ := debug.ReadBuildInfo()
	return versionOf(b)
}

// versionOf returns the version that the Go tool stamps, with the commit where that is not in it.
func versionOf(b *debug.BuildInfo) string {
	if b == nil || b.Main.Version == "" {
		return "(devel)"
	}
	text := b.Main.Version
	stamped := map[string]string{}
	for _, s := range b.Settings {
		stamped[s.Key] = s.Value
	}
	if commit := stamped["vcs.revision"]; len(commit) >= 12 && !strings.Contains(text, commit[:12]) {
		text += " of commit " + commit[:12]
	}
	if stamped["vcs.modified"] == "true" && !strings.HasSuffix(text, "+dirty") {
		text += " with changes"
	}
	return text
}
