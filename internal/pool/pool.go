// Package pool runs loops over a fixed number of pieces on several goroutines
// that live no longer than the call which made them.
//
// Each worker has a share of the pieces, the same in every loop of as many pieces, so that
// the data of its pieces stay in its caches. A worker that has finished its share takes
// pieces from the far end of other shares. Which worker takes a piece is therefore not
// determined, and a piece must write only data of its own; sums are added afterwards, in
// the order of the pieces. Then no result depends on the number of workers.
//
// # Rounds
//
// A fit runs thousands of loops of ten to a hundred microseconds, less than it takes to
// wake a sleeping thread. So a waiting worker polls for about as long before it sleeps, and
// a loop ends when its pieces are done, without the workers that woke too late for it.
//
// # Ends
//
// A pool that is bound to a context checks it before every piece, and skips the remaining
// pieces once it has ended. The size of the pieces decides how soon that is noticed; a
// check costs some nanoseconds.
//
// A panic in a piece, of a reader that a caller gave for example, skips the remaining pieces, and goes on in
// Do, on the goroutine of the caller, who can recover from it. On another goroutine it would end the program.
// So does runtime.Goexit, which a failing test calls: it ends the goroutine of the caller, too.
//
// An error of a piece, such as that of a row that cannot be read, is given to Fail. It is the error of the
// pool from then on, whatever the pool is bound to: no further piece begins.
package pool

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Pool is a set of workers. With one worker it holds no goroutine at all.
type Pool struct {
	Memory  *Arena // of what works on it; nil: it is not counted
	workers int
	// state is the number of the round, the bit open while pieces may be left, and
	// in the bits below the number of workers that have joined it. f and the shares are
	// written while it is closed and nobody is in.
	state   atomic.Uint64
	f       func(worker, piece int)
	ctx     context.Context // what ends loops early; nil: nothing does
	shares  []share
	closed  atomic.Bool
	fault   atomic.Pointer[Fault] // the first panic of the round, or exit
	failed  atomic.Pointer[error] // the first error of a piece
	sleeper []sleeper             // worker 0, the caller, among them
	exits   chan struct{}         // a worker that has ended
}

const (
	open    = 1 << 31
	joined  = open - 1
	round   = 1 << 32
	glances = 500 // polls before a sleep
)

// share is the rest of a worker's pieces: the index of the first in the upper half, the end
// in the lower.
type share struct {
	left atomic.Uint64
	_    [56]byte // one a cache line
}

// sleeper is where a worker sleeps.
type sleeper struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [48]byte // one a cache line
}

// wait returns when ready does, or earlier.
func (s *sleeper) wait(ready func() bool) {
	for range glances {
		if ready() {
			return
		}
		runtime.Gosched()
	}
	s.asleep.Store(true)
	if ready() && s.asleep.CompareAndSwap(true, false) {
		return
	}
	<-s.wake
}

// rouse wakes the worker, if it sleeps.
func (s *sleeper) rouse() {
	if s.asleep.CompareAndSwap(true, false) {
		s.wake <- struct{}{}
	}
}

// New starts want workers, GOMAXPROCS for 0, but at most most. Close ends them.
func New(want, most int) *Pool {
	p := &Pool{workers: Count(want, most)}
	p.sleeper, p.shares = make([]sleeper, p.workers), make([]share, p.workers)
	for w := range p.sleeper {
		p.sleeper[w].wake = make(chan struct{}, 1)
	}
	p.exits = make(chan struct{}, p.workers)
	for w := 1; w < p.workers; w++ {
		go p.work(w)
	}
	return p
}

// Count is the number of workers that New starts.
func Count(want, most int) int {
	if want == 0 {
		want = runtime.GOMAXPROCS(0)
	}
	return max(1, min(want, most))
}

// Workers returns the number of workers, the caller's goroutine included.
func (p *Pool) Workers() int { return p.workers }

// Do calls f(worker, piece) once for every piece in [0,n), see Bind, and returns when all are done. The
// caller is worker 0. Calls of Do must not overlap. Where f panics and there are several workers, Do panics
// with a *Fault when no worker runs f any more.
func (p *Pool) Do(n int, f func(worker, piece int)) {
	if p.Memory.Dry() {
		return
	}
	if p.workers == 1 || n == 1 {
		for i := range n {
			if p.Err() != nil {
				return
			}
			f(0, i)
		}
		return
	}
	p.f = f
	for w := range p.shares {
		begin, end := Cut(n, p.workers, w)
		p.shares[w].left.Store(uint64(begin)<<32 | uint64(end))
	}
	p.state.Store(p.state.Load()&^(round-1) + round + open)
	for w := 1; w < min(p.workers, n); w++ {
		p.sleeper[w].rouse()
	}
	p.tryTake(0, func() {
		for s := p.state.Load(); !p.state.CompareAndSwap(s, s&^open); s = p.state.Load() {
		}
		for p.state.Load()&joined > 0 {
			p.sleeper[0].wait(func() bool { return p.state.Load()&joined == 0 })
		}
	})
	p.f = nil
	if fault := p.fault.Swap(nil); fault == exit {
		runtime.Goexit()
	} else if fault != nil {
		panic(fault)
	}
}

