package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// spelled is code in which a, b and so on are instructions.
func spelled(parts ...[]instruction) []instruction { return slices.Concat(parts...) }

func op(op byte) []instruction                 { return []instruction{{op: op}} }
func with(op byte, number int64) []instruction { return []instruction{{op: op, number: number}} }
func memory(op byte, offset int64) []instruction {
	return []instruction{{op: op, number: offset, align: 3}}
}

// stack is the address of an offset from the pointer of the stack, as Go writes it.
func stack(offset int64) []instruction {
	return spelled(with(opGet, pointer), op(opExtend), with(opConst64, offset), op(opAdd64), op(opWrap))
}

// TestAddresses: offsets go to the load or the store that takes the address, over values in between, and
// nowhere else.
func TestAddresses(t *testing.T) {
	get := with(opGet, pointer)
	sum := spelled(get, with(opConst32, 24), op(opAdd32))
	for name, c := range map[string]struct{ code, want []instruction }{
		"load": {spelled(stack(24), memory(opLoad+1, 8)), spelled(get, memory(opLoad+1, 32))},
		"no offset": {spelled(get, op(opExtend), op(opWrap), memory(opLoad, 8)),
			spelled(get, memory(opLoad, 8))},
		"store": {spelled(stack(24), with(opConst64, 5), memory(opStore+1, 0)),
			spelled(get, with(opConst64, 5), memory(opStore+1, 24))},
		"store of a load": {spelled(stack(24), stack(48), memory(opLoad+1, 0), memory(opStore+1, 0)),
			spelled(get, get, memory(opLoad+1, 48), memory(opStore+1, 24))},
		"store of a sum": {spelled(stack(24), with(opGet, 3), with(opGet, 4), op(opAdd64),
			memory(opStore+1, 1)), spelled(get, with(opGet, 3), with(opGet, 4), op(opAdd64),
			memory(opStore+1, 25))},
		"a value, no address": {spelled(with(opGet, 5), stack(24), memory(opStore, 0)),
			spelled(with(opGet, 5), sum, memory(opStore, 0))},
		"a sum": {spelled(stack(24), op(opAdd32), memory(opLoad, 0)),
			spelled(sum, op(opAdd32), memory(opLoad, 0))},
		"over a call": {spelled(stack(24), with(opCall, 7), memory(opStore, 0)),
			spelled(sum, with(opCall, 7), memory(opStore, 0))},
		"64 bits": {spelled(get, op(opExtend), with(opConst64, 24), op(opAdd64), with(opSet, 3)),
			nil},
		"before the pointer": {spelled(stack(-8), memory(opLoad, 8)), nil},
		"another local": {spelled(with(opGet, 2), op(opExtend), with(opConst64, 24), op(opAdd64),
			op(opWrap), memory(opLoad, 8)), nil},
	} {
		if c.want == nil {
			c.want = slices.Clone(c.code)
		}
		if got := addresses(slices.Clone(c.code)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%v, want\n%v", name, got, c.want)
		}
	}
}

// step is an instruction of a function without blocks: where it branches to is the step with that index, and
// what comes next otherwise.
type step struct {
	what string
	to   int
}

// Where steps branch to that is none.
const (
	nowhere = -1
)

