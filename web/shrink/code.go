package main

// This file holds the rewriting of functions. A function that Go's compiler makes for WebAssembly has
// numbered places at which it can go on. It begins with a loop, a block for each place, and a table of
// branches (br_table) that goes to the end of the block which the table has for the number in local 0:
//
//	loop block block block, local.get 0, br_table 0 0 1 2, end, code, end, code, end, code, end
//
// A jump within the function sets local 0 and branches to the loop. A function that was left while another
// goroutine ran is called again with the number of the place behind its call. The rewriting changes this:
//
//   - A jump to a place further down becomes a branch to the end of that place's block, without the table.
//   - Behind a call stands a branch to the end of the function, for when goroutines switch. Its depth is
//     another at every call; it becomes a return.
//   - Every number gets a block of its own, so that all tables begin alike: 0 1 2 3 and so on.
//   - An address relative to the pointer of the stack, local 1, is a sum of 64 bits that is cut to 32. The
//     offset of the load or the store takes it over.
//   - Instructions without an effect go.
//
// The numbers of places stay, and so do the tables by which the runtime finds them. A function that begins
// otherwise stays as it is.

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Instructions that the rewriting knows of.
const (
	opUnreachable = 0x00
	opNop         = 0x01
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = end
	opBranch      = 0x0c
	opBranchIf    = 0x0d
	opTable       = 0x0e
	opReturn      = 0x0f
	opCall        = 0x10
	opDrop        = 0x1a
	opSelect      = 0x1b
	opGet         = 0x20 // of a local
	opSet         = 0x21
	opTee         = 0x22
	opGetGlobal   = 0x23
	opSetGlobal   = 0x24
	opLoad        = 0x28 // the first of loads
	opStore       = 0x36 // and that of stores
	opLastStore   = 0x3e
	opConst32     = constant
	opConst64     = 0x42
	opAdd32       = 0x6a
	opAdd64       = 0x7c
	opWrap        = 0xa7 // i32.wrap_i64
	opExtend      = 0xad // i64.extend_i32_u

	noResult = 0x40 // of a block
	counter  = 0    // the local that names a place
	pointer  = 1    // the local of the pointer of the stack
)

// instruction is one of a function: its code and what follows the code. An instruction with one number has it
// in number: a local, a depth or a constant. Loads and stores have their offset there.
type instruction struct {
	op     byte
	number int64
	align  byte   // of loads and stores
	rest   []byte // of all others
}

// one is an instruction of a number.
func one(op byte, number int) instruction { return instruction{op: op, number: int64(number)} }

// opening is the beginning of a block.
func opening(op byte) instruction { return instruction{op: op, rest: []byte{noResult}} }

func is(i instruction, op byte, number int64) bool { return i.op == op && i.number == number }

// read returns the first instruction of code and its length, 0 where there is none that is known.
func read(code []byte) (i instruction, n int) {
	skip := func(numbers int) {
		for range numbers {
			_, m := binary.Uvarint(code[min(n, len(code)):])
			if m <= 0 {
				n = len(code) + 1
				return
			}
			n += m
		}
	}
	if len(code) == 0 {
		return i, 0
	}
	i.op, n = code[0], 1
	switch op := i.op; {
	case op == opBranch, op == opBranchIf, op == opCall, opGet <= op && op <= opSetGlobal:
		v, m := binary.Uvarint(code[1:])
		if m <= 0 || v > 1<<32 {
			return i, 0
		}
		i.number = int64(v)
		return i, 1 + m
	case op == opConst32, op == opConst64:
		v, m := signed(code[1:])
		if m == 0 {
			return i, 0
		}
		i.number = v
		return i, 1 + m
	case opLoad <= op && op <= opLastStore:
		if len(code) < 3 || code[1] >= 0x80 {
			return i, 0
		}
		v, m := binary.Uvarint(code[2:])
		if m <= 0 || v >= 1<<32 {
			return i, 0
		}
		i.align, i.number = code[1], int64(v)
		return i, 2 + m
	// and the size of memory, asked for or changed
	case op == opBlock, op == opLoop, op == opIf, op == 0x3f, op == 0x40:
		n++
	case op == opTable:
		count, _ := binary.Uvarint(code[1:])
		skip(int(min(count, uint64(len(code)))) + 2)
	case op == 0x11: // call_indirect
		skip(2)
	case op == 0x43: // f32.const
		n += 4
	case op == 0x44: // f64.const
		n += 8
	case op == 0xfc:
		if len(code) > 1 {
			switch n = 2; code[1] {
			case 8, 10: // memory.init, memory.copy
				n += 2
			case 11: // memory.fill
				n++
			}
		}
	case op <= opNop, op == 0x05, op == opEnd, op == opReturn, op == opDrop, op == opSelect, 0x45 <= op &&
		op <= 0xc4:
	default:
		return i, 0
	}
	if n > len(code) {
		return i, 0
	}
	i.rest = code[1:n]
	return i, n
}

