//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

// This file holds locks where the system keeps them: they end with the process.

import (
	"errors"
	"os"
	"syscall"
)

// stays tells whether a file in use by another process can be told from one that was left.
const stays = true

// tryLock takes the lock of an open file, and tells whether it was free. A file system
// without locks has every one free.
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

// endLock removes a file and gives its lock up, in this order: another process may have it next.
func endLock(f *os.File, path string) {
	os.Remove(path)
	f.Close()
}
