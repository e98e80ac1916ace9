//go:build js && wasm

package host

// This file lets a fit return to the event loop of the worker. Go returns there only when
// no goroutine can run, so without this a fit would receive no message until its end. Fits ask their context
// often whether it has ended. At intervals the context then sends the worker a message, and waits until
// the event loop has delivered it.

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

// take lets the event loop run once. A worker makes one call at a time, so turns of several calls
// cannot mix.
func (t *turn) take() {
	host.Call("turn", t.heard)
	<-t.came
}

// Context is the context of a call. Its Err takes a turn when the last turn was a pause ago. When the call is
// to end, Err panics and does not return: a fit that is stopped in the usual way would solve every row for
// the model so far, for which JavaScript has no use. Calls run on one goroutine and hold no resources beyond
// it.
//
// Context does not use package context, whose contexts may have others below them: the code for that would
// add 12 KB to the download.
type Context struct {
	turn *turn
	last int64 // now at the end of the last turn
	done chan struct{}
	over bool
}

func newContext(t *turn) *Context {
	return &Context{turn: t, last: now(), done: make(chan struct{})}
}

// end ends the call the next time that it calls Err.
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

// now returns the nanoseconds since the module began.
func now() int64 { return int64(time.Since(began)) }

var began = time.Now()

// cancelled is the value with which a call panics when its context has ended. answer makes an error of it.
type cancelled struct{}
