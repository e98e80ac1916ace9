package deflate

// This file holds packing. What was written lies in a window; every place is looked up among earlier ones by the
// hash of its next four bytes, the nearest first, and the longest copy is taken unless the next place has a
// longer one. Symbols are gathered to blocks, each as stored bytes, in the fixed codes or in its own, whatever is shortest.

import (
	"io"
	"math/bits"
	"slices"
)

const (
	hashBits   = 15
	leastMatch = 4
	blockSize  = 1 << 14 // symbols of a block
	tries      = 128     // earlier places that are looked at, a quarter of them where the copy at hand is good
	goodMatch  = 8
	lazyMatch  = 16 // a copy so long is taken at once
)

// Writer packs.
type Writer struct {
	w   io.Writer
	err error
	out []byte // bits that are whole bytes, not written yet
	acc uint64
	n   uint

	data       []byte // the window and what lies ahead
	at, ends   int    // data[:at] was looked at, data[:ends] was written
	from, done int    // data[from:done] has the symbols of the block; from < 0 where some of it is gone
	waits      bool   // the byte before at waits for its symbol
	was, back  int    // the copy at the byte that waits: its length and distance

	// Places are counted from window+1 on, so that 0 is far from all, and modulo 1<<32.
	first   uint32 // that of data[0]
	heads   [1 << hashBits]uint32
	earlier [window]uint32 // by place: the one before with the same hash

	symbols []symbol
	count   [286]int32
	apart   [30]int32
}

// symbol is a byte, or the length of a copy and, from bit 16 on, its distance.
type symbol uint32

// NewWriter returns a writer that packs to w; Close ends it.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, data: make([]byte, 4*window), symbols: make([]symbol, 0, blockSize), first: window + 1}
}

// Write packs p, whole but for an error of the writer below.
func (w *Writer) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 && w.err == nil {
		if w.ends == len(w.data) {
			w.shift()
		}
		n := copy(w.data[w.ends:], p)
		w.ends += n
		p = p[n:]
		w.pack(mostCopied + leastMatch)
	}
	if w.err != nil {
		return 0, w.err
	}
	return all, nil
}

// Close packs the rest and ends the stream.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.pack(0)
	if w.waits {
		w.put(symbol(w.data[w.at-1]))
	}
	w.block(true)
	w.bits(0, -w.n&7)
	w.flush()
	return w.err
}

// shift drops what lies before the window.
func (w *Writer) shift() {
	by := w.at - window
	copy(w.data, w.data[by:w.ends])
	w.at -= by
	w.ends -= by
	w.from -= by
	w.done -= by
	w.first += uint32(by)
}

// hash is that of the four bytes at a place.
func (w *Writer) hash(at int) uint32 {
	return little(w.data[at:at+4:at+4]) * 0x9e3779b1 >> (32 - hashBits)
}

// pack makes symbols of what was written but for the last keep bytes.
func (w *Writer) pack(keep int) {
	for w.at < w.ends-keep && w.err == nil {
		length, distance := 0, 0
		if w.at+leastMatch <= w.ends {
			if w.was < lazyMatch {
				length, distance = w.longest()
			}
			w.enter(w.at)
		}
		switch {
		case w.was >= leastMatch && w.was >= length: // the copy at the byte before
			w.put(symbol(w.was) | symbol(w.back)<<16)
			end := w.at - 1 + w.was
			for w.at++; w.at < end; w.at++ {
				if w.at+leastMatch <= w.ends {
					w.enter(w.at)
				}
			}
			w.waits, w.was = false, 0
		default:
			if w.waits {
				w.put(symbol(w.data[w.at-1]))
			}
			w.waits, w.was, w.back = true, length, distance
			w.at++
		}
	}
}

// enter makes a place known.
func (w *Writer) enter(at int) {
	h := w.hash(at)
	place := w.first + uint32(at)
	w.earlier[place%window] = w.heads[h]
	w.heads[h] = place
}

// longest returns the longest copy at the place, the nearest of them, longer than that of the byte before.
func (w *Writer) longest() (length, distance int) {
	at := w.at
	here := w.data[at:min(at+mostCopied, w.ends)]
	length = max(w.was, leastMatch-1)
	left := tries
	if w.was >= goodMatch {
		left /= 4
	}
	place := w.first + uint32(at)
	back := place - w.heads[w.hash(at)]
	for most := uint32(min(window, at)); back > 0 && back <= most && left > 0; left-- {
		from := at - int(back)
		if length < len(here) && w.data[from+length] == here[length] {
			if n := same(w.data[from:], here); n > length {
				length, distance = n, int(back)
				if n == len(here) {
					break
				}
			}
		}
		before := place - w.earlier[(place-back)%window]
		if before <= back {
			break
		}
		back = before
	}
	if distance == 0 {
		return 0, 0
	}
	return length, distance
}

