// This file has what all experiments share. A session reports its progress, caches fits and
// writes results. A result is a struct of numbers with a header that names the setting,
// version and machine that made them.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quantmf/quantmf/paper/internal/data"
)

// session is one run of an experiment.
type session struct {
	ctx          context.Context
	name         string
	quick, again bool
	data         data.Folder
	began        time.Time
	before       time.Duration // the value of worked when the session began
	abreast      int           // the number of fits that are made at the same time
	mu           sync.Mutex    // guards found
	found        time.Duration // the processor time of fits in the cache, from when they were made
}

func newSession(ctx context.Context, name string, quick, again bool, folder data.Folder) *session {
	return &session{ctx: ctx, name: name, quick: quick, again: again, data: folder, began: time.Now(),
		before: worked(), abreast: 1}
}

var started = time.Now()

func cores() int { return runtime.GOMAXPROCS(0) }

// took returns how long the session would have taken so far on a machine without other work: the
// processor time of its fits, those in the cache included, divided by the number of cores.
func (s *session) took() time.Duration {
	return (worked() - s.before + s.found) / time.Duration(cores())
}

func (s *session) setting() string {
	if s.quick {
		return "quick"
	}
	return "full"
}

// pick returns full, or quick under -quick.
func pick[T any](s *session, full, quick T) T {
	if s.quick {
		return quick
	}
	return full
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %6.1f s  %s\n", s.name, time.Since(s.began).Seconds(),
		fmt.Sprintf(format, args...))
}

// header begins every result.
type header struct {
	Setting string  // quick or full
	Version string  // of the package
	Date    string  // of the run
	Machine string  // cores and architecture
	Minutes float64 // that all cores worked for the run, and for what it found in the cache
}

// result is what a file of results holds.
type result[T any] struct {
	Header header
	Result T
}

// version returns the last commit that changed the package, changes of tests left out, with a + where
// files differ from it.
var version = sync.OnceValue(func() string {
	of := []string{"--", ":(top,glob)*.go", ":(top)internal", ":(top,exclude)*_test.go"}
	out, err := exec.Command("git", append([]string{"log", "-1", "--format=%h"}, of...)...).Output()
	if err != nil || len(out) == 0 {
		return "an unknown version"
	}
	v := strings.TrimSpace(string(out))
	if changed, err := exec.Command("git",
		append([]string{"status", "--porcelain"}, of...)...).Output(); err != nil || len(changed) > 0 {
		v += "+"
	}
	return v
})

func (s *session) save(v any) error {
	file := filepath.Join("results", s.name+".json")
	if s.quick {
		file = filepath.Join("results", "quick", s.name+".json")
	}
	text, err := json.MarshalIndent(result[any]{header{
		Setting: s.setting(), Version: version(), Date: time.Now().UTC().Format(time.DateOnly),
		Machine: fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Minutes: sig(s.took().Minutes(), 2),
	}, v}, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	s.say("%s", file)
	return os.WriteFile(file, compact(text), 0o644)
}

// compact puts arrays of numbers on one line.
func compact(text []byte) []byte {
	text = numbers.ReplaceAllFunc(text, func(array []byte) []byte {
		return []byte(strings.Join(strings.Fields(string(array)), ""))
	})
	return append(text, '\n')
}

var numbers = regexp.MustCompile(`\[[-+0-9.eE,\s]*\]`)

// read returns the results of an experiment, preferably those of the full setting, and false where there
// are none.
func read[T any](name string) (r result[T], has bool, err error) {
	for _, file := range []string{"results/" + name + ".json", "results/quick/" + name + ".json"} {
		text, err := os.ReadFile(filepath.FromSlash(file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return r, false, err
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return r, false, fmt.Errorf("%s: %w", file, err)
		}
		return r, true, nil
	}
	return r, false, nil
}

// sources returns the SHA-256 of the text on which fits depend: the package, and this program up to
// the functions that write the page. Tests and files that make no fits are left out.
var sources = sync.OnceValues(hashSources)

func hashSources() (string, error) {
	h := sha256.New()
	add := func(pattern string) error {
		files, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			name := filepath.ToSlash(file)
			if strings.HasSuffix(name, "_test.go") || slices.Contains(noFits, name) {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if at := pages.FindIndex(text); at != nil {
				text = text[:at[0]]
			}
			fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
		}
		return nil
	}
	for _, pattern := range []string{"../*.go", "../internal/*/*.go", "../internal/*/*.s",
		"../internal/*/*/*.go", "../internal/*/*/*.s", "*.go", "internal/*/*.go", "go.mod", "../go.mod"} {
		if err := add(pattern); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// noFits are the files of this program that make no fits.
var noFits = []string{"main.go", "session.go", "clock_unix.go", "clock_other.go", "page.go", "figure.go"}

// pages matches the beginning of the functions for the page in the file of an experiment.
var pages = regexp.MustCompile(`(?m)^func \w+Page\(w \*writer\)`)

// entry is a file of the cache.
type entry[T any] struct {
	Seconds float64 // the processor time of it, estimated where several fits were made at the same time
	Value   T
}

// cached returns the result of an earlier call of compute with this key and the same sources, or calls
// compute.
func cached[T any](s *session, key string, compute func() (T, error)) (v T, err error) {
	src, err := sources()
	if err != nil {
		return v, err
	}
	h := sha256.Sum256([]byte(src + "\n" + s.name + "\n" + key))
	file := filepath.Join("cache", s.name, hex.EncodeToString(h[:12])+".json")
	var e entry[T]
	if text, err := os.ReadFile(file); err == nil && !s.again && json.Unmarshal(text, &e) == nil {
		s.mu.Lock()
		s.found += time.Duration(e.Seconds * float64(time.Second))
		s.mu.Unlock()
		return e.Value, nil
	}
	if err := s.ctx.Err(); err != nil {
		return v, err
	}
	before := worked()
	if v, err = compute(); err != nil {
		return v, fmt.Errorf("%s: %w", key, err)
	}
	e = entry[T]{Seconds: sig((worked()-before).Seconds()/float64(s.abreast), 3), Value: v}
	s.say("%s", key)
	text, err := json.Marshal(e)
	if err != nil {
		return v, fmt.Errorf("%s: %w", key, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return v, err
	}
	return v, os.WriteFile(file, text, 0o644)
}

// each calls f(0), ..., f(n-1) on as many goroutines as there are processors. The
// error returned is that of the lowest index.
func (s *session) each(n int, f func(i int) error) error {
	workers := min(n, cores())
	s.abreast = workers
	defer func() { s.abreast = 1 }()
	errs := make([]error, n)
	var wg sync.WaitGroup
	next := make(chan int)
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				errs[i] = f(i)
			}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sig rounds to the given number of significant digits.
func sig(v float64, digits int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	unit := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*unit) / unit
}

func sigs(v []float64, digits int) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = sig(v[i], digits)
	}
	return out
}
