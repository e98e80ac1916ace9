// This file has what all experiments share. A session reports its progress, caches fits and writes results. A
// result is a struct of numbers with a header that names the setting, version and machine that made them.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/quantmf/quantmf/paper/internal/data"
	"github.com/quantmf/quantmf/paper/internal/report"
)

// session is one run of an experiment.
type session struct {
	ctx          context.Context
	name         string
	quick, again bool
	data         data.Folder
	began        time.Time
}

func newSession(ctx context.Context, name string, quick, again bool, folder data.Folder) *session {
	return &session{ctx, name, quick, again, folder, time.Now()}
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
	Setting string // quick or full
	Version string // of the package
	Date    string // of the run
	Machine string // cores and architecture
}

// result is what a file of results holds.
type result[T any] struct {
	Header header
	Result T
}

func (s *session) save(v any) error {
	file := filepath.Join("results", s.name+".json")
	if s.quick {
		file = filepath.Join("results", "quick", s.name+".json")
	}
	s.say("%s", file)
	return report.Write(file,
		result[any]{header{s.setting(), report.Version(), report.Today(), report.Machine()}, v})
}

// program returns the SHA-256 of the running program, in which the package is compiled.
var program = sync.OnceValues(func() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
})

// cached returns the result of an earlier call of compute with this key by the same program, or calls
// compute.
func cached[T any](s *session, key string, compute func() (T, error)) (v T, err error) {
	by, err := program()
	if err != nil {
		return v, err
	}
	return report.Cached(s.name+"/", by+"\n"+s.name+"\n"+key, s.again, func() (v T, err error) {
		if err := s.ctx.Err(); err != nil {
			return v, err
		}
		if v, err = compute(); err != nil {
			return v, fmt.Errorf("%s: %w", key, err)
		}
		s.say("%s", key)
		return v, nil
	})
}

// repeat returns f(1), ..., f(n), each cached under the key and its number, computed on as many goroutines as
// there are processors.
func repeat[T any](s *session, key string, n int, f func(i int) (T, error)) ([]T, error) {
	all, errs := make([]T, n), make([]error, n)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			all[i], errs[i] = cached(s, fmt.Sprintf("%s %d", key, i+1), func() (T, error) { return f(i + 1) })
			<-slots
		})
	}
	wg.Wait()
	return all, errors.Join(errs...)
}
