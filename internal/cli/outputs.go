package cli

// This file holds the files that a command writes: all of them or none. Each is written under a temporary
// name beside its place, and all are renamed once all are whole. An interrupted run removes its temporary
// files.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/quantmf/quantmf/internal/table"
)

// Outputs are the files of one run. Always call Discard; after Commit it does nothing.
type Outputs struct {
	Stdout io.Writer
	files  []*output
}

type output struct {
	path   string // as the user gave it; "-" is standard output
	target string // with links resolved
	temp   *os.File
	held   bytes.Buffer // instead of temp, where there is nothing to rename: standard output, pipes, devices
}

// Open makes sure that the paths that are not "" can be written, before any work is done. inputs are the
// files that are read, which must not be overwritten; nil stands for standard input.
func (o *Outputs) Open(inputs []os.FileInfo, paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if err := o.open(inputs, path); err != nil {
			return err
		}
	}
	return nil
}

func (o *Outputs) open(inputs []os.FileInfo, path string) error {
	f := &output{path: path, target: path}
	if path != "-" {
		if at, err := filepath.EvalSymlinks(path); err == nil {
			f.target = at
		}
		f.target = cleanPath(f.target)
	}
	for _, other := range o.files {
		if other.target == f.target {
			return UsageError("two outputs to the same place: " + path)
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
		return UsageError(path + " is read itself: write to another file")
	case err == nil && !old.Mode().IsRegular():
		return nil
	case err == nil:
		mode = old.Mode().Perm()
	}
	temp, err := createTemp(filepath.Dir(f.target), mode)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	f.temp = temp
	return nil
}

// Apart returns an error for two outputs of the same name, before any file is read. Open finds links to the
// same file.
func Apart(paths ...string) error {
	seen := map[string]bool{}
	for _, p := range paths {
		at := cleanPath(p)
		if p != "" && seen[at] {
			return UsageError("two outputs to the same place: " + p)
		}
		seen[at] = true
	}
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

// temporary are the files that must not outlive this process.
var temporary struct {
	sync.Mutex
	paths map[string]bool
}

const tempPrefix, tempSuffix = ".quantmf-", ".tmp"

func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// createTemp differs from os.CreateTemp in the permissions, which are those of the final file, and in that
// an interrupt removes the file.
func createTemp(dir string, mode fs.FileMode) (*os.File, error) {
	name := filepath.Join(dir, fmt.Sprintf(tempPrefix+"%016x"+tempSuffix, rand.Uint64()))
	temporary.Lock() // before the file exists: an interrupt right after its creation must remove it
	defer temporary.Unlock()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err == nil {
		if temporary.paths == nil {
			temporary.paths = map[string]bool{}
		}
		temporary.paths[name] = true
	}
	return f, err
}

func forget(f *os.File) {
	temporary.Lock()
	defer temporary.Unlock()
	delete(temporary.paths, f.Name())
}

// clean removes the temporary files. It keeps the mutex, because the process ends here.
func clean() {
	temporary.Lock()
	for path := range temporary.paths {
		os.Remove(path)
	}
}

// Write fills the file opened as path; "" is none.
func (o *Outputs) Write(path string, fill func(w io.Writer) error) error {
	at := slices.IndexFunc(o.files, func(f *output) bool { return f.path == path })
	if at < 0 {
		return nil
	}
	f := o.files[at]
	if f.temp == nil {
		return fill(&f.held)
	}
	err := fill(f.temp)
	if err == nil {
		err = f.temp.Sync()
	}
	var in *table.Error // an error of the input, and not of this file
	if err == nil || errors.As(err, &in) {
		return err
	}
	return fmt.Errorf("cannot write %s: %w", path, err)
}

// Commit puts everything into its place. Standard output and pipes come first, because they are the likeliest
// to fail: no file has changed then.
func (o *Outputs) Commit() error {
	for _, f := range o.files {
		if f.temp != nil {
			continue
		}
		if err := f.flush(o.Stdout); err != nil {
			return fmt.Errorf("cannot write %s: %w", f.path, err)
		}
	}
	for _, f := range o.files {
		if f.temp == nil {
			continue
		}
		err := f.temp.Close() // an open file cannot be renamed on Windows
		if err == nil {
			err = os.Rename(f.temp.Name(), f.target)
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", f.path, err)
		}
		forget(f.temp)
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

// Discard removes the files that were not put into their place.
func (o *Outputs) Discard() {
	for _, f := range o.files {
		if f.temp != nil {
			f.temp.Close()
			os.Remove(f.temp.Name())
			forget(f.temp)
		}
	}
}

// WriteOnly writes one file, to a place that is none of the inputs.
func WriteOnly(stdout io.Writer, path string, inputs []os.FileInfo, fill func(w io.Writer) error) error {
	out := &Outputs{Stdout: stdout}
	defer out.Discard()
	err := out.Open(inputs, path)
	if err == nil {
		err = out.Write(path, fill)
	}
	if err == nil {
		err = out.Commit()
	}
	return err
}

// WriteData writes one file, which is whole or as it was.
func WriteData(path string, data []byte) error {
	return WriteOnly(io.Discard, path, nil, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Folder is a store of named blobs, a file for each.
type Folder struct {
	Dir string
	In  *Input // bounds what is read
}

// Get returns the bytes of a blob, nil where there is none.
func (d *Folder) Get(name string) ([]byte, error) { return d.In.ReadBack(filepath.Join(d.Dir, name)) }

// Put writes a blob, which is whole or not there.
func (d *Folder) Put(name string, data []byte) error {
	return WriteData(filepath.Join(d.Dir, name), data)
}

// Remove removes a blob, if there is one.
func (d *Folder) Remove(name string) error {
	err := os.Remove(filepath.Join(d.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Files are those of the folder that can be seen, but for those that a killed run had begun to write.
func (d *Folder) Files() (all []os.FileInfo) {
	there, _ := os.ReadDir(d.Dir) // what cannot be seen is not protected
	for _, e := range there {
		if info, err := e.Info(); err == nil && !isTemp(e.Name()) {
			all = append(all, info)
		}
	}
	return all
}

// Sweep removes what killed runs had begun to write. No other run may write to the folder.
func (d *Folder) Sweep() {
	there, _ := os.ReadDir(d.Dir)
	for _, e := range there {
		if isTemp(e.Name()) {
			d.Remove(e.Name())
		}
	}
}
