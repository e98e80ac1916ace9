// Package beam makes fits of quantmf over shards of rows by pipelines of Apache Beam: on the Prism
// runner of Beam's Go SDK within this process, or on any runner that has Beam's portable job API,
// such as Flink's job server. A model has the same bits as one of [quantmf.FitNMF] or [quantmf.FitQMF]
// on one machine, for any number of shards, workers and failures.
//
//	store, err := beam.OpenStore(ctx, "/shared/fit1")
//	err = shards.PlanNMF(ctx, store, 8, x, 10, quantmf.WithUpdates(quantmf.UpdatesNewton))
//	model, err := beam.Fit(ctx, store, beam.Run{})
//
// Large data never enter a pipeline. Rows, state, V and its parts are in a [Store] that all
// workers reach, and the elements of a pipeline are numbers of shards (rounds.go).
//
// A program that uses the package calls [Init] first. Where a runner has started the program as a worker,
// Init works for the runner. The command quantmf-beam is such a program. All of it is in package command, so
// that other programs can import further runners or file systems:
//
//	import _ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/s3"
//
//	func main() { os.Exit(command.Run(os.Args[1:], os.Stdout, os.Stderr)) }
package beam
