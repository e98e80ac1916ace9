// Package pool runs loops over a fixed number of pieces on several goroutines
// that live no longer than the call which made them.
//
// Which worker takes which piece is left to chance, so a piece must write only
// what is its own; sums are added afterwards, in the order of the pieces. Then
// no result depends on the number of workers.
package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Pool is a set of workers. With one worker it holds no goroutine at all.
type Pool struct {
	workers int
	jobs    []chan *job
	one     job
}

type job struct {
	next atomic.Int64
	n    int
	f    func(worker, piece int)
	done sync.WaitGroup
}

// New starts the workers: want of them, or GOMAXPROCS for 0, and no more than
// most. Close ends them.
func New(want, most int) *Pool {
	if want == 0 {
		want = runtime.GOMAXPROCS(0)
	}
	p := &Pool{workers: max(1, min(want, most))}
	for w := 1; w < p.workers; w++ {
		c := make(chan *job, 1)
		p.jobs = append(p.jobs, c)
		go func() {
			for j := range c {
				j.run(w)
				j.done.Done()
			}
		}()
	}
	return p
}

// Workers returns the number of workers, the caller's goroutine included.
func (p *Pool) Workers() int { return p.workers }

// Do calls f(worker, piece) once for every piece in [0,n) and returns when all
// are done. The caller is worker 0. Calls of Do must not overlap.
func (p *Pool) Do(n int, f func(worker, piece int)) {
	if p.workers == 1 || n == 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	j := &p.one
	j.n, j.f = n, f
	j.next.Store(0)
	j.done.Add(len(p.jobs))
	for _, c := range p.jobs {
		c <- j
	}
	j.run(0)
	j.done.Wait()
	j.f = nil
}

func (j *job) run(worker int) {
	for {
		i := int(j.next.Add(1)) - 1
		if i >= j.n {
			return
		}
		j.f(worker, i)
	}
}

// Close ends the workers. The pool must not be used afterwards.
func (p *Pool) Close() {
	for _, c := range p.jobs {
		close(c)
	}
	p.jobs = nil
}
