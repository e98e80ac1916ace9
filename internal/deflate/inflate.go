// Package deflate packs bytes and unpacks them: the method deflate (RFC 1951), and gzip (RFC 1952) and zlib
// (RFC 1950), which frame it. It is here because packages compress/flate, gzip and zlib link fmt, reflect
// and os, a fifth of a module of WebAssembly that reads tables.
//
// The stream is one of bits, the lowest of a byte first. A block holds its bytes as they are, or as
// symbols of two Huffman codes:
//
//	0 ... 255    a byte
//	256          the end of the block
//	257 ... 285  the length of a copy, 3 to 258, with more bits behind; then a symbol of the second code, its
//	             distance, 1 to 32768, with more bits behind
package deflate

// This file holds unpacking.

import (
	"io"
	"strconv"
)

// CorruptError is the offset of what no packer writes.
type CorruptError int64

func (e CorruptError) Error() string {
	return "flate: corrupt input before offset " + strconv.FormatInt(int64(e), 10)
}

const (
	window     = 1 << 15 // the largest distance of a copy
	mostCopied = 258
	longest    = 15 // bits of a code
	quick      = 10 // bits that a code is looked up by at once
	ahead      = 1 << 16
)

// The lengths of copies by their symbols less 257, and distances by theirs: the least, and how many more bits
// say what is to be added.
var (
	lengthLeast, lengthMore     = steps(3, 4, 28)
	distanceLeast, distanceMore = steps(1, 2, 30)
)

// steps returns the least values, from first on, of count symbols, of which each group of so many has a bit more
// than the one before, the first two groups none.
func steps(first, group, count int) (least [30]uint16, more [30]uint8) {
	at := first
	for s := range count {
		if s >= 2*group {
			more[s] = uint8(s/group - 1)
		}
		least[s] = uint16(at)
		at += 1 << more[s]
	}
	if group == 4 { // the longest copy has a symbol of its own
		least[28] = mostCopied
	}
	return least, more
}

// code decodes a Huffman code. Words of up to quick bits are looked up: first has the symbol and, in its
// lowest four bits, the length, 0 where the word is longer. Others are counted through: words of a length are
// successive numbers, their symbols those of sorted in order.
type code struct {
	first  [1 << quick]uint16
	counts [longest + 1]uint16
	sorted [288]uint16
}

// set makes the code whose words have these lengths, 0 for symbols that do not occur. It is not ok if words are lacking or too
// many, but for a code of one word, of one bit.
func (c *code) set(lengths []uint8) (ok bool) {
	clear(c.counts[:])
	for _, n := range lengths {
		c.counts[n]++
	}
	c.counts[0] = 0
	var next, at [longest + 2]int // the next word of a length; where its symbols begin
	room, words := 1, 0
	for n := 1; n <= longest; n++ {
		room = room<<1 - int(c.counts[n])
		if room < 0 {
			return false
		}
		next[n+1] = (next[n] + int(c.counts[n])) << 1
		at[n+1] = at[n] + int(c.counts[n])
		words += int(c.counts[n])
	}
	if room > 0 && words > 0 && !(words == 1 && c.counts[1] == 1) {
		return false
	}
	clear(c.first[:])
	for s, n := range lengths {
		if n == 0 {
			continue
		}
		c.sorted[at[n]] = uint16(s)
		at[n]++
		if n <= quick {
			for w := reversed(next[n], n); w < 1<<quick; w += 1 << n {
				c.first[w] = uint16(s)<<4 | uint16(n)
			}
		}
		next[n]++
	}
	return true
}

// reversed returns the lowest n bits of w, the first last.
func reversed(w int, n uint8) (r int) {
	for range n {
		r = r<<1 | w&1
		w >>= 1
	}
	return r
}

// bitReader reads bits of r.
type bitReader struct {
	r        io.Reader
	buf      []byte // what was read ahead: buf[at:end]
	at, end  int
	passed   int64 // bytes before buf[0]
	bits     uint64
	n        uint // how many bits there are
	ended    error
	endsBits uint // bits of zeros behind the end, which were asked for
}

func newBitReader(r io.Reader) *bitReader { return &bitReader{r: r, buf: make([]byte, ahead)} }

// more reads on.
func (b *bitReader) more() bool {
	b.passed += int64(b.end)
	b.at, b.end = 0, 0
	for empty := 0; b.ended == nil && b.end == 0; empty++ {
		b.end, b.ended = b.r.Read(b.buf)
		if empty == 100 {
			b.ended = io.ErrNoProgress
		}
	}
	return b.end > 0
}

