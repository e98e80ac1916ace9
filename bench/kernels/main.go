//go:build linux && amd64 && !purego

// Kernels measures what each kernel of internal/kernel, written in assembly, saves a fit, and writes
// docs/measurements/kernels.md:
//
//	cd bench && go run ./kernels [-seconds 6]
//
// Every fit of fits.go runs in three builds: with AVX-512, with AVX2 and with the loops in Go. All three have
// the same bits, and so make the same calls. A profile of the processor's time tells what each kernel takes,
// in assembly and as a loop in Go:
//
//	share = its assembly's time / the fit's time
//	gain  = its loop's time / its assembly's time
//	cost  = (its loop's time - its assembly's time) / the fit's time = share (gain - 1)
//
// The cost is how much longer the fit takes where that one kernel is a loop in Go. Times are the processor's;
// each fit repeats until it has taken -seconds, in each build, so a run takes some eight minutes.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const page = "../docs/measurements/kernels.md"

func main() {
	seconds := flag.Float64("seconds", 6, "processor time of each fit in each build")
	only := flag.String("only", "", "the fits whose names contain this, printed and not written")
	flag.Parse()
	if err := run(*seconds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func run(seconds float64, only string) error {
	folder, err := os.MkdirTemp("", "kernels")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	programs, err := build(folder)
	if err != nil {
		return err
	}
	list, err := output(programs[0])
	if err != nil {
		return err
	}
	var measured []measurement
	for _, name := range strings.Split(strings.TrimSpace(list), "\n") {
		if !strings.Contains(name, only) {
			continue
		}
		m := measurement{fit: name}
		for level, program := range programs {
			file := filepath.Join(folder, "profile")
			calls, err := output(program, name, file, fmt.Sprint(seconds))
			if err != nil {
				return err
			}
			traces, err := output("go", "tool", "pprof", "-traces", file)
			if err != nil {
				return err
			}
			if m.profiles[level], err = profileOf(traces, calls); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "%s: in Go %.1f times AVX-512, AVX2 %.2f times\n", name,
			m.profiles[loops].total/m.profiles[avx512].total, m.profiles[avx2].total/m.profiles[avx512].total)
		measured = append(measured, m)
	}
	text, err := table(measured)
	if err != nil {
		return err
	}
	if only != "" {
		fmt.Print(text)
		return nil
	}
	return os.WriteFile(page, []byte(text), 0o666)
}

// The builds, in the order of programs and profiles.
const (
	avx512 = iota
	avx2
	loops
	levels
)

// build makes the program of fits with AVX-512, held to AVX2, and of the loops in Go.
func build(folder string) (programs [levels]string, err error) {
	levelFile, err := filepath.Abs("../internal/kernel/level_amd64.go")
	if err != nil {
		return programs, err
	}
	text, err := os.ReadFile(levelFile)
	if err != nil {
		return programs, err
	}
	held := strings.Replace(string(text), "var level = detect()", "var level = min(detect(), AVX2)", 1)
	if held == string(text) {
		return programs, fmt.Errorf("%s has no line to hold to AVX2", levelFile)
	}
	other, overlay := filepath.Join(folder, "level.go"), filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(other, []byte(held), 0o666); err != nil {
		return programs, err
	}
	replace := fmt.Sprintf(`{"Replace": {%q: %q}}`, levelFile, other)
	if err := os.WriteFile(overlay, []byte(replace), 0o666); err != nil {
		return programs, err
	}
	for level, flags := range [levels][]string{nil, {"-overlay", overlay}, {"-tags", "purego"}} {
		programs[level] = filepath.Join(folder, fmt.Sprint("fits", level))
		args := append(append([]string{"build"}, flags...), "-o", programs[level], "./kernels/fits")
		if _, err := output("go", args...); err != nil {
			return programs, err
		}
	}
	return programs, nil
}

// output runs a program and returns what it writes.
func output(program string, args ...string) (string, error) {
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), "GOMAXPROCS=1")
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, said.String())
	}
	return string(out), nil
}
