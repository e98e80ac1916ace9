package main

// This file holds what long work goes on from: the file with the state of a fit, and the flags of it, which
// rank has as well.

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/cli"
	"github.com/quantmf/quantmf/internal/table"
)

// checkpoint keeps the state of a fit in a file; in none where path is "".
type checkpoint struct {
	path          string
	resume, force bool

	state   []byte // the newest
	written time.Time
	stale   bool // the file is older than the state
}

// group are the flags: what is kept, in a FILE or a DIR, and on what condition the work goes on.
func (c *checkpoint) group(value, keep, goesOn string) cli.Group {
	path := cli.File(&c.path, "checkpoint", keep+". What exists already is refused without -resume or -force")
	path.Value = value
	return cli.Group{Heading: "Work that can stop and go on", Flags: []*cli.Flag{path,
		cli.Aside(cli.Switch(&c.resume, "resume", "go on from the -checkpoint, if there is one"+goesOn)),
		cli.Aside(cli.Switch(&c.force, "force", "start anew over an existing -checkpoint")),
	}}
}

// check reports flags that exclude each other, and a file that would be lost.
func (c *checkpoint) check() error {
	switch {
	case c.resume && c.path == "":
		return cli.UsageError("-resume: needs the -checkpoint FILE to go on from")
	case c.force && c.path == "":
		return cli.UsageError("-force: needs the -checkpoint FILE to start anew over")
	case c.resume && c.force:
		return cli.UsageError("-force: -resume goes on from the file, -force starts anew over it: give one " +
			"of them")
	case c.path == "-":
		return cli.UsageError("-checkpoint -: must be a file")
	case c.path == "":
		return nil
	}
	info, err := os.Stat(c.path)
	switch {
	case err != nil:
		return nil
	case !info.Mode().IsRegular() && !info.IsDir(): // a pipe would be waited for
		return cli.UsageError("-checkpoint " + c.path + ": is no regular file")
	case c.resume || c.force || info.Size() == 0:
		return nil
	}
	if within, err := os.ReadDir(c.path); err == nil && len(within) == 0 {
		return nil
	}
	return cli.Usagef("-checkpoint %s: it exists: -resume goes on from it, -force starts anew over it",
		c.path)
}

// checkpointEvery is how often the file is written while a fit runs.
var checkpointEvery = 10 * time.Second

// save takes a state, and writes the file every checkpointEvery.
func (c *checkpoint) save(state []byte) error {
	c.state, c.stale = state, true
	if time.Since(c.written) < checkpointEvery {
		return nil
	}
	return c.flush()
}

// flush writes the newest state to the file.
func (c *checkpoint) flush() error {
	if !c.stale {
		return nil
	}
	c.written, c.stale = time.Now(), false
	return cli.WriteData(c.path, c.state)
}

// prepareCheckpoint makes sure that the file can be written, and reads the state from which the fit goes on.
func (r *result) prepareCheckpoint(input os.FileInfo, messages io.Writer) error {
	c := &r.keep
	if c.path == "" {
		return nil
	}
	c.written = time.Now()
	out := &cli.Outputs{}
	defer out.Discard()
	if err := out.Open([]os.FileInfo{input}, c.path); err != nil {
		return err
	}
	r.options = append(r.options, quantmf.WithCheckpoint(1, c.save))
	if !c.resume {
		return nil
	}
	state, err := r.in.ReadBack(c.path)
	if err != nil {
		return err
	}
	if len(state) == 0 {
		const text = "there is nothing to go on from yet: the fit starts at the beginning"
		if r.in.Progress == "json" {
			return r.in.Warn(messages, c.path, text)
		}
		_, err := fmt.Fprintf(messages, "%s: %s\n", table.Shown(c.path), text)
		return err
	}
	r.options = append(r.options, quantmf.WithResume(state))
	return nil
}
