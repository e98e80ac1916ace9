package main

// This file tests the manual: that it says every flag and no other, that its forms are well
// made, and that shells complete what it says.

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quantmf/quantmf/internal/cli"
	. "github.com/quantmf/quantmf/internal/samebits/check"
)

// TestShortHelp: the help of fit is a screen, explains what most need, and says where the rest is; a number
// may stand behind its flag without a blank, -threads is -workers, and where no matrix is given - is named.
func TestShortHelp(t *testing.T) {
	folder(t)
	short, _ := quiet(t, 0, "fit -h")
	if n := strings.Count(short, "\n"); n > 30 ||
		!strings.HasPrefix(short, "usage: quantmf fit [flags] MATRIX\n") {
		t.Errorf("%d lines: %s", n, short)
	}
	Has(t, short, "-k N", "-report FILE", `"quantmf fit -h all" has all `)
	narrow(t, short)
	want, said := quiet(t, 0, "fit -method nmf -k 3 -epochs 2 -workers 1 -u - matrix.tsv")
	Lacks(t, said, "Kept  ")
	if got, _ := quiet(t, 0, "fit -method nmf -k3 -epochs2 -threads 1 -u - matrix.tsv"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	says(t, 0, "fit -method nmf -k3 matrix.tsv",
		"\nKept          nothing: -o FILE keeps the model, -report FILE a page of figures\n")
	says(t, 2, "fit", "no MATRIX given: a file, or - for standard input\n")
	for _, bad := range []string{"fit -log1p3 matrix.tsv", "fit -3 matrix.tsv", "fit -kx matrix.tsv",
		"convert -threads 2 matrix.tsv x.npy"} {
		says(t, 2, bad, "there is no flag ")
	}
}

// narrow reports lines that a terminal would break.
func narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(line)); n > 85 { // with its end
			t.Errorf("%d characters: %s", n-1, line)
		}
	}
}

// TestHelpForms: help is the same however it is asked for, and all forms have all of it.
func TestHelpForms(t *testing.T) {
	if testing.Short() {
		t.Skip("not among the quickest")
	}
	t.Chdir(t.TempDir())
	letters := regexp.MustCompile(`[a-zA-Z]{4,}`)
	for _, c := range program().Commands {
		plain, _ := quiet(t, 0, "help "+c.Name)
		if dashed, _ := quiet(t, 0, c.Name+" -h all"); c.Name != "help" && dashed != plain ||
			!strings.HasPrefix(plain, "usage: quantmf "+c.Name) {
			t.Errorf("%s: %s", c.Name, dashed)
		}
		man, _ := quiet(t, 0, "help -man "+c.Name)
		markdown, _ := quiet(t, 0, "help -markdown "+c.Name)
		lower := strings.ToLower(man)
		narrow(t, plain)
		for _, w := range strings.Fields(strings.TrimPrefix(plain, "usage:")) {
			word := letters.FindString(w)
			if !strings.Contains(lower, strings.ToLower(word)) || !strings.Contains(markdown, word) {
				t.Errorf("%s: %q is lost", c.Name, w)
			}
		}
		p, has := c.New(), map[string]bool{}
		for _, g := range p.Groups {
			for _, f := range g.Flags {
				if has[f.Name] || f.Help == "" || !strings.Contains(plain, "-"+f.Name) {
					t.Errorf("%s: -%s is there twice, or not explained", c.Name, f.Name)
				}
				has[f.Name] = true
			}
		}
		if len(p.Examples) == 0 && !slices.Contains([]string{"version", "help"}, c.Name) {
			t.Errorf("%s has no examples", c.Name)
		}
		if groff, err := exec.LookPath("groff"); err == nil {
			run := exec.Command(groff, "-man", "-Tutf8", "-ww", "-Kutf8")
			run.Stdin = strings.NewReader(man)
			var said strings.Builder
			run.Stderr = &said
			out, err := run.Output()
			if text := regexp.MustCompile("\x1b\\[[0-9;]*m|.\b").ReplaceAllString(string(out),
				""); err != nil || said.String() != "" || !strings.Contains(text, "SYNOPSIS") ||
				!strings.Contains(text, "quantmf "+c.Name) {
				t.Errorf("%s: %v %s %s", c.Name, err, said.String(), text)
			}
		}
	}
	all, _ := quiet(t, 0, "help -markdown")
	overall, _ := quiet(t, 0, "help -man")
	for _, c := range program().Commands {
		Has(t, all, "\n## quantmf "+c.Name+"\n", "(#quantmf-"+c.Name+")")
		Has(t, overall, `.BR quantmf\-`+c.Name)
	}
	version, _ := quiet(t, 0, "--version")
	if again, _ := quiet(t, 0, "version"); again != version || !strings.HasPrefix(version, "quantmf ") {
		t.Error(version)
	}
	for args, want := range map[string]string{"help fix": `there is no command "fix"`,
		"help -man -markdown fit": "give one of them",
		"completion csh":          "csh: must be one of bash, zsh, fish",
		"completion":              "no bash|zsh|fish given"} {
		says(t, cli.Usage, args, want)
	}
}

