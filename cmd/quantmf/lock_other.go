//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package main

// This file stands in for locks on systems for which the standard library has none.

import "os"

// stays: whether a file that another process has open can be told from one that a dead process left.
const stays = false

func tryLock(*os.File) bool { return true }

func openLocked(path string) (f *os.File, free bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	return f, err == nil, err
}

// endLock closes and removes a file.
func endLock(f *os.File, path string) {
	f.Close()
	os.Remove(path)
}