// fill sees to it that there are 48 bits at least, zeros behind the end of the input.
func (b *bitReader) fill() {
	if b.at+8 <= b.end {
		from := b.buf[b.at : b.at+8 : b.at+8]
		b.bits |= (uint64(from[0]) | uint64(from[1])<<8 | uint64(from[2])<<16 | uint64(from[3])<<24 |
			uint64(from[4])<<32 | uint64(from[5])<<40 | uint64(from[6])<<48 | uint64(from[7])<<56) << b.n
		b.at += int(63-b.n) >> 3
		b.n |= 56
		return
	}
	for b.n < 48 {
		if b.at == b.end && !b.more() {
			b.endsBits += 48 - b.n
			b.n = 48
			return
		}
		b.bits |= uint64(b.buf[b.at]) << b.n
		b.at++
		b.n += 8
	}
}

// take returns n bits of those that there are.
func (b *bitReader) take(n uint) int {
	v := b.bits & (1<<n - 1)
	b.bits >>= n
	b.n -= n
	return int(v)
}

// over tells whether bits were taken that the input did not have.
func (b *bitReader) over() bool { return b.endsBits > b.n }

// failure is why over is so.
func (b *bitReader) failure() error {
	if b.ended == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return b.ended
}

// corrupt is the fault of what was taken last.
func (b *bitReader) corrupt() error {
	if b.over() {
		return b.failure()
	}
	return CorruptError(b.passed + int64(b.at) - int64((b.n-b.endsBits)/8))
}

// align gives back whole bytes: the next comes from ReadByte.
func (b *bitReader) align() {
	b.n -= b.endsBits
	b.take(b.n % 8)
	// Bytes read ahead lie in buf before at, unless it was filled anew: then they stay as bits.
	if back := int(b.n / 8); back <= b.at {
		b.at -= back
		b.n = 0
	}
	b.bits &= 1<<b.n - 1
	b.endsBits = 0
}

// ReadByte reads a byte behind align.
func (b *bitReader) ReadByte() (byte, error) {
	if b.n > 0 {
		return byte(b.take(8)), nil
	}
	if b.at == b.end && !b.more() {
		return 0, b.ended
	}
	b.at++
	return b.buf[b.at-1], nil
}

// full fills p behind align, and returns how much of it it has filled.
func (b *bitReader) full(p []byte) (n int, err error) {
	for n < len(p) {
		if b.n == 0 && b.at < b.end {
			some := copy(p[n:], b.buf[b.at:b.end])
			b.at += some
			n += some
			continue
		}
		if p[n], err = b.ReadByte(); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
		n++
	}
	return n, nil
}

// Reader unpacks.
type Reader struct {
	in                *bitReader
	out               []byte // out[sent:made] is to be read, out[:sent] what copies are taken of
	sent, made        int
	literals, offsets code
	state             state
	last              bool // the block is
	left              int  // bytes of a stored block
	err               error
}

type state byte

const (
	atBlock state = iota // where a block begins
	inStored
	inCodes
	atEnd
)

// NewReader returns a reader of what r has, packed; it reads ahead.
func NewReader(r io.Reader) *Reader { return newReader(newBitReader(r)) }

func newReader(in *bitReader) *Reader { return &Reader{in: in, out: make([]byte, 4*window)} }

// again begins another stream where the last ended.
func (f *Reader) again() {
	f.sent, f.made, f.state, f.last, f.err = 0, 0, atBlock, false, nil
}