// same returns how many bytes a begins with as b does, which is no longer.
func same(a, b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if x := wide(a[n:n+8:n+8]) ^ wide(b[n:n+8:n+8]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for ; n < len(b) && a[n] == b[n]; n++ {
	}
	return n
}

func wide(b []byte) uint64 { return uint64(little(b)) | uint64(little(b[4:]))<<32 }

// put adds a symbol to the block.
func (w *Writer) put(s symbol) {
	w.symbols = append(w.symbols, s)
	if s>>16 == 0 {
		w.count[s]++
		w.done++
	} else {
		w.done += int(s & 0xffff)
		l, _ := lengthSymbol(int(s & 0xffff))
		w.count[257+l]++
		d, _ := distanceSymbol(int(s >> 16))
		w.apart[d]++
	}
	if len(w.symbols) == blockSize {
		w.block(false)
	}
}

// lengthSymbol and distanceSymbol return the symbol, less 257 for lengths, and what is added to its least.
func lengthSymbol(length int) (s, add int) {
	if length == mostCopied {
		return 28, 0
	}
	s = split(length-3, 2)
	return s, length - int(lengthLeast[s])
}

func distanceSymbol(distance int) (s, add int) {
	s = split(distance-1, 1)
	return s, distance - int(distanceLeast[s])
}

// split numbers the steps of a scale with 1<<part of them to each power of two, of which the first two have single values.
func split(v, part int) int {
	top := bits.Len(uint(v)) - 1
	if top < part+1 {
		return v
	}
	more := top - part
	return more<<part + v>>more
}

// bits adds the lowest n bits of v to the stream.
func (w *Writer) bits(v uint32, n uint) {
	w.acc |= uint64(v) << w.n
	w.n += n
	for w.n >= 8 {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
		w.n -= 8
	}
}

// flush writes whole bytes.
func (w *Writer) flush() {
	if len(w.out) > 0 && w.err == nil {
		_, w.err = w.w.Write(w.out)
	}
	w.out = w.out[:0]
}

// words are a Huffman code to write by: of each symbol the word, its first bit lowest, and the length.
type words struct {
	word   [288]uint16
	length [288]uint8
}

// fixedWords are the codes that are not sent.
var fixedWords = func() (w [2]words) {
	copy(w[0].length[:], fixedLengths[:])
	copy(w[1].length[:], fixedDistances[:])
	w[0].number()
	w[1].number()
	return w
}()

// number makes words of the lengths.
func (c *words) number() {
	var next [longest + 2]int
	for n := uint8(1); n <= longest; n++ {
		word := next[n]
		for s, length := range c.length {
			if length == n {
				c.word[s] = uint16(reversed(word, n))
				word++
			}
		}
		next[n+1] = word << 1
	}
}

// set makes the code of least cost for symbols that occur so often, with words of up to most bits: lengths by
// Huffman's method; those that are too long are cut, and the shortest of the others lengthened until there is room.
func (c *words) set(count []int32, most uint8) {
	clear(c.length[:])
	const symbols = 1 << 9
	var leaves []int // weights times symbols, plus the symbol
	for s, n := range count {
		if n > 0 {
			leaves = append(leaves, int(n)*symbols+s)
		}
	}
	if len(leaves) < 2 { // a code of one word is one of one bit
		for _, l := range leaves {
			c.length[l%symbols] = 1
		}
		c.number()
		return
	}
	slices.Sort(leaves)
	// Both leaves and nodes come in order of their weights.
	type node struct{ weight, left, right int } // of leaves, or ^ of nodes
	nodes := make([]node, 0, len(leaves)-1)
	leaf, inner := 0, 0
	least := func() (place, weight int) {
		if inner == len(nodes) || leaf < len(leaves) && leaves[leaf]/symbols <= nodes[inner].weight {
			leaf++
			return leaf - 1, leaves[leaf-1] / symbols
		}
		inner++
		return ^(inner - 1), nodes[inner-1].weight
	}
	for range len(leaves) - 1 {
		a, wa := least()
		b, wb := least()
		nodes = append(nodes, node{wa + wb, a, b})
	}
	// How many words of each length there are, from the root down.
	depth := make([]uint8, len(nodes))
	var counts [longest + 1]int
	for i := len(nodes) - 1; i >= 0; i-- {
		for _, to := range [2]int{nodes[i].left, nodes[i].right} {
			if d := depth[i] + 1; to < 0 {
				depth[^to] = d
			} else {
				counts[min(d, most)]++
			}
		}
	}
	room := 1 << most // of words of most bits
	for n := uint8(1); n <= most; n++ {
		room -= counts[n] << (most - n)
	}
	for ; room < 0; room++ {
		n := most - 1
		for counts[n] == 0 {
			n--
		}
		counts[n]--
		counts[n+1] += 2
		counts[most]--
	}
	next := 0
	for n := most; n > 0; n-- {
		for range counts[n] {
			c.length[leaves[next]%symbols] = n
			next++
		}
	}
	c.number()
}

// runs are lengths as they are sent, each with what is added in bits of its own.
type run struct{ symbol, add uint8 }

func runsOf(lengths []uint8) (runs []run) {
	for i := 0; i < len(lengths); {
		n := 1
		for i+n < len(lengths) && lengths[i+n] == lengths[i] {
			n++
		}
		i += n
		if lengths[i-1] == 0 {
			for n >= 3 {
				some := min(n, 138)
				if some <= 10 {
					runs = append(runs, run{17, uint8(some - 3)})
				} else {
					runs = append(runs, run{18, uint8(some - 11)})
				}
				n -= some
			}
		} else {
			runs = append(runs, run{lengths[i-1], 0})
			for n--; n >= 3; {
				some := min(n, 6)
				runs = append(runs, run{16, uint8(some - 3)})
				n -= some
			}
		}
		for range n {
			runs = append(runs, run{lengths[i-1], 0})
		}
	}
	return runs
}

var runMore = [19]uint8{16: 2, 17: 3, 18: 7}

// cost is how many bits the symbols take.
func (w *Writer) cost(c *[2]words) (bits int) {
	for s, n := range w.count {
		bits += int(n) * int(c[0].length[s])
		if s > 257 {
			bits += int(n) * int(lengthMore[s-257])
		}
	}
	for s, n := range w.apart {
		bits += int(n) * int(c[1].length[s]+distanceMore[s])
	}
	return bits
}

// block writes the symbols gathered.
func (w *Writer) block(last bool) {
	var end uint32
	if last {
		end = 1
	}
	w.count[256] = 1
	var own [2]words
	own[0].set(w.count[:], longest)
	own[1].set(w.apart[:], longest)
	literals, distances := 257, 1
	for s, n := range own[0].length {
		if n > 0 {
			literals = max(literals, s+1)
		}
	}
	for s, n := range own[1].length {
		if n > 0 {
			distances = max(distances, s+1)
		}
	}
	runs := runsOf(append(slices.Clone(own[0].length[:literals]), own[1].length[:distances]...))
	var often [19]int32
	for _, r := range runs {
		often[r.symbol]++
	}
	var lengths words
	lengths.set(often[:], 7)
	sent := 19
	for sent > 4 && lengths.length[order[sent-1]] == 0 {
		sent--
	}
	dynamic := 14 + 3*sent + w.cost(&own)
	for _, r := range runs {
		dynamic += int(lengths.length[r.symbol] + runMore[r.symbol])
	}
	fixed := w.cost(&fixedWords)
	stored := -1
	if w.from >= 0 {
		stored = 8 * (w.done - w.from + 5*((w.done-w.from)/0xffff+1))
	}
	codes := &own
	switch {
	case stored >= 0 && stored < min(fixed, dynamic):
		w.store(w.data[w.from:w.done], end)
		codes = nil
	case fixed <= dynamic:
		w.bits(end|1<<1, 3)
		codes = &fixedWords
	default:
		w.bits(end|2<<1, 3)
		w.bits(uint32(literals-257), 5)
		w.bits(uint32(distances-1), 5)
		w.bits(uint32(sent-4), 4)
		for _, s := range order[:sent] {
			w.bits(uint32(lengths.length[s]), 3)
		}
		for _, r := range runs {
			w.bits(uint32(lengths.word[r.symbol]), uint(lengths.length[r.symbol]))
			w.bits(uint32(r.add), uint(runMore[r.symbol]))
		}
	}
	if codes != nil {
		w.send(codes)
	}
	w.from = w.done
	w.symbols = w.symbols[:0]
	clear(w.count[:])
	clear(w.apart[:])
	w.flush()
}

// send writes the symbols and the end of the block.
func (w *Writer) send(c *[2]words) {
	for _, s := range w.symbols {
		if s>>16 == 0 {
			w.bits(uint32(c[0].word[s]), uint(c[0].length[s]))
			continue
		}
		l, add := lengthSymbol(int(s & 0xffff))
		w.bits(uint32(c[0].word[257+l]), uint(c[0].length[257+l]))
		w.bits(uint32(add), uint(lengthMore[l]))
		d, add := distanceSymbol(int(s >> 16))
		w.bits(uint32(c[1].word[d]), uint(c[1].length[d]))
		w.bits(uint32(add), uint(distanceMore[d]))
	}
	w.bits(uint32(c[0].word[256]), uint(c[0].length[256]))
}

// store writes bytes as they are.
func (w *Writer) store(p []byte, end uint32) {
	for {
		some := p[:min(len(p), 0xffff)]
		p = p[len(some):]
		if len(p) > 0 {
			w.bits(0, 3)
		} else {
			w.bits(end, 3)
		}
		w.bits(0, -w.n&7)
		n := uint32(len(some))
		w.bits(n, 16)
		w.bits(n^0xffff, 16)
		w.out = append(w.out, some...)
		if len(p) == 0 {
			return
		}
	}
}
