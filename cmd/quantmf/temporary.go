package main

// This file holds the temporary files of a run. An interrupted run removes them. The files of a killed run
// are removed by the next run that writes to the same place.

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
)

// temporary are the files that must not outlive this process.
var temporary fileSet

type fileSet struct {
	mutex sync.Mutex
	paths map[string]bool
}

func (t *fileSet) add(path string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.paths == nil {
		t.paths = map[string]bool{}
	}
	t.paths[path] = true
}

func (t *fileSet) remove(path string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.paths, path)
}

// clean removes all of them. It keeps the mutex, because the process ends here.
func (t *fileSet) clean() {
	t.mutex.Lock()
	for path := range t.paths {
		os.Remove(path)
	}
}

// stem is the name of a file, or what stands for it in the names of files beside it: those are no longer than
// 255 bytes, which most file systems take.
func stem(base string) string {
	const most = 255 - len("..01234567.tmp")
	if len(base) <= most {
		return base
	}
	end := most - len("~01234567")
	for !utf8.RuneStart(base[end]) && end > most/2 {
		end--
	}
	return fmt.Sprintf("%s~%08x", base[:end], crc32.ChecksumIEEE([]byte(base)))
}

// random matches the part of a temporary name between the name of the output and .tmp.
var random = regexp.MustCompile(`^[0-9a-f]{8}$`)

// removeLeft removes temporary files beside target that no process has open.
func removeLeft(target string) {
	if !stays {
		return
	}
	dir, base := filepath.Split(target)
	base = stem(base)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		middle, is := strings.CutPrefix(e.Name(), "."+base+".")
		if middle, is2 := strings.CutSuffix(middle, ".tmp"); !is || !is2 || !random.MatchString(middle) ||
			!e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if runtime.GOOS == "windows" {
			os.Remove(path) // fails if a process has the file open
			continue
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		if tryLock(f) {
			os.Remove(path)
		}
		f.Close()
	}
}
