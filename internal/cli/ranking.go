package cli

// This file holds the choice of methods and of numbers of components and levels by the losses of hidden
// cells: which is best, which is the smallest that is as good, and how sure both are. Beside what was asked
// for stands the mean of each feature alone, a model of no components.
//
// A trial is as good as the best where it is worse by at most one standard error of the difference, in two
// measures: the loss, and the loss in which every feature counts by its own spread. The first alone follows
// the features of large values; a smaller k that it cannot tell from the best may predict all others worse.

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/option"
	"github.com/quantmf/quantmf/internal/settings"
)

// NewComparison has the defaults of what is tried.
func NewComparison() Comparison {
	return Comparison{Methods: []string{"qmf"}, Ks: []int{2, 4, 8}, Seed: 1}
}

// Flags are those of what is compared, but for the seed. share is that of the hidden cells.
func (c *Comparison) Flags(share *float64) []*Flag {
	return []*Flag{
		Wholes(&c.Ks, "k", "the numbers of components (default 2,4,8)"),
		Wholes(&c.Ms, "m", "the numbers of levels, each tried with every -k (default: the default of fit)"),
		Whole(&c.Repeats, 1, "repeats", "N", `how many times values are hidden (default 10, and up to 640
			while it is a toss-up which number to take and the fits are small)`),
		Number(share, option.Validation.Check, "share", "X",
			"the share of the values hidden each time, at most 0.5 (default 0.1)"),
	}
}

// MethodFlag is that of the methods that are compared.
func (c *Comparison) MethodFlag() *Flag {
	return Func("method", strings.Join(settings.Methods, "|"), `what is fitted; several methods, with
		commas between, are compared with each other (default qmf)`, func(text string) error {
		c.Methods = words(text)
		for i, word := range c.Methods {
			if !slices.Contains(settings.Methods, word) || slices.Contains(c.Methods[:i], word) {
				return errors.New("must be some of " + strings.Join(settings.Methods, ", "))
			}
		}
		return nil
	})
}

// Signed tells whether one of the methods takes negative values.
func (c *Comparison) Signed() bool {
	return slices.ContainsFunc(c.Methods, func(method string) bool { return method != "nmf" })
}

// Comparison is what was tried and what came of it. The trials are every number of levels with the first
// number of components, then with the next, for the first method and then for the next.
type Comparison struct {
	Methods []string // at least one
	Ks, Ms  []int    // numbers of components and of levels; no Ms: one that was not asked for
	Repeats int      // 0: ten, and more in a toss-up
	Seed    uint64
	Got     []quantmf.Prediction // of each trial, and at last of the mean alone

	// What Choose finds.
	Best, Chosen         int
	SureBest, SureChosen Share // of other sets of as many masks, those with the same; 0 for one repeat
	Rival                int   // what most of the others would choose, and their share
	RivalShare           float64
}

// Share is a share of sets of masks, and its standard error.
type Share struct{ Mean, StdErr float64 }

// Levels are the numbers of levels tried, 0 alone for that of a fit.
func (c *Comparison) Levels() []int {
	if len(c.Ms) == 0 {
		return []int{0}
	}
	return c.Ms
}

// Trials is their number, without the mean alone.
func (c *Comparison) Trials() int { return len(c.Methods) * len(c.Ks) * len(c.Levels()) }

// alone tells whether a trial is the mean alone.
func (c *Comparison) alone(trial int) bool { return trial == c.Trials() }

// Method, K and M are those of a trial: "mean", 0 and 0 of the mean alone.
func (c *Comparison) Method(trial int) string {
	if c.alone(trial) {
		return "mean"
	}
	return c.Methods[trial/(len(c.Ks)*len(c.Levels()))]
}

func (c *Comparison) K(trial int) int {
	if c.alone(trial) {
		return 0
	}
	return c.Ks[trial/len(c.Levels())%len(c.Ks)]
}

func (c *Comparison) M(trial int) int {
	if c.alone(trial) {
		return 0
	}
	return c.Levels()[trial%len(c.Levels())]
}

