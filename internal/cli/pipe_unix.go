//go:build unix

package cli

// This file holds what a broken pipe means where it is a signal.

import (
	"os/signal"
	"syscall"
)

// outlivePipes makes a write to a pipe that nobody reads an error like others, instead of the end of the
// process: temporary files can then be removed.
func outlivePipes() { signal.Ignore(syscall.SIGPIPE) }