// zshType types lines into a zsh of its own, a tab after each, and prints what is added to each: all of it
// that zsh tells by zshHear.
const zshType = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'source ./hear'
while IFS= read -r line; do
	zpty -w -n shell $'\C-u'"$line"$'\t'
	for ((tries = 0; tries < 3000; tries++)); do
		[[ -e told ]] && break
		while zpty -r -t shell said; do :; done
		sleep 0.01
	done
	print -r -- ${(f)"$(<told)"}
	rm -f told
done
`

const zshHear = `
PS1= LISTMAX=0
setopt nobeep
bindkey -e
bindkey '^I' complete-word
autoload -U compinit; compinit -u -D
source ./script
compadd() {
	local -a found
	[[ " $* " == *' -'[OAD]' '* ]] || { builtin compadd -A found "$@"; added+=($found) }
	builtin compadd "$@"
}
told() { print -rl -- $added >|new; added=() comppostfuncs=(told); mv new told }
comppostfuncs=(told)
`

// TestCompletion asks each shell that is here for completions; zsh has them in a terminal alone, and gets one
// of its own.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	writeText(t, "table.tsv", "")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, _ := quiet(t, 0, "completion "+shell)
		for _, c := range program().Commands {
			Has(t, script, c.Name)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		writeText(t, "script", script)
		if out, err := exec.Command(path, "-n", "script").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
		lines := []struct{ line, want string }{
			{"quantmf im", "impute"},
			{"quantmf fit -meth", "-method"},
			{"quantmf fit -method bq", "bqmf"},
			{"quantmf rank -method bq", "bqmf"},
			{"quantmf fit -o ta", "table.tsv"},
			{"quantmf inspect t", "table.tsv"},
			{"quantmf fit -k ", ""},
			{"quantmf completion z", "zsh"},
			{"quantmf help recon", "reconstruct"},
			{"quantmf impute -value me", "mean median"},
			{"quantmf impute -int", "-interval"},
		}
		if shell == "zsh" {
			var typed strings.Builder
			for _, c := range lines {
				typed.WriteString(c.line + "\n")
			}
			writeText(t, "hear", zshHear)
			run := exec.Command(path, "-f", "-c", zshType)
			run.Stdin = strings.NewReader(typed.String())
			out, err := run.CombinedOutput()
			os.Remove("hear")
			os.Remove("script")
			got := strings.Split(string(out), "\n")
			for i, c := range lines {
				if err != nil || i >= len(got) || got[i] != c.want {
					t.Errorf("zsh: %q: %v, %q, want %q as line %d", c.line, err, out, c.want, i)
				}
			}
			continue
		}
		os.Remove("script")
		for _, c := range lines {
			if shell == "fish" {
				// It lists what it completes to, a line each, a description after a tab.
				out, err := exec.Command(path, "--no-config", "-c",
					script+"\ncomplete -C '"+c.line+"'").CombinedOutput()
				var got []string
				for line := range strings.Lines(string(out)) {
					word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
					got = append(got, word)
				}
				if c.want != "" && !slices.Contains(got, strings.Fields(c.want)[0]) || err != nil {
					t.Errorf("fish: %q: %v, %q, want %q", c.line, err, got, c.want)
				}
				continue
			}
			words := strings.Split(c.line, " ")
			program := script + "\nCOMP_WORDS=(" + "'" + strings.Join(words, "' '") + "'" +
				")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_quantmf\necho \"${COMPREPLY[*]}\""
			out, err := exec.Command(path, "-c", program).CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
				t.Errorf("%q: %v, %q, want %q", c.line, err, got, c.want)
			}
		}
	}
}
