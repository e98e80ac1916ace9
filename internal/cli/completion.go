package cli

// This file holds the scripts by which shells complete the command line. They are made of the declarations of
// programs.

import (
	"fmt"
	"io"
	"strings"

	"github.com/quantmf/quantmf/internal/settings"
)

var shells = []string{"bash", "zsh", "fish"}

// Completion is the command that prints such a script.
func (a *App) Completion() *Program {
	return &Program{
		Usage: []string{"bash|zsh|fish"},
		About: "Prints a script by which a shell completes commands, flags, their values and files.",
		Examples: [][2]string{
			{"source <(" + a.Name + " completion bash)", "in ~/.bashrc"},
			{"source <(" + a.Name + " completion zsh)", "in ~/.zshrc, behind compinit"},
			{a.Name + " completion fish > ~/.config/fish/completions/" + a.Name + ".fish", "once"},
		},
		Words:    []string{"bash|zsh|fish"},
		Complete: shells,
		Run: func(words []string, s Streams) error {
			script, is := map[string]func() string{"bash": a.bash, "zsh": a.zsh, "fish": a.fish}[words[0]]
			if !is {
				return UsageError(words[0] + ": " + settings.OneOf(shells).Error())
			}
			_, err := io.WriteString(s.Out, script())
			return err
		},
	}
}

// choices are the words among which a flag's value is, nil where it is another.
func (f *Flag) choices() (words []string) {
	if !strings.Contains(f.Value, "|") {
		return nil
	}
	for w := range strings.SplitSeq(f.Value, "|") {
		if strings.ToLower(w) == w && !strings.Contains(w, ":") {
			words = append(words, w)
		}
	}
	return words
}

func (f *Flag) isFile() bool { return f.Value == "FILE" || f.Value == "DIR" }

// bash returns the script of a shell, and so do zsh and fish.
func (a *App) bash() string {
	var s strings.Builder
	fmt.Fprintf(&s, `# bash completion of %[1]s
_%[1]s() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= flags=
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W '%[2]s' -- "$word"))
		return
	fi
	case ${COMP_WORDS[1]} in
`, a.Name, strings.Join(a.names(), " "))
	for _, c := range a.Commands {
		p := c.New()
		var names []string
		fmt.Fprintf(&s, "\t%s)\n\t\tcase $before in\n", c.Name)
		for _, f := range p.flags() {
			names = append(names, "-"+f.Name)
			switch words := f.choices(); {
			case f.Value == "" || f.isFile():
			case len(words) > 0:
				fmt.Fprintf(&s, "\t\t-%s) COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", f.Name,
					strings.Join(words, " "))
			default:
				fmt.Fprintf(&s, "\t\t-%s) return ;;\n", f.Name)
			}
		}
		fmt.Fprintf(&s, "\t\tesac\n\t\tflags='%s -h' words='%s' ;;\n", strings.Join(names, " "),
			strings.Join(p.Complete, " "))
	}
	fmt.Fprintf(&s, `	esac
	if [[ $word == -* ]]; then
		COMPREPLY=($(compgen -W "$flags" -- "$word"))
	elif [[ $words ]]; then
		COMPREPLY=($(compgen -W "$words" -- "$word"))
	else
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$word"))
	fi
}
complete -F _%[1]s %[1]s
`, a.Name)
	return s.String()
}

func (a *App) zsh() string {
	var s strings.Builder
	fmt.Fprintf(&s, "#compdef %[1]s\n_%[1]s() {\n\tlocal -a commands\n\tcommands=(\n", a.Name)
	for _, c := range a.Commands {
		fmt.Fprintf(&s, "\t\t'%s:%s'\n", c.Name, quoted(c.Does, ":"))
	}
	s.WriteString("\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n" +
		"\tlocal command=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase $command in\n")
	for _, c := range a.Commands {
		p := c.New()
		fmt.Fprintf(&s, "\t%s)\n\t\t_arguments \\\n", c.Name)
		for _, f := range p.flags() {
			spec := fmt.Sprintf("-%s[%s]", f.Name, quoted(flat(f.Help), "[]:"))
			switch words := f.choices(); {
			case f.Value == "":
			case f.isFile():
				spec += ":file:_files"
			case len(words) > 0:
				spec += ":value:(" + strings.Join(words, " ") + ")"
			default:
				spec += ":value:"
			}
			fmt.Fprintf(&s, "\t\t\t'%s' \\\n", spec)
		}
		rest := "_files"
		if p.Complete != nil {
			rest = "(" + strings.Join(p.Complete, " ") + ")"
		}
		fmt.Fprintf(&s, "\t\t\t'*:file:%s' ;;\n", rest)
	}
	fmt.Fprintf(&s, "\tesac\n}\ncompdef _%[1]s %[1]s\n", a.Name)
	return s.String()
}

func (a *App) fish() string {
	var s strings.Builder
	fmt.Fprintf(&s, "# fish completion of %[1]s\ncomplete -c %[1]s -n __fish_use_subcommand -f\n", a.Name)
	for _, c := range a.Commands {
		fmt.Fprintf(&s, "complete -c %s -n __fish_use_subcommand -a %s -d '%s'\n", a.Name, c.Name,
			quoted(c.Does, ""))
	}
	for _, c := range a.Commands {
		p := c.New()
		in := fmt.Sprintf("complete -c %s -n '__fish_seen_subcommand_from %s'", a.Name, c.Name)
		for _, f := range p.flags() {
			fmt.Fprintf(&s, "%s -o %s", in, f.Name)
			switch words := f.choices(); {
			case f.Value == "":
			case f.isFile():
				s.WriteString(" -r -F")
			case len(words) > 0:
				fmt.Fprintf(&s, " -x -a '%s'", strings.Join(words, " "))
			default:
				s.WriteString(" -x")
			}
			fmt.Fprintf(&s, " -d '%s'\n", quoted(flat(f.Help), ""))
		}
		if p.Complete != nil {
			fmt.Fprintf(&s, "%s -f -a '%s'\n", in, strings.Join(p.Complete, " "))
		}
	}
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
