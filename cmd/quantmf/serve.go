package main

// This file holds "quantmf serve", by which programs in other languages use the package: calls come on
// standard input, results go to standard output, each in a frame (frames.go). internal/calls has the calls.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/quantmf/quantmf/internal/calls"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/table"
)

// protocol is the version of frames and calls. It rises when a client of before would misread a frame.
const protocol = 1

func serveProgram() *cli.Program {
	in := cli.NewInput()
	return &cli.Program{
		Usage: []string{"[flags]"},
		About: `Answers calls of another program, which come as frames on standard input; results go to
			standard output. docs/serve.md has the frames and the calls. The package for Python is such a
			program. Calls run side by side. The server ends when its input has ended and all calls are
			answered, or when the program that started it ends.`,
		Groups: []cli.Group{{Flags: []*cli.Flag{in.MemoryFlag()}}},
		After:  cli.ExitHelp,
		Examples: [][2]string{{"quantmf serve -max-memory 16GiB <calls >answers",
			"answers the frames in a file"}},
		Run: func(_ []string, s cli.Streams) error {
			defer in.Hold()()
			return serve(s.In, s.Out, in.MaxMemory, os.Getppid)
		},
	}
}

// server answers the frames of one client.
type server struct {
	limit int64              // bytes
	stop  context.CancelFunc // ends all calls

	reply sync.Mutex // of out
	out   *bufio.Writer

	lock    sync.Mutex // of what follows
	used    int64      // bytes that running calls have reserved
	running map[int64]context.CancelFunc
}

// memoryError is the error of a call for which there is no room.
type memoryError struct{ need, used, limit int64 }

func (e *memoryError) Error() string {
	s := fmt.Sprintf("quantmf: this needs about %s of memory, and %s are allowed",
		table.Size(float64(e.need)),
		table.Size(float64(e.limit)))
	if e.used > 0 {
		s += fmt.Sprintf(", of which other calls have %s", table.Size(float64(e.used)))
	}
	return s
}

// serve answers frames until the input ends or what stands there is no frame, or, by the end of the process,
// parent returns another number than at first. All calls have ended when it returns.
func serve(r io.Reader, w io.Writer, limit int64, parent func() int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &server{limit: limit, stop: cancel, out: bufio.NewWriterSize(w, 1<<16),
		running: map[int64]context.CancelFunc{}}
	var running sync.WaitGroup
	defer running.Wait()
	if err := s.write(map[string]any{"quantmf": version(), "protocol": protocol,
		"memory": limit}); err != nil {
		return err
	}
	go orphaned(ctx, parent)
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		req, err := s.read(in)
		var bad *badFrame
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &bad), errors.As(err, new(*memoryError)):
			s.answer(req.id, nil, err)
			continue
		case err != nil:
			cancel()
			s.answer(nil, nil, err)
			return &cli.InputError{Err: err}
		case req.call == "":
			s.cancel(req.cancel)
			continue
		}
		call, stop := context.WithCancel(ctx)
		if !s.begin(*req.id, stop) {
			stop()
			s.release(req.reserved)
			s.answer(nil, nil, &badFrame{"has the id of a call that is running"})
			continue
		}
		running.Go(func() {
			defer stop()
			result, err := req.run(call)
			s.end(*req.id)
			s.answer(req.id, result, err)
			s.release(req.reserved)
		})
	}
}

