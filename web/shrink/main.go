// Shrink makes a WebAssembly module that Go linked smaller, in its place, without another behaviour:
//
//	go run ./shrink app.wasm
//
// Data: the linker cuts the initial memory where a few bytes are zero, into tens of thousands of segments
// with a head each. They become one segment up to the next long run of zeros, which compress to nothing.
//
// Line tables: of each function Go keeps for each place in it the file, the line, what was inlined there and
// whether the goroutine may be stopped, beside what its collector and its stacks need. The former four are
// read where a trace of the stack is printed, or asked for by runtime.Callers; they are cleared (tables.go),
// and so are the trees of what was inlined and the layouts of arguments. A trace then has the names of
// functions, without lines ("?:0"), without arguments and without functions that were inlined.
//
// Code: jumps, returns and addresses on the stack take fewer instructions (code.go).
//
// What compresses a module, as servers do, makes a third less of it. A module whose tables or code are not
// those of a Go that this program knows (1.20 and later, as far as tested) stays as it was linked, which is
// said on standard error and is no failure.
package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) == 1 {
		fmt.Fprintln(os.Stderr, "usage: shrink MODULE.wasm ...")
		os.Exit(2)
	}
	for _, name := range os.Args[1:] {
		if err := rewrite(name); err != nil {
			fmt.Fprintln(os.Stderr, "shrink:", err)
			os.Exit(1)
		}
	}
}

// rewrite makes the module of a file smaller, or says why it stays as it is.
func rewrite(name string) error {
	module, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(module, magic) {
		return fmt.Errorf("%s: this is no module of WebAssembly", name)
	}
	small, err := shrink(module)
	if err != nil {
		fmt.Fprintf(os.Stderr, "shrink: %s: as linked, since %v\n", name, err)
		return nil
	}
	return os.WriteFile(name, small, 0o666)
}

// Sections of a module, and instructions of the place of a segment.
const (
	codeSection = 10
	dataSection = 11
	constant    = 0x41 // i32.const
	end         = 0x0b
)

var magic = []byte("\x00asm\x01\x00\x00\x00")

var errModule = errors.New("it is not laid out as modules of Go's linker are")

// section is a part of a module.
type section struct {
	id      byte
	content []byte
}

// shrink returns a module, which begins with magic, with its memory in few segments, without tables of lines,
// and with its functions rewritten.
func shrink(module []byte) ([]byte, error) {
	sections, data, code, err := sectionsOf(module)
	if err != nil {
		return nil, err
	}
	memory, err := initial(data.content)
	if err != nil {
		return nil, err
	}
	if err := clearLines(memory); err != nil {
		return nil, err
	}
	data.content = segments(memory)
	bodies, err := bodiesOf(code.content)
	if err != nil {
		return nil, err
	}
	for i := range bodies {
		if bodies[i], err = rewritten(bodies[i]); err != nil {
			return nil, err
		}
	}
	code.content = codeOf(bodies)
	return joined(sections), nil
}

// sectionsOf returns the sections of a module, and those of its data and its code among them.
func sectionsOf(module []byte) (sections []section, data, code *section, err error) {
	for rest := module[len(magic):]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, nil, nil, errModule
		}
		sections = append(sections, section{rest[0], rest[1+n : 1+n+int(size)]})
		rest = rest[1+n+int(size):]
	}
	for i := range sections {
		switch sections[i].id {
		case dataSection:
			data = &sections[i]
		case codeSection:
			code = &sections[i]
		}
	}
	if data == nil || code == nil {
		return nil, nil, nil, errModule
	}
	return sections, data, code, nil
}

// joined is the module of sections.
func joined(sections []section) []byte {
	out := bytes.Clone(magic)
	for _, s := range sections {
		out = append(out, s.id)
		out = binary.AppendUvarint(out, uint64(len(s.content)))
		out = append(out, s.content...)
	}
	return out
}

// initial returns the memory that a section of data makes, from address 0 on.
func initial(section []byte) (memory []byte, err error) {
	at := 0
	number := func() int {
		v, n := binary.Uvarint(section[min(at, len(section)):])
		if n <= 0 || v > 1<<31 {
			err = errModule
			return 0
		}
		at += n
		return int(v)
	}
	for count := number(); count > 0 && err == nil; count-- {
		if len(section)-at < 2 || section[at] != 0 || section[at+1] != constant {
			return nil, errModule
		}
		at += 2
		place, n := signed(section[at:])
		at += n
		if n == 0 || place < 0 || place > 1<<31 || at == len(section) || section[at] != end {
			return nil, errModule
		}
		at++
		size := number()
		if err != nil || size > len(section)-at {
			return nil, errModule
		}
		if more := int(place) + size - len(memory); more > 0 {
			memory = append(memory, make([]byte, more)...)
		}
		copy(memory[place:], section[at:at+size])
		at += size
	}
	if err == nil && at != len(section) {
		err = errModule
	}
	return memory, err
}

// signed reads a signed number of variable length (LEB128), and returns how long it is, 0 where it is none.
func signed(b []byte) (v int64, n int) {
	for shift := 0; n < len(b) && shift < 70; shift += 7 {
		c := b[n]
		n++
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 && shift < 57 {
				v |= -1 << (shift + 7)
			}
			return v, n
		}
	}
	return 0, 0
}

func appendSigned(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// longRun is how many zeros are worth a segment of their own.
const longRun = 1 << 10

// segments returns the section of data of a memory.
func segments(memory []byte) []byte {
	var all []byte
	count := uint64(0)
	for at := 0; at < len(memory); {
		if memory[at] == 0 {
			at++
			continue
		}
		last := at // that is not zero
		for i := at; i < len(memory) && i-last <= longRun; i++ {
			if memory[i] != 0 {
				last = i
			}
		}
		all = append(all, 0, constant)
		all = appendSigned(all, int64(at))
		all = append(all, end)
		all = binary.AppendUvarint(all, uint64(last+1-at))
		all = append(all, memory[at:last+1]...)
		count++
		at = last + 1
	}
	return append(binary.AppendUvarint(nil, count), all...)
}
