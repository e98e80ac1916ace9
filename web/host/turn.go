//go:build js && wasm

package host

// This file holds how a fit gives way to the worker's event loop. Go returns there only when
// no goroutine can run, so a fit would go on deaf to messages until its end. A context
// that is asked often, as those of fits are, is the place to listen: every so often it
// sends the worker a message and waits until that has come round.

import (
	"syscall/js"
	"time"
)

// pause is the time between two turns of the event loop. A turn takes less than a
// millisecond.
const pause = 12 * time.Millisecond

// turn is the worker's function that calls back after one round of its event loop.
type turn struct {
	heard js.Func
	came  chan struct{}
}

func newTurn() *turn {
	t := &turn{came: make(chan struct{}, 1)}
	t.heard = js.FuncOf(func(js.Value, []js.Value) any {
		t.came <- struct{}{}
		return nil
	})
	return t
}

// take lets the event loop go round once. Calls under way at the same time would mix up
// their turns: a worker has one.
func (t *turn) take() {
	host.Call("turn", t.heard)
	<-t.came
}

// Context is the context of a call. Its Err takes a turn when the last was a pause ago, and does not
// return once the call is to end. A fit that is stopped makes a model of what it has, by a
// solve of every row, and JavaScript has no use for it: the call ends where it stands.
// Calls run on one goroutine and hold nothing beyond it.
//
// It is a context of its own: those of package context may have others below them, which takes 12 KB of
// what is downloaded.
type Context struct {
	turn *turn
	last int64 // now at the end of the last turn
	done chan struct{}
	over bool
}

func newContext(t *turn) *Context {
	return &Context{turn: t, last: now(), done: make(chan struct{})}
}

// end ends the call, the next time that it asks.
func (c *Context) end() {
	if !c.over {
		c.over = true
		close(c.done)
	}
}

func (c *Context) Err() error {
	if now()-c.last > int64(pause) {
		c.turn.take()
		c.last = now()
	}
	if c.over {
		panic(cancelled{})
	}
	return nil
}

func (c *Context) Done() <-chan struct{}       { return c.done }
func (c *Context) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *Context) Value(any) any               { return nil }

// now is the nanoseconds since the module began.
func now() int64 { return int64(time.Since(began)) }

var began = time.Now()

// cancelled is what a call panics with when its context has ended; answer makes it an error.
type cancelled struct{}
