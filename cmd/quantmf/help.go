package main

// This file holds the manual. Its one source is the help text of each command, which "-h" and "quantmf help"
// print as it stands. From the text are made manual pages, Markdown, and the scripts for shells
// (completion.go). It consists of
//
//	usage      lines that begin with "usage:"
//	headings   lines right above items
//	items      lines that begin with two blanks; their explanation stands in column 20, or indented below
//	paragraphs all other lines

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

const helpUsage = `usage: quantmf help [-man|-markdown] [COMMAND]

Prints the help of COMMAND; without COMMAND, the list of commands.

  -man              as a manual page, for "man -l"
  -markdown         as Markdown; without COMMAND the whole manual
`

const completionUsage = `usage: quantmf completion bash|zsh|fish

Prints a script by which a shell completes commands, flags, their values and files.

Examples
  source <(quantmf completion bash)
                    in ~/.bashrc
  source <(quantmf completion zsh)
                    in ~/.zshrc, behind compinit
  quantmf completion fish > ~/.config/fish/completions/quantmf.fish
                    once
`

// examples are printed below the help of a command.
var examples = map[string]string{
	"fit": `
Examples
  quantmf fit -k 8 -o model.qmf -report page.html table.tsv
                    a QMF of 8 components, kept for the other commands, and a page
                    to look at
  quantmf fit -method bqmf -missing -o model.qmf holes.csv
                    the model that predicts best, for a table with missing values
  quantmf fit -loss frobenius -k 5 -u U.tsv -v V.tsv ratios.gct.gz
                    the factors of log ratios
  quantmf fit -k 50 -epochs 200 -checkpoint state -resume -o big.qmf big.npz
                    a long fit; the same line again goes on after an interrupt
`,
	"transform": `
Examples
  quantmf transform model.qmf new.csv -o V.csv
  zcat new.tsv.gz | quantmf transform model.qmf - -o -
`,
	"score": `
Examples
  quantmf score model.qmf new.csv
  seq 0 1 | xargs -P 2 -I{} quantmf transform -block {}/2 -o V{}.npy m.nmf big.npy
  quantmf score -v V0.npy -v V1.npy m.nmf big.npy
                    blocks are placed side by side, on one machine or several
`,
	"reconstruct": `
Examples
  quantmf reconstruct model.qmf -o fitted.tsv.gz
`,
	"impute": `
Examples
  quantmf impute holes.csv -o filled.csv
  quantmf impute holes.csv -o filled.csv -interval 0.9 -features errors.csv
                    also writes filled.lower.csv, filled.upper.csv, and how well
                    each feature is predicted
  quantmf impute counts.tsv -o filled.tsv -value median -json
                    medians, and the check as JSON
`,
	"normalize": `
Examples
  quantmf normalize model.qmf table.tsv -o scaled.tsv
`,
	"inspect": `
Examples
  quantmf inspect model.qmf table.tsv
  quantmf inspect -json model.qmf | jq '.features[] | [.name, .bend]'
`,
	"report": `
Examples
  quantmf report model.qmf table.tsv -o page.html
`,
	"rank": `
Examples
  quantmf rank -k 2,3,5,8,12 -plot ranks.svg table.tsv
  quantmf rank -method nmf -k 2,4,8 -repeats 10 -json table.tsv
  quantmf rank -k 5,10,20 -m 8,16 -checkpoint done -resume big.npz
                    finished fits outlive an interrupt
`,
	"shard": `
Examples
  quantmf shard plan -method nmf -k 10 -shards 8 -o fit counts.mtx.gz
  seq 0 7 | xargs -P 4 -I{} quantmf shard step -round 0 -shard {} fit
  quantmf shard reduce -round 0 fit
                    one round; reduce prints the number of the next
  quantmf shard step -wait -shard 3 fit
                    on one of eight machines; a ninth runs reduce -wait
  quantmf shard finish -o model.nmf fit
`,
	"convert": `
Examples
  quantmf convert expression.gct table.csv.gz
  quantmf convert counts.mtx.gz -
`,
}

// help is the whole text of a command.
func (c command) help() string { return c.usage + examples[c.name] }

// own are the commands that print the list of commands: as its members they would be an initialisation cycle.
func own() []command {
	return []command{
		{"help", "print the help of a command, also as a manual page or Markdown", helpUsage, printHelp},
		{"completion", "print a script by which a shell completes commands and flags", completionUsage,
			printCompletion},
	}
}