// orphaned ends the process when the program that started it has ended. That program may have left the other
// end of standard input to a child of its own, so that the input need not end with it.
func orphaned(ctx context.Context, parent func() int) {
	first := parent()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for parent() == first {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	os.Exit(cli.Interrupted)
}

// request is a call of the client.
type request struct {
	*server
	id       *int64
	cancel   int64 // the call to end, where call is ""
	call     string
	args     value
	reserved int64     // bytes
	told     time.Time // when progress was told
}

// read reads the next frame. The body of one that is not taken is left out.
func (s *server) read(r io.Reader) (*request, error) {
	req := &request{server: s}
	head, body, err := readLengths(r)
	if err != nil {
		return req, err
	}
	h, err := readHeader(r, head, body)
	req.id = h.ID
	if err == nil {
		err = req.take(h, head+body)
	}
	if errors.As(err, new(*badFrame)) || errors.As(err, new(*memoryError)) {
		if _, e := io.CopyN(io.Discard, r, body); e != nil {
			return req, errCut
		}
	}
	if err != nil {
		return req, err
	}
	for i := range h.Arrays {
		if err := h.Arrays[i].read(r); err != nil {
			return req, errCut
		}
	}
	req.args = value{h.Args, h.Arrays}
	return req, nil
}

// take checks what a header asks for, and reserves the bytes of its frame.
func (r *request) take(h header, size int64) error {
	switch {
	case h.Cancel != nil && h.Call == "" && len(h.Arrays) == 0:
		r.cancel = *h.Cancel
		return nil
	case h.ID == nil || h.Call == "":
		return &badFrame{"has no id or no call"}
	}
	r.call = h.Call
	return r.reserve(size)
}

// reserve reserves bytes for the call.
func (r *request) reserve(need int64) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	if need > r.limit-r.used {
		return &memoryError{need, r.used - r.reserved, r.limit}
	}
	r.used += need
	r.reserved += need
	return nil
}

func (s *server) release(bytes int64) {
	s.lock.Lock()
	s.used -= bytes
	s.lock.Unlock()
}

// begin notes that a call runs, unless one of its id does.
func (s *server) begin(id int64, stop context.CancelFunc) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.running[id] != nil {
		return false
	}
	s.running[id] = stop
	return true
}

func (s *server) end(id int64) {
	s.lock.Lock()
	delete(s.running, id)
	s.lock.Unlock()
}

// cancel ends a call, if it still runs.
func (s *server) cancel(id int64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if stop := s.running[id]; stop != nil {
		stop()
	}
}

// run makes the call. A panic, which no data should cause, is an error.
func (r *request) run(ctx context.Context) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("quantmf: %v", p)
		}
	}()
	return calls.Call{Ctx: ctx, Args: r.args, Host: r}.Answer(r.call)
}

// Progress tells the client how far the call is, at most twenty times a second.
func (r *request) Progress(phase string, done float64, epoch, epochs int, loss float64) {
	r.reply.Lock()
	due := time.Since(r.told) >= 50*time.Millisecond || done == 1
	if due {
		r.told = time.Now()
	}
	r.reply.Unlock()
	if due {
		r.write(map[string]any{"id": *r.id, "progress": map[string]any{"phase": phase, "done": done,
			"epoch": epoch, "epochs": epochs, "loss": loss}})
	}
}

// Room reserves the memory of a fit or a result.
func (r *request) Room(_, _ int, need, _ int64) error { return r.reserve(need) }

// answer writes the result of a call, or its error. A frame that is no call of the client has no id.
func (s *server) answer(id *int64, result any, err error) {
	var fields map[string]any
	var memory *memoryError
	switch {
	case err == nil:
		fields = map[string]any{"result": result}
	case errors.Is(err, context.Canceled):
		fields = map[string]any{"error": map[string]any{"kind": "Cancelled", "message": err.Error()}}
	case errors.As(err, &memory):
		fields = map[string]any{"error": map[string]any{"kind": "MemoryError", "message": err.Error(),
			"need": memory.need, "used": memory.used, "limit": memory.limit}}
	default:
		fields = map[string]any{"error": calls.Described(err)}
	}
	if fields["id"] = nil; id != nil {
		fields["id"] = *id
	}
	s.write(fields)
}

// write writes a frame. Where nobody reads it, all calls end.
func (s *server) write(fields map[string]any) error {
	s.reply.Lock()
	defer s.reply.Unlock()
	err := writeFrame(s.out, fields)
	if err != nil {
		s.stop()
	}
	return err
}
