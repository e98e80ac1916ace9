// Command quantmf-beam fits matrices with quantmf by pipelines of Apache Beam. "quantmf-beam -h" lists its
// subcommands.
package main

import (
	"os"

	"github.com/quantmf/quantmf/beam/command"
)

func main() { os.Exit(command.Run(os.Args[1:], os.Stdout, os.Stderr)) }
