package beam

// This file holds the blob store of a run: named blobs below a folder of one of Beam's file
// systems, which the driver and all workers see under the same name. The local file system and
// gs:// are built in (Beam's worker harness links the latter in any case). A program
// that imports another file system, such as Beam's s3, can use it as well.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local" // paths without a scheme
	"github.com/quantmf/quantmf/internal/section"
	"github.com/quantmf/quantmf/shards"
)

// Store is a folder of blobs, a [shards.Remover]. Any number of processes may use one at once.
type Store struct {
	ctx    context.Context
	folder string
	local  bool
	files  filesystem.Interface
}

var _ shards.Remover = (*Store)(nil)

// OpenStore opens the store below a folder: a path, which all workers must see, or an address such as
// gs://bucket/folder. Close it when it is no longer needed. The context is that of all its reads and
// writes. A file system with a scheme must show a file only after its writer is closed, as object
// stores do. Files of a path are written under another name and then renamed.
func OpenStore(ctx context.Context, folder string) (*Store, error) {
	if folder == "" {
		return nil, errors.New("beam: a store needs a folder")
	}
	local := !strings.Contains(folder, "://")
	if local {
		at, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("beam: store %s: %w", folder, err)
		}
		folder = filepath.ToSlash(at)
	} else if strings.ContainsAny(folder, `*?[\`) {
		return nil, fmt.Errorf("beam: store %s: the name of a bucket or folder may not have any of * ? [ \\",
			folder)
	}
	files, err := filesystem.New(ctx, folder)
	if err != nil {
		return nil, fmt.Errorf("beam: store %s: %w", folder, err)
	}
	return &Store{ctx, strings.TrimRight(folder, "/"), local, files}, nil
}

// Close frees the resources of the file system, such as connections.
func (s *Store) Close() error { return s.files.Close() }

// Folder returns the path or address of the store, which is the same for every worker.
func (s *Store) Folder() string { return s.folder }

func (s *Store) path(name string) string { return s.folder + "/" + name }

func (s *Store) fault(name string, err error) error {
	return fmt.Errorf("beam: store %s: %s: %w", s.folder, name, err)
}

// absent tells whether err, of reading or removing a blob, means that there is no such blob. File systems
// other than the local one have errors of their own for that, so their lists of files are asked.
func (s *Store) absent(name string, err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if s.local {
		return false
	}
	found, listErr := s.files.List(s.ctx, s.path(name))
	return listErr == nil && len(found) == 0
}

// Get reads a blob. It returns no bytes and no error where there is no such blob.
func (s *Store) Get(name string) ([]byte, error) {
	data, err := s.read(s.path(name))
	if err != nil {
		if s.absent(name, err) {
			return nil, nil
		}
		return nil, s.fault(name, err)
	}
	return data, nil
}

// need reads a blob, and returns errAbsent where there is no such blob.
func (s *Store) need(name string) ([]byte, error) {
	data, err := s.Get(name)
	if err == nil && data == nil {
		err = s.fault(name, errAbsent)
	}
	return data, err
}

// sections decodes the sections of a file of a kind, which what names.
func sections(data []byte, kind uint32, what string, names ...string) (*section.File, error) {
	return section.Decode(data, kind, func(of uint32) string {
		if of == kind {
			return what
		}
		return "another file"
	}, names, nil)
}

func (s *Store) read(path string) ([]byte, error) {
	if s.local {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return nil, errors.New("is no regular file") // a pipe would be waited for
		}
		return os.ReadFile(path) // allocates the length of the file once
	}
	r, err := s.files.OpenRead(s.ctx, path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Put writes the whole blob or nothing.
func (s *Store) Put(name string, data []byte) error {
	to := s.path(name)
	if s.local {
		to = fmt.Sprintf("%s.%016x.tmp", to, rand.Uint64())
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	w, err := s.files.OpenWrite(ctx, to)
	if err != nil {
		return s.fault(name, err)
	}
	if _, err = w.Write(data); err != nil {
		cancel() // before Close, which would otherwise publish a part of the blob as the whole
	}
	err = errors.Join(err, w.Close())
	if s.local {
		if err == nil {
			err = os.Rename(to, s.path(name))
		}
		if err != nil {
			os.Remove(to)
		}
	}
	if err != nil {
		return s.fault(name, err)
	}
	return nil
}

// Remove removes a blob. A file system that cannot remove files keeps it.
func (s *Store) Remove(name string) error {
	files, can := s.files.(filesystem.Remover)
	if !can {
		return nil
	}
	if err := files.Remove(s.ctx, s.path(name)); err != nil && !s.absent(name, err) {
		return s.fault(name, err)
	}
	return nil
}
