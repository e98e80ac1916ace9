package cli

// This file holds the flags that become options of a fit, with their help, and the words of errors: options
// and constants of the package are told as flags and their values. Both come from the declarations of package
// option.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
	"github.com/quantmf/quantmf/internal/table"
)

// optionHelp has what stands for the value of each option that is a flag, and its help. The words of a Choice
// are those of its declaration.
var optionHelp = [option.Kinds]struct{ value, help string }{
	option.Loss: {"auto|kl|frobenius|BETA", `what is minimised: the Kullback-Leibler divergence, half the
		squared differences, or the β-divergence of a β from -2 to 4 (bqmf: kl or frobenius). Under frobenius
		all methods but nmf take values of any sign, such as log ratios and z-scores. auto is frobenius where
		a value is negative and kl elsewhere; the summary says which (default auto)`},
	option.Missing: {"", `empty cells, NA and NaN are missing values: the fit leaves them out, and "quantmf
		reconstruct" fills them in (default: they are errors)`},
	option.Levels: {"N", `levels, the quantiles learned per feature, at least 2 (qmf, qmfq; default 8)`},
	option.Epsilon: {"X", `entropic regularisation of the maps, above 0; larger is smoother (qmf, qmfq;
		default 0.02)`},
	option.Epochs: {"N", `how often every feature is fitted (default 4 for qmf, 100 for qmfq, 20 for nmf,
		under kl 10 from 8192 samples on, and up to four times as many where values are missing, as predict
		hidden ones best; at most 60 for bqmf; 20 for qmf where Adam steps U and V, which it
		does with -start uniform, with -k above 32 and with a -loss below -0.5)`},
	option.LearningRate: {"X", `learning rate of Adam, above 0 (default 0.2 for qmf, 0.1 for qmfq; 0.06 for
		qmf where Adam steps U and V)`},
	option.Schedule: {"", `how the learning rate falls (qmf, qmfq; default cosine)`},
	option.Batch:    {"N", `features fitted between two steps of V (qmf; default 32)`},
	option.Start: {"", `where the fit starts: scores: an NMF of the ranks of each feature, as normal scores;
		nmf: an NMF of the matrix; auto: the one of these two that predicts hidden cells better (the three
		are for qmf and qmfq); uniform: at random; svd: singular vectors (nmf). auto of nmf: uniform, but
		under kl from 8192 samples on an NMF of 2048 of them (default auto)`},
	option.Ends: {"", `free: learn each feature's lowest and highest quantile; pinned: keep them at its
		minimum and maximum (qmf, qmfq; default free)`},
	option.Penalty: {"X", `weight of the penalty on the logarithms of the factors (qmf; default 0)`},
	option.Penalties: {"L1U,L1V,L2U,L2V", `weights of the penalties: L1 of U and of V, which make entries
		0, and L2, which keep them small; those of scikit-learn (nmf; default none)`},
	option.Shrinkage: {"X", `how strongly every map is pulled towards a straight line: as if X more
		samples lay on it (qmf, qmfq; default: of 0, 20 and 100 the one that predicts hidden cells best;
		0 with -ends pinned or -start uniform)`},
	option.Line: {"X", `the share of a straight line in every map at the start, from 0, the paper's maps
		without one, to 1, nearly an NMF (qmf, qmfq; default: of 0, 0.5 and 0.9 the one that predicts hidden
		cells best; 0 with -ends pinned, -start uniform and -projection svd)`},
	option.Projection: {"kl:N|frobenius:N|svd", `the projection P: N updates under the named divergence, or
		singular vectors, which take no missing values (qmfq; default kl:5, with -start uniform kl:100)`},
	option.Updates: {"", `newton: Newton's method, under kl and frobenius; multiplicative: the updates of the
		textbooks, 100 of them unless -epochs is given (nmf; default newton under kl and frobenius,
		multiplicative under other losses, where -k is above the number of features and
		samples together, and where values are missing of a small matrix)`},
	option.Tolerance: {"X", `where a map counts as converged, above 0 (qmf, qmfq; default 1e-9); of bqmf the
		share of UV that the last epoch may still change (default 0.003)`},
	option.Validation: {"X", `hide this share of the values, up to 0.5, from the fit, and take the epoch that
		predicts them best (default: hide none)`},
	option.Patience: {"N", `end when the loss has not fallen for N epochs (not bqmf; default: never)`},
	option.Restarts: {"N", `the number of fits, each with the next seed, of which the best is taken (not
		bqmf; default 1)`},
	option.Strict: {"", `fail, with exit code 4, where a map has not converged (qmf, qmfq; default: warn)`},
	option.Seed:   {"N", `seed of everything random (default 1)`},
	option.Workers: {"N", `threads that work on features, 0 for one per processor; the result does not depend
		on it (default 0)`},
}