// append returns code and behind it the instruction.
func (i instruction) append(code []byte) []byte {
	code = append(code, i.op)
	switch op := i.op; {
	case op == opBranch, op == opBranchIf, op == opCall, opGet <= op && op <= opSetGlobal:
		return binary.AppendUvarint(code, uint64(i.number))
	case op == opConst32, op == opConst64:
		return appendSigned(code, i.number)
	case opLoad <= op && op <= opLastStore:
		return binary.AppendUvarint(append(code, i.align), uint64(i.number))
	}
	return append(code, i.rest...)
}

// takes is how many values an instruction takes from the stack of values and how many it puts there. It is
// not ok for an instruction that changes where the code goes on.
func (i instruction) takes() (in, out int, ok bool) {
	switch op := i.op; {
	case op == opGet, op == opGetGlobal, op == opConst32, op == opConst64, op == 0x43, op == 0x44:
		return 0, 1, true
	case op == opSet, op == opSetGlobal, op == opDrop:
		return 1, 0, true
	case op == opTee, opLoad <= op && op < opStore:
		return 1, 1, true
	case opStore <= op && op <= opLastStore:
		return 2, 0, true
	case op == opSelect:
		return 3, 1, true
	case op == 0x45, op == 0x50, 0x67 <= op && op <= 0x69, 0x79 <= op && op <= 0x7b, 0x8b <= op &&
		op <= 0x91, 0x99 <= op && op <= 0x9f, 0xa7 <= op && op <= 0xc4:
		return 1, 1, true // of one number
	case 0x46 <= op && op <= 0xa6:
		return 2, 1, true // of two
	}
	return 0, 0, false
}

// bodiesOf returns the functions of a section of code, locals included.
func bodiesOf(section []byte) (bodies [][]byte, err error) {
	count, at := binary.Uvarint(section)
	if at <= 0 {
		return nil, errModule
	}
	for range count {
		size, n := binary.Uvarint(section[min(at, len(section)):])
		if n <= 0 || size > uint64(len(section)-at-n) {
			return nil, errModule
		}
		at += n
		bodies = append(bodies, section[at:at+int(size)])
		at += int(size)
	}
	if at != len(section) {
		return nil, errModule
	}
	return bodies, nil
}

// codeOf returns the section of code of functions.
func codeOf(bodies [][]byte) []byte {
	out := binary.AppendUvarint(nil, uint64(len(bodies)))
	for _, body := range bodies {
		out = append(binary.AppendUvarint(out, uint64(len(body))), body...)
	}
	return out
}

// parsed returns the locals of a function, as they are written, and its instructions without those that do
// nothing.
func parsed(body []byte) (locals []byte, code []instruction, err error) {
	at := 0
	groups, n := binary.Uvarint(body)
	for at = n; groups > 0 && n > 0; groups-- {
		_, n = binary.Uvarint(body[min(at, len(body)):])
		at += n + 1
	}
	if n <= 0 || at > len(body) {
		return nil, nil, errModule
	}
	locals = body[:at]
	for at < len(body) {
		i, n := read(body[at:])
		if n == 0 {
			return nil, nil, errModule
		}
		at += n
		if i.op != opNop {
			code = append(code, i)
		}
	}
	return locals, code, nil
}

// rewritten returns the body of a function, locals included, rewritten as the head of this file says. A
// function that begins otherwise comes back as it is.
func rewritten(body []byte) ([]byte, error) {
	locals, code, err := parsed(body)
	if err != nil {
		return nil, err
	}
	f, ok := placesOf(code)
	if !ok {
		return body, nil
	}
	code, ok = f.jumps(addresses(code))
	if !ok {
		return body, nil
	}
	out := bytes.Clone(locals)
	for _, i := range code {
		out = i.append(out)
	}
	return out, nil
}

// addresses returns code whose addresses relative to the pointer of the stack are offsets of the load or the
// store that takes them, or else sums of 32 bits. No such sum goes beyond 32 bits, since the stack lies far
// from the end of memory.
func addresses(code []instruction) []instruction {
	out := make([]instruction, 0, len(code))
	for at := 0; at < len(code); at++ {
		i := code[at]
		if !is(i, opGet, pointer) || at+2 >= len(code) || code[at+1].op != opExtend {
			out = append(out, i)
			continue
		}
		offset, behind := int64(0), at+2
		if behind+2 < len(code) && code[behind].op == opConst64 && code[behind+1].op == opAdd64 {
			offset, behind = code[behind].number, behind+2
		}
		if code[behind].op != opWrap || offset < 0 || offset >= 1<<30 {
			out = append(out, i)
			continue
		}
		behind++
		out = append(out, i)
		if user := userOf(code[behind:]); user >= 0 && code[behind+user].number+offset < 1<<30 {
			code[behind+user].number += offset
		} else if offset > 0 {
			out = append(out, one(opConst32, int(offset)), instruction{op: opAdd32})
		}
		at = behind - 1
	}
	return out
}

// userOf returns the index of the load or the store that takes as its address the value which is on top of
// the stack of values before code, -1 if anything else takes it.
func userOf(code []instruction) int {
	above := 0 // how many values lie above that value
	for at, i := range code {
		in, out, ok := i.takes()
		switch {
		case !ok:
			return -1
		case in > above:
			if opLoad <= i.op && i.op <= opLastStore && in == above+1 {
				return at
			}
			return -1
		}
		above += out - in
	}
	return -1
}