// Size orders trials by k, then by m, then as the methods are given; a k of 0 is as many as there can be, but
// for that of the mean alone.
func (c *Comparison) Size(a, b int) int {
	most := func(trial int) int {
		if c.K(trial) == 0 && !c.alone(trial) {
			return math.MaxInt
		}
		return c.K(trial)
	}
	return cmp.Or(cmp.Compare(most(a), most(b)), cmp.Compare(c.M(a), c.M(b)), cmp.Compare(a, b))
}

// KName is how a number of components is written.
func (c *Comparison) KName(trial int) string {
	if c.K(trial) == 0 && !c.alone(trial) {
		return "all"
	}
	return strconv.Itoa(c.K(trial))
}

// Name says which trial it is.
func (c *Comparison) Name(trial int) string {
	if c.alone(trial) {
		return "the mean of each feature alone"
	}
	text := "k=" + c.KName(trial)
	if len(c.Methods) > 1 {
		text = c.Method(trial) + ", " + text
	}
	if len(c.Ms) > 0 {
		text += fmt.Sprintf(", m=%d", c.M(trial))
	}
	return text
}

// The numbers of masks.
const (
	fewMasks    = 10      // with which a comparison begins
	mostMasks   = 640     // in a toss-up
	mostValues  = 1 << 23 // of all fits in a toss-up
	leastStdErr = 0.1     // of the share of other sets of masks, from which it is no toss-up
)

// Run makes the fits by the given function, which has the number of the first mask and how many there are. A
// comparison of which nobody said how many masks it has doubles their number while the share of other sets
// of masks that would choose the same is unsure. cells is the size of the matrix.
func (c *Comparison) Run(cells int, fits func(first, masks int) ([]quantmf.Prediction, error)) error {
	masks, most := c.Repeats, c.Repeats
	if masks == 0 {
		masks = fewMasks
		most = min(mostMasks, max(fewMasks, mostValues/cells/c.Trials()/fewMasks*fewMasks))
	}
	for done := 0; ; masks = min(2*masks, most) {
		for done < masks {
			step := min(masks-done, c.AtOnce())
			p, err := fits(done, step)
			if err != nil {
				return err
			}
			c.Add(p)
			done += step
		}
		c.Choose()
		if masks == most || c.SureChosen.StdErr < leastStdErr {
			return nil
		}
	}
}

// Add adds the predictions of all trials under further masks.
func (c *Comparison) Add(p []quantmf.Prediction) {
	alone := quantmf.Prediction{Losses: p[0].Baseline, Relative: p[0].BaselineRelative}
	p = append(slices.Clip(p), quantmf.Prediction{}.Join(alone))
	if c.Got == nil {
		c.Got = make([]quantmf.Prediction, len(p))
	}
	for i := range p {
		c.Got[i] = c.Got[i].Join(p[i])
	}
}

// AtOnce is the number of masks that are in memory.
func (c *Comparison) AtOnce() int {
	if c.Repeats > 0 {
		return c.Repeats
	}
	return fewMasks
}

// Masks is the number of masks that were made.
func (c *Comparison) Masks() int { return len(c.Got[0].Losses) }

// paired is the mean of a - b over the repeats, and its standard error, 0 for one repeat.
func paired(a, b []float64) (mean, stdErr float64) {
	n := float64(len(a))
	for r := range a {
		mean += (a[r] - b[r]) / n
	}
	for r := range a {
		d := a[r] - b[r] - mean
		stdErr += float64(d * d)
	}
	if n > 1 {
		stdErr = math.Sqrt(stdErr / (n - 1) / n)
	}
	return mean, stdErr
}

// Worse is by how much a trial's loss exceeds that of the best, and the standard error of that.
func (c *Comparison) Worse(trial int) (mean, stdErr float64) {
	return paired(c.Got[trial].Losses, c.Got[c.Best].Losses)
}