// manual is the list of all commands.
func manual() []command { return append(slices.Clip(commands), own()...) }

// lookUp returns the command of a name.
func lookUp(name string) (command, bool) {
	all := manual()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func printHelp(args []string, s streams) error {
	set := newFlags("help")
	man := set.Bool("man", false, "")
	markdown := set.Bool("markdown", false, "")
	words, err := arguments(set, args, "[COMMAND]")
	if err != nil {
		return err
	}
	if *man && *markdown {
		return usageError("-man: -markdown is another form: give one of them")
	}
	c, known := lookUp(words[0])
	if words[0] != "" && !known {
		return usageError(fmt.Sprintf("there is no command %q", words[0]))
	}
	text := overview()
	switch {
	case *man && known:
		text = manPage(c)
	case *man:
		text = manOverview()
	case *markdown && known:
		text = markdownPage(c)
	case *markdown:
		text = markdownManual()
	case known:
		text = c.help()
	}
	_, err = io.WriteString(s.out, text)
	return err
}

// block is a part of a help text: a heading, a paragraph, or an item.
type block struct {
	kind byte   // 'u' usage, 'h', 'p' or 'i'
	term string // of an item
	text string // in one line
}

// explained is the column, from 0, at which the explanation of a flag begins.
const explained = 20

// item cuts the first line of an item into its term and its explanation, "" if the explanation begins below.
func item(line string) (term, text string) {
	term = strings.TrimSpace(line)
	if len(line) <= explained || line[explained-1] != ' ' || line[explained] == ' ' {
		return term, ""
	}
	if at := strings.TrimSpace(line[:explained]); flagTerm.MatchString(at) {
		return at, line[explained:]
	}
	return term, ""
}

// blocks reads a help text.
func blocks(help string) (out []block) {
	lines := strings.Split(help, "\n")
	add := func(b block) { out = append(out, b) }
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		last := len(out) - 1
		switch {
		case l == "":
			continue
		case strings.HasPrefix(l, "usage: "):
			add(block{kind: 'u', text: strings.TrimPrefix(l, "usage: ")})
		case strings.HasPrefix(l, "    ") && last >= 0 && out[last].kind == 'i':
			out[last].text = strings.TrimSpace(out[last].text + " " + strings.TrimSpace(l))
		case strings.HasPrefix(l, "  "):
			term, text := item(l)
			// a list of flags over several lines
			if last >= 0 && out[last].kind == 'i' && out[last].text == "" &&
				strings.HasSuffix(out[last].term, ",") {
				out[last].term += " " + term
				out[last].text = text
				continue
			}
			add(block{kind: 'i', term: term, text: text})
		case i+1 < len(lines) && strings.HasPrefix(lines[i+1], "  ") && (i == 0 || lines[i-1] == ""):
			add(block{kind: 'h', text: l})
		case last >= 0 && out[last].kind == 'p' && lines[i-1] != "":
			out[last].text += " " + l
		default:
			add(block{kind: 'p', text: l})
		}
	}
	return out
}

// roff escapes text for a manual page.
var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")

func roffLine(s string) string { return strings.TrimPrefix(roff.Replace("\n"+s), "\n") + "\n" }

func manHead(title, name, does string) string {
	return fmt.Sprintf(".TH %s 1 \"\" \"quantmf %s\" \"quantmf\"\n.SH NAME\n", strings.ToUpper(title),
		version()) + roffLine(name+" - "+does)
}

// manPage is the help of a command as a page of section 1.
func manPage(c command) string {
	var s strings.Builder
	s.WriteString(manHead("quantmf-"+c.name, "quantmf-"+c.name, c.does))
	described := false
	for _, b := range blocks(c.help()) {
		if b.kind != 'u' && !described {
			described = true
			if b.kind == 'p' {
				s.WriteString(".SH DESCRIPTION\n")
			} else {
				s.WriteString(".SH OPTIONS\n")
			}
		}
		switch b.kind {
		case 'u':
			s.WriteString(".SH SYNOPSIS\n.B " + roffLine(b.text))
		case 'h':
			s.WriteString(".SH \"" +
				strings.ReplaceAll(strings.TrimSuffix(roffLine(strings.ToUpper(b.text)), "\n"), `"`, `""`) +
				"\"\n")
		case 'p':
			s.WriteString(".PP\n" + roffLine(b.text))
		case 'i':
			s.WriteString(".TP\n.B " + roffLine(b.term) + roffLine(b.text))
		}
	}
	s.WriteString(".SH SEE ALSO\n.BR quantmf (1)\n")
	return s.String()
}

