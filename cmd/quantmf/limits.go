package main

// This file holds the flags that every command has, -max-memory and -progress; and the replacement of the
// package's names of options by the names of flags in messages.

import (
	"flag"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/flags"
	"github.com/quantmf/quantmf/internal/table"
)

// limits are the flags that every command has.
type limits struct {
	maxMemory memory
	progress  string
}

// limitsHelp is the help of limits, for commands other than fit.
const limitsHelp = `  -max-memory SIZE  refuse what needs more, such as 500MB, with exit code 3
                    (default 8GiB)
  -progress auto|plain|json|none
                    what is told on standard error: auto: one line rewritten on a
                    terminal, elsewhere up to ten lines of what is counted, from two
                    seconds on; plain: a line for each part of the work; json: an
                    object for each; none: only what was found, and warnings of what
                    may be wrong in how the matrix was read (default auto)
`

func (l *limits) flags(set *flag.FlagSet) {
	l.maxMemory, l.progress = 8<<30, "auto"
	set.Var(&l.maxMemory, "max-memory", "")
	set.StringVar(&l.progress, "progress", l.progress, "")
}

// check reports a value that -progress does not take.
func (l *limits) check() error {
	modes := []string{"auto", "plain", "json", "none"}
	if !slices.Contains(modes, l.progress) {
		return usageError(fmt.Sprintf("-progress %s: %v", l.progress, flags.OneOf(modes)))
	}
	return nil
}

// hold makes the garbage collector keep to -max-memory until the returned function is called.
func (l *limits) hold() (release func()) {
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, int64(l.maxMemory)))
	return func() { debug.SetMemoryLimit(before) }
}

// allows returns an error if need is more bytes than -max-memory allows.
func (l *limits) allows(need float64, what, instead string) error {
	if need > float64(l.maxMemory) {
		return &inputError{fmt.Errorf("%s needs about %s of memory, -max-memory allows %s: %s", what,
			table.Size(need), table.Size(float64(l.maxMemory)), instead)}
	}
	return nil
}

// allowsMatrices returns an error if count matrices of d × n numbers, beside the model, take more than
// -max-memory.
func (l *limits) allowsMatrices(count float64, d, n int) error {
	return l.allows(8*count*float64(d)*float64(n)+programSize, "this",
		"allow more, or give fewer samples at a time")
}

// spoken pairs names of the package with those of the command line. A name stands before any name that it
// begins with.
var spoken = strings.NewReplacer(
	"FitNMF", "-method nmf", "FitQMFQ", "-method qmfq", "FitQMF", "-method qmf", "FitBQMF", "-method bqmf",
	"WithMissingValues", "-missing", "WithLevels", "-m", "WithLearningRate", "-lr", "WithEpsilon", "-eps",
	"WithCheckpoint", "-checkpoint",
	"WithValidation", "-validation", "WithPatience", "-patience", "WithRestarts", "-restarts",
	"WithTolerance", "-tolerance", "WithProjection", "-projection",
	"WithSchedule", "-schedule", "WithShrinkage", "-shrinkage", "WithPenalty", "-penalty", "WithEpochs",
	"-epochs", "WithResume", "-resume",
	"WithStart", "-start", "WithEnds", "-ends", "WithBatch", "-batch", "WithSeed", "-seed", "WithLoss",
	"-loss", "WithUpdates", "-updates",
	"StartAuto", "-start auto", "StartScores", "-start scores", "StartNMF", "-start nmf", "StartUniform",
	"-start uniform", "StartSVD", "-start svd",
	"EndsFree", "-ends free", "EndsPinned", "-ends pinned", "ScheduleCosine", "-schedule cosine",
	"ScheduleConstant", "-schedule constant",
	"UpdatesNewton", "-updates newton", "UpdatesMultiplicative", "-updates multiplicative", "KLUpdates", "kl",
	"FrobeniusUpdates", "frobenius", "TruncatedSVD", "svd",
	"takes KL or Frobenius", "takes kl or frobenius", "losses KL and Frobenius", "losses kl and frobenius",
	"another x", "another matrix")

// goValue is a value of an option as the package writes it.
var goValue = regexp.MustCompile(`^(Start|Ends|Schedule|Updates)([A-Z]\w*)$|^(KL|Frobenius)Updates\((\d+)\)$|^(TruncatedSVD)\(\)$`)

// spokenValue returns a value of an option in the spelling of its flag.
func spokenValue(v string) string {
	switch m := goValue.FindStringSubmatch(v); {
	case m == nil:
		return v
	case m[1] != "":
		return strings.ToLower(m[2])
	case m[3] != "":
		return strings.ToLower(m[3]) + ":" + m[4]
	}
	return "svd"
}

// takes returns an error for flags that exclude each other, before any file is read.
func (f *fitFlags) takes(method string, options []quantmf.FitOption) error {
	_, err := quantmf.MemoryOf(methodOf[method], 1, 1, f.rank, options...)
	if err != nil {
		return explain(err, nil, f.flagOf)
	}
	return nil
}

// apart returns an error for two outputs of the same name, before any file is read. outputs.open finds links
// to the same file.
func apart(paths ...string) error {
	seen := map[string]bool{}
	for _, p := range paths {
		if p == "" {
			continue
		}
		if at := cleanPath(p); seen[at] {
			return usageError("two outputs to the same place: " + p)
		} else {
			seen[at] = true
		}
	}
	return nil
}
