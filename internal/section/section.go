// Package section has the layout of files: a header, and sections of a tag and a payload, each
// with a checksum of its own. It knows nothing of what a kind of file holds. All numbers are
// little-endian.
//
//	offset  size  what
//	0       8     "quantmf\n"
//	8       4     version of the layout of this kind: 2 for a BQMF, else 1
//	12      4     kind: the caller's
//	16      4     number of sections
//	20      4     CRC-32 (IEEE) of bytes 0 to 19
//	24            the sections, one after another, and nothing behind them
//
// A section:
//
//	0       4     tag, four letters
//	4       4     flags: bit 0 set means a reader that does not know the tag skips it
//	8       8     length of the payload
//	16      4     CRC-32 of bytes 0 to 15 of the section
//	20            payload
//	20+len  4     CRC-32 of the payload
//
// Payloads are of uint64, float64 by their bits, or texts, each a length in uint64 and bytes.
//
// Every length is held against the bytes that are there before memory is taken. What is read is an
// [Error] that says where a file is damaged, or a [File] whose sections are whole.
package section

import (
	"hash/crc32"
	"math"
	"slices"
	"strconv"
)

const (
	magic       = "quantmf\n"
	headerSize  = 24
	sectionSize = 20
)

// Optional is the flag of a section that a reader may skip.
const Optional = 1

// Error says what is wrong with a file, and at which byte.
type Error struct {
	Offset  int64
	Problem string
}

func (e *Error) Error() string { return "byte " + strconv.FormatInt(e.Offset, 10) + ": " + e.Problem }

func damaged(at int, problem string) error { return &Error{int64(at), problem} }

// Section is a part of a file.
type Section struct {
	Tag     string // four letters
	Flags   uint32
	Payload []byte

	numbers [][]float64 // in place of Payload: Encode writes them as they are then
}

// size returns the bytes of the payload.
func (s Section) size() int {
	size := len(s.Payload)
	for _, v := range s.numbers {
		size += 8 * len(v)
	}
	return size
}

// Append32 appends a little-endian number to b, and Get32 returns the one that b begins with; so do Append64
// and Get64. Package encoding/binary would bring reflection along.
func Append32(b []byte, v uint32) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
}

func Append64(b []byte, v uint64) []byte { return Append32(Append32(b, uint32(v)), uint32(v>>32)) }

func Get32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func Get64(b []byte) uint64 { return uint64(Get32(b)) | uint64(Get32(b[4:]))<<32 }

// Floats returns a section of the numbers of all of v, one after another. It holds v itself, which may be
// most of the memory of a model, until the section is written.
func Floats(tag string, v ...[]float64) Section { return Section{Tag: tag, numbers: v} }

// Words returns a section of integers.
func Words(tag string, v ...uint64) Section {
	b := make([]byte, 0, 8*len(v))
	for _, x := range v {
		b = Append64(b, x)
	}
	return Section{Tag: tag, Payload: b}
}

// Texts returns a section of texts.
func Texts(tag string, v ...string) Section {
	var b []byte
	for _, s := range v {
		b = append(Append64(b, uint64(len(s))), s...)
	}
	return Section{Tag: tag, Payload: b}
}

// AsOptional returns s with the flag of a section that a reader may skip.
func (s Section) AsOptional() Section {
	s.Flags |= Optional
	return s
}

// version is that of the layout of a kind. Files of another version are refused.
func version(kind uint32) uint32 {
	if kind == BQMF {
		return 2
	}
	return 1
}

// Encode returns the file of a kind with these sections.
func Encode(kind uint32, sections []Section) []byte {
	b := make([]byte, 0, headerSize)
	b = Append32(Append32(append(b, magic...), version(kind)), kind)
	return Append(b[:headerSize], sections...) // of none so far
}

func (s Section) appendTo(b []byte) []byte {
	from := len(b)
	b = append(b, s.Tag...)
	b = Append32(b, s.Flags)
	b = Append64(b, uint64(s.size()))
	b = Append32(b, crc32.ChecksumIEEE(b[from:]))
	from = len(b)
	b = append(b, s.Payload...)
	for _, v := range s.numbers {
		for _, x := range v {
			b = Append64(b, math.Float64bits(x))
		}
	}
	return Append32(b, crc32.ChecksumIEEE(b[from:]))
}

