package table

// This file holds zip archives, as far as npz needs them: files that are stored or deflated, of any size, and an
// archive behind something else. Package archive/zip links fmt, reflect and os.
//
// An archive ends in a record that says where its directory lies; an entry of that says where a file lies, behind a
// head of its own. Where a number is too large for its field, all of whose bits are then 1, it stands in a field of 8 bytes
// (zip64): for the record in another before it, for an entry in its extra fields.

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/quantmf/quantmf/internal/deflate"
)

const (
	zipMagic  = "PK\x03\x04" // of a file's head
	zipEntry  = "PK\x01\x02"
	zipEnd    = "PK\x05\x06"
	zipEnd64  = "PK\x06\x06"
	zipPlace  = "PK\x06\x07" // where the latter is
	zipBehind = "PK\x07\x08" // of what stands behind a file: its sum and sizes

	zipHeadSize, zipEntrySize, zipEndSize, zipEnd64Size, zipPlaceSize = 30, 46, 22, 56, 20

	zipStored, zipDeflated = 0, 8
	zipSumsBehind          = 1 << 3 // a flag
	zipLocked              = 1 << 0
	in64                   = 1<<32 - 1
)

var (
	errZip       = errors.New("zip: not a valid zip file")
	errZipMethod = errors.New("zip: unsupported compression algorithm")
	errZipSum    = errors.New("zip: checksum error")
)

// zipped is a file in an archive.
type zipped struct {
	name          string
	flags, method uint16
	sum           uint32
	packed, size  uint64
	at            uint64 // of its head
}

// zipDirectory returns where the directory of an archive begins, how many bytes and entries it has, and where
// places in it are counted from.
func zipDirectory(r io.ReaderAt, length int64) (from, size, entries, base int64, err error) {
	tail := make([]byte, min(length, 1<<16+zipEndSize+zipPlaceSize))
	behind := length - int64(len(tail))
	if n, err := r.ReadAt(tail, behind); n < len(tail) {
		return 0, 0, 0, 0, err
	}
	at := len(tail) - zipEndSize
	for ; at >= 0; at-- {
		if string(tail[at:at+4]) == zipEnd && at+zipEndSize+int(binary.LittleEndian.Uint16(tail[at+20:])) <= len(tail) {
			break
		}
	}
	if at < 0 {
		return 0, 0, 0, 0, errZip
	}
	record := tail[at:]
	count, bytes, place := uint64(binary.LittleEndian.Uint16(record[10:])), uint64(binary.LittleEndian.Uint32(record[12:])), uint64(binary.LittleEndian.Uint32(record[16:]))
	end := uint64(behind) + uint64(at)
	if (count == 1<<16-1 || bytes == in64 || place == in64) && at >= zipPlaceSize && string(tail[at-zipPlaceSize:at-zipPlaceSize+4]) == zipPlace {
		end = binary.LittleEndian.Uint64(tail[at-zipPlaceSize+8:])
		record = make([]byte, zipEnd64Size)
		if end > uint64(length) {
			return 0, 0, 0, 0, errZip
		}
		if n, _ := r.ReadAt(record, int64(end)); n < len(record) || string(record[:4]) != zipEnd64 {
			return 0, 0, 0, 0, errZip
		}
		count, bytes, place = binary.LittleEndian.Uint64(record[32:]), binary.LittleEndian.Uint64(record[40:]), binary.LittleEndian.Uint64(record[48:])
	}
	if bytes > end || place > end-bytes || count > bytes/zipEntrySize {
		return 0, 0, 0, 0, errZip
	}
	// What stands before the archive shifts all places, unless whoever put it there has corrected them.
	from = int64(end - bytes)
	base = from - int64(place)
	var magic [4]byte
	if n, _ := r.ReadAt(magic[:], int64(place)); base > 0 && n == 4 && string(magic[:]) == zipEntry {
		from, base = int64(place), 0
	}
	return from, int64(bytes), int64(count), base, nil
}

// readZip reads the directory of an archive. take asks for the memory.
func readZip(r io.ReaderAt, length int64, take func(bytes int64) error) ([]zipped, error) {
	from, size, entries, base, err := zipDirectory(r, length)
	if err != nil {
		return nil, err
	}
	if err := take(2*size + 200*entries); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if n, err := r.ReadAt(b, from); n < len(b) {
		return nil, err
	}
	files := make([]zipped, entries)
	for i := range files {
		if len(b) < zipEntrySize || string(b[:4]) != zipEntry {
			return nil, errZip
		}
		names, extras, remarks := int(binary.LittleEndian.Uint16(b[28:])), int(binary.LittleEndian.Uint16(b[30:])), int(binary.LittleEndian.Uint16(b[32:]))
		if len(b) < zipEntrySize+names+extras+remarks {
			return nil, errZip
		}
		f := zipped{
			name:   string(b[zipEntrySize : zipEntrySize+names]),
			flags:  binary.LittleEndian.Uint16(b[8:]),
			method: binary.LittleEndian.Uint16(b[10:]),
			sum:    binary.LittleEndian.Uint32(b[16:]),
			packed: uint64(binary.LittleEndian.Uint32(b[20:])),
			size:   uint64(binary.LittleEndian.Uint32(b[24:])),
			at:     uint64(binary.LittleEndian.Uint32(b[42:])),
		}
		for extra := b[zipEntrySize+names : zipEntrySize+names+extras]; len(extra) >= 4; {
			kind, field := binary.LittleEndian.Uint16(extra), extra[4:]
			field = field[:min(len(field), int(binary.LittleEndian.Uint16(extra[2:])))]
			extra = extra[4+len(field):]
			if kind != 1 {
				continue
			}
			for _, v := range [...]*uint64{&f.size, &f.packed, &f.at} {
				if *v == in64 {
					if len(field) < 8 {
						return nil, errZip
					}
					*v, field = binary.LittleEndian.Uint64(field), field[8:]
				}
			}
		}
		if f.at > uint64(length) || f.packed > uint64(length) {
			return nil, errZip
		}
		f.at += uint64(base)
		files[i] = f
		b = b[zipEntrySize+names+extras+remarks:]
	}
	return files, nil
}

