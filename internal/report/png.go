package report

// This file holds pictures as PNG files (ISO/IEC 15948), their pixels indices into a palette. Package image/png
// links fmt, reflect and os.

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/quantmf/quantmf/internal/deflate"
)

// picture is pixels in the colours of diverging: rows from the top, each behind a byte that says how the file has it
// (0: as it is).
type picture struct {
	width, height int
	pixels        []byte
}

func newPicture(width, height int) picture {
	return picture{width, height, make([]byte, (1+width)*height)}
}

func (p picture) row(y int) []byte { return p.pixels[y*(1+p.width)+1 : (y+1)*(1+p.width)] }

// png returns the file: chunks, each a length, a name, the content and the sum of both.
func (p picture) png() []byte {
	b := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(name string, content []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
		from := len(b)
		b = append(append(b, name...), content...)
		b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[from:]))
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(p.width))
	head = binary.BigEndian.AppendUint32(head, uint32(p.height))
	chunk("IHDR", append(head, 8, 3, 0, 0, 0)) // bits, a palette, deflate, rows as said, not interlaced
	var colours []byte
	for _, c := range diverging {
		r, g, b, _ := c.RGBA()
		colours = append(colours, byte(r>>8), byte(g>>8), byte(b>>8))
	}
	chunk("PLTE", colours)
	chunk("IDAT", deflate.Zlib(p.pixels))
	chunk("IEND", nil)
	return b
}
