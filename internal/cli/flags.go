package cli

// This file holds the flags of commands: their declaration and their parsing.

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/quantmf/quantmf/internal/settings"
)

// Flag is a flag of a command.
type Flag struct {
	Name  string
	Value string // what stands for its value in the help: N, FILE, words between bars; "" for a switch
	Help  string
	Given string // the value that was given, "" for none
	Aside bool   // the result does not depend on it

	set func(text string) error
}

// Group is flags under a heading. Where Elsewhere is not "", the help lists them only, and Elsewhere says
// where they are explained.
type Group struct {
	Heading   string
	Flags     []*Flag
	Elsewhere string
}

// Func is a flag whose value set takes.
func Func(name, value, help string, set func(text string) error) *Flag {
	return &Flag{Name: name, Value: value, Help: help, set: set}
}

// Text is a flag of any text, File one whose text names a file, on which the result does not depend.
func Text(to *string, name, value, help string) *Flag {
	return Func(name, value, help, func(text string) error { *to = text; return nil })
}

func File(to *string, name, help string) *Flag { return Aside(Text(to, name, "FILE", help)) }

// Aside says that no result depends on a flag.
func Aside(f *Flag) *Flag {
	f.Aside = true
	return f
}

// Switch is a flag that is given or not.
func Switch(to *bool, name, help string) *Flag {
	return Func(name, "", help, func(text string) (err error) {
		if *to, err = strconv.ParseBool(text); err != nil {
			err = settings.OneOf([]string{"true", "false"})
		}
		return err
	})
}

// Choice is a flag of one of the words in its value.
func Choice(to *string, name, words, help string) *Flag {
	return Func(name, words, help, func(text string) error {
		if all := strings.Split(words, "|"); !slices.Contains(all, text) {
			return settings.OneOf(all)
		}
		*to = text
		return nil
	})
}

// Whole is a flag of a whole number of at least some.
func Whole(to *int, least int, name, value, help string) *Flag {
	return Func(name, value, help, func(text string) (err error) {
		if *to, err = settings.Whole(text); err == nil && *to < least {
			err = errors.New("must be at least " + strconv.Itoa(least))
		}
		return err
	})
}

// AnyWhole is the least of a Whole that is bounded elsewhere.
const AnyWhole = -1 << 31

// Number is a flag of a number of which check says what it must be, "" where it is.
func Number(to *float64, check func(v float64) string, name, value, help string) *Flag {
	return Func(name, value, help, func(text string) (err error) {
		if *to, err = settings.Decimal(text); err != nil {
			return err
		}
		if broken := check(*to); broken != "" {
			return errors.New(broken)
		}
		return nil
	})
}

// Wholes is a flag of whole numbers between commas.
func Wholes(to *[]int, name, help string) *Flag {
	return Func(name, "N,N,...", help, func(text string) error {
		*to = nil
		for _, word := range words(text) {
			v, err := strconv.Atoi(word)
			if err != nil {
				return errors.New("not whole numbers with commas between, such as 2,4,8")
			}
			*to = append(*to, v)
		}
		return nil
	})
}

// List is a flag of texts between commas.
func List(to *[]string, name, value, help string) *Flag {
	return Func(name, value, help, func(text string) error { *to = words(text); return nil })
}

// Size is a flag of a number of bytes.
func Size(to *int64, name, help string) *Flag {
	return Func(name, "SIZE", help, func(text string) (err error) {
		*to, err = ParseSize(text)
		return err
	})
}

// ParseSize reads a number of bytes.
func ParseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "kKMGTiB")
	unit, ok := map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[text[len(number):]]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v*unit >= 1 && v*unit <= 1<<60) {
		return 0, errors.New("not a size such as 8GiB or 500MB")
	}
	return int64(v * unit), nil
}

// words are the words between commas.
func words(text string) (words []string) {
	for w := range strings.SplitSeq(text, ",") {
		words = append(words, strings.TrimSpace(w))
	}
	return words
}

// flags are those of all groups.
func (p *Program) flags() (all []*Flag) {
	for _, g := range p.Groups {
		all = append(all, g.Flags...)
	}
	return all
}

// Flag returns the flag of a name, nil where there is none.
func (p *Program) Flag(name string) *Flag {
	for _, f := range p.flags() {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Given are the flags that were given, by their names.
func (p *Program) Given() (given []*Flag) {
	for _, f := range p.flags() {
		if f.Given != "" {
			given = append(given, f)
		}
	}
	slices.SortFunc(given, func(a, b *Flag) int { return cmp.Compare(a.Name, b.Name) })
	return given
}

// Parse sets the flags that args give, and returns the other words, one for each of p.Words. Flags may stand
// before, between and behind the words. Behind -- there are words alone.
func (p *Program) Parse(command string, args []string) (given []string, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			given = append(given, args...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			given = append(given, arg)
			continue
		}
		name, value, has := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		f := p.Flag(name)
		if f == nil && !has {
			f, value = p.joined(name)
			has = f != nil
		}
		if f == nil && name == "threads" { // as other programs call them
			f = p.Flag("workers")
		}
		switch {
		case f == nil && isHelp(arg) && slices.Equal(args, []string{"all"}):
			return nil, errHelpAll
		case f == nil && isHelp(arg):
			return nil, errHelp
		case f == nil:
			return nil, UsageError("there is no flag -" + name + " of " + command)
		case has:
		case f.Value == "":
			value = "true"
		case len(args) == 0:
			return nil, UsageError("-" + name + " needs a value")
		default:
			value, args = args[0], args[1:]
		}
		if value == "" { // such as that of a variable that is not set
			return nil, UsageError("-" + name + ": the value is empty")
		}
		if err := f.set(value); err != nil {
			return nil, UsageError("-" + name + " " + value + ": " + err.Error())
		}
		f.Given = value
	}
	switch {
	case len(given) > 0 && len(p.Words) == 0:
		return nil, UsageError(given[0] + " is too much: " + command + " takes no arguments")
	case len(given) > len(p.Words):
		return nil, Usagef("%s is too much: wanted %s", given[len(p.Words)], strings.Join(p.Words, " "))
	}
	for _, w := range p.Words[len(given):] {
		if !strings.HasPrefix(w, "[") {
			said := "no " + w + " given"
			if w == "MATRIX" {
				said += ": a file, or - for standard input"
			}
			return nil, UsageError(said)
		}
		given = append(given, "")
	}
	return given, nil
}

// joined splits a flag from the number that follows it without a blank, as in k3. It returns nil where there
// is no such flag.
func (p *Program) joined(text string) (f *Flag, value string) {
	name := strings.TrimRight(text, "0123456789.")
	if f = p.Flag(name); f == nil || f.Value == "" || len(name) == len(text) {
		return nil, ""
	}
	return f, text[len(name):]
}

// OnceStdin reports words of which more than one is standard input.
func OnceStdin(words ...string) error {
	i := slices.Index(words, "-")
	if i >= 0 && slices.Contains(words[i+1:], "-") {
		return UsageError("standard input can be read only once")
	}
	return nil
}
