package table

// This file holds the little of XML that workbooks need: elements with their attributes, and text. Elements
// are known by their names without the prefix of a namespace. Unlike encoding/xml it makes no garbage, and
// what is long asks for its memory.

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// xmlReader reads a document from a source of its own, which has the account of the file's.
type xmlReader struct {
	*source
	file       io.Closer
	name       []byte // of the element that next returned
	attributes []byte // its text
	ends       bool   // it is an end: </name>, or the second half of <name/>
	empty      bool   // <name/>, whose end comes next
}

// elements opens a document in an archive.
func (s *source) elements(file io.ReadCloser) (*xmlReader, error) {
	if err := s.take(buffered, "a buffer"); err != nil {
		return nil, err
	}
	return &xmlReader{source: s.beside(&packedReader{file, "zip"}), file: file}, nil
}

// close closes the document and gives the buffer back.
func (x *xmlReader) close() {
	x.file.Close()
	x.give(int64(len(x.buf)))
}

// until returns what comes before a mark, and skips both.
func (x *xmlReader) until(mark string) ([]byte, error) {
	for seen := 0; ; {
		b := x.buf[x.from:x.to]
		if at := bytes.Index(b[seen:], []byte(mark)); at >= 0 {
			x.skip(seen + at + len(mark))
			return b[:seen+at], nil
		}
		seen = max(0, len(b)-len(mark)+1)
		if err := x.more(); err != nil {
			return nil, err
		}
	}
}

// pass skips what comes before a mark, and the mark.
func (x *xmlReader) pass(mark string) error {
	for {
		b := x.buf[x.from:x.to]
		if at := bytes.Index(b, []byte(mark)); at >= 0 {
			x.skip(at + len(mark))
			return nil
		}
		x.skip(max(0, len(b)-len(mark)+1))
		if err := x.more(); err != nil {
			return err
		}
	}
}

// next goes to the next beginning or end of an element, and appends the text before it to text, where that is
// not nil.
func (x *xmlReader) next(text *[]byte) error {
	if x.empty {
		x.empty, x.ends = false, true
		return nil
	}
	for {
		if text == nil {
			if err := x.pass("<"); err != nil {
				return err
			}
		} else {
			b, err := x.until("<")
			if err != nil {
				return err
			}
			if *text, err = x.unescaped(*text, b); err != nil {
				return err
			}
		}
		mark, err := x.peek(1)
		switch {
		case err != nil:
			return err
		case mark[0] == '?':
			err = x.pass("?>")
		case mark[0] == '!':
			err = x.declaration(text)
		default:
			return x.tag()
		}
		if err != nil {
			return err
		}
	}
}

// declaration skips a comment or what else begins with <!, and appends what is marked as text.
func (x *xmlReader) declaration(text *[]byte) error {
	b, err := x.peek(8)
	switch {
	case bytes.HasPrefix(b, []byte("!--")):
		x.skip(3)
		return x.pass("-->")
	case string(b) == "![CDATA[":
		x.skip(8)
		if text == nil {
			return x.pass("]]>")
		}
		b, err := x.until("]]>")
		if err == nil {
			*text, err = x.grown(*text, b)
		}
		return err
	case err != nil:
		return err
	}
	return x.pass(">")
}

// tag reads what stands between < and >. A quoted > does not end it.
func (x *xmlReader) tag() error {
	for at, quote := 0, byte(0); ; at++ {
		for x.from+at >= x.to {
			if err := x.more(); err != nil {
				return err
			}
		}
		switch c := x.buf[x.from+at]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			b := x.buf[x.from : x.from+at]
			x.skip(at + 1)
			x.ends = len(b) > 0 && b[0] == '/'
			if x.ends {
				b = b[1:]
			}
			if x.empty = len(b) > 0 && b[len(b)-1] == '/'; x.empty {
				b = b[:len(b)-1]
			}
			end := bytes.IndexAny(b, " \t\r\n")
			if end < 0 {
				end = len(b)
			}
			x.name, x.attributes = local(b[:end]), b[end:]
			return nil
		}
	}
}

// local is a name without its prefix.
func local(name []byte) []byte { return name[bytes.IndexByte(name, ':')+1:] }

// begins tells whether an element of this name begins here.
func (x *xmlReader) begins(name string) bool { return !x.ends && string(x.name) == name }

// attribute returns the value of an attribute as it stands there, nil for none.
func (x *xmlReader) attribute(name string) []byte {
	rest := x.attributes
	for {
		at := bytes.IndexByte(rest, '=')
		if at < 0 {
			return nil
		}
		is := string(local(bytes.TrimSpace(rest[:at]))) == name
		rest = bytes.TrimLeft(rest[at+1:], " \t\r\n")
		if len(rest) == 0 {
			return nil
		}
		value, after, whole := bytes.Cut(rest[1:], rest[:1])
		if !whole {
			return nil
		}
		if is {
			return value
		}
		rest = after
	}
}

// grown appends to a text, for whose growth it asks.
func (x *xmlReader) grown(text, more []byte) ([]byte, error) {
	if need := len(text) + len(more); need > cap(text) {
		if err := x.take(int64(2*need-cap(text)), "a cell this long"); err != nil {
			return text, err
		}
		text = append(make([]byte, 0, 2*need), text...)
	}
	return append(text, more...), nil
}

// unescaped appends text in which &lt; and the like are characters.
func (x *xmlReader) unescaped(text, b []byte) (out []byte, err error) {
	for {
		at := bytes.IndexByte(b, '&')
		if at < 0 {
			return x.grown(text, b)
		}
		if text, err = x.grown(text, b[:at]); err != nil {
			return text, err
		}
		b = b[at:]
		end := bytes.IndexByte(b, ';')
		character := ""
		if end > 0 && end < 12 {
			character = entity(string(b[1:end]))
		}
		if character == "" { // as it is
			character, end = "&", 0
		}
		if text, err = x.grown(text, []byte(character)); err != nil {
			return text, err
		}
		b = b[end+1:]
	}
}

// entity is the character of a name, "" for none.
func entity(name string) string {
	if number, is := strings.CutPrefix(name, "#"); is {
		base := 10
		if hex, is := strings.CutPrefix(number, "x"); is {
			number, base = hex, 16
		}
		v, err := strconv.ParseUint(number, base, 32)
		if err != nil || v > utf8.MaxRune || v == 0 {
			return ""
		}
		return string(rune(v))
	}
	return map[string]string{"lt": "<", "gt": ">", "amp": "&", "quot": `"`, "apos": "'"}[name]
}