// places is how a function begins.
type places struct {
	head     []instruction // what stands before all blocks
	returns  bool          // whether the outermost block is the one at whose end the function returns 1
	loop     bool          // whether there is a loop around the blocks of places
	of       []int         // the place of each number, from 0 on; the last entry is for all larger numbers
	first    []int         // the first number of each place
	codeFrom int           // the index of the first instruction behind the table
}

// placesOf returns how a function begins. It is not ok for a function that begins otherwise.
func placesOf(code []instruction) (f places, ok bool) {
	if len(code) < 3 || !is(code[0], opGetGlobal, 0) || !is(code[1], opSet, pointer) {
		return f, false
	}
	f.head = code[:2]
	at := 2
	for at < len(code) && (code[at].op == opBlock || code[at].op == opLoop) {
		at++
	}
	openings := code[2:at]
	if at+2 >= len(code) || !is(code[at], opGet, counter) || code[at+1].op != opTable ||
		code[at+2].op != opEnd {
		return f, false
	}
	rest := code[at+1].rest
	_, n := binary.Uvarint(rest)
	for rest = rest[n:]; len(rest) > 0; rest = rest[n:] {
		var v uint64
		v, n = binary.Uvarint(rest)
		if place := int(v); place == len(f.first) {
			f.first = append(f.first, len(f.of))
		} else if place != len(f.first)-1 {
			return f, false
		}
		f.of = append(f.of, int(v))
	}
	outer := len(openings) - len(f.first)
	loop := slices.IndexFunc(openings, func(i instruction) bool { return i.op == opLoop })
	f.loop = loop >= 0
	f.returns = outer == 2 || outer == 1 && !f.loop
	f.codeFrom = at + 3
	if f.returns {
		last := code[max(len(code)-4, 0):]
		if last[0].op != opUnreachable || last[1].op != opEnd || !is(last[2], opConst32, 1) ||
			last[3].op != opEnd {
			return f, false
		}
	}
	return f, outer >= 0 && outer <= 2 && (!f.loop || loop == outer-1) && (outer < 2 || f.loop)
}

// jumps returns the function with a block for each number, branches in place of jumps further down, and
// returns behind calls. It is not ok for a function with a branch that none of this describes.
//
// Blocks end in the order of their numbers. Once p places have ended, the blocks of the first ends(p) numbers
// have ended. A branch to the block of a number is as deep as there are open blocks of smaller numbers, and
// open blocks within the place.
func (f places) jumps(code []instruction) ([]instruction, bool) {
	count := len(f.of)
	out := slices.Clone(f.head)
	if f.loop {
		out = append(out, opening(opLoop))
	}
	for range count {
		out = append(out, opening(opBlock))
	}
	table := binary.AppendUvarint(nil, uint64(count-1))
	for number := range count {
		table = binary.AppendUvarint(table, uint64(number))
	}
	out = append(out, one(opGet, counter), instruction{op: opTable, rest: table}, instruction{op: opEnd})
	code = code[f.codeFrom:]
	// how many places have ended, and how many blocks within the code of a place are open
	ended, depth := 1, 0
	ends := func(place int) int {
		if place < len(f.first) {
			return f.first[place]
		}
		return count
	}
	for range ends(1) - 1 {
		out = append(out, instruction{op: opEnd})
	}
	for at := 0; at < len(code); at++ {
		i := code[at]
		toLoop := int64(depth + len(f.first) - ended)
		toEnd := toLoop
		if f.loop {
			toEnd++
		}
		switch {
		case i.op == opBlock || i.op == opLoop || i.op == opIf:
			depth++
		case i.op == opEnd && depth > 0:
			depth--
		case i.op == opEnd && ended < len(f.first):
			for range ends(ended+1) - ends(ended) - 1 {
				out = append(out, i)
			}
			ended++
		case f.returns && is(i, opBranchIf, toEnd):
			out = append(out, opening(opIf), one(opConst32, 1), instruction{op: opReturn})
			i = instruction{op: opEnd}
		case f.loop && i.op == opConst32 && i.number >= 0 && at+2 < len(code) &&
			is(code[at+1], opSet, counter) && is(code[at+2], opBranch, toLoop):
			place := f.of[min(i.number, int64(count-1))]
			if place < ended {
				// Up, by the loop.
				out = append(out, i, code[at+1])
				i = one(opBranch, depth+count-ends(ended))
				at += 2
				break
			}
			i = one(opBranch, depth+ends(place)-ends(ended))
			at += 2
			if last := len(out) - 1; depth > 0 && out[last].op == opIf && code[at+1].op == opEnd {
				out = out[:last]
				i = one(opBranchIf, int(i.number)-1)
				depth--
				at++
			}
		case (i.op == opBranch || i.op == opBranchIf) && i.number >= int64(depth), i.op == opTable:
			return nil, false
		}
		out = append(out, i)
	}
	if f.returns {
		// Nothing branches to the block whose end was before the last two instructions.
		out = append(out[:len(out)-3], instruction{op: opEnd})
	}
	return out, true
}
