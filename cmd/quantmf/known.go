package main

// This file holds what is known of samples and features beside the matrix, and its flags: groups, numbers,
// survival and sets of features, against which components are tested.

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/quantmf/quantmf/internal/account"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/report"
	"github.com/quantmf/quantmf/internal/table"
)

// known is what is known, and its flags.
type known struct {
	groups, sets string // the files
	of           report.Columns

	inputs []os.FileInfo // of the files, once they are read; nil where one is standard input
	report.Known
	members []account.Set
}

func (k *known) flags() []*cli.Flag {
	return []*cli.Flag{
		cli.File(&k.groups, "groups", `a table whose first column has names of samples, features or both, and
			whose other columns have what is known of them: groups (tissue) or numbers (age). Each component
			is tested against each column. The page has the colours of the first column`),
		cli.Aside(cli.Func("by", "COLUMNS", `the columns of -groups to take, by their headings, with commas
			between (default all)`, func(text string) error {
			for _, c := range strings.Split(text, ",") {
				if c = strings.TrimSpace(c); c == "" {
					return errors.New("must be headings with commas between")
				}
				k.of.By = append(k.of.By, c)
			}
			return nil
		})),
		cli.Aside(cli.Func("survival", "TIME,EVENT", `two columns of -groups: the time of each sample, and 1
			where it ended with the event (death), 0 where it did not. Each component is tested by Cox's
			model`,
			func(text string) (err error) {
				var two bool
				k.of.Time, k.of.Event, two = strings.Cut(text, ",")
				if k.of.Event = strings.TrimSpace(k.of.Event); !two || k.of.Time == "" || k.of.Event == "" ||
					strings.Contains(k.of.Event, ",") {
					err = errors.New("must be two headings with a comma between")
				}
				return err
			})),
		cli.File(&k.sets, "sets", `sets of features, such as genes of pathways, in a GMT file: name,
			description and members, with tabs between. Each component is tested for members that it stands
			for more than for other features`),
	}
}

// check returns an error for flags that lack -groups, and for standard input that would be read twice; inputs
// are the other files that are read.
func (k *known) check(inputs ...string) error {
	if k.groups == "" && len(k.of.By) > 0 {
		return cli.UsageError("-by: it says which columns of a table of groups: give -groups, too")
	}
	if k.groups == "" && k.of.Time != "" {
		return cli.UsageError("-survival: it says which columns of a table of groups: give -groups, too")
	}
	return cli.OnceStdin(append(inputs, k.groups, k.sets)...)
}

// read reads the files, for these features and samples.
func (k *known) read(features, samples []string, s cli.Streams, in *cli.Input) error {
	text := func(path, what string) (string, error) {
		data, info, err := in.ReadAll(path, s.In, what, 8) // the text, and what is read from it
		k.inputs = append(k.inputs, info)
		return string(data), err
	}
	if k.groups != "" {
		lines, err := text(k.groups, "table of groups")
		if err != nil {
			return err
		}
		var warnings []string
		if k.Known, warnings, err = report.ReadKnown(lines, k.of, features, samples); err != nil {
			return &cli.InputError{Err: fmt.Errorf("%s: %w", k.groups, err)}
		}
		for _, w := range warnings {
			if err := in.Warn(s.Err, k.groups, w); err != nil {
				return err
			}
		}
	}
	if k.sets == "" {
		return nil
	}
	gmt, err := text(k.sets, "file of sets")
	if err != nil {
		return err
	}
	few := 0
	if k.members, few, err = account.ReadSets(gmt, features); err != nil {
		return &cli.InputError{Err: fmt.Errorf("%s: %w", k.sets, err)}
	}
	if few > 0 {
		return in.Warn(s.Err, k.sets, fmt.Sprintf("%s left out: fewer than five members, or fewer than five "+
			"other features, are in the matrix", table.Counted(few, "set is", "sets are")))
	}
	return nil
}

// mostTold is how many tests inspect prints of each kind.
const mostTold = 20