// Options are the options of a fit that flags give.
type Options struct {
	Missing bool         // -missing
	Loss    quantmf.Loss // that of -loss, KL before Auto has been settled
	Auto    bool         // the signs of the matrix choose the loss
	Seed    uint64       // that of -seed

	texts [option.Kinds]string // "" for what was not given, or is left to the data
	made  [option.Kinds]quantmf.FitOption
}

// NewOptions are options of which none is given.
func NewOptions() Options { return Options{Loss: quantmf.KL, Auto: true, Seed: 1} }

// Set gives an option by the text of its value.
func (o *Options) Set(k option.Kind, text string) error {
	made, err := settings.Parse(k, text)
	if err != nil {
		return err
	}
	if o.made[k], o.texts[k] = made, text; made == nil {
		o.texts[k] = ""
	}
	switch k {
	case option.Missing:
		o.Missing = made != nil
	case option.Loss:
		if o.Loss, o.Auto = quantmf.KL, made == nil; made != nil {
			o.Loss, _ = account.ParseLoss(text)
		}
	case option.Seed:
		o.Seed, _ = settings.Seed(text)
	}
	return nil
}

// Flag is the flag of an option. Flags is that of several.
func (o *Options) Flag(k option.Kind) *Flag {
	value := optionHelp[k].value
	if k.Form() == option.Choice {
		value = strings.Join(k.Words(), "|")
	}
	f := Func(k.Flag(), value, optionHelp[k].help, func(text string) error { return o.Set(k, text) })
	f.Aside = k == option.Workers
	return f
}

func (o *Options) Flags(kinds ...option.Kind) (flags []*Flag) {
	for _, k := range kinds {
		flags = append(flags, o.Flag(k))
	}
	return flags
}

// How are the options of how a matrix is fitted, in the order of the help.
var How = []option.Kind{option.Levels, option.Epsilon, option.Epochs, option.LearningRate, option.Schedule,
	option.Batch, option.Start, option.Ends, option.Penalty, option.Penalties, option.Shrinkage, option.Line,
	option.Projection,
	option.Updates, option.Tolerance, option.Validation, option.Patience, option.Restarts, option.Strict,
	option.Seed, option.Workers}

// Compared are the options of the fits that are compared by hidden cells, beside loss, missing and seed. -m
// is a list there.
var Compared = but(How, option.Levels, option.Seed, option.Workers)

// but are the kinds without some.
func but(kinds []option.Kind, some ...option.Kind) []option.Kind {
	without := option.Of(some...)
	return slices.DeleteFunc(slices.Clone(kinds), without.Has)
}

// InShards are the flags of a fit over shards: -updates, which has another default there, and those that a
// QMF or an NMF has, but for -workers and those of which such a fit has no use.
func (o *Options) InShards() (updates *Flag, others []*Flag) {
	updates = o.Flag(option.Updates)
	updates.Help = `multiplicative: one round an epoch; newton: two rounds an epoch, each epoch worth ten of
		the former or more (nmf; default multiplicative)`
	takes := option.FitQMF.Takes | option.FitNMF.Takes
	kinds := but(append([]option.Kind{option.Loss, option.Missing}, How...), option.Updates, option.Batch,
		option.Restarts, option.Workers)
	return updates, o.Flags(slices.DeleteFunc(kinds, func(k option.Kind) bool { return !takes.Has(k) })...)
}

// List returns the options that were given, but for some.
func (o *Options) List(but ...option.Kind) []quantmf.FitOption { return o.those(^option.Of(but...)) }

// Shared returns those that also hold for the NMF with which a fit is compared on hidden values.
func (o *Options) Shared() []quantmf.FitOption { return o.those(option.Of(settings.Shared...)) }

// those returns the options of some kinds that were given.
func (o *Options) those(kinds option.Set) (list []quantmf.FitOption) {
	for k, made := range o.made {
		if made != nil && kinds.Has(option.Kind(k)) {
			list = append(list, made)
		}
	}
	return list
}

// Texts returns the options that were given, by their flags and the texts of their values, but for some.
func (o *Options) Texts(but ...option.Kind) (texts [][2]string) {
	without := option.Of(but...)
	for k, text := range o.texts {
		if text != "" && !without.Has(option.Kind(k)) {
			texts = append(texts, [2]string{option.Kind(k).Flag(), text})
		}
	}
	return texts
}

// Workers is the number that was given, 0 for none.
func (o *Options) Workers() int {
	n, _ := settings.Whole(o.texts[option.Workers])
	return n
}

// SetFlag gives an option by its flag.
func (o *Options) SetFlag(flag, text string) error {
	for k := range option.Kinds {
		if k.Flag() == flag && settings.Parses(k) {
			return o.Set(k, text)
		}
	}
	return errors.New("there is no flag -" + flag)
}

