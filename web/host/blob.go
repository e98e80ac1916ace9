//go:build js && wasm

package host

// This file reads files. A Blob stays where the browser has it, usually on the disk, and is read piece by
// piece.

import (
	"errors"
	"io"
	"syscall/js"
)

// piece is how many bytes of a Blob are read at once.
const piece = 1 << 20

// Blob reads a Blob of JavaScript.
type Blob struct {
	ctx      *Context
	of       js.Value
	size, at int64
	ahead    []byte // the bytes from at on that have been read
	told     func(bytes int64)
	all      int64 // bytes read; bytes that are read twice count twice
}

// Blob returns the argument of this name. told is called after each piece with the number of
// bytes read so far.
func (c Call) Blob(name string, told func(bytes int64)) *Blob {
	v := c.Args.Get(name)
	return &Blob{ctx: c.Ctx, of: v, size: int64(v.Get("size").Float()), told: told}
}

func (b *Blob) Read(p []byte) (int, error) {
	if len(b.ahead) == 0 {
		if b.at >= b.size {
			return 0, io.EOF
		}
		b.ctx.Err() // lets the event loop run once, or ends the call
		end := min(b.at+piece, b.size)
		buffer, err := await(b.of.Call("slice", float64(b.at), float64(end)).Call("arrayBuffer"))
		if err != nil {
			return 0, err
		}
		b.ahead = Bytes(js.Global().Get("Uint8Array").New(buffer))
		b.all += int64(len(b.ahead))
		b.told(b.all)
	}
	n := copy(p, b.ahead)
	b.ahead = b.ahead[n:]
	b.at += int64(n)
	return n, nil
}

func (b *Blob) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.size
	}
	if offset < 0 {
		return b.at, errors.New("quantmf: a place before the start of the file")
	}
	if offset != b.at {
		b.at, b.ahead = offset, nil
	}
	return offset, nil
}

// await waits for a promise.
func await(promise js.Value) (js.Value, error) {
	type outcome struct {
		v  js.Value
		ok bool
	}
	came := make(chan outcome, 1)
	settled := func(ok bool) js.Func {
		return js.FuncOf(func(_ js.Value, a []js.Value) any {
			came <- outcome{a[0], ok}
			return nil
		})
	}
	kept, broken := settled(true), settled(false)
	defer kept.Release()
	defer broken.Release()
	promise.Call("then", kept, broken)
	o := <-came
	if !o.ok {
		return js.Value{}, errors.New("quantmf: the file cannot be read: " +
			js.Global().Get("String").Invoke(o.v).String())
	}
	return o.v, nil
}