// manOverview is the page of the program itself.
func manOverview() string {
	var s strings.Builder
	s.WriteString(manHead("quantmf", "quantmf", "low-rank factorisation with learnt scales"))
	s.WriteString(".SH SYNOPSIS\n.B quantmf\n.I COMMAND\n[flags] ...\n.SH DESCRIPTION\n" +
		roffLine(introduction) + ".SH COMMANDS\n")
	var also []string
	for _, c := range manual() {
		s.WriteString(".TP\n.B " + roffLine(c.name) + roffLine(c.does))
		also = append(also, ".BR quantmf\\-"+c.name+" (1)")
	}
	s.WriteString(".SH SEE ALSO\n" + strings.Join(also, ",\n") + "\n")
	return s.String()
}

// marked escapes text for Markdown.
var marked = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "|", `\|`, "`", "\\`", "#", `\#`)

// markdownPage is the help of a command as a section.
func markdownPage(c command) string {
	var s strings.Builder
	fmt.Fprintf(&s, "## quantmf %s\n\n", c.name)
	for _, b := range blocks(c.help()) {
		switch {
		case b.kind == 'u':
			s.WriteString("```sh\n" + b.text + "\n```\n\n")
		case b.kind == 'h':
			s.WriteString("### " + marked.Replace(b.text) + "\n\n")
		case b.kind == 'p':
			s.WriteString(marked.Replace(b.text) + "\n\n")
		default:
			text := "- `" + b.term + "`"
			if b.text != "" {
				text += ": " + marked.Replace(b.text)
			}
			s.WriteString(text + "\n")
		}
	}
	return separated(s.String())
}

// separated puts an empty line behind a list.
func separated(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	var out []string
	for i, l := range lines {
		if i > 0 && strings.HasPrefix(lines[i-1], "- ") && l != "" && !strings.HasPrefix(l, "- ") {
			out = append(out, "")
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n") + "\n"
}

// markdownManual is the manual of all commands.
func markdownManual() string {
	s := "# quantmf\n\n" + marked.Replace(introduction) + "\n\n| command | what it does |\n|---|---|\n"
	for _, c := range manual() {
		s += fmt.Sprintf("| [%s](#quantmf-%s) | %s |\n", c.name, c.name, marked.Replace(c.does))
	}
	for _, c := range manual() {
		s += "\n" + markdownPage(c)
	}
	return s
}

// flagOfHelp is a flag as the help describes it.
type flagOfHelp struct {
	name    string
	value   string   // what stands for its value, "" for none
	choices []string // where the value is one of some words
	file    bool     // the value is a file
	text    string
}

// flagTerm is one flag in the term of an item.
var flagTerm = regexp.MustCompile(`^-([\w-]+)(?: (\S+))?$`)

// flagsOf reads the flags from the help of a command. A flag in a list with the explanation "as in quantmf
// fit -h" is looked up in the help of fit.
func flagsOf(c command) (out []flagOfHelp) {
	for _, b := range blocks(c.usage) {
		if b.kind != 'i' {
			continue
		}
		for _, term := range strings.Split(b.term, ", ") {
			m := flagTerm.FindStringSubmatch(strings.TrimSuffix(term, ","))
			if m == nil {
				continue
			}
			f := flagOfHelp{name: m[1], value: m[2], text: b.text, file: m[2] == "FILE"}
			if words := strings.Split(f.value, "|"); len(words) > 1 {
				f.choices = slices.DeleteFunc(words,
					func(w string) bool { return strings.ToLower(w) != w || strings.Contains(w, ":") })
			}
			if strings.HasPrefix(b.text, `as in "quantmf fit`) && strings.Contains(b.term, ",") {
				fit, _ := lookUp("fit")
				for _, g := range flagsOf(fit) {
					if g.name == f.name {
						f = g
					}
				}
			}
			out = append(out, f)
		}
	}
	return out
}
