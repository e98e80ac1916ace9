package main

// This file holds locks on Windows: a file that is opened for one process alone, and that
// cannot be removed while another has it open.

import (
	"os"
	"syscall"
)

// stays tells whether a file in use by another process can be told from one that was left.
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
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == sharingViolation {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return os.NewFile(uintptr(h), path), true, nil
}

// endLock closes and removes a file: one that is open cannot be removed. Another process that took it
// in between keeps it.
func endLock(f *os.File, path string) {
	f.Close()
	os.Remove(path)
}
