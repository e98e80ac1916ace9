package main

// This file holds the files that long work goes on from: the state of a fit, and the fits
// that a comparison of ranks has done. One process at a time may write such a file. The process holds a lock
// file beside it, which ends with the process, even if it is killed.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/quantmf/quantmf"
	"github.com/quantmf/quantmf/internal/table"
)

// checkpointFlags reports flags among -checkpoint, -resume and -force that exclude each other, and a file
// that would be lost.
func checkpointFlags(path string, resume, force bool) error {
	switch {
	case resume && path == "":
		return usageError("-resume: needs the -checkpoint FILE to go on from")
	case force && path == "":
		return usageError("-force: needs the -checkpoint FILE to start anew over")
	case resume && force:
		return usageError("-force: -resume goes on from the file, -force starts anew over it: give one " +
			"of them")
	case path == "-":
		return usageError("-checkpoint -: must be a file")
	case path == "" || resume || force:
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 && !info.IsDir() {
		return usageError(fmt.Sprintf("-checkpoint %s: the file exists: -resume goes on from it, -force "+
			"starts anew over it", path))
	}
	return nil
}

// lock is held on a checkpoint.
type lock struct {
	file *os.File
	path string
}

// lockBeside takes the lock of a file.
func lockBeside(path string) (*lock, error) {
	dir, base := filepath.Split(path)
	at := dir + "." + stem(base) + ".lock"
	for {
		file, free, err := openLocked(at)
		if err != nil {
			return nil, fmt.Errorf("cannot write %s: %w", at, err)
		}
		if !free {
			return nil, fmt.Errorf("%s is in use: another quantmf writes to it; wait for that one, or give "+
				"another -checkpoint", path)
		}
		// The process that held the lock before may have removed the file between the two steps.
		held, err := file.Stat()
		if now, lost := os.Stat(at); err == nil && lost == nil && os.SameFile(held, now) {
			temporary.add(at)
			return &lock{file, at}, nil
		}
		file.Close()
	}
}

func (l *lock) release() {
	endLock(l.file, l.path)
	temporary.remove(l.path)
}

// checkpoint keeps the state of a fit in a file.
type checkpoint struct {
	path    string
	state   []byte // the newest
	written time.Time
	stale   bool // the file is older than the state
	lock    *lock
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
	out := &outputs{}
	defer out.discard()
	if err := out.open(c.path, nil); err != nil {
		return err
	}
	if err := out.write(c.path,
		func(w io.Writer) error { _, err := w.Write(c.state); return err }); err != nil {
		return err
	}
	c.written, c.stale = time.Now(), false
	return out.commit()
}

// prepareCheckpoint makes sure that this process, and no other, can write the file, and reads the state from
// which the fit goes on.
func (r *result) prepareCheckpoint(input os.FileInfo, messages io.Writer) error {
	if r.checkpoint == "" {
		return nil
	}
	held, err := lockBeside(r.checkpoint)
	if err != nil {
		return err
	}
	r.keep = &checkpoint{path: r.checkpoint, written: time.Now(), lock: held}
	out := &outputs{}
	defer out.discard()
	if err := out.open(r.checkpoint, input); err != nil {
		return err
	}
	r.options = append(r.options, quantmf.WithCheckpoint(1, r.keep.save))
	if !r.resume {
		return nil
	}
	state, err := os.ReadFile(r.checkpoint)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(state) == 0:
		const text = "there is nothing to go on from yet: the fit starts at the beginning"
		if r.progress == "json" {
			return warn(messages, r.progress, r.checkpoint, text)
		}
		_, err := fmt.Fprintf(messages, "%s: %s\n", table.Shown(r.checkpoint), text)
		return err
	case err != nil:
		return &inputError{err}
	}
	r.options = append(r.options, quantmf.WithResume(state))
	return nil
}

// fitsDone is a file of the models of a comparison. It grows by one record a model: key, size, checksum,
// model. A last record that was cut off is left out.
type fitsDone struct {
	mutex  sync.Mutex
	file   *os.File
	path   string
	models map[uint64][]byte
	lock   *lock
}

// fitsMagic begins the file. The size and the text of identity (openFits) follow.
const fitsMagic = "quantmf fits done 1\n"