// tell prints the tests with a q of at most .05, the most certain first.
func (k *known) tell(m *model, r readings, line lineFunc) {
	tests := account.Against(m.of.V, k.Tracks)
	told(tests, "Known", func(t account.Test) float64 { return t.Q }, line, func(t account.Test) string {
		return fmt.Sprintf("c%d, %s: %s (p %s, q %s, %s)", t.Component+1, table.Shown(t.Track.Name),
			t.Words(),
			account.Chance(t.P), account.Chance(t.Q), table.Counted(t.Samples, "sample"))
	})
	if k.members == nil {
		return
	}
	sets := account.AgainstSets(m.of.U, m.Shares(), r.goodness, k.members)
	told(sets, "Sets", func(t account.SetTest) float64 { return t.Q }, line, func(t account.SetTest) string {
		return fmt.Sprintf("c%d, %s: above others %.2f (p %s, q %s, %s)", t.Component+1,
			table.Shown(t.Set.Name), t.Above, account.Chance(t.P), account.Chance(t.Q),
			table.Counted(len(t.Set.Members), "member"))
	})
}

// told prints tests.
func told[T any](tests []T, head string, q func(T) float64, line lineFunc,
	words func(T) string) {
	if len(tests) == 0 {
		return
	}
	sure := slices.DeleteFunc(slices.Clone(tests), func(t T) bool { return !(q(t) <= 0.05) })
	slices.SortStableFunc(sure, func(a, b T) int { return cmp.Compare(q(a), q(b)) })
	line(head, "%d of %s have a q of at most .05 (p corrected for the number of tests)", len(sure),
		table.Counted(len(tests), "test"))
	for _, t := range sure[:min(len(sure), mostTold)] {
		line("", "%s", words(t))
	}
	if more := len(sure) - mostTold; more > 0 {
		line("", "and %d more: -json has all", more)
	}
}

// The objects of inspect -json. What could not be tested has no p, and says why.
type (
	testObject struct {
		Component string   `json:"component"`
		Known     string   `json:"known"`
		Kind      string   `json:"kind"`
		Samples   int      `json:"samples"`
		Effect    *float64 `json:"effect,omitempty"` // epsilon squared, rho or hazard ratio
		Low       *float64 `json:"low,omitempty"`    // of the hazard ratio, as is high
		High      *float64 `json:"high,omitempty"`
		Most      string   `json:"most,omitempty"` // the group with most
		P         *float64 `json:"p,omitempty"`
		Q         *float64 `json:"q,omitempty"`
		Why       string   `json:"untested,omitempty"`
	}
	setObject struct {
		Component string   `json:"component"`
		Set       string   `json:"set"`
		Members   int      `json:"members"`
		Above     *float64 `json:"above,omitempty"`
		P         *float64 `json:"p,omitempty"`
		Q         *float64 `json:"q,omitempty"`
	}
)

// objects are all tests.
func (k *known) objects(m *model, r readings) (tests []testObject, sets []setObject) {
	finite := func(v float64) *float64 {
		if v-v != 0 {
			return nil
		}
		return &v
	}
	for _, t := range account.Against(m.of.V, k.Tracks) {
		o := testObject{Component: fmt.Sprintf("c%d", t.Component+1), Known: t.Track.Name,
			Kind:    t.Track.Kind(),
			Samples: t.Samples, Effect: finite(t.Effect), Most: t.Most, P: finite(t.P), Q: finite(t.Q),
			Why: t.Why}
		if o.Kind == "survival" && t.Why == "" {
			o.Low, o.High = finite(t.Low), finite(t.High)
		}
		tests = append(tests, o)
	}
	for _, t := range account.AgainstSets(m.of.U, m.Shares(), r.goodness, k.members) {
		sets = append(sets, setObject{fmt.Sprintf("c%d", t.Component+1), t.Set.Name, len(t.Set.Members),
			finite(t.Above), finite(t.P), finite(t.Q)})
	}
	return tests, sets
}
