package main

// This file holds the scripts by which shells complete the command line. They are made from the help.

import (
	"fmt"
	"io"
	"strings"

	"github.com/quantmf/quantmf/internal/flags"
)

var shells = []string{"bash", "zsh", "fish"}

func printCompletion(args []string, s streams) error {
	words, err := arguments(newFlags("completion"), args, "bash|zsh|fish")
	if err != nil {
		return err
	}
	write, is := map[string]func() string{"bash": bashCompletion, "zsh": zshCompletion,
		"fish": fishCompletion}[words[0]]
	if !is {
		return usageError(words[0] + ": " + flags.OneOf(shells).Error())
	}
	_, err = io.WriteString(s.out, write())
	return err
}

// names are those of all commands.
func names() (out []string) {
	for _, c := range manual() {
		out = append(out, c.name)
	}
	return out
}

// operands are the words that a command takes beside flags and files.
func operands(c command) []string {
	switch c.name {
	case "help":
		return names()
	case "completion":
		return shells
	}
	return nil
}

func bashCompletion() string {
	var s strings.Builder
	s.WriteString(`# bash completion of quantmf
_quantmf() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= flags=
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
`)
	fmt.Fprintf(&s, "\t\tCOMPREPLY=($(compgen -W '%s' -- \"$word\"))\n\t\treturn\n\tfi\n\tcase "+
		"${COMP_WORDS[1]} in\n", strings.Join(names(), " "))
	for _, c := range manual() {
		var flags []string
		fmt.Fprintf(&s, "\t%s)\n\t\tcase $before in\n", c.name)
		for _, f := range flagsOf(c) {
			flags = append(flags, "-"+f.name)
			switch {
			case f.value == "" || f.file:
			case len(f.choices) > 0:
				fmt.Fprintf(&s, "\t\t-%s) COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", f.name,
					strings.Join(f.choices, " "))
			default:
				fmt.Fprintf(&s, "\t\t-%s) return ;;\n", f.name)
			}
		}
		fmt.Fprintf(&s, "\t\tesac\n\t\tflags='%s -h' words='%s' ;;\n", strings.Join(flags, " "),
			strings.Join(operands(c), " "))
	}
	s.WriteString(`	esac
	if [[ $word == -* ]]; then
		COMPREPLY=($(compgen -W "$flags" -- "$word"))
	elif [[ $words ]]; then
		COMPREPLY=($(compgen -W "$words" -- "$word"))
	else
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$word"))
	fi
}
complete -F _quantmf quantmf
`)
	return s.String()
}

// quoted puts the first clause of text between single quotes for a shell. A clause of one word says too
// little: then it takes the whole text. Long text is cut.
func quoted(text string, special string) string {
	if at := strings.IndexAny(text, ";:"); at > 0 && strings.Contains(text[:at], " ") {
		text = text[:at]
	}
	if at := strings.LastIndexByte(text, '('); at > 0 && !strings.Contains(text[at:], ")") {
		text = strings.TrimSpace(text[:at])
	}
	if r := []rune(text); len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	for _, c := range special {
		text = strings.ReplaceAll(text, string(c), `\`+string(c))
	}
	return strings.ReplaceAll(text, "'", `'\''`)
}

func zshCompletion() string {
	var s strings.Builder
	s.WriteString("#compdef quantmf\n_quantmf() {\n\tlocal -a commands\n\tcommands=(\n")
	for _, c := range manual() {
		fmt.Fprintf(&s, "\t\t'%s:%s'\n", c.name, quoted(c.does, ":"))
	}
	s.WriteString("\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command " +
		"commands\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase " +
		"$command in\n")
	for _, c := range manual() {
		fmt.Fprintf(&s, "\t%s)\n\t\t_arguments \\\n", c.name)
		for _, f := range flagsOf(c) {
			spec := fmt.Sprintf("-%s[%s]", f.name, quoted(f.text, "[]:"))
			switch {
			case f.value == "":
			case f.file:
				spec += ":file:_files"
			case len(f.choices) > 0:
				spec += ":value:(" + strings.Join(f.choices, " ") + ")"
			default:
				spec += ":value:"
			}
			fmt.Fprintf(&s, "\t\t\t'%s' \\\n", spec)
		}
		rest := "_files"
		if words := operands(c); words != nil {
			rest = "(" + strings.Join(words, " ") + ")"
		}
		fmt.Fprintf(&s, "\t\t\t'*:file:%s' ;;\n", rest)
	}
	s.WriteString("\tesac\n}\ncompdef _quantmf quantmf\n")
	return s.String()
}

func fishCompletion() string {
	var s strings.Builder
	s.WriteString("# fish completion of quantmf\ncomplete -c quantmf -n __fish_use_subcommand -f\n")
	for _, c := range manual() {
		fmt.Fprintf(&s, "complete -c quantmf -n __fish_use_subcommand -a %s -d '%s'\n", c.name,
			quoted(c.does, ""))
	}
	for _, c := range manual() {
		in := fmt.Sprintf("complete -c quantmf -n '__fish_seen_subcommand_from %s'", c.name)
		for _, f := range flagsOf(c) {
			fmt.Fprintf(&s, "%s -o %s", in, f.name)
			switch {
			case f.value == "":
			case f.file:
				s.WriteString(" -r -F")
			case len(f.choices) > 0:
				fmt.Fprintf(&s, " -x -a '%s'", strings.Join(f.choices, " "))
			default:
				s.WriteString(" -x")
			}
			fmt.Fprintf(&s, " -d '%s'\n", quoted(f.text, ""))
		}
		if words := operands(c); words != nil {
			fmt.Fprintf(&s, "%s -f -a '%s'\n", in, strings.Join(words, " "))
		}
	}
	return s.String()
}