// exit stands for a call of runtime.Goexit in a piece.
var exit = new(Fault)

// Fault is a panic in a piece.
type Fault struct {
	Value any    // of the panic
	stack string // of the goroutine on which it was
}

// Error is the value in words, and the stack.
func (f *Fault) Error() string {
	what := "panic"
	switch v := f.Value.(type) {
	case error:
		what = v.Error()
	case string:
		what = v
	}
	return what + "\n\n" + f.stack
}

// Unwrap returns the value, if it is an error.
func (f *Fault) Unwrap() error {
	err, _ := f.Value.(error)
	return err
}

// tryTake is take, and keeps the first panic of the round. done is called when the worker has left the round,
// whatever ended it.
func (p *Pool) tryTake(worker int, done func()) {
	returned := false
	defer func() {
		defer done()
		value := recover()
		if returned {
			return
		}
		for i := range p.shares {
			p.shares[i].left.Store(0)
		}
		fault, within := value.(*Fault) // of a pool within a piece
		switch {
		case value == nil:
			fault = exit
		case !within:
			b := make([]byte, 1<<14)
			fault = &Fault{value, string(b[:runtime.Stack(b, false)])}
		}
		p.fault.CompareAndSwap(nil, fault)
	}()
	p.take(worker)
	returned = true
}

// Bind makes every later Do begin no piece after ctx has ended. With nil Do does all pieces.
func (p *Pool) Bind(ctx context.Context) { p.ctx = ctx }

// Fail makes err the error of the pool, unless it has one.
func (p *Pool) Fail(err error) { p.failed.CompareAndSwap(nil, &err) }

// Failed returns the error that Fail was given first.
func (p *Pool) Failed() error {
	if e := p.failed.Load(); e != nil {
		return *e
	}
	return nil
}

// Err returns the error of the pool, or else that of the context that it is bound to. Where it is not nil,
// the last Do may have skipped pieces.
func (p *Pool) Err() error {
	if err := p.Failed(); err != nil {
		return err
	}
	if p.ctx == nil {
		return nil
	}
	return p.ctx.Err()
}

// take does pieces, first of the worker's own share, until none is left.
func (p *Pool) take(worker int) {
	for i := range p.shares {
		of := worker + i
		if of >= p.workers {
			of -= p.workers
		}
		left := &p.shares[of].left
		for {
			s := left.Load()
			first, end := s>>32, s&(1<<32-1)
			if first >= end {
				break
			}
			next, piece := s+1<<32, first
			if i > 0 {
				next, piece = s-1, end-1
			}
			if left.CompareAndSwap(s, next) {
				if p.Err() != nil {
					left.Store(0)
					break
				}
				p.f(worker, int(piece))
			}
		}
	}
}

// work joins one round after another until Close.
func (p *Pool) work(worker int) {
	defer func() { p.exits <- struct{}{} }()
	last := uint64(0) // the round before
	for !p.closed.Load() {
		s := p.state.Load()
		if s&open == 0 || s/round == last {
			p.sleeper[worker].wait(func() bool {
				s := p.state.Load()
				return s&open != 0 && s/round != last || p.closed.Load()
			})
			continue
		}
		if !p.state.CompareAndSwap(s, s+1) {
			continue
		}
		last = s / round
		p.tryTake(worker, func() {
			if p.state.Add(^uint64(0))&(open|joined) == 0 {
				p.sleeper[0].rouse()
			}
		})
	}
}

// Pieces returns the number of pieces to cut n items into, at most size items a piece:
// a multiple of the number of workers, where n is large enough.
func (p *Pool) Pieces(n, size int) int {
	pieces := (n + size - 1) / size
	return min((pieces+p.workers-1)/p.workers*p.workers, n)
}

// Cut returns the bounds of a piece, of n items cut into so many about equal pieces.
func Cut(n, pieces, piece int) (from, to int) {
	cut := func(piece int) int { return int(int64(piece) * int64(n) / int64(pieces)) }
	return cut(piece), cut(piece + 1)
}

// Close ends the workers and waits for them. The pool must not be used afterwards.
func (p *Pool) Close() {
	p.closed.Store(true)
	for w := range p.sleeper {
		p.sleeper[w].rouse()
	}
	for w := 1; w < p.workers; w++ {
		<-p.exits
	}
}