func (f *Reader) Read(p []byte) (int, error) {
	for f.sent == f.made {
		if f.err != nil {
			return 0, f.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		f.step()
	}
	n := copy(p, f.out[f.sent:f.made])
	f.sent += n
	return n, nil
}

// step makes some bytes, or sets err. All that was made has been sent.
func (f *Reader) step() {
	if f.made > 3*window {
		copy(f.out, f.out[f.made-window:f.made])
		f.sent, f.made = window, window
	}
	switch f.state {
	case atBlock:
		f.err = f.block()
	case inStored:
		f.err = f.stored()
	case inCodes:
		f.err = f.codes()
	case atEnd:
		f.err = io.EOF
	}
}

// next goes on behind a block.
func (f *Reader) next() {
	f.state = atBlock
	if f.last {
		f.in.align()
		f.state = atEnd
	}
}

// block reads the head of a block.
func (f *Reader) block() error {
	in := f.in
	in.fill()
	f.last = in.take(1) == 1
	kind := in.take(2)
	if in.over() {
		return in.failure()
	}
	switch kind {
	case 0:
		in.align()
		var size [4]byte
		if _, err := in.full(size[:]); err != nil {
			return err
		}
		f.left = int(size[0]) | int(size[1])<<8
		if f.left != 0xffff-(int(size[2])|int(size[3])<<8) {
			return in.corrupt()
		}
		f.state = inStored
		if f.left == 0 {
			f.next()
		}
		return nil
	case 1:
		f.literals.set(fixedLengths[:])
		f.offsets.set(fixedDistances[:])
	case 2:
		if err := f.lengths(); err != nil {
			return err
		}
	default:
		return in.corrupt()
	}
	f.state = inCodes
	return nil
}

// fixedLengths and fixedDistances are the codes that are not sent.
var fixedLengths, fixedDistances = func() (l [288]uint8, d [32]uint8) {
	for s := range l {
		switch {
		case s < 144:
			l[s] = 8
		case s < 256:
			l[s] = 9
		case s < 280:
			l[s] = 7
		default:
			l[s] = 8
		}
	}
	for s := range d {
		d[s] = 5
	}
	return l, d
}()

// order is that in which the lengths of the code of lengths are sent.
var order = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// lengths reads both codes: the lengths of their words, themselves in a code, with runs.
func (f *Reader) lengths() error {
	in := f.in
	in.fill()
	literals, distances, count := in.take(5)+257, in.take(5)+1, in.take(4)+4
	if literals > 286 || distances > 30 {
		return in.corrupt()
	}
	var all [286 + 30]uint8
	for _, s := range order[:count] {
		in.fill()
		all[s] = uint8(in.take(3))
	}
	if !f.literals.set(all[:19]) {
		return in.corrupt()
	}
	clear(all[:19])
	for i := 0; i < literals+distances; {
		s, err := f.symbol(&f.literals)
		if err != nil {
			return err
		}
		if s < 16 {
			all[i] = uint8(s)
			i++
			continue
		}
		var run int
		var length uint8
		switch s {
		case 16:
			if i == 0 {
				return in.corrupt()
			}
			run, length = 3+in.take(2), all[i-1]
		case 17:
			run = 3 + in.take(3)
		default:
			run = 11 + in.take(7)
		}
		if i+run > literals+distances {
			return in.corrupt()
		}
		for range run {
			all[i] = length
			i++
		}
	}
	if in.over() {
		return in.failure()
	}
	if !f.literals.set(all[:literals]) || !f.offsets.set(all[literals:literals+distances]) {
		return in.corrupt()
	}
	return nil
}

// symbol reads a symbol; 33 bits are there behind it.
func (f *Reader) symbol(c *code) (int, error) {
	f.in.fill()
	s := f.decode(c)
	if s < 0 || f.in.over() {
		return 0, f.in.corrupt()
	}
	return s, nil
}

// decode takes a symbol of the bits that there are, -1 where no word is.
func (f *Reader) decode(c *code) int {
	in := f.in
	if e := c.first[in.bits&(1<<quick-1)]; e != 0 {
		in.take(uint(e & 15))
		return int(e >> 4)
	}
	w, first, at := 0, 0, 0
	bits, there := in.bits, in.n
	for n := 1; n <= longest; n++ {
		w |= in.take(1)
		count := int(c.counts[n])
		if w-first < count {
			return int(c.sorted[at+w-first])
		}
		at += count
		first = (first + count) << 1
		w <<= 1
	}
	// The code has no word, or one of one bit, and that is all that was looked at.
	in.bits, in.n = bits, there
	in.take(uint(c.counts[1]))
	return -1
}

// stored copies bytes as they are.
func (f *Reader) stored() error {
	n, err := f.in.full(f.out[f.made:min(f.made+f.left, len(f.out))])
	f.made += n
	if f.left -= n; f.left == 0 {
		f.next()
	}
	return err
}

// codes decodes symbols as long as there is room for the longest copy.
func (f *Reader) codes() error {
	in, out, made := f.in, f.out, f.made
	defer func() { f.made = made }()
	for made <= len(out)-mostCopied {
		in.fill()
		s := f.decode(&f.literals)
		if in.over() || s < 0 || s > 285 {
			return in.corrupt()
		}
		if s < 256 {
			out[made] = byte(s)
			made++
			continue
		}
		if s == 256 {
			f.next()
			return nil
		}
		s -= 257
		length := int(lengthLeast[s]) + in.take(uint(lengthMore[s]))
		in.fill()
		d := f.decode(&f.offsets)
		if in.over() || d < 0 || d > 29 {
			return in.corrupt()
		}
		distance := int(distanceLeast[d]) + in.take(uint(distanceMore[d]))
		if in.over() || distance > made {
			return in.corrupt()
		}
		if distance >= length {
			copy(out[made:made+length], out[made-distance:])
			made += length
			continue
		}
		for from := made - distance; length > 0; length-- {
			out[made] = out[from]
			made++
			from++
		}
	}
	return nil
}
