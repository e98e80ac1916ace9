//go:build js && wasm

package host

// This file holds how a fit gives way to the worker's event loop. Go returns there only when
// no goroutine can run, so a fit would go on deaf to messages until its end. A context
// that is asked often, as those of fits are, is the place to listen: every so often it
// sends the worker a message and waits until that has come round.

import (
	"context"
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

// yielding is a context whose Err takes a turn when the last was a pause ago, and does not
// return once the context has ended. A fit that is stopped makes a model of what it has, by a
// solve of every row, and JavaScript has no use for it: the call ends where it stands.
// Calls run on one goroutine and hold nothing beyond it.
type yielding struct {
	context.Context
	turn *turn
	last time.Time
}

func newYielding(ctx context.Context, t *turn) *yielding {
	return &yielding{Context: ctx, turn: t, last: time.Now()}
}

func (y *yielding) Err() error {
	if now := time.Now(); now.Sub(y.last) > pause {
		y.turn.take()
		y.last = time.Now()
	}
	if y.Context.Err() != nil {
		panic(cancelled{})
	}
	return nil
}

// cancelled is what a call panics with when its context has ended; answer makes it an error.
type cancelled struct{}