// choice is the trial of least mean loss, of losses by trial and repeat, and the smallest one that is worse
// by at most a standard error of the difference in loss and in relative loss.
func (c *Comparison) choice(losses, relative [][]float64) (best, chosen int) {
	for i := range losses {
		if worse, _ := paired(losses[i], losses[best]); worse < 0 {
			best = i
		}
	}
	chosen = best
	for i := range losses {
		if c.Size(i, chosen) < 0 && asGood(losses[i], losses[best]) && asGood(relative[i], relative[best]) {
			chosen = i
		}
	}
	return best, chosen
}

// asGood tells whether a is worse than b by at most a standard error of the difference.
func asGood(a, b []float64) bool {
	worse, stdErr := paired(a, b)
	return worse <= stdErr
}

// How many sets of other masks are made up: for each of so many errors of the mean, some sets.
const otherMeans, otherSets = 250, 8

// Choose finds the best trial and the one to take, and the shares of other sets of as many masks that would
// find the same. Such a set has the losses mean + off + deviations: the deviations are drawn with
// replacement from those of the masks that were made, for all trials from the same mask; so is off, the error
// of the mean itself, as the mean of another draw. Without off the masks that happened to be made would count
// as the truth. How much the share differs from one off to another is its standard error.
func (c *Comparison) Choose() {
	losses, relative := make([][]float64, len(c.Got)), make([][]float64, len(c.Got))
	for i, p := range c.Got {
		losses[i], relative[i] = p.Losses, p.Relative
	}
	c.Best, c.Chosen = c.choice(losses, relative)
	c.SureBest, c.SureChosen, c.Rival, c.RivalShare = Share{}, Share{}, c.Chosen, 0
	if c.Masks() == 1 {
		return
	}
	src := rand.New(rand.NewPCG(c.Seed, 29))
	sets := []*madeUp{newMadeUp(losses), newMadeUp(relative)}
	at, of := make([]int, c.Masks()), make([]int, c.Masks())
	best, chosen, times := make([]int, otherMeans), make([]int, otherMeans), make([]int, len(c.Got))
	draw := func(at []int) {
		for r := range at {
			at[r] = src.IntN(len(at))
		}
	}
	for o := range otherMeans {
		draw(of)
		for range otherSets {
			draw(at)
			for _, s := range sets {
				s.fill(at, of)
			}
			b, t := c.choice(sets[0].made, sets[1].made)
			if b == c.Best {
				best[o]++
			}
			if t == c.Chosen {
				chosen[o]++
			}
			times[t]++
		}
	}
	c.SureBest, c.SureChosen = shareOf(best), shareOf(chosen)
	times[c.Chosen] = 0
	for i, n := range times {
		if n > times[c.Rival] {
			c.Rival = i
		}
	}
	c.RivalShare = float64(times[c.Rival]) / (otherMeans * otherSets)
}

// madeUp are losses of one measure under masks that were not made.
type madeUp struct {
	of, made [][]float64 // by trial and mask
	means    []float64
}

func newMadeUp(of [][]float64) *madeUp {
	m := &madeUp{of: of, means: make([]float64, len(of))}
	for i, all := range of {
		for _, l := range all {
			m.means[i] += l / float64(len(all))
		}
		m.made = append(m.made, make([]float64, len(all)))
	}
	return m
}

// fill makes up a set whose deviations are those of the masks at, and whose mean is off by the mean of the
// deviations of the masks off.
func (m *madeUp) fill(at, off []int) {
	n := float64(len(at))
	widened := math.Sqrt(n / (n - 1)) // the deviations from a mean are smaller than those from the truth
	for i, all := range m.of {
		mean, by := m.means[i], 0.0
		for _, r := range off {
			by += widened * (all[r] - mean) / n
		}
		for r, from := range at {
			m.made[i][r] = mean + by + float64(widened*(all[from]-mean))
		}
	}
}

// shareOf returns the share of otherSets that the counts have on average, and by how much it differs from one
// to another, beyond what so few sets differ by chance.
func shareOf(counts []int) (s Share) {
	square, within := 0.0, 0.0
	for _, n := range counts {
		share := float64(n) / otherSets
		s.Mean += share / otherMeans
		square += float64(share*share) / otherMeans
		within += share * (1 - share) / (otherSets - 1) / otherMeans
	}
	s.StdErr = math.Sqrt(max(0, square-float64(s.Mean*s.Mean)-within))
	return s
}

