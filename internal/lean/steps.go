package main

// This file holds the numbers that a module keeps as differences, since those compress well where they
// repeat: of the records of functions, of the list of them, and of the table that finds a function by its
// place. When it starts, before Go runs, the module adds them up.

import (
	"encoding/binary"
)

// column is count numbers of four bytes from an address on, each so many bytes behind the one before.
type column struct{ at, count, stride int }

// differences puts in place of each number but the first what it is more than the one before.
func (c column) differences(memory []byte) {
	var before uint32
	for i := range c.count {
		b := memory[c.at+i*c.stride:]
		v := binary.LittleEndian.Uint32(b)
		binary.LittleEndian.PutUint32(b, v-before)
		before = v
	}
}

// The room of a record: two tables, and other data of three kinds. Functions that defer calls, and a few
// others, have more of them.
const (
	roomTables = 2
	roomOthers = 3
	room       = recordSize + 4*(roomTables+roomOthers)
)

// inRooms lays out the records behind the list of functions anew, without what stands for none at their ends:
// each in a room of its own, and those that are larger behind all rooms. It returns the columns that grow,
// none where the records have no space for that.
func inRooms(list []byte, funcs int) []column {
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(list[at:]) }
	first, last := len(list), 0
	rooms, larger := make([]byte, 0, funcs*room), []byte(nil)
	places := make([]int, funcs) // from the first record on
	for i := range funcs {
		at := int(number(8*i + 4))
		tables, others := int(number(at+recordTables)), int(list[at+recordOthers])
		otherAt := at + recordSize + 4*tables
		first, last = min(first, at), max(last, otherAt+4*others)
		for tables > 0 && number(at+recordSize+4*(tables-1)) == 0 {
			tables--
		}
		for others > 0 && number(otherAt+4*(others-1)) == none {
			others--
		}
		fits := tables <= roomTables && others <= roomOthers
		record := append([]byte(nil), list[at:at+recordSize]...)
		if fits {
			tables, others = roomTables, roomOthers
		}
		binary.LittleEndian.PutUint32(record[recordTables:], uint32(tables))
		record[recordOthers] = byte(others)
		old := int(number(at + recordTables))
		for t := range tables {
			var v uint32
			if t < old {
				v = number(at + recordSize + 4*t)
			}
			record = binary.LittleEndian.AppendUint32(record, v)
		}
		for d := range others {
			v := uint32(none)
			if d < int(list[at+recordOthers]) {
				v = number(otherAt + 4*d)
			}
			record = binary.LittleEndian.AppendUint32(record, v)
		}
		if fits {
			places[i] = len(rooms)
			rooms = append(rooms, record...)
			continue
		}
		places[i] = funcs*room + len(larger)
		larger = append(larger, record...)
		// Its room is empty but for what the columns have.
		rooms = append(rooms, record[:8]...)
		rooms = append(rooms, make([]byte, room-8)...)
	}
	if first < 8*funcs+4 || len(rooms)+len(larger) > last-first {
		return nil
	}
	clear(list[first:last])
	copy(list[first:], rooms)
	copy(list[first+len(rooms):], larger)
	for i, place := range places {
		binary.LittleEndian.PutUint32(list[8*i+4:], uint32(first+place))
	}
	return []column{{0, funcs, 8}, {4, funcs, 8}, {first + recordEntry, funcs, room},
		{first + recordName, funcs, room}}
}

// finder is the column of the table that finds functions by their places: for each stretch of places the
// function at its beginning, in four bytes, and sixteen bytes, which are 0 where functions are as far apart
// as in WebAssembly. It is none where the table is anything else.
func finder(memory []byte, described, funcs int) (column, bool) {
	const stretch, size = 4096, 20
	word := func(k int) uint64 { return binary.LittleEndian.Uint64(memory[described+8*(modulePlace+k):]) }
	at, from, to := word(0), word(1), word(2)
	if from > to || to-from > uint64(len(memory))*stretch {
		return column{}, false
	}
	count := (to - from + stretch - 1) / stretch
	if at > uint64(len(memory)) || count*size > uint64(len(memory))-at {
		return column{}, false
	}
	before := uint32(0)
	for table := memory[at:][:count*size]; len(table) > 0; table = table[size:] {
		function := binary.LittleEndian.Uint32(table)
		if function < before || function > uint32(funcs) {
			return column{}, false
		}
		before = function
	}
	return column{int(at), int(count), size}, true
}

// adder is the code of the function that adds up a column, of an address, a count and a stride. It has one
// local of its own, the sum.
var adder = []byte{1, 1, 0x7f, // a local, i32
	0x03, 0x40, // loop
	0x20, 0, // the address, to store to
	0x20, 0, 0x28, 0, 0, 0x20, 3, 0x6a, 0x22, 3, // sum += load(address)
	0x36, 0, 0, // store
	0x20, 0, 0x20, 2, 0x6a, 0x21, 0, // address += stride
	0x20, 1, 0x41, 1, 0x6b, 0x22, 1, // count--
	0x0d, 0, // again unless it is 0
	end, end}

// withStart returns the sections with two functions more: the one that adds up a column, and the one that the
// module starts with, which calls it for each.
func withStart(sections []section, columns []column) ([]section, error) {
	if len(columns) == 0 {
		return sections, nil
	}
	count := map[byte]uint64{} // how many types, imports and functions there are
	longer := func(s section, more uint64, content []byte) ([]byte, error) {
		have, n := binary.Uvarint(s.content)
		if n <= 0 {
			return nil, errModule
		}
		count[s.id] = have
		all := binary.AppendUvarint(nil, have+more)
		all = append(all, s.content[n:]...)
		return append(all, content...), nil
	}
	var out []section
	started := false
	for _, s := range sections {
		if s.id > startSection && !started {
			out = append(out, section{startSection,
				binary.AppendUvarint(nil, count[importSection]+count[functionSection]+1)})
			started = true
		}
		var err error
		switch s.id {
		case typeSection:
			s.content, err = longer(s, 2, []byte{0x60, 3, 0x7f, 0x7f, 0x7f, 0, 0x60, 0, 0})
		case importSection: // functions alone, in what Go links
			_, err = longer(s, 0, nil)
		case functionSection:
			s.content, err = longer(s, 2,
				binary.AppendUvarint(binary.AppendUvarint(nil, count[typeSection]), count[typeSection]+1))
		case codeSection:
			start := []byte{0} // no locals
			for _, c := range columns {
				for _, v := range []int{c.at, c.count, c.stride} {
					start = appendSigned(append(start, constant), int64(v))
				}
				// call
				start = binary.AppendUvarint(append(start, 0x10), count[importSection]+count[functionSection])
			}
			start = append(start, end)
			var bodies []byte
			for _, b := range [][]byte{adder, start} {
				bodies = append(binary.AppendUvarint(bodies, uint64(len(b))), b...)
			}
			s.content, err = longer(s, 2, bodies)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	if !started || count[codeSection] != count[functionSection] {
		return nil, errModule
	}
	return out, nil
}