// open returns what a file of an archive holds. The sum is checked at its end.
func (f *zipped) open(r io.ReaderAt) (io.Reader, error) {
	var head [zipHeadSize]byte
	if n, err := r.ReadAt(head[:], int64(f.at)); n < len(head) {
		return nil, err
	}
	if string(head[:4]) != zipMagic {
		return nil, errZip
	}
	body := int64(f.at) + zipHeadSize + int64(binary.LittleEndian.Uint16(head[26:])) + int64(binary.LittleEndian.Uint16(head[28:]))
	content := io.Reader(io.NewSectionReader(r, body, int64(f.packed)))
	switch {
	case f.flags&zipLocked != 0 || f.method != zipStored && f.method != zipDeflated:
		return nil, errZipMethod
	case f.method == zipDeflated:
		content = deflate.NewReader(content)
	}
	return &summed{content, f, 0, 0}, nil
}

// summed checks the sum and the size of what it reads.
type summed struct {
	io.Reader
	of    *zipped
	sum   uint32
	count uint64
}

func (s *summed) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.sum = crc32.Update(s.sum, crc32.IEEETable, b[:n])
	s.count += uint64(n)
	switch {
	case err != io.EOF && s.count <= s.of.size:
	case s.count != s.of.size:
		err = io.ErrUnexpectedEOF
	case s.of.sum != 0 && s.sum != s.of.sum:
		err = errZipSum
	}
	return n, err
}

// zipWriter writes an archive of deflated files.
type zipWriter struct {
	to    io.Writer
	at    uint64
	files []zipped
}

// Write is for deflate: it counts.
func (w *zipWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.at += uint64(n)
	return n, err
}

// write adds a file that do writes.
func (w *zipWriter) write(name string, do func(to io.Writer) error) error {
	f := zipped{name: name, flags: zipSumsBehind, method: zipDeflated, at: w.at}
	head := append([]byte(zipMagic), 20, 0)
	head = binary.LittleEndian.AppendUint16(head, f.flags)
	head = binary.LittleEndian.AppendUint16(head, f.method)
	head = append(head, make([]byte, 16)...) // time, sum and sizes
	head = binary.LittleEndian.AppendUint16(head, uint16(len(name)))
	head = append(head, 0, 0)
	if _, err := w.Write(append(head, name...)); err != nil {
		return err
	}
	body := w.at
	z := deflate.NewWriter(w)
	if err := do(&summing{z, &f}); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	f.packed = w.at - body
	behind := binary.LittleEndian.AppendUint32([]byte(zipBehind), f.sum)
	if f.packed >= in64 || f.size >= in64 {
		behind = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(behind, f.packed), f.size)
	} else {
		behind = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(behind, uint32(f.packed)), uint32(f.size))
	}
	w.files = append(w.files, f)
	_, err := w.Write(behind)
	return err
}

// summing counts and sums what is written.
type summing struct {
	io.Writer
	of *zipped
}

func (s *summing) Write(b []byte) (int, error) {
	s.of.size += uint64(len(b))
	s.of.sum = crc32.Update(s.of.sum, crc32.IEEETable, b)
	return s.Writer.Write(b)
}

// close writes the directory.
func (w *zipWriter) close() error {
	from := w.at
	var b []byte
	two := func(v uint16) { b = binary.LittleEndian.AppendUint16(b, v) }
	four := func(v uint32) { b = binary.LittleEndian.AppendUint32(b, v) }
	eight := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	large := false
	for _, f := range w.files {
		far := f.packed >= in64 || f.size >= in64 || f.at >= in64
		large = large || far
		version, packed, size, at, extra := uint16(20), uint32(f.packed), uint32(f.size), uint32(f.at), uint16(0)
		if far {
			version, packed, size, at, extra = 45, in64, in64, in64, 28
		}
		b = append(b, zipEntry...)
		two(version)
		two(version)
		two(f.flags)
		two(f.method)
		four(0) // time
		four(f.sum)
		four(packed)
		four(size)
		two(uint16(len(f.name)))
		two(extra)
		b = append(b, make([]byte, 10)...) // no remark, one disk, no attributes
		four(at)
		b = append(b, f.name...)
		if far {
			two(1)
			two(24)
			eight(f.size)
			eight(f.packed)
			eight(f.at)
		}
	}
	bytes, count, place := uint32(len(b)), uint16(len(w.files)), uint32(from)
	if large || from >= in64 {
		end := from + uint64(len(b))
		size := uint64(len(b))
		bytes, count, place = in64, 1<<16-1, in64
		b = append(b, zipEnd64...)
		eight(zipEnd64Size - 12) // of what follows
		two(45)
		two(45)
		four(0)
		four(0)
		eight(uint64(len(w.files)))
		eight(uint64(len(w.files)))
		eight(size)
		eight(from)
		b = append(b, zipPlace...)
		four(0)
		eight(end)
		four(1) // disk
	}
	b = append(b, zipEnd...)
	four(0) // disks
	two(count)
	two(count)
	four(bytes)
	four(place)
	two(0) // no remark
	_, err := w.Write(b)
	return err
}