// Append returns a copy of a file that was decoded without error, with more sections.
func Append(data []byte, sections ...Section) []byte {
	size := len(data)
	for _, s := range sections {
		size += sectionSize + s.size() + 4
	}
	b := append(make([]byte, 0, size), data[:16]...)
	b = Append32(b, Get32(data[16:])+uint32(len(sections)))
	b = Append32(b, crc32.ChecksumIEEE(b))
	b = append(b, data[headerSize:]...)
	for _, s := range sections {
		b = s.appendTo(b)
	}
	return b
}

// Kind returns the kind that the header of a file names, 0 where it is not of this layout. It
// does not look whether the header is whole.
func Kind(data []byte) (uint32, error) {
	if len(data) < headerSize {
		return 0, damaged(len(data), "the file is cut within its header")
	}
	if string(data[:8]) != magic {
		return 0, nil
	}
	return Get32(data[12:]), nil
}

// File is a decoded file: the payloads of the sections that were asked for, by tag, and where
// they begin. Payloads are parts of the bytes that were decoded.
type File struct {
	payloads map[string][]byte
	offsets  map[string]int64
}

// Decode reads a file of the kind. It must have the sections of the tags in must; those in may
// are kept if they are there. A section of another tag is skipped if it is optional, and an error
// otherwise. name says of a kind what it is.
func Decode(b []byte, kind uint32, name func(kind uint32) string, must, may []string) (*File, error) {
	if len(b) < headerSize {
		return nil, damaged(len(b), "the file is cut within its header")
	}
	if string(b[:8]) != magic {
		return nil, damaged(0, "this is no quantmf model")
	}
	if crc32.ChecksumIEEE(b[:20]) != Get32(b[20:]) {
		return nil, damaged(20, "the header is damaged")
	}
	if k := Get32(b[12:]); k != kind {
		return nil, damaged(12, "this is "+name(k)+", not "+name(kind))
	}
	if v, known := Get32(b[8:]), version(kind); v != known {
		return nil, damaged(8, "this is "+name(kind)+" in version "+strconv.Itoa(int(v))+
			" of its layout; this program reads version "+strconv.Itoa(int(known)))
	}
	f := &File{payloads: map[string][]byte{}, offsets: map[string]int64{}}
	at := headerSize
	for range Get32(b[16:]) {
		if len(b)-at < sectionSize+4 {
			return nil, damaged(len(b), "the file is cut within a section")
		}
		head := b[at : at+sectionSize]
		if crc32.ChecksumIEEE(head[:16]) != Get32(head[16:]) {
			return nil, damaged(at, "a section's header is damaged")
		}
		length := Get64(head[8:])
		if length > uint64(len(b)-at-sectionSize-4) {
			return nil, damaged(len(b), "the file is cut within a section")
		}
		tag := string(head[:4])
		payload := b[at+sectionSize : at+sectionSize+int(length)]
		end := at + sectionSize + int(length)
		if crc32.ChecksumIEEE(payload) != Get32(b[end:]) {
			return nil, damaged(at+sectionSize, "section "+tag+" is damaged")
		}
		if slices.Contains(must, tag) || slices.Contains(may, tag) {
			if _, twice := f.payloads[tag]; twice {
				return nil, damaged(at, "section "+tag+" comes twice")
			}
			f.payloads[tag], f.offsets[tag] = payload, int64(at+sectionSize)
		} else if Get32(head[4:])&Optional == 0 {
			return nil, damaged(at, "section "+tag+" is not known to this reader")
		}
		at = end + 4
	}
	if at != len(b) {
		return nil, damaged(at, "there is more behind the last section")
	}
	for _, tag := range must {
		if _, has := f.payloads[tag]; !has {
			return nil, damaged(len(b), "section "+tag+" is not there")
		}
	}
	return f, nil
}

// Has tells whether a section is there.
func (f *File) Has(tag string) bool { _, has := f.payloads[tag]; return has }

