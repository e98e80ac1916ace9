package main

// This file holds locks on Windows. A lock is a file that one process has opened for itself alone, and that
// no other process can remove meanwhile.

import (
	"os"
	"syscall"
)

// stays: whether a file that another process has open can be told from one that a dead process left.
const stays = true

// tryLock has nothing to do: a file that is open cannot be removed.
func tryLock(*os.File) bool { return true }

const sharingViolation = syscall.Errno(32)

// openLocked opens a file, which need not exist, for this process alone.
func openLocked(path string) (f *os.File, free bool, err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, false, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == sharingViolation {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return os.NewFile(uintptr(h), path), true, nil
}

// endLock closes and then removes a file, because an open file cannot be removed. If another process opens it
// in between, the file stays.
func endLock(f *os.File, path string) {
	f.Close()
	os.Remove(path)
}