// Table is the results, a line a trial.
func (c *Comparison) Table() string {
	var s strings.Builder
	line := func(method, k, m, rest string) {
		if len(c.Methods) > 1 {
			s.WriteString(method + "\t")
		}
		s.WriteString(k + "\t")
		if len(c.Ms) > 0 {
			s.WriteString(m + "\t")
		}
		s.WriteString(rest + "\n")
	}
	line("method", "k", "m", "mean\tstderr\tworse\tworse_stderr")
	for i := range c.Got {
		i = (i + c.Trials()) % len(c.Got) // the mean alone comes first
		worse, stdErr := c.Worse(i)
		line(c.Method(i), c.KName(i), strconv.Itoa(c.M(i)), fmt.Sprintf("%.6g\t%.3g\t%.3g\t%.3g",
			c.Got[i].Mean, c.Got[i].StdErr, worse, stdErr))
	}
	return s.String()
}

// Edges warns where the best or the chosen trial has the most or the least of what was
// tried, and there is more or less to try.
func (c *Comparison) Edges() (words []string) {
	for _, of := range []struct {
		flag  string
		tried []int
		value func(trial int) int
		least int // that there can be
	}{{"-k", c.Ks, c.K, 1}, {"-m", c.Ms, c.M, 2}} {
		if len(of.tried) < 2 {
			continue
		}
		low, high := slices.Min(of.tried), slices.Max(of.tried)
		all := slices.Contains(of.tried, 0) // as many as there can be
		if v := of.value(c.Best); v == high && !all && !c.alone(c.Best) {
			words = append(words, fmt.Sprintf("the best, %s %d, is the largest that was tried: try "+
				"larger ones", of.flag, v))
		}
		if v := of.value(c.Chosen); v == low && low > of.least && !all && !c.alone(c.Chosen) {
			words = append(words, fmt.Sprintf("%s %d is the smallest that was tried: smaller ones may do "+
				"as well", of.flag, v))
		}
	}
	return words
}

// tossUp is the share of other sets of masks below which it is a toss-up which trial to take.
const tossUp = 0.6

// Verdict says which trial is best, which to take, and how sure that is.
func (c *Comparison) Verdict() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s predicts hidden values best", c.Name(c.Best))
	sure := c.Masks() > 1 && len(c.Got) > 1
	if sure {
		fmt.Fprintf(&s, " (about %.0f %% sure)", 100*c.SureBest.Mean)
	}
	if c.Chosen != c.Best {
		worse, stdErr := c.Worse(c.Chosen)
		fmt.Fprintf(&s, "; %s is the smallest that is as good (worse by %.2g ± %.2g)", c.Name(c.Chosen),
			worse,
			stdErr)
	}
	for i := range c.Got {
		if c.Size(i, c.Chosen) < 0 && asGood(c.Got[i].Losses, c.Got[c.Best].Losses) {
			fmt.Fprintf(&s, "; %s is not: it is worse where every feature counts the same", c.Name(i))
			break
		}
	}
	switch {
	case !sure:
		s.WriteString(". One repeat says nothing of chance: give more -repeats")
	case c.SureChosen.Mean < tossUp:
		fmt.Fprintf(&s, ". It is a toss-up: about %.0f %% for %s, %.0f %% for %s",
			100*c.SureChosen.Mean, c.Name(c.Chosen), 100*c.RivalShare, c.Name(c.Rival))
	case c.alone(c.Chosen):
		fmt.Fprintf(&s, ". No structure was found (about %.0f %% sure)", 100*c.SureChosen.Mean)
	default:
		fmt.Fprintf(&s, ". Take %s (about %.0f %% sure)", c.Name(c.Chosen),
			100*c.SureChosen.Mean)
	}
	if sure {
		s.WriteString(". Sure is how often other hidden values of this table would say the same; other " +
			"tables like it differ by more")
	}
	s.WriteString("\n")
	for _, w := range c.Edges() {
		fmt.Fprintf(&s, "Warning: %s\n", w)
	}
	return s.String()
}