// SettleLoss takes frobenius if x has negative values, else kl, if no loss was given. It says which, and why,
// and warns of values so few that they may be none.
func (o *Options) SettleLoss(t *table.Table, in *Input, messages io.Writer) (words string, err error) {
	if !o.Auto {
		return "", nil
	}
	count, row, column, first := 0, 0, 0, 0.0
	err = t.EachRow(func(i int, values []float64) {
		for j, v := range values {
			if v < 0 {
				if count++; count == 1 {
					row, column, first = i, j, v
				}
			}
		}
	})
	if err != nil {
		return "", err
	}
	if count == 0 {
		return "-loss auto took kl: no value is negative", nil
	}
	below := table.Counted(count, "value is negative", "values are negative")
	d, n := t.Dims()
	if count == 1 || float64(count) <= fewNegatives*float64(d)*float64(n) {
		err = in.Warn(messages, t.File, fmt.Sprintf("no more than %s: feature %q, sample %q has %g, and "+
			"-loss auto takes frobenius for all. If that stands for a missing value, -na %[4]g says so; if "+
			"it is meant, -loss frobenius", below, t.Features[row], t.Samples[column], first))
	}
	return "-loss auto took frobenius: " + below, cmp.Or(err, o.Set(option.Loss, "frobenius"))
}

// fewNegatives is the share of a matrix up to which negative values may be a code or a slip.
const fewNegatives = 0.01

// Takes returns an error for options that exclude each other, or that the method has not, before any file is
// read.
func Takes(method string, rank int, options []quantmf.FitOption) error {
	_, err := quantmf.MemoryOf(settings.Method(method), 1, 1, rank, options...)
	return Explain(err, nil)
}

// inFlags makes names of flags out of names of the package: those of options, and of their constants, which
// stand for a flag with its value. A name comes before any that it begins with.
var inFlags = sync.OnceValue(func() *strings.Replacer {
	pairs := []string{"FitNMF", "-method nmf", "FitQMFQ", "-method qmfq", "FitQMF", "-method qmf", "FitBQMF",
		"-method bqmf", "KLUpdates", "kl", "FrobeniusUpdates", "frobenius", "TruncatedSVD", "svd",
		"takes KL or Frobenius", "takes kl or frobenius", "takes KL and Frobenius", "takes kl and frobenius",
		"losses KL and Frobenius",
		"losses kl and frobenius", "another x", "another matrix"}
	for k := range option.Kinds {
		if k.Flag() != "" {
			pairs = append(pairs, k.String(), "-"+k.Flag())
			for i, word := range k.Words() {
				pairs = append(pairs, k.Constant(i), "-"+k.Flag()+" "+word)
			}
		}
	}
	return strings.NewReplacer(pairs...)
})

// ofFit puts what an error says of a value into the words of commands: they name flags of fit, also where the
// command has none of them.
var ofFit = strings.NewReplacer("WithMissingValues", "-missing of fit", "WithLoss(Frobenius)",
	"-loss frobenius of fit", "another x", "another matrix",
	"x must be finite: TruncatedSVD", "-projection svd of fit",
	"the row has no observed cell", "all its values are missing: remove the feature",
	"the column has no observed cell", "all its values are missing: remove the sample")

// Explain puts an error of the package into the words of the commands: its options are flags, its rows and
// columns are features and samples of t.
func Explain(err error, t *table.Table) error {
	var bad *quantmf.OptionError
	var data *quantmf.DataError
	var unconverged *quantmf.ConvergenceError
	switch {
	case errors.As(err, &bad):
		return explainOption(bad)
	case errors.As(err, &data) && data.Row < len(t.Features) && data.Col < len(t.Samples):
		problem := ofFit.Replace(data.Problem)
		if !math.IsNaN(data.Value) {
			problem = fmt.Sprintf("%g: %s", data.Value, problem)
		}
		if data.Row >= 0 && t.Absent(data.Row) {
			return t.Error(data.Row, -1, "the matrix lacks this feature: "+problem)
		}
		return t.Error(data.Row, data.Col, problem)
	case errors.As(err, &unconverged) && unconverged.Row >= 0:
		return fmt.Errorf("feature %q: %w", t.Features[unconverged.Row], err)
	}
	return err
}

// explainOption names the flag of an option, and its value as the flag spells it.
func explainOption(bad *quantmf.OptionError) error {
	bound := inFlags().Replace(bad.Bound)
	flag := map[string]string{"rank": "k", "repeats": "repeats", "share": "share", "shards": "shards",
		"store": "store"}[bad.Option]
	value := bad.Value
	for k := range option.Kinds {
		if k.String() != bad.Option {
			continue
		}
		flag = k.Flag()
		for i, word := range k.Words() {
			if k.Constant(i) == value {
				value = word
			}
		}
		switch k {
		case option.Missing, option.Strict, option.Checkpoint,
			option.Resume: // which have no value to speak of
			value = ""
		case option.Projection: // KLUpdates(5)
			value = strings.NewReplacer("()", "", "(", ":", ")", "").Replace(inFlags().Replace(value))
		}
	}
	switch {
	case flag == "":
		return UsageError(inFlags().Replace(bad.Error()))
	case value == "" || flag == "store":
		return UsageError("-" + flag + ": " + bound)
	}
	return UsageError("-" + flag + " " + value + ": " + bound)
}