// Payload returns the bytes of a section, none if it is not there.
func (f *File) Payload(tag string) []byte { return f.payloads[tag] }

// Tags returns the tags of the sections, in the order of the file.
func (f *File) Tags() []string {
	var tags []string
	for tag := range f.offsets {
		tags = append(tags, tag)
	}
	slices.SortFunc(tags, func(a, b string) int { return int(f.offsets[a] - f.offsets[b]) })
	return tags
}

// Offset returns where the payload of a section begins.
func (f *File) Offset(tag string) int64 { return f.offsets[tag] }

// Fail returns the error of a section.
func (f *File) Fail(tag, problem string) error {
	return &Error{f.offsets[tag], "section " + tag + ": " + problem}
}

// FailAt returns the error of number i of a section.
func (f *File) FailAt(tag string, i int, problem string) error {
	return &Error{f.offsets[tag] + 8*int64(i), "section " + tag + ": " + problem}
}

// Floats returns the count numbers of a section, each from low to high; a count of -1 stands for
// any.
func (f *File) Floats(tag string, count int64, low, high float64) ([]float64, error) {
	b := f.payloads[tag]
	if len(b)%8 != 0 || count >= 0 && int64(len(b)/8) != count { // 8*count could overflow
		return nil, f.Fail(tag, "wrong length")
	}
	v := make([]float64, len(b)/8)
	return v, f.fill(v, tag, 0, low, high)
}

func (f *File) fill(v []float64, tag string, at int, low, high float64) error {
	b := f.payloads[tag][8*at:]
	for i := range v {
		x := math.Float64frombits(Get64(b[8*i:]))
		if !(x >= low && x <= high) && low > math.Inf(-1) {
			return f.FailAt(tag, at+i,
				"number "+strconv.Itoa(at+i)+" is "+strconv.FormatFloat(x, 'g', -1, 64))
		}
		v[i] = x
	}
	return nil
}

// Part is some numbers of a section, and the range that they must be in.
type Part struct {
	V         []float64
	Low, High float64
}

// Within returns the part of these numbers from low to high, [Finite] that of any finite ones,
// [Positive] that of those that are not negative, [Any] that of numbers of which some may not be finite.
func Within(v []float64, low, high float64) Part { return Part{v, low, high} }

func Finite(v []float64) Part   { return Part{v, -math.MaxFloat64, math.MaxFloat64} }
func Positive(v []float64) Part { return Part{v, 0, math.MaxFloat64} }
func Any(v []float64) Part      { return Part{v, math.Inf(-1), math.Inf(1)} }

// Parts returns a section of the numbers of all parts, one after another.
func Parts(tag string, parts []Part) Section {
	v := make([][]float64, len(parts))
	for i, p := range parts {
		v[i] = p.V
	}
	return Floats(tag, v...)
}

// Fill reads into the parts what [Parts] wrote.
func (f *File) Fill(tag string, parts []Part) error {
	b, total := f.payloads[tag], int64(0)
	for _, p := range parts {
		total += int64(len(p.V))
	}
	if len(b)%8 != 0 || int64(len(b)/8) != total {
		return f.Fail(tag, "wrong length")
	}
	at := 0
	for _, p := range parts {
		if err := f.fill(p.V, tag, at, p.Low, p.High); err != nil {
			return err
		}
		at += len(p.V)
	}
	return nil
}

// Words returns the n integers of a section.
func (f *File) Words(tag string, n int) ([]uint64, error) {
	b := f.payloads[tag]
	if len(b) != 8*n {
		return nil, f.Fail(tag, "wrong length")
	}
	v := make([]uint64, n)
	for i := range v {
		v[i] = Get64(b[8*i:])
	}
	return v, nil
}

// Texts returns the texts of a section.
func (f *File) Texts(tag string) (v []string, err error) {
	for b := f.payloads[tag]; len(b) > 0; {
		if len(b) < 8 || Get64(b) > uint64(len(b)-8) {
			return nil, f.Fail(tag, "wrong length")
		}
		n := int(Get64(b))
		v, b = append(v, string(b[8:8+n])), b[8+n:]
	}
	return v, nil
}