// mostModel bounds the size of one record.
const mostModel = 1 << 40

var crc = crc64.MakeTable(crc64.ECMA)

// openFits opens the file, and reads it if resume is set. identity is a text of everything that the models
// depend on beside their keys.
func openFits(path string, resume bool, input os.FileInfo, identity string) (*fitsDone, error) {
	if info, err := os.Stat(path); err == nil && input != nil && os.SameFile(info, input) {
		return nil, usageError(path + " is read itself: write to another file")
	}
	held, err := lockBeside(path)
	if err != nil {
		return nil, err
	}
	d := &fitsDone{path: path, models: map[uint64][]byte{}, lock: held}
	head := append(binary.LittleEndian.AppendUint64([]byte(fitsMagic), uint64(len(identity))), identity...)
	mode := os.O_RDWR | os.O_CREATE
	if !resume {
		mode |= os.O_TRUNC
	}
	if d.file, err = os.OpenFile(path, mode, 0o666); err != nil {
		held.release()
		return nil, fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := d.read(head); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// read reads the records, and cuts off a last one that is not whole.
func (d *fitsDone) read(head []byte) error {
	data, err := io.ReadAll(d.file)
	if err != nil {
		return &inputError{err}
	}
	good := 0
	switch {
	case len(data) == 0 || len(data) < len(head) && string(data) == string(head[:len(data)]):
	case len(data) < len(fitsMagic) || string(data[:len(fitsMagic)]) != fitsMagic:
		return &inputError{errors.New(d.path + ": this is no file of -checkpoint of quantmf rank")}
	case len(data) < len(head) || string(data[:len(head)]) != string(head):
		return usageError("-resume: " + d.path +
			" was made with other flags: give those, or -force to start anew")
	default:
		good = len(head)
		for b := data[good:]; len(b) >= 24; b = data[good:] {
			key, size, sum := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]),
				binary.LittleEndian.Uint64(b[16:])
			if size > mostModel || size > uint64(len(b)-24) || crc64.Checksum(b[24:24+size], crc) != sum {
				break
			}
			d.models[key] = b[24 : 24+size]
			good += 24 + int(size)
		}
	}
	if err := d.file.Truncate(int64(good)); err != nil {
		return fmt.Errorf("cannot write %s: %w", d.path, err)
	}
	if _, err := d.file.Seek(int64(good), io.SeekStart); err != nil {
		return err
	}
	if good == 0 {
		if _, err := d.file.Write(head); err != nil {
			return fmt.Errorf("cannot write %s: %w", d.path, err)
		}
	}
	return nil
}

// get returns the model of a key, nil if there is none.
func (d *fitsDone) get(key uint64) quantmf.Model {
	d.mutex.Lock()
	data := d.models[key]
	d.mutex.Unlock()
	if data == nil {
		return nil
	}
	m, err := quantmf.UnmarshalModel(data)
	if err != nil {
		return nil
	}
	return m
}

func (d *fitsDone) put(key uint64, m quantmf.Model) error {
	data, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	record := make([]byte, 0, 24+len(data))
	for _, v := range []uint64{key, uint64(len(data)), crc64.Checksum(data, crc)} {
		record = binary.LittleEndian.AppendUint64(record, v)
	}
	if _, err := d.file.Write(append(record, data...)); err != nil {
		return fmt.Errorf("cannot write %s: %w", d.path, err)
	}
	return nil
}

func (d *fitsDone) close() {
	d.file.Close()
	d.lock.release()
}

// remove removes the file when all fits are done.
func (d *fitsDone) remove() {
	d.file.Close()
	os.Remove(d.path)
}

// hashOf returns the key of a fit: a hash of the sizes that are tried and of the matrix, hidden cells
// included.
func hashOf(x quantmf.Mat, sizes ...int) uint64 {
	h := crc64.New(crc)
	var b [8]byte
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	for _, s := range append(sizes, x.Rows, x.Cols) {
		put(uint64(s))
	}
	for i := range x.Rows {
		for _, v := range x.Row(i) {
			put(math.Float64bits(v))
		}
	}
	return h.Sum64()
}
