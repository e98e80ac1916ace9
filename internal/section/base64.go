package section

// This file holds base64 (RFC 4648, the standard alphabet with padding). The standard library's brings
// reflection with it.

import "strings"

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// Base64 appends data in base64 to text.
func Base64(text, data []byte) []byte {
	for len(data) > 0 {
		var three [3]byte
		n := copy(three[:], data)
		data = data[n:]
		v := uint(three[0])<<16 | uint(three[1])<<8 | uint(three[2])
		for i := range 4 {
			if i > n {
				text = append(text, '=')
			} else {
				text = append(text, alphabet[v>>(18-6*i)&63])
			}
		}
	}
	return text
}

// FromBase64 returns what Base64 has written, or where the text is something else; at is -1 where it is not.
func FromBase64(text []byte) (data []byte, at int) {
	if len(text)%4 != 0 {
		return nil, len(text)
	}
	data = make([]byte, 0, len(text)/4*3)
	for from := 0; from < len(text); from += 4 {
		four, v, n := text[from:from+4], uint(0), 3
		if from+4 == len(text) {
			for n > 1 && four[n] == '=' {
				n--
			}
		}
		for i := range n + 1 {
			digit := strings.IndexByte(alphabet, four[i])
			if digit < 0 {
				return nil, from + i
			}
			v |= uint(digit) << (18 - 6*i)
		}
		if v&(1<<(24-8*n)-1) != 0 { // bits that no byte has
			return nil, from + n
		}
		data = append(data, []byte{byte(v >> 16), byte(v >> 8), byte(v)}[:n]...)
	}
	return data, -1
}
