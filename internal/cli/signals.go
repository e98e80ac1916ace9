package cli

// This file holds what an interrupt does.

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// Heard is called when an interrupt has ended a context of Interruptible. Tests wait for it.
var Heard = func() {}

// listening is the number of contexts of Interruptible that are in use.
var listening atomic.Int32

// EndCleanly makes an interrupt remove the temporary files before it ends the process, while no context of
// Interruptible is in use.
func EndCleanly() {
	told := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(told, s)
		}
	}
	go func() {
		for range told {
			if listening.Load() == 0 {
				clean()
				os.Exit(Interrupted)
			}
		}
	}()
}

// Interruptible returns a context. The first interrupt ends the context and not the process; the second
// removes the temporary files and ends the process.
func Interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	listening.Add(1)
	over := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-told:
			case <-over:
				return
			}
			if ctx.Err() != nil {
				clean()
				os.Exit(Interrupted)
			}
			cancel()
			Heard()
		}
	}()
	outlivePipes()
	return ctx, func() {
		listening.Add(-1)
		signal.Stop(told)
		close(over)
		cancel()
	}
}
