package cli

// This file holds the manual: the help of commands as text, as manual pages and as Markdown, all made of the
// declarations of programs.

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// kind is what a part of the help is.
type kind byte

const (
	usage kind = iota
	heading
	paragraph
	item // of a list: a flag, or an example
)

// block is a part of the help.
type block struct {
	kind kind
	term string // of an item
	text string // in one line
	gap  bool   // an empty line comes before it, of text
}

// flat is a text in one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// blocks are the help of a command.
func (a *App) blocks(c Command) (all []block) {
	p := c.New()
	add := func(k kind, term, text string) { all = append(all, block{kind: k, term: term, text: flat(text)}) }
	paragraphs := func(text string) {
		for part := range strings.SplitSeq(text, "\n\n") {
			if flat(part) != "" {
				add(paragraph, "", part)
			}
		}
	}
	for _, line := range p.Usage {
		add(usage, "", strings.Join([]string{a.Name, c.Name, line}, " "))
	}
	paragraphs(p.About)
	for _, g := range p.Groups {
		first := len(all)
		if g.Heading != "" {
			add(heading, "", g.Heading)
		}
		var listed []string
		for _, f := range g.Flags {
			if g.Elsewhere != "" {
				listed = append(listed, "-"+f.Name)
				continue
			}
			add(item, strings.TrimSpace("-"+f.Name+" "+f.Value), f.Help)
		}
		if len(listed) > 0 {
			add(item, strings.Join(listed, ", "), g.Elsewhere)
		}
		if first < len(all) {
			all[first].gap = true
		}
	}
	paragraphs(p.After)
	if len(p.Examples) > 0 {
		add(heading, "", "Examples")
	}
	for _, e := range p.Examples {
		add(item, e[0], e[1])
	}
	return all
}

// width is that of the help as text, explained the column at which explanations of flags begin.
const (
	width     = 80
	explained = 20
)

