//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

// This file holds locks that the system keeps, and that end with the process.

import (
	"errors"
	"os"
	"syscall"
)

// stays: whether a file that another process has open can be told from one that a dead process left.
const stays = true

// tryLock takes the lock of an open file, and tells whether it was free. On a file system without locks every
// lock is free.
func tryLock(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// openLocked opens a file, which need not exist, and takes its lock.
func openLocked(path string) (f *os.File, free bool, err error) {
	if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, false, err
	}
	if tryLock(f) {
		return f, true, nil
	}
	f.Close()
	return nil, false, nil
}

// endLock removes a file and then releases its lock. In the other order it might remove the file of the next
// process.
func endLock(f *os.File, path string) {
	os.Remove(path)
	f.Close()
}
