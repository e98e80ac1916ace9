//go:build !unix

package cli

// This file stands in for pipe_unix.go where a broken pipe is no signal.

func outlivePipes() {}