// plain is a function without blocks, and for every number the step that it goes on with there. It knows
// nothing of places: it follows every branch to the end of its block, or to the beginning of its loop, and
// the numbers that local 0 is set to.
func plain(code []instruction) (steps []step, numbers []int) {
	type block struct {
		loop  bool
		start int // the first step in it
		users []*int
	}
	open := []*block{{}} // the function itself
	type jump struct{ step, number int }
	var jumps []jump
	to := make([]*int, 0, len(code))
	add := func(what string, depth int) {
		at := new(int)
		*at = nowhere
		to = append(to, at)
		steps = append(steps, step{what: what})
		if depth < 0 {
			return
		}
		if b := open[len(open)-1-depth]; b.loop {
			*at = b.start
		} else {
			b.users = append(b.users, at)
		}
	}
	var table []*int
	loop := -1
	for at, i := range code {
		last := len(open) - 1
		switch i.op {
		case opBlock, opLoop:
			open = append(open, &block{loop: i.op == opLoop, start: len(steps)})
			if i.op == opLoop && loop < 0 && table == nil {
				loop = last + 1
			}
		case opIf:
			open = append(open, &block{})
			add("unless", 0)
		case opEnd:
			for _, u := range open[last].users {
				*u = len(steps)
			}
			open = open[:last]
		case opTable:
			if table != nil {
				add("table", -1)
				break
			}
			rest := i.rest
			_, n := binary.Uvarint(rest)
			for rest = rest[n:]; len(rest) > 0; rest = rest[n:] {
				var depth uint64
				depth, n = binary.Uvarint(rest)
				u := new(int)
				table = append(table, u)
				open[last-int(depth)].users = append(open[last-int(depth)].users, u)
			}
		case opBranch:
			if len(open)-1-int(i.number) == loop && at >= 2 && is(code[at-1], opSet, counter) &&
				code[at-2].op == opConst32 {
				steps, to = steps[:len(steps)-2], to[:len(to)-2]
				jumps = append(jumps, jump{len(steps), int(code[at-2].number)})
				add("to", -1)
				break
			}
			add("to", int(i.number))
		case opBranchIf:
			add("if", int(i.number))
		default:
			add(string(i.append(nil)), -1)
		}
	}
	for _, u := range table {
		numbers = append(numbers, *u)
	}
	for _, j := range jumps {
		*to[j.step] = numbers[min(j.number, len(numbers)-1)]
	}
	for i := range steps {
		steps[i].to = *to[i]
	}
	return steps, numbers
}

// trace follows a function from a step on in one order, a branch not taken before the one taken, and names
// the steps by when they were reached. Jumps are no steps of their own, nor is it a difference whether a
// condition branches over a jump or with it.
func trace(steps []step, from []int) string {
	var out bytes.Buffer
	seen := map[int]int{}
	one := string(instruction{op: opConst32, number: 1}.append(nil))
	var walk func(at int)
	walk = func(at int) {
		for {
			for at < len(steps) && steps[at].what == "to" {
				at = steps[at].to
			}
			// A function that unwinds returns 1: by the instruction, or at its end.
			if at < len(steps) && steps[at].what == one &&
				(at+1 == len(steps) || steps[at+1].what == string([]byte{opReturn})) {
				out.WriteString("unwinds;")
				return
			}
			if at >= len(steps) {
				out.WriteString("ends;")
				return
			}
			if n, ok := seen[at]; ok {
				fmt.Fprintf(&out, "%d;", n)
				return
			}
			seen[at] = len(seen)
			switch s := steps[at]; s.what {
			case "if", "unless":
				yes, no := s.to, at+1
				if s.what == "unless" {
					yes, no = no, yes
				}
				out.WriteString("if(")
				walk(yes)
				out.WriteString(")")
				at = no
				continue
			case string([]byte{opUnreachable}), string([]byte{opReturn}):
				fmt.Fprintf(&out, "%q;", s.what)
				return
			default:
				fmt.Fprintf(&out, "%q;", s.what)
			}
			at++
		}
	}
	for _, at := range from {
		walk(at)
		out.WriteString("\n")
	}
	return out.String()
}

// TestJumps: every function of a program goes on from every number as before.
func TestJumps(t *testing.T) {
	module, _ := built(t)
	_, _, section, err := sectionsOf(module)
	if err != nil {
		t.Fatal(err)
	}
	bodies, err := bodiesOf(section.content)
	if err != nil {
		t.Fatal(err)
	}
	functions, changed := len(bodies), 0
	for function, body := range bodies {
		locals, code, err := parsed(body)
		if err != nil {
			t.Fatalf("function %d: %v", function, err)
		}
		for at := len(locals); at < len(body); {
			i, n := read(body[at:])
			// Go's linker writes some numbers longer than they need be.
			if again, m := read(i.append(nil)); !reflect.DeepEqual(again, i) || m > n {
				t.Fatalf("%x is written as %x", body[at:at+n], i.append(nil))
			}
			at += n
		}
		f, ok := placesOf(code)
		if !ok {
			continue
		}
		after, ok := f.jumps(code)
		if !ok {
			continue
		}
		changed++
		steps, numbers := plain(code)
		newSteps, newNumbers := plain(after)
		if len(newNumbers) != len(numbers) {
			t.Fatalf("function %d: %d numbers, want %d", function, len(newNumbers), len(numbers))
		}
		if got, want := trace(newSteps, newNumbers), trace(steps, numbers); got != want {
			t.Fatalf("function %d:\n%s, want\n%s", function, got, want)
		}
	}
	if functions < 1000 || changed < functions*9/10 {
		t.Errorf("%d of %d functions changed", changed, functions)
	}
}
