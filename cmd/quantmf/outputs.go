package main

// This file holds the files that a command writes: all of them or none. Each is
// written under a temporary name beside its place, and all are renamed once all
// are whole.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/quantmf/quantmf/internal/table"
)

// outputs are the files of one run. Always call discard; after commit it does nothing.
type outputs struct {
	stdout io.Writer
	files  []*output
}

type output struct {
	path   string // as the user gave it; "-" is standard output
	target string // with links resolved
	temp   *os.File
	held   bytes.Buffer // instead of temp, where there is nothing to rename: standard output, pipes, devices
}

// open makes sure that path can be written, before any work is done. inputs are the files that are read,
// which must not be overwritten; nil stands for standard input.
func (o *outputs) open(path string, inputs ...os.FileInfo) error {
	f := &output{path: path, target: path}
	if path != "-" {
		if at, err := filepath.EvalSymlinks(path); err == nil {
			f.target = at
		}
		if at, err := filepath.Abs(f.target); err == nil {
			f.target = at
		}
	}
	for _, other := range o.files {
		if other.target == f.target {
			return usageError(fmt.Sprintf("two outputs to the same place: %s", path))
		}
	}
	o.files = append(o.files, f)
	if path == "-" {
		return nil
	}
	mode := fs.FileMode(0o666)
	switch old, err := os.Stat(f.target); {
	case err == nil && old.IsDir():
		return fmt.Errorf("cannot write %s: it is a folder", path)
	case err == nil && slices.ContainsFunc(inputs,
		func(in os.FileInfo) bool { return in != nil && os.SameFile(old, in) }):
		return usageError(fmt.Sprintf("%s is read itself: write to another file", path))
	case err == nil && !old.Mode().IsRegular():
		return nil
	case err == nil:
		mode = old.Mode().Perm()
	}
	temp, err := createTemp(f.target, mode)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	f.temp = temp
	return nil
}

// cleanPath is a path without superfluous parts; links are not followed.
func cleanPath(path string) string {
	if path == "-" {
		return path
	}
	if at, err := filepath.Abs(path); err == nil {
		return at
	}
	return filepath.Clean(path)
}

// createTemp differs from os.CreateTemp in the permissions, which are those of the final file.
func createTemp(target string, mode fs.FileMode) (*os.File, error) {
	removeLeft(target)
	dir, base := filepath.Split(target)
	for {
		name := fmt.Sprintf("%s.%s.%08x.tmp", dir, stem(base), rand.Uint32())
		temporary.add(name) // before the file exists: an interrupt right after its creation must remove it
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err == nil && tryLock(f) {
			return f, nil
		}
		temporary.remove(name)
		if err == nil { // another process removed it as left behind
			f.Close()
			continue
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
}

// write fills the file opened as path.
func (o *outputs) write(path string, fill func(w io.Writer) error) error {
	for _, f := range o.files {
		if f.path != path {
			continue
		}
		if f.temp == nil {
			return fill(&f.held)
		}
		err := fill(f.temp)
		if err == nil {
			err = f.temp.Sync()
		}
		var in *table.Error // an error of the input, and not of this file
		if errors.As(err, &in) {
			return err
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", path, err)
		}
	}
	return nil
}

// commit puts everything into its place. Standard output and pipes come first, because they are the likeliest
// to fail: no file has changed then.
func (o *outputs) commit() error {
	for _, f := range o.files {
		if f.temp != nil {
			continue
		}
		if err := f.flush(o.stdout); err != nil {
			return fmt.Errorf("cannot write %s: %w", f.path, err)
		}
	}
	for _, f := range o.files {
		if f.temp == nil {
			continue
		}
		// An open file is safe from removeLeft of other processes, but cannot be renamed on Windows.
		if runtime.GOOS == "windows" {
			if err := f.temp.Close(); err != nil {
				return fmt.Errorf("cannot write %s: %w", f.path, err)
			}
		}
		if err := os.Rename(f.temp.Name(), f.target); err != nil {
			return fmt.Errorf("cannot write %s: %w", f.path, err)
		}
		f.temp.Close() // its bytes are on the disk already (Sync)
		temporary.remove(f.temp.Name())
		f.temp = nil
	}
	return nil
}

func (f *output) flush(stdout io.Writer) error {
	if f.path == "-" {
		_, err := f.held.WriteTo(stdout)
		return err
	}
	to, err := os.OpenFile(f.target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.held.WriteTo(to)
	return errors.Join(err, to.Close())
}

// discard removes the files that were not put into their place.
func (o *outputs) discard() {
	for _, f := range o.files {
		if f.temp != nil {
			f.temp.Close()
			os.Remove(f.temp.Name())
			temporary.remove(f.temp.Name())
		}
	}
}