// filled breaks a text into lines of at most a width.
func filled(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		if n := len(lines) - 1; n >= 0 && len([]rune(lines[n]))+1+len([]rune(word)) <= width {
			lines[n] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// text is the help of a command as text.
func (a *App) text(c Command) string {
	var s strings.Builder
	for _, b := range a.blocks(c) {
		if b.kind == heading || b.kind == paragraph || b.gap {
			s.WriteString("\n")
		}
		switch b.kind {
		case usage:
			s.WriteString("usage: " + b.text + "\n")
		case heading:
			s.WriteString(b.text + "\n")
		case paragraph:
			s.WriteString(strings.Join(filled(b.text, width), "\n") + "\n")
		case item:
			s.WriteString(itemText(b))
		}
	}
	return s.String()
}

// short is the help of a command that fits on a screen.
func (a *App) short(name string, p *Program) string {
	var s strings.Builder
	for _, line := range p.Usage {
		s.WriteString(strings.Join([]string{"usage:", a.Name, name, line}, " ") + "\n")
	}
	about, _, _ := strings.Cut(p.About, "\n\n")
	s.WriteString("\n" + strings.Join(filled(about, width), "\n") + "\n\n")
	for _, f := range p.Short {
		s.WriteString(itemText(block{term: strings.TrimSpace("-" + f[0] + " " + p.Flag(f[0]).Value),
			text: f[1]}))
	}
	s.WriteString("\n")
	for _, e := range p.Examples[:min(2, len(p.Examples))] {
		s.WriteString("  " + e[0] + "\n")
	}
	fmt.Fprintf(&s, "\n\"%s %s -h all\" has all %d flags, what MATRIX may be, and more.\n", a.Name, name,
		len(p.flags()))
	return s.String()
}

// itemText is an item as text: its explanation stands beside its term, or below where that is too long.
func itemText(b block) string {
	term := []string{"  " + b.term}
	if strings.HasPrefix(b.term, "-") && len(term[0]) > width { // a list of flags
		term = nil
		for _, line := range filled(b.term, width-2) {
			term = append(term, "  "+line)
		}
	}
	indent := strings.Repeat(" ", explained)
	last := term[len(term)-1]
	lines := filled(b.text, width-explained)
	if len(lines) > 0 && len(last) < explained {
		term[len(term)-1] = last + indent[len(last):] + lines[0]
		lines = lines[1:]
	}
	for _, line := range lines {
		term = append(term, indent+line)
	}
	return strings.Join(term, "\n") + "\n"
}

// overview is the list of commands.
func (a *App) overview() string {
	s := a.Introduction + "\n\nusage:\n"
	for _, c := range a.Commands {
		s += fmt.Sprintf("  %s %-11s  %s\n", a.Name, c.Name, c.Does)
	}
	s += fmt.Sprintf("\n\"%s COMMAND -h\" prints the help of a command", a.Name)
	if _, is := a.lookUp("help"); is {
		s += fmt.Sprintf(", \"%s help -markdown\" the whole manual", a.Name)
	}
	return s + ".\n"
}

// roff escapes text for a manual page.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

func roffLine(s string) string { return strings.TrimPrefix(roff.Replace("\n"+s), "\n") + "\n" }

func (a *App) manHead(name, does string) string {
	return fmt.Sprintf(".TH %s 1 \"\" \"%s %s\" \"%s\"\n.SH NAME\n", strings.ToUpper(name), a.Name, a.Version,
		a.Name) + roffLine(name+" - "+does)
}

// manPage is the help of a command as a page of section 1.
func (a *App) manPage(c Command) string {
	var s strings.Builder
	s.WriteString(a.manHead(a.Name+"-"+c.Name, c.Does))
	described := false
	for _, b := range a.blocks(c) {
		if b.kind != usage && !described {
			described = true
			if b.kind == paragraph {
				s.WriteString(".SH DESCRIPTION\n")
			} else {
				s.WriteString(".SH OPTIONS\n")
			}
		}
		switch b.kind {
		case usage:
			s.WriteString(".SH SYNOPSIS\n.B " + roffLine(b.text))
		case heading:
			title := strings.TrimSuffix(roffLine(strings.ToUpper(b.text)), "\n")
			s.WriteString(".SH \"" + strings.ReplaceAll(title, `"`, `""`) + "\"\n")
		case paragraph:
			s.WriteString(".PP\n" + roffLine(b.text))
		case item:
			s.WriteString(".TP\n.B " + roffLine(b.term) + roffLine(b.text))
		}
	}
	return s.String() + ".SH SEE ALSO\n.BR " + a.Name + " (1)\n"
}

// manOverview is the page of the program itself.
func (a *App) manOverview() string {
	var s strings.Builder
	s.WriteString(a.manHead(a.Name, "low-rank factorisation with learnt scales"))
	s.WriteString(".SH SYNOPSIS\n.B " + a.Name + "\n.I COMMAND\n[flags] ...\n.SH DESCRIPTION\n" +
		roffLine(a.Introduction) + ".SH COMMANDS\n")
	var also []string
	for _, c := range a.Commands {
		s.WriteString(".TP\n.B " + roffLine(c.Name) + roffLine(c.Does))
		also = append(also, ".BR "+a.Name+`\-`+c.Name+" (1)")
	}
	return s.String() + ".SH SEE ALSO\n" + strings.Join(also, ",\n") + "\n"
}

// marked escapes text for Markdown.
var marked = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "|", `\|`, "`", "\\`", "#", `\#`)

// markdown is the help of a command as a section.
func (a *App) markdown(c Command) string {
	s, before := fmt.Sprintf("## %s %s\n", a.Name, c.Name), usage
	for i, b := range a.blocks(c) {
		if i == 0 || b.kind != item || before != item {
			s += "\n"
		}
		before = b.kind
		switch b.kind {
		case usage:
			s += "```sh\n" + b.text + "\n```\n"
		case heading:
			s += "### " + marked.Replace(b.text) + "\n"
		case paragraph:
			s += marked.Replace(b.text) + "\n"
		case item:
			s += "- `" + b.term + "`"
			if b.text != "" {
				s += ": " + marked.Replace(b.text)
			}
			s += "\n"
		}
	}
	return s
}

// markdownManual is the manual of all commands.
func (a *App) markdownManual() string {
	s := "# " + a.Name + "\n\n" + marked.Replace(a.Introduction) +
		"\n\n| command | what it does |\n|---|---|\n"
	for _, c := range a.Commands {
		s += fmt.Sprintf("| [%s](#%s-%s) | %s |\n", c.Name, a.Name, c.Name, marked.Replace(c.Does))
	}
	for _, c := range a.Commands {
		s += "\n" + a.markdown(c)
	}
	return s
}

// Help is the command that prints the manual.
func (a *App) Help() *Program {
	var man, markdown bool
	return &Program{
		Usage: []string{"[-man|-markdown] [COMMAND]"},
		About: "Prints the help of COMMAND; without COMMAND, the list of commands.",
		Groups: []Group{{Flags: []*Flag{
			Switch(&man, "man", `as a manual page, for "man -l"`),
			Switch(&markdown, "markdown", "as Markdown; without COMMAND the whole manual"),
		}}},
		Words:    []string{"[COMMAND]"},
		Complete: a.names(),
		Run: func(words []string, s Streams) error {
			c, known := a.lookUp(words[0])
			if words[0] != "" && !known {
				return Usagef("there is no command %q", words[0])
			}
			if man && markdown {
				return UsageError("-man: -markdown is another form: give one of them")
			}
			text := a.overview()
			switch {
			case man && known:
				text = a.manPage(c)
			case man:
				text = a.manOverview()
			case markdown && known:
				text = a.markdown(c)
			case markdown:
				text = a.markdownManual()
			case known:
				text = a.text(c)
			}
			_, err := io.WriteString(s.Out, text)
			return err
		},
	}
}

// names are those of all commands.
func (a *App) names() (names []string) {
	for _, c := range a.Commands {
		names = append(names, c.Name)
	}
	return slices.Clip(names)
}
